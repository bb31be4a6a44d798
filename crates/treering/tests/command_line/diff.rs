//! `treering diff`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use treering_formats::trg;
use treering_profile::{Frame, Function, Metric, Profile, RecursionRule, Unit};
use treering_testing::programs::installed;

use crate::session::{Session, program, words};
use crate::skip;

/// Compiles the program into a folder of its own.
fn compile(session: &Session, path: &str, options: &[&str]) -> PathBuf {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/command_line/programs/changed.c");
    let path = session.path(path);
    std::fs::create_dir_all(path.parent().expect("it is in a folder")).expect("the folder can be made");
    let made = Command::new("cc").args(["-g", "-O1"]).args(options).args([source, "-o"]).arg(&path).status();
    assert!(made.is_ok_and(|made| made.success()), "the compiler is installed");
    path
}

/// Counts a program into a profile.
fn count(session: &Session, options: &[&str], path: &Path, output: &str) {
    let mut all = words(&[&["count", "-o", output], options, &["--"]].concat());
    all.extend(program(path, &[]));
    let outcome = session.run(&all);
    assert!(outcome.status.success(), "{outcome:#?}");
}

/// The program before and after its change, in folders and under names of their own, one of them linked at fixed
/// addresses.
fn two_versions(session: &Session, options: &[&str]) {
    let before = compile(session, "old tree/prog-before", &[]);
    let after = compile(session, "new tree/prog-after", &["-DCHANGED", "-no-pie"]);
    count(session, options, &before, "before.trg");
    count(session, options, &after, "after.trg");
}

fn difference(session: &Session, options: &[&str]) -> Value {
    let text = session.output(&[&["diff", "before.trg", "after.trg", "--json"], options].concat());
    serde_json::from_str(&text).expect("it is JSON")
}

fn row<'a>(difference: &'a Value, name: &str) -> &'a Value {
    let functions = difference["functions"].as_array().expect("functions");
    functions.iter().find(|row| row["function"] == name).unwrap_or_else(|| panic!("no row of {name}"))
}

/// The self costs of functions by name, as `treering report` has them.
fn self_costs(session: &Session, profile: &str) -> BTreeMap<String, i64> {
    let mut costs = BTreeMap::new();
    let text = session.output(&["report", profile, "--json", "--min", "0"]);
    let report: Value = serde_json::from_str(&text).expect("it is JSON");
    for row in report["functions"].as_array().expect("functions") {
        let name = row["function"].as_str().expect("a name").to_owned();
        *costs.entry(name).or_default() += row["self_cost"].as_i64().expect("a cost");
    }
    costs
}

#[test]
fn the_call_that_was_added_is_the_cause() {
    let session = Session::new();
    two_versions(&session, &["--tree"]);
    let difference = difference(&session, &[]);
    let verdict = &difference["verdict"];
    let cause = &verdict["cause"];
    assert_eq!((&verdict["outcome"], &verdict["exact"]), (&"more".into(), &true.into()));
    assert_eq!((&cause["reason"], &cause["caller"]), (&"calls".into(), &"parse".into()));
    assert_eq!((&cause["function"], &cause["calls"]["head"]), (&"intern".into(), &2000.into()));
    let number = |name: &str, key: &str| row(&difference, name)[key].as_i64().expect("a number");
    assert_eq!((number("intern", "cost_per_call"), number("hash", "more_calls")), (0, 0));
    assert_eq!(number("intern", "more_calls"), number("intern", "self_change"));
    // Fifteen steps more of some instructions each, a thousand times.
    let per_call = number("hash", "cost_per_call");
    assert!(per_call > 0 && per_call % 15_000 == 0, "{per_call}");
}

