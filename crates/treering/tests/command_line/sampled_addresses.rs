//! `report --histogram` of what was sampled, and what is made of it.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use treering_testing::programs::{INLINES, KNOWN_SHARES, THREADS_AND_FORK, installed};

use crate::session::{Session, program};
use crate::skip;

fn number(row: &Value, key: &str) -> f64 {
    row[key].as_f64().unwrap_or_else(|| panic!("{key} is a number: {row:#}"))
}

fn address(row: &Value, key: &str) -> u64 {
    let text = row[key].as_str().unwrap_or_else(|| panic!("{key} is a text: {row:#}"));
    u64::from_str_radix(text.trim_start_matches("0x"), 16).expect("an address")
}

fn bins(histogram: &Value) -> &[Value] {
    histogram["bins"].as_array().expect("a list")
}

/// The histogram of a function with a bin for each address.
fn histogram(session: &Session, file: &str, function: &str, options: &[&str]) -> Value {
    let mut all = vec!["report", file, "--histogram", function, "--granularity", "1", "--json"];
    all.extend(options);
    serde_json::from_str(&session.output(&all)).expect("it is JSON")
}

/// The addresses that a function has by `nm`.
fn range(program: &Path, function: &str) -> std::ops::Range<u64> {
    let output = Command::new("nm").arg("-S").arg(program).output().expect("binutils are installed");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line =
        text.lines().find(|line| line.ends_with(&format!(" {function}"))).expect("it has the function");
    let hex = |at: usize| line.split(' ').nth(at).and_then(|digits| u64::from_str_radix(digits, 16).ok());
    let (start, size) = (hex(0).expect("an address"), hex(1).expect("a size"));
    start..start + size
}

#[test]
fn a_histogram_of_samples_adds_up_and_lies_in_the_function() {
    let session = Session::new();
    let path = KNOWN_SHARES.build().expect("the compiler is installed");
    let flat = session.record(&["-F", "2000"], &program(&path, &[]));
    for function in ["ten_percent", "forty_percent", "thirty_percent"] {
        let histogram = histogram(&session, "treering.trg", function, &[]);
        assert_eq!(number(&histogram, "total"), flat.cost(function).own, "{histogram:#}");
        assert_eq!(number(&histogram, "run"), flat.run_cost());
        assert_eq!(number(&histogram, "without_address"), 0.0);
        let code = range(&path, function);
        let all: f64 = bins(&histogram).iter().map(|bin| number(bin, "cost")).sum();
        assert_eq!(all, number(&histogram, "total"));
        for bin in bins(&histogram) {
            assert!(code.contains(&address(bin, "address")), "{bin:#} is not in {code:x?}");
            let cost = number(bin, "cost");
            assert!((number(bin, "cost_low")..=number(bin, "cost_high")).contains(&cost), "{bin:#}");
            assert!(number(bin, "samples") > 0.0, "{bin:#}");
        }
    }
    let text = session.output(&["report", "--histogram", "forty_percent"]);
    assert!(text.contains("[95 % interval]") && text.contains("in bins of 4 bytes"), "{text}");
    // Twice the same is twice as much.
    session.output(&["merge", "treering.trg", "treering.trg", "-o", "twice.trg"]);
    let (once, twice) = (
        histogram(&session, "treering.trg", "forty_percent", &[]),
        histogram(&session, "twice.trg", "forty_percent", &[]),
    );
    assert_eq!(bins(&once).len(), bins(&twice).len());
    for (once, twice) in bins(&once).iter().zip(bins(&twice)) {
        assert_eq!(2.0 * number(once, "cost"), number(twice, "cost"));
        assert_eq!(once["address"], twice["address"]);
    }
    // One of two that has no addresses: the rest is told.
    session.output(&["export", "treering.trg", "--to", "pprof", "-o", "named.pb.gz"]);
    session.output(&["merge", "treering.trg", "named.pb.gz", "-o", "half.trg"]);
    let half = histogram(&session, "half.trg", "forty_percent", &[]);
    assert_eq!(number(&half, "without_address"), number(&once, "total"), "{half:#}");
    let text = session.output(&["report", "half.trg", "--histogram", "forty_percent"]);
    assert!(text.contains("at addresses that are not known"), "{text}");
}

