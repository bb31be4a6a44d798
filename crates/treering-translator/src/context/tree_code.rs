//! The code that keeps the tree: what blocks, calls and returns become.

use std::collections::BTreeSet;
use std::ops::Bound;

use treering_x86::context::{
    CHECK_ROOM, Callee, ENTER_ROOM, FRAME, LOOK_UP_ROOM, MOST_LASTS, REPLACE_ROOM, raises_stack,
};
use treering_x86::lending::{Lending, clears_upper_parts};
use treering_x86::{Assembler, Decoded, Flow, Register};

use crate::address_space::AddressSpace;
use crate::cache::block::End;
use crate::cache::link::ExitStub;
use crate::cache::unit::Unit;
use crate::cache::unload::NO_REGION;
use crate::counting::propagated_counts::EntryKind;
use crate::emit::counter_code::CounterCode;
use crate::program::region::PAGE;
use crate::run::TreeLimits;
use crate::sys::layout::REQUEST;

use super::{
    CallKind, ContextRequest, Contexts, FRAMES_SIZE, FileFunctionStarts, FunctionStarts, LARGEST_TREE,
    MOST_NODES, SLOTS,
};

/// Routines and constants of a unit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ContextRoutines {
    /// Counts of up to so many instructions as a row of blocks may have, sixteen bytes each.
    counts: u64,
    /// The count of a new activation.
    one: u64,
    /// Looks a child up.
    pub(super) find: u64,
    /// Where registers are first in use in it, and where it ends.
    pub(super) find_uses: u64,
    pub(super) find_end: u64,
    /// Leaves frames that the stack pointer says are over.
    unwind: u64,
    /// Where in that there may be any number of instructions.
    pub(super) unwinding: (u64, u64),
}

impl ContextRoutines {
    /// Where a count of so many instructions stands.
    pub(super) fn count(&self, instructions: u8) -> u64 {
        self.counts + u64::from(instructions) * 16
    }
}

impl Contexts {
    /// The number of the function that is entered at an address, which lies in a region.
    pub(super) fn number(&mut self, address: u64, region: u32) -> u32 {
        if self.addresses.is_empty() {
            self.addresses.push(0);
            self.regions.push(NO_REGION);
        }
        *self.numbers.entry(address).or_insert_with(|| {
            self.addresses.push(address);
            self.regions.push(region);
            self.addresses.len() as u32 - 1
        })
    }
}

impl Unit {
    /// Adds the routines that all contexts use.
    pub(crate) fn add_context(&mut self, unwind: u32, room: u32) {
        let mut bytes = Vec::new();
        for count in 0..=u8::MAX {
            bytes.extend_from_slice(&u64::from(count).to_le_bytes());
            bytes.extend_from_slice(&[0; 8]);
        }
        bytes.extend_from_slice(&super::NEW.map(u64::to_le_bytes).concat());
        let counts = self.here();
        self.append(&bytes);
        let find = self.here();
        let request = self.routines.request_saved;
        let mut code = Assembler::new(find);
        let find_uses = code.find_child(&SLOTS);
        let find_end = code.here();
        code.store_gs_value(REQUEST, room);
        code.jump(request);
        let unwind_stub = code.here();
        let unwinding = code.leave_frames(&SLOTS, |code| {
            code.store_gs_value(REQUEST, unwind);
            code.jump(request);
        });
        code.align(64);
        self.append(code.bytes());
        let one = counts + (u64::from(u8::MAX) + 1) * 16;
        self.context =
            Some(ContextRoutines { counts, one, find, find_uses, find_end, unwind: unwind_stub, unwinding });
    }
}

/// No stub of a linkage table is larger.
const STUB: u64 = 16;

impl AddressSpace {
    /// Where functions are entered, by number, if trees are kept.
    pub(crate) fn functions(&self) -> &[u64] {
        self.context.as_ref().map_or(&[], |context| &context.addresses)
    }

    /// Other functions are entered between two addresses from now on.
    pub(crate) fn forget_functions(&mut self, start: u64, end: u64) {
        let Some(context) = &mut self.context else { return };
        let stays = |address: &u64| !(start..end).contains(address);
        context.numbers.retain(|address, _| stays(address));
        context.stubs.retain(|(_, address, _), _| stays(address));
        context.in_line.retain(|(address, _), _| stays(address));
    }

    /// Whether trees are kept.
    pub(crate) fn has_contexts(&self) -> bool {
        self.context.is_some()
    }

