//! What is left of a count when the program or `treering` itself is killed.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use treering_testing::programs::LINES;

use crate::session::{Outcome, Session, program, words};

/// Calls of `leaf` for each line.
const CALLS: u64 = 10_000;

/// `treering count` of a program that writes lines.
struct Running {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Running {
    fn start(session: &Session, arguments: &[&str]) -> Self {
        let path = LINES.build().expect("the compiler is installed");
        let mut all = words(&["count", "--"]);
        all.extend(program(&path, arguments));
        let child = session.command(&all).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = child.expect("treering runs");
        let lines = BufReader::new(child.stdout.take().expect("it is a pipe"));
        Self { child, lines }
    }

    /// Reads lines up to the one with a number.
    fn read_to(&mut self, wanted: u64) {
        let mut line = String::new();
        while !line.starts_with(&format!("{wanted} ")) {
            line.clear();
            assert!(self.lines.read_line(&mut line).expect("it can be read") > 0, "line {wanted} comes");
        }
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id() as i32)
    }

    /// The number of the program's process.
    fn program(&self) -> Pid {
        let children = format!("/proc/{0}/task/{0}/children", self.pid());
        let text = std::fs::read_to_string(children).expect("it runs");
        Pid::from_raw(text.trim().parse().expect("it has one child"))
    }

    /// Kills `treering`, and waits until the program is gone as well.
    fn kill_treering(&mut self) {
        let program = self.program();
        kill(self.pid(), Signal::SIGKILL).expect("it runs");
        self.child.wait().expect("it is our child");
        let deadline = Instant::now() + Duration::from_secs(20);
        while kill(program, None).is_ok() && !is_zombie(program) {
            assert!(Instant::now() < deadline, "the program dies with its tracer");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// A process that nobody has asked for its status yet, as where no `init` runs.
fn is_zombie(pid: Pid) -> bool {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    text.rsplit_once(')').is_none_or(|(_, rest)| rest.trim_start().starts_with('Z'))
}

/// The executions of the only block of `leaf`.
fn calls_of_leaf(session: &Session, file: &str) -> u64 {
    let report = session.json("--flat", &[file]);
    let rows = report["functions"].as_array().expect("there are functions");
    let leaf = rows.iter().find(|row| row["function"] == "leaf").expect("leaf was called");
    leaf["calls"].as_u64().expect("calls are a number")
}

#[test]
fn a_killed_treering_leaves_what_was_counted_until_then() {
    let session = Session::new();
    let mut running = Running::start(&session, &[]);
    running.read_to(30);
    running.kill_treering();
    let calls = calls_of_leaf(&session, "treering.trg.counting");
    assert!(calls >= 30 * CALLS, "{calls}");
    let outcome = session.run(&words(&["report", "treering.trg.counting"]));
    assert!(outcome.stderr.contains("cut short"), "{outcome:#?}");
    let missing = session.run(&words(&["report"]));
    assert!(missing.error().contains("treering report treering.trg.counting"), "{missing:#?}");
}

#[test]
fn threads_that_had_ended_and_those_that_wait_are_left_exactly() {
    let session = Session::new();
    let mut running = Running::start(&session, &["5", "thread"]);
    running.read_to(5);
    // Each of its calls was made before the line was written.
    let live = session.run(&words(&["report", "treering.trg.counting"]));
    assert!(live.stderr.contains("still runs"), "{live:#?}");
    assert_eq!(calls_of_leaf(&session, "treering.trg.counting"), 6 * CALLS);
    running.kill_treering();
    assert_eq!(calls_of_leaf(&session, "treering.trg.counting"), 6 * CALLS);
    // The next count keeps what this one has left.
    let outcome = session.run(&words(&["count", "-q", "--", "true"]));
    assert!(outcome.status.success(), "{outcome:#?}");
    assert!(!session.path("treering.trg.counting").exists());
    assert_eq!(calls_of_leaf(&session, "treering.trg.counting.old"), 6 * CALLS);
}

#[test]
fn a_killed_program_is_counted_to_its_end() {
    let session = Session::new();
    let mut running = Running::start(&session, &["5"]);
    running.read_to(5);
    kill(running.program(), Signal::SIGKILL).expect("it runs");
    let outcome = Outcome::of(running.child.wait_with_output().expect("it is our child"));
    assert_eq!(outcome.shell_status(), 128 + 9, "{outcome:#?}");
    assert!(outcome.stderr.contains("ended by signal 9"), "{outcome:#?}");
    assert_eq!(calls_of_leaf(&session, "treering.trg"), 5 * CALLS);
    assert!(!session.path("treering.trg.counting").exists(), "the result is in the file");
}