/// Differences of the numbers of both reports, by another way than the comparison takes.
#[test]
fn changes_are_those_between_the_reports() {
    let session = Session::new();
    for options in [&["--tree"][..], &[]] {
        two_versions(&session, options);
        let difference = difference(&session, &[]);
        let (base, head) = (self_costs(&session, "before.trg"), self_costs(&session, "after.trg"));
        let mut changes: BTreeMap<&str, i64> = BTreeMap::new();
        let mut whole = 0;
        for row in difference["functions"].as_array().expect("functions") {
            let change = row["self_change"].as_i64().expect("a change");
            *changes.entry(row["function"].as_str().expect("a name")).or_default() += change;
            whole += change;
            if let (Some(more), Some(per_call)) = (row["more_calls"].as_i64(), row["cost_per_call"].as_i64())
            {
                assert_eq!(more + per_call, change, "{row}");
            }
        }
        for name in ["main", "parse", "intern", "hash"] {
            assert_eq!(changes[name], head[name] - base[name], "{name} {options:?}");
        }
        let run = &difference["verdict"]["run_cost"];
        assert_eq!(
            Some(whole),
            run["head"].as_i64().zip(run["base"].as_i64()).map(|(head, base)| head - base)
        );
        let modules = difference["modules"].as_array().expect("modules");
        let program = modules.iter().find(|pair| pair["paired_by"] == "program").expect("the program paired");
        assert_eq!(program["names"]["base"], "prog-before");
    }
}

#[test]
fn pprof_finds_the_same_changes() {
    let Some(go) = installed("go") else { return skip("go is not installed") };
    let session = Session::new();
    two_versions(&session, &["--tree"]);
    for side in ["before", "after"] {
        let (trg, pprof) = (format!("{side}.trg"), format!("{side}.pb.gz"));
        session.output(&["export", &trg, "--to", "pprof", "-o", &pprof]);
    }
    let mut pprof = Command::new(go);
    pprof.current_dir(session.path("")).args([
        "tool",
        "pprof",
        "-top",
        "-nodefraction=0",
        "-sample_index=instructions",
    ]);
    let shown = pprof.args(["-unit=count", "-diff_base", "before.pb.gz", "after.pb.gz"]).output();
    let Some(shown) = shown.ok().filter(|shown| shown.status.success()) else {
        return skip("this go has no pprof that runs");
    };
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    let difference = difference(&session, &[]);
    for name in ["parse", "intern", "hash"] {
        let line = shown.lines().find(|line| line.ends_with(&format!(" {name}")));
        let line = line.unwrap_or_else(|| panic!("{name} in {shown}"));
        let flat = line.split_whitespace().next().expect("a number");
        let flat: i64 = flat.trim_end_matches("count").parse().unwrap_or_else(|_| panic!("{line}"));
        assert_eq!(Some(flat), row(&difference, name)["self_change"].as_i64(), "{name}");
    }
}

/// Formats that keep neither calls nor whether costs are samples.
#[test]
fn costs_of_formats_without_calls_are_compared() {
    let session = Session::new();
    two_versions(&session, &["--tree"]);
    let change = |base: &str, head: &str| {
        let text = session.output(&["diff", base, head, "--json"]);
        let difference: Value = serde_json::from_str(&text).expect("it is JSON");
        row(&difference, "intern")["self_change"].as_i64().expect("a change")
    };
    let expected = change("before.trg", "after.trg");
    for format in ["pprof", "cpuprofile", "speedscope", "firefox", "otlp", "folded", "callgrind"] {
        for side in ["before", "after"] {
            let (from, to) = (format!("{side}.trg"), format!("{side}.{format}"));
            session.output(&["export", &from, "--to", format, "-o", &to]);
        }
        let (base, head) = (format!("before.{format}"), format!("after.{format}"));
        assert_eq!(change(&base, &head), expected, "{format}");
        let views = [&["--flat"][..], &["--callgraph", "intern"], &["--markdown"], &["--tree"]];
        // Callgrind's profiles have no stacks.
        for view in views.iter().take(if format == "callgrind" { 3 } else { 4 }) {
            let text = session.output(&[&["diff", &base, &head], *view].concat());
            assert!(text.contains("intern"), "{format} {view:?}: {text}");
        }
    }
}

