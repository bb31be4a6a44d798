//! A run, from the command to its counts.

use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};

use treering_proc::find_program;
use treering_profile::UncountedReason;
use treering_x86::processor::Level;

use crate::areas::trees::TreeLimits;
use crate::counting::result::{NotCounted, ProgramCounts};
use crate::error::CountError;
use crate::history::Hints;
use crate::journal::Store;
use crate::model::ModelOptions;
use crate::program::watch::{Selection, Watcher};
use crate::run::outlasting::Outlasting;
use crate::surroundings::Surroundings;
use crate::sys::{self, Stop};
use crate::tracer::launch::{Launch, start_alarm, start_error};
use crate::tracer::state::Tracer;
use crate::tracer::status_watch::STATUS_WAS_OPENED;
use crate::tracer::thread::Left;
use crate::tracer::waiting_call::PART_WAS_LEFT;

/// The command to count.
#[derive(Debug, Clone, Default)]
pub struct Command {
    /// The program and its arguments.
    pub words: Vec<OsString>,
    /// A running process to count in place of a program. It is counted until it ends, or is detached from after
    /// [`stop_after`](Self::stop_after). Not together with `tree`: the callers of its active functions are unknown.
    pub pid: Option<i32>,
    /// Its environment; the program is searched in its `PATH`. A library reads no environment, so callers
    /// pass theirs.
    pub environment: Vec<(OsString, OsString)>,
    /// Whether everything is loaded at the same addresses in every run.
    pub fixed_addresses: bool,
    /// The level of the processor that the program sees; nothing for the real one. Not together with `pid`.
    pub processor: Option<Level>,
    /// Whether time, random numbers and the limit of its stack are the same in every run. Not together with `pid`.
    pub held: bool,
    /// Whether the program has no standard input and output.
    pub silent: bool,
    /// A directory to make, which holds the counters until [`Counts::written`], so that
    /// [`salvage`](crate::salvage) can read them if this process is killed. If it cannot be used, as on a
    /// full disk, the program is counted all the same.
    pub keep: Option<PathBuf>,
    /// Whether each thread's calling context tree is kept.
    pub tree: bool,
    /// The part of the run to count, if not all. Not together with `tree`, which is of the whole run.
    pub selection: Option<Selection>,
    /// The time after which counting stops; the program continues. Not together with `tree`.
    pub stop_after: Option<Duration>,
    /// Whether children are not counted; they run normally.
    pub without_children: bool,
    /// The caches and predictors to model; not together with trees or parts of a run.
    pub model: ModelOptions,
    /// The most counters of a process: it needs one for each block of its code and some more. The default is
    /// the available room, some eight million. A process that needs more is ended.
    pub most_counters: Option<u32>,
    /// The most bytes of a unit of translated code, at least half a mebibyte; there are more units if it is full. The
    /// default is what a jump reaches.
    pub unit_size: Option<u64>,
    /// The size limits of calling context trees.
    pub limits: TreeLimits,
    /// A directory, made if necessary, for the history of programs, which makes them start faster. No count
    /// depends on it. Not used together with `selection`.
    pub hints: Option<PathBuf>,
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// With an exit status.
    Exited(i32),
    /// By a signal.
    Killed(i32),
    /// Not at all: it was detached from, having run before.
    Left(Left),
}

/// The counts of a program and its children.
#[derive(Debug)]
pub struct Counts {
    /// Every program that ran, in the order in which they ended; none of those that were handed out by [`count_each`].
    pub programs: Vec<ProgramCounts>,
    /// The uncounted parts of the run.
    pub not_counted: Vec<NotCounted>,
    /// Remarks on the run that do not concern its counts.
    pub notes: Vec<&'static str>,
    /// How the program ended.
    pub ended: Ended,
    /// How long it ran.
    pub duration: Duration,
    /// How often translated code asked the tracer, which stops the thread each time.
    pub requests: u64,
    /// The program and its arguments.
    pub(crate) command: Vec<String>,
    /// The first process that could not continue and was ended, if there was one. It is counted up to then.
    pub given_up: Option<CountError>,
    /// The files of [`Command::keep`].
    kept: Option<Store>,
}

impl Counts {
    /// Removes the kept files, now that the counts have been written elsewhere.
    pub fn written(&mut self) {
        if let Some(store) = self.kept.take() {
            store.remove();
        }
    }
}

