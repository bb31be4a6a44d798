//! Every instruction that was translated, each once.

use std::collections::BTreeSet;

use treering_profile::{CodeAddress, TranslatedBlock};
use treering_x86::disassembly::{Flow, Outline, Outlines};

use super::ReadCode;
use crate::near::{AddressMap, NEAREST};

/// The instructions of all translated blocks, sorted by address.
pub(super) struct Instructions {
    places: Vec<CodeAddress>,
    lengths: Vec<u8>,
    /// Those that may lead elsewhere than to the instruction behind, and where to.
    branches: Vec<(u32, Flow)>,
    /// Whether the next one lies directly behind, as most do.
    is_followed: Vec<bool>,
    /// By space, where in each 64 bytes instructions begin.
    begins: Vec<AddressMap<Begins>>,
}

/// Where in 64 bytes instructions begin.
struct Begins {
    /// A bit for each byte.
    bits: u64,
    /// The first of the instructions.
    first: u32,
}

/// What became of translated blocks.
pub(super) struct Blocks {
    /// By row of [`CodeCounts::translated`](treering_profile::CodeCounts::translated), its first
    /// instruction, if its code could be read.
    pub(super) starts: Vec<Option<u32>>,
    /// The first instruction of each block, and how many it has; each once, of those that could be read.
    pub(super) runs: Vec<(u32, u32)>,
    /// Those that could not be read, or hold others than were counted.
    pub(super) unreadable: BTreeSet<Block>,
}

/// Start, bytes and instructions of a block.
pub(super) type Block = (CodeAddress, u32, u32);

impl Instructions {
    /// Reads the instructions of blocks.
    pub(super) fn read(blocks: &[TranslatedBlock], read: &mut ReadCode<'_>) -> (Self, Blocks) {
        let rows = blocks.iter().zip(0_u32..);
        let rows = rows.map(|(block, row)| ((block.start, block.length, block.instructions), row));
        let mut rows: Vec<(Block, u32)> = rows.collect();
        // Those of each thread and module are in order already: stable sorting sees that.
        rows.sort();
        let mut found = Self::empty(rows.len());
        let mut unreadable = BTreeSet::new();
        let mut latest = Vec::new();
        let mut blocks = rows.chunk_by(|(one, _), (other, _)| one == other).map(|same| same[0].0).peekable();
        while let Some(first) = blocks.next() {
            // Blocks lie close together: code is read for more than one.
            let code = if is_end_of(&latest, first) { None } else { read_code(first, read) };
            let code = code.unwrap_or_default();
            let mut outlines = Outlines::new(&code, first.0.address.0);
            let mut next = Some(first);
            while let Some(block) = next {
                if !is_end_of(&latest, block) {
                    latest.clear();
                    outlines.go_to((block.0.address.0 - first.0.address.0) as usize);
                    if decode(block, &mut outlines, &mut latest).is_none() {
                        latest.clear();
                        unreadable.insert(block);
                    }
                    found.merge(&latest);
                }
                next = blocks.next_if(|block| is_within(*block, first.0, &code));
            }
        }
        found.note_begins();
        let (starts, runs) = found.starts(&rows);
        (found, Blocks { starts, runs, unreadable })
    }

    fn empty(blocks: usize) -> Self {
        Self {
            places: Vec::with_capacity(blocks * 4),
            lengths: Vec::with_capacity(blocks * 4),
            branches: Vec::with_capacity(blocks),
            is_followed: Vec::new(),
            begins: Vec::new(),
        }
    }

    /// Adds the instructions of a block to those of blocks that begin before it, each once. Few of them
    /// overlap.
    fn merge(&mut self, block: &[Decoded]) {
        let Some(start) = block.first().map(|first| first.place) else { return };
        if self.places.last().is_none_or(|last| *last < start) {
            return block.iter().for_each(|instruction| self.push(instruction));
        }
        let mut both = self.split_off(self.places.partition_point(|place| *place < start));
        both.extend_from_slice(block);
        both.sort_by_key(|instruction| instruction.place);
        both.dedup_by_key(|instruction| instruction.place);
        both.iter().for_each(|instruction| self.push(instruction));
    }

    fn push(&mut self, instruction: &Decoded) {
        if instruction.flow != Flow::Next {
            self.branches.push((self.places.len() as u32, instruction.flow));
        }
        self.places.push(instruction.place);
        self.lengths.push(instruction.length);
    }

    fn split_off(&mut self, from: usize) -> Vec<Decoded> {
        let branches = self.branches.partition_point(|(at, _)| (*at as usize) < from);
        let places = self.places.split_off(from).into_iter().zip(self.lengths.split_off(from));
        let mut instructions: Vec<_> =
            places.map(|(place, length)| Decoded { place, length, flow: Flow::Next }).collect();
        for (at, flow) in self.branches.split_off(branches) {
            instructions[at as usize - from].flow = flow;
        }
        instructions
    }

