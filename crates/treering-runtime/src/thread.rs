//! Threads: their records, their stacks of open activations, their end.

use core::ffi::c_void;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::OnceLock;

use treering_events::{
    Activation, CALLS_START, CODE, NEAR_CHILDREN, Node, Ref, Thread, flag, mode, rule, thread_state, unwound,
};

use crate::event::Ready;
use crate::process;
use crate::registry::to_ref;
use crate::store::{self, LOCK};
use crate::{children, sys};

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
    /// The upper half of the tags of memory blocks that the thread allocates; see `memory`.
    pub(crate) const MARK: usize = treering_memory::MARK;
}

/// Numbers of records.
static NUMBERS: AtomicU64 = AtomicU64::new(1);

/// Gives the running thread a record, which is to become the current one. Null when there is no
/// memory, or nothing is to be recorded. Events of the thread are kept out meanwhile.
pub(crate) fn attach() -> *mut Thread {
    process::initialise();
    if store::header().is_null() {
        return core::ptr::null_mut();
    }
    let thread = take_over_or_create();
    if thread.is_null() {
        return thread;
    }
    // SAFETY: the record is ours from here on.
    unsafe { begin(thread) };
    crate::memory::note_use();
    if let Some(key) = KEY.get_or_init(|| sys::create_thread_key(at_thread_end)) {
        sys::watch_thread(*key);
    }
    thread
}

/// Prepares the record for the running thread.
///
/// # Safety
/// No other thread uses the record.
unsafe fn begin(thread: *mut Thread) {
    // SAFETY: by this function's own requirement.
    unsafe {
        let now = sys::ticks();
        let (low, high) = sys::stack_bounds();
        (*thread).tid = sys::thread_id();
        (*thread).name = sys::thread_name();
        (*thread).threads += 1;
        (*thread).end_ticks = 0;
        (*thread).private[word::STACK_LOW] = low;
        (*thread).private[word::STACK_HIGH] = high;
        if (*thread).start_ticks == 0 {
            (*thread).start_ticks = now;
        }
        let used = sys::cpu_time(sys::Whose::Thread);
        (*thread).user_ns = used.user_ns;
        (*thread).system_ns = used.system_ns;
        (*thread).private_next_cpu = if process::wants_cpu_time() { 0 } else { u64::MAX };
        (*thread).epoch = process::epoch();
        (*thread).private_tag = new_tag();
        reset_stack(thread);
        (*thread).state = thread_state::RUNNING;
        seal(thread);
    }
}

/// Renews the checksum of what seldom changes in a record.
///
/// # Safety
/// The record is the caller's own, or the lock is held.
unsafe fn seal(thread: *mut Thread) {
    // SAFETY: by this function's own requirement.
    unsafe { store::seal::<Thread>(place_of(thread), thread.cast()) };
}

/// A tag that no other use of a record has, above all addresses. It repeats after 65,535 uses.
fn new_tag() -> u64 {
    u64::from(TAGS.fetch_add(1, Ordering::Relaxed) % 0xFFFF + 1) << 48
}

/// No activation but that of the root.
unsafe fn reset_stack(thread: *mut Thread) {
    // SAFETY: the record is the caller's own, with a root and room for its activation.
    unsafe {
        (*thread).beyond_limit = 0;
        let node = store::at::<Node>((*thread).root) as u64;
        let check = Activation::check_of(node, 0);
        let bottom = Activation { start: sys::ticks(), node, frame: u64::MAX, check, ..Activation::default() };
        let first = (*thread).stack_address as *mut Activation;
        (*thread).top = first as u64;
        // A signal handler may look at places that were taken but not filled yet.
        first.write(bottom);
        for at in 1..(*thread).capacity as usize {
            first.add(at).write(Activation { start: 0, ..bottom });
        }
    }
}

/// Whether a stack pointer is on a stack that the program has made itself, other than for signals.
///
/// # Safety
/// The record is the running thread's.
pub(crate) unsafe fn is_on_other_stack(thread: *mut Thread, here: u64) -> bool {
    // SAFETY: by this function's own requirement.
    let (low, high) = unsafe { ((*thread).private[word::STACK_LOW], (*thread).private[word::STACK_HIGH]) };
    let is_within = |(low, high): (u64, u64)| low <= here && here < high;
    high != 0 && !is_within((low, high)) && !sys::signal_stack().is_some_and(is_within)
}

