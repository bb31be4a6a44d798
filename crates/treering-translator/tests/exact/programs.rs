//! Programs of every kind, compared with stepping.

use std::collections::BTreeMap;
use std::path::Path;

use treering_profile::BranchKind;
use treering_testing::programs::{
    ALL_BLOCKED, BLOCKED_WRITES, CHANGED_CODE, CHILDREN, CONTROL_FLOW, COROUTINES, CREDITED, FAULTS,
    FORK_THEN_LOAD, FREESTANDING, HELD, KERNEL_WRITES, LEAF_THREADS, OBJECTS, OTHER_COURSES, OTHER_TARGETS,
    OWN_FILTER, OWN_GS, OWN_WRITER, PROCESSORS, RESTLESS, REWRITTEN, RUST_SMALL, SIGNAL_STORM, SIGNALS,
    TRAMPOLINES, TRANSFERS, TWO_MAPPINGS, UPPER_BITS, WIDE_VECTORS, WRITABLE_LOOP, WRITTEN_TOGETHER, fixture,
};
use treering_translator::{BranchBias, Ended};

use crate::instructions::{
    check, check_after, check_own, counted, counted_in_turn, counted_twice, executions, of_function, stepped,
};

#[test]
fn a_program_without_a_library() {
    let counts = check(&FREESTANDING.build().unwrap(), &[]);
    assert_eq!(counts.ended, Ended::Exited(44));
}

#[test]
fn static_and_dynamic_programs_in_c() {
    check(&CONTROL_FLOW.build().unwrap(), &[]);
    for (variant, flag) in [("static", "-static"), ("static-pie", "-static-pie"), ("no-pie", "-no-pie")] {
        check(&CONTROL_FLOW.variant(variant, &[flag]).build().unwrap(), &[]);
    }
}

#[test]
fn exceptions_in_cpp() {
    check(&OBJECTS.variant("static", &["-static-pie"]).build().unwrap(), &[]);
    check(&OBJECTS.build().unwrap(), &[]);
}

#[test]
fn stacks_that_are_switched() {
    let program = COROUTINES.build().unwrap();
    let counts = check(&program, &[]);
    let leaf = of_function(&executions(&counts), &program, "leaf");
    assert!(leaf.iter().all(|&count| count == 200), "{leaf:?}");
}

#[test]
fn panics_in_rust() {
    check_own(&RUST_SMALL.build().unwrap(), &[]);
}

#[test]
fn signals_faults_and_jumps_out_of_handlers() {
    check(&SIGNALS.build().unwrap(), &["20"]);
}

#[test]
fn functions_that_fault_at_once() {
    check(&FAULTS.build().unwrap(), &["1"]);
}

#[test]
fn branches_that_go_other_ways_than_in_the_last_run() {
    let program = OTHER_COURSES.build().unwrap();
    let usual = ["2000", "31", "0"];
    for other in [["2000", "31", "1"], ["2000", "0", "0"], ["2000", "0", "1"], ["7", "1", "0"]] {
        let [first, second] = check_after(&program, &usual, &other);
        assert_eq!([first.ended, second.ended], [Ended::Exited(0); 2], "{other:?}");
        let counted = &first.programs[0];
        let is_own = |region: u32| {
            counted.regions[region as usize].file.as_ref().is_some_and(|(path, _)| *path == program)
        };
        let own = counted.blocks.iter().filter(|block| is_own(block.region));
        let courses: Vec<_> = own.map(|block| block.bias).collect();
        for course in [BranchBias::FallThrough, BranchBias::Taken] {
            assert!(courses.contains(&Some(course)), "a block is derived from another one");
        }
    }
}

#[test]
fn signals_among_blocks_that_do_not_count_themselves() {
    let program = OTHER_COURSES.build().unwrap();
    let (usual, timed) = (["3000000", "31", "0"], ["3000000", "31", "0", "150"]);
    let alone = of_function(&executions(&counted(&program, &usual)), &program, "walk");
    let stepped = of_function(&stepped(&program, &["3000", "31", "0"]), &program, "walk");
    assert_eq!(alone.len(), stepped.len());
    for counts in counted_in_turn(&program, [&usual, &timed]) {
        assert_eq!(counts.ended, Ended::Exited(0));
        assert_eq!(of_function(&executions(&counts), &program, "walk"), alone);
    }
}

