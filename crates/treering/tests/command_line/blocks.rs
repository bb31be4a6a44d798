//! `treering report --blocks`, and the other views, of programs executed in single steps.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;
use treering_formats::trg;
use treering_profile::Profile;
use treering_testing::SharedRuns;
use treering_testing::programs::{CONTROL_FLOW, LEAF_THREADS, OBJECTS, REWRITTEN, installed};
use treering_testing::single_step::{StepCounts, Stepped};

use treering_report::grouped;

use crate::session::{Session, words};
use crate::skip;

/// The counts of a program, with nothing recovered or resolved, in a file of the session.
fn stepped(session: &Session, program: &Path, arguments: &[&str]) -> (PathBuf, Profile) {
    static RUNS: SharedRuns<Profile> = SharedRuns::new();
    let profile = RUNS.get(program, arguments, || {
        let mut counts = StepCounts::new(48);
        let ended = Stepped::new(program).arguments(arguments).run(&mut counts).expect("it may be traced");
        assert_eq!(ended.exit_status, Some(0));
        counts.finish()
    });
    let path = session.path("counts.trg");
    let mut file = Vec::new();
    trg::write(&profile, &mut file).expect("memory takes it");
    std::fs::write(&path, file).expect("the session takes files");
    (path, profile)
}

fn json(session: &Session, arguments: &[&str]) -> Value {
    serde_json::from_str(&session.output(arguments)).expect("JSON is printed")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("paths of the tests are UTF-8")
}

/// By function, what the flat profile says: self cost and calls.
fn flat(session: &Session, path: &Path) -> BTreeMap<String, (u64, u64)> {
    let view = json(session, &["report", text(path), "--flat", "--json"]);
    let rows = view["functions"].as_array().expect("functions are listed");
    let row = |row: &Value| {
        let name = row["function"].as_str().unwrap_or_default().to_owned();
        (name, (row["self_cost"].as_u64().unwrap_or(0), row["calls"].as_u64().unwrap_or(0)))
    };
    rows.iter().map(row).collect()
}

#[test]
fn functions_of_a_counted_program_have_their_exact_calls_and_instructions() {
    let session = Session::new();
    let program = CONTROL_FLOW.build().expect("it compiles");
    let (path, profile) = stepped(&session, &program, &[]);
    let flat = flat(&session, &path);
    let calls = |function: &str| flat[function].1;
    assert_eq!((calls("leaf"), calls("choose"), calls("apply")), (300, 600, 90));
    assert_eq!((calls("twice"), calls("thrice"), calls("maybe_jump")), (60, 30, 20));
    assert_eq!((calls("even"), calls("odd"), calls("main")), (21, 21, 1));
    // Functions of different modules may have one name, so they are added up by row.
    let view = json(&session, &["report", text(&path), "--flat", "--json"]);
    let rows = view["functions"].as_array().expect("functions are listed").iter();
    let whole: u64 = rows.map(|row| row["self_cost"].as_u64().unwrap_or(0)).sum();
    assert_eq!(whole, profile.code.translated_instructions());
}

#[test]
fn blocks_show_instructions_lines_and_the_ways_of_branches() {
    let session = Session::new();
    let program = CONTROL_FLOW.build().expect("it compiles");
    let (path, _) = stepped(&session, &program, &[]);
    let view = json(&session, &["report", text(&path), "--blocks", "factorial", "--json"]);
    let blocks = view["blocks"].as_array().expect("blocks are listed");
    let executed: u64 = blocks
        .iter()
        .map(|block| {
            let length = block["instructions"].as_array().map_or(0, Vec::len) as u64;
            length * block["executions"].as_u64().unwrap_or(0)
        })
        .sum();
    assert_eq!(Some(executed), view["instructions_executed"].as_u64());
    assert_eq!(executed, flat(&session, &path)["factorial"].0);
    let instructions = blocks.iter().flat_map(|block| block["instructions"].as_array().expect("a list"));
    for instruction in instructions {
        assert!(instruction["text"].is_string(), "{instruction}");
        assert!(instruction["file"].as_str().is_some_and(|file| file.ends_with("control_flow.c")));
    }
    for block in blocks {
        if let (Some(taken), Some(not_taken)) = (block["taken"].as_u64(), block["not_taken"].as_u64()) {
            assert_eq!(Some(taken + not_taken), block["executions"].as_u64());
        }
    }
    let shown = session.output(&["report", text(&path), "--blocks", "maybe_jump"]);
    assert!(shown.contains("not taken 10") && shown.contains("control_flow.c:"), "{shown}");
    assert!(shown.contains("longjmp") && shown.contains("ret"), "{shown}");
}

