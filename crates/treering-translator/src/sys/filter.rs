//! The seccomp filter that stops the few system calls that the tracer must see.
//!
//! All other calls go to the kernel without a stop. The filter is a program for the kernel's classic packet filter
//! (`seccomp(2)`), and is inherited by children and across `exec`. A filter in a process that was attached to must
//! not disturb that process after detaching, nor the programs that it executes later. So it checks only calls from
//! the system call page ([`crate::sys::syscall_page`]), and calls that no program makes.

use std::io;

use crate::sys::layout::{COUNTERS, LOW_START, REQUEST_CALL, ROOM, SYSCALL_PAGE};
use crate::sys::remote_syscall::RemoteSyscalls;
use crate::sys::syscall_page::BEHIND_CALL;

/// Calls that write through pointers in memory.
pub(crate) const INDIRECT: [i64; 12] = [
    libc::SYS_readv,
    libc::SYS_preadv,
    libc::SYS_preadv2,
    libc::SYS_recvmsg,
    libc::SYS_recvmmsg,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_vmsplice,
    libc::SYS_ioctl,
    libc::SYS_io_submit,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
];

/// One instruction of the filter, as the kernel reads it.
pub(crate) type Instruction = [u8; 8];

const LOAD: u16 = 0x20;
const JUMP_EQUAL: u16 = 0x15;
const JUMP_AT_LEAST: u16 = 0x35;
const JUMP_ANY_BIT: u16 = 0x45;
const JUMP_ABOVE: u16 = 0x25;
const SHIFT_LEFT: u16 = 0x64;
const SHIFT_RIGHT: u16 = 0x74;
const OR_SCRATCH: u16 = 0x4c;
const STORE: u16 = 0x02;
const LOAD_SCRATCH: u16 = 0x61;
const RETURN: u16 = 0x06;

const ALLOW: u32 = 0x7fff_0000;
const TRACE: u32 = 0x7ff0_0000;
const ERROR: u32 = 0x0005_0000;
const NO_SUCH_CALL: u32 = ERROR | libc::ENOSYS as u32;

const X86_64: u32 = 0xc000_003e;

/// Offsets in the kernel's `seccomp_data`.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const ADDRESS_LOW: u32 = 8;
const ADDRESS_HIGH: u32 = 12;
const FIRST_ARGUMENT: u32 = 16;
const FIRST_ARGUMENT_HIGH: u32 = 20;
const SECOND_ARGUMENT: u32 = 24;
const THIRD_ARGUMENT: u32 = 32;
const FOURTH_ARGUMENT: u32 = 40;

/// Advice on memory (`madvise(2)`) that changes its contents.
const CHANGING_ADVICE: [i32; 4] =
    [libc::MADV_DONTNEED, libc::MADV_FREE, libc::MADV_REMOVE, MADV_DONTNEED_LOCKED];
/// The C library's header lacks it.
const MADV_DONTNEED_LOCKED: i32 = 24;

/// The `prctl` operation for syscall user dispatch, which would take system calls from the tracer.
pub(crate) const SET_DISPATCH: u64 = 59;
/// `PR_SET_MDWE`, which forbids memory that is both writable and executable.
pub(crate) const SET_MDWE: u64 = 65;

/// The `prctl` operations that ask for what a thread restricts itself to, or restrict it, besides filters. The tracer's
/// own filter, and what it needs, are hidden.
pub(crate) const RULES: [u64; 3] =
    [libc::PR_GET_SECCOMP as u64, libc::PR_GET_NO_NEW_PRIVS as u64, libc::PR_SET_NO_NEW_PRIVS as u64];

/// Calls that always stop.
const STOPPING: &[i64] = &[
    libc::SYS_mremap,
    libc::SYS_rt_sigreturn,
    libc::SYS_arch_prctl,
    libc::SYS_seccomp,
    libc::SYS_ptrace,
    libc::SYS_shmat,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setattr,
    // They may remove or change code.
    libc::SYS_munmap,
    libc::SYS_mprotect,
    libc::SYS_pkey_mprotect,
    libc::SYS_remap_file_pages,
    libc::SYS_process_madvise,
    libc::SYS_creat,
    libc::SYS_truncate,
    libc::SYS_openat2,
    libc::SYS_userfaultfd,
    libc::SYS_clone3,
];

