//! Decides which blocks propagate their counts to their successors.

use crate::emit::trace_writer::TraceWriter;

impl TraceWriter<'_, '_> {
    /// Has a block that is being written propagate its count to the target of its last instruction, if that is
    /// possible. With `waits`, also if the target is not translated yet. Returns whether the block propagates.
    pub(crate) fn propagate(&mut self, block: u32, target: u64, waits: bool) -> bool {
        let level = self.block(block).level;
        let callee = self.space.cache.blocks.at(target);
        let propagation = &mut self.space.counting.propagation;
        let is_possible = match callee {
            Some(callee) => {
                self.space.cache.blocks.get(callee).level > level
                    && propagation.lets_in_uncounted(&self.space.cache.blocks, callee)
            }
            None => waits && level != u8::MAX && !propagation.ended.contains_key(&target),
        };
        if !is_possible
            || self.space.model.is_some()
            || self.space.program.regions.are_watched()
            || !self.space.program.is_steady(target)
        {
            return false;
        }
        if callee.is_none() {
            let wanted = propagation.levels.entry(target).or_default();
            *wanted = (level + 1).max(*wanted);
        }
        self.block_mut(block).propagates = true;
        true
    }
}
