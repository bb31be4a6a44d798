//! The entries that compiled functions call: they save all registers, and count.
//!
//! `mcount` is called behind the prologue, so the caller's return address is above the frame pointer;
//! `__fentry__` before anything else, so it is on the stack. Both may change no register but flags and `r11`:
//! the function's arguments are in them, those of AVX-512 included.

use std::arch::{global_asm, naked_asm};
use std::sync::atomic::{AtomicU64, Ordering};

use treering_events::arc_file::{entry, table};

use crate::count::count_slowly;

global_asm!(
    // Where the thread finds the address of its table; of a thread that is new, a place that holds 0.
    ".section .tdata,\"awT\",@progbits",
    ".balign 8",
    ".globl treering_pg_cell",
    ".hidden treering_pg_cell",
    ".type treering_pg_cell,@object",
    ".size treering_pg_cell, 8",
    "treering_pg_cell: .quad treering_pg_nothing",
    ".section .data.treering_pg,\"aw\",@progbits",
    ".balign 8",
    ".globl treering_pg_nothing",
    ".hidden treering_pg_nothing",
    ".type treering_pg_nothing,@object",
    ".size treering_pg_nothing, 8",
    "treering_pg_nothing: .quad 0",
    // How vector registers are saved: 0 not known yet, 1 by xsave, 2 by fxsave.
    ".globl treering_pg_saving",
    ".hidden treering_pg_saving",
    ".type treering_pg_saving,@object",
    ".size treering_pg_saving, 4",
    "treering_pg_saving: .long 0",
    // Calls that came too early to be counted.
    ".globl treering_pg_early",
    ".hidden treering_pg_early",
    ".type treering_pg_early,@object",
    ".size treering_pg_early, 8",
    ".balign 8",
    "treering_pg_early: .quad 0",
    ".text",
);

unsafe extern "C" {
    /// A place that holds 0.
    static treering_pg_nothing: usize;
    /// Calls that came too early to be counted.
    static treering_pg_early: AtomicU64;
}

/// How many calls came before the thread had its variables, or the library its addresses: resolvers of functions that have
/// several versions run then.
pub(crate) fn early_calls() -> u64 {
    // SAFETY: the entry points add to it as a number of 64 bits.
    unsafe { treering_pg_early.load(Ordering::Relaxed) }
}

/// The place that holds 0, where threads that are new look for their table.
pub(crate) fn nothing() -> usize {
    &raw const treering_pg_nothing as usize
}

/// Where the thread looks for the address of its table.
pub(crate) fn cell() -> usize {
    let cell;
    // SAFETY: it reads the thread's own variable.
    unsafe {
        std::arch::asm!(
            "mov {0}, qword ptr [rip + treering_pg_cell@gottpoff]",
            "mov {0}, qword ptr fs:[{0}]",
            out(reg) cell,
            options(nostack, readonly, preserves_flags),
        );
    }
    cell
}

/// Lets the thread look elsewhere.
pub(crate) fn set_cell(cell: usize) {
    // SAFETY: it writes the thread's own variable.
    unsafe {
        std::arch::asm!(
            "mov {1}, qword ptr [rip + treering_pg_cell@gottpoff]",
            "mov qword ptr fs:[{1}], {0}",
            in(reg) cell,
            out(reg) _,
            options(nostack, preserves_flags),
        );
    }
}

