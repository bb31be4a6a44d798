//! Reads pprof profiles.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use prost::Message as _;
use treering_profile::{
    Function, FunctionId, FunctionKind, Line, LineId, Metric, MetricId, Module, ModuleId, ModuleKind,
    Process, ProcessId, Profile, RecursionRule, Sampling, StatedAddress, StringId, ThreadId,
};

use crate::budget::Budget;
use crate::gzip::unzip;
use crate::import::Import;
use crate::label::{file_name, module_kind};
use crate::negative::Negative;
use crate::pprof::message;
use crate::pprof::prune::{Prune, UNUSABLE};
use crate::pprof::write::FLAT;
use crate::read_error::LARGE_SUM;
use crate::{Problem, ReadError, ReadReport, unit};

/// How many sample types a profile may have.
pub(crate) const MAX_TYPES: usize = 256;

/// Reads a pprof profile, compressed or not.
///
/// Each sample type becomes a metric. One that is worth its period for each of `samples`, or of
/// `NAME samples`, is taken as sampled. Samples with labels for process or thread (`pid`,
/// `process`, `tid`, `thread` and their variants) go to threads of their own; other labels are
/// dropped. Frames without a function become one function for each mapping, or stay addresses
/// where the mapping says that they are those stated in the binary. Frames that the profile asks to
/// drop are left out, as `go tool pprof` does, and their costs go to their callers; that is said.
/// The metric to show is the file's `default_sample_type`, or else its last one.
///
/// In a difference of two profiles (`-diff_base`), the costs of the base are metrics of their own, `NAME (base)`. Costs
/// below 0 that are no such, as `-base` makes them, are taken away from others of the same stack; what is left is in
/// metrics `NAME (negative)`.
///
/// # Errors
/// When it is damaged or refers to what is missing.
pub fn read(bytes: &[u8]) -> Result<(Profile, ReadReport), ReadError> {
    read_within(bytes, Budget::new(bytes.len()))
}

/// Reads only the samples that have all of these labels: keys and values, of which numbers are written in
/// decimal digits. How many others there are is said.
///
/// # Errors
/// As [`read`], and when no sample has them.
pub fn read_labelled(bytes: &[u8], labels: &[(String, String)]) -> Result<(Profile, ReadReport), ReadError> {
    read_chosen(bytes, labels, Budget::new(bytes.len()))
}

/// The same as [`read`] with a limit to the memory that it may take.
pub(crate) fn read_within(bytes: &[u8], budget: Budget) -> Result<(Profile, ReadReport), ReadError> {
    read_chosen(bytes, &[], budget)
}

fn read_chosen(
    bytes: &[u8],
    labels: &[(String, String)],
    mut budget: Budget,
) -> Result<(Profile, ReadReport), ReadError> {
    let unzipped = unzip(bytes)?;
    budget.bytes(decoded_size(&unzipped))?;
    let message = message::Profile::decode(&*unzipped);
    let message = message.map_err(|error| format!("not a pprof profile, or one cut short: {error}"))?;
    read_message(&message, labels, budget, "pprof")
}

/// Reads a message that a tool wrote.
pub(crate) fn read_message(
    message: &message::Profile,
    labels: &[(String, String)],
    budget: Budget,
    collector: &str,
) -> Result<(Profile, ReadReport), ReadError> {
    let mut reader = Reader::new(message, budget)?;
    reader.modules()?;
    reader.functions()?;
    reader.locations()?;
    reader.samples(labels)?;
    reader.finish(collector)
}

/// About how much memory the decoded message takes: that of each of its parts, and 8 bytes for each
/// byte in it, which may be a number. A few bytes of nothing but empty parts would take a lot.
fn decoded_size(mut bytes: &[u8]) -> u64 {
    const LENGTH: u64 = 2;
    let mut size = 0_u64;
    while let Ok((tag, wire)) = prost::encoding::decode_key(&mut bytes) {
        if wire as u64 != LENGTH {
            let context = prost::encoding::DecodeContext::default();
            if prost::encoding::skip_field(wire, tag, &mut bytes, context).is_err() {
                break;
            }
            continue;
        }
        let Ok(length) = prost::encoding::decode_varint(&mut bytes) else { break };
        let Some(rest) = usize::try_from(length).ok().and_then(|length| bytes.get(length..)) else { break };
        bytes = rest;
        let (part, factor) = match tag {
            2 => (size_of::<message::Sample>(), 8),
            4 => (size_of::<message::Location>(), 4),
            6 => (size_of::<Vec<u8>>(), 1),
            _ => (size_of::<message::Mapping>(), 1),
        };
        size = size.saturating_add(part as u64 + length.saturating_mul(factor));
    }
    size
}

