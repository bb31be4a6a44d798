//! The counts of a function's basic blocks.

use std::collections::{BTreeMap, HashMap};

use treering_profile::{
    BlockId, BranchCount, BranchKind, CodeAddress, CodeCounts, FunctionId, LineId, Profile,
};

use crate::identity::Identity;

/// The basic blocks of one function and how often each was executed, all threads added up.
///
/// Exact: the instructions of the blocks add up to the function's self cost in the metric
/// `instructions`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockTable {
    /// The function.
    pub function: FunctionId,
    /// How many instructions its blocks executed.
    pub instructions: u64,
    /// How many instructions all blocks of the profile executed: what percentages are of.
    pub run_instructions: u64,
    /// Its blocks, by address.
    pub blocks: Vec<BlockRow>,
}

/// A basic block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockRow {
    /// The block in [`CodeCounts::blocks`](treering_profile::CodeCounts::blocks).
    pub block: BlockId,
    /// How often it was executed.
    pub executions: u64,
    /// Its instructions, by address.
    pub instructions: Vec<InstructionRow>,
    /// For a block that ends in a conditional branch whose count is known, how often that was taken
    /// and how often not.
    pub ways: Option<Ways>,
    /// Where control went from its last instruction, other than to the next, most often first.
    pub exits: Vec<Exit>,
    /// How many signals came before an instruction of it was executed.
    pub signals: u64,
}

impl BlockRow {
    /// How many instructions its executions are.
    pub fn instructions_executed(&self) -> u64 {
        instructions_executed(self.executions, self.instructions.len())
    }
}

/// An instruction of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstructionRow {
    /// Where it is.
    pub at: CodeAddress,
    /// How many bytes it has.
    pub length: u8,
    /// Its source line, where known.
    pub line: Option<LineId>,
}

/// The ways of a conditional branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ways {
    /// How often it was taken.
    pub taken: u64,
    /// How often it was not.
    pub not_taken: u64,
}

/// A place that control went to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exit {
    /// How it went.
    pub kind: BranchKind,
    /// The place, where known.
    pub target: Option<CodeAddress>,
    /// The function there, where known.
    pub function: Option<FunctionId>,
    /// How often.
    pub count: u64,
}

impl BlockTable {
    /// The blocks of `function`; nothing where the profile has no basic blocks at all.
    pub fn of(profile: &Profile, function: FunctionId) -> Option<Self> {
        let code = &profile.code;
        if code.blocks.is_empty() {
            return None;
        }
        let identity = Identity::of(profile);
        let function = identity.representative(function);
        let is_its =
            |other: Option<FunctionId>| other.map(|other| identity.representative(other)) == Some(function);
        let executions = executions(code);
        let branches = branches(code);
        let mut blocks = Vec::new();
        for (at, block) in code.blocks.iter().enumerate() {
            let executed = executions[at];
            if is_its(block.function) && executed > 0 {
                blocks.push(row(code, BlockId::from_usize(at), executed, &branches));
            }
        }
        let instructions = blocks.iter().map(BlockRow::instructions_executed).fold(0, u64::saturating_add);
        Some(Self { function, instructions, run_instructions: code.block_instructions(), blocks })
    }

    /// The blocks of every function that executed any, in the order of the functions' indexes.
    pub fn all(profile: &Profile) -> Vec<Self> {
        let code = &profile.code;
        let identity = Identity::of(profile);
        let executions = executions(code);
        let branches = branches(code);
        let mut blocks: BTreeMap<FunctionId, Vec<BlockRow>> = BTreeMap::new();
        for (at, block) in code.blocks.iter().enumerate() {
            if let (Some(function), true) = (block.function, executions[at] > 0) {
                let row = row(code, BlockId::from_usize(at), executions[at], &branches);
                blocks.entry(identity.representative(function)).or_default().push(row);
            }
        }
        let run_instructions = code.block_instructions();
        let table = |(function, blocks): (FunctionId, Vec<BlockRow>)| {
            let instructions =
                blocks.iter().map(BlockRow::instructions_executed).fold(0, u64::saturating_add);
            Self { function, instructions, run_instructions, blocks }
        };
        blocks.into_iter().map(table).collect()
    }

    /// The part of all executed instructions, 0..=1.
    pub fn share(&self, instructions: u64) -> f64 {
        if self.run_instructions == 0 { 0.0 } else { instructions as f64 / self.run_instructions as f64 }
    }
}

/// The instructions of `executions` executions of a block.
pub(crate) fn instructions_executed(executions: u64, instructions: usize) -> u64 {
    executions.saturating_mul(instructions as u64)
}

/// Executions of every block, all threads added up.
pub(crate) fn executions(code: &CodeCounts) -> Vec<u64> {
    let mut executions = vec![0_u64; code.blocks.len()];
    for (row, threads) in code.executions.distinct() {
        let known = &mut executions[row.block.index()];
        *known = known.saturating_add(row.executions.saturating_mul(threads));
    }
    executions
}

/// Branches of all threads by the instruction that they left from.
fn branches(code: &CodeCounts) -> HashMap<CodeAddress, Vec<BranchCount>> {
    let mut branches: HashMap<_, Vec<_>> = HashMap::new();
    for (branch, threads) in code.branches.distinct() {
        if let Some(site) = branch.site {
            let count = branch.count.saturating_mul(threads);
            branches.entry(site).or_default().push(BranchCount { count, ..branch });
        }
    }
    branches
}

