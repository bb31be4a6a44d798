//! `gmon.out` files of programs that are compiled here with `-pg`, compared with what GNU gprof prints
//! of the same files.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::session::Session;
use crate::skip;

/// The program of these tests: a loop that takes time.
const START: &str = "#include <time.h>\n#include <stdlib.h>\n\
    #define APART __attribute__((noinline, noclone))\n\
    static APART void spin(int n) { for (volatile int i = 0; i < n; i++); }\n";

/// A program of ten functions, some static, that call each other at random: onwards, and back in cycles
/// while `depth` lasts. It runs for about a quarter of a second of processor time.
fn random_program(seed: u64) -> String {
    const FUNCTIONS: u64 = 10;
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut below = |limit: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % limit
    };
    let is_static: Vec<bool> = (0..FUNCTIONS).map(|_| below(2) == 0).collect();
    let storage = |at: u64| if is_static[at as usize] { "static " } else { "" };
    let mut text = START.to_owned();
    for at in 0..FUNCTIONS {
        text += &format!("{}APART int f{at}(int depth);\n", storage(at));
    }
    for at in 0..FUNCTIONS {
        text += &format!("{}APART int f{at}(int depth) {{ int sum = depth;\n", storage(at));
        match below(3) {
            0 => text += &format!("  for (volatile int i = 0; i < {}; i++);\n", 200 + below(4000)),
            1 => text += &format!("  spin({});\n", 100 + below(2000)),
            _ => {}
        }
        if at + 1 < FUNCTIONS {
            text += &format!("  sum += f{}(depth);\n", at + 1);
            let other = at + 1 + below(FUNCTIONS - at - 1);
            if below(2) == 0 {
                text += &format!("  for (int i = 0; i < {}; i++) sum += f{other}(depth);\n", 1 + below(2));
            }
        }
        // Itself, or one before it.
        if below(3) == 0 {
            text += &format!("  if (depth > 0) sum += f{}(depth - 1);\n", at - below(at.min(4) + 1));
        }
        text += "  return sum; }\n";
    }
    text + "int main(void) { int sum = 0; while (clock() < CLOCKS_PER_SEC / 4) sum += f0(2); return sum == 1; }\n"
}

/// Two cycles that share a callee, a function that calls itself, and one that the C library calls.
const CYCLES: &str = "static int odd(int n);\n\
    APART int even(int n) { spin(9000); return n == 0 ? 1 : odd(n - 1); }\n\
    static APART int odd(int n) { spin(5000); return n == 0 ? 0 : even(n - 1); }\n\
    APART int fact(int n) { spin(1000); return n < 2 ? 1 : n * fact(n - 1); }\n\
    static APART int compare(const void *a, const void *b) { return *(int *)a - *(int *)b; }\n\
    APART void sort(void) { int all[300]; for (int i = 0; i < 300; i++) all[i] = rand(); qsort(all, 300, 4, compare); }\n\
    int main(void) { while (clock() < CLOCKS_PER_SEC / 2) { even(5); odd(3); fact(6); sort(); } return 0; }\n";

/// Compiles a program with `-pg` and runs it in the session's folder; false if there is no such compiler,
/// which is said.
fn write_gmon(session: &Session, source: &str, options: &[&str], name: &str) -> bool {
    std::fs::write(session.path("program.c"), source).expect("the folder can be written");
    let mut compile = Command::new("cc");
    compile
        .args(["-pg", "-g"])
        .args(options)
        .arg("-o")
        .arg(session.path(name))
        .arg(session.path("program.c"));
    if !compile.output().is_ok_and(|output| output.status.success()) {
        skip(&format!("cc does not build programs with -pg {}", options.join(" ")));
        return false;
    }
    run(session, name);
    true
}

fn run(session: &Session, name: &str) {
    let status = Command::new(session.path(name)).current_dir(session.path("")).status();
    assert!(status.expect("the program runs").code().is_some(), "{name}");
}

