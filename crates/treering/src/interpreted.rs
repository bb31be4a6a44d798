//! The text of functions in interpreted languages, which their profiles do not hold: it is read when
//! lines are reported, from files that were not changed since the run. Pages hold it, and that of counted
//! programs, whose profiles with a tree do not hold it either.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use treering_analysis::LineTable;
use treering_profile::{FunctionKind, Profile, Source, StringId};

use crate::source_file::{is_text, source_file};

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
            Ok(text) => {
                let path = &profile.strings[file];
                if was_changed_since(Path::new(path), begin_of(&profile)) {
                    problems
                        .push(format!("{path}: it was changed during the run, so other lines may have run"));
                }
                profile.sources.push(Source { file, text: text.into() });
            }
            Err(problem) => problems.push(format!("{}: {problem}", &profile.strings[file])),
        }
    }
    WithSources { profile, problems }
}

/// The most text that is read for a page, in bytes.
const MOST: usize = 1 << 26;

/// The source files read for a page.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Added {
    /// The folders of the files that were read, and how many of each.
    pub folders: BTreeMap<PathBuf, usize>,
    /// How many files are there that do not look like the source code of this profile.
    pub doubtful: usize,
    /// How many files that were read were changed during the run.
    pub changed: usize,
}

impl Added {
    /// Notes for a user who passes the page on to other people.
    pub fn notes(&self) -> Vec<String> {
        let files: usize = self.folders.values().sum();
        let mut notes = Vec::new();
        if files > 0 {
            let named = self.folders.iter().take(MOST_FOLDERS);
            let named: Vec<String> = named
                .map(|(folder, count)| format!("{} ({count})", folder.display().to_string().escape_debug()))
                .collect();
            let others = self.folders.len().saturating_sub(MOST_FOLDERS);
            let others = if others > 0 { format!(", and {others} other folders") } else { String::new() };
            let files = if files == 1 { "1 source file".to_owned() } else { format!("{files} source files") };
            notes.push(format!(
                "the page has text of {files} of this machine, from {}{others}; --no-sources leaves it out",
                named.join(", ")
            ));
        }
        if self.changed > 0 {
            notes.push(match self.changed {
                1 => "1 source file was changed during the run, so other lines than those shown may have run".to_owned(),
                more => format!("{more} source files were changed during the run, so other lines than those shown may have run"),
            });
        }
        if self.doubtful > 0 {
            notes.push(format!(
                "the profile names {} of this machine that do not look like its source code; their text is left out",
                if self.doubtful == 1 { "1 file".to_owned() } else { format!("{} files", self.doubtful) }
            ));
        }
        notes
    }
}

/// The most folders that a note names.
const MOST_FOLDERS: usize = 20;

/// Reads the text of all files that lines of a profile are in and that it does not hold, where they are source
/// code ([`source_file`]), have all lines that the profile names, and were not changed since the run.
/// Files that cannot be read stay without text, which the page shows.
/// `path` is the profile's file: a run whose time is not known ended before that was written.
pub fn add_sources(profile: &mut Profile, path: &Path) -> Added {
    let written = || std::fs::metadata(path).and_then(|known| known.modified()).ok();
    let is_known = profile.runs.iter().any(|run| run.start_unix_ns > 0);
    let until = if is_known { end_of(profile) } else { written().unwrap_or(UNIX_EPOCH) };
    let mut files: BTreeMap<StringId, u32> = BTreeMap::new();
    for line in profile.lines.entries() {
        let last = files.entry(line.file).or_insert(0);
        *last = line.line.max(*last);
    }
    for source in &profile.sources {
        files.remove(&source.file);
    }
    let mut room = MOST;
    let mut added = Added::default();
    for (file, last) in files {
        let named = PathBuf::from(&profile.strings[file]);
        if !named.is_file() {
            continue;
        }
        let Some(real) = source_file(&named) else {
            added.doubtful += 1;
            continue;
        };
        let Ok(bytes) = read_bytes(&real, until) else { continue };
        let text = String::from_utf8_lossy(&bytes);
        if !is_text(&bytes) || text.lines().count() < last as usize {
            added.doubtful += 1;
            continue;
        }
        room = room.saturating_sub(text.len());
        if room == 0 {
            break;
        }
        added.changed += usize::from(is_known && was_changed_since(&real, begin_of(profile)));
        *added.folders.entry(real.parent().unwrap_or(Path::new("/")).to_owned()).or_insert(0) += 1;
        profile.sources.push(Source { file, text: text.into_owned().into() });
    }
    added
}

/// When the last run had ended.
fn end_of(profile: &Profile) -> SystemTime {
    let ended = profile.runs.iter().map(|run| run.start_unix_ns.saturating_add(run.duration_ns)).max();
    UNIX_EPOCH + Duration::from_nanos(ended.unwrap_or(0))
}

/// When the first run began.
fn begin_of(profile: &Profile) -> SystemTime {
    UNIX_EPOCH + Duration::from_nanos(profile.runs.iter().map(|run| run.start_unix_ns).min().unwrap_or(0))
}

fn was_changed_since(path: &Path, begin: SystemTime) -> bool {
    begin > UNIX_EPOCH
        && std::fs::metadata(path).and_then(|found| found.modified()).is_ok_and(|last| last > begin)
}

/// The text of a file that was not changed since `until`.
fn read(path: &str, until: SystemTime) -> Result<String, String> {
    read_bytes(Path::new(path), until).map(|text| String::from_utf8_lossy(&text).into_owned())
}

fn read_bytes(path: &Path, until: SystemTime) -> Result<Vec<u8>, String> {
    let found = std::fs::metadata(path).map_err(|error| format!("its text is not shown: {error}"))?;
    if !found.is_file() || found.len() > LARGEST {
        return Err("its text is not shown: it is not a regular file, or too large".to_owned());
    }
    if found.modified().unwrap_or(SystemTime::UNIX_EPOCH) > until {
        return Err("its text is not shown: it was changed after the run".to_owned());
    }
    std::fs::read(path).map_err(|error| format!("its text is not shown: {error}"))
}
