//! Every view as JSON, for programs. The keys are described in `docs/json.md`.
//!
//! Costs are numbers in the metric's unit, unrounded; what is not known is `null`.

mod block_list;
mod blocks;
mod detail;
mod exact;
mod histogram;
mod owners;
mod points;
mod prof;
mod timeline;
mod wakers;

use std::collections::BTreeMap;

use serde::Serialize;
use treering_analysis::{
    Arc, ArcSource, Basis, CallGraph, CallTree, Details, Direction, ExactCost, FunctionCost, Interval,
    LineCall, LineTable, Measure, Part, Presentation, RunSpread, SortKey, TotalSource, TreeRow, flat,
    folded_cost, function_name, samples_metric, sort_functions,
};
use treering_profile::{Benchmark, CallBias, FunctionId, Losses, Note, Profile, StringId, Unit};

use detail::{DetailObject, GrowthObject, SizeObject, growth_object, size_objects};
use exact::{ExactObject, exact_of_arc, exact_of_function};

use crate::facts::{Facts, known_losses};
use crate::options::Options;

pub use block_list::block_list_json;
pub use blocks::blocks_json;
pub use histogram::histogram_json;
pub use owners::{metrics_json, processes_json, threads_json};
pub use points::points_json;
pub use prof::prof_json;
pub use timeline::timeline_json;
pub use wakers::wakers_json;

/// The flat profile as JSON: `run` and `functions`, and `spread` where several runs were merged.
pub fn flat_json(profile: &Profile, graph: &CallGraph, options: &Options) -> String {
    let rows = flat(profile, graph, options.sort.unwrap_or(SortKey::SelfCost));
    let shown = rows.iter().map(|row| row.cost).filter(|cost| is_shown(graph, cost, options));
    let details = Details::of(profile, graph.basis.metric);
    let exact = ExactCost::beside(profile, graph);
    let shown = shown.take(options.limit.unwrap_or(usize::MAX));
    let functions = shown.map(|cost| function(profile, graph, &details, &exact, cost));
    #[derive(Serialize)]
    struct Document<'a> {
        view: &'static str,
        run: RunObject<'a>,
        functions: Vec<FunctionObject<'a>>,
        spread: Option<SpreadObject<'a>>,
    }
    let spread = RunSpread::of(graph).map(|spread| spread_object(profile, &spread));
    text(&Document { view: "flat", run: run(profile, &graph.basis), functions: functions.collect(), spread })
}

/// The call graph as JSON: `run`, `functions` with their `callers` and `callees`, `arcs` and
/// `cycles`.
pub fn call_graph_json(profile: &Profile, graph: &CallGraph, options: &Options) -> String {
    #[derive(Serialize)]
    struct Block<'a> {
        #[serde(flatten)]
        function: FunctionObject<'a>,
        argument_sizes: Vec<SizeObject>,
        #[serde(skip_serializing_if = "Option::is_none")]
        growth: Option<GrowthObject>,
        callers: Vec<ContributionObject<'a>>,
        callees: Vec<ContributionObject<'a>>,
    }
    #[derive(Serialize)]
    struct Document<'a> {
        view: &'static str,
        run: RunObject<'a>,
        collapsed_cycles: bool,
        functions: Vec<Block<'a>>,
        arcs: Vec<ArcObject<'a>>,
        cycles: Vec<CycleObject<'a>>,
    }
    let mut shown: Vec<_> = graph.functions.iter().filter(|cost| is_shown(graph, cost, options)).collect();
    sort_functions(profile, &mut shown, options.sort.unwrap_or(SortKey::TotalCost));
    shown.truncate(options.limit.unwrap_or(usize::MAX));
    let details = Details::of(profile, graph.basis.metric);
    let exact = ExactCost::beside(profile, graph);
    let block = |cost: &'_ FunctionCost| Block {
        function: function(profile, graph, &details, &exact, cost),
        argument_sizes: size_objects(details.function(cost.function)),
        growth: growth_object(details.function(cost.function)),
        callers: graph
            .callers(cost.function)
            .map(|arc| contribution(profile, graph, &details, arc, arc.from_caller))
            .collect(),
        callees: graph
            .callees(cost.function)
            .map(|arc| contribution(profile, graph, &details, arc, arc.to_callee))
            .collect(),
    };
    text(&Document {
        view: "callgraph",
        run: run(profile, &graph.basis),
        collapsed_cycles: graph.presentation == Presentation::CollapsedCycles,
        functions: shown.into_iter().map(block).collect(),
        arcs: graph.arcs.iter().map(|arc| arc_object(profile, graph, &details, &exact, arc)).collect(),
        cycles: cycles(profile, graph),
    })
}

