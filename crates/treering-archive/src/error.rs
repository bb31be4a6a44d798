//! The errors of an archive.

use std::io;
use std::path::PathBuf;

use crate::id::Id;

/// Why something cannot be done with an archive.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system's own error, with what was being done.
    #[error("cannot {doing} {path}: {source}", path = path.display())]
    System {
        /// `read`, `write` and the like.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// A file, or a folder that has files and is no archive.
    #[error("{path} is no archive of runs, and is not empty", path = .0.display())]
    NotArchive(PathBuf),
    /// There is no folder of that name, and none was to be made.
    #[error("there is no archive {path}", path = .0.display())]
    NoArchive(PathBuf),
    /// A newer version wrote the archive or a run.
    #[error("{path}: a newer treering wrote it: its format is {found}, and this one reads up to {known}", path = path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// The newest that is known here.
        known: u32,
    },
    /// A file is not what its name says.
    #[error("{path} is damaged: {why}", path = path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// How that shows.
        why: String,
    },
    /// The file that makes a folder an archive is not what it must be.
    #[error("{path} is damaged: {why}", path = path.display())]
    Mark {
        /// The file.
        path: PathBuf,
        /// How that shows.
        why: String,
        /// The line that it must have.
        line: String,
    },
    /// A condition for runs is wrong.
    #[error("the condition {condition:?} cannot be used: {why}")]
    Condition {
        /// The condition.
        condition: String,
        /// The error of SQLite.
        why: String,
    },
    /// No run has an identifier that begins so.
    #[error("no run is called {0}")]
    NoRun(String),
    /// Several runs have identifiers that begin so.
    #[error("{0} is the beginning of several runs")]
    Ambiguous(String, Vec<Id>),
}

impl Error {
    /// Adds to the system's error what was being done with which file.
    pub(crate) fn system(doing: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::System { doing, path, source }
    }

    /// Whether the file is not there.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::System { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}
