//! Calls of user functions, scripts, builtins and compiled files.

use core::ffi::c_int;
use core::mem::ManuallyDrop;
use core::sync::atomic::Ordering::Relaxed;

use treering_runtime::{Call, Function};

use super::ending::{self, LateCall};
use super::interpreter::{CURRENT_LINE, FILE_INDEX, NAME_INDEX, with_interpreter};
use super::object::{describe, read, size_of_arguments};
use super::recorded::HOT;
use super::statement::{Caller, close, from_line, leave_statement};
use super::{Pointer, deferred_start, go_on, pause, recorded, wanted, what};
use crate::naming::{Known, Sort};
use crate::stopwatch;

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
    /// Runs the function that the hook stands in for.
    #[inline(always)]
    fn run(self) -> Pointer {
        let Self { original, to, first, second, results, arguments } = self;
        // SAFETY: the original is a function of this type, and Octave has called it with these.
        unsafe { original(to, first, second, results, arguments) }
    }
}

/// Runs a function of Octave and records its call.
///
/// Between two events the interpreter has executed some ten thousand instructions, so that most of the
/// memory that this touches is in no cache. The common case is therefore kept short and in a row: plain
/// calls of functions that were called lately.
#[inline(always)]
unsafe fn run(object: Pointer, sort: Sort, request: Request) -> Pointer {
    let bits = recorded();
    if bits & (what::CALLS | what::LINES | what::SIZES) == what::CALLS {
        let known = with_interpreter(|interpreter| interpreter.objects.near(object as usize));
        if let Some(Known::Function(function)) = known {
            let call = OnError { call: function.enter().into_raw(), evaluator: evaluator(sort, request) };
            let results = request.run();
            Call::from_raw(ManuallyDrop::new(call).call).leave();
            return results;
        }
    } else if bits & what::CALLS == 0 && !deferred_start::looks_at_calls() {
        return request.run();
    }
    // SAFETY: by this function's own requirement.
    unsafe { run_otherwise(object, sort, request) }
}

/// A call, left when an error passes. One that returns is left by [`run`], which this must not make
/// longer.
struct OnError {
    call: u64,
    evaluator: Pointer,
}

impl Drop for OnError {
    #[cold]
    #[inline(never)]
    fn drop(&mut self) {
        // SAFETY: the call is one of this thread's, and the evaluator is Octave's.
        unsafe { end_by_error(Call::from_raw(self.call), self.evaluator) };
    }
}

/// The evaluator that runs a function in Octave's language; null for others.
#[inline(always)]
fn evaluator(sort: Sort, request: Request) -> Pointer {
    if matches!(sort, Sort::User | Sort::Script) { request.first } else { core::ptr::null_mut() }
}

/// Ends a call that an error passes through. Where no statement of the function was reached Octave
/// has refused the call: for too many arguments or results, too deep a recursion, an error in the
/// default value of an argument. That is no call, as for Octave's own profiler.
unsafe fn end_by_error(call: Call, evaluator: Pointer) {
    let current_line = CURRENT_LINE.load(Relaxed);
    if !evaluator.is_null() && current_line != 0 {
        // SAFETY: the address is that of a function of this type. The frame of the function that is
        // left is still the current one.
        let line = unsafe {
            let current_line: unsafe extern "C-unwind" fn(Pointer) -> c_int =
                core::mem::transmute(current_line);
            current_line(evaluator)
        };
        if line < 0 {
            return call.withdraw();
        }
    }
    call.leave();
}

/// Leaves an activation when the call returns or an error passes.
struct Leave {
    call: Option<Call>,
    /// Of a function in Octave's language that has not returned; otherwise null.
    evaluator: Pointer,
    /// With lines: the caller's statement, when the call began, and whether the caller is hidden.
    caller: Option<Caller>,
    /// With lines: the function.
    function: Option<Function>,
}

