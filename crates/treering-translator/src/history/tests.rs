#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::fs;
use std::os::unix::fs::MetadataExt as _;

use crate::counting::result::{Branch, CountedBlock, KnownBlocks, ThreadCounts};
use crate::surroundings::HeldFacts;

use super::*;

/// An empty directory.
fn directory(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("treering-hints-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

/// A program that executed blocks of two files, each mapped from its offset 0x1000 on.
fn counts(files: [&Path; 2], blocks: &[(u32, u64)], transfers: &[(u32, u64)]) -> ProgramCounts {
    let region = |number: u64, file: &Path| CodeRegion {
        start: (number + 1) << 32,
        end: (number + 1) << 32 | 0x10_0000,
        file: Some((file.to_owned(), 0x1000)),
        hidden: None,
        version: None,
        vdso: false,
    };
    let block = |&(region, offset): &(u32, u64)| CountedBlock {
        address: u64::from(region + 1) << 32 | offset,
        length: 4,
        instructions: 1,
        last_length: 4,
        region,
        bias: None,
        bytes: None,
    };
    let branch = |&(block, target): &(u32, u64)| Branch {
        kind: BranchKind::IndirectCall,
        site: Some(0),
        block: Some(block),
        target: Some(target),
        region: None,
        count: 1,
    };
    let thread = ThreadCounts {
        returned: Vec::new(),
        tid: 1,
        pid: 1,
        name: String::new(),
        executions: Vec::new(),
        partials: Vec::new(),
        branches: transfers.iter().map(branch).collect(),
        tree: None,
        modelled: None,
    };
    ProgramCounts {
        held: HeldFacts::default(),
        pid: 1,
        path: files[0].to_owned(),
        regions: vec![region(0, files[0]), region(1, files[1])],
        blocks: blocks.iter().map(block).collect(),
        threads: vec![thread],
        translated: 0,
        known: KnownBlocks::default(),
    }
}

fn files(directory: &Path) -> [PathBuf; 2] {
    let files = ["program", "library"].map(|name| directory.join(name));
    files.iter().for_each(|file| fs::write(file, "code").unwrap());
    files
}

const CODE: &str = "code";

/// The stored hints for a program.
fn kept(directory: &Path, program: &Path) -> ProgramHints {
    (*Hints::new(&directory.join(CODE), true).of(program)).clone()
}

fn learn(directory: &Path, counts: &ProgramCounts) {
    let mut hints = Hints::new(&directory.join(CODE), true);
    hints.learn(counts, 0);
    hints.keep();
}

fn blocks_of(module: &Module) -> Vec<u32> {
    (0..0x10_0000).filter(|&offset| module.blocks.contains(offset)).collect()
}

#[test]
fn executed_code_is_known_in_the_next_run() {
    let directory = directory("next");
    let [program, library] = files(&directory);
    let both = [&*program, &*library];
    let first = counts(both, &[(0, 0), (0, 0x5001), (1, 0xfff)], &[(1, 2 << 32 | 0xfff)]);
    learn(&directory, &first);
    let known = kept(&directory, &program);
    let [of_program, of_library] = &known.modules[..] else { panic!("{known:?}") };
    assert_eq!(blocks_of(of_program), [0x1000, 0x6001]);
    assert_eq!(blocks_of(of_library), [0x1fff]);
    assert_eq!(
        of_program.transfers,
        [SeenTransfer { from: 0x6001, to: FilePlace { module: 1, offset: 0x1fff }, count: 1 }]
    );

    // If it does the same again, nothing is written.
    let written = || {
        let file = fs::read_dir(directory.join(CODE)).unwrap().next().unwrap().unwrap();
        file.metadata().unwrap().ino()
    };
    let before = written();
    learn(&directory, &first);
    assert_eq!((kept(&directory, &program), written()), (known, before));
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn expected_code_was_executed_in_the_last_two_runs() {
    let directory = directory("two");
    let [program, library] = files(&directory);
    let both = [&*program, &*library];
    let expected = || -> Vec<u32> {
        let module = &kept(&directory, &program).modules[0];
        (0..0x10_0000).filter(|&offset| module.expects(offset)).collect()
    };
    let run = |offsets: &[u64]| {
        let blocks: Vec<_> = offsets.iter().map(|&offset| (0, offset)).collect();
        learn(&directory, &counts(both, &blocks, &[]));
        expected()
    };
    assert_eq!(run(&[0, 4]), [0x1000, 0x1004], "of a single run all");
    assert_eq!(run(&[0, 8]), [0x1000]);
    assert_eq!(run(&[0, 8, 12]), [0x1000, 0x1008]);
    assert_eq!(run(&[0, 8, 12]), [0x1000, 0x1008, 0x100c]);
    // Several processes in one run count as one run.
    let mut hints = Hints::new(&directory.join(CODE), true);
    [0, 8].into_iter().for_each(|offset| hints.learn(&counts(both, &[(0, offset)], &[]), 0));
    hints.keep();
    assert_eq!(expected(), [0x1000, 0x1008]);
    fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn where_a_block_led_most_often_comes_first() {
    let directory = directory("often");
    let [program, library] = files(&directory);
    let target = |offset: u64| 1 << 32 | offset;
    let transfers =
        [(0, target(8)), (1, target(8)), (0, target(4)), (1, target(0)), (1, target(0)), (0, target(4))];
    learn(&directory, &counts([&program, &library], &[(0, 0), (0, 4), (0, 8)], &transfers));
    let known = &kept(&directory, &program).modules[0];
    let found: Vec<_> =
        known.transfers.iter().map(|transfer| (transfer.from, transfer.to.offset, transfer.count)).collect();
    let expected = [(0x1000, 0x1004, 2), (0x1000, 0x1008, 1), (0x1004, 0x1000, 2), (0x1004, 0x1008, 1)];
    assert_eq!(found, expected);
    fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn branch_bias_is_that_of_the_last_run_that_had_one() {
    let directory = directory("bias");
    let [program, library] = files(&directory);
    let run = |biases: [Option<BranchBias>; 3]| {
        let mut counts = counts([&program, &library], &[(0, 0), (0, 4), (0, 8)], &[]);
        counts.blocks.iter_mut().zip(biases).for_each(|(block, bias)| block.bias = bias);
        learn(&directory, &counts);
        let module = kept(&directory, &program).modules[0].clone();
        [0x1000, 0x1004, 0x1008].map(|offset| {
            let number = with_bias(offset, BranchBias::FallThrough).unwrap();
            module.biases.one_of_two(number).map(|found| found % 2)
        })
    };
    let (next, target) = (Some(BranchBias::FallThrough), Some(BranchBias::Taken));
    assert_eq!(run([next, None, target]), [Some(0), None, Some(1)]);
    assert_eq!(run([None, next, target]), [None, Some(0), Some(1)]);
    assert_eq!(run([None; 3]), [None, Some(0), Some(1)], "they were not looked for");
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn programs_that_run_together_know_of_each_other_if_nothing_else_is_known() {
    let directory = directory("together");
    let [program, library] = files(&directory);
    let both = [&*program, &*library];
    let mut hints = Hints::new(&directory.join(CODE), true);
    assert_eq!(*hints.of(&program), ProgramHints::default());
    hints.learn(&counts(both, &[(0, 0)], &[]), 0);
    assert_eq!(blocks_of(&hints.of(&program).modules[0]), [0x1000]);
    hints.keep();
    let mut hints = Hints::new(&directory.join(CODE), true);
    hints.learn(&counts(both, &[(0, 8)], &[]), 0);
    assert_eq!(blocks_of(&hints.of(&program).modules[0]), [0x1000]);
    fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn a_file_that_has_changed_is_forgotten_with_the_ways_into_it() {
    let directory = directory("changed");
    let [program, library] = files(&directory);
    let both = [&*program, &*library];
    let transfers = [(0, 2 << 32), (0, 1 << 32), (1, 1 << 32)];
    let mut hints = Hints::new(&directory.join(CODE), true);
    hints.learn(&counts(both, &[(0, 0), (1, 0)], &transfers), 0);
    hints.keep();
    // The file changes, also while programs run.
    fs::write(&library, "other code").unwrap();
    let known = kept(&directory, &program);
    assert_eq!(known.find(program.to_str().unwrap()), Some(0));
    assert_eq!(known.find(library.to_str().unwrap()), None);
    hints.learn(&counts(both, &[(1, 4)], &[]), 0);
    hints.keep();
    let known = kept(&directory, &program);
    let [of_program, of_library] = &known.modules[..] else { panic!("{known:?}") };
    assert_eq!((blocks_of(of_library), &of_library.transfers[..]), (vec![0x1004], &[][..]));
    assert_eq!(
        of_program.transfers,
        [SeenTransfer { from: 0x1000, to: FilePlace { module: 0, offset: 0x1000 }, count: 1 }]
    );
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn of_which_run_the_courses_are_is_kept() {
    let directory = directory("executions");
    let [program, library] = files(&directory);
    let run = |executions| {
        let mut hints = Hints::new(&directory.join(CODE), true);
        hints.learn(&counts([&program, &library], &[(0, 0)], &[]), executions);
        hints.keep();
        kept(&directory, &program).executions
    };
    let long = 100_000_000;
    assert_eq!([long, 0, long, 2 * long, 0].map(run), [long, long, long, 2 * long, 2 * long]);
    assert!(tells_more(long, 0) && tells_more(2 * long, long));
    assert!(!tells_more(long, long) && !tells_more(long / 10, 0) && !tells_more(0, 0));
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn hints_of_others_or_damaged_ones_are_not_used() {
    let directory = directory("damaged");
    let [program, library] = files(&directory);
    learn(&directory, &counts([&program, &library], &[(0, 0), (0, 4), (1, 0)], &[(0, 2 << 32)]));
    assert_eq!(kept(&directory, &library), ProgramHints::default(), "that is another program");
    let path = fs::read_dir(directory.join(CODE)).unwrap().next().unwrap().unwrap().path();
    let whole = fs::read(&path).unwrap();
    for length in 0..whole.len() {
        fs::write(&path, &whole[..length]).unwrap();
        assert_eq!(kept(&directory, &program), ProgramHints::default(), "{length} bytes");
    }
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 0xff;
        fs::write(&path, &bytes).unwrap();
        let known = kept(&directory, &program);
        let mut transfers = known.modules.iter().flat_map(|module| &module.transfers);
        assert!(transfers.all(|transfer| usize::from(transfer.to.module) < known.modules.len()));
    }
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn only_so_many_bytes_are_kept() {
    let directory = directory("many");
    let [program, library] = files(&directory);
    let code = directory.join(CODE);
    fs::create_dir_all(&code).unwrap();
    for number in 0..300 {
        let old = fs::File::create(code.join(format!("{number}.hints"))).unwrap();
        old.set_len(1 << 20).unwrap();
        old.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(number)).unwrap();
    }
    let left = code.join("0.1.unfinished");
    fs::File::create(&left).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
    learn(&directory, &counts([&program, &library], &[(0, 0)], &[]));
    assert_eq!(fs::read_dir(&code).unwrap().count(), 256);
    assert!(!left.exists(), "what a killed run has left goes as well");
    assert!(code.join("299.hints").exists() && !code.join("44.hints").exists());
    assert_eq!(blocks_of(&kept(&directory, &program).modules[0]), [0x1000]);
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn files_that_are_used_again_are_not_old() {
    let directory = directory("used");
    let [program, library] = files(&directory);
    learn(&directory, &counts([&program, &library], &[(0, 0)], &[]));
    let path = fs::read_dir(directory.join(CODE)).unwrap().next().unwrap().unwrap().path();
    let file = fs::File::options().append(true).open(path).unwrap();
    file.set_modified(std::time::UNIX_EPOCH).unwrap();
    assert_eq!(blocks_of(&kept(&directory, &program).modules[0]), [0x1000]);
    let ago = file.metadata().unwrap().modified().unwrap().elapsed().unwrap();
    assert!(ago < std::time::Duration::from_secs(3600), "{ago:?}");
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn runs_that_do_not_learn_keep_nothing() {
    let directory = directory("learns");
    let [program, library] = files(&directory);
    learn(&directory, &counts([&program, &library], &[(0, 0)], &[]));
    let mut hints = Hints::new(&directory.join(CODE), false);
    hints.learn(&counts([&program, &library], &[(0, 8)], &[]), 0);
    hints.keep();
    assert_eq!(blocks_of(&hints.of(&program).modules[0]), [0x1000], "what is known is used");
    assert_eq!(blocks_of(&kept(&directory, &program).modules[0]), [0x1000]);
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn directories_that_cannot_be_made_are_done_without() {
    let directory = directory("unwritable");
    let [program, library] = files(&directory);
    fs::write(directory.join(CODE), "a file").unwrap();
    learn(&directory, &counts([&program, &library], &[(0, 0)], &[]));
    assert_eq!(kept(&directory, &program), ProgramHints::default());
    fs::remove_dir_all(directory).unwrap();
}
