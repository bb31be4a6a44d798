//! Reads profiles of the Firefox Profiler.

use std::collections::HashMap;
use std::rc::Rc;

use serde_json::Value;
use treering_profile::{
    Frame, Function, FunctionId, FunctionKind, Line, LineId, Mark, MarkKind, Metric, MetricId, ModuleId,
    ModuleKind, NodeId, Process, ProcessId, Profile, ThreadId, Unit,
};

use crate::budget::Budget;
use crate::firefox::location::{Columns, Location};
use crate::firefox::raw;
use crate::firefox::table::{EXEC, File, Library, MARK, Samples, Tables, Thread, USER_TIMING};
use crate::import::Import;
use crate::json::{self, nanoseconds};
use crate::{Problem, ReadError, ReadReport};

/// Reads a processed profile, or one as Firefox itself writes it.
///
/// The metrics are what weights are: `samples`, with `time` that is worth the interval for each of them,
/// `time` of events that were traced, or `bytes`; and `cpu time` where it was measured for samples.
/// Frames' lines are call sites, and the innermost one's gets the costs.
///
/// # Errors
/// When it is damaged, not processed, refers to what is missing, or has weights below 0.
pub fn read(bytes: &[u8]) -> Result<(Profile, ReadReport), ReadError> {
    read_within(bytes, Budget::new(bytes.len()))
}

/// The same with a limit to the memory that the profile may take.
pub(crate) fn read_within(bytes: &[u8], budget: Budget) -> Result<(Profile, ReadReport), ReadError> {
    let file: File = match json::parse(bytes) {
        Ok(file) => file,
        Err(error) => {
            // Tables of Firefox itself are rows, with a schema of their columns.
            let raw = json::parse::<Value>(bytes).ok().filter(raw::is_raw).ok_or(error)?;
            serde_json::from_value(raw::processed(&raw))?
        }
    };
    let mut reader = Reader::new(&file, budget);
    for (at, thread) in file.threads.iter().enumerate() {
        if !thread.samples.stack.is_empty() || thread.has_marks() {
            reader.thread(at, thread)?;
        }
    }
    reader.marks();
    reader.finish()
}

/// The tables of a thread, or else those of all threads.
struct View<'a> {
    thread: usize,
    own: &'a Tables,
    shared: &'a Tables,
    libraries: &'a [Library],
}

/// A frame of the file: its function and the line that ran.
#[derive(Clone, Copy)]
struct Place {
    function: FunctionId,
    line: Option<LineId>,
}

struct Reader<'a> {
    file: &'a File,
    import: Import,
    processes: HashMap<(u32, String), ProcessId>,
    metrics: HashMap<&'static str, MetricId>,
    /// The frames that all threads share.
    shared: Option<Rc<[Place]>>,
    /// How many functions have an address for a name.
    addresses: usize,
    mismatched: bool,
    /// Whether weights were rounded to whole numbers.
    rounded: bool,
    /// The time of the first sample, in milliseconds, where all threads have times.
    start: Option<f64>,
    marks: Vec<Mark>,
    /// How many marks are not between the first and the last sample.
    marks_outside: u64,
}

impl<'a> Reader<'a> {
    fn new(file: &'a File, budget: Budget) -> Self {
        let threads =
            || file.threads.iter().map(|thread| &thread.samples).filter(|samples| !samples.stack.is_empty());
        let times: Option<Vec<_>> = threads().map(Samples::times).collect();
        // Our own files have a sample for each node, unless they say that their times are those of the run.
        let times = times.filter(|_| file.meta.treering.is_none() || file.meta.treering_times);
        let start = times.map(|times| times.into_iter().flatten().fold(f64::INFINITY, f64::min));
        let start = if file.meta.treering_times { start.and(Some(0.0)) } else { start };
        let mut import = Import::new(budget);
        import.begin_time(0);
        Self {
            file,
            import,
            start: start.filter(|start| start.is_finite()),
            processes: HashMap::new(),
            metrics: HashMap::new(),
            shared: None,
            addresses: 0,
            mismatched: false,
            rounded: false,
            marks: Vec::new(),
            marks_outside: 0,
        }
    }

