//! The C interface, as `hooks/c/include/treering/treering.h` declares and describes it.

use core::ffi::{c_char, c_int, c_void};
use core::sync::atomic::{AtomicU32, Ordering};

use treering_events::{function_kind, setting};

use crate::benchmark::Options as ReportOptions;
use crate::event::{self, NO_FRAME, NOTHING};
use crate::leave;
use crate::options::{Kind, Options};
use crate::port::{self, Port};
use crate::process::{self, OFF, Quiet, STATE};
use crate::registry::{self, Described};
use crate::{arguments, frame, leaf, mark, memory, point, session, store, sys, task};

/// The way with events: nothing, or to be decided at the first one, or recorded in a period
/// of that number, with `FLAT` or `SLOW` for all but plain call graphs. The macros of
/// the C header test it by this name.
#[unsafe(no_mangle)]
pub static treering_state: AtomicU32 = AtomicU32::new(process::UNDECIDED);

#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = process::at_start;

#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = memory::attach_allocator;

#[used]
#[unsafe(link_section = ".fini_array")]
static AT_EXIT: extern "C" fn() = process::at_exit;

/// The number of a task; 0 while nothing is recorded.
fn task(described: Described) -> u32 {
    let _quiet = Quiet::begin();
    process::initialise();
    if store::header().is_none() {
        return 0;
    }
    registry::number(described, &process::filter())
}

/// The id of a task: the same for the same name. 0 while nothing is recorded.
///
/// # Safety
/// `name` is a C text or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn treering_task(name: *const c_char) -> u32 {
    // SAFETY: by this function's own requirement.
    task(Described::task(unsafe { sys::c_text(name) }))
}

/// The id of a task with the place where it stands in the source.
///
/// # Safety
/// `name` and `file` are C texts or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn treering_task_at(name: *const c_char, file: *const c_char, line: u32) -> u32 {
    // SAFETY: by this function's own requirement.
    let (name, file) = unsafe { (sys::c_text(name), sys::c_text(file)) };
    task(Described { file, line, ..Described::task(name) })
}

/// The id of a function of an interpreted language.
///
/// # Safety
/// `name` and `file` lead to as many bytes as stated, or are null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn treering_function(
    name: *const c_char,
    name_length: usize,
    file: *const c_char,
    file_length: usize,
    line: u32,
) -> u32 {
    let kind = function_kind::INTERPRETED as c_int;
    // SAFETY: by this function's own requirement.
    unsafe { treering_function_of_kind(name, name_length, file, file_length, line, kind) }
}

/// The id of a function of one of the kinds that interpreters have; that of one written in the
/// language where the kind is none of these.
///
/// # Safety
/// As for [`treering_function`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn treering_function_of_kind(
    name: *const c_char,
    name_length: usize,
    file: *const c_char,
    file_length: usize,
    line: u32,
    kind: c_int,
) -> u32 {
    let known = |kind: &u32| (function_kind::INTERPRETED..=function_kind::ANONYMOUS).contains(kind);
    let kind = u32::try_from(kind).ok().filter(known).unwrap_or(function_kind::INTERPRETED);
    // SAFETY: by this function's own requirement.
    let (name, file) = unsafe { (sys::bytes(name, name_length), sys::bytes(file, file_length)) };
    task(Described { file, line, kind, ..Described::task(name) })
}

/// The id of a task of which one call in `timed_one_in` is timed, and none for 0.
///
/// # Safety
/// `name` and `file` are C texts or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn treering_task_sampled(
    name: *const c_char,
    file: *const c_char,
    line: u32,
    timed_one_in: u32,
) -> u32 {
    // SAFETY: by this function's own requirement.
    let (name, file) = unsafe { (sys::c_text(name), sys::c_text(file)) };
    task(Described { file, line, timed_one_in, ..Described::task(name) })
}

/// Enters a task or function; the token is for [`treering_leave`].
#[unsafe(no_mangle)]
pub extern "C" fn treering_enter(id: u32) -> u64 {
    match STATE.load(Ordering::Relaxed) {
        OFF => NOTHING,
        state => event::enter_in(state, id, NO_FRAME, sys::stack_pointer()),
    }
}

/// Enters a task that ends at the latest with the calling function, whose stack pointer is
/// `frame`: also when the program jumps out of it.
#[unsafe(no_mangle)]
pub extern "C" fn treering_enter_frame(id: u32, frame: u64) -> u64 {
    match STATE.load(Ordering::Relaxed) {
        OFF => NOTHING,
        state => event::enter_in(state, id, frame, frame),
    }
}

/// Leaves the activation of a token, and all that were entered in it and not left.
#[unsafe(no_mangle)]
pub extern "C" fn treering_leave(token: u64) {
    if token != NOTHING {
        leave::leave(token);
    }
}

