//! `treering count` of programs that go unusual ways.

use serde_json::Value;
use treering_testing::programs::{
    BEYOND, CHANGED_CODE, ENDS_WHILE_MADE, FAULTS, FULL_DESCRIPTORS, KERNEL_WRITES, LEFT_AT_FAULTS,
    OWN_STEPS, RETURNS_AS_JUMPS, SAME_PATH, STOPPED_AT_EXEC, SWAPPED_HOST, SWAPPED_PLUGIN, UNDER_FILTER,
    UNTRACED,
};

use crate::session::{Outcome, Session, program, words};

fn count(session: &Session, options: &[&str], path: &std::path::Path, arguments: &[&str]) -> Outcome {
    let mut all = words(&["count"]);
    all.extend(words(options));
    all.extend(words(&["--"]));
    all.extend(program(path, arguments));
    session.run(&all)
}

/// The blocks of a function in `treering.trg`.
fn blocks(session: &Session, function: &str) -> Value {
    let text = session.output(&["report", "treering.trg", "--blocks", function, "--json"]);
    serde_json::from_str(&text).expect("JSON is printed")
}

/// Handlers go on behind the fault, or elsewhere.
#[test]
fn instructions_before_a_fault_in_their_block_are_counted() {
    let session = Session::new();
    let path = LEFT_AT_FAULTS.build().expect("the compiler is installed");
    for options in [&["--no-cache"][..], &[], &[], &["--tree"]] {
        let outcome = count(&session, options, &path, &[]);
        assert_eq!(outcome.shell_status(), 0, "{outcome:#?}");
        assert!(outcome.stderr.contains("all instructions were counted"), "{outcome:#?}");
        for (function, instructions) in [("skips", 7002), ("get", 550)] {
            let all = blocks(&session, function);
            assert_eq!(all["instructions_executed"], instructions, "{function}: {options:?}");
        }
    }
}

/// A program prints and ends as it does when it runs alone.
fn check_runs_alike(session: &Session, path: &std::path::Path) {
    let alone = std::process::Command::new(path).output().expect("it runs");
    for options in [&["--no-cache"][..], &[], &["--tree"]] {
        let outcome = count(session, options, path, &[]);
        assert_eq!(outcome.stdout, String::from_utf8_lossy(&alone.stdout), "{options:?}");
        assert_eq!(outcome.shell_status(), alone.status.code().expect("it exits"), "{options:?}");
        assert!(outcome.stderr.contains("all instructions were counted"), "{outcome:#?}");
    }
}

#[test]
fn code_removed_or_changed_by_system_calls_runs_as_when_not_counted() {
    check_runs_alike(&Session::new(), &CHANGED_CODE.build().expect("the compiler is installed"));
}

/// Functions with a name in `report --flat`: their modules, calls and own costs.
fn functions(session: &Session, name: &str) -> Vec<(String, u64, u64)> {
    let text = session.output(&["report", "treering.trg", "--flat", "--json"]);
    let report: Value = serde_json::from_str(&text).expect("JSON is printed");
    let functions = report["functions"].as_array().expect("functions are listed").iter();
    let named = functions.filter(|function| function["function"] == name).map(|function| {
        let module = function["module"].as_str().unwrap_or_default();
        let file = module.rsplit('/').next().unwrap_or_default().to_owned();
        (file, function["calls"].as_u64().unwrap_or(0), function["self_cost"].as_u64().unwrap_or(0))
    });
    let mut named: Vec<_> = named.collect();
    named.sort();
    named
}

/// The calls, times the instructions that each library's function has.
#[test]
fn libraries_at_the_same_address_have_their_own_counts() {
    let session = Session::new();
    let host = SWAPPED_HOST.build().expect("the compiler is installed");
    let short = SWAPPED_PLUGIN.build().expect("the compiler is installed");
    let long = SWAPPED_PLUGIN.variant("longer", &["-DLONGER"]).build().expect("the compiler is installed");
    let libraries = [(&short, "short.so"), (&long, "long.so")];
    for options in [&["--no-cache"][..], &[], &[], &["--tree"]] {
        for (library, name) in libraries {
            std::fs::copy(library, session.path(name)).expect("it can be copied");
        }
        let paths = libraries.map(|(_, name)| session.path(name));
        let words: Vec<&str> = paths.iter().map(|path| path.to_str().expect("it is text")).collect();
        let outcome = count(&session, options, &host, &words);
        assert_eq!((outcome.shell_status(), outcome.stdout.as_str()), (0, "10200\n"), "{outcome:#?}");
        let expected = [("long.so".to_owned(), 200, 600), ("short.so".to_owned(), 200, 400)];
        assert_eq!(functions(&session, "plugin_step"), expected, "{options:?}");

        let outcome = count(&session, options, &host, &[words[0], words[1], "replaced"]);
        assert_eq!(outcome.shell_status(), 0, "{outcome:#?}");
        assert!(outcome.stderr.contains("short.so was replaced or written to while it ran"), "{outcome:#?}");
        assert_eq!(functions(&session, "plugin_step"), [("short.so".to_owned(), 390, 1170)], "{options:?}");
    }
}

