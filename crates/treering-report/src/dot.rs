//! The call graph for Graphviz.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::fmt::Write as _;

use treering_analysis::{Arc, ArcSource, CallGraph, FunctionCost, TotalSource, function_name, module_name};
use treering_profile::{FunctionId, Profile, Unit};

use crate::colour::{ink_on, ramp};
use crate::facts;
use crate::function::Labels;
use crate::name::fit;
use crate::number::{grouped, percent, plural, whole_cost};
use crate::picture::Picture;
use crate::printable::printable_profile;

/// The limits of a graph.
#[derive(Clone, Copy, Debug)]
pub struct GraphLimits {
    /// The most functions that are drawn: those of the largest total cost, or self cost where totals are not known.
    pub functions: usize,
    /// Functions below this share of the run are left out, and calls below a fifth of it.
    pub min_share: f64,
}

impl Default for GraphLimits {
    /// As much as can be read: 60 functions from half a percent on.
    fn default() -> Self {
        Self { functions: 60, min_share: 0.005 }
    }
}

/// Writes the call graph in Graphviz's language: a box for each function with its self and total cost and its
/// calls, filled by self cost, and an arrow for each pair of caller and callee with what the calls cost.
///
/// Functions and arrows are in order of least depth and then of total cost, so that Graphviz breaks cycles
/// where the program returns; calls back up within a cycle are dashed. What is estimated has a `~` before it,
/// what is a lower bound a `≥`. `profile` is the one that `graph` was made of.
pub fn call_graph_dot(profile: &Profile, graph: &CallGraph, limits: &GraphLimits) -> Picture {
    let profile = &*printable_profile(profile);
    let chosen = chosen(graph, limits);
    let depths = depths(graph);
    let depth = |function| depths.get(&function).copied().unwrap_or(u32::MAX);
    let mut functions = chosen.clone();
    functions.sort_by_key(|cost| (depth(cost.function), std::cmp::Reverse(cost.total_cost), cost.function));
    let numbers = functions.iter().zip(0..).map(|(cost, number)| (cost.function, number)).collect();
    let drawing = Drawing {
        profile,
        graph,
        limits,
        labels: Labels::of(profile),
        unit: profile.metrics[graph.basis.metric.index()].unit,
        functions,
        numbers,
        depths,
    };
    drawing.picture()
}

/// The functions that are drawn, largest first.
fn chosen<'a>(graph: &'a CallGraph, limits: &GraphLimits) -> Vec<&'a FunctionCost> {
    let size = |cost: &FunctionCost| match graph.totals {
        TotalSource::Missing => (cost.self_cost, cost.self_cost),
        _ => (cost.total_cost, cost.self_cost),
    };
    let is_large = |cost: &&FunctionCost| {
        let (cost, _) = size(cost);
        !cost.is_zero() && graph.basis.share(cost.cost) >= limits.min_share
    };
    let mut functions: Vec<_> = graph.functions.iter().filter(is_large).collect();
    functions.sort_by_key(|cost| (std::cmp::Reverse(size(cost)), cost.function));
    functions.truncate(limits.functions);
    functions
}

/// By function: how many calls it takes at least to come to it.
fn depths(graph: &CallGraph) -> HashMap<FunctionId, u32> {
    let mut depths = HashMap::new();
    let mut pending = VecDeque::new();
    let spontaneous = graph.arcs.iter().filter(|arc| arc.caller.is_none()).map(|arc| arc.callee);
    let uncalled = graph.functions.iter().map(|cost| cost.function);
    let uncalled = uncalled.filter(|&function| graph.callers(function).all(Arc::is_recursive));
    // Functions that no path from there reaches are in cycles without an entry: drawing starts at the largest one.
    let mut others: Vec<_> = graph.functions.iter().collect();
    others.sort_by_key(|cost| (std::cmp::Reverse(cost.total_cost), cost.function));
    let starts = spontaneous.chain(uncalled).map(|function| (function, false));
    for (function, alone) in starts.chain(others.iter().map(|cost| (cost.function, true))) {
        if alone {
            spread(graph, &mut depths, &mut pending);
        }
        if reach(&mut depths, function, 0) {
            pending.push_back(function);
        }
    }
    spread(graph, &mut depths, &mut pending);
    depths
}

/// Goes on to callees, nearest first.
fn spread(graph: &CallGraph, depths: &mut HashMap<FunctionId, u32>, pending: &mut VecDeque<FunctionId>) {
    while let Some(function) = pending.pop_front() {
        let next = depths[&function].saturating_add(1);
        for arc in graph.callees(function) {
            if reach(depths, arc.callee, next) {
                pending.push_back(arc.callee);
            }
        }
    }
}

