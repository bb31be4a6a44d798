//! A benchmark in the sense of CBS: from its start to its stop, with the reports about it.
//!
//! The tree of the process goes on growing from one benchmark to the next; a benchmark is the part that was
//! added to it since its start.

use core::sync::atomic::{AtomicBool, Ordering};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use treering_events::{Forest, Ref, View, setting, thread_state};

use crate::benchmark::{self, Machine, MeasuringCost, Node, Options, Point, Run, Times};
use crate::options::Options as ProfilerOptions;
use crate::process::{self, Quiet};
use crate::sys::{self, Whose};
use crate::{arguments, point, store, thread};

static SESSION: Mutex<Option<Session>> = Mutex::new(None);
/// Whether a benchmark runs, for tasks that ask.
static RUNS: AtomicBool = AtomicBool::new(false);

/// The benchmark that was started last.
struct Session {
    name: Vec<u8>,
    description: Vec<u8>,
    start_unix_s: i64,
    machine: Machine,
    parameters: Vec<(Vec<u8>, Vec<u8>)>,
    results: Vec<(Vec<u8>, Vec<u8>)>,
    /// The number of the thread that started it.
    tid: u32,
    start: Endpoint,
    stopped: Option<Endpoint>,
    notes: Vec<String>,
}

/// The costs and the recording when a benchmark was started or stopped.
struct Endpoint {
    reading: Reading,
    /// A copy of the recording.
    live: Vec<u8>,
    /// CPU time of the process from before the copy to the reading at a start, and from the reading to
    /// after the copy otherwise: tasks of other threads may have been charged with it meanwhile.
    copying_ns: u64,
}

impl Endpoint {
    /// The calling thread is charged with what it has used, so that the benchmark's tasks are not.
    fn of_start() -> Self {
        let before_ns = cpu_ns();
        thread::charge_running();
        let _quiet = Quiet::begin();
        let live = live();
        let reading = Reading::now();
        Self { reading, live, copying_ns: reading.own.cpu_ns().saturating_sub(before_ns) }
    }

    fn of_stop() -> Self {
        let reading = Reading::now();
        let live = live();
        Self { reading, live, copying_ns: cpu_ns().saturating_sub(reading.own.cpu_ns()) }
    }
}

/// A copy of the recording so far.
fn live() -> Vec<u8> {
    if store::header().is_none() { Vec::new() } else { store::copy() }
}

/// The costs of the process at one moment.
#[derive(Clone, Copy, Default)]
struct Reading {
    ticks: u64,
    own: Times,
    children: Times,
}

impl Reading {
    fn now() -> Self {
        let times = |wall_ns, whose| {
            let used = sys::cpu_time(whose);
            Times { wall_ns, user_ns: used.user_ns, system_ns: used.system_ns }
        };
        Self {
            ticks: sys::ticks(),
            own: times(sys::clock_ns(libc::CLOCK_MONOTONIC), Whose::Process),
            children: times(0, Whose::Children),
        }
    }
}

/// The CPU time of the process, in nanoseconds.
fn cpu_ns() -> u64 {
    let used = sys::cpu_time(Whose::Process);
    used.user_ns + used.system_ns
}

fn since(now: Times, before: Times) -> Times {
    Times {
        wall_ns: now.wall_ns.saturating_sub(before.wall_ns),
        user_ns: now.user_ns.saturating_sub(before.user_ns),
        system_ns: now.system_ns.saturating_sub(before.system_ns),
    }
}

fn lock() -> MutexGuard<'static, Option<Session>> {
    SESSION.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether a benchmark was started and not stopped.
pub(crate) fn is_running() -> bool {
    RUNS.load(Ordering::Relaxed)
}

/// Starts a benchmark. One that runs is forgotten, as are reports about earlier ones.
pub(crate) fn start(name: &[u8], description: &[u8]) {
    want_cpu_time();
    process::set(setting::BENCHMARK, name, description);
    let machine = {
        let _quiet = Quiet::begin();
        Machine::here()
    };
    let start = Endpoint::of_start();
    let quiet = Quiet::begin();
    let mut notes = Vec::new();
    if is_running() {
        notes.push("a benchmark was started while another one ran; the earlier one is dropped".to_owned());
    }
    let start_unix_s = (sys::clock_ns(libc::CLOCK_REALTIME) / 1_000_000_000) as i64;
    *lock() = Some(Session {
        name: name.to_vec(),
        description: description.to_vec(),
        start_unix_s,
        machine,
        parameters: Vec::new(),
        results: Vec::new(),
        tid: sys::thread_id(),
        start,
        stopped: None,
        notes,
    });
    arguments::started();
    drop(quiet);
    RUNS.store(true, Ordering::Relaxed);
    point::take(b"Initial memory usage");
    // The time that this thread has used since the process was read belongs to no task either.
    thread::charge_root();
}

