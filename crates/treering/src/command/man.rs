//! `treering man`: prints the manual page.

use clap::CommandFactory as _;
use clap_mangen::Man as Page;

use crate::arguments::Arguments;
use crate::failure::{Context as _, Failure, Outcome};
use crate::terminal;

/// Print the manual page
#[derive(Debug, clap::Args)]
pub struct Man {
    /// The page of one subcommand, as `record` or `bench run`; without, the page of treering itself
    subcommand: Vec<String>,
}

impl Man {
    /// Prints a page in the form that `man` reads.
    pub fn run(self) -> Outcome {
        let mut command = Arguments::command();
        command.build();
        let mut title = "treering".to_owned();
        for name in &self.subcommand {
            let found = command.find_subcommand(name).cloned();
            command = found.ok_or_else(|| {
                Failure::new(format_args!("{name}: no such subcommand"))
                    .hint(format_args!("they are listed by: {} --help", title.replace('-', " ")))
            })?;
            title = format!("{title}-{name}");
        }
        let page = command.display_name(title);
        let mut text = Vec::new();
        Page::new(page).render(&mut text).context("cannot make the page")?;
        terminal::print(&String::from_utf8_lossy(&text))?;
        Ok(std::process::ExitCode::SUCCESS)
    }
}
