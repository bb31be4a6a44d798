//! Where functions begin, according to the files of code.
//!
//! A jump to a function's beginning may be a tail call. The beginnings depend only on the file, so a tree
//! does not depend on the order of translation. Unwind tables have an entry for each function, but also for
//! the rarely executed parts that compilers move away from a function. So a function begins at an entry if
//! the file calls or points to it, if it is exported, or if the entry describes the stack at a function's
//! entry: some functions are only jumped to. Without unwind entries, a function begins where calls lead, or
//! at an exported symbol. Each stub of a linkage table is a function, although all of a table share an entry.
//! Strippable symbols are not used: a program has the same tree without them.
//!
//! The tables are `.eh_frame_hdr` and `.eh_frame` of the Linux Standard Base, Core, section 10.6.

use std::cell::RefCell;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameHdr, LittleEndian, Pointer, UnwindContext, UnwindSection as _,
    X86_64,
};
use hashbrown::HashMap;
use object::read::ReadCache;
use object::read::elf::ElfFile64;
use object::{
    Endianness, Object as _, ObjectSection as _, ObjectSegment as _, ObjectSymbol as _, RelocationFlags,
    RelocationTarget, SymbolKind, elf,
};

use crate::program::file_version::Version;
use crate::program::region::Region;

/// Where the functions of a file begin, as sorted file offsets.
#[derive(Debug, Default)]
pub(crate) struct FunctionStarts {
    functions: Vec<u32>,
    /// The same, with the beginnings of all other unwind entries.
    borders: Vec<u32>,
}

/// The function starts of all files that were read.
#[derive(Debug, Clone, Default)]
pub(crate) struct FileFunctionStarts(Rc<RefCell<HashMap<PathBuf, Met>>>);

/// The version of a file when it was read, and its function starts, if it has any.
type Met = (Version, Option<Rc<FunctionStarts>>);

impl FileFunctionStarts {
    /// The function starts of a region's file; nothing if the region has no file, or the file cannot be read.
    pub(crate) fn of(&self, region: &Region) -> Option<Rc<FunctionStarts>> {
        let path = region.path().filter(|_| !region.vdso)?;
        let version = Version::of(&path)?;
        let mut files = self.0.borrow_mut();
        if let Some((of, starts)) = files.get(&path)
            && *of == version
        {
            return starts.clone();
        }
        let starts = FunctionStarts::read(&path).map(Rc::new);
        files.insert(path, (version, starts.clone()));
        starts
    }
}

impl FunctionStarts {
    /// Whether a function begins at an offset.
    pub(crate) fn is_function(&self, offset: u32) -> bool {
        self.functions.binary_search(&offset).is_ok()
    }

    /// Whether two offsets belong to different functions, or to separate parts of one.
    pub(crate) fn divide(&self, one: u32, other: u32) -> bool {
        let border = |offset| self.borders.partition_point(|&start| start <= offset);
        border(one) != border(other)
    }

    fn read(path: &Path) -> Option<Self> {
        let file = File::open(path).ok()?;
        let cache = ReadCache::new(&file);
        let object = ElfFile64::<Endianness, _>::parse(&cache).ok()?;
        let length = file.metadata().ok()?.len();
        let mut parts = Part::of(&object);
        let mut left = LARGEST;
        parts.retain(|part| {
            let fits = part.is_inside(length) && part.size <= left;
            left -= if fits { part.size } else { 0 };
            fits
        });
        let evidence = Evidence::of(&object, &parts, &file);
        let unwinding = Unwinding::of(&object);
        let entries = unwinding.as_ref().map(Unwinding::entries).unwrap_or_default();
        let is_inside = |address| unwinding.as_ref().is_some_and(|table| table.covers(address));
        let is_known = |entry| evidence.pointed.has(entry) || evidence.known.has(entry);
        let begins = |entry| unwinding.as_ref().is_some_and(|table| table.begins_function(entry));
        let mut functions: Vec<u64> =
            entries.iter().copied().filter(|&entry| is_known(entry) || begins(entry)).collect();
        let others = evidence.known.all().filter(|address| entries.binary_search(address).is_err());
        functions.extend(others.filter(|&address| !is_inside(address)));
        functions.extend(stubs(&object));
        functions.sort_unstable();
        functions.dedup();
        let mut borders = functions.clone();
        borders.extend(entries);
        borders.sort_unstable();
        borders.dedup();
        let offsets = |addresses: Vec<u64>| {
            let place = |address| parts.iter().find_map(|part| part.offset_of(address));
            let mut offsets: Vec<u32> = addresses.into_iter().filter_map(place).collect();
            offsets.sort_unstable();
            offsets
        };
        Some(Self { functions: offsets(functions), borders: offsets(borders) })
    }
}

