//! The commands that cargo lacks: `cargo xtask test`, `check-deps` and `docs`. The benchmarks of `cargo xtask bench`
//! are a crate of their own, `xtask-bench`.
//!
//! It is no part of what users install, and it knows the crates only by their manifests, their
//! sources and their commands, so that it is built within seconds.
#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command that speaks to developers")]

mod archive;
mod dependency;
mod docs;
mod engines;
mod feature;
mod fleet;
mod licence;
mod link;
mod metrics;
mod odd_folder;
mod package;
mod page;
mod quick;
mod readme;
mod rooms;
mod sources;
mod spelling;
mod test;
mod test_output;
mod unsafe_code;
mod workspace;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  test --quick     check the format, lint the crates that have changed, and run the tests that need no other program:
                   two minutes; `test --help` says more
  test             install missing Debian packages, then run every check and test
  check-deps       check which crate may depend on which, what only a few files may hold, and the licences of
                   dependencies
  docs             make the README of each crate, docs/cli.md, and the documentation as a site (with mdBook)
  fleet            build treering-query, and run the tests of archives with all engines and a stand-in for S3
  metrics FOLDER   make the table of top-down metrics from a checkout of github.com/intel/perfmon
  octave-package   make the package that Octave installs
  prolog-pack      make the pack that SWI-Prolog installs
  bench NAME       measure side by side with other tools, and print tables; `bench --help` has the names, and
                   `bench NAME --help` the options of each
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["test"] => test::run(),
        ["test", "--quick"] => quick::run(),
        ["test", "--help" | "-h"] => {
            print!("{}", quick::HELP);
            ExitCode::SUCCESS
        }
        ["--help" | "-h"] => {
            print!("{USAGE}");
            ExitCode::SUCCESS
        }
        ["metrics", checkout] => metrics::run(checkout),
        ["octave-package"] => archive::OCTAVE.run(),
        ["prolog-pack"] => archive::PROLOG.run(),
        ["check-deps"] => check_dependencies(),
        ["docs"] => docs::run(),
        ["fleet"] => fleet::run(),
        ["bench", benchmark @ ..] => bench(benchmark),
        _ => {
            eprint!("{USAGE}");
            ExitCode::from(2)
        }
    }
}

/// Builds and runs the benchmarks, which measure other processes only and need no optimisation themselves.
fn bench(words: &[&str]) -> ExitCode {
    let mut command = workspace::cargo();
    command.args(["run", "--quiet", "--package", "xtask-bench", "--"]).args(words);
    match command.status() {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: cannot run cargo: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Prints every broken rule.
fn check_dependencies() -> ExitCode {
    let broken = dependency::check().and_then(|mut broken| {
        broken.extend(unsafe_code::check()?);
        broken.extend(licence::check()?);
        broken.extend(rooms::check()?);
        Ok(broken)
    });
    match broken {
        Ok(broken) if broken.is_empty() => {
            println!("the rules of dependencies, rooms, unsafe code and licences hold");
            ExitCode::SUCCESS
        }
        Ok(broken) => {
            broken.iter().for_each(|line| eprintln!("error: {line}"));
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
