//! The course of a run: the costs of threads over time, their waits, and the hottest function of each part.

use std::collections::HashMap;
use std::ops::Range;

use treering_profile::{FunctionId, MetricId, Profile, ThreadId, TimeCost, Wait, WaitKind};

use crate::own::own_functions;

/// A run in cells of equal length.
#[derive(Clone, Debug, PartialEq)]
pub struct TimeCourse {
    /// The times that the cells divide, in nanoseconds since the start of the run.
    pub times: Range<u64>,
    /// How many cells there are.
    pub cells: usize,
    /// The threads by their costs, the largest first; those without any are left out.
    pub threads: Vec<ThreadCourse>,
    /// Runs of cells with the same hottest function, in order; cells without a cost are in none.
    pub hottest: Vec<(Range<usize>, FunctionId)>,
}

/// The course of one thread.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadCourse {
    /// The thread.
    pub thread: ThreadId,
    /// Its cost in each cell, in the metric's unit.
    pub costs: Vec<u64>,
    /// How long it waited in each cell for locks, in nanoseconds.
    pub locked: Vec<u64>,
    /// How long it was ready without a processor.
    pub ready: Vec<u64>,
    /// How long it waited for input and output.
    pub input_output: Vec<u64>,
}

impl ThreadCourse {
    /// The cost in all cells.
    pub fn cost(&self) -> u64 {
        self.costs.iter().sum()
    }
}

impl TimeCourse {
    /// The course of a metric between two times, rounded to slots, in at most so many cells; nothing where the profile has
    /// no times of that metric.
    pub fn of(profile: &Profile, metric: MetricId, times: Range<u64>, most_cells: usize) -> Option<Self> {
        let timeline = profile.timeline.as_ref().filter(|_| profile.has_time(metric))?;
        let edge = |time: u64| (time / timeline.slot_ns).min(timeline.slots());
        let end = times.end.saturating_add(timeline.slot_ns - 1);
        let slots = edge(times.start)..edge(end).max(edge(times.start) + 1);
        let cells = usize::try_from(slots.end - slots.start).ok()?.clamp(1, most_cells.max(1));
        let mut course = Self {
            times: timeline.times(&(slots.start as u32..slots.end as u32)),
            cells,
            threads: profile.threads.iter().enumerate().map(|(at, _)| ThreadCourse::new(at, cells)).collect(),
            hottest: Vec::new(),
        };
        let threads = profile.node_threads();
        let own = own_functions(profile);
        let mut by_function: Vec<HashMap<FunctionId, u64>> = vec![HashMap::new(); cells];
        timeline.each_cost(profile, metric, |&TimeCost { slot, node, .. }, cost| {
            if !slots.contains(&u64::from(slot)) {
                return;
            }
            let cell = ((u64::from(slot) - slots.start) * cells as u64 / (slots.end - slots.start)) as usize;
            course.threads[threads[node.index()].index()].costs[cell] += cost;
            *by_function[cell].entry(own[node.index()]).or_default() += cost;
        });
        let kinds = profile.wait_kinds();
        for wait in timeline.waits.iter().flat_map(|waits| &waits.intervals) {
            let is_of_metric = timeline.waits.as_ref().is_some_and(|waits| waits.time == metric);
            let thread = &mut course.threads[threads[wait.node.index()].index()];
            for (cell, within) in within_cells(&course.times, cells, wait) {
                match (wait.preempted, kinds[wait.node.index()]) {
                    (true, _) => thread.ready[cell] += within,
                    (false, WaitKind::Lock) => thread.locked[cell] += within,
                    (false, WaitKind::InputOutput) => thread.input_output[cell] += within,
                    (false, _) => {}
                }
                if is_of_metric && !wait.preempted {
                    thread.costs[cell] += within;
                    *by_function[cell].entry(own[wait.node.index()]).or_default() += within;
                }
            }
        }
        course.threads.retain(|thread| thread.cost() > 0);
        course.threads.sort_by_key(|thread| std::cmp::Reverse(thread.cost()));
        course.hottest = hottest(&by_function);
        Some(course)
    }

    /// The costs of all threads together.
    pub fn all(&self) -> Vec<u64> {
        (0..self.cells).map(|cell| self.threads.iter().map(|thread| thread.costs[cell]).sum()).collect()
    }

    /// The length of a cell in nanoseconds.
    pub fn cell_ns(&self) -> f64 {
        (self.times.end - self.times.start) as f64 / self.cells as f64
    }
}

impl ThreadCourse {
    fn new(thread: usize, cells: usize) -> Self {
        let none = vec![0; cells];
        Self {
            thread: ThreadId::from_usize(thread),
            costs: none.clone(),
            locked: none.clone(),
            ready: none.clone(),
            input_output: none,
        }
    }
}

/// How long a wait was in each cell.
fn within_cells<'a>(
    times: &'a Range<u64>,
    cells: usize,
    wait: &'a Wait,
) -> impl Iterator<Item = (usize, u64)> + 'a {
    let length = (times.end - times.start).max(1);
    let edge = move |cell: usize| times.start + (u128::from(length) * cell as u128 / cells as u128) as u64;
    let cell = |time: u64| {
        let after = time.saturating_sub(times.start).min(length - 1);
        (u128::from(after) * cells as u128 / u128::from(length)) as usize
    };
    (cell(wait.start_ns)..=cell(wait.end_ns)).map(move |cell| {
        (cell, wait.end_ns.min(edge(cell + 1)).saturating_sub(wait.start_ns.max(edge(cell))))
    })
}

/// Runs of cells with the same hottest function.
fn hottest(by_function: &[HashMap<FunctionId, u64>]) -> Vec<(Range<usize>, FunctionId)> {
    let mut runs: Vec<(Range<usize>, FunctionId)> = Vec::new();
    for (cell, costs) in by_function.iter().enumerate() {
        let largest = costs.iter().max_by_key(|&(function, cost)| (cost, std::cmp::Reverse(function)));
        let Some((&function, _)) = largest else { continue };
        match runs.last_mut() {
            Some((cells, last)) if *last == function && cells.end == cell => cells.end = cell + 1,
            _ => runs.push((cell..cell + 1, function)),
        }
    }
    runs
}
