//! The harness as users run it.
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says what it skips"
)]

use std::path::PathBuf;
use std::process::{Command, ExitCode, Output};

use treering_bench::Suite;

fn beside_tests(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.ancestors().nth(2).unwrap().join(name)
}

fn sample(arguments: &[&str], slower: bool) -> Output {
    let mut command = Command::new(beside_tests("examples/treering-bench-sample"));
    command.args(arguments).env("TREERING", beside_tests("treering"));
    if slower {
        command.env("TREERING_SAMPLE_SLOWER", "1");
    }
    command.output().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn lines(output: &Output) -> Vec<serde_json::Value> {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    text(output).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn benchmarks_are_listed_and_chosen_as_by_libtest() {
    let listed = text(&sample(&["--list"], false));
    assert_eq!(
        listed,
        "turns/n=1000: benchmark\nturns/n=2000: benchmark\nturns/n=3000: benchmark\nscaled: benchmark\nsort: benchmark\n\n0 tests, 5 benchmarks\n"
    );
    assert_eq!(text(&sample(&["--list", "--format", "terse", "n=2000"], false)), "turns/n=2000: benchmark\n");
    assert_eq!(text(&sample(&["--list", "--format", "terse", "--exact", "sor"], false)), "");
    assert_eq!(text(&sample(&["--test", "s", "--skip", "turns"], false)), "scaled: ok\nsort: ok\n");
    let none = sample(&["--bench", "no such name"], false);
    assert_eq!((none.status.code(), text(&none).as_str()), (Some(2), ""));
    assert_eq!(sample(&["--no-such-option"], false).status.code(), Some(2));
}

#[test]
fn every_round_of_every_benchmark_is_a_sample() {
    let rows = lines(&sample(&["--bench", "--rounds", "3", "--format", "json"], false));
    assert_eq!(rows.len(), 5);
    for row in &rows {
        assert_eq!(row["samples"].as_array().unwrap().len(), 3, "{row}");
        assert!(row["least"].as_f64() > Some(0.0) && row["calls_a_round"].as_u64() > Some(0), "{row}");
        assert!(row["least"].as_f64() <= row["median"].as_f64(), "{row}");
    }
    let table = text(&sample(&["--bench", "--rounds", "2", "sort"], false));
    assert!(
        table.starts_with("benchmark") && table.contains("\nsort ") && table.contains("2 shuffled rounds"),
        "{table}"
    );
}

#[test]
fn instructions_of_a_call_are_exact_and_baselines_name_the_change() {
    if !beside_tests("treering").exists() {
        eprintln!("skipped: the program treering is not built");
        return;
    }
    let counts = || -> Vec<u64> {
        let rows = lines(&sample(&["--bench", "--count", "turns", "--format", "json"], false));
        rows.iter().map(|row| row["instructions"].as_u64().unwrap()).collect()
    };
    let first = counts();
    // As many instructions for each of a thousand more, and nothing else.
    let more = [first[1] - first[0], first[2] - first[1]];
    assert!(more[0] == more[1] && more[0] >= 2_000 && more[0] % 1_000 == 0, "{first:?}");
    assert!(first[0] - more[0] < 1_000, "{first:?}");
    assert_eq!(counts(), first);

    let name = format!("test-{}", std::process::id());
    assert!(sample(&["--bench", "--save-baseline", &name, "scaled"], false).status.success());
    let same = text(&sample(&["--bench", "--baseline", &name, "--limit", "1%", "scaled"], false));
    assert!(same.contains("no difference: "), "{same}");
    let more = sample(&["--bench", "--baseline", &name, "--limit", "1%", "scaled"], true);
    assert_eq!(more.status.code(), Some(1), "{}", text(&more));
    assert!(text(&more).contains("::turns, 2 → 3 calls"), "{}", text(&more));
    let unknown = sample(&["--bench", "--baseline", &name, "sort"], false);
    let said = String::from_utf8_lossy(&unknown.stderr).into_owned();
    assert!(unknown.status.code() == Some(2) && said.contains("has no counts of sort"), "{said}");
    let folder = beside_tests("examples/treering-bench/treering-bench-sample");
    std::fs::remove_dir_all(folder.join(&name)).unwrap();
}

#[test]
fn a_benchmark_that_measures_nothing_is_an_error() {
    let mut suite = Suite::new();
    suite.function("empty", |_| ());
    let status = suite.run(["--bench".into()], &mut Vec::new());
    assert_eq!(format!("{status:?}"), format!("{:?}", ExitCode::from(2)));
}
