//! Calls by which a program adds notes, times and file names to its own profile.

use std::fmt::Display;

use treering_events::setting;

use crate::options::Options;
use crate::{mark as marks, point as points, process, session};

/// Records from now on, as `options` say; what was recorded before in the same way is added to.
pub fn set_profiler(options: Options) {
    process::set_profiler(options);
}

/// Records nothing from now on. Activations that are open end here.
pub fn clear_profiler() {
    process::clear_profiler();
}

/// Writes the profile and records nothing more until a profiler is set again. At the end of the
/// program this happens by itself. False when it could not be written; standard error says why.
pub fn finish() -> bool {
    process::finish()
}

/// Takes a point of the memory plot: how much memory the process has, and which task runs. Takes
/// some microseconds.
pub fn point(description: &str) {
    points::take(description.as_bytes());
}

/// Marks the moment with a name, for `treering record` where that has started the program, and for the program's own profile
/// where that [keeps time](Options::keeps_time): the recording has the mark in this thread, and `treering report --phase NAME`
/// shows what happened from there up to the next mark of the process.
///
/// It takes less than a microsecond, and next to nothing where nothing records. The first 104 bytes of a name are kept,
/// and 16,384 marks of a recording; the report says how many others there were.
pub fn mark(name: &str) {
    marks::add(name.as_bytes());
}

/// Adds a sentence to the profile that a reader needs to judge its numbers, such as what was not recorded: lower case, no
/// full stop. Reports say it.
pub fn note(text: &str) {
    process::set(setting::NOTE, b"", text.as_bytes());
}

/// Sets a parameter of the run, such as the size of the problem. It stands in the profile.
pub fn parameter(name: &str, value: impl Display) {
    session::set(setting::PARAMETER, name.as_bytes(), value.to_string().as_bytes());
}

/// Sets a result of the run. It stands in the profile.
pub fn result(name: &str, value: impl Display) {
    session::set(setting::RESULT, name.as_bytes(), value.to_string().as_bytes());
}
