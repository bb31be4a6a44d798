//! Statistics of single calls, as Octave shows them.

use treering_runtime::events::ActivationStatistics;

/// The mean, that of calm activations, the least, the greatest and the standard deviation, in seconds, each where it is
/// known. The statistics are in nanoseconds.
pub(crate) fn seconds(of: &ActivationStatistics) -> [Option<f64>; 5] {
    let any = of.timed > 0;
    let known = |ns: f64| any.then_some(ns);
    [
        known(of.mean),
        of.calm_mean(),
        known(of.least as f64),
        known(of.greatest as f64),
        of.variance().map(f64::sqrt),
    ]
    .map(|ns| ns.map(|ns| ns * 1e-9))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_statistics_are_not_shown() {
        assert_eq!(seconds(&ActivationStatistics::default()), [None; 5]);
        let mut one = ActivationStatistics::default();
        one.add(500);
        assert_eq!(seconds(&one).map(|number| number.is_some()), [true, true, true, true, false]);
    }

    #[test]
    fn nanoseconds_become_seconds() {
        let mut all = ActivationStatistics::default();
        [1_000_000_000, 3_000_000_000].into_iter().for_each(|ns| all.add(ns));
        let rounded = seconds(&all).map(|number| number.map(|number| (number * 1e3).round()));
        assert_eq!(rounded, [2000.0, 1000.0, 1000.0, 3000.0, 1414.0].map(Some));
    }
}
