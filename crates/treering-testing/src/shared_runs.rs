//! Runs of programs that several tests look at.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// A program and its arguments.
type Command = (PathBuf, Vec<String>);

/// The results of runs of programs, each made once for all tests of a binary. A test waits for a run that another is making.
///
/// For runs that always give the same.
#[derive(Debug)]
pub struct SharedRuns<T>(Mutex<Option<HashMap<Command, Arc<OnceLock<T>>>>>);

impl<T> SharedRuns<T> {
    /// No runs yet.
    pub const fn new() -> Self {
        Self(Mutex::new(None))
    }

    /// The result of a program with these arguments, which `run` gives the first time.
    pub fn get(&self, program: &Path, arguments: &[&str], run: impl FnOnce() -> T) -> T
    where
        T: Clone,
    {
        let command = (program.to_owned(), arguments.iter().map(|&word| word.to_owned()).collect());
        let result = {
            // A test that failed during a run has left nothing half.
            let mut runs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            runs.get_or_insert_default().entry(command).or_default().clone()
        };
        result.get_or_init(run).clone()
    }
}

impl<T> Default for SharedRuns<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_runs_once_for_the_same_arguments() {
        let runs = SharedRuns::new();
        let result = |argument, number| runs.get(Path::new("/bin/true"), &[argument], || number);
        assert_eq!((result("a", 1), result("b", 2), result("a", 3)), (1, 2, 1));
    }
}
