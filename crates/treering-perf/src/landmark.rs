//! Hand-written code that is recognised by its instructions, since it has no unwind tables.

/// The kind of a place in hand-written code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Landmark {
    /// The first frame of a thread or coroutine.
    First,
    /// It returns from a signal's handler.
    SignalReturn,
}

/// How Go's runtime leaves a goroutine's stack for that of the thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Switch {
    /// For good: `mcall`, whose function goes on to another goroutine.
    Parked,
    /// To give a function more stack, before it has a frame: `morestack`.
    Grown,
    /// To call a function of the runtime: `systemstack`.
    System,
    /// To call a function in C: `asmcgocall`.
    Foreign,
}

/// How Go's runtime left a goroutine's stack, given the code before a call returns: it has loaded the stack pointer
/// from `sched.sp` of a `g`, which has been its eighth word since Go 1.4 (`runtime/asm_amd64.s`).
pub(crate) fn leaves_goroutine(before: &[u8]) -> Option<Switch> {
    let loads_stack =
        |code: &[u8]| matches!(code, [0x48 | 0x49, 0x8b, modrm, 0x38, ..] if modrm & 0xf8 == 0x60);
    // By way of rbx: `mov 0x38(%rdx), %rbx; mov %rbx, %rsp`.
    let loads_by_way = |code: &[u8]| code.starts_with(&[0x48, 0x8b, 0x5a, 0x38, 0x48, 0x89, 0xdc]);
    let is_switch = |at: usize| loads_stack(&before[at..]) || loads_by_way(&before[at..]);
    if !(0..before.len()).any(is_switch) {
        return None;
    }
    match before {
        [.., 0x41, 0xff, 0xd4] => Some(Switch::Parked),
        [.., 0xff, 0xd0] => Some(Switch::Foreign),
        [.., 0xff, 0xd7] => Some(Switch::System),
        [.., 0xe8, _, _, _, _] => Some(Switch::Grown),
        _ => None,
    }
}

/// How much code is looked at from a place on.
pub(crate) const AHEAD: usize = 64;

/// How much is looked at before it.
pub(crate) const BEHIND: usize = 64;

/// The kind of a place in 64-bit code, given the bytes before it and those from it on.
pub(crate) fn recognise(before: &[u8], code: &[u8]) -> Option<Landmark> {
    let code = code.strip_prefix(ENDBR64).unwrap_or(code);
    if code.starts_with(SIGNAL_RETURN) || code.starts_with(SIGNAL_RETURN_SHORT) {
        return Some(Landmark::SignalReturn);
    }
    let starts_context = code.strip_prefix(STACK_OF_CONTEXT).is_some_and(|rest| contains(rest, NEXT_CONTEXT));
    (starts_context || is_goroutine_end(before, code)).then_some(Landmark::First)
}

/// Whether the code before a place is the system call that returns from a signal's handler.
pub(crate) fn returns_from_signal(before: &[u8]) -> bool {
    before.ends_with(SIGNAL_RETURN) || before.ends_with(SIGNAL_RETURN_SHORT)
}

/// Whether a system call was made shortly before, as by `clone`, whose child goes on behind it.
pub(crate) fn follows_system_call(before: &[u8]) -> bool {
    contains(before, SYSCALL) || contains(before, INT_80)
}

const ENDBR64: &[u8] = &[0xf3, 0x0f, 0x1e, 0xfa];
/// `mov $15, %rax; syscall`: `rt_sigreturn`, in glibc, musl and Go.
const SIGNAL_RETURN: &[u8] = &[0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05];
/// `mov $15, %eax; syscall`: the same, as assemblers shorten it.
const SIGNAL_RETURN_SHORT: &[u8] = &[0xb8, 15, 0, 0, 0, 0x0f, 0x05];
/// `mov %rbx, %rsp`: how glibc's `__start_context` begins, to which `makecontext`'s function returns.
const STACK_OF_CONTEXT: &[u8] = &[0x48, 0x89, 0xdc];
/// `mov (%rsp), %rdi; test %rdi, %rdi`: its look for `uc_link`.
const NEXT_CONTEXT: &[u8] = &[0x48, 0x8b, 0x3c, 0x24, 0x48, 0x85, 0xff];
const SYSCALL: &[u8] = &[0x0f, 0x05];
const INT_80: &[u8] = &[0xcd, 0x80];

/// Whether this is Go's `runtime.goexit`, `nop; call goexit1; nop`, behind its first byte: the
/// return address that Go writes below a goroutine's first function.
fn is_goroutine_end(before: &[u8], code: &[u8]) -> bool {
    before.last() == Some(&0x90) && matches!(code, [0xe8, _, _, _, _, 0x90, ..])
}

