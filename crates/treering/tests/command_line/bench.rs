//! `treering bench`: what is run, kept, listed and compared.

use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use treering_testing::programs::installed;

use crate::runtime::Program;
use crate::session::{Outcome, Session, words};
use crate::skip;

/// `treering bench ... --archive runs`, with the options of the subcommand.
fn bench(session: &Session, options: &[&str], command: &[&str]) -> Outcome {
    session.run(&all_words(options, command))
}

fn all_words(options: &[&str], command: &[&str]) -> Vec<std::ffi::OsString> {
    let mut all = words(&["bench"]);
    all.extend(words(options));
    all.extend(words(&["--archive", "runs"]));
    if !command.is_empty() {
        all.push("--".into());
        all.extend(words(command));
    }
    all
}

/// The same, which must succeed.
fn text(session: &Session, options: &[&str], command: &[&str]) -> String {
    let outcome = bench(session, options, command);
    assert!(outcome.status.success(), "{outcome:#?}");
    outcome.stdout
}

fn json(session: &Session, options: &[&str], command: &[&str]) -> Value {
    let text = text(session, &[options, &["--json"]].concat(), command);
    serde_json::from_str(&text).expect("it is JSON")
}

/// All runs that are listed.
fn listed(session: &Session) -> Vec<Value> {
    json(session, &["list"], &[])["runs"].as_array().expect("runs").clone()
}

/// A script of the shell, as a program.
fn script(session: &Session, name: &str, text: &str) {
    let path = session.path(name);
    std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).expect("it can be written");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("its mode can be set");
}

#[test]
fn a_program_runs_once_in_each_round_for_each_combination() {
    let session = Session::new();
    script(&session, "p", "echo \"$1 $2\" >> log; [ \"$1\" = 1 ] || exit 0");
    let made = json(
        &session,
        &["run", "-n", "4", "-p", "n=1..2", "-p", "algo=list,map"],
        &["./p", "{n}", "--{algo}"],
    );
    let log = std::fs::read_to_string(session.path("log")).expect("it ran");
    let mut lines: Vec<&str> = log.lines().collect();
    for round in lines.chunks(4) {
        let mut round = round.to_vec();
        round.sort_unstable();
        assert_eq!(round, ["1 --list", "1 --map", "2 --list", "2 --map"], "each round has all of them");
    }
    lines.dedup();
    assert_eq!(log.lines().count(), 16);
    let runs = made["runs"].as_array().expect("runs");
    let parameters: Vec<String> = runs.iter().map(|run| run["parameters"].to_string()).collect();
    let expected = [("list", 1), ("map", 1), ("list", 2), ("map", 2)];
    assert_eq!(parameters, expected.map(|(algo, n)| format!("{{\"algo\":\"{algo}\",\"n\":\"{n}\"}}")));
    for run in runs {
        assert_eq!(run["program"], "./p");
        for metric in ["cpu", "wall", "memory"] {
            assert_eq!(run["metrics"][metric]["rounds"], 4, "{metric}");
        }
    }
    assert_eq!(listed(&session).len(), 4);
    let shown = text(&session, &["list"], &[]);
    // The work tree of the tests themselves may be changed, which is said behind it.
    assert!(shown.starts_with("run  ") && shown.contains("\n4 runs"), "{shown}");
}