    /// Prepares what trees need, before there is a unit.
    pub(crate) fn prepare_contexts(&mut self, files: FileFunctionStarts, limits: TreeLimits) {
        let unwind = self.exits.add(ExitStub::Context(ContextRequest::Unwind));
        let room = self.exits.add(ExitStub::Context(ContextRequest::Room));
        let wide = std::arch::is_x86_feature_detected!("avx512f");
        self.context = Some(Box::new(Contexts {
            unwind,
            room,
            wide,
            files,
            most_nodes: limits.nodes.unwrap_or(MOST_NODES).min(LARGEST_TREE),
            most_frames: limits.frames.map_or(FRAMES_SIZE, |frames| {
                (frames * u64::from(FRAME)).next_multiple_of(PAGE).clamp(2 * PAGE, FRAMES_SIZE)
            }),
            ..Contexts::default()
        }));
    }

    /// Gives the newest unit its routines.
    pub(crate) fn add_context_routines(&mut self) {
        if let (Some(context), Some(unit)) = (&self.context, self.units.last_mut()) {
            unit.add_context(context.unwind, context.room);
        }
    }

    /// Leaves the current node before a return; rcx was saved. Registers stay held, but where more than the address
    /// is taken off the stack.
    ///
    /// `bytes`: how many the return takes off the stack. Where it is not that of the activation on top, frames are
    /// over that were entered below what is left of the stack: a function may have moved its return address down,
    /// and then have handed its place on to one with more arguments.
    pub(crate) fn write_leave(&mut self, block: u32, unit: usize, bytes: u16) {
        let Some(routines) = self.units[unit].context else { return };
        let code = &mut self.scratch.code;
        if !self.blocks.get(block).holds {
            code.store_gs(SLOTS.r11, Register::R11);
            code.load_frame(&SLOTS);
        }
        let (site, behind) = code.leave_node(&SLOTS, routines.unwind);
        if bytes != 0 {
            code.load_gs(Register::R11, SLOTS.r11);
        }
        let mut otherwise = 0;
        let room = if bytes == 0 { 48 } else { 64 };
        self.units[unit].append_cold(room, |code| {
            let go_on = code.here();
            if bytes != 0 {
                code.add(Register::RSP, -i32::from(bytes));
            }
            code.load_frame(&SLOTS);
            code.jump(behind);
            otherwise = code.here();
            if bytes != 0 {
                code.add(Register::RSP, bytes.into());
            }
            code.store_address(SLOTS.go_on, go_on);
            code.jump(routines.unwind);
        });
        self.scratch.code.patch(site, otherwise);
    }

    /// Whether registers may be held all through a block, in which nothing may use them: from where a return or a call
    /// leads to the next one. Of code that may be taken out of use often, nothing is held.
    ///
    /// `goes_on`: if the block ends in a branch, what follows is come to from nowhere else.
    pub(crate) fn may_hold(&mut self, decoded: &[Decoded], counting: CounterCode, goes_on: bool) -> bool {
        let ends = match decoded[decoded.len() - 1].flow() {
            Flow::Call(_) | Flow::Return(0) => true,
            Flow::Branch { .. } => goes_on,
            _ => false,
        };
        if !ends || counting == CounterCode::AtEnd {
            return false;
        }
        let used = self.scratch.registers.used_by_all(decoded);
        !used.has(Register::RCX)
            && !used.has(Register::R11)
            && decoded
                .iter()
                .all(|one| !one.uses_gs() && Lending::of(one).is_none() && !clears_upper_parts(one))
            && self.is_steady(decoded[0].address())
    }

    /// Where a call of an address is to go, once it is known that control comes back behind it.
    pub(crate) fn note_call(&mut self, target: Option<u64>, next: u64) {
        if let Some(context) = &mut self.context {
            context.returns.insert(next);
            context.called.extend(target);
        }
    }

    /// Notes that a site jumps through a fixed place in memory.
    pub(crate) fn note_linkage(&mut self, site: u32) {
        if let Some(context) = &mut self.context {
            context.linkage.insert(site);
        }
    }

    /// Notes whether a block that ends in an indirect jump moves the stack pointer up, as what leaves
    /// several functions at once must.
    pub(crate) fn note_raising(&mut self, block: u32, decoded: &[Decoded]) {
        let Some(context) = &mut self.context else { return };
        let jumps = decoded.last().is_some_and(|last| last.flow() == Flow::IndirectJump);
        if jumps && decoded.iter().any(raises_stack) {
            context.raising.insert(block);
        }
    }

