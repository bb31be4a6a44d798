//! The tables of `bench octave`.

use super::slice::{Estimate, Pair, Slices};
use super::{FLAT, GRAPH, MODES, OCTAVE};
use crate::table::Table;

/// The workloads of the tables.
const WORKLOADS: [&str; 4] = ["loop", "builtins", "fib", "simulation"];

/// The most time that the call graph may add, in percent, by workload.
const ASKED: [f64; 4] = [2.5, 2.5, 2.5, 2.0];

/// The tables of the page.
pub(super) fn tables(slices: &Slices) -> Vec<Table> {
    vec![added_table(slices), asked_table(slices)]
}

fn added_table(slices: &Slices) -> Table {
    let header = [&["mode"], &WORKLOADS[..]].concat();
    let mut table = Table::new("Added processor time in %, and ns for each call recorded", &header);
    for (mode, (name, ..)) in MODES.iter().enumerate().skip(1) {
        let cells = WORKLOADS.iter().map(|workload| added_cell(slices.of(workload, mode)));
        table.row(std::iter::once((*name).to_owned()).chain(cells).collect());
    }
    table.note("Medians of slices against the mean of the slices before and behind them without profiling, with 95 % intervals.");
    table.note("`none, again` has no profiling either: it shows what this measurement can tell apart.");
    table.note(format!(
        "Without profiling the hooks are in place and pass all calls on. {} slices of `loop` with `graph`.",
        slices.of("loop", GRAPH).len()
    ));
    table
}

fn added_cell(pairs: &[Pair]) -> String {
    let Some(added) = Estimate::of(pairs.iter().map(Pair::added)) else { return "-".to_owned() };
    let text = percent(added);
    let calls = pairs.iter().map(|pair| pair.calls).fold(0.0, f64::max);
    match Estimate::of(pairs.iter().map(Pair::added_s)) {
        Some(seconds) if calls > 0.0 => format!("{text}; {:.0} ns", seconds.median / calls * 1e9),
        _ => text,
    }
}

fn percent(of: Estimate) -> String {
    format!("{:.2} [{:.2}, {:.2}]", of.median * 100.0, of.low * 100.0, of.high * 100.0)
}

/// The targets of the profiler, and whether it reaches them.
fn asked_table(slices: &Slices) -> Table {
    let header = [&["target"], &WORKLOADS[..]].concat();
    let mut table = Table::new("Targets", &header);
    let added = |workload: &str, mode| Estimate::of(slices.of(workload, mode).iter().map(Pair::added));
    let mut row = |name: &str, cell: &dyn Fn(usize) -> Option<String>| {
        let cells = (0..WORKLOADS.len()).map(|at| cell(at).unwrap_or_else(|| "-".to_owned()));
        table.row(std::iter::once(name.to_owned()).chain(cells).collect());
    };
    let verdict = |is_met: bool| if is_met { "met" } else { "not met" };
    row("graph adds at most", &|at| {
        let found = added(WORKLOADS[at], GRAPH)?.median * 100.0;
        Some(format!("{} %: {found:.2}, {}", ASKED[at], verdict(found <= ASKED[at])))
    });
    row("Octave's own adds 8 times that of graph", &|at| {
        let (own, graph) = (added(WORKLOADS[at], OCTAVE)?.median, added(WORKLOADS[at], GRAPH)?.median);
        let times = own / graph;
        match graph > 0.0 {
            true => Some(format!("{times:.1} times, {}", verdict(times >= 8.0))),
            false => Some(format!("{:.1} % against no measurable time", own * 100.0)),
        }
    });
    row("graph takes at most 1.2 of flat", &|at| {
        let run = |mode| Some(1.0 + added(WORKLOADS[at], mode)?.median);
        let times = run(GRAPH)? / run(FLAT)?;
        let added = added(WORKLOADS[at], GRAPH)?.median / added(WORKLOADS[at], FLAT)?.median;
        Some(format!("{times:.3} of the run, {}; {added:.2} of what is added", verdict(times <= 1.2)))
    });
    row("self times within 1 % of the clock", &|at| {
        let pairs = slices.of(WORKLOADS[at], GRAPH);
        let around = Estimate::of(pairs.iter().map(|pair| pair.self_s / pair.base_wall_s - 1.0))?;
        Some(format!("{}, {}", percent(around), verdict(around.median.abs() <= 0.01)))
    });
    table.note(
        "Self times: the sum of all, corrected, against the clock of the neighbours without profiling.",
    );
    table
}
