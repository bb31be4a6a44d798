//! `treering archive` and `treering query`: what many writers keep, what a selection shows, and the tables.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use treering_testing::programs::installed;

use crate::session::{Outcome, Session, words};
use crate::skip;

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

    // A part without its end, as of a disk that lost it.
    of_kept(&session, "compact", &[]);
    let part = std::fs::read_dir(session.path("kept/tables/cost")).expect("a folder").next().expect("a file");
    let part = part.expect("it can be read").path();
    std::fs::write(&part, &std::fs::read(&part).expect("it is there")[..100]).expect("it can be written");
    for command in [&["sql"][..], &["verify"]] {
        let outcome = archive(&session, &[command, &["--archive", "kept"]].concat());
        let said = ["is damaged", "treering archive compact --anew"];
        assert!(
            !outcome.status.success() && said.iter().all(|said| outcome.stderr.contains(said)),
            "{outcome:#?}"
        );
    }
    of_kept(&session, "compact", &["--anew"]);
    of_kept(&session, "sql", &[]);
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

/// The engines that are installed: `treering-query` beside the tested program, in its own workspace or on PATH, and `duckdb`.
pub(crate) fn engines() -> Vec<&'static str> {
    let mut engines = Vec::new();
    for (engine, program) in [("datafusion", "treering-query"), ("duckdb", "duckdb")] {
        match find_program(program) {
            Some(_) => engines.push(engine),
            None => skip(&format!("{program} is not installed")),
        }
    }
    engines
}

/// A program on PATH, or one that was built or installed below the folders of the repository.
pub(crate) fn find_program(name: &str) -> Option<PathBuf> {
    let query = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../query/target");
    let folders =
        [query.join("release"), query.join("debug"), crate::session::scratch().join("../engines/bin")];
    let mut here = folders.iter().map(|folder| folder.join(name));
    installed(name).or_else(|| here.find(|program| program.is_file()))
}

/// `treering` with the engines on its PATH.
pub(crate) fn with_engines(session: &Session, arguments: &[&str]) -> Command {
    let mut command = session.command(arguments);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = ["treering-query", "duckdb"].into_iter().filter_map(find_program);
    let folders = found.filter_map(|program| Some(program.parent()?.to_owned()));
    let all =
        std::env::join_paths(std::env::split_paths(&path).chain(folders)).expect("paths without colons");
    command.env("PATH", all);
    command
}

/// The answer to a question in JSON.
pub(crate) fn asked(session: &Session, engine: &str, arguments: &[&str]) -> Vec<Value> {
    let all = [&["query", "--engine", engine, "--json", "--archive", "kept"], arguments].concat();
    let outcome = Outcome::of(with_engines(session, &all).output().expect("treering runs"));
    assert!(outcome.status.success(), "{outcome:#?}");
    let rows: Value =
        serde_json::from_str(&outcome.stdout).unwrap_or_else(|error| panic!("{error}: {outcome:#?}"));
    rows.as_array().expect("rows").iter().map(without_strings_of_digits).collect()
}

/// A row with its numbers as numbers: DuckDB prints large ones in quotes. Numbers with a point have four digits here.
pub(crate) fn without_strings_of_digits(row: &Value) -> Value {
    let number = |value: &Value| match value {
        Value::String(text) if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) => {
            text.clone()
        }
        Value::Number(number) if number.is_f64() => format!("{:.4}", number.as_f64().unwrap_or_default()),
        other => other.to_string(),
    };
    row.as_object()
        .expect("an object")
        .iter()
        .map(|(name, value)| (name.clone(), Value::from(number(value))))
        .collect()
}

