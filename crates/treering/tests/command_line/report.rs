//! `treering report`: every view of a real recording.

use std::sync::OnceLock;

use serde_json::Value;
use treering_formats::trg;
use treering_profile::{CallBias, Metric, NodeId, Point, Profile, RecursionRule, StringId, ThreadId, Unit};
use treering_testing::programs::{KNOWN_SHARES, RECURSION, SLEEPER, THREADS_AND_FORK};

use crate::session::{Session, program};

/// One recording of a recursive program, for all tests that only read it.
fn recursion() -> &'static Session {
    static SESSION: OnceLock<Session> = OnceLock::new();
    SESSION.get_or_init(|| {
        let session = Session::new();
        session.record(&[], &program(&RECURSION.build().expect("the compiler is installed"), &[]));
        session
    })
}

#[test]
fn every_view_names_the_functions_and_ends_well() {
    let session = recursion();
    let views: [&[&str]; 6] =
        [&[], &["--flat"], &["--callgraph"], &["--tree"], &["--callers"], &["--lines", "direct"]];
    for view in views {
        let text = session.output(&[&["report"], view].concat());
        assert!(text.contains("direct"), "{view:?}:\n{text}");
        assert!(!text.contains('\u{1b}'), "no colour in a pipe: {view:?}");
    }
}

#[test]
fn every_view_is_also_json() {
    let session = recursion();
    let views: [&[&str]; 5] =
        [&["--flat"], &["--callgraph"], &["--tree"], &["--callers"], &["--lines", "direct"]];
    for view in views {
        let text = session.output(&[&["report", "--json"], view].concat());
        let value: Value =
            serde_json::from_str(&text).unwrap_or_else(|error| panic!("{view:?}: {error}\n{text}"));
        assert!(value["run"]["run_cost"].as_u64().is_some_and(|cost| cost > 0), "{view:?}: {value:#}");
    }
}

#[test]
fn rows_of_the_flat_profile_have_the_documented_keys() {
    let flat = recursion().flat(&[]);
    for row in flat.rows() {
        for key in [
            "function",
            "module",
            "file",
            "line",
            "self_cost",
            "total_cost",
            "calls",
            "self_low",
            "self_high",
        ] {
            assert!(row.get(key).is_some(), "no key {key} in {row:#}");
        }
        let number = |key: &str| row[key].as_f64().unwrap_or(f64::NAN);
        assert!(
            number("self_low") <= number("self_cost") && number("self_cost") <= number("self_high"),
            "{row:#}"
        );
        assert!(number("self_cost") <= number("total_cost"), "{row:#}");
    }
    let sum: f64 = flat.rows().iter().filter_map(|row| row["self_cost"].as_f64()).sum();
    assert_eq!(sum, flat.run_cost(), "self costs add up to the run cost");
}

#[test]
fn the_source_of_a_function_is_shown_with_its_costs() {
    let text = recursion().output(&["report", "--lines", "direct"]);
    assert!(text.contains("BURN(state, STEP)"), "the source is in the profile:\n{text}");
}

/// The hints named both alike, and the names that tell them apart were not found.
#[test]
fn functions_of_equal_names_are_found_by_what_listings_call_them() {
    let session = Session::new();
    let functions = "events: Ir\nfl=a.c\nfn=f\n1 10\nfl=b.c\nfn=f\n1 32\n";
    std::fs::write(session.path("callgrind.out"), functions).expect("the folder can be written to");
    let listing = session.output(&["report", "callgrind.out"]);
    let lines = |name: &str| session.run(&["report", "callgrind.out", "--lines", name]);
    let outcome = lines("f");
    for (name, cost) in [("f (a.c)", 10), ("f (b.c)", 32)] {
        assert!(listing.contains(name), "{listing}");
        assert!(outcome.error().contains(name), "{outcome:#?}");
        let shown: Value =
            serde_json::from_str(&session.output(&["report", "callgrind.out", "--json", "--lines", name]))
                .expect("it is JSON");
        assert_eq!(shown["self_cost"], cost, "{name}");
    }
}

