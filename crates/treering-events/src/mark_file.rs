//! The layout of the file in which programs leave their marks for the recorder that has started them.
//!
//! The recorder makes the file, of a fixed size, and names it in [`VARIABLE`]. Each program maps it when it marks something
//! for the first time. The file consists of 64-bit words in the byte order of the machine: a header of 8 words,
//! then records of 16 words. A record is taken by adding one to the second word, so processes and threads need no lock;
//! beyond the last record the number goes on, which counts what was dropped. Of a record, the third word is written last, as
//! the length of the name plus one; where it is 0, a program ended before that.

use alloc::string::String;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

/// The variable of the environment that names the file.
pub const VARIABLE: &str = "TREERING_MARKS";

/// The first word.
pub const MAGIC: u64 = u64::from_ne_bytes(*b"\x89trm\r\n\x1a\n");

/// How many marks there is room for.
pub const MOST: usize = 16_384;

/// How many bytes of a name are kept.
pub const LONGEST: usize = 8 * (RECORD - NAME);

/// The words of the header.
const HEADER: usize = 8;
/// How many records were taken.
const TAKEN: usize = 1;

/// The words of a record: when it was by `CLOCK_MONOTONIC` in nanoseconds, the process and the thread, and the name.
const RECORD: usize = 16;
const TIME: usize = 0;
const WRITER: usize = 1;
const LENGTH: usize = 2;
const NAME: usize = 3;

/// The bytes of the header.
pub const HEADER_BYTES: usize = 8 * HEADER;

/// How many words a file has.
pub const WORDS: usize = HEADER + MOST * RECORD;

/// A mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// When it was, in nanoseconds of `CLOCK_MONOTONIC`.
    pub time_ns: u64,
    /// The process.
    pub pid: u32,
    /// Its thread.
    pub tid: u32,
    /// The name, as far as it is kept.
    pub name: String,
}

/// The marks of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// The marks that were kept, in the order in which their records were taken.
    pub marks: Vec<Mark>,
    /// How many were not, for want of room or since the program ended meanwhile.
    pub dropped: u64,
}

/// The header of a file without marks, in bytes. All other bytes of the file are 0.
pub fn header() -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    bytes[..8].copy_from_slice(&MAGIC.to_ne_bytes());
    bytes
}

/// How many bytes at the start of a file tell all its marks, from those of its header.
pub fn filled(header: &[u8; HEADER_BYTES]) -> usize {
    let taken = header[8 * TAKEN..].first_chunk().map_or(0, |word| u64::from_ne_bytes(*word));
    HEADER_BYTES + 8 * RECORD * usize::try_from(taken).unwrap_or(MOST).min(MOST)
}

/// Adds a mark to a mapped file. Words that are no such file stay as they are.
pub fn add(words: &[AtomicU64], time_ns: u64, (pid, tid): (u32, u32), name: &[u8]) {
    if words.len() != WORDS || words[0].load(Ordering::Relaxed) != MAGIC {
        return;
    }
    let at = words[TAKEN].fetch_add(1, Ordering::Relaxed);
    let record = usize::try_from(at).ok().and_then(|at| words[HEADER..].chunks_exact(RECORD).nth(at));
    let Some(record) = record else { return };
    let name = &name[..name.len().min(LONGEST)];
    record[TIME].store(time_ns, Ordering::Relaxed);
    record[WRITER].store(u64::from(pid) << 32 | u64::from(tid), Ordering::Relaxed);
    for (word, piece) in record[NAME..].iter().zip(name.chunks(8)) {
        let mut bytes = [0; 8];
        bytes[..piece.len()].copy_from_slice(piece);
        word.store(u64::from_ne_bytes(bytes), Ordering::Relaxed);
    }
    record[LENGTH].store(name.len() as u64 + 1, Ordering::Release);
}

/// Reads the marks of a file from its first bytes, of which there are as many as [`filled`] says or more. It gives nothing
/// where they are no such file.
pub fn read(bytes: &[u8]) -> Option<Marks> {
    let words: Vec<u64> =
        bytes.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap_or_default())).collect();
    if words.len() < HEADER || words[0] != MAGIC {
        return None;
    }
    let taken = words[TAKEN];
    let records = words[HEADER..].chunks_exact(RECORD).take(usize::try_from(taken).unwrap_or(MOST));
    let marks: Vec<Mark> = records.filter_map(mark).collect();
    Some(Marks { dropped: taken - marks.len() as u64, marks })
}

