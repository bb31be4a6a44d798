//! Functions whose executions their callers have counted.
//!
//! A block that ends in a direct call leads nowhere else, so its executions are also such of the block that the
//! function begins with. That one needs to count only those who come otherwise: the call goes behind the piece that
//! counts. This spares a counter in each call (Knuth and Stevenson, BIT 13, 1973: what flows into a place flows out of
//! others).
//!
//! What a thread does halfway is known as elsewhere: one that leaves the calling block before the call does not call,
//! and one that comes to the function without executing anything of it has left it halfway.
//!
//! What is worked out must not depend on itself, as it would in a function that begins with a call of itself. So
//! blocks have levels: one is credited only by those of lower levels, and one that is derived from the block before it
//! has that one's level.
//!
//! Credit goes to the first block that was translated at an address. Should its code be replaced, its callers are led
//! to the tracer, who takes the credit back.

use hashbrown::HashMap;

use crate::counts::Translated;
use crate::journal::record::Facts;
use crate::near::{AddressMap, AddressSet};
use crate::remote::Stopped;
use crate::space::Space;
use crate::thread::Halfway;

/// Said of a program that called code which had been taken away.
const NOTHING_THERE: &str = "it called code that had been taken away meanwhile; should there be other code at that \
                             address later, it counts once too often";

/// What is known of addresses that are called by blocks that credit them.
#[derive(Debug, Default)]
pub(crate) struct Credit {
    /// The level of the block that is to begin there.
    levels: AddressMap<u8>,
    /// The blocks there.
    pub(crate) leveled: Leveled,
    /// Addresses whose first block is out of use: nobody credits them any more.
    ended: AddressSet,
    /// A block that a thread did not come to, though it was credited to it.
    taken_back: Option<u32>,
}

impl Space {
    /// Whether a block, which is being written, may credit its call to what is called.
    pub(crate) fn may_credit(&mut self, block: u32, target: u64) -> bool {
        let (address, level) = {
            let block = self.blocks.get(block);
            (block.address, block.level)
        };
        if self.has_contexts() || self.is_modelled() || self.regions.are_watched() || level == u8::MAX {
            return false;
        }
        if self.credit.ended.contains(&target) || !self.is_steady(address) || !self.is_steady(target) {
            return false;
        }
        match self.blocks.at(target) {
            Some(callee) => self.blocks.get(callee).level > level && self.uncounted_entry(callee).is_some(),
            None => {
                let wanted = self.credit.levels.entry(target).or_default();
                *wanted = (level + 1).max(*wanted);
                true
            }
        }
    }

    /// Whether code is a file's, and cannot change without our being told.
    fn is_steady(&self, address: u64) -> bool {
        let region = self.regions.find(address);
        region.is_some_and(|region| region.file.is_some() && !region.writable)
            && !self.regions.is_any_restless(address, 1)
            && !self.regions.asks(address)
    }

    /// Whether a block that begins at an address is credited with calls.
    pub(crate) fn is_credited(&self, address: u64) -> bool {
        self.credit.levels.contains_key(&address)
    }

    /// Gives a new block its level; `before`: the block that it is derived from.
    pub(crate) fn note_level(&mut self, block: u32, before: Option<u32>) {
        let address = self.blocks.get(block).address;
        let level = match before {
            Some(before) => self.blocks.get(before).level,
            None => self.credit.levels.get(&address).copied().unwrap_or(0),
        };
        if level != 0 {
            self.blocks.get_mut(block).level = level;
            self.credit.leveled.add(block, address, level, before.is_some());
        }
    }

    /// Where control comes to a block with calls that were credited to it.
    pub(crate) fn uncounted_entry(&self, block: u32) -> Option<u64> {
        let kept = self.blocks.get(block);
        if self.credit.leveled.first(kept.address) != Some(block) || self.credit.ended.contains(&kept.address)
        {
            return None;
        }
        match (kept.derived, kept.opens) {
            (true, _) => Some(kept.entry),
            (false, true) => Some(kept.entry + u64::from(kept.counted_from)),
            (false, false) => None,
        }
    }

