//! Counts of several profiles in the blocks that are common to them.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use crate::{
    BasicBlock, BlockExecutions, BlockId, BranchCount, BranchKind, CodeAddress, CodeCounts, CodeLine,
    CodeSpaceId, Lengths, LineId, PartialCount, ThreadId, TranslatedBlock, Uncounted,
};

/// The numbers in one profile of another's entries.
pub(crate) struct Moved<'a> {
    /// Nothing for threads that are left out, with their counts.
    pub(crate) threads: &'a dyn Fn(ThreadId) -> Option<ThreadId>,
    pub(crate) spaces: &'a dyn Fn(CodeSpaceId) -> CodeSpaceId,
    pub(crate) function: &'a dyn Fn(crate::FunctionId) -> crate::FunctionId,
    pub(crate) line: &'a dyn Fn(LineId) -> LineId,
    pub(crate) string: &'a dyn Fn(crate::StringId) -> crate::StringId,
    pub(crate) process: &'a dyn Fn(crate::ProcessId) -> crate::ProcessId,
}

impl Moved<'_> {
    fn at(&self, at: CodeAddress) -> CodeAddress {
        CodeAddress { space: (self.spaces)(at.space), ..at }
    }

    fn uncounted(&self, row: &Uncounted) -> Option<Uncounted> {
        let thread = match row.thread {
            Some(thread) => Some((self.threads)(thread)?),
            None => None,
        };
        let process = row.process.map(|process| (self.process)(process));
        let (at, detail) = (row.at.map(|at| self.at(at)), (self.string)(row.detail));
        Some(Uncounted { reason: row.reason, process, thread, at, detail })
    }
}

/// The state while the counts of several profiles are added.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    /// The lines of all instructions so far.
    lines: BTreeMap<CodeAddress, Option<LineId>>,
    /// Where in the table the bytes from an address on are.
    bytes: HashMap<CodeAddress, Vec<usize>>,
}

impl Parts {
    /// The counts that others are added to.
    fn of(counts: &CodeCounts) -> Self {
        let mut parts = Self { lines: counts.instruction_lines().collect(), ..Self::default() };
        for (at, row) in counts.bytes.iter().enumerate() {
            parts.bytes.entry(row.start).or_default().push(at);
        }
        parts
    }
}

impl CodeCounts {
    /// Adds the counts of another profile, whose entries are here what `moved` says.
    pub(crate) fn append(&mut self, from: &Self, moved: &Moved<'_>) {
        let mut parts = Parts::of(self);
        self.append_part(from, moved, &mut parts);
        self.finish_parts(parts);
    }

    /// Adds the counts of one of several profiles. They agree with each other, and may be read, once
    /// [`finish_parts`](Self::finish_parts) was called behind the last one.
    pub(crate) fn append_part(&mut self, from: &Self, moved: &Moved<'_>, parts: &mut Parts) {
        parts.lines.extend(from.instruction_lines().map(|(at, line)| (moved.at(at), line.map(moved.line))));
        self.append_counts(from, moved, parts);
        self.append_blocks(from, moved);
    }

    /// Makes one of the counts of several profiles.
    ///
    /// Blocks that they divide differently are divided where any of them does; lines stay with the
    /// instructions that they were stated for.
    pub(crate) fn finish_parts(&mut self, parts: Parts) {
        self.divide();
        self.forget_partly_known();
        self.lines = line_rows(parts.lines);
    }

    fn append_counts(&mut self, from: &Self, moved: &Moved<'_>, parts: &mut Parts) {
        for row in &from.bytes {
            let row = crate::CodeBytes { start: moved.at(row.start), ..row.clone() };
            let known = parts.bytes.entry(row.start).or_default();
            if !known.iter().any(|&at| self.bytes[at] == row) {
                known.push(self.bytes.len());
                self.bytes.push(row);
            }
        }
        let thread = moved.threads;
        let translated = |row: TranslatedBlock| TranslatedBlock { start: moved.at(row.start), ..row };
        self.translated.append(&from.translated, thread, translated);
        self.partials.extend(from.partials.iter().filter_map(|row| {
            Some(PartialCount { thread: thread(row.thread)?, start: moved.at(row.start), ..*row })
        }));
        self.branches.append(&from.branches, thread, |row| {
            let (site, target) = (row.site.map(|at| moved.at(at)), row.target.map(|at| moved.at(at)));
            BranchCount { site, target, ..row }
        });
        self.modelled.extend(from.modelled.iter().filter_map(|row| {
            Some(crate::ModelledCount { thread: thread(row.thread)?, at: moved.at(row.at), ..*row })
        }));
        self.uncounted.extend(from.uncounted.iter().filter_map(|row| moved.uncounted(row)));
    }

