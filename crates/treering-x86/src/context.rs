//! The code that keeps a calling context tree: entering and leaving nodes, and a running count.
//!
//! The running count of the current activation lies in xmm15: instructions in its lower half, the
//! activation itself, as one call, in its upper half. Leaving a node so adds both to the node at
//! once, without a flag or another register. Frames and nodes lie in the thread's own memory, at
//! offsets to GS:
//!
//! - a frame has the caller's count (16 bytes), the node (4), and the stack pointer (8, from byte 24);
//! - a node has its sums (16 bytes), its key (the parent's offset above the callee's number, 8), and
//!   from byte 24 on the offsets of ten recent children (4 bytes each), at a place by the callee's number. Whether
//!   it is the callee's node that stands there is seen in that node;
//! - last enterings, as a node may have many children: a parent's and its child's offset (4 + 4 bytes), at a place
//!   by bits of the parent's offset and the callee's number;
//! - a table of all nodes by their keys.
//!
//! All of it is written in the encoding of AVX, which clears the register's upper parts: instructions of
//! SSE would keep them, and cost a hundred cycles wherever the program has used longer vectors. So the
//! whole register is the count's.
//!
//! Nothing here changes a flag but [`Assembler::find_child`], which saves them.

use iced_x86::Mnemonic;

use crate::{Assembler, Decoded, Register};

/// Bytes of a frame.
pub const FRAME: u32 = 32;
/// Where in a frame the node's offset stands.
pub const FRAME_NODE: u32 = 16;
/// Where in a frame the stack pointer stands.
pub const FRAME_STACK: u32 = 24;
/// Bytes of a node.
pub const NODE: u32 = 64;
/// The offset of the key in a node. An entry without a child has the offset 0, so that the number behind the key is
/// read from the beginning of the area there: it must not be a callee's number.
pub const NODE_KEY: u32 = 16;
/// Where in a node its recent children stand.
const NODE_RECENT: u32 = 24;
/// How many recent children a node has.
const RECENT: u32 = 10;
/// Bytes of the last enterings of callees: in each group a row for every value of bits 6 to 15 of parents, with a
/// place for each of eight callees.
pub const LASTS: u32 = GROUPS * GROUP;
/// Of how many callees they are kept, by their numbers: those with the same place are told apart by a mark, which
/// fits below the parent's offset.
pub const MOST_LASTS: u32 = GROUPS * TOGETHER * NODE;
const GROUPS: u32 = 32;
const GROUP: u32 = 1 << 16;
const TOGETHER: u32 = NODE / 8;
/// The most bytes that [`Assembler::enter_node`], [`Assembler::release`], a jump and [`Assembler::look_up`] take,
/// wherever they stand.
pub const ENTER_ROOM: u64 = 320;
/// The same of [`Assembler::look_up`] alone.
pub const LOOK_UP_ROOM: u64 = 208;
/// Bytes of [`Assembler::hold`], with which [`Assembler::enter_node`] begins.
pub const HOLD: u64 = 27;
/// The same of [`Assembler::replace_node`].
pub const REPLACE_ROOM: u64 = 384;
/// The same of [`Assembler::check_stack`].
pub const CHECK_ROOM: u64 = 128;

/// The factor of a node's key; the upper bits of the product choose the table's entry.
const HASH: u64 = 0x9e37_79b9_7f4a_7c15;
/// The product's lowest bit that counts. In the key's upper half nodes are [`NODE`] bytes apart, so that six
/// bits above the middle would say nothing of the parent.
const HASH_FROM: u32 = 32 + NODE.trailing_zeros();

/// Where in a table of up to 2²⁶ entries a node with the key is looked for first; to be cut to the table.
pub fn table_place(key: u64) -> u64 {
    key.wrapping_mul(HASH) >> HASH_FROM
}

