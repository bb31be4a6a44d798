//! Where in a file functions begin that a person names.

use std::path::Path;

use object::Object as _;
use treering_profile::FileOffset;

use crate::debug_file::{Finder, miniature};
use crate::demangle::demangle;
use treering_proc::segments;

use crate::object_file::Storage;
use crate::symbol_table::SymbolTable;
use crate::{Options, Problem};

/// Where functions of a name begin in a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FunctionOffsets {
    /// Their first instructions.
    pub offsets: Vec<FileOffset>,
    /// Whether the name also stands for code that chooses one of several functions when the program is loaded
    /// (`STT_GNU_IFUNC`), as `strlen` in the C library. That code is not the function, and the functions have other names.
    pub is_indirect: bool,
}

/// Where the first instructions of functions with a name lie in a binary, by its own symbols and those of
/// its debug file. A name is as in reports, with or without its arguments, or as linkers write it.
///
/// Functions that the compiler inlined everywhere are not there.
///
/// # Errors
/// The file is no binary, or cannot be read.
pub fn function_offsets(path: &Path, name: &str, options: &Options<'_>) -> Result<FunctionOffsets, Problem> {
    let storage = Storage::default();
    let object = storage.open(path)?;
    let finder = Finder { storage: &storage, options };
    let separate = finder.separate(&object, path, &mut Vec::new());
    let small = if object.symbol_table().is_none() { miniature(&object, &storage) } else { None };
    let others = separate.iter().map(|file| &file.object).chain(&small);
    let symbols = SymbolTable::new([&object].into_iter().chain(others).collect());
    let segments = segments(&object);
    let (mut found, is_indirect) = symbols.starts_but_choosing(|linkage_name| is_called(linkage_name, name));
    found.sort_unstable();
    found.dedup();
    let code = segments.segments().iter().filter(|segment| segment.executable);
    let offset = |address: u64| {
        let mut code = code.clone();
        code.find_map(|segment| {
            let from = address.checked_sub(segment.stated_address.0)?;
            (from < segment.file_size).then_some(FileOffset(segment.file_offset.0 + from))
        })
    };
    Ok(FunctionOffsets { offsets: found.into_iter().filter_map(offset).collect(), is_indirect })
}

/// Whether a person may call the function by the name.
fn is_called(linkage_name: &str, name: &str) -> bool {
    let unversioned = linkage_name.split_once('@').map_or(linkage_name, |(name, _)| name);
    if unversioned == name {
        return true;
    }
    // Demangling takes a while, and the last part of a name stands in every mangled one.
    let plain = name.split_once('(').map_or(name, |(plain, _)| plain);
    let last = plain.rsplit("::").next().unwrap_or(plain);
    let part: String = last.chars().take_while(|&one| one.is_alphanumeric() || one == '_').collect();
    if !unversioned.starts_with("_Z") && !unversioned.starts_with("_R") || !unversioned.contains(&part) {
        return false;
    }
    let known = demangle(linkage_name);
    known == name || known.split_once('(').is_some_and(|(known, _)| known == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_called_as_reports_or_linkers_name_them() {
        assert!(is_called("solve", "solve") && !is_called("solver", "solve"));
        assert!(is_called("memcpy@@GLIBC_2.14", "memcpy"));
        for name in ["ns::solve(int)", "ns::solve", "_ZN2ns5solveEi"] {
            assert!(is_called("_ZN2ns5solveEi", name), "{name}");
        }
        assert!(!is_called("_ZN2ns5solveEi", "solve") && !is_called("_ZN2ns5solveEi", "ns::solve(long)"));
    }
}
