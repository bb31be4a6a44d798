//! Costs of a function by address, as profil() gave them.

use std::collections::BTreeMap;

use treering_profile::{AddressCost, FunctionId, LineId, ModuleId, Profile};

use crate::basis::Basis;
use crate::block_table::executions;
use crate::identity::Identity;
use crate::interval::Interval;
use crate::measure::{Columns, Measure};

/// The cost of a function by address, in bins of equal size.
#[derive(Clone, Debug, PartialEq)]
pub struct AddressHistogram {
    /// The function.
    pub function: FunctionId,
    /// How many bytes a bin has.
    pub granularity: u64,
    /// The sum of all bins.
    pub total: f64,
    /// The part of it in functions that are inlined into this one.
    pub of_inlined: f64,
    /// The function's own cost beyond that, where no address is known.
    pub without_address: f64,
    /// How many samples all bins have, where code was sampled, and the share of the run.
    pub sampled: Option<Sampled>,
    /// The sum of the whole run.
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
    /// How many samples that are, where code was sampled, and the share of the run.
    pub sampled: Option<Sampled>,
    /// Whether part of what was counted may belong to another function or to the next bin: a gmon.out has bins of its own.
    pub is_shared: bool,
    /// The source line of the first address that was counted, where known.
    pub line: Option<LineId>,
}

/// The source of an estimated cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampled {
    /// The number of samples.
    pub samples: u64,
    /// Where the share of the run lies with 95 % confidence.
    pub interval: Option<Interval>,
}

impl Sampled {
    fn of(basis: &Basis, measure: Measure) -> Option<Self> {
        basis.samples?;
        Some(Self { samples: measure.samples, interval: basis.interval(measure) })
    }
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
            sampled: None,
            is_shared: false,
            line: *line,
        });
        let bins: Vec<AddressBin> = costs.collect();
        let total = bins.iter().map(|bin| bin.cost).sum();
        let run = code.block_instructions() as f64;
        let (of_inlined, without_address) = (0.0, 0.0);
        Some(Self { function, granularity, total, of_inlined, without_address, sampled: None, run, bins })
    }

    /// The sampled costs of a function by address, summed over all threads. They include those of functions inlined into
    /// it. Shares are of the whole run, which `basis` describes. Bins begin at multiples of `granularity`, which is at
    /// least 1. Returns `None` if the profile has no addresses.
    pub fn of_samples(
        profile: &Profile,
        basis: &Basis,
        function: FunctionId,
        granularity: u64,
    ) -> Option<Self> {
        let granularity = granularity.max(1);
        if profile.address_costs.is_empty() {
            return None;
        }
        let identity = Identity::of(profile);
        let function = identity.representative(function);
        let mut bins: BTreeMap<(Option<ModuleId>, u64), (Measure, Option<LineId>)> = BTreeMap::new();
        let (mut own, mut of_inlined) = (Measure::default(), Measure::default());
        let mut rows: Vec<&AddressCost> = profile.address_costs.iter().collect();
        rows.sort_unstable_by_key(|row| row.address);
        for row in rows {
            let is_own = identity.representative(row.function) == function;
            if !is_own && identity.representative(row.holder) != function {
                continue;
            }
            let measure = measure_of(profile, basis, row);
            if measure.is_zero() {
                continue;
            }
            *if is_own { &mut own } else { &mut of_inlined } += measure;
            let start = row.address.0 - row.address.0 % granularity;
            let bin = bins.entry((profile.functions[row.holder].module, start)).or_default();
            bin.0 += measure;
            bin.1 = bin.1.or(row.line);
        }
        let columns = Columns::of(profile, basis.metric, basis.samples);
        let is_its = |node: &_| identity.representative(profile.tree.function(*node)) == function;
        let self_cost: Measure =
            profile.tree.nodes().filter(is_its).map(|node| columns.self_cost(node)).sum();
        let bins = bins.into_iter().map(|((_, start), (measure, line))| AddressBin {
            start,
            end: start.saturating_add(granularity),
            cost: measure.cost as f64,
            sampled: Sampled::of(basis, measure),
            is_shared: false,
            line,
        });
        Some(Self {
            function,
            granularity,
            total: (own + of_inlined).cost as f64,
            of_inlined: of_inlined.cost as f64,
            without_address: self_cost.saturating_sub(own).cost as f64,
            sampled: Sampled::of(basis, own + of_inlined),
            run: basis.run.cost as f64,
            bins: bins.collect(),
        })
    }

    /// The part of the run, 0..=1.
    pub fn share(&self, cost: f64) -> f64 {
        if self.run == 0.0 { 0.0 } else { cost / self.run }
    }
}

