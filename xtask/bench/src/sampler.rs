//! The sampling profilers that are compared.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use treering_testing::programs::{EXITS_WITH, installed};

use super::Options;
use super::measure::succeed;

/// A sampling profiler at about 1 kHz with stacks unwound by DWARF.
#[derive(Clone, Debug)]
pub(super) enum Sampler {
    /// This project.
    Treering(PathBuf),
    /// Linux's perf, with 8 KiB of stack in each sample.
    Perf(PathBuf),
    /// samply.
    Samply(PathBuf),
    /// samply, with a file of names beside the recording.
    SamplyWithNames(PathBuf),
}

impl Sampler {
    /// The profilers that run here, and why the others do not.
    pub(super) fn find(options: &Options) -> (Vec<Self>, Vec<String>) {
        let others = [("perf", Self::Perf as fn(PathBuf) -> Self), ("samply", Self::Samply)];
        let (mut found, mut absent) = (vec![Self::Treering(options.treering.clone())], Vec::new());
        for (name, make) in others {
            match installed(name).map(make) {
                None => absent.push(format!("{name} is not installed, so it is not in the table.")),
                Some(sampler) => match sampler.try_out(options) {
                    Ok(()) => found.push(sampler),
                    Err(why) => absent.push(format!("{name} does not run here: {why}")),
                },
            }
        }
        (found, absent)
    }

    /// Records a program that ends at once.
    fn try_out(&self, options: &Options) -> Result<(), String> {
        let program = EXITS_WITH.build().map_err(|error| error.to_string())?;
        let words = [program.into(), "0".into(), "20".into()];
        succeed(&mut self.command(&options.directory.join(self.file()), &words)).map(|_| ())
    }

    /// The name in tables.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Treering(_) => "treering",
            Self::Perf(_) => "perf",
            Self::Samply(_) | Self::SamplyWithNames(_) => "samply",
        }
    }

    /// The name of the file that it writes.
    pub(super) fn file(&self) -> &'static str {
        match self {
            Self::Treering(_) => "recording.trg",
            Self::Perf(_) => "perf.data",
            Self::Samply(_) | Self::SamplyWithNames(_) => "samply.json.gz",
        }
    }

    /// The command that records `words` into `file`.
    pub(super) fn command(&self, file: &Path, words: &[OsString]) -> Command {
        let mut command = self.recording_to(file);
        command.arg("--").args(words);
        command
    }

    /// The command that records a process, and those that it starts, into `file` until it is
    /// interrupted.
    pub(super) fn attach(&self, file: &Path, process: u32) -> Command {
        let mut command = self.recording_to(file);
        command.arg("-p").arg(process.to_string());
        command
    }

    fn recording_to(&self, file: &Path) -> Command {
        let (program, options): (_, &[&str]) = match self {
            Self::Treering(program) => (program, &["record", "-F", "1000", "-o"]),
            Self::Perf(program) => {
                (program, &["record", "--quiet", "-F", "999", "--call-graph", "dwarf,8192", "-o"])
            }
            Self::Samply(program) => (program, &["record", "--save-only", "--rate", "1000", "-o"]),
            Self::SamplyWithNames(program) => {
                (program, &["record", "--save-only", "--unstable-presymbolicate", "--rate", "1000", "-o"])
            }
        };
        let mut command = Command::new(program);
        command.args(options).arg(file);
        command
    }

    /// The command that gives what was recorded its names, where that is a step of its own.
    pub(super) fn naming(&self, file: &Path) -> Option<Command> {
        let Self::Perf(program) = self else { return None };
        let mut command = Command::new(program);
        command.args(["report", "--stdio", "-i"]).arg(file);
        Some(command)
    }

    /// The sampler that gives names while it records, where that is an option.
    pub(super) fn with_names(&self) -> Option<Self> {
        match self {
            Self::Samply(program) => Some(Self::SamplyWithNames(program.clone())),
            _ => None,
        }
    }
}
