//! `treering archive`: what many writers keep, what a selection shows, and the tables.

use std::process::{Command, Stdio};

use serde_json::Value;

use crate::session::{Outcome, Session, words};

pub(crate) fn archive(session: &Session, arguments: &[&str]) -> Outcome {
    let mut all = words(&["archive"]);
    all.extend(words(arguments));
    session.run(&all)
}

/// The same on the archive `kept`, which must succeed.
pub(crate) fn of_kept(session: &Session, command: &str, arguments: &[&str]) -> Outcome {
    let outcome = archive(session, &[&[command, "--archive", "kept"], arguments].concat());
    assert!(outcome.status.success(), "{outcome:#?}");
    outcome
}

/// A folded profile in which `work` costs so much.
pub(crate) fn folded(session: &Session, name: &str, work: u64) {
    let text = format!("main 2\nmain;work {work}\nmain;work;it's \"odd\" 1\n");
    std::fs::write(session.path(name), text).expect("the folder can be written");
}

pub(crate) fn add(session: &Session, options: &[&str], files: &[&str]) {
    let outcome = archive(session, &[&["add"], options, &["kept"], files].concat());
    assert!(outcome.status.success(), "{outcome:#?}");
}

pub(crate) fn listed(session: &Session, condition: &str) -> Vec<Value> {
    let outcome = of_kept(session, "list", &["--json", "--where", condition]);
    let listed: Value = serde_json::from_str(&outcome.stdout).expect("it is JSON");
    listed["runs"].as_array().expect("runs").clone()
}

/// The cost of the whole run and of `work` in a flat profile as JSON.
pub(crate) fn costs(text: &str) -> Vec<(String, u64, u64)> {
    let flat: Value = serde_json::from_str(text).expect("it is JSON");
    let rows = flat["functions"].as_array().expect("functions").iter();
    let mut costs: Vec<_> = rows
        .map(|row| {
            let cost = |key: &str| row[key].as_u64().expect("a cost");
            (row["function"].as_str().expect("a name").to_owned(), cost("self_cost"), cost("total_cost"))
        })
        .collect();
    costs.sort();
    costs
}

pub(crate) fn three_hosts(session: &Session) {
    for (at, host) in ["a", "b", "it's c"].into_iter().enumerate() {
        let name = format!("{at}.folded");
        folded(session, &name, 10 + at as u64);
        add(session, &["--host", host, "--rank", &at.to_string(), "--project", "solve"], &[&name]);
    }
}

#[test]
fn the_same_profile_again_is_the_same_run() {
    let session = Session::new();
    three_hosts(&session);
    add(&session, &["--host", "a", "--rank", "0", "--project", "solve"], &["0.folded"]);
    assert_eq!(listed(&session, "true").len(), 3);
    assert_eq!(listed(&session, "host = 'it''s c' AND rank = 2").len(), 1);
    assert_eq!(listed(&session, "project <> 'solve'").len(), 0);
}

/// A pipe was read twice, so that a profile without any content was kept.
#[test]
fn a_profile_from_a_pipe_is_the_one_of_its_file() {
    let session = Session::new();
    session.output(&["record", "-q", "-o", "true.trg", "--", "true"]);
    let treering = crate::session::treering();
    let shell = |line: &str| {
        let mut shell = Command::new("bash");
        shell.args(["-c", line]).env("TREERING", &treering).current_dir(session.path("."));
        let outcome = Outcome::of(shell.stdin(Stdio::null()).output().expect("bash runs"));
        assert!(outcome.status.success(), "{outcome:#?}");
        outcome.stderr
    };
    assert!(shell("\"$TREERING\" archive add kept <(cat true.trg)").contains("1 of them new"));
    assert!(shell("cat true.trg | \"$TREERING\" archive add kept -").contains("0 of them new"));
    add(&session, &[], &["true.trg"]);
    assert_eq!(listed(&session, "true").len(), 1);
    let shown = of_kept(&session, "flat", &["--", "--json", "--min", "0"]).stdout;
    assert_eq!(
        costs(&shown),
        costs(&session.output(&["report", "true.trg", "--flat", "--json", "--min", "0"]))
    );
}