    fn thread(&mut self, at: usize, thread: &'a Thread) -> Result<(), ReadError> {
        let libraries = if self.file.libs.is_empty() { &thread.libs } else { &self.file.libs };
        let view = View { thread: at, own: &thread.tables, shared: &self.file.shared, libraries };
        let id = self.add_thread(thread);
        self.note_marks(&view, id, thread)?;
        if thread.samples.stack.is_empty() {
            return Ok(());
        }
        let places = match (&self.shared, view.own.frames.is_none()) {
            (Some(shared), true) => Rc::clone(shared),
            (_, is_shared) => {
                let places: Rc<[Place]> = self.places(&view)?.into();
                self.shared = is_shared.then(|| Rc::clone(&places));
                places
            }
        };
        let nodes = self.nodes(&view, id, &places)?;
        self.samples(&view, id, &thread.samples, &nodes)
    }

    /// Notes the marks that the program set itself; they become marks of the profile once all samples are read.
    fn note_marks(&mut self, view: &View<'_>, id: ThreadId, thread: &Thread) -> Result<(), ReadError> {
        let (Some(start), Some(markers)) = (self.start, &thread.markers) else { return Ok(()) };
        for (data, time) in markers.data.iter().zip(&markers.start) {
            let (Some(data), Some(time)) = (data, time) else { continue };
            let kind = match data.entry_type.as_str() {
                _ if data.kind != USER_TIMING => continue,
                Some(MARK) => MarkKind::Mark,
                Some(EXEC) => MarkKind::Exec,
                _ => continue,
            };
            let name = match &data.name {
                Value::String(name) => name,
                // In newer files, the number of a text.
                Value::Number(at) => view.text(at.as_i64().unwrap_or(-1))?,
                _ => "(no name)",
            };
            self.import.budget.bytes((size_of::<Mark>() + name.len()) as u64)?;
            let name = self.import.profile.strings.intern(name);
            match nanoseconds(time - start, 1e6) {
                Some(time_ns) => self.marks.push(Mark { time_ns, end_ns: None, thread: id, kind, name }),
                None => self.marks_outside += 1,
            }
        }
        Ok(())
    }

    /// Adds the marks; of a file that is not ours, those between the first and the last sample.
    fn marks(&mut self) {
        let Some(timeline) = &mut self.import.profile.timeline else { return };
        let (length_ns, is_ours) = (timeline.length_ns, self.file.meta.treering_times);
        let all = self.marks.len();
        self.marks.retain(|mark| is_ours || mark.time_ns <= length_ns);
        self.marks_outside += (all - self.marks.len()) as u64;
        self.marks.sort_by_key(|mark| mark.time_ns);
        let further = self.marks.len().saturating_sub(MOST_MARKS);
        self.marks.truncate(MOST_MARKS);
        for mark in &self.marks {
            timeline.extend_to(mark.time_ns.saturating_add(1));
        }
        timeline.marks.append(&mut self.marks);
        self.import.note_count(
            "marks before the first sample or after the last one are left out",
            self.marks_outside,
        );
        self.import.note_count("marks beyond the first 16384 are left out", further as u64);
    }

    fn add_thread(&mut self, thread: &Thread) -> ThreadId {
        let number = |value: &Value| match value {
            Value::Number(number) => number.as_u64().and_then(|number| u32::try_from(number).ok()),
            // `pid-1` and `pid.1` tell apart what has one number.
            Value::String(text) => text.split(['-', '.']).next().and_then(|text| text.parse().ok()),
            _ => None,
        };
        let pid = number(&thread.pid).unwrap_or(0);
        let name = thread.process_name.clone().unwrap_or_default();
        let run = self.import.run;
        let add = || self.import.profile.add_process(Process { run, pid, name: name.clone() });
        let process = *self.processes.entry((pid, name.clone())).or_insert_with(add);
        self.import.profile.add_thread(
            process,
            number(&thread.tid).unwrap_or(0),
            thread.name.clone().unwrap_or_default(),
        )
    }

