//! Reads recordings through the command line, as users do.

use std::path::Path;

use serde_json::Value;

use crate::frame::Bench;
use crate::measure::succeed;

/// A flat profile as `report --flat --json` prints it.
pub(super) struct Flat(Value);

/// The flat profile of a recording.
pub(super) fn flat(bench: &Bench, file: &Path) -> Result<Flat, String> {
    let text = succeed(bench.command("treering report --flat --json").arg(file))?;
    serde_json::from_slice(&text).map(Flat).map_err(|error| format!("report printed no JSON: {error}"))
}

impl Flat {
    /// The number of samples.
    pub(super) fn samples(&self) -> u64 {
        self.0["run"]["samples"].as_u64().unwrap_or(0)
    }

    /// A number of samples that were lost in some way.
    pub(super) fn loss(&self, name: &str) -> u64 {
        self.0["run"]["losses"][name].as_u64().unwrap_or(0)
    }

    /// Total cost over run cost, of all functions of that name.
    pub(super) fn total_share(&self, function: &str) -> f64 {
        self.sum(function, "total_cost") / self.run_cost()
    }

    /// The printed interval of a function's total cost, as shares of the run.
    pub(super) fn total_interval(&self, function: &str) -> (f64, f64) {
        let share = |key: &str| self.sum(function, key) / self.run_cost();
        (share("total_low"), share("total_high"))
    }

    /// The printed interval of a function, or of one that is not listed, as shares of the run.
    pub(super) fn interval_or_unlisted(&self, function: &str) -> (f64, f64) {
        if self.sum(function, "total_high") > 0.0 {
            return self.total_interval(function);
        }
        (0.0, self.0["run"]["unlisted_high"].as_f64().unwrap_or(0.0) / self.run_cost())
    }

    fn sum(&self, function: &str, key: &str) -> f64 {
        let rows = self.0["functions"].as_array().into_iter().flatten();
        let costs = rows.filter(|row| row["function"] == function).filter_map(|row| row[key].as_f64());
        // The sum of no numbers is -0.
        costs.sum::<f64>() + 0.0
    }

    fn run_cost(&self) -> f64 {
        self.0["run"]["run_cost"].as_f64().unwrap_or(f64::NAN)
    }
}