#[test]
fn indirect_transfers_to_other_targets_than_in_the_last_run() {
    let program = OTHER_TARGETS.build().unwrap();
    for (usual, other) in [(["300", "2", "0"], ["300", "0", "3"]), (["300", "0", "4"], ["300", "5", "0"])] {
        let [first, second] = check_after(&program, &usual, &other);
        assert_eq!([first.ended, second.ended], [Ended::Exited(0); 2], "{usual:?} {other:?}");
    }
}

#[test]
fn signals_on_the_way_to_a_target() {
    let program = OTHER_TARGETS.build().unwrap();
    let timed = |step| ["3000000", "0", step, "150"];
    let alone = of_function(&executions(&counted(&program, &["3000000", "0", "1"])), &program, "walk");
    for usual in ["0", "4", "1"] {
        let [_, counts] = counted_in_turn(&program, [&timed(usual), &timed("1")]);
        assert_eq!(counts.ended, Ended::Exited(0));
        assert_eq!(of_function(&executions(&counts), &program, "walk"), alone);
        // A signal may come in a block: what is left of it is another one with the same end.
        let mut ways = BTreeMap::new();
        for way in &counts.programs[0].threads[0].branches {
            if matches!(way.kind, BranchKind::IndirectCall | BranchKind::IndirectJump) {
                *ways.entry((way.site, way.target)).or_insert(0) += way.count;
            }
        }
        let often: Vec<_> = ways.into_values().filter(|&count| count > 100_000).collect();
        assert_eq!(often, [3_000_000 / 8; 2 * 8], "each of eight targets is called and jumped to as often");
    }
}

/// The thread executed nothing any more: when one signal had been merged with another, the next was there.
#[test]
fn signals_that_come_faster_than_they_can_be_handled() {
    let program = OTHER_TARGETS.build().unwrap();
    let alone = of_function(&executions(&counted(&program, &["300000", "0", "1"])), &program, "walk");
    let counts = counted(&program, &["300000", "0", "1", "20"]);
    assert_eq!(counts.ended, Ended::Exited(0));
    assert_eq!(of_function(&executions(&counts), &program, "walk"), alone);
}

#[test]
fn code_that_is_written_anew() {
    check(&REWRITTEN.build().unwrap(), &[]);
    check(&REWRITTEN.build().unwrap(), &["both"]);
}

#[test]
fn an_instruction_in_two_mappings() {
    let counts = check(&TWO_MAPPINGS.build().unwrap(), &[]);
    assert_eq!(counts.ended, Ended::Exited(0));
}

#[test]
fn system_calls_that_write_into_code() {
    check_own(&KERNEL_WRITES.build().unwrap(), &[]);
}

#[test]
fn code_that_goes_or_changes_by_system_calls() {
    check(&CHANGED_CODE.build().unwrap(), &["memory"]);
}

#[test]
fn children() {
    let counts = check_own(&CHILDREN.build().unwrap(), &[]);
    assert!(counts.programs.len() > 2);
}

#[test]
fn programs_of_the_system() {
    let small = fixture("burn.h");
    let small = small.to_str().unwrap();
    for (program, arguments) in [("/bin/true", &[][..]), ("/bin/ls", &["/"]), ("/bin/gzip", &["-c", small])] {
        check(Path::new(program), arguments);
    }
}

/// Threads and signals come when they like, so only what does not depend on them is compared.
#[test]
fn each_thread_counts_its_own_calls() {
    let program = LEAF_THREADS.build().unwrap();
    for round in 0..3 {
        let counts = counted(&program, &["24", "20000"]);
        assert_eq!((counts.ended, &counts.not_counted), (Ended::Exited(0), &Vec::new()), "{round}");
        assert_eq!(counts.programs[0].threads.len(), 25);
        let leaf = of_function(&executions(&counts), &program, "leaf");
        assert!(leaf.iter().all(|&count| count == 24 * 20_000), "{leaf:?}");
    }
}

