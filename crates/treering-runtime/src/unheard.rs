//! Libraries whose functions report themselves to another library than this one.
//!
//! The C library has empty functions with the names that compilers call for `-finstrument-functions`. If this library
//! was loaded with a plug-in instead of being part of the program from its start, or is linked into a program that
//! does not export its symbols, a plug-in finds those of the C library. Then this library does not see the plug-in's
//! functions, and reports that.

use core::ffi::{CStr, c_int, c_void};
use core::sync::atomic::{AtomicBool, Ordering};

use treering_events::setting;

use crate::options::Options;
use crate::process;
use crate::sys;

/// What compilers call.
const HOOK: &CStr = c"__cyg_profile_func_enter";

static SAID: AtomicBool = AtomicBool::new(false);

/// Names the libraries that report to another one, if there are any, once.
pub(crate) fn tell() {
    if SAID.load(Ordering::Relaxed) || hears_all() || Options::from_environment().is_none() {
        return;
    }
    let paths = reporting();
    if paths.is_empty() || SAID.swap(true, Ordering::Relaxed) {
        return;
    }
    // What is said once stays said, although a plug-in may unload this library and another load it again.
    sys::stay_loaded();
    let paths = paths.join(", ");
    let what = format!(
        "functions of plug-ins such as {paths} are not recorded: they report to the C library, as the program was started without this library"
    );
    let how = match sys::own_path() {
        Some(path) => format!("; start it with LD_PRELOAD={path}, or link it with -ltreering"),
        None => "; link it with -rdynamic".to_owned(),
    };
    sys::complain(&["treering: ", &what, &how]);
    if process::output().is_some() {
        process::set(setting::NOTE, b"", what.as_bytes());
    }
}

/// Whether a lookup of the hook finds ours.
fn hears_all() -> bool {
    sys::finds_ours(HOOK)
}

/// The paths of all modules that call the hook, whichever library has it.
fn reporting() -> Vec<String> {
    unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _: usize, paths: *mut c_void) -> c_int {
        // SAFETY: both are valid for the call, by the contract of `dl_iterate_phdr`, and the loader's
        // names are C texts.
        unsafe {
            let (info, paths) = (&*info, &mut *paths.cast::<Vec<String>>());
            if calls_hook(info) {
                let name = String::from_utf8_lossy(sys::c_text(info.dlpi_name)).into_owned();
                paths.push(if name.is_empty() { "the program".to_owned() } else { name });
            }
        }
        0
    }
    let mut paths: Vec<String> = Vec::new();
    // SAFETY: the function is called during the call only, with what it is given here.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut paths).cast()) };
    paths
}

/// Whether a module has the address of the hook filled in when it is loaded (gABI, "Dynamic Section",
/// "Relocation").
///
/// # Safety
/// The module is loaded.
unsafe fn calls_hook(info: &libc::dl_phdr_info) -> bool {
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
                let name = (strings + u64::from(symbol.st_name)) as *const core::ffi::c_char;
                symbol.st_shndx == 0 && row.r_info >> 32 != 0 && CStr::from_ptr(name) == HOOK
            })
        })
    }
}
