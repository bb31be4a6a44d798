//! Translation: basic blocks are decoded, laid out in traces, written, and published.

use std::io;

use treering_x86::{Decoded, Flow, LINE, Refusal, Register, decode, rewrite};

use crate::address_space::AddressSpace;
use crate::areas::tree_layout::SLOTS as CONTEXT_SLOTS;
use crate::cache::batch::{Jump, Written};
use crate::cache::block::End;
use crate::cache::emitter::Emitter;
use crate::cache::target_check::{TargetCheck, TargetLocation};
use crate::emit::count_batch::CountBatch;
use crate::emit::counter_code::CounterCode;
use crate::emit::self_modifying::LONGEST_COMPARED;
use crate::emit::side_exit::SideExit;
use crate::sys::layout::SLOTS as REWRITE_SLOTS;
use crate::sys::remote_syscall::StoppedThread;

/// The most blocks translated for one request: those that it leads to directly.
const BLOCKS_AT_ONCE: usize = 32;
/// The same if the history says which of them are executed.
const HINTED_AT_ONCE: usize = 1 << 16;
/// After this many blocks, a part of a large translation is published, so that its buffers stay small.
const PUBLISHED_AT_ONCE: usize = 1 << 13;
/// The longest block, in instructions.
const LONGEST_BLOCK: usize = 48;
/// The most bytes that are decoded for one block; further instructions begin another block.
const WINDOW: usize = 256;

/// The note for a program that jumped to a non-canonical address. The processor refuses such a transfer
/// itself; translated code makes it, and faults at its target.
const NOT_CANONICAL: &str = "it jumped to a non-canonical address; the transfer is counted although the processor would have refused it";

/// Whether an address is canonical: bits 48 to 63 equal bit 47 (Intel SDM, volume 1, section 3.3.7.1).
const fn is_canonical(address: u64) -> bool {
    (address as i64) << 16 >> 16 == address as i64
}

/// How control reaches the next code of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Continuation {
    /// By falling through from the previous block, or as the beginning of the trace.
    Through(u64),
    /// By a return; nothing falls through.
    Return(u64),
    /// Not at all: the trace ends.
    None,
}

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

/// A trace that is being written: blocks behind each other in a unit.
#[derive(Debug)]
pub(crate) struct Trace {
    pub(crate) unit: usize,
    first: usize,
    /// Once there are this many blocks, no other is begun.
    most: usize,
    /// Addresses to be translated next.
    pub(crate) work: Vec<u64>,
    /// The side exit of the branch before the next block, if it has one.
    pub(crate) side_exit: Option<SideExit>,
    /// Whether control reaches the next block with registers held: see [`treering_x86::context`].
    pub(crate) held: bool,
    /// The count batch that is being written.
    pub(crate) count_batch: CountBatch,
}

impl AddressSpace {
    /// The translation of an address, which is made if there is none; nothing if there is no code.
    ///
    /// # Errors
    /// There is no room left, or the thread has ended.
    pub(crate) fn enter(&mut self, address: u64, thread: &mut StoppedThread<'_>) -> io::Result<Option<u64>> {
        if !self.program.regions.contains(address) {
            if !is_canonical(address) {
                self.warnings.push(NOT_CANONICAL);
            }
            return Ok(None);
        }
        self.program.regions.look_for_mark(address, thread);
        let asks = self.program.regions.asks(address);
        if asks || self.cache.watched_returns.contains(&address) {
            self.arrived = Some(address);
        }
        // The processor reads on, where nothing may be executed: the program goes there, and gets that fault.
        if (asks || self.cache.blocks.at(address).is_none())
            && self.program.regions.end_within(address, thread).is_some()
        {
            return Ok(None);
        }
        if asks {
            return self.enter_compared(address, thread);
        }
        if self.cache.blocks.at(address).is_none() {
            let most = if self.begin_warm(address) { HINTED_AT_ONCE } else { BLOCKS_AT_ONCE };
            let translated = self.translate(address, most, thread);
            self.warm_start.is_warm = false;
            translated?;
        }
        self.cache.blocks.at(address).map(|block| self.counted_entry(block)).transpose()
    }

