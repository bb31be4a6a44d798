//! Reads callgrind files.

use std::borrow::Cow;
use std::collections::HashMap;

use treering_profile::{
    Arc, Function, FunctionId, FunctionKind, InvalidProfile, Line as SourceLine, LineCost, LineId, Metric,
    MetricId, Module, ModuleId, ModuleKind, NodeId, Process, ProcessId, Profile, RecursionRule, Run, RunId,
    StringId, ThreadId, Unit,
};

use crate::ReadReport;
use crate::budget::Budget;
use crate::callgrind::event;
use crate::callgrind::line::{Line, Place, cost, number, position};
use crate::callgrind::name::{Name, Names};
use crate::callgrind::write::{ESTIMATED, ESTIMATED_EVENT};
use crate::callgrind::{Problem, ReadError};
use crate::label::{NOT_UTF8, ROOT, file_name, module_kind, text_of, unescaped, without_mark};
use crate::negative::Negative;

/// How many events a file may have. Callgrind itself has 22.
pub(crate) const MAX_EVENTS: usize = 256;

/// Reads a callgrind file, of one or several parts, with or without compressed names and
/// positions.
///
/// The profile has arcs and, directly below each thread's root, a node for each function. Costs
/// by instruction are added up by line. Deeper levels of recursion, which callgrind names `f'2`,
/// stay functions of their own. What a function's arc to itself costs is not taken over from
/// other programs than Treering: callgrind counts nested calls there as often as they are nested.
/// Costs that add up to less than 0 in a function become costs of a metric of their own. Names that
/// were never defined stand for themselves. Both are said.
///
/// # Errors
/// At the first line that makes no sense.
pub fn read(bytes: &[u8]) -> Result<(Profile, ReadReport), ReadError> {
    read_within(bytes, Budget::new(bytes.len()))
}

/// The same with a limit to the memory that the profile may take.
pub(crate) fn read_within(bytes: &[u8], budget: Budget) -> Result<(Profile, ReadReport), ReadError> {
    let mut reader = Reader::new(budget);
    let text = without_mark(bytes);
    let mut offset = (bytes.len() - text.len()) as u64;
    let mut line = 0;
    for text in text.split(|&byte| byte == b'\n') {
        line += 1;
        let error = |problem| ReadError { line, offset, problem };
        reader.not_utf8 |= std::str::from_utf8(text).is_err();
        reader.line(&text_of(text)).map_err(error)?;
        offset += text.len() as u64 + 1;
    }
    let offset = bytes.len() as u64;
    let cut = !bytes.ends_with(b"\n");
    let (profile, mut report) = reader.finish().map_err(|problem| ReadError { line, offset, problem })?;
    // The last line of a whole file ends as the others do.
    report.unfinished |= cut;
    Ok((profile, report))
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
    /// Number and text of a called function whose file and object may still follow.
    called_name: Option<(Option<u64>, Option<String>)>,
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
    /// Whether the writer ends files with what their costs add up to.
    states_totals: bool,
    /// Whether there are `fl=` lines.
    has_function_files: bool,
    /// Whether the file says that the costs of its arcs are estimates of ours. They are made again where they are
    /// wanted, and marked then.
    estimated: bool,
    /// What the file says its costs add up to.
    stated: Vec<i128>,
    part_stated: Option<Vec<i128>>,
    /// Whether the last part ends with what its costs add up to, so that nothing of it is missing.
    ended: bool,
    negative: Negative,
    budget: Budget,
    not_utf8: bool,
    jumps: u64,
}

