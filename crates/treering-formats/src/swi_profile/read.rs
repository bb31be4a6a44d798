//! Reads the data of SWI-Prolog's profiler.

use std::collections::{BTreeMap, HashMap};

use treering_profile::{Arc, Function, FunctionId, Metric, MetricId, NodeId, Profile, RecursionRule, Unit};

use super::predicate::{Caller, From, Predicate};
use super::value::{DEEPEST, Value};
use super::{json, shape, term};
use crate::budget::{Budget, NestingLimits};
use crate::json::nanoseconds;
use crate::label::without_mark;
use crate::prolog::{NO_SAMPLES, notes_on_ticks, shared};
use crate::read_error::LARGE_SUM;
use crate::{Problem, ReadError, ReadReport};

/// Reads what `profile_data/1` gave, written as a term or as JSON.
///
/// The metric is `time`, shared out by ticks; without ticks it is `calls`. Arcs have the calls and the total
/// time that the callers of each predicate have.
///
/// # Errors
/// When it is damaged, or is something else.
pub fn read(bytes: &[u8]) -> Result<(Profile, ReadReport), ReadError> {
    read_within(bytes, Budget::new(bytes.len()))
}

/// The same with a limit to the memory that the profile may take.
pub(crate) fn read_within(bytes: &[u8], budget: Budget) -> Result<(Profile, ReadReport), ReadError> {
    let bytes = without_mark(bytes);
    let mut limits = NestingLimits::new(budget, DEEPEST);
    let data = match bytes.trim_ascii_start().starts_with(b"{") {
        true => json::parse(bytes, &mut limits)?,
        false => term::parse(bytes, &mut limits)?,
    };
    profile(&data, limits.budget)
}

fn profile(data: &Value, budget: Budget) -> Result<(Profile, ReadReport), ReadError> {
    let summary = data.field("summary").ok_or_else(|| shape("it has no summary"))?;
    let nodes = data.field("nodes").and_then(Value::list);
    let nodes = nodes.ok_or_else(|| shape("it has no list of nodes"))?;
    let summary = Summary::of(summary)?;
    let mut reader = Reader::new(budget);
    for (node, number) in nodes.iter().zip(1..) {
        reader.node(node, number)?;
    }
    reader.finish(&summary)
}

/// The sums over all predicates.
struct Summary {
    samples: u64,
    ticks: u64,
    /// The ticks that fell into the profiler itself.
    accounting: u64,
    time_ns: u64,
}

impl Summary {
    fn of(summary: &Value) -> Result<Self, Problem> {
        let count = |name, missing| summary.field(name).and_then(Value::count).ok_or_else(|| shape(missing));
        let seconds = summary.field("time").and_then(Value::number);
        Ok(Self {
            samples: count("samples", "its summary has no number of samples")?,
            ticks: count("ticks", "its summary has no number of ticks")?,
            accounting: count("accounting", "its summary has no number of ticks for accounting")?,
            time_ns: seconds
                .and_then(|seconds| nanoseconds(seconds, 1e9))
                .ok_or_else(|| shape("its summary has no time"))?,
        })
    }
}

/// Calls between two predicates.
#[derive(Default)]
struct Flow {
    calls: u64,
    /// The time in all of activations that were called so while none of the callee was open.
    total_ticks: u64,
}

struct Reader {
    budget: Budget,
    /// Each predicate, and its own ticks.
    predicates: Vec<(Predicate, u64)>,
    ids: HashMap<Predicate, usize>,
    /// By caller, nothing if it is not known, and callee.
    flows: BTreeMap<(Option<usize>, usize), Flow>,
    /// How many predicates have other ticks than their callers add up to.
    contradicting: u64,
}

impl Reader {
    fn new(budget: Budget) -> Self {
        let (predicates, ids, flows) = (Vec::new(), HashMap::new(), BTreeMap::new());
        Self { budget, predicates, ids, flows, contradicting: 0 }
    }

    fn node(&mut self, node: &Value, number: usize) -> Result<(), Problem> {
        let lacks = |text: &str| shape(&format!("node {number} {text}"));
        let predicate = node.field("predicate").ok_or_else(|| lacks("has no predicate"))?;
        let callee = self.id(Predicate::of(predicate))?;
        let ticks = |name| node.field(name).and_then(Value::count);
        let stated = ticks("ticks_self").zip(ticks("ticks_siblings"));
        let (own, children) = stated.ok_or_else(|| lacks("has no ticks"))?;
        let callers = node.field("callers").and_then(Value::list).ok_or_else(|| lacks("has no callers"))?;
        let mut outermost = (0_u64, 0_u64);
        for caller in callers {
            let caller = Caller::of(caller).ok_or_else(|| lacks("has an invalid caller"))?;
            let is_outermost = caller.depth == 0;
            let from = match caller.from {
                From::Predicate(predicate) => Some(self.id(predicate)?),
                From::Recursive => Some(callee),
                From::Spontaneous => None,
            };
            let flow = self.flows.entry((from, callee)).or_default();
            add(&mut flow.calls, caller.calls)?;
            add(&mut self.predicates[callee].1, caller.self_ticks)?;
            if is_outermost {
                add(&mut flow.total_ticks, caller.self_ticks)?;
                add(&mut flow.total_ticks, caller.children_ticks)?;
                add(&mut outermost.0, caller.self_ticks)?;
                add(&mut outermost.1, caller.children_ticks)?;
            }
        }
        self.contradicting += u64::from(outermost != (own, children));
        Ok(())
    }