/// A tree of calls as JSON: `run` and `nodes`, a node before those below it.
pub fn tree_json(profile: &Profile, tree: &CallTree) -> String {
    #[derive(Serialize)]
    struct Document<'a> {
        view: &'static str,
        run: RunObject<'a>,
        nodes: Vec<NodeObject<'a>>,
    }
    let view = match tree.direction {
        Direction::Callees => "tree",
        Direction::Callers => "callers",
    };
    let nodes = tree.rows.iter().map(|row| node(profile, &tree.basis, row)).collect();
    text(&Document { view, run: run(profile, &tree.basis), nodes })
}

/// The lines of a function as JSON: `run`, `function` and `lines` with their `calls`.
pub fn lines_json(profile: &Profile, table: &LineTable) -> String {
    #[derive(Serialize)]
    struct Document<'a> {
        view: &'static str,
        run: RunObject<'a>,
        #[serde(flatten)]
        function: Place<'a>,
        self_cost: u64,
        total_cost: Option<u64>,
        lines: Vec<LineObject<'a>>,
        self_elsewhere: u64,
        calls_elsewhere: Vec<LineCallObject<'a>>,
    }
    text(&Document {
        view: "lines",
        run: run(profile, &table.basis),
        function: place(profile, table.function),
        self_cost: table.self_cost.cost,
        total_cost: known(table, table.total_cost),
        lines: lines(profile, table),
        self_elsewhere: table.self_elsewhere.cost,
        calls_elsewhere: table.calls_elsewhere.iter().map(|call| line_call(profile, table, call)).collect(),
    })
}

fn text(document: &impl Serialize) -> String {
    let mut text = serde_json::to_string_pretty(document).expect("documents hold nothing JSON cannot say");
    text.push('\n');
    text
}

fn is_shown(graph: &CallGraph, cost: &FunctionCost, options: &Options) -> bool {
    let largest = cost.self_cost.cost.max(total_cost(graph, cost.total_cost).unwrap_or(0));
    graph.basis.share(largest) >= options.min_share
}

/// A total cost, if they are known.
fn total_cost(graph: &CallGraph, total: Measure) -> Option<u64> {
    graph.totals.is_known().then_some(total.cost)
}

/// The value in place of a total cost that was not measured: the cost apportioned by calls.
fn estimated(graph: &CallGraph, total: Measure) -> Option<u64> {
    (graph.totals == TotalSource::Apportioned).then_some(total.cost)
}

/// The base of the numbers, and how sure they are as a whole.
#[derive(Serialize)]
struct RunObject<'a> {
    commands: Vec<&'a [String]>,
    run_cost: u64,
    selected_cost: u64,
    metric: &'a str,
    unit: Unit,
    metrics: Vec<std::borrow::Cow<'a, str>>,
    samples: Option<u64>,
    period: Option<u64>,
    jittered: Option<bool>,
    unlisted_high: Option<u64>,
    wall_ns: u64,
    cpu_ns: Option<u64>,
    raw_cost: Option<u64>,
    call_bias: Option<CallBias>,
    benchmark: Option<&'a Benchmark>,
    losses: Option<&'a Losses>,
    notes: &'a [Note],
    not_counted: Vec<String>,
    unfinished: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    folded_cost: Option<u64>,
}

fn run<'a>(profile: &'a Profile, basis: &Basis) -> RunObject<'a> {
    let metric = &profile.metrics[basis.metric.index()];
    let facts = Facts::of(profile, basis);
    let sampling = metric.sampling.as_ref();
    RunObject {
        commands: profile.runs.iter().map(|run| run.command.as_slice()).collect(),
        run_cost: basis.run.cost,
        selected_cost: profile.run_cost(basis.metric),
        metric: &metric.name,
        unit: metric.unit,
        metrics: profile.cost_metrics().map(|(id, _)| profile.metric_label(id)).collect(),
        samples: samples_metric(profile, basis.metric).map(|_| basis.run.samples),
        period: sampling.and_then(|sampling| sampling.period),
        jittered: sampling.and_then(|sampling| sampling.jittered),
        unlisted_high: basis.unlisted().map(|share| (share * basis.run.cost as f64).round() as u64),
        wall_ns: facts.wall_ns(),
        cpu_ns: facts.cpu_ns(),
        raw_cost: basis.correction.map(|correction| correction.raw_cost),
        call_bias: profile.metadata.call_bias,
        benchmark: profile.metadata.benchmark.as_ref(),
        losses: known_losses(profile),
        notes: &profile.metadata.notes,
        not_counted: facts.uncounted(),
        unfinished: profile.metadata.unfinished,
        folded_cost: folded_cost(profile, basis.metric),
    }
}

