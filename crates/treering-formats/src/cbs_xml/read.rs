//! Reads XML of benchmarks.

use treering_profile::{Benchmark, Metric, Point, Profile, Unit};

use super::document::{self, Document};
use super::graph::Graph;
use super::{Problem, ReadError};
use crate::ReadReport;
use crate::budget::Budget;
use crate::json::nanoseconds;
use crate::label::{NOT_UTF8, text_of, without_mark};

/// Reads XML that CBS or Treering saved of a benchmark.
///
/// The metrics are `cpu` and `time`, which is that of the wall clock; of Treering's files also `user` and
/// `system`. Arcs have calls and, where they were measured, total times.
///
/// # Errors
/// When it is damaged, or has no call graph.
pub fn read(bytes: &[u8]) -> Result<(Profile, ReadReport), ReadError> {
    read_within(bytes, Budget::new(bytes.len()))
}

/// The same with a limit to the memory that the profile may take.
pub(crate) fn read_within(bytes: &[u8], mut budget: Budget) -> Result<(Profile, ReadReport), ReadError> {
    let bytes = without_mark(bytes);
    let mut document = document::parse(&text_of(bytes), &mut budget)?;
    let error = |problem| ReadError::new(bytes.len(), problem);
    let timer = document.timer.take().ok_or(error(Problem::NoTimer))?;
    let mut graph = Graph::new(&timer)?;
    graph.add(&timer).map_err(error)?;
    let Graph { mut profile, mut notes, is_ours, .. } = graph;
    add_points(&mut profile, &document, is_ours, &mut notes);
    add_metadata(&mut profile, document);
    if std::str::from_utf8(bytes).is_err() {
        notes.push(NOT_UTF8.to_owned());
    }
    profile.metadata.unfinished = !timer.stopped;
    profile.validate().map_err(|invalid| error(Problem::Invalid(invalid)))?;
    Ok((profile, ReadReport { notes, ..ReadReport::default() }))
}

/// A page of memory, in which CBS counts what is resident.
const PAGE: u64 = 4096;

fn add_points(profile: &mut Profile, document: &Document, is_ours: bool, notes: &mut Vec<String>) {
    if document.plots.is_empty() {
        return;
    }
    if !is_ours {
        notes.push(format!("resident memory is in pages, which are taken to have {PAGE} bytes"));
    }
    let page = if is_ours { 1 } else { PAGE };
    let levels = ["virtual memory", "resident memory"];
    let [whole, resident] = levels.map(|name| profile.add_metric(Metric::level(name, Unit::Bytes)));
    let thread = treering_profile::ThreadId::new(0);
    let root = profile.threads[0].root;
    let nodes: std::collections::HashMap<String, _> = profile
        .tree
        .nodes()
        .map(|node| (profile.strings[profile.functions[profile.tree.function(node)].name].to_owned(), node))
        .collect();
    for plot in &document.plots {
        // Points outside of all tasks are those of the root.
        let node = nodes.get(&plot.task).copied().filter(|_| plot.task != ROOT && !plot.task.is_empty());
        let values = vec![(whole, plot.memory), (resident, plot.resident.saturating_mul(page))];
        let description = profile.strings.intern(&plot.description);
        let time_ns = nanoseconds(plot.time_ms.max(0.0), 1e6).unwrap_or(0);
        profile.points.push(Point { time_ns, thread, node: node.unwrap_or(root), description, values });
    }
}

/// The task that stands for the run.
pub(super) const ROOT: &str = "_program";

fn add_metadata(profile: &mut Profile, document: Document) {
    let mut benchmark =
        Benchmark { parameters: document.parameters, results: document.results, ..Benchmark::default() };
    let metadata = &mut profile.metadata;
    metadata.set_foreign("CBS");
    for (name, text) in document.summary {
        match name.as_str() {
            "name" => benchmark.name = text,
            "description" => benchmark.description = text,
            "hostname" => drop(metadata.machine.insert("host".to_owned(), text)),
            "cpuinfo" => drop(metadata.machine.insert("cpu".to_owned(), text)),
            "time" => {
                let seconds: u64 = text.trim().parse().unwrap_or(0);
                profile.runs[0].start_unix_ns = seconds.saturating_mul(1_000_000_000);
            }
            _ => {}
        }
    }
    document.notes.into_iter().for_each(|note| metadata.note(note));
    metadata.benchmark = Some(benchmark).filter(|benchmark| *benchmark != Benchmark::default());
}
