//! The step of a clock, as times show it.

/// Steps of clocks that count the kernel's ticks, in milliseconds.
const STEPS_MS: [u32; 3] = [10, 4, 1];

/// How many times must be whole steps, since a few may be by chance.
const LEAST: usize = 4;

/// The step in milliseconds of which all times, in nanoseconds, are multiples; nothing where they are of a finer clock, or
/// too few to tell.
///
/// Statistics do not know of steps: where most times are equal, intervals are too narrow.
pub fn clock_step_ms(times_ns: &[f64]) -> Option<u32> {
    let is_multiple = |step: &u32| {
        let steps = |time: f64| time / (f64::from(*step) * 1e6);
        times_ns.iter().all(|&time| (steps(time) - steps(time).round()).abs() < 1e-6)
    };
    let tells = times_ns.len() >= LEAST && times_ns.iter().any(|&time| time > 0.0);
    STEPS_MS.into_iter().filter(|_| tells).find(is_multiple)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_tell_the_step_of_their_clock() {
        let times = |ms: &[f64]| ms.iter().map(|ms| ms * 1e6).collect::<Vec<f64>>();
        for (ms, expected) in [
            (&[250.0, 260.0, 250.0, 240.0][..], Some(10)),
            (&[252.0, 256.0, 252.0, 248.0], Some(4)),
            (&[251.0, 252.0, 251.0, 250.0], Some(1)),
            (&[251.0, 252.0, 251.0, 250.001], None),
            (&[250.0, 260.0, 250.0], None),
            (&[0.0; 5], None),
        ] {
            assert_eq!(clock_step_ms(&times(ms)), expected, "{ms:?}");
        }
    }
}
