//! The profile itself.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::{
    Activations, AddressCost, Arc, CodeCounts, EndedWaits, Frame, Function, FunctionId, FunctionKind,
    Interner, Line, LineCost, LineId, Mark, Metadata, Metric, MetricId, Module, ModuleId, NodeId, NodeMemory,
    NodeTable, Point, Ports, Process, ProcessId, RecursionRule, Run, RunId, Source, StringTable, Thread,
    ThreadId, TimeCost, Timeline, Tree, Unit, Wait, Weights,
};

/// A profile: callers and callees, their costs, and how sure these are.
///
/// The tables are public and may be read freely. To add, use the methods, which keep the tables
/// in step; [`validate`](Self::validate) checks a profile that was put together by a reader.
#[derive(Clone, Debug)]
pub struct Profile {
    /// How it was made, and what was lost or estimated on the way.
    pub metadata: Metadata,
    /// When two activations share a node.
    pub recursion: RecursionRule,
    /// The strings that the other tables refer to.
    pub strings: StringTable,
    /// Binaries and other bodies of code.
    pub modules: Interner<ModuleId, Module>,
    /// Functions. Function 0 is the root.
    pub functions: Interner<FunctionId, Function>,
    /// Source lines.
    pub lines: Interner<LineId, Line>,
    /// Runs of the command; several in a merged profile.
    pub runs: Vec<Run>,
    /// Processes of the runs.
    pub processes: Vec<Process>,
    /// Threads of the processes, each with the root of its tree.
    pub threads: Vec<Thread>,
    /// The metrics; the columns of costs.
    pub metrics: Vec<Metric>,
    /// The calling context tree of all threads.
    pub tree: Tree,
    /// Parts of self costs by source line, in no order. A (node, line, metric) may occur more
    /// than once; the costs add up.
    pub line_costs: Vec<LineCost>,
    /// Parts of self costs by address, in no order; empty unless code was sampled. A row may occur more than once; the
    /// costs add up.
    pub address_costs: Vec<AddressCost>,
    /// Arcs of a source that has no tree. Beside a tree of samples: how often functions were called, where
    /// something else counted that; else empty when there is a tree.
    pub arcs: Vec<Arc>,
    /// Texts of source files.
    pub sources: Vec<Source>,
    /// Measurements of single activations, if there are any.
    pub activations: Option<Activations>,
    /// Ports of logic programs; empty for others.
    pub ports: NodeTable<Ports>,
    /// Memory that nodes hold; empty where it was not measured.
    pub memory: NodeTable<NodeMemory>,
    /// Points of a series over time.
    pub points: Vec<Point>,
    /// When costs arose, if that is known. It is that of one run.
    pub timeline: Option<Timeline>,
    /// The wakers that ended waits; empty where that was not recorded. Of a profile of several runs, those of all.
    pub ended_waits: Vec<EndedWaits>,
    /// Counts of code by address; empty unless executions were counted.
    pub code: CodeCounts,
}

/// The name of contexts that a tree had no room for.
const FOLDED: &str = "[folded: tree too large]";

impl Profile {
    /// A profile without metrics, threads or costs.
    pub fn new(recursion: RecursionRule) -> Self {
        let mut functions = Interner::default();
        functions.intern(Function::root());
        Self {
            metadata: Metadata::default(),
            recursion,
            strings: StringTable::default(),
            modules: Interner::default(),
            functions,
            lines: Interner::default(),
            runs: Vec::new(),
            processes: Vec::new(),
            threads: Vec::new(),
            metrics: Vec::new(),
            tree: Tree::default(),
            line_costs: Vec::new(),
            address_costs: Vec::new(),
            arcs: Vec::new(),
            sources: Vec::new(),
            activations: None,
            ports: NodeTable::default(),
            memory: NodeTable::default(),
            points: Vec::new(),
            timeline: None,
            ended_waits: Vec::new(),
            code: CodeCounts::default(),
        }
    }

    /// The function of every thread's root node.
    pub const ROOT: FunctionId = FunctionId::new(0);

    /// Adds a metric; its costs are 0 so far.
    pub fn add_metric(&mut self, metric: Metric) -> MetricId {
        self.metrics.push(metric);
        self.tree.add_metric()
    }

