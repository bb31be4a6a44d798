//! A traced thread, with what only the tracer knows of it.

use crate::counting::slow_path::SlowPathCounts;
use crate::journal::JournaledThread;
use crate::sys::remote_syscall::HeldSignal;
use crate::tracer::attach::Parked;
use crate::tracer::own_tracer::Role;
use crate::tracer::rseq::Restartable;
use crate::tracer::selection::Entered;
use crate::tracer::signal_throttle::SignalThrottle;

/// One thread that is traced.
#[derive(Debug)]
pub(crate) struct Thread {
    pub(crate) tid: i32,
    pub(crate) pid: i32,
    /// The address space whose translated code it runs; none if it is not counted.
    pub(crate) space: Option<usize>,
    pub(crate) area: usize,
    pub(crate) state: State,
    /// Signals that came when they could not be delivered, and are to be sent again.
    pub(crate) held: Vec<HeldSignal>,
    /// Signals that were sent again, with what their handlers are to be told.
    pub(crate) sent: Vec<HeldSignal>,
    /// When it is given signals.
    pub(crate) throttle: SignalThrottle,
    pub(crate) slow_path: SlowPathCounts,
    /// Its number in the journal of its address space.
    pub(crate) number: Option<u32>,
    /// The count of its current activation when it ended, if trees are kept and it could be read.
    pub(crate) last_count: Option<[u64; 2]>,
    /// What it has entered of what is selected.
    pub(crate) entered: Entered,
    /// Whether its counts were taken, and it runs uncounted.
    pub(crate) frozen: bool,
    /// Whether it runs in its parent's memory without being a thread of its process.
    pub(crate) borrows: bool,
    /// What it has told the kernel before it was counted, and is to tell again.
    pub(crate) restartable: Option<Restartable>,
    /// Where it is in its own code, in which it stays until it is left alone.
    pub(crate) parked: Option<Parked>,
    /// What it is to threads that trace each other.
    pub(crate) role: Role,
}

/// What a thread is doing, as far as the tracer has to go on with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// It runs.
    Running,
    /// A signal was delivered while the instruction at the address was next; it will stop at its
    /// handler.
    EnteringHandler {
        /// The address that was interrupted.
        from: u64,
        /// Whether the program was stepping itself there.
        traps: bool,
    },
    /// It is in a system call whose result the tracer wants to see.
    InCall(Call),
}

/// What is to be done about a signal, as the kernel's `rt_sigaction` has it: the handler, flags, what the
/// handler returns to, and what it blocks.
pub(crate) type Action = [u64; 4];

/// A system call whose result the tracer wants to see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    /// Memory becomes code: `mmap`, `mprotect`, `pkey_mprotect`.
    Executable {
        number: i64,
        address: u64,
        length: u64,
        protection: u64,
        /// The file descriptor and offset of `mmap`.
        file: Option<(i32, u64)>,
        /// Whether what is mapped is shared.
        shared: bool,
    },
    /// Code may be moved: `mremap`.
    Move { from: u64, length: u64, to_length: u64 },
    /// Memory between two addresses is no code any more: `munmap`, `mprotect`, `mmap` over it.
    Gone { start: u64, end: u64, is_unmapped: bool },
    /// What stands between two addresses may be something else afterwards: `madvise`.
    Changed { start: u64, end: u64 },
    /// The memory of a process is opened to be written to, as a file.
    OpenedMemory,
    /// The heap is to end there: `brk`.
    Heap(u64),
    /// A handler returns.
    HandlerReturn,
    /// The program says what is to be done about faults.
    FaultAction(Action),
    /// The program sets a filter, whose address was exchanged for another.
    Filtered(u64),
    /// A child is made by a call from which `CLONE_UNTRACED` was taken: its first argument before.
    Clone(u64),
    /// The call was answered by the tracer.
    Answered(u64),
}

impl Thread {
    /// A thread that has just begun.
    pub(crate) fn new(tid: i32, pid: i32, space: Option<usize>, area: usize) -> Self {
        Self {
            tid,
            pid,
            space,
            area,
            state: State::Running,
            held: Vec::new(),
            sent: Vec::new(),
            throttle: SignalThrottle::default(),
            slow_path: SlowPathCounts::default(),
            number: None,
            last_count: None,
            entered: Entered::default(),
            frozen: false,
            borrows: false,
            restartable: None,
            parked: None,
            role: Role::default(),
        }
    }

    /// What its journal needs of it.
    pub(crate) fn journaled(&mut self) -> JournaledThread<'_> {
        let Self { tid, pid, area, number, slow_path, .. } = self;
        JournaledThread { tid: *tid, pid: *pid, area: *area, number, slow_path }
    }
}
