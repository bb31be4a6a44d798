//! The difference of two profiles.

use hashbrown::HashMap;
use treering_analysis::{Measure, RUNS_FOR_SPREAD, mean_margin, student};
use treering_profile::{MetricId, Profile, Unit};

use crate::apart::Apart;
use crate::cause::{Cause, Code, cause};
use crate::code::{CodeDifference, ProgramCode};
use crate::common_metric::{common_metric, is_period_known_of_one};
use crate::contexts::Contexts;
use crate::noise::{Spread, bounds, discoveries};
use crate::pairing::{GroupIndex, Pairing};
use crate::side::{Grouped, Prepared};
use crate::sides::Sides;
use crate::split::{Called, Split, per_call_by_context, split};

/// How to compare.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The metric to compare; nothing for the first one that both have.
    pub metric: Option<String>,
}

/// Why two profiles cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotComparable {
    /// They have no metric in common. Those of both are named.
    NoMetric(Sides<Vec<String>>),
    /// One has not the metric that was asked for. It is named.
    NotMeasured(Sides<bool>, String),
    /// Several metrics are called what was asked for. All are named, with their units.
    Ambiguous(Vec<String>),
    /// The metric has another unit in each.
    OtherUnit(String),
    /// It counts samples, and these were not taken alike.
    OtherSampling(String),
    /// They are sums of different numbers of runs.
    OtherRuns(Sides<usize>),
}

impl std::fmt::Display for NotComparable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoMetric(names) => write!(
                f,
                "the profiles have no metric in common: base has {}, head has {}",
                listed(&names.base),
                listed(&names.head)
            ),
            Self::NotMeasured(has, name) => {
                let which = match (has.base, has.head) {
                    (false, false) => "neither profile has",
                    (false, true) => "base does not have",
                    _ => "head does not have",
                };
                write!(f, "{which} the metric {name:?}")
            }
            Self::Ambiguous(names) => write!(f, "the name is that of several metrics: {}", listed(names)),
            Self::OtherRuns(runs) => write!(
                f,
                "base is the sum of {} runs and head of {}, so costs cannot be compared",
                runs.base, runs.head
            ),
            Self::OtherSampling(name) => write!(
                f,
                "{name} were not taken alike in both, of another event or at another rate, so their numbers cannot be compared"
            ),
            Self::OtherUnit(name) => write!(f, "{name} has another unit in each profile"),
        }
    }
}

impl std::error::Error for NotComparable {}

fn listed(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// How sure a change is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// Between which changes the true one lies with 95 % confidence, in the metric's unit; nothing where both costs are
    /// exact.
    pub interval: Option<(f64, f64)>,
    /// Whether it is more than chance, with all functions of the comparison considered: of twenty that are, one may be
    /// chance.
    pub is_certain: bool,
}

/// The change of a function.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionChange {
    /// The function, as an index of [`Pairing::groups`].
    pub group: GroupIndex,
    /// Its name: in the head, or in the base where the head has none.
    pub name: String,
    /// Spent in the function itself.
    pub self_cost: Sides<Measure>,
    /// Spent in it and everything it called, recursion counted once; nothing where one profile does not know.
    pub total_cost: Option<Sides<Measure>>,
    /// How often it was called, where both counted calls.
    pub calls: Option<Sides<u64>>,
    /// The two parts of the change of its self cost, where both counted calls.
    pub split: Option<Split>,
    /// How sure the change of its self cost is.
    pub certainty: Change,
    /// Whether its code differs; nothing if that is not known.
    pub code_changed: Option<bool>,
}

/// The change of the calls between a caller and a callee.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArcChange {
    /// The function that calls; 0, the roots of threads, where it is not known.
    pub caller: GroupIndex,
    /// The function that is called.
    pub callee: GroupIndex,
    /// How often, where calls were counted; else 0.
    pub calls: Sides<u64>,
    /// The cost of these calls with everything they called.
    pub total_cost: Sides<u64>,
}

impl ArcChange {
    /// The two parts of the change of its cost, each call with everything that it called; where calls were counted.
    pub fn split(&self) -> Split {
        split(self.total_cost.change(), Called { cost: self.total_cost, calls: self.calls }.per_call())
    }
}

