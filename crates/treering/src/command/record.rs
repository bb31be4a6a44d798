//! `treering record`: samples a program and writes a profile.

use std::ffi::OsString;
use std::fs::File;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use treering_formats::{Format, trg};
use treering_perf::{Event, Finish, Observer, Options, RecordError, Recording, Target};
use treering_profile::{Profile, merge};
use treering_report::Style;
use treering_symbols::{ModuleReport, Problem};
use treering_translator::{stop_after_children, stop_with_program};

use super::archive::{Kept, in_archive};
use crate::arguments::seconds;
use crate::ending::{ended_by, signal_name};
use crate::failure::{Context as _, Failure, Outcome};
use crate::hint::{against_losses, against_no_recording, against_waiting};
use crate::marks::MarkFile;
use crate::nameless::note_nameless;
use crate::naming::{Reachable, Wanted, name_functions};
use crate::output::{
    cannot_write, check_target, clean_up_at_signals, create_new, is_profile, keep_older, no_stream,
    restore_older, write_elsewhere, write_whole,
};
use crate::page::beside;
use crate::stream::Stream;
use crate::terminal;
use crate::word::{report_argument, word, words};

/// Sample a program, or a running process, and write a profile
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  treering record -- ./solve input.txt        sample a program from its start
  treering record -p 4711 -d 10               sample a running process for ten seconds
  treering record -e page-faults -- ./solve   who touches new memory
  treering record --off-cpu -- ./server       who waits, and how long
  treering record --runs 5 -- ./solve         how much the shares differ between runs

Then: treering report")]
pub struct Record {
    /// Sample a running process, and its children from now on
    #[arg(short, long, value_name = "PID", conflicts_with = "command")]
    pid: Option<u32>,

    /// Stop after this many seconds; the program itself goes on
    #[arg(short, long, value_name = "SECONDS", value_parser = seconds)]
    duration: Option<Duration>,

    /// The file to write, or an archive that gets the profile; with -p, `-` for standard output. In its name, `%p` stands for
    /// the process, `%h` for the machine, `%r` for the rank, and `%%` for %
    #[arg(short, long, value_name = "FILE", default_value = "treering.trg", value_parser = crate::output_name::parser())]
    output: PathBuf,

    /// Samples per second of processor time
    #[arg(short = 'F', long, value_name = "HZ", default_value_t = 1000.0, value_parser = frequency)]
    frequency: f64,

    /// Take a sample every COUNTS events, instead of at a frequency
    #[arg(short = 'c', long, value_name = "COUNTS", conflicts_with = "frequency",
          value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,

    /// Sample at equal intervals; the shares are wrong for a program in step with them
    #[arg(long = "fixed-intervals", alias = "fixed")]
    fixed: bool,

    /// Sample these events, by perf's names (cycles, page-faults, sched:sched_switch, r01c4 ...);
    /// several as a list or by several -e
    #[arg(short, long, value_name = "EVENT", value_delimiter = ',')]
    event: Vec<String>,

    /// How many bytes of the stack to copy with each sample, for instance 8k; 64k by default, or 32k where the
    /// user may lock little memory
    #[arg(long, value_name = "SIZE", value_parser = size)]
    stack: Option<u32>,

    /// Follow frame pointers only: cheaper, for programs built with -fno-omit-frame-pointer
    #[arg(long, conflicts_with = "stack")]
    fp: bool,

    /// Leave out the kernel's time and frames, as for users who may not see them
    #[arg(long)]
    user_only: bool,

    /// Measure how long threads wait, and where
    #[arg(long)]
    off_cpu: bool,

    /// Leave out of the profile when costs arose
    #[arg(long)]
    no_time: bool,

    /// Run the program N times, to see the spread between runs
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "pid",
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,

    /// Give the cost of inlined functions to their callers
    #[arg(long)]
    no_inlines: bool,

    /// Leave the texts of source files out of the profile
    #[arg(long)]
    no_sources: bool,

    /// Draw the random intervals from this number
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,

    /// Make a page of the profile at the end and open it, as `treering view` does
    #[arg(long)]
    view: bool,

