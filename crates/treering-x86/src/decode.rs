//! Instructions and where control goes after them.

use iced_x86::{
    Code, ConditionCode, Decoder, DecoderError, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind,
};

use crate::interpret;

/// The most bytes that an instruction may have (Intel SDM volume 2, 2.3.11).
pub const LONGEST_INSTRUCTION: usize = 15;

/// One decoded instruction.
#[derive(Debug, Clone, Copy)]
pub struct Decoded {
    pub(crate) instruction: Instruction,
    /// Where the displacement stands in the bytes, if the operand is relative to the instruction.
    displacement_at: u8,
    flow: Flow,
}

/// Where control goes after an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// To the next instruction.
    Next,
    /// Into the kernel by `syscall`, and then to the next instruction.
    System,
    /// Into a signal, and then to the next instruction: `int3`, `int`, `into`.
    Trap,
    /// To the address.
    Jump(u64),
    /// To the address, where it must look as if a transaction had been aborted: `xbegin`.
    Abort(u64),
    /// To the target or to the next instruction.
    Branch {
        /// The condition's four bits, as in the opcode.
        condition: u8,
        /// Where it goes if the condition holds.
        target: u64,
    },
    /// `jrcxz` and `loop`: to the target or to the next instruction, within 127 bytes.
    CountedBranch(u64),
    /// To the function at the address.
    Call(u64),
    /// To an address out of a register or memory.
    IndirectJump,
    /// To a function whose address is in a register or memory.
    IndirectCall,
    /// To the address on the stack; this many bytes of arguments are removed as well.
    Return(u16),
    /// Nowhere: the instruction always faults, such as `ud2`.
    Stop,
    /// It cannot be run at another address.
    Refused(Refusal),
}

/// Why an instruction cannot be run from a code cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// Loads the code segment: far jumps, calls and returns, `iret`, `sysenter`.
    FarTransfer,
    /// A near transfer of 16 bits.
    ShortTransfer,
    /// Loads the selector of GS, which loses the base.
    GsSelector,
    /// Addresses memory through GS in a way that cannot be rewritten.
    GsOperand,
    /// No instruction of 64-bit mode.
    Invalid,
    /// One that should have faulted, as calls of a hypervisor do.
    NoFault,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::FarTransfer => "a far transfer (code of another mode, such as 32-bit code)",
            Self::ShortTransfer => "a transfer to a 16-bit address",
            Self::GsSelector => "a load of the segment register gs",
            Self::GsOperand => "an unusual operand in the segment gs",
            Self::Invalid => "bytes that are no instruction",
            Self::NoFault => "an instruction that should fault and did not, such as a call of a hypervisor",
        })
    }
}

impl std::error::Error for Refusal {}

impl Decoded {
    fn new(instruction: Instruction, decoder: &Decoder<'_>) -> Self {
        let relative = instruction.is_ip_rel_memory_operand();
        let displacement_at =
            if relative { decoder.get_constant_offsets(&instruction).displacement_offset() as u8 } else { 0 };
        Self { instruction, displacement_at, flow: flow(&instruction) }
    }

    /// Its address.
    pub fn address(&self) -> u64 {
        self.instruction.ip()
    }

    /// The address of the instruction after it.
    pub fn next(&self) -> u64 {
        self.instruction.next_ip()
    }

    /// Its number of bytes, 1 to 15.
    #[expect(clippy::len_without_is_empty, reason = "there is no empty instruction")]
    pub fn len(&self) -> usize {
        self.instruction.len()
    }

    /// Where control goes.
    pub fn flow(&self) -> Flow {
        self.flow
    }

    /// Whether it is the last one of a block.
    pub fn ends_block(&self) -> bool {
        self.flow != Flow::Next
    }

    /// The address of a memory operand that is relative to the instruction.
    pub fn relative_operand(&self) -> Option<u64> {
        (self.displacement_at != 0).then(|| self.instruction.ip_rel_memory_address())
    }

    /// Where the relative operand's displacement stands in the bytes.
    pub(crate) fn displacement_at(&self) -> usize {
        usize::from(self.displacement_at)
    }

    /// Whether it uses the segment GS, which the translator takes for itself.
    pub fn uses_gs(&self) -> bool {
        let instruction = &self.instruction;
        instruction.segment_prefix() == iced_x86::Register::GS && instruction.op_kinds().any(is_memory)
            || matches!(instruction.mnemonic(), Mnemonic::Rdgsbase | Mnemonic::Wrgsbase)
    }

    /// Whether it gives the stack pointer a value from memory or another register, as code does that goes on on another
    /// stack. The end of a frame (`mov rsp, rbp`, `leave`) does not count.
    pub fn moves_stack(&self) -> bool {
        interpret::moves_stack(&self.instruction)
    }

