//! The record of the running thread, in a thread-local word, and the stack pointer.

use treering_events::Thread;

pub(crate) use word::{current, set_current, thread_word_offset};

/// Where the record of the running thread stands, or null.
#[cfg(target_arch = "x86_64")]
mod word {
    use treering_events::Thread;

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

    use treering_events::Thread;

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

/// Stands for the record of a thread that is just being given one: every event in it is dropped.
pub(crate) fn busy_thread() -> *mut Thread {
    struct Busy(core::cell::UnsafeCell<Thread>);
    // SAFETY: it is never written; the odd sequence keeps every event out.
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
    static BUSY: Busy =
        Busy(core::cell::UnsafeCell::new(unsafe { core::mem::transmute::<[u64; 40], Thread>(BYTES) }));
    BUSY.0.get()
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
