//! The page of `treering view`: its script's own tests, and whether the bundle is what its sources make.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::test::Passed;
use crate::workspace;

/// Installs the packages that bundle and test the page, checks its types, rebuilds the bundle and
/// compares it, and runs the tests of its model.
pub(crate) fn check() -> Passed {
    if Command::new("npm").arg("--version").stdout(Stdio::null()).status().is_err() {
        return Passed::Skipped("npm is not installed, so the page's script is not tested".to_owned());
    }
    match run("npm", &["ci", "--no-audit", "--no-fund", "--loglevel=error"]) {
        Err(output) if NO_NETWORK.iter().any(|code| output.contains(code)) => {
            println!("{output}");
            let why = "npm does not reach its registry, so the page's script is not tested";
            return Passed::Skipped(why.to_owned());
        }
        Err(output) => {
            println!("{output}");
            return Passed::No;
        }
        Ok(()) => {}
    }
    let steps: [(&str, &[&str]); 3] = [
        ("npm", &["run", "--silent", "check"]),
        ("node", &["build.mjs", "--check"]),
        ("node", &["test.mjs"]),
    ];
    let mut steps = steps.iter();
    steps
        .all(|(program, arguments)| {
            run(program, arguments).inspect_err(|output| println!("{output}")).is_ok()
        })
        .into()
}

/// The codes of npm's errors where a registry is not reached.
const NO_NETWORK: [&str; 6] =
    ["ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ECONNRESET", "ETIMEDOUT", "ERR_SOCKET_TIMEOUT"];

fn folder() -> PathBuf {
    workspace::root().join("crates/treering-viewer/web")
}

/// Runs a command in the folder of the page's script. An error is what it printed, and how it ended.
fn run(program: &str, arguments: &[&str]) -> Result<(), String> {
    let command = || format!("{program} {}", arguments.join(" "));
    let output = Command::new(program).args(arguments).current_dir(folder()).stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("cannot run {}: {error}", command()))?;
    if output.status.success() {
        return Ok(());
    }
    let printed = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    Err(format!("{}{} ended with {}", printed.concat(), command(), output.status))
}
