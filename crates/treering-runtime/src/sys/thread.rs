//! The running thread: its number, name and stacks, its end, and forks.

use core::ffi::c_void;

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