/// A script compiles and runs one program after another under one name, as `configure` does.
#[test]
fn programs_that_follow_each_other_at_a_path_have_their_own_counts() {
    let session = Session::new();
    let first = SAME_PATH.build().expect("the compiler is installed");
    let second = SAME_PATH.variant("other", &["-DOTHER"]).build().expect("the compiler is installed");
    let of = |n: u64| 3 * n + 2;
    for (options, end) in
        [("", "rm same"), ("", "true"), ("--tree", "rm same"), ("--tree", "rm same; cp \"$1\" same")]
    {
        let steps = format!("cp \"$1\" same; ./same 1; rm same; cp \"$2\" same; ./same 2; {end}");
        let counted = format!("exec \"$0\" count {options} -- sh -c '{steps}' sh \"$1\" \"$2\"");
        let paths = [&first, &second].map(|path| path.to_str().expect("it is text"));
        let (status, _, told) = script(&session, &counted, &paths);
        assert_eq!(status, Some(0), "{told}");
        let of_functions = |name: &str| match &functions(&session, name)[..] {
            [(_, calls, instructions)] => (*calls, *instructions),
            other => panic!("{name}: {other:?} {told}"),
        };
        assert_eq!(of_functions("first"), (1, of(1_000_000)), "{options} {end}");
        assert_eq!(of_functions("second"), (1, of(2_000_000)), "{options} {end}");
        let flat = session.json("--flat", &[]);
        let all: u64 =
            told.split_whitespace().next().expect("words").replace(',', "").parse().expect("a number");
        assert_eq!(flat["run"]["run_cost"], all, "{options} {end}: {told}");
    }
}

/// Nothing is taken for a file that was written to since.
#[test]
fn code_of_files_that_were_written_to_has_no_names() {
    let session = Session::new();
    let first = SAME_PATH.build().expect("the compiler is installed");
    let second = SAME_PATH.variant("other", &["-DOTHER"]).build().expect("the compiler is installed");
    let paths = [&first, &second].map(|path| path.to_str().expect("it is text"));
    let steps = "cp \"$1\" same; ./same 1; cat \"$2\" > same";
    let counted = format!("exec \"$0\" count -- sh -c '{steps}' sh \"$1\" \"$2\"");
    let (status, _, told) = script(&session, &counted, &paths);
    assert_eq!(status, Some(0), "{told}");
    let flat = session.json("--flat", &[]);
    let named = flat["functions"].as_array().expect("functions").iter();
    let own = named.filter_map(|function| {
        let (_, module) = function["module"].as_str()?.rsplit_once('/')?;
        module.starts_with("same").then(|| (module, function["kind"].as_str().expect("a kind")))
    });
    assert_eq!(own.collect::<Vec<_>>(), [("same", "unresolved")], "{told}");
}

/// Its code had no names. Another program at its path is not taken for it.
#[test]
fn a_program_that_deletes_itself_has_its_names() {
    let session = Session::new();
    let first = SAME_PATH.build().expect("the compiler is installed");
    let second = SAME_PATH.variant("other", &["-DOTHER"]).build().expect("the compiler is installed");
    let paths = [&first, &second].map(|path| path.to_str().expect("it is text"));
    for (options, end) in [("", "true"), ("--tree", "true"), ("", "cp \"$2\" same")] {
        let steps = format!("cp \"$1\" same; ./same 1 same; {end}");
        let counted = format!("exec \"$0\" count {options} -- sh -c '{steps}' sh \"$1\" \"$2\"");
        let (status, _, told) = script(&session, &counted, &paths);
        assert_eq!(status, Some(0), "{told}");
        let named = functions(&session, "first");
        assert!(matches!(named[..], [(_, 1, 3_000_002)]), "{options} {end}: {named:?} {told}");
    }
}

#[test]
fn system_calls_that_write_into_code_do() {
    let session = Session::new();
    let path = KERNEL_WRITES.build().expect("the compiler is installed");
    check_runs_alike(&session, &path);
    let outcome = count(&session, &[], &path, &["refused"]);
    assert!(outcome.stdout.ends_with("forbid both: -1, error 1\ndispatch: -1, error 1\n"), "{outcome:#?}");
    assert!(outcome.stderr.contains("syscall user dispatch"), "{outcome:#?}");
}

