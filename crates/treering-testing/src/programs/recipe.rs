//! The programs to compile, and how.

/// The language of a source file, which decides the compiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// C, by `$CC` or `cc`.
    C,
    /// C++, by `$CXX` or `c++`.
    Cpp,
    /// Rust, by `$RUSTC` or `rustc`.
    Rust,
}

/// A program: its source below `fixtures/programs` and the flags it is compiled with.
///
/// The flags given last win, so a variant can undo those of the recipe it is made from.
#[derive(Clone, Debug)]
pub struct Recipe {
    /// The program's name: the file that is run, which is also what the kernel calls its main
    /// thread (the first 15 bytes).
    pub name: &'static str,
    /// Tells variants of one program apart; empty for the plain one.
    pub variant: String,
    /// The source file, relative to `fixtures/programs`.
    pub source: &'static str,
    /// The language of the source.
    pub language: Language,
    /// The compiler's flags, after the optimising and debugging ones that every program has.
    pub flags: Vec<String>,
}

/// A recipe as it stands in the tables below.
macro_rules! recipe {
    ($(#[$doc:meta])* $constant:ident, $name:literal, $source:literal, $language:ident $(, $flag:literal)*) => {
        $(#[$doc])*
        pub const $constant: Program =
            Program { name: $name, source: $source, language: Language::$language, flags: &[$($flag),*] };
    };
}

/// A program of the table; [`build`](Program::build) compiles it, [`variant`](Program::variant) changes it.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    name: &'static str,
    source: &'static str,
    language: Language,
    flags: &'static [&'static str],
}

impl Program {
    /// The recipe with nothing changed.
    pub fn recipe(&self) -> Recipe {
        self.variant("", &[])
    }

    /// The recipe with more flags, kept apart from the plain program under a name of its own.
    pub fn variant(&self, variant: &str, flags: &[&str]) -> Recipe {
        let flags = self.flags.iter().chain(flags).map(|&flag| flag.to_owned()).collect();
        let variant = variant.to_owned();
        Recipe { name: self.name, variant, source: self.source, language: self.language, flags }
    }

    /// Compiles the plain program unless it is there, and returns its path.
    pub fn build(&self) -> Result<std::path::PathBuf, super::BuildError> {
        self.recipe().build()
    }
}

