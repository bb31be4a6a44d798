//! Folded stacks.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::common;

use common::{fixture, profile, step};
use expect_test::expect;
use proptest::prelude::*;
use treering_formats::{Problem, folded};
use treering_profile::{FunctionKind, MetricId, Profile};
use treering_testing::synthetic::{Shape, synthetic};

fn written(profile: &Profile, metric: u32) -> String {
    let mut file = Vec::new();
    let _ = folded::write(profile, MetricId::new(metric), &mut file).unwrap();
    String::from_utf8(file).unwrap()
}

#[test]
fn stacks_of_py_spy_add_up_to_its_samples() {
    let file = fixture("folded/py-spy.folded");
    let (profile, _) = folded::read(&file).unwrap();
    // py-spy said: Samples: 669.
    assert_eq!(profile.run_cost(MetricId::new(0)), 669);
    let name = |function: &treering_profile::Function| profile.strings[function.name].to_owned();
    let names: Vec<_> = profile.functions.entries().iter().map(name).collect();
    assert!(names.iter().any(|name| name == "work.<locals>.<genexpr> (shapes.py:11)"));
    // Sorted, it is the same file, but that what has no stack is named.
    let sorted = |text: &str| {
        let mut lines: Vec<_> = text.lines().map(|line| line.replace("[root] ", " ")).collect();
        lines.sort();
        lines
    };
    let same = sorted(&written(&profile, 0)) == sorted(&String::from_utf8(file).unwrap());
    assert!(same, "a stack was changed");
}

#[test]
fn names_hold_spaces_and_kinds() {
    let (profile, _) =
        folded::read(b"a b;operator() const;do_syscall_64_[k] 12\na b;jitted_[j] 3\r\n\n# x\n").unwrap();
    let functions = profile.functions.entries().iter().skip(1);
    let seen: Vec<_> =
        functions.map(|function| (profile.strings[function.name].to_owned(), function.kind)).collect();
    let expected = [
        ("a b", FunctionKind::Native),
        ("operator() const", FunctionKind::Native),
        ("do_syscall_64", FunctionKind::Kernel),
        ("jitted", FunctionKind::Jit),
    ];
    assert_eq!(seen, expected.map(|(name, kind)| (name.to_owned(), kind)));
    assert_eq!(profile.run_cost(MetricId::new(0)), 15);
}

#[test]
fn a_semicolon_in_a_name_survives() {
    let (mut profile, _) = folded::read(b"x 1\n").unwrap();
    let name = profile.strings.intern("Lcom/x;.run");
    let function = profile.functions.intern(treering_profile::Function::named(name));
    let thread = treering_profile::ThreadId::new(0);
    let frame = treering_profile::Frame::new(function);
    profile.add_stack(thread, &[frame], None, &[(MetricId::new(0), 5)]);
    let file = written(&profile, 0);
    assert_eq!(file, "x 1\nLcom/x\u{37e}.run 5\n");
    let (read, _) = folded::read(file.as_bytes()).unwrap();
    assert_eq!(&read.strings[read.functions.entries()[2].name], "Lcom/x;.run");
}

#[test]
fn stacks_that_differ_only_in_call_sites_and_threads_are_one_line() {
    let profile = synthetic(&Shape::SMALL);
    let file = written(&profile, 1);
    let mut stacks: Vec<_> = file.lines().map(|line| line.rsplit_once(' ').unwrap().0).collect();
    let count = stacks.len();
    stacks.sort();
    stacks.dedup();
    assert_eq!(stacks.len(), count);
}

#[test]
fn a_line_that_is_no_stack_is_refused_with_its_place() {
    for (file, expected) in [
        (
            "a;b 1\nword\nother\na;c 1\n",
            "line 2 at byte 0x6: no weight: a stack is followed by a space and a number",
        ),
        ("a;b x\n", "line 1 at byte 0x0: `x` is no weight, which is a number from 0 to 2^64 - 1"),
        ("a -1\n", "line 1 at byte 0x0: `-1` is no weight, which is a number from 0 to 2^64 - 1"),
        ("\n", "it holds no stacks"),
    ] {
        assert_eq!(folded::read(file.as_bytes()).unwrap_err().to_string(), expected);
    }
    let over = "a 18446744073709551615\nb 1\n";
    let problem = folded::read(over.as_bytes()).unwrap_err().problem;
    assert!(matches!(problem, Problem::Invalid(_)));
}

/// `stack cost` of the default metric, and the name of every metric with its run cost.
fn read_text(text: &[u8]) -> (String, Vec<String>, Vec<String>) {
    let (profile, report) = folded::read(text).unwrap();
    let metrics = profile.metrics().map(|(id, metric)| format!("{} {}", metric.name, profile.run_cost(id)));
    (written(&profile, 0), metrics.collect(), report.notes)
}

