//! The flat profile as text.

use std::collections::HashMap;

use treering_analysis::{
    CallGraph, Details, ExactCost, FlatRow, FunctionSpread, Interval, Measure, Presentation, RunSpread,
    SortKey, TotalSource, flat,
};
use treering_profile::{FunctionId, Ports, Profile, Unit};

use crate::function::Labels;
use crate::header::header_lines;
use crate::number::{cost, grouped, percent, plural};
use crate::options::{Amount, Options};
use crate::printable::printable_profile;
use crate::scale::Scale;
use crate::style::Style;
use crate::table::Table;

/// The flat profile: gprof's columns in gprof's order, and how sure they are.
///
/// `profile` is the one that `graph` was made of.
pub fn flat_text(profile: &Profile, graph: &CallGraph, style: &Style, options: &Options) -> String {
    let profile = &*printable_profile(profile);
    let mut text = header_lines(profile, &graph.basis, style);
    if graph.basis.run.cost == 0 {
        return text;
    }
    let listing = Listing::of(profile, graph, options);
    text.push('\n');
    let table = listing.table();
    text += &table.render(style);
    text += &listing.left_out();
    text += &listing.legend(style, &table.left_out(style));
    text
}

/// The numbers that the columns of the table need.
struct Listing<'a> {
    graph: &'a CallGraph,
    labels: Labels<'a>,
    unit: Unit,
    scale: Scale,
    amount: Amount,
    /// Whether a reader chose the unit, who then wants to see the costs in it.
    chosen_unit: bool,
    spread: Option<RunSpread>,
    /// Where the spread has each function.
    spread_of: HashMap<FunctionId, usize>,
    details: Details,
    /// The exact counts beside the samples.
    exact: Vec<ExactCost>,
    shown: Vec<FlatRow<'a>>,
    hidden: Vec<FlatRow<'a>>,
}

impl<'a> Listing<'a> {
    fn of(profile: &'a Profile, graph: &'a CallGraph, options: &Options) -> Self {
        let unit = profile.metrics[graph.basis.metric.index()].unit;
        let amount = options.amount.unwrap_or(Amount::Natural);
        let rows = flat(profile, graph, options.sort.unwrap_or(SortKey::SelfCost));
        let (shown, hidden) = divide(rows, graph, options);
        let spread = RunSpread::of(graph);
        let scale = Scale::of(&graph.basis, unit, amount);
        let details = Details::of(profile, graph.basis.metric);
        let exact = ExactCost::beside(profile, graph);
        Self {
            exact,
            graph,
            labels: Labels::of(profile),
            unit,
            scale,
            amount,
            chosen_unit: options.amount.is_some(),
            spread_of: spread_of(spread.as_ref()),
            spread,
            details,
            shown,
            hidden,
        }
    }

    fn sampled(&self) -> bool {
        self.graph.basis.samples.is_some()
    }

    fn table(&self) -> Table {
        let (headings, ways) = self.columns().into_iter().unzip();
        let mut table = Table::new(headings, "function").giving_way(ways);
        for row in &self.shown {
            let share = self.graph.basis.share(row.cost.self_cost.cost);
            table.row(self.cells(row), self.name(row), share);
        }
        table
    }

