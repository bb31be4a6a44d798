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

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use treering_profile::{Benchmark, CallBias, Losses, MetricId, Unit, Weights};

    use super::*;

    #[test]
    fn the_page_names_every_key() {
        let mut sampled = Metric::sampled("time", Unit::Nanoseconds, MetricId::new(1), Some(1));
        sampled.sampling.as_mut().unwrap().weights =
            Some(Weights { squares: 2, per: 1, unseen: 3, hidden: 0, of_known_cost: false });
        let metadata = Metadata {
            losses: Losses { unknown: true, ..Losses::default() },
            call_bias: Some(CallBias::default()),
            benchmark: Some(Benchmark::default()),
            ..Metadata::default()
        };
        let metrics = vec![sampled, Metric::level("memory", Unit::Bytes)];
        let meta = Meta { metadata, recursion: RecursionRule::Full, metrics, runs: vec![Run::default()] };

        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/formats/trg.md");
        let page = std::fs::read_to_string(path).unwrap();
        let section = page.split("\n### ").find(|section| section.starts_with("META\n")).unwrap();
        let mut keys = Vec::new();
        collect_keys(&serde_json::to_value(&meta).unwrap(), &mut keys);
        assert!(keys.len() > 40, "{keys:?}");
        let missing: Vec<&String> =
            keys.iter().filter(|key| !section.contains(&format!("`{key}`"))).collect();
        assert!(missing.is_empty(), "the page lacks {missing:?}");
    }

    fn collect_keys(value: &Value, keys: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                for (key, value) in fields {
                    keys.push(key.clone());
                    collect_keys(value, keys);
                }
            }
            Value::Array(values) => values.iter().for_each(|value| collect_keys(value, keys)),
            _ => {}
        }
    }
}
