//! The records of a journal: four bytes for the kind, four for the content's length, the content, and zeros up to a
//! multiple of eight bytes. Numbers are little-endian.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::cache::block::{BlockFacts, End};
use crate::context::ContextNode;

/// Bytes before the content.
pub(crate) const HEADER: usize = 8;
/// Bytes of a block.
pub(crate) const BLOCK: usize = 32;
/// The most blocks in one record.
pub(crate) const MOST_BLOCKS: usize = 1024;
/// The most counts in one record.
pub(crate) const MOST_COUNTS: usize = 8192;
/// The most functions in one record.
pub(crate) const MOST_FUNCTIONS: usize = 8192;
/// The most nodes in one record.
pub(crate) const MOST_NODES: usize = 8192;
/// Bytes of a node.
pub(crate) const NODE: usize = 28;

/// The kind of a record. 0 marks the end of the written part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Kind {
    /// The process and the program's file.
    Program = 1,
    /// A region of code.
    Region,
    /// Blocks, in the order of their numbers.
    Blocks,
    /// An arc from a block to a target; the newest comes last.
    Arc,
    /// The code of a block that no file holds.
    Code,
    /// A thread that has begun, with its area.
    Thread,
    /// A transfer that the tracer made, and how often.
    Transfer,
    /// A partial execution, and how often it happened.
    PartialExecution,
    /// Counters of a thread that has ended.
    Counts,
    /// The end of a thread.
    Ended,
    /// A note on something that was not counted.
    Note,
    /// The entry addresses of functions, in the order of their numbers.
    Functions,
    /// Nodes of the tree of a thread that has ended, parents first.
    Nodes,
    /// The other facts about that tree; its last record.
    Tree,
}

impl Kind {
    const ALL: [Self; 14] = [
        Self::Program,
        Self::Region,
        Self::Blocks,
        Self::Arc,
        Self::Code,
        Self::Thread,
        Self::Transfer,
        Self::PartialExecution,
        Self::Counts,
        Self::Ended,
        Self::Note,
        Self::Functions,
        Self::Nodes,
        Self::Tree,
    ];

    fn from_number(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|&kind| kind as u32 == number)
    }
}

/// The content of a record that is being made.
#[derive(Debug, Default)]
pub(crate) struct Bytes(Vec<u8>);

impl Bytes {
    /// An empty content, with room for `length` bytes.
    pub(crate) fn with_room(length: usize) -> Self {
        Self(Vec::with_capacity(length))
    }

    pub(crate) fn u32(&mut self, value: u32) -> &mut Self {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    pub(crate) fn u64(&mut self, value: u64) -> &mut Self {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    /// Appends text, which must be the last part.
    pub(crate) fn text(&mut self, text: &[u8]) -> &mut Self {
        self.0.extend_from_slice(text);
        self
    }

    /// Appends a path, like [`text`](Self::text).
    pub(crate) fn path(&mut self, path: &Path) -> &mut Self {
        self.text(path.as_os_str().as_bytes())
    }

    /// The whole record.
    pub(crate) fn framed(self, kind: Kind) -> Vec<u8> {
        let mut record = Vec::with_capacity(HEADER + self.0.len() + 7);
        record.extend_from_slice(&(kind as u32).to_le_bytes());
        record.extend_from_slice(&(self.0.len() as u32).to_le_bytes());
        record.extend_from_slice(&self.0);
        record.resize(record.len().next_multiple_of(8), 0);
        record
    }
}

/// The records of a file, up to the first that was not written.
pub(crate) fn records(mut bytes: &[u8]) -> impl Iterator<Item = (Kind, Content<'_>)> {
    std::iter::from_fn(move || {
        let mut header = Content(bytes);
        let kind = Kind::from_number(header.u32()?)?;
        let length = header.u32()? as usize;
        let content = header.0.get(..length)?;
        bytes = bytes.get(HEADER + length.next_multiple_of(8)..).unwrap_or_default();
        Some((kind, Content(content)))
    })
}

/// The content of a record that is being read.
#[derive(Debug)]
pub(crate) struct Content<'a>(&'a [u8]);

impl<'a> Content<'a> {
    fn take<const LENGTH: usize>(&mut self) -> Option<[u8; LENGTH]> {
        let (first, rest) = self.0.split_first_chunk::<LENGTH>()?;
        self.0 = rest;
        Some(*first)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    /// The remaining bytes.
    pub(crate) fn rest(self) -> &'a [u8] {
        self.0
    }

