//! Calls that were entered and not yet left, for files that hold such events.

use treering_profile::{Frame, FunctionId, MetricId, NodeId, Profile, ThreadId};

/// The calls of a thread that are open. Unlike a call recorder's, time in which none is open costs nothing:
/// traces have gaps in which the thread waits.
#[derive(Debug)]
pub(crate) struct OpenCalls {
    thread: ThreadId,
    time: MetricId,
    stack: Vec<(NodeId, FunctionId)>,
    last: u64,
    /// When the run was that long, the times of the events began.
    offset: u64,
    counted: bool,
}

impl OpenCalls {
    pub(crate) fn new(thread: ThreadId, time: MetricId) -> Self {
        Self { thread, time, stack: Vec::new(), last: 0, offset: 0, counted: true }
    }

    /// Events whose times are since this time of the run, at most half of the largest number.
    pub(crate) fn since(self, offset: u64) -> Self {
        Self { offset: offset.min(1 << 62), ..self }
    }

    /// Whether calls are counted, as they are unless this says otherwise.
    pub(crate) fn counted(self, counted: bool) -> Self {
        Self { counted, ..self }
    }

    pub(crate) fn depth(&self) -> usize {
        self.stack.len()
    }

    /// The function entered last.
    pub(crate) fn innermost(&self) -> Option<FunctionId> {
        self.stack.last().map(|&(_, function)| function)
    }

    /// A function was entered at `now`, which must not be before the last event.
    pub(crate) fn enter(&mut self, profile: &mut Profile, function: FunctionId, now: u64) {
        self.charge(profile, now);
        let above = self.stack.last().map_or(profile.threads[self.thread.index()].root, |&(node, _)| node);
        let (node, folded) = profile.step(above, &Frame::new(function));
        if self.counted {
            profile.tree.add_calls(node, 1, u64::from(folded));
        }
        self.stack.push((node, function));
    }

    /// The function entered last was left at `now`.
    pub(crate) fn leave(&mut self, profile: &mut Profile, now: u64) {
        self.charge(profile, now);
        self.stack.pop();
    }

    /// Charges the time since the last event to the function that ran.
    pub(crate) fn charge(&mut self, profile: &mut Profile, now: u64) {
        if let Some(&(node, _)) = self.stack.last() {
            profile.tree.add_self_cost(self.time, node, now.saturating_sub(self.last));
            if let Some(timeline) = profile.timeline.as_mut().filter(|_| now > self.last) {
                let since = self.offset;
                timeline.add_span(
                    (since.saturating_add(self.last), since.saturating_add(now)),
                    self.time,
                    (node, None),
                );
            }
        }
        self.last = self.last.max(now);
    }
}