/// Sums of SQL equal those of the report.
#[test]
fn engines_answer_what_the_report_says() {
    let session = Session::new();
    three_hosts(&session);
    of_kept(&session, "compact", &[]);
    let shown = costs(&of_kept(&session, "flat", &["--", "--json", "--min", "0"]).stdout);
    for engine in engines() {
        let query = |arguments: &[&str]| asked(&session, engine, arguments);
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        let number = |value: &Value| text(value).parse::<u64>().expect("a number");
        let flat = query(&["--named", "flat"]);
        let mut sums: Vec<(String, u64, u64)> = flat
            .iter()
            .map(|row| {
                (
                    serde_json::from_str(&text(&row["name"])).expect("a name"),
                    number(&row["self_cost"]),
                    number(&row["total_cost"]),
                )
            })
            .filter(|(name, ..)| name != "[root]")
            .collect();
        sums.sort();
        assert_eq!(sums, shown, "{engine}");
        assert_eq!(query(&["--named", "runs", "--function", "work"])[0]["host"], "\"it's c\"");
        assert_eq!(query(&["--named", "imbalance"])[0]["slowest_rank"], "2");
        assert_eq!(query(&["SELECT COUNT(*) AS n FROM run WHERE main"])[0]["n"], "3");
        // DuckDB missed these rows by a Bloom filter of keys.
        let callers = query(&["--named", "callers", "--function", "work"]);
        assert_eq!((&callers[0]["caller"], number(&callers[0]["self_cost"])), (&Value::from("\"main\""), 33));
    }
}

/// One text, equal rows.
#[test]
fn engines_give_equal_rows() {
    let engines = engines();
    let [one, other] = engines[..] else { return };
    let session = Session::new();
    several_days(&session);
    for question in QUESTIONS {
        let rows = asked(&session, one, question);
        assert_eq!(rows, asked(&session, other, question), "{question:?}");
        // Of this archive every question has an answer.
        assert!(!rows.is_empty(), "{question:?}");
    }
    for sql in [
        "SELECT SUM(self) AS all_of_it, AVG(self) AS mean, MEDIAN(self) AS middle, MAX(self) / 8 AS part FROM cost",
        "SELECT run_id, fn_id, self, self / 7 AS part, rank, main, NULL AS nothing FROM cost JOIN run USING (run_id) \
         ORDER BY run_id, self, fn_id",
        // Above 2^63, where whole numbers of 64 bits wrap around.
        "SELECT CAST(SUM(self * 100000000000000) AS VARCHAR) AS large FROM cost",
    ] {
        assert_eq!(asked(&session, one, &[sql]), asked(&session, other, &[sql]), "{sql}");
    }
}

/// Spark takes its own views and the same texts.
#[test]
fn spark_gives_equal_rows() {
    let session = Session::new();
    if let Some(killed) = asks_spark(&session, "local") {
        assert_eq!(killed, 0);
    }
}

/// The executors are processes of their own, and end by SIGKILL while questions are answered.
#[test]
#[ignore = "takes minutes; cargo xtask fleet runs it"]
fn spark_gives_equal_rows_although_executors_are_killed() {
    let session = Session::new();
    if let Some(killed) = asks_spark(&session, "cluster") {
        assert!(killed > 0);
    }
}

/// Asks Spark every question, and compares the rows with those of another engine. It tells how many executors were
/// killed meanwhile; nothing where there is no Spark.
fn asks_spark(session: &Session, kind: &str) -> Option<u64> {
    let python = find_program("pyspark").map(|program| program.with_file_name("python3"));
    let (Some(python), Some(_)) = (python, installed("java")) else {
        skip("pyspark or java is not installed");
        return None;
    };
    let engine = engines().first().copied()?;
    several_days(session);
    for (at, question) in QUESTIONS.into_iter().enumerate() {
        let text = of_kept(session, "sql", &[&["--engine", "spark"], question].concat()).stdout;
        std::fs::write(session.path(&format!("{at}.sql")), text).expect("the folder can be written");
    }
    std::fs::write(session.path("ask.py"), ASK_SPARK).expect("the folder can be written");
    let mut spark = Command::new(python);
    spark.args(["ask.py", kind]).args((0..QUESTIONS.len()).map(|at| format!("{at}.sql")));
    spark.env_remove("SPARK_HOME").env("SPARK_LOCAL_IP", "127.0.0.1");
    spark.current_dir(session.path(".")).stdin(Stdio::null());
    let outcome = Outcome::of(spark.output().expect("python runs"));
    assert!(outcome.status.success(), "{outcome:#?}");
    let mut answers: Vec<Value> =
        outcome.stdout.lines().map(|line| serde_json::from_str(line).expect("it is JSON")).collect();
    let killed = answers.pop().and_then(|killed| killed.as_u64());
    assert_eq!(answers.len(), QUESTIONS.len());
    for (question, answer) in QUESTIONS.into_iter().zip(answers) {
        let rows: Vec<Value> =
            answer.as_array().expect("rows").iter().map(without_strings_of_digits).collect();
        assert_eq!(rows, asked(session, engine, question), "{question:?}");
    }
    killed
}

