//! The JSON of every view has the documented keys, and its numbers agree.

use serde_json::Value;
use treering_analysis::{
    Basis, CallGraph, CallTree, Direction, LineTable, Presentation, Pruning, find_function,
};
use treering_profile::{MetricId, Profile};
use treering_report::{Options, call_graph_json, flat_json, lines_json, tree_json};

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
    let documentation = include_str!("../../../docs/json.md");
    match value {
        Value::Object(object) => object.iter().for_each(|(key, value)| {
            assert!(documentation.contains(&format!("`{key}`")), "docs/json.md does not explain {key}");
            check_documented(value);
        }),
        Value::Array(values) => values.iter().for_each(check_documented),
        _ => {}
    }
}

const FUNCTION_KEYS: [&str; 15] = [
    "calls",
    "cycle",
    "file",
    "function",
    "line",
    "module",
    "recursive_calls",
    "self_cost",
    "self_high",
    "self_low",
    "self_samples",
    "total_cost",
    "total_high",
    "total_low",
    "total_samples",
];

const RUN_KEYS: [&str; 13] = [
    "commands",
    "cpu_ns",
    "jittered",
    "losses",
    "metric",
    "notes",
    "period",
    "run_cost",
    "samples",
    "selected_cost",
    "unfinished",
    "unit",
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
    let arc_keys = ["apportioned", "callee", "caller", "calls", "total_cost"];
    assert_eq!(keys(&json["arcs"][0]), arc_keys);
    assert_eq!(json["arcs"][0]["caller"], Value::Null, "the first arc is spontaneous");
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
    let function = find_function(&profile, &basis, "main", |_| false).expect("there is a main");
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