/// Tasks of a benchmark are reported with their processor time.
fn want_cpu_time() {
    let _quiet = Quiet::begin();
    process::initialise();
    let options = process::options();
    if let Some(options) = options.filter(|options| !options.cpu_time) {
        process::set_profiler(ProfilerOptions { cpu_time: true, ..options });
    }
}

/// Stops the benchmark.
pub(crate) fn stop() {
    if !RUNS.swap(false, Ordering::Relaxed) {
        return note_stray_stop();
    }
    point::take(b"Final memory usage");
    let _quiet = Quiet::begin();
    if let Some(session) = &mut *lock() {
        session.stopped = Some(Endpoint::of_stop());
    }
    arguments::stopped();
}

fn note_stray_stop() {
    if let Some(session) = &mut *lock() {
        session.notes.push("the benchmark was stopped twice".to_owned());
    }
}

/// Adds a parameter or a result of the benchmark, and of the profile.
pub(crate) fn set(kind: u32, name: &[u8], value: &[u8]) {
    process::set(kind, name, value);
    let _quiet = Quiet::begin();
    if let Some(session) = &mut *lock() {
        let list = if kind == setting::PARAMETER { &mut session.parameters } else { &mut session.results };
        list.push((name.to_vec(), value.to_vec()));
    }
    arguments::told();
}

/// The report of the benchmark that was started last, whether or not it was stopped.
pub(crate) fn report(options: Options) -> Vec<u8> {
    let _quiet = Quiet::begin();
    let mut out = Vec::new();
    match &*lock() {
        Some(session) => session.report(options, &mut out),
        None => {
            let machine = Machine::here();
            let notes = ["no benchmark was started".to_owned()];
            benchmark::write(&Run { notes: &notes, ..Run::new(&machine) }, options, &mut out);
        }
    }
    out
}

/// The costs of every node at an endpoint, by place, and how many leaves had not fit.
fn costs(endpoint: &Endpoint) -> (HashMap<Ref, (u64, u64, Times)>, u64) {
    let Ok(view) = View::new(&endpoint.live) else { return Default::default() };
    let forest = Forest::of(&view, Some(endpoint.reading.ticks));
    let of = |node: &treering_events::Measured| (node.record.calls, node.record.recursive, times_of(node));
    let costs = forest.nodes.iter().map(|node| (node.place, of(node))).collect();
    (costs, unbalanced(&forest))
}

fn unbalanced(forest: &Forest) -> u64 {
    forest.threads.iter().map(|thread| thread.record.unbalanced).sum()
}

fn times_of(node: &treering_events::Measured) -> Times {
    Times { wall_ns: node.self_ns, user_ns: node.record.user_ns, system_ns: node.record.system_ns }
}

/// The cost of measuring one call; `None` where it was not calibrated.
fn measuring_cost(view: &View<'_>) -> Option<MeasuringCost> {
    let header = view.header();
    let estimated_ns = header.inside_ns + header.outside_ns;
    let most_ns = header.empty_inside_ns + header.empty_outside_ns;
    (estimated_ns > 0.0 || most_ns > 0.0).then_some(MeasuringCost { estimated_ns, most_ns })
}

impl Session {
    fn report(&self, options: Options, out: &mut Vec<u8>) {
        let fresh;
        let now = match &self.stopped {
            Some(stopped) => stopped,
            None => {
                fresh = Endpoint::of_stop();
                &fresh
            }
        };
        let pairs = |list: &'_ [(Vec<u8>, Vec<u8>)]| -> Vec<(Vec<u8>, Vec<u8>)> { list.to_vec() };
        let (parameters, results) = (pairs(&self.parameters), pairs(&self.results));
        let parameters: Vec<_> = parameters.iter().map(|(name, value)| (&name[..], &value[..])).collect();
        let results: Vec<_> = results.iter().map(|(name, value)| (&name[..], &value[..])).collect();
        let date = benchmark::date(self.start_unix_s);
        let run = Run {
            name: &self.name,
            description: &self.description,
            start_unix_s: self.start_unix_s,
            date: &date,
            parameters: &parameters,
            results: &results,
            run: since(now.reading.own, self.start.reading.own),
            children: since(now.reading.children, self.start.reading.children),
            cpu_uncertainty_ns: self.cpu_uncertainty_ns(now),
            stopped: self.stopped.is_some(),
            notes: &self.notes,
            ..Run::new(&self.machine)
        };
        match View::new(&now.live) {
            Ok(view) => self.write_with_tasks(&view, now.reading, run, options, out),
            Err(_) => benchmark::write(&run, options, out),
        }
    }

