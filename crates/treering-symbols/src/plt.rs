//! Names for the stubs through which a binary calls functions of other libraries.

use std::collections::HashMap;

use object::{
    Architecture, Object as _, ObjectSection as _, ObjectSymbol as _, ObjectSymbolTable as _,
    RelocationTarget,
};

use crate::object_file::Object;

/// The procedure linkage table: stubs that jump to where a slot of the global offset table points.
///
/// Which function a stub belongs to is found from the slot that its own instructions read and the
/// dynamic relocation of that slot, so every layout of the table is understood (lazy, `-z now`,
/// with or without control-flow protection). System V ABI, x86-64 supplement, section 5.2.
#[derive(Debug, Default)]
pub(crate) struct Plt {
    stubs: Vec<Stub>,
}

#[derive(Debug)]
struct Stub {
    start: u64,
    end: u64,
    name: String,
}

/// The sections that stubs are in.
const SECTIONS: [&str; 4] = [".plt", ".plt.sec", ".plt.got", ".iplt"];

/// Finds stubs in code that starts at an address: for each, where it starts in the code and the
/// slot that it jumps through.
type Decoder = fn(&[u8], u64) -> Vec<(usize, u64)>;

/// The size of the largest stub.
const LARGEST: u64 = 16;

impl Plt {
    /// Finds the stubs of x86-64 and AArch64 binaries.
    pub(crate) fn read(object: &Object<'_>) -> Self {
        let decode: Decoder = match object.architecture() {
            Architecture::X86_64 => stubs_of_x86_64,
            Architecture::Aarch64 => stubs_of_aarch64,
            _ => return Self::default(),
        };
        let slots = slots(object);
        let mut stubs = Vec::new();
        for section in SECTIONS.iter().filter_map(|name| object.section_by_name(name)) {
            let (Ok(code), first) = (section.data(), section.address()) else { continue };
            let named = |(at, slot): (usize, u64)| Some((first.wrapping_add(at as u64), slots.get(&slot)?));
            let found: Vec<_> = decode(code, first).into_iter().filter_map(named).collect();
            let last = first.wrapping_add(code.len() as u64);
            let ends = found.iter().skip(1).map(|&(start, _)| start).chain([last]);
            stubs.extend(found.iter().zip(ends).map(|(&(start, name), end)| Stub {
                start,
                end: end.min(start.saturating_add(LARGEST)),
                name: format!("{name}@plt"),
            }));
        }
        stubs.sort_by_key(|stub| stub.start);
        Self { stubs }
    }

    /// The start and name of the stub at an address.
    pub(crate) fn lookup(&self, address: u64) -> Option<(u64, &str)> {
        let after = self.stubs.partition_point(|stub| stub.start <= address);
        let stub = self.stubs.get(after.checked_sub(1)?)?;
        (address < stub.end).then_some((stub.start, &stub.name))
    }

    /// Where the first stub behind an address begins.
    pub(crate) fn next_start(&self, address: u64) -> u64 {
        let next = self.stubs.partition_point(|stub| stub.start <= address);
        self.stubs.get(next).map_or(u64::MAX, |stub| stub.start)
    }
}

/// The name of the function whose address the loader writes into each slot.
fn slots(object: &Object<'_>) -> HashMap<u64, String> {
    let (Some(table), Some(relocations)) = (object.dynamic_symbol_table(), object.dynamic_relocations())
    else {
        return HashMap::new();
    };
    let named = relocations.filter_map(|(slot, relocation)| {
        let RelocationTarget::Symbol(index) = relocation.target() else { return None };
        let symbol = table.symbol_by_index(index).ok()?;
        let name = symbol.name().ok().filter(|name| !name.is_empty())?;
        Some((slot, name.to_owned()))
    });
    named.collect()
}