/// Asks the texts in some files, in this process or of two executors, of which it kills one while a text is asked.
const ASK_SPARK: &str = r#"
import json, os, random, signal, sys, threading, time
from pyspark.sql import SparkSession

cluster = sys.argv[1] == "cluster"
builder = SparkSession.builder.master("local-cluster[2,1,512]" if cluster else "local[2]")
settings = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1", "spark.sql.shuffle.partitions": "2"}
if cluster:
    settings |= {"spark.executor.memory": "512m", "spark.task.maxFailures": "100",
                 "spark.stage.maxConsecutiveAttempts": "100", "spark.deploy.maxExecutorRetries": "-1"}
for key, value in settings.items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()
jobs = spark.sparkContext.statusTracker()

def executors():
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{process}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
            if b"org.apache.spark.executor.CoarseGrainedExecutorBackend" in words and spark.sparkContext.applicationId.encode() in words:
                yield int(process)
        except OSError:
            pass

killed = 0
def kill(answered):
    global killed
    left = 1
    while left and not answered.wait(random.uniform(0.1, 1)):
        alive = list(executors())
        if jobs.getActiveJobsIds() and len(alive) > 1:
            os.kill(random.choice(alive), signal.SIGKILL)
            killed += 1
            left -= 1

for name in sys.argv[2:]:
    statements = [text for text in open(name).read().split(";\n") if text.strip()]
    answered = threading.Event()
    if cluster:
        threading.Thread(target=kill, args=[answered]).start()
    for text in statements:
        answer = spark.sql(text)
    rows = answer.collect()
    answered.set()
    print(json.dumps([row.asDict() for row in rows], default=str), flush=True)
print(killed)
"#;

/// Each question, with what it needs.
pub(crate) const QUESTIONS: [&[&str]; 12] = [
    &["--named", "flat"],
    &["--named", "stacks"],
    &["--named", "versions", "--base", "1", "--head", "2"],
    &["--named", "outliers"],
    &["--named", "hosts"],
    &["--named", "percentiles", "--project", "solve"],
    &["--named", "growth"],
    &["--named", "changes"],
    &["--named", "callers", "--function", "work"],
    &["--named", "new", "--since", "2026-11-03"],
    &["--named", "runs", "--function", "work", "--limit", "3"],
    &["--named", "imbalance", "--since", "2026-11-02"],
];

