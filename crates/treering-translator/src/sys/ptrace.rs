//! Tracing with ptrace: registers, signals and stops of other threads.

use std::io;
use std::mem::MaybeUninit;
use std::sync::OnceLock;

use treering_x86::Register;

use super::memory::read_memory;

/// The general registers of a stopped thread.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Registers(pub(crate) libc::user_regs_struct);

impl Registers {
    /// The value of a register.
    pub(crate) fn get(&self, register: Register) -> u64 {
        let r = &self.0;
        [
            r.rax, r.rcx, r.rdx, r.rbx, r.rsp, r.rbp, r.rsi, r.rdi, r.r8, r.r9, r.r10, r.r11, r.r12, r.r13,
            r.r14, r.r15,
        ][usize::from(register.number())]
    }

    /// Their bytes in the kernel's layout (`struct user_regs_struct`).
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let r = &self.0;
        let words = [
            r.r15, r.r14, r.r13, r.r12, r.rbp, r.rbx, r.r11, r.r10, r.r9, r.r8, r.rax, r.rcx, r.rdx, r.rsi,
            r.rdi, r.orig_rax, r.rip, r.cs, r.eflags, r.rsp, r.ss, r.fs_base, r.gs_base, r.ds, r.es, r.fs,
            r.gs,
        ];
        words.into_iter().flat_map(u64::to_le_bytes).collect()
    }

    /// Sets the value of a register.
    pub(crate) fn set(&mut self, register: Register, value: u64) {
        let r = &mut self.0;
        *[
            &mut r.rax, &mut r.rcx, &mut r.rdx, &mut r.rbx, &mut r.rsp, &mut r.rbp, &mut r.rsi, &mut r.rdi,
            &mut r.r8, &mut r.r9, &mut r.r10, &mut r.r11, &mut r.r12, &mut r.r13, &mut r.r14, &mut r.r15,
        ][usize::from(register.number())] = value;
    }
}

/// A signal with the information that the kernel gives a handler.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SignalInfo(pub(crate) libc::siginfo_t);

impl SignalInfo {
    /// The address of a fault.
    pub(crate) fn address(&self) -> u64 {
        // SAFETY: the field of the union is read as a plain number, which any bytes are.
        unsafe { self.0.si_addr() as u64 }
    }

    /// The same with another address.
    pub(crate) fn with_address(mut self, address: u64) -> Self {
        const ADDRESS_AT: usize = 16;
        let bytes = std::ptr::from_mut(&mut self.0).cast::<u8>();
        // SAFETY: the structure has 128 bytes, and the address of a fault stands at byte 16
        // (`_sigfault._addr` of the kernel's x86-64 layout).
        unsafe { bytes.add(ADDRESS_AT).cast::<u64>().write_unaligned(address) };
        self
    }

    /// Where the signal comes from (`sigaction(2)`).
    pub(crate) fn origin(&self) -> Origin {
        const OF_FAULTS: [i32; 5] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP];
        match self.0.si_code {
            // A fault whose address is unknown says `SI_KERNEL` too.
            libc::SI_KERNEL if OF_FAULTS.contains(&self.0.si_signo) => Origin::Thread,
            libc::SI_KERNEL | libc::SI_TIMER | libc::SI_MESGQ | libc::SI_ASYNCIO | libc::SI_SIGIO => {
                Origin::Outside
            }
            // SAFETY: the field of the union is read as a plain number, which any bytes are.
            libc::SI_USER | libc::SI_QUEUE | libc::SI_TKILL => Origin::Process(unsafe { self.0.si_pid() }),
            _ => Origin::Thread,
        }
    }

    /// The information that [`send_again`] sends with a signal.
    pub(crate) fn sent_again(signal: i32) -> Self {
        const VALUE_AT: usize = 24;
        // SAFETY: the structure is plain bytes.
        let mut info = Self(unsafe { MaybeUninit::<libc::siginfo_t>::zeroed().assume_init() });
        info.0.si_signo = signal;
        info.0.si_code = libc::SI_QUEUE;
        let bytes = std::ptr::from_mut(&mut info.0).cast::<u8>();
        // SAFETY: the structure has 128 bytes, and the value of a queued signal stands at byte 24
        // (`_rt._sigval` of the kernel's x86-64 layout).
        unsafe { bytes.add(VALUE_AT).cast::<u64>().write_unaligned(AGAIN) };
        info
    }

    /// Whether it is a fault of the next instruction.
    pub(crate) fn is_of_instruction(&self) -> bool {
        const BEFORE: [i32; 4] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL];
        // A fault that the kernel itself raises may not be one of an instruction.
        BEFORE.contains(&self.0.si_signo) && (1..libc::SI_KERNEL).contains(&self.0.si_code)
    }

    /// Whether it reports a `PTRACE_EVENT_*` rather than a signal.
    fn is_of_event(&self, event: i32) -> bool {
        self.0.si_code == libc::SIGTRAP | event << 8
    }

    /// Whether it was sent to one thread, as by [`send_signal`].
    pub(crate) fn is_sent_to_thread(&self) -> bool {
        self.0.si_code == libc::SI_TKILL
    }

    /// Whether [`send_again`] sent the signal.
    pub(crate) fn is_sent_again(&self) -> bool {
        // SAFETY: the field of the union is read as a plain number, which any bytes are.
        self.0.si_code == libc::SI_QUEUE && unsafe { self.0.si_value().sival_ptr as u64 } == AGAIN
    }
}

