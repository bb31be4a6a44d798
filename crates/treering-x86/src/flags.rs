//! The flags that an instruction reads and those that it leaves without their former value.

use iced_x86::{Mnemonic, OpKind, RflagsBits};

use crate::{Decoded, Flow, decode_while};

/// A set of the six arithmetic flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlagSet(u8);

impl FlagSet {
    /// No flag.
    pub const NONE: Self = Self(0);
    /// All six.
    pub const ALL: Self = Self(0x3f);
    /// The flags that `inc` changes: all but the carry.
    pub const OF_INC: Self = Self(0x3f & !CARRY);

    /// The flags of either set.
    pub fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The flags that are in both.
    pub fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The flags of this set that the other has not.
    pub fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether no flag is in both.
    pub fn misses(self, other: Self) -> bool {
        self.0 & other.0 == 0
    }

    /// The bits are the library's.
    fn from_iced(bits: u32) -> Self {
        Self(bits as u8 & Self::ALL.0)
    }
}

const CARRY: u8 = RflagsBits::CF as u8;

const _: () = {
    let six =
        RflagsBits::OF | RflagsBits::SF | RflagsBits::ZF | RflagsBits::AF | RflagsBits::CF | RflagsBits::PF;
    assert!(six == FlagSet::ALL.0 as u32, "the library's six flags are its lowest bits");
};

/// The flags that the instruction reads. The kernel shows the flags to a handler and in `r11`, so
/// that system calls and traps read them all.
pub fn read(decoded: &Decoded) -> FlagSet {
    match decoded.flow() {
        Flow::System | Flow::Trap | Flow::Stop | Flow::Refused(_) | Flow::Abort(_) => FlagSet::ALL,
        _ => FlagSet::from_iced(decoded.instruction.rflags_read()),
    }
}

/// The flags whose former values are lost in every case.
///
/// A shift by a count of zero changes nothing, nor does a repeated comparison of no elements. Flags that the manuals
/// call undefined count as left: many processors leave them, such as all six by `div`, all but the carry by `bt`, or
/// the overflow by `lzcnt`, each family others.
pub fn killed(decoded: &Decoded) -> FlagSet {
    if decoded.flow() != Flow::Next || may_leave_flags(decoded) {
        return FlagSet::NONE;
    }
    let instruction = &decoded.instruction;
    let modified = match sets_undefined_flags(instruction.mnemonic()) {
        true => instruction.rflags_modified(),
        false => instruction.rflags_written() | instruction.rflags_cleared() | instruction.rflags_set(),
    };
    FlagSet::from_iced(modified)
}

/// Whether all processors derive the flags that the manuals call undefined from the operands: the adjust flag of logic,
/// and the overflow of longer shifts.
fn sets_undefined_flags(mnemonic: Mnemonic) -> bool {
    matches!(
        mnemonic,
        Mnemonic::And
            | Mnemonic::Or
            | Mnemonic::Xor
            | Mnemonic::Test
            | Mnemonic::Andn
            | Mnemonic::Shl
            | Mnemonic::Shr
            | Mnemonic::Sar
            | Mnemonic::Sal
    )
}

fn may_leave_flags(decoded: &Decoded) -> bool {
    let instruction = &decoded.instruction;
    if instruction.is_string_instruction() && (instruction.has_rep_prefix() || instruction.has_repne_prefix())
    {
        return true;
    }
    let shifts = matches!(
        instruction.mnemonic(),
        Mnemonic::Shl
            | Mnemonic::Shr
            | Mnemonic::Sar
            | Mnemonic::Sal
            | Mnemonic::Rol
            | Mnemonic::Ror
            | Mnemonic::Rcl
            | Mnemonic::Rcr
            | Mnemonic::Shld
            | Mnemonic::Shrd
    );
    shifts && !shifts_by_some(instruction)
}

/// Whether the count is written in the instruction and is not zero once the processor has masked it.
fn shifts_by_some(instruction: &iced_x86::Instruction) -> bool {
    let last = instruction.op_count().saturating_sub(1);
    instruction.op_kind(last) != OpKind::Register && instruction.immediate(last) & 0x1f != 0
}

/// The flags that are live before a run of instructions, if `after` are live behind it.
pub fn live_before(block: &[Decoded], after: FlagSet) -> FlagSet {
    block.iter().rev().fold(after, |live, decoded| live.without(killed(decoded)).or(read(decoded)))
}

/// The effect of some code on flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outlook {
    /// The flags that it reads.
    pub read: FlagSet,
    /// The flags that were neither read nor lost up to where the look ended.
    pub open: FlagSet,
    /// Where control goes from there, and the address of the next instruction; nothing if the look
    /// did not get to an end of a block.
    pub then: Option<(Flow, u64)>,
}

