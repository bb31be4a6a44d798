//! The call graph as text: a block for each function.

mod subject;

use std::borrow::Cow;
use std::collections::HashMap;

use treering_analysis::{
    Arc, ArcSource, CallGraph, Calls, Detail, Details, Growth, Part, Presentation, TotalSource,
};
use treering_profile::{FunctionId, Profile, RecursionRule};

use crate::columns::{DetailColumns, growth_line};
use crate::exact_column::ExactColumns;
use crate::flat::bounds;
use crate::function::Labels;
use crate::header::header_lines;
use crate::number::{Quanta, apportion, grouped, percent, plural};
use crate::options::{Amount, Options};
use crate::printable::printable_profile;
use crate::scale::Scale;
use crate::style::Style;

use subject::{Subject, subjects};

/// The call graph as gprof prints it: for each function a block with its callers above it and
/// its callees below.
///
/// The printed numbers add up to the last digit: callers to the function's self and children cost,
/// callees to its children cost. `profile` is the one that `graph` was made of.
pub fn call_graph_text(profile: &Profile, graph: &CallGraph, style: &Style, options: &Options) -> String {
    let profile = &*printable_profile(profile);
    let mut text = header_lines(profile, &graph.basis, style);
    if graph.basis.run.cost == 0 {
        return text;
    }
    let listing = Listing::of(profile, graph, style, options);
    text.push('\n');
    text += &listing.blocks();
    text += &listing.left_out;
    text += &listing.index_by_name();
    text += &listing.legend();
    text
}

/// A line of a block other than its own: a caller or a callee.
struct Line<'a> {
    name: Cow<'a, str>,
    part: Part,
    calls: u64,
    /// All calls of the callee from outside of its cycle; what `calls` is a part of.
    of_calls: u64,
    /// Whether the call comes from within: its cost is in the outer activation's.
    recursive: bool,
    apportioned: bool,
    detail: Option<&'a Detail>,
    /// The cells of what was counted.
    exact: String,
}

struct Listing<'a> {
    graph: &'a CallGraph,
    style: &'a Style,
    labels: Labels<'a>,
    scale: Scale,
    width: usize,
    min_share: f64,
    subjects: Vec<Subject<'a>>,
    numbers: HashMap<FunctionId, usize>,
    /// The name of every function in a line.
    names: HashMap<FunctionId, String>,
    cycle_numbers: HashMap<usize, usize>,
    left_out: String,
    details: Details,
    columns: DetailColumns,
    /// The exact counts beside the samples.
    exact: ExactColumns,
    /// The width of the column of calls; 0 for none.
    called: usize,
    /// Whether recursive calls have a line of their own, as in SWI-Prolog's profiler.
    names_recursion: bool,
    /// Whether calls of functions by themselves share a node with the call from outside.
    folds_recursion: bool,
}

/// The label for the callers of recursive calls.
const RECURSIVE: &str = "<recursive>";

impl<'a> Listing<'a> {
    fn of(profile: &'a Profile, graph: &'a CallGraph, style: &'a Style, options: &Options) -> Self {
        let unit = profile.metrics[graph.basis.metric.index()].unit;
        let scale = Scale::of(&graph.basis, unit, options.amount.unwrap_or(Amount::Natural));
        let (subjects, left_out) = subjects(profile, graph, options);
        let (mut numbers, mut cycle_numbers) = (HashMap::new(), HashMap::new());
        for (subject, number) in subjects.iter().zip(1..) {
            match subject {
                Subject::Function(cost) => numbers.insert(cost.function, number),
                Subject::Cycle(cycle, _) => cycle_numbers.insert(*cycle, number),
            };
        }
        let labels = Labels::of(profile);
        let tree = &profile.tree;
        let folds_recursion = profile.recursion != RecursionRule::Full
            && tree.nodes().any(|node| tree.recursive_calls(node) > 0);
        let details = Details::of(profile, graph.basis.metric);
        let columns = DetailColumns::of(&details, unit, options.statistics, most_ports(profile));
        let names = graph.functions.iter().map(|cost| {
            let name = labels.with_module(cost.function);
            let cycle = cost.cycle.map_or(String::new(), |cycle| format!(" <cycle {}>", cycle + 1));
            let number = numbers.get(&cost.function).map_or(String::new(), |number| format!(" [{number}]"));
            (cost.function, format!("{name}{cycle}{number}"))
        });
        Self {
            graph,
            style,
            names: names.collect(),
            labels,
            scale,
            width: scale.text(graph.basis.run).len().max(9),
            called: called_width(graph, &subjects),
            min_share: options.min_share,
            subjects,
            numbers,
            cycle_numbers,
            left_out,
            names_recursion: details.has_ports || profile.metadata.parameters.contains_key("system"),
            folds_recursion,
            details,
            columns,
            exact: ExactColumns::of(profile, graph),
        }
    }

