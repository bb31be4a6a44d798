//! Random intervals between samples.

/// Draws the interval to the next sample, so that no program can be in step with the timer.
///
/// Each is uniform between half and one and a half of the mean, independent of all others and
/// of what was sampled, so that every instant of processor time is as likely to be sampled as
/// any other and plain counts are unbiased.
#[derive(Debug)]
pub(crate) struct Jitter {
    random: fastrand::Rng,
    /// A running estimate of how long it takes to set a new interval after a sample.
    latency_ns: f64,
}

/// Delays above this tell of a busy machine, not of the way from sample to recorder.
const SLOW_NS: f64 = 50_000.0;

impl Jitter {
    /// Intervals that repeat for the same seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self { random: fastrand::Rng::with_seed(seed), latency_ns: 0.0 }
    }

    /// An interval around `mean`.
    pub(crate) fn draw(&mut self, mean: u64) -> u64 {
        self.draw_between(mean, 0.5, 1.5)
    }

    /// An interval between two shares of `mean`.
    pub(crate) fn draw_between(&mut self, mean: u64, low: f64, high: f64) -> u64 {
        ((mean as f64 * (low + (high - low) * self.random.f64())) as u64).max(1)
    }

    /// An interval that is set some time after the sample that it follows, less that time, so
    /// that the mean stays what was asked for. `mean_ns` is the mean in nanoseconds.
    pub(crate) fn draw_late(&mut self, mean: u64, mean_ns: f64) -> u64 {
        let late = mean as f64 * (self.latency_ns / mean_ns).min(0.4);
        (self.draw(mean) as f64 - late).max(1.0) as u64
    }

    /// Notes how long after a sample its successor's interval was set.
    pub(crate) fn note_latency(&mut self, nanoseconds: u64) {
        let seen = (nanoseconds as f64).min(SLOW_NS);
        self.latency_ns += (seen - self.latency_ns) / 32.0;
    }
}

/// The samples that an event takes at one interval.
///
/// A turn is over after a number of samples, and never after a time: of the intervals that are drawn, a time holds more
/// of the short ones, so that their mean would be too short. The recorder looks at other times as well, for threads
/// that were made.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    taken: u32,
}

impl Turn {
    /// Notes a sample.
    pub(crate) fn take(&mut self) {
        self.taken += 1;
    }

    /// How many samples there were, if that is as many as a turn has; then the next turn begins.
    pub(crate) fn end(&mut self, samples: u32) -> Option<u32> {
        (self.taken >= samples).then(|| std::mem::take(&mut self.taken))
    }
}

/// How many samples in a row came at one interval.
///
/// A recorder that has to wait for a processor draws the next interval late. Meanwhile a program may be in step with the
/// present one, and its samples tell less than as many independent ones.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    samples: u64,
    /// The sum over all samples of the length of their row.
    lengths: u64,
    longest: u32,
}

/// So many times longer rows than those of a recorder that never waits make intervals of confidence noticeably too
/// narrow, if the program is in step.
const TOO_LONG: u64 = 3;

/// The samples of a row cover more or less time together, as their interval was drawn. The variance of that, in a function
/// that runs for many rows, is this part of the variance that as many independent samples have, times their number.
const OF_ROW: f64 = 1.0 / 12.0;

/// Rows that make intervals of confidence of such a function so many times too narrow are noted too.
const TOO_NARROW: f64 = 1.3;

/// Shares of fewer samples are uncertain anyway.
const ENOUGH: u64 = 50;

impl Rows {
    /// Adds a row.
    pub(crate) fn add(&mut self, length: u32) {
        self.samples += u64::from(length);
        self.lengths += u64::from(length).pow(2);
        self.longest = self.longest.max(length);
    }

