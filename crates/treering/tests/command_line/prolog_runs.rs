//! `treering prolog`: what a run leaves, however it ends, and what its header says.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Output, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::prolog::{Prolog, counts, library, text};
use crate::session::treering_command;

/// The ways to profile.
const WAYS: [&[&str]; 3] = [&[], &["--clock", "wall"], &["--ports"]];

const PROGRAM: &str = "\
:- dynamic seen/1.
:- multifile prolog:message//1, user:file_search_path/2.
prolog:message(hello(X)) --> ['hello ~w'-[X]].
main :- work(3), catch(loop(0), E, print_message(error, E)).
work(0). work(N) :- M is N-1, work(M).
loop(N) :- tell(N), M is N+1, loop(M).
tell(N) :- ( N =:= 1000 -> writeln(running), flush_output ; true ).
marked :- '$work'(10), less_than(1, 2), '~'(3), assertz(seen(1)), seen(_), message_to_codes, absolute_file_name(library(lists), _, []).
message_to_codes :- phrase(prolog:message(hello(1)), _).
less_than(A, B) :- A < B.
'~'(_).
'$work'(0) :- !.
'$work'(N) :- M is N-1, '$work'(M).
fib(0, 0). fib(1, 1).
fib(N, F) :- N > 1, A is N-1, B is N-2, fib(A, X), fib(B, Y), F is X+Y.
fibs :- concurrent(2, [fib(15, _), fib(15, _)], []).
";

fn command(prolog: &Prolog, arguments: &[&str]) -> Command {
    std::fs::write(prolog.folder.join("program.pl"), PROGRAM).expect("the program can be written");
    let mut command = treering_command();
    command.arg("prolog").args(arguments);
    command.current_dir(&prolog.folder).stdin(Stdio::null());
    command
}

fn treering(prolog: &Prolog, arguments: &[&str]) -> Output {
    command(prolog, arguments).output().expect("treering runs")
}

#[test]
fn a_run_that_is_stopped_keeps_its_profile() {
    let Some(prolog) = Prolog::new("stopped") else { return };
    library();
    for (way, signal) in WAYS
        .into_iter()
        .flat_map(|way| [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP].map(|signal| (way, signal)))
    {
        let mut child = command(&prolog, &[way, &["program.pl"]].concat())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("treering runs");
        let mut line = String::new();
        let printed = child.stdout.as_mut().expect("a pipe");
        std::io::BufRead::read_line(&mut std::io::BufReader::new(printed), &mut line).expect("it prints");
        kill(Pid::from_raw(child.id() as i32), signal).expect("it runs");
        let output = child.wait_with_output().expect("it ends");
        let errors = text(&output.stderr);
        assert_eq!(output.status.signal(), Some(signal as i32), "{way:?} {errors}");
        assert!(errors.contains(&format!("was ended by {signal}")), "{way:?} {errors}");
        let exact = counts(&prolog.profile("treering.trg"));
        assert_eq!(exact["work/1"][0], 4, "{way:?} {signal} {errors}");
        assert!(
            exact["loop/1"][0] > 1000 && !exact.keys().any(|name| name.contains("end_early")),
            "{exact:?}"
        );
    }
}

#[test]
fn killed_runs_report_their_losses() {
    let Some(prolog) = Prolog::new("lost") else { return };
    let output = treering(&prolog, &["program.pl", "-g", "current_prolog_flag(pid, P), process_kill(P, 9)"]);
    let errors = text(&output.stderr);
    assert!(errors.contains("SIGKILL ended SWI-Prolog before the profile was written"), "{errors}");
    assert!(errors.contains("--ports") && !errors.contains("while it is loaded"), "{errors}");
}

