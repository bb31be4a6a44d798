//! A traced thread, and the state that the tracer keeps of it.

use std::time::Instant;

use crate::areas::tree_frame::Inherited;
use crate::counting::slow_path::SlowPathCounts;
use crate::journal::JournaledThread;
use crate::program::region::Regions;
use crate::surroundings::Surroundings;
use crate::sys::Registers;
use crate::sys::remote_syscall::HeldSignal;
use crate::tracer::repeated_call::Again;
use crate::tracer::rseq::Restartable;
use crate::tracer::signal_throttle::SignalThrottle;

/// A traced thread.
#[derive(Debug)]
pub(crate) struct Thread {
    pub(crate) tid: i32,
    pub(crate) pid: i32,
    /// The address space whose translated code it runs; none if it is not counted.
    pub(crate) space: Option<usize>,
    pub(crate) area: usize,
    pub(crate) state: State,
    /// Signals that could not be delivered when they came, and are to be sent again.
    pub(crate) held: Vec<HeldSignal>,
    /// Signals that were sent again, with their original information.
    pub(crate) sent: Vec<HeldSignal>,
    /// Decides when the thread gets signals.
    pub(crate) throttle: SignalThrottle,
    pub(crate) slow_path: SlowPathCounts,
    /// Its number in the journal of its address space.
    pub(crate) number: Option<u32>,
    /// The count of its current activation when it ended, if trees are kept and the count could be read.
    pub(crate) last_count: Option<[u64; 2]>,
    /// The selected functions and marks that it is inside of.
    pub(crate) entered: Entered,
    /// The signal that has stopped its process, while it stands still for that.
    pub(crate) group_stop: Option<i32>,
    /// Whether its counts were taken, so that it runs on uncounted.
    pub(crate) frozen: bool,
    /// Whether it runs in its parent's memory without being a thread of its process (`vfork`).
    pub(crate) borrows: bool,
    /// The restartable sequences that it registered before it was counted, and registers again afterwards.
    pub(crate) restartable: Option<Restartable>,
    /// Its state in its own code, where it stays until it is detached.
    pub(crate) parked: Option<Parked>,
    /// While it waits in a call that was made again: when that call has timed out, if it does.
    pub(crate) waits_until: Option<Option<Instant>>,
    /// Its restrictions on itself.
    pub(crate) own_rules: OwnRules,
    /// Its part when threads of its process trace each other.
    pub(crate) role: Role,
}

/// The restrictions of a thread on itself, which its children inherit. The tracer's own filter is not among it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct OwnRules {
    /// Whether it filters its system calls.
    pub(crate) filters: bool,
    /// Whether it gains no privileges by `execve`.
    pub(crate) no_new_privileges: bool,
}

/// The state of a thread, as far as the tracer has to act on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// It runs.
    Running,
    /// A signal was delivered before the instruction at the address; the thread will stop at its handler.
    EnteringHandler {
        /// The address that was interrupted.
        from: u64,
        /// Whether the program was stepping itself there.
        traps: bool,
    },
    /// It is in a watched system call.
    InCall(Call),
}

/// The action for a signal in the layout of the kernel's `rt_sigaction`: the handler, the flags, the
/// restorer, and the blocked signals.
pub(crate) type Action = [u64; 4];

/// A system call whose result the tracer needs.
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
        /// Whether the mapping is shared.
        shared: bool,
    },
    /// Code may be moved: `mremap`.
    Move { from: u64, length: u64, to_length: u64 },
    /// Memory between two addresses stops being code: `munmap`, `mprotect`, `mmap` over it.
    Gone { start: u64, end: u64, is_unmapped: bool },
    /// The contents between two addresses may change: `madvise`.
    Changed { start: u64, end: u64 },
    /// The memory of a process is opened for writing, as a file.
    OpenedMemory,
    /// The heap is to end at this address: `brk`.
    Heap(u64),
    /// A handler returns.
    HandlerReturn,
    /// The program sets its action for faults.
    FaultAction(Action),
    /// The program sets a filter; the call was given the address of a longer one instead of this address.
    Filtered(u64),
    /// A child is made by a call from which `CLONE_UNTRACED` was removed; this was its first argument.
    Clone(u64),
    /// The call waits, and is made again after a signal that the program ignores.
    Waits {
        /// Whether the thread is in it.
        is_entered: bool,
        /// The difference from the call that the program made.
        again: Again,
    },
    /// The call is about surroundings that are held.
    Held(HeldCall),
    /// The call was answered by the tracer.
    Answered(u64),
}

