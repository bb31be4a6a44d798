//! The text of functions in interpreted languages, which their profiles do not hold: it is read when
//! lines are reported, from files that were not changed since the run. Pages hold it, and that of counted
//! programs, whose profiles with a tree do not hold it either.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use treering_analysis::LineTable;
use treering_profile::{FunctionKind, Profile, Source, StringId};

/// Files that are larger are not read.
const LARGEST: u64 = 1 << 24;

/// A profile with the sources that were found.
pub struct WithSources {
    /// The profile.
    pub profile: Profile,
    /// Why the text of a file is not there.
    pub problems: Vec<String>,
}

/// Whether nothing has to be read: the lines are of compiled code, or their text is there.
pub fn has_sources(profile: &Profile, table: &LineTable) -> bool {
    let kind = profile.functions.entries()[table.function.index()].kind;
    let is_interpreted =
        matches!(kind, FunctionKind::Interpreted | FunctionKind::Script | FunctionKind::Anonymous);
    !is_interpreted || missing(profile, table).is_empty()
}

fn missing(profile: &Profile, table: &LineTable) -> Vec<StringId> {
    let mut files: Vec<StringId> = table.lines.iter().map(|row| row.file).collect();
    files.dedup();
    files.retain(|&file| !profile.sources.iter().any(|source| source.file == file));
    files
}

/// Reads the text of the lines of a table.
pub fn with_sources(mut profile: Profile, table: &LineTable) -> WithSources {
    let mut problems = Vec::new();
    for file in missing(&profile, table) {
        match read(&profile.strings[file], end_of(&profile)) {
            Ok(text) => profile.sources.push(Source { file, text: text.into() }),
            Err(problem) => problems.push(format!("{}: {problem}", &profile.strings[file])),
        }
    }
    WithSources { profile, problems }
}

/// The most text that is read for a page, in bytes.
const MOST: usize = 1 << 26;

/// Reads the text of all files that lines of a profile are in and that it does not hold, where they were not
/// changed since the run; how many files it was. What cannot be read stays without text, which the page shows.
/// `path` is the profile's file: a run whose time is not known ended before that was written.
pub fn add_sources(profile: &mut Profile, path: &Path) -> usize {
    let written = || std::fs::metadata(path).and_then(|known| known.modified()).ok();
    let is_known = profile.runs.iter().any(|run| run.start_unix_ns > 0);
    let until = if is_known { end_of(profile) } else { written().unwrap_or(UNIX_EPOCH) };
    let mut files: Vec<StringId> = profile.lines.entries().iter().map(|line| line.file).collect();
    files.sort_unstable();
    files.dedup();
    files.retain(|&file| !profile.sources.iter().any(|source| source.file == file));
    let (mut room, before) = (MOST, profile.sources.len());
    for file in files {
        let Ok(text) = read(&profile.strings[file], until) else { continue };
        room = room.saturating_sub(text.len());
        if room == 0 {
            break;
        }
        profile.sources.push(Source { file, text: text.into() });
    }
    profile.sources.len() - before
}

/// When the last run had ended.
fn end_of(profile: &Profile) -> SystemTime {
    let ended = profile.runs.iter().map(|run| run.start_unix_ns.saturating_add(run.duration_ns)).max();
    UNIX_EPOCH + Duration::from_nanos(ended.unwrap_or(0))
}

/// The text of a file that was not changed since `until`.
fn read(path: &str, until: SystemTime) -> Result<String, String> {
    let found = std::fs::metadata(path).map_err(|error| format!("its text is not shown: {error}"))?;
    if !found.is_file() || found.len() > LARGEST {
        return Err("its text is not shown: it is not a regular file, or too large".to_owned());
    }
    if found.modified().unwrap_or(SystemTime::UNIX_EPOCH) > until {
        return Err("its text is not shown: it was changed after the run".to_owned());
    }
    let text = std::fs::read(path).map_err(|error| format!("its text is not shown: {error}"))?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}
