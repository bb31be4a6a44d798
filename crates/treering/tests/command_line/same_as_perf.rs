//! The costs that `perf` finds in the same program lie within our intervals.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use treering_testing::programs::{KNOWN_SHARES, RECURSION, STL, installed};

use crate::session::{Session, program};
use crate::skip;

/// How often `perf` looks in each second, in turn.
///
/// It does so at even intervals, and a program that repeats itself at nearly the same ones is seen in the same place
/// again and again: one of rounds of 1.04 ms has 32 or 45 % in a function of 40 with 950 or 970 per second. No two of
/// these are near each other in a ratio of small numbers, so that no program falls into step with more than one.
const FREQUENCIES: [u32; 3] = [997, 1213, 1409];

/// The self cost of the functions of each bare name as `perf` tells it, as a share of all samples: the middle one of
/// those that it finds at different frequencies.
fn perf_shares(session: &Session, words: &[OsString]) -> Result<HashMap<String, f64>, String> {
    let mut found = HashMap::<String, Vec<f64>>::new();
    for frequency in FREQUENCIES {
        for (name, share) in perf_shares_at(frequency, session, words)? {
            found.entry(name).or_default().push(share);
        }
    }
    let middle = |mut shares: Vec<f64>| {
        shares.resize(FREQUENCIES.len(), 0.0);
        shares.sort_by(f64::total_cmp);
        shares[FREQUENCIES.len() / 2]
    };
    Ok(found.into_iter().map(|(name, shares)| (name, middle(shares))).collect())
}

/// A run as `perf script` prints it.
///
/// Inlined frames are left out of the comparison by recording without them.
fn perf_shares_at(
    frequency: u32,
    session: &Session,
    words: &[OsString],
) -> Result<HashMap<String, f64>, String> {
    let perf = installed("perf").ok_or("perf is not installed")?;
    let data = session.path("perf.data");
    let record = Command::new(&perf)
        .args(["record", "--quiet", "-e", "cpu-clock", "--call-graph", "dwarf,8192"])
        .args(["-F", &frequency.to_string(), "-o"])
        .arg(&data)
        .arg("--")
        .args(words)
        .output()
        .map_err(|error| error.to_string())?;
    if !record.status.success() {
        return Err(format!("perf record does not work here: {}", String::from_utf8_lossy(&record.stderr)));
    }
    let script = Command::new(&perf)
        .args(["script", "--no-inline", "-F", "ip,sym", "-i"])
        .arg(&data)
        .output()
        .map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&script.stdout).into_owned();
    let stacks: Vec<&str> = text.split("\n\n").filter(|stack| !stack.trim().is_empty()).collect();
    let mut shares = HashMap::new();
    for stack in &stacks {
        // `    55d0c0a8 forty_percent`: the first line of a stack is its innermost frame.
        let name = stack.trim().lines().next().and_then(|line| line.trim().split_once(' '));
        let name = name.map_or("", |(_, name)| name.trim());
        *shares.entry(bare(name)).or_insert(0.0) += 1.0 / stacks.len() as f64;
    }
    Ok(shares)
}

/// Functions with at least this share are compared.
const COMPARED: f64 = 0.05;

#[test]
fn perf_finds_the_same_shares() {
    let builds =
        [(KNOWN_SHARES.build(), &["600"][..]), (RECURSION.build(), &["20", "120"]), (STL.build(), &["6"])];
    for (path, arguments) in builds {
        let session = Session::new();
        let words = program(&path.expect("the compiler is installed"), arguments);
        let theirs = match perf_shares(&session, &words) {
            Ok(shares) => shares,
            Err(why) => return skip(&why),
        };
        let ours = session.record(&["--no-inlines"], &words);
        let mut compared = 0;
        for (name, share) in theirs.iter().filter(|(name, share)| **share > COMPARED && !name.is_empty()) {
            let cost = function(&ours, name);
            // Both are estimates: the difference has about 1.4 times the spread of ours alone.
            let margin = 1.5 * (cost.high - cost.low) / ours.run_cost() + 0.01;
            let ours = cost.own / ours.run_cost();
            assert!((ours - share).abs() < margin, "{name}: perf {share:.3}, ours {ours:.3} +- {margin:.3}");
            compared += 1;
        }
        assert!(compared >= 3, "perf names too few functions to compare: {theirs:?}");
    }
}

