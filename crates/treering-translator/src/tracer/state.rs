//! Everything that is being traced, and what all handlers do with it.

use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use hashbrown::HashMap;
use treering_profile::UncountedReason;

use crate::address_space::{AddressSpace, Provision, SpaceOptions, UsedMemory};
use crate::areas::trees::TreeLimits;
use crate::context::FileFunctionStarts;
use crate::counting::result::{EndedThread, NotCounted, ProgramCounts};
use crate::history::Hints;
use crate::journal::{Journal, Store};
use crate::model::ModelOptions;
use crate::program::watch::Watcher;
use crate::surroundings::Surroundings;
use crate::sys::remote_syscall::HeldSignal;
use crate::sys::shared_memory::SharedMemory;
use crate::sys::syscall_page::syscall_page;
use crate::sys::wait::STOPS;
use crate::sys::{self, Registers};
use crate::tracer::affinity::Affinity;
use crate::tracer::dispatch::Refused;
use crate::tracer::signal_throttle::{DelayedSignals, FIRST_REAL_TIME};
use crate::tracer::status_watch::StatusWatch;
use crate::tracer::thread::{Action, Left, PendingClone, Thread};
use crate::tracer::thread_stop::ThreadStop;
use treering_proc::status;
use treering_proc::status::has_signal;

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
    pub(crate) used: Vec<UsedMemory>,
    /// The history of earlier runs, if it is kept.
    pub(crate) hints: Option<Hints>,
    /// Chooses the watched addresses, if only a part of the run is counted.
    pub(crate) watcher: Option<Rc<Watcher>>,
    /// Whether counting has ended.
    pub(crate) stopped: bool,
    /// The first process, if the tracer has started it.
    pub(crate) first: Option<i32>,
    /// Whether another process than the program has stopped the first one, or did so last.
    pub(crate) is_stopped_by_other: bool,
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
    /// Whether the tracer could detach and leave processes running: their filter is one for that.
    pub(crate) can_leave: bool,
    /// Whether the tracer is detaching from everything.
    pub(crate) leaving: bool,
    pub(crate) status_watch: StatusWatch,
    /// Whether an ignored signal has ended a call with a part, and the tracer could not have it do the rest.
    pub(crate) has_left_part: bool,
    /// The process that the tracer had to end first, and why, if there was one.
    pub(crate) first_error: Option<(i32, io::Error)>,
}

/// An address space, the program in it, and those of its threads that have ended.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) space: AddressSpace,
    pub(crate) pid: i32,
    pub(crate) path: PathBuf,
    pub(crate) ended: Vec<EndedThread>,
    pub(crate) threads: usize,
    pub(crate) journal: Option<Journal>,
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
            first: None,
            is_stopped_by_other: false,
            only: None,
            options: SpaceOptions {
                tree: tree.then(FileFunctionStarts::default),
                limits: TreeLimits::default(),
                model,
                most_counters: u32::MAX,
                unit_size: u64::MAX,
                surroundings: Surroundings::default(),
            },
            requests: 0,
            ended: Vec::new(),
            not_counted: Vec::new(),
            attached: None,
            can_leave: false,
            leaving: false,
            status_watch: StatusWatch::default(),
            has_left_part: false,
            first_error: None,
        })
    }

    pub(crate) fn counted(&mut self, tid: i32) -> Option<(&mut Thread, &mut Program)> {
        let thread = self.threads.get_mut(&tid)?;
        let program = self.spaces[thread.space?].as_mut()?;
        Some((thread, program))
    }

    /// Calls a function with a counted thread that has stopped, and with its registers.
    pub(crate) fn with<T>(
        &mut self,
        tid: i32,
        in_call: bool,
        act: impl FnOnce(&mut ThreadStop<'_, '_>, &mut Registers) -> io::Result<T>,
    ) -> io::Result<Option<T>> {
        let mut registers = sys::registers(tid)?;
        let Some((thread, program)) = self.counted(tid) else { return Ok(None) };
        let result = ThreadStop::with(thread, &mut program.space, in_call, |stop| act(stop, &mut registers));
        let result = result.and_then(|done| self.select(tid).map(|()| done));
        self.keep(tid);
        result.map(Some)
    }

    /// The process that a thread belongs to.
    pub(crate) fn process_of(&self, tid: i32) -> i32 {
        self.threads.get(&tid).map_or(tid, |thread| thread.pid)
    }

    /// The processes that are traced.
    pub(crate) fn processes(&self) -> Vec<i32> {
        let mut processes: Vec<i32> = self.threads.values().map(|thread| thread.pid).collect();
        processes.sort_unstable();
        processes.dedup();
        processes
    }

    /// Notes what was not counted, once for each process.
    pub(crate) fn note(&mut self, reason: UncountedReason, pid: i32, detail: String) {
        let note = NotCounted { reason, pid, detail };
        if !self.not_counted.contains(&note) {
            self.not_counted.push(note);
        }
    }

    /// Notes the warnings of an address space.
    pub(crate) fn note_warnings(&mut self, tid: i32) {
        let Some((thread, program)) = self.counted(tid) else { return };
        let (pid, warnings) = (thread.pid, std::mem::take(&mut program.space.warnings));
        for warning in warnings {
            self.note(UncountedReason::Other, pid, warning.to_owned());
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

    /// Resumes a thread, and sends again the signals that could not be delivered before.
    pub(crate) fn resume(&mut self, tid: i32) -> io::Result<()> {
        if let Some(thread) = self.threads.get_mut(&tid) {
            let is_sent = |held: &mut HeldSignal| !would_discard(tid, held.signal);
            for held in thread.held.extract_if(.., is_sent) {
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

    /// Whether a process is a child that is not counted.
    pub(crate) fn is_left_out(&self, pid: i32) -> bool {
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
            calls_at_page: self.can_leave,
            hints: self.hints.as_mut().map(|hints| hints.of(program)).unwrap_or_default(),
            spare: self.store.as_mut().filter(|_| files.is_some()).and_then(Store::take_spare),
            used: self.used.pop(),
            surroundings: Surroundings::default(),
            files,
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
        self.watch_status(thread.pid);
    }
}

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

/// Whether a signal, if it was sent now, would discard a signal that is still to be delivered: those that stop a process
/// and `SIGCONT` discard each other.
fn would_discard(tid: i32, signal: i32) -> bool {
    let is_pending = |other| ["SigPnd", "ShdPnd"].into_iter().any(|line| has_signal(tid, line, other));
    match signal {
        libc::SIGCONT => STOPS.into_iter().any(is_pending),
        signal if STOPS.contains(&signal) => is_pending(libc::SIGCONT),
        _ => false,
    }
}
