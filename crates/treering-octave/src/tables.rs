//! Flat profile, arcs and tree of what was recorded so far, corrected for the call bias.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use treering_runtime::Snapshot;
use treering_runtime::events::{
    ActivationStatistics, Forest, Measured, MeasuredLine, SIZE_CLASSES, View, function_kind, mode,
};

use crate::statistics::seconds;
use crate::value::{Structures, Value};

/// The tables that reports are made from. An index stands for a function.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tables {
    /// Those that were called, in the order in which they were first seen.
    pub(crate) functions: Vec<Row>,
    /// Calls and time from caller to callee; those of the top level are apart.
    pub(crate) arcs: BTreeMap<(usize, usize), Arc>,
    /// Time and calls outside of all functions.
    pub(crate) top: Top,
    /// The lines of functions, by function and number; none where they were not recorded.
    pub(crate) lines: BTreeMap<(usize, u32), Line>,
    /// Calls by the size of the largest argument, by function; none where that was not recorded.
    pub(crate) sizes: BTreeMap<usize, Vec<SizeClass>>,
    /// Calls by the line that made them, by callee.
    pub(crate) line_calls: BTreeMap<(usize, u32), BTreeMap<usize, Arc>>,
    /// How many other processes are in them.
    pub(crate) processes: usize,
    /// When the profile was begun.
    pub(crate) start_unix_ns: u64,
    /// The tree, callers before callees.
    nodes: Vec<Node>,
    /// Whether there is no tree, but only a node for each function.
    pub(crate) is_flat: bool,
}

/// A function with all its activations.
#[derive(Clone, Debug, Default)]
pub(crate) struct Row {
    /// The name.
    pub(crate) name: String,
    /// The word for what it is.
    pub(crate) kind: &'static str,
    /// The file that defines it, or nothing.
    pub(crate) file: String,
    /// The line of its definition, or 0.
    pub(crate) line: u32,
    /// How often it was called.
    pub(crate) calls: u64,
    /// Whether it called itself, by itself or through others.
    pub(crate) is_recursive: bool,
    /// Seconds in it itself.
    pub(crate) self_s: f64,
    /// Seconds of its outermost activations.
    pub(crate) total_s: f64,
    /// The memory that it allocated itself.
    pub(crate) memory: Memory,
    /// Statistics of its activations.
    pub(crate) statistics: ActivationStatistics,
}

/// The top level: the prompt, a script or a function that was entered before recording began.
#[derive(Clone, Debug, Default)]
pub(crate) struct Top {
    /// Seconds while recording that no function took.
    pub(crate) self_s: f64,
    /// Its callees, by function.
    pub(crate) arcs: BTreeMap<usize, Arc>,
}

impl Top {
    /// Seconds with all that it called.
    pub(crate) fn total_s(&self) -> f64 {
        self.self_s + self.arcs.values().map(|arc| arc.total_s).sum::<f64>()
    }
}

/// Memory that a function, or a node of the tree, took itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Memory {
    /// How many blocks.
    pub(crate) allocations: u64,
    /// Bytes of all of them.
    pub(crate) allocated: u64,
    /// Bytes of those that were not freed.
    pub(crate) live: u64,
    /// The most bytes at any time; of a function in several contexts the least that this can
    /// have been.
    pub(crate) peak: u64,
}

impl Memory {
    fn of(measured: &Measured) -> Self {
        Self {
            allocations: measured.record.allocations,
            allocated: measured.record.allocated,
            live: measured.live_bytes,
            peak: measured.peak_bytes.max(measured.live_bytes),
        }
    }

    fn add(&mut self, other: &Self) {
        self.allocations += other.allocations;
        self.allocated = self.allocated.saturating_add(other.allocated);
        self.live = self.live.saturating_add(other.live);
        self.peak = self.peak.max(other.peak).max(self.live);
    }
}

/// The cost of a line of a function.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Line {
    /// How often a statement of it was run.
    pub(crate) hits: u64,
    /// Seconds in its statements themselves.
    pub(crate) self_s: f64,
}

