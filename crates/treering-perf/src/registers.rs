//! The registers from which a stack is unwound.

/// The registers that samples contain, as bits of `asm/perf_regs.h`: all general registers and the instruction
/// pointer. The kernel writes them in the order of the bits.
#[cfg(target_arch = "x86_64")]
pub(crate) const MASK: u64 = 0xff_01ff;

#[cfg(not(target_arch = "x86_64"))]
compile_error!("treering-perf unwinds stacks of x86 programs only");

/// How many registers [`MASK`] asks for.
pub(crate) const COUNT: usize = MASK.count_ones() as usize;

/// The set of registers that a program uses, of the processor's two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Width {
    /// x86-64.
    #[default]
    Bits64,
    /// i386, which a 64-bit kernel runs as well.
    Bits32,
}

/// How registers are numbered in unwind tables: figure 3.36 of the System V ABI for x86-64, and
/// table 2.14 of the one for i386.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Numbering {
    /// How many bytes an address has.
    pub(crate) word: u8,
    /// The base pointer, which may hold anything in code without frame pointers.
    pub(crate) base: usize,
    /// The stack pointer.
    pub(crate) stack: usize,
    /// The column of the return address.
    pub(crate) instruction: usize,
    /// The registers that a function may save for its caller.
    pub(crate) saved: &'static [usize],
}

const NUMBERING_64: Numbering =
    Numbering { word: 8, base: 6, stack: 7, instruction: 16, saved: &[3, 6, 12, 13, 14, 15] };
const NUMBERING_32: Numbering =
    Numbering { word: 4, base: 5, stack: 4, instruction: 8, saved: &[3, 5, 6, 7] };

/// The most entries that [`Numbering::saved`] has.
pub(crate) const MOST_SAVED: usize = 6;

impl Width {
    /// The numbers of the registers in unwind tables.
    pub(crate) fn numbering(self) -> &'static Numbering {
        match self {
            Self::Bits64 => &NUMBERING_64,
            Self::Bits32 => &NUMBERING_32,
        }
    }
}

/// The registers of a thread in user mode, by their number in unwind tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Registers {
    pub(crate) width: Width,
    values: [u64; COUNT],
}

impl Registers {
    /// The registers in the order in which the kernel writes them: by their bit.
    pub(crate) fn from_sampled(width: Width, sampled: [u64; COUNT]) -> Self {
        let [ax, bx, cx, dx, si, di, bp, sp, ip, r8, r9, r10, r11, r12, r13, r14, r15] = sampled;
        let values = match width {
            Width::Bits64 => [ax, dx, cx, bx, si, di, bp, sp, r8, r9, r10, r11, r12, r13, r14, r15, ip],
            Width::Bits32 => [ax, cx, dx, bx, sp, bp, si, di, ip, 0, 0, 0, 0, 0, 0, 0, 0],
        };
        Self { width, values }
    }

    /// The value of a register; nothing for one that is not kept, such as a vector register.
    pub(crate) fn get(&self, number: usize) -> Option<u64> {
        let kept = number <= self.width.numbering().instruction;
        self.values.get(number).filter(|_| kept).copied()
    }

    /// Sets a register that is kept.
    pub(crate) fn set(&mut self, number: usize, value: u64) {
        self.values[number] = value;
    }

    /// The stack pointer.
    pub(crate) fn stack(&self) -> u64 {
        self.values[self.width.numbering().stack]
    }

    /// The base pointer.
    pub(crate) fn base(&self) -> u64 {
        self.values[self.width.numbering().base]
    }

    /// The instruction pointer.
    pub(crate) fn instruction(&self) -> u64 {
        self.values[self.width.numbering().instruction]
    }

    /// Sets the instruction and stack pointers, as a return does.
    pub(crate) fn return_to(&mut self, instruction: u64, stack: u64) {
        let numbering = self.width.numbering();
        self.values[numbering.instruction] = instruction;
        self.values[numbering.stack] = stack;
    }

    /// Whether a 64-bit thread that is in the kernel got there by `syscall`, which leaves the address
    /// of the next instruction in `rcx`.
    pub(crate) fn is_in_system_call(&self) -> bool {
        self.width == Width::Bits64 && self.values[2] == self.instruction()
    }

    /// The registers that a signal interrupted, where `stack` points to the `ucontext_t` that the kernel
    /// pushed (`asm/ucontext.h`): after a 64-bit handler has returned.
    pub(crate) fn interrupted(&self, read: impl Fn(u64) -> Option<u64>) -> Option<Self> {
        /// `r8` to `r15`, `di`, `si`, `bp`, `bx`, `dx`, `ax`, `cx`, `sp`, `ip`.
        const ORDER: [usize; COUNT] = [8, 9, 10, 11, 12, 13, 14, 15, 5, 4, 6, 3, 1, 0, 2, 7, 16];
        /// `uc_flags`, `uc_link` and `uc_stack`.
        const BEFORE: u64 = 40;
        let mut values = [0; COUNT];
        for (place, register) in ORDER.into_iter().enumerate() {
            values[register] = read(self.stack().wrapping_add(BEFORE + 8 * place as u64))?;
        }
        (self.width == Width::Bits64).then_some(Self { width: self.width, values })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values by the kernel's order: ax is 0, bx is 1.
    const SAMPLED: [u64; COUNT] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16];

    #[test]
    fn registers_are_found_by_their_role() {
        let wide = Registers::from_sampled(Width::Bits64, SAMPLED);
        assert_eq!((wide.base(), wide.stack(), wide.instruction()), (6, 7, 8));
        assert_eq!((wide.get(3), wide.get(10), wide.get(17)), (Some(1), Some(11), None));
        let narrow = Registers::from_sampled(Width::Bits32, SAMPLED);
        assert_eq!((narrow.base(), narrow.stack(), narrow.instruction()), (6, 7, 8));
        assert_eq!((narrow.get(3), narrow.get(7), narrow.get(9)), (Some(1), Some(5), None));
    }

    #[test]
    fn a_signal_frame_has_the_registers_of_the_interrupted_code() {
        let mut registers = Registers::from_sampled(Width::Bits64, SAMPLED);
        registers.return_to(0, 1000);
        let interrupted = registers.interrupted(Some).expect("all can be read");
        // `uc_mcontext.gregs`: REG_RBP is 10, REG_RSP 15, REG_RIP 16.
        assert_eq!(interrupted.base(), 1040 + 80);
        assert_eq!(interrupted.stack(), 1040 + 120);
        assert_eq!(interrupted.instruction(), 1040 + 128);
        assert_eq!(registers.interrupted(|at| (at < 1100).then_some(at)), None);
    }
}
