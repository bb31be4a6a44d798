//! Signals that would end a subcommand while a program that it has started runs are that program's.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command};
use std::thread::JoinHandle;

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::iterator::{Handle, SignalsInfo};
use signal_hook::low_level::siginfo::Origin;
use treering_translator::is_ignored;

/// Passes SIGHUP, SIGINT, SIGQUIT and SIGTERM on to a program for as long as this is kept. They do not end this process:
/// it has the program's profile to write, or its answer.
#[must_use]
pub struct Relay {
    signals: Handle,
    passing: Option<JoinHandle<()>>,
}

impl Relay {
    /// Starts a program. A signal that this process ignores, as under `nohup`, stays ignored in both.
    pub fn spawn(command: &mut Command) -> io::Result<(Child, Self)> {
        // A terminal sends its signals, which come from no process, to the program as well.
        Self::spawn_and_pass(command, |signal| signal.process.is_some(), kill::<Option<Signal>>)
    }

    /// Starts a program in a process group of its own, all of which gets the signals: some programs are scripts that
    /// start the real one. For a program that does not read from the terminal.
    pub fn spawn_group(command: &mut Command) -> io::Result<(Child, Self)> {
        Self::spawn_and_pass(command.process_group(0), |_| true, killpg::<Option<Signal>>)
    }

    fn spawn_and_pass(
        command: &mut Command,
        is_passed: fn(&Origin) -> bool,
        pass: fn(Pid, Option<Signal>) -> nix::Result<()>,
    ) -> io::Result<(Child, Self)> {
        let heeded = [SIGHUP, SIGINT, SIGQUIT, SIGTERM].into_iter().filter(|&signal| !is_ignored(signal));
        let mut signals = SignalsInfo::<WithOrigin>::new(heeded)?;
        let child = command.spawn()?;
        let pid = Pid::from_raw(child.id().cast_signed());
        let handle = signals.handle();
        let passing = std::thread::spawn(move || {
            for received in signals.forever().filter(is_passed) {
                if let Ok(signal) = Signal::try_from(received.signal) {
                    // One that has ended meanwhile needs none.
                    let _ = pass(pid, Some(signal));
                }
            }
        });
        Ok((child, Self { signals: handle, passing: Some(passing) }))
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.signals.close();
        if let Some(passing) = self.passing.take() {
            let _ = passing.join();
        }
    }
}
