//! Programs that run another and write down its processor time.
//!
//! Recorders are given the launcher with the workload as its arguments, or are attached to the
//! repeater: the workload's own processor time is then known apart from the recorder's, in the same
//! way for every recorder.

use std::ffi::OsString;
use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::measure::children_seconds;

/// A program to run, and where to write its processor time.
#[derive(Debug, clap::Args)]
pub(crate) struct Program {
    file: PathBuf,
    program: PathBuf,
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

impl Program {
    fn run(&self) -> std::io::Result<ExitStatus> {
        Command::new(&self.program).args(&self.arguments).stdout(Stdio::null()).status()
    }
}

/// Runs a program, writes its processor time in seconds, and passes its exit status on.
pub(crate) fn launch(program: &Program) -> ExitCode {
    let Ok(status) = program.run() else { return ExitCode::from(127) };
    if std::fs::write(&program.file, children_seconds().to_string()).is_err() {
        return ExitCode::FAILURE;
    }
    ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}

/// One of the runs of a program that is repeated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Run {
    /// When it began and ended, in seconds since 1970.
    pub(super) time: (f64, f64),
    /// Its processor time in seconds.
    pub(super) cost: f64,
}

/// Runs a program again and again until it fails or this process is ended, and writes a line for each run.
pub(crate) fn repeat(program: &Program) -> ExitCode {
    let Ok(mut file) = File::create(&program.file) else { return ExitCode::FAILURE };
    loop {
        let (begin, before) = (now(), children_seconds());
        let status = program.run();
        let run = Run { time: (begin, now()), cost: children_seconds() - before };
        if !status.is_ok_and(|status| status.success()) || writeln!(file, "{run}").is_err() {
            return ExitCode::FAILURE;
        }
    }
}

/// Seconds since 1970.
pub(super) fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |passed| passed.as_secs_f64())
}

impl std::fmt::Display for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.6} {:.6} {:.6}", self.time.0, self.time.1, self.cost)
    }
}

impl Run {
    /// The runs in the text that [`repeat`] has written so far.
    pub(super) fn all(text: &str) -> Vec<Self> {
        let run = |line: &str| {
            let mut numbers = line.split(' ').map(str::parse);
            let mut number = || numbers.next()?.ok();
            Some(Self { time: (number()?, number()?), cost: number()? })
        };
        text.split_inclusive('\n').filter_map(|line| run(line.strip_suffix('\n')?)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_read_as_far_as_they_were_written() {
        let run = Run { time: (1.5, 2.25), cost: 0.75 };
        assert_eq!(Run::all(&format!("{run}\n{run}\n1.5 2.2")), [run, run]);
    }
}
