//! The predicates of this library, and SWI-Prolog's foreign interface.
//!
//! The functions are described in the manual's chapter "Foreign Language Interface". They are looked
//! up in the process that loads this library.

use core::ffi::{c_char, c_int, c_void};

use crate::{engine, kernel, recording};

/// A reference to a term.
type Term = usize;
/// The value that a predicate returns: success, failure, or the context to call it with again.
type Outcome = usize;
/// Why a predicate is called.
type Control = *mut c_void;

unsafe extern "C" {
    fn PL_register_foreign(
        name: *const c_char,
        arity: c_int,
        function: *const c_void,
        flags: c_int,
        ...
    ) -> c_int;
    fn PL_get_int64(term: Term, to: *mut i64) -> c_int;
    fn PL_unify_int64(term: Term, value: i64) -> c_int;
    fn PL_get_nchars(term: Term, length: *mut usize, text: *mut *mut c_char, flags: u32) -> c_int;
    fn PL_unify_chars(term: Term, flags: c_int, length: usize, text: *const c_char) -> c_int;
    fn PL_foreign_control(control: Control) -> c_int;
    fn PL_foreign_context(control: Control) -> isize;
    fn PL_thread_self() -> c_int;
    fn PL_thread_at_exit(function: extern "C" fn(*mut c_void), closure: *mut c_void, global: c_int) -> c_int;
    fn _PL_retry(context: isize) -> Outcome;
}

const TRUE: Outcome = 1;
const FALSE: Outcome = 0;

/// Values of `PL_foreign_control`.
const FIRST_CALL: c_int = 0;
const REDO: c_int = 2;

/// Flags of `PL_register_foreign`.
const NONDETERMINISTIC: c_int = 4;
const VARARGS: c_int = 8;

/// Of texts: an atom, string or number, encoded in UTF-8; and that a string is to be made.
const CVT_ATOMIC: u32 = 0x33;
const REP_UTF8: u32 = 0x0010_0000;
const PL_STRING: c_int = 6;

/// Whether one of the functions that return `int` here, and C's `bool` in later versions, says yes.
fn holds(answer: c_int) -> bool {
    answer & 0xFF != 0
}

fn outcome(holds: bool) -> Outcome {
    if holds { TRUE } else { FALSE }
}

/// The whole number that a term is.
fn integer(term: Term) -> Option<i64> {
    let mut number = 0;
    // SAFETY: Prolog has given the term, and there is room for the number.
    holds(unsafe { PL_get_int64(term, &raw mut number) }).then_some(number)
}

/// The text that a term is.
fn text(term: Term) -> Option<String> {
    let (mut length, mut start) = (0, core::ptr::null_mut());
    // SAFETY: Prolog has given the term; the text stays until the next one is asked for.
    unsafe {
        let found = holds(PL_get_nchars(term, &raw mut length, &raw mut start, CVT_ATOMIC | REP_UTF8));
        let bytes = found.then(|| core::slice::from_raw_parts(start.cast::<u8>(), length));
        bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }
}

fn unify_text(term: Term, text: &str) -> bool {
    // SAFETY: Prolog has given the term, and copies the text.
    holds(unsafe { PL_unify_chars(term, PL_STRING | REP_UTF8 as c_int, text.len(), text.as_ptr().cast()) })
}

fn unify_integer(term: Term, number: i64) -> bool {
    // SAFETY: Prolog has given the term.
    holds(unsafe { PL_unify_int64(term, number) })
}

/// The engine that calls.
fn this_engine() -> c_int {
    // SAFETY: always allowed.
    unsafe { PL_thread_self() }
}

/// The context that a nondeterministic predicate is called with again.
fn retry(number: i64) -> Outcome {
    // SAFETY: the number fits: it has less than 62 bits.
    unsafe { _PL_retry(number as isize) }
}

/// Why a predicate is called, and the number that it has asked to be called again with.
fn reason(control: Control) -> (c_int, i64) {
    // SAFETY: Prolog has given the control.
    unsafe { (PL_foreign_control(control), PL_foreign_context(control) as i64) }
}

