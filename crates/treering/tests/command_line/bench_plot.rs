//! `treering bench plot` and `treering bench history`.

use std::collections::BTreeMap;

use serde_json::Value;
use treering_archive::{Archive, Manifest, Measured, Moment, Unit, Version};
use treering_testing::programs::installed;

use crate::session::Session;
use crate::skip;

const DAY: u64 = 86_400_000_000_000;

fn measured(unit: Unit, values: &[f64]) -> Measured {
    Measured { unit, values: values.to_vec() }
}

/// Twelve rounds around a time.
fn rounds(time: f64) -> Measured {
    let errors = [0.99, 1.0, 1.01, 0.995, 1.005, 1.0, 0.99, 1.01, 1.0, 1.005, 0.995, 1.0];
    measured(Unit::Ns, &errors.map(|error| error * time))
}

fn run(version: &str, day: u64, size: u32, samples: &[(&str, Measured)]) -> Manifest {
    Manifest {
        program: "./solve {n}".to_owned(),
        parameters: BTreeMap::from([("n".to_owned(), size.to_string())]),
        version: Version {
            name: version.to_owned(),
            commit: Some(format!("{version:0<40}")),
            dirty: Some(false),
            committed: Some(Moment(day * DAY)),
        },
        session: "one".to_owned(),
        started: Moment(20_000 * DAY + day),
        samples: samples.iter().map(|(name, of)| ((*name).to_owned(), of.clone())).collect(),
        ..Manifest::default()
    }
}

fn archive(session: &Session, runs: &[Manifest]) {
    let mut archive = Archive::open(&session.path("archive")).expect("it can be made");
    runs.iter().for_each(|run| drop(archive.add(run).expect("it can be kept")));
}

