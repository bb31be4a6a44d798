//! The processors that threads may run on.

use std::io;
use std::mem::MaybeUninit;

/// Processors that a thread may run on.
#[derive(Clone, Copy)]
pub(crate) struct Processors(libc::cpu_set_t);

impl std::fmt::Debug for Processors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set()
            .entries((0..libc::CPU_SETSIZE as usize).filter(|&number| self.contains(number)))
            .finish()
    }
}

impl PartialEq for Processors {
    fn eq(&self, other: &Self) -> bool {
        // SAFETY: reads both sets.
        unsafe { libc::CPU_EQUAL(&self.0, &other.0) }
    }
}

impl Processors {
    /// The processors of a thread.
    pub(crate) fn of(tid: i32) -> io::Result<Self> {
        let mut set = MaybeUninit::<libc::cpu_set_t>::zeroed();
        // SAFETY: the kernel writes at most the size that it is told; all bits may be 0.
        unsafe {
            match libc::sched_getaffinity(tid, size_of::<libc::cpu_set_t>(), set.as_mut_ptr()) {
                -1 => Err(io::Error::last_os_error()),
                _ => Ok(Self(set.assume_init())),
            }
        }
    }

    /// A single processor; nothing if its number is too large for a set.
    pub(crate) fn only(number: usize) -> Option<Self> {
        if number >= libc::CPU_SETSIZE as usize {
            return None;
        }
        // SAFETY: all bits may be 0, and the number is in the set's range.
        unsafe {
            let mut set = MaybeUninit::<libc::cpu_set_t>::zeroed().assume_init();
            libc::CPU_SET(number, &mut set);
            Some(Self(set))
        }
    }

    /// Whether a processor is in the set.
    pub(crate) fn contains(&self, number: usize) -> bool {
        // SAFETY: the number is in the set's range.
        number < libc::CPU_SETSIZE as usize && unsafe { libc::CPU_ISSET(number, &self.0) }
    }

    /// Restricts a thread to these processors.
    pub(crate) fn set(&self, tid: i32) -> io::Result<()> {
        // SAFETY: the kernel reads the set.
        match unsafe { libc::sched_setaffinity(tid, size_of::<libc::cpu_set_t>(), &raw const self.0) } {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }
}

/// The processor that the caller runs on now; too large a number if it is unknown.
pub(crate) fn current_processor() -> usize {
    // SAFETY: takes nothing and changes nothing.
    usize::try_from(unsafe { libc::sched_getcpu() }).unwrap_or(usize::MAX)
}
