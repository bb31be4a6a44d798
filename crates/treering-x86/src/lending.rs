//! The program's own value of the vector register in which a running count lies, for as long as an instruction
//! needs it.
//!
//! The value lies in a slot meanwhile, with all its upper parts. It has to be in the register only as far as
//! the instruction reads it. Loading more would cost time: where an upper part of a register is in use, each change from instructions of SSE to those of AVX and back costs hundreds of cycles on processors from
//! Intel's Ice Lake on, and stays so until the program clears the upper parts of all registers. A
//! program that did not use them must not begin to because of us. So upper parts are loaded where the
//! instruction itself brings them into use, and elsewhere only if they are not 0.

use iced_x86::{EncodingKind, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, Register as R};

use crate::{Assembler, Decoded, Register};

/// How the program's own value gets into the register for an instruction, and out of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lending {
    load: Load,
    store: Store,
}

/// How much of it the instruction reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Load {
    /// The lower sixteen bytes at the most.
    Lower,
    /// All of it, without bringing upper parts into use that are 0.
    InUse,
    /// All of it; the instruction brings upper parts into use itself.
    Whole,
}

/// How much of it the instruction may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Store {
    Nothing,
    /// The lower sixteen bytes, and none of the others.
    Lower,
    Whole,
}

/// The place of the value, and how much of it there is.
#[derive(Debug, Clone, Copy)]
pub struct Own {
    /// Its offset to GS; 64 bytes.
    pub slot: u32,
    /// Whether the processor has all 64 bytes, or 32 of them.
    pub wide: bool,
    /// Keeps rcx.
    pub rcx: u32,
}

impl Lending {
    /// How an instruction needs the program's own value; none if it has nothing to do with it.
    ///
    /// Instructions that save and load the state of the processor as a whole need it too.
    pub fn of(decoded: &Decoded) -> Option<Self> {
        let instruction = &decoded.instruction;
        let state = State::of(instruction.mnemonic());
        let named = |register: R| {
            (0..instruction.op_count()).any(|operand| instruction.op_register(operand) == register)
                || instruction.memory_index() == register
        };
        let (lower, upper) = (named(R::XMM15), named(R::YMM15) || named(R::ZMM15) || has_group(instruction));
        let (load, store) = match state {
            None if !lower && !upper => return None,
            Some(State::Lower) => (Load::Lower, Store::Lower),
            Some(State::Cleared) => (Load::Lower, Store::Whole),
            Some(State::Whole) => (Load::InUse, Store::Whole),
            None if instruction.encoding() == EncodingKind::Legacy => (Load::Lower, Store::Lower),
            None if upper && brings_into_use(instruction) => (Load::Whole, Store::Whole),
            None if upper => (Load::InUse, Store::Whole),
            // Instructions in AVX's encoding clear the upper parts.
            None if writes(instruction, |register| register == R::XMM15) => (Load::Lower, Store::Whole),
            None => (Load::Lower, Store::Nothing),
        };
        Some(Self { load, store })
    }

    /// Loads the program's own value.
    ///
    /// A thread that is stopped anywhere in it has the count in the register before an instruction that is the
    /// last one of [`loads`](Self::loads), and its own value behind it.
    pub fn write_load(self, code: &mut Assembler, own: &Own) {
        match self.load {
            Load::Lower => load_lower(code, own),
            Load::Whole => load_whole(code, own),
            Load::InUse => load_in_use(code, own),
        }
    }

    /// Stores the value that the instruction has left. Writes nothing if the instruction does not change it.
    pub fn write_store(self, code: &mut Assembler, own: &Own) {
        match self.store {
            Store::Nothing => {}
            Store::Lower => code.store_count(own.slot),
            Store::Whole => store_whole(code, own),
        }
    }

    /// The instructions behind which the register holds the program's own value.
    pub fn loads(own: &Own) -> [Vec<u8>; 2] {
        [load_lower, load_whole].map(|write| written(write, own))
    }

    /// The instructions in front of which the register still holds it.
    pub fn stores(own: &Own) -> [Vec<u8>; 2] {
        [|code: &mut Assembler, own: &Own| code.store_count(own.slot), store_whole]
            .map(|write| written(write, own))
    }
}

/// Whether an instruction clears the upper parts of all registers and does no more.
pub fn clears_upper_parts(decoded: &Decoded) -> bool {
    decoded.instruction.mnemonic() == Mnemonic::Vzeroupper
}

/// Clears the upper parts of the program's own value.
pub fn write_clearing(code: &mut Assembler, own: &Own) {
    upper_words(own).for_each(|slot| code.clear_slot(slot));
}

fn written(write: fn(&mut Assembler, &Own), own: &Own) -> Vec<u8> {
    let mut code = Assembler::new(0);
    write(&mut code, own);
    code.bytes().to_vec()
}

