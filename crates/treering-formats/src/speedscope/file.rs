//! The file as it is in JSON. The parts named `treering` are ours: other readers pass over them.

use serde::{Deserialize, Serialize};
use treering_profile::{Metric, RecursionRule};

use crate::our_run::OurRun;

#[derive(Deserialize)]
pub(crate) struct File {
    pub(crate) shared: Shared,
    pub(crate) profiles: Vec<Profile>,
    pub(crate) name: Option<String>,
    #[serde(rename = "activeProfileIndex")]
    pub(crate) active: Option<f64>,
    pub(crate) exporter: Option<String>,
    pub(crate) treering: Option<Ours>,
}

#[derive(Deserialize)]
pub(crate) struct Shared {
    pub(crate) frames: Vec<Frame>,
}

#[derive(Deserialize)]
pub(crate) struct Frame {
    pub(crate) name: String,
    pub(crate) file: Option<String>,
    pub(crate) line: Option<f64>,
    /// The kind, as its stored number.
    pub(crate) kind: Option<u8>,
    /// The path of the module.
    pub(crate) module: Option<String>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(crate) enum Profile {
    Sampled {
        name: String,
        unit: Unit,
        samples: Vec<Vec<u64>>,
        weights: Vec<f64>,
        #[serde(default, rename = "startValue")]
        start: f64,
        /// In our files, the slot of time of each sample; those without frames are the time between others.
        slots: Option<Vec<u32>>,
        treering: Option<OurProfile>,
    },
    Evented {
        name: String,
        unit: Unit,
        events: Vec<Event>,
        #[serde(default, rename = "startValue")]
        start: f64,
        #[serde(rename = "endValue")]
        end: f64,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Unit {
    None,
    Nanoseconds,
    Microseconds,
    Milliseconds,
    Seconds,
    Bytes,
}

#[derive(Deserialize)]
pub(crate) struct Event {
    #[serde(rename = "type")]
    pub(crate) kind: EventKind,
    pub(crate) frame: u64,
    pub(crate) at: f64,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
pub(crate) enum EventKind {
    #[serde(rename = "O")]
    Open,
    #[serde(rename = "C")]
    Close,
}

/// The parts of our files that the format has no place for.
#[derive(Deserialize, Serialize)]
pub(crate) struct Ours {
    pub(crate) metrics: Vec<Metric>,
    pub(crate) recursion: RecursionRule,
    /// Process number, process name, thread number, thread name.
    pub(crate) threads: Vec<(u32, String, u32, String)>,
    /// The length of a slot of time in nanoseconds, where it is known when costs arose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) slot_ns: Option<u64>,
    #[serde(default)]
    pub(crate) run: Option<OurRun>,
}

/// The metric and the thread that a profile of the file shows.
#[derive(Clone, Copy, Deserialize, Serialize)]
pub(crate) struct OurProfile {
    pub(crate) metric: usize,
    pub(crate) thread: usize,
}