#[test]
fn a_file_with_two_weights_is_a_difference() {
    let (stacks, metrics, notes) = read_text(b"a;b 5 7\na;c 0 3\n");
    assert_eq!(stacks, "a;b 5\n");
    assert_eq!(metrics, ["before 5", "after 10"]);
    assert!(notes[0].contains("difffolded.pl"), "{notes:?}");
    // Where only some lines end with two numbers, the first belongs to the name.
    let (stacks, metrics, notes) = read_text(b"a;worker 5 7\na;c 3\n");
    assert_eq!(stacks, "a;worker\u{2007}5 7\na;c 3\n");
    assert_eq!(metrics, ["samples 10"]);
    assert!(notes[0].starts_with("1 of 2 stacks ends with two numbers"), "{notes:?}");
}

#[test]
fn a_number_at_the_end_of_a_name_survives() {
    let (profile, _) = folded::read(b"a;worker 5 7\na;c 3\n").unwrap();
    let (read, report) = folded::read(written(&profile, 0).as_bytes()).unwrap();
    assert!(report.is_complete(), "{report:?}");
    assert!(read.functions.entries().iter().any(|function| &read.strings[function.name] == "worker 5"));
    let dropped = folded::write(&profile, MetricId::new(0), std::io::sink()).unwrap();
    assert!(dropped.notes.iter().any(|note| note.contains("U+2007")), "{dropped:?}");
}

#[test]
fn decimals_are_kept() {
    let (stacks, metrics, notes) = read_text(b"a;b 1.25\r\na;c 3\r\na;d 0.0\r\n");
    assert_eq!((stacks.as_str(), notes.len()), ("a;b 1250\na;c 3000\n", 0));
    assert_eq!(metrics, ["millisamples 4250"]);
    let (_, metrics, notes) = read_text(b"a 0.12345678949\nb 2.0\n");
    assert_eq!(metrics, ["nanosamples 2123456789"]);
    assert_eq!(notes, ["weights are rounded to 9 decimals"]);
    let (_, metrics, _) = read_text(b"a 18446744073709551.5\n");
    assert_eq!(metrics, ["millisamples 18446744073709551500"]);
    let (_, metrics, notes) = read_text(b"a 1844674407370955161.5\n");
    assert_eq!((metrics[0].as_str(), notes.len()), ("samples 1844674407370955162", 1));
}

#[test]
fn marks_of_encoding_and_of_tiers_are_no_part_of_names() {
    let (stacks, _, _) = read_text("\u{feff}main;a 1\nmain;b 2\n".as_bytes());
    assert_eq!(stacks, "main;a 1\nmain;b 2\n");
    let (profile, report) =
        folded::read(b"a;f_[1] 1\na;f_[0] 2\na;f_[j] 4\na;b\xff;c 1\na;b\xfe;c 1\n").unwrap();
    let seen: Vec<_> = profile
        .functions
        .entries()
        .iter()
        .map(|function| format!("{} {}", &profile.strings[function.name], function.kind.as_str()))
        .collect();
    let expected =
        [" root", "a native", "f jit", "f interpreted", r"b\xff native", "c native", r"b\xfe native"];
    assert_eq!(seen, expected);
    assert_eq!(report.notes.len(), 2, "{report:?}");
}

/// As async-profiler's documentation says: interpreted, by the first compiler, compiled, inlined, of the kernel.
#[test]
fn each_mark_of_async_profiler_is_a_kind() {
    let stack =
        b"java/lang/Thread.run_[0];A.loop_[1];A.work_[j];A.inner_[i];__GI_write;do_syscall_64_[k] 5\n";
    let (profile, _) = folded::read(stack).unwrap();
    let kind = |function: &treering_profile::Function| {
        format!("{} {}", &profile.strings[function.name], function.kind.as_str())
    };
    let seen: Vec<_> = profile.functions.entries()[1..].iter().map(kind).collect();
    let expected = [
        "java/lang/Thread.run interpreted",
        "A.loop jit",
        "A.work jit",
        "A.inner inlined",
        "__GI_write native",
        "do_syscall_64 kernel",
    ];
    assert_eq!(seen, expected);
}

#[test]
fn a_name_may_start_with_the_sign_of_comments() {
    let (stacks, _, _) = read_text(b"# stacks of ruby\n#<Class:0x1>;new 4\n");
    assert_eq!(stacks, "#<Class:0x1>;new 4\n");
}

#[test]
fn comments_are_no_functions_even_with_a_number() {
    let file = b"# interval: 100\n#duration: 900\n# total 5\n#\nmain;a 1\nArray#each;b 4\n# duration: 1000\n";
    let (stacks, metrics, notes) = read_text(file);
    assert_eq!(stacks, "main;a 1\nArray#each;b 4\n");
    assert_eq!((metrics, notes.len()), (vec!["samples 5".to_owned()], 0));
    // Nor is a name one that looks like it.
    for name in ["# x", "#", "#!f", "#time: 5", "#time: y"] {
        let (mut profile, _) = folded::read(b"x 1\n").unwrap();
        let name_id = profile.strings.intern(name);
        let function = profile.functions.intern(treering_profile::Function::named(name_id));
        let frame = treering_profile::Frame::new(function);
        profile.add_stack(treering_profile::ThreadId::new(0), &[frame], None, &[(MetricId::new(0), 5)]);
        let (read, _) = folded::read(written(&profile, 0).as_bytes()).unwrap();
        assert_eq!(&read.strings[read.functions.entries()[2].name], name);
    }
}