#[test]
fn a_cycle_is_named() {
    let text = recursion().output(&["report", "--callgraph"]);
    assert!(text.contains("<cycle 1>"), "even and odd call each other:\n{text}");
}

#[test]
fn focus_ignore_and_hide_select_stacks() {
    let session = recursion();
    let all = session.flat(&[]);
    let direct = session.flat(&["--focus", "^direct$"]);
    assert_eq!(direct.cost("direct").own, all.cost("direct").own);
    assert_eq!(direct.cost("even").own, 0.0);
    let ignored = session.flat(&["--ignore", "^direct$"]);
    assert_eq!((ignored.cost("direct").total, ignored.cost("even").own), (0.0, all.cost("even").own));
    let hidden = session.flat(&["--hide", "^(even|odd)$"]);
    assert_eq!(hidden.cost("even").total, 0.0);
    let given_to_main = hidden.cost("main").own - all.cost("main").own;
    assert_eq!(given_to_main, all.cost("even").own + all.cost("odd").own, "hidden costs go to the caller");
}

#[test]
fn lists_can_be_sorted_and_shortened() {
    let session = recursion();
    let by_total = session.flat(&["--sort", "total"]);
    let totals: Vec<f64> = by_total.rows().iter().filter_map(|row| row["total_cost"].as_f64()).collect();
    assert!(totals.windows(2).all(|pair| pair[0] >= pair[1]), "{totals:?}");
    let three = session.output(&["report", "--flat", "--top", "3"]);
    assert!(three.lines().count() < session.output(&["report", "--flat"]).lines().count());
}

#[test]
fn units_change_the_numbers_and_not_the_order() {
    let session = recursion();
    for unit in ["percent", "samples", "time"] {
        let text = session.output(&["report", "--tree", "--unit", unit]);
        assert!(text.contains("direct"), "{unit}:\n{text}");
    }
}

#[test]
fn mistakes_are_told_with_what_there_is() {
    let session = recursion();
    let said = |arguments: &[&str]| session.run(&[&["report"], arguments].concat()).error().to_owned();
    assert!(said(&["--lines", "no_such_function"]).contains("no_such_function"));
    assert!(said(&["--focus", "("]).contains("("));
    let metrics = said(&["--metric", "no-such-metric"]);
    assert!(metrics.contains("no-such-metric") && metrics.contains("samples"), "{metrics}");
    assert!(said(&["--thread", "no-such-thread"]).contains("no-such-thread"));
}

#[test]
fn a_profile_reads_the_same_after_the_program_is_gone() {
    let session = Session::new();
    let copy = session.path("copy_of_the_program");
    let original = KNOWN_SHARES.build().expect("the compiler is installed");
    std::fs::copy(original, &copy).expect("it can be written");
    let before = session.record(&[], &program(&copy, &["100"]));
    std::fs::remove_file(&copy).expect("it was just written");
    let after = session.flat(&[]);
    assert_eq!(before.0["functions"], after.0["functions"]);
    assert!(after.cost("forty_percent").own > 0.0);
}

/// Writes `treering.trg` in a session of its own.
fn session_with(profile: &Profile) -> Session {
    let session = Session::new();
    let mut file = Vec::new();
    trg::write(profile, &mut file).expect("a vector takes everything");
    std::fs::write(session.path("treering.trg"), file).expect("it can be written");
    session
}

/// The profile of a program whose calls were timed, with a point of its memory.
fn timed() -> Profile {
    let text = "0 enter main\n 1000 enter work\n 5000 leave\n 5500 enter work\n 9500 leave\n 20000 leave";
    let mut profile = treering_testing::timed_trace_with(RecursionRule::Full, text);
    profile.metadata.call_bias = Some(CallBias { inside_ns: 10.0, outside_ns: 20.0, ..CallBias::default() });
    let resident = profile.add_metric(Metric::level("resident memory", Unit::Bytes));
    let (thread, node, description) = (ThreadId::new(0), NodeId::new(2), StringId::new(0));
    profile.points.push(Point { time_ns: 3000, thread, node, description, values: vec![(resident, 4096)] });
    profile
}

/// A session whose `treering.trg` holds calls that were timed at a cost that is known.
pub(crate) fn biased() -> Session {
    session_with(&timed())
}