/// Either it is counted, and ends as it does alone, or it is named, in the report as well.
#[test]
fn every_instruction_was_counted_only_if_every_child_was() {
    let session = Session::new();
    let path = UNTRACED.build().expect("the compiler is installed");
    let alone = std::process::Command::new(&path).output().expect("it runs");
    let outcome = count(&session, &[], &path, &[]);
    let is_counted = outcome.stdout == String::from_utf8_lossy(&alone.stdout);
    let claims = outcome.stderr.contains("all instructions were counted");
    assert_eq!(claims, is_counted, "{outcome:#?}");
    let quiet = count(&session, &["-q"], &path, &[]);
    let report = session.output(&["report", "treering.trg", "--flat"]);
    for told in [&outcome.stderr, &report] {
        assert_eq!(told.contains("CLONE_UNTRACED"), !is_counted, "{told}");
    }
    assert_eq!(quiet.stderr, "", "{quiet:#?}");
}

/// As `env` would.
#[test]
fn treering_ends_by_the_signal_that_ended_the_program() {
    use std::os::unix::process::ExitStatusExt as _;
    let session = Session::new();
    crate::octave::library();
    let script = session.path("ends.sh");
    for (signal, name) in
        [(11, "SIGSEGV"), (6, "SIGABRT"), (15, "SIGTERM"), (9, "SIGKILL"), (34, "SIGRTMIN+0")]
    {
        std::fs::write(&script, format!("#!/bin/sh\nulimit -c 0\nkill -{signal} $$\n"))
            .expect("it is written");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&script, mode).expect("it is ours");
        for options in [&["count", "--"][..], &["record", "--"], &["octave", "--octave"]] {
            let mut all = words(options);
            // Octave runs it, and is it.
            all.extend(program(&script, if options[0] == "octave" { &["ends.sh"] } else { &[] }));
            let outcome = session.run(&all);
            assert_eq!(outcome.status.signal(), Some(signal), "{options:?}: {outcome:#?}");
            assert!(!outcome.status.core_dumped(), "{outcome:#?}");
            let is_told = options[0] == "octave" || outcome.stderr.contains(&format!("was ended by {name}"));
            assert!(is_told, "{outcome:#?}");
        }
    }
}

/// As callgrind counts their calls.
#[test]
fn functions_whose_first_instruction_faults_have_their_calls() {
    let session = Session::new();
    let path = FAULTS.build().expect("the compiler is installed");
    for options in [&["--no-cache"][..], &[], &["--tree"]] {
        let outcome = count(&session, options, &path, &[]);
        assert_eq!((outcome.shell_status(), outcome.stdout.as_str()), (0, "done\n"), "{outcome:#?}");
        let text = session.output(&["report", "treering.trg", "--flat", "--json"]);
        let report: Value = serde_json::from_str(&text).expect("JSON is printed");
        let functions = report["functions"].as_array().expect("functions are listed");
        let mut called = vec!["loads", "second", "tail", "divides", "invalid", "traps", "hops", "blank"];
        // Trees know by tables for unwinding where functions begin, and there are none of these.
        called.extend((!options.contains(&"--tree")).then_some("target"));
        for name in called {
            let function = functions.iter().find(|function| function["function"] == name);
            let calls = function.map(|function| &function["calls"]);
            assert_eq!(calls.and_then(Value::as_u64), Some(1000), "{name}: {options:?}");
        }
    }
}

#[test]
fn where_returns_are_jumps_branches_are_right_or_unknown() {
    let session = Session::new();
    let path = RETURNS_AS_JUMPS.build().expect("the compiler is installed");
    for options in [&["--no-cache"][..], &[], &[]] {
        let outcome = count(&session, options, &path, &[]);
        assert_eq!(outcome.shell_status(), 0, "{outcome:#?}");
        let all = blocks(&session, "step");
        let blocks = all["blocks"].as_array().expect("blocks are listed");
        let told: Vec<_> = blocks
            .iter()
            .filter_map(|block| Some((block["taken"].as_u64()?, block["not_taken"].as_u64()?)))
            .collect();
        // Where the switch is left at once, and in its first case.
        assert!(told.contains(&(0, 7000)) && told.contains(&(100, 900)), "{told:?}");
        assert_eq!(told.len(), 2, "{told:?}");
    }
}

