//! Records where they stand: here addresses and places become references, and nowhere else.
//!
//! A record of the live file is never moved or removed, and the used part of a store stays mapped when another takes
//! its place. So a reference to a record is good for as long as the process runs. Records consist of numbers, for
//! which any bits are valid, and change through cells: no reference is exclusive. A thread reads and writes the
//! records of its own tree only, and cells keep references to them in their thread. The exceptions are a thread's
//! state and tag, which others look at ([`shared`]), and what has a lock of its own.
//!
//! Some words of records are addresses: a thread's topmost activation, the node of an activation, the near children of
//! a node, the nodes of a flat profile. They are written from references, by [`address`], before anything leads to the
//! record that has them.

use core::cell::Cell;
use core::ops::Range;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, compiler_fence};
use std::io;

use treering_events::cells::{Activation, Node, Thread};
use treering_events::{Function, InPlace, Module, NEAR_CHILDREN, Ref, Sealed, Text, UNIT, check_of, count, link};

use crate::course::Course;
use crate::thread::word;
use crate::{store, sys};

/// The address of a record.
#[inline(always)]
pub(crate) fn address<T>(record: &T) -> u64 {
    core::ptr::from_ref(record) as u64
}

/// The record at an address.
///
/// # Safety
/// A record of that type stands there, for as long as the process runs.
#[inline(always)]
unsafe fn at_address<T: InPlace>(address: u64) -> &'static T {
    debug_assert!(address != 0 && address.is_multiple_of(align_of::<T>() as u64));
    // SAFETY: by this function's own requirement. Any bits are a record, and cells allow changes beside the reference.
    // That the address is not 0 saves the comparison with it where the record may be missing.
    unsafe {
        core::hint::assert_unchecked(address != 0);
        &*(address as *const T)
    }
}

/// The record at a place of the store in use.
#[inline(always)]
pub(crate) fn at<T: InPlace>(place: Ref) -> &'static T {
    debug_assert!(u64::from(place) * UNIT < store::size());
    // SAFETY: places lead to whole records, which are written before their place is stored anywhere.
    unsafe { at_address(store::base() as u64 + u64::from(place) * UNIT) }
}

/// Where a record stands in the store in use.
#[inline(always)]
pub(crate) fn place_of<T: InPlace>(record: &T) -> Ref {
    (address(record).wrapping_sub(store::base() as u64) / UNIT) as Ref
}

/// The topmost open activation of the running thread.
#[inline(always)]
pub(crate) fn top_of(thread: &Thread) -> &'static Activation {
    // SAFETY: `top` leads to an activation of the thread's stack, from when its record is made.
    unsafe { at_address(thread.top.get()) }
}

/// The topmost open activation of the running thread, which stands at `place`: callers have compared that with `top`.
///
/// The reference comes from the place and not from the record, which only confirms it: so what follows need not wait
/// until the record was read back.
#[inline(always)]
pub(crate) fn topmost_at(place: u64) -> &'static Activation {
    // SAFETY: the place equals `top`, which leads to an activation of the thread's stack.
    unsafe { at_address(place) }
}

/// An activation that is open, by its place on the running thread's stack. That of the root is none of these.
pub(crate) fn open_at(thread: &Thread, place: u64) -> Option<&'static Activation> {
    let depth = place.wrapping_sub(thread.stack_address.get());
    let is_one = place <= thread.top.get() && depth != 0 && depth.is_multiple_of(size_of::<Activation>() as u64);
    // SAFETY: the place is a whole number of activations above the first and not above the topmost.
    (is_one && place > thread.stack_address.get()).then(|| unsafe { at_address(place) })
}

/// The activation below another one that is not the root's.
#[inline(always)]
pub(crate) fn below(activation: &Activation) -> &'static Activation {
    // SAFETY: activations stand side by side, and only the root's has none below; callers exclude it.
    unsafe { at_address(address(activation) - size_of::<Activation>() as u64) }
}

/// The place above the topmost activation, where there is room: `top` is not the thread's limit.
#[inline(always)]
pub(crate) fn above(top: &Activation) -> &'static Activation {
    // SAFETY: callers have compared with the limit, which leads to the last activation of the stack.
    unsafe { at_address(address(top) + size_of::<Activation>() as u64) }
}

