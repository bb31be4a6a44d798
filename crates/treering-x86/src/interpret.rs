//! The instructions that a translator adds, as functions of a machine's state.
//!
//! A signal may come when a thread is among them, where its registers are not the program's. They
//! are then carried out here instead of by the processor, up to the program's next instruction:
//! nothing has to be single-stepped, which would disturb the program's own handling of traps.

use iced_x86::{Code, Decoder, DecoderOptions, Instruction, OpKind};

use crate::Register;

/// The state that the instructions work on.
pub trait Machine {
    /// The value of a register.
    fn register(&self, register: Register) -> u64;
    /// Gives a register a value.
    fn set_register(&mut self, register: Register, value: u64);
    /// Eight bytes at an address, or at an offset to GS; none if there is no such memory.
    fn load(&mut self, place: Place) -> Option<u64>;
    /// Stores eight bytes; none if there is no such memory.
    fn store(&mut self, place: Place, value: u64) -> Option<()>;
    /// The value of xmm15, lower half first; none if it may not be asked for.
    fn vector(&mut self) -> Option<[u64; 2]> {
        None
    }
    /// Gives xmm15 a value; the upper parts of the register become 0.
    fn set_vector(&mut self, _value: [u64; 2]) -> Option<()> {
        None
    }
}

/// Where an operand lies in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// At an address.
    Address(u64),
    /// At an offset to GS.
    Slot(u64),
}

/// The result of one instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stepped {
    /// It was carried out; control goes to the address.
    To(u64),
    /// It is a system call, and was not carried out.
    SystemCall,
    /// It is not one that a translator adds, or its memory is missing: nothing was changed.
    Foreign,
}

/// Carries out the instruction that the bytes at `address` begin with.
pub fn step(bytes: &[u8], address: u64, machine: &mut impl Machine) -> Stepped {
    let instruction = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE).decode();
    carry_out(&instruction, machine).unwrap_or(Stepped::Foreign)
}

/// The stack pointer behind an instruction that [moves the stack](crate::Decoded::moves_stack); nothing if it is another one
/// or its memory is missing.
pub fn moved_stack(bytes: &[u8], address: u64, machine: &mut impl Machine) -> Option<u64> {
    let instruction = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE).decode();
    match stack_source(&instruction)? {
        Source::Operand(operand) => read(&instruction, operand, machine),
        Source::Top => machine.load(Place::Address(machine.register(Register::RSP))),
    }
}

/// Where an instruction takes the stack pointer from.
enum Source {
    Operand(u32),
    /// The eight bytes on the stack.
    Top,
}

fn stack_source(instruction: &Instruction) -> Option<Source> {
    let is_stack = |operand: u32| {
        instruction.op_kind(operand) == OpKind::Register
            && instruction.op_register(operand) == iced_x86::Register::RSP
    };
    // A frame's end: the frame pointer has the value that the stack pointer had.
    let is_frame =
        instruction.op1_kind() == OpKind::Register && instruction.op1_register() == iced_x86::Register::RBP;
    match instruction.code() {
        Code::Mov_r64_rm64 | Code::Mov_rm64_r64 if is_stack(0) && !is_frame => Some(Source::Operand(1)),
        Code::Xchg_rm64_r64 if is_stack(0) => Some(Source::Operand(1)),
        Code::Xchg_rm64_r64 if is_stack(1) => Some(Source::Operand(0)),
        Code::Pop_r64 | Code::Pop_rm64 if is_stack(0) => Some(Source::Top),
        _ => None,
    }
}

/// Whether an instruction gives the stack pointer a value from memory or another register.
pub(crate) fn moves_stack(instruction: &Instruction) -> bool {
    stack_source(instruction).is_some()
}

/// The slot that the instruction stores a whole register into, with that register: a saved value.
pub fn saved_register(bytes: &[u8], address: u64) -> (usize, Option<(u64, Register)>) {
    let instruction = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE).decode();
    let saves = instruction.code() == Code::Mov_rm64_r64
        && instruction.segment_prefix() == iced_x86::Register::GS
        && instruction.memory_base() == iced_x86::Register::None
        && instruction.memory_index() == iced_x86::Register::None;
    let saved = saves.then(|| Register::holding(instruction.op1_register())).flatten();
    (instruction.len(), saved.map(|register| (instruction.memory_displacement64(), register)))
}

