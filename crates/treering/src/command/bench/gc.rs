//! `treering bench gc`.

use std::process::ExitCode;

use treering_archive::{Collected, Moment, Retention, Unit};
use treering_report::plural;

use super::amount::amount;
use super::columns::print;
use super::place::{Place, failure};
use crate::failure::Outcome;
use crate::terminal;

/// Remove runs that are not to be kept, and files that no run needs
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Without --older-than and --keep, no run is removed: only what writers that were killed have left, and profiles and \
inputs that no run has, once they are a day old. With both, runs go that are old and not among the last ones.")]
pub struct Gc {
    /// Remove runs that began more than so many days ago
    #[arg(long, value_name = "DAYS", value_parser = days)]
    older_than: Option<u32>,
    /// Keep the last N runs of each program, with its parameters, version and machine
    #[arg(long, value_name = "N")]
    keep: Option<usize>,
    /// Remove nothing, and tell what would be
    #[arg(long)]
    dry_run: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: Place,
}

/// Reads a number of days.
fn days(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| "write a number of whole days, such as 30".to_owned())
}

impl Gc {
    /// Does it.
    pub fn run(self) -> Outcome {
        const DAY: u64 = 86_400_000_000_000;
        let before = |days: u32| Moment(Moment::now().0.saturating_sub(u64::from(days) * DAY));
        let keep = Retention { since: self.older_than.map(before), last: self.keep };
        let mut archive = self.place.open_existing()?;
        let collected = archive.collect(keep, self.dry_run).map_err(failure)?;
        let Collected { runs, files, bytes } = &collected;
        if self.json {
            let text =
                serde_json::json!({ "removed": !self.dry_run, "runs": runs, "files": files, "bytes": bytes });
            terminal::print(&format!("{text:#}\n"))?;
            return Ok(ExitCode::SUCCESS);
        }
        let done = if self.dry_run { "would remove" } else { "removed" };
        let (runs, files) = (plural(runs.len() as u64, "run"), plural(*files as u64, "other file"));
        print(&format!("{done} {runs} and {files}, {}\n", amount(*bytes as f64, Unit::Bytes)))?;
        Ok(ExitCode::SUCCESS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_whole_numbers() {
        assert_eq!(days("30"), Ok(30));
        for wrong in ["30d", "abc", "-1", "1.5", ""] {
            assert!(days(wrong).is_err_and(|said| said.contains("such as 30")), "{wrong}");
        }
    }
}