    /// The remaining bytes as a path.
    pub(crate) fn path(self) -> PathBuf {
        OsStr::from_bytes(self.0).into()
    }
}

impl BlockFacts {
    /// Appends the fixed-size form of a block at once, as there are many blocks.
    pub(crate) fn write(&self, bytes: &mut Bytes) {
        let length = u64::from(self.length) | u64::from(self.instructions) << 16;
        let words = [
            self.address,
            self.target,
            u64::from(self.counter) | u64::from(self.region) << 32,
            length
                | u64::from(self.last_length) << 24
                | (self.end as u64) << 32
                | u64::from(self.derived) << 48
                | u64::from(self.propagates) << 49
                | u64::from(self.level) << 56,
        ];
        let mut content = [0; BLOCK];
        let (parts, _) = content.as_chunks_mut();
        parts.iter_mut().zip(words).for_each(|(part, word)| *part = word.to_le_bytes());
        bytes.text(&content);
    }

    pub(crate) fn read(content: &mut Content<'_>) -> Option<Self> {
        let (address, target) = (content.u64()?, content.u64()?);
        let (counter, region) = (content.u32()?, content.u32()?);
        let [length_low, length_high, instructions, last_length] = content.take()?;
        let length = u16::from_le_bytes([length_low, length_high]);
        let rest = content.u32()?;
        let end = End::from_number(rest & 0xffff)?;
        let (derived, propagates, level) = (rest >> 16 & 1 != 0, rest >> 17 & 1 != 0, (rest >> 24) as u8);
        Some(Self {
            address,
            target,
            counter,
            region,
            length,
            instructions,
            last_length,
            end,
            derived,
            propagates,
            level,
        })
    }
}

impl ContextNode {
    pub(crate) fn write(&self, bytes: &mut Bytes) {
        bytes.u32(self.parent).u64(self.address).u64(self.calls).u64(self.instructions);
    }

    pub(crate) fn read(content: &mut Content<'_>) -> Option<Self> {
        let (parent, address) = (content.u32()?, content.u64()?);
        let (calls, instructions) = (content.u64()?, content.u64()?);
        Some(Self { parent, address, region: None, calls, instructions })
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail by panicking")]
mod tests {
    use super::*;

    #[test]
    fn records_end_where_nothing_was_written() {
        let mut first = Bytes::default();
        first.u32(7).text(b"/bin/x");
        let mut second = Bytes::default();
        second.u64(1).text(b"y");
        let first = first.framed(Kind::Program);
        // Behind it there is only padding to a multiple of eight.
        let end = first.len() + HEADER + second.0.len();
        let mut file = [first, second.framed(Kind::Note)].concat();
        file.extend([0; 24]);
        let mut read = records(&file);
        let (kind, mut content) = read.next().unwrap();
        assert_eq!((kind, content.u32(), content.path()), (Kind::Program, Some(7), "/bin/x".into()));
        assert_eq!(read.next().unwrap().1.rest().len(), 9);
        assert!(read.next().is_none());
        for length in 0..file.len() {
            assert_eq!(records(&file[..length]).count() == 2, length >= end, "{length}");
        }
    }

    #[test]
    fn every_end_of_a_block_is_read_again() {
        for (end, level) in End::ALL.into_iter().zip((0..=u8::MAX).step_by(31)) {
            let (derived, propagates) = (level & 1 != 0, level & 2 != 0);
            let facts = BlockFacts {
                address: 1 << 40,
                target: 5,
                counter: 6,
                region: 7,
                length: 300,
                instructions: 9,
                last_length: 2,
                end,
                derived,
                propagates,
                level,
            };
            let mut bytes = Bytes::default();
            facts.write(&mut bytes);
            assert_eq!(BlockFacts::read(&mut Content(&bytes.0)), Some(facts));
        }
    }
}
