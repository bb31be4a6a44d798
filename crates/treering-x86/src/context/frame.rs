//! Frames: entering and leaving functions.
//!
//! The code that enters or leaves *holds* two registers: the program's rcx and r11 are in their slots, and r11 is the
//! current frame. Between a return's target and the next call or return, they need not be released if no instruction
//! uses them. Otherwise each call or return would load what the one before has just stored, and all of them would
//! form a chain in which each waits for the one before.

use crate::context::child::recent_place;
use crate::context::encoding::{R11, RCX};
use crate::context::{Callee, ContextSlots, FRAME, FRAME_NODE, FRAME_STACK, Goal, LookUp, NODE_KEY};
use crate::{Assembler, Register};

impl Assembler {
    /// Saves the program's values of the registers, and loads the current frame.
    pub fn hold(&mut self, slots: &ContextSlots) {
        self.store_gs(slots.rcx, Register::RCX);
        self.store_gs(slots.r11, Register::R11);
        self.load_frame(slots);
    }

    /// r11 becomes the current frame.
    pub fn load_frame(&mut self, slots: &ContextSlots) {
        self.load_gs(Register::R11, slots.top);
    }

    /// Gives the program its registers back.
    pub fn release(&mut self, slots: &ContextSlots) {
        self.load_gs(Register::RCX, slots.rcx);
        self.load_gs(Register::R11, slots.r11);
    }

    /// Leaves the current node, while registers are held: adds the count to the node, and continues with the caller's
    /// count.
    ///
    /// If the top frame is not that of the activation whose return address the stack pointer points to, nothing
    /// changes, and control goes to `otherwise`. Returns the place of that jump's displacement, and the address
    /// behind the code.
    pub fn leave_node(&mut self, slots: &ContextSlots, otherwise: u64) -> (u64, u64) {
        self.load_at(RCX, R11, FRAME_STACK);
        self.compare_with_stack();
        let matches = self.jump_if_zero();
        let site = self.jump(otherwise);
        self.set_distance(matches);
        self.leave_frame(slots);
        (site, self.here())
    }

    /// Leaves the frame in r11, the current one, which becomes the one below; rcx is lost.
    pub(super) fn leave_frame(&mut self, slots: &ContextSlots) {
        self.load_half_at(RCX, R11, FRAME_NODE);
        self.add_count_to_node();
        // vmovaps xmm15, gs:[r11]
        self.put(&[0x65, 0xc4, 0x41, 0x78, 0x28]);
        self.put_offset(0x3b, 0);
        self.add(Register::R11, -(FRAME as i32));
        self.store_gs(slots.top, Register::R11);
    }

    /// Writes the routine for a return that does not match the frame in r11, the current one; rcx is overwritten.
    ///
    /// Frames end that were entered at or below the stack pointer: it was moved up, as by functions that take their
    /// arguments off the stack before they return. If there are none, the return is counted in the slot
    /// `unmatched_returns`. Then control goes to the address in the slot `go_on`. While handlers of signals run, and
    /// if all frames would end, control goes to the code that `ask` writes, which must not fall through. Returns the
    /// range of the loop over the frames, which may take any number of instructions.
    pub fn leave_frames(&mut self, slots: &ContextSlots, ask: impl FnOnce(&mut Self)) -> (u64, u64) {
        self.load_gs(Register::RCX, slots.handlers);
        let none = self.jump_if_zero();
        let asks = self.bytes().len();
        ask(self);
        self.set_distance(none);
        self.load_at(RCX, R11, FRAME_STACK);
        self.compare_with_stack();
        self.sign_of_rcx();
        let higher = self.jump_if_zero();
        self.load_gs(Register::RCX, slots.unmatched_returns);
        self.add(Register::RCX, 1);
        self.store_gs(slots.unmatched_returns, Register::RCX);
        self.jump_gs(slots.go_on);
        self.set_distance(higher);
        self.compare_with_first(slots);
        self.jump_if_low_zero();
        self.set_distance_back(asks);
        let start = self.here();
        let again = self.bytes().len();
        self.compare_with_first(slots);
        let all = self.jump_if_low_zero();
        self.leave_frame(slots);
        self.load_at(RCX, R11, FRAME_STACK);
        self.compare_with_stack();
        self.sign_of_rcx();
        self.jump_if_zero();
        self.set_distance_back(again);
        self.set_distance(all);
        let end = self.here();
        self.jump_gs(slots.go_on);
        (start, end)
    }

    /// `lea ecx, [r11 - first frame]`
    pub(super) fn compare_with_first(&mut self, slots: &ContextSlots) {
        self.put(&[0x41, 0x8d, 0x8b]);
        self.put(&slots.first.wrapping_neg().to_le_bytes());
    }

