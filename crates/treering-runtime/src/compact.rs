//! Turns a live file into a `.trg` file, when the program has ended.

mod time;

use std::collections::HashMap;

use treering_events::{
    Forest, Function, Header, Measured, Ref, SIZE_CLASSES, Text, View, clock, flag, function_kind, mode,
    rule, setting,
};

use crate::course::Courses;
use crate::mark;
use crate::trg::{Json, Kind, Payload, TrgFile};

/// How many rows of any table go into a frame at most: a reader takes no frame that is too large to be
/// held in memory.
const BLOCK: usize = 1 << 16;

/// How many bytes of strings go into a frame, but for one that is longer.
const BLOCK_BYTES: usize = 1 << 20;

/// The numbers of kinds of functions and modules in `.trg` files.
const ROOT: u8 = 3;
const ADDRESS: u8 = 4;
const INTERPRETED: u8 = 7;
const TASK: u8 = 8;
const ELF: u64 = 0;
const ADDRESS_KNOWN: u8 = 128;

/// The number in `.trg` files of a kind of function.
fn kind_number(kind: u32) -> u8 {
    match kind {
        function_kind::TASK => TASK,
        function_kind::BUILTIN => 9,
        function_kind::OPERATOR => 10,
        function_kind::SCRIPT => 11,
        function_kind::EXTENSION => 12,
        function_kind::ANONYMOUS => 13,
        _ => INTERPRETED,
    }
}

/// The `.trg` file of the recording in a live file; `None` if it is no live file.
pub(crate) fn compact(live: &[u8]) -> Option<Vec<u8>> {
    let view = View::new(live).ok()?;
    let forest = Forest::of(&view, None);
    Some(Compaction::new(&view, &forest).write())
}

struct Compaction<'a> {
    view: &'a View<'a>,
    header: &'a Header,
    forest: &'a Forest,
    strings: Strings,
    metrics: Vec<Metric>,
    /// Nodes that are not roots, by the place of their record, to their index.
    nodes: HashMap<Ref, u64>,
    /// When time passed, if that was kept.
    courses: Option<Courses>,
}

/// A column of costs.
struct Metric {
    name: &'static str,
    unit: &'static str,
    is_level: bool,
    cost: fn(&Measured) -> u64,
}

impl Metric {
    const fn new(name: &'static str, unit: &'static str, cost: fn(&Measured) -> u64) -> Self {
        Self { name, unit, is_level: false, cost }
    }
}

/// The metrics of a file, in the order in which a reader of live files has them too.
fn metrics(view: &View<'_>, forest: &Forest) -> Vec<Metric> {
    let header = view.header();
    let mut metrics = Vec::new();
    if header.mode != mode::COUNT {
        metrics.push(Metric::new("time", "nanoseconds", |node| node.self_ns));
    }
    if header.flags & flag::CPU_TIME != 0 {
        metrics.push(Metric::new("cpu", "nanoseconds", |node| node.record.user_ns + node.record.system_ns));
        metrics.push(Metric::new("user", "nanoseconds", |node| node.record.user_ns));
        metrics.push(Metric::new("system", "nanoseconds", |node| node.record.system_ns));
    }
    if header.mode == mode::COUNT {
        metrics.push(Metric::new("calls", "count", |node| node.record.calls));
    }
    if header.flags & flag::MEMORY != 0 {
        metrics.push(Metric::new("allocated", "bytes", |node| node.record.allocated));
        metrics.push(Metric::new("allocations", "count", |node| node.record.allocations));
    }
    if view.points().next().is_some() {
        for name in ["virtual memory", "resident memory"] {
            metrics.push(Metric { is_level: true, ..Metric::new(name, "bytes", |_| 0) });
        }
    }
    if forest.nodes.iter().any(|node| node.line_hits > 0) {
        metrics.push(Metric::new("line hits", "count", |node| node.line_hits));
    }
    metrics
}

/// Texts that are referred to by number; the first is empty.
struct Strings {
    all: Vec<String>,
    numbers: HashMap<String, u64>,
}

