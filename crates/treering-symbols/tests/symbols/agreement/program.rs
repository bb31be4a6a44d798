//! Programs that are compiled for the tests.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A program, in the language that it is named after.
#[derive(Clone, Copy)]
pub(crate) enum Program {
    C,
    Cpp,
    Rust,
}

impl Program {
    pub(crate) fn compiler(self) -> &'static str {
        match self {
            Self::C => "gcc",
            Self::Cpp => "g++",
            Self::Rust => "rustc",
        }
    }

    fn libraries(self) -> &'static [&'static str] {
        match self {
            Self::C => &["-lm"],
            Self::Cpp | Self::Rust => &[],
        }
    }

    fn source(self) -> (&'static str, &'static str) {
        match self {
            Self::C => ("program.c", include_str!("program.c")),
            Self::Cpp => ("program.cpp", include_str!("program.cpp")),
            Self::Rust => ("program.rs", include_str!("program_to_compile.rs")),
        }
    }
}

/// Whether a tool is missing; says so.
pub(crate) fn missing(tools: &[&str]) -> bool {
    let runs = |tool: &&&str| Command::new(tool).arg("--version").output().is_ok();
    let Some(absent) = tools.iter().find(|tool| !runs(tool)) else { return false };
    eprintln!("SKIPPED: {absent} is not installed");
    true
}

/// An empty directory of that name for one test.
pub(crate) fn directory(name: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("agreement").join(name);
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory).expect("the target directory is writable");
    std::fs::canonicalize(directory).expect("it was made just now")
}

/// Compiles a program with the arguments given in a directory of its own.
pub(crate) fn compile(name: &str, program: Program, arguments: &[&str]) -> PathBuf {
    compile_in(&directory(name), "program", program.compiler(), program, arguments)
}

/// Compiles a program with a compiler in a directory, which may hold other builds of it. The
/// debug information of all of them names the same source file.
pub(crate) fn compile_in(
    directory: &Path,
    output: &str,
    compiler: &str,
    program: Program,
    arguments: &[&str],
) -> PathBuf {
    let (file, text) = program.source();
    std::fs::write(directory.join(file), text).expect("the directory is writable");
    let mut all = vec!["-o", output];
    all.extend(arguments);
    all.push(file);
    all.extend(program.libraries());
    run_in(directory, compiler, &all);
    directory.join(output)
}

/// Whether a tool succeeds; for what depends on how it was built. Says so if not.
pub(crate) fn succeeds_in(directory: &Path, tool: &str, arguments: &[&str]) -> bool {
    let output = Command::new(tool).args(arguments).current_dir(directory).output();
    let succeeds = output.is_ok_and(|output| output.status.success());
    if !succeeds {
        eprintln!("SKIPPED: {tool} {} does not work here", arguments.join(" "));
    }
    succeeds
}

/// Runs a tool that must succeed, and returns what it prints.
pub(crate) fn run_in(directory: &Path, tool: &str, arguments: &[&str]) -> String {
    let output = Command::new(tool).args(arguments).current_dir(directory).output();
    let output = output.unwrap_or_else(|error| panic!("{tool}: {error}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{tool} {arguments:?} failed: {errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
