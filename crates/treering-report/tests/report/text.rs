//! The text of every view, from small profiles.

use expect_test::{Expect, expect};
use treering_analysis::{
    Basis, CallGraph, CallTree, Direction, LineTable, Presentation, Pruning, find_function,
};
use treering_profile::{MetricId, Profile, Run, Source};
use treering_report::{
    Amount, Options, Style, call_graph_text, flat_text, labels, lines_text, summary, threads_text, tree_text,
};

const METRIC: MetricId = MetricId::new(0);

fn basis(profile: &Profile) -> Basis {
    Basis::of(profile, METRIC)
}

fn flat(profile: &Profile, options: Options, expected: Expect) {
    let graph = CallGraph::of(profile, &basis(profile), Presentation::Contexts);
    expected.assert_eq(&flat_text(profile, &graph, &Style::default(), &options));
}

fn call_graph(profile: &Profile, presentation: Presentation, options: Options, expected: Expect) {
    let graph = CallGraph::of(profile, &basis(profile), presentation);
    expected.assert_eq(&call_graph_text(profile, &graph, &Style::default(), &options));
}

fn tree(profile: &Profile, direction: Direction, options: Options, expected: Expect) {
    let pruning = Pruning { min_share: 0.02, max_depth: 64 };
    let tree = CallTree::of(profile, &basis(profile), direction, pruning);
    expected.assert_eq(&tree_text(profile, &tree, &pruning, &Style::default(), &options));
}

fn lines(profile: &Profile, function: &str, expected: Expect) {
    let basis = basis(profile);
    let function =
        find_function(profile, &basis, function, labels(profile), |_| false).expect("the function is there");
    let table = LineTable::of(profile, &basis, function);
    expected.assert_eq(&lines_text(profile, &table, &Style::default(), &Options::default()));
}

/// Two threads; self ≠ total; a function with two callers.
fn sampled() -> Profile {
    let mut profile = treering_testing::stacks(
        "
        main@12;parse@21;copy@3 300
        main@12;parse@20 190
        main@13;copy@4 100
        main@14;log 8
        main@15 2
        @worker loop@40;copy@3 400
        ",
    );
    profile.runs[0] = Run {
        command: vec!["./demo".to_owned(), "input.txt".to_owned()],
        duration_ns: 1_250_000_000,
        cpu_ns: Some(1_002_000_000),
        ..Run::default()
    };
    profile.runs.truncate(1);
    profile.processes[1].run = profile.processes[0].run;
    profile.metadata.losses.lost_samples = 3;
    profile.metadata.losses.truncated_stacks = 12;
    profile.metadata.note("the kernel allowed no kernel samples");
    profile
}

/// Brackets without a name stood behind it.
#[test]
fn a_thread_of_a_process_without_a_name_stands_alone() {
    let mut profile = sampled();
    profile.processes.iter_mut().for_each(|process| process.name.clear());
    let text = threads_text(&profile, &basis(&profile), &Style::default(), &Options::default());
    assert!(text.contains("worker\n") && !text.contains("[]"), "{text}");
}

fn counted() -> Profile {
    treering_testing::trace(
        "
           0 enter main
        1000   enter even
        3000     enter odd
        4000       enter even
        9000         enter log
        9700         leave
       10000       leave
       12000     leave
       15000   leave
       15100   enter fact
       15200     enter fact
       15300     leave
       15400   leave
       16001 leave
        ",
    )
}

