//! The registers after some instructions, in terms of those at the start.

use iced_x86::{Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register};

use super::Value;
use crate::registers::Width;

/// The general registers.
const REGISTERS: usize = 16;

/// The known values on a path.
#[derive(Clone, Debug)]
pub(super) struct State {
    width: Width,
    /// The next instruction.
    pub(super) next: u64,
    /// Whether no jump has left the function yet.
    pub(super) within: bool,
    values: [Option<Value>; REGISTERS],
    /// The values that were stored on the path, and where.
    stored: Vec<(Value, Option<Value>)>,
    /// The value that the accumulator's lowest byte was last set to.
    accumulator: Option<u8>,
}

impl State {
    pub(super) fn new(width: Width, next: u64) -> Self {
        let values = std::array::from_fn(|register| Some(Value { register, offset: 0, loaded: None }));
        Self { width, next, within: true, values, stored: Vec::new(), accumulator: None }
    }

    /// The same at another instruction.
    pub(super) fn at(&self, next: u64) -> Self {
        Self { next, ..self.clone() }
    }

    /// The effect of a call: it takes its arguments and gives the stack back.
    pub(super) fn after_call(&mut self) {
        self.accumulator = None;
        let kept = self.width.numbering();
        for (number, value) in self.values.iter_mut().enumerate() {
            if number != kept.stack && !kept.saved.contains(&number) {
                *value = None;
            }
        }
    }

    pub(super) fn after_system_call(&mut self) {
        self.accumulator = None;
        self.values[0] = None;
    }

    /// Whether a system call ends the thread or its process now (`asm/unistd_64.h`,
    /// `asm/unistd_32.h`).
    pub(super) fn ends_thread(&self) -> bool {
        match self.width {
            Width::Bits64 => matches!(self.accumulator, Some(60 | 231)),
            Width::Bits32 => matches!(self.accumulator, Some(1 | 252)),
        }
    }

    /// Whether an instruction uses the base pointer as a frame pointer: it reaches a variable below
    /// the frame that it points to, or takes back the caller's from where it points to.
    pub(super) fn uses_frame_pointer(&self, instruction: &Instruction) -> bool {
        let base = self.width.numbering().base;
        let unchanged = Some(Value { register: base, offset: 0, loaded: None });
        if self.values[base] != unchanged {
            return false;
        }
        let through = matches!(instruction.memory_base(), Register::RBP | Register::EBP);
        let indexed = instruction.memory_index() != Register::None;
        let takes_back = instruction.mnemonic() == Mnemonic::Mov
            && self.number(instruction, 0) == Some(base)
            && self.displacement(instruction) == 0;
        instruction.mnemonic() == Mnemonic::Leave
            || through && (indexed || takes_back || self.displacement(instruction) < 0)
    }

    /// Where the return address is.
    pub(super) fn back(&self) -> Option<Value> {
        self.values[self.width.numbering().stack]
    }

    /// The registers that the caller gets back changed.
    pub(super) fn restored(&self) -> Vec<(usize, Value)> {
        let saved = self.width.numbering().saved.iter();
        let changed = saved.filter_map(|&number| {
            let value = self.values[number]?;
            (value != Value { register: number, offset: 0, loaded: None }).then_some((number, value))
        });
        changed.collect()
    }

    /// Applies an instruction.
    pub(super) fn run(&mut self, instruction: &Instruction, info: &mut InstructionInfoFactory) {
        let target = self.number(instruction, 0);
        let stack = self.width.numbering().stack;
        let base = self.width.numbering().base;
        let word = i64::from(self.width.numbering().word);
        match (instruction.mnemonic(), target) {
            (Mnemonic::Push, _) => {
                let value = target.and_then(|number| self.values[number]);
                self.add(stack, -word);
                self.store(self.values[stack], value);
            }
            (Mnemonic::Pop, Some(target)) => {
                self.values[target] = self.load(self.values[stack]);
                self.add(stack, word);
            }
            (Mnemonic::Leave, _) => {
                self.values[stack] = self.values[base];
                self.values[base] = self.load(self.values[stack]);
                self.add(stack, word);
            }
            (Mnemonic::Add, Some(target)) if self.immediate(instruction).is_some() => {
                self.add(target, self.immediate(instruction).unwrap_or_default());
            }
            (Mnemonic::Sub, Some(target)) if self.immediate(instruction).is_some() => {
                self.add(target, -self.immediate(instruction).unwrap_or_default());
            }
            (Mnemonic::Lea, Some(target)) => self.values[target] = self.address(instruction),
            (Mnemonic::Mov, Some(target)) if instruction.op1_kind() == OpKind::Memory => {
                self.values[target] = self.load(self.address(instruction));
            }
            (Mnemonic::Mov, Some(target)) if instruction.op1_kind() == OpKind::Register => {
                self.values[target] = self.number(instruction, 1).and_then(|number| self.values[number]);
            }
            (Mnemonic::Mov, None) if instruction.op0_kind() == OpKind::Memory => {
                let value = self.number(instruction, 1).and_then(|number| self.values[number]);
                self.store(self.address(instruction), value);
            }
            _ => self.forget(instruction, info),
        }
        self.note_accumulator(instruction);
    }

