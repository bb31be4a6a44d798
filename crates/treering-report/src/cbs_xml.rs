//! The call graph as XML, under the names of elements that CBS, the benchmarking suite, uses.

use std::collections::HashMap;
use std::fmt::Write as _;

use treering_analysis::{
    Arc, ArcSource, Basis, CallGraph, CycleCost, FunctionCost, Presentation, function_name,
};
use treering_profile::{FunctionId, MetricId, Profile, Unit, pluralize};

use crate::picture::Picture;

/// The task that stands for the run.
const ROOT_TASK: &str = "_program";

/// Writes the call graph of one metric, which must be a time; nothing for another. `mark` is a comment for the start.
///
/// The schema is `docs/formats/bench.xsd`. Other times that the profile has of `cpu`, `time`, `user` and
/// `system` are written as well; those that it has not are 0, which a note in the file says.
pub fn cbs_xml(profile: &Profile, metric: MetricId, mark: &str) -> Option<Picture> {
    let is_time = |id: MetricId| {
        let metric = &profile.metrics[id.index()];
        metric.unit == Unit::Nanoseconds && !metric.is_level
    };
    if !is_time(metric) {
        return None;
    }
    let kinds = Kinds::of(profile, metric, is_time);
    let graph_of = |metric| CallGraph::of(profile, &Basis::of(profile, metric), Presentation::Contexts);
    let graphs = kinds.0.map(|metric| metric.map(graph_of));
    let base = kinds.base(metric);
    let writer = Writer::new(profile, &graphs, base, graphs[base].as_ref()?);
    let left_out = left_out(profile, &kinds);
    let mut text = format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{mark}\n<bench>\n");
    text += &summary(profile);
    text += &writer.notes(metric, &kinds);
    text += &writer.timer();
    text += &memory_plot(profile);
    text += "</bench>\n";
    Some(Picture { text, left_out })
}

/// The attributes for times, in the order in which they are written.
const NAMES: [&str; 4] = ["cpu", "wall", "user", "system"];

/// The metric of each of [`NAMES`].
struct Kinds([Option<MetricId>; 4]);

impl Kinds {
    fn of(profile: &Profile, metric: MetricId, is_time: impl Fn(MetricId) -> bool) -> Self {
        let find = |name| profile.find_metric(name).filter(|&id| is_time(id));
        let mut kinds = ["cpu", "time", "user", "system"].map(find);
        // Any other time is one of the processor.
        if !kinds.contains(&Some(metric)) {
            kinds = [Some(metric), None, None, None];
        }
        Self(kinds)
    }

    /// The metric that percentages are of: the wall clock's, or else the processor's.
    fn base(&self, metric: MetricId) -> usize {
        usize::from(self.0[1] == Some(metric) || self.0[0].is_none())
    }
}

fn left_out(profile: &Profile, kinds: &Kinds) -> Vec<String> {
    let mut left_out = vec!["stacks: only calls between functions are kept".to_owned()];
    let known = |id: MetricId| kinds.0.contains(&Some(id));
    let others: Vec<_> = profile
        .cost_metrics()
        .filter(|(id, _)| !known(*id))
        .map(|(_, metric)| metric.name.as_str())
        .collect();
    if !others.is_empty() {
        left_out.push(format!("other metrics: {}", others.join(", ")));
    }
    left_out
        .push("threads, files, lines, modules and kinds of functions, intervals of confidence".to_owned());
    left_out
}

/// A number of nanoseconds in milliseconds, with all digits.
fn ms(ns: u64) -> String {
    format!("{}.{:06}", ns / 1_000_000, ns % 1_000_000)
}

/// Text as XML has it: characters that it forbids become U+FFFD.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            '\n' => escaped.push_str("&#10;"),
            '\t' => escaped.push_str("&#9;"),
            '\r' => escaped.push_str("&#13;"),
            control if control < ' ' || matches!(control, '\u{fffe}' | '\u{ffff}') => {
                escaped.push('\u{fffd}')
            }
            other => escaped.push(other),
        }
    }
    escaped
}

fn summary(profile: &Profile) -> String {
    let benchmark = profile.metadata.benchmark.clone().unwrap_or_default();
    let run = profile.runs.first();
    let command = run.map(|run| run.command.join(" ")).unwrap_or_default();
    let name = if benchmark.name.is_empty() { command } else { benchmark.name };
    let seconds = run.map_or(0, |run| run.start_unix_ns / 1_000_000_000);
    let machine = |key| profile.metadata.machine.get(key).cloned().unwrap_or_default();
    let elements = [
        ("name", name),
        ("date", if seconds == 0 { String::new() } else { date(seconds) }),
        ("hostname", machine("host")),
        ("cpuinfo", machine("cpu")),
        ("meminfo", machine("memory")),
        ("time", seconds.to_string()),
        ("description", benchmark.description),
    ];
    let element = |(name, text): &(&str, String)| format!("  <{name}>{}</{name}>\n", escaped(text));
    let elements: String = elements.iter().map(element).collect();
    elements + &pairs("parameter", &benchmark.parameters) + &pairs("result", &benchmark.results)
}