impl Reader {
    fn new(budget: Budget) -> Self {
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
            states_totals: false,
            has_function_files: false,
            estimated: false,
            stated: Vec::new(),
            part_stated: None,
            ended: false,
            negative: Negative::default(),
            budget,
            not_utf8: false,
            jumps: 0,
        }
    }

    fn line(&mut self, text: &str) -> Result<(), Problem> {
        let line = Line::parse(text)?;
        let is_of_call =
            matches!(line, Line::Nothing | Line::Name(Place::CalledFile | Place::CalledObject, _));
        if !is_of_call {
            self.resolve_called()?;
        }
        match line {
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
            // Xdebug states 0.9.6, versions of other programs.
            "version" if !is_known_version(value) => return Err(Problem::Version(value.to_owned())),
            "creator" => {
                self.from_treering = value.starts_with("treering");
                self.states_totals = self.from_treering || value.starts_with("callgrind-");
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
            "summary" | "totals" => {
                self.ended = self.current.function.is_some();
                let stated = totals(value)?;
                if key == "summary" || self.part_stated.is_none() {
                    self.part_stated = Some(stated);
                }
            }
            "desc" if value == ESTIMATED => self.estimated = true,
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
            all[metric.index()] += stated;
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
        self.events = Vec::with_capacity(names.len());
        for name in names {
            let event = self.event(name);
            self.events.push(event);
        }
        Ok(())
    }

    /// The metric of an event. A second event of one name in a line is another one.
    fn event(&mut self, name: &str) -> MetricId {
        let mut unique = name.to_owned();
        let mut number = 1;
        while let Some(known) = self.profile.find_metric(&unique) {
            if !self.events.contains(&known) {
                return known;
            }
            number += 1;
            unique = format!("{name} {number}");
        }
        if number > 1 {
            self.note_once(format!("there are several events {name}: the next one is `{unique}`"));
        }
        self.profile.add_metric(Metric::exact(unique, Unit::Count))
    }

    fn note_once(&mut self, note: String) {
        if !self.report.notes.contains(&note) {
            self.report.notes.push(note);
        }
    }

    /// `event: name = formula : long name`, where formula and long name may be missing.
    fn describe_event(&mut self, value: &str) {
        let (name, long_name) = value.split_once(':').unwrap_or((value, ""));
        if name.contains('=') {
            self.note_once("derived events (`event: name = formula`) are not computed".to_owned());
        } else {
            self.long_names.insert(name.trim().to_owned(), long_name.trim().to_owned());
        }
    }

    fn name(&mut self, place: Place, name: Name<'_>) -> Result<(), Problem> {
        match place {
            Place::Object => self.current.object = self.object(name)?,
            Place::FunctionFile => {
                self.has_function_files = true;
                let file = self.file(name)?;
                self.current.function_file = Some(file);
                self.current.line_file = Some(file);
            }
            Place::LineFile => {
                let file = self.file(name)?;
                self.current.line_file = Some(file);
                // Some writers have no `fl=` and put this before a function.
                if !self.has_function_files {
                    self.current.function_file = Some(file);
                }
            }
            Place::Function => {
                self.current.line_file = self.current.function_file;
                let file = self.current.function_file;
                self.current.function = Some(self.function(name, self.current.object, file)?);
            }
            Place::CalledObject => self.current.called_object = Some(self.object(name)?),
            Place::CalledFile => self.current.called_file = Some(self.file(name)?),
            Place::CalledFunction => {
                self.current.called_name = Some((name.number, name.text.map(str::to_owned)));
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

    /// The called function, once its file and object are known: they may stand before its name or behind it.
    fn resolve_called(&mut self) -> Result<(), Problem> {
        let Some((number, text)) = self.current.called_name.take() else { return Ok(()) };
        let name = Name { number, text: text.as_deref() };
        let object = self.current.called_object.take().unwrap_or(self.current.object);
        let file = self.current.called_file.take().or(self.current.line_file);
        self.current.called_function = Some(self.function(name, object, file)?);
        Ok(())
    }

    fn object(&mut self, name: Name<'_>) -> Result<Option<ModuleId>, Problem> {
        let profile = &mut self.profile;
        self.objects.resolve(
            name,
            |_| String::new(),
            |path| {
                let path = profile.strings.intern(path);
                let kind = module_kind(&profile.strings[path]);
                let module = || Module { path, build_id: Box::default(), kind };
                (path.raw() != 0).then(|| profile.modules.intern(module()))
            },
        )
    }

    fn file(&mut self, name: Name<'_>) -> Result<StringId, Problem> {
        let strings = &mut self.profile.strings;
        self.files.resolve(name, |_| String::new(), |path| strings.intern(path))
    }

    fn function(
        &mut self,
        name: Name<'_>,
        module: Option<ModuleId>,
        file: Option<StringId>,
    ) -> Result<FunctionId, Problem> {
        let profile = &mut self.profile;
        let ours = self.from_treering;
        let undefined = |number| format!("({number})");
        self.functions.resolve(name, undefined, |name| {
            if ours && name == ROOT {
                return Profile::ROOT;
            }
            let name = if ours { unescaped(name) } else { Cow::Borrowed(name) };
            let name = profile.strings.intern(&name);
            let file = file.unwrap_or(StringId::new(0));
            let kind = match module.map(|module| profile.modules[module].kind) {
                Some(ModuleKind::Kernel) => FunctionKind::Kernel,
                Some(ModuleKind::Jit) => FunctionKind::Jit,
                _ => FunctionKind::Native,
            };
            profile.functions.intern(Function { module, file, kind, ..Function::named(name) })
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
        let costs: Vec<i128> = fields.map(cost).collect::<Result<_, _>>()?;
        if costs.len() > self.events.len() {
            return Err(Problem::TooManyCosts);
        }
        let function = self.current.function.ok_or(Problem::NoFunction)?;
        match std::mem::replace(&mut self.pending, Pending::SelfCost) {
            Pending::SelfCost => self.self_cost(function, &costs)?,
            Pending::Calls(calls) => {
                let callee = self.current.called_function.take().ok_or(Problem::NoCallee)?;
                self.call(function, callee, calls, &costs)?;
            }
            Pending::Jump => {}
        }
        Ok(())
    }

    fn self_cost(&mut self, function: FunctionId, costs: &[i128]) -> Result<(), Problem> {
        let node = self.node(function)?;
        self.ended = false;
        let line = self.source_line();
        for (&metric, &cost) in self.events.iter().zip(costs).filter(|(_, cost)| **cost != 0) {
            let Ok(cost) = u64::try_from(cost) else {
                self.negative.self_cost(node, line, metric, cost);
                continue;
            };
            self.profile.tree.add_self_cost(metric, node, cost);
            if let Some(line) = line {
                self.profile.line_costs.push(LineCost { node, line, metric, cost });
            }
        }
        Ok(())
    }

    fn call(
        &mut self,
        caller: FunctionId,
        callee: FunctionId,
        calls: u64,
        costs: &[i128],
    ) -> Result<(), Problem> {
        let call_site = self.source_line();
        // So that every function has a node, also those without costs of their own.
        self.node(caller)?;
        self.node(callee)?;
        let arcs = &mut self.profile.arcs;
        let at = *self.arcs.entry((caller, callee, call_site)).or_insert_with(|| {
            arcs.push(Arc { caller, callee, call_site, calls: 0, total_costs: Vec::new() });
            arcs.len() - 1
        });
        let arc = &mut arcs[at];
        arc.calls = arc.calls.saturating_add(calls);
        if self.estimated || caller == callee && !self.from_treering {
            return Ok(());
        }
        // Costs that are missing at the end are 0, and measured.
        let costs = costs.iter().copied().chain(std::iter::repeat(0));
        for (&metric, cost) in self.events.iter().zip(costs) {
            let Ok(cost) = u64::try_from(cost) else {
                self.negative.arc(at, metric, cost);
                continue;
            };
            match arc.total_costs.iter_mut().find(|(known, _)| *known == metric) {
                Some((_, known)) => *known = known.saturating_add(cost),
                None => arc.total_costs.push((metric, cost)),
            }
        }
        Ok(())
    }

    /// The line of the current position; nothing for line 0, which means unknown.
    fn source_line(&mut self) -> Option<LineId> {
        let line = u32::try_from(self.current.line).ok().filter(|&line| line > 0)?;
        let file = self.current.line_file?;
        Some(self.profile.lines.intern(SourceLine { file, line }))
    }

    fn node(&mut self, function: FunctionId) -> Result<NodeId, Problem> {
        let thread = self.current_thread.unwrap_or_else(|| self.open_thread());
        self.current_thread = Some(thread);
        let root = self.profile.threads[thread.index()].root;
        if function == Profile::ROOT {
            return Ok(root);
        }
        let before = self.profile.tree.len();
        let node = self.profile.tree.child(root, function, None);
        let added = self.profile.tree.len() - before;
        let columns = NODE_COLUMNS + self.profile.metrics.len();
        self.budget.numbers(added, columns).map_err(|_| Problem::TooLarge)?;
        Ok(node)
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
        // A call lacks its cost, or the totals are missing.
        self.report.unfinished = self.pending != Pending::SelfCost || self.states_totals && !self.ended;
        let is_told = self.report.unfinished || self.ended || self.part_stated.is_some();
        self.end_part();
        if self.threads.is_empty() {
            return Err(if self.events.is_empty() { Problem::NoEvents } else { Problem::Empty });
        }
        let undefined = self.objects.undefined() + self.files.undefined() + self.functions.undefined();
        if undefined > 0 {
            self.report.notes.push(format!(
                "the file uses names that it does not define ({undefined}): such files and modules are unknown, \
                 such functions are called `(number)`"
            ));
        }
        if !is_told {
            self.report
                .notes
                .push("the file states no totals, so it is not known whether it is whole".to_owned());
        }
        self.compare_totals();
        self.name_metrics();
        self.negative.apply(&mut self.profile, &mut self.report);
        if self.not_utf8 {
            self.report.notes.push(NOT_UTF8.to_owned());
        }
        if self.jumps > 0 {
            self.report.notes.push("jumps are not kept".to_owned());
        }
        if self.positions.contains(&Position::Address) {
            self.report.notes.push("costs of instructions are added up by line".to_owned());
        }
        let mut profile = self.profile;
        profile.metadata.set_foreign("callgrind");
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
            let sum = costs.map(|&cost| i128::from(cost)).sum::<i128>() + self.negative.sum(metric);
            let stated = self.stated.get(metric.index()).copied();
            if let Some(stated) = stated.filter(|&stated| stated != sum && stated != 0) {
                let name = &description.name;
                // A file that ends with its totals was not cut short.
                let cut = if sum < stated && !self.ended { ": it may be cut short" } else { "" };
                self.report
                    .notes
                    .push(format!("the file states a total of {stated} {name} but holds {sum}{cut}"));
            }
        }
    }

    /// Gives metrics the names and units that the long names of events hold, or else names such as
    /// `Time_(10ns)`, as Xdebug, and `cpu(ms)`, as `go tool pprof` writes them.
    fn name_metrics(&mut self) {
        for at in 0..self.profile.metrics.len() {
            let event = self.profile.metrics[at].name.clone();
            let long_name = self.long_names.get(&event).and_then(|name| event::split(name));
            let own_name = || event::split(&event).filter(|(name, _, _)| !name.is_empty());
            let Some((name, unit, factor)) = long_name.or_else(own_name) else { continue };
            let from_long_name = long_name.is_some();
            let rename = self.from_treering || !from_long_name;
            let metric = &mut self.profile.metrics[at];
            metric.unit = unit;
            if rename {
                name.strip_suffix(ESTIMATED_EVENT).unwrap_or(name).clone_into(&mut metric.name);
            }
            if factor > 1 {
                self.multiply(MetricId::from_usize(at), factor);
            }
        }
    }

    /// Multiplies all costs of a metric.
    fn multiply(&mut self, metric: MetricId, factor: u64) {
        let costs = self.profile.tree.self_costs(metric).iter();
        let costs = costs.map(|cost| cost.saturating_mul(factor)).collect();
        self.profile.tree.set_self_costs(metric, costs);
        let lines = self.profile.line_costs.iter_mut().filter(|line| line.metric == metric);
        lines.for_each(|line| line.cost = line.cost.saturating_mul(factor));
        let arcs = self.profile.arcs.iter_mut().flat_map(|arc| &mut arc.total_costs);
        arcs.filter(|(of, _)| *of == metric).for_each(|(_, cost)| *cost = cost.saturating_mul(factor));
        self.negative.multiply(metric, factor);
    }
}

/// What finds a node: parent, function, call site, calls and the table of children.
const NODE_COLUMNS: usize = 6;

fn is_known_version(version: &str) -> bool {
    let major = version.split('.').next().and_then(|major| major.trim().parse::<u32>().ok());
    major.is_some_and(|major| major <= 1)
}

fn totals(value: &str) -> Result<Vec<i128>, Problem> {
    value.split_ascii_whitespace().map(cost).collect()
}