    /// Forgets the values that an instruction changes in ways that are not followed.
    fn forget(&mut self, instruction: &Instruction, info: &mut InstructionInfoFactory) {
        let stack = self.width.numbering().stack;
        let moved = i64::from(instruction.stack_pointer_increment());
        let top = self.values[stack];
        for used in info.info(instruction).used_registers() {
            let written = !matches!(used.access(), OpAccess::None | OpAccess::Read | OpAccess::CondRead);
            if written && let Some(number) = self.numbered(self.whole(used.register())) {
                self.values[number] = None;
            }
        }
        if instruction.is_stack_instruction() {
            self.values[stack] = top;
            self.add(stack, moved);
        }
    }

    fn note_accumulator(&mut self, instruction: &Instruction) {
        let is_accumulator = instruction.op_count() > 0
            && instruction.op0_kind() == OpKind::Register
            && matches!(instruction.op0_register(), Register::AL | Register::EAX | Register::RAX);
        if is_accumulator {
            let immediate = match instruction.op1_kind() {
                OpKind::Immediate8 | OpKind::Immediate32 | OpKind::Immediate32to64 | OpKind::Immediate64 => {
                    u8::try_from(instruction.immediate(1)).ok()
                }
                _ => None,
            };
            self.accumulator = immediate.filter(|_| instruction.mnemonic() == Mnemonic::Mov);
        }
    }

    fn add(&mut self, register: usize, amount: i64) {
        if let Some(value) = &mut self.values[register] {
            let offset = value.loaded.as_mut().unwrap_or(&mut value.offset);
            *offset = offset.wrapping_add(amount);
        }
    }

    fn store(&mut self, at: Option<Value>, value: Option<Value>) {
        let Some(at) = at else { return };
        self.stored.retain(|(other, _)| *other != at);
        self.stored.push((at, value));
    }

    /// The value in memory: the one stored there on the path, or the one at the start.
    fn load(&self, at: Option<Value>) -> Option<Value> {
        let at = at?;
        if let Some((_, value)) = self.stored.iter().find(|(other, _)| *other == at) {
            return *value;
        }
        let numbering = self.width.numbering();
        let on_stack = at.register == numbering.base || at.register == numbering.stack;
        // Below the stack pointer is nothing yet.
        let is_there = at.register != numbering.stack || at.offset >= 0;
        (at.loaded.is_none() && on_stack && is_there).then_some(Value { loaded: Some(0), ..at })
    }

    /// The address that an instruction names in memory.
    fn address(&self, instruction: &Instruction) -> Option<Value> {
        let mut value = self.values[self.numbered(instruction.memory_base())?]?;
        let plain = instruction.memory_index() == Register::None
            && !matches!(instruction.segment_prefix(), Register::FS | Register::GS);
        let offset = value.loaded.as_mut().unwrap_or(&mut value.offset);
        *offset = offset.wrapping_add(self.displacement(instruction));
        plain.then_some(value)
    }

    fn displacement(&self, instruction: &Instruction) -> i64 {
        match self.width {
            Width::Bits64 => instruction.memory_displacement64() as i64,
            Width::Bits32 => i64::from(instruction.memory_displacement32() as i32),
        }
    }

    fn immediate(&self, instruction: &Instruction) -> Option<i64> {
        match instruction.op1_kind() {
            OpKind::Immediate8to64 | OpKind::Immediate32to64 => Some(instruction.immediate(1) as i64),
            OpKind::Immediate8to32 | OpKind::Immediate32 => Some(i64::from(instruction.immediate(1) as i32)),
            _ => None,
        }
    }

    /// The register that is an operand as a whole.
    fn number(&self, instruction: &Instruction, operand: u32) -> Option<usize> {
        if instruction.op_count() <= operand || instruction.op_kind(operand) != OpKind::Register {
            return None;
        }
        self.numbered(instruction.op_register(operand))
    }

    /// The register that a register is part of.
    fn whole(&self, register: Register) -> Register {
        match self.width {
            Width::Bits64 => register.full_register(),
            Width::Bits32 => register.full_register32(),
        }
    }

    /// The number of a register in unwind tables, if it is a general one and whole.
    fn numbered(&self, register: Register) -> Option<usize> {
        /// The order of `rax`, `rcx`, `rdx`, `rbx`, `rsp`, `rbp`, `rsi`, `rdi` in unwind tables.
        const ORDER: [usize; 8] = [0, 2, 1, 3, 7, 6, 4, 5];
        let number = register.number();
        match self.width {
            Width::Bits64 if register.is_gpr64() => Some(ORDER.get(number).copied().unwrap_or(number)),
            Width::Bits32 if register.is_gpr32() => Some(number),
            _ => None,
        }
    }
}
