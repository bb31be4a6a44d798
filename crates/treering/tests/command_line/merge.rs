//! `treering merge`.

use std::process::Command;

use serde_json::Value;
use treering_formats::trg;
use treering_profile::{Frame, Function, Metric, Module, ModuleKind, Profile, RecursionRule, Run, Unit};
use treering_testing::programs::{KNOWN_SHARES, RECURSION};

use crate::session::{Session, program, words};
use crate::skip;

/// Records two programs into `a.trg` and `b.trg`.
fn two_recordings(session: &Session) {
    let shares = program(&KNOWN_SHARES.build().expect("the compiler is installed"), &["100"]);
    let recursion = program(&RECURSION.build().expect("the compiler is installed"), &["20", "20"]);
    for (file, words) in [("a.trg", shares), ("b.trg", recursion)] {
        let outcome = session.record_any(&["-o", file], &words);
        assert!(outcome.status.success(), "{outcome:#?}");
    }
}

#[test]
fn costs_of_all_profiles_add_up() {
    let session = Session::new();
    two_recordings(&session);
    session.output(&["merge", "a.trg", "b.trg", "-o", "c.trg"]);
    let [a, b, c] = ["a.trg", "b.trg", "c.trg"].map(|file| session.flat(&[file]));
    assert_eq!(a.run_cost() + b.run_cost(), c.run_cost());
    assert_eq!(a.samples() + b.samples(), c.samples());
    assert_eq!(c.cost("forty_percent").own, a.cost("forty_percent").own);
    assert_eq!(c.cost("direct").total, b.cost("direct").total);
    assert_eq!(c.cost("main").total, a.cost("main").total + b.cost("main").total);
}

#[test]
fn the_order_does_not_matter() {
    let session = Session::new();
    two_recordings(&session);
    session.output(&["merge", "a.trg", "b.trg", "-o", "ab.trg"]);
    session.output(&["merge", "b.trg", "a.trg", "-o", "ba.trg"]);
    let [ab, ba] = ["ab.trg", "ba.trg"].map(|file| session.flat(&[file]));
    // Rows that are equal in cost and name may come in either order.
    let sorted = |flat: &crate::profile::Flat| {
        let mut rows: Vec<String> = flat.rows().iter().map(ToString::to_string).collect();
        rows.sort();
        rows
    };
    assert_eq!(sorted(&ab), sorted(&ba));
}

/// They stood in the order of the alphabet, so another than the first named was run 1.
#[test]
fn commands_are_named_in_the_order_of_the_runs() {
    let session = Session::new();
    let mut profile = treering_testing::stacks("main;f 10");
    for (file, name) in [("a.trg", "./zebra"), ("b.trg", "./ant"), ("c.trg", "./zebra")] {
        profile.runs = vec![Run { command: vec![name.to_owned()], ..Run::default() }];
        let mut bytes = Vec::new();
        trg::write(&profile, &mut bytes).expect("memory takes all");
        std::fs::write(session.path(file), bytes).expect("the folder can be written to");
    }
    session.output(&["merge", "a.trg", "b.trg", "c.trg", "-o", "all.trg"]);
    let listing = session.output(&["report", "all.trg"]);
    assert!(listing.contains("./zebra | ./ant (3 runs)"), "{listing}");
}

/// The costs of all runs stood under the first, as those of `--run 1`.
#[test]
fn runs_that_were_added_up_are_not_shown_alone() {
    let session = Session::new();
    for (file, stacks) in [("a.folded", "main;f 10\n"), ("b.folded", "main;g 30\n")] {
        std::fs::write(session.path(file), stacks).expect("the folder can be written to");
    }
    session.output(&["merge", "--collapse", "a.folded", "b.folded", "-o", "both.trg"]);
    assert_eq!(session.json("--flat", &["both.trg"])["run"]["run_cost"], 40);
    for run in ["1", "2"] {
        let outcome = session.run(&["report", "both.trg", "--run", run]);
        assert!(outcome.error().contains("runs cannot be told apart"), "{outcome:#?}");
    }
    let listing = session.output(&["report", "both.trg", "--threads"]);
    assert!(listing.contains("added up over all runs"), "{listing}");

    session.output(&["merge", "--collapse", "a.folded", "-o", "one.trg"]);
    session.output(&["report", "one.trg", "--run", "1"]);
}

