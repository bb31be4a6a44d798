//! `treering record`: what it finds in programs whose costs are known, and how it ends.

use std::process::Command;

use treering_testing::programs::{
    ALIASING, CRASH, DEEP_STACK, EXITS_WITH, INLINES, JIT, KNOWN_SHARES, MANY_THREADS, PLUGIN, PLUGIN_HOST,
    RECURSION, Recipe, SAME_PATH, Size, THREADS_AND_FORK, WorkloadKind, exec_chain, fixture, installed,
};

use crate::session::{Outcome, Session, program, quoted, treering, words};
use crate::skip;

/// The shares of `known_shares`.
const SHARES: [(&str, f64); 4] =
    [("ten_percent", 0.1), ("twenty_percent", 0.2), ("thirty_percent", 0.3), ("forty_percent", 0.4)];

fn build(recipe: Recipe) -> std::path::PathBuf {
    recipe.build().expect("the compiler is installed")
}

#[test]
fn self_costs_of_known_shares_lie_near_their_intervals() {
    let session = Session::new();
    let flat = session.record(&[], &program(&build(KNOWN_SHARES.recipe()), &[]));
    flat.assert_self_shares(&SHARES);
    assert!(flat.total_share("main") > 0.95, "{:#}", flat.0);
    let halves = (flat.total_share("first_half"), flat.total_share("second_half"));
    assert!((halves.0 - 0.5).abs() < 0.1 && (halves.1 - 0.5).abs() < 0.1, "{halves:?}");
}

#[test]
fn static_and_static_pie_programs_are_read_as_well() {
    for (variant, flag) in [("static", "-static"), ("static-pie", "-static-pie"), ("no-pie", "-no-pie")] {
        let session = Session::new();
        let recipe = KNOWN_SHARES.variant(variant, &[flag]);
        let flat = session.record(&["-F", "2000"], &program(&build(recipe), &["200"]));
        flat.assert_self_shares(&SHARES);
        assert!(flat.total_share("main") > 0.9, "{variant}: {:#}", flat.0);
    }
}

#[test]
fn without_symbols_the_shares_stay_and_the_names_go() {
    let session = Session::new();
    let flat = session.record(&[], &program(&build(KNOWN_SHARES.variant("stripped", &["-s"])), &["200"]));
    assert_eq!(flat.cost("forty_percent").own, 0.0);
    let mut largest: Vec<f64> = flat
        .rows()
        .iter()
        .filter_map(|row| row["self_cost"].as_f64())
        .map(|own| own / flat.run_cost())
        .collect();
    largest.sort_by(f64::total_cmp);
    let largest = largest.last().copied().unwrap_or_default();
    assert!(largest > 0.3, "functions are kept apart or together, but not scattered: {largest}");
}

#[test]
fn samples_have_the_rate_that_was_asked_for() {
    let count = |rate: &str| {
        let session = Session::new();
        session.record(&["-F", rate], &program(&build(KNOWN_SHARES.recipe()), &["200"])).samples()
    };
    let (slow, fast) = (count("100"), count("1000"));
    let ratio = fast as f64 / slow as f64;
    assert!(slow > 5 && (4.0..25.0).contains(&ratio), "{slow} samples at 100 Hz, {fast} at 1000 Hz");
}

/// The mean gave functions that ran while short intervals were in force too much.
#[test]
fn samples_cost_the_interval_that_they_end() {
    let of_mean = |options: &[&str]| {
        let session = Session::new();
        // Costs are not scaled to the processor time of both modes.
        let options = [&["-e", "cpu-clock", "--user-only"], options].concat();
        let flat = session.record(&options, &program(&build(KNOWN_SHARES.recipe()), &["50"]));
        flat.run_cost() / flat.samples() as f64 / 1e6
    };
    let drawn = of_mean(&[]);
    assert!(drawn != 1.0 && (0.5..1.5).contains(&drawn), "{drawn}");
    assert_eq!(of_mean(&["--fixed-intervals"]), 1.0);
}

