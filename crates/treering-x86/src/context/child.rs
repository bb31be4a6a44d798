//! The search for a callee's node: among the recent children, by the last entry, and in the table of nodes.

use crate::context::encoding::{R11, RAX, RCX, RDX};
use crate::context::{
    Callee, ContextSlots, FRAME, FRAME_NODE, GROUP, GROUPS, Goal, HASH, HASH_FROM, LookUp, NODE, NODE_KEY,
    NODE_RECENT, RECENT, TOGETHER,
};
use crate::{Assembler, Register};

impl Assembler {
    /// Loads the callee's node among the recent children of the node in r11, which is that of the frame below the
    /// current one; rcx is overwritten. The code for the call began at `begin`.
    pub(super) fn recent_child(&mut self, callee: &Callee, begin: u64) -> LookUp {
        self.load_half_at(R11, R11, recent_place(callee.number));
        self.load_half_at(RCX, R11, NODE_KEY);
        self.compare_with_number(callee.number);
        let hit = self.jump_if_low_zero();
        self.jump_ahead();
        self.set_distance(hit);
        LookUp { site: self.here() - 4, goal: Goal::Replaced, begin, found: self.here() }
    }

    /// Continues the search if the child is not among the recent ones: takes the last entry if the node is its parent,
    /// or searches the table. The jump at [`LookUp::site`] is to lead here.
    pub fn look_up(&mut self, slots: &ContextSlots, callee: &Callee, look_up: &LookUp) {
        let LookUp { goal, begin, mut found, .. } = *look_up;
        let frame = if goal == Goal::Entered { 0 } else { FRAME.wrapping_neg() };
        if goal == Goal::Entered {
            let over = self.jump_over();
            let entered = found;
            found = self.here();
            // mov rcx, r11
            self.put(&[0x4c, 0x89, 0xd9]);
            self.load_frame(slots);
            self.store_half_at(R11, FRAME + FRAME_NODE, RCX);
            self.jump(entered);
            self.set_distance(over);
        }
        self.load_frame(slots);
        self.load_half_at(R11, R11, frame.wrapping_add(FRAME_NODE));
        if callee.last != 0 {
            let last = slots.lasts + place_of_lasts(callee.last);
            self.low_half_of_r11();
            self.load_half_at(RCX, RCX, last);
            // not rcx; lea rcx, [r11 + rcx + 1 + mark]
            self.put(&[0x48, 0xf7, 0xd1, 0x49, 0x8d, 0x4c, 0x0b, 1 + mark_of_lasts(callee.last) as u8]);
            let same = self.jump_if_zero();
            let other = self.jump_ahead();
            self.set_distance(same);
            self.low_half_of_r11();
            self.load_half_at(RCX, RCX, last + 4);
            self.store_half_at(R11, recent_place(callee.number), RCX);
            // mov r11, rcx
            self.put(&[0x49, 0x89, 0xcb]);
            self.jump(found);
            self.lead_here(other);
        }
        self.store_gs(slots.parent, Register::R11);
        self.store_gs_value(slots.callee, callee.number);
        self.store_gs_value(slots.place, recent_place(callee.number));
        self.store_gs_value(slots.last, place_of_lasts(callee.last));
        self.store_gs_value(slots.mark, mark_of_lasts(callee.last));
        self.store_address(slots.go_on, found);
        self.store_address(slots.again, begin);
        self.jump(callee.find);
    }

    /// Writes the routine that searches a child, and makes it if there is none. `parent`, `callee`, `place`, `last`
    /// and `mark` are in their slots, and rcx and r11 were saved before. r11 becomes the child, and control continues
    /// at `go_on`. If there is no room, the child of the node in the slot `fold` takes its place. If there is no such
    /// node or child either, all other registers are restored, and control goes to the end of the routine. Returns
    /// the address at which the routine begins to use registers.
    ///
    /// The result is stored for the next time at once, as the thread may be stopped between any two instructions.
    pub fn find_child(&mut self, slots: &ContextSlots) -> u64 {
        self.store_gs(slots.rax, Register::RAX);
        // lahf; seto al
        self.put(&[0x9f, 0x0f, 0x90, 0xc0]);
        self.store_gs(slots.flags, Register::RAX);
        self.gs_operand(true, &[0x89], RDX, None, slots.rdx);
        let in_use = self.here();
        self.gs_operand(true, &[0x8b], RDX, None, slots.parent);
        // shl rdx, 32
        self.put(&[0x48, 0xc1, 0xe2, 0x20]);
        self.gs_operand(false, &[0x8b], RCX, None, slots.callee);
        // or rdx, rcx
        self.put(&[0x48, 0x09, 0xca]);
        let search = self.here();
        self.set(Register::RCX, HASH);
        // imul rcx, rdx; shr rcx, ...
        self.put(&[0x48, 0x0f, 0xaf, 0xca, 0x48, 0xc1, 0xe9, HASH_FROM as u8]);
        let probe = self.bytes().len();
        self.gs_operand(true, &[0x23], RCX, None, slots.mask);
        self.table_entry(0x8b, slots.table);
        // test r11d, r11d; je create
        self.put(&[0x45, 0x85, 0xdb, 0x74, 0]);
        let create = self.bytes().len();
        self.gs_operand(true, &[0x39], RDX, Some(R11), NODE_KEY);
        // je hit; inc rcx; jmp probe
        self.put(&[0x74, 0]);
        let hit = self.bytes().len();
        self.put(&[0x48, 0xff, 0xc1, 0xeb, 0]);
        self.set_distance_back(probe);
        self.set_distance(create);
        let full = self.add_child(slots);
        self.set_distance(hit);
        self.note_child(slots);
        self.set_distance(full);
        self.fold_child(slots, search);
        in_use
    }