/// Enters a task in which no other is entered; what is returned is for [`treering_leaf_leave`].
#[unsafe(no_mangle)]
pub extern "C" fn treering_leaf_enter(id: u32) -> leaf::Token {
    match STATE.load(Ordering::Relaxed) {
        OFF => leaf::Token::UNTIMED,
        state => leaf::enter(state, id, sys::stack_pointer()),
    }
}

/// Leaves it.
#[unsafe(no_mangle)]
pub extern "C" fn treering_leaf_leave(token: leaf::Token) {
    if token.is_timed() {
        leaf::leave(token);
    }
}

/// Starts a task; [`treering_task_stop`] stops the one that was started last.
#[unsafe(no_mangle)]
pub extern "C" fn treering_task_start(id: u32) {
    if STATE.load(Ordering::Relaxed) != OFF {
        task::start(id, sys::stack_pointer());
    }
}

/// Starts a task by its name, which is looked up each time.
///
/// # Safety
/// `name` leads to `length` bytes, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn treering_task_start_named(name: *const c_char, length: usize) {
    if STATE.load(Ordering::Relaxed) != OFF {
        // SAFETY: by this function's own requirement.
        let described = Described::task(unsafe { sys::bytes(name, length) });
        let id = registry::known(&described).unwrap_or_else(|| task(described));
        task::start(id, sys::stack_pointer());
    }
}

/// Stops the task that was started last in this thread.
#[unsafe(no_mangle)]
pub extern "C" fn treering_task_stop() {
    if STATE.load(Ordering::Relaxed) != OFF {
        task::stop();
    }
}

/// Enters a function again, to look for another solution.
#[unsafe(no_mangle)]
pub extern "C" fn treering_redo(id: u32) -> u64 {
    port::redo(id, sys::stack_pointer())
}

/// The clock of all events, in ticks; see [`ticks`](crate::ticks).
#[unsafe(no_mangle)]
pub extern "C" fn treering_ticks() -> u64 {
    sys::ticks()
}

/// A statement on a line of the running function has ended; see [`line`](crate::line()).
#[unsafe(no_mangle)]
pub extern "C" fn treering_line(line: u32, total_ticks: u64, self_ticks: u64) {
    crate::line::line(line, total_ticks, self_ticks);
}

/// The activation of a token fails: it is counted and left.
#[unsafe(no_mangle)]
pub extern "C" fn treering_fail(token: u64) {
    port::count_port(token, Port::Fail);
    treering_leave(token);
}

/// The activation of a token is left by an exception: it is counted and left.
#[unsafe(no_mangle)]
pub extern "C" fn treering_exception(token: u64) {
    port::count_port(token, Port::Exception);
    treering_leave(token);
}

/// The activation of a token commits to its choices; it goes on.
#[unsafe(no_mangle)]
pub extern "C" fn treering_cut(token: u64) {
    port::count_port(token, Port::Cut);
}

/// The size of an argument of the activation of a token.
#[unsafe(no_mangle)]
pub extern "C" fn treering_argument_size(token: u64, size: u64) {
    port::argument_size(token, size);
}

/// Takes a point of the memory plot.
///
/// # Safety
/// `description` leads to `length` bytes, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn treering_point(description: *const c_char, length: usize) {
    // SAFETY: by this function's own requirement.
    point::take(unsafe { sys::bytes(description, length) });
}

/// Marks the moment with a name.
///
/// # Safety
/// `name` leads to `length` bytes, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn treering_mark(name: *const c_char, length: usize) {
    // SAFETY: by this function's own requirement.
    mark::add(unsafe { sys::bytes(name, length) });
}

/// Switches points of the memory plot off for 0, else on.
#[unsafe(no_mangle)]
pub extern "C" fn treering_set_points(on: c_int) {
    process::set_points(on != 0);
}

/// Sets a parameter of the run.
///
/// # Safety
/// Both texts lead to as many bytes as stated, or are null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn treering_parameter(
    name: *const c_char,
    name_length: usize,
    value: *const c_char,
    value_length: usize,
) {
    // SAFETY: by this function's own requirement.
    let (name, value) = unsafe { (sys::bytes(name, name_length), sys::bytes(value, value_length)) };
    session::set(setting::PARAMETER, name, value);
}

/// Sets a result of the run.
///
/// # Safety
/// Both texts lead to as many bytes as stated, or are null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn treering_result(
    name: *const c_char,
    name_length: usize,
    value: *const c_char,
    value_length: usize,
) {
    // SAFETY: by this function's own requirement.
    let (name, value) = unsafe { (sys::bytes(name, name_length), sys::bytes(value, value_length)) };
    session::set(setting::RESULT, name, value);
}

