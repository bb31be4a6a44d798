//! Reads a live file into a profile.

use std::cell::Cell;
use std::collections::HashMap;

use treering_events::{
    Finding, Findings, Forest, Measured, Ref, SIZE_CLASSES, View, clock, flag, function_kind, mode, notes,
    rule, setting,
};
use treering_profile::{
    Activations, Benchmark, CallBias, Function, FunctionId, FunctionKind, Line, LineCost, LineId, Losses,
    Metric, MetricId, Module, ModuleId, ModuleKind, NodeId, NodeMemory, Point, Ports, Process, Profile,
    RecursionRule, Run, RunId, SizeCost, StatedAddress, ThreadId, Unit,
};

use crate::live::{FileState, Running, ThreadNow};
use crate::{ReadError, ReadReport};

/// Reads a live file whose writer has ended. Activations that were open count up to the last
/// event.
///
/// # Errors
/// When the bytes are no live file of the version that is known.
pub fn read(bytes: &[u8]) -> Result<(Profile, ReadReport), ReadError> {
    read_at(bytes, None)
}

/// Reads a live file while its writer runs: open activations count up to `raw_now_ns`, which is
/// `CLOCK_MONOTONIC_RAW` in nanoseconds.
///
/// # Errors
/// As for [`read`].
pub fn read_at(bytes: &[u8], raw_now_ns: Option<u64>) -> Result<(Profile, ReadReport), ReadError> {
    read_running(bytes, raw_now_ns).map(|running| (running.profile, running.report))
}

/// As [`read_at`], with what the threads of the program are doing.
///
/// # Errors
/// As for [`read`].
pub fn read_running(bytes: &[u8], raw_now_ns: Option<u64>) -> Result<Running, ReadError> {
    let view = super::view(bytes)?;
    let header = view.header();
    let ticks_of = |raw_ns: u64| {
        let passed = raw_ns.saturating_sub(header.start_raw_ns) as f64 / header.ns_per_tick;
        header.start_ticks.saturating_add(passed as u64)
    };
    let forest = Forest::of(&view, raw_now_ns.map(ticks_of));
    let mut reader = Reader::new(&view, &forest);
    reader.add_metadata();
    reader.add_functions();
    reader.add_trees(&forest);
    reader.add_lines(&forest);
    reader.add_points(&forest);
    reader.add_duration(&forest, raw_now_ns);
    notes(&view, &forest).into_iter().for_each(|note| reader.profile.metadata.note(note));
    let found = view.examine(raw_now_ns.is_some());
    let damage = damage(&found);
    damage.iter().for_each(|note| reader.profile.metadata.note(note.clone()));
    let unfinished = header.flags & flag::FINISHED == 0;
    let report = ReadReport { unfinished, notes: damage, ..ReadReport::default() };
    reader.profile.metadata.unfinished = report.unfinished;
    let function = |number: u32| reader.functions.get(&number).copied();
    let now = |thread: &treering_events::ThreadTree| ThreadNow::of(&view, &thread.record, function);
    let threads = forest.threads.iter().map(now).collect();
    let state = match (view.has_checks(), found.is_empty()) {
        (false, _) => FileState::Unchecked,
        (true, true) => FileState::Whole,
        (true, false) => FileState::Damaged,
    };
    Ok(Running { profile: reader.profile, report, threads, state })
}

/// The damaged parts of a file, their places, and the consequences for the profile.
fn damage(found: &Findings) -> Vec<String> {
    if found.is_empty() {
        return Vec::new();
    }
    let place = |finding: &Finding| format!("{} (byte 0x{:x})", finding.what, finding.at);
    let shown: Vec<String> = found.shown.iter().map(place).collect();
    let more = found.count - shown.len() as u64;
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    let places = shown.join(", ");
    vec![format!("the file is damaged: {places}{more}; calls may be missing and numbers may be wrong")]
}

