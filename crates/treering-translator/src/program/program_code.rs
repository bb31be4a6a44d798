//! The code of a program, as it lies in its memory.

use treering_x86::flags::FlagSet;

use crate::address_map::AddressMap;
use crate::program::code_files::CodeFiles;
use crate::program::page_snapshot::PageSnapshots;
use crate::program::region::{NO_REGION, Regions};

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
