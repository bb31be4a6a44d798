//! The owners of costs: threads and processes.

use std::collections::HashMap;

use treering_profile::{ProcessId, Profile, ThreadId};

use crate::basis::Basis;
use crate::interval::Interval;
use crate::measure::{Columns, Measure};

/// The cost of a thread or process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnerCost {
    /// The process.
    pub process: ProcessId,
    /// The thread; nothing for a whole process.
    pub thread: Option<ThreadId>,
    /// How many threads it is that cost something.
    pub threads: usize,
    /// Their cost together.
    pub cost: Measure,
    /// How much of that cost stands for similar threads too, of which there was no sample.
    pub shared: u64,
}

/// A thread that used as many mean intervals is scaled to its own use when it is recorded; shorter ones together, by the
/// name of their program.
const ALONE_FROM: u64 = 20;

/// How many samples such a thread has at least: its interval is at most 1.9 times the mean.
const SAMPLES_ALONE: u64 = 10;

impl OwnerCost {
    /// The 95 % interval of its share; nothing for exact metrics. What its samples say of similar threads may be no cost of
    /// its own at all.
    pub fn interval(&self, basis: &Basis) -> Option<Interval> {
        let Interval { low, high } = basis.interval(self.cost)?;
        Some(Interval { low: (low - basis.share(self.shared)).max(0.0), high })
    }
}

/// How much of a thread's cost stands for similar threads too.
fn shared(cost: &Measure, basis: &Basis) -> u64 {
    let Some(weights) = &basis.weights else { return 0 };
    let is_alone = cost.cost >= ALONE_FROM * weights.per && cost.samples >= SAMPLES_ALONE;
    if is_alone { 0 } else { cost.cost }
}

/// The cost of every thread, largest first. Those that cost nothing are left out.
///
/// `profile` is what is selected of the one that `basis` is of.
pub fn thread_costs(profile: &Profile, basis: &Basis) -> Vec<OwnerCost> {
    let mut costs = vec![Measure::default(); profile.threads.len()];
    let columns = Columns::of(profile, basis.metric, basis.samples);
    for (node, thread) in profile.tree.nodes().zip(profile.node_threads()) {
        costs[thread.index()] += columns.self_cost(node);
    }
    let of = |(at, &cost): (usize, &Measure)| OwnerCost {
        process: profile.threads[at].process,
        thread: Some(ThreadId::from_usize(at)),
        threads: 1,
        cost,
        shared: shared(&cost, basis),
    };
    let mut costs: Vec<_> = costs.iter().enumerate().map(of).filter(|of| !of.cost.is_zero()).collect();
    sort(&mut costs);
    costs
}

/// The cost of every process with all its threads, largest first.
pub fn process_costs(profile: &Profile, basis: &Basis) -> Vec<OwnerCost> {
    let mut costs: Vec<_> = (0..profile.processes.len())
        .map(|at| OwnerCost {
            process: ProcessId::from_usize(at),
            thread: None,
            threads: 0,
            cost: Measure::default(),
            shared: 0,
        })
        .collect();
    for thread in thread_costs(profile, basis) {
        let of = &mut costs[thread.process.index()];
        of.cost += thread.cost;
        of.shared += thread.shared;
        of.threads += 1;
    }
    costs.retain(|of| !of.cost.is_zero());
    // Similar threads without a sample are of a process of the same name: of this one, if no other has any.
    let name = |of: &OwnerCost| &profile.processes[of.process.index()].name;
    let mut sharing: HashMap<&String, usize> = HashMap::new();
    costs.iter().filter(|of| of.shared > 0).for_each(|of| *sharing.entry(name(of)).or_default() += 1);
    costs.iter_mut().filter(|of| sharing.get(name(of)) == Some(&1)).for_each(|of| of.shared = 0);
    sort(&mut costs);
    costs
}

fn sort(costs: &mut [OwnerCost]) {
    costs.sort_by(|a, b| b.cost.cmp(&a.cost).then(a.process.cmp(&b.process)).then(a.thread.cmp(&b.thread)));
}

#[cfg(test)]
mod tests {
    use treering_profile::{Frame, Function, MetricId, Process, Weights};

    use super::*;

    #[test]
    fn processes_cost_what_their_threads_cost() {
        let mut profile = treering_testing::stacks("main 10");
        let (run, name) = (profile.processes[0].run, profile.strings.intern("work"));
        let work = profile.functions.intern(Function::named(name));
        let process = profile.add_process(Process { run, pid: 7, name: "make".to_owned() });
        let weights = |samples: u64| [(MetricId::new(0), samples * 1_000_000), (MetricId::new(1), samples)];
        for (tid, samples) in [(7, 20), (8, 5), (9, 0)] {
            let thread = profile.add_thread(process, tid, "make");
            profile.add_stack(thread, &[Frame::new(work)], None, &weights(samples));
        }
        let basis = Basis::of(&profile, MetricId::new(0));
        let told = |costs: Vec<OwnerCost>| {
            let of = |of: &OwnerCost| (of.thread.map(ThreadId::index), of.threads, of.cost.samples);
            costs.iter().map(of).collect::<Vec<_>>()
        };
        assert_eq!(
            told(thread_costs(&profile, &basis)),
            [(Some(1), 1, 20), (Some(0), 1, 10), (Some(2), 1, 5)]
        );
        assert_eq!(told(process_costs(&profile, &basis)), [(None, 2, 25), (None, 1, 10)]);
    }

    /// Their cost is that of all threads like them, sampled or not: a thread of 1 ms was said to have cost at least 3.
    #[test]
    fn short_threads_may_have_cost_nothing_of_what_their_samples_stand_for() {
        let mut profile = treering_testing::stacks("main 10");
        let (process, name) = (profile.threads[0].process, profile.strings.intern("work"));
        let work = profile.functions.intern(Function::named(name));
        for (tid, samples) in [(8, 5), (9, 40)] {
            let weights = [(MetricId::new(0), samples * 1_000_000), (MetricId::new(1), samples)];
            let thread = profile.add_thread(process, tid, "short");
            profile.add_stack(thread, &[Frame::new(work)], None, &weights);
        }
        let nodes = profile.tree.len();
        let weights = Weights { squares: 0, unseen: 0, per: 1_000_000, hidden: 0, of_known_cost: true };
        let squares = profile.tree.nodes().map(|node| profile.tree.self_cost(MetricId::new(0), node));
        let squares = squares.collect();
        profile.add_weights(MetricId::new(0), weights, squares, vec![0; nodes]);
        let basis = Basis::of(&profile, MetricId::new(0));
        let lows = |costs: Vec<OwnerCost>| {
            let low = |of: &OwnerCost| of.interval(&basis).expect("it is sampled").low > 0.0;
            costs.iter().map(low).collect::<Vec<_>>()
        };
        assert_eq!(lows(thread_costs(&profile, &basis)), [true, false, false]);
        assert_eq!(lows(process_costs(&profile, &basis)), [true]);
        // All threads of the only process of a name are its own, however short they are.
        assert!(process_costs(&profile, &basis).iter().all(|of| of.shared == 0));
    }
}