    /// The columns, and in which order they give way to names; see [`Table::giving_way`]. First goes what follows from
    /// the others, then what says how sure they are.
    fn columns(&self) -> Vec<(String, u8)> {
        let own = |name: &str| (name.to_owned(), 0);
        let way = |name: &str, way: u8| (name.to_owned(), way);
        let cost = |name: &str, way: u8| (self.scale.heading(name), if self.chosen_unit { 0 } else { way });
        let mut columns = vec![own("% self")];
        if self.sampled() {
            columns.push(way("[95 % interval]", 11));
        }
        if self.spread.is_some() {
            columns.extend([way("SD", 10), way("x chance", 9)]);
        }
        columns.push((self.scale.heading("running sum"), 1));
        if self.amount != Amount::Percent {
            columns.push(cost("self", 3));
            columns.extend(self.corrected().then(|| (self.scale.heading("±"), 8)));
        }
        if self.graph.has_calls() {
            columns.push(own("calls"));
        }
        if self.graph.has_averages() {
            columns.push(way("self/call", 5));
            columns.extend(self.has_totals().then(|| way("total/call", 4)));
        }
        columns.extend(self.exact.iter().map(|exact| own(&exact.name)));
        if self.has_totals() {
            columns.extend((self.amount != Amount::Percent).then(|| cost("total", 2)));
            columns.push(own("% total"));
        } else if self.graph.totals == TotalSource::Bounded {
            columns.push(own("% total"));
        }
        if self.details.has_ports {
            columns.extend(Ports::NAMES.map(own));
        }
        if self.details.has_memory {
            columns.extend([way("live B", 7), way("peak B", 6)]);
        }
        columns
    }

    fn cells(&self, row: &FlatRow) -> Vec<String> {
        let (basis, function) = (&self.graph.basis, row.cost);
        let mut cells = vec![percent(basis.share(function.self_cost.cost))];
        if self.sampled() {
            cells.push(function.self_interval.map_or(String::new(), bounds));
        }
        if let Some(spread) = &self.spread {
            cells.extend(spread_cells(
                self.spread_of.get(&function.function).map(|&at| &spread.functions[at]),
            ));
        }
        cells.push(self.running_sum(row));
        if self.amount != Amount::Percent {
            cells.push(self.scale.text(function.self_cost));
            cells.extend(self.corrected().then(|| self.uncertainty(row)));
        }
        if self.graph.has_calls() {
            let shown = match (self.graph.has_averages(), self.has_totals()) {
                (false, _) => 1,
                (true, false) => 2,
                (true, true) => 3,
            };
            cells.extend(self.call_cells(row).into_iter().take(shown));
        }
        let exact = self.exact.iter().map(|exact| exact.self_cost(function.function));
        cells.extend(exact.map(|cost| cost.map_or(String::new(), grouped)));
        if self.has_totals() {
            cells.extend((self.amount != Amount::Percent).then(|| self.scale.text(function.total_cost)));
            cells.push(percent(basis.share(function.total_cost.cost)));
        } else if self.graph.totals == TotalSource::Bounded {
            cells.push(function.total_interval.map_or(String::new(), range));
        }
        if self.details.has_ports {
            let ports = self.details.function(function.function).map(|detail| detail.ports);
            cells.extend(ports.unwrap_or_default().counts().map(grouped));
        }
        if self.details.has_memory {
            cells.extend(self.memory_cells(row));
        }
        cells
    }

    /// Whether the call bias was taken away.
    fn corrected(&self) -> bool {
        self.graph.basis.correction.is_some()
    }

    fn has_totals(&self) -> bool {
        self.graph.totals.is_known()
    }

    /// In samples, of which there are none, this is blank.
    fn uncertainty(&self, row: &FlatRow) -> String {
        let uncertainty = row.cost.reliability.uncertainty.filter(|_| self.amount == Amount::Natural);
        uncertainty.map_or(String::new(), |cost| self.scale.text(Measure::new(cost, 0)))
    }

    fn memory_cells(&self, row: &FlatRow) -> [String; 2] {
        let memory = self.details.function(row.cost.function).map(|detail| detail.memory).unwrap_or_default();
        [memory.live_bytes, memory.peak_bytes].map(grouped)
    }

    fn running_sum(&self, row: &FlatRow) -> String {
        match self.amount {
            // Samples are not summed up by the analysis; they are in proportion to the cost.
            Amount::Samples => {
                let share = self.graph.basis.share(row.running_sum);
                grouped((share * self.graph.basis.run.samples as f64).round() as u64)
            }
            _ => self.scale.text(Measure::new(row.running_sum, 0)),
        }
    }

