//! `treering archive sql`, and the questions that it shares with `treering query`.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;

use treering_fleet::Tables;
use treering_fleet::sql::{Engine, QUESTIONS, Question, Values, views};

use super::compact::{note_clocks, wrong};
use crate::arguments::day;
use crate::command::bench::place::Place;
use crate::failure::{Failure, Outcome};
use crate::terminal;
use crate::word::word;

/// Print the tables as views of an engine, and questions in its SQL
#[derive(Debug, clap::Args)]
pub struct Sql {
    /// The engine; ballista takes what datafusion does
    #[arg(long, value_enum, default_value = "duckdb")]
    engine: Name,
    #[command(flatten)]
    asked: Asked,
    #[command(flatten)]
    place: Place,
}

/// The engines.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Name {
    Duckdb,
    Datafusion,
    Ballista,
    Spark,
}

/// A question by its name, with its parameters.
#[derive(Clone, Debug, clap::Args)]
pub struct Asked {
    /// A question by name: flat, stacks, versions, outliers, hosts, percentiles, growth, changes, callers, new, runs, imbalance
    #[arg(long, value_name = "NAME")]
    pub named: Option<String>,
    /// Of this project alone
    #[arg(long)]
    project: Option<String>,
    /// In this metric [default: the first one of most profiles of the project]
    #[arg(long)]
    metric: Option<String>,
    /// From this day on, in UTC
    #[arg(long, value_name = "YYYY-MM-DD", value_parser = day)]
    since: Option<String>,
    /// The function that is asked for
    #[arg(long)]
    function: Option<String>,
    /// The version that is compared with
    #[arg(long, value_name = "VERSION")]
    base: Option<String>,
    /// The version that is compared
    #[arg(long, value_name = "VERSION")]
    head: Option<String>,
    /// The greatest number of rows
    #[arg(long, value_name = "N", default_value = "20")]
    limit: u32,
}

/// A question's answers come from here.
pub struct Answers {
    /// The folder of the archive, or of a copy that has the tables.
    pub folder: PathBuf,
    /// The tables that the views are of.
    pub tables: Tables,
    /// Statements that make the views.
    pub views: String,
    /// The question, if one was named.
    pub question: Option<String>,
}

impl Asked {
    /// The question in SQL, if one was named.
    pub fn sql(&self) -> Result<Option<String>, Failure> {
        let Some(name) = &self.named else {
            return match self.given().first() {
                Some(parameter) => Err(Failure::new(format_args!("--{parameter} is for --named")).status(2)),
                None => Ok(None),
            };
        };
        let question = Question::named(name).ok_or_else(|| {
            let all: Vec<String> =
                QUESTIONS.iter().map(|question| format!("{}: {}", question.name, question.about())).collect();
            let failure = Failure::new(format_args!("no question is called {name:?}")).status(2);
            all.iter().fold(failure, |failure, line| failure.hint(line))
        })?;
        let given = self.given();
        if let Some(missing) = question.required().into_iter().find(|parameter| !given.contains(parameter)) {
            return Err(Failure::new(format_args!("--named {name} needs --{missing}")).status(2));
        }
        if let Some(idle) = given.into_iter().find(|parameter| !question.takes(parameter)) {
            return Err(Failure::new(format_args!("--named {name} does not take --{idle}")).status(2));
        }
        Ok(Some(question.sql(&Values {
            project: self.project.clone(),
            metric: self.metric.clone(),
            since: self.since.clone(),
            function: self.function.clone(),
            base: self.base.clone(),
            head: self.head.clone(),
            limit: self.limit,
        })))
    }

    /// Notes projects, versions, metrics, functions and days that the tables do not have: an answer about them is empty, and
    /// reads as if all were well.
    fn note_unknown(&self, tables: &Tables) -> Result<(), Failure> {
        let asked = [
            ("project", "run", "project", &self.project),
            ("version", "run", "version", &self.base),
            ("version", "run", "version", &self.head),
            ("metric", "run", "metric", &self.metric),
            ("function", "fn", "name", &self.function),
        ];
        for (what, table, column, value) in asked {
            let Some(value) = value else { continue };
            let known = tables.texts(table, column).map_err(wrong)?;
            if !known.contains(value) {
                let (value, others) = (word(value.as_ref()), others(what, value, &known));
                match what {
                    "project" | "version" => tell!("note: no run is of the {what} {value}; {others}"),
                    _ => tell!("note: no run has the {what} {value}; {others}"),
                }
            }
        }
        let last = tables.parts().iter().map(|part| &part.day).max();
        if let (Some(since), Some(last)) = (&self.since, last)
            && last < since
        {
            tell!("note: no run is of {since} or later; the last one is of {last}");
        }
        Ok(())
    }

    /// The names of the parameters that have a value.
    fn given(&self) -> Vec<&'static str> {
        let all = [
            ("project", &self.project),
            ("metric", &self.metric),
            ("since", &self.since),
            ("function", &self.function),
            ("base", &self.base),
            ("head", &self.head),
        ];
        all.into_iter().filter(|(_, value)| value.is_some()).map(|(name, _)| name).collect()
    }

    /// The views and the question for an engine.
    pub fn answers(&self, place: &Place, engine: Engine) -> Result<Answers, Failure> {
        let question = self.sql()?;
        let folder = match place.bucket() {
            Some(bucket) => {
                let folder = bucket.copy()?;
                bucket.fetch_tables(&folder)?;
                folder
            }
            None => place.open_existing()?.folder().to_owned(),
        };
        let folder = std::path::absolute(&folder).unwrap_or(folder);
        let tables = Tables::open(&folder).map_err(wrong)?;
        tables.check_ends().map_err(wrong)?;
        note_clocks(&tables);
        let views = views(&tables, engine).ok_or_else(|| {
            let shown = place.named().unwrap_or_else(|| folder.display().to_string());
            Failure::new(format_args!("{shown} has no tables yet"))
                .hint("write them: treering archive compact")
        })?;
        self.note_unknown(&tables)?;
        Ok(Answers { folder, tables, views, question })
    }
}

/// The names that are known in the place of one that is not: the most alike first.
fn others(what: &str, unknown: &str, known: &BTreeSet<String>) -> String {
    const MOST: usize = 5;
    let mut stated: Vec<&String> = known.iter().filter(|name| !name.is_empty()).collect();
    let part = |name: &str| name.contains(unknown);
    stated.sort_by_cached_key(|name| (!part(name), strsim::damerau_levenshtein(unknown, name)));
    let some: Vec<String> = stated.iter().take(MOST).map(|name| word(name.as_ref())).collect();
    let more = if stated.len() > MOST { ", …" } else { "" };
    match some.is_empty() {
        true => format!("none states a {what}"),
        false => format!("there are: {}{more}", some.join(", ")),
    }
}

impl Sql {
    /// Does it.
    pub fn run(self) -> Outcome {
        let engine = match self.engine {
            Name::Duckdb => Engine::DuckDb,
            Name::Datafusion | Name::Ballista => Engine::DataFusion,
            Name::Spark => Engine::Spark,
        };
        let answers = self.asked.answers(&self.place, engine)?;
        terminal::print(&(answers.views + &answers.question.unwrap_or_default()))?;
        Ok(ExitCode::SUCCESS)
    }
}