    fn blocks(&self) -> String {
        let called = self.called("called");
        let (own, children) = (self.scale.heading("self"), self.scale.heading("children"));
        let width = self.width;
        let more = self.columns.headings() + &self.exact.headings();
        let heading = format!("index  % total  {own:>width$}  {children:>width$}  {called}{more}function");
        let mut text = format!("{}\n", self.style.bold(&heading));
        for (subject, number) in self.subjects.iter().zip(1..) {
            text += &self.block(subject, number);
            text += &self.style.dim(&"-".repeat(heading.chars().count() + 16));
            text.push('\n');
        }
        text
    }

    /// A block; numbers are rounded so that what is shown adds up.
    fn block(&self, subject: &Subject, number: usize) -> String {
        let part = subject.part();
        let total = self.scale.rounded(part.total);
        let own = self.scale.rounded(part.self_cost).min(total);
        let (callers, callees) = (self.callers(subject), self.callees(subject));
        let mut text = String::new();
        for (line, (own, children)) in callers.iter().zip(self.divide(&callers, subject, own, total - own)) {
            text += &self.line(line, own, children);
        }
        text += &self.own_line(subject, number, own, total - own);
        for (line, (own, children)) in callees.iter().zip(self.divide_callees(&callees, subject, total - own))
        {
            text += &self.line(line, own, children);
        }
        text + &self.sizes(subject)
    }

    /// Lines of the costs by argument size, and of how they grow for each caller.
    fn sizes(&self, subject: &Subject) -> String {
        let mut lines = self.columns.size_lines(self.detail(subject));
        lines.extend(self.growth_by_caller(subject));
        lines.iter().map(|line| format!("{:16}{line}\n", "")).collect()
    }

    /// How costs grow for callers that made a part of the calls, largest caller first: one may
    /// use a function so that it takes linear time, another so that it takes quadratic time.
    fn growth_by_caller(&self, subject: &Subject) -> Vec<String> {
        let Subject::Function(cost) = subject else { return Vec::new() };
        let all = self.details.function(cost.function).map_or(&[][..], |detail| &detail.sizes);
        let is_large = |arc: &&Arc| self.graph.basis.share(arc.from_caller.total.cost) >= self.min_share;
        let mut arcs: Vec<&Arc> = self.graph.callers(cost.function).filter(is_large).collect();
        arcs.sort_by_key(|arc| core::cmp::Reverse(arc.from_caller.total));
        let line = |arc: &Arc| {
            let sizes = self.details.arc(arc).map(|detail| &detail.sizes).filter(|sizes| *sizes != all)?;
            let caller = arc.caller.map_or("<spontaneous>", |caller| self.name(caller));
            Some(format!("called by {caller}: {}", growth_line(&Growth::of(sizes)?)))
        };
        arcs.into_iter().filter_map(line).collect()
    }

    fn detail(&self, subject: &Subject) -> Option<&Detail> {
        match subject {
            Subject::Function(cost) => self.details.function(cost.function),
            Subject::Cycle(..) => None,
        }
    }

