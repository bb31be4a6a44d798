//! What the runtime asks of the operating system and of the processor.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::io;

use treering_events::{CODE, Thread};

/// Whether the clock is the processor's counter rather than the kernel's clock.
static HAS_TSC: AtomicBool = AtomicBool::new(true);

/// The clock of all events, in ticks of its own: each is a fraction of one of the processor's counter,
/// or of a nanosecond, so that all times are multiples of [`CODE`].
#[inline(always)]
pub(crate) fn ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    if HAS_TSC.load(Ordering::Relaxed) {
        // SAFETY: every x86-64 processor has the instruction; the kernel has not forbidden it,
        // or `choose_clock` would not have chosen it.
        return unsafe { core::arch::x86_64::_rdtsc() }.wrapping_mul(CODE);
    }
    clock_ns(libc::CLOCK_MONOTONIC).wrapping_mul(CODE)
}

/// The processor's counter, where that is known to be the clock; elsewhere the same as [`ticks`].
#[inline(always)]
pub(crate) fn tsc() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has the instruction; see `ticks`.
    return unsafe { core::arch::x86_64::_rdtsc() }.wrapping_mul(CODE);
    #[cfg(not(target_arch = "x86_64"))]
    ticks()
}

/// Whether the clock was chosen to be the processor's counter.
pub(crate) fn uses_tsc() -> bool {
    HAS_TSC.load(Ordering::Relaxed)
}

/// Chooses the clock: the processor's counter where it runs evenly on all processors, as far as
/// the kernel knows. Returns whether it is that.
pub(crate) fn choose_clock(allowed: bool) -> bool {
    let chosen = allowed && has_invariant_tsc();
    HAS_TSC.store(chosen, Ordering::Relaxed);
    chosen
}

#[cfg(target_arch = "x86_64")]
fn has_invariant_tsc() -> bool {
    const INVARIANT: u32 = 1 << 8;
    let highest = core::arch::x86_64::__cpuid(0x8000_0000).eax;
    let invariant = highest >= 0x8000_0007 && core::arch::x86_64::__cpuid(0x8000_0007).edx & INVARIANT != 0;
    // SAFETY: the call writes one number to where it is told.
    let readable = unsafe {
        let mut mode: c_int = 0;
        let asked = libc::prctl(libc::PR_GET_TSC, &raw mut mode);
        asked != 0 || mode == libc::PR_TSC_ENABLE
    };
    let source = std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    let distrusted = matches!(source.as_deref().map(str::trim), Ok("hpet" | "acpi_pm" | "jiffies"));
    invariant && readable && !distrusted
}

#[cfg(not(target_arch = "x86_64"))]
fn has_invariant_tsc() -> bool {
    false
}

/// A clock of the kernel, in nanoseconds.
pub(crate) fn clock_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call fills the structure that it is given.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The two clocks read as close together as can be: ticks and `CLOCK_MONOTONIC_RAW`.
pub(crate) fn both_clocks() -> (u64, u64) {
    let read = || {
        let before = ticks();
        let raw = clock_ns(libc::CLOCK_MONOTONIC_RAW);
        let after = ticks();
        (after.wrapping_sub(before), before.wrapping_add(after.wrapping_sub(before) / 2), raw)
    };
    let best = (0..5).map(|_| read()).min_by_key(|reading| reading.0);
    best.map_or((0, 0), |(_, ticks, raw)| (ticks, raw))
}

/// Processor time in nanoseconds: user's and system's.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CpuTime {
    pub(crate) user_ns: u64,
    pub(crate) system_ns: u64,
}

/// Whose processor time.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Whose {
    Thread,
    Process,
    Children,
}

/// The processor time used so far.
pub(crate) fn cpu_time(whose: Whose) -> CpuTime {
    let who = match whose {
        Whose::Thread => libc::RUSAGE_THREAD,
        Whose::Process => libc::RUSAGE_SELF,
        Whose::Children => libc::RUSAGE_CHILDREN,
    };
    // SAFETY: all zeros are a valid structure, and the call fills it.
    let usage = unsafe {
        let mut usage: libc::rusage = core::mem::zeroed();
        libc::getrusage(who, &raw mut usage);
        usage
    };
    let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
    CpuTime { user_ns: ns(usage.ru_utime), system_ns: ns(usage.ru_stime) }
}

