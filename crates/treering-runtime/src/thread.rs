//! Threads: their records, their stacks of open activations, their end.

use core::cell::Cell;
use core::ffi::c_void;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::OnceLock;

use treering_events::cells::{Activation, Node, Thread};
use treering_events::{CALLS_START, CODE, NEAR_CHILDREN, Ref, flag, mode, rule, thread_state, unwound};

use crate::event::Ready;
use crate::record::{self, above, address, node_of, place_of, shared, shared_u32, stack_of, top_of};
use crate::store::{self, STORE, Store, to_ref};
use crate::{children, course, process, sys};

/// How many threads that have ended keep a record of their own; those that come later take over
/// the record of one that has ended, so that memory does not grow with every thread.
const KEPT_APART: u32 = 64;

/// Activations that a new thread has room for.
const FIRST_CAPACITY: u32 = 64;

/// Bytes of records that a thread takes at once.
const ROOM: u64 = 4096;

static ENDED: AtomicU32 = AtomicU32::new(0);
/// Tells uses of thread records apart; part of every token.
static TAGS: AtomicU32 = AtomicU32::new(1);
static KEY: OnceLock<Option<libc::pthread_key_t>> = OnceLock::new();

/// Indexes of `Thread::private`, the words that only this process understands.
pub(crate) mod word {
    pub(crate) const STACK_LOW: usize = 0;
    pub(crate) const STACK_HIGH: usize = 1;
    /// In a flat profile, the nodes of functions by number, and how many there is room for.
    pub(crate) const FLAT: usize = 2;
    pub(crate) const FLAT_LENGTH: usize = 3;
    /// The address of the thread's course, or 0.
    pub(crate) const COURSE: usize = 4;
    /// The upper half of the tags of memory blocks that the thread allocates; see `memory`.
    pub(crate) const MARK: usize = treering_memory::MARK;
}

/// Numbers of records.
static NUMBERS: AtomicU64 = AtomicU64::new(1);

/// Gives the running thread a record, which is to become the current one. Nothing when there is no
/// memory, or nothing is to be recorded. Events of the thread are kept out meanwhile.
pub(crate) fn attach() -> Option<&'static Thread> {
    process::initialise();
    store::header()?;
    let thread = take_over_or_create()?;
    begin(thread);
    crate::memory::note_use();
    if let Some(key) = KEY.get_or_init(|| sys::create_thread_key(at_thread_end)) {
        sys::watch_thread(*key);
    }
    Some(thread)
}

/// Prepares the record for the running thread.
fn begin(thread: &'static Thread) {
    let now = sys::ticks();
    let (low, high) = sys::stack_bounds();
    thread.tid.set(sys::thread_id());
    for (cell, byte) in thread.name.iter().zip(sys::thread_name()) {
        cell.set(byte);
    }
    thread.threads.update(|threads| threads + 1);
    thread.end_ticks.set(0);
    thread.private[word::STACK_LOW].set(low);
    thread.private[word::STACK_HIGH].set(high);
    if thread.start_ticks.get() == 0 {
        thread.start_ticks.set(now);
    }
    let used = sys::cpu_time(sys::Whose::Thread);
    thread.user_ns.set(used.user_ns);
    thread.system_ns.set(used.system_ns);
    thread.private_next_cpu.set(if process::wants_cpu_time() { 0 } else { u64::MAX });
    thread.epoch.set(process::epoch());
    shared(&thread.private_tag).store(new_tag(), Ordering::Relaxed);
    reset_stack(thread);
    course::begin(thread);
    shared_u32(&thread.state).store(thread_state::RUNNING, Ordering::Relaxed);
    record::seal(thread);
}

/// A tag that no other use of a record has, above all addresses. It repeats after 65,535 uses.
fn new_tag() -> u64 {
    u64::from(TAGS.fetch_add(1, Ordering::Relaxed) % 0xFFFF + 1) << 48
}

/// No activation but that of the root.
fn reset_stack(thread: &'static Thread) {
    thread.beyond_limit.set(0);
    let unused = unused_place(address(record::at::<Node>(thread.root.get())));
    thread.top.set(thread.stack_address.get());
    // A signal handler may look at places that were taken but not filled yet.
    for (at, place) in stack_of(thread).iter().enumerate() {
        let start = if at == 0 { sys::ticks() } else { 0 };
        record::write(place, treering_events::Activation { start, ..unused });
    }
}

