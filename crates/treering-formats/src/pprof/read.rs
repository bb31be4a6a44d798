//! Reads pprof profiles.

use std::collections::HashMap;

use prost::Message as _;
use treering_profile::{
    Frame, Function, FunctionId, FunctionKind, Line, LineId, Metric, MetricId, Module, ModuleId, ModuleKind,
    Process, ProcessId, Profile, RecursionRule, Run, RunId, Sampling, StatedAddress, StringId, ThreadId,
};

use crate::ReadReport;
use crate::budget::Budget;
use crate::label::file_name;
use crate::pprof::{ReadError, message, unit, unzip};

/// How many sample types a profile may have.
pub(crate) const MAX_TYPES: usize = 64;

/// Reads a pprof profile, compressed or not.
///
/// Each sample type becomes a metric. One that is worth its period for each of `samples`, or of
/// `NAME samples`, is taken as sampled. Samples with labels for process or thread (`pid`,
/// `process`, `tid`, `thread` and their variants) go to threads of their own; other labels are
/// dropped. Frames without a function become one function for each mapping, or stay addresses
/// where the mapping says that they are those stated in the binary.
///
/// # Errors
/// When it is damaged, refers to what is missing, or has negative values.
pub fn read(bytes: &[u8]) -> Result<(Profile, ReadReport), ReadError> {
    let unzipped = unzip(bytes)?;
    let message = message::Profile::decode(&*unzipped);
    let message = message.map_err(|error| ReadError::Protobuf(error.to_string()))?;
    let mut reader = Reader::new(&message, Budget::new(unzipped.len()))?;
    reader.modules()?;
    reader.functions()?;
    reader.locations()?;
    reader.samples()?;
    reader.finish()
}

/// A frame of a location: its function and the line that runs in it.
type Place = (FunctionId, Option<LineId>);

/// Which process and thread a sample is of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Owner {
    pid: u32,
    process: String,
    tid: u32,
    thread: String,
}

struct Reader<'a> {
    message: &'a message::Profile,
    profile: Profile,
    report: ReadReport,
    budget: Budget,
    /// What the values of each sample type are multiplied by.
    factors: Vec<u64>,
    modules: HashMap<u64, (ModuleId, &'a message::Mapping)>,
    functions: HashMap<u64, &'a message::Function>,
    /// The frames of each location, the outermost first.
    locations: HashMap<u64, Vec<Place>>,
    owners: HashMap<Owner, ThreadId>,
    dropped_labels: bool,
}

impl<'a> Reader<'a> {
    fn new(message: &'a message::Profile, budget: Budget) -> Result<Self, ReadError> {
        let types = message.sample_type.len();
        match types {
            0 => return Err(ReadError::NoSampleTypes),
            MAX_TYPES.. => return Err(ReadError::TooManySampleTypes(types)),
            _ => {}
        }
        let mut reader = Self {
            message,
            profile: Profile::new(RecursionRule::Full),
            report: ReadReport::default(),
            budget,
            factors: Vec::new(),
            modules: HashMap::new(),
            functions: HashMap::new(),
            locations: HashMap::new(),
            owners: HashMap::new(),
            dropped_labels: false,
        };
        for sample_type in &message.sample_type {
            reader.metric(sample_type)?;
        }
        reader.run()?;
        Ok(reader)
    }