/// Each name once, with its last value.
fn pairs(name: &str, pairs: &[(String, String)]) -> String {
    let last: HashMap<&str, usize> =
        pairs.iter().enumerate().map(|(at, (key, _))| (key.as_str(), at)).collect();
    let kept = pairs.iter().enumerate().filter(|(at, (key, _))| last[key.as_str()] == *at);
    let each = kept.map(|(_, (key, value))| {
        format!("    <{name} name=\"{}\" value=\"{}\" />\n", escaped(key), escaped(value))
    });
    format!("  <{name}s>\n{}  </{name}s>\n", each.collect::<String>())
}

/// In the form of C's `asctime`, in UTC. The days are reckoned after Hinnant, "chrono-Compatible Low-Level Date
/// Algorithms", 2014.
fn date(seconds: u64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = (month + 2) % 12;
    let year = year_of_era + era * 400 + u64::from(month < 2);
    format!(
        "{} {} {day:2} {:02}:{:02}:{:02} {year}",
        DAYS[(days % 7) as usize],
        MONTHS[month as usize],
        second / 3600,
        second / 60 % 60,
        second % 60,
    )
}

fn memory_plot(profile: &Profile) -> String {
    let [whole, resident] = ["virtual memory", "resident memory"].map(|name| profile.find_metric(name));
    let has_any = |point: &&treering_profile::Point| {
        point.values.iter().any(|(id, _)| Some(*id) == whole || Some(*id) == resident)
    };
    let mut each = String::new();
    for point in profile.points.iter().filter(has_any) {
        let value = |of: Option<MetricId>| {
            point.values.iter().find(|(id, _)| Some(*id) == of).map_or(0, |(_, value)| *value)
        };
        let function = profile.tree.function(point.node);
        let task =
            if function == Profile::ROOT { ROOT_TASK.into() } else { function_name(profile, function) };
        let written = writeln!(
            each,
            "    <plot>\n      <time>{}</time>\n      <memory>{}</memory>\n      <memory_rss>{}</memory_rss>\n      \
             <task>{}</task>\n      <description>{}</description>\n    </plot>",
            ms(point.time_ns),
            value(whole),
            value(resident),
            escaped(&task),
            escaped(&profile.strings[point.description]),
        );
        written.expect("memory takes everything");
    }
    if each.is_empty() { each } else { format!("  <memplot>\n{each}  </memplot>\n") }
}

/// A cost of each of [`NAMES`], in nanoseconds.
type Times = [u64; 4];

struct Writer<'a> {
    profile: &'a Profile,
    graphs: &'a [Option<CallGraph>; 4],
    base: usize,
    graph: &'a CallGraph,
    /// The ids of tasks; the first is the run, which a file of CBS has as a task of its own.
    ids: HashMap<FunctionId, usize>,
    /// By id.
    functions: Vec<Option<FunctionId>>,
    /// By graph: where the arc of a caller and a callee is.
    arcs: [HashMap<(Option<FunctionId>, FunctionId), usize>; 4],
    /// By cycle: calls out of it, and calls of its functions to themselves.
    cycle_calls: Vec<[u64; 2]>,
}

impl<'a> Writer<'a> {
    fn new(
        profile: &'a Profile,
        graphs: &'a [Option<CallGraph>; 4],
        base: usize,
        graph: &'a CallGraph,
    ) -> Self {
        let is_run = |function: FunctionId| function_name(profile, function) == ROOT_TASK;
        let run = graph.functions.iter().map(|cost| cost.function).find(|&function| is_run(function));
        let mut ids = HashMap::from([(Profile::ROOT, 0)]);
        ids.extend(run.map(|run| (run, 0)));
        let mut functions = vec![run];
        for cost in &graph.functions {
            let next = functions.len();
            if *ids.entry(cost.function).or_insert(next) == next {
                functions.push(Some(cost.function));
            }
        }
        let places = |graph: &Option<CallGraph>| {
            let arcs = graph.iter().flat_map(|graph| graph.arcs.iter().enumerate());
            arcs.map(|(at, arc)| ((arc.caller, arc.callee), at)).collect()
        };
        let arcs = graphs.each_ref().map(places);
        Self { profile, graphs, base, graph, ids, functions, arcs, cycle_calls: cycle_calls(graph) }
    }

