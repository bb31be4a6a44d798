//! Writes files of Speedscope.

use std::io::{self, Write};

use treering_profile::{
    FunctionId, Metadata, MetricId, NodeId, Profile, RecursionRule, StringId, ThreadId, Unit,
};

use crate::Dropped;
use crate::costs_only::{costs_only, is_flat};
use crate::dropped::Part;
use crate::json::{MOST_EXACT, write_text};
use crate::label::label;
use crate::our_run::OurRun;
use crate::speedscope::file::{OurProfile, Ours};
use crate::timed_costs::{TimedCost, TimedCosts};

/// How the exporter of our files starts.
pub(crate) const EXPORTER: &str = "treering@";

/// Writes a profile for each metric and thread that cost something, as stacks with weights.
///
/// Beside what the format has a place for, the file tells our reader the metrics, threads, and kinds and
/// modules of functions.
///
/// # Errors
/// When the output fails.
pub fn write(profile: &Profile, mut output: impl Write) -> io::Result<Dropped> {
    let costs = costs_only(profile);
    Writer { profile: &costs, output: &mut output }.file()?;
    output.flush()?;
    Ok(dropped(profile, &costs))
}

/// About how many bytes [`write()`] writes: deep trees make long stacks.
pub fn size(profile: &Profile) -> u64 {
    let costs = costs_only(profile);
    let mut lengths: Vec<u64> = Vec::with_capacity(costs.tree.len());
    let mut size = 0_u64;
    let timed: Vec<_> = costs.metrics().map(|(metric, _)| TimedCosts::of(&costs, metric)).collect();
    for node in costs.tree.nodes() {
        let above = costs.tree.parent(node).map_or(0, |parent| lengths[parent.index()]);
        let digits = costs.tree.function(node).index().max(1).ilog10() as u64 + 2;
        lengths.push(above.saturating_add(digits));
        let samples = costs
            .metrics()
            .zip(&timed)
            .filter(|&((metric, _), timed)| timed.is_none() && costs.tree.self_cost(metric, node) > 0);
        size = size.saturating_add((samples.count() as u64).saturating_mul(lengths[node.index()] + 12));
    }
    let pieces = timed.iter().flatten().flat_map(TimedCosts::all);
    for piece in pieces {
        size = size.saturating_add(lengths[piece.node.index()] + 24);
    }
    size
}

fn dropped(profile: &Profile, costs: &Profile) -> Dropped {
    let mut dropped = Dropped::default();
    dropped.note_parts(profile, &[Part::Marks, Part::Lines, Part::Calls, Part::Arcs, Part::Runs]);
    let large = costs.metrics().any(|(metric, _)| costs.run_cost(metric) > MOST_EXACT);
    dropped.note_if(large, "digits of sums above 2^53, which JavaScript does not have");
    dropped.note_details(profile);
    for (metric, _) in costs.metrics() {
        if let Some(timed) = TimedCosts::of(costs, metric) {
            timed.note(costs, metric, &mut dropped);
        }
    }
    dropped
}

struct Writer<'a, W> {
    profile: &'a Profile,
    output: &'a mut W,
}

/// A sample of the file.
#[derive(Clone, Copy)]
struct Piece {
    /// Nothing for time in which the thread cost nothing.
    node: Option<NodeId>,
    cost: u64,
    slot: Option<u32>,
}

