//! Facts about the run and its stacks that Treering writes where other readers pass over them.

use serde::{Deserialize, Serialize};
use treering_profile::{Profile, RecursionRule, Run};

use crate::costs_only::is_flat;

/// The facts, in JSON.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct OurRun {
    /// Whether there are no stacks, so that total costs are not known.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    flat: bool,
    /// The command of the first run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    command: Vec<String>,
    #[serde(skip_serializing_if = "is_zero")]
    start_unix_ns: u64,
    #[serde(skip_serializing_if = "is_zero")]
    duration_ns: u64,
}

/// 0 stands for what is not known.
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl OurRun {
    pub(crate) fn of(profile: &Profile) -> Self {
        let run = profile.runs.first().cloned().unwrap_or_default();
        let Run { command, start_unix_ns, duration_ns, .. } = run;
        Self { flat: is_flat(profile), command, start_unix_ns, duration_ns }
    }

    /// As JSON.
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    /// States the facts in a profile that was read.
    pub(crate) fn state(&self, profile: &mut Profile) {
        if let Some(run) = profile.runs.first_mut() {
            run.command.clone_from(&self.command);
            (run.start_unix_ns, run.duration_ns) = (self.start_unix_ns, self.duration_ns);
        }
        if self.flat {
            profile.recursion = RecursionRule::Flat;
        }
    }
}
