//! Calls that are made again, or go on, after a signal without effect has ended them.

use std::fs;
use std::os::unix::fs::FileTypeExt as _;
use std::path::PathBuf;

use crate::sys;
use crate::tracer::partial_vector::PartialVector;
use treering_proc::status;

/// How a call that is made again differs from the one that the program made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Again {
    /// It is the same.
    Whole,
    /// The same, and the kernel says of one that has been made before that it is under way.
    Connecting,
    /// It is for the rest: so many bytes, or other things, are done.
    Rest(u64),
    /// It is for the next piece of a vector.
    Vector(PartialVector),
}

/// The size of `struct mmsghdr`.
const MESSAGE: u64 = 64;

/// `SPLICE_F_NONBLOCK`, of `splice(2)`.
const ONLY_WHAT_IS_THERE: u64 = 2;

/// Says that the flag above is not the program's. The kernel does not look at this bit.
const FLAG_IS_OURS: u64 = 1 << 32;

/// `IORING_ENTER_GETEVENTS`, of `io_uring_enter(2)`.
const WAITS_FOR_COMPLETION: u64 = 1;

/// `ERESTARTSYS`: the kernel's own number for a call that goes on after a signal.
const GOES_ON: i64 = -512;

impl Again {
    /// The call to be made after one that was interrupted; nothing if that had ended by itself.
    pub(crate) fn after(tid: i32, r: &libc::user_regs_struct) -> Option<Self> {
        let (result, number) = (r.rax as i64, r.orig_rax as i64);
        match number {
            libc::SYS_connect if result == i64::from(-libc::EINTR) => return Some(Self::Connecting),
            _ if result == i64::from(-libc::EINTR) => return Some(Self::Whole),
            _ if result <= 0 => return None,
            _ => {}
        }
        if let Some(vector) = PartialVector::of(tid, r) {
            return Some(Self::Vector(vector));
        }
        let receives_all = r.r10 & libc::MSG_WAITALL as u64 != 0;
        let is_interrupted = match number {
            libc::SYS_write | libc::SYS_sendto => r.rax < r.rdx,
            // The bytes that were looked at are still there.
            libc::SYS_recvfrom if receives_all && r.r10 & libc::MSG_PEEK as u64 != 0 => {
                return (r.rax < r.rdx).then_some(Self::Whole);
            }
            libc::SYS_recvfrom => r.rax < r.rdx && receives_all,
            libc::SYS_read | libc::SYS_pread64 => r.rax < r.rdx && is_endless(tid, r.rdi),
            libc::SYS_sendmmsg => r.rax < r.rdx,
            libc::SYS_recvmmsg => {
                let waits_for_all = r.r10 & (libc::MSG_WAITFORONE | libc::MSG_DONTWAIT) as u64 == 0;
                r.rax < r.rdx && waits_for_all && !is_time_over(tid, r.r8)
            }
            libc::SYS_getrandom => r.rax < r.rsi,
            // At the end of the file, another call sends nothing.
            libc::SYS_sendfile => r.rax < r.r10,
            libc::SYS_copy_file_range | libc::SYS_splice => r.rax < r.r8,
            // All is submitted, and perhaps not waited for.
            libc::SYS_io_uring_enter => r.rax == r.rsi && r.rdx > 0 && r.r10 & WAITS_FOR_COMPLETION != 0,
            _ => false,
        };
        is_interrupted.then_some(Self::Rest(r.rax))
    }

    /// Sets the arguments for the call.
    pub(crate) fn begin(self, tid: i32, r: &mut libc::user_regs_struct) {
        match self {
            Self::Whole | Self::Connecting => {}
            Self::Vector(vector) => vector.begin(tid, r),
            Self::Rest(done) => {
                skip(r, done.cast_signed());
                // A part of a pipe's bytes is what is there. A call waits for more only if it has none.
                if r.orig_rax as i64 == libc::SYS_splice && r.r9 & ONLY_WHAT_IS_THERE == 0 {
                    r.r9 |= ONLY_WHAT_IS_THERE | FLAG_IS_OURS;
                }
            }
        }
    }