    fn call_cells(&self, row: &FlatRow) -> [String; 3] {
        let calls = row.cost.calls.map_or(0, |calls| calls.all);
        if calls == 0 {
            return [String::new(), String::new(), String::new()];
        }
        let each = |whole: u64, calls: u64| cost(self.unit, whole as f64 / calls as f64);
        let own = match row.cost.calls_of_self_cost() {
            0 => String::new(),
            timed => each(row.cost.self_cost.cost, timed),
        };
        [grouped(calls), own, each(row.cost.total_cost.cost, calls)]
    }

    fn name(&self, row: &FlatRow) -> String {
        let mut name = self.labels.with_module(row.cost.function);
        if let Some(cycle) = row.cost.cycle {
            name += &format!(" <cycle {}>", cycle + 1);
        }
        if row.cost.reliability.unresolved {
            name += " (time unresolved)";
        } else if row.cost.reliability.estimated {
            name += " (estimated)";
        }
        name
    }

    fn left_out(&self) -> String {
        let count = self.hidden.len() as u64;
        if count == 0 {
            return String::new();
        }
        let cost: u64 = self.hidden.iter().map(|row| row.cost.self_cost.cost).sum();
        let share = percent(self.graph.basis.share(cost));
        format!("… {} more, together {share} % self\n", plural(count, "function"))
    }

    fn legend(&self, style: &Style, no_room_for: &[&str]) -> String {
        let is_shown = |column: &str| !no_room_for.iter().any(|heading| heading.starts_with(column));
        let no_room = format!("no room for: {}; in a pipe they are shown", no_room_for.join(", "));
        let mut lines = vec![match is_shown("running sum") {
            true => "% self, self: spent in the function itself; running sum adds it up down the list",
            false => "% self, self: spent in the function itself",
        }];
        lines.push(match self.graph.totals {
            TotalSource::Missing if self.graph.counts_apart() => TOTALS_NOT_COUNTED,
            TotalSource::Missing => "total costs are not known: the profile is flat; % is of the whole run",
            TotalSource::Apportioned => TOTALS_UNKNOWN,
            TotalSource::Bounded => TOTALS_BOUNDED,
            _ => "% total, total: with everything it called, recursion counted once; % is of the whole run",
        });
        if self.sampled() && is_shown("[95 %") {
            lines.push("[95 % interval]: where % self lies, as far as the samples can tell");
        }
        if self.graph.has_calls() && !self.graph.has_averages() {
            lines.push(
                "calls: not of all that is merged here, or of costs that are not; so averages are left out",
            );
        }
        if self.graph.has_averages() && is_shown("self/call") {
            lines.push(match self.has_totals() && is_shown("total/call") {
                true => "self/call, total/call: averages over the calls",
                false => "self/call: average over the calls",
            });
        }
        let names: Vec<_> = self.exact.iter().map(|exact| exact.name.as_str()).chain(["calls"]).collect();
        let counted = format!(
            "{}: counted exactly, in the function itself; blank where it was not counted",
            names.join(", ")
        );
        if self.graph.counts_apart() {
            lines.push(&counted);
        }
        lines.extend(self.doubts());
        if self.details.has_ports {
            lines.push(PORTS);
        }
        if self.details.has_memory {
            lines.push(
                "live: what the function itself allocated and did not free; peak: the most of it at once, at least",
            );
        }
        if self.graph.functions.iter().any(|cost| cost.cycle.is_some()) {
            let collapsed = self.graph.presentation == Presentation::CollapsedCycles && self.has_totals();
            lines.push(match collapsed {
                true => "<cycle>: functions that reach each other; the total of each leaves out the others",
                false => "<cycle>: functions that reach each other",
            });
        }
        lines.extend((!no_room_for.is_empty()).then_some(no_room.as_str()));
        let mut text = style.dim(&format!("\n{}", style.wrap_lines(&lines.join("\n"))));
        text.push('\n');
        text + &self.spread.as_ref().map_or(String::new(), |spread| spread_text(spread, style))
    }
}