struct Reader<'a> {
    view: &'a View<'a>,
    profile: Profile,
    columns: Columns,
    run: RunId,
    /// By number.
    functions: HashMap<u32, FunctionId>,
    /// The lines from which functions with these numbers were called.
    call_lines: HashMap<u32, u32>,
    nodes: HashMap<Ref, NodeId>,
    /// How much may still be added to each metric, so that its sum is below 2^64.
    left: Vec<u64>,
    /// How many bytes of texts may still be read.
    texts_left: Cell<usize>,
    /// By place.
    modules: HashMap<Ref, Option<ModuleId>>,
}

/// The metrics that the file has.
struct Columns {
    time: Option<MetricId>,
    calls: Option<MetricId>,
    cpu: Option<[MetricId; 3]>,
    memory: Option<[MetricId; 2]>,
    levels: Option<[MetricId; 2]>,
    line_hits: Option<MetricId>,
}

impl Columns {
    fn add(view: &View<'_>, forest: &Forest, profile: &mut Profile) -> Self {
        let header = view.header();
        let has = |flag: u32| header.flags & flag != 0;
        let is_timed = header.mode != mode::COUNT;
        let mut ns = |name: &str| profile.add_metric(Metric::exact(name, Unit::Nanoseconds));
        let time = is_timed.then(|| ns("time"));
        let cpu = has(flag::CPU_TIME).then(|| [ns("cpu"), ns("user"), ns("system")]);
        let calls = (!is_timed).then(|| profile.add_metric(Metric::exact("calls", Unit::Count)));
        let memory = has(flag::MEMORY).then(|| {
            [
                profile.add_metric(Metric::exact("allocated", Unit::Bytes)),
                profile.add_metric(Metric::exact("allocations", Unit::Count)),
            ]
        });
        let levels = view.points().next().is_some().then(|| {
            [
                profile.add_metric(Metric::level("virtual memory", Unit::Bytes)),
                profile.add_metric(Metric::level("resident memory", Unit::Bytes)),
            ]
        });
        let has_lines = forest.nodes.iter().any(|node| node.line_hits > 0);
        let line_hits = has_lines.then(|| profile.add_metric(Metric::exact("line hits", Unit::Count)));
        Self { time, calls, cpu, memory, levels, line_hits }
    }
}

impl<'a> Reader<'a> {
    fn new(view: &'a View<'a>, forest: &Forest) -> Self {
        let header = view.header();
        let mut profile = Profile::new(match (header.mode, header.rule) {
            (mode::FLAT, _) => RecursionRule::Flat,
            (_, rule::FULL) => RecursionRule::Full,
            (_, rule::SWI_CLASSIC) => RecursionRule::SwiClassic,
            _ => RecursionRule::Direct,
        });
        let columns = Columns::add(view, forest, &mut profile);
        profile.activations = columns.time.map(Activations::new);
        let run = profile.add_run(Run::default());
        let left = vec![u64::MAX; profile.metrics.len()];
        Self {
            view,
            profile,
            columns,
            run,
            functions: HashMap::new(),
            call_lines: HashMap::new(),
            nodes: HashMap::new(),
            left,
            texts_left: Cell::new(view.length()),
            modules: HashMap::new(),
        }
    }

    /// A text; nothing once those that were read are longer together than the file. Each is stored
    /// for itself, so only in a damaged file do many share the same bytes.
    fn text(&self, text: treering_events::Text) -> String {
        let bytes = self.view.text(text);
        let left = self.texts_left.get().checked_sub(bytes.len());
        self.texts_left.set(left.unwrap_or(0));
        left.map(|_| lossy(bytes)).unwrap_or_default()
    }

