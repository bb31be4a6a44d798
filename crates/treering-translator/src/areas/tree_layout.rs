//! The layout of a thread's tree in its area: frames, the table of children, nodes.

use treering_x86::context::{ContextSlots, FRAME, NODE_KEY};

use crate::program::region::PAGE;
use crate::sys::layout::{NOBODY, SAVED_COUNTS, SAVED_R11, SAVED_RCX, THREAD_AREA};

/// The distance between areas that hold trees.
pub(crate) const CONTEXT_AREA: u64 = 2 << 30;
/// The frames, behind the counters.
pub(crate) const FRAMES: u64 = THREAD_AREA;
/// The most bytes of frames: eight million frames.
pub(crate) const FRAMES_SIZE: u64 = 256 << 20;
/// The last page of the frames, which is never accessible.
pub(crate) const GUARD: u64 = FRAMES + FRAMES_SIZE - PAGE;
/// The table of children.
pub(crate) const TABLE: u64 = FRAMES + FRAMES_SIZE;
/// The most entries that the table can have, of four bytes each.
pub(crate) const MOST_ENTRIES: u64 = 1 << 25;
/// The number of entries at first.
pub(crate) const FIRST_ENTRIES: u64 = 1 << 12;
/// The nodes, from that of the thread's root on.
pub(crate) const NODES: u64 = TABLE + MOST_ENTRIES * 4;
/// The frame of the thread's first function, above that of its root: these two are never left.
pub(crate) const FIRST_FRAME: u64 = FRAMES + FRAME as u64;

/// The program's own value of the register, with all its upper parts.
pub(crate) const OWN: u32 = 0x900;
/// Words of it.
pub(crate) const OWN_WORDS: usize = 8;
/// Its value, lowest word first.
pub(crate) type Vector = [u64; OWN_WORDS];
/// The count, while the program's own xmm15 is in the register.
pub(crate) const COUNT: u32 = 0x810;
/// The number of unmatched returns: returns for which no frame records a call.
pub(crate) const UNMATCHED_RETURNS: u64 = 0x880;
/// The last of the frames that the thread inherited.
pub(crate) const INHERITED_TO: u64 = 0x888;
/// The thread's number.
pub(crate) const OWNER: u64 = 0x890;
/// The number of signal handlers that are running.
pub(crate) const HANDLERS: u64 = 0x898;

/// The slots that translated code and the tracer share.
pub(crate) const SLOTS: ContextSlots = ContextSlots {
    rcx: SAVED_RCX,
    r11: SAVED_R11,
    top: 0x820,
    go_on: 0x828,
    again: 0x830,
    parent: 0x838,
    callee: 0x840,
    rax: 0x848,
    rdx: 0x850,
    place: 0x858,
    flags: 0x860,
    mask: 0x868,
    next: 0x870,
    end: 0x878,
    table: TABLE as u32,
    last: 0x8a0,
    mark: 0x8a8,
    lasts: LASTS,
    first: FIRST_FRAME as u32,
    unmatched_returns: UNMATCHED_RETURNS as u32,
    handlers: HANDLERS as u32,
    fold: 0x8b0,
};

const _: () = assert!(NODE_KEY == NOBODY);

/// The "entry address" of the function that stands for folded contexts: no code can lie there.
pub const FOLDED: u64 = u64::MAX;

/// The default for the most nodes of a process's trees. A node takes about 80 bytes.
pub(crate) const MOST_NODES: u64 = 2_000_000;
/// The most nodes of one tree: the table has room for twice as many, and for one node of each function besides.
pub(crate) const LARGEST_TREE: u64 = MOST_ENTRIES / 2 - (1 << 20);

/// The count of a new activation.
pub(crate) const NEW: [u64; 2] = [0, 1];
/// The count of an activation that the thread inherited.
pub(crate) const INHERITED: [u64; 2] = [0, 0];

/// The last callee entries; without trees, saved counts lie there.
pub(crate) const LASTS: u32 = SAVED_COUNTS;
/// The size of the last callee entries, in bytes.
pub(crate) const LASTS_SIZE: u64 = treering_x86::context::LASTS as u64;
