//! Every instruction that was translated, each once.

use std::collections::BTreeSet;
use std::ops::Range;

use hashbrown::HashMap;
use treering_profile::{CodeAddress, CodeSpaceId, StatedAddress, TranslatedBlock};
use treering_x86::disassembly::{Flow, Outline, Outlines};

use super::ReadCode;
use super::bits::Bits;
use super::decoded::KnownInstructions;

/// The instructions of all translated blocks, sorted by address.
pub(super) struct Instructions {
    addresses: Vec<StatedAddress>,
    /// The first of each space, in order.
    spaces: Vec<(u32, CodeSpaceId)>,
    lengths: Vec<u8>,
    /// The instructions that may lead elsewhere than to the one behind, and where to.
    branches: Vec<(u32, Flow)>,
    /// The instructions that have the next one directly behind them, as most do.
    followed: Bits,
    places: Places,
}

/// Where instructions are found by address: a page is divided, and of each of its parts the first instruction is known
/// that is not before it.
#[derive(Default)]
struct Places {
    /// By space, the number of each page's first part.
    pages: Vec<HashMap<u64, u32>>,
    /// By part; the one behind a page's last tells where the page ends.
    parts: Vec<u32>,
}

/// The bytes of a page, and of its parts, as bits.
const PAGE: u32 = 12;
const PART: u32 = 8;
const PARTS: u64 = 1 << (PAGE - PART);

/// The translated blocks as instructions.
pub(super) struct Blocks {
    /// By row of translated blocks, the number of its block.
    pub(super) numbers: Vec<u32>,
    /// By number, the first instruction of a block, if its code could be read.
    pub(super) starts: Vec<Option<u32>>,
    /// The first instruction of each block, and how many it has; each once, of those that could be read.
    pub(super) runs: Vec<(u32, u32)>,
    /// The blocks that could not be read, or hold other instructions than were counted.
    pub(super) unreadable: BTreeSet<Block>,
}

/// Start, bytes and instructions of a block.
pub(super) type Block = (CodeAddress, u32, u32);

impl Instructions {
    /// The instructions of blocks: known ones, and the others decoded from their code.
    pub(super) fn of(
        blocks: &[TranslatedBlock],
        known: KnownInstructions,
        read: &mut ReadCode<'_>,
    ) -> (Self, Blocks) {
        let Distinct { all, sorted, numbers } = Distinct::of(blocks);
        let mut found = Self::empty(all.len());
        let mut unreadable = BTreeSet::new();
        let mut code = Code::new(read);
        let mut latest = 0..0;
        for &block in sorted.iter().map(|&number| &all[number as usize]) {
            if found.is_end_of(&latest, block) {
                continue;
            }
            latest = match known.of(block) {
                Some((lengths, last)) => found.add(block.0, lengths, last),
                None => match code.decode(block) {
                    Some(decoded) => found.merge(decoded),
                    None => {
                        unreadable.insert(block);
                        0..0
                    }
                },
            };
        }
        found.note_places();
        let (starts, runs) = found.starts(&all, &sorted);
        (found, Blocks { numbers, starts, runs, unreadable })
    }

    fn empty(blocks: usize) -> Self {
        Self {
            addresses: Vec::with_capacity(blocks * 5),
            spaces: Vec::new(),
            lengths: Vec::with_capacity(blocks * 5),
            branches: Vec::with_capacity(blocks),
            followed: Bits::new(0),
            places: Places::default(),
        }
    }

    /// Whether the last of some instructions that follow each other are those of a block.
    fn is_end_of(&self, latest: &Range<usize>, (start, length, instructions): Block) -> bool {
        let addresses = &self.addresses[latest.clone()];
        let (Some((_, space)), Ok(first)) = (self.spaces.last(), addresses.binary_search(&start.address))
        else {
            return false;
        };
        let end = self.addresses[latest.end - 1].0.wrapping_add(self.lengths[latest.end - 1].into());
        *space == start.space
            && addresses.len() - first == instructions as usize
            && end == start.address.0.wrapping_add(length.into())
    }

    /// Begins the space of an address, if it is not the latest. Whether the address is behind all that are there
    /// already, as most are.
    fn begin(&mut self, start: CodeAddress) -> bool {
        if self.spaces.last().is_none_or(|(_, space)| *space != start.space) {
            self.spaces.push((self.len() as u32, start.space));
            return true;
        }
        self.addresses.last().is_none_or(|last| *last < start.address)
    }