/// The time between two timer interrupts of the kernel, in nanoseconds: the resolution of its coarse
/// clocks.
pub(crate) fn timer_tick_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call fills the structure that it is given.
    unsafe { libc::clock_getres(libc::CLOCK_MONOTONIC_COARSE, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Where the record of the running thread stands, or null.
#[cfg(target_arch = "x86_64")]
mod slot {
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
    pub(crate) fn offset() -> isize {
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
mod slot {
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

    pub(crate) fn offset() -> isize {
        0
    }
}

pub(crate) use slot::{current, offset as thread_word_offset, set_current};

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

/// A lock for what happens seldom. It spins and yields, so that it needs no memory and can be
/// held across a fork.
pub(crate) struct Lock(AtomicU32);

/// Holds a [`Lock`] until it goes out of scope.
pub(crate) struct Held<'a>(&'a Lock);

impl Lock {
    pub(crate) const fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    pub(crate) fn hold(&self) -> Held<'_> {
        self.take();
        Held(self)
    }

    /// Takes the lock without a guard; to be followed by [`release`](Self::release).
    pub(crate) fn take(&self) {
        while self.0.compare_exchange_weak(0, 1, Ordering::Acquire, Ordering::Relaxed).is_err() {
            // SAFETY: gives the processor away, and nothing else.
            unsafe { libc::sched_yield() };
        }
    }

    pub(crate) fn release(&self) {
        self.0.store(0, Ordering::Release);
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.release();
    }
}

/// Memory of zeros that is not from the allocator of the program, which may be our caller.
/// Null when there is none.
pub(crate) fn map_private(bytes: usize) -> *mut u8 {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping at a place of the kernel's choice touches nothing that exists.
    let mapped = unsafe { libc::mmap(core::ptr::null_mut(), bytes, protection, flags, -1, 0) };
    if mapped == libc::MAP_FAILED { core::ptr::null_mut() } else { mapped.cast() }
}

/// Gives back what [`map_private`] or [`reserve`] returned.
pub(crate) fn unmap(start: *mut u8, bytes: usize) {
    // SAFETY: callers own the whole range and use it no more.
    unsafe { libc::munmap(start.cast(), bytes) };
}

/// Reserves a range of addresses without memory. Null when there is none of that size.
pub(crate) fn reserve(bytes: usize) -> *mut u8 {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: as in `map_private`.
    let mapped = unsafe { libc::mmap(core::ptr::null_mut(), bytes, libc::PROT_NONE, flags, -1, 0) };
    if mapped == libc::MAP_FAILED { core::ptr::null_mut() } else { mapped.cast() }
}

/// Puts a part of a file, or memory where there is no file, into a reserved range. The children
/// of the process do not get it.
///
/// # Safety
/// `start` and `bytes` lie in a range of [`reserve`] and hold nothing yet.
pub(crate) unsafe fn map_into(start: *mut u8, bytes: usize, file: Option<(c_int, u64)>) -> io::Result<()> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let (flags, fd, offset) = match file {
        Some((fd, offset)) => (libc::MAP_SHARED, fd, offset),
        None => (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0),
    };
    // SAFETY: by this function's own requirement.
    let mapped = unsafe {
        libc::mmap(start.cast(), bytes, protection, flags | libc::MAP_FIXED, fd, offset as libc::off_t)
    };
    if mapped == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Gives back what a file has behind `bytes`, if it can be.
pub(crate) fn shorten_file(file: i32, bytes: u64) {
    // SAFETY: changes a file that is not mapped behind `bytes`.
    unsafe { libc::ftruncate(file, bytes as libc::off_t) };
}

/// Makes a file longer and sure of its room on the disk, so that writing to a mapping of it
/// cannot fail later.
pub(crate) fn extend_file(fd: c_int, from: u64, to: u64) -> io::Result<()> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the call fills the structure.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) } == 0;
    if known && limit.rlim_cur != libc::RLIM_INFINITY && to > limit.rlim_cur {
        // Going beyond would end the program by a signal.
        return Err(io::Error::from_raw_os_error(libc::EFBIG));
    }
    loop {
        // SAFETY: works on a descriptor of ours.
        match unsafe { libc::posix_fallocate(fd, from as libc::off_t, (to - from) as libc::off_t) } {
            0 => return Ok(()),
            libc::EINTR => {}
            error => return Err(io::Error::from_raw_os_error(error)),
        }
    }
}

/// Tells a file from all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileIdentity {
    device: u64,
    node: u64,
}

impl FileIdentity {
    pub(crate) const fn of(device: u64, node: u64) -> Self {
        Self { device, node }
    }
}