#[test]
fn equal_runs_have_no_difference_and_limits_decide_the_status() {
    let session = Session::new();
    let before = compile(&session, "one/prog", &[]);
    for output in ["before.trg", "after.trg"] {
        count(&session, &["--tree", "--fixed-addresses"], &before, output);
    }
    let text = session.output(&["diff", "before.trg", "after.trg"]);
    assert!(text.starts_with("no difference: "), "{text}");
    let after = compile(&session, "two/prog", &["-DCHANGED"]);
    count(&session, &["--tree"], &after, "after.trg");
    let status = |words: &[&str]| session.run(words).status.code();
    assert_eq!(status(&["diff", "before.trg", "after.trg"]), Some(0));
    assert_eq!(status(&["diff", "before.trg", "after.trg", "--limit", "1%"]), Some(1));
    assert_eq!(status(&["diff", "before.trg", "after.trg", "--limit", "100%"]), Some(0));
    assert_eq!(status(&["diff", "after.trg", "before.trg", "--limit", "1%"]), Some(0));
    assert_eq!(status(&["diff", "before.trg", "missing.trg"]), Some(2));
}

/// One sampled run of each tells nothing of how much runs differ.
#[test]
fn samples_of_one_run_each_are_undecided() {
    let session = Session::new();
    std::fs::write(session.path("a.folded"), "main;work 100\nmain;copy 60\n").expect("it can be written");
    std::fs::write(session.path("b.folded"), "main;work 104\nmain;copy 160\n").expect("it can be written");
    // The verdict of equal ones named a function whose change was 0.
    let equal = session.run(&["diff", "a.folded", "a.folded", "--limit", "5%"]);
    assert!(equal.stdout.starts_with("undecided: 160 "), "{equal:#?}");
    assert!(
        equal.stdout.contains("in both, all 3 functions equal\n") && equal.status.code() == Some(3),
        "{equal:#?}"
    );
    std::fs::write(session.path("one.folded"), "main 100\n").expect("it can be written");
    let one = session.run(&["diff", "one.folded", "one.folded"]);
    assert!(one.stdout.contains("in both, the one function equal\n"), "{one:#?}");
    let outcome = session.run(&["diff", "a.folded", "b.folded", "--limit", "5%", "--top", "5"]);
    assert_eq!(outcome.status.code(), Some(3), "{outcome:#?}");
    let rows: Vec<&str> = outcome.stdout.lines().filter(|line| line.trim_start().starts_with('+')).collect();
    assert!(rows[0].ends_with("copy") && !rows[0].contains('?'), "{}", outcome.stdout);
    assert!(rows[1].ends_with("work") && rows[1].contains('?'), "{}", outcome.stdout);
    // Calls that no file states are not known, and not 0.
    let json: Value =
        serde_json::from_str(&session.output(&["diff", "a.folded", "b.folded", "--tree", "--json"]))
            .expect("it is JSON");
    for of in ["functions", "arcs", "tree"] {
        let rows = json[of].as_array().expect("rows");
        assert!(rows.len() >= 3 && rows.iter().all(|row| row["calls"].is_null()), "{of}: {json}");
    }
}

#[test]
fn views_have_the_verdict_and_its_functions() {
    let session = Session::new();
    two_versions(&session, &["--tree"]);
    let show = |options: &[&str]| session.output(&[&["diff", "before.trg", "after.trg"], options].concat());
    let tree = show(&["--tree"]);
    assert!(tree.contains("1,000 → 2,000") && tree.contains("intern"), "{tree}");
    let graph = show(&["--callgraph", "intern"]);
    assert!(graph.contains("← parse"), "{graph}");
    let markdown = show(&["--markdown"]);
    assert!(markdown.starts_with("<!-- treering:diff -->\n### ▲ +"), "{markdown}");
    assert!(markdown.contains("| `intern` |"), "{markdown}");
    let mut in_c = session.command(&["diff", "before.trg", "after.trg"]);
    let plain = in_c.env("LC_ALL", "C").output().expect("it runs").stdout;
    assert!(plain.is_ascii(), "{}", String::from_utf8_lossy(&plain));
}

