//! Marks the part of a program that `treering count --marked` counts.
//!
//! ```
//! use treering_runtime::counting;
//!
//! counting::start();
//! let sum: u64 = (0..1000).sum(); // counted
//! counting::stop();
//! # assert_eq!(sum, 499_500);
//! ```
//!
//! Each mark is one instruction without effect: a `nop` of seven bytes, with an operand that no compiler writes. So a
//! program may keep its marks, and they are there in every build for x86-64, whichever features are on. C and C++
//! have the same in `<treering/count.h>`.

/// From here on the thread is counted.
#[inline(always)]
pub fn start() {
    // SAFETY: an instruction that does nothing; `nop dword ptr [rax + 0x31677274]`, which ends in `trg1`.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        core::arch::asm!(".byte 0x0f, 0x1f, 0x80, 0x74, 0x72, 0x67, 0x31", options(nostack, preserves_flags));
    }
}

/// From here on it is not.
#[inline(always)]
pub fn stop() {
    // SAFETY: an instruction that does nothing; `nop dword ptr [rax + 0x30677274]`, which ends in `trg0`.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        core::arch::asm!(".byte 0x0f, 0x1f, 0x80, 0x74, 0x72, 0x67, 0x30", options(nostack, preserves_flags));
    }
}
