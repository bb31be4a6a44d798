//! The files that the code was mapped from, as `/proc/self/maps` lists them.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::file::note_object;
use crate::sys::{self, File};

/// How many mappings are remembered; of more, addresses have no names.
const KNOWN: usize = 4096;

/// A mapping that the file tells of.
struct Known {
    start: AtomicU64,
    end: AtomicU64,
    /// The generation and one; 0 while it is not used.
    generation: AtomicU64,
}

static MAPPINGS: [Known; KNOWN] =
    [const { Known { start: AtomicU64::new(0), end: AtomicU64::new(0), generation: AtomicU64::new(0) } };
        KNOWN];
static COUNT: AtomicUsize = AtomicUsize::new(0);

fn is_known(address: u64, generation: u64) -> bool {
    let known = MAPPINGS.iter().take(COUNT.load(Ordering::Acquire).min(KNOWN));
    known.rev().any(|known| {
        known.generation.load(Ordering::Acquire) == generation + 1
            && (known.start.load(Ordering::Relaxed)..known.end.load(Ordering::Relaxed)).contains(&address)
    })
}

/// Notes the modules that these addresses belong to, unless they are known.
pub(crate) fn note(addresses: [u64; 2], process: u32, generation: u64) {
    if !addresses.iter().all(|&address| is_known(address, generation)) {
        read(process, generation);
    }
}

fn read(process: u32, generation: u64) {
    const CHUNK: usize = 1 << 16;
    let Some(file) = File::open(b"/proc/self/maps\0") else { return };
    let Some(memory) = sys::zeros(CHUNK, false) else { return };
    // SAFETY: it was just made, and has no other owner.
    let chunk = unsafe { std::slice::from_raw_parts_mut(memory, CHUNK) };
    let mut held = 0;
    loop {
        let read = chunk.get_mut(held..).map_or(0, |free| file.read(free));
        held += read;
        let text = chunk.get(..held).unwrap_or_default();
        let whole = text.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
        for line in text.get(..whole).unwrap_or_default().split(|&byte| byte == b'\n') {
            note_line(line, process, generation);
        }
        if read == 0 || whole == 0 {
            break;
        }
        move_to_start(chunk, whole, held);
        held -= whole;
    }
    // SAFETY: `chunk` is not used any more.
    unsafe { sys::give_back(memory, CHUNK) };
}

/// Moves a part of memory to its start. By bytes, as the copying of slices can panic, for which a linked program would get
/// the whole standard library.
fn move_to_start(chunk: &mut [u8], from: usize, to: usize) {
    for (at, from) in (from..to).enumerate() {
        let byte = chunk.get(from).copied().unwrap_or(0);
        if let Some(place) = chunk.get_mut(at) {
            *place = byte;
        }
    }
}

/// `55d0-55d8 r-xp 00001000 08:01 123   /path`: the fields before the path have one blank between them.
fn note_line(line: &[u8], process: u32, generation: u64) {
    let mut fields = line.splitn(6, |&byte| byte == b' ');
    let (Some(range), Some(rights), Some(offset)) = (fields.next(), fields.next(), fields.next()) else {
        return;
    };
    let path = fields.nth(2).unwrap_or_default().trim_ascii_start();
    if rights.get(2) != Some(&b'x') || path.is_empty() {
        return;
    }
    let mut ends = range.splitn(2, |&byte| byte == b'-').map(hexadecimal);
    let (Some(start), Some(end)) = (ends.next(), ends.next()) else { return };
    if is_known(start, generation) {
        return;
    }
    let at = COUNT.fetch_add(1, Ordering::AcqRel);
    let Some(known) = MAPPINGS.get(at) else { return };
    known.start.store(start, Ordering::Relaxed);
    known.end.store(end, Ordering::Relaxed);
    known.generation.store(generation + 1, Ordering::Release);
    note_object(process, generation, [start, end, hexadecimal(offset)], path);
}

fn hexadecimal(digits: &[u8]) -> u64 {
    let digit = |byte: &u8| (*byte as char).to_digit(16).unwrap_or(0);
    digits.iter().fold(0, |number: u64, byte| number.wrapping_mul(16).wrapping_add(digit(byte).into()))
}
