//! `treering count -p`: a process that runs already, and goes on afterwards.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use treering_testing::programs::{ATTACHED, EDGE, LEAF_THREADS, MAIN_EXITED, Program, SEALED};

use crate::session::{Outcome, Session};

/// A program that runs by itself, ended when dropped.
struct Running {
    child: Child,
    input: Option<ChildStdin>,
    lines: BufReader<ChildStdout>,
}

impl Running {
    fn start(which: &Program, arguments: &[&str]) -> Self {
        let path = which.build().expect("the compiler is installed");
        Self::of(Command::new(path).args(arguments))
    }

    fn of(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it runs");
        let input = child.stdin.take();
        let lines = BufReader::new(child.stdout.take().expect("it is a pipe"));
        Self { child, input, lines }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        assert!(self.lines.read_line(&mut line).expect("it can be read") > 0, "a line comes");
        line.trim().to_owned()
    }

    fn say(&mut self, line: &str) {
        let input = self.input.as_mut().expect("it is open");
        input.write_all(format!("{line}\n").as_bytes()).and_then(|()| input.flush()).expect("it reads");
    }

    /// Has the program call its function so often; the sum that it says then.
    fn step(&mut self, calls: u64) -> u64 {
        self.say(&calls.to_string());
        self.line().parse().expect("it says a number")
    }