/// The output of GNU gprof; nothing if there is none, which is said.
fn gprof(session: &Session, program: &str, file: &str) -> Option<String> {
    let command =
        Command::new("gprof").args(["-b", "-p", "-q", program, file]).current_dir(session.path("")).output();
    let Ok(output) = command else {
        skip("there is no gprof; it is in binutils");
        return None;
    };
    assert!(output.status.success(), "{output:#?}");
    Some(String::from_utf8(output.stdout).expect("names are ASCII"))
}

/// One function or arc of a listing, in seconds as printed.
#[derive(Clone, Debug, Default, PartialEq)]
struct Row {
    own: Option<f64>,
    children: Option<f64>,
    /// Calls by others.
    calls: u64,
    /// Calls by itself.
    recursive: u64,
}

/// gprof's output.
#[derive(Debug, Default)]
struct Listing {
    /// The flat profile.
    flat: BTreeMap<String, Row>,
    /// The blocks of the call graph.
    functions: BTreeMap<String, Row>,
    /// By caller and callee.
    arcs: BTreeMap<(String, String), Row>,
    /// Cycles as a whole, by what they cost.
    cycles: Vec<Row>,
}

impl Listing {
    fn parse(text: &str) -> Self {
        let mut listing = Self::default();
        let mut lines =
            text.lines().skip_while(|line| !line.trim_start().starts_with("time   seconds")).skip(1);
        let is_row = |line: &&str| line.split_whitespace().count() >= 4;
        for line in lines.by_ref().take_while(is_row) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let called = words.len() > 4;
            let row = Row {
                own: words[2].parse().ok(),
                calls: if called { words[3].parse().expect("calls") } else { 0 },
                ..Row::default()
            };
            listing.flat.insert(words[words.len() - 1].to_owned(), row);
        }
        let mut current: Option<String> = None;
        for line in lines.skip_while(|line| !line.starts_with("index")).skip(1) {
            match line {
                _ if line.starts_with("Index by") => break,
                _ if line.starts_with("---") => current = None,
                _ if line.starts_with('[') => current = listing.primary(line),
                _ => {
                    if let Some(caller) = &current {
                        let caller = caller.clone();
                        listing.callee(line, caller);
                    }
                }
            }
        }
        listing
    }

    /// `[2]     35.1    0.30    0.20     103+60      name <cycle 1> [2]`; the calls may be missing.
    fn primary(&mut self, line: &str) -> Option<String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let has_calls = words[4].starts_with(|first: char| first.is_ascii_digit());
        let (calls, recursive) = words[4].split_once('+').unwrap_or((words[4], "0"));
        let count = |text: &str| if has_calls { text.parse().expect("calls") } else { 0 };
        let row = Row {
            own: words[2].parse().ok(),
            children: words[3].parse().ok(),
            calls: count(calls),
            recursive: count(recursive),
        };
        if line.contains("as a whole") {
            self.cycles.push(row);
            return None;
        }
        let name = words[4 + usize::from(has_calls)].to_owned();
        self.functions.insert(name.clone(), row);
        Some(name)
    }

    /// `0.05    0.10      3/5           name [7]`, or `4      name <cycle 1> [7]` within a cycle.
    fn callee(&mut self, line: &str, caller: String) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let within = words.len() < 3 || words[1].parse::<f64>().is_err();
        let (calls, name) = if within { (words[0], words[1]) } else { (words[2], words[3]) };
        let calls = calls.split('/').next().and_then(|calls| calls.parse().ok()).expect("calls");
        let seconds = |at: usize| words[at].parse().ok().filter(|_| !within);
        self.arcs.insert(
            (caller, name.to_owned()),
            Row { own: seconds(0), children: seconds(1), calls, recursive: 0 },
        );
    }
}

