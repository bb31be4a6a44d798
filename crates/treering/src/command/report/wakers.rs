//! The wakers that ended waits.

use treering_analysis::{Basis, wait_metrics, waiting_places};
use treering_profile::{MetricId, Profile};
use treering_report::Style;

use super::Report;
use crate::failure::Failure;

impl Report {
    /// The time of waits.
    pub(super) fn waits(&self, profile: &Profile) -> Result<MetricId, Failure> {
        let metrics = wait_metrics(profile);
        let (time, _) = metrics.ok_or_else(|| {
            Failure::new(format_args!("{}: the profile has no waits", self.file.display()))
                .hint("treering record --off-cpu measures how long threads wait, where, and who ends that")
        })?;
        Ok(time)
    }

    /// Where threads waited, and who ended that.
    pub(super) fn wakers(&self, profile: &Profile, basis: &Basis, style: &Style) -> Result<String, Failure> {
        if profile.ended_waits.is_empty() && basis.run.cost > 0 {
            let failure = Failure::new(format_args!(
                "{}: the profile does not know who ended waits",
                self.file.display()
            ));
            let mut notes = profile.metadata.notes.iter();
            let reason = notes.find(|note| note.0.starts_with("who ended waits is not recorded"));
            return Err(match reason {
                Some(note) => failure.hint(&note.0),
                None => failure.hint("treering record --off-cpu records it, where the kernel allows"),
            });
        }
        let places = waiting_places(profile);
        let options = self.options(0.005, style);
        Ok(match self.json {
            true => treering_report::wakers_json(profile, &places, basis, &options),
            false => treering_report::wakers_text(profile, &places, basis, style, &options),
        })
    }
}