fn carry_out(instruction: &Instruction, machine: &mut impl Machine) -> Option<Stepped> {
    let taken = match instruction.code() {
        Code::Jmp_rel32_64 | Code::Jmp_rel8_64 => true,
        Code::Jrcxz_rel8_64 => machine.register(Register::RCX) == 0,
        Code::Jecxz_rel8_64 => machine.register(Register::RCX) as u32 == 0,
        Code::Jmp_rm64 => return Some(Stepped::To(read(instruction, 0, machine)?)),
        Code::Syscall => return Some(Stepped::SystemCall),
        _ => {
            move_data(instruction, machine)?;
            false
        }
    };
    Some(Stepped::To(if taken { instruction.near_branch_target() } else { instruction.next_ip() }))
}

fn move_data(instruction: &Instruction, machine: &mut impl Machine) -> Option<()> {
    match instruction.code() {
        Code::Mov_rm64_r64 | Code::Mov_r64_rm64 => {
            let value = read(instruction, 1, machine)?;
            write(instruction, value, machine)?;
        }
        Code::Mov_r64_imm64 | Code::Mov_rm64_imm32 if instruction.op0_kind() == OpKind::Register => {
            write(instruction, instruction.immediate(1), machine)?;
        }
        Code::Mov_rm64_imm32 => {
            let to = place(instruction, machine)?;
            machine.store(to, instruction.immediate(1))?;
        }
        Code::Mov_r32_imm32 => write(instruction, u64::from(instruction.immediate32()), machine)?,
        Code::Mov_rm32_imm32 => write_half(instruction, instruction.immediate32(), machine)?,
        Code::Lea_r64_m => {
            let Place::Address(address) = place(instruction, machine)? else { return None };
            write(instruction, address, machine)?;
        }
        Code::Mov_r32_rm32 => {
            let value = read_half(instruction, machine)?;
            write(instruction, value, machine)?;
        }
        Code::Mov_rm32_r32 => {
            let value = read(instruction, 1, machine)? as u32;
            write_half(instruction, value, machine)?;
        }
        Code::Lea_r32_m => {
            let Place::Address(address) = place(instruction, machine)? else { return None };
            write(instruction, address & 0xffff_ffff, machine)?;
        }
        _ => compute(instruction, machine)?,
    }
    Some(())
}

fn compute(instruction: &Instruction, machine: &mut impl Machine) -> Option<()> {
    match instruction.code() {
        Code::Movzx_r32_rm16 => write(instruction, read(instruction, 1, machine)? & 0xffff, machine)?,
        Code::Movzx_r32_rm8 if instruction.op1_kind() == OpKind::Memory => {
            let value = read_byte(instruction, machine)?;
            write(instruction, value, machine)?;
        }
        Code::Movzx_r32_rm8 => write(instruction, read(instruction, 1, machine)? & 0xff, machine)?,
        Code::VEX_Rorx_r32_rm32_imm8 => {
            let rotated = (read(instruction, 1, machine)? as u32).rotate_right(instruction.immediate32());
            write(instruction, u64::from(rotated), machine)?;
        }
        Code::VEX_Shrx_r64_rm64_r64 => {
            let shifted = read(instruction, 1, machine)? >> (read(instruction, 2, machine)? & 63);
            write(instruction, shifted, machine)?;
        }
        Code::Mov_r8_imm8 if instruction.op0_register() == iced_x86::Register::CL => {
            let upper = machine.register(Register::RCX) & !0xff;
            machine.set_register(Register::RCX, upper | u64::from(instruction.immediate8()));
        }
        Code::Bswap_r64 => write(instruction, read(instruction, 0, machine)?.swap_bytes(), machine)?,
        // A counter's, where no flag is live.
        Code::Inc_rm64 if instruction.segment_prefix() == iced_x86::Register::GS => {
            let counter = place(instruction, machine)?;
            let count = machine.load(counter)?;
            machine.store(counter, count.wrapping_add(1))?;
        }
        Code::Not_rm64 => write(instruction, !read(instruction, 0, machine)?, machine)?,
        Code::Push_rm64 | Code::Pushq_imm32 => push(instruction, machine)?,
        Code::Pop_r64 => pop(instruction, machine)?,
        Code::Nopd | Code::Nopw | Code::Nop_rm16 | Code::Nop_rm32 | Code::Prefetcht0_m8 => {}
        _ => compute_vector(instruction, machine)?,
    }
    Some(())
}