/// `'$tr_call'(+Predicate, -Activation)`: the call port; its redo is the fail port. It is pruned when
/// the activation has ended otherwise.
extern "C" fn call(terms: Term, _arity: c_int, control: Control) -> Outcome {
    let engine = this_engine();
    match reason(control) {
        (FIRST_CALL, _) => {
            let function = integer(terms).and_then(|number| usize::try_from(number).ok());
            let Some(number) = function.and_then(|function| engine::call(engine, function)) else {
                return outcome(unify_integer(terms + 1, -1));
            };
            if !unify_integer(terms + 1, number) {
                engine::pruned(engine, number);
                return FALSE;
            }
            retry(number)
        }
        (REDO, number) => {
            engine::fail(engine, number);
            FALSE
        }
        (_, number) => {
            engine::pruned(engine, number);
            TRUE
        }
    }
}

/// `'$tr_exit'(+Predicate, +Activation)`: it exits and has left no choice.
extern "C" fn exit(terms: Term, _arity: c_int, _control: Control) -> Outcome {
    if let (Some(function), Some(number)) = (integer(terms), integer(terms + 1)) {
        engine::exit(this_engine(), function as usize, number, true);
    }
    TRUE
}

/// `'$tr_exit_open'(+Predicate, +Activation)`: it exits and has left a choice; the redo of this is the
/// redo port.
extern "C" fn exit_open(terms: Term, _arity: c_int, control: Control) -> Outcome {
    match reason(control) {
        (FIRST_CALL, _) => {
            let (Some(function), Some(number)) = (integer(terms), integer(terms + 1)) else { return TRUE };
            engine::exit(this_engine(), function as usize, number, false).map_or(TRUE, retry)
        }
        (REDO, number) => {
            engine::redo(this_engine(), number);
            FALSE
        }
        (_, number) => {
            engine::exit_pruned(this_engine(), number);
            TRUE
        }
    }
}

/// `'$tr_begin'(+Output, +Recursion, +Clock, -Problem)`: begins a recording; the problem is empty if
/// there is none.
extern "C" fn begin(terms: Term, _arity: c_int, _control: Control) -> Outcome {
    let words = (text(terms), text(terms + 1), text(terms + 2));
    let (Some(output), Some(recursion), Some(clock)) = words else { return FALSE };
    let problem = recording::begin(&output, &recursion, &clock).err().unwrap_or_default();
    outcome(unify_text(terms + 3, &problem))
}

/// `'$tr_predicates'(+Text)`: the predicates that will be wrapped.
extern "C" fn predicates(terms: Term, _arity: c_int, _control: Control) -> Outcome {
    let Some(lines) = text(terms) else { return FALSE };
    recording::set_predicates(&lines);
    TRUE
}

/// `'$tr_record'(+Boolean)`: records from now on, or not.
extern "C" fn record(terms: Term, _arity: c_int, _control: Control) -> Outcome {
    match text(terms).as_deref() {
        Some("true") => recording::resume(),
        _ => recording::pause(),
    }
    TRUE
}

/// `'$tr_facts'(-Text)`: the facts about the recording.
extern "C" fn facts(terms: Term, _arity: c_int, _control: Control) -> Outcome {
    outcome(unify_text(terms, &recording::facts()))
}

/// `'$tr_end'(+Writes)`: ends the recording, and writes its file if it is to; fails if that failed.
extern "C" fn end(terms: Term, _arity: c_int, _control: Control) -> Outcome {
    outcome(recording::end(text(terms).as_deref() == Some("true")))
}

/// `'$tr_live'(-Count)`: how many activations have not ended.
extern "C" fn live(terms: Term, _arity: c_int, _control: Control) -> Outcome {
    outcome(unify_integer(terms, recording::live() as i64))
}

/// `'$tr_mark'(+Name)`: marks the moment, in this recording and for a recorder that has started the process.
extern "C" fn mark(terms: Term, _arity: c_int, _control: Control) -> Outcome {
    let Some(name) = text(terms) else { return FALSE };
    treering_runtime::mark(&name);
    TRUE
}

/// `'$tr_note'(+Text)`: a sentence for those who read the profile.
extern "C" fn note(terms: Term, _arity: c_int, _control: Control) -> Outcome {
    let Some(sentence) = text(terms) else { return FALSE };
    treering_runtime::note(&sentence);
    TRUE
}

