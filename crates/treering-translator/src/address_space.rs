//! One address space: the program's code, its translation, and the memory of its threads.
//!
//! An address space is composed of parts that own their data and know nothing of each other: [`ProgramCode`],
//! [`CodeCache`], [`ThreadAreas`], [`Counting`]. Work that needs several of them is done in the rooms above:
//! `linking`, `emit` and `tracer` add their methods to [`AddressSpace`].

use std::io;
use std::path::PathBuf;
use std::rc::Rc;

use treering_x86::disassembly::Flow;

use crate::areas::counter_file::Spare;
use crate::areas::counters::CounterValues;
use crate::areas::thread_areas::ThreadAreas;
use crate::areas::trees::{TreeLimits, Trees};
use crate::cache::block::{BlockFacts, End};
use crate::cache::code_cache::CodeCache;
use crate::cache::indirect::IndirectArc;
use crate::cache::unit::UnitMemory;
use crate::context::{Contexts, FileFunctionStarts};
use crate::counting::Counting;
use crate::counting::active_blocks::BlockSet;
use crate::counting::result::Translated;
use crate::history::{ProgramHints, WarmStart};
use crate::model::{Model, ModelOptions};
use crate::program::program_code::ProgramCode;
use crate::program::region::{Region, Regions};
use crate::surroundings::Surroundings;
use crate::sys::layout::{
    MOST_COUNTERS, MOST_COUNTERS_BESIDE_MODEL, SEGMENT_SIZE, SITE_TABLES, TABLES, TABLES_SIZE, UNIT_SIZE,
};
use crate::sys::remote_syscall::StoppedThread;
use crate::sys::shared_memory::SharedMemory;

/// An address space with all its translated code. Its threads share it. A child started by `vfork` shares it
/// too, until the child becomes another program.
#[derive(Debug)]
pub(crate) struct AddressSpace {
    pub(crate) program: ProgramCode,
    pub(crate) cache: CodeCache,
    pub(crate) areas: ThreadAreas,
    pub(crate) counting: Counting,
    /// Facts about the calls of its code, for trees.
    pub(crate) context: Contexts,
    /// The program's history, from earlier runs.
    pub(crate) warm_start: WarmStart,
    /// The model of caches and predictors, if it was asked for.
    pub(crate) model: Option<Box<Model>>,
    /// Its surroundings, as far as they are held.
    pub(crate) surroundings: Surroundings,
    /// The watched address at which a thread has just arrived, if there is one.
    pub(crate) arrived: Option<u64>,
    /// Notes for the reader of the counts.
    pub(crate) warnings: Vec<&'static str>,
}

/// The options that all address spaces of a run share.
#[derive(Debug, Clone)]
pub(crate) struct SpaceOptions {
    /// Where functions begin according to their files, if trees are kept.
    pub(crate) tree: Option<FileFunctionStarts>,
    /// The size limits of its trees.
    pub(crate) limits: TreeLimits,
    pub(crate) model: ModelOptions,
    /// The most counters that it may have.
    pub(crate) most_counters: u32,
    /// The number of bytes of each unit that may be used.
    pub(crate) unit_size: u64,
    /// The surroundings of the first program.
    pub(crate) surroundings: Surroundings,
}

/// The resources of a new address space.
#[derive(Debug)]
pub(crate) struct Provision {
    /// The process.
    pub(crate) pid: i32,
    pub(crate) options: SpaceOptions,
    /// The path for the files of its counters, if they are in files.
    pub(crate) files: Option<PathBuf>,
    /// Whether the program's system calls are made at [`CALL`](crate::sys::syscall_page::CALL).
    pub(crate) calls_at_page: bool,
    /// The program's history, from earlier runs.
    pub(crate) hints: Rc<ProgramHints>,
    /// Its surroundings, as far as they are held.
    pub(crate) surroundings: Surroundings,
    /// A file of counters, for reuse.
    pub(crate) spare: Option<Spare>,
    /// Tables and units of an ended process, for reuse.
    pub(crate) used: Option<UsedMemory>,
}

/// Tables and units of an ended process. Freeing them and allocating others takes a third of the tracer's
/// time for a short process.
#[derive(Debug)]
pub(crate) struct UsedMemory {
    tables: SharedMemory,
    units: Vec<UnitMemory>,
}

