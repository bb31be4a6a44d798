//! The live file: a shared mapping that grows at its end and never moves.
//!
//! A range of addresses is reserved at the start, and the file is mapped into it piece by piece. Each piece has its
//! room on the disk before it is mapped, so that a full disk is an error here and not a signal at a later write.
//! Where there is no file, or no more room for it, plain memory takes its place: the program continues, and the
//! profile is kept while it runs.

use core::cell::Cell;
use core::sync::atomic::{AtomicPtr, AtomicU8, AtomicU64, Ordering};
use std::io;

use treering_events::cells::{Header, Node};
use treering_events::{CODE, HEADER_BYTES, InPlace, Ref, Sealed, Text, UNIT, coded_flags, flag, text_check};

use crate::record::{self, shared, shared_u32};
use crate::sys::{self, FileIdentity, Lock};

/// How much of the store may be used. Guards everything that happens seldom: growing, new functions, threads and
/// processes.
pub(crate) static STORE: Lock<Store> = Lock::new(Store {
    reserved: 0,
    mapped: 0,
    used: 0,
    file: None,
    in_file: 0,
    is_full: false,
    owner: 0,
});

/// The start of the mapping; null before there is one.
static BASE: AtomicPtr<u8> = AtomicPtr::new(core::ptr::null_mut());

/// How many addresses the store in use has.
static SIZE: AtomicU64 = AtomicU64::new(0);

/// How many stores there were, modulo 256.
static GENERATION: AtomicU8 = AtomicU8::new(0);

/// The addresses of all stores together.
static RESERVED: AtomicU64 = AtomicU64::new(0);

/// The extent of the store in use.
#[derive(Debug)]
pub(crate) struct Store {
    reserved: u64,
    mapped: u64,
    used: u64,
    /// The number of the file, and which file it is: the program may have closed it.
    file: Option<(i32, FileIdentity)>,
    /// The bytes of the mapping that are the file's, from the start on.
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

/// How many addresses the store in use has.
#[inline(always)]
pub(crate) fn size() -> u64 {
    SIZE.load(Ordering::Relaxed)
}

/// The header; nothing before there is a store. The lock of the process or that of the store guards what is set in it;
/// flags and what counts up are changed by [`set_flag`] and [`add_to_header`].
#[inline(always)]
pub(crate) fn header() -> Option<&'static Header> {
    (!base().is_null()).then(|| record::at(0))
}

/// A node of no function, in the unused part of the header's page: where a near child would stand.
pub(crate) fn nobody() -> &'static Node {
    const PLACE: u64 = HEADER_BYTES - size_of::<Node>() as u64;
    const _: () = assert!(PLACE >= size_of::<Header>() as u64 && PLACE.is_multiple_of(UNIT));
    record::at(to_ref(PLACE))
}

/// The function of the node of nobody. No function has this number, and no event enters it; 0 and the number of
/// ignored functions are entered.
const NOBODYS_FUNCTION: u32 = u32::MAX - 1;

/// Adds to a number of the header that several threads add to.
pub(crate) fn add_to_header(field: impl Fn(&Header) -> &Cell<u64>, amount: u64) {
    if let Some(header) = header() {
        shared(field(header)).fetch_add(amount * CODE, Ordering::Relaxed);
    }
}

/// Changes the header, and renews its checksum. A lock is held.
pub(crate) fn change_header(change: impl FnOnce(&Header)) {
    if let Some(header) = header() {
        change(header);
        record::seal(header);
    }
}

/// Sets a flag of the header.
pub(crate) fn set_flag(flag: u32) {
    if let Some(header) = header() {
        let with = |flags: u32| Some(coded_flags(flags | flag));
        // It never fails, as there always is a value.
        let _ = shared_u32(&header.flags).fetch_update(Ordering::Relaxed, Ordering::Relaxed, with);
    }
}

/// A place in units.
pub(crate) fn to_ref(place: u64) -> Ref {
    (place / UNIT) as Ref
}

