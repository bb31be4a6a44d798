//! How long threads were blocked, and where.

use std::collections::HashMap;

use treering_profile::{Function, FunctionId, FunctionKind, MetricId, NodeId, Profile, Wait};

/// Follows threads that wait off the processor, from the kernel's records of switches.
///
/// The time between a switch away that was no preemption and the switch back is charged to where
/// the thread stood. Root may sample the switch itself and so knows the stack; others get the
/// stack of the thread's nearest earlier sample, below a frame that says so.
#[derive(Debug)]
pub(crate) struct Blocked {
    /// The time that threads were blocked, in nanoseconds.
    time: MetricId,
    /// How often they were.
    count: MetricId,
    /// The time of the clock when the recording began.
    start_ns: u64,
    threads: HashMap<u32, Waiting>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Waiting {
    /// Where the thread was last seen.
    last_seen: Option<Seen>,
    /// When it left the processor.
    since: Option<u64>,
    /// Whether it was made to.
    preempted: bool,
}

/// Where a thread was seen.
#[derive(Clone, Copy, Debug)]
enum Seen {
    /// At the switch itself.
    Blocking(NodeId),
    /// At a sample some time before.
    Running(NodeId),
}

impl Blocked {
    pub(crate) fn new(time: MetricId, count: MetricId, start_ns: u64) -> Self {
        Self { time, count, start_ns, threads: HashMap::new() }
    }

    /// A thread was sampled while it ran.
    pub(crate) fn ran(&mut self, tid: u32, node: NodeId) {
        self.threads.entry(tid).or_default().last_seen = Some(Seen::Running(node));
    }

    /// A thread was sampled while it was about to leave its processor.
    pub(crate) fn blocks(&mut self, tid: u32, node: NodeId) {
        self.threads.entry(tid).or_default().last_seen = Some(Seen::Blocking(node));
    }

    /// A thread left its processor: to wait, or since another was to run there.
    pub(crate) fn leave(&mut self, tid: u32, time: u64, preempted: bool) {
        let thread = self.threads.entry(tid).or_default();
        (thread.since, thread.preempted) = (Some(time), preempted);
    }

    /// A thread entered a processor: charges its wait, unless it was ready all the time. `root` is the root of its tree, for a
    /// thread that was never seen.
    pub(crate) fn enter(&mut self, profile: &mut Profile, tid: u32, time: u64, root: NodeId) {
        let Some(waiting) = self.threads.get_mut(&tid) else { return };
        let Some(since) = waiting.since.take() else { return };
        let node = match waiting.last_seen {
            Some(Seen::Blocking(node) | Seen::Running(node)) if waiting.preempted => node,
            None if waiting.preempted => root,
            Some(Seen::Blocking(node)) => node,
            Some(Seen::Running(node)) => marked(profile, node, "[blocked: stack of the nearest sample]"),
            None => marked(profile, root, "[blocked: stack unknown]"),
        };
        let preempted = waiting.preempted;
        // Of times before the recording nothing is known.
        let (start_ns, end_ns) = (since.max(self.start_ns), time.max(self.start_ns).max(since));
        if !preempted {
            profile.tree.add_self_cost(self.time, node, end_ns - start_ns);
            profile.tree.add_self_cost(self.count, node, 1);
        }
        if let Some(timeline) = &mut profile.timeline {
            let (start_ns, end_ns) = (start_ns - self.start_ns, end_ns - self.start_ns);
            timeline.add_wait(self.time, self.count, Wait { start_ns, end_ns, node, preempted });
        }
    }

    /// A thread has ended.
    pub(crate) fn exit(&mut self, tid: u32) {
        self.threads.remove(&tid);
    }

    /// The threads that still wait.
    pub(crate) fn waiting(&self) -> Vec<u32> {
        let waiting = self.threads.iter().filter(|(_, waiting)| waiting.since.is_some());
        waiting.map(|(&tid, _)| tid).collect()
    }
}

/// The node below `node` that stands for an unseen part.
fn marked(profile: &mut Profile, node: NodeId, name: &str) -> NodeId {
    let function = unknown_function(profile, name);
    profile.tree.child(node, function, None)
}

/// A function that stands for unknown code, as its name says.
pub(crate) fn unknown_function(profile: &mut Profile, name: &str) -> FunctionId {
    let name = profile.strings.intern(name);
    let function = Function { kind: FunctionKind::Unresolved, ..Function::named(name) };
    profile.functions.intern(function)
}

#[cfg(test)]
mod tests {
    use treering_profile::{Metric, RecursionRule, Unit};

    use super::*;

    #[test]
    fn a_wait_is_charged_to_where_the_thread_stood() {
        let mut profile = Profile::new(RecursionRule::Full);
        let time = profile.add_metric(Metric::exact("off-cpu", Unit::Nanoseconds));
        let count = profile.add_metric(Metric::exact("waits", Unit::Count));
        let thread = profile.add_single_thread("main");
        profile.timeline = Some(treering_profile::Timeline::new());
        let root = profile.threads[thread.index()].root;
        let function = unknown_function(&mut profile, "read");
        let node = profile.tree.child(root, function, None);
        let mut blocked = Blocked::new(time, count, 50);
        blocked.leave(1, 100, false);
        blocked.enter(&mut profile, 1, 130, root);
        blocked.ran(1, node);
        blocked.leave(1, 200, false);
        blocked.enter(&mut profile, 1, 250, root);
        blocked.enter(&mut profile, 1, 300, root);
        blocked.blocks(1, node);
        blocked.leave(1, 400, false);
        blocked.enter(&mut profile, 1, 405, root);
        assert_eq!(profile.tree.self_cost(time, node), 5);
        assert_eq!((profile.run_cost(time), profile.run_cost(count)), (85, 3));
        assert_eq!(profile.tree.self_cost(time, root), 0);
        blocked.leave(1, 500, true);
        blocked.enter(&mut profile, 1, 520, root);
        assert_eq!((profile.run_cost(time), profile.run_cost(count)), (85, 3));
        let timeline = profile.timeline.expect("it is kept");
        let waits = timeline.waits.expect("there are waits").intervals;
        let times = waits.iter().map(|wait| (wait.start_ns, wait.end_ns, wait.preempted));
        let expected = [(50, 80, false), (150, 200, false), (350, 355, false), (450, 470, true)];
        assert_eq!(times.collect::<Vec<_>>(), expected);
        assert_eq!(waits[3].node, node);
    }
}
