//! The tables as they are in JSON, of all versions.

use serde::Deserialize;
use serde_json::Value;

use crate::our_run::OurRun;

#[derive(Deserialize)]
pub(crate) struct File {
    pub(crate) meta: Meta,
    #[serde(default)]
    pub(crate) libs: Vec<Library>,
    #[serde(default)]
    pub(crate) threads: Vec<Thread>,
    /// Since version 56 texts, and since 60 all tables, are here instead of in threads.
    #[serde(default)]
    pub(crate) shared: Tables,
}

#[derive(Deserialize)]
pub(crate) struct Meta {
    /// Milliseconds between samples.
    #[serde(default)]
    pub(crate) interval: f64,
    #[serde(default)]
    pub(crate) product: Option<String>,
    #[serde(default, rename = "preprocessedProfileVersion")]
    pub(crate) version: Option<f64>,
    #[serde(default, rename = "sampleUnits")]
    pub(crate) units: Option<Units>,
    /// The metric that our own files name.
    #[serde(default)]
    pub(crate) treering: Option<String>,
    /// Whether the times of such a file are those since the start of the run.
    #[serde(default, rename = "treeringTimes")]
    pub(crate) treering_times: bool,
    #[serde(default, rename = "treeringRun")]
    pub(crate) our_run: Option<OurRun>,
}

#[derive(Deserialize)]
pub(crate) struct Units {
    #[serde(default, rename = "threadCPUDelta")]
    pub(crate) cpu: Option<String>,
}

#[derive(Deserialize)]
pub(crate) struct Library {
    #[serde(default)]
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) path: String,
}

#[derive(Deserialize)]
pub(crate) struct Thread {
    #[serde(default)]
    pub(crate) name: Option<String>,
    #[serde(default, rename = "processName")]
    pub(crate) process_name: Option<String>,
    #[serde(default)]
    pub(crate) pid: serde_json::Value,
    #[serde(default)]
    pub(crate) tid: serde_json::Value,
    #[serde(default)]
    pub(crate) samples: Samples,
    #[serde(default)]
    pub(crate) markers: Option<Markers>,
    /// Before version 41.
    #[serde(default)]
    pub(crate) libs: Vec<Library>,
    #[serde(flatten)]
    pub(crate) tables: Tables,
}

/// The type of the markers that programs set themselves (`performance.mark` of a page).
pub(crate) const USER_TIMING: &str = "UserTiming";
/// Their kind, of a moment; and ours, for the start of a program.
pub(crate) const MARK: &str = "mark";
pub(crate) const EXEC: &str = "exec";
/// The phase of a marker that is a moment.
pub(crate) const INSTANT: i64 = 0;

/// The markers of a thread, of which those of user timing are read.
#[derive(Default, Deserialize)]
pub(crate) struct Markers {
    #[serde(default)]
    pub(crate) data: Vec<Option<MarkerData>>,
    /// In milliseconds since the profile's start.
    #[serde(default, rename = "startTime")]
    pub(crate) start: Vec<Option<f64>>,
}

/// The fields of a marker that are read.
#[derive(Default, Deserialize)]
pub(crate) struct MarkerData {
    #[serde(default, rename = "type")]
    pub(crate) kind: Value,
    #[serde(default, rename = "entryType")]
    pub(crate) entry_type: Value,
    #[serde(default)]
    pub(crate) name: Value,
}

impl Thread {
    /// Whether the program has set marks in it.
    pub(crate) fn has_marks(&self) -> bool {
        let data = self.markers.iter().flat_map(|markers| &markers.data);
        data.flatten().any(|data| data.kind == USER_TIMING)
    }
}

#[derive(Default, Deserialize)]
pub(crate) struct Samples {
    #[serde(default)]
    pub(crate) stack: Vec<Option<i64>>,
    #[serde(default)]
    pub(crate) weight: Option<Vec<Option<f64>>>,
    #[serde(default, rename = "weightType")]
    pub(crate) weight_type: Option<String>,
    #[serde(default, rename = "threadCPUDelta")]
    pub(crate) cpu: Option<Vec<Option<f64>>>,
    /// When each was taken, in milliseconds since the profile's start.
    #[serde(default)]
    pub(crate) time: Option<Vec<f64>>,
    /// The same as differences, in newer files.
    #[serde(default, rename = "timeDeltas")]
    pub(crate) deltas: Option<Vec<f64>>,
}

impl Samples {
    /// When each sample was taken, in milliseconds, where all have a time.
    pub(crate) fn times(&self) -> Option<Vec<f64>> {
        let summed = |deltas: &Vec<f64>| {
            let mut now = 0.0;
            deltas
                .iter()
                .map(|delta| {
                    now += delta;
                    now
                })
                .collect()
        };
        let times = self.time.clone().or_else(|| self.deltas.as_ref().map(summed))?;
        let sound = times.len() == self.stack.len() && times.iter().all(|time| time.is_finite());
        sound.then_some(times)
    }
}

#[derive(Default, Deserialize)]
pub(crate) struct Tables {
    #[serde(default, rename = "stackTable")]
    pub(crate) stacks: Option<Stacks>,
    #[serde(default, rename = "frameTable")]
    pub(crate) frames: Option<Frames>,
    #[serde(default, rename = "funcTable")]
    pub(crate) functions: Option<Functions>,
    #[serde(default, rename = "resourceTable")]
    pub(crate) resources: Option<Resources>,
    #[serde(default)]
    pub(crate) sources: Option<Sources>,
    #[serde(default, rename = "stringArray", alias = "stringTable")]
    pub(crate) strings: Option<Vec<String>>,
}

#[derive(Deserialize)]
pub(crate) struct Stacks {
    pub(crate) frame: Vec<i64>,
    #[serde(default)]
    pub(crate) prefix: Vec<Option<i64>>,
    /// Since version 66, how many rows above the caller is; 0 for none.
    #[serde(default, rename = "prefixOffset")]
    pub(crate) offset: Option<Vec<i64>>,
}

#[derive(Deserialize)]
pub(crate) struct Frames {
    pub(crate) func: Vec<i64>,
    #[serde(default)]
    pub(crate) line: Vec<Option<f64>>,
    #[serde(default, rename = "inlineDepth")]
    pub(crate) inline_depth: Vec<Option<i64>>,
    /// Since version 70, instead of that of the resource.
    #[serde(default)]
    pub(crate) lib: Vec<Option<i64>>,
}

#[derive(Deserialize)]
pub(crate) struct Functions {
    pub(crate) name: Vec<i64>,
    #[serde(default, rename = "isJS")]
    pub(crate) is_script: Vec<Option<bool>>,
    #[serde(default)]
    pub(crate) resource: Vec<Option<i64>>,
    #[serde(default, rename = "fileName")]
    pub(crate) file: Vec<Option<i64>>,
    /// Since version 58, instead of the file.
    #[serde(default)]
    pub(crate) source: Vec<Option<i64>>,
    #[serde(default, rename = "lineNumber")]
    pub(crate) line: Vec<Option<f64>>,
}

#[derive(Deserialize)]
pub(crate) struct Resources {
    #[serde(default)]
    pub(crate) lib: Vec<Option<i64>>,
}

#[derive(Deserialize)]
pub(crate) struct Sources {
    #[serde(default)]
    pub(crate) filename: Vec<i64>,
}
