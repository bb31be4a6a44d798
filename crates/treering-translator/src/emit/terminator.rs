//! The terminator of a block: the translation of its last instruction.

use treering_x86::{Decoded, Flow, Refusal, Register, rewrite};

use crate::address_space::AddressSpace;
use crate::cache::block::End;
use crate::cache::indirect::LONGEST_CHAIN;
use crate::cache::link::{EntryKind, ExitStub};
use crate::cache::target_check::{TargetCheck, TargetLocation};
use crate::emit::counter_code::CounterCode;
use crate::emit::trace_writer::{Continuation, TraceWriter};
use crate::sys::layout::{LOOP_REGISTER, REQUEST, SLOTS, TARGET, counter_slot};

/// The note for a program that calls the kernel by `int 0x80`.
const OLD_SYSTEM_CALLS: &str = "it may use 32-bit system calls; code that they map is not counted";

/// The farthest target of a jump that is laid out directly behind it.
const INLINE_REACH: u64 = 0x1000_0000;

impl TraceWriter<'_, '_> {
    /// Writes a jump to a request at which the tracer ends the program because of the instruction.
    pub(crate) fn write_refusal(&mut self, address: u64, refusal: Refusal) {
        let exit = self.space.cache.exits.add(ExitStub::Refused(address, refusal));
        let request = self.unit().routines.request;
        self.emitter.code.store_gs_value(REQUEST, exit);
        self.emitter.code.jump(request);
    }

    /// Writes the jump of a call to its target, or of a jump where no tree is kept.
    fn write_jump_into(&mut self, block: u32, target: u64) {
        let block = self.block(block);
        let (propagates, holds) = (block.propagates, block.holds);
        let entry_kind = EntryKind { propagates, calls: self.space.areas.has_trees(), holds };
        self.emitter.write_jump(target, entry_kind);
    }

    /// Writes a block that jumps to itself: it counts in a register that it does not use, which is saved
    /// while the loop runs.
    pub(crate) fn write_loop(
        &mut self,
        block: u32,
        decoded: &[Decoded],
        window: &[u8],
        register: Register,
    ) -> Continuation {
        let last = &decoded[decoded.len() - 1];
        let slot = counter_slot(self.block(block).counter);
        let entry = self.emitter.code.here();
        self.emitter.write_step(0, |code| {
            code.store_gs(LOOP_REGISTER, register);
            code.load_gs(register, slot);
        });
        let top = self.emitter.code.here();
        self.begin_count_batch(block, decoded.len());
        self.emitter.write_step(0, |code| code.add(register, 1));
        let counted = self.emitter.code.here();
        let kept = self.block_mut(block);
        kept.counted_from = (counted - entry) as u16;
        kept.loop_register = Some(register);
        kept.end = End::Branch;
        kept.target = decoded[0].address();
        self.write_body(block, decoded, window, CounterCode::None);
        self.emitter.write_step(last.len(), |code| {
            if let Flow::Branch { condition, .. } = last.flow() {
                code.branch(condition, top);
            }
            code.store_gs(slot, register);
            code.load_gs(register, LOOP_REGISTER);
        });
        Continuation::Through(last.next())
    }

