//! Why a program cannot be counted, or not to its end.

use std::ffi::{OsStr, OsString};
use std::{fmt, io};

/// Why a program was not counted.
#[derive(Debug)]
#[non_exhaustive]
pub enum CountError {
    /// There is no such program.
    NotFound(OsString),
    /// The program cannot be started.
    Start(OsString, io::Error),
    /// The kernel does not let us trace it.
    Trace(io::Error),
    /// The kernel does not give what the engine needs, such as shared memory.
    Setup(&'static str, io::Error),
    /// The program is for another processor or mode.
    OtherMode(OsString),
    /// This signal ended it before its first instruction.
    Killed(OsString, i32),
    /// There is no process of that number.
    NoProcess(i32),
    /// The kernel does not let us trace that process.
    Attach(i32, io::Error),
    /// The process cannot be counted from now on, for a reason; it goes on as before.
    CannotAttach(i32, String),
    /// A process could not go on, and was ended.
    GivenUp(i32, io::Error),
}

/// What there is only so much of, and why a process cannot go on that needs more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exhausted {
    Counters,
    Contexts,
    Nesting,
}

impl fmt::Display for Exhausted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Counters => "the program has more blocks of code than there are counters",
            Self::Contexts => "its calling context tree has more nodes than there is room for",
            Self::Nesting => "its calls nest deeper than there is room for in a tree",
        })
    }
}

impl std::error::Error for Exhausted {}

impl From<Exhausted> for io::Error {
    fn from(exhausted: Exhausted) -> Self {
        Self::other(exhausted)
    }
}

impl fmt::Display for CountError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound(program) => {
                write!(f, "cannot run {}: there is no such program", program.display())
            }
            Self::Start(program, error) => write!(f, "cannot start {}: {error}", program.display()),
            Self::Trace(error) => write!(f, "cannot trace the program: {error}"),
            Self::Setup(what, error) => write!(f, "cannot prepare the program: {what}: {error}"),
            Self::OtherMode(program) => {
                write!(f, "{} is not a 64-bit program for x86", program.display())
            }
            Self::Killed(program, signal) => {
                let name = nix::sys::signal::Signal::try_from(*signal);
                let name = name.map_or_else(|_| format!("signal {signal}"), |name| name.as_str().to_owned());
                write!(f, "{} was ended by {name} before its first instruction", program.display())
            }
            Self::NoProcess(pid) => write!(f, "there is no process {pid}"),
            Self::Attach(pid, error) => write!(f, "cannot trace process {pid}: {error}"),
            Self::CannotAttach(pid, why) => write!(f, "process {pid} cannot be counted: {why}"),
            Self::GivenUp(pid, error) => {
                write!(f, "process {pid} was ended, as it cannot go on: {error}")
            }
        }
    }
}

impl std::error::Error for CountError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Start(_, error)
            | Self::Trace(error)
            | Self::Setup(_, error)
            | Self::Attach(_, error)
            | Self::GivenUp(_, error) => Some(error),
            Self::NotFound(_)
            | Self::OtherMode(_)
            | Self::Killed(..)
            | Self::NoProcess(_)
            | Self::CannotAttach(..) => None,
        }
    }
}

impl CountError {
    /// The exit status that a shell would give: 127 for no program, 126 for one that cannot start, 128 and the
    /// signal for one that was ended by it.
    pub fn exit_status(&self) -> u8 {
        match self {
            Self::NotFound(_) => 127,
            Self::Start(..) | Self::OtherMode(_) => 126,
            Self::Killed(_, signal) => (128 + signal) as u8,
            Self::Trace(_)
            | Self::Setup(..)
            | Self::NoProcess(_)
            | Self::Attach(..)
            | Self::CannotAttach(..)
            | Self::GivenUp(..) => 1,
        }
    }

