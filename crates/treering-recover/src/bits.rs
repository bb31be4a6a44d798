//! Sets of numbers that lie close together.

/// A set of numbers below a limit, which can tell how many of them are up to each.
pub(super) struct Bits {
    words: Vec<u64>,
    /// By word, how many are in those before it; empty until they are [counted](Self::count).
    before: Vec<u32>,
}

impl Bits {
    /// None of the numbers below `limit`.
    pub(super) fn new(limit: usize) -> Self {
        Self { words: vec![0; limit.div_ceil(64)], before: Vec::new() }
    }

    /// Adds a number; not once they are counted.
    pub(super) fn insert(&mut self, number: usize) {
        self.words[number / 64] |= 1 << (number % 64);
    }

    /// Whether a number is among them.
    pub(super) fn contains(&self, number: usize) -> bool {
        self.words.get(number / 64).is_some_and(|word| word >> (number % 64) & 1 != 0)
    }

    /// Counts them. Returns how many there are.
    pub(super) fn count(&mut self) -> usize {
        let mut all = 0;
        let before = self.words.iter().map(|word| {
            let before = all;
            all += word.count_ones();
            before
        });
        self.before = before.collect();
        all as usize
    }

    /// How many are up to a number, itself included; once they are counted.
    pub(super) fn up_to(&self, number: usize) -> u32 {
        let here = self.words[number / 64] & (u64::MAX >> (63 - number % 64));
        self.before[number / 64] + here.count_ones()
    }

    /// All of them, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        numbers(self.words.iter().copied())
    }

    /// The numbers below a limit that are not among them, in order.
    pub(super) fn missing(&self, limit: usize) -> impl Iterator<Item = usize> + '_ {
        numbers(self.words.iter().map(|word| !word)).take_while(move |&number| number < limit)
    }
}

/// The numbers that some words stand for.
fn numbers(words: impl Iterator<Item = u64>) -> impl Iterator<Item = usize> {
    words.enumerate().flat_map(|(at, word)| {
        let rest = std::iter::successors(Some(word), |word| Some(word & word.wrapping_sub(1)));
        rest.take_while(|word| *word != 0).map(move |word| at * 64 + word.trailing_zeros() as usize)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_counted_and_told_apart() {
        let some = [0, 3, 63, 64, 130, 191];
        let mut bits = Bits::new(192);
        some.into_iter().for_each(|number| bits.insert(number));
        assert_eq!(bits.count(), some.len());
        assert_eq!(bits.iter().collect::<Vec<_>>(), some);
        assert!(bits.missing(140).eq((0..140).filter(|number| !some.contains(number))));
        for number in 0..192 {
            assert_eq!(bits.contains(number), some.contains(&number));
            let up_to = some.iter().filter(|&&other| other <= number).count();
            assert_eq!(bits.up_to(number) as usize, up_to, "{number}");
        }
        assert!(!bits.contains(192));
    }
}