impl Strings {
    fn intern(&mut self, text: &[u8]) -> u64 {
        let text = String::from_utf8_lossy(text).into_owned();
        if let Some(&known) = self.numbers.get(&text) {
            return known;
        }
        let number = self.all.len() as u64;
        self.all.push(text.clone());
        self.numbers.insert(text, number);
        number
    }
}

/// A function as a `.trg` file has it: kind, name, module plus 1, file, line, address.
type FunctionRow = (u8, u64, u64, u64, u64, u64);

impl<'a> Compaction<'a> {
    fn new(view: &'a View<'a>, forest: &'a Forest) -> Self {
        let mut strings = Strings { all: Vec::new(), numbers: HashMap::new() };
        strings.intern(b"");
        let indexes = forest.nodes.iter().enumerate().map(|(at, node)| (node.place, at as u64));
        Self {
            view,
            header: view.header(),
            forest,
            strings,
            metrics: metrics(view, forest),
            nodes: indexes.collect(),
            courses: time::courses(view, forest),
        }
    }

    fn write(mut self) -> Vec<u8> {
        let (modules, module_count, module_numbers) = self.modules();
        let (functions, function_count, numbers) = self.functions(&module_numbers);
        let points = self.points();
        let marks = self.marks();
        let (lines, sites) = self.lines();
        let mut file = TrgFile::new();
        file.frame(Kind::Meta, &Payload(self.meta().into_bytes()));
        self.string_tables().iter().for_each(|table| file.frame(Kind::Strings, table));
        if module_count > 0 {
            file.frame(Kind::Modules, &modules);
        }
        functions.iter().for_each(|table| file.frame(Kind::Functions, table));
        if let Some(lines) = &lines {
            lines.tables.iter().for_each(|table| file.frame(Kind::Lines, table));
        }
        file.frame(Kind::Processes, &self.processes());
        file.frame(Kind::Threads, &self.threads());
        for start in (0..self.forest.nodes.len()).step_by(BLOCK) {
            let end = self.forest.nodes.len().min(start + BLOCK);
            file.frame(Kind::Nodes, &self.node_table(start, end, &numbers, &sites));
            file.frame(Kind::Costs, &self.costs(start, end));
            file.frame(Kind::Calls, &self.calls(start, end));
        }
        if let Some(lines) = &lines {
            lines.costs.iter().for_each(|costs| file.frame(Kind::LineCosts, costs));
        }
        self.details(&mut file);
        self.timeline(&mut file, &marks);
        points.iter().for_each(|points| file.frame(Kind::Points, points));
        let line_counts = lines.map_or((0, 0), |lines| lines.counts);
        file.end(self.totals(module_count, function_count, line_counts))
    }

    fn string_tables(&self) -> Vec<Payload> {
        let mut tables = Vec::new();
        let mut start = 0;
        while start < self.strings.all.len() {
            let mut bytes = 0;
            let fits = |text: &&String| {
                bytes += text.len();
                bytes <= BLOCK_BYTES
            };
            let left = self.strings.all[start..].iter().take(BLOCK);
            let count = left.take_while(fits).count().max(1);
            let texts = &self.strings.all[start..start + count];
            let mut payload = Payload::default();
            payload.number(start as u64);
            payload.number(count as u64);
            payload.numbers(texts.iter().map(|text| text.len() as u64));
            texts.iter().for_each(|text| payload.0.extend_from_slice(text.as_bytes()));
            tables.push(payload);
            start += count;
        }
        tables
    }

    fn modules(&mut self) -> (Payload, u64, HashMap<Ref, u64>) {
        let mut records: Vec<_> = self.view.modules().collect();
        records.reverse();
        let mut rows: Vec<(u64, Vec<u8>)> = Vec::new();
        let mut numbers = HashMap::new();
        for (place, record) in records {
            let length = (record.build_id_length as usize).min(record.build_id.len());
            let path = self.strings.intern(self.view.text(record.path));
            let row = (path, record.build_id[..length].to_vec());
            let number = rows.iter().position(|known| *known == row).unwrap_or(rows.len());
            if number == rows.len() {
                rows.push(row);
            }
            numbers.insert(place, number as u64);
        }
        let mut payload = Payload::default();
        payload.number(0);
        payload.number(rows.len() as u64);
        for (path, build_id) in &rows {
            payload.number(*path);
            payload.number(ELF);
            payload.number(build_id.len() as u64);
            payload.0.extend_from_slice(build_id);
        }
        (payload, rows.len() as u64, numbers)
    }

