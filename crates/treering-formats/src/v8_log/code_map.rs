//! Code that V8 made, by its address.

use std::collections::BTreeMap;

use treering_profile::Function;

/// The code that lies somewhere now. New code replaces all code that it shares bytes with.
#[derive(Default)]
pub(super) struct CodeMap {
    /// By its start: the address behind it, and its function.
    by_start: BTreeMap<u64, (u64, Function)>,
}

impl CodeMap {
    pub(super) fn add(&mut self, start: u64, size: u64, function: Function) {
        let end = start.saturating_add(size);
        while let Some((&covered, _)) =
            self.by_start.range(..end).next_back().filter(|(_, (last, _))| *last > start)
        {
            self.by_start.remove(&covered);
        }
        self.by_start.insert(start, (end, function));
    }

    pub(super) fn move_to(&mut self, from: u64, to: u64) {
        if let Some((end, function)) = self.by_start.remove(&from) {
            self.add(to, end - from, function);
        }
    }

    pub(super) fn delete(&mut self, start: u64) {
        self.by_start.remove(&start);
    }

    pub(super) fn find(&self, address: u64) -> Option<Function> {
        let (_, &(end, function)) = self.by_start.range(..=address).next_back()?;
        (address < end).then_some(function)
    }
}
