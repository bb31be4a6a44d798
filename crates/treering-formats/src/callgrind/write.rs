//! Writes callgrind files.

mod instructions;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{self, Write};

use treering_profile::{Arc, FunctionId, FunctionKind, LineId, Metadata, Metric, Profile, StringId, Unit};

use crate::Dropped;
use crate::callgrind::arc::arcs;
use crate::costs_only::costs_only;
use crate::dropped::Part;
use crate::label::{label, module_of_kind, one_line, trimmed_line};

use instructions::Instructions;

/// Writes a profile as a callgrind file of one part: for each function its self cost by line,
/// then its arcs with the total cost of the calls. Where executions of code were counted, by
/// instruction, with jumps.
///
/// # Errors
/// When the output fails.
pub fn write(profile: &Profile, output: impl Write) -> io::Result<Dropped> {
    write_with(profile, false, output)
}

/// As [`write()`], of a profile whose arcs have costs that are estimates. The file says so where
/// viewers show it, as they cannot tell such costs from measured ones: in the names of events, in the trigger that
/// KCachegrind lists with each part, and in what `callgrind_annotate` prints first.
///
/// # Errors
/// When the output fails.
pub fn write_estimated(profile: &Profile, output: impl Write) -> io::Result<Dropped> {
    write_with(profile, true, output)
}

/// In the description of a file, that the costs of its arcs are estimates.
pub(crate) const ESTIMATED: &str = "Inclusive: estimated, not measured";
/// The same behind the names of events.
pub(crate) const ESTIMATED_EVENT: &str = " (inclusive: estimated)";

/// In the description of a file, that the numbers of calls are not known.
pub(crate) const UNCOUNTED: &str = "Calls: not counted, 1 for each arc";
/// The same of a file in which some of them are.
pub(crate) const COUNTED_IN_PARTS: &str = "Calls: those that were not counted are written as 1";

/// Behind the names of events that were counted by function, beside stacks of others.
const UNKNOWN_EVENT: &str = " (inclusive: not known, self stands for it)";

fn write_with(profile: &Profile, estimated: bool, output: impl Write) -> io::Result<Dropped> {
    let mut dropped = dropped(profile);
    let profile = &*costs_only(profile);
    let events = event_names(&profile.metrics);
    let mut writer = Writer { profile, output, estimated, names: Names::default() };
    let instructions = Instructions::of(profile);
    writer.header(&events, instructions.is_some())?;
    match instructions {
        Some(instructions) => writer.instructions(&instructions)?,
        None => {
            dropped.note_parts(profile, &[Part::Code]);
            writer.functions(&Functions::of(profile))?;
        }
    }
    writer.costs_line("totals:", &run_costs(profile))?;
    writer.output.flush()?;
    let shared = writer.names.named.values().map(|functions| functions.len() - 1).sum();
    dropped.note_shared(shared, "name, file and module");
    Ok(dropped)
}

fn dropped(profile: &Profile) -> Dropped {
    let mut dropped = Dropped::default();
    dropped.note_parts(profile, &[Part::Tree, Part::Threads, Part::Times, Part::Marks]);
    let runs = profile.runs.len();
    dropped.note_if(runs > 1, "runs: their costs are added up, and only the first command is kept");
    dropped.note_parts(profile, &[Part::Sampling]);
    let counted_apart = profile.has_counts_apart();
    dropped.note_if(
        !is_counted(profile) && !counted_apart,
        "call counts: they are unknown, and written as 1 since 0 means no call",
    );
    if counted_apart {
        dropped.note_counts_of_functions(profile);
    }
    dropped.note_parts(profile, &[Part::InlinedFunctions, Part::Sources]);
    dropped.note_all_but_counts(profile);
    dropped
}

fn is_counted(profile: &Profile) -> bool {
    profile.tree.has_calls() || profile.arcs.iter().any(|arc| arc.calls > 0)
}

/// Names that KCachegrind reads as one word: letters, digits and underscores.
fn event_names(metrics: &[Metric]) -> Vec<String> {
    let mut taken = HashSet::new();
    let name = |metric: &Metric| {
        let word = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        let mut name: String = metric.name.chars().map(word).collect();
        if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
            name.insert(0, 'E');
        }
        while !taken.insert(name.clone()) {
            name.push('_');
        }
        name
    };
    metrics.iter().map(name).collect()
}

fn run_costs(profile: &Profile) -> Vec<u64> {
    profile.metrics().map(|(metric, _)| profile.run_cost(metric)).collect()
}

/// The functions and their costs, in the order of the file.
struct Functions {
    /// By module and file, so that each is stated once.
    order: Vec<FunctionId>,
    /// By function and line; line nothing comes first.
    self_costs: BTreeMap<(FunctionId, Option<LineId>), Vec<u64>>,
    arcs: HashMap<FunctionId, Vec<Arc>>,
}

