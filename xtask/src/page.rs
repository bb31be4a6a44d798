//! The page of `treering view`: its script's own tests, and whether the bundle is what its sources make.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::workspace;

/// Installs the packages that bundle and test the page, checks its types, rebuilds the bundle and
/// compares it, and runs the tests of its model. True where all is well, or npm is missing.
pub(crate) fn check() -> bool {
    if Command::new("npm").arg("--version").stdout(Stdio::null()).status().is_err() {
        println!("skipped: npm is not installed, so the page's script is not tested");
        return true;
    }
    let install: &[&str] = &["ci", "--no-audit", "--no-fund", "--silent"];
    let steps: [(&str, &[&str]); 4] = [
        ("npm", install),
        ("npm", &["run", "--silent", "check"]),
        ("node", &["build.mjs", "--check"]),
        ("node", &["test.mjs"]),
    ];
    steps.iter().all(|(program, arguments)| succeeds(program, arguments))
}

fn folder() -> PathBuf {
    workspace::root().join("crates/treering-viewer/web")
}

fn succeeds(program: &str, arguments: &[&str]) -> bool {
    let output = Command::new(program).args(arguments).current_dir(folder()).stdin(Stdio::null()).output();
    match output {
        Ok(output) if output.status.success() => true,
        Ok(output) => {
            println!(
                "{}{}",
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr)
            );
            println!("{program} {} ended with {}", arguments.join(" "), output.status);
            false
        }
        Err(error) => {
            println!("cannot run {program}: {error}");
            false
        }
    }
}
