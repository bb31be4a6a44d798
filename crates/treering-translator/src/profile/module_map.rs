//! The map from runtime addresses to modules.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use hashbrown::{HashMap, HashSet};
use treering_proc::Layout;
use treering_profile::{
    CodeAddress, CodeSpace, CodeSpaceId, FileOffset, Module, ModuleId, ModuleKind, Profile, RuntimeAddress,
    StatedAddress,
};

use crate::address_map::AddressMap;
use crate::counting::result::{CodeRegion, CountedBlock, ProgramCounts};
use crate::profile::made_code::MadeCode;
use crate::program::container_file::HiddenFile;
use crate::program::file_version::Version;

/// The most files that are kept open because others may take their paths.
const MOST_KEPT: usize = 64;

/// Finds the modules of addresses, and keeps the code that no file holds.
#[derive(Debug, Default)]
pub(crate) struct Places {
    /// Files by path and version: programs that follow each other may be other files at one path.
    binaries: HashMap<(PathBuf, Option<Version>), Binary>,
    /// The number of versions of each path.
    versions: HashMap<PathBuf, u32>,
    pub(crate) made: MadeCode,
}

/// A file that code was loaded from.
#[derive(Debug)]
struct Binary {
    layout: Layout,
    /// The name of its module, which no other version of its path has.
    name: String,
    /// The file, if it was kept open.
    file: Option<File>,
}

/// The modules and spaces of one program's addresses.
#[derive(Debug)]
pub(crate) struct ProgramPlaces {
    /// By region, the region, its module, and the number to subtract from addresses.
    regions: Vec<(CodeRegion, ModuleId, u64)>,
    /// For each block its space.
    blocks: Vec<CodeSpaceId>,
    /// The last block at each address.
    latest: AddressMap<u32>,
    /// The blocks at addresses that have several, by region.
    several: BTreeMap<(u64, u32), u32>,
}

impl Places {
    /// The places of a program.
    pub(crate) fn program(&mut self, profile: &mut Profile, program: &ProgramCounts) -> ProgramPlaces {
        let regions = program.regions.iter().map(|region| {
            let (module, bias) = self.module(profile, program.pid, region);
            (region.clone(), module, bias)
        });
        let regions: Vec<_> = regions.collect();
        let latest = program.blocks.iter().enumerate().map(|(at, block)| (block.address, at as u32));
        let latest: AddressMap<u32> = latest.collect();
        let several = several(&program.blocks, &latest);
        // By region, the space of the code in its file.
        let mut spaces = vec![None; regions.len()];
        let blocks = program.blocks.iter().map(|block| {
            let (_, module, bias) = regions[block.region as usize];
            match &block.bytes {
                None => *spaces[block.region as usize].get_or_insert_with(|| {
                    profile.code.spaces.intern(CodeSpace { module: Some(module), generation: 0 })
                }),
                Some(bytes) => self.made.add(profile, module, block.address.wrapping_sub(bias), bytes),
            }
        });
        let blocks = blocks.collect();
        ProgramPlaces { regions, blocks, latest, several }
    }

    /// The module of a region, and the number to subtract from its runtime addresses.
    fn module(&mut self, profile: &mut Profile, pid: i32, region: &CodeRegion) -> (ModuleId, u64) {
        let mut intern = |name: &str, build_id: Box<[u8]>, kind| {
            let path = profile.strings.intern(name);
            profile.modules.intern(Module { path, build_id, kind })
        };
        // A file that cannot be opened must not be confused with another file at its path.
        let can_be_read = |_: &&_| region.hidden.as_ref().is_none_or(|hidden| hidden.file().is_some());
        let is_made = |(path, _): &(PathBuf, _)| {
            path.to_str().is_some_and(treering_proc::is_memory) && Layout::read(path).is_none()
        };
        match region.file.as_ref().filter(can_be_read).filter(|file| !is_made(file)) {
            _ if region.vdso => (intern("[vdso]", Box::default(), ModuleKind::Vdso), region.start),
            None => (intern(&format!("[jit {pid}]"), Box::default(), ModuleKind::Jit), 0),
            Some((path, offset)) => {
                let binary = self.binary(path, region);
                let length = region.end - region.start;
                let segments = &binary.layout.segments;
                let bias = segments.bias(RuntimeAddress(region.start), FileOffset(*offset), length);
                let module = intern(&binary.name, binary.layout.build_id.clone(), ModuleKind::Elf);
                (module, bias.unwrap_or(region.start.wrapping_sub(*offset)))
            }
        }
    }