fn compute_vector(instruction: &Instruction, machine: &mut impl Machine) -> Option<()> {
    match instruction.code() {
        Code::VEX_Vmovaps_xmm_xmmm128 if instruction.op0_register() == iced_x86::Register::XMM15 => {
            let value = read_vector(instruction, 1, machine)?;
            machine.set_vector(value)?;
        }
        Code::VEX_Vmovaps_xmmm128_xmm => {
            let value = read_vector(instruction, 1, machine)?;
            let to = place(instruction, machine)?;
            machine.store(to, value[0])?;
            machine.store(behind(to), value[1])?;
        }
        Code::VEX_Vpaddq_xmm_xmm_xmmm128 if instruction.op0_register() == iced_x86::Register::XMM15 => {
            let (sum, more) = (read_vector(instruction, 1, machine)?, read_vector(instruction, 2, machine)?);
            machine.set_vector([sum[0].wrapping_add(more[0]), sum[1].wrapping_add(more[1])])?;
        }
        Code::VEX_Vpsubq_xmm_xmm_xmmm128 if instruction.op0_register() == iced_x86::Register::XMM15 => {
            let (rest, less) = (read_vector(instruction, 1, machine)?, read_vector(instruction, 2, machine)?);
            machine.set_vector([rest[0].wrapping_sub(less[0]), rest[1].wrapping_sub(less[1])])?;
        }
        _ => return None,
    }
    Some(())
}

fn read(instruction: &Instruction, operand: u32, machine: &mut impl Machine) -> Option<u64> {
    match instruction.op_kind(operand) {
        OpKind::Register => {
            let part = instruction.op_register(operand);
            let is_high = part.is_gpr8() && (4..8).contains(&(part as u32 - iced_x86::Register::AL as u32));
            (!is_high).then(|| Register::holding(part)).flatten().map(|register| machine.register(register))
        }
        OpKind::Memory if instruction.memory_size().size() == 8 => {
            let place = place(instruction, machine)?;
            machine.load(place)
        }
        _ => None,
    }
}

fn write(instruction: &Instruction, value: u64, machine: &mut impl Machine) -> Option<()> {
    match instruction.op0_kind() {
        OpKind::Register => {
            machine.set_register(Register::holding(instruction.op0_register())?, value);
            Some(())
        }
        _ => {
            let place = place(instruction, machine)?;
            machine.store(place, value)
        }
    }
}

/// A byte of a slot, which is aligned.
fn read_byte(instruction: &Instruction, machine: &mut impl Machine) -> Option<u64> {
    let Place::Slot(slot) = place(instruction, machine)? else { return None };
    Some(machine.load(Place::Slot(slot & !7))? >> ((slot & 7) * 8) & 0xff)
}

/// Four bytes out of memory.
fn read_half(instruction: &Instruction, machine: &mut impl Machine) -> Option<u64> {
    let (word, shift) = word_of(place(instruction, machine)?);
    Some(machine.load(word)? >> shift & 0xffff_ffff)
}

fn write_half(instruction: &Instruction, value: u32, machine: &mut impl Machine) -> Option<()> {
    let (word, shift) = word_of(place(instruction, machine)?);
    let kept = machine.load(word)? & !(0xffff_ffff << shift);
    machine.store(word, kept | u64::from(value) << shift)
}

/// The eight bytes that four belong to, and how far up in them those stand. In memory of ours they
/// are aligned.
fn word_of(place: Place) -> (Place, u32) {
    match place {
        Place::Slot(slot) => (Place::Slot(slot & !7), (slot & 4) as u32 * 8),
        Place::Address(_) => (place, 0),
    }
}

