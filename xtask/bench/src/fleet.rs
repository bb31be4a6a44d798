//! `cargo xtask bench fleet`: ten thousand profiles in one archive, from writers at once to the answers of two engines.
//!
//! The engines run in turns. A command with one question, and one with the same question eleven times, tell how long an
//! answer takes in a program that has begun: the difference over ten. Times are by the wall clock,
//! and the least of all rounds counts, because others share the machine.

mod profiles;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use treering_fleet::sql::{QUESTIONS, Question, Values};
use treering_fleet::{TABLES, Tables};
use treering_formats::read_any;
use treering_measure::{Launch, Sample};

use crate::frame::{Bench, Report, interleaved, make_folder};
use crate::measure::{succeed, text_of};
use crate::table::Table;
use crate::workspace;
use profiles::{Drawn, draw, is_bad, record};

/// Processes that add profiles at once. Two of them add the same files.
const WRITERS: usize = 64;

/// Questions with the seconds that a warm answer may take.
const TIMED: [(&str, Option<f64>); 6] = [
    ("flat", Some(0.1)),
    ("stacks", Some(0.5)),
    ("outliers", Some(0.5)),
    ("versions", None),
    ("percentiles", None),
    ("changes", None),
];

/// A measured number, and the most that it should be.
struct Number {
    name: String,
    value: f64,
    unit: &'static str,
    target: Option<f64>,
}

fn number(name: impl Into<String>, value: f64, unit: &'static str, target: Option<f64>) -> Number {
    Number { name: name.into(), value, unit, target }
}

pub(super) fn run(bench: &Bench) -> Result<Report, String> {
    build_query()?;
    let fleet = Fleet::new(bench)?;
    let recorded = record(bench, &fleet.folder)?;
    let programs = recorded.len();
    let files = draw(&recorded, if bench.quick { 500 } else { 10_000 }, &fleet.folder.join("files"))?;
    drop(recorded);
    let mut numbers = fleet.add(&files)?;
    numbers.extend(fleet.compact()?);
    let sizes = fleet.sizes(&files)?;
    numbers.push(sizes.per_row());
    fleet.compare_reports(&files)?;
    fleet.compare_rows()?;
    let (hosts, others) = fleet.outliers()?;
    let asked = fleet.asked(bench.rounds(5, 1))?;
    let mut table = Table::new(
        &format!("{} profiles of {programs} programs, over {} days", files.len(), profiles::DAYS),
        &["", "measured", "at most"],
    );
    numbers.iter().for_each(|number| table.row(number.row()));
    table.note(format!("{WRITERS} writers added each file twice. {sizes}"));
    table.note(
        "The reports of all runs merged were equal to those of `treering merge` of the same files, function by function, \
         and the sums of the tables equal to theirs. The rows of all questions were equal on both engines.",
    );
    table.note(format!("`outliers` named {hosts} hosts with the planted fault, and {others} other ones."));
    Ok(Report { tables: vec![table, questions(&asked)], ..Report::default() })
}

/// Builds `treering-query` with optimisation.
fn build_query() -> Result<(), String> {
    let folder = workspace::root().join("query");
    let mut cargo = workspace::cargo();
    cargo.current_dir(&folder).args(["build", "--release", "--quiet", "--locked"]);
    cargo.env("CARGO_TARGET_DIR", folder.join("target"));
    match cargo.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("cargo build ended with {status}")),
        Err(error) => Err(format!("cannot run cargo: {error}")),
    }
}

/// An archive, and the programs that work on it.
struct Fleet {
    folder: PathBuf,
    archive: PathBuf,
    treering: PathBuf,
    /// The environment, with the engines on PATH.
    environment: Vec<(OsString, OsString)>,
}