/// A place of a stack whose root's node is at an address.
fn unused_place(node: u64) -> treering_events::Activation {
    use treering_events::Activation as Record;

    Record { node, frame: u64::MAX, check: Record::check_of(node, 0), ..Record::default() }
}

/// Whether a stack pointer is on a stack that the program has made itself, other than for signals.
pub(crate) fn is_on_other_stack(thread: &'static Thread, here: u64) -> bool {
    let (low, high) = (thread.private[word::STACK_LOW].get(), thread.private[word::STACK_HIGH].get());
    let is_within = |(low, high): (u64, u64)| low <= here && here < high;
    high != 0 && !is_within((low, high)) && !sys::signal_stack().is_some_and(is_within)
}

/// How many activations are open, that of the root not counted.
pub(crate) fn depth(thread: &'static Thread) -> u64 {
    (thread.top.get() - thread.stack_address.get()) / size_of::<Activation>() as u64
}

/// Whether there is room for another activation.
pub(crate) fn has_room(thread: &Thread) -> bool {
    thread.top.get() != thread.private_limit.get()
}

fn take_over_or_create() -> Option<&'static Thread> {
    let name = sys::thread_name();
    let mut store = STORE.hold();
    if ENDED.load(Ordering::Relaxed) > KEPT_APART
        && let Some(found) = find_ended(&store, &name)
    {
        ENDED.fetch_sub(1, Ordering::Relaxed);
        shared_u32(&found.state).store(thread_state::RUNNING, Ordering::Relaxed);
        record::seal(found);
        return Some(found);
    }
    create(&mut store)
}

/// The records of all threads, newest first.
fn all(store: &Store) -> impl Iterator<Item = &'static Thread> {
    let newest = store.newest(|header| &header.threads);
    let at = |place: Ref| (place != 0).then(|| record::at::<Thread>(place));
    core::iter::successors(at(newest), move |thread| at(thread.next.get()))
}

/// A record whose thread has ended, of the same name if there is one.
fn find_ended(store: &Store, name: &[u8; 16]) -> Option<&'static Thread> {
    let has_ended = |thread: &&Thread| shared_u32(&thread.state).load(Ordering::Relaxed) == thread_state::ENDED;
    let has_name = |thread: &Thread| thread.name.iter().map(Cell::get).eq(*name);
    let mut other = None;
    for thread in all(store).filter(has_ended) {
        if has_name(thread) {
            return Some(thread);
        }
        other = Some(thread);
    }
    other
}

/// A new record in the list of threads.
fn create(store: &mut Store) -> Option<&'static Thread> {
    let thread = unlisted(store)?;
    thread.next.set(store.newest(|header| &header.threads));
    record::seal(thread);
    store.list(|header| &header.threads, place_of(thread));
    Some(thread)
}

/// A new record that no reader knows of.
pub(crate) fn unlisted(store: &mut Store) -> Option<&'static Thread> {
    let place = store.allocate(size_of::<Thread>() as u64).map(to_ref)?;
    let root = store.allocate(size_of::<Node>() as u64).map(to_ref)?;
    let stack = store.allocate(u64::from(FIRST_CAPACITY) * size_of::<Activation>() as u64).map(to_ref)?;
    let thread = record::at::<Thread>(place);
    record::make::<Node>(root, empty_node((0, 0, 0)));
    thread.root.set(root);
    thread.stack.set(stack);
    thread.stack_address.set(address(record::at::<Activation>(stack)));
    thread.capacity.set(FIRST_CAPACITY);
    thread.private_limit.set(limit_of(thread));
    thread.private[word::MARK].set(crate::memory::mark(NUMBERS.fetch_add(1, Ordering::Relaxed)));
    thread.epoch.set(process::epoch());
    thread.private_next_cpu.set(u64::MAX);
    shared(&thread.private_tag).store(new_tag(), Ordering::Relaxed);
    reset_stack(thread);
    Some(thread)
}

/// Called by the system when a thread ends that has a record.
extern "C" fn at_thread_end(_: *mut c_void) {
    let Some(thread) = sys::recorded_thread().filter(|_| !process::is_forked()) else { return };
    sys::set_current(Some(sys::busy_thread()));
    let now = sys::ticks();
    unwind(thread, thread.stack_address.get(), unwound::BY_THREAD_END, now);
    charge_cpu(thread, record::at(thread.root.get()), now);
    thread.end_ticks.set(now);
    {
        let _store = STORE.hold();
        shared_u32(&thread.state).store(thread_state::ENDED, Ordering::Relaxed);
        record::seal(thread);
    }
    ENDED.fetch_add(1, Ordering::Relaxed);
    sys::set_current(None);
}

