//! System calls that wait, and that a signal ends although the program ignores it.
//!
//! The kernel reports each signal of a traced thread, also one that it would have discarded otherwise, and a thread that
//! waits in a system call is woken for that. Most calls then go on by themselves. Some end with `EINTR` (`signal(7)`,
//! "Interruption of system calls and library functions by stop signals" lists them): these are made again. Some end with a
//! part of what they were to do, as a large `write`: the rest is done by other calls. A call that has waited for longer
//! than its time since it was first interrupted has timed out.

use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::sys::{self, Registers};
use crate::tracer::repeated_call::{Again, may_write_any_size};
use crate::tracer::signal::is_caught;
use crate::tracer::state::Tracer;
use crate::tracer::thread::{Call, State};
use treering_proc::status;

/// Signals that are ignored unless the program asks for something else.
const IGNORED: [i32; 4] = [libc::SIGCHLD, libc::SIGCONT, libc::SIGURG, libc::SIGWINCH];

/// The length of the instruction `syscall`.
const SYSTEM_CALL: u64 = 2;

/// How long a call is begun anew.
const ANEW: Duration = Duration::from_secs(10);

/// The note of a run in which a call has ended with a part.
pub(crate) const PART_WAS_LEFT: &str = "a signal that the program ignores, or attaching or detaching, ended a system \
    call with a part of what the call was to transfer; alone, the call may have transferred the rest";

/// How a call waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Wait {
    /// How long, if not for ever.
    time: Option<Duration>,
    /// The result when that time is over.
    timed_out: i32,
}

impl Tracer {
    /// An ignored signal is about to be discarded. If it has ended a call that would have gone on waiting, the call is
    /// made again. Returns whether the thread was resumed.
    pub(crate) fn goes_on_waiting(&mut self, tid: i32, signal: i32) -> io::Result<bool> {
        let mut registers = sys::registers(tid)?;
        let Some(again) = Again::after(tid, &registers.0) else { return Ok(false) };
        if !is_ignored(tid, signal) || is_any_caught(tid) {
            return Ok(false);
        }
        let Some(wait) = wait_of(tid, &registers) else { return Ok(false) };
        let Some(thread) = self.threads.get_mut(&tid) else { return Ok(false) };
        let is_of_pipe = registers.0.orig_rax as i64 == libc::SYS_vmsplice;
        if matches!(again, Again::Vector(_)) && (thread.own_rules.filters || is_of_pipe) {
            // The thread's filter may refuse the other call; no other call takes from a pipe only what is there.
            self.has_left_part = true;
            return Ok(false);
        }
        let ends = thread.waits_until.take().unwrap_or_else(|| Some(Instant::now() + wait.time?));
        if ends.is_some_and(|ends| ends <= Instant::now()) {
            if let Again::Whole | Again::Connecting = again
                && (registers.0.rax as i64) < 0
            {
                registers.0.rax = i64::from(wait.timed_out) as u64;
                sys::set_registers(tid, &registers)?;
            }
            self.resume(tid)?;
            return Ok(true);
        }
        thread.waits_until = Some(ends);
        self.make_again(tid, registers, again)?;
        Ok(true)
    }

    /// Has a thread make a call again that has ended.
    fn make_again(&mut self, tid: i32, mut registers: Registers, again: Again) -> io::Result<()> {
        let r = &mut registers.0;
        again.begin(tid, r);
        (r.rax, r.rip, r.orig_rax) = (r.orig_rax, r.rip - SYSTEM_CALL, u64::MAX);
        sys::set_registers(tid, &registers)?;
        self.set_state(tid, State::InCall(Call::Waits { is_entered: false, again }));
        sys::resume_to_call(tid, 0)
    }

    /// A signal has come before a call was made again: the thread is put behind the interrupted one.
    pub(crate) fn take_call_back(&mut self, tid: i32) -> io::Result<()> {
        let Some(thread) = self.threads.get_mut(&tid) else { return Ok(()) };
        let State::InCall(Call::Waits { is_entered: false, again }) = thread.state else { return Ok(()) };
        thread.state = State::Running;
        let mut registers = sys::registers(tid)?;
        let r = &mut registers.0;
        (r.orig_rax, r.rip, r.rax) = (r.rax, r.rip + SYSTEM_CALL, i64::from(-libc::EINTR) as u64);
        again.end(tid, r);
        sys::set_registers(tid, &registers)
    }

