//! The threads and processes that were made during a recording: how much use their samples stand for, and how much no
//! sample stands for.
//!
//! Samples in lives as short as the interval between samples are few and unequal, while the kernel tells exactly how
//! much each thread used. So the costs of groups of threads are scaled to their use, and samples only tell how that
//! divides among functions (stratified sampling with ratio estimates; W. G. Cochran, "Sampling Techniques", 1977,
//! chapters 5 and 6). The numbers that intervals of confidence need are kept with the profile; see
//! [`Weights`](treering_profile::Weights).

use std::collections::HashMap;

use treering_profile::{MetricId, NodeId, Process, ProcessId, Profile, RunId, ThreadId, Weights};

use crate::blocked::unknown_function;
use crate::law::Law;
use crate::process::Processes;

/// Threads that were made while a program was recorded, with the samples of one event in them.
#[derive(Debug)]
pub(crate) struct Heirs {
    law: Law,
    /// The mean interval.
    mean: u64,
    /// Whether the event's samples in a thread stand for exactly the event's count.
    is_exact: bool,
    /// Whether the event counts nanoseconds.
    is_time: bool,
    /// The program's first thread, which has events of its own.
    first_tid: Option<u32>,
    /// The last name of its process, once it has ended.
    first_name: String,
    tasks: Vec<Task>,
    /// The task of every thread that runs, and of those that ended lately.
    by_tid: HashMap<u32, usize>,
    streams: HashMap<u64, Stream>,
    names: Vec<String>,
    /// By node: the sum of the squares of its samples' weights, over the mean interval.
    squares: Vec<f64>,
    /// The weight of the samples of events that were not inherited.
    own_weight: u64,
    /// How many counts of ended threads the kernel reported.
    counts: u64,
    /// How many threads of the last few lived shortly, as a running share.
    short: f64,
}

/// A thread that was made while the program was recorded.
#[derive(Clone, Copy, Debug)]
struct Task {
    pid: u32,
    tid: u32,
    /// The name of its process, an index of `names`, once it has ended.
    name: Option<u32>,
    /// Its entry in the profile, from its first sample on.
    thread: Option<ThreadId>,
    /// Whether intervals were drawn as for short lives when it was made.
    wide: bool,
    ended: bool,
    /// Its use, if the kernel reported it.
    count: Option<u64>,
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

/// A thread that used more than this many intervals has enough samples to stand alone.
const ALONE_FROM: u64 = 20;

/// A thread that used less than this many intervals is short-lived.
const SHORT_LIFE: u64 = 3;

/// If the use of more than one of this many threads is unknown, costs are not scaled.
const UNKNOWN_OF: u64 = 20;

/// The use of a group's threads, and related facts.
#[derive(Clone, Debug, Default)]
struct Stratum {
    /// The use of its threads: exact, or the weight of their samples.
    used: u64,
    /// How much of that no sample can fall into.
    unseen: u64,
    weight: u64,
    /// Sums of squares of the weights of samples that differ from each other.
    squares: f64,
    /// The same where samples that cannot differ count as one.
    clustered: f64,
    /// A thread of it, as an index of the tasks; nothing for the program's first thread.
    example: Option<usize>,
}

/// The use that no sample stands for by itself.
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

impl Heirs {
    pub(crate) fn new(law: Law, mean: u64, is_exact: bool, is_time: bool, first_tid: Option<u32>) -> Self {
        Self {
            law,
            mean,
            is_exact: is_exact && law == Law::Template,
            is_time,
            first_tid,
            first_name: String::new(),
            tasks: Vec::new(),
            by_tid: HashMap::new(),
            streams: HashMap::new(),
            names: Vec::new(),
            squares: Vec::new(),
            own_weight: 0,
            counts: 0,
            short: 0.0,
        }
    }