/// The difference of two profiles in one metric.
#[derive(Clone, Debug)]
pub struct Difference {
    /// The name of the metric in the head.
    pub metric: String,
    /// Its name in the base where that differs: processor time has several.
    pub base_metric: Option<String>,
    /// The metric in each profile.
    pub metrics: Sides<MetricId>,
    /// Whether it counts samples, and one profile alone tells how often they were taken: another rate may be all that
    /// changed.
    pub may_be_of_another_rate: bool,
    /// Its unit.
    pub unit: Unit,
    /// Whether the costs are counts, which two runs of a deterministic program have in common; times never are.
    pub is_exact: bool,
    /// The costs of the runs.
    pub run: Sides<Measure>,
    /// How many runs each profile has.
    pub runs: Sides<usize>,
    /// Between which changes of the run the true one lies with 95 % confidence, in the metric's unit; nothing where runs
    /// are fewer than three, which tell nothing of how much they differ.
    pub run_interval: Option<(f64, f64)>,
    /// The modules and functions that are the same.
    pub pairing: Pairing,
    /// The change of each function: certain changes first, each part with the largest first.
    pub functions: Vec<FunctionChange>,
    /// Every arc of both, by caller and callee.
    pub arcs: Vec<ArcChange>,
    /// The trees, matched by chains of callers; nothing where one profile has none.
    pub contexts: Option<Contexts>,
    /// The call or function that explains most of the change of the run without what is set apart, where calls were
    /// counted: of those whose code differs, if one of them explains a tenth of it.
    pub cause: Option<Cause>,
    /// The difference of the code of modules that both have; nothing where none was to be compared.
    pub code: Option<CodeDifference>,
    /// The changes that may be chance, where other runs of the base are known.
    pub apart: Apart,
}

impl Difference {
    /// The change of a group's function.
    pub fn function(&self, group: GroupIndex) -> Option<&FunctionChange> {
        self.functions.iter().find(|function| function.group == group)
    }

    /// The change of the run as a part of the base, without what is set apart; nothing where the base cost nothing.
    pub fn relative_change(&self) -> Option<f64> {
        let base = self.run.base.cost;
        (base > 0).then(|| self.apart.left_change as f64 / base as f64)
    }

    /// The two parts of the change of the run, where calls were counted.
    pub fn split(&self) -> Option<Split> {
        let mut whole = Split::default();
        for function in &self.functions {
            let split = function.split?;
            whole.more_calls += split.more_calls;
            whole.cost_per_call += split.cost_per_call;
        }
        Some(whole)
    }
}

/// Compares two profiles.
///
/// # Errors
/// When they measured nothing in common, or not what was asked for.
pub fn compare(base: &Profile, head: &Profile, options: &Options) -> Result<Difference, NotComparable> {
    compare_with_code(base, head, options, &ProgramCode::default())
}

/// As [`compare`], with the code of the programs.
///
/// # Errors
/// As [`compare`].
pub fn compare_with_code(
    base: &Profile,
    head: &Profile,
    options: &Options,
    code: &ProgramCode,
) -> Result<Difference, NotComparable> {
    compare_beyond_chance(base, head, options, code, &[])
}

