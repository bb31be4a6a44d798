//! The dispatcher: it answers the requests of translated code, and decides where the thread continues.

use std::io;

use treering_profile::BranchKind;
use treering_x86::Refusal;

use crate::address_space::AddressSpace;
use crate::areas::tree_layout::SLOTS;
use crate::cache::block::End;
use crate::cache::indirect::IndirectSite;
use crate::cache::link::{ContextRequest, EntryKind, ExitStub};
use crate::counting::slow_path::SlowPathCounts;
use crate::program::region::PAGE;
use crate::sys;
use crate::sys::layout::{REQUEST, RESUME, TARGET};
use crate::sys::remote_syscall::StoppedThread;

/// An instruction that cannot be counted, so that its program cannot continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the instruction at {address:#x} cannot be counted: {refusal}")]
pub(crate) struct Refused {
    pub(crate) address: u64,
    pub(crate) refusal: Refusal,
}

impl AddressSpace {
    /// Answers a request: sets where the thread continues. An execution that is taken back and the target of a
    /// return are noted.
    ///
    /// # Errors
    /// There is no room left, the thread is gone, or the instruction cannot be run ([`Refused`]).
    pub(crate) fn dispatch(
        &mut self,
        area: usize,
        slow_path: &mut SlowPathCounts,
        thread: &mut StoppedThread<'_>,
    ) -> io::Result<()> {
        let request = self.areas.slot(area, REQUEST) as u32;
        self.areas.set_slot(area, REQUEST, 0);
        self.program.snapshots.age();
        self.cache.make_room(self.areas.has_trees(), thread)?;
        self.take_log(area)?;
        let place = match self.cache.exits.list.get(request as usize).copied() {
            Some(ExitStub::Code { target, entry_kind, unit, .. }) => {
                self.enter_for(target, entry_kind, unit.into(), slow_path, thread)?
            }
            Some(ExitStub::Miss) => self.dispatch_return(area, slow_path, thread)?,
            Some(ExitStub::Site(site)) => self.dispatch_indirect(site, area, thread)?,
            Some(ExitStub::Changed(block)) => self.dispatch_changed(block, thread)?,
            Some(ExitStub::Context(request)) => self.dispatch_context(request, area, thread)?,
            Some(ExitStub::Refused(address, refusal)) => {
                return Err(io::Error::other(Refused { address, refusal }));
            }
            Some(ExitStub::Full(block)) => {
                if let Some(model) = &mut self.model {
                    model.replay(area, &self.areas);
                }
                self.cache.blocks.get(block).entry
            }
            Some(ExitStub::Inquiry(inquiry, resume)) => {
                self.answer(inquiry, area);
                resume
            }
            Some(ExitStub::None) | None => {
                return Err(io::Error::other("the program has written over the translator's memory"));
            }
        };
        self.areas.set_slot(area, RESUME, place);
        Ok(())
    }

    /// Drops the request of a thread that has ended: it never reaches the requested target.
    pub(crate) fn drop_request(&self, area: usize, slow_path: &mut SlowPathCounts) {
        let request = self.areas.slot(area, REQUEST) as u32;
        if let Some(ExitStub::Code { target, entry_kind, .. }) =
            self.cache.exits.list.get(request as usize).copied()
            && entry_kind.propagates
            && let Some(execution) = self.counting.propagation.to_take_back(&self.cache.blocks, target)
        {
            slow_path.note_partial(execution);
        }
    }

    /// Answers a return. If there is no code at the target, the program goes there all the same, and gets the
    /// fault that it would have had.
    fn dispatch_return(
        &mut self,
        area: usize,
        slow_path: &mut SlowPathCounts,
        thread: &mut StoppedThread<'_>,
    ) -> io::Result<u64> {
        let target = self.areas.slot(area, TARGET);
        let Some(entry) = self.enter(target, thread)? else { return Ok(target) };
        // Translated returns are not counted. A return that reached the tracer is noted here, once.
        slow_path.note_transfer(BranchKind::Return, None, Some(target));
        if self.entry_of(target).is_some() {
            self.cache.ensure_return(target, entry);
        }
        Ok(entry)
    }

