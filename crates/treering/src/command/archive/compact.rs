//! `treering archive compact`.

use std::collections::BTreeMap;
use std::process::ExitCode;

use treering_archive::{Archive, Id, Moment};
use treering_fleet::{Batch, Error, Rows, Run, Tables};
use treering_report::plural;

use super::bucket::Bucket;
use super::chosen::first_profile;
use crate::command::bench::place::{Place, failure, hint_of};
use crate::failure::{Failure, Outcome};
use crate::working::Working;

/// Write the profiles as tables, in Parquet files that SQL engines read
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Runs that are in the tables already are not written again. A run whose profile cannot be read is named and left out.
A day that has many files is written anew as one. Reading goes on in the old files meanwhile.")]
pub struct Compact {
    #[command(flatten)]
    place: Place,
    /// Write all days anew
    #[arg(long)]
    anew: bool,
}

impl Compact {
    /// Does it.
    pub fn run(self) -> Outcome {
        let mut archive = self.place.open_copy()?;
        let written = match self.place.bucket() {
            None => {
                let opened = match Tables::open_to_change(archive.folder()) {
                    Err(Error::Damaged { .. }) if self.anew => Tables::begin_anew(archive.folder()),
                    opened => opened,
                };
                let mut tables = opened.map_err(wrong)?;
                self.write(&mut archive, None, &mut tables)?
            }
            Some(bucket) => {
                let (written, _) = bucket.change_tables(|tables| {
                    let written = self.write(&mut archive, Some(&bucket), tables)?;
                    Ok((written.has_changed, written))
                })?;
                written
            }
        };
        tell!("wrote {}; the tables have {}", plural(written.new as u64, "run"), written.in_all);
        if written.refused > 0 {
            return Err(Failure::new(format_args!("{} left out", plural(written.refused, "run"))));
        }
        Ok(ExitCode::SUCCESS)
    }

    fn write(
        &self,
        archive: &mut Archive,
        bucket: Option<&Bucket>,
        tables: &mut Tables,
    ) -> Result<Written, Failure> {
        let mut replaced: Vec<String> = tables.crowded_days();
        let mut days: BTreeMap<String, Vec<Id>> = BTreeMap::new();
        for summary in archive.summaries(None).map_err(failure)? {
            let day = summary.started.to_string().chars().take(10).collect();
            if summary.has_profile {
                days.entry(day).or_default().push(summary.run);
            }
        }
        // A run that was removed from the archive leaves its tables when its day is written anew.
        let known = tables.runs();
        if self.anew {
            replaced = tables.parts().iter().map(|part| part.day.clone()).collect();
            replaced.dedup();
        }
        let is_new = |day: &String, run: &Id| replaced.contains(day) || !known.contains(run.as_str());
        days = days
            .into_iter()
            .map(|(day, runs)| (day.clone(), runs.into_iter().filter(|run| is_new(&day, run)).collect()))
            .collect();
        // Runs that are not listed were named when the archive was opened.
        let (mut parts, mut refused, mut new) = (Vec::new(), archive.problems().len() as u64, 0);
        for (day, runs) in days.iter().filter(|(_, runs)| !runs.is_empty()) {
            if let Some(bucket) = bucket {
                bucket.fetch_profiles(archive, runs)?;
            }
            let _working = Working::on(format!("writing {day}, {}", plural(runs.len() as u64, "run")));
            let mut batch = Batch::default();
            for run in runs {
                if let Err(why) = add(archive, run, day, &mut batch) {
                    tell!("warning: run {} is left out: {why}", run.short());
                    refused += 1;
                }
            }
            new += batch.names().count();
            if !batch.is_empty() {
                parts.push(tables.write(day, batch).map_err(wrong)?);
            }
        }
        let has_changed = !parts.is_empty() || !replaced.is_empty();
        if has_changed {
            tables.publish(&replaced, parts).map_err(wrong)?;
        }
        note_clocks(tables);
        Ok(Written { has_changed, new, refused, in_all: tables.runs().len() })
    }
}

/// The outcome.
struct Written {
    has_changed: bool,
    new: usize,
    refused: u64,
    in_all: usize,
}

fn add(archive: &Archive, id: &Id, day: &str, batch: &mut Batch) -> Result<(), Failure> {
    let Some((manifest, profile)) = first_profile(archive, id)? else { return Ok(()) };
    let run = Run {
        name: id.as_str().to_owned(),
        project: manifest.program,
        version: manifest.version.name,
        host: manifest.machine.host,
        rank: manifest.rank,
        day: day.to_owned(),
        start_unix_ns: manifest.started.0,
    };
    let rows = Rows::of(&profile).map_err(Failure::new)?;
    batch.add(run, rows).map_err(Failure::new)
}

/// An error of the tables with its hint.
pub fn wrong(error: Error) -> Failure {
    let failure = Failure::new(&error);
    match error {
        Error::Newer { .. } => failure.hint("use that version of treering"),
        Error::Damaged { .. } => failure.hint("write the tables anew: treering archive compact --anew"),
        Error::Busy(_) => failure.hint("try again when it has ended"),
        Error::System { source, .. } => hint_of(failure, source.kind()),
        _ => failure,
    }
}

/// No run of this program is older.
pub const FIRST_DAY: &str = "2000-01-01";

/// Notes days that no clock showed yet, or that are long past: the clocks of some hosts are wrong.
pub fn note_clocks(tables: &Tables) {
    const HOUR_NS: u64 = 3_600_000_000_000;
    let soon = Moment(Moment::now().0.saturating_add(HOUR_NS)).to_string();
    let today = &soon[..10];
    let mut days: Vec<&str> = tables.parts().iter().map(|part| part.day.as_str()).collect();
    days.sort_unstable();
    days.dedup();
    let to_come = days.iter().filter(|day| **day > today).count();
    if let (Some(last), 1..) = (days.last(), to_come) {
        tell!(
            "note: the tables have {} to come, up to {last}: clocks of hosts are wrong, and questions take these days as \
             they are; treering archive list --where \"day > '{today}'\"",
            plural(to_come as u64, "day")
        );
    }
    let before = days.iter().filter(|day| **day < FIRST_DAY).count();
    if before > 0 {
        tell!(
            "note: the tables have {} before {FIRST_DAY}: clocks of hosts are wrong, or nothing tells when runs began; \
             treering archive list --where \"day < '{FIRST_DAY}'\"",
            plural(before as u64, "day")
        );
    }
}
