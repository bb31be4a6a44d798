//! System calls whose answers are held: about the time, and for random numbers. See [`crate::surroundings`].
//!
//! The clock advances by being read and by waiting: a call that waits for as long as it was told sets the clock to the end
//! of its time. A time at which a wait is to end is one of that clock, and the kernel gets the time that is left until then.

use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::surroundings::clock::{beginning, time_value};
use crate::sys::layout::FILTER;
use crate::sys::{self, Registers};
use crate::tracer::opened_code::path_at;
use crate::tracer::syscall::{again, skip};
use crate::tracer::thread::{Call, HeldCall, Verdict};
use crate::tracer::thread_stop::ThreadStop;
use treering_proc::status;

/// The most bytes that one call of `getrandom` gives.
const MOST_RANDOM: u64 = (1 << 25) - 1;
/// The flags of `getrandom`.
const RANDOM_FLAGS: u64 = 7;
/// The flags by which it may give bytes that are no secret, and the most bytes that are asked for with them to seed hashes and
/// to mark blocks of memory, as C libraries and runtimes do in every program.
const FOR_NO_KEYS: u64 = (libc::GRND_NONBLOCK | libc::GRND_INSECURE) as u64;
const LARGEST_SEED: u64 = 24;
/// A clock tick of `times`, in nanoseconds.
const TICK: u64 = 10_000_000;
const SECOND: u64 = 1_000_000_000;

/// The operation of `futex`, without its flags, and the flag by which its time is one of the date.
const FUTEX_OPERATION: u64 = 0x7f;
const FUTEX_BY_DATE: u64 = 0x100;

/// A wait of at most some time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Wait {
    /// The nanoseconds until it ends.
    time: u64,
    /// The result when that time is over.
    timed_out: i32,
    /// How the kernel is told that time, if not as the program does.
    told: Option<Told>,
}

/// How the kernel is told the end of a wait that the program ends at a time of the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    /// By the time that is left.
    Sleep,
    /// By the date.
    Futex,
}

impl ThreadStop<'_, '_> {
    /// Answers a call in the kernel's place, or changes what the kernel is told, where surroundings are held. Returns
    /// nothing for other calls.
    pub(crate) fn held_call(&mut self, registers: &mut Registers) -> io::Result<Option<Verdict>> {
        let number = registers.0.orig_rax as i64;
        if matches!(number, libc::SYS_open | libc::SYS_openat) {
            return self.open_held(registers);
        }
        if self.space.surroundings.held.is_none() {
            return Ok(None);
        }
        if answers(number) && self.release_for_call(registers)? {
            return again(registers, self.stopped).map(Some);
        }
        if let Some(answer) = self.held_answer(registers) {
            return skip(registers, answer, self.stopped).map(Some);
        }
        if number == libc::SYS_getrusage {
            return Ok(Some(Verdict::Watch(Call::Held(HeldCall::Usage(registers.0.rsi)))));
        }
        self.hold_wait(registers)
    }