    fn dispatch_indirect(
        &mut self,
        site: u32,
        area: usize,
        thread: &mut StoppedThread<'_>,
    ) -> io::Result<u64> {
        let target = self.areas.slot(area, TARGET);
        let entered = self.enter(target, thread)?;
        let linked = self.entry_of(target);
        self.went(site, target, linked, area)?;
        if let Some(entry) = linked {
            self.add_known_target(site, target, entry);
        }
        self.expect_targets(site, thread)?;
        Ok(entered.map_or(target, |entry| self.indirect_entry(site, target, entry)))
    }

    /// Adds the targets that an indirect site had in former runs, so that it need not ask for each of them.
    fn expect_targets(&mut self, site: u32, thread: &mut StoppedThread<'_>) -> io::Result<()> {
        let IndirectSite { block, targets_known_of, .. } = &mut self.cache.sites[site as usize];
        let regions = self.program.regions.log().len() as u32;
        if std::mem::replace(targets_known_of, regions) == regions {
            return Ok(());
        }
        let from = self.cache.blocks.get(*block);
        if !self.looks_up(from.end == End::IndirectCall) {
            return Ok(());
        }
        for target in self.warm_start.targets_from(&self.program.regions, from.address) {
            if self.cache.is_known(target) || !self.warm_start.is_hinted(&self.program.regions, target) {
                continue;
            }
            self.enter(target, thread)?;
            if let Some(entry) = self.entry_of(target) {
                self.add_known_target(site, target, entry);
            }
        }
        Ok(())
    }

    /// The translation of an address for a thread that enters it in the given way. If the predecessor has
    /// counted for the block, and the block has no entry that skips its counter, that count is taken back.
    ///
    /// # Errors
    /// As [`enter`](Self::enter).
    fn enter_for(
        &mut self,
        target: u64,
        entry_kind: EntryKind,
        unit: usize,
        slow_path: &mut SlowPathCounts,
        thread: &mut StoppedThread<'_>,
    ) -> io::Result<u64> {
        // The code before the request has given the held registers back already.
        let entry_kind = EntryKind { holds: false, ..entry_kind };
        let entered = self.enter(target, thread)?;
        if entry_kind == EntryKind::default() {
            return Ok(entered.unwrap_or(target));
        }
        if let Some(entry) = self.entry_for(target, entry_kind, unit) {
            return Ok(entry);
        }
        if entry_kind.propagates {
            match self.counting.propagation.to_take_back(&self.cache.blocks, target) {
                Some(execution) => slow_path.note_partial(execution),
                // No block is at the target. Counts propagated to it are taken back from now on: no later block gets them.
                None => {
                    self.counting.propagation.ended.insert(target, None);
                }
            }
        }
        Ok(if entry_kind.calls { self.asking_stub(unit, target) } else { entered.unwrap_or(target) })
    }

    /// A block's code has changed: translates it anew, unless the request of another thread has already done so.
    pub(crate) fn dispatch_changed(&mut self, block: u32, thread: &mut StoppedThread<'_>) -> io::Result<u64> {
        let address = self.cache.blocks.get(block).address;
        if !self.cache.blocks.get(block).retired {
            self.program.live.clear();
            self.cache.generations += 1;
            self.program.regions.note_change(address);
            if self.cache.blocks.get(block).instructions == 0 {
                let page = address & !(PAGE - 1);
                self.program.regions.read_again(page, page + PAGE);
            }
            self.cache.blocks.retire_one(block);
            self.redirect(block);
            self.end_propagation(&[block]);
        }
        Ok(self.enter(address, thread)?.unwrap_or(address))
    }

    /// Answers a request that code for calling context trees makes; returns where the thread continues.
    pub(crate) fn dispatch_context(
        &mut self,
        request: ContextRequest,
        area: usize,
        thread: &mut StoppedThread<'_>,
    ) -> io::Result<u64> {
        let stack = sys::registers(thread.tid)?.0.rsp;
        match request {
            ContextRequest::Room => {
                self.areas.dispatch_want_of_room(area, thread)?;
                Ok(self.areas.slot(area, SLOTS.again))
            }
            ContextRequest::Unwind => {
                if !self.areas.unwind(area, stack, thread.tid)? {
                    self.areas.note_stray(area);
                }
                Ok(self.areas.slot(area, SLOTS.go_on))
            }
            ContextRequest::Resume(target) => {
                if !self.areas.unwind(area, stack.wrapping_sub(1), thread.tid)? {
                    self.areas.note_stray(area);
                }
                Ok(self.enter(target, thread)?.unwrap_or(target))
            }
        }
    }
}
