//! `treering export --to lcov`, `gcov-json` and `drcov`, and the lines that were never executed in `report --lines`:
//! beside what gcov counted in a build of the same program of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use treering_testing::programs::{COVERED, Program, RECURSION, installed};

use crate::session::{Session, program, words};
use crate::skip;

/// Counts a program; the path of the profile.
fn counted(session: &Session, built: &Path) -> PathBuf {
    let path = session.path("counts.trg");
    let mut all = words(&["count", "-q", "-o"]);
    all.push(path.clone().into());
    all.extend(words(&["--"]));
    all.extend(program(built, &[]));
    let outcome = session.run(&all);
    assert_eq!(outcome.shell_status(), 0, "{outcome:#?}");
    path
}

fn text(path: &Path) -> &str {
    path.to_str().expect("paths of the tests are UTF-8")
}

/// gcov's counts of a program, as JSON; nothing if there is no gcov that prints any.
fn of_gcov(session: &Session, recipe: &Program) -> Option<Value> {
    let gcov = installed("gcov")?;
    let covered = recipe.variant("gcov", &["--coverage", "-O0"]).build().expect("it compiles");
    let run = session.path("coverage");
    std::fs::create_dir(&run).expect("the session takes files");
    let ran = Command::new(&covered).env("GCOV_PREFIX", &run).output().expect("it runs");
    assert!(ran.status.success());
    let found = |folder: &Path, ending: &str| {
        let mut files = files_below(folder).into_iter();
        files.rfind(|file| file.extension().is_some_and(|e| e == ending)).expect("coverage data")
    };
    let data = found(&run, "gcda");
    let notes = found(covered.parent().expect("a folder"), "gcno");
    std::fs::copy(&notes, data.with_file_name(notes.file_name().expect("a file"))).expect("it is copied");
    let told =
        Command::new(gcov).args(["-b", "--json-format", "--stdout"]).arg(&data).current_dir(&run).output();
    let told = told.expect("gcov runs");
    serde_json::from_slice(&told.stdout).ok()
}

fn files_below(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .flat_map(|entry| if entry.path().is_dir() { files_below(&entry.path()) } else { vec![entry.path()] })
        .collect()
}

fn array<'a>(of: &'a Value, key: &str) -> &'a [Value] {
    of[key].as_array().unwrap_or_else(|| panic!("{key} is a list: {of}"))
}

/// The object of `covered.c`.
fn file(document: &Value) -> &Value {
    let mut files = array(document, "files").iter();
    files
        .find(|file| file["file"].as_str().is_some_and(|path| path.ends_with("covered.c")))
        .expect("the program's file")
}

/// Executions by line.
fn lines(document: &Value) -> BTreeMap<u64, u64> {
    let lines = array(file(document), "lines").iter();
    lines
        .map(|line| (line["line_number"].as_u64().expect("a line"), line["count"].as_u64().expect("a count")))
        .collect()
}

/// The counts of branches by line, in no order.
fn branches(document: &Value) -> BTreeMap<u64, Vec<u64>> {
    let lines = array(file(document), "lines").iter();
    lines
        .map(|line| {
            let branches = array(line, "branches").iter();
            let mut counts: Vec<u64> =
                branches.map(|branch| branch["count"].as_u64().expect("a count")).collect();
            counts.sort_unstable();
            (line["line_number"].as_u64().expect("a line"), counts)
        })
        .filter(|(_, counts)| !counts.is_empty())
        .collect()
}

/// By function: line, calls.
fn functions(document: &Value) -> BTreeMap<String, (u64, u64)> {
    let functions = array(file(document), "functions").iter();
    let number = |of: &Value, key: &str| of[key].as_u64().expect("a number");
    functions
        .map(|of| {
            let name = of["name"].as_str().expect("a name").to_owned();
            (name, (number(of, "start_line"), number(of, "execution_count")))
        })
        .collect()
}

#[test]
fn unoptimised_lines_branches_and_functions_have_the_counts_of_gcov() {
    let session = Session::new();
    let path = counted(&session, &COVERED.build().expect("it compiles"));
    let ours = session.output(&["export", text(&path), "--to", "gcov-json", "-o", "-"]);
    let ours: Value = serde_json::from_str(&ours).expect("valid JSON");
    let Some(theirs) = of_gcov(&session, &COVERED) else {
        return skip("no gcov that prints JSON is installed");
    };
    assert_eq!(functions(&ours), functions(&theirs));
    assert_eq!(branches(&ours), branches(&theirs));
    let source = include_str!("../../../../fixtures/programs/count/covered.c");
    let source: Vec<&str> = source.lines().map(str::trim).collect();
    let (ours, theirs) = (lines(&ours), lines(&theirs));
    let mut equal = 0;
    for line in ours.keys().chain(theirs.keys()).collect::<BTreeSet<_>>() {
        match (ours.get(line), theirs.get(line), source[*line as usize - 1]) {
            (Some(ours), Some(theirs), code) => {
                assert_eq!(ours, theirs, "line {line}: {code}");
                equal += 1;
            }
            // The machine returns on the line of the brace; gcov has no block there where every path says `return`.
            (Some(_), None, code) => assert_eq!(code, "}", "line {line}"),
            // A label has no code.
            (None, Some(_), code) => assert!(code.ends_with(':'), "line {line}: {code}"),
            (None, None, _) => {}
        }
    }
    assert!(equal >= 45 && theirs.values().filter(|&&count| count == 0).count() >= 8, "{theirs:?}");
}

