//! `treering count` of programs that a terminal stops (Ctrl-Z), and that go on.

use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};

use treering_testing::programs::{SUSPENDED, installed};

use crate::session::Session;
use crate::skip;

/// The text on a terminal whose shell runs a command, which is stopped, and goes on. A key stops it once it says that it is
/// running, unless it stops itself.
fn shown_when_stopped(session: &Session, command: &str, by_key: bool) -> String {
    /// The key that a terminal turns into a request to stop.
    const CTRL_Z: &[u8] = b"\x1a";
    let shell = format!("set -m; {command}; echo stopped $?; fg; echo ended $?");
    std::fs::write(session.path("shell"), shell).expect("written");
    // A program that nobody continues would wait for ever.
    let mut terminal = Command::new("timeout");
    terminal.args(["--kill-after=1", "120", "script", "-q", "-f", "-c", "exec sh shell", "/dev/null"]);
    terminal.current_dir(session.path(".")).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = terminal.spawn().expect("timeout is part of coreutils");
    let (mut keyboard, mut screen) =
        (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
    let (mut shown, mut part, mut is_stopped) = (String::new(), [0; 4096], !by_key);
    while let Ok(length @ 1..) = screen.read(&mut part) {
        shown.push_str(&String::from_utf8_lossy(&part[..length]));
        if !is_stopped && shown.contains("running") {
            keyboard.write_all(CTRL_Z).expect("it reads");
            is_stopped = true;
        }
    }
    child.wait().expect("it is our child");
    shown
}

/// The tracer stopped first, so the program put the terminal in order after it had been continued. Then it stopped itself, and
/// nobody continued it.
#[test]
fn a_program_puts_its_terminal_in_order_before_the_shell_has_it() {
    if installed("script").is_none() {
        return skip("script (util-linux) is not installed");
    }
    let session = Session::new();
    let path = SUSPENDED.build().expect("the compiler is installed");
    let treering = env!("CARGO_BIN_EXE_treering");
    for (options, arguments) in [("", ""), ("--tree", ""), ("", "child"), ("", "group")] {
        let command = format!("'{treering}' count -q {options} -- '{}' {arguments}", path.display());
        let shown = shown_when_stopped(&session, &command, arguments != "group");
        let mut rest = &shown[..];
        for expected in ["running", "in order", "stopped 148", "back", "ended 3"] {
            let Some((_, behind)) = rest.split_once(expected) else {
                panic!("{expected:?} is not in {rest:?} of {shown}");
            };
            rest = behind;
        }
    }
}
