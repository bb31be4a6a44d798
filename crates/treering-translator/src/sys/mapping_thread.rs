//! A thread that maps memory for a process that may have no more descriptors.
//!
//! A new thread of that process gets a copy of its table of descriptors, and closes some of them there: it has room for
//! those that mapping takes, and the process's own table stays as it is. The tracer makes all of the thread's system
//! calls, and ends it.

use std::io;

use crate::sys::remote_syscall::{RemoteSyscalls, StoppedThread};
use crate::sys::{self, Stop};

/// A thread that shares all but the table of descriptors. It is traced, also if its maker's children are not.
const FLAGS: i32 = libc::CLONE_VM | libc::CLONE_SIGHAND | libc::CLONE_THREAD | libc::CLONE_PTRACE;

/// Descriptors that mapping takes at the same time: the shared memory, and a pair of sockets.
pub(crate) const DESCRIPTORS_FOR_MAPPING: u64 = 3;

impl RemoteSyscalls<'_, '_> {
    /// Makes calls in a new thread with room for [`DESCRIPTORS_FOR_MAPPING`].
    ///
    /// # Errors
    /// The process may have no more threads, or one of the calls fails.
    pub(crate) fn in_new_thread<T>(
        &mut self,
        make: impl FnOnce(&mut RemoteSyscalls<'_, '_>) -> io::Result<T>,
    ) -> io::Result<T> {
        // While a process is being attached to, its threads' new threads are not reported.
        sys::keep(self.thread.tid)?;
        let tid = self.make_thread([FLAGS as u64, 0, 0, 0, 0, 0])?;
        let gate = self.thread.syscall_page;
        let mut helper = StoppedThread::new(tid, false, self.thread.held);
        helper.syscall_page = gate;
        let made = sys::wait(tid).and_then(|_| {
            helper.remotely(|calls| {
                // The kernel gives the lowest numbers to new descriptors.
                for descriptor in 0..DESCRIPTORS_FOR_MAPPING {
                    calls.call(libc::SYS_close, [descriptor, 0, 0, 0, 0, 0])?;
                }
                make(calls)
            })
        });
        helper.exit()?;
        made
    }
}

impl StoppedThread<'_> {
    /// Ends a thread that the tracer made, and waits until it is gone.
    fn exit(&mut self) -> io::Result<()> {
        if self.gone {
            return Ok(());
        }
        let mut registers = sys::registers(self.tid)?;
        let r = &mut registers.0;
        (r.rax, r.rdi, r.orig_rax, r.rip) = (libc::SYS_exit as u64, 0, u64::MAX, self.syscall_page);
        sys::set_registers(self.tid, &registers)?;
        let mut signal = 0;
        loop {
            // A thread that is being killed is not stopped.
            let _ = sys::resume(self.tid, std::mem::take(&mut signal));
            match sys::wait(self.tid)? {
                Some((_, Stop::Signal(arrived))) => signal = self.take_signal(arrived)?.unwrap_or(0),
                Some((_, Stop::Exited(_) | Stop::Killed(_))) | None => return Ok(()),
                Some(_) => {}
            }
        }
    }
}
