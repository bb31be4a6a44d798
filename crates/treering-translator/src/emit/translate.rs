//! From the program's code to code that counts itself.

use std::io;

use treering_x86::flags::{self, FlagSet};
use treering_x86::{Decoded, Flow, LINE, Refusal, Register, decode, rewrite};

use crate::address_space::AddressSpace;
use crate::cache::block::End;
use crate::cache::target_check::{TargetCheck, TargetLocation};
use crate::context::SLOTS as CONTEXT_SLOTS;
use crate::context::count_batch::CountBatch;
use crate::counting::propagated_counts::EntryKind;
use crate::emit::counter_code::CounterCode;
use crate::emit::self_modifying::LONGEST_COMPARED;
use crate::emit::side_exit::SideExit;
use crate::sys::layout::{RETURN_ENTRIES, SLOTS};
use crate::sys::remote_syscall::StoppedThread;

/// How many blocks are translated for one request: those that it leads to directly.
const BLOCKS_AT_ONCE: usize = 32;
/// The same if it is known which of those are executed.
const HINTED_AT_ONCE: usize = 1 << 16;
/// Of more, some become known before the others are written: what that takes in memory is not needed for long.
const PUBLISHED_AT_ONCE: usize = 1 << 13;
/// The longest block, in instructions.
const LONGEST_BLOCK: usize = 48;
/// As many bytes are looked at for one block; what does not fit begins another.
const WINDOW: usize = 256;

/// Said of a program that went to an address that is none. The processor refuses the transfer itself; here it has
/// been made by then, and faults at its target.
const NOT_CANONICAL: &str = "it went to an address that is none (not canonical): the jump, call or return that the \
                             processor would have refused is counted as made";

/// Whether an address is one: bits 48 to 63 are as bit 47 (Intel SDM, volume 1, section 3.3.7.1).
const fn is_canonical(address: u64) -> bool {
    (address as i64) << 16 >> 16 == address as i64
}

/// How control arrives at what is written next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Continuation {
    /// By falling through from what stands before, or for the first time.
    Through(u64),
    /// By a return to it; nothing falls through.
    Return(u64),
    /// Not at all.
    None,
}

/// A block that was written, and is to be made known.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Written {
    block: u32,
    /// Its return check in the line and that return check's jump for other addresses.
    return_check: Option<(u64, u64)>,
    /// Whether it needs a return check that is not in the line.
    returned_to: bool,
}

/// What was written for one request, and becomes known when all of it stands in memory: most of its
/// jumps lead to blocks that are written later on for the same request.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    written: Vec<Written>,
    /// Jumps to addresses of the program, by unit.
    pub(crate) jumps: Vec<Jump>,
    return_entries: Entries,
}

impl Batch {
    /// How many blocks, jumps and return checks there are.
    fn lengths(&self) -> (usize, usize, usize) {
        (self.written.len(), self.jumps.len(), self.return_entries.list.len())
    }

    /// Forgets what came later: a trace that was broken off does not stand in memory.
    fn truncate(&mut self, (written, jumps, return_table): (usize, usize, usize)) {
        self.written.truncate(written);
        self.jumps.truncate(jumps);
        self.return_entries.truncate(return_table);
    }
}

/// Entries of the return table that what is being written will have.
#[derive(Debug)]
struct Entries {
    list: Vec<u16>,
    /// A bit for each entry.
    taken: Box<[u64; RETURN_ENTRIES / 64]>,
}

impl Default for Entries {
    fn default() -> Self {
        Self { list: Vec::new(), taken: Box::new([0; RETURN_ENTRIES / 64]) }
    }
}

impl Entries {
    /// Takes the entry of an address, unless it is taken.
    fn take(&mut self, address: u64) -> bool {
        let entry = address as u16;
        let (word, bit) = (&mut self.taken[usize::from(entry) / 64], 1 << (entry % 64));
        let is_free = *word & bit == 0;
        if is_free {
            *word |= bit;
            self.list.push(entry);
        }
        is_free
    }

    fn truncate(&mut self, length: usize) {
        for entry in self.list.drain(length..) {
            self.taken[usize::from(entry) / 64] &= !(1 << (entry % 64));
        }
    }
}

