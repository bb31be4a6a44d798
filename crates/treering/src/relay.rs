//! Signals that would end a subcommand while a program that it has started runs are that program's.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command};

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use treering_proc::{Inherited, ignore, is_ignored};
use treering_translator::{Senders, pass_on, pass_on_to, stop_after_children, stop_with_program};

/// Signals that end a program, which others or a terminal send.
pub const ENDING: [i32; 4] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM];

/// Passes the signals that end programs on to a program for as long as this is kept. They never end this process: it has
/// the program's profile to write, or its answer.
#[must_use]
pub struct Relay {
    /// The signals that this process ignored before.
    ignored: Vec<i32>,
}

impl Relay {
    /// Starts a program. It ignores the signals that this process ignores, as under `nohup` and in the background of a
    /// script, but may have handlers for them: another process that sends one means the program.
    /// A terminal stops this process after the program.
    pub fn spawn(command: &mut Command) -> io::Result<(Child, Self)> {
        stop_after_children()?;
        Self::spawn_and_pass(command, Senders::Processes, |pid| pid)
    }

    /// Starts a program in a process group of its own, all of which gets the signals: some programs are scripts that
    /// start the real one. For a program that does not read from the terminal.
    pub fn spawn_group(command: &mut Command) -> io::Result<(Child, Self)> {
        // A group is named by the negative of its number (kill(2)).
        Self::spawn_and_pass(command.process_group(0), Senders::All, |pid| -pid)
    }

    fn spawn_and_pass(
        command: &mut Command,
        senders: Senders,
        target: fn(i32) -> i32,
    ) -> io::Result<(Child, Self)> {
        let (ignored, heeded): (Vec<i32>, Vec<i32>) =
            ENDING.into_iter().partition(|&signal| is_ignored(signal));
        heeded.into_iter().try_for_each(|signal| pass_on(signal, senders))?;
        let child = Inherited::get().give_to(command).spawn()?;
        // The program has inherited that they are ignored.
        ignored.iter().try_for_each(|&signal| pass_on(signal, Senders::Processes))?;
        pass_on_to(Some(target(child.id().cast_signed())));
        Ok((child, Self { ignored }))
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        pass_on_to(None);
        let _ = stop_with_program(false);
        self.ignored.iter().for_each(|&signal| ignore(signal));
    }
}
