//! `treering archive verify`.

use std::process::ExitCode;

use treering_fleet::Tables;
use treering_formats::trg;
use treering_report::plural;
use treering_temporary::Folder;

use super::compact::wrong;
use crate::command::bench::place::{Place, failure, warn};
use crate::failure::{Context as _, Failure, Outcome};
use crate::working::Working;

/// Read every file, and compare its content with its name
#[derive(Debug, clap::Args)]
pub struct Verify {
    #[command(flatten)]
    place: Place,
}

impl Verify {
    /// Does it.
    pub fn run(self) -> Outcome {
        // Not the user's copy of one in a bucket: every object is read.
        let all = Folder::create("archive").context("cannot make a temporary folder")?;
        let bucket = self.place.bucket();
        let mut archive = match &bucket {
            Some(bucket) => bucket.open_in(all.path())?,
            None => self.place.open_existing()?,
        };
        if bucket.is_some() {
            warn(&archive);
        }
        let mut bad = archive.problems().len() as u64;
        let runs = archive.select("true").map_err(failure)?;
        if let Some(bucket) = &bucket {
            bucket.fetch_profiles(&archive, &runs)?;
            bucket.fetch_tables(archive.folder())?;
        }
        let reading = Working::on(format!("reading {}", plural(runs.len() as u64, "run")));
        let mut profiles = 0_u64;
        for run in &runs {
            let manifest = archive.read(run).map_err(failure)?;
            for file in &manifest.profiles {
                let content = archive.profile(file).map_err(|error| error.to_string());
                let path = archive.profile_path(file);
                let read = content.and_then(|content| {
                    trg::read(&content).map(drop).map_err(|error| format!("{}: {error}", path.display()))
                });
                match read {
                    Ok(()) => profiles += 1,
                    Err(why) => {
                        tell!("warning: run {}: {why}", run.short());
                        bad += 1;
                    }
                }
            }
        }
        drop(reading);
        let tables = Tables::open(archive.folder()).map_err(wrong)?;
        for error in tables.verify() {
            tell!("warning: {error}");
            bad += 1;
        }
        tell!(
            "{}, {} and the tables of {} were read",
            plural(runs.len() as u64, "run"),
            plural(profiles, "profile"),
            plural(tables.runs().len() as u64, "run")
        );
        match bad {
            0 => Ok(ExitCode::SUCCESS),
            bad => Err(Failure::new(format_args!("{} damaged", plural(bad, "file")))
                .hint("take the files from a copy of the archive; tables are written anew by: treering archive compact --anew")),
        }
    }
}
