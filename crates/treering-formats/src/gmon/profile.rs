//! Makes a profile of what a `gmon.out` holds.

use std::collections::HashMap;
use std::ops::Range;

use treering_profile::{
    Arc, Function, FunctionId, Metric, MetricId, Module, ModuleId, ModuleKind, NodeId, Profile,
    RecursionRule, StatedAddress, Unit, pluralize,
};

use super::{Gmon, Histogram, UNIT, read};
use crate::budget::Budget;
use crate::import::state_samples;
use crate::{Problem, ReadError, ReadReport};

/// The program that wrote a `gmon.out`.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// Its path; empty if it is not known.
    pub path: String,
    /// Its build-id, or nothing.
    pub build_id: Vec<u8>,
    /// Where each function lies, sorted, none overlapping the next; stated addresses.
    pub functions: Vec<Range<u64>>,
}

/// Reads a `gmon.out` without its program: functions are told apart by where calls arrived.
pub(crate) fn read_within(bytes: &[u8], mut budget: Budget) -> Result<(Profile, ReadReport), ReadError> {
    let (gmon, mut report) = read(bytes)?;
    let mut starts: Vec<u64> = gmon.arcs.iter().map(|arc| arc.callee).collect();
    starts.extend(gmon.histograms.iter().map(|histogram| histogram.low));
    starts.sort_unstable();
    starts.dedup();
    let ends = starts.iter().skip(1).copied().chain([u64::MAX]);
    let functions: Vec<_> = starts.iter().zip(ends).map(|(&start, end)| start..end).collect();
    report.notes.push(
        "functions are told apart only by the addresses at which calls arrived: the program that wrote the file \
         was not looked at"
            .to_owned(),
    );
    if gmon.arcs.iter().any(|arc| arc.calls > u32::MAX.into()) {
        report.notes.push(
            "arcs have more than 2^32 calls: if a 64-bit program for Windows wrote the file, only their lower 32 bits are \
             counts"
                .to_owned(),
        );
    }
    budget.numbers(gmon.addresses().count(), 16)?;
    let profile = gmon.profile(&Program { functions, ..Program::default() })?;
    Ok((profile, report))
}

impl Gmon {
    /// A profile that has arcs and no tree, with functions that are addresses of the program.
    ///
    /// The samples of a bin that several functions share are divided among them by how much of it
    /// is theirs, in units of two bytes as GNU gprof does it. Samples outside of all functions, and
    /// ends of arcs there, are at addresses of their own. The metrics are `samples` and `cpu-time`
    /// (or what else the file's dimension is), then `block executions` if basic blocks were counted,
    /// and `calls` if no sample was taken.
    ///
    /// # Errors
    /// When the parts do not make a profile.
    pub fn profile(&self, program: &Program) -> Result<Profile, Problem> {
        let mut builder = Builder::new(program);
        for histogram in &self.histograms {
            builder.histogram(histogram);
        }
        builder.note_divided();
        builder.arcs(self);
        builder.blocks(self);
        builder.profile.validate()?;
        state_samples(&mut builder.profile);
        Ok(builder.profile)
    }
}

/// The metric of samples, where ticks are samples, and that of what they stand for.
type Metrics = (Option<MetricId>, MetricId);

/// The most samples a second that a system's timer takes for a histogram. Files with more were written by other programs, of
/// times that may be any.
pub(super) const FASTEST_TIMER: u32 = 2_000;

struct Builder<'a> {
    program: &'a Program,
    module: Option<ModuleId>,
    profile: Profile,
    root: NodeId,
    nodes: HashMap<u64, NodeId>,
    /// The metrics of samples and what they stand for, once there are samples.
    metrics: Option<Metrics>,
    samples: u64,
    /// Samples in bins that several functions share.
    divided: u64,
}

