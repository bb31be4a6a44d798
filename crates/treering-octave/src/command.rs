//! The commands: `on`, `off`, `resume`, `clear`, `mark`, `status`, `info`, `print`, `save`.

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use treering_runtime::{Options, Recursion};

use crate::children;
use crate::hooks::{self, what};
use crate::listing::Listing;
use crate::naming::Namer;
use crate::print;
use crate::request::{Request, check_ours, named_in};
use crate::stopwatch::{self, Stopwatch};
use crate::tables::Tables;
use crate::temporary;
use crate::value::Value;

/// The effects of a command.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// The value that the command returns.
    pub(crate) value: Value,
    /// Whether Octave's own profiler, whose events tell of operators, is to be switched.
    pub(crate) native: Option<bool>,
    /// Whether a window is to show that recording is on.
    pub(crate) window: Option<bool>,
    /// Whether this library must stay loaded from now on.
    pub(crate) keeps: bool,
    /// Whether calls are recorded now only to see what that costs. The command is to be run again
    /// when this was told to [`treering_runtime::set_call_cost`].
    pub(crate) measures: bool,
}

impl From<Value> for Outcome {
    fn from(value: Value) -> Self {
        Self { value, native: None, window: None, keeps: false, measures: false }
    }
}

/// Whether it was measured what a call costs in this process.
static IS_MEASURED: AtomicBool = AtomicBool::new(false);

/// The last request.
static LAST: Mutex<Option<Request>> = Mutex::new(None);

fn last() -> MutexGuard<'static, Option<Request>> {
    LAST.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a command of some words.
///
/// # Errors
/// A sentence for the user.
pub(crate) fn run(words: &[String]) -> Result<Outcome, String> {
    let (command, rest) = words.split_first().ok_or("expected a command")?;
    match (command.as_str(), rest) {
        ("on", options) => on(Request::read(options)?),
        ("off", []) => Ok(off()),
        // There is one profile, of whatever kind.
        ("off", [kind]) if kind == "graph" || kind == "flat" => Ok(off()),
        ("off", _) => Err("off takes no other word than graph or flat".to_owned()),
        ("resume", []) => resume(),
        ("clear", []) => clear(),
        ("mark", [name]) => {
            treering_runtime::mark(name);
            Ok(Value::Nothing.into())
        }
        ("status", []) => Ok(status().into()),
        ("info", []) => Ok(tables().info(false).into()),
        ("details", []) => Ok(tables().info(true).into()),
        ("info" | "details", _) => {
            Err("graph, flat and options of info tell what to print; the result has all of it".to_owned())
        }
        ("print", options) => print(&Listing::read(options)?),
        ("await", []) => wait_for(hooks::Start::EvalOption),
        ("await", [option, names]) if option == "-named-in" => {
            wait_for(hooks::Start::Script(named_in(Path::new(names))?))
        }
        ("worker", options) => worker(options),
        ("save", [file]) => save(Path::new(file)),
        (other, _) => Err(format!("unknown command '{other}', or wrong number of arguments")),
    }
}

/// Starts a new profile; what was recorded before is forgotten.
fn on(request: Request) -> Result<Outcome, String> {
    stop();
    hooks::install(request.bits)
        .map_err(|refusal| format!("this Octave cannot be profiled: {refusal}; nothing was changed in it"))?;
    // The environment must not switch anything on by itself.
    treering_runtime::clear_profiler();
    children::discard();
    treering_runtime::discard();
    treering_runtime::set_profiler(options(&request));
    hooks::finish_at_exit(at_exit);
    if !IS_MEASURED.swap(true, Relaxed) {
        hooks::start(what::CALLS, Namer::new());
        return Ok(Outcome { keeps: true, measures: true, ..Value::Nothing.into() });
    }
    *stopwatch::recording() = Stopwatch::default();
    stopwatch::recording().start(treering_runtime::ticks());
    OWNER.store(std::process::id(), Relaxed);
    let namer = Namer::with(request.filter.clone(), &request.home);
    hooks::start(request.bits, namer.without_builtins(request.bits & what::NO_BUILTINS != 0));
    let native = (request.bits & what::OPERATORS != 0).then_some(true);
    report_file(&request)?;
    *last() = Some(request);
    Ok(Outcome { native, window: Some(true), keeps: true, ..Value::Nothing.into() })
}

/// Tells the command `treering octave` which file is written. Workers of the script have files beside that one.
fn report_file(request: &Request) -> Result<(), String> {
    let (Some(told), Some(path)) = (&request.told, treering_runtime::output()) else { return Ok(()) };
    let written = match OpenOptions::new().write(true).create_new(true).open(told) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        file => file.and_then(|mut file| file.write_all(path.as_os_str().as_bytes())),
    };
    written.map_err(|error| format!("cannot write {}: {error}", told.display()))
}

fn options(request: &Request) -> Options {
    let output = request.output.clone().unwrap_or_else(temporary::file);
    let recursion = if request.folds { Recursion::Direct } else { Recursion::Full };
    Options {
        kind: request.kind,
        recursion,
        keeps_time: !request.no_time,
        output: Some(output),
        command: shown(),
        ..Options::default()
    }
}

/// The command that the profile shows, if `treering octave` has written it.
fn shown() -> Option<Vec<u8>> {
    std::fs::read(std::env::var_os("TREERING_OCTAVE_COMMAND")?).ok()
}

