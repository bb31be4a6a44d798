//! When costs arose: `report --from`, `--to`, `--phase` and `--timeline`, and the times in files of other tools.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;
use treering_testing::programs::{KNOWN_SHARES, installed};

use crate::runtime::Program;
use crate::session::{Session, program, words};
use crate::skip;

fn phases(session: &Session) -> PathBuf {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/command_line/programs/phases.c");
    let path = session.path("phases");
    let made = Command::new("cc").args(["-g", "-O1", source, "-o"]).arg(&path).status();
    assert!(made.is_ok_and(|made| made.success()), "the compiler is installed");
    path
}

/// Records a run of `programs/courses.c`, and gives its course.
fn course(session: &Session, which: &str) -> Value {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/command_line/programs/courses.c");
    let path = session.path("courses");
    let made = Command::new("cc").args(["-g", "-O1", source, "-lpthread", "-o"]).arg(&path).status();
    assert!(made.is_ok_and(|made| made.success()), "the compiler is installed");
    session.record(&["--off-cpu"], &program(&path, &[which]));
    report(session, "treering.trg", &["--timeline", "--metric", "cpu-clock"])
}

/// Options that choose some cells of a course.
fn cells(course: &Value, first: u64, count: u64) -> [String; 4] {
    let all = course["cells"].as_u64().expect("a number") as f64;
    let share = |cell: u64| format!("{:.4}%", 100.0 * cell as f64 / all);
    ["--from".to_owned(), share(first), "--to".to_owned(), share(first + count)]
}

fn report(session: &Session, file: &str, options: &[&str]) -> Value {
    let text = session.output(&[&["report", file, "--json"], options].concat());
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("not JSON: {error}\n{text}"))
}

fn run_cost(report: &Value) -> u64 {
    report["run"]["run_cost"].as_u64().expect("a report has a run cost")
}

fn length_ns(session: &Session, file: &str) -> u64 {
    report(session, file, &["--timeline"])["length_ns"].as_u64().expect("it has a length")
}

#[test]
fn parts_of_a_run_add_up_to_the_whole() {
    let session = Session::new();
    session.record(&[], &program(&phases(&session), &["60"]));
    let file = "treering.trg";
    for metric in ["samples", "cpu-clock"] {
        let metrics = session.output(&["report", file, "--metrics"]);
        if !metrics.contains(metric) {
            eprintln!("skipped: this machine samples no {metric}");
            continue;
        }
        let of =
            |options: &[&str]| run_cost(&report(&session, file, &[options, &["--metric", metric]].concat()));
        let whole = of(&[]);
        for edge in ["30%", "50%", "71.3%", "0.1s", "120ms"] {
            assert_eq!(of(&["--to", edge]) + of(&["--from", edge]), whole, "{metric} at {edge}");
        }
        let thirds = [
            ["--from", "0", "--to", "33%"],
            ["--from", "33%", "--to", "66%"],
            ["--from", "66%", "--to", "100%"],
        ];
        assert_eq!(thirds.iter().map(|third| of(third)).sum::<u64>(), whole);
    }
}

/// A busy recorder learns late that the program has ended, which was time of the run.
#[test]
fn a_run_ends_with_its_last_thread() {
    let session = Session::new();
    // More samples than a recorder without optimization reads in the same time.
    session.record(&["-F", "8000"], &program(&phases(&session), &["100"]));
    let bytes = std::fs::read(session.path("treering.trg")).expect("it was recorded");
    let (_, profile, _) = treering_formats::read_any(&bytes).expect("it can be read");
    let timeline = profile.timeline.as_ref().expect("time is kept");
    let ends: Vec<u64> = timeline.lives.iter().filter_map(|life| life.end_ns).collect();
    if ends.len() < timeline.lives.len() {
        return skip("the record of a thread's end was lost");
    }
    assert_eq!(ends.into_iter().max(), Some(timeline.length_ns), "{:#?}", profile.metadata);
    assert_eq!(profile.runs[0].duration_ns, timeline.length_ns);
}