#[test]
fn the_blocks_of_the_whole_program_add_up_to_all_its_instructions() {
    let session = Session::new();
    let program = CONTROL_FLOW.build().expect("it compiles");
    let (path, profile) = stepped(&session, &program, &[]);
    let view = json(&session, &["report", text(&path), "--blocks", "--json"]);
    let rows = view["blocks"].as_array().expect("blocks are listed");
    let number = |row: &Value, key: &str| row[key].as_u64().unwrap_or_else(|| panic!("{key}: {row}"));
    let costs: Vec<u64> = rows.iter().map(|row| number(row, "instructions_executed")).collect();
    assert!(costs.is_sorted_by(|one, next| one >= next));
    let all = profile.code.translated_instructions();
    assert_eq!(view["run_instructions"], all);
    assert_eq!(costs.iter().sum::<u64>(), all);
    assert_eq!(number(rows.last().expect("there are some"), "running_sum"), all);
    for row in rows {
        assert_eq!(
            number(row, "executions") * number(row, "instructions"),
            number(row, "instructions_executed")
        );
    }
    // Each block of a function is among them, with the same executions.
    let one = json(&session, &["report", text(&path), "--blocks", "factorial", "--json"]);
    for block in one["blocks"].as_array().expect("a list") {
        let same = |row: &&Value| row["function"] == "factorial" && row["address"] == block["address"];
        let row = rows.iter().find(same).unwrap_or_else(|| panic!("{block}"));
        assert_eq!(row["executions"], block["executions"]);
        assert_eq!(row["line"], block["instructions"][0]["line"]);
    }
    let top = session.output(&["report", text(&path), "--blocks", "--top", "3"]);
    let lines: Vec<&str> = top.lines().collect();
    assert_eq!(lines.len(), 7, "{top}");
    assert!(lines[2].ends_with("instructions in all    %  cumulative %  block"), "{top}");
    let rest = costs[3..].iter().sum::<u64>();
    let rest = format!("… {} blocks more, together {}", grouped(rows.len() as u64 - 3), grouped(rest));
    assert!(lines[6].starts_with(&rest), "{top}");
}

#[test]
fn counts_of_code_are_not_shown_by_parts_of_stacks() {
    let session = Session::new();
    let (path, _) = stepped(&session, &CONTROL_FLOW.build().expect("it compiles"), &[]);
    let refused = session.run(&words(&["report", text(&path), "--blocks", "--focus", "main"]));
    assert_ne!(refused.shell_status(), 0);
    assert!(refused.stderr.contains("--focus chooses stacks, and --blocks"), "{}", refused.stderr);
    // A file where a function should be named.
    let refused = session.run(&words(&["report", "--blocks", text(&path)]));
    assert_ne!(refused.shell_status(), 0);
}

#[test]
fn lines_have_the_executions_that_the_compiler_counts() {
    let Some(gcov) = installed("gcov") else {
        skip("gcov is not installed");
        return;
    };
    let session = Session::new();
    let covered = CONTROL_FLOW.variant("covered", &["--coverage", "-O0"]).build().expect("it compiles");
    // The counts are of the same unoptimised code, with the compiler's counters in it.
    let (path, _) = stepped(&session, &covered, &[]);
    let calls = flat(&session, &path);
    let run = session.path("coverage");
    std::fs::create_dir(&run).expect("the session takes files");
    let ran = std::process::Command::new(&covered).env("GCOV_PREFIX", &run).output().expect("it runs");
    assert!(ran.status.success());
    let data = files_below(&run).into_iter().find(|file| file.extension().is_some_and(|e| e == "gcda"));
    let data = data.expect("the program writes its counts");
    let notes = covered.parent().map(files_below).unwrap_or_default();
    let notes = notes.into_iter().find(|file| file.extension().is_some_and(|e| e == "gcno"));
    let notes = notes.expect("the compiler writes notes");
    std::fs::copy(&notes, data.with_file_name(notes.file_name().expect("a file"))).expect("it is copied");
    let told = std::process::Command::new(gcov)
        .args(["--branch-probabilities", "--branch-counts"])
        .arg(&data)
        .current_dir(&run)
        .output()
        .expect("gcov runs");
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
    let listing = std::fs::read_to_string(run.join("control_flow.c.gcov")).expect("gcov writes a listing");
    // function leaf called 300 returned 100% blocks executed 100%
    let counted: Vec<(&str, u64)> = listing
        .lines()
        .filter_map(|line| line.strip_prefix("function ")?.split_once(" called "))
        .filter_map(|(name, rest)| Some((name, rest.split(' ').next()?.parse().ok()?)))
        .collect();
    assert!(counted.len() >= 10, "{listing}");
    for (name, count) in counted {
        assert_eq!(calls[name].1, count, "{name}");
    }
}

