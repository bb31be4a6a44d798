//! Reads the output of gprof.

use std::collections::{HashMap, HashSet};

use treering_profile::{
    Arc, Function, FunctionId, Line, LineCost, LineId, Metric, MetricId, NodeId, Profile, RecursionRule, Unit,
};

use crate::budget::Budget;
use crate::gprof::line::{Entry, FlatRow, GraphRow};
use crate::import::Import;
use crate::label::text_of;
use crate::text_line::text_lines;
use crate::{Problem, ReadError, ReadReport};

const NO_FLAT_ROW: &str = "it is no row of gprof's flat profile";
const NO_GRAPH_ROW: &str = "it is no row of gprof's call graph";
const LARGE_TIME: Problem = Problem::Expected("a time below 32 years");

/// Reads the output of gprof.
///
/// The metric is `cpu-time`, with `samples` if times are whole samples. Arcs have calls and no times, which
/// gprof divides by calls as well. Without a call graph, the profile is flat and has the calls of functions. Where
/// lines are profiled (`gprof -l`), costs go to the lines of functions, and calls have their sites. Both of gprof's
/// styles are read.
///
/// # Errors
/// When there is neither of the tables, or a row is none.
pub fn read(bytes: &[u8]) -> Result<(Profile, ReadReport), ReadError> {
    read_within(bytes, Budget::new(bytes.len()))
}

/// The same with a limit to the memory that the profile may take.
pub(crate) fn read_within(bytes: &[u8], budget: Budget) -> Result<(Profile, ReadReport), ReadError> {
    let lines: Vec<_> = text_lines(bytes.strip_suffix(b"\n").unwrap_or(bytes)).collect();
    let text: Vec<_> = lines.iter().map(|line| text_of(line.bytes)).collect();
    let mut tables = Tables::default();
    for (line, text) in lines.iter().zip(&text) {
        tables.line(text.trim_end()).map_err(|problem| line.error(problem))?;
    }
    let mut builder = tables.profile(budget)?;
    // A table ends with an empty line, the call graph with one of dashes. Nothing follows `gprof -b -p`.
    let is_whole = tables.part == Part::Flat && tables.graph.is_empty() && tables.has_all_time();
    builder.import.report.unfinished = (tables.part != Part::Other && !is_whole)
        || tables.announced
        || !tables.open_arcs.is_empty()
        || !bytes.ends_with(b"\n");
    builder.import.text(bytes);
    builder.import.finish("gprof")
}

/// The part of the file that lines belong to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Part {
    #[default]
    Other,
    Flat,
    Graph,
    /// The call graph in the style of BSD (`gprof -T`), with empty lines in it.
    BsdGraph,
}

/// The rows of the tables.
#[derive(Default)]
struct Tables<'a> {
    part: Part,
    /// The time of a sample, in seconds.
    period: Option<f64>,
    flat: Vec<FlatRow<'a>>,
    /// Functions of the call graph and their self seconds.
    graph: Vec<(Entry<'a>, f64)>,
    arcs: Vec<(Entry<'a>, Entry<'a>, u64)>,
    /// The same from the entries of callees: callers whose lines alone are profiled, or that were cut off, have none.
    arcs_above: Vec<(Entry<'a>, Entry<'a>, u64)>,
    /// Whether a call graph was announced and has not begun.
    announced: bool,
    /// The function of the entry that is being read, once its row came.
    primary: Option<Entry<'a>>,
    /// Rows of the entry.
    open_arcs: Vec<GraphRow<'a>>,
}

impl<'a> Tables<'a> {
    fn line(&mut self, line: &'a str) -> Result<(), Problem> {
        let text = line.trim_start();
        if let Some(rest) = text.strip_prefix("Each sample counts as ") {
            self.period = rest.split(' ').next().and_then(|period| period.parse().ok());
            return Ok(());
        }
        match self.part {
            Part::Other if text.starts_with("time ") && text.ends_with("name") => self.part = Part::Flat,
            Part::Other if text.starts_with("index ") && text.contains("called+self") => {
                self.begin_graph(Part::BsdGraph)
            }
            Part::Other if text.starts_with("index ") && text.ends_with("name") => {
                self.begin_graph(Part::Graph)
            }
            Part::Other => self.announced |= text == "Call graph",
            Part::BsdGraph if text.is_empty() || text.starts_with("called/total") => {}
            Part::BsdGraph if text.starts_with("granularity:") || text == "Index by function name" => {
                self.part = Part::Other;
            }
            // The table is over; what may follow explains it.
            _ if text.is_empty() || text.starts_with('\u{c}') => self.part = Part::Other,
            Part::Flat => self.flat.push(FlatRow::parse(line).ok_or(NO_FLAT_ROW)?),
            Part::Graph | Part::BsdGraph => self.graph_line(line, text)?,
        }
        Ok(())
    }

