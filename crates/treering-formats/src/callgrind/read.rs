//! Reads callgrind files.

use std::collections::HashMap;

use treering_profile::{
    Arc, Function, FunctionId, InvalidProfile, Line as SourceLine, LineCost, LineId, Metric, MetricId,
    Module, ModuleId, ModuleKind, NodeId, Process, ProcessId, Profile, RecursionRule, Run, RunId, StringId,
    ThreadId, Unit,
};

use crate::ReadReport;
use crate::callgrind::line::{Line, Place, number, position};
use crate::callgrind::name::{Name, Names};
use crate::callgrind::{Problem, ReadError};
use crate::label::{ROOT, file_name};

/// How many events a file may have. Callgrind itself has 22.
pub(crate) const MAX_EVENTS: usize = 64;

/// Reads a callgrind file, of one or several parts, with or without compressed names and
/// positions.
///
/// The profile has arcs and, directly below each thread's root, a node for each function. Costs
/// by instruction are added up by line. Deeper levels of recursion, which callgrind names `f'2`,
/// stay functions of their own. What a function's arc to itself costs is not taken over from
/// other programs than Treering: callgrind counts nested calls there as often as they are nested.
///
/// # Errors
/// At the first line that makes no sense.
pub fn read(bytes: &[u8]) -> Result<(Profile, ReadReport), ReadError> {
    let mut reader = Reader::new();
    let mut offset = 0;
    let mut line = 0;
    for text in bytes.split(|&byte| byte == b'\n') {
        line += 1;
        let error = |problem| ReadError { line, offset, problem };
        reader.line(&String::from_utf8_lossy(text)).map_err(error)?;
        offset += text.len() as u64 + 1;
    }
    let offset = bytes.len() as u64;
    reader.finish().map_err(|problem| ReadError { line, offset, problem })
}

/// A sort of position that cost lines start with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Position {
    Line,
    /// The address of an instruction or basic block.
    Address,
}

/// What the next cost line means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pending {
    SelfCost,
    Calls(u64),
    Jump,
}

/// Where costs are charged to at this point of the file.
#[derive(Debug, Default)]
struct Current {
    object: Option<ModuleId>,
    function_file: Option<StringId>,
    /// Of the cost lines; differs from `function_file` in inlined code.
    line_file: Option<StringId>,
    function: Option<FunctionId>,
    called_object: Option<Option<ModuleId>>,
    called_file: Option<StringId>,
    called_function: Option<FunctionId>,
    jump_file: Option<StringId>,
    address: u64,
    line: u64,
}

#[derive(Debug)]
struct Reader {
    profile: Profile,
    report: ReadReport,
    positions: Vec<Position>,
    /// The metric of each column of costs.
    events: Vec<MetricId>,
    /// Long names of events, by name.
    long_names: HashMap<String, String>,
    objects: Names<Option<ModuleId>>,
    files: Names<StringId>,
    functions: Names<FunctionId>,
    current: Current,
    pending: Pending,
    arcs: HashMap<(FunctionId, FunctionId, Option<LineId>), usize>,
    pid: u32,
    thread: u32,
    threads: HashMap<(u32, u32), ThreadId>,
    /// The thread of (pid, thread), once it has costs.
    current_thread: Option<ThreadId>,
    command: String,
    from_treering: bool,
    /// What the file says its costs add up to, and from which sort of line that is.
    stated: Vec<u64>,
    part_stated: Option<Vec<u64>>,
    jumps: u64,
}

impl Reader {
    fn new() -> Self {
        let mut profile = Profile::new(RecursionRule::Full);
        profile.add_run(Run::default());
        Self {
            profile,
            report: ReadReport::default(),
            positions: vec![Position::Line],
            events: Vec::new(),
            long_names: HashMap::new(),
            objects: Names::default(),
            files: Names::default(),
            functions: Names::default(),
            current: Current::default(),
            pending: Pending::SelfCost,
            arcs: HashMap::new(),
            pid: 0,
            thread: 0,
            threads: HashMap::new(),
            current_thread: None,
            command: String::new(),
            from_treering: false,
            stated: Vec::new(),
            part_stated: None,
            jumps: 0,
        }
    }

