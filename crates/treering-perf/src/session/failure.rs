//! Why the events of a session could not be opened.

use std::io;

use crate::error::{Denial, RecordError};

/// Why a set of events could not be opened.
#[derive(Debug)]
pub(super) struct OpenFailure {
    pub(super) event: String,
    doing: Doing,
    pub(super) source: io::Error,
}

/// The step that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    Opening,
    MappingRing,
    MakingChild,
}

impl OpenFailure {
    pub(super) fn new(event: &str, source: io::Error) -> Self {
        Self { event: event.to_owned(), doing: Doing::Opening, source }
    }

    pub(super) fn ring(source: io::Error) -> Self {
        Self { event: String::new(), doing: Doing::MappingRing, source }
    }

    pub(super) fn child(source: io::Error) -> Self {
        Self { event: String::new(), doing: Doing::MakingChild, source }
    }

    pub(super) fn is_of_ring(&self) -> bool {
        self.doing == Doing::MappingRing
    }

    /// Whether no other choice can do better.
    pub(super) fn is_final(&self) -> bool {
        let other_choices =
            [libc::ENOENT, libc::EOPNOTSUPP, libc::EACCES, libc::EPERM, libc::EINVAL, libc::ENODEV];
        self.doing != Doing::Opening
            || !self.source.raw_os_error().is_some_and(|code| other_choices.contains(&code))
    }

    pub(super) fn explain(self, target: &str, tried: Vec<String>) -> RecordError {
        match self.source.raw_os_error() {
            _ if self.doing == Doing::MappingRing => RecordError::NoRing(self.source),
            _ if self.doing == Doing::MakingChild => {
                RecordError::CannotRun { program: target.to_owned(), source: self.source }
            }
            Some(libc::EACCES | libc::EPERM | libc::ENOSYS) => {
                RecordError::NotPermitted(Denial::new("sample", target.to_owned(), tried, self.source))
            }
            Some(libc::ESRCH) => RecordError::HasEnded(target.to_owned()),
            Some(libc::EMFILE) => RecordError::System {
                doing: "opening an event for every thread and processor",
                source: self.source,
            },
            _ => RecordError::NotSupported { event: self.event, source: self.source },
        }
    }
}
