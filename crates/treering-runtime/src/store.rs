//! The live file: a shared mapping that grows at its end and never moves.
//!
//! A range of addresses is reserved at the start, and the file is mapped into it piece by piece. Each piece has its
//! room on the disk before it is mapped, so that a full disk is an error here and not a signal at a later write.
//! Where there is no file, or no more room for it, plain memory takes its place: the program continues, and the
//! profile is kept while it runs.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::io;

use treering_events::{
    CODE, HEADER_BYTES, Header, Node, Ref, Sealed, Text, UNIT, check_of, coded_flags, count, flag, link, text_check,
};

use crate::sys::{self, FileIdentity, Lock};

/// Guards everything that happens seldom: growing, new functions, threads and processes.
pub(crate) static LOCK: Lock = Lock::new();

/// The start of the mapping; null before there is one.
static BASE: AtomicPtr<u8> = AtomicPtr::new(core::ptr::null_mut());

/// How many stores there were, modulo 256.
static GENERATION: AtomicU8 = AtomicU8::new(0);

/// How much of the range may be used; changed under the lock.
static GROWTH: Growth = Growth(UnsafeCell::new(Extent { reserved: 0, mapped: 0, used: 0, file: None, in_file: 0, is_full: false, owner: 0 }));

/// The addresses of all stores together.
static RESERVED: AtomicU64 = AtomicU64::new(0);

struct Growth(UnsafeCell<Extent>);

// SAFETY: used only while the lock is held.
unsafe impl Sync for Growth {}

#[derive(Clone, Copy, Debug)]
struct Extent {
    reserved: u64,
    mapped: u64,
    used: u64,
    /// The number of the file, and which file it is: the program may have closed it.
    file: Option<(i32, FileIdentity)>,
    /// How much of what is mapped is the file's, from the start on.
    in_file: u64,
    /// Whether the file could not grow, so that the rest is memory only.
    is_full: bool,
    /// The process that began it. One that was forked has the same file, but must not change it.
    owner: u32,
}

/// How much is mapped at first, and at most at once.
const FIRST_STEP: u64 = 1 << 18;
const LARGEST_STEP: u64 = 1 << 26;

/// How much of the addresses is reserved, tried in turn: limits on a process's addresses may
/// forbid the larger ones.
const RESERVATIONS: [u64; 4] = [1 << 36, 1 << 33, 1 << 30, 1 << 26];

/// The start of the mapping.
#[inline(always)]
pub(crate) fn base() -> *mut u8 {
    BASE.load(Ordering::Acquire)
}

/// The record at a place.
#[inline(always)]
pub(crate) fn at<T>(place: Ref) -> *mut T {
    base().wrapping_add(place as usize * UNIT as usize).cast()
}

/// The header; null before there is a store.
pub(crate) fn header() -> *mut Header {
    base().cast()
}

/// A node of no function, in the unused part of the header's page: where a near child would stand.
pub(crate) fn nobody() -> *mut Node {
    const PLACE: usize = HEADER_BYTES as usize - Node::BYTES;
    const _: () = assert!(PLACE >= Header::BYTES);
    base().wrapping_add(PLACE).cast()
}

/// A number that no function has and that nothing is entered by, unlike 0 and that of what is ignored.
const NOBODYS_FUNCTION: u32 = u32::MAX - 1;

/// A number of the header that several threads add to.
pub(crate) fn add_to_header(field: impl Fn(*mut Header) -> *mut u64, amount: u64) {
    if !base().is_null() {
        // SAFETY: the header is mapped, and the field is aligned as its type asks.
        unsafe { AtomicU64::from_ptr(field(header())) }.fetch_add(amount * CODE, Ordering::Relaxed);
    }
}

/// Writes the checksum of a record, which no other thread changes in what it is of.
///
/// # Safety
/// A record of that type stands at `record`, whose place is `place`.
pub(crate) unsafe fn seal<T: Sealed>(place: Ref, record: *mut u8) {
    const LONGEST: usize = 512;
    let mut copy = [0; LONGEST];
    for &(start, end) in T::PARTS {
        // SAFETY: by this function's own requirement.
        unsafe { core::ptr::copy_nonoverlapping(record.add(start), copy.as_mut_ptr().add(start), end - start) };
    }
    if let Some(check) = check_of::<T>(place, &copy) {
        // SAFETY: as above; the field is aligned.
        unsafe { record.add(T::CHECK_AT).cast::<u32>().write_volatile(check) };
    }
}

/// Renews the checksum of the header, after something in it was changed.
pub(crate) fn seal_header() {
    if !base().is_null() {
        // SAFETY: the header is mapped; what the checksum is of changes under locks only.
        unsafe { seal::<Header>(0, base()) };
    }
}

