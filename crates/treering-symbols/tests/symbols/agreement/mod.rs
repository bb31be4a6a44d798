//! The names of addresses agree with those of binutils' `addr2line`, for
//! programs in C, C++ and Rust, however their debug information is stored.
//!
//! Needs gcc, g++ and binutils; variants whose tools are missing are skipped and say so.
#![expect(clippy::print_stderr, reason = "a test that is skipped says so")]

mod binutils;
mod damage;
mod frame;
mod program;
mod storage;

use std::path::Path;

use binutils::Symbols;
use frame::{NamedBySymbol, Resolved, compare, resolve};
use program::{Program, compile, compile_in, directory, missing};
use treering_symbols::Options;

/// Compares every few bytes of the code of `subject` with what binutils, and LLVM where it is
/// installed, say of `oracle`, which is the same code.
fn check(subject: &Path, oracle: &Path, options: &Options<'_>) -> Resolved {
    let symbols = Symbols::of(oracle);
    let addresses = symbols.addresses();
    let resolved = resolve(subject, &addresses, options);
    let expected = binutils::addr2line("addr2line", oracle, &addresses);
    compare(&addresses, &resolved.frames, &expected, &symbols, NamedBySymbol::Any);
    if !missing(&["llvm-addr2line"]) {
        let expected = binutils::addr2line("llvm-addr2line", oracle, &addresses);
        compare(&addresses, &resolved.frames, &expected, &symbols, NamedBySymbol::Outermost);
    }
    resolved
}

fn check_itself(name: &str, program: Program, arguments: &[&str]) {
    if missing(&[program.compiler(), "addr2line", "nm"]) {
        return;
    }
    let built = compile(name, program, arguments);
    check(&built, &built, &Options::default());
}

#[test]
fn c_with_dwarf_5_agrees() {
    check_itself("c5", Program::C, &["-O2", "-g", "-gdwarf-5"]);
}

#[test]
fn c_with_dwarf_4_agrees() {
    check_itself("c4", Program::C, &["-O2", "-g", "-gdwarf-4"]);
}

#[test]
fn c_without_optimisation_agrees() {
    check_itself("c0", Program::C, &["-O0", "-g"]);
}

#[test]
fn c_with_functions_and_lines_only_agrees() {
    check_itself("c1", Program::C, &["-O2", "-g1"]);
}

#[test]
fn cpp_with_dwarf_5_agrees() {
    check_itself("cpp5", Program::Cpp, &["-O2", "-g", "-gdwarf-5"]);
}

#[test]
fn cpp_with_dwarf_4_agrees() {
    check_itself("cpp4", Program::Cpp, &["-O2", "-g", "-gdwarf-4"]);
}

#[test]
fn cpp_with_discarded_sections_agrees() {
    check_itself("cppgc", Program::Cpp, &["-O2", "-g", "-ffunction-sections", "-Wl,--gc-sections"]);
}

#[test]
fn cpp_optimised_over_all_units_agrees() {
    check_itself("cpplto", Program::Cpp, &["-O2", "-g", "-flto"]);
}

#[test]
fn rust_agrees() {
    check_itself("rust", Program::Rust, &["-O", "-g"]);
}

#[test]
fn rust_with_the_new_mangling_agrees() {
    check_itself("rustv0", Program::Rust, &["-O", "-g", "-Csymbol-mangling-version=v0"]);
}

#[test]
fn programs_of_clang_agree() {
    if missing(&["clang++", "llvm-addr2line", "nm"]) {
        return;
    }
    let directory = directory("clang");
    for (output, arguments) in [
        ("five", ["-O2", "-g", "-gdwarf-5"]),
        ("four", ["-O2", "-g", "-gdwarf-4"]),
        ("lines", ["-O2", "-gline-tables-only", "-gdwarf-4"]),
    ] {
        let built = compile_in(&directory, output, "clang++", Program::Cpp, &arguments);
        let symbols = Symbols::of(&built);
        let addresses = symbols.addresses();
        let resolved = resolve(&built, &addresses, &Options::default());
        // binutils 2.40 does not follow the lists of ranges that clang writes in DWARF 5.
        let expected = binutils::addr2line("llvm-addr2line", &built, &addresses);
        compare(&addresses, &resolved.frames, &expected, &symbols, NamedBySymbol::Outermost);
    }
}
