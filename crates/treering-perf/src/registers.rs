//! The registers from which a stack is unwound.

/// What the kernel is asked for, as bits of `asm/perf_regs.h`, and in which order it answers.
#[cfg(target_arch = "x86_64")]
pub(crate) const MASK: u64 = 1 << 6 | 1 << 7 | 1 << 8;

#[cfg(not(target_arch = "x86_64"))]
compile_error!("treering-perf unwinds stacks of x86-64 programs only");

/// The registers of a sampled thread, in user mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Registers {
    /// The base pointer, which may hold anything in code without frame pointers.
    pub(crate) base: u64,
    /// The stack pointer.
    pub(crate) stack: u64,
    /// The instruction pointer.
    pub(crate) instruction: u64,
}

/// How many registers [`MASK`] asks for.
pub(crate) const COUNT: usize = MASK.count_ones() as usize;

impl Registers {
    /// The registers in the order in which the kernel writes them: by their bit.
    pub(crate) fn from_sampled([base, stack, instruction]: [u64; COUNT]) -> Self {
        Self { base, stack, instruction }
    }
}
