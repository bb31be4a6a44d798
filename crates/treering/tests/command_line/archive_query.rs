//! `treering query`, `treering archive sql`, and the engines that answer.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use serde_json::Value;
use treering_testing::programs::installed;

use crate::archive::{add, costs, folded, listed, of_kept, three_hosts};
use crate::session::{Outcome, Session};
use crate::skip;

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

/// Runs `treering query` of an engine.
fn query(session: &Session, engine: &str, arguments: &[&str]) -> Outcome {
    let all = [&["query", "--engine", engine, "--archive", "kept"], arguments].concat();
    Outcome::of(with_engines(session, &all).output().expect("treering runs"))
}

/// The answer to a question in JSON.
pub(crate) fn asked(session: &Session, engine: &str, arguments: &[&str]) -> Vec<Value> {
    let outcome = query(session, engine, &[&["--json"], arguments].concat());
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
        let answer = |arguments: &[&str]| asked(&session, engine, arguments);
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        let number = |value: &Value| text(value).parse::<u64>().expect("a number");
        let flat = answer(&["--named", "flat"]);
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
        assert_eq!(answer(&["--named", "runs", "--function", "work"])[0]["host"], "\"it's c\"");
        assert_eq!(answer(&["--named", "imbalance"])[0]["slowest_rank"], "2");
        assert_eq!(answer(&["SELECT COUNT(*) AS n FROM run WHERE main"])[0]["n"], "3");
        // DuckDB missed these rows by a Bloom filter of keys.
        let callers = answer(&["--named", "callers", "--function", "work"]);
        assert_eq!((&callers[0]["caller"], number(&callers[0]["self_cost"])), (&Value::from("\"main\""), 33));
    }
}

/// Of three runs of each version, Student's t is 2.776, and of one run nothing is known.
#[test]
fn changes_between_versions_are_as_uncertain_as_their_runs_are_few() {
    let session = Session::new();
    for (version, shares) in [("1", &[10, 20, 30][..]), ("2", &[20, 30, 40]), ("3", &[50])] {
        for work in shares {
            let text = format!("main;work {work}\nmain;idle {}\n", 100 - work);
            std::fs::write(session.path("x.folded"), text).expect("the folder can be written");
            add(&session, &["--version-name", version], &["x.folded"]);
        }
    }
    of_kept(&session, "compact", &[]);
    for engine in engines() {
        let of = |head| {
            let rows = asked(&session, engine, &["--named", "versions", "--base", "1", "--head", head]);
            let row = rows.iter().find(|row| row["name"] == "\"work\"").expect("it ran in both");
            (row["change"].clone(), row["plus_minus"].as_str().expect("a text").parse::<f64>().ok())
        };
        let (change, plus_minus) = of("2");
        let right = 2.776 * (2.0 * 0.1_f64.powi(2) / 3.0).sqrt();
        assert_eq!(change, "0.1000", "{engine}");
        assert!(
            plus_minus.is_some_and(|told| (told / right - 1.0).abs() < 0.005),
            "{engine}: {plus_minus:?}"
        );
        assert_eq!(of("3"), (Value::from("0.3000"), None), "{engine}");
    }
}

