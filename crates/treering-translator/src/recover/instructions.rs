//! Every instruction that was translated, each once.

use std::collections::{BTreeMap, BTreeSet};

use treering_profile::{CodeAddress, StatedAddress, TranslatedBlock};
use treering_x86::disassembly::{Flow, outline};

use super::{ReadCode, direct};

/// The instructions of all translated blocks, sorted by address.
pub(super) struct Instructions {
    places: Vec<CodeAddress>,
    lengths: Vec<u8>,
    flows: Vec<Flow>,
    /// The instruction behind each; `NONE` if it was not translated.
    next: Vec<u32>,
    /// How many instructions have each behind them and may lead on to it.
    leads_here: Vec<u32>,
}

const NONE: u32 = u32::MAX;

impl Instructions {
    /// Reads the instructions of blocks. Blocks, as (start, bytes, instructions), that cannot be read
    /// or hold others than counted are given back.
    pub(super) fn read(
        blocks: &[TranslatedBlock],
        read: &mut ReadCode<'_>,
    ) -> (Self, BTreeSet<(CodeAddress, u32, u32)>) {
        let mut found: BTreeMap<CodeAddress, (u8, Flow)> = BTreeMap::new();
        let different: BTreeSet<_> =
            blocks.iter().map(|block| (block.start, block.length, block.instructions)).collect();
        let mut unreadable = BTreeSet::new();
        for (start, length, instructions) in different {
            match decode(start, length, instructions, read) {
                Some(decoded) => found.extend(decoded),
                None => {
                    unreadable.insert((start, length, instructions));
                }
            }
        }
        (Self::index(found), unreadable)
    }

    fn index(found: BTreeMap<CodeAddress, (u8, Flow)>) -> Self {
        let places: Vec<_> = found.keys().copied().collect();
        let (lengths, flows): (Vec<_>, Vec<_>) = found.into_values().unzip();
        let ids = places.iter().zip(&lengths);
        let next: Vec<u32> = ids
            .map(|(place, &length)| {
                let behind = places.binary_search(&place.offset(length.into()));
                behind.map_or(NONE, |at| at as u32)
            })
            .collect();
        let mut leads_here = vec![0; places.len()];
        for (&next, &flow) in next.iter().zip(&flows) {
            if next != NONE && leads_on(flow) {
                leads_here[next as usize] += 1;
            }
        }
        Self { places, lengths, flows, next, leads_here }
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
        self.places.binary_search(&place).ok()
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
        let (_, target) = direct(self.flows[at])?;
        self.find(CodeAddress { address: StatedAddress(target), ..self.places[at] })
    }

    /// The targets of all direct branches.
    pub(super) fn direct_targets(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.len()).filter_map(|at| self.direct_target(at))
    }
}

fn leads_on(flow: Flow) -> bool {
    matches!(flow, Flow::Next | Flow::Conditional(_))
}

/// The instructions of one block, if they are as many and as long as was counted.
fn decode(
    start: CodeAddress,
    length: u32,
    instructions: u32,
    read: &mut ReadCode<'_>,
) -> Option<Vec<(CodeAddress, (u8, Flow))>> {
    let mut decoded = Vec::new();
    let mut bytes = read(start, length as usize)?;
    // Kept bytes may come in pieces.
    while bytes.len() < length as usize {
        let more = read(start.offset(bytes.len() as u64), length as usize - bytes.len())?;
        if more.is_empty() {
            return None;
        }
        bytes.extend(more);
    }
    let mut skipped = 0;
    while skipped < length as usize {
        let place = start.offset(skipped as u64);
        let found = outline(bytes.get(skipped..length as usize)?, place.address.0)?;
        decoded.push((place, (found.length, found.flow)));
        skipped += usize::from(found.length);
    }
    (decoded.len() == instructions as usize).then_some(decoded)
}
