//! Runs a command and tells the processor time that it and its children used.

use std::path::Path;
use std::process::{Command, Stdio};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;
use treering_testing::programs::Workload;

use super::sampler::Sampler;

/// The processor time of one run, in seconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    /// The workload alone.
    pub(super) target: f64,
    /// The workload, the recorder and whatever else the command started.
    pub(super) total: f64,
}

impl Cost {
    /// What the sampler used itself.
    pub(super) fn own(self) -> f64 {
        self.total - self.target
    }
}

/// The processor time of all children that ended and were waited for, in seconds.
pub(super) fn children_seconds() -> f64 {
    getrusage(UsageWho::RUSAGE_CHILDREN).map_or(0.0, |usage| {
        let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
        micros as f64 / 1e6
    })
}

/// Runs the workload under the sampler, or without one, and returns what it cost.
pub(super) fn run(sampler: Option<&Sampler>, workload: &Workload, directory: &Path) -> Result<Cost, String> {
    let usage = directory.join("launched.txt");
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut words = vec![own.into_os_string(), "launch".into(), usage.clone().into()];
    words.push(workload.program.clone().into());
    words.extend(workload.arguments.iter().cloned());
    let mut command = match sampler {
        Some(sampler) => sampler.command(&directory.join(sampler.file()), &words),
        None => plain(&words),
    };
    let before = children_seconds();
    succeed(&mut command)?;
    let total = children_seconds() - before;
    let target = std::fs::read_to_string(&usage).map_err(|error| format!("no launch time: {error}"))?;
    let target = target.trim().parse().map_err(|_| format!("not a time: {target}"))?;
    Ok(Cost { target, total })
}

/// The processor time of the sampler itself in a run that ends with a profile with names.
pub(super) fn own_with_names(
    sampler: &Sampler,
    recorded: Cost,
    workload: &Workload,
    directory: &Path,
) -> Result<f64, String> {
    if let Some(naming) = sampler.with_names() {
        return run(Some(&naming), workload, directory).map(Cost::own);
    }
    let before = children_seconds();
    if let Some(mut naming) = sampler.naming(&directory.join(sampler.file())) {
        succeed(&mut naming)?;
    }
    Ok(recorded.own() + children_seconds() - before)
}

fn plain(words: &[std::ffi::OsString]) -> Command {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    command
}

/// Runs a command to its end without showing its output; an error says what it said.
pub(super) fn succeed(command: &mut Command) -> Result<Vec<u8>, String> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("cannot run {}: {error}", command.get_program().display()))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let last: Vec<_> = said.lines().rev().take(4).collect();
    let last: Vec<_> = last.into_iter().rev().collect();
    Err(format!("{command:?} ended with {}: {}", output.status, last.join(" / ")))
}
