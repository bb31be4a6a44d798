//! The JSON of every view has the documented keys, and its numbers agree.

use crate::timed;

use serde_json::Value;
use treering_analysis::{
    Basis, CallGraph, CallTree, Direction, LineTable, PointSeries, Presentation, Pruning, correct,
    find_function,
};
use treering_profile::{Arc, Function, Metric, MetricId, Profile, RecursionRule, Unit};
use treering_report::{Options, call_graph_json, flat_json, labels, lines_json, points_json, tree_json};

use timed::{growing, timed};

const STACKS: &str = "
    main@12;parse@21;copy@3 300
    main@12;parse@20;main@12;parse@20 90
    main@13;copy@4 100
    main@15 2
";

fn parse(text: &str) -> Value {
    serde_json::from_str(text).expect("a view is JSON")
}

fn profile() -> (Profile, Basis) {
    let profile = treering_testing::stacks(STACKS);
    let basis = Basis::of(&profile, MetricId::new(0));
    (profile, basis)
}

fn keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<_> = value.as_object().expect("an object").keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

/// Every key of `value` must be explained in the documentation.
fn check_documented(value: &Value) {
    let documentation = include_str!("../../../../docs/json.md");
    match value {
        Value::Object(object) => object.iter().for_each(|(key, value)| {
            assert!(documentation.contains(&format!("`{key}`")), "docs/json.md does not explain {key}");
            check_documented(value);
        }),
        Value::Array(values) => values.iter().for_each(check_documented),
        _ => {}
    }
}

const FUNCTION_KEYS: [&str; 23] = [
    "calls",
    "cycle",
    "estimated",
    "file",
    "function",
    "kind",
    "line",
    "live_bytes",
    "module",
    "peak_bytes",
    "ports",
    "recursive_calls",
    "self_cost",
    "self_high",
    "self_low",
    "self_samples",
    "self_uncertainty",
    "statistics",
    "total_cost",
    "total_high",
    "total_low",
    "total_samples",
    "unresolved",
];

const RUN_KEYS: [&str; 19] = [
    "benchmark",
    "call_bias",
    "commands",
    "cpu_ns",
    "jittered",
    "losses",
    "metric",
    "metrics",
    "not_counted",
    "notes",
    "period",
    "raw_cost",
    "run_cost",
    "samples",
    "selected_cost",
    "unfinished",
    "unit",
    "unlisted_high",
    "wall_ns",
];

fn sum(values: &Value, key: &str) -> u64 {
    values.as_array().expect("an array").iter().filter_map(|value| value[key].as_u64()).sum()
}

#[test]
fn flat_profile() {
    let (profile, basis) = profile();
    let graph = CallGraph::of(&profile, &basis, Presentation::Contexts);
    let json = parse(&flat_json(&profile, &graph, &Options::default()));
    check_documented(&json);
    assert_eq!(keys(&json), ["functions", "run", "spread", "view"]);
    assert_eq!(keys(&json["run"]), RUN_KEYS);
    assert_eq!(keys(&json["functions"][0]), FUNCTION_KEYS);
    assert_eq!(json["run"]["unit"], "nanoseconds");
    assert_eq!(sum(&json["functions"], "self_cost"), json["run"]["run_cost"].as_u64().expect("a number"));
    let first = &json["functions"][0];
    let [low, cost, high] = ["self_low", "self_cost", "self_high"].map(|key| first[key].as_u64());
    assert!(low < cost && cost < high, "{first}");
    assert_eq!(first["calls"], Value::Null, "samples tell nothing of calls");
}

