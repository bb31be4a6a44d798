//! Debug information as an earlier run decompressed it, and which code its units describe.
//!
//! Distributions compress debug information. Of that of a C library, a recording needs a hundredth, but a compressed
//! section can only be read from its beginning on. So the decompressed sections are kept in a file of their own. A
//! checksum of each block tells whether it still is as it was written, without reading the others.
//! Where it took long to find out which code each unit describes, that is kept as well, also alone.
//!
//! A file is used for debug information of the same build-id only, in a file of the same size, time and place. Programs of
//! Go have no such build-id; theirs is the time of their last change, which nobody can set.

use std::fs::{File, Metadata};
use std::io::{self, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use treering_cache::Cache;

use crate::problem::hexadecimal;
use crate::unit_index::UnitIndex;

/// The decompressed sections of one file with debug information.
#[derive(Debug)]
pub(crate) struct KeptSections {
    file: File,
    /// Where the first section begins.
    start: u64,
    head: Head,
    is_damaged: AtomicBool,
}

/// The parts of a file before its sections.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Head {
    origin: Origin,
    /// Names and lengths, in the order of the sections.
    sections: Vec<(String, u64)>,
    /// The units in `.debug_info`.
    units: Option<UnitIndex>,
    /// CRC-32C of each block of all sections together.
    checksums: Vec<u32>,
}

/// The file that sections were decompressed from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Origin {
    identity: Identity,
    size: u64,
    modified: (i64, i64),
    /// Device and inode.
    place: (u64, u64),
}

/// A property of a file that another file, or the same with other contents, does not have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum Identity {
    BuildId(Vec<u8>),
    /// The time of the last change to the file or to what the system states of it, in seconds and nanoseconds.
    Changed(i64, i64),
}

/// The beginning of every file; the number changes with the layout. The length of the head and its checksum follow.
const MAGIC: [u8; 8] = *b"trg-dbg2";
const PREFIX: usize = MAGIC.len() + 8;

/// Sections begin at a multiple of it, and each block has a checksum.
const BLOCK: u64 = 4096;

/// How many bytes are read at once.
const AT_ONCE: u64 = 16 * BLOCK;

/// More than that is not kept of one file.
const LARGEST: u64 = 128 << 20;

/// The files of all debug information together take no more than this.
const LARGEST_CACHE: u64 = 512 << 20;

/// A file that was changed longer ago has another time if it is changed again.
const SETTLED: Duration = Duration::from_secs(3);

/// Longer build-ids are nobody's.
const LONGEST_BUILD_ID: usize = 64;

impl Origin {
    /// Nothing for a file without a build-id that was changed just now: it may be changed again within one tick of the
    /// system's clock.
    pub(crate) fn of(build_id: Option<&[u8]>, found: Option<Metadata>) -> Option<Self> {
        let found = found?;
        let build_id = build_id.filter(|id| (1..=LONGEST_BUILD_ID).contains(&id.len()));
        let identity = match build_id {
            Some(id) => Identity::BuildId(id.to_vec()),
            None => {
                let changed =
                    SystemTime::UNIX_EPOCH + Duration::from_secs(u64::try_from(found.ctime()).ok()?);
                changed.elapsed().ok().filter(|ago| *ago > SETTLED)?;
                Identity::Changed(found.ctime(), found.ctime_nsec())
            }
        };
        Some(Self {
            identity,
            size: found.len(),
            modified: (found.mtime(), found.mtime_nsec()),
            place: (found.dev(), found.ino()),
        })
    }

    fn name(&self) -> String {
        match &self.identity {
            Identity::BuildId(id) => hexadecimal(id),
            Identity::Changed(..) => format!("at-{:x}-{:x}", self.place.0, self.place.1),
        }
    }
}

impl KeptSections {
    /// The sections that were kept of a file; nothing if there are none, or if anything about them is in doubt.
    pub(crate) fn open(cache: &Cache, origin: &Origin) -> Option<Self> {
        let file = cache.file(&origin.name(), 2 * LARGEST).ok()?;
        let mut prefix = [0; PREFIX];
        file.read_exact_at(&mut prefix, 0).ok()?;
        let number = |at: usize| u32::from_le_bytes(prefix[at..][..4].try_into().expect("four bytes"));
        let (length, checksum) = (number(MAGIC.len()), number(MAGIC.len() + 4));
        if prefix[..MAGIC.len()] != MAGIC || u64::from(length) > file.metadata().ok()?.len() {
            return None;
        }
        let mut head = vec![0; length as usize];
        file.read_exact_at(&mut head, PREFIX as u64).ok()?;
        let head: Head = (crc32c::crc32c(&head) == checksum).then(|| postcard::from_bytes(&head).ok())??;
        let blocks = head.sections.iter().map(|(_, length)| length.div_ceil(BLOCK)).sum::<u64>();
        let is_right = head.origin == *origin && blocks == head.checksums.len() as u64;
        let start = (PREFIX as u64 + u64::from(length)).next_multiple_of(BLOCK);
        is_right.then_some(Self { file, start, head, is_damaged: AtomicBool::new(false) })
    }

