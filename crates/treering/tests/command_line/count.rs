//! `treering count`: its file, its summary, and how it ends.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use treering_testing::programs::{CONTROL_FLOW, EXITS_WITH, FREESTANDING, LEAF_THREADS, LOADS_GS, SITES};

use crate::session::{Outcome, Session, program, treering, words};

fn count(session: &Session, options: &[&str], command: &[std::ffi::OsString]) -> Outcome {
    let mut all = words(&["count"]);
    all.extend(words(options));
    all.extend(words(&["--"]));
    all.extend_from_slice(command);
    session.run(&all)
}

/// The number before a word of the summary.
fn stated(outcome: &Outcome, word: &str) -> u64 {
    let line = outcome.stderr.lines().find(|line| line.contains(word));
    let line = line.unwrap_or_else(|| panic!("{word} is stated: {outcome:#?}"));
    let digits: String = line.split("  ").find(|part| !part.is_empty()).unwrap_or("").replace(',', "");
    digits.trim().parse().unwrap_or_else(|_| panic!("a number stands in {line:?}"))
}

#[test]
fn two_runs_state_the_same_numbers() {
    let session = Session::new();
    let path = CONTROL_FLOW.build().expect("the compiler is installed");
    let run = || count(&session, &["--fixed"], &program(&path, &[]));
    let (first, second) = (run(), run());
    for word in ["instructions", "blocks", "calls"] {
        assert_eq!(stated(&first, word), stated(&second, word), "{first:#?}{second:#?}");
    }
    assert!(stated(&first, "instructions") > 10_000, "{first:#?}");
    assert!(first.stderr.contains("all instructions were counted"), "{first:#?}");
    assert!(session.path("treering.trg").exists());
}

#[test]
fn code_kept_from_the_last_run_is_used_and_changes_no_count() {
    let session = Session::new();
    let path = CONTROL_FLOW.build().expect("the compiler is installed");
    let kept = session.path("cache/treering/code");
    let run = |options: &[&str]| {
        let all = [&["--fixed"], options].concat();
        let outcome = count(&session, &all, &program(&path, &[]));
        assert!(outcome.stderr.contains("all instructions were counted"), "{outcome:#?}");
        let all = session.output(&["export", "--to", "callgrind", "-o", "-", "treering.trg"]);
        all.lines()
            .filter(|line| !line.starts_with("pid: "))
            .fold(String::new(), |all, line| all + line + "\n")
    };
    let first = run(&["--no-cache"]);
    assert!(first.contains("leaf"), "{first}");
    assert!(!kept.exists(), "nothing is kept");
    let of_file = || {
        let mut files =
            std::fs::read_dir(&kept).expect("something is kept").map(|entry| entry.expect("a file").path());
        let file = files.next().expect("a file");
        assert_eq!(files.next(), None, "one for each program");
        file
    };
    for _ in 0..3 {
        assert_eq!(run(&[]), first);
    }
    let file = of_file();
    for damaged in [&b"not ours"[..], &[], &std::fs::read(&file).expect("it was written")[..200]] {
        std::fs::write(&file, damaged).expect("it can be written");
        assert_eq!(run(&[]), first);
        assert!(std::fs::read(of_file()).expect("a file").len() > 1000, "it is found out again");
    }
    // Where nothing can be kept, nothing is said.
    std::fs::remove_dir_all(&kept).expect("it is ours");
    std::fs::write(&kept, "").expect("it can be written");
    assert_eq!(run(&[]), first);
}

#[test]
fn a_tree_is_the_same_in_two_runs_and_every_report_reads_it() {
    let session = Session::new();
    let path = CONTROL_FLOW.build().expect("the compiler is installed");
    let run = |file| {
        let outcome = count(&session, &["--tree", "--fixed", "-o", file], &program(&path, &[]));
        assert!(outcome.stderr.contains("all instructions were counted"), "{outcome:#?}");
        let folded = session.run(&words(&["export", "--to", "folded", file])).stdout;
        (stated(&outcome, "instructions"), folded)
    };
    let (first, second) = (run("first.trg"), run("second.trg"));
    assert_eq!(first, second);
    let costs = first.1.lines().filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
    assert_eq!(costs.sum::<u64>(), first.0, "every instruction has its stack");
    assert!(first.1.contains("main;leaf 1500\n"), "300 calls of 5 instructions: {}", first.1);
    for view in [&["--tree", "--depth", "90"][..], &["--flat"], &["--callgraph"]] {
        let report = session.run(&[&["report", "first.trg", "--min", "0"], view].concat());
        assert_eq!(report.shell_status(), 0, "{report:#?}");
        let leaf = report.stdout.lines().find(|line| line.contains(" leaf ["));
        assert!(leaf.is_some_and(|line| line.contains("300")), "{view:?}: {report:#?}");
    }
}