#[test]
fn a_run_shows_its_command_to_the_byte_and_its_samples() {
    let session = Session::new();
    script(&session, "it's a p", "printf '%s' \"$1\" > argument");
    let mut all = all_words(&["run", "-n", "2", "--version-name", "2.1", "-p", "n=7"], &["./it's a p"]);
    let odd = std::ffi::OsStr::from_bytes(b"\xff {n}\n");
    all.push(odd.to_owned());
    let outcome = session.run(&all);
    assert!(outcome.status.success(), "{outcome:#?}");
    assert_eq!(std::fs::read(session.path("argument")).expect("it ran"), b"\xff 7\n");
    let run = listed(&session)[0]["run"].as_str().expect("an identifier").to_owned();
    let manifest = json(&session, &["show", &run[..8]], &[]);
    assert_eq!(manifest["command"], serde_json::json!(["./it's a p", { "hex": "ff20370a" }]));
    assert_eq!(manifest["version"]["name"], "2.1");
    assert_eq!(manifest["samples"]["cpu"]["values"].as_array().expect("samples").len(), 2);
    assert_eq!(manifest["samples"]["memory"]["unit"], "bytes");
    let shown = text(&session, &["show", &run[..8]], &[]);
    assert!(shown.contains("command     './it'\\''s a p' '"), "{shown}");
    assert!(shown.contains("CPU time"), "{shown}");
}

#[test]
fn parameters_and_places_that_do_not_fit_are_refused_before_anything_runs() {
    let session = Session::new();
    script(&session, "p", "touch ran");
    for (options, command, message) in [
        (&["-p", "n=1"][..], &["./p", "{m}"][..], "{m} names no parameter: there are n"),
        (&["-p", "n=1"], &["./p"], "the command has no place for n"),
        (&["-p", "n=8..1"], &["./p", "{n}"], "it goes down"),
        (&["-p", "n=a..b"], &["./p", "{n}"], "a..b is no range: both ends are whole numbers"),
        (&["-p", "n=1", "-p", "n=2"], &["./p", "{n}"], "n is given twice"),
        (&["--measure", "heat"], &["./p"], "\"heat\" cannot be measured"),
        (&["-n", "0"], &["./p"], "0 is not in 1..=100000"),
        (&["--name", ""], &["./p"], "a value is required for '--name <NAME>'"),
    ] {
        let outcome = bench(&session, &[&["run"], options].concat(), command);
        assert_eq!(outcome.status.code(), Some(2), "{outcome:#?}");
        assert!(outcome.error().contains(message), "{outcome:#?}");
    }
    assert!(!session.path("ran").exists());
}

#[test]
fn a_program_that_fails_is_not_kept_and_the_others_are() {
    let session = Session::new();
    script(&session, "p", "case $1 in 2) echo broken >&2; exit 3;; 3) kill -SEGV $$;; 4) sleep 100;; esac");
    let outcome = bench(&session, &["run", "-n", "2", "--timeout", "1", "-p", "n=1..4"], &["./p", "{n}"]);
    assert_eq!(outcome.status.code(), Some(2), "{outcome:#?}");
    for (job, why) in [
        ("./p n=2", "failed in round 1 of 2 with status 3; its last line: broken"),
        ("./p n=3", "failed in round 1 of 2 with SIGSEGV"),
        ("./p n=4", "round 1 of 2: not done after 1 s, and killed"),
    ] {
        let is_said = outcome.stderr.lines().any(|line| line.contains(job) && line.contains(why));
        assert!(is_said, "{job}: {outcome:#?}");
    }
    let runs = listed(&session);
    assert_eq!((runs.len(), &runs[0]["parameters"]["n"]), (1, &Value::from("1")));
    let missing = bench(&session, &["run"], &["./nowhere"]);
    assert!(missing.error().contains("nowhere"), "{missing:#?}");
}

#[test]
fn output_that_differs_from_round_to_round_is_noted() {
    let session = Session::new();
    script(&session, "p", "echo x >> log; cat log");
    script(&session, "q", "echo same");
    text(&session, &["run", "-n", "2"], &["./p"]);
    text(&session, &["run", "-n", "2"], &["./q"]);
    let shown = |name: &str| {
        let runs = listed(&session);
        let run = runs.iter().find(|run| run["program"] == name).expect("it is kept");
        json(&session, &["show", run["run"].as_str().expect("a run")], &[])
    };
    assert_eq!(shown("./p")["notes"], serde_json::json!(["its output differed from round to round"]));
    // As `echo same | sha256sum` prints it.
    assert_eq!(shown("./q")["output"], "a6328afc76e9db71da297ebff4b0d3e7a7eb3b01d917c05a6573fef121b6ecb6");
}

