//! A program that runs another and writes down its processor time.
//!
//! Recorders are given it with the workload as its arguments: the workload's own processor time is then known apart from
//! the recorder's, in the same way for every recorder.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use crate::measure::children_seconds;

/// A program to run, and where to write its processor time.
#[derive(Debug, clap::Args)]
pub(crate) struct Launched {
    file: PathBuf,
    program: PathBuf,
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

impl Launched {
    /// Runs it, writes its processor time in seconds, and passes its exit status on.
    pub(crate) fn run(&self) -> ExitCode {
        let status = Command::new(&self.program).args(&self.arguments).stdout(Stdio::null()).status();
        let Ok(status) = status else { return ExitCode::from(127) };
        if std::fs::write(&self.file, children_seconds().to_string()).is_err() {
            return ExitCode::FAILURE;
        }
        ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
    }
}
