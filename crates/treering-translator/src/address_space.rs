//! One address space: its code, the translation of it, and the counters.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::rc::Rc;

use hashbrown::{HashMap, HashSet};
use treering_x86::flags::FlagSet;
use treering_x86::registers::Registers;
use treering_x86::{Assembler, Decoded};

use crate::address_map::AddressMap;
use crate::cache::block::{Blocks, Steps};
use crate::cache::indirect_lookup::IndirectTargets;
use crate::cache::link::{ExitStubs, IndirectSite, ReturnTable};
use crate::cache::unit::Unit;
use crate::context::{CONTEXT_AREA, Contexts, FileFunctionStarts};
use crate::counting::active_blocks::CounterOwners;
use crate::counting::propagated_counts::Propagation;
use crate::emit::translate::Batch;
use crate::error::Exhausted;
use crate::history::{ProgramHints, WarmStart};
use crate::journal::{self, COUNTERS_AT_ONCE, Spare};
use crate::model::{Model, ModelOptions};
use crate::program::code_files::CodeFiles;
use crate::program::page_snapshot::PageSnapshots;
use crate::program::region::Regions;
use crate::run::TreeLimits;
use crate::sys::layout::{
    AREAS_PER_SEGMENT, LOW_END, LOW_UNITS, MOST_COUNTERS, MOST_COUNTERS_BESIDE_MODEL, REACH, SAVED_COUNTS,
    SEGMENT_SIZE, SELECTED, SITE_TABLES, TABLES, TABLES_SIZE, THREAD_AREA, UNIT_SIZE,
};
use crate::sys::maps;
use crate::sys::proc_status;
use crate::sys::remote_syscall::{RemoteSyscalls, StoppedThread};
use crate::sys::shared_memory::SharedMemory;

/// An address space with all that was translated in it. Its threads share it, and so does a child
/// until it becomes another program if it was started by `vfork`.
#[derive(Debug)]
pub(crate) struct AddressSpace {
    pub(crate) regions: Regions,
    pub(crate) units: Vec<Unit>,
    pub(crate) blocks: Blocks,
    /// What each counter says something of, as far as a thread has ended since.
    pub(crate) owners: CounterOwners,
    pub(crate) exits: ExitStubs,
    pub(crate) return_table: ReturnTable,
    pub(crate) indirect_targets: IndirectTargets,
    pub(crate) sites: Vec<IndirectSite>,
    /// Jumps and calls from one instruction to one target; see [`IndirectArc`].
    pub(crate) arcs: Vec<IndirectArc>,
    pub(crate) tables: SharedMemory,
    pub(crate) segments: Vec<SharedMemory>,
    /// Where its counters lie, by segment_bases; see [`COUNTERS`](crate::sys::layout::COUNTERS).
    pub(crate) segment_bases: Vec<u64>,
    /// Where the files of its counters are, if they are in files.
    pub(crate) files: Option<PathBuf>,
    free_areas: BTreeSet<usize>,
    areas: usize,
    counters: u32,
    /// How many there may be, if not as many as there is room for.
    pub(crate) most_counters: u32,
    /// Where a thread has just arrived, if that is watched.
    pub(crate) arrived: Option<u64>,
    /// Where the return that was answered last went.
    pub(crate) returned: Option<u64>,
    /// Addresses to which returns ask the tracer.
    pub(crate) returns: HashSet<u64>,
    /// Flags that are live before an address.
    pub(crate) live: AddressMap<FlagSet>,
    /// The bytes of blocks that are compared before each execution.
    pub(crate) compared: HashMap<u32, Box<[u8]>>,
    /// The regions that direct calls and jumps of blocks lead to, if those are others than the blocks' own.
    pub(crate) direct_targets: HashMap<u32, u32>,
    /// By which routines control comes to derived blocks from elsewhere.
    pub(crate) entry_stubs: HashMap<(u32, bool), u64>,
    /// What calls count for.
    pub(crate) propagation: Propagation,
    /// The bytes of blocks that no file holds.
    pub(crate) kept: Vec<(u32, Box<[u8]>)>,
    /// What a reader of the counts must know.
    pub(crate) warnings: Vec<&'static str>,
    /// Whether code was taken out of use, so that addresses may stand for more than one.
    pub(crate) generations: u32,
    /// What trees need, if they are kept.
    pub(crate) context: Option<Box<Contexts>>,
    /// Whether its code makes the program's system calls at [`CALL`](crate::sys::syscall_page::CALL).
    pub(crate) calls_at_page: bool,
    pub(crate) scratch: Scratch,
    pub(crate) snapshots: PageSnapshots,
    /// The files that code came from, as far as anybody has asked.
    pub(crate) code_files: CodeFiles,
    /// What is known of the program from earlier runs.
    pub(crate) warm_start: WarmStart,
    /// How many blocks were translated of which that was not known.
    pub(crate) unexpected: usize,
    /// Whether only what was executed then is translated for the request that is being answered.
    pub(crate) is_warm: bool,
    /// What caches and predictors would make of it, if that is wanted.
    pub(crate) model: Option<Box<Model>>,
}

