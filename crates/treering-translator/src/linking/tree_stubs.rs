//! Entry stubs of functions: with trees, calls and tail calls go through a stub that enters the callee's node.

use treering_x86::context::{CHECK_ROOM, Callee, ENTER_ROOM, MOST_LASTS, REPLACE_ROOM};

use crate::address_space::AddressSpace;
use crate::areas::tree_layout::SLOTS;
use crate::cache::block::End;
use crate::cache::link::EntryKind;
use crate::context::CallKind;

impl AddressSpace {
    /// Forgets the functions between two addresses, which hold other code from now on.
    pub(crate) fn forget_functions(&mut self, start: u64, end: u64) {
        if let Some(trees) = &mut self.areas.trees {
            trees.functions.forget(start, end);
        }
        self.context.forget(start, end);
    }

    /// The stub by which a call enters a translated function. With `propagates`, the caller counts for it;
    /// there is none if the function always counts itself.
    pub(crate) fn entering_stub_for(&mut self, unit: usize, target: u64, propagates: bool) -> Option<u64> {
        if let Some(&stub) = self.context.in_line.get(&(target, propagates)) {
            return Some(stub);
        }
        if !propagates {
            return Some(self.context_stub(unit, target, CallKind::Call));
        }
        let entry = self.uncounted_entry(self.cache.blocks.at(target)?)?;
        let key = (unit as u8, target, CallKind::PropagatedCall);
        if let Some(&known) = self.context.stubs.get(&key) {
            return Some(known);
        }
        let stub = self.write_entering_stub(unit, target, CallKind::PropagatedCall, entry, false);
        self.context.stubs.insert(key, stub);
        Some(stub)
    }

    /// The stub by which a call enters a function whose code is requested behind the stub.
    pub(crate) fn asking_stub(&mut self, unit: usize, target: u64) -> u64 {
        self.context_stub(unit, target, CallKind::Call)
    }

    /// The stub by which a jump enters another function, if a function is known to begin there.
    pub(crate) fn jump_stub(&mut self, unit: usize, target: u64) -> Option<u64> {
        let is_function = self.areas.has_trees() && self.context.is_function(target, &self.program);
        is_function.then(|| self.context_stub(unit, target, CallKind::Jump))
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
                self.context.called.insert(target);
                self.entering_stub_for(unit, target, false).unwrap_or(entry)
            }
            End::Return => entry,
            _ => {
                let from = self.cache.blocks.get(block).address;
                match self.context.kind_of_jump(site, block, (from, target), &self.program) {
                    Some(kind) => self.context_stub(unit, target, kind),
                    None => entry,
                }
            }
        }
    }

    fn context_stub(&mut self, unit: usize, target: u64, kind: CallKind) -> u64 {
        let key = (unit as u8, target, kind);
        if let Some(&known) = self.context.stubs.get(&key) {
            return known;
        }
        let stub = match kind {
            CallKind::Resume => self.cache.resume_stub(unit, target),
            _ => self.entering_stub(unit, target, kind),
        };
        self.context.stubs.insert(key, stub);
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
