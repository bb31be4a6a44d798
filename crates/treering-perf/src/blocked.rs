//! How long threads were blocked, and where.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use treering_profile::{
    EndedWaits, Function, FunctionId, FunctionKind, MetricId, NodeId, Profile, Wait, WakerKind, Waking,
};

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
    /// How many waits were ended by a thread of the program whose stack was not seen.
    pub(crate) without_stack: u64,
    /// The rows of the profile that say who ended waits, by waiting node, kind and stack of the waker.
    rows: HashMap<(NodeId, WakerKind, Option<NodeId>), usize>,
}

/// The most rows of ends of waits. The wakers of what would be in others count as unknown.
const MOST_ROWS: usize = 1 << 18;

/// How long before its switch away a thread may have been woken from the wait that the switch begins: the kernel makes it
/// wait first, and a waker on another processor need not wait for the switch.
const EARLY_NS: u64 = 20_000;

#[derive(Clone, Copy, Debug, Default)]
struct Waiting {
    /// Where the thread was last seen.
    last_seen: Option<Seen>,
    /// When it left the processor.
    since: Option<u64>,
    /// Whether it was made to.
    preempted: bool,
    /// Its process, once it was seen to leave a processor.
    pid: Option<u32>,
    /// The waker that made it ready, and when by the kernel's clock.
    waking: Option<Waking>,
    /// The thread of the program that did, as long as its stack was not seen.
    by: Option<(u32, u32)>,
}