    /// Notes that a thread was made.
    pub(crate) fn fork(&mut self, pid: u32, tid: u32) {
        let wide = self.live_shortly();
        let task = Task {
            pid,
            tid,
            name: None,
            thread: None,
            wide,
            ended: false,
            count: None,
            unseen: 0,
            weight: 0,
        };
        self.by_tid.insert(tid, self.tasks.len());
        self.tasks.push(task);
    }

    /// Notes that a thread has ended, and the name of its process.
    pub(crate) fn exit(&mut self, tid: u32, name: &str) {
        if Some(tid) == self.first_tid {
            name.clone_into(&mut self.first_name);
        }
        let Some(&at) = self.by_tid.get(&tid) else { return };
        let name = self.name(name);
        let task = &mut self.tasks[at];
        (task.name, task.ended) = (Some(name), true);
        let short = task.weight < SHORT_LIFE * self.mean;
        self.short += (f64::from(u8::from(short)) - self.short) / 8.0;
    }

    /// Whether most threads that ended lately lived shortly.
    pub(crate) fn live_shortly(&self) -> bool {
        self.short > 0.5
    }

    /// Notes a thread's count on one processor until it ended.
    pub(crate) fn count(&mut self, tid: u32, count: u64) {
        if Some(tid) == self.first_tid {
            return;
        }
        self.counts += 1;
        let at = self.task(tid, tid);
        let task = &mut self.tasks[at];
        let first = self.law.first_possible_of_unseen(task.wide, self.mean);
        task.count = Some(task.count.unwrap_or(0) + count);
        task.unseen += count.min(first);
    }

    /// The task of a thread, made if it was not seen to be made.
    fn task(&mut self, pid: u32, tid: u32) -> usize {
        if !self.by_tid.contains_key(&tid) {
            self.fork(pid, tid);
        }
        self.by_tid[&tid]
    }

