//! `cargo xtask bench`: what profiling costs and how good profiles are, side by side with other tools.
//!
//! A benchmark is a subcommand and a function from its options to tables; [`frame`] does the rest. Runs of
//! all tools are interleaved in random order, because the machine is rarely idle and drifts. Benchmarks compare the
//! processor time of runs in the same round, never wall time.
#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command that speaks to developers")]

mod compare;
mod count;
mod fleet;
mod frame;
mod gprof;
mod grid;
mod large;
mod launch;
mod measure;
mod octave;
mod overhead;
mod profilers;
mod prolog;
mod record;
mod recorded;
mod sampler;
mod stacks;
mod statistics;
mod table;
mod truth;
mod view;
mod workspace;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::builder::PossibleValuesParser;
use clap::{Parser, Subcommand};

use frame::execute;

/// Runs a benchmark, and writes its tables into a folder of the target directory
#[derive(Parser)]
#[command(bin_name = "cargo xtask bench")]
struct Arguments {
    #[command(flatten)]
    effort: frame::Effort,
    #[command(subcommand)]
    benchmark: Benchmark,
}

#[derive(Subcommand)]
enum Benchmark {
    /// Recording side by side with other tools; all parts unless some are named
    Record {
        #[arg(value_parser = PossibleValuesParser::new(record::PARTS.map(|(name, _)| name)))]
        parts: Vec<String>,
    },
    /// Twelve programs natively, counted and under Valgrind
    Count {
        /// Leave Valgrind out
        #[arg(long)]
        ours_only: bool,
        /// Only programs whose names contain one of these
        programs: Vec<String>,
    },
    /// How often comparisons find a change that is none, miss one, and name a wrong cause
    Compare {
        /// Where the sources of lua, zlib, expat, bzip2 and sqlite are, in folders of these names
        #[arg(long, value_name = "FOLDER")]
        sources: Option<PathBuf>,
    },
    /// One program under each kind of profiler, with a plot
    Profilers,
    /// The cost of a call in programs compiled with -pg, and how many calls are counted
    Gprof,
    /// Profiling of Octave, side by side with its own profiler
    Octave,
    /// Pages of large profiles in Chromium, side by side with Speedscope
    View {
        /// Put the tables into docs/view.md
        #[arg(long)]
        docs: bool,
    },
    /// Profiling of SWI-Prolog, side by side with its own profiler
    Prolog,
    /// Ten thousand profiles in an archive, with treering-query and DuckDB
    Fleet,
    /// Runs a program for another benchmark
    #[command(hide = true)]
    Launch(launch::Launched),
}

fn main() -> ExitCode {
    let Arguments { effort, benchmark } = Arguments::parse();
    let outcome = match benchmark {
        Benchmark::Record { parts } => {
            execute("record", "treering", effort, &|bench| record::run(bench, &parts))
        }
        Benchmark::Count { ours_only, programs } => {
            execute("count", "treering", effort, &|bench| count::run(bench, ours_only, &programs))
        }
        Benchmark::Compare { sources } => {
            execute("compare", "treering", effort, &|bench| compare::run(bench, sources.as_deref()))
        }
        Benchmark::Profilers => execute("profilers", "treering-runtime", effort, &profilers::run),
        Benchmark::Gprof => execute("gprof", "treering-pg", effort, &gprof::run),
        Benchmark::Octave => execute("octave", "treering-octave", effort, &octave::run),
        Benchmark::View { docs } => execute("view", "treering", effort, &|bench| view::run(bench, docs)),
        Benchmark::Prolog => execute("prolog", "treering-prolog", effort, &prolog::run),
        Benchmark::Fleet => execute("fleet", "treering", effort, &fleet::run),
        Benchmark::Launch(program) => return program.run(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            error.lines().for_each(|line| eprintln!("error: {line}"));
            ExitCode::FAILURE
        }
    }
}