#[test]
fn files_that_are_no_profiles_are_not_replaced() {
    let Some(prolog) = Prolog::new("replaced") else { return };
    library();
    let notes = prolog.folder.join("notes.txt");
    for way in WAYS {
        std::fs::write(&notes, "my notes").expect("it can be written");
        for file in ["notes.txt", "program.pl", "./program.pl"] {
            let output = treering(&prolog, &[way, &["-o", file, "program.pl", "-g", "work(3)"]].concat());
            let errors = text(&output.stderr);
            assert!(
                !output.status.success() && errors.contains("hint: name another file"),
                "{way:?} {errors}"
            );
        }
        assert_eq!(std::fs::read(&notes).expect("it is there"), b"my notes");
        assert_eq!(std::fs::read(prolog.folder.join("program.pl")).expect("it is there"), PROGRAM.as_bytes());
        for options in [&["--force"][..], &[]] {
            let all = [way, options, &["-q", "-o", "notes.txt", "program.pl", "-g", "work(3)"]].concat();
            let output = treering(&prolog, &all);
            assert!(output.status.success(), "{way:?} {}", text(&output.stderr));
            assert_eq!(counts(&prolog.profile("notes.txt"))["work/1"][0], 4, "{way:?}");
        }
    }
}

/// A call for every node of the tree of fib(15): 2 fib(16) - 1.
#[test]
fn threads_that_are_left_out_are_named() {
    let Some(prolog) = Prolog::new("threads") else { return };
    library();
    for way in WAYS {
        let output = treering(&prolog, &[way, &["program.pl", "-g", "fibs"]].concat());
        let (errors, profile) = (text(&output.stderr), prolog.profile("treering.trg"));
        let is_noted = profile.metadata.notes.iter().any(|note| note.0.contains("2 other threads"));
        let calls = counts(&profile).get("fib/2").map_or(0, |counts| counts[0]);
        match way {
            ["--ports"] => assert!(calls == 2 * 1973 && !is_noted, "{calls} {errors}"),
            _ => assert!(calls == 0 && is_noted && errors.contains("2 other threads"), "{way:?} {errors}"),
        }
        let alone = treering(&prolog, &[way, &["program.pl", "-g", "fib(15, _)"]].concat());
        let profile = prolog.profile("treering.trg");
        assert_eq!(counts(&profile)["fib/2"][0], 1973, "{way:?} {}", text(&alone.stderr));
        assert!(!profile.metadata.notes.iter().any(|note| note.0.contains("thread")), "{way:?}");
    }
}

/// Many times, since it is a race of the two threads.
#[test]
fn a_thread_that_halts_leaves_the_profile_of_the_goals_thread() {
    let Some(prolog) = Prolog::new("halted") else { return };
    library();
    let goal = "work(3), thread_create(halt(4), _), thread_get_message(never)";
    for way in WAYS.into_iter().cycle().take(9) {
        let output = treering(&prolog, &[way, &["program.pl", "-g", goal]].concat());
        let errors = text(&output.stderr);
        assert_eq!(output.status.code(), Some(4), "{way:?} {errors}");
        let exact = counts(&prolog.profile("treering.trg"));
        assert_eq!(exact.get("work/1").map(|counts| counts[0]), Some(4), "{way:?} {exact:?} {errors}");
    }
}

#[test]
fn wrong_predicates_are_named_and_lose_nothing() {
    let Some(prolog) = Prolog::new("wrong_predicates") else { return };
    library();
    for (predicate, expected) in
        [("wor*", "there are no patterns"), ("nosuch/3", "nosuch/3"), ("work/x", "`work/x' (a compound)")]
    {
        let output = treering(&prolog, &["--ports", "--except", predicate, "program.pl", "-g", "work(3)"]);
        let errors = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{errors}");
        assert!(errors.contains(expected) && errors.contains("error: the goal was not called"), "{errors}");
        assert!(!errors.contains("lost") && !errors.contains("treering-prolog"), "{errors}");
    }
}