/// All costs were those of one run and the others had none, so runs seemed to differ by several hundred percent.
#[test]
fn how_runs_that_were_added_up_differ_is_not_known_to_a_difference() {
    let session = Session::new();
    let mut profile = treering_testing::stacks("main;f 1000");
    profile.runs = vec![Run::default()];
    let mut bytes = Vec::new();
    trg::write(&profile, &mut bytes).expect("memory takes all");
    std::fs::write(session.path("a.trg"), bytes).expect("the folder can be written to");
    for (file, options) in
        [("all.trg", &["a.trg"][..]), ("apart.trg", &["a.trg"]), ("sum.trg", &["a.trg", "--collapse"])]
    {
        session.output(&[&["merge", "a.trg", "a.trg", "-o", file], options].concat());
    }
    for (base, head, is_known) in
        [("all.trg", "apart.trg", true), ("sum.trg", "sum.trg", false), ("all.trg", "sum.trg", false)]
    {
        let told = session.output(&["diff", "--json", base, head]);
        let told: Value = serde_json::from_str(&told).expect("it is JSON");
        assert_eq!(
            told["verdict"]["change_low"].is_number(),
            is_known,
            "{base}, {head}: {:#}",
            told["verdict"]
        );
    }
}

#[test]
fn a_file_that_cannot_be_read_leaves_no_result() {
    let session = Session::new();
    two_recordings(&session);
    let outcome = session.run(&["merge", "a.trg", "missing.trg", "-o", "c.trg"]);
    assert!(outcome.error().contains("missing.trg"));
    assert!(!session.path("c.trg").exists());
}

/// Counts `recursion` and records it; nothing where the machine refuses either.
fn counted_and_sampled(session: &Session, options: &[&str]) -> Option<()> {
    let path = RECURSION.build().expect("the compiler is installed");
    let mut all = words(&["count", "-q", "-o", "counted.trg"]);
    all.extend(words(options));
    all.push("--".into());
    all.extend(program(&path, &["20", "20"]));
    let counted = session.run(&all);
    let sampled = session.record_any(&["-o", "sampled.trg"], &program(&path, &["20", "20"]));
    if counted.status.success() && sampled.status.success() {
        return Some(());
    }
    skip("this machine refuses to count or to sample");
    None
}

#[test]
fn counts_and_samples_of_one_program_stand_in_one_row() {
    for options in [&[][..], &["--tree"]] {
        let session = Session::new();
        let Some(()) = counted_and_sampled(&session, options) else { return };
        let outcome = session.run(&["merge", "--join", "counted.trg", "sampled.trg", "-o", "both.trg"]);
        assert!(outcome.status.success() && outcome.stderr.contains("not counted"), "{outcome:#?}");
        let json = |file: &str, metric: &str| -> Value {
            let text = session.output(&["report", file, "--json", "--metric", metric]);
            serde_json::from_str(&text).expect("JSON")
        };
        let functions = |document: &Value| document["functions"].as_array().expect("functions").clone();
        let find = |document: &Value, name: &str| -> Value {
            functions(document).into_iter().find(|one| one["function"] == name).unwrap_or_default()
        };
        let counted = json("counted.trg", "instructions");
        let sampled = json("sampled.trg", "cpu-clock");
        let both = json("both.trg", "cpu-clock");
        assert_eq!(both["run"]["run_cost"], sampled["run"]["run_cost"]);
        assert_eq!(both["run"]["samples"], sampled["run"]["samples"]);
        for name in ["main", "direct"] {
            let (one, of_both) = (find(&counted, name), find(&both, name));
            assert!(one["calls"].as_u64() > Some(0), "{one}");
            assert_eq!(of_both["calls"], one["calls"], "{name}: {of_both}");
            assert_eq!(of_both["exact"]["instructions"]["self_cost"], one["self_cost"], "{name}: {of_both}");
            // A plain count has measured no totals, and claims none.
            assert_eq!(
                of_both["exact"]["instructions"]["total_cost"], one["total_cost"],
                "{name}: {of_both}"
            );
        }
        assert_eq!(find(&both, "direct")["self_high"], find(&sampled, "direct")["self_high"]);
        let exact = json("both.trg", "instructions");
        assert_eq!(exact["run"]["run_cost"], counted["run"]["run_cost"]);
        assert_eq!(find(&exact, "direct")["total_cost"], find(&counted, "direct")["total_cost"]);
        let text = session.output(&["report", "both.trg", "--callgraph"]);
        assert!(text.contains("instructions: counted exactly") && text.contains("calls are exact"), "{text}");
    }
}