#[test]
fn threads_and_children_are_distinguished() {
    let session = Session::new();
    let flat = session.record(&[], &program(&build(THREADS_AND_FORK.recipe()), &[]));
    let totals = ["heavy", "light", "in_child"].map(|name| flat.cost(name).total);
    let all: f64 = totals.iter().sum();
    for (total, truth) in totals.iter().zip([0.6, 0.2, 0.2]) {
        assert!((total / all - truth).abs() < 0.08, "{totals:?} of {all}");
    }
    // All the work is in one function, so only measured arcs tell its callers apart.
    let graph = session.json("--callgraph", &[]);
    let arc = |caller: &str| {
        let arcs = graph["arcs"].as_array().into_iter().flatten();
        let between = |arc: &&serde_json::Value| arc["caller"] == caller && arc["callee"] == "shared_work";
        arcs.filter(between).filter_map(|arc| arc["total_cost"].as_f64()).sum::<f64>()
    };
    let ratio = arc("heavy") / arc("light");
    assert!((2.0..4.5).contains(&ratio), "heavy : light = {ratio}, truth 3; {graph:#}");
    let heavy = session.flat(&["--thread", "heavy-thread"]);
    assert!(heavy.cost("heavy").total > 0.0 && heavy.cost("light").total == 0.0, "{:#}", heavy.0);
}

#[test]
fn short_lived_threads_are_all_seen() {
    let session = Session::new();
    let flat = session.record(&["-F", "4000"], &program(&build(MANY_THREADS.recipe()), &["12", "6", "5"]));
    let (worker, not_sampled) = (flat.cost("worker_body"), flat.cost("[not sampled]"));
    let run = flat.run_cost();
    // A loaded machine delays the timers of some threads to their end; the profile says so, and its interval has it.
    assert!(worker.own > 0.9 * (run - not_sampled.own) && not_sampled.own < 0.5 * run, "{:#}", flat.0);
    assert!(worker.high > 0.9 * run, "{:#}", flat.0);
}

#[test]
fn recursive_functions_are_counted_once_in_their_totals() {
    let session = Session::new();
    let flat = session.record(&[], &program(&build(RECURSION.recipe()), &[]));
    flat.assert_self_shares(&[("direct", 0.5), ("even", 0.25), ("odd", 0.25)]);
    assert!((flat.total_share("direct") - 0.5).abs() < 0.1, "{:#}", flat.0);
    assert!((flat.total_share("even") - 0.5).abs() < 0.1, "{:#}", flat.0);
    assert!(flat.total_share("main") <= 1.0, "{:#}", flat.0);
}

#[test]
fn inlined_functions_have_their_own_costs() {
    let session = Session::new();
    let program = program(&build(INLINES.recipe()), &[]);
    let flat = session.record(&[], &program);
    let inner = flat
        .rows()
        .iter()
        .find(|row| row["function"].as_str().is_some_and(|name| name.contains("inner<int>")));
    let inner = inner.and_then(|row| row["function"].as_str()).unwrap_or_else(|| panic!("{:#}", flat.0));
    let apart = function_with(&flat, "shapes::apart");
    flat.assert_self_shares(&[(inner, 0.75), (&apart, 0.25)]);
    let outer = function_with(&flat, "shapes::Box::outer");
    assert!((flat.total_share(&outer) - 0.75).abs() < 0.1, "{:#}", flat.0);

    let without = session.record(&["--no-inlines"], &program);
    let (outer, apart) =
        (function_with(&without, "shapes::Box::outer"), function_with(&without, "shapes::apart"));
    without.assert_self_shares(&[(&outer, 0.75), (&apart, 0.25)]);
}

/// The full name of the function whose name starts so, as demanglers differ in what follows.
fn function_with(flat: &crate::profile::Flat, start: &str) -> String {
    let names = flat.rows().iter().filter_map(|row| row["function"].as_str());
    let mut found = names.filter(|name| name.starts_with(start));
    found.next().unwrap_or_else(|| panic!("no function {start} in {:#}", flat.0)).to_owned()
}

