//! `treering query`: asks the tables of an archive, by an engine that is installed.

use std::io::{ErrorKind, Write as _};
use std::process::{Command, ExitCode, Stdio};

use treering_fleet::sql::Engine;

use super::archive::Asked;
use super::bench::place::Place;
use crate::failure::{Context as _, Failure, Outcome};

/// Ask the tables of an archive in SQL
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  treering query --named flat --project solve
  treering query --named versions --project solve --base 1.0 --head 1.1
  treering query \"SELECT host, COUNT(*) AS runs FROM run WHERE main GROUP BY host\"

The tables are run, fn, stack, cost, fcost and rollup; docs/archive.md describes their columns. The program duckdb
answers, which must be installed; treering archive sql prints the same for other engines.")]
pub struct Query {
    /// The question in SQL; several, with ; between them
    #[arg(required_unless_present = "named", conflicts_with = "named")]
    sql: Option<String>,
    #[command(flatten)]
    asked: Asked,
    #[command(flatten)]
    place: Place,
    /// Print JSON
    #[arg(long, group = "form")]
    json: bool,
    /// Print CSV
    #[arg(long, group = "form")]
    csv: bool,
    /// Print a table in Markdown
    #[arg(long, group = "form")]
    markdown: bool,
    /// Print how the engine answers, instead of the answer
    #[arg(long)]
    explain: bool,
}

impl Query {
    /// Does it.
    pub fn run(self) -> Outcome {
        let answers = self.asked.answers(&self.place, Engine::DuckDb)?;
        let question = answers.question.or(self.sql).unwrap_or_default();
        let explain = if self.explain { "EXPLAIN " } else { "" };
        let script = format!("{}{explain}{};\n", answers.views, question.trim_end().trim_end_matches(';'));
        let form = match (self.json, self.csv, self.markdown) {
            (true, ..) => "-json",
            (_, true, _) => "-csv",
            (_, _, true) => "-markdown",
            _ => "-box",
        };
        let mut duckdb = Command::new("duckdb");
        // Without the user's settings; an error ends it.
        duckdb.args(["-init", "/dev/null", "-bail", "-batch", form, ":memory:"]).stdin(Stdio::piped());
        let mut running = match duckdb.spawn() {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(Failure::new("duckdb is not installed, and answers the questions")
                    .hint("install it from duckdb.org, or: pip install duckdb-cli")
                    .hint(
                        "treering archive sql --engine spark|datafusion prints the same for other engines",
                    ));
            }
            started => started.context("cannot start duckdb")?,
        };
        if let Some(mut input) = running.stdin.take() {
            match input.write_all(script.as_bytes()) {
                // It ended at an error before it had read all.
                Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
                written => written.context("cannot ask duckdb")?,
            }
        }
        let ended = running.wait().context("cannot wait for duckdb")?;
        Ok(if ended.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}