    /// The table of functions, how many they are, and their indexes by number.
    fn functions(&mut self, modules: &HashMap<Ref, u64>) -> (Vec<Payload>, u64, HashMap<u32, u64>) {
        let mut rows: Vec<FunctionRow> = vec![(ROOT, 0, 0, 0, 0, 0)];
        let mut known: HashMap<FunctionRow, u64> = HashMap::new();
        let mut numbers = HashMap::new();
        let mut records: Vec<_> = self.view.functions().map(|(_, record)| record).collect();
        records.reverse();
        for record in records {
            let row = self.function(&record, modules);
            let index = *known.entry(row).or_insert_with(|| {
                rows.push(row);
                rows.len() as u64 - 1
            });
            numbers.insert(record.id, index);
        }
        let table = |(start, rows): (usize, &[FunctionRow])| {
            let mut payload = Payload::default();
            payload.number(start as u64);
            payload.number(rows.len() as u64);
            payload.numbers(rows.iter().map(|row| u64::from(row.0)));
            payload.differences(rows.iter().map(|row| row.1));
            payload.numbers(rows.iter().map(|_| 0));
            payload.numbers(rows.iter().map(|row| row.2));
            payload.differences(rows.iter().map(|row| row.3));
            payload.numbers(rows.iter().map(|row| row.4));
            payload.differences(rows.iter().map(|row| row.5));
            payload
        };
        (blocks(&rows).map(table).collect(), rows.len() as u64, numbers)
    }

    fn function(&mut self, record: &Function, modules: &HashMap<Ref, u64>) -> FunctionRow {
        match record.kind {
            function_kind::NATIVE => {
                let module = modules.get(&record.module).map_or(0, |number| number + 1);
                (ADDRESS | ADDRESS_KNOWN, 0, module, 0, 0, record.address)
            }
            kind => {
                let kind = kind_number(kind);
                let name = self.strings.intern(self.view.text(record.name));
                let file = self.strings.intern(self.view.text(record.file));
                (kind, name, 0, file, u64::from(record.line), 0)
            }
        }
    }

    fn processes(&self) -> Payload {
        let command = self.view.text(self.header.command);
        let program = command.split(|byte| *byte == 0).next().unwrap_or_default();
        let name = program.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        let mut payload = Payload::default();
        for number in [0, 1, 0, u64::from(self.header.pid)] {
            payload.number(number);
        }
        payload.text(&String::from_utf8_lossy(name));
        payload
    }

    fn threads(&self) -> Payload {
        let mut payload = Payload::default();
        payload.number(0);
        payload.number(self.forest.threads.len() as u64);
        for thread in &self.forest.threads {
            payload.number(0);
            payload.number(u64::from(thread.record.tid));
            payload.number(thread.root as u64);
            let name = &thread.record.name;
            let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
            let name = String::from_utf8_lossy(&name[..end]);
            match thread.record.threads {
                0 | 1 => payload.text(&name),
                many => payload.text(&format!("{name} ({many} threads)")),
            }
        }
        payload
    }

    /// `sites` are the lines from which nodes were called, plus 1, where they are known.
    fn node_table(
        &self,
        start: usize,
        end: usize,
        functions: &HashMap<u32, u64>,
        sites: &HashMap<usize, u64>,
    ) -> Payload {
        let nodes = &self.forest.nodes[start..end];
        let mut payload = Payload::default();
        payload.number(start as u64);
        payload.number(nodes.len() as u64);
        let back =
            |(at, node): (usize, &Measured)| node.parent.map_or(0, |parent| (start + at - parent) as u64);
        payload.numbers(nodes.iter().enumerate().map(back));
        let function = |node: &Measured| functions.get(&node.record.function).copied().unwrap_or(0);
        payload.numbers(nodes.iter().map(function));
        payload.numbers((start..end).map(|at| sites.get(&at).copied().unwrap_or(0)));
        payload
    }

