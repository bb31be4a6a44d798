//! Pages of code that are asked for.

use std::ops::Range;

/// The pages of code with wanted addresses, to tell symbols that matter from the many that do not.
pub(crate) struct WantedPages {
    /// The number of the first page.
    first: u64,
    /// For each page from there on, which of those that are asked for is the next, from itself on.
    next: Vec<u32>,
    /// How many are asked for.
    count: usize,
}

const PAGE: u64 = 4096;

/// A binary with more pages than that is told nothing of: everything matters.
const MOST_PAGES: u64 = 1 << 22;

impl WantedPages {
    /// The pages with these addresses; nothing if they lie too far apart to be worth it.
    pub(crate) fn new(addresses: impl Iterator<Item = u64> + Clone) -> Option<Self> {
        let (first, last) = (addresses.clone().min()? / PAGE, addresses.clone().max()? / PAGE);
        if last - first >= MOST_PAGES {
            return None;
        }
        let mut next = vec![0; (last - first + 1) as usize];
        addresses.for_each(|address| next[(address / PAGE - first) as usize] = 1);
        let mut count = 0;
        for page in &mut next {
            // Whether it is asked for; then, how many pages before it are.
            let asked = *page;
            *page = count;
            count += asked;
        }
        Some(Self { first, next, count: count as usize })
    }

    /// How many pages are asked for.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Of the pages that are asked for, the first that does not end before an address, by its number among them.
    pub(crate) fn page_from(&self, address: u64) -> usize {
        let page = (address / PAGE).saturating_sub(self.first);
        self.next.get(page as usize).map_or(self.count, |next| *next as usize)
    }

    /// Whether any of a range lies in a page that is asked for.
    pub(crate) fn touches(&self, range: &Range<u64>) -> bool {
        self.page_from(range.start) < self.page_from(range.end.saturating_add(PAGE - 1) / PAGE * PAGE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_told_apart() {
        let asked = [0x5123, 0x5000, 0x8fff];
        let wanted = WantedPages::new(asked.into_iter()).unwrap();
        assert_eq!(wanted.count(), 2);
        let found = [0, 0x5fff, 0x6000, 0x8fff, 0x9000, u64::MAX].map(|address| wanted.page_from(address));
        assert_eq!(found, [0, 0, 1, 1, 2, 2]);
        let touched = [0x4000..0x5000, 0x4fff..0x5001, 0x6000..0x8000, 0x7000..0x8001, 0x9000..u64::MAX];
        assert_eq!(touched.map(|range| wanted.touches(&range)), [false, true, false, true, false]);
    }

    #[test]
    fn pages_too_far_apart_are_not_listed() {
        assert!(WantedPages::new([0, u64::MAX].into_iter()).is_none());
        assert!(WantedPages::new(std::iter::empty()).is_none());
    }
}