#[test]
fn a_stray_line_is_passed_over_and_named() {
    let file = b"main;a 1\nWARNING something\nmain;b 2\nmain;c 4\n\nDone.\nmain;d 8\n";
    let (stacks, metrics, notes) = read_text(file);
    assert_eq!(stacks, "main;a 1\nmain;b 2\nmain;c 4\nmain;d 8\n");
    assert_eq!(metrics, ["samples 15"]);
    let note = "lines that are no stacks with a weight were passed over: 2, the first is line 2: `WARNING something`";
    assert_eq!(notes, [note]);
    assert_eq!(treering_formats::detect(file), Some(treering_formats::Format::Folded));
}

#[test]
fn prose_and_headers_are_no_stacks() {
    for text in [
        &b"# captured on    : Fri Nov 27\n# nrcpus online : 2\n#\n"[..],
        b"total: 5\nused: 3\n",
        b"line one\nmain;a 1\nline two\nline three\n",
    ] {
        assert_eq!(treering_formats::detect(text), None, "{}", text.escape_ascii());
    }
}

#[test]
fn it_is_recognised_whatever_its_first_line() {
    let long = format!("{};leaf 1\n", "frame;".repeat(20_000));
    for text in [long.as_bytes(), b"\xef\xbb\xbfmain;a 1.5\n", b"caf\xe9;b 2\n"] {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        std::io::Write::write_all(&mut packed, text).unwrap();
        for bytes in [text, &packed.finish().unwrap()] {
            assert_eq!(treering_formats::read_any(bytes).unwrap().0, treering_formats::Format::Folded);
        }
    }
}

#[test]
fn a_small_file_does_not_become_a_large_tree() {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    std::io::Write::write_all(&mut packed, &[&b"x 1\n"[..], &b"a;".repeat(20_000_000), b"b 1\n"].concat())
        .unwrap();
    let packed = packed.finish().unwrap();
    assert!(packed.len() < 50_000);
    let error = treering_formats::read_any(&packed).unwrap_err().to_string();
    assert!(error.contains("far more memory"), "{error}");
}

#[test]
fn the_size_of_a_file_is_known_before_it_is_written() {
    for profile in [synthetic(&Shape::SMALL), folded::read(b"a;b;c 10\na;b 9\n[root] 100\n").unwrap().0] {
        for (metric, _) in profile.metrics() {
            assert_eq!(folded::size(&profile, metric), written(&profile, metric.raw()).len() as u64);
        }
    }
}

#[test]
fn it_says_what_it_drops() {
    let profile = synthetic(&Shape::SMALL);
    let dropped = folded::write(&profile, MetricId::new(1), std::io::sink()).unwrap();
    expect![[r#"
        all metrics but samples: cpu-clock, wall
        the command, and how long it ran
        threads: their costs are added up
        modules
        source lines and call sites"#]]
    .assert_eq(&dropped.notes.join("\n"));
    let dropped = folded::write(&profile, MetricId::new(0), std::io::sink()).unwrap();
    assert!(dropped.notes.iter().any(|note| note.starts_with("which costs are estimated")), "{dropped:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn costs_survive(steps in prop::collection::vec(step(), 0..40)) {
        let profile = profile(&steps);
        let metric = MetricId::new(1);
        prop_assume!(profile.run_cost(metric) > 0);
        let file = written(&profile, 1);
        let (read, _) = folded::read(file.as_bytes()).unwrap();
        prop_assert_eq!(read.run_cost(MetricId::new(0)), profile.run_cost(metric));
        // Written again, they are the same lines.
        let lines = |text: &str| text.lines().map(str::to_owned).collect::<std::collections::BTreeSet<_>>();
        prop_assert_eq!(lines(&written(&read, 0)), lines(&file));
    }
}

/// They were profiles: `/proc/vmstat` had seven milliards of samples.
#[test]
fn settings_logs_and_tables_are_no_stacks() {
    for stacks in ["main 5\nstd::operator= 3\n#<Class:0x1> 4\n", "main 5 0\nf 0 7\n", "a;b 0\n12;b 3\n"] {
        let format = treering_formats::detect(stacks.as_bytes());
        assert_eq!(format, Some(treering_formats::Format::Folded), "{stacks}");
    }
    for other in [
        "vm.swappiness = 10\nkernel.pid_max = 4\n",
        "# remark\n#label fc00::/7     6\n#precedence ::1/128 50\n",
        "cpu 3768663 2397960 1027943\nbtime 1795763651\nprocesses 1410085\n",
        "nr_free_pages 5135\nnr_dirty 0\nnr_mapped 97\n",
        "proc /proc proc rw,nosuid 0 0\n",
        "1 2\n3 4\n",
        "2026-11-27 10:00:00 INFO took 17\n",
    ] {
        assert_eq!(treering_formats::detect(other.as_bytes()), None, "{other}");
        // A user who knows better names the format.
        assert!(treering_formats::folded::read(other.as_bytes()).is_ok(), "{other}");
    }
}
