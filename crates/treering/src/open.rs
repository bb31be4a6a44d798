//! Opens a profile of any format that Treering reads, recognised by content.

use std::fmt::Display;
use std::fs::File;
use std::io::{BufReader, ErrorKind, IsTerminal as _, Read};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use treering_analysis::{function_name, limit_arcs, tell_builds_apart};
use treering_formats::{
    Error, Foreign, Format, ReadError, ReadReport, detect, gperftools, otlp, perf_script, pprof, read_any,
    read_as, v8_log,
};
use treering_proc::reason;
use treering_profile::{Profile, RecursionRule};
use treering_symbols::{ModuleReport, Problem};

use crate::binaries::Here;
use crate::count_folder::{hint_for_missing, open_count_folder};
use crate::failure::{Context as _, Failure};
use crate::gmon::{self, Refused};
use crate::live::{self, Fate};
use crate::naming::{Reachable, Wanted, add_lines, add_lines_to_all, name_functions, needs_names};
use crate::perf_data;
use crate::word::word;
use crate::working::Working;

/// A profile that was opened.
#[derive(Debug)]
pub struct Opened {
    /// The profile.
    pub profile: Profile,
    /// The format of the file.
    pub format: Format,
    /// Warnings for the user, to be printed on standard error; each line starts with
    /// the file's name.
    pub warnings: Vec<String>,
    /// The action that a warning suggests.
    pub hint: Option<String>,
}

impl Opened {
    /// Corrects and adds what the file's format leaves to its readers.
    fn complete(&mut self, path: &Path) {
        if self.format.states_arcs() {
            self.limit_arcs(path);
        }
        if needs_names(&self.profile) {
            self.find_names(path);
        }
    }

    /// Adds lines, and the builds of functions that have the same name in several.
    fn finish(&mut self) {
        add_lines(&mut self.profile);
        tell_builds_apart(&mut self.profile);
    }

    /// Names the addresses of a profile. Instrumented programs leave that to readers; a recording
    /// has any only when it was cut short before it could do so itself.
    fn find_names(&mut self, path: &Path) {
        // Costs that are known by function only cannot be divided among those inlined in it.
        let by_address = self.format != Format::Gmon;
        let wanted = Wanted { inlines: by_address, sources: true, addresses: by_address };
        let unfinished = self.profile.metadata.unfinished;
        let profile = std::mem::replace(&mut self.profile, Profile::new(RecursionRule::Full));
        let named = name_functions(profile, Reachable::default(), wanted);
        if unfinished {
            let how = "the recording ended before names were looked up; they come from the files that are on this machine now";
            self.warnings.push(format!("{}: {how}", name(path)));
        } else {
            let nameless = once_each(&named.modules).into_iter().filter_map(nameless);
            self.warnings.extend(nameless.map(|text| format!("{}: {text}", name(path))));
        }
        self.profile = named.profile;
        if self.format == Format::Gmon {
            // Callers are known by function; the lines at which those begin do not call.
            self.profile.arcs.iter_mut().for_each(|arc| arc.call_site = None);
        }
    }

