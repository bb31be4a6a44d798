//! Golden listings of the code that is emitted for small programs: moves and renames must not change a byte of them.
//!
//! The programs are in `fixtures/programs/listings`, their listings in `tests/listings`. For an intended change of
//! the emitted code, `UPDATE_EXPECT=1 cargo test -p treering-translator listings` writes the listings again.

use std::fmt::Write as _;

use expect_test::{ExpectFile, expect_file};
use treering_testing::programs::{Language, Recipe};
use treering_x86::disassembly::{outline, text};

use crate::address_space::AddressSpace;
use crate::cache::indirect::table_entry;
use crate::cache::unit::Unit;
use crate::model::{CacheShape, Geometry};
use crate::sys::layout::{MOST_SITE_TABLES, RETURN_ENTRIES, SITE_ENTRIES, UNIT_SIZE};

use super::*;

/// A program without a library, at addresses that never change.
fn program(name: &'static str, source: &'static str) -> PathBuf {
    let at = "-Wl,-Ttext=0x401000,-Tdata=0x410000,-Tbss=0x420000,--build-id=none";
    let flags = ["-static", "-nostdlib", "-no-pie", at].map(str::to_owned).to_vec();
    let recipe = Recipe { name, variant: String::new(), source, language: Language::C, flags };
    recipe.build().unwrap()
}

fn command(name: &'static str, source: &'static str) -> Command {
    let words = vec![program(name, source).into()];
    Command { words, environment: Vec::new(), fixed_addresses: true, silent: true, ..Command::default() }
}

/// All code that was emitted for a program until it exits; it exits with 0.
fn listing(command: &Command, with_routines: bool) -> String {
    let mut tracer = tracer(command).unwrap();
    let (pid, _pipe) = prepare(command, &command.words[0]).unwrap().start().unwrap();
    let mut listing = String::new();
    let mut ended = None;
    loop {
        let (tid, stop) = match sys::wait(-1) {
            Ok(Some(found)) => found,
            Ok(None) => break,
            Err(error) => {
                assert_eq!(error.kind(), io::ErrorKind::Interrupted);
                tracer.affinity.look();
                continue;
            }
        };
        tracer.begin_with(tid, pid);
        match stop {
            Stop::Event(libc::PTRACE_EVENT_EXIT, _) => {
                if let Some((_, program)) = tracer.counted(tid) {
                    listing = list(&program.space, with_routines);
                }
            }
            Stop::Exited(status) => ended = Some(status),
            _ => {}
        }
        tracer.handle(tid, stop);
    }
    tracer.finish();
    assert_eq!((ended, tracer.not_counted), (Some(0), Vec::new()));
    listing
}

fn list(space: &AddressSpace, with_routines: bool) -> String {
    let mut out = String::new();
    writeln!(out, "{} blocks, {} counters", space.cache.blocks.len(), space.areas.counters()).unwrap();
    for unit in &space.cache.units {
        writeln!(out, "\ncache unit {:#x}", unit.base).unwrap();
        list_code(space, unit, with_routines, &mut out);
        writeln!(out, "rarely used").unwrap();
        list_rest(unit, &mut out);
    }
    list_tables(space, &mut out);
    out
}

/// Lists a unit's code in order: its routines, blocks, and code added by linking.
fn list_code(space: &AddressSpace, unit: &Unit, with_routines: bool, out: &mut String) {
    let first = unit.blocks.first().map_or(unit.here(), |&block| space.cache.blocks.get(block).entry);
    let mut at = if with_routines { unit.base } else { first };
    let mut blocks = unit.blocks.iter().peekable();
    while at < unit.here() {
        while let Some(&&number) = blocks.peek()
            && space.cache.blocks.get(number).entry <= at
        {
            let block = space.cache.blocks.get(number);
            let (address, count, counter) = (block.address, block.instructions, block.counter);
            let retired = if block.retired { ", retired" } else { "" };
            writeln!(out, "block {number} of {address:#x}: {count} instructions, counter {counter}{retired}")
                .unwrap();
            blocks.next();
        }
        at += list_instruction(unit, at, unit.here(), out);
    }
}

/// Stubs and constants, which grow downwards.
fn list_rest(unit: &Unit, out: &mut String) {
    let (mut at, end) = (unit.cold(), unit.base + UNIT_SIZE);
    while at < end {
        at += list_instruction(unit, at, end, out);
    }
}

