//! Folded stacks.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{fixture, profile, step};
use expect_test::expect;
use proptest::prelude::*;
use treering_formats::folded::{self, Problem};
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
fn what_is_no_stack_is_refused_with_its_place() {
    for (file, expected) in [
        ("a;b 1\nword\n", "line 2 at byte 0x6 has no weight: a stack is followed by a space and a number"),
        ("a;b x\n", "line 1 at byte 0x0 ends with `x`, which is not a whole number from 0 to 2^64 - 1"),
        ("a -1\n", "line 1 at byte 0x0 ends with `-1`, which is not a whole number from 0 to 2^64 - 1"),
        ("\n", "line 2 at byte 0x1 is the end, and no stacks came before"),
    ] {
        assert_eq!(folded::read(file.as_bytes()).unwrap_err().to_string(), expected);
    }
    let over = "a 18446744073709551615\nb 1\n";
    let problem = folded::read(over.as_bytes()).unwrap_err().problem;
    assert!(matches!(problem, Problem::Invalid(_)));
}

#[test]
fn it_says_what_it_drops() {
    let profile = synthetic(&Shape::SMALL);
    let dropped = folded::write(&profile, MetricId::new(1), std::io::sink()).unwrap();
    expect![[r#"
        all metrics but samples: cpu-clock, wall
        threads: their costs are added up
        modules
        source lines and call sites"#]]
    .assert_eq(&dropped.notes.join("\n"));
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