/// The same of our report.
fn ours(report: &Value) -> Listing {
    let mut listing = Listing::default();
    let seconds = |object: &Value, key: &str| {
        object[key].as_f64().or_else(|| object[format!("estimated_{key}")].as_f64()).map(|cost| cost / 1e9)
    };
    let row = |object: &Value| {
        let (own, total) = (seconds(object, "self_cost"), seconds(object, "total_cost"));
        let [calls, recursive] = ["calls", "recursive_calls"].map(|key| object[key].as_u64().unwrap_or(0));
        let children = own.zip(total).map(|(own, total)| total - own);
        Row { own, children, calls: calls - recursive, recursive }
    };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    for block in report["functions"].as_array().expect("functions") {
        listing.functions.insert(text(&block["function"]), row(block));
        for caller in block["callers"].as_array().expect("callers") {
            listing.arcs.insert((text(&caller["caller"]), text(&caller["callee"])), row(caller));
        }
    }
    for cycle in report["cycles"].as_array().expect("cycles") {
        let (outside, within) = (cycle["calls_from_outside"].as_u64(), cycle["calls_within"].as_u64());
        let calls = Row { calls: outside.unwrap_or(0), recursive: within.unwrap_or(0), ..row(cycle) };
        listing.cycles.push(calls);
    }
    listing
}

/// Equal to the last digit that gprof prints. Where bins are not a whole number of units of two bytes, gprof
/// counts up to 0.2 % of all samples twice, and prints 100.16 % for a function that is all of the run.
fn agree(what: &str, ours: &Row, printed: &Row) {
    assert_eq!((ours.calls, ours.recursive), (printed.calls, printed.recursive), "calls of {what}");
    for (found, printed) in [(ours.own, printed.own), (ours.children, printed.children)] {
        let Some(printed) = printed else { continue };
        let found = found.unwrap_or_else(|| panic!("{what}: {ours:?}"));
        assert!(
            (found - printed).abs() <= 0.005_001 + 0.002 * printed,
            "{what}: {found} here, {printed} by gprof"
        );
    }
}

/// Whether a function is of the programs that are written here, and not of the C library.
fn is_of_program(name: &str) -> bool {
    let numbered = name.strip_prefix('f').is_some_and(|digits| digits.parse::<u32>().is_ok());
    numbered || ["main", "spin", "even", "odd", "fact", "compare", "sort"].contains(&name)
}

/// Compares all that gprof prints of a file with our report; returns how many numbers of arcs and cycles were
/// compared.
fn compare(session: &Session, program: &str, file: &str) -> Option<(usize, usize)> {
    let text = gprof(session, program, file)?;
    let theirs = Listing::parse(&text);
    let report = session.json("--callgraph", &[file, "--program", program, "--min", "0"]);
    let ours = ours(&report);
    assert!(!theirs.flat.is_empty() && theirs.functions.len() >= 3, "{text}");
    // Code of the C library may have several names, of which each tool takes one; and gprof takes the stubs through
    // which libraries are called for a part of the function before them. In all they cost the same, but for what
    // counts the calls, which is in static programs: gprof leaves that out.
    let counts_calls = |name: &str| name.contains("mcount");
    let of_library = |name: &str| !is_of_program(name) && !counts_calls(name);
    let others = |listing: &BTreeMap<String, Row>| {
        let others = listing.iter().filter(|(name, _)| of_library(name));
        others.filter_map(|(_, row)| row.own).sum::<f64>()
    };
    let (found, printed) = (others(&ours.functions), others(&theirs.flat));
    let rounding = 0.005 * theirs.flat.keys().filter(|name| of_library(name)).count() as f64;
    assert!(
        (found - printed).abs() <= rounding + 0.002 * printed + 1e-6,
        "{found} s in others, {printed}\n{text}"
    );
    for (name, row) in theirs.flat.iter().filter(|(name, _)| is_of_program(name)) {
        let found = ours.functions.get(name).unwrap_or_else(|| panic!("{name} is missing\n{text}"));
        agree(name, &Row { children: None, recursive: 0, ..found.clone() }, row);
    }
    for (name, row) in theirs.functions.iter().filter(|(name, _)| is_of_program(name)) {
        agree(&format!("{name}, with callees\n{text}"), &ours.functions[name], row);
    }
    let of_program = |(caller, callee): &(String, String)| is_of_program(caller) && is_of_program(callee);
    for ((caller, callee), row) in theirs.arcs.iter().filter(|(ends, _)| of_program(ends)) {
        let found = ours.arcs.get(&(caller.clone(), callee.clone()));
        let found = found.unwrap_or_else(|| panic!("{caller} -> {callee} is missing\n{text}"));
        agree(&format!("{caller} -> {callee}\n{text}"), found, row);
    }
    let mut cycles = ours.cycles.clone();
    for row in &theirs.cycles {
        let same = |found: &Row| (found.calls, found.recursive) == (row.calls, row.recursive);
        let at = cycles
            .iter()
            .position(same)
            .unwrap_or_else(|| panic!("{row:?} is missing in {cycles:?}\n{text}"));
        agree("a cycle", &cycles.remove(at), row);
    }
    assert!(cycles.is_empty(), "{cycles:?}\n{text}");
    Some((theirs.arcs.len(), theirs.cycles.len()))
}

