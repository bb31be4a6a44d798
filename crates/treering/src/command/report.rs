//! `treering report`.

mod code;
mod histogram;
mod ignored_options;
mod part;
mod time_part;
mod timeline;
mod wakers;

use std::path::PathBuf;
use std::process::ExitCode;

use regex::Regex;
use treering_analysis::{
    Basis, CallGraph, CallTree, Corrected, Direction, FindError, LineTable, PointSeries, Presentation,
    Pruning, TotalSource, add_calls_metric, correct, default_metric, find_function,
};
use treering_profile::{CallBias, FunctionId, Interner, MetricId, Profile, StringId};
use treering_report::{Amount, Options, SortKey, Style};
use treering_symbols::demangle_fully;

use crate::failure::{Context as _, Failure, Outcome};
use crate::interpreted;
use crate::metric;
use crate::open::{Opened, open_profile_of};
use crate::working::Working;
use crate::{pager, terminal};

pub use part::Part;
use time_part::subtract_bias;
pub use time_part::{Moment, TimePart};

/// Show where the cost went: flat profile, call graph, tree, callers or lines
#[derive(Debug, clap::Args)]
pub struct Report {
    /// The profile, of any format that Treering reads
    #[arg(default_value = "treering.trg")]
    file: PathBuf,
    /// For a gmon.out: the program that wrote it [default: a.out, or the one beside it that fits]
    #[arg(long, value_name = "PROGRAM")]
    program: Option<PathBuf>,
    #[command(flatten)]
    view: View,
    /// Show names of C++ with return types and all arguments of templates, and all suffixes of clones
    #[arg(long)]
    full_names: bool,
    /// Print JSON; every key is described in docs/json.md
    #[arg(long)]
    json: bool,
    /// The metric to show [default: the first one]; `latency` is the wall time that costs are responsible for, where it is
    /// known when they arose
    #[arg(long, value_name = "NAME")]
    metric: Option<String>,
    /// How to sort functions [default: self in the flat profile, total in the call graph]
    #[arg(long, value_name = "KEY")]
    sort: Option<Sort>,
    /// The unit of costs [default: percent in trees and lines, the metric's unit in tables]
    #[arg(long)]
    unit: Option<Unit>,
    /// Leave out what is below this share of the run [default: 0 in the flat profile, else 0.5]
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    min: Option<f64>,
    /// Show at most N functions [default: 20 for the flat profile on a terminal, else all]
    #[arg(long, value_name = "N")]
    top: Option<usize>,
    /// Show trees down to this depth [default: 64]
    #[arg(long, value_name = "N")]
    depth: Option<usize>,
    /// In the call graph, count each cycle as one function, as gprof does
    #[arg(long)]
    collapse_cycles: bool,
    /// In the call graph, show mean, least, greatest and deviation of single calls, where timed
    #[arg(long)]
    statistics: bool,
    /// In the histogram, how many bytes a bin has [default: 4, or those of the gmon.out]
    #[arg(long, value_name = "BYTES", requires = "histogram", value_parser = clap::value_parser!(u32).range(1..))]
    granularity: Option<u32>,
    /// Show costs as they were measured, without subtracting the cost of measuring
    #[arg(long)]
    raw: bool,
    /// The cost of measuring one call, in nanoseconds, in its own time and in its caller's; instead of the calibrated
    /// values
    #[arg(
        long,
        value_name = "INSIDE,OUTSIDE",
        value_parser = bias,
        allow_hyphen_values = true,
        conflicts_with = "raw"
    )]
    bias: Option<CallBias>,
    #[command(flatten)]
    part: Part,
    #[command(flatten)]
    time: TimePart,
}

