//! The little that must be known of instructions.

use iced_x86::{Decoder, DecoderOptions, FlowControl, Mnemonic};
use treering_profile::BranchKind;

/// The kind of an instruction, as far as stepping and counting go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Instruction {
    /// How many bytes it has; 1 where they are no instruction.
    pub(super) length: u8,
    /// Whether it stops before each of its own repetitions (`rep movsb`).
    pub(super) repeats: bool,
    /// Whether it is `syscall`.
    pub(super) is_system_call: bool,
    /// Whether it raises SIGTRAP itself.
    pub(super) traps: bool,
    /// How it leads elsewhere, if it can.
    pub(super) branch: Option<BranchKind>,
}

impl Instruction {
    pub(super) fn decode(bytes: &[u8], at: u64) -> Self {
        let mut decoder = Decoder::with_ip(64, bytes, at, DecoderOptions::NONE);
        let decoded = decoder.decode();
        let is_system_call = decoded.mnemonic() == Mnemonic::Syscall;
        let branch = match decoded.flow_control() {
            FlowControl::ConditionalBranch => Some(BranchKind::Conditional),
            FlowControl::UnconditionalBranch => Some(BranchKind::Jump),
            FlowControl::IndirectBranch => Some(BranchKind::IndirectJump),
            FlowControl::Call if !is_system_call => Some(BranchKind::Call),
            FlowControl::IndirectCall => Some(BranchKind::IndirectCall),
            FlowControl::Return => Some(BranchKind::Return),
            _ => None,
        };
        let repeated = decoded.has_rep_prefix() || decoded.has_repne_prefix();
        Self {
            length: decoded.len().max(1) as u8,
            repeats: repeated && decoded.is_string_instruction(),
            is_system_call,
            traps: matches!(decoded.mnemonic(), Mnemonic::Int3 | Mnemonic::Int1 | Mnemonic::Int),
            branch,
        }
    }
}
