//! The calling context tree of each thread, kept by the translated code itself.
//!
//! A thread's area holds a stack of frames and a pool of nodes (their layout: [`treering_x86::context`]).
//! Each block adds its instructions to a count in xmm15. A call goes by a stub that makes the callee's
//! frame the current one; a return leaves it if the stack pointer is where it was when the function was
//! entered. Whenever it is not, and for signals, new threads and the end, the tracer does it: see
//! `context/frame.rs`.
//!
//! Where a program uses xmm15, ymm15 or zmm15 itself, its own value is put there for the instruction's time.

pub(crate) mod count_batch;
mod count_register;
mod frame;
mod frame_spill;
mod function_starts;
mod node;
mod snapshot;
mod tree;
mod tree_code;
mod tree_memory;

use std::collections::BTreeSet;
use std::rc::Rc;

use hashbrown::{HashMap, HashSet};
use treering_x86::context::{ContextSlots, FRAME, NODE_KEY};

use crate::program::region::PAGE;
use crate::sys::layout::{NOBODY, SAVED_COUNTS, SAVED_R11, SAVED_RCX, THREAD_AREA};

pub(crate) use frame::Inherited;
use frame_spill::Spilled;
pub(crate) use function_starts::FileFunctionStarts;
use function_starts::FunctionStarts;
pub(crate) use snapshot::TreeSnapshot;
pub use tree::{ContextNode, ContextTree};
pub(crate) use tree_code::ContextRoutines;
use tree_memory::ContextMemory;

/// How far apart areas lie when they hold trees.
pub(crate) const CONTEXT_AREA: u64 = 2 << 30;
/// The frames, behind the counters.
const FRAMES: u64 = THREAD_AREA;
/// How many bytes of frames there may be: eight million.
const FRAMES_SIZE: u64 = 256 << 20;
/// The last page of them, which nobody may touch.
const GUARD: u64 = FRAMES + FRAMES_SIZE - PAGE;
/// The table of children.
const TABLE: u64 = FRAMES + FRAMES_SIZE;
/// The most entries that it can have, of four bytes.
const MOST_ENTRIES: u64 = 1 << 25;
/// How many it has at first.
const FIRST_ENTRIES: u64 = 1 << 12;
/// The nodes, from that of the thread's root on.
const NODES: u64 = TABLE + MOST_ENTRIES * 4;
/// The frame of the thread's first function, above that of its root: these two are never left.
const FIRST_FRAME: u64 = FRAMES + FRAME as u64;

/// The program's own value of the register, with all its upper parts.
const OWN: u32 = 0x900;
/// Words of it.
const OWN_WORDS: usize = 8;
/// Its value, lowest word first.
type Vector = [u64; OWN_WORDS];
/// The count, while the program's own xmm15 is in the register.
const COUNT: u32 = 0x810;
/// How often the thread returned to where no frame says that something was called from.
const STRAYS: u64 = 0x880;
/// The frame up to which all were there before the thread was.
const INHERITED_TO: u64 = 0x888;
/// The thread's number.
const OWNER: u64 = 0x890;
/// How many handlers of signals run.
const HANDLERS: u64 = 0x898;

/// Where code and tracer find what they share.
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
    strays: STRAYS as u32,
    handlers: HANDLERS as u32,
    fold: 0x8b0,
};

const _: () = assert!(NODE_KEY == NOBODY);

/// Where the function is "entered" that stands for contexts which there was no room for: no code can lie there.
pub const FOLDED: u64 = u64::MAX;

/// How many nodes the trees of a process have at most if nothing is said. They take about 80 bytes each.
const MOST_NODES: u64 = 2_000_000;
/// How many a tree can have: the table has room for twice as many, and for one of each function beside them.
const LARGEST_TREE: u64 = MOST_ENTRIES / 2 - (1 << 20);

/// The count of a new activation.
const NEW: [u64; 2] = [0, 1];
/// The count of one that the thread did not enter itself.
const INHERITED: [u64; 2] = [0, 0];

/// The last enterings of callees, where others have what is credited to counters: nothing is with trees.
const LASTS: u32 = SAVED_COUNTS;
/// How many bytes they are.
const LASTS_SIZE: u64 = treering_x86::context::LASTS as u64;

/// What is known of the contexts of an address space.
#[derive(Debug, Default)]
pub(crate) struct Contexts {
    /// Numbers of functions, by the address at which they are entered.
    numbers: HashMap<u64, u32>,
    /// The addresses by number; 0 is nobody's.
    addresses: Vec<u64>,
    /// The regions that those lay in, by number.
    regions: Vec<u32>,
    /// What files say of where functions begin.
    files: FileFunctionStarts,
    /// The same of each region's file, by number.
    starts: HashMap<usize, Option<Rc<FunctionStarts>>>,
    /// Addresses that calls lead to, as far as code was translated: for code of no file.
    called: BTreeSet<u64>,
    /// Addresses behind calls.
    returns: HashSet<u64>,
    /// Indirect jumps through a fixed place in memory, by site.
    linkage: HashSet<u32>,
    /// Blocks that move the stack pointer up before they jump.
    raising: HashSet<u32>,
    /// Routines by unit, target and way.
    stubs: HashMap<(u8, u64, CallKind), u64>,
    /// Where functions are entered whose code follows at once, by address and whether the call counts for them.
    in_line: HashMap<(u64, bool), u64>,
    /// The exits that ask for frames to be left, and for room.
    unwind: u32,
    room: u32,
    /// Whether registers of 64 bytes are there to be kept.
    wide: bool,
    threads: HashMap<usize, ThreadContext>,
    /// How many nodes its trees may have; beyond that, contexts are folded.
    most_nodes: u64,
    /// How many bytes of frames a thread may have.
    most_frames: u64,
    /// Frames, tables and nodes, by area.
    memory: Vec<ContextMemory>,
}

/// How a function is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum CallKind {
    /// By a call.
    Call,
    /// By one that counts for what it calls.
    PropagatedCall,
    /// By a jump that leaves the stack as it was at the jumping function's entry.
    Jump,
    /// The same, or else by one that moves the stack pointer above that.
    JumpOrResume,
    /// By a jump within a function, or else by one that moves the stack pointer above that.
    StayOrResume,
    /// By one that moves the stack pointer up, as `longjmp` does.
    Resume,
}

/// What translated code asks for because of contexts.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ContextRequest {
    /// A return that does not belong to the current frame.
    Unwind,
    /// Room for more nodes.
    Room,
    /// Control goes on after a jump that has moved the stack pointer up.
    Resume(u64),
}

/// What only the tracer knows of a thread's contexts.
#[derive(Debug, Default)]
struct ThreadContext {
    /// Handlers that run, outermost first.
    signals: Vec<SignalFrame>,
    /// The stack pointer where a signal interrupts, while its handler is being entered; the count is
    /// in its slot.
    interrupted: Option<u64>,
    /// Frames that lie with the tracer, as there is no room for all.
    spilled: Spilled,
}

/// A frame that stands for the delivery of a signal.
#[derive(Debug, Clone)]
struct SignalFrame {
    /// Its offset.
    frame: u64,
    /// The stack that the handler runs on, if it has one of its own.
    stack: Option<(u64, u64)>,
}
