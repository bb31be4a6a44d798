//! Why a program could not be sampled.

use std::io;

use treering_proc::reason;

use crate::event::UnknownEvent;

/// The reason why a program could not be sampled. The text says which attempts were made.
#[derive(Debug)]
#[non_exhaustive]
pub enum RecordError {
    /// The kernel lets this user open no events on the program.
    NotPermitted(Denial),
    /// An event that this machine does not have.
    UnknownEvent(UnknownEvent),
    /// The processor or the kernel cannot count an event that exists elsewhere.
    NotSupported {
        /// The event's name.
        event: String,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The program could not be run.
    CannotRun {
        /// The program as given.
        program: String,
        /// Why not.
        source: io::Error,
    },
    /// There is no process of that number.
    NoProcess(u32),
    /// The program or process ended before it could be sampled.
    HasEnded(String),
    /// The kernel gave no memory for the samples.
    NoRing(io::Error),
    /// A system call failed that should not.
    System {
        /// The attempted step.
        doing: &'static str,
        /// The kernel's answer.
        source: io::Error,
    },
}

/// The kernel's refusal, and the settings that decide it.
#[derive(Debug)]
pub struct Denial {
    /// The act that was refused: `sample`, or `count events of`.
    pub doing: &'static str,
    /// The program or process.
    pub target: String,
    /// The attempts, in order.
    pub tried: Vec<String>,
    /// `kernel.perf_event_paranoid`, where it can be read.
    pub paranoid: Option<i32>,
    /// Whether this process is root, so that something else than paranoia denies it.
    pub root: bool,
    /// The kernel's last answer.
    pub source: io::Error,
}

impl Denial {
    pub(crate) fn new(doing: &'static str, target: String, tried: Vec<String>, source: io::Error) -> Self {
        let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid");
        let paranoid = paranoid.ok().and_then(|text| text.trim().parse().ok());
        Self { doing, target, tried, paranoid, root: crate::sys::is_root(), source }
    }

    fn reason(&self) -> String {
        match self.paranoid {
            _ if self.source.raw_os_error() == Some(libc::ENOSYS) => {
                "this kernel or container has no perf_event_open".to_owned()
            }
            Some(level) if level > 2 && !self.root => format!(
                "the kernel allows no counters to this user (perf_event_paranoid is {level}, needs 2 or less)"
            ),
            _ if self.root => {
                "perf_event_open is denied even to root, most likely by a container's seccomp filter"
                    .to_owned()
            }
            _ => format!("perf_event_open is denied: {}", reason(&self.source)),
        }
    }
}

impl RecordError {
    /// The exit status that a shell would give: 127 for a program that is not there, 126 for one
    /// that cannot be run, else 1.
    pub fn exit_status(&self) -> u8 {
        match self {
            Self::CannotRun { source, .. } if source.kind() == io::ErrorKind::NotFound => 127,
            Self::CannotRun { .. } => 126,
            _ => 1,
        }
    }
}

impl std::fmt::Display for RecordError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotPermitted(denial) => {
                write!(f, "cannot {} {}: {}", denial.doing, denial.target, denial.reason())?;
                write!(f, "; tried {}", denial.tried.join(", "))
            }
            Self::UnknownEvent(unknown) => unknown.fmt(f),
            Self::NotSupported { event, source } => {
                let why = match source.kind() {
                    io::ErrorKind::NotFound => "it has no counter for it".to_owned(),
                    _ => reason(source),
                };
                write!(f, "this machine cannot sample {event}: {why}")
            }
            Self::CannotRun { source, program } if source.kind() == io::ErrorKind::NotFound => {
                write!(f, "cannot run {program}: there is no such program")
            }
            Self::CannotRun { program, source } => write!(f, "cannot run {program}: {}", reason(source)),
            Self::NoProcess(pid) => write!(f, "there is no process {pid}"),
            Self::HasEnded(target) => write!(f, "{target} has ended"),
            Self::NoRing(source) => {
                write!(f, "the kernel gives no memory for samples: {}", reason(source))
            }
            Self::System { doing, source } => write!(f, "{doing} failed: {}", reason(source)),
        }
    }
}

impl std::error::Error for RecordError {}

impl From<UnknownEvent> for RecordError {
    fn from(unknown: UnknownEvent) -> Self {
        Self::UnknownEvent(unknown)
    }
}