/// Of one program, project and version are equal.
#[test]
fn runs_of_a_collector_are_chosen_by_its_name() {
    let session = Session::new();
    session.output(&["count", "-q", "-o", "count.trg", "--", "true"]);
    session.output(&["record", "-q", "-o", "record.trg", "--", "true"]);
    add(&session, &[], &["count.trg", "record.trg"]);
    let outcome = archive(&session, &["flat", "--archive", "kept"]);
    assert!(outcome.error().contains("--where \"collector = 'treering record'\""), "{outcome:#?}");
    for collector in ["count", "record"] {
        let condition = format!("collector = 'treering {collector}'");
        assert_eq!(listed(&session, &condition).len(), 1);
        of_kept(&session, "flat", &["--where", &condition]);
    }
}

#[test]
fn a_selection_shows_what_a_merge_of_its_files_shows() {
    let session = Session::new();
    three_hosts(&session);
    session.output(&["merge", "0.folded", "1.folded", "-o", "merged.trg"]);
    let merged = session.output(&["report", "merged.trg", "--flat", "--json", "--min", "0"]);
    let shown = of_kept(&session, "flat", &["--where", "rank < 2", "--", "--json", "--min", "0"]);
    assert_eq!(costs(&shown.stdout), costs(&merged));
    let work = costs(&shown.stdout).into_iter().find(|(name, ..)| name == "work");
    assert_eq!(work, Some(("work".to_owned(), 21, 23)));
    of_kept(&session, "merge", &["--where", "rank < 2", "-o", "selection.trg"]);
    let again = session.output(&["report", "selection.trg", "--flat", "--json", "--min", "0"]);
    assert_eq!(costs(&again), costs(&merged));
}

/// Two writers each add the same files: one of them is told of each run that it is new.
#[test]
fn many_writers_at_once_lose_nothing() {
    let session = Session::new();
    let names: Vec<String> = (0..20).map(|at| format!("{at}.folded")).collect();
    names.iter().enumerate().for_each(|(at, name)| folded(&session, name, at as u64));
    let writers: Vec<_> = (0..8)
        .map(|writer| {
            let mut all = vec!["archive", "add", "kept", "--project", "p"];
            all.extend(names.chunks(5).nth(writer / 2).expect("a part").iter().map(String::as_str));
            let mut command = session.command(&words(&all));
            command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts")
        })
        .collect();
    let mut new = 0;
    for writer in writers {
        let ended = writer.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success(), "{said}");
        let number = said.trim().strip_prefix("kept 5 profiles, ").and_then(|said| said.split(' ').next());
        new += number.and_then(|number| number.parse::<usize>().ok()).unwrap_or_else(|| panic!("{said}"));
    }
    assert_eq!((new, listed(&session, "true").len()), (20, 20));
    of_kept(&session, "verify", &[]);
}

#[test]
fn tables_take_new_runs_only_and_name_damaged_ones() {
    let session = Session::new();
    three_hosts(&session);
    let first = of_kept(&session, "compact", &[]);
    assert!(first.stderr.contains("wrote 3 runs; the tables have 3"), "{first:#?}");
    let again = of_kept(&session, "compact", &[]);
    assert!(again.stderr.contains("wrote 0 runs; the tables have 3"), "{again:#?}");
    folded(&session, "late.folded", 50);
    add(&session, &["--project", "late"], &["late.folded"]);
    let late = of_kept(&session, "compact", &[]);
    assert!(late.stderr.contains("wrote 1 run; the tables have 4"), "{late:#?}");
    of_kept(&session, "verify", &[]);

    folded(&session, "bad.folded", 60);
    add(&session, &["--project", "bad"], &["bad.folded"]);
    let bad = &listed(&session, "project = 'bad'")[0];
    let sha = bad["manifest"]["profiles"][0]["sha256"].as_str().expect("a name");
    let path = session.path(&format!("kept/profiles/{}/{sha}.trg", &sha[..2]));
    std::fs::remove_file(&path).expect("it is there");
    std::fs::write(&path, "no profile").expect("the folder can be written");
    let outcome = archive(&session, &["compact", "--archive", "kept"]);
    assert!(outcome.status.code() == Some(1) && outcome.stderr.contains("is left out"), "{outcome:#?}");
    let outcome = archive(&session, &["verify", "--archive", "kept"]);
    assert!(outcome.status.code() == Some(1) && outcome.stderr.contains(sha), "{outcome:#?}");
    // Reports and merged files of the other runs note that one is missing.
    of_kept(&session, "merge", &["-o", "all.trg"]);
    let shown = [of_kept(&session, "flat", &[]).stdout, session.output(&["report", "all.trg"])];
    for shown in shown {
        assert!(shown.contains("1 run of the selection could not be read"), "{shown}");
    }
}