/// How many activations are open, that of the root not counted.
///
/// # Safety
/// The record is the running thread's.
pub(crate) unsafe fn depth(thread: *mut Thread) -> u64 {
    // SAFETY: by this function's own requirement.
    unsafe { ((*thread).top - (*thread).stack_address) / Activation::BYTES as u64 }
}

fn take_over_or_create() -> *mut Thread {
    let name = sys::thread_name();
    let _held = LOCK.hold();
    if ENDED.load(Ordering::Relaxed) > KEPT_APART {
        let found = find_ended(&name);
        if !found.is_null() {
            ENDED.fetch_sub(1, Ordering::Relaxed);
            // SAFETY: its thread has ended, and the lock is held.
            unsafe {
                (*found).state = thread_state::RUNNING;
                seal(found);
            }
            return found;
        }
    }
    create()
}

/// A record whose thread has ended, of the same name if there is one.
fn find_ended(name: &[u8; 16]) -> *mut Thread {
    let mut other = core::ptr::null_mut();
    // SAFETY: the list leads from the header through whole records; the lock is held.
    unsafe {
        let mut at = treering_events::first((*store::header()).threads);
        while at != 0 {
            let thread = store::at::<Thread>(at);
            if (&raw const (*thread).state).read_volatile() == thread_state::ENDED {
                if (*thread).name == *name {
                    return thread;
                }
                other = thread;
            }
            at = (*thread).next;
        }
    }
    other
}

/// A new record in the list of threads. The lock is held.
fn create() -> *mut Thread {
    let thread = unlisted();
    if !thread.is_null() {
        // SAFETY: the record is new, and the lock is held.
        unsafe {
            (*thread).next = treering_events::first((*store::header()).threads);
            let place = place_of(thread);
            store::seal::<Thread>(place, thread.cast());
            store::list(&raw mut (*store::header()).threads, place);
        }
    }
    thread
}

/// A new record that no reader knows of. The lock is held.
pub(crate) fn unlisted() -> *mut Thread {
    let stack_bytes = u64::from(FIRST_CAPACITY) * Activation::BYTES as u64;
    let (Some(place), Some(root), Some(stack)) = (
        store::allocate(Thread::BYTES as u64),
        store::allocate(Node::BYTES as u64),
        store::allocate(stack_bytes),
    ) else {
        return core::ptr::null_mut();
    };
    let thread = store::at::<Thread>(to_ref(place));
    // SAFETY: the records were allocated for this.
    unsafe {
        store::at::<Node>(to_ref(root)).write(empty_node((0, 0, 0)));
        store::seal::<Node>(to_ref(root), store::at(to_ref(root)));
        (*thread).root = to_ref(root);
        (*thread).stack = to_ref(stack);
        (*thread).stack_address = store::at::<Activation>(to_ref(stack)) as u64;
        (*thread).capacity = FIRST_CAPACITY;
        (*thread).private_limit = limit_of(thread);
        (*thread).private[word::MARK] = crate::memory::mark(NUMBERS.fetch_add(1, Ordering::Relaxed));
        (*thread).epoch = process::epoch();
        (*thread).private_next_cpu = u64::MAX;
        (*thread).private_tag = new_tag();
        reset_stack(thread);
    }
    thread
}

/// Called by the system when a thread ends that has a record.
unsafe extern "C" fn at_thread_end(_: *mut c_void) {
    let thread = sys::current();
    if thread.is_null() || thread == sys::busy_thread() || process::is_forked() {
        return;
    }
    sys::set_current(sys::busy_thread());
    // SAFETY: the record is this thread's until it is marked as ended.
    unsafe {
        let now = sys::ticks();
        unwind(thread, (*thread).stack_address, unwound::BY_THREAD_END, now);
        charge_cpu(thread, store::at((*thread).root), now);
        (*thread).end_ticks = now;
        let _held = LOCK.hold();
        (&raw mut (*thread).state).write_volatile(thread_state::ENDED);
        seal(thread);
    }
    ENDED.fetch_add(1, Ordering::Relaxed);
    sys::set_current(core::ptr::null_mut());
}

