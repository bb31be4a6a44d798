//! What translated code asks the tracer for.

use std::io;

use treering_profile::BranchKind;
use treering_x86::Refusal;

use crate::address_space::AddressSpace;
use crate::cache::block::End;
use crate::cache::link::{ExitStub, IndirectSite};
use crate::sys::layout::{REQUEST, RESUME, TARGET, counter_slot};
use crate::sys::remote_syscall::StoppedThread;
use crate::tracer::thread::SlowPathCounts;

/// Why a program cannot go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) address: u64,
    pub(crate) refusal: Refusal,
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the instruction at {:#x} cannot be counted: {}", self.address, self.refusal)
    }
}

impl std::error::Error for Refused {}

impl AddressSpace {
    /// Whether a thread with the area asks for something.
    pub(crate) fn has_request(&self, area: usize) -> bool {
        self.slot(area, REQUEST) as u32 != 0
    }

    /// Answers a request: says where the thread is to go on.
    ///
    /// # Errors
    /// There is no room left, the thread is gone, or the instruction cannot be run ([`Refused`]).
    pub(crate) fn dispatch(&mut self, area: usize, thread: &mut StoppedThread<'_>) -> io::Result<()> {
        let request = self.slot(area, REQUEST) as u32;
        self.set_slot(area, REQUEST, 0);
        self.snapshots.age();
        self.take_log(area)?;
        let place = match self.exits.list.get(request as usize).copied() {
            Some(ExitStub::Code { target, entry_kind, unit, .. }) => {
                self.enter_for(target, entry_kind, unit.into(), thread)?
            }
            Some(ExitStub::Miss) => self.dispatch_return(area, thread)?,
            Some(ExitStub::Site(site)) => self.dispatch_indirect(site, area, thread)?,
            Some(ExitStub::Changed(block)) => self.dispatch_changed(block, thread)?,
            Some(ExitStub::Context(request)) => self.dispatch_context(request, area, thread)?,
            Some(ExitStub::Refused(address, refusal)) => {
                return Err(io::Error::other(Refused { address, refusal }));
            }
            Some(ExitStub::Full(block)) => {
                self.replay(area);
                self.blocks.get(block).entry
            }
            Some(ExitStub::None) | None => {
                return Err(io::Error::other("the program has written over the translator's memory"));
            }
        };
        self.set_slot(area, RESUME, place);
        Ok(())
    }

    /// Notes what has to be known of the answer in the end.
    pub(crate) fn note_dispatched(&mut self, slow_path: &mut SlowPathCounts) {
        self.taken_back().into_iter().for_each(|execution| slow_path.note_partial(execution));
        // Returns are not counted. That one came here, other than from a call perhaps, is seen once only.
        self.returned
            .take()
            .into_iter()
            .for_each(|target| slow_path.note_transfer(BranchKind::Return, None, Some(target)));
    }

    /// A thread that is gone gets no answer: it does not go where it asked to.
    pub(crate) fn drop_request(&mut self, area: usize) {
        let request = self.slot(area, REQUEST) as u32;
        if let Some(ExitStub::Code { target, entry_kind, .. }) =
            self.exits.list.get(request as usize).copied()
            && entry_kind.propagates
        {
            self.take_propagated_back(target);
        }
    }

    /// Where there is no code, the program goes there all the same, and gets the fault that it would
    /// have got.
    fn dispatch_return(&mut self, area: usize, thread: &mut StoppedThread<'_>) -> io::Result<u64> {
        let target = self.slot(area, TARGET);
        let Some(entry) = self.enter(target, thread)? else { return Ok(target) };
        self.returned = Some(target);
        if self.entry_of(target).is_some() {
            self.ensure_return(target, entry);
        }
        Ok(entry)
    }

    fn dispatch_indirect(
        &mut self,
        site: u32,
        area: usize,
        thread: &mut StoppedThread<'_>,
    ) -> io::Result<u64> {
        let target = self.slot(area, TARGET);
        let entered = self.enter(target, thread)?;
        let linked = self.entry_of(target);
        self.went(site, target, linked, area)?;
        if let Some(entry) = linked {
            self.add_known_target(site, target, entry);
        }
        self.expect_targets(site, thread)?;
        Ok(entered.map_or(target, |entry| self.indirect_entry(site, target, entry)))
    }

    /// Makes the targets known that a site went to in former runs: it need not ask for each when it goes there.
    fn expect_targets(&mut self, site: u32, thread: &mut StoppedThread<'_>) -> io::Result<()> {
        let IndirectSite { block, targets_known_of, .. } = &mut self.sites[site as usize];
        let regions = self.regions.log().len() as u32;
        if std::mem::replace(targets_known_of, regions) == regions {
            return Ok(());
        }
        let from = self.blocks.get(*block);
        if !self.looks_up(from.end == End::IndirectCall) {
            return Ok(());
        }
        for target in self.targets_from(from.address) {
            if self.is_known(target) || !self.is_hinted(target) {
                continue;
            }
            self.enter(target, thread)?;
            if let Some(entry) = self.entry_of(target) {
                self.add_known_target(site, target, entry);
            }
        }
        Ok(())
    }

    /// A thread went from a site to a target that the site's routines did not know; from now on they do, if
    /// the target's translation may be `linked`.
    ///
    /// # Errors
    /// There is no counter left.
    pub(crate) fn went(
        &mut self,
        site: u32,
        target: u64,
        linked: Option<u64>,
        area: usize,
    ) -> io::Result<()> {
        let block = self.sites[site as usize].block;
        let arc = match self.find_arc(block, target) {
            Some(arc) => {
                if let Some(entry) = linked {
                    self.relink(site, arc, entry);
                }
                arc
            }
            None => self.add_target(site, target, linked)?,
        };
        self.count_arc(arc, area);
        Ok(())
    }

    /// Adds one to an arc, if it is not the one whose count is what others leave.
    pub(crate) fn count_arc(&self, arc: u32, area: usize) {
        if let Some(counter) = self.arcs[arc as usize].counter {
            let slot = counter_slot(counter);
            self.set_slot(area, slot, self.slot(area, slot) + 1);
        }
    }
}
