//! The record of the running thread, in a thread-local word, and the stack pointer.

use core::cell::Cell;

use treering_events::cells::Thread;

pub(crate) use word::thread_word_offset;

/// Where the record of the running thread stands, or null.
#[cfg(target_arch = "x86_64")]
mod word {
    use treering_events::cells::Thread;

    // A thread-local word in the static block (the initial-exec model), which no Rust declaration
    // can ask for: the usual model calls a function on every access from a shared library.
    core::arch::global_asm!(
        ".pushsection .tbss.treering_current_thread,\"awT\",@nobits",
        ".globl treering_current_thread",
        ".type treering_current_thread, @object",
        ".size treering_current_thread, 8",
        ".p2align 3",
        "treering_current_thread:",
        ".zero 8",
        ".popsection",
    );

    #[inline(always)]
    pub(crate) fn current() -> *mut Thread {
        let thread: *mut Thread;
        // SAFETY: reads the thread's own word; the linker fills in its place.
        unsafe {
            core::arch::asm!(
                "mov {thread}, qword ptr [rip + treering_current_thread@gottpoff]",
                "mov {thread}, qword ptr fs:[{thread}]",
                thread = out(reg) thread,
                options(nostack, readonly, preserves_flags),
            );
        }
        thread
    }

    pub(crate) fn set_current(thread: *mut Thread) {
        // SAFETY: writes the thread's own word; the linker fills in its place.
        unsafe {
            core::arch::asm!(
                "mov {place}, qword ptr [rip + treering_current_thread@gottpoff]",
                "mov qword ptr fs:[{place}], {thread}",
                place = out(reg) _,
                thread = in(reg) thread,
                options(nostack, preserves_flags),
            );
        }
    }

    /// The distance of the word from the thread pointer, the same in every thread.
    pub(crate) fn thread_word_offset() -> isize {
        let offset: isize;
        // SAFETY: reads a constant that the linker or loader filled in.
        unsafe {
            core::arch::asm!(
                "mov {offset}, qword ptr [rip + treering_current_thread@gottpoff]",
                offset = out(reg) offset,
                options(nostack, readonly, preserves_flags),
            );
        }
        offset
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod word {
    use core::cell::Cell;

    use treering_events::cells::Thread;

    std::thread_local! {
        static CURRENT: Cell<*mut Thread> = const { Cell::new(core::ptr::null_mut()) };
    }

    pub(crate) fn current() -> *mut Thread {
        CURRENT.try_with(Cell::get).unwrap_or(core::ptr::null_mut())
    }

    pub(crate) fn set_current(thread: *mut Thread) {
        let _ = CURRENT.try_with(|current| current.set(thread));
    }

    pub(crate) fn thread_word_offset() -> isize {
        0
    }
}

/// The record of the running thread; nothing before it has one.
#[inline(always)]
pub(crate) fn current() -> Option<&'static Thread> {
    // SAFETY: the word is null or was written by `set_current`.
    unsafe { word::current().as_ref() }
}

/// The record of the running thread, as a preloaded allocator asks for it.
#[inline(always)]
pub(crate) fn current_pointer() -> *mut treering_events::Thread {
    word::current().cast()
}

/// The record of the running thread, if it has one and is not busy.
pub(crate) fn recorded_thread() -> Option<&'static Thread> {
    current().filter(|thread| !is_busy(thread))
}

pub(crate) fn set_current(thread: Option<&'static Thread>) {
    word::set_current(thread.map_or(core::ptr::null_mut(), |thread| core::ptr::from_ref(thread).cast_mut()));
}

/// Whether this stands for the record of a thread that is busy.
#[inline(always)]
pub(crate) fn is_busy(thread: &Thread) -> bool {
    core::ptr::eq(thread, busy_thread())
}

/// Stands for the record of a thread that is just being given one: every event in it is dropped.
#[inline(always)]
pub(crate) fn busy_thread() -> &'static Thread {
    struct Busy(Thread);
    // SAFETY: it is never written; its epoch, which is no state, keeps every event out.
    unsafe impl Sync for Busy {}
    const BYTES: [u64; 40] = {
        let mut words = [0; 40];
        // An epoch that no thread has, in the lower half of a word.
        words[EPOCH_WORD] = 1 << 31;
        words
    };
    const EPOCH_WORD: usize = core::mem::offset_of!(Thread, epoch) / 8;
    const _: () = assert!(core::mem::offset_of!(Thread, epoch) % 8 == 0 && cfg!(target_endian = "little"));
    // SAFETY: a record consists of numbers, for which any bits are valid.
    static BUSY: Busy = Busy(unsafe { core::mem::transmute::<[u64; 40], Thread>(BYTES) });
    &BUSY.0
}

/// The stack pointer.
#[inline(always)]
pub(crate) fn stack_pointer() -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        let pointer: u64;
        // SAFETY: copies a register.
        unsafe {
            core::arch::asm!("mov {}, rsp", out(reg) pointer, options(nomem, nostack, preserves_flags));
        }
        pointer
    }
    #[cfg(not(target_arch = "x86_64"))]
    0
}

/// The allocations of a thread without a record that it has not added to those of the process yet: how many, their
/// bytes; and how many it has made altogether.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct StrayAllocations {
    pub(crate) allocations: Cell<u64>,
    pub(crate) bytes: Cell<u64>,
    pub(crate) seen: Cell<u64>,
}

/// The stray allocations of the running thread; nothing at its end.
pub(crate) fn stray_allocations() -> Option<&'static StrayAllocations> {
    // SAFETY: the words are the thread's own. They live as long as it, and cells do not leave their thread.
    unsafe { stray_word::pending().as_ref() }
}

#[cfg(target_arch = "x86_64")]
mod stray_word {
    use super::StrayAllocations;

    // In the static block, as the word in `sys` and for one more reason: reaching a thread-local
    // of a library in the usual way may allocate.
    core::arch::global_asm!(
        ".pushsection .tbss.treering_stray,\"awT\",@nobits",
        ".hidden treering_stray",
        ".globl treering_stray",
        ".type treering_stray, @object",
        ".size treering_stray, 24",
        ".p2align 3",
        "treering_stray:",
        ".zero 24",
        ".popsection",
    );

    pub(super) fn pending() -> *const StrayAllocations {
        let pending: *const StrayAllocations;
        // SAFETY: adds the distance that the linker fills in to the thread pointer.
        unsafe {
            core::arch::asm!(
                "mov {pending}, qword ptr fs:[0]",
                "add {pending}, qword ptr [rip + treering_stray@gottpoff]",
                pending = out(reg) pending,
                options(nostack, readonly),
            );
        }
        pending
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod stray_word {
    use core::cell::Cell;

    use super::StrayAllocations;

    const NONE: StrayAllocations =
        StrayAllocations { allocations: Cell::new(0), bytes: Cell::new(0), seen: Cell::new(0) };

    std::thread_local! {
        static PENDING: StrayAllocations = const { NONE };
    }

    pub(super) fn pending() -> *const StrayAllocations {
        PENDING.try_with(core::ptr::from_ref).unwrap_or(core::ptr::null())
    }
}
