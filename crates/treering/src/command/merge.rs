//! `treering merge`.

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::ExitCode;

use treering_formats::{Format, trg};
use treering_profile::{Profile, Thread, merge};

use crate::failure::{Failure, Outcome};
use crate::open::{Opened, open_profiles};
use crate::output::{check_target, clean_up_at_signals, write_whole};

/// Join several profiles into one
#[derive(Debug, clap::Args)]
pub struct Merge {
    /// The profiles, of any format that can be read
    #[arg(required = true, num_args = 1..)]
    files: Vec<PathBuf>,
    /// The .trg file to write; `-` for standard output
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    /// Add up threads of equal name in equally named processes, of all runs, instead of keeping
    /// each apart
    #[arg(long)]
    collapse: bool,
    /// Replace OUT even if it is not a profile that Treering wrote
    #[arg(long)]
    force: bool,
}

impl Merge {
    /// Does it.
    pub fn run(self) -> Outcome {
        clean_up_at_signals();
        let inputs: Vec<_> = self.files.iter().map(PathBuf::as_path).collect();
        check_target(&self.output, &inputs, Format::Trg, self.force)?;
        let opened = open_profiles(&self.files)?;
        opened.iter().for_each(Opened::print_warnings);
        self.check_kinds(&opened)?;
        let profiles: Vec<_> = opened.iter().map(|opened| &opened.profile).collect();
        let mut merged = merge(&profiles);
        if self.collapse {
            merged = collapse(&merged);
        }
        write_whole(&self.output, |output| trg::write(&merged, output))?;
        let (runs, threads) = (merged.runs.len(), merged.threads.len());
        tell!(
            "wrote {runs} runs, {threads} threads, {} nodes to {}",
            merged.tree.len(),
            self.output.display()
        );
        Ok(ExitCode::SUCCESS)
    }

    /// A profile of arcs has no stacks, so its functions would look like outermost ones of the
    /// others.
    fn check_kinds(&self, opened: &[Opened]) -> Result<(), Failure> {
        let arcs = opened.iter().position(|opened| opened.profile.is_arcs_only());
        let tree = opened.iter().position(|opened| !opened.profile.is_arcs_only());
        let (Some(arcs), Some(tree)) = (arcs, tree) else { return Ok(()) };
        let (arcs, tree) = (self.files[arcs].display(), self.files[tree].display());
        let message = format!("cannot merge {arcs}, which has arcs only, with {tree}, which has stacks");
        Err(Failure::new(message).hint("merge files of one kind"))
    }
}

/// Adds up threads that agree in their names and those of their processes.
fn collapse(profile: &Profile) -> Profile {
    let mut numbers = HashMap::new();
    let mut name_number = |thread: &Thread| {
        let process = &profile.processes[thread.process.index()].name;
        let next = numbers.len() as u32;
        *numbers.entry((process.clone(), thread.name.clone())).or_insert(next)
    };
    let by_root: HashMap<_, _> =
        profile.threads.iter().map(|thread| (thread.root, name_number(thread))).collect();
    profile.collapse_threads(|thread| by_root.get(&thread.root).copied())
}
