//! Reads traces.

use std::collections::{BTreeMap, HashMap};

use treering_profile::{
    Function, FunctionId, FunctionKind, Mark, MarkKind, Metric, MetricId, NodeId, Process, ProcessId,
    Profile, ThreadId, Timeline, Unit,
};

use crate::budget::Budget;
use crate::chrome_trace::EXEC;
use crate::chrome_trace::event::{self, Trace};
use crate::chrome_trace::span::{self, Misfits};
use crate::cpuprofile::node::{Node, Nodes};
use crate::cpuprofile::{check_lengths, note_nodes, samples_in_order};
use crate::import::Import;
use crate::json::nanoseconds;
use crate::sampled_event::{MOST_EVENTS, SampledEvent, name_metrics, too_many_events};
use crate::{Problem, ReadError, ReadReport};

/// Reads a trace.
///
/// Where it holds samples of V8, those are read, with the metrics `time` and `samples`; else samples
/// with stack frames, with their weights if they have any; else the calls of its threads, which are counted, with the metric `time`. What is
/// not read is said.
///
/// # Errors
/// When it is damaged, or has neither calls nor samples.
pub fn read(bytes: &[u8]) -> Result<(Profile, ReadReport), ReadError> {
    read_within(bytes, Budget::new(bytes.len()))
}

/// The same with a limit to the memory that the profile may take.
pub(crate) fn read_within(bytes: &[u8], budget: Budget) -> Result<(Profile, ReadReport), ReadError> {
    let (trace, cut) = event::parse(bytes)?;
    let mut reader = Reader::new(budget);
    reader.names(&trace);
    reader.import.report.unfinished = cut;
    let has_recordings =
        trace.events.iter().any(|event| recording(event).is_some_and(|data| data.profile.is_some()));
    if has_recordings {
        reader.recordings(&trace)?;
    } else if !trace.samples.is_empty() {
        reader.samples(&trace)?;
    } else {
        reader.calls(&trace)?;
    }
    reader.finish()
}

/// The part of a recording of V8 that an event holds.
fn recording(event: &event::Event) -> Option<&event::Data> {
    let known = matches!(event.name.as_deref(), Some("Profile" | "ProfileChunk" | "CpuProfile"));
    event.args.data.as_deref().filter(|_| known)
}

struct Reader {
    import: Import,
    process_names: HashMap<String, String>,
    thread_names: HashMap<(String, String), String>,
    processes: HashMap<String, ProcessId>,
    threads: HashMap<(String, String), ThreadId>,
    idle_ns: u64,
    /// How many nodes are named as callees and not told.
    missing: usize,
    /// Whether Treering wrote the file: its calls are joined from sampled stacks and are not counted.
    stacks_only: bool,
}

impl Reader {
    fn new(budget: Budget) -> Self {
        Self {
            import: Import::new(budget),
            process_names: HashMap::new(),
            thread_names: HashMap::new(),
            processes: HashMap::new(),
            threads: HashMap::new(),
            idle_ns: 0,
            missing: 0,
            stacks_only: false,
        }
    }

    /// The names that `M` events give to processes and threads.
    fn names(&mut self, trace: &Trace) {
        for event in trace.events.iter().filter(|event| event.ph == "M") {
            let Some(name) = &event.args.name else { continue };
            match event.name.as_deref() {
                Some("process_name") => drop(self.process_names.insert(event.pid.clone(), name.clone())),
                Some("thread_name") => {
                    self.thread_names.insert((event.pid.clone(), event.tid.clone()), name.clone());
                }
                _ => {}
            }
        }
    }

    fn thread(&mut self, pid: &str, tid: &str) -> ThreadId {
        let key = (pid.to_owned(), tid.to_owned());
        if let Some(&thread) = self.threads.get(&key) {
            return thread;
        }
        let run = self.import.run;
        let process_name = self.process_names.get(pid).cloned();
        let number = |text: &str| text.parse().unwrap_or(0);
        let named = |name: Option<String>, id: &str| match (name, id.parse::<u32>()) {
            (Some(name), _) => name,
            (None, Ok(_)) => String::new(),
            (None, Err(_)) => id.to_owned(),
        };
        let name = named(process_name, pid);
        let add = || self.import.profile.add_process(Process { run, pid: number(pid), name });
        let process = *self.processes.entry(pid.to_owned()).or_insert_with(add);
        let name = named(self.thread_names.get(&key).cloned(), tid);
        let thread = self.import.profile.add_thread(process, number(tid), name);
        self.threads.insert(key, thread);
        thread
    }

