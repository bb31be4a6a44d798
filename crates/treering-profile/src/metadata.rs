//! How a profile was made, and what was lost or estimated on the way.

use std::collections::BTreeMap;

/// How a profile was made, and what was lost or estimated on the way.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Metadata {
    /// What made it: `treering record`, or the foreign format it was read from.
    pub collector: String,
    /// The version of the program that wrote it.
    pub version: String,
    /// The machine: `host`, `kernel`, `cpu`, `cpus` and the like.
    pub machine: BTreeMap<String, String>,
    /// Parameters of the collection: `frequency`, `stacks` and the like.
    pub parameters: BTreeMap<String, String>,
    /// What was lost or could not be resolved.
    pub losses: Losses,
    /// What a reader must know to trust the numbers, each said once.
    pub notes: Vec<Note>,
    /// Whether the recorder ended properly; when not, the last second may be missing and
    /// addresses may be unresolved.
    pub unfinished: bool,
}

impl Metadata {
    /// Adds a note unless it is there already.
    pub fn note(&mut self, text: impl Into<String>) {
        let note = Note(text.into());
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }
}

/// One sentence that a reader must know to trust the numbers; lower case, no full stop.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct Note(pub String);

/// What was lost, truncated or unresolved, as counts of samples unless said otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Losses {
    /// Samples that were taken and kept.
    pub samples: u64,
    /// Samples that the kernel or the recorder dropped.
    pub lost_samples: u64,
    /// Samples whose stack ended before the thread's first function.
    pub truncated_stacks: u64,
    /// Samples whose own address could not be resolved to a function.
    pub unresolved_samples: u64,
    /// Times that the kernel stopped sampling for a while because it cost too much.
    pub throttled: u64,
    /// Activations that were still open when the profile ended.
    pub open_activations: u64,
}

impl Losses {
    /// Adds what another run lost.
    pub fn add(&mut self, other: &Self) {
        self.samples += other.samples;
        self.lost_samples += other.lost_samples;
        self.truncated_stacks += other.truncated_stacks;
        self.unresolved_samples += other.unresolved_samples;
        self.throttled += other.throttled;
        self.open_activations += other.open_activations;
    }
}