/// Where the words above the lower sixteen bytes lie.
fn upper_words(own: &Own) -> impl Iterator<Item = u32> {
    let (slot, end) = (own.slot, if own.wide { 8 } else { 4 });
    (2..end).map(move |word| slot + word * 8)
}

/// `vmovups xmm15, gs:[slot]`: [`interpret`](crate::interpret) does not know it, and so undoes the instructions
/// before it.
fn load_lower(code: &mut Assembler, own: &Own) {
    code.vector_slot(&[0xc5, 0x78, 0x10], own.slot);
}

/// `vmovups ymm15, gs:[slot]`, or zmm15.
fn load_whole(code: &mut Assembler, own: &Own) {
    let opcode: &[u8] = if own.wide { &[0x62, 0x71, 0x7c, 0x48, 0x10] } else { &[0xc5, 0x7c, 0x10] };
    code.vector_slot(opcode, own.slot);
}

/// The same the other way round.
fn store_whole(code: &mut Assembler, own: &Own) {
    let opcode: &[u8] = if own.wide { &[0x62, 0x71, 0x7c, 0x48, 0x11] } else { &[0xc5, 0x7c, 0x11] };
    code.vector_slot(opcode, own.slot);
}

/// Loads all of it, by the lower part alone if the others are 0.
fn load_in_use(code: &mut Assembler, own: &Own) {
    code.store_gs(own.rcx, Register::RCX);
    let in_use: Vec<usize> = upper_words(own)
        .map(|slot| {
            code.load_gs(Register::RCX, slot);
            let clear = code.jump_if_zero();
            let in_use = code.jump_ahead();
            code.set_distance(clear);
            in_use
        })
        .collect();
    code.load_gs(Register::RCX, own.rcx);
    load_lower(code, own);
    let end = code.jump_ahead();
    in_use.into_iter().for_each(|jump| code.lead_here(jump));
    code.load_gs(Register::RCX, own.rcx);
    load_whole(code, own);
    code.lead_here(end);
}

/// Whether an instruction writes to upper parts of a register.
fn brings_into_use(instruction: &Instruction) -> bool {
    writes(instruction, |register| register.is_ymm() || register.is_zmm())
}

/// Whether an instruction may write to an operand that is such a register.
fn writes(instruction: &Instruction, is_such: impl Fn(R) -> bool) -> bool {
    let mut factory = InstructionInfoFactory::new();
    let info = factory.info(instruction);
    (0..instruction.op_count()).any(|operand| {
        let reads = matches!(info.op_access(operand), OpAccess::None | OpAccess::Read | OpAccess::CondRead);
        !reads && is_such(instruction.op_register(operand))
    })
}

/// The effect of instructions that save or restore the processor's state.
#[derive(Debug, Clone, Copy)]
enum State {
    /// They save or load the lower sixteen bytes of registers, and leave the others alone.
    Lower,
    /// They save or load all of them.
    Whole,
    /// They clear all of them.
    Cleared,
}

impl State {
    fn of(mnemonic: Mnemonic) -> Option<Self> {
        match mnemonic {
            Mnemonic::Fxsave | Mnemonic::Fxsave64 | Mnemonic::Fxrstor | Mnemonic::Fxrstor64 => {
                Some(Self::Lower)
            }
            Mnemonic::Xsave
            | Mnemonic::Xsave64
            | Mnemonic::Xsavec
            | Mnemonic::Xsavec64
            | Mnemonic::Xsaveopt
            | Mnemonic::Xsaveopt64
            | Mnemonic::Xrstor
            | Mnemonic::Xrstor64 => Some(Self::Whole),
            Mnemonic::Vzeroall => Some(Self::Cleared),
            _ => None,
        }
    }
}

/// Whether four vector registers are an operand, of which the instruction names any.
fn has_group(instruction: &Instruction) -> bool {
    matches!(
        instruction.mnemonic(),
        Mnemonic::V4fmaddps
            | Mnemonic::V4fmaddss
            | Mnemonic::V4fnmaddps
            | Mnemonic::V4fnmaddss
            | Mnemonic::Vp4dpwssd
            | Mnemonic::Vp4dpwssds
    )
}

#[cfg(test)]
mod tests {
    use iced_x86::{Decoder, DecoderOptions, Formatter as _, IntelFormatter};

    use super::*;
    use crate::decode;

    const OWN: Own = Own { slot: 0x40, wide: true, rcx: 0x10 };

    fn lending(bytes: &[u8]) -> Option<(Load, Store)> {
        let mut block = Vec::new();
        decode(bytes, 0, 1, &mut block);
        assert_eq!(block[0].len(), bytes.len(), "{bytes:x?}");
        Lending::of(&block[0]).map(|lending| (lending.load, lending.store))
    }

