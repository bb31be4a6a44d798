//! Translated blocks, and the map from each byte of their code to the program's instruction.

use std::ops::{Deref, DerefMut};

use hashbrown::HashMap;

use crate::address_map::AddressMap;
use crate::cache::unit::Unit;
use crate::chunked_vec::{ChunkedVec, Runs};
use crate::program::region::PAGE;

/// The most bytes of a block.
const LONGEST: u64 = 256;

/// A translated sequence of the program's instructions.
#[derive(Debug, Clone, Default)]
pub(crate) struct Block {
    pub(crate) facts: BlockFacts,
    /// Where its translation begins.
    pub(crate) entry: u64,
    /// The index of its first step among all steps.
    steps: u32,
    /// The first of its arcs plus one; 0 if there is none.
    pub(crate) arcs: u32,
    /// The length of the translation, in bytes.
    emitted: u16,
    /// The offset at which the counter code ends.
    pub(crate) counted_from: u16,
    /// The offset at which the stub ends that adds the instructions to the tree's count; 0 if there is none.
    pub(crate) added_from: u16,
    /// The number of instructions of later blocks of its count batch that are added with its own. See
    /// [`crate::emit::count_batch`].
    pub(crate) ahead: u8,
    /// Whether its instructions are added together with those of the block before it.
    pub(crate) in_batch: bool,
    /// The number of its steps.
    step_count: u8,
    /// The register in which it counts its own repetitions.
    pub(crate) loop_register: Option<treering_x86::Register>,
    /// Whether it was evicted.
    pub(crate) retired: bool,
    /// Whether it begins with the counter code, so that predecessors that propagate their counts may skip that.
    pub(crate) opens: bool,
    /// Whether it has no counter code. Its execution is counted before its entry: by the block that it is
    /// derived from, by a call, or by an entry stub.
    pub(crate) counted_before: bool,
    /// Whether no flag is live at its beginning.
    pub(crate) begins_without_flags: bool,
    /// Whether the program's rcx and r11 are held in their slots throughout, as the calls and returns of
    /// trees leave them: see [`treering_x86::context`].
    pub(crate) holds: bool,
}

/// The facts about a translated block that its counts depend on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct BlockFacts {
    /// The first instruction.
    pub(crate) address: u64,
    /// The target of its last instruction, if the instruction contains it. For an indirect transfer, the
    /// target of its inline check, or 0.
    pub(crate) target: u64,
    /// The counter of its executions.
    pub(crate) counter: u32,
    /// The region that it was translated from.
    pub(crate) region: u32,
    /// The length of the program's code, in bytes.
    pub(crate) length: u16,
    /// The number of its instructions.
    pub(crate) instructions: u8,
    /// The length of its last instruction, in bytes.
    pub(crate) last_length: u8,
    /// How it ends.
    pub(crate) end: End,
    /// Whether its executions follow from those of the block before it. Its counter then has the executions
    /// in which that block's branch was taken. See [`crate::emit::side_exit`].
    pub(crate) derived: bool,
    /// Whether its executions count as executions of its successor, which does not count them. See [`crate::counting::propagated_counts`].
    pub(crate) propagates: bool,
    /// Only blocks of lower levels propagate their counts to it. See [`crate::counting::propagated_counts`].
    pub(crate) level: u8,
}

impl Deref for Block {
    type Target = BlockFacts;

    fn deref(&self) -> &BlockFacts {
        &self.facts
    }
}

impl DerefMut for Block {
    fn deref_mut(&mut self) -> &mut BlockFacts {
        &mut self.facts
    }
}

/// How a block ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum End {
    /// It continues with the next instruction.
    #[default]
    Next,
    /// `syscall`.
    System,
    Jump,
    Branch,
    Call,
    IndirectJump,
    IndirectCall,
    Return,
    /// It faults, or the program stops there.
    Stop,
    /// A signal's handler runs, and then the next instruction.
    Trap,
}

impl End {
    /// All ends, in the order of their numbers.
    pub(crate) const ALL: [Self; 10] = [
        Self::Next,
        Self::System,
        Self::Jump,
        Self::Branch,
        Self::Call,
        Self::IndirectJump,
        Self::IndirectCall,
        Self::Return,
        Self::Stop,
        Self::Trap,
    ];

    /// The end with a number.
    pub(crate) fn from_number(number: u32) -> Option<Self> {
        Self::ALL.get(number as usize).copied()
    }
}

/// Where a thread is in a translated block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) block: u32,
    /// The program's instruction, as an offset from the block's address; the block's length if the block is done.
    pub(crate) offset: u16,
    /// The number of the block's instructions that have been executed.
    pub(crate) done: u8,
    /// Whether the thread is between two of the program's instructions, rather than inside the translation of one.
    pub(crate) exact: bool,
    /// Where the translation of the current instruction begins.
    pub(crate) start: u64,
    /// Whether this execution has been counted.
    pub(crate) counted: bool,
    /// Whether its instructions have been added to the tree's count.
    pub(crate) added: bool,
}

