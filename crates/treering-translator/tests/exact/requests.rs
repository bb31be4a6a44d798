//! How often translated code asks the tracer does not depend on how often a program does what it did before.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use treering_testing::programs::{MANY_TARGETS, OTHER_TARGETS, SWAPPED_HOST, SWAPPED_PLUGIN};
use treering_translator::{Command, Counts, Ended, count};

/// The most requests by which two runs differ that differ in rounds only.
const FEW: u64 = 100;

fn counted(program: &Path, arguments: &[&str], others: Command) -> Counts {
    let words = std::iter::once(program.into()).chain(arguments.iter().map(OsString::from)).collect();
    let counts = count(&Command { words, silent: true, ..others }).unwrap();
    assert_eq!(counts.ended, Ended::Exited(0), "{arguments:?}: {:?}", counts.given_up);
    counts
}

/// The requests of a run with arguments, after one with other arguments.
fn requests_after(program: &Path, before: &[&str], arguments: &[&str], tree: bool) -> u64 {
    let name =
        format!("hints-requests-{}-{}-{tree}", std::process::id(), arguments.join("-").replace('/', ""));
    let hints: PathBuf = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let command = Command { hints: Some(hints.clone()), tree, ..Command::default() };
    counted(program, before, command.clone());
    let requests = counted(program, arguments, command).requests;
    std::fs::remove_dir_all(hints).unwrap();
    requests
}

/// A place that had few targets in the last run has an inline check. Its table was indexed by what that check had
/// left in rcx, so that each transfer asked, and got another check.
#[test]
fn places_with_more_targets_than_in_the_last_run() {
    let program = OTHER_TARGETS.build().unwrap();
    for (tree, usual) in
        [false, true].into_iter().zip([["300", "2", "0"], ["300", "0", "4"]].into_iter().cycle())
    {
        let often = ["300000", "0", "3"];
        let [few, many] =
            [["300", "0", "3"], often].map(|other| requests_after(&program, &usual, &other, tree));
        let own = requests_after(&program, &often, &often, tree);
        assert!(few.abs_diff(many) < FEW, "{usual:?}: {few} requests in 300 rounds, {many} in 300,000");
        assert!(many < own + FEW, "{usual:?}: {many} requests after a smaller run, {own} after the same");
    }
}

/// A library that comes to where the target of an inline check was made each call of it ask.
#[test]
fn libraries_that_follow_each_other_at_an_address() {
    let libraries =
        [SWAPPED_PLUGIN.build().unwrap(), SWAPPED_PLUGIN.variant("longer", &["-DLONGER"]).build().unwrap()];
    let libraries = libraries.each_ref().map(|library| library.to_str().unwrap());
    let [few, many] = ["-DCALLS=10", "-DCALLS=1000"].map(|calls| {
        let host = SWAPPED_HOST.variant(&format!("calls{calls}"), &[calls]).build().unwrap();
        requests_after(&host, &libraries, &libraries, false)
    });
    assert!(few.abs_diff(many) < FEW, "{few} requests at 10 calls of each, {many} at 1000");
}

/// When a unit of translated code was full, each transfer that needed a check in it asked the tracer for ever.
#[test]
fn a_unit_that_is_full() {
    let program = MANY_TARGETS.build().unwrap();
    let requests = |rounds, unit_size| {
        let arguments = ["24000", rounds];
        let counts = counted(&program, &arguments, Command { unit_size, ..Command::default() });
        let calls = counts.programs[0].threads[0].branches.iter();
        let calls = calls.filter(|branch| branch.kind == treering_profile::BranchKind::IndirectCall);
        let rounds: u64 = rounds.parse().unwrap();
        let of_all = calls.filter(|branch| branch.count == rounds).count();
        assert!((24000..24100).contains(&of_all), "{of_all} targets were called as often");
        counts.requests
    };
    let roomy = requests("3", None);
    let [few, many] = ["3", "30"].map(|rounds| requests(rounds, Some(1 << 20)));
    assert!(few < roomy + FEW, "{few} requests with small units, {roomy} with one");
    assert!(few.abs_diff(many) < FEW, "{few} requests in 3 rounds, {many} in 30");
}
