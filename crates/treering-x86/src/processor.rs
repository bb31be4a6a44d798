//! Processors as a program sees them: the levels of the x86-64 psABI, and the answers of `cpuid` and `xgetbv` of a
//! processor that has such a level and nothing else.
//!
//! Programs choose code by these answers, so equal answers make them choose equally on any machine. Everything that
//! differs between processors of a level is left out or has one value: the vendor and model, caches (they set the
//! limits from which `memcpy` works otherwise), identifiers, topology, and `rep movsb` being fast (`ERMS`, `FSRM`):
//! a program that copies by it executes one instruction, however much it copies.

use iced_x86::{CpuidFeature as F, Instruction, Mnemonic};

use crate::{Decoded, Register};

/// A level of the x86-64 psABI (section 3.1.1, "Processor Architecture").
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// With SSE4.2 and `popcnt`.
    V2,
    /// With AVX2 as well.
    V3,
    /// With AVX-512 as well.
    V4,
}

/// An instruction that tells something of the processor, or whose effect depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inquiry {
    /// `cpuid`.
    Cpuid,
    /// `xgetbv`.
    Xgetbv,
    /// `rdtsc`.
    Clock,
    /// `rdtscp`.
    ClockAndProcessor,
    /// `rdpid`, which writes to this register.
    Processor(Register),
    /// `xsave` and its kin: they save all parts of the state that the real processor has and their mask names.
    Save,
}

impl Decoded {
    /// The inquiry that the instruction is, if it is one.
    pub fn inquiry(&self) -> Option<Inquiry> {
        Some(match self.instruction.mnemonic() {
            Mnemonic::Cpuid => Inquiry::Cpuid,
            Mnemonic::Xgetbv => Inquiry::Xgetbv,
            Mnemonic::Rdtsc => Inquiry::Clock,
            Mnemonic::Rdtscp => Inquiry::ClockAndProcessor,
            Mnemonic::Rdpid => Inquiry::Processor(Register::holding(self.instruction.op0_register())?),
            Mnemonic::Xsave
            | Mnemonic::Xsave64
            | Mnemonic::Xsavec
            | Mnemonic::Xsavec64
            | Mnemonic::Xsaveopt
            | Mnemonic::Xsaveopt64 => Inquiry::Save,
            _ => return None,
        })
    }

    /// The feature that the instruction needs and that a processor of the level lacks, if there is one.
    pub fn feature_beyond(&self, level: Level) -> Option<String> {
        beyond(&self.instruction, level).map(|feature| format!("{feature:?}"))
    }
}

/// The bits of `cpuid` 1 in ECX: SSE3, SSSE3, CMPXCHG16B, SSE4.1, SSE4.2, POPCNT; from v3 on also FMA, MOVBE, XSAVE,
/// OSXSAVE, AVX, F16C.
const FEATURES: [u32; 2] = [0x0098_2201, 0x3c40_1000];
/// The features in EDX, from FPU to SSE2, without hyper-threading.
const OLD_FEATURES: u32 = 0x078b_fbff;
/// The features of `cpuid` 7 in EBX: BMI1, AVX2, BMI2; from v4 on also AVX-512 F, DQ, CD, BW, VL.
const EXTENDED: [u32; 2] = [0x0000_0128, 0xd003_0000];
/// The highest leaves.
const LAST: u32 = 0xd;
const LAST_EXTENDED: u32 = 0x8000_0008;
/// The lengths of the state: with AVX; with AVX-512, compacted and not. The latter has room for every processor's order.
const WITH_AVX: u32 = 0x340;
const WITH_AVX512: u32 = 0x980;
const WITH_AVX512_AND_GAPS: u32 = 0xa80;