impl Fleet {
    fn new(bench: &Bench) -> Result<Self, String> {
        let folder = bench.directory.join("profiles");
        if folder.exists() {
            std::fs::remove_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        }
        make_folder(&folder.join("files"))?;
        let engines = workspace::target_directory().join("engines/bin");
        let query = workspace::root().join("query/target/release");
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = [query, engines.clone()].into_iter().chain(std::env::split_paths(&path));
        let path = std::env::join_paths(folders).map_err(|error| format!("PATH: {error}"))?;
        if !engines.join("duckdb").is_file()
            && std::env::split_paths(&path).all(|on| !on.join("duckdb").is_file())
        {
            return Err("duckdb is not installed; cargo xtask fleet installs it".to_owned());
        }
        let mut environment: Vec<_> = std::env::vars_os().filter(|(name, _)| name != "PATH").collect();
        environment.push(("PATH".into(), path));
        let archive = folder.join("archive");
        Ok(Self { folder, archive, treering: bench.treering.clone(), environment })
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.treering);
        command.args(arguments).env_clear().envs(self.environment.iter().cloned());
        command
    }

    /// A command on the archive, measured.
    fn measured(&self, arguments: &[&str]) -> Result<Sample, String> {
        let words = [self.treering.as_os_str().to_owned()].into_iter();
        let words = words.chain(arguments.iter().map(OsString::from)).collect();
        let launch = Launch { environment: Some(self.environment.clone()), ..Launch::new(words) };
        let sample = treering_measure::run(&launch).map_err(|error| error.to_string())?;
        match sample.ended.is_success() {
            true => Ok(sample),
            false => {
                Err(format!("treering {}: {}", arguments.join(" "), sample.last_error.unwrap_or_default()))
            }
        }
    }

    fn place(&self) -> String {
        self.archive.display().to_string()
    }

    /// Has all writers add the files at once.
    fn add(&self, files: &[Drawn]) -> Result<Vec<Number>, String> {
        let begun = Instant::now();
        let mut writers: Vec<Child> = Vec::new();
        for writer in 0..WRITERS {
            let half = WRITERS / 2;
            let of_group =
                files.iter().enumerate().filter(|(at, _)| at * half / files.len() == writer % half);
            let of_group: Vec<&Drawn> = of_group.map(|(_, file)| file).collect();
            let Some(first) = of_group.first() else { continue };
            let mut command =
                self.command(&["archive", "add", "--version-name", first.version, &self.place()]);
            command.args(of_group.iter().map(|file| &file.path));
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            writers.push(command.spawn().map_err(|error| format!("cannot start a writer: {error}"))?);
        }
        for mut writer in writers {
            let ended = writer.wait().map_err(|error| format!("cannot wait for a writer: {error}"))?;
            if !ended.success() {
                return Err(format!("a writer ended with {ended}"));
            }
        }
        let seconds = begun.elapsed().as_secs_f64();
        let listed: Value = self.json(&["archive", "list", "--json", "--archive", &self.place()])?;
        let runs = listed["runs"].as_array().map_or(0, Vec::len);
        let (lost, twice) = (files.len().saturating_sub(runs), runs.saturating_sub(files.len()));
        succeed(&mut self.command(&["archive", "verify", "--archive", &self.place()]))?;
        Ok(vec![
            number("adding all files twice, by 64 writers", seconds, "s", None),
            number("profiles lost", lost as f64, "", Some(0.0)),
            number("profiles kept twice", twice as f64, "", Some(0.0)),
        ])
    }

    fn compact(&self) -> Result<Vec<Number>, String> {
        let sample = self.measured(&["archive", "compact", "--archive", &self.place()])?;
        Ok(vec![
            number("compact", sample.wall.as_secs_f64(), "s", Some(60.0)),
            number("compact: most memory", sample.peak_bytes as f64 / 1e9, "GB", Some(1.0)),
        ])
    }

    fn sizes(&self, files: &[Drawn]) -> Result<Sizes, String> {
        let tables = Tables::open(&self.archive).map_err(|error| error.to_string())?;
        let length = |path: &Path| std::fs::metadata(path).map_or(0, |found| found.len());
        let bytes = TABLES.map(|table| (table, tables.files(table).iter().map(|path| length(path)).sum()));
        let sql = "SELECT COUNT(*) AS rows_of_costs FROM cost";
        let rows = self.rows("duckdb", sql)?;
        let rows =
            rows.first().and_then(|row| row["rows_of_costs"].parse().ok()).ok_or("no number of rows")?;
        let profiles = files.iter().map(|file| length(&file.path)).sum();
        Ok(Sizes { bytes: bytes.into(), rows, profiles })
    }

    /// Compares the reports of all runs with those of the same files merged, and the sums of the tables with both.
    fn compare_reports(&self, files: &[Drawn]) -> Result<(), String> {
        let merged = self.folder.join("merged.trg").display().to_string();
        let mut merge = self.command(&["merge", "--force", "-o", &merged]);
        succeed(merge.args(files.iter().map(|file| &file.path)))?;
        for view in ["flat", "callgraph"] {
            let (shown, place) = (format!("--{view}"), self.place());
            let of_files = self.json(&["report", &shown, "--json", "--min", "0", &merged])?;
            let of_runs = self.json(&["archive", view, "--archive", &place, "--", "--json", "--min", "0"])?;
            let [of_files, of_runs] = [of_files, of_runs].map(|of| unordered(&of["functions"]));
            if of_files.as_array().is_none_or(Vec::is_empty) || of_files != of_runs {
                return Err(format!("archive {view} differs from report --{view} of the same files merged"));
            }
        }
        self.compare_sums(Path::new(&merged))
    }

    /// Compares the self costs of functions in the tables with those in the merged profile, which are named alike.
    fn compare_sums(&self, merged: &Path) -> Result<(), String> {
        let bytes = std::fs::read(merged).map_err(|error| format!("{}: {error}", merged.display()))?;
        let (_, profile, _) = read_any(&bytes).map_err(|error| format!("{}: {error}", merged.display()))?;
        let (metric, _) = profile.cost_metrics().next().ok_or("the merged profile has no metric")?;
        let mut of_profile: BTreeMap<(String, String), i128> = BTreeMap::new();
        for node in profile.tree.nodes() {
            let (_, named) = treering_fleet::function(&profile, profile.tree.function(node));
            let cost = profile.tree.self_cost(metric, node);
            *of_profile.entry((named.name, named.module)).or_default() += i128::from(cost);
        }
        let mut of_tables: BTreeMap<(String, String), i128> = BTreeMap::new();
        for row in self.rows("datafusion", &question("flat", 1_000_000)?)? {
            let cost: i128 = row["self_cost"].parse().map_err(|_| format!("{row:?} has no cost"))?;
            *of_tables.entry((row["name"].clone(), row["module"].clone())).or_default() += cost;
        }
        of_profile.retain(|_, cost| *cost != 0);
        of_tables.retain(|_, cost| *cost != 0);
        match of_profile.iter().find(|(name, cost)| of_tables.get(*name) != Some(cost)) {
            None if of_profile.len() == of_tables.len() => Ok(()),
            None => Err("the tables have more functions than the merged profile".to_owned()),
            Some((name, cost)) => {
                let other = of_tables.get(name);
                Err(format!("{name:?} costs {cost} in the merged profile and {other:?} in the tables"))
            }
        }
    }

    /// Compares the rows of all questions on both engines.
    fn compare_rows(&self) -> Result<(), String> {
        for known in QUESTIONS {
            let question = question(known.name, 50)?;
            let [one, other] = ENGINES.map(|engine| self.rows(engine, &question));
            let (one, other) = (one?, other?);
            if one != other {
                let at = one.iter().zip(&other).position(|(one, other)| one != other);
                return Err(format!(
                    "{} differs between engines, at row {at:?} of {}",
                    known.name,
                    one.len()
                ));
            }
        }
        Ok(())
    }

    /// The hosts that `outliers` names: those with the planted fault, and others.
    fn outliers(&self) -> Result<(usize, usize), String> {
        let rows = self.rows("datafusion", &question("outliers", 100_000)?)?;
        let hosts: std::collections::BTreeSet<&String> = rows.iter().map(|row| &row["host"]).collect();
        let bad = hosts.iter().filter(|host| is_bad(host)).count();
        Ok((bad, hosts.len() - bad))
    }

    /// Asks each question on each engine, in turns.
    fn asked(&self, rounds: usize) -> Result<Vec<Asked>, String> {
        let mut ways = Vec::new();
        for (name, _) in TIMED {
            for engine in ENGINES {
                ways.extend([1, MANY].map(|times| (name, engine, times)));
            }
        }
        let results = interleaved(ways.len(), rounds, |way| {
            let (name, engine, times) = ways[way];
            let text = question(name, 20)?.repeat(times);
            self.measured(&["query", "--csv", "--engine", engine, "--archive", &self.place(), "--", &text])
        })?;
        let least =
            |of: &[Sample]| of.iter().map(|sample| sample.wall).min().unwrap_or(Duration::MAX).as_secs_f64();
        let peak = |of: &[Sample]| of.iter().map(|sample| sample.peak_bytes).max().unwrap_or(0) as f64 / 1e6;
        let mut asked = Vec::new();
        for (at, (name, target)) in TIMED.into_iter().enumerate() {
            let of_engine = |engine: usize| {
                let [once, many] = [0, 1].map(|times| &results[(at * ENGINES.len() + engine) * 2 + times]);
                let warm = (least(many) - least(once)) / (MANY - 1) as f64;
                Timed { command: least(once), warm, peak_mb: peak(once) }
            };
            asked.push(Asked { name, target, engines: [of_engine(0), of_engine(1)] });
        }
        Ok(asked)
    }

    fn json(&self, arguments: &[&str]) -> Result<Value, String> {
        let text = text_of(&mut self.command(arguments))?;
        serde_json::from_str(&text).map_err(|error| format!("treering {}: {error}", arguments.join(" ")))
    }

    /// The rows of an answer as texts. Numbers with a point have four digits.
    fn rows(&self, engine: &str, sql: &str) -> Result<Vec<BTreeMap<String, String>>, String> {
        let rows =
            self.json(&["query", "--json", "--engine", engine, "--archive", &self.place(), "--", sql])?;
        let cell = |value: &Value| match value {
            Value::String(text) => text.clone(),
            Value::Number(number) if number.is_f64() => format!("{:.4}", number.as_f64().unwrap_or_default()),
            other => other.to_string(),
        };
        let row = |row: &Value| {
            let fields = row.as_object().into_iter().flatten();
            fields.map(|(name, value)| (name.clone(), cell(value))).collect()
        };
        Ok(rows.as_array().into_iter().flatten().map(row).collect())
    }
}