/// Where the parts lie that the code works on, as offsets to GS.
#[derive(Debug, Clone, Copy)]
pub struct ContextSlots {
    /// Keeps rcx.
    pub rcx: u32,
    /// Keeps r11.
    pub r11: u32,
    /// The offset of the current frame.
    pub top: u32,
    /// Where to go on when a child was found.
    pub go_on: u32,
    /// Where to begin anew when there was no room.
    pub again: u32,
    /// The parent whose child is looked for.
    pub parent: u32,
    /// The number of the callee that is looked for.
    pub callee: u32,
    /// Where it is to be among its parent's recent children.
    pub place: u32,
    /// The offset of its last entries, from `lasts` on; an unused offset if they are not kept.
    pub last: u32,
    /// Keep rax, rdx and the flags.
    pub rax: u32,
    /// See `rax`.
    pub rdx: u32,
    /// See `rax`; as `lahf` and `seto` give them.
    pub flags: u32,
    /// The entries of the table of children, less one.
    pub mask: u32,
    /// The offset of the next new node.
    pub next: u32,
    /// The first offset at which there is no room for one.
    pub end: u32,
    /// The table of children: four bytes for each entry, 0 for an empty one.
    pub table: u32,
    /// The mark of its last enterings.
    pub mark: u32,
    /// The last enterings of callees: [`LASTS`] bytes.
    pub lasts: u32,
    /// The frame of the thread's first function, which is never left.
    pub first: u32,
    /// How often the thread returned to where no frame says that something was called from.
    pub unmatched_returns: u32,
    /// How many handlers of signals run.
    pub handlers: u32,
    /// The node below which children are looked for that there is no room for below their parents; 0 while there is
    /// room.
    pub fold: u32,
}

/// The facts about a function that its entry code needs.
#[derive(Debug, Clone, Copy)]
pub struct Callee {
    /// Its number; not 0.
    pub number: u32,
    /// Where the count of a new activation stands: 0 instructions, 1 call.
    pub one: u64,
    /// Its number if its last enterings are kept, or 0.
    pub last: u32,
    /// The piece that [`Assembler::find_child`] wrote.
    pub find: u64,
}

/// The search that is left to do if a child is not among the recent ones of its parent: see [`Assembler::look_up`].
#[derive(Debug, Clone, Copy)]
pub struct LookUp {
    /// Where the four bytes of the jump stand that leads there.
    pub site: u64,
    /// The parent, and the purpose of the search.
    goal: Goal,
    /// Where to begin anew when there was no room.
    begin: u64,
    /// Where to go on with the child.
    found: u64,
}

/// Whose child is looked up, and where it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Goal {
    /// That of the current frame's node, for the frame above, while r11 is the current one.
    Entered,
    /// That of the node below, for r11.
    Replaced,
}

const R11: u8 = 11;
const RAX: u8 = 0;
const RCX: u8 = 1;
const RDX: u8 = 2;

/// Registers and memory relative to GS.
impl Assembler {
    /// An instruction with a register and memory at an offset to GS.
    fn gs_operand(&mut self, wide: bool, opcode: &[u8], register: u8, base: Option<u8>, offset: u32) {
        let rex = 0x40 | u8::from(wide) << 3 | (register >> 3) << 2 | base.map_or(0, |base| base >> 3);
        self.put(&[0x65]);
        if rex != 0x40 {
            self.put(&[rex]);
        }
        self.put(opcode);
        let low = (register & 7) << 3;
        match base {
            Some(base) => self.put_offset(low | base & 7, offset),
            None => {
                self.put(&[0x04 | low, 0x25]);
                self.put(&offset.to_le_bytes());
            }
        }
    }

    /// The operand bytes for memory at an offset from a register other than the stack pointer; `registers` holds that
    /// register and the other operand.
    fn put_offset(&mut self, registers: u8, offset: u32) {
        match i8::try_from(offset.cast_signed()) {
            Ok(short) => self.put(&[0x40 | registers, short.cast_unsigned()]),
            Err(_) => {
                self.put(&[0x80 | registers]);
                self.put(&offset.to_le_bytes());
            }
        }
    }

    fn load_at(&mut self, register: u8, base: u8, offset: u32) {
        self.gs_operand(true, &[0x8b], register, Some(base), offset);
    }

    fn load_half_at(&mut self, register: u8, base: u8, offset: u32) {
        self.gs_operand(false, &[0x8b], register, Some(base), offset);
    }

    fn store_half_at(&mut self, base: u8, offset: u32, register: u8) {
        self.gs_operand(false, &[0x89], register, Some(base), offset);
    }

    /// `vmovaps gs:[slot], xmm15`
    pub fn store_count(&mut self, slot: u32) {
        self.vector_slot(&[0xc5, 0x78, 0x29], slot);
    }

    /// `vmovaps xmm15, gs:[slot]`
    pub fn load_count(&mut self, slot: u32) {
        self.vector_slot(&[0xc5, 0x78, 0x28], slot);
    }

    /// An instruction with xmm15, or the register that holds it, and a slot; `opcode` comes before the operands.
    pub(crate) fn vector_slot(&mut self, opcode: &[u8], slot: u32) {
        self.put(&[0x65]);
        self.put(opcode);
        self.put(&[0x3c, 0x25]);
        self.put(&slot.to_le_bytes());
    }

