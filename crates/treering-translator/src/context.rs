//! Calling context trees, which the translated code keeps itself.
//!
//! A thread's area holds a stack of frames and a pool of nodes ([`treering_x86::context`] defines their layout). Each
//! block adds its instructions to a count in xmm15. A call goes through a stub that makes the callee's frame the
//! current one. A return leaves the frame if the stack pointer has its value from the function's entry. The tracer
//! handles all other cases, and signals, new threads and the end: see `areas/tree_frame.rs`.
//!
//! Where a program uses xmm15, ymm15 or zmm15 itself, the program's value is loaded for that instruction
//! only: see `emit/count_register.rs`.

mod calls;
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

/// Facts about calls and functions in an address space. Nothing is noted where no trees are kept.
#[derive(Debug, Default)]
pub(crate) struct Contexts {
    /// Where functions begin, by file.
    pub(crate) files: FileFunctionStarts,
    /// The same by the number of the region that maps the file.
    pub(crate) starts: HashMap<usize, Option<Rc<FunctionStarts>>>,
    /// The targets of translated calls, for code that comes from no file.
    pub(crate) called: BTreeSet<u64>,
    /// Addresses behind calls.
    pub(crate) returns: HashSet<u64>,
    /// Sites that jump through a fixed memory location, as linkage tables do.
    pub(crate) linkage: HashSet<u32>,
    /// Blocks that move the stack pointer up before they jump.
    pub(crate) raising: HashSet<u32>,
    /// Entry stubs, by unit, target and kind of call.
    pub(crate) stubs: HashMap<(u8, u64, CallKind), u64>,
    /// Entries of functions whose code follows in the trace, by address and whether the call counts for them.
    pub(crate) in_line: HashMap<(u64, bool), u64>,
    /// Whether the processor has registers of 64 bytes (AVX-512).
    pub(crate) wide: bool,
}

impl Contexts {
    /// Only the files' function starts are known yet.
    pub(crate) fn new(files: FileFunctionStarts) -> Self {
        Self { files, wide: std::arch::is_x86_feature_detected!("avx512f"), ..Self::default() }
    }
}

/// How a function is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum CallKind {
    /// By a call.
    Call,
    /// By a call that counts for the callee.
    PropagatedCall,
    /// By a jump that leaves the stack as it was at the jumping function's entry.
    Jump,
    /// The same, or by a jump that moves the stack pointer above that.
    JumpOrResume,
    /// By a jump within a function, or by a jump that moves the stack pointer above its value at entry.
    StayOrResume,
    /// By a jump that moves the stack pointer up, as `longjmp` does.
    Resume,
}
