//! The abilities of the terminal.

use std::io::{BufWriter, IsTerminal as _, Write};
use std::sync::OnceLock;

use crate::failure::Failure;

/// How wide a listing may be: the terminal's width, or nothing in a pipe.
pub fn width() -> Option<usize> {
    let size = terminal_size::terminal_size_of(std::io::stdout())?;
    Some(usize::from(size.0.0))
}

/// When to use colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Colour {
    /// On a terminal, unless NO_COLOR is set or TERM is dumb
    #[default]
    Auto,
    /// In pipes and files too
    Always,
    /// Nowhere
    Never,
}

static COLOUR: OnceLock<Colour> = OnceLock::new();

/// Sets when to use colour, once and for all.
pub fn set_colour(when: Colour) {
    let _ = COLOUR.set(when);
}

/// Whether standard output takes colour.
pub fn colour() -> bool {
    takes_colour(std::io::stdout().is_terminal())
}

fn takes_colour(is_terminal: bool) -> bool {
    match COLOUR.get().copied().unwrap_or_default() {
        Colour::Auto => is_terminal && !colour_is_refused(),
        Colour::Always => true,
        Colour::Never => false,
    }
}

fn colour_is_refused() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
        || std::env::var_os("TERM").is_some_and(|value| value == "dumb")
}

/// Whether text may have more than ASCII: unless a locale is set that has no more.
pub fn has_unicode() -> bool {
    let set = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(std::env::var_os);
    set.map(|value| value.to_string_lossy().to_lowercase())
        .find(|value| !value.is_empty())
        .is_none_or(|value| value.contains("utf-8") || value.contains("utf8"))
}

/// Prints `text` to standard output. A reader that closes the pipe early is no error.
pub fn print(text: &str) -> Result<(), Failure> {
    print_bytes(text.as_bytes())
}

/// Writes bytes to standard output, as [`print()`] does with text.
pub fn print_bytes(bytes: &[u8]) -> Result<(), Failure> {
    print_lines(|output| output.write_all(bytes))
}

/// Has `write` write to standard output, as [`print()`] does with text.
pub fn print_lines(write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) -> Result<(), Failure> {
    let mut output = BufWriter::new(std::io::stdout().lock());
    match write(&mut output).and_then(|()| output.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::new(format_args!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// How wide a line on standard error may be: the terminal's width, or nothing in a pipe.
pub fn error_width() -> Option<usize> {
    let size = terminal_size::terminal_size_of(std::io::stderr())?;
    Some(usize::from(size.0.0))
}

/// Whether standard error takes colour.
pub fn error_colour() -> bool {
    takes_colour(std::io::stderr().is_terminal())
}