    /// Takes a cost from each graph.
    fn times(&self, of: impl Fn(&CallGraph) -> u64) -> Times {
        self.graphs.each_ref().map(|graph| graph.as_ref().map_or(0, &of))
    }

    fn cost(&self, function: FunctionId, of: impl Fn(&FunctionCost) -> u64) -> Times {
        self.times(|graph| graph.function(function).map_or(0, &of))
    }

    fn time(&self, name: &str, times: Times, calls: u64) -> String {
        let [cpu, wall, user, system] = times.map(ms);
        let cost = times[self.base];
        let average = ms(cost.checked_div(calls).unwrap_or(0));
        let charge = cost as f64 * 100.0 / self.graph.basis.run.cost.max(1) as f64;
        format!(
            "<time name=\"{name}\" cpu=\"{cpu}\" wall=\"{wall}\" user=\"{user}\" system=\"{system}\" \
             average=\"{average}\" charge=\"{charge:.3}\" />\n"
        )
    }

    fn run_times(&self) -> Times {
        self.times(|graph| graph.basis.run.cost)
    }

    fn notes(&self, metric: MetricId, kinds: &Kinds) -> String {
        let mut notes: Vec<String> = self.profile.metadata.notes.iter().map(|note| note.0.clone()).collect();
        let missing: Vec<_> = NAMES
            .iter()
            .zip(&kinds.0)
            .filter(|(_, metric)| metric.is_none())
            .map(|(name, _)| *name)
            .collect();
        if !missing.is_empty() {
            notes.push(format!("0 stands for what was not measured: {}", missing.join(", ")));
        }
        let metric = &self.profile.metrics[metric.index()];
        if kinds.0[0].is_some_and(|cpu| self.profile.metrics[cpu.index()].name != "cpu") {
            notes.push(format!("cpu is the metric {}", metric.name));
        }
        if metric.sampling.is_some() {
            let samples = pluralize(self.graph.basis.run.samples, "sample", "samples");
            notes.push(format!("times are estimated from {samples}"));
        }
        if !self.graph.has_calls() {
            notes.push("calls were not counted: 0 stands for them".to_owned());
        }
        if !self.graph.totals.is_known() {
            notes.push("total times of functions are estimated from calls; calls have none".to_owned());
        }
        if notes.is_empty() {
            return String::new();
        }
        let each = notes.iter().map(|note| format!("    <note>{}</note>\n", escaped(note)));
        format!("  <notes>\n{}  </notes>\n", each.collect::<String>())
    }

    fn timer(&self) -> String {
        let (base, stopped) = (NAMES[self.base], !self.profile.metadata.unfinished);
        let mut order: Vec<usize> = (0..self.functions.len()).collect();
        let charge = |id: &usize| std::cmp::Reverse(self.self_cost(*id)[self.base]);
        order.sort_by_key(charge);
        let tasks: String = order.iter().map(|&id| self.task(id)).collect();
        let calls: String = self.graph.arcs.iter().map(|arc| self.call(arc)).collect();
        let cycles: String = (0..self.graph.cycles.len()).map(|at| self.component(at)).collect();
        let list = |name: &str, items: String| format!("    <{name}>\n{items}    </{name}>\n");
        format!(
            "  <timer base=\"{base}\" stopped=\"{stopped}\">\n    {}",
            self.time("total", self.run_times(), 1)
        ) + &list("taskList", tasks)
            + &list("callList", calls)
            + &list("componentList", cycles)
            + "  </timer>\n"
    }

    fn self_cost(&self, id: usize) -> Times {
        let own = |function| self.cost(function, |cost| cost.self_cost.cost);
        let mut times = self.functions[id].map(own).unwrap_or_default();
        if id == 0 {
            let outside = own(Profile::ROOT);
            times.iter_mut().zip(outside).for_each(|(time, outside)| *time = time.saturating_add(outside));
        }
        times
    }

    /// The calls of a function: from outside of its cycle, from itself, and from others in its cycle.
    fn calls(&self, id: usize) -> [u64; 3] {
        let Some(function) = self.functions[id].filter(|_| id > 0) else { return [1, 0, 0] };
        let cycle = self.graph.function(function).and_then(|cost| cost.cycle);
        let is_within = |arc: &Arc| {
            let caller = arc.caller.and_then(|caller| self.graph.function(caller));
            cycle.is_some() && caller.is_some_and(|caller| caller.cycle == cycle)
        };
        let mut calls = [0_u64; 3];
        for arc in self.graph.callers(function) {
            let kind = if arc.is_recursive() { 1 } else { 2 * usize::from(is_within(arc)) };
            calls[kind] = calls[kind].saturating_add(arc.calls);
        }
        // Calls that no caller accounts for come from outside.
        let all = self.graph.function(function).and_then(|cost| cost.calls).map_or(0, |calls| calls.all);
        calls[0] = calls[0].max(all.saturating_sub(calls[1]).saturating_sub(calls[2]));
        calls
    }

