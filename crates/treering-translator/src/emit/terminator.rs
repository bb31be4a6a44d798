//! The terminator of a block: the translation of its last instruction.

use std::io;

use treering_x86::{Decoded, Flow, Refusal, Register, rewrite};

use crate::address_space::AddressSpace;
use crate::cache::batch::Jump;
use crate::cache::block::End;
use crate::cache::emitter::Emitter;
use crate::cache::indirect::LONGEST_CHAIN;
use crate::cache::link::{EntryKind, ExitStub};
use crate::cache::target_check::{TargetCheck, TargetLocation};
use crate::emit::counter_code::CounterCode;
use crate::emit::translate::{Continuation, Trace};
use crate::sys::layout::{LOOP_REGISTER, REQUEST, SLOTS, TARGET, counter_slot};
use crate::sys::remote_syscall::StoppedThread;

/// The note for a program that calls the kernel by `int 0x80`.
const OLD_SYSTEM_CALLS: &str = "it may use 32-bit system calls; code that they map is not counted";

/// The farthest target of a jump that is laid out directly behind it.
const INLINE_REACH: u64 = 0x1000_0000;

impl AddressSpace {
    /// Writes a jump to a request at which the tracer ends the program because of the instruction.
    pub(crate) fn write_refusal(&mut self, address: u64, refusal: Refusal, trace: &Trace) {
        let exit = self.cache.exits.add(ExitStub::Refused(address, refusal));
        let request = self.cache.units[trace.unit].routines.request;
        self.emitter.code.store_gs_value(REQUEST, exit);
        self.emitter.code.jump(request);
    }

    /// Writes the jump of a call to its target, or of a jump where no tree is kept.
    fn write_jump_into(&mut self, block: u32, target: u64, trace: &Trace) {
        let block = self.cache.blocks.get(block);
        let (propagates, holds) = (block.propagates, block.holds);
        let entry_kind = EntryKind { propagates, calls: self.areas.has_trees(), holds };
        self.emitter.write_jump_of(target, entry_kind, trace);
    }

    /// Writes a block that jumps to itself: it counts in a register that it does not use, which is saved
    /// while the loop runs.
    pub(crate) fn write_loop(
        &mut self,
        block: u32,
        decoded: &[Decoded],
        window: &[u8],
        register: Register,
        trace: &mut Trace,
    ) -> Continuation {
        let last = &decoded[decoded.len() - 1];
        let slot = counter_slot(self.cache.blocks.get(block).counter);
        let code = &mut self.emitter.code;
        let entry = code.here();
        code.store_gs(LOOP_REGISTER, register);
        code.load_gs(register, slot);
        let top = code.here();
        self.emitter.steps.push(0, top - entry);
        self.begin_count_batch(block, decoded.len(), trace);
        let code = &mut self.emitter.code;
        let counts = code.here();
        code.add(register, 1);
        let counted = code.here();
        self.emitter.steps.push(0, counted - counts);
        let kept = self.cache.blocks.get_mut(block);
        kept.counted_from = (counted - entry) as u16;
        kept.loop_register = Some(register);
        kept.end = End::Branch;
        kept.target = decoded[0].address();
        self.write_body(block, decoded, window, CounterCode::None, trace);
        let code = &mut self.emitter.code;
        let start = code.here();
        if let Flow::Branch { condition, .. } = last.flow() {
            code.branch(condition, top);
        }
        code.store_gs(slot, register);
        code.load_gs(register, LOOP_REGISTER);
        let end = code.here();
        self.emitter.steps.push(last.len(), end - start);
        Continuation::Through(last.next())
    }

