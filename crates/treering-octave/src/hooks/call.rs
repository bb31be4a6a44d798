//! Calls of user functions, scripts, builtins and compiled files.

use core::ffi::c_int;
use core::sync::atomic::Ordering::Relaxed;

use treering_runtime::Call;

use super::interpreter::{BUILTIN, FILE_INDEX, MEX_FUNCTION, USER_FUNCTION, USER_SCRIPT, interpreter};
use super::object::{describe, read, size_of_arguments};
use super::statement::{Caller, leave_statement};
use super::{Pointer, awaited, go_on, pause, recorded, what};
use crate::naming::{Known, Sort};

type Execute = unsafe extern "C-unwind" fn(Pointer, Pointer, Pointer, c_int, Pointer) -> Pointer;

/// Leaves an activation when the call returns or an error passes.
struct Leave {
    call: Option<Call>,
    /// With lines: the caller's statement, when the call began, and whether the caller is hidden.
    caller: Option<Caller>,
}

impl Drop for Leave {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(call) = self.call.take() {
            call.leave();
        }
        if let Some(caller) = self.caller.take() {
            // SAFETY: the statement's frame is further out on this stack.
            unsafe { caller.go_on() };
        }
    }
}

/// Restores what was recorded when a command of ours is over.
struct Unpause;

impl Drop for Unpause {
    fn drop(&mut self) {
        go_on();
    }
}

#[inline(always)]
unsafe fn run(
    object: Pointer,
    sort: Sort,
    arguments: Pointer,
    original: impl FnOnce() -> Pointer,
) -> Pointer {
    let mut bits = recorded();
    if bits & what::CALLS == 0 {
        // SAFETY: as below.
        if !awaited::awaits() || !unsafe { is_awaited(object, sort) } {
            return original();
        }
        bits = recorded();
    }
    // SAFETY: the hook was given a function's object, and runs in the interpreter's thread.
    let known = unsafe {
        match interpreter().objects.get(object as usize) {
            Some(known) => known,
            None => describe(object, sort),
        }
    };
    match known {
        Known::Function(function) => {
            let mut leave = Leave { call: None, caller: None };
            if bits & what::LINES != 0 {
                // SAFETY: as above.
                leave.caller = Some(unsafe { leave_statement(false, treering_runtime::ticks()) });
            }
            let call = function.enter();
            if bits & what::SIZES != 0 {
                // SAFETY: the hook was given the list of arguments.
                call.argument_size(unsafe { size_of_arguments(arguments) });
            }
            leave.call = Some(call);
            original()
        }
        Known::Ignored if bits & what::LINES != 0 => {
            // SAFETY: as above.
            let _hidden = unsafe { hide() };
            original()
        }
        Known::Ignored => original(),
        Known::Own => {
            pause();
            let _unpause = Unpause;
            original()
        }
    }
}

/// Whether the object is that of the file that recording begins with; then it has begun. The file
/// may define a function, which Octave then runs.
#[cold]
#[inline(never)]
unsafe fn is_awaited(object: Pointer, sort: Sort) -> bool {
    let has_file = matches!(sort, Sort::Script | Sort::User);
    // SAFETY: by the caller, a function's object.
    has_file && awaited::has_come(&unsafe { read(object, FILE_INDEX.load(Relaxed)) })
}

/// Keeps the lines of a function that is not recorded out. Its time is its caller's.
unsafe fn hide() -> Leave {
    // SAFETY: as in `leave_statement`.
    Leave { call: None, caller: Some(unsafe { leave_statement(true, 0) }) }
}

macro_rules! execution {
    ($($hook:ident, $original:ident, $sort:expr, $of:ident;)*) => { $(
        pub(super) unsafe extern "C-unwind" fn $hook(to: Pointer, first: Pointer, second: Pointer, results: c_int, arguments: Pointer) -> Pointer {
            // SAFETY: the address is that of a function of this type, as its symbol says.
            let original: Execute = unsafe { core::mem::transmute($original.load(Relaxed)) };
            // SAFETY: the arguments are passed on as they came; which one is the function follows
            // from the symbol.
            unsafe { run(execution!($of first second), $sort, arguments, || original(to, first, second, results, arguments)) }
        }
    )* };
    (first $first:ident $second:ident) => { $first };
    (second $first:ident $second:ident) => { $second };
}

execution! {
    user_function, USER_FUNCTION, Sort::User, second;
    user_script, USER_SCRIPT, Sort::Script, second;
    builtin, BUILTIN, Sort::Builtin, first;
    mex_function, MEX_FUNCTION, Sort::Extension, first;
}