/// A call about held surroundings that the kernel makes; see `tracer/held_call.rs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeldCall {
    /// The call waits.
    Wait {
        /// The time of the clock at which it ends.
        until: u64,
        /// The result when it ends then.
        timed_out: i32,
        /// The program's own arguments in rsi, rdx and r10.
        program: [u64; 3],
    },
    /// The kernel writes the resources that the program has used to this address (`getrusage`).
    Usage(u64),
    /// A file of random numbers is opened; the program's own arguments in rdi and rsi.
    Random([u64; 2]),
}

/// The state of a thread in its own code, kept from stopping it there until it is detached.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parked {
    pub(crate) registers: Registers,
}

/// A new thread or process as its parent reported it, until it stops for the first time.
#[derive(Debug)]
pub(crate) struct PendingClone {
    pub(crate) pid: i32,
    /// The number of its parent's address space.
    pub(crate) space: Option<usize>,
    /// Whether it shares that address space; otherwise it has a copy.
    pub(crate) shares: bool,
    pub(crate) own_gs: u64,
    /// Where the call that made it continues, if it was made at the system call page.
    pub(crate) call_next: u64,
    /// The context that its tree begins with.
    pub(crate) context: Inherited,
    /// Its surroundings, if it has a copy.
    pub(crate) surroundings: Option<Surroundings>,
    /// The code regions at the moment of the copy.
    pub(crate) regions: Option<Regions>,
    /// The selected functions and marks that it begins inside of.
    pub(crate) entered: Option<Entered>,
    /// Whether it runs in its parent's memory without being a thread of its process (`vfork`).
    pub(crate) borrows: bool,
    /// The parent's restartable sequences, which a copy has as well.
    pub(crate) restartable: Option<Restartable>,
    /// Its restrictions, which are those of its parent.
    pub(crate) own_rules: OwnRules,
    /// The first argument of the call as the program passed it, if the tracer changed it.
    pub(crate) argument: Option<u64>,
}

/// The selected functions and marks that a thread has entered and not left.
#[derive(Debug, Clone, Default)]
pub(crate) struct Entered {
    /// The outermost activation of a watched function.
    pub(crate) frame: Option<Frame>,
    /// The activations on other stacks.
    pub(crate) elsewhere: Vec<Elsewhere>,
    /// Whether the last mark was a start mark.
    pub(crate) marked: bool,
}

/// An activation of a watched function.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame {
    /// The stack pointer at its first instruction.
    pub(crate) stack: u64,
    /// Its return address.
    pub(crate) to: u64,
}

/// An activation of a watched function whose thread went on on another stack.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Elsewhere {
    pub(crate) frame: Frame,
    /// The stack pointer when the thread left that stack.
    pub(crate) lowest: u64,
}

impl Elsewhere {
    /// Whether the stack at this address is its own.
    pub(crate) fn holds(&self, stack: u64) -> bool {
        (self.lowest..=self.frame.stack).contains(&stack)
    }
}

/// A thread's part in tracing within its process, as tracer or as traced thread.
#[derive(Debug, Default)]
pub(crate) struct Role {
    /// The thread that has attached to it.
    pub(crate) tracer: Option<i32>,
    /// The registers that its tracer sees while it is stopped.
    pub(crate) shown: Option<Box<Registers>>,
    /// Whether its calls of `wait4` stop at our filter.
    pub(crate) waits_stop: bool,
    /// Whether it waits for an attached thread to stop.
    pub(crate) waits: bool,
}

/// The tracer's way with a stopped call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The call is made, and needs nothing else.
    Go,
    /// The call is made, and its result is needed.
    Watch(Call),
    /// The process cannot be counted any further, for this reason.
    Refuse(&'static str),
    /// The call is made after the bound thread has its own processors back.
    Unbind,
    /// The call may open a file for writing.
    Opens,
    /// The call reads or sets a limit on address space.
    Limit,
    /// The call asks for what the thread restricts itself to, or restricts it.
    Rules,
    /// The thread wants to trace another thread.
    Trace,
    /// The thread traces others, and waits for one of them.
    Wait,
}

/// The lasting effect on a process that was attached to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Left {
    /// Its number.
    pub pid: i32,
    /// Whether the programs it executes can no longer gain privileges (`PR_SET_NO_NEW_PRIVS`), although they
    /// could before.
    pub lost_privileges: bool,
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
            group_stop: None,
            frozen: false,
            borrows: false,
            restartable: None,
            parked: None,
            waits_until: None,
            own_rules: OwnRules::default(),
            role: Role::default(),
        }
    }

    /// The part of the thread that its journal needs.
    pub(crate) fn journaled(&mut self) -> JournaledThread<'_> {
        let Self { tid, pid, area, number, slow_path, .. } = self;
        JournaledThread { tid: *tid, pid: *pid, area: *area, number, slow_path }
    }
}