/// Which file an open one is; nothing where the number is of none.
pub(crate) fn file_identity(fd: c_int) -> Option<FileIdentity> {
    // SAFETY: all zeros are a valid structure, and the call fills it.
    unsafe {
        let mut found: libc::stat = core::mem::zeroed();
        (libc::fstat(fd, &raw mut found) == 0).then(|| FileIdentity::of(found.st_dev, found.st_ino))
    }
}

/// Bytes that are free on the disk of an open file.
pub(crate) fn free_room(fd: c_int) -> u64 {
    // SAFETY: all zeros are a valid structure, and the call fills it.
    unsafe {
        let mut found: libc::statvfs = core::mem::zeroed();
        if libc::fstatvfs(fd, &raw mut found) != 0 { 0 } else { found.f_bavail * found.f_frsize }
    }
}

/// Writes to a pipe or device. It gives up after ten seconds in which no reader takes anything. A pipe without a
/// reader raises no signal.
pub(crate) fn write_to_stream(path: &std::path::Path, bytes: &[u8]) -> io::Result<()> {
    use std::io::{IsTerminal as _, Write as _};
    use std::os::fd::AsRawFd as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    const PATIENCE_MS: c_int = 10_000;

    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let mut options = std::fs::OpenOptions::new();
    let mut stream = options.write(true).custom_flags(flags).open(path).map_err(|error| {
        match error.raw_os_error() {
            Some(libc::ENXIO) => io::Error::other("it has no reader"),
            _ => error,
        }
    })?;
    if stream.is_terminal() {
        return Err(io::Error::other("it is a terminal"));
    }
    let _quiet = NoPipeSignal::begin();
    let mut left = bytes;
    while !left.is_empty() {
        match stream.write(left) {
            Ok(count) => left = &left[count..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let mut wait = libc::pollfd { fd: stream.as_raw_fd(), events: libc::POLLOUT, revents: 0 };
                // SAFETY: one structure is given, and it lives.
                if unsafe { libc::poll(&raw mut wait, 1, PATIENCE_MS) } == 0 {
                    return Err(io::Error::other("its reader does not continue"));
                }
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// While it lives, the program gets no signal for a pipe without a reader.
struct NoPipeSignal {
    before: libc::sigset_t,
    pipe: libc::sigset_t,
}

impl NoPipeSignal {
    fn begin() -> Self {
        // SAFETY: all zeros are valid sets; the calls fill them, and change this thread's mask only.
        unsafe {
            let mut pipe: libc::sigset_t = core::mem::zeroed();
            let mut before: libc::sigset_t = core::mem::zeroed();
            libc::sigemptyset(&raw mut pipe);
            libc::sigaddset(&raw mut pipe, libc::SIGPIPE);
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const pipe, &raw mut before);
            Self { before, pipe }
        }
    }
}

impl Drop for NoPipeSignal {
    fn drop(&mut self) {
        let now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: takes a signal that is pending, if it is, and puts the mask back.
        unsafe {
            if libc::sigismember(&raw const self.before, libc::SIGPIPE) == 0 {
                libc::sigtimedwait(&raw const self.pipe, core::ptr::null_mut(), &raw const now);
            }
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before, core::ptr::null_mut());
        }
    }
}

/// Locks a file for this process, as long as it is open. False when another has it.
pub(crate) fn lock_file(fd: c_int) -> bool {
    // SAFETY: works on a descriptor of ours.
    unsafe { libc::flock(fd, libc::LOCK_EX | libc::LOCK_NB) == 0 }
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

/// Whether the program runs with more rights than the user who started it: setuid, setgid, capabilities of its file.
pub(crate) fn has_rights_of_others() -> bool {
    // SAFETY: it reads a number that the kernel gave the process when it started.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// Whether the user who started the program may make files in a folder, whatever the program itself may.
pub(crate) fn user_may_write(folder: &std::path::Path) -> bool {
    let Ok(folder) = std::ffi::CString::new(folder.as_os_str().as_encoded_bytes()) else { return false };
    // SAFETY: the name ends with a zero. `access` asks for the real user, not for the effective one.
    unsafe { libc::access(folder.as_ptr(), libc::W_OK | libc::X_OK) == 0 }
}

/// Writes a line to standard error without the allocator; what cannot be written is left out.
pub(crate) fn complain(parts: &[&str]) {
    for part in parts.iter().chain([&"\n"]) {
        // SAFETY: the bytes are those of a text that lives.
        unsafe { libc::write(2, part.as_ptr().cast(), part.len()) };
    }
}

/// The virtual and the resident size of the process in bytes, read without the allocator. What is
/// only [reserved](reserve) is in the first.
pub(crate) fn memory_size() -> (u64, u64) {
    let mut text = [0_u8; 128];
    // SAFETY: reads at most as many bytes as there is room for, from a descriptor of its own.
    let length = unsafe {
        let fd = libc::open(c"/proc/self/statm".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        if fd < 0 {
            return (0, 0);
        }
        let length = libc::read(fd, text.as_mut_ptr().cast(), text.len());
        libc::close(fd);
        length.max(0) as usize
    };
    let mut pages = text[..length].split(|byte| *byte == b' ').map(number);
    let size = page_size();
    let mut next = || pages.next().unwrap_or(0) * size;
    (next(), next())
}

fn number(digits: &[u8]) -> u64 {
    let digits = digits.iter().take_while(|byte| byte.is_ascii_digit());
    digits.fold(0, |number, digit| number * 10 + u64::from(digit - b'0'))
}

fn page_size() -> u64 {
    static SIZE: AtomicU64 = AtomicU64::new(0);
    if SIZE.load(Ordering::Relaxed) == 0 {
        // SAFETY: has no effect but its answer.
        SIZE.store(unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as u64, Ordering::Relaxed);
    }
    SIZE.load(Ordering::Relaxed)
}

/// The bytes of a C text of at most `longest` bytes; none for null.
///
/// # Safety
/// `text` is null or leads to bytes with a zero among them, which live as long as `'a`.
pub(crate) unsafe fn c_text<'a>(text: *const c_char) -> &'a [u8] {
    if text.is_null() {
        return &[];
    }
    // SAFETY: by this function's own requirement.
    unsafe { CStr::from_ptr(text) }.to_bytes()
}

/// The `length` bytes at `start`; none for null.
///
/// # Safety
/// `start` is null or leads to that many bytes, which live as long as `'a`.
pub(crate) unsafe fn bytes<'a>(start: *const c_char, length: usize) -> &'a [u8] {
    if start.is_null() {
        return &[];
    }
    // SAFETY: by this function's own requirement.
    unsafe { core::slice::from_raw_parts(start.cast(), length) }
}

/// A copy of memory that other threads may be changing.
///
/// # Safety
/// `length` bytes from `start` on can be read.
pub(crate) unsafe fn copy_of(start: *const u8, length: usize) -> Vec<u8> {
    let mut copy = Vec::with_capacity(length);
    // SAFETY: the source is readable by this function's own requirement, the target has the room.
    unsafe {
        core::ptr::copy_nonoverlapping(start, copy.as_mut_ptr(), length);
        copy.set_len(length);
    }
    copy
}

/// Code in memory: the module that holds it and its address as stated there.
#[derive(Clone, Debug, Default)]
pub(crate) struct Code {
    pub(crate) path: String,
    pub(crate) stated_address: u64,
    pub(crate) build_id: [u8; 32],
    pub(crate) build_id_length: u32,
}

impl Code {
    pub(crate) fn build_id(&self) -> &[u8] {
        &self.build_id[..self.build_id_length as usize]
    }
}

/// Where a part of a library stands in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CodeRange {
    start: u64,
    end: u64,
    path: Vec<u8>,
}

impl CodeRange {
    pub(crate) fn holds(&self, address: u64) -> bool {
        self.start <= address && address < self.end
    }
}

/// Where the code of all modules stands.
pub(crate) fn code_ranges() -> Vec<CodeRange> {
    unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _: usize, ranges: *mut c_void) -> c_int {
        // SAFETY: both are valid for the call, by the contract of `dl_iterate_phdr`, and there are as many
        // headers as it says; the loader's names are C texts.
        let (info, ranges) = unsafe { (&*info, &mut *ranges.cast::<Vec<CodeRange>>()) };
        // SAFETY: as above.
        let headers = unsafe { core::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum as usize) };
        // SAFETY: as above.
        let path = unsafe { c_text(info.dlpi_name) };
        let holds_code = |header: &&libc::Elf64_Phdr| {
            header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_X != 0
        };
        ranges.extend(headers.iter().filter(holds_code).map(|header| {
            let start = info.dlpi_addr.wrapping_add(header.p_vaddr);
            CodeRange { start, end: start.wrapping_add(header.p_memsz), path: path.to_vec() }
        }));
        0
    }
    let mut ranges: Vec<CodeRange> = Vec::new();
    // SAFETY: the function is called during the call only, with what it is given here.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut ranges).cast()) };
    ranges
}

/// Whether a library that the program unloads is unloaded by our `dlclose`: so it is where ours is the
/// first in the program, but not where this library was loaded with a plug-in.
pub(crate) fn sees_unloading() -> bool {
    finds_ours(c"dlclose")
}

/// Whether a lookup of a function by its name in the program finds this library's; also if it finds none.
pub(crate) fn finds_ours(name: &CStr) -> bool {
    // SAFETY: looks up a name. All zeros are a valid structure, which the calls fill.
    unsafe {
        let found = libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr());
        let base = |address: *const c_void| {
            let mut info: libc::Dl_info = core::mem::zeroed();
            if libc::dladdr(address, &raw mut info) == 0 { core::ptr::null_mut() } else { info.dli_fbase }
        };
        // Our own functions may be found to be others' of the same names, but not this one.
        found.is_null() || base(found) == base(finds_ours as *const c_void)
    }
}

/// Keeps this library in memory, and its clients' calls valid, when what has loaded it is unloaded.
pub(crate) fn stay_loaded() {
    if let Some(path) = own_path().and_then(|path| std::ffi::CString::new(path).ok()) {
        // SAFETY: opens what is open already.
        unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD | libc::RTLD_NODELETE) };
    }
}

