//! `treering count`: counts every block, instruction and call of a program, and writes a profile.

pub(super) mod environment;
mod held;
mod model;
mod processor;
mod totals;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use treering_formats::trg;
use treering_proc::is_ignored;
use treering_profile::Profile;
use treering_report::Style;
use treering_translator::{
    Command, CountError, Counts, Ended, Left, ProfileBuilder, ProgramCounts, Progress, Senders, TreeLimits,
    count_each, is_kept, pass_on, pass_on_to, stop_with_program,
};

use super::archive::{Kept, in_archive};
use crate::arguments::seconds;
use crate::cache;
use crate::count_folder::{count_folder_of, report_command};
use crate::ending::{ended_by, signal_name};
use crate::failure::{Context as _, Failure, Outcome};
use crate::hint::against_no_counts;
use crate::naming::{Reachable, Wanted, name_functions};
use crate::output::{
    cannot_write, check_collected, create_new, leads_nowhere, no_stream, write_elsewhere, write_profile,
};
use crate::page::beside;
use crate::relay::ENDING;
use crate::selected::Selected;
use crate::stream::Stream;
use crate::terminal;
use crate::word::{report_argument, word};
use crate::working::Working;

use totals::Totals;

/// Count every block, instruction and call of a program exactly
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  treering count -- ./solve input.txt         every block, instruction and call, exactly
  treering count -o a.trg -- make             a program and all of its children
  treering count --tree -- ./solve            with the costs of every chain of callers
  treering count --fixed -- ./solve           the same counts in every run
  treering count --fixed --cpu x86-64-v3 -- ./solve   and on every machine
  treering count --toggle solve -- ./prog     only within solve() and what it calls
  treering count --model cache -- ./solve     with the misses of modelled caches
  treering count -p 4711 -d 10                a running process, for ten seconds

Then: treering report")]
pub struct Count {
    /// Count a running process, and its children from now on, until it ends or Ctrl-C; then it goes on by itself
    #[arg(short, long, value_name = "PID", conflicts_with_all = ["command", "tree", "fixed"],
          value_parser = clap::value_parser!(i32).range(1..))]
    pid: Option<i32>,

    /// The file to write, or an archive that gets the profile; with -p, `-` for standard output. In its name, `%p` stands for
    /// the process, `%h` for the machine, `%r` for the rank, and `%%` for %
    #[arg(short, long, value_name = "FILE", default_value = "treering.trg", value_parser = crate::output_name::parser())]
    output: PathBuf,

    /// Replace FILE even if it is not a profile that Treering wrote
    #[arg(long)]
    force: bool,

    /// Keep the calling context tree: instructions and calls of every function, by its chain of callers
    #[arg(long, conflicts_with_all = ["toggle", "marked", "stop_after"])]
    tree: bool,

    /// The most nodes that the trees of a process may have; beyond that, contexts are folded and total
    /// costs become bounds. Two million take about 300 MB
    #[arg(long, value_name = "N", requires = "tree", default_value_t = 2_000_000,
          value_parser = clap::value_parser!(u64).range(1..))]
    max_nodes: u64,

    /// Hold what moves counts from run to run: addresses, the time, random numbers, the stack's limit, and the
    /// environment, of which well-known variables are passed, and those named here. Keys made in such a run are no secret
    #[arg(long, visible_alias = "fixed-addresses", value_name = "VARIABLE", num_args = 0..=1, require_equals = true,
          value_delimiter = ',', default_missing_value = "")]
    fixed: Option<Vec<String>>,

    /// Show the program a processor that has this level of x86-64 and nothing more, so that it chooses the same code on
    /// every machine: x86-64-v2, x86-64-v3, x86-64-v4, or native for the real one
    #[arg(
        long,
        value_name = "LEVEL",
        default_value = "native",
        hide_default_value = true,
        conflicts_with = "pid"
    )]
    cpu: processor::Processor,

    /// Count only within this function and what it calls, in each thread by itself; may be given several
    /// times
    #[arg(long, visible_alias = "only", value_name = "FUNCTION")]
    toggle: Vec<String>,

    /// Count only between the program's marks, those of <treering/count.h> or of
    /// `treering_runtime::counting`, in each thread by itself
    #[arg(long)]
    marked: bool,

    /// Stop counting after this many seconds; the program goes on
    #[arg(short = 'd', long = "duration", alias = "stop-after", value_name = "SECONDS", value_parser = seconds)]
    stop_after: Option<Duration>,

    /// Do not count children, only the program itself and its threads
    #[arg(long)]
    no_children: bool,

    /// Use nothing that is known from earlier runs, and remember nothing that would make the next one start
    /// faster
    #[arg(long)]
    no_cache: bool,

    #[command(flatten)]
    model: model::Model,

    /// Give the cost of inlined functions to their callers
    #[arg(long)]
    no_inlines: bool,

    /// Leave the texts of source files out of the profile
    #[arg(long)]
    no_sources: bool,

    /// Make a page of the profile at the end and open it, as `treering view` does
    #[arg(long)]
    view: bool,

    /// Print nothing but errors
    #[arg(short, long)]
    quiet: bool,

    /// The program and its arguments
    #[arg(trailing_var_arg = true, required_unless_present = "pid", value_name = "PROGRAM ARGS")]
    command: Vec<OsString>,
}

