//! Callgrind files: those of Valgrind, and our own.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a test says what it skipped")]

use crate::common;

use std::collections::BTreeMap;
use std::process::Command;

use common::{FIXTURES, fixture, profile, step, totals};
use expect_test::expect;
use proptest::prelude::*;
use treering_formats::{callgrind, read_any};
use treering_profile::{MetricId, Profile, Unit};
use treering_testing::synthetic::{Shape, synthetic};

fn read(name: &str) -> Profile {
    callgrind::read(&fixture(name)).unwrap().0
}

fn written(profile: &Profile) -> Vec<u8> {
    let mut file = Vec::new();
    let _ = callgrind::write(profile, &mut file).unwrap();
    file
}

/// Self costs in Ir by function, with those of deeper levels of recursion added.
fn self_costs(profile: &Profile) -> BTreeMap<String, u64> {
    let mut costs = BTreeMap::new();
    for ((name, metric), cost) in totals(profile) {
        if metric == "Ir" {
            let name = name.split('\'').next().unwrap().to_owned();
            *costs.entry(name).or_default() += cost;
        }
    }
    costs
}

/// `caller > callee @ line: calls cost`, in Ir.
fn arcs(profile: &Profile) -> String {
    let name = |function| profile.strings[profile.functions[function].name].to_owned();
    let mut arcs: Vec<_> = profile
        .arcs
        .iter()
        .map(|arc| {
            let line = arc.call_site.map_or(0, |line| profile.lines[line].line);
            let cost = arc.total_costs.first().map(|(_, cost)| *cost);
            format!("{} > {} @ {line}: {} {cost:?}\n", name(arc.caller), name(arc.callee), arc.calls)
        })
        .filter(|arc| !arc.contains("main >") && !arc.contains("> main") && !arc.contains("thread"))
        .collect();
    arcs.sort();
    arcs.concat()
}

