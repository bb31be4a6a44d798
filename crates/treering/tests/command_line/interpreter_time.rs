//! Profiles of Octave and SWI-Prolog that keep when time passed, and the marks of scripts and programs.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::octave::{library, octave};
use crate::prolog::Prolog;

const TREERING: &str = env!("CARGO_BIN_EXE_treering");

/// The output of a command, which must succeed.
fn treering(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new(TREERING).args(arguments).current_dir(folder).output().expect("it runs");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{arguments:?}: {errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn json(folder: &Path, arguments: &[&str]) -> Value {
    serde_json::from_str(&treering(folder, &[&["report", "--json"], arguments].concat())).expect("JSON")
}

/// The self time of each function that has any.
fn self_times(folder: &Path, arguments: &[&str]) -> BTreeMap<String, u64> {
    let report = json(folder, &[&["--metric", "time"], arguments].concat());
    let row =
        |row: &Value| (row["function"].as_str().unwrap_or_default().to_owned(), row["self_cost"].as_u64());
    let rows = report["functions"].as_array().expect("a table").iter().map(row);
    let mut times = BTreeMap::new();
    for (function, time) in rows {
        *times.entry(function).or_insert(0) += time.expect("a time");
    }
    times.retain(|_, time| *time > 0);
    times
}

/// Times of parts that follow each other add up to those of the whole run, with and without the cost of measuring. The parts
/// meet some time after the first mark and the last one.
fn check_that_parts_add_up(folder: &Path, file: &str) {
    let timeline = json(folder, &["--timeline", file]);
    let marks = timeline["marks"].as_array().expect("marks");
    let after = |mark: Option<&Value>| {
        let time = mark.and_then(|mark| mark["time_ns"].as_u64()).expect("a mark");
        format!("{}ns", time + 2_000_000)
    };
    let cuts = [after(marks.first()), after(marks.last())];
    for options in [&[file][..], &[file, "--raw"]] {
        let whole = self_times(folder, options);
        for cut in &cuts {
            let mut sums = self_times(folder, &[options, &["--to", cut]].concat());
            for (function, time) in self_times(folder, &[options, &["--from", cut]].concat()) {
                *sums.entry(function).or_insert(0) += time;
            }
            assert_eq!(sums, whole, "{options:?} at {cut}");
        }
    }
}

fn marks(folder: &Path, file: &str) -> Vec<String> {
    let timeline = json(folder, &["--timeline", file]);
    let marks = timeline["marks"].as_array().expect("marks").iter();
    marks.map(|mark| mark["name"].as_str().expect("a name").to_owned()).collect()
}

const SCRIPT: &str = r#"1;
function fill (n)
  for i = 1:n
    rand (1, 30);
  end
end
function r = solve (n)
  r = 0;
  for i = 1:n
    r += sqrt (i);
  end
end
treering_mark ("fill");
fill (3000);
pause (0.03);
treering_mark ("two\nlines");
treering_mark ("");
treering_mark (repmat ("long ", 1, 60));
treering_mark ("solve");
solve (20000);
"#;

#[test]
fn octaves_time_is_kept_exactly_and_scripts_mark_their_phases() {
    let Some(folder) = octave("time") else { return };
    library();
    std::fs::write(folder.join("phases.m"), SCRIPT).expect("written");
    treering(&folder, &["octave", "-q", "-o", "phases.trg", "phases.m"]);
    check_that_parts_add_up(&folder, "phases.trg");
    let long = "long ".repeat(21);
    assert_eq!(marks(&folder, "phases.trg"), ["fill", "two\nlines", "", &long[..104], "solve"]);
    let fill = self_times(&folder, &["phases.trg", "--phase", "fill"]);
    assert!(
        fill.contains_key("fill") && fill["pause"] >= 20_000_000 && !fill.contains_key("solve"),
        "{fill:?}"
    );
    let solve = self_times(&folder, &["phases.trg", "--phase", "solve"]);
    assert!(solve.contains_key("solve") && !solve.contains_key("pause"), "{solve:?}");
    // A mark is no function of the script.
    let whole = self_times(&folder, &["phases.trg"]);
    assert!(!whole.keys().any(|function| function.contains("treering")), "{whole:?}");
    assert!(treering(&folder, &["report", "--timeline", "phases.trg"]).contains("octave-cli"));

    treering(&folder, &["octave", "-q", "--no-time", "-o", "without.trg", "phases.m"]);
    let errors = refused(&folder, &["report", "--timeline", "without.trg"]);
    assert!(errors.contains("does not know when its costs arose"), "{errors}");
}

/// The errors of a command that must fail.
fn refused(folder: &Path, arguments: &[&str]) -> String {
    let outcome = Command::new(TREERING).args(arguments).current_dir(folder).output().expect("it runs");
    assert_eq!(outcome.status.code(), Some(1), "{outcome:?}");
    String::from_utf8_lossy(&outcome.stderr).into_owned()
}

#[test]
fn marks_of_an_octave_that_is_not_profiled_do_nothing() {
    let Some(folder) = octave("marks") else { return };
    let function = include_str!("../../hooks/treering_mark.m");
    std::fs::write(folder.join("treering_mark.m"), function).expect("written");
    crate::octave::evaluate(&folder, "treering_mark (\"load\"); treering_mark (\"\");");
}

#[test]
fn prologs_time_is_kept_exactly_and_programs_mark_their_phases() {
    let Some(prolog) = Prolog::new("time") else { return };
    let folder = &prolog.folder;
    let program = "main :- treering_mark(fill), fill(3000), sleep(0.03), treering_mark('two\\nlines'), treering_mark(''),
                           treering_mark(7), thread_create(solve(14), Id), solve(14), thread_join(Id).
         fill(0) :- !.
         fill(N) :- one(N), N1 is N-1, fill(N1).
         one(N) :- _ is sqrt(N).
         solve(0) :- !.
         solve(N) :- N1 is N-1, solve(N1), solve(N1).";
    std::fs::write(folder.join("phases.pl"), program).expect("written");
    for (clock, file) in [("cpu", "cpu.trg"), ("wall", "wall.trg")] {
        treering(folder, &["prolog", "--ports", "-q", "--clock", clock, "-o", file, "phases.pl"]);
        check_that_parts_add_up(folder, file);
        assert_eq!(marks(folder, file), ["fill", "two\nlines", "", "7"]);
        let fill = self_times(folder, &[file, "--phase", "fill"]);
        assert!(fill.contains_key("one/1") && fill["main/0"] >= 20_000_000, "{fill:?}");
        let solve = self_times(folder, &[file, "--phase", "7"]);
        assert!(solve.contains_key("solve/1") && !solve.contains_key("fill/1"), "{solve:?}");
        let threads = json(folder, &["--timeline", file])["threads"].as_array().map(Vec::len);
        assert_eq!(threads, Some(2), "the threads of the goal and of thread_create/3");
    }
    // Processor time is kept as totals.
    let errors = refused(folder, &["report", "cpu.trg", "--metric", "cpu", "--from", "50%"]);
    assert!(errors.contains("cpu is known of the whole run only"), "{errors}");
    assert!(errors.contains("there are: time"), "{errors}");
}

#[test]
fn a_program_may_have_a_predicate_with_the_name_of_ours() {
    let Some(prolog) = Prolog::new("own_mark") else { return };
    let program = "treering_mark(X) :- write(own(X)), nl.\nmain :- treering_mark(a).";
    std::fs::write(prolog.folder.join("own.pl"), program).expect("written");
    let text = treering(&prolog.folder, &["prolog", "-q", "own.pl"]);
    assert!(text.contains("own(a)"), "{text}");
}
