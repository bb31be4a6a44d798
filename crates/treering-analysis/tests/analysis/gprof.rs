//! Arc-only profiles: propagation by hand-made numbers, and compared with gprof itself.
#![expect(clippy::unwrap_used, reason = "a test that fails here has shown what is wrong")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use treering_analysis::{ArcSource, Basis, CallGraph, Presentation, function_name};
use treering_profile::{Arc, Frame, Function, FunctionId, Metric, MetricId, Profile, RecursionRule, Unit};

const TIME: MetricId = MetricId::new(0);

/// An arc-only profile: self costs of functions, and arcs with calls and perhaps what they cost.
fn arcs_only(self_costs: &[(&str, u64)], arcs: &[(&str, &str, u64, Option<u64>)]) -> Profile {
    let mut profile = Profile::new(RecursionRule::Full);
    profile.add_metric(Metric::exact("time", Unit::Nanoseconds));
    let thread = profile.add_single_thread("main");
    for &(name, cost) in self_costs {
        let function = function(&mut profile, name);
        profile.add_stack(thread, &[Frame::new(function)], None, &[(TIME, cost)]);
    }
    for &(caller, callee, calls, cost) in arcs {
        let (caller, callee) = (function(&mut profile, caller), function(&mut profile, callee));
        let total_costs = cost.map(|cost| (TIME, cost)).into_iter().collect();
        profile.add_arc(Arc { caller, callee, call_site: None, calls, total_costs });
    }
    profile
}

fn function(profile: &mut Profile, name: &str) -> FunctionId {
    let name = profile.strings.intern(name);
    profile.functions.intern(Function::named(name))
}

fn graph(profile: &Profile) -> CallGraph {
    CallGraph::of(profile, &Basis::of(profile, TIME), Presentation::Contexts)
}

/// `(self, total)` of the contribution of one arc.
fn contribution(profile: &Profile, graph: &CallGraph, caller: &str, callee: &str) -> (u64, u64, ArcSource) {
    let is = |id: FunctionId, name: &str| function_name(profile, id) == name;
    let arc =
        graph.arcs.iter().find(|arc| arc.caller.is_some_and(|id| is(id, caller)) && is(arc.callee, callee));
    let arc = arc.unwrap();
    (arc.from_caller.self_cost.cost, arc.from_caller.total.cost, arc.source)
}

fn total(profile: &Profile, graph: &CallGraph, name: &str) -> u64 {
    let cost = graph.functions.iter().find(|cost| function_name(profile, cost.function) == name);
    cost.unwrap().total_cost.cost
}

#[test]
fn cost_is_apportioned_by_calls_to_the_last_unit() {
    let profile = arcs_only(
        &[("main", 1), ("a", 10), ("b", 20), ("leaf", 100)],
        &[("main", "a", 1, None), ("main", "b", 1, None), ("a", "leaf", 1, None), ("b", "leaf", 2, None)],
    );
    let graph = graph(&profile);
    assert_eq!(graph.presentation, Presentation::CollapsedCycles);
    assert_eq!(contribution(&profile, &graph, "a", "leaf"), (33, 33, ArcSource::Apportioned));
    assert_eq!(contribution(&profile, &graph, "b", "leaf"), (67, 67, ArcSource::Apportioned));
    assert_eq!(contribution(&profile, &graph, "main", "b"), (20, 87, ArcSource::Apportioned));
    assert_eq!(total(&profile, &graph, "main"), 131);
}

/// Python's profiler counts calls that no function made, and they were shown as none.
#[test]
fn calls_of_no_function_count_for_their_callee() {
    let mut profile = arcs_only(&[("a", 10), ("leaf", 100)], &[("a", "leaf", 2, Some(40))]);
    for (callee, calls, cost) in [("leaf", 3, 60), ("a", 5, 50)] {
        let callee = function(&mut profile, callee);
        let total_costs = vec![(TIME, cost)];
        profile.add_arc(Arc { caller: Profile::ROOT, callee, call_site: None, calls, total_costs });
    }
    let graph = graph(&profile);
    for (name, all, of_root, rest) in [("leaf", 5, 3, 60), ("a", 5, 5, 50)] {
        let is_it = |id: FunctionId| function_name(&profile, id) == name;
        let cost = graph.functions.iter().find(|cost| is_it(cost.function)).unwrap();
        assert_eq!(cost.calls.map(|calls| calls.all), Some(all), "{name}");
        let arc = graph.arcs.iter().find(|arc| arc.caller.is_none() && is_it(arc.callee)).unwrap();
        assert_eq!((arc.calls, arc.total_cost.cost), (of_root, rest), "{name}");
    }
}