    /// Writes what enters a function where its code is to follow, if one that is called begins there and trees are
    /// kept. Whether it did: what follows is come to with registers held.
    pub(crate) fn write_entering(&mut self, address: u64, unit: usize) -> bool {
        if !self.context.as_ref().is_some_and(|context| context.called.contains(&address)) {
            return false;
        }
        let Some(callee) = self.callee(unit, address) else { return false };
        let stub = self.scratch.code.here();
        let look_up = self.scratch.code.enter_node(&SLOTS, &callee);
        let place =
            self.units[unit].append_cold(LOOK_UP_ROOM, |code| code.look_up(&SLOTS, &callee, &look_up));
        self.scratch.code.patch(look_up.site, place);
        let propagates = self.wanted_level(address).is_some() && self.is_steady(address);
        if let Some(context) = &mut self.context {
            context.in_line.insert((address, propagates), stub);
        }
        true
    }

    /// The stub by which a call enters a function that was translated; `credits`: that is not counted there. None
    /// if it is always to be counted.
    pub(crate) fn entering_stub_for(&mut self, unit: usize, target: u64, propagates: bool) -> Option<u64> {
        let in_line = self.context.as_ref().and_then(|context| context.in_line.get(&(target, propagates)));
        if let Some(&stub) = in_line {
            return Some(stub);
        }
        if !propagates {
            return Some(self.context_stub(unit, target, CallKind::Call));
        }
        let entry = self.uncounted_entry(self.blocks.at(target)?)?;
        let key = (unit as u8, target, CallKind::PropagatedCall);
        if let Some(&known) = self.context.as_ref().and_then(|context| context.stubs.get(&key)) {
            return Some(known);
        }
        let stub = self.write_entering_stub(unit, target, CallKind::PropagatedCall, entry, false);
        if let Some(context) = &mut self.context {
            context.stubs.insert(key, stub);
        }
        Some(stub)
    }

    /// The stub by which a call enters a function whose code is asked for behind that.
    pub(crate) fn asking_stub(&mut self, unit: usize, target: u64) -> u64 {
        self.context_stub(unit, target, CallKind::Call)
    }

    /// The stub by which a jump enters another function, if that is known to be one.
    pub(crate) fn jump_stub(&mut self, unit: usize, target: u64) -> Option<u64> {
        self.is_function(target).then(|| self.context_stub(unit, target, CallKind::Jump))
    }

    /// Where an indirect transfer is to go for a target whose translation is `entry`.
    pub(crate) fn indirect_entry(&mut self, site: u32, target: u64, entry: u64) -> u64 {
        if !self.has_contexts() {
            return entry;
        }
        let (block, jump) = (self.sites[site as usize].block, self.sites[site as usize].jump);
        let Some(unit) = self.unit_of(jump) else { return entry };
        match self.blocks.get(block).end {
            End::IndirectCall => {
                self.note_call_of(target);
                self.entering_stub_for(unit, target, false).unwrap_or(entry)
            }
            End::Return => entry,
            _ => match self.way_of_jump(site, block, target) {
                Some(kind) => self.context_stub(unit, target, kind),
                None => entry,
            },
        }
    }

    /// Notes that an address is called.
    pub(crate) fn note_call_of(&mut self, target: u64) {
        if let Some(context) = &mut self.context {
            context.called.insert(target);
        }
    }

    /// What an indirect jump may be besides a jump within a function.
    fn way_of_jump(&mut self, site: u32, block: u32, target: u64) -> Option<CallKind> {
        let from = self.blocks.get(block).address;
        let leaves_function = self.leaves_function(from, target);
        let is_function = self.is_function(target);
        let context = self.context.as_ref()?;
        // Before its function is bound, a stub jumps to its own second half.
        let leaves_stub = !(from..from.saturating_add(STUB)).contains(&target);
        let is_function = is_function || leaves_stub && context.linkage.contains(&site);
        let resumes = context.raising.contains(&block) || context.returns.contains(&target);
        match (is_function || leaves_function, resumes) {
            (true, true) => Some(CallKind::JumpOrResume),
            (true, false) => Some(CallKind::Jump),
            (false, true) => Some(CallKind::StayOrResume),
            (false, false) => None,
        }
    }

    /// Whether an indirect jump's target may be presumed before it is jumped to. Where control may come back to
    /// behind a call is not known before all of that was translated.
    pub(crate) fn may_presume_jump(&mut self, from: u64, target: u64) -> bool {
        !self.has_contexts() || self.is_function(target) || !self.leaves_function(from, target)
    }

    /// What the file of a region says of where functions begin, if trees are kept and it says anything.
    pub(crate) fn has_starts(&mut self, region: usize) -> bool {
        self.starts_of(region).is_some()
    }

    fn starts_of(&mut self, region: usize) -> Option<&FunctionStarts> {
        let Contexts { starts, files, .. } = self.context.as_deref_mut()?;
        starts.entry(region).or_insert_with(|| files.of(&self.regions.log()[region])).as_deref()
    }