#[test]
fn profiles_of_different_programs_and_builds_are_not_joined() {
    let session = Session::new();
    let Some(()) = counted_and_sampled(&session, &[]) else { return };
    let shares = program(&KNOWN_SHARES.build().expect("the compiler is installed"), &["50"]);
    assert!(session.record_any(&["-o", "shares.trg"], &shares).status.success());
    let join = |counted: &str, sampled: &str| {
        session.run(&["merge", "--join", counted, sampled, "-o", "both.trg"]).error().to_owned()
    };
    let error = join("counted.trg", "shares.trg");
    assert!(error.contains("different programs") && error.contains("recursion"), "{error}");
    assert!(join("sampled.trg", "sampled.trg").contains("the first profile has no counts"));
    assert!(join("counted.trg", "counted.trg").contains("the second profile has no samples"));
    let error = session.run(&["merge", "--join", "counted.trg", "-o", "both.trg"]).error().to_owned();
    assert!(error.contains("--join takes two profiles"), "{error}");
    assert!(!session.path("both.trg").exists());

    // The same name, another build.
    let compile = |source: &str| {
        std::fs::write(session.path("built.c"), source).expect("the folder can be written");
        let mut built = Command::new("cc");
        built.args(["-O1", "-g", "-Wl,--build-id=sha1", "-o", "built", "built.c"]);
        built.current_dir(session.path("")).status().is_ok_and(|status| status.success())
    };
    let body = |rounds: u32| {
        format!("int main(void) {{ for (volatile long i = 0; i < {rounds}; i++); return 0; }}\n")
    };
    assert!(compile(&body(30_000_000)), "the compiler is installed");
    assert!(session.record_any(&["-o", "sampled.trg"], &words(&["./built"])).status.success());
    assert!(compile(&body(1000)));
    assert!(session.run(&["count", "-q", "-o", "counted.trg", "--", "./built"]).status.success());
    let error = join("counted.trg", "sampled.trg");
    assert!(error.contains("different builds of built"), "{error}");
}

/// A profile of a program of the build, whose `spin` costs as much as is said.
fn build_of(build_id: &[u8], cost: u64) -> Vec<u8> {
    program_at("/tmp/w", build_id, cost)
}

/// The same of the program with that path.
fn program_at(path: &str, build_id: &[u8], cost: u64) -> Vec<u8> {
    let mut profile = Profile::new(RecursionRule::Full);
    let metric = profile.add_metric(Metric::exact("time", Unit::Nanoseconds));
    let thread = profile.add_single_thread("w");
    let path = profile.strings.intern(path);
    let module =
        Some(profile.modules.intern(Module { path, build_id: build_id.into(), kind: ModuleKind::Elf }));
    let frames: Vec<Frame> = ["main", "spin"]
        .map(|name| {
            let function = Function { module, ..Function::named(profile.strings.intern(name)) };
            Frame::new(profile.functions.intern(function))
        })
        .into();
    profile.add_stack(thread, &frames, None, &[(metric, cost)]);
    let mut file = Vec::new();
    trg::write(&profile, &mut file).expect("a vector takes everything");
    file
}

#[test]
fn two_builds_of_one_program_have_the_same_names_everywhere() {
    let session = Session::new();
    for (file, build, cost) in [("a.trg", 0x1f, 5000), ("b.trg", 0xe2, 3000)] {
        std::fs::write(session.path(file), build_of(&[build; 20], cost)).expect("it can be written");
    }
    session.output(&["merge", "a.trg", "b.trg", "-o", "treering.trg"]);
    let names = ["spin (build 1f1f1f1f)", "spin (build e2e2e2e2)"];
    let flat = session.flat(&[]);
    assert_eq!(names.map(|name| flat.cost(name).own), [5000.0, 3000.0]);
    let text = session.output(&["report"]);
    let folded = session.output(&["export", "treering.trg", "--to", "folded"]);
    for name in names {
        assert!(text.contains(name) && folded.contains(name), "{text}{folded}");
    }
    assert!(!text.contains("#2"), "{text}");
    for format in ["pprof", "callgrind", "speedscope", "firefox"] {
        session.output(&["export", "treering.trg", "--to", format, "-o", "out", "--force"]);
        session.output(&["import", "out", "-o", "back.trg", "--force"]);
        let back = session.flat(&["back.trg"]);
        assert_eq!(names.map(|name| back.cost(name).own), [5000.0, 3000.0], "{format}");
    }
    // One build alone keeps its names.
    assert_eq!(session.flat(&["a.trg"]).cost("spin").own, 5000.0);
}