/// The function's identity.
#[derive(Serialize)]
struct Place<'a> {
    function: std::borrow::Cow<'a, str>,
    module: Option<&'a str>,
    file: Option<&'a str>,
    line: Option<u32>,
    kind: &'static str,
}

fn place(profile: &Profile, function: FunctionId) -> Place<'_> {
    let entry = &profile.functions[function];
    Place {
        function: function_name(profile, function),
        module: module(profile, function),
        file: non_empty(profile, entry.file),
        line: Some(entry.line).filter(|&line| line > 0),
        kind: entry.kind.as_str(),
    }
}

/// The path of the binary that holds a function.
fn module(profile: &Profile, function: FunctionId) -> Option<&str> {
    profile.functions[function].module.map(|module| &profile.strings[profile.modules[module].path])
}

fn non_empty(profile: &Profile, text: StringId) -> Option<&str> {
    Some(&profile.strings[text]).filter(|text| !text.is_empty())
}

#[derive(Serialize)]
struct FunctionObject<'a> {
    #[serde(flatten)]
    place: Place<'a>,
    self_cost: u64,
    total_cost: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    estimated_total_cost: Option<u64>,
    calls: Option<u64>,
    recursive_calls: Option<u64>,
    self_samples: Option<u64>,
    total_samples: Option<u64>,
    self_low: Option<u64>,
    self_high: Option<u64>,
    total_low: Option<u64>,
    total_high: Option<u64>,
    cycle: Option<usize>,
    self_uncertainty: Option<u64>,
    unresolved: bool,
    estimated: bool,
    #[serde(flatten)]
    detail: DetailObject,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    exact: BTreeMap<String, ExactObject>,
}

fn function<'a>(
    profile: &'a Profile,
    graph: &CallGraph,
    details: &Details,
    exact: &[ExactCost],
    cost: &FunctionCost,
) -> FunctionObject<'a> {
    let whole = graph.basis.run.cost;
    let samples = |measure: Measure| graph.basis.samples.map(|_| measure.samples);
    let (self_low, self_high) = bounds(cost.self_interval, whole);
    let (total_low, total_high) = bounds(cost.total_interval, whole);
    FunctionObject {
        place: place(profile, cost.function),
        self_cost: cost.self_cost.cost,
        total_cost: total_cost(graph, cost.total_cost),
        estimated_total_cost: estimated(graph, cost.total_cost),
        calls: cost.calls.map(|calls| calls.all),
        recursive_calls: cost.calls.map(|calls| calls.recursive),
        self_samples: samples(cost.self_cost),
        total_samples: samples(cost.total_cost),
        self_low,
        self_high,
        total_low,
        total_high,
        cycle: cost.cycle.map(|cycle| cycle + 1),
        self_uncertainty: cost.reliability.uncertainty,
        unresolved: cost.reliability.unresolved,
        estimated: cost.reliability.estimated,
        detail: DetailObject::of(details, details.function(cost.function)),
        exact: exact_of_function(exact, cost.function),
    }
}

fn bounds(interval: Option<Interval>, whole: u64) -> (Option<u64>, Option<u64>) {
    interval.map(|interval| interval.of_cost(whole)).unzip()
}

/// The functions of an arc.
#[derive(Serialize)]
struct Ends<'a> {
    caller: Option<std::borrow::Cow<'a, str>>,
    caller_module: Option<&'a str>,
    callee: std::borrow::Cow<'a, str>,
    callee_module: Option<&'a str>,
}

fn ends<'a>(profile: &'a Profile, arc: &Arc) -> Ends<'a> {
    Ends {
        caller: arc.caller.map(|caller| function_name(profile, caller)),
        caller_module: arc.caller.and_then(|caller| module(profile, caller)),
        callee: function_name(profile, arc.callee),
        callee_module: module(profile, arc.callee),
    }
}