/// All places for activations of a thread, those that are not in use too.
pub(crate) fn stack_of(thread: &Thread) -> &'static [Activation] {
    let start = thread.stack_address.get() as *const Activation;
    // SAFETY: the stack was allocated for as many activations as `capacity` says, and stays.
    unsafe { core::slice::from_raw_parts(start, thread.capacity.get() as usize) }
}

/// Copies the activations of a stack to a place with room for `capacity`, and has the further places lead to the root's node.
pub(crate) fn copy_stack(before: &[Activation], place: Ref, capacity: u32) {
    let first = address(at::<Activation>(place));
    let unused = before.first().map(|root| treering_events::Activation { start: 0, ..read(root) });
    let sources = before.iter().map(read).chain(core::iter::repeat(unused.unwrap_or_default()));
    for (index, activation) in sources.take(capacity as usize).enumerate() {
        // SAFETY: the room was allocated for that many activations.
        write(unsafe { at_address::<Activation>(first + (index * size_of::<Activation>()) as u64) }, activation);
    }
}

/// The node of an activation.
#[inline(always)]
pub(crate) fn node_of(activation: &Activation) -> &'static Node {
    // SAFETY: every place of a stack has a node from when the stack is made.
    unsafe { at_address(activation.node.get()) }
}

/// The course of the running thread, if it has one.
#[inline(always)]
pub(crate) fn course_of(thread: &Thread) -> Option<&'static Course> {
    let word = thread.private[word::COURSE].get() as *const Course;
    // SAFETY: the word is 0 or the address of a course, and courses stay in memory.
    unsafe { word.as_ref() }
}

/// The child of a node that the fast path knows for a function: perhaps another function's, or nobody's.
#[inline(always)]
pub(crate) fn near_child(node: &Node, function: u32) -> &'static Node {
    // SAFETY: every entry leads to a node from when the node is made, at first to nobody's.
    unsafe { at_address(node.private_children[function as usize % NEAR_CHILDREN].get()) }
}

/// The node at an address that left the runtime, in a token or a place, and came back.
#[inline]
pub(crate) fn node_at(address: u64) -> Option<&'static Node> {
    let is_node = store::contains(address) && address.is_multiple_of(UNIT);
    // SAFETY: only addresses of nodes are given out, and this one stands in the store.
    is_node.then(|| unsafe { at_address(address) })
}

/// The node of a leaf that is timed, by the part of its token without the tag, which is the running thread's.
#[inline(always)]
pub(crate) fn leaf_at(address: u64) -> &'static Node {
    // SAFETY: a token has its tag from when this thread entered the leaf, and with it the address of a node.
    unsafe { at_address(address) }
}

/// The node of a function in a flat profile; none if it has none, or is not to be recorded.
#[inline(always)]
pub(crate) fn flat_node(thread: &Thread, function: u32) -> Option<&'static Node> {
    let known = flat_entry(thread, function)?.get();
    // SAFETY: entries are 0 or lead to nodes.
    (known != 0).then(|| unsafe { at_address(known) })
}

/// The word of a function in the table of a flat profile's nodes, if the table is long enough.
#[inline(always)]
pub(crate) fn flat_entry(thread: &Thread, function: u32) -> Option<&Cell<u64>> {
    if u64::from(function) >= thread.private[word::FLAT_LENGTH].get() {
        return None;
    }
    let table = thread.private[word::FLAT].get() as *const Cell<u64>;
    // SAFETY: the table has as many entries as its length says; only its own thread replaces it.
    Some(unsafe { &*table.add(function as usize) })
}

/// Makes the table of a flat profile's nodes at least `least` entries long; false where there is no memory.
pub(crate) fn lengthen_flat_table(thread: &Thread, least: u64) -> bool {
    let length = thread.private[word::FLAT_LENGTH].get();
    let new_length = least.next_power_of_two().max(512);
    let new = sys::map_private(new_length as usize * size_of::<u64>());
    if new.is_null() {
        return false;
    }
    let old = thread.private[word::FLAT].get() as *mut u8;
    let bytes = length as usize * size_of::<u64>();
    if !old.is_null() {
        // SAFETY: the old table has that many bytes, the new one more. Its thread, this one, has no reference to it.
        unsafe { core::ptr::copy_nonoverlapping(old, new, bytes) };
        sys::unmap(old, bytes);
    }
    thread.private[word::FLAT].set(new as u64);
    thread.private[word::FLAT_LENGTH].set(new_length);
    true
}

/// A table of words in the store: a power of two of them, of which the first is the mask that makes an index of a hash.
#[derive(Clone, Copy)]
pub(crate) struct Table {
    words: &'static Cell<u64>,
    mask: u32,
}