#[test]
fn profiles_that_cannot_be_compared_are_refused() {
    let session = Session::new();
    std::fs::write(session.path("a.folded"), "main;work 100\n").expect("it can be written");
    let before = compile(&session, "one/prog", &[]);
    count(&session, &[], &before, "before.trg");
    let outcome = session.run(&["diff", "a.folded", "before.trg"]);
    assert_eq!(outcome.status.code(), Some(2), "{outcome:#?}");
    assert!(outcome.error().contains("no metric in common"), "{outcome:#?}");
    let outcome = session.run(&["diff", "before.trg", "before.trg", "--metric", "joules"]);
    assert!(outcome.error().contains("neither profile has the metric \"joules\""), "{outcome:#?}");
    let outcome = session.run(&["diff", "before.trg", "before.trg", "--tree"]);
    assert!(outcome.error().contains("no stacks"), "{outcome:#?}");
}

/// Every line has the costs that the report of each version has of it.
#[test]
fn lines_of_a_function_are_compared() {
    let session = Session::new();
    two_versions(&session, &["--tree"]);
    let read =
        |words: &[&str]| -> Value { serde_json::from_str(&session.output(words)).expect("it is JSON") };
    let lines = read(&["diff", "before.trg", "after.trg", "--lines", "hash", "--json"]);
    let compared = lines["lines"].as_array().expect("lines");
    assert!(compared.iter().any(|line| line["self_cost"]["base"] != line["self_cost"]["head"]), "{lines}");
    for (side, profile) in [("base", "before.trg"), ("head", "after.trg")] {
        let report = read(&["report", profile, "--lines", "hash", "--json"]);
        let mut known = report["lines"].as_array().expect("lines").clone();
        known.retain(|line| line["self_cost"] != 0);
        let cost_of = |line: &Value| {
            let mut rows = compared.iter().filter(|row| row["line"][side] == line["line"]);
            rows.next().map(|row| row["self_cost"][side].clone())
        };
        for line in &known {
            assert_eq!(cost_of(line).as_ref(), Some(&line["self_cost"]), "{side}: {line}");
        }
        let shown = compared.iter().filter(|row| row["self_cost"][side] != 0).count();
        assert_eq!(shown, known.len(), "{side}: {lines}");
    }
    let text = session.output(&["diff", "before.trg", "after.trg", "--lines", "hash"]);
    assert!(text.starts_with("hash") && text.contains("  self cost"), "{text}");
    let largest = session.output(&["diff", "before.trg", "after.trg", "--lines"]);
    assert!(largest.starts_with("intern"), "{largest}");
    std::fs::write(session.path("a.folded"), "main;work 100\n").expect("it can be written");
    let outcome = session.run(&["diff", "a.folded", "a.folded", "--lines", "work"]);
    assert!(outcome.error().contains("neither profile knows the lines of work"), "{outcome:#?}");
}

/// The blocks of a function add up to its self cost in each version.
#[test]
fn blocks_of_a_function_are_compared() {
    let session = Session::new();
    two_versions(&session, &[]);
    let document = difference(&session, &[]);
    for name in ["hash", "intern", "parse"] {
        let blocks = difference(&session, &["--blocks", name]);
        let compared = blocks["blocks"].as_array().expect("blocks");
        assert!(!compared.is_empty(), "{blocks}");
        for side in ["base", "head"] {
            let cost = |block: &Value| block[side]["instructions_executed"].as_i64().unwrap_or(0);
            let sum: i64 = compared.iter().map(cost).sum();
            assert_eq!(
                Some(sum),
                row(&document, name)["self_cost"][side].as_i64(),
                "{name} {side}: {blocks}"
            );
        }
    }
    // Its code is the same at other addresses.
    let intern = difference(&session, &["--blocks", "intern"]);
    for block in intern["blocks"].as_array().expect("blocks") {
        let executions = |side: &str| block[side]["executions"].as_i64();
        assert_eq!(executions("head"), executions("base").map(|base| 2 * base), "{block}");
    }
    let text = session.output(&["diff", "before.trg", "after.trg", "--blocks"]);
    assert!(text.starts_with("intern") && text.contains("1,000 → 2,000"), "{text}");
    std::fs::write(session.path("a.folded"), "main;work 100\n").expect("it can be written");
    let outcome = session.run(&["diff", "a.folded", "a.folded", "--blocks", "work"]);
    assert!(outcome.error().contains("neither profile has basic blocks"), "{outcome:#?}");
}