#[test]
fn a_part_shows_the_phase_that_ran_then() {
    let session = Session::new();
    session.record(&[], &program(&phases(&session), &["200"]));
    let course = report(&session, "treering.trg", &["--timeline"]);
    let cells = course["cells"].as_u64().expect("it has cells");
    let hottest: Vec<_> = course["hottest"].as_array().expect("a list").iter().collect();
    // How long each takes by the clock depends on what else the machine does.
    let longest_of = |phase: &str| {
        let rows = hottest.iter().filter(|row| row["function"] == phase);
        let longest = rows.max_by_key(|row| row["cells"].as_u64()).expect("it is the hottest somewhere");
        longest["first_cell"].as_u64().expect("a number")
    };
    let begins = ["load", "solve", "store"].map(longest_of);
    assert!(begins.is_sorted(), "{course:#}");
    let middle =
        hottest.iter().filter(|row| row["function"] == "solve").max_by_key(|row| row["cells"].as_u64());
    let middle = middle.expect("it is there");
    let number = |key: &str| middle[key].as_u64().expect("a number") as f64;
    let (first, length) = (number("first_cell"), number("cells"));
    let share = |cell: f64| format!("{:.3}%", 100.0 * cell / cells as f64);
    // The middle half of the middle phase.
    let (from, to) = (share(first + length * 0.25), share(first + length * 0.75));
    let part = session.flat(&["--from", &from, "--to", &to]);
    // Interrupts of a busy machine are below it.
    assert!(part.cost("solve").total > 0.9 * part.run_cost(), "{:#}", part.0);
    let text = session.output(&["report", "--from", &from, "--to", &to]);
    assert!(text.contains("shown: ") && text.contains(" of a run of "), "{text}");
    for view in ["--callgraph", "--tree", "--callers", "--threads", "--processes", "--prof"] {
        session.output(&["report", view, "--from", &from, "--to", &to]);
    }
    let lines = session.output(&["report", "--lines", "solve", "--from", &from, "--to", &to]);
    assert!(lines.contains("PHASE(solve)"), "{lines}");
}

#[test]
fn a_program_that_a_process_began_to_run_is_a_phase() {
    let session = Session::new();
    let path = phases(&session);
    let shell = format!("{0} 40; exec {0} 40", crate::session::quoted(path));
    session.record(&[], &words(&["sh", "-c", &shell]));
    let phase = session.flat(&["--phase", "phases"]);
    assert!(phase.cost("load").own > 0.0 && phase.cost("store").own > 0.0, "{:#}", phase.0);
    let outcome = session.run(&["report", "--phase", "nothing"]);
    assert!(outcome.stderr.contains("the run has no mark called \"nothing\""), "{outcome:#?}");
    assert!(outcome.stderr.contains("hint: there are: "), "{outcome:#?}");
}

#[test]
fn marks_of_a_program_divide_its_run_into_phases() {
    let session = Session::new();
    let Some(path) = Program::Marked.compile(&session) else { return };
    session.record(&[], &program(&path, &["20"]));
    let file = "treering.trg";
    let phases =
        ["load", "parse", "indexing", "sort", "merge", "simulate", "reduce", "encode", "compress", "store"];
    let course = report(&session, file, &["--timeline"]);
    let marks = course["marks"].as_array().expect("a list").iter();
    let named: Vec<&str> =
        marks.filter(|mark| mark["kind"] == "mark").filter_map(|mark| mark["name"].as_str()).collect();
    assert_eq!(named, [&["of_child"], &phases[..]].concat());
    let mut sum = 0;
    for phase in phases.into_iter().chain(["of_child"]) {
        let part = report(&session, file, &["--phase", phase, "--metric", "samples"]);
        let rows = part["functions"].as_array().expect("a list");
        let most = rows.iter().max_by_key(|row| row["self_cost"].as_u64()).expect("something ran");
        assert_eq!(most["function"], phase, "{part:#}");
        sum += run_cost(&part);
    }
    // Phases follow each other: what came before the first mark is left, and a slot at the edge of two may be in both.
    let whole = run_cost(&report(&session, file, &["--metric", "samples"]));
    assert!(sum * 10 > whole * 9 && sum <= whole + 24, "{sum} of {whole}");
    let text = session.output(&["report", file, "--timeline"]);
    let line = text.lines().find(|line| line.starts_with("marks")).unwrap_or_else(|| panic!("{text}"));
    // How long a phase lasts by the clock depends on what else runs.
    let named = phases.iter().filter(|phase| line.contains(&phase[..3])).count();
    assert!(named >= 5 && line.chars().count() <= 80, "{text}");
    session.record(&["--no-time"], &program(&path, &["1"]));
    assert!(session.run(&["report", "--phase", "load"]).error().contains("does not know when"));
}