/// What an address space is given.
#[derive(Debug, Default)]
pub(crate) struct Provision {
    /// Where the files of its counters are to be, if they are in files.
    pub(crate) files: Option<PathBuf>,
    /// What files say of where functions begin, if trees are kept.
    pub(crate) tree: Option<FileFunctionStarts>,
    /// How large its trees may be.
    pub(crate) limits: TreeLimits,
    /// Whether the program's system calls are made at [`CALL`](crate::sys::syscall_page::CALL).
    pub(crate) calls_at_page: bool,
    /// What is to be modelled.
    pub(crate) model: ModelOptions,
    /// How many counters it may have.
    pub(crate) most_counters: u32,
    /// What is known of its program from earlier runs.
    pub(crate) hints: Rc<ProgramHints>,
    /// Counters in a file that are to be used again.
    pub(crate) spare: Option<Spare>,
}

/// Memory that is used again for every block.
#[derive(Debug)]
pub(crate) struct Scratch {
    pub(crate) code: Assembler,
    pub(crate) registers: Registers,
    pub(crate) decoded: Vec<Decoded>,
    pub(crate) steps: Steps,
    pub(crate) work: Vec<u64>,
    pub(crate) batch: Batch,
    /// Indirect transfers whose targets were looked up before they were made.
    pub(crate) presumed: Vec<(u32, u64)>,
}

/// A way from an indirect jump or call to one of its targets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IndirectArc {
    /// The block that it leaves.
    pub(crate) block: u32,
    pub(crate) target: u64,
    /// Its counter; none for the first target of a translated block, whose count is what the others
    /// leave of the block's.
    pub(crate) counter: Option<u32>,
    /// The next arc of the block, plus one.
    pub(crate) next: u32,
    /// The region that the target lay in.
    pub(crate) region: u32,
    /// Whether that is gone: who goes to the target now goes to something else.
    pub(crate) is_over: bool,
}

/// How many units there may be; exits are noted by unit in 32 bits.
const MOST_UNITS: usize = 32;

/// Whether code of a unit reaches what lies about code of the program.
fn is_near(base: u64, code: u64) -> bool {
    base.abs_diff(code) < REACH || (base < LOW_END && code < LOW_END)
}

/// How far below the code of a program its unit is put.
const DISTANCE: u64 = 0x2000_0000;

