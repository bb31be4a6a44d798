//! The kinds of instructions that architects count, and the memory that an instruction moves.

use iced_x86::{Instruction, Mnemonic, OpKind, Register};

use crate::decode::decode_while;
use crate::disassembly::Flow;
use crate::memory::{Access, MemoryUse, Operand};

/// The purpose of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Copies a general register, a constant or memory; conditional ones and conversions of width too.
    Move,
    /// Works out an address (`lea`).
    Address,
    /// Pushes or pops.
    Stack,
    /// Adds, subtracts or compares.
    Arithmetic,
    /// Multiplies or divides.
    Multiplication,
    /// And, or, xor, not and test.
    Logic,
    /// Shifts and rotations.
    Shift,
    /// Counts, finds, tests or moves single bits.
    Bits,
    /// Jumps if a condition holds.
    Conditional,
    /// Jumps to an address that stands in it.
    Jump,
    /// Jumps to an address in a register or in memory.
    IndirectJump,
    /// Calls the function at an address that stands in it.
    Call,
    /// Calls a function whose address is in a register or in memory.
    IndirectCall,
    /// Returns to a caller.
    Return,
    /// Works on one floating-point number in a vector register.
    ScalarFloat,
    /// Works on several floating-point numbers at once.
    PackedFloat,
    /// Works on several integers, or on the bits of a vector.
    VectorInteger,
    /// Moves or permutes what is in vectors.
    VectorMove,
    /// Works with the registers of the x87 unit.
    X87,
    /// Moves, compares or searches bytes, repeatedly perhaps.
    String,
    /// Is one step for all processors, or orders memory.
    Atomic,
    /// Does nothing but mark a place, wait or fetch into a cache.
    Nothing,
    /// Asks the kernel or the processor for something.
    System,
    /// Anything else.
    Other,
}

impl Kind {
    /// As reports call it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Move => "move",
            Self::Address => "address (lea)",
            Self::Stack => "push and pop",
            Self::Arithmetic => "add, subtract, compare",
            Self::Multiplication => "multiply, divide",
            Self::Logic => "logic",
            Self::Shift => "shift, rotate",
            Self::Bits => "bits",
            Self::Conditional => "conditional branch",
            Self::Jump => "jump",
            Self::IndirectJump => "indirect jump",
            Self::Call => "call",
            Self::IndirectCall => "indirect call",
            Self::Return => "return",
            Self::ScalarFloat => "scalar float",
            Self::PackedFloat => "packed float",
            Self::VectorInteger => "vector integer",
            Self::VectorMove => "vector move",
            Self::X87 => "x87",
            Self::String => "string",
            Self::Atomic => "atomic, fence",
            Self::Nothing => "nop, prefetch",
            Self::System => "system",
            Self::Other => "other",
        }
    }

    /// Whether it may lead elsewhere than to the next instruction.
    pub fn is_branch(self) -> bool {
        matches!(
            self,
            Self::Conditional
                | Self::Jump
                | Self::IndirectJump
                | Self::Call
                | Self::IndirectCall
                | Self::Return
        )
    }
}

/// An instruction's kind and the memory that it moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nature {
    /// The kind.
    pub kind: Kind,
    /// How often it reads memory.
    pub loads: u32,
    /// How many bytes these are.
    pub loaded_bytes: u32,
    /// How often it writes memory.
    pub stores: u32,
    /// How many bytes these are.
    pub stored_bytes: u32,
    /// Whether it repeats itself, so that the numbers are those of one round.
    pub is_repeated: bool,
}

/// Finds the nature of instructions; reuses memory.
#[derive(Debug, Default)]
pub struct Natures {
    memory: MemoryUse,
    operands: Vec<Operand>,
}

impl Natures {
    /// The nature of the instruction at the start of `bytes`, which lie at `address`; nothing where there is none.
    ///
    /// ```
    /// use treering_x86::kind::{Kind, Natures};
    ///
    /// // add [rdi], rsi
    /// let found = Natures::default().of(&[0x48, 0x01, 0x37], 0x1000).unwrap();
    /// assert_eq!((found.kind, found.loaded_bytes, found.stored_bytes), (Kind::Arithmetic, 8, 8));
    /// ```
    pub fn of(&mut self, bytes: &[u8], address: u64) -> Option<Nature> {
        let mut nature = None;
        decode_while(bytes, address, |decoded| {
            self.operands.clear();
            self.memory.operands(decoded, &mut self.operands);
            let instruction = &decoded.instruction;
            let mut found = Nature {
                kind: kind(instruction),
                loads: 0,
                loaded_bytes: 0,
                stores: 0,
                stored_bytes: 0,
                is_repeated: false,
            };
            for operand in &self.operands {
                found.is_repeated |= operand.repeated;
                if operand.access != Access::Write {
                    found.loads += 1;
                    found.loaded_bytes += u32::from(operand.size);
                }
                if operand.access != Access::Read {
                    found.stores += 1;
                    found.stored_bytes += u32::from(operand.size);
                }
            }
            nature = Some(found);
            false
        });
        nature
    }
}

