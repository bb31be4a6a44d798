//! The end of threads, address spaces and the whole run: what was counted is taken.

use std::io;

use treering_profile::UncountedReason;

use crate::address_space::AddressSpace;
use crate::counting::branch_bias::{branch_biases, executions, tells_more};
use crate::counting::result::{Done, end_space, end_thread};
use crate::history::Hints;
use crate::journal::remove_counters;
use crate::sys::{self};
use crate::tracer::state::Tracer;
use crate::tracer::thread::{PendingClone, Thread};

/// How many ended processes' memory is kept for reuse; more than this many rarely live at the same time.
const MOST_USED: usize = 8;

impl Tracer {
    /// Notes a thread that ended without its state having been read: its last instruction is unknown.
    pub(crate) fn note_unread(&mut self, tid: i32, why: &str) {
        if let Some(thread) = self.threads.get(&tid).filter(|thread| thread.space.is_some()) {
            let text = format!("thread {tid}: {why}: its last block may be counted as fully executed");
            self.note(UncountedReason::CutShort, thread.pid, text);
        }
    }

    /// A thread is about to end, and its memory still exists.
    pub(crate) fn exiting(&mut self, tid: i32) -> io::Result<()> {
        let taken = self.take_last_counts(tid);
        // The thread must be resumed whatever failed before.
        sys::resume(tid, 0).and(taken)
    }

    /// Takes the counts of a thread that executes at most the instruction that it stands at.
    pub(crate) fn take_last_counts(&mut self, tid: i32) -> io::Result<()> {
        let born = self.untold_child(tid).map_or(Ok(()), |child| self.note_clone(tid, child));
        let presented = self.with(tid, false, |stop, registers| {
            // A thread that ends cannot make remote system calls. Its address matters only if it was running.
            stop.stopped.gone = true;
            let lent = stop.space.lent(registers.0.rip);
            let presented = stop.restore_program_state(registers)?;
            stop.thread.last_count = stop.space.areas.running_count(stop.thread.area, lent.is_some(), tid)?;
            Ok(presented)
        });
        self.look_for_open_function(tid);
        self.end_counting(tid, false);
        presented.map(drop).and(born)
    }

    /// Takes the counts of a thread. `by_exec`: its last call made it another program.
    pub(crate) fn end_counting(&mut self, tid: i32, by_exec: bool) {
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        let Some(number) = thread.space.take() else { return };
        let is_left_out = self.only.is_some_and(|only| only != thread.pid);
        let Some(program) = &mut self.spaces[number] else { return };
        let name = if by_exec { String::new() } else { treering_proc::thread_name(tid) };
        // A failure for want of counters has ended the process already, with a note.
        let _ = program.space.take_log(thread.area);
        let area = thread.area;
        let counts = program.space.areas.counts(area);
        let active = program.space.active_blocks(&counts);
        let space = &program.space;
        let counter = |counter: u32| counts.of(counter);
        let (partials, transfers) = (&thread.slow_path.partials, &thread.slow_path.transfers);
        let done = Done { tid: thread.tid, pid: thread.pid, name, counter, active, partials, transfers };
        let mut ended = end_thread(space, done);
        let last = thread.last_count;
        let problem = if space.areas.has_trees() {
            ended.take_tree(space, |instructions| space.areas.tree(area, last, instructions))
        } else {
            None
        };
        if let Some(journal) = program.journal.as_mut().filter(|_| !is_left_out)
            && journal.end_thread(space, &mut thread.journaled(), &ended, counts.iter()).is_err()
        {
            journal.remove();
            program.journal = None;
        }
        let AddressSpace { model, areas, cache, .. } = &mut program.space;
        let modelled = model.as_mut().map(|model| model.end_thread(area, areas, &cache.blocks));
        ended = ended.with_model(modelled);
        if !is_left_out {
            program.ended.push(ended);
        }
        // The areas of the last thread go with the address space.
        if program.threads > 1 {
            program.space.areas.give_area_back(area);
        }
        let pid = thread.pid;
        self.leave_space(number, tid);
        if let Some(problem) = problem {
            self.note(UncountedReason::Other, pid, problem);
        }
    }