    /// The first metric of that name, or, as merging may bring several of one name together, of that name and unit:
    /// `NAME:UNIT`.
    pub fn find_metric(&self, name: &str) -> Option<MetricId> {
        let unit_follows = |metric: &Metric| {
            let unit = name.strip_prefix(metric.name.as_str()).and_then(|rest| rest.strip_prefix(':'));
            unit == Some(metric.unit.as_str())
        };
        let named = self.metrics.iter().position(|metric| metric.name == name);
        named.or_else(|| self.metrics.iter().position(unit_follows)).map(MetricId::from_usize)
    }

    /// The name by which [`find_metric`](Self::find_metric) finds a metric, with its unit if others are called the same.
    pub fn metric_label(&self, metric: MetricId) -> Cow<'_, str> {
        let Metric { name, unit, .. } = &self.metrics[metric.index()];
        match self.metrics.iter().filter(|other| other.name == *name).count() {
            1 => Cow::Borrowed(name),
            _ => Cow::Owned(format!("{name}:{}", unit.as_str())),
        }
    }

    /// Every metric with its index.
    pub fn metrics(&self) -> impl Iterator<Item = (MetricId, &Metric)> + '_ {
        self.metrics.iter().enumerate().map(|(at, metric)| (MetricId::from_usize(at), metric))
    }

    /// The metrics with costs to show that a name means: all that are called so, or the one whose unit follows its name, as
    /// [`metric_label`](Self::metric_label) writes it.
    pub fn cost_metrics_called(&self, name: &str) -> Vec<MetricId> {
        let is_found = |found: MetricId| self.cost_metrics().any(|(id, _)| id == found);
        let called: Vec<_> =
            self.cost_metrics().filter(|(_, metric)| metric.name == name).map(|(id, _)| id).collect();
        match called.is_empty() {
            true => self.find_metric(name).filter(|&found| is_found(found)).into_iter().collect(),
            false => called,
        }
    }

    /// The metrics that have costs to show: neither levels nor what is known of the weights of
    /// another's samples.
    pub fn cost_metrics(&self) -> impl Iterator<Item = (MetricId, &Metric)> + '_ {
        self.metrics().filter(|&(id, metric)| !metric.is_level && !self.holds_weights(id))
    }

    /// Whether a metric is there for the weights of another's samples; see [`crate::Weights`].
    pub fn holds_weights(&self, metric: MetricId) -> bool {
        let mut known = self.metrics.iter().filter_map(Metric::weights);
        known.any(|weights| [weights.squares, weights.unseen].contains(&metric.raw()))
    }

    /// Says of a sampled metric that its samples weigh differently. `squares` and `unseen` have for
    /// each node what [`Weights`] describes, which tells the rest; its indexes are set here.
    pub fn add_weights(&mut self, metric: MetricId, weights: Weights, squares: Vec<u64>, unseen: Vec<u64>) {
        let name = self.metrics[metric.index()].name.clone();
        let of_squares = self.add_metric(Metric::exact(format!("{name} squared weights"), Unit::Count));
        let of_unseen = self.add_metric(Metric::exact(format!("{name} unseen"), Unit::Count));
        self.tree.set_self_costs(of_squares, squares);
        self.tree.set_self_costs(of_unseen, unseen);
        if let Some(sampling) = &mut self.metrics[metric.index()].sampling {
            let (squares, unseen) = (of_squares.raw(), of_unseen.raw());
            sampling.weights = Some(Weights { squares, unseen, ..weights });
        }
    }

    /// Whether the costs of a metric may be divided by calls: not where it was merged of parts of which some have only one of
    /// both.
    pub fn has_averages_of(&self, metric: MetricId) -> bool {
        let apart = self.metadata.parameters.get(Metadata::CALLS_APART);
        let name = &self.metrics[metric.index()].name;
        !apart.is_some_and(|names| names.split(" | ").any(|apart| apart == name))
    }

    /// Whether each run has its own costs, rather than the first those of all.
    pub fn has_runs_apart(&self) -> bool {
        self.metadata.notes.iter().all(|note| note.0 != Metadata::RUNS_ADDED_UP)
    }

    /// Adds a run.
    pub fn add_run(&mut self, run: Run) -> RunId {
        self.runs.push(run);
        RunId::from_usize(self.runs.len() - 1)
    }

    /// Adds a process.
    pub fn add_process(&mut self, process: Process) -> ProcessId {
        self.processes.push(process);
        ProcessId::from_usize(self.processes.len() - 1)
    }

    /// Adds a thread and the root of its tree.
    pub fn add_thread(&mut self, process: ProcessId, tid: u32, name: impl Into<String>) -> ThreadId {
        let root = self.tree.add_root(Self::ROOT);
        self.threads.push(Thread { process, tid, name: name.into(), root });
        ThreadId::from_usize(self.threads.len() - 1)
    }

    /// Adds a run of one process of one thread, for sources that tell nothing of them.
    pub fn add_single_thread(&mut self, name: &str) -> ThreadId {
        let run = self.add_run(Run::default());
        let process = self.add_process(Process { run, pid: 0, name: name.to_owned() });
        self.add_thread(process, 0, name)
    }

    /// Adds one stack, outermost frame first, and charges `weights` to its innermost frame; an
    /// empty stack charges the thread's root. Returns the node charged.
    ///
    /// `line` is the source line being executed, where known. Calls are not counted: a sample
    /// tells nothing of them.
    pub fn add_stack(
        &mut self,
        thread: ThreadId,
        stack: &[Frame],
        line: Option<LineId>,
        weights: &[(MetricId, u64)],
    ) -> NodeId {
        let mut node = self.threads[thread.index()].root;
        for frame in stack {
            node = self.step(node, frame).0;
        }
        for &(metric, cost) in weights {
            self.tree.add_self_cost(metric, node, cost);
            if let Some(line) = line {
                self.line_costs.push(LineCost { node, line, metric, cost });
            }
        }
        node
    }

    /// The node that a call from `current` leads to under the recursion rule, and whether the
    /// call was folded into a node above.
    pub fn step(&mut self, current: NodeId, frame: &Frame) -> (NodeId, bool) {
        match self.recursion.fold(&self.tree, current, frame.function) {
            Some(node) => (node, true),
            None if self.recursion == RecursionRule::Flat => {
                let root = self.tree.path(current).last().unwrap_or(current);
                (self.tree.child(root, frame.function, None), false)
            }
            None => (self.tree.child(current, frame.function, frame.call_site), false),
        }
    }

    /// The function that stands for folded contexts, for which a tree had no room. Its nodes are below the roots.
    /// Below them, each function has one node with all its costs and calls in such contexts; their callers are lost.
    pub fn folded_function(&mut self) -> FunctionId {
        let name = self.strings.intern(FOLDED);
        self.functions.intern(Function { kind: FunctionKind::Unresolved, ..Function::named(name) })
    }

    /// Whether a function is [`folded_function`](Self::folded_function).
    pub fn is_folded(&self, function: FunctionId) -> bool {
        let Function { name, kind, module, .. } = self.functions[function];
        kind == FunctionKind::Unresolved && module.is_none() && self.strings[name] == *FOLDED
    }

    /// Adds an arc of a source that has no tree.
    pub fn add_arc(&mut self, arc: Arc) {
        self.arcs.push(arc);
    }

    /// Whether the profile has arcs but no tree, so that totals of cycles are estimates. Its functions have
    /// a node each, directly below a root.
    pub fn is_arcs_only(&self) -> bool {
        !self.arcs.is_empty() && !self.has_stacks()
    }

    /// Whether calls were counted separately from the costs that were measured along stacks: apart from the tree, or
    /// in trees of threads beside those of the samples. 0 calls then mean that they were not counted.
    pub fn has_counts_apart(&self) -> bool {
        match self.arcs.is_empty() {
            true => self.tree.has_calls() && self.has_sampled_threads(),
            false => self.has_stacks(),
        }
    }

    /// Whether there are threads with sampled costs in whose trees no calls were counted.
    fn has_sampled_threads(&self) -> bool {
        let sampled: Vec<MetricId> =
            self.metrics().filter(|(_, metric)| metric.sampling.is_some()).map(|(id, _)| id).collect();
        if sampled.is_empty() {
            return false;
        }
        let (mut calls, mut samples) = (vec![false; self.threads.len()], vec![false; self.threads.len()]);
        for (node, thread) in self.tree.nodes().zip(self.node_threads()) {
            calls[thread.index()] |= self.tree.calls(node) > 0;
            samples[thread.index()] |= sampled.iter().any(|&metric| self.tree.self_cost(metric, node) > 0);
        }
        calls.iter().zip(samples).any(|(&calls, samples)| samples && !calls)
    }

    /// How many samples there are, and how many of them in functions without a name, as far as metrics count samples.
    pub fn counted_samples(&self) -> (u64, u64) {
        let counters: BTreeSet<MetricId> = self.metrics.iter().filter_map(Metric::counted_by).collect();
        let (mut all, mut unresolved) = (0_u64, 0_u64);
        for metric in counters {
            for (node, &cost) in self.tree.nodes().zip(self.tree.self_costs(metric)) {
                let kind = self.functions[self.tree.function(node)].kind;
                all = all.saturating_add(cost);
                unresolved =
                    unresolved.saturating_add(if kind == FunctionKind::Unresolved { cost } else { 0 });
            }
        }
        (all, unresolved)
    }

    /// Whether the costs of a metric are exact and belong to functions alone, while the profile's stacks have another
    /// metric: the total costs of functions are unknown then.
    pub fn has_no_stacks_of(&self, metric: MetricId) -> bool {
        let of_samples = self.metrics.iter().any(|other| other.counted_by() == Some(metric));
        if self.arcs.is_empty() || self.metrics[metric.index()].sampling.is_some() || of_samples {
            return false;
        }
        let is_inner =
            |node: NodeId| self.tree.parent(node).and_then(|parent| self.tree.parent(parent)).is_some();
        let mut costs = self.tree.nodes().filter(|&node| self.tree.self_cost(metric, node) > 0).peekable();
        costs.peek().is_some() && self.has_stacks() && !costs.any(is_inner)
    }

    /// Whether any node has a caller that is no root.
    fn has_stacks(&self) -> bool {
        let tree = &self.tree;
        let is_inner = |parent| tree.parent(parent).is_some();
        tree.nodes().any(|node| tree.parent(node).is_some_and(is_inner))
    }

    /// The cost of the whole run: the sum of all self costs.
    pub fn run_cost(&self, metric: MetricId) -> u64 {
        self.tree.self_costs(metric).iter().sum()
    }

    /// The thread of every node, by node index.
    pub fn node_threads(&self) -> Vec<ThreadId> {
        let mut threads = vec![ThreadId::new(0); self.tree.len()];
        for (at, thread) in self.threads.iter().enumerate() {
            threads[thread.root.index()] = ThreadId::from_usize(at);
        }
        for node in self.tree.nodes() {
            if let Some(parent) = self.tree.parent(node) {
                threads[node.index()] = threads[parent.index()];
            }
        }
        threads
    }

    /// Joins line costs that agree in node, line and metric, and sorts them.
    pub fn compact_line_costs(&mut self) {
        let key = |cost: &LineCost| (cost.node, cost.metric, cost.line);
        self.line_costs.sort_unstable_by_key(key);
        self.line_costs.dedup_by(|next, kept| {
            let same = key(next) == key(kept);
            if same {
                kept.cost = kept.cost.saturating_add(next.cost);
            }
            same
        });
    }

    /// Checks that every index points into its table, that every thread has a root of its own
    /// and every root a thread, and that there is a column for every metric.
    pub fn validate(&self) -> Result<(), InvalidProfile> {
        self.validate_tables()?;
        self.validate_threads()?;
        self.validate_tree()?;
        self.validate_costs()?;
        self.validate_details()
    }

    fn validate_tables(&self) -> Result<(), InvalidProfile> {
        let strings = self.strings.len();
        ensure(self.functions.get(Self::ROOT) == Some(&Function::root()), "function 0 is not the root")?;
        ensure(
            self.modules.entries().iter().all(|m| m.path.index() < strings),
            "a module's path is missing",
        )?;
        for function in self.functions.entries() {
            let texts = [function.name, function.linkage_name, function.file];
            ensure(texts.iter().all(|text| text.index() < strings), "a function's string is missing")?;
            let module = function.module.is_none_or(|module| module.index() < self.modules.len());
            ensure(module, "a function's module is missing")?;
        }
        ensure(self.lines.entries().iter().all(|l| l.file.index() < strings), "a line's file is missing")?;
        ensure(self.sources.iter().all(|s| s.file.index() < strings), "a source's path is missing")
    }

    fn validate_threads(&self) -> Result<(), InvalidProfile> {
        let run = |process: &Process| process.run.index() < self.runs.len();
        ensure(self.processes.iter().all(run), "a process's run is missing")?;
        let mut roots = vec![false; self.tree.len()];
        for thread in &self.threads {
            ensure(thread.process.index() < self.processes.len(), "a thread's process is missing")?;
            let root = roots.get_mut(thread.root.index());
            let fresh = root.is_some_and(|root| !std::mem::replace(root, true));
            ensure(fresh, "a thread has no root of its own")?;
        }
        let parents = self.tree.parent_column().iter();
        let agree = parents.zip(&roots).all(|(&parent, &root)| (parent == u32::MAX) == root);
        ensure(agree, "the roots of the tree are not those of the threads")
    }

    fn validate_tree(&self) -> Result<(), InvalidProfile> {
        let functions = self.tree.function_column().iter();
        let known = functions.into_iter().all(|function| function.index() < self.functions.len());
        ensure(known, "a node's function is missing")?;
        let known = |&line: &u32| line == u32::MAX || (line as usize) < self.lines.len();
        ensure(self.tree.call_site_column().iter().all(known), "a node's call site is missing")?;
        ensure(self.tree.metric_count() == self.metrics.len(), "a metric has no column of costs")?;
        let counted = |m: &Metric| m.counted_by().is_none_or(|by| by.index() < self.metrics.len());
        ensure(self.metrics.iter().all(counted), "the metric that counts another's samples is missing")?;
        let mut weights = self.metrics.iter().filter_map(Metric::weights);
        ensure(
            weights.all(|weights| weights.is_sound(self.metrics.len())),
            "the weights of samples are missing",
        )
    }

    fn validate_costs(&self) -> Result<(), InvalidProfile> {
        let (lines, metrics) = (self.lines.len(), self.metrics.len());
        let fits = |cost: &LineCost| {
            cost.node.index() < self.tree.len() && cost.line.index() < lines && cost.metric.index() < metrics
        };
        ensure(self.line_costs.iter().all(fits), "a line cost refers to something missing")?;
        let fits = |cost: &AddressCost| {
            cost.thread.index() < self.threads.len()
                && [cost.function, cost.holder].iter().all(|function| function.index() < self.functions.len())
                && cost.line.is_none_or(|line| line.index() < lines)
                && cost.metric.index() < metrics
        };
        ensure(self.address_costs.iter().all(fits), "a cost by address refers to something missing")?;
        let fits = |arc: &Arc| {
            arc.caller.index() < self.functions.len()
                && arc.callee.index() < self.functions.len()
                && arc.call_site.is_none_or(|line| line.index() < lines)
                && arc.total_costs.iter().all(|(metric, _)| metric.index() < metrics)
        };
        ensure(self.arcs.iter().all(fits), "an arc refers to something missing")?;
        let column_total = |metric| {
            let costs = self.tree.self_costs(metric).iter();
            costs.copied().try_fold(0_u64, u64::checked_add)
        };
        let fits = self.metrics().all(|(metric, _)| column_total(metric).is_some());
        ensure(fits, "the costs of a metric add up to more than 2^64")
    }

    fn validate_details(&self) -> Result<(), InvalidProfile> {
        let nodes = self.tree.len();
        ensure(self.ports.len() <= nodes, "ports belong to a node that is missing")?;
        ensure(self.memory.len() <= nodes, "memory belongs to a node that is missing")?;
        let sound = self.metadata.call_bias.is_none_or(|bias| bias.is_sound());
        ensure(sound, "the call bias is not a number or negative")?;
        let mut levels = self.metrics().filter(|(_, metric)| metric.is_level);
        let costs_nothing = |metric| self.tree.self_costs(metric).iter().all(|&cost| cost == 0);
        ensure(levels.all(|(metric, _)| costs_nothing(metric)), "a level has costs")?;
        let fits = |point: &Point| {
            point.node.index() < nodes
                && point.thread.index() < self.threads.len()
                && point.description.index() < self.strings.len()
                && point.values.iter().all(|(metric, _)| metric.index() < self.metrics.len())
        };
        ensure(self.points.iter().all(fits), "a point refers to something missing")?;
        let fits = |row: &EndedWaits| {
            row.waiting.index() < nodes && row.waker.is_none_or(|waker| waker.index() < nodes)
        };
        ensure(self.ended_waits.iter().all(fits), "the end of a wait refers to something missing")?;
        self.timeline.as_ref().map_or(Ok(()), |timeline| self.validate_timeline(timeline))?;
        self.code.problem(self).map_or(Ok(()), |problem| Err(InvalidProfile(problem)))?;
        self.activations.as_ref().map_or(Ok(()), |activations| self.validate_activations(activations))
    }

    fn validate_timeline(&self, timeline: &Timeline) -> Result<(), InvalidProfile> {
        let (nodes, metrics, threads) = (self.tree.len(), self.metrics.len(), self.threads.len());
        let few = timeline.slot_ns > 0 && timeline.slots() <= Timeline::MOST_SLOTS;
        ensure(few, "a timeline has too many slots")?;
        let slots = timeline.slots();
        let mut sums = vec![0_u64; metrics];
        let mut fits = |cost: &TimeCost| {
            let known = u64::from(cost.slot) < slots
                && cost.node.index() < nodes
                && cost.line.is_none_or(|line| line.index() < self.lines.len());
            let sum = sums.get_mut(cost.metric.index());
            let fits = sum.is_some_and(|sum| {
                let larger = sum.checked_add(cost.amount);
                *sum = larger.unwrap_or(*sum);
                larger.is_some()
            });
            known && fits
        };
        ensure(timeline.costs.iter().all(&mut fits), "a cost of a slot refers to something missing")?;
        if let Some(waits) = &timeline.waits {
            let known = |metric: MetricId| metric.index() < metrics;
            ensure(known(waits.time) && known(waits.count), "the metrics of waits are missing")?;
            let mut sum = sums[waits.time.index()];
            let mut fits = |wait: &Wait| {
                let waker = wait.waking.and_then(|waking| waking.waker);
                let known = wait.node.index() < nodes
                    && wait.end_ns <= timeline.length_ns
                    && waker.is_none_or(|waker| waker.index() < nodes);
                let longer =
                    wait.end_ns.checked_sub(wait.start_ns).and_then(|length| sum.checked_add(length));
                sum = longer.unwrap_or(sum);
                known && longer.is_some()
            };
            ensure(waits.intervals.iter().all(&mut fits), "a wait refers to something missing")?;
        }
        ensure(
            timeline.lives.iter().all(|life| life.thread.index() < threads),
            "the thread of a life is missing",
        )?;
        let fits = |mark: &Mark| mark.thread.index() < threads && mark.name.index() < self.strings.len();
        ensure(timeline.marks.iter().all(fits), "a mark refers to something missing")
    }

    fn validate_activations(&self, activations: &Activations) -> Result<(), InvalidProfile> {
        ensure(activations.metric.index() < self.metrics.len(), "the metric of activations is missing")?;
        let nodes = self.tree.len();
        ensure(activations.nodes.len() <= nodes, "statistics belong to a node that is missing")?;
        let consistent = activations.nodes.filled().all(|(_, statistics)| statistics.is_consistent());
        ensure(consistent, "the statistics of a node contradict each other")?;
        let fits = |row: &crate::SizeCost| row.node.index() < nodes && row.bucket < 64;
        ensure(activations.sizes.iter().all(fits), "an argument size refers to something missing")
    }
}

/// The fault of a profile that a reader put together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidProfile(pub &'static str);

impl std::fmt::Display for InvalidProfile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for InvalidProfile {}

fn ensure(holds: bool, otherwise: &'static str) -> Result<(), InvalidProfile> {
    if holds { Ok(()) } else { Err(InvalidProfile(otherwise)) }
}