#[test]
fn reports_equal_those_of_gprof() {
    let (mut arcs, mut cycles, mut programs) = (0, 0, 0);
    let options: [&[&str]; 5] = [
        &["-O0"],
        &["-O1", "-no-pie"],
        &["-O1", "-mfentry"],
        &["-O0", "-static"],
        &["-O2", "-falign-functions=1"],
    ];
    for seed in 0..20 {
        let session = Session::new();
        let source = if seed == 0 { format!("{START}{CYCLES}") } else { random_program(seed) };
        if !write_gmon(&session, &source, options[seed as usize % options.len()], "solve") {
            continue;
        }
        let Some(compared) = compare(&session, "./solve", "gmon.out") else { return };
        (arcs, cycles, programs) = (arcs + compared.0, cycles + compared.1, programs + 1);
    }
    assert!(programs >= 10 && arcs > 10 * programs && cycles >= programs / 2, "{programs} {arcs} {cycles}");
}

/// A file whose bins need no division, so that gprof has nothing to round.
#[test]
fn gprof_prints_the_same_of_what_is_written() {
    let session = Session::new();
    if !write_gmon(&session, &format!("{START}{CYCLES}"), &["-O1"], "a.out") {
        return;
    }
    let export = |from: &str, to: &str| session.output(&["export", from, "--to", "gmon", "-o", to]);
    export("gmon.out", "once.gmon");
    export("once.gmon", "twice.gmon");
    let Some(once) = gprof(&session, "a.out", "once.gmon") else { return };
    assert_eq!(gprof(&session, "a.out", "twice.gmon").as_ref(), Some(&once));
    assert!(compare(&session, "a.out", "once.gmon").is_some_and(|(arcs, cycles)| arcs > 6 && cycles == 1));
    let first = gprof(&session, "a.out", "gmon.out").expect("it ran before");
    let (first, once) = (Listing::parse(&first), Listing::parse(&once));
    assert_eq!(first.arcs.keys().collect::<Vec<_>>(), once.arcs.keys().collect::<Vec<_>>());
    for (name, row) in &first.flat {
        let found = &once.flat[name];
        assert_eq!(found.calls, row.calls, "{name}");
        let seconds = (found.own.expect("seconds"), row.own.expect("seconds"));
        assert!((seconds.0 - seconds.1).abs() <= 0.010_001 + 0.002 * seconds.1, "{name}: {seconds:?}");
    }
}

/// The file in the form of 4.4BSD: one histogram behind another header, then arcs whose counts have 64 bits.
fn as_bsd_writes(file: &[u8]) -> Vec<u8> {
    let (gmon, _) = treering_formats::gmon::read_of_width(file, true).expect("the C library wrote it");
    let histogram = &gmon.histograms[0];
    let mut bsd = [histogram.low.to_le_bytes(), histogram.high.to_le_bytes()].concat();
    let size = 40 + 2 * histogram.bins.len() as u32;
    [size, 0x51879, histogram.rate, 0, 0, 0].iter().for_each(|number| bsd.extend(number.to_le_bytes()));
    histogram.bins.iter().for_each(|&bin| bsd.extend((bin as u16).to_le_bytes()));
    let numbers = gmon.arcs.iter().flat_map(|arc| [arc.from, arc.callee, arc.calls]);
    numbers.for_each(|number| bsd.extend(number.to_le_bytes()));
    bsd
}

