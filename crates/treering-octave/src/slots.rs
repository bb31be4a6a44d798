//! The slots of a loaded library through which it calls functions: found, checked, written.
//!
//! A library that may be interposed calls its own exported functions through slots that the
//! loader fills: those of its procedure linkage table, and entries of its virtual function
//! tables. The relocations that filled them name them (System V ABI, AMD64 supplement, 4.4).

use core::ffi::{CStr, c_int, c_void};
use std::ffi::CString;

use crate::refusal::Refusal;

/// A library of this process.
#[derive(Debug)]
pub(crate) struct Library {
    name: String,
    base: usize,
    /// First and last byte of the mapping.
    range: (usize, usize),
    /// The range that the loader made read-only when it had filled it.
    read_only: (usize, usize),
    relocations: Vec<(usize, usize)>,
    strings: usize,
    symbols: usize,
}

/// A slot that is to lead elsewhere.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    address: usize,
    is_read_only: bool,
    hook: usize,
}

const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const PT_GNU_RELRO: u32 = 0x6474_e552;

/// Entries of the dynamic section.
mod entry {
    pub(super) const PLT_BYTES: u64 = 2;
    pub(super) const STRINGS: u64 = 5;
    pub(super) const SYMBOLS: u64 = 6;
    pub(super) const RELOCATIONS: u64 = 7;
    pub(super) const RELOCATION_BYTES: u64 = 8;
    pub(super) const PLT: u64 = 23;
}

/// Relocations that fill a slot with the plain address of a symbol: R_X86_64_64, GLOB_DAT,
/// JUMP_SLOT.
const PLAIN: [u32; 3] = [1, 6, 7];

/// `Elf64_Rela`.
#[repr(C)]
struct Relocation {
    offset: u64,
    info: u64,
    addend: i64,
}

const PAGE: usize = 4096;

impl Library {
    /// The library whose file's name contains `part`.
    pub(crate) fn find(part: &str) -> Option<Self> {
        loaded().into_iter().find(|library| file_name(&library.name).contains(part))
    }

    /// The other libraries, but for the one that holds `address` and the C library.
    pub(crate) fn others(but: &Self, address: usize) -> Vec<Self> {
        let is_other = |library: &Self| library.base != but.base && !library.contains(address);
        loaded().into_iter().filter(is_other).collect()
    }

    fn of(info: &libc::dl_phdr_info, name: &str) -> Option<Self> {
        let base = info.dlpi_addr as usize;
        // SAFETY: the loader gives as many headers as it says.
        let headers = unsafe { core::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum as usize) };
        let segments = |kind: u32| {
            headers.iter().filter(move |header| header.p_type == kind).map(move |header| {
                let start = base + header.p_vaddr as usize;
                (start, start + header.p_memsz as usize)
            })
        };
        let range = (
            segments(PT_LOAD).map(|segment| segment.0).min()?,
            segments(PT_LOAD).map(|segment| segment.1).max()?,
        );
        let dynamic = segments(PT_DYNAMIC).next()?.0;
        let read_only = segments(PT_GNU_RELRO).next().unwrap_or((0, 0));
        let empty = Self {
            name: name.to_owned(),
            base,
            range,
            read_only,
            relocations: Vec::new(),
            strings: 0,
            symbols: 0,
        };
        // SAFETY: the dynamic section of a loaded library ends with an entry of zeros.
        Some(unsafe { empty.with_dynamic_section(dynamic) })
    }

    unsafe fn with_dynamic_section(mut self, dynamic: usize) -> Self {
        let (mut plt, mut plain) = ((0, 0), (0, 0));
        let mut at = dynamic as *const [u64; 2];
        // SAFETY: by this function's own requirement.
        unsafe {
            while (*at)[0] != 0 {
                let value = (*at)[1] as usize;
                match (*at)[0] {
                    entry::PLT => plt.0 = value,
                    entry::PLT_BYTES => plt.1 = value,
                    entry::RELOCATIONS => plain.0 = value,
                    entry::RELOCATION_BYTES => plain.1 = value,
                    entry::STRINGS => self.strings = value,
                    entry::SYMBOLS => self.symbols = value,
                    _ => {}
                }
                at = at.add(1);
            }
        }
        // A library may have no slots of one sort.
        self.relocations = [plt, plain].into_iter().filter(|table| table.0 != 0).collect();
        self
    }

    /// The slots that the loader has filled with the address of a symbol, to lead to `hook`.
    ///
    /// # Errors
    /// When a slot leads into another library: something else has hooked it.
    pub(crate) fn slots(&self, symbol: &CStr, hook: usize) -> Result<Vec<Slot>, Refusal> {
        let mut slots = Vec::new();
        for &(table, bytes) in &self.relocations {
            // SAFETY: the loader has mapped both tables as long as they say.
            let table = unsafe {
                core::slice::from_raw_parts(table as *const Relocation, bytes / size_of::<Relocation>())
            };
            for relocation in table.iter().filter(|relocation| self.names(relocation, symbol)) {
                slots.push(self.slot(relocation, hook, symbol)?);
            }
        }
        Ok(slots)
    }

    fn names(&self, relocation: &Relocation, symbol: &CStr) -> bool {
        let index = (relocation.info >> 32) as usize;
        if index == 0 || !PLAIN.contains(&(relocation.info as u32)) {
            return false;
        }
        // SAFETY: relocations of a loaded library refer to its symbols, and those to its strings.
        unsafe {
            let entry = (self.symbols as *const libc::Elf64_Sym).add(index);
            CStr::from_ptr((self.strings + (*entry).st_name as usize) as *const _) == symbol
        }
    }

    fn slot(&self, relocation: &Relocation, hook: usize, symbol: &CStr) -> Result<Slot, Refusal> {
        let address = self.base + relocation.offset as usize;
        // SAFETY: the loader has filled the slot, so it is mapped.
        let leads_to = unsafe { (address as *const usize).read() };
        let is_ours = self.contains(leads_to) || is_address_of(leads_to, symbol);
        if !self.contains(address) || !is_ours {
            return Err(Refusal::Elsewhere { symbol: text(symbol), library: library_at(leads_to) });
        }
        let (start, end) = self.read_only;
        Ok(Slot { address, is_read_only: start <= address && address < end & !(PAGE - 1), hook })
    }

    fn contains(&self, address: usize) -> bool {
        self.range.0 <= address && address < self.range.1
    }

    /// The address of a function of the library, which must be the one that the process uses.
    pub(crate) fn function(&self, symbol: &CStr) -> Result<usize, Refusal> {
        match address_of(symbol) {
            Some(address) if self.contains(address) => Ok(address),
            Some(address) => Err(Refusal::Elsewhere { symbol: text(symbol), library: library_at(address) }),
            None => Err(Refusal::Missing { symbol: text(symbol), library: self.name.clone() }),
        }
    }
}

