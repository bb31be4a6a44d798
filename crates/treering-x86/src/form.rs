//! The form of a function's code: what is left when everything is taken away that depends on where it lies.
//!
//! Two functions of two binaries have equal forms exactly when their instructions are equal, except for these: jumps
//! within the function go to an instruction, and not by a distance; where calls and jumps out of it go is told apart from
//! the form; addresses of data are left out; so are the instructions that only fill room (`nop`), and the length of a jump.

use std::ops::Range;

use iced_x86::{ConstantOffsets, Decoder, DecoderOptions, Instruction, Mnemonic, OpKind};

/// The code of a function without what depends on where it lies.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Form {
    /// Its instructions.
    pub instructions: Vec<u8>,
    /// Where its calls and its jumps to other functions go, in their order.
    pub targets: Vec<u64>,
    /// The addresses of data that it uses.
    pub data: Vec<u64>,
}

/// The kinds of parts of a form.
const INSTRUCTION: u8 = 1;
const INNER_JUMP: u8 = 2;
const OUTER_JUMP: u8 = 3;
const UNKNOWN_BYTES: u8 = 4;

/// The form of the code of one function, which begins at `address`. `fixed`: the addresses of a binary that lies at a fixed
/// place, whose numbers among them are taken for addresses; empty for one that may lie anywhere.
pub fn form(code: &[u8], address: u64, fixed: &Range<u64>) -> Form {
    let instructions = instructions(code, address);
    let starts: Vec<u64> = instructions.iter().map(|(instruction, _)| instruction.ip()).collect();
    let inside = address..address.saturating_add(code.len() as u64);
    let mut form = Form::default();
    for (instruction, offsets) in &instructions {
        let at = instruction.ip().wrapping_sub(address) as usize;
        let bytes = &code[at..at + instruction.len()];
        let made = &mut form.instructions;
        match jump_target(instruction) {
            _ if instruction.is_invalid() => {
                made.push(UNKNOWN_BYTES);
                made.extend_from_slice(bytes);
            }
            Some(target) => {
                let is_inner = inside.contains(&target) && !instruction.is_call_near();
                made.push(if is_inner { INNER_JUMP } else { OUTER_JUMP });
                made.extend((instruction.mnemonic() as u16).to_le_bytes());
                if is_inner {
                    // A jump to filled room goes to the instruction behind it.
                    let index = starts.partition_point(|&start| start < target);
                    made.extend((index as u32).to_le_bytes());
                } else {
                    form.targets.push(target);
                }
            }
            None => {
                made.push(INSTRUCTION);
                made.push(bytes.len() as u8);
                let from = made.len();
                made.extend_from_slice(bytes);
                let bytes = &mut made[from..];
                leave_addresses_out(instruction, offsets, fixed, bytes, &mut form.data);
            }
        }
    }
    form
}

/// The instructions of a function without those that only fill room.
fn instructions(code: &[u8], address: u64) -> Vec<(Instruction, ConstantOffsets)> {
    let mut decoder = Decoder::with_ip(64, code, address, DecoderOptions::NONE);
    let mut all = Vec::new();
    while decoder.can_decode() {
        let instruction = decoder.decode();
        if instruction.mnemonic() != Mnemonic::Nop {
            all.push((instruction, decoder.get_constant_offsets(&instruction)));
        }
    }
    while all.last().is_some_and(|(last, _)| last.mnemonic() == Mnemonic::Int3) {
        all.pop();
    }
    all
}

fn jump_target(instruction: &Instruction) -> Option<u64> {
    (instruction.op0_kind() == OpKind::NearBranch64).then(|| instruction.near_branch_target())
}

/// Overwrites addresses of data by zeros.
fn leave_addresses_out(
    instruction: &Instruction,
    offsets: &ConstantOffsets,
    fixed: &Range<u64>,
    bytes: &mut [u8],
    data: &mut Vec<u64>,
) {
    let is_address = |value: u64| fixed.contains(&value);
    let is_relative = instruction.is_ip_rel_memory_operand();
    // Of a relative operand, this is the address as well.
    let displacement = instruction.memory_displacement64();
    if offsets.has_displacement() && (is_relative || is_address(displacement)) {
        data.push(displacement);
        zero(bytes, offsets.displacement_offset(), offsets.displacement_size());
    }
    let operands = 0..instruction.op_count();
    let immediate = operands.filter_map(|operand| instruction.try_immediate(operand).ok()).next();
    let immediate = immediate.filter(|&value| offsets.immediate_size() >= 4 && is_address(value));
    if let Some(address) = immediate.filter(|_| offsets.has_immediate()) {
        data.push(address);
        zero(bytes, offsets.immediate_offset(), offsets.immediate_size());
    }
}

