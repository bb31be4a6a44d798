//! The data that the kernel gives a program at its beginning, where they are held: the auxiliary vector, on the stack
//! (`getauxval(3)`).

use std::io;

use crate::surroundings::Surroundings;
use crate::sys;

/// Names of entries that the C library's header lacks, and that the kernel added later.
const MINIMAL_SIGNAL_STACK: u64 = 51;
const MORE_CAPABILITIES: [u64; 3] = [libc::AT_HWCAP2, 29, 30];
/// The size of a signal's frame on the largest of today's processors.
const LARGEST_SIGNAL_STACK: u64 = 12_288;

/// Holds the auxiliary vector of a program that stands before its first instruction, with its stack at `stack`.
pub(crate) fn hold_beginning(tid: i32, stack: u64, surroundings: &mut Surroundings) -> io::Result<()> {
    if !surroundings.is_any_held() {
        return Ok(());
    }
    let arguments = word(tid, stack)?;
    let mut at = stack.wrapping_add(8).wrapping_add(arguments.wrapping_mul(8)).wrapping_add(8);
    while word(tid, at)? != 0 {
        at += 8;
    }
    at += 8;
    loop {
        let (name, value) = (word(tid, at)?, word(tid, at + 8)?);
        if name == libc::AT_NULL {
            return Ok(());
        }
        let (held, level) = (surroundings.held.as_mut(), surroundings.level);
        let (name, value) = match (name, held, level) {
            (libc::AT_RANDOM, Some(held), _) => {
                put(tid, value, &held.random.bytes(16))?;
                (name, value)
            }
            // The clock is read by code that the kernel maps into every process, and that differs between kernels.
            (libc::AT_SYSINFO_EHDR, Some(_), _) => (libc::AT_IGNORE, 0),
            (libc::AT_HWCAP, _, Some(level)) => (name, level.hardware_capabilities()),
            (_, _, Some(_)) if MORE_CAPABILITIES.contains(&name) => (name, 0),
            (MINIMAL_SIGNAL_STACK, _, Some(_)) => (name, value.max(LARGEST_SIGNAL_STACK)),
            _ => (name, value),
        };
        put(tid, at, &[name.to_le_bytes(), value.to_le_bytes()].concat())?;
        at += 16;
    }
}

fn word(tid: i32, at: u64) -> io::Result<u64> {
    let mut bytes = [0; 8];
    match sys::read_memory(tid, at, &mut bytes) {
        8 => Ok(u64::from_le_bytes(bytes)),
        _ => Err(io::Error::other("its auxiliary vector cannot be read")),
    }
}

fn put(tid: i32, at: u64, bytes: &[u8]) -> io::Result<()> {
    let is_written = sys::write_memory(tid, at, bytes);
    is_written.then_some(()).ok_or_else(|| io::Error::other("its auxiliary vector cannot be written"))
}
