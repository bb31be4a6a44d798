//! Costs of a function by address, as profil() gave them.

use std::collections::BTreeMap;

use treering_profile::{FunctionId, LineId, Profile};

use crate::block_table::executions;
use crate::identity::Identity;

/// What a function cost by address, in bins of equal size.
#[derive(Clone, Debug, PartialEq)]
pub struct AddressHistogram {
    /// The function.
    pub function: FunctionId,
    /// How many bytes a bin has.
    pub granularity: u64,
    /// What all bins add up to.
    pub total: f64,
    /// What the whole run adds up to.
    pub run: f64,
    /// The bins with a cost, by address.
    pub bins: Vec<AddressBin>,
}

/// Addresses, and what was counted at them.
#[derive(Clone, Debug, PartialEq)]
pub struct AddressBin {
    /// The first address.
    pub start: u64,
    /// The address behind the last one.
    pub end: u64,
    /// The cost at these addresses: instructions, or samples.
    pub cost: f64,
    /// Whether part of what was counted may belong to another function or to the next bin: a gmon.out has bins of its own.
    pub is_shared: bool,
    /// The source line of the first address that was counted, where known.
    pub line: Option<LineId>,
}

impl AddressHistogram {
    /// The executed instructions of a function by their addresses, all threads added up: exact. Bins begin at multiples of
    /// `granularity`, which is at least 1. Nothing where the profile has no basic blocks.
    pub fn of_counts(profile: &Profile, function: FunctionId, granularity: u64) -> Option<Self> {
        let (code, granularity) = (&profile.code, granularity.max(1));
        if code.blocks.is_empty() {
            return None;
        }
        let identity = Identity::of(profile);
        let function = identity.representative(function);
        let mut bins: BTreeMap<(u32, u64), (u64, Option<LineId>)> = BTreeMap::new();
        let bin = |address: u64| address - address % granularity;
        for (block, executions) in code.blocks.iter().zip(executions(code)).filter(|(_, all)| *all > 0) {
            let is_its = block.function.is_some_and(|f| identity.representative(f) == function);
            for (at, _) in block.places() {
                let key = (at.space.raw(), bin(at.address.0));
                if is_its {
                    let known = bins.entry(key).or_insert_with(|| (0, code.line(at)));
                    known.0 = known.0.saturating_add(executions);
                }
            }
        }
        let costs = bins.iter().map(|((_, start), (cost, line))| AddressBin {
            start: *start,
            end: start.saturating_add(granularity),
            cost: *cost as f64,
            is_shared: false,
            line: *line,
        });
        let bins: Vec<AddressBin> = costs.collect();
        let total = bins.iter().map(|bin| bin.cost).sum();
        Some(Self { function, granularity, total, run: code.block_instructions() as f64, bins })
    }

    /// The part of the run, 0..=1.
    pub fn share(&self, cost: f64) -> f64 {
        if self.run == 0.0 { 0.0 } else { cost / self.run }
    }
}

#[cfg(test)]
mod tests {
    use treering_profile::{
        BasicBlock, BlockExecutions, BlockId, CodeAddress, CodeSpace, Function, RecursionRule, StatedAddress,
    };

    use super::*;

    #[test]
    fn instructions_are_counted_in_the_bin_of_their_first_byte() {
        let mut profile = Profile::new(RecursionRule::Full);
        let thread = profile.add_single_thread("a");
        let names = ["f", "g"].map(|name| profile.strings.intern(name));
        let [f, g] = names.map(|name| profile.functions.intern(Function::named(name)));
        let space = profile.code.spaces.intern(CodeSpace { module: None, generation: 0 });
        let block = |start, lengths: &[u8], function| BasicBlock {
            start: CodeAddress { space, address: StatedAddress(start) },
            lengths: lengths.into(),
            function: Some(function),
        };
        profile.code.blocks = vec![block(0x12, &[3, 2, 1], f), block(0x18, &[5], f), block(0x1d, &[1], g)];
        for (block, executions) in [10, 3, 7].into_iter().enumerate() {
            let block = BlockId::from_usize(block);
            profile.code.executions.push(BlockExecutions { thread, block, executions });
        }
        let histogram = AddressHistogram::of_counts(&profile, f, 4).expect("there are blocks");
        let told: Vec<_> = histogram.bins.iter().map(|bin| (bin.start, bin.end, bin.cost)).collect();
        // 0x12 in the first; 0x15 and 0x17 in the second.
        assert_eq!(told, [(0x10, 0x14, 10.0), (0x14, 0x18, 20.0), (0x18, 0x1c, 3.0)]);
        assert_eq!((histogram.total, histogram.run), (33.0, 40.0));
        let fine = AddressHistogram::of_counts(&profile, f, 1).expect("there are blocks");
        assert_eq!((fine.bins.len(), fine.total), (4, 33.0));
    }
}
