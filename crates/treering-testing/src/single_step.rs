//! The oracle of exact counts: a program executed one instruction at a time.
//!
//! The processor stops after every instruction (`PTRACE_SINGLESTEP`), so what was executed is known
//! without translating, decoding or trusting anything: a few hundred thousand instructions a second,
//! of all threads, children, signal handlers and generated code. [`Histogram`] counts executions by
//! address; [`StepCounts`] makes of them what a counting collector would state.
//!
//! Some programs cannot be stepped: those that handle SIGTRAP, whose handler the kernel forgets at the
//! first step that is made while SIGTRAP is blocked; and threads that execute a program other than from
//! their process's first thread.
//!
//! Programs run at the same addresses in every run, with no environment but what is given, since
//! a variable more is a few hundred instructions more.
//!
//! ```
//! use treering_testing::single_step::{Histogram, Stepped};
//!
//! let mut histogram = Histogram::default();
//! let ended = Stepped::new("/bin/true").run(&mut histogram).expect("it may be traced");
//! assert_eq!(ended.exit_status, Some(0));
//! assert!(histogram.instructions() > 1_000);
//! ```

mod code_file;
mod counts;
mod decode;
mod histogram;
mod places;
mod process;
mod processor;
#[expect(unsafe_code, reason = "system calls")]
mod sys;
mod tracer;

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::PathBuf;
use std::process::Stdio;

pub use code_file::code_files;
pub use counts::StepCounts;
pub use histogram::Histogram;
pub use process::{Mapping, SteppedProcess};

/// A program to be executed step by step.
#[derive(Clone, Debug)]
pub struct Stepped {
    program: PathBuf,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    most_steps: u64,
    output: bool,
}

/// Something that happened in a thread. Addresses are runtime addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The thread is there, or its process became another program: `at` is what runs next.
    Start {
        /// The instruction.
        at: u64,
    },
    /// An instruction was executed. One that repeats itself is executed once, when it is done.
    Executed {
        /// The instruction.
        at: u64,
        /// The address of the next instruction; `None` when the thread ended, or its process became another
        /// program.
        next: Option<u64>,
    },
    /// A signal came before `at` was executed, or because it could not be.
    Signal {
        /// The instruction that was not executed.
        at: u64,
        /// The address of the next instruction; `None` when the signal ended the thread.
        handler: Option<u64>,
    },
}

/// Is told of each step.
pub trait Observer {
    /// Takes a step of the thread `tid` of `process`. The process is stopped behind the step.
    fn step(&mut self, process: &mut SteppedProcess, tid: u32, step: Step);
}

/// How the program ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ended {
    /// Its exit status, unless a signal ended it.
    pub exit_status: Option<i32>,
    /// Its standard output, if that was asked for.
    pub output: Vec<u8>,
}

impl Stepped {
    /// A program without arguments and with an empty environment, standard input and output.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            arguments: Vec::new(),
            environment: Vec::new(),
            most_steps: 100_000_000,
            output: false,
        }
    }

    /// Adds arguments.
    #[must_use]
    pub fn arguments<A: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.arguments.extend(arguments.into_iter().map(|argument| argument.as_ref().to_owned()));
        self
    }

    /// Adds a variable to the environment.
    #[must_use]
    pub fn variable(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Gives up after that many steps; without, after a hundred million.
    #[must_use]
    pub fn most_steps(mut self, most_steps: u64) -> Self {
        self.most_steps = most_steps;
        self
    }

    /// Keeps what the program writes to its standard output: at most as much as a pipe holds
    /// (64 KiB), since it is read when the program has ended.
    #[must_use]
    pub fn keep_output(mut self) -> Self {
        self.output = true;
        self
    }

    /// Executes the program with all its threads and children, and tells the observer of every step.
    ///
    /// # Errors
    /// When the program cannot be started or traced, or takes more steps than allowed. Its processes are
    /// killed then.
    pub fn run(&self, observer: &mut dyn Observer) -> io::Result<Ended> {
        let mut command = std::process::Command::new(&self.program);
        command.args(&self.arguments).env_clear().envs(self.environment.iter().cloned());
        let output = if self.output { Stdio::piped() } else { Stdio::null() };
        command.stdin(Stdio::null()).stdout(output);
        tracer::run(command, self.most_steps, observer)
    }
}
