//! Counts of code: merging keeps the count and the line of every instruction, and each is in one
//! block; threads can be left out with their counts.

use std::collections::BTreeMap;

use proptest::prelude::*;
use treering_profile::{
    BasicBlock, BlockExecutions, BlockId, BranchCount, BranchKind, CodeAddress, CodeSpace, Line, LineId,
    Metric, Module, ModuleKind, OfThread, Profile, RecursionRule, StatedAddress, ThreadId, ThreadRows, Unit,
    merge,
};

/// The lengths of the instructions of the program that all profiles are of, from address 0x100.
const LENGTHS: [u8; 12] = [1, 3, 5, 2, 2, 7, 4, 1, 6, 2, 3, 15];

/// The blocks of a profile: how many instructions each skips and takes, and how often it ran.
type Blocks = Vec<(usize, usize, u64)>;

fn blocks() -> impl Strategy<Value = Blocks> {
    prop::collection::vec((0..3_usize, 1..5_usize, 1..100_u64), 1..6)
}

/// A profile of those blocks of the program, whose every instruction has a line of its own but the
/// third.
fn profile(blocks: &Blocks, thread: &str) -> Profile {
    let mut profile = Profile::new(RecursionRule::Full);
    profile.add_metric(Metric::exact("instructions", Unit::Count));
    let thread = profile.add_single_thread(thread);
    let path = profile.strings.intern("/bin/program");
    let module = profile.modules.intern(Module { path, build_id: [1].into(), kind: ModuleKind::Elf });
    let space = profile.code.spaces.intern(CodeSpace { module: Some(module), generation: 0 });
    let mut next = 0;
    for &(skipped, taken, executions) in blocks {
        let first = (next + skipped).min(LENGTHS.len());
        next = (first + taken).min(LENGTHS.len());
        if first == next {
            continue;
        }
        let block = BlockId::from_usize(profile.code.blocks.len());
        let at = |instruction: usize| {
            let before: u64 = LENGTHS[..instruction].iter().map(|&length| u64::from(length)).sum();
            CodeAddress { space, address: StatedAddress(0x100 + before) }
        };
        let lengths = LENGTHS[first..next].into();
        profile.code.blocks.push(BasicBlock { start: at(first), lengths, function: None });
        profile.code.executions.push(BlockExecutions { thread, block, executions });
        let branch = BranchCount {
            thread,
            kind: BranchKind::Jump,
            site: Some(at(next - 1)),
            target: Some(at(0)),
            count: executions,
        };
        profile.code.branches.push(branch);
    }
    let file = profile.strings.intern("program.c");
    let places: Vec<_> = profile.code.blocks.iter().flat_map(BasicBlock::places).map(|(at, _)| at).collect();
    let lines: Vec<_> = places.into_iter().map(|at| (at, line_of(&mut profile, file, at))).collect();
    profile.code.set_lines(lines);
    profile
}

fn line_of(profile: &mut Profile, file: treering_profile::StringId, at: CodeAddress) -> Option<LineId> {
    let line = at.address.0 as u32;
    (line != 0x104).then(|| profile.lines.intern(Line { file, line }))
}

/// Of every instruction, how often the threads accepted executed it, and its line number.
fn counts(profile: &Profile, accept: impl Fn(&str) -> bool) -> BTreeMap<u64, (u64, Option<u32>)> {
    let code = &profile.code;
    let mut counts = BTreeMap::new();
    for row in &code.executions {
        if !accept(&profile.threads[row.thread.index()].name) {
            continue;
        }
        for (at, _) in code.blocks[row.block.index()].places() {
            let line = code.line(at).map(|line| profile.lines[line].line);
            let known = counts.entry(at.address.0).or_insert((0, line));
            known.0 += row.executions;
        }
    }
    counts
}

/// How often each branch was taken, by site.
fn branches(profile: &Profile) -> BTreeMap<u64, u64> {
    let mut taken = BTreeMap::new();
    for branch in &profile.code.branches {
        *taken.entry(branch.site.map_or(0, |site| site.address.0)).or_default() += branch.count;
    }
    taken
}

