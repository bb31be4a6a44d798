//! Addresses to functions, files, lines and inlined frames.
//!
//! A collector records where a program was as addresses in modules. [`symbolise`] turns such a
//! profile into one with names, from whatever is left of them: debug information (DWARF 4 and 5,
//! split, compressed, shared by dwz, or in separate files), symbol tables, the kernel's list of
//! symbols, and what JIT compilers write down ([`perf_map`], [`jitdump`]).
//!
//! This crate never runs a program, never asks the network, and never guesses: a file whose
//! build-id or checksum is not the one of what ran is not used, and what has no name is counted
//! and said, in [`ModuleReport`]. It knows nothing of how addresses were collected.
//!
//! ```
//! use treering_profile::*;
//! use treering_symbols::{JitTable, Options, perf_map, symbolise};
//!
//! let mut profile = Profile::new(RecursionRule::Full);
//! let samples = profile.add_metric(Metric::exact("samples", Unit::Count));
//! let thread = profile.add_single_thread("demo");
//! let path = profile.strings.intern("[jit 77]");
//! let module = Module { path, build_id: Box::default(), kind: ModuleKind::Jit };
//! let module = profile.modules.intern(module);
//! let address = profile.functions.intern(Function::at_address(Some(module), StatedAddress(0x1004)));
//! profile.add_stack(thread, &[Frame::new(address)], None, &[(samples, 3)]);
//!
//! let table = JitTable::from_perf_map(perf_map::parse("1000 20 spam\n"));
//! let options = Options { jit: vec![("[jit 77]".into(), table)], ..Options::default() };
//! let named = symbolise(&profile, &options, &mut |_| {}).profile;
//! let function = named.tree.function(NodeId::new(1));
//! assert_eq!(&named.strings[named.functions[function].name], "spam");
//! ```
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test may fail by panicking"))]

mod answer;
mod arcs;
mod code;
mod code_layout;
mod code_reader;
mod contents;
mod cpp_name;
mod debug_file;
mod declaration;
mod demangle;
mod dwarf_file;
mod dwarf_reader;
mod elf_module;
mod frames;
mod function_offset;
mod go_table;
mod jit;
pub mod jitdump;
mod joined_pieces;
mod kallsyms;
mod kept_sections;
mod lazy_binding;
mod modelled;
mod needed_units;
mod object_file;
mod options;
pub mod perf_map;
mod pieces;
mod plt;
mod problem;
mod program_code;
mod rebuild;
mod regular_file;
mod report;
mod scope;
mod section;
mod separate_lines;
mod source;
mod source_map;
mod source_path;
mod spelling;
mod stated_code;
mod stray_block;
mod symbol_table;
mod symbolise;
mod unit_index;
mod unwind_table;
mod wanted_pages;

pub use code_layout::{CodeLayout, ReportedCalls, code_layout, follow_calls};
pub use code_reader::CodeReader;
pub use demangle::{Demangler, demangle, demangle_fully};
pub use function_offset::{FunctionOffsets, function_offsets};
pub use jit::{JitPlace, JitTable};
pub use kallsyms::KernelSymbols;
pub use object_file::{segment_map, segment_map_of};
pub use options::{Options, Progress};
pub use problem::Problem;
pub use program_code::{CodeOfFunction, ProgramCode, program_code};
pub use regular_file::{Refusal, open_regular, open_trusted, own_user};
pub use report::{ModuleReport, Symbolised};
pub use separate_lines::{add_lines, add_lines_to_all};
pub use source::rust_sources;
pub use stated_code::stated_code;
pub use symbolise::{symbolise, symbolise_owned};
