//! `treering bench list`.

use std::process::ExitCode;

use treering_archive::{Summary, metric};

use super::amount::amount;
use super::columns::{Side, print, table};
use super::place::{Place, failure};
use crate::failure::Outcome;
use crate::terminal;

/// List the runs that are kept, the latest first
#[derive(Debug, clap::Args)]
pub struct List {
    /// Only those of this program
    program: Option<String>,
    /// List all of them [default: the last 12]
    #[arg(long)]
    all: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: Place,
}

/// How many are listed.
const LAST: usize = 12;

impl List {
    /// Does it.
    pub fn run(self) -> Outcome {
        let mut archive = self.place.open_existing()?;
        let is_short = !self.all && !self.json;
        let at_once = (is_short && self.program.is_none()).then_some(LAST);
        let mut summaries = archive.summaries(at_once).map_err(failure)?;
        if let Some(program) = &self.program {
            summaries.retain(|summary| summary.is_called(program));
        }
        let all = if at_once.is_some() { archive.count().map_err(failure)? } else { summaries.len() };
        summaries.truncate(if is_short { LAST } else { usize::MAX });
        if self.json {
            let text = serde_json::json!({ "runs": summaries, "all": all });
            terminal::print(&format!("{text:#}\n"))?;
        } else {
            print(&text(&summaries, all))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The table, of as many as there are in all.
pub fn text(summaries: &[Summary], all: usize) -> String {
    let shown = [metric::INSTRUCTIONS, metric::CPU, metric::WALL, metric::MEMORY].into_iter();
    let has = |of: &Summary, name: &str| of.metrics.contains_key(name);
    // The wall time is shown where nothing better is known.
    let lacks_cpu = summaries.iter().any(|of| !has(of, metric::CPU) && has(of, metric::WALL));
    let metrics: Vec<&str> = shown
        .filter(|name| summaries.iter().any(|of| has(of, name)) && (*name != metric::WALL || lacks_cpu))
        .collect();
    let mut heads = vec!["run", "when, UTC", "program", "parameters", "version"];
    let mut sides = vec![Side::Left; heads.len()];
    heads.extend(metrics.iter().map(|name| if *name == metric::CPU { "CPU" } else { *name }));
    sides.extend(metrics.iter().map(|_| Side::Right));
    let mut rows: Vec<Vec<String>> = vec![heads.into_iter().map(str::to_owned).collect()];
    rows.extend(summaries.iter().map(|summary| row(summary, &metrics)));
    let number = match summaries.len() {
        some if some < all => format!("{some} of {all} runs"),
        1 => "1 run".to_owned(),
        all => format!("{all} runs"),
    };
    let marked = if summaries.iter().any(|of| of.dirty) { " · * work tree changed" } else { "" };
    let more = if summaries.len() < all { " · more: --all, --json" } else { "" };
    format!("{}{number}{marked}{more}\n", table(&sides, &rows))
}

fn row(of: &Summary, metrics: &[&str]) -> Vec<String> {
    let mut cells = vec![
        of.run.short().to_owned(),
        if of.started.0 == 0 { "·".to_owned() } else { of.started.minute() },
        of.program.clone(),
        parameters(of),
        format!("{}{}", of.version, if of.dirty { "*" } else { "" }),
    ];
    let value =
        |name: &&str| of.metrics.get(*name).map_or_else(|| "·".to_owned(), |of| amount(of.median, of.unit));
    cells.extend(metrics.iter().map(value));
    cells
}

/// `n=8000 algo=list`.
pub fn parameters(of: &Summary) -> String {
    of.parameters.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
}
