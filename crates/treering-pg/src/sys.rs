//! System calls, made without the C library: `errno` and the program's own functions stay untouched.

use std::arch::asm;

/// Makes a system call; the result, or the negative number of the error.
///
/// # Safety
/// The arguments must be what the call takes.
unsafe fn call(number: i64, arguments: [usize; 6]) -> isize {
    let [a, b, c, d, e, f] = arguments;
    let result: isize;
    // SAFETY: the kernel changes these registers only, and memory as the caller allows.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as isize => result,
            in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e, in("r9") f,
            lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
    result
}

/// The signals that a thread blocks.
#[derive(Clone, Copy)]
pub(crate) struct Mask(u64);

/// Blocks all signals; returns those that were blocked.
pub(crate) fn block_signals() -> Mask {
    let (all, mut old) = (u64::MAX, 0_u64);
    // SAFETY: both point to 64 bits, and that is the size that is stated.
    unsafe {
        let how = libc::SIG_SETMASK as usize;
        call(libc::SYS_rt_sigprocmask, [how, &raw const all as usize, &raw mut old as usize, 8, 0, 0]);
    }
    Mask(old)
}

/// Blocks the signals that were blocked before.
pub(crate) fn restore_signals(mask: Mask) {
    // SAFETY: it points to 64 bits, and that is the size that is stated.
    unsafe {
        let how = libc::SIG_SETMASK as usize;
        call(libc::SYS_rt_sigprocmask, [how, &raw const mask.0 as usize, 0, 8, 0, 0]);
    }
}

/// The process.
pub(crate) fn process() -> u32 {
    // SAFETY: it takes no arguments.
    unsafe { call(libc::SYS_getpid, [0; 6]) as u32 }
}

/// The thread.
pub(crate) fn thread() -> u32 {
    // SAFETY: it takes no arguments.
    unsafe { call(libc::SYS_gettid, [0; 6]) as u32 }
}

/// Whether a thread of this process has ended.
pub(crate) fn has_ended(process: u32, thread: u32) -> bool {
    // SAFETY: signal 0 is not sent.
    let result = unsafe { call(libc::SYS_tgkill, [process as usize, thread as usize, 0, 0, 0, 0]) };
    result == -(libc::ESRCH as isize)
}

/// Lets others run.
pub(crate) fn give_way() {
    // SAFETY: it takes no arguments.
    unsafe { call(libc::SYS_sched_yield, [0; 6]) };
}

/// Whether the program runs with more rights than the user who started it, as the kernel told it at its
/// start; true also where that cannot be read.
pub(crate) fn has_rights_of_others() -> bool {
    let Some(file) = File::open(b"/proc/self/auxv\0") else { return true };
    let mut bytes = [0; 1024];
    let length = file.read(&mut bytes);
    let mut entries = bytes.get(..length).unwrap_or_default().chunks_exact(16).map(|entry| {
        let (kind, value) = entry.split_at_checked(8).unwrap_or_default();
        let number =
            |bytes: &[u8]| bytes.iter().rev().fold(0_u64, |number, &byte| number << 8 | u64::from(byte));
        (number(kind), number(value))
    });
    entries.find(|(kind, _)| *kind == libc::AT_SECURE).is_none_or(|(_, value)| value != 0)
}

/// An open file, closed when it is dropped.
pub(crate) struct File(i32);

impl File {
    /// Opens a file; the path ends with a zero.
    pub(crate) fn open(path: &[u8]) -> Option<Self> {
        Self::with(path, libc::O_RDONLY | libc::O_CLOEXEC)
    }

    /// Makes a file that must not exist.
    pub(crate) fn create(path: &[u8]) -> Option<Self> {
        Self::with(path, libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC)
    }

    fn with(path: &[u8], flags: i32) -> Option<Self> {
        if path.last() != Some(&0) {
            return None;
        }
        let here = libc::AT_FDCWD as usize;
        // SAFETY: the path ends with a zero.
        let result =
            unsafe { call(libc::SYS_openat, [here, path.as_ptr() as usize, flags as usize, 0o600, 0, 0]) };
        (result >= 0).then_some(Self(result as i32))
    }

