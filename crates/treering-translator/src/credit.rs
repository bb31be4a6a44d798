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
    /// The first block that began there.
    first: AddressMap<u32>,
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
            self.credit.first.entry(address).or_insert(block);
        }
    }

    /// Where control comes to a block with calls that were credited to it.
    pub(crate) fn uncounted_entry(&self, block: u32) -> Option<u64> {
        let kept = self.blocks.get(block);
        if self.credit.first.get(&kept.address) != Some(&block) || self.credit.ended.contains(&kept.address) {
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
        self.credit.taken_back = self.credit.first.get(&target).copied();
    }

    /// What is to be noted of the thread that has just asked.
    pub(crate) fn taken_back(&mut self) -> Option<Halfway> {
        let block = self.credit.taken_back.take()?;
        Some(Halfway { block, offset: 0, done: 0, counted: true })
    }

    /// A block is out of use: those who credit it ask the tracer from now on.
    pub(crate) fn end_credit(&mut self, id: u32) {
        let address = self.blocks.get(id).address;
        if self.credit.first.get(&address) != Some(&id) || !self.credit.ended.insert(address) {
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

/// How often each block was executed; `counted`: what counters say, as a function of
/// the block and of how often the one before it came to its end; `left`: how often it did not come to its end; `led_elsewhere`:
/// how often it led to targets that have counters.
pub(crate) fn executions(
    code: &impl Translated,
    counted: impl Fn(u32, u64) -> u64,
    left: impl Fn(u32) -> u64,
    led_elsewhere: impl Fn(u32) -> u64,
) -> Vec<u64> {
    let mut counts = vec![0; code.block_count() as usize];
    // Blocks of higher levels, and what was credited to addresses.
    let (mut later, mut credit) = (Vec::new(), HashMap::<u64, u64>::new());
    let mut ended = 0;
    for id in 0..code.block_count() {
        let (block, _) = code.block(id);
        if block.level != 0 {
            later.push((block.level, id));
            continue;
        }
        let count = counted(id, ended);
        counts[id as usize] = count;
        ended = count.saturating_sub(left(id));
        if block.credits && ended != 0 {
            *credit.entry(block.target).or_default() += ended.saturating_sub(led_elsewhere(id));
        }
    }
    let mut first = AddressMap::default();
    for &(_, id) in &later {
        first.entry(code.block(id).0.address).or_insert(id);
    }
    later.sort_unstable();
    for (_, id) in later {
        let (block, _) = code.block(id);
        let is_first = first.get(&block.address) == Some(&id);
        let before =
            id.checked_sub(1).map_or(0, |before| counts[before as usize].saturating_sub(left(before)));
        let credited = if is_first { credit.remove(&block.address).unwrap_or(0) } else { 0 };
        let count = counted(id, before) + credited;
        counts[id as usize] = count;
        let ended = count.saturating_sub(left(id));
        if block.credits && ended != 0 {
            *credit.entry(block.target).or_default() += ended.saturating_sub(led_elsewhere(id));
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use crate::block::End;
    use crate::journal::record::Facts;
    use crate::region::Region;
    use crate::space::Arc;

    use super::*;

    struct Code(Vec<Facts>);

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

    fn counts(blocks: &[(Facts, u64, u64)], elsewhere: u64) -> Vec<u64> {
        let code = Code(blocks.iter().map(|(block, ..)| *block).collect());
        let counted = |id: u32, ended: u64| match code.0[id as usize].derived {
            true => ended - blocks[id as usize].1,
            false => blocks[id as usize].1,
        };
        executions(&code, counted, |id| blocks[id as usize].2, |_| elsewhere)
    }

    #[test]
    fn calls_that_were_made_count_for_what_is_called() {
        // The function stands before its callers; one of them was left before it called, twice.
        let blocks = [
            (block(0x10, 1, None), 5, 0),
            (block(0x20, 0, Some(0x10)), 10, 2),
            (block(0x30, 0, Some(0x10)), 7, 0),
        ];
        assert_eq!(counts(&blocks, 0), [5 + 8 + 7, 10, 7]);
        assert_eq!(counts(&blocks, 3), [5 + 5 + 4, 10, 7], "three of each went elsewhere");
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
        assert_eq!(counts(&blocks, 0), [3, 9, 4, 8]);
    }

    #[test]
    fn only_the_first_block_at_an_address_has_credit() {
        let blocks =
            [(block(0x10, 2, None), 0, 0), (block(0x10, 1, None), 6, 0), (block(0x20, 0, Some(0x10)), 4, 0)];
        assert_eq!(counts(&blocks, 0), [4, 6, 4]);
    }
}