/// Notes how deep a function is unless that is known; whether it was not.
fn reach(depths: &mut HashMap<FunctionId, u32>, function: FunctionId, depth: u32) -> bool {
    match depths.entry(function) {
        Entry::Vacant(free) => {
            free.insert(depth);
            true
        }
        Entry::Occupied(_) => false,
    }
}

struct Drawing<'a> {
    profile: &'a Profile,
    graph: &'a CallGraph,
    limits: &'a GraphLimits,
    labels: Labels<'a>,
    unit: Unit,
    /// The drawn functions, in the order of the file.
    functions: Vec<&'a FunctionCost>,
    /// Their places in that order.
    numbers: HashMap<FunctionId, usize>,
    depths: HashMap<FunctionId, u32>,
}

/// How files begin, so that they are known as ours.
pub(crate) const DOT_START: &str = "// The call graph of a profile, made by treering export --to dot.";

/// How many characters of a name are in a box.
const NAME: usize = 44;

/// How long a name in a tooltip may be: Graphviz refuses texts of more than 16 KiB, and an escape has up to five bytes.
const TOOLTIP: usize = 2_000;

impl Drawing<'_> {
    fn picture(&self) -> Picture {
        let (arcs, hidden_arcs) = self.arcs();
        let left_out = self.left_out(hidden_arcs);
        let metric = &self.profile.metrics[self.graph.basis.metric.index()].name;
        let mut text = format!("{DOT_START}\n");
        for (label, told) in facts::lines(self.profile, &self.graph.basis) {
            let _ = writeln!(text, "// {label:<8}  {told}");
        }
        for told in &left_out {
            let _ = writeln!(text, "// picture   {told}");
        }
        let label =
            [vec![format!("{metric}; % is of the whole run")], left_out.clone(), self.marks()].concat();
        let _ = writeln!(
            text,
            "digraph \"{}\" {{\n\
             graph [fontname=\"Helvetica,Arial,sans-serif\", fontsize=11, label={}, labelloc=b, labeljust=l];\n\
             node [fontname=\"Helvetica,Arial,sans-serif\", fontsize=11, shape=box, style=filled, \
             color=\"#8d877b\"];\n\
             edge [fontname=\"Helvetica,Arial,sans-serif\", fontsize=9, color=\"#57524a\"];",
            quoted(metric),
            lines(&label)
        );
        for (cost, number) in self.functions.iter().zip(0..) {
            let _ = writeln!(text, "{}", self.function(cost, number));
        }
        for arc in arcs {
            let _ = writeln!(text, "{}", self.arc(arc));
        }
        text += "}\n";
        Picture { text, left_out }
    }

    /// The arcs that are drawn, in the order of the functions, and how many others there are between these.
    fn arcs(&self) -> (Vec<&Arc>, usize) {
        let number = |function: FunctionId| self.numbers.get(&function).copied();
        let ends = |arc: &Arc| Some((number(arc.caller?)?, number(arc.callee)?));
        let between: Vec<_> = self.graph.arcs.iter().filter_map(|arc| Some((ends(arc)?, arc))).collect();
        let all = between.len();
        let is_large = |arc: &Arc| {
            let share = self.graph.basis.share(arc.total_cost.cost);
            share >= self.limits.min_share / 5.0 || arc.is_recursive()
        };
        let mut drawn: Vec<_> = between.into_iter().filter(|(_, arc)| is_large(arc)).collect();
        drawn.sort_by_key(|&((from, to), _)| (from, to));
        let hidden = all - drawn.len();
        (drawn.into_iter().map(|(_, arc)| arc).collect(), hidden)
    }

    fn left_out(&self, hidden_arcs: usize) -> Vec<String> {
        let mut told = Vec::new();
        let costs = |cost: &&FunctionCost| !cost.self_cost.is_zero() || !cost.total_cost.is_zero();
        let is_hidden = |cost: &&FunctionCost| !self.numbers.contains_key(&cost.function);
        let hidden: Vec<_> = self.graph.functions.iter().filter(costs).filter(is_hidden).collect();
        let share = percent(self.limits.min_share);
        if !hidden.is_empty() {
            let own = hidden.iter().fold(0_u64, |sum, cost| sum.saturating_add(cost.self_cost.cost));
            let own = percent(self.graph.basis.share(own));
            let functions = plural(hidden.len() as u64, "function");
            let why = match self.functions.len() < self.limits.functions {
                true => format!("below {share} %"),
                false => format!("beyond the {} largest", grouped(self.limits.functions as u64)),
            };
            told.push(format!("not drawn: {functions} {why}, whose self costs are {own} % of the run"));
        }
        if hidden_arcs > 0 {
            let arcs = plural(hidden_arcs as u64, "arrow");
            let share = percent(self.limits.min_share / 5.0);
            told.push(format!("not drawn: {arcs} between these functions, each below {share} %"));
        }
        told
    }

    /// The meaning of the marks before numbers, and the other limits of the graph.
    fn marks(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let estimated = self.graph.arcs.iter().any(|arc| arc.source == ArcSource::Apportioned);
        if estimated || self.graph.totals == TotalSource::Apportioned {
            lines.push("~: apportioned by calls, not measured");
        }
        if self.graph.totals == TotalSource::Bounded {
            lines.push("≥: at least; contexts were folded");
        }
        if matches!(self.graph.totals, TotalSource::Measured | TotalSource::Missing) {
            lines.push("the profile is flat: callers are not known");
        }
        lines.into_iter().map(str::to_owned).collect()
    }

    fn mark(&self) -> &'static str {
        match self.graph.totals {
            TotalSource::Apportioned => "~",
            TotalSource::Bounded => "≥",
            _ => "",
        }
    }

    fn function(&self, of: &FunctionCost, number: usize) -> String {
        let share = |cost: u64| percent(self.graph.basis.share(cost));
        let amount = |amount: u64| format!("{} %, {}", share(amount), whole_cost(self.unit, amount));
        let mut label = vec![fit(&self.labels.with_module(of.function), NAME)];
        label.push(format!("self {}", amount(of.self_cost.cost)));
        if self.graph.totals != TotalSource::Missing {
            label.push(format!("total {}{}", self.mark(), amount(of.total_cost.cost)));
        }
        if let Some(calls) = of.calls.filter(|calls| calls.all > 0) {
            label.push(match calls.recursive {
                0 => plural(calls.all, "call"),
                recursive => {
                    format!("{}, {} by itself", plural(calls.all, "call"), grouped(recursive))
                }
            });
        }
        if let Some(cycle) = of.cycle {
            label.push(format!("cycle {}", cycle + 1));
        }
        let fill = ramp(self.graph.basis.share(of.self_cost.cost));
        let size = 11.0 + 5.0 * self.graph.basis.share(of.total_cost.cost).min(1.0).sqrt();
        format!(
            "f{number} [label={}, tooltip=\"{}\", fillcolor=\"{fill}\", fontcolor=\"{}\", fontsize={size:.1}];",
            lines(&label),
            quoted_twice(&fit(&self.full_name(of.function), TOOLTIP)),
            ink_on(fill).0,
        )
    }

    fn full_name(&self, function: FunctionId) -> String {
        let name = function_name(self.profile, function);
        match module_name(self.profile, function) {
            Some(module) => format!("{name} [{}]", module.trim_matches(['[', ']'])),
            None => name.into_owned(),
        }
    }

    fn arc(&self, arc: &Arc) -> String {
        let caller = arc.caller.unwrap_or(Profile::ROOT);
        let (from, to) = (self.numbers[&caller], self.numbers[&arc.callee]);
        let share = self.graph.basis.share(arc.total_cost.cost);
        let mut label = Vec::new();
        // The cost of recursion is part of the activation that it started in.
        if !arc.is_recursive() {
            let mark = if arc.source == ArcSource::Apportioned { "~" } else { self.bound() };
            label.push(format!("{mark}{} %", percent(share)));
        }
        if arc.calls > 0 {
            label.push(plural(arc.calls, "call"));
        }
        let weight = 0.6 + 5.4 * share.min(1.0);
        let back = if self.goes_back(caller, arc.callee) { ", style=dashed, constraint=false" } else { "" };
        format!("f{from} -> f{to} [label={}, penwidth={weight:.1}{back}];", lines(&label))
    }

    /// Costs of arcs are lower bounds where contexts were folded.
    fn bound(&self) -> &'static str {
        if self.graph.totals == TotalSource::Bounded { "≥" } else { "" }
    }

    /// Whether a call goes back up within a cycle.
    fn goes_back(&self, caller: FunctionId, callee: FunctionId) -> bool {
        let cycle = |function| self.graph.function(function).and_then(|cost| cost.cycle);
        let depth = |function| self.depths.get(&function);
        caller != callee
            && cycle(caller).is_some()
            && cycle(caller) == cycle(callee)
            && depth(callee) <= depth(caller)
    }
}

