//! Call graphs of small traces: totals, contributions that add up, cycles.
#![expect(clippy::unwrap_used, reason = "a test that fails here has shown what is wrong")]

use std::fmt::Write as _;

use expect_test::{Expect, expect};
use treering_analysis::{Basis, CallGraph, Presentation, SortKey, flat, function_name};
use treering_profile::{FunctionId, MetricId, Profile};

/// The graph as text: for each function its row, callers indented above, callees below.
fn describe(profile: &Profile, presentation: Presentation) -> String {
    let graph = CallGraph::of(profile, &Basis::of(profile, MetricId::new(0)), presentation);
    let name = |function: FunctionId| function_name(profile, function).into_owned();
    let mut text = String::new();
    for row in flat(profile, &graph, SortKey::Name) {
        let cost = row.cost;
        for arc in graph.callers(cost.function) {
            let caller = arc.caller.map_or("<spontaneous>".into(), name);
            let part = arc.from_caller;
            let (own, total) = (part.self_cost.cost, part.total.cost);
            writeln!(text, "  {caller} -> calls {} self {own} total {total}", arc.calls).unwrap();
        }
        let (own, total) = (cost.self_cost.cost, cost.total_cost.cost);
        let calls = cost.calls.map_or(0, |calls| calls.all);
        let cycle = cost.cycle.map_or(String::new(), |cycle| format!(" <cycle {}>", cycle + 1));
        writeln!(text, "{} calls {calls} self {own} total {total}{cycle}", name(cost.function)).unwrap();
        for arc in graph.callees(cost.function) {
            let part = arc.to_callee;
            let (own, total) = (part.self_cost.cost, part.total.cost);
            let whole = arc.total_cost.cost;
            writeln!(text, "  -> {} self {own} total {total} of {whole}", name(arc.callee)).unwrap();
        }
    }
    for cycle in &graph.cycles {
        let members: Vec<_> = cycle.cycle.members.iter().map(|&member| name(member)).collect();
        let (own, total) = (cycle.self_cost.cost, cycle.total_cost.cost);
        let (outside, within) = (cycle.calls_from_outside, cycle.calls_within);
        writeln!(text, "cycle {members:?} self {own} total {total} calls {outside}+{within}").unwrap();
    }
    text
}

fn check(trace: &str, expected: Expect) {
    expected.assert_eq(&describe(&treering_testing::trace(trace), Presentation::Contexts));
}

const SHARED: &str = "
     0 enter main
     1   enter parse
     2     enter copy
     5     leave
     6   leave
     6   enter copy
     7   leave
    10 leave
";

#[test]
fn a_function_with_two_callers_divides_its_total_among_them() {
    check(
        SHARED,
        expect![[r#"
          main -> calls 1 self 1 total 1
          parse -> calls 1 self 3 total 3
        copy calls 2 self 4 total 4
          <spontaneous> -> calls 1 self 4 total 10
        main calls 1 self 4 total 10
          -> parse self 2 total 5 of 5
          -> copy self 1 total 1 of 1
          main -> calls 1 self 2 total 5
        parse calls 1 self 2 total 5
          -> copy self 3 total 3 of 3
    "#]],
    );
}

#[test]
fn direct_recursion_is_counted_once_in_the_total() {
    check(
        "
         0 enter main
         1   enter fact
         2     enter fact
         5     leave fact
         6   leave fact
        10 leave main
        ",
        expect![[r#"
              main -> calls 1 self 5 total 5
              fact -> calls 1 self 0 total 0
            fact calls 2 self 5 total 5
              -> fact self 0 total 0 of 3
              <spontaneous> -> calls 1 self 5 total 10
            main calls 1 self 5 total 10
              -> fact self 5 total 5 of 5
        "#]],
    );
}

const MUTUAL: &str = "
     0 enter main
     1   enter even
     3     enter odd
     4       enter even
     9         enter log
    10         leave
    11       leave
    12     leave
    15   leave
    16 leave
";

#[test]
fn mutual_recursion_adds_up_without_collapsing_the_cycle() {
    check(
        MUTUAL,
        expect![[r#"
          main -> calls 1 self 11 total 14
          odd -> calls 1 self 0 total 0
        even calls 2 self 11 total 14 <cycle 1>
          -> odd self 2 total 2 of 9
          -> log self 1 total 1 of 1
          even -> calls 1 self 1 total 1
        log calls 1 self 1 total 1
          <spontaneous> -> calls 1 self 2 total 16
        main calls 1 self 2 total 16
          -> even self 11 total 14 of 14
          even -> calls 1 self 2 total 9
        odd calls 1 self 2 total 9 <cycle 1>
          -> even self 6 total 7 of 7
        cycle ["even", "odd"] self 13 total 14 calls 1+2
    "#]],
    );
}

#[test]
fn collapsed_cycles_count_as_one_function() {
    let profile = treering_testing::trace(MUTUAL);
    expect![[r#"
          main -> calls 1 self 13 total 14
          odd -> calls 1 self 0 total 0
        even calls 2 self 11 total 12 <cycle 1>
          -> odd self 0 total 0 of 9
          -> log self 1 total 1 of 1
          even -> calls 1 self 1 total 1
        log calls 1 self 1 total 1
          <spontaneous> -> calls 1 self 2 total 16
        main calls 1 self 2 total 16
          -> even self 13 total 14 of 14
          even -> calls 1 self 0 total 0
        odd calls 1 self 2 total 2 <cycle 1>
          -> even self 0 total 0 of 7
        cycle ["even", "odd"] self 13 total 14 calls 1+2
    "#]]
    .assert_eq(&describe(&profile, Presentation::CollapsedCycles));
}

#[test]
fn cost_before_the_first_call_is_outside_of_every_function() {
    check(
        "
         0 enter init
         2 leave init
         5 enter main
         9 leave main
        ",
        expect![[r#"
            <outside of any function> calls 0 self 3 total 3
              <spontaneous> -> calls 1 self 2 total 2
            init calls 1 self 2 total 2
              <spontaneous> -> calls 1 self 4 total 4
            main calls 1 self 4 total 4
        "#]],
    );
}
