//! The description of a run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::id::Id;
use crate::machine::Machine;
use crate::moment::Moment;
use crate::word::Word;

/// The format of manifests that this version writes; those above it are refused by name.
pub const FORMAT: u32 = 1;

/// The description of a run: all that is known of it but its profile.
///
/// A run is one program with one set of parameters, in one version, measured in one or more rounds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// The format of this manifest.
    #[serde(rename = "treering_run")]
    pub format: u32,
    /// The name of the program: that of a suite, or the command without its parameters.
    pub program: String,
    /// The command as it was run.
    pub command: Vec<Word>,
    /// The folder in which it was run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<Word>,
    /// The parameters, by name.
    #[serde(default)]
    pub parameters: BTreeMap<String, String>,
    /// The results that the program stated, in its order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<Named>,
    /// The version of the program.
    #[serde(default)]
    pub version: Version,
    /// The machine.
    #[serde(default)]
    pub machine: Machine,
    /// The process's rank in a parallel program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
    /// When the first round began.
    pub started: Moment,
    /// The runs that were measured in turns with this one have the same session.
    #[serde(default)]
    pub session: String,
    /// The clocks that the samples are of.
    #[serde(default)]
    pub clock: String,
    /// The samples, one for each round, by the name of what was measured; see [`metric`].
    pub samples: BTreeMap<String, Measured>,
    /// The profiles, each made in another way.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub profiles: Vec<ProfileFile>,
    /// The input that was made for the program, and kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Id>,
    /// A hash of what the program printed, if it was the same in every round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// The tool that measured, if another one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported_from: Option<String>,
    /// Sentences that a reader must know to trust the numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The version of Treering that wrote it.
    #[serde(default)]
    pub written_by: String,
}

/// The names of what is measured of every run.
pub mod metric {
    /// Processor time of the process and its children, in nanoseconds.
    pub const CPU: &str = "cpu";
    /// Time by the clock on the wall, in nanoseconds.
    pub const WALL: &str = "wall";
    /// The most memory that was resident, in bytes.
    pub const MEMORY: &str = "memory";
    /// Instructions, counted exactly.
    pub const INSTRUCTIONS: &str = "instructions";
}

/// A name and a value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Named {
    /// The name.
    pub name: String,
    /// The value, as the program wrote it.
    pub value: String,
}

/// The version of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Version {
    /// The name by which it is listed and chosen.
    pub name: String,
    /// The commit, where the program is in a repository.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Whether the work tree had changes that are in no commit; nothing without a repository.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dirty: Option<bool>,
    /// When the commit was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub committed: Option<Moment>,
}

/// The samples of one metric.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The unit of the values.
    pub unit: Unit,
    /// The value of each round.
    pub values: Vec<f64>,
}

/// The unit of samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// Nanoseconds.
    Ns,
    /// Bytes.
    Bytes,
    /// A number of something.
    #[default]
    Count,
}

/// The profile of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfileFile {
    /// The name of the file: its content.
    pub sha256: Id,
    /// How long it is.
    pub bytes: u64,
    /// The command that made it: `count --tree`, or `the program itself`.
    pub made_by: String,
}

impl Manifest {
    /// The file of a manifest. Equal manifests have equal files.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        // Every part has a form in JSON, and memory is written to.
        let mut bytes = serde_json::to_vec_pretty(self).unwrap_or_default();
        bytes.push(b'\n');
        bytes
    }

    /// The version's name, with a mark if the work tree had changes.
    pub fn version_text(&self) -> String {
        let mark = if self.version.dirty == Some(true) { "*" } else { "" };
        format!("{}{mark}", self.version.name)
    }

    /// The number of rounds.
    pub fn rounds(&self) -> usize {
        self.samples.values().map(|measured| measured.values.len()).max().unwrap_or(0)
    }
}

#[cfg(test)]
pub(crate) fn example(program: &str, at: u64) -> Manifest {
    let measured = |unit, values: &[f64]| Measured { unit, values: values.to_vec() };
    Manifest {
        program: program.to_owned(),
        command: vec![Word::from(program), Word::from("8000")],
        parameters: BTreeMap::from([("n".to_owned(), "8000".to_owned())]),
        version: Version { name: "5.4.8".to_owned(), dirty: Some(true), ..Version::default() },
        started: Moment(at),
        samples: BTreeMap::from([
            (metric::CPU.to_owned(), measured(Unit::Ns, &[3e6, 1e6, 2.5e6])),
            (metric::MEMORY.to_owned(), measured(Unit::Bytes, &[4096.0, 8192.0])),
        ]),
        ..Manifest::default()
    }
}
