//! The routines of a unit that keep calling context trees.

use treering_x86::Assembler;

use crate::areas::tree_layout::{NEW, SLOTS};
use crate::cache::link::{MORE_ROOM, UNWIND};
use crate::cache::unit::Unit;
use crate::sys::layout::REQUEST;

/// Routines and constants of a unit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ContextRoutines {
    /// Counts of one instruction, two, and so on up to the most of a count batch, sixteen bytes each.
    pub(crate) counts: u64,
    /// The count of a new activation.
    pub(crate) one: u64,
    /// Searches for a child node.
    pub(crate) find: u64,
    /// Where that routine begins to use registers, and where it ends.
    pub(crate) find_uses: u64,
    pub(crate) find_end: u64,
    /// Leaves the frames that end below the stack pointer.
    pub(crate) unwind: u64,
    /// The part of that routine that is a loop, and so may take any number of instructions.
    pub(crate) unwinding: (u64, u64),
}

impl ContextRoutines {
    /// The address of the count of this many instructions.
    pub(crate) fn count(&self, instructions: u8) -> u64 {
        self.counts + u64::from(instructions) * 16
    }
}

impl Unit {
    /// Adds the routines that all contexts use.
    pub(crate) fn add_context(&mut self) {
        let mut bytes = Vec::new();
        for count in 0..=u8::MAX {
            bytes.extend_from_slice(&u64::from(count).to_le_bytes());
            bytes.extend_from_slice(&[0; 8]);
        }
        bytes.extend_from_slice(&NEW.map(u64::to_le_bytes).concat());
        let counts = self.here();
        self.append(&bytes);
        let find = self.here();
        let request = self.routines.request_saved;
        let mut code = Assembler::new(find);
        let find_uses = code.find_child(&SLOTS);
        let find_end = code.here();
        code.store_gs_value(REQUEST, MORE_ROOM);
        code.jump(request);
        let unwind_stub = code.here();
        let unwinding = code.leave_frames(&SLOTS, |code| {
            code.store_gs_value(REQUEST, UNWIND);
            code.jump(request);
        });
        code.align(64);
        self.append(code.bytes());
        let one = counts + (u64::from(u8::MAX) + 1) * 16;
        self.context =
            Some(ContextRoutines { counts, one, find, find_uses, find_end, unwind: unwind_stub, unwinding });
    }
}
