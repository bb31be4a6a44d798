//! The history of programs: the blocks that they executed in earlier runs, for a warm start.
//!
//! The translator cannot know which exits of new code will be taken. Either it translates code that is never
//! executed, or the thread asks again soon. But a program executes nearly the same code in every run. So a
//! file for each program lists the blocks of its last two runs and the targets of its indirect transfers.
//! From a block that both runs executed, the next run translates all such blocks in reach, and no others. A
//! program that runs differently each time is described by the blocks that it always executes, and no run
//! translates code that only a single run needed. All of this is a hint: no count depends on it.

mod file;
mod offsets;

use std::cmp::Reverse;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use hashbrown::HashMap;
use serde::{Deserialize, Serialize};
use treering_profile::BranchKind;

use crate::counting::branch_bias::{BranchBias, tells_more};
use crate::counting::result::{CodeRegion, CountedBlock, ProgramCounts};
use crate::program::file_version::Version;
use crate::program::region::{Region, Regions};

use file::{read, write};
use offsets::Offsets;

/// The hints for all counted programs.
#[derive(Debug)]
pub(crate) struct Hints {
    directory: PathBuf,
    /// Whether this run is stored for later runs.
    learns: bool,
    programs: HashMap<PathBuf, Entry>,
}

#[derive(Debug, Default)]
struct Entry {
    /// The contents of the file.
    kept: Rc<ProgramHints>,
    /// The executed blocks of this run.
    now: Rc<ProgramHints>,
}

/// The history of one program.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProgramHints {
    modules: Vec<Module>,
    /// The number of entered blocks in the run in which biases were last computed.
    executions: u64,
}

/// The executed blocks of one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Module {
    path: String,
    version: Version,
    /// The beginnings of the blocks that were executed in the last run.
    blocks: Offsets,
    /// The same of the run before; empty if there was none. After reading a file, [`prepare`](Self::prepare)
    /// computes the next two fields from these two.
    before: Offsets,
    /// The blocks that were executed in both runs.
    #[serde(skip)]
    expected: Option<Offsets>,
    /// The number of blocks that were executed in only one of the runs.
    #[serde(skip)]
    differences: usize,
    /// The blocks with a [`BranchBias`] when biases were last computed, encoded by [`with_bias`].
    biases: Offsets,
    /// The targets of their indirect transfers, sorted by block. In files, the most frequent target of a
    /// block comes first.
    transfers: Vec<SeenTransfer>,
}

/// A target of the block at an offset, and how often it was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct SeenTransfer {
    from: u32,
    to: FilePlace,
    count: u64,
}

/// An offset in a module, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct FilePlace {
    module: u16,
    offset: u32,
}

/// A file is rewritten if more than one of this many blocks was executed in only one of two runs, or has a new bias.
const LEAST_CHANGE: usize = 100;

impl Module {
    /// Whether the block at an offset was executed in both runs.
    fn expects(&self, offset: u32) -> bool {
        self.expected.as_ref().unwrap_or(&self.blocks).contains(offset)
    }

    /// Computes the fields that files do not hold, after reading one.
    fn prepare(&mut self) {
        let before = std::mem::take(&mut self.before);
        if !before.is_empty() {
            self.differences = self.blocks.differences(&before);
            self.expected = (self.differences != 0).then(|| self.blocks.common_with(&before));
        }
    }
}

impl Hints {
    /// The hints in a directory, which is made when there are any. With `learns`, this run is added.
    pub(crate) fn new(directory: &Path, learns: bool) -> Self {
        Self { directory: directory.to_owned(), learns, programs: HashMap::new() }
    }

    /// The hints for a program by its file: from former runs, or else from this one.
    pub(crate) fn of(&mut self, path: &Path) -> Rc<ProgramHints> {
        let entry = self.entry(path);
        Rc::clone(if entry.kept.modules.is_empty() { &entry.now } else { &entry.kept })
    }