    /// Gives the file a size; the new part takes no room on a disk until it is written.
    pub(crate) fn set_size(&self, size: usize) -> bool {
        // SAFETY: it takes numbers only.
        unsafe { call(libc::SYS_ftruncate, [self.0 as usize, size, 0, 0, 0, 0]) == 0 }
    }

    /// Maps the file, shared with all processes that map it.
    pub(crate) fn map(&self, size: usize) -> Option<*mut u8> {
        let protection = (libc::PROT_READ | libc::PROT_WRITE) as usize;
        let flags = (libc::MAP_SHARED | libc::MAP_NORESERVE) as usize;
        // SAFETY: the kernel chooses where.
        let result = unsafe { call(libc::SYS_mmap, [0, size, protection, flags, self.0 as usize, 0]) };
        (result > 0).then_some(result as *mut u8)
    }

    /// Reads; how many bytes, 0 at the end and for errors.
    pub(crate) fn read(&self, into: &mut [u8]) -> usize {
        loop {
            let (to, length) = (into.as_mut_ptr() as usize, into.len());
            // SAFETY: there is room for `length` bytes.
            let result = unsafe { call(libc::SYS_read, [self.0 as usize, to, length, 0, 0, 0]) };
            if result != -(libc::EINTR as isize) {
                return usize::try_from(result).unwrap_or(0);
            }
        }
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // SAFETY: it has no other owner.
        unsafe { call(libc::SYS_close, [self.0 as usize, 0, 0, 0, 0, 0]) };
    }
}

/// Makes a folder for its owner, if it is not there; the path ends with a zero.
pub(crate) fn make_folder(path: &[u8]) {
    if path.last() == Some(&0) {
        // SAFETY: the path ends with a zero.
        unsafe { call(libc::SYS_mkdir, [path.as_ptr() as usize, 0o700, 0, 0, 0, 0]) };
    }
}

/// Memory of zeros of this process; in a process that is forked it is zero again if it is `wiped`.
pub(crate) fn zeros(size: usize, wiped: bool) -> Option<*mut u8> {
    let protection = (libc::PROT_READ | libc::PROT_WRITE) as usize;
    let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE) as usize;
    // SAFETY: the kernel chooses a free place.
    unsafe {
        let result = call(libc::SYS_mmap, [0, size, protection, flags, usize::MAX, 0]);
        if result <= 0 {
            return None;
        }
        let advice = libc::MADV_WIPEONFORK as usize;
        if wiped && call(libc::SYS_madvise, [result as usize, size, advice, 0, 0, 0]) != 0 {
            call(libc::SYS_munmap, [result as usize, size, 0, 0, 0, 0]);
            return None;
        }
        Some(result as *mut u8)
    }
}

/// Frees memory of [`zeros`].
///
/// # Safety
/// It is not used any more.
pub(crate) unsafe fn give_back(memory: *mut u8, size: usize) {
    // SAFETY: by this function's own requirement.
    unsafe { call(libc::SYS_munmap, [memory as usize, size, 0, 0, 0, 0]) };
}

/// Whether memory of a file can be written: there may be no room on its disk, which would end the
/// program when it writes there. True where the kernel cannot tell.
pub(crate) fn has_room(memory: *mut u8, size: usize) -> bool {
    const PAGE: usize = 4096;
    let start = memory as usize & !(PAGE - 1);
    let size = (memory as usize + size).next_multiple_of(PAGE) - start;
    // SAFETY: it only makes pages that are there already, as far as the program can see.
    let result =
        unsafe { call(libc::SYS_madvise, [start, size, libc::MADV_POPULATE_WRITE as usize, 0, 0, 0]) };
    result == 0 || result == -(libc::EINVAL as isize) || result == -(libc::EINTR as isize)
}

/// The largest file that this process may write.
pub(crate) fn file_limit() -> usize {
    let mut limit = [0_u64; 2];
    // SAFETY: there is room for two numbers of 64 bits.
    let result = unsafe {
        let resource = libc::RLIMIT_FSIZE as usize;
        call(libc::SYS_prlimit64, [0, resource, 0, limit.as_mut_ptr() as usize, 0, 0])
    };
    if result == 0 { usize::try_from(limit[0]).unwrap_or(usize::MAX) } else { usize::MAX }
}
