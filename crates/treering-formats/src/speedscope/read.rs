//! Reads files of Speedscope.

use std::collections::HashMap;

use treering_profile::{
    Function, FunctionId, FunctionKind, Line, LineId, Metric, MetricId, NodeId, Process, ProcessId, Profile,
    RecursionRule, ThreadId, Timeline, Unit,
};

use crate::budget::Budget;
use crate::import::Import;
use crate::json::{self, nanoseconds};
use crate::label::ROOT;
use crate::open_calls::OpenCalls;
use crate::speedscope::EXPORTER;
use crate::speedscope::file::{self, EventKind, File, OurProfile};
use crate::{Problem, ReadError, ReadReport};

/// Reads a file of Speedscope.
///
/// Each profile in it becomes a thread. Values in units of time are the metric `time`, bytes are `bytes`,
/// others `samples`. Events that open and close frames are calls, which are counted. Where a file has
/// frames that differ in nothing but their lines, the lines are those that ran, and become call sites and
/// line costs; otherwise they are where functions are defined.
///
/// # Errors
/// When it is damaged, refers to what is missing, or has events that do not fit together.
pub fn read(bytes: &[u8]) -> Result<(Profile, ReadReport), ReadError> {
    read_within(bytes, Budget::new(bytes.len()))
}

/// The same with a limit to the memory that the profile may take.
pub(crate) fn read_within(bytes: &[u8], budget: Budget) -> Result<(Profile, ReadReport), ReadError> {
    let file: File = json::parse(bytes)?;
    if file.profiles.is_empty() {
        return Err(Problem::Empty("profiles").into());
    }
    let mut reader = Reader::new(&file, budget);
    for (at, profile) in file.profiles.iter().enumerate() {
        reader.profile(at, profile)?;
    }
    reader.finish(&file)
}

/// A frame of the file: its function, and the line that ran in it, if lines are of that sort.
#[derive(Clone, Copy)]
struct Place {
    function: FunctionId,
    line: Option<LineId>,
    is_root: bool,
}

struct Reader<'a> {
    file: &'a File,
    import: Import,
    process: ProcessId,
    places: Vec<Place>,
    /// The metrics, by unit and decimals.
    metrics: HashMap<(Unit, usize), MetricId>,
    /// The metric of each profile of the file.
    of_profiles: Vec<MetricId>,
    our_metrics: Vec<MetricId>,
    our_threads: Vec<ThreadId>,
    rounded: bool,
    /// Whether samples are in the order of time, and all values are times.
    times: bool,
    /// The length of the slots of time that samples of our own files have.
    slot_ns: Option<u64>,
}

impl<'a> Reader<'a> {
    fn new(file: &'a File, budget: Budget) -> Self {
        let ours = file.treering.as_ref().filter(|ours| ours.metrics.len() <= MOST_METRICS);
        let rule = ours.map_or(RecursionRule::Full, |ours| ours.recursion);
        let name = file.name.clone().unwrap_or_default();
        let mut reader = Self {
            file,
            import: Import::with_rule(rule, budget),
            process: ProcessId::new(0),
            places: Vec::new(),
            metrics: HashMap::new(),
            of_profiles: Vec::new(),
            our_metrics: Vec::new(),
            our_threads: Vec::new(),
            rounded: false,
            times: false,
            slot_ns: ours.and_then(|ours| ours.slot_ns).filter(|&ns| ns > 0 && ns < 1 << 40),
        };
        reader.import.begin_time(0);
        match ours {
            Some(ours) => reader.ours(ours),
            None => reader.process = reader.import.process(0, &name),
        }
        reader.places();
        let is_time = |profile: &file::Profile| {
            let (file::Profile::Sampled { unit, .. } | file::Profile::Evented { unit, .. }) = profile;
            !matches!(unit, file::Unit::None | file::Unit::Bytes)
        };
        // Our own files have a sample for each node.
        reader.times = ours.is_none() && file.profiles.iter().all(is_time);
        reader.import.profile.timeline = reader.times.then(Timeline::new);
        reader
    }