const _: () = assert!(RETURN_ENTRIES == 1 << u16::BITS);

/// A jump whose four bytes are to be filled in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Jump {
    pub(crate) unit: usize,
    pub(crate) site: u64,
    pub(crate) target: u64,
    /// How it comes there.
    pub(crate) entry_kind: EntryKind,
}

/// How a block is to be written.
#[derive(Debug)]
struct BlockPlan {
    /// Its level, if somebody wants to credit it.
    wanted: Option<u8>,
    /// The register in which it counts its own repetitions.
    loops: Option<Register>,
    /// How it is derived from the block before it.
    derived: Option<SideExit>,
    /// Whether the program may write to its code.
    may_change: bool,
    counting: CounterCode,
    /// How it is left otherwise than to a block that is derived from it.
    leaves: Option<SideExit>,
    /// Whether registers are held all through it.
    holds: bool,
}

/// Blocks that stand behind each other in a unit.
#[derive(Debug)]
pub(crate) struct Trace {
    pub(crate) unit: usize,
    first: usize,
    /// No block is begun once there are so many.
    most: usize,
    /// Addresses to be translated next.
    pub(crate) work: Vec<u64>,
    /// How the branch before what is written next is counted, if it is.
    pub(crate) side_exit: Option<SideExit>,
    /// Whether what is written next is come to with registers held: see [`treering_x86::context`].
    pub(crate) held: bool,
    /// The blocks that are paid for at once, up to the last one.
    pub(crate) count_batch: CountBatch,
}

impl AddressSpace {
    /// The translation of an address, which is made if there is none; nothing if it is no code.
    ///
    /// # Errors
    /// There is no room left, or the thread is gone.
    pub(crate) fn enter(&mut self, address: u64, thread: &mut StoppedThread<'_>) -> io::Result<Option<u64>> {
        if !self.regions.contains(address) {
            if !is_canonical(address) {
                self.warnings.push(NOT_CANONICAL);
            }
            return Ok(None);
        }
        self.regions.look_for_mark(address, thread);
        let asks = self.regions.asks(address);
        if asks || self.returns.contains(&address) {
            self.arrived = Some(address);
        }
        if asks {
            return self.enter_compared(address, thread);
        }
        if self.blocks.at(address).is_none() {
            let most = if self.begin_warm(address) { HINTED_AT_ONCE } else { BLOCKS_AT_ONCE };
            let translated = self.translate(address, most, thread);
            self.is_warm = false;
            translated?;
        }
        self.blocks.at(address).map(|block| self.counted_entry(block)).transpose()
    }

    /// Code that may have changed since: it is compared, and translated anew if it differs.
    fn enter_compared(&mut self, address: u64, thread: &mut StoppedThread<'_>) -> io::Result<Option<u64>> {
        if let Some(block) = self.blocks.at(address) {
            let old = self.compared.get(&block).cloned().unwrap_or_default();
            let mut now = vec![0; old.len()];
            let got = self.regions.fetch(address, &mut now, thread);
            if got != 0 && got == old.len() && *now == *old {
                return self.counted_entry(block).map(Some);
            }
            self.blocks.retire_one(block);
            self.end_propagation(&[block]);
            self.generations += 1;
        }
        self.live.clear();
        self.translate(address, 1, thread)?;
        let Some(block) = self.blocks.at(address) else { return Ok(None) };
        let mut bytes = vec![0; usize::from(self.blocks.get(block).length)];
        let got = self.regions.fetch(address, &mut bytes, thread);
        bytes.truncate(got);
        self.compared.insert(block, bytes.into());
        self.counted_entry(block).map(Some)
    }