    /// Says so when the file's arcs cost more than the functions they lead to, and limits them to that.
    fn limit_arcs(&mut self, path: &Path) {
        let metrics: Vec<_> = self.profile.metrics().map(|(id, metric)| (id, metric.name.clone())).collect();
        for (id, metric) in metrics {
            let Some(excess) = limit_arcs(&mut self.profile, id) else { continue };
            // Valgrind itself is off by a few: an excess that no report would show is not worth a warning.
            let visible = u128::from(self.profile.run_cost(id) / 200);
            if excess.stated - u128::from(excess.whole) <= visible {
                continue;
            }
            let function = function_name(&self.profile, excess.worst);
            self.warnings.push(format!(
                "{}: arcs contradict the costs of functions (of functions: {}): the file gives {} {metric} to \
                 arcs into {function}, whose total is {}; arcs are reduced to the total",
                name(path),
                excess.functions,
                excess.stated,
                excess.whole
            ));
        }
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
    open(path, None, None)
}

/// Opens a profile, and returns the bytes of its file too, as a pipe can be read only once; no bytes of a folder, nor of a
/// text that was read line by line.
pub fn open_with_content(path: &Path) -> Result<(Opened, Option<Vec<u8>>), Failure> {
    let (mut opened, content) = open_without_lines(path, None, None)?;
    opened.finish();
    Ok((opened, content))
}

/// Opens the profile in the bytes of a file, which has been read.
pub fn open_content(path: &Path, bytes: &[u8]) -> Result<Opened, Failure> {
    let mut opened = open_bytes(path, bytes, None, None)?;
    opened.complete(path);
    opened.finish();
    Ok(opened)
}

/// Opens a profile, of a program that is named for formats that know addresses only.
pub fn open_profile_of(path: &Path, program: Option<&Path>) -> Result<Opened, Failure> {
    open(path, None, program)
}

/// Opens several profiles.
pub fn open_profiles(paths: &[PathBuf]) -> Result<Vec<Opened>, Failure> {
    let mut opened = paths
        .iter()
        .map(|path| Ok(open_without_lines(path, None, None)?.0))
        .collect::<Result<Vec<_>, _>>()?;
    add_lines_to_all(&mut opened.iter_mut().map(|opened| &mut opened.profile).collect::<Vec<_>>());
    Ok(opened)
}

/// Opens a profile of a format that is known, or else recognised by content; and of a program that is
/// known, or else found where the format needs it.
pub fn open(path: &Path, format: Option<Format>, program: Option<&Path>) -> Result<Opened, Failure> {
    let (mut opened, _) = open_without_lines(path, format, program)?;
    opened.finish();
    Ok(opened)
}

/// Opens the samples of a pprof profile that have all of these labels.
pub fn open_labelled(path: &Path, labels: &[(String, String)]) -> Result<Opened, Failure> {
    let bytes = read_file(path)?;
    let (format, read) = match detect(&bytes) {
        Some(Format::Pprof) => (
            Format::Pprof,
            pprof::read_labelled(&bytes, labels).map_err(|error| failure(path, &error.of(Format::Pprof)))?,
        ),
        Some(Format::Otlp) => (
            Format::Otlp,
            otlp::read_labelled(&bytes, labels).map_err(|error| failure(path, &error.of(Format::Otlp)))?,
        ),
        _ => {
            let named = name(path);
            let message =
                format!("{named}: neither pprof nor OpenTelemetry's; only those profiles have labels");
            return Err(Failure::new(message));
        }
    };
    let mut opened = opened(path, format, read);
    opened.complete(path);
    opened.finish();
    Ok(opened)
}

fn open_without_lines(
    path: &Path,
    format: Option<Format>,
    program: Option<&Path>,
) -> Result<(Opened, Option<Vec<u8>>), Failure> {
    let reading = Working::on(format!("reading {}", name(path)));
    let (mut opened, content) = match open_count_folder(path) {
        Some(kept) => (kept?, None),
        None => open_file(path, format, program)?,
    };
    drop(reading);
    if program.is_some() && opened.format != Format::Gmon {
        let message =
            format!("--program is for gmon.out files, and {} is of the format {}", name(path), opened.format);
        return Err(Failure::new(message));
    }
    opened.complete(path);
    Ok((opened, content))
}

/// Opens a file, and returns its bytes too if all of them were in memory.
fn open_file(
    path: &Path,
    format: Option<Format>,
    program: Option<&Path>,
) -> Result<(Opened, Option<Vec<u8>>), Failure> {
    let mut input = input(path)?;
    let mut bytes = Vec::new();
    let beginning = input.by_ref().take(BEGINNING).read_to_end(&mut bytes);
    beginning.map_err(|error| unreadable(path, &error))?;
    if format.is_none_or(|format| format == Format::PerfScript) && is_long_text(&bytes) {
        let input = BufReader::with_capacity(1 << 16, bytes.as_slice().chain(input));
        let read = perf_script::read_from(input).map_err(|error| error.of(Format::PerfScript));
        return read
            .map(|read| (opened(path, Format::PerfScript, read), None))
            .map_err(|error| failure(path, &error));
    }
    input.read_to_end(&mut bytes).map_err(|error| unreadable(path, &error))?;
    Ok((open_bytes(path, &bytes, format, program)?, Some(bytes)))
}

fn open_bytes(
    path: &Path,
    bytes: &[u8],
    format: Option<Format>,
    program: Option<&Path>,
) -> Result<Opened, Failure> {
    match format.or_else(|| detect(bytes)) {
        Some(Format::Live) => open_live(path, bytes),
        Some(Format::PerfData) => {
            perf_data::read(path, bytes).map(|read| opened(path, Format::PerfData, read))
        }
        Some(Format::Gperftools) => gperftools::read_with(bytes, &mut Here::default())
            .map(|read| opened(path, Format::Gperftools, read))
            .map_err(|error| error.of(Format::Gperftools)),
        Some(Format::V8Log) => v8_log::read_with(bytes, &mut Here::default())
            .map(|read| opened(path, Format::V8Log, read))
            .map_err(|error| error.of(Format::V8Log)),
        Some(Format::Gmon) => return open_gmon(path, bytes, program),
        Some(format) => read_as(format, bytes).map(|read| opened(path, format, read)),
        None => read_any(bytes).map(|(format, profile, report)| opened(path, format, (profile, report))),
    }
    .map_err(|error| failure(path, &error))
}

fn opened(path: &Path, format: Format, (profile, report): (Profile, ReadReport)) -> Opened {
    Opened { profile, format, warnings: warnings(path, &report), hint: None }
}

fn open_live(path: &Path, bytes: &[u8]) -> Result<Opened, Error> {
    let live::Read { running, writer, fate } = live::read(bytes)?;
    let message =
        live::message(&writer, fate, running.state).map(|message| format!("{}: {message}", name(path)));
    let mut opened = opened(path, Format::Live, (running.profile, running.report));
    opened.warnings.splice(0..0, message);
    opened.hint = (fate == Fate::Runs).then(|| format!("to follow it: treering watch {}", writer.pid));
    Ok(opened)
}

fn open_gmon(path: &Path, bytes: &[u8], program: Option<&Path>) -> Result<Opened, Failure> {
    let found =
        gmon::open(path, &name(path).to_string(), bytes, program).map_err(|refused| match refused {
            Refused::File(error) => failure(path, &error),
            Refused::Program(failure) => failure,
        })?;
    let mut opened = opened(path, Format::Gmon, (found.profile, found.report));
    opened.warnings.extend(found.warnings.iter().map(|warning| format!("{}: {warning}", name(path))));
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

/// The note that addresses in a module have no names, and why; nothing if they have.
fn nameless(module: &ModuleReport) -> Option<String> {
    let lacks_lines = |problem: &&Problem| **problem == Problem::NoDebugInformation;
    let reason = module.problems.iter().find(|problem| !lacks_lines(problem));
    // A program that was stripped still has the names of what it shares with its libraries.
    let reason = reason.map_or_else(|| "it was stripped".to_owned(), ToString::to_string);
    let (count, path) = (module.unresolved(), &module.path);
    (count > 0).then(|| format!("no names for {count} of the addresses in {path}: {reason}"))
}

/// How much is read of a file before it is known whether all of it has to be in memory.
const BEGINNING: u64 = 1 << 16;

/// Whether a file that begins like this is read line by line rather than as a whole: the output of perf
/// script has gigabytes.
fn is_long_text(beginning: &[u8]) -> bool {
    const GZIP: [u8; 2] = [0x1f, 0x8b];
    beginning.len() as u64 == BEGINNING
        && !beginning.starts_with(&GZIP)
        && detect(beginning) == Some(Format::PerfScript)
}

fn input(path: &Path) -> Result<Box<dyn Read>, Failure> {
    if path == Path::new("-") {
        return Ok(Box::new(std::io::stdin().lock()));
    }
    let file = File::open(path).map_err(|error| unreadable(path, &error))?;
    refuse_device(path, &file)?;
    Ok(Box::new(file))
}

/// Devices such as `/dev/zero` have no end. A terminal has one, which a user types.
fn refuse_device(path: &Path, file: &File) -> Result<(), Failure> {
    let is_device = file.metadata().is_ok_and(|metadata| metadata.file_type().is_char_device());
    if is_device && !file.is_terminal() {
        return Err(Failure::new(format_args!("cannot read {}: it is a device", path.display())));
    }
    Ok(())
}

/// The bytes of a file, or of standard input for `-`.
pub fn read_file(path: &Path) -> Result<Vec<u8>, Failure> {
    if path == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::stdin().read_to_end(&mut bytes).context("cannot read standard input")?;
        return Ok(bytes);
    }
    let mut bytes = Vec::new();
    input(path)?.read_to_end(&mut bytes).map_err(|error| unreadable(path, &error))?;
    Ok(bytes)
}

/// When a file, or for `-` the one at standard input, was written: nanoseconds since 1970. 0 if that is not known.
pub fn written_unix_ns(path: &Path) -> u64 {
    let file = if path == Path::new("-") { Path::new("/dev/stdin") } else { path };
    let written = std::fs::metadata(file).and_then(|found| found.modified()).ok();
    let since = written.and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    since.and_then(|since| u64::try_from(since.as_nanos()).ok()).unwrap_or(0)
}

fn unreadable(path: &Path, error: &std::io::Error) -> Failure {
    let named = name(path);
    let failure = Failure::new(format_args!("cannot read {named}: {}", why(error)));
    match error.kind() {
        ErrorKind::NotFound => failure.hint(
            hint_for_missing(path)
                .unwrap_or_else(|| "record one with: treering record -- PROGRAM ARGS...".to_owned()),
        ),
        ErrorKind::IsADirectory => match Foreign::by_file_name(&named.to_string()) {
            Some(foreign) => hint_for(foreign, failure, path),
            None => failure.hint("name a file in it"),
        },
        _ => failure,
    }
}

/// Why a file cannot be read.
fn why(error: &std::io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => "there is no such file".to_owned(),
        ErrorKind::IsADirectory => "it is a directory".to_owned(),
        _ => reason(error),
    }
}