/// The facts about the waker of a thread that are still wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Nothing: it does not wait, or its waker is known, or it is none of the program.
    Nothing,
    /// All: the thread, which is of this process, waits or is about to.
    All { pid: u32 },
    /// The stack of this process and thread, which woke it.
    StackOf((u32, u32)),
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
        Self { time, count, start_ns, threads: HashMap::new(), without_stack: 0, rows: HashMap::new() }
    }

    /// The metric that counts waits.
    pub(crate) fn count(&self) -> MetricId {
        self.count
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
    pub(crate) fn leave(&mut self, pid: u32, tid: u32, time: u64, preempted: bool) {
        let thread = self.threads.entry(tid).or_default();
        (thread.since, thread.preempted, thread.pid) = (Some(time), preempted, Some(pid));
        thread.waking = thread.waking.filter(|waking| !preempted && waking.woken_ns + EARLY_NS >= time);
    }

    /// The facts about the waker of a thread that are still wanted.
    pub(crate) fn wants_waker(&self, tid: u32) -> Wanted {
        let Some(&Waiting { since, preempted, pid: Some(pid), waking, by, .. }) = self.threads.get(&tid)
        else {
            return Wanted::Nothing;
        };
        match (since, waking, by) {
            (None, ..) => Wanted::All { pid },
            (Some(_), ..) if preempted => Wanted::Nothing,
            (Some(_), None, _) => Wanted::All { pid },
            (Some(_), Some(_), Some(by)) => Wanted::StackOf(by),
            (Some(_), Some(_), None) => Wanted::Nothing,
        }
    }

    /// A thread was made ready; by a thread of the program whose stack is not seen yet, if `by` has its process and number.
    pub(crate) fn woken(&mut self, tid: u32, waking: Waking, by: Option<(u32, u32)>) {
        let thread = self.threads.entry(tid).or_default();
        (thread.waking, thread.by) = (Some(waking), by);
    }

    /// The stack of the waker was seen.
    pub(crate) fn woken_in(&mut self, tid: u32, kind: WakerKind, waker: NodeId) {
        let thread = self.threads.entry(tid).or_default();
        thread.by = None;
        thread.waking = thread.waking.map(|waking| Waking { kind, waker: Some(waker), ..waking });
    }

    /// A thread entered a processor: charges its wait, unless it was ready all the time. `root` is the root of its tree, for a
    /// thread that was never seen.
    pub(crate) fn enter(&mut self, profile: &mut Profile, tid: u32, time: u64, root: NodeId) {
        let Some(waiting) = self.threads.get_mut(&tid) else { return };
        let (waking, by) = (waiting.waking.take(), waiting.by.take());
        let Some(since) = waiting.since.take() else { return };
        let last_seen = waiting.last_seen;
        // The stack at a switch is that of no later one, whose own stack may be lost.
        if let Some(Seen::Blocking(node)) = last_seen {
            waiting.last_seen = Some(Seen::Running(node));
        }
        let node = match last_seen {
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
        let waking = waking
            .filter(|_| !preempted)
            .filter(|waking| self.add_end(profile, (node, waking.kind, waking.waker), end_ns - start_ns));
        self.without_stack += u64::from(waking.is_some() && by.is_some());
        if let Some(timeline) = &mut profile.timeline {
            let (start_ns, end_ns) = (start_ns - self.start_ns, end_ns - self.start_ns);
            let waking = waking.map(|waking| {
                let woken_ns = waking.woken_ns.saturating_sub(self.start_ns).clamp(start_ns, end_ns);
                Waking { woken_ns, ..waking }
            });
            timeline.add_wait(self.time, self.count, Wait { start_ns, end_ns, node, preempted, waking });
        }
    }

    /// Adds a wait to those that ended in the same way, if there is room.
    fn add_end(
        &mut self,
        profile: &mut Profile,
        place: (NodeId, WakerKind, Option<NodeId>),
        time_ns: u64,
    ) -> bool {
        let rows = &mut profile.ended_waits;
        let at = match self.rows.entry(place) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(_) if rows.len() >= MOST_ROWS => return false,
            Entry::Vacant(fresh) => {
                let (waiting, kind, waker) = place;
                rows.push(EndedWaits { waiting, kind, waker, waits: 0, time_ns: 0 });
                *fresh.insert(rows.len() - 1)
            }
        };
        let row = &mut rows[at];
        row.waits += 1;
        row.time_ns += time_ns;
        true
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
        blocked.leave(7, 1, 100, false);
        blocked.enter(&mut profile, 1, 130, root);
        blocked.ran(1, node);
        blocked.leave(7, 1, 200, false);
        blocked.enter(&mut profile, 1, 250, root);
        blocked.enter(&mut profile, 1, 300, root);
        blocked.blocks(1, node);
        blocked.leave(7, 1, 400, false);
        blocked.enter(&mut profile, 1, 405, root);
        assert_eq!(profile.tree.self_cost(time, node), 5);
        assert_eq!((profile.run_cost(time), profile.run_cost(count)), (85, 3));
        assert_eq!(profile.tree.self_cost(time, root), 0);
        blocked.leave(7, 1, 500, true);
        blocked.enter(&mut profile, 1, 520, root);
        assert_eq!((profile.run_cost(time), profile.run_cost(count)), (85, 3));
        let timeline = profile.timeline.expect("it is kept");
        let waits = timeline.waits.expect("there are waits").intervals;
        let times = waits.iter().map(|wait| (wait.start_ns, wait.end_ns, wait.preempted));
        let expected = [(50, 80, false), (150, 200, false), (350, 355, false), (450, 470, true)];
        assert_eq!(times.collect::<Vec<_>>(), expected);
        assert_eq!(waits[3].node, node);
    }

    #[test]
    fn a_wait_whose_own_stack_is_lost_is_not_charged_to_that_of_the_switch_before() {
        let mut profile = Profile::new(RecursionRule::Full);
        let time = profile.add_metric(Metric::exact("off-cpu", Unit::Nanoseconds));
        let count = profile.add_metric(Metric::exact("waits", Unit::Count));
        let thread = profile.add_single_thread("main");
        let root = profile.threads[thread.index()].root;
        let function = unknown_function(&mut profile, "work");
        let node = profile.tree.child(root, function, None);
        let mut blocked = Blocked::new(time, count, 50);
        blocked.blocks(1, node);
        blocked.leave(7, 1, 100, true);
        blocked.enter(&mut profile, 1, 130, root);
        blocked.leave(7, 1, 200, false);
        blocked.enter(&mut profile, 1, 250, root);
        assert_eq!(profile.tree.self_cost(time, node), 0);
        let nearest = marked(&mut profile, node, "[blocked: stack of the nearest sample]");
        assert_eq!(profile.tree.self_cost(time, nearest), 50);
    }

    #[test]
    fn a_wait_ends_by_the_first_waking_after_its_start_or_just_before() {
        let mut profile = Profile::new(RecursionRule::Full);
        let time = profile.add_metric(Metric::exact("off-cpu", Unit::Nanoseconds));
        let count = profile.add_metric(Metric::exact("waits", Unit::Count));
        let thread = profile.add_single_thread("main");
        profile.timeline = Some(treering_profile::Timeline::new());
        let root = profile.threads[thread.index()].root;
        let function = unknown_function(&mut profile, "unlock");
        let waker = profile.tree.child(root, function, None);
        let mut blocked = Blocked::new(time, count, 1_000_000);
        let waking = |woken_ns, kind| Waking { woken_ns, kind, waker: Some(waker) };
        let mut wait = |at: [u64; 2], preempted, wakings: &[(u64, WakerKind)]| {
            let mut wakings = wakings.iter().copied().peekable();
            for (time, is_start) in [(at[0], true), (at[1], false)] {
                while let Some((woken, kind)) = wakings.next_if(|&(woken, _)| woken < time) {
                    if let Wanted::All { pid } = blocked.wants_waker(1) {
                        assert_eq!(pid, 7);
                        blocked.woken(1, waking(woken, kind), None);
                    }
                }
                match is_start {
                    true => blocked.leave(7, 1, time, preempted),
                    false => blocked.enter(&mut profile, 1, time, root),
                }
            }
        };
        use WakerKind::{Interrupt, Program, Thread};
        // Nothing is known of a thread that never waited.
        wait([1_000_100, 1_000_200], false, &[(1_000_050, Thread)]);
        wait([1_100_000, 1_200_000], false, &[(1_150_000, Thread), (1_160_000, Interrupt)]);
        // The thread was made ready before it went to sleep, and long before it waited for something else.
        wait([1_300_000, 1_301_000], false, &[(1_290_000, Program)]);
        wait([1_400_000, 1_401_000], false, &[(1_310_000, Program)]);
        wait([1_500_000, 1_501_000], true, &[(1_499_000, Program)]);
        wait([1_600_000, 1_700_000], false, &[]);
        let rows: Vec<_> = profile.ended_waits.iter().map(|row| (row.kind, row.waits, row.time_ns)).collect();
        assert_eq!(rows, [(Thread, 1, 100_000), (Program, 1, 1_000)]);
        assert_eq!(profile.run_cost(count), 5);
        let waits = profile.timeline.expect("it is kept").waits.expect("there are waits").intervals;
        let woken: Vec<_> = waits.iter().map(|wait| wait.waking.map(|waking| waking.woken_ns)).collect();
        assert_eq!(woken, [None, Some(150_000), Some(300_000), None, None, None]);
    }
}