    fn costs(&self, start: usize, end: usize) -> Payload {
        const DENSE: u8 = 0;
        let nodes = &self.forest.nodes[start..end];
        let mut payload = Payload::default();
        payload.number(start as u64);
        payload.number(nodes.len() as u64);
        let columns = || self.metrics.iter().enumerate().filter(|(_, metric)| !metric.is_level);
        payload.number(columns().count() as u64);
        for (at, metric) in columns() {
            payload.number(at as u64);
            payload.0.push(DENSE);
            payload.numbers(nodes.iter().map(metric.cost));
        }
        payload
    }

    fn calls(&self, start: usize, end: usize) -> Payload {
        let nodes = &self.forest.nodes[start..end];
        let mut payload = Payload::default();
        for number in [start as u64, nodes.len() as u64, 2, 0] {
            payload.number(number);
        }
        payload.0.push(0);
        payload.numbers(nodes.iter().map(|node| node.record.calls));
        payload.number(1);
        payload.0.push(0);
        payload.numbers(nodes.iter().map(|node| node.record.recursive.min(node.record.calls)));
        payload
    }

    /// Writes the frames for facts that are known of some nodes only.
    fn details(&self, file: &mut TrgFile) {
        let rows = |keep: fn(&Measured) -> bool| -> Vec<(u64, &Measured)> {
            let nodes = self.forest.nodes.iter().enumerate();
            nodes.filter(|(_, node)| keep(node)).map(|(at, node)| (at as u64, node)).collect()
        };
        if self.header.mode != mode::COUNT {
            let rows = rows(|node| node.parent.is_some() && (node.record.timed > 0 || node.total_ns > 0));
            rows.chunks(BLOCK).for_each(|rows| file.frame(Kind::Statistics, &statistics(rows)));
            self.sizes(file);
        }
        let with_ports = rows(|node| node.ports != [0; 5]);
        for with_ports in with_ports.chunks(BLOCK) {
            let mut payload = Payload::default();
            payload.number(with_ports.len() as u64);
            payload.differences(with_ports.iter().map(|row| row.0));
            (0..5).for_each(|port| payload.numbers(with_ports.iter().map(|row| row.1.ports[port])));
            file.frame(Kind::Ports, &payload);
        }
        let with_memory = rows(|node| node.parent.is_some() && node.peak_bytes > 0);
        for with_memory in with_memory.chunks(BLOCK) {
            let mut payload = Payload::default();
            payload.number(with_memory.len() as u64);
            payload.differences(with_memory.iter().map(|row| row.0));
            payload.numbers(with_memory.iter().map(|row| row.1.live_bytes));
            payload.numbers(with_memory.iter().map(|row| row.1.peak_bytes.max(row.1.live_bytes)));
            file.frame(Kind::Memory, &payload);
        }
    }

    fn sizes(&self, file: &mut TrgFile) {
        let mut rows: Vec<[u64; 4]> = Vec::new();
        for (at, node) in self.forest.nodes.iter().enumerate() {
            let Some(sizes) = self.view.sizes(node.record.sizes) else { continue };
            for class in (0..SIZE_CLASSES).filter(|&class| sizes.calls[class] > 0) {
                let cost = (sizes.ticks[class] as f64 * self.header.ns_per_tick + 0.5) as u64;
                rows.push([at as u64, class.saturating_sub(1) as u64, sizes.calls[class], cost]);
            }
        }
        for rows in rows.chunks(BLOCK) {
            let mut payload = Payload::default();
            payload.number(0);
            payload.number(rows.len() as u64);
            payload.differences(rows.iter().map(|row| row[0]));
            (1..4).for_each(|column| payload.numbers(rows.iter().map(|row| row[column])));
            file.frame(Kind::Sizes, &payload);
        }
    }