impl AddressSpace {
    /// Prepares a stopped process: tables, counters and the first unit, near `code`.
    ///
    /// With `replace`, tables and units that a parent's copy left in the process are replaced.
    pub(crate) fn new(
        regions: Regions,
        code: u64,
        thread: &mut StoppedThread<'_>,
        replace: Option<&AddressSpace>,
        provision: Provision,
    ) -> io::Result<Self> {
        let Provision { pid, options, calls_at_page, .. } = provision;
        let is_used = provision.used.is_some();
        let (tables, units) = match provision.used {
            Some(UsedMemory { tables, units }) => (tables, units),
            None => (SharedMemory::new("treering tables", TABLES_SIZE)?, Vec::new()),
        };
        let has_trees = options.tree.is_some();
        thread.remotely(|calls| {
            for old in replace.iter().flat_map(|space| &space.cache.units).skip(1) {
                calls.unmap(old.base, UNIT_SIZE)?;
            }
            // Without trees, the first segment's memory is replaced.
            let kept = usize::from(!has_trees);
            for &base in replace.iter().flat_map(|space| &space.areas.segment_bases).skip(kept) {
                calls.unmap(base, SEGMENT_SIZE)?;
            }
            calls.map(&tables, TABLES, TABLES_SIZE, libc::PROT_READ, replace.is_some())
        })?;
        let most = if options.model.is_wanted() { MOST_COUNTERS_BESIDE_MODEL } else { MOST_COUNTERS };
        let trees = has_trees.then(|| Box::new(Trees::new(options.limits)));
        let mut space = Self {
            program: ProgramCode::new(regions),
            cache: CodeCache::new(tables, units, options.unit_size.min(UNIT_SIZE), calls_at_page, has_trees),
            areas: ThreadAreas::new(provision.files, options.most_counters.min(most), trees),
            counting: Counting::default(),
            context: Contexts::new(options.tree.unwrap_or_default()),
            warm_start: WarmStart::new(provision.hints),
            model: Model::new(options.model).map(Box::new),
            surroundings: provision.surroundings,
            arrived: None,
            warnings: Vec::new(),
        };
        space.program.regions.calls.process = (!calls_at_page).then_some(pid);
        let replaced = replace.and_then(|old| old.areas.segment_bases.first().copied());
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        space.areas.add_segment(thread, protection, replaced, provision.spare)?;
        match replace.and_then(|old| old.cache.units.first()) {
            Some(old) => space.cache.map_unit(old.base, has_trees, thread, true)?,
            None => space.cache.add_unit(code, has_trees, thread)?,
        }
        let miss = space.cache.units[0].routines.miss;
        match is_used {
            true => space.cache.tables.refill(0, SITE_TABLES, miss),
            false => space.cache.tables.fill(0, SITE_TABLES, miss),
        }
        space.cache.prepare_lookup();
        Ok(space)
    }

    /// Its first counters if they are in a file, and its tables and units. The process has ended, or uses
    /// other memory.
    pub(crate) fn into_memory(self) -> (Option<SharedMemory>, Option<UsedMemory>) {
        /// Memory of more bytes is freed: it costs more than it saves.
        const MUCH: u64 = 2 << 20;
        /// A short process needs one near its own code and one near its libraries.
        const MOST_UNITS: usize = 2;
        let calls_at_page = self.cache.calls_at_page;
        let (tables, mut units) = self.cache.into_memory();
        units.truncate(MOST_UNITS);
        let taken = tables.taken() + units.iter().map(UnitMemory::taken).sum::<u64>();
        // A process that was attached to may live on with these units.
        let is_small = !calls_at_page && !units.is_empty() && taken <= MUCH;
        (self.areas.into_counters(), is_small.then_some(UsedMemory { tables, units }))
    }

    /// The blocks whose executions follow from the nonzero counters of a thread.
    pub(crate) fn active_blocks(&mut self, counts: &CounterValues) -> BlockSet {
        let mut owners = std::mem::take(&mut self.counting.owners);
        owners.follow(self, self.cache.arcs.len() as u32);
        let active = owners.active(counts.iter().map(|(counter, _)| counter), self.block_count());
        self.counting.owners = owners;
        active
    }
}

impl Translated for AddressSpace {
    fn block_count(&self) -> u32 {
        self.cache.blocks.len() as u32
    }

    fn block(&self, block: u32) -> (BlockFacts, u32) {
        let block = self.cache.blocks.get(block);
        (block.facts, block.arcs)
    }

    fn arc(&self, arc: u32) -> IndirectArc {
        *self.cache.arcs.get(arc)
    }

    fn regions(&self) -> &[Region] {
        self.program.regions.log()
    }

    fn kept(&self) -> &[(u32, Box<[u8]>)] {
        &self.cache.kept
    }

    fn upper_levels(&self) -> &[Vec<u32>] {
        self.counting.propagation.upper_levels()
    }

    fn propagated(&self, address: u64) -> Option<u32> {
        self.counting.propagation.propagated_to(&self.cache.blocks, address)
    }

    fn direct_target(&self, block: u32) -> Option<u32> {
        self.cache.direct_targets.get(&block).copied()
    }

    fn outline(&self, block: u32, lengths: &mut Vec<u8>) -> Option<Flow> {
        let BlockFacts { target, end, .. } = self.cache.blocks.get(block).facts;
        let flow = match end {
            End::Next | End::System => Flow::Next,
            End::Trap => Flow::Other,
            End::Jump => Flow::Jump(target),
            End::Branch => Flow::Conditional(target),
            End::Call => Flow::Call(target),
            End::IndirectJump => Flow::IndirectJump,
            End::IndirectCall => Flow::IndirectCall,
            End::Return => Flow::Return,
            // These ends are of many kinds, and rare.
            End::Stop => return None,
        };
        lengths.extend(self.cache.blocks.lengths(block));
        Some(flow)
    }
}