    fn entry(&mut self, path: &Path) -> &mut Entry {
        let directory = &self.directory;
        self.programs.entry_ref(path).or_insert_with(|| {
            let kept = read(directory, path).unwrap_or_default();
            Entry { kept: Rc::new(kept), now: Rc::default() }
        })
    }

    /// Adds the executed blocks of a program, and the number of executions that its biases come from.
    pub(crate) fn learn(&mut self, counts: &ProgramCounts, executions: u64) {
        if self.learns {
            let now = Rc::make_mut(&mut self.entry(&counts.path).now);
            now.add(counts);
            now.executions += executions;
        }
    }

    /// Writes the changed hints. A failure only means that the next run has fewer hints.
    pub(crate) fn keep(&self) {
        for (path, Entry { kept, now }) in self.programs.iter().filter(|_| self.learns) {
            let blocks: usize = now.modules.iter().map(|module| module.blocks.len()).sum();
            let changes = now.differences(kept).max(kept.last_differences()).max(now.new_biases(kept));
            if changes * LEAST_CHANGE > blocks || tells_more(now.executions, kept.executions) {
                let _ = write(&self.directory, path, &now.after(kept));
            }
        }
    }
}

/// A block and its bias as one number; nothing for blocks far behind in a file.
fn with_bias(offset: u32, bias: BranchBias) -> Option<u32> {
    Some(offset.checked_mul(2)? + u32::from(bias == BranchBias::Taken))
}

/// The path of a region's file, if this process finds the file by it.
fn path_of(region: &CodeRegion) -> Option<&str> {
    region.file.as_ref().filter(|_| region.hidden.is_none())?.0.to_str()
}

impl ProgramHints {
    /// The number of blocks that were executed in only one of two runs, in the modules of this one.
    fn differences(&self, other: &Self) -> usize {
        let none = Offsets::default();
        let of_module = |module: &Module| {
            let same = other.same(module).map_or(&none, |other| &other.blocks);
            module.blocks.differences(same)
        };
        self.modules.iter().map(of_module).sum()
    }

    /// The number of blocks with a new bias.
    fn new_biases(&self, former: &Self) -> usize {
        let of_module = |module: &Module| match former.same(module) {
            Some(former) => module.biases.missing_from(&former.biases),
            None => module.biases.len(),
        };
        self.modules.iter().map(of_module).sum()
    }

    /// The number of blocks that were executed in only one of the last two runs.
    fn last_differences(&self) -> usize {
        self.modules.iter().map(|module| module.differences).sum()
    }

    /// The module of the same file.
    fn same(&self, module: &Module) -> Option<&Module> {
        let mut modules = self.modules.iter();
        modules.find(|other| other.path == module.path && other.version == module.version)
    }

    /// The next hints for the program's file: this run, with the blocks of the former one.
    fn after(&self, former: &Self) -> Self {
        let mut all = self.clone();
        if all.executions == 0 {
            all.executions = former.executions;
        }
        for module in &mut all.modules {
            let former = former.same(module);
            module.before = former.map(|former| former.blocks.clone()).unwrap_or_default();
            if module.biases.is_empty() {
                // Biases are not computed in a run that did the expected.
                module.biases = former.map(|former| former.biases.clone()).unwrap_or_default();
            }
            module.transfers.sort_by_key(|transfer| (transfer.from, Reverse(transfer.count)));
        }
        all
    }

    /// The module of a file in its present version.
    fn find(&self, path: &str) -> Option<u16> {
        let number = self.modules.iter().position(|module| module.path == path)?;
        let is_same = Version::of(Path::new(path)) == Some(self.modules[number].version);
        is_same.then_some(number as u16)
    }