/// Lines of a label as one quoted string, left-aligned.
fn lines(label: &[String]) -> String {
    let lines: String = label.iter().map(|line| quoted(line) + "\\l").collect();
    format!("\"{lines}\"")
}

/// The inside of a double-quoted string. An ampersand would start an entity there, and a backslash an escape.
fn quoted(text: &str) -> String {
    text.replace('&', "&amp;").replace('\\', "\\\\").replace('"', "\\\"")
}

/// The same for a tooltip, in which Graphviz reads escapes twice (seen in 2.43).
fn quoted_twice(text: &str) -> String {
    quoted(&text.replace('\\', "\\\\"))
}

#[cfg(test)]
mod tests {
    use treering_analysis::{Basis, Presentation};
    use treering_profile::MetricId;

    use super::*;

    fn dot(profile: &Profile, limits: &GraphLimits) -> Picture {
        let basis = Basis::of(profile, MetricId::new(0));
        call_graph_dot(profile, &CallGraph::of(profile, &basis, Presentation::Contexts), limits)
    }

    /// Nodes and arrows without their looks.
    fn shape(picture: &Picture) -> String {
        let graph = picture.text.split_once("edge [").expect("it has a head").1;
        let plain = |line: &str| {
            let label = line.split_once("[label=")?.1.split_once("\", ")?.0;
            let dashed = if line.contains("dashed") { " dashed" } else { "" };
            Some(format!("{}{}\"{dashed}\n", line.split('[').next()?, label))
        };
        graph.lines().filter_map(plain).collect()
    }