/// Records nothing more.
fn stop() {
    hooks::stop();
    stopwatch::recording().stop(treering_runtime::ticks());
}

fn off() -> Outcome {
    let had_operators = hooks::wanted() & what::OPERATORS != 0;
    stop();
    treering_runtime::clear_profiler();
    Outcome { native: had_operators.then_some(false), window: Some(false), ..Value::Nothing.into() }
}

/// Goes on with the profile there is, or starts one.
fn resume() -> Result<Outcome, String> {
    let request = last().clone();
    let request = request.unwrap_or_else(|| Request { bits: what::CALLS, ..Request::default() });
    if treering_runtime::output().is_none() {
        return on(request);
    }
    if hooks::wanted() == 0 {
        treering_runtime::set_profiler(options(&request));
        go_on(request.bits);
    }
    let native = (request.bits & what::OPERATORS != 0).then_some(true);
    Ok(Outcome { native, window: Some(true), ..Value::Nothing.into() })
}

fn go_on(bits: u32) {
    stopwatch::recording().start(treering_runtime::ticks());
    hooks::resume(bits);
}

/// Goes on with the profile when Octave runs the code that recording begins with. Octave's own profiler,
/// whose events tell of operators, is switched at once.
fn wait_for(start: hooks::Start) -> Result<Outcome, String> {
    let had_operators = last().as_ref().is_some_and(|request| request.bits & what::OPERATORS != 0);
    stop();
    treering_runtime::clear_profiler();
    hooks::wait_for(start, begin);
    Ok(Outcome { native: had_operators.then_some(true), ..Value::Nothing.into() })
}

fn begin() {
    if let Some(request) = &*last() {
        treering_runtime::set_profiler(options(request));
        go_on(request.bits);
    }
}

/// Forgets what was recorded; goes on recording if it did.
fn clear() -> Result<Outcome, String> {
    if hooks::wanted() != 0 {
        let request = last().clone().unwrap_or_default();
        return on(request);
    }
    children::discard();
    treering_runtime::discard();
    Ok(Value::Nothing.into())
}

fn status() -> Value {
    let word = if hooks::wanted() != 0 { "on" } else { "off" };
    let file = treering_runtime::output().map(|path| path.display().to_string()).unwrap_or_default();
    let kind = last().as_ref().map(|request| format!("{:?}", request.kind)).unwrap_or_default();
    Value::structure(vec![
        ("ProfilerStatus", Value::Text(word.to_owned())),
        ("Kind", Value::Text(kind)),
        ("File", Value::Text(file)),
    ])
}

fn tables() -> Tables {
    let recorded = stopwatch::recording().read(treering_runtime::ticks());
    let snapshot = treering_runtime::snapshot();
    snapshot.map(|snapshot| Tables::of(&snapshot, recorded, &children::snapshots())).unwrap_or_default()
}

/// Stops, and prints what was recorded.
fn print(listing: &Listing) -> Result<Outcome, String> {
    let off = off();
    let statistics = listing.statistics || last().as_ref().is_some_and(|request| request.statistics);
    let listing = Listing { statistics, ..listing.clone() };
    Ok(Outcome { value: Value::Text(print::tables(&tables(), &listing)), ..off })
}

fn save(file: &Path) -> Result<Outcome, String> {
    if treering_runtime::output().is_none() {
        return Err(
            "there is no profile: nothing was recorded since it was cleared; it begins with: profile on"
                .to_owned(),
        );
    }
    check_ours(file)?;
    treering_runtime::save(file).map_err(|error| format!("cannot write {}: {error}", file.display()))?;
    Ok(Value::Nothing.into())
}

/// Records in a worker of the package parallel, if this Octave is one: the profiled Octave starts it, and
/// it waits for functions to call.
fn worker(options: &[String]) -> Result<Outcome, String> {
    const WORKER: &[u8] = b"__rfeval_slave__";
    let command = std::fs::read("/proc/self/cmdline").unwrap_or_default();
    if !command.windows(WORKER.len()).any(|word| word == WORKER) {
        return Ok(Value::Number(0.0).into());
    }
    let begun = on(Request::read(options)?)?;
    if begun.measures {
        return Ok(begun);
    }
    IS_WORKER.store(true, Relaxed);
    let waiting = wait_for(hooks::Start::Builtin(WORKER))?;
    Ok(Outcome { value: Value::Number(1.0), keeps: true, ..waiting })
}

/// The process that was switched on, rather than one that it has forked.
static OWNER: AtomicU32 = AtomicU32::new(0);

/// Whether this process records for another one.
static IS_WORKER: AtomicBool = AtomicBool::new(false);

/// Writes the profile when Octave ends, or removes it if the user asked for no file.
extern "C" fn at_exit() {
    hooks::stop();
    let (is_wanted, is_read_here) =
        last().as_ref().map_or((false, true), |request| (request.output.is_some(), !request.folds));
    let is_of_another = OWNER.load(Relaxed) != std::process::id() || IS_WORKER.load(Relaxed);
    if is_of_another && is_read_here {
        treering_runtime::keep_live();
    } else if is_wanted {
        // A problem was written to standard error.
        let _ = treering_runtime::finish();
    } else {
        children::discard();
        treering_runtime::discard();
    }
    // Files that are read by another process are in that one's folder.
    temporary::remove();
}
