//! The result of a recording, and its observers.

use std::collections::HashMap;
use std::fs::File;
use std::path::PathBuf;

use treering_profile::Profile;

use crate::sys::{Child, Ended};

/// Is shown the profile while it grows.
pub trait Observer {
    /// Called about once a second with the recording so far. Its functions are still addresses.
    fn checkpoint(&mut self, profile: &Profile);

    /// The user interrupted, and the recording goes on until the program has ended.
    fn interrupted(&mut self) {}
}

impl<F: FnMut(&Profile)> Observer for F {
    fn checkpoint(&mut self, profile: &Profile) {
        self(profile);
    }
}

/// A finished recording.
#[derive(Debug)]
pub struct Recording {
    /// The profile; its functions are addresses still.
    pub profile: Profile,
    /// How the recording ended.
    pub finish: Finish,
    /// When it began, in nanoseconds of `CLOCK_MONOTONIC`; all times of the profile are since then.
    pub start_ns: u64,
    /// Files that were mapped under paths that do not lead to them from here: of other mount
    /// namespaces, or deleted.
    pub hidden_files: HashMap<PathBuf, Option<File>>,
    /// Processes with code that belongs to no file, whose names their compilers may have written.
    pub jit: Vec<JitProcess>,
}

/// How a recording ended.
#[derive(Debug)]
pub enum Finish {
    /// The program exited with this status.
    Exited(i32),
    /// The program was ended by this signal.
    Killed(i32),
    /// The program that was launched still runs; wait for it with [`Finish::wait`].
    Running(RunningChild),
    /// The process was not ours to wait for: it has ended, or goes on without us.
    Detached,
}

/// A program that goes on after its recording.
#[derive(Debug)]
pub struct RunningChild(pub(crate) Child);

impl Finish {
    /// Waits for a program that still runs; anything else is returned as it is.
    pub fn wait(self) -> Self {
        match self {
            Self::Running(RunningChild(child)) => child.wait().map_or(Self::Detached, Self::of),
            finish => finish,
        }
    }

    pub(crate) fn of(ended: Ended) -> Self {
        match ended.status {
            status if libc::WIFSIGNALED(status) => Self::Killed(libc::WTERMSIG(status)),
            status => Self::Exited(libc::WEXITSTATUS(status)),
        }
    }

    /// The end as a run in a profile tells it.
    pub(crate) fn describe(&self) -> Option<String> {
        match self {
            Self::Exited(status) => Some(format!("exit {status}")),
            Self::Killed(signal) => Some(format!("signal {signal}")),
            Self::Running(_) => Some("still running".to_owned()),
            Self::Detached => None,
        }
    }
}

/// A process with code that belongs to no file.
#[derive(Debug)]
pub struct JitProcess {
    /// The path of the module that its code is in: `[jit PID]`.
    pub module: String,
    /// Its `/tmp`, open since it may be of another namespace; its compilers write
    /// `perf-PID.map` there.
    pub folder: Option<File>,
    /// The number by which the process knows itself and names that file.
    pub inner_pid: u32,
    /// The users that it ran as when it made code: files of others are not its own.
    pub owners: Vec<u32>,
    /// When it started, in nanoseconds since 1970: older files are not its own.
    pub started_unix_ns: Option<u64>,
    /// Dumps of generated code that the process mapped (`jit-PID.dump`).
    pub dumps: Vec<PathBuf>,
}