#[test]
fn predicates_that_a_goal_loads_are_said_to_be_uncounted() {
    let Some(prolog) = Prolog::new("loaded") else { return };
    library();
    std::fs::write(prolog.folder.join("later.pl"), "later(1).\n").expect("it can be written");
    let of = |goal: &str| text(&treering(&prolog, &["--ports", "program.pl", "-g", goal]).stderr);
    let new = of("consult(later), later(_), assertz(made(1)), assertz(seen(2))");
    assert!(new.contains("not counted") && new.contains(": later/1, made/1\n"), "{new}");
    let again = of("work(2), consult('program.pl'), work(2)");
    assert!(again.contains("counts are too low") && again.contains("work/1"), "{again}");
    let neither = of("assertz(seen(1)), seen(_), retract(seen(1)), work(3)");
    assert!(!neither.contains("not counted") && !neither.contains("too low"), "{neither}");
}

#[test]
fn an_engine_that_halts_leaves_the_profile_or_says_that_it_is_lost() {
    let Some(prolog) = Prolog::new("engine_halts") else { return };
    library();
    let goal = "work(3), engine_create(_, halt(4), E), engine_next(E, _)";
    for way in WAYS {
        let output = treering(&prolog, &[way, &["program.pl", "-o", "engine.trg", "-g", goal]].concat());
        let errors = text(&output.stderr);
        assert_eq!(output.status.code(), Some(4), "{way:?} {errors}");
        let file = prolog.folder.join("engine.trg");
        if file.exists() {
            assert_eq!(counts(&prolog.profile("engine.trg"))["work/1"][0], 4, "{way:?} {errors}");
            std::fs::remove_file(file).expect("it is there");
        } else {
            assert!(errors.contains("the profile is lost"), "{way:?} {errors}");
        }
    }
}

#[test]
fn engines_that_are_left_out_are_named() {
    let Some(prolog) = Prolog::new("engines_left_out") else { return };
    library();
    let goal = "engine_create(X, fib(10, X), E), engine_next(E, _), engine_destroy(E)";
    for way in WAYS {
        let output = treering(&prolog, &[way, &["program.pl", "-g", goal]].concat());
        let (errors, profile) = (text(&output.stderr), prolog.profile("treering.trg"));
        let is_noted = profile.metadata.notes.iter().any(|note| note.0.contains("calls in an engine"));
        let is_counted = counts(&profile).contains_key("fib/2");
        assert_eq!(is_noted && errors.contains("calls in an engine"), way != ["--ports"], "{way:?} {errors}");
        assert_eq!(is_counted, way == ["--ports"], "{way:?}");
    }
}