    fn sampled_metrics(&mut self) -> [MetricId; 2] {
        let time = self.import.profile.add_metric(Metric::exact("time", Unit::Nanoseconds));
        let samples = self.import.profile.add_metric(Metric::exact("samples", Unit::Count));
        self.import.profile.metrics[time.index()] = Metric::sampled("time", Unit::Nanoseconds, samples, None);
        [time, samples]
    }

    /// The samples of V8. A recording comes in parts, which one id holds together.
    fn recordings(&mut self, trace: &Trace) -> Result<(), ReadError> {
        let metrics = self.sampled_metrics();
        let mut recordings: BTreeMap<(&str, &str), Recording> = BTreeMap::new();
        let mut others = 0_u64;
        for event in &trace.events {
            let Some(data) = recording(event) else {
                others += u64::from(matches!(event.ph.as_str(), "B" | "X"));
                continue;
            };
            let thread = self.thread(&event.pid, &event.tid);
            let of = (event.pid.as_str(), if event.id.is_empty() { &event.tid } else { &event.id }.as_str());
            let recording = recordings.entry(of).or_insert_with(|| Recording::new(thread));
            recording.add(&mut self.import, data)?;
        }
        let mut lost = 0;
        for recording in recordings.into_values() {
            self.missing += recording.nodes.as_ref().map_or(0, |nodes| nodes.missing);
            let (idle_ns, without_node) = recording.charge(&mut self.import.profile, metrics)?;
            self.idle_ns = self.idle_ns.saturating_add(idle_ns);
            lost += without_node;
        }
        self.import.profile.metadata.losses.lost_samples += lost;
        self.import
            .note_count("samples of V8 whose functions were told before the trace begins are lost", lost);
        self.import.note_count("calls beside the samples of V8 are not read", others);
        Ok(())
    }

