//! Instructions written down for another place.

use iced_x86::{Code, Encoder, Instruction, MemoryOperand, Mnemonic, OpKind};

use crate::assembler::relative_to;
use crate::registers::Registers;
use crate::{Assembler, Decoded, Refusal, Register};

/// The places in a thread's own memory that a rewritten instruction needs, as offsets to GS.
#[derive(Debug, Clone, Copy)]
pub struct Slots {
    /// Keeps a register while another value is in it.
    pub first: u32,
    /// Keeps a second register.
    pub second: u32,
    /// Keeps `r11` while an indirect transfer looks for its target.
    pub r11: u32,
    /// Holds the base that the program itself gave to GS.
    pub own_gs: u32,
}

/// Adds the instruction, whose bytes are given, to the code: as it is if it does not depend on its
/// address, else changed so that it means the same.
///
/// # Errors
/// It cannot be rewritten; nothing was added.
pub fn copy(
    decoded: &Decoded,
    bytes: &[u8],
    slots: &Slots,
    registers: &mut Registers,
    code: &mut Assembler,
) -> Result<(), Refusal> {
    if decoded.uses_gs() {
        return copy_with_own_gs(decoded, slots, registers, code);
    }
    let Some(operand) = decoded.relative_operand() else {
        code.put(bytes);
        return Ok(());
    };
    let at = decoded.displacement_at();
    // A relative displacement counts from the end of the instruction, which may hold an immediate.
    let end = code.here() + decoded.len() as u64;
    match relative_to(end - 4, operand) {
        Some(displacement) => {
            code.put(&bytes[..at]);
            code.put(&displacement.to_le_bytes());
            code.put(&bytes[at + 4..]);
            Ok(())
        }
        None => copy_far(decoded, operand, slots, registers, code),
    }
}

/// The operand is out of reach: its address is put into a register for the instruction's time.
fn copy_far(
    decoded: &Decoded,
    operand: u64,
    slots: &Slots,
    registers: &mut Registers,
    code: &mut Assembler,
) -> Result<(), Refusal> {
    let [scratch, _] = unused(decoded, registers)?;
    let changed = with_base(decoded, scratch);
    let mut body = Assembler::new(code.here() + 19);
    encode(&changed, &mut body)?;
    code.store_gs(slots.first, scratch);
    code.set(scratch, operand);
    code.put(body.bytes());
    code.load_gs(scratch, slots.first);
    Ok(())
}

/// GS is the translator's own: the operand's address is worked out with the base that the program
/// believes in.
fn copy_with_own_gs(
    decoded: &Decoded,
    slots: &Slots,
    registers: &mut Registers,
    code: &mut Assembler,
) -> Result<(), Refusal> {
    if matches!(decoded.instruction.mnemonic(), Mnemonic::Rdgsbase | Mnemonic::Wrgsbase) {
        return copy_base_access(&decoded.instruction, slots, code);
    }
    if !decoded.instruction.op_kinds().any(|kind| kind == OpKind::Memory)
        || decoded.instruction.memory_index().is_vector_register()
    {
        return Err(Refusal::GsOperand);
    }
    let [address, base] = unused(decoded, registers)?;
    let mut before = Assembler::new(code.here());
    before.store_gs(slots.first, address);
    before.store_gs(slots.second, base);
    effective_address(&decoded.instruction, address, &mut before)?;
    before.load_gs(base, slots.own_gs);
    before.add_register(address, base);
    before.load_gs(base, slots.second);
    encode(&with_base(decoded, address), &mut before)?;
    before.load_gs(address, slots.first);
    code.put(before.bytes());
    Ok(())
}

fn copy_base_access(instruction: &Instruction, slots: &Slots, code: &mut Assembler) -> Result<(), Refusal> {
    let register = Register::holding(instruction.op0_register()).ok_or(Refusal::GsOperand)?;
    match instruction.code() {
        Code::Rdgsbase_r64 => code.load_gs(register, slots.own_gs),
        Code::Wrgsbase_r64 => code.store_gs(slots.own_gs, register),
        _ => return Err(Refusal::GsOperand),
    }
    Ok(())
}

/// Writes code that loads the target of an indirect jump or call, whose bytes are given, into rcx. rcx was saved
/// already; `r11` and the other registers are the program's.
///
/// # Errors
/// The operand cannot be rewritten; nothing was added.
pub fn load_target(
    decoded: &Decoded,
    bytes: &[u8],
    slots: &Slots,
    code: &mut Assembler,
) -> Result<(), Refusal> {
    let instruction = &decoded.instruction;
    if instruction.op0_kind() == OpKind::Register {
        let register = Register::holding(instruction.op0_register()).ok_or(Refusal::ShortTransfer)?;
        code.copy(Register::RCX, register);
        return Ok(());
    }
    if !decoded.uses_gs() {
        return load_memory(decoded, bytes, code);
    }
    let mut load = Assembler::new(code.here());
    effective_address(instruction, Register::RCX, &mut load)?;
    load.store_gs(slots.r11, Register::R11);
    load.load_gs(Register::R11, slots.own_gs);
    load.add_register(Register::RCX, Register::R11);
    load.load_gs(Register::R11, slots.r11);
    load.put(&[0x48, 0x8b, 0x09]);
    code.put(load.bytes());
    Ok(())
}

