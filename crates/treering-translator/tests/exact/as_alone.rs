//! Programs that ask the kernel about themselves, are sent signals that they ignore, or fault where the kernel treats
//! traced processes in another way: counted, they do what they do alone.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Stdio;

use treering_profile::UncountedReason;
use treering_testing::programs::{
    ADDRESS_LIMIT, CUT_INSTRUCTION, FIRST_PROCESS, FULL_DESCRIPTORS, IGNORED_SIGNALS, INTERRUPTED_CALLS,
    OWN_RULES, Program, UNDER_FILTER, UNMAPPED_BESIDE, UNPROTECTABLE,
};
use treering_translator::{Command, Counts, Ended, NotCounted, count};

/// The exit status of programs that lack a privilege.
const UNPRIVILEGED: i32 = 77;

/// Runs a program alone. Returns its path, and what it exits with.
fn alone(program: &Program, arguments: &[&str]) -> (PathBuf, i32) {
    let path = program.build().unwrap();
    let mut command = std::process::Command::new(&path);
    let status = command.args(arguments).stdout(Stdio::null()).status().unwrap();
    (path, status.code().unwrap())
}

fn counted(path: PathBuf, arguments: &[&str], tree: bool) -> Counts {
    let words = std::iter::once(path.into()).chain(arguments.iter().map(OsString::from)).collect();
    count(&Command { words, silent: true, tree, ..Command::default() }).unwrap()
}

/// A program that exits with 0 if all is as it has to be does so alone and counted.
fn check(program: &Program, arguments: &[&str]) {
    let (path, status) = alone(program, arguments);
    assert_eq!(status, 0, "alone: {arguments:?}");
    for tree in [false, true] {
        let counts = counted(path.clone(), arguments, tree);
        assert_eq!(counts.ended, Ended::Exited(0), "{arguments:?} {tree}: {:?}", counts.given_up);
        // A tree may say that a function began with a fault. A child that the program kills may be gone before its
        // registers can be read.
        let is_killed =
            |lost: &NotCounted| lost.reason == UncountedReason::CutShort && lost.detail.contains("killed");
        assert!(tree || counts.not_counted.iter().all(is_killed), "{:?}", counts.not_counted);
    }
}

/// The tracer's memory counted, and `malloc` failed.
#[test]
fn limits_of_address_space() {
    check(&ADDRESS_LIMIT, &[]);
}

/// `epoll_wait`, `sigtimedwait` and others ended with `EINTR`, large `writev` and others with a part. The signals are `SIGCHLD`, `SIGURG`, `SIGWINCH`, and one
/// that is ignored explicitly.
#[test]
fn signals_without_effect_end_no_call() {
    for arguments in [&["17"][..], &["0"], &["23", "0"], &["28", "2"]] {
        check(&IGNORED_SIGNALS, arguments);
    }
}

/// `splice`, `pwritev2` and others ended with `EINTR`; `read` of `/dev/zero`, `sendmmsg`, `recvmmsg`, `sendfile` to a file
/// and others with a part.
#[test]
fn signals_without_effect_end_no_call_of_a_table() {
    for arguments in [&["17"][..], &["0"]] {
        check(&INTERRUPTED_CALLS, arguments);
    }
}

/// The program's filter may refuse the call that would do the rest.
#[test]
fn a_part_that_the_tracer_cannot_complete_is_noted() {
    let program = INTERRUPTED_CALLS.build().unwrap();
    let filter = UNDER_FILTER.build().unwrap();
    let words =
        [filter.as_os_str(), "seccomp".as_ref(), "refuse".as_ref(), program.as_os_str(), "17".as_ref()];
    let words = words.into_iter().chain(["pwritev2 to a pipe".as_ref()]).map(OsString::from).collect();
    let counts = count(&Command { words, silent: true, ..Command::default() }).unwrap();
    assert!(matches!(counts.notes[..], [note] if note.contains("with a part")), "{:?}", counts.notes);
}

/// The tracer's filter showed.
#[test]
fn programs_see_the_restrictions_that_they_set() {
    check(&OWN_RULES, &[]);
}

/// The kernel shows the tracer and its filter there, and only documentation said so.
#[test]
fn a_process_that_reads_its_own_status_is_noted() {
    let notes = |words: &[&str]| {
        let words = words.iter().map(OsString::from).collect();
        let environment = std::env::vars_os().collect();
        count(&Command { words, environment, silent: true, ..Command::default() }).unwrap().notes
    };
    for words in [&["cat", "/proc/self/status"][..], &["sh", "-c", "read line < /proc/$$/status"]] {
        let notes = notes(words);
        assert!(matches!(notes[..], [note] if note.contains("TracerPid")), "{words:?}: {notes:?}");
    }
    // The tracer itself asks for the state of signals here. Another process may read the file of any process.
    let path = IGNORED_SIGNALS.build().unwrap();
    let words = [path.to_str().unwrap(), "17", "2"];
    assert!((0..5).any(|_| notes(&words).is_empty()));
}

/// A page was to be made writable for a call that another thread had just unmapped.
#[test]
fn code_that_is_unmapped_beside_new_threads() {
    check(&UNMAPPED_BESIDE, &["150"]);
}

/// The process was ended because of an invalid instruction: the page could not be protected, and was not read.
#[test]
fn code_in_pages_that_cannot_be_protected() {
    for kind in ["0", "1"] {
        let (path, status) = alone(&UNPROTECTABLE, &[kind]);
        if status == UNPRIVILEGED {
            println!("skipped: there is no memory of kind {kind}: no free huge pages, or an older kernel");
            continue;
        }
        assert_eq!(status, 0);
        let counts = counted(path, &[kind], false);
        assert_eq!(counts.ended, Ended::Exited(0), "{kind}: {:?}", counts.given_up);
        let executed = counts.programs.iter().flat_map(|program| &program.threads);
        let executed = executed.flat_map(|thread| &thread.executions).map(|(_, count)| *count);
        // Three calls of a loop with a thousand rounds, of which the first may belong to the block before.
        let counts: Vec<u64> = executed.collect();
        assert!([999, 1000, 2997, 3000].iter().any(|rounds| counts.contains(rounds)), "{kind}: {counts:?}");
    }
}

#[test]
fn a_process_with_all_its_descriptors_has_children() {
    check(&FULL_DESCRIPTORS, &[]);
}

/// The process was ended because of an invalid instruction.
#[test]
fn instructions_that_continue_where_nothing_may_be_executed() {
    check(&CUT_INSTRUCTION, &[]);
    let (path, _) = alone(&CUT_INSTRUCTION, &[]);
    assert_eq!(counted(path, &["dies"], false).ended, Ended::Killed(11));
}

/// It faulted for ever, or went on behind the call that its filter answers with a signal.
#[test]
fn the_first_process_of_a_namespace_dies_of_its_fault() {
    for kind in ["0", "1", "2", "3", "4", "5", "6"] {
        let (path, signal) = alone(&FIRST_PROCESS, &[kind]);
        if signal == UNPRIVILEGED {
            println!("skipped: new PID namespaces need a privilege");
            return;
        }
        assert_ne!(signal, 0);
        let counts = counted(path, &[kind], false);
        assert_eq!(counts.ended, Ended::Exited(signal), "{kind}");
        let called = counts.programs.iter().flat_map(|program| &program.threads);
        let thousand = called.flat_map(|thread| &thread.executions).filter(|(_, count)| *count == 1000);
        assert!(thousand.count() >= 1, "{kind}: what it did before is counted");
    }
}
