//! Counts of single instructions, of blocks and of steps.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use treering_testing::single_step::{Histogram, Stepped};
use treering_translator::{Command, Counts, ProgramCounts, count};
use treering_x86::{Decoded, decode};

/// Executions by runtime address, of all programs and threads together.
pub(crate) type Executions = BTreeMap<u64, u64>;

/// Keeps the C library from registering memory that the kernel compares with the original code's
/// addresses, which a counted program may not.
const ENVIRONMENT: (&str, &str) = ("GLIBC_TUNABLES", "glibc.pthread.rseq=0");

/// Counts a program with addresses that are the same in every run.
pub(crate) fn counted(program: &Path, arguments: &[&str]) -> Counts {
    counted_with(None, program, arguments)
}

/// The same with hints in a directory.
fn counted_with(hints: Option<PathBuf>, program: &Path, arguments: &[&str]) -> Counts {
    let words = std::iter::once(program.into()).chain(arguments.iter().map(OsString::from)).collect();
    let environment = vec![(ENVIRONMENT.0.into(), ENVIRONMENT.1.into())];
    let command = Command { words, environment, fixed_addresses: true, silent: true, ..Command::default() };
    count(&Command { hints, ..command }).unwrap()
}

/// Counts a program twice, without and with what the first time has shown.
pub(crate) fn counted_twice(program: &Path, arguments: &[&str]) -> [Counts; 2] {
    counted_in_turn(program, [arguments, arguments])
}

/// The same with other arguments the second time.
pub(crate) fn counted_in_turn(program: &Path, arguments: [&[&str]; 2]) -> [Counts; 2] {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = format!("hints-{}-{number}", std::process::id());
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let runs = arguments.map(|arguments| counted_with(Some(directory.clone()), program, arguments));
    std::fs::remove_dir_all(&directory).unwrap();
    runs
}

/// Steps through the same.
pub(crate) fn stepped(program: &Path, arguments: &[&str]) -> Executions {
    let mut histogram = Histogram::default();
    let stepped = Stepped::new(program).arguments(arguments).variable(ENVIRONMENT.0, ENVIRONMENT.1);
    stepped.run(&mut histogram).unwrap();
    let mut executions = Executions::new();
    for ((_, address), count) in &histogram.executions {
        *executions.entry(*address).or_default() += count;
    }
    executions
}

/// The executions of single instructions, from the counts of blocks.
pub(crate) fn executions(counts: &Counts) -> Executions {
    let mut all = BTreeMap::<u64, i64>::new();
    let mut files = HashMap::new();
    for program in &counts.programs {
        add_program(program, &mut files, &mut all);
    }
    all.into_iter()
        .filter(|&(_, count)| count != 0)
        .map(|(at, count)| (at, count.try_into().unwrap()))
        .collect()
}

fn add_program(program: &ProgramCounts, files: &mut HashMap<PathBuf, Vec<u8>>, all: &mut BTreeMap<u64, i64>) {
    for thread in &program.threads {
        for &(block, count) in &thread.executions {
            for instruction in instructions(program, block, files) {
                *all.entry(instruction.address()).or_default() += count as i64;
            }
        }
        for partial in &thread.partials {
            let end = partial.address + u64::from(partial.length);
            let all_of_block = instructions(program, partial.block, files);
            let part = all_of_block.iter().filter(|one| (partial.address..end).contains(&one.address()));
            let part: Vec<_> = part.collect();
            assert_eq!(part.len(), partial.instructions as usize, "{partial:x?}");
            for instruction in part {
                *all.entry(instruction.address()).or_default() += partial.executions;
            }
        }
    }
}

/// The instructions of a block, out of its file or its own bytes.
fn instructions(program: &ProgramCounts, block: u32, files: &mut HashMap<PathBuf, Vec<u8>>) -> Vec<Decoded> {
    let block = &program.blocks[block as usize];
    let region = &program.regions[block.region as usize];
    let mut decoded = Vec::new();
    let bytes = match (&block.bytes, &region.file) {
        (Some(bytes), _) => bytes,
        (None, Some((path, offset))) => {
            let file = files.entry(path.clone()).or_insert_with(|| std::fs::read(path).unwrap());
            let from = (block.address - region.start + offset) as usize;
            &file[from..from + block.length as usize]
        }
        (None, None) => panic!("the block at {:#x} has no bytes", block.address),
    };
    decode(bytes, block.address, 64, &mut decoded);
    assert_eq!(decoded.len(), block.instructions as usize, "{block:x?}");
    decoded
}