    /// Samples with stack frames. Their weights are what they cost; where they have none, a sample lasts until the
    /// thread's next one, and the duration of the last one is unknown.
    fn samples(&mut self, trace: &Trace) -> Result<(), ReadError> {
        let numbers: HashMap<&String, u64> = trace.frames.keys().zip(1..).collect();
        let missing = |id: &String| {
            ReadError::at(format_args!("frame {id}"), "a sample or frame names it, and it is missing")
        };
        let mut nodes = Vec::with_capacity(trace.frames.len());
        for (id, frame) in &trace.frames {
            let parent = frame
                .parent
                .as_ref()
                .map(|parent| numbers.get(parent).copied().ok_or_else(|| missing(parent)));
            nodes.push(Node::of_name(numbers[id], &frame.name, parent.transpose()?));
        }
        /// A sample, when it was taken, and the number of its innermost frame.
        type Placed<'a> = (&'a event::Sample, f64, u64);
        let mut of_threads: BTreeMap<(&str, &str), Vec<Placed<'_>>> = BTreeMap::new();
        for (at, sample) in trace.samples.iter().enumerate() {
            let time = sample.ts.ok_or_else(|| bad_time("sample", at))?;
            let Some(frame) = &sample.sf else { continue };
            let frame = *numbers.get(frame).ok_or_else(|| missing(frame))?;
            of_threads.entry((&sample.pid, &sample.tid)).or_default().push((sample, time, frame));
        }
        let mut weights = Weights::of(&trace.samples);
        let unused = trace.samples.iter().filter(|sample| sample.weight.is_some()).count();
        if weights.is_none() && unused > 0 {
            let all = trace.samples.len();
            self.import.note(format!("weights are not used, as only {unused} of {all} samples have one"));
        }
        let metrics = if weights.is_some() { None } else { Some(self.sampled_metrics()) };
        for ((pid, tid), samples) in of_threads {
            let thread = self.thread(pid, tid);
            self.import.check_depth(nodes.len())?;
            let mut places = Nodes::add(&mut self.import.profile, thread, &nodes)?;
            self.import.charge_nodes()?;
            self.missing += places.missing;
            if let Some(weights) = &mut weights {
                for (sample, _, frame) in samples {
                    let place = places.find(frame)?;
                    weights.charge(&mut self.import.profile, place, sample)?;
                }
            } else if let Some(metrics) = metrics {
                self.durations(&mut places, &samples, metrics)?;
            }
        }
        let notes = weights.map(|weights| name_metrics(&mut self.import.profile, &weights.events));
        self.import.report.notes.extend(notes.unwrap_or_default());
        Ok(())
    }

    /// Charges what samples without weights last.
    fn durations(
        &mut self,
        places: &mut Nodes,
        samples: &[(&event::Sample, f64, u64)],
        metrics: [MetricId; 2],
    ) -> Result<(), ReadError> {
        let start = samples.first().map_or(0.0, |&(_, time, _)| time);
        let ids: Vec<_> = samples.iter().map(|&(_, _, frame)| frame).collect();
        let times = samples.iter().map(|&(_, time, _)| time - start);
        let before = std::iter::once(0.0).chain(times.clone());
        let deltas: Vec<_> = times.zip(before).map(|(time, before)| time - before).collect();
        for (id, duration) in samples_in_order(&ids, &deltas, 0.0)? {
            places.charge(&mut self.import.profile, id, metrics, duration)?;
        }
        Ok(())
    }

    /// Calls with their times, which are those of the run.
    fn calls(&mut self, trace: &Trace) -> Result<(), ReadError> {
        let ours = trace.ours.as_ref().filter(|ours| !ours.metric.is_empty());
        let metric = Metric::exact(ours.map_or("time", |ours| &ours.metric), Unit::Nanoseconds);
        let time = self.import.profile.add_metric(metric);
        self.stacks_only = ours.is_some();
        let start = trace.events.iter().filter(|event| is_call(event)).filter_map(|event| event.ts);
        // Treering writes times since the start of the run; the clocks of others began anywhere.
        let start = if self.stacks_only { 0.0 } else { start.fold(f64::INFINITY, f64::min) };
        let mut of_threads: BTreeMap<(&str, &str), Vec<(u64, span::Event)>> = BTreeMap::new();
        let mut others = 0_u64;
        let mut instants = Vec::new();
        let since = |time: f64| nanoseconds(time - start, 1e3).filter(|&ns| ns < LONGEST_NS);
        for (at, event) in trace.events.iter().enumerate() {
            if is_instant(event) {
                instants.push((event.ts.and_then(since), event));
                continue;
            }
            if !is_call(event) {
                others += u64::from(event.ph != "M");
                continue;
            }
            let bad = || bad_time("event", at);
            let now = event.ts.and_then(since).ok_or_else(bad)?;
            let function =
                event.name.as_deref().filter(|name| !name.is_empty()).map(|name| self.function(name));
            let nameless = |reader: &mut Self| function.unwrap_or_else(|| reader.function("(no name)"));
            let call = match event.ph.as_str() {
                "B" => span::Event::Begin(nameless(self)),
                "E" => span::Event::End(function),
                _ => {
                    let duration = event.dur.or(event.tdur).unwrap_or(0.0);
                    if duration < 0.0 {
                        return Err(ReadError::at(format_args!("event {at}"), "its duration is below 0"));
                    }
                    let duration = nanoseconds(duration, 1e3).filter(|&ns| ns < LONGEST_NS);
                    span::Event::Complete(nameless(self), now + duration.ok_or_else(bad)?)
                }
            };
            of_threads.entry((&event.pid, &event.tid)).or_default().push((now, call));
        }
        if of_threads.is_empty() {
            return Err(Problem::Empty("calls (B, E, X) and no samples").into());
        }
        let mut misfits = Misfits::default();
        self.import.profile.timeline = Some(Timeline::new());
        for ((pid, tid), events) in of_threads {
            let thread = self.thread(pid, tid);
            self.import.check_depth(events.len())?;
            let counted = !self.stacks_only;
            span::add(&mut self.import.profile, (thread, time, counted), events, &mut misfits);
            self.import.charge_nodes()?;
        }
        if let Some(run) = ours.and_then(|ours| ours.run.as_ref()) {
            run.state(&mut self.import.profile);
        }
        self.note_misfits(&misfits, others);
        self.marks(instants)?;
        Ok(())
    }

    /// Instants with the times that are known, as marks. Each is of the thread that wrote it, whether it is meant for that,
    /// for its process or for the whole trace.
    fn marks(&mut self, mut instants: Vec<(Option<u64>, &event::Event)>) -> Result<(), ReadError> {
        let length_ns = self.import.profile.timeline.as_ref().map_or(0, |timeline| timeline.length_ns);
        let all = instants.len();
        let is_within = |time: u64| self.stacks_only || time <= length_ns;
        instants.retain(|&(time, _)| time.is_some_and(is_within));
        let outside = all - instants.len();
        instants.sort_by_key(|&(time, _)| time);
        let further = instants.len().saturating_sub(MOST_MARKS);
        instants.truncate(MOST_MARKS);
        let others_process = instants.iter().filter(|(_, event)| is_global(event)).count();
        for (time_ns, event) in instants {
            let Some(time_ns) = time_ns else { continue };
            let thread = self.thread(&event.pid, &event.tid);
            let is_exec = self.stacks_only && event.category.as_deref() == Some(EXEC);
            let kind = if is_exec { MarkKind::Exec } else { MarkKind::Mark };
            let name = self.import.profile.strings.intern(event.name.as_deref().unwrap_or("(no name)"));
            if let Some(timeline) = &mut self.import.profile.timeline {
                timeline.extend_to(time_ns.saturating_add(1));
                timeline.marks.push(Mark { time_ns, end_ns: None, thread, kind, name });
            }
        }
        self.import.charge_nodes()?;
        for (text, count) in [
            ("instants before the first call or after the last one are left out", outside),
            ("instants beyond the first 16384 are left out", further),
            ("instants of the whole trace are marks of the process that wrote them", others_process),
        ] {
            self.import.note_count(text, count as u64);
        }
        Ok(())
    }

    fn function(&mut self, name: &str) -> FunctionId {
        let name = self.import.profile.strings.intern(name);
        let function = Function::named(name);
        let kind = if self.stacks_only { function.kind } else { FunctionKind::Task };
        self.import.profile.functions.intern(Function { kind, ..function })
    }

    fn note_misfits(&mut self, misfits: &Misfits, others: u64) {
        let losses = &mut self.import.profile.metadata.losses;
        losses.open_activations += misfits.open;
        losses.unbalanced_leaves += misfits.ends;
        for (text, count) in [
            ("calls that lasted longer than their callers are cut", misfits.cut),
            ("ends of calls that never began are passed over", misfits.ends),
            ("calls never ended; they last until the thread's last event", misfits.open),
            ("events that are no calls, such as counters, flows and asynchronous ones, are not read", others),
        ] {
            self.import.note_count(text, count);
        }
    }

    fn finish(mut self) -> Result<(Profile, ReadReport), ReadError> {
        note_nodes(&mut self.import, self.missing, self.idle_ns);
        self.import.finish("trace events")
    }
}

