//! Code of units with debug information whose functions are stated in ways of their own.
#![expect(clippy::print_stderr, reason = "a test says that it was skipped")]

use std::path::{Path, PathBuf};
use std::process::Command;

use object::{Object as _, ObjectSection as _, ObjectSymbol as _};
use treering_profile::{
    Frame, Function, Metric, MetricId, Module, ModuleKind, NodeId, Profile, RecursionRule, StatedAddress,
    Unit,
};
use treering_symbols::{Options, symbolise};

/// Builds a program without a library; nothing if that is not possible, which is said.
fn build(name: &str, files: &[(&str, &str, &[&str])]) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("units-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("the target directory can be written");
    let mut objects = Vec::new();
    for (file, text, options) in files {
        let (source, object) = (folder.join(file), folder.join(format!("{file}.o")));
        std::fs::write(&source, text).expect("the folder can be written");
        let made = Command::new("gcc").args(*options).arg("-c").arg(&source).arg("-o").arg(&object).output();
        if !cfg!(target_arch = "x86_64") || !made.is_ok_and(|made| made.status.success()) {
            eprintln!("skipped: there is no gcc for x86-64");
            return None;
        }
        objects.push(object);
    }
    let program = folder.join(name);
    let linked =
        Command::new("gcc").args(["-nostdlib", "-static", "-o"]).arg(&program).args(&objects).status();
    assert!(linked.expect("gcc links").success());
    Some(program)
}

/// The name of the innermost function at an address, as a sample there would have it.
fn name_at(program: &Path, address: u64) -> String {
    names_at(program, address).pop().expect("every sample is somewhere")
}

/// The names of the functions at an address, outermost first.
fn names_at(program: &Path, address: u64) -> Vec<String> {
    let mut profile = Profile::new(RecursionRule::Full);
    profile.add_metric(Metric::exact("samples", Unit::Count));
    let thread = profile.add_single_thread("demo");
    let path = profile.strings.intern(program.to_str().expect("our path is text"));
    let module = profile.modules.intern(Module { path, build_id: Box::default(), kind: ModuleKind::Elf });
    let at = Function::at_address(Some(module), StatedAddress(address));
    let frame = Frame::new(profile.functions.intern(at));
    profile.add_stack(thread, &[frame], None, &[(MetricId::new(0), 1)]);
    let named = symbolise(&profile, &Options::default(), &mut |_| {}).profile;
    let function = |node: NodeId| &named.functions[named.tree.function(node)];
    named.tree.nodes().skip(1).map(|node| named.strings[function(node).name].to_owned()).collect()
}

/// Where a symbol is, and its size.
fn symbol(program: &Path, name: &str) -> (u64, u64) {
    let bytes = std::fs::read(program).expect("the program is there");
    let object = object::File::parse(&*bytes).expect("it is an ELF file");
    let found = object.symbols().find(|symbol| symbol.name() == Ok(name));
    let found = found.unwrap_or_else(|| panic!("no symbol {name}"));
    (found.address(), found.size())
}

fn end_of_code(program: &Path) -> u64 {
    let bytes = std::fs::read(program).expect("the program is there");
    let object = object::File::parse(&*bytes).expect("it is an ELF file");
    let text = object.section_by_name(".text").expect("it has code");
    text.address() + text.size()
}

/// As crt code does, which lies before programs of the Glasgow Haskell Compiler.
#[test]
fn a_label_does_not_reach_into_the_code_of_another_unit() {
    let label = ".text\n.globl _start\n_start:\nnop\nlabel:\nnop\nnop\n";
    let nameless = ".text\n.rept 12\nnop\n.endr\n";
    let Some(program) = build("labels", &[("a.s", label, &[]), ("b.s", nameless, &["-g"])]) else { return };
    assert_eq!(name_at(&program, symbol(&program, "label").0 + 1), "label");
    let name = name_at(&program, end_of_code(&program) - 1);
    assert_ne!(name, "label");
    // Without debug information nothing says that another unit begins.
    let Some(program) = build("bare", &[("a.s", label, &[]), ("b.s", nameless, &[])]) else { return };
    assert_eq!(name_at(&program, end_of_code(&program) - 1), "label");
}

/// As `strlen` of the C library does, which is the code that chooses one.
#[test]
fn code_that_chooses_a_function_is_told_from_the_function() {
    const SOURCE: &str = ".text\n.globl _start\n_start: nop\n\
        .macro resolver name\n.globl \\name\n.type \\name, @gnu_indirect_function\n\\name: nop\n.size \\name, 1\n.endm\n\
        resolver chosen\nresolver _Z3onei\n\
        .type chooser, @function\nchooser: nop\n.size chooser, 1\n\
        .globl named\n.type named, @gnu_indirect_function\n.set named, chooser\n.size named, 1\n";
    let Some(program) = build("resolvers", &[("a.s", SOURCE, &[])]) else { return };
    let name = |of: &str| name_at(&program, symbol(&program, of).0);
    assert_eq!(["chosen", "_Z3onei", "named"].map(name), ["chosen@ifunc", "one(int)@ifunc", "chooser"]);
}

#[test]
fn blocks_of_haskell_belong_to_the_functions_around_them() {
    const SOURCE: &str = "module Main where\nimport Data.Bits\nimport Data.List (foldl')\n\
        spin :: Int -> Int\nspin n = foldl' (\\s i -> (s*31+i) .&. 0xffffff) 0 [1..n]\n{-# NOINLINE spin #-}\n\
        main :: IO ()\nmain = print (spin 5)\n";
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("units-{}-haskell", std::process::id()));
    std::fs::create_dir_all(&folder).expect("the target directory can be written");
    std::fs::write(folder.join("main.hs"), SOURCE).expect("the folder can be written");
    let built =
        Command::new("ghc").args(["-O1", "-g", "main.hs", "-o", "main"]).current_dir(&folder).output();
    if !built.is_ok_and(|built| built.status.success()) {
        eprintln!("skipped: there is no ghc that builds a program with -g");
        return;
    }
    let program = folder.join("main");
    let unit = unit_of(&program, "main.hs").expect("its debug information has the unit");
    let names: Vec<_> = unit.map(|at| name_at(&program, at)).collect();
    let of_spin = names.iter().filter(|name| *name == "spin").count();
    // Between blocks lie their tables, which are no code.
    assert!(of_spin > 40, "{names:?}");
    assert!(!names.iter().any(|name| name.contains("frame_dummy")), "{names:?}");
}

/// The code of the unit of a file of the source.
fn unit_of(program: &Path, file: &str) -> Option<std::ops::Range<u64>> {
    let told =
        Command::new("readelf").args(["--debug-dump=info", "--dwarf-depth=1"]).arg(program).output().ok()?;
    let text = String::from_utf8_lossy(&told.stdout).into_owned();
    let unit = &text[text.find(&format!(": {file}"))?..];
    let number = |name: &str| {
        let value = unit[unit.find(name)?..].split(": 0x").nth(1)?.split_whitespace().next()?;
        u64::from_str_radix(value, 16).ok()
    };
    Some(number("DW_AT_low_pc")?..number("DW_AT_high_pc")?)
}