/// Calls that stop if an argument has any of these bits.
const WITH_BITS: &[(i64, u32, u32)] = &[
    (libc::SYS_mmap, THIRD_ARGUMENT, libc::PROT_EXEC as u32),
    // The mapping replaces another one, or may be where the tracer's memory is.
    (libc::SYS_mmap, FOURTH_ARGUMENT, (libc::MAP_FIXED | libc::MAP_FIXED_NOREPLACE) as u32),
    (libc::SYS_open, SECOND_ARGUMENT, WRITES),
    (libc::SYS_openat, THIRD_ARGUMENT, WRITES),
];

/// Calls that stop if an argument is the limit on address space.
const LIMITS: &[(i64, u32)] = &[
    (libc::SYS_getrlimit, FIRST_ARGUMENT),
    (libc::SYS_setrlimit, FIRST_ARGUMENT),
    (libc::SYS_prlimit64, SECOND_ARGUMENT),
];

/// Flags for opening a file for writing.
pub(crate) const WRITES: u32 = (libc::O_ACCMODE | libc::O_TRUNC) as u32;

fn instruction(code: u16, if_true: u8, if_false: u8, value: u32) -> Instruction {
    let [c0, c1] = code.to_le_bytes();
    let [v0, v1, v2, v3] = value.to_le_bytes();
    [c0, c1, if_true, if_false, v0, v1, v2, v3]
}

/// The process that a filter is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum For {
    /// A program that is counted from its beginning to its end.
    Program,
    /// The same, where its surroundings are held.
    HeldProgram,
    /// A process that ran before, and continues afterwards.
    Running,
}

/// Calls that stop as well where surroundings are held: about the time, for random numbers, and those that wait.
const HELD: &[i64] = &[
    libc::SYS_open,
    libc::SYS_openat,
    libc::SYS_getrandom,
    libc::SYS_clock_gettime,
    libc::SYS_gettimeofday,
    libc::SYS_time,
    libc::SYS_times,
    libc::SYS_getrusage,
    libc::SYS_getcpu,
    libc::SYS_nanosleep,
    libc::SYS_clock_nanosleep,
    libc::SYS_poll,
    libc::SYS_ppoll,
    libc::SYS_select,
    libc::SYS_pselect6,
    libc::SYS_epoll_wait,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_semtimedop,
    libc::SYS_futex,
];

/// The filter of a counted program.
///
/// Calls that the tracer never stops are allowed by their number before anything else is checked. The kernel
/// remembers that the number alone decides, and does not run the filter for them (since Linux 5.11).
fn filter(what: For) -> Vec<Instruction> {
    let mut program = vec![
        instruction(LOAD, 0, 0, ARCHITECTURE),
        instruction(JUMP_EQUAL, 1, 0, X86_64),
        instruction(RETURN, 0, 0, ALLOW),
        instruction(LOAD, 0, 0, NUMBER),
    ];
    let in_part =
        [libc::SYS_rt_sigaction, libc::SYS_prctl, libc::SYS_madvise, libc::SYS_brk, libc::SYS_clone];
    let in_part = in_part.into_iter().chain(LIMITS.iter().map(|&(number, _)| number));
    let in_part = in_part.chain(WITH_BITS.iter().map(|&(number, ..)| number));
    let held = if what == For::HeldProgram { HELD } else { &[] };
    let question = (what == For::Running).then_some(QUESTION);
    let numbers = [REQUEST_CALL.into(), libc::SYS_rseq].into_iter().chain(question);
    let numbers = numbers.chain(STOPPING.iter().chain(held).copied()).chain(in_part);
    let numbers: Vec<i64> = numbers.collect();
    for (at, &number) in numbers.iter().enumerate() {
        let behind_all = (numbers.len() - at) as u8;
        program.push(instruction(JUMP_EQUAL, behind_all, 0, number as u32));
    }
    program.push(instruction(RETURN, 0, 0, ALLOW));
    // No program makes this call.
    program.extend(if_number(REQUEST_CALL.into(), TRACE));
    match what {
        For::Program | For::HeldProgram => {
            program.extend(past_the_syscall_page());
            program.push(instruction(LOAD, 0, 0, NUMBER));
            program.extend(if_number(libc::SYS_rseq, NO_SUCH_CALL));
        }
        For::Running => {
            program.extend(answer());
            program.extend(past_all_but_calls());
            program.push(instruction(LOAD, 0, 0, NUMBER));
            // A program that has registered restartable sequences before relies on being able to do so again.
            program.extend(if_number(libc::SYS_rseq, TRACE));
        }
    }
    held.iter().for_each(|&number| program.extend(if_number(number, TRACE)));
    program.extend(if_heap_comes_near());
    for &(number, argument, bits) in WITH_BITS {
        program.extend(if_bits(number, argument, bits));
    }
    WITH_BITS.iter().for_each(|&(number, ..)| program.extend(if_number(number, ALLOW)));
    let advice = CHANGING_ADVICE.map(|advice| advice as u64);
    program.extend(if_argument(libc::SYS_madvise, THIRD_ARGUMENT, &if_any(advice)));
    let faults = [instruction(JUMP_EQUAL, 0, 1, libc::SIGSEGV as u32)];
    program.extend(if_argument(libc::SYS_rt_sigaction, FIRST_ARGUMENT, &faults));
    let untraced = [instruction(JUMP_ANY_BIT, 0, 1, libc::CLONE_UNTRACED as u32)];
    program.extend(if_argument(libc::SYS_clone, FIRST_ARGUMENT, &untraced));
    let operations = [libc::PR_SET_SECCOMP as u64, SET_DISPATCH, SET_MDWE].into_iter().chain(RULES);
    program.extend(if_argument(libc::SYS_prctl, FIRST_ARGUMENT, &if_any(operations)));
    let of_memory = [instruction(JUMP_EQUAL, 0, 1, libc::RLIMIT_AS)];
    LIMITS.iter().for_each(|&(number, argument)| program.extend(if_argument(number, argument, &of_memory)));
    program.push(instruction(RETURN, 0, 0, TRACE));
    program
}

