//! The dispatcher: it answers the requests of translated code, and decides where the thread continues.

use std::io;

use treering_profile::BranchKind;
use treering_x86::Refusal;

use crate::areas::tree_layout::SLOTS;
use crate::cache::block::End;
use crate::cache::indirect::IndirectSite;
use crate::cache::link::{ContextRequest, EntryKind, ExitStub};
use crate::program::region::PAGE;
use crate::sys;
use crate::sys::layout::{REQUEST, RESUME, TARGET};
use crate::tracer::thread_stop::ThreadStop;

/// An instruction that cannot be counted, so that its program cannot continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the instruction at {address:#x} cannot be counted: {refusal}")]
pub(crate) struct Refused {
    pub(crate) address: u64,
    pub(crate) refusal: Refusal,
}

impl ThreadStop<'_, '_> {
    /// Answers a request: sets where the thread continues. An execution that is taken back and the target of a
    /// return are noted.
    ///
    /// # Errors
    /// There is no room left, the thread is gone, or the instruction cannot be run ([`Refused`]).
    pub(crate) fn dispatch(&mut self) -> io::Result<()> {
        let request = self.slot(REQUEST) as u32;
        self.set_slot(REQUEST, 0);
        self.space.program.snapshots.age();
        self.space.cache.make_room(self.space.areas.has_trees(), self.stopped)?;
        self.space.take_log(self.thread.area)?;
        let place = match self.space.cache.exits.list.get(request as usize).copied() {
            Some(ExitStub::Code { target, entry_kind, unit, .. }) => {
                self.enter_for(target, entry_kind, unit.into())?
            }
            Some(ExitStub::Miss) => self.dispatch_return()?,
            Some(ExitStub::Site(site)) => self.dispatch_indirect(site)?,
            Some(ExitStub::Changed(block)) => self.dispatch_changed(block)?,
            Some(ExitStub::Context(request)) => self.dispatch_context(request)?,
            Some(ExitStub::Refused(address, refusal)) => {
                return Err(io::Error::other(Refused { address, refusal }));
            }
            Some(ExitStub::Full(block)) => {
                if let Some(model) = &mut self.space.model {
                    model.replay(self.thread.area, &self.space.areas);
                }
                self.space.cache.blocks.get(block).entry
            }
            Some(ExitStub::Inquiry(inquiry, resume)) => {
                self.answer(inquiry);
                resume
            }
            Some(ExitStub::None) | None => {
                return Err(io::Error::other("the program has written over the translator's memory"));
            }
        };
        self.set_slot(RESUME, place);
        Ok(())
    }

    /// Drops the request of a thread that has ended: it never reaches the requested target.
    pub(crate) fn drop_request(&mut self) {
        let request = self.slot(REQUEST) as u32;
        if let Some(ExitStub::Code { target, entry_kind, .. }) =
            self.space.cache.exits.list.get(request as usize).copied()
            && entry_kind.propagates
            && let Some(execution) =
                self.space.counting.propagation.to_take_back(&self.space.cache.blocks, target)
        {
            self.thread.slow_path.note_partial(execution);
        }
    }

    /// Answers a return. If there is no code at the target, the program goes there all the same, and gets the
    /// fault that it would have had.
    fn dispatch_return(&mut self) -> io::Result<u64> {
        let target = self.slot(TARGET);
        let Some(entry) = self.enter(target)? else { return Ok(target) };
        // Translated returns are not counted. A return that reached the tracer is noted here, once.
        self.thread.slow_path.note_transfer(BranchKind::Return, None, Some(target));
        if self.space.entry_of(target).is_some() {
            self.space.cache.ensure_return(target, entry);
        }
        Ok(entry)
    }

    fn dispatch_indirect(&mut self, site: u32) -> io::Result<u64> {
        let target = self.slot(TARGET);
        let entered = self.enter(target)?;
        let linked = self.space.entry_of(target);
        self.space.went(site, target, linked, self.thread.area)?;
        if let Some(entry) = linked {
            self.space.add_known_target(site, target, entry);
        }
        self.expect_targets(site)?;
        Ok(entered.map_or(target, |entry| self.space.indirect_entry(site, target, entry)))
    }

