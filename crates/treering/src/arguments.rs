//! The arguments that all subcommands are chosen by; each subcommand defines its own.

use clap::{Parser, Subcommand};

use crate::command;

/// A call-graph profiler: where did the cost go, and who asked for it?
#[derive(Debug, Parser)]
#[command(name = "treering", version, max_term_width = 100)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Sample a program, or a running process, and write a profile
    Record(command::record::Record),
    /// Count every block, instruction and call of a program exactly
    Count(command::count::Count),
    /// Run a script under GNU Octave and profile its functions
    Octave(command::octave::Octave),
    /// Show where the cost went: flat profile, call graph, tree, callers or lines
    Report(command::report::Report),
    /// Show the profile of an instrumented program while it runs
    Watch(command::watch::Watch),
    /// Write a profile in another tool's format
    Export(command::export::Export),
    /// Read another tool's profile and write it as a .trg file
    Import(command::import::Import),
    /// Print what a .trg file holds, frame by frame, as JSON lines
    Dump(command::dump::Dump),
    /// Join several profiles into one
    Merge(command::merge::Merge),
    /// Print the completions for a shell
    Completions(command::completions::Completions),
    /// Print the manual page
    Man(command::man::Man),
}
