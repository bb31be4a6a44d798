//! What recording begins with: a script, or the code of the option `--eval`.

use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::panic::catch_unwind;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// What is awaited.
pub(crate) enum Start {
    /// The script of that path.
    Script(PathBuf),
    /// The code of the option `--eval`.
    EvalOption,
    /// A builtin function of that name, which is not recorded itself.
    Builtin(&'static [u8]),
}

/// What recording begins with, and what is done then.
type Awaited = (Start, fn());

/// What recording begins with, while it is awaited, and what is done then.
static AWAITED: Mutex<Option<Awaited>> = Mutex::new(None);
/// Whether calls have to be looked at while nothing is recorded.
static AWAITS: AtomicBool = AtomicBool::new(false);
/// Whether those are the calls of builtin functions.
static IS_BY_NAME: AtomicBool = AtomicBool::new(false);

/// Has `begin` called when Octave runs what is awaited.
pub(crate) fn wait_for(start: Start, begin: fn()) {
    AWAITS.store(!matches!(start, Start::EvalOption), Relaxed);
    IS_BY_NAME.store(matches!(start, Start::Builtin(_)), Relaxed);
    *AWAITED.lock().unwrap_or_else(PoisonError::into_inner) = Some((start, begin));
}

/// Has calls looked at again, when recording is over.
pub(super) fn wait_for_late_calls() {
    AWAITS.store(true, Relaxed);
}

/// Whether calls have to be looked at.
#[inline(always)]
pub(super) fn awaits() -> bool {
    AWAITS.load(Relaxed)
}

/// Whether the script of that file is the one that recording begins with; then it has begun.
#[cold]
pub(super) fn has_come(file: &[u8]) -> bool {
    let begun = catch_unwind(|| {
        let file = PathBuf::from(OsStr::from_bytes(file)).canonicalize().ok();
        let is_it = |start: &Start| matches!(start, Start::Script(path) if path.canonicalize().ok() == file);
        begin_if(is_it)
    });
    matches!(begun, Ok(true))
}

/// Whether a builtin function is awaited.
pub(super) fn is_by_name() -> bool {
    IS_BY_NAME.load(Relaxed)
}

/// Whether recording begins with the builtin function of that name; then it has begun.
pub(super) fn has_come_by_name(name: &[u8]) -> bool {
    let is_it = |start: &Start| matches!(start, Start::Builtin(awaited) if *awaited == name);
    matches!(catch_unwind(|| begin_if(is_it)), Ok(true))
}

/// Whether recording begins with the code of the option `--eval`; then it has begun.
pub(super) fn has_come_by_option() -> bool {
    matches!(catch_unwind(|| begin_if(|start| matches!(start, Start::EvalOption))), Ok(true))
}

fn begin_if(is_it: impl Fn(&Start) -> bool) -> bool {
    let mut awaited = AWAITED.lock().unwrap_or_else(PoisonError::into_inner);
    let Some((_, begin)) = awaited.take_if(|(start, _)| is_it(start)) else { return false };
    AWAITS.store(false, Relaxed);
    IS_BY_NAME.store(false, Relaxed);
    begin();
    true
}
