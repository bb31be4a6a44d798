//! Instructions as a reader of listings wants them: their length, where they lead, their text.
//!
//! For looking at code that was executed, not for translating it. Instructions are those of
//! 64-bit mode, in the syntax of Intel's manual.

use iced_x86::{Decoder, DecoderOptions, FlowControl, Formatter as _, Instruction, IntelFormatter, Mnemonic};

/// Where an instruction leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// To the next instruction: all that are not branches, system calls included.
    Next,
    /// To this address, or on to the next instruction.
    Conditional(u64),
    /// To this address.
    Jump(u64),
    /// To an address in a register or in memory.
    IndirectJump,
    /// Into the function at this address, to come back to the next instruction.
    Call(u64),
    /// Into a function whose address is in a register or in memory.
    IndirectCall,
    /// Back to a caller.
    Return,
    /// Elsewhere: software interrupts, transactions, and instructions that stop the processor.
    Other,
}

/// An instruction's length and where it leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outline {
    /// How many bytes it has, 1 to 15.
    pub length: u8,
    /// Where it leads.
    pub flow: Flow,
}

/// The instruction at the start of `bytes`, which lies at `address`; nothing where there is none,
/// or not all of it.
///
/// ```
/// use treering_x86::disassembly::{Flow, Outline, outline};
///
/// // je 0x1007
/// let found = outline(&[0x74, 0x05, 0x90], 0x1000);
/// assert_eq!(found, Some(Outline { length: 2, flow: Flow::Conditional(0x1007) }));
/// assert_eq!(outline(&[0xe8, 0, 0], 0x1000), None);
/// ```
pub fn outline(bytes: &[u8], address: u64) -> Option<Outline> {
    Outlines::new(bytes, address).next()
}

/// The instructions that follow each other in some bytes, up to what is none or not all of one.
///
/// ```
/// use treering_x86::disassembly::Outlines;
///
/// // nop; xor eax, eax; and half a call
/// let outlines = Outlines::new(&[0x90, 0x31, 0xc0, 0xe8, 0], 0);
/// let lengths: Vec<u8> = outlines.map(|found| found.length).collect();
/// assert_eq!(lengths, [1, 2]);
/// ```
pub struct Outlines<'a> {
    decoder: Decoder<'a>,
    instruction: Instruction,
}

impl std::fmt::Debug for Outlines<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let position = self.decoder.position();
        f.debug_struct("Outlines").field("position", &position).finish_non_exhaustive()
    }
}

impl<'a> Outlines<'a> {
    /// The instructions of `bytes`, which lie at `address`.
    pub fn new(bytes: &'a [u8], address: u64) -> Self {
        let decoder = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE);
        Self { decoder, instruction: Instruction::default() }
    }
}

impl Iterator for Outlines<'_> {
    type Item = Outline;

    fn next(&mut self) -> Option<Outline> {
        self.decoder.decode_out(&mut self.instruction);
        outline_of(&self.instruction)
    }
}

fn outline_of(instruction: &Instruction) -> Option<Outline> {
    let length = instruction.len() as u8;
    (!instruction.is_invalid()).then(|| Outline { length, flow: flow_of(instruction) })
}

/// Where an instruction leads that is one.
pub(crate) fn flow_of(instruction: &Instruction) -> Flow {
    let target = instruction.near_branch_target();
    match instruction.flow_control() {
        FlowControl::Next => Flow::Next,
        FlowControl::Call if instruction.mnemonic() == Mnemonic::Syscall => Flow::Next,
        FlowControl::ConditionalBranch => Flow::Conditional(target),
        FlowControl::UnconditionalBranch if target != 0 => Flow::Jump(target),
        FlowControl::Call if target != 0 => Flow::Call(target),
        FlowControl::IndirectBranch => Flow::IndirectJump,
        FlowControl::IndirectCall => Flow::IndirectCall,
        FlowControl::Return => Flow::Return,
        _ => Flow::Other,
    }
}

/// The text of the instruction at the start of `bytes`, which lies at `address`; nothing where
/// there is none. Addresses of branches and of data are shown in full, in hexadecimal.
///
/// ```
/// use treering_x86::disassembly::text;
///
/// assert_eq!(text(&[0x48, 0x8b, 0x05, 0, 1, 0, 0], 0x1000).as_deref(), Some("mov rax, [0x1107]"));
/// assert_eq!(text(&[0xf0, 0x48, 0xff, 0x02], 0x1000).as_deref(), Some("lock inc qword ptr [rdx]"));
/// assert_eq!(text(&[0x06], 0), None);
/// ```
pub fn text(bytes: &[u8], address: u64) -> Option<String> {
    let instruction = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE).decode();
    if instruction.is_invalid() {
        return None;
    }
    let mut formatter = IntelFormatter::new();
    let options = formatter.options_mut();
    options.set_hex_prefix("0x");
    options.set_hex_suffix("");
    options.set_uppercase_hex(false);
    options.set_space_after_operand_separator(true);
    options.set_small_hex_numbers_in_decimal(true);
    options.set_branch_leading_zeros(false);
    options.set_show_branch_size(false);
    options.set_rip_relative_addresses(false);
    let mut text = String::new();
    formatter.format(&instruction, &mut text);
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(bytes: &[u8]) -> Option<(u8, Flow)> {
        outline(bytes, 0x1000).map(|found| (found.length, found.flow))
    }

    #[test]
    fn branches_lead_where_they_say() {
        assert_eq!(flow(&[0xe8, 1, 0, 0, 0]), Some((5, Flow::Call(0x1006))));
        assert_eq!(flow(&[0xeb, 0xfe]), Some((2, Flow::Jump(0x1000))));
        assert_eq!(flow(&[0xff, 0xd0]), Some((2, Flow::IndirectCall)));
        assert_eq!(flow(&[0xff, 0x25, 0, 0, 0, 0]), Some((6, Flow::IndirectJump)));
        assert_eq!(flow(&[0xc3]), Some((1, Flow::Return)));
        assert_eq!(flow(&[0xf3, 0xc3]), Some((2, Flow::Return)));
        assert_eq!(flow(&[0xe3, 0x10]), Some((2, Flow::Conditional(0x1012))));
        assert_eq!(flow(&[0xe2, 0xfe]), Some((2, Flow::Conditional(0x1000))));
        assert_eq!(flow(&[0x0f, 0x05]), Some((2, Flow::Next)));
        assert_eq!(flow(&[0xcc]), Some((1, Flow::Other)));
        assert_eq!(flow(&[0x90]), Some((1, Flow::Next)));
    }

    #[test]
    fn all_bytes_have_a_disassembly() {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        for _ in 0..20_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let bytes = [state.to_le_bytes(), state.rotate_left(23).to_le_bytes()].concat();
            for length in 0..=bytes.len() {
                let found = outline(&bytes[..length], state);
                assert_eq!(found.is_some(), text(&bytes[..length], state).is_some());
                assert!(found.is_none_or(|found| usize::from(found.length) <= length.min(15)));
            }
        }
    }
}