fn name(path: &Path) -> impl Display + '_ {
    let text = if path == Path::new("-") { "standard input".into() } else { path.to_string_lossy() };
    text.into_owned()
}

/// For a file that is no profile.
const READABLE: &str = "the formats that Treering reads are listed by: treering import --help";

fn failure(path: &Path, error: &Error) -> Failure {
    let named = name(path);
    let failure = Failure::new(format_args!("{named}: {error}"));
    match error {
        Error::Empty => failure.hint("the program that should have written it may have been stopped"),
        Error::Foreign(foreign) => hint_for(*foreign, failure, path),
        Error::CompressedForeign(Foreign::Gzip) => {
            let twice =
                format!("unpack it, both times: gzip -dc {} | gzip -dc | treering report -", word(path));
            failure.hint(twice)
        }
        Error::CompressedForeign(foreign) => {
            let failure = failure.hint(format_args!("unpack it first: gzip -dk {}", word(path)));
            let unpacked = if path.extension() == Some("gz".as_ref()) {
                path.with_extension("")
            } else {
                path.to_owned()
            };
            hint_for(*foreign, failure, &unpacked)
        }
        Error::Read {
            format: Format::Trg,
            error: ReadError { problem: treering_formats::Problem::OtherFormat(_), .. },
        }
        | Error::Unknown { .. } => match Foreign::by_file_name(&named.to_string()) {
            Some(foreign) => {
                let failure = Failure::new(format_args!(
                    "{named}: not a profile that can be read: it seems to be {foreign}"
                ));
                hint_for(foreign, failure, path)
            }
            None => failure.hint(READABLE),
        },
        Error::Read { format, error } => match hint_for_problem(*format, &error.problem) {
            Some(hint) => failure.hint(hint),
            None => failure,
        },
        _ => failure,
    }
}

