//! Where the functions of a program lie, for readers of files that hold addresses without names.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::Path;

use object::{Architecture, BinaryFormat, Object as _, ObjectSection as _, ObjectSymbol as _};
use treering_proc::build_id;
use treering_profile::Piece;

use crate::debug_file::{Finder, miniature};
use crate::object_file::{Object, Storage, has_section};
use crate::pieces::owners;
use crate::symbol_table::{SymbolTable, is_code};
use crate::{Options, Problem};

/// Where the functions of a program lie, and what it asks of the C library.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CodeLayout {
    /// Stated addresses of functions by their symbols, sorted: each reaches up to the next one, or to
    /// the end of its section. Empty for a program that was stripped.
    pub functions: Vec<Range<u64>>,
    /// By where pieces of functions begin that compilers divided: where the function begins that callers enter.
    pub pieces: BTreeMap<u64, (u64, Piece)>,
    /// Whether it has debug information, by which all pieces of a function have one name.
    pub has_debug_information: bool,
    /// Stated addresses of the sections that hold code, sorted.
    pub code: Vec<Range<u64>>,
    /// The build-id, or nothing.
    pub build_id: Vec<u8>,
    /// Whether its addresses have 64 bits, or else 32.
    pub wide: bool,
    /// Whether its most significant bytes come first.
    pub big_endian: bool,
    /// Whether it is a program for Windows.
    pub is_windows: bool,
    /// Whether it loads shared libraries.
    pub is_dynamic: bool,
    /// Whether it reports its calls, as compilers make programs do with `-pg`.
    pub reports_calls: bool,
    /// Whether it can make threads by itself; libraries may do so for it.
    pub makes_threads: bool,
}

/// Calls that a function reported, with `-pg`, of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportedCalls {
    /// The address to which it will return.
    pub site: u64,
    /// An address in the function that called, if that is in the same program.
    pub caller: Option<u64>,
    /// An address in the function that was called.
    pub callee: u64,
    /// How many.
    pub calls: u64,
}

impl CodeLayout {
    /// Where the function begins that holds an address.
    pub fn start(&self, address: u64) -> Option<u64> {
        let behind = self.functions.partition_point(|function| function.start <= address);
        let function = behind.checked_sub(1).map(|at| &self.functions[at])?;
        (address < function.end).then_some(function.start)
    }

    /// Takes pieces of functions for what they are, in the calls of all functions of the program.
    ///
    /// A piece reports itself. If its function jumped to it, it reports the caller of that, at the same site: so many
    /// of its calls were jumps of the function. With debug information, they are left out, and calls of a piece
    /// are those of its function; without, the piece has a name of its own, and is called by its function.
    pub fn settle(&self, reported: Vec<ReportedCalls>) -> Vec<ReportedCalls> {
        if self.pieces.is_empty() {
            return reported;
        }
        let mut entered: HashMap<(u64, u64), u64> = HashMap::new();
        for call in &reported {
            if let Some(start) = self.start(call.callee) {
                let calls = entered.entry((call.site, start)).or_default();
                *calls = calls.saturating_add(call.calls);
            }
        }
        let settle = |call| self.settled(call, &entered);
        reported.into_iter().flat_map(settle).collect()
    }

    fn settled(
        &self,
        call: ReportedCalls,
        entered: &HashMap<(u64, u64), u64>,
    ) -> impl Iterator<Item = ReportedCalls> + use<> {
        let function = |start: u64| self.pieces.get(&start).copied().unwrap_or((start, Piece::default()));
        let shown = |start: u64| if self.has_debug_information { function(start).0 } else { start };
        let is_shown = !self.has_debug_information;
        let (caller, callee) = (call.caller.and_then(|at| self.start(at)), self.start(call.callee));
        let (mut jumps, mut within) = (0, false);
        if let Some((start, &(owner, piece))) =
            callee.and_then(|start| Some((start, self.pieces.get(&start)?)))
        {
            let from = caller.map(function).filter(|(of, _)| *of == owner && caller != Some(start));
            within = from.is_some_and(|(_, from)| piece.goes_on_from(from));
            let of_owner = entered.get(&(call.site, owner)).copied().unwrap_or(0);
            jumps = if within { 0 } else { call.calls.min(of_owner) };
        }
        let owner = callee.map(|start| function(start).0);
        let jumped =
            ReportedCalls { caller: owner, callee: callee.unwrap_or(call.callee), calls: jumps, ..call };
        let called = ReportedCalls {
            caller: caller.map(shown),
            callee: callee.map_or(call.callee, shown),
            calls: call.calls - jumps,
            ..call
        };
        let both = [(jumped, jumps > 0 && is_shown), (called, called.calls > 0 && (is_shown || !within))];
        both.into_iter().filter_map(|(call, counts)| counts.then_some(call))
    }
}

