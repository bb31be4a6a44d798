//! Recordings that begin later: with a script, with the code of the option `--eval`, or with a builtin
//! function.

use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::panic::catch_unwind;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// The code that recording begins with.
pub(crate) enum Start {
    /// The script of that path.
    Script(PathBuf),
    /// The code of the option `--eval`.
    EvalOption,
    /// A builtin function of that name, which is not recorded itself.
    Builtin(&'static [u8]),
}

/// The code that recording begins with, and the function that begins it.
type Deferred = (Start, fn());

/// The recording that is to begin, until it does.
static DEFERRED: Mutex<Option<Deferred>> = Mutex::new(None);
/// Whether hooks have to look at calls while nothing is recorded.
static LOOKS_AT_CALLS: AtomicBool = AtomicBool::new(false);
/// Whether these are the calls of builtin functions.
static IS_FOR_BUILTIN: AtomicBool = AtomicBool::new(false);

/// Has `begin` called when Octave runs the code of `start`.
pub(crate) fn wait_for(start: Start, begin: fn()) {
    LOOKS_AT_CALLS.store(!matches!(start, Start::EvalOption), Relaxed);
    IS_FOR_BUILTIN.store(matches!(start, Start::Builtin(_)), Relaxed);
    *DEFERRED.lock().unwrap_or_else(PoisonError::into_inner) = Some((start, begin));
}

/// Has calls looked at again, when recording is over.
pub(super) fn wait_for_late_calls() {
    LOOKS_AT_CALLS.store(true, Relaxed);
}

/// Whether calls have to be looked at.
#[inline(always)]
pub(super) fn looks_at_calls() -> bool {
    LOOKS_AT_CALLS.load(Relaxed)
}

/// Whether the script of that file is the one that recording begins with; then it has begun.
#[cold]
pub(super) fn begins_with_script(file: &[u8]) -> bool {
    let begun = catch_unwind(|| {
        let file = PathBuf::from(OsStr::from_bytes(file)).canonicalize().ok();
        let is_it = |start: &Start| matches!(start, Start::Script(path) if path.canonicalize().ok() == file);
        begin_if(is_it)
    });
    matches!(begun, Ok(true))
}

/// Whether recording begins with a builtin function.
pub(super) fn is_for_builtin() -> bool {
    IS_FOR_BUILTIN.load(Relaxed)
}

/// Whether recording begins with the builtin function of that name; then it has begun.
pub(super) fn begins_with_builtin(name: &[u8]) -> bool {
    let is_it = |start: &Start| matches!(start, Start::Builtin(builtin) if *builtin == name);
    matches!(catch_unwind(|| begin_if(is_it)), Ok(true))
}

/// Whether recording begins with the code of the option `--eval`; then it has begun.
pub(super) fn begins_with_eval_option() -> bool {
    matches!(catch_unwind(|| begin_if(|start| matches!(start, Start::EvalOption))), Ok(true))
}

fn begin_if(is_it: impl Fn(&Start) -> bool) -> bool {
    let mut deferred = DEFERRED.lock().unwrap_or_else(PoisonError::into_inner);
    let Some((_, begin)) = deferred.take_if(|(start, _)| is_it(start)) else { return false };
    LOOKS_AT_CALLS.store(false, Relaxed);
    IS_FOR_BUILTIN.store(false, Relaxed);
    begin();
    true
}
