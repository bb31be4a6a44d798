//! Where the functions of a program lie, for readers of files that hold addresses without names.

use std::ops::Range;
use std::path::Path;

use object::{Architecture, Object as _, ObjectSection as _, ObjectSymbol as _, SectionFlags, elf};
use treering_proc::build_id;

use crate::debug_file::{Finder, miniature};
use crate::object_file::{Object, Storage};
use crate::symbol_table::SymbolTable;
use crate::{Options, Problem};

/// Where the functions of a program lie, and what it asks of the C library.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CodeLayout {
    /// Stated addresses of functions by their symbols, sorted: each reaches up to the next one, or to
    /// the end of its section. Empty for a program that was stripped.
    pub functions: Vec<Range<u64>>,
    /// Stated addresses of the sections that hold code, sorted.
    pub code: Vec<Range<u64>>,
    /// The build-id, or nothing.
    pub build_id: Vec<u8>,
    /// Whether its addresses have 64 bits, or else 32.
    pub wide: bool,
    /// Whether its most significant bytes come first.
    pub big_endian: bool,
    /// Whether it loads shared libraries.
    pub is_dynamic: bool,
    /// Whether it reports its calls, as compilers make programs do with `-pg`.
    pub reports_calls: bool,
    /// Whether it can make threads by itself; libraries may do so for it.
    pub makes_threads: bool,
}

/// What a program calls at the start of each function that was compiled with `-pg`.
const REPORTERS: [&str; 5] = ["mcount", "_mcount", "__fentry__", "__mcount", ".mcount"];

/// What makes threads, by how names begin.
const THREADS: [&str; 6] = [
    "pthread_create",
    "thrd_create",
    "GOMP_parallel",
    "__kmpc_fork_call",
    "_ZNSt6thread15_M_start_thread",
    "tbb_",
];

/// Looks where the functions of a program lie.
///
/// # Errors
/// The file is no program, or cannot be read.
pub fn code_layout(path: &Path, options: &Options<'_>) -> Result<CodeLayout, Problem> {
    let storage = Storage::default();
    let object = storage.open(path)?;
    let finder = Finder { storage: &storage, options };
    let separate = finder.separate(&object, path, &mut Vec::new());
    let small = if object.symbol_table().is_none() { miniature(&object, &storage) } else { None };
    let others = separate.iter().map(|file| &file.object).chain(&small);
    let symbols = SymbolTable::new([&object].into_iter().chain(others).collect());
    let code = code_sections(&object);
    // What `.dynsym` alone has of a stripped program is not worth dividing anything by.
    let has_names = object.symbol_table().is_some() || separate.is_some() || small.is_some();
    let mut starts = if has_names { symbols.starts(|_| true) } else { Vec::new() };
    starts.sort_unstable();
    starts.dedup();
    let next = starts.iter().skip(1).copied().chain([u64::MAX]);
    let functions = starts.iter().zip(next).filter_map(|(&start, next)| {
        let section = code.iter().find(|section| section.contains(&start))?;
        Some(start..next.min(section.end))
    });
    let functions = functions.collect();
    let mut layout = CodeLayout {
        functions,
        build_id: build_id(&object).unwrap_or_default().to_vec(),
        wide: object.is_64(),
        big_endian: !object.is_little_endian(),
        is_dynamic: object.dynamic_symbols().next().is_some(),
        code,
        ..CodeLayout::default()
    };
    for symbol in object.symbols().chain(object.dynamic_symbols()) {
        let Ok(name) = symbol.name() else { continue };
        let name = name.split('@').next().unwrap_or(name);
        layout.reports_calls |= REPORTERS.contains(&name);
        let imported = symbol.is_undefined() && (name == "clone" || name == "clone3");
        layout.makes_threads |= imported || THREADS.iter().any(|start| name.starts_with(start));
    }
    Ok(layout)
}

/// Which of these stated addresses in a program follow a call instruction, as return addresses do; nothing
/// for processors whose instructions are not known here.
///
/// # Errors
/// The file is no program, or cannot be read.
pub fn follow_calls(path: &Path, addresses: &[u64]) -> Result<Option<Vec<bool>>, Problem> {
    let storage = Storage::default();
    let object = storage.open(path)?;
    if !matches!(object.architecture(), Architecture::X86_64 | Architecture::I386) {
        return Ok(None);
    }
    let is_code =
        |flags| matches!(flags, SectionFlags::Elf { sh_flags, .. } if sh_flags.contains(elf::SHF_EXECINSTR));
    let sections: Vec<_> = object.sections().filter(|section| is_code(section.flags())).collect();
    let follows = |&address: &u64| {
        // `call rel32` has five bytes, `call [rip + rel32]` six.
        let Some(first) = address.checked_sub(6) else { return false };
        let bytes = sections.iter().find_map(|section| section.data_range(first, 6).ok().flatten());
        bytes.is_some_and(|bytes| bytes[1] == 0xe8 || bytes.starts_with(&[0xff, 0x15]))
    };
    Ok(Some(addresses.iter().map(follows).collect()))
}

fn code_sections(object: &Object<'_>) -> Vec<Range<u64>> {
    let mut code: Vec<_> = object
        .sections()
        .filter(|section| {
            matches!(section.flags(), SectionFlags::Elf { sh_flags, .. } if sh_flags.contains(elf::SHF_EXECINSTR))
        })
        .map(|section| section.address()..section.address().saturating_add(section.size()))
        .collect();
    code.sort_unstable_by_key(|section| section.start);
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_do_not_overlap_and_lie_in_code() {
        let layout = code_layout(&std::env::current_exe().unwrap(), &Options::default()).unwrap();
        assert!(layout.functions.len() > 100 && layout.wide && layout.is_dynamic && !layout.reports_calls);
        assert!(layout.functions.windows(2).all(|pair| pair[0].end <= pair[1].start));
        let held = |function: &Range<u64>| {
            layout.code.iter().any(|code| code.start <= function.start && function.end <= code.end)
        };
        assert!(layout.functions.iter().all(held));
    }
}