fn row(
    code: &CodeCounts,
    id: BlockId,
    executions: u64,
    branches: &HashMap<CodeAddress, Vec<BranchCount>>,
) -> BlockRow {
    let block = &code.blocks[id.index()];
    let instruction = |(at, length)| InstructionRow { at, length, line: code.line(at) };
    let instructions: Vec<_> = block.places().map(instruction).collect();
    let of_site = |at: CodeAddress| branches.get(&at).map_or(&[][..], Vec::as_slice).iter();
    let signals = |at: CodeAddress| of_site(at).filter(|row| row.kind == BranchKind::Signal);
    let signals = instructions.iter().flat_map(|row| signals(row.at)).map(|row| row.count).sum();
    let mut conditional = of_site(block.last()).filter(|row| row.kind == BranchKind::Conditional).peekable();
    let ways = conditional.peek().is_some().then(|| {
        let taken = conditional.map(|row| row.count).fold(0, u64::saturating_add);
        Ways { taken, not_taken: executions.saturating_sub(taken) }
    });
    let leaving = of_site(block.last()).filter(|row| row.kind != BranchKind::Signal);
    BlockRow { block: id, executions, instructions, ways, exits: exits(code, leaving), signals }
}

/// Branches of all threads, by kind and target.
fn exits<'a>(code: &CodeCounts, branches: impl Iterator<Item = &'a BranchCount>) -> Vec<Exit> {
    let mut counts: BTreeMap<_, u64> = BTreeMap::new();
    for branch in branches.filter(|branch| branch.count > 0) {
        let known = counts.entry((branch.kind, branch.target)).or_default();
        *known = known.saturating_add(branch.count);
    }
    let exit = |((kind, target), count): ((BranchKind, Option<CodeAddress>), u64)| Exit {
        kind,
        target,
        function: target.and_then(|target| function_at(code, target)),
        count,
    };
    let mut exits: Vec<_> = counts.into_iter().map(exit).collect();
    exits.sort_by_key(|exit| std::cmp::Reverse(exit.count));
    exits
}

/// The function of the block that an address is in.
fn function_at(code: &CodeCounts, at: CodeAddress) -> Option<FunctionId> {
    let after = code.blocks.partition_point(|block| block.start <= at);
    let block = &code.blocks[after.checked_sub(1)?];
    let inside = block.start.space == at.space && at.address.0 - block.start.address.0 < block.length();
    block.function.filter(|_| inside)
}

#[cfg(test)]
mod tests {
    use treering_profile::{
        BasicBlock, BlockExecutions, CodeSpace, Function, RecursionRule, StatedAddress, ThreadId,
    };

    use super::*;

    /// Two threads in a loop of `f`, which calls `g` twice.
    fn profile() -> (Profile, FunctionId) {
        let mut profile = Profile::new(RecursionRule::Full);
        let threads = [profile.add_single_thread("a"), profile.add_single_thread("b")];
        let names = ["f", "g"].map(|name| profile.strings.intern(name));
        let [f, g] = names.map(|name| profile.functions.intern(Function::named(name)));
        let space = profile.code.spaces.intern(CodeSpace { module: None, generation: 0 });
        let at = |address| CodeAddress { space, address: StatedAddress(address) };
        let block = |start, lengths: &[u8], function| BasicBlock {
            start: at(start),
            lengths: lengths.into(),
            function: Some(function),
        };
        profile.code.blocks = vec![block(0x10, &[3, 2], f), block(0x15, &[5], f), block(0x40, &[1], g)];
        let executed = |thread: ThreadId, block: u32, executions| BlockExecutions {
            thread,
            block: BlockId::new(block),
            executions,
        };
        profile.code.executions = [
            executed(threads[0], 0, 10),
            executed(threads[1], 0, 5),
            executed(threads[0], 1, 2),
            executed(threads[0], 2, 2),
        ]
        .into();
        let branch = |thread, kind, site, target, count| BranchCount {
            thread,
            kind,
            site: Some(at(site)),
            target: Some(at(target)),
            count,
        };
        profile.code.branches = [
            branch(threads[0], BranchKind::Conditional, 0x13, 0x10, 8),
            branch(threads[1], BranchKind::Conditional, 0x13, 0x10, 4),
            branch(threads[0], BranchKind::Call, 0x15, 0x40, 2),
            branch(threads[0], BranchKind::Signal, 0x10, 0x40, 1),
        ]
        .into();
        (profile, f)
    }

    #[test]
    fn executions_and_branches_of_all_threads_are_added_up() {
        let (profile, f) = profile();
        let table = BlockTable::of(&profile, f).expect("there are blocks");
        assert_eq!((table.instructions, table.run_instructions), (32, 34));
        assert_eq!(table.share(17), 0.5);
        let [around, call] = &table.blocks[..] else { panic!("f has two blocks: {table:?}") };
        assert_eq!((around.executions, around.signals), (15, 1));
        assert_eq!(around.ways, Some(Ways { taken: 12, not_taken: 3 }));
        assert_eq!((call.executions, call.ways), (2, None));
        let exit = &call.exits[0];
        let callee = exit.function.map(|callee| &profile.strings[profile.functions[callee].name]);
        assert_eq!((exit.kind, callee, exit.count), (BranchKind::Call, Some("g"), 2));
    }

    #[test]
    fn a_branch_that_was_not_counted_has_no_ways() {
        let (mut profile, f) = profile();
        profile.code.branches.retain(|row| row.kind != BranchKind::Conditional);
        let table = BlockTable::of(&profile, f).expect("there are blocks");
        assert_eq!(table.blocks[0].ways, None);
        profile.code = CodeCounts::default();
        assert_eq!(BlockTable::of(&profile, f), None);
    }
}