/// Lists the code at an address, without zeros. Returns its length.
fn list_instruction(unit: &Unit, at: u64, end: u64, out: &mut String) -> u64 {
    let mut bytes = vec![0; (end - at).min(15) as usize];
    unit.read(at, &mut bytes);
    if bytes[0] == 0 {
        return 1;
    }
    let found = outline(&bytes, at).zip(text(&bytes, at));
    let (length, text) = found.map_or((1, "?".to_owned()), |(found, text)| (found.length.into(), text));
    let hex: String = bytes[..length as usize].iter().map(|byte| format!("{byte:02x}")).collect();
    writeln!(out, "  {at:x}  {hex:24}  {text}").unwrap();
    length
}

/// Lists the used entries of the tables.
fn list_tables(space: &AddressSpace, out: &mut String) {
    writeln!(out, "\ntables").unwrap();
    let miss = space.cache.units[0].routines.miss;
    for entry in 0..RETURN_ENTRIES as u64 {
        let place = space.cache.tables.load(entry * 8);
        if place != miss {
            writeln!(out, "  return to ...{entry:04x}: {place:x}").unwrap();
        }
    }
    for table in 0..MOST_SITE_TABLES as u32 {
        let places = (0..SITE_ENTRIES).map(|entry| space.cache.tables.load(table_entry(table, entry)));
        let mut last = 0;
        for (entry, place) in places.enumerate() {
            if place != last {
                writeln!(out, "  table {table}, from entry {entry} on: {place:x}").unwrap();
            }
            last = place;
        }
        if last == 0 {
            break;
        }
    }
}

fn check(command: &Command, expected: &ExpectFile) {
    check_with(command, false, expected);
}

fn check_with(command: &Command, with_routines: bool, expected: &ExpectFile) {
    let has = [std::arch::is_x86_feature_detected!("avx"), std::arch::is_x86_feature_detected!("bmi2")];
    if has.contains(&false) {
        println!("skipped: what is emitted for this processor, without AVX or BMI2, is not listed");
        return;
    }
    expected.assert_eq(&listing(command, with_routines));
}

macro_rules! listings {
    ($($test:ident: $name:literal),* $(,)?) => {$(
        #[test]
        fn $test() {
            let source = concat!("listings/", $name, ".S");
            let expected = expect_file![concat!("../../tests/listings/", $name, ".txt")];
            check(&command($name, source), &expected);
        }
    )*};
}

listings! {
    loops_that_count_in_a_register: "loop",
    returns: "returns",
    indirect_calls_and_jumps: "indirect",
    side_exits: "side_exits",
    instructions_that_are_written_otherwise: "rewritten",
    self_modifying_code: "self_modifying",
    code_that_is_evicted: "evicted",
    signals: "signals",
}

#[test]
fn plain_blocks_and_the_pieces_that_all_need() {
    let expected = expect_file!["../../tests/listings/plain.txt"];
    check_with(&command("plain", "listings/plain.S"), true, &expected);
}

#[test]
fn calling_context_trees() {
    let command = Command { tree: true, ..command("tree", "listings/tree.S") };
    check_with(&command, true, &expect_file!["../../tests/listings/tree.txt"]);
}

#[test]
fn blocks_in_a_row_of_a_tree() {
    let command = Command { tree: true, ..command("side_exits", "listings/side_exits.S") };
    check(&command, &expect_file!["../../tests/listings/side_exits_tree.txt"]);
}

#[test]
fn a_model_of_caches_and_branches() {
    let first = CacheShape::new(1 << 15, 8, 64).unwrap();
    let caches = Some(Geometry { i1: first, d1: first, ll: CacheShape::new(1 << 23, 16, 64).unwrap() });
    let model = ModelOptions { caches, branches: true };
    let command = Command { model, ..command("plain", "listings/plain.S") };
    check(&command, &expect_file!["../../tests/listings/plain_modelled.txt"]);
}

#[test]
fn a_selected_part_of_a_run() {
    let selection = Some(Selection { functions: None, marks: true });
    let command = Command { selection, ..command("selected", "listings/selected.S") };
    check(&command, &expect_file!["../../tests/listings/selected.txt"]);
}

/// Lists the second run, whose history has the first one.
fn check_known(name: &'static str, source: &'static str, expected: &ExpectFile) {
    let directory = std::env::temp_dir().join(format!("treering-listings-{name}-{}", std::process::id()));
    let command = Command { hints: Some(directory.clone()), ..command(name, source) };
    assert!(!listing(&command, false).is_empty());
    check(&command, expected);
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn indirect_calls_of_a_program_that_ran_before() {
    check_known("indirect", "listings/indirect.S", &expect_file!["../../tests/listings/indirect_known.txt"]);
}

#[test]
fn side_exits_of_a_program_that_ran_before() {
    let expected = expect_file!["../../tests/listings/side_exits_known.txt"];
    check_known("side_exits", "listings/side_exits.S", &expected);
}