/// Where most profiles of other projects have another metric.
#[test]
fn questions_about_a_project_are_asked_in_its_own_metric() {
    let session = Session::new();
    for work in [5, 6] {
        folded(&session, "x.folded", work);
        add(&session, &["--project", "sampled"], &["x.folded"]);
    }
    let counted = "# callgrind format\nevents: Ir\n\nfn=main\n1 70\n\ntotals: 70\n";
    std::fs::write(session.path("x.callgrind"), counted).expect("the folder can be written");
    add(&session, &["--project", "counted"], &["x.callgrind"]);
    of_kept(&session, "compact", &[]);
    for engine in engines() {
        let rows = asked(&session, engine, &["--named", "flat", "--project", "counted"]);
        assert!(rows.iter().any(|row| row["self_cost"] == "70"), "{engine}: {rows:#?}");
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

#[test]
fn parameters_that_change_no_answer_are_refused() {
    let session = Session::new();
    for (words, why) in [
        (&["--named", "flat", "--since", "2026-11-9"][..], "write a day as 2026-11-27"),
        (&["--named", "flat", "--function", "work"], "--named flat does not take --function"),
        (&["--named", "new"], "--named new needs --since"),
        (&["SELECT 1", "--project", "solve"], "--project is for --named"),
    ] {
        let outcome = session.run(&[&["query"], words].concat());
        assert_eq!(outcome.status.code(), Some(2), "{outcome:#?}");
        assert!(outcome.stderr.contains(why), "{outcome:#?}");
    }
}

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
            let outcome = query(&session, engine, &[sql]);
            let has_place = place.iter().any(|place| outcome.stderr.contains(place));
            assert!(
                outcome.status.code() == Some(1) && outcome.stderr.contains(said) && has_place,
                "{outcome:#?}"
            );
        }
        for form in ["--csv", "--markdown", "--explain"] {
            let outcome = query(&session, engine, &[form, "SELECT host FROM run ORDER BY host"]);
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
            let outcome = query(&session, engine, &[form, "--named", "runs", "--function", function]);
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

/// As by a supervisor, which knows the process that it has started. The engine went on alone.
#[test]
fn a_signal_to_a_query_ends_its_engine() {
    let session = Session::new();
    three_hosts(&session);
    of_kept(&session, "compact", &[]);
    // A trillion rows.
    let digits = (0..10).map(|digit| format!("SELECT {digit} AS i")).collect::<Vec<_>>().join(" UNION ALL ");
    let tables = ('a'..='l').map(|name| format!("d {name}")).collect::<Vec<_>>().join(", ");
    let long = format!("WITH d AS ({digits}) SELECT SUM(a.i * l.i % 7) FROM {tables}");
    for engine in engines() {
        for signal in [Signal::SIGINT, Signal::SIGTERM] {
            let mut command =
                with_engines(&session, &["query", "--engine", engine, "--archive", "kept", &long]);
            let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it runs");
            let pid = Pid::from_raw(child.id().cast_signed());
            let children = format!("/proc/{pid}/task/{pid}/children");
            let started = || std::fs::read_to_string(&children).expect("it runs").trim().parse().ok();
            let group = until(started).expect("the engine is started");
            until(|| time_of_group(group).filter(|&time| time >= 50)).expect("the engine works");
            kill(pid, signal).expect("it runs");
            let status = until(|| child.try_wait().expect("it is our child"));
            let ended = until(|| time_of_group(group).is_none().then_some(()));
            // It must not outlive the test.
            let _ = killpg(Pid::from_raw(group), Signal::SIGKILL);
            assert!(status.is_some_and(|status| !status.success()), "{engine}, {signal}: {status:?}");
            assert!(ended.is_some(), "{engine} goes on after {signal}");
        }
    }
}

/// The processor time of the processes of a group, in hundredths of a second; nothing if all have ended. The program
/// `duckdb` may be a script that starts another one.
fn time_of_group(group: i32) -> Option<u64> {
    let processes = std::fs::read_dir("/proc").expect("it is mounted").flatten();
    let time = |process: std::fs::DirEntry| {
        let stat = std::fs::read_to_string(process.path().join("stat")).ok()?;
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let runs = fields[2] == group.to_string() && fields[0] != "Z";
        runs.then(|| fields[11].parse::<u64>().ok()).flatten()
    };
    processes.filter_map(time).reduce(|all, one| all + one)
}

/// The first answer, asked for at most a minute.
fn until<T>(mut answer: impl FnMut() -> Option<T>) -> Option<T> {
    let begun = Instant::now();
    loop {
        match answer() {
            None if begun.elapsed() < Duration::from_secs(60) => {
                std::thread::sleep(Duration::from_millis(20));
            }
            answer => return answer,
        }
    }
}
