//! The cost of functions by block of their code, where executions of blocks were counted.
//!
//! A function whose loops grow in several forms is fitted badly as a whole, and its blocks are fitted well one by one.

use std::collections::{BTreeMap, BTreeSet};

use treering_profile::Profile;

/// The address of a piece of code: that of its first instruction.
type Address = u64;

/// A block in one profile: the lengths of its instructions, and how often it was executed.
struct Block {
    lengths: Vec<u8>,
    executions: u64,
}

/// By function, the cost in instructions of each piece of its code, by size. Blocks that are divided in one profile are
/// divided in all.
///
/// `function_of` has the function of each entry of each profile's function table.
pub(super) fn pieces(
    profiles: &[&Profile],
    function_of: &[Vec<Option<usize>>],
) -> BTreeMap<usize, BTreeMap<Address, Vec<u64>>> {
    let blocks: Vec<BTreeMap<(usize, Address), Block>> = profiles
        .iter()
        .zip(function_of)
        .map(|(profile, function_of)| executed(profile, function_of))
        .collect();
    let starts: BTreeSet<(usize, Address)> =
        blocks.iter().flat_map(|blocks| blocks.keys().copied()).collect();
    let mut pieces: BTreeMap<usize, BTreeMap<Address, Vec<u64>>> = BTreeMap::new();
    for (at, blocks) in blocks.iter().enumerate() {
        for (&(function, start), block) in blocks {
            let of_function = pieces.entry(function).or_default();
            let (mut piece, mut address) = (start, start);
            for &length in &block.lengths {
                if starts.contains(&(function, address)) {
                    piece = address;
                }
                let costs = of_function.entry(piece).or_insert_with(|| vec![0; profiles.len()]);
                costs[at] = costs[at].saturating_add(block.executions);
                address += u64::from(length);
            }
        }
    }
    pieces
}

/// The blocks that a profile's threads executed, all threads together.
fn executed(profile: &Profile, function_of: &[Option<usize>]) -> BTreeMap<(usize, Address), Block> {
    let mut executions = vec![0_u64; profile.code.blocks.len()];
    for (row, threads) in profile.code.executions.distinct() {
        let sum = &mut executions[row.block.index()];
        *sum = sum.saturating_add(row.executions.saturating_mul(threads));
    }
    let mut found: BTreeMap<(usize, Address), Block> = BTreeMap::new();
    for (block, executions) in
        profile.code.blocks.iter().zip(executions).filter(|(_, executions)| *executions > 0)
    {
        let Some(function) = block.function.and_then(|function| function_of[function.index()]) else {
            continue;
        };
        let known = found
            .entry((function, block.start.address.0))
            .or_insert_with(|| Block { lengths: block.lengths.to_vec(), executions: 0 });
        known.executions = known.executions.saturating_add(executions);
    }
    found
}
