//! System calls that wait, and that a signal ends although the program ignores it.
//!
//! The kernel reports each signal of a traced thread, also one that it would have discarded otherwise, and a thread that
//! waits in a system call is woken for that. Most calls then go on by themselves. Some end with `EINTR` (`signal(7)`,
//! "Interruption of system calls and library functions by stop signals" lists them): these are made again. A call that
//! has waited for longer than its time since it was first interrupted has timed out.

use std::io;
use std::time::{Duration, Instant};

use crate::sys::{self, Registers};
use crate::tracer::event_loop::Tracer;
use crate::tracer::signal::is_caught;
use crate::tracer::thread::{Call, State};
use treering_proc::status;

/// Signals that are ignored unless the program asks for something else.
const IGNORED: [i32; 4] = [libc::SIGCHLD, libc::SIGCONT, libc::SIGURG, libc::SIGWINCH];

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
        let r = &mut registers.0;
        if r.rax as i64 != i64::from(-libc::EINTR) || !is_ignored(tid, signal) || is_any_caught(tid) {
            return Ok(false);
        }
        let Some(wait) = wait_of(tid, &registers) else { return Ok(false) };
        let Some(thread) = self.threads.get_mut(&tid) else { return Ok(false) };
        let ends = thread.waits_until.take().unwrap_or_else(|| Some(Instant::now() + wait.time?));
        if ends.is_some_and(|ends| ends <= Instant::now()) {
            registers.0.rax = i64::from(wait.timed_out) as u64;
            sys::set_registers(tid, &registers)?;
            self.resume(tid)?;
            return Ok(true);
        }
        const SYSTEM_CALL: u64 = 2;
        let r = &mut registers.0;
        (r.rax, r.rip, r.orig_rax) = (r.orig_rax, r.rip - SYSTEM_CALL, u64::MAX);
        sys::set_registers(tid, &registers)?;
        thread.waits_until = Some(ends);
        thread.state = State::InCall(Call::Waits { is_entered: false });
        sys::resume_to_call(tid, 0)?;
        Ok(true)
    }

    /// A call that was made again begins or ends. Returns whether it goes on.
    pub(crate) fn waits_on(&mut self, tid: i32, is_entered: bool) -> io::Result<bool> {
        let has_ended = is_entered && sys::registers(tid)?.0.rax as i64 != i64::from(-libc::EINTR);
        let Some(thread) = self.threads.get_mut(&tid) else { return Ok(false) };
        if has_ended {
            thread.waits_until = None;
        }
        if !is_entered {
            thread.state = State::InCall(Call::Waits { is_entered: true });
            sys::resume_to_call(tid, 0)?;
        }
        Ok(!is_entered)
    }
}

/// Whether a signal has no effect on the program.
fn is_ignored(tid: i32, signal: i32) -> bool {
    let is_by_default = IGNORED.contains(&signal) && !is_caught(tid, signal);
    is_by_default || status::has_signal(tid, "SigIgn", signal)
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
    let of_socket = |option| sys::socket_time(status::process_of(tid), r.rdi as i32, option);
    let (receiving, sending) = (|| of_socket(libc::SO_RCVTIMEO), || of_socket(libc::SO_SNDTIMEO));
    let (time, timed_out) = match r.orig_rax as i64 {
        libc::SYS_epoll_wait | libc::SYS_epoll_pwait => (milliseconds(r.r10), 0),
        libc::SYS_epoll_pwait2 => (at(r.r10), 0),
        libc::SYS_rt_sigtimedwait => (at(r.rdx), -libc::EAGAIN),
        libc::SYS_semop => (None, -libc::EAGAIN),
        libc::SYS_semtimedop => (at(r.r10), -libc::EAGAIN),
        libc::SYS_io_getevents => (at(r.r8), 0),
        libc::SYS_io_uring_enter => (None, -libc::ETIME),
        libc::SYS_accept
        | libc::SYS_accept4
        | libc::SYS_recvfrom
        | libc::SYS_recvmsg
        | libc::SYS_recvmmsg
        | libc::SYS_read
        | libc::SYS_readv => (receiving(), -libc::EAGAIN),
        libc::SYS_sendto | libc::SYS_sendmsg | libc::SYS_sendmmsg | libc::SYS_write | libc::SYS_writev => {
            (sending(), -libc::EAGAIN)
        }
        libc::SYS_connect => (sending(), -libc::EINPROGRESS),
        _ => return None,
    };
    Some(Wait { time, timed_out })
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
