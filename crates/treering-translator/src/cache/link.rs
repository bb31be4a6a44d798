//! Exit stubs and unlinked jumps.
//!
//! A jump to code that is not translated yet goes to an exit stub, which asks the tracer. When the code is
//! translated, all jumps that wait for it are linked to the translation.

use treering_x86::Refusal;
use treering_x86::processor::Inquiry;

use crate::address_map::AddressMap;
use crate::areas::tree_layout::SLOTS as CONTEXT_SLOTS;
use crate::cache::code_cache::CodeCache;
use crate::chunked_vec::ChunkedVec;
use crate::sys::layout::REQUEST;

/// A place where translated code asks the tracer.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ExitStub {
    /// Number 0: there is no request.
    None,
    /// For a return without a return check.
    Miss,
    /// For code that was not translated yet.
    Code {
        /// The address.
        target: u64,
        /// The stub that asks.
        stub: u64,
        /// The first of the jumps that wait for the code, plus one.
        jumps: u32,
        /// The unit of the stub.
        unit: u8,
        /// The kind of entry that these jumps need.
        entry_kind: EntryKind,
        /// The exit for the same address in another unit; 0 if there is none.
        next: u32,
    },
    /// For a new target of an indirect transfer.
    Site(u32),
    /// For calling contexts.
    Context(ContextRequest),
    /// Because the code that a block was translated from has changed.
    Changed(u32),
    /// Because the instruction at the address cannot be executed.
    Refused(u64, Refusal),
    /// Because the model's buffer has no room for the words of a block.
    Full(u32),
    /// For the answer to an instruction, and where the thread continues with it.
    Inquiry(Inquiry, u64),
}

/// The exit for returns without a return check.
pub(crate) const MISS: u32 = 1;
/// The exit that asks for frames to be left, where trees are kept.
pub(crate) const UNWIND: u32 = 2;
/// The exit that asks for more nodes, where trees are kept.
pub(crate) const MORE_ROOM: u32 = 3;

/// All exits, by number.
#[derive(Debug)]
pub(crate) struct ExitStubs {
    pub(crate) list: ChunkedVec<ExitStub>,
    /// The newest exit for code at an address, with bits for the kind of entry: see [`waiting_for`].
    pub(crate) of_code: AddressMap<u32>,
    /// The four displacement bytes of a jump, and the next jump to the same exit.
    pub(crate) jumps: ChunkedVec<(u64, u32)>,
}

/// Bits for the kind of entry, which no code address has.
const CREDITS: u64 = 1 << 63;
const CALLS: u64 = 1 << 62;
const HOLDS: u64 = 1 << 61;

impl ExitStubs {
    /// The exits with fixed numbers; those of [`UNWIND`] and [`MORE_ROOM`] only if trees are kept.
    pub(crate) fn new(has_trees: bool) -> Self {
        let mut list = ChunkedVec::default();
        [ExitStub::None, ExitStub::Miss].into_iter().for_each(|exit| list.push(exit));
        if has_trees {
            let requests = [ContextRequest::Unwind, ContextRequest::Room];
            requests.into_iter().for_each(|request| list.push(ExitStub::Context(request)));
        }
        Self { list, of_code: AddressMap::default(), jumps: ChunkedVec::default() }
    }

    /// Adds an exit and returns its number.
    pub(crate) fn add(&mut self, exit: ExitStub) -> u32 {
        self.list.push(exit);
        self.list.len() as u32 - 1
    }
}

/// The key of the exit for jumps to an address with a kind of entry.
pub(crate) fn waiting_for(target: u64, entry_kind: EntryKind) -> u64 {
    let bit = |is_set, bit| if is_set { bit } else { 0 };
    target | bit(entry_kind.propagates, CREDITS) | bit(entry_kind.calls, CALLS) | bit(entry_kind.holds, HOLDS)
}

/// The kind of entry that a jump to an address needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct EntryKind {
    /// The jump's block has counted for the target.
    pub(crate) propagates: bool,
    /// The jump is a call, where a tree is kept.
    pub(crate) calls: bool,
    /// Registers are held: see [`treering_x86::context`].
    pub(crate) holds: bool,
}

impl EntryKind {
    /// All kinds whose jumps are linked when the translation exists.
    pub(crate) const ALL: [Self; 6] = [
        Self { propagates: false, calls: false, holds: false },
        Self { propagates: true, calls: false, holds: false },
        Self { propagates: false, calls: true, holds: false },
        Self { propagates: true, calls: true, holds: false },
        Self { propagates: false, calls: true, holds: true },
        Self { propagates: true, calls: true, holds: true },
    ];
}

/// A request that has to do with calling contexts.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ContextRequest {
    /// A return that does not belong to the current frame.
    Unwind,
    /// Room for more nodes.
    Room,
    /// To continue after a jump that has moved the stack pointer up.
    Resume(u64),
}

impl CodeCache {
    pub(crate) fn resume_stub(&mut self, unit: usize, target: u64) -> u64 {
        let exit = self.exits.add(ExitStub::Context(ContextRequest::Resume(target)));
        let request = self.units[unit].routines.request;
        self.units[unit].append_cold(24, |code| {
            code.store_gs_value(REQUEST, exit);
            code.jump(request);
        })
    }

    /// The stub that reports that a block's code has changed.
    pub(crate) fn changed_stub(&mut self, block: u32, unit: usize) -> u64 {
        let exit = self.exits.add(ExitStub::Changed(block));
        let request = self.units[unit].routines.request_target;
        self.units[unit].append_cold(24, |code| {
            code.store_gs_value(REQUEST, exit);
            code.jump(request);
        })
    }

    /// A unit's exit for an address, and its exit stub.
    pub(crate) fn stub(&mut self, unit: usize, target: u64, entry_kind: EntryKind) -> (u32, u64) {
        let newest = self.exits.of_code.entry(waiting_for(target, entry_kind)).or_insert(0);
        let mut number = *newest;
        while let ExitStub::Code { stub, unit: of, next, .. } = self.exits.list[number as usize] {
            if usize::from(of) == unit {
                return (number, stub);
            }
            number = next;
        }
        let number = self.exits.list.len() as u32;
        let next = std::mem::replace(newest, number);
        let request = self.units[unit].routines.request;
        let room = if entry_kind.holds { 48 } else { 24 };
        let stub = self.units[unit].append_cold(room, |code| {
            if entry_kind.holds {
                code.release(&CONTEXT_SLOTS);
            }
            code.store_gs_value(REQUEST, number);
            code.jump(request);
        });
        self.exits.add(ExitStub::Code { target, stub, jumps: 0, unit: unit as u8, entry_kind, next });
        (number, stub)
    }

    /// Notes that the jump at `site` waits for `target`, so that it can be linked later. Returns the exit
    /// stub for it.
    pub(crate) fn add_unlinked(&mut self, unit: usize, target: u64, site: u64, entry_kind: EntryKind) -> u64 {
        let (number, stub) = self.stub(unit, target, entry_kind);
        if let ExitStub::Code { jumps, .. } = &mut self.exits.list[number as usize] {
            self.exits.jumps.push((site, *jumps));
            *jumps = self.exits.jumps.len() as u32;
        }
        stub
    }
}
