//! The entry that Octave calls, and Octave's C interface.
//!
//! Errors of Octave are C++ exceptions, which must not meet `catch_unwind`; panics of ours must
//! not leave this library. So commands run inside of `catch_unwind`, and everything that may
//! raise an error happens outside, when no Rust value is alive that would have to be dropped.

use core::cell::UnsafeCell;
use core::ffi::{CStr, c_char, c_int, c_void};
use std::ffi::CString;
use std::panic::catch_unwind;

use crate::command::{self, Outcome};
use crate::hooks;
use crate::value::{Structures, Value};

type Array = *mut c_void;

unsafe extern "C-unwind" {
    fn mxGetString(array: Array, text: *mut c_char, length: i64) -> c_int;
    fn mxIsChar(array: Array) -> bool;
    fn mxGetNumberOfElements(array: Array) -> i64;
    fn mxCreateString(text: *const c_char) -> Array;
    fn mxCreateDoubleScalar(number: f64) -> Array;
    fn mxCreateLogicalScalar(value: bool) -> Array;
    fn mxCreateDoubleMatrix(rows: i64, columns: i64, complexity: c_int) -> Array;
    fn mxGetScalar(array: Array) -> f64;
    fn mxGetPr(array: Array) -> *mut f64;
    fn mxCreateStructMatrix(rows: i64, columns: i64, count: c_int, fields: *const *const c_char) -> Array;
    fn mxSetFieldByNumber(array: Array, index: i64, field: c_int, value: Array);
    fn mexCallMATLAB(
        results: c_int,
        to: *mut Array,
        count: c_int,
        arguments: *mut Array,
        name: *const c_char,
    ) -> c_int;
    fn mexErrMsgIdAndTxt(identifier: *const c_char, format: *const c_char, ...) -> !;
    fn mexLock();
}

/// The version of the interface of MEX files that this one was written for. Octave 11 asks for it.
#[unsafe(no_mangle)]
#[expect(unreachable_pub, reason = "exported")]
pub static __octave_mex_soversion__: c_int = 1;

/// An error's text, kept while Octave raises it.
struct Message(UnsafeCell<[u8; 2048]>);

// SAFETY: used only by the interpreter's thread.
unsafe impl Sync for Message {}

static MESSAGE: Message = Message(UnsafeCell::new([0; 2048]));

/// The function that Octave calls for `[...] = __treering__ (COMMAND, ...)`.
#[unsafe(no_mangle)]
#[expect(unreachable_pub, reason = "exported")]
pub unsafe extern "C-unwind" fn mexFunction(
    results: c_int,
    to: *mut Array,
    count: c_int,
    arguments: *mut Array,
) {
    // SAFETY: Octave gives as many arguments as it says, and room for one result at least.
    unsafe {
        if !run(results, to, count, arguments) {
            mexErrMsgIdAndTxt(c"treering:failed".as_ptr(), c"%s".as_ptr(), MESSAGE.0.get().cast::<c_char>());
        }
    }
}

/// Runs a command; false when the message tells why it failed.
unsafe fn run(results: c_int, to: *mut Array, count: c_int, arguments: *mut Array) -> bool {
    // SAFETY: Octave gives as many arguments as it says, and room for one result at least.
    unsafe {
        let words: Option<Vec<String>> = (0..count as usize).map(|at| text_of(*arguments.add(at))).collect();
        let Some(words) = words else { return fail("arguments are texts") };
        let Outcome { value, native, window, keeps, measures } = match catch_unwind(|| command::run(&words)) {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(message)) => return fail(&message),
            Err(_) => return fail("treering has failed; this is a bug in treering"),
        };
        if keeps {
            mexLock();
        }
        if measures {
            treering_runtime::set_call_cost(median(&mut call_costs()));
            hooks::set_octaves_folder(&octaves_folder());
            return run(results, to, count, arguments);
        }
        if let Some(is_on) = native {
            switch_native(is_on);
        } else if let Some(is_on) = window.filter(|_| has_window()) {
            // A window learns only from Octave's own profiler that one is on.
            switch_native(is_on);
            if is_on {
                hooks::silence_native();
            }
        }
        if !matches!(value, Value::Nothing) || results > 0 {
            *to = array(&value);
        }
        true
    }
}

/// Switches Octave's own profiler.
unsafe fn switch_native(is_on: bool) {
    // SAFETY: in the interpreter's thread, with an argument that the function knows.
    unsafe {
        hooks::pause();
        let mut argument = [mxCreateLogicalScalar(is_on)];
        mexCallMATLAB(0, core::ptr::null_mut(), 1, argument.as_mut_ptr(), c"__profiler_enable__".as_ptr());
        hooks::go_on();
    }
}

/// Whether Octave runs in its window.
unsafe fn has_window() -> bool {
    // SAFETY: in the interpreter's thread.
    unsafe {
        hooks::pause();
        let mut result = [core::ptr::null_mut()];
        let failed =
            mexCallMATLAB(1, result.as_mut_ptr(), 0, core::ptr::null_mut(), c"isguirunning".as_ptr());
        hooks::go_on();
        failed == 0 && mxGetScalar(result[0]) != 0.0
    }
}

