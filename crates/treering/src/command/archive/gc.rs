//! `treering archive gc`.

use std::process::ExitCode;

use treering_archive::{Archive, Id, Retention};
use treering_fleet::Tables;
use treering_report::plural;

use super::bucket::Bucket;
use super::compact::{FIRST_DAY, wrong};
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
        let mut archive = self.place.open_copy()?;
        let since = match &self.before {
            None => None,
            Some(day) => Some(format!("{day}T00:00:00Z").parse().map_err(|_| {
                Failure::new(format_args!("{day:?} is no day")).hint("write it as 2026-11-27").status(2)
            })?),
        };
        let early = archive.select(&format!("day < '{FIRST_DAY}'")).map_err(failure)?.len();
        let collected = match since {
            None => archive
                .collect(Retention { since: Some(treering_archive::Moment(0)), last: None }, self.dry_run),
            since => archive.collect(Retention { since, last: None }, self.dry_run),
        };
        let mut collected = collected.map_err(failure)?;
        let (days, (files, bytes)) = match self.place.bucket() {
            None => {
                let mut tables = Tables::open_to_change(archive.folder()).map_err(wrong)?;
                let days = self.tables_removed(&mut tables)?;
                (days, tables.collect(self.dry_run).map_err(wrong)?)
            }
            Some(bucket) => {
                // The counts so far are of the copy.
                (collected.files, collected.bytes) = (0, 0);
                self.sweep(&bucket, &mut archive, &collected.runs)?
            }
        };
        let early = collected.runs.len().min(early);
        if early > 0 {
            tell!(
                "note: {} began before {FIRST_DAY}, by the clocks of their hosts, and may be new",
                plural(early as u64, "run")
            );
        }
        let verb = if self.dry_run { "would remove" } else { "removed" };
        tell!(
            "{verb} {}, the tables of {}, {}, {} bytes in all",
            plural(collected.runs.len() as u64, "run"),
            plural(days as u64, "day"),
            plural((collected.files + files) as u64, "other file"),
            collected.bytes + bytes
        );
        Ok(ExitCode::SUCCESS)
    }
    /// Takes the tables of old days out, if that is wished. Returns how many days.
    fn tables_removed(&self, tables: &mut Tables) -> Result<usize, Failure> {
        let (true, Some(before)) = (self.tables, &self.before) else { return Ok(0) };
        let days = tables.parts().iter().map(|part| part.day.clone()).filter(|day| day < before);
        let mut days: Vec<String> = days.collect();
        days.dedup();
        if !self.dry_run && !days.is_empty() {
            tables.publish(&days, Vec::new()).map_err(wrong)?;
        }
        Ok(days.len())
    }

    /// The same in a bucket, of whose archive this is a copy: removes runs, and what nothing names.
    fn sweep(
        &self,
        bucket: &Bucket,
        archive: &mut Archive,
        removed: &[Id],
    ) -> Result<(usize, (usize, u64)), Failure> {
        if !archive.problems().is_empty() {
            return Err(Failure::new(
                "nothing is removed: it is not known which files the damaged runs name",
            )
            .hint("take their objects from a copy of the archive, or remove them"));
        }
        let (days, tables) = bucket.change_tables(|tables| {
            let days = self.tables_removed(tables)?;
            Ok((days > 0 && !self.dry_run, days))
        })?;
        let mut lines: Vec<String> = tables.iter().map(|name| format!("keep {name}")).collect();
        for run in archive.select("true").map_err(failure)?.iter().filter(|run| !removed.contains(run)) {
            let profiles = archive.read(run).map_err(failure)?.profiles;
            lines.extend(
                profiles
                    .iter()
                    .map(|file| format!("keep {}", bucket.name(archive, &archive.profile_path(file)))),
            );
        }
        lines.extend(
            removed.iter().map(|run| format!("remove {}", bucket.name(archive, &archive.run_path(run)))),
        );
        Ok((days, bucket.sweep(&(lines.join("\n") + "\n"), self.dry_run)?))
    }
}