/// The events that were sampled, where samples have weights.
struct Weights {
    events: Vec<SampledEvent>,
    /// Weights with decimals are taken in thousandths.
    in_thousandths: bool,
}

impl Weights {
    /// Nothing if there are samples without a weight.
    fn of(samples: &[event::Sample]) -> Option<Self> {
        let placed = || samples.iter().filter(|sample| sample.sf.is_some());
        let weights: Option<Vec<f64>> = placed().map(|sample| sample.weight).collect();
        let weights = weights.filter(|weights| !weights.is_empty())?;
        Some(Self { events: Vec::new(), in_thousandths: weights.iter().any(|weight| weight.fract() != 0.0) })
    }

    fn charge(
        &mut self,
        profile: &mut Profile,
        place: Option<NodeId>,
        sample: &event::Sample,
    ) -> Result<(), ReadError> {
        let Some(place) = place else { return Ok(()) };
        let factor = if self.in_thousandths { 1000.0 } else { 1.0 };
        let scaled = |weight: f64| {
            let bad = || format!("the weight {weight} of a sample is below 0 or too large");
            nanoseconds(weight, factor).ok_or_else(bad)
        };
        let weight = sample.weight.map(scaled);
        let name = sample.name.as_deref().filter(|name| !name.is_empty()).unwrap_or("weight");
        let name = if self.in_thousandths { format!("milli{name}") } else { name.to_owned() };
        let at = self.events.iter().position(|event| event.name == name.as_bytes());
        let at = match at {
            Some(at) => at,
            None if self.events.len() == MOST_EVENTS => return Err(too_many_events().into()),
            None => {
                self.events.push(SampledEvent::new(profile, name.as_bytes(), Some(0)));
                self.events.len() - 1
            }
        };
        let weight = weight.transpose()?;
        if self.events[at].period == Some(0) {
            self.events[at].period = weight;
        }
        for (metric, cost) in self.events[at].weights(profile, weight) {
            profile.tree.add_self_cost(metric, place, cost);
        }
        profile.metadata.losses.samples = profile.metadata.losses.samples.saturating_add(1);
        Ok(())
    }
}