/// The folder with Octave's own functions.
unsafe fn octaves_folder() -> String {
    // SAFETY: in the interpreter's thread, with an argument that the function knows.
    unsafe {
        hooks::pause();
        let mut argument = [mxCreateString(c"fcnfiledir".as_ptr())];
        let mut result = [core::ptr::null_mut()];
        let failed = mexCallMATLAB(
            1,
            result.as_mut_ptr(),
            1,
            argument.as_mut_ptr(),
            c"__octave_config_info__".as_ptr(),
        );
        hooks::go_on();
        if failed == 0 { text_of(result[0]).unwrap_or_default() } else { String::new() }
    }
}

/// How often the cost of a call is measured, and with how many calls.
const ROUNDS: usize = 50;
const CALLS: usize = 100;

/// Measures the cost that recording adds to a call of a builtin, in ticks: of calls that `arrayfun` makes
/// some are recorded, and compared with as many before and behind them that are not. Takes some
/// milliseconds, once.
///
/// Calls that a loop makes cost about the same. Those that come through `mexCallMATLAB` cost more, because
/// its other work takes the places in the caches; the call of a hook around a function of ours costs less,
/// because Octave's other work is missing.
unsafe fn call_costs() -> [f64; ROUNDS] {
    let mut costs = [0.0; ROUNDS];
    // SAFETY: in the interpreter's thread, with arguments that `arrayfun` accepts.
    unsafe {
        let mut arguments = [mxCreateString(c"numel".as_ptr()), mxCreateDoubleMatrix(1, CALLS as i64, 0)];
        let mut batch = |bits: u32| {
            hooks::resume(bits);
            let start = treering_runtime::ticks();
            mexCallMATLAB(0, core::ptr::null_mut(), 2, arguments.as_mut_ptr(), c"arrayfun".as_ptr());
            treering_runtime::ticks().wrapping_sub(start) as f64
        };
        // The first ones find nothing in the caches.
        let mut before = [hooks::what::CALLS, 0].map(&mut batch)[1];
        for cost in &mut costs {
            let recorded = batch(hooks::what::CALLS);
            let behind = batch(0);
            *cost = (recorded - (before + behind) / 2.0) / (CALLS + 1) as f64;
            before = behind;
        }
    }
    costs
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// Keeps a message for the error that follows.
unsafe fn fail(message: &str) -> bool {
    // SAFETY: in the interpreter's thread; the last byte stays zero.
    unsafe {
        let kept = &mut *MESSAGE.0.get();
        let text = message.as_bytes();
        let length = text.len().min(kept.len() - 1);
        kept[..length].copy_from_slice(&text[..length]);
        kept[length] = 0;
    }
    false
}

unsafe fn text_of(array: Array) -> Option<String> {
    // SAFETY: by the caller, an array of Octave.
    unsafe {
        if !mxIsChar(array) {
            return None;
        }
        let length = mxGetNumberOfElements(array).max(0) as usize + 1;
        if length == 1 {
            // Octave copies no text out of one that is empty.
            return Some(String::new());
        }
        let mut text = vec![0_u8; length];
        let failed = mxGetString(array, text.as_mut_ptr().cast(), length as i64) != 0;
        let text = CStr::from_bytes_until_nul(&text).ok()?;
        (!failed).then(|| text.to_string_lossy().into_owned())
    }
}

/// Octave's array of a value.
unsafe fn array(value: &Value) -> Array {
    // SAFETY: the functions make arrays that Octave owns.
    unsafe {
        match value {
            Value::Nothing => mxCreateDoubleMatrix(0, 0, 0),
            Value::Text(text) => mxCreateString(zero_ended(text).as_ptr()),
            Value::Number(number) => mxCreateDoubleScalar(*number),
            Value::Numbers(numbers) => {
                let array = mxCreateDoubleMatrix(1, numbers.len() as i64, 0);
                if !numbers.is_empty() {
                    core::ptr::copy_nonoverlapping(numbers.as_ptr(), mxGetPr(array), numbers.len());
                }
                array
            }
            Value::Matrix(rows, columns) => {
                let array = mxCreateDoubleMatrix(rows.len() as i64, *columns as i64, 0);
                let by_column = (0..*columns).flat_map(|column| rows.iter().map(move |row| row[column]));
                // An empty one may have no room.
                if !rows.is_empty() {
                    by_column.enumerate().for_each(|(at, number)| mxGetPr(array).add(at).write(number));
                }
                array
            }
            Value::Structures(structures) => structure_array(structures),
        }
    }
}

unsafe fn structure_array(structures: &Structures) -> Array {
    let names: Vec<CString> = structures.fields.iter().map(|name| zero_ended(name)).collect();
    let fields: Vec<*const c_char> = names.iter().map(|name| name.as_ptr()).collect();
    // SAFETY: there are as many names as is said, and they are copied.
    unsafe {
        let array =
            mxCreateStructMatrix(structures.rows.len() as i64, 1, fields.len() as c_int, fields.as_ptr());
        for (at, row) in structures.rows.iter().enumerate() {
            for (field, value) in row.iter().enumerate() {
                mxSetFieldByNumber(array, at as i64, field as c_int, self::array(value));
            }
        }
        array
    }
}

fn zero_ended(text: &str) -> CString {
    CString::new(text.replace('\0', " ")).unwrap_or_default()
}