/// The error said that the profile has no times, where the chosen thread did nothing in the part.
#[test]
fn an_empty_part_has_no_timeline_for_want_of_cost() {
    let session = Session::new();
    let trace = r#"{"traceEvents":[
        {"ph":"X","pid":1,"tid":1,"ts":0,"dur":90000,"name":"f"},
        {"ph":"X","pid":1,"tid":2,"ts":0,"dur":10000,"name":"g"}]}"#;
    std::fs::write(session.path("trace.json"), trace).expect("the folder can be written to");
    session.output(&["report", "trace.json", "--timeline", "--thread", "2"]);
    let outcome = session.run(&["report", "trace.json", "--timeline", "--thread", "2", "--from", "50ms"]);
    assert!(outcome.error().contains("no time is in the part to show"), "{outcome:#?}");
}

#[test]
fn parts_that_cannot_be_are_refused_with_the_nearest() {
    let session = Session::new();
    session.record(&[], &words(&["sh", "-c", "sleep 0.3; i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done"]));
    let refused = |options: &[&str], said: &str| {
        let outcome = session.run(&[&["report"], options].concat());
        assert!(!outcome.status.success() && outcome.stderr.contains(said), "{options:?} {outcome:#?}");
    };
    refused(&["--from", "500s"], "error: treering.trg: the part is outside of the run, which took ");
    refused(&["--from", "60%", "--to", "50%"], "the part is empty");
    refused(&["--from", "100ms", "--to", "200ms"], "nothing was measured from 0.1s to 0.2s");
    refused(&["--from", "100ms", "--to", "200ms"], "hint: the nearest time with a sample: --from ");
    refused(&["--from", "1us", "--to", "2us"], "times are known to 0.001s only");
    refused(&["--from", "soon"], "not a time such as 2.1s, 300ms or 30%");
    refused(&["--from", "1s", "--phase", "sh"], "cannot be used with");
    session.record(&["--no-time"], &words(&["sh", "-c", "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done"]));
    refused(&["--from", "0"], "error: treering.trg: the profile does not know when its costs arose");
    refused(&["--timeline"], "error: treering.trg: the profile does not know when its costs arose");
    let export = session.run(&["export", "--to", "folded", "--from", "1s", "treering.trg"]);
    assert!(export.error().contains("treering.trg: the profile does not know when"), "{export:#?}");
    refused(&["--metric", "latency"], "latency needs times of samples");
    refused(&["--metric", "latency"], "unless --no-time is given");
    session.record(&["--runs", "2"], &words(&["true"]));
    refused(&["--metric", "latency"], "record one run, without --runs");
}

#[test]
fn the_course_of_a_run_fits_a_terminal() {
    let session = Session::new();
    session.record(&["--off-cpu"], &program(&phases(&session), &["60"]));
    for (locale, blocks) in [("C.UTF-8", "▁▂▃▄▅▆▇█"), ("C", ".:-=+*#%")] {
        let output =
            session.command(&["report", "--timeline"]).env("LC_ALL", locale).output().expect("it runs");
        let text = String::from_utf8(output.stdout).expect("it is UTF-8");
        let rows: Vec<&str> =
            text.lines().filter(|line| line.starts_with("all ") || line.starts_with("phases ")).collect();
        assert_eq!(rows.len(), 2, "{text}");
        // How high they are depends on what else runs.
        assert!(rows.iter().all(|row| row[12..].contains(|sign| blocks.contains(sign))), "{text}");
        assert!(rows.iter().all(|row| row.chars().count() <= 80), "{text}");
        assert_eq!(locale == "C", rows.iter().all(|row| row.is_ascii()), "{text}");
        assert!(text.lines().any(|line| line.starts_with("hottest") && line.contains("solve")), "{text}");
    }
}