    /// Sets the program's arguments and the result of both calls together. Returns whether anything changed.
    pub(crate) fn end(self, tid: i32, r: &mut libc::user_regs_struct) -> bool {
        match self {
            Self::Whole => return false,
            Self::Connecting if r.rax as i64 == i64::from(-libc::EALREADY) => {
                r.rax = i64::from(-libc::EINPROGRESS) as u64;
            }
            Self::Connecting => return false,
            Self::Vector(vector) => _ = vector.end(tid, r),
            Self::Rest(done) => {
                skip(r, -done.cast_signed());
                if r.orig_rax as i64 == libc::SYS_splice && r.r9 & FLAG_IS_OURS != 0 {
                    r.r9 &= !(ONLY_WHAT_IS_THERE | FLAG_IS_OURS);
                }
                r.rax = done + u64::try_from(r.rax as i64).unwrap_or(0);
            }
        }
        true
    }

    /// Whether a call has ended only with the error that the interruption of the one before has left at the socket: the
    /// kernel keeps what ends `recvmmsg(2)` behind its first message for the next call.
    pub(crate) fn has_former_error(self, r: &libc::user_regs_struct) -> bool {
        let result = r.rax as i64;
        matches!(self, Self::Rest(_))
            && r.orig_rax as i64 == libc::SYS_recvmmsg
            && [GOES_ON, i64::from(-libc::EINTR)].contains(&result)
    }
}

/// Moves the arguments of a call behind what is done, or back.
fn skip(r: &mut libc::user_regs_struct, done: i64) {
    let more = |argument: &mut u64, by: i64| *argument = argument.wrapping_add_signed(by);
    match r.orig_rax as i64 {
        libc::SYS_sendfile => more(&mut r.r10, -done),
        libc::SYS_splice | libc::SYS_copy_file_range => more(&mut r.r8, -done),
        libc::SYS_io_uring_enter => more(&mut r.rsi, -done),
        libc::SYS_getrandom => {
            more(&mut r.rdi, done);
            more(&mut r.rsi, -done);
        }
        libc::SYS_sendmmsg | libc::SYS_recvmmsg => {
            more(&mut r.rsi, done * MESSAGE.cast_signed());
            more(&mut r.rdx, -done);
        }
        number => {
            more(&mut r.rsi, done);
            more(&mut r.rdx, -done);
            if number == libc::SYS_pread64 {
                more(&mut r.r10, done);
            }
        }
    }
}

/// Whether a descriptor is a device that always has more bytes, and looks for signals between them.
pub(crate) fn is_endless(tid: i32, descriptor: u64) -> bool {
    let path = PathBuf::from(format!("/proc/{tid}/fd/{}", descriptor as i32));
    let is_device = || fs::metadata(&path).is_ok_and(|file| file.file_type().is_char_device());
    let device = is_device().then(|| fs::read_link(&path).ok()).flatten();
    const ENDLESS: [&str; 4] = ["/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];
    device.is_some_and(|device| ENDLESS.iter().any(|name| device.as_os_str() == *name))
}

/// Whether the time that a call of `recvmmsg(2)` may take is over: it leaves there how much is left.
fn is_time_over(tid: i32, place: u64) -> bool {
    let mut left = [0; 16];
    place != 0 && sys::read_memory(tid, place, &mut left) == left.len() && left == [0; 16]
}

/// Whether a process may write files of any size. Another call would get the signal of a process that may not.
pub(crate) fn may_write_any_size(tid: i32) -> bool {
    let limits = fs::read_to_string(format!("/proc/{}/limits", status::process_of(tid))).unwrap_or_default();
    let line = limits.lines().find_map(|line| line.strip_prefix("Max file size"));
    line.is_some_and(|line| line.split_whitespace().next() == Some("unlimited"))
}

/// Whether a descriptor only reads, as one end of a pipe.
pub(crate) fn is_read_end(tid: i32, descriptor: u64) -> bool {
    let text = fs::read_to_string(format!("/proc/{tid}/fdinfo/{}", descriptor as i32)).unwrap_or_default();
    let flags = text.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|flags| i32::from_str_radix(flags.trim(), 8).ok());
    flags.is_some_and(|flags| flags & libc::O_ACCMODE == libc::O_RDONLY)
}
