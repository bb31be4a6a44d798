//! `treering archive gc`.

use std::process::ExitCode;

use treering_archive::Retention;
use treering_fleet::Tables;
use treering_report::plural;

use super::compact::wrong;
use crate::command::bench::place::{Place, failure};
use crate::failure::{Failure, Outcome};

/// Remove old runs, and files that nothing names
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Files that nothing names are removed a day after they were written, so that writers and queries at work keep theirs.
The tables of removed runs stay, which is cheap, unless --tables is given.")]
pub struct Gc {
    #[command(flatten)]
    place: Place,
    /// Remove runs that began before this day, in UTC
    #[arg(long, value_name = "YYYY-MM-DD")]
    before: Option<String>,
    /// Remove the tables of these days as well
    #[arg(long, requires = "before")]
    tables: bool,
    /// Say what would be removed, and remove nothing
    #[arg(long)]
    dry_run: bool,
}

impl Gc {
    /// Does it.
    pub fn run(self) -> Outcome {
        let mut archive = self.place.open_existing()?;
        let since = match &self.before {
            None => None,
            Some(day) => Some(format!("{day}T00:00:00Z").parse().map_err(|_| {
                Failure::new(format_args!("{day:?} is no day")).hint("write it as 2026-11-27").status(2)
            })?),
        };
        let collected = match since {
            None => archive
                .collect(Retention { since: Some(treering_archive::Moment(0)), last: None }, self.dry_run),
            since => archive.collect(Retention { since, last: None }, self.dry_run),
        };
        let collected = collected.map_err(failure)?;
        let mut tables = Tables::open_to_change(archive.folder()).map_err(wrong)?;
        let mut days: Vec<String> = Vec::new();
        if let (true, Some(before)) = (self.tables, &self.before) {
            days = tables.parts().iter().map(|part| part.day.clone()).filter(|day| day < before).collect();
            days.dedup();
            if !self.dry_run && !days.is_empty() {
                tables.publish(&days, Vec::new()).map_err(wrong)?;
            }
        }
        let (files, bytes) = tables.collect(self.dry_run).map_err(wrong)?;
        let verb = if self.dry_run { "would remove" } else { "removed" };
        tell!(
            "{verb} {}, the tables of {}, {}, {} bytes in all",
            plural(collected.runs.len() as u64, "run"),
            plural(days.len() as u64, "day"),
            plural((collected.files + files) as u64, "other file"),
            collected.bytes + bytes
        );
        Ok(ExitCode::SUCCESS)
    }
}