#[test]
fn ports_are_those_of_the_programs_clauses() {
    let Some(prolog) = Prolog::new("clauses") else { return };
    library();
    let output = treering(&prolog, &["--ports", "program.pl", "-g", "marked"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let profile = prolog.profile("treering.trg");
    let exact = counts(&profile);
    assert_eq!(exact["'$work'/1"][0], 11, "{exact:?}");
    assert_eq!((exact["seen/1"][0], exact["prolog:message/3"][0]), (1, 1), "{exact:?}");
    assert_eq!((exact["less_than/2"][0], exact["~/1"][0]), (1, 1), "{exact:?}");
    assert!(!exact.contains_key("file_search_path/2"), "the system's: {exact:?}");
    let file_of = |name: &str| {
        let found = profile.functions.entries().iter().find(|found| &profile.strings[found.name] == name);
        found.map(|found| profile.strings[found.file].to_owned())
    };
    assert!(file_of("prolog:message/3").is_some_and(|file| file.ends_with("program.pl")));
}

#[test]
fn the_header_is_of_the_run_and_not_of_its_start() {
    let Some(prolog) = Prolog::new("header") else { return };
    library();
    for way in WAYS {
        let arguments = [way, &["-q", "program.pl", "-g", "work(3)", "--", "a b"]].concat();
        assert!(treering(&prolog, &arguments).status.success());
        let profile = prolog.profile("treering.trg");
        let run = &profile.runs[0];
        assert_eq!(run.command, ["swipl", "-g", "work(3)", "program.pl", "--", "a b"], "{way:?}");
        let (cpu, wall) = (run.cpu_ns.unwrap_or(0), run.duration_ns);
        assert!(wall == 0 || cpu <= wall + 10_000_000, "{way:?}: {cpu} ns of {wall} ns");
    }
}

#[test]
fn errors_are_those_of_swipl_and_quiet_is_quiet() {
    let Some(prolog) = Prolog::new("errors") else { return };
    for goal in ["fail", "throw(x)", "syntax(", "atom_length(_, _)", "halt(3)", "work(3)"] {
        let ours = text(&treering(&prolog, &["-q", "program.pl", "-g", goal]).stderr);
        let swipl = Command::new("swipl")
            .args(["-g", goal, "-t", "halt", "program.pl"])
            .current_dir(&prolog.folder)
            .stdin(Stdio::null())
            .output()
            .expect("swipl runs");
        let theirs = text(&swipl.stderr);
        // Of a goal that cannot be read we say in addition that there is no profile.
        let said_by_swipl = ours.find("\nerror: ").map_or(&*ours, |at| &ours[..=at]);
        assert!(goal == "syntax(" || said_by_swipl == ours, "{ours}");
        assert_eq!(said_by_swipl, theirs, "{goal}");
    }
}

/// A program that loads `library(prolog_stack)` asks for the backtraces of its errors, which were not there.
#[test]
fn the_backtrace_that_a_program_asks_for_is_printed() {
    let Some(prolog) = Prolog::new("backtrace") else { return };
    let program = ":- use_module(library(prolog_stack)).\nmain :- p(2).\np(0) :- X is foo+1, print(X).\n\
                   p(N) :- N > 0, M is N-1, p(M), print(N).\n";
    std::fs::write(prolog.folder.join("backtrace.pl"), program).expect("written");
    for way in [&[][..], &["--ports"], &["--clock", "wall"]] {
        let output = treering(&prolog, &[&["-q"], way, &["backtrace.pl"]].concat());
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let said = text(&output.stderr);
        for level in ["p(0) at", "p(1) at", "p(2) at"] {
            assert!(said.contains(level), "{way:?}, {level}: {said}");
        }
    }
}

#[test]
fn folders_of_any_name_will_do() {
    let Some(prolog) = Prolog::new("names") else { return };
    library();
    for name in [&b"gr\xf6n"[..], "grün und blau".as_bytes(), b"it's a \"%\" $x"] {
        let folder = prolog.folder.join(OsStr::from_bytes(name));
        std::fs::create_dir_all(&folder).expect("a folder can be made");
        std::fs::write(folder.join("program.pl"), PROGRAM).expect("the program can be written");
        for (way, locale) in WAYS.into_iter().flat_map(|way| ["C", "C.UTF-8"].map(|locale| (way, locale))) {
            let mut plain = Command::new("swipl");
            plain.args(["-g", "work(3)", "-t", "halt", "program.pl"]).stdin(Stdio::null());
            let plain = plain.current_dir(&folder).env("LC_ALL", locale).output().expect("swipl runs");
            if !plain.status.success() {
                continue; // SWI-Prolog itself does not start in folders whose names it cannot read
            }
            let mut command = treering_command();
            command.arg("prolog").args(way).args(["-q", "program.pl", "-g", "work(3)"]);
            let output = command.current_dir(&folder).env("LC_ALL", locale).output().expect("treering runs");
            assert!(output.status.success(), "{way:?} {locale} {name:?} {}", text(&output.stderr));
            let bytes = std::fs::read(folder.join("treering.trg")).expect("the profile was written");
            let (_, profile, _) = treering_formats::read_any(&bytes).expect("it can be read");
            assert_eq!(counts(&profile)["work/1"][0], 4);
        }
    }
}
