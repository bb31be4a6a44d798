//! The options for reports that a program takes from its own command line.
//!
//! A program gives its arguments before it starts a benchmark; what they ask for is written when
//! the benchmark stops, or when the program ends while one runs or none was started.

use core::ffi::CStr;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::benchmark::{Contents, Format, Options, Verbosity};
use crate::process::Quiet;
use crate::{session, sys};

/// The lines about these options for the help of a program.
pub(crate) const HELP: &CStr = c"  --report-time[=LEVEL]      report the time of tasks on standard error
  --export-time-xml[=FILE]   the same in XML, to FILE if it is given
  --export-time-dot[=LEVEL]  the same as a graph for Graphviz
                             LEVEL: none, minimal, normal (default), full,
                             or a number from 0 to 3
";

/// The reports that were asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Wanted {
    text: Option<Verbosity>,
    dot: Option<Verbosity>,
    xml: Option<Destination>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Destination {
    StandardError,
    File(PathBuf),
}

struct State {
    wanted: Wanted,
    /// The process that asked; a child that was forked from it is another one.
    pid: u32,
    /// Whether the reports of the benchmark that was started last were written.
    written: bool,
    /// Whether something was told of the benchmark afterwards.
    outdated: bool,
}

static STATE: Mutex<Option<State>> = Mutex::new(None);

fn lock() -> MutexGuard<'static, Option<State>> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Remembers the requests in the arguments of a program. Returns which of them are to be taken out, by
/// place, or an error in one; then nothing is remembered.
///
/// The first one is the name of the program. Nothing behind `--` is looked at. An option that is
/// given again replaces what it said before.
pub(crate) fn take(arguments: &[&[u8]]) -> Result<Vec<bool>, String> {
    let _quiet = Quiet::begin();
    let mut state = lock();
    let mut wanted = state.as_ref().map(|state| state.wanted.clone()).unwrap_or_default();
    let taken = wanted.read(arguments)?;
    if wanted != Wanted::default() {
        let before = state.take();
        let (written, outdated) = before.map_or((false, false), |state| (state.written, state.outdated));
        *state = Some(State { wanted, pid: std::process::id(), written, outdated });
    }
    Ok(taken)
}

impl Wanted {
    fn read(&mut self, arguments: &[&[u8]]) -> Result<Vec<bool>, String> {
        let mut taken = vec![false; arguments.len()];
        for (at, argument) in arguments.iter().enumerate().skip(1) {
            if *argument == b"--" {
                break;
            }
            taken[at] = self.read_one(argument)?;
        }
        Ok(taken)
    }

