//! Restartable sequences (`rseq(2)`) of threads that ran before they were counted.
//!
//! Such a thread has registered an area in which it names the sequence that must not be interrupted. The
//! kernel compares addresses of original code, so it would never find the thread inside of a sequence. So the
//! tracer unregisters the area while the thread runs translated code. The program then finds no processor
//! number there, and uses its code for that case. New threads register with the tracer instead of the kernel:
//! the C library ends a program whose second thread cannot register although the first one could.

use std::io;

use crate::sys::remote_syscall::StoppedThread;
use crate::sys::{self, Registers};

/// A thread's registration of restartable sequences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Restartable {
    /// The area in which the thread names its current sequence.
    area: u64,
    length: u32,
    signature: u32,
}

/// `RSEQ_FLAG_UNREGISTER`
const TAKE_BACK: u64 = 1;
/// The field of the area that names the current sequence.
const SEQUENCE_AT: u64 = 8;

impl Restartable {
    /// Unregisters the area of a stopped thread, if it has one. A thread inside of a sequence continues at
    /// the sequence's abort handler.
    ///
    /// # Errors
    /// The kernel does not report the registration (before Linux 5.13).
    pub(crate) fn take(
        thread: &mut StoppedThread<'_>,
        registers: &mut Registers,
    ) -> io::Result<Option<Self>> {
        let unknown = |error: io::Error| match error.raw_os_error() {
            Some(libc::EIO) => {
                io::Error::other("the kernel does not tell of restartable sequences (Linux 5.13 does)")
            }
            _ => error,
        };
        let found = sys::restartable(thread.tid).map_err(unknown)?;
        let Some((area, length, signature)) = found else { return Ok(None) };
        let told = Self { area, length, signature };
        let word = |at: u64| {
            let mut bytes = [0; 8];
            (sys::read_memory(thread.tid, at, &mut bytes) == 8).then(|| u64::from_le_bytes(bytes))
        };
        // The version and flags of a sequence, its first address, its length, and its abort handler.
        let sequence = word(area + SEQUENCE_AT).filter(|&sequence| sequence != 0);
        let parts = sequence.and_then(|at| Some((word(at + 8)?, word(at + 16)?, word(at + 24)?)));
        if let Some((start, length, handler)) = parts
            && registers.0.rip.wrapping_sub(start) < length
        {
            registers.0.rip = handler;
            sys::set_registers(thread.tid, registers)?;
        }
        told.tell(thread, TAKE_BACK)?;
        Ok(Some(told))
    }

    /// Answers a thread's call to register or unregister its area, in the kernel's place.
    pub(crate) fn answer(registers: &Registers, told: &mut Option<Self>) -> i32 {
        let [area, length, flags, signature] =
            [registers.0.rdi, registers.0.rsi, registers.0.rdx, registers.0.r10];
        let said = Self { area, length: length as u32, signature: signature as u32 };
        match (flags, told.as_ref()) {
            (0, None) => *told = Some(said),
            (TAKE_BACK, Some(before)) if *before == said => *told = None,
            _ => return -libc::EINVAL,
        }
        0
    }

    /// Registers the area with the kernel again.
    pub(crate) fn give_back(self, thread: &mut StoppedThread<'_>) -> io::Result<()> {
        self.tell(thread, 0)
    }

    fn tell(self, thread: &mut StoppedThread<'_>, flags: u64) -> io::Result<()> {
        // The thread is in no sequence now, so the kernel must not find the old one.
        sys::write_memory(thread.tid, self.area + SEQUENCE_AT, &[0; 8]);
        let arguments = [self.area, self.length.into(), flags, self.signature.into(), 0, 0];
        thread.remotely(|calls| calls.call(libc::SYS_rseq, arguments)).map(drop)
    }
}