    fn id(&mut self, predicate: Predicate) -> Result<usize, Problem> {
        const NODE_AND_ARC: usize = 24;
        self.budget.numbers(1, NODE_AND_ARC)?;
        if let Some(&known) = self.ids.get(&predicate) {
            return Ok(known);
        }
        self.predicates.push((predicate.clone(), 0));
        self.ids.insert(predicate, self.predicates.len() - 1);
        Ok(self.predicates.len() - 1)
    }

    fn finish(self, summary: &Summary) -> Result<(Profile, ReadReport), ReadError> {
        let all = self.predicates.iter().try_fold(0_u64, |sum, (_, ticks)| sum.checked_add(*ticks));
        let all = all.ok_or(LARGE_SUM)?;
        let mut profile = Profile::new(RecursionRule::SwiClassic);
        let thread = profile.add_single_thread("main");
        let root = profile.threads[thread.index()].root;
        let named = self.predicates.iter().map(|(predicate, _)| function(&mut profile, predicate));
        let functions: Vec<FunctionId> = named.collect();
        let below = functions.iter().map(|&function| profile.tree.child(root, function, None));
        let mut nodes: Vec<NodeId> = below.collect();
        let mut ticks: Vec<u64> = self.predicates.iter().map(|(_, ticks)| *ticks).collect();
        // Those of predicates that are not in the list.
        let rest = summary.ticks.saturating_sub(summary.accounting).saturating_sub(all);
        nodes.push(root);
        ticks.push(rest);
        let timed = self.add_time(&mut profile, summary, &nodes, &ticks);
        if timed.is_none() {
            self.add_calls(&mut profile, &nodes)?;
        }
        for (&(caller, callee), flow) in &self.flows {
            let caller = caller.map_or(Profile::ROOT, |caller| functions[caller]);
            let callee = functions[callee];
            let measured = timed.filter(|_| caller != callee);
            let total_costs =
                measured.map(|(time, tick_ns)| (time, flow.total_ticks.saturating_mul(tick_ns)));
            let total_costs = total_costs.into_iter().collect();
            profile.add_arc(Arc { caller, callee, call_site: None, calls: flow.calls, total_costs });
        }
        profile.metadata.set_foreign("the profiler of SWI-Prolog");
        let report = ReadReport { notes: self.notes(timed.is_some(), rest), ..ReadReport::default() };
        profile.validate()?;
        Ok((profile, report))
    }

    /// Adds the time and the samples, shared out by ticks. Gives the metric and what a tick stands for; nothing
    /// if there is no time to share out.
    fn add_time(
        &self,
        profile: &mut Profile,
        summary: &Summary,
        nodes: &[NodeId],
        ticks: &[u64],
    ) -> Option<(MetricId, u64)> {
        let all: u128 = ticks.iter().map(|&ticks| u128::from(ticks)).sum();
        let tick_ns = u128::from(summary.time_ns).checked_div(all).filter(|&tick_ns| tick_ns > 0)? as u64;
        let period = summary.time_ns.checked_div(summary.samples)?;
        let samples = profile.add_metric(Metric::exact("samples", Unit::Count));
        let time = Metric::sampled("time", Unit::Nanoseconds, samples, Some(period.max(1)));
        let time = profile.add_metric(time);
        let samples_of = shared(ticks, all, summary.samples);
        for ((&node, &ticks), count) in nodes.iter().zip(ticks).zip(samples_of) {
            profile.tree.add_self_cost(samples, node, count);
            profile.tree.add_self_cost(time, node, ticks * tick_ns);
        }
        profile.metadata.losses.samples = summary.samples;
        for note in notes_on_ticks(summary.samples, summary.ticks, summary.accounting) {
            profile.metadata.note(note);
        }
        Some((time, tick_ns))
    }

    fn add_calls(&self, profile: &mut Profile, nodes: &[NodeId]) -> Result<(), Problem> {
        let calls = profile.add_metric(Metric::exact("calls", Unit::Count));
        let mut sum = 0;
        for (&(_, callee), flow) in &self.flows {
            add(&mut sum, flow.calls)?;
            profile.tree.add_self_cost(calls, nodes[callee], flow.calls);
        }
        profile.metadata.note(NO_SAMPLES);
        Ok(())
    }

    fn notes(&self, is_timed: bool, rest: u64) -> Vec<String> {
        let mut notes = Vec::new();
        if self.contradicting > 0 {
            notes.push(format!(
                "predicates have other ticks than their callers add up to, which were taken: {}",
                self.contradicting
            ));
        }
        if rest > 0 {
            notes
                .push(format!("{rest} ticks are of predicates that it does not list, and stand at the root"));
        }
        notes.push(
            "there are no chains of callers: total costs of predicates in a cycle leave out the cycle's others".into(),
        );
        notes.push("exits and redos are not kept: SWI-Prolog counts them only roughly".into());
        if is_timed {
            notes.push("whether it is processor time or time by the wall clock is not in the file".into());
        }
        notes
    }
}

/// Adds a number that the file has.
fn add(sum: &mut u64, number: u64) -> Result<(), Problem> {
    *sum = sum.checked_add(number).ok_or(LARGE_SUM)?;
    Ok(())
}

fn function(profile: &mut Profile, predicate: &Predicate) -> FunctionId {
    let name = profile.strings.intern(&predicate.name);
    profile.functions.intern(Function { kind: predicate.kind, ..Function::named(name) })
}
