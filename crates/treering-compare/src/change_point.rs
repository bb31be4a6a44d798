//! Where a series of measurements steps from one level to another.

/// Levels are of that many values at least.
const SHORTEST: usize = 2;

/// The places at which values step to another level, in their order: each is the first of its level.
///
/// D. S. Matteson and N. A. James, "A nonparametric approach for multiple change point analysis of multivariate data",
/// 2014 (E-divisive): a series is divided where the distances between both parts exceed those within them most, and each
/// part again, as long as fewer than one in twenty shuffled series could be divided as well. The same values give the same
/// places.
pub fn change_points(values: &[f64]) -> Vec<usize> {
    let mut random = fastrand::Rng::with_seed(2014);
    let mut found = Vec::new();
    let mut waiting = vec![(0, values.len())];
    while let Some((from, to)) = waiting.pop() {
        let part = &values[from..to];
        let Some(best) = division(part).filter(|best| is_significant(part, best.gain, &mut random)) else {
            continue;
        };
        let at = from + best.at;
        found.push(at);
        waiting.extend([(from, at), (at, to)]);
    }
    found.sort_unstable();
    found
}

#[derive(Clone, Copy, Debug)]
struct Division {
    /// The first of the second part.
    at: usize,
    /// How much farther apart the parts are than values within them.
    gain: f64,
}

/// The best division, in O(values²).
fn division(values: &[f64]) -> Option<Division> {
    let all = values.len();
    let distance = |a: usize, b: usize| (values[a] - values[b]).abs();
    let (mut left, mut between) = (0.0, 0.0);
    let mut right: f64 = (0..all).flat_map(|a| (a + 1..all).map(move |b| distance(a, b))).sum();
    let mut best: Option<Division> = None;
    for at in 1..all {
        // The value before `at` moves from the right part to the left one.
        let moved = at - 1;
        let to_left: f64 = (0..moved).map(|other| distance(moved, other)).sum();
        let to_right: f64 = (at..all).map(|other| distance(moved, other)).sum();
        left += to_left;
        right -= to_right;
        between += to_right - to_left;
        if at < SHORTEST || all - at < SHORTEST {
            continue;
        }
        let (m, n) = (at as f64, (all - at) as f64);
        let pairs = |number: f64| number * (number - 1.0) / 2.0;
        let gain = m * n / (m + n) * (2.0 * between / (m * n) - left / pairs(m) - right / pairs(n));
        if best.is_none_or(|best| gain > best.gain) {
            best = Some(Division { at, gain });
        }
    }
    best
}

/// Whether at most one in twenty shuffled series can be divided as well.
fn is_significant(values: &[f64], gain: f64, random: &mut fastrand::Rng) -> bool {
    const SHUFFLES: usize = 199;
    const LEVEL: f64 = 0.05;
    let mut shuffled = values.to_vec();
    let as_good = (0..SHUFFLES).filter(|_| {
        random.shuffle(&mut shuffled);
        division(&shuffled).is_some_and(|other| other.gain >= gain)
    });
    (as_good.count() + 1) as f64 / (SHUFFLES + 1) as f64 <= LEVEL
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The flow of the Nile at Aswan, 1871 to 1970, in 10⁸ m³: J. Durbin and S. J. Koopman, "Time series analysis by state
    /// space methods", 2001. It fell in 1899, as G. W. Cobb found in 1978.
    const NILE: [u16; 100] = [
        1120, 1160, 963, 1210, 1160, 1160, 813, 1230, 1370, 1140, 995, 935, 1110, 994, 1020, 960, 1180, 799,
        958, 1140, 1100, 1210, 1150, 1250, 1260, 1220, 1030, 1100, 774, 840, 874, 694, 940, 833, 701, 916,
        692, 1020, 1050, 969, 831, 726, 456, 824, 702, 1120, 1100, 832, 764, 821, 768, 845, 864, 862, 698,
        845, 744, 796, 1040, 759, 781, 865, 845, 944, 984, 897, 822, 1010, 771, 676, 649, 846, 812, 742, 801,
        1040, 860, 874, 848, 890, 744, 749, 838, 1050, 918, 986, 797, 923, 975, 815, 1020, 906, 901, 1170,
        912, 746, 919, 718, 714, 740,
    ];

    #[test]
    fn the_known_step_of_a_known_series_is_found() {
        assert_eq!(change_points(&NILE.map(f64::from)), [28]);
    }

    #[test]
    fn several_steps_are_found_and_noise_has_none() {
        let mut random = fastrand::Rng::with_seed(5);
        let mut false_alarms = 0;
        const SERIES: usize = 60;
        for _ in 0..SERIES {
            let noise: Vec<f64> = (0..40).map(|_| random.f64()).collect();
            false_alarms += usize::from(!change_points(&noise).is_empty());
            let levels = |at: usize| if (12..25).contains(&at) { 3.0 } else { 0.0 };
            let stepped: Vec<f64> = noise.iter().enumerate().map(|(at, value)| value + levels(at)).collect();
            let found = change_points(&stepped);
            assert!(found.contains(&12) && found.contains(&25), "{found:?}");
        }
        assert!(false_alarms <= SERIES / 10, "{false_alarms}");
    }

    #[test]
    fn the_gain_is_that_of_the_definition() {
        let values = [1.0, 2.0, 1.5, 7.0, 8.0, 7.5, 9.0];
        let mean = |a: &[f64], b: &[f64]| {
            a.iter().flat_map(|x| b.iter().map(move |y| (x - y).abs())).sum::<f64>()
                / (a.len() * b.len()) as f64
        };
        // Of distances within a part, those of values to themselves do not count.
        let within = |part: &[f64]| mean(part, part) * part.len() as f64 / (part.len() - 1) as f64;
        let gains = (2..=5).map(|at| {
            let (a, b) = values.split_at(at);
            let (m, n) = (a.len() as f64, b.len() as f64);
            (at, m * n / (m + n) * (2.0 * mean(a, b) - within(a) - within(b)))
        });
        let (at, gain) = gains.max_by(|a, b| a.1.total_cmp(&b.1)).expect("there are some");
        let found = division(&values).expect("it can be divided");
        assert_eq!(found.at, at);
        assert!((found.gain - gain).abs() < 1e-12, "{} {gain}", found.gain);
    }

    #[test]
    fn series_that_are_too_short_or_equal_have_none() {
        for values in [&[][..], &[1.0], &[1.0, 2.0, 3.0], &[5.0; 20]] {
            assert!(change_points(values).is_empty(), "{values:?}");
        }
    }
}
