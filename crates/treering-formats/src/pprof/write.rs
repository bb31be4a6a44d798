//! Writes pprof profiles.

use std::collections::{HashMap, HashSet};
use std::io::{self, Write};

use flate2::write::GzEncoder;
use flate2::{Compression, GzBuilder};
use prost::Message as _;
use treering_profile::{
    FunctionId, FunctionKind, LineCost, LineId, Metadata, MetricId, ModuleId, NodeId, Profile, StatedAddress,
    StringId, ThreadId,
};

use crate::Dropped;
use crate::costs_only::{costs_only, is_flat};
use crate::dropped::Part;
use crate::label::{label, module_of_kind};
use crate::pprof::message;
use crate::unit;

/// The comment of the gzip data that we write, by which a file is known to be ours.
pub(crate) const MARK: &[u8] = b"treering";

/// Writes a profile as gzip-compressed pprof protobuf: every metric as a sample type, every node
/// with self costs as a sample for each of its lines.
///
/// # Errors
/// When the output fails.
pub fn write(profile: &Profile, output: impl Write) -> io::Result<Dropped> {
    let mut packed: GzEncoder<_> = GzBuilder::new().comment(MARK).write(output, Compression::default());
    let dropped = write_plain(profile, &mut packed)?;
    packed.finish()?.flush()?;
    Ok(dropped)
}

/// Writes the same without compressing it.
pub(crate) fn write_plain(profile: &Profile, output: impl Write) -> io::Result<Dropped> {
    let mut dropped = dropped(profile);
    let costs = costs_only(profile);
    let mut writer = Writer::new(&costs, output);
    for (scale, metric) in writer.scales.iter().zip(&costs.metrics).filter(|(scale, _)| scale.divisor > 1) {
        dropped.note(format!(
            "digits of {}, which adds up to more than the 2^63 - 1 that can be written: it is in {}",
            metric.name, scale.shown
        ));
    }
    writer.all()?;
    let shared = writer.names.values().map(|modules| modules.len() - 1).sum();
    dropped.note_shared(shared, "name and file");
    Ok(dropped)
}

/// About how many bytes [`write()`] writes, before they are compressed: deep trees make long stacks.
pub fn size(profile: &Profile) -> u64 {
    let tree = &profile.tree;
    let location = u64::from((tree.len().max(2) as u64).ilog2() / 7 + 1);
    let mut depths: Vec<u64> = Vec::with_capacity(tree.len());
    let mut size = 0_u64;
    for node in tree.nodes() {
        let depth = tree.parent(node).map_or(0, |parent| depths[parent.index()] + 1);
        depths.push(depth);
        if profile.metrics().any(|(metric, _)| tree.self_cost(metric, node) > 0) {
            size = size.saturating_add(depth * location + 16);
        }
    }
    size
}

fn dropped(profile: &Profile) -> Dropped {
    use Part::{
        Arcs, Calls, Code, CostsOutside, FunctionKinds, Marks, RandomIntervals, Runs, Sources, Times,
    };
    let mut dropped = Dropped::default();
    dropped.note_parts(
        profile,
        &[Times, Marks, Code, Calls, Arcs, Runs, FunctionKinds, CostsOutside, Sources, RandomIntervals],
    );
    dropped.note_details(profile);
    dropped
}

/// The comment on profiles without stacks, of which viewers would show self costs as cumulative ones.
pub(crate) const FLAT: &str = "flat: there are no stacks, so cumulative values are not known";

/// A frame of a location: its function, and the line that runs in it.
type Place = (FunctionId, Option<LineId>);

/// In what a metric is written.
struct Scale {
    /// The divisor of costs.
    divisor: u64,
    /// The unit of values in the file.
    unit: &'static str,
    /// The suffix for the name of the metric.
    suffix: &'static str,
    /// Its name for people.
    shown: &'static str,
}

impl Scale {
    /// One in which the sum of all values can be held by readers.
    fn of(profile: &Profile, metric: MetricId) -> Self {
        let of = profile.metrics[metric.index()].unit;
        let costs = profile.tree.self_costs(metric).iter();
        let sum: u128 = costs.map(|&cost| u128::from(cost)).sum();
        let (divisor, unit, suffix, shown) = match of {
            _ if sum <= i64::MAX as u128 => (1, unit::name(of), "", ""),
            treering_profile::Unit::Nanoseconds => (1000, "microseconds", "", "microseconds"),
            treering_profile::Unit::Bytes => (1024, "kilobytes", "", "kilobytes"),
            _ => (1000, unit::name(of), " (thousands)", "thousands"),
        };
        Self { divisor, unit, suffix, shown }
    }

