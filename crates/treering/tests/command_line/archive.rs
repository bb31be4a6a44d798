//! `treering archive` and `treering query`: what many writers keep, what a selection shows, and the tables.

use std::path::Path;
use std::process::Stdio;

use serde_json::Value;
use treering_testing::programs::installed;

use crate::session::{Outcome, Session, words};
use crate::skip;

fn archive(session: &Session, arguments: &[&str]) -> Outcome {
    let mut all = words(&["archive"]);
    all.extend(words(arguments));
    session.run(&all)
}

/// The same on the archive `kept`, which must succeed.
fn of_kept(session: &Session, command: &str, arguments: &[&str]) -> Outcome {
    let outcome = archive(session, &[&[command, "--archive", "kept"], arguments].concat());
    assert!(outcome.status.success(), "{outcome:#?}");
    outcome
}

/// A folded profile in which `work` costs so much.
fn folded(session: &Session, name: &str, work: u64) {
    let text = format!("main 2\nmain;work {work}\nmain;work;it's \"odd\" 1\n");
    std::fs::write(session.path(name), text).expect("the folder can be written");
}

fn add(session: &Session, options: &[&str], files: &[&str]) {
    let outcome = archive(session, &[&["add"], options, &["kept"], files].concat());
    assert!(outcome.status.success(), "{outcome:#?}");
}

fn listed(session: &Session, condition: &str) -> Vec<Value> {
    let outcome = of_kept(session, "list", &["--json", "--where", condition]);
    let listed: Value = serde_json::from_str(&outcome.stdout).expect("it is JSON");
    listed["runs"].as_array().expect("runs").clone()
}

/// The cost of the whole run and of `work` in a flat profile as JSON.
fn costs(text: &str) -> Vec<(String, u64, u64)> {
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

fn three_hosts(session: &Session) {
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

#[test]
fn many_writers_at_once_lose_nothing() {
    let session = Session::new();
    let writers: Vec<_> = (0..8)
        .map(|writer| {
            let names: Vec<String> = (0..5).map(|at| format!("{writer}-{at}.folded")).collect();
            names.iter().enumerate().for_each(|(at, name)| folded(&session, name, 100 * writer + at as u64));
            let mut all = vec!["archive", "add", "kept", "--project", "p"];
            all.extend(names.iter().map(String::as_str));
            let mut command = session.command(&words(&all));
            command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts")
        })
        .collect();
    for mut writer in writers {
        assert!(writer.wait().expect("it ends").success());
    }
    assert_eq!(listed(&session, "true").len(), 40);
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

#[test]
fn mistakes_are_named_with_what_helps() {
    let session = Session::new();
    three_hosts(&session);
    for (arguments, said) in [
        (&["flat", "--archive", "kept", "--where", "projekt = 'x'"][..], "no such column: projekt"),
        (&["flat", "--archive", "kept", "--where", "project = 'x'"], "no profile to show"),
        (&["flat", "--archive", "nowhere"], "there is no archive nowhere"),
        (&["list", "--archive", "."], "is no archive"),
        (&["sql", "--archive", "kept"], "treering archive compact"),
        (&["gc", "--archive", "kept", "--before", "tomorrow"], "\"tomorrow\" is no day"),
        (&["flat", "--archive", "kept", "--", "--no-such-option"], "--no-such-option"),
    ] {
        let outcome = archive(&session, arguments);
        assert!(!outcome.status.success() && outcome.stderr.contains(said), "{outcome:#?}");
    }
    let outcome = session.run(&words(&["query", "--named", "callers", "--archive", "kept"]));
    assert!(!outcome.status.success(), "{outcome:#?}");
}

#[test]
fn each_engine_has_its_views() {
    let session = Session::new();
    three_hosts(&session);
    of_kept(&session, "compact", &[]);
    for (engine, begins) in [
        ("duckdb", "CREATE OR REPLACE TEMP VIEW run AS SELECT run_id, project"),
        ("spark", "CREATE OR REPLACE TEMPORARY VIEW run AS SELECT run_id, project"),
        ("datafusion", "CREATE EXTERNAL TABLE run_0 STORED AS PARQUET LOCATION '/"),
    ] {
        let sql =
            of_kept(&session, "sql", &["--engine", engine, "--named", "flat", "--project", "it's"]).stdout;
        assert!(sql.starts_with(begins) && sql.contains("c.project = 'it''s'"), "{sql}");
    }
}

/// Sums of SQL equal those of the report.
#[test]
fn duckdb_answers_what_the_report_says() {
    if installed("duckdb").is_none() {
        skip("duckdb is not installed");
        return;
    }
    let session = Session::new();
    three_hosts(&session);
    of_kept(&session, "compact", &[]);
    let query = |arguments: &[&str]| -> Value {
        let all = [&["query", "--json", "--archive", "kept"], arguments].concat();
        serde_json::from_str(&session.output(&all)).expect("it is JSON")
    };
    let number =
        |value: &Value| value.as_f64().or_else(|| value.as_str()?.parse().ok()).expect("a number") as u64;
    let flat = query(&["--named", "flat"]);
    let mut asked: Vec<(String, u64, u64)> = flat
        .as_array()
        .expect("rows")
        .iter()
        .filter(|row| row["name"] != "[root]")
        .map(|row| {
            (
                row["name"].as_str().expect("a name").to_owned(),
                number(&row["self_cost"]),
                number(&row["total_cost"]),
            )
        })
        .collect();
    asked.sort();
    let shown = of_kept(&session, "flat", &["--", "--json", "--min", "0"]);
    assert_eq!(asked, costs(&shown.stdout));
    assert_eq!(query(&["--named", "runs", "--function", "work"])[0]["host"], "it's c");
    let imbalance = query(&["--named", "imbalance"]);
    assert_eq!(imbalance[0]["slowest_rank"], 2);
    assert_eq!(number(&query(&["SELECT COUNT(*) AS n FROM run WHERE main"])[0]["n"]), 3);
    for name in ["stacks", "outliers", "percentiles", "growth"] {
        assert!(query(&["--named", name]).is_array(), "{name}");
    }
    for rest in [
        &["--named", "versions", "--base", "1", "--head", "2"][..],
        &["--named", "callers", "--function", "work"],
    ] {
        assert!(query(rest).is_array(), "{rest:?}");
    }
    let wrong = session.run(&words(&["query", "SELECT nothing FROM run", "--archive", "kept"]));
    assert!(!wrong.status.success() && wrong.stderr.contains("nothing"), "{wrong:#?}");
    assert!(Path::new(&session.path("kept/tables/current.json")).exists());
}