/// The steps of a block whose translation is being written.
#[derive(Debug, Default)]
pub(crate) struct Steps(Vec<[u8; 2]>);

impl Steps {
    /// Notes that an instruction of `length` bytes became `emitted` bytes. A length of 0 is for added code.
    pub(crate) fn push(&mut self, length: usize, emitted: u64) {
        debug_assert!(emitted <= 255, "no translation of one instruction is that long");
        self.0.push([length as u8, emitted as u8]);
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

/// All blocks of an address space.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    list: ChunkedVec<Block>,
    current: AddressMap<u32>,
    /// Blocks by the page of their address, for eviction, which is rare.
    pages: HashMap<u64, Vec<u32>>,
    /// The number of blocks in `pages`.
    paged: usize,
    steps: Runs<[u8; 2]>,
}

impl Blocks {
    /// The number of blocks, including retired ones.
    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    pub(crate) fn get(&self, block: u32) -> &Block {
        &self.list[block as usize]
    }

    pub(crate) fn get_mut(&mut self, block: u32) -> &mut Block {
        &mut self.list[block as usize]
    }

    /// The block that begins at an address of the program.
    pub(crate) fn at(&self, address: u64) -> Option<u32> {
        self.current.get(&address).copied()
    }

    /// Adds a block that begins at `entry`; the rest is filled in by [`finish`](Self::finish).
    pub(crate) fn begin(&mut self, address: u64, entry: u64, counter: u32) -> u32 {
        let facts = BlockFacts { address, counter, ..BlockFacts::default() };
        let block = Block { facts, entry, counted_from: u16::MAX, ..Block::default() };
        let id = self.list.len() as u32;
        self.list.push(block);
        self.current.insert(address, id);
        id
    }

    /// Completes a block whose translation ends at `end`.
    pub(crate) fn finish(&mut self, block: u32, end: u64, steps: &Steps) {
        let from = self.steps.add(&steps.0);
        let block = &mut self.list[block as usize];
        block.steps = from;
        block.step_count = steps.0.len() as u8;
        block.emitted = (end - block.entry) as u16;
    }

    fn steps_of(&self, block: &Block) -> &[[u8; 2]] {
        self.steps.get(block.steps, block.step_count.into())
    }

    /// Where the translation of a block's last instruction ends; added code may follow.
    pub(crate) fn behind_last_instruction(&self, block: u32) -> u64 {
        let block = &self.list[block as usize];
        let steps = self.steps_of(block);
        let last = steps.iter().rposition(|&[length, _]| length != 0).map_or(0, |at| at + 1);
        block.entry + steps[..last].iter().map(|&[_, emitted]| u64::from(emitted)).sum::<u64>()
    }

    /// The length of each instruction of a block, in bytes.
    pub(crate) fn lengths(&self, block: u32) -> impl Iterator<Item = u8> + '_ {
        let steps = self.steps_of(&self.list[block as usize]);
        steps.iter().map(|&[length, _]| length).filter(|&length| length != 0)
    }

    /// Where each instruction of a block begins, as an offset from its address.
    pub(crate) fn offsets(&self, block: u32) -> Vec<u64> {
        self.lengths(block)
            .scan(0, |offset, length| {
                let here = *offset;
                *offset += u64::from(length);
                Some(here)
            })
            .collect()
    }

    /// Retires the blocks that overlap the addresses, and returns them.
    pub(crate) fn retire(&mut self, start: u64, end: u64) -> Vec<u32> {
        for id in self.paged..self.list.len() {
            self.pages.entry(self.list[id].address / PAGE).or_default().push(id as u32);
        }
        self.paged = self.list.len();
        let first = start.saturating_sub(LONGEST) / PAGE;
        let pages = end.div_ceil(PAGE) - first;
        let mut retired = Vec::new();
        let mut look = |blocks: &mut Vec<u32>| {
            blocks.retain(|&id| {
                let block = &mut self.list[id as usize];
                let hit = block.address < end && block.address + u64::from(block.length.max(1)) > start;
                if hit && !block.retired {
                    block.retired = true;
                    retired.push(id);
                }
                !hit
            });
        };
        if pages > self.pages.len() as u64 {
            let in_range = self.pages.iter_mut().filter(|(page, _)| (first..first + pages).contains(*page));
            in_range.for_each(|(_, blocks)| look(blocks));
        } else {
            for page in first..first + pages {
                if let Some(blocks) = self.pages.get_mut(&page) {
                    look(blocks);
                }
            }
        }
        for &id in &retired {
            self.forget(id);
        }
        retired
    }

    /// Removes a block from the map of addresses.
    fn forget(&mut self, id: u32) {
        let address = self.list[id as usize].address;
        if self.current.get(&address) == Some(&id) {
            self.current.remove(&address);
        }
    }

