//! Blocks whose executions are not counted but worked out.
//!
//! Where control comes to a block only from one branch, its executions are those of the block that ends in the
//! branch, less those in which that went the other way. So one of the two ways needs a counter, and the one that is
//! gone less often costs less (Knuth and Stevenson, BIT 13, 1973; Ball and Larus, "Optimally profiling and tracing
//! programs", TOPLAS 16, 1994). Which one that is was seen when the program was counted before ([`BranchBias`]): the
//! block that mostly follows is written behind the branch and has no counter code, and the other way leads
//! over one that does.
//!
//! A thread that leaves the first block halfway does not come to its branch, and does not follow: every such case
//! is known ([`PartialExecution`](crate::tracer::thread::PartialExecution)). Should control come to the second block from elsewhere after
//! all, it comes by a counter code this.

use std::io;

use treering_x86::context::HOLD;
use treering_x86::flags::FlagSet;
use treering_x86::{Assembler, Decoded, Flow, Register};

use crate::address_space::AddressSpace;
use crate::context::SLOTS as CONTEXT_SLOTS;
use crate::context::count_batch::PAYMENT;
use crate::counting::branch_bias::BranchBias;
use crate::counting::propagated_counts::EntryKind;
use crate::emit::translate::{Continuation, DEPTH, Jump, Trace};
use crate::program::region::PAGE;
use crate::sys::layout::{SAVED_RCX, counter_slot};
use crate::sys::remote_syscall::StoppedThread;

/// A side exit: how a block is left otherwise than to what is written behind it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SideExit {
    /// Counts that.
    pub(crate) counter: u32,
    /// What is written behind the block.
    pub(crate) follows: BranchBias,
    /// Whether no flag is live where it leads.
    flags_are_dead: bool,
}

/// The most bytes of a counter code and goes on.
const ROOM: u64 = 64;
/// The same where no flag is live: these are many, and share lines of the cache.
const SHORT_ROOM: u64 = 20;

/// The most bytes of one, which may hold or release registers, and pay.
fn room(flags_are_dead: bool, holds: bool, pays: bool) -> u64 {
    let counting = if flags_are_dead { SHORT_ROOM } else { ROOM };
    counting + if holds { HOLD } else { 0 } + if pays { PAYMENT } else { 0 }
}

impl AddressSpace {
    /// How a block is to be left, if what follows it need not count itself.
    ///
    /// # Errors
    /// There is no counter left.
    pub(crate) fn plan_side_exit(
        &mut self,
        decoded: &[Decoded],
        trace: &Trace,
        thread: &mut StoppedThread<'_>,
    ) -> io::Result<Option<SideExit>> {
        let last = &decoded[decoded.len() - 1];
        let (target, leaves) = match last.flow() {
            Flow::Branch { target, .. } => (target, true),
            Flow::Jump(target) => (target, false),
            _ => return Ok(None),
        };
        let Some(follows) = self.branch_bias(decoded[0].address()) else { return Ok(None) };
        let (next, other) = match follows {
            BranchBias::FallThrough => (last.next(), target),
            BranchBias::Taken => (target, last.next()),
        };
        let page = page_of(decoded).filter(|&page| page == next / PAGE);
        let is_itself = next == decoded[0].address();
        if page.is_none() || is_itself || !self.may_derive(decoded) || self.ends_trace(next, trace) {
            return Ok(None);
        }
        let flags_are_dead = leaves && self.live_at(other, DEPTH, thread).misses(FlagSet::OF_INC);
        Ok(Some(SideExit { counter: self.new_counter()?, follows, flags_are_dead }))
    }

    /// Whether the block behind an exit need not count itself.
    pub(crate) fn is_derived(&self, decoded: &[Decoded]) -> bool {
        let before = self.blocks.get(self.blocks.len() as u32 - 1);
        page_of(decoded) == Some(before.address / PAGE) && self.may_derive(decoded)
    }

    /// Whether nobody waits at a block, and it does not change while it runs.
    fn may_derive(&self, decoded: &[Decoded]) -> bool {
        let first = decoded[0].address();
        let length = (decoded[decoded.len() - 1].next() - first) as usize;
        !self.regions.may_change(first)
            && !self.regions.is_any_restless(first, length)
            && !self.regions.are_watched()
            && !self.is_modelled()
    }

