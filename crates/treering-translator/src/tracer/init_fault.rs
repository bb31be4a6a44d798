//! Faults of the first process of a PID namespace.
//!
//! The kernel lets such a process die of its own fault, but not while it is traced: then it ignores the signal, and the
//! instruction faults again for ever. So the thread is detached, and its instruction faults once more. A system call that
//! the process's own filter answers with a signal is such a fault, too.

use std::io;

use crate::sys;
use crate::tracer::state::Tracer;
use treering_proc::status;

/// The signals that the kernel sends for instructions.
const OF_INSTRUCTIONS: [i32; 6] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP, libc::SIGSYS];

impl Tracer {
    /// Whether a signal without a handler is a fault that ends the first process of a PID namespace.
    pub(crate) fn ends_first_process(&self, tid: i32, signal: i32) -> io::Result<bool> {
        let is_fault = OF_INSTRUCTIONS.contains(&signal) && sys::signal_info(tid)?.0.si_code > 0;
        Ok(is_fault && status::inner_process(tid) == Some(1))
    }

    /// Takes the counts of a thread whose next instruction ends its process, and lets it execute that.
    pub(crate) fn end_first_process(&mut self, tid: i32, signal: i32) -> io::Result<()> {
        self.take_last_counts(tid)?;
        // These instructions lie before the thread. It has the call's number in rax again.
        let length = match signal {
            libc::SIGTRAP => 1,
            libc::SIGSYS => 2,
            _ => 0,
        };
        if length > 0 {
            let mut registers = sys::registers(tid)?;
            (registers.0.rip, registers.0.orig_rax) = (registers.0.rip - length, u64::MAX);
            sys::set_registers(tid, &registers)?;
        }
        sys::detach(tid)?;
        self.forget_thread(tid);
        Ok(())
    }
}
