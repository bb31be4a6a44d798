//! Small programs to profile, compiled from `fixtures/programs` when a test asks for them.
//!
//! A program is compiled once for each source, compiler and set of flags, into
//! `programs/` of the target directory, and found there by later tests. Tests that run at the same
//! time may compile it twice; the last one to finish is kept, and all are equal.

mod build;
mod recipe;
mod workload;

pub use build::{BuildError, fixture, output_directory};
pub use recipe::{
    ADDRESS_LIMIT, ALIASING, ALL_BLOCKED, ATTACHED, BENCH_FIB, BENCH_LOOPS, BENCH_OBJECTS, BENCH_SORT,
    BEYOND, BLOCKED_WRITES, CHANGED_CODE, CHILDREN, CONTROL_FLOW, COROUTINES, COVERED, CRASH, CREDITED,
    CUT_INSTRUCTION, DEEP_CALLS, DEEP_STACK, EDGE, ENDS_WHILE_MADE, EXITS_WITH, FAULTS, FIRST_PROCESS,
    FORK_THEN_LOAD, FREESTANDING, FULL_DESCRIPTORS, HARD_STACKS, HEAP, HELD, IGNORED_SIGNALS, INCLUSIVE,
    INLINES, INTERRUPTED_CALLS, JIT, KERNEL_WRITES, KNOWN_SHARES, LEAF_THREADS, LEFT_AT_FAULTS, LINES,
    LOADS_GS, LONG_RETURNS, Language, MAIN_EXITED, MANY_CHAINS, MANY_TARGETS, MANY_THREADS, MEMORY_WALKS,
    NESTED, OBJECTS, OTHER_COURSES, OTHER_TARGETS, OWN_FILTER, OWN_GS, OWN_RULES, OWN_STEPS, OWN_WRITER,
    PLUGIN, PLUGIN_HOST, PROCESSORS, PUSHED_RETURNS, Program, RAISED_RETURNS, RECURSION, RESTLESS,
    RETURNS_AS_JUMPS, REWRITTEN, ROWS, RUST_CHAINS, RUST_MARKED, RUST_SMALL, Recipe, SAME_PATH, SANITIZED,
    SEALED, SELECTED, SHORT_LIVES, SIGNAL_STORM, SIGNALS, SITES, SLEEPER, STACK_HOLE, STL, STOPPED_AT_EXEC,
    SUSPENDED, SWAPPED_HOST, SWAPPED_PLUGIN, TAIL_CALLS, THREADS_AND_FORK, TRAMPOLINES, TRANSFERS,
    TWO_MAPPINGS, UNDER_FILTER, UNMAPPED_BESIDE, UNPROTECTABLE, UNTRACED, UNWAITED, UPPER_BITS, UPPER_PARTS,
    WANTED_MEMORY, WIDE_VECTORS, WRITABLE_LOOP, WRITTEN_TOGETHER,
};
pub use workload::{Size, Workload, WorkloadKind, compressible_text};

use std::path::{Path, PathBuf};
use std::process::Command;

/// The script that becomes the program of its arguments by three execs.
pub fn exec_chain() -> PathBuf {
    fixture("exec_chain.sh")
}

/// The first program of that name on the search path, or one of Debian's own directories.
///
/// Debian's directories come first: a version manager's wrapper script is not the program.
pub fn installed(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let debian = [PathBuf::from("/usr/bin"), PathBuf::from("/bin")];
    let directories = debian.into_iter().chain(std::env::split_paths(&path));
    directories.map(|directory| directory.join(name)).find(|file| is_executable(file))
}

/// Has a command load a library before all others, wherever that lies.
///
/// `LD_PRELOAD` divides paths at spaces and colons, so it has the library's name, and `LD_LIBRARY_PATH` its folder.
pub fn preload<'a>(command: &'a mut Command, library: &Path) -> &'a mut Command {
    let name = library.file_name().unwrap_or_default();
    command.env("LD_PRELOAD", name).env("LD_LIBRARY_PATH", library.with_file_name(""))
}

fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    file.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_built_once_and_runs() {
        let program = EXITS_WITH.build().expect("cc builds a C program");
        assert_eq!(EXITS_WITH.build().expect("it is there already"), program);
        let status = std::process::Command::new(&program).arg("7").status().expect("it runs");
        assert_eq!(status.code(), Some(7));
    }

    #[test]
    fn other_flags_make_another_program() {
        let plain = EXITS_WITH.build().expect("cc builds a C program");
        let fast = EXITS_WITH.variant("unoptimised", &["-O0"]).build().expect("cc builds a C program");
        assert_ne!(plain, fast);
    }

    #[test]
    fn compiler_errors_are_reported() {
        let error = EXITS_WITH.variant("wrong", &["-no-such-flag"]).build().expect_err("no such flag");
        assert!(error.to_string().contains("-no-such-flag"), "{error}");
    }

    #[test]
    fn programs_that_are_not_there_are_not_found() {
        assert_eq!(installed("no-such-program-anywhere"), None);
        assert!(installed("sh").is_some());
    }
}
