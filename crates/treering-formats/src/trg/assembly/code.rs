//! Puts together what is known of code by address.

use treering_profile::{
    BasicBlock, BlockExecutions, BranchCount, CodeAddress, CodeBytes, CodeCounts, CodeLine, CodeSpace,
    CodeSpaceId, Interner, OfThread, PartialCount, Profile, Thread, ThreadId, ThreadRows, TranslatedBlock,
    Uncounted,
};

use super::detail::thread_places;
use super::{append, ensure, extend};
use crate::trg::Damage;
use crate::trg::content::Table;

/// The contents of frames 19 to 27 so far.
#[derive(Default)]
pub(crate) struct Code {
    spaces: Vec<CodeSpace>,
    counts: CodeCounts,
}

/// How long the tables are that code refers to.
#[derive(Clone, Copy)]
pub(crate) struct CodeLengths {
    pub(crate) strings: usize,
    pub(crate) modules: usize,
    pub(crate) functions: usize,
    pub(crate) lines: usize,
    pub(crate) processes: usize,
    pub(crate) threads: usize,
}

const MISSING_THREAD: &str = "it is of a thread that is missing";
const MISSING_SPACE: &str = "it is of code that is missing";

impl Code {
    fn has(&self, at: CodeAddress) -> bool {
        at.space.index() < self.spaces.len()
    }

    pub(crate) fn spaces(&mut self, table: Table<CodeSpace>, known: CodeLengths) -> Result<(), Damage> {
        let module = |space: &CodeSpace| space.module.is_none_or(|module| module.index() < known.modules);
        ensure(table.entries.iter().all(module), "the module of code is missing")?;
        extend(&mut self.spaces, table)
    }

    pub(crate) fn bytes(&mut self, rows: Vec<CodeBytes>) -> Result<(), Damage> {
        ensure(rows.iter().all(|row| self.has(row.start)), MISSING_SPACE)?;
        append(&mut self.counts.bytes, rows);
        Ok(())
    }

    pub(crate) fn translated(
        &mut self,
        rows: Vec<TranslatedBlock>,
        known: CodeLengths,
    ) -> Result<(), Damage> {
        ensure(rows.iter().all(|row| self.has(row.start)), MISSING_SPACE)?;
        ensure(rows.iter().all(|row| row.thread.index() < known.threads), MISSING_THREAD)?;
        self.counts.translated.extend(rows);
        Ok(())
    }

    pub(crate) fn partials(&mut self, rows: Vec<PartialCount>, known: CodeLengths) -> Result<(), Damage> {
        ensure(rows.iter().all(|row| self.has(row.start)), MISSING_SPACE)?;
        ensure(rows.iter().all(|row| row.thread.index() < known.threads), MISSING_THREAD)?;
        append(&mut self.counts.partials, rows);
        Ok(())
    }

    pub(crate) fn blocks(&mut self, table: Table<BasicBlock>, known: CodeLengths) -> Result<(), Damage> {
        let rows = &table.entries;
        ensure(rows.iter().all(|row| self.has(row.start)), MISSING_SPACE)?;
        let function = |row: &BasicBlock| row.function.is_none_or(|f| f.index() < known.functions);
        ensure(rows.iter().all(function), "the function of a block is missing")?;
        let sound = |row: &BasicBlock| row.lengths.iter().all(|length| (1..=15).contains(length));
        ensure(rows.iter().all(sound), "an instruction is longer than 15 bytes or empty")?;
        let last = self.counts.blocks.last();
        let behind = rows.first().is_none_or(|first| last.is_none_or(|last| last.start <= first.start));
        ensure(behind && rows.is_sorted_by_key(|row| row.start), "the blocks are not sorted")?;
        extend(&mut self.counts.blocks, table)
    }

    pub(crate) fn executions(
        &mut self,
        rows: Vec<BlockExecutions>,
        known: CodeLengths,
    ) -> Result<(), Damage> {
        let blocks = self.counts.blocks.len();
        ensure(rows.iter().all(|row| row.block.index() < blocks), "it is of a block that is missing")?;
        ensure(rows.iter().all(|row| row.thread.index() < known.threads), MISSING_THREAD)?;
        self.counts.executions.extend(rows);
        Ok(())
    }

    pub(crate) fn branches(&mut self, rows: Vec<BranchCount>, known: CodeLengths) -> Result<(), Damage> {
        let mut places = rows.iter().flat_map(|row| [row.site, row.target]).flatten();
        ensure(places.all(|at| self.has(at)), MISSING_SPACE)?;
        ensure(rows.iter().all(|row| row.thread.index() < known.threads), MISSING_THREAD)?;
        self.counts.branches.extend(rows);
        Ok(())
    }

    pub(crate) fn lines(&mut self, rows: Vec<CodeLine>, known: CodeLengths) -> Result<(), Damage> {
        ensure(rows.iter().all(|row| self.has(row.start)), MISSING_SPACE)?;
        let line = |row: &CodeLine| row.line.is_none_or(|line| line.index() < known.lines);
        ensure(rows.iter().all(line), "the line of an address is missing")?;
        let last = self.counts.lines.last();
        let behind = rows.first().is_none_or(|first| last.is_none_or(|last| last.start <= first.start));
        ensure(behind && rows.is_sorted_by_key(|row| row.start), "the lines of addresses are not sorted")?;
        append(&mut self.counts.lines, rows);
        Ok(())
    }

    pub(crate) fn uncounted(&mut self, rows: Vec<Uncounted>, known: CodeLengths) -> Result<(), Damage> {
        let fits = |row: &Uncounted| {
            row.at.is_none_or(|at| self.has(at))
                && row.process.is_none_or(|process| process.index() < known.processes)
                && row.thread.is_none_or(|thread| thread.index() < known.threads)
                && row.detail.index() < known.strings
        };
        ensure(rows.iter().all(fits), "an uncounted part refers to something missing")?;
        append(&mut self.counts.uncounted, rows);
        Ok(())
    }

    /// Hands everything over. `threads` are all that the file has; the counts of those whose root was
    /// not read are left out with them.
    pub(crate) fn finish(self, profile: &mut Profile, threads: &[Thread]) {
        let places = thread_places(profile.tree.len(), threads);
        let renumber = |thread: &mut ThreadId| {
            let place = places[thread.index()];
            *thread = place.map_or(*thread, ThreadId::from_usize);
            place.is_some()
        };
        let mut counts = self.counts;
        let now = |thread: ThreadId| {
            let mut thread = thread;
            renumber(&mut thread).then_some(thread)
        };
        counts.translated = of_threads(counts.translated, now);
        counts.executions = of_threads(counts.executions, now);
        counts.branches = of_threads(counts.branches, now);
        counts.partials.retain_mut(|row| renumber(&mut row.thread));
        counts.uncounted.retain_mut(|row| row.thread.as_mut().is_none_or(renumber));
        counts.spaces = Interner::<CodeSpaceId, CodeSpace>::from_entries(self.spaces);
        profile.code = counts;
    }
}

/// The rows by what their threads are now; of some, nothing.
fn of_threads<T: OfThread>(rows: ThreadRows<T>, now: impl Fn(ThreadId) -> Option<ThreadId>) -> ThreadRows<T> {
    if rows.threads().all(|thread| now(thread) == Some(thread)) {
        return rows;
    }
    let mut moved = ThreadRows::default();
    moved.append(&rows, now, |row| row);
    moved
}
