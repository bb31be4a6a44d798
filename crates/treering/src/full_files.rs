//! Files that may not grow (`ulimit -f`).

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::flag;
use treering_proc::is_ignored;

/// Makes a file that may not grow an error of the write, and not the end of this process. Programs that are run are not
/// affected: they do not inherit the handler, and one that ignores the signal goes on ignoring it.
pub fn expect() {
    if !is_ignored(libc::SIGXFSZ) {
        // Where no handler can be set, the signal ends this process, as it would have.
        let _ = flag::register(libc::SIGXFSZ, Arc::new(AtomicBool::new(false)));
    }
}