/// The engine of Treering, and the one that it is compared with.
const ENGINES: [&str; 2] = ["datafusion", "duckdb"];

/// So often a question is asked by one command.
const MANY: usize = 11;

/// A question in SQL.
fn question(name: &str, limit: u32) -> Result<String, String> {
    let text = |value: &str| Some(value.to_owned());
    let values = Values {
        function: text("main"),
        base: text("1.0"),
        head: text("1.1"),
        since: (name == "new").then(|| "2026-10-02".to_owned()),
        limit,
        ..Values::default()
    };
    let question = Question::named(name).ok_or_else(|| format!("no question is called {name}"))?;
    Ok(question.sql(&values))
}

/// The same with all lists sorted: reports have rows of equal costs in any order.
fn unordered(of: &Value) -> Value {
    match of {
        Value::Array(rows) => {
            let mut rows: Vec<Value> = rows.iter().map(unordered).collect();
            rows.sort_by_cached_key(Value::to_string);
            Value::Array(rows)
        }
        Value::Object(fields) => fields.iter().map(|(name, of)| (name.clone(), unordered(of))).collect(),
        other => other.clone(),
    }
}

/// The sizes of files.
struct Sizes {
    /// Bytes of each table.
    bytes: Vec<(&'static str, u64)>,
    /// Rows of the costs of stacks.
    rows: u64,
    /// Bytes of the profiles.
    profiles: u64,
}

impl Sizes {
    fn per_row(&self) -> Number {
        let cost = self.bytes.iter().find(|(table, _)| *table == "cost").map_or(0, |(_, bytes)| *bytes);
        number("Parquet, for each row of `cost`", cost as f64 / self.rows.max(1) as f64, "B", Some(9.0))
    }
}

impl std::fmt::Display for Sizes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "The profiles take {:.1} MB; the tables", self.profiles as f64 / 1e6)?;
        for (table, bytes) in &self.bytes {
            write!(f, " {table} {:.1},", *bytes as f64 / 1e6)?;
        }
        write!(f, " with {} rows of costs.", self.rows)
    }
}