    fn task(&self, id: usize) -> String {
        let [outside, recursive, within] = self.calls(id);
        let calls = outside.saturating_add(recursive).saturating_add(within);
        let function = self.functions[id].filter(|_| id > 0);
        let name = function.map_or(ROOT_TASK.into(), |function| function_name(self.profile, function));
        let cycle = function.and_then(|function| self.graph.function(function)).and_then(|cost| cost.cycle);
        let component = cycle.map(|cycle| format!(" component=\"{}\"", cycle + 1)).unwrap_or_default();
        let total =
            function.map_or(self.run_times(), |function| self.cost(function, |cost| cost.total_cost.cost));
        format!(
            "      <task id=\"{id}\" name=\"{}\" calls=\"{calls}\" outsideCalls=\"{outside}\" \
             recursiveCalls=\"{recursive}\" cycleCalls=\"{within}\"{component}>\n        {}        {}      </task>\n",
            escaped(&name),
            self.time("total", total, calls),
            self.time("self", self.self_cost(id), calls),
        )
    }

    fn call(&self, arc: &Arc) -> String {
        let source = self.ids[&arc.caller.unwrap_or(Profile::ROOT)];
        let target = self.ids[&arc.callee];
        if target == 0 {
            // The run itself.
            return String::new();
        }
        let start = format!("      <call source=\"{source}\" target=\"{target}\" count=\"{}\"", arc.calls);
        if arc.is_recursive() || arc.source == ArcSource::Apportioned {
            return format!("{start} />\n");
        }
        let key = (arc.caller, arc.callee);
        let of = |cost: fn(&Arc) -> u64| -> Times {
            std::array::from_fn(|kind| {
                let at = self.arcs[kind].get(&key);
                self.graphs[kind].as_ref().zip(at).map_or(0, |(graph, &at)| cost(&graph.arcs[at]))
            })
        };
        let times = [
            ("total", of(|arc| arc.total_cost.cost)),
            ("self", of(|arc| arc.from_caller.self_cost.cost)),
            ("fromCaller", of(|arc| arc.from_caller.total.cost)),
            ("toCallee", of(|arc| arc.to_callee.total.cost)),
        ];
        let times = times.map(|(name, times)| format!("        {}", self.time(name, times, arc.calls)));
        format!("{start}>\n{}      </call>\n", times.concat())
    }

    fn component(&self, at: usize) -> String {
        let cost = &self.graph.cycles[at];
        let members = &cost.cycle.members;
        let [leaving, recursive] = self.cycle_calls[at];
        // The cycles are the same whatever is measured.
        let of = |part: fn(&CycleCost) -> u64| self.times(|graph| graph.cycles.get(at).map_or(0, part));
        let list = members.iter().map(|member| format!("        <member id=\"{}\" />\n", self.ids[member]));
        let entered = cost.calls_from_outside;
        format!(
            "      <component id=\"{}\" memberCount=\"{}\" inboundCalls=\"{entered}\" outgoingCalls=\"{leaving}\" \
             internalCalls=\"{}\" recursiveCalls=\"{recursive}\">\n        {}        {}{}      </component>\n",
            at + 1,
            members.len(),
            cost.calls_within,
            self.time("total", of(|cost| cost.total_cost.cost), entered),
            self.time("self", of(|cost| cost.self_cost.cost), entered),
            list.collect::<String>(),
        )
    }
}

/// By cycle: calls out of it, and calls of its functions to themselves.
fn cycle_calls(graph: &CallGraph) -> Vec<[u64; 2]> {
    let mut calls = vec![[0_u64; 2]; graph.cycles.len()];
    let cycle_of = |function| graph.function(function).and_then(|cost| cost.cycle);
    for arc in &graph.arcs {
        let Some(cycle) = arc.caller.and_then(cycle_of) else { continue };
        let [leaving, recursive] = &mut calls[cycle];
        if arc.is_recursive() {
            *recursive = recursive.saturating_add(arc.calls);
        } else if cycle_of(arc.callee) != Some(cycle) {
            *leaving = leaving.saturating_add(arc.calls);
        }
    }
    calls
}