#[test]
fn signals_in_loops_of_threads_cost_no_count() {
    let program = SIGNAL_STORM.build().unwrap();
    let quiet = executions(&counted(&program, &["5", "quiet"]));
    for round in 0..5 {
        let counts = counted(&program, &["5"]);
        assert_eq!((counts.ended, &counts.not_counted), (Ended::Exited(0), &Vec::new()), "{round}");
        let stormy = executions(&counts);
        for function in ["work", "leaf"] {
            let (found, truth) =
                (of_function(&stormy, &program, function), of_function(&quiet, &program, function));
            assert_eq!(found, truth, "{function}, round {round}");
        }
        let handled = of_function(&stormy, &program, "on_signal");
        assert!(handled.iter().all(|&count| count > 0), "{handled:?}");
    }
    let leaf = of_function(&quiet, &program, "leaf");
    assert!(leaf.iter().all(|&count| count == 5 * 300_000), "{leaf:?}");
}

#[test]
fn registers_that_the_counter_borrows_stay_the_programs() {
    check(&OWN_GS.build().unwrap(), &[]);
    if std::arch::is_x86_feature_detected!("avx512f") {
        check(&WIDE_VECTORS.build().unwrap(), &[]);
    } else {
        println!("skipped: this processor has no AVX-512");
    }
}

#[test]
fn loops_of_one_block_count_where_code_may_be_written_to() {
    assert_eq!(check(&WRITABLE_LOOP.build().unwrap(), &[]).ended, Ended::Exited(0));
}

#[test]
fn unused_registers_keep_their_values_between_calls() {
    assert_eq!(check(&HELD.build().unwrap(), &["200"]).ended, Ended::Exited(0));
}

#[test]
fn returns_and_indirect_jumps_leave_flags_and_registers_alone() {
    let program = TRANSFERS.build().unwrap();
    assert_eq!(check(&program, &["300"]).ended, Ended::Exited(0));
    let counts = counted(&program, &["100000", "storm"]);
    assert_eq!((counts.ended, &counts.not_counted), (Ended::Exited(0), &Vec::new()));
    let found = of_function(&executions(&counts), &program, "transfer");
    assert!(found.iter().all(|&count| count == 100_000), "{found:?}");
    assert!(of_function(&executions(&counts), &program, "on_alarm")[0] > 0);
}

#[test]
fn a_return_to_a_known_address_with_other_upper_bits_is_a_fault() {
    let program = UPPER_BITS.build().unwrap();
    let truth = of_function(&stepped(&program, &["20"]), &program, "changed");
    assert_eq!(truth, [20 * 17 * 3, 20 * 17 * 2], "the processor refuses a third of its returns");
    for counts in counted_twice(&program, &["20"]) {
        assert_eq!(counts.ended, Ended::Exited(0), "it has seen each fault");
        // They count as made, and that is said.
        let found = of_function(&executions(&counts), &program, "changed");
        assert_eq!(found, [20 * 17 * 3, 20 * 17 * 3]);
        let [note] = &counts.not_counted[..] else { panic!("{:?}", counts.not_counted) };
        assert!(note.detail.contains("non-canonical"), "{}", note.detail);
    }
}

#[test]
fn code_of_callees_is_removed_while_callers_stay() {
    let program = CREDITED.build().unwrap();
    let counts = check(&program, &[]);
    assert_eq!((counts.ended, &counts.not_counted), (Ended::Exited(0), &Vec::new()));
    let found = executions(&counts);
    // 20 + 10 + 7 calls of two instructions.
    assert_eq!(of_function(&found, &program, "replaced"), [37, 37]);
    // Twice a page of return addresses; the last call of each finds no room for its own.
    assert_eq!(of_function(&found, &program, "down"), [1024, 1022]);
    let threads = counts.programs.iter().flat_map(|program| &program.threads);
    let calls = threads.flat_map(|thread| &thread.branches).filter(|branch| branch.kind == BranchKind::Call);
    assert_eq!(calls.map(|branch| branch.count).max(), Some(1022), "of down by itself");
}

#[test]
fn a_filter_of_system_calls() {
    check(&OWN_FILTER.build().unwrap(), &[]);
}

#[test]
fn code_that_writes_into_itself() {
    let counts = check(&OWN_WRITER.build().unwrap(), &[]);
    assert_eq!(counts.ended, Ended::Exited(0));
}

#[test]
fn pages_of_code_that_threads_write_to_together() {
    let path = WRITTEN_TOGETHER.build().unwrap();
    let counts = counted(&path, &[]);
    assert_eq!((counts.ended, &counts.not_counted), (Ended::Exited(0), &Vec::new()));
    // Four threads in a hundred pages, each of which begins with a function of two instructions.
    let executions = executions(&counts);
    let four = |at: u64| executions.get(&at) == Some(&4);
    let pages = executions.keys().filter(|&&at| at % 4096 == 0 && four(at) && four(at + 3)).count();
    assert!(pages >= 100, "{pages} pages");
}