/// Ends the activations of a period of recording that is over, and begins anew.
pub(crate) fn renew(thread: &'static Thread) {
    let off = process::last_off();
    let ended = if off == 0 { sys::ticks() } else { off };
    unwind(thread, thread.stack_address.get(), unwound::BY_SWITCH, ended);
    shared(&thread.private_tag).store(new_tag(), Ordering::Relaxed);
    thread.epoch.set(process::epoch());
    thread.private_next_cpu.set(if process::wants_cpu_time() { 0 } else { u64::MAX });
    let used = sys::cpu_time(sys::Whose::Thread);
    thread.user_ns.set(used.user_ns);
    thread.system_ns.set(used.system_ns);
    reset_stack(thread);
    course::begin(thread);
}

/// Leaves all activations above the place `down_to` on the stack, for `reason`.
pub(crate) fn unwind(thread: &'static Thread, down_to: u64, reason: usize, now: u64) {
    thread.beyond_limit.set(0);
    while thread.top.get() > down_to {
        thread.unwound[reason].update(|unwound| unwound + CODE);
        crate::leave::pop(thread, now);
    }
}

/// The last activation that there is room for.
fn limit_of(thread: &'static Thread) -> u64 {
    thread.stack_address.get() + u64::from(thread.capacity.get() - 1) * size_of::<Activation>() as u64
}

/// Makes room for more activations; false when there is no memory.
///
/// Tokens name places on the stack, so it grows where it stands if it can: it is the last thing
/// in the file. Otherwise it moves, and the tag by which tokens are recognised makes up for it.
#[cold]
pub(crate) fn grow_stack(thread: &'static Thread) -> bool {
    let old = thread.capacity.get();
    let Some(new) = old.checked_mul(2) else { return false };
    let place = STORE.hold().allocate(u64::from(new) * size_of::<Activation>() as u64);
    let Some(place) = place.map(to_ref) else { return false };
    let (before, start) = (stack_of(thread), address(record::at::<Activation>(place)));
    let moved = start.wrapping_sub(thread.stack_address.get());
    record::copy_stack(before, place, new);
    thread.stack_address.set(start);
    thread.top.update(|top| top.wrapping_add(moved));
    shared(&thread.private_tag).store(thread.private_tag.get().wrapping_sub(moved), Ordering::Relaxed);
    thread.stack.set(place);
    thread.capacity.set(new);
    thread.private_limit.set(limit_of(thread));
    record::seal(thread);
    true
}

/// Room for a record in the thread's own part of the file.
fn allocate(thread: &'static Thread, bytes: u64) -> Option<Ref> {
    let [next, end] = &thread.private_room;
    let at = next.get();
    if at + bytes <= end.get() {
        next.set(at + bytes);
        return Some(to_ref(at));
    }
    let room = STORE.hold().allocate(ROOM.max(bytes))?;
    next.set(room + bytes);
    end.set(room + ROOM.max(bytes));
    Some(to_ref(room))
}

/// Room for a record that only this thread writes.
pub(crate) fn allocate_record(thread: &'static Thread, bytes: usize) -> Option<Ref> {
    allocate(thread, bytes as u64)
}

/// The child of `parent` for a function, if there is one.
#[inline]
pub(crate) fn known_child(parent: &'static Node, function: u32) -> Option<&'static Node> {
    let node = children::find(parent, function)?;
    keep_near(parent, node, function);
    Some(node)
}

/// The child of `parent` for a function, made if it is new.
pub(crate) fn child(thread: &'static Thread, parent: &'static Node, function: u32) -> Option<&'static Node> {
    if let Some(known) = known_child(parent, function) {
        return Some(known);
    }
    let node = add_child(thread, parent, function)?;
    keep_near(parent, node, function);
    Some(node)
}

/// Has the fast path find the child. Not under the rule of SWI-Prolog, by which every call must
/// look for an arc to fold into.
#[inline]
fn keep_near(parent: &'static Node, node: &'static Node, function: u32) {
    if process::rule() != rule::SWI_CLASSIC {
        parent.private_children[function as usize % NEAR_CHILDREN].set(address(node));
    }
}

