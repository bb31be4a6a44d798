//! A unit of the code cache: memory for translated code within reach of a part of the program.

use std::io;
use std::ops::Range;

use treering_x86::{Assembler, Register, relative_to};

use crate::cache::indirect_lookup::LookupRoutines;
use crate::cache::link::MISS;
use crate::cache::tree_routines::ContextRoutines;
use crate::sys::layout::{REQUEST, REQUEST_CALL, RESUME, SAVED_R11, SAVED_RAX, SAVED_RCX, TARGET, UNIT_SIZE};
use crate::sys::shared_memory::SharedMemory;

/// Memory of a unit, and which part of it is ready: up to the range's start, and from its end on.
#[derive(Debug)]
pub(crate) struct UnitMemory {
    memory: SharedMemory,
    /// The number of bytes that may be used, from the beginning.
    size: u64,
    ready: Range<u64>,
}

impl UnitMemory {
    /// New memory, of which `size` bytes are used.
    pub(crate) fn new(size: u64) -> io::Result<Self> {
        Ok(Self { memory: SharedMemory::new("treering code", UNIT_SIZE)?, size, ready: 0..size })
    }

    /// The number of bytes that are backed by memory.
    pub(crate) fn taken(&self) -> u64 {
        self.size - (self.ready.end - self.ready.start)
    }
}

/// Code within reach of a part of the program. Translated code grows upwards; rarely used routines and
/// constants grow downwards from the end.
#[derive(Debug)]
pub(crate) struct Unit {
    pub(crate) base: u64,
    memory: SharedMemory,
    size: u64,
    /// Offset of the first free byte.
    used: u64,
    /// Offset of the first byte of the routines at the end.
    cold: u64,
    /// The code before this range and the routines behind it have memory.
    ready: Range<u64>,
    /// Blocks in it, by address.
    pub(crate) blocks: Vec<u32>,
    pub(crate) routines: Routines,
    /// Additional routines for trees.
    pub(crate) context: Option<ContextRoutines>,
}

/// Routines that all code of a unit shares.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Routines {
    /// Asks the tracer for the exit in `REQUEST`; all registers are the program's.
    pub(crate) request: u64,
    /// The same on the way to the address in `TARGET`, when rcx was saved and is overwritten.
    pub(crate) request_target: u64,
    /// The same when rcx and r11 were saved and are overwritten.
    pub(crate) request_saved: u64,
    /// Asks for the return check of the address that was popped last; rcx was saved and is overwritten.
    pub(crate) miss: u64,
    /// The lookup of shared indirect targets.
    pub(crate) lookup: LookupRoutines,
}

/// How much memory is made ready at once, for code and for the routines at the end.
const STEP: u64 = 128 << 10;
const COLD_STEP: u64 = 32 << 10;

/// The room that there must be before a translation begins.
const ROOM: u64 = 256 << 10;
/// The room that there must be before a single stub is added.
const SOME_ROOM: u64 = 16 << 10;
/// The invariant that these rooms are to keep.
const OVERRUN: &str = "a unit's code and its routines do not overlap";

impl Unit {
    /// A unit with its common routines. With `holds`, returns that miss their return check have saved r11 as
    /// well as rcx, as they do with trees.
    pub(crate) fn new(base: u64, UnitMemory { memory, size, ready }: UnitMemory, holds: bool) -> Self {
        let mut unit = Self {
            base,
            memory,
            size,
            used: 0,
            cold: size,
            ready,
            blocks: Vec::new(),
            routines: Routines::default(),
            context: None,
        };
        let mut code = Assembler::new(base);
        let tail = write_request(&mut code);
        let request_target = code.here();
        code.store_gs(SAVED_R11, Register::R11);
        let request_saved = code.here();
        code.store_gs(SAVED_RAX, Register::RAX);
        code.jump(tail);
        let miss = code.here();
        code.load_popped_into_rcx();
        code.store_gs(TARGET, Register::RCX);
        code.store_gs_value(REQUEST, MISS);
        code.jump(if holds { request_saved } else { request_target });
        let lookup = LookupRoutines::write(request_target, &mut code);
        code.align(64);
        unit.routines = Routines { request: base, request_target, request_saved, miss, lookup };
        unit.append(code.bytes());
        unit
    }

    /// The memory that the program must see at `base`.
    pub(crate) fn memory(&self) -> &SharedMemory {
        &self.memory
    }

    /// Its memory, which no thread uses any more.
    pub(crate) fn into_memory(self) -> UnitMemory {
        UnitMemory { memory: self.memory, size: self.size, ready: self.ready }
    }

    /// Where the next code goes.
    pub(crate) fn here(&self) -> u64 {
        self.base + self.used
    }

