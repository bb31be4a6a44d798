//! How a program that a subcommand ran has ended: this process ends alike.
//!
//! A shell, a test suite or `make` asks by which signal a program ended, so an exit status of 128 and the signal's number
//! is not the same. The subcommand notes the signal; `main` ends by it when all is written and told.

use std::io::{self, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicI32, Ordering};

use nix::sys::signal::Signal;

/// The signal that has ended the program; 0 if none has.
static SIGNAL: AtomicI32 = AtomicI32::new(0);

/// Notes that a signal has ended the program. Returns the exit status that a shell would give, for where this process
/// cannot end by the signal.
pub fn ended_by(signal: i32) -> u8 {
    SIGNAL.store(signal, Ordering::Relaxed);
    (128 + signal) as u8
}

/// The exit status that a shell would give. By a signal that has ended the program this process ends as well.
pub fn exit_status(status: ExitStatus) -> u8 {
    status.signal().map_or_else(|| status.code().unwrap_or(1) as u8, ended_by)
}

/// The exit status that a shell would give for a program that cannot be started: 127 if it, or the interpreter that it
/// names, is not there, else 126.
pub fn start_status(error: &io::Error) -> u8 {
    if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 }
}

/// Ends this process by the signal that has ended the program, if one has.
pub fn end_alike() {
    let signal = SIGNAL.load(Ordering::Relaxed);
    if signal != 0 {
        // A closed output reads no more.
        let _ = std::io::stdout().flush();
        treering_translator::end_by(signal);
    }
}

/// The usual name of a signal, as `SIGSEGV`.
pub fn signal_name(signal: i32) -> String {
    let first = libc::SIGRTMIN();
    match Signal::try_from(signal) {
        Ok(known) => known.as_str().to_owned(),
        Err(_) if (first..=libc::SIGRTMAX()).contains(&signal) => format!("SIGRTMIN+{}", signal - first),
        Err(_) => format!("signal {signal}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_status_is_that_of_a_shell() {
        assert_eq!(exit_status(ExitStatus::from_raw(3 << 8)), 3);
        assert_eq!(exit_status(ExitStatus::from_raw(15)), 143);
    }

    #[test]
    fn signals_have_names() {
        let named = [libc::SIGSEGV, libc::SIGRTMIN(), libc::SIGRTMIN() + 3, 32].map(signal_name);
        assert_eq!(named, ["SIGSEGV", "SIGRTMIN+0", "SIGRTMIN+3", "signal 32"]);
    }
}