#[test]
fn code_made_at_run_time_has_the_names_it_was_given() {
    if !cfg!(target_arch = "x86_64") {
        return skip("the program that makes code at run time makes x86-64 code");
    }
    for names in ["map", "dump"] {
        let session = Session::new();
        let flat = session.record(&[], &program(&build(JIT.recipe()), &[names]));
        flat.assert_self_shares(&[("jit_two_thirds", 0.667), ("jit_one_third", 0.333)]);
        assert!(flat.total_share("run_jit") > 0.8, "{names}: {:#}", flat.0);
        assert!(flat.self_share("jit_two_thirds") > 0.5, "{names}: {:#}", flat.0);
    }
}

#[test]
fn generated_code_has_its_names_in_any_kind_of_memory() {
    if !cfg!(target_arch = "x86_64") {
        return skip("the program that makes code at run time makes x86-64 code");
    }
    for (names, memory) in [("map", "shared"), ("tabs", "segment"), ("tabs", "removed")] {
        let session = Session::new();
        let jit = build(JIT.recipe());
        let flat = session.record(&[], &program(&jit, &[names, "100", memory]));
        flat.assert_self_shares(&[("jit_two_thirds", 0.667), ("jit_one_third", 0.333)]);
        assert!(flat.self_share("jit_two_thirds") > 0.5, "{memory}: {:#}", flat.0);
        let mut all = words(&["count", "--force", "--"]);
        all.extend(program(&jit, &[names, "1", memory]));
        if memory == "segment" {
            // Such code cannot be counted, which is said.
            let refused = session.run(&all);
            assert!(refused.error().contains("it runs code in System V shared memory"), "{refused:#?}");
            continue;
        }
        session.output(&all);
        let counted = session.flat(&[]);
        let parts = ["jit_two_thirds", "jit_one_third"].map(|name| counted.self_share(name));
        assert!((parts[0] / parts[1] - 2.0).abs() < 0.01, "{memory}: {parts:?}");
    }
}

#[test]
fn a_list_of_generated_functions_that_cannot_be_read_is_named() {
    if !cfg!(target_arch = "x86_64") {
        return skip("the program that makes code at run time makes x86-64 code");
    }
    let session = Session::new();
    let jit = build(JIT.recipe());
    let script = "echo '1000,10,main' > /tmp/perf-$$.map; exec \"$0\" none 100";
    let shell = ["-c", script, jit.to_str().expect("our path is text")];
    session.record(&[], &program(std::path::Path::new("/bin/sh"), &shell));
    let report = session.output(&["report"]);
    assert!(report.contains("no line of it has a start, a size above 0 and a name"), "{report}");
}

#[test]
fn addresses_reused_by_another_function_are_reported() {
    if !cfg!(target_arch = "x86_64") {
        return skip("the program that makes code at run time makes x86-64 code");
    }
    let session = Session::new();
    let flat = session.record(&[], &program(&build(JIT.recipe()), &["again", "100"]));
    assert!(flat.self_share("jit_again") > 0.5, "{:#}", flat.0);
    let report = session.output(&["report"]);
    assert!(
        report
            .contains("several generated functions used one after another (jit_two_thirds, then jit_again)"),
        "{report}"
    );
    let session = Session::new();
    session.record(&[], &program(&build(JIT.recipe()), &["map", "100"]));
    let report = session.output(&["report"]);
    assert!(!report.contains("one after another"), "{report}");
}

#[test]
fn code_made_at_run_time_without_names_counts_as_unresolved() {
    if !cfg!(target_arch = "x86_64") {
        return skip("the program that makes code at run time makes x86-64 code");
    }
    let session = Session::new();
    let flat = session.record(&[], &program(&build(JIT.recipe()), &["none"]));
    let unresolved = flat.loss("unresolved_samples");
    assert!(unresolved as f64 > 0.8 * flat.samples() as f64, "{:#}", flat.0["run"]);
}

