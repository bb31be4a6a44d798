//! The subcommands, one file each.

pub mod archive;
pub mod bench;
pub mod compare;
pub mod completions;
pub mod count;
pub mod diff;
pub mod dump;
#[cfg(test)]
mod every_view;
pub mod export;
pub mod gprof;
pub mod import;
pub mod man;
pub mod merge;
pub mod octave;
pub mod prolog;
pub mod query;
pub mod record;
pub mod report;
pub mod stat;
pub mod view;
pub mod watch;

use crate::arguments::Command;
use crate::failure::Outcome;

/// Runs a subcommand.
pub fn run(command: Command) -> Outcome {
    match command {
        Command::Record(record) => record.run(),
        Command::Count(count) => count.run(),
        Command::Gprof(gprof) => gprof.run(),
        Command::Octave(octave) => octave.run(),
        Command::Prolog(prolog) => prolog.run(),
        Command::Report(report) => report.run(),
        Command::Diff(diff) => diff.run(),
        Command::Compare(compare) => compare.run(),
        Command::Bench(bench) => bench.run(),
        Command::Stat(stat) => stat.run(),
        Command::Archive(archive) => archive.run(),
        Command::Query(query) => query.run(),
        Command::View(view) => view.run(),
        Command::Watch(watch) => watch.run(),
        Command::Export(export) => export.run(),
        Command::Import(import) => import.run(),
        Command::Dump(dump) => dump.run(),
        Command::Merge(merge) => merge.run(),
        Command::Completions(completions) => completions.run(),
        Command::Man(man) => man.run(),
    }
}