fn mark(record: &[u64]) -> Option<Mark> {
    let length = usize::try_from(record[LENGTH].checked_sub(1)?).ok().filter(|&length| length <= LONGEST)?;
    let bytes: Vec<u8> = record[NAME..].iter().flat_map(|word| word.to_ne_bytes()).take(length).collect();
    Some(Mark {
        time_ns: record[TIME],
        pid: (record[WRITER] >> 32) as u32,
        tid: record[WRITER] as u32,
        // A long name may be cut within a character.
        name: String::from_utf8_lossy(&bytes).trim_end_matches('\u{fffd}').into(),
    })
}

#[cfg(test)]
mod tests {
    use alloc::{format, vec};

    use super::*;

    fn mapped() -> Vec<AtomicU64> {
        let mut words = vec![0; WORDS];
        words[0] = MAGIC;
        words.into_iter().map(AtomicU64::new).collect()
    }

    fn bytes(words: &[AtomicU64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.load(Ordering::Relaxed).to_ne_bytes()).collect()
    }

    #[test]
    fn marks_are_read_as_they_were_written() {
        let words = mapped();
        add(&words, 7, (10, 11), b"load");
        add(&words, 9, (10, 12), "Größe der Tabelle".as_bytes());
        add(&words, 9, (10, 12), b"");
        let found = read(&bytes(&words)).expect("a file of marks");
        let mark = |time_ns, tid, name: &str| Mark { time_ns, pid: 10, tid, name: name.into() };
        assert_eq!(found.marks, [mark(7, 11, "load"), mark(9, 12, "Größe der Tabelle"), mark(9, 12, "")]);
        assert_eq!(found.dropped, 0);
    }

    #[test]
    fn long_names_are_cut_between_characters() {
        let words = mapped();
        let name = "ä".repeat(60);
        add(&words, 1, (1, 1), name.as_bytes());
        add(&words, 1, (1, 1), format!("x{name}").as_bytes());
        let found = read(&bytes(&words)).expect("a file of marks");
        assert_eq!(found.marks[0].name, "ä".repeat(52));
        assert_eq!(found.marks[1].name, format!("x{}", "ä".repeat(51)));
    }

    #[test]
    fn marks_beyond_the_room_and_unfinished_ones_are_counted() {
        let words = mapped();
        for at in 0..MOST as u64 + 5 {
            add(&words, at, (1, 1), b"again");
        }
        words[HEADER + LENGTH].store(0, Ordering::Relaxed);
        let found = read(&bytes(&words)).expect("a file of marks");
        assert_eq!((found.marks.len(), found.dropped), (MOST - 1, 6));
        assert_eq!(found.marks.last().map(|mark| mark.time_ns), Some(MOST as u64 - 1));
    }

    #[test]
    fn the_filled_part_of_a_file_tells_all_its_marks() {
        let words = mapped();
        let is_enough = |words: &[AtomicU64]| {
            let file = bytes(words);
            let filled = filled(file.first_chunk().expect("a header"));
            assert!(filled <= file.len());
            assert_eq!(read(&file[..filled]), read(&file));
            filled
        };
        assert_eq!(bytes(&words)[..HEADER_BYTES], header());
        assert_eq!(is_enough(&words), HEADER_BYTES);
        add(&words, 7, (10, 11), b"load");
        assert_eq!(is_enough(&words), HEADER_BYTES + 8 * RECORD);
        words[TAKEN].store(u64::MAX, Ordering::Relaxed);
        assert_eq!(is_enough(&words), 8 * WORDS);
    }

    #[test]
    fn other_bytes_are_no_marks() {
        assert_eq!(read(b""), None);
        assert_eq!(read(&vec![0; 8 * WORDS]), None);
        let mut file = bytes(&mapped());
        // A damaged length is a mark that was not finished.
        file[8] = 1;
        file[8 * (HEADER + LENGTH)..][..8].fill(0xff);
        assert_eq!(read(&file), Some(Marks { marks: Vec::new(), dropped: 1 }));
        file.truncate(HEADER_BYTES - 1);
        assert_eq!(read(&file), None);
    }
}