/// xmm15, or sixteen bytes of memory.
fn read_vector(instruction: &Instruction, operand: u32, machine: &mut impl Machine) -> Option<[u64; 2]> {
    match instruction.op_kind(operand) {
        OpKind::Register if instruction.op_register(operand) == iced_x86::Register::XMM15 => machine.vector(),
        OpKind::Memory => {
            let from = place(instruction, machine)?;
            Some([machine.load(from)?, machine.load(behind(from))?])
        }
        _ => None,
    }
}

fn behind(place: Place) -> Place {
    match place {
        Place::Address(address) => Place::Address(address.wrapping_add(8)),
        Place::Slot(slot) => Place::Slot(slot.wrapping_add(8)),
    }
}

fn push(instruction: &Instruction, machine: &mut impl Machine) -> Option<()> {
    let value = match instruction.op0_kind() {
        OpKind::Memory => read(instruction, 0, machine)?,
        _ => instruction.immediate(0),
    };
    let top = machine.register(Register::RSP).wrapping_sub(8);
    machine.store(Place::Address(top), value)?;
    machine.set_register(Register::RSP, top);
    Some(())
}

fn pop(instruction: &Instruction, machine: &mut impl Machine) -> Option<()> {
    let top = machine.register(Register::RSP);
    let value = machine.load(Place::Address(top))?;
    machine.set_register(Register::RSP, top.wrapping_add(8));
    write(instruction, value, machine)
}

