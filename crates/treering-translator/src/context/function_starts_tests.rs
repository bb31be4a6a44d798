//! Function starts found in files, compared with the symbol table.
#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::collections::BTreeSet;

use treering_testing::programs::{CONTROL_FLOW, OBJECTS};

use super::*;

/// The offsets of symbols in a program's own code that `which` takes.
fn symbols(program: &Path, which: impl Fn(&str) -> bool) -> BTreeSet<u32> {
    let bytes = std::fs::read(program).unwrap();
    let object = ElfFile64::<Endianness>::parse(&*bytes).unwrap();
    let code: Vec<_> = object.segments().map(|segment| (segment.address(), segment.file_range())).collect();
    let functions =
        object.symbols().filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.is_definition());
    let named = functions.filter(|symbol| which(symbol.name().unwrap()));
    let offset = |address: u64| {
        let segment =
            code.iter().find(|(start, (_, size))| (*start..start + size).contains(&address)).unwrap();
        (address - segment.0 + segment.1.0) as u32
    };
    named.map(|symbol| offset(symbol.address())).collect()
}

const CALLED: [&str; 7] = ["leaf", "choose", "twice", "thrice", "apply", "even", "odd"];

#[test]
fn functions_begin_where_symbols_say_it() {
    let program = CONTROL_FLOW.build().unwrap();
    let starts = FunctionStarts::read(&program).unwrap();
    let named = symbols(&program, |name| CALLED.contains(&name));
    assert_eq!(named.len(), CALLED.len());
    assert!(named.iter().all(|&start| starts.is_function(start)), "{named:x?} {starts:x?}");
    assert!(named.iter().all(|&start| !starts.is_function(start + 1)));
    for (&one, &next) in named.iter().zip(named.iter().skip(1)) {
        assert!(starts.divide(one, next));
        assert!(!starts.divide(one, one + 1) && !starts.divide(next - 1, next - 1));
    }
}

#[test]
fn functions_without_names_begin_where_calls_lead() {
    let whole = CONTROL_FLOW.build().unwrap();
    let called = symbols(&whole, |name| ["leaf", "choose", "even", "odd"].contains(&name));
    let stripped = CONTROL_FLOW.variant("starts-stripped", &["-s"]).build().unwrap();
    let starts = FunctionStarts::read(&stripped).unwrap();
    assert!(called.iter().all(|&start| starts.is_function(start)), "{called:x?} {starts:x?}");
    assert!(starts.functions.iter().all(|start| starts.borders.contains(start)));
    // Nor are symbols needed in a file without unwind tables.
    let flags = &["-fno-asynchronous-unwind-tables", "-fno-unwind-tables", "-Wl,--no-eh-frame-hdr"];
    let without = CONTROL_FLOW.variant("starts-no-tables", flags).build().unwrap();
    let starts = FunctionStarts::read(&without).unwrap();
    let named = symbols(&without, |name| name == "leaf");
    assert!(named.iter().all(|&start| starts.is_function(start)), "{named:x?} {starts:x?}");
}

#[test]
fn parts_of_functions_that_lie_apart_are_no_functions() {
    let program = OBJECTS.build().unwrap();
    let starts = FunctionStarts::read(&program).unwrap();
    let parts = symbols(&program, |name| name.contains(".cold"));
    assert!(!parts.is_empty(), "the compiler puts parts apart");
    for &part in &parts {
        assert!(!starts.is_function(part), "{part:x}");
        assert!(starts.borders.contains(&part), "{part:x}");
    }
}

#[test]
fn files_that_are_no_programs_have_no_function_starts() {
    let directory = std::env::temp_dir().join(format!("treering-starts-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let file = directory.join("file");
    assert!(FunctionStarts::read(&file).is_none());
    let program = std::fs::read(CONTROL_FLOW.build().unwrap()).unwrap();
    for length in (0..program.len()).step_by(97) {
        std::fs::write(&file, &program[..length]).unwrap();
        let _ = FunctionStarts::read(&file);
    }
    for at in (0..program.len()).step_by(31) {
        let mut damaged = program.clone();
        damaged[at] ^= 0xff;
        std::fs::write(&file, &damaged).unwrap();
        let _ = FunctionStarts::read(&file);
    }
    std::fs::remove_dir_all(&directory).unwrap();
}