    /// Begins to translate from an address. Returns whether the history says which of the code that it leads
    /// to is executed.
    fn begin_warm(&mut self, address: u64) -> bool {
        for number in self.warm_start.new_regions(self.program.regions.log().len()) {
            let module = self.warm_start.module_of(&self.program.regions.log()[number]);
            // Whether a jump is a call must not depend on the order of translation.
            let is_usable = module.is_some() && (!self.areas.has_trees() || self.has_starts(number));
            self.warm_start.follow(module.filter(|_| is_usable));
        }
        self.warm_start.is_warm = self.warm_start.is_hinted(&self.program.regions, address);
        self.warm_start.is_warm
    }

    /// Enters code that may have changed: compares it, and translates it anew if it differs.
    fn enter_compared(&mut self, address: u64, thread: &mut StoppedThread<'_>) -> io::Result<Option<u64>> {
        if let Some(block) = self.cache.blocks.at(address) {
            let old = self.cache.compared.get(&block).cloned().unwrap_or_default();
            let mut now = vec![0; old.len()];
            let got = self.program.regions.fetch(address, &mut now, thread);
            if got != 0 && got == old.len() && *now == *old {
                return self.counted_entry(block).map(Some);
            }
            self.cache.blocks.retire_one(block);
            self.end_propagation(&[block]);
            self.cache.generations += 1;
        }
        self.program.live.clear();
        self.translate(address, 1, thread)?;
        let Some(block) = self.cache.blocks.at(address) else { return Ok(None) };
        let mut bytes = vec![0; usize::from(self.cache.blocks.get(block).length)];
        let got = self.program.regions.fetch(address, &mut bytes, thread);
        bytes.truncate(got);
        self.cache.compared.insert(block, bytes.into());
        self.counted_entry(block).map(Some)
    }

    fn translate(&mut self, address: u64, most: usize, thread: &mut StoppedThread<'_>) -> io::Result<()> {
        let mut work = std::mem::take(&mut self.emitter.work);
        work.clear();
        work.push(address);
        let end = self.cache.blocks.len() + most;
        let (mut at, mut done) = (0, Ok(()));
        loop {
            // Without history, called and jumped-to code comes in the order of the requests. With it, code
            // that belongs together is put together.
            let next = if self.warm_start.is_warm { work.pop() } else { work.get(at).copied() };
            let (Some(next), Ok(())) = (next, &done) else { break };
            at += 1;
            if self.emitter.batch.written.len() >= PUBLISHED_AT_ONCE {
                self.publish();
            }
            if self.cache.blocks.at(next).is_some() || self.warm_start.is_cold(&self.program.regions, next) {
                continue;
            }
            if self.cache.blocks.len() >= end {
                break;
            }
            self.program.regions.look_for_mark(next, thread);
            if next == address || !self.program.regions.asks(next) {
                let before = self.emitter.batch.lengths();
                done = self.write_trace(next, end, &mut work, thread);
                if done.is_err() {
                    self.emitter.batch.truncate(before);
                }
            }
        }
        self.emitter.work = work;
        self.publish();
        done?;
        self.link_presumed()
    }

    /// Writes a trace from an address on.
    fn write_trace(
        &mut self,
        address: u64,
        most: usize,
        work: &mut Vec<u64>,
        thread: &mut StoppedThread<'_>,
    ) -> io::Result<()> {
        let unit = self.cache.unit_near(address, thread)?;
        self.emitter.code.restart(self.cache.units[unit].here());
        self.begin_line();
        let held = self.write_entering(address, unit);
        let first = self.cache.blocks.len();
        let taken = std::mem::take(work);
        let mut trace = Trace {
            unit,
            first,
            most,
            work: taken,
            side_exit: None,
            held,
            count_batch: CountBatch::default(),
        };
        let mut continuation = Continuation::Through(address);
        loop {
            let (at, returned_to) = match continuation {
                Continuation::Through(at) => (at, false),
                Continuation::Return(at) => (at, true),
                Continuation::None => break,
            };
            let begins = self.cache.blocks.len() == trace.first;
            self.program.regions.look_for_mark(at, thread);
            if !begins && self.ends_trace(at, &trace) {
                self.emitter.leave_trace(at, returned_to, &mut trace);
                break;
            }
            continuation = match self.write_block(at, returned_to, &mut trace, thread)? {
                Some(next) => next,
                None if begins => break,
                None => {
                    self.emitter.leave_trace(at, returned_to, &mut trace);
                    break;
                }
            };
        }
        self.end_count_batch(&mut trace);
        self.cache.units[unit].append(self.emitter.code.bytes());
        *work = trace.work;
        Ok(())
    }