    /// The note on rows that are much longer than a turn of that many samples.
    pub(crate) fn note(&self, turn: u32) -> Option<String> {
        let narrow = (self.lengths as f64 / self.samples.max(1) as f64 * OF_ROW).sqrt();
        let are_long = self.lengths > TOO_LONG * u64::from(turn) * self.samples || narrow > TOO_NARROW;
        (self.samples >= ENOUGH && are_long).then(|| {
            let longest = self.longest;
            let long_functions = match narrow > TOO_NARROW {
                true => format!(
                    "intervals of confidence may be {narrow:.1} times too narrow for functions that run long, and "
                ),
                false => String::new(),
            };
            format!(
                "the recorder had to wait for a processor: up to {longest} samples in a row came at one interval, so \
                 {long_functions}the shares of a program that repeats itself at that interval may be off by more than is \
                 stated"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_between_turns_do_not_change_the_mean_interval() {
        const MEAN: u64 = 1000;
        const SAMPLES: u32 = 10;
        let mut jitter = Jitter::new(1);
        let (mut turn, mut interval) = (Turn::default(), jitter.draw(MEAN));
        let (mut time, mut next_look, mut samples) = (0, 10 * MEAN, 0_u64);
        while samples < 1_000_000 {
            time += interval;
            samples += 1;
            turn.take();
            // The recorder looks when it is woken, and when 10 means have passed since.
            let is_woken = samples.is_multiple_of(SAMPLES.into());
            if (is_woken || time >= next_look) && turn.end(SAMPLES).is_some() {
                interval = jitter.draw(MEAN);
            }
            if is_woken || time >= next_look {
                next_look = time + 10 * MEAN;
            }
        }
        let mean = time as f64 / samples as f64;
        assert!((mean - MEAN as f64).abs() < 5.0, "{mean}");
    }

    /// Counted in a recording whose recorder was kept from running: a function of 10 % had 21 % of the samples.
    #[test]
    fn long_rows_at_one_interval_are_noted() {
        let note = |rows: &[u32], turn| {
            let mut all = Rows::default();
            rows.iter().for_each(|&length| all.add(length));
            all.note(turn)
        };
        assert_eq!(note(&[1; 200], 1), None);
        assert_eq!(note(&[10; 20], 10), None);
        assert_eq!(note(&[3, 1, 1, 2, 1].repeat(20), 1), None);
        assert_eq!(note(&[40], 1), None, "there are too few");
        assert_eq!(note(&[16; 20], 16), None);
        let noted = note(&[1, 1, 1, 60, 1, 1, 40], 1).expect("they are long");
        assert!(noted.contains("up to 60 samples in a row"), "{noted}");
    }

    /// At 10 kHz, functions that ran for some tenths of a second had their true share in 11 of 24 intervals.
    #[test]
    fn rows_that_make_intervals_too_narrow_are_noted_at_any_frequency() {
        let mut rows = Rows::default();
        (0..100).for_each(|_| rows.add(40));
        let noted = rows.note(16).expect("they are long");
        assert!(noted.contains("1.8 times too narrow"), "{noted}");
    }

    /// A block of time is divided by where rows end, so that its samples vary as the model of the note has it.
    #[test]
    fn the_samples_of_a_long_function_vary_with_the_length_of_rows() {
        const ROW: u64 = 40;
        let mut jitter = Jitter::new(1);
        let mut shares = Vec::new();
        for _ in 0..2000 {
            let (mut time, mut counts) = (0, [0.0, 0.0]);
            while time < 3_000_000 {
                let interval = jitter.draw(1000);
                for _ in 0..ROW {
                    time += interval;
                    counts[usize::from(time >= 1_500_000)] += f64::from(u8::from(time < 3_000_000));
                }
            }
            shares.push(counts[0] / (counts[0] + counts[1]));
        }
        let variance =
            shares.iter().map(|share| (share - 0.5_f64).powi(2)).sum::<f64>() / shares.len() as f64;
        let times = variance / (0.25 / 3000.0);
        assert!((times - ROW as f64 * OF_ROW).abs() < 0.5, "{times} times that of independent samples");
    }

    #[test]
    fn intervals_keep_to_their_range_and_mean() {
        let mut jitter = Jitter::new(1);
        let drawn: Vec<u64> = (0..100_000).map(|_| jitter.draw(1000)).collect();
        assert!(drawn.iter().all(|interval| (500..1500).contains(interval)));
        let mean = drawn.iter().sum::<u64>() as f64 / drawn.len() as f64;
        // Six standard errors of the mean of a uniform distribution of width 1000.
        assert!((mean - 1000.0).abs() < 6.0 * 1000.0 / 12_f64.sqrt() / 100_000_f64.sqrt(), "{mean}");
    }

    #[test]
    fn a_late_interval_is_shortened_by_the_latency() {
        let mut jitter = Jitter::new(1);
        (0..1000).for_each(|_| jitter.note_latency(50_000));
        let drawn: u64 = (0..100_000).map(|_| jitter.draw_late(1_000_000, 1e6)).sum();
        let mean = drawn as f64 / 100_000.0;
        assert!((mean - 950_000.0).abs() < 6000.0, "{mean}");
    }
}