    /// `bswap rcx; movzx ecx, cl`: rcx becomes 0 if it is not negative, as addresses have fewer than 56 bits.
    pub(super) fn sign_of_rcx(&mut self) {
        self.put(&[0x48, 0x0f, 0xc9, 0x0f, 0xb6, 0xc9]);
    }

    /// `lea rcx, [rip + ...]; mov gs:[slot], rcx`
    pub fn store_address(&mut self, slot: u32, address: u64) {
        self.put(&[0x48, 0x8d, 0x0d]);
        self.put_relative(address);
        self.store_gs(slot, Register::RCX);
    }

    /// Enters a function that was called: a frame for it becomes the current one, and control continues behind the
    /// code, with registers held. Code that holds them already enters [`HOLD`](super::HOLD) bytes later. Returns the rest of the
    /// search for [`look_up`](Self::look_up), which is written elsewhere.
    pub fn enter_node(&mut self, slots: &ContextSlots, callee: &Callee) -> LookUp {
        let begin = self.here();
        self.hold(slots);
        self.load_half_at(RCX, R11, FRAME_NODE);
        self.load_half_at(RCX, RCX, recent_place(callee.number));
        // Above the current frame nothing is lost if it is not this node.
        self.store_count_at(R11, FRAME);
        self.store_half_at(R11, FRAME + FRAME_NODE, RCX);
        self.load_half_at(RCX, RCX, NODE_KEY);
        self.compare_with_number(callee.number);
        let hit = self.jump_if_low_zero();
        self.jump_ahead();
        self.set_distance(hit);
        let look_up = LookUp { site: self.here() - 4, goal: Goal::Entered, begin, found: self.here() };
        self.set_count(callee.one);
        self.gs_operand(true, &[0x89], 4, Some(R11), FRAME + FRAME_STACK);
        self.add(Register::R11, FRAME as i32);
        self.store_gs(slots.top, Register::R11);
        look_up
    }

    /// Enters a function that was jumped to, if the stack is as it was when the current function was called: it takes
    /// the current function's place, unless it is the same one. With `otherwise`, control goes there if the stack
    /// pointer is higher.
    ///
    /// Returns the places of the displacements of all jumps to `entry`.
    pub fn replace_node(
        &mut self,
        slots: &ContextSlots,
        callee: &Callee,
        entry: u64,
        otherwise: Option<u64>,
    ) -> [u64; 2] {
        let begin = self.here();
        let elsewhere = self.unless_stack_matches(slots, entry, otherwise);
        self.load_half_at(RCX, R11, FRAME_NODE);
        self.load_half_at(RCX, RCX, NODE_KEY);
        self.compare_with_number(callee.number);
        self.put(&[0x67, 0xe3, 0]);
        let same = self.bytes().len();
        self.load_half_at(R11, R11, FRAME_NODE.wrapping_sub(FRAME));
        let look_up = self.recent_child(callee, begin);
        self.load_gs(Register::RCX, slots.top);
        self.load_half_at(RCX, RCX, FRAME_NODE);
        self.add_count_to_node();
        self.set_count(callee.one);
        self.load_gs(Register::RCX, slots.top);
        self.store_half_at(RCX, FRAME_NODE, R11);
        self.set_distance(same);
        let site = self.restore_and_jump(slots, entry);
        self.patch(look_up.site, self.here());
        self.look_up(slots, callee, &look_up);
        [site, elsewhere]
    }

    /// Goes to `entry` if the stack pointer is not higher than when the current function was called, and to
    /// `otherwise` if it is. Returns the same as [`replace_node`](Self::replace_node).
    pub fn check_stack(&mut self, slots: &ContextSlots, entry: u64, otherwise: u64) -> [u64; 2] {
        let elsewhere = self.unless_stack_matches(slots, entry, Some(otherwise));
        [self.restore_and_jump(slots, entry), elsewhere]
    }

    /// Saves rcx and r11, which becomes the current frame, and goes on if the stack is as it was when
    /// the current function was called. Returns where the bytes of the jump to `entry` stand.
    pub(super) fn unless_stack_matches(
        &mut self,
        slots: &ContextSlots,
        entry: u64,
        otherwise: Option<u64>,
    ) -> u64 {
        self.hold(slots);
        self.load_at(RCX, R11, FRAME_STACK);
        self.compare_with_stack();
        let matches = self.jump_if_zero();
        if let Some(otherwise) = otherwise {
            self.sign_of_rcx();
            self.put(&[0x67, 0xe3, 5]);
            let lower = self.jump_ahead();
            self.restore_and_jump(slots, otherwise);
            self.lead_here(lower);
        }
        let site = self.restore_and_jump(slots, entry);
        self.set_distance(matches);
        site
    }

    pub(super) fn restore_and_jump(&mut self, slots: &ContextSlots, entry: u64) -> u64 {
        self.release(slots);
        self.jump(entry)
    }
}