    pub(crate) fn ends_trace(&self, at: u64, trace: &Trace) -> bool {
        self.cache.blocks.at(at).is_some()
            || self.cache.blocks.len() >= trace.most
            || self.program.regions.asks(at)
            || !self.program.regions.contains(at)
            || self.warm_start.is_cold(&self.program.regions, at)
            // Control must not fall into a block that does not count itself, except from a block that counts for it.
            || self.counting.propagation.wanted_level(at).is_some()
    }

    /// Publishes the batch, now that all its code is in memory: other threads may be running.
    fn publish(&mut self) {
        let mut batch = std::mem::take(&mut self.emitter.batch);
        for Jump { unit, site, target, entry_kind } in batch.jumps.drain(..) {
            let place = match self.entry_for(target, entry_kind, unit) {
                Some(entry) => entry,
                None => self.cache.add_unlinked(unit, target, site, entry_kind),
            };
            self.cache.units[unit].patch(site, place);
        }
        for written in batch.written.drain(..) {
            let (address, entry) = {
                let block = self.cache.blocks.get(written.block);
                (block.address, block.entry)
            };
            if self.program.regions.asks(address) {
                continue;
            }
            match written.return_check {
                Some((return_check, jump)) => self.cache.open_return(address, return_check, jump),
                None if written.returned_to => self.cache.ensure_return(address, entry),
                None => {}
            }
            self.link_incoming(written.block);
        }
        batch.return_entries.truncate(0);
        self.emitter.batch = batch;
    }

    /// Writes one block; nothing if there is no instruction. Returns how the trace continues.
    fn write_block(
        &mut self,
        at: u64,
        returned_to: bool,
        trace: &mut Trace,
        thread: &mut StoppedThread<'_>,
    ) -> io::Result<Option<Continuation>> {
        let window = self.program.regions.window(at, WINDOW, thread);
        let mut decoded = std::mem::take(&mut self.emitter.decoded);
        decoded.clear();
        let most = if self.program.regions.is_own_writer(at) { 1 } else { LONGEST_BLOCK };
        let longest =
            if self.program.regions.is_any_restless(at, WINDOW) { LONGEST_COMPARED } else { WINDOW };
        decode(&window[..window.len().min(longest)], at, most, &mut decoded);
        if let Some(length) = self.program.regions.cut(&decoded, &window) {
            decoded.truncate(length);
        }
        let result = match decoded.is_empty() {
            true if trace.first == self.cache.blocks.len() => {
                self.write_nothing(at, window.is_empty(), trace).map(Some)
            }
            true => Ok(None),
            false => self.write_decoded(&decoded, &window, returned_to, trace, thread).map(Some),
        };
        self.emitter.decoded = decoded;
        result
    }

    /// Handles bytes that cannot be decoded. The program gets the fault that they cause. If the processor
    /// executes them after all, the program is ended. If the address cannot be read, the program reads it
    /// itself, and gets that fault.
    fn write_nothing(&mut self, at: u64, is_empty: bool, trace: &mut Trace) -> io::Result<Continuation> {
        let counter = self.areas.new_counter()?;
        if std::mem::take(&mut trace.held) {
            self.emitter.code.release(&CONTEXT_SLOTS);
        }
        let entry = self.emitter.code.here();
        let block = self.cache.blocks.begin(at, entry, counter);
        self.counting.propagation.note_level(
            &mut self.cache.blocks,
            block,
            self.counting.propagation.wanted_level(at),
            None,
            None,
        );
        self.emitter.steps.clear();
        match is_empty && !self.program.regions.asks(at) {
            true => self.write_touch(block, trace),
            false => self.write_refusal(at, Refusal::Invalid, trace),
        }
        self.cache.blocks.get_mut(block).end = End::Stop;
        self.finish_block(block, trace);
        self.emitter.batch.written.push(Written { block, return_check: None, returned_to: false });
        Ok(Continuation::None)
    }