#[test]
fn stalls_are_seen_in_the_course_and_are_what_their_parts_cost() {
    let session = Session::new();
    let course = course(&session, "stall");
    let runs: Vec<(u64, u64)> = course["hottest"]
        .as_array()
        .expect("a list")
        .iter()
        .filter(|run| run["function"] == "write_pages")
        .filter_map(|run| Some((run["first_cell"].as_u64()?, run["cells"].as_u64()?)))
        .collect();
    // Eight, of which a busy machine may stretch some, or hide one.
    assert!((6..=16).contains(&runs.len()), "{course:#}");
    for (first, count) in runs {
        let part = session.flat(&cells(&course, first, count).each_ref().map(|option| &**option));
        assert!(part.cost("write_pages").own > 0.4 * part.run_cost(), "cell {first}: {:#}", part.0);
    }
    let whole = session.flat(&[]);
    assert!(whole.cost("write_pages").own < 0.5 * whole.run_cost(), "{:#}", whole.0);
}

#[test]
fn a_convoy_is_seen_with_what_ran_under_the_lock() {
    let session = Session::new();
    let course = course(&session, "convoy");
    let threads = course["threads"].as_array().expect("a list");
    let count = course["cells"].as_u64().expect("a number");
    let locked = |cell: u64| -> u64 {
        threads.iter().filter_map(|thread| thread["lock_wait_ns"][cell as usize].as_u64()).sum()
    };
    if (0..count).all(|cell| locked(cell) == 0) {
        return skip("the kernel gives no stacks at switches to this user");
    }
    let cell_ns = course["length_ns"].as_u64().expect("a number") / count;
    // More than one thread at a time waited for the lock.
    let in_convoy: Vec<u64> = (0..count).filter(|&cell| locked(cell) > cell_ns * 3 / 2).collect();
    let (first, last) = (in_convoy[0], in_convoy[in_convoy.len() - 1]);
    assert!(in_convoy.len() as u64 * 2 > last - first, "it is one part: {in_convoy:?}");
    let part = cells(&course, first, last + 1 - first);
    let part = part.each_ref().map(|option| &**option);
    let held = session.flat(&[&part[..], &["--metric", "cpu-clock"]].concat());
    assert!(held.cost("rehash").own > 0.6 * held.run_cost(), "{:#}", held.0);
    let waited = session.flat(&[&part[..], &["--metric", "off-cpu"]].concat());
    // The main thread waits for the workers all the time.
    assert!(waited.cost("update_table").total > 0.6 * waited.cost("worker").total, "{:#}", waited.0);
    let before = cells(&course, 0, first.max(2) - 1);
    let before =
        session.flat(&[&before.each_ref().map(|option| &**option)[..], &["--metric", "cpu-clock"]].concat());
    assert!(before.cost("rehash").own < 0.1 * before.run_cost(), "{:#}", before.0);
}

#[test]
fn a_straggler_runs_alone_at_the_end_and_has_most_of_the_latency() {
    let session = Session::new();
    let course = course(&session, "pool");
    let count = course["cells"].as_u64().expect("a number");
    let late = |thread: &Value| -> u64 {
        (count * 3 / 4..count).filter_map(|cell| thread["costs"][cell as usize].as_u64()).sum()
    };
    let threads = course["threads"].as_array().expect("a list");
    let mut costs: Vec<u64> = threads.iter().map(late).collect();
    costs.sort_unstable();
    let most = costs.pop().expect("threads ran");
    assert!(costs.iter().sum::<u64>() * 10 < most, "{course:#}");
    let end = session.flat(&["--from", "75%", "--metric", "cpu-clock"]);
    assert!(end.cost("long_task").own > 0.8 * end.run_cost(), "{:#}", end.0);
    let share = |metric: &str| {
        let flat = session.flat(&["--metric", metric]);
        flat.cost("long_task").own / flat.run_cost()
    };
    // Half of the processor time, while which nobody else ran. On a loaded machine hardly anything runs in parallel, and
    // both shares are the same but for chance.
    let (processor, latency) = (share("cpu-clock"), share("latency"));
    assert!(latency >= 0.95 * processor && (0.3..0.7).contains(&processor), "{latency} {processor}");
}