    /// The function and line of every frame.
    fn places(&mut self, view: &View<'_>) -> Result<Vec<Place>, ReadError> {
        let frames = view.table("frameTable", |tables| tables.frames.as_ref())?;
        let functions = view.table("funcTable", |tables| tables.functions.as_ref())?;
        let mut known: HashMap<(i64, i64, bool), FunctionId> = HashMap::new();
        let mut places = Vec::with_capacity(frames.func.len());
        for (at, &func) in frames.func.iter().enumerate() {
            let library = frames.lib.get(at).copied().flatten().unwrap_or(-1);
            let inlined = frames.inline_depth.get(at).copied().flatten().unwrap_or(0) > 0;
            let row = view.row("funcTable", func, functions.name.len())?;
            let function = match known.get(&(func, library, inlined)) {
                Some(&function) => function,
                None => {
                    let function = self.function(view, row, library, inlined)?;
                    known.insert((func, library, inlined), function);
                    function
                }
            };
            let number = frames.line.get(at).copied().flatten().and_then(line_number);
            let file = self.import.profile.functions[function].file;
            let line = number.map(|line| self.import.profile.lines.intern(Line { file, line }));
            places.push(Place { function, line });
        }
        Ok(places)
    }

    fn function(
        &mut self,
        view: &View<'_>,
        row: usize,
        library: i64,
        inlined: bool,
    ) -> Result<FunctionId, ReadError> {
        let functions = view.table("funcTable", |tables| tables.functions.as_ref())?;
        let name = view.text(functions.name[row])?;
        let get = |column: &[Option<i64>]| column.get(row).copied().flatten().filter(|&at| at >= 0);
        let file = match (get(&functions.file), get(&functions.source)) {
            (Some(file), _) => view.text(file)?,
            (None, Some(source)) => {
                let sources = view.table("sources", |tables| tables.sources.as_ref())?;
                view.text(sources.filename[view.row("sources", source, sources.filename.len())?])?
            }
            (None, None) => "",
        };
        let is_script = functions.is_script.get(row).copied().flatten().unwrap_or(false);
        let is_old = self.file.meta.version.unwrap_or(0.0) < PLACES_APART;
        let in_name =
            (is_old && is_script && file.is_empty()).then(|| Location::parse(name, Columns::Never)).flatten();
        let (name, file) = in_name.map_or((name, file), |at| (at.name, at.file));
        let of_resource = get(&functions.resource).and_then(|resource| {
            let resources = view.own.resources.as_ref().or(view.shared.resources.as_ref())?;
            resources.lib.get(resource as usize).copied().flatten()
        });
        let library = if library >= 0 { library } else { of_resource.unwrap_or(-1) };
        let module = usize::try_from(library).ok().and_then(|at| view.libraries.get(at));
        let module = module.map(|library| self.module(library));
        let is_address = name
            .strip_prefix("0x")
            .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        self.addresses += usize::from(is_address);
        let kind = match module.map(|module| self.import.profile.modules[module].kind) {
            _ if is_address => FunctionKind::Unresolved,
            _ if is_script => FunctionKind::Interpreted,
            _ if inlined => FunctionKind::Inlined,
            Some(ModuleKind::Kernel) => FunctionKind::Kernel,
            Some(ModuleKind::Jit) => FunctionKind::Jit,
            _ => FunctionKind::Native,
        };
        let line = functions.line.get(row).copied().flatten().and_then(line_number);
        let line = line.or(in_name.map(|at| at.line)).unwrap_or(0);
        let (file, name) = (self.import.string(file), self.import.profile.strings.intern(name));
        let function = Function { module, file, line, kind, ..Function::named(name) };
        Ok(self.import.profile.functions.intern(function))
    }

    fn module(&mut self, library: &Library) -> ModuleId {
        let path = if library.path.is_empty() { &library.name } else { &library.path };
        self.import.module(path)
    }

    /// The node and line of every stack. Callers come before what they call.
    fn nodes(
        &mut self,
        view: &View<'_>,
        thread: ThreadId,
        places: &[Place],
    ) -> Result<Vec<(NodeId, Option<LineId>)>, ReadError> {
        let stacks = view.table("stackTable", |tables| tables.stacks.as_ref())?;
        let root = self.import.profile.threads[thread.index()].root;
        // Those of other threads are not added to this one's tree.
        let wanted = self.wanted(view)?;
        let mut nodes: Vec<(NodeId, Option<LineId>)> = Vec::with_capacity(stacks.frame.len());
        for (at, &frame) in stacks.frame.iter().enumerate() {
            let place = places[view.row("frameTable", frame, places.len())?];
            let (above, call_site) = match view.caller(at)? {
                Some(caller) => nodes[caller],
                None => (root, None),
            };
            if !wanted[at] {
                nodes.push((root, None));
                continue;
            }
            let (node, _) = self.import.profile.step(above, &Frame { function: place.function, call_site });
            self.import.charge_nodes()?;
            nodes.push((node, place.line));
        }
        Ok(nodes)
    }