impl AddressSpace {
    /// Prepares a stopped process: tables, counters and the first unit, near `code`.
    ///
    /// With `replace`, what a parent's tables and units left there is replaced.
    pub(crate) fn new(
        regions: Regions,
        code: u64,
        thread: &mut StoppedThread<'_>,
        replace: Option<&AddressSpace>,
        Provision { files, tree, limits, calls_at_page, model, most_counters, hints, spare }: Provision,
    ) -> io::Result<Self> {
        let tables = SharedMemory::new("treering tables", TABLES_SIZE)?;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        thread.remotely(|calls| {
            for old in replace.iter().flat_map(|space| &space.units).skip(1) {
                calls.call(libc::SYS_munmap, [old.base, UNIT_SIZE, 0, 0, 0, 0])?;
            }
            // Without trees, the first is replaced.
            let kept = usize::from(tree.is_none());
            for &base in replace.iter().flat_map(|space| &space.segment_bases).skip(kept) {
                calls.call(libc::SYS_munmap, [base, SEGMENT_SIZE, 0, 0, 0, 0])?;
            }
            calls.map(&tables, TABLES, TABLES_SIZE, libc::PROT_READ, replace.is_some())
        })?;
        let mut space = Self::empty(regions, tables);
        (space.files, space.calls_at_page, space.most_counters) = (files, calls_at_page, most_counters);
        space.warm_start = WarmStart::new(hints);
        space.regions.calls.process = (!calls_at_page).then_some(proc_status::process_of(thread.tid));
        space.set_model(model);
        if let Some(files) = tree {
            space.prepare_contexts(files, limits);
        }
        let replaced = replace.and_then(|old| old.segment_bases.first().copied());
        space.add_segment(thread, protection, replaced, spare)?;
        match replace.and_then(|old| old.units.first()) {
            Some(old) => space.map_unit(old.base, thread, true)?,
            None => space.add_unit(code, thread)?,
        }
        let miss = space.units[0].routines.miss;
        space.tables.fill(0, SITE_TABLES, miss);
        space.prepare_lookup();
        Ok(space)
    }

    fn empty(regions: Regions, tables: SharedMemory) -> Self {
        Self {
            regions,
            units: Vec::new(),
            blocks: Blocks::default(),
            owners: CounterOwners::default(),
            exits: ExitStubs::default(),
            return_table: ReturnTable::default(),
            indirect_targets: IndirectTargets::default(),
            sites: Vec::new(),
            arcs: Vec::new(),
            tables,
            segments: Vec::new(),
            segment_bases: Vec::new(),
            files: None,
            free_areas: BTreeSet::new(),
            areas: 0,
            counters: 0,
            most_counters: u32::MAX,
            arrived: None,
            returned: None,
            returns: HashSet::new(),
            live: AddressMap::default(),
            compared: HashMap::new(),
            direct_targets: HashMap::new(),
            entry_stubs: HashMap::new(),
            propagation: Propagation::default(),
            kept: Vec::new(),
            warnings: Vec::new(),
            generations: 0,
            context: None,
            calls_at_page: false,
            snapshots: PageSnapshots::default(),
            code_files: CodeFiles::default(),
            warm_start: WarmStart::default(),
            unexpected: 0,
            is_warm: false,
            scratch: Scratch {
                code: Assembler::new(0),
                registers: Registers::default(),
                decoded: Vec::new(),
                steps: Steps::default(),
                work: Vec::new(),
                batch: Batch::default(),
                presumed: Vec::new(),
            },
            model: None,
        }
    }

    /// Adds memory for more areas, which takes the place of what lies at `replaced`, if anything does.
    fn add_segment(
        &mut self,
        thread: &mut StoppedThread<'_>,
        protection: i32,
        replaced: Option<u64>,
        spare: Option<Spare>,
    ) -> io::Result<()> {
        let memory = journal::counters(self.files.as_deref(), self.segments.len(), SEGMENT_SIZE, spare)?;
        let tid = thread.tid;
        if !self.has_contexts() {
            let map = |calls: &mut RemoteSyscalls<'_, '_>, place, replace| {
                calls.map(&memory, place, SEGMENT_SIZE, protection, replace)
            };
            let base = thread.remotely(|calls| match replaced {
                Some(place) => map(calls, place, true).map(|()| place),
                None => self.place_segment(tid, |place| map(calls, place, false), |_| false),
            })?;
            self.segment_bases.push(base);
        }
        memory.expect_no_order();
        self.segments.push(memory);
        Ok(())
    }

