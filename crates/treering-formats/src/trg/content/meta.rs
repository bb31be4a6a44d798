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

    /// Decodes a payload into at most `room` bytes of memory.
    pub(crate) fn decode(payload: &[u8], room: u64) -> Result<Self, Damage> {
        if most_memory(payload) > room {
            return Err(Damage::TooMuch);
        }
        serde_json::from_slice(payload).map_err(|error| Damage::Text(error.to_string()))
    }
}

/// No JSON of these bytes takes more memory: each object, and each value of a list, is announced by a
/// byte of its own.
fn most_memory(payload: &[u8]) -> u64 {
    const OBJECT: usize =
        if size_of::<Run>() > size_of::<Metric>() { size_of::<Run>() } else { size_of::<Metric>() };
    const VALUE: usize = size_of::<(String, String)>();
    let announced = payload.iter().map(|byte| match byte {
        b'{' => OBJECT,
        b',' | b'[' => VALUE,
        _ => 1,
    });
    // A list that grows has up to twice the room it needs, and is copied from one of half of it.
    announced.map(|bytes| bytes as u64 * 3).sum()
}