    /// `mov qword gs:[slot], 0`
    pub fn clear_slot(&mut self, slot: u32) {
        self.put(&[0x65, 0x48, 0xc7, 0x04, 0x25]);
        self.put(&slot.to_le_bytes());
        self.put(&[0; 4]);
    }

    /// `vpaddq xmm15, xmm15, [rip + ...]` of the sixteen bytes at an address within reach. Returns where the four bytes
    /// stand that lead to it.
    pub fn add_to_count(&mut self, address: u64) -> u64 {
        self.put(&[0xc5, 0x01, 0xd4, 0x3d]);
        self.put_relative(address);
        self.here() - 4
    }

    /// `vpsubq xmm15, xmm15, [rip + ...]`, the same taken away. Returns where the four bytes stand that lead to it.
    pub fn take_from_count(&mut self, address: u64) -> u64 {
        self.put(&[0xc5, 0x01, 0xfb, 0x3d]);
        self.put_relative(address);
        self.here() - 4
    }

    /// `vmovaps xmm15, [rip + ...]`
    fn set_count(&mut self, address: u64) {
        self.put(&[0xc5, 0x78, 0x28, 0x3d]);
        self.put_relative(address);
    }

    /// `vmovaps gs:[rcx + offset], xmm15`, or with r11 in place of rcx.
    fn store_count_at(&mut self, base: u8, offset: u32) {
        match base {
            R11 => self.put(&[0x65, 0xc4, 0x41, 0x78, 0x29]),
            _ => self.put(&[0x65, 0xc5, 0x78, 0x29]),
        }
        self.put_offset(0x38 | base & 7, offset);
    }

    fn put_relative(&mut self, address: u64) {
        let relative = address.wrapping_sub(self.here() + 4) as u32;
        self.put(&relative.to_le_bytes());
    }

    /// Adds the count to the node at rcx: `vpaddq xmm15, xmm15, gs:[rcx]; vmovaps gs:[rcx], xmm15`.
    fn add_count_to_node(&mut self) {
        self.put(&[0x65, 0xc5, 0x01, 0xd4]);
        self.put_offset(0x39, 0);
        self.store_count_at(RCX, 0);
    }

    /// `lea rcx, [rcx - stack pointer - ...]`: rcx becomes 0 if it is the stack pointer.
    fn compare_with_stack(&mut self) {
        // not rcx; lea rcx, [rsp + rcx + 1]
        self.put(&[0x48, 0xf7, 0xd1, 0x48, 0x8d, 0x4c, 0x0c, 0x01]);
    }

    /// `lea ecx, [rcx - number]`
    fn compare_with_number(&mut self, number: u32) {
        self.put(&[0x8d, 0x89]);
        self.put(&number.wrapping_neg().to_le_bytes());
    }

    /// A short jump if ecx is 0; returns the argument for [`set_distance`](Self::set_distance).
    fn jump_if_low_zero(&mut self) -> usize {
        self.put(&[0x67, 0xe3, 0]);
        self.bytes().len()
    }

    /// `movzx ecx, r11w`
    fn low_half_of_r11(&mut self) {
        self.put(&[0x41, 0x0f, 0xb7, 0xcb]);
    }

    pub(crate) fn jump_if_zero(&mut self) -> usize {
        self.put(&[0xe3, 0]);
        self.bytes().len()
    }

    /// A short forward jump; returns the argument for [`set_distance`](Self::set_distance).
    fn jump_over(&mut self) -> usize {
        self.put(&[0xeb, 0]);
        self.bytes().len()
    }

    /// A forward jump; returns the argument for [`lead_here`](Self::lead_here).
    pub(crate) fn jump_ahead(&mut self) -> usize {
        self.put(&[0xe9, 0, 0, 0, 0]);
        self.bytes().len()
    }

    /// Makes a jump that was written before lead to here.
    pub(crate) fn lead_here(&mut self, jump: usize) {
        let here = self.here();
        let site = here - (self.bytes().len() - jump) as u64 - 4;
        self.patch(site, here);
    }
}