/// The code of a program: a function that may be changed, one that may be renamed, constants, and many that stay.
const CODE: &str = r#"
    #include <stdio.h>
    #include <stdlib.h>
    #ifdef MOVED
    __attribute__((noinline)) int added(int x) { return x * 77 + getpid_like(x); }
    #endif
    static const double factors[] = {1.5, 2.5, FACTOR};
    __attribute__((noinline)) double scaled(int x) { return x * factors[x % 3]; }
    __attribute__((noinline)) int NAME(int x) {
        int sum = 0;
        for (int i = 0; i < x; i++) sum += i ^ (sum << 3) ^ (x >> 1);
        return sum;
    }
    __attribute__((noinline)) int changed(int x) {
        int sum = 1;
        for (int i = 0; i < x STEPS; i++) sum = sum * 33 + i;
        return sum;
    }
    __attribute__((noinline)) int chosen(int x) {
        switch (x % 7) {
        case 0: return puts("nothing");
        case 1: return changed(x);
        case 2: return NAME(x) + 3;
        case 3: return (int)scaled(x);
        case 4: return abs(x) - 12;
        case 5: return x * 5 + rand();
        default: return 0;
        }
    }
    int main(void) {
        volatile int sum = 0;
        for (int i = 0; i < 200; i++) sum += chosen(i) + changed(i) + NAME(i);
        return sum == 42;
    }
"#;

/// Compiles the code with a build-id, counts it, and returns its path.
fn built(session: &Session, name: &str, options: &[&str]) -> PathBuf {
    let (source, path) = (session.path(&format!("{name}.c")), session.path(name));
    std::fs::write(&source, CODE).expect("it can be written");
    let defaults = ["-DFACTOR=3.5", "-DNAME=mixed", "-DSTEPS=", "-Wl,--build-id", "-O2", "-w"];
    let given = |default: &&&str| {
        let key = default.split('=').next().unwrap_or_default();
        !key.starts_with("-D") || !options.iter().any(|option| option.starts_with(key))
    };
    let made = Command::new("cc")
        .args(defaults.iter().filter(given))
        .args(options)
        .arg(&source)
        .arg("-o")
        .arg(&path)
        .status();
    assert!(made.is_ok_and(|made| made.success()), "the compiler is installed");
    count(session, &["--tree", "--fixed"], &path, &format!("{name}.trg"));
    path
}

fn diff_of(session: &Session, base: &str, head: &str) -> (String, Value) {
    let text = session.output(&["diff", base, head]);
    let json = session.output(&["diff", base, head, "--json"]);
    (text, serde_json::from_str(&json).expect("it is JSON"))
}

#[test]
fn changed_code_is_found_and_code_that_only_moved_is_not() {
    let session = Session::new();
    built(&session, "base", &[]);
    let moved = "-Dgetpid_like(x)=(x)";
    // Everything lies elsewhere: a function more, a fixed place, another alignment of functions.
    for (name, options) in [
        ("moved", &["-DMOVED", moved][..]),
        ("fixed", &["-no-pie", "-fno-pie", "-DMOVED", moved]),
        ("aligned", &["-falign-functions=64"]),
    ] {
        built(&session, name, options);
        let (text, json) = diff_of(&session, "base.trg", &format!("{name}.trg"));
        let changed: Vec<&str> =
            json["code"]["changed"].as_array().expect("names").iter().filter_map(Value::as_str).collect();
        let ours = ["scaled", "mixed", "changed", "chosen", "main"];
        // A program at a fixed place has other instructions where it loads addresses.
        if name != "fixed" {
            assert!(ours.iter().all(|name| !changed.contains(name)), "{name}: {changed:?}\n{text}");
            assert!(text.contains("nothing: the code of "), "a table of jumps is no constant: {text}");
        }
        for same in ["mixed", "changed"] {
            assert_eq!(row(&json, same)["code_changed"], false, "{name}: {same}: {text}");
        }
        assert!(json["code"]["functions"].as_u64().expect("a number") >= 5, "{text}");
    }
    built(&session, "head", &["-DSTEPS=+x/2", "-DMOVED", moved]);
    let (text, json) = diff_of(&session, "base.trg", "head.trg");
    assert_eq!(json["code"]["changed"], serde_json::json!(["changed"]), "{text}");
    assert_eq!(json["verdict"]["cause"]["function"], "changed", "{text}");
    assert_eq!(
        (&row(&json, "changed")["code_changed"], &row(&json, "mixed")["code_changed"]),
        (&true.into(), &false.into())
    );
    let line = text.lines().find(|line| line.starts_with("changed")).expect("a line on the code");
    assert!(line.contains("the code of 1 function of ") && line.contains(", changed first"), "{line}");
}