#[test]
fn summary_tells_times_losses_and_the_largest_functions() {
    expect![[r#"
        command   ./demo input.txt
        run       1.250 s by the wall clock, 1.002 s of CPU time (80.2 %)
        samples   1,000 samples of cpu-clock, one per 1.000 ms; 998 per second of CPU time
        losses    3 samples lost (0.3 %), 12 stacks cut short (1.2 %)
        note      the kernel allowed no kernel samples

        % self  [95 % interval]  % total  function
          80.0     [77.4, 82.4]     80.0  copy
          19.0     [16.7, 21.5]     49.0  parse
           0.8       [0.4, 1.6]      0.8  log
    "#]]
    .assert_eq(&summary(&sampled(), &Style::default(), 3));
}

#[test]
fn flat_profile_of_samples_has_intervals_and_no_calls() {
    flat(
        &sampled(),
        Options { limit: Some(4), ..Options::default() },
        expect![[r#"
        command   ./demo input.txt
        run       1.250 s by the wall clock, 1.002 s of CPU time (80.2 %)
        samples   1,000 samples of cpu-clock, one per 1.000 ms; 998 per second of CPU time
        losses    3 samples lost (0.3 %), 12 stacks cut short (1.2 %)
        note      the kernel allowed no kernel samples

        % self  [95 % interval]  running sum s  self s  total s  % total  function
          80.0     [77.4, 82.4]          0.800   0.800    0.800     80.0  copy
          19.0     [16.7, 21.5]          0.990   0.190    0.490     49.0  parse
           0.8       [0.4, 1.6]          0.998   0.008    0.008      0.8  log
           0.2       [0.1, 0.7]          1.000   0.002    0.600     60.0  main
        … 1 function more, together 0.0 % self

        % self, self: spent in the function itself; running sum adds it up down the list
        % total, total: with everything it called, recursion counted once; % is of the whole run
        [95 % interval]: where % self lies, as far as the samples can tell
    "#]],
    );
}

#[test]
fn flat_profile_of_calls_has_averages_and_no_intervals() {
    flat(
        &counted(),
        Options::default(),
        expect![[r#"
        metric    time, 16.001 µs in all

        % self  running sum µs  self µs  calls  self/call  total/call  total µs  % total  function
          64.4          10.300   10.300      2   5.150 µs    7.000 µs    14.000     87.5  even <cycle 1>
          18.7          13.300    3.000      1   3.000 µs    9.000 µs     9.000     56.2  odd <cycle 1>
          10.6          15.001    1.701      1   1.701 µs   16.001 µs    16.001    100.0  main
           4.4          15.701    0.700      1     700 ns      700 ns     0.700      4.4  log
           1.9          16.001    0.300      2     150 ns      150 ns     0.300      1.9  fact

        % self, self: spent in the function itself; running sum adds it up down the list
        % total, total: with everything it called, recursion counted once; % is of the whole run
        self/call, total/call: averages over the calls
        <cycle>: functions that reach each other
    "#]],
    );
}

#[test]
fn flat_profile_can_be_in_samples() {
    flat(
        &sampled(),
        Options { amount: Some(Amount::Samples), ..Options::default() },
        expect![[r#"
        command   ./demo input.txt
        run       1.250 s by the wall clock, 1.002 s of CPU time (80.2 %)
        samples   1,000 samples of cpu-clock, one per 1.000 ms; 998 per second of CPU time
        losses    3 samples lost (0.3 %), 12 stacks cut short (1.2 %)
        note      the kernel allowed no kernel samples

        % self  [95 % interval]  running sum samples  self samples  total samples  % total  function
          80.0     [77.4, 82.4]                  800           800            800     80.0  copy
          19.0     [16.7, 21.5]                  990           190            490     49.0  parse
           0.8       [0.4, 1.6]                  998             8              8      0.8  log
           0.2       [0.1, 0.7]                1,000             2            600     60.0  main
           0.0       [0.0, 0.4]                1,000             0            400     40.0  loop

        % self, self: spent in the function itself; running sum adds it up down the list
        % total, total: with everything it called, recursion counted once; % is of the whole run
        [95 % interval]: where % self lies, as far as the samples can tell
    "#]],
    );
}

#[test]
fn call_graph_of_samples_adds_up() {
    call_graph(
        &sampled(),
        Presentation::Contexts,
        Options::default(),
        expect![[r#"
        command   ./demo input.txt
        run       1.250 s by the wall clock, 1.002 s of CPU time (80.2 %)
        samples   1,000 samples of cpu-clock, one per 1.000 ms; 998 per second of CPU time
        losses    3 samples lost (0.3 %), 12 stacks cut short (1.2 %)
        note      the kernel allowed no kernel samples

        index  % total     self s  children s  function
                            0.100      0.000      main [2]
                            0.300      0.000      parse [3]
                            0.400      0.000      loop [4]
        [1]       80.0      0.800      0.000  copy [1]
        ---------------------------------------------------------------
                            0.002      0.598      <spontaneous>
        [2]       60.0      0.002      0.598  main [2]
                            0.190      0.300      parse [3]
                            0.100      0.000      copy [1]
                            0.008      0.000      log [5]
        ---------------------------------------------------------------
                            0.190      0.300      main [2]
        [3]       49.0      0.190      0.300  parse [3]
                            0.300      0.000      copy [1]
        ---------------------------------------------------------------
                            0.000      0.400      <spontaneous>
        [4]       40.0      0.000      0.400  loop [4]
                            0.400      0.000      copy [1]
        ---------------------------------------------------------------
                            0.008      0.000      main [2]
        [5]        0.8      0.008      0.000  log [5]
        ---------------------------------------------------------------

        Index by function name
            [1] copy
            [5] log
            [4] loop
            [2] main
            [3] parse

        the numbered line is the function, its callers are above it and its callees below
        callers add up to its self and children cost, callees to its children cost; % is of the whole run
    "#]],
    );
}

#[test]
fn many_calls_widen_their_column() {
    let mut profile = counted();
    let main = treering_profile::NodeId::new(1);
    profile.tree.add_calls(main, 3_000_000_000_000, 2_000_000_000_000);
    let graph = CallGraph::of(&profile, &basis(&profile), Presentation::Contexts);
    let text = call_graph_text(&profile, &graph, &Style::default(), &Options::default());
    let numbered = text.lines().filter(|line| line.starts_with('['));
    let names: Vec<usize> =
        numbered.map(|line| line.find(char::is_alphabetic).expect("a line has a name")).collect();
    assert!(names.len() > 1 && names.iter().all(|&at| at == names[0]), "{text}");
    assert!(text.contains("1,000,000,000,001+2,000,000,000,000"), "{text}");
}

#[test]
fn call_graph_of_calls_shows_recursion_and_cycles() {
    call_graph(
        &counted(),
        Presentation::Contexts,
        Options::default(),
        expect![[r#"
        metric    time, 16.001 µs in all

        index  % total    self µs  children µs      called     function
                            1.701     14.300        1/1          <spontaneous>
        [1]      100.0      1.701     14.300         1       main [1]
                           10.300      3.700        1/2          even <cycle 1> [2]
                            0.300      0.000        1/1          fact [5]
        -------------------------------------------------------------------------------
                                                    1/2          odd <cycle 1> [3] (recursive)
                           10.300      3.700        1/2          main [1]
        [2]       87.5     10.300      3.700         2       even <cycle 1> [2]
                            3.000      0.000        1/1          odd <cycle 1> [3]
                            0.700      0.000        1/1          log [4]
        -------------------------------------------------------------------------------
                            3.000      6.000        1/1          even <cycle 1> [2]
        [3]       56.2      3.000      6.000         1       odd <cycle 1> [3]
                            5.300      0.700        1/2          even <cycle 1> [2]
        -------------------------------------------------------------------------------
                            0.700      0.000        1/1          even <cycle 1> [2]
        [4]        4.4      0.700      0.000         1       log [4]
        -------------------------------------------------------------------------------
                            0.300      0.000        1/1          main [1]
        [5]        1.9      0.300      0.000        1+1      fact [5]
        -------------------------------------------------------------------------------

        Index by function name
            [2] even
            [5] fact
            [4] log
            [1] main
            [3] odd

        the numbered line is the function, its callers are above it and its callees below
        callers add up to its self and children cost, callees to its children cost; % is of the whole run
        called: from this caller / from all others; on the numbered line + recursive calls
    "#]],
    );
}

#[test]
fn collapsed_cycles_have_a_block_of_their_own() {
    call_graph(
        &counted(),
        Presentation::CollapsedCycles,
        Options::default(),
        expect![[r#"
        metric    time, 16.001 µs in all

        index  % total    self µs  children µs      called     function
                            1.701     14.300        1/1          <spontaneous>
        [1]      100.0      1.701     14.300         1       main [1]
                           13.300      0.700        1/1          even <cycle 1> [3]
                            0.300      0.000        1/1          fact [6]
        -------------------------------------------------------------------------------
                           13.300      0.700        1/1          main [1]
        [2]       87.5     13.300      0.700        1+2      <cycle 1 as a whole> [2]
                           10.300      0.700         2           even <cycle 1> [3]
                            3.000      0.000         1           odd <cycle 1> [4]
        -------------------------------------------------------------------------------
                                                     1           odd <cycle 1> [4] (recursive)
                           13.300      0.700        1/1          main [1]
        [3]       68.7     10.300      0.700         2       even <cycle 1> [3]
                            0.700      0.000        1/1          log [5]
                                                     1           odd <cycle 1> [4] (recursive)
        -------------------------------------------------------------------------------
                                                     1           even <cycle 1> [3] (recursive)
        [4]       18.7      3.000      0.000         1       odd <cycle 1> [4]
                                                     1           even <cycle 1> [3] (recursive)
        -------------------------------------------------------------------------------
                            0.700      0.000        1/1          even <cycle 1> [3]
        [5]        4.4      0.700      0.000         1       log [5]
        -------------------------------------------------------------------------------
                            0.300      0.000        1/1          main [1]
        [6]        1.9      0.300      0.000        1+1      fact [6]
        -------------------------------------------------------------------------------

        Index by function name
            [2] <cycle 1>
            [3] even
            [6] fact
            [5] log
            [1] main
            [4] odd

        the numbered line is the function, its callers are above it and its callees below
        callers add up to its self and children cost, callees to its children cost; % is of the whole run
        called: from this caller / from all others; on the numbered line + recursive calls
        a cycle counts as one function: calls within it cost nothing
        <cycle>: a member's children leave the others out, its callers have parts of the whole cycle
    "#]],
    );
}

/// Each member of a cycle has its self cost and what it called outside; so the total is not that of the calls.
#[test]
fn totals_of_members_of_a_collapsed_cycle_are_said_to_leave_out_the_others() {
    let profile = counted();
    let graph = CallGraph::of(&profile, &basis(&profile), Presentation::CollapsedCycles);
    let text = flat_text(&profile, &graph, &Style::default(), &Options::default());
    assert!(text.contains("reach each other; the total of each leaves out the others"), "{text}");
}

#[test]
fn tree_says_what_it_hid() {
    tree(
        &sampled(),
        Direction::Callees,
        Options::default(),
        expect![[r#"
            command   ./demo input.txt
            run       1.250 s by the wall clock, 1.002 s of CPU time (80.2 %)
            samples   1,000 samples of cpu-clock, one per 1.000 ms; 998 per second of CPU time
            losses    3 samples lost (0.3 %), 12 stacks cut short (1.2 %)
            note      the kernel allowed no kernel samples

            % total  % self  [95 % interval]  function
               60.0     0.2     [56.9, 63.0]  main
               49.0    19.0     [45.9, 52.1]    parse
               30.0    30.0     [27.2, 32.9]      copy
               10.0    10.0      [8.3, 12.0]    copy
                                                … 1 node below 2.0 %, together 0.8 %
               40.0     0.0     [37.0, 43.1]  loop
               40.0    40.0     [37.0, 43.1]    copy

            total: with everything called; self: in the function itself; % is of the whole run
            [95 % interval]: where the total lies in percent, as far as the samples can tell
        "#]],
    );
}

#[test]
fn a_tree_says_how_deep_its_rows_are_where_indentation_ends() {
    let profile = treering_testing::stacks(&format!("{}last 10", "rec;".repeat(103)));
    let pruning = Pruning { min_share: 0.0, max_depth: 102 };
    let tree = CallTree::of(&profile, &basis(&profile), Direction::Callees, pruning);
    let text = tree_text(&profile, &tree, &pruning, &Style::default(), &Options::default());
    let indent = "  ".repeat(100);
    let lines: Vec<_> = text.lines().filter_map(|line| line.rsplit_once(&indent)).collect();
    let names: Vec<_> = lines.iter().map(|(_, name)| *name).collect();
    let last = "[103] … 1 node deeper than 102, together 100.0 %";
    // The one at 99 has the gap between columns before it.
    assert_eq!(names, ["rec", "rec", "[101] rec", "[102] rec", last]);
    assert!(text.ends_with("\n[N] before a function: its depth, where that is more than 100\n"), "{text}");
}

#[test]
fn callers_start_at_self_costs() {
    tree(
        &sampled(),
        Direction::Callers,
        Options::default(),
        expect![[r#"
            command   ./demo input.txt
            run       1.250 s by the wall clock, 1.002 s of CPU time (80.2 %)
            samples   1,000 samples of cpu-clock, one per 1.000 ms; 998 per second of CPU time
            losses    3 samples lost (0.3 %), 12 stacks cut short (1.2 %)
            note      the kernel allowed no kernel samples

            % self  [95 % interval]  function, its callers below it
              80.0     [77.4, 82.4]  copy
              40.0     [37.0, 43.1]    loop
              30.0     [27.2, 32.9]    parse
              30.0     [27.2, 32.9]      main
              10.0      [8.3, 12.0]    main
              19.0     [16.7, 21.5]  parse
              19.0     [16.7, 21.5]    main
                                     … 2 nodes below 2.0 %, together 1.0 %

            self: in the function at the top, for the part reached through this chain of callers; % is of the whole run
            [95 % interval]: where it lies in percent, as far as the samples can tell
        "#]],
    );
}

#[test]
fn lines_have_call_rows_below_them() {
    let mut profile = sampled();
    let file = profile.strings.intern("demo.c");
    let text: String = (1..=40).map(|line| format!("source line {line}\n")).collect();
    profile.sources.push(Source { file, text: text.into() });
    lines(
        &profile,
        "main",
        expect![[r#"
            command   ./demo input.txt
            run       1.250 s by the wall clock, 1.002 s of CPU time (80.2 %)
            samples   1,000 samples of cpu-clock, one per 1.000 ms; 998 per second of CPU time
            losses    3 samples lost (0.3 %), 12 stacks cut short (1.2 %)
            note      the kernel allowed no kernel samples

            main: 0.2 % self, 60.0 % total

            % total   % self    line  demo.c
                                   9  source line 9
                                  10  source line 10
                                  11  source line 11
               49.0               12  source line 12
               49.0                     → parse
               10.0               13  source line 13
               10.0                     → copy
                0.8               14  source line 14
                0.8                     → log
                0.2      0.2      15  source line 15
                                  16  source line 16
                                  17  source line 17
                                  18  source line 18
        "#]],
    );
}

#[test]
fn lines_without_source_text_are_numbers() {
    lines(
        &sampled(),
        "parse",
        expect![[r#"
            command   ./demo input.txt
            run       1.250 s by the wall clock, 1.002 s of CPU time (80.2 %)
            samples   1,000 samples of cpu-clock, one per 1.000 ms; 998 per second of CPU time
            losses    3 samples lost (0.3 %), 12 stacks cut short (1.2 %)
            note      the kernel allowed no kernel samples

            parse: 19.0 % self, 49.0 % total

            % total   % self    line  demo.c
               19.0     19.0      20
               30.0               21
               30.0                     → copy
        "#]],
    );
}

#[test]
fn a_profile_without_samples_says_so() {
    let profile = treering_testing::stacks("main 0");
    flat(
        &profile,
        Options::default(),
        expect![[r#"
            samples   0 samples of cpu-clock, one per 1.000 ms
            note      0 samples: too few to say
        "#]],
    );
}