/// Installs a filter in a process, and in all its threads if it has run before. The kernel requires that the
/// process gives up gaining privileges, unless it has certain privileges itself. For a process that continues
/// afterwards, installing without that is tried first.
///
/// # Errors
/// The kernel refuses it, as when another thread has a filter of its own.
pub(crate) fn install(calls: &mut RemoteSyscalls<'_, '_>, what: For) -> io::Result<()> {
    /// `SECCOMP_FILTER_FLAG_TSYNC` and `SECCOMP_FILTER_FLAG_SPEC_ALLOW`: without the latter, older kernels
    /// slow the process down.
    const RUNNING: u64 = 1 | 4;
    let bytes = to_be_set(&filter(what));
    let is_running = what == For::Running;
    let install = |calls: &mut RemoteSyscalls<'_, '_>| {
        let flags = if is_running { RUNNING } else { 0 };
        calls.call_with_bytes(libc::SYS_seccomp, &bytes, |at| [SET_MODE_FILTER, flags, at, 0, 0, 0])
    };
    let denied = |error: &io::Error| error.raw_os_error() == Some(libc::EACCES);
    let installed = match is_running.then(|| install(calls)) {
        Some(done) if !done.as_ref().is_err_and(denied) => done,
        _ => {
            calls.call(libc::SYS_prctl, [libc::PR_SET_NO_NEW_PRIVS as u64, 1, 0, 0, 0, 0])?;
            install(calls)
        }
    };
    match installed? {
        0 => Ok(()),
        thread if is_running && thread != libc::SYS_seccomp as u64 => {
            Err(io::Error::other(format!("its thread {thread} filters system calls of its own")))
        }
        // An earlier filter ended the call, so that rax still holds its number instead of a result.
        _ => Err(io::Error::from_raw_os_error(libc::EPERM)),
    }
}

/// Makes a thread's `wait4` calls stop as well.
pub(crate) fn install_for_waiting(calls: &mut RemoteSyscalls<'_, '_>) -> io::Result<()> {
    let mut filter = past_the_syscall_page().to_vec();
    filter.push(instruction(LOAD, 0, 0, NUMBER));
    filter.extend(if_number(libc::SYS_wait4, TRACE));
    filter.push(instruction(RETURN, 0, 0, ALLOW));
    let bytes = to_be_set(&filter);
    calls.call_with_bytes(libc::SYS_seccomp, &bytes, |at| [SET_MODE_FILTER, 0, at, 0, 0, 0]).map(drop)
}