/// The cost of a row in the metric of the basis.
fn measure_of(profile: &Profile, basis: &Basis, row: &AddressCost) -> Measure {
    let weights = profile.metrics[basis.metric.index()].weights();
    let cost = |wanted: bool| if wanted { row.cost } else { 0 };
    let of_weights = |metric: u32| metric == row.metric.raw();
    Measure {
        cost: cost(row.metric == basis.metric),
        samples: cost(basis.samples == Some(row.metric)),
        squares: cost(weights.is_some_and(|weights| of_weights(weights.squares))),
        unseen: cost(weights.is_some_and(|weights| of_weights(weights.unseen))),
    }
}

#[cfg(test)]
mod tests {
    use treering_profile::{
        AddressCost, BasicBlock, BlockExecutions, BlockId, CodeAddress, CodeSpace, Frame, Function, Metric,
        RecursionRule, StatedAddress, Unit, Weights, merge,
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

    /// Samples of 1 ms: four at 0x10 and one at 0x14 in `f`, three at 0x20 in `inner`, which is inlined into `f`.
    fn sampled() -> (Profile, FunctionId) {
        let mut profile = Profile::new(RecursionRule::Full);
        let samples = profile.add_metric(Metric::exact("samples", Unit::Count));
        let time = profile.add_metric(Metric::sampled("time", Unit::Nanoseconds, samples, Some(1_000_000)));
        let thread = profile.add_single_thread("a");
        let names = ["f", "inner"].map(|name| profile.strings.intern(name));
        let [f, inner] = names.map(|name| profile.functions.intern(Function::named(name)));
        for (stack, address, count) in [(&[f][..], 0x10, 4), (&[f], 0x14, 1), (&[f, inner], 0x20, 3)] {
            let weights = [(samples, count), (time, count * 1_000_000)];
            let frames: Vec<Frame> = stack.iter().copied().map(Frame::new).collect();
            profile.add_stack(thread, &frames, None, &weights);
            let (function, address) = (*stack.last().expect("it has frames"), StatedAddress(address));
            profile.address_costs.extend(weights.map(|(metric, cost)| AddressCost {
                thread,
                function,
                holder: f,
                address,
                line: None,
                metric,
                cost,
            }));
        }
        (profile, f)
    }

    #[test]
    fn samples_are_shares_of_the_run_with_intervals_and_what_is_inlined_is_told() {
        let (profile, f) = sampled();
        let basis = Basis::of(&profile, profile.find_metric("time").expect("it is there"));
        let histogram = AddressHistogram::of_samples(&profile, &basis, f, 16).expect("there are addresses");
        let told: Vec<_> = histogram.bins.iter().map(|bin| (bin.start, bin.cost)).collect();
        assert_eq!(told, [(0x10, 5e6), (0x20, 3e6)]);
        assert_eq!((histogram.total, histogram.of_inlined, histogram.without_address), (8e6, 3e6, 0.0));
        let sampled = histogram.bins[0].sampled.expect("it was sampled");
        assert_eq!((sampled.samples, sampled.interval), (5, crate::wilson(5.0 / 8.0, 8.0)));
        let mut without = profile.clone();
        without.address_costs.retain(|row| row.address.0 != 0x14);
        let histogram = AddressHistogram::of_samples(&without, &basis, f, 4).expect("there are addresses");
        assert_eq!((histogram.total, histogram.without_address), (7e6, 1e6));
        without.address_costs.clear();
        assert_eq!(AddressHistogram::of_samples(&without, &basis, f, 4), None);
    }

    /// A merge of equal samples with those that weigh differently knows the weights of all, by address too.
    #[test]
    fn squared_weights_add_up_by_address_as_they_do_by_function() {
        let (even, _) = sampled();
        let (mut uneven, _) = sampled();
        let time = uneven.find_metric("time").expect("it is there");
        let weights = Weights { squares: 0, unseen: 0, per: 1_000_000, hidden: 0, of_known_cost: false };
        let squares: Vec<u64> = uneven.tree.self_costs(time).iter().map(|cost| cost * 3).collect();
        uneven.add_weights(time, weights, squares, vec![0; uneven.tree.len()]);
        let squares = uneven.metrics[time.index()].weights().expect("they were added").squares;
        let squares = treering_profile::MetricId::new(squares);
        let rows = uneven.address_costs.iter().filter(|row| row.metric == time);
        let rows: Vec<_> =
            rows.map(|row| AddressCost { metric: squares, cost: row.cost * 3, ..*row }).collect();
        uneven.address_costs.extend(rows);
        let both = merge(&[&even, &uneven]);
        let basis = Basis::of(&both, both.find_metric("time").expect("it is there"));
        let sum: Measure = both.address_costs.iter().map(|row| measure_of(&both, &basis, row)).sum();
        assert_eq!(sum, basis.run);
        assert!(sum.squares > 0);
    }
}
