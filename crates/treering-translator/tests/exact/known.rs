//! Facts about instructions that are known since their translation agree with their bytes.

use treering_recover::{KnownInstructions, recover};
use treering_testing::programs::{CONTROL_FLOW, LEAF_THREADS, OBJECTS, Program, REWRITTEN, SIGNALS};
use treering_testing::single_step::code_files;
use treering_translator::{Command, count};

/// All that is known of a program's instructions is what is decoded of their bytes, and nothing is unknown.
fn check(program: &Program) {
    let path = program.build().unwrap();
    let counts = count(&Command { words: vec![path.into()], silent: true, ..Command::default() }).unwrap();
    let (profile, known) = counts.profile_and_instructions();
    let (mut by_bytes, mut by_both) = (profile.code.clone(), profile.code.clone());
    let read = recover(&mut by_bytes, KnownInstructions::default(), &mut code_files(&profile));
    let both = recover(&mut by_both, known.clone(), &mut code_files(&profile));
    assert_eq!(both, read);
    assert_eq!(read.unreadable_blocks, 0);
    assert!(by_bytes.blocks.len() > 20);
    assert_eq!(by_both.blocks, by_bytes.blocks);
    assert_eq!(by_both.executions, by_bytes.executions);
    assert_eq!(by_both.branches, by_bytes.branches);
    let mut unread = profile.code.clone();
    unread.bytes.clear();
    assert_eq!(recover(&mut unread, known, &mut |_, _| None), read);
}

#[test]
fn instructions_need_not_be_decoded_again() {
    [CONTROL_FLOW, OBJECTS, LEAF_THREADS, SIGNALS, REWRITTEN].iter().for_each(check);
}