/// The path of the shared library that this is; nothing where it is part of the program.
pub(crate) fn own_path() -> Option<String> {
    let own = find_code(own_path as *const () as u64).path;
    let program = std::fs::read_link("/proc/self/exe").unwrap_or_default();
    (!own.is_empty() && *own != *program.to_string_lossy()).then_some(own)
}

/// A number by which to tell the library at an address from others that stand there at other times;
/// 0 where the C library does not tell.
#[cfg(all(target_arch = "x86_64", target_os = "linux", target_env = "gnu"))]
pub(crate) fn library_mark(address: u64) -> u32 {
    /// The start of glibc's `struct dl_find_object` (`dlfcn.h`), and room for the rest.
    #[repr(C)]
    struct Found {
        flags: u64,
        start: u64,
        end: u64,
        link_map: *const LinkMap,
        rest: [u64; 8],
    }
    /// The start of glibc's `struct link_map` (`link.h`).
    #[repr(C)]
    struct LinkMap {
        base: u64,
        name: *const c_char,
    }
    type Find = unsafe extern "C" fn(u64, *mut Found) -> c_int;
    static FIND: std::sync::OnceLock<Option<Find>> = std::sync::OnceLock::new();
    let find = FIND.get_or_init(|| {
        // SAFETY: looks up a name; the function of that name has this type.
        unsafe {
            let found = libc::dlsym(libc::RTLD_DEFAULT, c"_dl_find_object".as_ptr());
            (!found.is_null()).then(|| core::mem::transmute::<*mut c_void, Find>(found))
        }
    });
    let Some(find) = find else { return 0 };
    // SAFETY: the call fills what it is given where it returns 0; a library whose code runs is loaded.
    unsafe {
        let mut found = Found { flags: 0, start: 0, end: 0, link_map: core::ptr::null(), rest: [0; 8] };
        if find(address, &raw mut found) != 0 || found.link_map.is_null() {
            return 0;
        }
        crate::table::hash(&[c_text((*found.link_map).name), &found.start.to_le_bytes()]) as u32
    }
}