    /// The lines of functions whose file is known, with their costs, and the lines from which nodes were
    /// called; `None` where no lines were recorded.
    fn lines(&mut self) -> (Option<Lines>, HashMap<usize, u64>) {
        let mut sites = HashMap::new();
        let place = |name: &str| self.metrics.iter().position(|metric| metric.name == name);
        let (Some(hits), Some(time)) = (place("line hits"), place("time")) else { return (None, sites) };
        let (hits, time) = (hits as u64, time as u64);
        let files: HashMap<u32, &[u8]> =
            self.view.functions().map(|(_, record)| (record.id, self.view.text(record.file))).collect();
        let call_lines: HashMap<u32, u32> = self
            .view
            .functions()
            .filter(|(_, record)| record.call_line > 0)
            .map(|(_, record)| (record.id, record.call_line))
            .collect();
        let mut numbers: HashMap<(u64, u32), u64> = HashMap::new();
        let mut table: Vec<(u64, u32)> = Vec::new();
        let mut costs: Vec<[u64; 4]> = Vec::new();
        for (at, node) in self.forest.nodes.iter().enumerate().filter(|(_, node)| node.line_hits > 0) {
            let file = files.get(&node.record.function).copied().unwrap_or_default();
            if file.is_empty() {
                continue;
            }
            let file = self.strings.intern(file);
            for measured in self.forest.lines(at, self.header) {
                let line = *numbers.entry((file, measured.line)).or_insert_with(|| {
                    table.push((file, measured.line));
                    table.len() as u64 - 1
                });
                costs.push([at as u64, line, time, measured.self_ns]);
                costs.push([at as u64, line, hits, measured.hits]);
            }
        }
        for (at, node) in self.forest.nodes.iter().enumerate() {
            let caller = node.parent.map(|parent| self.forest.nodes[parent].record.function);
            let file = caller.and_then(|caller| files.get(&caller)).copied().unwrap_or_default();
            let Some(&line) = call_lines.get(&node.record.function).filter(|_| !file.is_empty()) else {
                continue;
            };
            let file = self.strings.intern(file);
            let line = *numbers.entry((file, line)).or_insert_with(|| {
                table.push((file, line));
                table.len() as u64 - 1
            });
            sites.insert(at, line + 1);
        }
        (Some(Lines::new(&table, &costs)), sites)
    }

    fn points(&mut self) -> Vec<Payload> {
        let threads: HashMap<Ref, (u64, u64)> = (0_u64..)
            .zip(&self.forest.threads)
            .map(|(at, thread)| (thread.place, (at, thread.root as u64)))
            .collect();
        let mut records: Vec<_> = self.view.points().map(|(_, record)| record).collect();
        records.reverse();
        records.retain(|record| threads.contains_key(&record.thread));
        let Some(level) = self.metrics.iter().position(|metric| metric.is_level) else { return Vec::new() };
        let level = level as u64;
        let blocks = records.chunks(BLOCK);
        blocks.map(|records| self.points_of(records, level, &threads)).collect()
    }

    /// Some of the points; `level` is the first metric that they have.
    fn points_of(
        &mut self,
        records: &[treering_events::Point],
        level: u64,
        threads: &HashMap<Ref, (u64, u64)>,
    ) -> Payload {
        let descriptions: Vec<u64> =
            records.iter().map(|record| self.strings.intern(self.view.text(record.description))).collect();
        let mut payload = Payload::default();
        payload.number(records.len() as u64);
        let time = |ticks: u64| {
            (ticks.saturating_sub(self.header.start_ticks) as f64 * self.header.ns_per_tick) as u64
        };
        payload.differences(records.iter().map(|record| time(record.ticks)));
        payload.differences(records.iter().map(|record| threads[&record.thread].0));
        let node = |record: &treering_events::Point| {
            self.nodes.get(&record.node).copied().unwrap_or(threads[&record.thread].1)
        };
        payload.differences(records.iter().map(node));
        payload.differences(descriptions.into_iter());
        payload.numbers(records.iter().map(|_| 2));
        payload.numbers(records.iter().flat_map(|_| [level, level + 1]));
        payload.numbers(records.iter().flat_map(|record| [record.virtual_bytes, record.resident_bytes]));
        payload
    }

    fn totals(&self, modules: u64, functions: u64, (lines, line_costs): (u64, u64)) -> Payload {
        let mut payload = Payload::default();
        let (strings, threads) = (self.strings.all.len() as u64, self.forest.threads.len() as u64);
        let nodes = self.forest.nodes.len() as u64;
        let metrics = self.metrics.len() as u64;
        for count in [strings, modules, functions, lines, threads, nodes, line_costs, 0, metrics] {
            payload.number(count);
        }
        for metric in &self.metrics {
            payload.number(self.forest.nodes.iter().map(metric.cost).fold(0, u64::saturating_add));
        }
        payload
    }

