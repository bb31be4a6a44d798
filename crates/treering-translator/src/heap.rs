//! The heap of a process that counts.

/// Makes this process's heap ready for many megabytes that are soon needed, as by a program of its own which
/// counts another: it grows in one large step at first, in large pages if the kernel has them, and keeps what it
/// has. To get a page at a time, with a fault for each, would take a tenth of a short count.
///
/// The memory is only reserved by this, if the process may have as much. Does nothing where there is another C
/// library than GNU's.
pub fn prepare_heap() {
    #[cfg(target_env = "gnu")]
    {
        const FIRST_STEP: usize = 64 << 20;
        /// Small enough for a process that may not have another large one.
        const LATER_STEPS: usize = 1 << 20;
        const PAGE: usize = 4096;
        const LARGE_PAGE: usize = 2 << 20;
        /// More than the heap has left, and less than what gets a mapping of its own.
        const SOME: usize = 1 << 20;
        // SAFETY: numbers are set. The heap may begin anew where it likes behind its end, which is moved up to where
        // a large page may begin. What is allocated is freed and not used, and the advice changes no contents of
        // the heap, in which it lies.
        unsafe {
            let gap = libc::sbrk(0).addr().wrapping_neg() % LARGE_PAGE;
            libc::sbrk((gap + LARGE_PAGE - PAGE) as isize % LARGE_PAGE as isize);
            libc::mallopt(libc::M_TOP_PAD, FIRST_STEP as i32);
            libc::mallopt(libc::M_MMAP_THRESHOLD, FIRST_STEP as i32 / 2);
            libc::mallopt(libc::M_TRIM_THRESHOLD, i32::MAX);
            let first = libc::malloc(SOME);
            let (start, end) = ((first as usize).next_multiple_of(PAGE), libc::sbrk(0) as usize);
            if !first.is_null() && (1..=2 * FIRST_STEP).contains(&end.wrapping_sub(start)) {
                libc::madvise(start as *mut libc::c_void, end - start, libc::MADV_HUGEPAGE);
            }
            libc::free(first);
            libc::mallopt(libc::M_TOP_PAD, LATER_STEPS as i32);
        }
    }
}
