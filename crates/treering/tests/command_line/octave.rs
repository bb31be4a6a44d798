//! `treering octave`, and the library that Octave loads, in the Octave of this machine.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use treering_testing::programs::preload;

use crate::session::{quoted, treering_command};
use crate::skip;

const TREERING: &str = env!("CARGO_BIN_EXE_treering");

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/octave")
}

/// A folder of its own for a test, with the library as a MEX file in it; nothing where there is no
/// Octave.
pub(crate) fn octave(test: &str) -> Option<PathBuf> {
    if Command::new("octave-cli").arg("--version").output().is_err() {
        skip("there is no octave-cli");
        return None;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("octave").join(test);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder can be made");
    std::fs::copy(library(), folder.join("__treering__.mex")).expect("the library was built");
    Some(folder)
}

/// The library that `treering octave` expects beside the program.
///
/// Every test that runs `treering octave` calls this first: `cargo test` alone does not build it.
pub(crate) fn library() -> PathBuf {
    crate::libraries::beside("libtreering_octave.so")
}

fn run(folder: &Path, program: &str, arguments: &[&str]) -> Output {
    Command::new(program).args(arguments).current_dir(folder).stdin(Stdio::null()).output().expect("it runs")
}

/// Runs statements in Octave with the library on its path; what they print.
pub(crate) fn evaluate(folder: &Path, statements: &str) -> String {
    std::fs::write(folder.join("test_script.m"), statements).expect("the script can be written");
    let output = run(folder, "octave-cli", &["--norc", "test_script.m"]);
    let (text, errors) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{text}\n{errors}");
    text
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Calls by function, and by caller and callee, with names as Octave has them.
#[derive(Debug, Default)]
struct Calls {
    functions: BTreeMap<String, i64>,
    arcs: BTreeMap<(String, String), i64>,
}

impl Calls {
    fn read(text: &str) -> Self {
        let mut calls = Self::default();
        for line in text.lines() {
            match line.split('\t').collect::<Vec<_>>()[..] {
                ["function", name, count, ..] => {
                    *calls.functions.entry(as_in_octave(name)).or_default() += number(count);
                }
                ["arc", caller, callee, count] if !caller.is_empty() => {
                    let arc = (as_in_octave(caller), as_in_octave(callee));
                    *calls.arcs.entry(arc).or_default() += number(count);
                }
                _ => {}
            }
        }
        calls
    }
}

fn number(text: &str) -> i64 {
    text.parse().expect("a number")
}

/// Octave gives all anonymous functions of a file one name, and does not name packages.
fn as_in_octave(name: &str) -> String {
    let name = name.strip_prefix("shapes.").unwrap_or(name);
    let Some(place) = name.strip_prefix("anonymous@") else { return name.to_owned() };
    let file = place.rsplitn(3, ':').nth(2).unwrap_or(place);
    format!("anonymous@{}", file.rsplit('/').next().unwrap_or(file))
}

/// The differences: in Octave, and in Treering.
fn differences<K: Ord + Clone>(octave: &BTreeMap<K, i64>, treering: &BTreeMap<K, i64>) -> Vec<(K, i64, i64)> {
    let keys: std::collections::BTreeSet<&K> = octave.keys().chain(treering.keys()).collect();
    let of = |calls: &BTreeMap<K, i64>, key: &K| calls.get(key).copied().unwrap_or(0);
    let rows = keys.into_iter().map(|key| (key.clone(), of(octave, key), of(treering, key)));
    rows.filter(|(_, octave, treering)| octave != treering).collect()
}

fn fidelity(folder: &Path, options: &[&str]) -> (Calls, Calls, String) {
    let script = |name: &str| fixtures().join(name).display().to_string();
    let own = run(folder, "octave-cli", &["--norc", &script("with_octave.m")]);
    let mut arguments = vec!["--norc".to_owned(), script("with_treering.m")];
    arguments.extend(options.iter().map(|&option| option.to_owned()));
    let ours = run(folder, "octave-cli", &arguments.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(ours.status.success(), "{}", text(&ours.stderr));
    (Calls::read(&text(&own.stdout)), Calls::read(&text(&ours.stdout)), text(&ours.stdout))
}

#[test]
fn calls_of_every_function_and_arc_are_those_of_octaves_own_profiler() {
    let Some(folder) = octave("arcs") else { return };
    let (own, ours, _) = fidelity(&folder, &["-operators"]);
    assert!(own.functions.len() > 90 && own.arcs.len() > 150, "the programs ran: {own:?}");
    let found = differences(&own.functions, &ours.functions);
    // Octave's `profile off` calls these itself, and is recorded.
    for (name, octave, treering) in &found {
        let by_profile =
            ["__profiler_enable__", "binary <", "false", "nargin", "profile"].contains(&name.as_str());
        assert!(
            by_profile && treering + 1 == *octave,
            "{name}: {octave} calls in Octave, {treering} in Treering"
        );
    }
    assert_eq!(found.len(), 5, "{found:?}");
    let arcs = differences(&own.arcs, &ours.arcs);
    let others: Vec<_> = arcs.into_iter().filter(|((caller, _), ..)| caller != "profile").collect();
    let arc = |caller: &str, callee: &str| (caller.to_owned(), callee.to_owned());
    // Octave takes values of default arguments for calls of the caller.
    let expected = [
        (arc("anonymous@refused.m", "error"), 1, 0),
        (arc("fidelity>callbacks", "struct"), 2, 1),
        (arc("fzero", "struct"), 0, 1),
        (arc("refused>no_default", "error"), 0, 1),
    ];
    assert_eq!(others, expected);
}

#[test]
fn without_operators_all_other_calls_are_the_same() {
    let Some(folder) = octave("calls") else { return };
    for options in [&["graph", "-args"][..], &["graph", "-lines"], &["flat"]] {
        let (mut own, ours, _) = fidelity(&folder, options);
        own.functions.retain(|name, _| {
            !["binary ", "prefix ", "postfix "].iter().any(|start| name.starts_with(start))
        });
        let found = differences(&own.functions, &ours.functions);
        let names: Vec<&str> = found.iter().map(|(name, ..)| name.as_str()).collect();
        assert_eq!(names, ["__profiler_enable__", "false", "nargin", "profile"], "{options:?}");
    }
}

#[test]
fn functions_are_distinguished_by_kind_and_place() {
    let Some(folder) = octave("places") else { return };
    let (_, _, listing) = fidelity(&folder, &["graph"]);
    let row = |name: &str| {
        let found = listing
            .lines()
            .find(|line| line.split('\t').nth(1) == Some(name) && line.starts_with("function"));
        let found = found.unwrap_or_else(|| panic!("{name} is not in {listing}"));
        let columns: Vec<&str> = found.split('\t').collect();
        let file = columns[4].rsplit('/').next().unwrap_or_default().to_owned();
        (columns[3].to_owned(), file, columns[5].to_owned())
    };
    let expect = |name: &str, kind: &str, file: &str, line: &str| {
        assert_eq!(row(name), (kind.to_owned(), file.to_owned(), line.to_owned()), "{name}");
    };
    expect("fidelity", "function", "fidelity.m", "1");
    expect("fidelity>fib", "function", "fidelity.m", "39");
    expect("add", "function", "nested_outer.m", "3");
    expect("@Counter/inc", "function", "Counter.m", "12");
    expect("@Counter/get.doubled", "function", "Counter.m", "15");
    expect("shapes.square", "function", "square.m", "1");
    expect("some_script", "script", "some_script.m", "1");
    expect("cellfun", "builtin", "", "0");
    let source = std::fs::read_to_string(fixtures().join("fidelity.m")).expect("a fixture");
    let at = source.lines().position(|line| line.contains("h = @() i - 1")).expect("in the file") + 1;
    expect(&format!("anonymous@fidelity.m:{at}:9"), "anonymous", "fidelity.m", &at.to_string());
}

#[test]
fn self_times_add_up_to_the_time_of_a_stop_watch() {
    let Some(folder) = octave("watch") else { return };
    let script = "
        function r = busy (n) r = 0; for i = 1:n r = r + sqrt (i) * cos (i); end, end
        function outer () for k = 1:40 busy (500); end, end
        __treering__ ('on', '-ignore', 'tic', '-ignore', 'toc');
        t = tic (); outer (); passed = toc (t);
        __treering__ ('off');
        S = __treering__ ('details');
        printf ('%g', sum ([S.FunctionTable.SelfTime]) / passed);
    ";
    // The machine may be busy in between; that it agrees once shows that nothing is lost.
    let shares: Vec<f64> =
        (0..5).map(|_| evaluate(&folder, &format!("1;{script}")).trim().parse().expect("a number")).collect();
    assert!(shares.iter().any(|share| (0.95..1.02).contains(share)), "{shares:?}");
}

#[test]
fn a_script_is_profiled_without_changing_it() {
    let Some(folder) = octave("script") else { return };
    let script = "1;\nfunction r = twice (x)\n  r = 2 * x;\nend\nfor i = 1:25\n  twice (i);\nend\nprintf ('%s\\n', argv (){:});\nexit (7);\n";
    std::fs::write(folder.join("it's a script.m"), script).expect("written");
    let output = run(
        &folder,
        TREERING,
        &["octave", "--lines", "-o", "out put.trg", "it's a script.m", "one", "--two"],
    );
    assert_eq!(output.status.code(), Some(7), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), "one\n--two\n");
    let summary = text(&output.stderr);
    assert!(summary.contains("wrote out put.trg"), "{summary}");
    assert!(summary.contains("corrected; ") && summary.contains("of measuring subtracted"), "{summary}");
    let report = run(&folder, TREERING, &["report", "out put.trg", "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&report.stdout).expect("JSON");
    let functions = json.to_string();
    assert!(functions.contains("\"twice\"") && functions.contains("25"), "{functions}");
    assert!(!functions.contains("PKG_ADD"), "what comes before the script is left out: {functions}");
    let lines =
        run(&folder, TREERING, &["report", "out put.trg", "--lines", "twice", "--metric", "line hits"]);
    let lines = text(&lines.stdout);
    assert!(lines.lines().any(|line| line.split_whitespace().nth(2) == Some("3")), "{lines}");
}

#[test]
fn patterns_that_leave_no_function_are_warned_of() {
    let Some(folder) = octave("patterns") else { return };
    std::fs::write(folder.join("calls.m"), "1;\nfunction once ()\nend\nonce ();\n").expect("written");
    for (pattern, is_warned) in [("once,calls", true), ("once", false), ("o*", false)] {
        let output = run(&folder, TREERING, &["octave", "-q", "--only", pattern, "calls.m"]);
        let errors = text(&output.stderr);
        assert!(output.status.success(), "{errors}");
        assert_eq!(
            errors.contains("warning: --only and --except leave out all"),
            is_warned,
            "{pattern}: {errors}"
        );
    }
}

/// The hooks of each nested call and block stand on the interpreter's stack.
#[test]
fn deep_recursion_goes_as_deep_as_without_treering() {
    let Some(folder) = octave("deep") else { return };
    let script = "1;\nfunction r = depth (n)\n  r = 0;\n  for i = 1:1\n    if n > 0\n      r = 1 + depth (n - 1);\n    end\n  end\nend\nprintf ('%d\\n', depth (200));\ntry, depth (1000); catch e, disp (e.message); end\n";
    std::fs::write(folder.join("deep.m"), script).expect("written");
    let alone = evaluate(&folder, "source deep.m");
    for options in [&["--lines"][..], &["--args"], &["--memory", "--operators"]] {
        let output = run(&folder, TREERING, &[&["octave", "-q"], options, &["deep.m"]].concat());
        assert!(output.status.success(), "{options:?}: {}", text(&output.stderr));
        assert_eq!(text(&output.stdout), alone, "{options:?}");
    }
}

#[test]
fn allocations_belong_to_the_function_that_makes_them() {
    let Some(folder) = octave("memory") else { return };
    let script = "1;\nfunction r = large (n)\n  r = ones (1, n) + 1;\nend\nfunction r = small (n)\n  r = n + 1;\nend\nfor i = 1:10\n  x = large (1e5);\n  y = small (i);\nend\n";
    std::fs::write(folder.join("memory.m"), script).expect("written");
    let output = run(&folder, TREERING, &["octave", "--memory", "-q", "memory.m"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report = run(&folder, TREERING, &["report", "--flat", "--json", "--metric", "allocated"]);
    let flat = crate::profile::Flat(serde_json::from_slice(&report.stdout).expect("JSON"));
    // Ten times two matrices of 1e5 numbers of 8 bytes: those of `ones`, and their sum.
    let (large, ones, small) = (
        flat.cost("large").total,
        flat.cost("ones (builtin)").own + flat.cost("ones").own,
        flat.cost("small").total,
    );
    assert!((15.9e6..16.5e6).contains(&large), "{large} in {}", flat.0);
    assert!((7.9e6..8.3e6).contains(&ones) && small < 1e5, "{ones} {small}");
    // A sum is freed when the next one takes its place; Octave frees all when it ends.
    let text = flat.0.to_string();
    let row = |name: &str| {
        let rows = flat.0["functions"].as_array().expect("functions");
        rows.iter().find(|row| row["function"] == name).unwrap_or_else(|| panic!("{name} in {text}")).clone()
    };
    let peak = row("large")["peak_bytes"].as_f64().expect("bytes");
    assert!((0.8e6..1.7e6).contains(&peak), "{peak} in {text}");
    assert!(row("large")["live_bytes"].as_f64().is_some_and(|live| live < 1e3), "{text}");
}

#[test]
fn flat_profiles_state_memory_that_is_still_held() {
    let Some(folder) = octave("held") else { return };
    let text = evaluate(
        &folder,
        "1;
        function r = keep (n) r = cell (1, 1); r{1} = repmat (pi, 1, n); end
        for kind = {'graph', 'flat'}
          __treering__ ('on', kind{1}, '-memory');
          a = keep (1e5); b = keep (1e5); c = keep (1e5); b = [];
          __treering__ ('off');
          S = __treering__ ('details');
          printf ('%d ', sum ([S.FunctionTable.LiveBytes]), max ([S.FunctionTable.PeakBytes]));
          a = c = [];
          S = __treering__ ('details');
          printf ('%d\\n', sum ([S.FunctionTable.LiveBytes]));
        end",
    );
    for line in text.lines() {
        let bytes: Vec<f64> = line.split(' ').map(|word| word.parse().expect("a number")).collect();
        let [live, peak, left] = bytes[..] else { panic!("{text}") };
        // The others are functions that were read from files.
        assert!((1.6e6..1.602e6).contains(&(live - left)), "two of three matrices are held: {text}");
        assert!((2.3e6..2.5e6).contains(&peak), "three were: {text}");
        assert!(left < 2e5, "what was freed later is taken off: {text}");
    }
    assert_eq!(text.lines().count(), 2, "{text}");
}

#[test]
fn a_file_that_defines_a_function_is_profiled_as_well() {
    let Some(folder) = octave("function_file") else { return };
    std::fs::write(folder.join("solve.m"), "function solve ()\n  sin (1); sin (2);\nend\n").expect("written");
    let output = run(&folder, TREERING, &["octave", "-q", "solve.m"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report = text(&run(&folder, TREERING, &["report"]).stdout);
    let row = |name: &str| report.lines().find(|line| line.ends_with(name)).unwrap_or_default().to_owned();
    assert!(row(" solve").split_whitespace().any(|word| word == "1"), "{report}");
    assert!(row(" sin (builtin)").split_whitespace().any(|word| word == "2"), "{report}");
}

/// Records a script with the sizes of arguments, where time passes only as the script says (`pause`); what
/// `report --callgraph` says of it, as JSON.
fn recorded_by_scripted_clock(folder: &Path, script: &str) -> serde_json::Value {
    std::fs::write(folder.join("growth.m"), script).expect("written");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/command_line/programs/scripted_clock.c");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-O2", "-o"]).arg(folder.join("scripted_clock.so")).arg(source);
    assert!(compiler.status().expect("a compiler is installed").success());
    let mut command = Command::new(TREERING);
    command.args(["octave", "--args", "-q", "growth.m"]).current_dir(folder).stdin(Stdio::null());
    preload(&mut command, &folder.join("scripted_clock.so"));
    let output = command.output().expect("it runs");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report = run(folder, TREERING, &["report", "--callgraph", "--json"]);
    serde_json::from_slice(&report.stdout).expect("JSON")
}

/// The fitted exponent of a row of a report; its bounds must be as near.
fn exponent(row: Option<&serde_json::Value>) -> f64 {
    let row = row.expect("there is such a row");
    let number = |name: &str| row["growth"][name].as_f64().unwrap_or_else(|| panic!("no {name} in {row}"));
    let exponent = number("exponent");
    assert!(number("exponent_high") - number("exponent_low") < 0.1, "{row}");
    exponent
}

#[test]
fn quadratic_and_linear_functions_are_distinguished() {
    let Some(folder) = octave("growth") else { return };
    let script = "1;
        function pairs (x) pause (1e-7 * numel (x) ^ 2); end
        function once (x) pause (1e-6 * numel (x)); end
        for k = 4:8 for again = 1:9 pairs (ones (1, 1.5 * 2 ^ k)); once (ones (1, 1.5 * 2 ^ k)); end, end
        ";
    let json = recorded_by_scripted_clock(&folder, script);
    let of = |name: &str| {
        exponent(json["functions"].as_array().expect("rows").iter().find(|row| row["function"] == name))
    };
    let (pairs, once) = (of("pairs"), of("once"));
    assert!((pairs - 2.0).abs() < 0.02 && (once - 1.0).abs() < 0.02, "{pairs}, {once}");
}

#[test]
fn callers_with_quadratic_and_with_linear_calls_are_distinguished() {
    let Some(folder) = octave("growth_by_caller") else { return };
    let script = "1;
        function work (x, turns) pause (1e-7 * numel (x) * turns); end
        function linear (x) work (x, 12); end
        function square (x) work (x, numel (x)); end
        for k = 4:8 for again = 1:9 linear (ones (1, 1.5 * 2 ^ k)); square (ones (1, 1.5 * 2 ^ k)); end, end
        ";
    let json = recorded_by_scripted_clock(&folder, script);
    let of = |caller: &str| {
        let mut arcs = json["arcs"].as_array().expect("arcs").iter();
        exponent(arcs.find(|arc| arc["caller"] == caller && arc["callee"] == "work"))
    };
    let (linear, square) = (of("linear"), of("square"));
    assert!((linear - 1.0).abs() < 0.02 && (square - 2.0).abs() < 0.02, "{linear}, {square}");
    let report = text(&run(&folder, TREERING, &["report", "--callgraph"]).stdout);
    for caller in ["called by linear [", "called by square ["] {
        assert!(report.lines().any(|line| line.contains(caller) && line.contains("grows as n^")), "{report}");
    }
}

#[test]
fn a_recording_survives_the_death_of_octave() {
    let Some(folder) = octave("killed") else { return };
    std::fs::write(folder.join("crash.m"), "for i = 1:9\n  sin (i);\nend\nkill (getpid (), 9);\n")
        .expect("written");
    let crashed = run(&folder, TREERING, &["octave", "--lines", "-o", "crash.trg", "crash.m"]);
    let signal = std::os::unix::process::ExitStatusExt::signal(&crashed.status);
    assert_eq!(signal, Some(9), "{}", text(&crashed.stderr));
    let report = text(&run(&folder, TREERING, &["report", "crash.trg"]).stdout);
    let row = report.lines().find(|line| line.ends_with(" sin (builtin)"));
    assert!(row.is_some_and(|row| row.split_whitespace().any(|word| word == "9")), "{report}");
    let lines = text(&run(&folder, TREERING, &["report", "crash.trg", "--lines", "crash"]).stdout);
    // Total and self time, hits, the number of the line, its text; below it what it called.
    let second = lines
        .lines()
        .position(|line| line.split_whitespace().skip(2).collect::<Vec<_>>() == ["9", "2", "sin", "(i);"]);
    let second = second.unwrap_or_else(|| panic!("{lines}"));
    assert!(
        lines.lines().nth(second + 1).is_some_and(|line| line.ends_with("→ sin (builtin), 9 calls")),
        "{lines}"
    );
    let script = "1;\nfunction r = step (x)\n  r = x + 1;\nend\nx = 0;\nfor i = 1:500\n  x = step (x);\nend\nfclose (fopen ('ready', 'w'));\nwhile true\n  x = step (x);\nend\n";
    std::fs::write(folder.join("loop.m"), script).expect("written");
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let _ = std::fs::remove_file(folder.join("ready"));
        let mut child = treering_command()
            .args(["octave", "loop.m"])
            .current_dir(&folder)
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it runs");
        let begun = Instant::now();
        while !folder.join("ready").exists() && begun.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_millis(20));
        }
        kill(Pid::from_raw(child.id() as i32), signal).expect("it runs");
        child.wait().expect("it ends");
        let report = run(&folder, TREERING, &["report", "treering.trg", "--json"]);
        let json: serde_json::Value = serde_json::from_slice(&report.stdout).expect("JSON");
        assert!(json.to_string().contains("\"step\""), "{signal}: {json}");
    }
}

#[test]
fn a_script_may_profile_another_one() {
    let Some(folder) = octave("nested") else { return };
    std::fs::write(folder.join("inner.m"), "x = cos (1);\n").expect("written");
    // As a word of a shell, in a text of Octave.
    let treering = quoted(TREERING).replace('\'', "''");
    let outer = format!("status = system ('{treering} octave -q inner.m');\nexit (status);\n");
    std::fs::write(folder.join("outer.m"), outer).expect("written");
    let output = run(&folder, TREERING, &["octave", "-q", "outer.m"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let files = std::fs::read_dir(&folder).expect("a folder").flatten();
    let profiles = files.filter(|file| file.path().extension().is_some_and(|name| name == "trg")).count();
    assert_eq!(profiles, 2, "each has a file of its own");
}

#[test]
fn a_second_copy_of_the_library_is_refused_by_name() {
    let Some(folder) = octave("copies") else { return };
    std::fs::copy(folder.join("__treering__.mex"), folder.join("second.mex")).expect("copied");
    let text = evaluate(
        &folder,
        "__treering__ ('on'); try, second ('on'); catch e, disp (e.message); end\nsin (1); __treering__ ('off');
        S = __treering__ ('info'); disp ({S.FunctionTable.FunctionName});",
    );
    assert!(text.contains("execute_user_function") && text.contains("has hooked it already"), "{text}");
    assert!(text.contains("sin"), "the first goes on: {text}");
}

#[test]
fn switching_within_functions_leaves_whole_profiles() {
    let Some(folder) = octave("switching") else { return };
    let text = evaluate(
        &folder,
        "1;
        function begin () __treering__ ('on'); sin (1); end
        function finish () cos (1); __treering__ ('off'); tan (1); end
        function pause_in () __treering__ ('off'); tan (1); __treering__ ('resume'); exp (1); end
        begin (); sin (2); pause_in (); sin (3); finish (); tan (2); clear all; clear __treering__; sin (4);
        S = __treering__ ('info');
        for at = 1:numel (S.FunctionTable) printf ('%s=%d ', S.FunctionTable(at).FunctionName, S.FunctionTable(at).NumCalls); end
        __treering__ ('clear'); S = __treering__ ('info'); disp (size (S.FunctionTable));",
    );
    for expected in ["sin=3 ", "exp=1 ", "pause_in=1 ", "0   1"] {
        assert!(text.contains(expected), "{expected} in {text}");
    }
    assert!(!text.contains("tan"), "{text}");
}

#[test]
fn time_that_passes_while_off_belongs_to_no_function() {
    let Some(folder) = octave("off") else { return };
    let text = evaluate(
        &folder,
        "1;
        function stop () __treering__ ('off'); end
        __treering__ ('on'); stop (); pause (0.5); __treering__ ('resume'); sin (1); __treering__ ('off');
        S = __treering__ ('details'); printf ('%g', sum ([S.FunctionTable.SelfTime]));",
    );
    let seconds: f64 = text.trim().parse().expect("a number");
    assert!(seconds < 0.4, "{seconds} s, of which 0.5 passed while it was off");
}

#[test]
fn statistics_of_arcs_are_those_of_the_report() {
    let Some(folder) = octave("statistics") else { return };
    let listing = evaluate(
        &folder,
        "1;
        function r = work (n) r = 0; for i = 1:n r += sqrt (i); end, end
        function r = depth (n) if n == 0 r = work (2); else r = depth (n - 1); end, end
        function few () for n = [1, 40, 400] work (n); end, end
        function many () few (); for n = 1:30 work (20); end, end
        __treering__ ('on');
        many (); few (); work (9); for n = 1:4 depth (n); end
        __treering__ ('off');
        __treering__ ('save', 'saved.trg');
        S = __treering__ ('details'); names = {S.FunctionTable.FunctionName};
        one = @(kind, from, to, n, A) printf ('%s\\t%s\\t%s\\t%d\\t%d\\t%.0f\\t%.0f\\t%.0f\\t%.0f\\t%.0f\\n', kind, from, to, n, A.NumTimed, 1e9 * [A.MeanTime, A.CalmMeanTime, A.LeastTime, A.GreatestTime, A.StdTime]);
        for A = S.Arcs', one ('arc', names{A.Caller}, names{A.Callee}, A.NumCalls, A); end
        for A = S.TopLevel.Arcs', one ('arc', '', names{A.Callee}, A.NumCalls, A); end
        for F = S.FunctionTable', one ('function', '', F.FunctionName, F.NumCalls, F); end",
    );
    let report = run(&folder, TREERING, &["report", "saved.trg", "--callgraph", "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&report.stdout).expect("JSON");
    let mut compared = BTreeMap::new();
    for line in listing.lines() {
        let columns: Vec<&str> = line.split('\t').collect();
        let [kind, caller, callee, calls, timed, mean, calm, least, greatest, deviation] = columns[..] else {
            panic!("{line} in {listing}")
        };
        let rows = json[if kind == "arc" { "arcs" } else { "functions" }].as_array().expect("rows");
        let is_it = |row: &&serde_json::Value| match kind {
            "arc" => row["callee"] == callee && row["caller"].as_str().unwrap_or("") == caller,
            _ => row["function"] == callee,
        };
        let row = rows.iter().find(is_it).unwrap_or_else(|| panic!("{line} is not in {json}"));
        assert_eq!(row["calls"].as_i64().expect("calls"), number(calls), "{line}");
        let theirs = &row["statistics"];
        assert_eq!(theirs["timed"].as_i64(), Some(number(timed)), "{line}");
        let keys = ["mean", "calm_mean", "least", "greatest", "deviation"];
        for (key, ours) in keys.into_iter().zip([mean, calm, least, greatest, deviation]) {
            match theirs[key].as_f64() {
                Some(ns) => {
                    let ours: f64 = ours.parse().unwrap_or_else(|_| panic!("{key} of {line}"));
                    // The length of a tick is known better with time, by less than this.
                    assert!((ours - ns).abs() <= 1.5 + 2e-3 * ns, "{key}: {ours} and {ns} of {line}");
                }
                None => assert_eq!(ours, "NaN", "{key} of {line}"),
            }
        }
        compared.insert((kind, caller, callee), number(timed));
    }
    // `work` was called by `few` in two contexts, which are two nodes.
    assert_eq!(compared[&("arc", "few", "work")], 6);
    assert_eq!((compared[&("arc", "", "depth")], compared[&("function", "", "depth")]), (4, 14));
    assert_eq!(compared[&("arc", "depth", "depth")], 10);
    assert!(compared.len() > 10, "{compared:?}");
}

#[test]
fn top_level_has_the_time_that_no_function_took() {
    let Some(folder) = octave("toplevel") else { return };
    let text = evaluate(
        &folder,
        "1;
        function wait () pause (0.4); end
        for kind = {'graph', 'flat'}
          __treering__ ('on', kind{1}, '-ignore', 'pause');
          wait (); pause (0.1); __treering__ ('off'); pause (0.5); __treering__ ('resume'); pause (0.1);
          __treering__ ('off'); pause (0.5);
          S = __treering__ ('details');
          names = {S.FunctionTable.FunctionName};
          printf ('%g %g %d\\n', S.TopLevel.SelfTime, S.FunctionTable(strcmp (names, 'wait')).SelfTime, any (strcmp (names, '#toplevel')));
        end
        __treering__ ('on'); __treering__ ('clear'); __treering__ ('off'); __treering__ ('clear');
        S = __treering__ ('details'); printf ('%g', S.TopLevel.SelfTime);",
    );
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    for line in &lines[..2] {
        let seconds: Vec<f64> = line.split(' ').map(|word| word.parse().expect("a number")).collect();
        assert!((0.2..0.55).contains(&seconds[0]), "0.2 s while it was on and outside of functions: {text}");
        assert!((0.4..0.6).contains(&seconds[1]), "{text}");
        assert_eq!(seconds[2], 0.0, "it is no function: {text}");
    }
    assert_eq!(lines[2], "0", "nothing is left of what was forgotten");
}

#[test]
fn the_printed_part_is_chosen_by_words() {
    let Some(folder) = octave("words") else { return };
    let text = evaluate(
        &folder,
        "1;
        function b_once () pause (0.05); end
        function a_often () end
        __treering__ ('on');
        b_once (); for i = 1:5 a_often (); end
        __treering__ ('off', 'graph');
        for words = {{}, {'graph'}, {'flat'}, {'flat', '-sort', 'calls', '-statistics'}, {'flat', '-sort', 'name'}, {'-sort', 'total'}}
          puts (__treering__ ('print', words{1}{:})); puts (\"\\f\");
        end
        __treering__ ('on', 'flat'); b_once ();
        puts (__treering__ ('print', 'graph')); puts (\"\\f\");
        disp (__treering__ ('status').ProfilerStatus);
        for wrong = {{'print', 'grap'}, {'info', 'flat'}, {'off', 'all'}}
          try, x = __treering__ (wrong{1}{:}), catch e, disp (e.message); end
        end",
    );
    let printed: Vec<&str> = text.split('\u{c}').collect();
    let [usual, graph, flat, by_calls, by_name, by_total, of_flat, rest] = printed[..] else {
        panic!("{text}")
    };
    // Digits differ: what a tick takes is known better with time.
    let names = |text: &str| text.chars().filter(|c| !c.is_ascii_digit() && *c != ' ').collect::<String>();
    assert_eq!(names(usual), names(graph));
    assert!(names(graph).starts_with(&names(flat)), "{text}");
    assert!(graph.contains("call graph") && !flat.contains("call graph"), "{text}");
    let rows = |listing: &str| -> Vec<String> {
        let table = listing.lines().skip(2).take_while(|line| !line.is_empty());
        table
            .map(|line| {
                line.split_whitespace().rev().find(|word| !word.starts_with('(')).unwrap_or("").to_owned()
            })
            .collect()
    };
    assert_eq!(rows(by_calls), ["a_often", "b_once", "pause", "#toplevel"], "{by_calls}");
    assert_eq!(rows(by_name), ["a_often", "b_once", "pause", "#toplevel"], "{by_name}");
    assert_eq!(rows(by_total), ["b_once", "pause", "a_often", "#toplevel"], "{by_total}");
    assert_eq!(rows(flat), ["pause", "b_once", "a_often", "#toplevel"], "{flat}");
    assert!(by_calls.contains("calm ms") && !by_name.contains("calm ms"), "{by_calls}");
    // The top level is a block of its own, and a caller.
    let words = |line: &str| line.split_whitespace().skip(1).map(str::to_owned).collect::<Vec<_>>();
    let below = graph.split("% time").nth(1).expect("a graph");
    let blocks: Vec<&str> = below.split("-----\n").collect();
    assert!(blocks[0].contains("#toplevel\n") && blocks[0].contains("1/1      b_once"), "{graph}");
    assert!(blocks[0].contains("5/5      a_often") && !blocks[0].contains("pause"), "{graph}");
    assert_eq!(words(blocks[1].lines().next().unwrap_or("")), ["1/1", "#toplevel"], "{graph}");
    assert!(of_flat.contains("no call graph: the profile is flat"), "{of_flat}");
    let said: Vec<&str> = rest.trim().lines().collect();
    assert_eq!(said[0], "off", "printing has stopped it: {rest}");
    assert!(said[1].contains("unknown option 'grap' of info"), "{rest}");
    assert!(said[2].contains("the result has all of it") && said[3].contains("graph or flat"), "{rest}");
}

#[test]
fn a_script_that_cannot_run_is_explained() {
    let Some(folder) = octave("missing") else { return };
    std::fs::write(folder.join("a.m"), "x = 1;\n").expect("written");
    let missing = run(&folder, TREERING, &["octave", "--octave", "no-such-octave", "a.m"]);
    assert_eq!(missing.status.code(), Some(127));
    assert!(
        text(&missing.stderr).contains("cannot run no-such-octave")
            && text(&missing.stderr).contains("hint: install")
    );
    let no_script = run(&folder, TREERING, &["octave", "nowhere.m"]);
    let said = text(&no_script.stderr);
    assert!(said.contains("there is no script nowhere.m") && said.contains("hint: name the file"), "{said}");
    assert!(text(&run(&folder, TREERING, &["octave", "a"]).stderr).contains("hint: there is a.m"));
    assert!(text(&run(&folder, TREERING, &["octave", "."]).stderr).contains(". is a directory"));
    let no_option = run(&folder, TREERING, &["octave", "--line", "a.m"]);
    assert_eq!(no_option.status.code(), Some(2));
    assert!(text(&no_option.stderr).contains("unexpected argument '--line'"), "{no_option:?}");
    let other = run(&folder, TREERING, &["octave", "--octave", "true", "a.m"]);
    assert!(
        text(&other.stderr).contains("Octave ended before it could be profiled"),
        "{}",
        text(&other.stderr)
    );
    assert!(!other.status.success());
}
