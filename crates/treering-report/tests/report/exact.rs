//! The texts of views of profiles whose calls were timed.

use crate::timed;

use expect_test::{Expect, expect};
use treering_analysis::{
    Basis, CallGraph, CallTree, Corrected, Direction, PointSeries, Presentation, Pruning, correct,
};
use treering_profile::{Metric, MetricId, NodeId, Profile, RecursionRule, Unit, merge};
use treering_report::{Options, Style, call_graph_text, flat_text, points_text, tree_text};

use timed::{growing, timed};

const METRIC: MetricId = MetricId::new(0);

fn graph(part: &Corrected<'_>, metric: MetricId) -> CallGraph {
    CallGraph::of(&part.profile, &part.basis(metric), Presentation::Contexts).with_reliability(part)
}

fn flat(part: &Corrected<'_>, metric: MetricId, expected: Expect) {
    let text = flat_text(&part.profile, &graph(part, metric), &Style::default(), &Options::default());
    expected.assert_eq(&text);
}

fn call_graph(part: &Corrected<'_>, statistics: bool, expected: Expect) {
    let options = Options { statistics, ..Options::default() };
    expected.assert_eq(&call_graph_text(&part.profile, &graph(part, METRIC), &Style::default(), &options));
}

fn points(profile: &Profile, expected: Expect) {
    let series = PointSeries::of(profile);
    expected.assert_eq(&points_text(profile, &series, &Basis::of(profile, METRIC), &Style::default()));
}