    fn begin_graph(&mut self, part: Part) {
        self.part = part;
        self.announced = false;
    }

    fn graph_line(&mut self, line: &'a str, text: &str) -> Result<(), Problem> {
        if text.starts_with("-----") {
            self.end_entry();
            return Ok(());
        }
        if text == "<spontaneous>" {
            return Ok(());
        }
        let row = GraphRow::parse(line).ok_or(NO_GRAPH_ROW)?;
        if row.is_primary {
            // Callers stand above; most have an entry with the same arc.
            let above = std::mem::take(&mut self.open_arcs).into_iter();
            let above = above.filter_map(|above| Some((above.entry, row.entry, above.calls?)));
            self.arcs_above.extend(above.filter(|_| !row.entry.is_cycle()));
            self.primary = Some(row.entry);
            if !row.entry.is_cycle() {
                self.graph.push((row.entry, row.seconds.ok_or(NO_GRAPH_ROW)?));
            }
            return Ok(());
        }
        self.open_arcs.push(row);
        Ok(())
    }

    /// The rows below the function of an entry are its callees, or, of a cycle, its functions.
    fn end_entry(&mut self) {
        let rows = std::mem::take(&mut self.open_arcs);
        let Some(caller) = self.primary.take().filter(|entry| !entry.is_cycle()) else { return };
        let arcs = rows.into_iter().filter_map(|row| Some((caller, row.entry, row.calls?)));
        self.arcs.extend(arcs);
    }

    /// Whether the shares of the flat profile, of which each is rounded, add up to the whole: no row with time is missing.
    fn has_all_time(&self) -> bool {
        let timed = || self.flat.iter().filter(|row| row.share > 0.0);
        // The style of BSD prints one decimal, and numbers of functions.
        let rounding: f64 = timed().map(|row| if row.entry.index.is_some() { 0.05 } else { 0.005 }).sum();
        let sum: f64 = timed().map(|row| row.share).sum();
        sum == 0.0 || sum + rounding >= 100.0
    }

    fn profile(&self, budget: Budget) -> Result<Builder<'a>, Problem> {
        if self.graph.is_empty() && self.flat.is_empty() {
            return Err(Problem::Empty("rows of a flat profile or of a call graph"));
        }
        let is_flat = self.graph.is_empty();
        let mut builder = Builder::new(is_flat, self.period, budget);
        let mut known = HashSet::new();
        let names = self.graph.iter().filter(|(entry, _)| entry.place.is_none()).map(|(entry, _)| entry.name);
        builder.shared = names.filter(|name| !known.insert(*name)).collect();
        for (entry, seconds) in &self.graph {
            builder.add_time(*entry, *seconds)?;
        }
        let in_graph: HashSet<_> = self.graph.iter().map(|(entry, _)| entry.without_index()).collect();
        for row in self.flat.iter().filter(|row| !in_graph.contains(&row.entry.without_index())) {
            let node = builder.add_time(row.entry.without_index(), row.seconds)?;
            if is_flat {
                builder.import.profile.tree.add_calls(node, row.calls.unwrap_or(0), 0);
            }
        }
        let with_entry: HashSet<_> = self.graph.iter().map(|(entry, _)| *entry).collect();
        let above = self.arcs_above.iter().filter(|(caller, _, _)| !with_entry.contains(caller));
        for (caller, callee, calls) in self.arcs.iter().chain(above) {
            builder.add_arc(*caller, *callee, *calls)?;
        }
        self.compare(&mut builder);
        builder.import.note(match is_flat {
            true => "it is a flat profile: callers and total times are unknown",
            false => "times of callees are estimated from calls, as gprof does",
        });
        builder.import.note("times are as printed, in hundredths of a second");
        Ok(builder)
    }

    /// Says so when the costs are not those of the flat profile: each row is rounded by itself.
    fn compare(&self, builder: &mut Builder<'_>) {
        let seconds: f64 = self.flat.iter().map(|row| row.seconds).sum();
        let read = builder.sum as f64 / 1e9;
        let rounding = 0.005 * (self.flat.len() + self.graph.len()) as f64;
        if !self.flat.is_empty() && (seconds - read).abs() > rounding + 0.001 {
            builder.import.note(format!(
                "the flat profile adds up to {seconds:.2} s, and the functions of the call graph to {read:.2} s"
            ));
        }
    }
}