#[test]
fn call_graph() {
    let (profile, basis) = profile();
    let graph = CallGraph::of(&profile, &basis, Presentation::Contexts);
    let json = parse(&call_graph_json(&profile, &graph, &Options::default()));
    check_documented(&json);
    assert_eq!(keys(&json), ["arcs", "collapsed_cycles", "cycles", "functions", "run", "view"]);
    for block in json["functions"].as_array().expect("an array") {
        let [own, total] = ["self_cost", "total_cost"].map(|key| block[key].as_u64().expect("a number"));
        assert_eq!(sum(&block["callers"], "total_cost"), total, "{block}");
        assert_eq!(own + sum(&block["callees"], "total_cost"), total, "{block}");
    }
    assert_eq!(json["cycles"][0]["functions"], serde_json::json!(["main", "parse"]));
    let known = ["live_bytes", "peak_bytes", "ports", "statistics"];
    let ends = ["callee", "callee_module", "caller", "caller_module"];
    let mut arc_keys = [&["apportioned", "calls", "total_cost"][..], &ends, &known].concat();
    arc_keys.sort_unstable();
    assert_eq!(keys(&json["arcs"][0]), arc_keys);
    assert_eq!(json["arcs"][0]["caller"], Value::Null, "the first arc is spontaneous");
}

/// `main` calls `work` and `log`, which both call `copy`: how often was counted, but not what it cost.
fn counted() -> (Profile, Basis) {
    let mut profile = Profile::new(RecursionRule::Full);
    let metric = profile.add_metric(Metric::exact("instructions", Unit::Count));
    let thread = profile.add_single_thread("demo");
    let root = profile.threads[thread.index()].root;
    let [main, work, log, copy] =
        [("main", 10), ("work", 20), ("log", 30), ("copy", 40)].map(|(name, cost)| {
            let name = profile.strings.intern(name);
            let function = profile.functions.intern(Function::named(name));
            let node = profile.tree.child(root, function, None);
            profile.tree.add_self_cost(metric, node, cost);
            function
        });
    for (caller, callee) in [(main, work), (main, log), (work, copy), (log, copy)] {
        profile.add_arc(Arc { caller, callee, call_site: None, calls: 1, total_costs: Vec::new() });
    }
    let basis = Basis::of(&profile, metric);
    (profile, basis)
}

#[test]
fn totals_that_were_not_measured_are_null_beside_their_estimates() {
    let (profile, basis) = counted();
    let graph = CallGraph::of(&profile, &basis, Presentation::Contexts);
    let flat = parse(&flat_json(&profile, &graph, &Options::default()));
    let call_graph = parse(&call_graph_json(&profile, &graph, &Options::default()));
    [&flat, &call_graph].into_iter().for_each(check_documented);
    for function in
        [&flat, &call_graph].into_iter().flat_map(|json| json["functions"].as_array().expect("an array"))
    {
        assert_eq!(function["total_cost"], Value::Null, "{function}");
        assert!(function["estimated_total_cost"].as_u64() >= function["self_cost"].as_u64(), "{function}");
        let arcs =
            [&function["callers"], &function["callees"]].into_iter().filter_map(Value::as_array).flatten();
        for arc in arcs.filter(|arc| arc["caller"] != Value::Null) {
            assert_eq!((&arc["total_cost"], &arc["self_cost"]), (&Value::Null, &Value::Null), "{arc}");
        }
    }
    let function =
        find_function(&profile, &basis, "main", labels(&profile), |_| false).expect("there is a main");
    let lines = parse(&lines_json(&profile, &LineTable::of(&profile, &basis, function)));
    check_documented(&lines);
    assert_eq!(lines["total_cost"], Value::Null);
    assert_eq!(lines["calls_elsewhere"][0]["total_cost"], Value::Null);
    assert_eq!(lines["calls_elsewhere"][0]["calls"], 1);
}

/// `main` calls `work`, which calls `copy`; then the tree was full, and both were called again.
fn folded() -> (Profile, Basis) {
    let mut profile = treering_testing::stacks("main 10\nmain;work 20\nmain;work;copy 30");
    let folded = profile.folded_function();
    let root = profile.threads[0].root;
    let fold = profile.tree.child(root, folded, None);
    for (name, cost) in [("work", 5), ("copy", 35)] {
        let name = profile.strings.intern(name);
        let of = |(_, function): &(_, &Function)| function.name == name;
        let (function, _) = profile.functions.iter().find(of).expect("it is in the tree");
        let node = profile.tree.child(fold, function, None);
        profile.tree.add_self_cost(MetricId::new(0), node, cost);
    }
    let basis = Basis::of(&profile, MetricId::new(0));
    (profile, basis)
}

