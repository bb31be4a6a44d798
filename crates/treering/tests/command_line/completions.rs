//! `treering completions`.

use std::process::{Command, Stdio};

use treering_testing::programs::installed;

use crate::session::Session;
use crate::skip;

#[test]
fn every_shell_gets_completions_that_name_the_subcommands() {
    let session = Session::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = session.output(&["completions", shell]);
        for name in ["record", "report", "export", "import", "dump", "merge"] {
            assert!(script.contains(name), "{shell} does not complete {name}");
        }
    }
}

#[test]
fn bash_accepts_its_script() {
    let Some(bash) = installed("bash") else { return skip("bash is not installed") };
    let session = Session::new();
    let path = session.path("completions.bash");
    std::fs::write(&path, session.output(&["completions", "bash"])).expect("it can be written");
    let status = Command::new(bash).arg("-n").arg(path).stdin(Stdio::null()).status().expect("it runs");
    assert!(status.success());
}
