//! The memory that an instruction reads and writes, and how its address is worked out.

use iced_x86::{
    Code, Encoder, Instruction, InstructionInfoFactory, MemoryOperand, Mnemonic, OpAccess, OpKind,
    Register as Iced, UsedMemory,
};

use crate::{Assembler, Decoded, Register};

/// The kind of an access to memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// It reads.
    Read,
    /// It writes.
    Write,
    /// It reads and writes the same bytes.
    Modify,
}

/// A segment whose base is not 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Segment {
    /// The base of FS is added.
    Fs,
    /// The base of GS is added.
    Gs,
}

/// Memory that an instruction uses, as it stands in the instruction or is implied by it.
#[derive(Debug, Clone, Copy)]
pub struct Operand {
    base: Iced,
    index: Iced,
    scale: u32,
    displacement: u64,
    /// The segment, if it has a base.
    pub segment: Option<Segment>,
    /// How many bytes; of a repeated instruction, in each round.
    pub size: u16,
    /// The kind of access.
    pub access: Access,
    /// Whether the instruction repeats itself, and its register moves on with each round.
    pub repeated: bool,
    /// Whether the address is the right one: gathers and scatters have many, of which this is the
    /// base, and bit strings reach beyond their operands.
    pub exact: bool,
}

impl Operand {
    /// The address without its segment's base, if no register is part of it.
    pub fn constant(&self) -> Option<u64> {
        (self.base == Iced::None && self.index == Iced::None).then_some(self.displacement)
    }

    /// The register to which the displacement is added, if there is nothing else.
    pub fn base_only(&self) -> Option<Register> {
        (self.index == Iced::None && self.base.is_gpr64()).then(|| Register::holding(self.base)).flatten()
    }

    /// The number that is added to the registers.
    pub fn displacement(&self) -> i64 {
        self.displacement.cast_signed()
    }

    /// `lea to, operand`: the address without its segment's base. Says whether it can be written.
    pub fn load_address(&self, to: Register, code: &mut Assembler) -> bool {
        let operand = MemoryOperand::new(
            self.base,
            self.index,
            self.scale,
            self.displacement.cast_signed(),
            1,
            false,
            Iced::None,
        );
        let lea = Instruction::with2(Code::Lea_r64_m, to.iced(), operand);
        let mut encoder = Encoder::new(64);
        let encoded = lea.and_then(|lea| encoder.encode(&lea, code.here()));
        if encoded.is_ok() {
            code.put(&encoder.take_buffer());
        }
        encoded.is_ok()
    }
}

/// Finds the memory accesses of instructions; reuses the library's memory.
#[derive(Debug, Default)]
pub struct MemoryUse(Factory);

#[derive(Debug)]
struct Factory(InstructionInfoFactory);

impl Default for Factory {
    fn default() -> Self {
        Self(InstructionInfoFactory::new())
    }
}

/// The effect of an instruction on a register whose value was known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// The register is another one now.
    Lost(Register),
    /// This number was added to it.
    Moved(Register, i64),
}

impl MemoryUse {
    /// Adds the memory that the instruction uses to `operands`.
    pub fn operands(&mut self, decoded: &Decoded, operands: &mut Vec<Operand>) {
        let instruction = &decoded.instruction;
        let repeated = instruction.is_string_instruction()
            && (instruction.has_rep_prefix() || instruction.has_repne_prefix());
        let info = self.0.0.info(instruction);
        let used = info.used_memory().iter().filter_map(|used| operand(instruction, used, repeated));
        operands.extend(used);
    }

    /// Adds to `changes` the registers that the instruction changes.
    pub fn changes(&mut self, decoded: &Decoded, changes: &mut Vec<Change>) {
        let instruction = &decoded.instruction;
        let moved = stack_movement(instruction);
        let info = self.0.0.info(instruction);
        for used in info.used_registers() {
            let reads = matches!(used.access(), OpAccess::Read | OpAccess::CondRead | OpAccess::NoMemAccess);
            let Some(register) = Register::holding(used.register()).filter(|_| !reads) else { continue };
            changes.push(match moved {
                Some(bytes) if register == Register::RSP => Change::Moved(register, bytes),
                _ => Change::Lost(register),
            });
        }
        // One change is said once.
        changes.dedup();
    }
}