/// Calls with arguments of about the same size.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct SizeClass {
    /// The class, of [`size_class`](treering_runtime::events::size_class).
    pub(crate) class: usize,
    /// How many calls.
    pub(crate) calls: u64,
    /// Seconds of all of them, with what they called, as measured.
    pub(crate) total_s: f64,
}

impl SizeClass {
    /// The least size in it.
    pub(crate) fn least(&self) -> f64 {
        self.class.checked_sub(1).map_or(0.0, |power| 2_f64.powi(power as i32))
    }
}

/// Calls from one function to another.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Arc {
    /// How many.
    pub(crate) calls: u64,
    /// Seconds of the callee's activations, nested ones of the same arc counted once.
    pub(crate) total_s: f64,
    /// Statistics of the callee's activations; those of direct recursion belong to the arc that
    /// led into it.
    pub(crate) statistics: ActivationStatistics,
}

#[derive(Clone, Debug)]
struct Node {
    function: usize,
    parent: Option<usize>,
    calls: u64,
    recursive: u64,
    self_s: f64,
    total_s: f64,
    memory: Memory,
    statistics: ActivationStatistics,
}

/// The rows that the tables have already, while records are added.
#[derive(Default)]
struct Known {
    /// Functions by name, file and line; one has a record for each line that it is called from, and
    /// for each process.
    functions: HashMap<(Vec<u8>, Vec<u8>, u32), usize>,
    /// Nodes by parent and function.
    nodes: HashMap<(Option<usize>, usize), usize>,
}

impl Tables {
    /// The tables of a moment; `recorded` is the number of ticks recorded until then. The recordings of other
    /// processes are added.
    pub(crate) fn of(snapshot: &Snapshot, recorded: u64, others: &[Snapshot]) -> Self {
        let Some(view) = snapshot.view() else { return Self::default() };
        let forest = snapshot.forest();
        let header = view.header();
        let (is_flat, start_unix_ns) = (header.mode == mode::FLAT, header.start_unix_ns);
        let mut tables = Self { is_flat, start_unix_ns, ..Self::default() };
        let mut known = Known::default();
        tables.add_nodes(&view, &forest, &mut known);
        tables.take_rest(&view, recorded);
        for other in others {
            let Some(view) = other.view().filter(|view| (view.header().mode == mode::FLAT) == tables.is_flat)
            else {
                continue;
            };
            tables.processes += 1;
            tables.add_nodes(&view, &other.forest(), &mut known);
        }
        tables.correct_statistics(&view);
        tables.correct(&view);
        tables.add_up();
        tables
    }

    fn add_nodes(&mut self, view: &View<'_>, forest: &Forest, known: &mut Known) {
        let called: BTreeSet<u32> =
            forest.nodes.iter().filter(|node| is_called(node)).map(|node| node.record.function).collect();
        let mut records: Vec<_> = view.functions().map(|(_, record)| record).collect();
        records.retain(|record| called.contains(&record.id));
        records.sort_by_key(|record| record.id);
        let text = |text| String::from_utf8_lossy(view.text(text)).into_owned();
        let mut numbers = HashMap::new();
        let mut call_lines = HashMap::new();
        for record in records {
            let key = (view.text(record.name).to_vec(), view.text(record.file).to_vec(), record.line);
            let number = *known.functions.entry(key).or_insert(self.functions.len());
            numbers.insert(record.id, number);
            call_lines.insert(record.id, record.call_line);
            if number == self.functions.len() {
                let (name, file, kind) = (text(record.name), text(record.file), kind_name(record.kind));
                self.functions.push(Row { name, kind, file, line: record.line, ..Row::default() });
            }
        }
        let mut places: Vec<Option<usize>> = Vec::with_capacity(forest.nodes.len());
        for (at, measured) in forest.nodes.iter().enumerate() {
            let function = numbers.get(&measured.record.function).filter(|_| is_called(measured));
            let parent = measured.parent.and_then(|parent| places[parent]);
            let Some(&function) = function else {
                places.push(parent);
                continue;
            };
            let node = Node::new(function, parent, measured);
            let call_line = call_lines[&measured.record.function];
            if let Some(parent) = parent.filter(|_| call_line > 0) {
                self.add_line_call((self.nodes[parent].function, call_line, function), &node);
            }
            let place = *known.nodes.entry((parent, function)).or_insert(self.nodes.len());
            match self.nodes.get_mut(place) {
                Some(known) => known.add(&node),
                None => self.nodes.push(node),
            }
            self.add_lines(function, &forest.lines(at, view.header()));
            self.add_sizes(function, view, measured);
            places.push(Some(place));
        }
    }

