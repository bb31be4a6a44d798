//! The loop that steps threads and works out what each stop means.

use std::collections::HashMap;
use std::io::{self, Read as _};
use std::process::Command;

use libc::pid_t;

use super::processor::OneProcessor;
use super::sys::{self, Stop};
use super::{Ended, Observer, Step, SteppedProcess};

/// A thread that is being stepped.
struct Thread {
    process: pid_t,
    state: State,
    /// A signal was given to it, so the next trap may be the first instruction of a handler.
    signalled: bool,
}

/// Where a thread was when it last stopped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// It has not stopped yet, or became another program and has not stopped in it.
    New,
    /// Before this instruction.
    Before(u64),
    /// After this system call, which the kernel may start again.
    Interrupted(u64),
}

pub(super) fn run(mut command: Command, most_steps: u64, observer: &mut dyn Observer) -> io::Result<Ended> {
    let _together = OneProcessor::begin()?;
    let mut child = sys::spawn_traced(&mut command)?;
    let mut tracer = Tracer {
        first: child.id().cast_signed(),
        threads: HashMap::new(),
        processes: HashMap::new(),
        images: 0,
        observer,
        ended: Ended::default(),
    };
    let stepped = tracer.until_all_ended(most_steps);
    if stepped.is_err() {
        // All that is traced dies with its tracer at the latest; this is the part that is ours.
        child.kill()?;
    }
    stepped?;
    let mut ended = tracer.ended;
    if let Some(mut output) = child.stdout.take() {
        output.read_to_end(&mut ended.output)?;
    }
    Ok(ended)
}

struct Tracer<'o> {
    first: pid_t,
    threads: HashMap<pid_t, Thread>,
    processes: HashMap<pid_t, SteppedProcess>,
    /// How many processes and programs there were.
    images: u32,
    observer: &'o mut dyn Observer,
    ended: Ended,
}

