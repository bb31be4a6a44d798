//! Memory that nodes hold.

/// Memory that a node itself allocated. Levels, not costs: what there is at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct NodeMemory {
    /// Bytes that were not freed at the end.
    pub live_bytes: u64,
    /// The most bytes that were there at any time. Of joined nodes the least that it can have
    /// been, since they need not have had their most at the same time.
    pub peak_bytes: u64,
}

impl NodeMemory {
    /// Takes in the memory of another node. The order does not matter.
    pub fn merge(&mut self, other: &Self) {
        self.live_bytes = self.live_bytes.saturating_add(other.live_bytes);
        self.peak_bytes = self.peak_bytes.max(other.peak_bytes).max(self.live_bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_of_two_is_at_least_what_both_hold() {
        let memory = |live_bytes, peak_bytes| NodeMemory { live_bytes, peak_bytes };
        let mut both = memory(3, 5);
        both.merge(&memory(4, 4));
        assert_eq!(both, memory(7, 7));
        both.merge(&memory(0, 9));
        assert_eq!(both, memory(7, 9));
    }
}
