//! The options of `on`.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::Read as _;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use treering_runtime::{Filter, Kind};

use crate::hooks::what;

/// How Octave is to be profiled.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Request {
    /// The kind of profile that the events make.
    pub(crate) kind: Kind,
    /// The kinds of events to record besides calls: bits of [`what`].
    pub(crate) bits: u32,
    /// The functions to record.
    pub(crate) filter: Filter,
    /// The file to write; none for one that is removed at the end.
    pub(crate) output: Option<PathBuf>,
    /// Whether calls that a function makes to itself directly share a node of the tree; Octave's own
    /// profiler, whose tree ours stands for, has one for each depth.
    pub(crate) folds: bool,
    /// The folder of our commands.
    pub(crate) home: String,
    /// Whether statistics of single calls are printed, which are always recorded.
    pub(crate) statistics: bool,
    /// Whether it is not kept when time passed.
    pub(crate) no_time: bool,
    /// The file that tells the command `treering octave` which file is written.
    pub(crate) told: Option<PathBuf>,
}

/// The words that may follow `on`, for error messages.
pub(crate) const USAGE: &str = "graph, flat, -lines, -args, -operators, -memory, -notime, -statistics, -only PATTERN, \
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
                "-output" => {
                    let file = PathBuf::from(next()?);
                    check_ours(&file)?;
                    request.output = Some(writable(file)?);
                }
                // The command has checked the file that is there.
                "-output-named-in" => {
                    let names = PathBuf::from(next()?);
                    request.output = Some(writable(named_in(&names)?)?);
                    request.told = Some(names.with_file_name("output"));
                }
                "-notime" => request.no_time = true,
                "-statistics" => request.statistics = true,
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

/// The bits to record at a level of detail.
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

/// The path that a file holds: Octave's texts cannot hold every path.
pub(crate) fn named_in(names: &Path) -> Result<PathBuf, String> {
    let bytes = std::fs::read(names).map_err(|error| format!("cannot read {}: {error}", names.display()))?;
    Ok(PathBuf::from(OsString::from_vec(bytes)))
}

/// Refuses to replace a file that Treering did not write.
pub(crate) fn check_ours(file: &Path) -> Result<(), String> {
    const STARTS: [&[u8]; 2] = [b"\x89trg", b"\x89trl"];
    let mut start = [0; 4];
    if !file.is_file() {
        return Ok(());
    }
    let read = File::open(file).and_then(|mut file| file.read(&mut start));
    match read {
        Ok(length) if length > 0 && !STARTS.contains(&&start[..length]) => {
            Err(format!("{} exists and is no profile of Treering; name another file", file.display()))
        }
        // The failure to read is reported when writing fails.
        _ => Ok(()),
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
    fn files_that_are_no_profiles_are_not_replaced() {
        let folder = treering_temporary::Folder::create("test").unwrap();
        let file = |name: &str, bytes: &[u8]| {
            let path = folder.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            path
        };
        for (name, bytes, is_ours) in [
            ("notes.txt", &b"my notes"[..], false),
            ("short", b"\x89", false),
            ("empty", b"", true),
            ("ours.trg", b"\x89trg\r\n\x1a\n", true),
            ("live.trg", b"\x89trl\r\n\x1a\n", true),
        ] {
            let path = file(name, bytes);
            let words = format!("-output {}", path.display());
            assert_eq!(read(&words).is_ok(), is_ours, "{name}");
            assert_eq!(std::fs::read(&path).unwrap(), bytes, "{name}");
        }
    }

    #[test]
    fn unknown_options_and_values_are_refused() {
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
