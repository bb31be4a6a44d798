//! `treering compare`.

pub(crate) mod bisect;
mod commands;
mod compilers;
mod exact;
mod git;
mod interrupt;
mod json;
mod markdown;
mod progress;
mod text;
mod timed;
mod verdict;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use treering_compare::Sides;
use treering_measure::Launch;
use treering_report::Style;

use super::report::percent;
use crate::arguments::seconds;
use crate::ci_files::CiFiles;
use crate::failure::{Failure, Outcome};
use crate::terminal;

use commands::shown;
use exact::Exact;
use interrupt::Interrupt;
use timed::{Plan, Timed};
use verdict::Verdict;

/// Run two versions of a program and tell which costs more, how sure that is, and why
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Always base → head. Instructions are counted exactly, the base twice: what differs between runs \
of one program is set apart. Times are processor times of shuffled rounds. See docs/compare.md.

Exit status: 0 within the limit, also without any; 1 beyond it; 2 an error; 3 undecided.

Examples:
  treering compare ./before input -- ./after input    exactly, and in time
  treering compare --exact 'lua5.3 a.lua' -- 'lua5.4 a.lua'
  treering compare --time -n 50 ./before -- ./after
  treering compare --git main --build 'make -j2' --limit 1% -- ./program input")]
pub struct Compare {
    /// How many rounds are timed; in each, base runs twice and head once
    #[arg(short = 'n', long, value_name = "ROUNDS", default_value_t = 30,
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    rounds: u32,
    /// Only count instructions
    #[arg(long, conflicts_with = "time")]
    exact: bool,
    /// Count as on a processor that has this level of x86-64: x86-64-v2, x86-64-v3, x86-64-v4, or native
    #[arg(long, value_name = "LEVEL", conflicts_with = "time", hide_possible_values = true,
          value_parser = ["native", "x86-64-v2", "x86-64-v3", "x86-64-v4"])]
    cpu: Option<String>,
    /// Only measure time
    #[arg(long)]
    time: bool,
    /// Exit with status 1 if head costs more than this part more: in instructions, or in time with --time
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    limit: Option<f64>,
    /// Differences of time below this part are called the same
    #[arg(long, value_name = "PERCENT", value_parser = percent, default_value = "1%")]
    floor: f64,
    /// Exit with status 0 and not 3 if nothing can be told
    #[arg(long, value_name = "WHEN")]
    undecided: Option<Undecided>,
    /// Run this command by a shell before each timed run
    #[arg(long, value_name = "COMMAND", conflicts_with = "exact")]
    prepare: Option<String>,
    /// How many rounds run before those that count
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(0..=1000))]
    warmup: u32,
    /// Kill a run that takes longer, and end with an error
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    timeout: Option<Duration>,
    /// The file that each run reads as its standard input [default: nothing]
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,
    /// Compare even if both write something else to standard output
    #[arg(long)]
    ignore_output: bool,
    /// Name a cause even if two compilers made the programs
    #[arg(long, conflicts_with = "time")]
    force: bool,
    /// Compare this revision with the work tree's, both checked out anew; A..B compares two others
    #[arg(long, value_name = "REVISION")]
    git: Option<String>,
    /// Run this command by a shell in both checked-out trees before anything else
    #[arg(long, value_name = "COMMAND", requires = "git")]
    build: Option<String>,
    /// Print JSON; every key is described in docs/json.md
    #[arg(long, conflicts_with = "markdown")]
    json: bool,
    /// Print Markdown for a review comment
    #[arg(long)]
    markdown: bool,
    /// Both commands with -- between them, each as words or as one word in quotes
    #[arg(trailing_var_arg = true, required = true, value_name = "BASE_COMMAND -- HEAD_COMMAND")]
    command: Vec<OsString>,
    #[command(flatten)]
    files: CiFiles,
}

/// The exit status of undecided comparisons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Undecided {
    // Without documentation, which would make `--help` long.
    Ok,
}

/// The costs of both commands.
struct Comparison {
    commands: Sides<String>,
    exact: Option<Exact>,
    timed: Option<Timed>,
    limit: Option<f64>,
}

