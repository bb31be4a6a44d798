//! Threads that trace other threads of their own process, as leak checkers do.
//!
//! LeakSanitizer stops its process through a helper thread, which attaches to every thread, reads its
//! registers, and detaches. The kernel would refuse, as all threads have a tracer already. So the tracer
//! answers in the kernel's place: it stops the attached thread, and gives the helper the program's registers.
//! If the helper dies, all threads are released, as the kernel would do.

use std::io;

use treering_profile::UncountedReason;

use crate::address_space::AddressSpace;
use crate::sys::layout::OWN_GS;
use crate::sys::{self, Registers, filter};
use crate::tracer::state::Tracer;
use crate::tracer::thread::{Call, State, Thread};
use treering_proc::status;

/// The status that `wait(2)` gives for an attached thread that has stopped.
const STOPPED: i32 = libc::SIGSTOP << 8 | 0x7f;

const SEES_NOTHING: &str = "its call of ptrace failed, since a counted process has a tracer already";

impl Tracer {
    /// A thread calls `ptrace`.
    pub(crate) fn traces(&mut self, tid: i32) -> io::Result<()> {
        let call = sys::registers(tid)?.0;
        let request = call.rdi as libc::c_uint;
        let Some(other) = self.of_same_memory(tid, call.rsi as i32) else { return self.refuse_tracing(tid) };
        let tracer = self.threads.get(&other).and_then(|thread| thread.role.tracer);
        match request {
            libc::PTRACE_ATTACH if tracer.is_none() => return self.attach_own(tid, other),
            libc::PTRACE_ATTACH => return self.answer(tid, -i64::from(libc::EPERM)),
            _ if tracer != Some(tid) => return self.answer(tid, -i64::from(libc::ESRCH)),
            _ => {}
        }
        let Some(shown) = self.threads.get(&other).and_then(|thread| thread.role.shown.as_deref().copied())
        else {
            return self.answer(tid, -i64::from(libc::ESRCH));
        };
        let written = |address: u64, bytes: &[u8]| {
            let is_written = sys::write_memory(tid, address, bytes);
            if is_written { 0 } else { -i64::from(libc::EFAULT) }
        };
        let answer = match request {
            libc::PTRACE_GETREGS => written(call.r10, &shown.bytes()),
            libc::PTRACE_GETFPREGS => written(call.r10, &sys::register_set(other, sys::FLOATING_POINT)?),
            libc::PTRACE_GETREGSET => {
                let set = match call.rdx as i64 {
                    sys::GENERAL => Ok(shown.bytes()),
                    set => sys::register_set(other, set),
                };
                match set {
                    Ok(set) => give_set(tid, call.r10, &set),
                    Err(error) => -i64::from(error.raw_os_error().unwrap_or(libc::EINVAL)),
                }
            }
            libc::PTRACE_PEEKTEXT | libc::PTRACE_PEEKDATA => {
                let mut word = [0; 8];
                match sys::read_memory(other, call.rdx, &mut word) {
                    8 => written(call.r10, &word),
                    _ => -i64::from(libc::EIO),
                }
            }
            libc::PTRACE_CONT | libc::PTRACE_DETACH => {
                if request == libc::PTRACE_DETACH
                    && let Some(thread) = self.threads.get_mut(&other)
                {
                    thread.role.tracer = None;
                }
                let pid = self.process_of(other);
                if call.r10 != 0 {
                    sys::send_signal(pid, other, call.r10 as i32);
                }
                self.let_go_on(other)?;
                0
            }
            libc::PTRACE_KILL => {
                sys::kill(self.process_of(other));
                0
            }
            _ => return self.refuse_tracing(tid),
        };
        self.answer(tid, answer)
    }