impl Listing<'_> {
    /// The notes on marks and on the correction.
    fn doubts(&self) -> Vec<&'static str> {
        let any = |holds: fn(&treering_analysis::Reliability) -> bool| {
            self.graph.functions.iter().any(|cost| holds(&cost.reliability))
        };
        let mut lines = Vec::new();
        if self.corrected() {
            lines.push("the cost of measuring is subtracted; ±: how far the true self cost may be from it");
        }
        if any(|known| known.unresolved) {
            lines.push(
                "(time unresolved): calls are exact, but a call is too short to be told from measuring it",
            );
        }
        if any(|known| known.estimated && !known.unresolved) {
            lines.push("(estimated): calls are exact, but only one of several was timed");
        }
        lines
    }
}

/// The note on the columns of ports.
pub(crate) const PORTS: &str =
    "exits: successes; redos: further solutions asked for; fails: no further one; cuts: choices given up";

/// The note in place of total costs if a profile has arcs without measured costs.
const TOTALS_UNKNOWN: &str =
    "total costs were not measured, only calls: treering count --tree measures them\n% is of the whole run";

/// Said in place of total costs where a metric was counted by function, and another one was sampled along stacks.
const TOTALS_NOT_COUNTED: &str =
    "total costs are not known: this was counted by function; % is of the whole run";

/// The note on bounds.
const TOTALS_BOUNDED: &str = "% total: with everything it called, recursion counted once; from … to …, as contexts were folded\n\
                              % is of the whole run";

/// The certain range between two shares, `12.0` if they look the same, or `12.0–34.5`.
fn range(interval: Interval) -> String {
    let (low, high) = (percent(interval.low), percent(interval.high));
    if low == high { low } else { format!("{low}–{high}") }
}

/// Rows to show and rows to leave out.
fn divide<'a>(
    rows: Vec<FlatRow<'a>>,
    graph: &CallGraph,
    options: &Options,
) -> (Vec<FlatRow<'a>>, Vec<FlatRow<'a>>) {
    let large = |row: &FlatRow| {
        let total = Some(row.cost.total_cost.cost).filter(|_| graph.totals.is_known());
        let cost = row.cost.self_cost.cost.max(total.unwrap_or(0));
        graph.basis.share(cost) >= options.min_share
    };
    let (mut shown, mut hidden): (Vec<_>, Vec<_>) = rows.into_iter().partition(large);
    if let Some(limit) = options.limit.filter(|&limit| limit < shown.len()) {
        hidden.extend(shown.split_off(limit));
    }
    (shown, hidden)
}

fn spread_of(spread: Option<&RunSpread>) -> HashMap<FunctionId, usize> {
    let functions = spread.map_or(&[][..], |spread| &spread.functions);
    functions.iter().enumerate().map(|(at, found)| (found.function, at)).collect()
}

/// An interval as `[23.6, 26.2]`, in percent.
pub(crate) fn bounds(interval: Interval) -> String {
    format!("[{}, {}]", percent(interval.low), percent(interval.high))
}

fn spread_cells(found: Option<&FunctionSpread>) -> [String; 2] {
    let ratio = found.and_then(|found| found.ratio());
    let sd = found.map_or(String::new(), |found| percent(found.sd));
    [sd, ratio.map_or(String::new(), |ratio| format!("{ratio:.1}"))]
}

/// The spread between runs of the profile as a whole.
pub(crate) fn spread_text(spread: &RunSpread, style: &Style) -> String {
    let Some(ratio) = spread.ratio else { return String::new() };
    let runs = plural(spread.runs as u64, "run");
    let mut text = format!(
        "between {runs} the important functions vary {ratio:.1} times as much as chance alone would make them\n"
    );
    if spread.is_suspicious() {
        text += &style.bold(
            "warning: that is more than chance: the program may be in step with the sampling timer, or does \
             not do the same in every run; the shares cannot be trusted",
        );
        text.push('\n');
    }
    text
}