impl Level {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::V2, Self::V3, Self::V4];

    /// Its name, as in compilers' `-march`.
    pub fn name(self) -> &'static str {
        match self {
            Self::V2 => "x86-64-v2",
            Self::V3 => "x86-64-v3",
            Self::V4 => "x86-64-v4",
        }
    }

    /// The answer of `cpuid`, as EAX, EBX, ECX, EDX.
    pub fn cpuid(self, leaf: u32, subleaf: u32) -> [u32; 4] {
        match (leaf, subleaf) {
            // "GenuineIntel": one vendor's code in the C library, on every processor.
            (0, _) => [LAST, 0x756e_6547, 0x6c65_746e, 0x4965_6e69],
            (1, _) => [self.model(), 0x0001_0800, self.features(), OLD_FEATURES],
            (2, _) => [0x7603_6301, 0x00f0_b5ff, 0, 0x00c1_0000],
            (4, 0) => [0x0400_0121, 0x01c0_003f, 0x3f, 0],
            (4, 1) => [0x0400_0122, 0x01c0_003f, 0x3f, 0],
            (4, 2) => [0x0400_0143, 0x01c0_003f, 0x1ff, 0],
            (4, 3) => [0x0400_4163, 0x03c0_003f, 0x1fff, 6],
            (7, 0) => [0, self.extended(), 0, 0],
            (0xd, _) if self >= Self::V3 => self.state(subleaf),
            (0x8000_0000, _) => [LAST_EXTENDED, 0, 0, 0],
            (0x8000_0001, _) => {
                // LAHF in 64-bit mode, LZCNT from v3 on; `syscall`, no-execute, RDTSCP, 64-bit mode.
                let long = if self >= Self::V3 { 1 << 5 } else { 0 };
                [0, 0, 1 | long, 0x2810_0800]
            }
            (0x8000_0006, _) => [0, 0, 0x0100_6040, 0],
            (0x8000_0007, _) => [0, 0, 0, 0x100],
            (0x8000_0008, _) => [0x3030, 0, 0, 0],
            _ => [0; 4],
        }
    }

    /// The answer of `xgetbv` for register 0: the parts of the state that the system keeps.
    pub fn kept_state(self) -> u32 {
        match self {
            Self::V2 => 0x3,
            Self::V3 => 0x7,
            Self::V4 => 0xe7,
        }
    }

    /// The value that the kernel tells as `AT_HWCAP`.
    pub fn hardware_capabilities(self) -> u64 {
        OLD_FEATURES.into()
    }

    fn model(self) -> u32 {
        if self == Self::V4 { 0x0005_0654 } else { 0x0003_06c3 }
    }

    fn features(self) -> u32 {
        FEATURES[0] | if self >= Self::V3 { FEATURES[1] } else { 0 }
    }

    fn extended(self) -> u32 {
        match self {
            Self::V2 => 0,
            Self::V3 => EXTENDED[0],
            Self::V4 => EXTENDED[0] | EXTENDED[1],
        }
    }

    /// Leaf 13: where the parts of the state lie. `xsavec` is there: without it, the C library would save by `xsave`.
    fn state(self, subleaf: u32) -> [u32; 4] {
        const SAVEC: u32 = 1 << 1;
        let is_long = self == Self::V4;
        match subleaf {
            0 if is_long => [self.kept_state(), WITH_AVX512_AND_GAPS, WITH_AVX512_AND_GAPS, 0],
            0 => [self.kept_state(), WITH_AVX, WITH_AVX, 0],
            1 => [1 | SAVEC, if is_long { WITH_AVX512 } else { WITH_AVX }, 0, 0],
            2 => [0x100, 0x240, 0, 0],
            5 if is_long => [0x40, 0x440, 0, 0],
            6 if is_long => [0x200, 0x480, 0, 0],
            7 if is_long => [0x400, 0x680, 0, 0],
            _ => [0; 4],
        }
    }
}