/// They were `spin` and `spin #2`.
#[test]
fn functions_of_programs_of_one_name_have_their_folders() {
    let session = Session::new();
    for (file, path, cost) in [("a.trg", "/home/old/w", 5000), ("b.trg", "/home/new/w", 3000)] {
        std::fs::write(session.path(file), program_at(path, &[7; 20], cost)).expect("it can be written");
    }
    session.output(&["merge", "a.trg", "b.trg", "-o", "treering.trg"]);
    let text = session.output(&["report", "--flat"]);
    for name in ["spin (in old/w) [w]", "spin (in new/w) [w]"] {
        assert!(text.contains(name), "{text}");
    }
}

/// A file of one function that costs as much as is said in the metric, and was called so often.
fn one_function(session: &Session, file: &str, metric: Metric, (cost, calls): (u64, u64)) {
    let mut profile = Profile::new(RecursionRule::Full);
    let metric = profile.add_metric(metric);
    let thread = profile.add_single_thread("w");
    let spin = Function::named(profile.strings.intern("spin"));
    let frame = Frame::new(profile.functions.intern(spin));
    let node = profile.add_stack(thread, &[frame], None, &[(metric, cost)]);
    if calls > 0 {
        profile.tree.add_calls(node, calls, 0);
    }
    let mut bytes = Vec::new();
    trg::write(&profile, &mut bytes).expect("a vector takes everything");
    std::fs::write(session.path(file), bytes).expect("it can be written");
}

/// The time of all was divided by the calls of some.
#[test]
fn costs_and_calls_of_different_profiles_make_no_average() {
    let session = Session::new();
    let metric = |name: &str| Metric::exact(name, Unit::Nanoseconds);
    one_function(&session, "counted.trg", metric("time"), (400_000, 100));
    one_function(&session, "again.trg", metric("time"), (200_000, 100));
    one_function(&session, "uncounted.trg", metric("time"), (900_000, 0));
    one_function(&session, "other.trg", metric("cpu"), (100_000, 100));
    let all = |files: &[&str], options: &[&str]| {
        let merged = session.run(&[&["merge"][..], files, &["-o", "all.trg"]].concat());
        assert!(merged.status.success(), "{merged:#?}");
        let report = |view: &str| session.output(&[&["report", "all.trg", view][..], options].concat());
        let json: Value = serde_json::from_str(
            &session.output(&[&["report", "all.trg", "--prof", "--json"][..], options].concat()),
        )
        .expect("it is JSON");
        let spin = &json["functions"][0];
        (
            report("--flat"),
            report("--prof"),
            spin["calls"].clone(),
            spin["self_cost_per_call"].clone(),
            merged.stderr,
        )
    };
    let (flat, prof, calls, each, said) = all(&["counted.trg", "again.trg"], &[]);
    assert!(
        flat.contains("self/call") && flat.contains("3.000 µs") && prof.contains("0.0030"),
        "{flat}{prof}"
    );
    assert_eq!((calls, each.as_f64()), (200.into(), Some(3000.0)));
    assert!(!said.contains("warning"), "{said}");
    for (files, options) in [
        (&["counted.trg", "uncounted.trg"][..], &[][..]),
        (&["counted.trg", "other.trg"], &["--metric", "time"]),
        (&["counted.trg", "other.trg"], &["--metric", "cpu"]),
    ] {
        let (flat, prof, calls, each, said) = all(files, options);
        assert!(!flat.contains("self/call") && flat.contains("averages are left out"), "{flat}");
        assert!(calls.as_u64() >= Some(100) && each.is_null(), "{calls} {each} {prof}");
        assert!(said.contains("what a call costs on average is not known"), "{said}");
    }
    // Merged again, it is known no better.
    session.output(&["merge", "counted.trg", "uncounted.trg", "-o", "part.trg"]);
    let (flat, ..) = all(&["part.trg", "again.trg"], &[]);
    assert!(!flat.contains("self/call"), "{flat}");
}