/// Each run reads what all runs before it have written.
#[test]
fn counts_of_a_program_that_does_other_work_each_time_decide_nothing() {
    let session = Session::new();
    let script = "echo x >> log; while read -r line; do :; done < log";
    for version in ["before", "after"] {
        let named = ["run", "--exact", "-n", "1", "--name", "reader", "--version-name", version];
        let outcome = bench(&session, &named, &["sh", "-c", script]);
        assert!(outcome.status.success(), "{outcome:#?}");
        let warning = format!("warning: reader {version}: two runs of it were counted, with ");
        assert!(outcome.stderr.contains(&warning), "{outcome:#?}");
    }
    let run = listed(&session)[0]["run"].as_str().expect("a run").to_owned();
    let notes = json(&session, &["show", &run], &[])["notes"].to_string();
    assert!(notes.contains("two runs of it were counted, with "), "{notes}");
    let compared = json(&session, &["compare", "before", "after", "--exact"], &[]);
    assert_eq!(compared["pairs"][0]["metrics"]["instructions"]["outcome"], "undecided", "{compared}");
}

#[test]
fn exact_counts_are_kept_with_their_profile_and_explain_a_change() {
    let session = Session::new();
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/command_line/programs/changed.c");
    for (name, options) in [("before", &[][..]), ("after", &["-DCHANGED"])] {
        let mut compile = Command::new("cc");
        compile.args(["-g", "-O1"]).args(options).args([source, "-o"]).arg(session.path(name));
        assert!(compile.status().is_ok_and(|made| made.success()), "the compiler is installed");
        let named = ["run", "--exact", "-n", "1", "--name", "changed", "--version-name", name];
        text(&session, &named, &[&format!("./{name}")]);
    }
    let runs = listed(&session);
    let of = |run: &Value| run["metrics"]["instructions"]["median"].as_f64().expect("it was counted");
    let (after, before) = (of(&runs[0]), of(&runs[1]));
    let run = runs[0]["run"].as_str().expect("a run");
    let manifest = json(&session, &["show", run], &[]);
    assert_eq!(manifest["profiles"][0]["made_by"], "treering count --tree");
    // The profile itself has the same sum.
    let sha256 = manifest["profiles"][0]["sha256"].as_str().expect("a name");
    let path = format!("runs/profiles/{}/{sha256}.trg", &sha256[..2]);
    let report: Value =
        serde_json::from_str(&session.output(&["report", &path, "--json"])).expect("it is JSON");
    assert_eq!(report["run"]["run_cost"].as_f64(), Some(after));
    let compared = json(&session, &["compare", "before", "after", "--exact"], &[]);
    let metric = &compared["pairs"][0]["metrics"]["instructions"];
    assert_eq!((metric["base"].as_f64(), metric["head"].as_f64()), (Some(before), Some(after)));
    assert_eq!(metric["outcome"], "more");
    let shown = text(&session, &["compare", "before", "after", "--exact"], &[]);
    assert!(shown.contains(" % instructions\n\n") && shown.contains("more calls  cost/call"), "{shown}");
    // The explanation knows the code of both programs, as that of their profiles does.
    assert!(shown.contains("\nchanged  the code of 2 functions of 5, hash first\n"), "{shown}");
    let status = |limit: &str| {
        bench(&session, &["compare", "before", "after", "--exact", "--limit", limit], &[]).status.code()
    };
    assert_eq!((status("instructions=1%"), status("instructions=1000%")), (Some(1), Some(0)));
    // A limit of something that was not compared holds nothing.
    for limit in ["instruction=1%", "time=1%", "memory=1%"] {
        assert_eq!(status(limit), Some(2), "{limit}");
    }
    let other = bench(&session, &["compare", run, run, "--program", "nosuch"], &[]);
    assert_eq!(other.status.code(), Some(2), "{other:#?}");
    assert_eq!(
        json(&session, &["compare", run, run, "--exact"], &[])["pairs"][0]["metrics"]["instructions"]["outcome"],
        "same"
    );
}