/// Of a thousand calls, each asks `strlen` for 4,900 bytes more; or each runs a loop 990 steps longer.
#[test]
fn the_changed_function_is_the_cause_of_what_others_do_for_it() {
    let session = Session::new();
    for (name, option) in [("base", "-DSAME"), ("first", "-DFIRST=0"), ("steps", "-DSTEPS=1000")] {
        let source = format!("{}/tests/command_line/programs/asked.c", env!("CARGO_MANIFEST_DIR"));
        let path = session.path(name);
        let options = ["-O1", "-g", "-fno-builtin", "-Wl,--build-id", option, &source, "-o"];
        let made = Command::new("cc").args(options).arg(&path).status();
        assert!(made.is_ok_and(|made| made.success()), "the compiler is installed");
        count(&session, &["--tree", "--fixed"], &path, &format!("{name}.trg"));
    }
    let verdict = |head: &str| {
        let (text, json) = diff_of(&session, "base.trg", head);
        (text, json["verdict"]["cause"].clone(), json)
    };
    let change = |json: &Value| {
        let cost = |side: &str| json["verdict"]["run_cost"][side].as_i64().expect("a cost");
        cost("head") - cost("base")
    };
    let (text, cause, json) = verdict("first.trg");
    assert_eq!(
        (&cause["function"], &cause["reason"]),
        (&"measured".into(), &"cost-per-call".into()),
        "{text}"
    );
    let part = cause["part"].as_i64().expect("a number");
    assert!((part - change(&json)).abs() * 100 < part, "{text}");
    assert!(text.contains(" per call with its libraries, 1,000 calls as before"), "{text}");

    let (text, cause, json) = verdict("steps.trg");
    assert_eq!((&cause["function"], &cause["reason"]), (&"prepare".into(), &"changed-code".into()), "{text}");
    assert!(text.contains("% instructions: the changed code of prepare, mostly in consume\n"), "{text}");
    let row = row(&json, "consume")["self_change"].as_i64();
    // The loop of three instructions or so runs 990,000 times more.
    assert!(row.is_some_and(|change| (1_980_000..=4_950_000).contains(&change)), "{text}");
}

#[test]
fn renamed_functions_and_changed_constants_are_told_apart() {
    let session = Session::new();
    built(&session, "base", &[]);
    built(&session, "renamed", &["-DNAME=blended"]);
    let (text, json) = diff_of(&session, "base.trg", "renamed.trg");
    assert_eq!(json["code"]["changed"], serde_json::json!([]), "{text}");
    assert_eq!(
        json["code"]["renamed"],
        serde_json::json!([{ "base": "mixed", "head": "blended" }]),
        "{text}"
    );
    assert_eq!(row(&json, "blended")["base_name"], "mixed", "{text}");
    assert!(text.contains("mixed is blended"), "{text}");
    built(&session, "constants", &["-DFACTOR=4.5"]);
    let (text, json) = diff_of(&session, "base.trg", "constants.trg");
    assert_eq!(json["code"]["constants_changed"], serde_json::json!(["constants"]), "{text}");
    assert!(text.contains("the constants of constants, and the code of none of "), "{text}");
}

