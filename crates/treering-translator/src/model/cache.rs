//! Caches as tables of lines.
//!
//! The caches are set-associative and replace the least recently used line; lines are fetched for writing as well.
//! The rules are those of Cachegrind's manual ("Cache simulation specifics"), so that both can be compared.

use std::num::NonZeroU64;

/// Size and form of a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheShape {
    size: NonZeroU64,
    ways: u32,
    line: u32,
}

/// The reason why a cache cannot have this shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ShapeError {
    /// The line size is no power of two from 16 to 4096 bytes.
    #[error("a line of {0} bytes is no power of two from 16 to 4096")]
    Line(u32),
    /// The size is no multiple of associativity times line size.
    #[error("the size is no multiple of associativity times line size")]
    Size,
    /// There are more lines than a model can have (2^28), or no ways.
    #[error("it has no ways, or more than 268,435,456 lines")]
    Lines,
}

impl CacheShape {
    /// A cache of `size` bytes in lines of `line` bytes; each address may be in one of `ways` lines.
    ///
    /// # Errors
    /// No cache can have this shape.
    pub fn new(size: u64, ways: u32, line: u32) -> Result<Self, ShapeError> {
        const MOST_LINES: u64 = 1 << 28;
        if !line.is_power_of_two() || !(16..=4096).contains(&line) {
            return Err(ShapeError::Line(line));
        }
        let size = NonZeroU64::new(size).ok_or(ShapeError::Size)?;
        if ways == 0 || size.get() / u64::from(line) > MOST_LINES {
            return Err(ShapeError::Lines);
        }
        if !size.get().is_multiple_of(u64::from(ways) * u64::from(line)) {
            return Err(ShapeError::Size);
        }
        Ok(Self { size, ways, line })
    }

    /// The size in bytes.
    pub fn size(self) -> u64 {
        self.size.get()
    }

    /// The number of lines that an address may be in.
    pub fn ways(self) -> u32 {
        self.ways
    }

    /// The size of a line in bytes.
    pub fn line(self) -> u32 {
        self.line
    }
}

/// A cache: the lines that it holds.
#[derive(Debug, Clone)]
pub struct Cache {
    /// The lines of each set, the most recently used first; [`NO_LINE`] for an empty place.
    lines: Vec<u64>,
    ways: usize,
    sets: u64,
    /// `sets - 1`, if that is a mask.
    mask: Option<u64>,
    line_bits: u32,
}

const NO_LINE: u64 = u64::MAX;

impl Cache {
    /// An empty cache.
    pub fn new(shape: CacheShape) -> Self {
        let ways = shape.ways as usize;
        let sets = shape.size() / u64::from(shape.line) / u64::from(shape.ways);
        Self {
            lines: vec![NO_LINE; sets as usize * ways],
            ways,
            sets,
            mask: sets.is_power_of_two().then(|| sets - 1),
            line_bits: shape.line.trailing_zeros(),
        }
    }

    /// The number of the line that an address is in.
    pub fn line_of(&self, address: u64) -> u64 {
        address >> self.line_bits
    }

    /// Accesses `size` bytes at an address. Returns whether all of them were in the cache. Bytes that lie in
    /// two lines access both, and count as one miss at most.
    #[inline]
    pub fn reference(&mut self, address: u64, size: u16) -> bool {
        let first = address >> self.line_bits;
        let last = address.wrapping_add(u64::from(size.max(1)) - 1) >> self.line_bits;
        if first == last {
            return self.touch(first);
        }
        let mut there = self.touch(first);
        let mut line = first;
        while line != last {
            line = line.wrapping_add(1) & (u64::MAX >> self.line_bits);
            there &= self.touch(line);
        }
        there
    }

    /// Accesses a line. Returns whether it was in the cache.
    #[inline]
    pub fn touch(&mut self, line: u64) -> bool {
        let set = match self.mask {
            Some(mask) => line & mask,
            None => line % self.sets,
        };
        let from = set as usize * self.ways;
        // Lines used more recently than this one move on by one place, and the last one falls out.
        let mut carried = line;
        for way in &mut self.lines[from..from + self.ways] {
            std::mem::swap(way, &mut carried);
            if carried == line {
                return true;
            }
        }
        false
    }
}

/// The level at which bytes were found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Found {
    /// In the first cache.
    First,
    /// Not in the first, but in the last.
    Last,
    /// In neither.
    Memory,
}

/// The shapes of the caches that are modelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    /// For instructions.
    pub i1: CacheShape,
    /// For data.
    pub d1: CacheShape,
    /// The last-level cache, for both.
    pub ll: CacheShape,
}

/// A first-level cache each for instructions and data, and one last-level cache for both.
#[derive(Debug, Clone)]
pub struct Caches {
    i1: Cache,
    d1: Cache,
    ll: Cache,
    /// The line of the last fetched instruction, which is in the cache.
    last_fetched: u64,
}

impl Caches {
    /// Empty caches.
    pub fn new(geometry: &Geometry) -> Self {
        let [i1, d1, ll] = [geometry.i1, geometry.d1, geometry.ll].map(Cache::new);
        Self { i1, d1, ll, last_fetched: NO_LINE }
    }

    /// The number of the line of instructions that an address is in.
    pub fn instruction_line(&self, address: u64) -> u64 {
        self.i1.line_of(address)
    }

