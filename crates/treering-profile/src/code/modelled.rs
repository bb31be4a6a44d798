//! Counts of a model of caches and of a branch predictor, by instruction.

use crate::{CodeAddress, ThreadId};

/// The events that a model counts. The names are those that Cachegrind gave them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum ModelledEvent {
    /// Instruction fetches that missed the first cache.
    I1mr,
    /// Instruction fetches that missed the last cache.
    ILmr,
    /// Reads of data.
    Dr,
    /// Reads of data that missed the first cache.
    D1mr,
    /// Reads of data that missed the last cache.
    DLmr,
    /// Writes of data.
    Dw,
    /// Writes of data that missed the first cache.
    D1mw,
    /// Writes of data that missed the last cache.
    DLmw,
    /// Conditional branches.
    Bc,
    /// Conditional branches that were mispredicted.
    Bcm,
    /// Indirect jumps and calls.
    Bi,
    /// Indirect jumps and calls whose target was mispredicted.
    Bim,
}

impl ModelledEvent {
    /// Every event, in Cachegrind's order.
    pub const ALL: [Self; 12] = [
        Self::I1mr,
        Self::ILmr,
        Self::Dr,
        Self::D1mr,
        Self::DLmr,
        Self::Dw,
        Self::D1mw,
        Self::DLmw,
        Self::Bc,
        Self::Bcm,
        Self::Bi,
        Self::Bim,
    ];

    /// The name of its metric.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::I1mr => "I1mr",
            Self::ILmr => "ILmr",
            Self::Dr => "Dr",
            Self::D1mr => "D1mr",
            Self::DLmr => "DLmr",
            Self::Dw => "Dw",
            Self::D1mw => "D1mw",
            Self::DLmw => "DLmw",
            Self::Bc => "Bc",
            Self::Bcm => "Bcm",
            Self::Bi => "Bi",
            Self::Bim => "Bim",
        }
    }

    /// Whether it is counted by a model of caches, rather than of branches.
    pub fn is_of_caches(self) -> bool {
        self < Self::Bc
    }
}

/// How often an event happened at an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelledCount {
    /// The thread that executed it.
    pub thread: ThreadId,
    /// The instruction.
    pub at: CodeAddress,
    /// The event.
    pub event: ModelledEvent,
    /// How often.
    pub count: u64,
}