/// A frame of a location: its function and the line that runs in it.
type Place = (FunctionId, Option<LineId>);

/// The process and thread of a sample.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Owner {
    pid: u32,
    process: String,
    tid: u32,
    thread: String,
}

struct Reader<'a> {
    message: &'a message::Profile,
    import: Import,
    /// The factors of the values of each sample type.
    factors: Vec<u64>,
    modules: HashMap<u64, (ModuleId, &'a message::Mapping)>,
    functions: HashMap<u64, &'a message::Function>,
    /// The frames of each location, the outermost first.
    locations: HashMap<u64, Vec<Place>>,
    owners: HashMap<Owner, ThreadId>,
    prune: Option<Prune>,
    /// For each sample type the metric of the base's costs, if it is a difference.
    base: Vec<MetricId>,
    /// The sum of each metric's costs above 0.
    sums: HashMap<MetricId, u64>,
    /// Other costs below 0.
    negative: Negative,
    /// The string table.
    texts: Vec<Cow<'a, str>>,
    dropped_labels: bool,
    /// How many samples lost frames that were to be dropped.
    pruned: usize,
    /// How many locations have no function.
    nameless: usize,
}

impl<'a> Reader<'a> {
    fn new(message: &'a message::Profile, budget: Budget) -> Result<Self, ReadError> {
        let types = message.sample_type.len();
        match types {
            0 => return Err(Problem::Empty("sample types").into()),
            MAX_TYPES.. => {
                let text = format!("it has {types} sample types; at most {MAX_TYPES} can be read");
                return Err(Problem::unsupported(text).into());
            }
            _ => {}
        }
        let mut import = Import::new(budget);
        let texts = message.string_table.iter().map(|text| import.text(text)).collect();
        let mut reader = Self {
            message,
            import,
            factors: Vec::new(),
            modules: HashMap::new(),
            functions: HashMap::new(),
            locations: HashMap::new(),
            owners: HashMap::new(),
            prune: None,
            base: Vec::new(),
            sums: HashMap::new(),
            negative: Negative::default(),
            texts,
            dropped_labels: false,
            pruned: 0,
            nameless: 0,
        };
        for sample_type in &message.sample_type {
            reader.metric(sample_type)?;
        }
        reader.base_metrics()?;
        reader.default_metric()?;
        reader.dropped_frames()?;
        reader.run()?;
        Ok(reader)
    }

    fn text(&self, index: i64) -> Result<&str, ReadError> {
        let found = usize::try_from(index).ok().and_then(|at| self.texts.get(at));
        match found {
            Some(text) => Ok(text),
            // Index 0 is the empty string even where there is no table.
            None if index == 0 => Ok(""),
            None => Err(Problem::missing(format!("string {index} is missing")).into()),
        }
    }

    fn string(&mut self, index: i64) -> Result<StringId, ReadError> {
        self.text(index)?;
        let text = usize::try_from(index).ok().and_then(|at| self.texts.get(at)).map_or("", Cow::as_ref);
        Ok(self.import.profile.strings.intern(text))
    }

