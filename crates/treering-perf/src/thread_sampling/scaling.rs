//! Scaling costs to the use of threads that the kernel counted.

use treering_profile::{MetricId, Process, ProcessId, Profile, RunId, ThreadId};

use super::stratum::Stratum;
use super::{Task, ThreadSampling, Unsampled};
use crate::blocked::unknown_function;
use crate::process::Processes;
use crate::session::OwnCounts;

/// If the use of more than one of this many threads is unknown, costs are not scaled.
const UNKNOWN_OF: u64 = 20;

/// The name that stands for threads without samples.
pub(crate) const NOT_SAMPLED: &str = "[not sampled]";

impl ThreadSampling {
    /// Scales the costs to the use, where that is known, and adds the numbers that intervals need. `own` is the use of
    /// the threads that have events of their own, and `effect` the design effect of losses.
    pub(crate) fn finish(
        mut self,
        profile: &mut Profile,
        run: RunId,
        metric: MetricId,
        processes: &Processes,
        own: Option<&OwnCounts>,
        effect: f64,
    ) -> Unsampled {
        self.losses = effect;
        let inherited = self.tasks.len() - self.own;
        for task in self.tasks.iter_mut().filter(|task| task.count.is_none() && !task.ended) {
            task.count = task.count_so_far;
        }
        // Without the counts of threads that have ended there is nothing to scale to.
        let mostly_known =
            inherited == 0 || self.counts > 0 && self.unknown() * UNKNOWN_OF <= inherited as u64;
        let exact = self.is_exact && own.is_some() && mostly_known;
        if inherited == 0 && !exact && effect == 1.0 {
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
        if inherited > 0 || effect > 1.0 {
            self.write_weights(profile, metric, &strata, &factors, &stratum_of, exact);
        }
        self.write_unsampled(profile, run, metric, &strata);
        let (own, inherited) = self.tasks.split_at(self.own);
        let own = own.iter().filter(|task| exact && task.count > Some(0));
        let unsampled = own.chain(inherited).filter(|task| task.weight == 0);
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
            let of_inherited: u64 = match own.with_inherited {
                true => self.tasks[self.own..]
                    .iter()
                    .filter(|task| task.origin == Some(at))
                    .filter_map(|task| task.count)
                    .sum(),
                false => 0,
            };
            let all = own.by_thread.get(&self.tasks[at].tid).copied().unwrap_or(0);
            self.tasks[at].count = Some(all.saturating_sub(of_inherited));
        }
    }

    /// The number of threads that were made during the recording and whose use is unknown.
    fn unknown(&self) -> u64 {
        self.tasks[self.own..].iter().filter(|task| task.count.is_none()).count() as u64
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
