//! The contents of files of which little is wanted.

use std::cell::OnceCell;
use std::fs::{File, Metadata};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;

use object::ReadRef;
use typed_arena::Arena;

use crate::section::Section;

/// The bytes of a file, read by pieces when they are asked for and kept from then on.
pub(crate) struct Contents {
    source: Source,
    size: u64,
    /// The file in pieces of the same size, the last one shorter.
    pieces: Vec<OnceCell<Box<[u8]>>>,
    /// Contents in more than one piece.
    spans: Arena<Vec<u8>>,
}

enum Source {
    File(File),
    Memory(Vec<u8>),
}

/// How much is read at once: the names of functions lie close together, those that matter do not.
const PIECE: u64 = 16 << 10;

/// Larger files are none that hold code or debug information; the table of their pieces would be large.
const LARGEST: u64 = 64 << 30;

/// The alignment of tables in object files, which are only read where they are aligned in memory.
const ALIGNMENT: u64 = 8;

impl Contents {
    pub(crate) fn of_file(file: File) -> io::Result<Self> {
        let size = file.metadata()?.len();
        if size > LARGEST {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let pieces = size.div_ceil(PIECE) as usize;
        let pieces = (0..pieces).map(|_| OnceCell::new()).collect();
        Ok(Self { source: Source::File(file), size, pieces, spans: Arena::new() })
    }

    pub(crate) fn of_memory(bytes: Vec<u8>) -> Self {
        let size = bytes.len() as u64;
        Self { source: Source::Memory(bytes), size, pieces: Vec::new(), spans: Arena::new() }
    }

    /// A part of the file, which stays unread.
    pub(crate) fn section(&self, offset: u64, size: u64) -> Option<Section<'_>> {
        let end = offset.checked_add(size).filter(|end| *end <= self.size)?;
        Some(match &self.source {
            Source::File(file) => Section::in_file(file, offset, size),
            Source::Memory(bytes) => Section::in_memory(&bytes[offset as usize..end as usize]),
        })
    }

    /// The system's facts about the file; nothing for bytes in memory.
    pub(crate) fn metadata(&self) -> Option<Metadata> {
        match &self.source {
            Source::File(file) => file.metadata().ok(),
            Source::Memory(_) => None,
        }
    }

    /// The bytes from an offset up to the end of its piece; all that are left of those in memory.
    fn from(&self, offset: u64) -> Option<&[u8]> {
        let file = match &self.source {
            Source::Memory(bytes) => return bytes.get(usize::try_from(offset).ok()?..),
            Source::File(file) => file,
        };
        let cell = self.pieces.get(usize::try_from(offset / PIECE).ok()?)?;
        if cell.get().is_none() {
            let start = offset - offset % PIECE;
            let piece = read(file, start, PIECE.min(self.size - start)).ok()?;
            let _ = cell.set(piece.into());
        }
        cell.get()?.get((offset % PIECE) as usize..)
    }

    /// Bytes that are kept apart, where they begin at an aligned address.
    fn span(&self, offset: u64, size: u64) -> Option<&[u8]> {
        let bytes = match &self.source {
            Source::File(file) => read(file, offset, size).ok()?,
            Source::Memory(_) => self.from(offset)?.get(..usize::try_from(size).ok()?)?.to_vec(),
        };
        Some(self.spans.alloc(bytes))
    }

    fn at(&self, offset: u64, size: u64) -> Option<&[u8]> {
        if size == 0 {
            return Some(&[]);
        }
        if offset.checked_add(size)? > self.size {
            return None;
        }
        let here = self.from(offset).filter(|_| offset.is_multiple_of(ALIGNMENT));
        here.and_then(|bytes| bytes.get(..usize::try_from(size).ok()?)).or_else(|| self.span(offset, size))
    }

    fn until(&self, range: Range<u64>, delimiter: u8) -> Option<&[u8]> {
        let left = range.end.min(self.size).checked_sub(range.start)?;
        let find = |bytes: &[u8]| bytes.iter().position(|&byte| byte == delimiter);
        let mut here = self.from(range.start)?;
        let mut length = here.len() as u64;
        loop {
            here = &here[..here.len().min(usize::try_from(left).ok()?)];
            if let Some(end) = find(here) {
                return Some(&here[..end]);
            }
            if length >= left {
                return None;
            }
            length = left.min(length + PIECE * 4);
            here = self.span(range.start, length)?;
        }
    }
}

impl<'a> ReadRef<'a> for &'a Contents {
    fn len(self) -> Result<u64, ()> {
        Ok(self.size)
    }

    fn read_bytes_at(self, offset: u64, size: u64) -> Result<&'a [u8], ()> {
        self.at(offset, size).ok_or(())
    }

    fn read_bytes_at_until(self, range: Range<u64>, delimiter: u8) -> Result<&'a [u8], ()> {
        self.until(range, delimiter).ok_or(())
    }
}

/// Reads `size` bytes of a file, all of which must be there.
fn read(file: &File, offset: u64, size: u64) -> io::Result<Vec<u8>> {
    let size = usize::try_from(size).map_err(|_| io::ErrorKind::OutOfMemory)?;
    let mut bytes = vec![0; size];
    file.read_exact_at(&mut bytes, offset)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_those_of_the_file_wherever_pieces_end() {
        let path = std::env::temp_dir().join(format!("treering-contents-{}", std::process::id()));
        let bytes: Vec<u8> = (0..PIECE as u32 * 3 + 100).map(|at| (at % 251) as u8 + 1).collect();
        std::fs::write(&path, &bytes).unwrap();
        let file = Contents::of_file(File::open(&path).unwrap());
        std::fs::remove_file(&path).unwrap();
        for contents in [file.unwrap(), Contents::of_memory(bytes.clone())] {
            for offset in [0, 1, 8, PIECE - 8, PIECE - 1, PIECE, 3 * PIECE + 92] {
                for size in [0, 1, 8, 300, PIECE, 2 * PIECE] {
                    let expected = bytes.get(offset as usize..(offset + size) as usize);
                    assert_eq!(contents.read_bytes_at(offset, size).ok(), expected, "{offset} {size}");
                }
            }
            assert!(contents.read_bytes_at(u64::MAX, 2).is_err());
            let until = |start: u64, end: u64, byte: u8| contents.read_bytes_at_until(start..end, byte);
            for start in [0, 5, PIECE - 100, PIECE - 1] {
                let from = &bytes[start as usize..];
                let length = from.iter().position(|&byte| byte == 200).unwrap();
                assert_eq!(until(start, u64::MAX, 200), Ok(&from[..length]));
                assert!(until(start, start + length as u64, 200).is_err());
            }
            assert!(until(PIECE - 10, u64::MAX, 0).is_err());
            assert!(until(PIECE * 9, u64::MAX, 1).is_err());
        }
    }
}