    fn text(&self, text: Text) -> String {
        String::from_utf8_lossy(self.view.text(text)).into_owned()
    }

    fn meta(&self) -> String {
        let mut json = Json::default();
        json.0.push_str("{\"metadata\":");
        self.metadata(&mut json);
        let recursion = match (self.header.mode, self.header.rule) {
            (mode::FLAT, _) => "flat",
            (_, rule::FULL) => "full",
            (_, rule::SWI_CLASSIC) => "swi-classic",
            _ => "direct",
        };
        json.0.push_str(&format!(",\"recursion\":\"{recursion}\",\"metrics\":"));
        json.list(&self.metrics, |json, metric| {
            let level = if metric.is_level { ",\"level\":true" } else { "" };
            let (name, unit) = (metric.name, metric.unit);
            json.0.push_str(&format!("{{\"name\":\"{name}\",\"unit\":\"{unit}\",\"sampling\":null{level}}}"));
        });
        json.0.push_str(",\"runs\":[");
        self.run(&mut json);
        json.0.push_str("]}");
        json.0
    }

    fn run(&self, json: &mut Json) {
        json.0.push_str("{\"command\":");
        let command = self.view.text(self.header.command);
        let words = command.split(|byte| *byte == 0).filter(|word| !word.is_empty());
        json.list(words, |json, word| json.text(&String::from_utf8_lossy(word)));
        let duration = self.header.last_raw_ns.saturating_sub(self.header.start_raw_ns);
        let cpu = match self.header.user_ns + self.header.system_ns {
            0 => "null".to_owned(),
            ns => ns.to_string(),
        };
        let start = self.header.start_unix_ns;
        json.0.push_str(&format!(
            ",\"start_unix_ns\":{start},\"duration_ns\":{duration},\"cpu_ns\":{cpu},\"end\":null}}"
        ));
    }

    fn metadata(&self, json: &mut Json) {
        let version = env!("CARGO_PKG_VERSION");
        let clock = if self.header.clock == clock::TSC { "tsc" } else { "monotonic" };
        json.0.push_str(&format!(
            "{{\"collector\":\"treering-runtime\",\"version\":\"{version}\",\"parameters\":{{\"clock\":\"{clock}\"}}"
        ));
        if self.header.mode != mode::COUNT {
            let Header { inside_ns, outside_ns, empty_inside_ns, empty_outside_ns, spread_ns, .. } =
                *self.header;
            json.0.push_str(&format!(
                ",\"call_bias\":{{\"inside_ns\":{inside_ns:?},\"outside_ns\":{outside_ns:?},\
                 \"empty_inside_ns\":{empty_inside_ns:?},\"empty_outside_ns\":{empty_outside_ns:?},\
                 \"spread_ns\":{spread_ns:?}}}"
            ));
        }
        self.losses(json);
        self.benchmark(json);
        json.0.push_str(",\"notes\":");
        json.list(self.notes(), |json, note| json.text(&note));
        json.0.push_str(",\"unfinished\":false}");
    }

    fn losses(&self, json: &mut Json) {
        let sum =
            |of: fn(&treering_events::ThreadTree) -> u64| self.forest.threads.iter().map(of).sum::<u64>();
        let open = sum(|thread| u64::from(thread.open));
        let unbalanced = sum(|thread| thread.record.unbalanced);
        let back = sum(|thread| thread.record.clock_steps_back);
        let branched = sum(|thread| thread.record.branched_leaves);
        let dropped = self.header.dropped_events + sum(|thread| thread.record.dropped);
        let unwound = sum(|thread| thread.record.unwound.iter().sum());
        json.0.push_str(&format!(
            ",\"losses\":{{\"open_activations\":{open},\"unbalanced_leaves\":{unbalanced},\
             \"branched_leaves\":{branched},\"clock_steps_back\":{back},\"dropped_events\":{dropped},\"unwound_activations\":{unwound}}}"
        ));
    }

