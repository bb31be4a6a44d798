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

impl Plt {
    /// Finds the stubs of x86-64 and AArch64 binaries.
    pub(crate) fn read(object: &Object<'_>) -> Self {
        let decode: fn(&[u8], u64) -> Option<u64> = match object.architecture() {
            Architecture::X86_64 => slot_of_x86_64,
            Architecture::Aarch64 => slot_of_aarch64,
            _ => return Self::default(),
        };
        let slots = slots(object);
        let mut stubs = Vec::new();
        for section in SECTIONS.iter().filter_map(|name| object.section_by_name(name)) {
            let (Ok(code), start) = (section.data(), section.address()) else { continue };
            let size = if section.name() == Ok(".plt.got") { 8 } else { 16 };
            stubs.extend(code.chunks(size).zip(0_u64..).filter_map(|(code, at)| {
                let start = start.wrapping_add(at * size as u64);
                let name = slots.get(&decode(code, start)?)?;
                Some(Stub { start, end: start.wrapping_add(code.len() as u64), name: format!("{name}@plt") })
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

/// The slot that the stub at `start` jumps through: `jmp *displacement(%rip)`, `ff 25`, wherever
/// it is in the stub. Intel's manual, volume 2, JMP.
fn slot_of_x86_64(code: &[u8], start: u64) -> Option<u64> {
    let at = code.windows(2).position(|window| window == [0xff, 0x25])?;
    let displacement = i32::from_le_bytes(*code.get(at + 2..)?.first_chunk()?);
    let next = start.wrapping_add(at as u64 + 6);
    Some(next.wrapping_add_signed(displacement.into()))
}

/// The slot that the stub at `start` loads from: `adrp x16, page` and `ldr x17, [x16, #offset]`.
/// Arm Architecture Reference Manual, C6.2: ADRP, LDR (immediate).
fn slot_of_aarch64(code: &[u8], start: u64) -> Option<u64> {
    let words: Vec<u32> =
        code.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect();
    let at = words
        .windows(2)
        .position(|pair| pair[0] & 0x9f00_001f == 0x9000_0010 && pair[1] & 0xffc0_03ff == 0xf940_0211)?;
    let (adrp, ldr) = (words[at], words[at + 1]);
    let pages = i64::from(((adrp >> 5 & 0x7_ffff) << 2 | adrp >> 29 & 3).cast_signed() << 11 >> 11);
    let page = (start.wrapping_add(4 * at as u64) & !0xfff).wrapping_add_signed(pages << 12);
    Some(page.wrapping_add(u64::from(ldr >> 10 & 0xfff) * 8))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slot_of_an_x86_64_stub_is_found_in_every_layout() {
        let lazy = [0xff, 0x25, 0xe2, 0x2f, 0, 0, 0x68, 0, 0, 0, 0, 0xe9, 0, 0, 0, 0];
        assert_eq!(slot_of_x86_64(&lazy, 0x1030), Some(0x4018));
        let protected = [0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, 0xdd, 0x2f, 0, 0, 0x0f, 0x1f, 0x44, 0, 0];
        assert_eq!(slot_of_x86_64(&protected, 0x1030), Some(0x4018));
        assert_eq!(slot_of_x86_64(&[0x90, 0xff], 0), None);
        assert_eq!(slot_of_x86_64(&[0xff, 0x25, 1, 2], 0), None);
    }

    #[test]
    fn the_slot_of_an_aarch64_stub_is_found() {
        // adrp x16, 0x11000 (from 0x5d0); ldr x17, [x16, #0xfc8]; add x16, x16, #0xfc8; br x17
        let stub =
            [0x90, 0x00, 0x00, 0xb0, 0x11, 0xe6, 0x47, 0xf9, 0x10, 0x22, 0x3f, 0x91, 0x20, 0x02, 0x1f, 0xd6];
        assert_eq!(slot_of_aarch64(&stub, 0x5d0), Some(0x11fc8));
    }
}