#[test]
fn libraries_that_come_and_go_are_read() {
    let session = Session::new();
    let library = build(PLUGIN.recipe());
    let library = library.to_str().expect("target directories are UTF-8");
    let flat = session.record(&[], &program(&build(PLUGIN_HOST.recipe()), &[library]));
    flat.assert_self_shares(&[("plugin_inner", 0.667), ("host_work", 0.333)]);
    assert!((flat.total_share("in_plugin") - 0.667).abs() < 0.1, "{:#}", flat.0);
}

/// The first removes its file, and the second takes the path. Nothing but the open files tells them apart.
#[test]
fn programs_that_follow_each_other_at_a_path_have_their_own_names() {
    let session = Session::new();
    let paths = [build(SAME_PATH.recipe()), build(SAME_PATH.variant("other", &["-DOTHER"]))];
    let paths = paths.each_ref().map(|path| path.to_str().expect("target directories are UTF-8"));
    let script = "cp \"$1\" same; ./same 600 same; cp \"$2\" same; ./same 1200";
    let flat = session.record(&[], &words(&["sh", "-c", script, "sh", paths[0], paths[1]]));
    flat.assert_self_shares(&[("first", 0.333), ("second", 0.667)]);
}

/// The program's own bytes are gone, and those of the other program are not taken for them.
#[test]
fn a_file_that_is_written_to_after_its_program_ran_names_nothing() {
    let session = Session::new();
    let paths = [build(SAME_PATH.recipe()), build(SAME_PATH.variant("other", &["-DOTHER"]))];
    let paths = paths.each_ref().map(|path| path.to_str().expect("target directories are UTF-8"));
    let script = "cp \"$1\" same; ./same 600; cat \"$2\" > same";
    let outcome = session.record_any(&[], &words(&["sh", "-c", script, "sh", paths[0], paths[1]]));
    assert!(outcome.stderr.contains("same was deleted, replaced or written to"), "{outcome:#?}");
    let flat = session.flat(&[]);
    assert_eq!((flat.cost("first").own, flat.cost("second").own), (0.0, 0.0), "{outcome:#?}");
}

#[test]
fn a_script_that_becomes_a_program_is_followed() {
    let session = Session::new();
    let target = build(KNOWN_SHARES.recipe());
    let target = target.to_str().expect("target directories are UTF-8");
    let flat = session.record(&[], &program(&exec_chain(), &[target, "200"]));
    flat.assert_self_shares(&SHARES);
}

#[test]
fn the_exit_status_is_passed_on() {
    let session = Session::new();
    let exits = build(EXITS_WITH.recipe());
    for status in [1, 7, 255] {
        let outcome = session.record_any(&[], &program(&exits, &[&status.to_string(), "30"]));
        assert_eq!(outcome.shell_status(), status, "{outcome:#?}");
        assert!(session.path("treering.trg").exists());
    }
}

#[test]
fn a_death_by_signal_is_passed_on_and_reported() {
    let session = Session::new();
    let outcome = session.record_any(&[], &program(&build(CRASH.recipe()), &[]));
    assert_eq!(outcome.shell_status(), 128 + 11, "{outcome:#?}");
    assert!(session.flat(&[]).self_share("before_the_crash") > 0.9);
    assert!(outcome.stderr.contains("SIGSEGV") || outcome.stderr.contains("signal 11"), "{outcome:#?}");
}

#[test]
fn a_program_that_ends_at_once_is_too_short_to_say() {
    let session = Session::new();
    let outcome = session.record_any(&["-F", "50"], &program(&build(EXITS_WITH.recipe()), &["0"]));
    assert!(outcome.status.success(), "{outcome:#?}");
    assert!(outcome.stderr.contains("too few to say"), "{outcome:#?}");
    let report = session.run(&["report"]);
    assert!((report.stdout.clone() + &report.stderr).contains("too few to say"), "{report:#?}");
}