impl Drop for Leave {
    fn drop(&mut self) {
        if let Some(call) = self.call.take() {
            // SAFETY: the evaluator is null or that of the interpreter, which lives; the call is of this thread.
            unsafe { end_by_error(call, self.evaluator) };
        }
        if let Some(function) = self.function.take() {
            close(function);
        }
        if let Some(caller) = self.caller.take() {
            // SAFETY: the statement's frame is further out on this stack.
            unsafe { caller.go_on() };
        }
    }
}

/// Goes on recording when a command of ours is over.
struct Unpause;

impl Drop for Unpause {
    fn drop(&mut self) {
        go_on();
        if wanted() != 0 {
            stopwatch::recording().start(treering_runtime::ticks());
        }
    }
}

/// Runs a function in all cases but the common ones of [`run`].
#[inline(never)]
unsafe fn run_otherwise(object: Pointer, sort: Sort, request: Request) -> Pointer {
    let mut bits = recorded();
    let mut _stop = None;
    if bits & what::CALLS == 0 {
        // SAFETY: the hook was given a function's object.
        match unsafe { watched_call(object, sort) } {
            WatchedCall::Nothing => return request.run(),
            WatchedCall::Script => {}
            WatchedCall::LateCall(late) => _stop = Some(late),
        }
        bits = recorded();
    }
    let known = with_interpreter(|interpreter| interpreter.objects.get(object as usize));
    // SAFETY: the hook was given a function's object.
    let known = known.unwrap_or_else(|| unsafe { describe(object, sort) });
    match known {
        Known::Function(function) => {
            let mut leave =
                Leave { call: None, evaluator: evaluator(sort, request), caller: None, function: None };
            let mut called = function;
            if bits & what::LINES != 0 {
                called = from_line(function);
                leave.function = Some(function);
                leave.caller = Some(leave_statement(false, treering_runtime::ticks()));
            }
            let call = called.enter();
            if bits & what::SIZES != 0 {
                // SAFETY: the hook was given the list of arguments.
                call.argument_size(unsafe { size_of_arguments(request.arguments) });
            }
            leave.call = Some(call);
            let results = request.run();
            leave.evaluator = core::ptr::null_mut();
            results
        }
        Known::Ignored if bits & what::LINES != 0 => {
            let _hidden = hide();
            request.run()
        }
        Known::Ignored => request.run(),
        Known::Own => {
            pause();
            // The time of the command is not the top level's either.
            stopwatch::recording().stop(treering_runtime::ticks());
            let _unpause = Unpause;
            request.run()
        }
    }
}

/// The part that a call plays in the beginning or the end of a recording.
enum WatchedCall {
    /// None: hooks pass the call on.
    Nothing,
    /// It begins the recording, which runs now: the call of its script.
    Script,
    /// It is recorded by itself, as long as this lives: a function of the user's while Octave ends.
    LateCall(LateCall),
}

/// Decides by the file of an object. A script's file may define a function, which Octave then runs.
#[cold]
#[inline(never)]
unsafe fn watched_call(object: Pointer, sort: Sort) -> WatchedCall {
    if !deferred_start::looks_at_calls() {
        return WatchedCall::Nothing;
    }
    if matches!(sort, Sort::Builtin) {
        if deferred_start::is_for_builtin() {
            // SAFETY: by the caller, a function's object. The function itself mostly waits.
            let name = unsafe { read(object, NAME_INDEX.load(Relaxed)) };
            deferred_start::begins_with_builtin(&name);
        }
        return WatchedCall::Nothing;
    }
    // SAFETY: by the caller, a function's object.
    let file = unsafe { read(object, FILE_INDEX.load(Relaxed)) };
    if sort == Sort::User && ending::is_users(&file) {
        return WatchedCall::LateCall(LateCall::begin());
    }
    if deferred_start::begins_with_script(&file) { WatchedCall::Script } else { WatchedCall::Nothing }
}

/// Keeps the lines of a function that is not recorded out. Its time is its caller's.
fn hide() -> Leave {
    let caller = Some(leave_statement(true, 0));
    Leave { call: None, evaluator: core::ptr::null_mut(), caller, function: None }
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
