//! Reads callgrind files.

use std::borrow::Cow;
use std::collections::HashMap;

use treering_profile::{
    Arc, Function, FunctionId, FunctionKind, Line as SourceLine, LineCost, LineId, Metric, MetricId,
    ModuleId, ModuleKind, NodeId, Profile, StringId, ThreadId, Unit, pluralize,
};

use crate::budget::Budget;
use crate::callgrind::event;
use crate::callgrind::line::{Line, NO_NUMBER, Place, cost, number, position};
use crate::callgrind::name::{Name, Names};
use crate::callgrind::write::{COUNTED_IN_PARTS, ESTIMATED, ESTIMATED_EVENT, UNCOUNTED};
use crate::import::Import;
use crate::label::{ROOT, file_name, unescaped};
use crate::negative::Negative;
use crate::text_line::text_lines;
use crate::{Problem, ReadError, ReadReport};

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
    for line in text_lines(bytes) {
        let text = reader.import.text(line.bytes);
        reader.line(&text).map_err(|problem| line.error(problem))?;
    }
    // The last line of a whole file ends as the others do.
    reader.finish(!bytes.ends_with(b"\n"))
}

/// A sort of position that cost lines start with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Position {
    Line,
    /// The address of an instruction or basic block.
    Address,
}

/// The meaning of the next cost line.
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

struct Reader {
    import: Import,
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
    /// Whether the file says that its calls were not counted.
    uncounted: bool,
    /// The totals that the file states.
    stated: Vec<i128>,
    part_stated: Option<Vec<i128>>,
    /// Whether the last part ends with what its costs add up to, so that nothing of it is missing.
    ended: bool,
    negative: Negative,
    jumps: u64,
}