#[test]
fn the_costs_of_calls_are_not_added_to_self_costs() {
    let profile = read("callgrind/plain.callgrind");
    let actual: String = self_costs(&profile).iter().map(|(name, cost)| format!("{name} {cost}\n")).collect();
    expect![[r#"
        even 233
        fact 330
        leaf 1194
        odd 188
        work 268
    "#]]
    .assert_eq(&actual);
}

#[test]
fn arcs_have_call_sites_counts_and_total_costs() {
    expect![[r#"
        (below main) > __libc_start_main@@GLIBC_2.34 @ 0: 1 Some(1230)
        0x000000000001ab70 > (below main) @ 0: 1 Some(1230)
        __libc_start_main@@GLIBC_2.34 > (below main) @ 360: 1 Some(1230)
        even > odd @ 16: 10 Some(681)
        even'2 > leaf @ 16: 5 Some(160)
        even'2 > odd'2 @ 16: 12 Some(699)
        fact > fact'2 @ 12: 4 Some(812)
        fact > leaf @ 11: 6 Some(264)
        fact'2 > fact'2 @ 12: 10 None
        fact'2 > leaf @ 11: 14 Some(580)
        odd > even'2 @ 17: 8 Some(519)
        odd > leaf @ 17: 2 Some(76)
        odd'2 > even'2 @ 17: 9 Some(483)
        odd'2 > leaf @ 17: 3 Some(114)
        second > work @ 25: 1 Some(983)
        work > even @ 21: 10 Some(771)
        work > fact @ 21: 6 Some(1174)
    "#]]
    .assert_eq(&arcs(&read("callgrind/plain.callgrind")));
}

#[test]
fn names_positions_parts_and_instructions_make_no_difference() {
    let plain = self_costs(&read("callgrind/plain.callgrind"));
    assert_eq!(plain.values().sum::<u64>(), 2213);
    for other in FIXTURES.iter().filter(|name| name.starts_with("callgrind/")) {
        assert_eq!(self_costs(&read(other)), plain, "{other}");
    }
}

#[test]
fn inlined_lines_are_in_the_file_they_come_from() {
    let profile = read("callgrind/plain.callgrind");
    let mut lines: BTreeMap<String, u64> = BTreeMap::new();
    for part in &profile.line_costs {
        let function = profile.functions[profile.tree.function(part.node)];
        if &profile.strings[function.name] == "leaf" {
            let line = profile.lines[part.line];
            *lines.entry(format!("{}:{}", &profile.strings[line.file], line.line)).or_default() += part.cost;
        }
    }
    let actual: String = lines.iter().map(|(line, cost)| format!("{line} {cost}\n")).collect();
    expect![[r#"
        /src/shapes/shapes.c:8 90
        /src/shapes/shapes.h:3 30
        /src/shapes/shapes.h:4 597
        /src/shapes/shapes.h:5 477
    "#]]
    .assert_eq(&actual);
}

#[test]
fn parts_become_threads_and_trailing_zeros_may_be_missing() {
    let parts = read("callgrind/parts.callgrind");
    let names: Vec<_> = parts.threads.iter().map(|thread| (thread.tid, thread.name.as_str())).collect();
    assert_eq!(names, [(1, "thread 1"), (2, "thread 2")]);
    let instructions = read("callgrind/instructions.callgrind");
    let names: Vec<_> = instructions.metrics.iter().map(|metric| metric.name.as_str()).collect();
    let expected = "Ir Dr Dw I1mr D1mr D1mw ILmr DLmr DLmw Bc Bcm Bi Bim";
    assert_eq!(names.join(" "), expected);
    let bc = instructions.find_metric("Bc").unwrap();
    assert_eq!(instructions.run_cost(bc), 292);
}

#[test]
fn a_file_cut_short_is_noticed_by_its_totals() {
    let file = fixture("callgrind/plain.callgrind");
    let cut = &file[..file.len() / 2];
    let end = cut.iter().rposition(|&byte| byte == b'\n').unwrap();
    let (_, report) = callgrind::read(&cut[..end]).unwrap();
    assert!(report.notes[0].starts_with("the file states a total of 2213 Ir but holds"), "{report:?}");
    assert!(report.notes[0].ends_with("it may be cut short"));
}

#[test]
fn lines_that_make_no_sense_are_refused_with_their_place() {
    for (file, expected) in [
        ("fn=a\n1 2\n", "line 2 at byte 0x5: costs stand before the `events:` line"),
        ("events: Ir\n1 2\n", "line 2 at byte 0xb: costs stand before the first `fn=` line"),
        ("events: Ir\nfn=a\n1 x\n", "line 3 at byte 0x10: a number is expected"),
        ("events: Ir\nfn=a\n1 2 3\n", "line 3 at byte 0x10: there are more costs than events"),
        ("events: Ir\nfn=a\n-1 2\n", "line 3 at byte 0x10: a position from 0 to 2^64 is expected"),
        (
            "events: Ir\nfn=a\ncalls=1 1\n1 2\n",
            "line 4 at byte 0x1a: the cost of a call stands without a `cfn=` line",
        ),
        ("positions: page\n", "line 1 at byte 0x0: positions of the sort `page` are not known"),
        ("version: 2\n", "line 1 at byte 0x0: version 2 is not known; versions up to 1 are"),
        (
            "what\n",
            "line 1 at byte 0x0: a cost, `key: value`, a name such as `fn=main`, or `calls=` is expected",
        ),
        ("events: Ir\n", "it holds no costs"),
    ] {
        assert_eq!(callgrind::read(file.as_bytes()).unwrap_err().to_string(), expected);
    }
    let many = format!("events:{}\n", " e".repeat(257));
    assert_eq!(
        callgrind::read(many.as_bytes()).unwrap_err().to_string(),
        "line 1 at byte 0x0: there are 257 events; at most 256 can be read"
    );
}

/// `name metric cost` of a text, and what the reader says.
fn read_text(text: &str) -> (Vec<String>, Vec<String>) {
    let (profile, report) = callgrind::read(text.as_bytes()).unwrap();
    let costs = totals(&profile);
    (costs.iter().map(|((name, metric), cost)| format!("{name} {metric} {cost}")).collect(), report.notes)
}

/// The costs of functions that `callgrind_annotate` prints: `cost... function`, without percentages.
fn annotated(text: &str) -> Option<Vec<String>> {
    let path = std::env::temp_dir().join(format!("treering-annotated-{}.callgrind", std::process::id()));
    std::fs::write(&path, text).unwrap();
    let output =
        Command::new("callgrind_annotate").arg("--auto=no").arg("--threshold=100").arg(&path).output();
    std::fs::remove_file(&path).unwrap();
    let Some(output) = output.ok().filter(|output| output.status.success()) else {
        println!("skipped: callgrind_annotate is not installed");
        return None;
    };
    let listing = String::from_utf8_lossy(&output.stdout).into_owned();
    let rows = listing.lines().skip_while(|line| !line.contains("file:function")).skip(2);
    let words = rows.take_while(|line| !line.trim().is_empty()).map(|line| {
        let kept = line.split_whitespace().filter(|word| !word.contains('%') && *word != "(");
        kept.map(|word| word.replace(',', "")).collect::<Vec<_>>().join(" ")
    });
    Some(words.collect())
}

#[test]
fn costs_below_0_are_taken_from_those_of_the_same_function() {
    let text = "version: 1\ncreator: xdebug 2.9.8\nevents: Time Memory\nfl=a.php\nfn=main\n1 100 5000\n\
                2 10 -260\ncfn=f\ncalls=1 1\n3 50 -9000\nfn=f\n7 50 -9000\nsummary: 160 -4260\n";
    let (costs, notes) = read_text(text);
    let expected = ["f Memory (negative) 9000", "f Time 50", "main Memory 4740", "main Time 110"];
    assert_eq!(costs, expected);
    assert!(notes.iter().any(|note| note.contains("in the metric `Memory (negative)`")), "{notes:?}");
    if let Some(rows) = annotated(text) {
        assert_eq!(rows, ["110 4740 a.php:main", "50 -9000 a.php:f"]);
    }
}

/// The notice about files without totals.
const NO_TOTALS: &str = "the file states no totals, so it is not known whether it is whole";

#[test]
fn files_of_xdebug_have_another_version_and_units_in_names() {
    let (costs, notes) = read_text(
        "version: 0.9.6\ncmd: /x/index.php\npart: 1\n\nevents: Time_(10ns) Memory_(bytes)\n\nfl=php:internal\n\
         fn=php::define\n27 97 12\n",
    );
    assert_eq!(costs, ["php::define Memory 12", "php::define Time 970"]);
    assert_eq!(notes, [NO_TOTALS]);
    let (profile, _) = callgrind::read(b"events: cpu(ms) space(kB)\nfn=f\n1 2 3\n").unwrap();
    let metrics: Vec<_> = profile.metrics.iter().map(|metric| (metric.name.as_str(), metric.unit)).collect();
    assert_eq!(metrics, [("cpu", Unit::Nanoseconds), ("space", Unit::Bytes)]);
    assert_eq!([0, 1].map(|metric| profile.run_cost(MetricId::new(metric))), [2_000_000, 3072]);
}

#[test]
fn names_that_are_not_defined_stand_for_themselves() {
    let text = "events: Ir\nfn=main\n1 10\ncob=(8)\ncfn=foo\ncalls=1 1\n1 5\nob=(8)\nfn=foo\n1 5\nfn=(3)\n1 2\nfn=(3)\n2 4\n";
    let (costs, notes) = read_text(text);
    assert_eq!(costs, ["(3) Ir 6", "foo Ir 5", "main Ir 10"]);
    assert!(notes.iter().any(|note| note.contains("does not define (2)")), "{notes:?}");
}

#[test]
fn several_events_of_one_name_are_not_added_up() {
    let (costs, notes) = read_text("events: Ir Ir\nfn=f\n1 2 3\nevents: Ir\n1 4\n");
    assert_eq!(costs, ["f Ir 6", "f Ir 2 3"]);
    assert_eq!(notes, ["there are several events Ir: the next one is `Ir 2`", NO_TOTALS]);
}

#[test]
fn only_a_file_without_an_end_may_be_cut_short() {
    let whole = "events: Ir\nfn=f\n1 2\ntotals: 5\n";
    assert_eq!(read_text(whole).1, ["the file states a total of 5 Ir but holds 2"]);
    let cut = "events: Ir\nsummary: 5\nfn=f\n1 2\n";
    assert_eq!(read_text(cut).1, ["the file states a total of 5 Ir but holds 2: it may be cut short"]);
}

#[test]
fn blank_names_and_kinds_survive() {
    let stacks = "main; ;b 1\na;page_fault_[k] 2\na;page_fault 4\na;page_fault_[j] 8\n";
    let profile = treering_formats::folded::read(stacks.as_bytes()).unwrap().0;
    let (read, report) = callgrind::read(&written(&profile)).unwrap();
    assert!(report.is_complete(), "{report:?}");
    let mut functions: Vec<_> = read
        .functions
        .entries()
        .iter()
        .map(|function| (read.strings[function.name].to_owned(), function.kind.as_str()))
        .collect();
    functions.sort();
    let expected = [
        ("", "root"),
        (" ", "native"),
        ("a", "native"),
        ("b", "native"),
        ("main", "native"),
        ("page_fault", "jit"),
        ("page_fault", "kernel"),
        ("page_fault", "native"),
    ];
    assert_eq!(functions, expected.map(|(name, kind)| (name.to_owned(), kind)));
}

#[test]
fn a_mark_at_the_start_and_compression_make_no_difference() {
    let text = "\u{feff}version: 1\nevents: Ir\nfn=f\n1 2\n";
    assert_eq!(read_text(text), (vec!["f Ir 2".to_owned()], vec![NO_TOTALS.to_owned()]));
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    std::io::Write::write_all(&mut packed, text.as_bytes()).unwrap();
    let (format, profile, _) = read_any(&packed.finish().unwrap()).unwrap();
    assert_eq!((format, profile.run_cost(MetricId::new(0))), (treering_formats::Format::Callgrind, 2));
}

#[test]
fn the_layout_of_a_written_file() {
    let profile = treering_formats::folded::read(b"main;f;f;g 3\nmain;f 4\n").unwrap().0;
    let version = env!("CARGO_PKG_VERSION");
    let file = String::from_utf8(written(&profile)).unwrap().replace(version, "VERSION");
    expect![[r#"
        # callgrind format
        version: 1
        creator: treering VERSION
        part: 1

        desc: Calls: not counted, 1 for each arc

        positions: line
        event: samples : samples [count]
        events: samples
        summary: 7

        ob=(1) ???
        fl=(1) ???
        fn=(1) main
        cfn=(2) f
        calls=1 0
        0 7

        fn=(2)
        0 4
        cfn=(2)
        calls=1 0
        0 3
        cfn=(3) g
        calls=1 0
        0 3

        fn=(3)
        0 3

        totals: 7
    "#]]
    .assert_eq(&file);
}

#[test]
fn calls_that_were_not_counted_stay_unknown() {
    let sampled = treering_formats::folded::read(b"main;f;f;g 3\nmain;f 4\n").unwrap().0;
    let again = callgrind::read(&written(&sampled)).unwrap().0;
    assert!(again.arcs.iter().all(|arc| arc.calls == 0 && !arc.total_costs.is_empty()), "{:?}", again.arcs);
    assert_eq!(written(&again), written(&sampled));
}

#[test]
fn reading_and_writing_again_changes_nothing() {
    for name in FIXTURES.iter().filter(|name| name.starts_with("callgrind/")) {
        let first = read(name);
        let second = callgrind::read(&written(&first)).unwrap().0;
        assert_eq!(totals(&second), totals(&first), "{name}");
        assert_eq!(written(&second).len(), written(&callgrind::read(&written(&second)).unwrap().0).len());
        let sum = |profile: &Profile| profile.arcs.iter().map(|arc| arc.calls).sum::<u64>();
        assert_eq!(sum(&second), sum(&first), "{name}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn self_costs_survive_and_no_arc_exceeds_the_run(steps in prop::collection::vec(step(), 0..40)) {
        let mut profile = profile(&steps);
        profile.arcs.clear();
        let named = profile.functions.entries().iter().all(|function| {
            let name = &profile.strings[function.name];
            (!name.is_empty() && name.trim() == name) || *function == treering_profile::Function::root()
        });
        prop_assume!(named && profile.run_cost(treering_profile::MetricId::new(1)) > 0);
        let (read, report) = callgrind::read(&written(&profile)).unwrap();
        prop_assert!(report.notes.iter().all(|note| note.contains("were not counted")), "{report:?}");
        prop_assert_eq!(totals(&read), totals(&profile));
        for arc in &read.arcs {
            for &(metric, cost) in &arc.total_costs {
                prop_assert!(cost <= read.run_cost(metric));
            }
        }
    }
}

#[test]
fn every_id_is_defined_once() {
    let file = String::from_utf8(written(&synthetic(&Shape::SMALL))).unwrap();
    for keys in [&["ob=", "cob="][..], &["fl=", "fi=", "cfi="], &["fn=", "cfn="]] {
        let mut defined = std::collections::BTreeSet::new();
        for line in file.lines() {
            let Some(value) = keys.iter().find_map(|key| line.strip_prefix(key)) else { continue };
            let (id, name) = value.split_once(')').unwrap();
            let first = defined.insert(id.to_owned());
            assert_eq!(first, !name.is_empty(), "{line}");
        }
    }
}

#[test]
fn callgrind_annotate_reads_what_we_write() {
    let profile = synthetic(&Shape::SMALL);
    let samples = profile.find_metric("samples").unwrap();
    let folder = std::env::temp_dir().join(format!("treering-callgrind-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("small.callgrind");
    std::fs::write(&path, written(&profile)).unwrap();
    let output = Command::new("callgrind_annotate")
        .args(["--threshold=100", "--show=samples", "--sort=samples"])
        .arg(&path)
        .output();
    std::fs::remove_dir_all(&folder).unwrap();
    let Ok(output) = output else {
        eprintln!("skipped: callgrind_annotate is not installed");
        return;
    };
    let listing = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let number =
        |line: &str| line.split_whitespace().next().unwrap().replace(',', "").parse::<u64>().unwrap();
    let total = listing.lines().find(|line| line.contains("PROGRAM TOTALS")).unwrap();
    assert_eq!(number(total), profile.run_cost(samples));
    for ((name, metric), cost) in totals(&profile) {
        if metric == "samples" && !name.is_empty() {
            let line = listing.lines().find(|line| line.contains(&name)).unwrap();
            assert_eq!(number(line), cost, "{line}");
        }
    }
}

#[test]
fn any_of_them_is_recognised() {
    for name in FIXTURES.iter().filter(|name| name.starts_with("callgrind/")) {
        assert_eq!(read_any(&fixture(name)).unwrap().0, treering_formats::Format::Callgrind);
    }
}

/// `caller (file) > callee (file)` of each arc, and how many functions there are.
fn arcs_by_file(text: &str) -> (Vec<String>, usize) {
    let (profile, _) = callgrind::read(text.as_bytes()).unwrap();
    let name = |function| {
        let function: treering_profile::Function = profile.functions[function];
        format!("{} ({})", &profile.strings[function.name], &profile.strings[function.file])
    };
    let arcs = profile.arcs.iter().map(|arc| format!("{} > {}", name(arc.caller), name(arc.callee)));
    (arcs.collect(), profile.functions.len() - 1)
}

#[test]
fn the_file_of_a_called_function_may_stand_on_either_side_of_its_name() {
    let called = |first: &str, second: &str| {
        format!(
            "events: Ticks\nfi=a.py\nfn=main\n1 10\n{first}\ncalls=3 5\n2 90\n{second}\ncalls=1 7\n2 50\n\
             fi=b.py\nfn=work\n5 90\nfi=c.py\nfn=more\n7 50\nfi=a.py\nfn=last\n9 1\n"
        )
    };
    let expected = ["main (a.py) > work (b.py)", "main (a.py) > more (c.py)"];
    for (first, second) in [
        ("cfn=work\ncfi=b.py", "cfn=more\ncfi=c.py"),
        ("cfi=b.py\ncfn=work", "cfi=c.py\ncfn=more"),
        ("cfn=(1) work\ncfl=(7) b.py", "cfl=(8) c.py\ncfn=(2) more"),
        ("cfn=work\n# comment\ncob=\ncfi=b.py", "cob=\ncfn=more\ncfi=c.py"),
    ] {
        assert_eq!(arcs_by_file(&called(first, second)), (expected.map(str::to_owned).into(), 4), "{first}");
    }
    // Without a file of its own, it is in that of its caller.
    let (arcs, _) = arcs_by_file(
        "events: T\nfl=a.py\nfn=f\n1 1\ncfn=g\ncalls=1 2\n1 5\ncfi=b.py\ncfn=h\ncalls=1 2\n1 5\n",
    );
    assert_eq!(arcs, ["f (a.py) > g (a.py)", "f (a.py) > h (b.py)"]);
}

#[test]
fn a_file_that_is_cut_short_says_so() {
    let text = fixture("callgrind/plain.callgrind");
    let (whole, report) = callgrind::read(&text).unwrap();
    assert!(!report.unfinished);
    for end in (1..text.len() - 1).step_by(7) {
        let Ok((profile, report)) = callgrind::read(&text[..end]) else { continue };
        let same = totals(&profile) == totals(&whole) && profile.arcs.len() == whole.arcs.len();
        let is_told = report.notes.iter().any(|note| note.ends_with("it may be cut short"));
        assert!(report.unfinished || is_told || same, "cut at {end}");
        let losses = |text: &String| {
            text.contains("cut short") || text.contains("has no end") || text.contains("whole")
        };
        let said: Vec<_> = report.warnings().into_iter().filter(losses).collect();
        assert!(said.len() <= 1, "cut at {end}: {said:?}");
    }
    // Files of other tools state totals or do not.
    let notes = |text: &str| callgrind::read(text.as_bytes()).unwrap().1;
    let unknown = notes("events: Ir\nfn=f\n1 5\n");
    assert!(!unknown.unfinished && unknown.notes == [NO_TOTALS], "{unknown:?}");
    assert!(notes("events: Ir\nsummary: 5\nfn=f\n1 5\n").is_complete());
    assert!(notes("events: Ir\nfn=f\n1 5\ncfn=g\ncalls=1 1\n").unfinished);
}

#[test]
fn each_loss_is_said_once() {
    const NO_END: &str = "the file has no end: its writer was stopped, what came last may be missing";
    let said = |text: &str| callgrind::read(text.as_bytes()).unwrap().1.warnings();
    let callgrind = "creator: callgrind-3.19.0\nevents: Ir Dr\n";
    // Cut before the totals, with a summary and without; inside a line; inside the totals.
    let short =
        "the file states a total of 9 Ir but holds 5 (and 1 other total differs): it may be cut short";
    assert_eq!(said(&format!("{callgrind}summary: 9 4\nfn=f\n1 5 2\n")), [short]);
    assert_eq!(said(&format!("{callgrind}fn=f\n1 5 2\n")), [NO_END]);
    assert_eq!(said("events: Ir\nfn=f\n1 5\n2 1"), [NO_END]);
    assert_eq!(said("events: Ir\nfn=f\n1 52\ntotals: 5"), [NO_END]);
    // A summary whose costs are all there lacks nothing but the end.
    assert_eq!(said(&format!("{callgrind}summary: 5 2\nfn=f\n1 5 2\n")), [NO_END]);
}