/// Where the stubs of linkage tables begin: code that jumps through a slot, `jmp *displacement(%rip)`, after
/// the instruction that control-flow protection may put before that. The head of a table, which first pushes
/// something, is no stub.
fn stubs<'d>(object: &ElfFile64<'d, Endianness, &'d ReadCache<&File>>) -> Vec<u64> {
    const JUMP: [u8; 2] = [0xff, 0x25];
    const PUSH: [u8; 2] = [0xff, 0x35];
    const BEFORE: [&[u8]; 3] = [&[0xf3, 0x0f, 0x1e, 0xfa, 0xf2], &[0xf3, 0x0f, 0x1e, 0xfa], &[0xf2]];
    const PUSHED: usize = 6;
    let mut stubs = Vec::new();
    for name in [".plt", ".plt.sec", ".plt.got", ".iplt"] {
        let Some(section) = object.section_by_name(name) else { continue };
        let (Ok(code), first) = (section.data(), section.address()) else { continue };
        for at in memchr::memmem::find_iter(code, &JUMP) {
            let before = BEFORE.iter().find(|before| code[..at].ends_with(before));
            let start = at - before.map_or(0, |before| before.len());
            let is_head = start.checked_sub(PUSHED).is_some_and(|push| code[push..].starts_with(&PUSH));
            if !is_head {
                stubs.push(first.wrapping_add(start as u64));
            }
        }
    }
    stubs
}

/// An executable segment of a file: its address, offset and size.
#[derive(Debug, Clone, Copy)]
struct Part {
    address: u64,
    offset: u64,
    size: u64,
}

impl Part {
    pub(crate) fn of<'d>(object: &ElfFile64<'d, Endianness, &'d ReadCache<&File>>) -> Vec<Self> {
        let is_code =
            |flags| matches!(flags, object::SegmentFlags::Elf { p_flags, .. } if p_flags.contains(elf::PF_X));
        let segments = object.segments().filter(|segment| is_code(segment.flags()));
        let parts = segments.map(|segment| {
            let (offset, size) = segment.file_range();
            Self { address: segment.address(), offset, size }
        });
        parts.collect()
    }

    /// Whether the segment lies within a file of the given length.
    fn is_inside(&self, length: u64) -> bool {
        let end = self.offset.checked_add(self.size);
        end.is_some_and(|end| end <= length) && self.address <= u64::MAX / 2
    }

    fn offset_of(&self, address: u64) -> Option<u32> {
        let at = address.checked_sub(self.address).filter(|&at| at < self.size)?;
        u32::try_from(self.offset + at).ok()
    }
}

/// The most bytes of a file's code that are searched.
const LARGEST: u64 = 1 << 30;

/// Addresses in the segments of a file.
#[derive(Debug)]
struct Addresses(Vec<(u64, Vec<u64>)>);

impl Addresses {
    fn new(parts: &[Part]) -> Self {
        let bits = |part: &Part| (part.address, vec![0; part.size.div_ceil(64) as usize]);
        Self(parts.iter().map(bits).collect())
    }

    fn insert(&mut self, address: u64) {
        for (start, bits) in &mut self.0 {
            let Some(at) = address.checked_sub(*start) else { continue };
            if let Some(word) = bits.get_mut((at / 64) as usize) {
                *word |= 1 << (at % 64);
            }
        }
    }

    fn has(&self, address: u64) -> bool {
        self.0.iter().any(|(start, bits)| {
            let at = address.wrapping_sub(*start);
            bits.get((at / 64) as usize).is_some_and(|word| word >> (at % 64) & 1 != 0)
        })
    }

    fn all(&self) -> impl Iterator<Item = u64> {
        self.0.iter().flat_map(|(start, bits)| {
            bits.iter().enumerate().filter(|(_, word)| **word != 0).flat_map(move |(at, &word)| {
                (0..64).filter(move |bit| word >> bit & 1 != 0).map(move |bit| start + at as u64 * 64 + bit)
            })
        })
    }
}

/// The evidence in a file for where its functions begin.
struct Evidence {
    /// Exported addresses, and the targets of bytes that look like calls. Bytes within instructions may look
    /// like calls.
    known: Addresses,
    /// Addresses that data or code point to.
    pointed: Addresses,
}