/// Nine days, of which each has a run on each of six hosts, one of which is slow in `late`; two versions.
pub(crate) fn several_days(session: &Session) {
    for day in 1..=9_u64 {
        for host in 0..6_u64 {
            let name = format!("{day}-{host}.txt");
            let late = if host == 4 { 50 } else { 3 };
            let stacks: [(&[&str], u64); 4] = [
                (&["main"], 2),
                (&["work", "main"], 60 + day + host),
                (&["late", "work", "main"], late),
                (&["fresh", "main"], if day > 3 { 20 } else { 0 }),
            ];
            let mut text = String::new();
            for (stack, samples) in stacks {
                let frames: String =
                    stack.iter().map(|function| format!("\t 1000 {function}+0x1 (/bin/solve)\n")).collect();
                text += &format!("solve 10/10 [000] 1.000000: 1000 cycles:u:\n{frames}\n")
                    .repeat(samples as usize);
            }
            std::fs::write(session.path(&name), text).expect("the folder can be written");
            let noon = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_793_448_000 + 86_400 * day);
            let file = std::fs::File::options().write(true).open(session.path(&name)).expect("it is there");
            file.set_modified(noon).expect("its time can be set");
            let (host, rank) = (format!("h{host}"), host.to_string());
            let version = if day > 4 { "2" } else { "1" };
            add(
                session,
                &["--project", "solve", "--host", &host, "--rank", &rank, "--version-name", version],
                &[&name],
            );
        }
    }
    of_kept(session, "compact", &[]);
}

/// The host with a planted fault is found, and no other one; so is the day on which a function came.
#[test]
fn planted_faults_are_found_on_their_host_and_day() {
    let session = Session::new();
    several_days(&session);
    let exact = Session::new();
    for host in 0..6 {
        folded(&exact, "x.folded", if host == 4 { 4000 } else { 100 + host });
        add(&exact, &["--project", "solve", "--host", &format!("h{host}")], &["x.folded"]);
    }
    of_kept(&exact, "compact", &[]);
    for engine in engines() {
        let hosts = |session: &Session| {
            let found = asked(session, engine, &["--named", "outliers"]);
            found.iter().map(|row| row["host"].to_string()).collect::<std::collections::BTreeSet<_>>()
        };
        let slow = std::collections::BTreeSet::from([Value::from("\"h4\"").to_string()]);
        assert_eq!(hosts(&session), slow, "{engine}");
        // Without samples, as of counted programs, the hosts' own spread is all that there is.
        assert_eq!(hosts(&exact), slow, "{engine}");
        let changes = asked(&session, engine, &["--named", "changes"]);
        let fresh = changes.iter().find(|row| row["name"] == "\"fresh\"").expect("it is found");
        assert_eq!(fresh["since_day"], "\"2026-11-04\"", "{engine}");
        assert!(changes.iter().all(|row| row["name"] != "\"main\""), "{changes:#?}");
    }
}

#[test]
fn engines_name_mistakes_with_their_place() {
    let session = Session::new();
    three_hosts(&session);
    of_kept(&session, "compact", &[]);
    for engine in engines() {
        for (sql, said, place) in [
            ("SELECT\n nothing FROM run", "nothing", ["LINE 2:", "Line: 2, Column: 2"]),
            ("SELECT host\nFROM run\nWHERE )", ")", ["LINE 3:", "Line: 3, Column: 7"]),
        ] {
            let all = ["query", "--engine", engine, "--archive", "kept", sql];
            let outcome = Outcome::of(with_engines(&session, &all).output().expect("treering runs"));
            let has_place = place.iter().any(|place| outcome.stderr.contains(place));
            assert!(
                outcome.status.code() == Some(1) && outcome.stderr.contains(said) && has_place,
                "{outcome:#?}"
            );
        }
        for form in ["--csv", "--markdown", "--explain"] {
            let all = [
                "query",
                "--engine",
                engine,
                "--archive",
                "kept",
                form,
                "SELECT host FROM run ORDER BY host",
            ];
            let outcome = Outcome::of(with_engines(&session, &all).output().expect("treering runs"));
            assert!(outcome.status.success() && outcome.stdout.contains("host"), "{outcome:#?}");
        }
    }
    let mut nowhere = session.command(&["query", "--archive", "kept", "--named", "flat"]);
    let outcome = Outcome::of(nowhere.env("PATH", session.path("empty")).output().expect("treering runs"));
    if find_beside().is_none() {
        let said = ["neither treering-query nor duckdb is installed", "cargo install", "duckdb.org"];
        assert!(
            !outcome.status.success() && said.iter().all(|said| outcome.stderr.contains(said)),
            "{outcome:#?}"
        );
    }
}