    /// The result of a call about the time or for random numbers; nothing if the kernel is to give it.
    fn held_answer(&mut self, registers: &Registers) -> Option<i32> {
        let r = &registers.0;
        let held = self.space.surroundings.held.as_mut()?;
        let tid = self.stopped.tid;
        let put = |place: u64, bytes: &[u8]| place == 0 || sys::write_memory(tid, place, bytes);
        let (result, is_told) = match r.orig_rax as i64 {
            libc::SYS_getrandom if r.rdx & !RANDOM_FLAGS == 0 => {
                held.is_drawn |= r.rdx & FOR_NO_KEYS == 0 || r.rsi > LARGEST_SEED;
                let bytes = held.random.bytes(r.rsi.min(MOST_RANDOM) as usize);
                (bytes.len() as i32, bytes.is_empty() || sys::write_memory(tid, r.rdi, &bytes))
            }
            libc::SYS_clock_gettime => {
                let time = beginning(r.rdi as i32)? + held.clock.read();
                (0, sys::write_memory(tid, r.rsi, &time_value(time, 1)))
            }
            libc::SYS_gettimeofday => {
                let time = beginning(libc::CLOCK_REALTIME)? + held.clock.read();
                (0, put(r.rdi, &time_value(time, 1000)) && put(r.rsi, &[0; 8]))
            }
            libc::SYS_time => {
                let time = (beginning(libc::CLOCK_REALTIME)? + held.clock.read()) / SECOND;
                (time as i32, put(r.rdi, &time.to_le_bytes()))
            }
            libc::SYS_times => {
                let passed = held.clock.read();
                let ticks = [passed / TICK, 0, 0, 0];
                let up = (beginning(libc::CLOCK_MONOTONIC)? + passed) / TICK;
                (up as i32, put(r.rdi, &ticks.map(u64::to_le_bytes).concat()))
            }
            libc::SYS_getcpu => (0, put(r.rdi, &[0; 4]) && put(r.rsi, &[0; 4])),
            _ => return None,
        };
        Some(if is_told { result } else { -libc::EFAULT })
    }

    /// Watches a wait that may end because its time is over.
    fn hold_wait(&mut self, registers: &mut Registers) -> io::Result<Option<Verdict>> {
        let Some(held) = &self.space.surroundings.held else { return Ok(None) };
        let now = held.clock.now();
        let r = &mut registers.0;
        let arguments = [r.rdi, r.rsi, r.rdx, r.r10, r.r8];
        let wait = wait_of(r.orig_rax as i64, arguments, now, |place| time_at(self.stopped.tid, place));
        let Some(wait) = wait else { return Ok(None) };
        let program = [r.rsi, r.rdx, r.r10];
        let place = r.gs_base + u64::from(FILTER);
        match wait.told {
            None => {}
            Some(Told::Sleep) => (r.rsi, r.rdx) = (0, place),
            Some(Told::Futex) => (r.rsi, r.r10) = (r.rsi | FUTEX_BY_DATE, place),
        }
        if let Some(told) = wait.told {
            let date = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let date = if told == Told::Futex { date } else { Duration::ZERO };
            let until = date.saturating_add(Duration::from_nanos(wait.time)).as_nanos();
            let until = u64::try_from(until).unwrap_or(u64::MAX);
            if !sys::write_memory(self.stopped.tid, place, &time_value(until, 1)) {
                return Ok(Some(Verdict::Refuse("there is no room for the time until which it waits")));
            }
            sys::set_registers(self.stopped.tid, registers)?;
        }
        let until = now.saturating_add(wait.time);
        let held = HeldCall::Wait { until, timed_out: wait.timed_out, program };
        Ok(Some(Verdict::Watch(Call::Held(held))))
    }

    /// A program opens a file for reading: random numbers come from a file of held ones, and what tells of the real machine
    /// is noted.
    fn open_held(&mut self, registers: &mut Registers) -> io::Result<Option<Verdict>> {
        let r = &mut registers.0;
        let program = [r.rdi, r.rsi];
        let is_at = r.orig_rax as i64 == libc::SYS_openat;
        let (name, flags) = if is_at { (r.rsi, r.rdx) } else { (r.rdi, r.rsi) };
        let Some(path) = path_at(self.stopped.tid, name) else { return Ok(None) };
        if self.space.surroundings.level.is_some() && tells_of_processor(&path) {
            self.space.surroundings.note_not_held(format!("it read {}", path.display()));
        }
        let is_random = ["/dev/urandom", "/dev/random"].iter().any(|&random| path == Path::new(random));
        let Some(held) = self.space.surroundings.held.as_mut().filter(|_| is_random) else { return Ok(None) };
        let only_reads = flags & libc::O_ACCMODE as u64 == libc::O_RDONLY as u64;
        let file = held.random_file.as_ref().filter(|_| only_reads && status::shares_names(self.stopped.tid));
        let Some(file) = file else {
            self.space.surroundings.note_not_held(format!("it opened {}", path.display()));
            return Ok(None);
        };
        let mut other = file.path().as_os_str().as_bytes().to_vec();
        other.push(0);
        let place = r.gs_base + u64::from(FILTER);
        if !sys::write_memory(self.stopped.tid, place, &other) {
            return Ok(Some(Verdict::Refuse("there is no room for the name of its random numbers")));
        }
        *(if is_at { &mut r.rsi } else { &mut r.rdi }) = place;
        sys::set_registers(self.stopped.tid, registers)?;
        Ok(Some(Verdict::Watch(Call::Held(HeldCall::Random(program)))))
    }

