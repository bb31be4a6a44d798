//! Statistics of single activations, and how those of several nodes become one.

/// Statistics of the total costs of a node's activations, in the unit of their metric.
///
/// They can be told from single activations only, so they are stored and not derived. Activations
/// that were not measured (one of N is, or it was still open at the end) are not in them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ActivationStatistics {
    /// How many activations were measured.
    pub timed: u64,
    /// The total cost of the outermost activations: those that began while the node was not
    /// active. Activations still open at the end count up to there. For a profile under
    /// the recursion rule `flat` this is the function's total cost in
    /// the thread; with a tree, that is derived from self costs instead.
    pub total: u64,
    /// The least cost of an activation.
    pub least: u64,
    /// The greatest.
    pub greatest: u64,
    /// The mean cost of an activation, nested ones included.
    pub mean: f64,
    /// The sum of squared differences from the mean, Welford's M2. In squares of the unit.
    pub squares: f64,
    /// How many activations took less than twice the least until then, so that they were most
    /// likely not preempted. A least that is below the next lower power of two begins anew: those
    /// before it took long, and were calm only as long as nothing shorter was known.
    pub calm: u64,
    /// The total cost of those.
    pub calm_total: u64,
}

impl ActivationStatistics {
    /// Takes in one activation (Welford, "Note on a method for calculating corrected sums of
    /// squares and products", 1962). [`total`](Self::total) is left as it is: only outermost
    /// activations belong there.
    pub fn add(&mut self, cost: u64) {
        if self.timed > 0 && cost < self.least && cost.leading_zeros() > self.least.leading_zeros() {
            (self.calm, self.calm_total) = (0, 0);
        }
        self.least = if self.timed == 0 { cost } else { self.least.min(cost) };
        self.greatest = self.greatest.max(cost);
        self.timed = self.timed.saturating_add(1);
        let before = cost as f64 - self.mean;
        self.mean += before / self.timed as f64;
        self.squares += before * (cost as f64 - self.mean);
        if cost == self.least || cost - self.least < self.least {
            self.calm = self.calm.saturating_add(1);
            self.calm_total = self.calm_total.saturating_add(cost);
        }
    }

    /// Takes in the activations of another node or run (Chan, Golub and LeVeque, "Updating
    /// formulae and a pairwise algorithm for computing sample variances", 1979).
    ///
    /// The order does not matter, up to the rounding of the floats. Calm activations of either side stay
    /// calm if the least of both lie between the same powers of two; otherwise only those of the side where
    /// the least is lower.
    pub fn merge(&mut self, other: &Self) {
        self.total = self.total.saturating_add(other.total);
        if other.timed == 0 {
            return;
        }
        if self.timed == 0 {
            *self = Self { total: self.total, ..*other };
            return;
        }
        let (ours, theirs) = (self.least.leading_zeros(), other.least.leading_zeros());
        if ours < theirs {
            (self.calm, self.calm_total) = (0, 0);
        }
        if ours <= theirs {
            self.calm = self.calm.saturating_add(other.calm);
            self.calm_total = self.calm_total.saturating_add(other.calm_total);
        }
        self.least = self.least.min(other.least);
        self.greatest = self.greatest.max(other.greatest);
        self.merge_moments(other);
        self.timed = self.timed.saturating_add(other.timed);
    }

    fn merge_moments(&mut self, other: &Self) {
        let (ours, theirs) = (self.timed as f64, other.timed as f64);
        let both = ours + theirs;
        let apart = other.mean - self.mean;
        // Weighted rather than shifted, so that both orders round alike.
        self.mean = (self.mean * ours + other.mean * theirs) / both;
        let between = apart * apart * (ours * theirs / both);
        self.squares = (self.squares + other.squares + between).min(f64::MAX);
    }

    /// The variance of an activation's cost, from 2 activations on. Its square root is the standard deviation.
    pub fn variance(&self) -> Option<f64> {
        (self.timed > 1).then(|| self.squares / (self.timed - 1) as f64)
    }

    /// Takes `each` out of the cost of every activation, as far as one of many can be corrected: the means become true,
    /// while the least, the greatest and the deviation stay as measured.
    pub fn correct_means(&mut self, each: f64) {
        self.mean = (self.mean - each).max(0.0);
        let less = self.calm as f64 * each;
        self.calm_total = if less < 0.0 {
            self.calm_total.saturating_add((0.5 - less) as u64)
        } else {
            self.calm_total.saturating_sub((0.5 + less) as u64)
        };
    }

    /// The mean cost of the calm activations, where there are any; never above the mean of all.
    pub fn calm_mean(&self) -> Option<f64> {
        // Of several nodes, those that are not the calmest have no calm activations, however short.
        (self.calm > 0).then(|| (self.calm_total as f64 / self.calm as f64).min(self.mean))
    }

    /// Whether the numbers can belong together: a file may hold any.
    pub fn is_consistent(&self) -> bool {
        let sound = |number: f64| number.is_finite() && number >= 0.0;
        let empty = Self { total: self.total, ..Self::default() };
        (self.timed > 0 || *self == empty)
            && self.least <= self.greatest
            && self.calm <= self.timed
            && sound(self.mean)
            && sound(self.squares)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(costs: &[u64]) -> ActivationStatistics {
        let mut statistics = ActivationStatistics::default();
        costs.iter().for_each(|&cost| statistics.add(cost));
        statistics
    }

    #[test]
    fn a_preempted_activation_is_not_calm() {
        let statistics = of(&[10, 9, 17, 18, 500]);
        assert_eq!((statistics.calm, statistics.calm_total), (3, 36));
        assert_eq!((statistics.least, statistics.greatest), (9, 500));
        assert_eq!(statistics.calm_mean(), Some(12.0));
    }

    #[test]
    fn activations_that_cost_nothing_are_calm() {
        assert_eq!(of(&[0, 0, 3]).calm, 2);
        assert_eq!(of(&[]).calm_mean(), None);
    }

    #[test]
    fn the_cost_of_measuring_is_taken_out_of_means_only() {
        let mut corrected = of(&[100, 120, 400]);
        corrected.correct_means(30.0);
        assert_eq!((corrected.calm_total, corrected.calm_mean()), (160, Some(80.0)));
        assert!((corrected.mean - 176.666).abs() < 0.001);
        assert_eq!((corrected.least, corrected.greatest), (100, 400));
        corrected.correct_means(-7.5);
        assert_eq!(corrected.calm_total, 175);
        corrected.correct_means(1e6);
        assert_eq!((corrected.mean, corrected.calm_total), (0.0, 0));
    }

    #[test]
    fn one_activation_has_no_variance() {
        assert_eq!(of(&[5]).variance(), None);
        assert_eq!(of(&[2, 4, 9]).variance(), Some(13.0));
    }

    #[test]
    fn numbers_that_cannot_belong_together_are_told() {
        assert!(ActivationStatistics::default().is_consistent());
        assert!(of(&[3, 8]).is_consistent());
        let open = ActivationStatistics { total: 7, ..Default::default() };
        assert!(open.is_consistent());
        for wrong in [
            ActivationStatistics { least: 1, ..open },
            ActivationStatistics { mean: f64::NAN, ..of(&[3]) },
            ActivationStatistics { squares: -1.0, ..of(&[3]) },
            ActivationStatistics { calm: 2, ..of(&[3]) },
            ActivationStatistics { greatest: 2, ..of(&[3]) },
        ] {
            assert!(!wrong.is_consistent(), "{wrong:?}");
        }
    }
}