    fn add_metadata(&mut self) {
        let header = *self.view.header();
        let command = self.view.text(header.command);
        let words = command.split(|byte| *byte == 0).filter(|word| !word.is_empty());
        let run = &mut self.profile.runs[self.run.index()];
        run.command = words.map(lossy).collect();
        run.start_unix_ns = header.start_unix_ns;
        let cpu_ns = header.user_ns.saturating_add(header.system_ns);
        run.cpu_ns = (cpu_ns > 0).then_some(cpu_ns);
        let metadata = &mut self.profile.metadata;
        "treering-runtime".clone_into(&mut metadata.collector);
        let clock = if header.clock == clock::TSC { "tsc" } else { "monotonic" };
        metadata.parameters.insert("clock".to_owned(), clock.to_owned());
        let bias = CallBias {
            inside_ns: header.inside_ns,
            outside_ns: header.outside_ns,
            empty_inside_ns: header.empty_inside_ns,
            empty_outside_ns: header.empty_outside_ns,
            spread_ns: header.spread_ns,
        };
        metadata.call_bias = (bias.is_sound() && header.mode != mode::COUNT).then_some(bias);
        metadata.losses.dropped_events = header.dropped_events;
        self.add_settings();
    }

    /// How long the run took: up to now, or up to the last thing that is known of it. While the
    /// program runs the clock's last reading in the header may be old.
    fn add_duration(&mut self, forest: &Forest, raw_now_ns: Option<u64>) {
        let header = self.view.header();
        let last =
            |thread: &treering_events::ThreadTree| thread.record.last_ticks.max(thread.record.end_ticks);
        let last_ticks = forest.threads.iter().map(last).max().unwrap_or(0);
        let events_ns = last_ticks.saturating_sub(header.start_ticks) as f64 * header.ns_per_tick;
        let raw_ns = raw_now_ns.unwrap_or(header.last_raw_ns).saturating_sub(header.start_raw_ns);
        let finished = header.flags & flag::FINISHED != 0;
        self.profile.runs[self.run.index()].duration_ns =
            if finished { raw_ns } else { raw_ns.max(events_ns as u64) };
    }

    fn add_settings(&mut self) {
        let mut settings: Vec<_> = self.view.settings().map(|(_, record)| record).collect();
        settings.reverse();
        let mut benchmark: Option<Benchmark> = None;
        for record in settings {
            let (name, value) = (self.text(record.name), self.text(record.value));
            let about = benchmark.get_or_insert_default();
            match record.kind {
                setting::PARAMETER => put(&mut about.parameters, name, value),
                setting::RESULT => put(&mut about.results, name, value),
                setting::BENCHMARK => *about = Benchmark { name, description: value, ..Benchmark::default() },
                _ => {}
            }
        }
        self.profile.metadata.benchmark = benchmark.filter(|benchmark| *benchmark != Benchmark::default());
    }

    fn add_functions(&mut self) {
        let mut records: Vec<_> = self.view.functions().map(|(_, record)| record).collect();
        records.reverse();
        for record in records {
            let function = match record.kind {
                function_kind::NATIVE => {
                    let known = self.modules.get(&record.module).copied();
                    let module = known.unwrap_or_else(|| self.module(record.module));
                    self.modules.insert(record.module, module);
                    Function::at_address(module, StatedAddress(record.address))
                }
                kind => {
                    let name = self.profile.strings.intern(&self.text(record.name));
                    let file = self.profile.strings.intern(&self.text(record.file));
                    Function { file, line: record.line, kind: kind_of(kind), ..Function::named(name) }
                }
            };
            let id = self.profile.functions.intern(function);
            self.functions.insert(record.id, id);
            if record.call_line > 0 {
                self.call_lines.insert(record.id, record.call_line);
            }
        }
    }

    fn module(&mut self, place: Ref) -> Option<ModuleId> {
        let record = self.view.module(place)?;
        let path = self.profile.strings.intern(&self.text(record.path));
        let length = (record.build_id_length as usize).min(record.build_id.len());
        let build_id = record.build_id[..length].into();
        Some(self.profile.modules.intern(Module { path, kind: ModuleKind::Elf, build_id }))
    }

