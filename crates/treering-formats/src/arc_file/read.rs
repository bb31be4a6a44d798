//! Reads files of calls.

use treering_events::arc_file::{
    ALIGNMENT, HEADER, MAGIC, OBJECT, TABLE, VERSION, entry, header, object, record, table,
};

use super::{ArcFile, Calls, Object, Table};
use crate::{Problem, ReadError};

/// Reads the part of a file that is in use. Records that were begun and not finished are passed over.
///
/// # Errors
/// When it is no such file, or damaged.
pub fn read(bytes: &[u8]) -> Result<ArcFile, ReadError> {
    if !bytes.starts_with(&MAGIC) {
        return Err(Problem::OtherFormat("a file of calls counted under treering gprof").into());
    }
    if bytes.len() < HEADER {
        let (needed, left) = (HEADER as u64, bytes.len() as u64);
        return Err(Problem::PartCutShort { part: "the header", needed, left }.into());
    }
    let version = word32(bytes, header::VERSION);
    if version != VERSION {
        return Err(Problem::unsupported(format!("version {version} is not known; version 1 is read")).into());
    }
    let mut file = ArcFile {
        process: word32(bytes, header::PID),
        lost: word(bytes, header::LOST),
        ..ArcFile::default()
    };
    let used = usize::try_from(word(bytes, header::USED)).unwrap_or(usize::MAX).min(bytes.len());
    let mut at = HEADER;
    while at + table::ENTRIES <= used {
        let (kind, size) = (word32(bytes, at + record::KIND), word(bytes, at + record::SIZE));
        if size == 0 {
            // Taken by a thread that did not come to use it.
            at += ALIGNMENT;
            continue;
        }
        let damaged =
            || ReadError::at_byte(at, "the record is damaged: its size is not that of its contents");
        let size =
            usize::try_from(size).ok().filter(|size| size.is_multiple_of(ALIGNMENT) && *size <= used - at);
        let size = size.ok_or_else(damaged)?;
        let bytes = &bytes[at..at + size];
        match kind {
            TABLE => file.tables.push(table_of(bytes)),
            OBJECT => file.objects.push(object_of(bytes).ok_or_else(damaged)?),
            _ => {}
        }
        at += size;
    }
    Ok(file)
}

/// How much of a file is in use, by its first 64 bytes: the rest of some gigabytes is zeros. 0 for other files.
pub fn used_bytes(start: &[u8]) -> u64 {
    if start.starts_with(&MAGIC) && start.len() >= 64 { word(start, header::USED) } else { 0 }
}

fn table_of(bytes: &[u8]) -> Table {
    let entries = bytes[table::ENTRIES..].chunks_exact(entry::SIZE);
    let calls = |bytes: &[u8]| Calls {
        from: word(bytes, entry::FROM),
        callee: word(bytes, entry::CALLEE),
        calls: word(bytes, entry::CALLS),
    };
    Table {
        process: word32(bytes, record::PID),
        thread: word32(bytes, record::TID),
        generation: word(bytes, record::GENERATION),
        arcs: entries.map(calls).filter(|calls| calls.from != 0 && calls.calls > 0).collect(),
    }
}

fn object_of(bytes: &[u8]) -> Option<Object> {
    let length = usize::try_from(word(bytes, object::LENGTH)).ok()?;
    let path = bytes.get(object::PATH..object::PATH.checked_add(length)?)?;
    Some(Object {
        process: word32(bytes, record::PID),
        generation: word(bytes, record::GENERATION),
        start: word(bytes, object::START),
        end: word(bytes, object::END),
        offset: word(bytes, object::OFFSET),
        path: String::from_utf8_lossy(path).into_owned(),
    })
}

/// A number of 64 bits, in the order of this machine; the bytes are there.
fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

fn word32(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(bytes: &mut [u8], at: usize, number: u64) {
        bytes[at..at + 8].copy_from_slice(&number.to_ne_bytes());
    }

    /// A file with a place that was not used, a table of two entries, and an object.
    fn file() -> Vec<u8> {
        let mut bytes = vec![0; HEADER + 64 + 128 + 128];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[header::VERSION] = 1;
        let used = bytes.len() as u64;
        put(&mut bytes, header::USED, used);
        put(&mut bytes, header::LOST, 5);
        let table = HEADER + 64;
        put(&mut bytes, table + record::SIZE, 128);
        bytes[table + record::KIND] = TABLE as u8;
        bytes[table + record::TID] = 9;
        let second = table + table::ENTRIES + entry::SIZE;
        put(&mut bytes, second + entry::FROM, 0x1004);
        put(&mut bytes, second + entry::CALLEE, 0x2004);
        put(&mut bytes, second + entry::CALLS, 7);
        let object = table + 128;
        put(&mut bytes, object + record::SIZE, 128);
        bytes[object + record::KIND] = OBJECT as u8;
        put(&mut bytes, object + object::START, 0x1000);
        put(&mut bytes, object + object::END, 0x3000);
        put(&mut bytes, object + object::LENGTH, 4);
        bytes[object + object::PATH..object + object::PATH + 4].copy_from_slice(b"/a/b");
        bytes
    }

    #[test]
    fn counted_calls_and_objects_are_found() {
        let read = read(&file()).unwrap();
        assert_eq!(read.lost, 5);
        assert_eq!(read.tables[0].arcs, [Calls { from: 0x1004, callee: 0x2004, calls: 7 }]);
        assert_eq!(read.object_at(0x2fff, 77, 0).unwrap().path, "/a/b");
        assert_eq!(read.object_at(0x3000, 77, 0), None);
        assert_eq!(read.object_at(0x2fff, 77, 1), None);
    }

    #[test]
    fn every_prefix_and_every_changed_byte_is_read_or_refused() {
        let file = file();
        for length in 0..file.len() {
            _ = read(&file[..length]);
        }
        for at in (0..40).chain(HEADER..file.len()) {
            for change in [1, 0x80, 0xff] {
                let mut changed = file.clone();
                changed[at] ^= change;
                _ = read(&changed);
            }
        }
    }
}