impl Table {
    /// The table at a distance in units from a node.
    #[inline(always)]
    pub(crate) fn at(node: &Node, distance: u32) -> Self {
        // SAFETY: only distances of tables are stored, and tables are made by `new`.
        let words = unsafe { &*(address_at(node, distance) as *const Cell<u64>) };
        Self { words, mask: words.get() as u32 }
    }

    /// A table of zeros, with `first` in the upper half of the first word.
    pub(crate) fn new(size: u32, first: u32, allocate: impl FnOnce(u64) -> Option<Ref>) -> Option<Self> {
        let place = allocate(u64::from(size) * 8)?;
        let (mask, start) = (size.next_power_of_two() - 1, store::base() as u64 + u64::from(place) * UNIT);
        // SAFETY: the room was allocated for this; it is a multiple of the unit, which no word crosses.
        let words = unsafe { &*(start as *const Cell<u64>) };
        words.set(u64::from(first) << 32 | u64::from(mask));
        Some(Self { words, mask })
    }

    /// The word of an index, modulo the number of words.
    #[inline(always)]
    pub(crate) fn word(self, index: u32) -> &'static Cell<u64> {
        // SAFETY: the mask is one less than the number of words.
        unsafe { &*core::ptr::from_ref(self.words).add((index & self.mask) as usize) }
    }

    /// How many words it has.
    pub(crate) fn size(self) -> u32 {
        self.mask + 1
    }

    /// How far it is from a node, in units, modulo 2^32.
    pub(crate) fn distance(self, node: &Node) -> u32 {
        distance(node, address(self.words))
    }
}

/// How far it is from a node to another record, in units, modulo 2^32.
pub(crate) fn distance(node: &Node, record: u64) -> u32 {
    ((record as i64 - address(node) as i64) / UNIT as i64) as u32
}

/// The node that is so far away from another one.
#[inline(always)]
pub(crate) fn node_at_distance(node: &Node, distance: u32) -> &'static Node {
    // SAFETY: only distances of nodes are stored in tables of children.
    unsafe { at_address(address_at(node, distance)) }
}

#[inline(always)]
fn address_at(node: &Node, distance: u32) -> u64 {
    address(node).wrapping_add_signed(i64::from(distance as i32) * UNIT as i64)
}

/// A number of a record that threads share: its owner writes it by this, and others read it by this.
pub(crate) fn shared(number: &Cell<u64>) -> &AtomicU64 {
    // SAFETY: the number is aligned, and is written by this only. That its owner also reads it plainly is no race.
    unsafe { AtomicU64::from_ptr(number.as_ptr()) }
}

/// The same of a number of four bytes.
pub(crate) fn shared_u32(number: &Cell<u32>) -> &AtomicU32 {
    // SAFETY: the number is aligned, and is written by this only. That its owner also reads it plainly is no race.
    unsafe { AtomicU32::from_ptr(number.as_ptr()) }
}

/// Makes a record that is whole the newest of a list.
pub(crate) fn append(list: &Cell<u64>, place: Ref) {
    publish(list, link(place, count(list.get()) + 1));
}

/// Has a word lead to a record that is whole: a reader in another process meets the record after that.
pub(crate) fn publish<T>(word: &Cell<T>, value: T) {
    compiler_fence(Ordering::Release);
    // SAFETY: the cell is a valid place of that type, which this thread alone writes.
    unsafe { word.as_ptr().write_volatile(value) };
}

/// Writes a whole record.
pub(crate) fn write<T: InPlace>(target: &T, record: T::Record) {
    // SAFETY: both have the same layout, and every byte of the target is in a cell.
    unsafe { core::ptr::from_ref(target).cast::<T::Record>().cast_mut().write(record) };
}

/// A copy of a whole record.
pub(crate) fn read<T: InPlace>(source: &T) -> T::Record {
    // SAFETY: both have the same layout, and only this thread writes the record.
    unsafe { core::ptr::from_ref(source).cast::<T::Record>().read() }
}

/// Writes a checksum of a record. `S` names the fields that it covers, which no other thread changes
/// meanwhile.
pub(crate) fn seal_as<S: Sealed>(record: &impl InPlace) {
    let bytes = bytes_of(record);
    if let Some(check) = check_of::<S>(place_of(record), &bytes) {
        let field = core::ptr::from_ref(record).cast::<u8>().wrapping_add(S::CHECK_AT);
        // SAFETY: the checksum is a field of the record, aligned, and in a cell.
        unsafe { field.cast_mut().cast::<u32>().write_volatile(check) };
    }
}

