//! The chunks of a journal: mapped files that are filled with records one after the other.

use std::io;
use std::path::{Path, PathBuf};

use crate::areas::counter_file::{Spare, file_of};
use crate::counting::slow_path::ChunkPlace;
use crate::sys::shared_memory::SharedMemory;

use super::record::HEADER;

/// The size of the first file, which is enough for a short process, so that it can be reused. Each further
/// file is twice as large as the one before, up to the largest size, or as large as its first record.
const SMALLEST: u64 = 256 << 10;
const LARGEST: u64 = 8 << 20;

/// Files that are filled one after the other.
#[derive(Debug)]
pub(crate) struct Chunks {
    files: PathBuf,
    list: Vec<SharedMemory>,
    used: u64,
    size: u64,
}

impl Chunks {
    /// Makes the first file, or reuses one.
    pub(crate) fn new(files: &Path, spare: Option<Spare>) -> io::Result<Self> {
        let mut chunks = Self { files: files.to_owned(), list: Vec::new(), used: 0, size: SMALLEST / 2 };
        match spare {
            Some(Spare { path, memory }) if std::fs::rename(&path, file_of(files, "journal", 0)).is_ok() => {
                chunks.list.push(memory);
                chunks.size = SMALLEST;
            }
            _ => chunks.grow(0)?,
        }
        Ok(chunks)
    }

    /// The first file and the number of its used bytes, if there is no other file.
    pub(crate) fn into_only(mut self) -> Option<(SharedMemory, u64)> {
        let only = if self.size == SMALLEST { self.list.pop() } else { None };
        only.filter(|_| self.list.is_empty()).map(|memory| (memory, self.used))
    }

    /// Makes another file with room for a record.
    fn grow(&mut self, record: u64) -> io::Result<()> {
        let size = (self.size * 2).max(record.next_power_of_two()).min(LARGEST);
        let memory = SharedMemory::in_file(&file_of(&self.files, "journal", self.list.len()), size)?;
        memory.reserve(0, size)?;
        self.list.push(memory);
        (self.size, self.used) = (size, 0);
        Ok(())
    }

    /// Adds a record. Its first eight bytes are written last, so that a concurrent reader sees all of it or nothing.
    ///
    /// # Errors
    /// The disk is full.
    pub(crate) fn add(&mut self, record: &[u8]) -> io::Result<ChunkPlace> {
        let length = record.len() as u64;
        debug_assert!(length.is_multiple_of(8) && length <= LARGEST, "records are whole words, and short");
        if self.used + length > self.size {
            self.grow(length)?;
        }
        let at = self.used;
        let Some(memory) = self.list.last() else { return Err(io::ErrorKind::NotFound.into()) };
        let (header, content) = record.split_at(HEADER);
        memory.write(at + HEADER as u64, content);
        let mut word = [0; HEADER];
        word.copy_from_slice(header);
        memory.store(at, u64::from_le_bytes(word));
        self.used += length;
        Ok(ChunkPlace { chunk: self.list.len() as u32 - 1, offset: at as u32 + HEADER as u32 })
    }

    /// Whether the disk has room for `bytes` more bytes, and `spare` ones beside them.
    pub(crate) fn have_room(&self, bytes: u64, spare: u64) -> bool {
        let room = self.list.last().and_then(|memory| memory.room().ok());
        room.is_some_and(|room| room >= bytes + spare)
    }

    /// Empties the files. The first one stays, as readers find the files by their numbers.
    pub(crate) fn remove(&self) {
        for (number, memory) in self.list.iter().enumerate().rev() {
            memory.store(0, 0);
            if number > 0 {
                let _ = std::fs::remove_file(file_of(&self.files, "journal", number));
            }
        }
    }

    /// Sets the first eight bytes of a record's content.
    pub(crate) fn set_first(&self, place: ChunkPlace, value: u64) {
        self.list[place.chunk as usize].store(u64::from(place.offset), value);
    }
}