    /// Writes the translation of the last instruction. Returns how the trace continues.
    pub(crate) fn write_end(
        &mut self,
        block: u32,
        last: &Decoded,
        bytes: &[u8],
        counting: CounterCode,
        trace: &mut Trace,
        thread: &StoppedThread<'_>,
    ) -> Continuation {
        let start = self.emitter.code.here();
        let (end, target, continuation) = match last.flow() {
            Flow::Next => return Continuation::Through(last.next()),
            Flow::System => {
                self.write_system_call(last, block);
                return Continuation::Through(last.next());
            }
            Flow::Trap => {
                self.emitter.code.put(&bytes[..last.len()]);
                if last.is_old_system_call() {
                    self.warnings.push(OLD_SYSTEM_CALLS);
                }
                (End::Trap, 0, Continuation::Through(last.next()))
            }
            Flow::Stop | Flow::Refused(_) => {
                self.write_stop(last, bytes, trace);
                (End::Stop, 0, Continuation::None)
            }
            Flow::Jump(target) => (End::Jump, target, self.follow_jump(block, target, last, trace)),
            Flow::Abort(target) => {
                self.emitter.code.set_low(Register::RAX, 0);
                (End::Jump, target, self.follow_jump(block, target, last, trace))
            }
            Flow::Branch { condition, target } => {
                (End::Branch, target, self.write_conditional((condition, target), last.next(), trace))
            }
            Flow::CountedBranch(target) => {
                self.emitter.write_counted_branch(last, bytes, target, trace);
                trace.work.push(target);
                (End::Branch, target, Continuation::Through(last.next()))
            }
            Flow::Call(target) => {
                self.write_call(block, target, last.next(), trace);
                (End::Call, target, Continuation::Return(last.next()))
            }
            Flow::Return(bytes) => {
                self.write_return(block, bytes, counting, trace.unit);
                (End::Return, 0, Continuation::None)
            }
            Flow::IndirectJump | Flow::IndirectCall => {
                self.write_indirect(block, (last, bytes), counting, trace, thread)
            }
        };
        let emitted = self.emitter.code.here() - start;
        self.emitter.steps.push(last.len(), emitted);
        let kept = self.cache.blocks.get_mut(block);
        (kept.end, kept.target) = (end, target);
        continuation
    }

    /// Writes an instruction that always faults, or that cannot be counted.
    fn write_stop(&mut self, last: &Decoded, bytes: &[u8], trace: &Trace) {
        let refusal = match last.flow() {
            Flow::Refused(refusal) => refusal,
            _ => {
                // A hypervisor may answer such a call after all. The program must not continue into the code
                // that follows in memory.
                self.emitter.code.put(&bytes[..last.len()]);
                Refusal::NoFault
            }
        };
        self.write_refusal(last.address(), refusal, trace);
    }

    /// Writes a conditional branch with its counter code. Returns how the trace continues.
    fn write_conditional(
        &mut self,
        (condition, target): (u8, u64),
        next: u64,
        trace: &mut Trace,
    ) -> Continuation {
        if let Some(exit) = trace.side_exit {
            return self.write_side_exit(exit, (condition, target), next, trace);
        }
        self.emitter.write_branch(condition, target, trace);
        trace.work.push(target);
        Continuation::Through(next)
    }

    /// Writes a direct call, which returns to `next`.
    fn write_call(&mut self, block: u32, target: u64, next: u64, trace: &mut Trace) {
        self.write_push(next, trace.unit);
        self.note_call(Some(target), next);
        let propagates = self.may_propagate(block, target, true);
        self.cache.blocks.get_mut(block).propagates = propagates;
        self.write_jump_into(block, target, trace);
        trace.work.push(target);
    }

    /// Writes an indirect transfer: it loads the target, and goes to the site's routines.
    fn write_indirect(
        &mut self,
        block: u32,
        (last, bytes): (&Decoded, &[u8]),
        counting: CounterCode,
        trace: &mut Trace,
        thread: &StoppedThread<'_>,
    ) -> (End, u64, Continuation) {
        let calls = last.flow() == Flow::IndirectCall;
        self.write_save(block, counting);
        if let Err(refusal) = rewrite::load_target(last, bytes, &SLOTS, &mut self.emitter.code) {
            self.write_refusal(last.address(), refusal, trace);
        }
        self.emitter.code.store_gs(TARGET, Register::RCX);
        if calls {
            self.write_push(last.next(), trace.unit);
            self.note_call(None, last.next());
        }
        let looks_up = self.looks_up(calls);
        let (site, miss) = self.cache.new_site(trace.unit, block, looks_up);
        if last.relative_operand().is_some() {
            self.note_linkage(site);
        }
        let from = self.cache.blocks.get(block).address;
        let mut presumed = self.warm_start.hinted_targets(&self.program.regions, from);
        presumed.retain(|&target| calls || self.may_presume_jump(from, target));
        let first = self.is_in_line(calls, &presumed).then(|| presumed.remove(0));
        let place = first.unwrap_or(0);
        self.cache.sites[site as usize].jump = match first {
            Some(target) => self.write_first_target(site, target, miss, trace),
            None => self.emitter.code.jump(miss),
        };
        let here = self.program.presumed_target(last, thread);
        presumed.extend(here.filter(|here| first != Some(*here) && !presumed.contains(here)));
        for target in presumed {
            self.emitter.presumed.push((site, target));
            trace.work.push(target);
        }
        match calls {
            true => (End::IndirectCall, place, Continuation::Return(last.next())),
            false => (End::IndirectJump, place, Continuation::None),
        }
    }