fn is_call(event: &event::Event) -> bool {
    matches!(event.ph.as_str(), "B" | "E" | "X")
}

/// Whether an event is a moment with a name; `I` is what `i` was called before.
fn is_instant(event: &event::Event) -> bool {
    matches!(event.ph.as_str(), "i" | "I" | "R")
}

/// Whether an instant is one of the whole trace.
fn is_global(event: &event::Event) -> bool {
    event.scope.as_deref() == Some("g")
}

/// How many instants are kept.
const MOST_MARKS: usize = 16_384;

fn bad_time(kind: &str, at: usize) -> ReadError {
    ReadError::at(format_args!("{kind} {at}"), "its time is no number or too large")
}

/// How long a trace may be: some 140 years.
const LONGEST_NS: u64 = 1 << 62;

/// A recording of V8 as it is put together.
struct Recording {
    thread: ThreadId,
    nodes: Option<Nodes>,
    samples: Vec<u64>,
    deltas: Vec<f64>,
    start: Option<f64>,
    end: Option<f64>,
}

impl Recording {
    fn new(thread: ThreadId) -> Self {
        Self { thread, nodes: None, samples: Vec::new(), deltas: Vec::new(), start: None, end: None }
    }

    fn add(&mut self, import: &mut Import, data: &event::Data) -> Result<(), ReadError> {
        self.start = self.start.or(data.start);
        self.end = data.end.or(self.end);
        let Some(part) = &data.profile else {
            self.deltas.extend(&data.deltas);
            return Ok(());
        };
        self.start = self.start.or(part.start);
        self.end = part.end.or(self.end);
        self.samples.extend(&part.samples);
        // Some writers give the times of a part twice, beside its samples and around them.
        let is_beside = part.deltas.len() == part.samples.len();
        match is_beside && (!data.deltas.is_empty() && !part.deltas.is_empty()) {
            true => self.deltas.extend(&part.deltas),
            false => self.deltas.extend(data.deltas.iter().chain(&part.deltas)),
        }
        import.check_depth(part.nodes.len())?;
        let profile = &mut import.profile;
        match &mut self.nodes {
            // Of a recording that began before the trace, later nodes have callers that are not told.
            Some(nodes) if nodes.has_callers_of(&part.nodes) => {
                nodes.extend(profile, self.thread, &part.nodes)
            }
            None if Nodes::are_whole(&part.nodes) => {
                Nodes::add(profile, self.thread, &part.nodes).map(|nodes| self.nodes = Some(nodes))
            }
            _ => Ok(()),
        }?;
        Ok(import.charge_nodes()?)
    }

    /// Charges the samples; returns for how many nanoseconds nothing ran, and how many samples have no node.
    fn charge(self, profile: &mut Profile, metrics: [MetricId; 2]) -> Result<(u64, u64), ReadError> {
        check_lengths(&self.samples, &self.deltas)?;
        let Some(mut nodes) = self.nodes else { return Ok((0, self.samples.len() as u64)) };
        let end = self.end.zip(self.start).map_or(0.0, |(end, start)| end - start);
        let ordered = samples_in_order(&self.samples, &self.deltas, end)?;
        let mut lost = 0;
        for (id, duration) in ordered {
            match nodes.has(id) {
                true => nodes.charge(profile, id, metrics, duration)?,
                false => lost += 1,
            }
        }
        Ok((nodes.idle_ns, lost))
    }
}
