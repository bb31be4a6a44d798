//! Signals that reach a command that runs a program mean the program.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

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

/// In the background of a script, which has it ignore SIGINT. The program's handler was never called.
#[test]
fn signals_that_are_ignored_at_the_start_reach_handlers_of_the_program() {
    let session = Session::new();
    let source = "static void end(int signal) { _exit(signal + 40); }\n\
        int main(void) { signal(SIGINT, end); alarm(60); puts(\"ready\"); fflush(stdout); for (;;) pause(); }\n";
    let Some(program) = compile(&session, source, "handles", &[]) else { return };
    for way in WAYS {
        let mut command = Command::new("sh");
        command.args(["-c", "trap '' INT; exec \"$@\"", "sh"]).arg(treering()).args(way).arg(&program);
        command
            .current_dir(session.path("."))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("a shell is installed");
        let mut line = String::new();
        let mut said = BufReader::new(child.stdout.take().expect("it is piped"));
        said.read_line(&mut line).expect("it is text");
        kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).expect("it runs");
        let outcome = Outcome::of(child.wait_with_output().expect("it is our child"));
        assert_eq!(outcome.shell_status(), 42, "{way:?}: {outcome:#?}");
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

/// The program's end was waited for in silence, and signals were passed on to the program that had ended.
#[test]
fn children_that_outlast_a_counted_program_are_named_and_end_by_signals() {
    let session = Session::new();
    // A shell has its background jobs ignore SIGINT. The second child ignores SIGTERM as well.
    for (script, is_stubborn) in [("sleep 600 & exit 3", false), ("trap '' TERM; sleep 600 & exit 3", true)] {
        let mut child = session.command(&["count", "--", "sh", "-c", script]).spawn().expect("treering runs");
        let mut errors = BufReader::new(child.stderr.take().expect("it is piped"));
        let mut said = String::new();
        while !said.contains("still counting its child") {
            assert!(errors.read_line(&mut said).expect("it is text") > 0, "{said}");
        }
        assert!(said.contains("(sleep); Ctrl-C ends it"), "{said}");
        let treering = Pid::from_raw(child.id().cast_signed());
        kill(treering, Signal::SIGINT).expect("it runs");
        // Signals that come close together are one.
        while is_stubborn && child.try_wait().expect("it is our child").is_none() {
            kill(treering, Signal::SIGINT).expect("it is there");
            std::thread::sleep(Duration::from_millis(20));
        }
        errors.read_to_string(&mut said).expect("it is text");
        assert_eq!(child.wait().expect("it is our child").code(), Some(3), "{said}");
        assert!(said.contains("wrote treering.trg"), "{said}");
    }
}

/// It waited for the child, which is not counted.
#[test]
fn a_run_without_children_ends_with_the_program_and_they_go_on() {
    let session = Session::new();
    // New programs and new memory need calls that the tracer has watched.
    let child = "until [ -e go ]; do sleep 0.02; done; ls -l / >listed; mv listed went";
    let script = format!("echo $$; (trap '' HUP; {child}) >/dev/null 2>&1 & exit 3");
    for options in [&[][..], &["--tree"], &["--toggle", "main"], &["-d", "600"]] {
        let all = [&["count", "--no-children"], options, &["--", "sh", "-c", &script]].concat();
        let outcome = session.run(&all);
        assert_eq!(outcome.status.code(), Some(3), "{outcome:#?}");
        assert!(outcome.stderr.contains("its children were not counted, as requested"), "{outcome:#?}");
        std::fs::write(session.path("go"), "").expect("written");
        let deadline = Instant::now() + Duration::from_secs(120);
        while !session.path("went").exists() {
            assert!(Instant::now() < deadline, "the child goes on: {options:?}");
            std::thread::sleep(Duration::from_millis(1));
        }
        for file in ["go", "went"] {
            std::fs::remove_file(session.path(file)).expect("it is there");
        }
    }
}
