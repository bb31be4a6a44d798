//! Spelling, by the checker `typos` with the words of `_typos.toml`.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::test::Passed;
use crate::workspace;

/// The version that is installed where there is none.
const VERSION: &str = "1.52.0";

/// Checks the spelling of everything that is in the repository.
pub(crate) fn check() -> Passed {
    let program = match installed_typos() {
        Ok(program) => program,
        Err(reason) => {
            return Passed::Skipped(format!("typos is not installed, so spelling is not checked: {reason}"));
        }
    };
    let mut typos = Command::new(program);
    typos.args(["--format", "brief"]).current_dir(workspace::root()).stdin(Stdio::null());
    match typos.status() {
        Ok(status) if status.success() => Passed::Yes,
        Ok(_) => Passed::No,
        Err(error) => {
            eprintln!("cannot run {typos:?}: {error}");
            Passed::No
        }
    }
}

/// The checker on the search path, or one of our own below the build directory, which is installed with Python's
/// package installer if it is missing.
fn installed_typos() -> Result<PathBuf, String> {
    let runs = |program: &str| Command::new(program).arg("--version").stdout(Stdio::null()).status().is_ok();
    if runs("typos") {
        return Ok("typos".into());
    }
    let environment = workspace::target_directory().join("typos");
    let program = environment.join("bin/typos");
    if runs(&program.to_string_lossy()) {
        return Ok(program);
    }
    let pip = environment.join("bin/pip");
    let mut make = Command::new("python3");
    run(make.args(["-m", "venv"]).arg(&environment))?;
    run(Command::new(pip)
        .args(["install", "--quiet", "--disable-pip-version-check"])
        .arg(format!("typos=={VERSION}")))?;
    Ok(program)
}

fn run(command: &mut Command) -> Result<(), String> {
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("cannot run {:?}: {error}", command.get_program()))?;
    if output.status.success() {
        return Ok(());
    }
    let printed = String::from_utf8_lossy(&output.stderr);
    let last = printed.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
    Err(format!("{:?} ended with {}: {last}", command.get_program(), output.status))
}