#[test]
fn the_programs_own_output_stays_clean() {
    let session = Session::new();
    let outcome = session.record_any(&[], &words(&["sh", "-c", "echo to stdout; echo to stderr >&2"]));
    assert_eq!(outcome.stdout, "to stdout\n");
    assert!(outcome.stderr.contains("to stderr\n"), "{outcome:#?}");
    assert!(outcome.stderr.contains("treering.trg"), "the summary names the file: {outcome:#?}");
}

#[test]
fn the_program_reads_our_standard_input() {
    let session = Session::new();
    let input = session.path("input.txt");
    std::fs::write(&input, "three short words\n").expect("the directory can be written");
    let mut command = session.command(&["record", "--", "wc", "-w"]);
    command.stdin(std::fs::File::open(&input).expect("it was just written"));
    let output = command.output().expect("treering runs");
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "3");
}

#[test]
fn the_file_is_written_to_the_chosen_path() {
    let session = Session::new();
    let outcome =
        session.record_any(&["-o", "elsewhere.trg"], &program(&build(EXITS_WITH.recipe()), &["0", "30"]));
    assert!(outcome.status.success() && session.path("elsewhere.trg").exists(), "{outcome:#?}");
    assert!(!session.path("treering.trg").exists());
    assert!(outcome.stderr.contains("elsewhere.trg"), "{outcome:#?}");
}

#[test]
fn the_summary_is_short_and_suggests_the_next_command() {
    let session = Session::new();
    let outcome = session.record_any(&[], &program(&build(KNOWN_SHARES.recipe()), &[]));
    let lines = outcome.stderr.lines().count();
    assert!((6..=25).contains(&lines), "{lines} lines:\n{}", outcome.stderr);
    for part in ["forty_percent", "samples", "CPU", "treering report"] {
        assert!(outcome.stderr.contains(part), "no {part} in\n{}", outcome.stderr);
    }
    assert!(outcome.stdout.is_empty(), "{outcome:#?}");
}

#[test]
fn several_runs_are_compared() {
    let session = Session::new();
    let flat = session.record(&["--runs", "3"], &program(&build(KNOWN_SHARES.recipe()), &["150"]));
    flat.assert_self_shares(&SHARES);
    let outcome = session.record_any(&["--runs", "2"], &program(&build(KNOWN_SHARES.recipe()), &["15"]));
    let times = outcome.stderr.lines().find(|line| line.starts_with("runs ")).expect("times of runs");
    assert!(times.contains("each took ") && times.contains(" of processor time (mean ± standard deviation)"));
    let one = session.record(&[], &program(&build(KNOWN_SHARES.recipe()), &["150"])).samples();
    assert!(flat.samples() > 2 * one, "three runs have {} samples, one has {one}", flat.samples());
}

#[test]
fn a_program_in_step_with_the_timer_does_not_fool_it() {
    let aliasing = build(ALIASING.recipe());
    for phase in ["0", "50"] {
        let session = Session::new();
        let outcome = session.record_any(&["-F", "100"], &program(&aliasing, &["10000", phase, "3"]));
        let truth: f64 = outcome
            .stdout
            .lines()
            .find_map(|line| line.strip_prefix("around_the_tick ")?.parse().ok())
            .unwrap_or_else(|| panic!("{outcome:#?}"));
        let flat = session.flat(&[]);
        let totals = (flat.cost("around_the_tick").total, flat.cost("between_ticks").total);
        let share = totals.0 / (totals.0 + totals.1);
        // Four standard deviations of about 300 samples; fixed intervals give 0 or 0.9 here.
        assert!((share - truth).abs() < 0.1, "phase {phase}: {share:.3}, truth {truth:.3}");
    }
}

