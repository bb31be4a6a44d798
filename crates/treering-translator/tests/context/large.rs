//! Trees that grow larger than they may: nothing that was counted is lost.

use std::collections::BTreeMap;

use treering_testing::programs::{DEEP_CALLS, MANY_CHAINS};
use treering_translator::{ContextNode, Counts, Ended, FOLDED, TreeLimits};

use crate::tree::{counted_within, tree};

/// Calls and instructions by where functions are entered, in all contexts.
fn by_function(counts: &Counts) -> BTreeMap<u64, (u64, u64)> {
    let mut functions = BTreeMap::new();
    for node in nodes(counts).into_iter().filter(|node| node.address != FOLDED) {
        let (calls, instructions) = functions.entry(node.address).or_insert((0, 0));
        *calls += node.calls;
        *instructions += node.instructions;
    }
    functions
}

fn nodes(counts: &Counts) -> Vec<ContextNode> {
    let threads = counts.programs.iter().flat_map(|program| &program.threads);
    threads.flat_map(|thread| tree(thread).nodes.clone()).collect()
}

fn folded(counts: &Counts) -> u64 {
    let threads = counts.programs.iter().flat_map(|program| &program.threads);
    threads.filter_map(|thread| tree(thread).folded()).sum()
}

#[test]
fn contexts_that_there_is_no_room_for_are_folded_and_functions_stay_exact() {
    let program = MANY_CHAINS.build().unwrap();
    let whole = counted_within(TreeLimits::default(), &program, &["3"]);
    assert_eq!((folded(&whole), whole.ended), (0, Ended::Exited(0)));
    // 1 + 16 + 256 + 4096 chains of f0 to f15, and those before and behind main.
    assert!(nodes(&whole).len() > 4_369);
    for limit in [1, 40, 300, 3_000] {
        let limits = TreeLimits { nodes: Some(limit), frames: None };
        let part = counted_within(limits, &program, &["3"]);
        assert_eq!(part.ended, Ended::Exited(0));
        assert_eq!(by_function(&part), by_function(&whole), "{limit} nodes");
        assert!(folded(&part) > 0, "{limit} nodes");
        // Each function may have one more.
        assert!(nodes(&part).len() <= limit as usize + by_function(&whole).len() + 2, "{limit} nodes");
    }
}

#[test]
fn outer_calls_come_back_from_where_they_were_kept() {
    let program = DEEP_CALLS.build().unwrap();
    for end in ["", "jump", "signal", "fork"] {
        let arguments = ["3000", end];
        let arguments = &arguments[..if end.is_empty() { 1 } else { 2 }];
        let whole = counted_within(TreeLimits::default(), &program, arguments);
        assert_eq!(whole.ended, Ended::Exited(0), "{end}");
        for frames in [1, 700] {
            let part = counted_within(TreeLimits { nodes: None, frames: Some(frames) }, &program, arguments);
            assert_eq!(part.ended, Ended::Exited(0), "{end} {frames}");
            assert_eq!(by_function(&part), by_function(&whole), "{end} {frames}");
            assert_eq!(nodes(&part), nodes(&whole), "{end} {frames}");
        }
        let both = counted_within(TreeLimits { nodes: Some(100), frames: Some(300) }, &program, arguments);
        assert_eq!(by_function(&both), by_function(&whole), "{end}");
        assert!(folded(&both) > 0, "{end}");
    }
}
