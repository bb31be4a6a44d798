//! Whether self times come out right: work whose cost is known, measured with and without events.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::Instant;

use treering_events::{Header, Node, Ref, UNIT, View};
use treering_runtime::{Options, scope};

use crate::kernel::{KERNELS, Kernel, State};
use crate::measure::{Effort, FULL, wait_for_the_core};

/// How long the work is, in nanoseconds.
const GRAINS: [f64; 5] = [20.0, 50.0, 80.0, 200.0, 1000.0];

/// The figures of one kernel and length, in nanoseconds for each call.
#[derive(Clone, Copy)]
struct Figures {
    truth: f64,
    child: f64,
    parent: f64,
}

/// Measures in a process of its own, since a recording that goes on stays in its file.
pub(crate) fn measure_apart(effort: Effort) {
    let Ok(program) = std::env::current_exe() else { return };
    let mut command = std::process::Command::new(program);
    command.arg("--recovery");
    if effort.batches < FULL.batches {
        command.arg("--quick");
    }
    let _ = command.status();
}

pub(crate) fn measure(effort: Effort, directory: &Path) {
    let path = directory.join(format!("work.{}.trg", std::process::id()));
    // The runtime measures the cost of a call here, and it has to hold for batches that are not disturbed.
    let is_own = wait_for_the_core();
    treering_runtime::set_profiler(Options { output: Some(path.clone()), ..Options::default() });
    let mut state = State::new();
    let mut steps = 1;
    observed(&mut state, Kernel::Dependent, &mut steps, 1);
    let Some(live) = Live::open(&path) else { return };
    let header = live.header();
    print_head(&header, is_own);
    for (name, kernel) in KERNELS {
        for grain in GRAINS {
            let steps = steps_for(grain, kernel, &mut state);
            print_line(name, grain, &header, &figures(effort, kernel, steps, &mut state, &live));
        }
    }
    treering_runtime::clear_profiler();
    let _ = std::fs::remove_file(path);
}

/// The nodes of the two functions in the live file.
struct Live {
    file: File,
    parent: Ref,
    child: Ref,
}

impl Live {
    fn open(path: &Path) -> Option<Self> {
        let bytes = std::fs::read(path).ok()?;
        let view = View::new(&bytes).ok()?;
        let find = |name: &[u8]| {
            view.functions().find(|(_, known)| view.text(known.name) == name).map(|(_, found)| found.id)
        };
        let (parent, child) = (find(b"work: parent")?, find(b"work: child")?);
        view.threads().find_map(|(_, thread)| {
            let root = view.node(thread.root)?;
            let (parent, node) = view.children(&root).find(|(_, node)| node.function == parent)?;
            let (child, _) = view.children(&node).find(|(_, node)| node.function == child)?;
            Some(Self { file: File::open(path).ok()?, parent, child })
        })
    }

    fn header(&self) -> Header {
        let mut bytes = [0; Header::BYTES];
        self.file.read_exact_at(&mut bytes, 0).expect("the live file");
        Header::read(&bytes).expect("a header")
    }

    /// Ticks of both nodes so far: the parent's and the child's.
    fn totals(&self) -> (u64, u64) {
        let total = |at: Ref| {
            let mut bytes = [0; Node::BYTES];
            self.file.read_exact_at(&mut bytes, u64::from(at) * UNIT).expect("the live file");
            Node::read(&bytes).expect("a node").total
        };
        (total(self.parent), total(self.child))
    }
}

/// How many steps take about so long.
fn steps_for(grain: f64, kernel: Kernel, state: &mut State) -> u32 {
    let mut best = f64::MAX;
    for _ in 0..50 {
        let start = Instant::now();
        (0..100).for_each(|_| kernel.work(100, state));
        best = best.min(start.elapsed().as_nanos() as f64 / 10_000.0);
    }
    ((grain / best).round() as u32).max(1)
}

