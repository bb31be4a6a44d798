//! The line of a list that stands for a run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::id::Id;
use crate::manifest::{Manifest, Unit};
use crate::moment::Moment;

/// A run as a list states it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The run.
    pub run: Id,
    /// When it began.
    pub started: Moment,
    /// The program.
    pub program: String,
    /// Its parameters.
    pub parameters: BTreeMap<String, String>,
    /// The name of its version.
    pub version: String,
    /// The commit of its version.
    pub commit: Option<String>,
    /// Whether the work tree had changes.
    pub dirty: bool,
    /// The machine's key.
    pub machine: String,
    /// The machine's name.
    pub host: String,
    /// The process's rank in a parallel program.
    pub rank: Option<u32>,
    /// The session.
    pub session: String,
    /// The measurements, by name.
    pub metrics: BTreeMap<String, MetricSummary>,
    /// Whether it has a profile.
    pub has_profile: bool,
    /// The collector of its first profile.
    pub collector: Option<String>,
}

/// A metric as a list states it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MetricSummary {
    /// The unit of the median.
    pub unit: Unit,
    /// The median of all rounds.
    pub median: f64,
    /// The number of rounds.
    pub rounds: usize,
}

impl Summary {
    /// The summary of a run.
    pub(crate) fn of(run: Id, manifest: &Manifest) -> Self {
        let metrics = manifest.samples.iter().filter_map(|(name, measured)| {
            let median = median(&measured.values)?;
            Some((name.clone(), MetricSummary { unit: measured.unit, median, rounds: measured.values.len() }))
        });
        Self {
            run,
            started: manifest.started,
            program: manifest.program.clone(),
            parameters: manifest.parameters.clone(),
            version: manifest.version.name.clone(),
            commit: manifest.version.commit.clone(),
            dirty: manifest.version.dirty == Some(true),
            machine: manifest.machine.key(),
            host: manifest.machine.host.clone(),
            rank: manifest.rank,
            session: manifest.session.clone(),
            metrics: metrics.collect(),
            has_profile: !manifest.profiles.is_empty(),
            collector: manifest.profiles.first().map(|profile| profile.made_by.clone()),
        }
    }

    /// Whether a user's name for the program means this one: the whole name, or its first word, with or without the folder.
    pub fn is_called(&self, name: &str) -> bool {
        let first = self.program.split(' ').next().unwrap_or_default();
        let file = first.rsplit('/').next().unwrap_or_default();
        [self.program.as_str(), first, file].contains(&name)
    }
}

/// The middle one of some values, or the mean of both in the middle; nothing of none.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (lower, upper) = (sorted.get(sorted.len().checked_sub(1)? / 2)?, sorted.get(sorted.len() / 2)?);
    Some(lower / 2.0 + upper / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::example;

    #[test]
    fn a_summary_has_the_median_of_all_rounds() {
        let summary = Summary::of(Id::of(b""), &example("lua records.lua", 7));
        let of = |name: &str| summary.metrics[name].median;
        assert_eq!((of("cpu"), of("memory")), (2.5e6, 6144.0));
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn a_program_is_called_by_its_name_or_by_its_first_word() {
        let summary = Summary::of(Id::of(b""), &example("./bin/lua records.lua", 7));
        let is_called = ["./bin/lua records.lua", "./bin/lua", "lua", "records.lua", "l", ""]
            .map(|name| summary.is_called(name));
        assert_eq!(is_called, [true, true, true, false, false, false]);
    }
}