impl Functions {
    fn of(profile: &Profile) -> Self {
        let self_costs = self_costs(profile);
        let mut by_caller: HashMap<FunctionId, Vec<Arc>> = HashMap::new();
        for arc in arcs(profile) {
            by_caller.entry(arc.caller).or_default().push(arc);
        }
        for arcs in by_caller.values_mut() {
            arcs.sort_by_key(|arc| (arc.call_site, arc.callee));
        }
        let mut order: Vec<_> = self_costs.keys().map(|key| key.0).chain(by_caller.keys().copied()).collect();
        order.sort_by_key(|&function| {
            let known = &profile.functions[function];
            (known.module, known.file, function)
        });
        order.dedup();
        Self { order, self_costs, arcs: by_caller }
    }
}

/// Self costs by function and line; what has no known line is under none.
fn self_costs(profile: &Profile) -> BTreeMap<(FunctionId, Option<LineId>), Vec<u64>> {
    let none = || vec![0_u64; profile.metrics.len()];
    let mut costs: BTreeMap<_, Vec<u64>> = BTreeMap::new();
    for (metric, _) in profile.metrics() {
        for (node, &cost) in profile.tree.nodes().zip(profile.tree.self_costs(metric)) {
            if cost > 0 {
                let key = (profile.tree.function(node), None);
                costs.entry(key).or_insert_with(none)[metric.index()] += cost;
            }
        }
    }
    for part in &profile.line_costs {
        let (function, metric) = (profile.tree.function(part.node), part.metric.index());
        let Some(rest) = costs.get_mut(&(function, None)) else { continue };
        // A part can never be more than the whole; a profile where it is keeps its whole.
        let cost = part.cost.min(rest[metric]);
        rest[metric] -= cost;
        costs.entry((function, Some(part.line))).or_insert_with(none)[metric] += cost;
    }
    costs.retain(|_, costs| costs.iter().any(|&cost| cost > 0));
    costs
}

/// The numbers of names that were written out. Callgrind has a space of numbers for objects, one
/// for files and one for functions; each is defined exactly once, as some readers insist.
#[derive(Default)]
struct Names {
    objects: HashMap<String, usize>,
    files: HashMap<String, usize>,
    functions: HashMap<(String, Object, StringId), usize>,
    /// The functions of each name that were written; inlined ones, which are copies, left out.
    named: HashMap<(String, Object, StringId), HashSet<FunctionId>>,
}

/// `(1) name` the first time, `(1)` from then on.
fn numbered<K: std::hash::Hash + Eq>(numbers: &mut HashMap<K, usize>, key: K, name: &str) -> String {
    let next = numbers.len() + 1;
    match *numbers.entry(key).or_insert(next) {
        number if number == next => format!("({number}) {name}"),
        number => format!("({number})"),
    }
}

struct Writer<'a, W> {
    profile: &'a Profile,
    output: W,
    /// Whether the costs of arcs are estimates.
    estimated: bool,
    names: Names,
}

/// A function's module and file, by which it is told from others of the same name.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Home {
    object: Object,
    file: StringId,
}

/// A function's module.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Object {
    Path(StringId),
    /// A name that tells the kind of functions without a module.
    Kind(&'static str),
}