    /// Adds the calls of a node to those of the line that made them.
    fn add_line_call(&mut self, (caller, line, callee): (usize, u32, usize), node: &Node) {
        let parent = node.parent.map_or_else(Vec::new, |parent| self.callers(parent));
        let calls = self.line_calls.entry((caller, line)).or_default().entry(callee).or_default();
        calls.calls += node.calls;
        // Where the caller calls itself further down, the inner calls are part of the outer ones.
        if !parent.iter().any(|&(function, _)| function == caller) {
            calls.total_s += node.total_s;
        }
    }

    fn add_sizes(&mut self, function: usize, view: &View<'_>, measured: &Measured) {
        let Some(sizes) = view.sizes(measured.record.sizes).filter(|_| measured.record.sizes != 0) else {
            return;
        };
        let rows = self.sizes.entry(function).or_default();
        for class in (0..SIZE_CLASSES).filter(|&class| sizes.calls[class] > 0) {
            let at = rows.partition_point(|row| row.class < class);
            if rows.get(at).is_none_or(|row| row.class != class) {
                rows.insert(at, SizeClass { class, ..SizeClass::default() });
            }
            rows[at].calls += sizes.calls[class];
            rows[at].total_s += sizes.ticks[class] as f64 * view.header().ns_per_tick * 1e-9;
        }
    }

    fn add_lines(&mut self, function: usize, lines: &[MeasuredLine]) {
        for line in lines {
            let sum = self.lines.entry((function, line.line)).or_default();
            sum.hits += line.hits;
            sum.self_s += line.self_ns as f64 * 1e-9;
        }
    }

    /// Takes the call bias out of the self times: the inside part for each call of a node, the outside part for each
    /// call it made. A negative inside part is given back by the caller; a flat profile does not tell the caller.
    fn correct(&mut self, view: &View<'_>) {
        let header = view.header();
        let is_sound = |cost: f64| cost.is_finite() && cost >= 0.0;
        if !is_sound(header.inside_ns + header.outside_ns) || !is_sound(header.outside_ns) {
            return;
        }
        let inside_ns = if self.is_flat { header.inside_ns.max(0.0) } else { header.inside_ns };
        let mut made: Vec<u64> = self.nodes.iter().map(|node| node.recursive).collect();
        if !self.is_flat {
            for node in &self.nodes {
                if let Some(parent) = node.parent {
                    made[parent] += node.calls - node.recursive;
                }
            }
        }
        for (node, made) in self.nodes.iter_mut().zip(made) {
            let bias_ns = node.calls as f64 * inside_ns + made as f64 * header.outside_ns;
            node.self_s = (node.self_s - bias_ns * 1e-9).max(0.0);
        }
    }

    /// Leaves to the top level the time that functions did not take, before their times are corrected. The
    /// cost of the top level's own calls outside of themselves is subtracted where these calls are known.
    fn take_rest(&mut self, view: &View<'_>, recorded: u64) {
        let header = view.header();
        let taken_s: f64 = self.nodes.iter().map(|node| node.self_s).sum();
        let made = |node: &&Node| node.parent.is_none() && !self.is_flat;
        let made: u64 = self.nodes.iter().filter(made).map(|node| node.calls - node.recursive).sum();
        let bias_ns = if header.outside_ns.is_finite() { made as f64 * header.outside_ns } else { 0.0 };
        let recorded_ns = recorded as f64 * header.ns_per_tick;
        self.top.self_s = ((recorded_ns - bias_ns) * 1e-9 - taken_s).max(0.0);
    }

