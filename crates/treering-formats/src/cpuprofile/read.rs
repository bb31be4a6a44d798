//! Reads `.cpuprofile` files.

use serde::Deserialize;
use treering_profile::{Metric, MetricId, Profile, Timeline, Unit};

use crate::budget::Budget;
use crate::cpuprofile::node::{Node, Nodes};
use crate::cpuprofile::old::{self, Old};
use crate::import::Import;
use crate::json::{self, nanoseconds};
use crate::our_run::OurRun;
use crate::{Problem, ReadError, ReadReport};

#[derive(Default, Deserialize)]
struct File {
    /// Files of before have a `head` instead.
    #[serde(default)]
    nodes: Option<Vec<Node>>,
    #[serde(default, rename = "startTime")]
    start: f64,
    #[serde(default, rename = "endTime")]
    end: f64,
    #[serde(default)]
    samples: Vec<u64>,
    #[serde(default, rename = "timeDeltas")]
    deltas: Vec<f64>,
    /// The metric that our own files name.
    metric: Option<String>,
    unit: Option<Unit>,
    #[serde(default, rename = "treeringRun")]
    our_run: Option<OurRun>,
}

/// Reads a `.cpuprofile`.
///
/// The metrics are `time`, the nanoseconds from each sample to the next one or, after the last, to the
/// end, and `samples`. Samples are put in the order of their times. `(idle)` costs nothing; for how
/// long it lasted is said. Files without times, which have counts only, have the metric `samples`.
///
/// # Errors
/// When it is damaged, has no samples, or its nodes are no tree.
pub fn read(bytes: &[u8]) -> Result<(Profile, ReadReport), ReadError> {
    read_within(bytes, Budget::new(bytes.len()))
}

/// The same with a limit to the memory that the profile may take.
pub(crate) fn read_within(bytes: &[u8], mut budget: Budget) -> Result<(Profile, ReadReport), ReadError> {
    let file = parse(bytes, &mut budget)?;
    let all = file.nodes.as_deref().unwrap_or_default();
    let mut import = Import::new(budget);
    import.check_depth(all.len())?;
    let thread = import.thread(0, 0, "");
    let profile = &mut import.profile;
    let mut nodes = match file.metric {
        Some(_) => Nodes::add_ours(profile, thread, all)?,
        None => Nodes::add(profile, thread, all)?,
    };
    let of_other_unit = file.unit.filter(|unit| *unit != Unit::Nanoseconds);
    if let (Some(name), Some(unit)) = (&file.metric, of_other_unit) {
        let metric = profile.add_metric(Metric::exact(name, unit));
        charge_others(profile, &mut nodes, &file, metric)?;
        file.our_run.iter().for_each(|ours| ours.state(profile));
        return import.finish("V8");
    }
    let has_times = !file.samples.is_empty();
    let name = file.metric.as_deref().unwrap_or("time");
    let time = has_times.then(|| profile.add_metric(Metric::exact(name, Unit::Nanoseconds)));
    let samples = profile.add_metric(Metric::exact("samples", Unit::Count));
    match time {
        Some(time) => {
            profile.metrics[time.index()] = Metric::sampled(name, Unit::Nanoseconds, samples, None);
            charge_times(profile, &mut nodes, &file, [time, samples])?;
            let duration = nanoseconds(file.end - file.start, 1e3).unwrap_or(0);
            profile.runs[import.run.index()].duration_ns = duration;
        }
        None => charge_counts(profile, &nodes, all, samples)?,
    }
    for node in all {
        nodes.charge_lines(profile, node, samples)?;
    }
    file.our_run.iter().for_each(|ours| ours.state(&mut import.profile));
    import.charge_nodes()?;
    note_nodes(&mut import, nodes.missing, nodes.idle_ns);
    import.finish("V8")
}

/// A file of any version; of old ones, times are taken for those that new ones have.
fn parse(bytes: &[u8], budget: &mut Budget) -> Result<File, ReadError> {
    #[derive(Deserialize)]
    struct Shape {
        nodes: Option<serde::de::IgnoredAny>,
        head: Option<serde::de::IgnoredAny>,
    }
    let shape: Shape = json::parse(bytes)?;
    if shape.nodes.is_some() || shape.head.is_none() {
        return Ok(json::parse(bytes)?);
    }
    let Old { nodes, start, end, samples, deltas } = old::read(bytes, budget)?;
    Ok(File { nodes: Some(nodes), start, end, samples, deltas, ..File::default() })
}