impl Count {
    /// Counts, writes the file, prints the summary and passes on the program's exit status.
    pub fn run(mut self) -> Outcome {
        let kept = Kept::instead_of(&mut self.output, self.view)?;
        let quiet = self.quiet;
        let outcome = self.run_to_file();
        Kept::finish(kept, quiet, outcome)
    }

    fn run_to_file(mut self) -> Outcome {
        if self.pid.is_none() {
            no_stream(&self.output, "the program")
                .map_err(|failure| failure.hint("or /dev/stdout, if the program prints nothing there"))?;
        }
        let _claim = crate::output_name::Claim::take(&mut self.output)?;
        let modelled = self.model.modelled()?;
        // Before signals are handled: opening a pipe may wait for a reader, and a signal must end that.
        let stream = Stream::open(&self.output)?;
        self.check_output(stream.is_some())?;
        let page = self.view.then(|| beside(&self.output, self.force)).transpose()?;
        treering_translator::prepare_heap();
        let ignored = self.handle_signals()?;
        let selected = Selected::new(&self.toggle);
        let command = self.command(&selected, &modelled);
        let (mut totals, mut made, mut programs) = (Totals::default(), ProfileBuilder::default(), Vec::new());
        let mut escaped = held::Escaped::default();
        let ended = |program: ProgramCounts| {
            totals.add(&program);
            made.add(&program);
            escaped.add(&program);
            // The model's counts are summed up from them.
            programs.extend((!modelled.is_empty()).then_some(program));
        };
        let counted = count_each(&command, |progress| self.goes_on(progress, &ignored), ended);
        pass_on_to(None);
        let _ = stop_with_program(false);
        let mut counts = counted.map_err(failure)?;
        counts.programs = programs;
        let partly = self.partly(&selected, &counts, &totals);
        let hidden_files = made.take_hidden_files();
        let working = Working::on("putting counts together");
        let (mut profile, instructions) = made.finish(&counts);
        drop(working);
        let held = self.held(&escaped);
        partly.iter().chain(&held).for_each(|note| profile.metadata.note(note.clone()));
        let reachable = Reachable { hidden_files, instructions, ..Reachable::default() };
        let mut named = name_functions(profile, reachable, self.wanted());
        modelled.describe(&counts, &mut named.profile);
        crate::output_name::note_place(&mut named.profile);
        let written = self.write(stream, &named.profile);
        if written.is_ok() {
            counts.written();
        }
        if !self.quiet {
            self.print_summary(&counts, &totals, &modelled, &named.profile, &partly, written.is_ok());
        }
        let written = written.map_err(|failure| failure.hint(self.rescue(&named.profile)));
        let shown = page.filter(|_| written.is_ok()).map_or(Ok(()), |page| page.show(self.quiet));
        self.outcome(&mut counts, written, shown)
    }

    /// Passes signals on to the program, or ends the counting of a process that ran before: the counts until then are
    /// written. Returns those that this process was started to ignore, as by `nohup`: the program is to inherit that.
    fn handle_signals(&self) -> Result<Vec<i32>, Failure> {
        let senders = if self.pid.is_some() { Senders::All } else { Senders::Processes };
        let is_inherited = |signal: &i32| self.pid.is_none() && is_ignored(*signal);
        let (ignored, heeded): (Vec<i32>, Vec<i32>) = ENDING.iter().partition(|signal| is_inherited(signal));
        let passed_on = heeded.into_iter().try_for_each(|signal| pass_on(signal, senders));
        passed_on.map(|()| ignored).context("cannot wait for signals")
    }

