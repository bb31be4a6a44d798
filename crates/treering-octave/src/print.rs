//! The printed profile: the table of functions, then the call graph.

use core::fmt::Write as _;

use treering_runtime::events::ActivationStatistics;

use crate::listing::{Kind, Listing, Sort};
use crate::statistics::seconds;
use crate::tables::{Arc, Memory, Tables};

mod lines;
mod sizes;

/// Functions below this part of the run are left out of the graph.
const LEAST_SHARE: f64 = 0.001;

/// The name for time outside of all functions; no function can have it.
const TOP_LEVEL: &str = "#toplevel";

/// The tables that are wanted, or a sentence when there is nothing to show.
pub(crate) fn tables(tables: &Tables, listing: &Listing) -> String {
    if tables.functions.is_empty() {
        return "nothing was recorded; switch profiling on with: profile on graph\n".to_owned();
    }
    let all = order(tables, listing.sort);
    let order = &all[..all.len().min(listing.top.unwrap_or(usize::MAX))];
    let mut text = flat(tables, order, all.len());
    if listing.statistics {
        text.push('\n');
        text.push_str(&single_calls(tables, order, listing));
    }
    if tables.has_memory() {
        text.push('\n');
        text.push_str(&memory(tables));
    }
    if !tables.sizes.is_empty() {
        text.push('\n');
        text.push_str(&sizes::sizes(tables, listing));
    } else if listing.sizes {
        text.push_str("\nno sizes of arguments were recorded; profile on -args does\n");
    }
    if !tables.lines.is_empty() {
        text.push('\n');
        text.push_str(&lines::lines(tables, listing));
    } else if listing.lines {
        text.push_str("\nno lines were recorded; profile on -lines does\n");
    }
    match listing.kind {
        Some(Kind::Flat) => {}
        Some(Kind::Graph) if tables.is_flat => {
            text.push_str("\nno call graph: the profile is flat; profile on graph records one\n");
        }
        None if tables.is_flat => {}
        _ => {
            text.push('\n');
            text.push_str(&graph(tables, order, listing));
        }
    }
    text
}

/// The functions in the order of the table; those that are equal in it by name.
fn order(tables: &Tables, sort: Sort) -> Vec<usize> {
    let mut order: Vec<usize> = (0..tables.functions.len()).collect();
    order.sort_by(|&a, &b| {
        let (a, b) = (&tables.functions[a], &tables.functions[b]);
        let by = match sort {
            Sort::SelfTime => b.self_s.total_cmp(&a.self_s),
            Sort::Total => b.total_s.total_cmp(&a.total_s),
            Sort::Calls => b.calls.cmp(&a.calls),
            Sort::Name => core::cmp::Ordering::Equal,
        };
        by.then_with(|| a.name.cmp(&b.name))
    });
    order
}

/// The table of the functions in `order`, of `of` functions in all.
fn flat(tables: &Tables, order: &[usize], of: usize) -> String {
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
    if order.len() < of {
        let _ = writeln!(text, "{:51}… {}", "", plural(of - order.len(), "other function"));
    }
    let own = tables.top.self_s;
    let _ = writeln!(text, "{:6} {:11} {own:10.4} {:10} {:9} {:10}  {TOP_LEVEL}", "", "", "", "", "");
    if tables.processes > 0 {
        let _ = writeln!(
            text,
            "\nwith {}, whose times are added: the sum may be more than has passed",
            match tables.processes {
                1 => "1 other process".to_owned(),
                count => format!("{count} other processes"),
            }
        );
    }
    text.push_str(
        "\nself: in the function itself; total: with all that it called, recursive calls once;\n\
         cumulative: the self seconds added up; without the cost of measuring\n\
         #toplevel: what no function took while recording: the prompt, waiting for what is typed\n\
         included, or the script above; in no percentage and no sum\n",
    );
    text
}

/// Statistics of single calls, by function.
fn single_calls(tables: &Tables, order: &[usize], listing: &Listing) -> String {
    let mut text = format!("     calls{}  name\n", statistics_headings());
    for &at in order {
        let statistics = &tables.functions[at].statistics;
        let cells = more(listing, Some(statistics));
        let _ = writeln!(text, "{:10}{cells}  {}", statistics.timed, label(tables, at));
    }
    text.push_str(
        "\nof single calls that have ended, each with all that it called, recursive ones as well;\n\
         calm: mean of those that took less than twice the least so far, so were not interrupted;\n\
         mean and calm are without the cost of measuring, least, most and SD are as measured\n",
    );
    text
}

/// The memory that functions allocated themselves, those first that held most at once.
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

