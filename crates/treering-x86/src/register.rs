//! The sixteen general registers.

/// A general 64-bit register, by its number in instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Register(u8);

impl Register {
    /// The accumulator.
    pub const RAX: Self = Self(0);
    /// Counts, and receives the next instruction's address in a system call.
    pub const RCX: Self = Self(1);
    /// The stack pointer.
    pub const RSP: Self = Self(4);
    /// Receives the flags in a system call.
    pub const R11: Self = Self(11);

    /// The register with a number below 16; the number's other bits are ignored.
    pub const fn new(number: u8) -> Self {
        Self(number & 15)
    }

    /// All sixteen, in the order of their numbers.
    pub fn all() -> impl DoubleEndedIterator<Item = Self> {
        (0..16).map(Self)
    }

    /// The number, below 16.
    pub const fn number(self) -> u8 {
        self.0
    }

    /// The bit that stands for it in a [`RegisterSet`](crate::registers::RegisterSet).
    pub(crate) const fn bit(self) -> u16 {
        1 << self.0
    }

    /// The lower three bits, as they stand in the bytes of an instruction.
    pub(crate) const fn low(self) -> u8 {
        self.0 & 7
    }

    /// The fourth bit, as it stands in a prefix.
    pub(crate) const fn high(self) -> u8 {
        self.0 >> 3
    }

    /// The register that a part such as `cl` or `r9d` belongs to; none if it is no general register.
    pub(crate) fn holding(part: iced_x86::Register) -> Option<Self> {
        let full = part.full_register();
        full.is_gpr64().then(|| Self(full.number() as u8))
    }

    /// The name that the decoder's library uses.
    pub(crate) fn iced(self) -> iced_x86::Register {
        use iced_x86::Register as R;
        [
            R::RAX,
            R::RCX,
            R::RDX,
            R::RBX,
            R::RSP,
            R::RBP,
            R::RSI,
            R::RDI,
            R::R8,
            R::R9,
            R::R10,
            R::R11,
            R::R12,
            R::R13,
            R::R14,
            R::R15,
        ][usize::from(self.0)]
    }
}
