//! Signals that reach a command that runs a program mean the program.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::gprof::compile;
use crate::session::{Outcome, Session, treering};

/// The words before the program.
const WAYS: [&[&str]; 5] =
    [&["count", "--"], &["gprof", "--"], &["record", "--"], &["stat", "--"], &["stat", "--exact", "--"]];

/// As by a test harness, which knows the process that it has started. An interrupt was swallowed.
#[test]
fn signals_from_a_process_reach_the_program() {
    let session = Session::new();
    let source = "int main(void) { alarm(60); puts(\"ready\"); fflush(stdout); for (;;) pause(); }\n";
    let Some(program) = compile(&session, source, "waits", &[]) else { return };
    let program = program.to_str().expect("its name is text");
    for way in WAYS {
        for signal in [Signal::SIGINT, Signal::SIGQUIT] {
            let mut command = session.command(&[way, &[program]].concat());
            let mut child = command.stdout(Stdio::piped()).spawn().expect("treering runs");
            let mut said = BufReader::new(child.stdout.take().expect("it is piped"));
            let mut line = String::new();
            said.read_line(&mut line).expect("it is text");
            assert_eq!(line, "ready\n", "{way:?}");
            kill(Pid::from_raw(child.id().cast_signed()), signal).expect("it runs");
            let outcome = Outcome::of(child.wait_with_output().expect("it is our child"));
            assert_eq!(outcome.shell_status(), 128 + signal as i32, "{way:?}: {outcome:#?}");
        }
    }
}

/// As by `nohup`, and in the background of a script.
#[test]
fn signals_that_are_ignored_at_the_start_stay_ignored() {
    let session = Session::new();
    let source =
        "int main(void) { raise(SIGHUP); raise(SIGINT); raise(SIGQUIT); raise(SIGTERM); return 3; }\n";
    let Some(program) = compile(&session, source, "raises", &[]) else { return };
    for way in WAYS {
        let mut command = Command::new("sh");
        command.args(["-c", "trap '' HUP INT QUIT TERM; exec \"$@\"", "sh"]).arg(treering());
        command.args(way).arg(&program).current_dir(session.path(".")).stdin(Stdio::null());
        let outcome = Outcome::of(command.output().expect("a shell is installed"));
        assert_eq!(outcome.shell_status(), 3, "{way:?}: {outcome:#?}");
    }
}