#[test]
fn programs_of_cbs_are_kept_with_their_parameters_results_and_profile() {
    let session = Session::new();
    let Some(program) = Program::States.compile(&session) else { return };
    let program = program.to_str().expect("a path");
    text(&session, &["run", "-n", "3", "--name", "determinize", "-p", "n=3,5"], &[program, "{n}"]);
    assert!(!session.path("treering.trg").exists(), "nothing is left in the folder");
    let runs = listed(&session);
    let parameters: Vec<String> = runs.iter().map(|run| run["parameters"].to_string()).collect();
    assert!(parameters.contains(&r#"{"n":"5","size":"5"}"#.to_owned()), "{parameters:?}");
    let manifest = json(&session, &["show", runs[0]["run"].as_str().expect("a run")], &[]);
    let n: f64 = manifest["parameters"]["n"].as_str().and_then(|n| n.parse().ok()).expect("a number");
    assert_eq!(manifest["samples"]["states"]["values"], serde_json::json!([n * n, n * n, n * n]));
    let kind = manifest["results"].as_array().expect("results").iter().find(|one| one["name"] == "kind");
    assert_eq!(kind.expect("a result")["value"], "list");
    assert_eq!(manifest["profiles"][0]["made_by"], "the program itself");
    // `plot.pl` made such a table of many files.
    let table = text(&session, &["table", "determinize", "-x", "n", "-y", "states,memory"], &[]);
    let cells: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!((&cells[2][..2], &cells[3][..2]), (&["3", "9"][..], &["5", "25"][..]), "{table}");
}

fn start(session: &Session, options: &[&str], command: &[&str]) -> Child {
    let mut treering = session.command(&all_words(options, command));
    treering.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("treering runs")
}

/// Waits until a file has so many lines.
fn wait_for(path: &Path, lines: usize) {
    while std::fs::read_to_string(path).unwrap_or_default().lines().count() < lines {
        std::thread::yield_now();
    }
}

#[test]
fn a_killed_bench_loses_nothing_that_was_kept_and_lists_nothing_half() {
    let session = Session::new();
    script(&session, "p", "echo \"$1\" >> log");
    text(&session, &["run", "-n", "2", "-p", "n=1..3"], &["./p", "{n}"]);
    for more in [1, 5, 17] {
        let lines = std::fs::read_to_string(session.path("log")).expect("a log").lines().count();
        let mut bench = start(&session, &["run", "-n", "1000", "-p", "n=1..3"], &["./p", "{n}"]);
        wait_for(&session.path("log"), lines + more);
        bench.kill().expect("it runs");
        bench.wait().expect("it ends");
        assert_eq!(listed(&session).len(), 3);
    }
    text(&session, &["gc"], &[]);
    assert_eq!(listed(&session).len(), 3);
}

#[test]
fn an_interrupted_bench_keeps_the_rounds_up_to_then() {
    let session = Session::new();
    script(&session, "p", "echo \"$1\" >> log");
    let mut bench = start(&session, &["run", "-n", "1000", "-p", "n=1,2"], &["./p", "{n}"]);
    wait_for(&session.path("log"), 7);
    let sent = Command::new("kill").args(["-INT", &bench.id().to_string()]).status();
    assert!(sent.is_ok_and(|sent| sent.success()));
    let ended = bench.wait().expect("it ends");
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&ended), Some(2));
    let runs = listed(&session);
    assert_eq!(runs.len(), 2);
    for run in runs {
        let rounds = run["metrics"]["cpu"]["rounds"].as_u64().expect("rounds");
        assert!((3..1000).contains(&rounds), "{rounds}");
    }
}

