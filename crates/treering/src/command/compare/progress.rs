//! A line on a terminal that says how far a comparison is.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The line, on standard error and only on a terminal. It is gone in the end.
pub(super) struct Progress {
    bar: ProgressBar,
    begin: Instant,
}

impl Progress {
    pub(super) fn begin() -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(5));
        let look = ProgressStyle::with_template("compare  {msg}");
        bar.set_style(look.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        Self { bar, begin: Instant::now() }
    }

    /// Says what is being done.
    pub(super) fn doing(&self, what: &str) {
        self.bar.set_message(what.to_owned());
        self.bar.tick();
    }

    /// Says which of several rounds has begun, and how long the others will take.
    pub(super) fn round(&self, round: usize, rounds: usize) {
        let left = match round {
            0 => String::new(),
            done => {
                let each = self.begin.elapsed().as_secs_f64() / done as f64;
                format!(" · {} left", seconds(Duration::from_secs_f64(each * (rounds - done) as f64)))
            }
        };
        self.doing(&format!("round {} of {rounds}{left}", round + 1));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// A rough time.
pub(super) fn seconds(time: Duration) -> String {
    match time.as_secs() {
        minutes @ 120.. => format!("{} min", minutes.div_ceil(60)),
        _ => format!("{} s", time.as_secs_f64().ceil()),
    }
}
