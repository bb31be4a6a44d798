//! Exact times from inside of SWI-Prolog's kernel, where its code is known.

use crate::prolog::{Prolog, TRUTH, counts, of_boxes, text};
use crate::skip;

const START: &str = ":- use_module(library(treering)).\n:- use_module(fixtures(boxes)).\n\
    timed(Goal, File) :- treering(Goal, [clock(wall), report(none), output(File)]).\n";

/// A folder for a test; nothing where the kernel is another one.
fn known_kernel(test: &str) -> Option<Prolog> {
    let prolog = Prolog::new(test)?;
    let problem = prolog.run(&format!("{START}:- treering:'$tr_kernel_problem'(Problem), write(Problem).\n"));
    if !problem.is_empty() {
        skip(&format!("the kernel of this SWI-Prolog is not known: {problem}"));
        return None;
    }
    Some(prolog)
}

#[test]
fn calls_are_those_of_exact_ports() {
    let Some(prolog) = known_kernel("kernel_calls") else { return };
    let mut program = START.to_owned();
    for (at, (goal, ..)) in TRUTH.iter().enumerate() {
        program += &format!(":- timed(boxes:({goal}), '{at}.trg').\n");
    }
    prolog.run(&program);
    // Of tabled predicates it counts the calls within the tables as well.
    for (at, (goal, _, expected)) in TRUTH.iter().enumerate().filter(|(_, (_, is_traced, _))| *is_traced) {
        let profile = prolog.profile(&format!("{at}.trg"));
        let calls: Vec<_> =
            of_boxes(counts(&profile)).into_iter().map(|(name, row)| (name, row[0])).collect();
        let mut expected: Vec<_> = expected.iter().map(|(name, row)| ((*name).to_owned(), row[0])).collect();
        expected.sort();
        assert_eq!(calls, expected, "{goal}");
    }
}

#[test]
fn times_add_up_to_the_goals_and_last_calls_are_optimised() {
    let Some(prolog) = known_kernel("kernel_time") else { return };
    // Not optimised, the loop would need 100 times as much stack.
    let printed = prolog.run(&format!(
        "{START}:- set_prolog_flag(stack_limit, 4_000_000), get_time(Before),
           timed(boxes:loop(1000000), 'loop.trg'),
           get_time(After), Time is round((After-Before)*1.0e9), print(Time), nl."
    ));
    let around: u64 = printed.trim().parse().expect("a number");
    let profile = prolog.profile("loop.trg");
    assert_eq!(of_boxes(counts(&profile))["loop/1"][0], 1_000_001);
    let time = profile.find_metric("time").expect("the metric is there");
    let all = profile.run_cost(time);
    assert!(all.abs_diff(profile.runs[0].duration_ns) <= profile.tree.len() as u64, "but for rounding");
    assert!(all <= around, "{all} of {around}");
}

#[test]
fn the_kernel_is_as_before_when_the_goal_has_ended() {
    let Some(prolog) = known_kernel("kernel_after") else { return };
    prolog.run(&format!(
        "{START}:- catch(timed(boxes:deep(3), 'throws.trg'), bottom, true), \\+ timed(boxes:gen(7), 'fails.trg').\n"
    ));
    assert_eq!(counts(&prolog.profile("throws.trg"))["boxes:deep/1"][0], 4);
    assert_eq!(counts(&prolog.profile("fails.trg"))["boxes:gen/1"][0], 1);
    let output = prolog.output(&format!(
        "{START}:- timed(boxes:even(10), 'a.trg'), treering(boxes:even(10), [report(none), output('b.trg')]),
           timed(boxes:even(10), 'c.trg').\n"
    ));
    assert!(output.status.success(), "{}", text(&output.stderr));
    for file in ["a.trg", "b.trg", "c.trg"] {
        assert_eq!(counts(&prolog.profile(file))["boxes:even/1"][0], 6, "{file}");
    }
}

#[test]
fn a_goal_that_halts_leaves_its_recording() {
    let Some(prolog) = known_kernel("kernel_halts") else { return };
    for (clock, file) in [("wall", "kernel.trg"), ("cpu", "ticks.trg")] {
        let output = prolog.output(&format!(
            "{START}stops :- boxes:loop(10), halt(3).\n\
             :- initialization(treering(stops, [clock({clock}), report(none), output('{file}')])).\n"
        ));
        assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
        assert_eq!(counts(&prolog.profile(file))["boxes:loop/1"][0], 11, "{file}");
    }
}

#[test]
fn without_the_library_the_wall_clock_is_sampled_with_a_note() {
    let Some(prolog) = Prolog::new("kernel_missing") else { return };
    // Informational messages are left out with -q.
    let mut command = prolog
        .command(&format!("{START}:- set_prolog_flag(verbose, normal), timed(boxes:even(10), 'a.trg').\n"));
    let output = command.env_remove("TREERING_PROLOG_LIBRARY").output().expect("swipl runs");
    let errors = text(&output.stderr);
    assert!(errors.contains("the wall clock is sampled: the library of Treering was not found"), "{errors}");
    assert_eq!(counts(&prolog.profile("a.trg"))["boxes:even/1"][0], 6);
}

#[test]
fn clean_ups_of_what_the_goal_left_are_counted() {
    let Some(prolog) = known_kernel("kernel_cuts") else { return };
    prolog.run(&format!(
        "{START}left :- setup_call_cleanup(true, boxes:gen(_), boxes:even(2)).\n:- timed(left, 'cuts.trg').\n"
    ));
    let counts = counts(&prolog.profile("cuts.trg"));
    assert_eq!(counts["boxes:even/1"][0], 2, "{counts:?}");
}

#[test]
fn the_end_of_the_profiler_is_in_no_profile() {
    let Some(prolog) = known_kernel("kernel_end") else { return };
    prolog.run(&format!(
        "{START}:- catch(timed(boxes:deep(3), 'throws.trg'), bottom, true), \\+ timed(boxes:gen(7), 'fails.trg').
         :- initialization(timed((boxes:even(2), halt), 'halts.trg')).\n"
    ));
    for (file, known) in [("throws.trg", "throw/1"), ("fails.trg", "boxes:gen/1"), ("halts.trg", "halt/0")] {
        let counts = counts(&prolog.profile(file));
        let ours = counts.keys().filter(|name| name.contains("treering:") || name.contains("profiler/"));
        assert_eq!(ours.collect::<Vec<_>>(), [""; 0], "{file}");
        assert!(counts.contains_key(known), "{file}: {counts:?}");
    }
    assert!(!counts(&prolog.profile("throws.trg")).contains_key("'$c_call_prolog'/0"));
}
