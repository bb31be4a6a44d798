use treering_profile::{
    Function, FunctionKind, Metric, MetricId, Module, ModuleKind, Profile, Unit, merge_runs,
};
use treering_testing::{STACK_PERIOD_NS, stacks, trace};

use crate::{Difference, NotComparable, Options, PairedBy, Pairing, Reason, compare, join};

fn difference(base: &Profile, head: &Profile) -> Difference {
    compare(base, head, &Options::default()).expect("they can be compared")
}

/// Name, change, more calls, cost per call.
fn rows(difference: &Difference) -> Vec<(&str, i128, i128, i128)> {
    let rows = difference.functions.iter().filter(|row| row.self_cost.change() != 0);
    rows.map(|row| {
        let split = row.split.unwrap_or_default();
        (row.name.as_str(), row.self_cost.change(), split.more_calls, split.cost_per_call)
    })
    .collect()
}

/// A run of `main` that calls `work` for each of these times, from `caller`.
fn calls_of_work(caller: &str, times: &[u64]) -> Profile {
    let mut text = format!("0 enter main\n0 enter {caller}\n");
    let mut now = 0;
    for time in times {
        text += &format!("{now} enter work\n");
        now += time;
        text += &format!("{now} leave work\n");
    }
    trace(&(text + &format!("{now} leave {caller}\n{} leave main\n", now + 10)))
}

#[test]
fn more_calls_and_dearer_calls_are_told_apart() {
    let base = calls_of_work("loop", &[5; 10]);
    let more = difference(&base, &calls_of_work("loop", &[5; 14]));
    assert_eq!(rows(&more), [("work", 20, 20, 0)]);
    let cause = more.cause.expect("there is one");
    assert_eq!(more.pairing.groups[cause.function].name, "work");
    assert!(matches!(cause.reason, Reason::Calls { calls, .. } if (calls.base, calls.head) == (10, 14)));
    let dearer = difference(&base, &calls_of_work("loop", &[7; 10]));
    assert_eq!(rows(&dearer), [("work", 20, 0, 20)]);
    assert!(matches!(dearer.cause.map(|cause| cause.reason), Some(Reason::CostPerCall { with: None })));
    // 10 × 5 = 50 and 14 × 7 = 98: 4 × 6 and 12 × 2.
    assert_eq!(rows(&difference(&base, &calls_of_work("loop", &[7; 14]))), [("work", 48, 24, 24)]);
}

/// Of two functions one costs as much less as the other costs more, but for 1.
#[test]
fn the_change_that_makes_up_for_the_cause_is_known() {
    let run = |first: u32, second: u32| {
        let end = first + second;
        trace(&format!(
            "0 enter main\n0 enter f\n{first} leave f\n{first} enter h\n{end} leave h\n{end} leave main"
        ))
    };
    let cause = difference(&run(300, 200), &run(200, 301)).cause.expect("there is one");
    assert_eq!((cause.part, cause.against.map(|against| against.part)), (101, Some(-100)));
    let more = difference(&run(300, 200), &run(290, 301)).cause.expect("there is one");
    assert_eq!((more.part, more.against), (101, None));
}

/// `check` is a part of `main` where nothing calls it in the other profile, which may have it inlined.
#[test]
fn costs_of_a_cause_are_with_the_functions_that_are_parts_of_it() {
    let base = trace("0 enter main\n10 leave main");
    let mut head = trace("0 enter main\n4 enter check\n24 leave check\n31 leave main");
    let mut entries = head.functions.entries().to_vec();
    let is_check = |entry: &&mut Function| &head.strings[entry.name] == "check";
    entries.iter_mut().filter(is_check).for_each(|entry| entry.kind = FunctionKind::Inlined);
    head.functions = treering_profile::Interner::from_entries(entries);
    for (base, head, costs) in [(&base, &head, (10, 31)), (&head, &base, (31, 10))] {
        let difference = difference(base, head);
        let cause = difference.cause.expect("there is one");
        let Reason::CostPerCall { with: Some(with) } = cause.reason else { panic!("{cause:?}") };
        assert_eq!((with.cost.base, with.cost.head), costs);
        assert_eq!((with.functions, with.has_libraries), (1, false));
        let name = |group: usize| difference.pairing.groups[group].name.as_str();
        assert_eq!((name(cause.function), with.function.map(name)), ("main", Some("check")));
        assert_eq!(cause.part, i128::from(costs.1) - i128::from(costs.0));
    }
}

