//! `treering count` and others that run programs which a terminal stops (Ctrl-Z), and that go on.

use std::io::{Read as _, Write as _};
use std::process::{ChildStdin, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use treering_testing::programs::{SUSPENDED, installed};

use crate::session::Session;
use crate::skip;

/// The key that a terminal turns into a request to stop.
const CTRL_Z: &[u8] = b"\x1a";

/// The text on a terminal whose shell runs a command, which is stopped, and goes on. The user acts whenever there is more text,
/// given all text until then, and has a keyboard.
fn shown_when_stopped(
    session: &Session,
    command: &str,
    mut user: impl FnMut(&str, &mut ChildStdin),
) -> String {
    let shell = format!("set -m; {command}; echo stopped $?; fg; echo ended $?");
    std::fs::write(session.path("shell"), shell).expect("written");
    // A program that nobody continues would wait for ever.
    let mut terminal = Command::new("timeout");
    terminal.args(["--kill-after=1", "120", "script", "-q", "-f", "-c", "exec sh shell", "/dev/null"]);
    terminal.current_dir(session.path(".")).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = terminal.spawn().expect("timeout is part of coreutils");
    let (mut keyboard, mut screen) =
        (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
    let (mut shown, mut part) = (String::new(), [0; 4096]);
    while let Ok(length @ 1..) = screen.read(&mut part) {
        shown.push_str(&String::from_utf8_lossy(&part[..length]));
        user(&shown, &mut keyboard);
    }
    child.wait().expect("it is our child");
    shown
}

/// A user who presses a key once the program says that it is running.
fn presses(key: &'static [u8]) -> impl FnMut(&str, &mut ChildStdin) {
    let mut is_pressed = false;
    move |shown, keyboard| {
        if !is_pressed && shown.contains("running") {
            keyboard.write_all(key).expect("it reads");
            is_pressed = true;
        }
    }
}

/// Checks that texts are shown one after the other.
fn check_order(shown: &str, texts: &[&str]) {
    let mut rest = shown;
    for text in texts {
        let Some((_, behind)) = rest.split_once(text) else {
            panic!("{text:?} is not in {rest:?} of {shown}");
        };
        rest = behind;
    }
}

/// The program's parent stopped first, so the program put the terminal in order after it had been continued. Then it stopped itself, and
/// nobody continued it.
#[test]
fn a_program_puts_its_terminal_in_order_before_the_shell_has_it() {
    if installed("script").is_none() {
        return skip("script (util-linux) is not installed");
    }
    let session = Session::new();
    let path = SUSPENDED.build().expect("the compiler is installed");
    let treering = env!("CARGO_BIN_EXE_treering");
    let cases = [
        ("count -q", ""),
        ("count -q --tree", ""),
        ("count -q", "child"),
        ("count -q", "group"),
        ("record -q", ""),
        ("stat", ""),
        ("stat --exact", ""),
    ];
    for (subcommand, arguments) in cases {
        let command = format!("'{treering}' {subcommand} -- '{}' {arguments}", path.display());
        // The last stops itself.
        let key = if arguments == "group" { b"" } else { CTRL_Z };
        let shown = shown_when_stopped(&session, &command, presses(key));
        check_order(&shown, &["running", "in order", "stopped 148", "back", "ended 3"]);
    }
}

/// An interactive shell has a process group of its own. It stopped alone, nothing on the terminal answered any more, and
/// nothing continued it.
#[test]
fn a_shell_that_suspends_itself_gives_the_terminal_back() {
    if installed("script").is_none() {
        return skip("script (util-linux) is not installed");
    }
    let session = Session::new();
    let path = SUSPENDED.build().expect("the compiler is installed");
    for subcommand in ["count -q", "stat"] {
        let treering = env!("CARGO_BIN_EXE_treering");
        let command = format!("'{treering}' {subcommand} -- '{}' shell", path.display());
        let shown = shown_when_stopped(&session, &command, |_, _| {});
        check_order(&shown, &["running", "stopped 147", "back", "ended 3"]);
    }
}

/// The program had not stopped when the terminal asked it to. When another process stopped it later, the tracer stopped too,
/// and the program could not go on when that process continued it.
#[test]
fn a_program_that_another_process_stops_goes_on_when_it_is_continued() {
    if installed("script").is_none() {
        return skip("script (util-linux) is not installed");
    }
    let session = Session::new();
    let path = SUSPENDED.build().expect("the compiler is installed");
    let command = format!("'{}' count -q -- '{}' heedless", env!("CARGO_BIN_EXE_treering"), path.display());
    let mut press = presses(CTRL_Z);
    let mut is_stopped = false;
    let shown = shown_when_stopped(&session, &command, |shown, keyboard| {
        press(shown, keyboard);
        if !is_stopped && shown.contains("handled") {
            let number = shown.split(['g', '.']).find_map(|word| word.trim().parse().ok());
            let program = Pid::from_raw(number.expect("its number is shown"));
            kill(program, Signal::SIGSTOP).expect("it is there");
            let state = || std::fs::read_to_string(format!("/proc/{program}/stat")).expect("it is there");
            while !state().contains(") t ") {
                std::thread::yield_now();
            }
            kill(program, Signal::SIGCONT).expect("it is there");
            keyboard.write_all(b"\n").expect("it reads");
            is_stopped = true;
        }
    });
    check_order(&shown, &["running", "handled", "stopped 3"]);
}

/// The report stopped before its pager had left the screen to the shell.
#[test]
fn a_pager_puts_the_terminal_in_order_before_the_shell_has_it() {
    if installed("script").is_none() {
        return skip("script (util-linux) is not installed");
    }
    let session = Session::new();
    let path = SUSPENDED.build().expect("the compiler is installed");
    std::fs::write(session.path("stacks.folded"), "main;work 3\n").expect("written");
    let treering = env!("CARGO_BIN_EXE_treering");
    let command = format!("TREERING_PAGER=\"exec '{}'\" '{treering}' report stacks.folded", path.display());
    let shown = shown_when_stopped(&session, &command, presses(CTRL_Z));
    check_order(&shown, &["running", "in order", "stopped 148", "back", "ended 0"]);
}
