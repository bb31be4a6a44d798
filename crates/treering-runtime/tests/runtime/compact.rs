//! The finished profile holds what the live file held just before the end, whatever was recorded:
//! both are read and compared field by field.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::FileExt as _;
use std::process::Stdio;

use super::program::{Program, is_installed, project};
use treering_events::{Header, Node, Ref, UNIT, View, flag};
use treering_formats::live;
use treering_profile::{
    ActivationStatistics, Activations, FunctionId, Metadata, NodeId, NodeMemory, Ports, Profile, Run,
};

/// How far apart two times may be that were measured in the same ticks: the length of a tick is
/// worked out anew at the end, from some more milliseconds.
const CLOCK: f64 = 1e-4;

/// The profile in the live file just before the end, and the finished one.
fn both(test: &str, environment: &[(&str, &str)], edit: impl Fn(&std::fs::File)) -> Option<[Profile; 2]> {
    if !is_installed("cc") {
        return None;
    }
    let source = project().join("hooks/c/tests/end_to_end/everything.c");
    let program = Program::build(&format!("compact/{test}"), "cc", &["-O1"], &source);
    let mut command = program.command();
    command.envs(environment.iter().copied()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut running = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(running.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    let file = std::fs::File::options().read(true).write(true).open(program.folder.join("treering.trg"));
    edit(&file.unwrap());
    let (live, report) = live::read(&program.bytes("treering.trg")).unwrap();
    assert!(report.unfinished && live.metadata.unfinished);
    live.validate().unwrap();
    drop(running.stdin.take());
    assert!(running.wait().unwrap().success());
    let mut finished = program.profile("treering.trg");
    // Rows of one node and bucket add up.
    finished.activations.iter_mut().for_each(Activations::compact_sizes);
    Some([live, finished])
}

/// Everything that is known of a node but its time.
#[derive(Debug, PartialEq)]
struct Counts {
    calls: u64,
    recursive_calls: u64,
    other_costs: Vec<u64>,
    ports: Ports,
    memory: NodeMemory,
    /// Timed and calm activations.
    activations: [u64; 2],
    /// Bucket and calls.
    sizes: Vec<(u8, u64)>,
}

/// The times of a node: self, total, least, greatest, calm, mean, deviation, and by size.
type Times = Vec<f64>;

fn names(profile: &Profile, node: NodeId) -> Vec<String> {
    let name = |node| described(profile, profile.tree.function(node));
    let mut names: Vec<_> = profile.tree.path(node).map(name).collect();
    let thread = &profile.threads[profile.node_threads()[node.index()].index()];
    names.push(format!("{} {}", thread.tid, thread.name));
    names.reverse();
    names
}

fn described(profile: &Profile, function: FunctionId) -> String {
    let function = &profile.functions[function];
    let (name, file) = (&profile.strings[function.name], &profile.strings[function.file]);
    let module = function.module.map(|module| &profile.strings[profile.modules[module].path]);
    format!("{:?} {name:?} {file:?}:{} {module:?} {:?}", function.kind, function.line, function.address)
}

/// All nodes by the names on their path.
fn nodes(profile: &Profile) -> BTreeMap<Vec<String>, (Counts, Times)> {
    let mut nodes = BTreeMap::new();
    for node in profile.tree.nodes() {
        let known = nodes.insert(names(profile, node), of_node(profile, node));
        assert!(known.is_none(), "two nodes have one path");
    }
    nodes
}

fn of_node(profile: &Profile, node: NodeId) -> (Counts, Times) {
    let is_time = |name: &str| name == "time";
    let costs = |wanted: bool| {
        let metrics = profile.metrics().filter(move |(_, metric)| is_time(&metric.name) == wanted);
        metrics.map(|(metric, _)| profile.tree.self_cost(metric, node)).collect::<Vec<_>>()
    };
    let activations = profile.activations.as_ref();
    let statistics = activations.map(|known| known.nodes.get(node)).unwrap_or_default();
    let ActivationStatistics { timed, total, least, greatest, mean, calm, calm_total, .. } = statistics;
    let sizes = activations.map(|known| &known.sizes[..]).unwrap_or_default();
    let sizes: Vec<_> = sizes.iter().filter(|row| row.node == node).collect();
    let counts = Counts {
        calls: profile.tree.calls(node),
        recursive_calls: profile.tree.recursive_calls(node),
        other_costs: costs(false),
        ports: profile.ports.get(node),
        memory: profile.memory.get(node),
        activations: [timed, calm],
        sizes: sizes.iter().map(|row| (row.bucket, row.calls)).collect(),
    };
    let mut times: Times =
        [total, least, greatest, calm_total].into_iter().chain(costs(true)).map(|ns| ns as f64).collect();
    times.extend([mean, statistics.variance().unwrap_or_default().sqrt()]);
    times.extend(sizes.iter().map(|row| row.total_cost as f64));
    (counts, times)
}

fn are_near(live: f64, finished: f64) -> bool {
    (live - finished).abs() <= 2.0 + CLOCK * live.max(finished)
}

fn have_the_same_nodes(live: &Profile, finished: &Profile) {
    let (live, finished) = (nodes(live), nodes(finished));
    assert_eq!(live.keys().collect::<Vec<_>>(), finished.keys().collect::<Vec<_>>());
    for (path, (counts, times)) in &live {
        let (other_counts, other_times) = &finished[path];
        assert_eq!(counts, other_counts, "{path:?}");
        let near = times.len() == other_times.len()
            && times.iter().zip(other_times).all(|(live, finished)| are_near(*live, *finished));
        assert!(near, "{path:?}: {times:?} and {other_times:?}");
    }
}

fn have_the_same_points(live: &Profile, finished: &Profile) {
    let points = |profile: &Profile| -> Vec<_> {
        let point = |point: &treering_profile::Point| {
            let thread = profile.threads[point.thread.index()].tid;
            let description = profile.strings[point.description].to_owned();
            (description, thread, names(profile, point.node), point.values.clone())
        };
        profile.points.iter().map(point).collect()
    };
    assert_eq!(points(live), points(finished));
    for (live, finished) in live.points.iter().zip(&finished.points) {
        assert!(are_near(live.time_ns as f64, finished.time_ns as f64));
    }
}

/// Checks everything that is not about nodes.
fn have_the_same_tables(live: &Profile, finished: &Profile) {
    let Metadata { version, .. } = finished.metadata.clone();
    assert!(!version.is_empty());
    let ended = Metadata { version, unfinished: false, ..live.metadata.clone() };
    assert_eq!(ended, finished.metadata);
    assert_eq!((live.recursion, &live.metrics), (finished.recursion, &finished.metrics));
    assert_eq!((&live.processes, &live.threads), (&finished.processes, &finished.threads));
    let functions = |profile: &Profile| -> Vec<_> {
        profile.functions.iter().map(|(id, _)| described(profile, id)).collect()
    };
    assert_eq!(functions(live), functions(finished));
    assert!(finished.arcs.is_empty() && finished.line_costs.is_empty() && finished.sources.is_empty());
    let [run] = &finished.runs[..] else { panic!("one run") };
    let Run { duration_ns, cpu_ns, .. } = run.clone();
    let before = &live.runs[0];
    assert!(cpu_ns.is_some_and(|ns| ns > 0) && before.cpu_ns.is_none());
    assert!(duration_ns >= before.duration_ns && before.duration_ns > 0);
    assert_eq!(Run { duration_ns, cpu_ns, ..before.clone() }, *run);
}

/// Runs the program and compares; returns the finished profile.
fn check(test: &str, environment: &[(&str, &str)]) -> Option<Profile> {
    check_edited(test, environment, |_| {})
}

fn check_edited(test: &str, environment: &[(&str, &str)], edit: impl Fn(&std::fs::File)) -> Option<Profile> {
    let [live, finished] = both(test, environment, edit)?;
    have_the_same_tables(&live, &finished);
    have_the_same_nodes(&live, &finished);
    have_the_same_points(&live, &finished);
    Some(finished)
}

/// The calls of a function in all its nodes.
fn calls(profile: &Profile, name: &str) -> u64 {
    let is_it =
        |node: &NodeId| &profile.strings[profile.functions[profile.tree.function(*node)].name] == name;
    profile.tree.nodes().filter(is_it).map(|node| profile.tree.calls(node)).sum()
}

/// Checks that the profile is that of the program, so that no two empty ones were compared.
fn is_whole(profile: &Profile) {
    let expected = [
        ("leaf", 2 + 9 + 40 * 6),
        ("recursive", 21),
        ("ping", 10 + 40 * 7),
        ("pong", 9 + 40 * 6),
        ("solve/2", 200),
        ("often", 4000),
        ("left open", 1),
    ];
    for (name, count) in expected {
        assert_eq!(calls(profile, name), count, "{name}");
    }
    assert_eq!(profile.threads.len(), 3);
    let descriptions = profile.points.iter().map(|point| &profile.strings[point.description]);
    assert_eq!(descriptions.filter(|description| ["half of it", "worker"].contains(description)).count(), 3);
    let benchmark = profile.metadata.benchmark.as_ref().unwrap();
    assert_eq!((&*benchmark.name, &*benchmark.description), ("everything \"at once\"", "with\nlines"));
    assert_eq!(benchmark.parameters, [("rounds".to_owned(), "4000".to_owned())]);
    assert_eq!(benchmark.results, [("sum".to_owned(), "12\\3".to_owned())]);
    assert_eq!(profile.metadata.losses.unbalanced_leaves, 1);
    let ports = profile.ports.filled().map(|(_, ports)| ports.counts());
    let sums = ports.fold([0; 4], |sums, counts| std::array::from_fn(|at| sums[at] + counts[at + 1]));
    assert_eq!(sums, [67, 40, 15, 29], "redos, fails, exceptions, cuts");
}

/// Whether a note says that self costs are those of one call in N.
fn says_what_was_not_timed(profile: &Profile) -> bool {
    profile.metadata.notes.iter().any(|note| note.0.starts_with("where one call in N was timed"))
}

#[test]
fn a_call_graph() {
    let Some(profile) = check("graph", &[]) else { return };
    is_whole(&profile);
    assert!(!says_what_was_not_timed(&profile), "{:?}", profile.metadata.notes);
    assert!(!profile.activations.unwrap().sizes.is_empty());
}

#[test]
fn a_flat_profile() {
    let Some(profile) = check("flat", &[("TREERING", "flat")]) else { return };
    is_whole(&profile);
    assert!(says_what_was_not_timed(&profile), "{:?}", profile.metadata.notes);
}

#[test]
fn counts_without_times() {
    let Some(profile) = check("count", &[("TREERING", "count")]) else { return };
    is_whole(&profile);
    assert!(profile.activations.is_none() && profile.find_metric("time").is_none());
}

#[test]
fn every_depth_of_a_recursion() {
    let Some(profile) = check("full", &[("TREERING_RECURSION", "full")]) else { return };
    is_whole(&profile);
}

#[test]
fn arcs_that_are_folded() {
    let Some(profile) = check("swi", &[("TREERING_RECURSION", "swi-classic")]) else { return };
    is_whole(&profile);
}

#[test]
fn functions_that_options_leave_out() {
    let environment = [("TREERING_DEPTH", "3"), ("TREERING_IGNORE", "pong,often")];
    let Some(profile) = check("filters", &environment) else { return };
    assert_eq!((calls(&profile, "pong"), calls(&profile, "often")), (0, 0));
    assert_eq!(calls(&profile, "recursive"), 3);
    assert_eq!(profile.metadata.notes.len(), 2, "{:?}", profile.metadata.notes);
}

/// The places of all nodes in a live file, their number for the parents' order.
fn places(bytes: &[u8]) -> Vec<Ref> {
    let view = View::new(bytes).unwrap();
    let mut left: Vec<Ref> = view.threads().map(|(_, thread)| thread.root).collect();
    let mut places = Vec::new();
    while let Some(place) = left.pop() {
        places.push(place);
        left.extend(view.children(&view.node(place).unwrap()).map(|(child, _)| child));
    }
    places
}

/// Writes to every node what an allocator would have charged to it.
fn add_memory(file: &std::fs::File) {
    let mut bytes = vec![0; file.metadata().unwrap().len() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    let flags = treering_events::coded_flags(Header::read(&bytes).unwrap().flags | flag::MEMORY);
    file.write_all_at(&flags.to_le_bytes(), std::mem::offset_of!(Header, flags) as u64).unwrap();
    for place in places(&bytes) {
        let number = u64::from(place);
        for (field, value) in [
            (std::mem::offset_of!(Node, allocations), number),
            (std::mem::offset_of!(Node, allocated), number * 100),
            (std::mem::offset_of!(Node, live), number * 30),
            (std::mem::offset_of!(Node, freed_elsewhere), number * (place as u64 % 40)),
            (std::mem::offset_of!(Node, peak), number * 50),
        ] {
            let stored = value * treering_events::CODE;
            file.write_all_at(&stored.to_le_bytes(), number * UNIT + field as u64).unwrap();
        }
    }
}

#[test]
fn memory_of_nodes() {
    let Some(profile) = check_edited("memory", &[], add_memory) else { return };
    is_whole(&profile);
    let metric = profile.find_metric("allocations").unwrap();
    assert!(profile.run_cost(metric) > 0);
    assert_eq!(profile.memory.filled().count(), profile.tree.len() - profile.threads.len());
}
#[test]
fn the_clock_of_the_system() {
    let Some(profile) = check("monotonic", &[("TREERING_CLOCK", "monotonic")]) else { return };
    is_whole(&profile);
    assert_eq!(profile.metadata.parameters["clock"], "monotonic");
}
