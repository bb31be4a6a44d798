//! Modules: the program and its libraries, and their code in memory.

use core::ffi::{CStr, c_char, c_int, c_void};

use super::c_text;

/// Code in memory: the module that holds it and its address as stated there.
#[derive(Clone, Debug, Default)]
pub(crate) struct Code {
    pub(crate) path: String,
    pub(crate) stated_address: u64,
    pub(crate) build_id: [u8; 32],
    pub(crate) build_id_length: u32,
}

impl Code {
    pub(crate) fn build_id(&self) -> &[u8] {
        &self.build_id[..self.build_id_length as usize]
    }
}

/// An executable part of a library in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CodeRange {
    start: u64,
    end: u64,
    path: Vec<u8>,
}

impl CodeRange {
    pub(crate) fn holds(&self, address: u64) -> bool {
        self.start <= address && address < self.end
    }
}

/// The executable parts of all modules.
pub(crate) fn code_ranges() -> Vec<CodeRange> {
    unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _: usize, ranges: *mut c_void) -> c_int {
        // SAFETY: both are valid for the call, by the contract of `dl_iterate_phdr`, and there are as many
        // headers as it says; the loader's names are C texts.
        let (info, ranges) = unsafe { (&*info, &mut *ranges.cast::<Vec<CodeRange>>()) };
        // SAFETY: there are as many headers as it says.
        let headers = unsafe { core::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum as usize) };
        // SAFETY: the loader's names are C texts.
        let path = unsafe { c_text(info.dlpi_name) };
        let holds_code = |header: &&libc::Elf64_Phdr| {
            header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_X != 0
        };
        ranges.extend(headers.iter().filter(holds_code).map(|header| {
            let start = info.dlpi_addr.wrapping_add(header.p_vaddr);
            CodeRange { start, end: start.wrapping_add(header.p_memsz), path: path.to_vec() }
        }));
        0
    }
    let mut ranges: Vec<CodeRange> = Vec::new();
    // SAFETY: the function is called during the call only, with what it is given here.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut ranges).cast()) };
    ranges
}

/// Whether a library that the program unloads is unloaded by our `dlclose`: so it is where ours is the
/// first in the program, but not where this library was loaded with a plug-in.
pub(crate) fn sees_unloading() -> bool {
    finds_ours(c"dlclose")
}

/// Whether a lookup of a function's name in the program finds this library's function; true also if it
/// finds none.
pub(crate) fn finds_ours(name: &CStr) -> bool {
    // SAFETY: looks up a name. All zeros are a valid structure, which the calls fill.
    unsafe {
        let found = libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr());
        let base = |address: *const c_void| {
            let mut info: libc::Dl_info = core::mem::zeroed();
            if libc::dladdr(address, &raw mut info) == 0 { core::ptr::null_mut() } else { info.dli_fbase }
        };
        // Our own functions may be found to be others' of the same names, but not this one.
        found.is_null() || base(found) == base(finds_ours as *const c_void)
    }
}

/// Keeps this library in memory, and its clients' calls valid, when the plug-in that has loaded it is
/// unloaded.
pub(crate) fn stay_loaded() {
    if let Some(path) = own_path().and_then(|path| std::ffi::CString::new(path).ok()) {
        // SAFETY: opens what is open already.
        unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD | libc::RTLD_NODELETE) };
    }
}

/// The path of the shared library that this is; nothing where it is part of the program.
pub(crate) fn own_path() -> Option<String> {
    let own = find_code(own_path as *const () as u64).path;
    let program = std::fs::read_link("/proc/self/exe").unwrap_or_default();
    (!own.is_empty() && *own != *program.to_string_lossy()).then_some(own)
}

