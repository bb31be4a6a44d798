//! Numbers of `treering octave` and of the package, held against Octave's own profiler and clocks
//! of the scripts.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::octave::{evaluate, octave};

const TREERING: &str = env!("CARGO_BIN_EXE_treering");

pub(crate) fn treering(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(TREERING);
    command.args(arguments).current_dir(folder).stdin(Stdio::null()).output().expect("it runs")
}

/// The JSON of a report.
fn report(folder: &Path, file: &str, arguments: &[&str]) -> Value {
    let output = treering(folder, &[&["report", file, "--json"], arguments].concat());
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)))
}

/// Runs a script under `treering octave`; what it prints.
fn profiled(folder: &Path, script: &str) -> String {
    std::fs::write(folder.join("script.m"), script).expect("written");
    let output = treering(folder, &["octave", "-q", "script.m"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The names of the functions of a profile, with their calls.
fn functions(folder: &Path, file: &str) -> Vec<(String, i64)> {
    let json = report(folder, file, &["--flat"]);
    let rows = json["functions"].as_array().expect("functions").iter();
    let row = |row: &Value| {
        (row["function"].as_str().unwrap_or("").to_owned(), row["calls"].as_i64().unwrap_or(-1))
    };
    let mut functions: Vec<_> = rows.map(row).collect();
    functions.sort();
    functions
}

/// The profiles of children in a folder.
fn profiles_of_children(folder: &Path) -> Vec<String> {
    let files = std::fs::read_dir(folder).expect("a folder").flatten();
    let names = files.map(|file| file.file_name().to_string_lossy().into_owned());
    names
        .filter(|name| name.starts_with("treering.") && name.ends_with(".trg") && name != "treering.trg")
        .collect()
}

const WORK: &str = "1;
function r = work (x)
  r = sum (sqrt (1:1000 * x));
end
";

#[test]
fn the_profile_of_a_script_ends_with_the_script() {
    let Some(folder) = octave("end_of_script") else { return };
    profiled(&folder, "x = 1 + 1;\n");
    assert_eq!(functions(&folder, "treering.trg"), [("script".to_owned(), 1)]);
    // Functions of the user's that Octave calls when it ends are part of it.
    profiled(
        &folder,
        "1;\nfunction bye () sin (1); end\nfunction cleaned () cos (1); end\natexit ('bye');\nguard = onCleanup (@() cleaned ());\nexit (0);\n",
    );
    let names: Vec<String> = functions(&folder, "treering.trg").into_iter().map(|(name, _)| name).collect();
    let expected =
        ["anonymous@script.m:5:20", "atexit", "bye", "cleaned", "cos", "onCleanup", "quit", "script", "sin"];
    assert_eq!(names, expected);
}

#[test]
fn a_forked_child_has_its_own_time_and_no_other() {
    let Some(folder) = octave("forked") else { return };
    let script = format!(
        "{WORK}pid = fork ();
        if (pid == 0)
          t = tic (); for i = 1:60, work (i); end, printf ('%.6f ', toc (t));
          if (fork () == 0) work (7); work (8); exit (0); end
          exit (0);
        end
        t = tic (); waitpid (pid); printf ('%.6f', toc (t));"
    );
    let said = profiled(&folder, &script);
    let clocks: Vec<f64> = said.split(' ').map(|word| word.parse().expect("a number")).collect();
    let seconds = |file: &str, name: &str| -> (i64, f64) {
        let json = report(&folder, file, &["--flat"]);
        let rows = json["functions"].as_array().expect("functions");
        let row =
            rows.iter().find(|row| row["function"] == name).unwrap_or_else(|| panic!("{name} in {json}"));
        (row["calls"].as_i64().expect("calls"), row["total_cost"].as_f64().expect("ns") / 1e9)
    };
    let children = profiles_of_children(&folder);
    assert_eq!(children.len(), 2, "{children:?}");
    let is_outer = |file: &&String| seconds(file, "work").0 == 60;
    let outer = children.iter().find(is_outer).expect("the child");
    let inner = children.iter().find(|file| !is_outer(file)).expect("the grandchild");
    assert_eq!(seconds(inner, "work").0, 2);
    let (_, work) = seconds(outer, "work");
    assert!((0.8 * clocks[0]..=clocks[0] * 1.001).contains(&work), "{work} s of {}", clocks[0]);
    let (calls, script) = seconds(outer, "script");
    assert_eq!(calls, 0, "the parent has called it");
    assert!(script >= work, "{script} {work}");
    let (calls, waiting) = seconds("treering.trg", "waitpid");
    assert!(calls == 1 && (waiting - clocks[1]).abs() < 0.05 * clocks[1] + 0.01, "{waiting} {clocks:?}");
    for file in children.iter().map(String::as_str).chain(["treering.trg"]) {
        let said = treering(&folder, &["report", file]);
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        assert!(!said.contains("losses"), "{said}");
        // The time of one thread is no more than what has passed.
        let run = report(&folder, file, &["--flat"])["run"].clone();
        let number = |key: &str| run[key].as_f64().unwrap_or_else(|| panic!("{key} in {run}"));
        assert!(number("run_cost") <= number("wall_ns"), "{file}: {run}");
    }
}

#[test]
fn the_calm_mean_is_not_above_the_mean() {
    let Some(folder) = octave("calm") else { return };
    let said = evaluate(
        &folder,
        "1;
        function w (t) pause (t); end
        __treering__ ('on');
        w (0.2); w (0.11); w (0.06); for i = 1:20 w (0.005); end
        __treering__ ('off');
        S = __treering__ ('details'); F = S.FunctionTable(strcmp ({S.FunctionTable.FunctionName}, 'w'));
        printf ('%g %g', F.CalmMeanTime, F.MeanTime);",
    );
    let numbers: Vec<f64> = said.split(' ').map(|word| word.parse().expect("a number")).collect();
    assert!(numbers[0] <= numbers[1] && numbers[0] >= 0.005, "{said}");
}

/// Prints the tree that `profile ("info")` has, without the commands of the profiler.
const SHOW_TREE: &str = "
function show (nodes, names, depth)
  [~, order] = sort (names([nodes.Index]));
  for node = nodes(order)'
    if (! any (strcmp (names{node.Index}, {'profile', 'nargin', 'false', '__profiler_enable__', 'binary <'})) || depth > 0)
      printf ('%*s%s %d\\n', depth, '', names{node.Index}, node.NumCalls);
      show (node.Children, names, depth + 1);
    end
  end
end
function r = down (n) if (n == 0) r = 0; else r = 1 + down (n - 1); end, end
function r = fib (n) if (n < 2) r = n; else r = fib (n - 1) + fib (n - 2); end, end
function r = even (n) if (n == 0) r = true; else r = odd (n - 1); end, end
function r = odd (n) if (n == 0) r = false; else r = even (n - 1); end, end
function r = ack (m, n) if (m == 0) r = n + 1; elseif (n == 0) r = ack (m - 1, 1); else r = ack (m - 1, ack (m, n - 1)); end, end
function r = mixed (n) r = 0; if (n > 0) mixed (n - 1); even (n); cellfun (@(k) mixed (k), {n - 2, n - 3}); end, end
function all_of_it () down (9); fib (7); even (6); ack (2, 2); mixed (4); end
";

#[test]
fn the_tree_of_recursive_functions_is_that_of_octave() {
    let Some(folder) = octave("tree") else { return };
    let own = format!(
        "1;{SHOW_TREE}profile on; all_of_it (); profile off; S = profile ('info'); show (S.Hierarchical, {{S.FunctionTable.FunctionName}}, 0);"
    );
    let ours = format!(
        "1;{SHOW_TREE}__treering__ ('on', '-operators'); all_of_it (); __treering__ ('off'); S = __treering__ ('info'); show (S.Hierarchical, {{S.FunctionTable.FunctionName}}, 0);"
    );
    // Anonymous functions have other names.
    let tree = |text: String| -> Vec<String> {
        let lines = text.lines().map(|line| match line.split_once("anonymous@") {
            Some((indent, rest)) => format!("{indent}anonymous {}", rest.rsplit(' ').next().unwrap_or("")),
            None => line.to_owned(),
        });
        lines.collect()
    };
    let (own, ours) = (tree(evaluate(&folder, &own)), tree(evaluate(&folder, &ours)));
    assert!(own.iter().any(|line| line.starts_with("          down 1")), "{own:?}");
    assert_eq!(ours, own);
}

#[test]
fn lines_state_the_functions_they_called() {
    let Some(folder) = octave("lines") else { return };
    let script = "1;
function r = slow (i)
  pause (0.01); r = i;
end
function r = fast (i)
  r = i;
end
function outer (n)
  r = 0; passed = 0;
  for i = 1:n
    t = tic (); r += slow (i);
    passed += toc (t);
    r += fast (i);
  end
  printf ('%.6f', passed);
end
outer (20);
";
    std::fs::write(folder.join("script.m"), script).expect("written");
    let output = treering(&folder, &["octave", "-q", "--lines", "script.m"]);
    let clock: f64 = String::from_utf8_lossy(&output.stdout).parse().expect("a number");
    let json = report(&folder, "treering.trg", &["--lines", "outer"]);
    let line = |number: u64| {
        let lines = json["lines"].as_array().expect("lines");
        lines
            .iter()
            .find(|line| line["line"] == number)
            .unwrap_or_else(|| panic!("{number} in {json}"))
            .clone()
    };
    let call = |number: u64, name: &str| {
        let line = line(number);
        let calls = line["calls"].as_array().expect("calls").clone();
        calls.into_iter().find(|call| call["callee"] == name).unwrap_or_else(|| panic!("{name} in {line}"))
    };
    let slow = call(11, "slow");
    let seconds = slow["total_cost"].as_f64().expect("ns") / 1e9;
    assert_eq!(slow["calls"], 20);
    assert!((0.8 * clock..=clock * 1.001).contains(&seconds), "{seconds} s of {clock}");
    assert_eq!((call(13, "fast")["calls"].clone(), call(12, "toc")["calls"].clone()), (20.into(), 20.into()));
    // Lines 9 and 11 have two statements each.
    assert_eq!(
        (line(9)["hits"].clone(), line(11)["hits"].clone(), line(12)["hits"].clone()),
        (1.into(), 20.into(), 20.into())
    );
    let text = treering(&folder, &["report", "--lines", "outer"]);
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(text.contains("t = tic (); r += slow (i);") && text.contains("→ slow, 20 calls"), "{text}");
    // A text that was changed since is another one.
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(3600);
    let file = std::fs::File::options().append(true).open(folder.join("script.m")).expect("the script");
    file.set_modified(later).expect("it can be set");
    let changed = treering(&folder, &["report", "--lines", "outer"]);
    let said = String::from_utf8_lossy(&changed.stderr).into_owned();
    assert!(said.contains("it was changed after the run"), "{said}");
    assert!(!String::from_utf8_lossy(&changed.stdout).contains("r += slow"), "{said}");
}

/// The whole run was shown with the cost of measuring, and parts of it without.
#[test]
fn latency_is_without_the_cost_of_measuring() {
    let Some(folder) = octave("latency") else { return };
    let output = treering(&folder, &["octave", "--eval", "for i = 1:5000, sin (i); end"]);
    assert!(output.status.success(), "{output:?}");
    let cost = |options: &[&str]| {
        let report = treering(&folder, &[&["report", "--json"], options].concat());
        let report: serde_json::Value = serde_json::from_slice(&report.stdout).expect("it is JSON");
        report["run"]["run_cost"].as_f64().expect("a cost")
    };
    let (time, measured) = (cost(&[]), cost(&["--raw"]));
    assert!(time < measured, "{time} of {measured}");
    for (options, right) in [(&[][..], time), (&["--raw"], measured)] {
        let latency = cost(&[&["--metric", "latency"], options].concat());
        assert!((latency / right - 1.0).abs() < 1e-4, "{options:?}: {latency} for {right}");
    }
}

/// The lines of the new text were shown as those that had run.
#[test]
fn a_file_that_the_run_changes_is_named() {
    let Some(folder) = octave("rewritten") else { return };
    std::fs::write(folder.join("once.m"), "function once ()\n  sin (1);\nend\n").expect("written");
    let change = "once (); id = fopen ('once.m', 'w'); fputs (id, \"function once ()\\n\\n  cos (1);\\nend\\n\"); fclose (id);";
    let output = treering(&folder, &["octave", "--lines", "--eval", change]);
    assert!(output.status.success(), "{output:?}");
    let told = treering(&folder, &["report", "--lines", "once"]);
    let said = String::from_utf8_lossy(&told.stderr).into_owned();
    assert!(said.contains("once.m: it was changed during the run"), "{said}");
    let page = treering(&folder, &["view", "treering.trg", "-o", "page.html"]);
    let said = String::from_utf8_lossy(&page.stderr).into_owned();
    assert!(said.contains("1 source file was changed during the run"), "{said}");
}

#[test]
fn code_is_profiled_in_place_of_a_script() {
    let Some(folder) = octave("eval") else { return };
    let output =
        treering(&folder, &["octave", "--eval", "for i = 1:7 sin (i); end, disp ('last'); exit (5)"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), &output.stdout[..]), (Some(5), &b"last\n"[..]), "{said}");
    let functions = functions(&folder, "treering.trg");
    assert!(
        functions.contains(&("--eval".to_owned(), 1)) && functions.contains(&("sin".to_owned(), 7)),
        "{functions:?}"
    );
    let failed = treering(&folder, &["octave", "-q", "--eval", "error ('not so')"]);
    assert_eq!(failed.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&failed.stderr).contains("not so"));
}

#[test]
fn a_file_that_cannot_be_written_is_an_error_at_once() {
    let Some(folder) = octave("unwritable") else { return };
    std::fs::write(folder.join("script.m"), "disp ('it ran');\n").expect("written");
    let output = treering(&folder, &["octave", "-o", "/nowhere/at/all.trg", "script.m"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("cannot write /nowhere/at/all.trg") && !output.status.success(), "{said}");
    assert!(output.stdout.is_empty(), "Octave was not started");
    let said = evaluate(
        &folder,
        "try, __treering__ ('on', '-output', '/nowhere/at/all.trg'); disp ('no error'); catch e, disp (e.message); end
        disp (__treering__ ('status').ProfilerStatus)",
    );
    assert!(said.contains("cannot write /nowhere/at/all.trg") && said.contains("off"), "{said}");
}

#[test]
fn methods_of_classes_in_packages_have_the_package_once() {
    let Some(folder) = octave("methods") else { return };
    let said = evaluate(
        &folder,
        "__treering__ ('on'); m = containers.Map (); m('a') = 1; keys (m); __treering__ ('off');
        S = __treering__ ('info'); printf ('%s\\n', S.FunctionTable.FunctionName);",
    );
    let names: Vec<&str> = said.lines().collect();
    assert!(names.contains(&"@containers.Map") && names.contains(&"@containers.Map/keys"), "{said}");
    assert!(!names.iter().any(|name| name.matches("containers").count() > 1), "{said}");
}

#[test]
fn lines_and_sizes_are_printed_in_octave() {
    let Some(folder) = octave("printed") else { return };
    std::fs::write(folder.join("pairs.m"), "function r = pairs (v)\n  r = numel (v);\n  r = once (v);\nend\nfunction r = once (v)\n  r = v(1);\nend\n").expect("written");
    let said = evaluate(
        &folder,
        "__treering__ ('on', '-args', '-lines');
        for n = [10 20 40 80], for k = 1:6 pairs (1:n); end, end
        puts (__treering__ ('print')); puts (\"\\f\"); puts (__treering__ ('print', '-top', '1', 'flat')); puts (\"\\f\");
        S = __treering__ ('details'); F = S.FunctionTable(strcmp ({S.FunctionTable.FunctionName}, 'pairs'));
        printf ('%d ', F.ExecutedLines(:, 1:2)', F.ArgumentSizes(:, 1:2)');",
    );
    let parts: Vec<&str> = said.split('\u{c}').collect();
    let [all, top, fields] = parts[..] else { panic!("{said}") };
    assert!(
        all.lines().any(|line| line.split_whitespace().collect::<Vec<_>>()[..]
            == ["64", "to", "127", "6", line.split_whitespace().last().unwrap_or("")]),
        "{all}"
    );
    assert!(all.contains("r = once (v);") && all.contains("-> pairs>once, 24 calls"), "{all}");
    assert!(top.contains("other functions") && !top.contains("call graph"), "{top}");
    assert_eq!(fields.trim(), "2 24 3 24 4 24 8 6 16 6 32 6 64 6");
}

#[test]
fn forked_processes_are_part_of_the_profile_in_octave() {
    let Some(folder) = octave("fork_in_octave") else { return };
    let said = evaluate(
        &folder,
        "1;
        function r = work (x) r = sum (x); end
        __treering__ ('on');
        pid = fork (); if (pid == 0) for i = 1:5 work (i); end, exit (0); end
        waitpid (pid); work (1);
        __treering__ ('off');
        S = __treering__ ('details'); F = S.FunctionTable(strcmp ({S.FunctionTable.FunctionName}, 'work'));
        printf ('%d', F.NumCalls);",
    );
    assert_eq!(said, "6");
}

#[test]
fn workers_of_the_package_parallel_are_part_of_the_profile() {
    let Some(folder) = octave("workers") else { return };
    let loads = Command::new("octave-cli").args(["--norc", "--eval", "pkg load parallel"]).output();
    if !loads.is_ok_and(|output| output.status.success()) {
        return crate::skip("there is no package parallel for Octave");
    }
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../hooks/octave/inst");
    let package = package.canonicalize().expect("the package").display().to_string();
    let here = folder.display();
    std::fs::write(folder.join("work.m"), &WORK[3..]).expect("written");
    let said = evaluate(
        &folder,
        &format!(
            "pkg load parallel; warning ('off', 'all'); addpath ('{here}'); addpath ('{package}');
            treering on
            r = parcellfun (2, @work, {{1, 2, 3, 4}}, 'VerboseLevel', 0);
            treering off
            S = treering ('info'); F = S.FunctionTable(strcmp ({{S.FunctionTable.FunctionName}}, 'work'));
            printf ('%d\\n', F.NumCalls);
            r = parcellfun (2, @work, {{1, 2, 3, 4}}, 'VerboseLevel', 0);
            S = treering ('info'); F = S.FunctionTable(strcmp ({{S.FunctionTable.FunctionName}}, 'work'));
            printf ('%d\\n', F.NumCalls);"
        ),
    );
    assert_eq!(said, "4\n4\n", "calls while it was off are not in it");
}
