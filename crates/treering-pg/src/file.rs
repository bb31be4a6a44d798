//! The file that a process counts in, and tables in it.

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use treering_events::arc_file::{
    ALIGNMENT, HEADER, MAGIC, OBJECT, TABLE, VERSION, entry, header, object, record, table,
};
use treering_events::output_name::{Marks, RANK_VARIABLES, fill_in, rank};

use crate::entry::early_calls;
use crate::sys::{self, File};

/// How large files are made, largest first; they take room only as far as they are used.
const SIZES: [usize; 4] = [4 << 30, 1 << 30, 128 << 20, 16 << 20];

/// The variable that names the folder for files. `treering gprof` knows by this text that a program has this library in it.
const FOLDER: &[u8] = b"TREERING_PG=";

/// The variable that names the profile to be made; what is counted for it lies beside it, under another ending. The marks
/// of `output_name` in it are filled in.
const OUTPUT: &[u8] = b"TREERING_OUTPUT=";
const ENDING: &[u8] = b".arcs";

/// The file that is mapped.
static BASE: AtomicUsize = AtomicUsize::new(0);
static SIZE: AtomicUsize = AtomicUsize::new(0);

/// Makes the file and maps it; false if that is not possible.
pub(crate) fn make() -> bool {
    let mut path = [0_u8; 4096];
    let Some(length) = folder(&mut path) else { return false };
    let process = sys::process();
    // A program that executes another keeps its number.
    for attempt in 0..10_000_u32 {
        let Some(path) = named(&mut path, length, process, attempt) else { return false };
        let Some(file) = File::create(path) else {
            if File::open(path).is_some() { continue } else { return false }
        };
        return map(&file, process);
    }
    false
}

fn map(file: &File, process: u32) -> bool {
    let limit = sys::file_limit();
    for size in SIZES.into_iter().filter(|&size| size <= limit) {
        if !file.set_size(size) {
            continue;
        }
        let Some(base) = file.map(size) else { continue };
        if !sys::has_room(base, HEADER) {
            return false;
        }
        BASE.store(base as usize, Ordering::Relaxed);
        SIZE.store(size, Ordering::Relaxed);
        word32(header::VERSION).store(VERSION, Ordering::Relaxed);
        word32(header::PID).store(process, Ordering::Relaxed);
        word(header::USED).store(HEADER as u64, Ordering::Relaxed);
        word(header::SIZE).store(size as u64, Ordering::Relaxed);
        word(header::LOST).store(early_calls(), Ordering::Relaxed);
        word(0).store(u64::from_ne_bytes(MAGIC), Ordering::Release);
        return true;
    }
    false
}

/// The name of the folder, at the start of `path`. A folder beside a profile is made if it is not there.
/// The environment of a program that has more rights than the user who started it is that user's choice,
/// and is not obeyed, as the C library does not obey `GMON_OUT_PREFIX` then.
fn folder(path: &mut [u8; 4096]) -> Option<usize> {
    if sys::has_rights_of_others() {
        return None;
    }
    if let Some(length) = variable(FOLDER, path) {
        return Some(length);
    }
    let length = variable(OUTPUT, path)?;
    let length = with_marks(path, length, sys::process())?;
    let end = length + ENDING.len();
    put(path, length, ENDING)?;
    *path.get_mut(end)? = 0;
    sys::make_folder(path.get(..=end)?);
    Some(end)
}

/// Fills in the marks of a name; the new length, or nothing if the path gets too long.
fn with_marks(path: &mut [u8; 4096], length: usize, process: u32) -> Option<usize> {
    let (mut digits, mut name, mut of_host, mut of_rank) = ([0; 10], [0; 4096], [0; 4096], [0; 4096]);
    put(&mut name, 0, path.get(..length)?)?;
    let host = File::open(b"/proc/sys/kernel/hostname\0").map_or(0, |file| file.read(&mut of_host));
    let host = of_host.get(..host.saturating_sub(1)).unwrap_or_default();
    let host = if host.contains(&b'/') { &[] } else { host };
    let mut own_rank: &[u8] = b"0";
    for variable_of_rank in RANK_VARIABLES {
        let mut with_sign = [0; 40];
        let end = variable_of_rank.len();
        with_sign.iter_mut().zip(variable_of_rank.bytes().chain([b'='])).for_each(|(to, byte)| *to = byte);
        let found = variable(with_sign.get(..=end)?, &mut of_rank);
        if found.is_some_and(|length| of_rank.get(..length).and_then(rank).is_some()) {
            own_rank = of_rank.get(..found?)?;
            break;
        }
    }
    let marks = Marks { process: decimal(process, &mut digits), host, rank: own_rank };
    let mut end = Some(0);
    fill_in(name.get(..length)?, marks, |piece| {
        end = end.and_then(|at| put(path, at, piece).map(|()| at + piece.len()));
    });
    end.filter(|length| length + 40 < path.len())
}