/// All costs of the counted run were 0 ns, with intervals of confidence around them.
#[test]
fn a_run_of_a_mixed_merge_is_shown_in_what_it_was_measured_in() {
    let session = Session::new();
    one_function(&session, "time.trg", Metric::exact("time", Unit::Nanoseconds), (900, 0));
    one_function(&session, "count.trg", Metric::exact("instructions", Unit::Count), (70, 0));
    session.output(&["merge", "time.trg", "count.trg", "-o", "both.trg"]);
    let own = |run: &str| session.flat(&["--run", run, "both.trg"]).cost("spin").own;
    let mut costs = [own("1"), own("2")];
    costs.sort_by(f64::total_cmp);
    assert_eq!(costs, [70.0, 900.0]);
    let asked =
        ["1", "2"].map(|run| session.output(&["report", "--run", run, "--metric", "time", "both.trg"]));
    let notes = asked.iter().filter(|text| text.contains("time has no costs in run ")).count();
    assert_eq!(notes, 1, "{asked:?}");
}

/// The name alone led to the first one, silently.
#[test]
fn metrics_of_one_name_are_chosen_with_their_units() {
    let session = Session::new();
    one_function(&session, "bytes.trg", Metric::exact("size", Unit::Bytes), (3 << 20, 0));
    one_function(&session, "count.trg", Metric::exact("size", Unit::Count), (777, 0));
    session.output(&["merge", "bytes.trg", "count.trg", "-o", "both.trg"]);
    for (metric, cost) in [("size:bytes", 3 << 20), ("size:count", 777)] {
        let text = session.output(&["report", "both.trg", "--json", "--metric", metric]);
        let json: Value = serde_json::from_str(&text).expect("it is JSON");
        assert_eq!(json["run"]["run_cost"], cost, "{metric}");
        session.output(&["export", "both.trg", "--to", "folded", "--metric", metric, "-o", "out", "--force"]);
        let folded = std::fs::read_to_string(session.path("out")).expect("it was written");
        assert!(folded.trim_end().ends_with(&cost.to_string()), "{folded}");
    }
    for command in [&["report", "both.trg"][..], &["export", "both.trg", "--to", "folded"]] {
        let outcome = session.run(&[command, &["--metric", "size"]].concat());
        assert!(outcome.error().contains("2 metrics are called \"size\""), "{outcome:#?}");
        assert!(outcome.stderr.contains("--metric size:bytes or --metric size:count"), "{outcome:#?}");
    }
    assert!(session.output(&["report", "both.trg", "--metrics"]).contains("size:count"));
    session.output(&["merge", "count.trg", "count.trg", "-o", "twice.trg"]);
    for (base, options) in
        [("both.trg", &["--metric", "size:count"][..]), ("twice.trg", &["--metric", "size"])]
    {
        let text = session.output(&[&["diff", base, "both.trg", "--json"], options].concat());
        let json: Value = serde_json::from_str(&text).expect("it is JSON");
        assert_eq!(json["verdict"]["run_cost"]["head"], 777, "{base}: {json:#}");
    }
    let outcome = session.run(&["diff", "both.trg", "both.trg", "--metric", "size"]);
    assert!(outcome.error().contains("several metrics: size:bytes, size:count"), "{outcome:#?}");
}

#[test]
fn files_that_are_named_twice_are_told() {
    let session = Session::new();
    for (file, stacks) in [("a.folded", "main;f 10\n"), ("b.folded", "main;f 10\n")] {
        std::fs::write(session.path(file), stacks).expect("the folder can be written to");
    }
    let twice = session.run(&["merge", "a.folded", "b.folded", "./a.folded", "-o", "all.trg"]);
    let warning = "warning: ./a.folded is named more than once: its costs are added each time\n";
    assert!(twice.stderr.starts_with(warning), "{twice:#?}");
    let equal = session.run(&["merge", "a.folded", "b.folded", "-o", "all.trg"]);
    assert!(!equal.stderr.contains("warning"), "{equal:#?}");
}