    /// What could be done about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NotFound(program) => Some(missing_hint(program)),
            Self::Start(program, error) if error.kind() == io::ErrorKind::NotFound => {
                Some(missing_hint(program))
            }
            Self::Trace(error) if [libc::EPERM, libc::ENOSYS].contains(&number(error)) => Some(trace_hint()),
            Self::Start(_, error) if number(error) == libc::ENOEXEC => Some(
                "it must be a program for this machine, or a script whose first line names its interpreter \
                 (#!/bin/sh)"
                    .to_owned(),
            ),
            Self::Start(program, error) if error.kind() == io::ErrorKind::PermissionDenied => {
                Some(format!("it must be a file that you may execute: ls -l {}", program.display()))
            }
            Self::NoProcess(_) => Some("ps -e lists the processes that run".to_owned()),
            Self::Attach(_, error) if error.raw_os_error() == Some(libc::EPERM) => Some(attach_hint()),
            Self::CannotAttach(..) => Some("sample it: treering record -p".to_owned()),
            Self::OtherMode(_) => Some("sample it: treering record".to_owned()),
            Self::Setup(_, error) if number(error) == libc::EPERM => Some(
                "a system call filter forbids what counting needs: in a container, docker run --cap-add SYS_PTRACE \
                 --security-opt seccomp=unconfined"
                    .to_owned(),
            ),
            Self::Setup(_, error) if number(error) == libc::EACCES => Some(
                "you may execute its file but not read it: chmod +r, or use sudo".to_owned(),
            ),
            Self::Setup(_, error) if number(error) == libc::ENOENT => {
                Some("/proc is not mounted: mount -t proc proc /proc".to_owned())
            }
            Self::Setup(_, error) if error.raw_os_error() == Some(libc::ENOMEM) => {
                Some("the address space limit is too low: ulimit -v unlimited".to_owned())
            }
            Self::Setup(_, error) if error.raw_os_error() == Some(libc::EFBIG) => Some(
                "the file size limit, which holds for shared memory too, is too low: ulimit -f unlimited"
                    .to_owned(),
            ),
            Self::GivenUp(_, error) => Some(given_up_hint(error)),
            _ => None,
        }
    }
}

/// The errno of an error, or 0.
fn number(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(0)
}

/// The setting that forbids tracing processes that are not children.
fn attach_hint() -> String {
    match ptrace_scope().as_str() {
        "1" => "only root may, as kernel.yama.ptrace_scope is 1: sudo treering count -p, or sudo sysctl \
                kernel.yama.ptrace_scope=0 for processes of your own"
            .to_owned(),
        "2" | "3" => trace_hint(),
        _ => "it must be a process of yours; or use sudo".to_owned(),
    }
}

fn ptrace_scope() -> String {
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    scope.trim().to_owned()
}

/// Where a program may be that is not there, in the words of `treering record`.
fn missing_hint(program: &OsStr) -> String {
    match program.as_encoded_bytes().contains(&b'/') {
        true => "check the path; for a script, check the interpreter in its first line".to_owned(),
        false => format!("it is not in PATH; for a file here, write ./{}", program.display()),
    }
}

/// How to measure the program instead.
fn given_up_hint(error: &io::Error) -> String {
    match error.get_ref().and_then(|inner| inner.downcast_ref()) {
        Some(Exhausted::Contexts | Exhausted::Nesting) => "count it without --tree".to_owned(),
        _ if [libc::EMFILE, libc::ENFILE].contains(&number(error)) => {
            "the open-file limit is too low for this many processes: ulimit -Hn".to_owned()
        }
        _ if error.kind() == io::ErrorKind::StorageFull => {
            "the disk of the output is full: make room there, or name a file on another one after -o"
                .to_owned()
        }
        Some(Exhausted::Counters) | None => "sample it: treering record".to_owned(),
    }
}

/// The setting that forbids tracing even children.
fn trace_hint() -> String {
    let scope = ptrace_scope();
    match scope.as_str() {
        "2" | "3" => format!(
            "kernel.yama.ptrace_scope is {}: sudo sysctl kernel.yama.ptrace_scope=1 (3 lasts until the next \
             start of the machine)",
            scope
        ),
        _ => "in a container, allow it: docker run --cap-add SYS_PTRACE --security-opt seccomp=unconfined"
            .to_owned(),
    }
}
