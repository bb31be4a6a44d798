//! Signals that end a comparison: what runs is killed, and what was made for it is removed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::flag;
use treering_proc::is_ignored;

use crate::ending::ended_by;
use crate::failure::{Context as _, Failure};

/// Whether a signal has asked to end, and by which.
#[derive(Clone, Debug, Default)]
pub(super) struct Interrupt {
    asked: Arc<AtomicBool>,
    signal: Arc<AtomicUsize>,
}

impl Interrupt {
    /// Heeds signals from now on, but for those that this process was told to ignore.
    pub(super) fn heed() -> Result<Self, Failure> {
        let interrupt = Self::default();
        for signal in [SIGINT, SIGTERM, SIGHUP, SIGQUIT].into_iter().filter(|&signal| !is_ignored(signal)) {
            let registered = flag::register_usize(signal, Arc::clone(&interrupt.signal), signal as usize);
            registered
                .and_then(|_| flag::register(signal, Arc::clone(&interrupt.asked)))
                .context("cannot wait for signals")?;
        }
        Ok(interrupt)
    }

    /// The flag, for those who look at it while they wait.
    pub(super) fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.asked)
    }

    pub(super) fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    /// The failure that it was interrupted; this process then ends by the signal.
    pub(super) fn failure(&self) -> Failure {
        let signal = self.signal.load(Ordering::Relaxed) as i32;
        Failure::new("interrupted, nothing was compared").status(ended_by(signal))
    }
}
