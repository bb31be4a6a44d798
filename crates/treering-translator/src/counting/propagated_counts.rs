//! Blocks that are already counted by their predecessors.
//!
//! A block that ends in a direct call or jump leads to one place only. So its executions are also executions
//! of its successor, which needs a counter only for control that comes from elsewhere: the jump skips the
//! counter code. An indirect transfer does the same for its inlined target. This saves the counter of most
//! calls (Knuth and Stevenson, BIT 13, 1973: the flow out of one place is the flow into the next).
//!
//! Partial executions correct the counts as everywhere: a thread that leaves the first block early does not reach the
//! second, and a thread that reaches the second without executing anything of it has left it early.
//!
//! A count must not depend on itself, as it would in a function that begins with a call of itself. So blocks have
//! levels: a block takes counts only from blocks of lower levels. A block that is derived from the block before it has
//! the same level as that one. Blocks that do not propagate their counts have level 1; others have level 0, unless a
//! block wanted to propagate its count to them before they were translated.
//!
//! The counts go to the first block at an address whose level is above 0. When its code is replaced, its predecessors
//! are unlinked: they ask the tracer, which takes the count back.

use hashbrown::HashMap;
use treering_x86::Flow;

use crate::address_map::AddressMap;
use crate::cache::block::{BlockFacts, Blocks};
use crate::counting::active_blocks::BlockSet;
use crate::counting::result::Translated;
use crate::counting::slow_path::PartialExecution;

/// The addresses that take over counts from the calls and jumps that lead to them.
#[derive(Debug, Default)]
pub(crate) struct Propagation {
    /// The level of the block that will begin at an address.
    pub(crate) levels: AddressMap<u8>,
    /// Addresses whose first block with a level above 0 is retired, so that no count is propagated there any
    /// more. The value is that block; none if control came there before there was such a block.
    pub(crate) ended: AddressMap<Option<u32>>,
    /// Blocks of levels above the first, by level, in the order of their numbers.
    pub(crate) upper: Vec<Vec<u32>>,
}

impl Propagation {
    /// The level for the block at an address, if a predecessor propagates its count to it already.
    pub(crate) fn wanted_level(&self, address: u64) -> Option<u8> {
        self.levels.get(&address).copied()
    }

    /// Gives a new block of a file its level. `before` is the block that it is derived from, `last` its last
    /// instruction.
    pub(crate) fn note_level(
        &mut self,
        blocks: &mut Blocks,
        block: u32,
        wanted: Option<u8>,
        before: Option<u32>,
        last: Option<Flow>,
    ) {
        let propagates = matches!(
            last,
            Some(Flow::Jump(_) | Flow::Call(_) | Flow::IndirectJump | Flow::IndirectCall) | None
        );
        let level = match before {
            Some(before) if propagates => self.lower_derived_row(blocks, before),
            Some(before) => blocks.get(before).level,
            None => wanted.unwrap_or(u8::from(!propagates)),
        };
        blocks.get_mut(block).level = level;
        if let Some(above) = usize::from(level).checked_sub(2) {
            if self.upper.len() <= above {
                self.upper.resize_with(above + 1, Vec::new);
            }
            self.upper[above].push(block);
        }
    }

    /// Lets a block that is derived from another one propagate its count. The other block, and the blocks
    /// that this one is derived from, get level 0 if no predecessor asked for level 1. No count has been
    /// propagated to them yet, as they have just been written. Returns the block's level.
    fn lower_derived_row(&self, blocks: &mut Blocks, last: u32) -> u8 {
        let mut first = last;
        while blocks.get(first).derived {
            first -= 1;
        }
        let address = blocks.get(first).address;
        if blocks.get(last).level == 1 && !self.levels.contains_key(&address) {
            (first..=last).for_each(|id| blocks.get_mut(id).level = 0);
        }
        blocks.get(last).level
    }

    /// Whether a block has an entry for predecessors that have counted for it.
    pub(crate) fn lets_in_uncounted(&self, blocks: &Blocks, block: u32) -> bool {
        let kept = blocks.get(block);
        kept.level != 0 && !self.ended.contains_key(&kept.address) && (kept.counted_before || kept.opens)
    }

    /// The block that gets the counts that are propagated to an address.
    pub(crate) fn propagated_to(&self, blocks: &Blocks, address: u64) -> Option<u32> {
        match self.ended.get(&address) {
            Some(first) => *first,
            None => blocks.at(address).filter(|&block| blocks.get(block).level != 0),
        }
    }

