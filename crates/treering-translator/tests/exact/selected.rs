//! Parts of a run that are counted: exactly those, and nothing else.

use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use object::{Object as _, ObjectSymbol as _};
use treering_profile::BranchKind;
use treering_testing::programs::{LEAF_THREADS, LONG_RETURNS, SELECTED};
use treering_translator::{Command, Counts, Ended, Selection, count};

use crate::instructions::{executions, of_function};

/// Counts the program within functions, and between its marks if it is to be so.
fn counted(functions: &'static [&'static str], marks: bool, command: Command) -> Counts {
    counted_of(&SELECTED.build().unwrap(), functions, marks, command)
}

fn counted_of(program: &Path, functions: &'static [&'static str], marks: bool, command: Command) -> Counts {
    let own = program.to_owned();
    let offsets = move |path: &Path| {
        if path == own { functions.iter().map(|name| offset(path, name)).collect() } else { Vec::new() }
    };
    let selection = Some(Selection { functions: Some(Rc::new(offsets)), marks });
    let mut words = vec![program.into()];
    words.extend(command.words.clone());
    count(&Command { words, selection, fixed_addresses: true, silent: true, ..command }).unwrap()
}

/// Where a function begins in its file; that of programs that may lie anywhere is mapped as it is stated.
fn offset(path: &Path, name: &str) -> u64 {
    let bytes = std::fs::read(path).unwrap();
    let object = object::File::parse(&*bytes).unwrap();
    object.symbols().find(|symbol| symbol.name() == Ok(name)).unwrap().address()
}

fn calls_of_leaf(counts: &Counts) -> u64 {
    of_function(&executions(counts), &SELECTED.build().unwrap(), "leaf")[0]
}

#[test]
fn a_function_is_counted_however_it_is_reached() {
    let counts = counted(&["wanted"], false, Command::default());
    assert_eq!((counts.ended, &counts.not_counted), (Ended::Exited(0), &Vec::new()));
    assert_eq!(calls_of_leaf(&counts), 900);
    // All that it does is counted, so it agrees with a count of everything.
    let program = SELECTED.build().unwrap();
    let all = crate::instructions::counted(&program, &[]);
    let own = |counts| of_function(&executions(counts), &program, "wanted");
    assert_eq!(own(&counts), own(&all));
    let threads = counts.programs.iter().flat_map(|program| &program.threads);
    let idle = threads.filter(|thread| thread.executions.is_empty()).count();
    assert_eq!(idle, 1, "the thread that does not call it");
}

#[test]
fn marks_select_the_code_between_them() {
    let counts = counted(&[], true, Command::default());
    assert_eq!((calls_of_leaf(&counts), &counts.not_counted), (40, &Vec::new()));
    assert_eq!(calls_of_leaf(&counted(&["wanted"], true, Command::default())), 940);
}

/// Its returns look for their targets like indirect jumps, if nothing is selected.
#[test]
fn a_function_that_takes_its_arguments_off_the_stack_is_left() {
    let program = LONG_RETURNS.build().unwrap();
    let all = crate::instructions::check(&program, &[]);
    let counts = counted_of(&program, &["wanted"], false, Command::default());
    assert_eq!((counts.ended, &counts.not_counted), (Ended::Exited(0), &Vec::new()));
    let of = |counts: &Counts, name| of_function(&executions(counts), &program, name);
    assert!(of(&all, "leaf").iter().all(|&count| count == 2100), "{:?}", of(&all, "leaf"));
    assert!(of(&counts, "leaf").iter().all(|&count| count == 1100), "{:?}", of(&counts, "leaf"));
    assert_eq!(of(&counts, "wanted"), of(&all, "wanted"));
    let own: u64 = ["leaf", "wanted"].iter().flat_map(|name| of(&counts, name)).sum();
    assert_eq!(executions(&counts).values().sum::<u64>(), own, "and nothing outside of them");
}

#[test]
fn selected_functions_that_do_not_return_are_reported() {
    let counts = counted(&["jumps"], false, Command { words: vec!["jump".into()], ..Command::default() });
    assert_eq!(calls_of_leaf(&counts), 7, "up to the jump");
    assert!(counts.not_counted[0].detail.contains("longjmp"), "{:?}", counts.not_counted);
}

#[test]
fn children_are_left_out_and_reported() {
    let counts = counted(&["wanted"], false, Command { without_children: true, ..Command::default() });
    assert_eq!((counts.programs.len(), calls_of_leaf(&counts)), (1, 800));
    assert_eq!(counts.not_counted.len(), 1);
}

#[test]
fn counts_in_files_agree_with_the_result() {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("selected-{}", std::process::id()));
    let keep = Some(directory.clone());
    let mut counts = counted(&["wanted"], true, Command { keep, ..Command::default() });
    let salvaged = treering_translator::salvage(&directory).unwrap();
    let sum = |programs: &[treering_translator::ProgramCounts]| -> (u64, u64) {
        (programs.iter().map(|one| one.instructions()).sum(), programs.iter().map(|one| one.calls()).sum())
    };
    assert_eq!(sum(&salvaged.programs), sum(&counts.programs));
    counts.written();
}

/// Threads are stopped at unknown places, but each between two instructions: calls and executions agree, except for a
/// call that was just made.
#[test]
fn counting_stops_between_two_instructions() {
    let program = LEAF_THREADS.build().unwrap();
    for milliseconds in [30, 60, 120] {
        let words = vec![program.clone().into(), "4".into(), "3000000".into()];
        let stop_after = Some(Duration::from_millis(milliseconds));
        let command =
            Command { words, fixed_addresses: true, silent: true, stop_after, ..Command::default() };
        let counts = count(&command).unwrap();
        assert_eq!(counts.ended, Ended::Exited(0), "it goes on");
        let all = executions(&counts);
        let Some(leaf) = all.keys().copied().find(|&at| is_leaf(&program, at)) else { continue };
        let branches = counts.programs[0].threads.iter().flat_map(|thread| &thread.branches);
        let calls = branches.filter(|one| one.kind == BranchKind::Call && one.target == Some(leaf));
        let (calls, executed) = (calls.map(|one| one.count).sum::<u64>(), all[&leaf]);
        assert!(executed <= calls && calls <= executed + 4, "{calls} calls, {executed} executed");
        // It may also be stopped behind the last call; but what is missing is said.
        assert!(calls == 12_000_000 || !counts.not_counted.is_empty(), "{calls} calls");
    }
}

fn is_leaf(program: &Path, address: u64) -> bool {
    const BASE: u64 = 0x5555_5555_4000;
    address == BASE + offset(program, "leaf")
}