/// `perf record` of a program and the times of its samples in nanoseconds.
fn perf_times(session: &Session) -> Result<Vec<u64>, String> {
    let perf = installed("perf").ok_or("perf is not installed")?;
    let run = |arguments: &[&str]| {
        let output = Command::new(&perf).args(arguments).current_dir(session.path("")).output();
        let output = output.map_err(|error| error.to_string())?;
        let failed = || format!("perf does not work here: {}", String::from_utf8_lossy(&output.stderr));
        output
            .status
            .success()
            .then(|| String::from_utf8_lossy(&output.stdout).into_owned())
            .ok_or_else(failed)
    };
    let path = phases(session);
    run(&[
        "record",
        "-q",
        "-e",
        "cpu-clock",
        "-F",
        "997",
        "-g",
        "-o",
        "perf.data",
        &path.to_string_lossy(),
        "60",
    ])?;
    let script = run(&["script", "--ns", "-i", "perf.data"])?;
    std::fs::write(session.path("perf.txt"), &script).map_err(|error| error.to_string())?;
    let times = run(&["script", "--ns", "-F", "time", "-i", "perf.data"])?;
    let time = |line: &str| {
        let (seconds, decimals) = line.trim().trim_end_matches(':').split_once('.')?;
        Some(seconds.parse::<u64>().ok()? * 1_000_000_000 + decimals.parse::<u64>().ok()?)
    };
    let mut times: Vec<u64> = times.lines().filter_map(time).collect();
    times.sort_unstable();
    if times.is_empty() { Err("perf script prints no times".to_owned()) } else { Ok(times) }
}

#[test]
fn samples_of_perf_are_in_the_parts_that_their_times_say() {
    let session = Session::new();
    let times = match perf_times(&session) {
        Ok(times) => times,
        Err(reason) => return skip(&reason),
    };
    let start = times[0];
    for file in ["perf.data", "perf.txt"] {
        let slot = report(&session, file, &["--timeline"])["slot_ns"].as_u64().expect("it has slots");
        assert_eq!(slot, 1_000_000);
        let length = length_ns(&session, file);
        for (from, to) in [(0, 50), (50, 100), (30, 90), (90, 10_000)] {
            let (from_ns, to_ns) = (from * 1_000_000, to * 1_000_000);
            let expected =
                times.iter().filter(|&&time| (from_ns..to_ns).contains(&(time - start))).count() as u64;
            if from_ns >= length || expected == 0 {
                continue;
            }
            let (from, to) = (format!("{from}ms"), format!("{to}ms"));
            let part = report(&session, file, &["--metric", "samples", "--from", &from, "--to", &to]);
            assert_eq!(run_cost(&part), expected, "{file} from {from} to {to}");
        }
    }
}

#[test]
fn times_go_to_the_firefox_profiler_and_back() {
    let session = Session::new();
    session.record(&[], &program(&phases(&session), &["60"]));
    session.output(&["export", "--to", "firefox", "--metric", "samples", "-o", "there.json"]);
    for edge in ["50ms", "100ms"] {
        for option in ["--from", "--to"] {
            let here = report(&session, "treering.trg", &["--metric", "samples", option, edge]);
            let there = report(&session, "there.json", &["--metric", "samples", option, edge]);
            assert_eq!(run_cost(&here), run_cost(&there), "{option} {edge}");
        }
    }
}

#[test]
fn times_go_to_trace_events_with_the_costs_of_all_functions() {
    let session = Session::new();
    session.record(&[], &program(&phases(&session), &["60"]));
    let exported = session.run(&["export", "--to", "trace-event", "-o", "there.json"]);
    assert!(exported.status.success(), "{exported:#?}");
    let costs = |file: &str| {
        let report = report(&session, file, &["--min", "0"]);
        let mut costs = std::collections::BTreeMap::new();
        for row in report["functions"].as_array().expect("a list") {
            let name = row["function"].as_str().expect("a name").to_owned();
            *costs.entry(name).or_insert(0) += row["self_cost"].as_u64().expect("a cost");
        }
        costs.retain(|_, cost| *cost > 0);
        costs
    };
    assert_eq!(costs("there.json"), costs("treering.trg"));
    // Parts were earlier by the time of the first sample. Costs may lie a slot before theirs, where a thread ran through,
    // and behind theirs as far as the export says.
    let late = exported.stderr.split_once("up to ").and_then(|(_, rest)| rest.split_once(" ms later"));
    let late_ns = late.map_or(0.0, |(ms, _)| ms.parse::<f64>().expect("a number") * 1e6) as u64;
    let whole = run_cost(&report(&session, "treering.trg", &[]));
    for edge in ["50ms", "100ms"] {
        let of = |file: &str, option: &str| run_cost(&report(&session, file, &[option, edge]));
        let (here, there) = (of("treering.trg", "--to"), of("there.json", "--to"));
        assert_eq!(there + of("there.json", "--from"), whole);
        let slot_ns = 1_000_000;
        assert!(
            there <= here + slot_ns && here <= there + late_ns + 2 * slot_ns,
            "{edge}: {here} {there} {late_ns}"
        );
    }
    let outcome = session.run(&["export", "--to", "trace-event", "--metric", "samples", "-o", "no.json"]);
    assert!(outcome.error().contains("trace events hold times only"), "{outcome:#?}");
    assert!(!session.path("no.json").exists());
}

