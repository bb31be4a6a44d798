//! A flat profile in JSON, as tests read it.

use serde_json::Value;

/// A flat profile in JSON, as `report --flat --json` prints it.
pub(crate) struct Flat(pub(crate) Value);

/// The cost of one function, and the interval around its self cost.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cost {
    pub(crate) own: f64,
    pub(crate) total: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Flat {
    /// All rows.
    pub(crate) fn rows(&self) -> &[Value] {
        self.0["functions"].as_array().expect("a flat profile lists functions")
    }

    /// The cost of the whole run.
    pub(crate) fn run_cost(&self) -> f64 {
        self.0["run"]["run_cost"].as_f64().expect("a flat profile has a run cost")
    }

    /// The number of samples.
    pub(crate) fn samples(&self) -> u64 {
        self.0["run"]["samples"].as_u64().expect("a sampled profile tells its samples")
    }

    /// Lost and unresolved samples.
    pub(crate) fn loss(&self, name: &str) -> u64 {
        self.0["run"]["losses"][name]
            .as_u64()
            .unwrap_or_else(|| panic!("no loss {name} in {}", self.0["run"]))
    }

    /// The cost of a function, 0 when it is not there; functions of one name are added up.
    pub(crate) fn cost(&self, function: &str) -> Cost {
        let mut cost = Cost::default();
        for row in self.rows().iter().filter(|row| row["function"] == function) {
            let number = |key: &str| row[key].as_f64().unwrap_or(0.0);
            cost.own += number("self_cost");
            cost.total += number("total_cost");
            cost.low += number("self_low");
            cost.high += number("self_high");
        }
        cost
    }

    /// The printed interval of a function's total cost; of one that is not listed, what it may cost.
    pub(crate) fn total_bounds(&self, function: &str) -> (f64, f64) {
        let number = |value: &Value| value.as_f64().expect("it is sampled");
        match self.rows().iter().find(|row| row["function"] == function) {
            Some(row) => (number(&row["total_low"]), number(&row["total_high"])),
            None => (0.0, number(&self.0["run"]["unlisted_high"])),
        }
    }

    /// Self cost over run cost.
    pub(crate) fn self_share(&self, function: &str) -> f64 {
        self.cost(function).own / self.run_cost()
    }

    /// Total cost over run cost.
    pub(crate) fn total_share(&self, function: &str) -> f64 {
        self.cost(function).total / self.run_cost()
    }

    /// Checks that functions have their true parts of what they cost together. The truths are
    /// relative to each other and need not add up to 1.
    ///
    /// The margin is twice that of the printed interval, which then fails about once in 10,000
    /// times by chance, and one point more for what the machine does at the same time.
    pub(crate) fn assert_self_shares(&self, truths: &[(&str, f64)]) {
        let together: f64 = truths.iter().map(|(name, _)| self.cost(name).own).sum();
        let whole: f64 = truths.iter().map(|(_, truth)| truth).sum();
        assert!(together > 0.0, "none of {truths:?} in {:#}", self.0);
        for (name, truth) in truths {
            let cost = self.cost(name);
            let margin = (cost.high - cost.low) / together + 0.01;
            let (share, truth) = (cost.own / together, truth / whole);
            assert!((share - truth).abs() < margin, "{name}: {share:.3}, truth {truth}, margin {margin:.3}");
        }
    }
}
