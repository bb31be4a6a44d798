//! `longjmp`: the activations that a program jumps out of end when it jumps.
//!
//! At the next enter it would be too late to tell: a function called after the jump may stand at the same
//! place of the stack as one that was jumped out of, or below it. So the functions of the C library are
//! wrapped. Each reads from its buffer where the stack pointer will be, has every activation left whose
//! frame is below that, and goes on to the system's own function.
//!
//! A scope inlined into the function that is jumped to has no frame below, and goes on until a scope around
//! it ends.

use core::arch::{asm, naked_asm};
use core::ffi::{CStr, c_int, c_void};
use core::sync::atomic::{AtomicPtr, Ordering};

use crate::frame;

/// The type of the system's functions.
type Jump = unsafe extern "C" fn(*mut c_void, c_int) -> !;

/// The index of the stack pointer in a `jmp_buf`, in words (glibc, `sysdeps/x86_64/jmpbuf-offsets.h`).
const STACK_POINTER: usize = 6;

macro_rules! wrap {
    ($($name:ident $text:literal)*) => { $(
        /// Jumps as the system's own function does, out of what is recorded too.
        ///
        /// # Safety
        /// As for the system's function.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name(buffer: *mut c_void, value: c_int) -> ! {
            static NEXT: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());
            // SAFETY: by this function's own requirement.
            unsafe {
                frame::jump(target(buffer.cast()));
                next(&NEXT, $text)(buffer, value)
            }
        }
    )* };
}

wrap! {
    longjmp c"longjmp"
    _longjmp c"_longjmp"
    siglongjmp c"siglongjmp"
    __longjmp_chk c"__longjmp_chk"
}

/// Where the stack pointer will be.
unsafe fn target(buffer: *const u64) -> u64 {
    // SAFETY: the buffer is one of glibc's. It holds addresses rotated by 17 bits, after they
    // were mixed with a word of the thread's control block (glibc, `pointer_guard.h`).
    unsafe {
        let mut pointer = *buffer.add(STACK_POINTER);
        asm!("ror {0}, 17", "xor {0}, fs:[0x30]", inout(reg) pointer, options(readonly, nostack));
        pointer
    }
}

/// The system's function of a name.
unsafe fn next(known: &AtomicPtr<c_void>, name: &CStr) -> Jump {
    let mut found = known.load(Ordering::Relaxed);
    if found.is_null() {
        // SAFETY: looks up a name.
        found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
        known.store(found, Ordering::Relaxed);
    }
    if found.is_null() {
        return jump_without_the_system;
    }
    // SAFETY: the system's functions of these names have this type.
    unsafe { core::mem::transmute::<*mut c_void, Jump>(found) }
}

/// Jumps where the program is linked statically, so that the wrapper has replaced the system's
/// function: restores the signal mask where it was saved, and then the registers.
unsafe extern "C" fn jump_without_the_system(buffer: *mut c_void, value: c_int) -> ! {
    const MASK_WAS_SAVED: usize = 64;
    const MASK: usize = 72;
    // SAFETY: the buffer is one of glibc's.
    unsafe {
        if buffer.byte_add(MASK_WAS_SAVED).cast::<c_int>().read() != 0 {
            libc::sigprocmask(libc::SIG_SETMASK, buffer.byte_add(MASK).cast(), core::ptr::null_mut());
        }
        restore(buffer, value)
    }
}

/// Restores the registers rbx, rbp, r12 to r15, rsp and the place of `setjmp`, which then returns
/// `value`, or 1 for 0.
#[unsafe(naked)]
unsafe extern "C" fn restore(buffer: *mut c_void, value: c_int) -> ! {
    naked_asm!(
        "mov eax, esi",
        "cmp eax, 1",
        "adc eax, 0",
        "mov rbx, [rdi]",
        "mov rbp, [rdi + 8]",
        "mov r12, [rdi + 16]",
        "mov r13, [rdi + 24]",
        "mov r14, [rdi + 32]",
        "mov r15, [rdi + 40]",
        "mov r8, [rdi + 48]",
        "mov rdx, [rdi + 56]",
        "ror rbp, 17",
        "xor rbp, fs:[0x30]",
        "ror r8, 17",
        "xor r8, fs:[0x30]",
        "ror rdx, 17",
        "xor rdx, fs:[0x30]",
        "mov rsp, r8",
        "jmp rdx",
    )
}
