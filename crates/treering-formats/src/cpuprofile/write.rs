//! Writes `.cpuprofile` files.

use std::collections::HashMap;
use std::io::{self, Write};

use treering_profile::{FunctionId, FunctionKind, Metadata, MetricId, Profile, Unit};

use crate::cpuprofile::node::ANONYMOUS;
use crate::dropped::Part;
use crate::json::write_text;
use crate::label::label;
use crate::our_run::OurRun;
use crate::speedscope::EXPORTER;
use crate::{Dropped, unit};

/// Writes the tree with the costs of one metric, in which each node that costs something is one sample
/// that lasts as long.
///
/// Time is written in microseconds, with decimals. Other units have no place in the format: one of them
/// is written as one microsecond, and that is said.
///
/// # Errors
/// When the output fails.
///
/// # Panics
/// When the profile has no such metric.
pub fn write(profile: &Profile, metric: MetricId, mut output: impl Write) -> io::Result<Dropped> {
    let tree = Merged::of(profile, metric);
    tree.write(profile, metric, &mut output)?;
    output.flush()?;
    Ok(dropped(profile, metric))
}

fn dropped(profile: &Profile, metric: MetricId) -> Dropped {
    use Part::{Arcs, Calls, Lines, Marks, Modules, Runs, Threads, Times};
    let mut dropped = Dropped::default();
    let of = &profile.metrics[metric.index()];
    dropped.note_other_metrics(profile, metric, of.counted_by());
    if of.unit != Unit::Nanoseconds {
        dropped.note(format!("the unit of {}: one of it is written as a microsecond", of.name));
    }
    dropped.note_parts(profile, &[Threads, Times, Marks, Modules, Lines, Calls, Arcs, Runs]);
    dropped.note_details(profile);
    dropped
}

/// The trees of all threads as one.
struct Merged {
    nodes: Vec<Node>,
}

struct Node {
    function: FunctionId,
    children: Vec<usize>,
    cost: u64,
    samples: u64,
}

impl Merged {
    fn of(profile: &Profile, metric: MetricId) -> Self {
        let counted_by = profile.metrics[metric.index()].counted_by();
        let root = Node { function: Profile::ROOT, children: Vec::new(), cost: 0, samples: 0 };
        let mut merged = Self { nodes: vec![root] };
        let mut known: HashMap<(usize, FunctionId), usize> = HashMap::new();
        let mut places: Vec<usize> = Vec::with_capacity(profile.tree.len());
        for node in profile.tree.nodes() {
            let function = profile.tree.function(node);
            let place = match profile.tree.parent(node).map(|parent| places[parent.index()]) {
                None => 0,
                Some(above) => *known.entry((above, function)).or_insert_with(|| {
                    let place = merged.nodes.len();
                    merged.nodes.push(Node { function, children: Vec::new(), cost: 0, samples: 0 });
                    merged.nodes[above].children.push(place);
                    place
                }),
            };
            places.push(place);
            let cost = profile.tree.self_cost(metric, node);
            let samples = counted_by.map_or(u64::from(cost > 0), |by| profile.tree.self_cost(by, node));
            merged.nodes[place].cost = merged.nodes[place].cost.saturating_add(cost);
            merged.nodes[place].samples = merged.nodes[place].samples.saturating_add(samples);
        }
        merged
    }

    fn write(&self, profile: &Profile, metric: MetricId, output: &mut impl Write) -> io::Result<()> {
        let version = env!("CARGO_PKG_VERSION");
        write!(output, "{{\"exporter\":\"{EXPORTER}{version}\",\"metric\":")?;
        write_text(output, &profile.metrics[metric.index()].name)?;
        let unit = unit::name(profile.metrics[metric.index()].unit);
        write!(output, ",\"unit\":\"{unit}\",\"treeringRun\":{}", OurRun::of(profile).json())?;
        if let Some(measuring) = profile.metadata.parameters.get(Metadata::MEASURING) {
            output.write_all(b",\"costOfMeasuring\":")?;
            write_text(output, measuring)?;
        }
        output.write_all(b",\n\"nodes\":[")?;
        for (at, node) in self.nodes.iter().enumerate() {
            output.write_all(if at == 0 { b"\n" } else { b",\n" })?;
            write_node(profile, at, node, output)?;
        }
        let is_time = profile.metrics[metric.index()].unit == Unit::Nanoseconds;
        let filled: Vec<_> = self.nodes.iter().enumerate().filter(|(_, node)| node.cost > 0).collect();
        let total = filled.iter().fold(0_u64, |sum, (_, node)| sum + node.cost);
        write!(output, "\n],\n\"startTime\":0,\"endTime\":{}", Microseconds(total, is_time))?;
        // A sample lasts until the next one; one of the root is at the end.
        output.write_all(b",\n\"samples\":[")?;
        for (at, _) in &filled {
            write!(output, "{},", at + 1)?;
        }
        output.write_all(b"1],\n\"timeDeltas\":[0")?;
        for (_, node) in &filled {
            write!(output, ",{}", Microseconds(node.cost, is_time))?;
        }
        output.write_all(b"]}\n")
    }
}

fn write_node(profile: &Profile, at: usize, node: &Node, output: &mut impl Write) -> io::Result<()> {
    let function = profile.functions[node.function];
    write!(output, "{{\"id\":{},\"callFrame\":{{\"functionName\":", at + 1)?;
    let name = label(profile, node.function);
    match (at, function.kind) {
        (0, _) => write_text(output, "(root)")?,
        (_, FunctionKind::Anonymous) if name == ANONYMOUS => write_text(output, "")?,
        _ => write_text(output, &name)?,
    }
    output.write_all(b",\"scriptId\":\"0\",\"url\":")?;
    write_text(output, &profile.strings[function.file])?;
    let line = i64::from(function.line) - 1;
    write!(output, ",\"lineNumber\":{line},\"columnNumber\":-1}},\"hitCount\":{}", node.samples)?;
    if !node.children.is_empty() {
        output.write_all(b",\"children\":[")?;
        for (at, child) in node.children.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            write!(output, "{comma}{}", child + 1)?;
        }
        output.write_all(b"]")?;
    }
    output.write_all(b"}")
}

/// A cost as microseconds: of nanoseconds with the decimals that it takes, of others as it is.
struct Microseconds(u64, bool);

impl std::fmt::Display for Microseconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self(cost, is_time) = *self;
        match (is_time, cost % 1000) {
            (false, _) => write!(f, "{cost}"),
            (true, 0) => write!(f, "{}", cost / 1000),
            (true, rest) => write!(f, "{}.{rest:03}", cost / 1000),
        }
    }
}
