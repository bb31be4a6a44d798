//! `treering-query`: a program of its own, with an engine for SQL and a client of S3.

use std::ffi::OsStr;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use treering_proc::programs_on_path;

use crate::failure::{Context as _, Failure};

const NAME: &str = "treering-query";

/// Where it is: beside this program, or on PATH.
pub fn find() -> Option<PathBuf> {
    let beside = std::env::current_exe().ok().map(|own| own.with_file_name(NAME));
    beside.filter(|path| path.is_file()).or_else(|| on_path(NAME))
}

/// A program on PATH. None from the current folder, which may be somebody else's.
pub fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    programs_on_path(OsStr::new(name), Some(&path)).find(|program| program.is_absolute())
}

/// How to get it.
pub const HINT: &str = "cargo install --path query, in a checkout of Treering, installs treering-query; or: cargo install --git URL treering-query";

/// The failure where it is needed for S3.
pub fn missing() -> Failure {
    Failure::new("treering-query is not installed, which speaks to S3").hint(HINT)
}

/// Runs it to its end with some lines as its input. An error that it reports is the failure, unless it ends with
/// `expected`.
pub fn run(
    arguments: &[&str],
    folder: Option<&Path>,
    input: &str,
    expected: Option<i32>,
) -> Result<Output, Failure> {
    let program = find().ok_or_else(missing)?;
    let mut command = Command::new(program);
    command.args(&arguments[..2]).args(folder).args(&arguments[2..]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = command.spawn().context("cannot start treering-query")?;
    if let Some(mut to) = running.stdin.take() {
        match to.write_all(input.as_bytes()) {
            // It ended at an error before it had read all.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
            written => written.context("cannot write to treering-query")?,
        }
    }
    let output = running.wait_with_output().context("cannot wait for treering-query")?;
    if output.status.success() || (expected.is_some() && output.status.code() == expected) {
        return Ok(output);
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let (hints, message): (Vec<&str>, Vec<&str>) = said.lines().partition(|line| line.starts_with("hint: "));
    let message = message.join("\n");
    let message = match message.strip_prefix("error: ").unwrap_or(&message) {
        "" => format!("treering-query ended with {}", output.status),
        message => message.to_owned(),
    };
    let hints = hints.into_iter().map(|hint| hint.trim_start_matches("hint: "));
    Err(hints.fold(Failure::new(message), Failure::hint))
}
