//! `treering bench import`.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::session::Session;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(name)
}

fn import(session: &Session, path: &Path, options: &[&str]) -> String {
    let path = path.to_str().expect("a path");
    session.output(&[&["bench", "import", path, "--archive", "runs"], options].concat())
}

fn listed(session: &Session) -> Vec<Value> {
    let text = session.output(&["bench", "list", "--archive", "runs", "--json"]);
    let listed: Value = serde_json::from_str(&text).expect("it is JSON");
    listed["runs"].as_array().expect("runs").clone()
}

#[test]
fn results_of_other_tools_are_kept_once() {
    let session = Session::new();
    for _ in 0..2 {
        import(&session, &fixture("bench/hyperfine.json"), &["--version-name", "1.0"]);
        import(&session, &fixture("bench/google-benchmark.json"), &[]);
    }
    let runs = listed(&session);
    assert_eq!(runs.len(), 6);
    let table = session.output(&["bench", "table", "sleep", "-x", "n", "-y", "wall", "--archive", "runs"]);
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    // The medians in the file, in milliseconds.
    assert_eq!((&rows[2][..], &rows[3][..]), (&["1", "5.94"][..], &["2", "11.00"][..]), "{table}");
    // The times of another machine are refused.
    // The order of runs is that of their files' times, where these do not say when they were measured.
    let mut of_sleep = runs.iter().filter(|run| run["program"] == "sleep");
    let [first, second] =
        [of_sleep.next(), of_sleep.next()].map(|run| run.expect("two runs")["run"].as_str());
    let [first, second] = [first, second].map(|run| run.expect("its name").to_owned());
    let refused = session.run(&["bench", "compare", &first, &second, "--archive", "runs"]);
    assert!(refused.error().contains("times are not comparable"), "{refused:#?}");
}