#[test]
fn threads_have_histograms_of_their_own() {
    let session = Session::new();
    let path = THREADS_AND_FORK.build().expect("the compiler is installed");
    session.record(&["-F", "2000"], &program(&path, &[]));
    let threads = session.json("--threads", &[]);
    let threads: Vec<u64> = threads["threads"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|thread| thread["tid"].as_u64().expect("a number"))
        .collect();
    let all = histogram(&session, "treering.trg", "shared_work", &[]);
    let mut sums: BTreeMap<u64, f64> = BTreeMap::new();
    for tid in &threads {
        let part = histogram(&session, "treering.trg", "shared_work", &["--thread", &tid.to_string()]);
        assert_eq!(part["run"], all["run"], "shares are of the whole run");
        bins(&part)
            .iter()
            .for_each(|bin| *sums.entry(address(bin, "address")).or_default() += number(bin, "cost"));
    }
    let whole: BTreeMap<u64, f64> =
        bins(&all).iter().map(|bin| (address(bin, "address"), number(bin, "cost"))).collect();
    assert!(threads.len() > 2 && !whole.is_empty(), "{threads:?}");
    assert_eq!(sums, whole);
    let refused = session.run(&["report", "--histogram", "shared_work", "--focus", "heavy"]);
    assert!(refused.error().contains("--focus chooses stacks"), "{refused:#?}");
}

#[test]
fn inlined_code_is_part_of_the_function_that_holds_it() {
    let session = Session::new();
    let path = INLINES.build().expect("the compiler is installed");
    let flat = session.record(&["-F", "2000"], &program(&path, &[]));
    let name = |part: &str| {
        let names = flat.rows().iter().filter_map(|row| row["function"].as_str());
        names.into_iter().find(|name| name.contains(part)).expect("it took time").to_owned()
    };
    let inner = name("inner<int>");
    let alone = histogram(&session, "treering.trg", &inner, &[]);
    assert_eq!(number(&alone, "total"), flat.cost(&inner).own);
    assert_eq!(number(&alone, "of_inlined"), 0.0);
    // Without names for inlined functions, the same addresses are of the functions that hold them.
    let outside = |row: &&Value| row["function"].as_str().is_some_and(|name| name.contains("shapes::apart"));
    let apart =
        flat.rows().iter().find(outside).and_then(|row| row["function"].as_str()).expect("it took time");
    let apart = histogram(&session, "treering.trg", apart, &[]);
    let of_inner: Vec<u64> = bins(&alone).iter().map(|bin| address(bin, "address")).collect();
    assert!(bins(&apart).iter().all(|bin| !of_inner.contains(&address(bin, "address"))));
}

