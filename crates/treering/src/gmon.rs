//! `gmon.out` files, and the programs that wrote them.

use std::fs::{File, Metadata};
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use treering_formats::gmon::{ArcCount, Gmon, Program, read, read_of_width};
use treering_formats::{Error, Format, ReadError, ReadReport};
use treering_profile::Profile;
use treering_symbols::{CodeLayout, Options, Problem, ReportedCalls, code_layout, follow_calls};

use crate::failure::Failure;

/// A `gmon.out` that was opened together with its program.
pub struct Opened {
    /// Arcs and costs, of functions that are addresses yet.
    pub profile: Profile,
    /// The notes of its reader.
    pub report: ReadReport,
    /// Warnings about the program; lower case, no full stop.
    pub warnings: Vec<String>,
}

/// The possible errors: in the file itself, or in the statement about its program.
pub enum Refused {
    /// The file is damaged.
    File(Error),
    /// Its program is missing or is another one.
    Program(Failure),
}

/// Opens a `gmon.out` with its program, or else with one that is found beside it. `name` is the name of the
/// file for messages.
pub fn open(path: &Path, name: &str, bytes: &[u8], program: Option<&Path>) -> Result<Opened, Refused> {
    let Joined { mut gmon, report, program, layout, warnings } = join(path, name, bytes, program)?;
    gmon.arcs = settled(gmon.arcs, &layout);
    let absolute = std::fs::canonicalize(&program).unwrap_or(program);
    let joined = Program {
        path: absolute.to_string_lossy().into_owned(),
        build_id: layout.build_id.clone(),
        functions: layout.functions.clone(),
    };
    let mut profile = gmon.profile(&joined).map_err(damaged)?;
    note(&mut profile, &layout);
    Ok(Opened { profile, report, warnings })
}

fn damaged(error: impl Into<ReadError>) -> Refused {
    Refused::File(error.into().of(Format::Gmon))
}

/// The arcs, in which pieces of a function that the compiler divided count as that function.
fn settled(arcs: Vec<ArcCount>, layout: &CodeLayout) -> Vec<ArcCount> {
    let reported = |arc: ArcCount| ReportedCalls {
        site: arc.from,
        caller: Some(arc.from),
        callee: arc.callee,
        calls: arc.calls,
    };
    let settled = layout.settle(arcs.into_iter().map(reported).collect()).into_iter();
    let arc = |call: ReportedCalls| ArcCount {
        from: call.caller.unwrap_or(call.site),
        callee: call.callee,
        calls: call.calls,
    };
    settled.map(arc).collect()
}

/// The bins of a `gmon.out` that was opened before, and where the functions of its program lie.
pub fn histograms(path: &Path, program: Option<&Path>) -> Result<(Gmon, CodeLayout), Failure> {
    let name = path.display().to_string();
    if path == Path::new("-") {
        return Err(
            Failure::new("a histogram is made of a file, as it is read twice").hint("name the gmon.out")
        );
    }
    let bytes =
        std::fs::read(path).map_err(|error| Failure::new(format_args!("cannot read {name}: {error}")))?;
    match join(path, &name, &bytes, program) {
        Ok(joined) => Ok((joined.gmon, joined.layout)),
        Err(Refused::File(error)) => Err(Failure::new(format_args!("{name}: {error}"))),
        Err(Refused::Program(failure)) => Err(failure),
    }
}

/// A file and its program.
struct Joined {
    gmon: Gmon,
    report: ReadReport,
    program: PathBuf,
    layout: CodeLayout,
    warnings: Vec<String>,
}

fn join(path: &Path, name: &str, bytes: &[u8], program: Option<&Path>) -> Result<Joined, Refused> {
    read(bytes).map_err(damaged)?;
    let mut warnings = Vec::new();
    let (program, layout) = match program {
        Some(program) => (program.to_owned(), layout_of(program).map_err(Refused::Program)?),
        None => {
            let found = find(path, name, bytes).map_err(Refused::Program)?;
            if found.0.file_name().is_some_and(|name| name != "a.out") {
                warnings.push(format!("taken for the program that wrote it: {}", found.0.display()));
            }
            found
        }
    };
    let (mut gmon, report) = read_of_width(bytes, layout.wide).map_err(damaged)?;
    if layout.is_windows {
        gmon.keep_short_counts();
    }
    warnings.extend(misfit(name, &program, &gmon, &layout).map_err(Refused::Program)?);
    warnings.extend(is_newer(&program, path));
    Ok(Joined { gmon, report, program, layout, warnings })
}

/// The known gaps of a file of this kind.
fn note(profile: &mut Profile, layout: &CodeLayout) {
    if layout.makes_threads {
        profile.metadata.note(
            "the program can make threads: calls that threads make at the same time are lost in part where the C \
             library counts them, so calls and what is divided by them may be too low by half",
        );
    }
    if layout.is_dynamic {
        profile
            .metadata
            .note("a gmon.out holds nothing of shared libraries, neither their time nor their calls");
    }
}

fn layout_of(program: &Path) -> Result<CodeLayout, Failure> {
    let layout = code_layout(program, &Options::default());
    let layout = layout.map_err(|problem| match problem {
        Problem::Missing { path } => Failure::new(format_args!("there is no program {}", path.display()))
            .hint("--program names the program that wrote the gmon.out"),
        other => Failure::new(format_args!("cannot use the program: {other}")),
    })?;
    if layout.functions.is_empty() {
        let failure =
            Failure::new(format_args!("{} has no names of functions: it was stripped", program.display()));
        return Err(failure.hint("name the program as it was before that: --program PROGRAM"));
    }
    Ok(layout)
}

