//! How a profile was made, and what was lost or estimated on the way.

use std::collections::BTreeMap;

/// How a profile was made, and what was lost or estimated on the way.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Metadata {
    /// The collector: `treering record`, or the foreign format it was read from.
    pub collector: String,
    /// The version of the program that wrote it.
    pub version: String,
    /// The machine: `host`, `kernel`, `cpu`, `cpus` and the like.
    pub machine: BTreeMap<String, String>,
    /// Parameters of the collection: `frequency`, `stacks` and the like.
    pub parameters: BTreeMap<String, String>,
    /// Lost and unresolved samples and events.
    pub losses: Losses,
    /// Notes on how far to trust the numbers, each said once.
    pub notes: Vec<Note>,
    /// Whether the recorder ended properly; when not, the last second may be missing and
    /// addresses may be unresolved.
    pub unfinished: bool,
    /// The cost of measuring a call, where calls were timed and it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_bias: Option<CallBias>,
    /// The program's description of itself as a benchmark.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub benchmark: Option<Benchmark>,
}

impl Metadata {
    /// The parameter that names the metric to show where none is asked for, as other tools' files
    /// state it.
    pub const DEFAULT_METRIC: &str = "default metric";

    /// The parameter that says whether the cost of measuring was taken out of the costs, for files of formats that
    /// state no such cost.
    pub const MEASURING: &str = "cost of measuring";

    /// The parameter that names, with ` | ` between them, the metrics of which not every part of a merged profile has both
    /// costs and calls: costs divided by calls would be no averages.
    pub const CALLS_APART: &str = "metrics without averages";

    /// Noted where costs of several runs stand under the first, so that none can be told from the others.
    pub const RUNS_ADDED_UP: &str = "threads of equal name were added up over all runs: each stands under the run and \
        the numbers of its first, and intervals leave out how runs differ";

    /// States that another tool collected the profile, whose files do not say what it lost.
    pub fn set_foreign(&mut self, collector: impl Into<String>) {
        self.collector = collector.into();
        self.losses.unknown = true;
    }

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

/// Losses, as counts of samples unless said otherwise.
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
    /// Threads and processes that were made during the recording and in which no sample was taken.
    pub unsampled_threads: u64,
    /// Their cost, in the unit of the first metric: the samples of threads like them stand for
    /// it, if there are any.
    pub unsampled_cost: u64,
    /// How much of that no sample stands for, since there is none of a thread like them.
    pub unsampled_groups_cost: u64,
    /// Threads of which the kernel did not tell what they cost.
    pub unknown_threads: u64,
    /// Processor time in nanoseconds that went by while threads and processes were made and ended,
    /// where no event counts yet or any more.
    pub unseen_cpu_ns: u64,
    /// Activations that were still open when the profile ended.
    pub open_activations: u64,
    /// Leaves without an enter that they fit; they had no effect.
    pub unbalanced_leaves: u64,
    /// Timed activations of leaves in which others ended. They are calls, but their time, which
    /// would count twice, was not used.
    pub branched_leaves: u64,
    /// Times that a clock showed less than before; the time between was taken as 0.
    pub clock_steps_back: u64,
    /// Call events that were not recorded, for want of memory or room in a file.
    pub dropped_events: u64,
    /// Activations left by an exception or a long jump. Nothing is lost with them: they count up
    /// to where they were left.
    pub unwound_activations: u64,
    /// Whether the source is a file of another tool that does not say what was lost: a count of 0 means
    /// nothing then.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unknown: bool,
}

