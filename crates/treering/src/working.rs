//! A line on a terminal that says what is being done, once that takes longer than a second.

use std::io::IsTerminal as _;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// Shorter work says nothing.
const PATIENCE: Duration = Duration::from_secs(1);

/// The line that is shown now, which messages must not end up in.
static SHOWN: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// Work that goes on until this goes out of use. In a pipe nothing is said of it.
#[must_use]
pub struct Working {
    ended: Option<Sender<()>>,
    shows: Option<JoinHandle<()>>,
}

impl Working {
    /// Begins; `what` is said with the time that it takes: `reading a.trg`.
    pub fn on(what: impl Into<String>) -> Self {
        if !std::io::stderr().is_terminal() {
            return Self { ended: None, shows: None };
        }
        let what = treering_report::printable(&what.into()).into_owned();
        let (ended, end) = channel();
        let shows = std::thread::Builder::new().spawn(move || {
            if end.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                let bar = ProgressBar::new_spinner().with_message(what);
                let look = ProgressStyle::with_template("{spinner} {msg} {elapsed}");
                bar.set_style(look.unwrap_or_else(|_| ProgressStyle::default_spinner()));
                bar.enable_steady_tick(Duration::from_millis(200));
                *shown() = Some(bar.clone());
                let _ = end.recv();
                *shown() = None;
                bar.finish_and_clear();
            }
        });
        Self { ended: Some(ended), shows: shows.ok() }
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        self.ended = None;
        if let Some(shows) = self.shows.take() {
            let _ = shows.join();
        }
    }
}

/// Has `write` write to standard error beside a line that may be shown.
#[cfg(not(test))]
pub fn beside<T>(write: impl FnOnce() -> T) -> T {
    let bar = shown().clone();
    match bar {
        Some(bar) => bar.suspend(write),
        None => write(),
    }
}

fn shown() -> std::sync::MutexGuard<'static, Option<ProgressBar>> {
    SHOWN.lock().unwrap_or_else(PoisonError::into_inner)
}