    /// A second type of one name gets its unit or its number added, so that it can be asked for.
    fn metric(&mut self, sample_type: &message::ValueType) -> Result<(), ReadError> {
        let name = self.text(sample_type.r#type)?.to_owned();
        let unit_name = self.text(sample_type.unit)?.to_owned();
        let (unit, factor) = unit::from_name(&unit_name);
        if !matches!(unit_name.as_str(), "" | "count") && unit == treering_profile::Unit::Count {
            self.import.note(format!("the unit of {name}, {unit_name}, is taken as a count"));
        }
        self.factors.push(factor);
        let mut unique = name.clone();
        let mut number = 1;
        while self.import.profile.find_metric(&unique).is_some() {
            unique = if number == 1 { format!("{name} ({unit_name})") } else { format!("{name} {number}") };
            number += 1;
        }
        if number > 1 {
            self.import.note(format!("there are several sample types {name}: the next one is `{unique}`"));
        }
        self.import.profile.add_metric(Metric::exact(unique, unit));
        Ok(())
    }

    /// Makes metrics for the base of a difference, if it is one.
    fn base_metrics(&mut self) -> Result<(), ReadError> {
        for sample in &self.message.sample {
            if self.is_of_base(sample)? {
                let metrics = self.import.profile.metrics.clone();
                let of_base = |metric: &Metric| Metric::exact(format!("{} (base)", metric.name), metric.unit);
                self.base =
                    metrics.iter().map(|metric| self.import.profile.add_metric(of_base(metric))).collect();
                let name = &metrics[metrics.len() - 1].name;
                self.import.note(format!(
                    "it is the difference of two profiles: costs of the first are in the metrics named (base), as \
                     `{name} (base)`"
                ));
                break;
            }
        }
        Ok(())
    }

    /// Whether it is a sample of what is subtracted, as `go tool pprof -diff_base` marks them.
    fn is_of_base(&self, sample: &message::Sample) -> Result<bool, ReadError> {
        for label in &sample.label {
            if self.text(label.key)? == "pprof::base" && self.text(label.str)? == "true" {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Keeps which metric is shown first: what the file says, or else the last, as `go tool pprof`
    /// does it.
    fn default_metric(&mut self) -> Result<(), ReadError> {
        let stated = self.message.default_sample_type;
        let name = self.text(stated)?.to_owned();
        let types = &self.message.sample_type;
        let found = types.iter().position(|of| !name.is_empty() && self.text(of.r#type) == Ok(&name));
        let metric = MetricId::from_usize(found.unwrap_or(types.len() - 1));
        self.import.set_default_metric(metric);
        Ok(())
    }

    fn dropped_frames(&mut self) -> Result<(), ReadError> {
        let (drop, keep) = (self.text(self.message.drop_frames)?, self.text(self.message.keep_frames)?);
        match Prune::new(drop, keep) {
            None => {}
            Some(Ok(prune)) => self.prune = Some(prune),
            Some(Err(_)) => {
                let note =
                    format!("frames were to be dropped by `{drop}`, which {UNUSABLE}; all frames are kept");
                self.import.note(note);
            }
        }
        Ok(())
    }

    fn run(&mut self) -> Result<(), ReadError> {
        let mut comments = Vec::new();
        for &comment in &self.message.comment {
            let text = self.text(comment)?.to_owned();
            match text.strip_prefix("command: ") {
                Some(command) => {
                    let words = command.split_whitespace().map(str::to_owned);
                    self.import.profile.runs[0].command = words.collect();
                }
                None if text == FLAT => self.import.profile.recursion = RecursionRule::Flat,
                None => comments.push(text),
            }
        }
        if !comments.is_empty() {
            self.import.profile.metadata.parameters.insert("comment".to_owned(), comments.join("; "));
        }
        let run = &mut self.import.profile.runs[0];
        run.start_unix_ns = u64::try_from(self.message.time_nanos).unwrap_or(0);
        run.duration_ns = u64::try_from(self.message.duration_nanos).unwrap_or(0);
        Ok(())
    }

    fn modules(&mut self) -> Result<(), ReadError> {
        for mapping in &self.message.mapping {
            let path = self.string(mapping.filename)?;
            let build_id = hex(self.text(mapping.build_id)?);
            let module = Module { path, build_id, kind: module_kind(&self.import.profile.strings[path]) };
            let module = self.import.profile.modules.intern(module);
            self.modules.insert(mapping.id, (module, mapping));
        }
        Ok(())
    }

    fn functions(&mut self) -> Result<(), ReadError> {
        for function in &self.message.function {
            for text in [function.name, function.system_name, function.filename] {
                self.text(text)?;
            }
            self.functions.insert(function.id, function);
        }
        Ok(())
    }

    fn locations(&mut self) -> Result<(), ReadError> {
        for location in &self.message.location {
            let module = match location.mapping_id {
                0 => None,
                id => {
                    let known = self.modules.get(&id).copied();
                    Some(known.ok_or_else(|| missing("location", location.id, "mapping", id))?)
                }
            };
            let frames = self.frames(location, module)?;
            self.locations.insert(location.id, frames);
        }
        Ok(())
    }

    fn frames(
        &mut self,
        location: &message::Location,
        module: Option<(ModuleId, &message::Mapping)>,
    ) -> Result<Vec<Place>, ReadError> {
        let innermost_last = location.line.iter().enumerate().rev();
        let outermost = location.line.len().wrapping_sub(1);
        let mut frames = Vec::with_capacity(location.line.len().max(1));
        for (at, line) in innermost_last {
            let id = line.function_id;
            if id == 0 {
                frames.push((self.unresolved(location, module), None));
                continue;
            }
            let function = self.functions.get(&id).copied();
            let function = function.ok_or_else(|| missing("location", location.id, "function", id))?;
            let module = module.map(|(module, _)| module);
            let function_id = self.function(function, module, at < outermost)?;
            let line = self.line(function, line.line)?;
            frames.push((function_id, line));
        }
        if frames.is_empty() {
            frames.push((self.unresolved(location, module), None));
        }
        Ok(frames)
    }

    fn function(
        &mut self,
        function: &message::Function,
        module: Option<ModuleId>,
        inlined: bool,
    ) -> Result<FunctionId, ReadError> {
        let linkage_name = self.string(function.system_name)?;
        let name = match function.name {
            0 => linkage_name,
            name => self.string(name)?,
        };
        let kind_of_module = module.map(|module| self.import.profile.modules[module].kind);
        let (name, kind) = match kind_of_module {
            _ if inlined => (name, FunctionKind::Inlined),
            Some(ModuleKind::Kernel) => (self.unmarked(name, "_[k]"), FunctionKind::Kernel),
            Some(ModuleKind::Jit) => (self.unmarked(name, "_[j]"), FunctionKind::Jit),
            _ => (name, FunctionKind::Native),
        };
        let known = Function {
            name,
            linkage_name: if function.name == 0 || function.name == function.system_name {
                StringId::new(0)
            } else {
                linkage_name
            },
            module,
            file: self.string(function.filename)?,
            line: u32::try_from(function.start_line).unwrap_or(0),
            address: None,
            kind,
        };
        Ok(self.import.profile.functions.intern(known))
    }

    /// A name without the mark that our own files add where names would be equal otherwise.
    fn unmarked(&mut self, name: StringId, mark: &str) -> StringId {
        let bare = self.import.profile.strings[name].strip_suffix(mark).map(str::to_owned);
        bare.map_or(name, |bare| self.import.profile.strings.intern(&bare))
    }

    fn line(&mut self, function: &message::Function, line: i64) -> Result<Option<LineId>, ReadError> {
        let Some(line) = u32::try_from(line).ok().filter(|&line| line > 0) else { return Ok(None) };
        let file = self.string(function.filename)?;
        Ok(Some(self.import.profile.lines.intern(Line { file, line })))
    }

    fn unresolved(
        &mut self,
        location: &message::Location,
        module: Option<(ModuleId, &message::Mapping)>,
    ) -> FunctionId {
        let stated = |mapping: &message::Mapping| mapping.memory_start == 0 && mapping.file_offset == 0;
        let function = match module {
            Some((module, mapping)) if stated(mapping) && location.address > 0 => {
                Function::at_address(Some(module), StatedAddress(location.address))
            }
            _ => {
                self.nameless += 1;
                let module = module.map(|(module, _)| module);
                let path = module.map_or(StringId::new(0), |module| self.import.profile.modules[module].path);
                let name = format!("[{}]", file_name(&self.import.profile.strings[path]));
                let name = if path.raw() == 0 { "[unknown]" } else { name.as_str() };
                let name = self.import.profile.strings.intern(name);
                Function { module, kind: FunctionKind::Unresolved, ..Function::named(name) }
            }
        };
        self.import.profile.functions.intern(function)
    }

    fn samples(&mut self, labels: &[(String, String)]) -> Result<(), ReadError> {
        let message = self.message;
        let mut left_out = 0;
        for (at, sample) in message.sample.iter().enumerate() {
            if !self.has_labels(sample, labels)? {
                left_out += 1;
                continue;
            }
            let weights = self.weights(at, sample)?;
            let thread = self.thread(sample)?;
            self.stack(at, sample, thread, &weights)?;
        }
        let all = message.sample.len();
        if left_out > 0 {
            let wanted: Vec<_> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
            let wanted = wanted.join(", ");
            if left_out == all {
                return Err(self.no_such_labels(&wanted)?.into());
            }
            self.import.note(format!("samples without {wanted} are left out: {left_out} of {all}"));
        }
        Ok(())
    }

    /// No sample has the labels that were asked for.
    fn no_such_labels(&self, wanted: &str) -> Result<Problem, ReadError> {
        let known = self.known_labels()?.join("; ");
        Ok(Problem::missing(match known.as_str() {
            "" => format!("no sample has the label {wanted}; samples have no labels at all"),
            known => format!("no sample has the label {wanted}; there are: {known}"),
        }))
    }

    /// Keys of labels, each with some of its values.
    fn known_labels(&self) -> Result<Vec<String>, ReadError> {
        const SHOWN: usize = 5;
        let mut known: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        for label in self.message.sample.iter().flat_map(|sample| &sample.label) {
            let values = known.entry(self.text(label.key)?).or_default();
            values.insert(match label.str {
                0 => label.num.to_string(),
                text => self.text(text)?.to_owned(),
            });
        }
        let listed = |(key, values): (&str, BTreeSet<String>)| {
            let more = if values.len() > SHOWN { ", ..." } else { "" };
            let values: Vec<_> = values.into_iter().take(SHOWN).collect();
            format!("{key}={}{more}", values.join(", "))
        };
        Ok(known.into_iter().map(listed).collect())
    }

    /// Whether a sample has all of the labels. A key may have several values.
    fn has_labels(&self, sample: &message::Sample, labels: &[(String, String)]) -> Result<bool, ReadError> {
        for (key, value) in labels {
            let mut found = false;
            for label in &sample.label {
                let is_number = label.str == 0;
                let same = match is_number {
                    true => label.num.to_string() == *value,
                    false => self.text(label.str)? == value,
                };
                found |= same && self.text(label.key)? == key;
            }
            if !found {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn weights(&self, at: usize, sample: &message::Sample) -> Result<Vec<(MetricId, i128)>, ReadError> {
        let (values, types) = (sample.value.len(), self.factors.len());
        if values != types {
            let text = format!("it has {values} values for {types} sample types");
            return Err(ReadError::at(format_args!("sample {at}"), text));
        }
        let of_base = !self.base.is_empty() && self.is_of_base(sample)?;
        let weight = |(metric, (&value, &factor)): (usize, (&i64, &u64))| {
            let cost = i128::from(value) * i128::from(factor);
            if of_base { (self.base[metric], -cost) } else { (MetricId::from_usize(metric), cost) }
        };
        Ok(sample.value.iter().zip(&self.factors).enumerate().map(weight).collect())
    }

    fn stack(
        &mut self,
        at: usize,
        sample: &message::Sample,
        thread: ThreadId,
        weights: &[(MetricId, i128)],
    ) -> Result<(), ReadError> {
        self.import.begin();
        // A whole location is dropped below one that is kept only, so that something is left.
        let mut has_kept_location = false;
        for &id in sample.location_id.iter().rev() {
            let frames =
                self.locations.get(&id).ok_or_else(|| missing("sample", at as u64, "location", id))?;
            let profile = &self.import.profile;
            let name = |function| &profile.strings[profile.functions[function].name];
            let mut prune = self.prune.as_mut();
            let dropped = prune
                .as_mut()
                .and_then(|prune| frames.iter().position(|&(function, _)| prune.drops(name(function))));
            let left = match dropped {
                // Of a location that comes before one that is kept, the outermost frame stays with the others.
                Some(0) if !has_kept_location => frames.len(),
                Some(at) => at,
                None => frames.len(),
            };
            for &(function, own_line) in &frames[..left] {
                self.import.push(function, own_line);
            }
            if left < frames.len() {
                self.pruned += 1;
            }
            if dropped.is_some() && has_kept_location {
                break;
            }
            let matches = dropped.is_some();
            has_kept_location |= !matches;
        }
        let above = weights.iter().filter(|(_, cost)| *cost > 0);
        let above: Option<Vec<_>> = above.map(|&(metric, cost)| self.sum(metric, cost)).collect();
        let above = above.ok_or_else(|| ReadError::at(format_args!("sample {at}"), LARGE_SUM))?;
        let node = self.import.add(thread, &above)?;
        let line = self.import.line();
        for &(metric, cost) in weights.iter().filter(|(_, cost)| *cost < 0) {
            self.negative.self_cost(node, line, metric, cost);
        }
        Ok(())
    }

    /// A cost, if those of the metric up to it are not too large together.
    fn sum(&mut self, metric: MetricId, cost: i128) -> Option<(MetricId, u64)> {
        let cost = u64::try_from(cost).ok()?;
        let sum = self.sums.entry(metric).or_default();
        *sum = sum.checked_add(cost)?;
        Some((metric, cost))
    }

    fn thread(&mut self, sample: &message::Sample) -> Result<ThreadId, ReadError> {
        let owner = self.owner(sample)?;
        if let Some(&thread) = self.owners.get(&owner) {
            return Ok(thread);
        }
        let same = |process: &Process| process.pid == owner.pid && process.name == owner.process;
        let known = self.import.profile.processes.iter().position(same).map(ProcessId::from_usize);
        let process = known.unwrap_or_else(|| {
            let process = Process { run: self.import.run, pid: owner.pid, name: owner.process.clone() };
            self.import.profile.add_process(process)
        });
        let thread = self.import.profile.add_thread(process, owner.tid, owner.thread.clone());
        self.owners.insert(owner, thread);
        Ok(thread)
    }

    fn owner(&mut self, sample: &message::Sample) -> Result<Owner, ReadError> {
        let mut owner = Owner::default();
        for label in &sample.label {
            let (key, text) = (self.text(label.key)?, self.text(label.str)?);
            let mut dropped = false;
            let number = u32::try_from(label.num).unwrap_or(0);
            match key {
                "pprof::base" if !self.base.is_empty() => {}
                "pid" | "process_id" => owner.pid = text.parse().unwrap_or(number),
                "tid" | "thread_id" | "thread id" => owner.tid = text.parse().unwrap_or(number),
                "process" | "process_name" => text.clone_into(&mut owner.process),
                "thread" | "thread_name" | "thread name" => text.clone_into(&mut owner.thread),
                _ => dropped = true,
            }
            self.dropped_labels |= dropped;
        }
        Ok(owner)
    }

    fn finish(mut self, collector: &str) -> Result<(Profile, ReadReport), ReadError> {
        if self.negative.is_empty() {
            self.find_sampled();
        } else {
            let (nodes, columns) = (self.import.profile.tree.len(), 2 * self.import.profile.metrics.len());
            self.import.budget.numbers(nodes, columns)?;
        }
        let mut import = self.import;
        import.note_if(self.dropped_labels, "labels other than those of process and thread are not kept");
        let pruned = self.pruned;
        import.note_if(
            pruned > 0,
            &format!(
                "frames that the profile asks to drop (drop_frames) are left out (of stacks: {pruned}): their costs are \
                 their callers'"
            ),
        );
        let nameless = self.nameless;
        import.note_if(
            nameless > 0,
            &format!(
                "addresses have no function ({nameless}): those of a module are one function, named after it"
            ),
        );
        self.negative.apply(&mut import.profile, &mut import.report);
        import.finish(collector)
    }

    /// Marks metrics that are estimates: those of which there is a count of samples too, by name.
    fn find_sampled(&mut self) {
        for at in 0..self.import.profile.metrics.len() {
            let name = &self.import.profile.metrics[at].name;
            let is_period =
                self.message.period_type.as_ref().is_some_and(|period| {
                    self.text(period.r#type).is_ok_and(|period| period == name.as_str())
                });
            let own = self.import.profile.find_metric(&format!("{name} samples"));
            let shared = self.import.profile.find_metric("samples").filter(|_| is_period);
            let Some(counted_by) = own.or(shared).filter(|by| by.index() != at) else { continue };
            let period = self.period(MetricId::from_usize(at), counted_by);
            let sampling = Sampling { counted_by: counted_by.raw(), period, jittered: None, weights: None };
            self.import.profile.metrics[at].sampling = Some(sampling);
        }
    }

    /// The cost of one sample, if all cost the same.
    fn period(&self, metric: MetricId, counted_by: MetricId) -> Option<u64> {
        let tree = &self.import.profile.tree;
        let both = tree.self_costs(metric).iter().zip(tree.self_costs(counted_by));
        let (cost, samples) = both.clone().find(|(_, samples)| **samples > 0)?;
        let period = cost / samples;
        let same = both.into_iter().all(|(&cost, &samples)| samples.checked_mul(period) == Some(cost));
        same.then_some(period)
    }
}

/// A part of the message that refers to another one which is not there.
fn missing(part: &str, at: u64, other: &str, id: u64) -> ReadError {
    ReadError::at(format_args!("{part} {at}"), Problem::missing(format!("{other} {id} is missing")))
}

/// The bytes of hexadecimal digits; of anything else, its text, since some producers put a hash
/// of their own making there.
fn hex(text: &str) -> Box<[u8]> {
    let digits: Option<Vec<u8>> = text.chars().map(|c| c.to_digit(16).map(|digit| digit as u8)).collect();
    match digits {
        Some(digits) if digits.len() % 2 == 0 => {
            digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
        }
        _ => text.as_bytes().into(),
    }
}