#[test]
fn the_file_holds_the_program() {
    let session = Session::new();
    let path = FREESTANDING.build().expect("the compiler is installed");
    let outcome = count(&session, &["-o", "counts.trg"], &program(&path, &[]));
    assert_eq!(outcome.shell_status(), 44, "the program's status is passed on: {outcome:#?}");
    let dump = session.run(&words(&["dump", "counts.trg"]));
    assert!(dump.stdout.contains("freestanding"), "{dump:#?}");
}

#[test]
fn threads_are_stated() {
    let session = Session::new();
    let path = LEAF_THREADS.build().expect("the compiler is installed");
    let outcome = count(&session, &[], &program(&path, &["7", "1000"]));
    assert_eq!(stated(&outcome, "threads"), 8, "{outcome:#?}");
    assert!(stated(&outcome, "calls") >= 7000, "{outcome:#?}");
}

/// The start of a command in namespaces of its own; nothing where none can be made.
fn container() -> Option<Vec<std::ffi::OsString>> {
    let start = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount", "--mount-proc"];
    let tried = std::process::Command::new(start[0]).args(&start[1..]).arg("true").output();
    if !tried.is_ok_and(|tried| tried.status.success()) {
        eprintln!("skipped: no container can be made here");
        return None;
    }
    Some(words(&start))
}

fn check_calls_of_sites(session: &Session) {
    let report = session.json("--flat", &["treering.trg"]);
    let rows = report["functions"].as_array().expect("there are functions");
    for function in ["first", "second", "third"] {
        let row = rows.iter().find(|row| row["function"] == function).expect("it was called");
        assert_eq!(row["calls"], 40, "{function}");
    }
}

#[test]
fn a_program_in_a_container_is_counted() {
    let Some(mut command) = container() else { return };
    let session = Session::new();
    let path = SITES.build().expect("the compiler is installed");
    command.extend(program(&path, &["3", "0"]));
    let outcome = count(&session, &[], &command);
    assert!(outcome.status.success(), "{outcome:#?}");
    check_calls_of_sites(&session);
}

#[test]
fn a_program_that_has_another_file_at_a_path_is_named_by_that() {
    let Some(mut command) = container() else { return };
    let session = Session::new();
    let hidden = SITES.build().expect("the compiler is installed");
    let shown = session.path("program");
    std::fs::copy(EXITS_WITH.build().expect("the compiler is installed"), &shown).expect("it can be copied");
    let script = "mount --bind \"$1\" \"$2\" && exec \"$2\" 3 0";
    command.extend(words(&["sh", "-c", script, "sh"]));
    command.extend([hidden.into(), shown.into()]);
    let outcome = count(&session, &[], &command);
    assert!(outcome.status.success(), "{outcome:#?}");
    check_calls_of_sites(&session);
}

#[test]
fn the_exit_status_is_the_programs() {
    let session = Session::new();
    let path = EXITS_WITH.build().expect("the compiler is installed");
    assert_eq!(count(&session, &["-q"], &program(&path, &["3"])).shell_status(), 3);
    let killed = count(&session, &[], &words(&["sh", "-c", "kill -TERM $$"]));
    assert_eq!(killed.shell_status(), 143, "{killed:#?}");
    assert!(killed.stderr.contains("SIGTERM"), "{killed:#?}");
}

