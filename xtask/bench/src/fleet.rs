//! `cargo xtask bench fleet`: ten thousand profiles in one archive, from writers at once to the answers of two engines.
//!
//! The engines run in turns. A command with one question, and one with the same question eleven times, tell how long an
//! answer takes in a program that has begun: the difference over ten. Times are by the wall clock,
//! and the least of all rounds counts, because others share the machine.

mod profiles;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;
use treering_fleet::sql::{QUESTIONS, Question, Values};
use treering_fleet::{TABLES, Tables};
use treering_measure::{Launch, Sample};

use crate::frame::{Bench, Report, interleaved, make_folder};
use crate::measure::{profile, succeed, text_of};
use crate::table::Table;
use crate::workspace;
use profiles::{Drawn, draw, is_bad, record};

/// Processes that add profiles at once. Two of them add the same files.
const WRITERS: usize = 64;

/// Questions with the seconds that a warm answer may take.
const TIMED: [(&str, &str); 6] = [
    ("flat", "0.1"),
    ("stacks", "0.5"),
    ("outliers", "0.5"),
    ("versions", ""),
    ("percentiles", ""),
    ("changes", ""),
];

pub(super) fn run(bench: &Bench) -> Result<Report, String> {
    let query = workspace::root().join("query");
    let mut cargo = workspace::cargo();
    cargo.args(["build", "--release", "--quiet", "--locked"]).env("CARGO_TARGET_DIR", query.join("target"));
    succeed(cargo.current_dir(&query))?;
    let fleet = Fleet::new(bench)?;
    let recorded = record(bench, &fleet.folder)?;
    let files = draw(&recorded, if bench.quick { 500 } else { 10_000 }, &fleet.folder.join("files"))?;
    let title =
        format!("{} profiles of {} programs, over {} days", files.len(), recorded.len(), profiles::DAYS);
    drop(recorded);
    let mut table = Table::new(&title, &["", "measured", "at most"]);
    fleet.add(&files, &mut table)?;
    fleet.compact(&mut table)?;
    fleet.sizes(&files, &mut table)?;
    fleet.compare_reports(&files)?;
    fleet.compare_rows()?;
    table.note(
        "The reports of all runs merged were equal to those of `treering merge` of the same files, function by function, \
         and the sums of the tables equal to theirs. The rows of all questions were equal on both engines.",
    );
    let (hosts, others) = fleet.outliers()?;
    table.note(format!("`outliers` named {hosts} hosts with the planted fault, and {others} other ones."));
    Ok(Report { tables: vec![table, fleet.questions(bench.rounds(5, 1))?], ..Report::default() })
}

/// An archive, and the programs that work on it.
struct Fleet<'a> {
    bench: &'a Bench,
    folder: PathBuf,
    archive: PathBuf,
    /// `PATH` with the engines on it.
    path: OsString,
}

impl<'a> Fleet<'a> {
    fn new(bench: &'a Bench) -> Result<Self, String> {
        let folder = bench.directory.join("profiles");
        if folder.exists() {
            std::fs::remove_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        }
        make_folder(&folder.join("files"))?;
        let engines = workspace::target_directory().join("engines/bin");
        let query = workspace::root().join("query/target/release");
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders: Vec<PathBuf> =
            [query, engines].into_iter().chain(std::env::split_paths(&path)).collect();
        if !folders.iter().any(|folder| folder.join("duckdb").is_file()) {
            return Err("duckdb is not installed; cargo xtask fleet installs it".to_owned());
        }
        let path = std::env::join_paths(folders).map_err(|error| format!("PATH: {error}"))?;
        Ok(Self { bench, archive: folder.join("archive"), folder, path })
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.bench.command("treering");
        command.args(arguments).env("PATH", &self.path);
        command
    }

