//! `--view`: the page that a collector makes at its end.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use treering_testing::programs::installed;

use crate::octave::octave;
use crate::session::{Outcome, Session};
use crate::skip;

/// Runs a collector where there is no display.
fn run(session: &Session, arguments: &[&str]) -> Outcome {
    let mut command = session.command(arguments);
    command.env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY");
    Outcome::of(command.output().expect("treering runs"))
}

#[test]
fn the_page_is_beside_the_profile_and_the_status_is_the_programs() {
    let session = Session::new();
    std::fs::create_dir(session.path("out")).expect("the folder can be written");
    for collector in ["record", "count"] {
        let program = ["--", "sh", "-c", "exit 3"];
        let outcome = run(&session, &[&[collector, "--view", "-o", "out/a.trg"], &program[..]].concat());
        if outcome.shell_status() != 3 {
            skip(&format!("{collector} is refused: {}", outcome.stderr.lines().next().unwrap_or_default()));
            continue;
        }
        assert!(outcome.stderr.contains("out/a.html") && outcome.stderr.contains("open it in a browser"));
        let page = std::fs::read_to_string(session.path("out/a.html")).expect("the page was written");
        assert!(page.starts_with("<!doctype html>") && page.contains("<title>sh -c"), "{collector}");
        std::fs::remove_file(session.path("out/a.html")).expect("it is there");
    }
}

#[test]
fn a_foreign_page_is_replaced_by_force() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/octave/some_script.m");
    let script = script.to_str().expect("its path is text");
    for (collector, program) in
        [("record", &["--", "true"][..]), ("count", &["--", "true"]), ("octave", &[script])]
    {
        if collector == "octave" && octave("--force").is_none() {
            continue;
        }
        let session = Session::new();
        std::fs::write(session.path("a.html"), "<p>mine</p>").expect("the folder can be written");
        let outcome = run(&session, &[&[collector, "--view", "--force", "-o", "a.trg"], program].concat());
        assert!(outcome.status.success(), "{collector}: {outcome:#?}");
        let page = std::fs::read_to_string(session.path("a.html")).expect("it is there");
        assert!(page.starts_with("<!doctype html>"), "{collector}: {page}");
    }
}

#[test]
fn a_script_of_octave_gets_a_page_too() {
    if octave("--view").is_none() {
        return;
    }
    let session = Session::new();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/octave/some_script.m");
    let outcome = run(&session, &["octave", "--view", script.to_str().expect("its path is text")]);
    assert!(outcome.status.success() && outcome.stderr.contains("treering.html"), "{outcome:#?}");
    assert!(session.path("treering.html").exists());
}

/// The page said that the file was not there, while `treering view` of the same profile showed its text.
#[test]
fn the_page_has_the_sources_that_the_profile_lacks() {
    let Some(compiler) = installed("cc") else { return skip("no C compiler") };
    let session = Session::new();
    std::fs::write(session.path("p.c"), "int main(void) { return 0; }\n").expect("a file");
    let (source, program) = (session.path("p.c"), session.path("p"));
    let built = Command::new(compiler).args(["-g", "-O0", "-o"]).args([&program, &source]).status();
    assert!(built.expect("it runs").success());
    let program = program.to_str().expect("its path is text");
    let outcome = run(&session, &["count", "--tree", "--view", "-o", "a.trg", "--", program]);
    if !session.path("a.trg").exists() {
        return skip("nothing is counted: this machine refuses to trace");
    }
    assert!(outcome.stderr.contains("note: the page has text of 1 source file"), "{outcome:#?}");
}

/// Gives a command a desktop whose browser is a script; what that writes to `$TOLD` is read by [`told_by_browser`].
pub(crate) fn on_desktop(session: &Session, browser: &str, command: &mut Command) {
    let (folder, open) = (session.path("bin"), session.path("bin/xdg-open"));
    std::fs::create_dir(&folder).expect("the folder can be written");
    std::fs::write(&open, browser).expect("the folder can be written");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&open, mode).expect("it is ours");
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{}:{path}", folder.display())).env("TOLD", session.path("told"));
    command.env("DISPLAY", ":77").env_remove("SSH_CONNECTION");
}

/// Waits until the script has told all, which ends with `end`.
pub(crate) fn told_by_browser(session: &Session, end: &str) -> String {
    // A loaded machine starts a browser late, and only a broken one never does.
    let mut told = String::new();
    for _ in 0..15_000 {
        told = std::fs::read_to_string(session.path("told")).unwrap_or_default();
        if told.ends_with(end) {
            return told;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("no browser was started: {told}");
}

#[test]
fn the_page_is_opened_on_a_desktop() {
    let session = Session::new();
    std::fs::write(session.path("a.folded"), "main 5\n").expect("the folder can be written");
    let mut command = session.command(&["view", "a.folded"]);
    on_desktop(&session, "#!/bin/sh\necho \"$1\" > \"$TOLD\"\n", &mut command);
    let outcome = Outcome::of(command.output().expect("treering runs"));
    assert!(outcome.status.success(), "{outcome:#?}");
    let told = told_by_browser(&session, "\n");
    assert_eq!(Path::new(told.trim()), session.path("a.html").canonicalize().expect("it is there"));
}

#[test]
fn impossible_pages_are_reported_before_the_program_runs() {
    let session = Session::new();
    std::fs::write(session.path("theirs.html"), "<p>mine</p>").expect("the folder can be written");
    for collector in ["record", "count", "octave"] {
        let program: &[&str] = match collector {
            "octave" => &["--eval", "fclose (fopen ('ran', 'w'))"],
            _ => &["--", "touch", "ran"],
        };
        for (output, said) in [
            ("-", if collector == "octave" { "written to a stream" } else { "cannot go to standard output" }),
            ("/dev/stdout", "written to a stream"),
            ("page.html", "would take the place of the profile"),
            ("theirs.trg", "is not a page that Treering wrote"),
        ] {
            if (collector, output) == ("octave", "/dev/stdout") {
                continue;
            }
            let outcome = run(&session, &[&[collector, "--view", "-o", output], program].concat());
            assert!(outcome.error().contains(said), "{collector} {output}: {outcome:#?}");
            assert!(outcome.stderr.contains("hint: "), "{outcome:#?}");
            assert!(!session.path("ran").exists(), "{collector} {output}: the program ran");
        }
    }
    assert_eq!(std::fs::read(session.path("theirs.html")).expect("it is there"), b"<p>mine</p>");
}
