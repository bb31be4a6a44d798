//! Entry stubs of functions: with trees, calls and tail calls go through a stub that enters the callee's node.

use std::collections::BTreeSet;
use std::ops::Bound;

use treering_x86::context::{CHECK_ROOM, Callee, ENTER_ROOM, MOST_LASTS, REPLACE_ROOM};

use crate::address_space::AddressSpace;
use crate::areas::tree_layout::SLOTS;
use crate::cache::block::End;
use crate::cache::link::EntryKind;
use crate::context::{CallKind, Contexts, FunctionStarts};

/// The most bytes of a stub of a linkage table.
const STUB: u64 = 16;

impl AddressSpace {
    /// Forgets the functions between two addresses, which hold other code from now on.
    pub(crate) fn forget_functions(&mut self, start: u64, end: u64) {
        if let Some(trees) = &mut self.areas.trees {
            trees.functions.forget(start, end);
        }
        let Some(context) = &mut self.context else { return };
        let stays = |address: &u64| !(start..end).contains(address);
        context.stubs.retain(|(_, address, _), _| stays(address));
        context.in_line.retain(|(address, _), _| stays(address));
    }

    /// The stub by which a call enters a translated function. With `propagates`, the caller counts for it;
    /// there is none if the function always counts itself.
    pub(crate) fn entering_stub_for(&mut self, unit: usize, target: u64, propagates: bool) -> Option<u64> {
        let in_line = self.context.as_ref().and_then(|context| context.in_line.get(&(target, propagates)));
        if let Some(&stub) = in_line {
            return Some(stub);
        }
        if !propagates {
            return Some(self.context_stub(unit, target, CallKind::Call));
        }
        let entry = self.uncounted_entry(self.cache.blocks.at(target)?)?;
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

    /// The stub by which a call enters a function whose code is requested behind the stub.
    pub(crate) fn asking_stub(&mut self, unit: usize, target: u64) -> u64 {
        self.context_stub(unit, target, CallKind::Call)
    }

    /// The stub by which a jump enters another function, if a function is known to begin there.
    pub(crate) fn jump_stub(&mut self, unit: usize, target: u64) -> Option<u64> {
        self.is_function(target).then(|| self.context_stub(unit, target, CallKind::Jump))
    }

    /// Where an indirect transfer goes for a target whose translation is at `entry`.
    pub(crate) fn indirect_entry(&mut self, site: u32, target: u64, entry: u64) -> u64 {
        if !self.areas.has_trees() {
            return entry;
        }
        let (block, jump) = (self.cache.sites[site as usize].block, self.cache.sites[site as usize].jump);
        let Some(unit) = self.cache.unit_of(jump) else { return entry };
        match self.cache.blocks.get(block).end {
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

    /// The kind of an indirect jump, if it is more than a jump within a function.
    fn way_of_jump(&mut self, site: u32, block: u32, target: u64) -> Option<CallKind> {
        let from = self.cache.blocks.get(block).address;
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

    /// Whether an indirect jump's target may be presumed before the jump is made. Only when all code is
    /// translated are the addresses known to which calls return.
    pub(crate) fn may_presume_jump(&mut self, from: u64, target: u64) -> bool {
        !self.areas.has_trees() || self.is_function(target) || !self.leaves_function(from, target)
    }

    /// Reads where functions begin from the file of a region, if trees are kept. Returns whether the file says it.
    pub(crate) fn has_starts(&mut self, region: usize) -> bool {
        self.starts_of(region).is_some()
    }

    fn starts_of(&mut self, region: usize) -> Option<&FunctionStarts> {
        let Contexts { starts, files, .. } = self.context.as_deref_mut()?;
        starts.entry(region).or_insert_with(|| files.of(&self.program.regions.log()[region])).as_deref()
    }

    /// Whether a function begins at an address: its file says so, or, without that, a call led there.
    fn is_function(&mut self, address: u64) -> bool {
        if let Some((region, Some(offset))) = self.program.place_of(address)
            && let Some(starts) = self.starts_of(region)
        {
            return starts.is_function(offset);
        }
        self.context.as_ref().is_some_and(|context| context.called.contains(&address))
    }

    /// Whether two addresses belong to different functions.
    fn leaves_function(&mut self, from: u64, to: u64) -> bool {
        let (one, other) = (self.program.place_of(from), self.program.place_of(to));
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
            CallKind::Resume => self.cache.resume_stub(unit, target),
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

    /// Writes a stub that enters a function and goes to `entry`; with `waits`, `entry` requests the translation.
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
        let stub = self.cache.units[unit].append_cold(room, |code| {
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
            self.cache.units[unit].patch(site, entry);
            if waits {
                self.cache.add_unlinked(unit, target, site, EntryKind::default());
            }
        }
        stub
    }

    /// The facts about the function at an address that a unit's routines need.
    pub(crate) fn callee(&mut self, unit: usize, address: u64) -> Option<Callee> {
        let routines = self.cache.units[unit].context?;
        let region = self.program.region_at(address);
        let number = self.areas.trees.as_mut()?.functions.number(address, region);
        let last = if number < MOST_LASTS { number } else { 0 };
        Some(Callee { number, last, one: routines.one, find: routines.find })
    }
}

/// Whether a called function begins behind the lower of two addresses, up to the other one.
fn begins_between(called: &BTreeSet<u64>, from: u64, to: u64) -> bool {
    let range = (Bound::Excluded(from.min(to)), Bound::Included(from.max(to)));
    called.range(range).next().is_some()
}