#[test]
fn totals_of_folded_trees_are_bounds() {
    let (profile, basis) = folded();
    let graph = CallGraph::of(&profile, &basis, Presentation::Contexts);
    let json = parse(&flat_json(&profile, &graph, &Options::default()));
    check_documented(&json);
    assert_eq!(json["run"]["folded_cost"], 40);
    let run = json["run"]["run_cost"].as_u64().expect("a number");
    let bounds = |name: &str| {
        let functions = json["functions"].as_array().expect("an array");
        let function = functions.iter().find(|function| function["function"] == name).expect("it is there");
        assert_eq!(function["total_cost"], Value::Null, "{function}");
        [&function["total_low"], &function["total_high"]].map(|bound| bound.as_u64().expect("a number"))
    };
    // Samples are worth a millisecond each in what came of stacks.
    let unit = (run - 40) / 60;
    assert_eq!(bounds("main"), [60 * unit, run]);
    // All that was folded but its own cost there, which is in both, may have been below it.
    assert_eq!(bounds("work"), [50 * unit + 5, 50 * unit + 40]);
    assert_eq!(bounds("copy"), [30 * unit + 35, 30 * unit + 40]);
}

#[test]
fn trees() {
    let (profile, basis) = profile();
    for (direction, view) in [(Direction::Callees, "tree"), (Direction::Callers, "callers")] {
        let tree = CallTree::of(&profile, &basis, direction, Pruning { min_share: 0.01, max_depth: 2 });
        let json = parse(&tree_json(&profile, &tree));
        check_documented(&json);
        assert_eq!(json["view"], view);
        let nodes = json["nodes"].as_array().expect("an array");
        assert!(nodes.iter().any(|node| node["hidden_nodes"].as_u64() > Some(0)), "{json}");
        let top = nodes.iter().filter(|node| node["depth"] == 0);
        let top: u64 = top.filter_map(|node| node["total_cost"].as_u64()).sum();
        assert_eq!(Some(top), json["run"]["run_cost"].as_u64());
    }
}

#[test]
fn lines() {
    let (profile, basis) = profile();
    let function =
        find_function(&profile, &basis, "main", labels(&profile), |_| false).expect("there is a main");
    let json = parse(&lines_json(&profile, &LineTable::of(&profile, &basis, function)));
    check_documented(&json);
    assert_eq!(json["function"], "main");
    let own = sum(&json["lines"], "self_cost") + json["self_elsewhere"].as_u64().expect("a number");
    assert_eq!(Some(own), json["self_cost"].as_u64());
    assert_eq!(Some(sum(&json["lines"], "total_cost")), json["total_cost"].as_u64());
}

#[test]
fn several_runs_tell_their_spread() {
    let (profile, _) = profile();
    let merged = treering_profile::merge(&[&profile, &profile, &profile]);
    let graph = CallGraph::of(&merged, &Basis::of(&merged, MetricId::new(0)), Presentation::Contexts);
    let json = parse(&flat_json(&merged, &graph, &Options::default()));
    check_documented(&json);
    assert_eq!(json["spread"]["runs"], 3);
    assert_eq!(json["spread"]["suspicious"], false);
}

#[test]
fn losses_that_a_file_of_another_tool_does_not_tell_are_null_and_not_0() {
    let losses = |collected: fn(&mut treering_profile::Metadata)| {
        let (mut profile, basis) = profile();
        profile.metadata.losses = treering_profile::Losses::default();
        collected(&mut profile.metadata);
        let graph = CallGraph::of(&profile, &basis, Presentation::Contexts);
        parse(&flat_json(&profile, &graph, &Options::default()))["run"]["losses"].clone()
    };
    assert_eq!(losses(|metadata| metadata.set_foreign("pprof")), Value::Null);
    assert_eq!(losses(|metadata| metadata.collector = "treering record".to_owned())["lost_samples"], 0);
}