    /// The translation of an address that may be entered without asking; `credits`: by a call that was credited.
    pub(crate) fn entry_for(&mut self, target: u64, credits: bool) -> Option<u64> {
        let entry = self.entry_of(target)?;
        if !credits {
            return Some(entry);
        }
        self.blocks.at(target).and_then(|block| self.uncounted_entry(block))
    }

    /// The translation of an address for a thread whose call was credited. If that is not to be entered without
    /// counting, the credit is taken back.
    ///
    /// # Errors
    /// As [`enter`](Self::enter).
    pub(crate) fn enter_credited(&mut self, target: u64, thread: &mut Stopped<'_>) -> std::io::Result<u64> {
        let Some(entry) = self.enter(target, thread)? else {
            self.take_credit_back(target);
            if self.credit.taken_back.is_none() {
                self.warnings.push(NOTHING_THERE);
            }
            return Ok(target);
        };
        if let Some(entry) = self.entry_for(target, true) {
            return Ok(entry);
        }
        self.take_credit_back(target);
        Ok(entry)
    }

    /// A thread does not come to an address by the call that was credited to it. If nothing was translated there yet,
    /// there is nothing that the credit goes to.
    pub(crate) fn take_credit_back(&mut self, target: u64) {
        self.credit.taken_back = self.credit.leveled.first(target);
    }

    /// What is to be noted of the thread that has just asked.
    pub(crate) fn taken_back(&mut self) -> Option<Halfway> {
        let block = self.credit.taken_back.take()?;
        Some(Halfway { block, offset: 0, done: 0, counted: true })
    }

    /// A block is out of use: those who credit it ask the tracer from now on.
    pub(crate) fn end_credit(&mut self, id: u32) {
        let address = self.blocks.get(id).address;
        if self.credit.leveled.first(address) != Some(id) || !self.credit.ended.insert(address) {
            return;
        }
        self.credit.levels.remove(&address);
        let callers = (0..self.blocks.len() as u32).filter(|&caller| {
            let caller = self.blocks.get(caller);
            caller.credits && caller.target == address
        });
        for caller in callers.collect::<Vec<_>>() {
            // It ends in the jump, and that in what says where to.
            let site = self.blocks.behind_last_instruction(caller) - 4;
            if let Some(arena) = self.arena_of(site) {
                let stub = self.await_code(arena, address, site, true);
                self.arenas[arena].patch(site, stub);
            }
        }
    }
}

/// How often each block was executed, by what counters say; `left`: how often blocks were left before their end.
///
/// This is done for each thread, most of which execute few of the blocks, so it looks no more than once at those of
/// which nothing was counted.
pub(crate) fn executions(
    code: &impl Translated,
    counter: &impl Fn(u32) -> u64,
    left: &HashMap<u32, u64>,
) -> Vec<u64> {
    // Of blocks whose turn has not come, what was counted or credited.
    let mut counts = vec![0_u64; code.block_count() as usize];
    let ended = |count: u64, id: u32| match left.get(&id) {
        Some(left) if count != 0 => count.saturating_sub(*left),
        _ => count,
    };
    let credit = |counts: &mut [u64], id: u32, block: &Facts, arcs: u32| {
        let count = counts[id as usize];
        if block.credits
            && count != 0
            && let Some(callee) = code.credited(block.target)
        {
            counts[callee as usize] += ended(count, id).saturating_sub(counted_arcs(code, counter, arcs));
        }
    };
    let mut arcs_before = 0;
    for id in 0..code.block_count() {
        let (block, arcs) = code.block(id);
        counts[id as usize] += match (block.derived, block.level) {
            (false, _) => counter(block.counter),
            (true, 0) => {
                let before = ended(counts[id as usize - 1], id - 1);
                before.saturating_sub(counter(block.counter)) + counted_arcs(code, counter, arcs_before)
            }
            (true, _) => counted_arcs(code, counter, arcs_before),
        };
        if block.level == 0 {
            credit(&mut counts, id, &block, arcs);
        }
        arcs_before = arcs;
    }
    for &Later { id, derived } in code.leveled().iter().flatten() {
        let before = if derived { ended(counts[id as usize - 1], id - 1) } else { 0 };
        if before != 0 || counts[id as usize] != 0 {
            let (block, arcs) = code.block(id);
            counts[id as usize] += before.saturating_sub(if derived { counter(block.counter) } else { 0 });
            credit(&mut counts, id, &block, arcs);
        }
    }
    counts
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

/// Blocks with levels above 0, in the order in which they can be worked out, and who has what is credited to an
/// address.
#[derive(Debug, Default)]
pub(crate) struct Leveled {
    /// By level less one, in the order of their numbers.
    blocks: Vec<Vec<Later>>,
    /// The first block at an address.
    first: AddressMap<u32>,
}

/// A block that is worked out after those of lower levels.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Later {
    id: u32,
    /// Whether it is derived from the block before it.
    derived: bool,
}

