//! The end of Octave, and the code of its option `--eval`.
//!
//! When a script is over Octave closes figures and calls what was left for the end. Of this only the
//! functions of the user are part of the profile: those that `atexit` was given, and clean-ups and
//! destructors of objects that still exist. Octave's own work is not.

use core::ffi::c_int;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use treering_runtime::events::function_kind;
use treering_runtime::{Call, Function};

use super::interpreter::{EVAL_OPTION, SHUTDOWN};
use super::recorded::{resume, wanted};
use super::{Pointer, deferred_start};

/// The bits that were recorded when Octave began to end; 0 before that.
static ENDING: AtomicU32 = AtomicU32::new(0);

/// The folder with Octave's own functions.
static OCTAVES: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// Says in which folder Octave's own functions are.
pub(crate) fn set_octaves_folder(folder: &str) {
    *OCTAVES.lock().unwrap_or_else(PoisonError::into_inner) = folder.as_bytes().to_vec();
}

/// Whether Octave ends, and the function of a file is one of the user's.
pub(super) fn is_users(file: &[u8]) -> bool {
    let octaves = OCTAVES.lock().unwrap_or_else(PoisonError::into_inner);
    ENDING.load(Relaxed) != 0 && (octaves.is_empty() || !file.starts_with(&octaves))
}

/// A call of the user's function while Octave ends.
pub(super) struct LateCall;

impl LateCall {
    /// Records until this is dropped.
    pub(super) fn begin() -> Self {
        resume(ENDING.load(Relaxed));
        Self
    }
}

impl Drop for LateCall {
    fn drop(&mut self) {
        resume(0);
    }
}

pub(super) unsafe extern "C-unwind" fn shutdown(interpreter: Pointer) {
    if wanted() != 0 {
        ENDING.store(wanted(), Relaxed);
        resume(0);
        deferred_start::wait_for_late_calls();
    }
    // SAFETY: the address is that of a function of this type, and Octave has called it with this.
    unsafe {
        let original: unsafe extern "C-unwind" fn(Pointer) = core::mem::transmute(SHUTDOWN.load(Relaxed));
        original(interpreter);
    }
}

/// The code of the option, left when it is over or an error passes.
struct Code(Option<Call>);

impl Drop for Code {
    fn drop(&mut self) {
        if let Some(call) = self.0.take() {
            call.leave();
        }
    }
}

pub(super) unsafe extern "C-unwind" fn eval_option(interpreter: Pointer) -> c_int {
    let _code = deferred_start::begins_with_eval_option()
        .then(|| Code(Some(Function::of_kind(function_kind::SCRIPT, b"--eval", b"", 0).enter())));
    // SAFETY: the address is that of the function of this type that the hook replaces; Octave has given its argument.
    unsafe {
        let original: unsafe extern "C-unwind" fn(Pointer) -> c_int =
            core::mem::transmute(EVAL_OPTION.load(Relaxed));
        original(interpreter)
    }
}
