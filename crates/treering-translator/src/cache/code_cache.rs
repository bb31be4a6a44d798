//! The code cache: units of memory, the blocks in them, and the tables that link them.

use std::io;

use hashbrown::{HashMap, HashSet};
use treering_x86::Assembler;

use crate::cache::block::Blocks;
use crate::cache::emitter::Emitter;
use crate::cache::indirect::{IndirectArcs, IndirectSite};
use crate::cache::indirect_lookup::IndirectTargets;
use crate::cache::link::ExitStubs;
use crate::cache::return_table::ReturnTable;
use crate::cache::unit::{Unit, UnitMemory};
use crate::sys::layout::{LOW_END, LOW_UNITS, REACH, UNIT_SIZE};
use crate::sys::remote_syscall::StoppedThread;
use crate::sys::shared_memory::SharedMemory;

/// All translated code of an address space.
#[derive(Debug)]
pub(crate) struct CodeCache {
    pub(crate) units: Vec<Unit>,
    /// Memory of ended processes' units, for reuse.
    spare_units: Vec<UnitMemory>,
    /// The number of bytes of a unit that may be used.
    unit_size: u64,
    /// Whether its code makes the program's system calls at [`CALL`](crate::sys::syscall_page::CALL).
    pub(crate) calls_at_page: bool,
    pub(crate) blocks: Blocks,
    pub(crate) exits: ExitStubs,
    /// The return table and the tables of indirect sites, which the program reads.
    pub(crate) tables: SharedMemory,
    pub(crate) return_table: ReturnTable,
    /// The targets of all indirect transfers.
    pub(crate) indirect_targets: IndirectTargets,
    pub(crate) sites: Vec<IndirectSite>,
    /// The arcs from indirect jumps and calls to their targets.
    pub(crate) arcs: IndirectArcs,
    /// The entry stubs of derived blocks, by block and whether the stub counts.
    pub(crate) entry_stubs: HashMap<(u32, bool), u64>,
    /// The target regions of blocks' direct calls and jumps, where they differ from the blocks' own.
    pub(crate) direct_targets: HashMap<u32, u32>,
    /// Addresses at which returns ask the tracer.
    pub(crate) watched_returns: HashSet<u64>,
    /// The bytes of blocks that are compared before each execution.
    pub(crate) compared: HashMap<u32, Box<[u8]>>,
    /// The bytes of blocks that no file holds.
    pub(crate) kept: Vec<(u32, Box<[u8]>)>,
    /// How many times code was evicted: afterwards, an address may stand for more than one function.
    pub(crate) generations: u32,
    /// A buffer that every link uses again.
    pub(crate) code: Assembler,
    /// The buffers of translations; none while one is made.
    pub(crate) emitter: Option<Box<Emitter>>,
}

/// The most units; exits note their unit by a bit of 32.
const MOST_UNITS: usize = 32;

/// Whether code of a unit is in reach of the data near `code` of the program.
fn is_near(base: u64, code: u64) -> bool {
    base.abs_diff(code) < REACH || (base < LOW_END && code < LOW_END)
}

/// How far below the program's code its unit is put.
const DISTANCE: u64 = 0x2000_0000;

impl CodeCache {
    /// The program's address for a place in translated code at the border of two instructions, or the address
    /// itself if it is not in translated code. For a thread that may be in a system call, see [`in_block`].
    pub(crate) fn address_of(&self, rip: u64) -> Option<u64> {
        let Some(unit) = self.unit_of(rip) else { return Some(rip) };
        let position = self.blocks.position(&self.units[unit], rip)?;
        Some(self.blocks.get(position.block).address + u64::from(position.offset))
    }

    /// Whether code at an address is leaving frames, of which there may be any number.
    pub(crate) fn is_unwinding(&self, rip: u64) -> bool {
        let routines = self.unit_of(rip).and_then(|unit| self.units[unit].context);
        routines.is_some_and(|routines| (routines.unwinding.0..routines.unwinding.1).contains(&rip))
    }