impl Number {
    fn row(&self) -> Vec<String> {
        let text = |value: f64| match value {
            value if self.unit.is_empty() => format!("{value:.0}"),
            value => format!("{value:.2} {}", self.unit),
        };
        vec![self.name.clone(), text(self.value), self.target.map_or_else(String::new, text)]
    }
}

/// The times of one engine, in seconds.
struct Timed {
    /// From the start of `treering query` to its end.
    command: f64,
    /// An answer in a program that has begun.
    warm: f64,
    peak_mb: f64,
}

/// A question that was timed.
struct Asked {
    name: &'static str,
    target: Option<f64>,
    engines: [Timed; 2],
}

fn questions(asked: &[Asked]) -> Table {
    let mut table = Table::new(
        "Seconds for an answer",
        &[
            "question",
            "treering-query",
            "at most",
            "DuckDB",
            "ratio",
            "whole command",
            "with DuckDB",
            "MB",
            "DuckDB's",
        ],
    );
    for Asked { name, target, engines: [ours, duckdb] } in asked {
        let seconds = |value: f64| format!("{value:.3}");
        table.row(vec![
            (*name).to_owned(),
            seconds(ours.warm),
            target.map_or_else(String::new, |target| target.to_string()),
            seconds(duckdb.warm),
            format!("{:.1}", ours.warm / duckdb.warm),
            seconds(ours.command),
            seconds(duckdb.command),
            format!("{:.0}", ours.peak_mb),
            format!("{:.0}", duckdb.peak_mb),
        ]);
    }
    table.note(
        "The least of all rounds, by the wall clock. The first columns are of a program that has begun, the whole command \
         is `treering query` from its start to its end.",
    );
    table
}
