//! What is compiled and how.

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
    /// Direct recursion with half of the work, mutual recursion with a quarter each.
    RECURSION, "recursion", "recursion.c", C
);
recipe!(
    /// Work below a 256 KiB frame, or thousands of calls deep.
    DEEP_STACK, "deep_stack", "deep_stack.c", C
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
    /// A C++ program heavy in the standard library.
    STL, "stl", "workloads/stl.cpp", Cpp
);
recipe!(
    /// A Rust program of iterator chains, sorts and hash maps.
    RUST_CHAINS, "chains", "workloads/chains.rs", Rust
);