/// Makes a complete record the newest of a list.
///
/// # Safety
/// `list` is the word that leads to the list; no other thread changes it meanwhile.
pub(crate) unsafe fn list(list: *mut u64, place: Ref) {
    // SAFETY: by this function's own requirement.
    unsafe { list.write_volatile(link(place, count(*list) + 1)) };
}

/// Sets a flag of the header.
pub(crate) fn set_flag(flag: u32) {
    // SAFETY: the header is mapped while anything is recorded, and the field is aligned.
    let flags = unsafe { AtomicU32::from_ptr(&raw mut (*header()).flags) };
    let with = |flags: u32| Some(coded_flags(flags | flag));
    // It never fails, as there always is a value.
    let _ = flags.fetch_update(Ordering::Relaxed, Ordering::Relaxed, with);
}

/// Starts an empty store in `file`, or in memory. The used part of the former store, if there is one, stays mapped,
/// as other threads may still use its records; its start is returned. The lock is held.
pub(crate) fn open(file: Option<(i32, FileIdentity)>) -> io::Result<Option<*mut u8>> {
    let (start, reserved) = reserve().ok_or_else(io::Error::last_os_error)?;
    RESERVED.fetch_add(reserved, Ordering::Relaxed);
    let before = base();
    // SAFETY: the lock is held.
    let extent = unsafe { &mut *GROWTH.0.get() };
    let old = (!before.is_null()).then_some(before);
    if old.is_some() {
        give_back(extent, before);
    }
    let (mapped, used, in_file, is_full) = (0, HEADER_BYTES, 0, false);
    *extent = Extent { reserved, mapped, used, file, in_file, is_full, owner: std::process::id() };
    // Before the start, so that a thread that sees the new start does not take it for the old store's.
    retire();
    BASE.store(start, Ordering::Release);
    grow(extent, FIRST_STEP)?;
    // SAFETY: the header's page is mapped now, and no thread has a node of this store yet.
    unsafe { (*nobody()).function = NOBODYS_FUNCTION };
    Ok(old)
}

/// Which store is in use, modulo 256, for marks on what outlives one.
#[inline(always)]
pub(crate) fn generation() -> &'static AtomicU8 {
    &GENERATION
}

/// The word that holds the start of the mapping.
pub(crate) fn base_word() -> &'static AtomicPtr<u8> {
    &BASE
}

/// From here on, marks that name the store in use mean nothing: it is another process's, or is
/// about to be replaced.
pub(crate) fn retire() {
    GENERATION.fetch_add(1, Ordering::Release);
}

/// Gives back what a store had room for and did not use, of addresses and of the disk: a program
/// that begins anew some thousand times would have none left.
fn give_back(extent: &mut Extent, start: *mut u8) {
    const PAGE: u64 = 4096;
    let kept = extent.used.next_multiple_of(PAGE).min(extent.mapped);
    let unused = extent.reserved - kept;
    // No thread uses the part without records, and the store is about to be replaced.
    sys::unmap(start.wrapping_add(kept as usize), unused as usize);
    if let Some((file, identity)) = extent.file.filter(|_| extent.owner == std::process::id())
        && sys::file_identity(file) == Some(identity)
    {
        sys::shorten_file(file, kept.min(extent.in_file));
    }
    RESERVED.fetch_sub(unused, Ordering::Relaxed);
}

/// Goes on in memory, and gives back what the file takes of the disk. False where that cannot be; then
/// everything is as it was. Nothing is recorded meanwhile.
pub(crate) fn leave_file() -> bool {
    let _held = LOCK.hold();
    // SAFETY: the lock is held.
    let extent = unsafe { &mut *GROWTH.0.get() };
    let Some((file, identity)) = extent.file else { return false };
    if extent.in_file == 0 || sys::file_identity(file) != Some(identity) {
        return false;
    }
    // SAFETY: the used part is mapped, and no thread writes to it.
    let copy = unsafe { sys::copy_of(base(), extent.used as usize) };
    // SAFETY: the range is the store's own, and its contents are put back before any thread reads them.
    let is_mapped = unsafe { sys::map_into(base(), extent.mapped as usize, None) }.is_ok();
    if is_mapped {
        // SAFETY: the memory was just mapped.
        unsafe { core::ptr::copy_nonoverlapping(copy.as_ptr(), base(), copy.len()) };
        (extent.file, extent.in_file) = (None, 0);
        sys::shorten_file(file, 0);
    }
    is_mapped
}

/// What can be read in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    /// Nothing: it never had any room, or has given it back.
    Nothing,
    /// What was recorded before the disk was full.
    Beginning,
    /// Everything that was recorded.
    All,
}

