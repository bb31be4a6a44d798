//! Blocks: each is planned, begun with the facts that the plan decides, and written.

use std::io;

use treering_x86::{Decoded, Flow, Register, rewrite};

use crate::areas::tree_layout::SLOTS as CONTEXT_SLOTS;
use crate::cache::batch::Written;
use crate::cache::block::End;
use crate::cache::target_check::{TargetCheck, TargetLocation};
use crate::emit::counter_code::CounterCode;
use crate::emit::side_exit::SideExit;
use crate::emit::trace_writer::{Continuation, TraceWriter};
use crate::sys::layout::SLOTS as REWRITE_SLOTS;

/// How a block is to be written.
#[derive(Debug)]
struct BlockPlan {
    /// Its level, if a predecessor propagates its count to it.
    wanted: Option<u8>,
    /// The register in which it counts its repetitions.
    loops: Option<Register>,
    /// How it is derived from the block before it.
    derived: Option<SideExit>,
    /// Whether the program may write to its code.
    may_change: bool,
    counting: CounterCode,
    /// Its own side exit, if the block behind it is derived.
    leaves: Option<SideExit>,
    /// Whether registers are held throughout.
    holds: bool,
}

impl TraceWriter<'_, '_> {
    /// Writes a block of decoded instructions. Returns how the trace continues.
    pub(crate) fn write_decoded(
        &mut self,
        decoded: &[Decoded],
        window: &[u8],
        returned_to: bool,
    ) -> io::Result<Continuation> {
        let (first, last) = (&decoded[0], &decoded[decoded.len() - 1]);
        let return_check = if returned_to { self.write_return_check(first.address()) } else { None };
        let plan = self.plan_block(decoded)?;
        if std::mem::take(&mut self.held) && !plan.holds {
            self.emitter.code.release(&CONTEXT_SLOTS);
        }
        let bytes = &window[..(last.next() - first.address()) as usize];
        self.space.surroundings.note_beyond(decoded);
        let block = self.begin_block(decoded, bytes, &plan)?;
        self.write_comparison(block, bytes);
        self.write_model_entry(block, decoded);
        let continuation = match plan.loops {
            Some(register) => self.write_loop(block, decoded, window, register),
            None => {
                self.side_exit = plan.leaves;
                self.held = plan.holds && plan.leaves.is_some();
                let counting = self.begin_counting(block, plan.counting);
                self.batch_instructions(block, decoded.len());
                self.write_body(block, decoded, window, counting);
                let last_bytes = &window[(last.address() - first.address()) as usize..];
                let continuation = self.write_end(block, last, last_bytes, counting);
                self.note_direct_target(block);
                continuation
            }
        };
        self.finish_block(block);
        self.emitter.batch.written.push(Written { block, return_check, returned_to });
        Ok(continuation)
    }

    /// Plans how a block is written.
    fn plan_block(&mut self, decoded: &[Decoded]) -> io::Result<BlockPlan> {
        let (first, last) = (&decoded[0], &decoded[decoded.len() - 1]);
        let wanted = self.space.counting.propagation.wanted_level(first.address());
        let register = self.emitter.loop_register(decoded).filter(|_| wanted.is_none());
        let register = register.filter(|_| !self.has_inquiry(decoded));
        let derived = self.side_exit.take();
        let derived = derived.filter(|_| register.is_none() && wanted.is_none() && self.is_derived(decoded));
        let may_change = [first.address(), last.next() - 1]
            .into_iter()
            .any(|at| self.space.program.regions.may_change(at));
        // A loop would not leave its translation when its code changes.
        let loops = register.filter(|_| !may_change && self.space.model.is_none());
        let counting = match (loops, derived) {
            (None, None) => CounterCode::choose(
                decoded,
                &mut self.space.program,
                &mut self.emitter.registers,
                self.thread,
            ),
            _ => CounterCode::None,
        };
        let leaves = match loops {
            None => self.plan_side_exit(decoded)?,
            Some(_) => None,
        };
        let holds = self.held
            && loops.is_none()
            && self.may_hold(decoded, counting, leaves.is_some())
            && !self.has_inquiry(decoded);
        Ok(BlockPlan { wanted, loops, derived, may_change, counting, leaves, holds })
    }

