//! The recording: one at a time in a process.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use treering_runtime::events::function_kind;
use treering_runtime::{Function, Options, Recursion};
use treering_temporary::Folder;

use crate::{engine, table};

static STATE: Mutex<Option<Recording>> = Mutex::new(None);
static NUMBER: AtomicU32 = AtomicU32::new(0);
static LOST: AtomicU64 = AtomicU64::new(0);

/// The recording that runs.
struct Recording {
    options: Options,
    /// The functions of the wrapped predicates, by the numbers in their wrappers.
    functions: Arc<[Function]>,
    /// Their names.
    names: Vec<String>,
    /// Where the file is, if nobody is to keep it.
    _folder: Option<Folder>,
}

/// Tells the command `treering prolog` which file is written. Prolog's texts cannot hold every name.
fn report_file() {
    use std::os::unix::ffi::OsStrExt as _;
    if let (Some(told), Some(path)) = (std::env::var_os("TREERING_PROLOG_TOLD"), treering_runtime::output()) {
        // The command says that it was not told.
        let _ = std::fs::write(told, path.as_os_str().as_bytes());
    }
}

fn temporary() -> Result<Folder, String> {
    Folder::create("prolog").map_err(|error| format!("cannot make a folder: {error}"))
}

fn state() -> MutexGuard<'static, Option<Recording>> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The number of this recording, from 1.
pub(crate) fn number() -> u32 {
    NUMBER.load(Relaxed)
}

/// The predicates that are wrapped.
pub(crate) fn functions() -> Arc<[Function]> {
    let functions = state().as_ref().map(|recording| recording.functions.clone());
    functions.unwrap_or_else(|| Vec::new().into())
}

/// An event could not be recorded.
pub(crate) fn lose() {
    LOST.fetch_add(1, Relaxed);
}

/// Begins a recording, which waits for its predicates and for [`resume`]. Without an output it is in a private folder.
///
/// # Errors
/// A sentence for the user.
pub(crate) fn begin(output: &str, recursion: &str, clock: &str) -> Result<(), String> {
    let mut state = state();
    if state.is_some() {
        return Err("a goal is being profiled already".to_owned());
    }
    let recursion = match recursion {
        "direct" => Recursion::Direct,
        "full" => Recursion::Full,
        "swi-classic" => Recursion::SwiClassic,
        other => return Err(format!("unknown recursion rule {other}")),
    };
    let folder = if output.is_empty() { Some(temporary()?) } else { None };
    let of_command = std::env::var_os("TREERING_PROLOG_OUTPUT").filter(|_| folder.is_none());
    let path = match (&folder, &of_command) {
        (Some(folder), _) => folder.path().join("profile.trg"),
        (None, Some(path)) => path.into(),
        (None, None) => output.into(),
    };
    let command = std::env::var_os("TREERING_PROLOG_COMMAND").and_then(|file| std::fs::read(file).ok());
    let options = Options {
        recursion,
        output: Some(path),
        cpu_time: clock == "cpu",
        keeps_time: true,
        counts_exits: true,
        command,
        ..Options::default()
    };
    // The environment must not switch anything on by itself.
    treering_runtime::clear_profiler();
    treering_runtime::discard();
    treering_runtime::set_profiler(options.clone());
    treering_runtime::clear_profiler();
    if of_command.is_some() {
        report_file();
    }
    LOST.store(0, Relaxed);
    *state = Some(Recording { options, functions: Vec::new().into(), names: Vec::new(), _folder: folder });
    NUMBER.fetch_add(1, Relaxed);
    Ok(())
}

/// Gives the predicates: lines of kind, line, name and file, with tabulators between them.
pub(crate) fn set_predicates(text: &str) {
    let function = |line: &str| {
        let mut parts = line.splitn(4, '\t');
        let mut next = || parts.next().unwrap_or_default();
        let kind = match next() {
            "system" => function_kind::BUILTIN,
            "goal" => function_kind::TASK,
            "foreign" => function_kind::EXTENSION,
            _ => function_kind::INTERPRETED,
        };
        let line = next().parse().unwrap_or(0);
        let name = next();
        Function::of_kind(kind, name.as_bytes(), next().as_bytes(), line)
    };
    // Filters of the environment hold; functions that they leave out have no effect.
    if let Some(recording) = &mut *state() {
        recording.functions = text.lines().map(function).collect();
        let name = |line: &str| line.split('\t').nth(2).unwrap_or_default().to_owned();
        recording.names = text.lines().map(name).collect();
    }
    NUMBER.fetch_add(1, Relaxed);
}

/// Records from now on.
pub(crate) fn resume() {
    if let Some(recording) = &*state() {
        treering_runtime::set_profiler(recording.options.clone());
    }
}

/// Records nothing for now.
pub(crate) fn pause() {
    treering_runtime::clear_profiler();
}

/// The facts about a recording, with its table: lines of name, value.
pub(crate) fn facts() -> String {
    let (deepest, commonest) = engine::deepest(number());
    let named = state().as_ref().and_then(|recording| recording.names.get(commonest).cloned());
    let named = named.unwrap_or_default();
    let lost = LOST.load(Relaxed);
    let path = treering_runtime::output().map(|path| path.display().to_string()).unwrap_or_default();
    let mut text = format!("deepest\t{deepest}\t{named}\nlost\t{lost}\nfile\t{path}\n");
    text += &table::lines();
    text
}

/// Ends the recording and writes its file; false when that failed.
pub(crate) fn end(writes: bool) -> bool {
    let mut state = state();
    // Its folder goes last.
    let Some(_ended) = state.take() else { return true };
    treering_runtime::clear_profiler();
    if writes {
        let lost = LOST.load(Relaxed);
        if lost > 0 {
            treering_runtime::note(&format!("{lost} events could not be recorded; counts may be too low"));
        }
        return treering_runtime::finish();
    }
    treering_runtime::discard();
    true
}

/// How many activations of wrapped predicates have not ended.
pub(crate) fn live() -> usize {
    engine::live()
}