    fn text(&self, index: i64) -> Result<&'a str, ReadError> {
        let table = &self.message.string_table;
        let found = usize::try_from(index).ok().and_then(|at| table.get(at));
        match found {
            Some(text) => Ok(text),
            // Index 0 is the empty string even where there is no table.
            None if index == 0 => Ok(""),
            None => Err(ReadError::MissingString(index)),
        }
    }

    fn string(&mut self, index: i64) -> Result<StringId, ReadError> {
        Ok(self.profile.strings.intern(self.text(index)?))
    }

    fn metric(&mut self, sample_type: &message::ValueType) -> Result<(), ReadError> {
        let (name, unit_name) = (self.text(sample_type.r#type)?, self.text(sample_type.unit)?);
        let (unit, factor) = unit::from_name(unit_name);
        if !matches!(unit_name, "" | "count") && unit == treering_profile::Unit::Count {
            self.report.notes.push(format!("the unit of {name}, {unit_name}, is taken as a count"));
        }
        self.factors.push(factor);
        self.profile.add_metric(Metric::exact(name, unit));
        Ok(())
    }

    fn run(&mut self) -> Result<(), ReadError> {
        let mut run = Run {
            start_unix_ns: u64::try_from(self.message.time_nanos).unwrap_or(0),
            duration_ns: u64::try_from(self.message.duration_nanos).unwrap_or(0),
            ..Run::default()
        };
        let mut comments = Vec::new();
        for &comment in &self.message.comment {
            let text = self.text(comment)?;
            match text.strip_prefix("command: ") {
                Some(command) => run.command = command.split_whitespace().map(str::to_owned).collect(),
                None => comments.push(text),
            }
        }
        if !comments.is_empty() {
            self.profile.metadata.parameters.insert("comment".to_owned(), comments.join("; "));
        }
        self.profile.add_run(run);
        Ok(())
    }

    fn modules(&mut self) -> Result<(), ReadError> {
        for mapping in &self.message.mapping {
            let name = self.text(mapping.filename)?;
            let module = Module {
                path: self.profile.strings.intern(name),
                build_id: hex(self.text(mapping.build_id)?),
                kind: module_kind(name),
            };
            let module = self.profile.modules.intern(module);
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
                    Some(known.ok_or(ReadError::MissingMapping { location: location.id, id })?)
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
            let function = self.functions.get(&id).copied();
            let function = function.ok_or(ReadError::MissingFunction { location: location.id, id })?;
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
        let name = self.string(function.name)?;
        let linkage_name = self.string(function.system_name)?;
        let kernel = module.is_some_and(|module| self.profile.modules[module].kind == ModuleKind::Kernel);
        let kind = match (inlined, kernel) {
            (true, _) => FunctionKind::Inlined,
            (false, true) => FunctionKind::Kernel,
            (false, false) => FunctionKind::Native,
        };
        let known = Function {
            // A function may have only the name of the symbol table.
            name: if name.raw() == 0 { linkage_name } else { name },
            linkage_name: if name == linkage_name { StringId::new(0) } else { linkage_name },
            module,
            file: self.string(function.filename)?,
            line: u32::try_from(function.start_line).unwrap_or(0),
            address: None,
            kind,
        };
        Ok(self.profile.functions.intern(known))
    }

    fn line(&mut self, function: &message::Function, line: i64) -> Result<Option<LineId>, ReadError> {
        let Some(line) = u32::try_from(line).ok().filter(|&line| line > 0) else { return Ok(None) };
        let file = self.string(function.filename)?;
        Ok(Some(self.profile.lines.intern(Line { file, line })))
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
                let module = module.map(|(module, _)| module);
                let path = module.map_or(StringId::new(0), |module| self.profile.modules[module].path);
                let name = format!("[{}]", file_name(&self.profile.strings[path]));
                let name = if path.raw() == 0 { "[unknown]" } else { name.as_str() };
                let name = self.profile.strings.intern(name);
                Function { module, kind: FunctionKind::Unresolved, ..Function::named(name) }
            }
        };
        self.profile.functions.intern(function)
    }

    fn samples(&mut self) -> Result<(), ReadError> {
        let message = self.message;
        for (at, sample) in message.sample.iter().enumerate() {
            let weights = self.weights(at, sample)?;
            let thread = self.thread(sample)?;
            self.stack(at, sample, thread, &weights)?;
        }
        Ok(())
    }

    fn weights(&self, at: usize, sample: &message::Sample) -> Result<Vec<(MetricId, u64)>, ReadError> {
        let (values, types) = (sample.value.len(), self.factors.len());
        if values != types {
            return Err(ReadError::ValueCount { sample: at, values, types });
        }
        let weight = |(metric, (&value, &factor)): (usize, (&i64, &u64))| {
            let positive = u64::try_from(value);
            let positive = positive.map_err(|_| ReadError::NegativeValue { sample: at, value })?;
            Ok((MetricId::from_usize(metric), positive.saturating_mul(factor)))
        };
        sample.value.iter().zip(&self.factors).enumerate().map(weight).collect()
    }

    fn stack(
        &mut self,
        at: usize,
        sample: &message::Sample,
        thread: ThreadId,
        weights: &[(MetricId, u64)],
    ) -> Result<(), ReadError> {
        let mut stack = Vec::new();
        let mut line = None;
        for &id in sample.location_id.iter().rev() {
            let frames = self.locations.get(&id).ok_or(ReadError::MissingLocation { sample: at, id })?;
            for &(function, own_line) in frames {
                stack.push(Frame { function, call_site: line });
                line = own_line;
            }
        }
        let before = self.profile.tree.len();
        let filled: Vec<_> = weights.iter().copied().filter(|(_, cost)| *cost > 0).collect();
        self.profile.add_stack(thread, &stack, line, &filled);
        let added = self.profile.tree.len() - before;
        self.budget
            .numbers(added, 2 + self.factors.len())
            .map_err(|_| ReadError::TooLarge { limit: self.profile.tree.len() as u64 })
    }

    fn thread(&mut self, sample: &message::Sample) -> Result<ThreadId, ReadError> {
        let owner = self.owner(sample)?;
        if let Some(&thread) = self.owners.get(&owner) {
            return Ok(thread);
        }
        let same = |process: &Process| process.pid == owner.pid && process.name == owner.process;
        let known = self.profile.processes.iter().position(same).map(ProcessId::from_usize);
        let process = known.unwrap_or_else(|| {
            let process = Process { run: RunId::new(0), pid: owner.pid, name: owner.process.clone() };
            self.profile.add_process(process)
        });
        let thread = self.profile.add_thread(process, owner.tid, owner.thread.clone());
        self.owners.insert(owner, thread);
        Ok(thread)
    }

    fn owner(&mut self, sample: &message::Sample) -> Result<Owner, ReadError> {
        let mut owner = Owner::default();
        for label in &sample.label {
            let (key, text) = (self.text(label.key)?, self.text(label.str)?);
            let number = u32::try_from(label.num).unwrap_or(0);
            match key {
                "pid" | "process_id" => owner.pid = text.parse().unwrap_or(number),
                "tid" | "thread_id" | "thread id" => owner.tid = text.parse().unwrap_or(number),
                "process" | "process_name" => text.clone_into(&mut owner.process),
                "thread" | "thread_name" | "thread name" => text.clone_into(&mut owner.thread),
                _ => self.dropped_labels = true,
            }
        }
        Ok(owner)
    }

    fn finish(mut self) -> Result<(Profile, ReadReport), ReadError> {
        self.find_sampled();
        if self.dropped_labels {
            self.report.notes.push("labels other than those of process and thread are not kept".to_owned());
        }
        self.profile.metadata.collector = "pprof".to_owned();
        self.profile.compact_line_costs();
        self.profile.validate().map_err(ReadError::Invalid)?;
        Ok((self.profile, self.report))
    }

    /// Marks metrics that are estimates: those of which there is a count of samples too, by name.
    fn find_sampled(&mut self) {
        for at in 0..self.profile.metrics.len() {
            let name = &self.profile.metrics[at].name;
            let is_period =
                self.message.period_type.as_ref().is_some_and(|period| {
                    self.text(period.r#type).is_ok_and(|period| period == name.as_str())
                });
            let own = self.profile.find_metric(&format!("{name} samples"));
            let shared = self.profile.find_metric("samples").filter(|_| is_period);
            let Some(counted_by) = own.or(shared).filter(|by| by.index() != at) else { continue };
            let period = self.period(MetricId::from_usize(at), counted_by);
            let sampling = Sampling { counted_by: counted_by.raw(), period, jittered: None };
            self.profile.metrics[at].sampling = Some(sampling);
        }
    }

    /// What one sample is worth, if all are worth the same.
    fn period(&self, metric: MetricId, counted_by: MetricId) -> Option<u64> {
        let tree = &self.profile.tree;
        let both = tree.self_costs(metric).iter().zip(tree.self_costs(counted_by));
        let (cost, samples) = both.clone().find(|(_, samples)| **samples > 0)?;
        let period = cost / samples;
        let same = both.into_iter().all(|(&cost, &samples)| samples.checked_mul(period) == Some(cost));
        same.then_some(period)
    }
}

fn module_kind(name: &str) -> ModuleKind {
    match name {
        "[vdso]" | "linux-vdso.so.1" => ModuleKind::Vdso,
        _ if name.starts_with("[kernel") || name.ends_with(".ko") => ModuleKind::Kernel,
        _ if name.starts_with('/') => ModuleKind::Elf,
        _ => ModuleKind::Other,
    }
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