#[test]
fn timed_calls_are_corrected_unless_asked_for_raw() {
    let session = session_with(&timed());
    let self_cost = |flat: crate::profile::Flat, name: &str| flat.cost(name).own;
    assert_eq!(self_cost(session.flat(&[]), "work"), 7980.0);
    assert_eq!(self_cost(session.flat(&["--raw"]), "work"), 8000.0);
    assert_eq!(self_cost(session.flat(&["--hide", "main"]), "work"), 7980.0);
    let text = session.output(&["report"]);
    assert!(text.contains("± ") && text.contains("overhead  70 ns"), "{text}");
    assert!(!session.output(&["report", "--raw"]).contains("± "));
    let statistics = session.output(&["report", "--callgraph", "--statistics"]);
    assert!(statistics.contains("greatest") && statistics.contains("3.990 µs"), "{statistics}");
}

#[test]
fn the_bias_is_a_free_parameter() {
    let session = session_with(&timed());
    let self_cost = |bias: &str, name: &str| session.flat(&["--bias", bias]).cost(name).own;
    assert_eq!(
        (self_cost("100,50", "work"), self_cost("100,50", "main")),
        (7800.0, 12_000.0 - 100.0 - 100.0)
    );
    // Of each call that took 4000 ns, 30 were measured as its caller's.
    assert_eq!((self_cost("-30,50", "work"), self_cost("-30,50", "main")), (8060.0, 12_000.0 - 100.0));
    assert!(session.output(&["report", "--bias=0,7"]).contains("7.00 ns a call: 0.00 inside, 7.00 outside"));
    for (wrong, told) in [
        ("5", "two numbers"),
        ("a,5", "\"a\" is not a number"),
        ("5,-1", "must not be negative"),
        ("-6,5", "must not be negative"),
        ("nan,5", "must not be negative"),
    ] {
        let refused = session.run(&["report", "--bias", wrong]);
        assert!(refused.error().contains(told), "{refused:#?}");
        assert_eq!(refused.shell_status(), 2);
    }
    assert!(session.run(&["report", "--raw", "--bias", "1,2"]).error().contains("cannot be used with"));
    let mut stacks = Profile::new(RecursionRule::Full);
    stacks.add_metric(Metric::exact("instructions", Unit::Count));
    let none = session_with(&stacks).run(&["report", "--bias", "1,2"]);
    assert!(none.error().contains("there are none"), "{none:#?}");
}

#[test]
fn points_are_a_view_of_their_own_and_levels_no_metric_of_costs() {
    let session = session_with(&timed());
    let text = session.output(&["report", "--points"]);
    assert!(text.contains("3.000 µs          4,096 B  work"), "{text}");
    let json: Value =
        serde_json::from_str(&session.output(&["report", "--points", "--json"])).expect("it is JSON");
    assert_eq!(json["series"][0]["peak"], 4096);
    let refused = session.run(&["report", "--metric", "resident memory"]);
    assert!(refused.error().contains("it has: time\n"), "{refused:#?}");
    let none = session_with(&treering_testing::trace("0 enter main\n 5 leave main"));
    assert!(none.run(&["report", "--points"]).error().contains("no points"));
}

#[test]
fn where_only_calls_were_counted_they_are_what_is_shown() {
    let session = session_with(&treering_testing::trace(
        "0 enter main\n 0 enter work\n 0 leave\n 0 enter work\n 0 leave\n 0 leave",
    ));
    let text = session.output(&["report"]);
    assert!(text.contains("calls, 3 in all") && text.contains("66.7"), "{text}");
}