    /// Adds the instructions of a block, of which only the last may lead elsewhere. Returns where they are, if they
    /// follow each other.
    fn add(&mut self, start: CodeAddress, lengths: &[u8], last: Flow) -> Range<usize> {
        if lengths.is_empty() || !self.begin(start) {
            let mut place = start;
            let mut decoded: Vec<_> = lengths
                .iter()
                .map(|&length| {
                    let decoded = Decoded { place, length, flow: Flow::Next };
                    place = place.offset(length.into());
                    decoded
                })
                .collect();
            decoded.iter_mut().last().into_iter().for_each(|decoded| decoded.flow = last);
            return self.merge(&decoded);
        }
        let from = self.len();
        let mut address = start.address;
        self.addresses.extend(lengths.iter().map(|&length| {
            let here = address;
            address.0 = address.0.wrapping_add(length.into());
            here
        }));
        self.lengths.extend_from_slice(lengths);
        if last != Flow::Next {
            self.branches.push((self.len() as u32 - 1, last));
        }
        from..self.len()
    }

    /// Adds instructions to those of blocks that begin before them, each once. Few of them overlap. Returns where they
    /// are, if they follow each other.
    fn merge(&mut self, block: &[Decoded]) -> Range<usize> {
        let Some(start) = block.first().map(|first| first.place) else { return 0..0 };
        let from = self.len();
        if self.begin(start) {
            block.iter().for_each(|instruction| self.push(instruction));
            return from..self.len();
        }
        let (first, _) = self.spaces[self.spaces.len() - 1];
        let same = &self.addresses[first as usize..];
        let before = same.partition_point(|address| *address < start.address);
        let mut both = self.split_off(first as usize + before, start.space);
        both.extend_from_slice(block);
        both.sort_by_key(|instruction| instruction.place);
        both.dedup_by_key(|instruction| instruction.place);
        both.iter().for_each(|instruction| self.push(instruction));
        0..0
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

    fn note_places(&mut self) {
        let mut followed = Bits::new(self.len());
        let Places { pages, parts } = &mut self.places;
        let ends = self.spaces.iter().skip(1).map(|(first, _)| *first as usize).chain([self.addresses.len()]);
        for (&(first, space), end) in self.spaces.iter().zip(ends) {
            pages.resize_with(pages.len().max(space.index() + 1), HashMap::new);
            let (mut page, mut noted) = (None, 0);
            for at in first as usize..end {
                let address = self.addresses[at].0;
                if page != Some(address >> PAGE) {
                    page = Some(address >> PAGE);
                    parts.resize(parts.len().next_multiple_of(PARTS as usize), at as u32);
                    pages[space.index()].insert(address >> PAGE << PAGE, parts.len() as u32);
                    noted = 0;
                }
                let part = address >> PART & (PARTS - 1);
                for _ in noted..=part {
                    parts.push(at as u32);
                }
                noted = noted.max(part + 1);
                let behind = address.wrapping_add(self.lengths[at].into());
                if at + 1 < end && self.addresses[at + 1].0 == behind {
                    followed.insert(at);
                }
            }
        }
        parts.resize(parts.len().next_multiple_of(PARTS as usize) + 1, self.addresses.len() as u32);
        self.followed = followed;
    }

    /// By row, the instruction that its block begins with; and the same by block.
    fn starts(&self, blocks: &[Block], sorted: &[u32]) -> (Vec<Option<u32>>, Vec<(u32, u32)>) {
        let (mut starts, mut runs) = (vec![None; blocks.len()], Vec::new());
        let mut spaces = self.spaces.iter().peekable();
        let (mut at, mut space, mut latest) = (0, None, 0);
        for &number in sorted {
            let (start, _, instructions) = blocks[number as usize];
            while let Some((first, next)) = spaces.next_if(|(_, next)| *next <= start.space) {
                (at, space) = (*first as usize, Some(*next));
            }
            let end = spaces.peek().map_or(self.len(), |(first, _)| *first as usize);
            // Most begin where the one before ends.
            let behind = at + latest as usize;
            match self.addresses[..end].get(behind) {
                Some(address) if space == Some(start.space) && *address == start.address => at = behind,
                _ => {
                    let left = self.addresses[at..end].iter();
                    at += left.take_while(|at| space == Some(start.space) && **at < start.address).count();
                }
            }
            latest = instructions;
            let is_there = space == Some(start.space) && at < end && self.addresses[at] == start.address;
            let found = is_there.then_some(at as u32);
            starts[number as usize] = found;
            runs.extend(found.map(|start| (start, instructions)));
        }
        (starts, runs)
    }

    /// The instructions that do not have the next one directly behind them.
    pub(super) fn unfollowed(&self) -> impl Iterator<Item = usize> + '_ {
        self.followed.missing(self.len())
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.addresses.len()
    }

    pub(super) fn place(&self, at: usize) -> CodeAddress {
        let after = self.spaces.partition_point(|(first, _)| *first as usize <= at);
        CodeAddress { space: self.spaces[after - 1].1, address: self.addresses[at] }
    }

    /// The first of each space, in order.
    pub(super) fn spaces(&self) -> &[(u32, CodeSpaceId)] {
        &self.spaces
    }

