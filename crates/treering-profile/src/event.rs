//! From call events and a clock to costs.

use std::collections::HashMap;

use crate::{Activations, Frame, FunctionId, MetricId, NodeId, Profile, ThreadId};

/// Builds a profile from call events: on every event, what each clock has advanced since the
/// thread's last event is charged to the node that was running.
///
/// This equals the textbook rule (note the clock on enter; on leave, the difference less the
/// children's totals is the self cost), and it conserves cost by construction: self costs add up
/// to the time between a thread's first and last event.
///
/// ```
/// use treering_profile::{CallRecorder, Frame, Function, Metric, Profile, RecursionRule, Unit};
///
/// let mut profile = Profile::new(RecursionRule::Direct);
/// let clock = profile.add_metric(Metric::exact("ns", Unit::Nanoseconds));
/// let thread = profile.add_single_thread("main");
/// let name = profile.strings.intern("main");
/// let main = Frame::new(profile.functions.intern(Function::named(name)));
/// let mut recorder = CallRecorder::new(profile, vec![clock]);
/// recorder.enter(thread, &main, &[0]).unwrap();
/// recorder.leave(thread, main.function, &[10]).unwrap();
/// assert_eq!(recorder.finish().run_cost(clock), 10);
/// ```
#[derive(Debug)]
pub struct CallRecorder {
    profile: Profile,
    clocks: Vec<MetricId>,
    threads: Vec<OpenThread>,
    /// The clock that statistics of activations are made of, if any.
    timed: Option<usize>,
}

/// The activations of a thread that have not been left, and its clocks at the last event.
#[derive(Debug, Default)]
struct OpenThread {
    stack: Vec<Activation>,
    last: Vec<u64>,
    /// How many activations of each node are open; only where statistics are made.
    active: HashMap<NodeId, u32>,
}

#[derive(Debug)]
struct Activation {
    node: NodeId,
    function: FunctionId,
    /// The reading of the clock of the statistics; 0 where none are made.
    entered: u64,
}

impl CallRecorder {
    /// Starts recording into `profile`; each event brings the values of `clocks`, in that order.
    pub fn new(profile: Profile, clocks: Vec<MetricId>) -> Self {
        Self { profile, clocks, threads: Vec::new(), timed: None }
    }

    /// Makes statistics of single activations, in one of the clocks. Not asked for by default:
    /// they take a look-up more for each event.
    ///
    /// # Panics
    /// When `metric` is none of the clocks.
    pub fn with_statistics(mut self, metric: MetricId) -> Self {
        let clock = self.clocks.iter().position(|&clock| clock == metric);
        self.timed = Some(clock.expect("statistics are made of one of the clocks"));
        self.profile.activations = Some(Activations::new(metric));
        self
    }

    /// A function was entered at the time `now` of each clock.
    ///
    /// # Errors
    /// When a clock stepped back; the event then has no effect.
    pub fn enter(&mut self, thread: ThreadId, frame: &Frame, now: &[u64]) -> Result<NodeId, EventError> {
        let current = self.charge(thread, now)?;
        let (node, folded) = self.profile.step(current, frame);
        self.profile.tree.add_calls(node, 1, u64::from(folded));
        let open = &mut self.threads[thread.index()];
        let entered = self.timed.map_or(0, |clock| now[clock]);
        open.stack.push(Activation { node, function: frame.function, entered });
        if self.timed.is_some() {
            *open.active.entry(node).or_default() += 1;
        }
        Ok(node)
    }

    /// The function entered last was left at the time `now` of each clock.
    ///
    /// # Errors
    /// When a clock stepped back, or when `function` is not the one entered last; the event
    /// then has no effect.
    pub fn leave(&mut self, thread: ThreadId, function: FunctionId, now: &[u64]) -> Result<(), EventError> {
        let open = self.threads.get(thread.index()).and_then(|open| open.stack.last());
        let expected = open.map(|activation| activation.function);
        if expected != Some(function) {
            return Err(EventError::Unbalanced { thread, left: function, expected });
        }
        self.charge(thread, now)?;
        let left = self.threads[thread.index()].stack.pop();
        if let (Some(clock), Some(left)) = (self.timed, left) {
            self.measure(thread, &left, now[clock]);
        }
        Ok(())
    }