fn place(instruction: &Instruction, machine: &impl Machine) -> Option<Place> {
    if instruction.is_ip_rel_memory_operand() {
        return Some(Place::Address(instruction.ip_rel_memory_address()));
    }
    let part = |register: iced_x86::Register| match register {
        iced_x86::Register::None => Some(0),
        _ if register.is_gpr64() => Register::holding(register).map(|register| machine.register(register)),
        _ => None,
    };
    let index = part(instruction.memory_index())?.wrapping_mul(u64::from(instruction.memory_index_scale()));
    let offset = part(instruction.memory_base())?
        .wrapping_add(index)
        .wrapping_add(instruction.memory_displacement64());
    match instruction.segment_prefix() {
        iced_x86::Register::None => Some(Place::Address(offset)),
        iced_x86::Register::GS => Some(Place::Slot(offset)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Assembler;
    use std::collections::HashMap;

    #[derive(Default)]
    struct Model {
        registers: [u64; 16],
        memory: HashMap<u64, u64>,
        slots: HashMap<u64, u64>,
    }

    impl Machine for Model {
        fn register(&self, register: Register) -> u64 {
            self.registers[usize::from(register.number())]
        }
        fn set_register(&mut self, register: Register, value: u64) {
            self.registers[usize::from(register.number())] = value;
        }
        fn load(&mut self, place: Place) -> Option<u64> {
            match place {
                Place::Address(address) => self.memory.get(&address).copied(),
                Place::Slot(slot) => Some(self.slots.get(&slot).copied().unwrap_or(0)),
            }
        }
        fn store(&mut self, place: Place, value: u64) -> Option<()> {
            match place {
                Place::Address(address) => *self.memory.get_mut(&address)? = value,
                Place::Slot(slot) => drop(self.slots.insert(slot, value)),
            }
            Some(())
        }
    }

    /// Runs up to an address, or to an instruction that is not interpreted.
    fn run(code: &Assembler, base: u64, machine: &mut Model) -> u64 {
        let mut at = base;
        while let Some(bytes) = code.bytes().get((at - base) as usize..).filter(|bytes| !bytes.is_empty()) {
            match step(bytes, at, machine) {
                Stepped::To(next) if (base..code.here()).contains(&next) => at = next,
                Stepped::To(next) => return next,
                Stepped::SystemCall | Stepped::Foreign => return at,
            }
        }
        at
    }

    #[test]
    fn a_return_finds_its_landing() {
        let mut code = Assembler::new(0x1000);
        code.prefetch(0x3000_0000);
        code.store_gs(0, Register::RCX);
        code.pop_rcx();
        code.low_half_of_rcx();
        code.jump_by_rcx(0x3000_0000);
        let mut machine = Model::default();
        machine.registers[1] = 7;
        machine.registers[4] = 0x100;
        machine.memory.insert(0x100, 0x40_1234);
        machine.memory.insert(0x3000_0000 + 8 * 0x1234, 0x5000);
        assert_eq!(run(&code, 0x1000, &mut machine), 0x5000);
        assert_eq!(machine.registers[4], 0x108);
        assert_eq!(machine.slots[&0], 7);
        let mut code = Assembler::new(0x5000);
        code.load_popped_into_rcx();
        assert_eq!(run(&code, 0x5000, &mut machine), code.here());
        assert_eq!(machine.registers[1], 0x40_1234);
    }

    #[test]
    fn a_landing_knows_its_address_by_what_is_above_its_lower_half() {
        for address in KEYS.into_iter().filter(|address| address >> 16 <= i32::MAX as u64) {
            let mut code = Assembler::new(0x5000);
            code.shift_popped_into_rcx(16);
            code.subtract_key(address >> 16);
            assert!(!code.bytes().contains(&0xc9), "no bytes are swapped");
            let mut machine = Model::default();
            machine.registers[1] = u64::MAX;
            machine.registers[4] = 0x108;
            for (bit, is_it) in (0..64).map(|bit| (1_u64 << bit, bit < 16)).chain([(0, true)]) {
                machine.memory.insert(0x100, address ^ bit);
                assert_eq!(run(&code, 0x5000, &mut machine), code.here());
                assert_eq!(machine.registers[1] == 0, is_it, "{address:#x} {bit:#x}");
            }
        }
    }

    #[test]
    fn a_counter_is_counted_where_flags_are_dead_and_where_they_are_not() {
        let mut code = Assembler::new(0x1000);
        code.inc_gs(0x10);
        code.count_by(Register::RCX, 0x10);
        let mut machine = Model::default();
        machine.slots.insert(0x10, 5);
        assert_eq!(run(&code, 0x1000, &mut machine), code.here());
        assert_eq!(machine.slots[&0x10], 7);
    }

    /// Addresses whose halves are small, great, and greatest.
    const KEYS: [u64; 11] = [
        0,
        5,
        0x40_1234,
        0x7fff_ffff,
        0x8000_0000,
        0xffff_ffff,
        0x5555_5555_41a7,
        0x5555_8000_0000,
        0x7fff_f7ab_c123,
        0x7fff_ffff_ffff,
        0xff_ffff_ffff_ffff,
    ];

    #[test]
    fn only_the_key_becomes_nothing() {
        for key in KEYS {
            let near = (0..64).map(|bit| key ^ 1 << bit);
            let others = KEYS.into_iter().chain(near).filter(|&other| other != key);
            for (rcx, expected) in others.map(|other| (other, 0x2222)).chain([(key, 0x1111)]) {
                let mut code = Assembler::new(0x1000);
                code.subtract_key(key);
                code.jump_unless_key(0x2222);
                code.jump(0x1111);
                let mut machine = Model::default();
                machine.registers[1] = rcx;
                assert_eq!(run(&code, 0x1000, &mut machine), expected, "{rcx:#x} {key:#x}");
            }
        }
    }

    #[test]
    fn middle_bits_are_the_same_with_and_without_bmi2() {
        for target in [0, 0x7fff_1234_5678, u64::MAX, 0xff0, 0x5555_5555_5aa5] {
            let bits = |write: fn(&mut Assembler)| {
                let mut code = Assembler::new(0x1000);
                write(&mut code);
                let mut machine = Model::default();
                machine.registers[1] = target;
                assert_eq!(run(&code, 0x1000, &mut machine), code.here());
                machine.registers[1]
            };
            assert_eq!(bits(Assembler::middle_bits_of_rcx), target >> 4 & 0xff);
            assert_eq!(bits(|code| code.middle_bits_of_rcx_by(0x18)), target >> 4 & 0xff);
        }
    }

    #[test]
    fn foreign_instructions_and_missing_memory_change_nothing() {
        let mut machine = Model::default();
        // add eax, ebx; mov rcx, [rax]; cpuid
        for bytes in [&[0x01, 0xd8][..], &[0x48, 0x8b, 0x08], &[0x0f, 0xa2]] {
            assert_eq!(step(bytes, 0x1000, &mut machine), Stepped::Foreign);
        }
        assert_eq!(step(&[0x0f, 0x05], 0x1000, &mut machine), Stepped::SystemCall);
        assert_eq!(machine.registers, [0; 16]);
    }
}
