//! Programs of every kind.

use std::path::Path;

use treering_testing::programs::{
    CHILDREN, CONTROL_FLOW, FORK_THEN_LOAD, FREESTANDING, HELD, LEAF_THREADS, OBJECTS, OWN_GS, OWN_WRITER,
    PUSHED_RETURNS, RAISED_RETURNS, RESTLESS, REWRITTEN, ROWS, RUST_SMALL, SIGNAL_STORM, SIGNALS, TAIL_CALLS,
    TRAMPOLINES, TRANSFERS, UPPER_PARTS, WIDE_VECTORS, installed,
};
use treering_translator::{Counts, Ended};

use crate::tree::{Names, check, counted, counted_in_part, counted_with, tree};

fn unmatched_returns(counts: &Counts) -> u64 {
    let threads = counts.programs.iter().flat_map(|program| &program.threads);
    threads.map(|thread| tree(thread).unmatched_returns).sum()
}

#[test]
fn calls_and_jumps_to_functions_are_those_that_the_program_makes() {
    for flags in [&[][..], &["-static"], &["-no-pie"]] {
        let program = CONTROL_FLOW.variant(&format!("tree{}", flags.len()), flags).build().unwrap();
        let counts = check(&program, &[]);
        let names = Names::of(&program);
        let calls = names.calls(&counts.programs[0]);
        let expected = [
            ("leaf", 300),
            // The compiler knows its result.
            ("factorial", 1),
            ("choose", 600),
            ("twice", 60),
            ("thrice", 30),
            ("apply", 90),
            ("maybe_jump", 20),
            ("even", 21),
            ("odd", 21),
            ("main", 1),
        ];
        for (function, number) in expected {
            assert_eq!(calls[function], number, "{function} {flags:?}");
        }
        assert_eq!(unmatched_returns(&counts), 0);
        // A function that jumps to another one hands its place on; functions that `longjmp` leaves are
        // left.
        for (function, chain) in [("twice", "main twice"), ("maybe_jump", "main maybe_jump")] {
            let chains = names.chains(&counts.programs[0], function);
            assert_eq!(chains.keys().map(|key| &**key).collect::<Vec<_>>(), [chain]);
        }
    }
}

#[test]
fn functions_not_called_before_take_the_place_of_those_that_jump_to_them() {
    let whole = TAIL_CALLS.build().unwrap();
    let names = Names::of(&whole);
    for flags in [&[][..], &["-s"]] {
        let program = TAIL_CALLS.variant(&format!("tails{}", flags.len()), flags).build().unwrap();
        let counts = check(&program, &[]);
        let chains = |function| names.chains(&counts.programs[0], function);
        let expected: [(_, &[_]); 5] = [
            ("to_called_later", &[("main stays to_called_later", 1000), ("main to_called_later", 1000)]),
            ("called_later", &[("main called_later", 1001), ("main stays called_later", 1000)]),
            ("to_pointed_to", &[("main to_pointed_to", 1000)]),
            ("pointed_to", &[("main pointed_to", 1000)]),
            ("to_library", &[("main to_library", 1000)]),
        ];
        for (function, calls) in expected {
            let found = chains(function);
            let found: Vec<_> = found.iter().map(|(chain, &calls)| (&**chain, calls)).collect();
            assert_eq!(found, calls, "{function} {flags:?}");
        }
        let library = counts.programs[0].threads.iter().flat_map(|thread| &tree(thread).nodes);
        let thousand = library.filter(|node| node.calls == 1000 && names.name(node.address).is_empty());
        assert!(thousand.count() >= 1, "labs takes the place of the one that jumps to it");
    }
}

/// In the first run the blocks that are translated for a request are those that it leads to, later ones all that
/// were executed.
#[test]
fn trees_do_not_depend_on_hints_about_a_program() {
    let stripped = ["-s"];
    let programs = [
        CONTROL_FLOW.build().unwrap(),
        CONTROL_FLOW.variant("hints-stripped", &stripped).build().unwrap(),
        OBJECTS.build().unwrap(),
        RUST_SMALL.build().unwrap(),
        SIGNALS.build().unwrap(),
        PUSHED_RETURNS.build().unwrap(),
    ];
    // None of these asks what time it is, as bash does: the vDSO executes more instructions when a second has passed.
    let installed = ["gzip", "sed", "xz", "sqlite3"].into_iter().filter_map(installed);
    let with_arguments = installed.map(|program| {
        let argument = if program.ends_with("sqlite3") { "-version" } else { "--version" };
        (program, vec![argument])
    });
    for (program, arguments) in
        programs.map(|program| (program, Vec::new())).into_iter().chain(with_arguments)
    {
        let name = format!("tree-hints-{}-{}", std::process::id(), program.file_name().unwrap().display());
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let runs = [0, 1, 2].map(|_| counted_with(Some(&directory), &program, &arguments));
        std::fs::remove_dir_all(&directory).unwrap();
        let translated = runs.each_ref().map(|counts| counts.programs[0].translated);
        assert!(translated[1] < translated[0], "{}: it was known: {translated:?}", program.display());
        let [first, later @ ..] = runs.each_ref().map(|counts| &tree(&counts.programs[0].threads[0]).nodes);
        for nodes in later {
            let differs = nodes.iter().zip(first).find(|(later, first)| later != first);
            assert!(nodes == first, "{}: {differs:#x?}", program.display());
        }
    }
}