    fn note_begins(&mut self) {
        let mut first = 0;
        for space in self.places.chunk_by(|one, other| one.space == other.space) {
            let mut begins = AddressMap::default();
            begins.reserve(space.len() / 8);
            for same in space.chunk_by(|one, other| sixty_four(*one) == sixty_four(*other)) {
                let bits = same.iter().fold(0, |bits, place| bits | 1 << (place.address.0 % 64));
                begins.insert(sixty_four(same[0]), Begins { bits, first });
                first += same.len() as u32;
            }
            let number = space[0].space.index();
            self.begins.resize_with(self.begins.len().max(number + 1), AddressMap::default);
            self.begins[number] = begins;
        }
        let pairs = self.places.windows(2).zip(&self.lengths);
        self.is_followed = pairs.map(|(pair, &length)| pair[0].offset(length.into()) == pair[1]).collect();
    }

    /// By row, the instruction that its block begins with; and the same by block.
    fn starts(&self, rows: &[(Block, u32)]) -> (Vec<Option<u32>>, Vec<(u32, u32)>) {
        let (mut starts, mut runs) = (vec![None; rows.len()], Vec::new());
        let mut at = 0;
        for same in rows.chunk_by(|(one, _), (other, _)| one == other) {
            let (start, _, instructions) = same[0].0;
            while self.places.get(at).is_some_and(|place| *place < start) {
                at += 1;
            }
            let found = self.places.get(at).filter(|place| **place == start).map(|_| at as u32);
            same.iter().for_each(|&(_, row)| starts[row as usize] = found);
            runs.extend(found.map(|start| (start, instructions)));
        }
        (starts, runs)
    }

    /// Those that do not have the next one directly behind them.
    pub(super) fn unfollowed(&self) -> impl Iterator<Item = usize> + '_ {
        let last = self.len().checked_sub(1);
        self.is_followed.iter().enumerate().filter(|(_, followed)| !**followed).map(|(at, _)| at).chain(last)
    }

    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    pub(super) fn place(&self, at: usize) -> CodeAddress {
        self.places[at]
    }

    /// How many bytes each has.
    pub(super) fn lengths(&self) -> &[u8] {
        &self.lengths
    }

    /// Those that may lead elsewhere than to the instruction behind, in order.
    pub(super) fn branches(&self) -> &[(u32, Flow)] {
        &self.branches
    }

    pub(super) fn find(&self, place: CodeAddress) -> Option<usize> {
        let begins = self.begins.get(place.space.index())?.get(&sixty_four(place))?;
        let bit = 1 << (place.address.0 % 64);
        let before = (begins.bits & (bit - 1)).count_ones();
        (begins.bits & bit != 0).then_some((begins.first + before) as usize)
    }

    /// The instruction behind, if it was translated.
    pub(super) fn behind(&self, at: usize) -> Option<usize> {
        if self.is_followed.get(at) == Some(&true) {
            return Some(at + 1);
        }
        let behind = self.places[at].offset(self.lengths[at].into());
        // At most as many begin in between as there are bytes.
        let between = self.places[at + 1..].iter().take_while(|place| **place < behind).count();
        let next = at + 1 + between;
        self.places.get(next).filter(|place| **place == behind).map(|_| next)
    }
}

/// The 64 bytes that an address lies in, as a key of tables in which those that lie behind each other stand together.
fn sixty_four(place: CodeAddress) -> u64 {
    (place.address.0 / 64) << NEAREST
}

/// An instruction and what it is.
#[derive(Clone, Copy)]
struct Decoded {
    place: CodeAddress,
    length: u8,
    flow: Flow,
}

/// Whether the last of some instructions that follow each other are those of a block.
fn is_end_of(decoded: &[Decoded], (start, length, instructions): Block) -> bool {
    let Ok(first) = decoded.binary_search_by_key(&start, |instruction| instruction.place) else {
        return false;
    };
    let last = decoded.last().map(|last| last.place.offset(last.length.into()));
    decoded.len() - first == instructions as usize && last == Some(start.offset(length.into()))
}

/// Adds the instructions of one block, if they are as many and as long as was counted.
fn decode(
    (start, length, instructions): Block,
    outlines: &mut Outlines<'_>,
    decoded: &mut Vec<Decoded>,
) -> Option<()> {
    let mut skipped = 0;
    while skipped < length {
        let Outline { length, flow } = outlines.next()?;
        decoded.push(Decoded { place: start.offset(skipped.into()), length, flow });
        skipped += u32::from(length);
    }
    (skipped == length && decoded.len() == instructions as usize).then_some(())
}

/// How many bytes are asked for at once.
const AT_ONCE: usize = 4096;

/// The code of a block, and more of what lies behind.
fn read_code((start, length, _): Block, read: &mut ReadCode<'_>) -> Option<Vec<u8>> {
    let length = length as usize;
    let mut bytes = read(start, length.max(AT_ONCE))?;
    // Kept bytes may come in pieces.
    while bytes.len() < length {
        let more = read(start.offset(bytes.len() as u64), length - bytes.len())?;
        if more.is_empty() {
            return None;
        }
        bytes.extend(more);
    }
    Some(bytes)
}

/// Whether all of a block is in some code that begins before it.
fn is_within((at, length, _): Block, start: CodeAddress, code: &[u8]) -> bool {
    let skipped = at.address.0.wrapping_sub(start.address.0);
    let left = (code.len() as u64).checked_sub(skipped).filter(|_| at.space == start.space);
    left.is_some_and(|left| left >= length.into())
}
