//! Outputs that are no files: named pipes, and standard output by its path.

use std::io::{BufRead as _, BufReader};
use std::os::unix::process::ExitStatusExt as _;
use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use treering_testing::programs::EXITS_WITH;

use crate::session::{Outcome, Session, program, words};

const COLLECTORS: [&str; 2] = ["count", "record"];

fn collect(session: &Session, collector: &str, output: &str) -> std::process::Command {
    let exits = EXITS_WITH.build().expect("the compiler is installed");
    let mut all = words(&[collector, "-o", output, "--"]);
    all.extend(program(&exits, &["0", "30"]));
    session.command(&all)
}

fn pipe(session: &Session) {
    let made = std::process::Command::new("mkfifo").arg(session.path("pipe")).status();
    assert!(made.is_ok_and(|status| status.success()), "a pipe can be made");
}

#[test]
fn the_reader_of_a_named_pipe_gets_all_of_the_profile() {
    // The pipe was closed again at first, which its reader took for the end.
    for collector in COLLECTORS {
        let session = Session::new();
        pipe(&session);
        let path = session.path("pipe");
        let reader = std::thread::spawn(move || std::fs::read(path).expect("somebody writes"));
        let child = collect(&session, collector, "pipe").spawn().expect("treering runs");
        let read = reader.join().expect("the reader ends");
        let outcome = Outcome::of(child.wait_with_output().expect("it is our child"));
        assert!(outcome.status.success(), "{outcome:#?}");
        std::fs::write(session.path("read.trg"), read).expect("there is room");
        let report = session.output(&["report", "read.trg"]);
        assert!(report.contains("exits_with"), "{report}");
    }
}

#[test]
fn waiting_for_a_reader_can_be_ended() {
    for collector in COLLECTORS {
        let session = Session::new();
        pipe(&session);
        let mut child = collect(&session, collector, "pipe").spawn().expect("treering runs");
        let mut told = BufReader::new(child.stderr.take().expect("it is piped")).lines();
        let line = told.next().expect("something is told").expect("it is text");
        assert!(line.contains("waiting for a reader of pipe"), "{line}");
        let pid = Pid::from_raw(i32::try_from(child.id()).expect("process numbers are small"));
        kill(pid, Signal::SIGTERM).expect("it runs");
        let status = child.wait().expect("it is our child");
        assert_eq!(status.signal(), Some(libc::SIGTERM), "{collector}");
    }
}

#[test]
fn a_reader_that_has_gone_loses_nothing() {
    let session = Session::new();
    pipe(&session);
    let path = session.path("pipe");
    // It reads nothing, and is gone before there is anything to read.
    let reader = std::thread::spawn(move || drop(std::fs::File::open(path)));
    let child = collect(&session, "count", "pipe").env("TMPDIR", session.path(".")).spawn();
    reader.join().expect("the reader ends");
    let outcome = Outcome::of(child.expect("treering runs").wait_with_output().expect("it is our child"));
    assert!(!outcome.status.success(), "{outcome:#?}");
    let (_, kept) = outcome.stderr.split_once("treering report ").expect("it is told where the counts are");
    let kept = kept.trim().trim_matches('\'');
    assert!(session.output(&["report", kept]).contains("exits_with"), "{outcome:#?}");
}

#[test]
fn standard_output_by_its_path_is_written_where_it_leads() {
    // In place of a file that it led to, one was made beside the path, and took its name.
    for collector in COLLECTORS {
        let session = Session::new();
        let file = std::fs::File::create(session.path("out.trg")).expect("it can be written");
        let mut command = collect(&session, collector, "/dev/stdout");
        let outcome = command.stdout(Stdio::from(file)).output().expect("treering runs");
        assert!(outcome.status.success(), "{outcome:#?}");
        assert!(session.output(&["report", "out.trg"]).contains("exits_with"), "{outcome:#?}");
    }
}

#[test]
fn interpreters_refuse_outputs_that_are_no_files() {
    // The pipe was opened and closed before the run, and waited for without an end after it; a device that gives bytes without
    // an end was read back until memory was full.
    let session = Session::new();
    pipe(&session);
    std::fs::write(session.path("ran.pl"), "main.\n").expect("the folder can be written");
    for output in ["pipe", "/dev/full", "/dev/stdout"] {
        for arguments in
            [&["octave", "--eval", "1;"][..], &["prolog", "ran.pl"], &["prolog", "--ports", "ran.pl"]]
        {
            let outcome = session.run(&[arguments, &["-o", output]].concat());
            assert!(
                outcome.error().contains("it is not a regular file"),
                "{arguments:?} {output}: {outcome:#?}"
            );
            assert!(outcome.stderr.contains("hint: name a file after -o"), "{outcome:#?}");
        }
    }
}