    #[test]
    fn functions_have_costs_and_calls_and_arrows_what_they_cost() {
        let trace = "
             0 enter main
             1   enter odd
             2     enter even
             3       enter odd
             4       leave odd
             6     leave even
             7   leave odd
             7   enter f
             8     enter f
             9     leave f
            10   leave f
            20 leave main
        ";
        let profile = treering_testing::trace(trace);
        expect_test::expect![[r#"
            f0 "main\lself 55.0 %, 11 ns\ltotal 100.0 %, 20 ns\l1 call\l"
            f1 "odd\lself 15.0 %, 3 ns\ltotal 30.0 %, 6 ns\l2 calls\lcycle 1\l"
            f2 "f\lself 15.0 %, 3 ns\ltotal 15.0 %, 3 ns\l2 calls, 1 by itself\l"
            f3 "even\lself 15.0 %, 3 ns\ltotal 20.0 %, 4 ns\l1 call\lcycle 1\l"
            f0 -> f1 "30.0 %\l1 call\l"
            f0 -> f2 "15.0 %\l1 call\l"
            f1 -> f3 "20.0 %\l1 call\l"
            f2 -> f2 "1 call\l"
            f3 -> f1 "5.0 %\l1 call\l" dashed
        "#]]
        .assert_eq(&shape(&dot(&profile, &GraphLimits::default())));
    }

    #[test]
    fn functions_left_out_are_counted() {
        let profile = treering_testing::stacks("main;a 500\n main;b 400\n main;c 97\n main;d 3");
        let picture = dot(&profile, &GraphLimits::default());
        let told = "not drawn: 1 function below 0.5 %, whose self costs are 0.3 % of the run";
        assert_eq!(picture.left_out, [told]);
        assert!(picture.text.contains(&format!("// picture   {told}\n")));
        let picture = dot(&profile, &GraphLimits { functions: 2, min_share: 0.0 });
        let told = "not drawn: 3 functions beyond the 2 largest, whose self costs are 50.0 % of the run";
        assert_eq!(picture.left_out, [told]);
    }

    #[test]
    fn long_names_are_cut_in_tooltips() {
        let name = "f<&&, ".repeat(5_000);
        let picture = dot(&treering_testing::stacks(&format!("main;{name} 10")), &GraphLimits::default());
        let longest = picture.text.split('"').map(str::len).max();
        assert!(longest < Some(16 << 10), "{longest:?}");
        assert!(picture.text.contains('…'));
    }

    #[test]
    fn names_cannot_end_their_strings() {
        let profile = treering_testing::stacks("main;\"] evil [label=\"x\\ 10\n main;&amp<a\\N 10");
        let picture = dot(&profile, &GraphLimits::default());
        assert!(picture.text.contains(r#"label="\"] evil [label=\"x\\\lself"#), "{}", picture.text);
        assert!(picture.text.contains(r#"label="&amp;amp<a\\N\lself"#), "{}", picture.text);
    }
}
