//! The code that keeps a calling context tree: entering and leaving nodes, and a running count.
//!
//! The running count of the current activation lies in xmm15: instructions in its lower half, the
//! activation itself, as one call, in its upper half. So leaving a node adds both to the node at
//! once, without a flag or another register. Frames and nodes lie in the thread's own memory, at
//! offsets to GS:
//!
//! - a frame has the caller's count (16 bytes), the node (4), and the stack pointer (8, from byte 24);
//! - a node has its sums (16 bytes), its key (the parent's offset above the callee's number, 8), and
//!   from byte 24 on the offsets of ten recent children (4 bytes each), at a place by the callee's number. Whether
//!   the node there is the callee's is checked in that node;
//! - last entries, as a node may have many children: a parent's and its child's offset (4 + 4 bytes), at a place
//!   by bits of the parent's offset and the callee's number;
//! - a table of all nodes by their keys.
//!
//! All of it is written in the encoding of AVX, which clears the register's upper parts: instructions of
//! SSE would keep them, and cost a hundred cycles wherever the program has used longer vectors. So the
//! whole register is the count's.
//!
//! Only [`Assembler::find_child`] changes flags, and it restores them.

use iced_x86::Mnemonic;

#[cfg(doc)]
use crate::Assembler;
use crate::Decoded;

mod child;
mod encoding;
mod frame;

/// The size of a frame in bytes.
pub const FRAME: u32 = 32;
/// The place of the node's offset in a frame.
pub const FRAME_NODE: u32 = 16;
/// The place of the stack pointer in a frame.
pub const FRAME_STACK: u32 = 24;
/// The size of a node in bytes.
pub const NODE: u32 = 64;
/// The offset of the key in a node. An entry without a child has the offset 0, so that the number behind the key is
/// read from the beginning of the area there: it must not be a callee's number.
pub const NODE_KEY: u32 = 16;
/// The place of the recent children in a node.
const NODE_RECENT: u32 = 24;
/// The number of recent children in a node.
const RECENT: u32 = 10;
/// The size of the last entries of callees in bytes: each group has a row for every value of bits 6 to 15 of parents,
/// with a place for each of eight callees.
pub const LASTS: u32 = GROUPS * GROUP;
/// The number of callees whose last entries are kept, by their numbers: those with the same place differ by a mark,
/// which fits below the parent's offset.
pub const MOST_LASTS: u32 = GROUPS * TOGETHER * NODE;
const GROUPS: u32 = 32;
const GROUP: u32 = 1 << 16;
const TOGETHER: u32 = NODE / 8;
/// The most bytes of [`Assembler::enter_node`], [`Assembler::release`], a jump and [`Assembler::look_up`] together.
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
/// bits above the middle would not depend on the parent.
const HASH_FROM: u32 = 32 + NODE.trailing_zeros();

/// The entry of a table at which the search for a node with the key begins, for up to 2²⁶ entries; to be cut to the
/// table's size.
pub fn table_place(key: u64) -> u64 {
    key.wrapping_mul(HASH) >> HASH_FROM
}

/// The offsets to GS of the data that the code uses.
#[derive(Debug, Clone, Copy)]
pub struct ContextSlots {
    /// Keeps rcx.
    pub rcx: u32,
    /// Keeps r11.
    pub r11: u32,
    /// The offset of the current frame.
    pub top: u32,
    /// Where control continues when a child was found.
    pub go_on: u32,
    /// Where control begins again when there was no room.
    pub again: u32,
    /// The parent whose child is searched.
    pub parent: u32,
    /// The number of the callee that is searched.
    pub callee: u32,
    /// Its place among its parent's recent children.
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
    /// The mark of its last entries.
    pub mark: u32,
    /// The last entries of callees: [`LASTS`] bytes.
    pub lasts: u32,
    /// The frame of the thread's first function, which is never left.
    pub first: u32,
    /// The number of unmatched returns: returns for which no frame records a call.
    pub unmatched_returns: u32,
    /// The number of running signal handlers.
    pub handlers: u32,
    /// The node for folded contexts, which takes the place of a parent without room; 0 while there is room.
    pub fold: u32,
}

/// The facts about a function that its entry code needs.
#[derive(Debug, Clone, Copy)]
pub struct Callee {
    /// Its number; not 0.
    pub number: u32,
    /// The address of the count of a new activation: 0 instructions, 1 call.
    pub one: u64,
    /// Its number if its last entries are kept, or 0.
    pub last: u32,
    /// The routine that [`Assembler::find_child`] wrote.
    pub find: u64,
}

/// The search that is left to do if a child is not among the recent ones of its parent: see [`Assembler::look_up`].
#[derive(Debug, Clone, Copy)]
pub struct LookUp {
    /// The place of the displacement of the jump to it.
    pub site: u64,
    /// The parent, and the purpose of the search.
    goal: Goal,
    /// Where control begins again when there was no room.
    begin: u64,
    /// Where control continues with the child.
    found: u64,
}

/// The node whose child is searched, and the use of the child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Goal {
    /// The current frame's node; the child goes into the frame above, while r11 is the current one.
    Entered,
    /// The node of the frame below; the child goes into r11.
    Replaced,
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
mod tests;