// The views, of which one is shown.
#[derive(Debug, clap::Args)]
#[group(multiple = false)]
struct View {
    /// List functions by self cost (this is the default)
    #[arg(long)]
    flat: bool,
    /// For each function, its callers above it and its callees below
    #[arg(long)]
    callgraph: bool,
    /// List functions as the Unix tool prof did: %Time Seconds Cumsecs #Calls msec/call Name
    #[arg(long)]
    prof: bool,
    /// The tree of calls, indented
    #[arg(long)]
    tree: bool,
    /// For each function, the tree of what called it
    #[arg(long)]
    callers: bool,
    /// The source lines of a function, with what each cost and called
    #[arg(long, value_name = "FUNCTION")]
    lines: Option<String>,
    /// The basic blocks of a function, disassembled, with how often each was executed; without FUNCTION, those of the
    /// whole program that cost most, of which --top shows N
    #[arg(long, value_name = "FUNCTION", num_args = 0..=1)]
    blocks: Option<Option<String>>,
    /// The costs of a function by address, as profil() gave them: of counted and sampled programs, and of gmon.out files
    #[arg(long, value_name = "FUNCTION")]
    histogram: Option<String>,
    /// The points of the profile, such as memory over time
    #[arg(long)]
    points: bool,
    /// The course of the run: the cost of each thread over time, and the hottest function of each part
    #[arg(long)]
    timeline: bool,
    /// Where threads waited, and who ended that: other threads of the program, interrupts, the kernel, other programs; of
    /// recordings with --off-cpu
    #[arg(long)]
    wakers: bool,
    /// List threads by what each cost
    #[arg(long)]
    threads: bool,
    /// List processes by what each cost with all its threads
    #[arg(long)]
    processes: bool,
    /// List the metrics that --metric can choose
    #[arg(long)]
    metrics: bool,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Sort {
    #[value(name = "self")]
    SelfCost,
    Total,
    Calls,
    Name,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Unit {
    /// Of the whole run
    Percent,
    /// Numbers of samples, where the metric was sampled
    Samples,
    /// The metric's own unit: time, bytes, counts
    Time,
}

/// Parses a share in percent.
pub(super) fn percent(text: &str) -> Result<f64, String> {
    let value: f64 = text.trim_end_matches('%').trim().parse().map_err(|_| "not a number".to_owned())?;
    if (0.0..=100.0).contains(&value) { Ok(value) } else { Err("not between 0 and 100".to_owned()) }
}

/// Parses a call bias.
fn bias(text: &str) -> Result<CallBias, String> {
    let parts = text.split_once(',').ok_or("not two numbers with a comma between them")?;
    let number = |text: &str| text.trim().parse::<f64>().map_err(|_| format!("{text:?} is not a number"));
    let (inside_ns, outside_ns) = (number(parts.0)?, number(parts.1)?);
    let [empty_inside_ns, empty_outside_ns] = [inside_ns.max(0.0), outside_ns];
    let bias = CallBias { inside_ns, outside_ns, empty_inside_ns, empty_outside_ns, spread_ns: 0.0 };
    let wrong = "the second number and the sum of both must not be negative";
    if bias.is_sound() { Ok(bias) } else { Err(wrong.to_owned()) }
}

impl Report {
    /// Does it.
    pub fn run(self) -> Outcome {
        self.check_options()?;
        let opened = open_profile_of(&self.file, self.program.as_deref())?;
        opened.print_warnings();
        let style = Style { colour: terminal::colour(), width: terminal::width() };
        let working = Working::on("adding up costs");
        let listing = self.listing(opened, &style)?;
        drop(working);
        pager::print(&listing)?;
        Ok(ExitCode::SUCCESS)
    }

    /// The view that was asked for.
    pub(super) fn listing(&self, opened: Opened, style: &Style) -> Result<String, Failure> {
        let mut profile = opened.profile;
        if self.full_names {
            spell_out(&mut profile);
        }
        if let Some(function) = &self.view.blocks {
            return self.blocks(profile, function.as_deref(), style);
        }
        if let Some(function) = &self.view.histogram {
            return self.histogram(profile, opened.format, function, style);
        }
        if self.view.metrics {
            return Ok(self.metrics(&profile, style));
        }
        self.set_bias(&mut profile)?;
        let cut = self.time.cut(&mut profile, self.raw);
        let checked = cut.and_then(|()| self.time.check_metric(&profile, self.metric.as_deref()));
        checked.map_err(|failure| failure.of(self.file.display()))?;
        let selection = self.part.selection(&mut profile)?;
        let metric = self.metric(&mut profile)?;
        let metric = self.part.measured(&mut profile, metric, self.metric.is_some(), &selection);
        self.part.note_shared_costs(&mut profile, metric, &selection);
        let whole = if self.raw { Corrected::raw(&profile) } else { correct(&profile) };
        self.warn_of_no_effect(&profile);
        let basis = whole.basis(metric).of_part(&profile, &selection);
        if matches!(self.unit, Some(Unit::Samples)) && basis.samples.is_none() {
            let name = &profile.metrics[metric.index()].name;
            return Err(Failure::new(format_args!(
                "{name} was not sampled, so it cannot be shown in samples"
            )));
        }
        let part = whole.part(&selection).context(self.file.display())?;
        self.text(&part, &basis, style)
    }

    /// Says so where the profile has nothing that an option is for.
    fn warn_of_no_effect(&self, profile: &Profile) {
        let file = self.file.display();
        if self.raw && self.time.is_everything() && correct(profile).metric.is_none() {
            warn(&format!(
                "{file}: --raw has no effect: no cost of measuring is known that could be subtracted"
            ));
        }
        if self.statistics && profile.activations.is_none() {
            warn(&format!("{file}: --statistics has no effect: single calls were not timed"));
        }
        if self.collapse_cycles && profile.is_arcs_only() {
            warn(&format!(
                "{file}: --collapse-cycles has no effect: the profile has no stacks, so cycles are always collapsed"
            ));
        }
    }

    /// Takes the call bias that was given for that of the profile.
    fn set_bias(&self, profile: &mut Profile) -> Result<(), Failure> {
        let Some(bias) = self.bias else { return Ok(()) };
        profile.metadata.call_bias = Some(bias);
        if correct(profile).metric.is_none() {
            return Err(Failure::new(format_args!(
                "{}: --bias is for calls that were timed, and there are none",
                self.file.display()
            )));
        }
        Ok(())
    }

    /// The metric asked for, or the first one; the number of calls where nothing else was measured.
    fn metric(&self, profile: &mut Profile) -> Result<MetricId, Failure> {
        if self.view.wakers {
            return self.waits(profile);
        }
        let Some(name) = &self.metric else {
            let costs_something =
                |metric: &MetricId| profile.run_cost(*metric) > 0 || !profile.tree.has_calls();
            let chosen = default_metric(profile).filter(costs_something);
            let only_calls = profile.tree.has_calls() || self.view.points;
            let chosen = chosen.or_else(|| only_calls.then(|| add_calls_metric(profile)));
            return chosen
                .ok_or_else(|| Failure::new(format_args!("{}: nothing was measured", self.file.display())));
        };
        if let Some(metric) = metric::named(profile, name)? {
            return Ok(metric);
        }
        if name == "latency" {
            return self.latency(profile);
        }
        Err(Failure::new(format_args!("the profile has no metric {name:?}"))
            .hint(format_args!("it has: {}", metric::names(profile))))
    }

    /// The wall time that costs are responsible for, as a metric.
    fn latency(&self, profile: &mut Profile) -> Result<MetricId, Failure> {
        if !self.raw {
            subtract_bias(
                profile,
                "the cost of measuring is subtracted from each function in proportion to its time",
            );
        }
        let time = default_metric(profile).and_then(|metric| profile.add_latency(metric));
        time.ok_or_else(|| {
            let file = self.file.display();
            Failure::new(format_args!(
                "{file}: latency needs times of samples whose costs are processor time"
            ))
            .hint(match profile.runs.len() {
                0 | 1 => "treering record keeps them, unless --no-time is given",
                _ => "profiles of several runs have none: record one run, without --runs",
            })
        })
    }

    fn text(&self, part: &Corrected<'_>, basis: &Basis, style: &Style) -> Result<String, Failure> {
        let (view, profile) = (&self.view, &*part.profile);
        if view.points {
            return self.points(profile, basis, style);
        }
        if view.timeline {
            return self.timeline(profile, basis, style);
        }
        if view.wakers {
            return self.wakers(profile, basis, style);
        }
        if view.threads || view.processes {
            return Ok(self.owners(profile, basis, style));
        }
        if let Some(function) = &view.lines {
            return self.lines(profile, basis, style, function);
        }
        let totals = TotalSource::of(profile, basis.metric);
        if view.tree || view.callers {
            return match totals {
                TotalSource::Apportioned => Err(self.without_stacks(profile)),
                _ => Ok(self.tree(profile, basis, style)),
            };
        }
        if matches!(self.sort, Some(Sort::Total)) && !view.callgraph && !totals.is_known() {
            return Err(self.without_totals(profile));
        }
        Ok(self.functions(part, basis, style))
    }

    fn metrics(&self, profile: &Profile, style: &Style) -> String {
        match self.json {
            true => treering_report::metrics_json(profile),
            false => treering_report::metrics_text(profile, style),
        }
    }

    /// Threads or processes.
    fn owners(&self, profile: &Profile, basis: &Basis, style: &Style) -> String {
        let options = self.options(0.0, style);
        match (self.view.threads, self.json) {
            (true, false) => treering_report::threads_text(profile, basis, style, &options),
            (true, true) => treering_report::threads_json(profile, basis, &options),
            (false, false) => treering_report::processes_text(profile, basis, style, &options),
            (false, true) => treering_report::processes_json(profile, basis, &options),
        }
    }

    /// The refusal if stacks are requested of a profile that has none, and whose arcs have no measured costs.
    fn without_stacks(&self, profile: &Profile) -> Failure {
        let failure = Failure::new(format_args!(
            "{}: the profile has calls between functions but no stacks, so there is no tree",
            self.file.display()
        ));
        how_to_measure(failure, profile)
            .hint("treering report --callgraph shows the callers and callees of each function")
    }

    /// Functions are to be sorted by what is not known.
    fn without_totals(&self, profile: &Profile) -> Failure {
        let failure = Failure::new(format_args!("{}: total costs were not measured", self.file.display()));
        how_to_measure(failure, profile)
    }

    fn points(&self, profile: &Profile, basis: &Basis, style: &Style) -> Result<String, Failure> {
        let series = PointSeries::of(profile);
        if series.points.is_empty() {
            return Err(Failure::new(format_args!("{}: the profile has no points", self.file.display()))
                .hint("a program takes points itself, with treering_point or BENCH_MEMPLOT"));
        }
        Ok(match self.json {
            true => treering_report::points_json(profile, &series, basis),
            false => treering_report::points_text(profile, &series, basis, style),
        })
    }

    fn lines(
        &self,
        profile: &Profile,
        basis: &Basis,
        style: &Style,
        wanted: &str,
    ) -> Result<String, Failure> {
        let with_idle;
        let (profile, function) = match self.function(profile, basis, wanted) {
            Ok(function) => (profile, function),
            Err(failure) => {
                with_idle = self.with_idle_function(profile, wanted)?.ok_or(failure)?;
                (&with_idle.0, with_idle.1)
            }
        };
        let table = LineTable::of(profile, basis, function);
        let with_lines;
        let (profile, table) = match self.has_coverage(profile) {
            false => (profile, table),
            true => {
                with_lines = code::with_coverage(profile.clone(), table);
                (&with_lines.0, with_lines.1)
            }
        };
        let with_source;
        let profile = match self.json || interpreted::has_sources(profile, &table) {
            true => profile,
            false => {
                with_source = interpreted::with_sources(profile.clone(), &table);
                with_source.problems.iter().for_each(|problem| warn(problem));
                &with_source.profile
            }
        };
        Ok(match self.json {
            true => treering_report::lines_json(profile, &table),
            false => treering_report::lines_text(profile, &table, style, &self.options(0.0, style)),
        })
    }

    /// The one function that is meant.
    fn function(&self, profile: &Profile, basis: &Basis, wanted: &str) -> Result<FunctionId, Failure> {
        let regex = Regex::new(wanted);
        let matches = |name: &str| regex.as_ref().is_ok_and(|regex| regex.is_match(name));
        find_function(profile, basis, wanted, treering_report::labels(profile), matches).map_err(not_one)
    }

    fn tree(&self, profile: &Profile, basis: &Basis, style: &Style) -> String {
        let direction = if self.view.callers { Direction::Callers } else { Direction::Callees };
        let min_share = self.min.map_or(Pruning::default().min_share, |percent| percent / 100.0);
        let max_depth = self.depth.unwrap_or(Pruning::default().max_depth);
        let pruning = Pruning { min_share, max_depth };
        let tree = CallTree::of(profile, basis, direction, pruning);
        match self.json {
            true => treering_report::tree_json(profile, &tree),
            false => {
                treering_report::tree_text(profile, &tree, &pruning, style, &self.options(min_share, style))
            }
        }
    }

    fn functions(&self, part: &Corrected<'_>, basis: &Basis, style: &Style) -> String {
        let profile = &*part.profile;
        let presentation = match self.collapse_cycles {
            true => Presentation::CollapsedCycles,
            false => Presentation::Contexts,
        };
        let graph = CallGraph::of(profile, basis, presentation).with_reliability(part);
        if self.view.prof && self.json {
            return treering_report::prof_json(profile, &graph, &self.options(0.0, style));
        }
        if self.view.prof {
            return treering_report::prof_text(profile, &graph, style, &self.options(0.0, style));
        }
        match (self.view.callgraph, self.json) {
            (false, false) => treering_report::flat_text(profile, &graph, style, &self.options(0.0, style)),
            (false, true) => treering_report::flat_json(profile, &graph, &self.options(0.0, style)),
            (true, false) => {
                treering_report::call_graph_text(profile, &graph, style, &self.options(0.005, style))
            }
            (true, true) => treering_report::call_graph_json(profile, &graph, &self.options(0.0, style)),
        }
    }

    /// The options of a view that leaves out what is below `min_share` when nothing is asked.
    fn options(&self, min_share: f64, style: &Style) -> Options {
        let flat = !(self.view.callgraph || self.json) && style.width.is_some();
        Options {
            amount: self.unit.map(|unit| match unit {
                Unit::Percent => Amount::Percent,
                Unit::Samples => Amount::Samples,
                Unit::Time => Amount::Natural,
            }),
            sort: self.sort.map(|sort| match sort {
                Sort::SelfCost => SortKey::SelfCost,
                Sort::Total => SortKey::TotalCost,
                Sort::Calls => SortKey::Calls,
                Sort::Name => SortKey::Name,
            }),
            min_share: self.min.map_or(min_share, |percent| percent / 100.0),
            limit: self.top.or(flat.then_some(20)),
            statistics: self.statistics,
        }
    }
}

/// Adds what measures total costs, where that is known.
fn how_to_measure(failure: Failure, profile: &Profile) -> Failure {
    match profile.code.is_empty() {
        true => failure,
        false => failure.hint("treering count --tree -- PROGRAM counts them as well"),
    }
}

/// Gives functions the names that their linkage names stand for.
fn spell_out(profile: &mut Profile) {
    let mut functions = profile.functions.entries().to_vec();
    for function in functions.iter_mut().filter(|function| function.linkage_name != StringId::new(0)) {
        let name = demangle_fully(&profile.strings[function.linkage_name]);
        function.name = profile.strings.intern(&name);
    }
    profile.functions = Interner::from_entries(functions);
}

fn warn(text: &str) {
    tell!("warning: {text}");
}

fn not_one(error: FindError) -> Failure {
    let failure = Failure::new(&error);
    match error {
        FindError::NotFound { largest, .. } => match largest.is_empty() {
            true => failure.hint("the profile has no functions"),
            false => failure.hint(format_args!("the largest are: {}", largest.join(", "))),
        },
        FindError::Ambiguous { candidates, .. } => {
            const SHOWN: usize = 10;
            let more = candidates.len().saturating_sub(SHOWN);
            let failure = candidates.iter().take(SHOWN).fold(failure, |failure, name| failure.hint(name));
            if more > 0 { failure.hint(format_args!("and {more} more")) } else { failure }
        }
    }
}
