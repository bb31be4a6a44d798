//! Changes of sampled costs that are more than chance.

use treering_analysis::{Basis, Measure, t_975};

use crate::sides::Sides;

/// Between which changes the true one lies with 95 % confidence, in the metric's unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bounds {
    pub(crate) low: f64,
    pub(crate) high: f64,
    /// How likely chance alone makes a change of this size.
    pub(crate) chance: f64,
}

/// How far a change may be off because runs differ, as far as the runs of both tell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spread {
    /// With 95 % confidence, in the metric's unit.
    pub(crate) margin: f64,
    /// The degrees of freedom of the least that tells it.
    pub(crate) freedom: usize,
}

/// The interval of a change of sampled costs; nothing where neither is sampled.
///
/// R. G. Newcombe, "Interval estimation for the difference between independent proportions", 1998, method 10: from the
/// intervals of both, which hold for small shares as well. Runs that differ by more than their samples widen it.
pub(crate) fn bounds(
    measures: Sides<Measure>,
    bases: Sides<&Basis>,
    spread: Option<Spread>,
) -> Option<Bounds> {
    let base = interval(measures.base, bases.base);
    let head = interval(measures.head, bases.head);
    if base.is_none() && head.is_none() {
        return None;
    }
    let exact = |measure: Measure| (measure.cost as f64, measure.cost as f64);
    let (base_low, base_high) = base.unwrap_or(exact(measures.base));
    let (head_low, head_high) = head.unwrap_or(exact(measures.head));
    let (of_base, of_head) = (measures.base.cost as f64, measures.head.cost as f64);
    let change = measures.change() as f64;
    let below = (of_head - head_low).hypot(base_high - of_base);
    let above = (head_high - of_head).hypot(of_base - base_low);
    // The side towards no change decides.
    let width = if change > 0.0 { below } else { above };
    let by_samples =
        if change == 0.0 { 1.0 } else { libm::erfc(change.abs() / width * Z95 / f64::sqrt(2.0)) };
    let margin = spread.map_or(0.0, |spread| spread.margin);
    let by_runs = spread.filter(|_| change != 0.0).map_or(0.0, |spread| spread.chance(change));
    Some(Bounds {
        low: change - below.max(margin),
        high: change + above.max(margin),
        chance: by_samples.max(by_runs),
    })
}

impl Spread {
    /// How likely Student's t is as far from 0 (D. L. Wallace, "Bounds on normal approximations to Student's and the
    /// chi-square distributions", 1959).
    fn chance(self, change: f64) -> f64 {
        if self.margin <= 0.0 {
            return 0.0;
        }
        let freedom = self.freedom as f64;
        let t = change / self.margin * t_975(self.freedom);
        let normal =
            (8.0 * freedom + 1.0) / (8.0 * freedom + 3.0) * (freedom * (t * t / freedom).ln_1p()).sqrt();
        libm::erfc(normal / f64::sqrt(2.0))
    }
}

const Z95: f64 = 1.959_963_984_540_054;

fn interval(measure: Measure, basis: &Basis) -> Option<(f64, f64)> {
    let interval = basis.interval(measure)?;
    let run = basis.run.cost as f64;
    Some((interval.low * run, interval.high * run))
}

/// Says of several changes whether each is more than chance, if one in twenty of those that are called so may be chance.
///
/// Y. Benjamini and Y. Hochberg, "Controlling the false discovery rate", 1995.
pub(crate) fn discoveries(chances: &[f64]) -> Vec<bool> {
    const RATE: f64 = 0.05;
    let mut order: Vec<usize> = (0..chances.len()).collect();
    order.sort_by(|&a, &b| chances[a].total_cmp(&chances[b]));
    let all = chances.len() as f64;
    let last =
        order.iter().enumerate().rev().find(|&(rank, &at)| chances[at] <= RATE * (rank + 1) as f64 / all);
    let mut found = vec![false; chances.len()];
    if let Some((last, _)) = last {
        order[..=last].iter().for_each(|&at| found[at] = true);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn discoveries_are_those_of_the_paper() {
        // The example of Benjamini and Hochberg, 1995, section 3.2: four of fifteen hypotheses are rejected.
        let chances = [
            0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719,
            0.6528, 0.7590, 1.0,
        ];
        let found = discoveries(&chances);
        assert_eq!(found.iter().filter(|&&found| found).count(), 4);
        assert!(found[..4].iter().all(|&found| found));
        assert_eq!(discoveries(&[]), Vec::<bool>::new());
    }
}
