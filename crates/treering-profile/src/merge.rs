//! Several profiles as one.

use std::borrow::Cow;

use crate::code::{Moved, Parts};
use crate::sample_counter::named_apart;
use crate::{
    AddressCost, Arc, CodeSpace, Frame, Function, FunctionId, Line, LineCost, LineId, Metric, MetricId,
    Module, ModuleId, NodeId, Process, ProcessId, Profile, RunId, Source, StringId, ThreadId, Unit, Weights,
};

/// Joins profiles into one that holds all their runs, processes and threads, each apart.
///
/// Strings, functions and lines are interned anew. Metrics of equal name and unit become one, but for those that count
/// the samples of different metrics: they are named after these (`cpu samples`). A profile that lacks a metric has cost
/// 0 in it, and where one does not tell the samples of a metric that others sampled, a note says so. The result does not depend on the order of
/// `profiles`, but for the order of its tables.
///
/// Trees of different recursion rules are joined as they are, and the first rule is kept for
/// stacks to come; a flat one among others has no totals of its own then. Statistics of
/// activations are kept in one metric, the first by name of those that there are any in. To add up equal threads of all runs, see [`Profile::collapse_threads`].
pub fn merge(profiles: &[&Profile]) -> Profile {
    let named = named_apart(profiles);
    let profiles: &[&Profile] = &named.iter().map(|profile| &**profile).collect::<Vec<_>>();
    let rule = profiles.first().map(|profile| profile.recursion).unwrap_or_default();
    let mut merged = Profile::new(rule);
    let kept = profiles.iter().filter_map(|profile| measured_metric(profile)).min();
    let weighted = weighted_metrics(profiles);
    let timed = only_timed(profiles);
    let mut parts = Parts::default();
    for (at, profile) in profiles.iter().enumerate() {
        let with_activations = measured_metric(profile) == kept;
        let weighed = with_weights(profile, &weighted);
        let translation = Translation::append(&mut merged, &weighed, with_activations);
        if timed == Some(at) {
            translation.timeline(&mut merged, &weighed);
        }
        translation.code(&mut merged, &weighed, &mut parts);
    }
    if profiles.iter().any(|profile| !profile.code.is_empty()) {
        merged.code.finish_parts(parts);
    }
    join_hidden(&mut merged, &weighted);
    merged.metadata = merge_metadata(profiles);
    if profiles.iter().any(|profile| measured_metric(profile).is_some_and(|metric| Some(metric) != kept)) {
        let kept = kept.unwrap_or_default();
        merged
            .metadata
            .note(format!("statistics of single activations are left out but for those of {kept}"));
    }
    note_unknown_samples(&mut merged, profiles);
    if timed.is_none() && profiles.iter().any(|profile| profile.timeline.is_some()) {
        merged.metadata.note(
            "the times of costs are left out: each of the profiles put together has a time of its own, or none",
        );
    }
    merged.compact_line_costs();
    merged.compact_address_costs();
    merged
}

/// Notes the sampled metrics that some of the profiles have costs in without their samples.
fn note_unknown_samples(merged: &mut Profile, profiles: &[&Profile]) {
    let unknown = |sampled: &Metric, profile: &&&Profile| {
        let same = |metric: &Metric| (&metric.name, metric.unit) == (&sampled.name, sampled.unit);
        let mut exact = profile.metrics().filter(|(_, metric)| same(metric) && metric.sampling.is_none());
        exact.any(|(id, _)| profile.run_cost(id) > 0)
    };
    for sampled in merged.metrics.iter().filter(|metric| metric.sampling.is_some()) {
        let unknown = profiles.iter().filter(|profile| unknown(sampled, profile)).count();
        if unknown > 0 {
            merged.metadata.note(format!(
                "{unknown} of {} profiles do not tell the samples of {}: its intervals of confidence hold for the others only",
                profiles.len(),
                sampled.name
            ));
        }
    }
}