    fn translate(&mut self, address: u64, most: usize, thread: &mut StoppedThread<'_>) -> io::Result<()> {
        let mut work = std::mem::take(&mut self.scratch.work);
        work.clear();
        work.push(address);
        let end = self.blocks.len() + most;
        let (mut at, mut done) = (0, Ok(()));
        loop {
            // Of few blocks, what is called or jumped to first comes first. Of many, what belongs together is to
            // stand together.
            let next = if self.is_warm { work.pop() } else { work.get(at).copied() };
            let (Some(next), Ok(())) = (next, &done) else { break };
            at += 1;
            if self.scratch.batch.written.len() >= PUBLISHED_AT_ONCE {
                self.publish();
            }
            if self.blocks.at(next).is_some() || self.is_cold(next) {
                continue;
            }
            if self.blocks.len() >= end {
                break;
            }
            self.regions.look_for_mark(next, thread);
            if next == address || !self.regions.asks(next) {
                let before = self.scratch.batch.lengths();
                done = self.write_trace(next, end, &mut work, thread);
                if done.is_err() {
                    self.scratch.batch.truncate(before);
                }
            }
        }
        self.scratch.work = work;
        self.publish();
        done?;
        self.link_presumed()
    }

    /// Writes blocks behind each other from an address on.
    fn write_trace(
        &mut self,
        address: u64,
        most: usize,
        work: &mut Vec<u64>,
        thread: &mut StoppedThread<'_>,
    ) -> io::Result<()> {
        let unit = self.unit_near(address, thread)?;
        self.scratch.code.restart(self.units[unit].here());
        self.begin_line();
        let held = self.write_entering(address, unit);
        let first = self.blocks.len();
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
            let begins = self.blocks.len() == trace.first;
            self.regions.look_for_mark(at, thread);
            if !begins && self.ends_trace(at, &trace) {
                self.leave_trace(at, returned_to, &mut trace);
                break;
            }
            continuation = match self.write_block(at, returned_to, &mut trace, thread)? {
                Some(next) => next,
                None if begins => break,
                None => {
                    self.leave_trace(at, returned_to, &mut trace);
                    break;
                }
            };
        }
        self.end_count_batch(&mut trace);
        self.units[unit].append(self.scratch.code.bytes());
        *work = trace.work;
        Ok(())
    }

    pub(crate) fn ends_trace(&self, at: u64, trace: &Trace) -> bool {
        self.blocks.at(at).is_some()
            || self.blocks.len() >= trace.most
            || self.regions.asks(at)
            || !self.regions.contains(at)
            || self.is_cold(at)
            // Who comes to what does not count itself must not fall into it.
            || self.wanted_level(at).is_some()
    }

    fn leave_trace(&mut self, at: u64, returned_to: bool, trace: &mut Trace) {
        if std::mem::take(&mut trace.held) {
            self.scratch.code.release(&CONTEXT_SLOTS);
        }
        if returned_to {
            // The return check is made when somebody returns there.
            return;
        }
        self.write_jump(at, trace);
    }

    /// Makes blocks known to each other and to the rest, now that all bytes are there: other threads
    /// may be running.
    fn publish(&mut self) {
        let mut batch = std::mem::take(&mut self.scratch.batch);
        for Jump { unit, site, target, entry_kind } in batch.jumps.drain(..) {
            let place = match self.entry_for(target, entry_kind, unit) {
                Some(entry) => entry,
                None => self.add_unlinked(unit, target, site, entry_kind),
            };
            self.units[unit].patch(site, place);
        }
        for written in batch.written.drain(..) {
            let (address, entry) = {
                let block = self.blocks.get(written.block);
                (block.address, block.entry)
            };
            if self.regions.asks(address) {
                continue;
            }
            match written.return_check {
                Some((return_check, jump)) => self.open_return(address, return_check, jump),
                None if written.returned_to => self.ensure_return(address, entry),
                None => {}
            }
            self.link_incoming(written.block);
        }
        batch.return_entries.truncate(0);
        self.scratch.batch = batch;
    }

    /// Writes one block; nothing if there is no instruction. Returns what is to follow it.
    fn write_block(
        &mut self,
        at: u64,
        returned_to: bool,
        trace: &mut Trace,
        thread: &mut StoppedThread<'_>,
    ) -> io::Result<Option<Continuation>> {
        let window = self.regions.window(at, WINDOW, thread);
        let mut decoded = std::mem::take(&mut self.scratch.decoded);
        decoded.clear();
        let most = if self.regions.is_own_writer(at) { 1 } else { LONGEST_BLOCK };
        let longest = if self.regions.is_any_restless(at, WINDOW) { LONGEST_COMPARED } else { WINDOW };
        decode(&window[..window.len().min(longest)], at, most, &mut decoded);
        if let Some(length) = self.regions.cut(&decoded, &window) {
            decoded.truncate(length);
        }
        let result = match decoded.is_empty() {
            true if trace.first == self.blocks.len() => {
                self.write_nothing(at, window.is_empty(), trace).map(Some)
            }
            true => Ok(None),
            false => self.write_decoded(&decoded, &window, returned_to, trace, thread).map(Some),
        };
        self.scratch.decoded = decoded;
        result
    }

    /// Bytes that are no instruction of ours: the program gets the fault that they are, or is ended
    /// if the processor knows better. Where there are none that could be read, it reads them itself, and gets the fault
    /// that this is.
    fn write_nothing(&mut self, at: u64, is_empty: bool, trace: &mut Trace) -> io::Result<Continuation> {
        let counter = self.new_counter()?;
        if std::mem::take(&mut trace.held) {
            self.scratch.code.release(&CONTEXT_SLOTS);
        }
        let entry = self.scratch.code.here();
        let block = self.blocks.begin(at, entry, counter);
        self.note_level(block, self.wanted_level(at), None, None);
        self.scratch.steps.clear();
        match is_empty && !self.regions.asks(at) {
            true => self.write_touch(block, trace),
            false => self.write_refusal(at, Refusal::Invalid, trace),
        }
        self.blocks.get_mut(block).end = End::Stop;
        self.finish_block(block, trace);
        self.scratch.batch.written.push(Written { block, return_check: None, returned_to: false });
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
            self.scratch.code.release(&CONTEXT_SLOTS);
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
                self.pay(block, decoded.len(), trace);
                self.write_body(block, decoded, window, counting, trace);
                let last_bytes = &window[(last.address() - first.address()) as usize..];
                let continuation = self.write_end(block, last, last_bytes, counting, trace, thread);
                self.note_direct_target(block);
                continuation
            }
        };
        self.finish_block(block, trace);
        self.scratch.batch.written.push(Written { block, return_check, returned_to });
        Ok(continuation)
    }

    /// Decides how a block is written, before anything of it is.
    fn plan_block(
        &mut self,
        decoded: &[Decoded],
        trace: &mut Trace,
        thread: &mut StoppedThread<'_>,
    ) -> io::Result<BlockPlan> {
        let (first, last) = (&decoded[0], &decoded[decoded.len() - 1]);
        let wanted = self.wanted_level(first.address());
        let register = self.loop_register(decoded).filter(|_| wanted.is_none());
        let derived = trace.side_exit.take();
        let derived = derived.filter(|_| register.is_none() && wanted.is_none() && self.is_derived(decoded));
        let may_change = [first.address(), last.next() - 1].into_iter().any(|at| self.regions.may_change(at));
        // A loop would not leave its translation when its code is changed.
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

    /// A new block, of which nothing but what its planning decides is known.
    fn begin_block(&mut self, decoded: &[Decoded], bytes: &[u8], plan: &BlockPlan) -> io::Result<u32> {
        let (first, last) = (&decoded[0], &decoded[decoded.len() - 1]);
        let counter = plan.derived.map_or_else(|| self.new_counter(), |exit| Ok(exit.counter))?;
        if plan.may_change {
            self.scratch.code.align_room();
        }
        self.unexpected += usize::from(!self.is_warm);
        let entry = self.scratch.code.here();
        let block = self.blocks.begin(first.address(), entry, counter);
        let region = self.regions.find(first.address());
        let (number, has_file) =
            region.map(|region| (region.number, region.file.is_some())).unwrap_or_default();
        if has_file && !self.regions.is_any_restless(first.address(), bytes.len()) {
            self.note_level(block, plan.wanted, plan.derived.map(|_| block - 1), Some(last.flow()));
        } else {
            self.kept.push((block, bytes.into()));
        }
        let propagated = plan.wanted.is_some() && self.is_steady(first.address());
        let kept = self.blocks.get_mut(block);
        kept.region = number;
        kept.length = bytes.len() as u16;
        kept.instructions = decoded.len() as u8;
        kept.last_length = last.len() as u8;
        kept.holds = plan.holds;
        kept.derived = plan.derived.is_some();
        kept.counted_before = kept.derived || propagated;
        kept.begins_without_flags = plan.counting == CounterCode::Inc(0);
        self.scratch.steps.clear();
        self.note_raising(block, decoded);
        if plan.may_change {
            // Five bytes for a jump, should the code be replaced while threads run it.
            self.scratch.code.nop(5);
            self.scratch.steps.push(0, 5);
        }
        Ok(block)
    }

    /// Writes the counter code if it comes first. Returns what is left to be done of that.
    fn begin_counting(&mut self, block: u32, counting: CounterCode) -> CounterCode {
        let here = self.scratch.code.here();
        let kept = self.blocks.get_mut(block);
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
        let end = self.scratch.code.here();
        self.blocks.finish(block, end, &self.scratch.steps);
        self.units[trace.unit].blocks.push(block);
    }

    /// What only jumps lead to begins in the first half of a line of the cache, on a quarter of it. It is fetched in
    /// fewer routines, and no longer depends on what happens to stand before it: a program of many small functions took
    /// 0.29 to 0.35 s otherwise, 0.29 so. To begin a line each time gains no more, and costs large programs room in
    /// their caches. With trees, where more is to be done on the way, all this gains nothing and costs up to a tenth.
    fn begin_line(&mut self) {
        if !self.has_contexts() {
            let code = &mut self.scratch.code;
            code.align(if code.here() % LINE > LINE / 2 { LINE } else { LINE / 4 });
        }
    }

    /// The check of a return's address in the line, if the table has room for it.
    fn write_return_check(&mut self, address: u64, trace: &mut Trace) -> Option<(u64, u64)> {
        if !self.return_table.is_free(address) || !self.scratch.batch.return_entries.take(address) {
            return None;
        }
        let otherwise = self.units[trace.unit].routines.miss;
        let check = TargetCheck { address, location: TargetLocation::Popped, otherwise };
        self.begin_line();
        let code = &mut self.scratch.code;
        let return_check = code.here();
        let jump = check.write(code);
        match self.has_contexts() {
            true => trace.held = true,
            false => TargetCheck::write_hit(None, &mut self.scratch.code),
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
        let start = self.scratch.code.here();
        let scratch = &mut self.scratch;
        if let Err(refusal) = rewrite::copy(one, bytes, &SLOTS, &mut scratch.registers, &mut scratch.code) {
            self.write_refusal(one.address(), refusal, trace);
        }
        let emitted = self.scratch.code.here() - start;
        self.scratch.steps.push(one.len(), emitted);
        if let Some(lending) = lends {
            self.write_return_of_count(lending);
        }
    }

    /// The flags that are live before an address.
    pub(crate) fn live_at(&mut self, address: u64, depth: u32, thread: &mut StoppedThread<'_>) -> FlagSet {
        if let Some(&known) = self.live.get(&address) {
            return known;
        }
        if self.regions.is_any_restless(address, 1) {
            // It may be other code by then.
            return FlagSet::ALL;
        }
        let window = self.regions.window(address, 96, thread);
        let look = flags::look(&window, address, 24);
        let mut after = |space: &mut Self, target| space.live_at(target, depth - 1, thread);
        let rest = match look.then {
            _ if look.open == FlagSet::NONE => FlagSet::NONE,
            Some((Flow::Jump(target) | Flow::Call(target), _)) if depth > 0 => after(self, target),
            Some((Flow::Branch { target, .. } | Flow::CountedBranch(target), next)) if depth > 0 => {
                after(self, target).or(after(self, next))
            }
            _ => FlagSet::ALL,
        };
        let live = look.read.or(rest.and(look.open));
        if depth == DEPTH || look.open == FlagSet::NONE {
            self.live.insert(address, live);
        }
        live
    }
}

/// How many blocks are looked at behind one for whether its flags are live.
pub(crate) const DEPTH: u32 = 2;