    fn value(&self, cost: u64) -> i64 {
        let rest = cost % self.divisor;
        to_signed(cost / self.divisor + u64::from(rest * 2 >= self.divisor && self.divisor > 1))
    }
}

struct Writer<'a, W> {
    profile: &'a Profile,
    /// By metric.
    scales: Vec<Scale>,
    /// Samples are written at once: those of a deep tree would take a lot of memory.
    output: W,
    /// The tables behind the samples.
    message: message::Profile,
    strings: HashMap<String, i64>,
    /// By their frames, the innermost first: the inlined ones and the one they are inlined into.
    locations: HashMap<Vec<Place>, u64>,
    /// Whether a function was written; its id is its index, as the root's, 0, is never needed.
    functions: Vec<bool>,
    /// The mark that is added to names of functions that only their kind tells from others.
    marks: HashMap<FunctionId, &'static str>,
    /// The modules of the functions that have a name and file, by which viewers tell functions.
    names: HashMap<(i64, i64), HashSet<Option<ModuleId>>>,
    /// Mappings that tell the kinds of functions without a module, by their names.
    kinds: HashMap<&'static str, u64>,
}

impl<'a, W: Write> Writer<'a, W> {
    fn new(profile: &'a Profile, output: W) -> Self {
        let mut writer = Self {
            profile,
            scales: profile.metrics().map(|(metric, _)| Scale::of(profile, metric)).collect(),
            output,
            message: message::Profile::default(),
            strings: HashMap::new(),
            locations: HashMap::new(),
            functions: vec![false; profile.functions.len()],
            marks: marks(profile),
            names: HashMap::new(),
            kinds: HashMap::new(),
        };
        writer.string("");
        writer
    }

    fn all(&mut self) -> io::Result<()> {
        self.types();
        self.run();
        self.mappings();
        let types = std::mem::take(&mut self.message.sample_type);
        let head = message::Profile { sample_type: types, ..message::Profile::default() };
        self.output.write_all(&head.encode_to_vec())?;
        self.samples()?;
        self.output.write_all(&self.message.encode_to_vec())
    }

    fn string(&mut self, text: &str) -> i64 {
        if let Some(&known) = self.strings.get(text) {
            return known;
        }
        let index = self.message.string_table.len() as i64;
        self.message.string_table.push(text.as_bytes().to_vec());
        self.strings.insert(text.to_owned(), index);
        index
    }