    /// The file of a region whose path is `path`.
    fn binary(&mut self, path: &Path, region: &CodeRegion) -> &Binary {
        let hidden = region.hidden.as_ref().map(HiddenFile::path);
        let version = hidden.as_deref().map_or(region.version, Version::of);
        let kept = self.binaries.len();
        self.binaries.entry((path.to_owned(), version)).or_insert_with(|| {
            let number = self.versions.entry(path.to_owned()).and_modify(|all| *all += 1).or_insert(1);
            let (own, path) = (path, path.to_string_lossy());
            let name = if *number == 1 { path.into_owned() } else { format!("{path} ({number})") };
            let place = hidden.as_deref().unwrap_or(own);
            // The version is nothing where it is not known.
            let is_same = version.is_none() || Version::of(place) == version;
            let layout = Layout::read(place).filter(|_| is_same).unwrap_or_default();
            let is_kept = is_same && (hidden.is_some() || version.is_some() && kept < MOST_KEPT);
            let file = is_kept.then(|| File::open(place).ok()).flatten();
            Binary { layout, name, file }
        })
    }

    /// The files that are not, or no longer, at the paths that name their modules, by these names; nothing for those
    /// without a build-id that are gone.
    pub(crate) fn take_hidden_files(&mut self) -> std::collections::HashMap<PathBuf, Option<File>> {
        let binaries = self.binaries.iter_mut().filter_map(|((_, version), binary)| {
            let (name, version) = (PathBuf::from(&binary.name), (*version)?);
            if Version::of(&name) == Some(version) {
                return None;
            }
            let file = binary.file.take().filter(|file| Version::of_file(file) == Some(version));
            (file.is_some() || binary.layout.build_id.is_empty()).then_some((name, file))
        });
        binaries.collect()
    }
}

impl ProgramPlaces {
    /// The place of an address in a block.
    pub(crate) fn in_block(&self, blocks: &[CountedBlock], block: u32, address: u64) -> CodeAddress {
        let (_, _, bias) = self.regions[blocks[block as usize].region as usize];
        let space = self.blocks[block as usize];
        CodeAddress { space, address: StatedAddress(address.wrapping_sub(bias)) }
    }

    /// The place of an address that control went to, or came from.
    ///
    /// `region` is the region of the address at that time: other code may have been mapped there since.
    pub(crate) fn find(
        &self,
        profile: &mut Profile,
        blocks: &[CountedBlock],
        address: u64,
        region: Option<u32>,
    ) -> CodeAddress {
        let same = |other: u32| region.is_none_or(|region| self.is_same_file(region, other));
        // Code made at run time belongs to one module, whose regions come and go with its protection.
        let later = region.and_then(|region| {
            let mut later = self.several.range((address, region)..=(address, u32::MAX));
            later.find(|((_, other), _)| same(*other)).map(|(_, block)| block)
        });
        let latest = || self.latest.get(&address).filter(|&&block| same(blocks[block as usize].region));
        if let Some(&block) = later.or_else(latest) {
            return self.in_block(blocks, block, address);
        }
        if let Some((_, module, bias)) = region.and_then(|region| self.regions.get(region as usize)) {
            let space = profile.code.spaces.intern(CodeSpace { module: Some(*module), generation: 0 });
            return CodeAddress { space, address: StatedAddress(address.wrapping_sub(*bias)) };
        }
        let holds = |region: &CodeRegion| (region.start..region.end).contains(&address);
        let found = self.regions.iter().rev().find(|(region, _, _)| holds(region));
        let (module, bias) = found.map_or((None, 0), |&(_, module, bias)| (Some(module), bias));
        let space = profile.code.spaces.intern(CodeSpace { module, generation: 0 });
        CodeAddress { space, address: StatedAddress(address.wrapping_sub(bias)) }
    }
}

impl ProgramPlaces {
    /// Whether two regions map the same module in the same way.
    fn is_same_file(&self, one: u32, other: u32) -> bool {
        let place = |region: u32| self.regions.get(region as usize).map(|&(_, module, bias)| (module, bias));
        place(one) == place(other)
    }
}

/// The blocks at addresses that have several, by address and region.
fn several(blocks: &[CountedBlock], latest: &AddressMap<u32>) -> BTreeMap<(u64, u32), u32> {
    let is_latest = |at: u32, block: &CountedBlock| latest.get(&block.address) == Some(&at);
    let others = (0..).zip(blocks).filter(|(at, block)| !is_latest(*at, block));
    let addresses: HashSet<u64> = others.map(|(_, block)| block.address).collect();
    let at_these = (0..).zip(blocks).filter(|(_, block)| addresses.contains(&block.address));
    at_these.map(|(at, block)| ((block.address, block.region), at)).collect()
}