impl Evidence {
    pub(crate) fn of<'d>(
        object: &ElfFile64<'d, Endianness, &'d ReadCache<&File>>,
        parts: &[Part],
        file: &File,
    ) -> Self {
        let mut evidence = Self { known: Addresses::new(parts), pointed: Addresses::new(parts) };
        parts.iter().for_each(|part| evidence.look_through(part, file));
        for symbol in object.dynamic_symbols() {
            if symbol.kind() == SymbolKind::Text && symbol.is_definition() {
                evidence.known.insert(symbol.address());
            }
        }
        for (_, relocation) in object.dynamic_relocations().into_iter().flatten() {
            let is_relative = matches!(
                relocation.flags(),
                RelocationFlags::Elf { r_type } if [elf::R_X86_64_RELATIVE, elf::R_X86_64_IRELATIVE].contains(&r_type)
            );
            if is_relative || relocation.target() == RelocationTarget::Absolute {
                evidence.pointed.insert(relocation.addend().cast_unsigned());
            }
        }
        evidence
    }

    /// Searches code for calls, and for addresses that are loaded with `lea r64, [rip + ...]`.
    fn look_through(&mut self, part: &Part, file: &File) {
        const CALL: u8 = 0xe8;
        const LEA: u8 = 0x8d;
        /// The bytes before and behind a match that may belong to the same instruction.
        const AROUND: usize = 6;
        let mut bytes = vec![0; (64 << 10) + AROUND];
        let mut from = 0;
        loop {
            let length = (bytes.len() - AROUND).min((part.size - from) as usize);
            bytes.truncate(length);
            if file.read_exact_at(&mut bytes, part.offset + from).is_err() {
                return;
            }
            let is_last = from + length as u64 == part.size;
            let end = if is_last { length } else { length - AROUND };
            bytes.resize(length + AROUND, 0);
            let start = part.address + from;
            let target = |at: usize| {
                let mut distance = [0; 4];
                distance.copy_from_slice(&bytes[at..at + 4]);
                (start + at as u64 + 4).wrapping_add_signed(i32::from_le_bytes(distance).into())
            };
            for at in memchr::memchr2_iter(CALL, LEA, &bytes[..end]) {
                match bytes[at] {
                    CALL => self.known.insert(target(at + 1)),
                    _ if at > 0 && bytes[at - 1] & 0xfb == 0x48 && bytes[at + 1] & 0xc7 == 0x05 => {
                        self.pointed.insert(target(at + 2));
                    }
                    _ => {}
                }
            }
            if is_last {
                return;
            }
            // The byte before the next one may belong to the next instruction.
            from += end as u64 - 1;
        }
    }
}

/// The unwind entries of a file.
struct Unwinding {
    header: Vec<u8>,
    frames: Vec<u8>,
    bases: BaseAddresses,
}

impl Unwinding {
    pub(crate) fn of<'d>(object: &ElfFile64<'d, Endianness, &'d ReadCache<&File>>) -> Option<Self> {
        let section = |name: &str| {
            let section = object.section_by_name(name)?;
            Some((section.address(), section.data().ok()?.to_vec()))
        };
        let (header_at, header) = section(".eh_frame_hdr")?;
        let (frames_at, frames) = section(".eh_frame")?;
        let bases = BaseAddresses::default().set_eh_frame_hdr(header_at).set_eh_frame(frames_at);
        Some(Self { header, frames, bases })
    }

    /// Where the entries begin, sorted.
    fn entries(&self) -> Vec<u64> {
        let Ok(header) = EhFrameHdr::new(&self.header, LittleEndian).parse(&self.bases, 8) else {
            return Vec::new();
        };
        let entries = header
            .table()
            .into_iter()
            .flat_map(|table| table.iter(&self.bases).map_while(Result::ok).collect::<Vec<_>>());
        let starts = entries.filter_map(|(start, _)| match start {
            Pointer::Direct(start) => Some(start),
            Pointer::Indirect(_) => None,
        });
        let mut starts: Vec<u64> = starts.collect();
        starts.sort_unstable();
        starts
    }

    /// Whether an entry that begins at an address describes the stack at a function's entry: the return
    /// address on top, and no register saved.
    fn begins_function(&self, address: u64) -> bool {
        let find = || {
            let header = EhFrameHdr::new(&self.header, LittleEndian).parse(&self.bases, 8).ok()?;
            let frames = EhFrame::new(&self.frames, LittleEndian);
            let cie = |section: &EhFrame<_>, bases: &_, offset| section.cie_from_offset(bases, offset);
            let entry = header.table()?.fde_for_address(&frames, &self.bases, address, cie).ok()?;
            let mut context = UnwindContext::new();
            let row = entry.unwind_info_for_address(&frames, &self.bases, &mut context, address).ok()?;
            let entered = CfaRule::RegisterAndOffset { register: X86_64::RSP, offset: 8 };
            let saved = row.registers().filter(|(register, _)| *register != X86_64::RA).count();
            Some(*row.cfa() == entered && saved == 0)
        };
        find().unwrap_or(false)
    }

    /// Whether any entry covers an address.
    fn covers(&self, address: u64) -> bool {
        let find = || {
            let header = EhFrameHdr::new(&self.header, LittleEndian).parse(&self.bases, 8).ok()?;
            let frames = EhFrame::new(&self.frames, LittleEndian);
            let table = header.table()?;
            let cie = |section: &EhFrame<_>, bases: &_, offset| section.cie_from_offset(bases, offset);
            let entry = table.fde_for_address(&frames, &self.bases, address, cie).ok()?;
            Some(entry.contains(address))
        };
        find().unwrap_or(false)
    }
}
#[cfg(test)]
#[path = "function_starts_tests.rs"]
mod tests;
