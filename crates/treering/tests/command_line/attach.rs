//! `treering record -p`: a process that runs already, and recordings of a given length.

use std::io::Read as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use treering_testing::programs::{KNOWN_SHARES, MAIN_EXITED, MANY_THREADS, Program};

use crate::session::{Session, program};

/// A program that runs by itself, ended when dropped.
struct Running(Child);

impl Running {
    fn start(which: &Program, arguments: &[&str]) -> Self {
        let path = which.build().expect("the compiler is installed");
        let child = Command::new(path).args(arguments).stdout(Stdio::null()).spawn().expect("it runs");
        Self(child)
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

#[test]
fn a_running_process_is_recorded_for_some_seconds_and_goes_on() {
    let session = Session::new();
    let mut running = Running::start(&KNOWN_SHARES, &["100000"]);
    let outcome = session.run(&["record", "-p", &running.pid(), "-d", "1"]);
    assert!(outcome.status.success(), "{outcome:#?}");
    let flat = session.flat(&[]);
    flat.assert_self_shares(&[("ten_percent", 0.1), ("twenty_percent", 0.2), ("thirty_percent", 0.3)]);
    assert!(flat.total_share("main") > 0.9, "{:#}", flat.0);
    assert!(running.0.try_wait().expect("it is our child").is_none(), "the process must go on");
}

#[test]
fn all_threads_of_a_running_process_are_recorded() {
    let session = Session::new();
    let running = Running::start(&MANY_THREADS, &["4", "10000", "20"]);
    let outcome = session.run(&["record", "-p", &running.pid(), "-d", "1"]);
    assert!(outcome.status.success(), "{outcome:#?}");
    let flat = session.flat(&[]);
    assert!(flat.self_share("worker_body") > 0.8, "{:#}", flat.0);
}

#[test]
fn a_process_whose_first_thread_has_ended_is_recorded() {
    let session = Session::new();
    let path = MAIN_EXITED.build().expect("the compiler is installed");
    let mut child = Command::new(path).arg("100000").stdout(Stdio::piped()).spawn().expect("it runs");
    let mut said = [0; 6];
    child.stdout.as_mut().expect("a pipe").read_exact(&mut said).expect("it says when it is alone");
    let running = Running(child);
    let outcome = session.run(&["record", "-p", &running.pid(), "-d", "1"]);
    assert!(outcome.status.success(), "{outcome:#?}");
    let flat = session.flat(&[]);
    // The kernel shows no mappings of the first thread, by whose number the process goes.
    assert!(flat.self_share("late_work") > 0.9, "{:#}", flat.0);
    assert_eq!(flat.loss("truncated_stacks"), 0, "{:#}", flat.0);
}

#[test]
fn recording_ends_when_the_process_ends() {
    let session = Session::new();
    let running = Running::start(&KNOWN_SHARES, &["700"]);
    let start = Instant::now();
    let outcome = session.run(&["record", "-p", &running.pid(), "-d", "120"]);
    assert!(outcome.status.success(), "{outcome:#?}");
    assert!(start.elapsed() < Duration::from_secs(90), "it waited for the end of the time given");
    assert!(session.flat(&[]).samples() > 20);
}

#[test]
fn a_recording_of_given_length_covers_the_start_of_the_program_only() {
    let session = Session::new();
    let whole = program(&KNOWN_SHARES.build().expect("the compiler is installed"), &["1800"]);
    let outcome = session.record_any(&["-d", "1"], &whole);
    assert!(outcome.status.success(), "the program ends by itself: {outcome:#?}");
    let flat = session.flat(&[]);
    // The program takes three seconds of processor time, so at least two were not recorded.
    assert!((20..1700).contains(&flat.samples()), "{:#}", flat.0["run"]);
}

#[test]
fn a_process_that_does_not_exist_is_an_error() {
    let session = Session::new();
    // Above the largest number that Linux gives to a process.
    let outcome = session.run(&["record", "-p", "4194305", "-d", "1"]);
    let said = outcome.error();
    assert!(said.contains("4194305"), "{said}");
    // The kernel takes these for groups of processes.
    for number in ["0", "4294967295"] {
        let outcome = session.run(&["record", "-p", number, "-d", "1"]);
        assert!(outcome.error().contains(&format!("there is no process {number}")), "{outcome:#?}");
    }
}
