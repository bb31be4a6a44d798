//! Encodings of the instructions that trees use: registers, memory relative to GS, and jumps.

use crate::Assembler;

pub(super) const R11: u8 = 11;
pub(super) const RAX: u8 = 0;
pub(super) const RCX: u8 = 1;
pub(super) const RDX: u8 = 2;

impl Assembler {
    /// An instruction with a register and memory at an offset to GS.
    pub(super) fn gs_operand(
        &mut self,
        wide: bool,
        opcode: &[u8],
        register: u8,
        base: Option<u8>,
        offset: u32,
    ) {
        let rex = 0x40 | u8::from(wide) << 3 | (register >> 3) << 2 | base.map_or(0, |base| base >> 3);
        self.put(&[0x65]);
        if rex != 0x40 {
            self.put(&[rex]);
        }
        self.put(opcode);
        let low = (register & 7) << 3;
        match base {
            Some(base) => self.put_offset(low | base & 7, offset),
            None => {
                self.put(&[0x04 | low, 0x25]);
                self.put(&offset.to_le_bytes());
            }
        }
    }

    /// The operand bytes for memory at an offset from a register other than the stack pointer; `registers` holds that
    /// register and the other operand.
    pub(super) fn put_offset(&mut self, registers: u8, offset: u32) {
        match i8::try_from(offset.cast_signed()) {
            Ok(short) => self.put(&[0x40 | registers, short.cast_unsigned()]),
            Err(_) => {
                self.put(&[0x80 | registers]);
                self.put(&offset.to_le_bytes());
            }
        }
    }

    pub(super) fn load_at(&mut self, register: u8, base: u8, offset: u32) {
        self.gs_operand(true, &[0x8b], register, Some(base), offset);
    }

    pub(super) fn load_half_at(&mut self, register: u8, base: u8, offset: u32) {
        self.gs_operand(false, &[0x8b], register, Some(base), offset);
    }

    pub(super) fn store_half_at(&mut self, base: u8, offset: u32, register: u8) {
        self.gs_operand(false, &[0x89], register, Some(base), offset);
    }

    /// `vmovaps gs:[slot], xmm15`
    pub fn store_count(&mut self, slot: u32) {
        self.vector_slot(&[0xc5, 0x78, 0x29], slot);
    }

    /// `vmovaps xmm15, gs:[slot]`
    pub fn load_count(&mut self, slot: u32) {
        self.vector_slot(&[0xc5, 0x78, 0x28], slot);
    }

    /// An instruction with xmm15, or the register that holds it, and a slot; `opcode` comes before the operands.
    pub(crate) fn vector_slot(&mut self, opcode: &[u8], slot: u32) {
        self.put(&[0x65]);
        self.put(opcode);
        self.put(&[0x3c, 0x25]);
        self.put(&slot.to_le_bytes());
    }

    /// `mov qword gs:[slot], 0`
    pub fn clear_slot(&mut self, slot: u32) {
        self.put(&[0x65, 0x48, 0xc7, 0x04, 0x25]);
        self.put(&slot.to_le_bytes());
        self.put(&[0; 4]);
    }

    /// `vpaddq xmm15, xmm15, [rip + ...]` of the sixteen bytes at an address within reach. Returns where the four bytes
    /// stand that lead to it.
    pub fn add_to_count(&mut self, address: u64) -> u64 {
        self.put(&[0xc5, 0x01, 0xd4, 0x3d]);
        self.put_relative(address);
        self.here() - 4
    }

    /// `vpsubq xmm15, xmm15, [rip + ...]`, the same taken away. Returns where the four bytes stand that lead to it.
    pub fn take_from_count(&mut self, address: u64) -> u64 {
        self.put(&[0xc5, 0x01, 0xfb, 0x3d]);
        self.put_relative(address);
        self.here() - 4
    }

    /// `vmovaps xmm15, [rip + ...]`
    pub(super) fn set_count(&mut self, address: u64) {
        self.put(&[0xc5, 0x78, 0x28, 0x3d]);
        self.put_relative(address);
    }

    /// `vmovaps gs:[rcx + offset], xmm15`, or with r11 in place of rcx.
    pub(super) fn store_count_at(&mut self, base: u8, offset: u32) {
        match base {
            R11 => self.put(&[0x65, 0xc4, 0x41, 0x78, 0x29]),
            _ => self.put(&[0x65, 0xc5, 0x78, 0x29]),
        }
        self.put_offset(0x38 | base & 7, offset);
    }

    pub(super) fn put_relative(&mut self, address: u64) {
        let relative = address.wrapping_sub(self.here() + 4) as u32;
        self.put(&relative.to_le_bytes());
    }

    /// Adds the count to the node at rcx: `vpaddq xmm15, xmm15, gs:[rcx]; vmovaps gs:[rcx], xmm15`.
    pub(super) fn add_count_to_node(&mut self) {
        self.put(&[0x65, 0xc5, 0x01, 0xd4]);
        self.put_offset(0x39, 0);
        self.store_count_at(RCX, 0);
    }

    /// `lea rcx, [rcx - stack pointer - ...]`: rcx becomes 0 if it is the stack pointer.
    pub(super) fn compare_with_stack(&mut self) {
        // not rcx; lea rcx, [rsp + rcx + 1]
        self.put(&[0x48, 0xf7, 0xd1, 0x48, 0x8d, 0x4c, 0x0c, 0x01]);
    }

    /// `lea ecx, [rcx - number]`
    pub(super) fn compare_with_number(&mut self, number: u32) {
        self.put(&[0x8d, 0x89]);
        self.put(&number.wrapping_neg().to_le_bytes());
    }

    /// A short jump if ecx is 0; returns the argument for [`set_distance`](Self::set_distance).
    pub(super) fn jump_if_low_zero(&mut self) -> usize {
        self.put(&[0x67, 0xe3, 0]);
        self.bytes().len()
    }

    /// `movzx ecx, r11w`
    pub(super) fn low_half_of_r11(&mut self) {
        self.put(&[0x41, 0x0f, 0xb7, 0xcb]);
    }

    pub(crate) fn jump_if_zero(&mut self) -> usize {
        self.put(&[0xe3, 0]);
        self.bytes().len()
    }

    /// A short forward jump; returns the argument for [`set_distance`](Self::set_distance).
    pub(super) fn jump_over(&mut self) -> usize {
        self.put(&[0xeb, 0]);
        self.bytes().len()
    }

    /// A forward jump; returns the argument for [`lead_here`](Self::lead_here).
    pub(crate) fn jump_ahead(&mut self) -> usize {
        self.put(&[0xe9, 0, 0, 0, 0]);
        self.bytes().len()
    }

    /// Makes a jump that was written before lead to here.
    pub(crate) fn lead_here(&mut self, jump: usize) {
        let here = self.here();
        let site = here - (self.bytes().len() - jump) as u64 - 4;
        self.patch(site, here);
    }
}
