//! Every instruction that was translated, each once.

use std::collections::BTreeSet;

use hashbrown::HashMap;
use treering_profile::{CodeAddress, CodeSpaceId, StatedAddress, TranslatedBlock};
use treering_x86::disassembly::{Flow, outlines};

use super::{ReadCode, direct};

/// The instructions of all translated blocks, sorted by address.
pub(super) struct Instructions {
    places: Vec<CodeAddress>,
    /// The first instruction of every [`stretch`] of code that has any.
    stretches: HashMap<(CodeSpaceId, u64), u32>,
    lengths: Vec<u8>,
    flows: Vec<Flow>,
    /// The instruction behind each; `NONE` if it was not translated.
    next: Vec<u32>,
    /// The instruction that each leads to by a direct branch; `NONE` without one, or if it was not
    /// translated.
    targets: Vec<u32>,
    /// How many instructions have each behind them and may lead on to it.
    leads_here: Vec<u32>,
}

const NONE: u32 = u32::MAX;

/// The 64 bytes that an address lies in: few instructions begin there.
fn stretch(place: CodeAddress) -> (CodeSpaceId, u64) {
    (place.space, place.address.0 >> 6)
}

impl Instructions {
    /// Reads the instructions of blocks. Blocks, as (start, bytes, instructions), that cannot be read
    /// or hold others than counted are given back.
    pub(super) fn read(blocks: &[TranslatedBlock], read: &mut ReadCode<'_>) -> (Self, BTreeSet<Block>) {
        let mut different: Vec<_> =
            blocks.iter().map(|block| (block.start, block.length, block.instructions)).collect();
        different.sort_unstable();
        different.dedup();
        let mut found: Vec<Decoded> = Vec::with_capacity(different.len() * 4);
        let mut unreadable = BTreeSet::new();
        let mut latest = Vec::new();
        for block in different {
            if is_end_of(&latest, block) {
                continue;
            }
            latest.clear();
            if decode(block, read, &mut latest).is_none() {
                latest.clear();
                unreadable.insert(block);
            }
            merge(&latest, &mut found);
        }
        (Self::index(&found), unreadable)
    }

    fn index(found: &[Decoded]) -> Self {
        let places: Vec<_> = found.iter().map(|instruction| instruction.place).collect();
        let lengths: Vec<_> = found.iter().map(|instruction| instruction.length).collect();
        let flows: Vec<_> = found.iter().map(|instruction| instruction.flow).collect();
        let next: Vec<u32> = (0..places.len())
            .map(|at| {
                let behind = places[at].offset(lengths[at].into());
                // At most as many begin in between as there are bytes.
                let between = places[at + 1..].iter().take_while(|place| **place < behind).count();
                let behind = places.get(at + 1 + between).filter(|place| **place == behind);
                behind.map_or(NONE, |_| (at + 1 + between) as u32)
            })
            .collect();
        let mut stretches = HashMap::with_capacity(places.len() / 8);
        for (at, &place) in places.iter().enumerate() {
            if at == 0 || stretch(places[at - 1]) != stretch(place) {
                stretches.insert(stretch(place), at as u32);
            }
        }
        let targets = places.iter().zip(&flows).map(|(&place, &flow)| {
            let target = direct(flow).map(|(_, target)| target);
            let target = target.map(|target| CodeAddress { address: StatedAddress(target), ..place });
            target.and_then(|target| find(&places, &stretches, target)).map_or(NONE, |at| at as u32)
        });
        let targets = targets.collect();
        let mut leads_here = vec![0; places.len()];
        for (&next, &flow) in next.iter().zip(&flows) {
            if next != NONE && leads_on(flow) {
                leads_here[next as usize] += 1;
            }
        }
        Self { places, stretches, lengths, flows, next, targets, leads_here }
    }

    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    pub(super) fn place(&self, at: usize) -> CodeAddress {
        self.places[at]
    }

    pub(super) fn length(&self, at: usize) -> u8 {
        self.lengths[at]
    }

    pub(super) fn flow(&self, at: usize) -> Flow {
        self.flows[at]
    }

    pub(super) fn find(&self, place: CodeAddress) -> Option<usize> {
        find(&self.places, &self.stretches, place)
    }