    /// A branch of which the way that does not lead to what follows is counted. Returns that.
    pub(crate) fn write_side_exit(
        &mut self,
        exit: SideExit,
        (condition, target): (u8, u64),
        next: u64,
        trace: &mut Trace,
    ) -> Continuation {
        // The opposite of a condition differs in the lowest bit (Intel SDM volume 1, appendix B).
        let (condition, other, follows) = match exit.follows {
            BranchBias::FallThrough => (condition, target, next),
            BranchBias::Taken => (condition ^ 1, next, target),
        };
        let mut site = 0;
        let room = room(exit.flags_are_dead, trace.held, self.has_contexts());
        let (counts, mut taken_back) = (self.first_count(trace), None);
        let stub = self.units[trace.unit].append_cold(room, |code| {
            if trace.held {
                code.release(&CONTEXT_SLOTS);
            }
            write_count(code, exit.counter, exit.flags_are_dead);
            taken_back = counts.map(|counts| code.take_from_count(counts));
            site = code.jump(other);
        });
        trace.note_exit(taken_back);
        self.scratch.batch.jumps.push(Jump {
            unit: trace.unit,
            site,
            target: other,
            entry_kind: EntryKind::default(),
        });
        self.scratch.code.branch(condition, stub);
        trace.work.push(other);
        Continuation::Through(follows)
    }

    /// Where control is to come to a block from elsewhere.
    ///
    /// # Errors
    /// There is no counter left.
    pub(crate) fn counted_entry(&mut self, block: u32) -> io::Result<u64> {
        let kept = self.blocks.get(block);
        let (counts, derived, own) = (kept.counted_before, kept.derived, kept.counter);
        if !counts && !kept.holds {
            return Ok(kept.entry);
        }
        if let Some(&stub) = self.entry_stubs.get(&(block, true)) {
            return Ok(stub);
        }
        let counter = if derived { self.new_counter()? } else { own };
        let stub = self.write_entry_stub(block, counts.then_some(counter), 0)?;
        self.entry_stubs.insert((block, true), stub);
        if derived {
            let address = self.blocks.get(block).address;
            self.add_arc(block - 1, address, Some(counter));
        }
        Ok(stub)
    }

    /// The same for who has been counted, if the block lets them in.
    pub(crate) fn uncounted_entry(&mut self, block: u32) -> Option<u64> {
        if !self.lets_in_uncounted(block) {
            return None;
        }
        let kept = self.blocks.get(block);
        let behind = if kept.counted_before { 0 } else { u64::from(kept.counted_from) };
        if !kept.holds && !kept.prepaid {
            return Some(kept.entry + behind);
        }
        if let Some(&stub) = self.entry_stubs.get(&(block, false)) {
            return Some(stub);
        }
        let stub = self.write_entry_stub(block, None, behind).ok()?;
        self.entry_stubs.insert((block, false), stub);
        Some(stub)
    }

    /// Writes a counter code and pays, as far as need be, and goes on behind the first bytes of a block.
    fn write_entry_stub(&mut self, block: u32, counter: Option<u32>, behind: u64) -> io::Result<u64> {
        let kept = self.blocks.get(block);
        let (entry, flags_are_dead, holds) = (kept.entry, kept.begins_without_flags, kept.holds);
        let unit = self.unit_of(entry).unwrap_or(0);
        let unpaid = self.unpaid(block, unit)?;
        let room = room(flags_are_dead, holds, unpaid.is_some());
        let stub = self.units[unit].append_cold(room, |code| {
            if let Some(counter) = counter {
                write_count(code, counter, flags_are_dead);
            }
            if let Some(count) = unpaid {
                code.add_to_count(count);
            }
            if holds {
                code.hold(&CONTEXT_SLOTS);
            }
            code.jump(entry + behind);
        });
        Ok(stub)
    }
}

/// The page that a block lies in. What is taken out of use is taken by pages: of blocks in the same one, both are or
/// neither. So nobody falls into one that is not used any more but from another such.
fn page_of(decoded: &[Decoded]) -> Option<u64> {
    let (first, last) = (decoded[0].address(), decoded[decoded.len() - 1].next() - 1);
    (first / PAGE == last / PAGE).then_some(first / PAGE)
}

/// Writes what adds one to a counter between two blocks.
fn write_count(code: &mut Assembler, counter: u32, flags_are_dead: bool) {
    let slot = counter_slot(counter);
    if flags_are_dead {
        return code.inc_gs(slot);
    }
    code.store_gs(SAVED_RCX, Register::RCX);
    code.count_by(Register::RCX, slot);
    code.load_gs(Register::RCX, SAVED_RCX);
}
