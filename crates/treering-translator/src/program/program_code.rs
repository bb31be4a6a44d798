//! The program's code, and what was found out about it.

use treering_x86::flags::{self, FlagSet};
use treering_x86::{Decoded, Flow};

use crate::address_map::AddressMap;
use crate::program::code_files::CodeFiles;
use crate::program::page_snapshot::PageSnapshots;
use crate::program::region::{NO_REGION, Regions};
use crate::sys::remote_syscall::StoppedThread;

/// How many blocks are looked at behind one for whether its flags are live.
pub(crate) const DEPTH: u32 = 2;

/// A program's code, and what was found out about it.
#[derive(Debug)]
pub(crate) struct ProgramCode {
    pub(crate) regions: Regions,
    /// Flags that are live before an address.
    pub(crate) live: AddressMap<FlagSet>,
    pub(crate) snapshots: PageSnapshots,
    /// The files that code came from, as far as anybody has asked.
    pub(crate) code_files: CodeFiles,
}

impl ProgramCode {
    /// Where a jump through a fixed place in memory leads as things are: most such places are the
    /// linker's, and are written once. What it really does is found out when it does it.
    pub(crate) fn presumed_target(&mut self, last: &Decoded, thread: &StoppedThread<'_>) -> Option<u64> {
        let place = last.relative_operand().filter(|_| !last.uses_gs())?;
        let target = self.snapshots.word(place, thread)?;
        self.regions.contains(target).then_some(target)
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
        let mut after = |code: &mut Self, target| code.live_at(target, depth - 1, thread);
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

    /// The flags that are live behind an instruction.
    pub(crate) fn live_after(&mut self, last: &Decoded, thread: &mut StoppedThread<'_>) -> FlagSet {
        match last.flow() {
            Flow::Next => self.live_at(last.next(), DEPTH, thread),
            Flow::Jump(target) | Flow::Call(target) => self.live_at(target, DEPTH, thread),
            Flow::Branch { target, .. } | Flow::CountedBranch(target) => {
                self.live_at(target, DEPTH, thread).or(self.live_at(last.next(), DEPTH, thread))
            }
            _ => FlagSet::ALL,
        }
    }

    /// Code that nothing is known of yet.
    pub(crate) fn new(regions: Regions) -> Self {
        Self {
            regions,
            live: AddressMap::default(),
            snapshots: PageSnapshots::default(),
            code_files: CodeFiles::default(),
        }
    }

    /// The number of the region that an address lies in now.
    pub(crate) fn region_at(&self, address: u64) -> u32 {
        self.regions.find(address).map_or(NO_REGION, |region| region.number)
    }

    /// Whether code is a file's, and cannot change without our being told.
    pub(crate) fn is_steady(&self, address: u64) -> bool {
        let region = self.regions.find(address);
        region.is_some_and(|region| region.file.is_some() && !region.writable)
            && !self.regions.is_any_restless(address, 1)
            && !self.regions.asks(address)
    }

    /// The region of an address, and where it is in that one's file.
    pub(crate) fn place_of(&self, address: u64) -> Option<(usize, Option<u32>)> {
        let region = self.regions.find(address)?;
        let offset = region.file.as_ref().map(|(_, offset)| address - region.start + offset);
        Some((region.number as usize, offset.and_then(|offset| u32::try_from(offset).ok())))
    }
}
