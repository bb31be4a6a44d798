//! Side exits, and derived blocks, whose executions are worked out instead of counted.
//!
//! A block that is reached only from one branch is executed as often as the block with the branch, less the times
//! when the branch went the other way. So only one of the two successors needs a counter, and the less frequent one
//! costs less (Knuth and Stevenson, BIT 13, 1973; Ball and Larus, "Optimally profiling and tracing programs", TOPLAS
//! 16, 1994). The last run tells which one that is ([`BranchBias`]): the frequent successor follows the branch
//! without counter code, and the other direction goes through a side exit that counts.
//!
//! A thread that leaves the first block early reaches neither the branch nor the derived block: each such
//! case is noted ([`PartialExecution`](crate::counting::slow_path::PartialExecution)). Control that reaches a
//! derived block from elsewhere goes through an entry stub that counts.

use std::io;

use treering_x86::flags::FlagSet;
use treering_x86::{Decoded, Flow};

use crate::areas::tree_layout::SLOTS as CONTEXT_SLOTS;
use crate::cache::link::EntryKind;
use crate::counting::branch_bias::BranchBias;
use crate::emit::trace_writer::{Continuation, TraceWriter};
use crate::linking::entry::{room, write_count};
use crate::program::program_code::DEPTH;
use crate::program::region::PAGE;

/// A side exit: the way out of a block that does not continue to the next block of the trace.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SideExit {
    /// The counter of the exit.
    pub(crate) counter: u32,
    /// The successor that is the next block of the trace.
    pub(crate) follows: BranchBias,
    /// Whether no flag is live at the exit's target.
    flags_are_dead: bool,
}

impl TraceWriter<'_, '_> {
    /// Plans the side exit of a block whose next block in the trace can be derived.
    ///
    /// # Errors
    /// There is no counter left.
    pub(crate) fn plan_side_exit(&mut self, decoded: &[Decoded]) -> io::Result<Option<SideExit>> {
        let last = &decoded[decoded.len() - 1];
        let (target, leaves) = match last.flow() {
            Flow::Branch { target, .. } => (target, true),
            Flow::Jump(target) => (target, false),
            _ => return Ok(None),
        };
        let (regions, address) = (&self.space.program.regions, decoded[0].address());
        let Some(follows) = self.space.warm_start.branch_bias(regions, address) else { return Ok(None) };
        let (next, other) = match follows {
            BranchBias::FallThrough => (last.next(), target),
            BranchBias::Taken => (target, last.next()),
        };
        let page = page_of(decoded).filter(|&page| page == next / PAGE);
        if page.is_none() || next == address || !self.may_derive(decoded) || self.ends_trace(next) {
            return Ok(None);
        }
        let flags_are_dead =
            leaves && self.space.program.live_at(other, DEPTH, self.thread).misses(FlagSet::OF_INC);
        Ok(Some(SideExit { counter: self.space.areas.new_counter()?, follows, flags_are_dead }))
    }

    /// Whether the block behind a side exit is derived.
    pub(crate) fn is_derived(&self, decoded: &[Decoded]) -> bool {
        let before = self.block(self.space.cache.blocks.len() as u32 - 1);
        page_of(decoded) == Some(before.address / PAGE) && self.may_derive(decoded)
    }

    /// Whether a block may be derived: it is not watched, and does not change while it runs.
    fn may_derive(&self, decoded: &[Decoded]) -> bool {
        let first = decoded[0].address();
        let length = (decoded[decoded.len() - 1].next() - first) as usize;
        let regions = &self.space.program.regions;
        !regions.may_change(first)
            && !regions.is_any_restless(first, length)
            && !regions.are_watched()
            && self.space.model.is_none()
    }

    /// Writes a branch with its side exit, which counts. Returns how the trace continues.
    pub(crate) fn write_side_exit(
        &mut self,
        exit: SideExit,
        (condition, target): (u8, u64),
        next: u64,
    ) -> Continuation {
        // Opposite conditions differ in the lowest bit (Intel SDM volume 1, appendix B).
        let (condition, other, follows) = match exit.follows {
            BranchBias::FallThrough => (condition, target, next),
            BranchBias::Taken => (condition ^ 1, next, target),
        };
        let mut site = 0;
        let held = self.held;
        let room = room(exit.flags_are_dead, held, self.space.areas.has_trees());
        let routines = self.unit().context;
        let (counts, mut taken_back) = (self.count_batch.first_count(routines), None);
        let stub = self.unit().append_cold(room, |code| {
            if held {
                code.release(&CONTEXT_SLOTS);
            }
            write_count(code, exit.counter, exit.flags_are_dead);
            taken_back = counts.map(|counts| code.take_from_count(counts));
            site = code.jump(other);
        });
        self.count_batch.note_exit(taken_back);
        self.emitter.note_jump(site, other, EntryKind::default());
        self.emitter.code.branch(condition, stub);
        self.emitter.work.push(other);
        Continuation::Through(follows)
    }
}

/// The page of a block, if it lies in one page. Eviction works by pages, so blocks of one page are retired
/// together: control falls into a retired block only from a retired block.
fn page_of(decoded: &[Decoded]) -> Option<u64> {
    let (first, last) = (decoded[0].address(), decoded[decoded.len() - 1].next() - 1);
    (first / PAGE == last / PAGE).then_some(first / PAGE)
}