    /// Retires one block.
    pub(crate) fn retire_one(&mut self, id: u32) {
        self.list[id as usize].retired = true;
        self.forget(id);
    }

    /// The position in a block of an address of a unit; nothing if the address is between blocks.
    pub(crate) fn position(&self, unit: &Unit, address: u64) -> Option<Position> {
        let after = unit.blocks.partition_point(|&id| self.list[id as usize].entry <= address);
        let &id = unit.blocks[..after].last()?;
        let block = &self.list[id as usize];
        let wanted = address - block.entry;
        if wanted > u64::from(block.emitted) {
            return None;
        }
        let counted = wanted >= u64::from(block.counted_from);
        let added = wanted >= u64::from(block.added_from);
        let mut position =
            Position { block: id, offset: 0, done: 0, exact: true, start: block.entry, counted, added };
        let mut emitted = 0;
        for &[length, bytes] in self.steps_of(block) {
            if emitted == wanted {
                return Some(position);
            }
            position.start = block.entry + emitted;
            emitted += u64::from(bytes);
            if wanted < emitted {
                position.exact = false;
                return Some(position);
            }
            position.offset += u16::from(length);
            position.done += u8::from(length != 0);
        }
        position.start = address;
        // Only a block that continues has code of its own behind its last instruction.
        let goes_on = match block.end {
            End::Next | End::System | End::Trap => true,
            // The execution of a derived block is counted here already: the thread must continue there
            // directly, not by an entry from elsewhere.
            End::Branch => !self.list.get(id as usize + 1).is_some_and(|next| next.derived),
            _ => false,
        };
        (emitted == wanted && goes_on).then_some(position)
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail by panicking")]
mod tests {
    use super::*;
    use crate::cache::unit::UnitMemory;
    use crate::sys::layout::UNIT_SIZE;

    /// A block of three instructions of 2, 3 and 1 bytes, whose counter code comes before the second.
    fn blocks() -> (Blocks, Unit, u64) {
        let mut unit = Unit::new(0x5000_0000, UnitMemory::new(UNIT_SIZE).unwrap(), false);
        let mut blocks = Blocks::default();
        let entry = unit.here();
        let block = blocks.begin(0x1000, entry, 0);
        let kept = blocks.get_mut(block);
        (kept.length, kept.instructions, kept.end, kept.counted_from) = (6, 3, End::Return, 11);
        let mut steps = Steps::default();
        for (length, emitted) in [(2, 2), (0, 9), (3, 3), (1, 30)] {
            steps.push(length, emitted);
        }
        blocks.finish(block, entry + 44, &steps);
        unit.blocks.push(block);
        (blocks, unit, entry)
    }

    #[test]
    fn borders_of_instructions_are_exact_and_their_insides_are_not() {
        let (blocks, unit, entry) = blocks();
        let at = |offset| {
            let position = blocks.position(&unit, entry + offset).unwrap();
            (position.offset, position.done, position.exact, position.counted)
        };
        assert_eq!(at(0), (0, 0, true, false));
        assert_eq!(at(1), (0, 0, false, false));
        assert_eq!(at(2), (2, 1, true, false), "before the stub that counts");
        assert_eq!(at(11), (2, 1, true, true));
        assert_eq!(at(14), (5, 2, true, true));
        assert_eq!(at(20), (5, 2, false, true), "within what stands for the last instruction");
        assert_eq!(blocks.position(&unit, entry + 44), None, "a return goes nowhere");
        assert_eq!(blocks.position(&unit, entry - 1), None);
    }

    #[test]
    fn behind_a_branch_control_is_on_its_way_to_a_derived_block() {
        let (mut blocks, mut unit, entry) = blocks();
        blocks.get_mut(0).end = End::Branch;
        let behind = entry + 44;
        assert_eq!(blocks.position(&unit, behind).unwrap().done, 3);
        // Code that releases registers comes in between.
        let next = blocks.begin(0x1006, behind + 18, 1);
        blocks.get_mut(next).counted_from = 0;
        blocks.finish(next, behind + 20, &Steps::default());
        unit.blocks.push(next);
        assert_eq!(blocks.position(&unit, behind).unwrap().done, 3, "which counts itself");
        blocks.get_mut(next).derived = true;
        assert_eq!(blocks.position(&unit, behind), None);
        assert_eq!(blocks.position(&unit, behind + 18).unwrap().block, next);
    }

    #[test]
    fn blocks_that_touch_changed_code_are_retired_once() {
        let (mut blocks, _, _) = blocks();
        assert!(blocks.retire(0x1006, 0x2000).is_empty());
        assert_eq!(blocks.retire(0x1005, 0x1006), [0]);
        assert_eq!(blocks.at(0x1000), None);
        assert!(blocks.retire(0, u64::MAX).is_empty());
        assert!(blocks.get(0).retired);
    }
}