    /// Where one begins in its space.
    pub(super) fn address(&self, at: usize) -> StatedAddress {
        self.addresses[at]
    }

    /// The lengths, and [`branches`](Self::branches), which are still needed once instructions are in stretches.
    pub(super) fn into_lengths_and_branches(self) -> (Vec<u8>, Vec<(u32, Flow)>) {
        (self.lengths, self.branches)
    }

    /// The instructions that may lead elsewhere than to the one behind, in order.
    pub(super) fn branches(&self) -> &[(u32, Flow)] {
        &self.branches
    }

    pub(super) fn find(&self, place: CodeAddress) -> Option<usize> {
        let page = place.address.0 >> PAGE << PAGE;
        let first = *self.places.pages.get(place.space.index())?.get(&page)?;
        let part = first as usize + (place.address.0 >> PART & (PARTS - 1)) as usize;
        let (from, to) = (self.places.parts[part] as usize, self.places.parts[part + 1] as usize);
        Some(from + self.addresses[from..to].binary_search(&place.address).ok()?)
    }

    /// The instruction behind, if it was translated.
    pub(super) fn behind(&self, at: usize) -> Option<usize> {
        if self.followed.contains(at) {
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

/// The blocks of rows, each once: threads that do the same have rows of the same blocks.
struct Distinct {
    all: Vec<Block>,
    /// Their numbers, sorted by block.
    sorted: Vec<u32>,
    /// By row, the number of its block.
    numbers: Vec<u32>,
}

impl Distinct {
    fn of(rows: &[TranslatedBlock]) -> Self {
        let mut all: Vec<Block> = Vec::new();
        let mut known: HashMap<Block, u32> = HashMap::new();
        let numbers = rows.iter().map(|row| {
            let block = (row.start, row.length, row.instructions);
            *known.entry(block).or_insert_with(|| {
                all.push(block);
                all.len() as u32 - 1
            })
        });
        let numbers = numbers.collect();
        let mut sorted: Vec<u32> = (0..all.len() as u32).collect();
        // Those of each thread and module are in order already: stable sorting sees that.
        sorted.sort_by_key(|&number| all[number as usize]);
        Self { all, sorted, numbers }
    }
}

/// An instruction and its kind.
#[derive(Clone, Copy)]
struct Decoded {
    place: CodeAddress,
    length: u8,
    flow: Flow,
}

/// Code that is read for more than one block, as they lie close together.
struct Code<'a, 'r> {
    read: &'a mut ReadCode<'r>,
    start: Option<CodeAddress>,
    bytes: Vec<u8>,
    /// The instructions of the latest block.
    decoded: Vec<Decoded>,
}

/// How many bytes are asked for at once.
const AT_ONCE: usize = 4096;

impl<'a, 'r> Code<'a, 'r> {
    fn new(read: &'a mut ReadCode<'r>) -> Self {
        Self { read, start: None, bytes: Vec::new(), decoded: Vec::new() }
    }

    /// The instructions of a block, if they are as many and as long as was counted.
    fn decode(&mut self, block: Block) -> Option<&[Decoded]> {
        let (start, length, instructions) = block;
        self.decoded.clear();
        if length == 0 {
            // Bytes that are no instruction.
            return (instructions == 0).then_some(&self.decoded);
        }
        let skipped = match self.skipped(block) {
            Some(skipped) => skipped,
            None => {
                self.start = None;
                self.read(block)?;
                self.start = Some(start);
                0
            }
        };
        let mut outlines = Outlines::new(&self.bytes[skipped..], start.address.0);
        let mut done = 0;
        while done < length {
            let Outline { length, flow } = outlines.next()?;
            self.decoded.push(Decoded { place: start.offset(done.into()), length, flow });
            done += u32::from(length);
        }
        (done == length && self.decoded.len() == instructions as usize).then_some(&self.decoded)
    }

    /// How many of the bytes that are there are before a block, if all of it is among them.
    fn skipped(&self, (at, length, _): Block) -> Option<usize> {
        let start = self.start.filter(|start| start.space == at.space)?;
        let skipped = at.address.0.wrapping_sub(start.address.0);
        let left = (self.bytes.len() as u64).checked_sub(skipped)?;
        (left >= length.into()).then_some(skipped as usize)
    }

    /// Reads the code of a block, and more of the code behind it.
    fn read(&mut self, (start, length, _): Block) -> Option<()> {
        let length = length as usize;
        self.bytes = (self.read)(start, length.max(AT_ONCE))?;
        // Kept bytes may come in pieces.
        while self.bytes.len() < length {
            let more = (self.read)(start.offset(self.bytes.len() as u64), length - self.bytes.len())?;
            if more.is_empty() {
                return None;
            }
            self.bytes.extend(more);
        }
        Some(())
    }
}