fn bench<'a>(command: &'a str, options: &[&'a str]) -> Vec<&'a str> {
    [&["bench", command, "solve", "--archive", "archive"], options].concat()
}

/// The second version takes a tenth longer and as much memory.
fn two_versions(session: &Session) {
    let mut runs = Vec::new();
    for (size, time) in [(250, 3e6), (500, 6e6), (1000, 12e6), (2000, 29e6)] {
        let memory = measured(Unit::Bytes, &[2.6e6; 12]);
        runs.push(run("5.4.8", 1, size, &[("cpu", rounds(time)), ("memory", memory.clone())]));
        runs.push(run("gc400", 2, size, &[("cpu", rounds(time * 1.1)), ("memory", memory)]));
    }
    archive(session, &runs);
}

#[test]
fn versions_are_drawn_with_error_bars_and_their_change() {
    let session = Session::new();
    two_versions(&session);
    let options = ["-x", "n", "-y", "time,memory", "--by", "version", "-o", "versions.svg"];
    session.output(&bench("plot", &options));
    let svg = std::fs::read_to_string(session.path("versions.svg")).expect("it was drawn");
    assert!(
        svg.contains("gc400 against 5.4.8: CPU time +10 % at n = 250 to 2,000; same memory within 1 %"),
        "{svg}"
    );
    for text in [">5.4.8<", ">gc400<", "median of 12 rounds, bars: 95 %", "prefers-color-scheme:dark"] {
        let svg = svg.replace("\n", "");
        assert!(svg.contains(text), "{text}: {svg}");
    }
    // It may be replaced, but nothing else may.
    session.output(&bench("plot", &options));
    std::fs::write(session.path("versions.svg"), "mine").expect("it can be written");
    assert!(session.run(&bench("plot", &options)).error().contains("versions.svg"));
}

#[test]
fn data_for_gnuplot_holds_every_value() {
    let session = Session::new();
    two_versions(&session);
    let script = session.output(&bench("plot", &["-x", "n", "--by", "version", "--to", "gnuplot"]));
    assert!(script.contains("\n250 3000000 2985000 3015000 3300000 "), "{script}");
    if installed("gnuplot").is_none() {
        return skip("gnuplot is not installed");
    }
    std::fs::write(session.path("plot.gp"), format!("set terminal dumb\n{script}"))
        .expect("it can be written");
    let drawn = std::process::Command::new("gnuplot").arg(session.path("plot.gp")).output().expect("it runs");
    assert!(drawn.status.success() && drawn.stderr.is_empty(), "{drawn:?}");
}

#[test]
fn plots_of_nothing_are_refused_by_name() {
    let session = Session::new();
    assert!(session.run(&bench("plot", &["-x", "n"])).error().contains("archive"));
    two_versions(&session);
    let error = |options: &[&str]| session.run(&bench("plot", options)).error().to_owned();
    assert!(error(&["-x", "m"]).contains("no parameter m; there are: n"));
    assert!(
        error(&["-x", "n", "-y", "states"]).contains("none of these runs has states; there are: cpu, memory")
    );
}

/// A millisecond beside three seconds was 0.00 s.
#[test]
fn small_values_of_a_table_keep_two_digits() {
    let session = Session::new();
    let of = |size: u32, time: f64| run("v", 1, size, &[("cpu", rounds(time))]);
    archive(&session, &[of(1, 1.26e6), of(10, 31e6), of(1000, 3e9)]);
    let text = session.output(&bench("table", &["-x", "n"]));
    let cells: Vec<&str> = text.split_whitespace().collect();
    assert!(text.contains("CPU time, s\n"), "{text}");
    assert!(["0.0013", "0.0310", "3.0000"].iter().all(|cell| cells.contains(cell)), "{text}");
}

/// Counts of commits: 2 % more at the third, and less at the sixth.
#[test]
fn steps_between_commits_are_found_and_drawn() {
    let session = Session::new();
    let counts = [476.5e6, 476.6e6, 503.6e6, 503.5e6, 503.9e6, 480.9e6, 481.0e6];
    let runs: Vec<Manifest> = counts
        .iter()
        .enumerate()
        .map(|(day, count)| {
            let version = format!("c{day}");
            run(&version, 100 + day as u64, 8000, &[("instructions", measured(Unit::Count, &[*count]))])
        })
        .collect();
    // They were measured in another order than they were made in.
    archive(&session, &runs.iter().rev().cloned().collect::<Vec<_>>());
    let document: Value =
        serde_json::from_str(&session.output(&bench("history", &["--json"]))).expect("it is JSON");
    let values: Vec<f64> = document["commits"]
        .as_array()
        .expect("commits")
        .iter()
        .map(|of| of["value"].as_f64().expect("a value"))
        .collect();
    assert_eq!(values, counts);
    let steps = document["steps"].as_array().expect("steps");
    let at: Vec<u64> = steps.iter().map(|step| step["index"].as_u64().expect("a number")).collect();
    assert_eq!(at, [2, 5]);
    let text = session.output(&bench("history", &["-o", "history.svg"]));
    assert!(
        text.contains("▲ +5.7 %") && text.contains("▼ −4.6 %") && !text.contains("c1000000\n\n"),
        "{text}"
    );
    assert!(text.contains("7 of 7 versions measured; 2 steps from 2 %"), "{text}");
    let svg = std::fs::read_to_string(session.path("history.svg")).expect("it was drawn");
    assert!(svg.contains("7 versions of solve: +5.7 % at c2000000"), "{svg}");
    let all = session.output(&bench("history", &["--floor", "0.05%"]));
    assert!(all.contains("3 steps"), "{all}");
}

/// So many commits, each the child of the one before, all made at the same second.
fn commits_of_one_second(session: &Session, number: usize) -> Vec<String> {
    let git = |words: &[&str]| {
        let identity = ["-c", "user.name=T", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"];
        let output = std::process::Command::new("git")
            .args(identity)
            .args(words)
            .env("GIT_COMMITTER_DATE", "2026-10-01T12:00:00Z")
            .current_dir(session.path("."))
            .output();
        let output = output.expect("git is installed");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    };
    git(&["init", "--quiet"]);
    let commit = |number: usize| {
        git(&["commit", "--quiet", "--allow-empty", "-m", &number.to_string()]);
        git(&["rev-parse", "HEAD"])
    };
    (0..number).map(commit).collect()
}

/// As `git rebase` leaves them, measured from the last one back.
#[test]
fn commits_of_one_second_stand_in_the_order_of_the_repository() {
    let session = Session::new();
    let commits = commits_of_one_second(&session, 4);
    let counts = [100.0, 100.0, 110.0, 110.0];
    let runs = commits.iter().zip(counts).enumerate().map(|(at, (commit, count))| {
        let mut run = run("v", 1, 8, &[("instructions", measured(Unit::Count, &[count]))]);
        run.version.commit = Some(commit.clone());
        run.started = Moment(30_000 * DAY - at as u64);
        run
    });
    archive(&session, &runs.collect::<Vec<_>>());
    let document: Value =
        serde_json::from_str(&session.output(&bench("history", &["--json"]))).expect("it is JSON");
    let order: Vec<&str> = document["commits"]
        .as_array()
        .expect("commits")
        .iter()
        .filter_map(|of| of["commit"].as_str())
        .collect();
    assert_eq!(order, commits);
    assert_eq!(
        (&document["steps"][0]["index"], &document["steps"][0]["to"]),
        (&2.into(), &commits[2].clone().into())
    );
    let outcome = session.run(&bench("history", &[]));
    assert!(outcome.stdout.contains("▲ +10.0 %") && outcome.stderr.is_empty(), "{outcome:#?}");
    // Without the repository nothing tells their order.
    std::fs::remove_dir_all(session.path(".git")).expect("it is there");
    let outcome = session.run(&bench("history", &[]));
    assert!(
        outcome.stderr.starts_with("note: commits of one second are in the order in which"),
        "{outcome:#?}"
    );
}

/// Every commit on a machine, and the last ones on a slower one, too.
#[test]
fn a_history_of_times_is_of_one_machine() {
    let session = Session::new();
    let runs = (0..30).map(|at| {
        let (machine, day) = (usize::from(at >= 18), 100 + at % 18);
        let noise = 1.0 + (at * 7919 % 13) as f64 / 5000.0;
        let time = [10e6, 15e6][machine] * noise;
        let mut run =
            run(&format!("c{day}"), day, 8, &[("cpu", rounds(time)), ("instructions", rounds(5.0))]);
        run.machine.model = ["quick", "slow"][machine].to_owned();
        run.machine.cores = 2;
        run.started = Moment(20_000 * DAY + at);
        run
    });
    archive(&session, &runs.collect::<Vec<_>>());
    let outcome = session.run(&bench("history", &["-y", "time"]));
    let note = "note: 18 runs of other machines than that of the latest left out: times of two machines are not comparable";
    assert!(outcome.stderr.contains(note), "{outcome:#?}");
    assert!(outcome.stdout.contains("12 of 12 versions measured; 0 steps from 2 %"), "{outcome:#?}");
    // Counts are the same everywhere.
    let outcome = session.run(&bench("history", &["-y", "instructions"]));
    assert!(outcome.stderr.is_empty() && outcome.stdout.contains("18 of 18 versions"), "{outcome:#?}");
}

#[test]
fn changes_that_are_no_steps_yet_are_named() {
    let note = |times: &[f64]| {
        let session = Session::new();
        let runs = times
            .iter()
            .enumerate()
            .map(|(at, time)| run(&format!("c{at}"), 100 + at as u64, 8, &[("cpu", rounds(time * 1e6))]));
        archive(&session, &runs.collect::<Vec<_>>());
        let text = session.output(&bench("history", &[]));
        assert!(text.contains("; 0 steps from 2 %\n"), "{text}");
        text.lines().last().expect("a line").to_owned()
    };
    let few = "fewer than 8 versions show no steps: treering bench compare judges two";
    assert_eq!(note(&[10.0, 10.0, 10.1, 10.0, 20.0]), few);
    assert_eq!(note(&[10.0, 10.05, 10.1, 10.0]), "4 of 4 versions measured; 0 steps from 2 %");
    let mut times = [10.0, 10.1, 10.0, 10.05, 10.1, 10.0, 10.0, 10.05, 10.1, 10.0, 10.05, 20.0];
    assert_eq!(
        note(&times),
        "the last version differs by +99.0 %: the next one tells whether that is a step"
    );
    times[11] = 10.02;
    assert_eq!(note(&times), "12 of 12 versions measured; 0 steps from 2 %");
}

#[test]
fn commits_between_two_that_were_measured_are_counted() {
    let session = Session::new();
    let commits = commits_of_one_second(&session, 6);
    let runs = [(0, 100.0), (4, 110.0), (5, 120.0)].map(|(at, count): (usize, f64)| {
        let mut run = run("v", at as u64, 8, &[("instructions", measured(Unit::Count, &[count]))]);
        run.version.commit = Some(commits[at].clone());
        run
    });
    archive(&session, &runs);
    let text = session.output(&bench("history", &[]));
    assert_eq!(text.matches("between").count(), 1, "{text}");
    assert!(text.contains("3 commits between: treering bench bisect"), "{text}");
    let document: Value =
        serde_json::from_str(&session.output(&bench("history", &["--json"]))).expect("it is JSON");
    assert_eq!(document["steps"][0]["commits_between"], 3);
    assert_eq!(document["steps"][1]["commits_between"], 0);
}

#[test]
fn a_history_of_several_sizes_asks_for_one() {
    let session = Session::new();
    two_versions(&session);
    let outcome = session.run(&bench("history", &[]));
    assert!(
        outcome.error().contains("several values of n") && outcome.stderr.contains("-p n=VALUE"),
        "{outcome:#?}"
    );
    let text = session.output(&bench("history", &["-p", "n=500"]));
    assert!(text.contains("2 of 2 versions measured"), "{text}");
}

/// A report of CBS's macros with four points, of which the third is the peak.
#[test]
fn memory_over_time_is_drawn_with_its_peak() {
    let session = Session::new();
    let report = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/formats/cbs-xml/treering.xml");
    let svg = session.output(&["bench", "memory", report]);
    assert!(svg.contains("peak memory 12.7 MB of treering at 93 % of the run"), "{svg}");
    assert!(svg.contains("peak 12.7 MB at 132 ms"), "{svg}");
    let virtual_memory = session.output(&["bench", "memory", report, report, "--metric", "virtual memory"]);
    assert!(virtual_memory.contains("peak memory 31.8 MB → 31.8 MB (0 %)"), "{virtual_memory}");
    let drawn = session.run(&["bench", "memory", report, "-o", "memory.png"]);
    if !drawn.status.success() && drawn.error().contains("no font is installed") {
        skip("no font is installed");
    } else {
        let file = std::fs::read(session.path("memory.png")).expect("it was written");
        assert!(file.starts_with(b"\x89PNG") && file.len() > 10_000, "{} bytes", file.len());
        // Treering replaces its own plots.
        session.output(&["bench", "memory", report, "-o", "memory.png"]);
    }
    // It had SVG in it.
    let refused = session.run(&["bench", "memory", report, "-o", "memory.JPG"]);
    assert!(refused.error().contains("memory.JPG: plots are drawn as SVG and PNG only"), "{refused:#?}");
    assert!(!session.path("memory.JPG").exists());
    let error = session.run(&["bench", "memory", report, "--metric", "swap"]);
    assert!(error.error().contains("has no points of swap"), "{error:#?}");
}
