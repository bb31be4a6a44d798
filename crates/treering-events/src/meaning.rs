//! The values of numbers in records.

/// Values of [`Header::clock`](crate::Header::clock).
pub mod clock {
    /// The processor's time stamp counter.
    pub const TSC: u32 = 1;
    /// `CLOCK_MONOTONIC`, in nanoseconds.
    pub const MONOTONIC: u32 = 2;
}

/// Values of [`Header::mode`](crate::Header::mode).
pub mod mode {
    /// A calling context tree.
    pub const CALL_GRAPH: u32 = 1;
    /// One node for each function, below the root.
    pub const FLAT: u32 = 2;
    /// A calling context tree with calls but without time.
    pub const COUNT: u32 = 3;
}

/// Values of [`Header::rule`](crate::Header::rule); see the glossary.
pub mod rule {
    /// A function directly under itself stays in one node.
    pub const DIRECT: u32 = 1;
    /// A node for each depth.
    pub const FULL: u32 = 2;
    /// An arc that is already on the path leads back up to it.
    pub const SWI_CLASSIC: u32 = 3;
}

/// Values of [`Function::kind`](crate::Function::kind).
pub mod function_kind {
    /// The root of a thread.
    pub const ROOT: u32 = 1;
    /// A task or scope with a name.
    pub const TASK: u32 = 2;
    /// Code at an address in a module.
    pub const NATIVE: u32 = 3;
    /// A function of an interpreted language.
    pub const INTERPRETED: u32 = 4;
    /// A function that the interpreter brings with it.
    pub const BUILTIN: u32 = 5;
    /// An operator of an interpreted language.
    pub const OPERATOR: u32 = 6;
    /// A file of statements.
    pub const SCRIPT: u32 = 7;
    /// Compiled code that the interpreter has loaded.
    pub const EXTENSION: u32 = 8;
    /// A function without a name, told by the place where it was made.
    pub const ANONYMOUS: u32 = 9;
}

/// Values of [`Setting::kind`](crate::Setting::kind).
pub mod setting {
    /// A parameter of the run.
    pub const PARAMETER: u32 = 1;
    /// A result of the run.
    pub const RESULT: u32 = 2;
    /// The benchmark's name, with its description as value.
    pub const BENCHMARK: u32 = 3;
    /// Something that a reader of the profile should know, as value.
    pub const NOTE: u32 = 4;
}

/// Values of [`Thread::state`](crate::Thread::state).
pub mod thread_state {
    /// It runs.
    pub const RUNNING: u32 = 1;
    /// It has ended; another thread may take its record over.
    pub const ENDED: u32 = 2;
}

/// Why an activation ended without a leave of its own: indexes of [`Thread::unwound`](crate::Thread::unwound).
pub mod unwound {
    /// An activation further out was left.
    pub const BY_OUTER: usize = 0;
    /// The frame that it would have ended with is gone: `longjmp`.
    pub const BY_JUMP: usize = 1;
    /// The thread ended.
    pub const BY_THREAD_END: usize = 2;
    /// Recording was switched off.
    pub const BY_SWITCH: usize = 3;
}

/// Bits of [`Header::flags`](crate::Header::flags) and [`Activation::flags`](crate::Activation::flags).
pub mod flag {
    /// Header: the file could not grow; what came later is missing from it.
    pub const NOT_ALL_STORED: u32 = 1;
    /// Header: recording has ended.
    pub const FINISHED: u32 = 2;
    /// Header: processor time of tasks is recorded.
    pub const CPU_TIME: u32 = 4;
    /// Header: allocations are attributed to nodes.
    pub const MEMORY: u32 = 8;
    /// Header: the writer counts exits itself, in [`Node::exits`](crate::Node::exits).
    pub const EXITS: u32 = 16;

    /// Activation: its node was already open when it was entered.
    pub const INNER: u64 = 1;
    /// Activation: it is not timed.
    pub const UNTIMED: u64 = 2;
    /// Activation: it goes on with one that was counted elsewhere: before the process was forked,
    /// or when a future was polled first.
    pub const INHERITED: u64 = 4;
    /// Activation: it was started by a name or number and is ended without a token.
    pub const BY_START: u64 = 8;
    /// Activation: its node counts its open activations.
    pub const COUNTED: u64 = 16;
    /// Activation: where the class of its argument's size stands, plus 1; 0 for none.
    pub const SIZE_SHIFT: u32 = 16;
}