    /// Names the process that signals are passed on to, and tells of children that outlast the program.
    fn goes_on(&self, progress: Progress<'_>, ignored: &[i32]) {
        match progress {
            Progress::Begins(pid) => {
                // The process has inherited that they are ignored, and the program may have handlers for them.
                ignored.iter().for_each(|&signal| drop(pass_on(signal, Senders::Processes)));
                pass_on_to(Some(pid));
                if self.pid.is_none() {
                    let _ = stop_with_program(true);
                }
            }
            Progress::HasEnded(helper) => {
                let _ = stop_with_program(false);
                // A terminal's signals reach our process group only, and the helper is in none that a terminal knows.
                let heeded = ENDING.into_iter().filter(|signal| !ignored.contains(signal));
                // Without them the counting ends with the last child.
                heeded.for_each(|signal| drop(pass_on(signal, Senders::All)));
                pass_on_to(Some(helper));
            }
            Progress::GoesOn(left) if !self.quiet => tell!("{}", self.goes_on_with(left)),
            Progress::GoesOn(_) => {}
        }
    }

    fn goes_on_with(&self, left: &[i32]) -> String {
        /// How many children are named.
        const NAMED: usize = 3;
        let named = left.iter().take(NAMED).map(|pid| format!("{pid} ({})", treering_proc::thread_name(pid)));
        let mut named = named.collect::<Vec<_>>().join(", ");
        if left.len() > NAMED {
            named.push_str(", ...");
        }
        let (children, them) = if left.len() == 1 { ("its child", "it") } else { ("its children", "them") };
        let counting = if self.no_children { "waiting for" } else { "counting" };
        let ends = match self.pid {
            Some(_) => "Ctrl-C ends the counting".to_owned(),
            None => format!("Ctrl-C ends {them}"),
        };
        format!("note: the program has ended; still {counting} {children} {named}; {ends}")
    }

    fn command(&self, selected: &Selected, modelled: &model::Modelled) -> Command {
        Command {
            words: self.command.clone(),
            environment: self.environment(),
            pid: self.pid,
            fixed_addresses: self.fixed.is_some(),
            held: self.fixed.is_some(),
            processor: self.cpu.level(),
            // The files would lack the model's counts.
            keep: if modelled.is_empty() { count_folder_of(&self.output) } else { None },
            model: modelled.options,
            tree: self.tree,
            limits: TreeLimits { nodes: Some(self.max_nodes), frames: None },
            selection: selected.selection(self.marked),
            stop_after: self.stop_after,
            without_children: self.no_children,
            hints: cache::directory().filter(|_| !self.no_cache).map(|cache| cache.join("code")),
            ..Command::default()
        }
    }

    /// The exit status: the program's own, or that of a failure to count it or to write its profile.
    fn outcome(
        &self,
        counts: &mut Counts,
        written: Result<(), Failure>,
        shown: Result<(), Failure>,
    ) -> Outcome {
        let status = match counts.ended {
            Ended::Exited(status) => status as u8,
            // A process that was attached to, or that counting had to end: this process does not end by its signal.
            Ended::Killed(signal) if self.pid.is_some() || counts.given_up.is_some() => (128 + signal) as u8,
            Ended::Killed(signal) => ended_by(signal),
            Ended::Left(_) => 0,
        };
        // The counts up to a failure are written, but they are not the requested ones. The program's own status tells
        // more than a failure to write its profile.
        let given_up = counts.given_up.take().map(failure);
        let told = |failure: Failure| if status == 0 { failure } else { failure.status(status) };
        match (written, given_up) {
            (Ok(()), None) => shown.map(|()| ExitCode::from(status)).map_err(told),
            (Ok(()), Some(given_up)) => {
                shown.err().into_iter().for_each(|failure| _ = failure.print());
                Err(told(given_up))
            }
            (Err(unwritten), given_up) => {
                given_up.into_iter().for_each(|failure| _ = failure.print());
                Err(told(unwritten))
            }
        }
    }

    /// Where the counts are if their file could not be written: beside it, as they were counted, or in the directory for
    /// temporary files.
    fn rescue(&self, profile: &Profile) -> String {
        if let Some(kept) = count_folder_of(&self.output).filter(|kept| is_kept(kept)) {
            return format!("the counts are kept: {}", report_command(&kept));
        }
        match write_elsewhere(|to| trg::write(profile, to)) {
            Ok(elsewhere) => format!("the profile was written elsewhere: treering report {}", word(&elsewhere)),
            Err(_) => "nor could they be written to the directory for temporary files, so they are lost; name a file \
                       where there is room after -o"
                .to_owned(),
        }
    }