/// Looks at the code that begins with `bytes`, at most `most` instructions.
pub fn look(bytes: &[u8], address: u64, most: usize) -> Outlook {
    let mut outlook = Outlook { read: FlagSet::NONE, open: FlagSet::ALL, then: None };
    let mut seen = 0;
    decode_while(bytes, address, |decoded| {
        let read = read(decoded);
        outlook.read = outlook.read.or(FlagSet(read.0 & outlook.open.0));
        outlook.open = outlook.open.without(killed(decoded)).without(read);
        outlook.then = decoded.ends_block().then(|| (decoded.flow(), decoded.next()));
        seen += 1;
        seen < most && !outlook.open.misses(FlagSet::ALL)
    });
    outlook
}

/// The first place in the block where `inc` may stand without being noticed, if `after` are live
/// behind the block. Instructions are counted from 0.
pub fn place_for_inc(block: &[Decoded], after: FlagSet) -> Option<usize> {
    let mut live = after;
    let mut found = None;
    for (at, decoded) in block.iter().enumerate().rev() {
        live = live.without(killed(decoded)).or(read(decoded));
        if live.misses(FlagSet::OF_INC) {
            found = Some(at);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::block;

    #[test]
    fn a_comparison_kills_all_flags_and_a_branch_reads_some() {
        // cmp eax, ebx; je
        let code = block(&[0x39, 0xd8, 0x74, 0]);
        assert_eq!(killed(&code[0]), FlagSet::ALL);
        assert_eq!(live_before(&code, FlagSet::ALL), FlagSet::NONE);
        assert_eq!(place_for_inc(&code, FlagSet::ALL), Some(0));
        assert_eq!(place_for_inc(&code[1..], FlagSet::NONE), None);
    }

    #[test]
    fn a_shift_by_cl_or_by_nothing_kills_no_flag() {
        for bytes in [&[0xd3, 0xe0][..], &[0xc1, 0xe0, 0], &[0xc1, 0xe0, 0x20], &[0xf3, 0xa6]] {
            assert_eq!(killed(&block(bytes)[0]), FlagSet::NONE, "{bytes:02x?}");
        }
        assert_eq!(killed(&block(&[0xc1, 0xe0, 3])[0]), FlagSet::ALL);
        assert_ne!(killed(&block(&[0xd1, 0xe0])[0]), FlagSet::NONE);
    }

    /// Its overflow came out changed on a processor where `lzcnt` leaves it.
    #[test]
    fn flags_that_are_undefined_are_left() {
        let some = |bits: u32| FlagSet::from_iced(bits);
        let all_but = |bits| FlagSet::ALL.without(some(bits));
        let (cf, zf) = (RflagsBits::CF, RflagsBits::ZF);
        let expected: [(&str, &[u8], FlagSet); 10] = [
            ("lzcnt", &[0xf3, 0x48, 0x0f, 0xbd, 0xc3], some(cf | zf)),
            ("tzcnt", &[0xf3, 0x48, 0x0f, 0xbc, 0xc3], some(cf | zf)),
            ("bsf", &[0x48, 0x0f, 0xbc, 0xc3], some(zf)),
            ("bsr", &[0x48, 0x0f, 0xbd, 0xc3], some(zf)),
            ("bt", &[0x48, 0x0f, 0xa3, 0xc8], some(cf)),
            ("div", &[0x48, 0xf7, 0xf6], FlagSet::NONE),
            ("imul", &[0x48, 0x0f, 0xaf, 0xc3], some(cf | RflagsBits::OF)),
            ("rol", &[0x48, 0xc1, 0xc0, 3], some(cf)),
            ("popcnt", &[0xf3, 0x48, 0x0f, 0xb8, 0xc3], FlagSet::ALL),
            ("test", &[0x48, 0x85, 0xc0], all_but(0)),
        ];
        for (name, bytes, killed_flags) in expected {
            assert_eq!(killed(&block(bytes)[0]), killed_flags, "{name}");
        }
    }

    #[test]
    fn the_carry_may_live_across_an_increment() {
        // mov [rax], ecx; adc eax, ebx: the carry is read, the others are lost.
        let code = block(&[0x89, 0x08, 0x11, 0xd8]);
        assert_eq!(place_for_inc(&code, FlagSet::ALL), Some(0));
        // setz al reads what inc would change.
        assert_eq!(place_for_inc(&block(&[0x0f, 0x94, 0xc0]), FlagSet::ALL), None);
    }

    #[test]
    fn a_look_tells_what_stays_open() {
        // setc al; ret
        let outlook = look(&[0x0f, 0x92, 0xc0, 0xc3], 0x100, 24);
        assert_eq!(outlook.read, FlagSet(CARRY));
        assert_eq!(outlook.open, FlagSet::OF_INC);
        assert_eq!(outlook.then, Some((Flow::Return(0), 0x104)));
        // xor eax, eax; ...
        let outlook = look(&[0x31, 0xc0, 0x90], 0x100, 24);
        assert_eq!((outlook.read, outlook.open, outlook.then), (FlagSet::NONE, FlagSet::NONE, None));
    }

    #[test]
    fn a_system_call_reads_all_flags() {
        assert_eq!(read(&block(&[0x0f, 0x05])[0]), FlagSet::ALL);
    }
}
