//! `treering view`.

mod difference;
mod live;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use treering_analysis::correct;
use treering_profile::Profile;

use crate::command::report::{Part, TimePart};
use crate::failure::{Context as _, Failure, Outcome};
use crate::interpreted::add_sources;
use crate::open::open_profile;
use crate::output::{check_page_target, clean_up_at_signals, write_whole};
use crate::page::{Wishes, make, open_page, tell_written};
use crate::working::Working;

/// Make a page that shows the profile: one HTML file that needs no network
#[derive(Debug, clap::Args)]
pub struct View {
    /// The profile, of any format that Treering reads
    #[arg(default_value = "treering.trg")]
    file: PathBuf,
    /// Follow a running instrumented program, named by its process or its file, in a page that only this
    /// machine can see
    #[arg(
        long,
        value_name = "PID|FILE",
        conflicts_with_all = ["file", "diff", "output", "force", "no_source", "focus", "ignore", "hide", "thread", "run", "from", "to", "phase"]
    )]
    live: Option<String>,
    /// Show what changed since this profile; differences within the error bars are grey
    #[arg(long, value_name = "BASE")]
    diff: Option<PathBuf>,
    /// The page to write [default: the profile's name with .html]; `-` for standard output. In its name, `%p` stands for
    /// the process, `%h` for the machine, `%r` for the rank, and `%%` for %
    #[arg(short, long, value_name = "PAGE", value_parser = crate::output_name::parser())]
    output: Option<PathBuf>,
    /// Replace PAGE even if it is not a page that Treering wrote
    #[arg(long)]
    force: bool,
    /// Write the page without opening it
    #[arg(long)]
    no_open: bool,
    /// The page's title [default: the command that was profiled]
    #[arg(long, value_name = "TITLE")]
    title: Option<String>,
    /// Leave out the text of source files
    #[arg(long = "no-sources", alias = "no-source")]
    no_source: bool,
    #[command(flatten)]
    part: Part,
    #[command(flatten)]
    time: TimePart,
}

impl View {
    /// Does it.
    pub fn run(self) -> Outcome {
        if let Some(target) = &self.live {
            return live::follow(target, self.title.clone(), !self.no_open);
        }
        clean_up_at_signals();
        let output = self.output();
        let inputs: Vec<&Path> =
            std::iter::once(&self.file).chain(&self.diff).map(PathBuf::as_path).collect();
        check_page_target(&output, &inputs, self.force)?;
        let mut opened = open_profile(&self.file)?;
        opened.print_warnings();
        self.time.cut_of(&mut opened.profile, &self.file)?;
        let (mut profile, base_runs, changes, compared) = match &self.diff {
            None => (opened.profile, None, None, None),
            Some(base) => {
                let mut opened_base = open_profile(base)?;
                opened_base.print_warnings();
                self.time.cut_of(&mut opened_base.profile, base)?;
                let mut both = difference::both((base, &self.file), &opened_base.profile, &opened.profile)?;
                if both.compared.without_stacks && !self.part.is_everything() {
                    return Err(part_without_stacks());
                }
                if !self.part.is_everything() {
                    both.only_a_part();
                }
                (both.profile, Some(both.base_runs), both.changes, Some(both.compared))
            }
        };
        let working = Working::on("making the page");
        let selection = self.part.selection(&mut profile)?;
        if !self.no_source {
            add_sources(&mut profile, &self.file).notes().iter().for_each(|note| tell!("note: {note}"));
        }
        let whole = correct(&profile);
        let part = whole.part(&selection).context(self.file.display())?;
        let title = base_runs.as_deref().zip(self.diff.as_deref());
        let title = title.map(|(runs, base)| difference_title(&part.profile, runs, base, &self.file));
        let wishes = Wishes {
            title: self.title.clone().or(title),
            with_source: !self.no_source,
            base_runs,
            changes,
            compared,
        };
        let page = make(&self.file, &whole, &part, wishes)?;
        drop(working);
        page.left_out.iter().for_each(|what| tell!("note: {what}"));
        if whole.profile.has_counts_apart() && self.diff.is_some() {
            tell!("note: a difference shows costs; how often functions were called is in treering report");
        }
        write_whole(&output, |to| to.write_all(page.html().as_bytes()))?;
        if output != Path::new("-") {
            tell_written(&output);
            if !self.no_open {
                open_page(&output);
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    fn output(&self) -> PathBuf {
        let named = || match self.file == Path::new("-") {
            true => PathBuf::from("treering.html"),
            false => PathBuf::from(self.file.file_name().unwrap_or_default()).with_extension("html"),
        };
        self.output.clone().unwrap_or_else(named)
    }
}

fn part_without_stacks() -> Failure {
    Failure::new("one of both profiles has no stacks, so only all of them can be compared")
        .hint("leave out --focus, --ignore, --hide, --thread and --run")
}

/// `old → new`, each by its command, or by its file where that is not known.
fn difference_title(profile: &Profile, base_runs: &[bool], base: &Path, new: &Path) -> String {
    let name = |file: &Path, wanted: bool| {
        let run = profile.runs.iter().zip(base_runs).find(|&(_, &base)| base == wanted);
        let command = run.map(|(run, _)| run.command.join(" ")).filter(|command| !command.is_empty());
        command.unwrap_or_else(|| file.display().to_string())
    };
    format!("{} → {}", name(base, true), name(new, false))
}