#[derive(Serialize)]
struct ContributionObject<'a> {
    #[serde(flatten)]
    ends: Ends<'a>,
    calls: Option<u64>,
    self_cost: Option<u64>,
    total_cost: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    estimated_self_cost: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    estimated_total_cost: Option<u64>,
    apportioned: bool,
    #[serde(flatten)]
    detail: DetailObject,
    #[serde(skip_serializing_if = "Option::is_none")]
    growth: Option<GrowthObject>,
}

fn contribution<'a>(
    profile: &'a Profile,
    graph: &CallGraph,
    details: &Details,
    arc: &Arc,
    part: Part,
) -> ContributionObject<'a> {
    let apportioned = arc.source == ArcSource::Apportioned;
    let (measured, estimated) = (Some(part).filter(|_| !apportioned), Some(part).filter(|_| apportioned));
    ContributionObject {
        ends: ends(profile, arc),
        calls: calls(graph, arc),
        self_cost: measured.map(|part| part.self_cost.cost),
        total_cost: measured.map(|part| part.total.cost),
        estimated_self_cost: estimated.map(|part| part.self_cost.cost),
        estimated_total_cost: estimated.map(|part| part.total.cost),
        apportioned,
        detail: DetailObject::of(details, details.arc(arc)),
        growth: growth_object(details.arc(arc)),
    }
}

/// How often an arc was called, if that was counted.
fn calls(graph: &CallGraph, arc: &Arc) -> Option<u64> {
    graph.has_calls().then_some(arc.calls).filter(|&calls| calls > 0 || !graph.counts_apart())
}

#[derive(Serialize)]
struct ArcObject<'a> {
    #[serde(flatten)]
    ends: Ends<'a>,
    calls: Option<u64>,
    total_cost: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    total_low: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    total_high: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    estimated_total_cost: Option<u64>,
    apportioned: bool,
    #[serde(flatten)]
    detail: DetailObject,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    argument_sizes: Vec<SizeObject>,
    #[serde(skip_serializing_if = "Option::is_none")]
    growth: Option<GrowthObject>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    exact: BTreeMap<String, ExactObject>,
}

fn arc_object<'a>(
    profile: &'a Profile,
    graph: &CallGraph,
    details: &Details,
    exact: &[ExactCost],
    arc: &Arc,
) -> ArcObject<'a> {
    let apportioned = arc.source == ArcSource::Apportioned;
    let cost = Some(arc.total_cost.cost);
    let interval = graph.basis.interval(arc.total_cost).filter(|_| graph.counts_apart());
    let (total_low, total_high) = bounds(interval, graph.basis.run.cost);
    ArcObject {
        ends: ends(profile, arc),
        calls: calls(graph, arc),
        total_cost: cost.filter(|_| !apportioned),
        total_low,
        total_high,
        estimated_total_cost: cost.filter(|_| apportioned),
        apportioned,
        detail: DetailObject::of(details, details.arc(arc)),
        argument_sizes: size_objects(details.arc(arc)),
        growth: growth_object(details.arc(arc)),
        exact: exact_of_arc(exact, arc),
    }
}

#[derive(Serialize)]
struct CycleObject<'a> {
    cycle: usize,
    functions: Vec<std::borrow::Cow<'a, str>>,
    members: Vec<Place<'a>>,
    self_cost: u64,
    total_cost: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    estimated_total_cost: Option<u64>,
    calls_from_outside: u64,
    calls_within: u64,
}

fn cycles<'a>(profile: &'a Profile, graph: &CallGraph) -> Vec<CycleObject<'a>> {
    let object = |(number, cost): (usize, &treering_analysis::CycleCost)| CycleObject {
        cycle: number,
        functions: cost.cycle.members.iter().map(|&member| function_name(profile, member)).collect(),
        members: cost.cycle.members.iter().map(|&member| place(profile, member)).collect(),
        self_cost: cost.self_cost.cost,
        total_cost: total_cost(graph, cost.total_cost),
        estimated_total_cost: estimated(graph, cost.total_cost),
        calls_from_outside: cost.calls_from_outside,
        calls_within: cost.calls_within,
    };
    (1..).zip(&graph.cycles).map(object).collect()
}

#[derive(Serialize)]
struct SpreadObject<'a> {
    runs: usize,
    ratio: Option<f64>,
    threshold: f64,
    suspicious: bool,
    functions: Vec<FunctionSpreadObject<'a>>,
}

#[derive(Serialize)]
struct FunctionSpreadObject<'a> {
    #[serde(flatten)]
    place: Place<'a>,
    mean_share: f64,
    sd: f64,
    binomial_sd: f64,
    ratio: Option<f64>,
}

