//! The rest of a vector of which a call has transferred a part (`writev(2)`, `sendmsg(2)`, `recvmsg(2)`, and the last
//! message of `sendmmsg(2)`).
//!
//! The same call cannot be made again for the rest, as its vector is in the program's memory. So the rest of each piece
//! is transferred by a call of its own, which takes one piece in its arguments.

use crate::sys;
use crate::tracer::repeated_call::{is_endless, is_read_end};

/// A call of which a part is done, with the arguments that the program gave it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PartialVector {
    number: u64,
    /// `rsi`, `rdx`, `r10`, `r8`, `r9`.
    arguments: [u64; 5],
    /// The result of the call.
    result: u64,
    /// How many bytes of the vector were transferred before the piece.
    done: u64,
    /// The length of the piece.
    length: u64,
}

/// As many pieces as a call takes (`IOV_MAX`).
const MOST_PIECES: u64 = 1024;

impl PartialVector {
    /// The next piece of a call that has ended with a part; nothing if all is done, or if it is another call.
    pub(crate) fn of(tid: i32, r: &libc::user_regs_struct) -> Option<Self> {
        let done = match r.orig_rax.cast_signed() {
            libc::SYS_sendmmsg => length_of_last(tid, r)?,
            _ => r.rax,
        };
        let (_, length) = next_piece(&vector(tid, r, r.rax)?, done)?;
        let arguments = [r.rsi, r.rdx, r.r10, r.r8, r.r9];
        Some(Self { number: r.orig_rax, arguments, result: r.rax, done, length })
    }

    /// Sets the number and the arguments of the call for the piece.
    pub(crate) fn begin(self, tid: i32, r: &mut libc::user_regs_struct) {
        // Another thread may have changed the vector meanwhile; then the call transfers nothing.
        let piece = vector(tid, r, self.result).and_then(|vector| next_piece(&vector, self.done));
        let (start, length) = piece.unwrap_or_default();
        let (number, flags) = match r.orig_rax.cast_signed() {
            libc::SYS_sendmsg => (libc::SYS_sendto, r.rdx),
            libc::SYS_sendmmsg => (libc::SYS_sendto, r.r10),
            libc::SYS_recvmsg => (libc::SYS_recvfrom, r.rdx),
            libc::SYS_readv => (libc::SYS_read, 0),
            _ => (libc::SYS_write, 0),
        };
        r.orig_rax = number.cast_unsigned();
        (r.rsi, r.rdx, r.r10, r.r8, r.r9) = (start, length, flags, 0, 0);
    }

    /// Sets the program's arguments, and the result of all calls together. Returns whether the piece was transferred.
    pub(crate) fn end(self, tid: i32, r: &mut libc::user_regs_struct) -> bool {
        let more = u64::try_from(r.rax.cast_signed()).unwrap_or(0);
        r.orig_rax = self.number;
        [r.rsi, r.rdx, r.r10, r.r8, r.r9] = self.arguments;
        r.rax = self.result;
        match self.number.cast_signed() {
            libc::SYS_sendmmsg => {
                let length = (self.done + more) as u32;
                sys::write_memory(tid, last_message(r) + LENGTH_AT, &length.to_ne_bytes());
            }
            _ => r.rax += more,
        }
        more == self.length
    }
}

/// Where `struct mmsghdr` has the length of what was transferred.
const LENGTH_AT: u64 = 56;

/// The last message that a call of `sendmmsg(2)` has begun to send: its result counts it.
fn last_message(r: &libc::user_regs_struct) -> u64 {
    const MESSAGE: u64 = 64;
    r.rsi.wrapping_add(MESSAGE * (r.rax.max(1) - 1))
}

fn length_of_last(tid: i32, r: &libc::user_regs_struct) -> Option<u64> {
    let mut length = [0; 4];
    let place = last_message(r) + LENGTH_AT;
    (sys::read_memory(tid, place, &mut length) == length.len()).then(|| u32::from_ne_bytes(length).into())
}

/// The vector of a call with that result: beginnings and lengths.
fn vector(tid: i32, r: &libc::user_regs_struct, result: u64) -> Option<Vec<(u64, u64)>> {
    /// Where `struct msghdr` has the address of its vector; the number of pieces follows.
    const VECTOR_AT: u64 = 16;
    /// The offset of `preadv2(2)` and `pwritev2(2)` that stands for the file's own.
    const OWN_OFFSET: u64 = u64::MAX;
    let [at, count] = match r.orig_rax.cast_signed() {
        libc::SYS_writev => [r.rsi, r.rdx],
        libc::SYS_pwritev2 if r.r10 == OWN_OFFSET && r.r9 & libc::RWF_NOWAIT as u64 == 0 => [r.rsi, r.rdx],
        libc::SYS_vmsplice if is_read_end(tid, r.rdi) => [r.rsi, r.rdx],
        libc::SYS_readv if is_endless(tid, r.rdi) => [r.rsi, r.rdx],
        libc::SYS_sendmsg => pair(tid, r.rsi.wrapping_add(VECTOR_AT))?,
        libc::SYS_sendmmsg => {
            let last = last_message(&libc::user_regs_struct { rax: result, ..*r });
            pair(tid, last + VECTOR_AT)?
        }
        libc::SYS_recvmsg if r.rdx & libc::MSG_WAITALL as u64 != 0 => {
            pair(tid, r.rsi.wrapping_add(VECTOR_AT))?
        }
        _ => return None,
    };
    (0..count.min(MOST_PIECES))
        .map(|piece| pair(tid, at + 16 * piece).map(|[start, length]| (start, length)))
        .collect()
}

/// Two words in a thread's memory.
fn pair(tid: i32, at: u64) -> Option<[u64; 2]> {
    let mut bytes = [0; 16];
    if sys::read_memory(tid, at, &mut bytes) != bytes.len() {
        return None;
    }
    let (words, _) = bytes.as_chunks();
    Some([words[0], words[1]].map(u64::from_le_bytes))
}

/// The rest of the first piece that is not done.
fn next_piece(vector: &[(u64, u64)], mut done: u64) -> Option<(u64, u64)> {
    for &(start, length) in vector {
        if done < length {
            return Some((start + done, length - done));
        }
        done -= length;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_piece_is_the_rest_of_the_first_that_is_not_done() {
        let vector = [(1000, 10), (2000, 0), (3000, 5)];
        let pieces = [0, 9, 10, 12, 15, 99].map(|done| next_piece(&vector, done));
        let expected = [Some((1000, 10)), Some((1009, 1)), Some((3000, 5)), Some((3002, 3)), None, None];
        assert_eq!(pieces, expected);
    }
}