#[test]
fn measured_arcs_are_used_as_they_are() {
    let profile = arcs_only(
        &[("main", 1), ("a", 10), ("b", 20), ("leaf", 100)],
        &[
            ("main", "a", 1, Some(90)),
            ("main", "b", 1, Some(40)),
            ("a", "leaf", 1, Some(80)),
            ("b", "leaf", 2, Some(20)),
        ],
    );
    let graph = graph(&profile);
    assert_eq!(contribution(&profile, &graph, "a", "leaf"), (80, 80, ArcSource::Measured));
    assert_eq!(contribution(&profile, &graph, "main", "a"), (10, 90, ArcSource::Measured));
    assert_eq!(total(&profile, &graph, "main"), 131);
}

/// They were counted as none.
#[test]
fn calls_of_arcs_that_have_costs_alone_are_not_known() {
    let arcs = [("main", "a", 0, Some(90)), ("a", "leaf", 0, Some(80))];
    let graph = graph(&arcs_only(&[("main", 1), ("a", 10), ("leaf", 80)], &arcs));
    assert!(!graph.has_calls() && graph.functions.iter().all(|cost| cost.calls.is_none()));
}

#[test]
fn calls_without_an_arc_are_spontaneous() {
    let profile = arcs_only(&[("main", 5), ("handler", 7)], &[]);
    let graph = graph(&profile);
    let spontaneous: u64 =
        graph.arcs.iter().filter(|arc| arc.caller.is_none()).map(|arc| arc.from_caller.total.cost).sum();
    assert_eq!(spontaneous, 12);
}

#[test]
fn a_cycle_shares_its_cost_by_the_calls_into_it() {
    let profile = arcs_only(
        &[("x", 0), ("y", 0), ("even", 30), ("odd", 60), ("log", 10)],
        &[
            ("x", "even", 1, None),
            ("y", "odd", 3, None),
            ("even", "odd", 50, None),
            ("odd", "even", 50, None),
            ("odd", "log", 9, None),
        ],
    );
    let graph = graph(&profile);
    let cycle = &graph.cycles[0];
    assert_eq!((cycle.self_cost.cost, cycle.total_cost.cost), (90, 100));
    assert_eq!((cycle.calls_from_outside, cycle.calls_within), (4, 100));
    assert_eq!(contribution(&profile, &graph, "x", "even"), (22, 24, ArcSource::Apportioned));
    assert_eq!(contribution(&profile, &graph, "y", "odd"), (68, 76, ArcSource::Apportioned));
    assert_eq!(contribution(&profile, &graph, "even", "odd"), (0, 0, ArcSource::Apportioned));
    assert_eq!(total(&profile, &graph, "odd"), 70);
}

/// Broken files may claim anything; nothing may overflow.
#[test]
fn absurd_arcs_do_not_end_the_program() {
    let most = u64::MAX;
    let profile = arcs_only(
        &[("main", 5), ("a", 7)],
        &[
            ("main", "a", most, Some(most)),
            ("a", "b", most, Some(most)),
            ("b", "a", most, None),
            ("a", "a", 0, None),
        ],
    );
    assert!(graph(&profile).arcs.len() >= 4);
}

/// Self and children seconds.
type Seconds = (f64, f64);

/// gprof's output: seconds, as in its columns.
#[derive(Default)]
struct Listing {
    /// By function: self and children seconds.
    functions: BTreeMap<String, Seconds>,
    /// Self and children seconds of the cycle as a whole.
    cycle: Option<Seconds>,
    /// By caller and callee: calls, and self and children seconds where they are printed.
    arcs: BTreeMap<(String, String), (u64, Option<Seconds>)>,
}