const SET_MODE_FILTER: u64 = 1;

/// A filter in the kernel's layout, in the [room](ROOM).
fn to_be_set(filter: &[Instruction]) -> Vec<u8> {
    let mut bytes = vec![0; 16];
    filter.iter().for_each(|instruction| bytes.extend_from_slice(instruction));
    bytes[..8].copy_from_slice(&(filter.len() as u64).to_le_bytes());
    bytes[8..16].copy_from_slice(&(ROOM + 16).to_le_bytes());
    bytes
}

/// Adds a filter to all threads of a process.
///
/// # Errors
/// The kernel refuses it, as when a thread has a filter of its own.
pub(crate) fn install_for_all(calls: &mut RemoteSyscalls<'_, '_>, filter: &[Instruction]) -> io::Result<()> {
    const ALL_THREADS: u64 = 1 | 4;
    let bytes = to_be_set(filter);
    let arguments = |at| [SET_MODE_FILTER, ALL_THREADS, at, 0, 0, 0];
    match calls.call_with_bytes(libc::SYS_seccomp, &bytes, arguments)? {
        0 => Ok(()),
        _ => Err(io::Error::from_raw_os_error(libc::EPERM)),
    }
}

/// A filter that stops calls with an argument between two addresses, and calls whose arguments do not show
/// where they write. Addresses are compared in units of 64 KiB, whose number fits in 32 bits.
pub(crate) fn call_ranges_filter(start: u64, end: u64) -> Vec<Instruction> {
    const PART: u32 = 16;
    let [first, last] = [start, end - 1].map(|address| (address >> PART) as u32);
    let mut program = vec![
        instruction(LOAD, 0, 0, ARCHITECTURE),
        instruction(JUMP_EQUAL, 1, 0, X86_64),
        instruction(RETURN, 0, 0, ALLOW),
    ];
    program.extend(past_the_syscall_page());
    program.push(instruction(LOAD, 0, 0, NUMBER));
    program.extend(if_number(REQUEST_CALL.into(), ALLOW));
    INDIRECT.iter().for_each(|&number| program.extend(if_number(number, TRACE)));
    for argument in 0..6 {
        let low = FIRST_ARGUMENT + argument * 8;
        program.extend([
            instruction(LOAD, 0, 0, low + 4),
            instruction(SHIFT_LEFT, 0, 0, PART),
            instruction(STORE, 0, 0, 0),
            instruction(LOAD, 0, 0, low),
            instruction(SHIFT_RIGHT, 0, 0, PART),
            instruction(LOAD_SCRATCH, 0, 0, 0),
            instruction(OR_SCRATCH, 0, 0, 0),
            instruction(JUMP_AT_LEAST, 0, 2, first),
            instruction(JUMP_ABOVE, 1, 0, last),
            instruction(RETURN, 0, 0, TRACE),
        ]);
    }
    program.push(instruction(RETURN, 0, 0, ALLOW));
    program
}

/// Whether the only filter of a process is ours, from an earlier attachment of the process or of its parent.
pub(crate) fn is_ours(calls: &mut RemoteSyscalls<'_, '_>) -> bool {
    let answered = calls.call(QUESTION, [ASKED.into(), 1, 0, 0, 0, 0]);
    answered.is_err_and(|error| error.raw_os_error() == Some(ANSWER.cast_signed()))
}

/// Instructions for a call that stops if a test of its argument continues to the next instruction, and passes
/// if it skips that one.
fn if_argument(number: i64, argument: u32, test: &[Instruction]) -> Vec<Instruction> {
    let mut part = vec![
        instruction(JUMP_EQUAL, 0, test.len() as u8 + 3, number as u32),
        instruction(LOAD, 0, 0, argument),
    ];
    part.extend_from_slice(test);
    part.extend([instruction(RETURN, 0, 0, TRACE), instruction(RETURN, 0, 0, ALLOW)]);
    part
}

/// A test for [`if_argument`] whether the argument is any of some values.
fn if_any(values: impl IntoIterator<Item = u64>) -> Vec<Instruction> {
    let values: Vec<u64> = values.into_iter().collect();
    let last = values.len() - 1;
    let test = |(at, value)| instruction(JUMP_EQUAL, (last - at) as u8, u8::from(at == last), value as u32);
    values.into_iter().enumerate().map(test).collect()
}

