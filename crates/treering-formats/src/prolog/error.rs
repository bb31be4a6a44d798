//! What can be wrong with a profile of SWI-Prolog.

use treering_profile::InvalidProfile;

use crate::position::LineError;

/// Why a profile of SWI-Prolog could not be read.
pub type ReadError = LineError<Problem>;

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The file does not start as such files do.
    #[error("does not say that this is a profile of SWI-Prolog")]
    NotProlog,
    /// The file is of a version that is not known.
    #[error("is of version `{0}`; version 1 is known")]
    Version(String),
    /// The line starts with a word that is not known.
    #[error("starts with `{0}`, which is not known")]
    Unknown(String),
    /// A column is missing.
    #[error("has no {0}")]
    Missing(&'static str),
    /// A column is no number, or one that is too large.
    #[error("has `{1}` for the {0}, which is not a number from 0 to 2^64 - 1")]
    BadNumber(&'static str, String),
    /// A column has a word that is not known.
    #[error("has `{1}` for the {0}, which is not known")]
    BadWord(&'static str, String),
    /// It names a predicate or node that did not come before.
    #[error("names {0} {1}, which did not come before")]
    BadReference(&'static str, u64),
    /// The nodes take far more memory than those of any profile of its size.
    #[error("is one node too many for a file of this size, or has costs beyond 2^64")]
    TooLarge,
    /// The whole does not make a profile.
    #[error("is the end, and the parts do not fit together: {0}")]
    Invalid(InvalidProfile),
}