impl<W: Write> Writer<'_, W> {
    fn header(&mut self, events: &[String], by_instruction: bool) -> io::Result<()> {
        writeln!(self.output, "# callgrind format\nversion: 1")?;
        writeln!(self.output, "creator: treering {}", env!("CARGO_PKG_VERSION"))?;
        if let Some(process) = self.profile.processes.first().filter(|process| process.pid > 0) {
            writeln!(self.output, "pid: {}", process.pid)?;
        }
        if let Some(run) = self.profile.runs.first().filter(|run| !run.command.is_empty()) {
            writeln!(self.output, "cmd: {}", one_line(&run.command.join(" ")))?;
        }
        if let Some(measuring) = self.profile.metadata.parameters.get(Metadata::MEASURING) {
            writeln!(self.output, "desc: {}: {}", Metadata::MEASURING, one_line(measuring))?;
        }
        let positions = if by_instruction { "instr line" } else { "line" };
        writeln!(self.output, "part: 1\n")?;
        if self.estimated {
            writeln!(self.output, "desc: {ESTIMATED}")?;
            writeln!(self.output, "desc: Trigger: inclusive costs are estimated, not measured\n")?;
        }
        match (self.profile.has_counts_apart(), is_counted(self.profile)) {
            (true, _) => writeln!(self.output, "desc: {COUNTED_IN_PARTS}\n")?,
            (false, false) => writeln!(self.output, "desc: {UNCOUNTED}\n")?,
            (false, true) => {}
        }
        writeln!(self.output, "positions: {positions}")?;
        for (name, (id, metric)) in events.iter().zip(self.profile.metrics()) {
            let estimated = match self.estimated {
                true => ESTIMATED_EVENT,
                false if self.profile.has_no_stacks_of(id) => UNKNOWN_EVENT,
                false => "",
            };
            let unit = unit_word(metric.unit);
            writeln!(self.output, "event: {name} : {}{estimated} [{unit}]", one_line(&metric.name))?;
        }
        // Last of these, as callgrind_annotate takes it for the end of the header.
        writeln!(self.output, "events: {}", events.join(" "))?;
        self.costs_line("summary:", &run_costs(self.profile))
    }

    fn functions(&mut self, functions: &Functions) -> io::Result<()> {
        let mut last = None;
        for &function in &functions.order {
            self.begin_function(function, last)?;
            last = Some(self.home(function));
            let (first, end) = ((function, None), (function, Some(LineId::new(u32::MAX))));
            let mut file = self.home(function).file;
            for ((_, line), costs) in functions.self_costs.range(first..=end) {
                let number = self.line(*line, &mut file)?;
                self.costs_line(&number.to_string(), costs)?;
            }
            for arc in functions.arcs.get(&function).into_iter().flatten() {
                self.arc(arc, &mut file)?;
            }
        }
        writeln!(self.output)
    }

    fn begin_function(&mut self, function: FunctionId, last: Option<Home>) -> io::Result<()> {
        let home = self.home(function);
        writeln!(self.output)?;
        if last.is_none_or(|last| last.object != home.object) {
            let object = self.object_name(home.object);
            writeln!(self.output, "ob={object}")?;
        }
        // `fn=` goes back to the file of the last `fl=` by itself.
        if last.is_none_or(|last| last.file != home.file) {
            let file = self.file_name(home.file);
            writeln!(self.output, "fl={file}")?;
        }
        let name = self.function_name(function, home);
        writeln!(self.output, "fn={name}")
    }

    /// The number of a line, after its file if that is not the current one; 0 if unknown.
    fn line(&mut self, line: Option<LineId>, current: &mut StringId) -> io::Result<u32> {
        let Some(line) = line.map(|line| self.profile.lines[line]) else { return Ok(0) };
        if line.file != *current {
            *current = line.file;
            let file = self.file_name(line.file);
            writeln!(self.output, "fi={file}")?;
        }
        Ok(line.line)
    }

    fn arc(&mut self, arc: &Arc, file: &mut StringId) -> io::Result<()> {
        let number = self.line(arc.call_site, file)?;
        let (here, there) = (self.home(arc.caller), self.home(arc.callee));
        if here.object != there.object {
            let object = self.object_name(there.object);
            writeln!(self.output, "cob={object}")?;
        }
        if *file != there.file {
            let file = self.file_name(there.file);
            writeln!(self.output, "cfi={file}")?;
        }
        let name = self.function_name(arc.callee, there);
        let start = self.profile.functions[arc.callee].line;
        writeln!(self.output, "cfn={name}\ncalls={} {start}", arc.calls.max(1))?;
        let mut costs = vec![0; self.profile.metrics.len()];
        for &(metric, cost) in &arc.total_costs {
            costs[metric.index()] = cost;
        }
        self.costs_line(&number.to_string(), &costs)
    }

    /// Costs after what they belong to; zeros at the end are left out, but for the first number.
    fn costs_line(&mut self, what: &str, costs: &[u64]) -> io::Result<()> {
        let length = costs.iter().rposition(|&cost| cost > 0).map_or(1, |last| last + 1);
        write!(self.output, "{what}")?;
        for cost in costs.iter().take(length) {
            write!(self.output, " {cost}")?;
        }
        writeln!(self.output)
    }

    fn home(&self, function: FunctionId) -> Home {
        let function = &self.profile.functions[function];
        let object = match (function.module, module_of_kind(function.kind)) {
            (Some(module), _) => Object::Path(self.profile.modules[module].path),
            (None, Some(name)) => Object::Kind(name),
            (None, None) => Object::Path(StringId::new(0)),
        };
        Home { object, file: function.file }
    }

    fn object_name(&mut self, object: Object) -> String {
        let name = match object {
            Object::Path(path) => known(&self.profile.strings[path]),
            Object::Kind(name) => name.to_owned(),
        };
        numbered(&mut self.names.objects, name.clone(), &name)
    }

    fn file_name(&mut self, path: StringId) -> String {
        let name = known(&self.profile.strings[path]);
        numbered(&mut self.names.files, name.clone(), &name)
    }

    fn function_name(&mut self, function: FunctionId, home: Home) -> String {
        let name = trimmed_line(&label(self.profile, function)).into_owned();
        let key = (name.clone(), home.object, home.file);
        if self.profile.functions[function].kind != FunctionKind::Inlined {
            self.names.named.entry(key.clone()).or_default().insert(function);
        }
        numbered(&mut self.names.functions, key, &name)
    }
}

/// A path, or callgrind's sign for an unknown one.
fn known(path: &str) -> String {
    let path = one_line(path);
    if path.trim().is_empty() { "???".to_owned() } else { path.into_owned() }
}

fn unit_word(unit: Unit) -> &'static str {
    match unit {
        Unit::Nanoseconds => "nanoseconds",
        Unit::Bytes => "bytes",
        _ => "count",
    }
}