impl<W: Write> Writer<'_, W> {
    fn file(&mut self) -> io::Result<()> {
        let version = env!("CARGO_PKG_VERSION");
        write!(
            self.output,
            "{{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"exporter\":\"{EXPORTER}{version}\""
        )?;
        let command =
            self.profile.runs.first().map(|run| run.command.join(" ")).filter(|text| !text.is_empty());
        if let Some(command) = command {
            self.output.write_all(b",\"name\":")?;
            write_text(self.output, &command)?;
        }
        if let Some(measuring) = self.profile.metadata.parameters.get(Metadata::MEASURING) {
            self.output.write_all(b",\"costOfMeasuring\":")?;
            write_text(self.output, measuring)?;
        }
        self.ours()?;
        self.frames()?;
        let parts = self.parts();
        write!(self.output, ",\"activeProfileIndex\":{},\"profiles\":[", self.active(&parts))?;
        for (at, part) in parts.iter().enumerate() {
            self.separate(at)?;
            self.part(*part)?;
        }
        self.output.write_all(b"\n]}\n")
    }

    fn separate(&mut self, at: usize) -> io::Result<()> {
        self.output.write_all(if at == 0 { b"\n" } else { b",\n" })
    }

    fn ours(&mut self) -> io::Result<()> {
        let profile = self.profile;
        let thread = |thread: &treering_profile::Thread| {
            let process = &profile.processes[thread.process.index()];
            (process.pid, process.name.clone(), thread.tid, thread.name.clone())
        };
        let threads = profile.threads.iter().map(thread).collect();
        let slot_ns = profile.timeline.as_ref().map(|timeline| timeline.slot_ns);
        // A profile of arcs has a stack for each function, whose total is not known.
        let recursion = if is_flat(profile) { RecursionRule::Flat } else { profile.recursion };
        let ours = Ours {
            metrics: profile.metrics.clone(),
            recursion,
            threads,
            slot_ns,
            run: Some(OurRun::of(profile)),
        };
        self.output.write_all(b",\n\"treering\":")?;
        serde_json::to_writer(&mut *self.output, &ours).map_err(io::Error::from)
    }

    /// The functions, by their numbers.
    fn frames(&mut self) -> io::Result<()> {
        self.output.write_all(b",\n\"shared\":{\"frames\":[")?;
        for at in 0..self.profile.functions.len() {
            self.separate(at)?;
            let id = FunctionId::from_usize(at);
            let function = self.profile.functions[id];
            self.output.write_all(b"{\"name\":")?;
            write_text(self.output, &label(self.profile, id))?;
            if function.file != StringId::new(0) {
                self.output.write_all(b",\"file\":")?;
                write_text(self.output, &self.profile.strings[function.file])?;
            }
            if function.line > 0 {
                write!(self.output, ",\"line\":{}", function.line)?;
            }
            if function.kind as u8 > 0 {
                write!(self.output, ",\"kind\":{}", function.kind as u8)?;
            }
            if let Some(module) = function.module {
                self.output.write_all(b",\"module\":")?;
                write_text(self.output, &self.profile.strings[self.profile.modules[module].path])?;
            }
            self.output.write_all(b"}")?;
        }
        self.output.write_all(b"\n]}")
    }

    /// Each metric with the threads that cost something in it.
    fn parts(&self) -> Vec<OurProfile> {
        let threads = self.profile.node_threads();
        let mut parts = Vec::new();
        for (metric, _) in self.profile.metrics() {
            let mut costs = vec![false; self.profile.threads.len()];
            for node in self.profile.tree.nodes() {
                costs[threads[node.index()].index()] |= self.profile.tree.self_cost(metric, node) > 0;
            }
            let filled = (0..costs.len()).filter(|&thread| costs[thread]);
            parts.extend(filled.map(|thread| OurProfile { metric: metric.index(), thread }));
        }
        // A file must have a profile.
        if parts.is_empty() && !self.profile.metrics.is_empty() && !self.profile.threads.is_empty() {
            parts.push(OurProfile { metric: 0, thread: 0 });
        }
        parts
    }

    /// The profile to show first: the default metric, or the first that is sampled.
    fn active(&self, parts: &[OurProfile]) -> usize {
        let profile = self.profile;
        let stated = profile.metadata.parameters.get(Metadata::DEFAULT_METRIC);
        let stated = stated.and_then(|name| profile.find_metric(name)).map(MetricId::index);
        let sampled = profile.metrics.iter().position(|metric| metric.sampling.is_some());
        let wanted = stated.or(sampled).unwrap_or(0);
        parts.iter().position(|part| part.metric == wanted).unwrap_or(0)
    }

    fn part(&mut self, part: OurProfile) -> io::Result<()> {
        let profile = self.profile;
        let metric = &profile.metrics[part.metric];
        let unit = match metric.unit {
            Unit::Nanoseconds => "nanoseconds",
            Unit::Bytes => "bytes",
            _ => "none",
        };
        write!(self.output, "{{\"type\":\"sampled\",\"name\":")?;
        write_text(self.output, &self.name(part))?;
        let pieces = self.pieces(part);
        let total = pieces.iter().fold(0_u64, |sum, piece| sum.saturating_add(piece.cost));
        let OurProfile { metric: number, thread } = part;
        write!(
            self.output,
            ",\"unit\":\"{unit}\",\"startValue\":0,\"endValue\":{total},\
             \"treering\":{{\"metric\":{number},\"thread\":{thread}}},\n\"samples\":["
        )?;
        for (at, piece) in pieces.iter().enumerate() {
            self.separate(at)?;
            match piece.node {
                Some(node) => self.stack(node)?,
                None => self.output.write_all(b"[]")?,
            }
        }
        self.output.write_all(b"]")?;
        self.column("weights", pieces.iter().map(|piece| piece.cost))?;
        let slots: Option<Vec<u32>> = pieces.iter().map(|piece| piece.slot).collect();
        if let Some(slots) = slots.filter(|slots| !slots.is_empty()) {
            self.column("slots", slots.into_iter().map(u64::from))?;
        }
        self.output.write_all(b"}")
    }

    fn column(&mut self, name: &str, numbers: impl Iterator<Item = u64>) -> io::Result<()> {
        write!(self.output, ",\n\"{name}\":[")?;
        for (at, number) in numbers.enumerate() {
            let comma = if at == 0 { "" } else { "," };
            write!(self.output, "{comma}{number}")?;
        }
        self.output.write_all(b"]")
    }

    /// The costs of a thread: in the order of time, with the time between them, where it is known when they arose; else
    /// one for each node.
    fn pieces(&self, part: OurProfile) -> Vec<Piece> {
        let id = MetricId::from_usize(part.metric);
        let Some(timed) = TimedCosts::of(self.profile, id) else {
            let cost = |node| self.profile.tree.self_cost(id, node);
            let nodes = self.nodes(part).into_iter();
            return nodes.map(|node| Piece { node: Some(node), cost: cost(node), slot: None }).collect();
        };
        let is_time = self.profile.metrics[part.metric].unit == Unit::Nanoseconds;
        let mut pieces = Vec::new();
        let mut now = 0_u64;
        for &TimedCost { slot, node, cost } in timed.of_thread(part.thread) {
            // Costs of samples are as long as the interval between samples, on average only.
            let gap = timed.start_ns(slot).saturating_sub(now);
            if is_time && gap > 0 {
                pieces.push(Piece { node: None, cost: gap, slot: Some(slot) });
                now += gap;
            }
            pieces.push(Piece { node: Some(node), cost, slot: Some(slot) });
            now = now.saturating_add(cost);
        }
        pieces
    }

    fn name(&self, part: OurProfile) -> String {
        let metric = &self.profile.metrics[part.metric].name;
        let thread = &self.profile.threads[part.thread];
        match (self.profile.threads.len(), thread.name.as_str()) {
            (1, _) => metric.clone(),
            (_, "") => format!("{metric}, thread {}", part.thread + 1),
            (_, name) => format!("{metric}, {name} {}", thread.tid),
        }
    }

    /// The nodes of a thread that cost something, callers before what they call.
    fn nodes(&self, part: OurProfile) -> Vec<NodeId> {
        let threads = self.profile.node_threads();
        let metric = MetricId::from_usize(part.metric);
        let here = |node: &NodeId| threads[node.index()] == ThreadId::from_usize(part.thread);
        let costs = |node: &NodeId| self.profile.tree.self_cost(metric, *node) > 0;
        self.profile.tree.nodes().filter(here).filter(costs).collect()
    }

    /// The functions from the outermost to that of the node; the root only where it costs something itself.
    fn stack(&mut self, node: NodeId) -> io::Result<()> {
        let tree = &self.profile.tree;
        let mut path: Vec<_> = tree.path(node).map(|node| tree.function(node)).collect();
        if path.len() > 1 {
            path.pop();
        }
        self.output.write_all(b"[")?;
        for (at, function) in path.iter().rev().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            write!(self.output, "{comma}{}", function.index())?;
        }
        self.output.write_all(b"]")
    }
}
