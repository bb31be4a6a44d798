//! Sets of offsets in a file.

use hashbrown::HashMap;
use serde::{Deserialize, Serialize};

/// Offsets, sorted, with the place of the first one of each page that has any, and how many it has: little more
/// than four bytes for each, as the tracer has them in memory all the time. In files they are numbers: the
/// distance of each from the one before.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Vec<u32>", from = "Vec<u32>")]
pub(super) struct Offsets {
    sorted: Vec<u32>,
    pages: HashMap<u32, (u32, u32)>,
}

/// Offsets of a page, as a power of two.
const PAGE: u32 = 12;

impl Offsets {
    fn of(mut sorted: Vec<u32>) -> Self {
        sorted.sort_unstable();
        sorted.dedup();
        sorted.shrink_to_fit();
        let mut pages = HashMap::new();
        for (at, &offset) in sorted.iter().enumerate() {
            let (_, length) = pages.entry(offset >> PAGE).or_insert((at as u32, 0));
            *length += 1;
        }
        Self { sorted, pages }
    }

    pub(super) fn len(&self) -> usize {
        self.sorted.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    pub(super) fn contains(&self, offset: u32) -> bool {
        let Some(&(first, length)) = self.pages.get(&(offset >> PAGE)) else { return false };
        self.sorted[first as usize..][..length as usize].binary_search(&offset).is_ok()
    }

    /// An even number or the odd one behind it, if either is there.
    pub(super) fn one_of_two(&self, even: u32) -> Option<u32> {
        let &(first, length) = self.pages.get(&(even >> PAGE))?;
        let page = &self.sorted[first as usize..][..length as usize];
        page.get(page.partition_point(|&other| other < even)).copied().filter(|found| found >> 1 == even >> 1)
    }

    /// Adds more, in any order.
    pub(super) fn add(&mut self, more: Vec<u32>) {
        if !more.is_empty() {
            let mut all = std::mem::take(&mut self.sorted);
            all.extend(more);
            *self = Self::of(all);
        }
    }

    /// How many are not in another set.
    pub(super) fn missing_from(&self, other: &Self) -> usize {
        self.sorted.iter().filter(|&&offset| !other.contains(offset)).count()
    }

    /// How many are in one of two sets only.
    pub(super) fn differences(&self, other: &Self) -> usize {
        let own = self.missing_from(other);
        other.len() + 2 * own - self.len()
    }
}

impl From<Offsets> for Vec<u32> {
    fn from(offsets: Offsets) -> Self {
        let mut before = 0;
        let distance = |offset| offset - std::mem::replace(&mut before, offset);
        offsets.sorted.into_iter().map(distance).collect()
    }
}

impl From<Vec<u32>> for Offsets {
    fn from(mut distances: Vec<u32>) -> Self {
        let mut at = 0_u32;
        for distance in &mut distances {
            at = at.wrapping_add(*distance);
            *distance = at;
        }
        Self::of(distances)
    }
}