    /// Whether it is one of the options.
    fn read_one(&mut self, argument: &[u8]) -> Result<bool, String> {
        let (name, value) = match argument.iter().position(|&byte| byte == b'=') {
            Some(at) => (&argument[..at], Some(&argument[at + 1..])),
            None => (argument, None),
        };
        match name {
            b"--report-time" => self.text = Some(level("--report-time", value)?),
            b"--export-time-dot" => self.dot = Some(level("--export-time-dot", value)?),
            b"--export-time-xml" => self.xml = Some(destination(value)?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn write_all(&self) {
        let both = Contents::CALLGRAPH | Contents::MEMPLOT;
        if let Some(verbosity) = self.text {
            write(&Destination::StandardError, Options { verbosity, format: Format::Text, contents: both });
        }
        if let Some(verbosity) = self.dot {
            let contents = Contents::CALLGRAPH;
            write(&Destination::StandardError, Options { verbosity, format: Format::Dot, contents });
        }
        if let Some(destination) = &self.xml {
            write(destination, XML);
        }
    }
}

const XML: Options =
    Options { verbosity: Verbosity::Normal, format: Format::Xml, contents: Contents(3) };

fn level(option: &str, value: Option<&[u8]>) -> Result<Verbosity, String> {
    match value {
        None | Some(b"normal" | b"2") => Ok(Verbosity::Normal),
        Some(b"none" | b"0") => Ok(Verbosity::None),
        Some(b"minimal" | b"1") => Ok(Verbosity::Minimal),
        Some(b"full" | b"3") => Ok(Verbosity::Full),
        Some(other) => Err(format!(
            "{option}: {:?} is not a level: levels are none, minimal, normal, full, or 0 to 3",
            String::from_utf8_lossy(other)
        )),
    }
}

fn destination(value: Option<&[u8]>) -> Result<Destination, String> {
    match value {
        None => Ok(Destination::StandardError),
        Some(b"") => Err("--export-time-xml: the name of the file is missing behind =".to_owned()),
        Some(path) => Ok(Destination::File(Path::new(std::ffi::OsStr::from_bytes(path)).to_owned())),
    }
}

fn write(destination: &Destination, options: Options) {
    let report = session::report(options);
    let _quiet = Quiet::begin();
    match destination {
        // There is no other place to report a failure to.
        Destination::StandardError => drop(std::io::stderr().write_all(&report)),
        Destination::File(path) => {
            if let Err(error) = std::fs::write(path, report) {
                sys::complain(&["treering: cannot write ", &path.to_string_lossy(), ": ", &error.to_string()]);
            }
        }
    }
}

/// A benchmark was started, of which nothing was reported yet.
pub(crate) fn started() {
    if let Some(state) = &mut *lock() {
        (state.written, state.outdated) = (false, false);
    }
}

/// Something was told of the benchmark.
pub(crate) fn told() {
    if let Some(state) = &mut *lock() {
        state.outdated = state.written;
    }
}

/// The benchmark has stopped: the reports are written.
pub(crate) fn stopped() {
    let wanted = match &mut *lock() {
        Some(state) if state.pid == std::process::id() => {
            (state.written, state.outdated) = (true, false);
            state.wanted.clone()
        }
        _ => return,
    };
    wanted.write_all();
}

/// The program ends: a benchmark that runs is stopped and reported, as is that there was none. A
/// file is written again if something was told after the stop.
pub(crate) fn at_exit() {
    let (written, outdated, xml) = match &*lock() {
        Some(state) if state.pid == std::process::id() => {
            (state.written, state.outdated, state.wanted.xml.clone())
        }
        _ => return,
    };
    match xml {
        _ if session::is_running() => session::stop(),
        _ if !written => stopped(),
        Some(file @ Destination::File(_)) if outdated => write(&file, XML),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(arguments: &[&str]) -> Result<(Wanted, Vec<bool>), String> {
        let bytes: Vec<&[u8]> = arguments.iter().map(|argument| argument.as_bytes()).collect();
        let mut wanted = Wanted::default();
        wanted.read(&bytes).map(|taken| (wanted, taken))
    }

    #[test]
    fn options_are_told_from_other_arguments() {
        let (wanted, taken) =
            read(&["--report-time", "--report-time=full", "x", "--report-timed", "--export-time-xml=a=b"]).unwrap();
        assert_eq!(taken, [false, true, false, false, true]);
        assert_eq!(wanted.text, Some(Verbosity::Full));
        assert_eq!(wanted.xml, Some(Destination::File("a=b".into())));
        assert_eq!(wanted.dot, None);
    }

    #[test]
    fn nothing_is_taken_behind_two_dashes() {
        let (wanted, taken) = read(&["p", "--export-time-dot", "--", "--report-time", "--"]).unwrap();
        assert_eq!(taken, [false, true, false, false, false]);
        assert_eq!((wanted.dot, wanted.text), (Some(Verbosity::Normal), None));
    }

    #[test]
    fn levels_have_names_and_numbers() {
        let level = |value: &str| read(&["p", &format!("--report-time={value}")]).map(|read| read.0.text);
        for (name, number) in [("none", "0"), ("minimal", "1"), ("normal", "2"), ("full", "3")] {
            assert_eq!(level(name).unwrap(), level(number).unwrap());
        }
        assert_eq!(level("none").unwrap(), Some(Verbosity::None));
        assert_eq!(level("3").unwrap(), Some(Verbosity::Full));
        for wrong in ["", "4", "-1", "Full", "loud"] {
            assert!(level(wrong).unwrap_err().starts_with("--report-time: "), "{wrong}");
        }
    }

    #[test]
    fn the_last_of_equal_options_counts() {
        let (wanted, _) = read(&["p", "--export-time-xml=f", "--report-time=0", "--export-time-xml", "--report-time"]).unwrap();
        assert_eq!(wanted.xml, Some(Destination::StandardError));
        assert_eq!(wanted.text, Some(Verbosity::Normal));
    }
}