/// The origin of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The thread's own action, or a child's.
    Thread,
    /// A timer or the kernel, independent of the program's present action.
    Outside,
    /// A process, by its number in the receiver's namespace.
    Process(i32),
}

/// The value sent with signals that are sent again: `treering` in ASCII, which no program sends.
const AGAIN: u64 = u64::from_be_bytes(*b"treering");

#[cfg(test)]
impl SignalInfo {
    /// The information of a kernel timer.
    pub(crate) fn of_kernel() -> Self {
        Self::sent_again(libc::SIGALRM).with_code(libc::SI_KERNEL)
    }

    /// The same with another code.
    pub(crate) fn with_code(mut self, code: i32) -> Self {
        self.0.si_code = code;
        self
    }

    /// The same from a process.
    pub(crate) fn with_sender(self, pid: i32) -> Self {
        // The sender's number takes the place of the lower half of a fault's address.
        self.with_address(u64::from(pid.cast_unsigned()))
    }
}

/// The events that the tracer asks to be reported.
const OPTIONS: i32 = libc::PTRACE_O_EXITKILL
    | libc::PTRACE_O_TRACESYSGOOD
    | libc::PTRACE_O_TRACECLONE
    | libc::PTRACE_O_TRACEFORK
    | libc::PTRACE_O_TRACEVFORK
    | libc::PTRACE_O_TRACEEXEC
    | libc::PTRACE_O_TRACEEXIT
    | libc::PTRACE_O_TRACESECCOMP;

