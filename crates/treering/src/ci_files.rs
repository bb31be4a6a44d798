//! Files that other programs read, written beside the output.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use treering_report::{Measured, bencher_json, benchmark_action_json, junit_xml};

use crate::failure::{Context as _, Failure};
use crate::output::{cannot_write, check_ci_target};

// Files for CI.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "For CI")]
pub struct CiFiles {
    /// The name of the benchmark in these files [default: the command or file]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Write the outcome of each metric as JUnit's XML, too
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Write head's numbers for github-action-benchmark (customSmallerIsBetter), too
    #[arg(long, value_name = "FILE")]
    benchmark_action: Option<PathBuf>,
    /// Write head's numbers for Bencher (its metric format), too
    #[arg(long, value_name = "FILE")]
    bencher: Option<PathBuf>,
    /// Add the Markdown to the step summary of GitHub Actions, the file that GITHUB_STEP_SUMMARY names
    #[arg(long)]
    step_summary: bool,
}

impl CiFiles {
    /// Makes sure that those that are asked for can be written, before anything is measured.
    pub fn check(&self) -> Result<(), Failure> {
        for (path, starts) in [(&self.junit, "<"), (&self.benchmark_action, "["), (&self.bencher, "{")] {
            path.iter().try_for_each(|path| check_ci_target(path, starts.as_bytes()))?;
        }
        if self.step_summary { summary_file().map(drop) } else { Ok(()) }
    }

    /// Writes those that are asked for. Files of their kind are replaced, as CI runs again and again.
    pub fn write(&self, measured: &[Measured], markdown: impl FnOnce() -> String) -> Result<(), Failure> {
        type Written = fn(&[Measured]) -> String;
        let files: [(&Option<PathBuf>, Written); 3] = [
            (&self.junit, junit_xml),
            (&self.benchmark_action, benchmark_action_json),
            (&self.bencher, bencher_json),
        ];
        for (path, text) in files {
            if let Some(path) = path {
                write(path, &text(measured))?;
            }
        }
        if self.step_summary {
            add_to_summary(&markdown())?;
        }
        Ok(())
    }
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text).map_err(|error| cannot_write(path, &error))
}

/// The file that GitHub Actions names.
fn summary_file() -> Result<PathBuf, Failure> {
    const VARIABLE: &str = "GITHUB_STEP_SUMMARY";
    let path = std::env::var_os(VARIABLE).filter(|path| !path.is_empty());
    path.map(PathBuf::from).ok_or_else(|| {
        Failure::new(format_args!("--step-summary: {VARIABLE} is not set"))
            .hint("GitHub Actions sets it; elsewhere: --markdown")
    })
}

fn add_to_summary(text: &str) -> Result<(), Failure> {
    let path = summary_file()?;
    let opened = OpenOptions::new().create(true).append(true).open(&path);
    let written = opened.and_then(|mut file| file.write_all(text.as_bytes()));
    written.context(format_args!("cannot write {}", path.display()))
}
