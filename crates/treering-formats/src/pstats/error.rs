//! What can be wrong with a dump of pstats.

use std::fmt;

use treering_profile::InvalidProfile;

/// Why a dump of pstats could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReadError {
    /// The file ends within a value.
    Cut {
        /// At which byte the value starts.
        offset: usize,
    },
    /// A value is of a sort that marshal or pstats do not have.
    UnknownType {
        /// At which byte.
        offset: usize,
        /// The byte that tells the sort.
        code: u8,
    },
    /// A value refers to an earlier one that is not there.
    MissingReference {
        /// At which byte.
        offset: usize,
        /// The number of the earlier value.
        number: u32,
    },
    /// Values are in each other deeper than in any dump.
    TooDeep {
        /// At which byte.
        offset: usize,
    },
    /// It takes far more memory than any profile of its size does.
    TooLarge,
    /// The whole is no dictionary of functions with their numbers.
    Shape {
        /// What was expected.
        expected: &'static str,
        /// Which entry of the dictionary, from 0.
        entry: usize,
    },
    /// There are no functions in it.
    Empty,
    /// The whole does not make a profile.
    Invalid(InvalidProfile),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cut { offset } => write!(f, "the value at byte {offset:#x} is cut short"),
            Self::UnknownType { offset, code: b'c' } => write!(
                f,
                "byte {offset:#x} starts a code object, as `python -m profile` writes them; cProfile does not"
            ),
            Self::UnknownType { offset, code } => {
                write!(f, "byte {offset:#x} starts a value of the unknown sort {code:#04x}")
            }
            Self::MissingReference { offset, number } => {
                write!(f, "the value at byte {offset:#x} refers to value {number}, which is missing")
            }
            Self::TooDeep { offset } => write!(f, "the value at byte {offset:#x} is nested too deeply"),
            Self::TooLarge => f.write_str("it takes far more memory than a profile of its size"),
            Self::Shape { expected, entry } => write!(f, "entry {entry} is not {expected}"),
            Self::Empty => f.write_str("it holds no functions"),
            Self::Invalid(invalid) => write!(f, "its parts do not fit together: {invalid}"),
        }
    }
}

impl std::error::Error for ReadError {}