#[test]
fn two_at_once_keep_all_of_their_runs() {
    let session = Session::new();
    script(&session, "p", "exit 0");
    let mut both = ["a", "b"]
        .map(|name| start(&session, &["run", "-n", "3", "--name", name, "-p", "n=1..10"], &["./p", "{n}"]));
    for bench in &mut both {
        assert!(bench.wait().expect("it ends").success());
    }
    assert_eq!(listed(&session).len(), 20);
    assert_eq!(json(&session, &["list", "a"], &[])["all"], 10);
}

#[test]
fn the_default_folder_is_private_and_one_that_others_can_change_is_refused() {
    let session = Session::new();
    let data = session.path("data");
    let run = |data: &Path| {
        let mut bench = session.command(&["bench", "run", "-n", "1", "--", "true"]);
        Outcome::of(bench.env("XDG_DATA_HOME", data).output().expect("treering runs"))
    };
    assert!(run(&data).status.success());
    let mode = |path: &Path| path.metadata().expect("it is there").permissions().mode() & 0o7777;
    let folder = data.join("treering/bench");
    assert_eq!((mode(&data), mode(&folder)), (0o700, 0o700));
    let kept: Vec<PathBuf> = walk(&folder.join("runs"));
    assert_eq!((kept.len(), mode(&kept[0])), (1, 0o400));
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o777)).expect("its mode can be set");
    let refused = run(&data);
    assert!(refused.error().contains("can be changed by other users"), "{refused:#?}");
    assert!(run(Path::new("relative")).error().contains("not an absolute path"));
    assert_eq!(walk(&folder.join("runs")).len(), 1);
}

/// As on a disk that is full; the limit would end a program that does not expect it.
#[test]
fn where_nothing_can_be_written_nothing_is_kept_and_it_is_said() {
    let session = Session::new();
    script(&session, "p", "exit 0");
    text(&session, &["run", "-n", "2"], &["./p"]);
    let mut shell = Command::new("sh");
    let treering = crate::session::treering();
    shell
        .args(["-c", "ulimit -f 0; exec \"$@\"", "sh"])
        .arg(treering)
        .args(all_words(&["run", "-n", "2"], &["./p"]));
    let refused = Outcome::of(shell.current_dir(session.path("")).output().expect("it runs"));
    assert_eq!(refused.status.code(), Some(2), "{refused:#?}");
    assert!(refused.error().contains("File too large"), "{refused:#?}");
    assert_eq!(listed(&session).len(), 1);
    text(&session, &["run", "-n", "2"], &["./p"]);
    assert_eq!(listed(&session).len(), 2);
}

/// An archive in which another file is in the place of the folder for new ones.
#[test]
fn an_archive_that_cannot_be_written_is_refused_before_measuring() {
    let session = Session::new();
    script(&session, "p", "touch ran");
    treering_archive::Archive::open(&session.path("runs")).expect("it can be made");
    std::fs::write(session.path("runs/incoming"), "").expect("it can be written");
    let refused = bench(&session, &["run", "-n", "1"], &["./p"]);
    assert_eq!(refused.status.code(), Some(2), "{refused:#?}");
    assert!(refused.error().contains("runs/incoming"), "{refused:#?}");
    assert!(!session.path("ran").exists());
}

/// All files below a folder.
fn walk(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}