    fn add_trees(&mut self, forest: &Forest) {
        let header = self.view.header();
        let name = self.profile.runs[self.run.index()].command.first().cloned().unwrap_or_default();
        let name = name.rsplit('/').next().unwrap_or_default().to_owned();
        let process = self.profile.add_process(Process { run: self.run, pid: header.pid, name });
        let mut threads = forest.threads.iter().peekable();
        let mut places: Vec<NodeId> = Vec::with_capacity(forest.nodes.len());
        for (at, node) in forest.nodes.iter().enumerate() {
            let id = match threads.next_if(|thread| thread.root == at) {
                Some(thread) => self.add_thread(process, thread, node),
                None => self.add_node(node, &places),
            };
            places.push(id);
            self.nodes.insert(node.place, id);
        }
        if let Some(activations) = &mut self.profile.activations {
            activations.compact_sizes();
        }
    }

    fn add_thread(
        &mut self,
        process: treering_profile::ProcessId,
        thread: &treering_events::ThreadTree,
        root: &Measured,
    ) -> NodeId {
        let record = &thread.record;
        let end = record.name.iter().position(|byte| *byte == 0).unwrap_or(record.name.len());
        let mut name = lossy(&record.name[..end]);
        if record.threads > 1 {
            name = format!("{name} ({} threads)", record.threads);
        }
        let id = self.profile.add_thread(process, record.tid, name);
        let losses = &mut self.profile.metadata.losses;
        losses.add(&Losses {
            open_activations: thread.open.into(),
            unbalanced_leaves: record.unbalanced,
            branched_leaves: record.branched_leaves,
            clock_steps_back: record.clock_steps_back,
            dropped_events: record.dropped,
            unwound_activations: record.unwound.iter().copied().fold(0, u64::saturating_add),
            ..Losses::default()
        });
        let node = self.profile.threads[id.index()].root;
        // Memory that was used and allocated outside of any task.
        self.add_costs(node, root);
        node
    }

    fn add_node(&mut self, node: &Measured, places: &[NodeId]) -> NodeId {
        let parent = node.parent.and_then(|parent| places.get(parent)).copied().unwrap_or(NodeId::new(0));
        let function = self.functions.get(&node.record.function).copied();
        let function = function.unwrap_or_else(|| self.unknown_function(node.record.function));
        let call_site = self.call_site(node, parent);
        let id = self.profile.tree.child(parent, function, call_site);
        self.profile.tree.add_calls(id, node.record.calls, node.record.recursive.min(node.record.calls));
        self.add_costs(id, node);
        if node.ports != [0; 5] {
            *self.profile.ports.row(id) = Ports::from_counts(node.ports);
        }
        if node.peak_bytes > 0 {
            let peak_bytes = node.peak_bytes.max(node.live_bytes);
            *self.profile.memory.row(id) = NodeMemory { live_bytes: node.live_bytes, peak_bytes };
        }
        self.add_statistics(id, node);
        id
    }

    /// The line from which a node was called, where that was recorded.
    fn call_site(&mut self, node: &Measured, parent: NodeId) -> Option<LineId> {
        self.columns.line_hits?;
        let line = *self.call_lines.get(&node.record.function)?;
        let caller = self.profile.tree.function(parent);
        let file = self.profile.functions.entries()[caller.index()].file;
        let is_known = !self.profile.strings[file].is_empty();
        is_known.then(|| self.profile.lines.intern(Line { file, line }))
    }

    fn unknown_function(&mut self, number: u32) -> FunctionId {
        let name = self.profile.strings.intern(&format!("function {number}"));
        self.profile.functions.intern(Function::named(name))
    }

    fn add_costs(&mut self, id: NodeId, node: &Measured) {
        let record = &node.record;
        let left = &mut self.left;
        let mut add = |metric: MetricId, cost: u64| {
            // Only a damaged file has as much.
            let cost = cost.min(left[metric.index()]);
            left[metric.index()] -= cost;
            self.profile.tree.add_self_cost(metric, id, cost);
        };
        if let Some(metric) = self.columns.time {
            add(metric, node.self_ns);
        }
        if let Some(metric) = self.columns.calls {
            add(metric, record.calls);
        }
        if let Some([cpu, user, system]) = self.columns.cpu {
            add(cpu, record.user_ns.saturating_add(record.system_ns));
            add(user, record.user_ns);
            add(system, record.system_ns);
        }
        if let Some(metric) = self.columns.line_hits {
            add(metric, node.line_hits);
        }
        if let Some([allocated, allocations]) = self.columns.memory {
            add(allocated, record.allocated);
            add(allocations, record.allocations);
        }
    }