/// See above; where the C library does not tell.
#[cfg(not(all(target_arch = "x86_64", target_os = "linux", target_env = "gnu")))]
pub(crate) fn library_mark(_: u64) -> u32 {
    0
}

/// The path of the file that is mapped at an address, as the kernel has it; nothing for none.
fn mapped_path(address: u64) -> Option<String> {
    let maps = std::fs::read("/proc/self/maps").ok()?;
    let text = String::from_utf8_lossy(&maps);
    let line = text.lines().find(|line| {
        let range = line.split(' ').next().and_then(|range| range.split_once('-'));
        let range = range.map(|(start, end)| (u64::from_str_radix(start, 16), u64::from_str_radix(end, 16)));
        matches!(range, Some((Ok(start), Ok(end))) if start <= address && address < end)
    })?;
    let path = &line[line.find('/')?..];
    Some(path.strip_suffix(" (deleted)").unwrap_or(path).to_owned())
}

/// Finds the module that holds the code at an address.
pub(crate) fn find_code(address: u64) -> Code {
    struct Search {
        address: u64,
        found: Code,
    }
    unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _: usize, search: *mut c_void) -> c_int {
        // SAFETY: both are valid for the call, by the contract of `dl_iterate_phdr`.
        let (info, search) = unsafe { (&*info, &mut *search.cast::<Search>()) };
        // SAFETY: as many headers as it says.
        let headers = unsafe { core::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum as usize) };
        let stated = search.address.wrapping_sub(info.dlpi_addr);
        let holds = |header: &&libc::Elf64_Phdr| {
            header.p_type == libc::PT_LOAD && stated.wrapping_sub(header.p_vaddr) < header.p_memsz
        };
        if !headers.iter().any(|header| holds(&header)) {
            return 0;
        }
        // SAFETY: the loader's names are C texts.
        let name = unsafe { c_text(info.dlpi_name) };
        search.found.path = match name {
            b"" => std::fs::read_link("/proc/self/exe").unwrap_or_default().to_string_lossy().into_owned(),
            name => String::from_utf8_lossy(name).into_owned(),
        };
        search.found.stated_address = stated;
        for header in headers.iter().filter(|header| header.p_type == libc::PT_NOTE) {
            let start = (info.dlpi_addr + header.p_vaddr) as *const u8;
            // SAFETY: the notes of a loaded module are mapped.
            let notes = unsafe { core::slice::from_raw_parts(start, header.p_memsz as usize) };
            if let Some(id) = build_id(notes) {
                let length = id.len().min(32);
                search.found.build_id[..length].copy_from_slice(&id[..length]);
                search.found.build_id_length = length as u32;
            }
        }
        1
    }
    let mut search = Search { address, found: Code { stated_address: address, ..Code::default() } };
    // SAFETY: the function is called during the call only, with what it is given here.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut search).cast()) };
    // The program may have changed its directory since the library was loaded.
    if !search.found.path.starts_with('/')
        && let Some(path) = mapped_path(address)
    {
        search.found.path = path;
    }
    search.found
}