/// The number of the store in use, modulo 256, for marks on things that outlive a store.
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

/// The part of the recording that can be read in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Readable {
    /// Nothing: it never had any room, or has given it back.
    Nothing,
    /// The events from before the disk was full.
    Beginning,
    /// Everything that was recorded.
    All,
}

fn reserve() -> Option<(*mut u8, u64)> {
    RESERVATIONS.iter().find_map(|&bytes| {
        let start = sys::reserve(bytes as usize);
        (!start.is_null()).then_some((start, bytes))
    })
}

impl Store {
    /// Starts an empty store in `file`, or in memory. The used part of the former store, if there is one, stays mapped,
    /// as other threads may still use its records; its start is returned. An error leaves everything as it was.
    pub(crate) fn open(&mut self, file: Option<(i32, FileIdentity)>) -> io::Result<Option<*mut u8>> {
        let (start, reserved) = reserve().ok_or_else(io::Error::last_os_error)?;
        RESERVED.fetch_add(reserved, Ordering::Relaxed);
        let before = base();
        let old = (!before.is_null()).then_some(before);
        let (mapped, used, in_file, is_full) = (0, HEADER_BYTES, 0, false);
        let new = Self { reserved, mapped, used, file, in_file, is_full, owner: std::process::id() };
        let former = core::mem::replace(self, new);
        // Before the start, so that a thread that sees the new start does not take it for the old store's.
        retire();
        SIZE.store(reserved, Ordering::Relaxed);
        BASE.store(start, Ordering::Release);
        if let Err(error) = self.grow(FIRST_STEP) {
            BASE.store(before, Ordering::Release);
            SIZE.store(former.reserved, Ordering::Relaxed);
            *self = former;
            sys::unmap(start, reserved as usize);
            RESERVED.fetch_sub(reserved, Ordering::Relaxed);
            return Err(error);
        }
        if old.is_some() {
            former.give_back(before);
        }
        nobody().function.set(NOBODYS_FUNCTION);
        Ok(old)
    }

    /// Gives back what the store has room for and does not use, of addresses and of the disk: a program
    /// that begins anew some thousand times would have none left.
    fn give_back(&self, start: *mut u8) {
        const PAGE: u64 = 4096;
        let kept = self.used.next_multiple_of(PAGE).min(self.mapped);
        let unused = self.reserved - kept;
        // No thread uses the part without records, and the store is about to be replaced.
        sys::unmap(start.wrapping_add(kept as usize), unused as usize);
        if let Some((file, identity)) = self.file.filter(|_| self.owner == std::process::id())
            && sys::file_identity(file) == Some(identity)
        {
            sys::shorten_file(file, kept.min(self.in_file));
        }
        RESERVED.fetch_sub(unused, Ordering::Relaxed);
    }

    /// Goes on in memory, and gives back what the file takes of the disk. False where that cannot be; then
    /// everything is as it was. Nothing is recorded meanwhile.
    pub(crate) fn leave_file(&mut self) -> bool {
        let Some((file, identity)) = self.file else { return false };
        if self.in_file == 0 || sys::file_identity(file) != Some(identity) {
            return false;
        }
        let is_mapped = record::replace_mapping(self.used, self.mapped);
        if is_mapped {
            (self.file, self.in_file) = (None, 0);
            sys::shorten_file(file, 0);
        }
        is_mapped
    }

    /// How much of the store is in its file.
    pub(crate) fn readable(&self) -> Readable {
        match self.in_file {
            0 => Readable::Nothing,
            _ if self.is_full => Readable::Beginning,
            _ => Readable::All,
        }
    }

    /// Room for `bytes` zero bytes at a multiple of the unit, as a distance from the start. Nothing when addresses or
    /// memory are used up.
    pub(crate) fn allocate(&mut self, bytes: u64) -> Option<u64> {
        let bytes = bytes.next_multiple_of(UNIT);
        let start = self.used;
        let end = start.checked_add(bytes)?;
        if end > self.mapped {
            self.grow(end - self.mapped).ok()?;
        }
        self.used = end;
        record::publish(&header()?.used_units, end / UNIT * CODE);
        Some(start)
    }

