//! Code that ran without being counted, and why.

use crate::{CodeAddress, ProcessId, StringId, ThreadId};

/// Something that ran, or would have run, and is missing from the counts.
///
/// A profile of counted code is exact but for what is listed here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uncounted {
    /// Why.
    pub reason: UncountedReason,
    /// The process, where it is about one.
    pub process: Option<ProcessId>,
    /// The thread, where it is about one.
    pub thread: Option<ThreadId>,
    /// The instruction, where it is about one.
    pub at: Option<CodeAddress>,
    /// Its description, such as the path of a program; may be the empty string.
    pub detail: StringId,
}

/// Why something was not counted. The stored number is the discriminant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
#[repr(u8)]
pub enum UncountedReason {
    /// Code of 32 or 16 bits.
    OtherMode = 0,
    /// A program that may not be traced: with more rights than its caller, or not readable.
    Privileged = 1,
    /// A process that is traced by another, or wanted to be.
    Traced = 2,
    /// An instruction that was executed untouched, since it is not understood: where it leads is
    /// not known.
    Instruction = 3,
    /// There was no memory left for counters.
    Memory = 4,
    /// The counting ended before the thread did: it was killed, or detached from.
    CutShort = 5,
    /// A child that was not followed, as the user wished.
    NotFollowed = 6,
    /// The time outside of what the user selected.
    Deselected = 7,
    /// The counting program could not follow what the process did to its address space.
    AddressSpace = 8,
    /// Anything else, told by the detail.
    Other = 9,
}

impl UncountedReason {
    /// Every reason, in the order of the stored numbers.
    pub const ALL: [Self; 10] = [
        Self::OtherMode,
        Self::Privileged,
        Self::Traced,
        Self::Instruction,
        Self::Memory,
        Self::CutShort,
        Self::NotFollowed,
        Self::Deselected,
        Self::AddressSpace,
        Self::Other,
    ];

    /// The reason stored as `number`, or nothing for a number that is not in use.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(number as usize).copied()
    }

    /// The reason in words, to follow "not counted: ".
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OtherMode => "code of 32 bits",
            Self::Privileged => "a program that may not be traced",
            Self::Traced => "a process that is traced already",
            Self::Instruction => "after an instruction that is not understood",
            Self::Memory => "no memory for counters",
            Self::CutShort => "code that ran after counting had ended",
            Self::NotFollowed => "a child that was not followed",
            Self::Deselected => "code that was not selected",
            Self::AddressSpace => "a process whose address space could not be followed",
            Self::Other => "other code",
        }
    }
}