    fn write_with_tasks(
        &self,
        view: &View<'_>,
        reading: Reading,
        run: Run,
        options: Options,
        out: &mut Vec<u8>,
    ) {
        let forest = Forest::of(view, Some(reading.ticks));
        let (before, unbalanced_before) = costs(&self.start);
        let names: HashMap<u32, &[u8]> =
            view.functions().map(|(_, record)| (record.id, view.text(record.name))).collect();
        let mut tasks: Vec<&[u8]> = Vec::new();
        let mut task_of: HashMap<u32, u32> = HashMap::new();
        let mut nodes: Vec<Node> = Vec::new();
        // By index in the forest; `None` for roots and for nodes that were not called since the start.
        let mut kept: Vec<Option<u32>> = Vec::with_capacity(forest.nodes.len());
        let mut timer_measures = 0;
        for measured in &forest.nodes {
            let before = before.get(&measured.place).copied().unwrap_or_default();
            let calls = measured.record.calls.saturating_sub(before.0);
            let self_cost = since(times_of(measured), before.2);
            let parent = measured.parent.and_then(|parent| kept[parent]);
            if measured.parent.is_none() || calls == 0 && parent.is_none() {
                kept.push(None);
                continue;
            }
            let task = *task_of.entry(measured.record.function).or_insert_with(|| {
                tasks.push(names.get(&measured.record.function).copied().unwrap_or_default());
                tasks.len() as u32 - 1
            });
            kept.push(Some(nodes.len() as u32));
            timer_measures += calls;
            let recursive_calls = measured.record.recursive.saturating_sub(before.1);
            nodes.push(Node { parent, task, calls, recursive_calls, self_cost });
        }
        let task_at = |place: Ref| {
            let at = forest.nodes.iter().position(|node| node.place == place)?;
            kept[at].map(|node| nodes[node as usize].task)
        };
        let points = self.points(view, task_at);
        let notes = self.notes(unbalanced(&forest).saturating_sub(unbalanced_before));
        let tasks = &tasks;
        let measuring_cost = measuring_cost(view);
        let run =
            Run { nodes: &nodes, tasks, points: &points, timer_measures, measuring_cost, notes: &notes, ..run };
        benchmark::write(&run, options, out);
    }

    /// By how much the CPU time that tasks were charged with until `now` may exceed that of the process.
    ///
    /// Both come from the same counts of Linux, one for each thread: a thread reads its own when it is
    /// charged, and the process adds up all of them as they stand. A count that is read later is never
    /// less, so the process has all that tasks were charged with, but for this:
    ///
    /// - The time that is used while the records are copied.
    /// - User and system time are each cut to microseconds, so the difference between two readings of one
    ///   thread, or of the process, is off by less than two of them.
    /// - The time that another thread has used before the start and was not charged with falls into the
    ///   benchmark with its next charge. The kernel adds to the count of a thread when the timer
    ///   interrupts it or it leaves the processor; the thread is charged at its first event after
    ///   [`process::CPU_INTERVAL_NS`]. So that is a tick of the timer and this interval at most, if the
    ///   thread has events as often. If not, tasks do cost more than the run, and the report says so.
    fn cpu_uncertainty_ns(&self, now: &Endpoint) -> u64 {
        const ROUNDING_NS: u64 = 2_000;
        let of_process_and_this_thread = 2 * ROUNDING_NS;
        let of_another = ROUNDING_NS + sys::timer_tick_ns() + process::CPU_INTERVAL_NS;
        let copying_ns = self.start.copying_ns + now.copying_ns;
        copying_ns + of_process_and_this_thread + self.other_threads() * of_another
    }

    /// How many threads with records ran at the start besides the one that started the benchmark.
    fn other_threads(&self) -> u64 {
        let Ok(view) = View::new(&self.start.live) else { return 0 };
        let threads = view.threads().map(|(_, thread)| thread);
        let others = threads.filter(|thread| thread.state == thread_state::RUNNING && thread.tid != self.tid);
        others.count() as u64
    }

    fn points<'a>(&self, view: &View<'a>, task_at: impl Fn(Ref) -> Option<u32>) -> Vec<Point<'a>> {
        let ns_per_tick = view.header().ns_per_tick;
        let mut points: Vec<Point> = view
            .points()
            .map(|(_, record)| record)
            .take_while(|record| record.ticks >= self.start.reading.ticks)
            .map(|record| Point {
                time_ns: ((record.ticks - self.start.reading.ticks) as f64 * ns_per_tick) as u64,
                task: task_at(record.node),
                description: view.text(record.description),
                virtual_bytes: record.virtual_bytes,
                resident_bytes: record.resident_bytes,
            })
            .collect();
        points.reverse();
        points
    }

    fn notes(&self, unbalanced: u64) -> Vec<String> {
        let mut notes = self.notes.clone();
        match unbalanced {
            0 => {}
            1 => notes.push("a task was stopped once that was not started".to_owned()),
            many => notes.push(format!("{many} times a task was stopped that was not started")),
        }
        notes
    }
}