/// Intervals of times that are all alike had no width, without a word.
#[test]
fn times_in_steps_of_a_clock_are_noted() {
    let session = Session::new();
    for (name, times) in
        [("a", "0.25,0.26,0.25,0.25"), ("b", "0.31,0.31,0.30,0.31"), ("c", "0.2501,0.26,0.25,0.2503")]
    {
        let file = session.path(&format!("{name}.json"));
        let text = format!(r#"{{"results":[{{"command":"./solve","mean":0.26,"times":[{times}]}}]}}"#);
        std::fs::write(&file, text).expect("it can be written");
        import(&session, &file, &["--version-name", name]);
    }
    let compared =
        |head: &str| session.run(&["bench", "compare", "a", head, "--force", "--archive", "runs"]).stdout;
    assert!(compared("b").contains("times come in steps of 10 ms"), "{}", compared("b"));
    assert!(!compared("c").contains("in steps of"), "{}", compared("c"));
}

#[test]
fn a_folder_of_criterion_and_a_file_in_it_are_the_same_run() {
    let session = Session::new();
    let folder = fixture("bench/criterion");
    for path in [folder.clone(), folder.join("sort/quick/100/new/estimates.json")] {
        import(&session, &path, &[]);
    }
    let runs = listed(&session);
    assert_eq!(runs.len(), 1, "{runs:?}");
    assert_eq!(
        (&runs[0]["program"], &runs[0]["parameters"]["value"]),
        (&"sort/x y/quick".into(), &"100".into())
    );
    // The median of `estimates.json`, in nanoseconds.
    let estimates = std::fs::read(folder.join("sort/quick/100/new/estimates.json")).expect("the fixture");
    let estimates: Value = serde_json::from_slice(&estimates).expect("it is JSON");
    let medians = [&estimates["median"]["point_estimate"], &runs[0]["metrics"]["wall"]["median"]];
    let [stated, kept] = medians.map(|median| median.as_f64().expect("a number"));
    assert!((stated - kept).abs() < 1e-9 * stated, "{stated} against {kept}");
}

#[test]
fn reports_of_cbs_are_kept_with_parameters_results_and_calls() {
    let session = Session::new();
    for (name, version) in [("cbs.xml", "cbs"), ("treering.xml", "xml"), ("treering.trg", "trg")] {
        import(&session, &fixture("formats/cbs-xml").join(name), &["--version-name", version]);
    }
    let runs = listed(&session);
    assert_eq!(runs.len(), 3);
    for run in &runs {
        assert_eq!(
            (&run["program"], &run["parameters"]["n"]),
            (&Value::from("known shares"), &Value::from("20"))
        );
        assert_eq!(run["metrics"]["answer"]["median"], 42.0, "{run}");
        assert_eq!(run["has_profile"], true);
    }
    // As the file states them, in milliseconds.
    let of_cbs = runs.iter().find(|run| run["version"] == "cbs").expect("it is kept");
    let ms = |metric: &str| of_cbs["metrics"][metric]["median"].as_f64().map(|ns| ns / 1e6);
    assert_eq!((ms("cpu"), ms("wall")), (Some(52.0), Some(105.0)));
    assert_eq!(of_cbs["started"], "2026-11-26T13:39:59.000000000Z");
    let manifest = session.output(&[
        "bench",
        "show",
        of_cbs["run"].as_str().expect("a run"),
        "--json",
        "--archive",
        "runs",
    ]);
    let manifest: Value = serde_json::from_str(&manifest).expect("it is JSON");
    let sha256 = manifest["profiles"][0]["sha256"].as_str().expect("a name");
    let report =
        session.output(&["report", &format!("runs/profiles/{}/{sha256}.trg", &sha256[..2]), "--callgraph"]);
    assert!(report.contains("even") && report.contains("odd"), "{report}");
}

#[test]
fn a_report_of_cbs_without_a_call_graph_has_parameters_results_and_times() {
    let session = Session::new();
    let whole = std::fs::read_to_string(fixture("formats/cbs-xml/cbs.xml")).expect("it is there");
    let end = whole.find("</bench>").expect("the summary ends") + "</bench>".len();
    std::fs::write(session.path("summary.xml"), &whole[..end]).expect("it can be written");
    import(&session, &session.path("summary.xml"), &[]);
    let runs = listed(&session);
    let ms = |metric: &str| runs[0]["metrics"][metric]["median"].as_f64().map(|ns| ns / 1e6);
    assert_eq!((ms("cpu"), ms("wall")), (Some(52.0), Some(105.0)));
    assert_eq!((&runs[0]["parameters"]["n"], &runs[0]["has_profile"]), (&"20".into(), &false.into()));
    std::fs::write(session.path("cut.xml"), &whole[..end - 20]).expect("it can be written");
    let cut = session.run(&["bench", "import", "cut.xml", "--archive", "runs"]);
    assert!(cut.error().contains("cut.xml: byte 0x34d: the file is cut short"), "{cut:#?}");
}

#[test]
fn a_folder_of_criterion_is_read_and_files_that_describe_no_benchmark_are_refused() {
    let session = Session::new();
    for (folder, time) in [("new", "[1000.0,3000.0]"), ("base", "[9.0,9.0]")] {
        let path = session.path("criterion/sort/1000").join(folder);
        std::fs::create_dir_all(&path).expect("it can be made");
        let benchmark = r#"{"group_id":"sort","function_id":null,"value_str":"1000"}"#;
        std::fs::write(path.join("benchmark.json"), benchmark).expect("it can be written");
        let sample = format!(r#"{{"sampling_mode":"Linear","iters":[10.0,20.0],"times":{time}}}"#);
        std::fs::write(path.join("sample.json"), sample).expect("it can be written");
    }
    import(&session, &session.path("criterion"), &["--this-machine"]);
    let runs = listed(&session);
    assert_eq!((runs.len(), &runs[0]["metrics"]["wall"]["median"]), (1, &Value::from(125.0)));
    assert_ne!(runs[0]["machine"], "");
    std::fs::create_dir(session.path("empty")).expect("it can be made");
    std::fs::write(session.path("a.folded"), "main;work 7\n").expect("it can be written");
    for (name, message) in [
        ("empty", "empty has no results of criterion"),
        ("a.folded", "a.folded describes no benchmark"),
        ("none.json", "cannot read none.json: there is no such file"),
    ] {
        // Nothing is kept of the good one beside it.
        let good = fixture("bench/hyperfine.json");
        let good = good.to_str().expect("a path");
        let outcome = session.run(&["bench", "import", good, name, "--archive", "runs"]);
        assert_eq!(outcome.status.code(), Some(2), "{outcome:#?}");
        assert!(outcome.error().contains(message), "{outcome:#?}");
    }
    assert_eq!(listed(&session).len(), 1);
}

/// The hint named the formats of profiles, of which none is a result of a benchmark.
#[test]
fn a_file_of_no_known_tool_is_refused_with_a_list_of_tools() {
    let session = Session::new();
    std::fs::write(session.path("other.json"), "{}").expect("it can be written");
    let outcome = session.run(&["bench", "import", "other.json", "--archive", "runs"]);
    assert!(outcome.error().contains("treering bench import --help"), "{outcome:#?}");
    assert!(!session.path("runs").exists());
}

#[test]
fn the_page_names_every_key_of_a_listed_run() {
    let session = Session::new();
    import(&session, &fixture("bench/hyperfine.json"), &[]);
    let page = include_str!("../../../../docs/json.md");
    let runs = listed(&session);
    for key in runs[0].as_object().expect("a run").keys() {
        assert!(page.contains(&format!("`{key}`")), "docs/json.md does not explain {key}");
    }
}