    /// The weight of a sample of an event that was not inherited.
    pub(crate) fn own_sample(&mut self) -> u64 {
        self.own_weight += self.mean;
        self.mean
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
        let weight = self.law.weight(interval, stream.samples, self.mean);
        let task = &mut self.tasks[task];
        task.weight += weight;
        task.thread = Some(thread);
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

    /// Scales the costs to the use, where that is known, and adds the numbers that intervals need. `used_by_first` is
    /// the use of the program's first thread.
    pub(crate) fn finish(
        mut self,
        profile: &mut Profile,
        run: RunId,
        metric: MetricId,
        processes: &Processes,
        used_by_first: Option<u64>,
    ) -> Unsampled {
        if self.tasks.is_empty() {
            return Unsampled::default();
        }
        self.complete(processes);
        // Without the counts of threads that have ended there is nothing to scale to.
        let mostly_known = self.counts > 0 && self.unknown() * UNKNOWN_OF <= self.tasks.len() as u64;
        let exact = self.is_exact && used_by_first.is_some() && mostly_known;
        let (mut strata, of_task) = self.strata();
        if !exact {
            // Samples stand for everything that can precede them, too.
            strata.iter_mut().for_each(|of| of.used = of.weight + of.unseen);
        }
        let used = used_by_first.filter(|_| exact).unwrap_or(self.own_weight);
        strata.push(Stratum { used, weight: self.own_weight, ..Stratum::default() });
        let mut of_thread = vec![strata.len() - 1; profile.threads.len()];
        for (task, &stratum) in self.tasks.iter().zip(&of_task) {
            if let Some(thread) = task.thread {
                of_thread[thread.index()] = stratum;
            }
        }
        let factors: Vec<f64> = strata
            .iter()
            .map(|of| if of.weight > 0 { of.used as f64 / of.weight as f64 } else { 1.0 })
            .collect();
        self.write(profile, metric, &strata, &factors, &of_thread, exact);
        self.write_unsampled(profile, run, metric, &strata);
        let unsampled = self.tasks.iter().filter(|task| task.weight == 0);
        let without_group = strata.iter().filter(|of| of.weight == 0).map(|of| of.used);
        let of_first = strata.last().filter(|own| own.weight == 0).map_or(0, |own| own.used);
        Unsampled {
            tasks: unsampled.clone().count() as u64 + u64::from(of_first > 0),
            cost: unsampled.filter_map(|task| task.count).sum::<u64>() + of_first,
            without_group: without_group.sum(),
            unknown: self.unknown(),
            used: exact.then(|| strata.iter().map(|of| of.used).sum()),
        }
    }

    /// Finds out the use of threads that are still running, and the names of their processes.
    fn complete(&mut self, processes: &Processes) {
        for at in 0..self.tasks.len() {
            let Task { pid, tid, name, count, ended, .. } = self.tasks[at];
            if name.is_none() {
                let name = self.name(processes.name_of(pid).unwrap_or_default());
                self.tasks[at].name = Some(name);
            }
            if count.is_none() && !ended && self.is_time {
                self.tasks[at].count = treering_proc::processor_time(pid, tid);
            }
        }
    }

    /// The number of threads whose use is unknown.
    fn unknown(&self) -> u64 {
        self.tasks.iter().filter(|task| task.count.is_none()).count() as u64
    }

    /// The groups of threads that are alike, and by task which it belongs to.
    fn strata(&self) -> (Vec<Stratum>, Vec<usize>) {
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
            let key = if used >= ALONE_FROM * self.mean {
                Key::Alone(at)
            } else {
                Key::Named(task.name, task.pid == task.tid)
            };
            let stratum = *known.entry(key).or_insert_with(|| {
                strata.push(Stratum { example: Some(at), ..Stratum::default() });
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

    /// Adds up the squares of weights. Samples with the same interval and number are at the same
    /// age of their threads; where these do the same they are in the same place, and tell no more
    /// than one.
    fn add_squares(&self, strata: &mut [Stratum], of_task: &[usize]) {
        let mut alike: HashMap<(usize, u64), Vec<u64>> = HashMap::new();
        for stream in self.streams.values() {
            alike.entry((of_task[stream.task], stream.interval)).or_default().push(stream.samples);
        }
        for ((stratum, interval), mut lengths) in alike {
            lengths.sort_unstable();
            let longest = lengths.last().copied().unwrap_or(0);
            let mut shorter = 0;
            for number in 1..=longest {
                while lengths[shorter] < number {
                    shorter += 1;
                }
                let together = (lengths.len() - shorter) as f64;
                let square = (self.law.weight(interval, number, self.mean) as f64).powi(2);
                strata[stratum].squares += together * square;
                strata[stratum].clustered += together * together * square;
            }
        }
    }

    fn write(
        &mut self,
        profile: &mut Profile,
        metric: MetricId,
        strata: &[Stratum],
        factors: &[f64],
        of_thread: &[usize],
        exact: bool,
    ) {
        let stratum_of: Vec<usize> =
            profile.node_threads().iter().map(|thread| of_thread[thread.index()]).collect();
        let mut carry = vec![0.0; strata.len()];
        let scaled = profile.tree.self_costs(metric).iter().zip(&stratum_of).map(|(&cost, &stratum)| {
            // The amount that rounding takes from one cost is given to the next, so that sums are exact.
            let exact = cost as f64 * factors[stratum] + carry[stratum];
            let rounded = exact.round().max(0.0);
            carry[stratum] = if cost > 0 { exact - rounded } else { carry[stratum] };
            if cost > 0 { rounded as u64 } else { 0 }
        });
        let scaled: Vec<u64> = scaled.collect();
        self.squares.resize(scaled.len(), 0.0);
        let square = |node: NodeId| {
            let (stratum, at) = (stratum_of[node.index()], node.index());
            let effect = strata[stratum].design_effect();
            (self.squares[at] * factors[stratum].powi(2) * effect).round() as u64
        };
        let unseen = |node: NodeId| {
            (scaled[node.index()] as f64 * strata[stratum_of[node.index()]].unseen_share()).round() as u64
        };
        let hidden = strata.iter().map(Stratum::hidden).map(|hidden| hidden * hidden).sum::<f64>().sqrt();
        let squares = profile.tree.nodes().map(square).collect();
        let unseen = profile.tree.nodes().map(unseen).collect();
        let (per, hidden) = (self.mean, hidden.round() as u64);
        let weights = Weights { squares: 0, unseen: 0, per, hidden, of_known_cost: exact };
        profile.add_weights(metric, weights, squares, unseen);
        profile.tree.set_self_costs(metric, scaled);
    }

    /// Adds the use of groups that have no sample at all.
    fn write_unsampled(&self, profile: &mut Profile, run: RunId, metric: MetricId, strata: &[Stratum]) {
        let unseen = profile.metrics[metric.index()].weights().map(|weights| MetricId::new(weights.unseen));
        for stratum in strata.iter().filter(|of| of.weight == 0 && of.used > 0) {
            let (pid, tid, name) = match stratum.example.map(|at| self.tasks[at]) {
                Some(task) => {
                    let name = task.name.map(|name| self.names[name as usize].clone());
                    (task.pid, task.tid, name.unwrap_or_default())
                }
                None => {
                    let first = self.first_tid.unwrap_or(0);
                    (first, first, self.first_name.clone())
                }
            };
            let thread = thread_entry(profile, run, (pid, tid), name);
            let function = unknown_function(profile, NOT_SAMPLED);
            let node = profile.tree.child(profile.threads[thread.index()].root, function, None);
            profile.tree.add_self_cost(metric, node, stratum.used);
            if let Some(unseen) = unseen {
                profile.tree.add_self_cost(unseen, node, stratum.used);
            }
        }
    }
}

/// The entry of a thread that was not sampled, made if there is none.
fn thread_entry(profile: &mut Profile, run: RunId, (pid, tid): (u32, u32), name: String) -> ThreadId {
    let known = profile.processes.iter().rposition(|known| (known.run, known.pid) == (run, pid));
    let process = match known {
        Some(at) => ProcessId::from_usize(at),
        None => profile.add_process(Process { run, pid, name: name.clone() }),
    };
    let known = profile.threads.iter().rposition(|known| (known.process, known.tid) == (process, tid));
    known.map_or_else(|| profile.add_thread(process, tid, name), ThreadId::from_usize)
}

/// The name that stands for threads without samples.
pub(crate) const NOT_SAMPLED: &str = "[not sampled]";

/// The square of the 97.5 % quantile of the normal distribution.
const Z2: f64 = 3.841_458_820_694_124;

impl Stratum {
    /// How many times larger the variance is than if all samples could differ.
    fn design_effect(&self) -> f64 {
        if self.squares > 0.0 { self.clustered / self.squares } else { 1.0 }
    }

    fn unseen_share(&self) -> f64 {
        if self.used == 0 { 0.0 } else { (self.unseen as f64 / self.used as f64).min(1.0) }
    }

    /// The possible cost of a function without samples here, with 95 % confidence: Wilson's upper bound for none of
    /// all samples. Nothing in the first thread, where samples are equal.
    fn hidden(&self) -> f64 {
        if self.clustered == 0.0 {
            return 0.0;
        }
        let samples = (self.weight as f64).powi(2) / self.clustered;
        self.used as f64 * (1.0 - self.unseen_share()) * Z2 / (samples + Z2)
    }
}

#[cfg(test)]
mod tests {
    use treering_profile::{Metric, RecursionRule, Run, Sampling, Unit};

    use super::*;

    const MEAN: u64 = 1_000_000;

    /// A profile of a timer, and a thread of it.
    fn profile() -> (Profile, RunId) {
        let mut profile = Profile::new(RecursionRule::Full);
        let run = profile.add_run(Run::default());
        let time = profile.add_metric(Metric::exact("cpu-clock", Unit::Nanoseconds));
        let samples = profile.add_metric(Metric::exact("samples", Unit::Count));
        profile.metrics[time.index()].sampling = Some(Sampling {
            counted_by: samples.raw(),
            period: Some(MEAN),
            jittered: Some(true),
            weights: None,
        });
        (profile, run)
    }

    fn thread(profile: &mut Profile, run: RunId, pid: u32) -> ThreadId {
        let process = profile.add_process(Process { run, pid, name: "made".to_owned() });
        profile.add_thread(process, pid, "made")
    }

    const TIME: MetricId = MetricId::new(0);

    #[test]
    fn costs_are_scaled_to_what_was_counted_and_what_was_not_sampled_is_shown() {
        let (mut profile, run) = profile();
        let mut heirs = Heirs::new(Law::Template, MEAN, true, true, Some(1));
        // The first thread waits; of two like threads one is sampled, and none of another kind.
        for pid in [2, 3, 4] {
            heirs.fork(pid, pid);
        }
        let sampled = thread(&mut profile, run, 2);
        let node = profile.threads[sampled.index()].root;
        let weight = heirs.sample((2, 2), 77, 900_000, sampled);
        heirs.weighed(node, weight);
        profile.tree.add_self_cost(TIME, node, weight);
        for (pid, name, count) in [(2, "made", 1_000_000), (3, "made", 700_000), (4, "other", 400_000)] {
            heirs.exit(pid, name);
            heirs.count(pid, count);
        }
        heirs.exit(1, "first");
        // The first thread's copy of the template is no heir.
        heirs.count(1, 5_000_000);
        let unsampled = heirs.finish(&mut profile, run, TIME, &Processes::default(), Some(50_000));
        assert_eq!((unsampled.tasks, unsampled.cost), (3, 1_150_000));
        assert_eq!((unsampled.without_group, unsampled.unknown), (450_000, 0));
        assert_eq!(unsampled.used, Some(2_150_000));
        assert_eq!(profile.run_cost(TIME), 2_150_000);
        assert_eq!(profile.tree.self_cost(TIME, node), 1_700_000);
        assert_eq!(profile.validate(), Ok(()));
        let of = |pid: u32| {
            let at = profile.processes.iter().position(|process| process.pid == pid).expect("it is listed");
            (profile.processes[at].name.as_str(), at)
        };
        assert_eq!((of(4).0, of(1).0), ("other", "first"));
        // All of the unsampled use may belong to any function.
        let weights = profile.metrics[0].weights().expect("they are known").clone();
        assert!(weights.of_known_cost);
        let unseen = profile.run_cost(MetricId::new(weights.unseen));
        assert!((450_000 + 900_000..=2_150_000).contains(&unseen), "{unseen}");
    }

    #[test]
    fn equal_intervals_in_equal_threads_tell_no_more_than_one() {
        let (mut profile, run) = profile();
        let mut heirs = Heirs::new(Law::Template, MEAN, true, true, Some(1));
        let mut counted = 0;
        for pid in 2..12 {
            heirs.fork(pid, pid);
            let sampled = thread(&mut profile, run, pid);
            let node = profile.threads[sampled.index()].root;
            let weight = heirs.sample((pid, pid), u64::from(pid), 800_000, sampled);
            heirs.weighed(node, weight);
            profile.tree.add_self_cost(TIME, node, weight);
            heirs.exit(pid, "made");
            heirs.count(pid, weight);
            counted += weight;
        }
        heirs.finish(&mut profile, run, TIME, &Processes::default(), Some(0));
        assert_eq!(profile.run_cost(TIME), counted);
        let weights = profile.metrics[0].weights().expect("they are known").clone();
        let squares = profile.run_cost(MetricId::new(weights.squares)) as f64 * weights.per as f64;
        let in_effect = (counted as f64).powi(2) / squares;
        assert!((in_effect - 1.0).abs() < 0.01, "{in_effect} samples in effect");
    }
}
