//! `treering archive list`.

use std::process::ExitCode;

use treering_report::plural;

use super::chosen::Chosen;
use crate::command::bench::columns::{Side, print, table};
use crate::command::bench::place::failure;
use crate::failure::Outcome;
use crate::terminal;

/// List the runs that are kept, the latest first
#[derive(Debug, clap::Args)]
pub struct List {
    #[command(flatten)]
    chosen: Chosen,
    /// List all of them [default: the last 20]
    #[arg(long)]
    all: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// How many are listed.
const LAST: usize = 20;

impl List {
    /// Does it.
    pub fn run(self) -> Outcome {
        let (archive, runs) = self.chosen.runs()?;
        let shown = if self.all || self.json { runs.len() } else { LAST.min(runs.len()) };
        let read = |run: &treering_archive::Id| Ok((run.clone(), archive.read(run).map_err(failure)?));
        let manifests =
            runs[..shown].iter().map(read).collect::<Result<Vec<_>, crate::failure::Failure>>()?;
        if self.json {
            let all: Vec<_> =
                manifests.iter().map(|(run, of)| serde_json::json!({ "run": run, "manifest": of })).collect();
            terminal::print(&format!("{:#}\n", serde_json::json!({ "runs": all })))?;
            return Ok(ExitCode::SUCCESS);
        }
        let heads = ["run", "when, UTC", "project", "version", "host", "rank", "collector"];
        let mut rows = vec![heads.map(str::to_owned).to_vec()];
        rows.extend(manifests.iter().map(|(run, of)| {
            let rank = of.rank.map_or_else(|| "-".to_owned(), |rank| rank.to_string());
            let collector = of.profiles.first().map_or_else(|| "-".to_owned(), |file| file.made_by.clone());
            vec![
                run.short().to_owned(),
                of.started.second()[..16].to_owned(),
                of.program.clone(),
                of.version_text(),
                of.machine.host.clone(),
                rank,
                collector,
            ]
        }));
        let mut sides = [Side::Left; 7];
        sides[5] = Side::Right;
        print(&table(&sides, &rows))?;
        if shown < runs.len() {
            print(&format!("{shown} of {}; --all lists all\n", plural(runs.len() as u64, "run")))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