    /// Has the program do something else.
    fn does(&mut self, deed: &str) {
        self.say(deed);
        assert_eq!(self.line(), AS_IT_SHOULD, "{deed}");
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id().cast_signed())
    }

    /// Ends the program's input; the rest of its output, and its status.
    fn end(&mut self) -> (String, Option<i32>) {
        drop(self.input.take());
        let mut rest = String::new();
        self.lines.read_to_string(&mut rest).expect("it can be read");
        (rest.trim().to_owned(), self.child.wait().expect("it is our child").code())
    }

    /// A file of the program in `/proc`.
    fn proc(&self, name: &str) -> String {
        std::fs::read_to_string(format!("/proc/{}/{name}", self.pid())).unwrap_or_default()
    }

    fn wait_until(&self, what: &str, holds: impl Fn(&Self) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while !holds(self) {
            assert!(Instant::now() < deadline, "{what}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Whether it waits in a system call that the tracer's page makes for it.
    fn waits_in_translated_code(&self) -> bool {
        self.proc("syscall").trim().rsplit_once(' ').is_some_and(|(_, place)| place.starts_with("0x7a500"))
    }

    fn is_translated(&self) -> bool {
        let maps = self.proc("maps");
        // Its own code may not be executed any more once it is.
        maps.contains(" /memfd:treering tables") && !maps.lines().any(is_own_code)
    }
}

/// The line by which the program reports that it found no fault.
const AS_IT_SHOULD: &str = "as-it-should";

/// Whether a line of `maps` is memory that the tracer has put there. The names of files tell nothing: a checkout may be
/// in a folder named `treering`.
fn is_ours(line: &str) -> bool {
    line.contains(" /memfd:treering ") || line.starts_with("3000")
}

fn is_own_code(line: &str) -> bool {
    line.contains(" r-xp ") && line.contains('/') && !is_ours(line)
}

impl Drop for Running {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// `treering count -p`, until it is interrupted.
fn attach(session: &Session, running: &Running, options: &[&str]) -> Child {
    let pid = running.pid().to_string();
    let mut words = vec!["count", "-p", &pid];
    words.extend(options);
    let child = session.command(&words).spawn().expect("treering runs");
    running.wait_until("it is attached to", Running::is_translated);
    child
}

fn interrupt(child: Child) -> Outcome {
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).expect("it runs");
    Outcome::of(child.wait_with_output().expect("it is our child"))
}

/// The sum that the program says after so many calls, counted each time from 0.
fn sum(calls: &[u64]) -> u64 {
    let step = |sum: u64, i: u64| sum.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(i);
    calls.iter().fold(0, |sum, &calls| (0..calls).fold(sum, step))
}

fn calls_of(session: &Session, function: &str) -> u64 {
    let text = session.output(&["report", "--flat", "--json"]);
    let report: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
    let functions = report["functions"].as_array().expect("functions");
    let found = functions.iter().find(|found| found["function"] == function);
    found.map_or(0, |found| found["calls"].as_u64().expect("a number of calls"))
}

#[test]
fn processes_are_counted_while_attached_to_and_go_on_afterwards() {
    let session = Session::new();
    let mut running = Running::start(&ATTACHED, &[]);
    assert_eq!(running.line(), "ready");
    let mut done = vec![1_000];
    assert_eq!(running.step(1_000), sum(&done));
    for calls in [12_345, 1, 54_321] {
        let counting = attach(&session, &running, &[]);
        done.push(calls);
        assert_eq!(running.step(calls), sum(&done), "as translated code");
        let outcome = interrupt(counting);
        assert!(outcome.status.success(), "{outcome:#?}");
        let goes_on = format!("process {} goes on by itself", running.pid());
        assert!(outcome.stderr.contains(&goes_on), "{outcome:#?}");
        assert!(!outcome.stderr.contains("not counted exactly"), "{outcome:#?}");
        assert_eq!(calls_of(&session, "step"), calls);
        let status = running.proc("status");
        assert!(status.contains("TracerPid:\t0\n"), "{status}");
        assert!(status.contains("Seccomp_filters:\t1\n"), "it is used again: {status}");
        let maps = running.proc("maps");
        assert!(maps.lines().any(is_own_code), "it may be executed again:\n{maps}");
        assert!(!maps.lines().any(is_ours), "nothing is left of us:\n{maps}");
        done.push(77);
        assert_eq!(running.step(77), sum(&done), "as it was");
    }
    let said = [AS_IT_SHOULD; 6].join(" ");
    assert_eq!(running.end(), (said, Some(7)));
}

#[test]
fn calls_are_as_they_would_be_while_a_process_is_attached_to() {
    let session = Session::new();
    let mut running = Running::start(&ATTACHED, &[]);
    assert_eq!(running.line(), "ready");
    for _ in 0..3 {
        let counting = attach(&session, &running, &[]);
        for deed in ["signals", "children", "threads", "timers"] {
            running.does(deed);
        }
        let outcome = interrupt(counting);
        assert!(outcome.status.success(), "{outcome:#?}");
        assert!(!outcome.stderr.contains("not counted exactly"), "{outcome:#?}");
        running.does("signals");
    }
    assert_eq!(running.end().1, Some(7));
}

/// Where the first translated code lies in a process that is attached to, which there is nothing at otherwise.
fn place_of_code(running: &Running) -> String {
    let maps = running.proc("maps");
    let line = maps.lines().find(|line| line.contains(" /memfd:treering code")).expect("translated code");
    format!("call {}", line.split_once('-').expect("a range of addresses").0)
}

#[test]
fn calls_from_former_addresses_of_translated_code_are_ordinary_also_after_exec() {
    let session = Session::new();
    let mut running = Running::start(&ATTACHED, &[]);
    assert_eq!(running.line(), "ready");
    let counting = attach(&session, &running, &[]);
    assert_eq!(running.step(10), sum(&[10]));
    let call = place_of_code(&running);
    assert!(interrupt(counting).status.success());
    running.does(&call);
    running.say("exec");
    assert_eq!(running.line(), "ready");
    ["signals", "children", &call].into_iter().for_each(|deed| running.does(deed));
    let said = [AS_IT_SHOULD; 6].join(" ");
    assert_eq!(running.end(), (said, Some(7)));
}

#[test]
fn processes_can_be_attached_to_after_exec() {
    let session = Session::new();
    let mut running = Running::start(&ATTACHED, &[]);
    assert_eq!(running.line(), "ready");
    // While it is counted, and when it is left alone.
    let counting = attach(&session, &running, &[]);
    running.say("exec");
    assert_eq!(running.line(), "ready");
    running.does("signals");
    assert!(interrupt(counting).status.success());
    running.say("exec");
    assert_eq!(running.line(), "ready");
    let counting = attach(&session, &running, &[]);
    ["signals", "children"].into_iter().for_each(|deed| running.does(deed));
    assert_eq!(running.step(4_321), sum(&[4_321]));
    let outcome = interrupt(counting);
    assert!(outcome.status.success(), "{outcome:#?}");
    assert_eq!(calls_of(&session, "step"), 4_322, "one of them in a child");
    let status = running.proc("status");
    assert!(status.contains("Seccomp_filters:\t1\n"), "{status}");
    let said = [AS_IT_SHOULD; 6].join(" ");
    assert_eq!(running.end(), (said, Some(7)));
}

#[test]
fn a_process_that_ends_while_it_is_counted_says_how() {
    let session = Session::new();
    let mut running = Running::start(&ATTACHED, &[]);
    assert_eq!(running.line(), "ready");
    let counting = attach(&session, &running, &[]);
    assert_eq!(running.step(5_000), sum(&[5_000]));
    let said = [AS_IT_SHOULD; 6].join(" ");
    assert_eq!(running.end(), (said, Some(7)));
    let outcome = Outcome::of(counting.wait_with_output().expect("it is our child"));
    assert_eq!(outcome.status.code(), Some(7), "{outcome:#?}");
    assert_eq!(calls_of(&session, "step"), 5_000);
}

#[test]
fn threads_that_come_and_go_are_counted_and_left() {
    let session = Session::new();
    let arguments = ["4000", "500000"];
    let mut running = Running::start(&LEAF_THREADS, &arguments);
    let pid = running.pid().to_string();
    let mut calls = Vec::new();
    while calls.len() < 4 && running.child.try_wait().expect("it is our child").is_none() {
        let outcome = session.run(&["count", "-p", &pid, "--stop-after", "0.1"]);
        if outcome.stderr.contains("there is no process") {
            break;
        }
        assert!(outcome.status.success(), "{outcome:#?}");
        assert!(!outcome.stderr.contains("not counted exactly"), "{outcome:#?}");
        calls.push(calls_of(&session, "leaf"));
    }
    assert!(calls.iter().any(|&calls| calls > 0), "{calls:?}");
    let native = Command::new(LEAF_THREADS.build().expect("built before")).args(arguments).output();
    let native = String::from_utf8(native.expect("it runs").stdout).expect("it is text");
    assert_eq!(running.end(), (native.trim().to_owned(), Some(0)));
}

#[test]
fn children_are_counted_from_then_on() {
    let session = Session::new();
    let script =
        "read n; for i in $(seq $n); do a=$(echo $i | sed s/1/2/); s=$((s + a)); done; echo $s; read n";
    let mut running = Running::of(Command::new("bash").args(["-c", script]));
    running.wait_until("it reads", |running| running.proc("wchan").contains("pipe"));
    let counting = attach(&session, &running, &[]);
    running.say("30");
    assert_eq!(running.line(), "567", "the numbers up to 30, of each the first 1 as a 2");
    let outcome = interrupt(counting);
    assert!(outcome.status.success(), "{outcome:#?}");
    let programs = outcome.stderr.lines().find(|line| line.contains("programs")).expect("so many programs");
    let programs = programs.split_whitespace().nth(3).and_then(|number| number.parse::<u32>().ok());
    // The shell; for each round a copy of it, two more of that, one of which becomes sed; and seq.
    assert!(programs.is_some_and(|programs| programs > 90), "{outcome:#?}");
    running.say("");
    assert_eq!(running.end(), (String::new(), Some(0)));
}

#[test]
fn files_of_a_killed_count_can_be_read() {
    let session = Session::new();
    let mut running = Running::start(&ATTACHED, &[]);
    assert_eq!(running.line(), "ready");
    let mut counting = attach(&session, &running, &[]);
    assert_eq!(running.step(4_321), sum(&[4_321]));
    counting.kill().expect("it runs");
    counting.wait().expect("it is our child");
    assert_eq!(running.child.wait().expect("it is our child").code(), None, "it cannot go on without");
    let text = session.output(&["report", "treering.trg.counting", "--flat", "--json"]);
    let report: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
    let functions = report["functions"].as_array().expect("functions");
    let step = functions.iter().find(|found| found["function"] == "step").expect("it was executed");
    assert_eq!(step["calls"], 4_321);
}

/// Runs `count -p`, which must refuse the process.
fn refused(pid: Pid, why: &str, hint: &str) {
    let session = Session::new();
    let outcome = session.run(&["count", "-p", &pid.to_string(), "--stop-after", "0.1"]);
    assert_eq!(outcome.status.code(), Some(1), "{outcome:#?}");
    assert!(outcome.stderr.contains(why), "{outcome:#?}");
    assert!(outcome.stderr.contains(hint), "{outcome:#?}");
    assert!(!session.path("treering.trg").exists());
    assert!(!session.path("treering.trg.counting").exists());
}

/// Code that is sealed stays executable, and code that is sealed and writable stays writable: neither can be protected
/// when the tracer comes, nor given back when it goes.
#[test]
fn a_process_that_sealed_its_code_before_is_counted_and_goes_on() {
    let mut running = Running::start(&SEALED, &[]);
    let mut first = String::new();
    running.lines.read_line(&mut first).expect("it can be read");
    if first.is_empty() {
        assert_eq!(running.end().1, Some(77));
        return crate::skip("this kernel seals no memory (Linux 6.10 does)");
    }
    running.does("10");
    for calls in [1_000, 7] {
        let session = Session::new();
        let pid = running.pid().to_string();
        let counting = session.command(&["count", "-p", &pid]).spawn().expect("treering runs");
        running.wait_until("it is attached to", Running::waits_in_translated_code);
        running.does(&calls.to_string());
        running.does("500");
        let outcome = interrupt(counting);
        assert!(outcome.status.success(), "{outcome:#?}");
        assert_eq!(calls_of(&session, "step"), calls + 500);
        running.does("20");
    }
    assert_eq!(running.end().1, Some(7));
}

#[test]
fn memory_below_a_stack_is_left_alone() {
    for arguments in [&[][..], &["others"]] {
        let session = Session::new();
        let mut running = Running::start(&EDGE, arguments);
        assert_eq!(running.line(), "ready");
        for _ in 0..2 {
            let counting = attach(&session, &running, &[]);
            running.say("s");
            assert_eq!(running.line(), "done");
            let outcome = interrupt(counting);
            assert!(outcome.status.success(), "{outcome:#?}");
            assert!(!outcome.stderr.contains("not counted exactly"), "{outcome:#?}");
            assert_eq!(calls_of(&session, "leaf"), 1_000);
        }
        assert_eq!(running.end(), (AS_IT_SHOULD.to_owned(), Some(7)));

        let session = Session::new();
        let mut words = vec!["count", "--"];
        let program = EDGE.build().expect("the compiler is installed");
        words.push(program.to_str().expect("a path"));
        words.extend(arguments);
        let mut running = Running::of(&mut session.command(&words));
        assert_eq!(running.line(), "ready");
        // With a filter of its own.
        for deed in ["s", "f", "s"] {
            running.say(deed);
            assert_eq!(running.line(), "done", "{deed}");
        }
        assert_eq!(running.end(), (AS_IT_SHOULD.to_owned(), Some(7)));
        assert_eq!(calls_of(&session, "leaf"), 2_000);
    }
}

#[test]
fn an_interrupt_is_not_lost_however_soon_it_comes() {
    let mut running = Running::start(&ATTACHED, &[]);
    assert_eq!(running.line(), "ready");
    let session = Session::new();
    // While it attaches, and when that is done.
    for stage in ["treering code", "translated"].iter().flat_map(|stage| [stage; 20]) {
        let pid = running.pid().to_string();
        let mut counting = session.command(&["count", "-q", "-p", &pid]).spawn().expect("treering runs");
        let is_reached = || match *stage {
            "translated" => running.is_translated(),
            memory => running.proc("maps").contains(memory),
        };
        while !is_reached() {
            assert!(counting.try_wait().expect("it is our child").is_none(), "it attaches");
        }
        kill(Pid::from_raw(counting.id().cast_signed()), Signal::SIGINT).expect("it runs");
        let deadline = Instant::now() + Duration::from_secs(120);
        while counting.try_wait().expect("it is our child").is_none() {
            if Instant::now() > deadline {
                let _ = counting.kill();
                panic!("it goes on counting after an interrupt: {stage}");
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    let (_, status) = running.end();
    assert_eq!(status, Some(7));
}

#[test]
fn processes_that_cannot_be_attached_to_are_refused_and_go_on() {
    /// Linux has no process of such a number.
    const NOBODY: i32 = 1 << 22;
    refused(Pid::from_raw(NOBODY), "there is no process", "ps -e");

    // Nobody waits for it, so that it is still listed.
    let mut ended = std::process::Command::new("true").spawn().expect("a program");
    while !treering_proc::has_ended(ended.id(), ended.id()) {
        std::thread::yield_now();
    }
    refused(Pid::from_raw(ended.id().cast_signed()), "has ended", "ps -e");
    assert!(ended.wait().is_ok());

    let mut running = Running::start(&ATTACHED, &[]);
    assert_eq!(running.line(), "ready");
    kill(running.pid(), Signal::SIGSTOP).expect("it runs");
    running.wait_until("it stops", |running| running.proc("status").contains("T (stopped)"));
    refused(running.pid(), "it is stopped", "record -p");
    kill(running.pid(), Signal::SIGCONT).expect("it is there");
    let threads = std::fs::read_dir(format!("/proc/{}/task", running.pid())).expect("it runs");
    let numbers = threads.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let thread = numbers.map(Pid::from_raw).find(|&thread| thread != running.pid());
    refused(thread.expect("it has others"), "it is a thread", "");

    let session = Session::new();
    let counting = attach(&session, &running, &[]);
    refused(running.pid(), "traces it already", "record -p");
    assert!(interrupt(counting).status.success());
    assert_eq!(running.step(10), sum(&[10]));
    assert_eq!(running.end().1, Some(7));

    let mut filtered = Running::start(&ATTACHED, &["filtered"]);
    assert_eq!(filtered.line(), "ready");
    refused(filtered.pid(), "it filters its own system calls", "record -p");
    assert_eq!(filtered.end().1, Some(7));

    // Its number is in use, though `ps` calls it a zombie.
    let mut headless = Running::start(&MAIN_EXITED, &["100000"]);
    assert_eq!(headless.line(), "alone");
    refused(headless.pid(), "its first thread has ended", "record -p");
    drop(headless);

    let session = Session::new();
    let outcome = session.run(&["count", "-p", "1", "--tree"]);
    assert_eq!(outcome.status.code(), Some(2), "{outcome:#?}");
}

/// They ended with EINTR when treering attached, or when it left.
#[test]
fn calls_that_the_kernel_does_not_begin_again_go_on() {
    let session = Session::new();
    let source = "#include <sys/epoll.h>\n\
        int main(void) {\n\
          struct epoll_event event = { .events = EPOLLIN };\n\
          int all = epoll_create1(0), number;\n\
          epoll_ctl(all, EPOLL_CTL_ADD, 0, &event);\n\
          puts(\"ready\"); fflush(stdout);\n\
          number = epoll_wait(all, &event, 1, 600000);\n\
          printf(\"%d\\n\", number); fflush(stdout);\n\
          return 7;\n\
        }\n";
    let Some(path) = crate::gprof::compile(&session, source, "polls", &[]) else { return };
    let is_in_call =
        |running: &Running| running.proc("syscall").starts_with(&format!("{} ", libc::SYS_epoll_wait));
    for leaves in [false, true] {
        let mut running = Running::of(Command::new(&path).current_dir(session.path(".")));
        assert_eq!(running.line(), "ready");
        running.wait_until("it waits", is_in_call);
        let counting = attach(&session, &running, &[]);
        running.wait_until("it waits again", is_in_call);
        if leaves {
            let outcome = interrupt(counting);
            assert!(outcome.status.success(), "{outcome:#?}");
            running.wait_until("it waits by itself", is_in_call);
            running.say("x");
        } else {
            running.say("x");
            let outcome = Outcome::of(counting.wait_with_output().expect("it is our child"));
            assert_eq!(outcome.status.code(), Some(7), "{outcome:#?}");
        }
        assert_eq!(running.line(), "1", "leaves: {leaves}");
    }
}
