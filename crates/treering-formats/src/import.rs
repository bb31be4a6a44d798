//! The profile that a reader of a foreign format builds: stacks, threads and notes, within a budget of memory.

use std::borrow::Cow;
use std::collections::HashMap;

use treering_profile::{
    Frame, Function, FunctionId, FunctionKind, Line, LineId, Metadata, Metric, MetricId, Module, ModuleId,
    NodeId, Process, ProcessId, Profile, RecursionRule, Run, RunId, StringId, ThreadId, TimeCost,
};

use crate::budget::{Budget, OverBudget};
use crate::label::{NOT_UTF8, module_kind, text_of};
use crate::{ReadError, ReadReport};

/// The columns of a node without its costs: parent, function, call site, calls, and its place among the children.
const NODE_COLUMNS: usize = 6;

/// A profile that is being read.
pub(crate) struct Import {
    pub(crate) profile: Profile,
    pub(crate) report: ReadReport,
    pub(crate) budget: Budget,
    pub(crate) run: RunId,
    processes: HashMap<u32, ProcessId>,
    threads: HashMap<(u32, String), ThreadId>,
    /// The stack that is being read, the outermost frame first.
    frames: Vec<Frame>,
    /// The line at which the last frame ran.
    line: Option<LineId>,
    /// The nodes that the budget was charged for.
    charged_nodes: usize,
    /// Whether a text was not UTF-8.
    not_utf8: bool,
    /// The first time that a cost had, by the clock of the file.
    start_ns: Option<u64>,
    /// How many samples have no time.
    timeless: u64,
}

impl Import {
    pub(crate) fn new(budget: Budget) -> Self {
        Self::with_rule(RecursionRule::Full, budget)
    }

    /// An import whose recursive functions share nodes as the file says.
    pub(crate) fn with_rule(rule: RecursionRule, budget: Budget) -> Self {
        let mut profile = Profile::new(rule);
        let run = profile.add_run(Run::default());
        Self {
            profile,
            report: ReadReport::default(),
            budget,
            run,
            processes: HashMap::new(),
            threads: HashMap::new(),
            frames: Vec::new(),
            line: None,
            charged_nodes: 0,
            not_utf8: false,
            start_ns: None,
            timeless: 0,
        }
    }

    /// The process of a number, added at first sight; the first name that is not empty is kept.
    pub(crate) fn process(&mut self, pid: u32, name: &str) -> ProcessId {
        let run = self.run;
        let add = || self.profile.add_process(Process { run, pid, name: name.to_owned() });
        *self.processes.entry(pid).or_insert_with(add)
    }

    /// The thread of a process and a name, added at first sight.
    pub(crate) fn thread(&mut self, pid: u32, tid: u32, name: &str) -> ThreadId {
        let key = (pid, name.to_owned());
        if let Some(&known) = self.threads.get(&key) {
            return known;
        }
        let process = self.process(pid, "");
        let thread = self.profile.add_thread(process, tid, name);
        self.threads.insert(key, thread);
        thread
    }

    /// The root of the only thread, for files that know of none.
    pub(crate) fn single_root(&mut self) -> NodeId {
        let thread = self.thread(0, 0, "");
        self.profile.threads[thread.index()].root
    }