    /// Whether it asks the kernel through the 32-bit entry, `int 0x80`.
    pub fn is_old_system_call(&self) -> bool {
        self.instruction.code() == Code::Int_imm8 && self.instruction.immediate8() == 0x80
    }
}

fn is_memory(kind: OpKind) -> bool {
    !matches!(
        kind,
        OpKind::Register
            | OpKind::NearBranch16
            | OpKind::NearBranch32
            | OpKind::NearBranch64
            | OpKind::FarBranch16
            | OpKind::FarBranch32
            | OpKind::Immediate8
            | OpKind::Immediate8_2nd
            | OpKind::Immediate16
            | OpKind::Immediate32
            | OpKind::Immediate64
            | OpKind::Immediate8to16
            | OpKind::Immediate8to32
            | OpKind::Immediate8to64
            | OpKind::Immediate32to64
    )
}

/// Decodes `bytes`, which are at `address`, up to the end of the block, at most `most` instructions; adds them to
/// `block`.
///
/// It stops before bytes that are no instruction, and before an incomplete one, so it may add nothing.
pub fn decode(bytes: &[u8], address: u64, most: usize, block: &mut Vec<Decoded>) {
    let end = block.len() + most;
    decode_while(bytes, address, |decoded| {
        block.push(*decoded);
        block.len() < end
    });
}

/// Decodes as [`decode`] does and shows each instruction to `wants_more`, up to the end of the block
/// or until it says no.
pub fn decode_while(bytes: &[u8], address: u64, mut wants_more: impl FnMut(&Decoded) -> bool) {
    let mut decoder = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE);
    while decoder.can_decode() {
        let instruction = decoder.decode();
        if instruction.is_invalid() {
            return;
        }
        let decoded = Decoded::new(instruction, &decoder);
        if !wants_more(&decoded) || decoded.ends_block() {
            return;
        }
    }
}

/// Whether the bytes are the beginning of an instruction that continues behind them.
pub fn is_cut_short(bytes: &[u8]) -> bool {
    let mut decoder = Decoder::new(64, bytes, DecoderOptions::NONE);
    decoder.decode().is_invalid() && decoder.last_error() == DecoderError::NoMoreBytes
}

fn flow(instruction: &Instruction) -> Flow {
    match instruction.flow_control() {
        FlowControl::Next => next_flow(instruction),
        FlowControl::UnconditionalBranch => jump_flow(instruction),
        FlowControl::ConditionalBranch => branch_flow(instruction),
        FlowControl::Call => call_flow(instruction),
        FlowControl::IndirectBranch => match instruction.code() {
            Code::Jmp_rm64 => Flow::IndirectJump,
            Code::Jmp_rm16 | Code::Jmp_rm32 => Flow::Refused(Refusal::ShortTransfer),
            _ => Flow::Refused(Refusal::FarTransfer),
        },
        FlowControl::IndirectCall => match instruction.code() {
            Code::Call_rm64 => Flow::IndirectCall,
            Code::Call_rm16 | Code::Call_rm32 => Flow::Refused(Refusal::ShortTransfer),
            _ => Flow::Refused(Refusal::FarTransfer),
        },
        FlowControl::Return => match instruction.code() {
            Code::Retnq => Flow::Return(0),
            Code::Retnq_imm16 => Flow::Return(instruction.immediate16()),
            Code::Retnw | Code::Retnw_imm16 => Flow::Refused(Refusal::ShortTransfer),
            _ => Flow::Refused(Refusal::FarTransfer),
        },
        FlowControl::Interrupt => Flow::Trap,
        FlowControl::XbeginXabortXend => match instruction.mnemonic() {
            Mnemonic::Xbegin => Flow::Abort(instruction.near_branch_target()),
            // Outside of a transaction, and there is none here, it does nothing.
            Mnemonic::Xabort => Flow::Next,
            _ => Flow::Stop,
        },
        FlowControl::Exception => Flow::Stop,
    }
}

fn next_flow(instruction: &Instruction) -> Flow {
    match instruction.mnemonic() {
        Mnemonic::Hlt => Flow::Stop,
        Mnemonic::Swapgs | Mnemonic::Lgs => Flow::Refused(Refusal::GsSelector),
        Mnemonic::Mov | Mnemonic::Pop if instruction.op0_register() == iced_x86::Register::GS => {
            Flow::Refused(Refusal::GsSelector)
        }
        _ => Flow::Next,
    }
}

fn jump_flow(instruction: &Instruction) -> Flow {
    match instruction.code() {
        Code::Jmp_rel8_64 | Code::Jmp_rel32_64 => Flow::Jump(instruction.near_branch_target()),
        Code::Jmp_rel8_16 | Code::Jmp_rel16 => Flow::Refused(Refusal::ShortTransfer),
        _ => Flow::Refused(Refusal::FarTransfer),
    }
}