    /// Print nothing but errors
    #[arg(short, long)]
    quiet: bool,

    /// Replace FILE even if it is not a profile that Treering wrote
    #[arg(long)]
    force: bool,

    /// The program and its arguments
    #[arg(trailing_var_arg = true, required_unless_present = "pid", value_name = "PROGRAM ARGS")]
    command: Vec<OsString>,
}

impl Record {
    /// Records, names what was recorded, writes the file, prints the summary and passes on the
    /// program's exit status.
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
        let options = self.options()?;
        check_target(&self.output, &[], Format::Trg, self.force)?;
        let page = self.view.then(|| beside(&self.output, self.force)).transpose()?;
        let stream = Stream::open(&self.output)?;
        // Bytes written there cannot be replaced.
        let only_once = stream.is_some() || self.output == Path::new("-");
        let mut runs: Vec<Profile> = Vec::new();
        let mut finish = Finish::Detached;
        let mut written = Ok(());
        for run in 1..=self.runs {
            let place = Place::new(&self.output, stream.as_ref(), runs.is_empty(), self.force)?;
            let (profile, ended) = self.record_once(&options, &place)?;
            runs.push(profile);
            finish = ended;
            let is_last = run == self.runs || was_interrupted(&finish);
            if is_last || !only_once {
                written = place.replace(&join(&runs));
            }
            if written.is_err() || is_last {
                break;
            }
        }
        if !self.quiet {
            self.print_summary(&join(&runs), &finish, written.is_ok());
        }
        let status = exit_status(&finish.wait());
        let written = written.and_then(|()| page.map_or(Ok(()), |page| page.show(self.quiet)));
        // The program's own status tells more than that its profile could not be written.
        written.map_err(|failure| failure.status(if status == 0 { 1 } else { status }))?;
        Ok(ExitCode::from(status))
    }

    fn options(&self) -> Result<Options, Failure> {
        let target = match self.pid {
            Some(pid) => Target::Attach(pid),
            None => Target::Launch(self.command.clone()),
        };
        let mut options = Options::new(target);
        let parse =
            |name: &String| Event::parse(name).map_err(|unknown| Failure::new(&unknown).hint(&unknown.hint));
        options.events = self.event.iter().map(parse).collect::<Result<_, _>>()?;
        options.frequency = self.frequency;
        options.period = self.count;
        options.jitter = !self.fixed;
        options.stack_bytes = if self.fp { Some(0) } else { self.stack };
        options.kernel = !self.user_only;
        options.off_cpu = self.off_cpu;
        options.time = !self.no_time;
        options.duration = self.duration;
        if let Some(seed) = self.seed {
            options.seed = seed;
        }
        Ok(options)
    }

    /// One run: from the program's start to a profile with names.
    fn record_once(&self, options: &Options, place: &Place) -> Result<(Profile, Finish), Failure> {
        let mut growing = Growing::start(place)?;
        let marks = (options.time && self.pid.is_none()).then(MarkFile::create);
        let mut options = options.clone();
        options.environment.extend(marks.iter().flatten().map(MarkFile::variable));
        if self.pid.is_none() {
            let _ = stop_after_children();
        }
        let recorded = treering_perf::record(&options, &mut growing);
        let _ = stop_with_program(false);
        let recorded = recorded.map_err(|error| {
            place.discard();
            let failure = Failure::new(&error).status(error.exit_status());
            let hints = against_no_recording(&error).into_iter().chain(self.instead(&error));
            hints.fold(failure, Failure::hint)
        })?;
        let Recording { mut profile, finish, start_ns, hidden_files, jit } = recorded;
        match marks {
            Some(Ok(marks)) => marks.add_to(&mut profile, start_ns),
            Some(Err(error)) => {
                profile
                    .metadata
                    .note(format!("marks of the program were not kept: no file for them: {error}"));
            }
            None => {}
        }
        let wanted = Wanted { inlines: !self.no_inlines, sources: !self.no_sources, addresses: true };
        let named = name_functions(profile, Reachable { hidden_files, jit, ..Reachable::default() }, wanted);
        let mut profile = named.profile;
        named.modules.iter().for_each(|module| note_problems(&mut profile, module));
        note_nameless(&mut profile);
        crate::output_name::note_place(&mut profile);
        Ok((profile, finish))
    }

    /// The command that measures the same program without the kernel's events, where those are denied.
    fn instead(&self, error: &RecordError) -> Option<String> {
        let RecordError::NotPermitted(_) = error else { return None };
        let words = self.pid.map_or_else(|| words(&self.command), |pid| format!("-p {pid}"));
        Some(format!("or count exactly, without the kernel's events: treering count {words}"))
    }

    fn print_summary(&self, profile: &Profile, finish: &Finish, is_written: bool) {
        let style = Style { colour: terminal::error_colour(), width: terminal::error_width() };
        tell!();
        if let Finish::Killed(signal) = finish {
            tell!("the program was ended by {}", signal_name(*signal));
        }
        tell_part!("{}", treering_report::summary(profile, &style, 8));
        for hint in against_losses(profile).into_iter().chain(against_waiting(profile)) {
            tell!("\nhint: {hint}");
        }
        if self.output == Path::new("-") || !is_written {
            return;
        }
        let file = self.output.display();
        let argument = report_argument(&self.output);
        if !in_archive() {
            tell!(
                "\nwrote {file}; next: treering report{argument} --callgraph, --tree, --callers or --lines FUNCTION"
            );
        }
        if matches!(finish, Finish::Running(_)) {
            tell!("the program goes on; it is no longer recorded");
        }
    }
}