#[test]
fn missing_programs_and_directories_are_errors() {
    let session = Session::new();
    let missing = count(&session, &[], &words(&["./no-such-program"]));
    assert_eq!(missing.shell_status(), 127, "{missing:#?}");
    assert!(missing.error().contains("cannot run ./no-such-program: there is no such program"));
    assert!(missing.stderr.contains("hint: check the path"), "{missing:#?}");
    let missing = count(&session, &[], &words(&["no-such-program"]));
    assert_eq!(missing.shell_status(), 127, "{missing:#?}");
    assert!(missing.stderr.contains("hint: it is not in PATH; for a file here, write ./no-such-program"));
    assert!(!session.path("treering.trg").exists(), "nothing was counted");
    let directory = count(&session, &[], &words(&["/tmp"]));
    assert_eq!(directory.shell_status(), 126, "{directory:#?}");
}

#[test]
fn a_script_whose_interpreter_is_missing_is_an_error() {
    let session = Session::new();
    std::fs::write(session.path("script"), "#!/no/such/interpreter\n").expect("the directory can be written");
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(session.path("script"), executable).expect("the file is ours");
    let outcome = count(&session, &[], &words(&["./script"]));
    assert!(
        outcome.error().contains("hint: check the path; for a script, check the interpreter"),
        "{outcome:#?}"
    );
}

#[test]
fn a_program_that_cannot_go_on_is_an_error_and_its_counts_are_written() {
    let session = Session::new();
    let path = LOADS_GS.build().expect("the compiler is installed");
    for options in [&[][..], &["-q"]] {
        let outcome = count(&session, options, &program(&path, &[]));
        assert_eq!(outcome.shell_status(), 128 + 9, "{outcome:#?}");
        assert!(outcome.error().contains("a load of the segment register gs"), "{outcome:#?}");
        assert!(outcome.stderr.ends_with("hint: sample it: treering record\n"), "{outcome:#?}");
        let report = session.run(&words(&["report", "--flat", "--min", "0"]));
        assert!(report.stdout.contains(" leaf ["), "{report:#?}");
        std::fs::remove_file(session.path("treering.trg")).expect("it was written");
    }
    let in_child = count(&session, &["-q"], &program(&path, &["child"]));
    assert_eq!(in_child.shell_status(), 1, "the program itself ended well: {in_child:#?}");
    assert!(in_child.error().contains("a load of the segment register gs"), "{in_child:#?}");
}

/// A heap that is made ready for more than a process may have would leave it nothing at all.
#[test]
fn little_memory_is_enough_for_a_small_program() {
    let session = Session::new();
    let script = "ulimit -d 40000 && exec \"$0\" count -q -- true";
    let mut command = std::process::Command::new("sh");
    command.args(["-c", script]).arg(treering()).current_dir(session.path(""));
    let outcome = Outcome::of(command.output().expect("there is a shell"));
    assert_eq!(outcome.shell_status(), 0, "{outcome:#?}");
}

#[test]
fn an_output_that_cannot_be_written_is_found_out_first() {
    let session = Session::new();
    let outcome = count(&session, &["-o", "/no/such/directory/a.trg"], &words(&["echo", "it ran"]));
    assert_eq!(outcome.shell_status(), 1, "{outcome:#?}");
    assert!(outcome.error().contains("/no/such/directory/a.trg"));
    assert!(!outcome.stdout.contains("it ran"), "{outcome:#?}");
}

#[test]
fn a_request_to_end_reaches_the_program_and_its_counts_are_written() {
    let session = Session::new();
    let path = LEAF_THREADS.build().expect("the compiler is installed");
    let mut all = words(&["count", "--"]);
    all.extend(program(&path, &["2", "2000000000"]));
    let child = session.command(&all).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let child = child.expect("treering runs");
    let pid = Pid::from_raw(child.id() as i32);
    let deadline = Instant::now() + Duration::from_secs(120);
    let children = format!("/proc/{pid}/task/{pid}/children");
    // The program has executed its own code for long enough when it has had so many hundredths of a second.
    const LONG: u64 = 20;
    let had = || {
        let program = std::fs::read_to_string(&children).ok()?;
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", program.trim())).ok()?;
        let (_, fields) = stat.rsplit_once(')')?;
        fields.split_whitespace().nth(11)?.parse::<u64>().ok()
    };
    while had().is_none_or(|time| time < LONG) {
        assert!(Instant::now() < deadline, "the program has not begun");
        std::thread::sleep(Duration::from_millis(20));
    }
    kill(pid, Signal::SIGTERM).expect("it runs");
    let outcome = Outcome::of(child.wait_with_output().expect("it is our child"));
    assert_eq!(outcome.shell_status(), 128 + 15, "{outcome:#?}");
    assert!(outcome.stderr.contains("ended by SIGTERM"), "{outcome:#?}");
    assert!(stated(&outcome, "instructions") > 1_000_000, "{outcome:#?}");
    assert!(session.path("treering.trg").exists());
}