/// How much code is looked at for [`starts_program`].
pub(crate) const AHEAD_OF_START: usize = 160;

/// Whether this is where musl calls `main`, in a function that only `__libc_start_main` behind it reaches, by `lea
/// function, %reg; ...; jmp *%reg`: the result of `main` goes to `exit`.
pub(crate) fn starts_program(address: u64, code: &[u8]) -> bool {
    if !matches!(code, [0x89, 0xc7, 0xe8, ..]) {
        return false;
    }
    code.windows(16).enumerate().skip(7).any(|(at, window)| {
        let [0x48, 0x8d, modrm, a, b, c, d, rest @ ..] = window else { return false };
        let distance = i32::from_le_bytes([*a, *b, *c, *d]);
        let target = address.wrapping_add(at as u64 + 7).wrapping_add_signed(distance.into());
        let is_function = modrm & 0xc7 == 0x05 && (1..=96).contains(&address.wrapping_sub(target));
        is_function && contains(rest, &[0xff, 0xe0 | modrm >> 3 & 7])
    })
}

/// Whether this is where musl calls a thread's first function, right behind the system call that restores its signals,
/// by `mov 8(%reg), %rdi; call *(%reg)`: the result goes to `pthread_exit`, which does not return.
pub(crate) fn starts_thread(before: &[u8], code: &[u8]) -> bool {
    if !matches!(code, [0x48, 0x89, 0xc7, 0xe8, ..]) {
        return false;
    }
    match before {
        [.., 0x0f, 0x05, 0x48, 0x8b, 0x7d, 8, 0xff, 0x55, 0] => true,
        [.., 0x0f, 0x05, 0x48, 0x8b, load, 8, 0xff, call]
        | [.., 0x0f, 0x05, 0x49, 0x8b, load, 8, 0x41, 0xff, call] => {
            load & 0xf8 == 0x78 && call & 0xf8 == 0x10 && load & 7 == call & 7
        }
        _ => false,
    }
}

fn contains(code: &[u8], sought: &[u8]) -> bool {
    code.windows(sought.len()).any(|window| window == sought)
}

/// Whether the last of some bytes is that of a call: `call rel32`, or `call r/m` with its ModRM byte.
///
/// Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2: CALL; table 2-2.
pub(crate) fn follows_call(before: &[u8]) -> bool {
    let indirect = |length: usize| {
        let Some(call) = before.len().checked_sub(length).map(|at| &before[at..]) else { return false };
        call[0] == 0xff && call[1] >> 3 & 7 == 2 && operand_length(call[1], call.get(2)) == length - 1
    };
    let direct = before.len() >= 5 && before[before.len() - 5] == 0xe8;
    direct || (2..=7).any(indirect)
}

