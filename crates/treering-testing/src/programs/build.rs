//! Compiles a recipe into the target directory.

use std::collections::hash_map::DefaultHasher;
use std::ffi::OsString;
use std::hash::{Hash as _, Hasher as _};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::recipe::{Language, Recipe};

/// Why a program could not be made.
#[derive(Debug)]
#[non_exhaustive]
pub enum BuildError {
    /// A file could not be read, written or run.
    Io {
        /// The operation and its file.
        doing: String,
        /// The system's answer.
        error: io::Error,
    },
    /// The compiler refused.
    Compiler {
        /// The command line.
        command: String,
        /// The compiler's messages.
        said: String,
    },
}

impl std::fmt::Display for BuildError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Io { doing, error } => write!(f, "cannot {doing}: {error}"),
            Self::Compiler { command, said } => write!(f, "{command} failed:\n{said}"),
        }
    }
}

impl std::error::Error for BuildError {}

fn io_error(doing: impl Into<String>) -> impl FnOnce(io::Error) -> BuildError {
    let doing = doing.into();
    |error| BuildError::Io { doing, error }
}

/// The file of that name in `fixtures/programs`.
pub fn fixture(name: &str) -> PathBuf {
    workspace().join("fixtures/programs").join(name)
}

/// Where compiled programs and generated data are kept: `programs/` of the target directory.
pub fn output_directory() -> PathBuf {
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| workspace().join("target"), PathBuf::from);
    target.join("programs")
}

/// The root of the workspace, two above this crate's manifest.
fn workspace() -> &'static Path {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.ancestors().nth(2).unwrap_or(manifest)
}

impl Recipe {
    /// Compiles the program unless it is there already, and returns its path.
    pub fn build(&self) -> Result<PathBuf, BuildError> {
        let directory = output_directory().join(self.key()?);
        let program = directory.join(self.name);
        if !program.exists() {
            std::fs::create_dir_all(&directory).map_err(io_error(format!("make {}", directory.display())))?;
            self.compile(&program)?;
        }
        Ok(program)
    }

    /// Compiles into a file of this thread's own, which then appears in its place at once, unless another test was
    /// first. So no test runs half a program, or one that is replaced while it runs.
    fn compile(&self, program: &Path) -> Result<(), BuildError> {
        let unfinished = program.with_extension(format!("{}.unfinished", unique()));
        let mut command = self.command();
        command.arg("-o").arg(&unfinished);
        let shown = format!("{command:?}");
        let output = command.output().map_err(io_error(format!("run {shown}")))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(BuildError::Compiler { command: shown, said });
        }
        let linked = match std::fs::hard_link(&unfinished, program) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => Ok(()),
        };
        let removed = std::fs::remove_file(&unfinished);
        linked.and(removed).map_err(io_error(format!("give {} its name", unfinished.display())))
    }

    fn command(&self) -> Command {
        let mut command = Command::new(self.compiler());
        command.args(self.common_flags()).arg(fixture(self.source)).args(&self.flags);
        command
    }

    fn compiler(&self) -> OsString {
        let (variable, default) = match self.language {
            Language::C => ("CC", "cc"),
            Language::Cpp => ("CXX", "c++"),
            Language::Rust => ("RUSTC", "rustc"),
        };
        std::env::var_os(variable).unwrap_or_else(|| default.into())
    }

    /// Optimised, with debug information, without frame pointers: what a profiler finds in the wild.
    fn common_flags(&self) -> &'static [&'static str] {
        match self.language {
            Language::C => &["-O2", "-g", "-fomit-frame-pointer"],
            Language::Cpp => &["-std=c++17", "-O2", "-g", "-fomit-frame-pointer"],
            Language::Rust => &["--edition=2024", "-Copt-level=3", "-g"],
        }
    }

    /// A name that changes with the sources, the compiler and the flags.
    fn key(&self) -> Result<String, BuildError> {
        let mut hasher = DefaultHasher::new();
        for file in [fixture(self.source), fixture("burn.h")] {
            let doing = format!("read {}", file.display());
            std::fs::read(&file).map_err(io_error(doing))?.hash(&mut hasher);
        }
        (self.compiler(), self.common_flags(), &self.flags).hash(&mut hasher);
        let separator = if self.variant.is_empty() { "" } else { "-" };
        Ok(format!("{}{separator}{}-{:016x}", self.name, self.variant, hasher.finish()))
    }
}

/// A number that no other thread of any process has at this time.
pub(super) fn unique() -> String {
    format!("{}-{:?}", std::process::id(), std::thread::current().id()).replace(['(', ')'], "")
}