    /// Adds what lines cost, of functions whose file is known.
    fn add_lines(&mut self, forest: &Forest) {
        let (Some(time), Some(hits)) = (self.columns.time, self.columns.line_hits) else { return };
        for (at, node) in forest.nodes.iter().enumerate().filter(|(_, node)| node.line_hits > 0) {
            let Some(&id) = self.nodes.get(&node.place) else { continue };
            let function = self.profile.tree.function(id);
            let file = self.profile.functions.entries()[function.index()].file;
            if self.profile.strings[file].is_empty() {
                continue;
            }
            for measured in forest.lines(at, self.view.header()) {
                let line = self.profile.lines.intern(Line { file, line: measured.line });
                for (metric, cost) in [(time, measured.self_ns), (hits, measured.hits)] {
                    self.profile.line_costs.push(LineCost { node: id, line, metric, cost });
                }
            }
        }
        self.profile.compact_line_costs();
    }

    fn add_statistics(&mut self, id: NodeId, node: &Measured) {
        let Some(activations) = &mut self.profile.activations else { return };
        let statistics = node.statistics();
        if statistics.is_consistent() {
            activations.nodes.row(id).merge(&statistics);
        }
        let Some(sizes) = self.view.sizes(node.record.sizes) else { return };
        let ns_per_tick = self.view.header().ns_per_tick;
        for class in 0..SIZE_CLASSES {
            let (calls, ticks) = (sizes.calls[class], sizes.ticks[class]);
            if calls > 0 {
                let total_cost = (ticks as f64 * ns_per_tick + 0.5) as u64;
                let bucket = class.saturating_sub(1) as u8;
                activations.sizes.push(SizeCost { node: id, bucket, calls, total_cost });
            }
        }
    }

    fn add_points(&mut self, forest: &Forest) {
        let Some([virtual_memory, resident_memory]) = self.columns.levels else { return };
        let header = self.view.header();
        let threads: HashMap<Ref, usize> =
            forest.threads.iter().enumerate().map(|(at, thread)| (thread.place, at)).collect();
        let mut records: Vec<_> = self.view.points().map(|(_, record)| record).collect();
        records.reverse();
        for record in records {
            let Some(&thread) = threads.get(&record.thread) else { continue };
            let thread = ThreadId::from_usize(thread);
            let root = self.profile.threads[thread.index()].root;
            let ticks = record.ticks.saturating_sub(header.start_ticks);
            let description = self.profile.strings.intern(&self.text(record.description));
            self.profile.points.push(Point {
                time_ns: (ticks as f64 * header.ns_per_tick) as u64,
                thread,
                node: self.nodes.get(&record.node).copied().unwrap_or(root),
                description,
                values: vec![
                    (virtual_memory, record.virtual_bytes),
                    (resident_memory, record.resident_bytes),
                ],
            });
        }
    }
}

/// The kind of a function, by that of the runtime.
fn kind_of(kind: u32) -> FunctionKind {
    match kind {
        function_kind::TASK => FunctionKind::Task,
        function_kind::BUILTIN => FunctionKind::Builtin,
        function_kind::OPERATOR => FunctionKind::Operator,
        function_kind::SCRIPT => FunctionKind::Script,
        function_kind::EXTENSION => FunctionKind::Extension,
        function_kind::ANONYMOUS => FunctionKind::Anonymous,
        _ => FunctionKind::Interpreted,
    }
}

/// Sets a value, in the place of an earlier one of that name.
fn put(list: &mut Vec<(String, String)>, name: String, value: String) {
    match list.iter_mut().find(|(known, _)| *known == name) {
        Some((_, old)) => *old = value,
        None => list.push((name, value)),
    }
}

/// Text of a program, which may be in any encoding.
fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
