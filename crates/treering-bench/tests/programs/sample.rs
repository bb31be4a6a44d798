//! Benchmarks of a known number of instructions.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use treering_bench::Suite;

/// As many instructions more for each of `n`.
#[inline(never)]
fn turns(n: u64) -> u64 {
    let (mut turn, mut mixed) = (0, n);
    while turn < n {
        mixed = (mixed ^ turn) & 0xffff;
        turn += 1;
    }
    mixed
}

/// The sum of several.
#[inline(never)]
fn repeated(times: u64) -> u64 {
    let (mut time, mut sum) = (0, 0);
    while time < times {
        sum ^= turns(5_000);
        time += 1;
    }
    sum
}

fn main() -> ExitCode {
    // Another version of the program: half as many again.
    let factor = if std::env::var_os("TREERING_SAMPLE_SLOWER").is_some() { 3 } else { 2 };
    let mut suite = Suite::new();
    suite.parameter("turns", "n", [1_000, 2_000, 3_000], |bench, &n| bench.iter(|| turns(n)));
    suite.function("scaled", move |bench| bench.iter(|| repeated(factor)));
    suite.function("sort", |bench| {
        bench.iter_with(|| (0..500_u32).rev().collect::<Vec<_>>(), |mut numbers| numbers.sort_unstable());
    });
    suite.main()
}