    /// A watched call has returned.
    pub(crate) fn after_held_call(&mut self, call: HeldCall, registers: &mut Registers) -> io::Result<()> {
        let result = registers.0.rax as i64;
        let Some(held) = &mut self.space.surroundings.held else { return Ok(()) };
        let r = &mut registers.0;
        match call {
            HeldCall::Wait { until, timed_out, program } => {
                [r.rsi, r.rdx, r.r10] = program;
                if result == i64::from(timed_out) {
                    held.clock.reach(until);
                }
            }
            HeldCall::Usage(place) => {
                let times = [time_value(held.clock.read(), 1000), [0; 16]].concat();
                if result == 0 && !sys::write_memory(self.stopped.tid, place, &times) {
                    r.rax = i64::from(-libc::EFAULT) as u64;
                }
            }
            HeldCall::Random(program) => {
                [r.rdi, r.rsi] = program;
                held.is_drawn = true;
                if (-4095..0).contains(&result) {
                    // A program of another user may not open it: it gets what it asked for.
                    held.random_file = None;
                    again(registers, self.stopped)?;
                    return Ok(());
                }
            }
        }
        sys::set_registers(self.stopped.tid, registers)
    }
}

/// Whether a call is answered here, at least mostly.
fn answers(number: i64) -> bool {
    matches!(
        number,
        libc::SYS_getrandom
            | libc::SYS_clock_gettime
            | libc::SYS_gettimeofday
            | libc::SYS_time
            | libc::SYS_times
            | libc::SYS_getcpu
            | libc::SYS_getrusage
    )
}

/// Whether a file tells of the processors of this machine.
fn tells_of_processor(path: &Path) -> bool {
    path == Path::new("/proc/cpuinfo") || path.starts_with("/sys/devices/system/cpu")
}

/// How a call waits, if it waits for at most some time. `now`: the time of the clock. `time` reads the time at an address,
/// whose second word has this unit in nanoseconds.
fn wait_of(
    number: i64,
    [rdi, rsi, rdx, r10, r8]: [u64; 5],
    now: u64,
    time: impl Fn((u64, u64)) -> Option<u64>,
) -> Option<Wait> {
    const NANO: u64 = 1;
    const MICRO: u64 = 1000;
    const ABSOLUTE: u64 = libc::TIMER_ABSTIME as u64;
    let milliseconds = |value: u64| u64::try_from(value as i32).ok().map(|value| value * 1_000_000);
    let left = |clock: i32, place: u64| {
        let ends = time((place, NANO))?.saturating_sub(beginning(clock)?);
        Some(ends.saturating_sub(now))
    };
    let (time, timed_out, told) = match number {
        libc::SYS_nanosleep => (time((rdi, NANO))?, 0, None),
        libc::SYS_clock_nanosleep if rsi & ABSOLUTE != 0 => (left(rdi as i32, rdx)?, 0, Some(Told::Sleep)),
        libc::SYS_clock_nanosleep => (time((rdx, NANO))?, 0, None),
        libc::SYS_poll => (milliseconds(rdx)?, 0, None),
        libc::SYS_ppoll => (time((rdx, NANO))?, 0, None),
        libc::SYS_select => (time((r8, MICRO))?, 0, None),
        libc::SYS_pselect6 => (time((r8, NANO))?, 0, None),
        libc::SYS_epoll_wait | libc::SYS_epoll_pwait => (milliseconds(r10)?, 0, None),
        libc::SYS_epoll_pwait2 => (time((r10, NANO))?, 0, None),
        libc::SYS_rt_sigtimedwait => (time((rdx, NANO))?, -libc::EAGAIN, None),
        libc::SYS_semtimedop => (time((r10, NANO))?, -libc::EAGAIN, None),
        libc::SYS_futex => {
            let clock = if rsi & FUTEX_BY_DATE != 0 { libc::CLOCK_REALTIME } else { libc::CLOCK_MONOTONIC };
            let (time, told) = match (rsi & FUTEX_OPERATION) as i32 {
                libc::FUTEX_WAIT => (time((r10, NANO))?, None),
                libc::FUTEX_LOCK_PI => (left(libc::CLOCK_REALTIME, r10)?, Some(Told::Futex)),
                libc::FUTEX_WAIT_BITSET | libc::FUTEX_WAIT_REQUEUE_PI | FUTEX_LOCK_PI2 => {
                    (left(clock, r10)?, Some(Told::Futex))
                }
                _ => return None,
            };
            (time, -libc::ETIMEDOUT, told)
        }
        _ => return None,
    };
    Some(Wait { time, timed_out, told })
}

