//! The commands: `on`, `off`, `resume`, `clear`, `status`, `info`, `print`, `save`.

use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use treering_runtime::{Options, Recursion};

use crate::hooks::{self, what};
use crate::listing::Listing;
use crate::naming::Namer;
use crate::print;
use crate::request::Request;
use crate::stopwatch::{self, Stopwatch};
use crate::tables::Tables;
use crate::value::Value;

/// What a command leads to.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// What it returns.
    pub(crate) value: Value,
    /// Whether Octave's own profiler, whose events tell of operators, is to be switched.
    pub(crate) native: Option<bool>,
    /// Whether this library must stay loaded from now on.
    pub(crate) keeps: bool,
    /// Whether calls are recorded now only to see what that costs. The command is to be run again
    /// when this was told to [`treering_runtime::set_call_cost`].
    pub(crate) measures: bool,
}

impl From<Value> for Outcome {
    fn from(value: Value) -> Self {
        Self { value, native: None, keeps: false, measures: false }
    }
}

/// Whether it was measured what a call costs in this process.
static IS_MEASURED: AtomicBool = AtomicBool::new(false);

/// What was asked for last.
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
        ("status", []) => Ok(status().into()),
        ("info", []) => Ok(tables().info(false).into()),
        ("details", []) => Ok(tables().info(true).into()),
        ("info" | "details", _) => {
            Err("graph, flat and options of info tell what to print; the result has all of it".to_owned())
        }
        ("print", options) => print(&Listing::read(options)?),
        ("await", [script]) => await_script(Path::new(script)),
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
    treering_runtime::discard();
    treering_runtime::set_profiler(options(&request));
    hooks::finish_at_exit(at_exit);
    if !IS_MEASURED.swap(true, Relaxed) {
        hooks::start(what::CALLS, Namer::new());
        return Ok(Outcome { keeps: true, measures: true, ..Value::Nothing.into() });
    }
    *stopwatch::recording() = Stopwatch::default();
    stopwatch::recording().start(treering_runtime::ticks());
    hooks::start(request.bits, Namer::with(request.filter.clone(), &request.home));
    let native = (request.bits & what::OPERATORS != 0).then_some(true);
    *last() = Some(request);
    Ok(Outcome { native, keeps: true, ..Value::Nothing.into() })
}

fn options(request: &Request) -> Options {
    let output = request.output.clone().unwrap_or_else(temporary);
    Options { kind: request.kind, recursion: Recursion::Direct, output: Some(output), ..Options::default() }
}

/// The file of a profile that nobody has named.
fn temporary() -> PathBuf {
    std::env::temp_dir().join(format!("treering-octave-{}.trg", std::process::id()))
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
    Outcome { native: had_operators.then_some(false), ..Value::Nothing.into() }
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
    Ok(Outcome { native, ..Value::Nothing.into() })
}

fn go_on(bits: u32) {
    stopwatch::recording().start(treering_runtime::ticks());
    hooks::resume(bits);
}

/// Goes on with the profile when a script is run. Octave's own profiler, which tells of
/// operators, is switched at once.
fn await_script(script: &Path) -> Result<Outcome, String> {
    let had_operators = last().as_ref().is_some_and(|request| request.bits & what::OPERATORS != 0);
    stop();
    treering_runtime::clear_profiler();
    let path = std::path::absolute(script).map_err(|error| format!("{}: {error}", script.display()))?;
    hooks::wait_for_script(path, begin);
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
    treering_runtime::snapshot().map(|snapshot| Tables::of(&snapshot, recorded)).unwrap_or_default()
}

/// Stops, and prints what was recorded.
fn print(listing: &Listing) -> Result<Outcome, String> {
    let off = off();
    Ok(Outcome { value: Value::Text(print::tables(&tables(), listing)), ..off })
}

fn save(file: &Path) -> Result<Outcome, String> {
    treering_runtime::save(file).map_err(|error| format!("cannot write {}: {error}", file.display()))?;
    Ok(Value::Nothing.into())
}

/// Writes the profile when Octave ends, or removes it where nobody has asked for a file.
extern "C" fn at_exit() {
    hooks::stop();
    let is_wanted = last().as_ref().is_some_and(|request| request.output.is_some());
    if is_wanted {
        // A problem was written to standard error.
        let _ = treering_runtime::finish();
    } else {
        treering_runtime::discard();
    }
}