    /// Keeps sections of a file, unless they are too large, and the index of its units.
    pub(crate) fn keep(
        cache: &Cache,
        origin: &Origin,
        sections: &[(&str, &[u8])],
        units: Option<&UnitIndex>,
    ) -> io::Result<()> {
        let bytes: u64 = sections.iter().map(|(_, bytes)| bytes.len() as u64).sum();
        if bytes > LARGEST {
            return Self::keep(cache, origin, &[], units);
        }
        let head = Head {
            origin: origin.clone(),
            sections: sections.iter().map(|(name, bytes)| ((*name).to_owned(), bytes.len() as u64)).collect(),
            units: units.cloned(),
            checksums: sections.iter().flat_map(|(_, bytes)| checksums(bytes)).collect(),
        };
        let head = postcard::to_stdvec(&head).map_err(io::Error::other)?;
        let length = u32::try_from(head.len()).map_err(io::Error::other)?;
        let numbers = [length, crc32c::crc32c(&head)].map(u32::to_le_bytes).concat();
        cache.shrink(LARGEST_CACHE.saturating_sub(bytes))?;
        cache.keep(&origin.name(), 0o600, |file| {
            write_blocks(file, &[&MAGIC[..], &numbers, &head].concat())?;
            sections.iter().try_for_each(|(_, bytes)| write_blocks(file, bytes))
        })?;
        Ok(())
    }

    /// Fills `bytes` with those of the sections from a position on; fails if a block is not as it was written.
    pub(crate) fn read(&self, start: u64, bytes: &mut [u8]) -> io::Result<()> {
        let end = start + bytes.len() as u64;
        let mut buffer = vec![0; AT_ONCE.min(end.next_multiple_of(BLOCK) - start / BLOCK * BLOCK) as usize];
        let mut at = start / BLOCK * BLOCK;
        while at < end {
            let length = (end.next_multiple_of(BLOCK) - at).min(buffer.len() as u64);
            let blocks = &mut buffer[..length as usize];
            let read = self.file.read_exact_at(blocks, self.start + at);
            let expected = self.head.checksums.iter().skip((at / BLOCK) as usize);
            if read.is_err() || !checksums(blocks).eq(expected.take((length / BLOCK) as usize).copied()) {
                self.is_damaged.store(true, Ordering::Relaxed);
                return Err(io::ErrorKind::InvalidData.into());
            }
            let (from, to) = (start.max(at), end.min(at + length));
            let wanted = &blocks[(from - at) as usize..(to - at) as usize];
            bytes[(from - start) as usize..(to - start) as usize].copy_from_slice(wanted);
            at += length;
        }
        Ok(())
    }

    /// Where a section begins, and its length.
    pub(crate) fn section(&self, name: &str) -> Option<(u64, u64)> {
        let mut start = 0;
        for (other, length) in &self.head.sections {
            if other == name {
                return Some((start, *length));
            }
            start += length.next_multiple_of(BLOCK);
        }
        None
    }

    /// Whether there are sections, and not an index of units alone.
    pub(crate) fn has_sections(&self) -> bool {
        !self.head.sections.is_empty()
    }

    pub(crate) fn units(&self) -> Option<&UnitIndex> {
        self.head.units.as_ref()
    }

    /// Removes the file from the cache.
    pub(crate) fn forget(&self, cache: &Cache) {
        cache.remove(&self.head.origin.name());
    }

    /// Whether a block was not as it was written.
    pub(crate) fn is_damaged(&self) -> bool {
        self.is_damaged.load(Ordering::Relaxed)
    }
}

/// The checksum of each block, the last one filled up with zeros.
fn checksums(bytes: &[u8]) -> impl Iterator<Item = u32> {
    bytes
        .chunks(BLOCK as usize)
        .map(|block| crc32c::crc32c_append(crc32c::crc32c(block), padding(block.len())))
}

/// The zeros that fill up a block.
fn padding(length: usize) -> &'static [u8] {
    const ZEROS: [u8; BLOCK as usize] = [0; BLOCK as usize];
    &ZEROS[..length.next_multiple_of(BLOCK as usize) - length]
}