/// A number by which to tell the library at an address from others that stand there at other times;
/// 0 where the C library does not tell.
#[cfg(all(target_arch = "x86_64", target_os = "linux", target_env = "gnu"))]
pub(crate) fn library_mark(address: u64) -> u32 {
    /// The start of glibc's `struct dl_find_object` (`dlfcn.h`), and room for the rest.
    #[repr(C)]
    struct Found {
        flags: u64,
        start: u64,
        end: u64,
        link_map: *const LinkMap,
        rest: [u64; 8],
    }
    /// The start of glibc's `struct link_map` (`link.h`).
    #[repr(C)]
    struct LinkMap {
        base: u64,
        name: *const c_char,
    }
    type Find = unsafe extern "C" fn(u64, *mut Found) -> c_int;
    static FIND: std::sync::OnceLock<Option<Find>> = std::sync::OnceLock::new();
    let find = FIND.get_or_init(|| {
        // SAFETY: looks up a name; the function of that name has this type.
        unsafe {
            let found = libc::dlsym(libc::RTLD_DEFAULT, c"_dl_find_object".as_ptr());
            (!found.is_null()).then(|| core::mem::transmute::<*mut c_void, Find>(found))
        }
    });
    let Some(find) = find else { return 0 };
    // SAFETY: the call fills what it is given where it returns 0; a library whose code runs is loaded.
    unsafe {
        let mut found = Found { flags: 0, start: 0, end: 0, link_map: core::ptr::null(), rest: [0; 8] };
        if find(address, &raw mut found) != 0 || found.link_map.is_null() {
            return 0;
        }
        crate::table::hash(&[c_text((*found.link_map).name), &found.start.to_le_bytes()]) as u32
    }
}

/// See above; where the C library does not tell.
#[cfg(not(all(target_arch = "x86_64", target_os = "linux", target_env = "gnu")))]
pub(crate) fn library_mark(_: u64) -> u32 {
    0
}

/// The path of the file that is mapped at an address, as the kernel has it; nothing for none.
fn mapped_path(address: u64) -> Option<String> {
    let maps = std::fs::read("/proc/self/maps").ok()?;
    let text = String::from_utf8_lossy(&maps);
    let line = text.lines().find(|line| {
        let range = line.split(' ').next().and_then(|range| range.split_once('-'));
        let range = range.map(|(start, end)| (u64::from_str_radix(start, 16), u64::from_str_radix(end, 16)));
        matches!(range, Some((Ok(start), Ok(end))) if start <= address && address < end)
    })?;
    let path = &line[line.find('/')?..];
    Some(path.strip_suffix(" (deleted)").unwrap_or(path).to_owned())
}

/// Finds the module that holds the code at an address.
pub(crate) fn find_code(address: u64) -> Code {
    struct Search {
        address: u64,
        found: Code,
    }
    unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _: usize, search: *mut c_void) -> c_int {
        // SAFETY: both are valid for the call, by the contract of `dl_iterate_phdr`.
        let (info, search) = unsafe { (&*info, &mut *search.cast::<Search>()) };
        // SAFETY: there are as many headers as it says.
        let headers = unsafe { core::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum as usize) };
        let stated = search.address.wrapping_sub(info.dlpi_addr);
        let holds = |header: &&libc::Elf64_Phdr| {
            header.p_type == libc::PT_LOAD && stated.wrapping_sub(header.p_vaddr) < header.p_memsz
        };
        if !headers.iter().any(|header| holds(&header)) {
            return 0;
        }
        // SAFETY: the loader's names are C texts.
        let name = unsafe { c_text(info.dlpi_name) };
        search.found.path = match name {
            b"" => std::fs::read_link("/proc/self/exe").unwrap_or_default().to_string_lossy().into_owned(),
            name => String::from_utf8_lossy(name).into_owned(),
        };
        search.found.stated_address = stated;
        for header in headers.iter().filter(|header| header.p_type == libc::PT_NOTE) {
            let start = (info.dlpi_addr + header.p_vaddr) as *const u8;
            // SAFETY: the notes of a loaded module are mapped.
            let notes = unsafe { core::slice::from_raw_parts(start, header.p_memsz as usize) };
            if let Some(id) = build_id(notes) {
                let length = id.len().min(32);
                search.found.build_id[..length].copy_from_slice(&id[..length]);
                search.found.build_id_length = length as u32;
            }
        }
        1
    }
    let mut search = Search { address, found: Code { stated_address: address, ..Code::default() } };
    // SAFETY: the function is called during the call only, with what it is given here.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut search).cast()) };
    // The program may have changed its directory since the library was loaded.
    if !search.found.path.starts_with('/')
        && let Some(path) = mapped_path(address)
    {
        search.found.path = path;
    }
    search.found
}

