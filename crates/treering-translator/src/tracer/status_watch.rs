//! Notices that a counted process, or another one, opens `/proc/PID/status` of a counted process.
//!
//! The file shows the tracer and its seccomp filter, which the kernel cannot hide, so a program that reads its own may
//! behave otherwise. To stop each `open` for its path would cost programs that open many files much time; a watch costs
//! them nothing, but does not tell who opened the file. `treering_proc::status` reads another file with the same contents,
//! so that the tracer does not notice itself.

use std::collections::HashMap;

use crate::sys::OpenWatch;
use crate::tracer::state::Tracer;

/// The note of a run in which such a file was opened.
pub(crate) const STATUS_WAS_OPENED: &str = "/proc/PID/status of a counted process was opened, by itself or another \
    process; it shows that the process is counted (TracerPid, Seccomp, Seccomp_filters, NoNewPrivs)";

/// The watched processes.
#[derive(Debug, Default)]
pub(crate) struct StatusWatch {
    /// Nothing before the first process, or if the system grants no watch.
    watch: Option<OpenWatch>,
    /// The watch of each process.
    processes: HashMap<i32, i32>,
    was_opened: bool,
}

impl StatusWatch {
    fn begin(&mut self, pid: i32) {
        if self.was_opened {
            return;
        }
        if self.watch.is_none() {
            self.watch = OpenWatch::new().ok();
        }
        let watched = self.watch.as_ref().and_then(|watch| watch.add(&format!("/proc/{pid}/status")).ok());
        self.processes.extend(watched.map(|watched| (pid, watched)));
    }

    fn end(&mut self, pid: i32) {
        let Some(watched) = self.processes.remove(&pid) else { return };
        self.was_opened();
        if let Some(watch) = &self.watch {
            watch.remove(watched);
        }
    }

    /// Whether a process's file was opened while the process was watched.
    pub(crate) fn was_opened(&mut self) -> bool {
        self.was_opened |= self.watch.as_ref().is_some_and(OpenWatch::was_any_opened);
        self.was_opened
    }
}

impl Tracer {
    /// A process is counted from now on.
    pub(crate) fn watch_status(&mut self, pid: i32) {
        self.status_watch.begin(pid);
    }

    /// A thread has ended, and with it perhaps its process.
    pub(crate) fn unwatch_status(&mut self, tid: i32) {
        self.status_watch.end(tid);
    }
}