#[test]
fn parts_add_up_to_the_change_of_the_run() {
    let base = trace(
        "0 enter main\n1 enter a\n3 enter b\n9 leave b\n10 leave a\n12 enter b\n13 leave b\n20 leave main",
    );
    let head = trace(
        "0 enter main\n1 enter a\n2 enter b\n9 leave b\n11 enter c\n17 leave c\n18 leave a\n30 leave main",
    );
    let difference = difference(&base, &head);
    let split = difference.split().expect("calls were counted");
    assert_eq!(split.more_calls + split.cost_per_call, difference.run.change());
    let sum: i128 = difference.functions.iter().map(|row| row.self_cost.change()).sum();
    assert_eq!(sum, 10);
    for row in &difference.functions {
        let split = row.split.expect("calls were counted");
        assert_eq!(split.more_calls + split.cost_per_call, row.self_cost.change(), "{}", row.name);
    }
}

/// `work` is cheap from `a` and dear from `b`; only how often both call it changes.
#[test]
fn another_mix_of_callers_is_no_change_of_the_cost_per_call() {
    let run = |from_a: u64, from_b: u64| {
        let (mut text, mut now) = ("0 enter main\n".to_owned(), 0);
        for (caller, times, cost) in [("a", from_a, 1), ("b", from_b, 9)] {
            text += &format!("{now} enter {caller}\n");
            for _ in 0..times {
                text += &format!("{now} enter work\n{} leave work\n", now + cost);
                now += cost;
            }
            text += &format!("{now} leave {caller}\n");
        }
        trace(&(text + &format!("{now} leave main\n")))
    };
    assert_eq!(rows(&difference(&run(10, 2), &run(2, 10))), [("work", 64, 64, 0)]);
}

/// `f` calls itself more often, and `work` each time; a caller of `work` that is called otherwise now makes dearer calls.
#[test]
fn a_deeper_recursion_is_no_change_of_the_cost_per_call() {
    let run = |depth: usize, other: &str| {
        let mut text =
            format!("0 enter main\n0 enter {other}\n0 enter work\n47 leave work\n47 leave {other}\n");
        let mut now = 47;
        for _ in 0..depth {
            text += &format!("{now} enter f\n{now} enter work\n{} leave work\n", now + 23);
            now += 23;
        }
        text += &format!("{now} leave f\n").repeat(depth);
        trace(&(text + &format!("{now} leave main\n")))
    };
    assert_eq!(rows(&difference(&run(2, "old"), &run(17, "new"))), [("work", 345, 345, 0)]);
}

/// A function between `loop` and `work` makes all contexts below it new.
#[test]
fn a_function_in_between_does_not_hide_a_dearer_callee() {
    let base = trace("0 enter main\n0 enter work\n5 leave work\n5 leave main");
    let head =
        trace("0 enter main\n0 enter helper\n0 enter work\n9 leave work\n9 leave helper\n9 leave main");
    assert_eq!(rows(&difference(&base, &head)), [("work", 4, 0, 4)]);
}

#[test]
fn equal_profiles_have_no_difference() {
    let base = calls_of_work("loop", &[5; 10]);
    let difference = difference(&base, &base);
    assert_eq!(difference.run.change(), 0);
    assert!(rows(&difference).is_empty());
    assert_eq!(difference.cause, None);
}

#[test]
fn the_callee_that_took_the_place_of_another_is_named() {
    let run = |callee: &str, cost: u64| {
        trace(&format!("0 enter main\n0 enter {callee}\n{cost} leave {callee}\n{} leave main", cost + 1))
    };
    let difference = difference(&run("fast", 3), &run("slow", 30));
    let cause = difference.cause.expect("there is one");
    let Reason::Calls { instead_of: Some((group, calls)), .. } = cause.reason else { panic!("{cause:?}") };
    let name = |group: usize| difference.pairing.groups[group].name.as_str();
    assert_eq!((name(cause.function), name(group), calls), ("slow", "fast", 1));
}

/// Recursion counts once in totals, and functions of several entries are one.
#[test]
fn recursion_counts_once() {
    let run = |leaf: u64| {
        let end = leaf + 4;
        trace(&format!(
            "0 enter f\n1 enter f\n2 enter f\n{} leave f\n{} leave f\n{end} leave f",
            leaf + 2,
            leaf + 3
        ))
    };
    let difference = difference(&run(6), &run(16));
    let total = difference.functions[0].total_cost.expect("it is known");
    assert_eq!((total.base.cost, total.head.cost), (10, 20));
}