/// `treering-query` beside the tested program.
fn find_beside() -> Option<PathBuf> {
    Some(crate::session::treering().with_file_name("treering-query")).filter(|program| program.is_file())
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
        (&["count", "-o", ".", "--", "true"], "is a directory"),
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

/// A profile of code without a name, at one address of a file of some build.
fn nameless(session: &Session, name: &str, build: &[u8]) {
    use treering_profile::{
        Frame, Function, FunctionKind, MetricId, Module, ModuleKind, StatedAddress, ThreadId,
    };
    let mut profile = treering_testing::stacks("main 6");
    let path = profile.strings.intern("/opt/solve");
    let module = profile.modules.intern(Module { path, build_id: build.into(), kind: ModuleKind::Elf });
    let function = profile.strings.intern("solve+0x1170");
    let known = Function { name: function, ..Function::at_address(Some(module), StatedAddress(0x1170)) };
    let function = profile.functions.intern(Function { kind: FunctionKind::Unresolved, ..known });
    profile.add_stack(ThreadId::new(0), &[Frame::new(function)], None, &[(MetricId::new(0), 50)]);
    let mut bytes = Vec::new();
    treering_formats::trg::write(&profile, &mut bytes).expect("memory is written to");
    std::fs::write(session.path(name), bytes).expect("the folder can be written");
}

/// Equal addresses of two builds are other code. Of files without a build id that is not known, which is said.
#[test]
fn code_without_a_name_is_not_joined_across_builds() {
    let session = Session::new();
    nameless(&session, "one.trg", &[0x25, 0x7c, 0x84, 0x53, 9]);
    nameless(&session, "other.trg", &[0xcd, 0x91, 0x8c, 0x7c, 9]);
    add(&session, &["--project", "solve"], &["one.trg", "other.trg"]);
    of_kept(&session, "compact", &[]);
    let (one, other) = ("solve+0x1170 (build 257c8453)", "solve+0x1170 (build cd918c7c)");
    for view in ["flat", "callgraph"] {
        let shown = of_kept(&session, view, &["--", "--min", "0"]).stdout;
        assert!(
            shown.contains(one) && shown.contains(other) && !shown.contains("has no build id"),
            "{shown}"
        );
    }
    for engine in engines() {
        let rows = asked(&session, engine, &["--named", "flat"]);
        let cost = |name: &str| {
            let row = rows.iter().find(|row| row["name"] == format!("{name:?}")).expect("it is there");
            row["self_cost"].clone()
        };
        assert_eq!((cost(one), cost(other)), (Value::from("50"), Value::from("50")), "{engine}");
    }
    let unknown = Session::new();
    nameless(&unknown, "one.trg", &[]);
    std::fs::copy(unknown.path("one.trg"), unknown.path("other.trg")).expect("the folder can be written");
    add(&unknown, &["--host", "a"], &["one.trg"]);
    add(&unknown, &["--host", "b"], &["other.trg"]);
    of_kept(&unknown, "compact", &[]);
    let shown = of_kept(&unknown, "flat", &[]).stdout;
    assert!(shown.contains("/opt/solve has no build id"), "{shown}");
    for engine in engines() {
        let rows = asked(&unknown, engine, &["--named", "flat"]);
        let row = rows.iter().find(|row| row["name"] == "\"solve+0x1170 (build unknown)\"");
        assert_eq!(row.expect("it is there")["self_cost"], "100", "{engine}");
    }
}

/// A host a year ahead of the others, and one whose clock begins at 0.
#[test]
fn days_that_no_right_clock_shows_are_named() {
    let session = Session::new();
    for (at, seconds) in [0_u64, 1_800_000_000, 7_000_000_000].into_iter().enumerate() {
        let name = format!("{at}.folded");
        folded(&session, &name, at as u64);
        let file = std::fs::File::options().write(true).open(session.path(&name)).expect("it is there");
        let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
        file.set_modified(time).expect("its time can be set");
        add(&session, &["--project", "solve"], &[&name]);
    }
    let said = of_kept(&session, "compact", &[]).stderr;
    for part in
        ["to come, up to 2191-10-27", "1 day before 2000-01-01", "list --where \"day < '2000-01-01'\""]
    {
        assert!(said.contains(part), "{said}");
    }
    let listed = of_kept(&session, "list", &["--where", "day < '2000-01-01'"]).stdout;
    assert!(listed.contains("1970-01-01 00:00"), "{listed}");
    assert!(of_kept(&session, "sql", &[]).stderr.contains("up to 2191-10-27"));
    let gc = of_kept(&session, "gc", &["--before", "2020-01-01", "--dry-run"]).stderr;
    assert!(gc.contains("would remove 1 run") && gc.contains("before 2000-01-01"), "{gc}");
}

/// The hint for tables whose list is damaged is one that helps.
#[test]
fn a_damaged_list_of_tables_is_written_anew() {
    let session = Session::new();
    three_hosts(&session);
    of_kept(&session, "compact", &[]);
    std::fs::write(session.path("kept/tables/current.json"), "{\"treering_tables\": 1, \"parts\": [")
        .expect("it can be written");
    for command in ["compact", "sql", "verify"] {
        let outcome = archive(&session, &[command, "--archive", "kept"]);
        let said = ["current.json is damaged", "treering archive compact --anew"];
        assert!(
            outcome.status.code() == Some(1) && said.iter().all(|said| outcome.stderr.contains(said)),
            "{outcome:#?}"
        );
    }
    let anew = of_kept(&session, "compact", &["--anew"]);
    assert!(anew.stderr.contains("wrote 3 runs; the tables have 3"), "{anew:#?}");
    of_kept(&session, "verify", &[]);
}

/// A run whose description is damaged is in no list, so the tables are not whole.
#[test]
fn a_compaction_without_a_damaged_run_fails() {
    let session = Session::new();
    three_hosts(&session);
    let run = listed(&session, "rank = 1")[0]["run"].as_str().expect("a name").to_owned();
    let path = session.path(&format!("kept/runs/{}/{run}.json", &run[..2]));
    std::fs::remove_file(&path).expect("it is there");
    std::fs::write(&path, "{\"treering_run\": 1").expect("the folder can be written");
    std::fs::remove_file(session.path("kept/index.sqlite")).expect("it is there");
    let outcome = archive(&session, &["compact", "--archive", "kept"]);
    let said = [&run, "wrote 2 runs; the tables have 2", "1 run left out"];
    assert!(
        outcome.status.code() == Some(1) && said.iter().all(|said| outcome.stderr.contains(said)),
        "{outcome:#?}"
    );
}

/// With a limit on files' sizes, as on a disk that is full: nothing is half there, and later everything works.
#[test]
fn an_archive_without_room_stays_whole() {
    let session = Session::new();
    three_hosts(&session);
    let limited = |arguments: &str| {
        let line = format!("ulimit -f 0; exec {} archive {arguments}", crate::session::treering().display());
        let mut shell = Command::new("sh");
        shell.args(["-c", &line]).current_dir(session.path(".")).stdin(Stdio::null());
        Outcome::of(shell.output().expect("sh runs"))
    };
    folded(&session, "new.folded", 70);
    folded(&session, "newer.folded", 71);
    for arguments in ["add kept new.folded newer.folded", "compact --archive kept"] {
        let outcome = limited(arguments);
        let said = ["cannot write kept/", "nothing that was kept is lost; make room there"];
        assert!(
            outcome.status.code() == Some(1) && said.iter().all(|said| outcome.stderr.contains(said)),
            "{outcome:#?}"
        );
    }
    assert_eq!(listed(&session, "true").len(), 3);
    let whole = of_kept(&session, "verify", &[]);
    assert!(whole.stderr.contains("3 runs, 3 profiles and the tables of 0 runs"), "{whole:#?}");
    add(&session, &[], &["new.folded", "newer.folded"]);
    let whole = of_kept(&session, "compact", &[]);
    assert!(whole.stderr.contains("wrote 5 runs; the tables have 5"), "{whole:#?}");
}

/// Texts from programs stay texts in whatever form.
#[test]
fn names_with_quotes_and_newlines_stay_names() {
    let session = Session::new();
    let (project, host) = ("pro\"j\n.shell echo\n it's | `x`", "h\"\n',|\t\u{1b}[31m");
    std::fs::write(session.path("odd.folded"), "main;we\"ird' | `n` $(x) \\n, 10\nmain;esc\u{1b}[31mred 4\n")
        .expect("the folder can be written");
    add(&session, &["--project", project, "--host", host], &["odd.folded"]);
    of_kept(&session, "compact", &[]);
    let condition =
        format!("project = '{}' AND host = '{}'", project.replace('\'', "''"), host.replace('\'', "''"));
    assert_eq!(listed(&session, &condition).len(), 1);
    let shown = of_kept(&session, "list", &[]).stdout;
    assert!(!shown.contains('\u{1b}') && shown.lines().count() == 2, "{shown}");
    let function = "we\"ird' | `n` $(x) \\n,";
    for engine in engines() {
        let rows =
            asked(&session, engine, &["--named", "runs", "--project", project, "--function", function]);
        assert_eq!(rows[0]["project"], Value::from(project).to_string(), "{engine}");
        assert_eq!(rows[0]["host"], Value::from(host).to_string(), "{engine}");
        let column = "SELECT project AS \"a \"\"b\"\"\nc\" FROM run WHERE main";
        assert_eq!(asked(&session, engine, &[column])[0]["a \"b\"\nc"], Value::from(project).to_string());
        let form = |form: &str| {
            let all = [
                "query",
                "--engine",
                engine,
                "--archive",
                "kept",
                form,
                "--named",
                "runs",
                "--function",
                function,
            ];
            let outcome = Outcome::of(with_engines(&session, &all).output().expect("treering runs"));
            assert!(outcome.status.success(), "{outcome:#?}");
            outcome.stdout
        };
        assert!(form("--csv").contains("\"pro\"\"j\n.shell echo\n it's | `x`\""), "{engine}");
        assert!(!form("--markdown").contains('\u{1b}'), "{engine}");
    }
}

/// Whenever the files go, the answer is right or an error. An engine takes files that are gone for empty ones.
#[test]
fn a_question_whose_tables_are_removed_has_no_other_rows() {
    let session = Session::new();
    three_hosts(&session);
    for engine in engines() {
        of_kept(&session, "compact", &["--anew"]);
        let costs = asked(&session, engine, &["SELECT COUNT(*) AS n FROM cost"])[0]["n"].clone();
        let sql = "SELECT COUNT(*) AS n FROM cost a, cost b, cost c, cost d, cost e, cost f, cost g \
                   WHERE a.self + b.self + c.self + d.self + e.self + f.self + g.self = 0; \
                   SELECT COUNT(*) AS costs FROM cost";
        let mut command =
            with_engines(&session, &["query", "--engine", engine, "--archive", "kept", "--csv", sql]);
        let running = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        std::thread::sleep(std::time::Duration::from_millis(300));
        std::fs::remove_dir_all(session.path("kept/tables/cost")).expect("it is there");
        let outcome = Outcome::of(running.wait_with_output().expect("it ends"));
        let is_right = outcome.stdout.ends_with(&format!("costs\n{}\n", costs.as_str().expect("a number")));
        let is_error = outcome.status.code() == Some(1) && !outcome.stderr.is_empty();
        assert!(is_error || outcome.status.success() && is_right, "{engine}: {outcome:#?}");
        assert!(is_right || !outcome.stdout.contains("costs"), "{engine}: {outcome:#?}");
    }
}