#[test]
fn timed_profiles_tell_all_that_is_known_of_calls() {
    let profile = timed();
    let corrected = correct(&profile);
    let basis = corrected.basis(MetricId::new(0));
    let graph =
        CallGraph::of(&corrected.profile, &basis, Presentation::Contexts).with_reliability(&corrected);
    let json = parse(&call_graph_json(&corrected.profile, &graph, &Options::default()));
    check_documented(&json);
    assert_eq!(json["run"]["raw_cost"], profile.run_cost(MetricId::new(0)));
    assert!(json["run"]["raw_cost"].as_u64() > json["run"]["run_cost"].as_u64());
    assert_eq!(json["run"]["call_bias"]["inside_ns"], 2.5);
    assert_eq!(json["run"]["benchmark"]["parameters"], serde_json::json!([["n", "3"]]));
    assert_eq!(json["run"]["losses"]["unbalanced_leaves"], 2);
    let leaf =
        json["functions"].as_array().expect("an array").iter().find(|block| block["function"] == "leaf");
    let leaf = leaf.expect("leaf was called");
    assert_eq!((&leaf["unresolved"], &leaf["estimated"]), (&Value::Bool(true), &Value::Bool(false)));
    assert_eq!(leaf["statistics"]["greatest"], 30);
    assert_eq!(leaf["ports"]["redos"], 1200);
    assert_eq!(leaf["peak_bytes"], 4096);
    let callers = leaf["callers"].as_array().expect("an array");
    let timed: Vec<_> = callers.iter().map(|arc| &arc["statistics"]["timed"]).collect();
    assert_eq!(timed, [1, 2], "{callers:#?}");
    let work =
        json["functions"].as_array().expect("an array").iter().find(|block| block["function"] == "work");
    let sizes = serde_json::json!([
        { "least_size": 8, "greatest_size": 15, "calls": 1, "total_cost": 2947 },
        { "least_size": 1024, "greatest_size": 2047, "calls": 1, "total_cost": 7940 },
    ]);
    assert_eq!(work.expect("work was called")["argument_sizes"], sizes);
}

#[test]
fn arcs_tell_how_their_costs_grow() {
    let profile = growing();
    let basis = Basis::of(&profile, MetricId::new(0));
    let graph = CallGraph::of(&profile, &basis, Presentation::Contexts);
    let json = parse(&call_graph_json(&profile, &graph, &Options::default()));
    check_documented(&json);
    let blocks = json["functions"].as_array().expect("an array");
    let work = blocks.iter().find(|block| block["function"] == "work").expect("work was called");
    for arcs in [&json["arcs"], &work["callers"]] {
        let exponent = |caller: &str| {
            let arc = arcs.as_array().expect("an array").iter();
            let arc = arc.clone().find(|arc| arc["callee"] == "work" && arc["caller"] == caller);
            arc.and_then(|arc| arc["growth"]["exponent"].as_f64()).expect("it was fitted")
        };
        assert!((exponent("linear") - 1.0).abs() < 1e-6 && (exponent("square") - 2.0).abs() < 1e-6, "{arcs}");
    }
    let sizes = json["arcs"].as_array().expect("an array").iter().find(|arc| arc["caller"] == "square");
    let first = serde_json::json!({ "least_size": 4, "greatest_size": 7, "calls": 1, "total_cost": 160 });
    assert_eq!(sizes.expect("an arc")["argument_sizes"][0], first);
}

#[test]
fn points_are_in_order_with_their_peaks() {
    let profile = timed();
    let json =
        parse(&points_json(&profile, &PointSeries::of(&profile), &Basis::of(&profile, MetricId::new(0))));
    check_documented(&json);
    assert_eq!(keys(&json), ["points", "run", "series", "view"]);
    let times: Vec<_> =
        json["points"].as_array().expect("an array").iter().map(|point| &point["time_ns"]).collect();
    assert_eq!(times, [100, 5000, 9000]);
    let peak = json["series"]
        .as_array()
        .expect("an array")
        .iter()
        .find(|series| series["metric"] == "resident memory");
    let peak = peak.expect("it was measured");
    assert_eq!(
        (&peak["first"], &peak["peak"], &peak["relative_peak"]),
        (&4096.into(), &12_288.into(), &8192.into())
    );
}
