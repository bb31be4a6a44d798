//! Groups of threads that are alike.

use std::collections::HashMap;

use super::ThreadSampling;

/// A thread that used more than this many intervals has enough samples to stand alone.
const ALONE_FROM: u64 = 20;

/// The use of a group's threads, and related facts.
#[derive(Clone, Debug, Default)]
pub(super) struct Stratum {
    /// The use of its threads: exact, or the weight of their samples.
    pub(super) used: u64,
    /// How much of that no sample can fall into.
    pub(super) unseen: u64,
    pub(super) weight: u64,
    /// Sums of squares of the weights of samples that differ from each other.
    pub(super) squares: f64,
    /// The same where samples that cannot differ count as one.
    pub(super) clustered: f64,
    /// The first of its threads, as an index of the tasks.
    pub(super) example: usize,
}

impl ThreadSampling {
    /// The groups of threads that are alike, and by task which it belongs to.
    pub(super) fn strata(&self) -> (Vec<Stratum>, Vec<usize>) {
        /// A thread that stands alone, or the name of a process and whether it is its first thread.
        #[derive(PartialEq, Eq, Hash)]
        enum Key {
            Alone(usize),
            Named(Option<u32>, bool),
        }
        let mut known = HashMap::new();
        let mut strata: Vec<Stratum> = Vec::new();
        let mut of_task = Vec::with_capacity(self.tasks.len());
        for (at, task) in self.tasks.iter().enumerate() {
            let used = task.count.unwrap_or(task.weight);
            let is_first_of_all = at < self.own && self.own == 1;
            let key = if used >= ALONE_FROM * self.mean || is_first_of_all {
                Key::Alone(at)
            } else {
                Key::Named(task.name, task.pid == task.tid)
            };
            let stratum = *known.entry(key).or_insert_with(|| {
                strata.push(Stratum { example: at, ..Stratum::default() });
                strata.len() - 1
            });
            let of = &mut strata[stratum];
            of.used += used;
            of.unseen += task.unseen.min(used);
            of.weight += task.weight;
            of_task.push(stratum);
        }
        self.add_squares(&mut strata, &of_task);
        (strata, of_task)
    }
}
