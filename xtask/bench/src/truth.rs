//! How often the truth lies in the printed interval.

use std::path::Path;

use treering_testing::programs::{ALIASING, SHORT_LIVES};

use crate::frame::Bench;
use crate::measure::text_of;
use crate::recorded;
use crate::statistics::Spread;
use crate::table::Table;

/// One part of a program in one recording, in shares of the run.
#[derive(Clone, Copy, Debug)]
struct Answer {
    /// The share that the program measured itself.
    truth: f64,
    /// The reported share.
    share: f64,
    /// The printed interval.
    interval: (f64, f64),
}

impl Answer {
    fn holds_truth(&self) -> bool {
        (self.interval.0..=self.interval.1).contains(&self.truth)
    }
}

/// Records a program that prints the time of each of its parts; the answers in the order of the parts.
fn ask<const N: usize>(
    bench: &Bench,
    options: &[&str],
    (program, words): (&Path, &[&str]),
    parts: [&str; N],
) -> Result<[Answer; N], String> {
    let file = bench.directory.join("truth.trg");
    let mut record = bench.command("treering record -q");
    record.args(options).arg("-o").arg(&file).arg("--").arg(program).args(words);
    let printed = text_of(&mut record)?;
    let mut times = [0.0; N];
    for (time, part) in times.iter_mut().zip(parts) {
        let found = printed.lines().find_map(|line| line.strip_prefix(part)?.trim().parse::<f64>().ok());
        *time = found.ok_or_else(|| format!("the program did not print the time of {part}: {printed}"))?;
    }
    let flat = recorded::flat(bench, &file)?;
    // The program knows its parts only. Their share of the run is known well enough, as nearly all of it is in one of
    // them or was not sampled.
    let known: f64 = parts.iter().chain(&["[not sampled]"]).map(|part| flat.total_share(part)).sum();
    let all: f64 = times.iter().sum();
    Ok(std::array::from_fn(|at| Answer {
        truth: times[at] / all * known,
        share: flat.total_share(parts[at]),
        interval: flat.interval_or_unlisted(parts[at]),
    }))
}

/// Records a program in step with the timer at several phases, with jitter and, to show what that cures, with fixed
/// intervals.
pub(super) fn of_a_program_in_step(bench: &Bench) -> Result<Table, String> {
    let program = ALIASING.build().map_err(|error| error.to_string())?;
    let seconds = if bench.quick { "1" } else { "3" };
    let mut table = Table::new(
        "A program in step with the timer: truth 25 %",
        &["rate, Hz", "intervals", "runs", "truth in the interval", "reported share, %", "RMS error, points"],
    );
    for (rate, period_us) in [("100", "10000"), ("1000", "1000")] {
        // Fixed intervals are there to compare with; fewer runs show it.
        for (name, flags, runs) in [
            ("jittered", &[][..], bench.rounds(20, 2)),
            ("fixed", &["--fixed-intervals"], bench.rounds(10, 2)),
        ] {
            let mut answers = Vec::new();
            for turn in 0..runs {
                let phase = (turn * 100 / runs).to_string();
                let words = [period_us, &phase, seconds];
                let options = [&["-F", rate], flags].concat();
                answers
                    .push(ask(bench, &options, (&program, &words), ["around_the_tick", "between_ticks"])?[0]);
            }
            let hits = hits(&answers);
            let shares: Vec<f64> = answers.iter().map(|answer| 100.0 * answer.share).collect();
            let Spread { least, greatest, .. } = Spread::of(&shares).ok_or("no runs")?;
            let error = rms_error(&answers);
            table.row(vec![
                rate.to_owned(),
                name.to_owned(),
                runs.to_string(),
                format!("{hits} of {runs}"),
                format!("{least:.1} to {greatest:.1}"),
                format!("{error:.1}"),
            ]);
        }
    }
    table.note(format!(
        "Runs of {seconds} s at evenly spaced phases; the program's period is that of the timer. The interval \
         is the printed one of the function's total cost; the program measures the truth."
    ));
    Ok(table)
}

fn rms_error(answers: &[Answer]) -> f64 {
    let squares = answers.iter().map(|answer| (100.0 * (answer.share - answer.truth)).powi(2));
    (squares.sum::<f64>() / answers.len() as f64).sqrt()
}

/// The parts of the program of short lives.
const PARTS: [&str; 3] = ["long_part", "first_part", "second_part"];

/// Records threads, processes and programs of 0.1 to 10 intervals, with the kernel's mode and without.
pub(super) fn of_short_lives(bench: &Bench) -> Result<Table, String> {
    let program = SHORT_LIVES.build().map_err(|error| error.to_string())?;
    let runs = bench.rounds(20, 2);
    let header = [&["lives", "intervals", "modes"], &PARTS[..]].concat();
    let mut table = Table::new("Lives as short as an interval", &header);
    for kind in ["thread", "process", "program"] {
        for life_us in [100, 300, 1000, 3000, 10_000] {
            for (modes, flags) in [("all", &[][..]), ("user", &["--user-only"])] {
                let (count, life) = ((100_000 / life_us).max(10).to_string(), life_us.to_string());
                let words = [kind, &count, &life];
                let answers = (0..runs).map(|_| ask(bench, flags, (&program, &words), PARTS));
                let answers = answers.collect::<Result<Vec<_>, _>>()?;
                let of_part = |at: usize| answers.iter().map(|answers| answers[at]).collect::<Vec<_>>();
                let mut row =
                    vec![kind.to_owned(), format!("{:.1}", f64::from(life_us) / 1000.0), modes.to_owned()];
                row.extend((0..PARTS.len()).map(|at| summary(&of_part(at))));
                table.row(row);
            }
        }
    }
    table.note(
        "Truth → mean of the reported shares, in percent; in how many runs the printed interval held the truth; \
         half of its mean width in points. A part that is not listed has the interval that the report states \
         for such. The first part is the first 30 % of each life, the long part is in the main thread.",
    );
    Ok(table)
}

fn hits(answers: &[Answer]) -> usize {
    answers.iter().filter(|answer| answer.holds_truth()).count()
}

/// `48.3 → 48.6, 40/40, ±5.5`
fn summary(answers: &[Answer]) -> String {
    let mean = |of: fn(&Answer) -> f64| 100.0 * answers.iter().map(of).sum::<f64>() / answers.len() as f64;
    format!(
        "{:.1} → {:.1}, {}/{}, ±{:.1}",
        mean(|answer| answer.truth),
        mean(|answer| answer.share),
        hits(answers),
        answers.len(),
        mean(|answer| answer.interval.1 - answer.interval.0) / 2.0
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(truth: f64, share: f64, low: f64, high: f64) -> Answer {
        Answer { truth, share, interval: (low, high) }
    }

    #[test]
    fn the_error_is_in_points() {
        let answers = [answer(0.25, 0.28, 0.2, 0.3), answer(0.25, 0.21, 0.2, 0.3)];
        assert!((rms_error(&answers) - 3.535).abs() < 0.01);
        assert!(answer(0.25, 0.9, 0.2, 0.3).holds_truth(), "the interval counts, not the share");
    }

    #[test]
    fn summaries_state_how_often_the_truth_was_held() {
        let answers = [answer(0.5, 0.4, 0.3, 0.5), answer(0.5, 0.3, 0.2, 0.4)];
        assert_eq!(summary(&answers), "50.0 → 35.0, 1/2, ±10.0");
    }
}