/// Changes of a few samples in two hundred are chance; a doubled function is not, and comes first.
#[test]
fn changes_within_chance_are_marked_and_never_first() {
    let base = stacks("main;a 100\nmain;b 60\nmain;c 40");
    let head = stacks("main;a 120\nmain;b 160\nmain;c 44");
    let difference = difference(&base, &head);
    assert!(!difference.is_exact);
    let certain: Vec<(&str, bool)> =
        difference.functions.iter().map(|row| (row.name.as_str(), row.certainty.is_certain)).collect();
    assert_eq!(certain[0], ("b", true));
    assert!(certain[1..].iter().all(|&(_, certain)| !certain), "{certain:?}");
    let (low, high) = difference.functions[0].certainty.interval.expect("it was sampled");
    assert!(low > 0.0 && low < 100e6 && high > 100e6, "{low} {high}");
}

/// One profile of several runs, in which `work` has these samples.
fn runs(samples: [u64; 4]) -> Profile {
    let runs = samples.map(|samples| stacks(&format!("main;work {samples}\nmain;idle 200")));
    merge_runs(&runs.each_ref())
}

/// 400 samples more of 1,000 are no chance of sampling, but what the runs of each differ by.
#[test]
fn a_change_within_what_the_runs_differ_by_is_not_certain() {
    let of_work = |head| {
        let difference = difference(&runs([100, 200, 300, 400]), &runs(head));
        let row = difference.functions.iter().find(|row| row.name == "work").expect("both have it");
        (row.certainty.is_certain, row.certainty.interval.expect("it was sampled"))
    };
    let (is_certain, (low, high)) = of_work([200, 300, 400, 500]);
    // By Student's t of three degrees of freedom, for the means of both: 3.182 · 129.1 / √4 · √2, times four runs.
    let margin = 3.182 * 129.1 / 2.0 * f64::sqrt(2.0) * 4.0;
    let per = STACK_PERIOD_NS as f64;
    assert!(!is_certain && (low / per - (400.0 - margin)).abs() < 2.0, "{low} {high}");
    assert!((high / per - (400.0 + margin)).abs() < 2.0, "{low} {high}");
    assert!(of_work([1200, 1300, 1400, 1500]).0, "each run of the head costs more than all of the base's");
}

#[test]
fn two_halves_of_one_recording_do_not_differ() {
    let text: String = (0..40).map(|at| format!("main;f{at} {}\n", 20 + at % 7)).collect();
    let other: String = (0..40).map(|at| format!("main;f{at} {}\n", 20 + (at + 3) % 7)).collect();
    let difference = difference(&stacks(&text), &stacks(&other));
    assert!(difference.functions.iter().all(|row| !row.certainty.is_certain));
}

/// A profile of these functions of modules with a build-id, each called once for its cost.
fn of_modules(functions: &[(&str, &str, &[u8], u64)]) -> Profile {
    let text: String =
        functions.iter().map(|(name, ..)| format!("0 enter {name}\n0 leave {name}\n")).collect();
    let mut profile = trace(&text);
    let mut entries = profile.functions.entries().to_vec();
    for (at, (_, path, build_id, _)) in functions.iter().enumerate() {
        let path = profile.strings.intern(path);
        let module = Module { path, build_id: (*build_id).into(), kind: ModuleKind::Elf };
        let module = profile.modules.intern(module);
        entries[at + 1] = Function { module: Some(module), ..entries[at + 1] };
    }
    profile.functions = treering_profile::Interner::from_entries(entries);
    let metric = profile.find_metric("time").expect("traces have a time");
    for (at, (.., cost)) in functions.iter().enumerate() {
        let node = profile.tree.nodes().nth(at + 1).expect("each has a node");
        profile.tree.add_self_cost(metric, node, *cost);
    }
    profile
}

#[test]
fn modules_pair_by_build_name_and_as_the_program() {
    let base = of_modules(&[
        ("run", "/old/prog-before", &[1], 5),
        ("malloc", "/lib/libc.so.6", &[9], 3),
        ("inflate", "/old/libz.so.1.2", &[2], 1),
    ]);
    let head = of_modules(&[
        ("run", "/new/prog-after", &[7], 6),
        ("malloc", "/elsewhere/libc.so.6", &[9], 3),
        ("inflate", "/new/libz.so.1.3", &[3], 1),
    ]);
    let difference = difference(&base, &head);
    assert_eq!(rows(&difference), [("run", 1, 0, 1)]);
    let by: Vec<(&str, PairedBy, bool)> = difference
        .pairing
        .modules
        .iter()
        .map(|pair| (pair.names.head.as_str(), pair.by, pair.same_build))
        .collect();
    assert_eq!(
        by,
        [
            ("libc.so.6", PairedBy::BuildId, true),
            ("libz.so.1.3", PairedBy::Name, false),
            ("prog-after", PairedBy::Main, false)
        ]
    );
}