impl std::fmt::Display for Level {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// The instructions that every processor executes, be it as a hint that does nothing (`endbr64`, `rdssp`, `prefetchw`), and what a
/// translator answers (`cpuid`, `rdtsc`).
const OF_ALL: &[F] = &[
    F::INTEL8086,
    F::INTEL8086_ONLY,
    F::INTEL186,
    F::INTEL286,
    F::INTEL386,
    F::INTEL486,
    F::X64,
    F::CET_IBT,
    F::CET_SS,
    F::CLDEMOTE,
    F::CLFSH,
    F::CMOV,
    F::CMPXCHG16B,
    F::CPUID,
    F::CX8,
    F::FPU,
    F::FPU287,
    F::FPU387,
    F::FXSR,
    F::MMX,
    F::MSR,
    F::MULTIBYTENOP,
    F::PAUSE,
    F::POPCNT,
    F::PREFETCHW,
    F::PREFETCHITI,
    F::RDTSCP,
    F::SEP,
    F::SSE,
    F::SSE2,
    F::SSE3,
    F::SSSE3,
    F::SSE4_1,
    F::SSE4_2,
    F::SYSCALL,
    F::TSC,
];
const OF_V3: &[F] =
    &[F::AVX, F::AVX2, F::BMI1, F::BMI2, F::F16C, F::FMA, F::LZCNT, F::MOVBE, F::XSAVE, F::XSAVEC];
const OF_V4: &[F] = &[F::AVX512F, F::AVX512BW, F::AVX512CD, F::AVX512DQ, F::AVX512VL];

fn beyond(instruction: &Instruction, level: Level) -> Option<F> {
    let is_there = |feature: &F| {
        OF_ALL.contains(feature)
            || level >= Level::V3 && OF_V3.contains(feature)
            || level >= Level::V4 && OF_V4.contains(feature)
    };
    match instruction.mnemonic() {
        // Compilers write it as `rep bsf` for all processors, where both give the same.
        Mnemonic::Tzcnt => None,
        _ => instruction.cpuid_features().iter().find(|feature| !is_there(feature)).copied(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode;

    fn decoded(bytes: &[u8]) -> Decoded {
        let mut block = Vec::new();
        decode(bytes, 0, 1, &mut block);
        block[0]
    }

    /// The features of each level by their bits, as the manuals number them.
    #[test]
    fn levels_have_the_features_of_the_psabi_and_no_others() {
        let [_, _, c, _] = Level::V2.cpuid(1, 0);
        let bits = |value: u32| (0..32).filter(|bit| value >> bit & 1 != 0).collect::<Vec<_>>();
        // SSE3 0, SSSE3 9, CMPXCHG16B 13, SSE4.1 19, SSE4.2 20, POPCNT 23.
        assert_eq!(bits(c), [0, 9, 13, 19, 20, 23]);
        // FMA 12, MOVBE 22, XSAVE 26, OSXSAVE 27, AVX 28, F16C 29; no AES 25, RDRAND 30, hypervisor 31.
        for level in [Level::V3, Level::V4] {
            assert_eq!(bits(level.cpuid(1, 0)[2]), [0, 9, 12, 13, 19, 20, 22, 23, 26, 27, 28, 29], "{level}");
        }
        // BMI1 3, AVX2 5, BMI2 8; AVX-512 F 16, DQ 17, CD 28, BW 30, VL 31; no ERMS 9, RTM 11, SHA 29.
        assert_eq!(bits(Level::V2.cpuid(7, 0)[1]), [0; 0]);
        assert_eq!(bits(Level::V3.cpuid(7, 0)[1]), [3, 5, 8]);
        assert_eq!(bits(Level::V4.cpuid(7, 0)[1]), [3, 5, 8, 16, 17, 28, 30, 31]);
        for level in Level::ALL {
            // No FSRM (4), and no leaf that says more.
            assert_eq!(
                [level.cpuid(7, 0)[2..].to_vec(), level.cpuid(7, 1).to_vec()].concat(),
                [0; 6],
                "{level}"
            );
            let of_everyone = bits(level.cpuid(0x8000_0001, 0)[2]);
            assert_eq!(of_everyone, if level == Level::V2 { vec![0] } else { vec![0, 5] }, "{level}");
            assert!(
                [0xb, 0x1a, 0x1f, 0x4000_0000, 0x8000_001d]
                    .iter()
                    .all(|&leaf| level.cpuid(leaf, 0) == [0; 4])
            );
        }
    }

    #[test]
    fn the_state_has_room_for_its_parts() {
        for level in [Level::V3, Level::V4] {
            let [kept, room, ..] = level.cpuid(0xd, 0);
            assert_eq!(kept, level.kept_state());
            let parts = (2..32).map(|part| level.cpuid(0xd, part)).filter(|part| part[0] != 0);
            let (mut compact, mut end) = (0x240, 0x240);
            for [length, at, ..] in parts {
                compact += length;
                end = end.max(at + length);
            }
            assert_eq!([level.cpuid(0xd, 1)[1], room], [compact, end], "{level}");
        }
    }

    #[test]
    fn instructions_beyond_a_level_are_named() {
        let beyond =
            |bytes: &[u8]| Level::ALL.map(|level| decoded(bytes).feature_beyond(level).unwrap_or_default());
        // aesenc xmm0, xmm1; vpaddd ymm0, ymm1, ymm2; vpaddd zmm0, zmm1, zmm2; rdrand eax
        assert_eq!(beyond(&[0x66, 0x0f, 0x38, 0xdc, 0xc1]), ["AES"; 3]);
        assert_eq!(beyond(&[0xc5, 0xf5, 0xfe, 0xc2]), ["AVX2", "", ""]);
        assert_eq!(beyond(&[0x62, 0xf1, 0x75, 0x48, 0xfe, 0xc2]), ["AVX512F", "AVX512F", ""]);
        assert_eq!(beyond(&[0x0f, 0xc7, 0xf0]), ["RDRAND"; 3]);
        // popcnt eax, ecx; endbr64; rep bsf eax, ecx; cpuid; prefetchw [rax]
        let everywhere: [&[u8]; 5] = [
            &[0xf3, 0x0f, 0xb8, 0xc1],
            &[0xf3, 0x0f, 0x1e, 0xfa],
            &[0xf3, 0x0f, 0xbc, 0xc1],
            &[0x0f, 0xa2],
            &[0x0f, 0x0d, 0x08],
        ];
        everywhere.iter().for_each(|bytes| assert_eq!(beyond(bytes), [""; 3], "{bytes:x?}"));
    }

    #[test]
    fn inquiries_are_found() {
        assert_eq!(decoded(&[0x0f, 0xa2]).inquiry(), Some(Inquiry::Cpuid));
        assert_eq!(decoded(&[0x0f, 0x01, 0xd0]).inquiry(), Some(Inquiry::Xgetbv));
        assert_eq!(decoded(&[0x0f, 0x31]).inquiry(), Some(Inquiry::Clock));
        assert_eq!(decoded(&[0xf3, 0x0f, 0xc7, 0xf9]).inquiry(), Some(Inquiry::Processor(Register::RCX)));
        // xsavec64 [rsp+0x40]
        assert_eq!(decoded(&[0x48, 0x0f, 0xc7, 0x64, 0x24, 0x40]).inquiry(), Some(Inquiry::Save));
        assert_eq!(decoded(&[0x90]).inquiry(), None);
    }
}
