//! The blocks that a thread executed, found by its counters.
//!
//! Most threads of a large program execute few of the blocks that were translated for all of them. So the non-zero
//! counters select the blocks, rather than each block its counter.

use crate::counting::result::Translated;

/// A set of blocks that may grow while it is iterated in the order of their numbers.
#[derive(Debug)]
pub(crate) struct BlockSet {
    words: Vec<u64>,
    blocks: u32,
}

impl BlockSet {
    /// An empty set, for so many blocks.
    pub(crate) fn none(blocks: u32) -> Self {
        Self { words: vec![0; blocks.div_ceil(u64::BITS) as usize], blocks }
    }

    /// The set of all blocks.
    pub(crate) fn all(blocks: u32) -> Self {
        let mut all = Self::none(blocks);
        (0..blocks).for_each(|block| all.add(block));
        all
    }

    /// Adds a block, if a block has the number.
    pub(crate) fn add(&mut self, block: u32) {
        if block < self.blocks {
            self.words[(block / u64::BITS) as usize] |= 1 << (block % u64::BITS);
        }
    }

    /// The first block from a number on.
    pub(crate) fn next(&self, from: u32) -> Option<u32> {
        let mut at = (from / u64::BITS) as usize;
        let mut word = *self.words.get(at)? & (u64::MAX << (from % u64::BITS));
        while word == 0 {
            at += 1;
            word = *self.words.get(at)?;
        }
        Some(at as u32 * u64::BITS + word.trailing_zeros())
    }

    /// All blocks of the set, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        std::iter::successors(self.next(0), |&block| self.next(block + 1))
    }
}

/// The block that each counter tells the executions of.
#[derive(Debug, Default)]
pub(crate) struct CounterOwners {
    of_counter: Vec<u32>,
    /// The numbers of blocks and arcs that were added.
    done: (u32, u32),
}

/// No block has this number.
const NOBODY: u32 = u32::MAX;

impl CounterOwners {
    /// Adds the counters of blocks and arcs that were translated since the last time.
    pub(crate) fn follow(&mut self, code: &impl Translated, arcs: u32) {
        let (blocks_done, arcs_done) = self.done;
        for id in blocks_done..code.block_count() {
            let (block, _) = code.block(id);
            self.set(block.counter, id);
        }
        for arc in arcs_done..arcs {
            let arc = code.arc(arc);
            // The arc's target counts itself. A derived block behind the arc's block gets the counter's value.
            arc.counter.into_iter().for_each(|counter| self.set(counter, arc.block + 1));
        }
        self.done = (code.block_count(), arcs);
    }

    fn set(&mut self, counter: u32, block: u32) {
        let counter = counter as usize;
        if self.of_counter.len() <= counter {
            self.of_counter.resize(counter + 1, NOBODY);
        }
        self.of_counter[counter] = block;
    }

    /// The blocks of nonzero counters.
    pub(crate) fn active(&self, counters: impl Iterator<Item = u32>, blocks: u32) -> BlockSet {
        let mut active = BlockSet::none(blocks);
        let owners = counters.filter_map(|counter| self.of_counter.get(counter as usize));
        owners.for_each(|&owner| active.add(owner));
        active
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_gone_through_in_order_while_more_are_added() {
        let mut active = BlockSet::none(200);
        [130, 3, 64].into_iter().for_each(|block| active.add(block));
        active.add(200);
        let (mut seen, mut next) = (Vec::new(), active.next(0));
        while let Some(block) = next {
            seen.push(block);
            if block == 64 {
                [65, 2].into_iter().for_each(|block| active.add(block));
            }
            next = active.next(block + 1);
        }
        assert_eq!(seen, [3, 64, 65, 130]);
        assert_eq!(active.iter().collect::<Vec<_>>(), [2, 3, 64, 65, 130]);
        assert_eq!(BlockSet::all(130).iter().count(), 130);
    }
}
