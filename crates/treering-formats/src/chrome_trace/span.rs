//! Calls of a thread from events that may be out of order, overlap or lack their other half.

use std::collections::HashSet;

use treering_profile::{FunctionId, MetricId, Profile, ThreadId};

use crate::open_calls::OpenCalls;

/// A call event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// `B`.
    Begin(FunctionId),
    /// `E`; its function is not always named.
    End(Option<FunctionId>),
    /// `X`, with its end.
    Complete(FunctionId, u64),
}

/// Events that did not fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Misfits {
    /// Ends without a begin; they had no effect.
    pub(crate) ends: u64,
    /// Calls that were taken to end when their callers did.
    pub(crate) cut: u64,
    /// Begins without an end: they last until the thread's last event.
    pub(crate) open: u64,
}

/// Adds the calls of a thread, whose events and times are in the order of the file, to a metric; they may be counted.
pub(crate) fn add(
    profile: &mut Profile,
    (thread, time, counted): (ThreadId, MetricId, bool),
    events: Vec<(u64, Event)>,
    misfits: &mut Misfits,
) {
    let mut calls = Calls { open: OpenCalls::new(thread, time).counted(counted), ends: Vec::new(), last: 0 };
    for (now, event) in sorted(events) {
        calls.end_complete(profile, now, misfits);
        calls.last = calls.last.max(now);
        match event {
            Event::Begin(function) => calls.enter(profile, function, now, None),
            Event::Complete(function, end) => calls.enter(profile, function, now, Some(end)),
            Event::End(function) => calls.end(profile, function, now, misfits),
        }
    }
    calls.end_complete(profile, u64::MAX, misfits);
    let last = calls.last;
    while let Some(&Open { end, .. }) = calls.ends.last() {
        misfits.open += u64::from(end.is_none());
        calls.leave(profile, end.unwrap_or(last).max(last));
    }
}

/// Sorts events by time. Of calls that begin together, the one that ends last is the caller of the others.
///
/// A call without length is written when it is over, so that it keeps its place before halves of others.
fn sorted(events: Vec<(u64, Event)>) -> impl Iterator<Item = (u64, Event)> {
    let mut halves = HashSet::new();
    let place = |(time, event)| match event {
        Event::Complete(_, end) if end == time && halves.contains(&time) => ((time, 0), event),
        Event::Complete(_, end) => ((time, u64::MAX - end), event),
        Event::Begin(_) | Event::End(_) => {
            halves.insert(time);
            ((time, 0), event)
        }
    };
    let mut placed: Vec<_> = events.into_iter().rev().map(place).collect();
    placed.reverse();
    placed.sort_by_key(|&(place, _)| place);
    placed.into_iter().map(|((time, _), event)| (time, event))
}

struct Calls {
    open: OpenCalls,
    ends: Vec<Open>,
    last: u64,
}

/// A call that has not ended.
#[derive(Clone, Copy)]
struct Open {
    function: FunctionId,
    /// When it ends, where that is known.
    end: Option<u64>,
    /// When the first of its callers ends.
    limit: u64,
}

impl Calls {
    fn enter(&mut self, profile: &mut Profile, function: FunctionId, now: u64, end: Option<u64>) {
        self.open.enter(profile, function, now);
        let limit = self.ends.last().map_or(u64::MAX, |above| above.limit.min(above.end.unwrap_or(u64::MAX)));
        self.ends.push(Open { function, end, limit });
    }

    fn leave(&mut self, profile: &mut Profile, now: u64) {
        self.open.leave(profile, now);
        self.ends.pop();
        self.last = self.last.max(now);
    }

    /// Ends the innermost calls that are over at `now`.
    fn end_complete(&mut self, profile: &mut Profile, now: u64, misfits: &mut Misfits) {
        while let Some(&Open { end: Some(end), limit, .. }) = self.ends.last() {
            // A call cannot last longer than its caller.
            if end.min(limit) > now {
                return;
            }
            misfits.cut += u64::from(end > limit);
            self.leave(profile, end.min(limit));
        }
    }

