//! The basic blocks of a whole program, by what they cost.

use std::cmp::Reverse;

use treering_profile::{BlockId, CodeAddress, FunctionId, LineId, Profile};

use crate::block_table::{executions, instructions_executed};
use crate::identity::Identity;

/// The basic blocks that were executed, those with the most executed instructions first: the table of pixie.
///
/// Exact: the instructions of all rows add up to [`run_instructions`](Self::run_instructions).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockList {
    /// How many instructions all blocks executed: what shares are of.
    pub run_instructions: u64,
    /// The blocks, by executed instructions, then by address.
    pub rows: Vec<ListedBlock>,
}

/// A basic block among all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedBlock {
    /// The block in [`CodeCounts::blocks`](treering_profile::CodeCounts::blocks).
    pub block: BlockId,
    /// Its function, where known.
    pub function: Option<FunctionId>,
    /// Its first byte.
    pub start: CodeAddress,
    /// The byte behind its last.
    pub end: CodeAddress,
    /// The source line of its first instruction, where known.
    pub line: Option<LineId>,
    /// How often it was executed.
    pub executions: u64,
    /// How many instructions an execution is.
    pub instructions: u64,
    /// How many instructions all its executions are.
    pub instructions_executed: u64,
    /// The instructions of this row and of all above it.
    pub running_sum: u64,
}

impl BlockList {
    /// The executed blocks of a profile, all threads added up; nothing where it has no basic blocks at all.
    pub fn of(profile: &Profile) -> Option<Self> {
        let code = &profile.code;
        if code.blocks.is_empty() {
            return None;
        }
        let identity = Identity::of(profile);
        let counted = code.blocks.iter().zip(executions(code)).enumerate();
        let executed = counted.filter(|(_, (_, executions))| *executions > 0);
        let mut rows: Vec<_> = executed
            .map(|(at, (block, executions))| ListedBlock {
                block: BlockId::from_usize(at),
                function: block.function.map(|function| identity.representative(function)),
                start: block.start,
                end: block.end(),
                line: code.line(block.start),
                executions,
                instructions: block.instructions() as u64,
                instructions_executed: instructions_executed(executions, block.instructions()),
                running_sum: 0,
            })
            .collect();
        rows.sort_by_key(|row| (Reverse(row.instructions_executed), row.start));
        let mut sum = 0_u64;
        for row in &mut rows {
            sum = sum.saturating_add(row.instructions_executed);
            row.running_sum = sum;
        }
        Some(Self { run_instructions: code.block_instructions(), rows })
    }

    /// The part of all executed instructions, 0..=1.
    pub fn share(&self, instructions: u64) -> f64 {
        if self.run_instructions == 0 { 0.0 } else { instructions as f64 / self.run_instructions as f64 }
    }
}

#[cfg(test)]
mod tests {
    use treering_profile::{BasicBlock, BlockExecutions, CodeSpace, Function, RecursionRule, StatedAddress};

    use super::*;

    #[test]
    fn blocks_are_sorted_by_their_instructions_and_add_up_to_the_run() {
        let mut profile = Profile::new(RecursionRule::Full);
        let threads = [profile.add_single_thread("a"), profile.add_single_thread("b")];
        let name = profile.strings.intern("f");
        let f = profile.functions.intern(Function::named(name));
        let space = profile.code.spaces.intern(CodeSpace { module: None, generation: 0 });
        let at = |address| CodeAddress { space, address: StatedAddress(address) };
        let block = |start, lengths: &[u8], function| BasicBlock {
            start: at(start),
            lengths: lengths.into(),
            function,
        };
        profile.code.blocks = vec![
            block(0x10, &[3, 2], Some(f)),
            block(0x15, &[5], Some(f)),
            block(0x1a, &[1, 1, 1], None),
            block(0x40, &[1], Some(f)),
        ];
        let executed =
            |thread, block, executions| BlockExecutions { thread, block: BlockId::new(block), executions };
        profile.code.executions = [
            executed(threads[0], 0, 10),
            executed(threads[1], 0, 5),
            executed(threads[0], 1, 90),
            executed(threads[1], 2, 1),
        ]
        .into();
        let list = BlockList::of(&profile).expect("there are blocks");
        let told: Vec<_> = list
            .rows
            .iter()
            .map(|row| {
                (
                    row.start.address.0,
                    row.end.address.0,
                    row.executions,
                    row.instructions_executed,
                    row.running_sum,
                )
            })
            .collect();
        assert_eq!(told, [(0x15, 0x1a, 90, 90, 90), (0x10, 0x15, 15, 30, 120), (0x1a, 0x1d, 1, 3, 123)]);
        assert_eq!((list.run_instructions, list.rows[2].function), (123, None));
        assert_eq!(list.share(123), 1.0);
    }
}