/// The number added to the stack pointer, if the instruction contains it.
fn stack_movement(instruction: &Instruction) -> Option<i64> {
    let immediate = || Some(instruction.immediate(1).cast_signed());
    let own = instruction.op0_kind() == OpKind::Register && instruction.op0_register() == Iced::RSP;
    let by_value = own && instruction.op_count() == 2 && instruction.op1_kind() != OpKind::Register;
    match instruction.mnemonic() {
        Mnemonic::Sub if by_value && instruction.op1_kind() != OpKind::Memory => immediate().map(|by| -by),
        Mnemonic::Add if by_value && instruction.op1_kind() != OpKind::Memory => immediate(),
        Mnemonic::Push | Mnemonic::Call => Some(i64::from(instruction.stack_pointer_increment())),
        Mnemonic::Pop if !own => Some(i64::from(instruction.stack_pointer_increment())),
        _ => None,
    }
}

fn operand(instruction: &Instruction, used: &UsedMemory, repeated: bool) -> Option<Operand> {
    let access = match used.access() {
        OpAccess::None | OpAccess::NoMemAccess => return None,
        OpAccess::Read | OpAccess::CondRead => Access::Read,
        OpAccess::Write | OpAccess::CondWrite => Access::Write,
        OpAccess::ReadWrite | OpAccess::ReadCondWrite => Access::Modify,
    };
    let segment = match used.segment() {
        Iced::FS => Some(Segment::Fs),
        Iced::GS => Some(Segment::Gs),
        _ => None,
    };
    let whole = |register: Iced| register.is_gpr64() || register.is_gpr32() || register == Iced::None;
    let is_bits =
        matches!(instruction.mnemonic(), Mnemonic::Bt | Mnemonic::Btc | Mnemonic::Btr | Mnemonic::Bts)
            && instruction.op1_kind() == OpKind::Register;
    let exact = whole(used.index()) && !is_bits;
    Some(Operand {
        base: used.base(),
        index: if whole(used.index()) { used.index() } else { Iced::None },
        scale: used.scale(),
        displacement: used.displacement(),
        segment,
        size: size(instruction, used),
        access,
        repeated,
        exact,
    })
}