/// All runs as one profile.
fn join(runs: &[Profile]) -> Profile {
    match runs {
        [only] => only.clone(),
        _ => merge(&runs.iter().collect::<Vec<_>>()),
    }
}

/// Notes why addresses of a module have no names.
fn note_problems(profile: &mut Profile, module: &ModuleReport) {
    if module.unresolved() == 0 {
        return;
    }
    let explains = |problem: &&Problem| !matches!(problem, Problem::NoDebugInformation);
    for problem in module.problems.iter().filter(explains) {
        let (path, unnamed, all) = (&module.path, module.unresolved(), module.addresses);
        profile.metadata.note(format!("{path}: {unnamed} of {all} addresses have no name: {problem}"));
    }
}

/// Whether a run ended by the user's wish, so that no other follows.
fn was_interrupted(finish: &Finish) -> bool {
    const INTERRUPTS: [i32; 5] = [libc::SIGINT, libc::SIGTERM, libc::SIGKILL, libc::SIGHUP, libc::SIGQUIT];
    match finish {
        Finish::Killed(signal) => INTERRUPTS.contains(signal),
        Finish::Exited(status) => INTERRUPTS.map(|signal| 128 + signal).contains(status),
        Finish::Running(_) | Finish::Detached => true,
    }
}

/// The exit status that a shell would give. By a signal that has ended the program this process ends as well.
fn exit_status(finish: &Finish) -> u8 {
    match finish {
        Finish::Exited(status) => *status as u8,
        Finish::Killed(signal) => ended_by(*signal),
        Finish::Running(_) | Finish::Detached => 0,
    }
}

/// Where a recording goes, while it is made and when it is done.
struct Place<'a> {
    output: &'a Path,
    /// The output, if it is a pipe or a device.
    stream: Option<&'a Stream>,
    /// The file that grows during the recording; none for a pipe or a device.
    growing: Option<PathBuf>,
    /// Whether an earlier profile was kept when this recording began.
    has_older: bool,
}

impl<'a> Place<'a> {
    /// A first recording grows in the output file itself, whose predecessor is kept as `.old`;
    /// later ones grow beside it, so that those before stay readable.
    fn new(output: &'a Path, stream: Option<&'a Stream>, first: bool, force: bool) -> Result<Self, Failure> {
        if output.is_dir() {
            return Err(Failure::new(format_args!("{} is a directory", output.display()))
                .hint("name a file after -o"));
        }
        let is_file = stream.is_none() && output != Path::new("-");
        let growing = match (is_file, first) {
            (false, _) => None,
            (true, true) => Some(output.to_owned()),
            (true, false) => Some(with_suffix(output, ".run")),
        };
        let has_older = growing.as_deref() == Some(output) && keep_older(output, force)?;
        Ok(Self { output, stream, growing, has_older })
    }