/// As [`merge`], of profiles that each have the calls of their own costs, or none: notes where a part of them lacks the calls
/// or the costs, so that nothing is divided by calls of another part; see [`Profile::has_averages_of`].
pub fn merge_runs(profiles: &[&Profile]) -> Profile {
    let mut merged = merge(profiles);
    let has_calls =
        |profile: &&&Profile| profile.tree.has_calls() || profile.arcs.iter().any(|arc| arc.calls > 0);
    let with_calls = profiles.iter().filter(has_calls).count();
    if with_calls == 0 {
        return merged;
    }
    let is_apart = |metric: &Metric| {
        let same = |known: &Metric| (&known.name, known.unit) == (&metric.name, metric.unit);
        profiles.iter().any(|profile| has_calls(&profile) != profile.metrics.iter().any(same))
    };
    let apart = merged.cost_metrics().filter(|(_, metric)| is_apart(metric));
    let apart: Vec<String> = apart.map(|(_, metric)| metric.name.clone()).collect();
    if apart.is_empty() {
        return merged;
    }
    let few = format!("calls were counted in {with_calls} of {} profiles only", profiles.len());
    let why =
        if with_calls < profiles.len() { few } else { "not all profiles have the same metrics".to_owned() };
    merged.metadata.note(format!("{why}: what a call costs on average is not known of {}", apart.join(", ")));
    let known = merged.metadata.parameters.entry(crate::Metadata::CALLS_APART.to_owned()).or_default();
    apart.iter().for_each(|name| unite(known, name));
    merged
}

/// The profile with a timeline, if it is the only one that has costs in the metrics that are timed in it.
fn only_timed(profiles: &[&Profile]) -> Option<usize> {
    let mut timed = profiles.iter().enumerate().filter(|(_, profile)| profile.timeline.is_some());
    let (at, with_time) = timed.next()?;
    let is_timed = |metric: &Metric| {
        let mut same =
            with_time.metrics().filter(|(_, known)| (&known.name, known.unit) == (&metric.name, metric.unit));
        same.any(|(known, _)| with_time.has_time(known))
    };
    let costs_elsewhere = profiles.iter().enumerate().filter(|&(other, _)| other != at).any(|(_, other)| {
        let mut timed = other.metrics().filter(|(_, metric)| is_timed(metric));
        timed.any(|(metric, _)| other.run_cost(metric) > 0)
    });
    (timed.next().is_none() && !costs_elsewhere).then_some(at)
}

/// The name of the metric that a profile has statistics of activations in.
fn measured_metric<'a>(profile: &&'a Profile) -> Option<&'a str> {
    let activations = profile.activations.as_ref()?;
    Some(&profile.metrics[activations.metric.index()].name)
}

fn merge_metadata(profiles: &[&Profile]) -> crate::Metadata {
    let mut metadata = crate::Metadata::default();
    let mut collectors = Vec::new();
    for from in profiles.iter().map(|profile| &profile.metadata) {
        metadata.losses.add(&from.losses);
        metadata.unfinished |= from.unfinished;
        metadata.notes.extend(from.notes.iter().cloned());
        collectors.push(from.collector.clone());
        agree(&mut metadata.machine, &from.machine);
        agree(&mut metadata.parameters, &from.parameters);
        metadata.version = metadata.version.max(from.version.clone());
        metadata.benchmark = join_benchmarks(metadata.benchmark.take(), from.benchmark.as_ref());
    }
    metadata.call_bias = join_biases(profiles);
    metadata.notes.sort();
    metadata.notes.dedup();
    collectors.sort();
    collectors.dedup();
    metadata.collector = collectors.join(", ");
    metadata
}

/// The bias that is certain of all profiles with calls. One that does not know its bias may have
/// none.
fn join_biases(profiles: &[&Profile]) -> Option<crate::CallBias> {
    let with_calls = profiles.iter().filter(|profile| profile.tree.has_calls());
    let biases: Vec<_> = with_calls.map(|profile| profile.metadata.call_bias).collect();
    biases.iter().any(Option::is_some).then_some(())?;
    biases.into_iter().map(Option::unwrap_or_default).reduce(|joined, bias| joined.join(&bias))
}

fn join_benchmarks(
    into: Option<crate::Benchmark>,
    from: Option<&crate::Benchmark>,
) -> Option<crate::Benchmark> {
    let (Some(mut into), Some(from)) = (into.clone(), from) else { return into.or(from.cloned()) };
    unite(&mut into.name, &from.name);
    unite(&mut into.description, &from.description);
    join_values(&mut into.parameters, &from.parameters);
    join_values(&mut into.results, &from.results);
    Some(into)
}

fn join_values(into: &mut Vec<(String, String)>, from: &[(String, String)]) {
    for (name, value) in from {
        match into.iter_mut().find(|(known, _)| known == name) {
            Some((_, known)) => unite(known, value),
            None => into.push((name.clone(), value.clone())),
        }
    }
}