/// `mov rcx, operand`. Its ModRM byte and the bytes behind it are those of the jump or call, except for the register
/// (Intel SDM volume 2, 2.1.5). The library's encoder is not used because it takes long to set up.
fn load_memory(decoded: &Decoded, bytes: &[u8], code: &mut Assembler) -> Result<(), Refusal> {
    let bytes = bytes.get(..decoded.len()).ok_or(Refusal::Invalid)?;
    let opcode = bytes.iter().position(|&byte| byte == 0xff).ok_or(Refusal::Invalid)?;
    let (prefixes, operand) = (&bytes[..opcode], &bytes[opcode + 1..]);
    let (&modrm, rest) = operand.split_first().ok_or(Refusal::Invalid)?;
    let modrm = modrm & 0xc7 | Register::RCX.low() << 3;
    // Only the last byte before the opcode can be a REX prefix that counts.
    let extension = prefixes.last().copied().filter(|byte| byte & 0xf0 == 0x40).unwrap_or(0x40) & 0x43;
    let mut load = Assembler::new(code.here());
    // Of the others, those that say something of the address: its size, and a segment.
    prefixes.iter().filter(|byte| matches!(byte, 0x64 | 0x67)).for_each(|&byte| load.put(&[byte]));
    load.put(&[0x48 | extension, 0x8b, modrm]);
    match decoded.relative_operand() {
        None => load.put(rest),
        Some(operand) => match relative_to(load.here(), operand) {
            Some(displacement) => load.put(&displacement.to_le_bytes()),
            None => {
                load.restart(code.here());
                load.set(Register::RCX, operand);
                load.put(&[0x48, 0x8b, 0x09]);
            }
        },
    }
    code.put(load.bytes());
    Ok(())
}

/// `lea register, operand`, without its segment.
fn effective_address(
    instruction: &Instruction,
    register: Register,
    code: &mut Assembler,
) -> Result<(), Refusal> {
    if instruction.is_ip_rel_memory_operand() {
        code.set(register, instruction.ip_rel_memory_address());
        return Ok(());
    }
    let lea = Instruction::with2(Code::Lea_r64_m, register.iced(), operand_of(instruction));
    encode(&lea.map_err(|_| Refusal::Invalid)?, code)
}

/// Its operand in memory, without its segment.
fn operand_of(instruction: &Instruction) -> MemoryOperand {
    MemoryOperand::new(
        instruction.memory_base(),
        instruction.memory_index(),
        instruction.memory_index_scale(),
        instruction.memory_displacement64() as i64,
        instruction.memory_displ_size(),
        false,
        iced_x86::Register::None,
    )
}

/// The instruction with the bare register as address.
fn with_base(decoded: &Decoded, base: Register) -> Instruction {
    let mut changed = decoded.instruction;
    changed.set_segment_prefix(iced_x86::Register::None);
    changed.set_memory_base(base.iced());
    changed.set_memory_index(iced_x86::Register::None);
    changed.set_memory_displacement64(0);
    changed.set_memory_displ_size(0);
    changed
}

/// Two registers that the instruction has nothing to do with.
fn unused(decoded: &Decoded, registers: &mut Registers) -> Result<[Register; 2], Refusal> {
    let used = registers.used(decoded).with(Register::RSP);
    // Those with high bytes come last: `ah` cannot stand beside a register above rdi.
    let mut free =
        [3, 6, 7, 5, 0, 1, 2].map(Register::new).into_iter().filter(|&register| !used.has(register));
    match (free.next(), free.next()) {
        (Some(first), Some(second)) => Ok([first, second]),
        _ => Err(Refusal::GsOperand),
    }
}

