//! Where control went.

use crate::{CodeAddress, OfThread, ThreadId};

/// How often control went from one place to another, other than to the next instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BranchCount {
    /// The thread.
    pub thread: ThreadId,
    /// How it came to go there.
    pub kind: BranchKind,
    /// The instruction that it left from; nothing for [`BranchKind::Start`], and for
    /// [`BranchKind::Return`] and [`BranchKind::SignalReturn`] where not known.
    pub site: Option<CodeAddress>,
    /// The instruction that it went to; nothing for [`BranchKind::End`], for a signal that killed,
    /// and where not known. A target without translated blocks was not executed, or not counted.
    pub target: Option<CodeAddress>,
    /// How often.
    pub count: u64,
}

impl BranchCount {
    /// Whether this only says that a thread returned to a place at least `count` times: the origins were not counted.
    /// The other arrivals there are then not all arrivals.
    pub fn is_seen_return(&self) -> bool {
        self.kind == BranchKind::Return && self.site.is_none()
    }
}

impl OfThread for BranchCount {
    fn thread(&self) -> ThreadId {
        self.thread
    }

    fn with_thread(self, thread: ThreadId) -> Self {
        Self { thread, ..self }
    }
}

/// How control came to go elsewhere than to the next instruction. The stored number is the
/// discriminant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
#[repr(u8)]
pub enum BranchKind {
    /// A conditional branch to the place in the instruction: how often it was *taken*. How often
    /// it was not taken is not stored; it is the executions of the site less this.
    /// `loop` and `jrcxz` are conditional branches too.
    Conditional = 0,
    /// An unconditional jump to the place in the instruction.
    Jump = 1,
    /// A jump to a place in a register or in memory: tables of `switch`, linkage stubs, tail calls.
    IndirectJump = 2,
    /// A call of the place in the instruction.
    Call = 3,
    /// A call of a place in a register or in memory.
    IndirectCall = 4,
    /// A return.
    Return = 5,
    /// The first instruction of a thread, or of a program that a process became: `target`.
    Start = 6,
    /// The last instruction of a thread, or of a program that became another: `site`, which was
    /// executed.
    End = 7,
    /// A signal, faults included. `site` was about to run and is not counted for it; `target` is the
    /// handler, or nothing when the signal ended the thread.
    Signal = 8,
    /// A handler's return to what its signal had interrupted, or to where it chose: `target`.
    SignalReturn = 9,
    /// Any other way, such as an aborted transaction (`xbegin`).
    Other = 10,
}

impl BranchKind {
    /// Every kind, in the order of the stored numbers.
    pub const ALL: [Self; 11] = [
        Self::Conditional,
        Self::Jump,
        Self::IndirectJump,
        Self::Call,
        Self::IndirectCall,
        Self::Return,
        Self::Start,
        Self::End,
        Self::Signal,
        Self::SignalReturn,
        Self::Other,
    ];

    /// The kind stored as `number`, or nothing for a number that is not in use.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(number as usize).copied()
    }

    /// The word for this kind in files and reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Conditional => "conditional",
            Self::Jump => "jump",
            Self::IndirectJump => "indirect jump",
            Self::Call => "call",
            Self::IndirectCall => "indirect call",
            Self::Return => "return",
            Self::Start => "start",
            Self::End => "end",
            Self::Signal => "signal",
            Self::SignalReturn => "signal return",
            Self::Other => "other",
        }
    }

    /// Whether it is a call, direct or not.
    pub fn is_call(self) -> bool {
        matches!(self, Self::Call | Self::IndirectCall)
    }

    /// Whether it is a jump that could lead into another function: a tail call, a linkage stub.
    pub fn is_jump(self) -> bool {
        matches!(self, Self::Conditional | Self::Jump | Self::IndirectJump)
    }

    /// Whether its site was executed, so that it leaves from behind the site; a signal leaves from
    /// before.
    pub fn leaves_executed(self) -> bool {
        !matches!(self, Self::Start | Self::Signal)
    }
}