    /// Where the routines at the end begin.
    #[cfg(test)]
    pub(crate) fn cold(&self) -> u64 {
        self.base + self.cold
    }

    /// Whether another translation fits.
    pub(crate) fn has_room(&self) -> bool {
        self.cold - self.used > ROOM
    }

    /// Whether a small stub fits.
    pub(crate) fn has_some_room(&self) -> bool {
        self.cold - self.used > SOME_ROOM
    }

    /// Whether an address lies in the unit.
    pub(crate) fn contains(&self, address: u64) -> bool {
        (self.base..self.base + UNIT_SIZE).contains(&address)
    }

    /// Adds code that was assembled for [`here`](Self::here).
    pub(crate) fn append(&mut self, code: &[u8]) {
        let end = self.used + code.len() as u64;
        assert!(end <= self.cold, "{OVERRUN}");
        if end > self.ready.start {
            let gap = self.ready.end - self.ready.start;
            let more = (end - self.ready.start).next_multiple_of(STEP).min(gap);
            self.memory.fill(self.ready.start, more, 0);
            self.ready.start += more;
        }
        self.memory.write(self.used, code);
        self.used = end;
    }

    /// Makes memory ready from `cold` on, and no code that is ready already: in a unit that is nearly full, that
    /// lies within a step.
    fn reach_down(&mut self) {
        assert!(self.used <= self.cold, "{OVERRUN}");
        if self.cold < self.ready.end {
            let gap = self.ready.end - self.ready.start;
            let more = (self.ready.end - self.cold).next_multiple_of(COLD_STEP).min(gap);
            self.memory.fill(self.ready.end - more, more, 0);
            self.ready.end -= more;
        }
    }

    /// Adds a stub at the end; `write` assembles it for the address that it is given, in `most` bytes at most.
    pub(crate) fn append_cold(&mut self, most: u64, write: impl FnOnce(&mut Assembler)) -> u64 {
        self.cold -= most;
        self.reach_down();
        let mut code = Assembler::new(self.base + self.cold);
        write(&mut code);
        assert!(code.bytes().len() as u64 <= most, "a stub is longer than the room for it");
        self.memory.write(self.cold, code.bytes());
        self.base + self.cold
    }

    /// Adds a constant of eight bytes and returns its address.
    pub(crate) fn constant(&mut self, value: u64) -> u64 {
        self.cold = (self.cold - 8) & !7;
        self.reach_down();
        self.memory.store(self.cold, value);
        self.base + self.cold
    }

    /// Links the jump whose displacement is at `site` to `target`.
    pub(crate) fn patch(&mut self, site: u64, target: u64) {
        let relative = relative_to(site, target).unwrap_or_else(|| {
            let constant = self.constant(target);
            let through = self.append_cold(8, |code| code.jump_through(constant));
            // A unit is smaller than a jump's reach.
            relative_to(site, through).unwrap_or_default()
        });
        self.memory.replace(site - self.base, relative);
    }

    /// Overwrites five bytes at `from` with a jump to `target`; no thread may be within them.
    pub(crate) fn replace_by_jump(&mut self, from: u64, target: u64) {
        let relative = relative_to(from + 1, target).unwrap_or_else(|| {
            let constant = self.constant(target);
            let through = self.append_cold(8, |code| code.jump_through(constant));
            relative_to(from + 1, through).unwrap_or_default()
        });
        let mut bytes = [0; 8];
        self.memory.read(from - self.base, &mut bytes);
        bytes[0] = 0xe9;
        bytes[1..5].copy_from_slice(&relative.to_le_bytes());
        self.memory.replace_long(from - self.base, u64::from_le_bytes(bytes));
    }

    /// Reads code back.
    pub(crate) fn read(&self, address: u64, bytes: &mut [u8]) {
        let end = (self.base + UNIT_SIZE - address).min(bytes.len() as u64) as usize;
        self.memory.read(address - self.base, &mut bytes[..end]);
    }
}

/// Writes the stub that asks the tracer. Returns where it may be entered when rax is saved here and the other
/// registers were saved before.
///
/// After the request, all registers are loaded from their slots. The request is a system call that the kernel
/// does not know, and the kernel's answer overwrites rax; `syscall` itself overwrites rcx and r11.
fn write_request(code: &mut Assembler) -> u64 {
    code.store_gs(SAVED_RAX, Register::RAX);
    code.store_gs(SAVED_RCX, Register::RCX);
    code.store_gs(SAVED_R11, Register::R11);
    let tail = code.here();
    code.set_low(Register::RAX, REQUEST_CALL);
    code.system_call();
    code.load_gs(Register::RAX, SAVED_RAX);
    code.load_gs(Register::RCX, SAVED_RCX);
    code.load_gs(Register::R11, SAVED_R11);
    code.jump_gs(RESUME);
    tail
}