fn hint_for_problem(format: Format, problem: &treering_formats::Problem) -> Option<&'static str> {
    use treering_formats::Problem;
    Some(match (format, problem) {
        (Format::Trg, Problem::Unsupported(_)) => "a newer treering wrote it; use that one",
        (Format::Gmon, Problem::PartCutShort { .. }) => {
            "the program may have been stopped while it wrote the file; run it again"
        }
        (Format::Otlp, Problem::Unsupported(_)) => {
            "have the collector write profiles by a schema of 2025 or later, or pprof"
        }
        (Format::SwiProfile, Problem::Expected(_)) => {
            "write it with quotes: print/1 or writeq/1, not write/1"
        }
        _ => return None,
    })
}

fn hint_for(foreign: Foreign, failure: Failure, path: &Path) -> Failure {
    failure.hint(foreign.advice(&path.to_string_lossy(), &word(path)).unwrap_or_else(|| READABLE.to_owned()))
}

fn warnings(path: &Path, report: &ReadReport) -> Vec<String> {
    report.warnings().iter().map(|warning| format!("{}: {warning}", name(path))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A path with blanks was as many words of the command that a hint tells.
    #[test]
    fn hints_name_files_as_words_of_a_shell() {
        let hints = |path: &str, start: &[u8]| {
            let error = treering_formats::read_any(start).expect_err("it is not read");
            format!("{:?}", failure(Path::new(path), &error))
        };
        assert!(hints("sp ace/a b.xz", b"\xfd7zXZ\0").contains("xz -dk 'sp ace/a b.xz'"));
        assert!(hints("a/b.xz", b"\xfd7zXZ\0").contains("xz -dk a/b.xz"));
    }

    #[test]
    fn nameless_addresses_are_reported_once_for_each_module() {
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