    fn ours(&mut self, ours: &file::Ours) {
        self.our_metrics =
            ours.metrics.iter().map(|metric| self.import.profile.add_metric(metric.clone())).collect();
        let mut known = HashMap::new();
        for (pid, process, tid, thread) in &ours.threads {
            let run = self.import.run;
            let add = || self.import.profile.add_process(Process { run, pid: *pid, name: process.clone() });
            let process = *known.entry((*pid, process)).or_insert_with(add);
            self.our_threads.push(self.import.profile.add_thread(process, *tid, thread.clone()));
        }
    }

    fn places(&mut self) {
        let is_ours = self.file.treering.is_some();
        let lines_ran = !is_ours && self.has_running_lines();
        for frame in &self.file.shared.frames {
            let file = self.import.string(frame.file.as_deref().unwrap_or_default());
            let number = frame.line.filter(|line| *line >= 1.0 && *line < f64::from(u32::MAX));
            let number = number.map_or(0, |line| line as u32);
            let module = frame.module.as_deref().map(|path| self.import.module(path));
            let kind =
                frame.kind.and_then(FunctionKind::from_number).filter(|kind| *kind != FunctionKind::Root);
            let name = self.import.profile.strings.intern(&frame.name);
            let function = Function {
                file,
                line: if lines_ran { 0 } else { number },
                module,
                kind: kind.unwrap_or_default(),
                ..Function::named(name)
            };
            let line = (lines_ran && number > 0)
                .then(|| self.import.profile.lines.intern(Line { file, line: number }));
            let is_root = is_ours && frame.name == ROOT;
            let function =
                if is_root { Profile::ROOT } else { self.import.profile.functions.intern(function) };
            self.places.push(Place { function, line, is_root });
        }
    }

    /// Whether there are frames that differ in nothing but their lines.
    fn has_running_lines(&self) -> bool {
        let mut lines = HashMap::new();
        self.file.shared.frames.iter().any(|frame| {
            let line = frame.line.unwrap_or(0.0);
            *lines.entry((&frame.name, &frame.file)).or_insert(line) != line
        })
    }

    fn profile(&mut self, at: usize, profile: &file::Profile) -> Result<(), ReadError> {
        match profile {
            file::Profile::Sampled { name, unit, samples, weights, start, slots, treering } => {
                if samples.len() != weights.len() {
                    let (samples, weights) = (samples.len(), weights.len());
                    let text = format!("it has {weights} weights for {samples} samples");
                    return Err(ReadError::at(format_args!("profile {at}"), text));
                }
                let slots = slots.as_ref().filter(|_| self.slot_ns.is_some());
                if let Some(slots) = slots.filter(|slots| slots.len() != samples.len()) {
                    let text = format!("it has {} slots for {} samples", slots.len(), samples.len());
                    return Err(ReadError::at(format_args!("profile {at}"), text));
                }
                let (metric, factor) = self.metric(*unit, weights);
                let (metric, thread) = self.owner(name, metric, *treering);
                self.of_profiles.push(metric);
                let mut now = self.times.then(|| self.offset(*start, factor));
                // The parts of each stack's weights that were rounded away are added to its next ones.
                let is_rounded = weights.iter().any(|weight| (weight * factor).fract() != 0.0);
                let mut rests: HashMap<&[u64], f64> = HashMap::new();
                for (number, (sample, &weight)) in samples.iter().zip(weights).enumerate() {
                    let mut cost = nanoseconds(weight, factor).ok_or_else(|| bad_value(at, number))?;
                    if is_rounded && (weight * factor) < LARGEST_ROUNDED {
                        let rest = rests.entry(sample).or_default();
                        let exact = weight * factor + *rest;
                        cost = exact.round().max(0.0) as u64;
                        *rest = exact - cost as f64;
                    }
                    let weight = cost;
                    let slot = slots.map(|slots| slots[number]);
                    if slot.is_some() && sample.is_empty() {
                        continue;
                    }
                    let node = self.sample(at, number, thread, sample, (metric, weight))?;
                    if let (Some(slot), Some(slot_ns)) = (slot, self.slot_ns) {
                        let time = u64::from(slot).saturating_mul(slot_ns);
                        self.import.place_in_time(time, node, &[(metric, weight)])?;
                    }
                    let line = self.import.line();
                    if let (Some(now), Some(timeline)) = (&mut now, &mut self.import.profile.timeline) {
                        let start = *now;
                        *now = start.saturating_add(weight);
                        if !sample.is_empty() {
                            timeline.add_span((start, *now), metric, (node, line));
                        }
                    }
                }
                Ok(())
            }
            file::Profile::Evented { name, unit, events, start, end } => {
                let (metric, factor) = self.metric(*unit, &[]);
                let (metric, thread) = self.owner(name, metric, None);
                self.of_profiles.push(metric);
                let first = events.first().map_or(*start, |event| event.at);
                let open = OpenCalls::new(thread, metric).since(self.offset(first, factor));
                self.events(at, open, events, *end, factor)
            }
        }
    }

