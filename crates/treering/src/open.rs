//! Opens a profile of any format that Treering reads, recognised by content.

use std::fmt::Display;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use treering_formats::{Error, Foreign, Format, ReadReport, detect, read_any, read_as, trg};
use treering_profile::{Profile, RecursionRule};
use treering_symbols::{ModuleReport, Problem};

use crate::failure::{Context as _, Failure};
use crate::kept::{hint_for_missing, open_kept};
use crate::live::{self, Fate};
use crate::naming::{Reachable, Wanted, add_lines, add_lines_to_all, name_functions, needs_names};

/// A profile that was opened.
#[derive(Debug)]
pub struct Opened {
    /// The profile.
    pub profile: Profile,
    /// The format of the file.
    pub format: Format,
    /// What a person should know of it, to be printed on standard error; each line starts with
    /// the file's name.
    pub warnings: Vec<String>,
    /// What a person may want to do about a warning.
    pub hint: Option<String>,
}

impl Opened {
    /// Names the addresses of a profile. Instrumented programs leave that to readers; a recording
    /// has any only when it was cut short before it could do so itself.
    fn find_names(&mut self, path: &Path) {
        let wanted = Wanted { inlines: true, sources: true };
        let unfinished = self.profile.metadata.unfinished;
        let profile = std::mem::replace(&mut self.profile, Profile::new(RecursionRule::Full));
        let named = name_functions(profile, Reachable::default(), wanted);
        if unfinished {
            let how = "the recording ended before names were looked up; they are those of the files now on this machine";
            self.warnings.push(format!("{}: {how}", name(path)));
        } else {
            let nameless = once_each(&named.modules).into_iter().filter_map(nameless);
            self.warnings.extend(nameless.map(|text| format!("{}: {text}", name(path))));
        }
        self.profile = named.profile;
    }

    /// Prints the warnings to standard error.
    pub fn print_warnings(&self) {
        for warning in &self.warnings {
            tell!("warning: {warning}");
        }
        if let Some(hint) = &self.hint {
            tell!("hint: {hint}");
        }
    }
}

/// Opens a profile; `-` stands for standard input.
pub fn open_profile(path: &Path) -> Result<Opened, Failure> {
    open(path, None)
}

/// Opens several profiles.
pub fn open_profiles(paths: &[PathBuf]) -> Result<Vec<Opened>, Failure> {
    let mut opened =
        paths.iter().map(|path| open_without_lines(path, None)).collect::<Result<Vec<_>, _>>()?;
    add_lines_to_all(&mut opened.iter_mut().map(|opened| &mut opened.profile).collect::<Vec<_>>());
    Ok(opened)
}

/// Opens a profile of a format that is known, or else recognised by content.
pub fn open(path: &Path, format: Option<Format>) -> Result<Opened, Failure> {
    let mut opened = open_without_lines(path, format)?;
    add_lines(&mut opened.profile);
    Ok(opened)
}

fn open_without_lines(path: &Path, format: Option<Format>) -> Result<Opened, Failure> {
    let mut opened = match open_kept(path) {
        Some(kept) => kept?,
        None => open_file(path, format)?,
    };
    if needs_names(&opened.profile) {
        opened.find_names(path);
    }
    Ok(opened)
}

fn open_file(path: &Path, format: Option<Format>) -> Result<Opened, Failure> {
    let bytes = read_file(path)?;
    let format = format.or_else(|| detect(&bytes));
    match format {
        Some(Format::Live) => open_live(path, &bytes),
        Some(format) => read_as(format, &bytes).map(|read| opened(path, format, read)),
        None => read_any(&bytes).map(|(format, profile, report)| opened(path, format, (profile, report))),
    }
    .map_err(|error| failure(path, &error))
}

fn opened(path: &Path, format: Format, (profile, report): (Profile, ReadReport)) -> Opened {
    Opened { profile, format, warnings: warnings(path, &report), hint: None }
}

fn open_live(path: &Path, bytes: &[u8]) -> Result<Opened, Error> {
    let live::Read { running, writer, fate } = live::read(bytes)?;
    let mut opened = opened(path, Format::Live, (running.profile, running.report));
    let message = live::message(&writer, fate).map(|message| format!("{}: {message}", name(path)));
    opened.warnings.splice(0..0, message);
    opened.hint = (fate == Fate::Runs).then(|| format!("to follow it: treering watch {}", writer.pid));
    Ok(opened)
}

