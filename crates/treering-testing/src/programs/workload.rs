//! Workloads of realistic shape, as command lines.

use std::ffi::OsString;
use std::path::PathBuf;

use super::build::{BuildError, fixture, output_directory, unique};
use super::{RUST_CHAINS, STL, installed};

/// How long a workload runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// About 0.3 seconds, for tests.
    Short,
    /// About half a second.
    Medium,
    /// About five seconds, for measuring what a start and an end cost as well.
    Long,
}

/// The kind of workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkloadKind {
    /// Debian's `xz` on generated text.
    Xz,
    /// C++, heavy in the standard library.
    Stl,
    /// SQLite's own shell.
    Sqlite,
    /// CPython.
    Python,
    /// Rust.
    Rust,
}

/// A program with its arguments, ready to run. It prints the same in every run.
#[derive(Clone, Debug)]
pub struct Workload {
    /// A short name for tables.
    pub name: &'static str,
    /// The program, with a path.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
}

impl WorkloadKind {
    /// Every workload, in the order of tables.
    pub const ALL: [Self; 5] = [Self::Xz, Self::Stl, Self::Sqlite, Self::Python, Self::Rust];

    /// A short name for tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Xz => "xz",
            Self::Stl => "stl (C++)",
            Self::Sqlite => "sqlite",
            Self::Python => "python",
            Self::Rust => "chains (Rust)",
        }
    }

    /// Makes it ready to run: compiles it or finds it installed, and makes its data. Nothing is
    /// returned when the installed program it needs is missing.
    pub fn prepare(self, size: Size) -> Result<Option<Workload>, BuildError> {
        let program = match self {
            Self::Xz => installed("xz"),
            Self::Sqlite => installed("sqlite3"),
            Self::Python => installed("python3"),
            Self::Stl => Some(STL.build()?),
            Self::Rust => Some(RUST_CHAINS.build()?),
        };
        let Some(program) = program else { return Ok(None) };
        let arguments = self.arguments(size)?;
        Ok(Some(Workload { name: self.name(), program, arguments }))
    }

    fn arguments(self, size: Size) -> Result<Vec<OsString>, BuildError> {
        let count = |short: usize, medium: usize, long: usize| match size {
            Size::Short => short,
            Size::Medium => medium,
            Size::Long => long,
        };
        let word = |number: usize| OsString::from(number.to_string());
        let text = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
        Ok(match self {
            Self::Xz => {
                let data = data_file(count(300_000, 450_000, 4_500_000))?;
                let mut arguments = text(&["--threads=1", "-6", "--keep", "--stdout", "--force"]);
                arguments.push(data.into());
                arguments
            }
            Self::Sqlite => {
                let rows = format!(".parameter set :rows {}", count(70_000, 85_000, 850_000));
                let read = format!(".read \"{}\"", fixture("workloads/joins.sql").display());
                text(&["-batch", "-init", "/dev/null", ":memory:", ".parameter init", &rows, &read])
            }
            Self::Python => {
                let rounds = [count(1, 2, 15), 1000];
                std::iter::once(fixture("workloads/loops.py").into()).chain(rounds.map(word)).collect()
            }
            Self::Stl => [count(1, 4, 35), 60_000].map(word).to_vec(),
            Self::Rust => [count(1, 4, 32), 220_000].map(word).to_vec(),
        })
    }
}

/// A file of `bytes` bytes of [`compressible_text`], made when it is not there.
fn data_file(bytes: usize) -> Result<PathBuf, BuildError> {
    let path = output_directory().join(format!("text-{bytes}.txt"));
    let doing = format!("write {}", path.display());
    let write = || {
        if path.metadata().is_ok_and(|found| found.len() == bytes as u64) {
            return Ok(());
        }
        std::fs::create_dir_all(output_directory())?;
        let unfinished = path.with_extension(format!("{}.unfinished", unique()));
        std::fs::write(&unfinished, compressible_text(bytes))?;
        std::fs::rename(&unfinished, &path)
    };
    write().map_err(|error| BuildError::Io { doing, error })?;
    Ok(path)
}

/// Text that compresses about as well as prose: words of a small vocabulary, short ones often,
/// the same bytes for the same length in every run.
pub fn compressible_text(bytes: usize) -> Vec<u8> {
    let mut state = 88_172_645_463_325_252_u64;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let syllables: [&[u8]; 16] = [
        b"an", b"ber", b"ce", b"do", b"el", b"for", b"gi", b"hu", b"in", b"ka", b"lo", b"mer", b"no", b"ost",
        b"ra", b"tu",
    ];
    let vocabulary: Vec<u64> = (0..4096).map(|_| next()).collect();
    let mut text = Vec::with_capacity(bytes + 32);
    while text.len() < bytes {
        // The product of two draws makes words at the start of the vocabulary more frequent.
        let rank = (next() % 4096) * (next() % 4096) / 4096;
        let mut word = vocabulary[rank as usize];
        for _ in 0..=word % 3 {
            word >>= 4;
            text.extend_from_slice(syllables[(word % 16) as usize]);
        }
        text.push(if next() % 12 == 0 { b'\n' } else { b' ' });
    }
    text.truncate(bytes);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_has_the_length_asked_for_and_is_always_the_same() {
        assert_eq!(compressible_text(10_001).len(), 10_001);
        assert!(compressible_text(5_000).starts_with(&compressible_text(4_000)));
    }

    #[test]
    #[expect(clippy::print_stderr, reason = "what is skipped is said")]
    fn every_workload_that_can_be_made_runs_and_prints_the_same_twice() {
        for kind in WorkloadKind::ALL {
            let Some(workload) = kind.prepare(Size::Short).expect("compilers are there") else {
                eprintln!("skipped: the program of the workload {} is not installed", kind.name());
                continue;
            };
            let run = || std::process::Command::new(&workload.program).args(&workload.arguments).output();
            let (first, second) = (run().expect("it runs"), run().expect("it runs"));
            assert!(first.status.success(), "{workload:?}: {}", String::from_utf8_lossy(&first.stderr));
            assert!(!first.stdout.is_empty() && first.stdout == second.stdout, "{}", kind.name());
        }
    }
}