    /// The region of an address, and where it is in that one's file.
    fn place_of(&self, address: u64) -> Option<(usize, Option<u32>)> {
        let region = self.regions.find(address)?;
        let offset = region.file.as_ref().map(|(_, offset)| address - region.start + offset);
        Some((region.number as usize, offset.and_then(|offset| u32::try_from(offset).ok())))
    }

    /// Whether a function begins at an address: as its file says it, or else because a call was seen to lead
    /// there.
    fn is_function(&mut self, address: u64) -> bool {
        if let Some((region, Some(offset))) = self.place_of(address)
            && let Some(starts) = self.starts_of(region)
        {
            return starts.is_function(offset);
        }
        self.context.as_ref().is_some_and(|context| context.called.contains(&address))
    }

    /// Whether two addresses are of different functions.
    fn leaves_function(&mut self, from: u64, to: u64) -> bool {
        let (one, other) = (self.place_of(from), self.place_of(to));
        if one.map(|(region, _)| region) != other.map(|(region, _)| region) {
            return true;
        }
        if let (Some((region, Some(one))), Some((_, Some(other)))) = (one, other)
            && let Some(starts) = self.starts_of(region)
        {
            return starts.divide(one, other);
        }
        self.context.as_ref().is_some_and(|context| begins_between(&context.called, from, to))
    }

    fn context_stub(&mut self, unit: usize, target: u64, kind: CallKind) -> u64 {
        let key = (unit as u8, target, kind);
        if let Some(&known) = self.context.as_ref().and_then(|context| context.stubs.get(&key)) {
            return known;
        }
        let stub = match kind {
            CallKind::Resume => self.resume_stub(unit, target),
            _ => self.entering_stub(unit, target, kind),
        };
        if let Some(context) = &mut self.context {
            context.stubs.insert(key, stub);
        }
        stub
    }

    fn entering_stub(&mut self, unit: usize, target: u64, kind: CallKind) -> u64 {
        let (entry, waits) = self.entry_or_stub(unit, target);
        self.write_entering_stub(unit, target, kind, entry, waits)
    }

    /// Writes a stub that enters a function and goes to `entry`; `waits`: where its translation is asked for.
    fn write_entering_stub(
        &mut self,
        unit: usize,
        target: u64,
        kind: CallKind,
        entry: u64,
        waits: bool,
    ) -> u64 {
        let Some(callee) = self.callee(unit, target) else { return entry };
        let resumes = matches!(kind, CallKind::JumpOrResume | CallKind::StayOrResume);
        let otherwise = resumes.then(|| self.context_stub(unit, target, CallKind::Resume));
        let mut sites = [0; 2];
        let room = match kind {
            CallKind::StayOrResume => CHECK_ROOM,
            CallKind::Jump | CallKind::JumpOrResume => REPLACE_ROOM,
            _ => ENTER_ROOM,
        };
        let stub = self.units[unit].append_cold(room, |code| {
            sites = match (kind, otherwise) {
                (CallKind::StayOrResume, Some(otherwise)) => code.check_stack(&SLOTS, entry, otherwise),
                (CallKind::Jump | CallKind::JumpOrResume, _) => {
                    code.replace_node(&SLOTS, &callee, entry, otherwise)
                }
                _ => {
                    let look_up = code.enter_node(&SLOTS, &callee);
                    code.release(&SLOTS);
                    let site = code.jump(entry);
                    code.patch(look_up.site, code.here());
                    code.look_up(&SLOTS, &callee, &look_up);
                    [site, 0]
                }
            }
        });
        for site in sites.into_iter().filter(|&site| site != 0) {
            // The translation may be out of the jump's reach.
            self.units[unit].patch(site, entry);
            if waits {
                self.add_unlinked(unit, target, site, EntryKind::default());
            }
        }
        stub
    }

    /// What routines of a unit have to know of the function at an address.
    fn callee(&mut self, unit: usize, address: u64) -> Option<Callee> {
        let routines = self.units[unit].context?;
        let region = self.region_at(address);
        let number = self.context.as_mut()?.number(address, region);
        let last = if number < MOST_LASTS { number } else { 0 };
        Some(Callee { number, last, one: routines.one, find: routines.find })
    }

    fn resume_stub(&mut self, unit: usize, target: u64) -> u64 {
        let exit = self.exits.add(ExitStub::Context(ContextRequest::Resume(target)));
        let request = self.units[unit].routines.request;
        self.units[unit].append_cold(24, |code| {
            code.store_gs_value(REQUEST, exit);
            code.jump(request);
        })
    }
}

/// Whether a function that is called begins behind the lower of two addresses, up to the other one.
fn begins_between(called: &BTreeSet<u64>, from: u64, to: u64) -> bool {
    let range = (Bound::Excluded(from.min(to)), Bound::Included(from.max(to)));
    called.range(range).next().is_some()
}