#[test]
fn propagation_agrees_with_gprof() {
    let Some(text) = run_gprof() else { return };
    let listing = parse(&text);
    let nanoseconds = |seconds: f64| (seconds * 1e9).round() as u64;
    let self_costs: Vec<_> =
        listing.functions.iter().map(|(name, &(own, _))| (name.as_str(), nanoseconds(own))).collect();
    let arcs: Vec<_> = listing
        .arcs
        .iter()
        .map(|((caller, callee), &(calls, _))| (caller.as_str(), callee.as_str(), calls, None))
        .collect();
    let profile = arcs_only(&self_costs, &arcs);
    let graph = graph(&profile);
    let mut checked = 0;
    for cost in &graph.functions {
        let name = function_name(&profile, cost.function).into_owned();
        let (own, children) = listing.functions[&name];
        agree(&name, cost.self_cost.cost, own);
        agree(&name, cost.total_cost.cost - cost.self_cost.cost, children);
        checked += 1;
    }
    for ((caller, callee), &(_, printed)) in &listing.arcs {
        let Some((own, children)) = printed else { continue };
        let (found_own, found_total, _) = contribution(&profile, &graph, caller, callee);
        agree(&format!("{caller} -> {callee}"), found_own, own);
        agree(&format!("{caller} -> {callee}"), found_total - found_own, children);
        checked += 1;
    }
    let (own, children) = listing.cycle.expect("even and odd are a cycle");
    let cycle = &graph.cycles[0];
    agree("the cycle", cycle.self_cost.cost, own);
    agree("the cycle", cycle.total_cost.cost - cycle.self_cost.cost, children);
    assert!(checked >= 16, "gprof's listing was understood in part only:\n{text}");
}

/// Within what rounding to 0.01 s in the input and in the output can make.
fn agree(what: &str, found_ns: u64, printed: f64) {
    let found = found_ns as f64 / 1e9;
    assert!((found - printed).abs() <= 0.021, "{what}: {found} s here, {printed} s by gprof");
}

/// Builds the program with -pg, runs it and gives gprof's call graph; nothing when a tool is
/// missing, which is said.
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn run_gprof() -> Option<String> {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("gprof");
    std::fs::create_dir_all(&directory).unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/analysis/gprof_program.c");
    let program = directory.join("gprof_program");
    let arguments = ["-O1", "-g", "-pg", "-no-pie", "-o"];
    let compiled = Command::new("cc").args(arguments).arg(&program).arg(&source).status();
    if !compiled.is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED: there is no cc that builds with -pg");
        return None;
    }
    let status = Command::new(&program).current_dir(&directory).status().unwrap();
    assert!(status.success());
    let data: PathBuf = directory.join("gmon.out");
    let listed = Command::new("gprof").args(["-b", "-q"]).arg(&program).arg(&data).output();
    match listed {
        Ok(output) => Some(String::from_utf8(output.stdout).unwrap()),
        Err(_) => {
            eprintln!("SKIPPED: there is no gprof (it is in binutils)");
            None
        }
    }
}

fn parse(text: &str) -> Listing {
    let mut listing = Listing::default();
    let mut current: Option<String> = None;
    for line in text.lines().skip_while(|line| !line.starts_with("index")).skip(1) {
        if line.starts_with("---") {
            current = None;
        } else if line.starts_with('[') {
            current = primary_line(line, &mut listing);
        } else if let Some(caller) = &current {
            callee_line(line, caller, &mut listing);
        }
        if line.starts_with("Index by") {
            break;
        }
    }
    listing
}

/// `[2]     35.1    0.30    0.20     103+60      name <cycle 1> [2]`; the calls may be missing.
fn primary_line(line: &str, listing: &mut Listing) -> Option<String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (own, children) = (words[2].parse().unwrap(), words[3].parse().unwrap());
    if line.contains("as a whole") {
        listing.cycle = Some((own, children));
        return None;
    }
    let has_calls = words[4].starts_with(|first: char| first.is_ascii_digit());
    let name = words[4 + usize::from(has_calls)].to_owned();
    listing.functions.insert(name.clone(), (own, children));
    if let Some((_, recursive)) = words[4].split_once('+').filter(|_| has_calls) {
        let calls = recursive.parse().unwrap();
        listing.arcs.insert((name.clone(), name.clone()), (calls, None));
    }
    Some(name)
}

/// `0.05    0.10      3/5           name [7]`, or `4      name <cycle 1> [7]` within a cycle.
fn callee_line(line: &str, caller: &str, listing: &mut Listing) {
    let words: Vec<&str> = line.split_whitespace().collect();
    let within = words.get(1).is_some_and(|word| word.parse::<f64>().is_err());
    let (calls, name, printed) = match within {
        true => (words[0], words[1], None),
        false => (words[2], words[3], Some((words[0].parse().unwrap(), words[1].parse().unwrap()))),
    };
    let calls = calls.split('/').next().unwrap().parse().unwrap();
    listing.arcs.insert((caller.to_owned(), name.to_owned()), (calls, printed));
}
