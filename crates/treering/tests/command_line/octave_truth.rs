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
