//! Messages beside the output: on standard error, since standard output may be the program's.
//!
//! Standard error may be closed, as when a pager was left. That is no reason to end: the profile is still to be
//! written, and the program's exit status to be passed on.

use std::fmt::Arguments;
#[cfg(not(test))]
use std::io::Write as _;

#[cfg(not(test))]
use crate::working;

/// Says something, without an end of line. It is written at once: standard error is not buffered, and the program
/// may write there too.
#[cfg(not(test))]
pub fn tell(text: Arguments<'_>) {
    let _ = working::beside(|| std::io::stderr().write_all(text.to_string().as_bytes()));
}

/// In tests, where it is shown if one fails.
#[cfg(test)]
#[expect(clippy::print_stderr, reason = "this is what tests capture")]
pub fn tell(text: Arguments<'_>) {
    eprint!("{text}");
}

/// Says a line; see `tell!`.
pub fn tell_line(text: Arguments<'_>) {
    tell(format_args!("{}\n", treering_report::printable_lines(&text.to_string())));
}

/// Says a line. Names of files, programs and functions may hold anything: what a terminal would obey is
/// escaped.
macro_rules! tell {
    () => { $crate::tell::tell(format_args!("\n")) };
    ($($text:tt)+) => { $crate::tell::tell_line(format_args!($($text)+)) };
}

/// Says something, without an end of line. It may be a listing with colours, in which names are escaped.
macro_rules! tell_part {
    ($($text:tt)*) => { $crate::tell::tell(format_args!($($text)*)) };
}
