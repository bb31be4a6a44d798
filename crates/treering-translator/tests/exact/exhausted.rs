//! Programs that need more than there is room for.

use treering_profile::UncountedReason;
use treering_testing::programs::CONTROL_FLOW;
use treering_translator::{Command, CountError, Ended, Exhausted, ProgramCounts, count};

use crate::instructions::{counted, executions};

/// Real programs have room for eight million blocks; here for so few that not even the loader gets to its end.
#[test]
fn programs_without_counters_are_ended_and_counted_until_then() {
    let program = CONTROL_FLOW.build().unwrap();
    let all = executions(&counted(&program, &[]));
    let command = Command {
        words: vec![program.into()],
        environment: vec![("GLIBC_TUNABLES".into(), "glibc.pthread.rseq=0".into())],
        fixed_addresses: true,
        silent: true,
        most_counters: Some(600),
        ..Command::default()
    };
    let counts = count(&command).unwrap();
    assert_eq!(counts.ended, Ended::Killed(9));
    let blocks: usize = counts.programs.iter().map(|program| program.blocks.len()).sum();
    assert!((100..=600).contains(&blocks), "{blocks} blocks");
    assert!(counts.programs.iter().map(ProgramCounts::instructions).sum::<u64>() > 1000);
    for (address, count) in executions(&counts) {
        assert!(all.get(&address).is_some_and(|&whole| count <= whole), "{address:#x}: {count}");
    }
    let reasons: Vec<_> = counts.not_counted.iter().map(|note| note.reason).collect();
    assert_eq!(reasons, [UncountedReason::CutShort], "{:?}", counts.not_counted);
    assert!(counts.not_counted[0].detail.contains("more blocks of code than there are counters"));
    let Some(error @ CountError::GivenUp(..)) = counts.given_up else { panic!("{:?}", counts.given_up) };
    assert_eq!(error.exhausted(), Some(Exhausted::Counters));
}
