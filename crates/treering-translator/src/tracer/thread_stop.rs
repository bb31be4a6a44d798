//! A stop of a counted thread, as the tracer's handlers see it.

use std::io;

use crate::address_space::AddressSpace;
use crate::sys::remote_syscall::StoppedThread;
use crate::tracer::thread::Thread;

/// A counted thread that has stopped, with its address space.
///
/// The registers are passed beside it: a request of translated code is answered without reading them.
pub(crate) struct ThreadStop<'a, 'held> {
    pub(crate) thread: &'a mut Thread,
    pub(crate) space: &'a mut AddressSpace,
    /// The same thread, to make system calls in its name.
    pub(crate) stopped: &'a mut StoppedThread<'held>,
}

impl ThreadStop<'_, '_> {
    /// Calls a function with a stopped thread. `in_call`: it stands inside of a system call, which is skipped if the
    /// function makes others.
    pub(crate) fn with<T>(
        thread: &mut Thread,
        space: &mut AddressSpace,
        in_call: bool,
        act: impl FnOnce(&mut ThreadStop<'_, '_>) -> T,
    ) -> T {
        let mut held = std::mem::take(&mut thread.held);
        let mut stopped = StoppedThread::new(thread.tid, in_call, &mut held);
        let result = act(&mut ThreadStop { thread, space, stopped: &mut stopped });
        thread.held = held;
        result
    }

    /// The translation of an address, as [`AddressSpace::enter`] has it.
    pub(crate) fn enter(&mut self, address: u64) -> io::Result<Option<u64>> {
        self.space.enter(address, self.stopped)
    }

    /// The value of a slot of the thread's area.
    pub(crate) fn slot(&self, slot: u32) -> u64 {
        self.space.areas.slot(self.thread.area, slot)
    }

    /// Sets a slot of the thread's area.
    pub(crate) fn set_slot(&self, slot: u32, value: u64) {
        self.space.areas.set_slot(self.thread.area, slot, value);
    }
}
