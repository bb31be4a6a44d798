//! The words for errors of the system.

use std::io;

/// An error of the system as a part of a sentence: `permission denied`, without the number that the standard library adds.
///
/// ```
/// let error = std::fs::read("/none").expect_err("there is no such file");
/// assert_eq!(treering_proc::reason(&error), "no such file or directory");
/// ```
pub fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_lowercase().chain(letters).collect())
}