    /// How long after the first profile's start a time is, in nanoseconds.
    fn offset(&self, time: f64, factor: f64) -> u64 {
        let starts = self.file.profiles.iter().map(|profile| match profile {
            file::Profile::Sampled { start, .. } => *start,
            file::Profile::Evented { start, events, .. } => {
                events.first().map_or(*start, |event| event.at.min(*start))
            }
        });
        let first = starts.fold(f64::INFINITY, f64::min);
        nanoseconds((time - first).max(0.0), factor).unwrap_or(0)
    }

    /// The metric and thread of a profile: those that our own files tell, or a thread of its own.
    fn owner(&mut self, name: &str, metric: MetricId, ours: Option<OurProfile>) -> (MetricId, ThreadId) {
        let known =
            ours.and_then(|of| Some((*self.our_metrics.get(of.metric)?, *self.our_threads.get(of.thread)?)));
        known.unwrap_or_else(|| {
            if self.import.profile.processes.is_empty() {
                self.process = self.import.process(0, "");
            }
            (metric, self.import.profile.add_thread(self.process, 0, name))
        })
    }

    /// The metric of a unit, and what values are multiplied by. Numbers without a unit may have decimals;
    /// then the metric is one of thousandths, millionths or billionths.
    fn metric(&mut self, unit: file::Unit, weights: &[f64]) -> (MetricId, f64) {
        if !self.our_metrics.is_empty() {
            return (self.our_metrics[0], 1.0);
        }
        let (unit, name, factor) = match unit {
            file::Unit::None => (Unit::Count, "samples", 1.0),
            file::Unit::Bytes => (Unit::Bytes, "bytes", 1.0),
            file::Unit::Nanoseconds => (Unit::Nanoseconds, "time", 1.0),
            file::Unit::Microseconds => (Unit::Nanoseconds, "time", 1e3),
            file::Unit::Milliseconds => (Unit::Nanoseconds, "time", 1e6),
            file::Unit::Seconds => (Unit::Nanoseconds, "time", 1e9),
        };
        let most = if unit == Unit::Count { 1e9 } else { factor };
        let vanishes = |weight: f64, factor: f64| weight > 0.0 && (weight * factor).round() == 0.0;
        let is_whole = |factor: f64| {
            weights.iter().all(|&weight| {
                let is_whole = ((weight * factor).round() - weight * factor).abs() < 1e-6;
                is_whole && (!vanishes(weight, factor) || vanishes(weight, most))
            })
        };
        let decimals = match unit {
            Unit::Count => {
                [0, 3, 6].into_iter().find(|&decimals| is_whole(10_f64.powi(decimals))).unwrap_or(9)
            }
            _ => 0,
        };
        let chosen = factor * 10_f64.powi(decimals);
        self.rounded |= !is_whole(chosen) || weights.iter().any(|&weight| vanishes(weight, chosen));
        let prefix = ["", "milli", "micro", "nano"][decimals as usize / 3];
        let add = || self.import.profile.add_metric(Metric::exact(format!("{prefix}{name}"), unit));
        let metric = *self.metrics.entry((unit, decimals as usize)).or_insert_with(add);
        (metric, chosen)
    }