/// Unites two maps; where they disagree, the values of both are listed in order.
fn agree(
    into: &mut std::collections::BTreeMap<String, String>,
    from: &std::collections::BTreeMap<String, String>,
) {
    for (key, value) in from {
        unite(into.entry(key.clone()).or_default(), value);
    }
}

/// Makes `known` a list, in order, of all that it says and that `value` says.
fn unite(known: &mut String, value: &str) {
    let mut values: Vec<&str> = known.split(" | ").chain(value.split(" | ")).collect();
    values.retain(|text| !text.is_empty());
    values.sort_unstable();
    values.dedup();
    *known = values.join(" | ");
}

/// Where the tables of a profile went in the one it was appended to.
struct Translation {
    strings: Vec<StringId>,
    modules: Vec<ModuleId>,
    functions: Vec<FunctionId>,
    lines: Vec<LineId>,
    metrics: Vec<MetricId>,
    nodes: Vec<NodeId>,
}

impl Translation {
    /// Appends `from` but for its code; its statistics of activations only if `with_activations`.
    fn append(into: &mut Profile, from: &Profile, with_activations: bool) -> Self {
        let strings: Vec<_> = from.strings.iter().map(|(_, text)| into.strings.intern(text)).collect();
        let mut translation = Self {
            strings,
            modules: Vec::new(),
            functions: Vec::new(),
            lines: Vec::new(),
            metrics: translate_metrics(into, from),
            nodes: vec![NodeId::new(0); from.tree.len()],
        };
        translation.modules(into, from);
        translation.functions(into, from);
        translation.lines(into, from);
        translation.threads(into, from);
        translation.nodes(into, from);
        translation.costs(into, from);
        translation.sources(into, from);
        translation.details(into, from, with_activations);
        translation
    }

    fn modules(&mut self, into: &mut Profile, from: &Profile) {
        for module in from.modules.entries() {
            let path = self.strings[module.path.index()];
            self.modules.push(into.modules.intern(Module { path, ..module.clone() }));
        }
    }

    fn functions(&mut self, into: &mut Profile, from: &Profile) {
        for function in from.functions.entries() {
            let translated = Function {
                name: self.strings[function.name.index()],
                linkage_name: self.strings[function.linkage_name.index()],
                file: self.strings[function.file.index()],
                module: function.module.map(|module| self.modules[module.index()]),
                ..*function
            };
            self.functions.push(into.functions.intern(translated));
        }
    }

    fn lines(&mut self, into: &mut Profile, from: &Profile) {
        for line in from.lines.entries() {
            let file = self.strings[line.file.index()];
            self.lines.push(into.lines.intern(Line { file, line: line.line }));
        }
    }

    fn threads(&mut self, into: &mut Profile, from: &Profile) {
        let first_run = into.runs.len();
        let first_process = into.processes.len();
        into.runs.extend(from.runs.iter().cloned());
        for process in &from.processes {
            let run = RunId::from_usize(first_run + process.run.index());
            into.processes.push(Process { run, ..process.clone() });
        }
        for thread in &from.threads {
            let process = ProcessId::from_usize(first_process + thread.process.index());
            let added = into.add_thread(process, thread.tid, thread.name.clone());
            self.nodes[thread.root.index()] = into.threads[added.index()].root;
        }
    }

    fn nodes(&mut self, into: &mut Profile, from: &Profile) {
        for node in from.tree.nodes() {
            if let Some(parent) = from.tree.parent(node) {
                let frame = self.frame(from, node);
                let parent = self.nodes[parent.index()];
                self.nodes[node.index()] = into.tree.child(parent, frame.function, frame.call_site);
            }
            let (calls, recursive) = (from.tree.calls(node), from.tree.recursive_calls(node));
            if calls > 0 {
                into.tree.add_calls(self.nodes[node.index()], calls, recursive);
            }
        }
    }

    fn frame(&self, from: &Profile, node: NodeId) -> Frame {
        Frame {
            function: self.functions[from.tree.function(node).index()],
            call_site: from.tree.call_site(node).map(|line| self.lines[line.index()]),
        }
    }

