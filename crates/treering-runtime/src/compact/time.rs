//! When time passed, and marks: the tables of a `.trg` file that views of a part of a run are made from.

use std::collections::HashMap;

use treering_events::{Forest, Ref, View};

use super::{BLOCK, Compaction};
use crate::course::{Courses, Entry};
use crate::mark;
use crate::trg::{Kind, Payload, TrgFile};

/// A mark as a `.trg` file has it.
pub(super) struct Mark {
    time_ns: u64,
    /// The index of its thread.
    thread: u64,
    /// The number of its name.
    name: u64,
}

impl Compaction<'_> {
    /// When time passed, if that was kept. Slots are joined until it takes a quarter of what comes before at most, or a
    /// length that is always allowed.
    pub(super) fn timeline(&self, file: &mut TrgFile, marks: &[Mark]) {
        const ALWAYS_ALLOWED: usize = 64 << 10;
        let end = Forest::end_of(self.view);
        let Some(mut courses) = self.courses.clone() else { return };
        let index = |node: Ref| self.nodes.get(&node).map(|&at| at as usize);
        courses.turn_into_ns(self.header.ns_per_tick, |node| {
            index(node).map(|at| self.forest.nodes[at].self_ns)
        });
        let place = |entry: &Entry| index(entry.node).map_or(0, |at| at as u64);
        let room = (file.length() / 4).max(ALWAYS_ALLOWED);
        let mut tables = time_costs(&courses.entries, place);
        while length(&tables) > room && courses.entries.last().is_some_and(|last| last.slot > 0) {
            courses.coarsen();
            tables = time_costs(&courses.entries, place);
        }
        let slot_ns = ((courses.length as f64 * self.header.ns_per_tick).round() as u64).max(1);
        let last_slot = courses.entries.last().map_or(0, |last| u64::from(last.slot) * slot_ns + 1);
        let duration = self.header.last_raw_ns.saturating_sub(self.header.start_raw_ns);
        let of_marks = marks.iter().map(|mark| mark.time_ns + 1).max().unwrap_or(0);
        let length_ns = duration.max(last_slot).max(self.time(end)).max(of_marks);
        let steps_back = self.forest.threads.iter().map(|thread| thread.record.clock_steps_back).sum();
        let mut head = Payload::default();
        [1, slot_ns, length_ns, steps_back, 0, 0, 0].into_iter().for_each(|number| head.number(number));
        file.frame(Kind::Timeline, &head);
        tables.iter().for_each(|table| file.frame(Kind::TimeCosts, table));
        file.frame(Kind::Lives, &self.lives());
        marks.chunks(BLOCK).for_each(|marks| file.frame(Kind::Marks, &marks_table(marks)));
    }

    /// A moment in nanoseconds since the start.
    fn time(&self, ticks: u64) -> u64 {
        (ticks.saturating_sub(self.header.start_ticks) as f64 * self.header.ns_per_tick) as u64
    }

    /// When threads began and ended. Of several that followed each other in one record that is not known.
    fn lives(&self) -> Payload {
        let threads: Vec<_> =
            (0_u64..).zip(&self.forest.threads).filter(|(_, thread)| thread.record.threads <= 1).collect();
        let mut payload = Payload::default();
        payload.number(threads.len() as u64);
        payload.differences(threads.iter().map(|(at, _)| *at));
        let known = |ticks: u64| if ticks == 0 { 0 } else { self.time(ticks) + 1 };
        payload.numbers(threads.iter().map(|(_, thread)| known(thread.record.start_ticks)));
        payload.numbers(threads.iter().map(|(_, thread)| known(thread.record.end_ticks)));
        payload
    }

    /// The marks of threads that the profile has.
    pub(super) fn marks(&mut self) -> Vec<Mark> {
        if self.courses.is_none() {
            return Vec::new();
        }
        let threads: HashMap<Ref, u64> =
            self.forest.threads.iter().map(|thread| thread.place).zip(0..).collect();
        let own = mark::own();
        let mut marks: Vec<Mark> = own
            .iter()
            .filter_map(|own| {
                let thread = *threads.get(&own.thread)?;
                Some(Mark { time_ns: self.time(own.ticks), thread, name: self.strings.intern(own.name.as_bytes()) })
            })
            .collect();
        marks.sort_by_key(|mark| (mark.time_ns, mark.thread));
        marks
    }
}

/// When time passed, if that was kept and follows from the activations: where only some are timed, it does not.
pub(super) fn courses(view: &View<'_>, forest: &Forest) -> Option<Courses> {
    if forest.nodes.iter().any(|node| node.parent.is_some() && node.is_estimate()) {
        return None;
    }
    let running = |thread: &treering_events::ThreadTree| {
        let depth = view.depth(&thread.record);
        let top = view.activation(&thread.record, depth).filter(|_| depth > 0)?;
        Some((thread.place, view.node_of(&top)))
    };
    let running: HashMap<Ref, Ref> = forest.threads.iter().filter_map(running).collect();
    Courses::until(Forest::end_of(view), |thread| running.get(&thread).copied())
}

/// Entries in tables; `node` gives the index of the node of each. All are of the first metric.
fn time_costs(entries: &[Entry], node: impl Fn(&Entry) -> u64) -> Vec<Payload> {
    let table = |entries: &[Entry]| {
        let mut payload = Payload::default();
        payload.number(entries.len() as u64);
        payload.differences(entries.iter().map(|entry| u64::from(entry.slot)));
        payload.numbers(entries.iter().map(|_| 0));
        payload.differences(entries.iter().map(&node));
        payload.differences(entries.iter().map(|_| 0));
        payload.numbers(entries.iter().map(|entry| entry.ticks));
        payload
    };
    entries.chunks(BLOCK).map(table).collect()
}

fn length(payloads: &[Payload]) -> usize {
    payloads.iter().map(|payload| payload.0.len()).sum()
}

fn marks_table(marks: &[Mark]) -> Payload {
    const OF_THE_PROGRAM: u8 = 0;
    let mut payload = Payload::default();
    payload.number(marks.len() as u64);
    payload.differences(marks.iter().map(|mark| mark.time_ns));
    payload.numbers(marks.iter().map(|_| 0));
    payload.differences(marks.iter().map(|mark| mark.thread));
    payload.0.extend(marks.iter().map(|_| OF_THE_PROGRAM));
    payload.numbers(marks.iter().map(|mark| mark.name));
    payload
}