/// `FUTEX_LOCK_PI2`, which the C library's header lacks.
const FUTEX_LOCK_PI2: i32 = 13;

/// The time in a thread's memory, in nanoseconds; its second word has the given unit.
fn time_at(tid: i32, (place, unit): (u64, u64)) -> Option<u64> {
    let mut bytes = [0; 16];
    if place == 0 || sys::read_memory(tid, place, &mut bytes) != bytes.len() {
        return None;
    }
    let (words, _) = bytes.as_chunks();
    let [seconds, parts] = [words[0], words[1]].map(i64::from_le_bytes);
    let [seconds, parts] = [u64::try_from(seconds).ok()?, u64::try_from(parts).ok()?];
    Some(seconds.saturating_mul(SECOND).saturating_add(parts.saturating_mul(unit)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_until_a_time_are_passed_on_as_the_time_left() {
        let now = 5 * SECOND;
        let up = beginning(libc::CLOCK_MONOTONIC).unwrap_or(0);
        let ends = move |_| Some(up + 7 * SECOND);
        let sleep = [libc::CLOCK_MONOTONIC as u64, libc::TIMER_ABSTIME as u64, 8, 0, 0];
        let expected = Wait { time: 2 * SECOND, timed_out: 0, told: Some(Told::Sleep) };
        assert_eq!(wait_of(libc::SYS_clock_nanosleep, sleep, now, ends), Some(expected));
        let operation = (libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG) as u64;
        let futex = |now| wait_of(libc::SYS_futex, [0, operation, 0, 8, 0], now, ends);
        let expected = Wait { time: 2 * SECOND, timed_out: -libc::ETIMEDOUT, told: Some(Told::Futex) };
        assert_eq!(futex(now), Some(expected));
        // One that is over.
        assert_eq!(futex(9 * SECOND).map(|wait| wait.time), Some(0));
    }

    #[test]
    fn waits_for_ever_and_calls_that_do_not_wait_are_none() {
        let wait = |number, arguments| {
            let time = |(place, _): (u64, u64)| (place != 0).then_some(SECOND);
            wait_of(number, arguments, 0, time).map(|wait| wait.time)
        };
        assert_eq!(wait(libc::SYS_poll, [0, 0, u32::MAX.into(), 0, 0]), None);
        assert_eq!(wait(libc::SYS_select, [0; 5]), None);
        assert_eq!(wait(libc::SYS_futex, [0, libc::FUTEX_WAKE as u64, 1, 8, 0]), None);
        assert_eq!(wait(libc::SYS_read, [8; 5]), None);
        assert_eq!(wait(libc::SYS_poll, [0, 0, 20, 0, 0]), Some(20_000_000));
    }
}