/// Runs a program and its children until they end, and counts them.
///
/// The calling thread traces them; it must not trace anything else.
///
/// # Errors
/// The program cannot be started or traced.
pub fn count(command: &Command) -> Result<Counts, CountError> {
    count_and_tell(command, |_| {})
}

/// A report of a run that goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress<'a> {
    /// The program is about to run. Signals sent to this process end the counting: it is the first process, or, if that ran
    /// before, a helper process whose end makes the tracer detach.
    Begins(i32),
    /// The program has ended, and children are left that are counted. From now on, signals sent to this helper process end
    /// the counting. The children get the first one, or SIGTERM if they ignore it, and SIGKILL for the next.
    HasEnded(i32),
    /// The program has ended a second ago, and these processes are still counted.
    GoesOn(&'a [i32]),
}

/// As [`count`], and tells how the run goes on.
///
/// # Errors
/// As [`count`].
pub fn count_and_tell(command: &Command, tell: impl FnMut(Progress<'_>)) -> Result<Counts, CountError> {
    let mut programs = Vec::new();
    let counts = count_each(command, tell, |program| programs.push(program))?;
    Ok(Counts { programs, ..counts })
}

/// As [`count_and_tell`], but passes the counts of each program to `ended` when it ends, and does not keep them: there
/// may be thousands. [`ProfileBuilder`](crate::ProfileBuilder) makes a profile of them.
///
/// # Errors
/// As [`count`].
pub fn count_each(
    command: &Command,
    mut tell: impl FnMut(Progress<'_>),
    mut ended: impl FnMut(ProgramCounts),
) -> Result<Counts, CountError> {
    check(command)?;
    let tracer = tracer(command)?;
    let mut sink = Sink { ended: &mut ended, any: false };
    match command.pid {
        Some(pid) => count_running(command, pid, tracer, &mut tell, &mut sink),
        None => count_program(command, tracer, &mut tell, &mut sink),
    }
}

/// Is told how the run goes on.
type Tell<'a> = &'a mut dyn FnMut(Progress<'_>);

/// Receives the counts of ended programs.
struct Sink<'a> {
    ended: &'a mut dyn FnMut(ProgramCounts),
    /// Whether there was one.
    any: bool,
}

impl Sink<'_> {
    fn take_from(&mut self, tracer: &mut Tracer) {
        for program in tracer.ended.drain(..) {
            self.any = true;
            (self.ended)(program);
        }
    }
}

/// A tracer for the command, without threads yet.
fn tracer(command: &Command) -> Result<Tracer, CountError> {
    let mut tracer = Tracer::new(command.tree, command.model)
        .map_err(|error| CountError::Setup("shared memory", error))?;
    tracer.options.most_counters = command.most_counters.unwrap_or(u32::MAX);
    tracer.options.unit_size = command.unit_size.unwrap_or(u64::MAX);
    tracer.options.limits = command.limits;
    tracer.options.surroundings = Surroundings::new(command.processor, command.held);
    let hints = command.hints.as_deref().filter(|_| command.selection.is_none());
    // The beginning of a process that ran before is not seen.
    tracer.hints = hints.map(|directory| Hints::new(directory, command.pid.is_none()));
    tracer.watcher = command.selection.clone().map(|selection| Rc::new(Watcher::new(selection)));
    Ok(tracer)
}

fn count_program(
    command: &Command,
    mut tracer: Tracer,
    tell: Tell<'_>,
    sink: &mut Sink<'_>,
) -> Result<Counts, CountError> {
    let name = command.words.first().cloned().unwrap_or_default();
    let launch = prepare(command, &name)?;
    tracer.store = command.keep.as_deref().and_then(Store::new);
    let begun = Instant::now();
    let (pid, pipe) = launch.start().map_err(CountError::Trace)?;
    sys::allow_open_files();
    sys::allow_memory();
    tell(Progress::Begins(pid));
    tracer.only = command.without_children.then_some(pid);
    // Surroundings that are held cannot be let go.
    tracer.can_leave = command.without_children && !tracer.options.surroundings.is_any_held();
    let alarm = command.stop_after.map(|after| start_alarm(Some(after)));
    let alarm = alarm.transpose().map_err(CountError::Trace)?;
    let ended = follow(&mut tracer, pid, alarm.zip(command.stop_after), tell, sink);
    tracer.finish();
    sink.take_from(&mut tracer);
    if let Some(error) = failure(&mut tracer, sink.any, &pipe, name, ended) {
        tracer.store.take().into_iter().for_each(Store::remove);
        return Err(error);
    }
    let words = command.words.iter().map(|word| word.to_string_lossy().into_owned());
    Ok(counts(tracer, words.collect(), ended, begun))
}

/// Counts a running process.
fn count_running(
    command: &Command,
    pid: i32,
    mut tracer: Tracer,
    tell: Tell<'_>,
    sink: &mut Sink<'_>,
) -> Result<Counts, CountError> {
    sys::allow_open_files();
    sys::allow_memory();
    tracer.store = command.keep.as_deref().and_then(Store::new);
    tracer.only = command.without_children.then_some(pid);
    if let Err(error) = tracer.attach(pid) {
        tracer.store.take().into_iter().for_each(Store::remove);
        return Err(error);
    }
    let alarm = start_alarm(command.stop_after);
    let (begun, words) = (Instant::now(), treering_proc::command_line(pid.cast_unsigned()));
    let alarm = match alarm {
        Ok(alarm) => Some((alarm, command.stop_after.unwrap_or_default())),
        Err(error) => {
            tracer.note(UncountedReason::Other, pid, format!("it was detached from at once: {error}"));
            tracer.leave();
            None
        }
    };
    if let Some((alarm, _)) = alarm {
        tell(Progress::Begins(alarm));
    }
    let ended = follow(&mut tracer, pid, alarm, tell, sink);
    tracer.finish();
    sink.take_from(&mut tracer);
    Ok(counts(tracer, words, ended, begun))
}

fn counts(mut tracer: Tracer, command: Vec<String>, ended: Ended, begun: Instant) -> Counts {
    let given_up = tracer.first_error.take().map(|(pid, error)| CountError::GivenUp(pid, error));
    let (not_counted, kept) = (tracer.not_counted, tracer.store);
    let (duration, requests) = (begun.elapsed(), tracer.requests);
    let status = tracer.status_watch.was_opened().then_some(STATUS_WAS_OPENED);
    let part = tracer.has_left_part.then_some(PART_WAS_LEFT);
    let notes = status.into_iter().chain(part).collect();
    Counts { programs: Vec::new(), not_counted, notes, ended, duration, requests, command, given_up, kept }
}

/// Refuses options that cannot be combined, or that this processor does not support.
fn check(command: &Command) -> Result<(), CountError> {
    let unsupported =
        |what, why: &str| Err(CountError::Setup(what, io::Error::new(io::ErrorKind::Unsupported, why)));
    let in_part = command.selection.is_some() || command.stop_after.is_some();
    if command.model != ModelOptions::default() && (command.tree || in_part) {
        return unsupported("the model", "it cannot be combined with a tree or a part of the run");
    }
    if command.tree && (in_part || command.pid.is_some()) {
        return unsupported(
            "calling context trees",
            "they are always of the whole run of a program that treering starts",
        );
    }
    if let Some((level, lacking)) = command.processor.and_then(|level| Some((level, lacking(level)?))) {
        return Err(CountError::Processor(level.name(), lacking));
    }
    if command.tree && !std::arch::is_x86_feature_detected!("avx") {
        return unsupported("calling context trees", "this processor has no AVX");
    }
    Ok(())
}

/// The first feature of a level that this processor lacks, if it lacks one. `xsavec` is not of the psABI, but the
/// C library saves registers by it where it is told that the state is small.
fn lacking(level: Level) -> Option<&'static str> {
    macro_rules! features {
        ($($name:tt),*) => { [$(($name, std::arch::is_x86_feature_detected!($name))),*] };
    }
    let v2 = features!["sse3", "ssse3", "sse4.1", "sse4.2", "popcnt", "cmpxchg16b"];
    let v3 = features!["avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave", "xsavec"];
    let v4 = features!["avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"];
    let v3 = v3.iter().filter(|_| level >= Level::V3);
    let v4 = v4.iter().filter(|_| level >= Level::V4);
    v2.iter().chain(v3).chain(v4).find(|(_, is_there)| !is_there).map(|&(name, _)| name)
}

