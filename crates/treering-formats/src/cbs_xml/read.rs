//! Reads XML of benchmarks.

use treering_profile::{Benchmark, Metric, Point, Profile, RecursionRule, Unit};

use super::document::{self, Document};
use super::graph::Graph;
use crate::budget::Budget;
use crate::import::Import;
use crate::json::nanoseconds;
use crate::label::{text_of, without_mark};
use crate::{Problem, ReadError, ReadReport};

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
    let no_timer = Problem::Empty("call graph: it was saved without CO_CALLGRAPH");
    let timer = document.timer.take().ok_or(no_timer)?;
    let mut graph = Graph::new(&timer, budget)?;
    graph.add(&timer)?;
    let Graph { mut import, is_ours, .. } = graph;
    add_points(&mut import, &document, is_ours);
    add_metadata(&mut import.profile, document);
    import.text(bytes);
    import.profile.metadata.unfinished = !timer.stopped;
    import.finish("CBS")
}

/// Reads what a report says of its benchmark: its name, machine, start, parameters and results. The profile has no costs,
/// so that reports without a call graph can be read as well.
///
/// # Errors
/// When it is damaged.
pub fn read_description(bytes: &[u8]) -> Result<Profile, ReadError> {
    let bytes = without_mark(bytes);
    let document = document::parse(&text_of(bytes), &mut Budget::new(bytes.len()))?;
    let mut profile = Profile::new(RecursionRule::Full);
    profile.add_single_thread("");
    add_metadata(&mut profile, document);
    Ok(profile)
}

/// A page of memory, in which CBS counts what is resident.
const PAGE: u64 = 4096;

fn add_points(import: &mut Import, document: &Document, is_ours: bool) {
    if document.plots.is_empty() {
        return;
    }
    if !is_ours {
        import.note(format!("resident memory is in pages, which are taken to have {PAGE} bytes"));
    }
    let (page, profile) = (if is_ours { 1 } else { PAGE }, &mut import.profile);
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

/// The beginning of the note that our writer adds where times were not measured.
const UNMEASURED: &str = "0 stands for what was not measured: ";

fn add_metadata(profile: &mut Profile, document: Document) {
    let mut benchmark =
        Benchmark { parameters: document.parameters, results: document.results, ..Benchmark::default() };
    let metadata = &mut profile.metadata;
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
    let mut unmeasured = document.notes.iter().filter_map(|note| note.strip_prefix(UNMEASURED));
    if unmeasured.any(|names| names.split(", ").any(|name| name == "cpu")) {
        profile.runs[0].cpu_ns = None;
    }
    document.notes.into_iter().for_each(|note| metadata.note(note));
    metadata.benchmark = Some(benchmark).filter(|benchmark| *benchmark != Benchmark::default());
}
