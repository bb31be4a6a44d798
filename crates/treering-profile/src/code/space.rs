//! Where code is: addresses within modules, and within code that changed while the program ran.

use std::cmp::Ordering;

use crate::{CodeSpaceId, LineId, ModuleId, StatedAddress};

/// The code that an address is in: a module, at a time at which it did not change.
///
/// Within a space an address stands for the same bytes for as long as the program ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CodeSpace {
    /// The binary, with addresses as stated in it; or a module of kind
    /// [`Jit`](crate::ModuleKind::Jit) with the runtime addresses of one process, as `[jit 77]`.
    /// Nothing where not even the process is known.
    pub module: Option<ModuleId>,
    /// 0 for code that never changed. Where bytes that were executed change, blocks made from then
    /// on are in a space of the next generation, with [`CodeBytes`] of their own; blocks made
    /// before may go on counting in theirs.
    pub generation: u32,
}

/// The place of an instruction. Places are ordered by space, then by address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CodeAddress {
    /// The code that it is in.
    pub space: CodeSpaceId,
    /// Where its first byte is.
    pub address: StatedAddress,
}

// As one number, so that comparing takes no branch: tables of places are sorted and searched a lot.
impl Ord for CodeAddress {
    fn cmp(&self, other: &Self) -> Ordering {
        self.number().cmp(&other.number())
    }
}

impl PartialOrd for CodeAddress {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }

    fn lt(&self, other: &Self) -> bool {
        self.number() < other.number()
    }

    fn le(&self, other: &Self) -> bool {
        self.number() <= other.number()
    }
}

impl CodeAddress {
    fn number(self) -> u128 {
        u128::from(self.space.raw()) << 64 | u128::from(self.address.0)
    }

    /// The place that many bytes further on, in the same space; wraps at 2^64 as addresses do.
    #[must_use]
    pub fn offset(self, bytes: u64) -> Self {
        Self { address: StatedAddress(self.address.0.wrapping_add(bytes)), ..self }
    }
}

/// Bytes of code that no file holds, as they were when they were executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeBytes {
    /// Where the first byte is.
    pub start: CodeAddress,
    /// The bytes.
    pub bytes: Box<[u8]>,
}

/// The source line of the code from an address on, up to the next such address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeLine {
    /// Where it begins.
    pub start: CodeAddress,
    /// The line, of the innermost function where functions are inlined; nothing where not known.
    pub line: Option<LineId>,
}