/// Ends the activations of a period of recording that is over, and begins anew.
///
/// # Safety
/// The record is the running thread's.
pub(crate) unsafe fn renew(thread: *mut Thread) {
    // SAFETY: by this function's own requirement.
    unsafe {
        let off = process::last_off();
        let ended = if off == 0 { sys::ticks() } else { off };
        unwind(thread, (*thread).stack_address, unwound::BY_SWITCH, ended);
        (*thread).private_tag = new_tag();
        (*thread).epoch = process::epoch();
        (*thread).private_next_cpu = if process::wants_cpu_time() { 0 } else { u64::MAX };
        let used = sys::cpu_time(sys::Whose::Thread);
        (*thread).user_ns = used.user_ns;
        (*thread).system_ns = used.system_ns;
        reset_stack(thread);
    }
}

/// Leaves all activations above the place `down_to` on the stack, for `reason`.
///
/// # Safety
/// The record is the running thread's.
pub(crate) unsafe fn unwind(thread: *mut Thread, down_to: u64, reason: usize, now: u64) {
    // SAFETY: by this function's own requirement.
    unsafe {
        (*thread).beyond_limit = 0;
        while (*thread).top > down_to {
            (*thread).unwound[reason] += CODE;
            crate::leave::pop(thread, now);
        }
    }
}

/// The last activation that there is room for.
unsafe fn limit_of(thread: *mut Thread) -> u64 {
    // SAFETY: the record is the caller's own.
    unsafe { (*thread).stack_address + u64::from((*thread).capacity - 1) * Activation::BYTES as u64 }
}

/// Makes room for more activations; false when there is no memory.
///
/// Tokens name places on the stack, so it grows where it stands if it can: it is the last thing
/// in the file. Otherwise it moves, and the tag by which tokens are recognised makes up for it.
///
/// # Safety
/// The record is the running thread's.
#[cold]
pub(crate) unsafe fn grow_stack(thread: *mut Thread) -> bool {
    // SAFETY: by this function's own requirement; the new room is as large as it says.
    unsafe {
        let old = (*thread).capacity;
        let Some(new) = old.checked_mul(2) else { return false };
        let place = {
            let _held = LOCK.hold();
            store::allocate(u64::from(new) * Activation::BYTES as u64)
        };
        let Some(place) = place.map(to_ref) else { return false };
        let from = (*thread).stack_address as *mut Activation;
        let to = store::at::<Activation>(place);
        core::ptr::copy_nonoverlapping(from, to, old as usize);
        for at in old..new {
            to.add(at as usize).write(Activation { start: 0, ..*from });
        }
        let moved = (to as u64).wrapping_sub(from as u64);
        (*thread).stack_address = to as u64;
        (*thread).top = (*thread).top.wrapping_add(moved);
        (*thread).private_tag = (*thread).private_tag.wrapping_sub(moved);
        (*thread).stack = place;
        (*thread).capacity = new;
        (*thread).private_limit = limit_of(thread);
        seal(thread);
    }
    true
}

/// Room for a record in the thread's own part of the file.
unsafe fn allocate(thread: *mut Thread, bytes: u64) -> Option<Ref> {
    // SAFETY: the record is the running thread's.
    unsafe {
        let [next, end] = (*thread).private_room;
        if next + bytes <= end {
            (*thread).private_room[0] = next + bytes;
            return Some(to_ref(next));
        }
        let room = {
            let _held = LOCK.hold();
            store::allocate(ROOM.max(bytes))?
        };
        (*thread).private_room = [room + bytes, room + ROOM.max(bytes)];
        Some(to_ref(room))
    }
}

/// Room for a record that only this thread writes.
///
/// # Safety
/// The record is the running thread's.
pub(crate) unsafe fn allocate_record(thread: *mut Thread, bytes: usize) -> Option<Ref> {
    // SAFETY: by this function's own requirement.
    unsafe { allocate(thread, bytes as u64) }
}