    fn line(&mut self, text: &str) -> Result<(), Problem> {
        match Line::parse(text)? {
            Line::Nothing => Ok(()),
            Line::Header(key, value) => self.header(key, value),
            Line::Name(place, value) => self.name(place, Name::parse(value)),
            Line::Calls(count) => {
                self.pending = Pending::Calls(count);
                Ok(())
            }
            Line::Jump => {
                self.jumps += 1;
                self.pending = Pending::Jump;
                Ok(())
            }
            Line::Costs(text) => self.costs(text),
        }
    }

    fn header(&mut self, key: &str, value: &str) -> Result<(), Problem> {
        match key {
            "version" if value != "1" => return Err(Problem::Version(value.to_owned())),
            "creator" => {
                self.from_treering = value.starts_with("treering");
                self.profile.metadata.parameters.insert("creator".to_owned(), value.to_owned());
            }
            "cmd" => self.command = value.to_owned(),
            "pid" => {
                self.pid = number(value)? as u32;
                (self.thread, self.current_thread) = (0, None);
            }
            "thread" => {
                self.thread = number(value)? as u32;
                self.current_thread = None;
            }
            "part" => self.begin_part(),
            "positions" => self.set_positions(value)?,
            "events" => self.set_events(value)?,
            "event" => self.describe_event(value),
            "summary" => self.part_stated = Some(totals(value)?),
            "totals" if self.part_stated.is_none() => self.part_stated = Some(totals(value)?),
            // `desc`, `arch`, `timeframe (BB)` and what later versions add.
            _ => {}
        }
        Ok(())
    }

    /// Numbers of names and positions start anew with each part; old ones are kept, as they do
    /// no harm.
    fn begin_part(&mut self) {
        self.end_part();
        self.current = Current::default();
        self.pending = Pending::SelfCost;
    }

    fn end_part(&mut self) {
        let stated = self.part_stated.take().unwrap_or_default();
        for (&metric, stated) in self.events.iter().zip(stated) {
            let all = &mut self.stated;
            all.resize(all.len().max(metric.index() + 1), 0);
            all[metric.index()] = all[metric.index()].saturating_add(stated);
        }
    }

    fn set_positions(&mut self, value: &str) -> Result<(), Problem> {
        let position = |name| match name {
            "line" => Ok(Position::Line),
            "instr" | "bb" => Ok(Position::Address),
            other => Err(Problem::UnknownPosition(other.to_owned())),
        };
        self.positions = value.split_whitespace().map(position).collect::<Result<_, _>>()?;
        Ok(())
    }

    fn set_events(&mut self, value: &str) -> Result<(), Problem> {
        let names: Vec<_> = value.split_whitespace().collect();
        if names.len() > MAX_EVENTS || self.profile.metrics.len() + names.len() > 2 * MAX_EVENTS {
            return Err(Problem::TooManyEvents(names.len()));
        }
        self.end_part();
        self.events = names.into_iter().map(|name| self.event(name)).collect();
        Ok(())
    }

    fn event(&mut self, name: &str) -> MetricId {
        let known = self.profile.find_metric(name);
        known.unwrap_or_else(|| self.profile.add_metric(Metric::exact(name, Unit::Count)))
    }

    /// `event: name = formula : long name`, where formula and long name may be missing.
    fn describe_event(&mut self, value: &str) {
        let (name, long_name) = value.split_once(':').unwrap_or((value, ""));
        if name.contains('=') {
            let note = "derived events (`event: name = formula`) are not computed";
            if !self.report.notes.iter().any(|known| known == note) {
                self.report.notes.push(note.to_owned());
            }
        } else {
            self.long_names.insert(name.trim().to_owned(), long_name.trim().to_owned());
        }
    }

