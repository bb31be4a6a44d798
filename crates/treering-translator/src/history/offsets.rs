//! Sets of offsets into a file.

use serde::{Deserialize, Serialize};

/// Sorted offsets, with the number of offsets before each page up to the last. They take little more than four bytes
/// each, as the tracer has them in memory all the time. In files they are stored as distances from the offset before.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Vec<u32>", from = "Vec<u32>")]
pub(super) struct Offsets {
    sorted: Vec<u32>,
    pages: Vec<u32>,
}

/// The size of a page, as a power of two.
const PAGE: u32 = 12;

impl Offsets {
    fn of(mut sorted: Vec<u32>) -> Self {
        sorted.sort_unstable();
        sorted.dedup();
        sorted.shrink_to_fit();
        let mut pages = Vec::with_capacity(sorted.last().map_or(0, |last| (last >> PAGE) as usize + 2));
        for (at, &offset) in sorted.iter().enumerate() {
            pages.resize(pages.len().max((offset >> PAGE) as usize + 1), at as u32);
        }
        pages.push(sorted.len() as u32);
        Self { sorted, pages }
    }

    pub(super) fn len(&self) -> usize {
        self.sorted.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    pub(super) fn contains(&self, offset: u32) -> bool {
        self.page(offset).binary_search(&offset).is_ok()
    }

    /// The offsets in the page of an offset.
    fn page(&self, offset: u32) -> &[u32] {
        let page = (offset >> PAGE) as usize;
        match self.pages.get(page..) {
            Some(&[first, end, ..]) => &self.sorted[first as usize..end as usize],
            _ => &[],
        }
    }

    /// The offsets that another set has as well.
    pub(super) fn common_with(&self, other: &Self) -> Self {
        Self::of(self.common(other).collect())
    }

    fn common(&self, other: &Self) -> impl Iterator<Item = u32> {
        let mut others = other.sorted.iter().copied().peekable();
        self.sorted.iter().copied().filter(move |&offset| {
            while others.next_if(|&other| other < offset).is_some() {}
            others.peek() == Some(&offset)
        })
    }

    /// An even number or the odd one behind it, if the set has either.
    pub(super) fn one_of_two(&self, even: u32) -> Option<u32> {
        let page = self.page(even);
        page.get(page.partition_point(|&other| other < even)).copied().filter(|found| found >> 1 == even >> 1)
    }

    /// Adds offsets, in any order.
    pub(super) fn add(&mut self, more: Vec<u32>) {
        if !more.is_empty() {
            let mut all = std::mem::take(&mut self.sorted);
            all.extend(more);
            *self = Self::of(all);
        }
    }

    /// The number of offsets that another set lacks.
    pub(super) fn missing_from(&self, other: &Self) -> usize {
        self.len() - self.common(other).count()
    }

    /// The number of offsets in only one of two sets.
    pub(super) fn differences(&self, other: &Self) -> usize {
        self.len() + other.len() - 2 * self.common(other).count()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_in_a_set_are_found_in_their_pages() {
        let all = [0, 1, 0xfff, 0x1000, 0x5003, 0x5004, 0x9fff];
        let offsets = Offsets::of(all.iter().rev().chain(&all).copied().collect());
        assert_eq!(offsets.len(), all.len());
        let found: Vec<u32> = (0..0xb000).filter(|&offset| offsets.contains(offset)).collect();
        assert_eq!(found, all);
        assert!(!offsets.contains(u32::MAX) && !Offsets::default().contains(0));
        assert_eq!(
            [0, 0x5002, 0x5004, 0x6000].map(|even| offsets.one_of_two(even)),
            [Some(0), Some(0x5003), Some(0x5004), None]
        );
        let some = Offsets::of(vec![1, 2, 0x5004, 0x1_0000]);
        assert_eq!(offsets.common_with(&some), Offsets::of(vec![1, 0x5004]));
        assert_eq!(offsets.differences(&some), 7);
        let numbers: Vec<u32> = offsets.clone().into();
        assert_eq!(Offsets::from(numbers), offsets);
    }
}
