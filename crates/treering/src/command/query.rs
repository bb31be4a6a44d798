//! `treering query`: asks the tables of an archive, by an engine in a program of its own.

use std::io::{self, BufRead as _, BufReader, ErrorKind, Read, Write as _};
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use treering_fleet::sql;

use super::archive::Asked;
use super::bench::place::Place;
use crate::companion;
use crate::ending::exit_status;
use crate::failure::{Context as _, Failure, Outcome};
use crate::relay::Relay;

/// Ask the tables of an archive in SQL
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  treering query --named flat --project solve
  treering query --named versions --project solve --base 1.0 --head 1.1
  treering query \"SELECT host, COUNT(*) AS runs FROM run WHERE main GROUP BY host\"

The tables are run, fn, stack, cost, fcost and rollup; docs/archive.md describes their columns. The program \
treering-query answers, or duckdb; one of them must be installed. Their dialects of SQL differ in details.")]
pub struct Query {
    /// The question in SQL; several, with ; between them
    #[arg(required_unless_present = "named", conflicts_with = "named")]
    sql: Option<String>,
    #[command(flatten)]
    asked: Asked,
    #[command(flatten)]
    place: Place,
    /// The engine that answers [default: datafusion if treering-query is installed, else duckdb]
    #[arg(long, value_enum)]
    engine: Option<Engine>,
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

/// The engines that are started: Apache DataFusion in `treering-query`, and the program `duckdb`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Engine {
    Datafusion,
    Duckdb,
}

impl Query {
    /// Does it.
    pub fn run(self) -> Outcome {
        // A question that cannot be asked needs no engine.
        self.asked.sql()?;
        let (engine, program) = self.engine()?;
        let dialect = match engine {
            Engine::Datafusion => sql::Engine::DataFusion,
            Engine::Duckdb => sql::Engine::DuckDb,
        };
        let answers = self.asked.answers(&self.place, dialect)?;
        let question = answers.question.or(self.sql).unwrap_or_default();
        if question.trim_matches(|letter: char| letter == ';' || letter.is_whitespace()).is_empty() {
            return Err(Failure::new("the question is empty").status(2));
        }
        let form = match (self.json, self.csv, self.markdown) {
            (true, ..) => "json",
            (_, true, _) => "csv",
            (_, _, true) => "markdown",
            _ => "box",
        };
        let mut command = Command::new(program);
        let script = match engine {
            Engine::Datafusion => {
                command.arg("ask").arg(answers.folder).args(["--form", form]);
                command.args(self.explain.then_some("--explain"));
                question
            }
            Engine::Duckdb => {
                let explain = if self.explain { "EXPLAIN " } else { "" };
                // Without the user's settings; an error ends it.
                command.args(["-init", "/dev/null", "-bail", "-batch", &format!("-{form}"), ":memory:"]);
                format!("{}{explain}{};\n", answers.views, question.trim_end().trim_end_matches(';'))
            }
        };
        // DuckDB leaves control characters in the forms for readers, which terminals obey; treering-query takes them out.
        let is_shown = engine == Engine::Duckdb && matches!(form, "box" | "markdown");
        if is_shown {
            command.stdout(Stdio::piped());
        }
        let cannot_start = format!("cannot start {}", command.get_program().display());
        let (mut running, _relay) =
            Relay::spawn_group(command.stdin(Stdio::piped())).context(cannot_start)?;
        let output = running.stdout.take();
        let showing = output.map(|output| std::thread::spawn(move || show(output)));
        if let Some(mut input) = running.stdin.take() {
            match input.write_all(script.as_bytes()) {
                // It ended at an error before it had read all.
                Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
                written => written.context("cannot ask the engine")?,
            }
        }
        if let Some(Ok(shown)) = showing.map(std::thread::JoinHandle::join) {
            shown.context("cannot show the answer")?;
        }
        let ended = running.wait().context("cannot wait for the engine")?;
        // treering-query says so itself.
        if engine == Engine::Duckdb && !ended.success() && answers.tables.check_ends().is_err() {
            return Err(Failure::new("tables were replaced and removed while the engine read them")
                .hint("ask again: it will read the new ones"));
        }
        Ok(ExitCode::from(exit_status(ended)))
    }

    /// The engine that was asked for, or that is installed, and its program.
    fn engine(&self) -> Result<(Engine, PathBuf), Failure> {
        let datafusion = || Some((Engine::Datafusion, companion::find()?));
        let duckdb = || Some((Engine::Duckdb, companion::on_path("duckdb")?));
        let (found, missing) = match self.engine {
            None => (
                datafusion().or_else(duckdb),
                "neither treering-query nor duckdb is installed, one of which answers",
            ),
            Some(Engine::Datafusion) => {
                (datafusion(), "treering-query is not installed, in which DataFusion is")
            }
            Some(Engine::Duckdb) => (duckdb(), "duckdb is not installed"),
        };
        found.ok_or_else(|| {
            let failure = Failure::new(missing);
            let failure =
                if self.engine == Some(Engine::Duckdb) { failure } else { failure.hint(companion::HINT) };
            let duckdb = "duckdb is at duckdb.org, and installed by: pip install duckdb-cli";
            let failure =
                if self.engine == Some(Engine::Datafusion) { failure } else { failure.hint(duckdb) };
            failure.hint(
                "treering archive sql --engine spark|datafusion|ballista|duckdb prints the same as text",
            )
        })
    }
}

/// Prints an answer line by line, with a mark in the place of control characters.
fn show(output: impl Read) -> io::Result<()> {
    let (mut lines, mut line) = (BufReader::new(output), Vec::new());
    while lines.read_until(b'\n', &mut line)? > 0 {
        let text = String::from_utf8_lossy(&line);
        let safe = |letter: char| if letter.is_control() && letter != '\n' { '\u{fffd}' } else { letter };
        match io::stdout().write_all(text.chars().map(safe).collect::<String>().as_bytes()) {
            // Its reader has seen enough.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(()),
            written => written?,
        }
        line.clear();
    }
    io::stdout().flush()
}
