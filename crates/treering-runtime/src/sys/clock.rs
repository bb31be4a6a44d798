//! Clocks: the processor's counter, the kernel's clocks, processor time; and the calendar of the machine's time zone.

use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, Ordering};

use treering_events::CODE;

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

/// The owner of the processor time.
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

/// The calendar's date at that many seconds after 1970 in UTC; nothing where the year does not
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