#[test]
fn a_program_that_steps_itself_is_refused() {
    let session = Session::new();
    let path = OWN_STEPS.build().expect("the compiler is installed");
    let outcome = count(&session, &[], &path, &[]);
    assert_ne!(outcome.shell_status(), 0, "{outcome:#?}");
    assert!(outcome.stderr.contains("steps through its own instructions"), "{outcome:#?}");
}

#[test]
fn processes_continued_during_exec_do_not_stay_stopped() {
    let session = Session::new();
    let path = STOPPED_AT_EXEC.build().expect("the compiler is installed");
    for seed in ["1", "2", "3"] {
        let outcome = count(&session, &["-q"], &path, &[seed]);
        assert_eq!(outcome.shell_status(), 0, "{outcome:#?}");
    }
}

/// Runs a script that has `treering` as `$0`, in a session's directory; its status, and what it printed to both.
fn script(session: &Session, script: &str, arguments: &[&str]) -> (Option<i32>, String, String) {
    let outcome = std::process::Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_treering")])
        .args(arguments)
        .current_dir(session.path("."))
        .env("XDG_CACHE_HOME", session.path("cache"))
        .output()
        .expect("there is a shell");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (outcome.status.code(), text(&outcome.stdout), text(&outcome.stderr))
}

#[test]
fn a_limit_of_files_is_an_error_that_says_so() {
    let session = Session::new();
    let (status, _, told) = script(&session, "ulimit -f 1000; exec \"$0\" count -- true", &[]);
    assert_eq!(status, Some(1), "{told}");
    assert!(told.contains("ulimit -f unlimited"), "{told}");
}

#[test]
fn many_processes_are_followed_where_few_files_may_be_open() {
    let session = Session::new();
    let many = "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 0.5 & done; wait; ulimit -Sn";
    let limited = "ulimit -Sn 24; exec \"$0\" count -q -- sh -c \"$1\"";
    let (status, printed, told) = script(&session, limited, &[many]);
    assert_eq!((status, printed.trim()), (Some(0), "24"), "the program has the limit that it had: {told}");
}

/// The process was ended when it made a child. Nobody may raise its limit, and one and two free descriptors are not enough
/// in a container.
#[test]
fn a_process_that_may_have_no_more_descriptors_has_children() {
    let session = Session::new();
    let path = FULL_DESCRIPTORS.build().expect("the compiler is installed");
    let counted = "if test $(id -u) = 0; then
            limited='setpriv --inh-caps=-sys_resource --bounding-set=-sys_resource'
        fi
        exec $limited \"$0\" count -- $1 \"$2\" 60 $3";
    for container in ["", "unshare -pf"] {
        if script(&session, &format!("exec {container} true"), &[]).0 != Some(0) {
            eprintln!("skipped: new PID namespaces need a privilege");
            continue;
        }
        for free in ["0", "1", "2"] {
            let arguments = [container, path.to_str().expect("it is text"), free];
            let (status, _, told) = script(&session, counted, &arguments);
            assert_eq!(status, Some(0), "{arguments:?}: {told}");
            assert!(told.contains("all instructions were counted"), "{arguments:?}: {told}");
        }
    }
}

#[test]
fn runs_end_although_their_children_are_killed_while_they_are_created() {
    let session = Session::new();
    let path = ENDS_WHILE_MADE.build().expect("the compiler is installed");
    for kind in ["threads", "processes"] {
        for microseconds in (0..12).map(|run| (40_000 + run * 5_000).to_string()) {
            let counted = "exec timeout -k 5 60 \"$0\" count -q -- \"$1\" $2 $3";
            let arguments = [path.to_str().expect("it is text"), kind, &microseconds];
            let (status, _, told) = script(&session, counted, &arguments);
            assert_eq!(status, Some(0), "{arguments:?}: {told}");
        }
    }
}

#[test]
fn counts_whose_file_cannot_be_written_are_written_elsewhere() {
    let session = Session::new();
    // Its directory is elsewhere by then. To remove it would race with what is kept in it meanwhile.
    let gone = "mkdir out tmp; TMPDIR=tmp exec \"$0\" count -q -o out/a.trg -- mv out gone";
    let (status, _, told) = script(&session, gone, &[]);
    assert_eq!(status, Some(1), "{told}");
    let elsewhere = told.split("treering report ").nth(1).expect("it is told where").trim();
    let text = session.output(&["report", elsewhere, "--flat"]);
    assert!(text.contains("instructions"), "{text}");
}

