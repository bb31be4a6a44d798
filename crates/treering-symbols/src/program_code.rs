//! The code of a binary's functions and its constants, for comparison with another build of it.

use std::collections::BTreeSet;
use std::ops::Range;

use object::{Object as _, ObjectKind, ObjectSection as _};

use crate::debug_file::Finder;
use crate::demangle::demangle;
use crate::elf_module::ElfModule;
use crate::object_file::{Object, Storage};
use crate::plt::Plt;
use crate::symbol_table::{SymbolTable, is_code};
use crate::{Options, Problem};

/// The code of a binary, as it lies in its file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProgramCode {
    /// Its functions with symbols that say how long they are, by stated address.
    pub functions: Vec<CodeOfFunction>,
    /// The stubs through which it calls functions of libraries.
    stubs: Vec<(u64, String)>,
    /// Its stated addresses, if it can only lie there; else empty.
    pub fixed: Range<u64>,
    /// Its sections of constants: where each begins, and its contents.
    pub constants: Vec<(u64, Vec<u8>)>,
    /// The compilers that made it, as they say (`.comment`).
    pub compilers: String,
}

/// A function of a binary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeOfFunction {
    /// Its stated address.
    pub start: u64,
    /// Its name, demangled.
    pub name: String,
    /// Its code.
    pub code: Vec<u8>,
}

impl ProgramCode {
    /// The name of the function at an address: one of its own, or of a library if a stub leads there.
    pub fn name(&self, address: u64) -> Option<String> {
        let near = self.functions.partition_point(|function| function.start <= address).checked_sub(1);
        let holds = |function: &&CodeOfFunction| address - function.start < function.code.len() as u64;
        if let Some(function) = near.map(|at| &self.functions[at]).filter(holds) {
            return Some(match address - function.start {
                0 => function.name.clone(),
                // A piece jumps into the middle of its function, which another build has elsewhere.
                _ => format!("within {}", function.name),
            });
        }
        let stub = self.stubs.binary_search_by_key(&address, |(start, _)| *start).ok()?;
        Some(self.stubs[stub].1.clone())
    }
}

/// Reads the code of the binary at a path, which must have that build-id.
///
/// # Errors
/// It cannot be read, or is of another build.
pub fn program_code(path: &str, build_id: &[u8], options: &Options<'_>) -> Result<ProgramCode, Problem> {
    let storage = Storage::default();
    let (object, found) = ElfModule { path, build_id }.open(&storage, options)?;
    let finder = Finder { storage: &storage, options };
    let own = object.symbol_table().is_some();
    let separate = if own { None } else { finder.separate(&object, &found, &mut Vec::new()) };
    let others = separate.iter().map(|file| &file.object);
    let symbols = SymbolTable::new([&object].into_iter().chain(others).collect());
    let plt = Plt::read(&object);
    let sections = code_sections(&object);
    let mut starts = symbols.starts(|_| true);
    starts.sort_unstable();
    starts.dedup();
    let functions = starts.iter().filter_map(|&start| {
        let symbol = symbols.lookup(start).filter(|symbol| symbol.start == start && symbol.has_size)?;
        let (from, bytes) = sections
            .iter()
            .find(|(from, bytes)| (*from..from.saturating_add(bytes.len() as u64)).contains(&start))?;
        let at = (start - from) as usize;
        let length = usize::try_from(symbol.until - start).ok()?.min(bytes.len() - at);
        let name = demangle(&symbol.name);
        Some(CodeOfFunction { start, name, code: bytes[at..at + length].to_vec() })
    });
    let functions = functions.collect();
    let stubs = sections.iter().flat_map(|(from, bytes)| stubs(&plt, *from, bytes.len() as u64));
    let mut stubs: Vec<_> = stubs.collect();
    stubs.sort();
    let contents = |wanted: &dyn Fn(&str) -> bool| {
        let sections = object.sections().filter(|section| section.name().is_ok_and(wanted));
        sections
            .filter_map(|section| Some((section.address(), section.data().ok()?.to_vec())))
            .collect::<Vec<_>>()
    };
    Ok(ProgramCode {
        functions,
        stubs,
        fixed: if object.kind() == ObjectKind::Executable { addresses(&object) } else { 0..0 },
        constants: contents(&|name| name == ".rodata" || name.starts_with(".rodata.")),
        compilers: compilers(&contents(&|name| name == ".comment")),
    })
}

/// The sections with code: where each begins, and its bytes.
fn code_sections<'a>(object: &Object<'a>) -> Vec<(u64, &'a [u8])> {
    let sections = object.sections().filter(is_code);
    sections.filter_map(|section| Some((section.address(), section.data().ok()?))).collect()
}

/// The stubs in a section, each at its first address.
fn stubs(plt: &Plt, from: u64, length: u64) -> Vec<(u64, String)> {
    let mut found: Vec<(u64, String)> = Vec::new();
    let mut at = from;
    while at < from.saturating_add(length) {
        let next = match plt.lookup(at) {
            Some((start, name)) if found.last().is_none_or(|last| last.0 != start) => {
                found.push((start, name.to_owned()));
                at + 1
            }
            Some(_) => at + 1,
            None => plt.next_start(at).max(at + 1),
        };
        at = next;
    }
    found
}

fn addresses(object: &Object<'_>) -> Range<u64> {
    let loaded = object.sections().filter(|section| section.address() != 0);
    let ends = loaded.map(|section| (section.address(), section.address().saturating_add(section.size())));
    ends.reduce(|all, (start, end)| (all.0.min(start), all.1.max(end)))
        .map_or(0..0, |(start, end)| start..end)
}

/// The lines of `.comment`, each once.
fn compilers(comments: &[(u64, Vec<u8>)]) -> String {
    let lines = comments.iter().flat_map(|(_, comment)| comment.split(|&byte| byte == 0));
    let lines = lines.filter(|line| !line.is_empty());
    let lines: BTreeSet<String> = lines.map(|line| String::from_utf8_lossy(line).into_owned()).collect();
    lines.into_iter().collect::<Vec<_>>().join(", ")
}