fn files_below(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .flat_map(|entry| if entry.path().is_dir() { files_below(&entry.path()) } else { vec![entry.path()] })
        .collect()
}

#[test]
fn an_export_for_callgrind_has_instructions_and_jumps_and_is_read_back() {
    let session = Session::new();
    let program = CONTROL_FLOW.build().expect("it compiles");
    let (path, profile) = stepped(&session, &program, &[]);
    let exported = session.path("counts.callgrind");
    session.output(&["export", text(&path), "--to", "callgrind", "-o", text(&exported)]);
    let file = std::fs::read_to_string(&exported).expect("it was written");
    assert!(file.contains("positions: instr line\n") && file.contains("\njump="));
    let conditional =
        file.lines().filter_map(|line| line.strip_prefix("jcnd=")?.split(' ').next()?.split_once('/'));
    let ways: Vec<(u64, u64)> = conditional
        .map(|(taken, all)| (taken.parse().expect("a number"), all.parse().expect("a number")))
        .collect();
    assert!(ways.len() > 100 && ways.iter().all(|(taken, all)| taken <= all));
    let (back, before) = (flat(&session, &exported), flat(&session, &path));
    for function in ["leaf", "choose", "apply", "twice", "thrice", "factorial", "even", "odd", "main"] {
        assert_eq!(back[function], before[function], "{function}");
    }
    let Some(annotate) = installed("callgrind_annotate") else {
        skip("callgrind_annotate is not installed");
        return;
    };
    let output = std::process::Command::new(annotate).arg("--threshold=100").arg(&exported).output();
    let output = output.expect("it runs");
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let number = |line: &str| line.split_whitespace().next().map(|word| word.replace(',', ""));
    let totals = told.lines().find(|line| line.contains("PROGRAM TOTALS")).and_then(number);
    assert_eq!(totals, Some(profile.code.translated_instructions().to_string()), "{told}");
    let leaf = told.lines().find(|line| line.contains(":leaf [")).and_then(number);
    assert_eq!(leaf, Some(before["leaf"].0.to_string()), "{told}");
}