    /// The rounded self and children costs of the callers, which add up to the function's.
    fn divide(&self, lines: &[Line<'_>], subject: &Subject, own: u64, children: u64) -> Vec<(u64, u64)> {
        let own_parts: Vec<Quanta> =
            lines.iter().map(|line| self.scale.quanta(line.part.self_cost)).collect();
        let parts: Vec<Quanta> = lines.iter().map(|line| self.scale.quanta(line.part.children())).collect();
        if !self.adds_up(subject) {
            let rounded = |parts: &[Quanta]| parts.iter().map(|part| part.rounded()).collect::<Vec<_>>();
            return rounded(&own_parts).into_iter().zip(rounded(&parts)).collect();
        }
        apportion(&own_parts, own).into_iter().zip(apportion(&parts, children)).collect()
    }

    /// The rounded costs of the callees, which add up to the function's children cost.
    fn divide_callees(&self, lines: &[Line<'_>], subject: &Subject, children: u64) -> Vec<(u64, u64)> {
        let parts = lines.iter().flat_map(|line| [line.part.self_cost, line.part.children()]);
        let parts: Vec<Quanta> = parts.map(|part| self.scale.quanta(part)).collect();
        let rounded = match subject {
            Subject::Cycle(..) => parts.iter().map(|part| part.rounded()).collect(),
            Subject::Function(_) => apportion(&parts, children),
        };
        rounded.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect()
    }

    /// Whether the callers' lines add up to the subject's total: not for members of collapsed
    /// cycles, whose callers asked for the cycle as a whole, nor where a measured source does
    /// not agree with itself.
    fn adds_up(&self, subject: &Subject) -> bool {
        match subject {
            Subject::Function(cost) => {
                let given: u64 =
                    self.graph.callers(cost.function).map(|arc| arc.from_caller.total.cost).sum();
                given == cost.total_cost.cost
            }
            Subject::Cycle(..) => true,
        }
    }

    fn callers(&self, subject: &Subject) -> Vec<Line<'_>> {
        let lines = match subject {
            Subject::Function(cost) => self.caller_lines(cost.function),
            Subject::Cycle(_, cost) => {
                let members = &cost.cycle.members;
                let outside =
                    |arc: &&Arc| arc.caller.is_none_or(|caller| members.binary_search(&caller).is_err());
                let arcs = members.iter().flat_map(|&member| self.graph.callers(member));
                arcs.filter(outside).map(|arc| self.caller_line(arc)).collect()
            }
        };
        // The largest caller is next to the function, as gprof has it.
        let mut lines = self.gather(lines, "caller");
        lines.extend(self.recursive_line(subject));
        lines.reverse();
        lines
    }

    /// The line of the calls that a function makes to itself, which cost nothing besides.
    fn recursive_line(&self, subject: &Subject) -> Option<Line<'_>> {
        let Subject::Function(cost) = subject else { return None };
        let calls = cost.calls.unwrap_or_default().recursive;
        (self.names_recursion && calls > 0).then(|| Line {
            name: Cow::Borrowed(RECURSIVE),
            part: Part::default(),
            calls,
            of_calls: 0,
            recursive: true,
            apportioned: false,
            detail: None,
            exact: self.exact.no_cells(),
        })
    }

