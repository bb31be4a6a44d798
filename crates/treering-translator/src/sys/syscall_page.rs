//! The system call page, which is mapped at the same address into every counted process.
//!
//! The tracer makes system calls in a program's name with the `syscall` at the beginning of the page. In a
//! process that was attached to, the program's own calls are made on this page as well, at [`CALL`]: a filter
//! can never be removed, and children and the programs that they execute inherit it. So the filter checks
//! only calls from this page, where no program has code.
//!
//! A thread at [`CALL`] counts as being in the block with its call, which its area names.

use std::io;

use treering_x86::Assembler;

use crate::sys::layout::{CALL, CALL_NEXT, CALLS, SYSCALL_PAGE, SYSCALL_PAGE_SIZE};
use crate::sys::shared_memory::SharedMemory;

/// The address behind the call, where a thread is while it is in the kernel.
pub(crate) const BEHIND_CALL: u64 = CALL + 2;

/// The address of a pointer to [`CALL`], for a jump that reaches any address.
const WAY_TO_CALL: u64 = SYSCALL_PAGE + 0x200;

/// The length of the code that a block has instead of a `syscall`.
const LENGTH: u64 = 31;

/// Where the page continues behind a call of the tracer's list.
const NEXT: u64 = CALLS + 0x80;

/// The bytes of a call in a list: its number, which its result overwrites, its arguments, and two addresses
/// that get the result as well.
pub(crate) const LISTED_CALL: u64 = 0x48;

const SYSTEM_CALL: &[u8] = &[0x0f, 0x05];

/// Loads the call that r12 points to.
const LOAD_CALL: &[u8] = &[
    0x49, 0x8b, 0x04, 0x24, // mov rax, [r12]
    0x49, 0x8b, 0x7c, 0x24, 0x08, // mov rdi, [r12 + 8]
    0x49, 0x8b, 0x74, 0x24, 0x10, // mov rsi, [r12 + 16]
    0x49, 0x8b, 0x54, 0x24, 0x18, // mov rdx, [r12 + 24]
    0x4d, 0x8b, 0x54, 0x24, 0x20, // mov r10, [r12 + 32]
    0x4d, 0x8b, 0x44, 0x24, 0x28, // mov r8, [r12 + 40]
    0x4d, 0x8b, 0x4c, 0x24, 0x30, // mov r9, [r12 + 48]
];

/// Stores its result, and advances to the next call.
const KEEP_RESULT: &[u8] = &[
    0x49, 0x89, 0x04, 0x24, // mov [r12], rax
    0x49, 0x8b, 0x4c, 0x24, 0x38, // mov rcx, [r12 + 56]
    0x48, 0x89, 0x01, // mov [rcx], rax
    0x49, 0x8b, 0x4c, 0x24, 0x40, // mov rcx, [r12 + 64]
    0x48, 0x89, 0x01, // mov [rcx], rax
    0x49, 0x83, 0xc4, 0x48, // add r12, 72
];

/// The page, for mapping it into every process.
pub(crate) fn syscall_page() -> io::Result<SharedMemory> {
    let memory = SharedMemory::new("treering gate", SYSCALL_PAGE_SIZE)?;
    for (at, bytes, next) in
        [(SYSCALL_PAGE, SYSTEM_CALL, NEXT), (CALLS, LOAD_CALL, SYSCALL_PAGE), (NEXT, KEEP_RESULT, CALLS)]
    {
        let mut code = Assembler::new(at);
        code.put(bytes);
        code.jump(next);
        memory.write(at - SYSCALL_PAGE, code.bytes());
    }
    let mut code = Assembler::new(CALL);
    code.system_call();
    code.jump_gs(CALL_NEXT);
    memory.write(CALL - SYSCALL_PAGE, code.bytes());
    memory.write(WAY_TO_CALL - SYSCALL_PAGE, &CALL.to_le_bytes());
    Ok(memory)
}

/// Writes a system call of the program through the page. It changes no register and no flag before the call.
pub(crate) fn write_call(code: &mut Assembler) {
    let next = code.here() + LENGTH;
    code.store_gs_value(CALL_NEXT, next as u32);
    code.store_gs_value(CALL_NEXT + 4, (next >> 32) as u32);
    code.jump_through_low(WAY_TO_CALL as u32);
    debug_assert_eq!(code.here(), next, "a call is as long as was said");
}

/// A thread's address, as if calls were made in their own blocks; `next` is where it continues behind its last call.
pub(crate) fn in_block(rip: u64, next: u64) -> u64 {
    match rip {
        CALL => next.wrapping_sub(LENGTH),
        BEHIND_CALL => next,
        _ => rip,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_at_the_call_is_before_or_behind_the_one_of_its_block() {
        let mut code = Assembler::new(0x7fff_1234_5678);
        write_call(&mut code);
        let next = code.here();
        assert_eq!(in_block(CALL, next), 0x7fff_1234_5678);
        assert_eq!(in_block(BEHIND_CALL, next), next);
        assert_eq!(in_block(0x7fff_1234_567a, next), 0x7fff_1234_567a);
    }
}