fn is_address_of(address: usize, symbol: &CStr) -> bool {
    address_of(symbol) == Some(address)
}

fn text(symbol: &CStr) -> String {
    symbol.to_string_lossy().into_owned()
}

/// The libraries of this process that have a file, but for the C library and its loader.
fn loaded() -> Vec<Library> {
    let mut libraries: Vec<Library> = Vec::new();
    // SAFETY: the callback gets the list, which outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut libraries).cast()) };
    libraries
}

unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _size: usize, libraries: *mut c_void) -> c_int {
    // SAFETY: the loader gives a description that is valid for this call, and `loaded` its list.
    unsafe {
        let name = CStr::from_ptr((*info).dlpi_name).to_string_lossy();
        let is_system = ["libc.so", "ld-linux"].iter().any(|start| file_name(&name).starts_with(start));
        // The kernel's library has no folder.
        if name.contains('/') && !is_system {
            (*libraries.cast::<Vec<Library>>()).extend(Library::of(&*info, &name));
        }
    }
    0
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

/// The address of a symbol as the process sees it.
pub(crate) fn address_of(symbol: &CStr) -> Option<usize> {
    // SAFETY: the name ends with a zero.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, symbol.as_ptr()) } as usize;
    (address != 0).then_some(address)
}

/// The file of the library that an address is in.
fn library_at(address: usize) -> String {
    // SAFETY: the call fills the structure, and its name ends with a zero.
    unsafe {
        let mut info: libc::Dl_info = core::mem::zeroed();
        match libc::dladdr(address as *const c_void, &raw mut info) {
            0 => "unknown code".to_owned(),
            _ => CStr::from_ptr(info.dli_fname).to_string_lossy().into_owned(),
        }
    }
}

/// Where in a table of virtual functions a function stands, in words from the table's start as
/// objects point to it. Functions that are not exported are never looked for.
pub(crate) fn virtual_index(table: &CStr, function: &CStr) -> Option<usize> {
    const LONGEST: usize = 400;
    let (table, function) = (virtual_table(table)?, address_of(function)?);
    // SAFETY: tables of Octave's values are followed by others in the same section, so that many
    // words can be read; the search ends at the function.
    (0..LONGEST).find(|&at| unsafe { (table as *const usize).add(at).read() } == function)
}

/// The table of virtual functions as objects point to it: behind the offset and the type.
pub(crate) fn virtual_table(table: &CStr) -> Option<usize> {
    Some(address_of(table)? + 2 * size_of::<usize>())
}

/// Writes the slots.
///
/// # Errors
/// When a page cannot be made writable; slots written before stay.
pub(crate) fn write(slots: &[Slot]) -> Result<(), Refusal> {
    slots.iter().try_for_each(|slot| {
        let page = slot.address & !(PAGE - 1);
        protect(page, libc::PROT_READ | libc::PROT_WRITE)?;
        // SAFETY: the slot was checked and is writable; it is one aligned word, so that a call
        // at the same time takes the old way or the new one.
        unsafe {
            (*(slot.address as *const core::sync::atomic::AtomicUsize))
                .store(slot.hook, core::sync::atomic::Ordering::SeqCst)
        };
        if slot.is_read_only { protect(page, libc::PROT_READ) } else { Ok(()) }
    })
}

fn protect(page: usize, rights: c_int) -> Result<(), Refusal> {
    // SAFETY: the page holds data of the library, which is at least readable before and after.
    match unsafe { libc::mprotect(page as *mut c_void, PAGE, rights) } {
        0 => Ok(()),
        _ => Err(Refusal::Protected { error: std::io::Error::last_os_error() }),
    }
}

/// Keeps the library that holds `address` loaded until the process ends.
pub(crate) fn pin(address: usize) -> bool {
    let Ok(path) = CString::new(library_at(address)) else { return false };
    // SAFETY: the name ends with a zero; a library that is loaded is only marked.
    let handle =
        unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE) };
    !handle.is_null()
}