/// Files of ours may hold costs that are no times, one of them as a microsecond.
fn charge_others(
    profile: &mut Profile,
    nodes: &mut Nodes,
    file: &File,
    metric: MetricId,
) -> Result<(), ReadError> {
    check_lengths(&file.samples, &file.deltas)?;
    let ordered = samples_in_order(&file.samples, &file.deltas, file.end - file.start)?;
    ordered.iter().try_for_each(|&(id, duration)| nodes.charge_time(profile, id, metric, duration / 1000))
}

/// Notes missing nodes, and that idle time costs nothing.
pub(crate) fn note_nodes(import: &mut Import, missing: usize, idle_ns: u64) {
    import.note_count("nodes are named as callees and are not in the file", missing as u64);
    let milliseconds = idle_ns as f64 / 1e6;
    let idle = format!("time in which nothing ran, (idle), is no cost: {milliseconds:.3} ms");
    import.note_if(idle_ns > 0, &idle);
}

/// Each sample lasts until the next one, the last until the end.
fn charge_times(
    profile: &mut Profile,
    nodes: &mut Nodes,
    file: &File,
    metrics: [MetricId; 2],
) -> Result<(), ReadError> {
    check_lengths(&file.samples, &file.deltas)?;
    // In files of ours each node is one sample, and the nodes say how many there were.
    let is_ours = file.metric.is_some();
    profile.timeline = (!is_ours).then(Timeline::new);
    let mut now = 0_u64;
    for (id, duration) in samples_in_order(&file.samples, &file.deltas, file.end - file.start)? {
        if is_ours {
            nodes.charge_time(profile, id, metrics[0], duration)?;
        } else {
            nodes.charge(profile, id, metrics, duration)?;
            let end = now.saturating_add(duration);
            if let (Some(node), Some(timeline)) = (nodes.find(id)?, &mut profile.timeline) {
                timeline.add(now, metrics[1], (node, None), 1);
                timeline.add_span((now, end), metrics[0], (node, None));
            }
            now = end;
        }
    }
    for node in file.nodes.iter().flatten().filter(|_| is_ours) {
        nodes.charge_samples(profile, node.id, metrics[1], node.hits)?;
    }
    Ok(())
}

/// Checks that there is one time for each sample.
pub(crate) fn check_lengths(samples: &[u64], times: &[f64]) -> Result<(), ReadError> {
    let (samples, times) = (samples.len(), times.len());
    if samples == times { Ok(()) } else { Err(format!("it has {times} times for {samples} samples").into()) }
}

/// Samples in the order of their times, and how long each lasted, in nanoseconds. `deltas` are the
/// microseconds from one to the next and may be negative; `end` is that of the recording.
pub(crate) fn samples_in_order(
    samples: &[u64],
    deltas: &[f64],
    end: f64,
) -> Result<Vec<(u64, u64)>, ReadError> {
    let mut at = 0.0;
    let mut timed = Vec::with_capacity(samples.len());
    for (sample, (&id, &delta)) in samples.iter().zip(deltas).enumerate() {
        at += delta;
        if at.is_nan() || at.abs() >= MOST_MICROSECONDS {
            return Err(ReadError::at(format_args!("sample {sample}"), "its time is too large"));
        }
        timed.push(((at * 1e3).round() as i64, id));
    }
    timed.sort_by_key(|&(time, _)| time);
    let last = timed.last().map_or(0, |&(time, _)| time);
    let end = if end.abs() < MOST_MICROSECONDS { ((end * 1e3).round() as i64).max(last) } else { last };
    let ends = timed.iter().skip(1).map(|&(time, _)| time).chain([end]);
    Ok(timed.iter().zip(ends).map(|(&(start, id), end)| (id, (end - start) as u64)).collect())
}

/// How large a time may be: some 290 years. V8's are since the machine was started.
const MOST_MICROSECONDS: f64 = 9e15;

/// Counts of samples in files that have no times.
fn charge_counts(
    profile: &mut Profile,
    nodes: &Nodes,
    all: &[Node],
    samples: MetricId,
) -> Result<(), ReadError> {
    if all.iter().all(|node| node.hits == 0) {
        return Err(Problem::Empty("samples").into());
    }
    all.iter().try_for_each(|node| nodes.charge_samples(profile, node.id, samples, node.hits))
}