impl Compare {
    /// Does it.
    pub fn run(self) -> Outcome {
        let interrupt = Interrupt::heed()?;
        // Other programs, such as git, may have been interrupted as well, and failed.
        let told =
            |failure: Failure| if interrupt.is_asked() { interrupt.failure() } else { failure.status(2) };
        self.compare(&interrupt).map_err(told)
    }

    fn compare(&self, interrupt: &Interrupt) -> Outcome {
        self.files.check()?;
        // Removed at the end, however that comes.
        let (_trees, launches) = self.launches(interrupt)?;
        let exact = match self.time {
            true => None,
            false => {
                Some(exact::count(&launches, self.ignore_output, self.cpu.as_deref(), self.force, interrupt)?)
            }
        };
        let timed = match self.exact {
            true => None,
            false => Some(timed::measure(&self.plan(&launches), interrupt)?),
        };
        let commands = launches.as_ref().map(|launch| shown(&launch.words));
        let comparison = Comparison { commands, exact, timed, limit: self.limit.map(|limit| limit / 100.0) };
        let verdict = Verdict::of(&comparison);
        let status = match verdict.status {
            3 if self.undecided == Some(Undecided::Ok) => 0,
            status => status,
        };
        let style = Style { colour: terminal::colour(), width: terminal::width() };
        let markdown = || markdown::markdown(&comparison, &verdict);
        let text = match () {
            () if self.json => json::json(&comparison, &verdict, status),
            () if self.markdown => markdown(),
            () => text::text(&comparison, &verdict, &style),
        };
        match self.json || self.markdown || terminal::has_unicode() {
            true => terminal::print(&text)?,
            false => terminal::print(&treering_report::in_ascii(&text))?,
        }
        // Printed before: a full disk loses the files, and not the result.
        self.files.write(&comparison.measured(&self.files, &verdict), markdown)?;
        Ok(ExitCode::from(status))
    }

    /// Both commands, and the trees that they run in, if these were made for them.
    fn launches(&self, interrupt: &Interrupt) -> Result<(Option<git::Trees>, Sides<Launch>), Failure> {
        let launch = |words: Vec<OsString>| Launch {
            input: self.input.clone(),
            timeout: self.timeout,
            stop: Some(interrupt.flag()),
            ..Launch::new(words)
        };
        let Some(revision) = &self.git else {
            return Ok((None, commands::both(&self.command)?.map(launch)));
        };
        let words = commands::one(&self.command)?;
        let trees = git::Trees::create(revision, self.build.as_deref(), interrupt)?;
        let launches = trees.launches(&launch(words));
        Ok((Some(trees), launches))
    }

    fn plan(&self, commands: &Sides<Launch>) -> Plan {
        Plan {
            commands: commands.clone(),
            rounds: self.rounds as usize,
            warm_up: self.warmup as usize,
            prepare: self.prepare.clone(),
            ignore_output: self.ignore_output,
            floor: self.floor / 100.0,
        }
    }
}

impl Comparison {
    /// Each metric as files for other programs have it.
    fn measured(&self, files: &CiFiles, verdict: &Verdict) -> Vec<treering_report::Measured> {
        let benchmark = files.name.clone().unwrap_or_else(|| self.commands.head.clone());
        let exact = self.exact.iter().map(|exact| {
            let mut measured = treering_report::Measured::of(&exact.difference, &benchmark);
            measured.outcome = verdict::exact_outcome(exact);
            measured.text = verdict::exact_text(exact);
            measured.is_beyond_limit = verdict::exact_is_beyond(exact, self.limit);
            measured
        });
        let timed = self.timed.iter().map(|timed| {
            let nanoseconds = |seconds: f64| seconds * 1e9;
            treering_report::Measured {
                benchmark: benchmark.clone(),
                metric: "cpu-time".to_owned(),
                unit: "ns",
                base: nanoseconds(timed.cpu.base.median),
                head: nanoseconds(timed.cpu.head.median),
                deviation: timed.cpu.head.deviation.map(nanoseconds),
                outcome: verdict.time_outcome(timed),
                text: verdict::time_text(timed),
                is_beyond_limit: self.exact.is_none() && verdict.status == 1,
            }
        });
        exact.chain(timed).collect()
    }
}