    /// The same; adds a module if there is none, or only one of an older version.
    fn find_or_add(&mut self, path: &str) -> Option<u16> {
        if let Some(known) = self.find(path) {
            return Some(known);
        }
        let version = Version::of(Path::new(path))?;
        let path = path.to_owned();
        let new = Module {
            path,
            version,
            blocks: Offsets::default(),
            before: Offsets::default(),
            expected: None,
            differences: 0,
            biases: Offsets::default(),
            transfers: Vec::new(),
        };
        if let Some(old) = self.modules.iter().position(|module| module.path == new.path) {
            let is_there = |transfer: &SeenTransfer| usize::from(transfer.to.module) != old;
            self.modules.iter_mut().for_each(|module| module.transfers.retain(is_there));
            self.modules[old] = new;
            return Some(old as u16);
        }
        let number = u16::try_from(self.modules.len()).ok()?;
        self.modules.push(new);
        Some(number)
    }

    /// Adds the executed blocks of a process.
    fn add(&mut self, counts: &ProgramCounts) {
        let regions = &counts.regions;
        let modules: Vec<_> =
            regions.iter().map(|region| path_of(region).and_then(|path| self.find_or_add(path))).collect();
        let place = |region: usize, address: u64| {
            let (_, offset) = regions[region].file.as_ref()?;
            let offset = u32::try_from(address.checked_sub(regions[region].start)? + offset).ok()?;
            Some(FilePlace { module: modules[region]?, offset })
        };
        let of_block = |block: &CountedBlock| place(block.region as usize, block.address);
        let mut executed = vec![(Vec::new(), Vec::new()); self.modules.len()];
        for (block, place) in counts.blocks.iter().filter_map(|block| Some((block, of_block(block)?))) {
            let (all, biases) = &mut executed[usize::from(place.module)];
            all.push(place.offset);
            biases.extend(block.bias.and_then(|bias| with_bias(place.offset, bias)));
        }
        for (module, (all, biases)) in self.modules.iter_mut().zip(executed) {
            module.blocks.add(all);
            module.biases.add(biases);
        }
        // Regions of code that is made while a program runs may be thousands.
        let of_files: Vec<usize> = (0..regions.len()).filter(|&number| modules[number].is_some()).collect();
        let holds = |number: usize, address| (regions[number].start..regions[number].end).contains(&address);
        let mut changed = vec![false; self.modules.len()];
        for branch in counts.threads.iter().flat_map(|thread| &thread.branches) {
            let (BranchKind::IndirectCall | BranchKind::IndirectJump, Some(block), Some(target)) =
                (branch.kind, branch.block, branch.target)
            else {
                continue;
            };
            let last = of_files.iter().rev().find(|&&number| holds(number, target));
            let to = last.and_then(|&region| place(region, target));
            if let Some((FilePlace { module, offset }, to)) = of_block(&counts.blocks[block as usize]).zip(to)
            {
                let transfer = SeenTransfer { from: offset, to, count: branch.count };
                self.modules[usize::from(module)].transfers.push(transfer);
                changed[usize::from(module)] = true;
            }
        }
        let changed = self.modules.iter_mut().zip(changed).filter(|(_, changed)| *changed);
        changed.for_each(|(module, _)| module.join_ways());
    }
}

impl Module {
    /// Joins equal transfers.
    fn join_ways(&mut self) {
        self.transfers.sort_unstable_by_key(|transfer| (transfer.from, transfer.to));
        self.transfers.dedup_by(|transfer, first| {
            let is_same = (transfer.from, transfer.to) == (first.from, first.to);
            if is_same {
                first.count = first.count.saturating_add(transfer.count);
            }
            is_same
        });
    }
}

/// The history of an address space's program, and where its modules are mapped.
#[derive(Debug, Default)]
pub(crate) struct WarmStart {
    program: Rc<ProgramHints>,
    /// The module of each region, by number.
    modules: Vec<Option<u16>>,
    /// The regions of modules, by number.
    of_modules: Vec<(u16, usize)>,
    /// The number of translated blocks that the history does not contain.
    pub(crate) unexpected: usize,
    /// Whether the present request translates only blocks of the history.
    pub(crate) is_warm: bool,
}

impl WarmStart {
    pub(crate) fn new(program: Rc<ProgramHints>) -> Self {
        Self { program, ..Self::default() }
    }

    /// The number of entered blocks in the run in which biases were last computed.
    pub(crate) fn executions(&self) -> u64 {
        self.program.executions
    }