    /// Writes the translation of the last instruction. Returns how the trace continues.
    pub(crate) fn write_end(
        &mut self,
        block: u32,
        last: &Decoded,
        bytes: &[u8],
        counting: CounterCode,
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
                    self.space.warnings.push(OLD_SYSTEM_CALLS);
                }
                (End::Trap, 0, Continuation::Through(last.next()))
            }
            Flow::Stop | Flow::Refused(_) => {
                self.write_stop(last, bytes);
                (End::Stop, 0, Continuation::None)
            }
            Flow::Jump(target) => (End::Jump, target, self.follow_jump(block, target, last)),
            Flow::Abort(target) => {
                self.emitter.code.set_low(Register::RAX, 0);
                (End::Jump, target, self.follow_jump(block, target, last))
            }
            Flow::Branch { condition, target } => {
                (End::Branch, target, self.write_conditional((condition, target), last.next()))
            }
            Flow::CountedBranch(target) => {
                self.emitter.write_counted_branch(last, bytes, target);
                self.emitter.work.push(target);
                (End::Branch, target, Continuation::Through(last.next()))
            }
            Flow::Call(target) => {
                self.write_call(block, target, last.next());
                (End::Call, target, Continuation::Return(last.next()))
            }
            Flow::Return(bytes) => {
                self.write_return(block, bytes, counting);
                (End::Return, 0, Continuation::None)
            }
            Flow::IndirectJump | Flow::IndirectCall => self.write_indirect(block, (last, bytes), counting),
        };
        let emitted = self.emitter.code.here() - start;
        self.emitter.steps.push(last.len(), emitted);
        let kept = self.block_mut(block);
        (kept.end, kept.target) = (end, target);
        continuation
    }

    /// Writes an instruction that always faults, or that cannot be counted.
    fn write_stop(&mut self, last: &Decoded, bytes: &[u8]) {
        let refusal = match last.flow() {
            Flow::Refused(refusal) => refusal,
            _ => {
                // A hypervisor may answer such a call after all. The program must not continue into the code
                // that follows in memory.
                self.emitter.code.put(&bytes[..last.len()]);
                Refusal::NoFault
            }
        };
        self.write_refusal(last.address(), refusal);
    }

    /// Writes a conditional branch with its counter code. Returns how the trace continues.
    fn write_conditional(&mut self, (condition, target): (u8, u64), next: u64) -> Continuation {
        if let Some(exit) = self.side_exit {
            return self.write_side_exit(exit, (condition, target), next);
        }
        self.emitter.write_branch(condition, target);
        self.emitter.work.push(target);
        Continuation::Through(next)
    }

    /// Writes a direct call, which returns to `next`.
    fn write_call(&mut self, block: u32, target: u64, next: u64) {
        self.write_push(next);
        if let Some(contexts) = self.contexts() {
            contexts.note_call(Some(target), next);
        }
        self.propagate(block, target, true);
        self.write_jump_into(block, target);
        self.emitter.work.push(target);
    }

    /// Writes an indirect transfer: it loads the target, and goes to the site's routines.
    fn write_indirect(
        &mut self,
        block: u32,
        (last, bytes): (&Decoded, &[u8]),
        counting: CounterCode,
    ) -> (End, u64, Continuation) {
        let calls = last.flow() == Flow::IndirectCall;
        self.write_save(block, counting);
        if let Err(refusal) = rewrite::load_target(last, bytes, &SLOTS, &mut self.emitter.code) {
            self.write_refusal(last.address(), refusal);
        }
        self.emitter.code.store_gs(TARGET, Register::RCX);
        if calls {
            self.write_push(last.next());
            if let Some(contexts) = self.contexts() {
                contexts.note_call(None, last.next());
            }
        }
        let looks_up = self.space.looks_up(calls);
        let (site, miss) = self.space.cache.new_site(self.emitter.unit, block, looks_up);
        if let (Some(_), Some(contexts)) = (last.relative_operand(), self.contexts()) {
            contexts.linkage.insert(site);
        }
        let from = self.block(block).address;
        let mut presumed = self.space.warm_start.hinted_targets(&self.space.program.regions, from);
        if !calls && self.space.areas.has_trees() {
            let AddressSpace { context, program, .. } = &mut *self.space;
            presumed.retain(|&target| context.may_presume_jump(from, target, program));
        }
        // A transfer with many targets mostly goes to another one than its first, which a table finds sooner. With
        // trees, the kind of a jump depends on more than its target.
        let is_in_line = (1..=LONGEST_CHAIN as usize).contains(&presumed.len())
            && (calls || !self.space.areas.has_trees());
        let first = is_in_line.then(|| presumed.remove(0));
        let place = first.unwrap_or(0);
        self.space.cache.sites[site as usize].jump = match first {
            Some(target) => self.write_first_target(site, target, miss),
            None => self.emitter.code.jump(miss),
        };
        let here = self.space.program.presumed_target(last, self.thread);
        presumed.extend(here.filter(|here| first != Some(*here) && !presumed.contains(here)));
        for target in presumed {
            self.emitter.presumed.push((site, target));
            self.emitter.work.push(target);
        }
        match calls {
            true => (End::IndirectCall, place, Continuation::Return(last.next())),
            false => (End::IndirectJump, place, Continuation::None),
        }
    }

    /// Writes the inline check of a target behind the transfer, which saves a jump. Returns where its jump
    /// for other targets is.
    fn write_first_target(&mut self, site: u32, target: u64, otherwise: u64) -> u64 {
        let block = self.space.cache.sites[site as usize].block;
        let check = TargetCheck { address: target, location: TargetLocation::Rcx, otherwise };
        let jump = check.write(&mut self.emitter.code);
        TargetCheck::write_hit(None, &mut self.emitter.code);
        self.propagate(block, target, true);
        self.write_jump_into(block, target);
        self.emitter.work.push(target);
        if let Some(contexts) = self.contexts() {
            contexts.called.insert(target);
        }
        // The block's first arc needs no counter.
        let arc = self.space.cache.add_arc(block, target, None, self.space.program.region_at(target));
        self.space.cache.arcs.set_checked(arc, true);
        jump
    }

    /// Lays out the target of a jump next, or jumps to it.
    fn follow_jump(&mut self, block: u32, target: u64, last: &Decoded) -> Continuation {
        if let Some(stub) = self.space.jump_stub(self.emitter.unit, target) {
            self.emitter.code.jump(stub);
            self.side_exit = None;
            self.emitter.work.push(target);
            return Continuation::None;
        }
        let near = target.abs_diff(last.address()) < INLINE_REACH;
        if near && !self.ends_trace(target) {
            return Continuation::Through(target);
        }
        let propagates = self.propagate(block, target, false);
        self.emitter.write_jump(target, EntryKind { propagates, ..EntryKind::default() });
        self.emitter.work.push(target);
        Continuation::None
    }
}
