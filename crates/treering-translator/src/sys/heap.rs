//! The heap of the counting process.

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
        const LARGE_PAGE: usize = 2 << 20;
        /// More than the heap has left.
        const SOME: usize = 192 << 10;
        const PAGE: usize = 4096;
        // SAFETY: numbers are set. The heap may begin anew where it likes behind its end, which is moved up. What is
        // allocated is freed and not used, and the advice changes no contents of the heap, in which it lies.
        unsafe {
            // What is allocated ends, with what the heap notes behind it, where a large page may begin, in which
            // nothing is to be touched before.
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

/// Gives memory that was freed back to the kernel, which the heap does not do by itself once it is
/// [prepared](prepare_heap).
pub(crate) fn give_back_freed() {
    #[cfg(target_env = "gnu")]
    // SAFETY: only memory that was freed, which nobody uses, is given back.
    unsafe {
        libc::malloc_trim(0);
    }
}