fn write_blocks(file: &mut File, bytes: &[u8]) -> io::Result<()> {
    file.write_all(bytes)?;
    file.write_all(padding(bytes.len()))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn origin(build_id: u8, modified: i64) -> Origin {
        let identity = Identity::BuildId(vec![build_id; 20]);
        Origin { identity, size: 7, modified: (modified, 0), place: (1, 2) }
    }

    /// A folder for one test, removed in the end.
    struct Folder(std::path::PathBuf);

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn cache(name: &str) -> (Cache, Folder) {
        let folder = std::env::temp_dir().join(format!("treering-kept-{name}-{}", std::process::id()));
        (Cache::open(&folder).unwrap(), Folder(folder))
    }

    fn bytes(length: usize) -> Vec<u8> {
        (0..length).map(|at| (at * at % 251) as u8).collect()
    }

    #[test]
    fn any_part_of_a_section_is_as_it_was_kept() {
        let ((cache, _folder), origin) = (cache("parts"), origin(1, 5));
        let (first, second) = (bytes(3 * BLOCK as usize + 5), bytes(20 * BLOCK as usize));
        let units = UnitIndex::default();
        let sections = [("first", &*first), ("none", &[]), ("second", &*second)];
        KeptSections::keep(&cache, &origin, &sections, Some(&units)).unwrap();
        let kept = KeptSections::open(&cache, &origin).unwrap();
        assert_eq!((kept.units(), kept.section("none").unwrap().1), (Some(&units), 0));
        assert_eq!(kept.section("other"), None);
        for (name, expected) in [("first", &first), ("second", &second)] {
            let (start, length) = kept.section(name).unwrap();
            assert_eq!(length, expected.len() as u64);
            for (from, to) in [(0, expected.len()), (1, 2), (4095, 4097), (100, 9000), (8192, 12288), (7, 7)]
            {
                let mut read = vec![0; to - from];
                kept.read(start + from as u64, &mut read).unwrap();
                assert_eq!(read, expected[from..to], "{name} {from}..{to}");
            }
        }
        kept.forget(&cache);
        assert!(KeptSections::open(&cache, &origin).is_none());
    }

    #[test]
    fn sections_of_another_file_are_not_used() {
        let ((cache, _folder), right) = (cache("others"), origin(1, 5));
        KeptSections::keep(&cache, &right, &[("a", &bytes(100))], None).unwrap();
        let elsewhere = Origin { place: (1, 3), ..right.clone() };
        let longer = Origin { size: 8, ..right.clone() };
        for other in [origin(2, 5), origin(1, 6), elsewhere, longer] {
            assert!(KeptSections::open(&cache, &other).is_none(), "{other:?}");
        }
        assert!(KeptSections::open(&cache, &right).is_some());
        // The name tells the build-id, the contents must do so, too.
        cache
            .keep(&origin(2, 5).name(), 0o600, |file| {
                let mut kept = cache.file(&right.name(), LARGEST)?;
                io::copy(&mut kept, file).map(drop)
            })
            .unwrap();
        assert!(KeptSections::open(&cache, &origin(2, 5)).is_none());
    }

    #[test]
    fn damage_anywhere_is_noticed_where_it_is_read() {
        let ((cache, _folder), origin) = (cache("damage"), origin(1, 5));
        let whole = bytes(4 * BLOCK as usize);
        let keep = || {
            KeptSections::keep(&cache, &origin, &[("a", &whole)], None).unwrap();
            let mut file = Vec::new();
            io::Read::read_to_end(&mut cache.file(&origin.name(), LARGEST).unwrap(), &mut file).unwrap();
            file
        };
        let file = keep();
        let start = file.len() - whole.len();
        let head = PREFIX + u32::from_le_bytes(file[8..12].try_into().unwrap()) as usize;
        let lengths = [0, 5, PREFIX, head - 1, head, start, file.len() - 1];
        let shorter = lengths.map(|length| file[..length].to_vec());
        let changed = (0..head).chain((start..file.len()).step_by(1000)).map(|at| {
            let mut file = file.clone();
            file[at] ^= 1;
            file
        });
        for damaged in shorter.into_iter().chain(changed) {
            let write = |to: &mut File| to.write_all(&damaged);
            cache.keep(&origin.name(), 0o600, write).unwrap();
            let Some(kept) = KeptSections::open(&cache, &origin) else { continue };
            assert!(damaged[..head.min(damaged.len())] == file[..head], "the head is checked");
            assert!(kept.read(0, &mut vec![0; whole.len()]).is_err() && kept.is_damaged());
        }
        // Other blocks stay readable.
        let mut damaged = keep();
        damaged[start + 1] ^= 1;
        cache.keep(&origin.name(), 0o600, |to| to.write_all(&damaged)).unwrap();
        let kept = KeptSections::open(&cache, &origin).unwrap();
        let mut read = vec![0; BLOCK as usize];
        kept.read(BLOCK, &mut read).unwrap();
        assert_eq!((&read[..], kept.is_damaged()), (&whole[BLOCK as usize..2 * BLOCK as usize], false));
    }

    #[test]
    fn a_file_without_a_build_id_is_known_by_its_modification_time() {
        let path = std::env::temp_dir().join(format!("treering-origin-{}", std::process::id()));
        std::fs::write(&path, "just now").unwrap();
        let fresh = path.metadata().ok();
        std::fs::remove_file(&path).unwrap();
        let old = || Path::new(env!("CARGO_MANIFEST_DIR")).metadata().ok();
        for id in [None, Some(&[][..]), Some(&[1; 65][..])] {
            assert_eq!(Origin::of(id, fresh.clone()), None);
            let told = Origin::of(id, old()).unwrap();
            assert!(matches!(told.identity, Identity::Changed(seconds, _) if seconds > 0), "{told:?}");
            assert!(told.name().starts_with("at-"), "{told:?}");
        }
        assert!(Origin::of(Some(&[1; 20]), fresh).is_some());
        assert_eq!(Origin::of(Some(&[1; 20]), None), None);
    }
}