/// The reason why nothing was counted, if nothing was. `any` tells whether a program was counted, `ended` how the
/// process ended.
fn failure(
    tracer: &mut Tracer,
    any: bool,
    pipe: &OwnedFd,
    name: OsString,
    ended: Ended,
) -> Option<CountError> {
    if let Some(error) = start_error(pipe) {
        return Some(CountError::Start(name, error));
    }
    if any {
        return None;
    }
    let is_of_other_mode = tracer.not_counted.iter().any(|note| note.reason == UncountedReason::OtherMode);
    Some(match (tracer.first_error.take(), ended) {
        (Some((_, error)), _) => CountError::Setup("its address space", error),
        (None, Ended::Killed(signal)) if !is_of_other_mode => CountError::Killed(name, signal),
        (None, _) => CountError::OtherMode(name),
    })
}

/// Handles all stops until no thread is left, or everything was detached from. Returns how the first process
/// ended. Counting stops when the alarm's process ends. Children that are not counted do not outlast it.
fn follow(
    tracer: &mut Tracer,
    pid: i32,
    mut alarm: Option<(i32, Duration)>,
    tell: Tell<'_>,
    sink: &mut Sink<'_>,
) -> Ended {
    let mut ended = None;
    let mut outlasting: Option<Outlasting> = None;
    sys::expect_no_stop_signals();
    loop {
        match sys::wait(-1) {
            Ok(Some((tid, _))) if alarm.is_some_and(|(alarm, _)| alarm == tid) => {
                let Some((_, after)) = alarm.take() else { continue };
                if tracer.attached.is_some() {
                    tracer.leave();
                } else {
                    let seconds = after.as_secs_f64();
                    tracer.stop_counting(&format!("its work after {seconds} seconds, as requested"));
                }
            }
            Ok(Some((tid, stop)))
                if outlasting.as_ref().is_some_and(|left| left.helpers().any(|helper| helper == tid)) =>
            {
                outlasting.iter_mut().for_each(|left| left.helper_ended(tid, stop, tracer, tell));
            }
            Ok(Some((tid, stop))) => {
                let end = match stop {
                    Stop::Exited(status) if tid == pid => Some(Ended::Exited(status)),
                    Stop::Killed(signal) if tid == pid => Some(Ended::Killed(signal)),
                    _ => None,
                };
                ended = end.or(ended);
                if tracer.attached.is_none() {
                    tracer.begin_with(tid, pid);
                }
                tracer.handle(tid, stop);
                sink.take_from(tracer);
                match end {
                    Some(_) if tracer.is_done() => {}
                    Some(_) if tracer.only.is_some() && tracer.can_leave => tracer.leave(),
                    Some(_) => outlasting = Some(Outlasting::begin(tracer, tell)),
                    None => {}
                }
                let has_left = tracer.has_left();
                if has_left || tracer.is_done() {
                    let helpers = alarm.map(|(alarm, _)| alarm).into_iter();
                    helpers.chain(outlasting.iter().flat_map(Outlasting::helpers)).for_each(sys::kill);
                }
                if has_left {
                    return ended.or(tracer.attached.map(Ended::Left)).unwrap_or(Ended::Exited(0));
                }
            }
            Ok(None) => return ended.unwrap_or(Ended::Exited(0)),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => tracer.affinity.look(),
            Err(_) => return ended.unwrap_or(Ended::Exited(0)),
        }
    }
}