    fn caller_lines(&self, function: FunctionId) -> Vec<Line<'_>> {
        let arcs = self.graph.callers(function).filter(|arc| !arc.is_recursive());
        arcs.map(|arc| self.caller_line(arc)).collect()
    }

    fn caller_line(&self, arc: &Arc) -> Line<'_> {
        let name = arc.caller.map_or("<spontaneous>", |caller| self.name(caller));
        let recursive =
            arc.from_caller.total.is_zero() && !arc.total_cost.is_zero() || self.is_within_cycle(arc);
        self.arc_line(arc, name, arc.from_caller, recursive)
    }

    fn callees(&self, subject: &Subject) -> Vec<Line<'_>> {
        let lines = match subject {
            Subject::Function(cost) => {
                let arcs = self.graph.callees(cost.function).filter(|arc| !arc.is_recursive());
                arcs.map(|arc| {
                    let recursive = self.is_within_cycle(arc);
                    self.arc_line(arc, self.name(arc.callee), arc.to_callee, recursive)
                })
                .collect()
            }
            Subject::Cycle(_, cost) => {
                cost.cycle.members.iter().map(|&member| self.member_line(member)).collect()
            }
        };
        self.gather(lines, "callee")
    }

    fn arc_line<'n>(&'n self, arc: &Arc, name: &'n str, part: Part, recursive: bool) -> Line<'n> {
        let apportioned = arc.source == ArcSource::Apportioned;
        let detail = self.details.arc(arc);
        let exact = self.exact.arc_cells(arc);
        Line {
            name: Cow::Borrowed(name),
            part,
            calls: arc.calls,
            of_calls: self.of_calls(arc),
            recursive,
            apportioned,
            detail,
            exact,
        }
    }

    fn member_line(&self, member: FunctionId) -> Line<'_> {
        let cost = self.graph.function(member);
        let part =
            cost.map_or(Part::default(), |cost| Part { self_cost: cost.self_cost, total: cost.total_cost });
        let calls = self.calls_from_others(member);
        Line {
            name: Cow::Borrowed(self.name(member)),
            part,
            calls,
            of_calls: 0,
            recursive: false,
            apportioned: false,
            detail: self.details.function(member),
            exact: self.exact.function_cells(Some(member)),
        }
    }

    /// Whether an arc stays within a collapsed cycle and so costs nothing.
    fn is_within_cycle(&self, arc: &Arc) -> bool {
        let cycle = |function| self.graph.function(function).and_then(|cost| cost.cycle);
        self.graph.presentation == Presentation::CollapsedCycles
            && arc.caller.is_some_and(|caller| cycle(caller).is_some() && cycle(caller) == cycle(arc.callee))
    }

    /// The calls of which those of an arc are a part, as gprof has them: where a cycle counts as one function, those that
    /// lead into it, and none for calls within it, which are of nobody's cost.
    fn of_calls(&self, arc: &Arc) -> u64 {
        let collapsed = self.graph.presentation == Presentation::CollapsedCycles;
        let cycle = self.graph.function(arc.callee).and_then(|cost| cost.cycle).filter(|_| collapsed);
        match cycle {
            Some(_) if self.is_within_cycle(arc) => 0,
            Some(cycle) => self.graph.cycles[cycle].calls_from_outside,
            None => self.calls_from_others(arc.callee),
        }
    }

    fn calls_from_others(&self, function: FunctionId) -> u64 {
        let calls = self.graph.function(function).and_then(|cost| cost.calls).unwrap_or_default();
        calls.all - calls.recursive
    }

    /// Largest first, with lines that are too small added up in one.
    fn gather<'n>(&self, mut lines: Vec<Line<'n>>, what: &str) -> Vec<Line<'n>> {
        lines.sort_by(|a, b| b.part.total.cmp(&a.part.total).then_with(|| a.name.cmp(&b.name)));
        let small = |line: &Line<'_>| self.graph.basis.share(line.part.total.cost) < self.min_share;
        let first_small = lines.iter().position(small).unwrap_or(lines.len());
        if lines.len() - first_small < 2 {
            return lines;
        }
        let rest = lines.split_off(first_small);
        let mut part = Part::default();
        rest.iter().for_each(|line| part += line.part);
        lines.push(Line {
            name: format!("… {} below {} %", plural(rest.len() as u64, what), percent(self.min_share)).into(),
            part,
            calls: rest.iter().map(|line| line.calls).sum(),
            of_calls: 0,
            recursive: false,
            apportioned: rest.iter().any(|line| line.apportioned),
            detail: None,
            exact: self.exact.no_cells(),
        });
        lines
    }

    fn line(&self, line: &Line<'_>, own: u64, children: u64) -> String {
        let (own, children) = match line.recursive && own == 0 && children == 0 {
            true => (String::new(), String::new()),
            false => (self.scale.digits(own), self.scale.digits(children)),
        };
        let called = match (line.calls, line.of_calls) {
            (0, _) => String::new(),
            (calls, 0) => grouped(calls),
            (calls, of_calls) => format!("{}/{}", grouped(calls), grouped(of_calls)),
        };
        let mark = if line.apportioned { "~" } else { " " };
        let own = if line.apportioned && !own.is_empty() { format!("~{own}") } else { own };
        let recursive = if line.recursive && line.name != RECURSIVE { " (recursive)" } else { "" };
        let width = self.width;
        let (called, more) = (self.called(&called), self.columns.cells(line.detail) + &line.exact);
        let interval = self.interval(line);
        let cells = format!("{interval:>16}{own:>width$} {mark}{children:>width$}  {called}{more}    ");
        format!("{cells}{}{recursive}\n", self.style.fit_name(cells.chars().count(), &line.name))
    }

    /// Where calls were counted and costs sampled: how sure the share is that stands beside the count.
    fn interval(&self, line: &Line<'_>) -> String {
        let interval = self.graph.basis.interval(line.part.total).filter(|_| self.graph.counts_apart());
        interval.filter(|_| !line.recursive).map_or(String::new(), bounds)
    }

    fn own_line(&self, subject: &Subject, number: usize, own: u64, children: u64) -> String {
        let share = self.graph.basis.share(subject.part().total.cost);
        let (called, name) = match subject {
            Subject::Function(cost) => {
                let unresolved = if cost.reliability.unresolved { " (time unresolved)" } else { "" };
                (
                    cost.calls.map_or(String::new(), own_calls),
                    format!("{}{unresolved}", self.name(cost.function)),
                )
            }
            Subject::Cycle(cycle, cost) => {
                let called = format!("{}+{}", grouped(cost.calls_from_outside), grouped(cost.calls_within));
                (called, format!("<cycle {} as a whole> [{number}]", cycle + 1))
            }
        };
        let (own, children) = (self.scale.digits(own), self.scale.digits(children));
        let exact = self.exact.function_cells(subject.function());
        let (called, more) = (self.called(&called), self.columns.cells(self.detail(subject)) + &exact);
        let index = format!("[{number}]");
        let mark = match self.graph.totals {
            TotalSource::Apportioned => "~",
            TotalSource::Bounded => "≥",
            _ => "",
        };
        let (share_text, width) = (format!("{mark}{}", percent(share)), self.width);
        let mark = if mark.is_empty() { " " } else { mark };
        let cells =
            format!("{index:<7}{share_text:>7}  {own:>width$} {mark}{children:>width$}  {called}{more}");
        let name = self.style.fit_name(cells.chars().count(), &name);
        format!("{}\n", self.style.heat(share, &format!("{cells}{name}")))
    }

    /// The column of calls, if there is one.
    fn called(&self, called: &str) -> String {
        if self.called > 0 { format!("{called:^width$}", width = self.called) } else { String::new() }
    }

    /// `name <cycle 1> [7]`.
    fn name(&self, function: FunctionId) -> &str {
        self.names.get(&function).map_or("", String::as_str)
    }

    fn index_by_name(&self) -> String {
        let functions =
            self.numbers.iter().map(|(&function, &number)| (self.labels.with_module(function), number));
        let cycles = self.cycle_numbers.iter();
        let cycles = cycles.map(|(cycle, &number)| (format!("<cycle {}>", cycle + 1), number));
        let mut entries: Vec<_> = functions.chain(cycles).collect();
        entries.sort();
        let lines = entries.iter().map(|(name, number)| {
            let number = format!("[{number}]");
            format!("{number:>7} {}\n", self.style.fit_name(8, name))
        });
        format!("\n{}\n{}", self.style.bold("Index by function name"), lines.collect::<String>())
    }

    fn legend(&self) -> String {
        let counted = self.exact.legend();
        let mut lines = vec![
            "the numbered line is the function, its callers are above it and its callees below",
            "callers add up to its self and children cost, callees to its children cost; % is of the whole run",
        ];
        if self.graph.has_calls() {
            lines.push("called: from this caller / from all others; on the numbered line + recursive calls");
        }
        if self.graph.counts_apart() {
            lines.push(COUNTED);
            lines.extend(counted.iter().map(String::as_str));
        }
        if self.graph.counts_apart() && self.graph.basis.samples.is_some() {
            lines.push(SAMPLED);
        }
        let apportioned = self.graph.totals == TotalSource::Apportioned;
        if apportioned || self.graph.arcs.iter().any(|arc| arc.source == ArcSource::Apportioned) {
            lines.push(
                "~: apportioned by calls, not measured: wrong where some calls take longer than others",
            );
        }
        if self.graph.totals == TotalSource::Bounded {
            lines.push("≥: at least; contexts were folded, so the callers there are not known");
        }
        if apportioned {
            lines.push("treering count --tree measures the values marked ~");
        }
        if self.graph.presentation == Presentation::CollapsedCycles && !self.graph.cycles.is_empty() {
            lines.push(COLLAPSED);
        }
        if self.graph.totals == TotalSource::Missing && self.graph.counts_apart() {
            lines.push("this was counted by function: what functions cost with all they called is not known");
        } else if matches!(self.graph.totals, TotalSource::Measured | TotalSource::Missing) {
            lines.push("the profile is flat: callers are not known");
        }
        let corrected = self.graph.basis.correction.is_some();
        lines.extend(corrected.then_some("the cost of measuring is subtracted"));
        if self.subjects.iter().any(Subject::is_unresolved) {
            lines.push(
                "(time unresolved): calls are exact, but a call is too short to be told from measuring it",
            );
        }
        lines.extend(self.columns.legend(corrected, self.folds_recursion));
        let mut text = self.style.dim(&format!("\n{}", self.style.wrap_lines(&lines.join("\n"))));
        text.push('\n');
        text
    }
}