    /// Takes what measuring cost out of the means: of each activation the inside part, and the whole
    /// cost of the calls below it, of which each has as many on average.
    fn correct_statistics(&mut self, view: &View<'_>) {
        let header = view.header();
        let pair_ns = header.inside_ns + header.outside_ns;
        // In a flat profile nothing is given back by callers.
        let inside_ns = if self.is_flat { header.inside_ns.max(0.0) } else { header.inside_ns };
        if !pair_ns.is_finite() || pair_ns < 0.0 {
            return;
        }
        let mut below: Vec<u64> = self.nodes.iter().map(|node| node.recursive).collect();
        for at in (0..self.nodes.len()).rev().filter(|_| !self.is_flat) {
            let node = &self.nodes[at];
            if let Some(parent) = node.parent {
                below[parent] += node.calls - node.recursive + below[at];
            }
        }
        for (node, below) in self.nodes.iter_mut().zip(below) {
            let below = if self.is_flat { 0 } else { below };
            let each = below as f64 / node.calls.max(1) as f64;
            node.statistics.correct_means(inside_ns + each * pair_ns);
        }
    }

    fn add_up(&mut self) {
        if !self.is_flat {
            self.nodes.iter_mut().for_each(|node| node.total_s = node.self_s);
            for at in (0..self.nodes.len()).rev() {
                if let Some(parent) = self.nodes[at].parent {
                    self.nodes[parent].total_s += self.nodes[at].total_s;
                }
            }
        }
        for at in 0..self.nodes.len() {
            self.add_node(at);
        }
    }

    /// Adds a node to its function and to the arc that leads to it.
    fn add_node(&mut self, at: usize) {
        let node = self.nodes[at].clone();
        let above = self.callers(at);
        let is_inner = above.iter().any(|&(function, _)| function == node.function);
        let row = &mut self.functions[node.function];
        row.calls += node.calls;
        row.self_s += node.self_s;
        row.memory.add(&node.memory);
        row.statistics.merge(&node.statistics);
        row.is_recursive |= node.recursive > 0 || is_inner;
        if !is_inner {
            row.total_s += node.total_s;
        }
        if node.recursive > 0 && !self.is_flat {
            self.arcs.entry((node.function, node.function)).or_default().calls += node.recursive;
        }
        let mut is_open = false;
        let entry = match above.first() {
            Some(&(caller, _)) => {
                let arc = (caller, node.function);
                is_open = above
                    .iter()
                    .any(|&(function, caller)| (caller, Some(function)) == (Some(arc.0), Some(arc.1)));
                self.arcs.entry(arc).or_default()
            }
            None if self.is_flat => return,
            None => self.top.arcs.entry(node.function).or_default(),
        };
        entry.calls += node.calls - node.recursive;
        entry.statistics.merge(&node.statistics);
        if !is_open {
            entry.total_s += node.total_s;
        }
    }

    /// The functions above a node, nearest first, each with its own caller.
    fn callers(&self, at: usize) -> Vec<(usize, Option<usize>)> {
        let mut above = Vec::new();
        let mut next = self.nodes[at].parent;
        while let Some(node) = next {
            next = self.nodes[node].parent;
            above.push((self.nodes[node].function, next.map(|caller| self.nodes[caller].function)));
        }
        above
    }

    /// Seconds altogether.
    pub(crate) fn run_s(&self) -> f64 {
        self.functions.iter().map(|row| row.self_s).sum()
    }

    /// Seconds of a line with what it called.
    pub(crate) fn line_total_s(&self, function: usize, line: u32) -> f64 {
        let own = self.lines.get(&(function, line)).map_or(0.0, |line| line.self_s);
        let called = self.line_calls.get(&(function, line));
        own + called.map_or(0.0, |calls| calls.values().map(|call| call.total_s).sum::<f64>())
    }

    /// The numbers of the lines of a function, in order.
    pub(crate) fn lines_of(&self, function: usize) -> Vec<u32> {
        let of = (function, 0)..=(function, u32::MAX);
        let mut lines: Vec<u32> = self.lines.range(of.clone()).map(|((_, line), _)| *line).collect();
        lines.extend(self.line_calls.range(of).map(|((_, line), _)| *line));
        lines.sort_unstable();
        lines.dedup();
        lines
    }