    fn costs(&self, into: &mut Profile, from: &Profile) {
        for (metric, &translated) in self.metrics.iter().enumerate() {
            let costs = from.tree.self_costs(MetricId::from_usize(metric));
            for (&node, &cost) in self.nodes.iter().zip(costs) {
                if cost > 0 {
                    into.tree.add_self_cost(translated, node, cost);
                }
            }
        }
        into.line_costs.extend(from.line_costs.iter().map(|cost| LineCost {
            node: self.nodes[cost.node.index()],
            line: self.lines[cost.line.index()],
            metric: self.metrics[cost.metric.index()],
            cost: cost.cost,
        }));
        into.arcs.extend(from.arcs.iter().map(|arc| self.arc(arc)));
        // The threads of `from` are the last ones.
        let threads = into.threads.len() - from.threads.len();
        into.address_costs.extend(from.address_costs.iter().map(|row| AddressCost {
            thread: ThreadId::from_usize(threads + row.thread.index()),
            function: self.functions[row.function.index()],
            holder: self.functions[row.holder.index()],
            line: row.line.map(|line| self.lines[line.index()]),
            metric: self.metrics[row.metric.index()],
            ..*row
        }));
    }

    fn arc(&self, arc: &Arc) -> Arc {
        let costs = arc.total_costs.iter();
        Arc {
            caller: self.functions[arc.caller.index()],
            callee: self.functions[arc.callee.index()],
            call_site: arc.call_site.map(|line| self.lines[line.index()]),
            calls: arc.calls,
            total_costs: costs.map(|&(metric, cost)| (self.metrics[metric.index()], cost)).collect(),
        }
    }

    fn sources(&self, into: &mut Profile, from: &Profile) {
        for source in &from.sources {
            let file = self.strings[source.file.index()];
            if !into.sources.iter().any(|known| known.file == file) {
                into.sources.push(Source { file, text: source.text.clone() });
            }
        }
    }
}

impl Translation {
    fn details(&self, into: &mut Profile, from: &Profile, with_activations: bool) {
        let nodes: Vec<_> = self.nodes.iter().copied().map(Some).collect();
        into.add_ports_and_memory_of(from, &nodes);
        if with_activations {
            into.add_activations_of(from, &nodes, &self.metrics);
        }
        into.add_points_of(from, &nodes, &self.metrics);
        into.add_ended_waits_of(from, &nodes);
    }

    fn timeline(&self, into: &mut Profile, from: &Profile) {
        let node = |node: NodeId| self.nodes[node.index()];
        let line = |line: LineId| self.lines[line.index()];
        let place = |at: NodeId, of: Option<LineId>| Some((node(at), of.map(line)));
        into.take_timeline_of(from, &self.metrics, place, |root| Some(node(root)));
    }
}

impl Translation {
    /// The threads and processes of `from` are the last ones of `into`.
    fn code(&self, into: &mut Profile, from: &Profile, parts: &mut Parts) {
        if from.code.is_empty() {
            return;
        }
        let (threads, processes) =
            (into.threads.len() - from.threads.len(), into.processes.len() - from.processes.len());
        let space = |space: &CodeSpace| CodeSpace {
            module: space.module.map(|module| self.modules[module.index()]),
            ..*space
        };
        let spaces = from.code.spaces.entries().iter();
        let spaces: Vec<_> = spaces.map(|entry| into.code.spaces.intern(space(entry))).collect();
        into.code.append_part(
            &from.code,
            &Moved {
                threads: &|thread| Some(ThreadId::from_usize(threads + thread.index())),
                spaces: &|space| spaces[space.index()],
                function: &|function| self.functions[function.index()],
                line: &|line| self.lines[line.index()],
                string: &|string| self.strings[string.index()],
                process: &|process| ProcessId::from_usize(processes + process.index()),
            },
            parts,
        );
    }
}

/// Finds or adds each metric of `from` in `into`.
fn translate_metrics(into: &mut Profile, from: &Profile) -> Vec<MetricId> {
    let translate = |into: &mut Profile, metric: &Metric| {
        let same = |known: &Metric| known.name == metric.name && known.unit == metric.unit;
        match into.metrics.iter().position(same) {
            Some(at) => MetricId::from_usize(at),
            None => into.add_metric(Metric { sampling: None, ..metric.clone() }),
        }
    };
    let translated: Vec<_> = from.metrics.iter().map(|metric| translate(into, metric)).collect();
    for (metric, &to) in from.metrics.iter().zip(&translated) {
        join_sampling(&mut into.metrics[to.index()], metric, &translated);
    }
    translated
}