recipe!(
    /// Four functions with 10, 20, 30 and 40 % of the work.
    KNOWN_SHARES, "known_shares", "known_shares.c", C
);
recipe!(
    /// Fools samplers with equal intervals; prints its own true shares.
    ALIASING, "aliasing", "aliasing.c", C
);
recipe!(
    /// A thread, the main thread and a child process with 3 : 1 : 1 parts of the work.
    THREADS_AND_FORK, "threads_and_fork", "threads_and_fork.c", C, "-pthread"
);
recipe!(
    /// Named, short-lived threads with equal work.
    MANY_THREADS, "many_threads", "many_threads.c", C, "-pthread"
);
recipe!(
    /// Threads or processes of a given life; prints its own true times.
    SHORT_LIVES, "short_lives", "short_lives.c", C, "-pthread"
);
recipe!(
    /// Works in processes that nothing waits for; prints their true times.
    UNWAITED, "unwaited", "unwaited.c", C
);
recipe!(
    /// Direct recursion with half of the work, mutual recursion with a quarter each.
    RECURSION, "recursion", "recursion.c", C
);
recipe!(
    /// Work below a 256 KiB frame, or thousands of calls deep.
    DEEP_STACK, "deep_stack", "deep_stack.c", C
);
recipe!(
    /// Realigned frames, signals, coroutines, code without unwind tables: the callers are known.
    HARD_STACKS, "hard_stacks", "hard_stacks.c", C
);
recipe!(
    /// Works below frames with arrays that are never touched, where the kernel's copy of the stack stops.
    STACK_HOLE, "stack_hole", "stack_hole.c", C, "-pthread"
);
recipe!(
    /// The main thread ends, then another works for as many rounds as it is told.
    MAIN_EXITED, "main_exited", "main_exited.c", C, "-pthread"
);
recipe!(
    /// Blocked in sleep, pipe and mutex, 60 : 40 : 20.
    SLEEPER, "sleeper", "sleeper.c", C, "-pthread"
);
recipe!(
    /// Three functions inlined into each other.
    INLINES, "inlines", "inlines.cpp", Cpp
);
recipe!(
    /// Code made at run time, with names in a map or in a jitdump.
    JIT, "jit", "jit.c", C
);
recipe!(
    /// Works, then dies of a signal.
    CRASH, "crash", "crash.c", C
);
recipe!(
    /// Exits with the status it is told.
    EXITS_WITH, "exits_with", "exits_with.c", C
);
recipe!(
    /// The library that [`PLUGIN_HOST`] loads.
    PLUGIN, "plugin.so", "plugin.c", C, "-shared", "-fPIC"
);
recipe!(
    /// Loads a library while it runs, works in it and unloads it.
    PLUGIN_HOST, "plugin_host", "plugin_host.c", C, "-ldl"
);
recipe!(
    /// Loads two libraries in turn, one where the other was.
    SWAPPED_HOST, "swapped_host", "count/swapped_host.c", C, "-ldl"
);
recipe!(
    /// A library for [`SWAPPED_HOST`]; the other one has the flag `-DLONGER`.
    SWAPPED_PLUGIN, "swapped.so", "count/swapped_plugin.c", C, "-shared", "-fPIC", "-O1"
);
recipe!(
    /// A program without a build-id; the one that takes its path has the flag `-DOTHER`.
    SAME_PATH, "same_path", "same_path.c", C, "-O1", "-Wl,--build-id=none"
);
recipe!(
    /// A C++ program heavy in the standard library.
    STL, "stl", "workloads/stl.cpp", Cpp
);
recipe!(
    /// A Rust program of iterator chains, sorts and hash maps.
    RUST_CHAINS, "chains", "workloads/chains.rs", Rust
);
recipe!(
    /// Every instruction is its own: no C library, no loader.
    FREESTANDING, "freestanding", "count/freestanding.c", C,
    "-static", "-nostdlib", "-ffreestanding", "-fno-optimize-sibling-calls", "-fno-stack-protector", "-fno-pie", "-no-pie"
);
recipe!(
    /// Loops, recursion, a switch, pointers to functions, tail calls, setjmp, with known counts.
    CONTROL_FLOW, "control_flow", "count/control_flow.c", C
);
recipe!(
    /// Lines, branches and functions with known executions, and some that are never executed.
    COVERED, "covered", "count/covered.c", C, "-O0", "-fno-omit-frame-pointer"
);
recipe!(
    /// A function whose cost is nearly all in the library that it calls, and one that costs little.
    INCLUSIVE, "inclusive", "count/inclusive.c", C, "-O2", "-fno-optimize-sibling-calls"
);
recipe!(
    /// Sixteen functions that call each other: a chain of calls for every word of a given length.
    MANY_CHAINS, "many_chains", "count/many_chains.c", C
);
recipe!(
    /// Two functions that call each other ever deeper, left by returns, a jump, in a signal's handler and in a child.
    DEEP_CALLS, "deep_calls", "count/deep_calls.c", C, "-fno-optimize-sibling-calls"
);
recipe!(
    /// Virtual calls and exceptions, with known counts.
    OBJECTS, "objects", "count/objects.cpp", Cpp
);
recipe!(
    /// Signals raised, faults stepped over and jumped out of.
    SIGNALS, "signals", "count/signals.c", C
);
recipe!(
    /// Threads that call a leaf as often as they are told.
    LEAF_THREADS, "leaf_threads", "count/leaf_threads.c", C, "-pthread"
);
recipe!(
    /// Walks through memory and branches of known kinds, for models of caches.
    MEMORY_WALKS, "memory_walks", "count/memory_walks.c", C
);
recipe!(
    /// Code made at run time, twice at the same address.
    REWRITTEN, "rewritten", "count/rewritten.c", C
);
recipe!(
    /// Children by fork, by vfork and exec, and by posix_spawn.
    CHILDREN, "children", "count/children.c", C
);
recipe!(
    /// Trait objects, closures and caught panics.
    RUST_SMALL, "chains_small", "count/chains_small.rs", Rust
);
recipe!(
    /// The runtime's marks for `count --marked`.
    RUST_MARKED, "marked_rust", "count/marked.rs", Rust
);
recipe!(
    /// Tight loops, for `bench count`; the argument is the number of rounds.
    BENCH_LOOPS, "bench_loops", "count/bench_loops.c", C
);
recipe!(
    /// Calls and returns, for `bench count`; the argument is the number asked for.
    BENCH_FIB, "bench_fib", "count/bench_fib.c", C, "-fno-optimize-sibling-calls"
);
recipe!(
    /// Sorting and a sieve, for `bench count`; the argument is the number of elements.
    BENCH_SORT, "bench_sort", "count/bench_sort.c", C
);
recipe!(
    /// Virtual calls and a map, for `bench count`; the argument is the number of rounds.
    BENCH_OBJECTS, "bench_objects", "count/bench_objects.cpp", Cpp
);
recipe!(
    /// Threads in loops while signals come from all sides.
    SIGNAL_STORM, "signal_storm", "count/signal_storm.c", C, "-pthread"
);
recipe!(
    /// Flags and registers that live across returns and indirect jumps.
    TRANSFERS, "transfers", "count/transfers.c", C
);
recipe!(
    /// Registers that nothing uses between returns and calls, as handlers of signals see them there.
    HELD, "held", "count/held.c", C
);
recipe!(
    /// Becomes another program under a filter of system calls.
    UNDER_FILTER, "under_filter", "count/under_filter.c", C
);
recipe!(
    /// Ended by the kernel before its first instruction.
    BEYOND, "beyond", "count/beyond.c", C,
    "-static", "-nostdlib", "-ffreestanding", "-fno-pie", "-no-pie", "-Wl,-Ttext-segment=0x900000000000", "-Wl,-emain"
);
recipe!(
    /// Blocks that follow each other, left and come to in every way.
    ROWS, "rows", "count/rows.c", C
);
recipe!(
    /// A loop of one block in memory that may be written to.
    WRITABLE_LOOP, "writable_loop", "count/writable_loop.c", C
);
recipe!(
    /// Blocks that are left at a fault: always before they count, or for where a register is wanted.
    LEFT_AT_FAULTS, "left_at_faults", "count/left_at_faults.c", C
);
recipe!(
    /// Functions whose first instruction faults.
    FAULTS, "faults", "count/faults.c", C
);
recipe!(
    /// A switch whose jump is a return.
    RETURNS_AS_JUMPS, "returns_as_jumps", "count/returns_as_jumps.c", C, "-O2",
    "-fcf-protection=none", "-mindirect-branch=thunk", "-fjump-tables"
);
recipe!(
    /// A program that steps through its own instructions.
    OWN_STEPS, "own_steps", "count/own_steps.c", C
);
recipe!(
    /// Threads, or processes, whose makers end while they are made.
    ENDS_WHILE_MADE, "ends_while_made", "count/ends_while_made.c", C, "-pthread"
);
recipe!(
    /// Children that are stopped and continued while they become another program.
    STOPPED_AT_EXEC, "stopped_at_exec", "count/stopped_at_exec.c", C
);
recipe!(
    /// A program that handles the signal by which a terminal stops it.
    SUSPENDED, "suspended", "count/suspended.c", C
);
recipe!(
    /// Maps memory at an address that it insists on.
    WANTED_MEMORY, "wanted_memory", "count/wanted_memory.c", C
);
recipe!(
    /// A heap that grows.
    HEAP, "heap", "count/heap.c", C
);
recipe!(
    /// Faults that sanitizers find; to be compiled with one.
    SANITIZED, "sanitized", "count/sanitized.c", C, "-pthread"
);
recipe!(
    /// Children that are not to be traced.
    UNTRACED, "untraced", "count/untraced.c", C
);
recipe!(
    /// A base of GS that is the program's own.
    OWN_GS, "own_gs", "count/own_gs.c", C
);
recipe!(
    /// Loads the selector of GS, which cannot be counted, itself or in a child.
    LOADS_GS, "loads_gs", "count/loads_gs.c", C
);
recipe!(
    /// A filter of its own system calls.
    OWN_FILTER, "own_filter", "count/own_filter.c", C
);
recipe!(
    /// Code on the stacks of threads.
    TRAMPOLINES, "trampolines", "count/trampolines.c", C, "-pthread", "-Wl,-z,execstack"
);
recipe!(
    /// Instructions of AVX-512.
    WIDE_VECTORS, "wide_vectors", "count/wide_vectors.c", C, "-mavx512f"
);
recipe!(
    /// Returns to right addresses with one of their upper bits set as well, all of which are faults. The number is how
    /// often each is tried.
    UPPER_BITS, "upper_bits", "count/upper_bits.c", C
);
recipe!(
    /// The last vector register and whether upper parts are in use; the arguments are a file for what it says of
    /// that, and the number of signals.
    UPPER_PARTS, "upper_parts", "count/upper_parts.c", C, "-Wl,-z,lazy"
);
recipe!(
    /// Returns with the stack pointer above where the function was entered. With "few", exit status 2 if the thread
    /// gave its processor up often; with "timer", signals all the time.
    RAISED_RETURNS, "raised_returns", "count/raised_returns.c", C
);
recipe!(
    /// Branches that go one way nearly always, and with other arguments another. These are the rounds, a mask of the
    /// seldom ones, whether those make a detour, and the microseconds of a timer.
    OTHER_COURSES, "other_courses", "count/other_courses.c", C
);
recipe!(
    /// Indirect calls and jumps that lead to few targets, and with other arguments to others. These are the rounds, the
    /// first of eight targets, by how many they go on from round to round, and the microseconds of a timer.
    OTHER_TARGETS, "other_targets", "count/other_targets.c", C
);
recipe!(
    /// Limits its address space in every way, and checks what it gets.
    ADDRESS_LIMIT, "address_limit", "count/address_limit.c", C, "-O1"
);
recipe!(
    /// Waits in calls while a signal without effect comes: by its default, or SIGUSR1 if the number is 0.
    IGNORED_SIGNALS, "ignored_signals", "count/ignored_signals.c", C, "-O1"
);
recipe!(
    /// The same with a table of other calls, of which a second argument chooses one by its name.
    INTERRUPTED_CALLS, "interrupted_calls", "count/interrupted_calls.c", C, "-O1"
);
recipe!(
    /// Seals its own code before anybody attaches to it.
    SEALED, "sealed", "count/sealed.c", C, "-O1"
);
recipe!(
    /// An instruction that continues in a page that may not be executed.
    CUT_INSTRUCTION, "cut_instruction", "count/cut_instruction.c", C, "-O1"
);
recipe!(
    /// Code in memory whose single pages cannot be protected, by the number of its kind.
    UNPROTECTABLE, "unprotectable", "count/unprotectable.c", C, "-O1"
);
recipe!(
    /// Asks what it restricts itself to.
    OWN_RULES, "own_rules", "count/own_rules.c", C, "-O1"
);
recipe!(
    /// The first process of a PID namespace dies of a fault, by its number.
    FIRST_PROCESS, "first_process", "count/first_process.c", C, "-O1"
);
recipe!(
    /// A thread unmaps code while threads start, as many as the argument says.
    UNMAPPED_BESIDE, "unmapped_beside", "count/unmapped_beside.c", C, "-O1", "-pthread"
);
recipe!(
    /// A child of a process that has all its descriptors.
    FULL_DESCRIPTORS, "full_descriptors", "count/full_descriptors.c", C, "-O1", "-pthread"
);
recipe!(
    /// One place with many targets, and returns whose addresses share lower bits. These are the number of targets, and
    /// how often each is called.
    MANY_TARGETS, "many_targets", "count/many_targets.c", C, "-O1"
);
recipe!(
    /// System calls that write into code.
    KERNEL_WRITES, "kernel_writes", "count/kernel_writes.c", C, "-O1"
);
recipe!(
    /// Code that goes or changes by system calls.
    CHANGED_CODE, "changed_code", "count/changed_code.c", C, "-O1"
);
recipe!(
    /// Code that writes into itself.
    OWN_WRITER, "own_writer", "count/own_writer.c", C
);
recipe!(
    /// An instruction that begins in one mapping and ends in the next.
    TWO_MAPPINGS, "two_mappings", "count/two_mappings.c", C
);
recipe!(
    /// Code in pages that are written all the time; the argument is the number of rounds.
    RESTLESS, "restless", "count/restless.c", C, "-pthread"
);
recipe!(
    /// Threads that write at the same moment into pages of code that they have just executed.
    WRITTEN_TOGETHER, "written_together", "count/written_together.c", C, "-pthread"
);
recipe!(
    /// Jumps to a function with a pushed address to return to.
    PUSHED_RETURNS, "pushed_returns", "count/pushed_returns.c", C
);
recipe!(
    /// Makes tail calls to functions that have not been called yet.
    TAIL_CALLS, "tail_calls", "count/tail_calls.c", C, "-fno-builtin"
);
recipe!(
    /// Asks which processors its threads may run on.
    PROCESSORS, "processors", "count/processors.c", C, "-pthread"
);
recipe!(
    /// Children that load different libraries.
    FORK_THEN_LOAD, "fork_then_load", "count/fork_then_load.c", C
);
recipe!(
    /// New code while all signals are blocked.
    ALL_BLOCKED, "all_blocked", "count/all_blocked.c", C
);
recipe!(
    /// Code that is written while all signals are blocked.
    BLOCKED_WRITES, "blocked_writes", "count/blocked_writes.c", C, "-pthread"
);
recipe!(
    /// Calls a function as often as it reads, while its threads wait in calls of all kinds.
    ATTACHED, "attached", "count/attached.c", C, "-pthread"
);
recipe!(
    /// Runs on a stack that ends where it is, or below which other memory lies.
    EDGE, "edge", "count/edge.c", C, "-pthread"
);
recipe!(
    /// A line for every 10000 calls of a leaf, and then it waits until it is killed.
    LINES, "lines", "count/lines.c", C, "-pthread"
);
recipe!(
    /// The same at the bottom of a recursion, in threads or in a child as well.
    NESTED, "nested", "count/nested.c", C, "-pthread"
);
recipe!(
    /// Three functions called through pointers from forty places.
    SITES, "sites", "count/sites.c", C, "-pthread"
);
recipe!(
    /// A function that is to be counted alone, reached in every way, and marks around another part.
    SELECTED, "selected", "count/selected.c", C, "-pthread"
);
recipe!(
    /// A function that is to be counted alone and takes its arguments off the stack.
    LONG_RETURNS, "long_returns", "count/long_returns.c", C
);
recipe!(
    /// Functions whose translation goes while their callers stay, and one that begins with a call of itself.
    CREDITED, "credited", "count/credited.c", C
);
recipe!(
    /// Two stacks that are switched back and forth.
    COROUTINES, "coroutines", "count/coroutines.c", C
);