/// The child of `parent` for a function, if there is one.
///
/// # Safety
/// `parent` is a node of the running thread's tree.
#[inline]
pub(crate) unsafe fn known_child(parent: *mut Node, function: u32) -> Option<*mut Node> {
    // SAFETY: by this function's own requirement.
    unsafe {
        let node = children::find(parent, function)?;
        keep_near(parent, node, function);
        Some(node)
    }
}

/// The child of `parent` for a function, made if it is new.
///
/// # Safety
/// The record is the running thread's, and `parent` a node of its tree.
pub(crate) unsafe fn child(thread: *mut Thread, parent: *mut Node, function: u32) -> Option<*mut Node> {
    // SAFETY: by this function's own requirement.
    unsafe {
        if let Some(known) = known_child(parent, function) {
            return Some(known);
        }
        let node = add_child(thread, parent, function)?;
        keep_near(parent, node, function);
        Some(node)
    }
}

/// Has the fast path find the child. Not under the rule of SWI-Prolog, by which every call must
/// look for an arc to fold into.
#[inline]
unsafe fn keep_near(parent: *mut Node, node: *mut Node, function: u32) {
    if process::rule() != rule::SWI_CLASSIC {
        // SAFETY: both are nodes of the running thread.
        unsafe { (&mut (*parent).private_children)[function as usize % NEAR_CHILDREN] = node as u64 };
    }
}

unsafe fn add_child(thread: *mut Thread, parent: *mut Node, function: u32) -> Option<*mut Node> {
    // SAFETY: as in `child`. A reader meets the node only when it is whole.
    unsafe {
        let place = allocate(thread, Node::BYTES as u64)?;
        let node = store::at::<Node>(place);
        let threshold = threshold(function);
        let around = (function, place_of(parent), treering_events::first((*parent).child_list));
        node.write(Node { threshold, ..empty_node(around) });
        store::seal::<Node>(place, node.cast());
        children::add(parent, node, |bytes| allocate(thread, bytes))?;
        core::sync::atomic::compiler_fence(Ordering::Release);
        store::list(&raw mut (*parent).child_list, place);
        Some(node)
    }
}

/// A node for a function, with its parent and next sibling.
pub(crate) fn empty_node((function, parent, next_sibling): (u32, Ref, Ref)) -> Node {
    let private_children = [store::nobody() as u64; NEAR_CHILDREN];
    Node {
        function,
        parent,
        next_sibling,
        private_children,
        least: u64::MAX,
        calls: CALLS_START,
        ..Node::default()
    }
}

/// Which calls of a function's nodes are timed; see `Node::threshold`.
fn threshold(function: u32) -> u32 {
    // SAFETY: the function has a number, so it has a record.
    let one_in = unsafe { (*crate::registry::record(function)).timed_one_in };
    match (process::mode(), one_in) {
        (mode::COUNT, _) | (_, 0) => 0,
        (_, one_in) => u32::MAX / one_in,
    }
}

/// Where a record stands.
#[inline(always)]
pub(crate) fn place_of<T>(record: *mut T) -> Ref {
    ((record as u64).wrapping_sub(store::base() as u64) / treering_events::UNIT) as Ref
}

/// The node of a function in a flat profile; null if it has none. No function that is not to be
/// recorded has one.
///
/// # Safety
/// The record is the running thread's.
#[inline(always)]
pub(crate) unsafe fn known_flat_node(thread: *mut Thread, function: u32) -> *mut Node {
    // SAFETY: by this function's own requirement; the table has as many entries as it says.
    unsafe {
        if u64::from(function) >= (*thread).private[word::FLAT_LENGTH] {
            return core::ptr::null_mut();
        }
        *((*thread).private[word::FLAT] as *mut *mut Node).add(function as usize)
    }
}

/// The node of a function in a flat profile, made if it is new.
///
/// # Safety
/// The record is the running thread's.
pub(crate) unsafe fn flat_node(thread: *mut Thread, function: u32) -> Option<*mut Node> {
    // SAFETY: by this function's own requirement.
    unsafe {
        match known_flat_node(thread, function) {
            node if node.is_null() => new_flat_node(thread, function),
            node => Some(node),
        }
    }
}

