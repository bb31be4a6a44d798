//! `treering prolog`.

use std::process::{Command, Output, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::prolog::{Prolog, counts, library, text};

const TREERING: &str = env!("CARGO_BIN_EXE_treering");

const PROGRAM: &str = "\
main :- current_prolog_flag(argv, Words), print(Words), nl.
member_of(X, [X|_]).
member_of(X, [_|Rest]) :- member_of(X, Rest).
third(X) :- member_of(X, [a,b,c]), X == c, !.
wait :- current_prolog_flag(pid, Pid), writeln(Pid), flush_output, sleep(100).
";

fn treering(prolog: &Prolog, arguments: &[&str]) -> Output {
    std::fs::write(prolog.folder.join("program.pl"), PROGRAM).expect("the program can be written");
    let mut command = Command::new(TREERING);
    command.env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY");
    command.arg("prolog").args(arguments).current_dir(&prolog.folder).stdin(Stdio::null());
    command.output().expect("treering runs")
}

#[test]
fn a_goal_is_profiled_with_and_without_ports() {
    let Some(prolog) = Prolog::new("command") else { return };
    library();
    let ports = treering(&prolog, &["--ports", "program.pl", "-g", "third(_)"]);
    let errors = text(&ports.stderr);
    assert!(ports.status.success(), "{errors}");
    assert!(errors.contains("wrote treering.trg; next: treering report --callgraph"), "{errors}");
    let exact = counts(&prolog.profile("treering.trg"));
    assert_eq!(exact["member_of/2"], [3, 6, 3, 0, 0, 3]);
    let ticks = treering(&prolog, &["-o", "ticks.trg", "program.pl", "-g", "third(_)"]);
    let errors = text(&ticks.stderr);
    assert!(ticks.status.success() && errors.contains("0 samples"), "{errors}");
    assert_eq!(counts(&prolog.profile("ticks.trg"))["member_of/2"][0], 3);
    let start = std::fs::read(prolog.folder.join("ticks.trg")).expect("it was written");
    assert!(start.starts_with(b"\x89trg"), "it is one of our files");
}

/// A program that the goal started was told where to name its own profile to the command, which then read that one.
#[test]
fn programs_that_the_goal_starts_tell_the_command_nothing() {
    let Some(prolog) = Prolog::new("told") else { return };
    library();
    for options in [&["--ports"][..], &[]] {
        let goal = "shell('test -z \"$TREERING_PROLOG_TOLD\"')";
        let output = treering(&prolog, &[options, &["program.pl", "-g", goal]].concat());
        let errors = text(&output.stderr);
        assert!(output.status.success() && errors.contains("wrote treering.trg"), "{errors}");
    }
}

#[test]
fn ports_are_columns_of_reports() {
    let Some(prolog) = Prolog::new("columns") else { return };
    library();
    assert!(treering(&prolog, &["-q", "--ports", "program.pl", "-g", "third(_)"]).status.success());
    let report = |options: &[&str]| {
        let output = Command::new(TREERING)
            .args(["report", "treering.trg", "--min", "0"])
            .args(options)
            .current_dir(&prolog.folder)
            .output()
            .expect("treering runs");
        text(&output.stdout)
    };
    for view in ["--flat", "--callgraph"] {
        let text = report(&[view]);
        let heading = text.lines().find(|line| line.contains("redos")).unwrap_or_default();
        assert!(["exits", "fails", "exceptions", "cuts"].iter().all(|port| heading.contains(port)), "{text}");
    }
    let graph = report(&["--callgraph"]);
    let recursive = graph.lines().find(|line| line.ends_with("<recursive>")).unwrap_or_default();
    assert_eq!(recursive.split_whitespace().collect::<Vec<_>>(), ["2", "<recursive>"], "{graph}");
    let json: serde_json::Value = serde_json::from_str(&report(&["--json"])).expect("it is JSON");
    let functions = json["functions"].as_array().expect("a list");
    let found = functions.iter().find(|function| function["function"] == "member_of/2").expect("it is there");
    let ports = serde_json::json!({"exits": 6, "redos": 3, "fails": 0, "exceptions": 0, "cuts": 3});
    assert_eq!((&found["calls"], &found["ports"]), (&serde_json::json!(3), &ports));
    assert!(found["file"].as_str().is_some_and(|file| file.ends_with("program.pl")) && found["line"] == 2);
}

#[test]
fn a_predicate_that_does_not_exist_is_named_with_the_file() {
    let Some(prolog) = Prolog::new("undefined") else { return };
    std::fs::write(prolog.folder.join("none.pl"), "other.\n").expect("the program can be written");
    std::fs::write(prolog.folder.join("deep.pl"), "main :- missing(1), true.\n").expect("it can be written");
    let goals = [
        (
            &["program.pl", "-g", "nosuch"][..],
            "nosuch/0 is defined neither in program.pl nor in what it loads",
        ),
        (&["none.pl"], "main/0 is defined neither in none.pl"),
        (&["deep.pl"], "missing/1 is defined neither in deep.pl"),
    ];
    for (words, said) in goals {
        let outcome = treering(&prolog, &[&["-q"], words].concat());
        let errors = text(&outcome.stderr);
        assert_eq!(outcome.status.code(), Some(2), "{errors}");
        assert!(errors.contains(said) && !errors.contains("c_call_prolog"), "{errors}");
    }
}

#[test]
fn the_exit_status_is_that_of_swipl() {
    let Some(prolog) = Prolog::new("status") else { return };
    library();
    for ports in [false, true] {
        for (goal, status) in
            [("true", 0), ("fail", 1), ("throw(x)", 2), ("halt(7)", 7), ("nosuch", 2), ("syntax(", 2)]
        {
            let mut arguments = vec!["-q", "program.pl", "-g", goal];
            arguments.extend(ports.then_some("--ports"));
            let ours = treering(&prolog, &arguments);
            assert_eq!(ours.status.code(), Some(status), "{goal}: {}", text(&ours.stderr));
            let own = Command::new("swipl")
                .args(["-g", goal, "-t", "halt", "program.pl"])
                .current_dir(&prolog.folder)
                .stdin(Stdio::null())
                .output()
                .expect("swipl runs");
            assert_eq!(own.status.code(), Some(status), "{goal}");
        }
    }
}

#[test]
fn main_gets_the_arguments() {
    let Some(prolog) = Prolog::new("arguments") else { return };
    let output = treering(&prolog, &["-q", "program.pl", "--", "one", "-two"]);
    assert!(text(&output.stdout).contains("one,'-two'"), "{}", text(&output.stdout));
}

#[test]
fn scripts_run_their_main_once() {
    let Some(prolog) = Prolog::new("scripts") else { return };
    library();
    let work = "main :- current_prolog_flag(argv, Words), print(Words), nl, work(3)END.\n\
                work(0). work(N) :- M is N-1, work(M).\n";
    for (start, end, status) in [
        (":- initialization(main).\n", "", 0),
        (":- initialization(main, main).\n", "", 0),
        ("#!/usr/bin/env swipl\n:- initialization main.\n", ", halt", 0),
        (":- initialization(main, main).\n", ", halt(3)", 3),
        (":- initialization(writeln(loaded)).\n:- initialization(user:main).\n", "", 0),
    ] {
        let script = start.to_owned() + &work.replace("END", end);
        std::fs::write(prolog.folder.join("script.pl"), &script).expect("the script can be written");
        for ports in [false, true] {
            let mut command = Command::new(TREERING);
            command.args(["prolog", "-q", "script.pl"]).args(ports.then_some("--ports")).args(["--", "a"]);
            let output = command.current_dir(&prolog.folder).stdin(Stdio::null()).output().expect("it runs");
            let printed = text(&output.stdout);
            assert_eq!(printed.matches("[").count(), 1, "{script}{printed}{}", text(&output.stderr));
            assert!(printed.ends_with("a]\n") && printed.contains("loaded") == start.contains("loaded"));
            assert_eq!(output.status.code(), Some(status), "{script}");
            assert_eq!(counts(&prolog.profile("treering.trg"))["work/1"][0], 4, "{script}");
        }
    }
}

#[test]
fn missing_files_are_named_with_a_hint() {
    let Some(prolog) = Prolog::new("missing") else { return };
    for (arguments, message) in [
        (&["nosuch.pl"][..], "error: there is no file nosuch.pl\nhint: name the file to load"),
        (&["program"], "error: there is no file program\nhint: there is program.pl"),
        (&["."], "error: . is a directory\nhint: name a file in it"),
        (&["--swipl", "nosuch", "program.pl"], "error: cannot run nosuch"),
        (&["-o", ".", "program.pl"], "is a directory\nhint: name a file after -o"),
    ] {
        let output = treering(&prolog, arguments);
        let errors = text(&output.stderr);
        assert!(errors.contains(message) && !output.status.success(), "{errors}");
    }
    let output = treering(&prolog, &["--recursion", "full", "program.pl"]);
    assert!(text(&output.stderr).contains("--ports"), "{}", text(&output.stderr));
}

#[test]
fn a_goal_that_is_killed_leaves_its_ports() {
    let Some(prolog) = Prolog::new("killed") else { return };
    library();
    std::fs::write(prolog.folder.join("program.pl"), PROGRAM).expect("the program can be written");
    let mut child = Command::new(TREERING)
        .args(["prolog", "-q", "--ports", "program.pl", "-g", "third(X),wait"])
        .current_dir(&prolog.folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("treering runs");
    let mut printed = std::io::BufReader::new(child.stdout.take().expect("a pipe"));
    let mut line = String::new();
    std::io::BufRead::read_line(&mut printed, &mut line).expect("it prints");
    let swipl: i32 = line.trim().parse().expect("the number of the process");
    kill(Pid::from_raw(swipl), Signal::SIGKILL).expect("it runs");
    assert!(!child.wait().expect("it ends").success());
    let bytes = std::fs::read(prolog.folder.join("treering.trg")).expect("the profile was written");
    let (_, profile, report) = treering_formats::read_any(&bytes).expect("it can be read");
    assert!(report.unfinished);
    assert_eq!(counts(&profile)["member_of/2"][..3], [3, 6, 3]);
}

#[test]
fn the_page_of_a_goal_is_made_when_it_is_asked_for() {
    let Some(prolog) = Prolog::new("page") else { return };
    let shown = treering(&prolog, &["--view", "-o", "a.trg", "program.pl", "-g", "third(_)"]);
    assert!(shown.status.success(), "{}", text(&shown.stderr));
    let page = std::fs::read_to_string(prolog.folder.join("a.html")).expect("the page was written");
    assert!(page.starts_with("<!doctype html>") && page.contains("– Treering</title>"));
}

#[test]
fn an_earlier_profile_is_kept() {
    let Some(prolog) = Prolog::new("earlier") else { return };
    let read = |name: &str| std::fs::read(prolog.folder.join(name)).expect("it was written");
    let run = || assert!(treering(&prolog, &["-q", "program.pl", "-g", "third(_)"]).status.success());
    run();
    let earlier = read("treering.trg");
    run();
    assert!(read("treering.trg.old") == earlier);
}