    /// The rows of a function's `ExecutedLines`: line, hits, self time and total time.
    fn executed_lines(&self, function: usize) -> Value {
        let row = |line: u32| {
            let Line { hits, self_s } = self.lines.get(&(function, line)).copied().unwrap_or_default();
            vec![f64::from(line), hits as f64, self_s, self.line_total_s(function, line)]
        };
        Value::Matrix(self.lines_of(function).into_iter().map(row).collect(), 4)
    }

    /// The rows of a function's `ArgumentSizes`: the least size of a class, calls and total time.
    fn argument_sizes(&self, function: usize) -> Value {
        let rows = self.sizes.get(&function).into_iter().flatten();
        Value::Matrix(rows.map(|row| vec![row.least(), row.calls as f64, row.total_s]).collect(), 3)
    }

    /// Whether memory was counted.
    pub(crate) fn has_memory(&self) -> bool {
        self.functions.iter().any(|row| row.memory.allocations > 0)
    }

    /// The structure that Octave's `profile ("info")` returns; with `details`, more fields.
    ///
    /// As in Octave, `TotalTime` in the table of functions is self time: `profshow` adds it up to
    /// the whole.
    pub(crate) fn info(&self, details: bool) -> Value {
        let mut children: Vec<Vec<usize>> = vec![Vec::new(); self.nodes.len()];
        let mut roots = Vec::new();
        for (at, node) in self.nodes.iter().enumerate() {
            node.parent.map_or(&mut roots, |parent| &mut children[parent]).push(at);
        }
        let mut fields = vec![
            ("FunctionTable", self.function_table(details)),
            ("Hierarchical", self.hierarchy(&roots, &children)),
        ];
        if details {
            fields.push(("Arcs", self.arc_table()));
            fields.push(("TopLevel", self.top_level()));
        }
        Value::structure(fields)
    }

    fn function_table(&self, details: bool) -> Value {
        let mut fields = vec!["FunctionName", "TotalTime", "NumCalls", "IsRecursive", "Parents", "Children"];
        if details {
            fields.extend(["SelfTime", "CumulativeTime", "Kind", "FileName", "Line"]);
            fields.extend(STATISTICS);
        }
        let with_memory = details && self.has_memory();
        if with_memory {
            fields.extend(["Allocations", "AllocatedBytes", "LiveBytes", "PeakBytes"]);
        }
        let with_lines = details && !self.lines.is_empty();
        if with_lines {
            fields.push("ExecutedLines");
        }
        let with_sizes = details && !self.sizes.is_empty();
        if with_sizes {
            fields.push("ArgumentSizes");
        }
        let numbers = |of: &dyn Fn(&(usize, usize)) -> Option<usize>| {
            Value::Numbers(self.arcs.keys().filter_map(of).map(|at| at as f64 + 1.0).collect())
        };
        let row = |(at, row): (usize, &Row)| {
            let mut values = vec![
                Value::Text(row.name.clone()),
                Value::Number(row.self_s),
                Value::Number(row.calls as f64),
                Value::Number(f64::from(u8::from(row.is_recursive))),
                numbers(&|arc| (arc.1 == at).then_some(arc.0)),
                numbers(&|arc| (arc.0 == at).then_some(arc.1)),
            ];
            if details {
                values.extend([
                    Value::Number(row.self_s),
                    Value::Number(row.total_s),
                    Value::Text(row.kind.to_owned()),
                    Value::Text(row.file.clone()),
                    Value::Number(f64::from(row.line)),
                ]);
                values.extend(statistics(&row.statistics));
            }
            if with_memory {
                let Memory { allocations, allocated, live, peak } = row.memory;
                values
                    .extend([allocations, allocated, live, peak].map(|number| Value::Number(number as f64)));
            }
            if with_lines {
                values.push(self.executed_lines(at));
            }
            if with_sizes {
                values.push(self.argument_sizes(at));
            }
            values
        };
        Value::Structures(Structures { fields, rows: self.functions.iter().enumerate().map(row).collect() })
    }