    /// Puts the finished profile in place.
    fn replace(&self, profile: &Profile) -> Result<(), Failure> {
        clean_up_at_signals();
        let written = match self.stream {
            Some(stream) => stream.write(|writer| trg::write(profile, writer)),
            None if self.was_replaced() => {
                let output = self.output.display();
                Err(Failure::new(format_args!("{output} was replaced by another file during the recording")))
            }
            None => write_whole(self.output, |writer| trg::write(profile, writer)),
        };
        match &self.growing {
            Some(growing) if growing == self.output => {
                written.map_err(|failure| failure.hint(rescue(growing, profile)))
            }
            Some(growing) if growing != self.output => {
                let _ = std::fs::remove_file(growing);
                written
            }
            _ => written,
        }
    }

    /// Whether another file has the name of the one that grew, and is no profile.
    fn was_replaced(&self) -> bool {
        let has_content =
            std::fs::metadata(self.output).is_ok_and(|known| known.is_file() && known.len() > 0);
        self.growing.is_some() && has_content && !is_profile(self.output)
    }

    /// Removes the file of a recording that never began.
    fn discard(&self) {
        if let Some(growing) = &self.growing {
            let _ = std::fs::remove_file(growing);
            if self.has_older {
                restore_older(growing);
            }
        }
    }
}

/// Where a recording is whose file could not be finished: in what grew of it, or in the directory for temporary files.
fn rescue(growing: &Path, profile: &Profile) -> String {
    if is_profile(growing) {
        return format!("the recording is kept in {}, without names", growing.display());
    }
    match write_elsewhere(|to| trg::write(profile, to)) {
        Ok(elsewhere) => format!("the profile was written elsewhere: treering report {}", word(&elsewhere)),
        Err(_) => "nor could it be written to the directory for temporary files, so it is lost; name a file where there is \
                   room after -o"
            .to_owned(),
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// The file that grows while a program is recorded, so that nothing is lost if we are killed.
struct Growing {
    appender: Option<trg::Appender<File>>,
    path: PathBuf,
}

impl Growing {
    fn start(place: &Place) -> Result<Self, Failure> {
        let Some(path) = place.growing.clone() else {
            return Ok(Self { appender: None, path: place.output.to_owned() });
        };
        // Of an earlier run that was killed; a link is removed and not followed.
        if path != place.output {
            let _ = std::fs::remove_file(&path);
        }
        let file = create_new(&path).map_err(|error| cannot_write(&path, &error))?;
        let appender = trg::Appender::new(file).context(format_args!("cannot write {}", path.display()))?;
        Ok(Self { appender: Some(appender), path })
    }

    /// Adds what is new. A disk that is full ends this once and for all; what was written stays.
    fn add(&mut self, profile: &Profile) {
        let Some(appender) = &mut self.appender else { return };
        if let Err(error) = appender.append(profile) {
            tell!("treering: cannot write {}: {error}; recording goes on in memory", self.path.display());
            self.appender = None;
        }
    }
}

impl Observer for Growing {
    fn checkpoint(&mut self, profile: &Profile) {
        self.add(profile);
    }

    fn interrupted(&mut self) {
        if std::io::stderr().is_terminal() {
            tell!("\ntreering: waiting for the program to end; interrupt again to end it");
        }
    }
}

fn frequency(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(hertz) if (0.01..=100_000.0).contains(&hertz) => Ok(hertz),
        Ok(_) => Err("must be between 0.01 and 100000".to_owned()),
        Err(_) => Err("not a number".to_owned()),
    }
}

fn size(text: &str) -> Result<u32, String> {
    let (digits, factor) = match text.strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 1024),
        None => (text, 1),
    };
    let bytes = digits.parse::<u32>().ok().and_then(|number| number.checked_mul(factor));
    match bytes {
        Some(bytes @ 1024..=65_536) => Ok(bytes),
        Some(_) => Err("must be between 1k and 64k, which is what the kernel copies".to_owned()),
        None => Err("not a size such as 16k".to_owned()),
    }
}
