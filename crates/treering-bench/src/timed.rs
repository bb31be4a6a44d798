//! Benchmarks take turns, and their processor times are summed up.

use std::io::Write;
use std::process::ExitCode;

use serde_json::json;
use treering_measure::{Summary, turns};

use crate::bencher::Purpose;
use crate::options::{Format, Options};
use crate::suite::Benchmark;

/// A turn calls a benchmark so often that it takes this long: the clock's own cost is lost in it.
const TURN_NANOSECONDS: f64 = 5e6;

/// No benchmark is called more often in a turn.
const MOST_CALLS: u64 = 1 << 30;

/// Times the benchmarks, and writes a row of each.
pub(crate) fn time(
    wanted: &mut [&mut Benchmark<'_>],
    options: &Options,
    to: &mut impl Write,
) -> Result<ExitCode, String> {
    let calls = wanted.iter_mut().map(|benchmark| calls_a_turn(benchmark)).collect::<Result<Vec<_>, _>>()?;
    let mut samples = vec![Vec::new(); wanted.len()];
    // The same order in every run of the program.
    for turn in turns(wanted.len(), options.rounds as usize, 1) {
        let sample = wanted[turn.version].call(calls[turn.version], Purpose::Time)?;
        samples[turn.version].push(sample);
    }
    let rows: Vec<Row> = wanted
        .iter()
        .zip(&calls)
        .zip(samples)
        .map(|((benchmark, &calls), samples)| Row { name: benchmark.name.clone(), calls, samples })
        .collect();
    let written = match options.format {
        Format::Json => rows.iter().try_for_each(|row| writeln!(to, "{}", row.json())),
        Format::Pretty | Format::Terse => table(&rows, options.rounds, to),
    };
    written.map_err(|error| format!("cannot write: {error}"))?;
    Ok(ExitCode::SUCCESS)
}

/// How often a benchmark is called in a turn.
fn calls_a_turn(benchmark: &mut Benchmark<'_>) -> Result<u64, String> {
    let mut calls = 1;
    loop {
        let each = benchmark.call(calls, Purpose::Time)?;
        let all = each * calls as f64;
        if all >= TURN_NANOSECONDS / 2.0 || calls >= MOST_CALLS {
            let needed = (TURN_NANOSECONDS / each.max(1e-3)).ceil();
            return Ok((needed as u64).clamp(1, MOST_CALLS));
        }
        calls *= 2;
    }
}

/// A benchmark that was timed.
struct Row {
    name: String,
    calls: u64,
    /// The processor time of a call, in nanoseconds, of each turn.
    samples: Vec<f64>,
}

impl Row {
    fn summary(&self) -> Summary {
        Summary::of(&self.samples).expect("every benchmark had a turn")
    }

    fn json(&self) -> serde_json::Value {
        let summary = self.summary();
        json!({
            "benchmark": self.name, "unit": "nanoseconds", "calls_a_round": self.calls,
            "median": summary.median, "mean": summary.mean, "deviation": summary.deviation,
            "least": summary.least, "greatest": summary.greatest, "samples": self.samples,
        })
    }
}

fn table(rows: &[Row], rounds: u32, to: &mut impl Write) -> std::io::Result<()> {
    let cells: Vec<[String; 5]> = rows
        .iter()
        .map(|row| {
            let summary = row.summary();
            let unit = Unit::of(summary.median);
            let deviation =
                summary.deviation.map_or(String::new(), |deviation| format!(" ± {}", unit.number(deviation)));
            [
                row.name.clone(),
                format!("{} {}", unit.number(summary.median), unit.name),
                format!("{}{deviation}", unit.number(summary.mean)),
                format!("{} – {}", unit.number(summary.least), unit.number(summary.greatest)),
                grouped(row.calls),
            ]
        })
        .collect();
    let heads = ["benchmark", "median", "mean ± SD", "least – greatest", "calls a round"].map(str::to_owned);
    let all: Vec<&[String; 5]> = std::iter::once(&heads).chain(&cells).collect();
    let width = |column: usize| all.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    for row in &all {
        let [name, rest @ ..] = row;
        write!(to, "{name:<width$}", width = width(0))?;
        for (column, cell) in rest.iter().enumerate() {
            write!(to, "  {cell:>width$}", width = width(column + 1))?;
        }
        writeln!(to)?;
    }
    let rounds = if rounds == 1 { "1 round".to_owned() } else { format!("{rounds} shuffled rounds") };
    writeln!(to, "\n{rounds}, processor time of a call, all threads together")
}

/// The unit of a row.
struct Unit {
    name: &'static str,
    nanoseconds: f64,
}

impl Unit {
    fn of(nanoseconds: f64) -> Self {
        match nanoseconds {
            1e9.. => Self { name: "s", nanoseconds: 1e9 },
            1e6.. => Self { name: "ms", nanoseconds: 1e6 },
            1e3.. => Self { name: "µs", nanoseconds: 1e3 },
            _ => Self { name: "ns", nanoseconds: 1.0 },
        }
    }

    fn number(&self, nanoseconds: f64) -> String {
        format!("{:.2}", nanoseconds / self.nanoseconds)
    }
}

/// Commas between thousands.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