    /// Marks the stacks of samples of the thread, and those of their callers.
    fn wanted(&mut self, view: &View<'_>) -> Result<Vec<bool>, ReadError> {
        let stacks = view.table("stackTable", |tables| tables.stacks.as_ref())?;
        let mut wanted = vec![false; stacks.frame.len()];
        let samples = &self.file.threads[view.thread].samples;
        for &stack in samples.stack.iter().flatten().filter(|&&stack| stack >= 0) {
            wanted[view.row("stackTable", stack, stacks.frame.len())?] = true;
        }
        // Where all threads share the stacks, a thread of few samples must not cost all of them each time.
        self.import.budget.bytes(stacks.frame.len() as u64)?;
        for at in (0..wanted.len()).rev() {
            if wanted[at]
                && let Some(caller) = view.caller(at)?
            {
                wanted[caller] = true;
            }
        }
        Ok(wanted)
    }

    fn samples(
        &mut self,
        view: &View<'_>,
        thread: ThreadId,
        samples: &Samples,
        nodes: &[(NodeId, Option<LineId>)],
    ) -> Result<(), ReadError> {
        let root = self.import.profile.threads[thread.index()].root;
        let columns = self.columns(samples);
        let cpu = self.cpu(samples);
        let times = samples.times().filter(|_| self.start.is_some());
        for (at, stack) in samples.stack.iter().enumerate() {
            let (node, line) = match stack.filter(|&stack| stack >= 0) {
                Some(stack) => nodes[view.row("stackTable", stack, nodes.len())?],
                None => (root, None),
            };
            let weight = match &samples.weight {
                Some(weights) => weights.get(at).copied().flatten(),
                None => Some(1.0),
            };
            self.mismatched |= weight.is_none();
            let has_fraction = weight.is_some_and(|weight| weight.fract() != 0.0);
            self.rounded |= has_fraction && columns.iter().any(|(_, factor)| *factor == 1.0);
            let mut weights = Vec::with_capacity(columns.len() + 1);
            for &(metric, factor) in &columns {
                let cost = nanoseconds(weight.unwrap_or(0.0), factor);
                let cost = cost.ok_or_else(|| {
                    let sample = format_args!("sample {at} of thread {}", view.thread).to_string();
                    ReadError::at(sample, "its weight is below 0 or too large")
                })?;
                weights.push((metric, cost));
            }
            if let Some((metric, factor, deltas)) = cpu {
                let delta = deltas.get(at).copied().flatten().unwrap_or(0.0).max(0.0);
                weights.push((metric, nanoseconds(delta, factor).unwrap_or(0)));
            }
            weights.iter().for_each(|&(metric, cost)| self.charge(node, line, metric, cost));
            if let (Some(times), Some(start)) = (&times, self.start) {
                let since_start = nanoseconds(times[at] - start, 1e6).unwrap_or(0);
                self.import.set_line(line);
                self.import.place_in_time(since_start, node, &weights)?;
            }
            self.import.profile.metadata.losses.samples += 1;
        }
        Ok(())
    }

    fn charge(&mut self, node: NodeId, line: Option<LineId>, metric: MetricId, cost: u64) {
        self.import.profile.tree.add_self_cost(metric, node, cost);
        if let Some(line) = line.filter(|_| cost > 0) {
            self.import.profile.line_costs.push(treering_profile::LineCost { node, line, metric, cost });
        }
    }

    /// The metrics that a weight is charged to, and what it is multiplied by in each.
    fn columns(&mut self, samples: &Samples) -> Vec<(MetricId, f64)> {
        let ours = self.file.meta.treering.clone();
        let named = |name: &str| ours.clone().unwrap_or_else(|| name.to_owned());
        match samples.weight_type.as_deref() {
            Some("tracing-ms") => {
                vec![(self.metric("traced", Metric::exact(named("time"), Unit::Nanoseconds)), 1e6)]
            }
            Some("bytes") => vec![(self.metric("bytes", Metric::exact(named("bytes"), Unit::Bytes)), 1.0)],
            _ => {
                let samples = self.metric("samples", Metric::exact(named("samples"), Unit::Count));
                let interval =
                    nanoseconds(self.file.meta.interval, 1e6).filter(|&ns| ns > 0 && ours.is_none());
                let time = interval.map(|interval| {
                    let metric = Metric::sampled("time", Unit::Nanoseconds, samples, Some(interval));
                    (self.metric("time", metric), interval as f64)
                });
                time.into_iter().chain([(samples, 1.0)]).collect()
            }
        }
    }