/// `'$tr_ticks'(-Ticks)`: the clock of the recording.
extern "C" fn ticks(terms: Term, _arity: c_int, _control: Control) -> Outcome {
    outcome(unify_integer(terms, treering_runtime::ticks() as i64))
}

/// `'$tr_call_cost'(+Ticks)`: the cost of recording an activation.
extern "C" fn call_cost(terms: Term, _arity: c_int, _control: Control) -> Outcome {
    treering_runtime::set_call_cost(integer(terms).unwrap_or(0) as f64);
    TRUE
}

/// `'$tr_kernel_problem'(-Problem)`: why the kernel cannot be hooked; empty if it can.
extern "C" fn kernel_problem(terms: Term, _arity: c_int, _control: Control) -> Outcome {
    outcome(unify_text(terms, &kernel::problem().unwrap_or_default()))
}

/// `'$tr_kernel_begin'(-Problem)`: hooks the kernel; the problem is empty if there is none.
extern "C" fn kernel_begin(terms: Term, _arity: c_int, _control: Control) -> Outcome {
    outcome(unify_text(terms, &kernel::begin().err().unwrap_or_default()))
}

/// `'$tr_kernel_end'`: takes the hooks away.
extern "C" fn kernel_end(_terms: Term, _arity: c_int, _control: Control) -> Outcome {
    kernel::end();
    TRUE
}

/// `'$tr_kernel_lines'(-Text)`: the tree.
extern "C" fn kernel_lines(terms: Term, _arity: c_int, _control: Control) -> Outcome {
    outcome(unify_text(terms, &kernel::lines()))
}

/// `'$tr_kernel_predicate'(+Number, -Predicate)`: the predicate of a number in the tree.
extern "C" fn kernel_predicate(terms: Term, _arity: c_int, _control: Control) -> Outcome {
    let number = integer(terms).and_then(|number| usize::try_from(number).ok());
    outcome(number.is_some_and(|number| kernel::unify_predicate(number, terms + 1)))
}

/// A thread of Prolog ends.
extern "C" fn thread_ends(_: *mut c_void) {
    engine::thread_ends(this_engine());
}

type Predicate = extern "C" fn(Term, c_int, Control) -> Outcome;

const PREDICATES: [(&core::ffi::CStr, c_int, Predicate, c_int); 18] = [
    (c"$tr_call", 2, call, NONDETERMINISTIC),
    (c"$tr_exit", 2, exit, 0),
    (c"$tr_exit_open", 2, exit_open, NONDETERMINISTIC),
    (c"$tr_begin", 4, begin, 0),
    (c"$tr_predicates", 1, predicates, 0),
    (c"$tr_record", 1, record, 0),
    (c"$tr_facts", 1, facts, 0),
    (c"$tr_end", 1, end, 0),
    (c"$tr_live", 1, live, 0),
    (c"$tr_mark", 1, mark, 0),
    (c"$tr_note", 1, note, 0),
    (c"$tr_ticks", 1, ticks, 0),
    (c"$tr_call_cost", 1, call_cost, 0),
    (c"$tr_kernel_problem", 1, kernel_problem, 0),
    (c"$tr_kernel_begin", 1, kernel_begin, 0),
    (c"$tr_kernel_end", 0, kernel_end, 0),
    (c"$tr_kernel_lines", 1, kernel_lines, 0),
    (c"$tr_kernel_predicate", 2, kernel_predicate, 0),
];

/// The function that SWI-Prolog calls when it has loaded this library.
#[unsafe(no_mangle)]
#[expect(unreachable_pub, reason = "exported")]
pub extern "C" fn install() {
    // SAFETY: the function stays, as SWI-Prolog does not unload libraries whose predicates are in use.
    unsafe { PL_thread_at_exit(thread_ends, core::ptr::null_mut(), 1) };
    for (name, arity, predicate, flags) in PREDICATES {
        // SAFETY: the name is copied; the function takes what the flags say.
        unsafe {
            PL_register_foreign(name.as_ptr(), arity, predicate as *const c_void, flags | VARARGS);
        }
    }
}