/// Debug information in a file of its own is read with the profile only, and gives the same.
#[test]
fn lines_of_separate_debug_information_are_found_by_the_report() {
    let Some((session, [whole, split])) = whole_and_split() else {
        return crate::skip("objcopy cannot separate debug information");
    };
    let [whole, split] = [("whole.trg", &whole), ("split.trg", &split)].map(|(file, path)| {
        let outcome = count(&session, &["-q", "--fixed", "--no-sources", "-o", file], &program(path, &[]));
        assert_eq!(outcome.shell_status(), 0, "{outcome:#?}");
        let dump = session.run(&words(&["dump", file])).stdout;
        let lines = |function| without_command(&session, &["report", file, "--lines", function]);
        (dump, ["main", "choose", "factorial", "maybe_jump"].map(lines))
    });
    assert!(whole.0.contains("control_flow.c") && !split.0.contains("control_flow.c"));
    assert!(split.1.iter().all(|lines| lines.contains("control_flow.c")), "{:?}", split.1);
    assert_eq!(whole.1, split.1);
}

/// A tree has the same names and lines as if they had been looked up at once, and its costs stay.
#[test]
fn lines_of_a_tree_are_found_by_the_report_as_well() {
    let Some((session, [whole, split])) = whole_and_split() else {
        return crate::skip("objcopy cannot separate debug information");
    };
    let [whole, split] = [("whole.trg", &whole), ("split.trg", &split)].map(|(file, path)| {
        let options = ["-q", "--fixed", "--tree", "--no-sources", "-o", file];
        let outcome = count(&session, &options, &program(path, &[]));
        assert_eq!(outcome.shell_status(), 0, "{outcome:#?}");
        let dump = session.run(&words(&["dump", file])).stdout;
        let report = |view: &[&str]| without_command(&session, &[&["report", file], view].concat());
        let blocks = ["main", "choose", "factorial"].map(|function| report(&["--blocks", function]));
        (dump, blocks, report(&["--tree", "--min", "0"]))
    });
    assert!(whole.0.contains("control_flow.c") && !split.0.contains("control_flow.c"));
    assert!(split.1.iter().all(|blocks| blocks.contains("control_flow.c")), "{:?}", split.1);
    assert_eq!(whole.1, split.1);
    assert_eq!(whole.2, split.2);
}

/// A report without the line of the command, whose path differs in each case.
fn without_command(session: &Session, arguments: &[&str]) -> String {
    let text = session.run(&words(arguments)).stdout;
    text.lines().filter(|line| !line.starts_with("command ")).map(|line| format!("{line}\n")).collect()
}

/// A program with its debug information, and the same with it in a file of its own; nothing if that
/// cannot be made.
fn whole_and_split() -> Option<(Session, [std::path::PathBuf; 2])> {
    let session = Session::new();
    let built = CONTROL_FLOW.variant("build-id", &["-Wl,--build-id"]).build();
    let built = built.expect("the compiler is installed");
    // Names of one length, so that stacks are alike.
    let [whole, split] = ["whole", "split"].map(|name| session.path(name));
    for path in [&whole, &split] {
        std::fs::create_dir(path).expect("the directory can be written");
    }
    let (whole, split) = (whole.join("program"), split.join("program"));
    std::fs::copy(&built, &whole).expect("the program can be copied");
    let separate = |from: &std::path::Path, arguments: &[&str], to: &std::path::Path| {
        let done = std::process::Command::new("objcopy").args(arguments).arg(from).arg(to).output();
        done.is_ok_and(|output| output.status.success())
    };
    let debug = split.with_extension("debug");
    let link = format!("--add-gnu-debuglink={}", debug.display());
    let separated =
        separate(&built, &["--only-keep-debug"], &debug) && separate(&built, &["--strip-all", &link], &split);
    separated.then_some((session, [whole, split]))
}