    /// An empty cache with its tables, and memory for its first units.
    pub(crate) fn new(
        tables: SharedMemory,
        spare_units: Vec<UnitMemory>,
        unit_size: u64,
        calls_at_page: bool,
        has_trees: bool,
    ) -> Self {
        Self {
            units: Vec::new(),
            spare_units,
            unit_size,
            calls_at_page,
            blocks: Blocks::default(),
            exits: ExitStubs::new(has_trees),
            tables,
            return_table: ReturnTable::default(),
            indirect_targets: IndirectTargets::default(),
            sites: Vec::new(),
            arcs: IndirectArcs::default(),
            entry_stubs: HashMap::new(),
            direct_targets: HashMap::new(),
            watched_returns: HashSet::new(),
            compared: HashMap::new(),
            kept: Vec::new(),
            generations: 0,
            code: Assembler::new(0),
            emitter: None,
        }
    }

    /// The unit that holds an address.
    pub(crate) fn unit_of(&self, address: u64) -> Option<usize> {
        self.units.iter().position(|unit| unit.contains(address))
    }

    /// The unit for a stub: the given one, or another if that is full. None if all are.
    pub(crate) fn unit_for_stub(&self, wanted: usize) -> Option<usize> {
        let newest_first = (0..self.units.len()).rev();
        std::iter::once(wanted).chain(newest_first).find(|&unit| self.units[unit].has_some_room())
    }

    /// Makes a unit for stubs if all are full: without room for them, each transfer that lacks one would ask the
    /// tracer, every time.
    ///
    /// # Errors
    /// As [`add_unit`](Self::add_unit).
    pub(crate) fn make_room(&mut self, has_trees: bool, thread: &mut StoppedThread<'_>) -> io::Result<()> {
        match self.blocks.len() {
            0 => Ok(()),
            _ if self.unit_for_stub(0).is_some() => Ok(()),
            blocks => self.add_unit(self.blocks.get(blocks as u32 - 1).address, has_trees, thread),
        }
    }

    /// Links the jump whose displacement is at `site`, in any unit, to `target`.
    pub(crate) fn patch(&mut self, site: u64, target: u64) {
        if let Some(unit) = self.unit_of(site) {
            self.units[unit].patch(site, target);
        }
    }

    /// The unit for code at an address; a new one if none is within reach. `has_trees`: trees are kept.
    pub(crate) fn unit_near(
        &mut self,
        code: u64,
        has_trees: bool,
        thread: &mut StoppedThread<'_>,
    ) -> io::Result<usize> {
        let reaches = |unit: &Unit| is_near(unit.base, code) && unit.has_room();
        if let Some(found) = self.units.iter().position(reaches) {
            return Ok(found);
        }
        self.add_unit(code, has_trees, thread)?;
        Ok(self.units.len() - 1)
    }

    /// The memory of its tables and units, which no thread uses any more.
    pub(crate) fn into_memory(self) -> (SharedMemory, Vec<UnitMemory>) {
        let used = self.units.into_iter().map(Unit::into_memory);
        (self.tables, used.chain(self.spare_units).collect())
    }

    /// Adds a unit within reach of code of the program.
    ///
    /// # Errors
    /// The code is spread too widely, or there is no room near it.
    pub(crate) fn add_unit(
        &mut self,
        code: u64,
        has_trees: bool,
        thread: &mut StoppedThread<'_>,
    ) -> io::Result<()> {
        let mappings = treering_proc::mappings(thread.tid)?;
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
        self.map_unit(base, has_trees, thread, false)
    }

    /// Adds a unit at an address; with `replace`, in place of what is mapped there.
    pub(crate) fn map_unit(
        &mut self,
        base: u64,
        has_trees: bool,
        thread: &mut StoppedThread<'_>,
        replace: bool,
    ) -> io::Result<()> {
        let memory = self.spare_units.pop().map_or_else(|| UnitMemory::new(self.unit_size), Ok)?;
        let mut unit = Unit::new(base, memory, has_trees);
        let protection = libc::PROT_READ | libc::PROT_EXEC;
        thread.remotely(|calls| calls.map(unit.memory(), base, UNIT_SIZE, protection, replace))?;
        if has_trees {
            unit.add_context();
        }
        self.units.push(unit);
        Ok(())
    }
}