/// Instructions for a call that stops if its argument has any of some bits; the instructions behind them may
/// test another argument.
fn if_bits(number: i64, argument: u32, bits: u32) -> [Instruction; 5] {
    [
        instruction(JUMP_EQUAL, 0, 4, number as u32),
        instruction(LOAD, 0, 0, argument),
        instruction(JUMP_ANY_BIT, 0, 1, bits),
        instruction(RETURN, 0, 0, TRACE),
        instruction(LOAD, 0, 0, NUMBER),
    ]
}

/// Instructions to put before a program's own filter: our calls pass it.
pub(crate) fn before_own_filter() -> Vec<Instruction> {
    let mut program = past_the_syscall_page().to_vec();
    program.push(instruction(LOAD, 0, 0, NUMBER));
    program.extend(if_number(REQUEST_CALL.into(), ALLOW));
    program
}

/// Allows the calls of a running program that are not made at the system call page; the filter sees the
/// address behind the call.
fn past_all_but_calls() -> [Instruction; 5] {
    [
        instruction(LOAD, 0, 0, ADDRESS_LOW),
        instruction(JUMP_EQUAL, 0, 2, BEHIND_CALL as u32),
        instruction(LOAD, 0, 0, ADDRESS_HIGH),
        instruction(JUMP_EQUAL, 1, 0, (BEHIND_CALL >> 32) as u32),
        instruction(RETURN, 0, 0, ALLOW),
    ]
}

/// The call with which [`is_ours`] asks. The kernel refuses it, as there can be no mapping at such an
/// address, and a filter that lets a program run at all allows it.
const QUESTION: i64 = libc::SYS_munmap;
const ASKED: u32 = REQUEST_CALL;
/// An error that only this filter returns.
const ANSWER: u32 = 0x723;

fn answer() -> [Instruction; 4] {
    [
        instruction(JUMP_EQUAL, 0, 3, QUESTION as u32),
        instruction(LOAD, 0, 0, FIRST_ARGUMENT),
        instruction(JUMP_EQUAL, 0, 1, ASKED),
        instruction(RETURN, 0, 0, ERROR | ANSWER),
    ]
}

/// The heap of a program that is linked to a low address may grow up to our memory.
fn if_heap_comes_near() -> [Instruction; 8] {
    let counters = (COUNTERS[0].start >> 32) as u32;
    [
        instruction(JUMP_EQUAL, 0, 7, libc::SYS_brk as u32),
        instruction(LOAD, 0, 0, FIRST_ARGUMENT_HIGH),
        instruction(JUMP_AT_LEAST, 4, 0, counters),
        instruction(JUMP_EQUAL, 0, 2, 0),
        instruction(LOAD, 0, 0, FIRST_ARGUMENT),
        instruction(JUMP_AT_LEAST, 0, 1, LOW_START as u32),
        instruction(RETURN, 0, 0, TRACE),
        instruction(RETURN, 0, 0, ALLOW),
    ]
}

/// Allows calls at the system call page, which threads make only for the tracer.
fn past_the_syscall_page() -> [Instruction; 5] {
    let behind = SYSCALL_PAGE + 2;
    [
        instruction(LOAD, 0, 0, ADDRESS_LOW),
        instruction(JUMP_EQUAL, 0, 3, behind as u32),
        instruction(LOAD, 0, 0, ADDRESS_HIGH),
        instruction(JUMP_EQUAL, 0, 1, (behind >> 32) as u32),
        instruction(RETURN, 0, 0, ALLOW),
    ]
}