    /// A call that was made again begins or ends. Returns whether it goes on.
    pub(crate) fn waits_on(&mut self, tid: i32, is_entered: bool, again: Again) -> io::Result<bool> {
        let Some(thread) = self.threads.get_mut(&tid) else { return Ok(false) };
        if !is_entered {
            thread.state = State::InCall(Call::Waits { is_entered: true, again });
            sys::resume_to_call(tid, 0)?;
            return Ok(true);
        }
        let mut registers = sys::registers(tid)?;
        let has_former_error = again.has_former_error(&registers.0) && !is_any_pending(tid);
        let is_piece_done = match again {
            Again::Vector(vector) => vector.end(tid, &mut registers.0),
            _ => false,
        };
        // The end of a vector's piece has been set already.
        let has_changed = matches!(again, Again::Vector(_)) || again.end(tid, &mut registers.0);
        if (has_former_error || is_piece_done)
            && let Some(next) = Again::after(tid, &registers.0)
        {
            self.make_again(tid, registers, next)?;
            return Ok(true);
        }
        if has_changed {
            sys::set_registers(tid, &registers)?;
        }
        if Again::after(tid, &registers.0).is_none() || !is_any_pending(tid) {
            thread.waits_until = None;
        }
        Ok(false)
    }
}

/// Has a call go on that ended because the tracer stopped its thread, to attach to it or to leave it. Its whole time begins
/// again: it is unknown how long it had waited. Returns whether the call has ended with a part, and cannot go on.
pub(crate) fn go_on_after_stop(tid: i32, registers: &mut Registers) -> bool {
    /// `ERESTARTNOHAND`: the kernel makes the call again, unless a handler runs before that.
    const AGAIN: i64 = -514;
    let is_call = registers.0.orig_rax as i64 >= 0;
    let Some(again) = Again::after(tid, &registers.0).filter(|_| is_call && !is_any_caught(tid)) else {
        return false;
    };
    if wait_of(tid, registers).is_none() {
        return false;
    }
    let is_without_part = (registers.0.rax as i64) < 0 && matches!(again, Again::Whole | Again::Connecting);
    if is_without_part {
        registers.0.rax = AGAIN.cast_unsigned();
    }
    !is_without_part
}

/// Whether a signal has no effect on the program.
fn is_ignored(tid: i32, signal: i32) -> bool {
    let is_by_default = IGNORED.contains(&signal) && !is_caught(tid, signal);
    is_by_default || status::has_signal(tid, "SigIgn", signal)
}

/// Whether a signal is about to be delivered.
fn is_any_pending(tid: i32) -> bool {
    let mask = |name: &str| status::signals(tid, name);
    (mask("SigPnd") | mask("ShdPnd")) & !mask("SigBlk") != 0
}

/// Whether a handler is about to run for another signal, which ends the call as well.
fn is_any_caught(tid: i32) -> bool {
    let mask = |name: &str| status::signals(tid, name);
    (mask("SigPnd") | mask("ShdPnd")) & mask("SigCgt") & !mask("SigBlk") != 0
}