/// The build id among ELF notes (gABI, "Note Section"): name `GNU`, type 3.
fn build_id(mut notes: &[u8]) -> Option<&[u8]> {
    let word = |notes: &[u8], at: usize| {
        let bytes = notes.get(at..at + 4)?;
        Some(u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as usize)
    };
    loop {
        let (name, value, kind) = (word(notes, 0)?, word(notes, 4)?, word(notes, 8)?);
        let value_at = 12 + name.next_multiple_of(4);
        if kind == 3 && notes.get(12..12 + name) == Some(b"GNU\0") {
            return notes.get(value_at..value_at + value);
        }
        notes = notes.get(value_at + value.next_multiple_of(4)..)?;
    }
}

/// The dynamic symbol at an address, or nothing.
pub(crate) fn symbol_name(address: u64) -> Vec<u8> {
    // SAFETY: all zeros are a valid structure; the call fills it and the names are C texts.
    unsafe {
        let mut info: libc::Dl_info = core::mem::zeroed();
        match libc::dladdr(address as *const c_void, &raw mut info) {
            0 => Vec::new(),
            _ => c_text(info.dli_sname).to_vec(),
        }
    }
}

/// A point in time as the calendar of the machine's time zone shows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LocalTime {
    /// Years since 1900.
    pub(crate) years: i32,
    /// Months since January, 0 to 11.
    pub(crate) month: i32,
    /// Day of the month, from 1.
    pub(crate) day: i32,
    /// Days since Sunday, 0 to 6.
    pub(crate) weekday: i32,
    /// 0 to 23.
    pub(crate) hour: i32,
    /// 0 to 59.
    pub(crate) minute: i32,
    /// 0 to 60, for leap seconds.
    pub(crate) second: i32,
}

/// What the calendar shows at that many seconds after 1970 in UTC; nothing where the year does not
/// fit the C library's type.
pub(crate) fn local_time(unix_s: i64) -> Option<LocalTime> {
    let time = libc::time_t::try_from(unix_s).ok()?;
    // SAFETY: all fields of `tm` are integers or a pointer, for which zero is a value.
    let mut parts: libc::tm = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to locals that live through the call, and `localtime_r` keeps
    // neither; unlike `localtime` it has no buffer that threads share.
    let done = unsafe { libc::localtime_r(&raw const time, &raw mut parts) };
    (!done.is_null()).then_some(LocalTime {
        years: parts.tm_year,
        month: parts.tm_mon,
        day: parts.tm_mday,
        weekday: parts.tm_wday,
        hour: parts.tm_hour,
        minute: parts.tm_min,
        second: parts.tm_sec,
    })
}
