//! The threads of a recording: how much use their samples stand for, and how much no sample stands for.
//!
//! Some have events of their own, whose intervals are drawn again and again; those that were made later inherit an event
//! with an interval for life.
//!
//! Samples in lives as short as the interval between samples are few and unequal, while the kernel tells exactly how
//! much each thread used. So the costs of groups of threads are scaled to their use, and samples only tell how that
//! divides among functions (stratified sampling with ratio estimates; W. G. Cochran, "Sampling Techniques", 1977,
//! chapters 5 and 6). The numbers that intervals of confidence need are kept with the profile; see
//! [`Weights`](treering_profile::Weights).

mod confidence;
mod scaling;
mod stratum;

use std::collections::HashMap;

use treering_profile::{NodeId, ThreadId};

use crate::interval_distribution::IntervalDistribution;

/// The threads of a program, with the samples of one event in them.
#[derive(Debug)]
pub(crate) struct ThreadSampling {
    intervals: IntervalDistribution,
    /// The mean interval.
    mean: u64,
    /// Whether the event's samples in a thread stand for exactly the event's count.
    is_exact: bool,
    /// Whether the event counts nanoseconds.
    is_time: bool,
    /// The threads; those with events of their own come first.
    tasks: Vec<Task>,
    /// How many threads have events of their own.
    own: usize,
    /// The task of every thread that runs, and of those that ended lately.
    by_tid: HashMap<u32, usize>,
    streams: HashMap<u64, Stream>,
    names: Vec<String>,
    /// The task of every thread of the profile.
    of_thread: HashMap<ThreadId, usize>,
    /// By node: the sum of the squares of its samples' weights, over the mean interval.
    squares: Vec<f64>,
    /// The design effect of losses; 1 for none.
    losses: f64,
    /// How many counts of ended threads the kernel reported.
    counts: u64,
    /// How many threads of the last few lived shortly, as a running share.
    short: f64,
}

/// A thread.
#[derive(Clone, Copy, Debug, Default)]
struct Task {
    pid: u32,
    tid: u32,
    /// The name of its process, an index of `names`, once it has ended.
    name: Option<u32>,
    /// The thread with events of its own that it descends from, as an index of the tasks.
    origin: Option<usize>,
    /// Whether intervals were drawn as for short lives when it was made.
    wide: bool,
    ended: bool,
    /// Its use, if the kernel reported it.
    count: Option<u64>,
    /// Its use when the recording ended, if it has not ended before.
    count_so_far: Option<u64>,
    /// How much of that no sample can fall into.
    unseen: u64,
    weight: u64,
}

/// An event in a thread that inherited it.
#[derive(Clone, Copy, Debug)]
struct Stream {
    task: usize,
    interval: u64,
    samples: u64,
}

/// A thread that used less than this many intervals is short-lived.
const SHORT_LIFE: u64 = 3;

/// The use of threads without samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unsampled {
    /// Threads without a sample.
    pub(crate) tasks: u64,
    /// Their use.
    pub(crate) cost: u64,
    /// The part of that use for which no sample of a similar thread stands either.
    pub(crate) without_group: u64,
    /// Threads whose use the kernel did not report.
    pub(crate) unknown: u64,
    /// The use of all threads together, if it is known for all.
    pub(crate) used: Option<u64>,
}

impl ThreadSampling {
    /// An event that was opened on the threads `own`, each with its process.
    pub(crate) fn new(
        intervals: IntervalDistribution,
        mean: u64,
        is_exact: bool,
        is_time: bool,
        own: &[(u32, u32)],
    ) -> Self {
        let task =
            |(at, &(pid, tid)): (usize, &(u32, u32))| Task { pid, tid, origin: Some(at), ..Task::default() };
        Self {
            intervals,
            mean,
            is_exact,
            is_time,
            tasks: own.iter().enumerate().map(task).collect(),
            own: own.len(),
            by_tid: own.iter().enumerate().map(|(at, &(_, tid))| (tid, at)).collect(),
            streams: HashMap::new(),
            names: Vec::new(),
            of_thread: HashMap::new(),
            squares: Vec::new(),
            losses: 1.0,
            counts: 0,
            short: 0.0,
        }
    }

