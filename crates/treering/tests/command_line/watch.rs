//! `treering watch` on programs that run.

use std::io::Read as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use treering_testing::programs::installed;

use crate::runtime::{Program, Running};
use crate::session::{Outcome, Session};
use crate::skip;

fn running(arguments: &[&str]) -> Option<(Session, Running)> {
    let session = Session::new();
    let program = Program::Calls.compile(&session)?;
    let running = Running::start(&session, &program, arguments);
    Some((session, running))
}

/// `treering watch` into a pipe that is read as it fills.
struct Watching {
    child: Child,
    shown: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl Watching {
    fn start(session: &Session, arguments: &[&str]) -> Self {
        let mut child = session.command(arguments).spawn().expect("treering runs");
        let mut output = child.stdout.take().expect("it is a pipe");
        let shown = Arc::new(Mutex::new(Vec::new()));
        let text = Arc::clone(&shown);
        let reader = std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = output.read(&mut bytes) {
                text.lock().unwrap_or_else(PoisonError::into_inner).extend(&bytes[..count]);
            }
        });
        Self { child, shown, reader }
    }

    /// Waits until so many more listings than there are were begun.
    fn wait_for(&self, more: usize) {
        let shown = || {
            let shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
            String::from_utf8_lossy(&shown).into_owned()
        };
        let wanted = listings(&shown()).len() + more;
        let begun = Instant::now();
        while listings(&shown()).len() < wanted {
            assert!(begun.elapsed() < Duration::from_secs(60), "there come no more: {}", shown());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn end(self) -> Outcome {
        let mut output = self.child.wait_with_output().expect("it is our child");
        self.reader.join().expect("it only reads");
        output.stdout = self.shown.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Outcome::of(output)
    }
}

/// The listings of a pipe, each of which begins with the command.
fn listings(text: &str) -> Vec<&str> {
    let starts: Vec<usize> = text.match_indices("command ").map(|(at, _)| at).collect();
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    starts.iter().zip(ends).map(|(&start, end)| &text[start..end]).collect()
}

/// The calls of a function in a listing of functions.
fn calls(listing: &str, function: &str) -> u64 {
    let headings = listing.lines().find(|line| line.contains("function")).expect("there are headings");
    let headings: Vec<&str> = headings.split("  ").map(str::trim).filter(|text| !text.is_empty()).collect();
    let at = headings.iter().position(|heading| *heading == "calls").expect("calls are shown");
    let is_it = |line: &&str| line.split_whitespace().any(|word| word == function);
    let row = listing.lines().skip_while(|line| !line.contains("function")).find(is_it);
    let row = row.unwrap_or_else(|| panic!("no {function} in {listing}"));
    let count = row.split_whitespace().nth(at).expect("each column has a cell");
    count.replace(',', "").parse().unwrap_or_else(|_| panic!("{count} is no number: {listing}"))
}

#[test]
fn a_pipe_gets_one_listing_for_each_interval() {
    let Some((session, running)) = running(&["1", "forever"]) else { return };
    let pid = running.pid().to_string();
    let text = session.output(&["watch", "-i", "0.3", "-n", "3"]);
    let listings = listings(&text);
    assert_eq!(listings.len(), 3, "{text}");
    assert!(!text.contains('\u{1b}'), "no escape codes in a pipe: {text:?}");
    assert!(listings.iter().all(|listing| listing.contains(&format!("(process {pid})"))), "{text}");
    assert!(listings.iter().all(|listing| listing.contains("now in    main")), "{text}");
    assert!(text.contains("now in    main > solve > "), "{text}");
    assert!(!listings[0].contains("% lately"), "nothing came before the first: {text}");
    for pair in listings.windows(2) {
        assert!(pair[1].contains("% lately") && pair[1].contains("calls/s"), "{text}");
        assert!(calls(pair[1], "solve") > calls(pair[0], "solve"), "it grows: {text}");
    }
}

#[test]
fn a_process_is_found_by_its_number() {
    let Some((session, running)) = running(&["10", "wait"]) else { return };
    let pid = running.pid().to_string();
    let text = session.output(&["watch", &pid, "-n", "1", "--flat"]);
    assert_eq!((calls(&text, "solve"), calls(&text, "fibonacci")), (10, 1770), "{text}");
    let top = session.output(&["watch", &pid, "-n", "1", "--top", "2"]);
    assert!(top.contains("more"), "{top}");
    assert_eq!(top.lines().count(), text.lines().count() - 4, "two of seven functions: {top}");
}

#[test]
fn a_running_program_is_shown_as_a_graph_or_a_tree() {
    let Some((session, running)) = running(&["200", "forever"]) else { return };
    let pid = running.pid().to_string();
    let graph = session.output(&["watch", &pid, "-n", "1", "--callgraph"]);
    assert!(graph.contains("<spontaneous>") && graph.contains("fibonacci ["), "{graph}");
    let tree = session.output(&["watch", &pid, "-n", "1", "--tree"]);
    assert!(tree.contains("% total") && tree.contains("    fibonacci  calls.c"), "{tree}");
}

#[test]
fn it_ends_with_the_program_and_shows_the_finished_profile() {
    let session = Session::new();
    let Some(program) = Program::Calls.compile(&session) else { return };
    let mut child = Command::new(&program)
        .arg("3000")
        .current_dir(session.path(""))
        .stdout(Stdio::null())
        .spawn()
        .expect("it was just compiled");
    // It has hardly begun, and its file is not there yet.
    let text = session.output(&["watch", &child.id().to_string(), "-i", "0.05"]);
    assert!(child.wait().is_ok_and(|status| status.success()));
    let listings = listings(&text);
    let last = listings.last().expect("there is at least one");
    assert!(last.contains("the program has ended"), "{text}");
    assert_eq!(calls(last, "fibonacci"), 3000 * 177);
}

#[test]
fn it_ends_when_the_program_is_killed_and_shows_all_of_it() {
    let Some((session, mut running)) = running(&["30", "wait"]) else { return };
    let pid = running.pid().to_string();
    let watching = Watching::start(&session, &["watch", &pid, "-i", "0.1"]);
    watching.wait_for(2);
    running.kill();
    let outcome = watching.end();
    assert!(outcome.status.success(), "{outcome:#?}");
    let listings = listings(&outcome.stdout);
    assert!(listings.len() >= 2, "{outcome:#?}");
    assert_eq!(calls(listings[listings.len() - 1], "fibonacci"), 30 * 177);
    assert!(outcome.stderr.contains("no call is missing"), "{outcome:#?}");
}

#[test]
fn a_file_that_was_removed_can_be_watched_as_before() {
    let Some((session, mut running)) = running(&["3", "forever"]) else { return };
    let watching = Watching::start(&session, &["watch", "-i", "0.1"]);
    watching.wait_for(2);
    std::fs::remove_file(session.path("treering.trg")).expect("it is there");
    watching.wait_for(2);
    running.kill();
    let outcome = watching.end();
    assert!(outcome.status.success(), "{outcome:#?}");
    let listings = listings(&outcome.stdout);
    assert!(listings.len() >= 4, "{outcome:#?}");
    let last = listings[listings.len() - 1];
    assert!(last.contains("its file is gone") && calls(last, "solve") > 3, "{outcome:#?}");
}

#[test]
fn a_program_that_cannot_be_watched_is_refused_with_a_hint() {
    let session = Session::new();
    let own = std::process::id().to_string();
    let said = session.run(&["watch", &own]);
    assert!(said.error().contains("writes no profile") && said.stderr.contains("hint: "), "{said:#?}");
    // Numbers of processes end far below.
    let said = session.run(&["watch", "4194999"]);
    assert!(said.error().contains("there is no process"), "{said:#?}");
    let said = session.run(&["watch", "not-there.trg"]);
    assert!(said.error().contains("no such file") && said.stderr.contains("hint: "), "{said:#?}");
    std::fs::write(session.path("blank"), [0; 4096]).expect("the directory can be written");
    assert!(session.run(&["watch", "blank"]).error().contains("the file is empty"));
    std::fs::write(session.path("notes"), "main;solve 3\n").expect("the directory can be written");
    let said = session.run(&["watch", "notes"]);
    assert!(said.error().contains("treering report notes"), "{said:#?}");
    for interval in ["0", "-1", "x", "nan"] {
        let interval = format!("--interval={interval}");
        assert_eq!(session.run(&["watch", &interval]).shell_status(), 2, "{interval}");
    }
}

#[test]
fn a_request_to_end_is_no_failure() {
    let Some((session, _running)) = running(&["1", "forever"]) else { return };
    let mut command = session.command(&["watch", "-i", "30"]);
    let mut watching = command.process_group(0).spawn().expect("treering runs");
    let mut first = [0; 8];
    let output = watching.stdout.as_mut().expect("it is a pipe");
    output.read_exact(&mut first).expect("the first listing comes at once");
    assert_eq!(&first, b"command ");
    let pid = Pid::from_raw(i32::try_from(watching.id()).expect("process numbers are small"));
    let start = Instant::now();
    kill(pid, Signal::SIGINT).expect("it runs");
    let outcome = Outcome::of(watching.wait_with_output().expect("it is our child"));
    assert!(outcome.status.success(), "{outcome:#?}");
    assert!(start.elapsed() < Duration::from_secs(20), "it does not wait for the interval to pass");
}

#[test]
fn a_reader_that_stops_ends_it() {
    let Some((session, _running)) = running(&["1", "forever"]) else { return };
    let mut watching = session.command(&["watch", "-i", "0.05"]).spawn().expect("treering runs");
    drop(watching.stdout.take());
    let start = Instant::now();
    let outcome = Outcome::of(watching.wait_with_output().expect("it is our child"));
    assert!(outcome.status.success(), "{outcome:#?}");
    assert!(start.elapsed() < Duration::from_secs(30));
}

#[test]
fn a_terminal_is_put_back_as_it_was() {
    let Some((session, _running)) = running(&["1", "forever"]) else { return };
    let Some(script) = installed("script") else { return skip("script (util-linux) is not installed") };
    let treering = env!("CARGO_BIN_EXE_treering");
    let watch = format!("stty rows 7 cols 60; '{treering}' watch -i 0.1 -n 4");
    let mut command = Command::new(script);
    command.args(["-q", "-e", "-c", &watch, "/dev/null"]).env("TERM", "xterm").env_remove("NO_COLOR");
    command.current_dir(session.path(".")).stdin(Stdio::null()).stdout(Stdio::piped());
    let outcome = Outcome::of(command.output().expect("it runs"));
    assert!(outcome.status.success(), "{outcome:#?}");
    let text = &outcome.stdout;
    let at = |code: &str| text.find(code).unwrap_or_else(|| panic!("no {code:?} in {text:?}"));
    assert!(at("\u{1b}[?1049h") < at("\u{1b}[?25l"), "{text:?}");
    assert!(at("\u{1b}[?25h") < at("\u{1b}[?1049l"), "{text:?}");
    assert_eq!(text.matches("\u{1b}[?1049h").count(), 1, "the screen is entered once: {text:?}");
    let (shown, after) = text.split_at(at("\u{1b}[?1049l"));
    let frames: Vec<&str> = shown.split("\u{1b}[H").skip(1).collect();
    assert_eq!(frames.len(), 4, "{text:?}");
    assert!(frames.iter().all(|frame| frame.matches("\r\n").count() < 7), "they fit: {text:?}");
    assert!(after.contains("% lately"), "what was shown last stays: {text:?}");
}
