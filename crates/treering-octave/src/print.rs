//! The printed profile: the table of functions, then the call graph.

use core::fmt::Write as _;

use crate::tables::{Memory, Tables};

/// Functions below this part of the run are left out of the graph.
const LEAST_SHARE: f64 = 0.001;

/// Both tables, or a sentence when there is nothing to show.
pub(crate) fn tables(tables: &Tables) -> String {
    if tables.functions.is_empty() {
        return "nothing was recorded; switch profiling on with: profile on graph\n".to_owned();
    }
    let order = order(tables);
    let mut text = flat(tables, &order);
    if tables.has_memory() {
        text.push('\n');
        text.push_str(&memory(tables));
    }
    if !tables.is_flat {
        text.push('\n');
        text.push_str(&graph(tables, &order));
    }
    text
}

/// The functions, those with the largest self time first, then by name.
fn order(tables: &Tables) -> Vec<usize> {
    let mut order: Vec<usize> = (0..tables.functions.len()).collect();
    order.sort_by(|&a, &b| {
        let (a, b) = (&tables.functions[a], &tables.functions[b]);
        b.self_s.total_cmp(&a.self_s).then_with(|| a.name.cmp(&b.name))
    });
    order
}

fn flat(tables: &Tables, order: &[usize]) -> String {
    let run = tables.run_s();
    let mut text = String::from("     %  cumulative       self                 self      total\n");
    text.push_str("  time     seconds    seconds      calls   ms/call    ms/call  name\n");
    let mut sum = 0.0;
    for &at in order {
        let row = &tables.functions[at];
        sum += row.self_s;
        let per_call = |seconds: f64| seconds * 1e3 / row.calls.max(1) as f64;
        let _ = writeln!(
            text,
            "{:6.2} {sum:11.4} {:10.4} {:10} {:9.4} {:10.4}  {}",
            share(row.self_s, run) * 100.0,
            row.self_s,
            row.calls,
            per_call(row.self_s),
            per_call(row.total_s),
            label(tables, at),
        );
    }
    let _ = writeln!(
        text,
        "\nself: in the function itself; total: with all that it called, recursive calls once;"
    );
    let _ = writeln!(text, "cumulative: the self seconds added up; without the cost of measuring");
    text
}

/// What functions allocated themselves, those first that held most at once.
fn memory(tables: &Tables) -> String {
    let mut rows: Vec<_> = (0..tables.functions.len()).map(|at| (tables.functions[at].memory, at)).collect();
    rows.retain(|(memory, _)| memory.allocations > 0);
    rows.sort_by_key(|(memory, at)| (core::cmp::Reverse((memory.peak, memory.allocated)), *at));
    let mut text = String::from(
        "        peak         live    allocated\n       bytes        bytes        bytes  allocations  name\n",
    );
    for (memory, at) in rows {
        let Memory { allocations, allocated, live, peak } = memory;
        let _ = writeln!(text, "{peak:12} {live:12} {allocated:12} {allocations:12}  {}", label(tables, at));
    }
    text.push_str("\nallocated by the function itself; live: of this, not freed yet; peak: the most that was\nlive at once, at least\n");
    text
}

fn graph(tables: &Tables, order: &[usize]) -> String {
    let run = tables.run_s();
    let mut by_total = order.to_vec();
    by_total.sort_by(|&a, &b| tables.functions[b].total_s.total_cmp(&tables.functions[a].total_s));
    by_total.retain(|&at| share(tables.functions[at].total_s, run) >= LEAST_SHARE);
    let mut text = String::from("call graph: above each function its callers, below it what it called\n\n");
    text.push_str("% time       self      total             calls  name\n");
    for &at in &by_total {
        block(tables, at, run, &mut text);
    }
    let left_out = order.len() - by_total.len();
    if left_out > 0 {
        let _ = writeln!(text, "{left_out} functions with less than 0.1 % of the time are left out");
    }
    text
}

/// A function between its callers and callees.
fn block(tables: &Tables, at: usize, run: f64, text: &mut String) {
    let row = &tables.functions[at];
    let arcs = |pick: &dyn Fn(&(usize, usize)) -> bool| {
        let mut arcs: Vec<_> = tables
            .arcs
            .iter()
            .filter(|(arc, _)| arc.0 != arc.1 && pick(arc))
            .map(|(arc, cost)| (*arc, *cost))
            .collect();
        arcs.sort_by(|a, b| b.1.total_s.total_cmp(&a.1.total_s));
        arcs
    };
    for ((caller, _), arc) in arcs(&|arc| arc.1 == at) {
        let calls = format!("{}/{}", arc.calls, row.calls);
        let _ = writeln!(
            text,
            "                  {:10.4} {calls:>17}      {}",
            arc.total_s,
            label(tables, caller)
        );
    }
    let recursive = tables.arcs.get(&(at, at)).map_or(0, |arc| arc.calls);
    let calls = match recursive {
        0 => row.calls.to_string(),
        inner => format!("{}+{inner}", row.calls.saturating_sub(inner)),
    };
    let percent = share(row.total_s, run) * 100.0;
    let _ = writeln!(
        text,
        "{percent:6.2} {:10.4} {:10.4} {calls:>17}  {}",
        row.self_s,
        row.total_s,
        label(tables, at)
    );
    for ((_, callee), arc) in arcs(&|arc| arc.0 == at) {
        let calls = format!("{}/{}", arc.calls, tables.functions[callee].calls);
        let _ = writeln!(
            text,
            "                  {:10.4} {calls:>17}      {}",
            arc.total_s,
            label(tables, callee)
        );
    }
    text.push_str("------------------------------------------------\n");
}

/// The name, with a mark for what is no user function.
fn label(tables: &Tables, at: usize) -> String {
    let row = &tables.functions[at];
    match row.kind {
        "function" | "anonymous" => row.name.clone(),
        kind => format!("{} ({kind})", row.name),
    }
}

fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}
