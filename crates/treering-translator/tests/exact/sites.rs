//! Every transfer from a site to a function is counted, whichever site had reached the function before.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use treering_profile::BranchKind;
use treering_testing::programs::SITES;
use treering_translator::{Command, Ended, ThreadCounts, count};

/// How often each place called each function, where places call the same three.
fn calls_of_places(thread: &ThreadCounts) -> Vec<[u64; 3]> {
    let mut sites: BTreeMap<u64, BTreeMap<u64, u64>> = BTreeMap::new();
    let branches = thread.branches.iter().filter(|branch| branch.kind == BranchKind::IndirectCall);
    for branch in branches {
        let targets = sites.entry(branch.site.unwrap()).or_default();
        *targets.entry(branch.target.unwrap()).or_default() += branch.count;
    }
    let mut users: BTreeMap<BTreeSet<u64>, Vec<[u64; 3]>> = BTreeMap::new();
    for targets in sites.values() {
        let counts: Vec<u64> = targets.values().copied().collect();
        if let Ok(counts) = <[u64; 3]>::try_from(counts) {
            users.entry(targets.keys().copied().collect()).or_default().push(counts);
        }
    }
    users.into_values().max_by_key(Vec::len).unwrap_or_default()
}

fn check(rounds: u64, threads: u64, tree: bool) {
    let path = SITES.build().unwrap();
    let numbers = [rounds, threads].map(|number| number.to_string().into());
    let words = std::iter::once(path.into()).chain(numbers).collect();
    let name = format!("hints-sites-{rounds}-{tree}-{}", std::process::id());
    let hints = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let command = Command { words, tree, silent: true, hints: Some(hints.clone()), ..Command::default() };
    // For the first time, and when it is known.
    (0..2).for_each(|_| check_run(&command, rounds, threads));
    assert!(hints.is_dir(), "it is known");
    let _ = std::fs::remove_dir_all(hints);
}

fn check_run(command: &Command, rounds: u64, threads: u64) {
    let counts = count(command).unwrap();
    assert_eq!(counts.ended, Ended::Exited(0));
    let [program] = &counts.programs[..] else { panic!("it is one program") };
    assert_eq!(program.threads.len() as u64, threads + 1);
    for thread in &program.threads {
        // A number of rounds that three divides.
        assert_eq!(calls_of_places(thread), [[rounds / 3; 3]; 40], "thread {}", thread.tid);
    }
}

#[test]
fn in_few_rounds_with_hardly_any_request() {
    check(3, 0, false);
    check(3, 0, true);
}

#[test]
fn in_many_rounds_and_threads() {
    check(300, 8, false);
    check(300, 8, true);
}