fn spread_object<'a>(profile: &'a Profile, spread: &RunSpread) -> SpreadObject<'a> {
    let functions = spread.functions.iter().map(|found| FunctionSpreadObject {
        place: place(profile, found.function),
        mean_share: found.mean_share,
        sd: found.sd,
        binomial_sd: found.binomial_sd,
        ratio: found.ratio(),
    });
    SpreadObject {
        runs: spread.runs,
        ratio: spread.ratio,
        threshold: spread.threshold,
        suspicious: spread.is_suspicious(),
        functions: functions.collect(),
    }
}

/// A node of a tree, or what was left out below the node above.
#[derive(Serialize)]
#[serde(untagged)]
enum NodeObject<'a> {
    Node {
        depth: usize,
        #[serde(flatten)]
        place: Place<'a>,
        inlined: bool,
        self_cost: u64,
        total_cost: u64,
        calls: Option<u64>,
        samples: Option<u64>,
        total_low: Option<u64>,
        total_high: Option<u64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cycle: Option<usize>,
    },
    Shared {
        depth: usize,
        #[serde(flatten)]
        place: Place<'a>,
        self_cost: Option<u64>,
        total_cost: u64,
        calls: u64,
        others: usize,
        #[serde(skip_serializing_if = "Option::is_none")]
        cycle: Option<usize>,
    },
    Hidden {
        depth: usize,
        hidden_nodes: usize,
        total_cost: u64,
        too_deep: bool,
    },
}

fn node<'a>(profile: &'a Profile, basis: &Basis, row: &TreeRow) -> NodeObject<'a> {
    match row {
        TreeRow::Node(node) => {
            let (total_low, total_high) = bounds(basis.interval(node.total_cost), basis.run.cost);
            NodeObject::Node {
                depth: node.depth,
                place: place(profile, node.function),
                inlined: node.inlined,
                self_cost: node.self_cost.cost,
                total_cost: node.total_cost.cost,
                calls: node.calls,
                samples: basis.samples.map(|_| node.total_cost.samples),
                total_low,
                total_high,
                cycle: node.cycle.map(|cycle| cycle + 1),
            }
        }
        TreeRow::Shared(node) => NodeObject::Shared {
            depth: node.depth,
            place: place(profile, node.function),
            self_cost: None,
            total_cost: node.total_cost.cost,
            calls: node.calls,
            others: node.others,
            cycle: node.cycle.map(|cycle| cycle + 1),
        },
        TreeRow::Hidden(hidden) => NodeObject::Hidden {
            depth: hidden.depth,
            hidden_nodes: hidden.nodes,
            total_cost: hidden.cost.cost,
            too_deep: hidden.too_deep,
        },
    }
}

#[derive(Serialize)]
struct LineObject<'a> {
    file: Option<&'a str>,
    line: Option<u32>,
    self_cost: u64,
    total_cost: Option<u64>,
    self_samples: Option<u64>,
    hits: Option<u64>,
    calls: Vec<LineCallObject<'a>>,
}

#[derive(Serialize)]
struct LineCallObject<'a> {
    callee: std::borrow::Cow<'a, str>,
    callee_module: Option<&'a str>,
    calls: Option<u64>,
    total_cost: Option<u64>,
}

/// A total cost, if they are known.
fn known(table: &LineTable, total: Measure) -> Option<u64> {
    table.totals.is_known().then_some(total.cost)
}

fn lines<'a>(profile: &'a Profile, table: &LineTable) -> Vec<LineObject<'a>> {
    let object = |row: &treering_analysis::LineRow| LineObject {
        file: non_empty(profile, row.file),
        line: Some(row.line).filter(|&line| line > 0),
        self_cost: row.self_cost.cost,
        total_cost: known(table, row.total_cost()),
        self_samples: table.basis.samples.map(|_| row.self_cost.samples),
        hits: row.hits,
        calls: row.calls.iter().map(|call| line_call(profile, table, call)).collect(),
    };
    table.lines.iter().map(object).collect()
}

fn line_call<'a>(profile: &'a Profile, table: &LineTable, call: &LineCall) -> LineCallObject<'a> {
    LineCallObject {
        callee: function_name(profile, call.callee),
        callee_module: module(profile, call.callee),
        calls: profile.tree.has_calls().then_some(call.calls).or(Some(call.calls).filter(|&calls| calls > 0)),
        total_cost: known(table, call.total_cost),
    }
}
