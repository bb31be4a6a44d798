//! The code that a binary states, whether it was executed or not.

use std::ops::Range;

use crate::{ModuleId, Piece};

/// The source lines and functions that a binary's debug information states. They are not part of a profile: they are
/// read from the binary again to find the code that was *not* executed.
///
/// All addresses are stated ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatedCode {
    /// The binary.
    pub module: ModuleId,
    /// The paths of source files.
    pub files: Vec<String>,
    /// The line of each range of code, sorted, without overlaps. Code without a line is in none.
    pub lines: Vec<StatedLine>,
    /// The functions that have code of their own.
    pub functions: Vec<StatedFunction>,
}

/// Code of a source line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatedLine {
    /// Where it is.
    pub code: Range<u64>,
    /// The index of the file.
    pub file: usize,
    /// The line, from 1.
    pub line: u32,
}

/// A function that has code of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatedFunction {
    /// Its name as people write it.
    pub name: String,
    /// Its name for linkers; the same in languages without such names.
    pub linkage_name: String,
    /// The file that declares it, or the empty string.
    pub file: String,
    /// The line of the declaration, or 0.
    pub line: u32,
    /// The column of the declaration, or 0.
    pub column: u32,
    /// The piece of the function that it is, if the compiler divided the function.
    pub piece: Piece,
    /// Its code; the first begins with its entry.
    pub code: Vec<Range<u64>>,
    /// The code in it that was inlined from other functions.
    pub inlined: Vec<Range<u64>>,
}

impl StatedCode {
    /// The file and line of an address.
    pub fn line(&self, address: u64) -> Option<(usize, u32)> {
        let after = self.lines.partition_point(|row| row.code.start <= address);
        let row = self.lines.get(after.checked_sub(1)?)?;
        row.code.contains(&address).then_some((row.file, row.line))
    }

    /// The rows that have code in a range.
    pub fn lines_in(&self, code: &Range<u64>) -> &[StatedLine] {
        let first = self.lines.partition_point(|row| row.code.end <= code.start);
        let end = self.lines.partition_point(|row| row.code.start < code.end);
        &self.lines[first.min(end)..end]
    }
}

/// Code that was not executed and that control cannot enter or leave but at its ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdleBlock {
    /// Where it is.
    pub code: Range<u64>,
    /// Its last instruction, if that is a conditional branch.
    pub branch: Option<u64>,
}
