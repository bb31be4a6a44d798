//! The program's code, and facts about it.

use treering_x86::flags::{self, FlagSet};
use treering_x86::{Decoded, Flow};

use crate::address_map::AddressMap;
use crate::program::code_files::CodeFiles;
use crate::program::page_snapshot::PageSnapshots;
use crate::program::region::{NO_REGION, Regions};
use crate::sys::remote_syscall::StoppedThread;

/// The number of successive blocks that are examined for live flags.
pub(crate) const DEPTH: u32 = 2;

/// A program's code, and facts about it.
#[derive(Debug)]
pub(crate) struct ProgramCode {
    pub(crate) regions: Regions,
    /// Flags that are live before an address.
    pub(crate) live: AddressMap<FlagSet>,
    pub(crate) snapshots: PageSnapshots,
    /// The files that code came from, as far as they were needed.
    pub(crate) code_files: CodeFiles,
}

impl ProgramCode {
    /// The present target of a jump through a fixed memory location. Most such locations belong to the
    /// linker, and are written once. The jump's real target is determined when it is executed.
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
            // The code may change before it is executed.
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

    /// A program's code, without any facts yet.
    pub(crate) fn new(regions: Regions) -> Self {
        Self {
            regions,
            live: AddressMap::default(),
            snapshots: PageSnapshots::default(),
            code_files: CodeFiles::default(),
        }
    }

    /// The number of the region at an address now.
    pub(crate) fn region_at(&self, address: u64) -> u32 {
        self.regions.find(address).map_or(NO_REGION, |region| region.number)
    }

    /// Whether code comes from a file, and cannot change unnoticed.
    pub(crate) fn is_steady(&self, address: u64) -> bool {
        let region = self.regions.find(address);
        region.is_some_and(|region| region.file.is_some() && !region.writable)
            && !self.regions.is_any_restless(address, 1)
            && !self.regions.asks(address)
    }

    /// The region of an address, and the offset in the region's file.
    pub(crate) fn place_of(&self, address: u64) -> Option<(usize, Option<u32>)> {
        let region = self.regions.find(address)?;
        let offset = region.file.as_ref().map(|(_, offset)| address - region.start + offset);
        Some((region.number as usize, offset.and_then(|offset| u32::try_from(offset).ok())))
    }
}
