//! Makes a `gmon.out` of a profile, for one of its modules.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use treering_profile::{
    FunctionId, FunctionKind, MetricId, ModuleId, NodeId, Profile, RecursionRule, Unit, pluralize,
};

use super::{ArcCount, Gmon, Histogram, Layout, UNIT};
use crate::Dropped;

/// Why no `gmon.out` can be made of a profile.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotExportable {
    /// It is not known where functions begin, so that gprof could not name them.
    NoAddresses,
    /// There is no such metric.
    NoMetric,
}

impl fmt::Display for NotExportable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoAddresses => {
                "the profile does not know the addresses of functions in a program, by which gprof finds their names"
            }
            Self::NoMetric => "the profile has no costs",
        })
    }
}

impl std::error::Error for NotExportable {}

/// The part of a profile that a `gmon.out` can hold: of one module, or else of that in which most was spent, its self
/// costs in one metric and the calls between its functions. Returns the path of that module with it.
///
/// Samples with a known address are in the bin of two bytes at that address. If no addresses are known, each function
/// with a cost has its own histogram, of its first two bytes, so that no bin needs to be divided.
///
/// # Errors
/// When no addresses of functions are known.
pub fn of_profile(
    profile: &Profile,
    metric: MetricId,
    module: Option<ModuleId>,
    layout: Layout,
) -> Result<(Gmon, String, Dropped), NotExportable> {
    if metric.index() >= profile.metrics.len() {
        return Err(NotExportable::NoMetric);
    }
    let holders = Holders::of(profile);
    let costs = holders.costs(profile, metric);
    let module = module.or_else(|| largest_module(profile, &costs)).ok_or(NotExportable::NoAddresses)?;
    let address = |function: FunctionId| {
        let function = &profile.functions[function];
        function.address.filter(|_| function.module == Some(module)).map(|address| address.0)
    };
    let (mut by_start, mut elsewhere) = (BTreeMap::<u64, u64>::new(), 0_u64);
    for (&function, &cost) in &costs {
        match address(function) {
            Some(start) => *by_start.entry(start).or_default() += cost,
            None => elsewhere = elsewhere.saturating_add(cost),
        }
    }
    let mut gmon = Gmon::new(layout);
    let by_unit = by_unit(profile, metric, module, &by_start);
    gmon.histograms = histograms(profile, metric, &by_unit);
    let mut dropped = Dropped::default();
    let mut lost_calls = 0_u64;
    let mut arcs: BTreeMap<(u64, u64), u64> = BTreeMap::new();
    for ((caller, callee), calls) in holders.calls(profile) {
        match (address(caller), address(callee)) {
            (Some(caller), Some(callee)) => {
                let sum = arcs.entry((caller, callee)).or_default();
                *sum = sum.saturating_add(calls);
            }
            _ => lost_calls = lost_calls.saturating_add(calls),
        }
    }
    gmon.arcs = arcs.into_iter().map(|((from, callee), calls)| ArcCount { from, callee, calls }).collect();
    if gmon.histograms.is_empty() {
        // Without one, gprof does not know what to divide by, and prints -nan.
        let low = gmon.arcs.first().map_or(0, |arc| arc.callee / UNIT * UNIT);
        let high = low.saturating_add(UNIT);
        let dimension = "seconds".to_owned();
        gmon.histograms.push(Histogram {
            low,
            high,
            rate: 100,
            dimension,
            abbreviation: b's',
            bins: vec![0],
        });
    }
    note(profile, metric, elsewhere, lost_calls, &gmon, &mut dropped);
    let path = profile.strings[profile.modules[module].path].to_owned();
    Ok((gmon, path, dropped))
}

