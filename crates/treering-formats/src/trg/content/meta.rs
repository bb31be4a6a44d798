//! META: what is small and changes shape most, as JSON.

use serde::{Deserialize, Serialize};
use treering_profile::{Metadata, Metric, Profile, RecursionRule, Run};

use crate::trg::{Damage, WriteError};

/// The content of a META frame.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Meta {
    pub(crate) metadata: Metadata,
    pub(crate) recursion: RecursionRule,
    pub(crate) metrics: Vec<Metric>,
    pub(crate) runs: Vec<Run>,
}

impl Meta {
    pub(crate) fn of(profile: &Profile) -> Self {
        Self {
            metadata: profile.metadata.clone(),
            recursion: profile.recursion,
            metrics: profile.metrics.clone(),
            runs: profile.runs.clone(),
        }
    }

    pub(crate) fn encode(&self) -> Result<Vec<u8>, WriteError> {
        serde_json::to_vec(self).map_err(|error| WriteError::Io(error.into()))
    }

    pub(crate) fn decode(payload: &[u8]) -> Result<Self, Damage> {
        serde_json::from_slice(payload).map_err(|error| Damage::Text(error.to_string()))
    }
}