    /// Notes that a thread was made by another.
    pub(crate) fn fork(&mut self, pid: u32, tid: u32, parent_tid: u32) {
        let wide = self.live_shortly();
        let origin = self.by_tid.get(&parent_tid).and_then(|&parent| self.tasks[parent].origin);
        self.by_tid.insert(tid, self.tasks.len());
        self.tasks.push(Task { pid, tid, origin, wide, ..Task::default() });
    }

    /// Notes that a thread has ended, and the name of its process.
    pub(crate) fn exit(&mut self, tid: u32, name: &str) {
        let Some(&at) = self.by_tid.get(&tid) else { return };
        let name = self.name(name);
        let task = &mut self.tasks[at];
        (task.name, task.ended) = (Some(name), true);
        if at >= self.own {
            let short = task.weight < SHORT_LIFE * self.mean;
            self.short += (f64::from(u8::from(short)) - self.short) / 8.0;
        }
    }

    /// Notes that a process has executed a program. If its first thread has ended, another one did, which has the number of
    /// the first from now on.
    pub(crate) fn exec(&mut self, pid: u32) {
        let has_ended = |&at: &usize| self.tasks[at].ended;
        if self.by_tid.get(&pid).is_some_and(has_ended)
            && let Some(at) = self.tasks.iter().rposition(|task| task.pid == pid && !task.ended)
        {
            self.by_tid.insert(pid, at);
        }
    }

    /// Whether most threads that ended lately lived shortly.
    pub(crate) fn live_shortly(&self) -> bool {
        self.short > 0.5
    }

    /// Notes a thread's count on one processor until it ended.
    pub(crate) fn count(&mut self, tid: u32, count: u64) {
        let at = self.task(tid, tid);
        // The program's first thread has inherited the templates of the others, which tell nothing new.
        if at < self.own {
            return;
        }
        self.counts += 1;
        let task = &mut self.tasks[at];
        let first = self.intervals.first_possible_of_unseen(task.wide, self.mean);
        task.count = Some(task.count.unwrap_or(0) + count);
        task.unseen += count.min(first);
    }

    /// Notes the use of the threads that run now.
    pub(crate) fn count_running(&mut self) {
        if !self.is_time {
            return;
        }
        for task in self.tasks[self.own..].iter_mut().filter(|task| task.count.is_none() && !task.ended) {
            task.count_so_far = treering_proc::processor_time(task.pid, task.tid);
        }
    }

    /// The task of a thread, made if it was not seen to be made.
    fn task(&mut self, pid: u32, tid: u32) -> usize {
        if !self.by_tid.contains_key(&tid) {
            self.fork(pid, tid, pid);
        }
        self.by_tid[&tid]
    }

    /// The weight of a sample of an event that was opened on the thread `own`, at the end of an `interval`.
    pub(crate) fn own_sample(&mut self, own: u32, interval: Option<u64>, thread: ThreadId) -> u64 {
        let weight = interval.unwrap_or(self.mean);
        if let Some(at) = self.tasks[..self.own].iter().position(|task| task.tid == own) {
            self.tasks[at].weight += weight;
            self.of_thread.entry(thread).or_insert(at);
        }
        weight
    }

    /// The weight of a sample of an event that a thread inherited.
    pub(crate) fn sample(
        &mut self,
        (pid, tid): (u32, u32),
        stream: u64,
        interval: u64,
        thread: ThreadId,
    ) -> u64 {
        let task = self.task(pid, tid);
        let stream = self.streams.entry(stream).or_insert(Stream { task, interval, samples: 0 });
        stream.samples += 1;
        let weight = self.intervals.weight(interval, stream.samples, self.mean);
        self.tasks[task].weight += weight;
        self.of_thread.insert(thread, task);
        weight
    }

    /// Adds a sample's weight to its node.
    pub(crate) fn weighed(&mut self, node: NodeId, weight: u64) {
        if self.squares.len() <= node.index() {
            self.squares.resize(node.index() + 1, 0.0);
        }
        self.squares[node.index()] += (weight as f64).powi(2) / self.mean as f64;
    }

    fn name(&mut self, name: &str) -> u32 {
        let known = self.names.iter().position(|known| known == name);
        known.unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        }) as u32
    }
}

#[cfg(test)]
mod tests;