/// GNU gprof reads files of BSD as well.
#[test]
fn files_of_bsd_are_read_as_by_gprof() {
    let session = Session::new();
    if !write_gmon(&session, &format!("{START}{CYCLES}"), &["-O1"], "a.out") {
        return;
    }
    let file = as_bsd_writes(&std::fs::read(session.path("gmon.out")).expect("it was written"));
    std::fs::write(session.path("bsd.out"), file).expect("it can be written");
    let flat = |file: &str| session.output(&["report", "--callgraph", file, "--program", "a.out"]);
    assert_eq!(flat("bsd.out"), flat("gmon.out"));
    if let Some((arcs, cycles)) = compare(&session, "a.out", "bsd.out") {
        assert!(arcs > 6 && cycles == 1, "{arcs} {cycles}");
    }
}

/// On 64-bit Windows, half of each count is what was in memory. GNU gprof takes all of it for the count, so it gets a
/// file with zeros there.
#[test]
fn programs_for_windows_have_names_and_counts() {
    let session = Session::new();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/formats/gmon");
    let read = |name: &str| std::fs::read(fixtures.join(name)).expect("the fixture is there");
    let mut clean = read("windows.gmon");
    std::fs::write(session.path("gmon.out"), &clean).expect("it can be written");
    std::fs::write(session.path("solve.exe"), read("windows.exe")).expect("it can be written");
    const ARCS: usize = 6;
    let first = clean.len() - 24 * ARCS;
    clean[first..].chunks_mut(24).for_each(|arc| arc[20..].fill(0));
    std::fs::write(session.path("clean.out"), &clean).expect("it can be written");
    // The program is found beside the file.
    let found = session.json("--callgraph", &["gmon.out", "--min", "0"]);
    let named = session.json("--callgraph", &["clean.out", "--program", "solve.exe", "--min", "0"]);
    assert_eq!(ours(&found).functions, ours(&named).functions);
    let listing = ours(&found);
    let calls = ["spin", "sort", "fact"]
        .map(|name| (listing.functions[name].calls, listing.functions[name].recursive));
    assert_eq!(calls, [(1, 0), (125, 0), (1, 4)]);
    let flat = session.output(&["report", "--flat", "gmon.out", "--program", "solve.exe"]);
    assert!(!flat.contains("2^32"), "{flat}");
    let printed = Command::new("gprof")
        .args(["-b", "-p", "solve.exe", "clean.out"])
        .current_dir(session.path(""))
        .output();
    if !printed.is_ok_and(|output| output.status.success()) {
        skip("this gprof does not read programs for Windows");
        return;
    }
    assert_eq!(compare(&session, "solve.exe", "clean.out"), Some((5, 0)));
}

/// `gprof -s` adds files up, and so does a merge of ours.
#[test]
fn several_files_are_added_up() {
    let session = Session::new();
    if !write_gmon(&session, &format!("{START}{CYCLES}"), &["-O1"], "a.out") {
        return;
    }
    std::fs::rename(session.path("gmon.out"), session.path("gmon.1")).expect("it was written");
    run(&session, "a.out");
    let sum = Command::new("gprof")
        .args(["-s", "a.out", "gmon.1", "gmon.out"])
        .current_dir(session.path(""))
        .output();
    if !sum.is_ok_and(|output| output.status.success()) {
        return skip("there is no gprof; it is in binutils");
    }
    compare(&session, "a.out", "gmon.sum");
    session.output(&["merge", "gmon.1", "gmon.out", "-o", "both.trg"]);
    let costs = |file: &str| {
        let report = session.json("--callgraph", &[file, "--min", "0"]);
        let listing = ours(&report);
        (
            report["run"]["run_cost"].as_u64(),
            listing.arcs.into_iter().map(|(ends, row)| (ends, row.calls)).collect::<Vec<_>>(),
        )
    };
    assert_eq!(costs("both.trg"), costs("gmon.sum"));
}