/// `diff` and `view` showed whole runs only.
#[test]
fn parts_of_two_runs_are_compared() {
    let session = Session::new();
    for name in ["a.trg", "b.trg"] {
        session.record(&[], &program(&phases(&session), &["60"]));
        std::fs::rename(session.path("treering.trg"), session.path(name)).expect("it was recorded");
    }
    let half = ["--metric", "samples", "--to", "50%"];
    let text = session.output(&[&["diff", "a.trg", "b.trg", "--json"][..], &half].concat());
    let difference: Value = serde_json::from_str(&text).expect("it is JSON");
    for (file, side) in [("a.trg", "base"), ("b.trg", "head")] {
        let shown = run_cost(&report(&session, file, &half));
        assert_eq!(difference["verdict"]["run_cost"][side], shown, "{side}: {text}");
    }
    let outcome = session.run(&["diff", "a.trg", "b.trg", "--from", "1h"]);
    assert!(outcome.error().contains("a.trg: the part is outside of the run"), "{outcome:#?}");
    assert!(outcome.stderr.contains("the nearest time with a sample: --from"), "{outcome:#?}");
    assert_eq!(outcome.shell_status(), 2);
    let outcome = session.run(&["view", "a.trg", "--from", "50%", "--no-open", "-o", "page.html"]);
    assert!(outcome.status.success() && outcome.stderr.contains("note: a.trg: shown: "), "{outcome:#?}");
}

#[test]
fn calls_of_trace_events_are_in_the_parts_that_their_times_say() {
    let session = Session::new();
    let trace = r#"[{"ph":"X","name":"outer","pid":1,"tid":1,"ts":1000,"dur":10000},
        {"ph":"X","name":"inner","pid":1,"tid":1,"ts":3000,"dur":4500},
        {"ph":"X","name":"other","pid":1,"tid":2,"ts":9000,"dur":20000}]"#;
    std::fs::write(session.path("trace.json"), trace).expect("it can be written");
    let cost = |options: &[&str], name: &str| {
        let report = report(&session, "trace.json", options);
        let rows = report["functions"].as_array().expect("a list").clone();
        rows.iter().find(|row| row["function"] == name).and_then(|row| row["self_cost"].as_u64()).unwrap_or(0)
    };
    let ms = 1_000_000;
    for (options, outer, inner, other) in [
        (&[][..], 5 * ms + ms / 2, 4 * ms + ms / 2, 20 * ms),
        (&["--to", "4ms"], 2 * ms, 2 * ms, 0),
        (&["--from", "4ms", "--to", "9ms"], 2 * ms + ms / 2, 2 * ms + ms / 2, ms),
        (&["--from", "9ms"], ms, 0, 19 * ms),
    ] {
        assert_eq!(
            ["outer", "inner", "other"].map(|name| cost(options, name)),
            [outer, inner, other],
            "{options:?}"
        );
    }
}

#[test]
fn the_latency_of_a_program_with_one_thread_is_its_processor_time_at_any_rate() {
    let session = Session::new();
    let program = program(&KNOWN_SHARES.build().expect("the compiler is installed"), &["500"]);
    for rate in ["50", "100", "1000"] {
        let time = session.record(&["-e", "cpu-clock", "-F", rate], &program).run_cost();
        let latency = session.flat(&["--metric", "latency"]).run_cost();
        assert!((latency / time - 1.0).abs() < 0.001, "at {rate} Hz: {latency} of {time}");
    }
}
