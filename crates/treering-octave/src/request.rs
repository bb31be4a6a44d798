//! The options of `on`.

use std::fs::OpenOptions;
use std::path::PathBuf;

use treering_runtime::{Filter, Kind};

use crate::hooks::what;

/// How Octave is to be profiled.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Request {
    /// What is made of the events.
    pub(crate) kind: Kind,
    /// What is recorded besides calls: bits of [`what`].
    pub(crate) bits: u32,
    /// Which functions are recorded.
    pub(crate) filter: Filter,
    /// The file to write; none for one that is removed at the end.
    pub(crate) output: Option<PathBuf>,
    /// Whether calls that a function makes to itself directly share a node of the tree; Octave's own
    /// profiler, whose tree ours stands for, has one for each depth.
    pub(crate) folds: bool,
    /// The folder of our commands.
    pub(crate) home: String,
}

/// The words that may follow `on`, for error messages.
pub(crate) const USAGE: &str = "graph, flat, -lines, -args, -operators, -memory, -only PATTERN, \
     -ignore PATTERN, -output FILE, -detail mmex or builtin";

/// The answer to MATLAB's options that ask for a history of calls.
const NO_HISTORY: &str = "calls are added up as they are made, so there is no history of them; their order in \
     time is not known, but profile (\"info\").Hierarchical has the tree of calls, and treering save FILE \
     writes it for the program treering: treering view FILE";

impl Request {
    /// Reads the words that follow `on`.
    ///
    /// # Errors
    /// A sentence for the user.
    pub(crate) fn read(words: &[String]) -> Result<Self, String> {
        let mut request = Self { bits: what::CALLS, ..Self::default() };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut next = || words.next().cloned().ok_or_else(|| format!("{word} needs a value behind it"));
            match word.as_str() {
                "graph" => request.kind = Kind::CallGraph,
                "flat" => request.kind = Kind::Flat,
                "-lines" => request.bits |= what::LINES,
                "-args" => request.bits |= what::SIZES,
                "-operators" => request.bits |= what::OPERATORS,
                "-only" => request.filter.only.push(next()?),
                "-ignore" => request.filter.ignored.push(next()?),
                "-output" => request.output = Some(writable(PathBuf::from(next()?))?),
                // The words of MATLAB.
                "-detail" => request.bits = detail(request.bits, &next()?)?,
                "-timer" => timer(&next()?)?,
                "-nohistory" => {}
                "-history" | "-historysize" | "-timestamp" => return Err(format!("{word}: {NO_HISTORY}")),
                "-fold" => request.folds = true,
                "-home" => request.home = next()?,
                "-memory" => request.bits |= what::MEMORY,
                other => return Err(format!("unknown option '{other}'; there are {USAGE}")),
            }
        }
        Ok(request)
    }
}

/// What is recorded at a level of detail.
fn detail(bits: u32, level: &str) -> Result<u32, String> {
    match level {
        "builtin" => Ok(bits & !what::NO_BUILTINS),
        "mmex" => Ok(bits | what::NO_BUILTINS),
        other => Err(format!(
            "-detail takes mmex (functions of files) or builtin (those of Octave as well), not '{other}'; \
             -operators records operators too"
        )),
    }
}

/// There is one clock, that of the wall.
fn timer(clock: &str) -> Result<(), String> {
    match clock {
        "performance" | "real" => Ok(()),
        "cpu" | "processor" => {
            Err("-timer: times are those of the wall clock, real; for processor time type \
             in a shell: treering record -- octave-cli SCRIPT.m"
                .to_owned())
        }
        other => Err(format!("-timer takes real, not '{other}'")),
    }
}

/// The file, if it can be written.
fn writable(file: PathBuf) -> Result<PathBuf, String> {
    let cannot = |why: &dyn core::fmt::Display| format!("cannot write {}: {why}", file.display());
    let found = std::fs::metadata(&file);
    if found.as_ref().is_ok_and(std::fs::Metadata::is_dir) {
        return Err(cannot(&"it is a directory; name a file behind -output"));
    }
    if found.as_ref().is_ok_and(|found| !found.is_file()) {
        return Err(cannot(&"it is not a regular file"));
    }
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .open(&file)
        .map_err(|error| cannot(&error))?;
    if found.is_err() {
        // It was only tried; the profile makes it anew.
        let _ = std::fs::remove_file(&file);
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &str) -> Result<Request, String> {
        Request::read(&words.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn options_are_read_in_any_order() {
        let request = read("-lines flat -only a* -only b -ignore ab -output x.trg").unwrap();
        assert_eq!((request.kind, request.bits), (Kind::Flat, what::CALLS | what::LINES));
        assert_eq!((request.filter.only.len(), request.filter.ignored.len()), (2, 1));
        assert_eq!(request.output, Some(PathBuf::from("x.trg")));
        assert_eq!(read("").unwrap().kind, Kind::CallGraph);
        assert_eq!(
            read("-timer real -nohistory -detail mmex").unwrap().bits,
            what::CALLS | what::NO_BUILTINS
        );
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        assert!(read("-only").unwrap_err().contains("needs a value"));
        assert!(
            read("-output /nowhere/at/all.trg").unwrap_err().contains("cannot write /nowhere/at/all.trg")
        );
        assert!(read("-output /").unwrap_err().contains("is a directory"));
        assert!(read("-output /dev/null").unwrap_err().contains("not a regular file"));
        assert!(read("-timer cpu").unwrap_err().contains("treering record"));
        assert!(read("-historysize 100").unwrap_err().contains("treering view"));
        assert!(read("-detail all").unwrap_err().contains("mmex"));
        assert!(read("-line").unwrap_err().contains("unknown option '-line'"));
    }
}