/// Records from now on: 0 nothing, 1 a call graph, 2 flat, 3 counts only; the rest as the
/// environment says. Returns 0, or -1 for another number.
#[unsafe(no_mangle)]
pub extern "C" fn treering_set_profiler(kind: c_int) -> c_int {
    let kind = match kind {
        0 => {
            process::clear_profiler();
            return 0;
        }
        1 => Kind::CallGraph,
        2 => Kind::Flat,
        3 => Kind::Count,
        _ => return -1,
    };
    let options = process::options().or_else(Options::from_environment).unwrap_or_default();
    process::set_profiler(Options { kind, ..options });
    0
}

/// Records nothing from now on.
#[unsafe(no_mangle)]
pub extern "C" fn treering_clear_profiler() {
    process::clear_profiler();
}

/// Sets the file that the next profile is written to; before the first event, or after
/// [`treering_finish`].
///
/// # Safety
/// `path` is a C text or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn treering_set_output(path: *const c_char) {
    // SAFETY: by this function's own requirement.
    process::set_output(unsafe { sys::c_text(path) });
}

/// Writes the profile and records nothing more until a profiler is set again. Returns 0, or -1
/// when it could not be written.
#[unsafe(no_mangle)]
pub extern "C" fn treering_finish() -> c_int {
    if process::finish() { 0 } else { -1 }
}

/// Brings the clock's calibration in the live file up to date; the rest of it always is. Returns
/// 0, or -1 when there is none.
#[unsafe(no_mangle)]
pub extern "C" fn treering_flush() -> c_int {
    let _quiet = Quiet::begin();
    if store::header().is_none() {
        return -1;
    }
    process::refresh_clock();
    0
}

/// Starts a benchmark.
///
/// # Safety
/// Both texts lead to as many bytes as stated, or are null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn treering_bench_start(
    name: *const c_char,
    name_length: usize,
    description: *const c_char,
    description_length: usize,
) {
    // SAFETY: by this function's own requirement.
    let texts = unsafe { (sys::bytes(name, name_length), sys::bytes(description, description_length)) };
    session::start(texts.0, texts.1);
}

/// Stops the benchmark.
#[unsafe(no_mangle)]
pub extern "C" fn treering_bench_stop() {
    session::stop();
}

/// Whether a benchmark was started and not stopped.
#[unsafe(no_mangle)]
pub extern "C" fn treering_bench_is_running() -> c_int {
    c_int::from(session::is_running())
}

/// Writes a report about the benchmark to a buffer, as much as fits; returns how long it is.
///
/// # Safety
/// `buffer` has room for `capacity` bytes, or is null with a capacity of 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn treering_bench_report(
    verbosity: c_int,
    format: c_int,
    contents: c_int,
    buffer: *mut c_char,
    capacity: usize,
) -> usize {
    let report = session::report(ReportOptions::from_numbers(verbosity, format, contents));
    let fits = report.len().min(capacity);
    if !buffer.is_null() && fits > 0 {
        // SAFETY: by this function's own requirement.
        unsafe { core::ptr::copy_nonoverlapping(report.as_ptr().cast(), buffer, fits) };
    }
    report.len()
}

/// Takes the options for reports out of the arguments of `main`, and remembers them. Returns 0, or -1
/// after a line on standard error when one of them is wrong; then all arguments stay.
///
/// # Safety
/// `arguments` leads to `*count` C texts and a null pointer behind them. Either may be null, which
/// stands for no arguments.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn treering_bench_arguments(count: *mut c_int, arguments: *mut *mut c_char) -> c_int {
    if count.is_null() || arguments.is_null() {
        return 0;
    }
    let _quiet = Quiet::begin();
    // SAFETY: by this function's own requirement.
    let texts = unsafe { core::slice::from_raw_parts_mut(arguments, usize::try_from(*count).unwrap_or(0)) };
    // SAFETY: by this function's own requirement, each argument is a C text.
    let given: Vec<&[u8]> = texts.iter().map(|&text| unsafe { sys::c_text(text) }).collect();
    let taken = match arguments::take(&given) {
        Ok(taken) => taken,
        Err(problem) => {
            let program = given.first().copied().unwrap_or_default();
            let name = program.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
            sys::complain(&[&String::from_utf8_lossy(name), ": ", &problem]);
            return -1;
        }
    };
    if !taken.contains(&true) {
        return 0;
    }
    let kept: Vec<*mut c_char> =
        texts.iter().zip(taken).filter(|(_, taken)| !taken).map(|(&text, _)| text).collect();
    texts[..kept.len()].copy_from_slice(&kept);
    // There is room for the null pointer, as at least one was taken out.
    texts[kept.len()] = core::ptr::null_mut();
    // SAFETY: by this function's own requirement; there are no more than before.
    unsafe { *count = kept.len() as c_int };
    0
}

