//! Reports on a terminal: their width, the pager, and colour.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use treering_testing::programs::installed;

use crate::session::{Outcome, Session};
use crate::skip;

/// A session with `a.folded`, whose names are long; nothing where no terminal can be had.
fn session() -> Option<Session> {
    if installed("script").is_none() {
        skip("script (util-linux) is not installed");
        return None;
    }
    let session = Session::new();
    let stacks =
        |at: usize| format!("main;a_function_whose_name_is_longer_than_most_others_{at:02} {}\n", 900 - at);
    let text: String = (0..40).map(stacks).collect();
    std::fs::write(session.path("a.folded"), text).expect("written");
    Some(session)
}

/// Runs `treering` on a terminal of 80 columns, with these settings of the environment. `PAGER` and the like are
/// not set otherwise.
fn on_terminal(session: &Session, settings: &str, arguments: &str) -> Outcome {
    let treering = env!("CARGO_BIN_EXE_treering");
    let shell = format!("stty rows 24 cols 80; {settings} '{treering}' {arguments}");
    let mut command = Command::new(installed("script").expect("it is there"));
    command.args(["-q", "-e", "-c", &shell, "/dev/null"]).env("TERM", "xterm");
    for name in ["NO_COLOR", "PAGER", "TREERING_PAGER", "LESS"] {
        command.env_remove(name);
    }
    command.current_dir(session.path(".")).stdin(Stdio::null()).stdout(Stdio::piped());
    Outcome::of(command.output().expect("it runs"))
}

#[test]
fn reports_on_a_terminal_go_through_the_pager() {
    let Some(session) = session() else { return };
    let shown = |settings: &str, options: &str| {
        let outcome = on_terminal(&session, settings, &format!("{options} report a.folded --color never"));
        assert!(outcome.status.success(), "{settings} {options}: {outcome:#?}");
        outcome.stdout
    };
    let (paged, plain) = ("A_FUNCTION_WHOSE", "a_function_whose");
    for (settings, options, expected) in [
        ("PAGER='tr a-z A-Z'", "", paged),
        ("PAGER=false TREERING_PAGER='tr a-z A-Z'", "", paged),
        ("PAGER='tr a-z A-Z' TREERING_PAGER=", "", plain),
        ("PAGER='tr a-z A-Z' TREERING_PAGER=cat", "", plain),
        ("PAGER='tr a-z A-Z'", "--no-pager", plain),
        ("PAGER=no-such-pager", "", plain),
    ] {
        let text = shown(settings, options);
        let other = if expected == paged { plain } else { paged };
        assert!(text.contains(expected) && !text.contains(other), "{settings} {options}: {text}");
    }
    // A pager that is left at once is no error, and the report is not shown again.
    assert_eq!(shown("PAGER='exit 0;'", ""), "");
    let piped =
        session.command(&["report", "a.folded"]).env("PAGER", "tr a-z A-Z").output().expect("it runs");
    assert!(String::from_utf8_lossy(&piped.stdout).contains(plain), "{piped:?}");
}

#[test]
fn colour_is_used_as_it_is_asked_for() {
    let Some(session) = session() else { return };
    let is_coloured = |outcome: &Outcome| {
        assert!(outcome.status.success(), "{outcome:#?}");
        outcome.stdout.contains("\u{1b}[")
    };
    for (settings, options, expected) in [
        ("", "", true),
        ("NO_COLOR=1", "", false),
        ("NO_COLOR=", "", true),
        ("NO_COLOR=1", "--color always", true),
        ("", "--color=never", false),
        ("TERM=dumb", "", false),
        ("TERM=dumb", "--color=always", true),
    ] {
        let outcome = on_terminal(&session, settings, &format!("report a.folded --no-pager {options}"));
        assert_eq!(is_coloured(&outcome), expected, "{settings} {options}: {outcome:#?}");
    }
    for (options, expected) in
        [(&[][..], false), (&["--color", "auto"], false), (&["--color", "always"], true)]
    {
        let outcome = session.run(&[&["report", "a.folded"][..], options].concat());
        assert_eq!(is_coloured(&outcome), expected, "{options:?}: {outcome:#?}");
    }
}

/// Names had 10 characters.
#[test]
fn names_have_room_on_a_terminal_of_80_columns() {
    let Some(session) = session() else { return };
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/formats/swi-profile/data.txt");
    let report = |options: &str| {
        let words = format!("report '{}' --color never 2>/dev/null {options}", file.display());
        let outcome = on_terminal(&session, "", &words);
        assert!(outcome.status.success(), "{outcome:#?}");
        outcome.stdout
    };
    let text = report("--no-pager");
    let heading = text.lines().find(|line| line.contains("% self")).expect("a heading");
    assert!(heading.find("function").expect("a column") <= 50, "{text}");
    assert!(text.lines().all(|line| line.trim_end().chars().count() <= 80), "{text}");
    assert!(!heading.contains("running sum") && heading.contains("calls"), "{text}");
    assert!(text.contains("no room for: ") && text.contains("'$c_call_prolog'/0 (builtin)"), "{text}");
    let piped = report("| cat");
    assert!(piped.contains("running sum") && !piped.contains("no room"), "{piped}");
}

/// A report of a large profile said nothing for a minute.
#[test]
fn work_that_takes_long_is_named_on_a_terminal_and_not_in_a_pipe() {
    let Some(session) = session() else { return };
    let make = Command::new("mkfifo").arg(session.path("slow")).status();
    assert!(make.is_ok_and(|status| status.success()), "mkfifo is part of coreutils");
    let treering = env!("CARGO_BIN_EXE_treering");
    for (redirection, is_said) in [("", true), ("2>errors", false)] {
        let shell = format!("stty cols 80; '{treering}' report slow --no-pager --color never {redirection}");
        let mut command = Command::new(installed("script").expect("it is there"));
        command.args(["-q", "-e", "-c", &shell, "/dev/null"]).env("TERM", "xterm").stdin(Stdio::null());
        command.current_dir(session.path(".")).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it runs");
        // It waits for the text, which comes once the line is there, or after more than the second that it takes.
        let mut slow = std::fs::File::create(session.path("slow")).expect("a reader is there");
        let (mut output, mut seen) = (child.stdout.take().expect("it is piped"), Vec::new());
        let mut part = [0; 4096];
        while is_said && !String::from_utf8_lossy(&seen).contains("reading slow") {
            let length = output.read(&mut part).expect("it is read");
            assert!(length > 0, "{}", String::from_utf8_lossy(&seen));
            seen.extend_from_slice(&part[..length]);
        }
        if !is_said {
            std::thread::sleep(Duration::from_millis(1500));
        }
        slow.write_all(b"main;work 7\n").expect("it is read");
        drop(slow);
        output.read_to_end(&mut seen).expect("it is read");
        assert!(child.wait().is_ok_and(|status| status.success()));
        let text = String::from_utf8_lossy(&seen).into_owned();
        assert!(text.contains("work"), "{text}");
        assert_eq!(text.contains("reading"), is_said, "{text}");
    }
    assert_eq!(std::fs::read_to_string(session.path("errors")).expect("it is there"), "");
}