#[test]
fn flat_profile_is_corrected_and_says_how_sure_it_is() {
    flat(
        &correct(&timed()),
        METRIC,
        expect![[r#"
            command   ./demo
            bench     sort: sorts\nnumbers (n = 3)
            results   swaps = 2, ok = yes
            run       17.000 µs by the wall clock
            metric    time, 15.947 µs in all, corrected; 16.000 µs as measured
            overhead  53 ns of measuring subtracted (0.3 % of the corrected time)
            bias      10.00 ns a call: 2.50 inside, 7.50 outside, spread 0.50; up to 17.25 where a call does nothing
            losses    2 leaves without an enter
            note      1 activation left by an exception or a long jump

            % self  running sum µs  self µs   ± µs  calls  self/call  total/call  total µs  % total  exits  redos  fails  exceptions  cuts  live B  peak B  function
              68.0          10.843   10.843  0.020      2   5.421 µs    5.444 µs    10.888     68.3      0      0      0           0     0       0       0  work
              31.7          15.895    5.052  0.025      1   5.052 µs   15.947 µs    15.947    100.0      0      0      0           0     0       0       0  main
               0.3          15.947    0.052  0.019      3      17 ns       17 ns     0.052      0.3      3  1,200      1           0     0      16   4,096  leaf (time unresolved)

            % self, self: spent in the function itself; running sum adds it up down the list
            % total, total: with everything it called, recursion counted once; % is of the whole run
            self/call, total/call: averages over the calls
            the cost of measuring is subtracted; ±: how far the true self cost may be from it
            (time unresolved): calls are exact, but a call is too short to be told from measuring it
            exits: successes; redos: further solutions asked for; fails: no further one; cuts: choices given up
            live: what the function itself allocated and did not free; peak: the most of it at once, at least
        "#]],
    );
}

#[test]
fn raw_flat_profile_says_that_the_bias_is_in_it() {
    flat(
        &Corrected::raw(&timed()),
        METRIC,
        expect![[r#"
            command   ./demo
            bench     sort: sorts\nnumbers (n = 3)
            results   swaps = 2, ok = yes
            run       17.000 µs by the wall clock
            metric    time, 16.000 µs in all
            bias      10.00 ns a call: 2.50 inside, 7.50 outside, spread 0.50; up to 17.25 where a call does nothing; not subtracted
            losses    2 leaves without an enter
            note      1 activation left by an exception or a long jump

            % self  running sum µs  self µs  calls  self/call  total/call  total µs  % total  exits  redos  fails  exceptions  cuts  live B  peak B  function
              67.9          10.863   10.863      2   5.431 µs    5.457 µs    10.913     68.2      0      0      0           0     0       0       0  work
              31.7          15.940    5.077      1   5.077 µs   16.000 µs    16.000    100.0      0      0      0           0     0       0       0  main
               0.4          16.000    0.060      3      20 ns       20 ns     0.060      0.4      3  1,200      1           0     0      16   4,096  leaf

            % self, self: spent in the function itself; running sum adds it up down the list
            % total, total: with everything it called, recursion counted once; % is of the whole run
            self/call, total/call: averages over the calls
            exits: successes; redos: further solutions asked for; fails: no further one; cuts: choices given up
            live: what the function itself allocated and did not free; peak: the most of it at once, at least
        "#]],
    );
}

#[test]
fn other_metrics_have_neither_bias_nor_uncertainty() {
    let mut profile = timed();
    let allocated = profile.add_metric(Metric::exact("allocated", Unit::Bytes));
    profile.tree.add_self_cost(allocated, NodeId::new(3), 4096);
    flat(
        &correct(&profile),
        allocated,
        expect![[r#"
            command   ./demo
            bench     sort: sorts\nnumbers (n = 3)
            results   swaps = 2, ok = yes
            run       17.000 µs by the wall clock
            metric    allocated, 4,096 B in all
            losses    2 leaves without an enter
            also      time: --metric NAME
            note      1 activation left by an exception or a long jump

            % self  running sum B  self B  calls  self/call  total/call  total B  % total  exits  redos  fails  exceptions  cuts  live B  peak B  function
             100.0          4,096   4,096      3    1,365 B     1,365 B    4,096    100.0      3  1,200      1           0     0      16   4,096  leaf
               0.0          4,096       0      2        0 B     2,048 B    4,096    100.0      0      0      0           0     0       0       0  work
               0.0          4,096       0      1        0 B     4,096 B    4,096    100.0      0      0      0           0     0       0       0  main

            % self, self: spent in the function itself; running sum adds it up down the list
            % total, total: with everything it called, recursion counted once; % is of the whole run
            self/call, total/call: averages over the calls
            exits: successes; redos: further solutions asked for; fails: no further one; cuts: choices given up
            live: what the function itself allocated and did not free; peak: the most of it at once, at least
        "#]],
    );
}

#[test]
fn costs_of_one_call_in_n_are_marked_as_estimates() {
    let mut profile = timed();
    profile.memory = Default::default();
    profile.tree.add_calls(NodeId::new(2), 30, 0);
    flat(
        &correct(&profile),
        METRIC,
        expect![[r#"
            command   ./demo
            bench     sort: sorts\nnumbers (n = 3)
            results   swaps = 2, ok = yes
            run       17.000 µs by the wall clock
            metric    time, 15.872 µs in all, corrected; 16.000 µs as measured
            overhead  128 ns of measuring subtracted (0.8 % of the corrected time)
            bias      10.00 ns a call: 2.50 inside, 7.50 outside, spread 0.50; up to 17.25 where a call does nothing
            losses    2 leaves without an enter
            note      1 activation left by an exception or a long jump

            % self  running sum µs  self µs   ± µs  calls  self/call  total/call  total µs  % total  exits  redos  fails  exceptions  cuts  function
              67.8          10.768   10.768  0.210     32     336 ns      338 ns    10.813     68.1      0      0      0           0     0  work (estimated)
              31.8          15.820    5.052  0.025      1   5.052 µs   15.872 µs    15.872    100.0      0      0      0           0     0  main
               0.3          15.872    0.052  0.019      3      17 ns       17 ns     0.052      0.3      3  1,200      1           0     0  leaf (time unresolved)

            % self, self: spent in the function itself; running sum adds it up down the list
            % total, total: with everything it called, recursion counted once; % is of the whole run
            self/call, total/call: averages over the calls
            the cost of measuring is subtracted; ±: how far the true self cost may be from it
            (time unresolved): calls are exact, but a call is too short to be told from measuring it
            (estimated): calls are exact, but only one of several was timed
            exits: successes; redos: further solutions asked for; fails: no further one; cuts: choices given up
        "#]],
    );
}

#[test]
fn flat_profile_without_contexts_has_measured_totals() {
    let trace = "
        0 enter even
        1000 enter odd
        3000 enter even
        7000 leave
        8000 leave
        9000 leave
    ";
    let profile = treering_testing::timed_trace_with(RecursionRule::Flat, trace);
    flat(
        &Corrected::raw(&profile),
        METRIC,
        expect![[r#"
            metric    time, 9.000 µs in all

            % self  running sum µs  self µs  calls  self/call  total/call  total µs  % total  function
              66.7           6.000    6.000      2   3.000 µs    4.500 µs     9.000    100.0  even
              33.3           9.000    3.000      1   3.000 µs    7.000 µs     7.000     77.8  odd

            % self, self: spent in the function itself; running sum adds it up down the list
            % total, total: with everything it called, recursion counted once; % is of the whole run
            self/call, total/call: averages over the calls
        "#]],
    );
    call_graph(
        &Corrected::raw(&profile),
        false,
        expect![[r#"
            metric    time, 9.000 µs in all

            index  % total    self µs  children µs      called     function
                                6.000      3.000        2/2          <spontaneous>
            [1]      100.0      6.000      3.000         2       even [1]
            -------------------------------------------------------------------------------
                                3.000      4.000        1/1          <spontaneous>
            [2]       77.8      3.000      4.000         1       odd [2]
            -------------------------------------------------------------------------------

            Index by function name
                [1] even
                [2] odd

            the numbered line is the function, its callers are above it and its callees below
            callers add up to its self and children cost, callees to its children cost; % is of the whole run
            called: from this caller / from all others; on the numbered line + recursive calls
            the profile is flat: callers are not known
        "#]],
    );
}

/// It was divided by all calls.
#[test]
fn the_self_cost_of_a_call_in_a_flat_profile_is_that_of_the_timed_calls() {
    let trace = "0 enter main\n 4000 leave main";
    let columns = |rule| {
        let mut profile = treering_testing::timed_trace_with(rule, trace);
        let main = profile.tree.nodes().next_back().expect("a node");
        profile.tree.add_calls(main, 3, 0);
        let part = Corrected::raw(&profile);
        let text = flat_text(&part.profile, &graph(&part, METRIC), &Style::default(), &Options::default());
        let row = text.lines().find(|line| line.ends_with("main (estimated)")).expect("a row").to_owned();
        row.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(columns(RecursionRule::Flat)[3..5], ["4", "4.000 µs"]);
    assert_eq!(columns(RecursionRule::Full)[3..5], ["4", "1.000 µs"]);
}

#[test]
fn totals_that_were_not_measured_are_left_out() {
    let mut profile =
        treering_testing::timed_trace_with(RecursionRule::Flat, "0 enter main\n 4000 leave main");
    profile.activations = None;
    flat(
        &Corrected::raw(&profile),
        METRIC,
        expect![[r#"
            metric    time, 4.000 µs in all

            % self  running sum µs  self µs  calls  self/call  function
             100.0           4.000    4.000      1   4.000 µs  main

            % self, self: spent in the function itself; running sum adds it up down the list
            total costs are not known: the profile is flat; % is of the whole run
            self/call: average over the calls
        "#]],
    );
}

#[test]
fn call_graph_has_ports_and_argument_sizes_where_they_are_known() {
    call_graph(
        &correct(&timed()),
        false,
        expect![[r#"
            command   ./demo
            bench     sort: sorts\nnumbers (n = 3)
            results   swaps = 2, ok = yes
            run       17.000 µs by the wall clock
            metric    time, 15.947 µs in all, corrected; 16.000 µs as measured
            overhead  53 ns of measuring subtracted (0.3 % of the corrected time)
            bias      10.00 ns a call: 2.50 inside, 7.50 outside, spread 0.50; up to 17.25 where a call does nothing
            losses    2 leaves without an enter
            note      1 activation left by an exception or a long jump

            index  % total    self µs  children µs      called          exits       redos       fails  exceptions        cuts  function
                                5.052     10.895        1/1               0           0           0           0           0      <spontaneous>
            [1]      100.0      5.052     10.895         1                0           0           0           0           0  main [1]
                               10.843      0.045        2/2               0           0           0           0           0      work [2]
                                0.007      0.000        1/3               0           0           0           0           0      leaf [3]
            -------------------------------------------------------------------------------------------------------------------------------------------
                               10.843      0.045        2/2               0           0           0           0           0      main [1]
            [2]       68.3     10.843      0.045         2                0           0           0           0           0  work [2]
                                0.045      0.000        2/3               3       1,200           1           0           0      leaf [3]
                            argument of 8 to 15: 1 call, 2.947 µs each
                            argument of 1,024 to 2,047: 1 call, 7.940 µs each
            -------------------------------------------------------------------------------------------------------------------------------------------
                                0.007      0.000        1/3               0           0           0           0           0      main [1]
                                0.045      0.000        2/3               3       1,200           1           0           0      work [2]
            [3]        0.3      0.052      0.000         3                3       1,200           1           0           0  leaf [3] (time unresolved)
            -------------------------------------------------------------------------------------------------------------------------------------------

            Index by function name
                [3] leaf
                [1] main
                [2] work

            the numbered line is the function, its callers are above it and its callees below
            callers add up to its self and children cost, callees to its children cost; % is of the whole run
            called: from this caller / from all others; on the numbered line + recursive calls
            the cost of measuring is subtracted
            (time unresolved): calls are exact, but a call is too short to be told from measuring it
        "#]],
    );
}

#[test]
fn call_graph_tells_how_costs_grow_for_each_caller() {
    let profile = growing();
    let part = Corrected::raw(&profile);
    let lines = |profile: &Profile, min_share: f64| {
        let options = Options { min_share, ..Options::default() };
        let part = Corrected::raw(profile);
        let text = call_graph_text(profile, &graph(&part, METRIC), &Style::default(), &options);
        let growth = text.lines().filter(|line| line.contains("grows as"));
        growth.map(|line| line.trim().to_owned()).collect::<Vec<_>>()
    };
    let all = "grows as n^1.91 (1.83 to 1.98)";
    let square = "called by square [3]: grows as n^2.00 (2.00 to 2.00)";
    let linear = "called by linear [4]: grows as n^1.00 (1.00 to 1.00)";
    assert_eq!(lines(&profile, 0.0), [all, square, linear]);
    assert_eq!(lines(&profile, 0.1), [all, square], "callers that are too small are left out");
    // Where there is one caller, its growth is that of the function.
    let mut single = part.profile.clone().into_owned();
    let activations = single.activations.as_mut().expect("calls were timed");
    let linear = activations.sizes[0].node;
    activations.sizes.retain(|row| row.node != linear);
    assert_eq!(lines(&single, 0.0), ["grows as n^2.00 (2.00 to 2.00)"]);
}

/// A line said 1/1 calls and a mean of all three, without a word.
#[test]
fn statistics_of_recursive_calls_are_explained_where_they_share_a_line() {
    let trace = "0 enter main\n 1 enter f\n 2 enter f\n 3 leave f\n 4 leave f\n 9 leave main";
    for (rule, explained) in [(RecursionRule::Direct, true), (RecursionRule::Full, false)] {
        let profile = treering_testing::timed_trace_with(rule, trace);
        let options = Options { statistics: true, ..Options::default() };
        let part = correct(&profile);
        let text = call_graph_text(&part.profile, &graph(&part, METRIC), &Style::default(), &options);
        assert_eq!(text.contains("of a function that calls itself"), explained, "{rule:?}:\n{text}");
    }
}

#[test]
fn call_graph_with_statistics_of_single_calls() {
    let mut profile = timed();
    profile.ports = Default::default();
    call_graph(
        &correct(&profile),
        true,
        expect![[r#"
            command   ./demo
            bench     sort: sorts\nnumbers (n = 3)
            results   swaps = 2, ok = yes
            run       17.000 µs by the wall clock
            metric    time, 15.947 µs in all, corrected; 16.000 µs as measured
            overhead  53 ns of measuring subtracted (0.3 % of the corrected time)
            bias      10.00 ns a call: 2.50 inside, 7.50 outside, spread 0.50; up to 17.25 where a call does nothing
            losses    2 leaves without an enter
            note      1 activation left by an exception or a long jump

            index  % total    self µs  children µs      called           mean        calm       least    greatest          SD  function
                                5.052     10.895        1/1       15.947 µs   15.947 µs   16.000 µs   16.000 µs                  <spontaneous>
            [1]      100.0      5.052     10.895         1        15.947 µs   15.947 µs   16.000 µs   16.000 µs              main [1]
                               10.843      0.045        2/2        5.444 µs    2.947 µs    2.960 µs    7.953 µs    3.531 µs      work [2]
                                0.007      0.000        1/3            8 ns        7 ns       10 ns       10 ns                  leaf [3]
            -------------------------------------------------------------------------------------------------------------------------------------------
                               10.843      0.045        2/2        5.444 µs    2.947 µs    2.960 µs    7.953 µs    3.531 µs      main [1]
            [2]       68.3     10.843      0.045         2         5.444 µs    2.947 µs    2.960 µs    7.953 µs    3.531 µs  work [2]
                                0.045      0.000        2/3           22 ns       22 ns       20 ns       30 ns        7 ns      leaf [3]
                            argument of 8 to 15: 1 call, 2.947 µs each
                            argument of 1,024 to 2,047: 1 call, 7.940 µs each
            -------------------------------------------------------------------------------------------------------------------------------------------
                                0.007      0.000        1/3            8 ns        7 ns       10 ns       10 ns                  main [1]
                                0.045      0.000        2/3           22 ns       22 ns       20 ns       30 ns        7 ns      work [2]
            [3]        0.3      0.052      0.000         3            18 ns        7 ns       10 ns       30 ns       10 ns  leaf [3] (time unresolved)
            -------------------------------------------------------------------------------------------------------------------------------------------

            Index by function name
                [3] leaf
                [1] main
                [2] work

            the numbered line is the function, its callers are above it and its callees below
            callers add up to its self and children cost, callees to its children cost; % is of the whole run
            called: from this caller / from all others; on the numbered line + recursive calls
            the cost of measuring is subtracted
            (time unresolved): calls are exact, but a call is too short to be told from measuring it
            mean, least, greatest, SD: of the total costs of single activations
            calm: mean of those that took less than twice the least so far, so were most likely not interrupted
            mean and calm are corrected; least, greatest and SD are as measured
        "#]],
    );
}

#[test]
fn open_activations_are_said_in_singular_and_plural() {
    let mut profile = treering_testing::timed_trace_with(RecursionRule::Full, "0 enter main\n 10 leave");
    for (open, expected) in
        [(1, "1 activation had not ended, counted"), (2, "2 activations had not ended, counted")]
    {
        profile.metadata.losses.open_activations = open;
        let part = Corrected::raw(&profile);
        let text = flat_text(&part.profile, &graph(&part, METRIC), &Style::default(), &Options::default());
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn tree_of_a_flat_profile_has_no_totals() {
    let trace = "0 enter main\n 10 enter work\n 90 leave\n 100 leave";
    let profile = treering_testing::timed_trace_with(RecursionRule::Flat, trace);
    for direction in [Direction::Callees, Direction::Callers] {
        let pruning = Pruning { min_share: 0.01, max_depth: 64 };
        let tree = CallTree::of(&profile, &Basis::of(&profile, METRIC), direction, pruning);
        let text = tree_text(&profile, &tree, &pruning, &Style::default(), &Options::default());
        assert!(text.contains("the profile is flat: callers and callees are not known"), "{text}");
        assert!(!text.contains("% total") && text.contains("% self"), "{text}");
        assert!(text.contains("80.00") && text.contains("20.00"), "{text}");
    }
}

#[test]
fn tree_of_a_timed_profile_has_calls() {
    let profile = timed();
    let corrected = correct(&profile);
    let pruning = Pruning { min_share: 0.01, max_depth: 64 };
    let tree = CallTree::of(&corrected.profile, &corrected.basis(METRIC), Direction::Callees, pruning);
    let text = tree_text(&corrected.profile, &tree, &pruning, &Style::default(), &Options::default());
    expect![[r#"
        command   ./demo
        bench     sort: sorts\nnumbers (n = 3)
        results   swaps = 2, ok = yes
        run       17.000 µs by the wall clock
        metric    time, 15.947 µs in all, corrected; 16.000 µs as measured
        overhead  53 ns of measuring subtracted (0.3 % of the corrected time)
        bias      10.00 ns a call: 2.50 inside, 7.50 outside, spread 0.50; up to 17.25 where a call does nothing
        losses    2 leaves without an enter
        note      1 activation left by an exception or a long jump

        % total  % self  calls  function
         100.00   31.68      1  main
          68.28   67.99      2    work
                                    … 1 node below 1.0 %, together 0.3 %
                                  … 1 node below 1.0 %, together 0.0 %

        total: with everything called; self: in the function itself; % is of the whole run
    "#]].assert_eq(&text);
}

#[test]
fn points_are_listed_in_time_with_their_peaks() {
    points(
        &timed(),
        expect![[r#"
            command   ./demo
            bench     sort: sorts\nnumbers (n = 3)
            results   swaps = 2, ok = yes
            run       17.000 µs by the wall clock
            metric    time, 16.000 µs in all
            bias      10.00 ns a call: 2.50 inside, 7.50 outside, spread 0.50; up to 17.25 where a call does nothing; not subtracted
            losses    2 leaves without an enter
            note      1 activation left by an exception or a long jump

                time  resident memory  virtual memory  task  description
              100 ns          4,096 B       409,600 B  main  before
            5.000 µs          8,192 B                  leaf  in\tleaf
            9.000 µs         12,288 B     1,228,800 B  work

            resident memory: at most 12,288 B, at 9.000 µs in work; 8,192 B more than at the first point
            virtual memory: at most 1,228,800 B, at 9.000 µs in work; 819,200 B more than at the first point
        "#]],
    );
}

#[test]
fn points_of_several_runs_are_told_apart() {
    let mut profile = timed();
    profile.metadata.benchmark = None;
    points(
        &merge(&[&profile, &profile]),
        expect![[r#"
            command   ./demo (2 runs)
            run       34.000 µs by the wall clock
            metric    time, 32.000 µs in all
            bias      10.00 ns a call: 2.50 inside, 7.50 outside, spread 0.50; up to 17.25 where a call does nothing; not subtracted
            losses    4 leaves without an enter
            note      2 activations left by an exception or a long jump

            run      time  resident memory  virtual memory  thread  task  description
              1    100 ns          4,096 B       409,600 B    main  main  before
              1  5.000 µs          8,192 B                    main  leaf  in\tleaf
              1  9.000 µs         12,288 B     1,228,800 B    main  work
              2    100 ns          4,096 B       409,600 B    main  main  before
              2  5.000 µs          8,192 B                    main  leaf  in\tleaf
              2  9.000 µs         12,288 B     1,228,800 B    main  work

            run 1, resident memory: at most 12,288 B, at 9.000 µs in work; 8,192 B more than at the first point
            run 1, virtual memory: at most 1,228,800 B, at 9.000 µs in work; 819,200 B more than at the first point
            run 2, resident memory: at most 12,288 B, at 9.000 µs in work; 8,192 B more than at the first point
            run 2, virtual memory: at most 1,228,800 B, at 9.000 µs in work; 819,200 B more than at the first point
        "#]],
    );
}

#[test]
fn a_profile_without_points_has_nothing_to_list() {
    points(
        &treering_testing::trace("0 enter main\n 4 leave main"),
        expect![[r#"
        metric    time, 4 ns in all
    "#]],
    );
}