/// Counts a program of which is known what it did with other arguments; all instructions must agree with stepping
/// through it. Returns both runs.
pub(crate) fn check_after(program: &Path, before: &[&str], arguments: &[&str]) -> [Counts; 2] {
    let [first, second] = counted_in_turn(program, [before, arguments]);
    let (second, differing) = differences(program, second, &stepped(program, arguments));
    assert_agrees(program, &differing);
    [first, second]
}

/// Counts and steps through a program; all instructions must agree, in its first run and when it is known.
pub(crate) fn check(program: &Path, arguments: &[&str]) -> Counts {
    let [first, second] = compare(program, arguments);
    [&first, &second].into_iter().for_each(|(_, differing)| assert_agrees(program, differing));
    first.0
}

/// The same, but only the program's own instructions must agree, and not the C library's.
///
/// The program reads `/proc/self/maps`, in which our memory stands too, and asks which signals are blocked,
/// of which stepping unblocks one.
pub(crate) fn check_own(program: &Path, arguments: &[&str]) -> Counts {
    let [first, second] = compare(program, arguments);
    for (counts, differing) in [&first, &second] {
        let regions: Vec<_> = counts.programs.iter().flat_map(|program| &program.regions).collect();
        let is_own = |address: u64| {
            let mut of_file =
                regions.iter().filter(|region| region.file.as_ref().is_some_and(|file| file.0 == program));
            of_file.any(|region| (region.start..region.end).contains(&address))
        };
        assert!(regions.iter().any(|region| is_own(region.start)));
        let own = differing.iter().filter(|difference| is_own(difference.address));
        assert_agrees(program, &own.copied().collect::<Vec<_>>());
    }
    first.0
}

/// An instruction whose counts differ.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Difference {
    address: u64,
    executed: Option<u64>,
    counted: Option<u64>,
}

fn assert_agrees(program: &Path, differing: &[Difference]) {
    let line = |one: &Difference| {
        format!("{:#x}: executed {:?}, counted {:?}", one.address, one.executed, one.counted)
    };
    let some: Vec<_> = differing.iter().take(20).map(line).collect();
    assert!(differing.is_empty(), "{}: {} differ: {some:#?}", program.display(), differing.len());
}

fn compare(program: &Path, arguments: &[&str]) -> [(Counts, Vec<Difference>); 2] {
    let truth = stepped(program, arguments);
    assert!(truth.len() > 20, "{} was stepped through", program.display());
    counted_twice(program, arguments).map(|counts| differences(program, counts, &truth))
}

fn differences(program: &Path, counts: Counts, truth: &Executions) -> (Counts, Vec<Difference>) {
    let found = executions(&counts);
    assert_eq!(counts.not_counted, [], "{}", program.display());
    let sum: u64 = counts.programs.iter().map(ProgramCounts::instructions).sum();
    assert_eq!(sum, found.values().sum::<u64>());
    let of = |at: &u64| Difference {
        address: *at,
        executed: truth.get(at).copied(),
        counted: found.get(at).copied(),
    };
    let all: std::collections::BTreeSet<_> = truth.keys().chain(found.keys()).collect();
    let differing = all.into_iter().filter(|at| truth.get(at) != found.get(at)).map(of).collect();
    (counts, differing)
}

/// The counts of a function's instructions that were executed, in the order of their addresses.
pub(crate) fn of_function(executions: &Executions, program: &Path, function: &str) -> Vec<u64> {
    use object::{Object as _, ObjectSymbol as _};
    /// Where programs that may lie anywhere are loaded when nothing is random.
    const BASE: u64 = 0x5555_5555_4000;
    let bytes = std::fs::read(program).unwrap();
    let object = object::File::parse(&*bytes).unwrap();
    let symbol = object.symbols().find(|symbol| symbol.name() == Ok(function)).unwrap();
    let start = BASE + symbol.address();
    let found: Vec<_> = executions.range(start..start + symbol.size()).map(|(_, &count)| count).collect();
    assert!(!found.is_empty(), "{function} was executed");
    found
}