#[test]
fn code_is_compared_only_of_the_builds_that_ran() {
    let session = Session::new();
    built(&session, "base", &[]);
    let head = built(&session, "head", &["-DSTEPS=+1"]);
    std::fs::copy(session.path("base"), session.path("other")).expect("it can be copied");
    std::fs::rename(session.path("other"), &head).expect("it can be replaced");
    let (text, json) = diff_of(&session, "base.trg", "head.trg");
    assert_eq!(json["code"]["functions"], 0, "{text}");
    assert!(text.contains("not known of head: "), "{text}");
    assert_eq!(row(&json, "changed")["code_changed"], Value::Null);
    // One without a build-id.
    built(&session, "none", &["-Wl,--build-id=none", "-DSTEPS=+1"]);
    let (text, _) = diff_of(&session, "base.trg", "none.trg");
    assert!(text.contains("not known of none: it has no build-id"), "{text}");
}

/// A function that only one binary has is a part of its caller in the tree, but not in the table of functions.
#[test]
fn callers_of_functions_of_one_binary_alone_have_their_own_changes() {
    let session = Session::new();
    let code = "__attribute__((noinline)) int NAME(int x) { volatile int s = 0;\n\
                for (int i = 0; i < x; i++) s += i; return s; }\n\
                int main(void) { return NAME(STEPS) == 1; }\n";
    for (name, options) in
        [("old", ["-DNAME=gone", "-DSTEPS=1000"]), ("new", ["-DNAME=added", "-DSTEPS=5000"])]
    {
        let (source, path) = (session.path(&format!("{name}.c")), session.path(name));
        std::fs::write(&source, code).expect("it can be written");
        let mut compiler = Command::new("cc");
        compiler.args(["-O1", "-Wl,--build-id"]).args(options).arg(&source).arg("-o").arg(&path);
        assert!(compiler.status().is_ok_and(|made| made.success()), "the compiler is installed");
        count(&session, &["--tree", "--fixed"], &path, &format!("{name}.trg"));
    }
    let (text, difference) = diff_of(&session, "old.trg", "new.trg");
    let main = row(&difference, "main");
    assert_eq!((&main["calls"]["base"], &main["calls"]["head"]), (&1.into(), &1.into()), "{text}");
    assert_eq!(main["more_calls"], 0, "{text}");
    assert_eq!(main["cost_per_call"], main["self_change"], "{text}");
}

/// A commit that adds a function, and one that renames and changes it: neither binary has what the other one calls.
#[test]
fn a_function_that_one_binary_alone_has_is_named_with_its_costs() {
    let session = Session::new();
    let work = |name: &str, steps: u32| {
        format!(
            "__attribute__((noinline)) static void {name}(void) {{ for (int i = 0; i < {steps}; i++) __asm__ volatile(\"\"); }}\n"
        )
    };
    for (name, functions, calls) in [
        ("none", work("work", 100), "work();"),
        ("added", work("work", 100) + &work("check", 1000), "work(); check();"),
        ("renamed", work("work", 100) + &work("verify", 1500), "work(); verify();"),
    ] {
        let source = format!(
            "{functions}int main(void) {{ for (int n = 0; n < 100; n++) {{ {calls} }} return 0; }}\n"
        );
        std::fs::write(session.path("p.c"), source).expect("it can be written");
        let path = session.path(name);
        let made =
            Command::new("cc").args(["-g", "-O1"]).arg(session.path("p.c")).arg("-o").arg(&path).status();
        assert!(made.is_ok_and(|made| made.success()), "the compiler is installed");
        count(&session, &["--tree", "--fixed"], &path, &format!("{name}.trg"));
    }
    for (base, head, with, also) in [
        ("none", "added", "check", ""),
        ("added", "none", "check", ""),
        ("added", "renamed", "verify", " and 1 more"),
    ] {
        let (text, json) = diff_of(&session, &format!("{base}.trg"), &format!("{head}.trg"));
        let verdict = text.lines().next().expect("a line");
        let cause = &json["verdict"]["cause"];
        assert_eq!((&cause["function"], &cause["with"]), (&"main".into(), &with.into()), "{text}");
        assert!(verdict.ends_with(&format!(" per call with {with}{also}, 1 call as before")), "{text}");
        // The costs of the verdict differ by what it explains.
        let costs = verdict.split(": main, ").nth(1).and_then(|rest| rest.split(" per call").next());
        let costs: Vec<i64> = costs
            .expect("costs")
            .split(" → ")
            .map(|cost| cost.replace(',', "").parse().expect("a whole number"))
            .collect();
        assert_eq!(cause["part"].as_i64(), Some(costs[1] - costs[0]), "{text}");
    }
}