    /// Stores bytes.
    pub(crate) fn text(&mut self, text: &[u8]) -> Text {
        let Ok(length) = u32::try_from(text.len()) else { return Text::default() };
        match self.allocate(text.len() as u64) {
            Some(at) if !text.is_empty() => {
                record::write_bytes(at, text);
                Text { at, length, check: text_check(text) }
            }
            _ => Text::default(),
        }
    }

    /// The newest record of a list of the header.
    pub(crate) fn newest(&self, list: impl Fn(&Header) -> &Cell<u64>) -> Ref {
        header().map_or(0, |header| treering_events::first(list(header).get()))
    }

    /// Makes a record that is whole the newest of a list of the header.
    pub(crate) fn list(&mut self, list: impl Fn(&Header) -> &Cell<u64>, place: Ref) {
        if let Some(header) = header() {
            record::append(list(header), place);
        }
    }

    /// Adds a record to a list of the header. `record` makes it with the place of the next one; nothing where there is
    /// no room.
    pub(crate) fn add<T: InPlace<Record: Sealed> + 'static>(
        &mut self,
        list: impl Fn(&Header) -> &Cell<u64>,
        record: impl FnOnce(Ref) -> T::Record,
    ) -> Option<Ref> {
        let place = self.allocate(size_of::<T>() as u64).map(to_ref)?;
        record::make::<T>(place, record(self.newest(&list)));
        self.list(list, place);
        Some(place)
    }

    /// Maps at least `least` bytes more.
    fn grow(&mut self, least: u64) -> io::Result<()> {
        let step = self.mapped.clamp(FIRST_STEP, LARGEST_STEP);
        let to = (self.mapped + least.max(step)).next_multiple_of(FIRST_STEP).min(self.reserved);
        if to < self.mapped + least {
            return Err(io::Error::from_raw_os_error(libc::ENOMEM));
        }
        let from_file = self.file.filter(|_| !self.is_full).map(|(file, identity)| {
            if sys::file_identity(file) != Some(identity) {
                return Err(io::Error::from_raw_os_error(libc::EBADF));
            }
            sys::extend_file(file, self.mapped, to)?;
            record::map(self.mapped..to, Some(file))
        });
        match from_file {
            Some(Ok(())) => self.in_file = to,
            failed => {
                record::map(self.mapped..to, None)?;
                // The file stays known: it may have to make room for the finished profile.
                self.is_full = true;
                if let Some(Err(error)) = failed {
                    note_growth_error(&error, self.mapped > 0);
                }
            }
        }
        self.mapped = to;
        Ok(())
    }
}

/// Everything that is stored so far, as it is at this moment.
pub(crate) fn copy() -> Vec<u8> {
    let used = STORE.hold().used;
    record::copy_of_store(used)
}

/// The memory that a finished profile of what is stored takes to make, at most, in bytes.
pub(crate) fn size_to_finish() -> usize {
    // Copies of all records, what is derived from them, and the finished file.
    const TIMES: u64 = 8;
    const SPARE: u64 = 1 << 20;
    (STORE.hold().used * TIMES + SPARE) as usize
}

/// Says in the file that it could not grow. One that never had any room says nothing.
fn note_growth_error(error: &io::Error, has_header: bool) {
    if has_header {
        change_header(|header| header.growth_error.set(error.raw_os_error().unwrap_or(0) as u32));
        set_flag(flag::NOT_ALL_STORED);
    }
}

/// How many addresses are taken by stores, which are none of the program's memory.
pub(crate) fn reserved() -> u64 {
    RESERVED.load(Ordering::Relaxed)
}

/// Whether an address is one of the store in use.
#[inline(always)]
pub(crate) fn contains(address: u64) -> bool {
    address.wrapping_sub(base() as u64) < size()
}
