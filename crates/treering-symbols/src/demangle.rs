//! Names as compilers write them, turned into names as people do.

use std::collections::HashMap;

use cpp_demangle::DemangleOptions;
use treering_profile::Piece;

use crate::cpp_name::{cpp_name, longest_name};
use crate::plt;
use crate::spelling::spelled;
use crate::symbol_table::RESOLVER;

/// Names demangled once each, however many frames they occur in.
///
/// Demangling is what symbolising would otherwise spend most of its time on: about 25 µs for a
/// deep C++ template and 10 µs for a Rust name.
#[derive(Debug, Default)]
pub struct Demangler {
    known: HashMap<Box<str>, Box<str>>,
}

impl Demangler {
    /// The name a person reads for `linkage_name`; see [`demangle`].
    pub fn demangle(&mut self, linkage_name: &str) -> &str {
        if !self.known.contains_key(linkage_name) {
            self.known.insert(linkage_name.into(), demangle(linkage_name).into());
        }
        &self.known[linkage_name]
    }
}

/// Demangles C++ names of the Itanium ABI and Rust names of both schemes, without the hashes of
/// the latter; any other name comes back as it is.
///
/// Suffixes of functions that the compiler cloned, split or specialised are shown after the name
/// as in `f(int) [clone .cold]`, and no longer hide that the name is mangled. The version of a
/// dynamic symbol (`@@GLIBC_2.17`) is dropped, and so are suffixes that make local names unique and are no clones
/// (`.llvm.123`, `.lto_priv.0`). A stub of the linkage table keeps its `@plt`, and code that chooses a
/// function when the program is loaded its `@ifunc`.
///
/// C++ names are as people write them: without return types, without default arguments of the standard library's
/// templates, such as allocators, and without inline namespaces. [`demangle_fully`] has all of that. Where only the types
/// of parameters cannot be read, `(…)` stands for them.
///
/// Itanium C++ ABI, section 5.1; Rust RFC 2603.
pub fn demangle(linkage_name: &str) -> String {
    demangle_with(linkage_name, Spelling::Short)
}

/// As [`demangle`], with return types, all arguments of templates and all suffixes.
pub fn demangle_fully(linkage_name: &str) -> String {
    demangle_with(linkage_name, Spelling::Full)
}

/// How much of a name is spelled out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Spelling {
    Short,
    Full,
}

fn demangle_with(linkage_name: &str, spelling: Spelling) -> String {
    for mark in [plt::STUB, RESOLVER] {
        if let Some(symbol) = linkage_name.strip_suffix(mark).filter(|symbol| !symbol.is_empty()) {
            return demangle_with(symbol, spelling) + mark;
        }
    }
    let unversioned = linkage_name.split_once("@").map_or(linkage_name, |(name, _)| name);
    if unversioned.is_empty() {
        return linkage_name.to_owned();
    }
    let (stem, clones) = split_clones(unversioned);
    let mut name = demangle_stem(stem, spelling).unwrap_or_else(|| stem.to_owned());
    for clone in clones {
        let word = clone.split('.').next().unwrap_or_default();
        if spelling == Spelling::Short && UNIQUE.contains(&word) {
            continue;
        }
        name.push_str(" [clone .");
        name.push_str(clone);
        name.push(']');
    }
    name
}

fn demangle_stem(stem: &str, spelling: Spelling) -> Option<String> {
    if let Ok(rust) = rustc_demangle::try_demangle(stem) {
        return Some(format!("{rust:#}"));
    }
    let mangled = stem.starts_with("_Z") || stem.starts_with("___Z") || stem.starts_with("_GLOBAL__");
    if !mangled {
        return None;
    }
    match spelling {
        Spelling::Full => cpp_name(stem, DemangleOptions::new()).or_else(|| without_types(stem)),
        Spelling::Short => {
            let name =
                cpp_name(stem, DemangleOptions::new().no_return_type()).or_else(|| without_types(stem))?;
            Some(spelled(&name))
        }
    }
}

/// The name of a function without its types, where these cannot be read: gcc mangles some expressions in them in a way
/// of its own. The longest part of the symbol that is a name by itself, which has no types.
fn without_types(stem: &str) -> Option<String> {
    longest_name(stem).map(|name| format!("{name}(…)"))
}

/// Words of suffixes that only distinguish names that are local to different files.
const UNIQUE: [&str; 4] = ["llvm", "lto_priv", "localalias", "uniq"];

/// The words with which gcc and LLVM begin the suffix of a copy or a part of a function.
const CLONES: [&str; 16] = [
    "cold",
    "__part",
    "eh",
    "warm",
    "constprop",
    "destroy",
    "actor",
    "isra",
    "llvm",
    "lto_priv",
    "part",
    "resume",
    "cleanup",
    "simdclone",
    "localalias",
    "uniq",
];

/// Words of suffixes of code that compilers, linkers and BOLT only moved apart from its function.
const APART: [&str; 4] = ["cold", "__part", "eh", "warm"];

/// The piece of its function that a symbol stands for.
pub(crate) fn piece(symbol: &str) -> Piece {
    let (_, clones) = split_clones(symbol);
    let words = || clones.iter().map(|clone| clone.split('.').next().unwrap_or_default());
    Piece {
        behind_test: words().any(|word| word == "part"),
        apart: words().any(|word| APART.contains(&word)),
    }
}

/// Possible names of the function that a symbol is a piece of, the likelier first: the symbol up to the
/// mark of a piece, and the symbol without any suffix.
pub(crate) fn whole(symbol: &str) -> [&str; 2] {
    let (stem, clones) = split_clones(symbol);
    let mut length = stem.len();
    for clone in clones {
        let word = clone.split('.').next().unwrap_or_default();
        if word == "part" || APART.contains(&word) {
            break;
        }
        length += 1 + clone.len();
    }
    [&symbol[..length], stem]
}