struct Builder<'a> {
    import: Import,
    root: NodeId,
    /// The number of samples and what each stands for, where times are whole ones.
    samples: Option<(MetricId, u64)>,
    time: MetricId,
    functions: HashMap<Entry<'a>, FunctionId>,
    arcs: HashMap<(FunctionId, FunctionId, Option<LineId>), usize>,
    /// The names that several functions have.
    shared: HashSet<&'a str>,
    sum: u64,
}

/// The unit of printed times.
const HUNDREDTH_NS: u64 = 10_000_000;

impl<'a> Builder<'a> {
    fn new(is_flat: bool, period: Option<f64>, budget: Budget) -> Self {
        let rule = if is_flat { RecursionRule::Flat } else { RecursionRule::Full };
        let mut import = Import::with_rule(rule, budget);
        let period_ns = period.map_or(0.0, |seconds| (seconds * 1e9).round());
        let period_ns = if (0.0..1e15).contains(&period_ns) { period_ns as u64 } else { 0 };
        // Other periods do not show in hundredths.
        let is_whole = period_ns == HUNDREDTH_NS;
        let samples =
            is_whole.then(|| (import.profile.add_metric(Metric::exact("samples", Unit::Count)), period_ns));
        let time = match samples {
            Some((counted, period)) => Metric::sampled("cpu-time", Unit::Nanoseconds, counted, Some(period)),
            None => Metric::exact("cpu-time", Unit::Nanoseconds),
        };
        let time = import.profile.add_metric(time);
        let root = import.single_root();
        let (functions, arcs) = (HashMap::new(), HashMap::new());
        Self { import, root, samples, time, functions, arcs, shared: HashSet::new(), sum: 0 }
    }

    /// The function of an entry. Those of one name are told by the number that the call graph gives them.
    fn function(&mut self, entry: Entry<'a>) -> FunctionId {
        if let Some(&known) = self.functions.get(&entry) {
            return known;
        }
        let name = match entry.index.filter(|_| self.shared.contains(entry.name)) {
            Some(index) => format!("{} [{index}]", entry.name),
            None => entry.name.to_owned(),
        };
        let name = self.import.profile.strings.intern(&name);
        let file = self.import.string(entry.place.map_or("", |(file, _)| file));
        let id = self.import.profile.functions.intern(Function { file, ..Function::named(name) });
        self.functions.insert(entry, id);
        id
    }

    fn add_time(&mut self, entry: Entry<'a>, seconds: f64) -> Result<NodeId, Problem> {
        let hundredths = (seconds * 100.0).round();
        let ns = (0.0..1e11).contains(&hundredths).then(|| hundredths as u64 * HUNDREDTH_NS);
        let ns = ns.ok_or(LARGE_TIME)?;
        self.sum = self.sum.checked_add(ns).ok_or(LARGE_TIME)?;
        let function = self.function(entry);
        let node = self.import.child(self.root, function)?;
        let line = self.line(entry);
        self.charge(self.time, node, line, ns);
        if let Some((samples, period)) = self.samples {
            self.charge(samples, node, line, ns / period);
        }
        Ok(node)
    }

    /// The line of an entry, where lines are profiled.
    fn line(&mut self, entry: Entry<'a>) -> Option<LineId> {
        let (file, line) = entry.place.filter(|(_, line)| *line > 0)?;
        let file = self.import.profile.strings.intern(file);
        Some(self.import.profile.lines.intern(Line { file, line }))
    }

    fn charge(&mut self, metric: MetricId, node: NodeId, line: Option<LineId>, cost: u64) {
        self.import.profile.tree.add_self_cost(metric, node, cost);
        if let Some(line) = line.filter(|_| cost > 0) {
            self.import.profile.line_costs.push(LineCost { node, line, metric, cost });
        }
    }

    fn add_arc(&mut self, caller: Entry<'a>, callee: Entry<'a>, calls: u64) -> Result<(), Problem> {
        let call_site = self.line(caller);
        let (caller, callee) = (self.function(caller), self.function(callee));
        // So that every function has a node, also one that is known as a caller only.
        for function in [caller, callee] {
            self.import.child(self.root, function)?;
        }
        let arcs = &mut self.import.profile.arcs;
        let at = *self.arcs.entry((caller, callee, call_site)).or_insert_with(|| {
            arcs.push(Arc { caller, callee, call_site, calls: 0, total_costs: Vec::new() });
            arcs.len() - 1
        });
        arcs[at].calls = arcs[at].calls.saturating_add(calls);
        Ok(())
    }
}
