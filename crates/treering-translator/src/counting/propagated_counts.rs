//! Blocks whose executions those have counted who lead to them.
//!
//! A block that ends in a direct call or jump leads nowhere else, so its executions are also such of the block that it
//! leads to. That one needs to count only those who come otherwise: the jump goes behind the counter code. An
//! indirect transfer does the same for the target that it looks for in the line. This spares a counter in most calls
//! (Knuth and Stevenson, BIT 13, 1973: what flows out of one place flows into another).
//!
//! What a thread does halfway is known as elsewhere: one that leaves the first block before its end does not get to the
//! second, and one that gets there without executing anything of it has left it halfway.
//!
//! What is worked out must not depend on itself, as it would in a function that begins with a call of itself. So
//! blocks have levels: one is credited only by those of lower levels, and one that is derived from the block before it
//! has that one's level. Those that end otherwise, and so credit nobody, are of the first level, others of level 0, if
//! nobody wanted to credit them before they were written.
//!
//! Propagation goes to the first block at an address that has a level above 0. Should its code be replaced, those who lead
//! to it are led to the tracer, who takes the credit back.

use hashbrown::HashMap;
use treering_x86::Flow;

use crate::address_map::AddressMap;
use crate::cache::block::{BlockFacts, Blocks};
use crate::counting::active_blocks::BlockSet;
use crate::counting::result::Translated;
use crate::counting::slow_path::PartialExecution;

/// What is known of addresses whose blocks are credited with calls and jumps.
#[derive(Debug, Default)]
pub(crate) struct Propagation {
    /// The level of the block that is to begin there.
    pub(crate) levels: AddressMap<u8>,
    /// The first block there that had a level above 0, where that is out of use: nobody credits it any more. None
    /// where there was no such block when control came there.
    pub(crate) ended: AddressMap<Option<u32>>,
    /// Blocks of levels above the first, by level, in the order of their numbers.
    pub(crate) upper: Vec<Vec<u32>>,
    /// A block that a thread did not come to, though it was credited to it.
    pub(crate) taken_back: Option<u32>,
}

impl Propagation {
    /// The level of a block that begins at an address, if somebody was allowed to credit it before it was written.
    pub(crate) fn wanted_level(&self, address: u64) -> Option<u8> {
        self.levels.get(&address).copied()
    }

    /// Gives a new block of a file its level; `before`: the block that it is derived from; `last`: how it ends.
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

    /// Lets what is derived from a block credit others: gives the block, and those that it is derived from itself,
    /// level 0, if they were given the first without being wanted. Nobody has credited them yet, as they have just been
    /// written. Returns the block's level.
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

    /// Whether control may come to a block with what was credited to it.
    pub(crate) fn lets_in_uncounted(&self, blocks: &Blocks, block: u32) -> bool {
        let kept = blocks.get(block);
        kept.level != 0 && !self.ended.contains_key(&kept.address) && (kept.counted_before || kept.opens)
    }

    /// The block that has what is credited to an address.
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

    /// A thread does not come to an address by the call that was credited to it.
    pub(crate) fn take_propagated_back(&mut self, blocks: &Blocks, target: u64) {
        self.taken_back = self.propagated_to(blocks, target);
    }

    /// What is to be noted of the thread that has just asked.
    pub(crate) fn taken_back(&mut self) -> Option<PartialExecution> {
        let block = self.taken_back.take()?;
        Some(PartialExecution { block, offset: 0, done: 0, counted: true })
    }
}

/// How often each block was executed that was, by what counters say, in the order of their numbers; `left`: how often
/// blocks were left before their end. `touched` are the blocks of counters that are not 0, or more.
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

/// Executions as far as they have been found.
struct Solver<'a, T, C> {
    code: &'a T,
    counter: &'a C,
    left: &'a HashMap<u32, u64>,
    /// By block; of those whose turn has not come, what was counted or credited.
    counts: Vec<u64>,
    /// All that may have been executed.
    active: BlockSet,
}

impl<T: Translated, C: Fn(u32) -> u64> Solver<'_, T, C> {
    /// Goes through the blocks, those that are touched meanwhile included if they stand behind.
    fn each_active(&mut self, mut act: impl FnMut(&mut Self, u32)) {
        let mut next = self.active.next(0);
        while let Some(id) = next {
            act(self, id);
            next = self.active.next(id + 1);
        }
    }

    /// How often a block was executed to its end.
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

    /// Takes in what a block's own counters say. Of the lowest level that is all.
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

    /// Takes in what a block of a level has from the block that it is derived from.
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

    /// Touches what a block that was executed leads to: the next one may be derived from it, and one of the level credits
    /// what it calls.
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

/// How often control went by those arcs that have counters: other than to the target that a block is presumed to have,
/// or to a derived block from elsewhere.
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

    /// Blocks, with what their counters say and how often they were left.
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
        // The counters that are not 0 are enough.
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
    fn calls_that_were_made_count_for_what_is_called() {
        // The function stands before its callers; one of them was left before it called, twice.
        let blocks = [
            (block(0x10, 1, None), 5, 0),
            (block(0x20, 0, Some(0x10)), 10, 2),
            (block(0x30, 0, Some(0x10)), 7, 0),
        ];
        assert_eq!(counts(&blocks), [5 + 8 + 7, 10, 7]);
    }

    #[test]
    fn credit_is_passed_on_through_derived_blocks_from_level_to_level() {
        let derived = BlockFacts { derived: true, ..block(0x24, 1, Some(0x10)) };
        // What is called by what is called stands first; the derived block is where 4 of 9 did not branch.
        let blocks = [
            (block(0x10, 2, None), 0, 0),
            (block(0x20, 1, None), 1, 0),
            (derived, 5, 1),
            (block(0x30, 0, Some(0x20)), 8, 0),
        ];
        assert_eq!(counts(&blocks), [3, 9, 4, 8]);
    }

    #[test]
    fn only_the_first_block_at_an_address_has_credit() {
        let blocks =
            [(block(0x10, 2, None), 0, 0), (block(0x10, 1, None), 6, 0), (block(0x20, 0, Some(0x10)), 4, 0)];
        assert_eq!(counts(&blocks), [4, 6, 4]);
    }
}
