//! Facts about the run and its stacks that files of ours state in a place that other readers pass over.

use serde::{Deserialize, Serialize};
use treering_profile::{Profile, RecursionRule};

use crate::costs_only::is_flat;

/// The facts, in JSON.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct OurRun {
    /// Whether there are no stacks, so that total costs are not known.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    flat: bool,
}

impl OurRun {
    pub(crate) fn of(profile: &Profile) -> Self {
        Self { flat: is_flat(profile) }
    }

    /// As JSON.
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    /// States the facts in a profile that was read.
    pub(crate) fn state(&self, profile: &mut Profile) {
        if self.flat {
            profile.recursion = RecursionRule::Flat;
        }
    }
}