    /// Its first counters, which nobody uses any more.
    pub(crate) fn into_counters(self) -> Option<SharedMemory> {
        self.segments.into_iter().next().filter(SharedMemory::is_on_disk)
    }

    /// An area for a thread, which is stopped; all its counters are 0.
    pub(crate) fn take_area(&mut self, thread: &mut StoppedThread<'_>) -> io::Result<usize> {
        let area = self.free_area(thread)?;
        self.empty_log(area);
        Ok(area)
    }

    fn free_area(&mut self, thread: &mut StoppedThread<'_>) -> io::Result<usize> {
        if let Some(area) = self.free_areas.pop_first() {
            self.reserve(area)?;
            self.renew_contexts(area, thread)?;
            return Ok(area);
        }
        if self.areas == self.segments.len() * AREAS_PER_SEGMENT {
            self.add_segment(thread, libc::PROT_READ | libc::PROT_WRITE, None, None)?;
        }
        self.areas += 1;
        self.reserve(self.areas - 1)?;
        self.map_contexts(self.areas - 1, thread)?;
        Ok(self.areas - 1)
    }

    /// Sees to it that an area's counters have room, if they are in a file.
    fn reserve(&self, area: usize) -> io::Result<()> {
        let (memory, offset) = self.area_memory(area);
        journal::reserve(memory, offset, self.counters)?;
        self.reserve_lasts(area)
    }

    /// How many threads have an area.
    pub(crate) fn threads(&self) -> usize {
        self.areas - self.free_areas.len()
    }

    /// How many counters there are.
    pub(crate) fn counters(&self) -> u32 {
        self.counters
    }

    /// Takes back the area of a thread that is gone.
    pub(crate) fn give_area_back(&mut self, area: usize) {
        self.clear_context(area);
        let (memory, offset) = self.area_memory(area);
        if memory.load(offset + u64::from(SELECTED)) != 0 {
            memory.zero(offset + u64::from(SAVED_COUNTS), u64::from(self.counters) * 8);
        }
        memory.zero(offset, u64::from(crate::sys::layout::counter_slot(self.counters)));
        self.free_areas.insert(area);
    }

    /// The memory of an area's counters, to be mapped.
    pub(crate) fn area_memory(&self, area: usize) -> (&SharedMemory, u64) {
        let offset = (area % AREAS_PER_SEGMENT) as u64 * THREAD_AREA;
        (&self.segments[area / AREAS_PER_SEGMENT], offset)
    }

    /// Sees to it that there is room for what was saved of an area's counters.
    pub(crate) fn reserve_saved_counts(&self, area: usize) -> io::Result<()> {
        let (memory, offset) = self.area_memory(area);
        memory.reserve(offset + u64::from(SAVED_COUNTS), u64::from(self.counters) * 8)
    }

    /// Reads a part of an area whose thread is stopped.
    pub(crate) fn read_area(&self, area: usize, slot: u32, bytes: &mut [u8]) {
        let (memory, offset) = self.area_memory(area);
        memory.read(offset + u64::from(slot), bytes);
    }

    /// Eight bytes of a thread's area.
    pub(crate) fn slot(&self, area: usize, slot: u32) -> u64 {
        if u64::from(slot) >= THREAD_AREA {
            return self.context_memory(area).load(u64::from(slot) - THREAD_AREA);
        }
        let (memory, offset) = self.area_memory(area);
        memory.load(offset + u64::from(slot))
    }

    /// Stores eight bytes in a thread's area.
    pub(crate) fn set_slot(&self, area: usize, slot: u32, value: u64) {
        if u64::from(slot) >= THREAD_AREA {
            return self.context_memory(area).store(u64::from(slot) - THREAD_AREA, value);
        }
        let (memory, offset) = self.area_memory(area);
        memory.store(offset + u64::from(slot), value);
    }

