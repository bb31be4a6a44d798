//! Sets of offsets in a file.

use hashbrown::HashMap;
use serde::{Deserialize, Serialize};

/// Offsets, as one bit each for every page that has any. In files they are numbers: the distance of each from
/// the one before.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Vec<u32>", from = "Vec<u32>")]
pub(super) struct Offsets {
    pages: HashMap<u32, Box<[u64; WORDS]>>,
    length: usize,
}

/// Offsets of a page, as a power of two.
const PAGE: u32 = 12;
const WORDS: usize = (1 << PAGE) / 64;

/// The page, the word and the bit of an offset.
fn split(offset: u32) -> (u32, usize, u64) {
    (offset >> PAGE, (offset as usize >> 6) % WORDS, 1 << (offset % 64))
}

impl Offsets {
    pub(super) fn len(&self) -> usize {
        self.length
    }

    pub(super) fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// How many are in one of two sets only.
    pub(super) fn differences(&self, other: &Self) -> usize {
        let both = self.pages.iter().filter_map(|(page, words)| Some((words, other.pages.get(page)?)));
        let words = both.flat_map(|(one, other)| one.iter().zip(&**other));
        let common: usize = words.map(|(one, other)| (one & other).count_ones() as usize).sum();
        self.length + other.length - 2 * common
    }

    pub(super) fn contains(&self, offset: u32) -> bool {
        let (page, word, bit) = split(offset);
        self.pages.get(&page).is_some_and(|words| words[word] & bit != 0)
    }

    pub(super) fn insert(&mut self, offset: u32) {
        let (page, word, bit) = split(offset);
        let words = self.pages.entry(page).or_insert_with(|| Box::new([0; WORDS]));
        self.length += usize::from(words[word] & bit == 0);
        words[word] |= bit;
    }

    /// All of them, sorted.
    fn sorted(&self) -> impl Iterator<Item = u32> {
        let mut pages: Vec<_> = self.pages.iter().collect();
        pages.sort_unstable_by_key(|&(page, _)| *page);
        pages.into_iter().flat_map(|(page, words)| {
            let bits = (0..1_u32 << PAGE).filter(|&at| words[at as usize / 64] >> (at % 64) & 1 != 0);
            bits.map(move |at| page << PAGE | at)
        })
    }
}

impl From<Offsets> for Vec<u32> {
    fn from(offsets: Offsets) -> Self {
        let mut before = 0;
        let distance = |offset| offset - std::mem::replace(&mut before, offset);
        offsets.sorted().map(distance).collect()
    }
}

impl From<Vec<u32>> for Offsets {
    fn from(distances: Vec<u32>) -> Self {
        let mut offsets = Self::default();
        let mut at = 0_u32;
        for distance in distances {
            at = at.wrapping_add(distance);
            offsets.insert(at);
        }
        offsets
    }
}