fn ptrace(request: libc::c_uint, tid: i32, address: u64, data: u64) -> io::Result<()> {
    // SAFETY: used for requests that take numbers only, which the kernel checks.
    match unsafe { libc::ptrace(request, tid, address, data) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Begins to trace a process.
pub(crate) fn seize(pid: i32) -> io::Result<()> {
    ptrace(libc::PTRACE_SEIZE, pid, 0, OPTIONS as u64)
}

/// Begins to trace a thread that survives this process: it still runs its own code.
pub(crate) fn seize_running(tid: i32) -> io::Result<()> {
    ptrace(libc::PTRACE_SEIZE, tid, 0, libc::PTRACE_O_TRACESYSGOOD as u64)
}

/// Has the kernel kill the thread when this process ends, as it depends on this process from now on.
pub(crate) fn keep(tid: i32) -> io::Result<()> {
    ptrace(libc::PTRACE_SETOPTIONS, tid, 0, OPTIONS as u64)
}

/// Detaches from a stopped thread.
pub(crate) fn detach(tid: i32) -> io::Result<()> {
    ptrace(libc::PTRACE_DETACH, tid, 0, 0)
}

/// Stops a running thread as soon as possible.
pub(crate) fn interrupt(tid: i32) -> io::Result<()> {
    ptrace(libc::PTRACE_INTERRUPT, tid, 0, 0)
}

/// Resumes a thread, with a signal or 0.
pub(crate) fn resume(tid: i32, signal: i32) -> io::Result<()> {
    ptrace(libc::PTRACE_CONT, tid, 0, signal as u64)
}

/// Resumes a thread up to the next entry or exit of a system call.
pub(crate) fn resume_to_call(tid: i32, signal: i32) -> io::Result<()> {
    ptrace(libc::PTRACE_SYSCALL, tid, 0, signal as u64)
}

/// Delivers a signal and stops at the handler's first instruction.
pub(crate) fn resume_into_handler(tid: i32, signal: i32) -> io::Result<()> {
    ptrace(libc::PTRACE_SINGLESTEP, tid, 0, signal as u64)
}

/// Leaves a thread in the stop that its whole process is in.
pub(crate) fn listen(tid: i32) -> io::Result<()> {
    ptrace(libc::PTRACE_LISTEN, tid, 0, 0)
}

/// The number that an event reports, such as that of a new thread.
///
/// # Errors
/// `ESRCH` if the thread is no longer in that event's stop: it was killed, and the number would belong to its end.
pub(crate) fn event_message(tid: i32, event: i32) -> io::Result<u64> {
    let mut message = 0_u64;
    // SAFETY: the kernel writes one long to `message`.
    let got = unsafe { libc::ptrace(libc::PTRACE_GETEVENTMSG, tid, 0, &raw mut message) };
    if got == -1 {
        return Err(io::Error::last_os_error());
    }
    match signal_info(tid)?.is_of_event(event) {
        true => Ok(message),
        false => Err(io::Error::from_raw_os_error(libc::ESRCH)),
    }
}

/// Whether a stopped thread has been killed since: it is ending, or in the stop before its end.
pub(crate) fn is_dying(tid: i32) -> bool {
    match signal_info(tid) {
        Ok(info) => info.is_of_event(libc::PTRACE_EVENT_EXIT),
        Err(error) => error.raw_os_error() == Some(libc::ESRCH),
    }
}

/// The registers of a stopped thread.
pub(crate) fn registers(tid: i32) -> io::Result<Registers> {
    let mut registers = MaybeUninit::<libc::user_regs_struct>::zeroed();
    // SAFETY: the kernel fills the structure; all its fields are numbers.
    unsafe {
        match libc::ptrace(libc::PTRACE_GETREGS, tid, 0, registers.as_mut_ptr()) {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(Registers(registers.assume_init())),
        }
    }
}

/// Sets a stopped thread's registers.
pub(crate) fn set_registers(tid: i32, registers: &Registers) -> io::Result<()> {
    // SAFETY: the kernel reads the structure.
    match unsafe { libc::ptrace(libc::PTRACE_SETREGS, tid, 0, &raw const registers.0) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// The lower sixteen bytes of a stopped thread's register xmm15, lowest first.
pub(crate) fn vector(tid: i32) -> io::Result<[u64; 2]> {
    let all = vectors(tid)?;
    let word = |at: usize| u64::from(all.xmm_space[60 + at]) | u64::from(all.xmm_space[61 + at]) << 32;
    Ok([word(0), word(2)])
}

/// Sets a stopped thread's register xmm15.
pub(crate) fn set_vector(tid: i32, value: [u64; 2]) -> io::Result<()> {
    let mut all = vectors(tid)?;
    for (at, word) in value.into_iter().enumerate() {
        all.xmm_space[60 + at * 2] = word as u32;
        all.xmm_space[61 + at * 2] = (word >> 32) as u32;
    }
    // SAFETY: the kernel reads the structure.
    match unsafe { libc::ptrace(libc::PTRACE_SETFPREGS, tid, 0, &raw const all) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// All 64 bytes of a stopped thread's register zmm15, lowest first; parts that the processor does not have are 0.
pub(crate) fn whole_vector(tid: i32) -> io::Result<[u64; 8]> {
    let (state, places) = extended_state(tid)?;
    let mut whole = [0; 8];
    for (word, place) in whole.iter_mut().zip(places) {
        if let Some(place) = place.filter(|place| state[STATES_AT] & place.component != 0) {
            *word = state[place.word];
        }
    }
    Ok(whole)
}

/// Sets a stopped thread's register zmm15, as far as the processor has it.
pub(crate) fn set_whole_vector(tid: i32, whole: &[u64; 8]) -> io::Result<()> {
    let (mut state, places) = extended_state(tid)?;
    for (&word, place) in whole.iter().zip(places) {
        // A component that is 0 in all registers may be absent.
        if let Some(place) = place.filter(|place| word != 0 || state[STATES_AT] & place.component != 0) {
            state[STATES_AT] |= place.component;
            state[place.word] = word;
        }
    }
    let vector = libc::iovec { iov_base: state.as_mut_ptr().cast(), iov_len: state.len() * 8 };
    // SAFETY: the kernel reads as many bytes of the state as it had written.
    match unsafe { libc::ptrace(libc::PTRACE_SETREGSET, tid, EXTENDED_STATE, &raw const vector) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// `NT_PRSTATUS`: the general registers.
pub(crate) const GENERAL: libc::c_long = 1;
/// `NT_PRFPREG`
pub(crate) const FLOATING_POINT: libc::c_long = 2;

/// A set of a stopped thread's registers in the kernel's layout.
pub(crate) fn register_set(tid: i32, set: libc::c_long) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0_u8; 1 << 14];
    let mut vector = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    // SAFETY: the kernel writes at most as many bytes as there are, and says how many.
    match unsafe { libc::ptrace(libc::PTRACE_GETREGSET, tid, set, &raw mut vector) } {
        -1 => Err(io::Error::last_os_error()),
        _ => {
            bytes.truncate(vector.iov_len);
            Ok(bytes)
        }
    }
}

/// `NT_X86_XSTATE`
const EXTENDED_STATE: libc::c_long = 0x202;
/// The word of the state that lists its components (Intel SDM volume 1, 13.4.2).
const STATES_AT: usize = 512 / 8;

/// The place of a register's word in the state.
#[derive(Clone, Copy)]
struct VectorPlace {
    component: u64,
    word: usize,
}

/// A thread's state in the layout of `xsave`, and the places of zmm15's words there: in the components of
/// SSE, AVX and AVX-512, if the state has them.
fn extended_state(tid: i32) -> io::Result<(Vec<u64>, [Option<VectorPlace>; 8])> {
    let mut state = vec![0_u64; 2048];
    let mut vector = libc::iovec { iov_base: state.as_mut_ptr().cast(), iov_len: state.len() * 8 };
    // SAFETY: the kernel writes at most as many bytes as there are, and says how many.
    if unsafe { libc::ptrace(libc::PTRACE_GETREGSET, tid, EXTENDED_STATE, &raw mut vector) } == -1 {
        return Err(io::Error::last_os_error());
    }
    state.truncate(vector.iov_len / 8);
    let length = state.len();
    // The component's number, the offset of the register's part there, and that part's words.
    const SSE: (u32, usize, usize) = (1, 160 / 8, 2);
    // In a virtual machine, `cpuid` takes a thousand times longer than elsewhere.
    static PLACES: OnceLock<[usize; 2]> = OnceLock::new();
    let [avx, upper] = *PLACES.get_or_init(|| [2, 6].map(component_at));
    let (avx, upper) = ((2, avx, 2), (6, upper, 4));
    let place = |word: usize| {
        let ((number, start, words), first) = match word {
            0 | 1 => (SSE, 0),
            2 | 3 => (avx, 2),
            _ => (upper, 4),
        };
        let place = VectorPlace { component: 1 << number, word: start + 15 * words + word - first };
        (start != 0 && place.word < length).then_some(place)
    };
    Ok((state, std::array::from_fn(place)))
}

/// The offset of a component, in words; 0 if the processor has none (Intel SDM volume 1, 13.2).
fn component_at(number: u32) -> usize {
    std::arch::x86_64::__cpuid_count(0xd, number).ebx as usize / 8
}

fn vectors(tid: i32) -> io::Result<libc::user_fpregs_struct> {
    let mut all = MaybeUninit::<libc::user_fpregs_struct>::zeroed();
    // SAFETY: the kernel fills the structure; all its fields are numbers.
    unsafe {
        match libc::ptrace(libc::PTRACE_GETFPREGS, tid, 0, all.as_mut_ptr()) {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(all.assume_init()),
        }
    }
}

/// Requests that the C library's header lacks.
const PTRACE_GETSIGMASK: libc::c_uint = 0x420a;
const PTRACE_SETSIGMASK: libc::c_uint = 0x420b;
const PTRACE_GET_RSEQ_CONFIGURATION: libc::c_uint = 0x420f;

/// The signal that stopped a thread.
pub(crate) fn signal_info(tid: i32) -> io::Result<SignalInfo> {
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    // SAFETY: the kernel fills the structure; it is plain bytes.
    unsafe {
        match libc::ptrace(libc::PTRACE_GETSIGINFO, tid, 0, info.as_mut_ptr()) {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(SignalInfo(info.assume_init())),
        }
    }
}

/// The signals that a stopped thread blocks, as bits from the first signal on.
pub(crate) fn signal_mask(tid: i32) -> io::Result<u64> {
    let mut mask = 0_u64;
    // SAFETY: the kernel writes the given number of bytes.
    match unsafe { libc::ptrace(PTRACE_GETSIGMASK, tid, size_of::<u64>(), &raw mut mask) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(mask),
    }
}

/// Sets the signals that a stopped thread blocks.
pub(crate) fn set_signal_mask(tid: i32, mask: u64) -> io::Result<()> {
    // SAFETY: the kernel reads the given number of bytes.
    match unsafe { libc::ptrace(PTRACE_SETSIGMASK, tid, size_of::<u64>(), &raw const mask) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// A stopped thread's registration of restartable sequences: the address of its area, the area's length, and
/// the signature before each abort handler. Nothing if it has none.
pub(crate) fn restartable(tid: i32) -> io::Result<Option<(u64, u32, u32)>> {
    /// `struct ptrace_rseq_configuration`
    #[repr(C)]
    #[derive(Default)]
    struct Configuration {
        area: u64,
        length: u32,
        signature: u32,
        flags: u32,
        unused: u32,
    }
    let mut found = Configuration::default();
    // SAFETY: the kernel writes the given number of bytes.
    let got = unsafe {
        libc::ptrace(PTRACE_GET_RSEQ_CONFIGURATION, tid, size_of::<Configuration>(), &raw mut found)
    };
    match got {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok((found.area != 0).then_some((found.area, found.length, found.signature))),
    }
}

/// Changes the information that a handler will get.
pub(crate) fn set_signal_info(tid: i32, info: &SignalInfo) -> io::Result<()> {
    // SAFETY: the kernel reads the structure.
    match unsafe { libc::ptrace(libc::PTRACE_SETSIGINFO, tid, 0, &raw const info.0) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Sends a signal to one thread.
pub(crate) fn send_signal(pid: i32, tid: i32, signal: i32) {
    // SAFETY: sends a signal to a thread that we trace; if it has ended, nothing happens.
    unsafe { libc::syscall(libc::SYS_tgkill, pid, tid, signal) };
}

/// Sends a signal to one thread with its original information, as far as the kernel permits that.
pub(crate) fn send_signal_as(pid: i32, tid: i32, signal: i32, info: &SignalInfo) {
    // SAFETY: the kernel reads the structure; if the thread is gone, nothing happens.
    let sent = unsafe { libc::syscall(libc::SYS_rt_tgsigqueueinfo, pid, tid, signal, &raw const info.0) };
    if sent != 0 {
        send_signal(pid, tid, signal);
    }
}

/// Sends a signal that had to wait to one thread, and marks it as such.
pub(crate) fn send_again(pid: i32, tid: i32, signal: i32) {
    let info = SignalInfo::sent_again(signal);
    // SAFETY: the kernel reads the structure; if the thread is gone, nothing happens.
    unsafe { libc::syscall(libc::SYS_rt_tgsigqueueinfo, pid, tid, signal, &raw const info.0) };
}

/// The calling thread's number.
pub(crate) fn own_thread() -> i32 {
    // SAFETY: takes nothing and changes nothing.
    unsafe { libc::gettid() }
}

/// Ends a process that we started or trace.
pub(crate) fn kill(pid: i32) {
    // SAFETY: sends a signal to a process that is ours.
    unsafe { libc::kill(pid, libc::SIGKILL) };
}

/// Replaces eight bytes of a stopped thread's memory, even of code, and returns the old ones.
pub(crate) fn exchange_code(tid: i32, address: u64, value: u64) -> io::Result<u64> {
    let mut old = [0; 8];
    if read_memory(tid, address, &mut old) != 8 {
        return Err(io::Error::from_raw_os_error(libc::EFAULT));
    }
    ptrace(libc::PTRACE_POKEDATA, tid, address, value)?;
    Ok(u64::from_le_bytes(old))
}