    /// Reads bytes of a thread's area.
    pub(crate) fn read_slots(&self, area: usize, from: u32, bytes: &mut [u8]) {
        let (memory, offset) = self.area_memory(area);
        memory.read(offset + u64::from(from), bytes);
    }

    /// What GS must be for a thread with the area.
    pub(crate) fn gs_base(&self, area: usize) -> u64 {
        match self.has_contexts() {
            true => self.segment_bases[area],
            false => {
                self.segment_bases[area / AREAS_PER_SEGMENT] + (area % AREAS_PER_SEGMENT) as u64 * THREAD_AREA
            }
        }
    }

    /// How far areas lie apart.
    pub(crate) fn stride(&self) -> u64 {
        if self.has_contexts() { CONTEXT_AREA } else { THREAD_AREA }
    }

    /// A new counter.
    ///
    /// # Errors
    /// There is no room for another one.
    pub(crate) fn new_counter(&mut self) -> io::Result<u32> {
        let most = if self.model.is_some() { MOST_COUNTERS_BESIDE_MODEL } else { MOST_COUNTERS };
        if self.counters >= self.most_counters.min(most) {
            return Err(Exhausted::Counters.into());
        }
        self.counters += 1;
        if self.counters.is_multiple_of(COUNTERS_AT_ONCE) {
            (0..self.areas).try_for_each(|area| self.reserve(area))?;
        }
        Ok(self.counters - 1)
    }

    /// The unit that holds an address.
    pub(crate) fn unit_of(&self, address: u64) -> Option<usize> {
        self.units.iter().position(|unit| unit.contains(address))
    }

    /// The unit for code at an address; makes one if there is none within reach.
    pub(crate) fn unit_near(&mut self, code: u64, thread: &mut StoppedThread<'_>) -> io::Result<usize> {
        let reaches = |unit: &Unit| is_near(unit.base, code) && unit.has_room();
        if let Some(found) = self.units.iter().position(reaches) {
            return Ok(found);
        }
        self.add_unit(code, thread)?;
        Ok(self.units.len() - 1)
    }

    fn add_unit(&mut self, code: u64, thread: &mut StoppedThread<'_>) -> io::Result<()> {
        let mappings = maps::mappings(thread.tid)?;
        let is_free =
            |base: u64| !mappings.iter().any(|other| other.start < base + UNIT_SIZE && base < other.end);
        let below = |far: u64| (code & !0xf_ffff).checked_sub(far * UNIT_SIZE + DISTANCE);
        let above = |far: u64| (code | 0xf_ffff).checked_add(1 + far * UNIT_SIZE);
        let candidates = (0..4).filter_map(below).chain((1..5).filter_map(above));
        let in_reach = |base: &u64| {
            *base >= 0x5000_0000
                && *base < 0x7fff_ffff_0000 - UNIT_SIZE
                && is_near(*base, code)
                && is_free(*base)
        };
        let low = (code < LOW_END).then_some(LOW_UNITS);
        if self.units.len() == MOST_UNITS {
            return Err(io::Error::other("the program's code is spread too widely"));
        }
        let found =
            low.into_iter().flatten().filter(|&base| is_free(base)).chain(candidates.filter(in_reach)).next();
        let base =
            found.ok_or_else(|| io::Error::other(format!("no room for translated code near {code:#x}")))?;
        self.map_unit(base, thread, false)
    }

    fn map_unit(&mut self, base: u64, thread: &mut StoppedThread<'_>, replace: bool) -> io::Result<()> {
        let unit = Unit::new(base, SharedMemory::new("treering code", UNIT_SIZE)?, self.has_contexts());
        let protection = libc::PROT_READ | libc::PROT_EXEC;
        thread.remotely(|calls| calls.map(unit.memory(), base, UNIT_SIZE, protection, replace))?;
        self.units.push(unit);
        self.add_context_routines();
        Ok(())
    }
}
