//! Samples that were lost.

/// Samples that were lost one after the other, as the recorder did not read a ring in time.
///
/// All of a burst are of the same few milliseconds, so that they miss in one function rather than in all.
#[derive(Debug, Default)]
pub(crate) struct Bursts {
    /// The sum of the squares of the lengths of all bursts.
    squares: u64,
    /// How long the last one is, and how many samples had been taken when it was noticed.
    last: u64,
    taken: u64,
}

impl Bursts {
    /// Adds samples that were lost when `taken` had been taken. With less than a `turn` of samples between them, losses are
    /// of one burst.
    pub(crate) fn add(&mut self, samples: u64, taken: u64, turn: u32) {
        let goes_on = taken - self.taken < u64::from(turn);
        let before = if goes_on { self.last } else { 0 };
        self.squares += samples * (2 * before + samples);
        (self.last, self.taken) = (before + samples, taken);
    }

    /// How many times larger the losses make the variance of a share than that of independent samples, of which so many were
    /// taken: the design effect of samples in clusters, as each burst is one (L. Kish, "Survey Sampling", 1965, chapter 5).
    /// It is 1 where intervals of confidence would hardly be wider by it.
    pub(crate) fn design_effect(&self, taken: u64) -> f64 {
        const NOTICEABLE: f64 = 0.1;
        let of_losses = self.squares as f64 / taken.max(1) as f64;
        if of_losses < NOTICEABLE { 1.0 } else { 1.0 + of_losses }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_lost_together_tell_less_than_as_many_single_ones() {
        let effect = |losses: &[(u64, u64)]| {
            let mut bursts = Bursts::default();
            losses.iter().for_each(|&(samples, taken)| bursts.add(samples, taken, 16));
            bursts.design_effect(1000)
        };
        assert_eq!(effect(&[]), 1.0);
        assert_eq!(effect(&[(5, 100), (5, 200), (5, 300)]), 1.0);
        assert_eq!(effect(&[(30, 100), (10, 110), (20, 200)]), 1.0 + (40.0 * 40.0 + 20.0 * 20.0) / 1000.0);
    }
}