fn encode(instruction: &Instruction, code: &mut Assembler) -> Result<(), Refusal> {
    let mut encoder = Encoder::new(64);
    encoder.encode(instruction, code.here()).map_err(|_| Refusal::Invalid)?;
    code.put(&encoder.take_buffer());
    Ok(())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail by panicking")]
mod tests {
    use super::*;
    use crate::decode;
    use iced_x86::{Decoder, DecoderOptions, Formatter as _, IntelFormatter};

    const SLOTS: Slots = Slots { first: 0x10, second: 0x18, r11: 0x20, own_gs: 0x28 };

    fn listing(code: &Assembler, base: u64) -> Vec<String> {
        let mut formatter = IntelFormatter::new();
        let mut decoder = Decoder::with_ip(64, code.bytes(), base, DecoderOptions::NONE);
        let mut lines = Vec::new();
        for instruction in &mut decoder {
            let mut text = String::new();
            formatter.format(&instruction, &mut text);
            lines.push(text);
        }
        lines
    }

    fn rewritten(bytes: &[u8], from: u64, to: u64) -> Vec<String> {
        let mut block = Vec::new();
        decode(bytes, from, 1, &mut block);
        let mut code = Assembler::new(to);
        copy(&block[0], bytes, &SLOTS, &mut Registers::default(), &mut code).unwrap();
        listing(&code, to)
    }

    #[test]
    fn relative_operands_keep_their_address() {
        // cmp dword [rip+0x100], 5: an immediate follows the displacement.
        let code = [0x83, 0x3d, 0, 1, 0, 0, 5];
        assert_eq!(rewritten(&code, 0x1000, 0x5000), ["cmp dword ptr [1107h],5"]);
    }

    #[test]
    fn operands_out_of_reach_go_through_a_register() {
        // mov rbx, [rip+0x100]
        let lines = rewritten(&[0x48, 0x8b, 0x1d, 0, 1, 0, 0], 0x1000, 0x7f00_0000_0000);
        assert_eq!(lines, ["mov gs:[10h],rsi", "mov rsi,1107h", "mov rbx,[rsi]", "mov rsi,gs:[10h]"]);
        // lea rax, [rip+0x100]
        let lines = rewritten(&[0x48, 0x8d, 0x05, 0, 1, 0, 0], 0x1000, 0x7f00_0000_0000);
        assert_eq!(lines[2], "lea rax,[rbx]");
    }

    #[test]
    fn the_programs_own_gs_is_added() {
        // mov rax, gs:[rcx*4+8]
        let lines = rewritten(&[0x65, 0x48, 0x8b, 0x04, 0x8d, 8, 0, 0, 0], 0x1000, 0x5000);
        assert_eq!(
            lines,
            [
                "mov gs:[10h],rbx",
                "mov gs:[18h],rsi",
                "lea rbx,[rcx*4+8]",
                "mov rsi,gs:[28h]",
                "lea rbx,[rbx+rsi]",
                "mov rsi,gs:[18h]",
                "mov rax,[rbx]",
                "mov rbx,gs:[10h]",
            ]
        );
        // rdgsbase rdx; wrgsbase r9
        assert_eq!(rewritten(&[0xf3, 0x48, 0x0f, 0xae, 0xca], 0, 0x5000), ["mov rdx,gs:[28h]"]);
        assert_eq!(rewritten(&[0xf3, 0x49, 0x0f, 0xae, 0xd9], 0, 0x5000), ["mov gs:[28h],r9"]);
    }

    #[test]
    fn targets_are_loaded_into_rcx() {
        let load = |bytes: &[u8], to: u64| {
            let mut block = Vec::new();
            decode(bytes, 0x1000, 1, &mut block);
            let mut code = Assembler::new(to);
            load_target(&block[0], bytes, &SLOTS, &mut code).unwrap();
            listing(&code, to)
        };
        assert_eq!(load(&[0xff, 0xd2], 0x5000), ["mov rcx,rdx"]);
        assert_eq!(load(&[0x41, 0xff, 0x54, 0xdc, 8], 0x5000), ["mov rcx,[r12+rbx*8+8]"]);
        assert_eq!(load(&[0xff, 0x25, 0, 1, 0, 0], 0x5000), ["mov rcx,[1106h]"]);
        assert_eq!(load(&[0xff, 0x25, 0, 1, 0, 0], 0x7f00_0000_0000), ["mov rcx,1106h", "mov rcx,[rcx]"]);
        assert_eq!(load(&[0x64, 0xff, 0x10], 0x5000), ["mov rcx,fs:[rax]"]);
        assert_eq!(load(&[0xff, 0x54, 0x24, 8], 0x5000), ["mov rcx,[rsp+8]"]);
        // With prefixes that say nothing of the address (notrack, bnd, a REX that is not the last), and one that does.
        assert_eq!(load(&[0x3e, 0xff, 0x24, 0xc5, 8, 0, 0, 0], 0x5000), ["mov rcx,[rax*8+8]"]);
        assert_eq!(load(&[0xf2, 0xff, 0x25, 0, 1, 0, 0], 0x5000), ["mov rcx,[1107h]"]);
        assert_eq!(load(&[0x49, 0x3e, 0xff, 0x20], 0x5000), ["mov rcx,[rax]"]);
        assert_eq!(load(&[0x67, 0x43, 0xff, 0x24, 0xfe], 0x5000), ["mov rcx,[r14d+r15d*8]"]);
    }
}