    fn sample(
        &mut self,
        profile: usize,
        at: usize,
        thread: ThreadId,
        sample: &[u64],
        weight: (MetricId, u64),
    ) -> Result<NodeId, ReadError> {
        self.import.begin();
        for &frame in sample {
            let place = self.place(profile, at, frame)?;
            match place.is_root {
                true => self.import.set_line(place.line),
                false => self.import.push(place.function, place.line),
            }
        }
        Ok(self.import.add(thread, &[weight])?)
    }

    fn events(
        &mut self,
        profile: usize,
        mut open: OpenCalls,
        events: &[file::Event],
        end: f64,
        factor: f64,
    ) -> Result<(), ReadError> {
        // Times are since the first one: those since 1970 would not fit in nanoseconds of this precision.
        let start = events.first().map_or(0.0, |event| event.at);
        let mut last = 0;
        for (at, event) in events.iter().enumerate() {
            let steps_back = || event_error(profile, at, "it is earlier than the event before it");
            let now = match event.at < start {
                true => Err(steps_back()),
                false => nanoseconds(event.at - start, factor).ok_or_else(|| bad_value(profile, at)),
            }?;
            if now < last {
                return Err(steps_back());
            }
            last = now;
            let function = self.place(profile, at, event.frame)?.function;
            match event.kind {
                EventKind::Open => open.enter(&mut self.import.profile, function, now),
                EventKind::Close if open.innermost() == Some(function) => {
                    open.leave(&mut self.import.profile, now)
                }
                EventKind::Close => {
                    return Err(event_error(profile, at, "it closes a frame that was not opened last"));
                }
            }
            self.import.charge_nodes()?;
        }
        if open.depth() > 0 {
            let end = nanoseconds((end - start).max(0.0), factor).unwrap_or(last).max(last);
            open.charge(&mut self.import.profile, end);
            self.import.profile.metadata.losses.open_activations += open.depth() as u64;
        }
        Ok(())
    }

    fn place(&self, profile: usize, at: usize, frame: u64) -> Result<Place, ReadError> {
        let place = usize::try_from(frame).ok().and_then(|frame| self.places.get(frame));
        place.copied().ok_or_else(|| event_error(profile, at, format!("its frame {frame} is missing")))
    }

    fn finish(mut self, file: &File) -> Result<(Profile, ReadReport), ReadError> {
        if let Some(run) = file.treering.as_ref().and_then(|ours| ours.run.as_ref()) {
            run.state(&mut self.import.profile);
        }
        let active = file.active.map_or(0, |active| active as usize);
        if let Some(metric) = self.of_profiles.get(active) {
            self.import.set_default_metric(*metric);
        }
        self.import.note_if(self.rounded, "values are rounded to whole nanoseconds, bytes or billionths");
        let exporter = file.exporter.as_deref().filter(|name| !name.starts_with(EXPORTER));
        let exporter = exporter.map_or(String::new(), |name| format!(", written by {name}"));
        self.import.finish(format!("Speedscope{exporter}"))
    }
}

fn event_error(profile: usize, at: usize, problem: impl Into<Problem>) -> ReadError {
    ReadError::at(format_args!("sample or event {at} of profile {profile}"), problem)
}

fn bad_value(profile: usize, at: usize) -> ReadError {
    event_error(profile, at, "its value is below 0 or too large")
}

/// From this weight on, a number has no digits behind the point.
const LARGEST_ROUNDED: f64 = (1_u64 << 52) as f64;

/// How many metrics a file of ours may have.
const MOST_METRICS: usize = 256;
