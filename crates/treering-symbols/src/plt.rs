//! Names for the stubs through which a binary calls functions of other libraries.

use std::collections::{HashMap, HashSet};

use object::{
    Architecture, Object as _, ObjectSection as _, ObjectSymbol as _, ObjectSymbolTable as _,
    RelocationTarget,
};

use crate::object_file::Object;

/// The procedure linkage table: stubs that jump to where a slot of the global offset table points.
///
/// The function of a stub is found from the slot that its own instructions read and the
/// dynamic relocation of that slot, so every layout of the table is understood (lazy, `-z now`,
/// with or without control-flow protection). System V ABI, x86-64 supplement, section 5.2.
///
/// A stub is named as objdump and gdb name it: `sprintf@plt` after the symbol of its slot. Where the loader asks a
/// function of the binary itself what to write into the slot (`IRELATIVE`), the name is that function's, or, if that
/// has no symbol, `*ABS*+0x9f550@plt`. The head of a table, which leads into the loader, is [`HEAD`].
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

/// The suffix of the names of stubs.
pub(crate) const STUB: &str = "@plt";
/// The name of the head of a table of stubs, as perf has it.
pub(crate) const HEAD: &str = ".plt";

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
        let relocations = Relocations::read(object);
        let mut slots = slots(object);
        slots.extend(relocations.chosen(object));
        let mut stubs = Vec::new();
        for section in SECTIONS.iter().filter_map(|name| object.section_by_name(name)) {
            let (Ok(code), first) = (section.data(), section.address()) else { continue };
            let stub = |slot: &u64| slots.get(slot).map(|name| format!("{name}{STUB}"));
            let named = |(at, slot): (usize, u64)| Some((at, stub(&slot)?));
            let mut found: Vec<_> = decode(code, first).into_iter().filter_map(named).collect();
            if object.architecture() == Architecture::X86_64 {
                let numbered = numbered_of_x86_64(code).into_iter();
                let slot_of = |number: u32| relocations.linkage.get(number as usize);
                found.extend(numbered.filter_map(|(at, number)| Some((at, stub(slot_of(number)?)?))));
                found.extend(head_of_x86_64(code).map(|at| (at, HEAD.to_owned())));
                found.sort_by_key(|(at, _)| *at);
            }
            let last = first.wrapping_add(code.len() as u64);
            let starts = || found.iter().map(|(at, _)| first.wrapping_add(*at as u64));
            let ends: Vec<u64> = starts().skip(1).chain([last]).collect();
            let bounds: Vec<(u64, u64)> = starts().zip(ends).collect();
            stubs.extend(found.into_iter().zip(bounds).map(|((_, name), (start, end))| Stub {
                start,
                end: end.min(start.saturating_add(LARGEST)),
                name,
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

/// Relocations of ELF files of 64 bits, as they stand in sections: those of programs that are linked statically are in
/// no dynamic table.
#[derive(Debug, Default)]
struct Relocations {
    /// The slots of the linkage table, by number.
    linkage: Vec<u64>,
    /// Slots whose contents a function chooses, and its address.
    chosen: Vec<(u64, u64)>,
}

impl Relocations {
    fn read(object: &Object<'_>) -> Self {
        let mut relocations = Self::default();
        let kind = match object.architecture() {
            Architecture::X86_64 => object::elf::R_X86_64_IRELATIVE,
            _ => object::elf::R_AARCH64_IRELATIVE,
        };
        for name in [".rela.plt", ".rela.dyn"] {
            let Some(section) = object.section_by_name(name).filter(|_| object.is_little_endian()) else {
                continue;
            };
            let entries = section.data().unwrap_or_default().as_chunks::<24>().0;
            for entry in entries {
                let [slot, info, addend] = [0, 8, 16].map(|at| {
                    let mut word = [0; 8];
                    word.copy_from_slice(&entry[at..at + 8]);
                    u64::from_le_bytes(word)
                });
                if name == ".rela.plt" {
                    relocations.linkage.push(slot);
                }
                if info as u32 == kind.0 {
                    relocations.chosen.push((slot, addend));
                }
            }
        }
        relocations
    }

    /// The names of slots whose contents a function chooses.
    fn chosen(&self, object: &Object<'_>) -> HashMap<u64, String> {
        let wanted: HashSet<u64> = self.chosen.iter().map(|&(_, function)| function).collect();
        let mut names: HashMap<u64, &str> = HashMap::new();
        if !wanted.is_empty() {
            let known = object.dynamic_symbols().chain(object.symbols());
            for symbol in known.filter(|symbol| wanted.contains(&symbol.address())) {
                let Some(name) = symbol.name().ok().filter(|name| !name.is_empty()) else { continue };
                let name = name.split('@').next().unwrap_or(name);
                // Several symbols may have one function: the one that users write comes first.
                let rank = |name: &str| (name.len() - name.trim_start_matches('_').len(), name.len());
                let known = names.entry(symbol.address()).or_insert(name);
                if (rank(name), name) < (rank(known), *known) {
                    *known = name;
                }
            }
        }
        let named = self.chosen.iter().map(|&(slot, function)| {
            let name = names.get(&function).map(|&name| name.to_owned());
            (slot, name.unwrap_or_else(|| format!("*ABS*+{function:#x}")))
        });
        named.collect()
    }
}

/// Where the head of a table is, if it has one: `push link_map(%rip)`, which is `ff 35`, and `jmp *resolver(%rip)`.
fn head_of_x86_64(code: &[u8]) -> Option<usize> {
    let jump = code.get(6..).map(|jump| jump.strip_prefix(&[0xf2]).unwrap_or(jump));
    (code.starts_with(&[0xff, 0x35]) && jump.is_some_and(|jump| jump.starts_with(&[0xff, 0x25]))).then_some(0)
}

/// Stubs that hand their number to the head of the table, `push number` and `jmp head`: a slot leads to its
/// stub before the first call through it. The number is that of the relocation.
fn numbered_of_x86_64(code: &[u8]) -> Vec<(usize, u32)> {
    const PROTECTED: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];
    let stub = |at: usize| {
        let stub = &code[at..];
        let rest = stub.strip_prefix(&PROTECTED).unwrap_or(stub);
        let number = rest.get(1..5).filter(|_| rest[0] == 0x68)?;
        let jump = rest.get(5..)?;
        let jump = jump.strip_prefix(&[0xf2]).unwrap_or(jump);
        let number = u32::from_le_bytes([number[0], number[1], number[2], number[3]]);
        jump.starts_with(&[0xe9]).then_some((at, number))
    };
    (0..code.len()).step_by(LARGEST as usize).filter_map(stub).collect()
}

/// The instructions that may come before the jump of a stub: `endbr64`, and the prefix `bnd`.
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
    fn heads_and_numbered_stubs_of_x86_64_are_found() {
        let head = [0xff, 0x35, 0xca, 0x2f, 0, 0, 0xff, 0x25, 0xcc, 0x2f, 0, 0, 0x0f, 0x1f, 0x40, 0];
        let protected = [0xff, 0x35, 0xca, 0x2f, 0, 0, 0xf2, 0xff, 0x25, 0xcc, 0x2f, 0, 0, 0x0f, 0x1f, 0];
        let lazy = [0xff, 0x25, 0xe2, 0x2f, 0, 0, 0x68, 0, 0, 0, 0, 0xe9, 0, 0, 0, 0];
        assert_eq!([head, protected, lazy].map(|code| head_of_x86_64(&code)), [Some(0), Some(0), None]);
        let numbered = [0xf3, 0x0f, 0x1e, 0xfa, 0x68, 7, 1, 0, 0, 0xf2, 0xe9, 0, 0, 0, 0, 0x90];
        let bare = [0x68, 9, 0, 0, 0, 0xe9, 0, 0, 0, 0, 0x66, 0x90, 0x90, 0x90, 0x90, 0x90];
        let code = [protected, numbered, bare, lazy].concat();
        assert_eq!(numbered_of_x86_64(&code), [(16, 0x107), (32, 9)]);
        assert_eq!(numbered_of_x86_64(&numbered[..9]), []);
    }

    #[test]
    fn stubs_of_aarch64_are_found() {
        // adrp x16, 0x11000 (from 0x5d0); ldr x17, [x16, #0xfc8]; add x16, x16, #0xfc8; br x17
        let stub =
            [0x90, 0x00, 0x00, 0xb0, 0x11, 0xe6, 0x47, 0xf9, 0x10, 0x22, 0x3f, 0x91, 0x20, 0x02, 0x1f, 0xd6];
        assert_eq!(stubs_of_aarch64(&stub, 0x5d0), [(0, 0x11fc8)]);
    }
}
