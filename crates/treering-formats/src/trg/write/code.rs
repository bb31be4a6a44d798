//! Writes what is known of code by address.

use std::collections::HashMap;
use std::io::Write;

use treering_profile::{
    BlockExecutions, BranchCount, CodeAddress, CodeCounts, Profile, ThreadId, TranslatedBlock,
};

use super::{BLOCK, File, pieces};
use crate::trg::content::{Entry, encode_rows};
use crate::trg::{Kind, WriteError};

type BlockKey = (ThreadId, CodeAddress, u32, u32);
type BranchKey = (ThreadId, u8, Option<CodeAddress>, Option<CodeAddress>);

/// The code that a file holds already.
#[derive(Default)]
pub(super) struct WrittenCode {
    spaces: usize,
    bytes: usize,
    translated: HashMap<BlockKey, u64>,
    partials: usize,
    blocks: usize,
    /// By thread, how many of its rows.
    executions: HashMap<ThreadId, usize>,
    branches: HashMap<BranchKey, u64>,
    lines: usize,
    uncounted: usize,
}

impl WrittenCode {
    /// Whether tables only grew.
    pub(super) fn check_extension(&self, profile: &Profile) -> Result<(), WriteError> {
        let code = &profile.code;
        let lengths = [
            (self.spaces, code.spaces.len()),
            (self.bytes, code.bytes.len()),
            (self.partials, code.partials.len()),
            (self.blocks, code.blocks.len()),
            (self.lines, code.lines.len()),
            (self.uncounted, code.uncounted.len()),
        ];
        let fewer = lengths.iter().any(|(before, now)| before > now)
            || self.executions.iter().any(|(&thread, &before)| before > code.executions.of(thread).len());
        if fewer || (code.translated.is_empty() && !self.translated.is_empty()) {
            return Err(WriteError::NotAnExtension("a table of code has fewer entries"));
        }
        Ok(())
    }

    pub(super) fn update(&mut self, profile: &Profile) {
        let code = &profile.code;
        self.spaces = code.spaces.len();
        self.bytes = code.bytes.len();
        self.translated = block_counts(code);
        self.partials = code.partials.len();
        self.blocks = code.blocks.len();
        let threads = code.executions.threads();
        self.executions = threads.map(|thread| (thread, code.executions.of(thread).len())).collect();
        self.branches = branch_counts(code);
        self.lines = code.lines.len();
        self.uncounted = code.uncounted.len();
    }

    /// The executions of translated blocks that were added.
    fn translated_since(&self, code: &CodeCounts) -> Vec<TranslatedBlock> {
        let fresh = block_counts(code).into_iter().filter_map(|(key, executions)| {
            let known = self.translated.get(&key).copied();
            let (thread, start, length, instructions) = key;
            let executions = executions.saturating_sub(known.unwrap_or(0));
            let block = TranslatedBlock { thread, start, length, instructions, executions };
            (executions > 0 || known.is_none()).then_some(block)
        });
        let mut fresh: Vec<_> = fresh.collect();
        fresh.sort_unstable_by_key(|row| (row.thread, row.start, row.length));
        fresh
    }

    /// The executions of basic blocks that were added.
    fn executions_since<'a>(&'a self, code: &'a CodeCounts) -> impl Iterator<Item = BlockExecutions> + 'a {
        let threads = code.executions.threads();
        threads.flat_map(|thread| {
            let written = self.executions.get(&thread).copied().unwrap_or(0);
            code.executions.of(thread).skip(written)
        })
    }

    /// The counts of branches that were added.
    fn branches_since<'a>(&self, code: &'a CodeCounts) -> impl Iterator<Item = BranchCount> + 'a {
        let mut left = self.branches.clone();
        code.branches.iter().filter_map(move |row| {
            if left.is_empty() {
                return Some(row);
            }
            let known = left.get_mut(&branch_key(&row));
            let is_new = known.is_none();
            let before = known.map_or(0, |known| {
                let taken = (*known).min(row.count);
                *known -= taken;
                taken
            });
            (is_new || row.count > before).then_some(BranchCount { count: row.count - before, ..row })
        })
    }
}

fn block_counts(code: &CodeCounts) -> HashMap<BlockKey, u64> {
    let mut counts: HashMap<BlockKey, u64> = HashMap::new();
    for row in &code.translated {
        let known = counts.entry((row.thread, row.start, row.length, row.instructions)).or_default();
        *known = known.saturating_add(row.executions);
    }
    counts
}

fn branch_key(row: &BranchCount) -> BranchKey {
    (row.thread, row.kind as u8, row.site, row.target)
}

fn branch_counts(code: &CodeCounts) -> HashMap<BranchKey, u64> {
    let mut counts: HashMap<BranchKey, u64> = HashMap::new();
    for row in &code.branches {
        let known = counts.entry(branch_key(&row)).or_default();
        *known = known.saturating_add(row.count);
    }
    counts
}

impl<W: Write> File<W> {
    pub(super) fn code(&mut self, profile: &Profile, written: &WrittenCode) -> Result<(), WriteError> {
        let code = &profile.code;
        self.table(Kind::CodeSpaces, code.spaces.entries(), written.spaces, |_| 0)?;
        for piece in pieces(&code.bytes, written.bytes, |row| row.bytes.len()) {
            self.frame(Kind::CodeBytes, |to| encode_rows(to, &code.bytes[piece]))?;
        }
        self.rows(Kind::Translated, &written.translated_since(code))?;
        self.rows(Kind::Partials, &code.partials[written.partials..])?;
        self.table(Kind::Blocks, &code.blocks, written.blocks, |block| block.lengths.len())?;
        self.stream(Kind::Executions, written.executions_since(code))?;
        self.stream(Kind::Branches, written.branches_since(code))?;
        self.rows(Kind::CodeLines, &code.lines[written.lines..])?;
        self.rows(Kind::Uncounted, &code.uncounted[written.uncounted..])
    }

    /// Writes rows, of which only a frame is in memory.
    fn stream<T: Entry>(&mut self, kind: Kind, mut rows: impl Iterator<Item = T>) -> Result<(), WriteError> {
        let mut piece = Vec::new();
        loop {
            piece.clear();
            piece.extend(rows.by_ref().take(BLOCK));
            if piece.is_empty() {
                return Ok(());
            }
            self.rows(kind, &piece)?;
        }
    }
}