/// The reports on modules, each module once: blocks that were counted and functions of trees are named
/// apart, and have most of their addresses in common.
fn once_each(modules: &[ModuleReport]) -> Vec<&ModuleReport> {
    let mut each: Vec<&ModuleReport> = Vec::new();
    for module in modules {
        match each.iter_mut().find(|known| known.path == module.path) {
            Some(known) if module.unresolved() > known.unresolved() => *known = module,
            Some(_) => {}
            None => each.push(module),
        }
    }
    each
}

/// That addresses in a module have no names, and why, if it is so.
fn nameless(module: &ModuleReport) -> Option<String> {
    let lacks_lines = |problem: &&Problem| **problem == Problem::NoDebugInformation;
    let reason = module.problems.iter().find(|problem| !lacks_lines(problem));
    // A program that was stripped still has the names of what it shares with its libraries.
    let reason = reason.map_or_else(|| "it was stripped".to_owned(), ToString::to_string);
    let (count, path) = (module.unresolved(), &module.path);
    (count > 0).then(|| format!("no names for {count} of the addresses in {path}: {reason}"))
}

/// The bytes of a file, or of standard input for `-`.
pub fn read_file(path: &Path) -> Result<Vec<u8>, Failure> {
    if path == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::stdin().read_to_end(&mut bytes).context("cannot read standard input")?;
        return Ok(bytes);
    }
    std::fs::read(path).map_err(|error| unreadable(path, &error))
}

fn unreadable(path: &Path, error: &std::io::Error) -> Failure {
    let named = name(path);
    let failure = Failure::new(format_args!("cannot read {named}: {}", plain(error)));
    match error.kind() {
        ErrorKind::NotFound => failure.hint(
            hint_for_missing(path)
                .unwrap_or_else(|| "record one with: treering record -- PROGRAM ARGS...".to_owned()),
        ),
        ErrorKind::IsADirectory => failure.hint("name a file in it"),
        _ => failure,
    }
}

/// The error without Rust's `(os error 2)`.
fn plain(error: &std::io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => "there is no such file".to_owned(),
        ErrorKind::IsADirectory => "it is a directory".to_owned(),
        ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string(),
    }
}

fn name(path: &Path) -> impl Display + '_ {
    let text = if path == Path::new("-") { "standard input".into() } else { path.to_string_lossy() };
    text.into_owned()
}

/// For a file that is no profile.
const READABLE: &str = "files that can be read: .trg, the live file of a program that reports its own calls, \
                        folded stacks, pprof, callgrind";

fn failure(path: &Path, error: &Error) -> Failure {
    let named = name(path);
    let failure = Failure::new(format_args!("{named}: {error}"));
    match error {
        Error::Empty => failure.hint("the program that should have written it may have been stopped"),
        Error::Foreign(foreign) => hint_for(*foreign, failure, &named.to_string()),
        Error::Trg(trg::ReadError::NewerVersion { .. }) => {
            failure.hint("a newer treering wrote it; use that one")
        }
        Error::Trg(trg::ReadError::NotTrg) | Error::Unknown { .. } => failure.hint(READABLE),
        _ => failure,
    }
}

fn hint_for(foreign: Foreign, failure: Failure, file: &str) -> Failure {
    match foreign {
        Foreign::PerfData => failure.hint(format_args!(
            "fold it: perf script -i {file} | stackcollapse-perf.pl > stacks.folded; or record with treering record"
        )),
        Foreign::PerfScript => {
            failure.hint(format_args!("fold it: stackcollapse-perf.pl {file} > stacks.folded"))
        }
        Foreign::Elf => failure.hint(format_args!("to profile it: treering record -- {file}")),
        Foreign::Zstd => failure.hint(format_args!("unpack it first: zstd -d {file}")),
        Foreign::Gzip => failure.hint(format_args!("unpack it first: gzip -dk {file}")),
        _ => failure.hint(READABLE),
    }
}

fn warnings(path: &Path, report: &ReadReport) -> Vec<String> {
    report.warnings().iter().map(|warning| format!("{}: {warning}", name(path))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_names_is_told_once_for_each_module() {
        let report = |path: &str, addresses, named| ModuleReport {
            path: path.to_owned(),
            addresses,
            named,
            with_line: 0,
            debug_file: None,
            problems: Vec::new(),
        };
        let reports = [report("/a", 5, 3), report("/b", 4, 4), report("/a", 90, 20), report("/b", 4, 3)];
        let told: Vec<_> = once_each(&reports).into_iter().filter_map(nameless).collect();
        let expected = [("/a", 70), ("/b", 1)]
            .map(|(path, count)| format!("no names for {count} of the addresses in {path}: it was stripped"));
        assert_eq!(told, expected);
    }
}