fn graph(tables: &Tables, order: &[usize], listing: &Listing) -> String {
    let run = tables.run_s();
    let mut by_total = order.to_vec();
    by_total.sort_by(|&a, &b| tables.functions[b].total_s.total_cmp(&tables.functions[a].total_s));
    by_total.retain(|&at| share(tables.functions[at].total_s, run) >= LEAST_SHARE);
    let mut text = String::from("call graph: above each function its callers, below it what it called\n\n");
    let more = if listing.statistics { statistics_headings() } else { String::new() };
    let _ = writeln!(text, "% time       self      total             calls {more} name");
    text.push_str(&top_block(tables, listing));
    for &at in &by_total {
        block(tables, at, run, listing, &mut text);
    }
    let left_out = order.len() - by_total.len();
    if order.len() < tables.functions.len() {
        let _ = writeln!(text, "of the {} at the top of the table", plural(order.len(), "function"));
    }
    if left_out > 0 {
        let _ = writeln!(text, "left out: {} with less than 0.1 % of the time", plural(left_out, "function"));
    }
    text
}

/// The callees of the top level.
fn top_block(tables: &Tables, listing: &Listing) -> String {
    let top = &tables.top;
    let more = more(listing, None);
    let (own, total) = (top.self_s, top.total_s());
    let mut text = format!("{:6} {own:10.4} {total:10.4} {:>17} {more} {TOP_LEVEL}\n", "", "");
    let lines = top.arcs.iter().map(|(&callee, arc)| Line::callee(tables, callee, *arc)).collect();
    text.push_str(&arc_lines(lines, listing));
    text.push_str(RULE);
    text
}

/// A function between its callers and callees.
fn block(tables: &Tables, at: usize, run: f64, listing: &Listing, text: &mut String) {
    let row = &tables.functions[at];
    let others = || tables.arcs.iter().filter(|(arc, _)| arc.0 != arc.1);
    let caller = |name, arc: &Arc| Line { name, calls: format!("{}/{}", arc.calls, row.calls), arc: *arc };
    let mut callers: Vec<Line> = others()
        .filter(|(arc, _)| arc.1 == at)
        .map(|(&(from, _), arc)| caller(label(tables, from), arc))
        .collect();
    callers.extend(tables.top.arcs.get(&at).map(|arc| caller(TOP_LEVEL.to_owned(), arc)));
    text.push_str(&arc_lines(callers, listing));
    let recursive = tables.arcs.get(&(at, at)).map_or(0, |arc| arc.calls);
    let calls = match recursive {
        0 => row.calls.to_string(),
        inner => format!("{}+{inner}", row.calls.saturating_sub(inner)),
    };
    let percent = share(row.total_s, run) * 100.0;
    let (own, total, name) = (row.self_s, row.total_s, label(tables, at));
    let more = more(listing, Some(&row.statistics));
    let _ = writeln!(text, "{percent:6.2} {own:10.4} {total:10.4} {calls:>17} {more} {name}");
    let callees = others().filter(|(arc, _)| arc.0 == at);
    let callees = callees.map(|(&(_, to), arc)| Line::callee(tables, to, *arc)).collect();
    text.push_str(&arc_lines(callees, listing));
    text.push_str(RULE);
}

const RULE: &str = "------------------------------------------------\n";

/// A caller or a callee in a block.
struct Line {
    name: String,
    /// Calls of the arc, of all calls of the callee.
    calls: String,
    arc: Arc,
}

impl Line {
    fn callee(tables: &Tables, at: usize, arc: Arc) -> Self {
        let calls = format!("{}/{}", arc.calls, tables.functions[at].calls);
        Self { name: label(tables, at), calls, arc }
    }
}

/// The lines, those with the largest total time first.
fn arc_lines(mut lines: Vec<Line>, listing: &Listing) -> String {
    lines.sort_by(|a, b| b.arc.total_s.total_cmp(&a.arc.total_s));
    let line = |Line { name, calls, arc }: Line| {
        let more = more(listing, Some(&arc.statistics));
        format!("                  {:10.4} {calls:>17} {more}     {name}\n", arc.total_s)
    };
    lines.into_iter().map(line).collect()
}

fn statistics_headings() -> String {
    ["mean ms", "calm ms", "least ms", "most ms", "SD ms"].map(|heading| format!(" {heading:>10}")).concat()
}

/// The cells of statistics where they are wanted.
fn more(listing: &Listing, statistics: Option<&ActivationStatistics>) -> String {
    let known = statistics.map_or([None; 5], seconds);
    let cell = |seconds: Option<f64>| match seconds {
        Some(seconds) => format!(" {:10.4}", seconds * 1e3),
        None => format!(" {:>10}", ""),
    };
    if listing.statistics { known.map(cell).concat() } else { String::new() }
}

/// The name, with a mark for each function that is not the user's.
fn label(tables: &Tables, at: usize) -> String {
    let row = &tables.functions[at];
    match row.kind {
        "function" | "anonymous" => row.name.clone(),
        kind => format!("{} ({kind})", row.name),
    }
}

/// `1 call`, `2 calls`.
fn plural(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}
