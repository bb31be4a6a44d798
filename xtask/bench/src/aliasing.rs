//! How often the truth lies in the printed interval, for a program in step with the timer.

use std::path::Path;
use std::process::Command;

use serde_json::json;
use treering_testing::programs::ALIASING;

use super::measure::succeed;
use super::table::Table;
use super::{Options, Part, recorded};

/// The share of the function that runs around each tick, in one recording.
#[derive(Clone, Copy, Debug)]
struct Answer {
    /// What the program measured itself: its share of the run.
    truth: f64,
    /// What was reported.
    share: f64,
    /// The printed interval.
    interval: (f64, f64),
}

impl Answer {
    fn holds_truth(&self) -> bool {
        (self.interval.0..=self.interval.1).contains(&self.truth)
    }
}

/// Records the program in step with the timer at several phases, with jitter and, to show what it
/// cures, with fixed intervals.
pub(super) fn measure(options: &Options) -> Result<Part, String> {
    let program = ALIASING.build().map_err(|error| error.to_string())?;
    let (phases, seconds) = if options.quick { (2, "1") } else { (10, "3") };
    let header =
        ["rate, Hz", "intervals", "runs", "truth in the interval", "reported share, %", "RMS error, points"];
    let mut table = Table::new("A program in step with the timer: truth 25 %", &header);
    let mut data = Vec::new();
    for (rate, period_us) in [("100", "10000"), ("1000", "1000")] {
        for (name, flags) in [("jittered", &[][..]), ("fixed", &["--fixed"])] {
            // Fixed intervals are there to compare with; fewer runs show it.
            let repeats = if flags.is_empty() && !options.quick { 2 } else { 1 };
            let mut answers = Vec::new();
            for turn in 0..phases * repeats {
                let phase = (turn * 100 / (phases * repeats)).to_string();
                answers.push(ask(options, &program, &[rate], flags, &[period_us, &phase, seconds])?);
            }
            let hits = answers.iter().filter(|answer| answer.holds_truth()).count();
            let shares = answers.iter().map(|answer| 100.0 * answer.share);
            let (low, high) =
                shares.fold((f64::MAX, f64::MIN), |(low, high), share| (low.min(share), high.max(share)));
            let error = rms_error(&answers);
            table.row(vec![
                rate.to_owned(),
                name.to_owned(),
                answers.len().to_string(),
                format!("{hits} of {}", answers.len()),
                format!("{low:.1} to {high:.1}"),
                format!("{error:.1}"),
            ]);
            data.push(json!({
                "rate_hz": rate, "intervals": name, "runs": answers.len(), "truth_in_interval": hits,
                "lowest_percent": low, "highest_percent": high, "rms_error_points": error,
            }));
        }
    }
    table.note(format!(
        "Runs of {seconds} s at evenly spaced phases; the program's period is that of the timer. The interval \
         is the printed one of the function's total cost; the truth is what the program measured."
    ));
    Ok(Part { table, data: json!(data) })
}

fn ask(
    options: &Options,
    program: &Path,
    rate: &[&str],
    flags: &[&str],
    words: &[&str],
) -> Result<Answer, String> {
    let file = options.directory.join("aliasing.trg");
    let mut record = Command::new(&options.treering);
    record
        .args(["record", "-F"])
        .args(rate)
        .args(flags)
        .arg("-o")
        .arg(&file)
        .arg("--")
        .arg(program)
        .args(words);
    let printed = succeed(&mut record)?;
    let printed = String::from_utf8_lossy(&printed).into_owned();
    let truth = printed.lines().find_map(|line| line.strip_prefix("around_the_tick ")?.parse::<f64>().ok());
    let truth = truth.ok_or_else(|| format!("the program did not print its truth: {printed}"))?;
    let flat = recorded::flat(options, &file)?;
    let (share, interval) = (flat.total_share("around_the_tick"), flat.total_interval("around_the_tick"));
    // The program's truth is a share of both functions; what they are of the run is known exactly
    // enough, as nearly all of the run is in one of them.
    let both = share + flat.total_share("between_ticks");
    Ok(Answer { truth: truth * both, share, interval })
}

fn rms_error(answers: &[Answer]) -> f64 {
    let squares = answers.iter().map(|answer| (100.0 * (answer.share - answer.truth)).powi(2));
    (squares.sum::<f64>() / answers.len() as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_is_in_points() {
        let answer = |share| Answer { truth: 0.25, share, interval: (0.2, 0.3) };
        assert!((rms_error(&[answer(0.28), answer(0.21)]) - 3.535).abs() < 0.01);
        assert!(answer(0.9).holds_truth(), "the interval counts, not the share");
    }
}