fn zero(bytes: &mut [u8], at: usize, length: usize) {
    if let Some(part) = bytes.get_mut(at..at + length) {
        part.fill(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form_at(code: &[u8], address: u64) -> Form {
        form(code, address, &(0..0))
    }

    /// `test edi, edi; je +5 (over the call); call callee; ret`, with the call's distance for an address.
    fn calls(address: u64, target: u64) -> Vec<u8> {
        let mut code = vec![0x85, 0xff, 0x74, 0x05, 0xe8];
        code.extend((target.wrapping_sub(address + 9) as u32).to_le_bytes());
        code.push(0xc3);
        code
    }

    #[test]
    fn the_same_code_elsewhere_has_the_same_form() {
        assert_eq!(form_at(&calls(0x1000, 0x9000), 0x1000), form_at(&calls(0x4321, 0x9000), 0x4321));
        assert_eq!(form_at(&calls(0x1000, 0x9000), 0x1000).targets, [0x9000]);
    }

    #[test]
    fn room_and_the_length_of_jumps_do_not_matter() {
        // jne to the ret by 8 bits, and by 32 bits over a nop and with int3 behind.
        let short = [0x75, 0x02, 0x31, 0xc0, 0xc3];
        let long = [0x0f, 0x85, 0x06, 0, 0, 0, 0x31, 0xc0, 0x0f, 0x1f, 0x40, 0x00, 0xc3, 0xcc, 0xcc];
        assert_eq!(form_at(&short, 0x1000), form_at(&long, 0x1000));
        // The other condition, another target, another operand.
        let others: [&[u8]; 3] = [
            &[0x74, 0x02, 0x31, 0xc0, 0xc3],
            &[0x75, 0x00, 0x31, 0xc0, 0xc3],
            &[0x75, 0x02, 0x31, 0xc9, 0xc3],
        ];
        others
            .iter()
            .for_each(|code| assert_ne!(form_at(code, 0x1000), form_at(&short, 0x1000), "{code:x?}"));
    }

    #[test]
    fn any_bytes_at_any_address_have_a_form() {
        let bytes: Vec<u8> = (0..400_u32).map(|at| (at * 167 + at / 7) as u8).collect();
        for address in [0, 0x1000, u64::MAX - 20, u64::MAX] {
            for length in 0..bytes.len() {
                let _ = form_at(&bytes[..length], address);
            }
        }
    }

    #[test]
    fn addresses_of_data_are_left_out_and_constants_are_not() {
        // mov eax, [rip+8]; mov eax, [rip+16]: other places of data.
        let [first, second] = [8, 16].map(|place| form_at(&[0x8b, 0x05, place, 0, 0, 0], 0));
        assert_eq!(first.instructions, second.instructions);
        assert_eq!((first.data, second.data), (vec![14], vec![22]));
        // mov eax, [rdi+8]; mov eax, [rdi+16]: other fields. mov eax, 5; mov eax, 6.
        assert_ne!(form_at(&[0x8b, 0x47, 8], 0), form_at(&[0x8b, 0x47, 16], 0));
        assert_ne!(form_at(&[0xb8, 5, 0, 0, 0], 0), form_at(&[0xb8, 6, 0, 0, 0], 0));
        // mov edi, 0x402010; mov edi, 0x402020, in a program at a fixed place, and in one that is not.
        let strings = [[0xbf, 0x10, 0x20, 0x40, 0], [0xbf, 0x20, 0x20, 0x40, 0]];
        let forms = |fixed: Range<u64>| strings.map(|code| form(&code, 0, &fixed));
        let [first, second] = forms(0x40_0000..0x50_0000);
        assert_eq!(first.instructions, second.instructions);
        assert_eq!((first.data, second.data), (vec![0x40_2010], vec![0x40_2020]));
        let [first, second] = forms(0..0);
        assert_ne!(first, second);
    }
}
