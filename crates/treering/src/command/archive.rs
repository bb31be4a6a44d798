//! `treering archive`: profiles of many runs and machines, kept, chosen, merged, and written as tables.

mod add;
mod bucket;
mod chosen;
mod compact;
mod gc;
mod list;
mod merged;
mod output;
mod sql;
mod verify;

pub use bucket::Bucket;
pub use output::{Kept, in_archive};
pub use sql::Asked;

use crate::failure::Outcome;

/// Keep the profiles of many runs and machines, and look at any selection of them
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  treering archive add /shared/profiles rank-*.trg        keep profiles, from any number of machines at once
  treering archive flat --archive /shared/profiles --where \"project = 'solve' and day >= '2026-11-01'\"
  treering archive compact --archive /shared/profiles     write the tables that treering query reads
  treering archive sql --engine spark                     the tables as views of another engine

A condition can name run, project, version, host, rank, day, started, collector, machine, revision, dirty, session \
and has_profile. The archive is the one of treering bench; s3://BUCKET/PREFIX names one in S3. See docs/archive.md.")]
pub struct Archive {
    #[command(subcommand)]
    command: Subcommand,
}

/// The subcommands, one file each.
#[derive(Debug, clap::Subcommand)]
enum Subcommand {
    Add(add::Add),
    List(list::List),
    Flat(merged::Flat),
    Callgraph(merged::CallGraph),
    View(merged::View),
    Merge(merged::Merge),
    Compact(compact::Compact),
    Verify(verify::Verify),
    Gc(gc::Gc),
    Sql(sql::Sql),
}

impl Archive {
    /// Does it.
    pub fn run(self) -> Outcome {
        match self.command {
            Subcommand::Add(add) => add.run(),
            Subcommand::List(list) => list.run(),
            Subcommand::Flat(flat) => flat.run(),
            Subcommand::Callgraph(callgraph) => callgraph.run(),
            Subcommand::View(view) => view.run(),
            Subcommand::Merge(merge) => merge.run(),
            Subcommand::Compact(compact) => compact.run(),
            Subcommand::Verify(verify) => verify.run(),
            Subcommand::Gc(gc) => gc.run(),
            Subcommand::Sql(sql) => sql.run(),
        }
    }
}