#[test]
fn lines_that_were_never_executed_are_marked() {
    let session = Session::new();
    let path = counted(&session, &COVERED.build().expect("it compiles"));
    let shown = session.output(&["report", text(&path), "--lines", "grade"]);
    let line = |code: &str| {
        let found =
            shown.lines().find(|line| line.ends_with(code)).unwrap_or_else(|| panic!("{code}: {shown}"));
        found.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(line("return 20;")[0], "#####", "{shown}");
    // Instructions, and how often control came to the line.
    assert_eq!(line("return 10;")[1], "1", "{shown}");
    assert_eq!(line("while (x > 3) x--;")[1], "7", "{shown}");
    let json = session.output(&["report", text(&path), "--lines", "main", "--json"]);
    let json: Value = serde_json::from_str(&json).expect("valid JSON");
    let never = array(&json, "lines").iter().filter(|line| line["hits"] == 0).count();
    assert_eq!(never, 4, "never(argc), puts, sink-- and exit: {json}");
    // Sums are as before.
    let own: u64 = array(&json, "lines").iter().map(|line| line["self_cost"].as_u64().expect("a cost")).sum();
    assert_eq!(Some(own), json["self_cost"].as_u64());
}

#[test]
fn a_function_that_never_ran_has_its_lines_as_gcov_has_them() {
    let session = Session::new();
    let path = counted(&session, &COVERED.build().expect("it compiles"));
    let json = session.output(&["report", text(&path), "--lines", "never", "--json"]);
    let json: Value = serde_json::from_str(&json).expect("valid JSON");
    assert_eq!((&json["self_cost"], &json["function"]), (&Value::from(0), &Value::from("never")), "{json}");
    let rows = array(&json, "lines");
    assert!(rows.iter().all(|row| row["hits"] == 0), "{json}");
    let mut ours: BTreeSet<u64> = rows.iter().map(|row| row["line"].as_u64().expect("a line")).collect();
    let shown = session.output(&["report", text(&path), "--lines", "never"]);
    assert_eq!(shown.matches("#####").count(), ours.len(), "{shown}");
    let missing = session.run(&["report", text(&path), "--lines", "not_there"]);
    assert!(missing.error().contains("no function is called"), "{missing:#?}");
    let Some(theirs) = of_gcov(&session, &COVERED) else {
        return skip("no gcov that prints JSON is installed");
    };
    let never =
        array(file(&theirs), "functions").iter().find(|of| of["name"] == "never").expect("it is there");
    let within =
        |line: &u64| (never["start_line"].as_u64()..=never["end_line"].as_u64()).contains(&Some(*line));
    let of_gcov: BTreeMap<u64, u64> = lines(&theirs).into_iter().filter(|(line, _)| within(line)).collect();
    assert!(of_gcov.len() > 2 && of_gcov.values().all(|&count| count == 0), "{of_gcov:?}");
    // The machine returns on the line of the brace; gcov has no block there where every path says `return`.
    let source = include_str!("../../../../fixtures/programs/count/covered.c");
    ours.retain(|line| source.lines().nth(*line as usize - 1) != Some("}"));
    assert_eq!(ours, of_gcov.into_keys().collect());
}

#[test]
fn tracefiles_are_read_by_lcov() {
    let session = Session::new();
    let path = counted(&session, &COVERED.build().expect("it compiles"));
    let info = session.path("counts.info");
    let outcome = session.run(&words(&["export", text(&path), "--to", "lcov"]));
    assert_eq!(outcome.shell_status(), 0, "{outcome:#?}");
    assert!(outcome.stderr.contains(" lines and 6 of 7 functions were executed"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("left out: ") && outcome.stderr.contains("libc"), "{}", outcome.stderr);
    let written = std::fs::read_to_string(&info).expect("it was written");
    let count = |start: &str| written.lines().filter(|line| line.starts_with(start)).count();
    let number = |key: &str| {
        let line = written
            .lines()
            .find_map(|line| line.strip_prefix(key))
            .unwrap_or_else(|| panic!("{key}: {written}"));
        line.parse::<usize>().expect("a number")
    };
    assert_eq!((number("LF:"), number("FNF:"), number("BRF:")), (count("DA:"), count("FN:"), count("BRDA:")));
    assert_eq!(number("FNH:"), 6);
    assert!(written.contains(",-\n"), "branches of code that was never reached: {written}");
    // Ours may be replaced, others not.
    session.output(&["export", text(&path), "--to", "lcov"]);
    let Some(lcov) = installed("lcov") else { return skip("lcov is not installed") };
    let output = Command::new(lcov).args(["--rc", "lcov_branch_coverage=1", "--summary"]).arg(&info).output();
    let output = output.expect("lcov runs");
    let told =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{told}");
    for (hit, found) in [("LH:", "LF:"), ("FNH:", "FNF:"), ("BRH:", "BRF:")] {
        let expected = format!("({} of {} ", number(hit), number(found));
        assert!(told.contains(&expected), "{expected}: {told}");
    }
}

#[test]
fn drcov_has_every_executed_block_of_every_file() {
    let session = Session::new();
    let path = counted(&session, &COVERED.build().expect("it compiles"));
    session.output(&["export", text(&path), "--to", "drcov"]);
    let bytes = std::fs::read(session.path("counts.drcov")).expect("it was written");
    // Read as the format says, by lines and then rows of eight bytes.
    let table = bytes.windows(10).position(|window| window == b"BB Table: ").expect("a table of blocks");
    let head = std::str::from_utf8(&bytes[..table]).expect("text");
    let mut lines = head.lines();
    assert_eq!(lines.next(), Some("DRCOV VERSION: 2"));
    assert_eq!(lines.next(), Some("DRCOV FLAVOR: treering"));
    let count = lines.next().and_then(|line| line.strip_prefix("Module Table: version 2, count "));
    assert_eq!(lines.next(), Some("Columns: id, base, end, entry, path"));
    let modules: Vec<Vec<&str>> = lines.map(|line| line.splitn(5, ',').map(str::trim).collect()).collect();
    assert_eq!(count, Some(modules.len().to_string().as_str()));
    let number = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).expect("an address");
    let rest = &bytes[table..];
    let end = rest.iter().position(|&byte| byte == b'\n').expect("a line");
    let rows = &rest[end + 1..];
    let said = std::str::from_utf8(&rest[..end]).expect("text");
    assert_eq!(said, format!("BB Table: {} bbs", rows.len() / 8));
    assert_eq!(rows.len() % 8, 0);
    let ours = modules.iter().position(|module| module[4].contains("covered")).expect("the program");
    let base = number(modules[ours][1]);
    let blocks = rows.chunks(8).filter(|row| u16::from_le_bytes([row[6], row[7]]) as usize == ours);
    let blocks: BTreeSet<String> = blocks
        .map(|row| {
            let offset = u64::from(u32::from_le_bytes([row[0], row[1], row[2], row[3]]));
            assert!(
                base + offset + u64::from(u16::from_le_bytes([row[4], row[5]])) <= number(modules[ours][2])
            );
            format!("{:#x}", base + offset)
        })
        .collect();
    let list = session.output(&["report", text(&path), "--blocks", "--json"]);
    let list: Value = serde_json::from_str(&list).expect("valid JSON");
    let rows = array(&list, "blocks")
        .iter()
        .filter(|row| row["module"].as_str().is_some_and(|m| m.contains("covered")));
    let expected: BTreeSet<String> =
        rows.map(|row| row["address"].as_str().expect("an address").to_owned()).collect();
    assert_eq!(blocks, expected);
}

#[test]
fn coverage_is_known_of_counted_code_only() {
    let session = Session::new();
    std::fs::write(session.path("a.folded"), "main;work 3\n").expect("the folder can be written");
    for format in ["lcov", "gcov-json", "drcov"] {
        let refused = session.run(&words(&["export", "a.folded", "--to", format]));
        assert_ne!(refused.shell_status(), 0);
        assert!(refused.stderr.contains("executions of code were not counted"), "{}", refused.stderr);
        assert!(refused.stderr.contains("hint: treering count"), "{}", refused.stderr);
    }
    // A program without lines.
    let plain = RECURSION.variant("no_lines", &["-g0"]);
    let path = counted(&session, &plain.build().expect("it compiles"));
    let refused = session.run(&words(&["export", text(&path), "--to", "lcov"]));
    assert_ne!(refused.shell_status(), 0);
    assert!(refused.stderr.contains("compile the program with -g"), "{}", refused.stderr);
    let refused = session.run(&words(&["export", text(&path), "--to", "drcov", "--focus", "main"]));
    assert!(refused.stderr.contains("--focus chooses stacks, and --to drcov"), "{}", refused.stderr);
}