    /// Whether the check for a transfer's first target of the last run is inlined. A transfer with many
    /// targets mostly goes to another one, which a table finds sooner. With trees, the kind of a jump depends
    /// on more than its target.
    fn is_in_line(&self, calls: bool, hinted: &[u64]) -> bool {
        (1..=LONGEST_CHAIN as usize).contains(&hinted.len()) && (calls || !self.areas.has_trees())
    }

    /// Writes the inline check of a target behind the transfer, which saves a jump. Returns where its jump
    /// for other targets is.
    fn write_first_target(&mut self, site: u32, target: u64, otherwise: u64, trace: &mut Trace) -> u64 {
        let block = self.cache.sites[site as usize].block;
        let check = TargetCheck { address: target, location: TargetLocation::Rcx, otherwise };
        let jump = check.write(&mut self.emitter.code);
        TargetCheck::write_hit(None, &mut self.emitter.code);
        let propagates = self.may_propagate(block, target, true);
        self.cache.blocks.get_mut(block).propagates = propagates;
        self.write_jump_into(block, target, trace);
        trace.work.push(target);
        self.note_call_of(target);
        // The block's first arc needs no counter.
        let arc = self.cache.add_arc(block, target, None, self.program.region_at(target));
        self.cache.arcs.set_checked(arc, true);
        jump
    }

    /// Links indirect transfers to their presumed targets, if those are translated.
    pub(crate) fn link_presumed(&mut self) -> io::Result<()> {
        let mut presumed = std::mem::take(&mut self.emitter.presumed);
        for (site, target) in presumed.drain(..) {
            if let Some(entry) = self.entry_of(target) {
                self.add_target(site, target, Some(entry))?;
            }
        }
        self.emitter.presumed = presumed;
        Ok(())
    }

    /// Lays out the target of a jump next, or jumps to it.
    fn follow_jump(&mut self, block: u32, target: u64, last: &Decoded, trace: &mut Trace) -> Continuation {
        if let Some(stub) = self.jump_stub(trace.unit, target) {
            self.emitter.code.jump(stub);
            trace.side_exit = None;
            trace.work.push(target);
            return Continuation::None;
        }
        let near = target.abs_diff(last.address()) < INLINE_REACH;
        if near && !self.ends_trace(target, trace) {
            return Continuation::Through(target);
        }
        let propagates = self.may_propagate(block, target, false);
        self.cache.blocks.get_mut(block).propagates = propagates;
        self.emitter.write_jump_of(target, EntryKind { propagates, ..EntryKind::default() }, trace);
        trace.work.push(target);
        Continuation::None
    }
}

impl Emitter {
    /// Writes a jump to an address of the program; its displacement is filled in when the batch is published.
    pub(crate) fn write_jump(&mut self, target: u64, trace: &Trace) {
        self.write_jump_of(target, EntryKind::default(), trace);
    }

    fn write_jump_of(&mut self, target: u64, entry_kind: EntryKind, trace: &Trace) {
        let site = self.code.jump(target);
        self.batch.jumps.push(Jump { unit: trace.unit, site, target, entry_kind });
    }

    fn write_branch(&mut self, condition: u8, target: u64, trace: &Trace) {
        let site = self.code.branch(condition, target);
        self.batch.jumps.push(Jump { unit: trace.unit, site, target, entry_kind: EntryKind::default() });
    }

    /// Writes `jrcxz` or `loop`, which reach only 127 bytes: they jump to a short jump behind them, and that
    /// over a long one.
    fn write_counted_branch(&mut self, last: &Decoded, bytes: &[u8], target: u64, trace: &Trace) {
        let code = &mut self.code;
        code.put(&bytes[..last.len() - 1]);
        // Over the short jump, to the long one.
        code.put(&[2, 0xeb, 0]);
        let from = code.bytes().len();
        self.write_jump(target, trace);
        self.code.set_distance(from);
    }
}