    /// Counts of samples come first, as Go writes them; viewers show the default type first.
    fn types(&mut self) {
        for (at, metric) in self.profile.metrics.iter().enumerate() {
            let Scale { unit, suffix, .. } = self.scales[at];
            let r#type = self.string(&format!("{}{suffix}", metric.name));
            let unit = self.string(unit);
            self.message.sample_type.push(message::ValueType { r#type, unit });
        }
        let sampled = self.profile.metrics.iter().position(|metric| metric.sampling.is_some());
        let stated = self.profile.metadata.parameters.get(Metadata::DEFAULT_METRIC);
        let stated = stated.and_then(|name| self.profile.find_metric(name)).map(MetricId::index);
        let types = &self.message.sample_type;
        let Some(&default) = types.get(stated.or(sampled).unwrap_or(0)) else { return };
        self.message.default_sample_type = default.r#type;
        let default = types[sampled.unwrap_or(0)];
        if let Some(sampling) = sampled.and_then(|at| self.profile.metrics[at].sampling.as_ref()) {
            self.message.period_type = Some(default);
            self.message.period = self.scales[sampled.unwrap_or(0)].value(sampling.period.unwrap_or(0));
        }
    }

    fn run(&mut self) {
        let comment = self.string(concat!("treering ", env!("CARGO_PKG_VERSION")));
        self.message.comment.push(comment);
        if let Some(measuring) = self.profile.metadata.parameters.get(Metadata::MEASURING) {
            let comment = self.string(&format!("{}: {measuring}", Metadata::MEASURING));
            self.message.comment.push(comment);
        }
        if is_flat(self.profile) {
            let comment = self.string(FLAT);
            self.message.comment.push(comment);
        }
        let Some(run) = self.profile.runs.first() else { return };
        self.message.time_nanos = to_signed(run.start_unix_ns);
        self.message.duration_nanos = to_signed(run.duration_ns);
        if !run.command.is_empty() {
            let command = self.string(&format!("command: {}", run.command.join(" ")));
            self.message.comment.push(command);
        }
    }

    /// Mappings start at 0, so that addresses are those stated in the binary.
    fn mappings(&mut self) {
        let mut limits = vec![0; self.profile.modules.len()];
        for function in self.profile.functions.entries() {
            if let (Some(module), Some(StatedAddress(address))) = (function.module, function.address) {
                let limit = &mut limits[module.index()];
                *limit = address.saturating_add(1).max(*limit);
            }
        }
        for ((id, module), memory_limit) in self.profile.modules.iter().zip(limits) {
            let build_id: String = module.build_id.iter().map(|byte| format!("{byte:02x}")).collect();
            let mapping = message::Mapping {
                id: u64::from(id.raw()) + 1,
                memory_limit,
                filename: self.string(&self.profile.strings[module.path]),
                build_id: self.string(&build_id),
                has_functions: true,
                has_filenames: true,
                has_line_numbers: true,
                has_inline_frames: true,
                ..message::Mapping::default()
            };
            self.message.mapping.push(mapping);
        }
    }

    fn samples(&mut self) -> io::Result<()> {
        let labels = self.labels();
        let threads = self.profile.node_threads();
        let mut parts = self.profile.line_costs.clone();
        parts.sort_unstable_by_key(|part| (part.node, part.line));
        let mut parts = parts.as_slice();
        for node in self.profile.tree.nodes() {
            let count = parts.iter().take_while(|part| part.node == node).count();
            let (own, rest) = parts.split_at(count);
            parts = rest;
            self.node(node, own, &labels[threads[node.index()].index()])?;
        }
        Ok(())
    }

    /// A sample for each line of the node that is known, and one for the rest of its self cost.
    fn node(&mut self, node: NodeId, parts: &[LineCost], labels: &[message::Label]) -> io::Result<()> {
        let costs = (0..self.profile.metrics.len()).map(MetricId::from_usize);
        let mut rest: Vec<u64> = costs.map(|metric| self.profile.tree.self_cost(metric, node)).collect();
        for line in parts.chunk_by(|one, next| one.line == next.line) {
            let mut costs = vec![0; rest.len()];
            for part in line {
                let metric = part.metric.index();
                // A part can never be more than the whole; a profile where it is keeps its whole.
                let cost = part.cost.min(rest[metric]);
                rest[metric] -= cost;
                costs[metric] += cost;
            }
            self.sample(node, Some(line[0].line), &costs, labels)?;
        }
        self.sample(node, None, &rest, labels)
    }

    fn sample(
        &mut self,
        node: NodeId,
        line: Option<LineId>,
        costs: &[u64],
        labels: &[message::Label],
    ) -> io::Result<()> {
        if costs.iter().all(|&cost| cost == 0) {
            return Ok(());
        }
        let sample = message::Sample {
            location_id: self.stack(node, line),
            value: costs.iter().zip(&self.scales).map(|(&cost, scale)| scale.value(cost)).collect(),
            label: labels.to_vec(),
        };
        const SAMPLE: u32 = 2;
        let mut bytes = Vec::new();
        prost::encoding::message::encode(SAMPLE, &sample, &mut bytes);
        self.output.write_all(&bytes)
    }

    /// The locations from the node up to its thread's first function.
    fn stack(&mut self, node: NodeId, mut line: Option<LineId>) -> Vec<u64> {
        let tree = &self.profile.tree;
        let mut stack = Vec::new();
        let mut places = Vec::new();
        for at in tree.path(node).filter(|&at| tree.function(at) != Profile::ROOT) {
            let function = tree.function(at);
            places.push((function, line));
            line = tree.call_site(at);
            if self.profile.functions[function].kind != FunctionKind::Inlined {
                stack.push(self.location(std::mem::take(&mut places)));
            }
        }
        if !places.is_empty() {
            stack.push(self.location(places));
        }
        stack
    }

    fn location(&mut self, places: Vec<Place>) -> u64 {
        if let Some(&known) = self.locations.get(&places) {
            return known;
        }
        let outermost = &self.profile.functions[places[places.len() - 1].0];
        let location = message::Location {
            id: self.locations.len() as u64 + 1,
            mapping_id: match outermost.module {
                Some(module) => u64::from(module.raw()) + 1,
                None => self.mapping_of_kind(outermost.kind),
            },
            address: if outermost.kind == FunctionKind::Address {
                outermost.address.map_or(0, |address| address.0)
            } else {
                0
            },
            line: places.iter().filter_map(|&place| self.line(place)).collect(),
        };
        let id = location.id;
        self.message.location.push(location);
        self.locations.insert(places, id);
        id
    }

    /// The mapping of functions of a kind that have no module; 0 for those that need none.
    fn mapping_of_kind(&mut self, kind: FunctionKind) -> u64 {
        let Some(name) = module_of_kind(kind) else { return 0 };
        if let Some(&known) = self.kinds.get(name) {
            return known;
        }
        let mapping = message::Mapping {
            id: self.message.mapping.len() as u64 + 1,
            filename: self.string(name),
            has_functions: true,
            ..message::Mapping::default()
        };
        self.kinds.insert(name, mapping.id);
        self.message.mapping.push(mapping);
        self.message.mapping.len() as u64
    }

    /// The line of a frame; nothing for an address that was not resolved.
    fn line(&mut self, (function, line): Place) -> Option<message::Line> {
        let known = &self.profile.functions[function];
        if known.kind == FunctionKind::Address && known.module.is_some() {
            return None;
        }
        let line = line.map(|line| self.profile.lines[line]);
        self.function(function, line.map_or(StringId::new(0), |line| line.file));
        let line = line.map_or(0, |line| i64::from(line.line));
        Some(message::Line { function_id: function.raw().into(), line })
    }

    /// Writes a function once. One whose file is not known gets that of its first line.
    fn function(&mut self, function: FunctionId, file: StringId) {
        if std::mem::replace(&mut self.functions[function.index()], true) {
            return;
        }
        let known = &self.profile.functions[function];
        let mark = self.marks.get(&function).copied().unwrap_or_default();
        let name = self.string(&(label(self.profile, function).into_owned() + mark));
        let linkage_name = &self.profile.strings[known.linkage_name];
        let message = message::Function {
            id: function.raw().into(),
            name,
            system_name: if linkage_name.is_empty() { name } else { self.string(linkage_name) },
            filename: self
                .string(&self.profile.strings[if known.file.raw() == 0 { file } else { known.file }]),
            start_line: known.line.into(),
        };
        self.names.entry((message.name, message.filename)).or_default().insert(known.module);
        self.message.function.push(message);
    }

    /// The labels of every thread's samples. A single thread without numbers needs none.
    fn labels(&mut self) -> Vec<Vec<message::Label>> {
        let threads = (0..self.profile.threads.len()).map(ThreadId::from_usize);
        threads.map(|thread| self.thread_labels(thread)).collect()
    }

    fn thread_labels(&mut self, thread: ThreadId) -> Vec<message::Label> {
        let thread = &self.profile.threads[thread.index()];
        let process = &self.profile.processes[thread.process.index()];
        let mut labels = Vec::new();
        for (key, name) in [("process", &process.name), ("thread", &thread.name)] {
            if !name.is_empty() {
                labels.push(message::Label { key: self.string(key), str: self.string(name), num: 0 });
            }
        }
        for (key, number) in [("pid", process.pid), ("tid", thread.tid)] {
            if number > 0 {
                labels.push(message::Label { key: self.string(key), str: 0, num: number.into() });
            }
        }
        labels
    }
}

/// The marks of FlameGraph for functions of the kernel and JIT-compiled ones, where there is
/// another of the same name and file: viewers go by these and would add them up.
fn marks(profile: &Profile) -> HashMap<FunctionId, &'static str> {
    let mut kinds: HashMap<(StringId, StringId), Vec<FunctionId>> = HashMap::new();
    let functions = (0..profile.functions.len()).map(FunctionId::from_usize);
    for function in functions.filter(|&function| function != Profile::ROOT) {
        let known = &profile.functions[function];
        if known.name.raw() != 0 {
            kinds.entry((known.name, known.file)).or_default().push(function);
        }
    }
    let mut marks = HashMap::new();
    for same in kinds.into_values().filter(|same| same.len() > 1) {
        let kind = |function: FunctionId| match profile.functions[function].kind {
            FunctionKind::Kernel => "_[k]",
            FunctionKind::Jit => "_[j]",
            _ => "",
        };
        let differ = same.iter().any(|&function| kind(function) != kind(same[0]));
        let marked = same.into_iter().filter(|&function| differ && !kind(function).is_empty());
        marks.extend(marked.map(|function| (function, kind(function))));
    }
    marks
}

/// The number as the format holds it; 2^63 - 1 for those above.
fn to_signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