fn prepare(command: &Command, name: &OsStr) -> Result<Launch, CountError> {
    let variable = |name: &OsStr, value: &OsStr| [name.as_bytes(), b"=", value.as_bytes()].concat();
    let environment = command.environment.iter().map(|(name, value)| variable(name, value));
    let environment: Vec<Vec<u8>> = environment.collect();
    let path =
        command.environment.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.as_os_str());
    let path = find_program(name, path);
    let path = path.filter(|path| path.exists()).ok_or_else(|| CountError::NotFound(name.to_owned()))?;
    let text =
        |bytes: &[u8]| CString::new(bytes).map_err(|error| CountError::Start(name.to_owned(), error.into()));
    let arguments = command.words.iter().map(|word| text(word.as_bytes())).collect::<Result<_, _>>()?;
    let environment = environment.iter().map(|bytes| text(bytes)).collect::<Result<_, _>>()?;
    let mut launch = Launch::new(text(path.as_os_str().as_bytes())?, arguments, environment);
    if command.fixed_addresses {
        launch.fix_addresses();
    }
    if command.held {
        launch.fix_stack();
    }
    if command.silent {
        let nothing = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null");
        launch.silence(nothing.map_err(|error| CountError::Start(name.to_owned(), error))?.into());
    }
    Ok(launch)
}

mod outlasting;

#[cfg(test)]
#[expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may fail by panicking, and says what it skips"
)]
mod listings;