/// How the interrupted call of a thread waits; nothing if it is none that ignored signals end.
fn wait_of(tid: i32, registers: &Registers) -> Option<Wait> {
    let r = &registers.0;
    let milliseconds = |time: u64| u64::try_from(time as i32).ok().map(Duration::from_millis);
    let at = |place: u64| time_at(tid, place);
    let of_socket = |socket: u64, option| sys::socket_time(status::process_of(tid), socket as i32, option);
    let receiving = || of_socket(r.rdi, libc::SO_RCVTIMEO);
    let sending = || of_socket(r.rdi, libc::SO_SNDTIMEO);
    let descriptor = |number: u64| PathBuf::from(format!("/proc/{tid}/fd/{}", number as i32));
    let is_local = || family_at(tid, r.rsi) == Some(libc::AF_UNIX);
    let (time, timed_out) = match r.orig_rax as i64 {
        // A part is what there is room for, or what the process may write, and the rest would be an error.
        libc::SYS_write | libc::SYS_writev | libc::SYS_pwritev2
            if r.rax as i64 > 0 && descriptor(r.rdi).is_file() =>
        {
            return None;
        }
        // Between the parts of a file, these look for signals.
        libc::SYS_sendfile if r.rax as i64 > 0 && descriptor(r.rdi).is_file() && !may_write_any_size(tid) => {
            return None;
        }
        libc::SYS_copy_file_range | libc::SYS_splice
            if r.rax as i64 > 0 && descriptor(r.rdx).is_file() && !may_write_any_size(tid) =>
        {
            return None;
        }
        // The next message would be another one.
        libc::SYS_recvfrom | libc::SYS_recvmsg | libc::SYS_sendmsg
            if r.rax as i64 > 0 && !sys::is_stream(status::process_of(tid), r.rdi as i32) =>
        {
            return None;
        }
        libc::SYS_epoll_wait | libc::SYS_epoll_pwait => (milliseconds(r.r10), 0),
        libc::SYS_epoll_pwait2 => (at(r.r10), 0),
        libc::SYS_rt_sigtimedwait => (at(r.rdx), -libc::EAGAIN),
        libc::SYS_semop => (None, -libc::EAGAIN),
        libc::SYS_semtimedop => (at(r.r10), -libc::EAGAIN),
        libc::SYS_io_getevents => (at(r.r8), 0),
        libc::SYS_io_uring_enter => (completion_time(tid, r), -libc::ETIME),
        libc::SYS_getrandom | libc::SYS_pread64 | libc::SYS_copy_file_range | libc::SYS_vmsplice => {
            (None, -libc::EINTR)
        }
        // It begins anew each time, and must end although signals keep coming.
        libc::SYS_fallocate => (Some(ANEW), -libc::EINTR),
        libc::SYS_splice => (receiving().or_else(|| of_socket(r.rdx, libc::SO_SNDTIMEO)), -libc::EAGAIN),
        libc::SYS_accept
        | libc::SYS_accept4
        | libc::SYS_recvfrom
        | libc::SYS_recvmsg
        | libc::SYS_recvmmsg
        | libc::SYS_read
        | libc::SYS_readv
        | libc::SYS_preadv2 => (receiving(), -libc::EAGAIN),
        libc::SYS_sendto
        | libc::SYS_sendmsg
        | libc::SYS_sendmmsg
        | libc::SYS_sendfile
        | libc::SYS_write
        | libc::SYS_writev
        | libc::SYS_pwritev2 => (sending(), -libc::EAGAIN),
        libc::SYS_connect if is_local() => (sending(), -libc::EAGAIN),
        libc::SYS_connect => (sending(), -libc::EINPROGRESS),
        _ => return None,
    };
    Some(Wait { time, timed_out })
}

/// The family of the socket address in a thread's memory.
fn family_at(tid: i32, place: u64) -> Option<i32> {
    let mut bytes = [0; 2];
    (sys::read_memory(tid, place, &mut bytes) == bytes.len()).then(|| u16::from_ne_bytes(bytes).into())
}

/// The time for which a call of `io_uring_enter` waits, if it has one and it is no moment.
fn completion_time(tid: i32, r: &libc::user_regs_struct) -> Option<Duration> {
    const HAS_TIME: u64 = 1 << 3;
    const IS_MOMENT: u64 = 1 << 5;
    /// Where `struct io_uring_getevents_arg` has the address of the time.
    const TIME_AT: u64 = 16;
    let mut place = [0; 8];
    let is_said = r.r10 & (HAS_TIME | IS_MOMENT) == HAS_TIME
        && sys::read_memory(tid, r.r8.wrapping_add(TIME_AT), &mut place) == place.len();
    is_said.then(|| time_at(tid, u64::from_ne_bytes(place))).flatten()
}

/// The `timespec` in a thread's memory.
fn time_at(tid: i32, place: u64) -> Option<Duration> {
    let mut bytes = [0; 16];
    if place == 0 || sys::read_memory(tid, place, &mut bytes) != bytes.len() {
        return None;
    }
    let (words, _) = bytes.as_chunks();
    let [seconds, nanoseconds] = [words[0], words[1]].map(u64::from_le_bytes);
    Some(Duration::new(seconds, nanoseconds.try_into().ok()?))
}
