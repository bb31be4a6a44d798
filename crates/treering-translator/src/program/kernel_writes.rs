//! System calls that write into code.
//!
//! Writable pages are protected while there is translated code for them. The kernel cannot write to them
//! either, which the program must not notice: `read` would fail, and `wait4` or `recvmsg` would even lose
//! their data. So before the first page of a region is protected, another filter stops calls with an argument
//! that points into it, and calls whose arguments point to pointers. Where no filter can be added, pages are
//! not protected, and their blocks compare their own bytes.

use crate::program::region::Regions;
use crate::sys::filter::{call_ranges_filter, install_for_all};
use crate::sys::remote_syscall::StoppedThread;
use treering_proc::status;

/// The most filters of a process.
const MOST_FILTERS: usize = 8;

/// Buffers that begin this many bytes before code are checked as well.
const BEFORE: u64 = 1 << 20;

/// The pages that may be protected, because calls that write there are known before they are made.
#[derive(Debug, Clone, Default)]
pub(crate) struct WatchedCalls {
    ranges: Vec<(u64, u64)>,
    /// The process whose threads get filters; none if the filters would remain after detaching.
    pub(crate) process: Option<i32>,
    is_refused: bool,
}

impl Regions {
    /// Makes calls that write to a page known before they are made, if they are not yet. Returns whether they are.
    pub(crate) fn watch_calls(&mut self, page: u64, thread: &mut StoppedThread<'_>) -> bool {
        let calls = &self.calls;
        if calls.ranges.iter().any(|&(start, end)| (start..end).contains(&page)) {
            return true;
        }
        // A child that runs in this memory has filters of its own, which its parent would not get.
        let is_own = || calls.process.is_some() && status::number(thread.tid, "Tgid") == calls.process;
        if calls.is_refused || calls.ranges.len() >= MOST_FILTERS || !is_own() {
            return false;
        }
        let Some(region) = self.find(page) else { return false };
        // If code is mapped in many pieces, the next ones lie near these.
        let around = BEFORE << (3 * calls.ranges.len());
        let (start, end) = (region.start.saturating_sub(around), region.end.saturating_add(around));
        let filter = call_ranges_filter(start.saturating_sub(BEFORE), end);
        let installed = thread.remotely(|calls| install_for_all(calls, &filter));
        match installed {
            Ok(()) => self.calls.ranges.push((start, end)),
            Err(_) => self.calls.is_refused = true,
        }
        installed.is_ok()
    }
}
