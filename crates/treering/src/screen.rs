//! A listing that is shown again and again: in place on a terminal, one after the other in a pipe.

use std::io::{ErrorKind, IsTerminal as _, Write as _};

use crate::failure::Failure;

/// To the other screen of the terminal, without a cursor, and lines cut at the edge.
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[?7l";
/// Back to how it was.
const LEAVE: &str = "\x1b[?7h\x1b[?25h\x1b[?1049l";

/// Where listings are shown. A terminal is put back as it was when this goes out of use.
#[derive(Debug)]
pub struct Screen {
    is_terminal: bool,
    entered: bool,
}

impl Screen {
    /// Standard output.
    pub fn new() -> Self {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
        Self { is_terminal: std::io::stdout().is_terminal() && !dumb, entered: false }
    }

    /// Whether listings are shown in place.
    pub fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// How many lines there is room for; nothing in a pipe.
    pub fn height(&self) -> Option<usize> {
        let size = terminal_size::terminal_size_of(std::io::stdout()).filter(|_| self.is_terminal)?;
        Some(usize::from(size.1.0).max(1))
    }

    /// Shows a listing in place of the one before, cut to the height of the terminal, or after it. False if the
    /// output is closed.
    pub fn show(&mut self, text: &str) -> Result<bool, Failure> {
        if !self.is_terminal {
            return put(&format!("{text}\n"));
        }
        let enter = if std::mem::replace(&mut self.entered, true) { "" } else { ENTER };
        let lines = text.lines().take(self.height().unwrap_or(usize::MAX));
        // Each line over the old one and the rest of it cleared: nothing flickers.
        let lines: Vec<String> = lines.map(|line| format!("{line}\x1b[K")).collect();
        put(&format!("{enter}\x1b[H{}\x1b[J", lines.join("\r\n")))
    }

    /// Puts the terminal back as it was.
    pub fn leave(&mut self) {
        if std::mem::replace(&mut self.entered, false) {
            // There is nothing to be done for a terminal that is gone.
            let _ = put(LEAVE);
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.leave();
    }
}

/// Writes at once; false if the output is closed.
fn put(text: &str) -> Result<bool, Failure> {
    let mut output = std::io::stdout().lock();
    match output.write_all(text.as_bytes()).and_then(|()| output.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure::new(format_args!("cannot write to standard output: {error}"))),
    }
}