/// The seconds of each line of a file, as gprof prints them by source line.
fn gprof_lines(session: &Session, program: &Path, file: &str) -> Option<BTreeMap<u64, f64>> {
    let gprof = installed("gprof")?;
    let output = Command::new(gprof)
        .args(["-b", "-p", "-l"])
        .arg(program)
        .arg(session.path(file))
        .output()
        .expect("gprof runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut lines: BTreeMap<u64, f64> = BTreeMap::new();
    for row in String::from_utf8_lossy(&output.stdout).lines() {
        let Some((_, place)) = row.split_once("(known_shares.c:") else { continue };
        let line = place.split(' ').next().and_then(|line| line.parse().ok()).expect("a line");
        let seconds: f64 = row.split_whitespace().nth(2).and_then(|text| text.parse().ok()).expect("seconds");
        *lines.entry(line).or_default() += seconds;
    }
    Some(lines)
}

#[test]
fn gprof_finds_the_lines_of_samples_in_what_is_exported() {
    let session = Session::new();
    // GNU gprof knows lines up to version 4 of DWARF.
    let path = KNOWN_SHARES.variant("dwarf4", &["-gdwarf-4"]).build().expect("the compiler is installed");
    session.record(&["-F", "2000"], &program(&path, &[]));
    session.output(&["export", "treering.trg", "--to", "gmon", "-o", "shares.gmon"]);
    let Some(by_gprof) = gprof_lines(&session, &path, "shares.gmon") else {
        return skip("lines by gprof: gprof is not installed");
    };
    let mut ours: BTreeMap<u64, f64> = BTreeMap::new();
    for function in ["ten_percent", "twenty_percent", "thirty_percent", "forty_percent"] {
        let histogram = histogram(&session, "treering.trg", function, &[]);
        for bin in bins(&histogram) {
            let line = bin["line"].as_u64().expect("a line");
            *ours.entry(line).or_default() += number(bin, "cost") / 1e9;
        }
    }
    for (line, seconds) in &ours {
        let found = by_gprof.get(line).copied().unwrap_or(0.0);
        assert!((found - seconds).abs() < 0.021, "line {line}: {seconds} and {found}; {by_gprof:?}");
    }
    // The file that is read again has the same costs at the same addresses, in whole ticks of its rate.
    let file = std::fs::read(session.path("shares.gmon")).expect("it was written");
    let rate = file[41..45].try_into().map(u32::from_le_bytes).expect("a histogram has its rate there");
    let tick = 1e9 / f64::from(rate);
    let text = session.output(&[
        "report",
        "shares.gmon",
        "--program",
        path.to_str().expect("UTF-8"),
        "--histogram",
        "forty_percent",
        "--json",
    ]);
    let back: Value = serde_json::from_str(&text).expect("it is JSON");
    let mut expected: BTreeMap<u64, f64> = BTreeMap::new();
    for bin in bins(&histogram(&session, "treering.trg", "forty_percent", &[])) {
        *expected.entry(address(bin, "address") / 2 * 2).or_default() += number(bin, "cost");
    }
    let found: BTreeMap<u64, f64> =
        bins(&back).iter().map(|bin| (address(bin, "address"), number(bin, "cost"))).collect();
    assert!(found.keys().eq(expected.keys()), "{found:?} and {expected:?}");
    for (address, ticks) in &found {
        let difference = ticks * tick - expected[address];
        assert!(difference.abs() <= 2.0 * tick, "{address:#x}: {ticks} ticks of {tick} ns and {expected:?}");
    }
}

#[test]
fn addresses_are_those_that_perf_prints_of_the_same_file() {
    let session = Session::new();
    let Some(perf) = installed("perf") else { return skip("addresses by perf: perf is not installed") };
    // Addresses of the running program are those of its file then.
    let path = KNOWN_SHARES.variant("no-pie", &["-no-pie"]).build().expect("the compiler is installed");
    let record = Command::new(&perf)
        .args(["record", "--quiet", "-e", "cpu-clock:u", "-F", "2000", "-o"])
        .arg(session.path("perf.data"))
        .arg("--")
        .arg(&path)
        .output()
        .expect("perf runs");
    if !record.status.success() {
        return skip("addresses by perf: perf record does not work here");
    }
    let script = Command::new(&perf)
        .args(["script", "--no-inline", "-F", "ip,sym", "-i"])
        .arg(session.path("perf.data"))
        .output()
        .expect("perf runs");
    for function in ["ten_percent", "twenty_percent", "thirty_percent", "forty_percent"] {
        let mut by_perf: BTreeMap<u64, f64> = BTreeMap::new();
        for line in String::from_utf8_lossy(&script.stdout).lines() {
            let mut words = line.split_whitespace();
            if let (Some(ip), Some(name)) = (words.next(), words.next())
                && name == function
            {
                *by_perf.entry(u64::from_str_radix(ip, 16).expect("an address")).or_default() += 1.0;
            }
        }
        assert!(by_perf.values().sum::<f64>() > 10.0, "{}", String::from_utf8_lossy(&script.stdout));
        let histogram = histogram(&session, "perf.data", function, &[]);
        let ours: BTreeMap<u64, f64> =
            bins(&histogram).iter().map(|bin| (address(bin, "address"), number(bin, "samples"))).collect();
        assert_eq!(ours, by_perf);
    }
}