    /// A command on the archive, measured.
    fn measured(&self, arguments: &[&str]) -> Result<Sample, String> {
        let words = [self.bench.treering.clone().into()].into_iter();
        let words = words.chain(arguments.iter().map(OsString::from)).collect();
        let others = std::env::vars_os().filter(|(name, _)| name != "PATH");
        let environment = others.chain([("PATH".into(), self.path.clone())]).collect();
        let launch = Launch { environment: Some(environment), ..Launch::new(words) };
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
    fn add(&self, files: &[Drawn], table: &mut Table) -> Result<(), String> {
        let halves = files.chunk_by(|one, next| one.version == next.version);
        let groups: Vec<&[Drawn]> =
            halves.flat_map(|half| half.chunks(half.len().div_ceil(WRITERS / 4))).collect();
        let add = |group: &[Drawn]| {
            let place = self.place();
            let mut add = self.command(&["archive", "add", "--version-name", group[0].version, &place]);
            succeed(add.args(group.iter().map(|file| &file.path))).map(drop)
        };
        let begun = Instant::now();
        std::thread::scope(|scope| {
            let writers: Vec<_> =
                groups.iter().chain(&groups).map(|group| scope.spawn(move || add(group))).collect();
            writers
                .into_iter()
                .try_for_each(|writer| writer.join().unwrap_or(Err("a thread failed".to_owned())))
        })?;
        let seconds = begun.elapsed().as_secs_f64();
        let listed = self.json(&["archive", "list", "--json", "--archive", &self.place()])?;
        let runs = listed["runs"].as_array().map_or(0, Vec::len);
        succeed(&mut self.command(&["archive", "verify", "--archive", &self.place()]))?;
        for (name, measured, at_most) in [
            ("adding all files twice, by 64 writers", format!("{seconds:.2} s"), ""),
            ("profiles lost", files.len().saturating_sub(runs).to_string(), "0"),
            ("profiles kept twice", runs.saturating_sub(files.len()).to_string(), "0"),
        ] {
            table.row(vec![name.to_owned(), measured, at_most.to_owned()]);
        }
        Ok(())
    }

    fn compact(&self, table: &mut Table) -> Result<(), String> {
        let sample = self.measured(&["archive", "compact", "--archive", &self.place()])?;
        let (seconds, gigabytes) = (sample.wall.as_secs_f64(), sample.peak_bytes as f64 / 1e9);
        table.row(vec!["compact".to_owned(), format!("{seconds:.2} s"), "60 s".to_owned()]);
        table.row(vec!["compact: most memory".to_owned(), format!("{gigabytes:.2} GB"), "1 GB".to_owned()]);
        Ok(())
    }

    /// The sizes of the tables and of the files.
    fn sizes(&self, files: &[Drawn], table: &mut Table) -> Result<(), String> {
        let tables = Tables::open(&self.archive).map_err(|error| error.to_string())?;
        let length = |path: &Path| std::fs::metadata(path).map_or(0, |found| found.len());
        let bytes = |table| tables.files(table).iter().map(|path| length(path)).sum::<u64>() as f64;
        let rows = self.rows("duckdb", "SELECT COUNT(*) AS rows_of_costs FROM cost")?;
        let rows = rows.first().and_then(|row| row["rows_of_costs"].parse::<u64>().ok());
        let rows = rows.ok_or("no number of rows")?;
        let for_each = format!("{:.2} B", bytes("cost") / rows.max(1) as f64);
        table.row(vec!["Parquet, for each row of `cost`".to_owned(), for_each, "9 B".to_owned()]);
        let profiles = files.iter().map(|file| length(&file.path)).sum::<u64>() as f64;
        let tables = TABLES.map(|table| format!("{table} {:.1}", bytes(table) / 1e6)).join(", ");
        table.note(format!(
            "{WRITERS} writers added each file twice. The profiles take {:.1} MB; the tables {tables}, with {rows} rows \
             of costs.",
            profiles / 1e6
        ));
        Ok(())
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
        let profile = profile(merged)?;
        let (metric, _) = profile.cost_metrics().next().ok_or("the merged profile has no metric")?;
        let mut more: BTreeMap<(String, String), i128> = BTreeMap::new();
        for node in profile.tree.nodes() {
            let (_, named) = treering_fleet::function(&profile, profile.tree.function(node));
            let cost = profile.tree.self_cost(metric, node);
            *more.entry((named.name, named.module)).or_default() += i128::from(cost);
        }
        for row in self.rows("datafusion", &question("flat", 1_000_000)?)? {
            let cost: i128 = row["self_cost"].parse().map_err(|_| format!("{row:?} has no cost"))?;
            *more.entry((row["name"].clone(), row["module"].clone())).or_default() -= cost;
        }
        match more.iter().find(|(_, more)| **more != 0) {
            None => Ok(()),
            Some((name, more)) => {
                Err(format!("{name:?} costs {more} more in the merged profile than in the tables"))
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
                let rows = one.len();
                return Err(format!("{} differs between engines, at row {at:?} of {rows}", known.name));
            }
        }
        Ok(())
    }

    /// The hosts that `outliers` names: those with the planted fault, and others.
    fn outliers(&self) -> Result<(usize, usize), String> {
        let rows = self.rows("datafusion", &question("outliers", 100_000)?)?;
        let hosts: BTreeSet<&String> = rows.iter().map(|row| &row["host"]).collect();
        let bad = hosts.iter().filter(|host| is_bad(host)).count();
        Ok((bad, hosts.len() - bad))
    }

    /// Asks each question on each engine, once and often in one command, in turns.
    fn questions(&self, rounds: usize) -> Result<Table, String> {
        let header = [
            "question",
            "treering-query",
            "at most",
            "DuckDB",
            "ratio",
            "whole command",
            "with DuckDB",
            "MB",
            "DuckDB's",
        ];
        let mut table = Table::new("Seconds for an answer", &header);
        for (name, at_most) in TIMED {
            let samples = interleaved(2 * ENGINES.len(), rounds, |way| {
                let (engine, times) = (ENGINES[way / 2], [1, MANY][way % 2]);
                let text = question(name, 20)?.repeat(times);
                let place = self.place();
                self.measured(&["query", "--csv", "--engine", engine, "--archive", &place, "--", &text])
            })?;
            let least = |way: usize| {
                let walls = samples[way].iter().map(|sample| sample.wall);
                walls.min().unwrap_or(Duration::MAX).as_secs_f64()
            };
            let peak = |way: usize| samples[way].iter().map(|sample| sample.peak_bytes).max().unwrap_or(0);
            let warm = [0, 2].map(|way| (least(way + 1) - least(way)) / (MANY - 1) as f64);
            table.row(vec![
                name.to_owned(),
                format!("{:.3}", warm[0]),
                at_most.to_owned(),
                format!("{:.3}", warm[1]),
                format!("{:.1}", warm[0] / warm[1]),
                format!("{:.3}", least(0)),
                format!("{:.3}", least(2)),
                format!("{:.0}", peak(0) as f64 / 1e6),
                format!("{:.0}", peak(2) as f64 / 1e6),
            ]);
        }
        table.note(
            "The least of all rounds, by the wall clock. The first columns are of a program that has begun, the whole \
             command is `treering query` from its start to its end.",
        );
        Ok(table)
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