#[test]
fn an_archive_of_another_user_can_be_read() {
    if installed("setpriv").is_none()
        || !Command::new("setpriv").args(["--reuid", "65534", "true"]).status().is_ok_and(|ok| ok.success())
    {
        return skip("only root can run programs as another user");
    }
    let session = Session::new();
    script(&session, "p", "exit 0");
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755))
        .expect("its mode can be set");
    let program = folder.path().join("treering");
    std::fs::copy(crate::session::treering(), &program).expect("it can be copied");
    let archive = folder.path().join("runs");
    let archive = archive.to_str().expect("a path");
    session.output(&["bench", "run", "-n", "1", "--archive", archive, "--", "./p"]);
    let by_nobody = |options: &[&str]| {
        let mut command = Command::new("setpriv");
        command
            .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
            .arg(&program)
            .arg("bench")
            .args(options);
        command.args(["--archive", archive]).current_dir("/").env("HOME", "/nonexistent");
        Outcome::of(command.output().expect("it runs"))
    };
    let shown = by_nobody(&["list"]);
    assert!(shown.status.success() && shown.stdout.contains("\n1 run"), "{shown:#?}");
    // Without the index as well.
    std::fs::remove_file(Path::new(archive).join("index.sqlite")).expect("it is there");
    assert_eq!(by_nobody(&["list"]).stdout, shown.stdout);
    let refused = by_nobody(&["run", "-n", "1"]);
    assert_eq!(refused.status.code(), Some(2));
    let refused = by_nobody(&["gc"]);
    assert!(refused.error().contains("Permission denied"), "{refused:#?}");
}

#[test]
fn runs_without_a_partner_and_with_other_parameters_are_named() {
    let session = Session::new();
    script(&session, "p", "exit 0");
    for (name, sizes) in [("a", "n=1,2,4"), ("b", "n=1,2")] {
        text(&session, &["run", "-n", "2", "--version-name", name, "-p", sizes], &["./p", "{n}"]);
    }
    let compared = bench(&session, &["compare", "a", "b"], &[]);
    assert!(
        compared.stderr.contains("note: only a has these, so they are not compared: ./p n=4"),
        "{compared:#?}"
    );
    let runs = listed(&session);
    let run = |version: &str, size: &str| {
        let is_it = |run: &&Value| run["version"] == version && run["parameters"]["n"] == size;
        runs.iter().find(is_it).expect("it was run")["run"].as_str().expect("a run").to_owned()
    };
    let compared = bench(&session, &["compare", &run("a", "4"), &run("b", "1")], &[]);
    assert!(compared.stdout.contains("n=4 → n=1"), "{compared:#?}");
    assert!(compared.stdout.contains("the parameters differ"), "{compared:#?}");
}

/// Two programs in two versions; of the second, the head was not counted.
#[test]
fn metrics_of_one_version_alone_are_named_and_decide_no_limit() {
    use treering_archive::{Archive, Manifest, Measured, Unit, Version};
    let session = Session::new();
    let mut archive = Archive::open(&session.path("runs")).expect("it can be made");
    for (program, version, is_counted) in
        [("a", "old", true), ("a", "new", true), ("b", "old", true), ("b", "new", false)]
    {
        let measured = |unit, value: f64| Measured { unit, values: vec![value; 8] };
        let counts = if is_counted {
            measured(Unit::Count, 5e6)
        } else {
            Measured { unit: Unit::Count, values: vec![] }
        };
        let manifest = Manifest {
            program: program.to_owned(),
            version: Version { name: version.to_owned(), ..Version::default() },
            session: "one".to_owned(),
            samples: [("memory".to_owned(), measured(Unit::Bytes, 1e6)), ("instructions".to_owned(), counts)]
                .into(),
            ..Manifest::default()
        };
        archive.add(&manifest).expect("it can be kept");
    }
    let limited = bench(&session, &["compare", "old", "new", "--limit", "instructions=1%"], &[]);
    assert_eq!(limited.status.code(), Some(3), "{limited:#?}");
    assert!(
        limited.stderr.contains("note: b: only base was measured in instructions, not compared"),
        "{limited:#?}"
    );
    assert_eq!(
        bench(&session, &["compare", "old", "new", "--limit", "memory=1%"], &[]).status.code(),
        Some(0)
    );
    let counted = ["compare", "old", "new", "--limit", "instructions=1%", "--program", "a"];
    assert_eq!(bench(&session, &counted, &[]).status.code(), Some(0));
    // A limit of a suite is one as well.
    std::fs::write(session.path("s.toml"), "limit = { time = \"5 %\" }\n[program.a]\nrun = \"a\"\n")
        .expect("it can be written");
    let suite = ["compare", "old", "new", "--suite", "s.toml"];
    let refused = bench(&session, &suite, &[]);
    assert_eq!(refused.status.code(), Some(2), "{refused:#?}");
    assert!(
        refused.error().contains("the suite's limit of time: no two of these runs were measured in it"),
        "{refused:#?}"
    );
    assert_eq!(bench(&session, &[&suite[..], &["--exact"]].concat(), &[]).status.code(), Some(0));
}