fn add_child(thread: &'static Thread, parent: &'static Node, function: u32) -> Option<&'static Node> {
    let place = allocate(thread, size_of::<Node>() as u64)?;
    let threshold = threshold(function);
    let around = (function, place_of(parent), treering_events::first(parent.child_list.get()));
    let node = record::make::<Node>(place, treering_events::Node { threshold, ..empty_node(around) });
    children::add(parent, node, |bytes| allocate(thread, bytes))?;
    record::append(&parent.child_list, place);
    Some(node)
}

/// A node for a function, with its parent and next sibling.
pub(crate) fn empty_node((function, parent, next_sibling): (u32, Ref, Ref)) -> treering_events::Node {
    let private_children = [address(store::nobody()); NEAR_CHILDREN];
    treering_events::Node {
        function,
        parent,
        next_sibling,
        private_children,
        least: u64::MAX,
        calls: CALLS_START,
        ..treering_events::Node::default()
    }
}

/// The threshold of a function's nodes, which chooses the calls that are timed; see `Node::threshold`.
fn threshold(function: u32) -> u32 {
    let one_in = crate::registry::record(function).timed_one_in;
    match (process::mode(), one_in) {
        (mode::COUNT, _) | (_, 0) => 0,
        (_, one_in) => u32::MAX / one_in,
    }
}

/// The node of a function in a flat profile, made if it is new.
pub(crate) fn flat_node(thread: &'static Thread, function: u32) -> Option<&'static Node> {
    record::flat_node(thread, function).or_else(|| new_flat_node(thread, function))
}

#[cold]
fn new_flat_node(thread: &'static Thread, function: u32) -> Option<&'static Node> {
    let needed = u64::from(function) + 1;
    if needed > thread.private[word::FLAT_LENGTH].get() && !record::lengthen_flat_table(thread, needed) {
        return None;
    }
    let node = child(thread, record::at(thread.root.get()), function)?;
    record::flat_entry(thread, function)?.set(address(node));
    Some(node)
}

/// Charges the processor time since it was read last to the node that has been running.
pub(crate) fn charge_cpu(thread: &'static Thread, node: &'static Node, now: u64) {
    if thread.private_next_cpu.get() == u64::MAX {
        return;
    }
    let used = sys::cpu_time(sys::Whose::Thread);
    node.user_ns.update(|user_ns| user_ns + CODE * used.user_ns.saturating_sub(thread.user_ns.get()));
    node.system_ns.update(|system_ns| system_ns + CODE * used.system_ns.saturating_sub(thread.system_ns.get()));
    thread.user_ns.set(used.user_ns);
    thread.system_ns.set(used.system_ns);
    thread.private_next_cpu.set(now.wrapping_add(process::cpu_interval()));
}

/// Charges the processor time of this thread until now to the node that runs in it.
pub(crate) fn charge_running() {
    let Some(ready) = Ready::take() else { return };
    charge_cpu(ready.thread(), node_of(top_of(ready.thread())), sys::ticks());
}

/// Charges the processor time of this thread until now to no task.
pub(crate) fn charge_root() {
    let Some(ready) = Ready::take() else { return };
    charge_cpu(ready.thread(), record::at(ready.thread().root.get()), sys::ticks());
}

/// Opens an activation anew that was open before the process was forked.
pub(crate) fn inherit(thread: &'static Thread, function: u32, before: &treering_events::Activation) -> bool {
    use treering_events::Activation as Record;

    let parent = node_of(top_of(thread));
    let folds = parent.function.get() == function && before.flags & flag::INNER != 0;
    let node = if folds { Some(parent) } else { child(thread, parent, function) };
    let Some(node) = node else { return false };
    if !has_room(thread) && !grow_stack(thread) {
        return false;
    }
    let new = above(top_of(thread));
    let flags = before.flags | flag::INHERITED;
    node.open.update(|open| open + u32::from(flags & flag::COUNTED != 0));
    let node = address(node);
    let (start, check) = (sys::ticks(), Record::check_of(node, flags));
    course::charge(thread, parent, start);
    record::write(new, Record { start, node, flags, check, ..*before });
    thread.top.set(address(new));
    true
}

/// Whether a token is of a thread that runs now.
pub(crate) fn is_tag_in_use(token: u64) -> bool {
    let store = STORE.hold();
    let is_it = |thread: &Thread| {
        let place = token.wrapping_sub(shared(&thread.private_tag).load(Ordering::Relaxed));
        place >> 48 == 0 && shared_u32(&thread.state).load(Ordering::Relaxed) == thread_state::RUNNING
    };
    all(&store).any(is_it)
}