#[test]
fn threads_and_processes_are_listed_by_what_they_cost() {
    let session = Session::new();
    let flat = session.record(&[], &program(&THREADS_AND_FORK.build().expect("it compiles"), &["60"]));
    let threads = session.json("--threads", &[]);
    let processes = session.json("--processes", &[]);
    let sum = |list: &Value| {
        list.as_array().expect("a list").iter().filter_map(|of| of["total_cost"].as_f64()).sum()
    };
    let (of_threads, of_processes): (f64, f64) = (sum(&threads["threads"]), sum(&processes["processes"]));
    assert_eq!((of_threads, of_processes), (flat.run_cost(), flat.run_cost()));
    // 3 : 1 : 1, the thread and the main thread in one process.
    assert_eq!(threads["threads"][0]["thread"], "heavy-thread", "{threads:#}");
    let first = processes["processes"][0]["total_cost"].as_f64().expect("a cost") / flat.run_cost();
    assert!((first - 0.8).abs() < 0.15, "{processes:#}");
    assert_eq!(processes["processes"][0]["thread_count"], 2, "{processes:#}");
    assert!(
        session.output(&["report", "--threads"]).contains("heavy-thread ["),
        "names of processes are shown"
    );
    let shortened = session.json("--threads", &["--top", "1"]);
    assert_eq!(shortened["threads"].as_array().map(Vec::len), Some(1));
}

#[test]
fn metrics_are_listed_and_every_report_names_the_others() {
    let session = Session::new();
    let outcome = session.record_any(&["--off-cpu"], &program(&SLEEPER.build().expect("it compiles"), &[]));
    assert!(outcome.stderr.contains("where threads waited"), "{}", outcome.stderr);
    let listing = session.output(&["report", "--metrics"]);
    assert!(listing.contains("off-cpu  (counted or measured)"), "{listing}");
    for view in ["--flat", "--tree", "--callgraph", "--threads"] {
        let text = session.output(&["report", view]);
        assert!(text.contains("also      off-cpu, waits: --metric NAME"), "{text}");
    }
    let document: Value =
        serde_json::from_str(&session.output(&["report", "--metrics", "--json"])).expect("JSON");
    let names: Vec<_> =
        document["metrics"].as_array().expect("a list").iter().map(|of| &of["name"]).collect();
    assert!(names.contains(&&Value::from("waits")), "{names:?}");
    let of_run = session.flat(&[]);
    assert!(of_run.0["run"]["metrics"].to_string().contains("off-cpu"), "{}", of_run.0["run"]);
}

#[test]
fn patterns_stand_for_modules_too() {
    let session = Session::new();
    session.record_any(&["--off-cpu"], &program(&SLEEPER.build().expect("it compiles"), &[]));
    let is_libc = |row: &&Value| row["module"].as_str().is_some_and(|path| path.contains("libc.so"));
    let count = |options: &[&str]| {
        let options = [&["--metric", "off-cpu"], options].concat();
        session.flat(&options).rows().iter().filter(is_libc).count()
    };
    assert!(count(&[]) > 0 && count(&["--focus", r"libc\.so"]) > 0);
    assert_eq!(count(&["--hide", r"libc\.so"]), 0);
    let hidden = session.output(&["report", "--metric", "off-cpu", "--hide", r"libc\.so"]);
    assert!(hidden.contains("stands for every function of /"), "{hidden}");
    // The program is called like its file, but one of its functions is meant.
    let focused = session.output(&["report", "--focus", "work_a_little|sleeper"]);
    assert!(!focused.contains("stands for every function"), "{focused}");
    let refused = session.run(&["report", "--focus", "no_such_thing"]);
    assert!(refused.error().contains("no function or module matches"), "{}", refused.stderr);
}

#[test]
fn the_cost_of_a_run_is_told_to_the_last_digit() {
    let session = Session::new();
    std::fs::write(session.path("a.folded"), "main;work 9007199254740993\n")
        .expect("the folder can be written");
    let outcome = session.run(&["report", "a.folded"]);
    assert!(outcome.stdout.contains("samples, 9,007,199,254,740,993 in all"), "{outcome:#?}");
}

/// The list had a space and its number in brackets.
#[test]
fn threads_without_names_are_listed_by_their_numbers() {
    let session = Session::new();
    std::fs::write(session.path("stacks.folded"), "main;work 3\n").expect("written");
    session.output(&["import", "stacks.folded", "-o", "a.trg"]);
    let outcome = session.run(&["report", "a.trg", "--thread", "none"]);
    assert!(outcome.stderr.contains("hint: there are: 0\n"), "{outcome:#?}");
}