    /// Adds the next node, with the key in rdx, at the entry of the table in rcx. Returns the jump that is taken if
    /// there is no room.
    fn add_child(&mut self, slots: &ContextSlots) -> usize {
        self.load_gs(Register::R11, slots.next);
        self.gs_operand(true, &[0x3b], R11, None, slots.end);
        // jae full
        self.put(&[0x73, 0]);
        let full = self.bytes().len();
        self.table_entry(0x89, slots.table);
        self.gs_operand(true, &[0x89], RDX, Some(R11), NODE_KEY);
        // lea rcx, [r11 + 64]
        self.put(&[0x49, 0x8d, 0x4b, NODE as u8]);
        self.store_gs(slots.next, Register::RCX);
        full
    }

    /// Notes the child in r11 among its parent's recent children and among the last entries, and continues.
    fn note_child(&mut self, slots: &ContextSlots) {
        // The parent: the key may be that of another one's child.
        self.gs_operand(true, &[0x8b], RDX, None, slots.parent);
        // mov rax, r11; shl rax, 32; or rax, rdx
        self.put(&[0x4c, 0x89, 0xd8, 0x48, 0xc1, 0xe0, 0x20, 0x48, 0x09, 0xd0]);
        self.gs_operand(true, &[0x03], RDX, None, slots.place);
        self.store_half_at(RDX, 0, R11);
        // movzx ecx, ax
        self.put(&[0x0f, 0xb7, 0xc8]);
        self.gs_operand(true, &[0x0b], RAX, None, slots.mark);
        self.gs_operand(true, &[0x03], RCX, None, slots.last);
        self.gs_operand(true, &[0x89], RAX, Some(RCX), slots.lasts);
        self.restore_flags(slots);
        self.jump_gs(slots.go_on);
    }

    /// Searches again below the node for folded contexts, if there is one and it is not the parent already; otherwise
    /// restores registers and falls through.
    fn fold_child(&mut self, slots: &ContextSlots, search: u64) {
        self.load_gs(Register::R11, slots.fold);
        // test r11d, r11d; je ask
        self.put(&[0x45, 0x85, 0xdb, 0x74, 0]);
        let unfolded = self.bytes().len();
        // mov rcx, rdx; shr rcx, 32; cmp ecx, r11d; je ask
        self.put(&[0x48, 0x89, 0xd1, 0x48, 0xc1, 0xe9, 0x20, 0x44, 0x39, 0xd9, 0x74, 0]);
        let missing = self.bytes().len();
        // shl r11, 32; mov edx, edx; or rdx, r11
        self.put(&[0x49, 0xc1, 0xe3, 0x20, 0x89, 0xd2, 0x4c, 0x09, 0xda]);
        self.jump(search);
        self.set_distance(unfolded);
        self.set_distance(missing);
        self.restore_flags(slots);
    }

    /// `mov r11d, gs:[rcx * 4 + table]`, or the other way round.
    pub(super) fn table_entry(&mut self, opcode: u8, table: u32) {
        self.put(&[0x65, 0x44, opcode, 0x1c, 0x8d]);
        self.put(&table.to_le_bytes());
    }

    pub(super) fn restore_flags(&mut self, slots: &ContextSlots) {
        self.gs_operand(true, &[0x8b], RDX, None, slots.rdx);
        self.load_gs(Register::RAX, slots.flags);
        // add al, 0x7f; sahf
        self.put(&[0x04, 0x7f, 0x9e]);
        self.load_gs(Register::RAX, slots.rax);
    }

    /// Makes the short jump that was just written lead back to an offset in the bytes.
    pub(super) fn set_distance_back(&mut self, to: usize) {
        let from = self.bytes().len();
        self.replace_byte(from - 1, to.wrapping_sub(from) as u8);
    }
}

/// The place of a callee's last entries in the row of a parent.
pub(super) fn place_of_lasts(number: u32) -> u32 {
    number / TOGETHER % GROUPS * GROUP + number % TOGETHER * 8
}

/// The number below the parent's offset in a callee's last entries.
pub(super) fn mark_of_lasts(number: u32) -> u32 {
    number / TOGETHER / GROUPS
}

/// The place in a node of the child for a callee, if it is a recent one.
pub(super) fn recent_place(number: u32) -> u32 {
    NODE_RECENT + number % RECENT * 4
}
