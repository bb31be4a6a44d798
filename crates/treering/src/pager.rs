//! Long listings on a terminal go through a pager, as those of git do.

use std::ffi::{OsStr, OsString};
use std::io::{IsTerminal as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use treering_proc::programs_on_path;
use treering_translator::{stop_after_children, stop_with_program};

use crate::failure::Failure;
use crate::terminal;

/// The pager where none is set.
const USUAL: &str = "less";

/// Without an escape for each letter, for one screen only if need be, and leaving the text where it was.
const USUAL_OPTIONS: &str = "FRX";

static REFUSED: AtomicBool = AtomicBool::new(false);

/// From now on nothing goes through a pager.
pub fn refuse() {
    REFUSED.store(true, Ordering::Relaxed);
}

/// Prints `text` to standard output; on a terminal through the pager, unless there is none or it is refused.
pub fn print(text: &str) -> Result<(), Failure> {
    let Some(pager) = chosen() else { return terminal::print(text) };
    // Ctrl-C is for the pager, which may take it for something else than its end.
    let interrupted = std::sync::Arc::new(AtomicBool::new(false));
    let heeded = signal_hook::flag::register(signal_hook::consts::SIGINT, interrupted);
    // It puts the terminal in order when that is to stop it.
    let _ = stop_after_children();
    let shown = start(&pager).is_some_and(|pager| show(pager, text));
    let _ = stop_with_program(false);
    heeded.into_iter().for_each(|id| {
        signal_hook::low_level::unregister(id);
    });
    if shown { Ok(()) } else { terminal::print(text) }
}

/// The pager's command, if there is to be one.
fn chosen() -> Option<OsString> {
    if REFUSED.load(Ordering::Relaxed) || !std::io::stdout().is_terminal() {
        return None;
    }
    let set = ["TREERING_PAGER", "PAGER"].into_iter().find_map(std::env::var_os);
    match set {
        Some(pager) => Some(pager).filter(|pager| !pager.is_empty() && pager != "cat"),
        None => {
            let path = std::env::var_os("PATH");
            programs_on_path(OsStr::new(USUAL), path.as_deref()).next().map(|_| USUAL.into())
        }
    }
}

/// Starts it by the shell, as it may have options.
fn start(pager: &OsStr) -> Option<Child> {
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(pager).stdin(Stdio::piped());
    if std::env::var_os("LESS").is_none() {
        command.env("LESS", USUAL_OPTIONS);
    }
    command.spawn().ok()
}

/// Whether the pager took the text. One that is left before the end is no error.
fn show(mut pager: Child, text: &str) -> bool {
    /// The shell's exit status if there is no such program.
    const NOT_FOUND: i32 = 127;
    if let Some(mut input) = pager.stdin.take() {
        let _ = input.write_all(text.as_bytes());
    }
    pager.wait().is_ok_and(|status| status.code() != Some(NOT_FOUND))
}