/// The metrics, by name and unit, whose samples weigh differently in any of the profiles.
fn weighted_metrics<'a>(profiles: &[&'a Profile]) -> Vec<(&'a str, Unit, &'a Weights)> {
    let metrics = profiles.iter().flat_map(|profile| &profile.metrics);
    metrics.filter_map(|metric| Some((metric.name.as_str(), metric.unit, metric.weights()?))).collect()
}

/// Hidden costs in several profiles of independent samples add up as standard deviations do.
fn join_hidden(merged: &mut Profile, weighted: &[(&str, Unit, &Weights)]) {
    for metric in &mut merged.metrics {
        let same = |(name, unit, _): &&(&str, Unit, &Weights)| (*name, *unit) == (&*metric.name, metric.unit);
        let mut hidden: Vec<u64> = weighted.iter().filter(same).map(|(.., weights)| weights.hidden).collect();
        // In order, so that sums are the same in whatever order the profiles are.
        hidden.sort_unstable();
        let squares: f64 = hidden.iter().map(|&hidden| (hidden as f64).powi(2)).sum();
        // A run of a single thread has no weights of its own and a known number of equal samples.
        let known = weighted.iter().filter(same).all(|(.., weights)| weights.of_known_cost);
        if let Some(weights) = metric.weights_mut() {
            weights.of_known_cost = known;
            weights.hidden = squares.sqrt().round() as u64;
        }
    }
}

/// A profile in which the squares of weights are known of all metrics of which they are known in
/// any other, in the same unit. Where they are not known yet, all samples of a node weigh the same.
fn with_weights<'a>(profile: &'a Profile, weighted: &[(&str, Unit, &Weights)]) -> Cow<'a, Profile> {
    let mut changed = Cow::Borrowed(profile);
    for (id, metric) in profile.metrics() {
        let same = |&&(name, unit, _): &&(&str, Unit, &Weights)| (name, unit) == (&*metric.name, metric.unit);
        let per = weighted.iter().filter(same).map(|(.., weights)| weights.per).min();
        let (Some(per), Some(sampling)) = (per, &metric.sampling) else { continue };
        match &sampling.weights {
            Some(weights) if weights.per == per => {}
            Some(weights) => {
                let factor = weights.per as f64 / per as f64;
                let squares = MetricId::new(weights.squares);
                let changed = changed.to_mut();
                let scale = |square: u64| (square as f64 * factor).round() as u64;
                let scaled = changed.tree.self_costs(squares).iter().copied().map(scale).collect();
                changed.tree.set_self_costs(squares, scaled);
                let by_address = changed.address_costs.iter_mut().filter(|row| row.metric == squares);
                by_address.for_each(|row| row.cost = scale(row.cost));
                if let Some(weights) = changed.metrics[id.index()].weights_mut() {
                    weights.per = per;
                }
            }
            None => {
                let counted_by = MetricId::new(sampling.counted_by);
                let square = |node| {
                    let cost = profile.tree.self_cost(id, node) as f64;
                    let samples = profile.tree.self_cost(counted_by, node).max(1) as f64;
                    (cost * cost / samples / per as f64).round() as u64
                };
                let squares = profile.tree.nodes().map(square).collect();
                let unseen = vec![0; profile.tree.len()];
                let weights = Weights { squares: 0, unseen: 0, per, hidden: 0, of_known_cost: false };
                let changed = changed.to_mut();
                changed.add_weights(id, weights, squares, unseen);
                let squares = changed.metrics[id.index()].weights().map(|weights| weights.squares);
                let squares = squares.map_or(id, MetricId::new);
                changed.add_squares_by_address(id, counted_by, squares, per);
            }
        }
    }
    changed
}

/// Keeps of two samplings what holds for both.
fn join_sampling(into: &mut Metric, from: &Metric, translated: &[MetricId]) {
    let Some(sampling) = &from.sampling else { return };
    let translate = |metric: u32| translated[metric as usize].raw();
    let counted_by = translate(sampling.counted_by);
    let weights = sampling.weights.as_ref().map(|weights| Weights {
        squares: translate(weights.squares),
        unseen: translate(weights.unseen),
        ..weights.clone()
    });
    match &mut into.sampling {
        None => into.sampling = Some(crate::Sampling { counted_by, weights, ..sampling.clone() }),
        Some(known) => {
            known.weights = known.weights.take().or(weights);
            if known.period != sampling.period {
                known.period = None;
            }
            if known.jittered != sampling.jittered {
                known.jittered = known.jittered.and(sampling.jittered).map(|_| false);
            }
        }
    }
}
