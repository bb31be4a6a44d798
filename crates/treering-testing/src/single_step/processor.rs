//! The processor that a tracer shares with what it steps.

use std::io;
use std::sync::{Mutex, PoisonError};

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

/// The processors in use, one for each tracer of this process.
static IN_USE: Mutex<Vec<usize>> = Mutex::new(Vec::new());

/// While it lives, the calling thread and what it starts run on one processor only.
///
/// Each step switches from the tracer to the traced thread and back. On two processors each switch wakes one that is
/// idle, so that a step takes three times as long.
pub(super) struct OneProcessor {
    before: CpuSet,
    processor: usize,
}

impl OneProcessor {
    /// Chooses the allowed processor that the fewest tracers use.
    pub(super) fn begin() -> io::Result<Self> {
        let before = sched_getaffinity(THIS_THREAD)?;
        let mut in_use = IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
        let allowed = (0..CpuSet::count()).filter(|processor| before.is_set(*processor) == Ok(true));
        let uses = |processor: &usize| in_use.iter().filter(|used| *used == processor).count();
        let processor =
            allowed.min_by_key(uses).ok_or_else(|| io::Error::other("no processor is allowed"))?;
        let mut one = CpuSet::new();
        one.set(processor)?;
        sched_setaffinity(THIS_THREAD, &one)?;
        in_use.push(processor);
        Ok(Self { before, processor })
    }
}

impl Drop for OneProcessor {
    fn drop(&mut self) {
        let mut in_use = IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = in_use.iter().position(|used| *used == self.processor) {
            in_use.swap_remove(at);
        }
        // It cannot fail, except where the processors have been taken away meanwhile.
        let _ = sched_setaffinity(THIS_THREAD, &self.before);
    }
}

/// The calling thread, by the number that the kernel takes for it.
const THIS_THREAD: Pid = Pid::from_raw(0);