#[test]
fn renamed_copies_are_one_function() {
    let base = calls_of_work("loop.isra.0", &[5; 3]);
    let head = calls_of_work("loop.constprop.1", &[5; 3]);
    let difference = difference(&base, &head);
    assert!(rows(&difference).is_empty());
    let renamed: Vec<_> =
        difference.pairing.groups.iter().filter_map(|group| group.other_name.as_deref()).collect();
    assert_eq!(renamed, ["loop.isra.0"]);
}

#[test]
fn profiles_without_a_common_metric_are_refused_by_name() {
    let error =
        compare(&stacks("main 3"), &trace("0 enter a\n1 leave a"), &Options::default()).expect_err("refused");
    assert_eq!(
        error.to_string(),
        "the profiles have no metric in common: base has cpu-clock, samples, head has time"
    );
}

#[test]
fn joined_profiles_have_the_names_of_the_head() {
    let base = of_modules(&[("run", "/old/prog-before", &[1], 5), ("gone", "/old/prog-before", &[1], 2)]);
    let head = of_modules(&[("run", "/new/prog-after", &[7], 6), ("new", "/new/prog-after", &[7], 1)]);
    let pairing = Pairing::of(&base, &head);
    let joined = join(&base, &head, &pairing);
    let profile = &joined.profile;
    let name = |id: treering_profile::FunctionId| &profile.strings[profile.functions[id].name];
    let names: Vec<&str> = profile.functions.iter().skip(1).map(|(id, _)| name(id)).collect();
    assert_eq!(names, ["run", "gone", "new"]);
    for (group, &function) in pairing.groups.iter().zip(&joined.groups).skip(1) {
        assert_eq!(name(function), group.name);
    }
    assert!(profile.validate().is_ok());
}

/// `samples` samples, one for each of these milliseconds of an event; nothing where that is not known.
fn sampled(event: &str, period_ms: Option<u64>, samples: u64) -> Profile {
    let mut profile = stacks(&format!("main;work {samples}"));
    let (time, counted) = (MetricId::new(0), MetricId::new(1));
    let Some(period_ms) = period_ms else {
        profile.metrics[0] = Metric::exact(event, Unit::Nanoseconds);
        return profile;
    };
    profile.metrics[0] =
        Metric::sampled(event, Unit::Nanoseconds, counted, Some(period_ms * STACK_PERIOD_NS));
    let nodes: Vec<_> = profile.tree.nodes().collect();
    for node in nodes {
        let more = profile.tree.self_cost(time, node) * (period_ms - 1);
        profile.tree.add_self_cost(time, node, more);
    }
    profile
}

/// Ten times as many samples at ten times the rate are no change.
#[test]
fn processor_time_of_another_name_and_rate_is_compared_as_time() {
    let (base, head) = (sampled("cpu-time", Some(10), 7), sampled("cpu-clock", Some(1), 70));
    let compared = difference(&base, &head);
    assert_eq!((compared.metric.as_str(), compared.base_metric.as_deref()), ("cpu-clock", Some("cpu-time")));
    assert_eq!(compared.run.change(), 0);
}

#[test]
fn numbers_of_samples_of_other_rates_are_refused() {
    let (base, head) = (sampled("page-time", Some(10), 7), sampled("cpu-clock", Some(1), 70));
    let refused = compare(&base, &head, &Options::default()).map(|_| ());
    assert_eq!(refused, Err(NotComparable::OtherSampling("samples".to_owned())));
    let wanted = Options { metric: Some("samples".to_owned()) };
    assert!(compare(&sampled("cpu-clock", Some(10), 7), &head, &wanted).is_err());
    assert!(compare(&sampled("cpu-clock", Some(1), 7), &head, &wanted).is_ok());
    assert!(
        compare(&sampled("cpu-clock", None, 7), &head, &wanted).is_ok_and(|of| of.may_be_of_another_rate)
    );
}