    fn name(&mut self, place: Place, name: Name<'_>) -> Result<(), Problem> {
        match place {
            Place::Object => self.current.object = self.object(name)?,
            Place::FunctionFile => {
                let file = self.file(name)?;
                self.current.function_file = Some(file);
                self.current.line_file = Some(file);
            }
            Place::LineFile => self.current.line_file = Some(self.file(name)?),
            Place::Function => {
                self.current.line_file = self.current.function_file;
                let file = self.current.function_file;
                self.current.function = Some(self.function(name, self.current.object, file)?);
            }
            Place::CalledObject => self.current.called_object = Some(self.object(name)?),
            Place::CalledFile => self.current.called_file = Some(self.file(name)?),
            Place::CalledFunction => {
                let object = self.current.called_object.take().unwrap_or(self.current.object);
                let file = self.current.called_file.take().or(self.current.line_file);
                self.current.called_function = Some(self.function(name, object, file)?);
            }
            // Jumps are not kept, but their targets may be where a name is defined.
            Place::JumpFile => self.current.jump_file = Some(self.file(name)?),
            Place::JumpFunction => {
                let file = self.current.jump_file.take().or(self.current.line_file);
                self.function(name, self.current.object, file)?;
            }
        }
        Ok(())
    }

    fn object(&mut self, name: Name<'_>) -> Result<Option<ModuleId>, Problem> {
        let profile = &mut self.profile;
        self.objects.resolve(name, |path| {
            let path = profile.strings.intern(path);
            let module = || Module { path, build_id: Box::default(), kind: ModuleKind::Elf };
            (path.raw() != 0).then(|| profile.modules.intern(module()))
        })
    }

    fn file(&mut self, name: Name<'_>) -> Result<StringId, Problem> {
        let strings = &mut self.profile.strings;
        self.files.resolve(name, |path| strings.intern(path))
    }

    fn function(
        &mut self,
        name: Name<'_>,
        module: Option<ModuleId>,
        file: Option<StringId>,
    ) -> Result<FunctionId, Problem> {
        let profile = &mut self.profile;
        let root = self.from_treering;
        self.functions.resolve(name, |name| {
            if root && name == ROOT {
                return Profile::ROOT;
            }
            let name = profile.strings.intern(name);
            let file = file.unwrap_or(StringId::new(0));
            profile.functions.intern(Function { module, file, ..Function::named(name) })
        })
    }

    fn costs(&mut self, text: &str) -> Result<(), Problem> {
        if self.events.is_empty() {
            return Err(Problem::NoEvents);
        }
        let mut fields = text.split_ascii_whitespace();
        for &sort in &self.positions {
            let last = match sort {
                Position::Line => &mut self.current.line,
                Position::Address => &mut self.current.address,
            };
            *last = position(fields.next().ok_or(Problem::NotANumber)?, *last)?;
        }
        let costs: Vec<u64> = fields.map(number).collect::<Result<_, _>>()?;
        if costs.len() > self.events.len() {
            return Err(Problem::TooManyCosts);
        }
        let function = self.current.function.ok_or(Problem::NoFunction)?;
        match std::mem::replace(&mut self.pending, Pending::SelfCost) {
            Pending::SelfCost => self.self_cost(function, &costs),
            Pending::Calls(calls) => {
                let callee = self.current.called_function.take().ok_or(Problem::NoCallee)?;
                self.call(function, callee, calls, &costs);
            }
            Pending::Jump => {}
        }
        Ok(())
    }

    fn self_cost(&mut self, function: FunctionId, costs: &[u64]) {
        let node = self.node(function);
        let line = self.source_line();
        for (&metric, &cost) in self.events.iter().zip(costs).filter(|(_, cost)| **cost > 0) {
            self.profile.tree.add_self_cost(metric, node, cost);
            if let Some(line) = line {
                self.profile.line_costs.push(LineCost { node, line, metric, cost });
            }
        }
    }

    fn call(&mut self, caller: FunctionId, callee: FunctionId, calls: u64, costs: &[u64]) {
        let call_site = self.source_line();
        // So that every function has a node, also those without costs of their own.
        self.node(caller);
        self.node(callee);
        let arcs = &mut self.profile.arcs;
        let at = *self.arcs.entry((caller, callee, call_site)).or_insert_with(|| {
            arcs.push(Arc { caller, callee, call_site, calls: 0, total_costs: Vec::new() });
            arcs.len() - 1
        });
        let arc = &mut arcs[at];
        arc.calls = arc.calls.saturating_add(calls);
        if caller == callee && !self.from_treering {
            return;
        }
        for (&metric, &cost) in self.events.iter().zip(costs) {
            match arc.total_costs.iter_mut().find(|(known, _)| *known == metric) {
                Some((_, known)) => *known = known.saturating_add(cost),
                None => arc.total_costs.push((metric, cost)),
            }
        }
    }