/// Writes the checksum of a record of which there is one.
pub(crate) fn seal<T: InPlace<Record: Sealed>>(record: &T) {
    seal_as::<T::Record>(record);
}

/// Writes a whole record at a place, with its checksum.
pub(crate) fn make<T: InPlace<Record: Sealed> + 'static>(place: Ref, record: T::Record) -> &'static T {
    let target = at::<T>(place);
    write(target, record);
    seal(target);
    target
}

/// The bytes of a record, and zeros behind them. Those that other threads change are not sealed.
fn bytes_of<T: InPlace>(record: &T) -> [u8; 512] {
    const { assert!(size_of::<T>() <= 512) };
    let mut bytes = [0; 512];
    // SAFETY: records are no longer than the array, and consist of bytes that can be read.
    unsafe { core::ptr::copy_nonoverlapping(core::ptr::from_ref(record).cast(), bytes.as_mut_ptr(), size_of::<T>()) };
    bytes
}

/// A record that nobody changes any more, at a place of the store that begins at `base`, which stays mapped.
///
/// # Safety
/// A whole record of that type stands there.
unsafe fn fixed<T>(base: u64, place: Ref) -> &'static T {
    // SAFETY: by this function's own requirement.
    unsafe { &*((base + u64::from(place) * UNIT) as *const T) }
}

/// A function, which nobody changes after it was made.
pub(crate) fn function(base: *const u8, place: Ref) -> &'static Function {
    // SAFETY: places of functions are known only after the functions were made.
    unsafe { fixed(base as u64, place) }
}

/// A module, which nobody changes after it was made.
pub(crate) fn module(base: *const u8, place: Ref) -> &'static Module {
    // SAFETY: places of modules are in lists and functions only after the modules were made.
    unsafe { fixed(base as u64, place) }
}

/// The bytes of a text in the store that begins at `base`.
pub(crate) fn text(base: *const u8, text: Text) -> &'static [u8] {
    // SAFETY: texts are stored whole and once, before any record leads to them, and stay mapped.
    unsafe { core::slice::from_raw_parts(base.wrapping_add(text.at as usize), text.length as usize) }
}

/// Writes bytes to room of the store that was allocated for them.
pub(crate) fn write_bytes(at: u64, bytes: &[u8]) {
    assert!(at + bytes.len() as u64 <= store::size());
    // SAFETY: the room is mapped, and nothing leads to it yet.
    unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), store::base().add(at as usize), bytes.len()) };
}

/// A copy of the first `used` bytes of the store, which are mapped. Threads may be changing them.
pub(crate) fn copy_of_store(used: u64) -> Vec<u8> {
    // SAFETY: what is used is mapped.
    unsafe { sys::copy_of(store::base(), used as usize) }
}

/// Maps a part of the store that nothing is in yet: the same part of a file, or memory.
pub(crate) fn map(part: Range<u64>, file: Option<i32>) -> io::Result<()> {
    let start = store::base().wrapping_add(part.start as usize);
    // SAFETY: the store's addresses are reserved, and those behind what is mapped are not in use.
    unsafe { sys::map_into(start, (part.end - part.start) as usize, file.map(|file| (file, part.start))) }
}

/// Puts memory in the place of the file that the first `mapped` bytes of the store are in; false where that cannot be.
/// No thread writes to the store meanwhile.
pub(crate) fn replace_mapping(used: u64, mapped: u64) -> bool {
    let copy = copy_of_store(used);
    // SAFETY: the range is the store's own, and its contents are put back before any thread reads them.
    let is_mapped = unsafe { sys::map_into(store::base(), mapped as usize, None) }.is_ok();
    if is_mapped {
        write_bytes(0, &copy);
    }
    is_mapped
}

/// The word at an address of the running thread's stack.
#[inline(always)]
pub(crate) fn stack_word(address: u64) -> u64 {
    // SAFETY: callers look above the stack pointer and below the end of the thread's stack, which is mapped there.
    unsafe { *(address as *const u64) }
}

/// A record of zeros that stands in no store.
#[cfg(test)]
pub(crate) fn zeroed<T: InPlace>() -> T {
    // SAFETY: records consist of numbers, of which zeros are one.
    unsafe { core::mem::zeroed() }
}