/// How much of the store is in its file.
pub(crate) fn kept() -> Kept {
    let _held = LOCK.hold();
    // SAFETY: the lock is held.
    let extent = unsafe { &*GROWTH.0.get() };
    match extent.in_file {
        0 => Kept::Nothing,
        _ if extent.is_full => Kept::Beginning,
        _ => Kept::All,
    }
}

fn reserve() -> Option<(*mut u8, u64)> {
    RESERVATIONS.iter().find_map(|&bytes| {
        let start = sys::reserve(bytes as usize);
        (!start.is_null()).then_some((start, bytes))
    })
}

/// Room for `bytes` zero bytes at a multiple of the unit, as a distance from the start. Nothing when addresses or
/// memory are used up. The lock is held.
pub(crate) fn allocate(bytes: u64) -> Option<u64> {
    // SAFETY: the lock is held.
    let extent = unsafe { &mut *GROWTH.0.get() };
    let bytes = bytes.next_multiple_of(UNIT);
    let start = extent.used;
    let end = start.checked_add(bytes)?;
    if end > extent.mapped {
        grow(extent, end - extent.mapped).ok()?;
    }
    extent.used = end;
    // SAFETY: the header is mapped.
    unsafe { (&raw mut (*header()).used_units).write_volatile(end / UNIT * CODE) };
    Some(start)
}

/// Stores bytes. The lock is held.
pub(crate) fn store_text(text: &[u8]) -> Text {
    if text.is_empty() {
        return Text::default();
    }
    let Ok(length) = u32::try_from(text.len()) else { return Text::default() };
    let Some(place) = allocate(text.len() as u64) else { return Text::default() };
    // SAFETY: the room was allocated for this.
    unsafe {
        core::ptr::copy_nonoverlapping(text.as_ptr(), base().add(place as usize), text.len());
    }
    Text { at: place, length, check: text_check(text) }
}

/// The bytes of a stored text.
pub(crate) fn text(text: Text) -> &'static [u8] {
    // SAFETY: texts are stored by `store_text`, whole and once, and stores stay mapped.
    unsafe { core::slice::from_raw_parts(base().add(text.at as usize), text.length as usize) }
}

/// Everything that is stored so far, as it is at this moment.
pub(crate) fn copy() -> Vec<u8> {
    let used = {
        let _held = LOCK.hold();
        // SAFETY: the lock is held.
        unsafe { (*GROWTH.0.get()).used }
    };
    // SAFETY: what is used is mapped.
    unsafe { sys::copy_of(base(), used as usize) }
}

/// Maps at least `least` bytes more.
fn grow(extent: &mut Extent, least: u64) -> io::Result<()> {
    let step = extent.mapped.clamp(FIRST_STEP, LARGEST_STEP);
    let to = (extent.mapped + least.max(step)).next_multiple_of(FIRST_STEP).min(extent.reserved);
    if to < extent.mapped + least {
        return Err(io::Error::from_raw_os_error(libc::ENOMEM));
    }
    let (start, bytes) = (base().wrapping_add(extent.mapped as usize), (to - extent.mapped) as usize);
    let from_file = extent.file.filter(|_| !extent.is_full).map(|(file, identity)| {
        if sys::file_identity(file) != Some(identity) {
            return Err(io::Error::from_raw_os_error(libc::EBADF));
        }
        sys::extend_file(file, extent.mapped, to)?;
        // SAFETY: the range is reserved and not in use yet.
        unsafe { sys::map_into(start, bytes, Some((file, extent.mapped))) }
    });
    match from_file {
        Some(Ok(())) => extent.in_file = to,
        failed => {
            // SAFETY: as above.
            unsafe { sys::map_into(start, bytes, None)? };
            // The file stays known: it may have to make room for the finished profile.
            extent.is_full = true;
            if let Some(Err(error)) = failed {
                note_growth_error(&error, extent.mapped > 0);
            }
        }
    }
    extent.mapped = to;
    Ok(())
}

/// Says in the file that it could not grow. One that never had any room says nothing.
fn note_growth_error(error: &io::Error, has_header: bool) {
    if has_header {
        // SAFETY: the header is mapped.
        unsafe {
            (*header()).growth_error = error.raw_os_error().unwrap_or(0) as u32;
        }
        seal_header();
        set_flag(flag::NOT_ALL_STORED);
    }
}

/// How many addresses are taken by stores, which are none of the program's memory.
pub(crate) fn reserved() -> u64 {
    RESERVED.load(Ordering::Relaxed)
}

/// Whether something stands in the store in use.
pub(crate) fn contains(record: *const u8) -> bool {
    let start = base() as u64;
    // SAFETY: reads a number that only grows, which holds for all stores of this size.
    let reserved = unsafe { (&raw const (*GROWTH.0.get()).reserved).read_volatile() };
    (record as u64).wrapping_sub(start) < reserved
}
