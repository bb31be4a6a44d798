//! `cargo xtask bench record`: what recording costs and how good it is, side by side with other tools;
//! `bench count`: what exact counting costs; `bench profilers`: how long one program takes under each kind of profiler;
//! `bench view`: how quickly pages show large profiles; `bench compare`: how often comparisons are right;
//! `bench fleet`: archives of ten thousand profiles.
//!
//! A benchmark is a row of [`BENCHMARKS`] and a function from its options to tables; [`frame`] does the rest. Runs of
//! all tools are interleaved in random order, because the machine is rarely idle and drifts. Benchmarks compare the
//! processor time of runs in the same round, never wall time.
#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command that speaks to developers")]

mod attached;
mod compare;
mod count;
mod fleet;
mod frame;
mod gprof;
mod grid;
mod large;
mod large_binary;
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
mod symbols;
mod table;
mod truth;
mod view;
mod workspace;

use std::process::ExitCode;

use frame::Benchmark;

const BENCHMARKS: [Benchmark; 9] = [
    record::BENCHMARK,
    count::BENCHMARK,
    profilers::BENCHMARK,
    gprof::BENCHMARK,
    octave::BENCHMARK,
    view::BENCHMARK,
    prolog::BENCHMARK,
    fleet::BENCHMARK,
    compare::BENCHMARK,
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        // Benchmarks start programs with these two.
        ["launch", program @ ..] => return launch::launch(program),
        ["repeat", program @ ..] => return launch::repeat(program),
        [name, options @ ..] => match BENCHMARKS.iter().find(|known| known.name == *name) {
            Some(benchmark) => benchmark.execute(options),
            None => Err(unknown(name)),
        },
        [] => Err(unknown("")),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            error.lines().for_each(|line| eprintln!("error: {line}"));
            ExitCode::FAILURE
        }
    }
}

fn unknown(name: &str) -> String {
    let known = BENCHMARKS.map(|known| known.name).join(", ");
    format!("unknown benchmark {name:?}; there are {known}")
}