fn branch_flow(instruction: &Instruction) -> Flow {
    if instruction.op0_kind() != OpKind::NearBranch64 {
        return Flow::Refused(Refusal::ShortTransfer);
    }
    let target = instruction.near_branch_target();
    match condition(instruction.condition_code()) {
        Some(condition) if instruction.is_jcc_short_or_near() => Flow::Branch { condition, target },
        _ => Flow::CountedBranch(target),
    }
}

fn call_flow(instruction: &Instruction) -> Flow {
    match instruction.code() {
        Code::Syscall => Flow::System,
        Code::Call_rel32_64 => Flow::Call(instruction.near_branch_target()),
        Code::Call_rel16 => Flow::Refused(Refusal::ShortTransfer),
        Code::Call_ptr1616 | Code::Call_ptr1632 | Code::Sysenter => Flow::Refused(Refusal::FarTransfer),
        // Calls of a hypervisor fault in a program.
        _ => Flow::Stop,
    }
}

fn condition(code: ConditionCode) -> Option<u8> {
    use ConditionCode as C;
    Some(match code {
        C::None => return None,
        C::o => 0,
        C::no => 1,
        C::b => 2,
        C::ae => 3,
        C::e => 4,
        C::ne => 5,
        C::be => 6,
        C::a => 7,
        C::s => 8,
        C::ns => 9,
        C::p => 10,
        C::np => 11,
        C::l => 12,
        C::ge => 13,
        C::le => 14,
        C::g => 15,
    })
}

/// The instructions of `bytes`, at address 0.
#[cfg(test)]
pub(crate) fn block(bytes: &[u8]) -> Vec<Decoded> {
    let mut block = Vec::new();
    decode(bytes, 0, 48, &mut block);
    block
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(bytes: &[u8]) -> Decoded {
        let mut block = Vec::new();
        decode(bytes, 0x40_0000, 1, &mut block);
        block[0]
    }

    #[test]
    fn flows_are_told_apart() {
        for (bytes, flow) in [
            (&[0x90][..], Flow::Next),
            (&[0x0f, 0x05], Flow::System),
            (&[0xcc], Flow::Trap),
            (&[0xcd, 0x80], Flow::Trap),
            (&[0xeb, 0x02], Flow::Jump(0x40_0004)),
            (&[0x0f, 0x85, 0, 1, 0, 0], Flow::Branch { condition: 5, target: 0x40_0106 }),
            (&[0xe3, 0x10], Flow::CountedBranch(0x40_0012)),
            (&[0xe2, 0xfe], Flow::CountedBranch(0x40_0000)),
            (&[0xe8, 0, 0, 0, 0], Flow::Call(0x40_0005)),
            (&[0xff, 0xd0], Flow::IndirectCall),
            (&[0xff, 0x25, 0, 0, 0, 0], Flow::IndirectJump),
            (&[0xc3], Flow::Return(0)),
            (&[0xf3, 0xc3], Flow::Return(0)),
            (&[0xc2, 8, 0], Flow::Return(8)),
            (&[0x0f, 0x0b], Flow::Stop),
            (&[0xf4], Flow::Stop),
            (&[0x48, 0xcb], Flow::Refused(Refusal::FarTransfer)),
            (&[0x48, 0xcf], Flow::Refused(Refusal::FarTransfer)),
            (&[0x8e, 0xe8], Flow::Refused(Refusal::GsSelector)),
            (&[0xc7, 0xf8, 0x10, 0, 0, 0], Flow::Abort(0x40_0016)),
        ] {
            assert_eq!(only(bytes).flow(), flow, "{bytes:02x?}");
        }
    }

    #[test]
    fn a_block_ends_with_the_first_transfer_and_before_what_is_cut_short() {
        let mut block = Vec::new();
        decode(&[0x90, 0x90, 0xc3, 0x90], 0, 48, &mut block);
        assert_eq!(block.len(), 3);
        block.clear();
        decode(&[0x90, 0xe8, 0, 0], 0, 48, &mut block);
        assert_eq!(block.len(), 1);
        block.clear();
        decode(&[0x06], 0, 48, &mut block);
        assert!(block.is_empty());
    }

    #[test]
    fn no_bytes_make_it_panic() {
        let mut block = Vec::new();
        let mut state = 1_u64;
        for _ in 0..200_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            block.clear();
            decode(&state.to_be_bytes(), state, 8, &mut block);
            for decoded in &block {
                assert!((1..=LONGEST_INSTRUCTION).contains(&decoded.len()));
            }
        }
    }
}