/// A variable of the environment that the program was started with, at the start of `path`; nothing if it is empty, or
/// too long for a path.
fn variable(name: &[u8], path: &mut [u8; 4096]) -> Option<usize> {
    const CHUNK: usize = 1 << 16;
    let memory = sys::zeros(CHUNK, false)?;
    // SAFETY: it was just made, and has no other owner.
    let chunk = unsafe { std::slice::from_raw_parts_mut(memory, CHUNK) };
    let file = File::open(b"/proc/self/environ\0");
    let mut found = None;
    // How much of the variable's name was seen, or nothing within another variable.
    let (mut seen, mut length) = (Some(0), 0);
    if let Some(file) = file {
        'all: loop {
            let read = file.read(chunk);
            if read == 0 {
                break;
            }
            for &byte in chunk.get(..read).unwrap_or_default() {
                match seen {
                    _ if byte == 0 => {
                        if length > 0 {
                            found = Some(length);
                            break 'all;
                        }
                        seen = Some(0);
                    }
                    Some(at) if at == name.len() => {
                        if let Some(place) = path.get_mut(length) {
                            *place = byte;
                        }
                        length += 1;
                    }
                    Some(at) if name.get(at) == Some(&byte) => seen = Some(at + 1),
                    _ => seen = None,
                }
            }
        }
    }
    // SAFETY: `chunk` is not used any more.
    unsafe { sys::give_back(memory, CHUNK) };
    found.filter(|&length| length + 40 < path.len())
}

/// `FOLDER/PID-ATTEMPT.arcs` with a zero behind it.
fn named(path: &mut [u8; 4096], folder: usize, process: u32, attempt: u32) -> Option<&[u8]> {
    let mut at = folder;
    let (mut of_process, mut of_attempt) = ([0; 10], [0; 10]);
    let (process, attempt) = (decimal(process, &mut of_process), decimal(attempt, &mut of_attempt));
    for part in [b"/", process, b"-", attempt, b".arcs\0"] {
        put(path, at, part)?;
        at += part.len();
    }
    path.get(..at)
}

/// Puts bytes into a path, if there is room. By bytes, as the copying of slices can panic, for which a linked program would
/// get the whole standard library.
fn put(path: &mut [u8; 4096], at: usize, bytes: &[u8]) -> Option<()> {
    let places = path.get_mut(at..at + bytes.len())?;
    places.iter_mut().zip(bytes).for_each(|(place, byte)| *place = *byte);
    Some(())
}

fn decimal(mut number: u32, digits: &mut [u8; 10]) -> &[u8] {
    let mut first = digits.len();
    loop {
        first -= 1;
        digits[first] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return &digits[first..];
        }
    }
}

/// A number of 64 bits in the file; only while it is mapped, and within it.
fn word(at: usize) -> &'static AtomicU64 {
    // SAFETY: the mapping stays until the process ends, and all its users use atomic numbers.
    unsafe { &*((BASE.load(Ordering::Relaxed) + at) as *const AtomicU64) }
}

/// The same of 32 bits.
fn word32(at: usize) -> &'static AtomicU32 {
    // SAFETY: the mapping stays until the process ends, and all its users use atomic numbers.
    unsafe { &*((BASE.load(Ordering::Relaxed) + at) as *const AtomicU32) }
}

/// Counts a call that there was no room for.
pub(crate) fn lose() {
    word(header::LOST).fetch_add(1, Ordering::Relaxed);
}

/// Room for a record; nothing if the file is full, or the disk.
fn room(bytes: usize) -> Option<usize> {
    let bytes = bytes.next_multiple_of(ALIGNMENT);
    let size = SIZE.load(Ordering::Relaxed) as u64;
    let used = word(header::USED);
    let at = used.load(Ordering::Relaxed);
    if at + bytes as u64 > size {
        return None;
    }
    let at = used.fetch_add(bytes as u64, Ordering::Relaxed);
    if at + bytes as u64 > size {
        return None;
    }
    let memory = (BASE.load(Ordering::Relaxed) + at as usize) as *mut u8;
    if !sys::has_room(memory, bytes) {
        return None;
    }
    word(at as usize + record::SIZE).store(bytes as u64, Ordering::Release);
    Some(at as usize)
}

/// A hash table of arcs, which one thread counts in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Table {
    /// Its address in memory.
    address: usize,
}