fn kind(instruction: &Instruction) -> Kind {
    match crate::disassembly::flow_of(instruction) {
        Flow::Next => {}
        Flow::Conditional(_) => return Kind::Conditional,
        Flow::Jump(_) => return Kind::Jump,
        Flow::IndirectJump => return Kind::IndirectJump,
        Flow::Call(_) => return Kind::Call,
        Flow::IndirectCall => return Kind::IndirectCall,
        Flow::Return => return Kind::Return,
        Flow::Other => return Kind::System,
    }
    let exchanges = instruction.mnemonic() == Mnemonic::Xchg && has_memory(instruction);
    if instruction.is_string_instruction() {
        return Kind::String;
    }
    if instruction.has_lock_prefix() || exchanges {
        return Kind::Atomic;
    }
    let name = format!("{:?}", instruction.mnemonic()).to_lowercase();
    let registers = (0..instruction.op_count()).map(|at| instruction.op_register(at));
    if name.starts_with('f') && !name.starts_with("fx") || name == "emms" {
        return Kind::X87;
    }
    let is_vector = |register: Register| register.is_vector_register() || register.is_mm() || register.is_k();
    if registers.into_iter().any(is_vector) { vector(&name) } else { scalar(&name) }
}

fn has_memory(instruction: &Instruction) -> bool {
    (0..instruction.op_count()).any(|at| instruction.op_kind(at) == OpKind::Memory)
}

/// An instruction without vectors, by its name.
fn scalar(name: &str) -> Kind {
    match name {
        "lea" => Kind::Address,
        "add" | "sub" | "inc" | "dec" | "neg" | "adc" | "sbb" | "cmp" | "adcx" | "adox" | "xadd"
        | "cmpxchg" => Kind::Arithmetic,
        "mul" | "imul" | "div" | "idiv" | "mulx" => Kind::Multiplication,
        "and" | "or" | "xor" | "not" | "test" | "andn" => Kind::Logic,
        "shl" | "shr" | "sal" | "sar" | "rol" | "ror" | "rcl" | "rcr" | "shld" | "shrd" | "shlx" | "shrx"
        | "sarx" | "rorx" => Kind::Shift,
        "bt" | "bts" | "btr" | "btc" | "bsf" | "bsr" | "popcnt" | "lzcnt" | "tzcnt" | "blsi" | "blsr"
        | "blsmsk" | "bextr" | "bzhi" | "pdep" | "pext" => Kind::Bits,
        "cbw" | "cwde" | "cdqe" | "cwd" | "cdq" | "cqo" | "xchg" | "bswap" | "xlatb" | "lahf" | "sahf" => {
            Kind::Move
        }
        "nop" | "endbr64" | "endbr32" | "pause" => Kind::Nothing,
        "mfence" | "lfence" | "sfence" | "cmpxchg8b" | "cmpxchg16b" => Kind::Atomic,
        "syscall" | "sysenter" | "cpuid" | "rdtsc" | "rdtscp" | "rdpmc" | "xgetbv" | "rdrand" | "rdseed"
        | "rdpkru" | "wrpkru" | "rdfsbase" | "rdgsbase" | "wrfsbase" | "wrgsbase" | "hlt" => Kind::System,
        "enter" | "leave" => Kind::Stack,
        _ if name.starts_with("push") || name.starts_with("pop") => Kind::Stack,
        _ if ["mov", "cmov", "set"].iter().any(|start| name.starts_with(start)) => Kind::Move,
        _ if name.starts_with("prefetch") => Kind::Nothing,
        _ => Kind::Other,
    }
}

