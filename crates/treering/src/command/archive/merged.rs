//! `treering archive flat`, `callgraph`, `view` and `merge`: a selection of runs as one profile.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser as _;
use treering_formats::{Format, trg};
use treering_report::plural;

use super::chosen::Chosen;
use crate::arguments::Arguments;
use crate::failure::{Context as _, Failure, Outcome};
use crate::output::{check_target, clean_up_at_signals, write_whole};

/// List the functions of a selection by their cost
#[derive(Debug, clap::Args)]
pub struct Flat {
    #[command(flatten)]
    chosen: Chosen,
    /// Options of treering report, after --
    #[arg(last = true)]
    options: Vec<OsString>,
}

/// List the functions of a selection with their callers and callees
#[derive(Debug, clap::Args)]
pub struct CallGraph {
    #[command(flatten)]
    chosen: Chosen,
    /// Options of treering report, after --
    #[arg(last = true)]
    options: Vec<OsString>,
}

/// Show a selection as a page
#[derive(Debug, clap::Args)]
pub struct View {
    #[command(flatten)]
    chosen: Chosen,
    /// Options of treering view, after --
    #[arg(last = true)]
    options: Vec<OsString>,
}

/// Write a selection as one profile
#[derive(Debug, clap::Args)]
pub struct Merge {
    #[command(flatten)]
    chosen: Chosen,
    /// The .trg file to write; `-` for standard output
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    /// Replace OUT even if it is not a profile that Treering wrote
    #[arg(long)]
    force: bool,
}

impl Flat {
    /// Does it.
    pub fn run(self) -> Outcome {
        show(&self.chosen, &["report", "--flat"], self.options)
    }
}

impl CallGraph {
    /// Does it.
    pub fn run(self) -> Outcome {
        show(&self.chosen, &["report", "--callgraph"], self.options)
    }
}

impl View {
    /// Does it.
    pub fn run(self) -> Outcome {
        show(&self.chosen, &["view"], self.options)
    }
}

impl Merge {
    /// Does it.
    pub fn run(self) -> Outcome {
        clean_up_at_signals();
        check_target(&self.output, &[], Format::Trg, self.force)?;
        let merged = self.chosen.profile()?;
        write_whole(&self.output, |output| trg::write(&merged, output))?;
        tell!("wrote {} to {}", plural(merged.runs.len() as u64, "run"), self.output.display());
        Ok(ExitCode::SUCCESS)
    }
}

/// Runs another subcommand on the merged profile, in a file of its own.
fn show(chosen: &Chosen, command: &[&str], options: Vec<OsString>) -> Outcome {
    let merged = chosen.profile()?;
    let folder = treering_temporary::Folder::create("archive").context("cannot make a temporary folder")?;
    let file = folder.path().join("selection.trg");
    write_whole(&file, |output| trg::write(&merged, output))?;
    drop(merged);
    let mut words: Vec<OsString> = vec!["treering".into()];
    words.extend(command.iter().map(OsString::from));
    words.extend(options);
    words.push(file.into());
    let arguments = Arguments::try_parse_from(words).map_err(|error| {
        let text = error.to_string();
        Failure::new(text.lines().next().unwrap_or_default().trim_start_matches("error: ")).status(2)
    })?;
    crate::command::run(arguments.command)
}