/// The offset of each instruction of the code in `restless.c`, and whether it runs five times a round.
const RESTLESS_CODE: [(u64, bool); 11] = [
    (0, false),
    (5, true),
    (10, true),
    (12, true),
    (14, false),
    (4093, false),
    (4098, false),
    (4160, true),
    (4170, true),
    (4173, true),
    (4176, true),
];

#[test]
fn code_in_pages_that_are_written_all_the_time() {
    const ROUNDS: u64 = 40_000;
    let program = RESTLESS.build().unwrap();
    for letters in ["", "c", "s", "cs", "f", "cf"] {
        let counts = counted(&program, &[&ROUNDS.to_string(), letters]);
        assert_eq!((counts.ended, &counts.not_counted), (Ended::Exited(0), &Vec::new()), "{letters}");
        let executions = executions(&counts);
        let is_counted = |base: u64| {
            let expected = |often| if often { 5 * ROUNDS } else { ROUNDS };
            RESTLESS_CODE.iter().all(|&(at, often)| executions.get(&(base + at)) == Some(&expected(often)))
        };
        let codes = executions.keys().filter(|&&at| at % 4096 == 0 && is_counted(at)).count();
        assert_eq!(codes, 2, "one for each thread: {letters}");
    }
}

#[test]
fn programs_run_on_the_processors_that_they_choose() {
    let before = own_processors();
    let counts = counted(&PROCESSORS.build().unwrap(), &[&before.to_string()]);
    assert_eq!((counts.ended, &counts.not_counted), (Ended::Exited(0), &Vec::new()));
    assert_eq!(own_processors(), before);
}

/// On how many processors the calling thread may run.
fn own_processors() -> u32 {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
    let set = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed:")).unwrap();
    set.chars().filter_map(|digit| digit.to_digit(16)).map(u32::count_ones).sum()
}

#[test]
fn code_on_stacks() {
    let counts = counted(&TRAMPOLINES.build().unwrap(), &[]);
    assert_eq!((counts.ended, &counts.not_counted), (Ended::Exited(0), &Vec::new()));
    let apply = of_function(&executions(&counts), &TRAMPOLINES.build().unwrap(), "apply");
    assert!(apply.contains(&400), "four threads, a hundred rounds each: {apply:?}");
}

#[test]
fn children_that_load_different_code() {
    let counts = counted(&FORK_THEN_LOAD.build().unwrap(), &[]);
    assert_eq!((counts.ended, counts.programs.len()), (Ended::Exited(0), 7));
}

#[test]
fn handlers_survive_new_code_while_signals_are_blocked() {
    assert_eq!(counted(&ALL_BLOCKED.build().unwrap(), &[]).ended, Ended::Exited(0));
    assert_eq!(counted(&BLOCKED_WRITES.build().unwrap(), &[]).ended, Ended::Exited(0));
}

#[test]
fn two_runs_differ_in_no_count() {
    let [first, second] = counted_twice(Path::new("/bin/ls"), &["/"]);
    assert_eq!(executions(&first), executions(&second));
    let branches = |counts: &treering_translator::Counts| {
        let all = counts.programs[0].threads[0].branches.iter();
        let mut all: Vec<_> = all.map(|branch| (branch.site, branch.target, branch.count)).collect();
        all.sort_unstable();
        all
    };
    assert_eq!(branches(&first), branches(&second));
    // Instructions that are known not to be executed are not translated.
    let [(translated, executed), again] = [&first, &second]
        .map(|counts| (counts.programs[0].translated, counts.programs[0].blocks.len() as u32));
    assert!(translated > executed + executed / 4, "{translated} translated, {executed} executed");
    assert_eq!(again.1, executed);
    assert!(again.0 <= executed + executed / 100, "{again:?} after {translated} and {executed}");
}

#[test]
fn missing_programs_and_texts_have_exit_statuses() {
    let count = |word: &str| {
        let words = vec![word.into()];
        treering_translator::count(&treering_translator::Command { words, ..Default::default() })
    };
    assert_eq!(count("no-such-program-anywhere").unwrap_err().exit_status(), 127);
    assert_eq!(count("/etc/passwd").unwrap_err().exit_status(), 126);
}
