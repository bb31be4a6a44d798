//! The runs that a command is about.

use treering_archive::{Archive, Id, Manifest};
use treering_formats::trg;
use treering_profile::{Profile, merge_runs};
use treering_report::plural;

use crate::command::bench::place::{Place, failure};
use crate::failure::Failure;
use crate::nameless::note_joined;
use crate::working::Working;

/// Runs of an archive.
#[derive(Clone, Debug, clap::Args)]
pub struct Chosen {
    /// Only runs for which this holds, in SQL: "project = 'solve' and day >= '2026-11-01'"
    #[arg(long = "where", value_name = "CONDITION")]
    condition: Option<String>,
    #[command(flatten)]
    pub place: Place,
}

impl Chosen {
    /// The archive, and the runs, the latest first.
    pub fn runs(&self) -> Result<(Archive, Vec<Id>), Failure> {
        let mut archive = self.place.open_copy()?;
        let condition = self.condition.as_deref().unwrap_or("true");
        let runs = archive.select(condition).map_err(failure)?;
        Ok((archive, runs))
    }

    /// The merged profiles of the runs. Those without a profile and those that cannot be read are told of.
    pub fn profile(&self) -> Result<Profile, Failure> {
        let (archive, runs) = self.runs()?;
        if let Some(bucket) = self.place.bucket() {
            bucket.fetch_profiles(&archive, &runs)?;
        }
        let reading = Working::on(format!("reading {}", plural(runs.len() as u64, "run")));
        let (mut profiles, mut without, mut unread) = (Vec::new(), 0, 0);
        for run in &runs {
            match first_profile(&archive, run) {
                Ok(Some((_, profile))) => profiles.push(profile),
                Ok(None) => without += 1,
                Err(failure) => {
                    unread += 1;
                    tell!("warning: {failure}; run {} is left out", run.short());
                }
            }
        }
        drop(reading);
        if without > 0 {
            tell!("note: {} without a profile left out", plural(without, "run"));
        }
        if profiles.is_empty() {
            let chosen = plural(runs.len() as u64, "run");
            return Err(Failure::new(format_args!("no profile to show: the condition holds for {chosen}"))
                .hint("treering archive list names all runs"));
        }
        let arcs = profiles.iter().filter(|profile| profile.is_arcs_only()).count();
        if arcs > 0 && arcs < profiles.len() {
            let message =
                format!("{arcs} of {} profiles have arcs only, the others have stacks", profiles.len());
            return Err(Failure::new(message)
                .hint("choose runs of one kind, as by --where \"collector = 'treering record'\""));
        }
        let _merging = Working::on(format!("merging {}", plural(profiles.len() as u64, "profile")));
        let profiles: Vec<&Profile> = profiles.iter().collect();
        let mut merged = merge_runs(&profiles);
        note_joined(&mut merged, &profiles);
        if unread > 0 {
            let runs = plural(unread, "run");
            merged.metadata.note(format!("{runs} of the selection could not be read, and left out"));
        }
        Ok(merged)
    }
}

/// The first profile of a run, if it has one.
pub fn first_profile(archive: &Archive, run: &Id) -> Result<Option<(Manifest, Profile)>, Failure> {
    let manifest = archive.read(run).map_err(failure)?;
    let Some(file) = manifest.profiles.first() else { return Ok(None) };
    let content = archive.profile(file).map_err(failure)?;
    let (profile, _) = trg::read(&content)
        .map_err(|error| Failure::new(format_args!("{}: {error}", archive.profile_path(file).display())))?;
    Ok(Some((manifest, profile)))
}