/// A writer of tables that is killed leaves whole tables, and the next one completes them.
#[test]
fn tables_are_whole_wherever_their_writer_is_killed() {
    let session = Session::new();
    three_hosts(&session);
    for delay in 0..12_u64 {
        let mut command = session.command(&words(&["archive", "compact", "--anew", "--archive", "kept"]));
        let mut writer = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
        std::thread::sleep(std::time::Duration::from_millis(5 * delay));
        writer.kill().expect("it is our child");
        writer.wait().expect("it is our child");
        let verified = archive(&session, &["verify", "--archive", "kept"]);
        assert!(verified.status.success(), "{verified:#?}");
    }
    let whole = of_kept(&session, "compact", &[]);
    assert!(whole.stderr.contains("the tables have 3"), "{whole:#?}");
}

/// Collectors put their profile into an archive that is named as their output.
#[test]
fn an_archive_as_output_of_a_collector_keeps_its_profile() {
    let session = Session::new();
    three_hosts(&session);
    for (at, options) in [&["count"][..], &["count", "--tree", "-q"]].into_iter().enumerate() {
        let outcome = session.run(&words(&[options, &["-o", "kept", "--", "true"]].concat()));
        assert!(outcome.status.success(), "{outcome:#?}");
        assert_eq!(outcome.stderr.contains("kept 1 profile in kept"), at == 0, "{outcome:#?}");
        assert!(!outcome.stderr.contains("wrote"), "{outcome:#?}");
        assert_eq!(listed(&session, "project = 'true'").len(), at + 1);
    }
    of_kept(&session, "verify", &[]);
    // The status of the program stays what it is, and its profile is kept.
    let outcome = session.run(&words(&["count", "-o", "kept", "--", "false"]));
    assert_eq!(
        (outcome.status.code(), listed(&session, "project = 'false'").len()),
        (Some(1), 1),
        "{outcome:#?}"
    );
    for (options, said) in [
        (&["count", "--view", "-o", "kept", "--", "true"][..], "treering archive view"),
        (&["gprof", "--recover", "-o", "kept"], "--recover"),
        (&["count", "-o", ".", "--", "true"], "becomes one by: treering archive add"),
    ] {
        let outcome = session.run(&words(options));
        assert!(!outcome.status.success() && outcome.stderr.contains(said), "{outcome:#?}");
    }
    // A profile that cannot be kept is not lost.
    let newer = "echo '{\"treering_archive\": 99}' > kept/treering-archive.json";
    let outcome = session.run(&words(&["count", "-q", "-o", "kept", "--", "sh", "-c", newer]));
    assert!(outcome.status.code() == Some(1) && outcome.stderr.contains("a newer treering"), "{outcome:#?}");
    let rescued = outcome
        .stderr
        .lines()
        .find_map(|line| line.split("treering archive add kept ").nth(1))
        .expect("a hint");
    session.output(&["report", "--flat", rescued]);
    // An error that is known beforehand is printed before the program runs.
    let outcome = session.run(&words(&["count", "-q", "-o", "kept", "--", "sh", "-c", "echo > ran"]));
    assert!(outcome.status.code() == Some(1) && outcome.stderr.contains("a newer treering"), "{outcome:#?}");
    assert!(!session.path("ran").exists());
}