#[test]
fn valgrind_counts_the_same_calls() {
    let Some(valgrind) = installed("valgrind") else {
        skip("valgrind is not installed");
        return;
    };
    let session = Session::new();
    let program = CONTROL_FLOW.build().expect("it compiles");
    let (path, _) = stepped(&session, &program, &[]);
    let theirs = session.path("valgrind.callgrind");
    let output = std::process::Command::new(valgrind)
        .args(["--tool=callgrind", "-q", "--dump-instr=yes"])
        .arg(format!("--callgrind-out-file={}", text(&theirs)))
        .arg(&program)
        .output()
        .expect("valgrind runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let (ours, theirs) = (flat(&session, &path), flat(&session, &theirs));
    for function in ["leaf", "choose", "twice", "thrice"] {
        assert_eq!(ours[function], theirs[function], "{function}");
    }
    // Callgrind charges linkage stubs to their callers; here they are functions like others.
    for function in ["maybe_jump", "main"] {
        assert_eq!(ours[function].1, theirs[function].1, "{function}");
    }
}

#[test]
fn generated_code_and_threads_have_blocks_too() {
    let session = Session::new();
    let (path, profile) = stepped(&session, &REWRITTEN.build().expect("it compiles"), &[]);
    let generated = profile.code.bytes.len();
    assert!(generated >= 2, "the bytes of generated code are kept");
    let shown = session.output(&["report", text(&path), "--blocks", r"\[unresolved in jit"]);
    assert!(shown.contains("mov eax, 0xb") && shown.contains("mov eax, 0x16"), "{shown}");
    let (path, profile) = stepped(&session, &LEAF_THREADS.build().expect("it compiles"), &["2", "30"]);
    let tid = profile.threads[1].tid.to_string();
    let executions = |options: &[&str]| {
        let all = [&["report", text(&path), "--blocks", "leaf", "--json"], options].concat();
        json(&session, &all)["blocks"][0]["executions"].as_u64()
    };
    assert_eq!(executions(&[]), Some(60));
    assert_eq!(executions(&["--thread", &tid]), Some(30));
}

#[test]
fn virtual_calls_go_where_the_objects_are() {
    let session = Session::new();
    let program = OBJECTS.variant("static", &["-static-pie"]).build().expect("it compiles");
    let (path, _) = stepped(&session, &program, &[]);
    let view = json(&session, &["report", text(&path), "--blocks", "main", "--json"]);
    let blocks = view["blocks"].as_array().expect("blocks are listed");
    let exits = blocks.iter().flat_map(|block| block["exits"].as_array().expect("a list"));
    let mut virtual_calls = BTreeMap::new();
    for exit in exits.filter(|exit| exit["kind"] == "indirect call") {
        let function = exit["function"].as_str().unwrap_or_default().to_owned();
        *virtual_calls.entry(function).or_insert(0) += exit["count"].as_u64().unwrap_or(0);
    }
    let area = |shape: &str| virtual_calls.get(&format!("{shape}::area() const")).copied();
    assert_eq!(
        (area("Square"), area("Circle"), area("Rectangle")),
        (Some(20), Some(12), Some(8)),
        "{virtual_calls:?}"
    );
}

#[test]
fn a_sampled_profile_has_no_blocks_and_says_so() {
    let session = Session::new();
    std::fs::write(session.path("stacks.folded"), "main;work 5\n").expect("the session takes files");
    let outcome = session.run(&["report", text(&session.path("stacks.folded")), "--blocks", "work"]);
    assert_eq!(outcome.shell_status(), 1);
    assert!(outcome.error().contains("executions of code were not counted"), "{}", outcome.error());
}

#[test]
fn a_histogram_has_every_instruction_at_its_address() {
    let session = Session::new();
    let (path, _) = stepped(&session, &CONTROL_FLOW.build().expect("it compiles"), &[]);
    let histogram = |bytes: &str| {
        json(&session, &["report", text(&path), "--histogram", "factorial", "--granularity", bytes, "--json"])
    };
    // By instruction, as the blocks say.
    let blocks = json(&session, &["report", text(&path), "--blocks", "factorial", "--json"]);
    let mut expected = BTreeMap::new();
    for block in blocks["blocks"].as_array().expect("a list") {
        for instruction in block["instructions"].as_array().expect("a list") {
            let address = instruction["address"].as_str().expect("an address").to_owned();
            expected.insert(address, block["executions"].as_f64().expect("a number"));
        }
    }
    let fine = histogram("1");
    let bins = fine["bins"].as_array().expect("a list");
    let found: BTreeMap<String, f64> = bins
        .iter()
        .map(|bin| {
            (bin["address"].as_str().expect("an address").to_owned(), bin["cost"].as_f64().expect("a cost"))
        })
        .collect();
    assert_eq!(found, expected);
    let coarse = histogram("16");
    assert_eq!(coarse["total"], fine["total"]);
    assert_eq!(coarse["total"].as_f64(), blocks["instructions_executed"].as_f64());
    assert!(coarse["bins"].as_array().expect("a list").len() < found.len());
    let shown = session.output(&["report", text(&path), "--histogram", "factorial"]);
    assert!(shown.contains("in bins of 4 bytes") && shown.contains("█  control_flow.c:"), "{shown}");
    // Stacks of names have no addresses.
    std::fs::write(session.path("a.folded"), "main;work 3\n").expect("the folder can be written");
    let refused = session.run(&words(&["report", "a.folded", "--histogram", "work"]));
    assert_ne!(refused.shell_status(), 0);
    assert!(
        refused.stderr.contains("has no addresses")
            && refused.stderr.contains("treering count counts every instruction"),
        "{}",
        refused.stderr
    );
}
