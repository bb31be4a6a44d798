//! Every instruction that was translated, each once.

use std::collections::BTreeSet;

use treering_profile::{CodeAddress, CodeSpaceId, StatedAddress, TranslatedBlock};
use treering_x86::disassembly::{Flow, Outline, Outlines};

use super::ReadCode;
use crate::near::{AddressMap, NEAREST};

/// The instructions of all translated blocks, sorted by address.
pub(super) struct Instructions {
    addresses: Vec<StatedAddress>,
    /// The first of each space, in order.
    spaces: Vec<(u32, CodeSpaceId)>,
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
        let block_of = |row: u32| {
            let block = &blocks[row as usize];
            (block.start, block.length, block.instructions)
        };
        let mut rows: Vec<u32> = (0..blocks.len() as u32).collect();
        // Those of each thread and module are in order already: stable sorting sees that.
        rows.sort_by_key(|&row| block_of(row));
        let rows = Rows { rows: &rows, block_of: &block_of };
        let mut found = Self::empty(blocks.len());
        let mut unreadable = BTreeSet::new();
        let mut latest = Vec::new();
        let mut blocks = rows.same().map(|(block, _)| block).peekable();
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
            addresses: Vec::with_capacity(blocks * 4),
            spaces: Vec::new(),
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
        if self.spaces.last().is_none_or(|(_, space)| *space != start.space) {
            self.spaces.push((self.len() as u32, start.space));
        }
        let (first, _) = self.spaces[self.spaces.len() - 1];
        let same = &self.addresses[first as usize..];
        if same.last().is_none_or(|last| *last < start.address) {
            return block.iter().for_each(|instruction| self.push(instruction));
        }
        let before = same.partition_point(|address| *address < start.address);
        let mut both = self.split_off(first as usize + before, start.space);
        both.extend_from_slice(block);
        both.sort_by_key(|instruction| instruction.place);
        both.dedup_by_key(|instruction| instruction.place);
        both.iter().for_each(|instruction| self.push(instruction));
    }

    fn push(&mut self, instruction: &Decoded) {
        if instruction.flow != Flow::Next {
            self.branches.push((self.len() as u32, instruction.flow));
        }
        self.addresses.push(instruction.place.address);
        self.lengths.push(instruction.length);
    }

    /// Takes the last ones off, which are all of a space.
    fn split_off(&mut self, from: usize, space: CodeSpaceId) -> Vec<Decoded> {
        let branches = self.branches.partition_point(|(at, _)| (*at as usize) < from);
        let addresses = self.addresses.split_off(from).into_iter().zip(self.lengths.split_off(from));
        let decoded =
            |(address, length)| Decoded { place: CodeAddress { space, address }, length, flow: Flow::Next };
        let mut instructions: Vec<_> = addresses.map(decoded).collect();
        for (at, flow) in self.branches.split_off(branches) {
            instructions[at as usize - from].flow = flow;
        }
        instructions
    }

    fn note_begins(&mut self) {
        let ends = self.spaces.iter().skip(1).map(|(first, _)| *first).chain([self.len() as u32]);
        let mut is_followed = Vec::with_capacity(self.len());
        for (&(mut first, space), end) in self.spaces.iter().zip(ends) {
            let all = &self.addresses[first as usize..end as usize];
            let pairs = all.windows(2).zip(&self.lengths[first as usize..]);
            is_followed
                .extend(pairs.map(|(pair, &length)| pair[0].0.wrapping_add(length.into()) == pair[1].0));
            is_followed.push(false);
            let mut begins = AddressMap::default();
            begins.reserve(all.len() / 8);
            for same in all.chunk_by(|one, other| sixty_four(*one) == sixty_four(*other)) {
                let bits = same.iter().fold(0, |bits, address| bits | 1 << (address.0 % 64));
                begins.insert(sixty_four(same[0]), Begins { bits, first });
                first += same.len() as u32;
            }
            self.begins.resize_with(self.begins.len().max(space.index() + 1), AddressMap::default);
            self.begins[space.index()] = begins;
        }
        // None is behind the last one.
        is_followed.pop();
        self.is_followed = is_followed;
    }

    /// By row, the instruction that its block begins with; and the same by block.
    fn starts(&self, rows: &Rows<'_>) -> (Vec<Option<u32>>, Vec<(u32, u32)>) {
        let (mut starts, mut runs) = (vec![None; rows.rows.len()], Vec::new());
        let mut spaces = self.spaces.iter().peekable();
        let (mut at, mut space) = (0, None);
        for ((start, _, instructions), same) in rows.same() {
            while let Some((first, next)) = spaces.next_if(|(_, next)| *next <= start.space) {
                (at, space) = (*first as usize, Some(*next));
            }
            let end = spaces.peek().map_or(self.len(), |(first, _)| *first as usize);
            let left = self.addresses[at..end].iter();
            at += left.take_while(|address| space == Some(start.space) && **address < start.address).count();
            let is_there = space == Some(start.space) && at < end && self.addresses[at] == start.address;
            let found = is_there.then_some(at as u32);
            same.iter().for_each(|&row| starts[row as usize] = found);
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
        self.addresses.len()
    }

    pub(super) fn place(&self, at: usize) -> CodeAddress {
        let after = self.spaces.partition_point(|(first, _)| *first as usize <= at);
        CodeAddress { space: self.spaces[after - 1].1, address: self.addresses[at] }
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
        let begins = self.begins.get(place.space.index())?.get(&sixty_four(place.address))?;
        let bit = 1 << (place.address.0 % 64);
        let before = (begins.bits & (bit - 1)).count_ones();
        (begins.bits & bit != 0).then_some((begins.first + before) as usize)
    }

    /// The instruction behind, if it was translated.
    pub(super) fn behind(&self, at: usize) -> Option<usize> {
        if self.is_followed.get(at) == Some(&true) {
            return Some(at + 1);
        }
        let behind = self.addresses[at].0.wrapping_add(self.lengths[at].into());
        let after = self.spaces.partition_point(|(first, _)| *first as usize <= at);
        let end = self.spaces.get(after).map_or(self.len(), |(first, _)| *first as usize);
        // At most as many begin in between as there are bytes.
        let between = self.addresses[at + 1..end].iter().take_while(|address| address.0 < behind).count();
        let next = at + 1 + between;
        (next < end && self.addresses[next].0 == behind).then_some(next)
    }
}

/// The 64 bytes that an address lies in, as a key of tables in which those that lie behind each other stand together.
fn sixty_four(address: StatedAddress) -> u64 {
    (address.0 / 64) << NEAREST
}

/// Rows of blocks, sorted by their blocks.
struct Rows<'a> {
    rows: &'a [u32],
    block_of: &'a dyn Fn(u32) -> Block,
}

impl Rows<'_> {
    /// Each block with the rows of it.
    fn same(&self) -> impl Iterator<Item = (Block, &[u32])> {
        let same = self.rows.chunk_by(|&one, &other| (self.block_of)(one) == (self.block_of)(other));
        same.map(|same| ((self.block_of)(same[0]), same))
    }
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