#[test]
fn c_plus_plus_rust_and_cpython_stacks_reach_main() {
    for (kind, main) in
        [(WorkloadKind::Stl, "main"), (WorkloadKind::Rust, "main"), (WorkloadKind::Python, "Py_BytesMain")]
    {
        let Some(workload) = kind.prepare(Size::Medium).expect("compilers are installed") else {
            skip(&format!("the workload {} is not installed", kind.name()));
            continue;
        };
        let session = Session::new();
        let mut all = words(&[&workload.program]);
        all.extend(workload.arguments);
        let flat = session.record(&["-F", "2000"], &all);
        let reached = flat.total_share(main);
        // The work of the dynamic loader before `main` is part of the run.
        assert!(reached > 0.93, "{}: {reached:.3} of the cost is below {main}", workload.name);
        let cut = flat.loss("truncated_stacks") as f64 / flat.samples() as f64;
        assert!(cut < 0.02, "{}: {cut:.3} of the stacks are cut short", workload.name);
    }
}

#[test]
fn javascript_functions_have_names_when_node_writes_them() {
    let Some(node) = installed("node") else { return skip("node is not installed") };
    let session = Session::new();
    let script = fixture("workloads/loops.js");
    let script = script.to_str().expect("the workspace's path is UTF-8");
    let flat = session.record(&[], &program(&node, &["--perf-basic-prof", script, "300"]));
    let share = |name: &str| {
        let rows =
            flat.rows().iter().filter(|row| row["function"].as_str().is_some_and(|text| text.contains(name)));
        rows.filter_map(|row| row["self_cost"].as_f64()).sum::<f64>() / flat.run_cost()
    };
    let (large, small) = (share("threeQuarters"), share("oneQuarter"));
    // The rest is spent on starting and compiling, which takes longer on a busy machine.
    assert!(large > 0.25 && small > 0.05 && large > 1.5 * small, "{large:.3}, {small:.3}: {:#}", flat.0);
}

#[test]
fn python_functions_have_names_when_python_writes_them() {
    let versions = ["python3.12", "python3.13", "python3.14", "python3"];
    let with_trampoline = |path: &std::path::PathBuf| {
        let check = "import sys; sys.exit(not hasattr(sys, 'activate_stack_trampoline'))";
        Command::new(path).args(["-c", check]).status().is_ok_and(|status| status.success())
    };
    let Some(python) = versions.iter().filter_map(|name| installed(name)).find(with_trampoline) else {
        return skip("no CPython 3.12 or newer, which can write the names of its functions");
    };
    let session = Session::new();
    let script = fixture("workloads/loops.py");
    let script = script.to_str().expect("the workspace's path is UTF-8");
    let flat = session.record(&[], &program(&python, &["-X", "perf", script, "2"]));
    let named =
        |name: &str| flat.rows().iter().any(|row| row["function"].as_str().is_some_and(|f| f.contains(name)));
    assert!(named("sieve") && named("count_words"), "{:#}", flat.0);
}

#[test]
fn stacks_that_the_kernel_cuts_short_come_with_the_remedy() {
    let session = Session::new();
    let deep = build(DEEP_STACK.variant("frames", &["-fno-omit-frame-pointer", "-DWITH_FRAMES"]));
    let outcome = session.record_any(&["--fp"], &program(&deep, &["depth", "5000"]));
    let flat = session.flat(&[]);
    assert!(flat.loss("truncated_stacks") > 0, "{:#}", flat.0["run"]);
    assert!(outcome.stderr.contains("sudo sysctl kernel.perf_event_max_stack="), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("or leave --fp out"), "{}", outcome.stderr);
}

