//! `treering completions`: prints the completions for a shell.

use clap::CommandFactory as _;

use crate::arguments::Arguments;
use crate::failure::Outcome;
use crate::terminal;

/// Print the completions for a shell
#[derive(Debug, clap::Args)]
pub struct Completions {
    /// The shell
    shell: clap_complete::Shell,
}

impl Completions {
    /// Prints the script that the shell sources.
    pub fn run(self) -> Outcome {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Arguments::command(), "treering", &mut script);
        terminal::print(&String::from_utf8_lossy(&script))?;
        Ok(std::process::ExitCode::SUCCESS)
    }
}