fn sum(one: &Profile, other: &Profile) -> BTreeMap<u64, (u64, Option<u32>)> {
    let mut sum = counts(one, |_| true);
    for (at, (count, line)) in counts(other, |_| true) {
        sum.entry(at).or_insert((0, line)).0 += count;
    }
    sum
}

proptest! {
    #[test]
    fn merging_keeps_counts_and_lines_of_instructions(one in blocks(), other in blocks()) {
        let (one, other) = (profile(&one, "one"), profile(&other, "other"));
        let merged = merge(&[&one, &other]);
        prop_assert_eq!(merged.validate(), Ok(()));
        prop_assert_eq!(counts(&merged, |_| true), sum(&one, &other));
        prop_assert_eq!(counts(&merged, |name| name == "one"), counts(&one, |_| true));
        let places: Vec<_> = merged.code.blocks.iter().flat_map(BasicBlock::places).collect();
        prop_assert!(places.is_sorted_by(|a, b| a.0 < b.0), "an instruction is in two blocks");
        let back = merge(&[&other, &one]);
        prop_assert_eq!(counts(&merged, |_| true), counts(&back, |_| true));
        prop_assert_eq!(branches(&merged), branches(&back));
    }

    #[test]
    fn threads_added_up_or_left_out_take_their_counts_along(one in blocks(), other in blocks()) {
        let merged = merge(&[&profile(&one, "one"), &profile(&other, "other")]);
        let both = merged.collapse_threads(|_| Some(0));
        prop_assert_eq!(both.validate(), Ok(()));
        prop_assert_eq!(both.code.executions.iter().all(|row| row.thread == ThreadId::new(0)), true);
        prop_assert_eq!(counts(&both, |_| true), counts(&merged, |_| true));
        let first = merged.collapse_threads(|thread| (thread.name == "one").then_some(1));
        prop_assert_eq!(counts(&first, |_| true), counts(&merged, |name| name == "one"));
    }
}

/// Changes one of some rows.
fn change<T: OfThread>(rows: &mut ThreadRows<T>, at: usize, change: impl FnOnce(&mut T)) {
    let mut all: Vec<T> = rows.iter().collect();
    change(&mut all[at]);
    *rows = all.into();
}

#[test]
fn a_branch_that_one_of_two_profiles_did_not_count_is_left_out() {
    let conditional = |profile: &mut Profile| {
        change(&mut profile.code.branches, 0, |row| row.kind = BranchKind::Conditional);
    };
    let (mut one, mut other) = (profile(&vec![(0, 3, 5)], "one"), profile(&vec![(0, 3, 7)], "other"));
    conditional(&mut one);
    conditional(&mut other);
    assert_eq!(branches(&merge(&[&one, &other])).into_values().collect::<Vec<_>>(), [12]);
    other.code.branches.clear();
    assert!(branches(&merge(&[&one, &other])).is_empty());
}

#[test]
fn references_to_missing_entries_are_found() {
    let sound = profile(&vec![(0, 3, 5), (1, 2, 7)], "one");
    assert_eq!(sound.validate(), Ok(()));
    let check = |break_it: fn(&mut Profile), expected: &str| {
        let mut broken = sound.clone();
        break_it(&mut broken);
        assert_eq!(broken.validate().map_err(|invalid| invalid.0), Err(expected));
    };
    check(
        |profile| change(&mut profile.code.executions, 0, |row| row.block = BlockId::new(9)),
        "executions belong to a block that is missing",
    );
    check(
        |profile| change(&mut profile.code.branches, 0, |row| row.thread = ThreadId::new(9)),
        "the thread of a code count is missing",
    );
    check(|profile| profile.code.blocks.reverse(), "the blocks are not sorted");
    check(
        |profile| profile.code.blocks[0].lengths = [3, 0][..].into(),
        "an instruction is longer than 15 bytes or empty",
    );
    check(|profile| profile.code.lines[0].line = Some(LineId::new(99)), "the line of an address is missing");
}
