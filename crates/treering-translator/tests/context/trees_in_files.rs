//! Trees that are kept in files while a program is counted agree with the counts.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use treering_testing::programs::{
    CHILDREN, CONTROL_FLOW, COROUTINES, LEAF_THREADS, NESTED, OBJECTS, SIGNAL_STORM, SIGNALS,
};
use treering_translator::{Command, Counts, Ended, ProgramCounts, Salvaged, ThreadCounts, count, salvage};

use crate::tree::{Names, tree};

/// A path for a directory that is not there.
fn unused(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("trees-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    path
}

fn counted_and_kept(program: &Path, arguments: &[&str]) -> (Counts, Salvaged) {
    let directory = unused(&format!("{}{}", program.file_name().unwrap().display(), arguments.concat()));
    let words = std::iter::once(program.into()).chain(arguments.iter().map(OsString::from)).collect();
    let keep = Some(directory.clone());
    let command =
        Command { words, keep, tree: true, fixed_addresses: true, silent: true, ..Command::default() };
    let mut counts = count(&command).unwrap();
    let left: Vec<_> = std::fs::read_dir(&directory).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().contains("contexts")), "{left:?}");
    let salvaged = salvage(&directory).unwrap();
    counts.written();
    assert!(!directory.exists(), "nothing is left");
    (counts, salvaged)
}

/// Every thread's tree as text, in an order of its own. Files do not state in which region a function was entered.
fn trees(programs: &[ProgramCounts]) -> Vec<String> {
    let threads = programs.iter().flat_map(|program| &program.threads);
    let text = |thread: &ThreadCounts| {
        let mut tree = tree(thread).clone();
        tree.nodes.iter_mut().for_each(|node| node.region = None);
        format!("{} {tree:x?}", thread.tid)
    };
    let mut trees: Vec<_> = threads.map(text).collect();
    trees.sort_unstable();
    trees
}

fn check(program: &Path, arguments: &[&str]) -> Counts {
    let (counts, salvaged) = counted_and_kept(program, arguments);
    assert_eq!(salvaged.not_counted, counts.not_counted, "{}", program.display());
    let (kept, told) = (trees(&salvaged.programs), trees(&counts.programs));
    assert!(kept == told, "{}: {} and {} trees", program.display(), kept.len(), told.len());
    for program in &salvaged.programs {
        let trees: u64 = program.threads.iter().map(|thread| tree(thread).instructions()).sum();
        assert_eq!(trees, program.instructions(), "{}", program.path.display());
    }
    counts
}

#[test]
fn of_programs_of_one_thread() {
    check(&CONTROL_FLOW.build().unwrap(), &[]);
    check(&OBJECTS.build().unwrap(), &[]);
    check(&COROUTINES.build().unwrap(), &["10"]);
}

#[test]
fn of_signals_and_faults() {
    check(&SIGNALS.build().unwrap(), &["20"]);
    check(&SIGNAL_STORM.build().unwrap(), &["1"]);
}

#[test]
fn of_threads_and_children() {
    assert_eq!(check(&LEAF_THREADS.build().unwrap(), &["40", "1000"]).programs[0].threads.len(), 41);
    assert!(check(&CHILDREN.build().unwrap(), &[]).programs.len() > 2);
}

#[test]
fn of_calls_that_nest_deeper_than_there_is_room_for_at_first() {
    let program = NESTED.build().unwrap();
    let names = Names::of(&program);
    for depth in [32_000, 33_000, 200_000_u64] {
        let counts = check(&program, &[&depth.to_string(), "1"]);
        assert_eq!(names.calls(&counts.programs[0])["down"], depth, "frames of a main thread");
        let counts = check(&program, &[&depth.to_string(), "1", "blocked"]);
        assert_eq!(counts.ended, Ended::Exited(0), "its mask and its handler are as they were");
        let counts = check(&program, &[&depth.to_string(), "1", "thread"]);
        assert_eq!(names.calls(&counts.programs[0])["down"], 3 * depth, "frames that are used again");
        let counts = check(&program, &[&depth.to_string(), "1", "fork"]);
        let calls: u64 = counts.programs.iter().map(|program| names.calls(program)["down"]).sum();
        assert_eq!(calls, depth, "a child goes on at the depth of its parent");
    }
}