    /// A thread no longer uses an address space: the last one takes its counts along.
    pub(crate) fn leave_space(&mut self, number: usize, tid: i32) {
        let Some(program) = &mut self.spaces[number] else { return };
        program.threads -= 1;
        if program.threads == 0
            && let Some(program) = self.spaces[number].take()
        {
            let mut program = program;
            for path in program.space.program.regions.part_with_replaced(tid) {
                let text = format!(
                    "{} was replaced or written to while it ran: the code executed before that has no names",
                    path.display()
                );
                self.note(UncountedReason::Other, program.pid, text);
            }
            let mut aside = None;
            if let (Some(files), Some(journal)) = (&program.space.areas.files, program.journal) {
                aside = self.store.as_mut().and_then(|store| store.set_aside(files));
                remove_counters(files, usize::from(aside.is_some()));
                if let Some(store) = &mut self.store {
                    store.put_away(files, journal);
                }
            }
            program.space.areas.remove_trees();
            if self.is_left_out(program.pid) {
                let text = "its children were not counted, as requested";
                self.note(UncountedReason::NotFollowed, self.only.unwrap_or(0), text.to_owned());
            } else {
                let space = &program.space;
                let entered = executions(&program.ended);
                let is_new = !space.warm_start.was_as_expected(space.cache.blocks.len())
                    || tells_more(entered, space.warm_start.executions());
                let (biases, learned) = match self.hints.is_some() && is_new {
                    true => (branch_biases(space, &program.ended), entered),
                    false => (Vec::new(), 0),
                };
                let mut counts = end_space(space, program.pid, program.path, program.ended, &biases);
                counts.held = space.surroundings.facts();
                let (counters, used) = program.space.into_memory();
                if let (Some(store), Some(path)) = (&mut self.store, aside) {
                    store.keep_spare(path, counters);
                }
                self.used.extend(used.filter(|_| self.used.len() < MOST_USED));
                self.hints.as_mut().into_iter().for_each(|hints| hints.learn(&counts, learned));
                let unmatched_returns = counts.unmatched_returns();
                unmatched_returns.into_iter().for_each(|note| self.note(note.reason, note.pid, note.detail));
                self.ended.push(counts);
            }
        }
    }

    pub(crate) fn forget_thread(&mut self, tid: i32) -> Option<Thread> {
        self.end_counting(tid, false);
        let thread = self.threads.remove(&tid);
        self.early.retain(|&early| early != tid);
        if let Some(PendingClone { space: Some(space), .. }) = self.pending_clones.remove(&tid) {
            self.leave_space(space, tid);
        }
        thread
    }

    /// Sends the signals that waited for an ended thread to another thread of its process.
    pub(crate) fn pass_signals_on(&mut self, gone: Thread) {
        let pid = gone.pid;
        let Some(heir) = self.threads.values_mut().find(|thread| thread.pid == pid) else { return };
        let tid = heir.tid;
        for (signal, due) in heir.throttle.inherit(gone.throttle) {
            self.delayed_signals.send((pid, tid, signal, due));
        }
    }

    /// Whether no thread is left.
    pub(crate) fn is_done(&self) -> bool {
        self.threads.is_empty() && self.early.is_empty() && self.pending_clones.is_empty()
    }

    /// Takes the counts of the programs that still existed when tracing ended.
    pub(crate) fn finish(&mut self) {
        let left: Vec<i32> = self.threads.keys().copied().collect();
        for tid in left {
            self.note_unread(tid, "it was still running when counting ended");
            self.forget_thread(tid);
        }
        self.hints.iter().for_each(Hints::keep);
    }
}
