//! Calling context trees, which the translated code keeps itself.
//!
//! A thread's area holds a stack of frames and a pool of nodes ([`treering_x86::context`] defines their layout). Each
//! block adds its instructions to a count in xmm15. A call goes through a stub that makes the callee's frame the
//! current one. A return leaves the frame if the stack pointer has its value from the function's entry. In all other
//! cases, and for signals, new threads and the end, the tracer does it: see `areas/tree_frame.rs`.
//!
//! Where a program uses xmm15, ymm15 or zmm15 itself, the program's value is loaded for that instruction only: see
//! `emit/count_register.rs`.

mod function_starts;
mod snapshot;
mod tree;

use std::collections::BTreeSet;
use std::rc::Rc;

use hashbrown::{HashMap, HashSet};

pub(crate) use function_starts::FileFunctionStarts;
pub(crate) use function_starts::FunctionStarts;
pub(crate) use snapshot::TreeSnapshot;
pub use tree::{ContextNode, ContextTree};

/// What is known of the contexts of an address space.
#[derive(Debug, Default)]
pub(crate) struct Contexts {
    /// What files say of where functions begin.
    pub(crate) files: FileFunctionStarts,
    /// The same of each region's file, by number.
    pub(crate) starts: HashMap<usize, Option<Rc<FunctionStarts>>>,
    /// Addresses that calls lead to, as far as code was translated: for code of no file.
    pub(crate) called: BTreeSet<u64>,
    /// Addresses behind calls.
    pub(crate) returns: HashSet<u64>,
    /// Indirect jumps through a fixed place in memory, by site.
    pub(crate) linkage: HashSet<u32>,
    /// Blocks that move the stack pointer up before they jump.
    pub(crate) raising: HashSet<u32>,
    /// Entry stubs, by unit, target and kind of call.
    pub(crate) stubs: HashMap<(u8, u64, CallKind), u64>,
    /// Where functions are entered whose code follows at once, by address and whether the call counts for them.
    pub(crate) in_line: HashMap<(u64, bool), u64>,
    /// Whether registers of 64 bytes are there to be kept.
    pub(crate) wide: bool,
}

impl Contexts {
    /// Nothing is known yet but what files say.
    pub(crate) fn new(files: FileFunctionStarts) -> Self {
        Self { files, wide: std::arch::is_x86_feature_detected!("avx512f"), ..Self::default() }
    }
}

/// How a function is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum CallKind {
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