    fn metric(&mut self, key: &'static str, metric: Metric) -> MetricId {
        let add = || self.import.profile.add_metric(metric);
        *self.metrics.entry(key).or_insert_with(add)
    }

    /// The processor time that samples state since the last one.
    fn cpu<'b>(&mut self, samples: &'b Samples) -> Option<(MetricId, f64, &'b [Option<f64>])> {
        let unit = self.file.meta.units.as_ref().and_then(|units| units.cpu.as_deref());
        let factor = match unit {
            Some("ns") => 1.0,
            Some("µs" | "μs" | "us") => 1e3,
            _ => return None,
        };
        let deltas = samples.cpu.as_deref()?;
        let metric = self.metric("cpu", Metric::exact("cpu time", Unit::Nanoseconds));
        Some((metric, factor, deltas))
    }

    fn finish(self) -> Result<(Profile, ReadReport), ReadError> {
        let mut import = self.import;
        if import.profile.threads.is_empty() {
            return Err(Problem::Empty("samples").into());
        }
        let addresses = self.addresses;
        import.note_if(
            addresses > 0,
            &format!(
                "functions have addresses for names, as samply writes them: {addresses}; the profiler saves a file with \
                 names"
            ),
        );
        import.note_if(self.rounded, "weights are rounded to whole bytes or samples");
        import.note_if(self.mismatched, "samples have no weight; they cost nothing");
        let meta = &self.file.meta;
        meta.our_run.iter().for_each(|ours| ours.state(&mut import.profile));
        let product =
            meta.product.as_deref().filter(|product| !product.is_empty() && meta.treering.is_none());
        let product = product.map_or(String::new(), |product| format!(", of {product}"));
        if let Some(version) = meta.version {
            import.profile.metadata.version = format!("format {version}");
        }
        import.finish(format!("Firefox Profiler{product}"))
    }
}

impl<'a> View<'a> {
    fn table<T>(
        &self,
        name: &'static str,
        of: impl Fn(&'a Tables) -> Option<&'a T>,
    ) -> Result<&'a T, ReadError> {
        let found = of(self.own).or_else(|| of(self.shared));
        found.ok_or_else(|| self.missing(format!("it has samples and no {name}")))
    }

    fn row(&self, table: &'static str, row: i64, length: usize) -> Result<usize, ReadError> {
        let found = usize::try_from(row).ok().filter(|&row| row < length);
        found.ok_or_else(|| {
            self.missing(format!(
                "row {row} of the {table} is missing or not before the row that refers to it"
            ))
        })
    }

    fn missing(&self, text: String) -> ReadError {
        ReadError::at(format_args!("thread {}", self.thread), Problem::missing(text))
    }

    fn text(&self, at: i64) -> Result<&'a str, ReadError> {
        let strings = self.table("stringArray", |tables| tables.strings.as_ref())?;
        Ok(&strings[self.row("stringArray", at, strings.len())?])
    }

    /// The stack of the caller, which comes before it.
    fn caller(&self, at: usize) -> Result<Option<usize>, ReadError> {
        let stacks = self.table("stackTable", |tables| tables.stacks.as_ref())?;
        let caller = match &stacks.offset {
            Some(offsets) => {
                let offset = offsets.get(at).copied().unwrap_or(0);
                (offset != 0).then(|| (at as i64).saturating_sub(offset))
            }
            None => stacks.prefix.get(at).copied().flatten().filter(|&prefix| prefix != -1),
        };
        caller.map(|caller| self.row("stackTable", caller, at)).transpose()
    }
}

fn line_number(line: f64) -> Option<u32> {
    (line >= 1.0 && line < f64::from(u32::MAX)).then_some(line as u32)
}

/// The most marks that are read.
const MOST_MARKS: usize = 16_384;

/// From this version on, functions have their files and lines in columns; before, in their names.
const PLACES_APART: f64 = 4.0;