/// What may come before the jump of a stub: `endbr64`, and the prefix `bnd`.
const ENTRIES_OF_X86_64: [&[u8]; 3] = [&[0xf3, 0x0f, 0x1e, 0xfa, 0xf2], &[0xf3, 0x0f, 0x1e, 0xfa], &[0xf2]];

/// Stubs with `jmp *displacement(%rip)`, which is `ff 25`. Intel's manual, volume 2, JMP.
fn stubs_of_x86_64(code: &[u8], first: u64) -> Vec<(usize, u64)> {
    let jumps = code.windows(6).enumerate().filter(|(_, window)| window.starts_with(&[0xff, 0x25]));
    let stub = |(at, window): (usize, &[u8])| {
        let displacement = i32::from_le_bytes([window[2], window[3], window[4], window[5]]);
        let next = first.wrapping_add(at as u64 + 6);
        let entry = ENTRIES_OF_X86_64.iter().find(|entry| code[..at].ends_with(entry));
        (at - entry.map_or(0, |entry| entry.len()), next.wrapping_add_signed(displacement.into()))
    };
    jumps.map(stub).collect()
}

/// Stubs with `adrp x16, page` and `ldr x17, [x16, #offset]`.
/// Arm Architecture Reference Manual, C6.2: ADRP, LDR (immediate).
fn stubs_of_aarch64(code: &[u8], first: u64) -> Vec<(usize, u64)> {
    let word = |bytes: &[u8]| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    let words: Vec<u32> = code.chunks_exact(4).map(word).collect();
    let is_stub = |pair: &[u32]| pair[0] & 0x9f00_001f == 0x9000_0010 && pair[1] & 0xffc0_03ff == 0xf940_0211;
    let stubs = words.windows(2).enumerate().filter(|(_, pair)| is_stub(pair));
    let stub = |(at, pair): (usize, &[u32])| {
        let (adrp, ldr) = (pair[0], pair[1]);
        let pages = i64::from((((adrp >> 5) & 0x7_ffff) << 2 | (adrp >> 29) & 3).cast_signed() << 11 >> 11);
        let page = (first.wrapping_add(4 * at as u64) & !0xfff).wrapping_add_signed(pages << 12);
        (4 * at, page.wrapping_add(u64::from((ldr >> 10) & 0xfff) * 8))
    };
    stubs.map(stub).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stubs_of_x86_64_are_found_in_every_layout() {
        let lazy = [0xff, 0x25, 0xe2, 0x2f, 0, 0, 0x68, 0, 0, 0, 0, 0xe9, 0, 0, 0, 0];
        assert_eq!(stubs_of_x86_64(&lazy, 0x1030), [(0, 0x4018)]);
        let protected = [0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, 0xdd, 0x2f, 0, 0, 0x0f, 0x1f, 0x44, 0, 0];
        assert_eq!(stubs_of_x86_64(&protected, 0x1030), [(0, 0x4018)]);
        let two = [0xff, 0x25, 0, 0, 0, 0, 0x66, 0x90, 0xff, 0x25, 0xf8, 0xff, 0xff, 0xff, 0x66, 0x90];
        assert_eq!(stubs_of_x86_64(&two, 0x1000), [(0, 0x1006), (8, 0x1006)]);
        assert_eq!(stubs_of_x86_64(&[0x90, 0xff], 0), []);
        assert_eq!(stubs_of_x86_64(&[0xff, 0x25, 1, 2], 0), []);
    }

    #[test]
    fn stubs_of_aarch64_are_found() {
        // adrp x16, 0x11000 (from 0x5d0); ldr x17, [x16, #0xfc8]; add x16, x16, #0xfc8; br x17
        let stub =
            [0x90, 0x00, 0x00, 0xb0, 0x11, 0xe6, 0x47, 0xf9, 0x10, 0x22, 0x3f, 0x91, 0x20, 0x02, 0x1f, 0xd6];
        assert_eq!(stubs_of_aarch64(&stub, 0x5d0), [(0, 0x11fc8)]);
    }
}