    /// Fetches an instruction.
    #[inline]
    pub fn fetch(&mut self, address: u64, size: u16) -> Found {
        let last = self.i1.line_of(address.wrapping_add(u64::from(size) - 1));
        if self.last_fetched == last && self.i1.line_of(address) == last {
            return Found::First;
        }
        self.last_fetched = last;
        match self.i1.reference(address, size) {
            true => Found::First,
            false => self.beyond(address, size),
        }
    }

    /// Reads or writes data.
    #[inline]
    pub fn data(&mut self, address: u64, size: u16) -> Found {
        match self.d1.reference(address, size) {
            true => Found::First,
            false => self.beyond(address, size),
        }
    }

    fn beyond(&mut self, address: u64, size: u16) -> Found {
        if self.ll.reference(address, size) { Found::Last } else { Found::Memory }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail by panicking")]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cache(size: u64, ways: u32, line: u32) -> Cache {
        Cache::new(CacheShape::new(size, ways, line).unwrap())
    }

    /// `h` and `m` for each byte used.
    fn run(cache: &mut Cache, addresses: &[u64]) -> String {
        addresses.iter().map(|&address| if cache.reference(address, 1) { 'h' } else { 'm' }).collect()
    }

    #[test]
    fn the_line_used_longest_ago_is_replaced() {
        // Two sets of two ways, lines of 16 bytes: 0, 32, 64 and 96 are in one set.
        let mut two = cache(64, 2, 16);
        assert_eq!(run(&mut two, &[0, 15, 16, 32, 0, 64, 32, 0, 64]), "mhmmhmmmm");
        let mut two = cache(64, 2, 16);
        assert_eq!(run(&mut two, &[0, 32, 0, 64, 0, 32, 64, 16, 48]), "mmhmhmmmm");
    }

    #[test]
    fn one_way_is_a_direct_mapping() {
        let mut direct = cache(64, 1, 16);
        assert_eq!(run(&mut direct, &[0, 64, 0, 16, 80, 32, 32]), "mmmmmmh");
    }

    #[test]
    fn sets_need_not_be_a_power_of_two() {
        let mut three = cache(48, 1, 16);
        assert_eq!(run(&mut three, &[0, 16, 32, 0, 48, 16, 0]), "mmmhmhm");
    }

    #[test]
    fn bytes_in_two_lines_use_both_and_are_missing_once() {
        let mut cache = cache(64, 2, 16);
        assert!(!cache.reference(14, 4), "neither is there");
        assert!(cache.reference(14, 4));
        assert!(cache.reference(0, 1) && cache.reference(16, 1));
        assert!(!cache.reference(30, 4), "one is there");
        assert!(cache.reference(32, 1));
        assert!(!cache.reference(u64::MAX, 2), "addresses wrap");
        assert!(cache.reference(0, 1));
    }

    #[test]
    fn misses_of_the_first_cache_are_looked_up_in_the_last() {
        let shape = |size| CacheShape::new(size, 1, 16).unwrap();
        let mut caches = Caches::new(&Geometry { i1: shape(16), d1: shape(16), ll: shape(64) });
        assert_eq!(caches.data(0, 4), Found::Memory);
        assert_eq!(caches.data(0, 4), Found::First);
        assert_eq!(caches.fetch(0, 4), Found::Last, "instructions have a first cache of their own");
        assert_eq!(caches.data(64, 4), Found::Memory);
        assert_eq!(caches.data(0, 4), Found::Memory, "both were replaced");
        assert_eq!(caches.fetch(4, 4), Found::First);
        assert_eq!(caches.fetch(14, 4), Found::Memory, "the second line is new");
    }

    #[test]
    fn shapes_that_cannot_be_are_refused() {
        assert_eq!(CacheShape::new(1 << 15, 8, 48), Err(ShapeError::Line(48)));
        assert_eq!(CacheShape::new(1 << 15, 7, 64), Err(ShapeError::Size));
        assert_eq!(CacheShape::new(0, 8, 64), Err(ShapeError::Size));
        assert_eq!(CacheShape::new(1 << 15, 0, 64), Err(ShapeError::Lines));
        assert_eq!(CacheShape::new(1 << 50, 8, 64), Err(ShapeError::Lines));
        assert!(CacheShape::new(48 << 10, 12, 64).is_ok());
    }

    proptest! {
        /// With a single set, a larger cache holds all lines of a smaller one.
        #[test]
        fn more_ways_never_miss_more(addresses in prop::collection::vec(0_u64..2048, 1..400), ways in 1_u32..8) {
            let mut small = cache(16 * u64::from(ways), ways, 16);
            let mut large = cache(16 * u64::from(ways + 1), ways + 1, 16);
            for address in addresses {
                let (in_small, in_large) = (small.reference(address, 4), large.reference(address, 4));
                prop_assert!(in_large || !in_small);
            }
        }

        /// The least recently used order, worked out naively.
        #[test]
        fn caches_agree_with_a_list_of_uses(addresses in prop::collection::vec(0_u64..4096, 1..400)) {
            let (mut cache, mut uses) = (cache(256, 4, 16), Vec::<u64>::new());
            for address in addresses {
                let line = address / 16;
                let since = uses.iter().rev().filter(|&&used| used % 4 == line % 4);
                let since: Vec<_> = since.take_while(|&&used| used != line).collect();
                let known = uses.contains(&line);
                let different: std::collections::HashSet<_> = since.into_iter().collect();
                prop_assert_eq!(cache.reference(address, 1), known && different.len() < 4);
                uses.push(line);
            }
        }
    }
}