/// Only root can take another user's rights to try it.
#[test]
fn unreadable_programs_run_uncounted_and_are_named() {
    let session = Session::new();
    let prepared = "[ $(id -u) = 0 ] || exit 99; cp /bin/true closed && chmod 711 closed && chmod 755 . && \
                    mkdir -m 777 own && cp \"$0\" own/treering && cd own && ";
    let count = |words: &str| {
        format!("{prepared} exec setpriv --reuid 65534 --clear-groups ./treering count {words}")
    };
    let (status, _, told) = script(&session, &count("-- sh -c '../closed; echo st $?'"), &[]);
    if status == Some(99) {
        return eprintln!("skipped: it takes root to become another user");
    }
    assert_eq!(status, Some(0), "{told}");
    assert!(told.contains("closed: its file may be executed but not read"), "{told}");
    let again = "cd own && exec setpriv --reuid 65534 --clear-groups ./treering count -- ../closed";
    let (status, _, told) = script(&session, again, &[]);
    assert_eq!(status, Some(1), "{told}");
    assert!(told.contains("chmod +r"), "{told}");
}

#[test]
fn programs_ended_during_preparation_do_not_succeed() {
    let session = Session::new();
    let path = UNDER_FILTER.build().expect("the compiler is installed");
    let outcome = count(&session, &[], &path, &["close", "kill", "/bin/true"]);
    assert_eq!(outcome.shell_status(), 128 + 31, "{outcome:#?}");
    assert!(outcome.stderr.contains("the program was ended by SIGSYS"), "{outcome:#?}");
}

#[test]
fn programs_ended_before_their_first_instruction_are_reported() {
    let session = Session::new();
    let path = BEYOND.build().expect("the compiler is installed");
    let outcome = count(&session, &[], &path, &[]);
    assert_eq!(outcome.shell_status(), 128 + 11, "{outcome:#?}");
    assert!(outcome.stderr.contains("was ended by SIGSEGV before its first instruction"), "{outcome:#?}");
    // As soon as there is a process, as soon as it is the program, and as soon as it shares each kind of memory.
    let stages = [
        "true",
        "readlink /proc/$pid/exe | grep -q sleep",
        "grep -q 'treering gate' /proc/$pid/maps",
        "grep -q 'treering tables' /proc/$pid/maps",
        "grep -q 'treering code' /proc/$pid/maps",
    ];
    for stage in stages.iter().flat_map(|stage| [stage; 2]) {
        let kill = format!(
            "\"$0\" count -q -- sleep 1000 & tries=0
            until pid=$(cat /proc/$!/task/*/children | cut -d' ' -f1) && test -n \"$pid\" && {stage}; do
                tries=$((tries + 1)); test $tries -lt 9000 || {{ kill -KILL $!; exit 98; }}
            done
            kill -KILL $pid; wait $!"
        );
        let (status, _, error) = script(&session, &kill, &[]);
        assert_eq!(status, Some(128 + 9), "{stage}: {error}");
    }
}

/// A filter of its own, and one of the process that started the count.
#[test]
fn filters_that_forbid_counting_are_named() {
    let session = Session::new();
    let path = UNDER_FILTER.build().expect("the compiler is installed");
    let outcome = count(&session, &[], &path, &["mmap", "refuse", "/bin/true"]);
    assert_ne!(outcome.shell_status(), 0, "{outcome:#?}");
    assert!(outcome.stderr.contains("its own system call filter (seccomp) may forbid"), "{outcome:#?}");
    let quoted = crate::session::quoted(&path);
    for action in ["kill", "refuse"] {
        let command = format!("exec {quoted} seccomp {action} \"$0\" count -- /bin/true");
        let (status, _, error) = script(&session, &command, &[]);
        assert_eq!(status, Some(1), "{error}");
        assert!(error.contains("hint: a system call filter forbids what counting needs"), "{error}");
    }
}

/// As by `nohup`, and in the background of a script.
#[test]
fn signals_that_were_ignored_at_the_start_are_ignored_by_the_program() {
    let session = Session::new();
    let (status, output, error) = script(
        &session,
        "trap '' HUP INT QUIT TERM; exec \"$0\" count -q -- sh -c 'kill -HUP $$; kill -INT $$; kill -QUIT $$; \
         kill -TERM $$; echo survived'",
        &[],
    );
    assert_eq!((status, output.trim()), (Some(0), "survived"), "{error}");
}

/// A container was blamed.
#[test]
fn a_count_within_a_count_names_the_tracer() {
    let session = Session::new();
    let own = crate::session::treering();
    let inner = program(&own, &["count", "-o", "inner.trg", "--", "true"]);
    let outcome = session.run(&[words(&["count", "-q", "--"]), inner].concat());
    assert_eq!(outcome.status.code(), Some(1), "{outcome:#?}");
    assert!(outcome.stderr.contains("(treering) traces this one"), "{outcome:#?}");
    assert!(!outcome.stderr.contains("container"), "{outcome:#?}");
}