#[test]
fn each_depth_of_a_recursion_has_its_node() {
    let program = CONTROL_FLOW.build().unwrap();
    let counts = check(&program, &[]);
    let names = Names::of(&program);
    let chains = names.chains(&counts.programs[0], "even");
    assert_eq!(chains.len(), 21, "{chains:?}");
    assert!(chains.values().all(|&calls| calls == 1), "{chains:?}");
}

#[test]
fn exceptions_leave_the_functions_they_pass_through() {
    for flag in ["-static", "-O1"] {
        let program = OBJECTS.variant(&format!("tree{flag}"), &[flag]).build().unwrap();
        let counts = check(&program, &[]);
        let names = Names::of(&program);
        let chains = names.chains(&counts.programs[0], "_Z4deepiiRl");
        let calls: Vec<_> = chains.values().copied().collect();
        assert_eq!(calls, [10; 6], "{flag}: {chains:?}");
        assert_eq!(names.calls(&counts.programs[0])["_ZNK6Square4areaEv"], 20);
        assert_eq!(unmatched_returns(&counts), 0);
    }
}

#[test]
fn handlers_run_below_the_functions_they_interrupt() {
    let program = SIGNALS.build().unwrap();
    let counts = check(&program, &["20"]);
    let names = Names::of(&program);
    let chains = |function| names.chains(&counts.programs[0], function);
    assert_eq!(chains("on_raise"), [("main on_raise".to_owned(), 40)].into());
    assert_eq!(chains("on_fault"), [("main store on_fault".to_owned(), 40)].into());
    assert_eq!(chains("store"), [("main store".to_owned(), 40)].into());
    assert_eq!(unmatched_returns(&counts), 0);
}

#[test]
fn signals_at_any_time_cost_no_call() {
    let program = SIGNAL_STORM.build().unwrap();
    let names = Names::of(&program);
    for round in 0..2 {
        let counts = check(&program, &["5"]);
        let chains = names.chains(&counts.programs[0], "leaf");
        assert_eq!(chains, [("work leaf".to_owned(), 1_500_000)].into(), "{round}");
        assert_eq!(unmatched_returns(&counts), 0);
    }
}

#[test]
fn each_thread_has_its_tree() {
    let program = LEAF_THREADS.build().unwrap();
    let counts = check(&program, &["24", "2000"]);
    let names = Names::of(&program);
    assert_eq!(counts.programs[0].threads.len(), 25);
    assert_eq!(names.chains(&counts.programs[0], "leaf"), [("work leaf".to_owned(), 48_000)].into());
}

#[test]
fn children_go_on_in_the_contexts_of_their_parents() {
    let program = CHILDREN.build().unwrap();
    let counts = check(&program, &[]);
    assert_eq!(unmatched_returns(&counts), 0);
    let counts = check(&FORK_THEN_LOAD.build().unwrap(), &[]);
    assert_eq!((counts.programs.len(), unmatched_returns(&counts)), (7, 0));
    let names = Names::of(&FORK_THEN_LOAD.build().unwrap());
    let of_main: Vec<_> = counts.programs.iter().map(|program| names.calls(program)["main"]).collect();
    assert_eq!(of_main, [0, 0, 0, 0, 0, 0, 1], "the parent ends last, and it alone has called `main`");
}

#[test]
fn programs_that_do_the_unusual() {
    counted(&FREESTANDING.build().unwrap(), &[]);
    check(&OWN_GS.build().unwrap(), &[]);
    check(&OWN_WRITER.build().unwrap(), &[]);
    check(&REWRITTEN.build().unwrap(), &[]);
    check(&REWRITTEN.build().unwrap(), &["both"]);
    for letters in ["c", "cs"] {
        assert_eq!(check(&RESTLESS.build().unwrap(), &["4000", letters]).ended, Ended::Exited(0));
    }
    check(&TRAMPOLINES.build().unwrap(), &[]);
    check(&RUST_SMALL.build().unwrap(), &[]);
    for arguments in [&["300"][..], &["100000", "storm"]] {
        assert_eq!(check(&TRANSFERS.build().unwrap(), arguments).ended, Ended::Exited(0));
    }
    if std::arch::is_x86_feature_detected!("avx512f") {
        check(&WIDE_VECTORS.build().unwrap(), &[]);
    } else {
        println!("skipped: this processor has no AVX-512");
    }
}