fn note(profile: &Profile, metric: MetricId, elsewhere: u64, calls: u64, gmon: &Gmon, dropped: &mut Dropped) {
    let run = profile.run_cost(metric).max(1);
    if elsewhere > 0 {
        let share = elsewhere as f64 * 100.0 / run as f64;
        dropped
            .note(format!("{share:.1} % of the costs: those outside of the functions of this one program"));
    }
    if calls > 0 {
        let calls = pluralize(calls, "call that does", "calls that do");
        dropped.note(format!("{calls} not lead from one function of the program to another"));
    }
    dropped
        .note_if(gmon.arcs.is_empty() && calls == 0, "callers: the profile has no calls that were counted");
    let tree = !profile.is_arcs_only() && profile.recursion != RecursionRule::Flat;
    dropped.note_if(tree, "contexts: gprof divides costs among callers by their calls");
    let measured = profile.arcs.iter().any(|arc| !arc.total_costs.is_empty());
    dropped.note_if(measured, "what arcs cost: gprof divides costs among callers by their calls");
    let others = profile.cost_metrics().filter(|(id, other)| {
        *id != metric && profile.metrics[metric.index()].counted_by() != Some(*id) && !other.is_level
    });
    let names: Vec<_> = others.map(|(_, other)| other.name.as_str()).collect();
    if !names.is_empty() {
        dropped.note(format!("other metrics: {}", names.join(", ")));
    }
    let lines = !profile.line_costs.is_empty() && profile.address_costs.is_empty();
    dropped.note_if(lines, "lines: costs are those of whole functions");
    dropped.note_if(profile.threads.len() > 1, "threads: they are added up");
    // Calls have a place here.
    let mut details = Dropped::default();
    details.note_details(profile);
    details.notes.retain(|note| !note.starts_with("how often functions were called"));
    dropped.notes.extend(details.notes);
}

/// By node, the function whose code was executing: one that was not inlined into another.
struct Holders {
    holders: Vec<FunctionId>,
}

impl Holders {
    fn of(profile: &Profile) -> Self {
        let tree = &profile.tree;
        let mut holders: Vec<FunctionId> = Vec::with_capacity(tree.len());
        for node in tree.nodes() {
            let function = tree.function(node);
            let inlined = profile.functions[function].kind == FunctionKind::Inlined;
            let above = tree.parent(node).filter(|_| inlined).map(|parent| holders[parent.index()]);
            holders.push(above.unwrap_or(function));
        }
        Self { holders }
    }

    fn holder(&self, node: NodeId) -> FunctionId {
        self.holders[node.index()]
    }

    fn costs(&self, profile: &Profile, metric: MetricId) -> HashMap<FunctionId, u64> {
        let mut costs = HashMap::new();
        for node in profile.tree.nodes() {
            let cost = profile.tree.self_cost(metric, node);
            if cost > 0 {
                let sum: &mut u64 = costs.entry(self.holder(node)).or_default();
                *sum = sum.saturating_add(cost);
            }
        }
        costs
    }

    fn calls(&self, profile: &Profile) -> HashMap<(FunctionId, FunctionId), u64> {
        let mut counted = HashMap::new();
        let mut add = |caller, callee, calls| {
            if calls > 0 {
                let sum: &mut u64 = counted.entry((caller, callee)).or_default();
                *sum = sum.saturating_add(calls);
            }
        };
        for arc in &profile.arcs {
            add(arc.caller, arc.callee, arc.calls);
        }
        let tree = &profile.tree;
        if !profile.arcs.is_empty() || !tree.has_calls() {
            return counted;
        }
        for node in tree.nodes() {
            let (callee, folded) = (tree.function(node), tree.recursive_calls(node));
            add(callee, callee, folded);
            if let Some(parent) = tree.parent(node) {
                add(self.holder(parent), callee, tree.calls(node).saturating_sub(folded));
            }
        }
        counted
    }
}

/// The module whose functions, of those with addresses, cost most, or are called most. Where calls were counted apart
/// from the stacks, calls come first, as only some modules count: what most was spent in may be the library that counts.
fn largest_module(profile: &Profile, costs: &HashMap<FunctionId, u64>) -> Option<ModuleId> {
    let mut sums: BTreeMap<ModuleId, (u64, u64)> = BTreeMap::new();
    let mut add = |function: FunctionId, cost: u64, calls: u64| {
        let function = &profile.functions[function];
        let Some(module) = function.module.filter(|_| function.address.is_some()) else { return };
        let sum = sums.entry(module).or_default();
        *sum = (sum.0.saturating_add(cost), sum.1.saturating_add(calls));
    };
    costs.iter().for_each(|(&function, &cost)| add(function, cost, 0));
    profile.arcs.iter().for_each(|arc| add(arc.callee, 0, arc.calls));
    let calls_first = profile.has_counts_apart();
    let rank = |(cost, calls)| if calls_first { (calls, cost) } else { (cost, calls) };
    let most = sums.into_iter().max_by_key(|&(module, sum)| (rank(sum), std::cmp::Reverse(module)));
    most.map(|(module, _)| module)
}

/// gprof counts samples of a bin in a number of 31 bits.
const MOST_TICKS: u64 = i32::MAX as u64;