    fn append_blocks(&mut self, from: &Self, moved: &Moved<'_>) {
        let first = self.blocks.len();
        self.blocks.extend(from.blocks.iter().map(|block| BasicBlock {
            start: moved.at(block.start),
            lengths: block.lengths.clone(),
            function: block.function.map(moved.function),
        }));
        self.executions.append(&from.executions, moved.threads, |row| {
            let block = BlockId::from_usize(first + row.block.index());
            BlockExecutions { block, ..row }
        });
    }

    /// Divides blocks that overlap so that none do, and adds up what is counted more than once.
    fn divide(&mut self) {
        #[cfg(test)]
        tests::DIVIDED.with(|divided| divided.set(divided.get() + self.blocks.len()));
        let bounds: BTreeSet<_> = self.blocks.iter().flat_map(|block| [block.start, block.end()]).collect();
        let parts: Vec<_> = self.blocks.iter().map(|block| divided(block, &bounds)).collect();
        let mut blocks: BTreeMap<(CodeAddress, Lengths), BasicBlock> = BTreeMap::new();
        for part in parts.iter().flatten() {
            let kept = blocks.entry((part.start, part.lengths.clone())).or_insert_with(|| part.clone());
            kept.function = kept.function.or(part.function);
        }
        let ids: HashMap<_, _> = blocks.keys().enumerate().map(|(at, key)| (key, at)).collect();
        let id = |part: &BasicBlock| BlockId::from_usize(ids[&(part.start, part.lengths.clone())]);
        self.executions.rewrite(|rows| {
            let divided = rows.iter().flat_map(|row| {
                let (parts, id) = (&parts[row.block.index()], &id);
                parts.iter().map(move |part| BlockExecutions { block: id(part), ..*row })
            });
            *rows = divided.collect();
        });
        self.blocks = blocks.into_values().collect();
        self.compact();
    }

    /// Leaves out conditional branches that some threads that executed them know nothing of: what the
    /// others counted is not all.
    fn forget_partly_known(&mut self) {
        let conditional = |row: &BranchCount| row.kind == BranchKind::Conditional;
        let sites: HashSet<_> =
            self.branches.distinct().filter(|(row, _)| conditional(row)).map(|(row, _)| row.site).collect();
        if sites.is_empty() {
            return;
        }
        // Threads that share both lists know the same.
        let mut seen = HashSet::new();
        let mut partly = HashSet::new();
        for thread in self.executions.threads() {
            if !seen.insert((self.executions.list(thread), self.branches.list(thread))) {
                continue;
            }
            let known: HashSet<_> =
                self.branches.of(thread).filter(conditional).map(|row| row.site).collect();
            let executed = self.executions.of(thread).filter(|row| row.executions > 0);
            let executed = executed.map(|row| Some(self.blocks[row.block.index()].last()));
            partly.extend(executed.filter(|site| sites.contains(site) && !known.contains(site)));
        }
        if !partly.is_empty() {
            self.branches.retain(|row| !conditional(row) || !partly.contains(&row.site));
        }
    }

    /// Joins rows that agree in all but the count, and sorts them.
    pub fn compact(&mut self) {
        // Most are in order already, or a few tables one behind the other are: stable sorting sees that.
        self.executions.rewrite(|rows| {
            let key = |row: &BlockExecutions| row.block;
            rows.sort_by_key(key);
            join(rows, key, |row| &mut row.executions);
        });
        self.branches.rewrite(|rows| {
            let key = |row: &BranchCount| (row.site, row.kind, row.target);
            rows.sort_by_key(key);
            join(rows, key, |row| &mut row.count);
        });
        self.translated.rewrite(|rows| {
            let key = |row: &TranslatedBlock| (row.start, row.length, row.instructions);
            rows.sort_unstable_by_key(key);
            join(rows, key, |row| &mut row.executions);
        });
    }