    fn listing(own: &Own, write: fn(&mut Assembler, &Own)) -> Vec<String> {
        let mut formatter = IntelFormatter::new();
        let bytes = written(write, own);
        let decoder = Decoder::with_ip(64, &bytes, 0, DecoderOptions::NONE);
        let lines = decoder.into_iter().map(|instruction| {
            let mut text = String::new();
            formatter.format(&instruction, &mut text);
            text
        });
        lines.collect()
    }

    #[test]
    fn instructions_without_the_register_need_nothing() {
        // movaps xmm14, xmm0; vzeroupper; mov r15, rax
        for bytes in [&[0x44, 0x0f, 0x28, 0xf0][..], &[0xc5, 0xf8, 0x77], &[0x49, 0x89, 0xc7]] {
            assert_eq!(lending(bytes), None, "{bytes:x?}");
        }
    }

    #[test]
    fn upper_parts_are_loaded_only_where_instructions_bring_them_into_use() {
        use Load::{InUse, Lower, Whole as All};
        let cases: [(&[u8], Load, Store); 14] = [
            // movaps xmm15, xmm0; paddd xmm1, xmm15; fxsave [rsp]; fxrstor [rsp]
            (&[0x44, 0x0f, 0x28, 0xf8], Lower, Store::Lower),
            (&[0x66, 0x41, 0x0f, 0xfe, 0xcf], Lower, Store::Lower),
            (&[0x0f, 0xae, 0x04, 0x24], Lower, Store::Lower),
            (&[0x0f, 0xae, 0x0c, 0x24], Lower, Store::Lower),
            // vpaddd xmm1, xmm0, xmm15; vptest xmm15, xmm0; vmovdqu [rsp], xmm15
            (&[0xc4, 0xc1, 0x79, 0xfe, 0xcf], Lower, Store::Nothing),
            (&[0xc4, 0x62, 0x79, 0x17, 0xf8], Lower, Store::Nothing),
            (&[0xc5, 0x7a, 0x7f, 0x3c, 0x24], Lower, Store::Nothing),
            // vmovdqu xmm15, [rsp]; vgatherdps xmm0, [rsp + xmm1 * 4], xmm15, which clears its mask
            (&[0xc5, 0x7a, 0x6f, 0x3c, 0x24], Lower, Store::Whole),
            (&[0xc4, 0xe2, 0x01, 0x92, 0x04, 0x8c], Lower, Store::Whole),
            // vpaddd ymm15, ymm15, ymm0; vmovdqu [rsp], ymm15; vpmovmskb ecx, ymm15
            (&[0xc5, 0x05, 0xfe, 0xf8], All, Store::Whole),
            (&[0xc5, 0x7e, 0x7f, 0x3c, 0x24], InUse, Store::Whole),
            (&[0xc4, 0xc1, 0x7d, 0xd7, 0xcf], InUse, Store::Whole),
            // xsavec [rsp]; vzeroall
            (&[0x0f, 0xc7, 0x24, 0x24], InUse, Store::Whole),
            (&[0xc5, 0xfc, 0x77], Lower, Store::Whole),
        ];
        for (bytes, load, store) in cases {
            assert_eq!(lending(bytes), Some((load, store)), "{bytes:x?}");
        }
    }

    #[test]
    fn parts_are_moved_as_the_processor_has_them() {
        let narrow = Own { wide: false, ..OWN };
        assert_eq!(listing(&OWN, load_lower), ["vmovups xmm15,gs:[40h]"]);
        assert_eq!(listing(&OWN, load_whole), ["vmovups zmm15,gs:[40h]"]);
        assert_eq!(listing(&narrow, load_whole), ["vmovups ymm15,gs:[40h]"]);
        assert_eq!(listing(&OWN, store_whole), ["vmovups gs:[40h],zmm15"]);
        assert_eq!(listing(&narrow, store_whole), ["vmovups gs:[40h],ymm15"]);
        let cleared = listing(&narrow, write_clearing);
        assert_eq!(cleared, ["mov qword ptr gs:[50h],0", "mov qword ptr gs:[58h],0"]);
        assert_eq!(listing(&OWN, write_clearing).len(), 6);
    }

    #[test]
    fn upper_parts_of_zero_are_not_loaded() {
        let narrow = Own { wide: false, ..OWN };
        assert_eq!(
            listing(&narrow, load_in_use),
            [
                "mov gs:[10h],rcx",
                "mov rcx,gs:[50h]",
                "jrcxz 0000000000000019h",
                "jmp 0000000000000041h",
                "mov rcx,gs:[58h]",
                "jrcxz 0000000000000029h",
                "jmp 0000000000000041h",
                "mov rcx,gs:[10h]",
                "vmovups xmm15,gs:[40h]",
                "jmp 0000000000000054h",
                "mov rcx,gs:[10h]",
                "vmovups ymm15,gs:[40h]",
            ]
        );
        assert!(written(load_in_use, &OWN).len() < 255, "a step's length is a byte");
    }
}