/// As [`compare_with_code`], with the differences of the base and other runs of it: what these explain is set apart.
///
/// # Errors
/// As [`compare`].
pub fn compare_beyond_chance(
    base: &Profile,
    head: &Profile,
    options: &Options,
    code: &ProgramCode,
    again: &[Difference],
) -> Result<Difference, NotComparable> {
    let profiles = Sides { base, head };
    let runs = profiles.map(|profile| profile.runs.len());
    if runs.base != runs.head {
        return Err(NotComparable::OtherRuns(runs));
    }
    let metrics = common_metric(profiles, options.metric.as_deref())?;
    let (pairing, changes) = Pairing::with_code(base, head, code);
    let all = pairing.groups.len();
    let grouped = Sides {
        base: Grouped { profile: base, metric: metrics.base, groups: &pairing.of.base },
        head: Grouped { profile: head, metric: metrics.head, groups: &pairing.of.head },
    };
    let has_contexts = grouped.base.has_contexts() && grouped.head.has_contexts();
    // Chains of callers are of one kind only where recursion is folded in the same way.
    let same_rule = base.recursion == head.recursion;
    // Most of the time of a comparison, side by side: the call graphs of both profiles, and their trees as one.
    let (sides, contexts) = std::thread::scope(|scope| {
        let sides = grouped.map(|side| scope.spawn(move || Prepared::of(side, all)));
        let contexts = (has_contexts && same_rule).then(|| {
            let is_absent = |group: GroupIndex| changes.is_absent(&pairing.groups[group], &pairing, profiles);
            Contexts::of(&grouped, &pairing, is_absent)
        });
        let sides = sides.map(|side| side.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        (sides, contexts)
    });
    let arcs = arcs(&sides);
    let mut functions = functions(&sides, &pairing, contexts.as_ref());
    for function in &mut functions {
        function.code_changed = changes.is_changed(&pairing.groups[function.group], &pairing, profiles);
    }
    let run = sides.as_ref().map(|side| side.graph.basis.run);
    let has_calls = functions.iter().any(|function| function.split.is_some());
    let apart = Apart::of(again, &functions, &pairing);
    let code = changes.summary(&code.not_compared);
    let known = Code {
        is_chance: &|group| apart.holds(group),
        is_changed: &|group| changes.is_changed(&pairing.groups[group], &pairing, profiles) == Some(true),
        is_foreign: &|group| {
            let group = &pairing.groups[group];
            code.is_some()
                && changes.is_changed(group, &pairing, profiles).is_none()
                && changes.is_absent(group, &pairing, profiles).is_none()
        },
        only_changed: code.as_ref().and_then(|code| only_changed(code, &functions)),
    };
    let change = apart.left_change;
    let cause = if has_calls { cause(change, contexts.as_ref(), &functions, &arcs, &known) } else { None };
    let metric = &head.metrics[metrics.head.index()];
    let is_sampled = [&sides.base, &sides.head].iter().any(|side| side.graph.basis.samples.is_some());
    // Costs without calls may be samples that their file does not call so, as those of heap profiles are.
    let counts_calls = sides.base.graph.has_calls() && sides.head.graph.has_calls();
    let is_exact = !is_sampled && counts_calls && metric.unit != Unit::Nanoseconds;
    Ok(Difference {
        metric: metric.name.clone(),
        base_metric: Some(&base.metrics[metrics.base.index()].name)
            .filter(|name| **name != metric.name)
            .cloned(),
        metrics,
        may_be_of_another_rate: is_period_known_of_one(profiles, metrics),
        unit: metric.unit,
        is_exact,
        run,
        runs,
        run_interval: sides_interval(&sides),
        pairing,
        functions,
        arcs,
        contexts,
        cause,
        code,
        apart,
    })
}

/// The only function that ran whose code differs; nothing if there may be others, or other constants.
fn only_changed(code: &CodeDifference, functions: &[FunctionChange]) -> Option<GroupIndex> {
    let mut changed = functions.iter().filter(|row| row.code_changed == Some(true));
    let only = changed.next().filter(|_| changed.next().is_none())?;
    (code.constants.is_empty() && code.not_compared.is_empty() && code.compilers.is_empty())
        .then_some(only.group)
}

/// The interval of the difference of the means of runs, times their number. Of each side's mean by Student's t
/// distribution, both intervals joined as those of shares are.
fn sides_interval(sides: &Sides<Prepared<'_>>) -> Option<(f64, f64)> {
    let runs = sides.as_ref().map(|side| &side.graph.basis.runs);
    let largest = runs.base.iter().chain(runs.head).map(|run| run.cost).max()?.max(1) as f64;
    let number = runs.base.len();
    if number.min(runs.head.len()) < RUNS_FOR_SPREAD {
        return None;
    }
    let half_width = |runs: &[Measure]| {
        // Half of it, so that no bound is cut off at 1.
        let parts: Vec<f64> = runs.iter().map(|run| run.cost as f64 / largest / 2.0).collect();
        let interval = student(&parts)?;
        let mean = parts.iter().sum::<f64>() / parts.len() as f64;
        Some((mean - interval.low).max(interval.high - mean) * 2.0 * largest * number as f64)
    };
    let width = half_width(runs.base)?.hypot(half_width(runs.head)?);
    let head: u64 = runs.head.iter().map(|run| run.cost).sum();
    let base: u64 = runs.base.iter().map(|run| run.cost).sum();
    let change = head as f64 - base as f64;
    Some((change - width, change + width))
}

/// Calls and cost of every arc of both.
fn arcs(sides: &Sides<Prepared<'_>>) -> Vec<ArcChange> {
    let mut found: HashMap<(GroupIndex, GroupIndex), ArcChange> = HashMap::new();
    for (is_head, side) in [(false, &sides.base), (true, &sides.head)] {
        for arc in &side.graph.arcs {
            let caller = arc.caller.map_or(0, |caller| side.group(caller));
            let callee = side.group(arc.callee);
            let of = found.entry((caller, callee)).or_insert(ArcChange {
                caller,
                callee,
                calls: Sides::default(),
                total_cost: Sides::default(),
            });
            let (calls, total) = match is_head {
                false => (&mut of.calls.base, &mut of.total_cost.base),
                true => (&mut of.calls.head, &mut of.total_cost.head),
            };
            *calls = calls.saturating_add(arc.calls);
            *total = total.saturating_add(arc.from_caller.total.cost);
        }
    }
    let mut arcs: Vec<ArcChange> = found.into_values().collect();
    arcs.sort_by_key(|arc| (arc.caller, arc.callee));
    arcs
}

/// The cost of a group in one profile.
#[derive(Clone, Copy, Default)]
struct GroupCost {
    self_cost: Measure,
    total_cost: Measure,
    calls: u64,
}

fn group_costs(of: &Prepared<'_>, all: usize) -> Vec<GroupCost> {
    let mut costs = vec![GroupCost::default(); all];
    for function in &of.graph.functions {
        let cost = &mut costs[of.group(function.function)];
        cost.self_cost += function.self_cost;
        cost.total_cost += function.total_cost;
        cost.calls += function.calls.map_or(0, |calls| calls.all);
    }
    costs
}

/// By group, how far the sum of its self costs may be off because runs differ; nothing where there are too few.
fn margins(of: &Prepared<'_>, all: usize) -> Option<Vec<f64>> {
    let basis = &of.graph.basis;
    let runs = basis.runs.len();
    let mut by_run = vec![vec![0.0; runs]; all];
    for function in &of.graph.functions {
        let costs = by_run[of.group(function.function)].iter_mut();
        costs.zip(&function.self_by_run).for_each(|(sum, &cost)| *sum += cost as f64);
    }
    let margin = |costs: &Vec<f64>| mean_margin(costs).unwrap_or(0.0) * runs as f64;
    basis.has_spread().then(|| by_run.iter().map(margin).collect())
}

fn functions(
    sides: &Sides<Prepared<'_>>,
    pairing: &Pairing,
    contexts: Option<&Contexts>,
) -> Vec<FunctionChange> {
    let all = pairing.groups.len();
    let costs = sides.as_ref().map(|side| group_costs(side, all));
    let has_calls = sides.base.graph.has_averages() && sides.head.graph.has_averages();
    let totals = sides.base.graph.totals.is_known() && sides.head.graph.totals.is_known();
    let self_costs =
        costs.as_ref().map(|costs| costs.iter().map(|cost| cost.self_cost.cost).collect::<Vec<_>>());
    let per_call = contexts.filter(|_| has_calls).map(|contexts| {
        per_call_by_context(contexts, Sides { base: &self_costs.base, head: &self_costs.head })
    });
    let bases = sides.as_ref().map(|side: &Prepared<'_>| &side.graph.basis);
    let margins = margins(&sides.base, all).zip(margins(&sides.head, all));
    let spread = |group: usize| {
        let (base, head) = margins.as_ref()?;
        Some(Spread { margin: base[group].hypot(head[group]), freedom: bases.base.runs.len() - 1 })
    };
    let mut changes: Vec<FunctionChange> = Vec::new();
    let mut chances = Vec::new();
    for (group, named) in pairing.groups.iter().enumerate() {
        let (base, head) = (costs.base[group], costs.head[group]);
        let self_cost = Sides { base: base.self_cost, head: head.self_cost };
        let calls = Sides { base: base.calls, head: head.calls };
        let total_cost = Sides { base: base.total_cost, head: head.total_cost };
        if self_cost.is_zero() && calls.is_zero() && total_cost.is_zero() {
            continue;
        }
        let bounds = bounds(self_cost, bases, spread(group));
        let by_function = || Called { cost: self_cost.map(|cost| cost.cost), calls }.per_call();
        let split = has_calls.then(|| {
            let by_context = per_call.as_ref().and_then(|per_call| per_call[group]);
            split(self_cost.change(), by_context.unwrap_or_else(by_function))
        });
        chances.push(bounds.map_or(0.0, |bounds| bounds.chance));
        changes.push(FunctionChange {
            group,
            name: named.name.clone(),
            self_cost,
            total_cost: totals.then_some(total_cost),
            calls: has_calls.then_some(calls),
            split,
            certainty: Change {
                interval: bounds.map(|bounds| (bounds.low, bounds.high)),
                is_certain: bounds.is_none(),
            },
            code_changed: None,
        });
    }
    for (change, found) in changes.iter_mut().zip(discoveries(&chances)) {
        change.certainty.is_certain |= found;
    }
    let size = |change: &FunctionChange| change.self_cost.change().unsigned_abs();
    changes.sort_by(|a, b| {
        let certain = b.certainty.is_certain.cmp(&a.certainty.is_certain);
        certain.then_with(|| size(b).cmp(&size(a))).then_with(|| a.name.cmp(&b.name))
    });
    changes
}
