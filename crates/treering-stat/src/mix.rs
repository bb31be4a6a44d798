//! The mix of the instructions that a program executed, from exact counts of its basic blocks.

use std::collections::BTreeMap;

use treering_analysis::BlockList;
use treering_profile::{CodeAddress, FunctionId, Profile};
use treering_x86::kind::{Kind, Nature, Natures};

/// Executed instructions by kind, the memory that they moved, and the sizes of blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mix {
    /// How many instructions were executed.
    pub instructions: u64,
    /// How many of each kind.
    pub kinds: BTreeMap<Kind, u64>,
    /// How many of code that could not be read again: their kind is not known.
    pub unread: u64,
    /// How often basic blocks were executed.
    pub blocks: u64,
    /// How often basic blocks of a size were executed, by the sizes of [`SIZES`].
    pub sizes: [u64; SIZES.len()],
    /// How often memory was read.
    pub loads: u64,
    /// How many bytes these are.
    pub loaded_bytes: u64,
    /// How often memory was written.
    pub stores: u64,
    /// How many bytes these are.
    pub stored_bytes: u64,
    /// How many instructions that repeat themselves were executed. Of their rounds one is counted, as nothing tells how
    /// many there were.
    pub repeated: u64,
}

/// The most instructions of a basic block of each class of sizes.
pub const SIZES: [usize; 8] = [1, 2, 4, 8, 16, 32, 64, usize::MAX];

/// The mix of a run, and of each function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mixes {
    /// Of the whole run.
    pub run: Mix,
    /// Of each function, those with most instructions first; nothing for code that no function is known of.
    pub functions: Vec<(Option<FunctionId>, Mix)>,
}

impl Mixes {
    /// The mixes of a counted profile, whose code `read` reads; nothing if no blocks were counted.
    pub fn of(
        profile: &Profile,
        read: &mut dyn FnMut(CodeAddress, usize) -> Option<Vec<u8>>,
    ) -> Option<Self> {
        let list = BlockList::of(profile)?;
        let mut mixes: BTreeMap<Option<FunctionId>, Mix> = BTreeMap::new();
        let mut run = Mix::default();
        let mut natures = Natures::default();
        for row in &list.rows {
            let block = &profile.code.blocks[row.block.index()];
            let mut added = Mix::default();
            added.add_block(row.executions, block.instructions());
            for (place, length) in block.places() {
                let bytes = read(place, length.into());
                let nature = bytes.and_then(|bytes| natures.of(&bytes, place.address.0));
                added.add(nature, row.executions);
            }
            run.merge(&added);
            mixes.entry(row.function).or_default().merge(&added);
        }
        let mut functions: Vec<_> = mixes.into_iter().collect();
        functions.sort_by_key(|(_, mix)| std::cmp::Reverse(mix.instructions));
        Some(Self { run, functions })
    }
}

impl Mix {
    /// How many instructions may lead elsewhere than to the next one.
    pub fn branches(&self) -> u64 {
        self.kinds.iter().filter(|(kind, _)| kind.is_branch()).map(|(_, count)| count).sum()
    }

    /// How many instructions work on floating-point numbers.
    pub fn floats(&self) -> u64 {
        [Kind::ScalarFloat, Kind::PackedFloat, Kind::X87].iter().filter_map(|kind| self.kinds.get(kind)).sum()
    }

    fn add_block(&mut self, executions: u64, instructions: usize) {
        self.blocks += executions;
        let class = SIZES.iter().position(|&most| instructions <= most).unwrap_or(SIZES.len() - 1);
        self.sizes[class] += executions;
    }

    fn add(&mut self, nature: Option<Nature>, executions: u64) {
        self.instructions += executions;
        let Some(nature) = nature else {
            self.unread += executions;
            return;
        };
        *self.kinds.entry(nature.kind).or_default() += executions;
        self.loads += executions * u64::from(nature.loads);
        self.loaded_bytes += executions * u64::from(nature.loaded_bytes);
        self.stores += executions * u64::from(nature.stores);
        self.stored_bytes += executions * u64::from(nature.stored_bytes);
        self.repeated += executions * u64::from(nature.is_repeated);
    }

    fn merge(&mut self, other: &Self) {
        self.instructions += other.instructions;
        self.unread += other.unread;
        self.blocks += other.blocks;
        self.loads += other.loads;
        self.loaded_bytes += other.loaded_bytes;
        self.stores += other.stores;
        self.stored_bytes += other.stored_bytes;
        self.repeated += other.repeated;
        self.sizes.iter_mut().zip(other.sizes).for_each(|(sum, size)| *sum += size);
        other.kinds.iter().for_each(|(&kind, count)| *self.kinds.entry(kind).or_default() += count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nature(bytes: &[u8]) -> Option<Nature> {
        Natures::default().of(bytes, 0x1000)
    }

    #[test]
    fn a_mix_adds_up() {
        let mut mix = Mix::default();
        mix.add_block(10, 3);
        // add [rdi], rsi; je; and one whose code is gone.
        mix.add(nature(&[0x48, 0x01, 0x37]), 10);
        mix.add(nature(&[0x74, 0x02]), 10);
        mix.add(None, 10);
        let mut sum = mix.clone();
        sum.merge(&mix);
        assert_eq!(sum.instructions, 60);
        assert_eq!(sum.kinds.values().sum::<u64>() + sum.unread, sum.instructions);
        assert_eq!((sum.loads, sum.loaded_bytes, sum.stores, sum.stored_bytes), (20, 160, 20, 160));
        assert_eq!((sum.branches(), sum.blocks, sum.sizes[2]), (20, 20, 20));
    }
}
