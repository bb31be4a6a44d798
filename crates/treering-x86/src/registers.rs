//! The general registers that an instruction reads and overwrites.

use iced_x86::{ConditionCode, InstructionInfoFactory, Mnemonic, OpAccess, OpKind};

use crate::{Decoded, Register};

/// A set of general registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RegisterSet(u16);

impl RegisterSet {
    /// No register.
    pub const NONE: Self = Self(0);
    /// All sixteen.
    pub const ALL: Self = Self(u16::MAX);

    /// Whether the register is in it.
    pub fn has(self, register: Register) -> bool {
        self.0 & register.bit() != 0
    }

    /// The set with the register.
    pub fn with(self, register: Register) -> Self {
        Self(self.0 | register.bit())
    }

    fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

/// Looks registers up; keeps the library's memory between questions.
#[derive(Debug)]
pub struct Registers(InstructionInfoFactory);

impl Default for Registers {
    fn default() -> Self {
        Self(InstructionInfoFactory::new())
    }
}

/// The effect of one instruction on registers.
struct Effect {
    /// Read, or overwritten in part or not always.
    needed: RegisterSet,
    /// Overwritten wholly, in every case.
    lost: RegisterSet,
    /// Whether it may end in a fault.
    may_fault: bool,
}

impl Registers {
    /// All registers that the instruction has to do with.
    pub fn used(&mut self, decoded: &Decoded) -> RegisterSet {
        let effect = self.effect(decoded);
        effect.needed.or(effect.lost)
    }

    /// All registers that the instructions have to do with.
    pub fn used_by_all(&mut self, block: &[Decoded]) -> RegisterSet {
        block.iter().fold(RegisterSet::NONE, |used, decoded| used.or(self.used(decoded)))
    }

    /// The first place in the block before which a register is dead, and that register: a value written there is
    /// overwritten before it is read.
    ///
    /// No instruction in between can fault. A fault's handler might continue elsewhere, where the register is live:
    /// compilers let null checks fault, for instance.
    pub fn place_with_dead(&mut self, block: &[Decoded]) -> Option<(usize, Register)> {
        let mut live = RegisterSet::ALL;
        let mut found = None;
        for (at, decoded) in block.iter().enumerate().rev() {
            let effect = self.effect(decoded);
            live = match effect.may_fault {
                true => RegisterSet::ALL,
                false => live.without(effect.lost).or(effect.needed),
            };
            let dead = Register::all().find(|&register| register != Register::RSP && !live.has(register));
            if let Some(dead) = dead {
                found = Some((at, dead));
            }
        }
        found
    }

    fn effect(&mut self, decoded: &Decoded) -> Effect {
        let info = self.0.info(&decoded.instruction);
        let instruction = &decoded.instruction;
        let of_condition = instruction.condition_code() != ConditionCode::None;
        // Segment and control registers have faults of their own.
        let is_plain = (0..instruction.op_count())
            .all(|at| instruction.op_kind(at) != OpKind::Register || instruction.op_register(at).is_gpr());
        let may_fault = !is_plain
            || !(never_faults(instruction.mnemonic()) || of_condition)
            || info.used_memory().iter().any(|memory| memory.access() != OpAccess::NoMemAccess);
        let mut effect = Effect { needed: RegisterSet::NONE, lost: RegisterSet::NONE, may_fault };
        for used in info.used_registers() {
            let Some(register) = Register::holding(used.register()) else { continue };
            let whole = used.register().is_gpr64() || used.register().is_gpr32();
            match used.access() {
                OpAccess::Write if whole => effect.lost = effect.lost.with(register),
                _ => effect.needed = effect.needed.with(register),
            }
        }
        for memory in info.used_memory() {
            for part in [memory.base(), memory.index()] {
                if let Some(register) = Register::holding(part) {
                    effect.needed = effect.needed.with(register);
                }
            }
        }
        effect
    }
}

/// Whether an instruction with only registers for operands is never a fault.
fn never_faults(mnemonic: Mnemonic) -> bool {
    use Mnemonic as M;
    matches!(
        mnemonic,
        M::Adc
            | M::Add
            | M::And
            | M::Bsf
            | M::Bsr
            | M::Bswap
            | M::Bt
            | M::Cbw
            | M::Cdq
            | M::Cdqe
            | M::Cmp
            | M::Cqo
            | M::Cwd
            | M::Cwde
            | M::Dec
            | M::Imul
            | M::Inc
            | M::Lea
            | M::Lzcnt
            | M::Mov
            | M::Movsx
            | M::Movsxd
            | M::Movzx
            | M::Mul
            | M::Neg
            | M::Nop
            | M::Not
            | M::Or
            | M::Popcnt
            | M::Rcl
            | M::Rcr
            | M::Rol
            | M::Ror
            | M::Rorx
            | M::Sar
            | M::Sarx
            | M::Sbb
            | M::Shl
            | M::Shld
            | M::Shlx
            | M::Shr
            | M::Shrd
            | M::Shrx
            | M::Sub
            | M::Test
            | M::Tzcnt
            | M::Xchg
            | M::Xor
    )
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail by panicking")]
mod tests {
    use super::*;
    use crate::decode::block;

    #[test]
    fn a_register_is_dead_before_it_is_overwritten() {
        // setz cl; mov esi, 1; mov esi, [rsi]
        let code = block(&[0x0f, 0x94, 0xc1, 0xbe, 1, 0, 0, 0, 0x8b, 0x36]);
        let (at, register) = Registers::default().place_with_dead(&code).unwrap();
        assert_eq!((at, register.number()), (0, 6));
        assert_eq!(Registers::default().place_with_dead(&code[..1]), None);
    }

    #[test]
    fn a_register_is_not_dead_before_what_may_fault() {
        // mov rdx, [rdi]; mov ecx, 1: at a fault rcx may be wanted
        let code = block(&[0x48, 0x8b, 0x17, 0xb9, 1, 0, 0, 0]);
        let (at, register) = Registers::default().place_with_dead(&code).unwrap();
        assert_eq!((at, register.number()), (1, 1));
        // lea ecx, [rdi]; div ecx; xor edx, edx
        let code = block(&[0x8d, 0x0f, 0xf7, 0xf1, 0x31, 0xd2]);
        let (at, register) = Registers::default().place_with_dead(&code).unwrap();
        assert_eq!((at, register.number()), (0, 1));
        // mov ds, eax; mov ecx, 1: a selector may be none
        let code = block(&[0x8e, 0xd8, 0xb9, 1, 0, 0, 0]);
        let (at, register) = Registers::default().place_with_dead(&code).unwrap();
        assert_eq!((at, register.number()), (1, 1));
    }

    #[test]
    fn parts_and_addresses_count_as_needed() {
        let used = Registers::default().used_by_all(&block(&[0x44, 0x88, 0x04, 0x0b]));
        for number in [1, 3, 8] {
            assert!(used.has(Register::new(number)));
        }
        assert!(!used.has(Register::RAX));
    }

    #[test]
    fn implied_registers_are_used() {
        // cpuid
        let used = Registers::default().used_by_all(&block(&[0x0f, 0xa2]));
        for number in [0, 1, 2, 3] {
            assert!(used.has(Register::new(number)));
        }
    }
}