    /// Blocks of levels above the first.
    pub(crate) fn upper_levels(&self) -> &[Vec<u32>] {
        &self.upper
    }

    /// The execution to take back for a thread that does not reach an address after all, although its
    /// predecessor has counted for it; nothing if no block gets counts propagated to the address.
    pub(crate) fn to_take_back(&self, blocks: &Blocks, target: u64) -> Option<PartialExecution> {
        let block = self.propagated_to(blocks, target)?;
        Some(PartialExecution { block, offset: 0, done: 0, counted: true })
    }
}

/// The executions of each executed block, in the order of the blocks' numbers. `left` says how often blocks
/// were left early. `touched` holds at least the blocks of nonzero counters.
pub(crate) fn executions(
    code: &impl Translated,
    counter: &impl Fn(u32) -> u64,
    active: BlockSet,
    left: &HashMap<u32, u64>,
) -> Vec<(u32, u64)> {
    let counts = vec![0_u64; code.block_count() as usize];
    let mut found = Solver { code, counter, left, counts, active };
    found.each_active(Solver::take_counted);
    found.each_active(|found, id| found.work_out(id, 1));
    for (level, ids) in (2..).zip(code.upper_levels()) {
        ids.iter().for_each(|&id| found.work_out(id, level));
    }
    let executed = found.active.iter().map(|id| (id, found.counts[id as usize]));
    executed.filter(|(_, count)| *count != 0).collect()
}

/// The state of the computation of executions.
struct Solver<'a, T, C> {
    code: &'a T,
    counter: &'a C,
    left: &'a HashMap<u32, u64>,
    /// By block. For blocks that are not computed yet, the counted or propagated part.
    counts: Vec<u64>,
    /// The blocks that may have been executed.
    active: BlockSet,
}

impl<T: Translated, C: Fn(u32) -> u64> Solver<'_, T, C> {
    /// Calls `act` for each active block, including later blocks that become active meanwhile.
    fn each_active(&mut self, mut act: impl FnMut(&mut Self, u32)) {
        let mut next = self.active.next(0);
        while let Some(id) = next {
            act(self, id);
            next = self.active.next(id + 1);
        }
    }

    /// The number of a block's complete executions.
    fn ended(&self, id: u32) -> u64 {
        match (self.counts[id as usize], self.left.get(&id)) {
            (count, Some(left)) => count.saturating_sub(*left),
            (count, None) => count,
        }
    }

    fn before(&self, id: u32) -> u64 {
        id.checked_sub(1).map_or(0, |before| self.ended(before))
    }

    fn arcs(&self, arcs: u32) -> u64 {
        counted_arcs(self.code, self.counter, arcs)
    }

    /// Adds a block's own counters. A block of the lowest level has no other executions.
    fn take_counted(&mut self, id: u32) {
        let (block, arcs) = self.code.block(id);
        let from_elsewhere = |found: &Self| found.arcs(found.code.block(id - 1).1);
        self.counts[id as usize] += match (block.derived, block.level) {
            (false, _) => (self.counter)(block.counter),
            (true, 0) => self.before(id).saturating_sub((self.counter)(block.counter)) + from_elsewhere(self),
            (true, _) => from_elsewhere(self),
        };
        self.lead(id, 0, &block, arcs);
    }

    /// Adds the executions that a block of a level gets from the block that it is derived from.
    fn work_out(&mut self, id: u32, level: u8) {
        let before = self.before(id);
        if before == 0 && self.counts[id as usize] == 0 {
            return;
        }
        let (block, arcs) = self.code.block(id);
        if block.level == level {
            if block.derived {
                self.counts[id as usize] += before.saturating_sub((self.counter)(block.counter));
            }
            self.lead(id, level, &block, arcs);
        }
    }

    /// Marks the successors of an executed block as active: the next block may be derived from it, and a
    /// block of the level propagates its count to its callee.
    fn lead(&mut self, id: u32, level: u8, block: &BlockFacts, arcs: u32) {
        if self.counts[id as usize] == 0 {
            return;
        }
        self.active.add(id);
        self.active.add(id + 1);
        if block.level == level
            && block.propagates
            && let Some(callee) = self.code.propagated(block.target)
        {
            self.counts[callee as usize] += self.ended(id).saturating_sub(self.arcs(arcs));
            self.active.add(callee);
        }
    }
}

/// The executions of arcs that have counters: those to targets other than the block's presumed one, and those
/// to derived blocks.
fn counted_arcs(code: &impl Translated, counter: impl Fn(u32) -> u64, arcs: u32) -> u64 {
    let mut sum = 0;
    let mut next = arcs;
    while next != 0 {
        let arc = code.arc(next - 1);
        sum += arc.counter.map_or(0, &counter);
        next = arc.next;
    }
    sum
}