/// The length of a ModRM byte with the bytes that belong to it.
fn operand_length(modrm: u8, next: Option<&u8>) -> usize {
    match (modrm >> 6, modrm & 7) {
        (3, _) => 1,
        (0, 5) => 5,
        (0, 4) if next.is_some_and(|scale| scale & 7 == 5) => 6,
        (0, 4) => 2,
        (0, _) => 1,
        (1, 4) => 3,
        (1, _) => 2,
        (_, 4) => 6,
        _ => 5,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_all_forms_are_seen_from_behind() {
        let calls: [&[u8]; 8] = [
            &[0xe8, 1, 2, 3, 4],
            &[0xff, 0xd0],
            &[0x41, 0xff, 0xd4],
            &[0xff, 0x10],
            &[0xff, 0x14, 0xc5, 1, 2, 3, 4],
            &[0xff, 0x50, 8],
            &[0xff, 0x54, 0x24, 8],
            &[0xff, 0x15, 1, 2, 3, 4],
        ];
        for call in calls {
            let code: Vec<u8> = [0x90; 8].into_iter().chain(call.iter().copied()).collect();
            assert!(follows_call(&code), "{call:x?}");
        }
    }

    #[test]
    fn other_code_is_no_call() {
        assert!(!follows_call(&[]));
        assert!(!follows_call(&[0x90; 8]));
        // jmp *%rax; jmp rel32
        assert!(!follows_call(&[0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0xe0]));
        assert!(!follows_call(&[0x90, 0x90, 0x90, 0xe9, 1, 2, 3, 4]));
    }

    #[test]
    fn a_coroutine_starts_where_its_function_returns_to() {
        let glibc = [0x48, 0x89, 0xdc, 0x48, 0x8b, 0x3c, 0x24, 0x48, 0x85, 0xff, 0x74, 0x0a];
        assert_eq!(recognise(&[], &glibc), Some(Landmark::First));
        let go = [0xe8, 1, 2, 3, 4, 0x90];
        assert_eq!(recognise(&[0xcc, 0x90], &go), Some(Landmark::First));
        assert_eq!(recognise(&[0xcc, 0xcc], &go), None);
    }

    #[test]
    fn go_leaves_a_goroutine_in_four_ways() {
        // mov 0x38(%rdx), %rbx; mov %rbx, %rsp; mov %rdi, %rdx; mov (%rdi), %rdi; call *%rdi
        let system =
            [0x48, 0x8b, 0x5a, 0x38, 0x48, 0x89, 0xdc, 0x48, 0x89, 0xfa, 0x48, 0x8b, 0x3f, 0xff, 0xd7];
        assert_eq!(leaves_goroutine(&system), Some(Switch::System));
        // mov 0x38(%rbx), %rsp; call
        assert_eq!(leaves_goroutine(&[0x48, 0x8b, 0x63, 0x38, 0xe8, 1, 2, 3, 4]), Some(Switch::Grown));
        // mov 0x38(%r14), %rsp; push %rax; mov (%rdx), %r12; call *%r12
        let parked = [0x49, 0x8b, 0x66, 0x38, 0x50, 0x4c, 0x8b, 0x22, 0x41, 0xff, 0xd4];
        assert_eq!(leaves_goroutine(&parked), Some(Switch::Parked));
        assert_eq!(leaves_goroutine(&parked[4..]), None);
        // mov 0x38(%rsi), %rsp; ...; call *%rax
        assert_eq!(leaves_goroutine(&[0x48, 0x8b, 0x66, 0x38, 0x90, 0xff, 0xd0]), Some(Switch::Foreign));
        // mov 0x38(%rsp), %rax; call *%rax
        assert_eq!(leaves_goroutine(&[0x48, 0x8b, 0x44, 0x24, 0x38, 0xff, 0xd0]), None);
    }

    #[test]
    fn code_that_returns_from_a_signal_is_recognised() {
        let code = [0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05];
        assert_eq!(recognise(&[], &code), Some(Landmark::SignalReturn));
        assert_eq!(recognise(&[], &[0x48, 0xc7, 0xc0, 14, 0, 0, 0, 0x0f, 0x05]), None);
        assert_eq!(recognise(&[], &[]), None);
    }

    #[test]
    fn musl_starts_a_thread_behind_a_system_call() {
        // mov 8(%rbx), %rdi; call *(%rbx) | mov %rax, %rdi; call
        let by_rbx = [0x0f, 0x05, 0x48, 0x8b, 0x7b, 8, 0xff, 0x13];
        let by_r14 = [0x0f, 0x05, 0x49, 0x8b, 0x7e, 8, 0x41, 0xff, 0x16];
        let by_rbp = [0x0f, 0x05, 0x48, 0x8b, 0x7d, 8, 0xff, 0x55, 0];
        let exit = [0x48, 0x89, 0xc7, 0xe8, 0, 0, 0, 0];
        assert!([&by_rbx[..], &by_r14, &by_rbp].iter().all(|before| starts_thread(before, &exit)));
        // A callback of any program: no system call comes before it.
        assert!(!starts_thread(&[0x90, 0x90, 0x48, 0x8b, 0x7b, 8, 0xff, 0x13], &exit));
        // Another register is called than holds the argument.
        assert!(!starts_thread(&[0x0f, 0x05, 0x48, 0x8b, 0x7b, 8, 0xff, 0x16], &exit));
        assert!(!starts_thread(&by_rbx, &[0x48, 0x89, 0xc3, 0xe8]));
    }

    #[test]
    fn the_start_of_musl_passes_the_result_of_main_to_exit() {
        // mov %eax, %edi; call exit; nop; then lea start(%rip), %rax; pop %rbp; pop %r12; pop %r13; jmp *%rax
        let start = 0x1ad8a_u64;
        let mut code = vec![0x89, 0xc7, 0xe8, 0xff, 0xa2, 0xff, 0xff];
        code.resize(0x3c, 0x90);
        code.extend([0x48, 0x8d, 0x05, 0x93, 0xff, 0xff, 0xff, 0x5d, 0x41, 0x5c, 0x41, 0x5d, 0xff, 0xe0]);
        code.resize(AHEAD_OF_START, 0x90);
        assert!(starts_program(start, &code));
        // Nothing jumps there; it jumps elsewhere; it is another call.
        for (at, byte) in [(0x3c + 13, 0xe1), (0x3c + 3, 0x13), (0, 0x88)] {
            let mut other = code.clone();
            other[at] = byte;
            assert!(!starts_program(start, &other), "{at}");
        }
        assert!(!starts_program(start, &code[..7]));
    }
}