/// The build id among ELF notes (gABI, "Note Section"): name `GNU`, type 3.
fn build_id(mut notes: &[u8]) -> Option<&[u8]> {
    let word = |notes: &[u8], at: usize| {
        let bytes = notes.get(at..at + 4)?;
        Some(u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as usize)
    };
    loop {
        let (name, value, kind) = (word(notes, 0)?, word(notes, 4)?, word(notes, 8)?);
        let value_at = 12 + name.next_multiple_of(4);
        if kind == 3 && notes.get(12..12 + name) == Some(b"GNU\0") {
            return notes.get(value_at..value_at + value);
        }
        notes = notes.get(value_at + value.next_multiple_of(4)..)?;
    }
}

/// The dynamic symbol at an address, or nothing.
pub(crate) fn symbol_name(address: u64) -> Vec<u8> {
    // SAFETY: all zeros are a valid structure; the call fills it and the names are C texts.
    unsafe {
        let mut info: libc::Dl_info = core::mem::zeroed();
        match libc::dladdr(address as *const c_void, &raw mut info) {
            0 => Vec::new(),
            _ => c_text(info.dli_sname).to_vec(),
        }
    }
}

/// The paths of all modules that call a function by its name, whichever library has it.
pub(crate) fn modules_calling(name: &CStr) -> Vec<String> {
    struct Search<'a> {
        function: &'a CStr,
        paths: Vec<String>,
    }
    unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _: usize, search: *mut c_void) -> c_int {
        // SAFETY: both are valid for the call, by the contract of `dl_iterate_phdr`, and the loader's
        // names are C texts.
        unsafe {
            let (info, search) = (&*info, &mut *search.cast::<Search>());
            if calls(info, search.function) {
                let name = String::from_utf8_lossy(c_text(info.dlpi_name)).into_owned();
                search.paths.push(if name.is_empty() { "the program".to_owned() } else { name });
            }
        }
        0
    }
    let mut search = Search { function: name, paths: Vec::new() };
    // SAFETY: the function is called during the call only, with what it is given here.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut search).cast()) };
    search.paths
}

/// Whether a module has the address of a function filled in when it is loaded (gABI, "Dynamic Section",
/// "Relocation").
///
/// # Safety
/// The module is loaded.
unsafe fn calls(info: &libc::dl_phdr_info, function: &CStr) -> bool {
    const STRINGS: u64 = 5;
    const SYMBOLS: u64 = 6;
    const TABLES: [(u64, u64); 2] = [(23, 2), (7, 8)];
    // SAFETY: a loaded module's headers and the tables that its dynamic section names are mapped.
    unsafe {
        let headers = core::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum as usize);
        let Some(dynamic) = headers.iter().find(|header| header.p_type == libc::PT_DYNAMIC) else { return false };
        let start = info.dlpi_addr.wrapping_add(dynamic.p_vaddr) as *const [u64; 2];
        let entries = core::slice::from_raw_parts(start, dynamic.p_memsz as usize / 16);
        let value = |tag: u64| {
            let used = entries.iter().take_while(|entry| entry[0] != 0);
            used.into_iter().find(|entry| entry[0] == tag).map(|entry| entry[1])
        };
        // glibc adds the module's base to what stands there, others do not.
        let place = |tag: u64| {
            value(tag).map(|at| if at < info.dlpi_addr { at.wrapping_add(info.dlpi_addr) } else { at })
        };
        let (Some(strings), Some(symbols)) = (place(STRINGS), place(SYMBOLS)) else { return false };
        TABLES.iter().any(|&(table, size)| {
            let (Some(table), Some(size)) = (place(table), value(size)) else { return false };
            let rows = core::slice::from_raw_parts(table as *const libc::Elf64_Rela, size as usize / 24);
            rows.iter().any(|row| {
                let symbol = &*(symbols as *const libc::Elf64_Sym).add((row.r_info >> 32) as usize);
                let name = (strings + u64::from(symbol.st_name)) as *const c_char;
                symbol.st_shndx == 0 && row.r_info >> 32 != 0 && CStr::from_ptr(name) == function
            })
        })
    }
}