#[cfg(test)]
mod tests {
    use crate::cache::block::End;
    use crate::cache::indirect::IndirectArc;
    use crate::counting::active_blocks::CounterOwners;
    use crate::program::region::Region;

    use super::*;

    struct Code(Vec<BlockFacts>, Vec<Vec<u32>>);

    impl Translated for Code {
        fn block_count(&self) -> u32 {
            self.0.len() as u32
        }

        fn block(&self, block: u32) -> (BlockFacts, u32) {
            (self.0[block as usize], 0)
        }

        fn arc(&self, _: u32) -> IndirectArc {
            unreachable!("no block has one")
        }

        fn regions(&self) -> &[Region] {
            &[]
        }

        fn kept(&self) -> &[(u32, Box<[u8]>)] {
            &[]
        }

        fn upper_levels(&self) -> &[Vec<u32>] {
            &self.1
        }

        fn propagated(&self, address: u64) -> Option<u32> {
            let is_first = |block: &BlockFacts| block.address == address && block.level != 0;
            self.0.iter().position(is_first).map(|id| id as u32)
        }
    }

    fn block(address: u64, level: u8, calls: Option<u64>) -> BlockFacts {
        BlockFacts {
            address,
            target: calls.unwrap_or(0),
            counter: 0,
            region: 0,
            length: 1,
            instructions: 1,
            last_length: 1,
            end: if calls.is_some() { End::Call } else { End::Return },
            derived: false,
            propagates: calls.is_some(),
            level,
        }
    }

    /// The executions of blocks, each given with its counter's value and how often it was left early.
    fn counts(blocks: &[(BlockFacts, u64, u64)]) -> Vec<u64> {
        let numbered = (0..).zip(blocks);
        let facts = numbered.clone().map(|(id, (block, ..))| BlockFacts { counter: id, ..*block });
        let mut code = Code(facts.collect(), vec![Vec::new(); 2]);
        for (id, block) in (0..).zip(&code.0).filter(|(_, block)| block.level > 1) {
            code.1[usize::from(block.level) - 2].push(id);
        }
        let left = numbered.map(|(id, &(_, _, left))| (id, left)).collect();
        let numbered = BlockSet::all(blocks.len() as u32);
        let mut counts = vec![0; blocks.len()];
        for (id, count) in executions(&code, &|counter| blocks[counter as usize].1, numbered, &left) {
            counts[id as usize] = count;
        }
        // The blocks of nonzero counters suffice.
        let mut owners = CounterOwners::default();
        owners.follow(&code, 0);
        let counted = (0..).zip(blocks).filter(|(_, (_, counter, _))| *counter != 0);
        let active = owners.active(counted.map(|(id, _)| id), blocks.len() as u32);
        let few = executions(&code, &|counter| blocks[counter as usize].1, active, &left);
        let all = (0..).zip(counts.iter().copied());
        assert_eq!(few, all.filter(|(_, count)| *count != 0).collect::<Vec<_>>());
        counts
    }

    #[test]
    fn calls_count_for_their_targets() {
        // The function has a lower number than its callers; one of them was left before its call, twice.
        let blocks = [
            (block(0x10, 1, None), 5, 0),
            (block(0x20, 0, Some(0x10)), 10, 2),
            (block(0x30, 0, Some(0x10)), 7, 0),
        ];
        assert_eq!(counts(&blocks), [5 + 8 + 7, 10, 7]);
    }

    #[test]
    fn counts_propagate_through_derived_blocks_from_level_to_level() {
        let derived = BlockFacts { derived: true, ..block(0x24, 1, Some(0x10)) };
        // The callee's callee has the lowest number; the derived block follows a branch that was not taken 4
        // times of 9.
        let blocks = [
            (block(0x10, 2, None), 0, 0),
            (block(0x20, 1, None), 1, 0),
            (derived, 5, 1),
            (block(0x30, 0, Some(0x20)), 8, 0),
        ];
        assert_eq!(counts(&blocks), [3, 9, 4, 8]);
    }

    #[test]
    fn only_the_first_block_at_an_address_gets_propagated_counts() {
        let blocks =
            [(block(0x10, 2, None), 0, 0), (block(0x10, 1, None), 6, 0), (block(0x20, 0, Some(0x10)), 4, 0)];
        assert_eq!(counts(&blocks), [4, 6, 4]);
    }
}