/// `$from` is how the return address in the caller gets into `rdx`.
macro_rules! entry_point {
    ($(#[$doc:meta])* $name:ident, $from:literal) => {
        $(#[$doc])*
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        extern "C" fn $name() {
            naked_asm!(
                ".cfi_startproc",
                "endbr64",
                // The bytes below the stack pointer are ours: signal handlers leave 128 alone.
                "mov qword ptr [rsp - 8], rax",
                "mov qword ptr [rsp - 16], rcx",
                "mov qword ptr [rsp - 24], rdx",
                "mov qword ptr [rsp - 32], rsi",
                "mov rcx, qword ptr [rsp]",
                $from,
                // Too early there are no thread variables, in a static program; no address of this one yet; or no value.
                "cmp dword ptr [rip + treering_pg_started], 0",
                "je 8f",
                "mov rax, qword ptr [rip + treering_pg_cell@gottpoff]",
                "test rax, rax",
                "jz 8f",
                "mov rax, qword ptr fs:[rax]",
                "test rax, rax",
                "jz 8f",
                "mov rax, qword ptr [rax]",
                "test rax, rax",
                "jz 9f",
                // As `file::hash` does it.
                "lea r11, [rdx + 2 * rcx]",
                "imul r11, r11, 0x1e3779b1",
                "shr r11, 12",
                "mov rsi, qword ptr [rax + {mask}]",
                "2:",
                "and r11, rsi",
                "cmp rdx, qword ptr [rax + r11 + {from}]",
                "jne 3f",
                "cmp rcx, qword ptr [rax + r11 + {callee}]",
                "jne 3f",
                // One instruction, so that a signal handler of this thread cannot come between.
                "inc qword ptr [rax + r11 + {calls}]",
                "mov rsi, qword ptr [rsp - 32]",
                "mov rdx, qword ptr [rsp - 24]",
                "mov rcx, qword ptr [rsp - 16]",
                "mov rax, qword ptr [rsp - 8]",
                "ret",
                "8:",
                "inc qword ptr [rip + treering_pg_early]",
                "mov rsi, qword ptr [rsp - 32]",
                "mov rdx, qword ptr [rsp - 24]",
                "mov rcx, qword ptr [rsp - 16]",
                "mov rax, qword ptr [rsp - 8]",
                "ret",
                "3:",
                "cmp qword ptr [rax + r11 + {from}], 0",
                "je 9f",
                "add r11, {size}",
                "jmp 2b",
                // The slow path: the stack holds the return address and the four registers.
                "9:",
                "sub rsp, 32",
                ".cfi_adjust_cfa_offset 32",
                "push rdi",
                ".cfi_adjust_cfa_offset 8",
                "push r8",
                ".cfi_adjust_cfa_offset 8",
                "push r9",
                ".cfi_adjust_cfa_offset 8",
                "push r10",
                ".cfi_adjust_cfa_offset 8",
                "push rbx",
                ".cfi_adjust_cfa_offset 8",
                ".cfi_rel_offset rbx, 0",
                "push r12",
                ".cfi_adjust_cfa_offset 8",
                ".cfi_rel_offset r12, 0",
                "mov r12, rsp",
                ".cfi_def_cfa_register r12",
                "sub rsp, 2816",
                "and rsp, -64",
                "mov rdi, rdx",
                "mov rsi, rcx",
                "cmp dword ptr [rip + treering_pg_saving], 0",
                "jne 4f",
                // OSXSAVE: the system saves these registers with xsave, and programs may as well.
                "mov eax, 1",
                "xor ecx, ecx",
                "cpuid",
                "shr ecx, 27",
                "and ecx, 1",
                "mov eax, 2",
                "sub eax, ecx",
                "mov dword ptr [rip + treering_pg_saving], eax",
                "4:",
                "cmp dword ptr [rip + treering_pg_saving], 1",
                "jne 5f",
                "xor eax, eax",
                "mov qword ptr [rsp + 512], rax",
                "mov qword ptr [rsp + 520], rax",
                "mov qword ptr [rsp + 528], rax",
                "mov qword ptr [rsp + 536], rax",
                "mov qword ptr [rsp + 544], rax",
                "mov qword ptr [rsp + 552], rax",
                "mov qword ptr [rsp + 560], rax",
                "mov qword ptr [rsp + 568], rax",
                "xor edx, edx",
                // x87, SSE, AVX and AVX-512.
                "mov eax, 0xe7",
                "xsave64 [rsp]",
                "call {slow}",
                "xor edx, edx",
                "mov eax, 0xe7",
                "xrstor64 [rsp]",
                "jmp 6f",
                "5:",
                "fxsave64 [rsp]",
                "call {slow}",
                "fxrstor64 [rsp]",
                "6:",
                "mov rsp, r12",
                ".cfi_def_cfa_register rsp",
                "pop r12",
                ".cfi_adjust_cfa_offset -8",
                ".cfi_restore r12",
                "pop rbx",
                ".cfi_adjust_cfa_offset -8",
                ".cfi_restore rbx",
                "pop r10",
                ".cfi_adjust_cfa_offset -8",
                "pop r9",
                ".cfi_adjust_cfa_offset -8",
                "pop r8",
                ".cfi_adjust_cfa_offset -8",
                "pop rdi",
                ".cfi_adjust_cfa_offset -8",
                "pop rsi",
                ".cfi_adjust_cfa_offset -8",
                "pop rdx",
                ".cfi_adjust_cfa_offset -8",
                "pop rcx",
                ".cfi_adjust_cfa_offset -8",
                "pop rax",
                ".cfi_adjust_cfa_offset -8",
                "ret",
                ".cfi_endproc",
                mask = const table::MASK,
                from = const table::ENTRIES + entry::FROM,
                callee = const table::ENTRIES + entry::CALLEE,
                calls = const table::ENTRIES + entry::CALLS,
                size = const entry::SIZE,
                slow = sym count_slowly,
            )
        }
    };
}

entry_point!(
    /// The entry that functions call behind their prologue (`gcc -pg`).
    mcount,
    "mov rdx, qword ptr [rbp + 8]"
);
entry_point!(
    /// The same under its older name.
    _mcount,
    "mov rdx, qword ptr [rbp + 8]"
);
entry_point!(
    /// The entry that functions call first (`gcc -pg -mfentry`).
    __fentry__,
    "mov rdx, qword ptr [rsp + 8]"
);
