//! The owners of costs: threads and processes.

use treering_profile::{ProcessId, Profile, ThreadId};

use crate::basis::Basis;
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
        })
        .collect();
    for thread in thread_costs(profile, basis) {
        let of = &mut costs[thread.process.index()];
        of.cost += thread.cost;
        of.threads += 1;
    }
    costs.retain(|of| !of.cost.is_zero());
    sort(&mut costs);
    costs
}

fn sort(costs: &mut [OwnerCost]) {
    costs.sort_by(|a, b| b.cost.cmp(&a.cost).then(a.process.cmp(&b.process)).then(a.thread.cmp(&b.thread)));
}

#[cfg(test)]
mod tests {
    use treering_profile::{Frame, Function, MetricId, Process};

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
}