impl Leveled {
    /// Takes the next block in; blocks are taken in in the order of their numbers.
    pub(crate) fn add(&mut self, id: u32, address: u64, level: u8, derived: bool) {
        let Some(below) = usize::from(level).checked_sub(1) else { return };
        if self.blocks.len() <= below {
            self.blocks.resize_with(below + 1, Vec::new);
        }
        self.blocks[below].push(Later { id, derived });
        self.first.entry(address).or_insert(id);
    }

    /// Those blocks, by level.
    pub(crate) fn blocks(&self) -> &[Vec<Later>] {
        &self.blocks
    }

    /// Who has what is credited to an address.
    pub(crate) fn first(&self, address: u64) -> Option<u32> {
        self.first.get(&address).copied()
    }
}

#[cfg(test)]
mod tests {
    use crate::block::End;
    use crate::region::Region;
    use crate::space::Arc;

    use super::*;

    struct Code(Vec<Facts>, Leveled);

    impl Translated for Code {
        fn block_count(&self) -> u32 {
            self.0.len() as u32
        }

        fn block(&self, block: u32) -> (Facts, u32) {
            (self.0[block as usize], 0)
        }

        fn arc(&self, _: u32) -> Arc {
            unreachable!("no block has one")
        }

        fn regions(&self) -> &[Region] {
            &[]
        }

        fn kept(&self) -> &[(u32, Box<[u8]>)] {
            &[]
        }

        fn leveled(&self) -> &[Vec<Later>] {
            self.1.blocks()
        }

        fn credited(&self, address: u64) -> Option<u32> {
            self.1.first(address)
        }
    }

    fn block(address: u64, level: u8, calls: Option<u64>) -> Facts {
        Facts {
            address,
            target: calls.unwrap_or(0),
            counter: 0,
            region: 0,
            length: 1,
            instructions: 1,
            last_length: 1,
            end: if calls.is_some() { End::Call } else { End::Return },
            derived: false,
            credits: calls.is_some(),
            level,
        }
    }

    /// Blocks, with what their counters say and how often they were left.
    fn counts(blocks: &[(Facts, u64, u64)]) -> Vec<u64> {
        let numbered = (0..).zip(blocks);
        let facts = numbered.clone().map(|(id, (block, ..))| Facts { counter: id, ..*block });
        let mut code = Code(facts.collect(), Leveled::default());
        for (id, block) in (0..).zip(&code.0) {
            code.1.add(id, block.address, block.level, block.derived);
        }
        let left = numbered.map(|(id, &(_, _, left))| (id, left)).collect();
        executions(&code, &|counter| blocks[counter as usize].1, &left)
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
        let derived = Facts { derived: true, ..block(0x24, 1, Some(0x10)) };
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
