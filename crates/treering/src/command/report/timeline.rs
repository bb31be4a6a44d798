//! The course of a run.

use treering_analysis::{Basis, TimeCourse};
use treering_profile::Profile;
use treering_report::Style;

use super::Report;
use crate::failure::Failure;
use crate::terminal;

impl Report {
    /// The costs of threads over time.
    pub(super) fn timeline(
        &self,
        profile: &Profile,
        basis: &Basis,
        style: &Style,
    ) -> Result<String, Failure> {
        let cells = treering_report::timeline_cells(style);
        let times = self.time.bounds(profile).map_err(|failure| failure.of(self.file.display()))?;
        let Some(course) = TimeCourse::of(profile, basis.metric, times, cells) else {
            let metric = &profile.metrics[basis.metric.index()].name;
            let file = self.file.display();
            if profile.run_cost(basis.metric) == 0 {
                return Err(Failure::new(format_args!("{file}: no {metric} is in the part to show")));
            }
            return Err(Failure::new(format_args!("{file}: the profile does not know when {metric} arose")));
        };
        Ok(match self.json {
            true => treering_report::timeline_json(profile, &course, basis),
            false => treering_report::timeline_text(profile, &course, basis, style, terminal::has_unicode()),
        })
    }
}