/// How many bytes are used. Of `xsave` and its kin only the processor knows: the parts that are
/// always there.
fn size(instruction: &Instruction, used: &UsedMemory) -> u16 {
    const ALWAYS_SAVED: u16 = 576;
    match used.memory_size().size() {
        // Of a repeated one the library tells no size, as there may be no round.
        0 if instruction.is_string_instruction() => instruction.memory_size().size() as u16,
        0 => ALWAYS_SAVED,
        size => size as u16,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode;

    fn used(bytes: &[u8]) -> Vec<(Access, u16, i64, Option<u64>)> {
        let (mut block, mut operands) = (Vec::new(), Vec::new());
        decode(bytes, 0x1000, 1, &mut block);
        MemoryUse::default().operands(&block[0], &mut operands);
        let told = |one: &Operand| (one.access, one.size, one.displacement(), one.constant());
        operands.iter().map(told).collect()
    }

    #[test]
    fn memory_is_told_with_what_is_implied() {
        use Access::{Modify, Read, Write};
        // mov rax, [rbx+8]; mov [rbx], ecx; add [rbx], ecx; lea rax, [rbx]; nop [rax]
        assert_eq!(used(&[0x48, 0x8b, 0x43, 8]), [(Read, 8, 8, None)]);
        assert_eq!(used(&[0x89, 0x0b]), [(Write, 4, 0, None)]);
        assert_eq!(used(&[0x01, 0x0b]), [(Modify, 4, 0, None)]);
        assert_eq!(used(&[0x48, 0x8d, 0x03]), []);
        assert_eq!(used(&[0x0f, 0x1f, 0x40, 0x00]), []);
        // push rax; pop rax; push [rbx]; call; ret; leave
        assert_eq!(used(&[0x50]), [(Write, 8, -8, None)]);
        assert_eq!(used(&[0x58]), [(Read, 8, 0, None)]);
        assert_eq!(used(&[0xff, 0x33]), [(Read, 8, 0, None), (Write, 8, -8, None)]);
        assert_eq!(used(&[0xe8, 0, 0, 0, 0]), [(Write, 8, -8, None)]);
        assert_eq!(used(&[0xc3]), [(Read, 8, 0, None)]);
        assert_eq!(used(&[0xc9]), [(Read, 8, 0, None)]);
        // mov eax, [rip+0x10]; movsb; fxsave [rax]
        assert_eq!(used(&[0x8b, 0x05, 0x10, 0, 0, 0]), [(Read, 4, 0x1016, Some(0x1016))]);
        assert_eq!(used(&[0xa4]), [(Write, 1, 0, None), (Read, 1, 0, None)]);
        assert_eq!(used(&[0x0f, 0xae, 0x00]), [(Write, 512, 0, None)]);
        // xsave [rax]: as much as is always there.
        assert_eq!(used(&[0x0f, 0xae, 0x20])[0].1, 576);
    }

    #[test]
    fn repeated_and_odd_operands_say_so() {
        let of = |bytes: &[u8]| {
            let (mut block, mut operands) = (Vec::new(), Vec::new());
            decode(bytes, 0x1000, 1, &mut block);
            MemoryUse::default().operands(&block[0], &mut operands);
            operands
        };
        // rep stosq
        let stored = of(&[0xf3, 0x48, 0xab]);
        assert_eq!((stored.len(), stored[0].repeated, stored[0].size), (1, true, 8));
        assert_eq!(stored[0].base_only(), Some(Register::new(7)));
        // mov rax, fs:[0x28]
        let own = of(&[0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0, 0, 0]);
        assert_eq!((own[0].segment, own[0].constant()), (Some(Segment::Fs), Some(0x28)));
        // vpgatherdd ymm0, [rax+ymm1*4], ymm2
        let gathered = of(&[0xc4, 0xe2, 0x6d, 0x90, 0x04, 0x88]);
        assert!(!gathered[0].exact && gathered[0].base_only() == Some(Register::RAX));
    }

    #[test]
    fn the_stack_pointer_moves_by_what_is_written() {
        let of = |bytes: &[u8]| {
            let (mut block, mut changes) = (Vec::new(), Vec::new());
            decode(bytes, 0x1000, 1, &mut block);
            MemoryUse::default().changes(&block[0], &mut changes);
            changes
        };
        // push rbx; pop rbx; sub rsp, 0x18; add rsp, 8; mov rsp, rbp; pop rsp
        assert_eq!(of(&[0x53]), [Change::Moved(Register::RSP, -8)]);
        assert!(of(&[0x5b]).contains(&Change::Moved(Register::RSP, 8)));
        assert_eq!(of(&[0x48, 0x83, 0xec, 0x18]), [Change::Moved(Register::RSP, -0x18)]);
        assert_eq!(of(&[0x48, 0x83, 0xc4, 8]), [Change::Moved(Register::RSP, 8)]);
        assert_eq!(of(&[0x48, 0x89, 0xec]), [Change::Lost(Register::RSP)]);
        assert!(of(&[0x5c]).contains(&Change::Lost(Register::RSP)));
    }

    #[test]
    fn addresses_are_loaded_as_they_stand() {
        use iced_x86::{Decoder, DecoderOptions, Formatter as _, IntelFormatter};
        let loaded = |bytes: &[u8]| {
            let (mut block, mut operands) = (Vec::new(), Vec::new());
            decode(bytes, 0x1000, 1, &mut block);
            MemoryUse::default().operands(&block[0], &mut operands);
            let mut code = Assembler::new(0x5000);
            assert!(operands[0].load_address(Register::RAX, &mut code));
            let instruction = Decoder::with_ip(64, code.bytes(), 0x5000, DecoderOptions::NONE).decode();
            let mut text = String::new();
            IntelFormatter::new().format(&instruction, &mut text);
            text
        };
        assert_eq!(loaded(&[0x8b, 0x44, 0x8b, 0x20]), "lea rax,[rbx+rcx*4+20h]");
        assert_eq!(loaded(&[0x8b, 0x04, 0x8d, 0, 1, 0, 0]), "lea rax,[rcx*4+100h]");
        assert_eq!(loaded(&[0x41, 0x8b, 0x45, 0]), "lea rax,[r13]");
        assert_eq!(loaded(&[0x67, 0x8b, 0x03]), "lea rax,[ebx]");
        assert_eq!(loaded(&[0x8b, 0x83, 0, 0xff, 0xff, 0xff]), "lea rax,[rbx-100h]");
    }
}