    /// Begins a block with the facts that its plan decides.
    fn begin_block(&mut self, decoded: &[Decoded], bytes: &[u8], plan: &BlockPlan) -> io::Result<u32> {
        let (first, last) = (&decoded[0], &decoded[decoded.len() - 1]);
        let counter = plan.derived.map_or_else(|| self.space.areas.new_counter(), |exit| Ok(exit.counter))?;
        if plan.may_change {
            self.emitter.code.align_room();
        }
        let warm_start = &mut self.space.warm_start;
        warm_start.unexpected += usize::from(!warm_start.is_warm);
        let entry = self.emitter.code.here();
        let block = self.space.cache.blocks.begin(first.address(), entry, counter);
        let region = self.space.program.regions.find(first.address());
        let (number, has_file) =
            region.map(|region| (region.number, region.file.is_some())).unwrap_or_default();
        if has_file && !self.space.program.regions.is_any_restless(first.address(), bytes.len()) {
            self.space.counting.propagation.note_level(
                &mut self.space.cache.blocks,
                block,
                plan.wanted,
                plan.derived.map(|_| block - 1),
                Some(last.flow()),
            );
        } else {
            self.space.cache.kept.push((block, bytes.into()));
        }
        let propagated = plan.wanted.is_some() && self.space.program.is_steady(first.address());
        let kept = self.block_mut(block);
        kept.region = number;
        kept.length = bytes.len() as u16;
        kept.instructions = decoded.len() as u8;
        kept.last_length = last.len() as u8;
        kept.holds = plan.holds;
        kept.derived = plan.derived.is_some();
        kept.counted_before = kept.derived || propagated;
        kept.begins_without_flags = plan.counting == CounterCode::Inc(0);
        self.emitter.steps.clear();
        if let Some(contexts) = self.contexts() {
            contexts.note_raising(block, decoded);
        }
        if plan.may_change {
            // Five bytes for a jump, in case the code is evicted while threads run it.
            self.emitter.write_step(0, |code| code.nop(5));
        }
        Ok(block)
    }

    /// Writes the counter code if it comes first. Returns the counter code that is still to be written.
    fn begin_counting(&mut self, block: u32, counting: CounterCode) -> CounterCode {
        let here = self.emitter.code.here();
        let kept = self.block_mut(block);
        if kept.counted_before {
            kept.counted_from = 0;
            return CounterCode::None;
        }
        if counting.place() != Some(0) {
            return counting;
        }
        kept.opens = here == kept.entry;
        self.write_count(block, counting);
        CounterCode::None
    }

    /// Notes the target region of a block's last instruction, if it is another region.
    fn note_direct_target(&mut self, block: u32) {
        let kept = self.block(block);
        if !matches!(kept.end, End::Call | End::Jump) {
            return;
        }
        let (region, target) = (kept.region, self.space.program.region_at(kept.target));
        if region != target {
            self.space.cache.direct_targets.insert(block, target);
        }
    }

    /// Notes where a block ends.
    pub(crate) fn finish_block(&mut self, block: u32) {
        let end = self.emitter.code.here();
        self.space.cache.blocks.finish(block, end, &self.emitter.steps);
        self.unit().blocks.push(block);
    }

    /// Writes an inline return check, if the table's entry is free.
    fn write_return_check(&mut self, address: u64) -> Option<(u64, u64)> {
        if !self.space.cache.return_table.is_free(address) || !self.emitter.batch.return_entries.take(address)
        {
            return None;
        }
        let otherwise = self.unit().routines.miss;
        let check = TargetCheck { address, location: TargetLocation::Popped, otherwise };
        let has_trees = self.space.areas.has_trees();
        if !has_trees {
            self.emitter.begin_line();
        }
        let code = &mut self.emitter.code;
        let return_check = code.here();
        let jump = check.write(code);
        match has_trees {
            true => self.held = true,
            false => TargetCheck::write_hit(None, code),
        }
        Some((return_check, jump))
    }

    /// Writes a block's instructions without the last one, if that transfers control.
    pub(crate) fn write_body(
        &mut self,
        block: u32,
        decoded: &[Decoded],
        window: &[u8],
        counting: CounterCode,
    ) {
        let first = decoded[0].address();
        for (at, one) in decoded.iter().enumerate() {
            if counting.place() == Some(at) {
                self.write_count(block, counting);
            }
            self.emitter.write_model_words(self.space.model.as_deref(), at, false);
            if one.flow() == Flow::Next {
                let from = (one.address() - first) as usize;
                self.write_copy(one, &window[from..from + one.len()]);
                self.emitter.write_model_words(self.space.model.as_deref(), at, true);
            }
        }
    }

    fn write_copy(&mut self, one: &Decoded, bytes: &[u8]) {
        if let Some(inquiry) = self.space.surroundings.answered(one) {
            return self.write_inquiry(inquiry, one, bytes);
        }
        let own = self.space.own_place();
        let lends = own.as_ref().and_then(|own| self.emitter.write_lending(one, own));
        let start = self.emitter.code.here();
        let emitter = &mut self.emitter;
        if let Err(refusal) =
            rewrite::copy(one, bytes, &REWRITE_SLOTS, &mut emitter.registers, &mut emitter.code)
        {
            self.write_refusal(one.address(), refusal);
        }
        let emitted = self.emitter.code.here() - start;
        self.emitter.steps.push(one.len(), emitted);
        if let (Some(own), Some(lending)) = (own, lends) {
            self.emitter.write_return_of_count(&lending, &own);
        }
    }
}
