//! Errors with a position: what is wrong with a file, and where.

use std::fmt;

/// Something is wrong with a line of a text file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineError<P> {
    /// The number of the line, from 1.
    pub line: u64,
    /// The byte of the file at which the line starts.
    pub offset: u64,
    /// The problem, as the predicate of a sentence about the line.
    pub problem: P,
}

impl<P: fmt::Display> fmt::Display for LineError<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {} at byte {:#x} {}", self.line, self.offset, self.problem)
    }
}

impl<P: fmt::Debug + fmt::Display> std::error::Error for LineError<P> {}

/// Something is wrong at a byte of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ByteError<P> {
    /// The byte of the file, or of the record that begins there; the file's length for a problem with the whole.
    pub offset: u64,
    /// The problem.
    pub problem: P,
}

/// A problem whose description may name its position.
pub trait AtByte {
    /// Describes the problem of a file at a byte.
    ///
    /// # Errors
    /// The formatter's.
    fn describe(&self, offset: u64, f: &mut fmt::Formatter<'_>) -> fmt::Result;
}

impl<P: AtByte> fmt::Display for ByteError<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.problem.describe(self.offset, f)
    }
}

impl<P: fmt::Debug + AtByte> std::error::Error for ByteError<P> {}