    /// A tracing thread waits for others.
    pub(crate) fn waits_for_own(&mut self, tid: i32) -> io::Result<()> {
        let call = sys::registers(tid)?.0;
        let Some(other) = self.of_same_memory(tid, call.rdi as i32) else { return sys::resume(tid, 0) };
        let Some(role) = self.threads.get(&other).map(|thread| &thread.role) else {
            return sys::resume(tid, 0);
        };
        if role.tracer != Some(tid) {
            return sys::resume(tid, 0);
        }
        if role.shown.is_some() {
            let told = call.rsi == 0 || sys::write_memory(tid, call.rsi, &STOPPED.to_le_bytes());
            let number = call.rdi as i64;
            return self.answer(tid, if told { number } else { -i64::from(libc::EFAULT) });
        }
        if call.rdx & libc::WNOHANG as u64 != 0 {
            return self.answer(tid, 0);
        }
        // It continues when an attached thread has stopped.
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.role.waits = true;
        }
        Ok(())
    }

    /// Whether a thread that has stopped stays stopped, because another thread has attached to it.
    pub(crate) fn stands_still(&mut self, tid: i32) -> io::Result<bool> {
        let Some(role) = self.threads.get(&tid).map(|thread| &thread.role) else { return Ok(false) };
        let Some(tracer) = role.tracer else { return Ok(false) };
        if role.shown.is_some() {
            return Ok(true);
        }
        let shown = self.with(tid, false, |stop, registers| {
            if stop.thread.state != State::Running {
                return Ok(None);
            }
            let in_call = registers.0.orig_rax as i64 >= 0;
            let lent = stop.space.lent(registers.0.rip).filter(|_| !in_call);
            let known = stop.restore_program_state(registers)?;
            if let Some(lent) = lent {
                stop.space.areas.return_count(stop.thread.area, lent, tid)?;
            }
            let shown = of_program(stop.space, stop.thread, registers);
            // In a system call, the kernel continues behind the call, where a block ends anyway.
            if known && !in_call {
                stop.continue_translated(registers)?;
            }
            Ok(Some(shown))
        })?;
        let Some(shown) = shown.flatten() else {
            // The thread is in a state that ends by itself; it is stopped again afterwards.
            sys::interrupt(tid)?;
            return Ok(false);
        };
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.role.shown = Some(Box::new(shown));
        }
        self.wake(tracer)?;
        Ok(true)
    }

    /// A thread has ended, or has become another program: the threads that it attached to continue, and its
    /// tracer stops waiting for it.
    pub(crate) fn end_role(&mut self, tid: i32) {
        let Some(role) = self.threads.get_mut(&tid).map(|thread| std::mem::take(&mut thread.role)) else {
            return;
        };
        // Threads that have ended report it themselves.
        if let Some(tracer) = role.tracer {
            let _ = self.wake(tracer);
        }
        if !role.waits_stop {
            // It has never attached to any.
            return;
        }
        let of_it = |thread: &&Thread| thread.role.tracer == Some(tid);
        let left: Vec<i32> = self.threads.values().filter(of_it).map(|thread| thread.tid).collect();
        for other in left {
            if let Some(thread) = self.threads.get_mut(&other) {
                thread.role.tracer = None;
            }
            let _ = self.let_go_on(other);
        }
    }

    /// Our number for a thread, given the number in the namespace of a helper with the same memory. Nothing
    /// if the helper is a thread of that process: the kernel lets no thread trace its own process.
    fn of_same_memory(&self, tid: i32, number: i32) -> Option<i32> {
        let helper = self.threads.get(&tid).filter(|thread| thread.borrows && thread.space.is_some())?;
        let is_other = |thread: &&Thread| thread.space == helper.space && thread.pid != helper.pid;
        if status::shares_names(tid) {
            return self.threads.get(&number).filter(is_other).map(|thread| thread.tid);
        }
        let is_named =
            |thread: &&Thread| treering_proc::inner_pid(thread.tid) == Some(number.cast_unsigned());
        self.threads.values().filter(is_other).find(is_named).map(|thread| thread.tid)
    }

    fn refuse_tracing(&mut self, tid: i32) -> io::Result<()> {
        let pid = self.process_of(tid);
        self.note(UncountedReason::Traced, pid, SEES_NOTHING.to_owned());
        sys::resume(tid, 0)
    }

    fn attach_own(&mut self, tid: i32, other: i32) -> io::Result<()> {
        self.with(tid, true, |stop, registers| {
            if !std::mem::replace(&mut stop.thread.role.waits_stop, true) {
                stop.stopped.remotely(filter::install_for_waiting)?;
            } else {
                let registers = *registers;
                stop.stopped.skip_call(&registers)?;
            }
            (registers.0.rax, registers.0.orig_rax) = (0, u64::MAX);
            sys::set_registers(tid, registers)
        })?;
        if let Some(thread) = self.threads.get_mut(&other) {
            thread.role.tracer = Some(tid);
        }
        // A thread that has ended meanwhile reports it itself.
        let _ = sys::interrupt(other);
        self.resume(tid)
    }

    /// Lets a stopped thread continue.
    fn let_go_on(&mut self, tid: i32) -> io::Result<()> {
        let stood = self.threads.get_mut(&tid).and_then(|thread| thread.role.shown.take());
        if stood.is_some() { self.resume(tid) } else { Ok(()) }
    }

    /// Checks again whether a thread's waiting is over.
    fn wake(&mut self, tid: i32) -> io::Result<()> {
        let waited = self.threads.get_mut(&tid).is_some_and(|thread| std::mem::take(&mut thread.role.waits));
        if waited { self.waits_for_own(tid) } else { Ok(()) }
    }

    /// Answers a call in the kernel's place.
    fn answer(&mut self, tid: i32, result: i64) -> io::Result<()> {
        let mut registers = sys::registers(tid)?;
        registers.0.orig_rax = u64::MAX;
        sys::set_registers(tid, &registers)?;
        self.set_state(tid, State::InCall(Call::Answered(result as u64)));
        sys::resume_to_call(tid, 0)
    }
}

/// The program's registers of a thread.
fn of_program(space: &AddressSpace, thread: &Thread, presented: &Registers) -> Registers {
    let mut shown = *presented;
    shown.0.rip = space.cache.address_of(shown.0.rip).unwrap_or(shown.0.rip);
    shown.0.gs_base = space.areas.slot(thread.area, OWN_GS);
    shown
}

/// Copies a register set to the buffer of a `struct iovec`, as much as fits, and stores its length there.
fn give_set(tid: i32, vector: u64, set: &[u8]) -> i64 {
    let mut bytes = [0; 16];
    if sys::read_memory(tid, vector, &mut bytes) != bytes.len() {
        return -i64::from(libc::EFAULT);
    }
    let (words, _) = bytes.as_chunks();
    let [place, room] = std::array::from_fn(|word| u64::from_le_bytes(words[word]));
    let length = set.len().min(room as usize);
    let is_written = (length == 0 || sys::write_memory(tid, place, &set[..length]))
        && sys::write_memory(tid, vector + 8, &(length as u64).to_le_bytes());
    if is_written { 0 } else { -i64::from(libc::EFAULT) }
}
