//! The event loop: it handles each stop of each thread of a program and of its children.

use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use hashbrown::HashMap;
use treering_profile::{BranchKind, UncountedReason};

use crate::address_space::{AddressSpace, Provision, SpaceOptions, UsedMemory};
use crate::areas::tree_frame::Inherited;
use crate::areas::trees::TreeLimits;
use crate::context::FileFunctionStarts;
use crate::counting::branch_bias::{branch_biases, executions, tells_more};
use crate::counting::result::{Done, EndedThread, NotCounted, ProgramCounts, end_space, end_thread};
use crate::history::Hints;
use crate::journal::{Journal, Store, remove_counters};
use crate::model::ModelOptions;
use crate::program::watch::Watcher;
use crate::sys::remote_syscall::{HeldSignal, StoppedThread};
use crate::sys::shared_memory::SharedMemory;
use crate::sys::syscall_page::syscall_page;
use crate::sys::{self, Registers, Stop};
use crate::tracer::affinity::Affinity;
use crate::tracer::attach::Left;
use crate::tracer::clone::PendingClone;
use crate::tracer::dispatch::Refused;
use crate::tracer::inject::{give_area, prepare_program};
use crate::tracer::signal_throttle::{DelayedSignals, FIRST_REAL_TIME};
use crate::tracer::thread::{Action, Thread};
use treering_proc::status;
use treering_proc::status::has_signal;

/// `PTRACE_EVENT_STOP`, which the C library's header lacks.
pub(crate) const EVENT_STOP: i32 = 128;

/// How many ended processes' memory is kept for reuse; more than this many rarely live at the same time.
const MOST_USED: usize = 8;

/// Everything that is being traced.
#[derive(Debug)]
pub(crate) struct Tracer {
    pub(crate) syscall_page: SharedMemory,
    pub(crate) threads: HashMap<i32, Thread>,
    pub(crate) spaces: Vec<Option<Program>>,
    /// New threads that stopped before their parents reported them.
    pub(crate) early: Vec<i32>,
    /// New threads that their parents reported before they stopped.
    pub(crate) pending_clones: HashMap<i32, PendingClone>,
    /// Whether the filter is installed, which all traced processes inherit.
    pub(crate) filtered: bool,
    /// How each process handles faults.
    pub(crate) fault_actions: HashMap<i32, Action>,
    /// The most to which each process may raise its limit on address space, which the kernel has higher.
    pub(crate) most_addresses: HashMap<i32, u64>,
    /// Signals that came too early and are sent again later.
    pub(crate) delayed_signals: DelayedSignals,
    /// Binds the thread that stops most often to our processor.
    pub(crate) affinity: Affinity,
    /// Where counters are kept in files, if they are.
    pub(crate) store: Option<Store>,
    /// Memory of ended processes, for reuse.
    used: Vec<UsedMemory>,
    /// The history of earlier runs, if it is kept.
    pub(crate) hints: Option<Hints>,
    /// Chooses the watched addresses, if only a part of the run is counted.
    pub(crate) watcher: Option<Rc<Watcher>>,
    /// Whether counting has ended.
    pub(crate) stopped: bool,
    /// The only process that is counted, if its children are not.
    pub(crate) only: Option<i32>,
    /// The options of all address spaces.
    pub(crate) options: SpaceOptions,
    /// How often translated code has asked the tracer.
    pub(crate) requests: u64,
    pub(crate) ended: Vec<ProgramCounts>,
    pub(crate) not_counted: Vec<NotCounted>,
    /// The process that was attached to, if the tracer did not start it.
    pub(crate) attached: Option<Left>,
    /// Whether the tracer is detaching from everything.
    pub(crate) leaving: bool,
    /// The process that the tracer had to end first, and why, if there was one.
    pub(crate) first_error: Option<(i32, io::Error)>,
}

/// An address space, the program in it, and those of its threads that have ended.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) space: AddressSpace,
    pid: i32,
    pub(crate) path: PathBuf,
    ended: Vec<EndedThread>,
    pub(crate) threads: usize,
    journal: Option<Journal>,
}