    /// The line of the current position; nothing for line 0, which means unknown.
    fn source_line(&mut self) -> Option<LineId> {
        let line = u32::try_from(self.current.line).ok().filter(|&line| line > 0)?;
        let file = self.current.line_file?;
        Some(self.profile.lines.intern(SourceLine { file, line }))
    }

    fn node(&mut self, function: FunctionId) -> NodeId {
        let thread = self.current_thread.unwrap_or_else(|| self.open_thread());
        self.current_thread = Some(thread);
        let root = self.profile.threads[thread.index()].root;
        if function == Profile::ROOT { root } else { self.profile.tree.child(root, function, None) }
    }

    fn open_thread(&mut self) -> ThreadId {
        let (pid, tid) = (self.pid, self.thread);
        if let Some(&known) = self.threads.get(&(pid, tid)) {
            return known;
        }
        let program = self.command.split_whitespace().next().unwrap_or_default();
        let name = file_name(program).to_owned();
        let known = self.profile.processes.iter().position(|process| process.pid == pid);
        let process = known.map(ProcessId::from_usize).unwrap_or_else(|| {
            self.profile.add_process(Process { run: RunId::new(0), pid, name: name.clone() })
        });
        let thread_name = if tid == 0 { name } else { format!("thread {tid}") };
        let thread = self.profile.add_thread(process, tid, thread_name);
        self.threads.insert((pid, tid), thread);
        thread
    }

    fn finish(mut self) -> Result<(Profile, ReadReport), Problem> {
        self.end_part();
        if self.threads.is_empty() {
            return Err(if self.events.is_empty() { Problem::NoEvents } else { Problem::Empty });
        }
        self.compare_totals();
        self.name_metrics();
        if self.jumps > 0 {
            self.report.notes.push("jumps are not kept".to_owned());
        }
        if self.positions.contains(&Position::Address) {
            self.report.notes.push("costs of instructions are added up by line".to_owned());
        }
        let mut profile = self.profile;
        profile.metadata.collector = "callgrind".to_owned();
        profile.runs[0].command = self.command.split_whitespace().map(str::to_owned).collect();
        profile.compact_line_costs();
        profile.validate().map_err(|InvalidProfile(what)| Problem::Invalid(InvalidProfile(what)))?;
        Ok((profile, self.report))
    }

    /// Says so when the costs are not what the file states, which a cut file does not notice
    /// otherwise.
    fn compare_totals(&mut self) {
        for (metric, description) in self.profile.metrics() {
            let costs = self.profile.tree.self_costs(metric).iter();
            let sum = costs.fold(0_u64, |sum, &cost| sum.saturating_add(cost));
            let stated = self.stated.get(metric.index()).copied();
            if let Some(stated) = stated.filter(|&stated| stated != sum && stated > 0) {
                let name = &description.name;
                let cut = if sum < stated { ": it may be cut short" } else { "" };
                self.report
                    .notes
                    .push(format!("the file states {stated} {name} in all but holds {sum}{cut}"));
            }
        }
    }

    /// Gives metrics the names and units that our own writer keeps in the long names of events.
    fn name_metrics(&mut self) {
        for metric in &mut self.profile.metrics {
            let Some(long_name) = self.long_names.get(&metric.name) else { continue };
            let Some((name, unit)) = long_name.rsplit_once(" [") else { continue };
            metric.unit = match unit {
                "nanoseconds]" | "ns]" => Unit::Nanoseconds,
                "bytes]" => Unit::Bytes,
                "count]" => Unit::Count,
                _ => continue,
            };
            if self.from_treering {
                name.clone_into(&mut metric.name);
            }
        }
    }
}

fn totals(value: &str) -> Result<Vec<u64>, Problem> {
    value.split_ascii_whitespace().map(number).collect()
}