/// Costs of samples beside exact calls had no intervals.
#[test]
fn sampled_costs_with_calls_have_intervals() {
    let session = Session::new();
    for (file, samples) in [("a.trg", 400), ("b.trg", 300)] {
        let mut profile = Profile::new(RecursionRule::Full);
        let time = profile.add_metric(Metric::exact("cpu-clock", Unit::Nanoseconds));
        let count = profile.add_metric(Metric::exact("samples", Unit::Count));
        profile.metrics[time.index()] =
            Metric::sampled("cpu-clock", Unit::Nanoseconds, count, Some(1_000_000));
        let thread = profile.add_single_thread("w");
        for (name, samples) in [("main", 100), ("spin", samples)] {
            let function = Function::named(profile.strings.intern(name));
            let frame = Frame::new(profile.functions.intern(function));
            let costs = [(time, samples * 1_000_000), (count, samples)];
            let node = profile.add_stack(thread, &[frame], None, &costs);
            profile.tree.add_calls(node, 10, 0);
        }
        let mut bytes = Vec::new();
        trg::write(&profile, &mut bytes).expect("a vector takes everything");
        std::fs::write(session.path(file), bytes).expect("it can be written");
    }
    let text = session.output(&["diff", "a.trg", "b.trg"]);
    let heads = text.lines().find(|line| line.contains("more calls")).unwrap_or_default();
    assert!(heads.contains("95 %") && heads.contains("cost/call"), "{text}");
    let spin = text.lines().find(|line| line.ends_with("spin")).unwrap_or_default();
    assert!(spin.contains("−100.000 ms") && spin.contains('[') && spin.contains("] ms"), "{text}");
}

/// The loader reads the path of the program.
#[test]
fn small_changes_of_programs_under_names_of_other_lengths_are_noted() {
    let session = Session::new();
    let short = compile(&session, "one/prog", &[]);
    let long = session.path("one/program-with-a-longer-name");
    std::fs::copy(&short, &long).expect("it can be copied");
    count(&session, &["--tree", "--fixed-addresses"], &short, "before.trg");
    count(&session, &["--tree", "--fixed-addresses"], &long, "after.trg");
    let note = "are not of one length";
    let outcome = session.run(&["diff", "before.trg", "after.trg"]);
    let differs = !outcome.stdout.starts_with("no difference");
    assert_eq!(outcome.stderr.contains(note), differs, "{outcome:#?}");
    let same = session.run(&["diff", "before.trg", "before.trg"]);
    assert!(!same.stderr.contains(note), "{same:#?}");
}

/// The verdict named "0 calls as before", and costs of calls of which nobody knows the number.
#[test]
fn calls_of_samples_in_files_of_callgrind_are_not_known() {
    let session = Session::new();
    for (name, hot) in [("base", 40), ("head", 90)] {
        let folded = session.path(&format!("{name}.folded"));
        std::fs::write(&folded, format!("main;hot {hot}\nmain;cold 60\n"))
            .expect("the folder can be written");
        let callgrind = format!("{name}.callgrind");
        let mut export = session.command(&["export", "--to", "callgrind", "--yes", "-o", &callgrind]);
        assert!(export.arg(folded).status().is_ok_and(|ended| ended.success()), "{name}");
    }
    let text = session.output(&["diff", "base.callgrind", "head.callgrind"]);
    assert!(text.contains("callers were not compared: not both have stacks\n"), "{text}");
    assert!(text.contains("mostly hot") && !text.contains("calls"), "{text}");
    let tree = session.output(&["report", "base.callgrind", "--tree"]);
    assert!(tree.contains("hot") && !tree.contains("% self  calls"), "{tree}");
}
