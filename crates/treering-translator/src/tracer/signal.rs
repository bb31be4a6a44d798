//! Signals, and the system calls that stop at the tracer.

use std::io;

use treering_profile::BranchKind;

use crate::sys::remote_syscall::HeldSignal;
use crate::sys::{self};
use crate::tracer::rseq::Restartable;
use crate::tracer::signal_throttle::Admission;
use crate::tracer::state::Tracer;
use crate::tracer::syscall::skip;
use crate::tracer::thread::{Call, State, Verdict};
use treering_proc::status::has_signal;

impl Tracer {
    /// A system call has stopped at the filter.
    pub(crate) fn before_call(&mut self, tid: i32) -> io::Result<()> {
        // A wait that goes on has been watched before.
        let is_waiting = self.is_waiting(tid);
        let verdict = self.with(tid, true, |stop, registers| {
            if stop.space.surroundings.is_any_held()
                && !is_waiting
                && let Some(verdict) = stop.held_call(registers)?
            {
                return Ok(verdict);
            }
            if registers.0.orig_rax == libc::SYS_rseq as u64 {
                let result = Restartable::answer(registers, &mut stop.thread.restartable);
                return skip(registers, result, stop.stopped);
            }
            let verdict = stop.before_call(registers)?;
            if verdict == Verdict::Watch(Call::HandlerReturn) {
                stop.space.areas.keep_count(stop.thread.area, tid)?;
            }
            Ok(verdict)
        })?;
        self.note_warnings(tid);
        match verdict {
            Some(Verdict::Go) if self.is_waiting(tid) => sys::resume_to_call(tid, 0),
            None | Some(Verdict::Go) => sys::resume(tid, 0),
            Some(Verdict::Limit) => self.limit_call(tid),
            Some(Verdict::Rules) => self.rules_call(tid),
            Some(Verdict::Unbind) => {
                self.affinity.part();
                sys::resume(tid, 0)
            }
            Some(Verdict::Trace) => self.traces(tid),
            Some(Verdict::Wait) => self.waits_for_own(tid),
            Some(Verdict::Watch(call)) => {
                self.set_state(tid, State::InCall(call));
                sys::resume_to_call(tid, 0)
            }
            Some(Verdict::Opens) => self.opens(tid),
            Some(Verdict::Refuse(why)) => Err(io::Error::other(why)),
        }
    }

    /// A watched system call has returned.
    pub(crate) fn call_done(&mut self, tid: i32) -> io::Result<()> {
        let state = self.threads.get(&tid).map(|thread| thread.state);
        let Some(State::InCall(call)) = state else { return sys::resume(tid, 0) };
        self.set_state(tid, State::Running);
        if let Call::Waits { is_entered, again } = call {
            return if self.waits_on(tid, is_entered, again)? { Ok(()) } else { self.resume(tid) };
        }
        let mut action = None;
        self.with(tid, false, |stop, registers| {
            match (call, registers.0.rax) {
                (Call::FaultAction(said), 0) => action = Some((stop.thread.pid, said)),
                (Call::Filtered(_), 0) => stop.thread.own_rules.filters = true,
                _ => {}
            }
            if call != Call::HandlerReturn {
                return stop.after_call(call, registers);
            }
            // The kernel has loaded the registers that the handler returns to.
            let target = registers.0.rip;
            stop.thread.slow_path.note_transfer(BranchKind::SignalReturn, None, Some(target));
            stop.space.areas.leave_signal(stop.thread.area, tid)?;
            stop.thread.throttle.end();
            if let Some(entry) = stop.enter(target)? {
                registers.0.rip = entry;
                sys::set_registers(tid, registers)?;
            }
            Ok(())
        })?;
        self.fault_actions.extend(action);
        if call == Call::OpenedMemory {
            self.opened_memory(tid)?;
        }
        self.resume(tid)
    }

