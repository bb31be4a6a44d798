//! A stack that is too small (`ulimit -s`).

use crate::failure::Failure;

/// The least size of the stack, in bytes. Half of it is used where commands are read.
const LEAST: u64 = 256 << 10;

/// The error where the stack may not grow to what every command needs, which would end this process by a signal.
pub fn refuse() -> Option<Failure> {
    let limit = treering_proc::stack_limit().filter(|&limit| limit < LEAST)?;
    let (limit, least) = (limit >> 10, LEAST >> 10);
    let failure =
        Failure::new(format_args!("the stack may only grow to {limit} KiB, and Treering needs {least}"));
    Some(failure.hint(
        "ulimit -s 8192, or a higher hard limit from whoever has set it; the program to measure can have less: \
         sh -c 'ulimit -s 64; exec ./prog'",
    ))
}