/// An instruction with a vector, by its name.
fn vector(name: &str) -> Kind {
    // The same as before AVX, but for the letter.
    let name = name.strip_prefix('v').unwrap_or(name);
    let begins = |starts: &[&str]| starts.iter().any(|start| name.starts_with(start));
    let ends = |ends: &[&str]| ends.iter().any(|end| name.ends_with(end));
    let is_move = begins(&[
        "mov",
        "lddqu",
        "broadcast",
        "pbroadcast",
        "extract",
        "insert",
        "pextr",
        "pinsr",
        "pmov",
        "maskmov",
        "pmaskmov",
        "shuf",
        "pshuf",
        "unpck",
        "punpck",
        "perm",
        "pperm",
        "blend",
        "pblend",
        "palignr",
        "gather",
        "pgather",
        "kmov",
        "valign",
        "align",
        "zero",
        "lddq",
        "scatter",
        "pscatter",
        "compress",
        "expand",
        "pcompress",
        "pexpand",
    ]);
    let is_logic = begins(&["and", "or", "xor", "tern", "k"]);
    match () {
        () if is_move => Kind::VectorMove,
        () if is_logic || begins(&["p", "aes", "sha", "gf2", "mpsadbw", "dbpsadbw"]) => Kind::VectorInteger,
        () if ends(&["ss", "sd", "sh"]) || begins(&["cvtss2", "cvtsd2", "cvttss2", "cvttsd2", "cvtsh2"]) => {
            Kind::ScalarFloat
        }
        () if ends(&["ps", "pd", "ph", "bf16"]) || begins(&["cvt"]) => Kind::PackedFloat,
        () => Kind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bytes: &[u8]) -> Nature {
        Natures::default().of(bytes, 0x1000).expect("an instruction")
    }

    /// The bytes are those of GNU as.
    #[test]
    fn instructions_have_their_kinds() {
        let cases: &[(&[u8], Kind, &str)] = &[
            (&[0x48, 0x89, 0xd8], Kind::Move, "mov rax, rbx"),
            (&[0x0f, 0x44, 0xc3], Kind::Move, "cmove eax, ebx"),
            (&[0x48, 0x8d, 0x04, 0x3e], Kind::Address, "lea rax, [rsi+rdi]"),
            (&[0x55], Kind::Stack, "push rbp"),
            (&[0x39, 0xd8], Kind::Arithmetic, "cmp eax, ebx"),
            (&[0x48, 0x0f, 0xaf, 0xc3], Kind::Multiplication, "imul rax, rbx"),
            (&[0x31, 0xc0], Kind::Logic, "xor eax, eax"),
            (&[0xc1, 0xe0, 0x04], Kind::Shift, "shl eax, 4"),
            (&[0xf3, 0x0f, 0xb8, 0xc3], Kind::Bits, "popcnt eax, ebx"),
            (&[0x74, 0x02], Kind::Conditional, "je"),
            (&[0xeb, 0x02], Kind::Jump, "jmp"),
            (&[0xff, 0xe0], Kind::IndirectJump, "jmp rax"),
            (&[0xe8, 0, 0, 0, 0], Kind::Call, "call"),
            (&[0xff, 0xd0], Kind::IndirectCall, "call rax"),
            (&[0xc3], Kind::Return, "ret"),
            (&[0xf2, 0x0f, 0x58, 0xc1], Kind::ScalarFloat, "addsd xmm0, xmm1"),
            (&[0xf2, 0x48, 0x0f, 0x2c, 0xc0], Kind::ScalarFloat, "cvttsd2si rax, xmm0"),
            (&[0xc5, 0xfc, 0x58, 0xc1], Kind::PackedFloat, "vaddps ymm0, ymm0, ymm1"),
            (&[0x66, 0x0f, 0xfe, 0xc1], Kind::VectorInteger, "paddd xmm0, xmm1"),
            (&[0x0f, 0x57, 0xc0], Kind::VectorInteger, "xorps xmm0, xmm0"),
            (&[0xf3, 0x0f, 0x6f, 0x07], Kind::VectorMove, "movdqu xmm0, [rdi]"),
            (&[0xd8, 0xc1], Kind::X87, "fadd st, st(1)"),
            (&[0xf3, 0xa4], Kind::String, "rep movsb"),
            (&[0xf0, 0xff, 0x07], Kind::Atomic, "lock inc dword [rdi]"),
            (&[0x87, 0x07], Kind::Atomic, "xchg [rdi], eax"),
            (&[0xf3, 0x0f, 0x1e, 0xfa], Kind::Nothing, "endbr64"),
            (&[0x0f, 0x05], Kind::System, "syscall"),
            (&[0x0f, 0xa2], Kind::System, "cpuid"),
        ];
        for &(bytes, kind, text) in cases {
            assert_eq!(of(bytes).kind, kind, "{text}");
        }
    }

    #[test]
    fn memory_is_counted_in_accesses_and_bytes() {
        let moved = |bytes: &[u8]| {
            let nature = of(bytes);
            (nature.loads, nature.loaded_bytes, nature.stores, nature.stored_bytes)
        };
        // mov eax, [rdi]; mov [rdi], al; add [rdi], rsi; lea rax, [rdi]; nop [rax]
        assert_eq!(moved(&[0x8b, 0x07]), (1, 4, 0, 0));
        assert_eq!(moved(&[0x88, 0x07]), (0, 0, 1, 1));
        assert_eq!(moved(&[0x48, 0x01, 0x37]), (1, 8, 1, 8));
        assert_eq!(moved(&[0x48, 0x8d, 0x07]), (0, 0, 0, 0));
        assert_eq!(moved(&[0x0f, 0x1f, 0x00]), (0, 0, 0, 0));
        // push rbp; pop rbp; call; ret; vmovups ymm0, [rdi]
        assert_eq!(moved(&[0x55]), (0, 0, 1, 8));
        assert_eq!(moved(&[0x5d]), (1, 8, 0, 0));
        assert_eq!(moved(&[0xe8, 0, 0, 0, 0]), (0, 0, 1, 8));
        assert_eq!(moved(&[0xc3]), (1, 8, 0, 0));
        assert_eq!(moved(&[0xc5, 0xfc, 0x10, 0x07]), (1, 32, 0, 0));
        assert!(of(&[0xf3, 0xa4]).is_repeated && !of(&[0xa4]).is_repeated);
    }
}