    fn benchmark(&self, json: &mut Json) {
        let mut settings: Vec<_> = self.view.settings().map(|(_, record)| record).collect();
        settings.reverse();
        let begins = settings.iter().rposition(|record| record.kind == setting::BENCHMARK);
        let settings = &settings[begins.unwrap_or(0)..];
        let is_fact = |kind: u32| matches!(kind, setting::BENCHMARK | setting::PARAMETER | setting::RESULT);
        if !settings.iter().any(|record| is_fact(record.kind)) {
            return;
        }
        let title = settings.first().filter(|record| record.kind == setting::BENCHMARK);
        json.0.push_str(",\"benchmark\":{\"name\":");
        json.text(&title.map(|record| self.text(record.name)).unwrap_or_default());
        json.0.push_str(",\"description\":");
        json.text(&title.map(|record| self.text(record.value)).unwrap_or_default());
        for (key, kind) in [("parameters", setting::PARAMETER), ("results", setting::RESULT)] {
            let mut pairs: Vec<(String, String)> = Vec::new();
            for record in settings.iter().filter(|record| record.kind == kind) {
                let (name, value) = (self.text(record.name), self.text(record.value));
                match pairs.iter_mut().find(|(known, _)| *known == name) {
                    Some((_, old)) => *old = value,
                    None => pairs.push((name, value)),
                }
            }
            json.0.push_str(&format!(",\"{key}\":"));
            json.list(pairs, |json, (name, value)| json.list([name, value], |json, text| json.text(&text)));
        }
        json.0.push('}');
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = treering_events::notes(self.view, self.forest);
        let dropped = self.courses.as_ref().map_or(0, |_| mark::dropped());
        if dropped > 0 {
            let count = treering_events::pluralize(dropped, "mark was", "marks were");
            notes.push(format!("{count} dropped: there is room for {}", mark::MOST));
        }
        notes
    }
}

/// The frames of lines.
struct Lines {
    tables: Vec<Payload>,
    costs: Vec<Payload>,
    /// How many entries they have.
    counts: (u64, u64),
}

impl Lines {
    /// From lines of files, and from rows of node, line, metric and cost.
    fn new(lines: &[(u64, u32)], rows: &[[u64; 4]]) -> Self {
        let table = |(start, lines): (usize, &[(u64, u32)])| {
            let mut table = Payload::default();
            table.number(start as u64);
            table.number(lines.len() as u64);
            table.differences(lines.iter().map(|line| line.0));
            table.differences(lines.iter().map(|line| u64::from(line.1)));
            table
        };
        let costs = |rows: &[[u64; 4]]| {
            let mut costs = Payload::default();
            costs.number(rows.len() as u64);
            costs.differences(rows.iter().map(|row| row[0]));
            costs.differences(rows.iter().map(|row| row[1]));
            (2..4).for_each(|column| costs.numbers(rows.iter().map(|row| row[column])));
            costs
        };
        let counts = (lines.len() as u64, rows.len() as u64);
        Self { tables: blocks(lines).map(table).collect(), costs: rows.chunks(BLOCK).map(costs).collect(), counts }
    }
}

/// A table in pieces, each with the index of its first row.
fn blocks<T>(rows: &[T]) -> impl Iterator<Item = (usize, &[T])> {
    rows.chunks(BLOCK).enumerate().map(|(at, rows)| (at * BLOCK, rows))
}

fn statistics(rows: &[(u64, &Measured)]) -> Payload {
    let mut payload = Payload::default();
    payload.number(0);
    payload.number(rows.len() as u64);
    payload.differences(rows.iter().map(|row| row.0));
    payload.numbers(rows.iter().map(|row| row.1.record.timed));
    payload.numbers(rows.iter().map(|row| row.1.total_ns));
    payload.numbers(rows.iter().map(|row| row.1.least_ns));
    payload.numbers(rows.iter().map(|row| row.1.greatest_ns));
    payload.numbers(rows.iter().map(|row| row.1.calm));
    payload.numbers(rows.iter().map(|row| row.1.calm_total_ns));
    payload.floats(rows.iter().map(|row| row.1.mean_ns));
    payload.floats(rows.iter().map(|row| row.1.squares));
    payload
}