#[test]
fn divided_numbers_are_marked() {
    let session = Session::new();
    if !write_gmon(&session, &format!("{START}{CYCLES}"), &["-O1"], "a.out") {
        return;
    }
    let text = session.output(&["report", "gmon.out", "--callgraph"]);
    let own =
        text.lines().find(|line| line.starts_with('[') && line.contains(" even")).expect("a block of even");
    assert!(own.contains('~'), "{text}");
}

#[test]
fn the_table_of_prof_has_the_calls_and_seconds_of_gprof() {
    let session = Session::new();
    if !write_gmon(&session, &format!("{START}{CYCLES}"), &["-O1"], "a.out") {
        return;
    }
    let Some(theirs) = gprof(&session, "a.out", "gmon.out") else { return };
    let text = session.output(&["report", "gmon.out", "--prof"]);
    assert!(
        text.contains(" %Time        Seconds        Cumsecs       #Calls    msec/call  Name\n"),
        "{text}"
    );
    let row = |name: &str| -> Option<Vec<f64>> {
        let line = text.lines().find(|line| line.ends_with(&format!("  {name}")))?;
        Some(line.split_whitespace().filter_map(|word| word.parse().ok()).collect())
    };
    let spin = row("spin").expect("a row");
    let printed = &Listing::parse(&theirs).flat["spin"];
    assert_eq!(spin[3], printed.calls as f64, "{text}");
    assert!((spin[1] - printed.own.expect("seconds")).abs() < 0.01, "{text}{theirs}");
    assert!((spin[4] - spin[1] * 1000.0 / spin[3]).abs() < 0.001, "{text}");
    // The C library calls it, which is not counted; on a busy machine it may have no sample.
    assert!(row("compare").is_none_or(|cells| cells.len() == 3), "{text}");
}

#[test]
fn known_gaps_of_a_file_are_noted() {
    let session = Session::new();
    let threads = "#include <pthread.h>\nstatic void *work(void *p) { spin(1000000); return p; }\n\
        int main(void) { pthread_t t; pthread_create(&t, 0, work, 0); work(0); return pthread_join(t, 0); }\n";
    if !write_gmon(&session, &format!("{START}{threads}"), &["-pthread"], "a.out") {
        return;
    }
    let text = session.output(&["report", "gmon.out"]);
    assert!(text.contains("calls that threads make at the same time are lost"), "{text}");
    assert!(text.contains("nothing of shared libraries"), "{text}");
}

#[test]
fn the_program_is_found_or_asked_for() {
    let session = Session::new();
    if !write_gmon(&session, &format!("{START}{CYCLES}"), &["-O1"], "solve") {
        return;
    }
    // The only program beside it that fits.
    let found = session.run(&["report", "gmon.out"]);
    assert!(found.status.success() && found.stderr.contains("./solve"), "{found:#?}");
    std::fs::copy(session.path("solve"), session.path("other")).expect("it can be copied");
    let two = session.run(&["report", "gmon.out"]);
    assert!(
        two.error().contains("several programs") && two.stderr.contains("hint: name it: --program"),
        "{two:#?}"
    );
    for name in ["solve", "other"] {
        std::fs::rename(session.path(name), session.path(&format!("cache-{name}"))).expect("it can be moved");
    }
    std::fs::create_dir(session.path("elsewhere")).expect("the folder can be made");
    std::fs::rename(session.path("gmon.out"), session.path("elsewhere/gmon.out")).expect("it can be moved");
    let none = session.run(&["report", "elsewhere/gmon.out"]);
    assert!(none.error().contains("the program that wrote it is needed"), "{none:#?}");
    let missing = session.run(&["report", "elsewhere/gmon.out", "--program", "nowhere"]);
    assert!(missing.error().contains("there is no program nowhere"), "{missing:#?}");
    let flat = session.flat(&["elsewhere/gmon.out", "--program", "cache-solve"]);
    assert!(flat.cost("spin").own > 0.0);
}

