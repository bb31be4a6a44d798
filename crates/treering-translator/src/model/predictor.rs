//! A branch predictor of moderate size.
//!
//! It follows the description in Cachegrind's manual ("Branch simulation specifics"): 16,384 saturating
//! counters of two bits, chosen by the branch's address and the directions of the last branches, and 512
//! targets of indirect jumps and calls, chosen by the lower nine bits of their addresses. Returns always
//! count as predicted. The manual does not say how many bits of each choose a counter: here it is seven of
//! the address and the directions of seven branches.

const COUNTERS: usize = 1 << 14;
/// Half of the bits that choose a counter.
const HALF: usize = 1 << 7;
const TARGETS: usize = 1 << 9;

/// A branch predictor.
#[derive(Debug, Clone)]
pub struct Predictor {
    /// Values 0 and 1 predict a branch that is not taken, 2 and 3 one that is.
    counters: Vec<u8>,
    targets: Vec<u64>,
    /// The directions of the last branches, the latest in the lowest bit; 1 for taken.
    history: usize,
}

impl Default for Predictor {
    fn default() -> Self {
        Self { counters: vec![0; COUNTERS], targets: vec![0; TARGETS], history: 0 }
    }
}

impl Predictor {
    /// A conditional branch was executed. Returns whether its direction was predicted.
    #[inline]
    pub fn branch(&mut self, address: u64, taken: bool) -> bool {
        let counter = &mut self.counters[self.history * HALF + address as usize % HALF];
        let predicted = (*counter >= 2) == taken;
        *counter = if taken { (*counter + 1).min(3) } else { counter.saturating_sub(1) };
        self.history = (self.history << 1 | usize::from(taken)) % HALF;
        predicted
    }

    /// An indirect jump or call was executed. Returns whether its target was predicted.
    #[inline]
    pub fn indirect(&mut self, address: u64, target: u64) -> bool {
        let known = &mut self.targets[address as usize % TARGETS];
        let predicted = *known == target;
        *known = target;
        predicted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mispredicted(ways: impl Iterator<Item = bool>) -> usize {
        let mut predictor = Predictor::default();
        ways.filter(|&taken| !predictor.branch(0x40_1000, taken)).count()
    }

    #[test]
    fn a_branch_that_is_never_taken_is_predicted_from_the_beginning() {
        assert_eq!(mispredicted((0..1000).map(|_| false)), 0);
    }

    #[test]
    fn a_branch_that_is_always_taken_is_learnt_once_for_each_history() {
        // The history changes with each of the first seven; then its counter needs two.
        assert_eq!(mispredicted((0..1000).map(|_| true)), 9);
    }

    #[test]
    fn a_pattern_is_learnt_and_chance_is_not() {
        let pattern = mispredicted((0..10_000).map(|at| at % 5 == 0));
        assert!(pattern < 40, "{pattern}");
        let mut state = 1_u64;
        let chance = mispredicted((0..100_000).map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> 63 == 1
        }));
        assert!((45_000..55_000).contains(&chance), "{chance}");
    }

    #[test]
    fn an_indirect_jump_is_predicted_to_go_where_it_went_last() {
        let mut predictor = Predictor::default();
        let went = [1, 1, 2, 2, 1].map(|target| predictor.indirect(0x1001, target));
        assert_eq!(went, [false, true, false, true, false]);
        assert!(!predictor.indirect(0x1201, 7), "nine bits of the address are all that counts");
        assert!(!predictor.indirect(0x1001, 1));
    }
}