    /// Adds the targets that an indirect site had in former runs, so that it need not ask for each of them.
    fn expect_targets(&mut self, site: u32) -> io::Result<()> {
        let IndirectSite { block, targets_known_of, .. } = &mut self.space.cache.sites[site as usize];
        let regions = self.space.program.regions.log().len() as u32;
        if std::mem::replace(targets_known_of, regions) == regions {
            return Ok(());
        }
        let from = self.space.cache.blocks.get(*block);
        if !self.space.looks_up(from.end == End::IndirectCall) {
            return Ok(());
        }
        for target in self.space.warm_start.targets_from(&self.space.program.regions, from.address) {
            if self.space.cache.is_known(target)
                || !self.space.warm_start.is_hinted(&self.space.program.regions, target)
            {
                continue;
            }
            self.enter(target)?;
            if let Some(entry) = self.space.entry_of(target) {
                self.space.add_known_target(site, target, entry);
            }
        }
        Ok(())
    }

    /// The translation of an address for a thread that enters it in the given way. If the predecessor has
    /// counted for the block, and the block has no entry that skips its counter, that count is taken back.
    ///
    /// # Errors
    /// As [`enter`](Self::enter).
    fn enter_for(&mut self, target: u64, entry_kind: EntryKind, unit: usize) -> io::Result<u64> {
        // The code before the request has given the held registers back already.
        let entry_kind = EntryKind { holds: false, ..entry_kind };
        let entered = self.enter(target)?;
        if entry_kind == EntryKind::default() {
            return Ok(entered.unwrap_or(target));
        }
        if let Some(entry) = self.space.entry_for(target, entry_kind, unit) {
            return Ok(entry);
        }
        if entry_kind.propagates {
            match self.space.counting.propagation.to_take_back(&self.space.cache.blocks, target) {
                Some(execution) => self.thread.slow_path.note_partial(execution),
                // No block is at the target. Counts propagated to it are taken back from now on: no later block gets them.
                None => {
                    self.space.counting.propagation.ended.insert(target, None);
                }
            }
        }
        Ok(if entry_kind.calls { self.space.asking_stub(unit, target) } else { entered.unwrap_or(target) })
    }

    /// A block's code has changed: translates it anew, unless the request of another thread has already done so.
    fn dispatch_changed(&mut self, block: u32) -> io::Result<u64> {
        let address = self.space.cache.blocks.get(block).address;
        if !self.space.cache.blocks.get(block).retired {
            self.space.program.live.clear();
            self.space.cache.generations += 1;
            self.space.program.regions.note_change(address);
            if self.space.cache.blocks.get(block).instructions == 0 {
                let page = address & !(PAGE - 1);
                self.space.program.regions.read_again(page, page + PAGE);
            }
            self.space.cache.blocks.retire_one(block);
            self.space.redirect(block);
            self.space.end_propagation(&[block]);
        }
        Ok(self.enter(address)?.unwrap_or(address))
    }

    /// Answers a request that code for calling context trees makes; returns where the thread continues.
    fn dispatch_context(&mut self, request: ContextRequest) -> io::Result<u64> {
        let stack = sys::registers(self.stopped.tid)?.0.rsp;
        match request {
            ContextRequest::Room => {
                self.space.areas.dispatch_want_of_room(self.thread.area, self.stopped)?;
                Ok(self.slot(SLOTS.again))
            }
            ContextRequest::Unwind => {
                if !self.space.areas.unwind(self.thread.area, stack, self.stopped.tid)? {
                    self.space.areas.note_stray(self.thread.area);
                }
                Ok(self.slot(SLOTS.go_on))
            }
            ContextRequest::Resume(target) => {
                if !self.space.areas.unwind(self.thread.area, stack.wrapping_sub(1), self.stopped.tid)? {
                    self.space.areas.note_stray(self.thread.area);
                }
                Ok(self.enter(target)?.unwrap_or(target))
            }
        }
    }
}
