//! Profiles of samples that other tools' files give as stacks, or as trees of functions.

use std::collections::HashMap;
use std::fmt;

use treering_profile::{
    Frame, Function, FunctionKind, InvalidProfile, Line, LineId, MetricId, Process, ProcessId, Profile,
    RecursionRule, Run, RunId, StringId, ThreadId,
};

use crate::JsonError;
use crate::budget::Budget;

/// Why stacks could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StackError {
    /// It holds no samples.
    Empty,
    /// It takes far more memory than any profile of its size does.
    TooLarge,
    /// It is not the JSON that it should be.
    Json(JsonError),
    /// A part of it makes no sense.
    Damaged {
        /// The problem.
        what: &'static str,
        /// Where: the number of a line, or the position of a byte, as `unit` says.
        at: u64,
        /// The unit of `at`.
        unit: &'static str,
    },
    /// The whole does not make a profile.
    Invalid(InvalidProfile),
}

impl fmt::Display for StackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("it holds no samples"),
            Self::TooLarge => f.write_str("it takes far more memory than a profile of its size"),
            Self::Json(error) => error.fmt(f),
            Self::Damaged { what, at, unit } => write!(f, "{what} ({unit} {at})"),
            Self::Invalid(invalid) => write!(f, "its parts do not fit together: {invalid}"),
        }
    }
}

impl std::error::Error for StackError {}

/// Declares the error of a format whose files are read as stacks.
macro_rules! declare_stack_error {
    ($doc:literal) => {
        #[doc = $doc]
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct ReadError(pub crate::StackError);

        impl std::fmt::Display for ReadError {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }

        impl std::error::Error for ReadError {}

        impl From<crate::StackError> for ReadError {
            fn from(error: crate::StackError) -> Self {
                Self(error)
            }
        }
    };
}
pub(crate) use declare_stack_error;

/// The columns of a node: parent, function, call site, what finds its children, and costs.
const NODE_COLUMNS: usize = 8;

/// A profile that stacks are added to, one after the other.
pub(crate) struct Stacks {
    pub(crate) profile: Profile,
    pub(crate) run: RunId,
    budget: Budget,
    processes: HashMap<u32, ProcessId>,
    threads: HashMap<(u32, String), ThreadId>,
    frames: Vec<Frame>,
    /// The line at which the last frame ran.
    line: Option<LineId>,
}

impl Stacks {
    pub(crate) fn new(budget: Budget) -> Self {
        let mut profile = Profile::new(RecursionRule::Full);
        let run = profile.add_run(Run::default());
        let (processes, threads, frames) = (HashMap::new(), HashMap::new(), Vec::new());
        Self { profile, run, budget, processes, threads, frames, line: None }
    }

    /// A thread, told by its process and name.
    pub(crate) fn thread(&mut self, pid: u32, tid: u32, name: &str) -> ThreadId {
        let key = (pid, name.to_owned());
        if let Some(&known) = self.threads.get(&key) {
            return known;
        }
        let run = self.run;
        let add = || self.profile.add_process(Process { run, pid, name: String::new() });
        let process = *self.processes.entry(pid).or_insert_with(add);
        let thread = self.profile.add_thread(process, tid, name);
        self.threads.insert(key, thread);
        thread
    }

    /// Begins a stack.
    pub(crate) fn begin(&mut self) {
        self.frames.clear();
        self.line = None;
    }

    /// Adds a function below the last one, and the line that runs in it, 0 if it is not known.
    pub(crate) fn frame(&mut self, name: &str, file: &str, line: u32, kind: FunctionKind) {
        let strings = &mut self.profile.strings;
        let name = strings.intern(name);
        let file = if file.is_empty() { StringId::new(0) } else { strings.intern(file) };
        self.function(Function { file, kind, ..Function::named(name) }, line);
    }

    /// The same with a function that is known.
    pub(crate) fn function(&mut self, function: Function, line: u32) {
        let id = self.profile.functions.intern(function);
        self.frames.push(Frame { function: id, call_site: self.line });
        self.line = (line > 0).then(|| self.profile.lines.intern(Line { file: function.file, line }));
    }

    /// Adds the stack with its weights.
    pub(crate) fn add(&mut self, thread: ThreadId, weights: &[(MetricId, u64)]) -> Result<(), StackError> {
        if !self.budget.allows(self.frames.len(), NODE_COLUMNS) {
            return Err(StackError::TooLarge);
        }
        let before = self.profile.tree.len();
        self.profile.add_stack(thread, &self.frames, self.line, weights);
        let added = self.profile.tree.len() - before;
        self.budget.numbers(added, NODE_COLUMNS).map_err(|_| StackError::TooLarge)
    }

    /// The profile, if it is one.
    pub(crate) fn finish(mut self, collector: &str) -> Result<Profile, StackError> {
        if self.profile.threads.is_empty() {
            return Err(StackError::Empty);
        }
        self.profile.metadata.set_foreign(collector);
        self.profile.compact_line_costs();
        self.profile.validate().map_err(StackError::Invalid)?;
        Ok(self.profile)
    }
}