    fn write_decoded(
        &mut self,
        decoded: &[Decoded],
        window: &[u8],
        returned_to: bool,
        trace: &mut Trace,
        thread: &mut StoppedThread<'_>,
    ) -> io::Result<Continuation> {
        let (first, last) = (&decoded[0], &decoded[decoded.len() - 1]);
        let return_check = if returned_to { self.write_return_check(first.address(), trace) } else { None };
        let plan = self.plan_block(decoded, trace, thread)?;
        if std::mem::take(&mut trace.held) && !plan.holds {
            self.emitter.code.release(&CONTEXT_SLOTS);
        }
        let bytes = &window[..(last.next() - first.address()) as usize];
        let block = self.begin_block(decoded, bytes, &plan)?;
        self.write_comparison(block, bytes, trace);
        self.write_model_entry(block, decoded, trace);
        let continuation = match plan.loops {
            Some(register) => self.write_loop(block, decoded, window, register, trace),
            None => {
                trace.side_exit = plan.leaves;
                trace.held = plan.holds && plan.leaves.is_some();
                let counting = self.begin_counting(block, plan.counting);
                self.batch_instructions(block, decoded.len(), trace);
                self.write_body(block, decoded, window, counting, trace);
                let last_bytes = &window[(last.address() - first.address()) as usize..];
                let continuation = self.write_end(block, last, last_bytes, counting, trace, thread);
                self.note_direct_target(block);
                continuation
            }
        };
        self.finish_block(block, trace);
        self.emitter.batch.written.push(Written { block, return_check, returned_to });
        Ok(continuation)
    }

    /// Plans how a block is written.
    fn plan_block(
        &mut self,
        decoded: &[Decoded],
        trace: &mut Trace,
        thread: &mut StoppedThread<'_>,
    ) -> io::Result<BlockPlan> {
        let (first, last) = (&decoded[0], &decoded[decoded.len() - 1]);
        let wanted = self.counting.propagation.wanted_level(first.address());
        let register = self.emitter.loop_register(decoded).filter(|_| wanted.is_none());
        let derived = trace.side_exit.take();
        let derived = derived.filter(|_| register.is_none() && wanted.is_none() && self.is_derived(decoded));
        let may_change =
            [first.address(), last.next() - 1].into_iter().any(|at| self.program.regions.may_change(at));
        // A loop would not leave its translation when its code changes.
        let loops = register.filter(|_| !may_change && !self.is_modelled());
        let counting = match (loops, derived) {
            (None, None) => self.plan(decoded, thread),
            _ => CounterCode::None,
        };
        let leaves = match loops {
            None => self.plan_side_exit(decoded, trace, thread)?,
            Some(_) => None,
        };
        let holds = trace.held && loops.is_none() && self.may_hold(decoded, counting, leaves.is_some());
        Ok(BlockPlan { wanted, loops, derived, may_change, counting, leaves, holds })
    }

    /// Begins a block with the facts that its plan decides.
    fn begin_block(&mut self, decoded: &[Decoded], bytes: &[u8], plan: &BlockPlan) -> io::Result<u32> {
        let (first, last) = (&decoded[0], &decoded[decoded.len() - 1]);
        let counter = plan.derived.map_or_else(|| self.areas.new_counter(), |exit| Ok(exit.counter))?;
        if plan.may_change {
            self.emitter.code.align_room();
        }
        self.warm_start.unexpected += usize::from(!self.warm_start.is_warm);
        let entry = self.emitter.code.here();
        let block = self.cache.blocks.begin(first.address(), entry, counter);
        let region = self.program.regions.find(first.address());
        let (number, has_file) =
            region.map(|region| (region.number, region.file.is_some())).unwrap_or_default();
        if has_file && !self.program.regions.is_any_restless(first.address(), bytes.len()) {
            self.counting.propagation.note_level(
                &mut self.cache.blocks,
                block,
                plan.wanted,
                plan.derived.map(|_| block - 1),
                Some(last.flow()),
            );
        } else {
            self.cache.kept.push((block, bytes.into()));
        }
        let propagated = plan.wanted.is_some() && self.program.is_steady(first.address());
        let kept = self.cache.blocks.get_mut(block);
        kept.region = number;
        kept.length = bytes.len() as u16;
        kept.instructions = decoded.len() as u8;
        kept.last_length = last.len() as u8;
        kept.holds = plan.holds;
        kept.derived = plan.derived.is_some();
        kept.counted_before = kept.derived || propagated;
        kept.begins_without_flags = plan.counting == CounterCode::Inc(0);
        self.emitter.steps.clear();
        self.note_raising(block, decoded);
        if plan.may_change {
            // Five bytes for a jump, in case the code is evicted while threads run it.
            self.emitter.code.nop(5);
            self.emitter.steps.push(0, 5);
        }
        Ok(block)
    }