/// Where they are in use, each change between instructions of SSE and AVX may cost hundreds of cycles.
#[test]
fn upper_parts_of_registers_are_in_use_where_they_are_without_us() {
    let program = UPPER_PARTS.build().unwrap();
    let [alone, counted] = ["alone", "counted"].map(|name| program.with_file_name(name));
    let status = std::process::Command::new(&program).arg(&alone).arg("10").status().unwrap();
    if status.code() == Some(2) {
        println!("skipped: this processor cannot tell which parts are in use");
        return;
    }
    assert_eq!(check(&program, &[counted.to_str().unwrap(), "1000"]).ended, Ended::Exited(0));
    let [alone, counted] = [alone, counted].map(|file| std::fs::read_to_string(file).unwrap());
    // AMD's processors look at what is in the registers: the last one, which is in memory meanwhile, is not seen.
    let looks_at_values = alone.lines().any(|line| line == format!("{:30} 0", "AVX, whole, lower part"));
    let last_one = |line: &str| looks_at_values && line == format!("{:30} 1", "AVX, whole");
    let expected =
        alone.lines().map(|line| if last_one(line) { line.replace('1', "0") } else { line.into() });
    assert_eq!(expected.collect::<Vec<_>>(), counted.lines().collect::<Vec<_>>());
}

/// Where a tree keeps them meanwhile, and in what follows branches as they went in the last run.
#[test]
fn registers_keep_their_values_between_returns_and_calls() {
    let program = HELD.build().unwrap();
    let hints = std::env::temp_dir().join(format!("treering-held-{}", std::process::id()));
    for arguments in
        [&["2000"][..], &["300000", "storm"], &["300000", "storm", "seldom"], &["300000", "storm"]]
    {
        assert_eq!(counted_with(Some(&hints), &program, arguments).ended, Ended::Exited(0), "{arguments:?}");
    }
    std::fs::remove_dir_all(hints).unwrap();
}

/// In the first run each block adds its own instructions.
#[test]
fn counts_added_once_for_many_blocks_are_those_of_each_block() {
    let program = ROWS.build().unwrap();
    let hints = std::env::temp_dir().join(format!("treering-rows-{}", std::process::id()));
    let runs = [0, 1, 2].map(|_| counted_with(Some(&hints), &program, &["20000"]));
    let [first, later @ ..] = runs.each_ref().map(|counts| &tree(&counts.programs[0].threads[0]).nodes);
    for nodes in later {
        assert!(nodes == first);
    }
    for _ in 0..2 {
        let counts = counted_with(Some(&hints), &program, &["100000", "storm"]);
        let walks = Names::of(&program).calls(&counts.programs[0])["walk"];
        assert_eq!((counts.ended, walks), (Ended::Exited(0), 100_000));
    }
    std::fs::remove_dir_all(hints).unwrap();
}

#[test]
fn programs_of_the_system() {
    for (program, arguments) in
        [("/bin/true", &[][..]), ("/bin/ls", &["/"]), ("/bin/gzip", &["-c", "/etc/services"])]
    {
        check(Path::new(program), arguments);
    }
}

#[test]
fn two_runs_have_the_same_tree() {
    let run = || tree(&check(Path::new("/bin/ls"), &["/"]).programs[0].threads[0]).nodes.clone();
    assert_eq!(run(), run());
}

#[test]
fn returns_above_where_functions_were_entered_leave_them() {
    let program = RAISED_RETURNS.build().unwrap();
    let names = Names::of(&program);
    for arguments in [&["few"][..], &["timer"]] {
        let counts = check(&program, arguments);
        assert_eq!((counts.ended, unmatched_returns(&counts)), (Ended::Exited(0), 0), "{arguments:?}");
        let calls = |function| names.chains(&counts.programs[0], function);
        assert_eq!(calls("after"), [("main after".to_owned(), 102_011)].into());
        assert_eq!(calls("drops"), [("main by_call drops".to_owned(), 100_000)].into());
        assert_eq!(calls("leaf")["main by_call drops leaf"], 100_000);
        // Every depth from 0 to 39 was 50 times the deepest.
        let descents: Vec<u64> = calls("descend").values().copied().collect();
        assert_eq!(
            (descents.len(), descents.iter().max(), descents.iter().min()),
            (2001, Some(&2010), Some(&10))
        );
        assert_eq!(calls("moves"), [("main loops moves".to_owned(), 1000)].into());
        assert_eq!(names.calls(&counts.programs[0])["leaf"], 103_010);
    }
}

#[test]
fn returns_to_pushed_addresses_are_counted_without_a_stop() {
    let counts = counted_in_part(&PUSHED_RETURNS.build().unwrap(), &["few"]);
    assert_eq!(counts.ended, Ended::Exited(0));
    assert_eq!((unmatched_returns(&counts), counts.not_counted.len()), (201_000, 1));
}