    /// The selected part of the run, if not all is counted; and the selected functions that were missing.
    fn partly(&self, selected: &Selected, counts: &Counts, totals: &Totals) -> Vec<String> {
        let mut notes = Vec::new();
        if let Some(pid) = self.pid {
            let seconds = counts.duration.as_secs_f64();
            notes.push(format!("counted process {pid} for {seconds:.3} seconds after attaching to it"));
        }
        let functions = self.toggle.join(", ");
        match (self.toggle.is_empty(), self.marked) {
            (true, false) => {}
            (false, false) => notes.push(format!("counted only within {functions}")),
            (true, true) => notes.push("counted only between the program's own marks".to_owned()),
            (false, true) => {
                notes.push(format!("counted only within {functions} and between the program's own marks"));
            }
        }
        notes.extend(selected.missing());
        if self.marked && totals.is_nothing() {
            notes.push("no thread passed a mark that starts counting".to_owned());
        }
        notes
    }

    /// The environment of the program.
    fn environment(&self) -> Vec<(OsString, OsString)> {
        let all = std::env::vars_os().collect();
        match &self.fixed {
            Some(more) => environment::held(all, more),
            None => all,
        }
    }

    /// Notes on the surroundings of the program that were held, and on those that it saw all the same.
    fn held(&self, escaped: &held::Escaped) -> Vec<String> {
        let mut notes = Vec::new();
        if self.fixed.is_some() {
            notes.push(held::note(self.environment().len(), std::env::vars_os().count()));
        }
        let level = self.cpu.level();
        notes.extend(level.map(|level| format!("held: the processor, as {level}")));
        notes.extend(escaped.notes(level, self.fixed.is_some()));
        notes
    }

    fn wanted(&self) -> Wanted {
        Wanted { inlines: !self.no_inlines, sources: !self.no_sources, addresses: false }
    }

    /// Finds out before the program runs that its counts could not be written.
    fn check_output(&self, is_open: bool) -> Result<(), Failure> {
        if self.output == Path::new("-") || is_open {
            return Ok(());
        }
        check_collected(&self.output, &[], self.force)?;
        if leads_nowhere(&self.output) {
            return Ok(());
        }
        let exists = self.output.exists();
        let file = match exists {
            true => std::fs::OpenOptions::new().append(true).open(&self.output),
            false => create_new(&self.output),
        };
        file.map_err(|error| cannot_write(&self.output, &error))?;
        if !exists {
            // It is written when there is something to write.
            let _ = std::fs::remove_file(&self.output);
        }
        Ok(())
    }

    fn write(&self, stream: Option<Stream>, profile: &Profile) -> Result<(), Failure> {
        match stream {
            Some(stream) => stream.write(|to| trg::write(profile, to)),
            None => write_profile(&self.output, |to| trg::write(profile, to)),
        }
    }

    fn print_summary(
        &self,
        counts: &Counts,
        totals: &Totals,
        modelled: &model::Modelled,
        profile: &Profile,
        partly: &[String],
        is_written: bool,
    ) {
        tell!();
        match counts.ended {
            Ended::Killed(signal) => tell!("the program was ended by {}", signal_name(signal)),
            Ended::Left(left) => tell_left(left),
            Ended::Exited(_) => {}
        }
        totals.print(self.tree);
        tell!("{:>20.3}  seconds", counts.duration.as_secs_f64());
        match (counts.not_counted.is_empty(), partly.is_empty()) {
            (true, true) => tell!("all instructions were counted"),
            (_, false) => partly.iter().for_each(|note| tell!("{note}")),
            (false, true) => {}
        }
        for note in &counts.not_counted {
            tell!("not counted exactly: process {}: {}: {}", note.pid, note.reason.as_str(), note.detail);
        }
        tell_part!("{}", modelled.summary(counts, profile));
        let style = Style { colour: terminal::error_colour(), width: terminal::error_width() };
        tell_part!("\n{}", treering_report::summary(profile, &style, 8));
        if self.output == Path::new("-") || !is_written || in_archive() {
            return;
        }
        let file = self.output.display();
        let argument = report_argument(&self.output);
        let views = if self.tree { "--tree, --callgraph" } else { "--flat, --callgraph" };
        tell!("\nwrote {file}; next: treering report{argument} {views} or --blocks FUNCTION");
    }
}

/// How a process is left that was attached to.
fn tell_left(left: Left) {
    tell!("process {} goes on by itself", left.pid);
    if left.lost_privileges {
        tell!("programs it runs can no longer gain privileges (no_new_privs), for example by setuid");
    }
}

/// An error with its hint.
fn failure(error: CountError) -> Failure {
    let failure = Failure::new(&error).status(error.exit_status());
    if let CountError::Killed(_, signal) = error {
        ended_by(signal);
    }
    against_no_counts(&error).into_iter().fold(failure, Failure::hint)
}