impl Losses {
    /// Adds what another run lost.
    pub fn add(&mut self, other: &Self) {
        self.samples = self.samples.saturating_add(other.samples);
        self.lost_samples = self.lost_samples.saturating_add(other.lost_samples);
        self.truncated_stacks = self.truncated_stacks.saturating_add(other.truncated_stacks);
        self.unresolved_samples = self.unresolved_samples.saturating_add(other.unresolved_samples);
        self.throttled = self.throttled.saturating_add(other.throttled);
        self.unsampled_threads = self.unsampled_threads.saturating_add(other.unsampled_threads);
        self.unsampled_cost = self.unsampled_cost.saturating_add(other.unsampled_cost);
        self.unsampled_groups_cost = self.unsampled_groups_cost.saturating_add(other.unsampled_groups_cost);
        self.unknown_threads = self.unknown_threads.saturating_add(other.unknown_threads);
        self.unseen_cpu_ns = self.unseen_cpu_ns.saturating_add(other.unseen_cpu_ns);
        self.open_activations = self.open_activations.saturating_add(other.open_activations);
        self.unbalanced_leaves = self.unbalanced_leaves.saturating_add(other.unbalanced_leaves);
        self.branched_leaves = self.branched_leaves.saturating_add(other.branched_leaves);
        self.clock_steps_back = self.clock_steps_back.saturating_add(other.clock_steps_back);
        self.dropped_events = self.dropped_events.saturating_add(other.dropped_events);
        self.unwound_activations = self.unwound_activations.saturating_add(other.unwound_activations);
        self.unknown |= other.unknown;
    }

    /// Whether any of the counts says that something was lost.
    pub fn any(&self) -> bool {
        *self != Self { samples: self.samples, unknown: self.unknown, ..Self::default() }
    }
}

/// The cost of measuring one call: an enter and its leave, in nanoseconds.
///
/// Part of it falls between the two readings of the clock, into the measured time of the function
/// itself; the rest outside of them, into its caller's. Measured around work, since a processor
/// hides some of it there; the same measured around nothing is the most that it can be.
///
/// A function's first work is begun before the clock was read, so that less than nothing may
/// fall inside: then so much of the function's own time is in its caller's.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct CallBias {
    /// The part that falls into the function's own time; negative where the caller's holds some of it.
    pub inside_ns: f64,
    /// The part that falls into the caller's.
    pub outside_ns: f64,
    /// The part that falls into the function's own time when it does nothing.
    pub empty_inside_ns: f64,
    /// The part that falls into the caller's when the function does nothing.
    pub empty_outside_ns: f64,
    /// How far repeated measurements of `inside_ns + outside_ns` lie apart.
    pub spread_ns: f64,
}

impl CallBias {
    /// The cost of a call in all.
    pub fn pair_ns(&self) -> f64 {
        self.inside_ns + self.outside_ns
    }

    /// Whether every number is finite, and none negative but the part inside, by no more than the
    /// part outside.
    pub fn is_sound(&self) -> bool {
        let Self { inside_ns, outside_ns, empty_inside_ns, empty_outside_ns, spread_ns } = *self;
        let numbers = [self.pair_ns(), outside_ns, empty_inside_ns, empty_outside_ns, spread_ns];
        inside_ns.is_finite() && numbers.iter().all(|number| number.is_finite() && *number >= 0.0)
    }

    /// A bias for calls of which some had this one and some the other: the least that is certain
    /// of both, with a spread that reaches up to the greater. The order does not matter.
    pub fn join(&self, other: &Self) -> Self {
        let pair_ns = self.pair_ns().min(other.pair_ns());
        let inside_ns = nearer_to_zero(self.inside_ns, other.inside_ns);
        let upper = |bias: &Self| bias.pair_ns() + bias.spread_ns;
        Self {
            inside_ns,
            outside_ns: pair_ns - inside_ns,
            empty_inside_ns: self.empty_inside_ns.max(other.empty_inside_ns),
            empty_outside_ns: self.empty_outside_ns.max(other.empty_outside_ns),
            spread_ns: (upper(self).max(upper(other)) - pair_ns).max(0.0),
        }
    }
}

/// The common part of two numbers: the nearer to 0 of two with the same sign, or else 0.
fn nearer_to_zero(a: f64, b: f64) -> f64 {
    if a < 0.0 { a.max(b).min(0.0) } else { a.min(b).max(0.0) }
}

/// A program's description of itself as a benchmark.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Benchmark {
    /// Its name.
    pub name: String,
    /// The purpose, in a sentence.
    pub description: String,
    /// Its parameters: names and values, in the order of the program.
    pub parameters: Vec<(String, String)>,
    /// Its results: names and values, in the order of the program.
    pub results: Vec<(String, String)>,
}