/// The cost of all functions of this bare name: the demanglers of perf and ours differ in what they spell out.
fn function(flat: &crate::profile::Flat, name: &str) -> crate::profile::Cost {
    let names = flat.rows().iter().filter_map(|row| row["function"].as_str());
    let alike: HashSet<&str> = names.filter(|other| bare(other) == name).collect();
    let mut sum = crate::profile::Cost::default();
    for cost in alike.iter().map(|other| flat.cost(other)) {
        sum.own += cost.own;
        sum.low += cost.low;
        sum.high += cost.high;
    }
    sum
}

/// The name of a function without its result, template arguments, parameters and qualifiers:
/// `void std::sort<int*>(int*, int*) [clone .isra.0]` is `std::sort`.
fn bare(name: &str) -> String {
    let name = name.replace("(anonymous namespace)", "anonymous").replace("operator()", "operator_call");
    let mut depth = 0_usize;
    let mut outside = String::new();
    for character in name.chars() {
        match character {
            '(' | '<' | '[' | '{' => depth += 1,
            ')' | '>' | ']' | '}' => depth = depth.saturating_sub(1),
            _ if depth == 0 => outside.push(character),
            _ => {}
        }
    }
    let mut words = outside.split_whitespace().filter(|word| *word != "const");
    words.next_back().unwrap_or_default().to_owned()
}

#[test]
fn a_bare_name_has_neither_result_nor_arguments() {
    for (name, expected) in [
        ("forty_percent", "forty_percent"),
        ("void std::__sort<int*, (anonymous namespace)::Less>(int*, int*) [clone .isra.0]", "std::__sort"),
        ("std::vector<int> (anonymous namespace)::made(int)", "anonymous::made"),
        ("std::map<int, long>::find(int const&) const", "std::map::find"),
        ("(anonymous namespace)::Circle::area() const", "anonymous::Circle::area"),
    ] {
        assert_eq!(bare(name), expected);
    }
}

/// How many samples `perf script` has of the functions of each bare name, and in all.
fn perf_samples(data: &Path) -> Option<(HashMap<String, usize>, usize)> {
    let perf = installed("perf")?;
    let script = Command::new(perf).args(["script", "--no-inline", "-F", "ip,sym", "-i"]).arg(data).output();
    let text = String::from_utf8_lossy(&script.ok()?.stdout).into_owned();
    let mut samples = HashMap::new();
    let mut all = 0;
    for stack in text.split("\n\n").filter(|stack| !stack.trim().is_empty()) {
        let name = stack.trim().lines().next().and_then(|line| line.trim().split_once(' '));
        *samples.entry(bare(name.map_or("", |(_, name)| name.trim()))).or_insert(0) += 1;
        all += 1;
    }
    Some((samples, all))
}

#[test]
fn a_perf_data_file_has_the_samples_of_perf_script() {
    let session = Session::new();
    let words = program(&RECURSION.build().expect("the compiler is installed"), &["20", "40"]);
    for (name, options) in [
        ("chains.data", &["--call-graph", "fp"][..]),
        ("compressed.data", &["-g", "-z"]),
        ("stacks.data", &["--call-graph", "dwarf,4096"]),
    ] {
        let data = session.path(name);
        let perf = installed("perf");
        let record = perf.as_ref().map(|perf| {
            let mut record = Command::new(perf);
            record.args(["record", "--quiet", "-e", "cpu-clock", "-F", "997"]).args(options).arg("-o");
            record.arg(&data).arg("--").args(&words).output()
        });
        let recorded = record.and_then(Result::ok).filter(|output| output.status.success());
        let Some((expected, all)) = recorded.and_then(|_| perf_samples(&data)) else {
            return skip("perf record does not work here");
        };
        assert!(all > 0, "{name}");
        let flat = session.flat(&[name, "--metric", "samples"]);
        assert_eq!(flat.run_cost(), all as f64, "{name}");
        for function in ["direct", "even", "odd"] {
            let samples = expected.get(function).copied().unwrap_or(0);
            assert_eq!(flat.cost(function).own, samples as f64, "{function} of {name}");
        }
        let said = session.run(&["report", name]).stderr;
        assert_eq!(said.contains("perf script found the callers"), name == "stacks.data", "{said}");
    }
}
