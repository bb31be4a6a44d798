//! Calls of user functions, scripts, builtins and compiled files.

use core::ffi::c_int;
use core::mem::ManuallyDrop;
use core::sync::atomic::Ordering::Relaxed;

use treering_runtime::Call;

use super::interpreter::{FILE_INDEX, interpreter};
use super::object::{describe, read, size_of_arguments};
use super::recorded::HOT;
use super::statement::{Caller, leave_statement};
use super::{Pointer, awaited, go_on, pause, recorded, what};
use crate::naming::{Known, Sort};

type Execute = unsafe extern "C-unwind" fn(Pointer, Pointer, Pointer, c_int, Pointer) -> Pointer;

/// A call that a hook was given: the function that the hook stands in for, and its arguments as
/// they came.
#[derive(Clone, Copy)]
struct Request {
    original: Execute,
    to: Pointer,
    first: Pointer,
    second: Pointer,
    results: c_int,
    arguments: Pointer,
}

impl Request {
    /// Runs what the hook stands in for.
    #[inline(always)]
    fn run(self) -> Pointer {
        let Self { original, to, first, second, results, arguments } = self;
        // SAFETY: the original is a function of this type, and Octave has called it with these.
        unsafe { original(to, first, second, results, arguments) }
    }
}

/// Runs a function of Octave and records its call.
///
/// Between two events the interpreter has executed some ten thousand instructions, so that most of
/// what this touches has to come from memory again. What is common is therefore kept short and in
/// a row: plain calls of functions that were called lately.
#[inline(always)]
unsafe fn run(object: Pointer, sort: Sort, request: Request) -> Pointer {
    let bits = recorded();
    if bits & (what::CALLS | what::LINES | what::SIZES) == what::CALLS {
        // SAFETY: the hook was given a function's object, and runs in the interpreter's thread.
        if let Some(Known::Function(function)) = unsafe { interpreter() }.objects.near(object as usize) {
            let call = OnError(function.enter().into_raw());
            let results = request.run();
            Call::from_raw(ManuallyDrop::new(call).0).leave();
            return results;
        }
    } else if bits & what::CALLS == 0 && !awaited::awaits() {
        return request.run();
    }
    // SAFETY: by this function's own requirement.
    unsafe { run_otherwise(object, sort, request) }
}

/// A call, left when an error passes. One that returns is left by [`run`], which this must not make
/// longer.
struct OnError(u64);

impl Drop for OnError {
    #[cold]
    #[inline(never)]
    fn drop(&mut self) {
        Call::from_raw(self.0).leave();
    }
}

/// Leaves an activation when the call returns or an error passes.
struct Leave {
    call: Option<Call>,
    /// With lines: the caller's statement, when the call began, and whether the caller is hidden.
    caller: Option<Caller>,
}

impl Drop for Leave {
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

/// All that is not one of the common cases of [`run`].
#[inline(never)]
unsafe fn run_otherwise(object: Pointer, sort: Sort, request: Request) -> Pointer {
    let mut bits = recorded();
    if bits & what::CALLS == 0 {
        // SAFETY: as below.
        if !awaited::awaits() || !unsafe { is_awaited(object, sort) } {
            return request.run();
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
                call.argument_size(unsafe { size_of_arguments(request.arguments) });
            }
            leave.call = Some(call);
            request.run()
        }
        Known::Ignored if bits & what::LINES != 0 => {
            // SAFETY: as above.
            let _hidden = unsafe { hide() };
            request.run()
        }
        Known::Ignored => request.run(),
        Known::Own => {
            pause();
            let _unpause = Unpause;
            request.run()
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
            let original: Execute = unsafe { core::mem::transmute(HOT.$original.load(Relaxed)) };
            let request = Request { original, to, first, second, results, arguments };
            // SAFETY: which argument is the function follows from the symbol.
            unsafe { run(execution!($of first second), $sort, request) }
        }
    )* };
    (first $first:ident $second:ident) => { $first };
    (second $first:ident $second:ident) => { $second };
}

execution! {
    user_function, user_function, Sort::User, second;
    user_script, user_script, Sort::Script, second;
    builtin, builtin, Sort::Builtin, first;
    mex_function, mex_function, Sort::Extension, first;
}
