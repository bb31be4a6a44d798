//! The event loop: it handles each stop of each thread of a program and of its children.

use std::io;

use crate::sys::wait::{EVENT_STOP, STOPS};
use crate::sys::{self, Origin, Stop};
use crate::tracer::state::Tracer;
use crate::tracer::thread::Thread;
use crate::tracer::thread_stop::ThreadStop;
use treering_proc::status;

impl Tracer {
    /// Adds the first process, whose parent is not traced.
    pub(crate) fn begin_with(&mut self, tid: i32, first: i32) {
        self.first = Some(first);
        if tid == first && !self.filtered && !self.threads.contains_key(&tid) {
            self.threads.insert(tid, Thread::new(tid, tid, None, 0));
        }
    }

    /// Handles one stop of a thread.
    pub(crate) fn handle(&mut self, tid: i32, stop: Stop) {
        self.affinity.stopped(tid);
        if let Stop::Exited(_) | Stop::Killed(_) = stop {
            self.affinity.part();
            self.fault_actions.remove(&tid);
            self.most_addresses.remove(&tid);
            self.unwatch_status(tid);
            self.note_unread(tid, "it was killed before its state could be read");
            self.end_role(tid);
            let gone = self.forget_thread(tid);
            if let Some(gone) = gone {
                self.pass_signals_on(gone);
            }
            if sys::is_asked_to_stop() {
                self.stop_after_program();
            }
            return self.end_orphans();
        }
        let Some(thread) = self.threads.get_mut(&tid) else {
            return match stop {
                // It was killed before it ran.
                Stop::Event(libc::PTRACE_EVENT_EXIT, _) => _ = sys::resume(tid, 0),
                _ => self.new_thread_stopped(tid),
            };
        };
        if thread.group_stop.take().is_some() && self.first == Some(thread.pid) {
            sys::program_stands(false);
        }
        let handled = match stop {
            Stop::Signal(signal) => self.signal(tid, signal),
            Stop::SystemCall => self.call_done(tid),
            Stop::Event(libc::PTRACE_EVENT_SECCOMP, _) => self.asked_or_called(tid),
            Stop::Event(libc::PTRACE_EVENT_EXEC, _) => self.became_program(tid),
            Stop::Event(libc::PTRACE_EVENT_EXIT, _) => self.exiting(tid),
            Stop::Event(
                event @ (libc::PTRACE_EVENT_CLONE | libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK),
                _,
            ) => self.made_clone(tid, event),
            Stop::Event(EVENT_STOP, signal) => self.stopped(tid, signal),
            Stop::Event(..) | Stop::Exited(_) | Stop::Killed(_) => sys::resume(tid, 0),
        };
        if let Err(error) = handled {
            self.give_up(tid, error);
        }
        if self.stopped && self.threads.get(&tid).is_some_and(|thread| !thread.frozen) {
            // The thread stopped for another reason before it could be interrupted.
            let _ = sys::interrupt(tid);
        }
        if self.leaving {
            self.ask_to_stop(tid);
        }
        if let Some(store) = &mut self.store {
            store.note(&self.not_counted);
        }
    }

    /// Translated code makes a request, or a system call is about to be made.
    pub(crate) fn asked_or_called(&mut self, tid: i32) -> io::Result<()> {
        let Some((thread, program)) = self.counted(tid) else {
            self.affinity.part();
            return sys::resume(tid, 0);
        };
        if !program.space.areas.has_request(thread.area) {
            return self.before_call(tid);
        }
        let answered = ThreadStop::with(thread, &mut program.space, true, |stop| stop.dispatch());
        self.requests += 1;
        answered.and_then(|()| self.select(tid))?;
        self.keep(tid);
        self.note_warnings(tid);
        self.resume(tid)
    }

    /// A group stop, or the first stop of a new thread.
    pub(crate) fn stopped(&mut self, tid: i32, signal: i32) -> io::Result<()> {
        if self.leaving && self.park(tid)? {
            return Ok(());
        }
        if self.stands_still(tid)? {
            return Ok(());
        }
        if self.stopped {
            self.freeze(tid)?;
        }
        // After a remote system call, it cannot: it reports the stop again when it is resumed.
        if STOPS.contains(&signal) && sys::listen(tid).is_ok() {
            self.threads.get_mut(&tid).into_iter().for_each(|thread| thread.group_stop = Some(signal));
            self.stop_after_program();
            return Ok(());
        }
        // A thread killed meanwhile may stand anywhere, and reports its end itself.
        if sys::is_dying(tid) { Ok(()) } else { self.resume(tid) }
    }

    /// Stops this process if a terminal has asked it to (Ctrl-Z), the program has stopped, and so has every other process
    /// that was asked, which may first put the terminal in order. An interactive shell is in a process group of its own, which
    /// has the terminal: where it has stopped (`suspend`), the user has nothing else that answers.
    fn stop_after_program(&self) {
        let of_program = || self.threads.values().filter(|thread| Some(thread.pid) == self.first);
        let Some((pid, signal)) = of_program().find_map(|thread| Some((thread.pid, thread.group_stop?)))
        else {
            return;
        };
        // In this order: a request that comes meanwhile finds that the program has stopped.
        sys::program_stands(true);
        let is_awaited = |thread: &Thread| {
            let is_there = || status::line(thread.tid, "State").is_some_and(|state| !state.starts_with('Z'));
            let heeds = || !status::has_signal(thread.tid, "SigIgn", libc::SIGTSTP);
            thread.group_stop.is_none() && sys::is_in_our_group(thread.pid) && heeds() && is_there()
        };
        let is_due = match sys::is_asked_to_stop() {
            true => !self.threads.values().any(is_awaited),
            false if self.is_stopped_by_other => false,
            // A thread that has not told its stop would tell it after the program went on.
            false => of_program().all(|thread| thread.group_stop.is_some()) && sys::took_terminal(pid),
        };
        if is_due {
            sys::program_stands(false);
            sys::stop_by(signal, pid);
        }
    }

    /// Notes that a signal is about to stop the program, and whether another process than the program has sent it.
    pub(crate) fn note_stopping(&mut self, tid: i32, signal: i32, origin: Origin) {
        if STOPS.contains(&signal) && self.first == Some(self.process_of(tid)) {
            self.is_stopped_by_other = match origin {
                Origin::Process(pid) => !self.threads.contains_key(&pid) && !sys::is_in_our_group(pid),
                Origin::Thread | Origin::Outside => false,
            };
            if self.is_stopped_by_other {
                // It does not stop because a terminal asked it to before, and that other process continues it.
                sys::end_request_to_stop();
            }
        }
    }
}