fn if_number(number: i64, action: u32) -> [Instruction; 2] {
    [instruction(JUMP_EQUAL, 0, 1, number as u32), instruction(RETURN, 0, 0, action)]
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail by panicking")]
mod tests {
    use super::*;

    /// The filter's verdict on a call, by an interpreter of the instructions that it uses.
    fn verdict(
        program: &[Instruction],
        number: i64,
        address: u64,
        arguments: impl IntoIterator<Item = u64>,
        arch: u32,
    ) -> u32 {
        let mut data = Vec::new();
        data.extend((number as u32).to_le_bytes());
        data.extend(arch.to_le_bytes());
        data.extend(address.to_le_bytes());
        arguments.into_iter().for_each(|argument| data.extend(argument.to_le_bytes()));
        data.resize(64, 0);
        let (mut at, mut value, mut kept, mut scratch) = (0, 0, 0, 0);
        loop {
            let bytes = program[at];
            let operand = u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]);
            at += 1;
            let jump = |holds| usize::from(if holds { bytes[2] } else { bytes[3] });
            match u16::from_le_bytes([bytes[0], bytes[1]]) {
                LOAD => {
                    let from = operand as usize;
                    value = u32::from_le_bytes(data[from..from + 4].try_into().unwrap());
                }
                JUMP_EQUAL => at += jump(value == operand),
                JUMP_AT_LEAST => at += jump(value >= operand),
                JUMP_ANY_BIT => at += jump(value & operand != 0),
                JUMP_ABOVE => at += jump(value > operand),
                SHIFT_LEFT => value <<= operand,
                SHIFT_RIGHT => value >>= operand,
                STORE => kept = value,
                LOAD_SCRATCH => scratch = kept,
                OR_SCRATCH => value |= scratch,
                RETURN => return operand,
                other => panic!("unknown instruction {other:#x}"),
            }
        }
    }

    #[test]
    fn calls_with_an_argument_in_a_range_stop() {
        let program = call_ranges_filter(0x7fff_1234_0000, 0x7fff_1236_0000);
        let say = |number, arguments: [u64; 6]| verdict(&program, number, 0x1000, arguments, X86_64);
        for place in 0..6 {
            let at = |address| {
                let mut arguments = [0; 6];
                arguments[place] = address;
                say(libc::SYS_read, arguments)
            };
            assert_eq!([0x7fff_1234_0000, 0x7fff_1235_ffff].map(at), [TRACE; 2], "{place}");
            assert_eq!([0x7fff_1233_ffff, 0x7fff_1236_0000, 0x1234_0000, 0].map(at), [ALLOW; 4], "{place}");
        }
        assert_eq!(say(libc::SYS_readv, [0; 6]), TRACE);
        assert_eq!(say(REQUEST_CALL.into(), [0x7fff_1234_0000; 6]), ALLOW);
    }

    #[test]
    fn only_calls_that_the_tracer_must_see_stop() {
        let say = |number, arguments| verdict(&filter(For::Program), number, 0x1000, arguments, X86_64);
        assert_eq!(say(libc::SYS_read, [0; 3]), ALLOW);
        assert_eq!(say(libc::SYS_mmap, [0, 4096, 3]), ALLOW);
        assert_eq!(say(libc::SYS_mmap, [0, 4096, 5]), TRACE);
        let fixed = [0, 4096, 3, (libc::MAP_PRIVATE | libc::MAP_FIXED) as u64];
        assert_eq!(verdict(&filter(For::Program), libc::SYS_mmap, 0x1000, fixed, X86_64), TRACE);
        assert_eq!(say(libc::SYS_open, [0, libc::O_RDONLY as u64, 0]), ALLOW);
        assert_eq!(say(libc::SYS_open, [0, libc::O_WRONLY as u64, 0]), TRACE);
        assert_eq!(say(libc::SYS_openat, [0, 0, libc::O_CLOEXEC as u64]), ALLOW);
        assert_eq!(say(libc::SYS_openat, [0, 0, libc::O_RDWR as u64]), TRACE);
        assert_eq!(say(libc::SYS_madvise, [0, 4096, libc::MADV_WILLNEED as u64]), ALLOW);
        for advice in CHANGING_ADVICE {
            assert_eq!(say(libc::SYS_madvise, [0, 4096, advice as u64]), TRACE, "{advice}");
        }
        assert_eq!(say(libc::SYS_pkey_mprotect, [0, 4096, 7]), TRACE);
        assert_eq!(say(libc::SYS_rseq, [0; 3]), NO_SUCH_CALL);
        assert_eq!(say(REQUEST_CALL.into(), [0; 3]), TRACE);
        assert_eq!(say(libc::SYS_rt_sigaction, [11, 0, 0]), TRACE);
        assert_eq!(say(libc::SYS_rt_sigaction, [5, 0, 0]), ALLOW);
        assert_eq!(say(libc::SYS_prctl, [22, 0, 0]), TRACE);
        assert_eq!(say(libc::SYS_prctl, [59, 0, 0]), TRACE);
        assert_eq!(say(libc::SYS_prctl, [65, 0, 0]), TRACE);
        assert_eq!(say(libc::SYS_prctl, [15, 0, 0]), ALLOW);
        for &number in STOPPING {
            assert_eq!(say(number, [0; 3]), TRACE);
        }
    }

    #[test]
    fn calls_about_held_surroundings_stop_only_where_these_are_held() {
        let say = |what, number| verdict(&filter(what), number, 0x1000, [0; 6], X86_64);
        for &number in HELD {
            assert_eq!(
                [For::HeldProgram, For::Program].map(|what| say(what, number)),
                [TRACE, ALLOW],
                "{number}"
            );
        }
        assert_eq!([libc::SYS_read, libc::SYS_mmap].map(|number| say(For::HeldProgram, number)), [ALLOW; 2]);
        assert_eq!(say(For::HeldProgram, libc::SYS_rseq), NO_SUCH_CALL);
    }

    #[test]
    fn memory_that_may_be_ours_stops() {
        let of =
            |number, arguments: [u64; 4]| verdict(&filter(For::Program), number, 0x1000, arguments, X86_64);
        let fixed = [libc::MAP_FIXED, libc::MAP_FIXED_NOREPLACE].map(|flag| flag as u64);
        for flag in fixed {
            assert_eq!(of(libc::SYS_mmap, [0x1000, 4096, 3, flag | 0x22]), TRACE);
        }
        assert_eq!(of(libc::SYS_mmap, [0x5500_0000_0000, 4096, 3, 0x22]), ALLOW);
        let heap = |end| of(libc::SYS_brk, [end, 0, 0, 0]);
        assert_eq!([0, LOW_START - 1, 0x5555_5555_4000].map(heap), [ALLOW; 3]);
        assert_eq!([LOW_START, 1 << 32, 0x2000_0000_0000].map(heap), [TRACE; 3]);
    }

    #[test]
    fn the_filter_of_a_running_program_leaves_calls_from_elsewhere_alone() {
        let program = filter(For::Running);
        let say = |number, address| verdict(&program, number, address, [0; 3], X86_64);
        for number in [libc::SYS_rt_sigreturn, libc::SYS_rseq] {
            assert_eq!(say(number, BEHIND_CALL), TRACE);
            let elsewhere = [BEHIND_CALL - 1, BEHIND_CALL + 1, BEHIND_CALL + (1 << 32), SYSCALL_PAGE + 2];
            assert_eq!(elsewhere.map(|address| say(number, address)), [ALLOW; 4]);
        }
        assert_eq!(say(libc::SYS_read, BEHIND_CALL), ALLOW);
        assert_eq!(say(REQUEST_CALL.into(), 0), TRACE);
    }

    #[test]
    fn only_the_filter_of_a_running_program_answers_from_anywhere_that_it_is_ours() {
        let ask = |what, asked: u32| verdict(&filter(what), QUESTION, 0x1000, [asked.into(), 1, 0], X86_64);
        assert_eq!([ask(For::Running, ASKED), ask(For::Running, 0x1000)], [ERROR | ANSWER, ALLOW]);
        assert_eq!(ask(For::Program, ASKED), TRACE);
        assert_ne!(ASKED % 0x1000, 0, "the kernel refuses it without having looked for a mapping");
    }

    #[test]
    fn the_gate_and_other_modes_pass() {
        let at_gate =
            |arch| verdict(&filter(For::Program), libc::SYS_mmap, SYSCALL_PAGE + 2, [0, 0, 7], arch);
        assert_eq!(at_gate(X86_64), ALLOW);
        assert_eq!(verdict(&filter(For::Program), libc::SYS_mmap, 0, [0, 0, 7], 0x4000_0003), ALLOW);
        let mut own = before_own_filter();
        own.push(instruction(RETURN, 0, 0, 0));
        assert_eq!(verdict(&own, REQUEST_CALL.into(), 0, [0; 3], X86_64), ALLOW);
        assert_eq!(verdict(&own, libc::SYS_mmap, SYSCALL_PAGE + 2, [0; 3], X86_64), ALLOW);
        assert_eq!(verdict(&own, libc::SYS_mmap, 0, [0; 3], X86_64), 0);
    }
}
