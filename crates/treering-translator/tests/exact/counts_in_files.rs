//! Counts that are kept in files while a program is counted agree with the result.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use treering_testing::programs::{CHILDREN, LEAF_THREADS, OBJECTS, OTHER_COURSES, REWRITTEN, SIGNALS};
use treering_translator::{Command, CountedBlock, Counts, ProgramCounts, Salvaged, count, is_kept, salvage};

/// A path for a directory that is not there.
fn unused(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("kept-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    path
}

fn counted_and_kept(program: &Path, arguments: &[&str], hints: &Path) -> (Counts, Salvaged) {
    let directory = unused(&program.file_name().unwrap().to_string_lossy());
    let words = std::iter::once(program.into()).chain(arguments.iter().map(OsString::from)).collect();
    let hints = Some(hints.to_owned());
    let command = Command { words, keep: Some(directory.clone()), silent: true, hints, ..Command::default() };
    let mut counts = count(&command).unwrap();
    let salvaged = salvage(&directory).unwrap();
    counts.written();
    assert!(!is_kept(&directory) && !directory.exists(), "it is removed when it is of no use any more");
    (counts, salvaged)
}

/// Everything that the counts of a program say, in an order of its own.
fn facts(program: &ProgramCounts) -> Vec<String> {
    let mut facts = vec![format!("{} {:?}", program.pid, program.path)];
    // Biases are not computed for kept counts.
    let known = |number: u32| CountedBlock { bias: None, ..program.blocks[number as usize].clone() };
    let block = |number: u32| format!("{:?}", known(number));
    for thread in &program.threads {
        let who = format!("{} {}", thread.pid, thread.tid);
        facts.push(format!("{who} {}", thread.name));
        facts.extend(thread.executions.iter().map(|&(at, count)| format!("{who} {count} {}", block(at))));
        for partial in &thread.partials {
            let (at, length, count) = (partial.address, partial.length, partial.executions);
            facts.push(format!("{who} {count} {at:x} {length} {}", block(partial.block)));
        }
        for branch in &thread.branches {
            let place = branch.block.map(block);
            let ends = (branch.kind, branch.site, branch.target, branch.count);
            facts.push(format!("{who} {ends:x?} {place:?}"));
        }
    }
    facts.extend(program.regions.iter().map(|region| format!("{region:x?}")));
    facts.sort_unstable();
    facts
}

/// In the first run, and when the program is known.
fn check(program: &Path, arguments: &[&str]) -> Counts {
    let hints = unused(&format!("hints-{}", program.file_name().unwrap().to_string_lossy()));
    let [_, counts] = [0, 1].map(|_| check_run(program, arguments, &hints));
    std::fs::remove_dir_all(hints).unwrap();
    counts
}

fn check_run(program: &Path, arguments: &[&str], hints: &Path) -> Counts {
    let (counts, salvaged) = counted_and_kept(program, arguments, hints);
    assert_eq!(salvaged.not_counted, counts.not_counted);
    let all = |programs: &[ProgramCounts]| {
        let mut all: Vec<_> = programs.iter().map(facts).collect();
        all.sort_unstable();
        all
    };
    let (kept, told) = (all(&salvaged.programs), all(&counts.programs));
    assert_eq!(kept.len(), told.len());
    for (kept, told) in kept.iter().zip(&told) {
        assert!(kept.len() > 100);
        let differing: Vec<_> = kept.iter().zip(told).filter(|(kept, told)| kept != told).take(5).collect();
        assert!(kept == told, "{}: {differing:#?}", program.display());
    }
    counts
}

#[test]
fn of_programs_of_one_thread() {
    check(&OBJECTS.build().unwrap(), &[]);
    check(&OTHER_COURSES.build().unwrap(), &["2000", "31", "0"]);
    check(&REWRITTEN.build().unwrap(), &["both"]);
}

#[test]
fn of_signals_and_faults() {
    let counts = check(&SIGNALS.build().unwrap(), &["20"]);
    let partials = counts.programs.iter().flat_map(|program| &program.threads).map(|one| one.partials.len());
    assert!(partials.sum::<usize>() > 0, "blocks were left halfway");
}

#[test]
fn of_threads_and_children() {
    assert_eq!(check(&LEAF_THREADS.build().unwrap(), &["40", "1000"]).programs[0].threads.len(), 41);
    assert!(check(&CHILDREN.build().unwrap(), &[]).programs.len() > 2);
}

#[test]
fn files_of_a_killed_count_are_moved_away_and_those_of_a_running_one_stay() {
    let directory = unused("twice");
    let run = || {
        let words = vec!["true".into()];
        count(&Command { words, keep: Some(directory.clone()), silent: true, ..Command::default() }).unwrap()
    };
    let old = PathBuf::from(format!("{}.old", directory.display()));
    let first = run();
    // The first one still has it.
    run().written();
    assert!(is_kept(&directory) && !old.exists());
    assert_eq!(salvage(&directory).unwrap().programs.len(), 1);
    drop(first);
    // A child that another test has just made has the lock too until it executes its program.
    while salvage(&directory).unwrap().running {
        std::thread::sleep(Duration::from_millis(1));
    }
    let mut third = run();
    assert!(is_kept(&old) && salvage(&directory).unwrap().running);
    third.written();
    assert!(!directory.exists());
    std::fs::remove_dir_all(old).unwrap();
}