#[cold]
unsafe fn new_flat_node(thread: *mut Thread, function: u32) -> Option<*mut Node> {
    // SAFETY: as in `flat_node`.
    unsafe {
        let length = (*thread).private[word::FLAT_LENGTH];
        if u64::from(function) >= length {
            let new_length = (u64::from(function) + 1).next_power_of_two().max(512);
            let new = sys::map_private(new_length as usize * ENTRY).cast::<*mut Node>();
            if new.is_null() {
                return None;
            }
            let old = (*thread).private[word::FLAT] as *mut *mut Node;
            if !old.is_null() {
                core::ptr::copy_nonoverlapping(old, new, length as usize);
                sys::unmap(old.cast(), length as usize * ENTRY);
            }
            (*thread).private[word::FLAT] = new as u64;
            (*thread).private[word::FLAT_LENGTH] = new_length;
        }
        let root = store::at::<Node>((*thread).root);
        let node = child(thread, root, function)?;
        let table = (*thread).private[word::FLAT] as *mut *mut Node;
        table.add(function as usize).write(node);
        Some(node)
    }
}

/// Bytes of an entry of the table of a flat profile's nodes.
const ENTRY: usize = size_of::<*mut Node>();

/// Charges the processor time since it was read last to the node that has been running.
///
/// # Safety
/// The record is the running thread's, and the node one of its tree.
pub(crate) unsafe fn charge_cpu(thread: *mut Thread, node: *mut Node, now: u64) {
    // SAFETY: by this function's own requirement.
    unsafe {
        if (*thread).private_next_cpu == u64::MAX {
            return;
        }
        let used = sys::cpu_time(sys::Whose::Thread);
        (*node).user_ns += CODE * used.user_ns.saturating_sub((*thread).user_ns);
        (*node).system_ns += CODE * used.system_ns.saturating_sub((*thread).system_ns);
        (*thread).user_ns = used.user_ns;
        (*thread).system_ns = used.system_ns;
        (*thread).private_next_cpu = now.wrapping_add(process::cpu_interval());
    }
}

/// Charges the processor time of this thread until now to the node that runs in it.
pub(crate) fn charge_running() {
    // SAFETY: `Ready` holds this thread's own record.
    unsafe {
        let Some(ready) = Ready::take() else { return };
        let node = (*crate::event::top_of(ready.thread())).node as *mut Node;
        charge_cpu(ready.thread(), node, sys::ticks());
    }
}

/// Charges the processor time of this thread until now to no task.
pub(crate) fn charge_root() {
    // SAFETY: `Ready` holds this thread's own record.
    unsafe {
        let Some(ready) = Ready::take() else { return };
        let root = store::at((*ready.thread()).root);
        charge_cpu(ready.thread(), root, sys::ticks());
    }
}

/// Opens an activation anew that was open before the process was forked.
///
/// # Safety
/// The record is the running thread's.
pub(crate) unsafe fn inherit(thread: *mut Thread, function: u32, before: &Activation) -> bool {
    // SAFETY: by this function's own requirement.
    unsafe {
        let top = crate::event::top_of(thread);
        let parent = (*top).node as *mut Node;
        let folds = (*parent).function == function && before.flags & flag::INNER != 0;
        let node = if folds { Some(parent) } else { child(thread, parent, function) };
        let Some(node) = node else { return false };
        if (*thread).top == (*thread).private_limit && !grow_stack(thread) {
            return false;
        }
        let new = crate::event::top_of(thread).add(1);
        let flags = before.flags | flag::INHERITED;
        (*node).open += u32::from(flags & flag::COUNTED != 0);
        let check = Activation::check_of(node as u64, flags);
        new.write(Activation { start: sys::ticks(), node: node as u64, flags, check, ..*before });
        (*thread).top = new as u64;
    }
    true
}

/// Whether a token is of a thread that runs now.
pub(crate) fn is_tag_in_use(token: u64) -> bool {
    let _held = LOCK.hold();
    // SAFETY: the list leads from the header through whole records; the lock is held.
    unsafe {
        let mut at = treering_events::first((*store::header()).threads);
        while at != 0 {
            let thread = store::at::<Thread>(at);
            let place = token.wrapping_sub((&raw const (*thread).private_tag).read_volatile());
            if place >> 48 == 0 && (*thread).state == thread_state::RUNNING {
                return true;
            }
            at = (*thread).next;
        }
    }
    false
}
