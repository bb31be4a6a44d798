//! `treering bench`: benchmark programs with parameters, archived and compared.

mod amount;
pub(super) mod columns;
mod compare;
mod drawing;
mod gc;
mod history;
mod import;
mod job;
mod judged;
mod list;
mod measuring;
mod memory;
mod parameters;
pub(super) mod place;
mod plot;
mod run;
mod scale;
mod series;
mod show;
mod suite;
mod table;
mod version;

use crate::failure::Outcome;

/// Run benchmarks over parameters, keep every run, and show how they compare
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  treering bench run -p size=250..8000*2 -- ./solve {size}     in shuffled rounds; every run is kept
  treering bench list                                     the runs that are kept
  treering bench table solve -x size -y time,memory       one table of them
  treering bench compare 7c1e02 3fa940                    two runs, or two versions
  treering bench scale -p size=250..8000*2 -- ./solve {size}   how each function grows
  treering bench plot solve -x size -y time -o solve.svg  a picture

Runs are kept in $XDG_DATA_HOME/treering/bench, or in the folder that --archive names. See docs/bench.md.")]
pub struct Bench {
    #[command(subcommand)]
    command: Subcommand,
}

/// The subcommands, one file each.
#[derive(Debug, clap::Subcommand)]
enum Subcommand {
    Run(run::Run),
    List(list::List),
    Show(show::Show),
    Compare(compare::Compare),
    Table(table::Table),
    Scale(scale::Scale),
    Plot(plot::Plot),
    History(history::History),
    Bisect(super::compare::bisect::Bisect),
    Memory(memory::Memory),
    Import(import::Import),
    Gc(gc::Gc),
}

impl Bench {
    /// Does it.
    pub fn run(self) -> Outcome {
        let outcome = match self.command {
            Subcommand::Run(run) => run.run(),
            Subcommand::List(list) => list.run(),
            Subcommand::Show(show) => show.run(),
            Subcommand::Compare(compare) => compare.run(),
            Subcommand::Table(table) => table.run(),
            Subcommand::Scale(scale) => scale.run(),
            Subcommand::Plot(plot) => plot.run(),
            Subcommand::History(history) => history.run(),
            Subcommand::Bisect(bisect) => return bisect.run(),
            Subcommand::Memory(memory) => memory.run(),
            Subcommand::Import(import) => import.run(),
            Subcommand::Gc(gc) => gc.run(),
        };
        outcome.map_err(|failure| failure.status(2))
    }
}
