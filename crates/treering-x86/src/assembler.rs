//! The few instructions that a translator adds to a program's own.
//!
//! None of them changes a flag but [`Assembler::inc_gs`]. Encodings after the Intel SDM, volume 2.

use crate::Register;

/// Machine code for a known address, as it grows.
#[derive(Debug)]
pub struct Assembler {
    base: u64,
    bytes: Vec<u8>,
}

/// The size of a cache line in bytes. Bytes of one line that are stored at once are fetched at once.
pub const LINE: u64 = 64;

impl Assembler {
    /// Code that will stand at `base`.
    pub fn new(base: u64) -> Self {
        // As long as a small piece is.
        Self { base, bytes: Vec::with_capacity(LINE as usize) }
    }

    /// Discards the code and begins again at another address.
    pub fn restart(&mut self, base: u64) {
        self.base = base;
        self.bytes.clear();
    }

    /// The address of the next byte.
    pub fn here(&self) -> u64 {
        self.base + self.bytes.len() as u64
    }

    /// The code that was written so far.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Adds bytes as they are.
    pub fn put(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    fn put_u32(&mut self, value: u32) {
        self.put(&value.to_le_bytes());
    }

    /// `mov register, gs:[slot]`
    pub fn load_gs(&mut self, register: Register, slot: u32) {
        self.gs(0x8b, register, slot);
    }

    /// `mov gs:[slot], register`
    pub fn store_gs(&mut self, slot: u32, register: Register) {
        self.gs(0x89, register, slot);
    }

    fn gs(&mut self, opcode: u8, register: Register, slot: u32) {
        self.put(&[0x65, 0x48 | register.high() << 2, opcode, 0x04 | register.low() << 3, 0x25]);
        self.put_u32(slot);
    }

    /// `mov dword gs:[slot], value`
    pub fn store_gs_value(&mut self, slot: u32, value: u32) {
        self.put(&[0x65, 0xc7, 0x04, 0x25]);
        self.put_u32(slot);
        self.put_u32(value);
    }

    /// `movzx ecx, byte gs:[slot]`
    pub fn load_gs_byte_into_rcx(&mut self, slot: u32) {
        self.put(&[0x65, 0x0f, 0xb6, 0x0c, 0x25]);
        self.put_u32(slot);
    }

    /// `mov gs:[rcx*8 + slot], register`
    pub fn store_gs_at_rcx(&mut self, slot: u32, register: Register) {
        self.put(&[0x65, 0x48 | register.high() << 2, 0x89, 0x04 | register.low() << 3, 0xcd]);
        self.put_u32(slot);
    }

    /// `mov dword gs:[rcx*8 + slot], value`
    pub fn store_gs_value_at_rcx(&mut self, slot: u32, value: u32) {
        self.put(&[0x65, 0xc7, 0x04, 0xcd]);
        self.put_u32(slot);
        self.put_u32(value);
    }

    /// `inc qword gs:[slot]`, which changes all flags but the carry.
    pub fn inc_gs(&mut self, slot: u32) {
        self.put(&[0x65, 0x48, 0xff, 0x04, 0x25]);
        self.put_u32(slot);
    }

    /// Adds one to `gs:[slot]` by way of a register whose value is lost, and changes no flag.
    pub fn count_by(&mut self, register: Register, slot: u32) {
        self.load_gs(register, slot);
        self.add(register, 1);
        self.store_gs(slot, register);
    }

    /// `lea register, [register + value]`
    pub fn add(&mut self, register: Register, value: i32) {
        let short = i8::try_from(value).is_ok();
        let form = if short { 0x40 } else { 0x80 };
        self.put(&[0x48 | register.high() << 2 | register.high(), 0x8d]);
        self.put(&[form | register.low() << 3 | register.low()]);
        if register.low() == 4 {
            self.put(&[0x24]);
        }
        if short { self.put(&[value as u8]) } else { self.put(&value.to_le_bytes()) }
    }

    /// `lea register, [register + other]`
    pub fn add_register(&mut self, register: Register, other: Register) {
        // As base, rbp and r13 would need a displacement: a displacement of 0 is always right.
        let rex = 0x48 | register.high() << 2 | other.high() << 1 | register.high();
        self.put(&[rex, 0x8d, 0x44 | register.low() << 3, other.low() << 3 | register.low(), 0]);
    }

    /// `mov register, value` with all 64 bits.
    pub fn set(&mut self, register: Register, value: u64) {
        self.put(&[0x48 | register.high(), 0xb8 | register.low()]);
        self.put(&value.to_le_bytes());
    }

    /// `mov register, value` with 32 bits, the upper half becoming 0.
    pub fn set_low(&mut self, register: Register, value: u32) {
        if register.high() != 0 {
            self.put(&[0x41]);
        }
        self.put(&[0xb8 | register.low()]);
        self.put_u32(value);
    }

    /// `mov to, from`
    pub fn copy(&mut self, to: Register, from: Register) {
        self.put(&[0x48 | from.high() << 2 | to.high(), 0x89, 0xc0 | from.low() << 3 | to.low()]);
    }

    /// `push value`, sign extended from 32 bits.
    pub fn push_value(&mut self, value: i32) {
        self.put(&[0x68]);
        self.put(&value.to_le_bytes());
    }

    /// `push qword [rip + ...]` of the eight bytes at an address within reach.
    pub fn push_from(&mut self, address: u64) {
        self.put(&[0xff, 0x35]);
        let displacement = address.wrapping_sub(self.here() + 4);
        self.put_u32(displacement as u32);
    }

    /// `pop rcx`
    pub fn pop_rcx(&mut self) {
        self.put(&[0x59]);
    }

    /// `lea rsp, [rsp + bytes]`
    pub fn drop_stack(&mut self, bytes: u16) {
        self.put(&[0x48, 0x8d, 0xa4, 0x24]);
        self.put_u32(u32::from(bytes));
    }

    /// `jmp target`. Returns where its four bytes stand; the caller checks that they reach.
    pub fn jump(&mut self, target: u64) -> u64 {
        self.align_field(1);
        self.put(&[0xe9]);
        self.relative(target)
    }

    /// `jcc target` with the four bits of a condition. Returns as [`jump`](Self::jump) does.
    pub fn branch(&mut self, condition: u8, target: u64) -> u64 {
        self.align_field(2);
        self.put(&[0x0f, 0x80 | condition & 15]);
        self.relative(target)
    }

    fn relative(&mut self, target: u64) -> u64 {
        let site = self.here();
        self.put_u32(target.wrapping_sub(site + 4) as u32);
        site
    }

    /// Puts a long no-operation before an instruction, so that the four bytes that follow its
    /// opcode lie in one line: a processor that runs them while they are replaced sees the old or
    /// the new ones.
    fn align_field(&mut self, opcode: u64) {
        let offset = (self.here() + opcode) % LINE;
        if offset > LINE - 4 {
            self.nop((LINE - offset) as usize);
        }
    }

    /// Does nothing up to where eight bytes lie in one line.
    pub fn align_room(&mut self) {
        if self.here() % LINE > LINE - 8 {
            self.align(LINE);
        }
    }

    /// A single instruction of one to five bytes that does nothing.
    pub fn nop(&mut self, length: usize) {
        const NOPS: [&[u8]; 6] = [
            &[],
            &[0x90],
            &[0x66, 0x90],
            &[0x0f, 0x1f, 0x00],
            &[0x0f, 0x1f, 0x40, 0x00],
            &[0x0f, 0x1f, 0x44, 0x00, 0x00],
        ];
        self.put(NOPS[length.min(5)]);
    }

    /// Does nothing up to the next multiple of `alignment`.
    pub fn align(&mut self, alignment: u64) {
        let mut left = (self.here().next_multiple_of(alignment) - self.here()) as usize;
        while left > 0 {
            self.nop(left.min(5));
            left -= left.min(5);
        }
    }

    /// `jmp [rip + ...]` through the eight bytes at an address within reach.
    pub fn jump_through(&mut self, address: u64) {
        self.put(&[0xff, 0x25]);
        let displacement = address.wrapping_sub(self.here() + 4);
        self.put_u32(displacement as u32);
    }

    /// `jmp [place]` through the eight bytes at an address below two gigabytes.
    pub fn jump_through_low(&mut self, place: u32) {
        self.put(&[0xff, 0x24, 0x25]);
        self.put_u32(place);
    }

    /// `jmp gs:[slot]`
    pub fn jump_gs(&mut self, slot: u32) {
        self.put(&[0x65, 0xff, 0x24, 0x25]);
        self.put_u32(slot);
    }

    /// `jmp [table + rcx * 8]` with a table below two gigabytes.
    pub fn jump_by_rcx(&mut self, table: u32) {
        self.put(&[0xff, 0x24, 0xcd]);
        self.put_u32(table);
    }

    /// `prefetcht0 [address]`, an address below two gigabytes, whose line is fetched ahead.
    pub fn prefetch(&mut self, address: u32) {
        self.put(&[0x0f, 0x18, 0x0c, 0x25]);
        self.put_u32(address);
    }

    /// `movzx ecx, cx`
    pub fn low_half_of_rcx(&mut self) {
        self.put(&[0x0f, 0xb7, 0xc9]);
    }

    /// Leaves bits 4 to 11 in rcx: `rorx ecx, ecx, 4; movzx ecx, cl`. Needs BMI2.
    pub fn middle_bits_of_rcx(&mut self) {
        self.put(&[0xc4, 0xe3, 0x7b, 0xf0, 0xc9, 0x04]);
        self.put(&[0x0f, 0xb6, 0xc9]);
    }

    /// The same without BMI2: rcx is shifted to where a byte of it can be loaded again from the slot.
    pub fn middle_bits_of_rcx_by(&mut self, slot: u32) {
        // lea rcx, [rcx + rcx]; lea rcx, [rcx * 8]
        self.put(&[0x48, 0x8d, 0x0c, 0x09, 0x48, 0x8d, 0x0c, 0xcd, 0, 0, 0, 0]);
        self.store_gs(slot, Register::RCX);
        self.load_gs_byte_into_rcx(slot + 1);
    }

    /// rcx becomes 0 if it was the key, and nothing else does; its other values are lost. No flag and
    /// no other register is changed.
    ///
    /// An addition reaches 32 bits, which leaves the upper ones of a greater key: `bswap` brings those
    /// within reach of another.
    pub fn subtract_key(&mut self, key: u64) {
        let low = key as i32;
        // The most negative number has no opposite, but is its own in 32 bits.
        let negative = low.wrapping_neg();
        // The lower half is 0, and so is the upper one with the bytes swapped.
        let mut rest = key.wrapping_add(i64::from(negative) as u64).swap_bytes();
        self.add(Register::RCX, negative);
        if rest == 0 {
            return;
        }
        // bswap rcx
        self.put(&[0x48, 0x0f, 0xc9]);
        while rest != 0 {
            let part = rest.min(i32::MAX as u64);
            self.add(Register::RCX, -(part as i32));
            rest -= part;
        }
    }

    /// Loads one, two, four or eight bytes at an address within reach into rcx, its upper part becoming 0.
    pub fn load_into_rcx(&mut self, address: u64, length: usize) {
        match length {
            1 => self.put(&[0x0f, 0xb6, 0x0d]),
            2 => self.put(&[0x0f, 0xb7, 0x0d]),
            4 => self.put(&[0x8b, 0x0d]),
            _ => self.put(&[0x48, 0x8b, 0x0d]),
        }
        let displacement = address.wrapping_sub(self.here() + 4);
        self.put_u32(displacement as u32);
    }

    /// `mov rcx, [rsp - 8]`: loads the value that was popped last, which is still in memory.
    pub fn load_popped_into_rcx(&mut self) {
        self.put(&[0x48, 0x8b, 0x4c, 0x24, 0xf8]);
    }

    /// Leaves the value that was popped last in rcx, without its lower `bits`: `mov cl, bits; shrx rcx, [rsp - 8],
    /// rcx`. Needs BMI2.
    pub fn shift_popped_into_rcx(&mut self, bits: u8) {
        self.put(&[0xb1, bits, 0xc4, 0xe2, 0xf3, 0xf7, 0x4c, 0x24, 0xf8]);
    }

    /// Jumps to `mismatch` unless rcx is 0: `jrcxz` over a `jmp`. Returns where the jump's bytes
    /// stand.
    pub fn jump_unless_key(&mut self, mismatch: u64) -> u64 {
        self.put(&[0xe3, 0]);
        let from = self.bytes.len();
        let site = self.jump(mismatch);
        self.set_distance(from);
        site
    }

    /// Makes the short jump whose last byte stands before the offset lead to here.
    pub fn set_distance(&mut self, from: usize) {
        self.bytes[from - 1] = (self.bytes.len() - from) as u8;
    }

    /// Writes one byte anew.
    pub(crate) fn replace_byte(&mut self, at: usize, value: u8) {
        self.bytes[at] = value;
    }

    /// `syscall`
    pub fn system_call(&mut self) {
        self.put(&[0x0f, 0x05]);
    }

    /// Writes four bytes anew at an address that was assembled already.
    pub fn patch(&mut self, site: u64, target: u64) {
        let at = (site - self.base) as usize;
        let relative = target.wrapping_sub(site + 4) as u32;
        self.bytes[at..at + 4].copy_from_slice(&relative.to_le_bytes());
    }
}

/// The four bytes at `site` that lead to `target`; none if it is more than two gigabytes away.
pub fn relative_to(site: u64, target: u64) -> Option<u32> {
    let distance = target.wrapping_sub(site + 4) as i64;
    i32::try_from(distance).ok().map(|distance| distance as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions, Formatter as _, IntelFormatter};

    fn listing(write: impl FnOnce(&mut Assembler)) -> String {
        let mut assembler = Assembler::new(0x1000);
        write(&mut assembler);
        let mut text = String::new();
        let mut formatter = IntelFormatter::new();
        for instruction in &mut Decoder::with_ip(64, assembler.bytes(), 0x1000, DecoderOptions::NONE) {
            formatter.format(&instruction, &mut text);
            text.push('\n');
        }
        text
    }

    #[test]
    fn slots_are_reached_by_every_register() {
        for register in Register::all() {
            let name = format!("{:?}", register.iced()).to_lowercase();
            let text = listing(|code| {
                code.load_gs(register, 8);
                code.store_gs(0x1234, register);
                code.add(register, 1);
                code.add(register, -300);
                code.set_low(register, 7);
                code.copy(Register::RCX, register);
            });
            let lines: Vec<_> = text.lines().collect();
            assert_eq!(lines[0], format!("mov {name},gs:[8]"));
            assert_eq!(lines[1], format!("mov gs:[1234h],{name}"));
            assert_eq!(lines[2], format!("lea {name},[{name}+1]"));
            assert_eq!(lines[3], format!("lea {name},[{name}-12Ch]"));
            assert!(lines[4].starts_with("mov ") && lines[4].ends_with(",7"));
            assert_eq!(lines[5], format!("mov rcx,{name}"));
        }
    }

    #[test]
    fn sums_of_registers_are_encoded_for_every_base() {
        for register in Register::all().filter(|&register| register != Register::RSP) {
            let name = format!("{:?}", register.iced()).to_lowercase();
            let text = listing(|code| code.add_register(register, Register::R11));
            assert_eq!(text.trim(), format!("lea {name},[{name}+r11]"));
        }
    }

    #[test]
    fn keys_are_checked_without_flags() {
        let text = listing(|code| {
            code.subtract_key(0x7fff_1234_5678);
            code.jump_unless_key(0x2000);
            code.subtract_key(0x40_1234);
        });
        let lines: Vec<_> = text.lines().filter(|line| !line.starts_with("nop")).collect();
        assert_eq!(
            lines,
            [
                "lea rcx,[rcx-12345678h]",
                "bswap rcx",
                "lea rcx,[rcx-7FFFFFFFh]",
                "lea rcx,[rcx-7F7F0001h]",
                "jrcxz 000000000000101Fh",
                "jmp 0000000000002000h",
                "lea rcx,[rcx-401234h]",
            ]
        );
    }

    #[test]
    fn a_field_that_may_be_replaced_lies_in_one_line() {
        for start in 0..128 {
            let mut code = Assembler::new(0x1000 + start);
            let jump = code.jump(0);
            let branch = code.branch(5, 0);
            for site in [jump, branch] {
                assert_eq!(site / LINE, (site + 3) / LINE, "{start}");
            }
        }
    }

    #[test]
    fn two_gigabytes_are_the_reach() {
        assert_eq!(relative_to(0x1000, 0x1004), Some(0));
        assert_eq!(relative_to(0x1000, 0x1004 + 0x7fff_ffff), Some(0x7fff_ffff));
        assert_eq!(relative_to(0x1000, 0x1004 + 0x8000_0000), None);
        assert_eq!(relative_to(0x1_0000_0000, 0x8000_0004), Some(0x8000_0000));
    }

    #[test]
    fn tables_are_entered_by_bits_of_rcx() {
        let text = listing(|code| {
            code.middle_bits_of_rcx();
            code.middle_bits_of_rcx_by(0x18);
            code.low_half_of_rcx();
            code.jump_by_rcx(0x3000_0000);
            code.load_popped_into_rcx();
            code.shift_popped_into_rcx(16);
            code.jump_gs(0x40);
            code.jump_through_low(0x3000_0200);
            code.push_value(-1);
            code.drop_stack(16);
            code.store_gs_value(8, 5);
            code.load_gs_byte_into_rcx(0x62);
            [1, 2, 4, 8].into_iter().for_each(|length| code.load_into_rcx(0x2000, length));
            code.store_gs_at_rcx(0x1000, Register::R11);
            code.store_gs_value_at_rcx(0x1000, 7);
            code.prefetch(0x3000_0008);
        });
        assert_eq!(
            text,
            "rorx ecx,ecx,4\nmovzx ecx,cl\nlea rcx,[rcx+rcx]\nlea rcx,[rcx*8]\nmov gs:[18h],rcx\n\
             movzx ecx,byte ptr gs:[19h]\nmovzx ecx,cx\njmp qword ptr [rcx*8+30000000h]\n\
             mov rcx,[rsp-8]\nmov cl,10h\nshrx rcx,[rsp-8],rcx\n\
             jmp qword ptr gs:[40h]\njmp qword ptr [30000200h]\npush 0FFFFFFFFFFFFFFFFh\nlea rsp,[rsp+10h]\n\
             mov dword ptr gs:[8],5\nmovzx ecx,byte ptr gs:[62h]\nmovzx ecx,byte ptr [2000h]\n\
             movzx ecx,word ptr [2000h]\nmov ecx,[2000h]\nmov rcx,[2000h]\nmov gs:[rcx*8+1000h],r11\n\
             mov dword ptr gs:[rcx*8+1000h],7\nprefetcht0 [30000008h]\n"
        );
    }
}
