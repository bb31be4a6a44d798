//! The running thread: its record, in a thread-local word; its number, name and stacks, its end, and forks.

use core::cell::Cell;
use core::ffi::c_void;

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

/// The number of the running thread.
pub(crate) fn thread_id() -> u32 {
    // SAFETY: has no arguments and cannot fail.
    unsafe { libc::syscall(libc::SYS_gettid) as u32 }
}

/// The name of the running thread, padded with zeros.
pub(crate) fn thread_name() -> [u8; 16] {
    let mut name = [0_u8; 16];
    // SAFETY: the call writes at most 16 bytes.
    unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    name
}

/// The lowest and highest address of the running thread's stack; both 0 when unknown.
pub(crate) fn stack_bounds() -> (u64, u64) {
    // SAFETY: the attributes are initialised by the first call, read and destroyed after it.
    unsafe {
        let mut attributes: libc::pthread_attr_t = core::mem::zeroed();
        if libc::pthread_getattr_np(libc::pthread_self(), &raw mut attributes) != 0 {
            return (0, 0);
        }
        let (mut start, mut bytes) = (core::ptr::null_mut::<c_void>(), 0_usize);
        let known = libc::pthread_attr_getstack(&raw const attributes, &raw mut start, &raw mut bytes) == 0;
        libc::pthread_attr_destroy(&raw mut attributes);
        if known { (start as u64, start as u64 + bytes as u64) } else { (0, 0) }
    }
}

/// The bounds of the stack for signal handlers that the thread is running on, if it is.
pub(crate) fn signal_stack() -> Option<(u64, u64)> {
    // SAFETY: all zeros are a valid structure, and the call fills it.
    let stack = unsafe {
        let mut stack: libc::stack_t = core::mem::zeroed();
        libc::sigaltstack(core::ptr::null(), &raw mut stack);
        stack
    };
    let low = stack.ss_sp as u64;
    (stack.ss_flags & libc::SS_ONSTACK != 0).then_some((low, low + stack.ss_size as u64))
}

/// Has `at_end` called when a thread ends that called [`watch_thread`].
pub(crate) fn create_thread_key(at_end: unsafe extern "C" fn(*mut c_void)) -> Option<libc::pthread_key_t> {
    let mut key = 0;
    // SAFETY: the call writes the key.
    (unsafe { libc::pthread_key_create(&raw mut key, Some(at_end)) } == 0).then_some(key)
}

/// Has the function of the key called when this thread ends.
pub(crate) fn watch_thread(key: libc::pthread_key_t) {
    // SAFETY: any value that is not null will do; the function gets it back and ignores it.
    unsafe { libc::pthread_setspecific(key, core::ptr::dangling()) };
}

/// Has the functions called before a fork, after it in the parent, and in the child.
pub(crate) fn at_fork(
    before: unsafe extern "C" fn(),
    parent: unsafe extern "C" fn(),
    child: unsafe extern "C" fn(),
) {
    // SAFETY: registers functions that live as long as the program.
    unsafe { libc::pthread_atfork(Some(before), Some(parent), Some(child)) };
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