    /// Every instruction of the basic blocks with its line; a line that is not known is nothing.
    pub fn instruction_lines(&self) -> impl Iterator<Item = (CodeAddress, Option<LineId>)> + '_ {
        let places = self.blocks.iter().flat_map(|block| block.places().map(|(at, _)| at));
        places.map(|at| (at, self.line(at)))
    }

    /// The source line of an instruction, where known.
    pub fn line(&self, at: CodeAddress) -> Option<LineId> {
        let after = self.lines.partition_point(|row| row.start <= at);
        let row = self.lines.get(after.checked_sub(1)?)?;
        row.line.filter(|_| row.start.space == at.space)
    }
}

/// The pieces of a block between the bounds that lie in it.
fn divided(block: &BasicBlock, bounds: &BTreeSet<CodeAddress>) -> Vec<BasicBlock> {
    let mut parts = Vec::new();
    let mut part = BasicBlock { start: block.start, lengths: Lengths::new(), function: block.function };
    let mut lengths = Lengths::new();
    for (at, length) in block.places() {
        if !lengths.is_empty() && bounds.contains(&at) {
            let done = BasicBlock { lengths: std::mem::take(&mut lengths), ..part.clone() };
            parts.push(done);
            part.start = at;
        }
        lengths.push(length);
    }
    parts.push(BasicBlock { lengths, ..part });
    parts
}

/// Adds up neighbours of equal key.
fn join<T, K: PartialEq>(rows: &mut Vec<T>, key: impl Fn(&T) -> K, count: impl Fn(&mut T) -> &mut u64) {
    rows.dedup_by(|next, kept| {
        let same = key(next) == key(kept);
        if same {
            let more = *count(next);
            *count(kept) = count(kept).saturating_add(more);
        }
        same
    });
}

/// The rows that say of each instruction what `lines` does.
pub(crate) fn line_rows(lines: impl IntoIterator<Item = (CodeAddress, Option<LineId>)>) -> Vec<CodeLine> {
    let mut rows: Vec<CodeLine> = Vec::new();
    for (start, line) in lines {
        let last = rows.last().filter(|row| row.start.space == start.space);
        if last.map_or(line.is_some(), |row| row.line != line) {
            rows.push(CodeLine { start, line });
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use crate::{CodeSpace, Profile, RecursionRule, StatedAddress, merge};

    use super::*;

    thread_local! {
        /// How many blocks were looked at in order to divide them.
        pub(super) static DIVIDED: Cell<usize> = const { Cell::new(0) };
    }

    /// The number of blocks that are examined to merge `profiles` profiles of ten blocks each.
    fn divided(profiles: usize) -> usize {
        let profiles: Vec<Profile> = (0..profiles).map(|_| counts_of_ten_blocks()).collect();
        let before = DIVIDED.get();
        let merged = merge(&profiles.iter().collect::<Vec<_>>());
        assert_eq!(merged.code.blocks.len(), 10);
        assert_eq!(merged.code.executions.len(), 10 * profiles.len());
        DIVIDED.get() - before
    }

    fn counts_of_ten_blocks() -> Profile {
        let mut profile = Profile::new(RecursionRule::Full);
        let thread = profile.add_single_thread("counted");
        let space = profile.code.spaces.intern(CodeSpace { module: None, generation: 0 });
        for block in 0..10_u32 {
            let start = CodeAddress { space, address: StatedAddress(u64::from(block) * 16) };
            profile.code.blocks.push(BasicBlock {
                start,
                lengths: [4_u8, 2].as_slice().into(),
                function: None,
            });
            let block = BlockId::from_usize(block as usize);
            profile.code.executions.push(BlockExecutions { thread, block, executions: 1 });
        }
        profile
    }

    #[test]
    fn merging_looks_at_each_block_of_each_profile_once() {
        // Every file had the blocks of all before it divided again.
        assert_eq!((divided(10), divided(40)), (100, 400));
    }
}