impl Reader {
    fn new(budget: Budget) -> Self {
        Self {
            import: Import::new(budget),
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
            uncounted: false,
            stated: Vec::new(),
            part_stated: None,
            ended: false,
            negative: Negative::default(),
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
            "version" if !is_known_version(value) => {
                return Err(Problem::unsupported(format!(
                    "version {value} is not known; versions up to 1 are"
                )));
            }
            "creator" => {
                self.from_treering = value.starts_with("treering");
                self.states_totals = self.from_treering || value.starts_with("callgrind-");
                self.import.profile.metadata.parameters.insert("creator".to_owned(), value.to_owned());
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
            "desc" if value == UNCOUNTED => self.uncounted = true,
            "desc" if value == COUNTED_IN_PARTS => {
                self.note_once("calls that were not counted stand in the file as 1".to_owned());
            }
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
            other => Err(Problem::unsupported(format!("positions of the sort `{other}` are not known"))),
        };
        self.positions = value.split_whitespace().map(position).collect::<Result<_, _>>()?;
        Ok(())
    }

    fn set_events(&mut self, value: &str) -> Result<(), Problem> {
        let names: Vec<_> = value.split_whitespace().collect();
        if names.len() > MAX_EVENTS || self.import.profile.metrics.len() + names.len() > 2 * MAX_EVENTS {
            let text = format!("there are {} events; at most {MAX_EVENTS} can be read", names.len());
            return Err(Problem::unsupported(text));
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
        while let Some(known) = self.import.profile.find_metric(&unique) {
            if !self.events.contains(&known) {
                return known;
            }
            number += 1;
            unique = format!("{name} {number}");
        }
        if number > 1 {
            self.note_once(format!("there are several events {name}: the next one is `{unique}`"));
        }
        self.import.profile.add_metric(Metric::exact(unique, Unit::Count))
    }

    fn note_once(&mut self, note: String) {
        if !self.import.report.notes.contains(&note) {
            self.import.note(note);
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
        let import = &mut self.import;
        self.objects.resolve(name, |_| String::new(), |path| (!path.is_empty()).then(|| import.module(path)))
    }

    fn file(&mut self, name: Name<'_>) -> Result<StringId, Problem> {
        let strings = &mut self.import.profile.strings;
        self.files.resolve(name, |_| String::new(), |path| strings.intern(path))
    }

    fn function(
        &mut self,
        name: Name<'_>,
        module: Option<ModuleId>,
        file: Option<StringId>,
    ) -> Result<FunctionId, Problem> {
        let profile = &mut self.import.profile;
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
            return Err(NO_EVENTS.into());
        }
        let mut fields = text.split_ascii_whitespace();
        for &sort in &self.positions {
            let last = match sort {
                Position::Line => &mut self.current.line,
                Position::Address => &mut self.current.address,
            };
            *last = position(fields.next().ok_or(NO_NUMBER)?, *last)?;
        }
        let costs: Vec<i128> = fields.map(cost).collect::<Result<_, _>>()?;
        if costs.len() > self.events.len() {
            return Err("there are more costs than events".into());
        }
        let function = self.current.function.ok_or("costs stand before the first `fn=` line")?;
        match std::mem::replace(&mut self.pending, Pending::SelfCost) {
            Pending::SelfCost => self.self_cost(function, &costs)?,
            Pending::Calls(calls) => {
                let callee = self
                    .current
                    .called_function
                    .take()
                    .ok_or("the cost of a call stands without a `cfn=` line")?;
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
            self.import.profile.tree.add_self_cost(metric, node, cost);
            if let Some(line) = line {
                self.import.profile.line_costs.push(LineCost { node, line, metric, cost });
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
        let arcs = &mut self.import.profile.arcs;
        let at = *self.arcs.entry((caller, callee, call_site)).or_insert_with(|| {
            arcs.push(Arc { caller, callee, call_site, calls: 0, total_costs: Vec::new() });
            arcs.len() - 1
        });
        let arc = &mut arcs[at];
        if !self.uncounted {
            arc.calls = arc.calls.saturating_add(calls);
        }
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
        Some(self.import.profile.lines.intern(SourceLine { file, line }))
    }

    fn node(&mut self, function: FunctionId) -> Result<NodeId, Problem> {
        let thread = self.current_thread.unwrap_or_else(|| self.open_thread());
        self.current_thread = Some(thread);
        let root = self.import.profile.threads[thread.index()].root;
        if function == Profile::ROOT {
            return Ok(root);
        }
        Ok(self.import.child(root, function)?)
    }

    fn open_thread(&mut self) -> ThreadId {
        let (pid, tid) = (self.pid, self.thread);
        if let Some(&known) = self.threads.get(&(pid, tid)) {
            return known;
        }
        let program = self.command.split_whitespace().next().unwrap_or_default();
        let name = file_name(program).to_owned();
        let process = self.import.process(pid, &name);
        let thread_name = if tid == 0 { name } else { format!("thread {tid}") };
        let thread = self.import.profile.add_thread(process, tid, thread_name);
        self.threads.insert((pid, tid), thread);
        thread
    }

    fn finish(mut self, is_cut: bool) -> Result<(Profile, ReadReport), ReadError> {
        // A call lacks its cost, or the totals are missing.
        let lacks_end = self.pending != Pending::SelfCost || self.states_totals && !self.ended;
        let unfinished = lacks_end || is_cut;
        let is_told = unfinished || self.ended || self.part_stated.is_some();
        // Numbers of totals that are cut themselves are no totals.
        let are_totals_cut = is_cut && self.ended;
        self.end_part();
        if self.threads.is_empty() {
            return Err(Problem::Empty(if self.events.is_empty() { "events" } else { "costs" }).into());
        }
        let undefined = self.objects.undefined() + self.files.undefined() + self.functions.undefined();
        self.import.note_if(
            undefined > 0,
            &format!(
                "the file uses names that it does not define ({undefined}): such files and modules are unknown, such \
                 functions are called `(number)`"
            ),
        );
        self.import.note_if(!is_told, "the file states no totals, so it is not known whether it is whole");
        let is_short = !are_totals_cut && self.compare_totals();
        // A loss is said once: with its amount, if that is known.
        self.import.report.unfinished = unfinished && !is_short;
        self.name_metrics();
        let mut import = self.import;
        self.negative.apply(&mut import.profile, &mut import.report);
        import.note_if(self.jumps > 0, "jumps are not kept");
        import.note_if(
            self.positions.contains(&Position::Address),
            "costs of instructions are added up by line",
        );
        import.profile.runs[0].command = self.command.split_whitespace().map(str::to_owned).collect();
        import.finish("callgrind")
    }

    /// Says so when the costs are not what the file states, which a cut file does not notice
    /// otherwise. Returns whether it said that the file may be cut short.
    fn compare_totals(&mut self) -> bool {
        let sum = |metric: MetricId| {
            let costs = self.import.profile.tree.self_costs(metric).iter();
            costs.map(|&cost| i128::from(cost)).sum::<i128>() + self.negative.sum(metric)
        };
        let other = |(metric, description): (MetricId, &Metric)| {
            let (sum, stated) = (sum(metric), *self.stated.get(metric.index())?);
            (stated != sum && stated != 0).then(|| (stated, sum, description.name.clone()))
        };
        let others: Vec<_> = self.import.profile.metrics().filter_map(other).collect();
        let Some((stated, sum, name)) = others.first() else { return false };
        // A file that ends with its totals was not cut short.
        let is_short = !self.ended && others.iter().all(|(stated, sum, _)| sum < stated);
        let more = others.len() as u64 - 1;
        let more = match more {
            0 => String::new(),
            more => format!(" (and {})", pluralize(more, "other total differs", "other totals differ")),
        };
        let cut = if is_short { ": it may be cut short" } else { "" };
        let note = format!("the file states a total of {stated} {name} but holds {sum}{more}{cut}");
        self.import.report.notes.push(note);
        is_short
    }

    /// Gives metrics the names and units that the long names of events hold, or else names such as
    /// `Time_(10ns)`, as Xdebug, and `cpu(ms)`, as `go tool pprof` writes them.
    fn name_metrics(&mut self) {
        for at in 0..self.import.profile.metrics.len() {
            let event = self.import.profile.metrics[at].name.clone();
            let long_name = self.long_names.get(&event).and_then(|name| event::split(name));
            let own_name = || event::split(&event).filter(|(name, _, _)| !name.is_empty());
            let Some((name, unit, factor)) = long_name.or_else(own_name) else { continue };
            let from_long_name = long_name.is_some();
            let rename = self.from_treering || !from_long_name;
            let metric = &mut self.import.profile.metrics[at];
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
        let costs = self.import.profile.tree.self_costs(metric).iter();
        let costs = costs.map(|cost| cost.saturating_mul(factor)).collect();
        self.import.profile.tree.set_self_costs(metric, costs);
        let lines = self.import.profile.line_costs.iter_mut().filter(|line| line.metric == metric);
        lines.for_each(|line| line.cost = line.cost.saturating_mul(factor));
        let arcs = self.import.profile.arcs.iter_mut().flat_map(|arc| &mut arc.total_costs);
        arcs.filter(|(of, _)| *of == metric).for_each(|(_, cost)| *cost = cost.saturating_mul(factor));
        self.negative.multiply(metric, factor);
    }
}

const NO_EVENTS: &str = "costs stand before the `events:` line";

fn is_known_version(version: &str) -> bool {
    let major = version.split('.').next().and_then(|major| major.trim().parse::<u32>().ok());
    major.is_some_and(|major| major <= 1)
}

fn totals(value: &str) -> Result<Vec<i128>, Problem> {
    value.split_ascii_whitespace().map(cost).collect()
}
