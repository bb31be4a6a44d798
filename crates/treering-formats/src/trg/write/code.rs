//! Writes what is known of code by address.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::Write;

use treering_profile::{BranchCount, CodeAddress, CodeCounts, Profile, ThreadId, TranslatedBlock};

use super::{BLOCK, File, pieces};
use crate::trg::content::{
    encode_blocks, encode_branches, encode_bytes, encode_code_lines, encode_executions, encode_partials,
    encode_spaces, encode_translated, encode_uncounted,
};
use crate::trg::{Kind, WriteError};

type BlockKey = (ThreadId, CodeAddress, u32, u32);
type BranchKey = (ThreadId, u8, Option<CodeAddress>, Option<CodeAddress>);

/// What of the code a file holds already.
#[derive(Default)]
pub(super) struct WrittenCode {
    spaces: usize,
    bytes: usize,
    translated: HashMap<BlockKey, u64>,
    partials: usize,
    blocks: usize,
    executions: usize,
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
            (self.executions, code.executions.len()),
            (self.lines, code.lines.len()),
            (self.uncounted, code.uncounted.len()),
        ];
        let fewer = lengths.iter().any(|(before, now)| before > now);
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
        self.executions = code.executions.len();
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

    /// The counts of branches that were added.
    fn branches_since<'a>(&self, code: &'a CodeCounts) -> Cow<'a, [BranchCount]> {
        if self.branches.is_empty() {
            return Cow::Borrowed(&code.branches);
        }
        let mut left = self.branches.clone();
        let fresh = code.branches.iter().filter_map(|row| {
            let known = left.get_mut(&branch_key(row));
            let is_new = known.is_none();
            let before = known.map_or(0, |known| {
                let taken = (*known).min(row.count);
                *known -= taken;
                taken
            });
            (is_new || row.count > before).then_some(BranchCount { count: row.count - before, ..*row })
        });
        fresh.collect()
    }
}

fn block_counts(code: &CodeCounts) -> HashMap<BlockKey, u64> {
    let mut counts: HashMap<BlockKey, u64> = HashMap::with_capacity(code.translated.len());
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
    let mut counts: HashMap<BranchKey, u64> = HashMap::with_capacity(code.branches.len());
    for row in &code.branches {
        let known = counts.entry(branch_key(row)).or_default();
        *known = known.saturating_add(row.count);
    }
    counts
}

impl<W: Write> File<W> {
    pub(super) fn code(&mut self, profile: &Profile, written: &WrittenCode) -> Result<(), WriteError> {
        let code = &profile.code;
        let spaces = code.spaces.entries();
        for piece in pieces(spaces, written.spaces, |_| 0) {
            self.frame(Kind::CodeSpaces, |to| encode_spaces(to, piece.start, &spaces[piece]))?;
        }
        for piece in pieces(&code.bytes, written.bytes, |row| row.bytes.len()) {
            self.frame(Kind::CodeBytes, |to| encode_bytes(to, &code.bytes[piece]))?;
        }
        for piece in written.translated_since(code).chunks(BLOCK) {
            self.frame(Kind::Translated, |to| encode_translated(to, piece))?;
        }
        for piece in code.partials[written.partials..].chunks(BLOCK) {
            self.frame(Kind::Partials, |to| encode_partials(to, piece))?;
        }
        for piece in pieces(&code.blocks, written.blocks, |block| block.lengths.len()) {
            self.frame(Kind::Blocks, |to| encode_blocks(to, piece.start, &code.blocks[piece]))?;
        }
        for piece in code.executions[written.executions..].chunks(BLOCK) {
            self.frame(Kind::Executions, |to| encode_executions(to, piece))?;
        }
        for piece in written.branches_since(code).chunks(BLOCK) {
            self.frame(Kind::Branches, |to| encode_branches(to, piece))?;
        }
        for piece in code.lines[written.lines..].chunks(BLOCK) {
            self.frame(Kind::CodeLines, |to| encode_code_lines(to, piece))?;
        }
        for piece in code.uncounted[written.uncounted..].chunks(BLOCK) {
            self.frame(Kind::Uncounted, |to| encode_uncounted(to, piece))?;
        }
        Ok(())
    }
}