/// How far behind the start of a function it reports its call at most.
const PROLOGUE: u64 = 128;

/// Where the file and the program contradict each other: as an error if it is another program.
fn misfit(name: &str, program: &Path, gmon: &Gmon, layout: &CodeLayout) -> Result<Vec<String>, Failure> {
    let shown = program.display();
    let another = |why: String| {
        Err(Failure::new(format_args!("{name} was not written by {shown} as it is now: {why}"))
            .hint("name the program that wrote it, as it was then: --program PROGRAM"))
    };
    let end = layout.code.last().map_or(0, |code| code.end);
    // The C library rounds up the end of the sampled code.
    if let Some(beyond) = gmon.histograms.iter().find(|histogram| histogram.high > end.saturating_add(64)) {
        let (low, high) = (beyond.low, beyond.high);
        return another(format!(
            "its samples are of the addresses {low:#x} to {high:#x}, and the program's code ends at {end:#x}"
        ));
    }
    let mut entries: Vec<u64> = gmon.arcs.iter().map(|arc| arc.callee).collect();
    entries.sort_unstable();
    entries.dedup();
    // The C library states the place behind the call by which a function reports itself, we its start.
    let behind_calls = follow_calls(program, &entries).ok().flatten();
    let is_entry = |(at, address): (usize, &u64)| {
        let behind = layout.functions.partition_point(|function| function.start <= *address);
        let function = behind.checked_sub(1).map(|at| &layout.functions[at]);
        let into =
            function.filter(|function| *address < function.end).map(|function| address - function.start);
        let reports = behind_calls.as_ref().is_none_or(|behind| behind[at]);
        into.is_some_and(|into| into == 0 || into <= PROLOGUE && reports)
    };
    let wrong = entries.iter().enumerate().filter(|entry| !is_entry(*entry)).count();
    if wrong * 2 > entries.len() {
        let all = entries.len();
        return another(format!(
            "of {all} addresses at which calls arrived, {wrong} are not the start of a function"
        ));
    }
    let mut warnings = Vec::new();
    if wrong > 0 {
        warnings.push(format!(
            "of {} addresses at which calls arrived, {wrong} are not the start of a function of {shown}: it may have \
             been built again since",
            entries.len()
        ));
    }
    if !layout.reports_calls && !entries.is_empty() {
        warnings
            .push(format!("{shown} was not built with -pg, so another program must have written the file"));
    }
    Ok(warnings)
}

/// The note that a program was changed after the file was written, if it was.
fn is_newer(program: &Path, file: &Path) -> Option<String> {
    let time = |path: &Path| std::fs::metadata(path).ok()?.modified().ok();
    let newer = time(program)? > time(file)?;
    let shown = program.display();
    newer.then(|| {
        format!(
            "{shown} is newer than it: if it was built again since, what follows is of the wrong functions"
        )
    })
}

/// How many files beside a `gmon.out` are looked at.
const LOOKED_AT: usize = 500;

/// The program that wrote a file: `a.out`, or else the only one in the same folder that fits.
fn find(path: &Path, name: &str, bytes: &[u8]) -> Result<(PathBuf, CodeLayout), Failure> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let fitting = |program: &Path| {
        let layout = layout_of(program).ok().filter(|layout| layout.reports_calls)?;
        let (gmon, _) = read_of_width(bytes, layout.wide).ok()?;
        misfit(name, program, &gmon, &layout).ok().map(|_| (program.to_owned(), layout))
    };
    for place in [folder, Path::new(".")] {
        if let Some(found) = ["a.out", "a.exe"].iter().find_map(|name| fitting(&place.join(name))) {
            return Ok(found);
        }
    }
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().take(LOOKED_AT);
    let mut programs: Vec<PathBuf> =
        entries.map(|entry| entry.path()).filter(|path| is_program(path)).collect();
    programs.sort();
    let mut found: Vec<_> = programs.iter().filter_map(|program| fitting(program)).collect();
    if found.len() == 1 {
        return Ok(found.remove(0));
    }
    let hint = format!("name it: --program PROGRAM; it must be as it was when it wrote {name}");
    let imported = format!(
        "for commands without that option, make a profile that knows it: treering import --program PROGRAM {name}"
    );
    if found.is_empty() {
        let message = format!("{name}: the program that wrote it is needed, and none beside it fits");
        return Err(Failure::new(message).hint(hint).hint(imported));
    }
    let names: Vec<_> = found.iter().map(|(program, _)| program.display().to_string()).collect();
    Err(Failure::new(format!("{name}: several programs may have written it: {}", names.join(", ")))
        .hint(hint)
        .hint(imported))
}

fn is_program(path: &Path) -> bool {
    let executable = |data: &Metadata| data.is_file() && data.permissions().mode() & 0o111 != 0;
    let mut magic = [0; 4];
    let is_windows = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("exe"));
    // Programs for Windows are not executable here.
    std::fs::metadata(path).is_ok_and(|data| executable(&data) || is_windows && data.is_file())
        && File::open(path).is_ok_and(|mut file| file.read_exact(&mut magic).is_ok())
        && (&magic == b"\x7fELF" || magic.starts_with(b"MZ"))
}
