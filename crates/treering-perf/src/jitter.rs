//! Random intervals between samples.

use std::collections::VecDeque;

/// Draws the interval to the next sample, so that no program can be in step with the timer.
///
/// Each is uniform between half and one and a half of the mean, independent of all others and
/// of what was sampled, so that every instant of processor time is as likely to be sampled as
/// any other and plain counts are unbiased.
#[derive(Debug)]
pub(crate) struct Jitter {
    random: fastrand::Rng,
    /// Running estimates of how long after the last sample of a row a new interval is set, and of how many samples a row
    /// has.
    latency_ns: f64,
    row: f64,
}

/// Delays above this tell of a busy machine, not of the way from sample to recorder.
const SLOW_NS: f64 = 50_000.0;

impl Jitter {
    /// Intervals that repeat for the same seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self { random: fastrand::Rng::with_seed(seed), latency_ns: 0.0, row: 0.0 }
    }

    /// An interval around `mean`.
    pub(crate) fn draw(&mut self, mean: u64) -> u64 {
        self.draw_between(mean, 0.5, 1.5)
    }

    /// An interval between two shares of `mean`.
    pub(crate) fn draw_between(&mut self, mean: u64, low: f64, high: f64) -> u64 {
        ((mean as f64 * (low + (high - low) * self.random.f64())) as u64).max(1)
    }

    /// An interval that is set some time after the sample that it follows, less that time, so that the mean stays what was
    /// asked for; and the interval as it was drawn. `mean_ns` is the mean in nanoseconds.
    ///
    /// All samples of the row come at the interval, and only the first of them waits for it to be set.
    pub(crate) fn draw_late(&mut self, mean: u64, mean_ns: f64) -> (u64, u64) {
        let late_ns = if self.row > 0.0 { self.latency_ns / self.row } else { 0.0 };
        let late = mean as f64 * (late_ns / mean_ns).min(0.4);
        let drawn = self.draw(mean);
        ((drawn as f64 - late).max(1.0) as u64, drawn)
    }

    /// Notes how long after the last sample of a row of `samples` the next interval was set.
    ///
    /// The mean of one is divided by the mean of the other, so both must forget at the same pace.
    pub(crate) fn note_latency(&mut self, nanoseconds: u64, samples: u32) {
        const FORGET: f64 = 1.0 / 32.0;
        let seen = (nanoseconds as f64).min(SLOW_NS);
        self.latency_ns += (seen - self.latency_ns) * FORGET;
        self.row += (f64::from(samples) - self.row) * FORGET;
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

/// The intervals that were drawn for an event and are still needed, with the times at which they were set.
#[derive(Debug, Default)]
pub(crate) struct Drawn(VecDeque<(u64, u64)>);

impl Drawn {
    /// That of an event from its start on, if its intervals are drawn.
    pub(crate) fn from_start(interval: Option<u64>) -> Self {
        Self(interval.map(|interval| (0, interval)).into_iter().collect())
    }

    /// Notes an interval that is set now.
    pub(crate) fn set(&mut self, time: u64, interval: u64) {
        self.0.push_back((time, interval));
    }

    /// The interval in force at a time; none before may be asked for any more.
    pub(crate) fn at(&mut self, time: u64) -> Option<u64> {
        while self.0.get(1).is_some_and(|&(since, _)| since < time) {
            self.0.pop_front();
        }
        self.0.front().map(|&(_, interval)| interval)
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
        let are_long = self.lengths > TOO_LONG * u64::from(turn) * self.samples;
        (self.samples >= ENOUGH && are_long).then(|| {
            let longest = self.longest;
            format!(
                "the recorder had to wait for a processor: up to {longest} samples in a row came at one interval, so the \
                 shares of a program that repeats itself at that interval may be off by more than is stated"
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

    #[test]
    fn a_sample_ends_the_interval_that_was_set_before_it() {
        let mut drawn = Drawn::from_start(Some(10));
        drawn.set(100, 12);
        drawn.set(200, 14);
        drawn.set(300, 16);
        assert_eq!([50, 100, 101, 350, 400].map(|time| drawn.at(time)), [10, 10, 12, 16, 16].map(Some));
        assert_eq!(Drawn::from_start(None).at(50), None);
    }

    /// At 10 kHz on a busy machine, intervals of confidence held the truth in 11 of 24 cases: a recorder that is late has more
    /// samples of short intervals, and more or less of them as the machine is busy.
    #[test]
    fn the_intervals_of_the_samples_of_a_long_function_add_up_to_its_time() {
        const ROW: u64 = 16;
        let mut jitter = Jitter::new(1);
        for late in [0, 5_000, 50_000] {
            let (mut time, mut cost) = (0, 0);
            for _ in 0..100 {
                let (period, interval) = jitter.draw_late(1000, 1000.0);
                let samples = ROW + late / period;
                time += samples * period;
                cost += samples * interval;
            }
            assert_eq!(cost, time, "late by {late}");
        }
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
        (0..1000).for_each(|_| jitter.note_latency(50_000, 1));
        let drawn: u64 = (0..100_000).map(|_| jitter.draw_late(1_000_000, 1e6).0).sum();
        let mean = drawn as f64 / 100_000.0;
        assert!((mean - 950_000.0).abs() < 6000.0, "{mean}");
    }

    /// At 10 kHz on a busy machine there were 1.5 times as many samples as asked for, and fewer of what ran first.
    #[test]
    fn a_row_of_samples_at_one_late_interval_keeps_the_mean_from_the_first_row_on() {
        const MEAN: u64 = 100_000;
        const LATE: u64 = 45_000;
        for rows in [20, 100_000] {
            let mut jitter = Jitter::new(1);
            let (mut time, mut samples) = (0, 0);
            for row in [12, 20].into_iter().cycle().take(rows) {
                jitter.note_latency(LATE, row);
                let (period, _) = jitter.draw_late(MEAN, MEAN as f64);
                time += LATE + u64::from(row) * period;
                samples += u64::from(row);
            }
            let mean = time as f64 / samples as f64 / MEAN as f64;
            // Twenty rows vary by a standard error of 0.07.
            assert!((mean - 1.0).abs() < if rows == 20 { 0.15 } else { 0.005 }, "{mean}");
        }
    }
}
