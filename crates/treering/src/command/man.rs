//! `treering man`: prints the manual page.

use clap::CommandFactory as _;
use clap_mangen::Man as Page;

use crate::arguments::Arguments;
use crate::failure::{Context as _, Outcome};
use crate::terminal;

/// Print the manual page
#[derive(Debug, clap::Args)]
pub struct Man {
    /// The page of one subcommand; without, the page of treering itself
    subcommand: Option<String>,
}

impl Man {
    /// Prints a page in the form that `man` reads.
    pub fn run(self) -> Outcome {
        let mut command = Arguments::command();
        command.build();
        let page = match &self.subcommand {
            None => command,
            Some(name) => {
                let found = command.find_subcommand(name).cloned();
                found.ok_or("no such subcommand").context(name)?.display_name(format!("treering-{name}"))
            }
        };
        let mut text = Vec::new();
        Page::new(page).render(&mut text).context("cannot make the page")?;
        terminal::print(&String::from_utf8_lossy(&text))?;
        Ok(std::process::ExitCode::SUCCESS)
    }
}
