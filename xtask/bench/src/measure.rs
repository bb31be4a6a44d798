//! Runs commands, measures the processor time that they and their children use, and reads what they leave.

use std::path::Path;
use std::process::{Command, Stdio};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;
use treering_formats::read_any;
use treering_profile::Profile;

/// The processor time of all children that ended and were waited for, in seconds.
pub(super) fn children_seconds() -> f64 {
    getrusage(UsageWho::RUSAGE_CHILDREN).map_or(0.0, |usage| {
        let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
        micros as f64 / 1e6
    })
}

/// The processor time of one run with all its descendants, in seconds. The run has to succeed.
pub(super) fn cpu_seconds(command: &mut Command) -> Result<f64, String> {
    let before = children_seconds();
    succeed(command)?;
    Ok(children_seconds() - before)
}

/// Runs a command to its end without showing its output; an error has its last words.
pub(super) fn succeed(command: &mut Command) -> Result<Vec<u8>, String> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("cannot run {}: {error}", command.get_program().display()))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<_> = errors.lines().collect();
    let last = lines[lines.len().saturating_sub(4)..].join(" / ");
    Err(format!("{command:?} ended with {}: {last}", output.status))
}

/// The output of a command that has to succeed, as text.
pub(super) fn text_of(command: &mut Command) -> Result<String, String> {
    Ok(String::from_utf8_lossy(&succeed(command)?).into_owned())
}

/// The profile in a file.
pub(super) fn profile(path: &Path) -> Result<Profile, String> {
    let in_file = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let bytes = std::fs::read(path).map_err(|error| in_file(&error))?;
    read_any(&bytes).map(|(_, profile, _)| profile).map_err(|error| in_file(&error))
}

/// The program, the way, and what was measured.
type Run<'a, const N: usize> = (&'a str, &'a str, [f64; N]);

/// Runs that a script printed, a line for each, with tabs between words and numbers.
pub(super) fn runs<const N: usize>(printed: &str) -> Result<Vec<Run<'_, N>>, String> {
    let run = |line| {
        let mut cells = str::split(line, '\t');
        let (program, way) = (cells.next()?, cells.next()?);
        let numbers = cells.map(|cell| cell.parse().ok()).collect::<Option<Vec<f64>>>()?;
        Some((program, way, numbers.try_into().ok()?))
    };
    printed.lines().map(|line| run(line).ok_or_else(|| format!("the script printed {line:?}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_of_all_descendants_is_counted() {
        let shell = |script: &str| cpu_seconds(Command::new("/bin/sh").args(["-c", script]));
        let idle = shell("sleep 0.05").expect("sh runs");
        let busy = shell("(i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done)").expect("sh runs");
        assert!(busy > idle, "{busy} {idle}");
        assert!(shell("echo why >&2; exit 3").is_err_and(|error| error.ends_with(": why")));
    }

    #[test]
    fn printed_runs_have_all_their_numbers() {
        assert_eq!(runs("fib\tswi\t0.5\t2\n"), Ok(vec![("fib", "swi", [0.5, 2.0])]));
        assert!(runs::<3>("fib\tswi\t0.5\t2\n").is_err() && runs::<1>("warning\n").is_err());
    }
}