    /// Ends the call that an `E` names, or else the innermost one, and those that it made.
    fn end(&mut self, profile: &mut Profile, function: Option<FunctionId>, now: u64, misfits: &mut Misfits) {
        let fits =
            |open: &Open| open.end.is_none() && function.is_none_or(|function| function == open.function);
        let Some(at) = self.ends.iter().rposition(fits) else {
            misfits.ends += 1;
            return;
        };
        while self.ends.len() > at {
            misfits.cut += u64::from(self.ends.len() - 1 > at);
            self.leave(profile, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use treering_profile::{Function, Metric, RecursionRule, Unit};

    use super::*;

    /// The costs of functions `a`, `b` ... and how often they were called, for events such as `0B a`, `5E` and
    /// `2X7 b`.
    fn costs(events: &str) -> (String, Misfits) {
        let mut profile = Profile::new(RecursionRule::Full);
        let time = profile.add_metric(Metric::exact("time", Unit::Nanoseconds));
        let thread = profile.add_single_thread("");
        let mut parsed = Vec::new();
        for event in events.split(", ") {
            let (what, name) = event.split_once(' ').unwrap_or((event, ""));
            let function = (!name.is_empty()).then(|| {
                let name = profile.strings.intern(name);
                profile.functions.intern(Function::named(name))
            });
            let at = what.find(|c: char| c.is_ascii_alphabetic()).unwrap();
            let now = what[..at].parse().unwrap();
            parsed.push((
                now,
                match &what[at..=at] {
                    "B" => Event::Begin(function.unwrap()),
                    "X" => Event::Complete(function.unwrap(), what[at + 1..].parse().unwrap()),
                    _ => Event::End(function),
                },
            ));
        }
        let mut misfits = Misfits::default();
        add(&mut profile, (thread, time, true), parsed, &mut misfits);
        let names = |node| {
            let names =
                profile.tree.path(node).map(|node| profile.functions[profile.tree.function(node)].name);
            let mut names: Vec<_> = names.map(|name| profile.strings[name].to_owned()).collect();
            names.reverse();
            names.concat()
        };
        let nodes = profile.tree.nodes().skip(1);
        let row = |node| {
            format!("{} {}x{}", names(node), profile.tree.calls(node), profile.tree.self_cost(time, node))
        };
        (nodes.map(row).collect::<Vec<_>>().join(", "), misfits)
    }

    #[test]
    fn calls_nest_by_their_times() {
        for (events, expected) in [
            ("0B a, 2B b, 5E, 9E", "a 1x6, ab 1x3"),
            ("0X9 a, 2X5 b, 20X21 a", "a 2x7, ab 1x3"),
            // Out of order, and a caller that begins with what it calls.
            ("2X5 b, 0X9 a", "a 1x6, ab 1x3"),
            ("0X3 b, 0X9 a, 3X4 c", "a 1x5, ab 1x3, ac 1x1"),
            ("1X1 b, 0X9 a", "a 1x9, ab 1x0"),
            ("0B a, 2X5 b, 9E a", "a 1x6, ab 1x3"),
            // A call without length is where the file has it.
            ("0B a, 5X5 b, 5E a", "a 1x5, ab 1x0"),
            ("0B a, 5E a, 5X5 b", "a 1x5, b 1x0"),
            ("0X0 b, 0B a, 5E a", "b 1x0, a 1x5"),
            ("0B a, 0X0 b, 5E a", "a 1x5, ab 1x0"),
            ("5X9 c, 0B a, 5X5 b, 5E a", "a 1x5, ab 1x0, c 1x4"),
        ] {
            assert_eq!(costs(events), (expected.to_owned(), Misfits::default()), "{events}");
        }
    }

    #[test]
    fn events_that_do_not_fit_are_counted() {
        for (events, expected, ends, cut, open) in [
            ("0E a, 0B a, 5E a", "a 1x5", 1, 0, 0),
            ("0B a, 2B b, 9E a", "a 1x2, ab 1x7", 0, 1, 0),
            ("0B a, 2B b, 9E b", "a 1x2, ab 1x7", 0, 0, 1),
            ("0X5 a, 2X9 b", "a 1x2, ab 1x3", 0, 1, 0),
            ("0B a, 3E b, 9E a", "a 1x9", 1, 0, 0),
        ] {
            assert_eq!(costs(events), (expected.to_owned(), Misfits { ends, cut, open }), "{events}");
        }
    }
}