    /// How many instructions may lead on to this one without a branch.
    pub(super) fn leads_here(&self, at: usize) -> u32 {
        self.leads_here[at]
    }

    /// The instruction behind, if it was translated.
    fn behind(&self, at: usize) -> Option<usize> {
        Some(self.next[at]).filter(|&next| next != NONE).map(|next| next as usize)
    }

    /// The instruction behind one that may lead on to it, branches not taken included.
    pub(super) fn next(&self, at: usize) -> Option<usize> {
        self.behind(at).filter(|_| leads_on(self.flows[at]))
    }

    /// The instruction that has this one behind it and may lead on to it; one of them, if there are two.
    pub(super) fn previous(&self, at: usize) -> Option<usize> {
        (at.saturating_sub(LONGEST)..at).rev().find(|&before| self.next(before) == Some(at))
    }

    /// The instruction behind one that is no branch.
    pub(super) fn falls_into(&self, at: usize) -> Option<usize> {
        self.behind(at).filter(|_| self.flows[at] == Flow::Next)
    }

    /// The instruction that a call comes back to, if it was translated.
    pub(super) fn landing(&self, at: usize) -> Option<usize> {
        self.behind(at).filter(|_| matches!(self.flows[at], Flow::Call(_) | Flow::IndirectCall))
    }

    /// The instructions from one on that follow each other in memory.
    pub(super) fn run(&self, start: CodeAddress) -> impl Iterator<Item = usize> + '_ {
        std::iter::successors(self.find(start), |&at| self.behind(at))
    }

    /// The instruction that a direct branch leads to, if it was translated.
    pub(super) fn direct_target(&self, at: usize) -> Option<usize> {
        Some(self.targets[at]).filter(|&target| target != NONE).map(|target| target as usize)
    }

    /// The targets of all direct branches.
    pub(super) fn direct_targets(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.len()).filter_map(|at| self.direct_target(at))
    }
}

/// How many instructions may begin before the end of one, itself included: one at each of its bytes.
const LONGEST: usize = 15;

fn find(
    places: &[CodeAddress],
    stretches: &HashMap<(CodeSpaceId, u64), u32>,
    place: CodeAddress,
) -> Option<usize> {
    let first = *stretches.get(&stretch(place))? as usize;
    let before = places[first..].iter().take_while(|other| **other < place).count();
    places.get(first + before).filter(|found| **found == place).map(|_| first + before)
}

fn leads_on(flow: Flow) -> bool {
    matches!(flow, Flow::Next | Flow::Conditional(_))
}

/// Adds the instructions of a block to those of blocks that begin before it, each once. Few of them overlap.
fn merge(block: &[Decoded], found: &mut Vec<Decoded>) {
    let Some(start) = block.first().map(|first| first.place) else { return };
    let from = match found.last() {
        Some(last) if last.place >= start => found.partition_point(|other| other.place < start),
        _ => return found.extend_from_slice(block),
    };
    let mut both = found.split_off(from);
    both.extend_from_slice(block);
    both.sort_by_key(|instruction| instruction.place);
    both.dedup_by_key(|instruction| instruction.place);
    found.append(&mut both);
}

/// An instruction and what it is.
#[derive(Clone, Copy)]
struct Decoded {
    place: CodeAddress,
    length: u8,
    flow: Flow,
}

/// Start, bytes and instructions of a block.
type Block = (CodeAddress, u32, u32);

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
    read: &mut ReadCode<'_>,
    decoded: &mut Vec<Decoded>,
) -> Option<()> {
    let length = length as usize;
    let mut bytes = read(start, length)?;
    // Kept bytes may come in pieces.
    while bytes.len() < length {
        let more = read(start.offset(bytes.len() as u64), length - bytes.len())?;
        if more.is_empty() {
            return None;
        }
        bytes.extend(more);
    }
    let before = decoded.len();
    let mut skipped = 0;
    for found in outlines(&bytes[..length], start.address.0) {
        let place = start.offset(skipped as u64);
        decoded.push(Decoded { place, length: found.length, flow: found.flow });
        skipped += usize::from(found.length);
    }
    (skipped == length && decoded.len() - before == instructions as usize).then_some(())
}
