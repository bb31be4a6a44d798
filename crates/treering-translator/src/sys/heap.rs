//! The heap of the counting process.

/// Prepares this process's heap for many megabytes that are needed soon, as in a program that only counts
/// another one. The heap grows in one large step at first, in large pages if the kernel has them, and keeps
/// its memory. Getting a page at a time, with a fault for each, would take a tenth of a short count.
///
/// This only reserves memory, if the process may have that much. It does nothing with other C libraries than GNU's.
pub fn prepare_heap() {
    #[cfg(target_env = "gnu")]
    {
        const FIRST_STEP: usize = 64 << 20;
        /// The later steps, small enough for a process that may not have another large one.
        const LATER_STEPS: usize = 1 << 20;
        const LARGE_PAGE: usize = 2 << 20;
        /// More than the heap has left.
        const SOME: usize = 192 << 10;
        const PAGE: usize = 4096;
        // SAFETY: `mallopt` takes numbers. The heap may continue anywhere behind its end, which is moved up.
        // The allocation is freed without being used, and the advice does not change the contents of the
        // heap.
        unsafe {
            // The allocation, with the heap's bookkeeping behind it, ends where a large page may begin. No
            // byte of that page may be touched before the advice.
            let behind = (libc::sbrk(0).addr() + SOME + PAGE).next_multiple_of(LARGE_PAGE);
            libc::sbrk((behind - SOME - PAGE - libc::sbrk(0).addr()) as isize);
            libc::mallopt(libc::M_TOP_PAD, FIRST_STEP as i32);
            libc::mallopt(libc::M_MMAP_THRESHOLD, FIRST_STEP as i32 / 2);
            libc::mallopt(libc::M_TRIM_THRESHOLD, i32::MAX);
            let first = libc::malloc(SOME);
            let end = libc::sbrk(0).addr();
            if (behind - SOME - PAGE..behind).contains(&first.addr())
                && (1..=2 * FIRST_STEP).contains(&end.wrapping_sub(behind))
            {
                libc::madvise(behind as *mut libc::c_void, end - behind, libc::MADV_HUGEPAGE);
            }
            libc::free(first);
            libc::mallopt(libc::M_TOP_PAD, LATER_STEPS as i32);
        }
    }
}

/// Returns freed memory to the kernel, which the heap does not do by itself once it is [prepared](prepare_heap).
pub(crate) fn give_back_freed() {
    #[cfg(target_env = "gnu")]
    // SAFETY: `malloc_trim` returns only memory that was freed.
    unsafe {
        libc::malloc_trim(0);
    }
}
