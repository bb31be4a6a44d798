//! The outcome for the addresses of each module.

use std::path::PathBuf;

use treering_profile::Profile;

use crate::Problem;

/// A profile with names instead of addresses, and what became of the addresses of each module.
#[derive(Debug)]
pub struct Symbolised {
    /// The profile with names.
    pub profile: Profile,
    /// Modules that had addresses, those with the most first.
    pub modules: Vec<ModuleReport>,
}

/// The outcome for the addresses of a module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModuleReport {
    /// The module's path as the profiled process saw it; empty for code of no module.
    pub path: String,
    /// How many different addresses there were.
    pub addresses: usize,
    /// How many of them belong to a function whose name was found.
    pub named: usize,
    /// How many of them have a source line.
    pub with_line: usize,
    /// The file that debug information was taken from, if any: the module's own or another.
    pub debug_file: Option<PathBuf>,
    /// Why not everything could be resolved, each once.
    pub problems: Vec<Problem>,
}

impl ModuleReport {
    /// How many addresses belong to no function with a name.
    pub fn unresolved(&self) -> usize {
        self.addresses - self.named
    }
}