    /// A thread asks for what it restricts itself to, or gives up gaining privileges. The tracer had it do the latter,
    /// and gave it a filter.
    fn rules_call(&mut self, tid: i32) -> io::Result<()> {
        let is_attached = self.attached.is_some();
        let answered = self.with(tid, true, |stop, registers| {
            let (rules, r) = (&mut stop.thread.own_rules, &registers.0);
            let answer = match r.rdi as i32 {
                libc::PR_GET_SECCOMP => i32::from(rules.filters) * MODE_FILTER,
                libc::PR_GET_NO_NEW_PRIVS if [r.rsi, r.rdx, r.r10, r.r8] == [0; 4] && !is_attached => {
                    i32::from(rules.no_new_privileges)
                }
                libc::PR_SET_NO_NEW_PRIVS => {
                    rules.no_new_privileges |= [r.rsi, r.rdx, r.r10, r.r8] == [1, 0, 0, 0];
                    return Ok(None);
                }
                _ => return Ok(None),
            };
            skip(registers, answer, stop.stopped).map(Some)
        })?;
        match answered.flatten() {
            Some(Verdict::Watch(call)) => {
                self.set_state(tid, State::InCall(call));
                sys::resume_to_call(tid, 0)
            }
            _ => sys::resume(tid, 0),
        }
    }

    /// Whether a thread waits in a call that was made again.
    fn is_waiting(&self, tid: i32) -> bool {
        let state = self.threads.get(&tid).map(|thread| thread.state);
        matches!(state, Some(State::InCall(Call::Waits { is_entered: true, .. })))
    }