    /// Writes the counter code if it comes first. Returns the counter code that is still to be written.
    fn begin_counting(&mut self, block: u32, counting: CounterCode) -> CounterCode {
        let here = self.emitter.code.here();
        let kept = self.cache.blocks.get_mut(block);
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

    fn finish_block(&mut self, block: u32, trace: &Trace) {
        let end = self.emitter.code.here();
        self.cache.blocks.finish(block, end, &self.emitter.steps);
        self.cache.units[trace.unit].blocks.push(block);
    }

    /// Aligns a block that only jumps reach: it begins in the first half of a cache line, at a multiple of a
    /// quarter line. So it is fetched in fewer pieces, and its speed does not depend on the code before it: a
    /// program of many small functions took 0.29 to 0.35 s without this, and takes 0.29 s with it. Aligning
    /// to a whole line gains no more, and costs large programs room in their caches. With trees, which add
    /// more code, alignment gains nothing and costs up to a tenth.
    fn begin_line(&mut self) {
        if !self.areas.has_trees() {
            let code = &mut self.emitter.code;
            code.align(if code.here() % LINE > LINE / 2 { LINE } else { LINE / 4 });
        }
    }

    /// Writes an inline return check, if the table's entry is free.
    fn write_return_check(&mut self, address: u64, trace: &mut Trace) -> Option<(u64, u64)> {
        if !self.cache.return_table.is_free(address) || !self.emitter.batch.return_entries.take(address) {
            return None;
        }
        let otherwise = self.cache.units[trace.unit].routines.miss;
        let check = TargetCheck { address, location: TargetLocation::Popped, otherwise };
        self.begin_line();
        let code = &mut self.emitter.code;
        let return_check = code.here();
        let jump = check.write(code);
        match self.areas.has_trees() {
            true => trace.held = true,
            false => TargetCheck::write_hit(None, &mut self.emitter.code),
        }
        Some((return_check, jump))
    }

    pub(crate) fn write_body(
        &mut self,
        block: u32,
        decoded: &[Decoded],
        window: &[u8],
        counting: CounterCode,
        trace: &mut Trace,
    ) {
        let first = decoded[0].address();
        for (at, one) in decoded.iter().enumerate() {
            if counting.place() == Some(at) {
                self.write_count(block, counting);
            }
            self.write_model_words(at, false);
            if one.flow() == Flow::Next {
                let from = (one.address() - first) as usize;
                self.write_copy(one, &window[from..from + one.len()], trace);
                self.write_model_words(at, true);
            }
        }
    }

    fn write_copy(&mut self, one: &Decoded, bytes: &[u8], trace: &mut Trace) {
        let lends = self.write_lending(one);
        let start = self.emitter.code.here();
        let emitter = &mut self.emitter;
        if let Err(refusal) =
            rewrite::copy(one, bytes, &REWRITE_SLOTS, &mut emitter.registers, &mut emitter.code)
        {
            self.write_refusal(one.address(), refusal, trace);
        }
        let emitted = self.emitter.code.here() - start;
        self.emitter.steps.push(one.len(), emitted);
        if let Some(lending) = lends {
            self.write_return_of_count(lending);
        }
    }
}

impl Emitter {
    fn leave_trace(&mut self, at: u64, returned_to: bool, trace: &mut Trace) {
        if std::mem::take(&mut trace.held) {
            self.code.release(&CONTEXT_SLOTS);
        }
        if returned_to {
            // The return check is made at the first return to the address.
            return;
        }
        self.write_jump(at, trace);
    }
}