impl<'a> Builder<'a> {
    fn new(program: &'a Program) -> Self {
        let mut profile = Profile::new(RecursionRule::Full);
        profile.metadata.set_foreign("gmon.out");
        let name = program.path.rsplit('/').next().unwrap_or_default();
        let thread = profile.add_single_thread(name);
        let root = profile.threads[thread.index()].root;
        let module = (!program.path.is_empty()).then(|| {
            let path = profile.strings.intern(&program.path);
            let build_id = program.build_id.clone().into();
            profile.modules.intern(Module { path, build_id, kind: ModuleKind::Elf })
        });
        Self { program, module, profile, root, nodes: HashMap::new(), metrics: None, samples: 0, divided: 0 }
    }

    fn function(&mut self, address: u64) -> FunctionId {
        self.profile.functions.intern(Function::at_address(self.module, StatedAddress(address)))
    }

    fn node(&mut self, address: u64) -> NodeId {
        if let Some(&node) = self.nodes.get(&address) {
            return node;
        }
        let function = self.function(address);
        let node = self.profile.tree.child(self.root, function, None);
        self.nodes.insert(address, node);
        node
    }

    /// The start of the function that holds an address, or the address where there is none.
    fn entry(&self, address: u64) -> u64 {
        let functions = &self.program.functions;
        let behind = functions.partition_point(|function| function.start <= address);
        let holds = behind.checked_sub(1).map(|at| &functions[at]).filter(|function| address < function.end);
        holds.map_or(address, |function| function.start)
    }

    fn metrics(&mut self, histogram: &Histogram) -> Metrics {
        if let Some(metrics) = self.metrics {
            return metrics;
        }
        let profile = &mut self.profile;
        if histogram.dimension == "seconds" && histogram.rate > FASTEST_TIMER {
            profile.metadata.note(format!(
                "the time is in ticks of 1/{} s, shorter than those of any timer: the file does not say from how many \
                 samples it is, so that there are no intervals of confidence",
                histogram.rate
            ));
            let time = profile.add_metric(Metric::exact("cpu-time", Unit::Nanoseconds));
            return *self.metrics.insert((None, time));
        }
        let samples = profile.add_metric(Metric::exact("samples", Unit::Count));
        let period = NANOSECONDS / u64::from(histogram.rate.max(1));
        let mut metric = match histogram.dimension.as_str() {
            "seconds" => Metric::sampled("cpu-time", Unit::Nanoseconds, samples, Some(period)),
            other => Metric::sampled(format!("billionths of {other}"), Unit::Count, samples, Some(period)),
        };
        if let Some(sampling) = &mut metric.sampling {
            sampling.jittered = Some(false);
        }
        let metrics = (Some(samples), profile.add_metric(metric));
        profile.metadata.parameters.insert("frequency".to_owned(), histogram.rate.to_string());
        self.metrics = Some(metrics);
        metrics
    }

    fn histogram(&mut self, histogram: &Histogram) {
        if histogram.bins.iter().all(|samples| *samples == 0) {
            return;
        }
        let metrics = self.metrics(histogram);
        for (bin, &samples) in histogram.bins.iter().enumerate().filter(|(_, samples)| **samples > 0) {
            self.bin(histogram, bin, samples, metrics);
        }
    }

    /// Divides the samples of one bin among the functions in it.
    fn bin(&mut self, histogram: &Histogram, bin: usize, samples: u64, metrics: Metrics) {
        let units = histogram.first_unit(bin)..histogram.first_unit(bin + 1);
        let all = units.end.saturating_sub(units.start).max(1);
        let mut given = Given { samples, rate: histogram.rate.max(1).into(), units: 0, all };
        let (program, mut parts) = (self.program, 0);
        let first = program.functions.partition_point(|function| function.end / UNIT <= units.start);
        for function in &program.functions[first..] {
            let low = (function.start / UNIT).max(units.start);
            let high = (function.end / UNIT).min(units.end);
            if function.start / UNIT >= units.end {
                break;
            }
            // Where the function begins in the middle of a unit.
            let address = (low * UNIT).max(function.start);
            if let Some(shares) = given.next(high.saturating_sub(low)) {
                self.charge(address, shares, metrics);
                parts += 1;
            }
        }
        if let Some(shares) = given.rest() {
            self.charge(histogram.bin_start(bin), shares, metrics);
            parts += 1;
        }
        self.samples = self.samples.saturating_add(samples);
        self.divided = self.divided.saturating_add(if parts > 1 { samples } else { 0 });
    }