/// The function that a program calls at the start of each function that was compiled with `-pg`.
///
/// Names of C have one underscore more on 32-bit Windows.
const REPORTERS: [&str; 6] = ["mcount", "_mcount", "__fentry__", "__mcount", ".mcount", "___fentry__"];

/// The functions that make threads, by how their names begin.
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
    // The symbols that `.dynsym` alone has of a stripped program are too few to divide anything by.
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
    let tables = [&object].into_iter().chain(separate.iter().map(|file| &file.object)).chain(&small);
    let mut layout = CodeLayout {
        functions,
        pieces: tables.rev().flat_map(owners).collect(),
        has_debug_information: separate.is_some()
            || [".debug_info", ".zdebug_info"].iter().any(|name| has_section(&object, name)),
        build_id: build_id(&object).unwrap_or_default().to_vec(),
        wide: object.is_64(),
        big_endian: !object.is_little_endian(),
        is_windows: object.format() == BinaryFormat::Pe,
        is_dynamic: object.dynamic_symbols().next().is_some() || is_windows_with_imports(&object),
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

fn is_windows_with_imports(object: &Object<'_>) -> bool {
    object.format() == BinaryFormat::Pe && object.imports().is_ok_and(|mut imports| imports.next().is_some())
}

/// The addresses among these of a program that follow a call instruction, as return addresses do; nothing
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
    let sections: Vec<_> = object.sections().filter(is_code).collect();
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
        .filter(is_code)
        .map(|section| section.address()..section.address().saturating_add(section.size()))
        .collect();
    code.sort_unstable_by_key(|section| section.start);
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `f` is at 0x100, `f.part.0` at 0x200, `main` at 0x300, `g` at 0x400.
    fn divided(has_debug_information: bool) -> CodeLayout {
        let part = Piece { behind_test: true, apart: false };
        CodeLayout {
            functions: [0x100, 0x200, 0x300, 0x400].map(|start| start..start + 0x100).into(),
            pieces: [(0x200, (0x100, part))].into(),
            has_debug_information,
            ..CodeLayout::default()
        }
    }

    fn settled(layout: &CodeLayout, calls: &[(u64, u64, u64)]) -> Vec<(Option<u64>, u64, u64)> {
        let reported = calls.iter().map(|&(site, callee, calls)| ReportedCalls {
            site,
            caller: Some(site),
            callee,
            calls,
        });
        let settled = layout.settle(reported.collect()).into_iter();
        settled.map(|call| (call.caller, call.callee, call.calls)).collect()
    }

    #[test]
    fn jumps_of_a_function_to_its_piece_are_no_calls() {
        // main calls f at 0x310, which jumps to its piece 70 times; g calls the piece, the test being inlined in g;
        // and the piece calls f, and itself.
        let calls = [
            (0x310, 0x104, 100),
            (0x310, 0x204, 70),
            (0x410, 0x204, 5),
            (0x210, 0x104, 3),
            (0x210, 0x204, 2),
            (0x250, 0x204, 4),
        ];
        let expected = [(0x300, 0x100, 100), (0x400, 0x100, 5), (0x100, 0x100, 3), (0x100, 0x100, 4)];
        assert_eq!(
            settled(&divided(true), &calls),
            expected.map(|(from, to, calls)| (Some(from), to, calls))
        );
        let expected = [
            (0x300, 0x104, 100),
            (0x100, 0x204, 70),
            (0x400, 0x204, 5),
            (0x200, 0x104, 3),
            (0x100, 0x204, 2),
            (0x200, 0x204, 4),
        ];
        let of_pieces = settled(&divided(false), &calls);
        let starts = of_pieces.iter().map(|(from, to, calls)| (from.unwrap_or(0), *to, *calls));
        let expected = expected.map(|(from, to, calls)| (from, to & !0xff, calls));
        assert_eq!(starts.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_function_that_calls_its_piece_goes_on() {
        let calls = [(0x310, 0x104, 100), (0x110, 0x204, 60)];
        assert_eq!(settled(&divided(true), &calls), [(Some(0x300), 0x100, 100)]);
    }

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