    /// The regions that have no module yet, of `regions` in all; none if there is no history.
    pub(crate) fn new_regions(&self, regions: usize) -> Range<usize> {
        if self.program.modules.is_empty() { 0..0 } else { self.modules.len()..regions }
    }

    /// The module of a region.
    pub(crate) fn module_of(&self, region: &Region) -> Option<u16> {
        let (path, _) = region.file.as_ref().filter(|_| region.hidden.is_none())?;
        self.program.find(path.to_str()?)
    }

    /// Adds the next region's module.
    pub(crate) fn follow(&mut self, module: Option<u16>) {
        self.of_modules.extend(module.map(|module| (module, self.modules.len())));
        self.modules.push(module);
    }

    /// The module of an address in a region, and the offset there.
    fn locate(&self, region: &Region, address: u64) -> Option<(&Module, u32)> {
        let number = (*self.modules.get(region.number as usize)?)?;
        let (_, offset) = region.file.as_ref()?;
        let offset = u32::try_from(address - region.start + offset).ok()?;
        Some((&self.program.modules[usize::from(number)], offset))
    }

    /// Whether the block at an address was executed in the last runs.
    pub(crate) fn is_hinted(&self, regions: &Regions, address: u64) -> bool {
        if self.modules.is_empty() {
            return false;
        }
        let region = regions.find(address);
        let place = region.and_then(|region| self.locate(region, address));
        place.is_some_and(|(module, offset)| module.expects(offset))
    }

    /// The most frequent successor of the block at an address in the last run, if that has no other predecessor.
    pub(crate) fn branch_bias(&self, regions: &Regions, address: u64) -> Option<BranchBias> {
        if !self.is_warm {
            return None;
        }
        let (module, offset) = self.locate(regions.find(address)?, address)?;
        let bias = |number| if number % 2 == 0 { BranchBias::FallThrough } else { BranchBias::Taken };
        module.biases.one_of_two(with_bias(offset, BranchBias::FallThrough)?).map(bias)
    }

    /// Whether the program executed nearly the same blocks as in the last runs.
    pub(crate) fn was_as_expected(&self, blocks: usize) -> bool {
        self.unexpected * LEAST_CHANGE <= blocks
    }

    /// Whether an address is not worth translating before a thread reaches it.
    pub(crate) fn is_cold(&self, regions: &Regions, address: u64) -> bool {
        self.is_warm && !self.is_hinted(regions, address)
    }

    /// The targets of the indirect transfer of the block at an address in the last run, most frequent first.
    /// Empty unless the present request translates blocks of the history.
    pub(crate) fn hinted_targets(&self, regions: &Regions, address: u64) -> Vec<u64> {
        if self.is_warm { self.targets_from(regions, address) } else { Vec::new() }
    }

    /// The targets of the indirect transfer of the block at an address in the last run, most frequent first.
    pub(crate) fn targets_from(&self, regions: &Regions, address: u64) -> Vec<u64> {
        let Some(region) = regions.find(address) else { return Vec::new() };
        let Some((module, from)) = self.locate(region, address) else { return Vec::new() };
        let first = module.transfers.partition_point(|transfer| transfer.from < from);
        let transfers = module.transfers[first..].iter().take_while(|transfer| transfer.from == from);
        transfers.filter_map(|transfer| self.address_of_place(regions, transfer.to)).collect()
    }

    fn address_of_place(&self, regions: &Regions, place: FilePlace) -> Option<u64> {
        let numbers = self.of_modules.iter().rev().filter(|(module, _)| *module == place.module);
        let mut addresses = numbers.filter_map(|&(_, number)| {
            let region = &regions.log()[number];
            let (_, offset) = region.file.as_ref()?;
            let address = region.start + u64::from(place.offset).checked_sub(*offset)?;
            let found = regions.find(address)?;
            (found.number == region.number).then_some(address)
        });
        addresses.next()
    }
}

#[cfg(test)]
mod tests;
