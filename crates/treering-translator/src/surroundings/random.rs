//! Random numbers that are the same in every run. They are no secret: a key made of them is known to everybody.

/// The random numbers of one program: SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number
/// generators", OOPSLA 2014).
#[derive(Debug, Clone, Default)]
pub(crate) struct HeldRandom {
    seed: u64,
    state: u64,
    programs: u64,
}

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

fn mix(value: u64) -> u64 {
    let value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}

impl HeldRandom {
    /// The next bytes.
    pub(crate) fn bytes(&mut self, length: usize) -> Vec<u8> {
        let words = length.div_ceil(8);
        let mut bytes = Vec::with_capacity(8 * words);
        (0..words).for_each(|_| bytes.extend_from_slice(&self.word().to_le_bytes()));
        bytes.truncate(length);
        bytes
    }

    fn word(&mut self) -> u64 {
        self.state = self.state.wrapping_add(STEP);
        mix(self.state)
    }

    /// The random numbers of the next program that begins here. They depend on the programs that began before, and not on
    /// how many numbers were drawn.
    pub(crate) fn next_program(&mut self) -> Self {
        self.programs += 1;
        let seed = mix(self.seed.wrapping_add(self.programs.wrapping_mul(STEP)).wrapping_add(1));
        Self { seed, state: seed, programs: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The generator's first numbers for the seed 0, as in Vigna's implementation (splitmix64.c).
    #[test]
    fn numbers_are_those_of_splitmix64() {
        let mut random = HeldRandom::default();
        let expected = [0xe220_a839_7b1d_cdaf_u64, 0x6e78_9e6a_a1b9_65f4, 0x06c4_5d18_8009_454f];
        assert_eq!(random.bytes(24), expected.map(u64::to_le_bytes).concat());
        assert_eq!(random.bytes(3).len(), 3);
    }
}
