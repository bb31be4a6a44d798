//! Notes on the surroundings of a program: those that were held, and those that it saw all the same.

use std::collections::{BTreeMap, BTreeSet};

use nix::sys::resource::{Resource, getrlimit};
use treering_profile::BranchKind;
use treering_report::plural;
use treering_translator::{Level, ProgramCounts};

/// The limit of the stack of a program whose surroundings are held.
const STACK: u64 = 8 << 20;

/// The note on what `--fixed` holds.
pub(super) fn note(passed: usize, all: usize) -> String {
    format!(
        "held: addresses, the time (from 2026-01-01 on, by being read and by waiting), random numbers, the stack's limit \
         (8 MiB), the environment ({passed} of {all} variables; --fixed=NAME passes one more)"
    )
}

/// The real surroundings that programs saw.
#[derive(Debug, Default)]
pub(super) struct Escaped {
    /// The executed instructions beyond the level of the processor that they saw, by the feature that they need.
    beyond: BTreeMap<String, u64>,
    seen: BTreeSet<String>,
    /// Whether one asked for random numbers of which it may have made keys.
    drew_random: bool,
    /// The threads beside the first ones of processes.
    threads: usize,
    signals: u64,
}

impl Escaped {
    /// Adds a program.
    pub(super) fn add(&mut self, program: &ProgramCounts) {
        for (feature, count) in program.executed_beyond() {
            *self.beyond.entry(feature.to_owned()).or_insert(0) += count;
        }
        self.seen.extend(program.held.not_held.iter().cloned());
        self.drew_random |= program.held.drew_random;
        self.threads += program.threads.iter().filter(|thread| thread.tid != thread.pid).count();
        let branches = program.threads.iter().flat_map(|thread| &thread.branches);
        let signals = branches.filter(|branch| branch.kind == BranchKind::Signal);
        self.signals += signals.map(|branch| branch.count).sum::<u64>();
    }

    /// The notes. `is_fixed`: whether this run is to be the same as others.
    pub(super) fn notes(&self, level: Option<Level>, is_fixed: bool) -> Vec<String> {
        let mut notes = Vec::new();
        if self.drew_random {
            notes.push("the random numbers were held: keys made in this run are no secret".to_owned());
        }
        if let Some(level) = level {
            notes.extend(self.beyond.iter().map(|(feature, count)| {
                format!(
                    "not held: {count} executed instructions need {feature}, which {level} has not: the program uses it \
                     unasked, and runs otherwise, or not at all, on a processor without it"
                )
            }));
        }
        notes.extend(self.seen.iter().map(|how| format!("not held: {how}")));
        let most = getrlimit(Resource::RLIMIT_STACK).map_or(u64::MAX, |(_, most)| most);
        if is_fixed && most < STACK {
            notes.push(format!("not held: the stack's limit, which may be at most {} KiB here", most >> 10));
        }
        if is_fixed && self.threads > 0 {
            notes.push(format!("not held: the order in which its {} threads ran", self.threads + 1));
        }
        if is_fixed && self.signals > 0 {
            notes.push(format!("not held: the time of {}", plural(self.signals, "signal")));
        }
        notes
    }
}