/// The note on cycles that count as one function.
const COLLAPSED: &str = "a cycle counts as one function: calls within it cost nothing\n\
                         <cycle>: a member's children leave the others out, its callers have parts of the whole cycle";

/// The note on calls that were counted separately from the costs.
const COUNTED: &str = "calls are exact, and missing where they were not counted";
/// The note on the costs beside them.
const SAMPLED: &str = "self and children are sampled along stacks\n\
                       [95 % interval] before callers and callees: which % of the run these calls cost";

/// The largest number that a column of ports may have to show.
fn most_ports(profile: &Profile) -> u64 {
    let sum = profile.ports.filled().fold(treering_profile::Ports::default(), |mut sum, (_, ports)| {
        sum.add(ports);
        sum
    });
    sum.counts().into_iter().max().unwrap_or(0)
}

/// `6+3`: calls from others and recursive ones.
/// Wide enough for the calls of the subjects, and for those by their only callers.
fn called_width(graph: &CallGraph, subjects: &[Subject<'_>]) -> usize {
    if !graph.has_calls() {
        return 0;
    }
    let width = |subject: &Subject<'_>| match subject {
        Subject::Function(cost) => {
            let calls = cost.calls.unwrap_or_default();
            let others = grouped(calls.all - calls.recursive).len();
            own_calls(calls).len().max(2 * others + 1)
        }
        Subject::Cycle(_, cost) => {
            grouped(cost.calls_from_outside).len() + grouped(cost.calls_within).len() + 1
        }
    };
    subjects.iter().map(|subject| width(subject) + 2).fold(15, usize::max)
}

fn own_calls(calls: Calls) -> String {
    match calls.recursive {
        0 => grouped(calls.all),
        recursive => format!("{}+{}", grouped(calls.all - recursive), grouped(recursive)),
    }
}