/// Medians over batches of the loop with events and of the same without, by turns.
fn figures(effort: Effort, kernel: Kernel, steps: u32, state: &mut State, live: &Live) -> Figures {
    let ns_per_tick = live.header().ns_per_tick;
    let mut steps = steps;
    let start = Instant::now();
    (0..20).for_each(|_| plain(state, kernel, &mut steps, 20));
    let each = start.elapsed().as_secs_f64() / 400.0;
    let turns = ((effort.batch.as_secs_f64() / each) as u64).max(4);
    let batches = effort.undisturbed(|| {
        let start = Instant::now();
        plain(state, kernel, &mut steps, turns);
        let truth = start.elapsed().as_nanos() as f64 / turns as f64 / 2.0;
        let before = live.totals();
        observed(state, kernel, &mut steps, turns);
        let after = live.totals();
        let each = |ticks: u64| ticks as f64 * ns_per_tick / turns as f64;
        let child = after.1 - before.1;
        Figures { truth, child: each(child), parent: each(after.0 - before.0 - child) }
    });
    let of = |pick: fn(&Figures) -> f64| median(batches.iter().map(pick).collect());
    Figures {
        truth: of(|batch| batch.truth),
        child: of(|batch| batch.child),
        parent: of(|batch| batch.parent),
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// A parent that works and calls a child that does the same work.
#[inline(never)]
fn plain(state: &mut State, kernel: Kernel, steps: &mut u32, turns: u64) {
    #[inline(never)]
    fn child(state: &mut State, kernel: Kernel, steps: u32) {
        kernel.work(steps, state);
    }
    for _ in 0..turns {
        kernel.work(*std::hint::black_box(&mut *steps), state);
        child(state, kernel, *std::hint::black_box(&mut *steps));
    }
}

/// The same with events.
#[inline(never)]
fn observed(state: &mut State, kernel: Kernel, steps: &mut u32, turns: u64) {
    #[inline(never)]
    fn child(state: &mut State, kernel: Kernel, steps: u32) {
        scope!("work: child");
        kernel.work(steps, state);
    }
    scope!("work: parent");
    for _ in 0..turns {
        kernel.work(*std::hint::black_box(&mut *steps), state);
        child(state, kernel, *std::hint::black_box(&mut *steps));
    }
}

#[expect(clippy::print_stdout, reason = "this is what the benchmark is for")]
fn print_head(header: &Header, is_own: bool) {
    if !is_own {
        println!("\nthe core is busy with something else all the time: what follows holds for that");
    }
    println!(
        "\nself times of known work, ns for each call; taken off: {:.2} inside, {:.2} outside, spread {:.2} (around nothing {:.2}, {:.2})",
        header.inside_ns,
        header.outside_ns,
        header.spread_ns,
        header.empty_inside_ns,
        header.empty_outside_ns
    );
    println!(
        "{:26} {:>5} {:>8} {:>8} | {:>8} {:>8} {:>7} {:>6} {:5} | {:>8} {:>8} {:>7} {:>6} {:5}",
        "work",
        "about",
        "truth",
        "slowdown",
        "child",
        "correct",
        "error",
        "+-",
        "holds",
        "parent",
        "correct",
        "error",
        "+-",
        "holds"
    );
}

#[expect(clippy::print_stdout, reason = "this is what the benchmark is for")]
fn print_line(name: &str, grain: f64, header: &Header, figures: &Figures) {
    // Where the part inside is negative, the amount belongs to the caller, for calls longer than one that
    // does nothing.
    let inside = match header.inside_ns < 0.0 {
        true => -(figures.child - header.empty_inside_ns).clamp(0.0, -header.inside_ns),
        false => header.inside_ns,
    };
    let outside = header.inside_ns + header.outside_ns - inside;
    let line = |raw, bias, empty, truth| corrected(raw, bias, empty, header.spread_ns, truth);
    let child = line(figures.child, inside, header.empty_inside_ns, figures.truth);
    let parent = line(figures.parent, outside, header.empty_outside_ns, figures.truth);
    // Both work as long; what is measured of both together is all that passes.
    let slowdown = (figures.child + figures.parent) / (2.0 * figures.truth);
    println!("{name:26} {grain:5.0} {:8.2} {slowdown:8.3} | {child} | {parent}", figures.truth);
}

/// Raw, corrected, the error that is left, and whether the uncertainty that reports print covers it.
fn corrected(raw: f64, bias: f64, empty_bias: f64, spread: f64, truth: f64) -> String {
    let corrected = (raw - bias).max(0.0);
    let least = (raw - empty_bias.max(bias)).max(0.0);
    let uncertainty = (raw - corrected).abs().max(corrected - least).max(spread);
    let error = corrected - truth;
    let holds = if error.abs() <= uncertainty { "yes" } else { "no" };
    format!("{raw:8.2} {corrected:8.2} {error:+7.2} {uncertainty:6.2} {holds:5}")
}