#[test]
fn another_program_and_a_newer_one_are_told() {
    let session = Session::new();
    let source = format!("{START}{CYCLES}");
    if !write_gmon(&session, &source, &["-O0"], "a.out") {
        return;
    }
    let newer = session.run(&["report", "gmon.out", "--program", "a.out"]);
    assert!(!newer.stderr.contains("newer"), "{newer:#?}");
    let future = std::time::SystemTime::now() + std::time::Duration::from_secs(100);
    let program = std::fs::File::options().append(true).open(session.path("a.out")).expect("it is there");
    program.set_modified(future).expect("its time can be set");
    let newer = session.run(&["report", "gmon.out", "--program", "a.out"]);
    assert!(newer.status.success() && newer.stderr.contains("a.out is newer than it"), "{newer:#?}");
    std::fs::copy(session.path("gmon.out"), session.path("kept")).expect("it was written");
    // Large functions in front move all others.
    let padding: String =
        (0..40).map(|at| format!("void pad{at}(void) {{ spin({at}); spin(1); spin(2); }}\n")).collect();
    let moved = source.replacen(START, &format!("{START}{padding}"), 1);
    assert!(write_gmon(&session, &moved, &["-O0"], "moved"));
    let wrong = session.run(&["report", "kept", "--program", "moved"]);
    assert!(wrong.error().contains("was not written by moved as it is now"), "{wrong:#?}");
    assert!(Path::new(&session.path("moved")).exists());
}

#[test]
fn damaged_files_are_refused_with_the_place() {
    let session = Session::new();
    if !write_gmon(&session, &format!("{START}{CYCLES}"), &["-O0"], "a.out") {
        return;
    }
    let whole = std::fs::read(session.path("gmon.out")).expect("it was written");
    std::fs::write(session.path("cut"), &whole[..whole.len() - 9]).expect("it can be written");
    let cut = session.run(&["report", "cut"]);
    assert!(cut.error().contains("is cut short: it needs 20 bytes, "), "{cut:#?}");
    assert!(cut.stderr.contains("hint: "), "{cut:#?}");
    let other = session.run(&["report", "gmon.out", "--program", "program.c"]);
    assert!(other.error().contains("cannot use the program: program.c is not an object file"), "{other:#?}");
    std::fs::write(session.path("stacks"), "a;b 1\n").expect("it can be written");
    let other = session.run(&["report", "stacks", "--program", "a.out"]);
    assert!(other.error().contains("--program is for gmon.out files"), "{other:#?}");
}

#[test]
fn a_histogram_has_the_bins_of_the_file() {
    let session = Session::new();
    if !write_gmon(&session, &(START.to_owned() + CYCLES), &["-O0"], "cycles") {
        return;
    }
    let json = |arguments: &[&str]| -> Value {
        serde_json::from_str(&session.output(arguments)).expect("valid JSON")
    };
    let flat = json(&["report", "gmon.out", "--program", "cycles", "--flat", "--json"]);
    let mut functions = flat["functions"].as_array().expect("a list").iter();
    let spin = functions.find(|row| row["function"] == "spin").expect("spin took time");
    let histogram = json(&["report", "gmon.out", "--program", "cycles", "--histogram", "spin", "--json"]);
    let bins = histogram["bins"].as_array().expect("a list");
    let cost = |bin: &Value| bin["cost"].as_f64().expect("a cost");
    let total: f64 = bins.iter().map(cost).sum();
    assert_eq!(histogram["total"].as_f64(), Some(total));
    // The flat profile divides bins that two functions share.
    let own: f64 = bins.iter().filter(|bin| bin["is_shared"] == false).map(cost).sum();
    let samples = spin["self_samples"].as_f64().expect("samples");
    assert!(own > 5.0 && (own..=total).contains(&samples), "{own} {samples} {total}");
    assert!(bins.iter().all(|bin| bin["address"].as_str() < bin["end"].as_str()));
    let coarse = &["report", "gmon.out", "--program", "cycles", "--histogram", "spin", "--granularity"];
    let coarse_by = |bytes: &'static str| [coarse.as_slice(), &[bytes]].concat();
    let text = session.output(&coarse_by("64"));
    assert!(text.contains("samples") && text.contains("in bins of 64 bytes"), "{text}");
    let refused = session.run(&coarse_by("1"));
    assert_ne!(refused.shell_status(), 0);
    assert!(refused.stderr.contains("cannot be told apart"), "{}", refused.stderr);
}