    /// A text of the file; that bytes were not UTF-8 is noted at the end.
    pub(crate) fn text<'a>(&mut self, bytes: &'a [u8]) -> Cow<'a, str> {
        self.not_utf8 |= std::str::from_utf8(bytes).is_err();
        text_of(bytes)
    }

    /// A text in the table of strings; the empty one is none.
    pub(crate) fn string(&mut self, text: &str) -> StringId {
        if text.is_empty() { StringId::new(0) } else { self.profile.strings.intern(text) }
    }

    /// The module of a path.
    pub(crate) fn module(&mut self, path: &str) -> ModuleId {
        let kind = module_kind(path);
        let path = self.profile.strings.intern(path);
        self.profile.modules.intern(Module { path, build_id: Box::default(), kind })
    }

    /// Begins a stack.
    pub(crate) fn begin(&mut self) {
        self.frames.clear();
        self.line = None;
    }

    /// Adds a function below the last one, and the line that runs in it, 0 if it is not known.
    pub(crate) fn frame(&mut self, name: &str, file: &str, line: u32, kind: FunctionKind) {
        let (name, file) = (self.profile.strings.intern(name), self.string(file));
        self.function(Function { file, kind, ..Function::named(name) }, line);
    }

    /// The same with a function that is known.
    pub(crate) fn function(&mut self, function: Function, line: u32) {
        let id = self.profile.functions.intern(function);
        let line = (line > 0).then(|| self.profile.lines.intern(Line { file: function.file, line }));
        self.push(id, line);
    }

    /// The same with the numbers of a function and a line in their tables.
    pub(crate) fn push(&mut self, function: FunctionId, line: Option<LineId>) {
        self.frames.push(Frame { function, call_site: self.line });
        self.line = line;
    }

    /// Sets the line that runs in the last function. Functions of no frame have one as well.
    pub(crate) fn set_line(&mut self, line: Option<LineId>) {
        self.line = line;
    }

    /// The line that runs in the last function.
    pub(crate) fn line(&self) -> Option<LineId> {
        self.line
    }

    /// Whether a stack of that many frames may be added, for those that would take much to build.
    pub(crate) fn check_depth(&self, depth: usize) -> Result<(), OverBudget> {
        if self.budget.allows(depth, self.node_columns()) { Ok(()) } else { Err(OverBudget) }
    }

    /// Adds the stack with its weights.
    pub(crate) fn add(
        &mut self,
        thread: ThreadId,
        weights: &[(MetricId, u64)],
    ) -> Result<NodeId, OverBudget> {
        self.check_depth(self.frames.len())?;
        let node = self.profile.add_stack(thread, &self.frames, self.line, weights);
        self.charge_nodes()?;
        Ok(node)
    }

    /// Adds the stack of a sample that was taken at a time of the file's clock, in nanoseconds, if it is known.
    pub(crate) fn add_sample(
        &mut self,
        thread: ThreadId,
        weights: &[(MetricId, u64)],
        clock_ns: Option<u64>,
    ) -> Result<NodeId, OverBudget> {
        let node = self.add(thread, weights)?;
        match clock_ns {
            Some(clock_ns) => self.place_in_time(clock_ns, node, weights)?,
            None => self.timeless += 1,
        }
        Ok(node)
    }

    /// States the time of the file's clock at which the run began.
    pub(crate) fn begin_time(&mut self, clock_ns: u64) {
        self.start_ns = Some(clock_ns);
    }

    /// Places costs of a node, and of the line that ran, in time.
    pub(crate) fn place_in_time(
        &mut self,
        clock_ns: u64,
        node: NodeId,
        weights: &[(MetricId, u64)],
    ) -> Result<(), OverBudget> {
        let entries = weights.len() * size_of::<TimeCost>();
        self.budget.bytes(entries as u64)?;
        let start = *self.start_ns.get_or_insert(clock_ns);
        let timeline = self.profile.timeline.get_or_insert_default();
        timeline.clock_steps_back += u64::from(clock_ns < start);
        let time = clock_ns.saturating_sub(start);
        for &(metric, cost) in weights.iter().filter(|(_, cost)| *cost > 0) {
            timeline.add(time, metric, (node, self.line), cost);
        }
        Ok(())
    }

    /// Leaves the costs of samples that all weigh the same to the metric that counts them.
    fn finish_timeline(&mut self) {
        let Some(timeline) = &mut self.profile.timeline else { return };
        let metrics = &self.profile.metrics;
        let equal =
            |metric: &Metric| metric.sampling.as_ref().is_some_and(|sampling| sampling.period.is_some());
        timeline.costs.retain(|cost| !equal(&metrics[cost.metric.index()]));
        timeline.compact();
        if timeline.length_ns <= 1 {
            // One time for everything is none.
            self.profile.timeline = None;
            return;
        }
        let steps = timeline.clock_steps_back;
        self.note_count("samples have no time, so they are in no part of the run", self.timeless);
        self.note_count("samples are before the first one; they count as taken with it", steps);
    }

    /// The node of a function below another, added at first sight.
    pub(crate) fn child(&mut self, above: NodeId, function: FunctionId) -> Result<NodeId, OverBudget> {
        let node = self.profile.tree.child(above, function, None);
        self.charge_nodes()?;
        Ok(node)
    }

    /// Charges the budget for the nodes that were added since.
    pub(crate) fn charge_nodes(&mut self) -> Result<(), OverBudget> {
        let added = self.profile.tree.len() - self.charged_nodes;
        self.charged_nodes = self.profile.tree.len();
        self.budget.numbers(added, self.node_columns())
    }

    fn node_columns(&self) -> usize {
        NODE_COLUMNS + self.profile.metrics.len()
    }

    /// Notes a fact that a person should know.
    pub(crate) fn note(&mut self, text: impl Into<String>) {
        self.report.notes.push(text.into());
    }

    /// Notes how often something happened, if it did.
    pub(crate) fn note_count(&mut self, text: &str, count: u64) {
        if count > 0 {
            self.note(format!("{text}: {count}"));
        }
    }

    /// Notes a fact if it is true.
    pub(crate) fn note_if(&mut self, happened: bool, text: &str) {
        if happened {
            self.note(text);
        }
    }

    /// Makes a metric the one that reports show first.
    pub(crate) fn set_default_metric(&mut self, metric: MetricId) {
        let name = self.profile.metrics[metric.index()].name.clone();
        self.profile.metadata.parameters.insert(Metadata::DEFAULT_METRIC.to_owned(), name);
    }

    /// The profile that a tool collected, if its parts fit together.
    pub(crate) fn finish(mut self, collector: impl Into<String>) -> Result<(Profile, ReadReport), ReadError> {
        self.profile.metadata.set_foreign(collector);
        self.finish_own()
    }

    /// The same for a format of Treering's own, whose files name the collector.
    pub(crate) fn finish_own(mut self) -> Result<(Profile, ReadReport), ReadError> {
        self.note_if(self.not_utf8, NOT_UTF8);
        self.profile.compact_line_costs();
        self.finish_timeline();
        self.profile.validate()?;
        state_samples(&mut self.profile);
        Ok((self.profile, self.report))
    }
}

/// States how many samples there are, and how many in functions without a name, where the reader counted fewer than
/// metrics do.
pub(crate) fn state_samples(profile: &mut Profile) {
    let (samples, unresolved) = profile.counted_samples();
    let losses = &mut profile.metadata.losses;
    losses.samples = losses.samples.max(samples);
    losses.unresolved_samples = losses.unresolved_samples.max(unresolved);
}