/// The lines about the options of [`treering_bench_arguments`] for the help of a program.
#[unsafe(no_mangle)]
pub extern "C" fn treering_bench_arguments_help() -> *const c_char {
    arguments::HELP.as_ptr()
}

/// Enters a function. Compilers have it called at the start of every function (`-finstrument-functions`),
/// by way of [`__cyg_profile_func_enter`]: `frame` is the stack pointer of the code that calls the hook,
/// and `reporter` is the address of that code.
extern "C" fn function_entered(function: *const c_void, call_site: u64, frame: u64, reporter: u64) {
    let state = STATE.load(Ordering::Relaxed);
    if state == OFF || sys::current().is_some_and(sys::is_busy) {
        return;
    }
    let address = function as u64;
    let id = match registry::known_at(address) {
        Some(id) => id,
        None => {
            let _quiet = Quiet::begin();
            process::initialise();
            if store::header().is_none() {
                return;
            }
            registry::number_at(address, &process::filter())
        }
    };
    frame::enter_function(state, id, frame::Enter { function: address, call_site, frame, reporter });
}

/// Leaves a function. Compilers have it called at the end of every function. `frame` is the stack pointer
/// there; where `is_gone`, it is that of a function whose frame is gone already, and was below.
extern "C" fn function_left(function: *const c_void, _call_site: u64, frame: u64, is_gone: u64) {
    if STATE.load(Ordering::Relaxed) == OFF {
        return;
    }
    if let Some(id) = registry::known_at(function as u64).filter(|id| *id != registry::IGNORED) {
        frame::leave_function(id, frame, is_gone != 0);
    }
}

/// The hook of `-finstrument-functions` (GCC manual, "Program instrumentation options").
///
/// # Safety
/// Called by code that a compiler made.
#[cfg(target_arch = "x86_64")]
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C" fn __cyg_profile_func_enter(function: *const c_void, call_site: *const c_void) {
    core::arch::naked_asm!("lea rdx, [rsp + 8]", "mov rcx, [rsp]", "jmp {}", sym function_entered)
}

/// See [`__cyg_profile_func_enter`].
///
/// Compilers make the call a jump where it is the last act of the function. Then its frame is gone:
/// the function's own return address, which the call site is, is on top of the stack, and the
/// frame was below it.
///
/// # Safety
/// Called by code that a compiler made.
#[cfg(target_arch = "x86_64")]
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C" fn __cyg_profile_func_exit(function: *const c_void, call_site: *const c_void) {
    core::arch::naked_asm!(
        "xor ecx, ecx",
        "cmp [rsp], rsi",
        "sete cl",
        "lea rdx, [rsp + 8]",
        "mov rax, rcx",
        "shl rax, 3",
        "sub rdx, rax",
        "jmp {}",
        sym function_left
    )
}

/// The hook of `-finstrument-functions`.
#[cfg(not(target_arch = "x86_64"))]
#[unsafe(no_mangle)]
pub extern "C" fn __cyg_profile_func_enter(function: *const c_void, call_site: *const c_void) {
    function_entered(function, call_site as u64, NO_FRAME, 0);
}

/// See [`__cyg_profile_func_enter`].
#[cfg(not(target_arch = "x86_64"))]
#[unsafe(no_mangle)]
pub extern "C" fn __cyg_profile_func_exit(function: *const c_void, call_site: *const c_void) {
    function_left(function, call_site as u64, 0, 0);
}

/// Unloads a library as the system's own function does. The functions at its addresses are forgotten, since
/// other code may be loaded there.
///
/// # Safety
/// As for the system's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlclose(library: *mut c_void) -> c_int {
    // SAFETY: the system's function of that name has this type; the caller answers for the rest.
    unsafe {
        let next = libc::dlsym(libc::RTLD_NEXT, c"dlclose".as_ptr());
        if next.is_null() {
            return -1;
        }
        let close: unsafe extern "C" fn(*mut c_void) -> c_int = core::mem::transmute(next);
        let ranges = || {
            let _quiet = Quiet::begin();
            sys::code_ranges()
        };
        let before = ranges();
        let closed = close(library);
        let after = ranges();
        let gone: Vec<_> = before.into_iter().filter(|range| !after.contains(range)).collect();
        if !gone.is_empty() {
            let _quiet = Quiet::begin();
            registry::forget_addresses(|address| gone.iter().any(|range| range.holds(address)));
        }
        closed
    }
}
