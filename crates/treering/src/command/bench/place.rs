//! The archive that a command uses.

use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use treering_archive::{Archive, Error, Id};
use treering_cache::Cache;
use treering_report::plural;

use crate::command::archive::Bucket;
use crate::failure::{Context as _, Failure};

/// The archive.
#[derive(Clone, Debug, clap::Args)]
pub struct Place {
    /// Keep runs in this folder, which can be committed or shared [default: $XDG_DATA_HOME/treering/bench]
    #[arg(long, value_name = "DIR")]
    archive: Option<PathBuf>,
}

impl Place {
    /// The bucket, if it is in one.
    pub fn bucket(&self) -> Option<Bucket> {
        Bucket::named(self.archive.as_deref()?)
    }

    /// The archive as the user named it, if it was named.
    pub fn named(&self) -> Option<String> {
        self.archive.as_ref().map(|archive| archive.display().to_string())
    }

    /// Opens it for reading; it must be there. Of one in a bucket, only the runs are there.
    pub fn open_copy(&self) -> Result<Archive, Failure> {
        let Some(bucket) = self.bucket() else { return self.open_existing() };
        let archive = bucket.open()?;
        warn(&archive);
        Ok(archive)
    }

    /// Opens one in a folder for reading; it must be there.
    pub fn open_existing(&self) -> Result<Archive, Failure> {
        self.no_bucket()?;
        let folder = match &self.archive {
            Some(folder) => folder.clone(),
            None => {
                let folder = default_folder()?;
                if folder.exists() {
                    private(&folder)?;
                }
                folder
            }
        };
        let archive = Archive::open_existing(&folder).map_err(failure)?;
        warn(&archive);
        Ok(archive)
    }

    /// Opens it for writing; it is made if it is not there.
    pub fn open(&self) -> Result<Archive, Failure> {
        self.no_bucket()?;
        let folder = match &self.archive {
            Some(folder) => folder.clone(),
            None => {
                let folder = default_folder()?;
                private(&folder)?;
                folder
            }
        };
        let archive = Archive::open(&folder).map_err(failure)?;
        warn(&archive);
        Ok(archive)
    }

    fn no_bucket(&self) -> Result<(), Failure> {
        let message = "treering bench keeps its runs in a folder, and not in S3";
        self.bucket().map_or(Ok(()), |_| Err(Failure::new(message).hint(ELSEWHERE)))
    }
}

/// Makes the user's own folder, for this user alone, or refuses one that others can change.
fn private(folder: &std::path::Path) -> Result<(), Failure> {
    let opened = Cache::open(folder).context(format_args!("cannot keep runs in {}", folder.display()));
    opened.map(drop).map_err(|failure| failure.hint(ELSEWHERE))
}

const ELSEWHERE: &str = "name a folder of yours: --archive DIR";

/// The user's own folder.
fn default_folder() -> Result<PathBuf, Failure> {
    let cannot = |why: &str| Err(Failure::new(why).hint(ELSEWHERE));
    let Some(home) = std::env::var_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from) else {
        return cannot("there is no home directory to keep runs in");
    };
    let data = std::env::var_os("XDG_DATA_HOME").filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(path) = data.as_ref().filter(|path| !path.is_absolute()) {
        let message = format!("XDG_DATA_HOME is {}, which is not an absolute path", path.display());
        return cannot(&message);
    }
    let owner = |path: &std::path::Path| std::fs::metadata(path).ok().map(|found| found.uid());
    if data.is_none() && !home.is_dir() {
        return cannot(&format!("the home directory is not there: {}", home.display()));
    }
    // As it may be under `sudo`: files of ours would be in the way there.
    if data.is_none() && owner(std::path::Path::new("/proc/self")) != owner(&home) {
        return cannot("the home directory is another user's");
    }
    Ok(data.unwrap_or_else(|| home.join(".local/share")).join("treering/bench"))
}

/// Names the runs that are there and cannot be listed.
pub fn warn(archive: &Archive) {
    const MOST: usize = 5;
    let problems = archive.problems();
    for problem in problems.iter().take(MOST) {
        tell!("warning: {problem}; the run is not listed");
    }
    if problems.len() > MOST {
        let more = plural((problems.len() - MOST) as u64, "run");
        tell!("warning: {more} more cannot be read, which this list leaves out");
    }
}

/// An error with its hint.
pub fn failure(error: Error) -> Failure {
    let failure = Failure::new(&error);
    match error {
        Error::NoArchive(_) => {
            failure.hint("make one: treering bench run -- PROGRAM ARGS, treering bench import FILE, or treering archive add DIR FILES")
        }
        Error::NotArchive(_) => {
            failure.hint("name an empty folder, or one that is not there yet, after --archive")
        }
        Error::Newer { .. } => failure.hint("use that version of treering"),
        Error::Condition { .. } => failure.hint(format_args!(
            "columns: {}; texts stand in single quotes: \"project = 'solve'\"",
            treering_archive::COLUMNS
        )),
        Error::NoRun(_) => failure.hint("treering bench list --all names the runs"),
        Error::Ambiguous(_, ids) => failure.hint(format_args!("write more of it: {}", listed(&ids))),
        Error::Mark { line, .. } => failure.hint(format_args!("it has one line: {line}")),
        Error::Damaged { .. } => failure.hint("take the file from a copy of the archive, or remove it"),
        Error::System { source, .. } => hint_of(failure, source.kind()),
        _ => failure,
    }
}

/// Adds the hint that helps against an error of the operating system with a file of an archive.
pub fn hint_of(failure: Failure, kind: ErrorKind) -> Failure {
    match kind {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
            failure.hint("nothing that was kept is lost; make room there, and do the same again")
        }
        ErrorKind::ReadOnlyFilesystem => {
            failure.hint("nothing can be written there; a copy of the folder can be")
        }
        ErrorKind::PermissionDenied => failure.hint(
            "this user may not do that there; the folder's owner can allow it to a group: chmod -R g+rwX",
        ),
        _ => failure,
    }
}

/// Whether an error is of the archive as a whole, so that other files fare no better.
pub fn is_of_archive(error: &Error) -> bool {
    use ErrorKind::{PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    let kinds = [PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull];
    matches!(error, Error::System { source, .. } if kinds.contains(&source.kind()))
}

/// The first of some runs, by as many digits as tell them apart.
fn listed(ids: &[Id]) -> String {
    const MOST: usize = 5;
    let digits = (6..64).find(|&digits| {
        let mut heads: Vec<&str> = ids.iter().map(|id| &id.as_str()[..digits]).collect();
        heads.dedup();
        heads.len() == ids.len()
    });
    let shown: Vec<&str> = ids.iter().take(MOST).map(|id| &id.as_str()[..digits.unwrap_or(64)]).collect();
    let more = if ids.len() > MOST { ", …" } else { "" };
    format!("{}{more}", shown.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `chmod` changes nothing on a medium that cannot be written.
    #[test]
    fn read_only_media_have_a_hint_of_their_own() {
        let hint = |kind| format!("{:?}", hint_of(Failure::new("cannot write"), kind));
        assert!(!hint(ErrorKind::ReadOnlyFilesystem).contains("chmod"));
        assert!(hint(ErrorKind::PermissionDenied).contains("chmod"));
    }
}
