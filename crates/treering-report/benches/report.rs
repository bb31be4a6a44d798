//! How long each view of a tree of a million nodes takes, from the profile to the text.
//!
//! `cargo bench -p treering-report`: milliseconds by the wall clock, the least and the greatest of
//! five, and the least of processor time, which means more on a busy machine.
#![expect(clippy::print_stdout, reason = "a benchmark prints its results")]

use std::hint::black_box;
use std::time::Instant;

use treering_analysis::{
    Basis, CallGraph, CallTree, Direction, FunctionSet, LineTable, Presentation, Pruning, Selection,
    default_metric,
};
use treering_profile::{FunctionId, Profile};
use treering_report::{
    Options, Style, call_graph_json, call_graph_text, flat_text, lines_text, summary, tree_json, tree_text,
};
use treering_testing::synthetic::{Shape, synthetic};

fn main() {
    let profile = synthetic(&Shape::MILLION);
    let metric = default_metric(&profile).expect("the profile has a metric");
    println!("{} nodes, {} functions", profile.tree.len(), profile.functions.len());
    let (style, all) = (Style::default(), Options::default());
    let some = Options { min_share: 0.005, ..all };
    let basis = || Basis::of(&profile, metric);
    let graph = |presentation| CallGraph::of(&profile, &basis(), presentation);
    let contexts = || graph(Presentation::Contexts);
    let tree = |direction, min_share| {
        let pruning = Pruning { min_share, ..Pruning::default() };
        (CallTree::of(&profile, &basis(), direction, pruning), pruning)
    };
    let tree_view = |direction, min_share| {
        let (tree, pruning) = tree(direction, min_share);
        tree_text(&profile, &tree, &pruning, &style, &all)
    };
    measure("summary", || summary(&profile, &style, 10));
    measure("flat", || flat_text(&profile, &contexts(), &style, &all));
    measure("call graph, all blocks", || call_graph_text(&profile, &contexts(), &style, &all));
    measure("call graph, --min 0.5", || call_graph_text(&profile, &contexts(), &style, &some));
    measure("call graph, cycles collapsed", || {
        call_graph_text(&profile, &graph(Presentation::CollapsedCycles), &style, &some)
    });
    measure("call graph, all as JSON", || call_graph_json(&profile, &contexts(), &all));
    measure("tree, --min 0.5", || tree_view(Direction::Callees, 0.005));
    measure("tree, --min 0.01", || tree_view(Direction::Callees, 0.0001));
    measure("tree, all as JSON", || tree_json(&profile, &tree(Direction::Callees, 0.0).0));
    measure("callers, --min 0.5", || tree_view(Direction::Callers, 0.005));
    measure("callers, --min 0.01", || tree_view(Direction::Callers, 0.0001));
    let function = FunctionId::new(1);
    measure("lines", || lines_text(&profile, &LineTable::of(&profile, &basis(), function), &style, &all));
    measure("flat, --focus --hide", || selected(&profile, &basis()));
}

fn selected(profile: &Profile, basis: &Basis) -> String {
    let selection = Selection {
        focus: Some(FunctionSet::matching(profile, |name| name.contains('1'))),
        hide: Some(FunctionSet::matching(profile, |name| name.ends_with('7'))),
        ..Selection::default()
    };
    let part = selection.apply(profile).expect("the profile has a tree");
    flat_text(
        &part,
        &CallGraph::of(&part, basis, Presentation::Contexts),
        &Style::default(),
        &Options::default(),
    )
}

fn measure(name: &str, view: impl Fn() -> String) {
    let (mut walls, mut cpus) = (Vec::new(), Vec::new());
    let mut length = 0;
    for _ in 0..5 {
        let (start, cpu) = (Instant::now(), cpu_ms());
        length = black_box(view()).len();
        walls.push(start.elapsed().as_secs_f64() * 1e3);
        cpus.push(cpu_ms() - cpu);
    }
    walls.sort_by(f64::total_cmp);
    cpus.sort_by(f64::total_cmp);
    let [least, greatest, cpu] = [walls[0], walls[4], cpus[0]];
    println!("{name:<30} {least:>6.0} to {greatest:>5.0} ms  CPU {cpu:>5.0} ms  {length:>11} bytes");
}

/// The processor time of this thread in milliseconds, where the system tells it; else 0.
fn cpu_ms() -> f64 {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = told.split(' ').next().and_then(|first| first.parse().ok());
    nanoseconds.unwrap_or(0.0) / 1e6
}