/// Entering and leaving.
///
/// The code that enters or leaves *holds* two registers: the program's rcx and r11 are in their slots, and r11 is the
/// current frame. Between a return's target and the next call or return, they need not be released if no instruction
/// uses them. Otherwise each call or return would load what the one before has just stored, and all of them would
/// form a chain in which each waits for the one before.
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
    fn leave_frame(&mut self, slots: &ContextSlots) {
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
    fn compare_with_first(&mut self, slots: &ContextSlots) {
        self.put(&[0x41, 0x8d, 0x8b]);
        self.put(&slots.first.wrapping_neg().to_le_bytes());
    }

    /// `bswap rcx; movzx ecx, cl`: rcx becomes 0 if it is not negative, as addresses have fewer than 56 bits.
    fn sign_of_rcx(&mut self) {
        self.put(&[0x48, 0x0f, 0xc9, 0x0f, 0xb6, 0xc9]);
    }

    /// `lea rcx, [rip + ...]; mov gs:[slot], rcx`
    pub fn store_address(&mut self, slot: u32, address: u64) {
        self.put(&[0x48, 0x8d, 0x0d]);
        self.put_relative(address);
        self.store_gs(slot, Register::RCX);
    }

    /// r11 becomes the child of the node in it, that of the frame below the current one, that stands for the callee;
    /// rcx is lost. Everything began at `begin`.
    fn recent_child(&mut self, callee: &Callee, begin: u64) -> LookUp {
        self.load_half_at(R11, R11, recent_place(callee.number));
        self.load_half_at(RCX, R11, NODE_KEY);
        self.compare_with_number(callee.number);
        let hit = self.jump_if_low_zero();
        self.jump_ahead();
        self.set_distance(hit);
        LookUp { site: self.here() - 4, goal: Goal::Replaced, begin, found: self.here() }
    }

    /// Where a child is not among the recent ones: takes the one that was entered last if the node is its parent, or
    /// looks for it, and goes on with it. The jump at [`LookUp::site`] is to lead here.
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

    /// Enters a function that was called: a frame for it becomes the current one, and control continues behind the
    /// code, with registers held. Code that holds them already enters [`HOLD`] bytes later. Returns the rest of the
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
    fn unless_stack_matches(&mut self, slots: &ContextSlots, entry: u64, otherwise: Option<u64>) -> u64 {
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

    fn restore_and_jump(&mut self, slots: &ContextSlots, entry: u64) -> u64 {
        self.release(slots);
        self.jump(entry)
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
        self.set_distance(hit);
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
        self.set_distance(full);
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
        in_use
    }

    /// `mov r11d, gs:[rcx * 4 + table]`, or the other way round.
    fn table_entry(&mut self, opcode: u8, table: u32) {
        self.put(&[0x65, 0x44, opcode, 0x1c, 0x8d]);
        self.put(&table.to_le_bytes());
    }

    fn restore_flags(&mut self, slots: &ContextSlots) {
        self.gs_operand(true, &[0x8b], RDX, None, slots.rdx);
        self.load_gs(Register::RAX, slots.flags);
        // add al, 0x7f; sahf
        self.put(&[0x04, 0x7f, 0x9e]);
        self.load_gs(Register::RAX, slots.rax);
    }

    /// Makes the short jump that was just written lead back to an offset in the bytes.
    fn set_distance_back(&mut self, to: usize) {
        let from = self.bytes().len();
        self.replace_byte(from - 1, to.wrapping_sub(from) as u8);
    }
}

/// Where a callee's last enterings are kept, from the row of a parent on.
fn place_of_lasts(number: u32) -> u32 {
    number / TOGETHER % GROUPS * GROUP + number % TOGETHER * 8
}

/// The number below the parent's offset in a callee's last entries.
fn mark_of_lasts(number: u32) -> u32 {
    number / TOGETHER / GROUPS
}

/// Where in a node the child is that stands for a callee, if it is a recent one.
fn recent_place(number: u32) -> u32 {
    NODE_RECENT + number % RECENT * 4
}

/// Whether an instruction may move the stack pointer up, or to another stack.
pub fn raises_stack(decoded: &Decoded) -> bool {
    let instruction = &decoded.instruction;
    let moves = instruction.op_count() > 0 && instruction.op0_register() == iced_x86::Register::RSP;
    let lowers = [Mnemonic::Push, Mnemonic::Sub, Mnemonic::And, Mnemonic::Cmp, Mnemonic::Test];
    match instruction.mnemonic() {
        Mnemonic::Pop | Mnemonic::Leave => true,
        Mnemonic::Xchg => instruction.op1_register() == iced_x86::Register::RSP || moves,
        mnemonic => moves && !lowers.contains(&mnemonic),
    }
}

#[cfg(test)]
#[path = "context_tests.rs"]
mod tests;