/// Splits `name.constprop.0.cold` into `name` and its suffixes `constprop.0` and `cold`.
fn split_clones(name: &str) -> (&str, Vec<&str>) {
    let is_clone = |at: usize| {
        let word = name[at + 1..].split('.').next().unwrap_or_default();
        CLONES.contains(&word)
    };
    let starts: Vec<usize> =
        name.match_indices('.').map(|(at, _)| at).filter(|&at| at > 0 && is_clone(at)).collect();
    let Some(&first) = starts.first() else { return (name, Vec::new()) };
    let ends = starts.iter().skip(1).copied().chain([name.len()]);
    (&name[..first], starts.iter().zip(ends).map(|(&start, end)| &name[start + 1..end]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_both_languages_are_demangled_without_hashes() {
        assert_eq!(demangle("_ZN3foo3barEi"), "foo::bar(int)");
        assert_eq!(demangle("_ZSt4sortIPiEvT_S1_"), "std::sort<int*>(int*, int*)");
        assert_eq!(demangle_fully("_ZSt4sortIPiEvT_S1_"), "void std::sort<int*>(int*, int*)");
        assert_eq!(demangle("_ZN4core3fmt5write17h0123456789abcdefE"), "core::fmt::write");
        assert_eq!(demangle("_RNvC6_123foo3bar"), "123foo::bar");
    }

    /// As c++filt prints it.
    #[test]
    fn empty_packs_of_arguments_leave_no_comma() {
        let run = "_ZN4llvm25BranchProbabilityAnalysis3runERNS_8FunctionERNS_15AnalysisManagerIS1_JEEE";
        let name =
            "llvm::BranchProbabilityAnalysis::run(llvm::Function&, llvm::AnalysisManager<llvm::Function>&)";
        assert_eq!((demangle(run), demangle_fully(run)), (name.to_owned(), name.to_owned()));
    }

    #[test]
    fn c_names_and_nonsense_stay_as_they_are() {
        for name in ["main", "_Zonk", "_start", "_R", "__libc_start_main", "", "@", "a.out", ".cold"] {
            assert_eq!(demangle(name), name);
        }
    }

    #[test]
    fn clones_are_named_after_their_function() {
        assert_eq!(demangle("_Z3fooi.cold"), "foo(int) [clone .cold]");
        assert_eq!(demangle("_Z3fooi.constprop.0.cold"), "foo(int) [clone .constprop.0] [clone .cold]");
        assert_eq!(demangle("solve.part.0"), "solve [clone .part.0]");
        assert_eq!(demangle("_Z3fooi.__part.2"), "foo(int) [clone .__part.2]");
        assert_eq!(demangle("_ZN4core3fmt5write17h0123456789abcdefE.llvm.123"), "core::fmt::write");
        assert_eq!(demangle("solve.lto_priv.0.cold"), "solve [clone .cold]");
        assert_eq!(demangle_fully("solve.llvm.123"), "solve [clone .llvm.123]");
    }

    #[test]
    fn symbols_tell_which_piece_of_a_function_they_are() {
        let told = |symbol| {
            piece(symbol)
                .behind_test
                .then_some("part")
                .into_iter()
                .chain(piece(symbol).apart.then_some("apart"))
                .collect::<String>()
        };
        for (symbol, expected) in [
            ("f", ""),
            ("f.constprop.0.isra.0", ""),
            ("f.part.0", "part"),
            ("_ZN1a1fEi.part.0.constprop.1", "part"),
            ("f.cold", "apart"),
            ("f.cold.1", "apart"),
            ("f.__part.3", "apart"),
            ("f.part.0.cold", "partapart"),
            ("part.cold", "apart"),
            ("cold", ""),
        ] {
            assert_eq!(told(symbol), expected, "{symbol}");
        }
        assert_eq!(whole("f.constprop.0.part.1.cold"), ["f.constprop.0", "f"]);
        assert_eq!(whole("f.part.0.constprop.1"), ["f", "f"]);
    }

    #[test]
    fn the_version_of_a_dynamic_symbol_is_dropped() {
        assert_eq!(demangle("memcpy@@GLIBC_2.14"), "memcpy");
        assert_eq!(demangle("_Znwm@GLIBCXX_3.4"), "operator new(unsigned long)");
    }

    #[test]
    fn names_whose_types_cannot_be_read_have_none() {
        let name = "_Z10multiple_pILj1EljEN10if_nonpolyIT1_bXsr15poly_int_traitsIS1_E7is_polyEE4typeERK12poly_int_podIXT_ET0_ES1_";
        assert_eq!(demangle(name), "multiple_p<1u, long, unsigned int>(…)");
    }

    #[test]
    fn stubs_of_linkage_tables_are_told_from_functions() {
        assert_eq!(demangle("sprintf@plt"), "sprintf@plt");
        assert_eq!(demangle("memcpy@@GLIBC_2.14@ifunc"), "memcpy@ifunc");
        assert_eq!(demangle("_Znwm@plt"), "operator new(unsigned long)@plt");
        assert_eq!(demangle("*ABS*+0x9f550@plt"), "*ABS*+0x9f550@plt");
    }

    #[test]
    fn a_name_nested_deeper_than_any_compiler_writes_does_not_overflow_the_stack() {
        let deep = format!("_Z1fI{}i{}Evv", "N1aI".repeat(100_000), "EE".repeat(100_000));
        assert_eq!(demangle(&deep), deep);
    }
}