#[test]
fn runs_of_two_machines_are_not_compared_in_time() {
    let session = Session::new();
    script(&session, "p", "exit 0");
    for name in ["a", "b"] {
        text(&session, &["run", "-n", "8", "--version-name", name], &["./p"]);
    }
    // Two sessions of one machine: shown, and nothing is decided.
    let compared = bench(&session, &["compare", "a", "b", "--limit", "time=1000%"], &[]);
    assert_eq!(compared.status.code(), Some(3), "{compared:#?}");
    assert!(compared.stdout.contains("times of two sessions decide nothing"), "{compared:#?}");
    // The same run on a machine with more processors.
    let run = listed(&session)[0]["run"].as_str().expect("a run").to_owned();
    let path = session.path(&format!("runs/runs/{}/{run}.json", &run[..2]));
    let manifest = std::fs::read_to_string(&path).expect("it is there");
    let cores = |cores: &str| {
        let at = manifest.find("\"cores\": ").expect("it is stated") + 9;
        let end = at + manifest[at..].find(',').expect("more follows");
        format!("{}{cores}{}", &manifest[..at], &manifest[end..])
    };
    let other = cores("4096");
    let id = treering_archive::Id::of(other.as_bytes()).to_string();
    std::fs::create_dir_all(session.path(&format!("runs/runs/{}", &id[..2]))).expect("it can be made");
    std::fs::write(session.path(&format!("runs/runs/{}/{id}.json", &id[..2])), other)
        .expect("it can be written");
    let refused = bench(&session, &["compare", &run[..12], &id[..12]], &[]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(refused.error().contains("4096 × "), "{refused:#?}");
    assert!(refused.stderr.contains("times are not comparable\nhint: --exact compares"), "{refused:#?}");
    assert!(bench(&session, &["compare", &run[..12], &id[..12], "--force"], &[]).status.success());
}

#[test]
fn unknown_runs_versions_and_archives_are_named() {
    let session = Session::new();
    script(&session, "p", "exit 0");
    let none = bench(&session, &["list"], &[]);
    assert!(none.error().contains("there is no archive runs\nhint: make one:"), "{none:#?}");
    text(&session, &["run", "-n", "1", "-p", "n=1"], &["./p", "{n}"]);
    for (options, message) in [
        (&["show", "ffffffffffff"][..], "no run is called ffffffffffff"),
        (&["compare", "1.0", "2.0"], "1.0 is neither a run nor a version"),
        (&["table", "q", "-x", "n"], "no run of q is kept"),
        (&["table", "p", "-x", "m"], "these runs have no parameter m; there are: n"),
        (
            &["table", "p", "-x", "n", "-y", "heat"],
            "none of these runs has heat; there are: cpu, memory, wall",
        ),
    ] {
        let outcome = bench(&session, options, &[]);
        assert_eq!(outcome.status.code(), Some(2), "{outcome:#?}");
        assert!(outcome.error().contains(message), "{outcome:#?}");
    }
    std::fs::create_dir(session.path("letters")).expect("it can be made");
    std::fs::write(session.path("letters/one"), "dear").expect("it can be written");
    let refused = session.run(&["bench", "list", "--archive", "letters"]);
    assert!(refused.error().contains("letters is no archive of runs, and is not empty"), "{refused:#?}");
}