    fn note_divided(&mut self) {
        let are_samples = self.metrics.is_some_and(|(samples, _)| samples.is_some());
        if self.divided > 0 && are_samples {
            let (divided, samples) = (self.divided, self.samples);
            let verb = if divided == 1 { "is" } else { "are" };
            self.profile.metadata.note(format!(
                "{divided} of {} {verb} in bins that two functions share, and {verb} divided between them by \
                 how much of the bin is theirs",
                pluralize(samples, "sample", "samples")
            ));
        }
    }

    fn charge(&mut self, address: u64, (samples, cost): (u64, u64), metrics: Metrics) {
        let node = self.node(address);
        if let Some(counted) = metrics.0 {
            self.profile.tree.add_self_cost(counted, node, samples);
        }
        self.profile.tree.add_self_cost(metrics.1, node, cost);
    }

    fn arcs(&mut self, gmon: &Gmon) {
        let mut calls: Vec<(u64, u64, u64)> =
            gmon.arcs.iter().map(|arc| (self.entry(arc.from), self.entry(arc.callee), arc.calls)).collect();
        calls.sort_unstable();
        calls.dedup_by(|next, kept| {
            let same = (next.0, next.1) == (kept.0, kept.1);
            kept.2 = kept.2.saturating_add(if same { next.2 } else { 0 });
            same
        });
        let counted = self.metrics.is_none().then(|| {
            let metric = Metric::exact("calls", Unit::Count);
            self.profile.add_metric(metric)
        });
        for (from, callee, calls) in calls.into_iter().filter(|(_, _, calls)| *calls > 0) {
            if let Some(metric) = counted {
                let node = self.node(callee);
                self.profile.tree.add_self_cost(metric, node, calls);
            }
            let (caller, callee) = (self.function(from), self.function(callee));
            self.profile.add_arc(Arc { caller, callee, call_site: None, calls, total_costs: Vec::new() });
        }
    }

    fn blocks(&mut self, gmon: &Gmon) {
        if gmon.blocks.is_empty() {
            return;
        }
        let metric = self.profile.add_metric(Metric::exact("block executions", Unit::Count));
        for block in &gmon.blocks {
            let node = self.node(block.address);
            self.profile.tree.add_self_cost(metric, node, block.executions);
        }
    }
}

const NANOSECONDS: u64 = 1_000_000_000;

/// The part of a bin that has been given away.
struct Given {
    samples: u64,
    rate: u64,
    /// How many of its units were given away.
    units: u64,
    all: u64,
}

impl Given {
    /// The samples and the cost of the next `units` units; parts add up to the whole.
    fn next(&mut self, units: u64) -> Option<(u64, u64)> {
        let before = self.upto(self.units);
        self.units = self.units.saturating_add(units).min(self.all);
        let after = self.upto(self.units);
        Some((after.0 - before.0, after.1 - before.1)).filter(|shares| *shares != (0, 0))
    }

    fn rest(&mut self) -> Option<(u64, u64)> {
        self.next(self.all)
    }

    fn upto(&self, units: u64) -> (u64, u64) {
        let (samples, units, all) = (u128::from(self.samples), u128::from(units), u128::from(self.all));
        let limited = |value: u128| u64::try_from(value).unwrap_or(u64::MAX);
        let cost = samples * units * u128::from(NANOSECONDS) / (all * u128::from(self.rate));
        (limited(samples * units / all), limited(cost))
    }
}