#[test]
fn costliest_module_without_names_is_reported_with_a_hint() {
    let session = Session::new();
    let whole = build(KNOWN_SHARES.variant("build-id", &["-g", "-Wl,--build-id"]));
    let stripped = session.path("stripped");
    let strip = Command::new("strip").arg("-o").arg(&stripped).arg(&whole).status();
    if !strip.is_ok_and(|status| status.success()) {
        return skip("strip is not installed");
    }
    let outcome = session.record_any(&[], &program(&stripped, &["200"]));
    let told = outcome.stderr.lines().find(|line| line.contains("without names"));
    let told = told.unwrap_or_else(|| panic!("{}", outcome.stderr));
    assert!(told.contains("/stripped without names"), "{told}");
    let id = told.split("debuginfod-find debuginfo ").nth(1).and_then(|rest| rest.split(',').next());
    // A file that a client of debuginfod fetched is used; the link in the binary leads nowhere.
    let fetched = session.path("fetched");
    let folder = fetched.join(id.unwrap_or_else(|| panic!("no build-id in {told}")));
    std::fs::create_dir_all(&folder).expect("it can be made");
    std::fs::copy(&whole, folder.join("debuginfo")).expect("it can be copied");
    let mut all = vec!["record".into(), "--".into()];
    all.extend(program(&stripped, &["200"]));
    let outcome = session.command(&all).env("DEBUGINFOD_CACHE_PATH", &fetched).output().expect("it runs");
    assert!(outcome.status.success(), "{outcome:?}");
    session.flat(&[]).assert_self_shares(&SHARES);
}

#[test]
fn wrong_values_of_environment_variables_are_reported() {
    let session = Session::new();
    let mut command = session.command(&["record", "-q", "--", "true"]);
    command.env("XDG_CACHE_HOME", "relative").env("RUSTUP_HOME", "/no/such/directory");
    let outcome = Outcome::of(command.env("DEBUGINFOD_CACHE_PATH", "/no/cache").output().expect("it runs"));
    assert!(outcome.status.success(), "{outcome:#?}");
    for told in [
        "XDG_CACHE_HOME is relative",
        "RUSTUP_HOME is /no/such/directory",
        "DEBUGINFOD_CACHE_PATH is /no/cache",
    ] {
        assert_eq!(outcome.stderr.matches(told).count(), 1, "{told}: {}", outcome.stderr);
    }
}

/// The file that somebody had put in its place was lost, or the profile, which was said to be kept.
#[test]
fn a_profile_whose_place_was_taken_is_written_elsewhere() {
    let session = Session::new();
    std::fs::create_dir(session.path("folder")).expect("a folder");
    let record = |script: &str| {
        let mut command = session.command(&["record", "-o", "folder/x.trg", "--", "sh", "-c", script]);
        Outcome::of(command.env("TMPDIR", session.path("")).output().expect("treering runs"))
    };
    let replaced = record("rm folder/x.trg; echo letter > folder/x.trg");
    assert!(replaced.error().contains("folder/x.trg was replaced by another file"), "{replaced:#?}");
    assert_eq!(std::fs::read_to_string(session.path("folder/x.trg")).expect("it is there"), "letter\n");
    std::fs::remove_file(session.path("folder/x.trg")).expect("it can be removed");
    let removed = record("rm -r folder");
    for outcome in [replaced, removed] {
        let path = outcome.error().lines().find_map(|line| line.split("treering report ").nth(1));
        let path = path.unwrap_or_else(|| panic!("it does not say where: {outcome:#?}"));
        // The path is quoted for a shell where it needs that.
        let line = format!("{} report {path}", quoted(treering()));
        let shown = Command::new("sh").args(["-c", &line]).output().expect("a shell");
        assert!(shown.status.success(), "{line}: {}", String::from_utf8_lossy(&shown.stderr));
    }
}

/// Of all stacks it was said that neither unwind tables nor the code tell the caller.
#[test]
fn files_that_cannot_be_opened_are_said_to_be_the_reason() {
    let session = Session::new();
    let record = |most: u64| {
        let program = "sh -c 'i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done'";
        let line = format!("ulimit -n {most}; exec {} record -o x.trg -- {program}", quoted(treering()));
        let output = Command::new("sh").args(["-c", &line]).current_dir(session.path("")).output();
        Outcome::of(output.expect("a shell"))
    };
    // How many events there are depends on the processors. With one file less than the fewest, nothing is recorded.
    let recorded = (10..500).map(record).find(|outcome| outcome.status.success());
    let recorded = recorded.expect("it has enough files");
    assert!(recorded.stderr.contains("may have no more files open"), "{recorded:#?}");
}
