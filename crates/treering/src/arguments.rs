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

/// The subcommands, each with what `--help` says of it.
///
/// Options are only told to the parser of the one that is chosen: to build those of all took a tenth of a millisecond
/// of each start. The structures that these are made of have no documentation of their own, which would take the place
/// of what is here.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub enum Command {
    /// Sample a program, or a running process, and write a profile
    Record(command::record::Record),
    /// Count every block, instruction and call of a program exactly
    Count(command::count::Count),
    /// Run a script under GNU Octave and profile its functions
    Octave(command::octave::Octave),
    /// Show where the cost went: flat profile, call graph, tree, callers or lines
    Report(command::report::Report),
    /// Make a page that shows the profile: one HTML file that needs no network
    View(command::view::View),
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

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn options_do_not_change_what_is_said_of_their_subcommand() {
        let told = |all: &clap::Command| -> Vec<String> {
            all.get_subcommands().map(|one| format!("{}: {:?}", one.get_name(), one.get_about())).collect()
        };
        let mut all = Arguments::command();
        let before = told(&all);
        all.build();
        assert_eq!(before, told(&all)[..before.len()]);
        assert!(
            before.len() > 10
                && all.find_subcommand("count").is_some_and(|count| count.get_opts().count() > 5)
        );
    }
}