/// Costs by units of two bytes: of those in functions that begin at `by_start`, what has an address there, and the rest
/// at their start.
fn by_unit(
    profile: &Profile,
    metric: MetricId,
    module: ModuleId,
    by_start: &BTreeMap<u64, u64>,
) -> BTreeMap<u64, u64> {
    let mut by_start = by_start.clone();
    let mut by_unit: BTreeMap<u64, u64> = BTreeMap::new();
    let mut add = |unit: u64, cost: u64| {
        let sum = by_unit.entry(unit).or_default();
        *sum = sum.saturating_add(cost);
    };
    for row in profile.address_costs.iter().filter(|row| row.metric == metric) {
        let holder = &profile.functions[row.holder];
        let Some(start) = holder.address.filter(|_| holder.module == Some(module)) else { continue };
        let Some(left) = by_start.get_mut(&start.0) else { continue };
        let cost = row.cost.min(*left);
        *left -= cost;
        // A unit in which another function ends would be divided with that one.
        let own = row.address.0 / UNIT * UNIT >= start.0;
        add(row.address.0 / UNIT + u64::from(!own), cost);
    }
    // Several functions may begin in one unit.
    by_start.into_iter().filter(|(_, cost)| *cost > 0).for_each(|(start, cost)| add(start / UNIT, cost));
    by_unit
}

/// How many empty bins a histogram has at most between two that are not: as many as the head of another one takes.
const MOST_EMPTY: u64 = 24;

/// Histograms of costs by unit.
fn histograms(profile: &Profile, metric: MetricId, costs: &BTreeMap<u64, u64>) -> Vec<Histogram> {
    let most = costs.values().copied().max().unwrap_or(0);
    let Ticks { dimension, abbreviation, rate, cost } = ticks_of(profile, metric, most);
    let ticks = |value: u64| ((u128::from(value) + u128::from(cost / 2)) / u128::from(cost)) as u64;
    let mut histograms: Vec<Histogram> = Vec::new();
    for (&unit, &cost) in costs.iter().filter(|(_, cost)| ticks(**cost) > 0) {
        let low = unit * UNIT;
        let last = histograms.last_mut().filter(|last| (low - last.high) / UNIT <= MOST_EMPTY);
        match last {
            Some(last) => {
                last.bins.resize(((low - last.low) / UNIT) as usize, 0);
                last.bins.push(ticks(cost));
                last.high = low.saturating_add(UNIT);
            }
            None => histograms.push(Histogram {
                low,
                high: low.saturating_add(UNIT),
                rate,
                dimension: dimension.clone(),
                abbreviation,
                bins: vec![ticks(cost)],
            }),
        }
    }
    histograms
}

/// The cost of one tick of a histogram.
struct Ticks {
    dimension: String,
    abbreviation: u8,
    rate: u32,
    /// In the metric's unit.
    cost: u64,
}

fn ticks_of(profile: &Profile, metric: MetricId, most: u64) -> Ticks {
    const NANOSECONDS: u64 = 1_000_000_000;
    let costs = profile.tree.self_costs(metric);
    let metric = &profile.metrics[metric.index()];
    if metric.unit == Unit::Nanoseconds {
        let whole = |period: &u64| {
            *period > 0
                && NANOSECONDS.is_multiple_of(*period)
                && costs.iter().all(|cost| cost.is_multiple_of(*period))
        };
        let period = metric.sampling.as_ref().and_then(|sampling| sampling.period).filter(whole);
        let finer = [1_000, 10_000, 100_000, 1_000_000].into_iter();
        let cost = period.into_iter().chain(finer).find(|cost| most / cost <= MOST_TICKS);
        let cost = cost.unwrap_or(NANOSECONDS);
        let rate = (NANOSECONDS / cost) as u32;
        return Ticks { dimension: "seconds".to_owned(), abbreviation: b's', rate, cost };
    }
    let scales = [(1, ""), (1_000, "k"), (1_000_000, "M"), (1_000_000_000, "G"), (1_000_000_000_000, "T")];
    let fits = |(cost, _): &&(u64, &str)| most / cost <= MOST_TICKS;
    let (cost, prefix) = *scales.iter().find(fits).unwrap_or(&scales[4]);
    let dimension = format!("{prefix}{}", metric.name);
    let abbreviation = if metric.unit == Unit::Bytes { b'B' } else { b'n' };
    Ticks { dimension, abbreviation, rate: 1, cost }
}
