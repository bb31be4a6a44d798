//! The course of a run as JSON.

use serde::Serialize;
use treering_analysis::{Basis, TimeCourse};
use treering_profile::{MarkKind, Profile};

use super::{Place, RunObject, place, run, text};

/// The course of a run as JSON: `run`, the length of `cell_ns`, `threads` with their costs in each cell, the `hottest`
/// function of each run of cells, and the `marks`.
///
/// `course` is of the metric of `basis` in `profile`.
pub fn timeline_json(profile: &Profile, course: &TimeCourse, basis: &Basis) -> String {
    #[derive(Serialize)]
    struct Document<'a> {
        view: &'static str,
        run: RunObject<'a>,
        slot_ns: u64,
        length_ns: u64,
        from_ns: u64,
        to_ns: u64,
        cells: usize,
        threads: Vec<ThreadObject<'a>>,
        hottest: Vec<HottestObject<'a>>,
        marks: Vec<MarkObject<'a>>,
    }
    let timeline = profile.timeline.as_ref();
    let threads = course.threads.iter().map(|course| {
        let thread = &profile.threads[course.thread.index()];
        ThreadObject {
            name: &thread.name,
            tid: thread.tid,
            pid: profile.processes[thread.process.index()].pid,
            cost: course.cost(),
            costs: &course.costs,
            lock_wait_ns: &course.locked,
            ready_ns: &course.ready,
            input_output_wait_ns: &course.input_output,
        }
    });
    let hottest = course.hottest.iter().map(|(cells, function)| HottestObject {
        first_cell: cells.start,
        cells: cells.len(),
        place: place(profile, *function),
    });
    let marks = timeline.iter().flat_map(|timeline| &timeline.marks).map(|mark| MarkObject {
        time_ns: mark.time_ns,
        end_ns: mark.end_ns,
        tid: profile.threads[mark.thread.index()].tid,
        kind: match mark.kind {
            MarkKind::Mark => "mark",
            MarkKind::Exec => "exec",
        },
        name: &profile.strings[mark.name],
    });
    text(&Document {
        view: "timeline",
        run: run(profile, basis),
        slot_ns: timeline.map_or(0, |timeline| timeline.slot_ns),
        length_ns: timeline.map_or(0, |timeline| timeline.length_ns),
        from_ns: course.times.start,
        to_ns: course.times.end,
        cells: course.cells,
        threads: threads.collect(),
        hottest: hottest.collect(),
        marks: marks.collect(),
    })
}

#[derive(Serialize)]
struct ThreadObject<'a> {
    name: &'a str,
    tid: u32,
    pid: u32,
    cost: u64,
    costs: &'a [u64],
    lock_wait_ns: &'a [u64],
    ready_ns: &'a [u64],
    input_output_wait_ns: &'a [u64],
}

#[derive(Serialize)]
struct HottestObject<'a> {
    first_cell: usize,
    cells: usize,
    #[serde(flatten)]
    place: Place<'a>,
}

#[derive(Serialize)]
struct MarkObject<'a> {
    time_ns: u64,
    end_ns: Option<u64>,
    tid: u32,
    kind: &'static str,
    name: &'a str,
}
