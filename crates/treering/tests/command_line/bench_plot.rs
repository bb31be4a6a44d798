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

#[test]
fn commits_between_two_that_were_measured_are_counted() {
    let session = Session::new();
    let git = |words: &[&str]| {
        let identity = ["-c", "user.name=T", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"];
        let output = std::process::Command::new("git")
            .args(identity)
            .args(words)
            .current_dir(session.path("."))
            .output();
        let output = output.expect("git is installed");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    };
    git(&["init", "--quiet"]);
    let commits: Vec<String> = (0..6)
        .map(|number| {
            git(&["commit", "--quiet", "--allow-empty", "-m", &number.to_string()]);
            git(&["rev-parse", "HEAD"])
        })
        .collect();
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
    let error = session.run(&["bench", "memory", report, "--metric", "swap"]);
    assert!(error.error().contains("has no points of swap"), "{error:#?}");
}
