//! Where the functions of a binary lie, by its symbol table.

use std::ops::Range;

use object::{Object as _, ObjectSymbol as _, ReadRef, SymbolKind};

/// Where the functions of a binary lie, in ascending order.
#[derive(Debug, Default)]
pub(crate) struct FunctionRanges {
    functions: Vec<Range<u64>>,
    /// The functions that call a thread's first function and never return.
    thread_starts: Vec<Range<u64>>,
}

/// musl's, which it compiles without unwind tables; the first is there in no other library.
const THREAD_STARTS: [&str; 3] = ["libc_start_main_stage2", "start", "start_c11"];

/// With how many symbols a table is large.
const MOST_SYMBOLS: usize = 50_000;

impl FunctionRanges {
    /// Reads the symbol table of an ELF file, or the part of it that the dynamic linker needs. Nothing if it is
    /// large: the kernel does not wait for us while we read it.
    pub(crate) fn read<'data>(data: impl ReadRef<'data>) -> Option<Self> {
        let file = object::File::parse(data).ok()?;
        let symbols = || file.symbols().chain(file.dynamic_symbols());
        if symbols().count() > MOST_SYMBOLS {
            return None;
        }
        let is_musl = symbols().any(|symbol| symbol.name() == Ok(THREAD_STARTS[0]));
        let (mut functions, mut thread_starts) = (Vec::new(), Vec::new());
        for symbol in symbols() {
            if symbol.kind() != SymbolKind::Text || symbol.is_undefined() || symbol.size() == 0 {
                continue;
            }
            let range = symbol.address()..symbol.address().saturating_add(symbol.size());
            if is_musl && symbol.name().is_ok_and(|name| THREAD_STARTS.contains(&name)) {
                thread_starts.push(range.clone());
            }
            functions.push(range);
        }
        functions.sort_unstable_by_key(|range| (range.start, range.end));
        functions.dedup();
        Some(Self { functions, thread_starts })
    }

    /// The function that holds a stated address.
    pub(crate) fn around(&self, address: u64) -> Option<Range<u64>> {
        let behind = self.functions.partition_point(|function| function.start <= address);
        let last = self.functions[..behind].last()?;
        last.contains(&address).then(|| last.clone())
    }

    /// Whether the function that holds a stated address is called by no other.
    pub(crate) fn starts_thread(&self, address: u64) -> bool {
        self.thread_starts.iter().any(|function| function.contains(&address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_by_any_of_their_addresses() {
        let ranges = FunctionRanges {
            functions: vec![10..20, 30..40],
            thread_starts: std::iter::once(30..40).collect(),
        };
        let around = [9, 10, 19, 20, 35, 40].map(|address| ranges.around(address).map(|found| found.start));
        assert_eq!(around, [None, Some(10), Some(10), None, Some(30), None]);
        assert!(ranges.starts_thread(31) && !ranges.starts_thread(11));
    }

    #[test]
    fn symbols_of_a_library_are_read() {
        let mapped = treering_proc::executable_mappings(std::process::id());
        let library = mapped
            .iter()
            .find(|mapping| mapping.path.to_string_lossy().contains("/libc.so"))
            .expect("we use libc");
        let bytes = std::fs::read(&library.path).expect("it can be read");
        let ranges = FunctionRanges::read(&bytes[..]).expect("an ELF file");
        let first = ranges.functions.first().expect("a function");
        assert!(ranges.around(first.start).is_some());
    }
}
