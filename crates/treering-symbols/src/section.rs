//! Sections of which only parts are wanted.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::OnceLock;

use crate::kept_sections::KeptSections;

/// The bytes of a section. They are read by parts, or all at once when that is asked for.
#[derive(Debug, Default)]
pub(crate) struct Section<'a> {
    source: Source<'a>,
    whole: OnceLock<Vec<u8>>,
}

#[derive(Debug)]
enum Source<'a> {
    Memory(&'a [u8]),
    File { file: &'a File, start: u64, length: u64 },
    Kept { kept: &'a KeptSections, start: u64, length: u64 },
}

impl Default for Source<'_> {
    fn default() -> Self {
        Self::Memory(&[])
    }
}

impl<'a> Section<'a> {
    pub(crate) fn in_memory(bytes: &'a [u8]) -> Self {
        Self::of(Source::Memory(bytes))
    }

    pub(crate) fn in_file(file: &'a File, start: u64, length: u64) -> Self {
        Self::of(Source::File { file, start, length })
    }

    pub(crate) fn kept(kept: &'a KeptSections, start: u64, length: u64) -> Self {
        Self::of(Source::Kept { kept, start, length })
    }

    fn of(source: Source<'a>) -> Self {
        Self { source, whole: OnceLock::new() }
    }

    pub(crate) fn len(&self) -> u64 {
        match self.source {
            Source::Memory(bytes) => bytes.len() as u64,
            Source::File { length, .. } | Source::Kept { length, .. } => length,
        }
    }

    /// Whether reading it costs nothing.
    pub(crate) fn is_in_memory(&self) -> bool {
        matches!(self.source, Source::Memory(_)) || self.whole.get().is_some()
    }

    /// The length that the header of a unit or a line table states, with that of the field itself (DWARF 5, section
    /// 7.4).
    pub(crate) fn unit_length(&self, at: u64) -> Option<u64> {
        let mut short = [0; 4];
        self.read(at, &mut short).ok()?;
        match u32::from_le_bytes(short) {
            u32::MAX => {
                let mut long = [0; 8];
                self.read(at.checked_add(4)?, &mut long).ok()?;
                u64::from_le_bytes(long).checked_add(12)
            }
            0xffff_fff0.. => None,
            short => Some(u64::from(short) + 4),
        }
    }

    /// Fills `bytes` with those from a position on, all of which must be there.
    pub(crate) fn read(&self, at: u64, bytes: &mut [u8]) -> io::Result<()> {
        if at.checked_add(bytes.len() as u64).is_none_or(|end| end > self.len()) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        match self.source {
            Source::Memory(all) => {
                bytes.copy_from_slice(&all[at as usize..][..bytes.len()]);
                Ok(())
            }
            Source::File { file, start, .. } => file.read_exact_at(bytes, start + at),
            Source::Kept { kept, start, .. } => kept.read(start + at, bytes),
        }
    }

    /// All bytes.
    pub(crate) fn whole(&self) -> io::Result<&[u8]> {
        if let Source::Memory(bytes) = self.source {
            return Ok(bytes);
        }
        if let Some(whole) = self.whole.get() {
            return Ok(whole);
        }
        let mut bytes = vec![0; usize::try_from(self.len()).map_err(|_| io::ErrorKind::OutOfMemory)?];
        self.read(0, &mut bytes)?;
        Ok(self.whole.get_or_init(|| bytes))
    }
}