    /// Takes an activation that was left into the statistics of its node.
    fn measure(&mut self, thread: ThreadId, left: &Activation, now: u64) {
        let Some(activations) = &mut self.profile.activations else { return };
        let statistics = activations.nodes.row(left.node);
        let cost = now - left.entered;
        statistics.add(cost);
        if let Some(active) = self.threads[thread.index()].active.get_mut(&left.node) {
            *active -= 1;
            if *active == 0 {
                statistics.total = statistics.total.saturating_add(cost);
            }
        }
    }

    /// Adds what activations that are still open cost so far to the totals of their nodes.
    fn measure_open(&mut self) {
        let (Some(clock), Some(activations)) = (self.timed, &mut self.profile.activations) else { return };
        for thread in &mut self.threads {
            for open in &thread.stack {
                if thread.active.remove(&open.node).is_some() {
                    let total = &mut activations.nodes.row(open.node).total;
                    *total = total.saturating_add(thread.last[clock] - open.entered);
                }
            }
        }
    }

    /// How many activations of the thread are open.
    pub fn depth(&self, thread: ThreadId) -> usize {
        self.threads.get(thread.index()).map_or(0, |open| open.stack.len())
    }

    /// The profile so far.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// The profile so far, for adding functions and threads between events.
    pub fn profile_mut(&mut self) -> &mut Profile {
        &mut self.profile
    }

    /// Ends recording. Activations that are still open keep what was charged up to the last
    /// event and are counted in [`Losses::open_activations`](crate::Losses::open_activations).
    pub fn finish(mut self) -> Profile {
        let open: usize = self.threads.iter().map(|thread| thread.stack.len()).sum();
        self.profile.metadata.losses.open_activations += open as u64;
        self.measure_open();
        self.profile
    }

    /// Charges what the clocks advanced to the running node, which is returned.
    fn charge(&mut self, thread: ThreadId, now: &[u64]) -> Result<NodeId, EventError> {
        assert_eq!(now.len(), self.clocks.len(), "an event brings one value of each clock");
        if self.threads.len() <= thread.index() {
            self.threads.resize_with(thread.index() + 1, OpenThread::default);
        }
        let open = &mut self.threads[thread.index()];
        if open.last.is_empty() {
            open.last = now.to_vec();
        }
        let times = open.last.iter().zip(now);
        for ((&from, &to), &metric) in times.zip(&self.clocks) {
            if to < from {
                return Err(EventError::ClockStepsBack { metric, from, to });
            }
        }
        let root = self.profile.threads[thread.index()].root;
        let node = open.stack.last().map_or(root, |activation| activation.node);
        for ((last, &to), &metric) in open.last.iter_mut().zip(now).zip(&self.clocks) {
            self.profile.tree.add_self_cost(metric, node, to - *last);
            *last = to;
        }
        Ok(node)
    }
}

/// A call event that does not fit those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventError {
    /// A function was left that was not the one entered last.
    Unbalanced {
        /// Where it happened.
        thread: ThreadId,
        /// The function that was left.
        left: FunctionId,
        /// The function entered last, or nothing when all were left already.
        expected: Option<FunctionId>,
    },
    /// A clock showed less than at the thread's last event.
    ClockStepsBack {
        /// The clock.
        metric: MetricId,
        /// Its value at the last event.
        from: u64,
        /// Its value now.
        to: u64,
    },
}

impl std::fmt::Display for EventError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unbalanced { left, expected: Some(expected), .. } => {
                write!(f, "function {} is left while function {} runs", left.raw(), expected.raw())
            }
            Self::Unbalanced { left, expected: None, .. } => {
                write!(f, "function {} is left, but none was entered", left.raw())
            }
            Self::ClockStepsBack { from, to, .. } => {
                write!(f, "the clock steps back from {from} to {to}")
            }
        }
    }
}

impl std::error::Error for EventError {}
