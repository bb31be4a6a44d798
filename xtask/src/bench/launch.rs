//! A program that runs another and writes down its processor time.
//!
//! Recorders are given this launcher with the workload as its arguments: the workload's own
//! processor time is then known apart from the recorder's, in the same way for every recorder.

use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use super::measure::children_seconds;

/// Runs `words[1..]`, writes its processor time in seconds to the file `words[0]`, and passes its
/// exit status on.
pub(crate) fn launch(words: &[&str]) -> ExitCode {
    let [file, program, arguments @ ..] = words else { return ExitCode::from(2) };
    let status = Command::new(program).args(arguments).stdout(Stdio::null()).status();
    let Ok(status) = status else { return ExitCode::from(127) };
    if std::fs::write(Path::new(file), children_seconds().to_string()).is_err() {
        return ExitCode::FAILURE;
    }
    ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}