impl Tracer<'_> {
    fn until_all_ended(&mut self, most_steps: u64) -> io::Result<()> {
        let (first, stop) = sys::wait_for_any()?;
        if stop != Stop::Signal(libc::SIGTRAP) {
            return Err(io::Error::other("the program did not stop at its first instruction"));
        }
        sys::follow_all(first)?;
        self.add(first, first);
        self.started(first)?;
        sys::step(first, 0)?;
        let mut steps = 0_u64;
        while !self.threads.is_empty() {
            let (tid, stop) = sys::wait_for_any()?;
            self.stopped(tid, stop)?;
            steps += 1;
            if steps > most_steps {
                return Err(io::Error::other("the program takes more steps than allowed"));
            }
        }
        Ok(())
    }

    fn add(&mut self, tid: pid_t, process: pid_t) {
        self.threads.insert(tid, Thread { process, state: State::New, signalled: false });
        let images = &mut self.images;
        self.processes.entry(process).or_insert_with(|| {
            *images += 1;
            SteppedProcess::new(process.cast_unsigned(), *images)
        });
    }

    fn stopped(&mut self, tid: pid_t, stop: Stop) -> io::Result<()> {
        if !self.threads.contains_key(&tid) {
            if matches!(stop, Stop::Exited(_) | Stop::Killed(_)) {
                return Ok(());
            }
            self.add(tid, process_of(tid));
        }
        let resumed = match stop {
            Stop::Exited(status) => return self.gone(tid, Some(status)),
            Stop::Killed(_) => return self.gone(tid, None),
            Stop::Event(event) => self.event(tid, event),
            Stop::Signal(signal) => self.signal(tid, signal),
        };
        match resumed.and_then(|signal| sys::step(tid, signal)) {
            // Another thread ended the process meanwhile: the end of this one is still to come.
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(()),
            resumed => resumed,
        }
    }

    /// Takes a stop at a signal; gives the signal to go on with.
    fn signal(&mut self, tid: pid_t, signal: i32) -> io::Result<i32> {
        let at = sys::register(tid, sys::RIP)?;
        let state = self.threads[&tid].state;
        match state {
            State::New => {
                self.started(tid)?;
                // Threads and children are born with a SIGSTOP of ours, and programs with a SIGTRAP.
                let ours = signal == libc::SIGSTOP || signal == libc::SIGTRAP;
                Ok(if ours { 0 } else { self.given(tid, signal) })
            }
            _ if signal != libc::SIGTRAP => Ok(self.given(tid, signal)),
            _ if self.took_signal(tid) => {
                self.entered_handler(tid, state, at);
                Ok(0)
            }
            State::Before(before) | State::Interrupted(before) => self.trapped(tid, before, at),
        }
    }

    /// Takes the stop at the first instruction of a signal handler.
    fn entered_handler(&mut self, tid: pid_t, from: State, handler: u64) {
        let interrupted = match from {
            State::Interrupted(call) => {
                let next = call + SYSTEM_CALL_BYTES;
                self.tell(tid, Step::Executed { at: call, next: Some(next) });
                next
            }
            State::Before(at) => at,
            State::New => handler,
        };
        self.tell(tid, Step::Signal { at: interrupted, handler: Some(handler) });
        self.set(tid, State::Before(handler));
    }

    /// Takes a trap: a finished step, or one that the program made itself.
    fn trapped(&mut self, tid: pid_t, before: u64, at: u64) -> io::Result<i32> {
        let process = self.threads[&tid].process;
        let Some(process) = self.processes.get_mut(&process) else { return Ok(0) };
        let instruction = process.instruction(before);
        if instruction.traps && sys::signal_code(tid) == Some(SI_KERNEL) {
            self.tell(tid, Step::Executed { at: before, next: Some(at) });
            self.set(tid, State::Before(at));
            return Ok(self.given(tid, libc::SIGTRAP));
        }
        if instruction.repeats && at == before {
            return Ok(0);
        }
        if instruction.is_system_call && at == before + SYSTEM_CALL_BYTES && restarts(tid)? {
            self.set(tid, State::Interrupted(before));
            return Ok(0);
        }
        if instruction.is_system_call {
            process.may_have_changed();
        }
        self.tell(tid, Step::Executed { at: before, next: Some(at) });
        self.set(tid, State::Before(at));
        Ok(0)
    }

    /// Whether a trap is at the first instruction of a handler: the kernel reports it with the
    /// signal's number for a code.
    fn took_signal(&mut self, tid: pid_t) -> bool {
        let Some(thread) = self.threads.get_mut(&tid) else { return false };
        std::mem::take(&mut thread.signalled) && sys::signal_code(tid) == Some(libc::SIGTRAP)
    }

    fn given(&mut self, tid: pid_t, signal: i32) -> i32 {
        // A stop with the whole group has no signal to give.
        if sys::signal_code(tid).is_none() {
            return 0;
        }
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.signalled = true;
        }
        signal
    }

    fn event(&mut self, tid: pid_t, event: i32) -> io::Result<i32> {
        if event == libc::PTRACE_EVENT_EXEC {
            let former = sys::event_message(tid)? as pid_t;
            if let Some(state) = self.threads.get(&former).map(|thread| thread.state)
                && let State::Before(at) = state
            {
                self.tell(former, Step::Executed { at, next: None });
            }
            let process = self.threads[&tid].process;
            self.threads.retain(|_, thread| thread.process != process);
            self.processes.remove(&process);
            self.add(tid, process);
        }
        Ok(0)
    }

    /// The first stop of a thread, or in a program.
    fn started(&mut self, tid: pid_t) -> io::Result<()> {
        let at = sys::register(tid, sys::RIP)?;
        self.set(tid, State::Before(at));
        self.tell(tid, Step::Start { at });
        Ok(())
    }

    fn gone(&mut self, tid: pid_t, status: Option<i32>) -> io::Result<()> {
        if let Some(State::Before(at) | State::Interrupted(at)) =
            self.threads.get(&tid).map(|thread| thread.state)
        {
            let process = self.threads[&tid].process;
            let process = self.processes.get_mut(&process);
            let by_call = process.is_some_and(|process| process.instruction(at).is_system_call);
            let step = if by_call && status.is_some() {
                Step::Executed { at, next: None }
            } else {
                Step::Signal { at, handler: None }
            };
            self.tell(tid, step);
        }
        self.threads.remove(&tid);
        if tid == self.first {
            self.ended.exit_status = status;
        }
        Ok(())
    }

    fn set(&mut self, tid: pid_t, state: State) {
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        thread.state = state;
        // An instruction that ends the process is looked at now, as its memory will be gone.
        if let (State::Before(at), Some(process)) = (state, self.processes.get_mut(&thread.process)) {
            process.instruction(at);
        }
    }

    fn tell(&mut self, tid: pid_t, step: Step) {
        let process = self.threads[&tid].process;
        if let Some(process) = self.processes.get_mut(&process) {
            self.observer.step(process, tid.cast_unsigned(), step);
        }
    }
}

/// How long `syscall` is.
const SYSTEM_CALL_BYTES: u64 = 2;
/// The code of a SIGTRAP that `int3` raised.
const SI_KERNEL: i32 = 0x80;

/// Whether a system call ended with one of the kernel's own codes for starting it again
/// (`ERESTARTSYS` and its like, `include/linux/errno.h`).
fn restarts(tid: pid_t) -> io::Result<bool> {
    let result = sys::register(tid, sys::RAX)?.cast_signed();
    Ok(matches!(result, -514..=-512 | -516))
}

/// The process that a new thread belongs to.
fn process_of(tid: pid_t) -> pid_t {
    let status = std::fs::read_to_string(format!("/proc/{tid}/status")).unwrap_or_default();
    let group = status.lines().find_map(|line| line.strip_prefix("Tgid:"));
    group.and_then(|group| group.trim().parse().ok()).unwrap_or(tid)
}