    pub(crate) fn set_state(&mut self, tid: i32, state: State) {
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.state = state;
        }
    }

    /// A signal is about to be delivered, or a handler is about to run.
    pub(crate) fn signal(&mut self, tid: i32, signal: i32) -> io::Result<()> {
        self.restore_info(tid, signal)?;
        self.take_call_back(tid)?;
        let info = sys::signal_info(tid)?;
        self.note_stopping(tid, signal, info.origin());
        let again = self.threads.get_mut(&tid).and_then(|thread| thread.throttle.again(signal, &info));
        if let Some(admission) = again {
            // Without the tracer, the handler would have been called before the program removed it.
            let is_late = !is_caught(tid, signal);
            return self.admit(tid, signal, if is_late { Admission::Merged } else { admission });
        }
        if self.threads.get(&tid).is_none_or(|thread| thread.space.is_none()) {
            return sys::resume(tid, signal);
        }
        let state = self.threads.get(&tid).map(|thread| thread.state);
        if let (libc::SIGTRAP, Some(State::EnteringHandler { from, traps })) = (signal, state)
            && self.enter_handler(tid, from, traps)?
        {
            return self.resume(tid);
        }
        if signal == libc::SIGSEGV && self.is_ours(tid)? {
            self.restore_fault_action(tid)?;
            return self.resume(tid);
        }
        let Some(thread) = self.threads.get_mut(&tid) else { return sys::resume(tid, signal) };
        if is_caught(tid, signal) {
            let admission = thread.throttle.admit(HeldSignal { signal, info }, thread.pid);
            return self.admit(tid, signal, admission);
        }
        if self.ends_first_process(tid, signal)? {
            return self.end_first_process(tid, signal);
        }
        if self.goes_on_waiting(tid, signal)? {
            return Ok(());
        }
        self.admit(tid, signal, Admission::Now)
    }

    /// Delivers a signal, or delays it.
    fn admit(&mut self, tid: i32, signal: i32, admission: Admission) -> io::Result<()> {
        match admission {
            Admission::Merged => return self.resume_merged(tid, signal),
            Admission::At(due) => {
                let pid = self.process_of(tid);
                if self.delayed_signals.send((pid, tid, signal, due)) {
                    return sys::resume(tid, 0);
                }
            }
            Admission::As(info) => sys::set_signal_info(tid, &info)?,
            Admission::Now => {}
        }
        if self.counted(tid).is_some() && is_caught(tid, signal) {
            self.deliver(tid, signal)
        } else {
            sys::resume(tid, signal)
        }
    }

    /// Gives a signal that was held its original information.
    fn restore_info(&mut self, tid: i32, signal: i32) -> io::Result<()> {
        // A signal sent while another of its kind was pending was merged with that one.
        if !sys::signal_info(tid)?.is_sent_to_thread() {
            return Ok(());
        }
        let Some(thread) = self.threads.get_mut(&tid) else { return Ok(()) };
        let Some(at) = thread.sent.iter().position(|sent| sent.signal == signal) else { return Ok(()) };
        let sent = thread.sent.remove(at);
        sys::set_signal_info(tid, &sent.info)
    }

    /// The kernel has prepared a handler's first instruction. Returns whether that is so.
    fn enter_handler(&mut self, tid: i32, from: u64, traps: bool) -> io::Result<bool> {
        let entered = self.with(tid, false, |stop, registers| {
            if stop.space.cache.unit_of(registers.0.rip).is_some() {
                return Ok(false);
            }
            stop.thread.state = State::Running;
            stop.thread.throttle.enter();
            if !traps {
                end_stepping(tid, registers.0.rdx);
            }
            let handler = registers.0.rip;
            stop.thread.slow_path.note_transfer(BranchKind::Signal, Some(from), Some(handler));
            stop.space.areas.enter_signal(stop.thread.area, registers, &stop.space.program, stop.stopped)?;
            if let Some(entry) = stop.enter(handler)? {
                registers.0.rip = entry;
                sys::set_registers(tid, registers)?;
            }
            Ok(true)
        })?;
        Ok(entered.unwrap_or(false))
    }

    /// Whether a fault is caused by the tracer, not by the program: a write to code that is write-protected,
    /// or control that reached the original code.
    fn is_ours(&mut self, tid: i32) -> io::Result<bool> {
        const NOT_MAPPED: i32 = 1;
        const ACCESS: i32 = 2;
        let info = sys::signal_info(tid)?;
        if info.0.si_code != ACCESS {
            return Ok(false);
        }
        let address = info.address();
        let ours = self.with(tid, false, |stop, registers| {
            if stop.space.areas.is_behind_frames(stop.thread.area, address) {
                stop.space.areas.give_frames(stop.thread.area, address, registers, stop.stopped)?;
                return Ok(true);
            }
            if stop.space.program.regions.is_protected(address) {
                let own = stop.space.cache.address_of(registers.0.rip);
                let in_page = own.is_some_and(|own| own & !0xfff == address & !0xfff);
                if in_page {
                    stop.space.program.regions.set_own_writer(address);
                }
                let released = stop.space.release_written(address, stop.stopped)?;
                if in_page {
                    let lent = stop.space.lent(registers.0.rip);
                    stop.restore_program_state(registers)?;
                    if let Some(lent) = lent {
                        stop.space.areas.return_count(stop.thread.area, lent, tid)?;
                    }
                    let at = registers.0.rip;
                    stop.thread.slow_path.note_transfer(BranchKind::Other, None, Some(at));
                    registers.0.rip = stop.enter(at)?.unwrap_or(at);
                    sys::set_registers(tid, registers)?;
                }
                return Ok(released);
            }
            if registers.0.rip != address {
                // Two threads may write to a page at the same time. For the later one, the page is writable
                // by now, and the thread only tries again.
                let released = stop.space.program.regions.find(address).is_some_and(|region| region.writable);
                return Ok(released && treering_proc::is_writable(tid, address)?);
            }
            if !stop.space.program.regions.contains(address) {
                return Ok(false);
            }
            if let Some(end) = stop.space.program.regions.end_within(address, stop.stopped) {
                // The fault is where the rest of the instruction is not.
                let is_mapped =
                    treering_proc::mappings(tid)?.iter().any(|part| (part.start..part.end).contains(&end));
                let mut info = info.with_address(end);
                info.0.si_code = if is_mapped { ACCESS } else { NOT_MAPPED };
                sys::set_signal_info(tid, &info)?;
                return Ok(false);
            }
            let Some(entry) = stop.enter(address)? else { return Ok(false) };
            stop.thread.slow_path.note_transfer(BranchKind::Other, None, Some(address));
            registers.0.rip = entry;
            sys::set_registers(tid, registers)?;
            Ok(true)
        })?;
        Ok(ours.unwrap_or(false))
    }

    /// Restores the handler of a fault that the tracer caused. If the program blocks or ignores the signal,
    /// the kernel has reset its handler and unblocked it before it reported the fault.
    fn restore_fault_action(&mut self, tid: i32) -> io::Result<()> {
        let pid = self.process_of(tid);
        let Some(&action) = self.fault_actions.get(&pid) else { return Ok(()) };
        let is_handled = match action[0] as usize {
            libc::SIG_DFL => true,
            libc::SIG_IGN => has_signal(tid, "SigIgn", libc::SIGSEGV),
            _ => is_caught(tid, libc::SIGSEGV),
        };
        if is_handled {
            return Ok(());
        }
        let bytes: Vec<u8> = action.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.with(tid, false, |stop, _| {
            stop.stopped.remotely(|calls| {
                let arguments = |at| [libc::SIGSEGV as u64, at, 0, size_of::<u64>() as u64, 0, 0];
                calls.call_with_bytes(libc::SYS_rt_sigaction, &bytes, arguments)
            })
        })?;
        if action[0] as usize != libc::SIG_IGN {
            let blocked = sys::signal_mask(tid)? | 1 << (libc::SIGSEGV - 1);
            sys::set_signal_mask(tid, blocked)?;
        }
        Ok(())
    }

    /// Forgets a handler that is for one fault only, as the kernel does when it calls it.
    fn note_delivered_fault(&mut self, tid: i32) {
        let pid = self.process_of(tid);
        if let Some([handler, flags, ..]) = self.fault_actions.get_mut(&pid)
            && *flags as u32 & libc::SA_RESETHAND as u32 != 0
        {
            *handler = libc::SIG_DFL as u64;
        }
    }

    /// Delivers a signal that has a handler, with the program's own registers.
    fn deliver(&mut self, tid: i32, signal: i32) -> io::Result<()> {
        let info = sys::signal_info(tid)?;
        let mut traps = false;
        let from = self.with(tid, false, |stop, registers| {
            stop.thread.throttle.begin();
            stop.thread.waits_until = None;
            let before = registers.0.rip;
            let lent = stop.space.lent(before);
            if !stop.restore_program_state(registers)? {
                return Err(io::Error::other(format!("a signal came at an unknown place ({before:#x})")));
            }
            traps = registers.0.eflags & TRAP_FLAG != 0;
            if traps && signal == libc::SIGTRAP && info.0.si_code == libc::TRAP_TRACE {
                return Err(io::Error::other("it steps through its own instructions (trap flag)"));
            }
            sys::set_registers(tid, registers)?;
            stop.space.areas.interrupt(stop.thread.area, lent, registers, tid)?;
            if info.0.si_code > 0 && info.address() == before {
                sys::set_signal_info(tid, &info.with_address(registers.0.rip))?;
            }
            Ok(registers.0.rip)
        })?;
        if signal == libc::SIGSEGV {
            self.note_delivered_fault(tid);
        }
        self.set_state(tid, State::EnteringHandler { from: from.unwrap_or(0), traps });
        sys::resume_into_handler(tid, signal)
    }
}

/// The mode of system calls that a filter restricts, of `prctl(2)`.
const MODE_FILTER: i32 = 2;

/// The flag by which the processor steps.
const TRAP_FLAG: u64 = 1 << 8;

/// Clears the trap flag, which the tracer set, from the flags that a handler returns to. The kernel leaves it
/// there if the interrupted instruction is a `popf`, which might have set it itself.
fn end_stepping(tid: i32, user_context: u64) {
    const FLAGS_AT: u64 = 176;
    let place = user_context.wrapping_add(FLAGS_AT);
    let mut flags = [0; 8];
    if sys::read_memory(tid, place, &mut flags) == flags.len() {
        let flags = u64::from_le_bytes(flags);
        if flags & TRAP_FLAG != 0 {
            sys::write_memory(tid, place, &(flags & !TRAP_FLAG).to_le_bytes());
        }
    }
}

/// Whether the program has a handler for the signal.
pub(crate) fn is_caught(tid: i32, signal: i32) -> bool {
    has_signal(tid, "SigCgt", signal)
}