impl Tracer {
    /// A tracer without any threads.
    pub(crate) fn new(tree: bool, model: ModelOptions) -> io::Result<Self> {
        Ok(Self {
            syscall_page: syscall_page()?,
            threads: HashMap::new(),
            spaces: Vec::new(),
            early: Vec::new(),
            pending_clones: HashMap::new(),
            filtered: false,
            fault_actions: HashMap::new(),
            most_addresses: HashMap::new(),
            delayed_signals: DelayedSignals::default(),
            affinity: Affinity::default(),
            store: None,
            used: Vec::new(),
            hints: None,
            watcher: None,
            stopped: false,
            only: None,
            options: SpaceOptions {
                tree: tree.then(FileFunctionStarts::default),
                limits: TreeLimits::default(),
                model,
                most_counters: u32::MAX,
                unit_size: u64::MAX,
            },
            requests: 0,
            ended: Vec::new(),
            not_counted: Vec::new(),
            attached: None,
            leaving: false,
            first_error: None,
        })
    }

    /// Adds the first process, whose parent is not traced.
    pub(crate) fn begin_with(&mut self, tid: i32, first: i32) {
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
            self.note_unread(tid, "it was killed before its state could be read");
            self.end_role(tid);
            let gone = self.forget_thread(tid);
            if let Some(gone) = gone {
                self.pass_signals_on(gone);
            }
            return self.end_orphans();
        }
        if !self.threads.contains_key(&tid) {
            return match stop {
                // It was killed before it ran.
                Stop::Event(libc::PTRACE_EVENT_EXIT, _) => _ = sys::resume(tid, 0),
                _ => self.new_thread_stopped(tid),
            };
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

    /// Notes a thread that ended without its state having been read: its last instruction is unknown.
    fn note_unread(&mut self, tid: i32, why: &str) {
        if let Some(thread) = self.threads.get(&tid).filter(|thread| thread.space.is_some()) {
            let text = format!("thread {tid}: {why}: its last block may be counted as fully executed");
            self.note(UncountedReason::CutShort, thread.pid, text);
        }
    }

    /// Writes the new blocks of a thread's address space to the journal before the thread continues.
    pub(crate) fn keep(&mut self, tid: i32) {
        let Some((thread, program)) = self.counted(tid) else { return };
        if let Some(journal) = &mut program.journal
            && journal.follow(&program.space, &mut thread.journaled()).is_err()
        {
            // A journal with gaps would be worse than none.
            journal.remove();
            program.journal = None;
        }
        if program.journal.is_none() {
            thread.slow_path.news.clear();
        }
    }

    /// Ends the thread's process, which cannot continue, unless the thread has only ended or is about to end.
    pub(crate) fn give_up(&mut self, tid: i32, error: io::Error) {
        if error.raw_os_error() == Some(libc::ESRCH) || sys::is_dying(tid) {
            return;
        }
        let pid = self.process_of(tid);
        let error = may_be_refused(pid, error);
        let refused = error.get_ref().is_some_and(|inner| inner.is::<Refused>());
        let reason = if refused { UncountedReason::Instruction } else { UncountedReason::CutShort };
        self.note(reason, pid, format!("the process was ended, because it cannot go on: {error}"));
        sys::kill(pid);
        self.first_error.get_or_insert((pid, error));
    }

    /// The process that a thread belongs to.
    pub(crate) fn process_of(&self, tid: i32) -> i32 {
        self.threads.get(&tid).map_or(tid, |thread| thread.pid)
    }

    /// Notes what was not counted, once for each process.
    pub(crate) fn note(&mut self, reason: UncountedReason, pid: i32, detail: String) {
        let note = NotCounted { reason, pid, detail };
        if !self.not_counted.contains(&note) {
            self.not_counted.push(note);
        }
    }

    /// Resumes a thread, and sends again the signals that could not be delivered before.
    pub(crate) fn resume(&mut self, tid: i32) -> io::Result<()> {
        if let Some(thread) = self.threads.get_mut(&tid) {
            let goes_on = |signal| STOPS.contains(&signal) && is_to_continue(tid);
            for held in thread.held.drain(..).filter(|held| !goes_on(held.signal)) {
                if held.signal < FIRST_REAL_TIME {
                    // Pending signals of one kind become one.
                    thread.sent.retain(|sent| sent.signal != held.signal);
                }
                sys::send_signal(thread.pid, tid, held.signal);
                thread.sent.push(held);
            }
        }
        sys::resume(tid, 0)
    }

    /// Translated code makes a request, or a system call is about to be made.
    fn asked_or_called(&mut self, tid: i32) -> io::Result<()> {
        let Some((thread, program)) = self.counted(tid) else {
            self.affinity.part();
            return sys::resume(tid, 0);
        };
        let (area, mut held) = (thread.area, std::mem::take(&mut thread.held));
        if !program.space.areas.has_request(area) {
            thread.held = held;
            return self.before_call(tid);
        }
        let mut stopped = StoppedThread::new(tid, true, &mut held);
        let answered = program.space.dispatch(area, &mut thread.slow_path, &mut stopped);
        thread.held = held;
        self.requests += 1;
        answered.and_then(|()| self.select(tid))?;
        self.keep(tid);
        self.note_warnings(tid);
        self.resume(tid)
    }

    /// Notes the warnings of an address space.
    pub(crate) fn note_warnings(&mut self, tid: i32) {
        let Some((thread, program)) = self.counted(tid) else { return };
        let (pid, warnings) = (thread.pid, std::mem::take(&mut program.space.warnings));
        for warning in warnings {
            self.note(UncountedReason::Other, pid, warning.to_owned());
        }
    }

    /// Whether a process is a child that is not counted.
    fn is_left_out(&self, pid: i32) -> bool {
        self.only.is_some_and(|only| only != pid)
    }

    /// The path for the files of a process's new address space.
    pub(crate) fn next_files(&mut self, pid: i32) -> Option<PathBuf> {
        if self.is_left_out(pid) { None } else { self.store.as_mut().map(Store::next_space) }
    }

    /// The resources for a new address space of a program.
    pub(crate) fn provision(&mut self, pid: i32, files: Option<PathBuf>, program: &Path) -> Provision {
        Provision {
            pid,
            options: self.options.clone(),
            calls_at_page: self.attached.is_some(),
            hints: self.hints.as_mut().map(|hints| hints.of(program)).unwrap_or_default(),
            spare: self.store.as_mut().filter(|_| files.is_some()).and_then(Store::take_spare),
            used: self.used.pop(),
            files,
        }
    }

    pub(crate) fn counted(&mut self, tid: i32) -> Option<(&mut Thread, &mut Program)> {
        let thread = self.threads.get_mut(&tid)?;
        let program = self.spaces[thread.space?].as_mut()?;
        Some((thread, program))
    }

    /// Calls a function with a counted thread, its address space and its registers.
    pub(crate) fn with<T>(
        &mut self,
        tid: i32,
        in_call: bool,
        act: impl FnOnce(&mut Thread, &mut AddressSpace, &mut Registers, &mut StoppedThread<'_>) -> io::Result<T>,
    ) -> io::Result<Option<T>> {
        let mut registers = sys::registers(tid)?;
        let Some((thread, program)) = self.counted(tid) else { return Ok(None) };
        let mut held: Vec<HeldSignal> = std::mem::take(&mut thread.held);
        let mut stopped = StoppedThread::new(tid, in_call, &mut held);
        let result = act(thread, &mut program.space, &mut registers, &mut stopped);
        thread.held = held;
        let result = result.and_then(|done| self.select(tid).map(|()| done));
        self.keep(tid);
        result.map(Some)
    }

    /// A group stop, or the first stop of a new thread.
    fn stopped(&mut self, tid: i32, signal: i32) -> io::Result<()> {
        if self.leaving && self.park(tid)? {
            return Ok(());
        }
        if self.stands_still(tid)? {
            return Ok(());
        }
        match signal {
            libc::SIGSTOP | libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU => sys::listen(tid),
            _ => {
                if self.stopped {
                    self.freeze(tid)?;
                }
                // A thread killed meanwhile may stand anywhere, and reports its end itself.
                if sys::is_dying(tid) { Ok(()) } else { self.resume(tid) }
            }
        }
    }

    pub(crate) fn add_program(&mut self, thread: &mut Thread, space: AddressSpace, path: PathBuf) {
        let files = space.areas.files.as_ref();
        let spare = self.store.as_mut().filter(|_| files.is_some()).and_then(Store::take_spare_journal);
        let journal = files.and_then(|files| Journal::new(files, spare, thread.pid, &path).ok());
        let program = Program { space, pid: thread.pid, path, ended: Vec::new(), threads: 1, journal };
        let free = self.spaces.iter().position(Option::is_none);
        let at = free.unwrap_or_else(|| {
            self.spaces.push(None);
            self.spaces.len() - 1
        });
        self.spaces[at] = Some(program);
        thread.space = Some(at);
    }

    /// A process has become another program, and is stopped at the end of `execve`.
    fn became_program(&mut self, tid: i32) -> io::Result<()> {
        let former = sys::event_message(tid, libc::PTRACE_EVENT_EXEC)? as i32;
        self.affinity.pair(tid);
        // Its other threads have ended, and the calling thread has the first one's number now.
        let mut former_threads = Vec::new();
        let own_rules = self.threads.get(&former).map(|thread| thread.own_rules).unwrap_or_default();
        self.lower_limit(former)?;
        for gone in [former, tid] {
            self.end_role(gone);
            self.end_counting(gone, true);
            former_threads.extend(self.forget_thread(gone));
        }
        self.fault_actions.remove(&tid);
        let mut thread = Thread::new(tid, tid, None, 0);
        thread.own_rules = own_rules;
        let prepared = self.prepare(&mut thread);
        if thread.space.is_none() {
            // It is not counted, and makes no requests.
            self.affinity.part();
        }
        self.threads.insert(tid, thread);
        former_threads.into_iter().for_each(|gone| self.pass_signals_on(gone));
        prepared.and_then(|()| self.select(tid))?;
        self.keep(tid);
        self.resume(tid)
    }

    fn prepare(&mut self, thread: &mut Thread) -> io::Result<()> {
        let tid = thread.tid;
        let mut stopped = StoppedThread::new(tid, false, &mut thread.held);
        stopped.reach_border()?;
        let path = std::fs::read_link(format!("/proc/{tid}/exe")).unwrap_or_default();
        const CODE_OF_64_BITS: u64 = 0x33;
        if sys::registers(tid)?.0.cs != CODE_OF_64_BITS {
            self.note(UncountedReason::OtherMode, tid, path.display().to_string());
            if !self.filtered {
                // The program could not be counted, so it is ended before its first instruction.
                sys::kill(tid);
            }
            return Ok(());
        }
        if self.filtered && !treering_proc::may_be_read(tid) {
            // The kernel does not name the file either.
            let name = treering_proc::thread_name(tid);
            let detail = "its file may be executed but not read, so the kernel does not let it be traced";
            self.note(UncountedReason::Privileged, tid, format!("{name}: {detail}"));
            return Ok(());
        }
        if let Some(why) = loses_privileges(&path) {
            self.note(UncountedReason::Privileged, tid, format!("{}: {why}", path.display()));
        }
        self.note_most_addresses(tid)?;
        let files = self.next_files(tid);
        let watcher = self.watcher.clone();
        let provision = self.provision(thread.pid, files, &path);
        let mut space = prepare_program(&mut stopped, &self.syscall_page, self.filtered, provision, watcher)?;
        self.filtered = true;
        thread.area = give_area(&mut space, &mut stopped, 0)?;
        self.begin_selecting(thread, &space, None);
        let mut stopped = StoppedThread::new(tid, false, &mut thread.held);
        let mut registers = sys::registers(tid)?;
        let start = registers.0.rip;
        space.areas.begin_tree(thread.area, &mut stopped, &space.program, start, Inherited::default())?;
        if let Some(entry) = space.enter(start, &mut stopped)? {
            registers.0.rip = entry;
            sys::set_registers(tid, &registers)?;
        }
        thread.slow_path.note_transfer(BranchKind::Start, None, Some(start));
        self.add_program(thread, space, path);
        Ok(())
    }

    /// A thread is about to end, and its memory still exists.
    fn exiting(&mut self, tid: i32) -> io::Result<()> {
        let taken = self.take_last_counts(tid);
        // The thread must be resumed whatever failed before.
        sys::resume(tid, 0).and(taken)
    }

    /// Takes the counts of a thread that executes at most the instruction that it stands at.
    pub(crate) fn take_last_counts(&mut self, tid: i32) -> io::Result<()> {
        let born = self.untold_child(tid).map_or(Ok(()), |child| self.note_clone(tid, child));
        let presented = self.with(tid, false, |thread, space, registers, stopped| {
            // A thread that ends cannot make remote system calls. Its address matters only if it was running.
            stopped.gone = true;
            let lent = space.lent(registers.0.rip);
            let presented =
                space.restore_program_state(thread.area, registers, &mut thread.slow_path, stopped)?;
            thread.last_count = space.areas.running_count(thread.area, lent.is_some(), tid)?;
            Ok(presented)
        });
        self.look_for_open_function(tid);
        self.end_counting(tid, false);
        presented.map(drop).and(born)
    }

    /// Takes the counts of a thread. `by_exec`: its last call made it another program.
    fn end_counting(&mut self, tid: i32, by_exec: bool) {
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
        self.leave_space(number);
        if let Some(problem) = problem {
            self.note(UncountedReason::Other, pid, problem);
        }
    }

    pub(crate) fn leave_space(&mut self, number: usize) {
        let Some(program) = &mut self.spaces[number] else { return };
        program.threads -= 1;
        if program.threads == 0
            && let Some(program) = self.spaces[number].take()
        {
            let mut program = program;
            for path in program.space.program.regions.part_with_replaced() {
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
                let counts = end_space(space, program.pid, program.path, program.ended, &biases);
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
            self.leave_space(space);
        }
        thread
    }

    /// Sends the signals that waited for an ended thread to another thread of its process.
    fn pass_signals_on(&mut self, gone: Thread) {
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

/// Signals that stop a process; `SIGCONT` discards them.
const STOPS: [i32; 4] = [libc::SIGSTOP, libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU];

/// The error of a remote system call, with a likely cause: the process's own seccomp filters, beside ours and
/// those that the tracer is under, hold for that call too.
fn may_be_refused(pid: i32, error: io::Error) -> io::Error {
    const REFUSED: [i32; 6] =
        [libc::EPERM, libc::EACCES, libc::ENOSYS, libc::EINVAL, libc::EFAULT, libc::EEXIST];
    let filters = |pid: i32| status::number(pid, "Seccomp_filters").unwrap_or(0);
    let is_refused = error.raw_os_error().is_some_and(|number| REFUSED.contains(&number));
    if is_refused && filters(pid) > filters(std::process::id().cast_signed()) + 1 {
        return io::Error::other(format!(
            "{error}; its own system call filter (seccomp) may forbid calls that counting needs"
        ));
    }
    error
}

/// Whether a thread's process has been continued meanwhile: sending a stop again would undo that.
fn is_to_continue(tid: i32) -> bool {
    ["SigPnd", "ShdPnd"].into_iter().any(|line| has_signal(tid, line, libc::SIGCONT))
}

/// The privileges that the program would have had if it had not been traced.
fn loses_privileges(path: &std::path::Path) -> Option<&'static str> {
    use std::os::unix::fs::MetadataExt as _;
    const SET_USER: u32 = 0o4000;
    const SET_GROUP: u32 = 0o2010;
    let file = std::fs::metadata(path).ok()?;
    let own = std::fs::metadata("/proc/self").ok()?;
    let user = file.mode() & SET_USER != 0 && file.uid() != own.uid();
    let group = file.mode() & SET_GROUP == SET_GROUP && file.gid() != own.gid();
    if user || group {
        return Some("it ran without the privileges that its file grants (setuid or setgid)");
    }
    const ROOT: u32 = 0;
    let capabilities = own.uid() != ROOT && sys::has_capabilities(path);
    capabilities.then_some("it ran without the privileges that its file grants (capabilities)")
}