    fn hierarchy(&self, nodes: &[usize], children: &[Vec<usize>]) -> Value {
        let row = |&at: &usize| {
            let node = &self.nodes[at];
            vec![
                Value::Number(node.function as f64 + 1.0),
                Value::Number(node.self_s),
                Value::Number(node.total_s),
                Value::Number(node.calls as f64),
                self.hierarchy(&children[at], children),
            ]
        };
        let fields = vec!["Index", "SelfTime", "TotalTime", "NumCalls", "Children"];
        Value::Structures(Structures { fields, rows: nodes.iter().map(row).collect() })
    }

    fn arc_table(&self) -> Value {
        let row = |(&(caller, callee), arc): (&(usize, usize), &Arc)| {
            let mut values = vec![Value::Number(caller as f64 + 1.0)];
            values.extend(arc_values(callee, arc));
            values
        };
        let fields = ["Caller"].into_iter().chain(ARC).chain(STATISTICS).collect();
        Value::Structures(Structures { fields, rows: self.arcs.iter().map(row).collect() })
    }

    fn top_level(&self) -> Value {
        let rows = self.top.arcs.iter().map(|(&callee, arc)| arc_values(callee, arc)).collect();
        let fields = ARC.into_iter().chain(STATISTICS).collect();
        Value::structure(vec![
            ("SelfTime", Value::Number(self.top.self_s)),
            ("Arcs", Value::Structures(Structures { fields, rows })),
        ])
    }
}

/// The fields of an arc from a caller that is known.
const ARC: [&str; 3] = ["Callee", "NumCalls", "TotalTime"];

/// The fields of statistics, in the order of [`seconds`] behind the first.
const STATISTICS: [&str; 6] =
    ["NumTimed", "MeanTime", "CalmMeanTime", "LeastTime", "GreatestTime", "StdTime"];

/// The values of [`ARC`], then those of [`STATISTICS`].
fn arc_values(callee: usize, arc: &Arc) -> Vec<Value> {
    let mut values =
        vec![Value::Number(callee as f64 + 1.0), Value::Number(arc.calls as f64), Value::Number(arc.total_s)];
    values.extend(statistics(&arc.statistics));
    values
}

/// The values of [`STATISTICS`]; not a number where one is not known.
fn statistics(of: &ActivationStatistics) -> impl Iterator<Item = Value> {
    let seconds = seconds(of).into_iter().map(|seconds| seconds.unwrap_or(f64::NAN));
    core::iter::once(of.timed as f64).chain(seconds).map(Value::Number)
}

impl Node {
    fn new(function: usize, parent: Option<usize>, measured: &Measured) -> Self {
        let seconds = |ns: u64| ns as f64 * 1e-9;
        let calls = measured.record.calls;
        let recursive = measured.record.recursive.min(calls);
        Self {
            function,
            parent,
            calls,
            recursive,
            self_s: seconds(measured.self_ns),
            total_s: seconds(measured.total_ns),
            memory: Memory::of(measured),
            statistics: measured.statistics(),
        }
    }

    /// Takes in a node of the same function in the same context, called from another line.
    fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.recursive += other.recursive;
        self.self_s += other.self_s;
        self.total_s += other.total_s;
        self.memory.add(&other.memory);
        self.statistics.merge(&other.statistics);
    }
}

/// Whether a node is part of the tables. One that was open when the process was forked has time,
/// but no calls.
fn is_called(node: &Measured) -> bool {
    node.parent.is_some() && (node.record.calls > 0 || node.total_ns > 0)
}

/// The word for a kind of functions.
fn kind_name(kind: u32) -> &'static str {
    match kind {
        function_kind::BUILTIN => "builtin",
        function_kind::OPERATOR => "operator",
        function_kind::SCRIPT => "script",
        function_kind::EXTENSION => "extension",
        function_kind::ANONYMOUS => "anonymous",
        _ => "function",
    }
}
