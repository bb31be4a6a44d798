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

use std::collections::HashMap;

use treering_profile::{MetricId, NodeId, Process, ProcessId, Profile, RunId, ThreadId, Weights};

use crate::blocked::unknown_function;
use crate::interval_distribution::Law;
use crate::process::Processes;
use crate::session::OwnCounts;

/// The threads of a program, with the samples of one event in them.
#[derive(Debug)]
pub(crate) struct Heirs {
    law: Law,
    /// The mean interval.
    mean: u64,
    /// Whether the event's samples in a thread stand for exactly the event's count.
    is_exact: bool,
    /// Whether the event counts nanoseconds.
    is_time: bool,
    /// Those with events of their own come first.
    tasks: Vec<Task>,
    /// How many those are.
    own: usize,
    /// The task of every thread that runs, and of those that ended lately.
    by_tid: HashMap<u32, usize>,
    streams: HashMap<u64, Stream>,
    names: Vec<String>,
    /// The task of every thread of the profile.
    of_thread: HashMap<ThreadId, usize>,
    /// By node: the sum of the squares of its samples' weights, over the mean interval.
    squares: Vec<f64>,
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
    /// The first of its threads, as an index of the tasks.
    example: usize,
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
    /// An event that was opened on the threads `own`, each with its process.
    pub(crate) fn new(law: Law, mean: u64, is_exact: bool, is_time: bool, own: &[(u32, u32)]) -> Self {
        let task =
            |(at, &(pid, tid)): (usize, &(u32, u32))| Task { pid, tid, origin: Some(at), ..Task::default() };
        Self {
            law,
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
        let first = self.law.first_possible_of_unseen(task.wide, self.mean);
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

    /// The weight of a sample of an event that was opened on the thread `own`.
    pub(crate) fn own_sample(&mut self, own: u32, thread: ThreadId) -> u64 {
        if let Some(at) = self.tasks[..self.own].iter().position(|task| task.tid == own) {
            self.tasks[at].weight += self.mean;
            self.of_thread.entry(thread).or_insert(at);
        }
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

    /// Scales the costs to the use, where that is known, and adds the numbers that intervals need. `own` is the use of
    /// the threads that have events of their own.
    pub(crate) fn finish(
        mut self,
        profile: &mut Profile,
        run: RunId,
        metric: MetricId,
        processes: &Processes,
        own: Option<&OwnCounts>,
    ) -> Unsampled {
        let heirs = self.tasks.len() - self.own;
        for task in self.tasks.iter_mut().filter(|task| task.count.is_none() && !task.ended) {
            task.count = task.count_so_far;
        }
        // Without the counts of threads that have ended there is nothing to scale to.
        let mostly_known = heirs == 0 || self.counts > 0 && self.unknown() * UNKNOWN_OF <= heirs as u64;
        let exact = self.is_exact && own.is_some() && mostly_known;
        if heirs == 0 && !exact {
            return Unsampled::default();
        }
        self.complete(processes, own);
        let (mut strata, of_task) = self.strata();
        if !exact {
            // Samples stand for everything that can precede them, too.
            strata.iter_mut().for_each(|of| of.used = of.weight + of.unseen);
        }
        // Of a thread that is not known, costs stay as they are.
        strata.push(Stratum::default());
        let mut of_thread = vec![strata.len() - 1; profile.threads.len()];
        for (thread, &task) in &self.of_thread {
            of_thread[thread.index()] = of_task[task];
        }
        let factors: Vec<f64> = strata
            .iter()
            .map(|of| if of.weight > 0 { of.used as f64 / of.weight as f64 } else { 1.0 })
            .collect();
        let stratum_of: Vec<usize> =
            profile.node_threads().iter().map(|thread| of_thread[thread.index()]).collect();
        scale(profile, metric, &factors, &stratum_of);
        if heirs > 0 {
            self.write_weights(profile, metric, &strata, &factors, &stratum_of, exact);
        }
        self.write_unsampled(profile, run, metric, &strata);
        let (own, heirs) = self.tasks.split_at(self.own);
        let own = own.iter().filter(|task| exact && task.count > Some(0));
        let unsampled = own.chain(heirs).filter(|task| task.weight == 0);
        let without_group = strata.iter().filter(|of| of.weight == 0).map(|of| of.used);
        Unsampled {
            tasks: unsampled.clone().count() as u64,
            cost: unsampled.filter_map(|task| task.count).sum::<u64>(),
            without_group: without_group.sum(),
            unknown: self.unknown(),
            used: exact.then(|| strata.iter().map(|of| of.used).sum()),
        }
    }

    /// Finds out the use of the threads that have events of their own, and the names of the processes that still run.
    fn complete(&mut self, processes: &Processes, own: Option<&OwnCounts>) {
        for at in 0..self.tasks.len() {
            if self.tasks[at].name.is_none() {
                let name = self.name(processes.name_of(self.tasks[at].pid).unwrap_or_default());
                self.tasks[at].name = Some(name);
            }
        }
        let Some(own) = own else { return };
        for at in 0..self.own {
            let of_heirs: u64 = match own.with_heirs {
                true => self.tasks[self.own..]
                    .iter()
                    .filter(|task| task.origin == Some(at))
                    .filter_map(|task| task.count)
                    .sum(),
                false => 0,
            };
            let all = own.by_thread.get(&self.tasks[at].tid).copied().unwrap_or(0);
            self.tasks[at].count = Some(all.saturating_sub(of_heirs));
        }
    }

    /// The number of threads that were made during the recording and whose use is unknown.
    fn unknown(&self) -> u64 {
        self.tasks[self.own..].iter().filter(|task| task.count.is_none()).count() as u64
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

    /// Adds the numbers that intervals of confidence need.
    fn write_weights(
        &mut self,
        profile: &mut Profile,
        metric: MetricId,
        strata: &[Stratum],
        factors: &[f64],
        stratum_of: &[usize],
        exact: bool,
    ) {
        let costs = profile.tree.self_costs(metric);
        self.squares.resize(costs.len(), 0.0);
        let square = |node: NodeId| {
            let (stratum, at) = (stratum_of[node.index()], node.index());
            let effect = strata[stratum].design_effect();
            (self.squares[at] * factors[stratum].powi(2) * effect).round() as u64
        };
        let unseen = |node: NodeId| {
            (costs[node.index()] as f64 * strata[stratum_of[node.index()]].unseen_share()).round() as u64
        };
        let hidden = strata.iter().map(Stratum::hidden).map(|hidden| hidden * hidden).sum::<f64>().sqrt();
        let squares = profile.tree.nodes().map(square).collect();
        let unseen = profile.tree.nodes().map(unseen).collect();
        let (per, hidden) = (self.mean, hidden.round() as u64);
        let weights = Weights { squares: 0, unseen: 0, per, hidden, of_known_cost: exact };
        profile.add_weights(metric, weights, squares, unseen);
    }

    /// Adds the use of groups that have no sample at all.
    fn write_unsampled(&self, profile: &mut Profile, run: RunId, metric: MetricId, strata: &[Stratum]) {
        let unseen = profile.metrics[metric.index()].weights().map(|weights| MetricId::new(weights.unseen));
        for stratum in strata.iter().filter(|of| of.weight == 0 && of.used > 0) {
            let Task { pid, tid, name, .. } = self.tasks[stratum.example];
            let name = name.map(|name| self.names[name as usize].clone()).unwrap_or_default();
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

/// Multiplies the cost of every node by the factor of its stratum.
fn scale(profile: &mut Profile, metric: MetricId, factors: &[f64], stratum_of: &[usize]) {
    let mut carry = vec![0.0; factors.len()];
    let scaled = profile.tree.self_costs(metric).iter().zip(stratum_of).map(|(&cost, &stratum)| {
        if cost == 0 {
            return 0;
        }
        // The amount that rounding takes from one cost is given to the next, so that sums are exact.
        let exact = cost as f64 * factors[stratum] + carry[stratum];
        let rounded = exact.round().max(0.0);
        carry[stratum] = exact - rounded;
        rounded as u64
    });
    let scaled = scaled.collect();
    profile.tree.set_self_costs(metric, scaled);
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

    /// The use of the first thread.
    fn first(count: u64) -> OwnCounts {
        OwnCounts { by_thread: HashMap::from([(1, count)]), with_heirs: false }
    }

    #[test]
    fn costs_of_threads_without_heirs_are_scaled_each_to_its_own_use() {
        let (mut profile, run) = profile();
        let mut heirs = Heirs::new(Law::OfTheMoment, MEAN, true, true, &[(1, 1), (1, 2), (1, 3)]);
        let nodes = [1, 2].map(|tid| {
            let thread = thread(&mut profile, run, tid);
            for _ in 0..30 {
                heirs.own_sample(tid, thread);
            }
            profile.threads[thread.index()].root
        });
        nodes.iter().for_each(|&node| profile.tree.add_self_cost(TIME, node, 30 * MEAN));
        let by_thread = HashMap::from([(1, 29_000_001), (2, 31_000_000), (3, 0)]);
        let own = OwnCounts { by_thread, with_heirs: false };
        let unsampled = heirs.finish(&mut profile, run, TIME, &Processes::default(), Some(&own));
        assert_eq!(nodes.map(|node| profile.tree.self_cost(TIME, node)), [29_000_001, 31_000_000]);
        assert_eq!((unsampled.tasks, unsampled.used), (0, Some(60_000_001)));
        assert!(profile.metrics[0].weights().is_none(), "all samples are worth the same");
    }

    #[test]
    fn the_use_of_heirs_is_taken_from_that_of_the_thread_that_made_them() {
        let (mut profile, run) = profile();
        let mut heirs = Heirs::new(Law::Fixed, MEAN, true, true, &[(1, 1), (1, 5)]);
        heirs.fork(2, 2, 1);
        heirs.fork(3, 3, 2);
        let (first, heir) = (thread(&mut profile, run, 1), thread(&mut profile, run, 3));
        heirs.own_sample(1, first);
        heirs.sample((3, 3), 9, MEAN, heir);
        let nodes = [first, heir].map(|thread| profile.threads[thread.index()].root);
        nodes.iter().for_each(|&node| profile.tree.add_self_cost(TIME, node, MEAN));
        heirs.exit(2, "made");
        heirs.exit(3, "made");
        heirs.count(2, 500_000);
        heirs.count(3, 1_200_000);
        let own = OwnCounts { by_thread: HashMap::from([(1, 2_600_000), (5, 0)]), with_heirs: true };
        let unsampled = heirs.finish(&mut profile, run, TIME, &Processes::default(), Some(&own));
        // The first thread, and the process of 500,000 with the one that was sampled.
        assert_eq!(nodes.map(|node| profile.tree.self_cost(TIME, node)), [900_000, 1_700_000]);
        assert_eq!((unsampled.tasks, unsampled.used), (1, Some(2_600_000)));
    }

    #[test]
    fn costs_are_scaled_to_what_was_counted_and_what_was_not_sampled_is_shown() {
        let (mut profile, run) = profile();
        let mut heirs = Heirs::new(Law::Template, MEAN, true, true, &[(1, 1)]);
        // The first thread waits; of two like threads one is sampled, and none of another kind.
        for pid in [2, 3, 4] {
            heirs.fork(pid, pid, 1);
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
        let unsampled = heirs.finish(&mut profile, run, TIME, &Processes::default(), Some(&first(50_000)));
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
        let mut heirs = Heirs::new(Law::Template, MEAN, true, true, &[(1, 1)]);
        let mut counted = 0;
        for pid in 2..12 {
            heirs.fork(pid, pid, 1);
            let sampled = thread(&mut profile, run, pid);
            let node = profile.threads[sampled.index()].root;
            let weight = heirs.sample((pid, pid), u64::from(pid), 800_000, sampled);
            heirs.weighed(node, weight);
            profile.tree.add_self_cost(TIME, node, weight);
            heirs.exit(pid, "made");
            heirs.count(pid, weight);
            counted += weight;
        }
        heirs.finish(&mut profile, run, TIME, &Processes::default(), Some(&first(0)));
        assert_eq!(profile.run_cost(TIME), counted);
        let weights = profile.metrics[0].weights().expect("they are known").clone();
        let squares = profile.run_cost(MetricId::new(weights.squares)) as f64 * weights.per as f64;
        let in_effect = (counted as f64).powi(2) / squares;
        assert!((in_effect - 1.0).abs() < 0.01, "{in_effect} samples in effect");
    }
}