impl Table {
    /// Makes an empty table.
    pub(crate) fn make(entries: usize, process: u32, thread: u32, generation: u64) -> Option<Self> {
        let at = room(table::ENTRIES + entries * entry::SIZE)?;
        word(at + table::MASK).store(((entries - 1) * entry::SIZE) as u64, Ordering::Relaxed);
        word(at + record::GENERATION).store(generation, Ordering::Relaxed);
        word32(at + record::PID).store(process, Ordering::Relaxed);
        word32(at + record::TID).store(thread, Ordering::Relaxed);
        word32(at + record::KIND).store(TABLE, Ordering::Release);
        Some(Self { address: BASE.load(Ordering::Relaxed) + at })
    }

    /// The table at an address that [`address`](Self::address) gave.
    pub(crate) fn at(address: usize) -> Self {
        Self { address }
    }

    /// Where it is.
    pub(crate) fn address(self) -> usize {
        self.address
    }

    fn word(self, at: usize) -> &'static AtomicU64 {
        // SAFETY: tables stay until the process ends, and are used by atomic numbers.
        unsafe { &*((self.address + at) as *const AtomicU64) }
    }

    fn word32(self, at: usize) -> &'static AtomicU32 {
        // SAFETY: tables stay until the process ends, and are used by atomic numbers.
        unsafe { &*((self.address + at) as *const AtomicU32) }
    }

    /// Takes over the table of a thread of this process that has ended, if it has.
    pub(crate) fn claim(self, process: u32, thread: u32, generation: u64) -> bool {
        let owner = self.word32(record::TID);
        let before = owner.load(Ordering::Relaxed);
        let is_ours = self.word32(record::PID).load(Ordering::Relaxed) == process
            && self.word(record::GENERATION).load(Ordering::Relaxed) == generation;
        is_ours
            && (before == thread || sys::has_ended(process, before))
            && owner.compare_exchange(before, thread, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// How many entries it has.
    pub(crate) fn entries(self) -> usize {
        self.word(table::MASK).load(Ordering::Relaxed) as usize / entry::SIZE + 1
    }

    /// Counts a call. `Some(true)` if it is the first along its arc, nothing if the table is full. Only its
    /// thread may do so, with signals blocked.
    pub(crate) fn count(self, from: u64, callee: u64) -> Option<bool> {
        let mask = self.word(table::MASK).load(Ordering::Relaxed);
        let mut offset = hash(from, callee) & mask;
        loop {
            let at = table::ENTRIES + offset as usize;
            let known = self.word(at + entry::FROM);
            let calls = self.word(at + entry::CALLS);
            match known.load(Ordering::Relaxed) {
                0 => break self.insert(at, from, callee),
                same if same == from && self.word(at + entry::CALLEE).load(Ordering::Relaxed) == callee => {
                    calls.store(calls.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
                    break Some(false);
                }
                _ => offset = (offset + entry::SIZE as u64) & mask,
            }
        }
    }

    fn insert(self, at: usize, from: u64, callee: u64) -> Option<bool> {
        let used = self.word(table::USED);
        let count = used.load(Ordering::Relaxed) as usize;
        if count >= self.entries() / 2 {
            return None;
        }
        used.store(count as u64 + 1, Ordering::Relaxed);
        self.word(at + entry::CALLEE).store(callee, Ordering::Relaxed);
        self.word(at + entry::CALLS).store(1, Ordering::Relaxed);
        self.word(at + entry::FROM).store(from, Ordering::Release);
        Some(true)
    }
}

/// Where in a table an arc is looked for first; the entry points do the same.
fn hash(from: u64, callee: u64) -> u64 {
    from.wrapping_add(callee.wrapping_mul(2)).wrapping_mul(0x1e37_79b1) >> 12
}

/// Notes that code was mapped from a file.
pub(crate) fn note_object(process: u32, generation: u64, [start, end, offset]: [u64; 3], path: &[u8]) {
    let Some(at) = room(object::PATH + path.len()) else { return };
    word(at + record::GENERATION).store(generation, Ordering::Relaxed);
    word32(at + record::PID).store(process, Ordering::Relaxed);
    word(at + object::START).store(start, Ordering::Relaxed);
    word(at + object::END).store(end, Ordering::Relaxed);
    word(at + object::OFFSET).store(offset, Ordering::Relaxed);
    word(at + object::LENGTH).store(path.len() as u64, Ordering::Relaxed);
    for (place, byte) in path.iter().enumerate() {
        let to = (BASE.load(Ordering::Relaxed) + at + object::PATH + place) as *mut u8;
        // SAFETY: the record has room for the path, and is not published yet.
        unsafe { to.write_volatile(*byte) };
    }
    word32(at + record::KIND).store(OBJECT, Ordering::Release);
}
