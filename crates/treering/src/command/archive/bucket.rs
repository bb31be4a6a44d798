//! Archives in S3: `s3://BUCKET/PREFIX` in the place of a folder.
//!
//! Commands work on a copy of the archive in the user's folder for caches, which `treering-query` brings up to date, and
//! which it puts back. Objects are named by their content, so a copy lacks files and never has wrong ones.

use std::path::{Path, PathBuf};

use treering_archive::{Archive, Id};
use treering_fleet::Tables;
use treering_temporary::Folder;

use super::compact::wrong;
use crate::command::bench::place::failure;
use crate::companion;
use crate::failure::{Context as _, Failure};
use crate::working::Working;

/// A part of a bucket that is an archive.
#[derive(Clone, Debug)]
pub struct Bucket {
    url: String,
}

/// Whether a place is in S3.
pub fn is_bucket(place: &Path) -> bool {
    place.as_os_str().as_encoded_bytes().starts_with(b"s3://")
}

/// The exit status of `treering-query` when somebody else has changed the tables meanwhile.
const OTHERS_WERE_FIRST: i32 = 3;

/// How often the tables are changed anew when others were first.
const TRIES: usize = 20;

impl Bucket {
    /// The bucket that a place names, if it names one.
    pub fn named(place: &Path) -> Option<Self> {
        is_bucket(place).then(|| Self { url: place.display().to_string() })
    }

    /// The folder of the copy, which other users cannot change.
    pub fn copy(&self) -> Result<PathBuf, Failure> {
        // Equal buckets of two stores are two archives.
        let stores = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"].map(std::env::var_os);
        let store = stores.into_iter().flatten().next().unwrap_or_default();
        let name = Id::of(format!("{}\n{}", store.display(), self.url.trim_end_matches('/')).as_bytes());
        let caches = crate::cache::folder("archives").and_then(|_| crate::cache::directory());
        let folder = caches.map(|caches| caches.join("archives").join(name.as_str()));
        let folder = folder.ok_or_else(|| {
            Failure::new(format_args!("there is no private folder to keep a copy of {} in", self.url))
                .hint("XDG_CACHE_HOME names another one than ~/.cache")
        })?;
        std::fs::create_dir_all(&folder).context(format_args!("cannot make {}", folder.display()))?;
        Ok(folder)
    }

    /// Opens a copy with the runs as they are in the bucket now, in the user's folder for them.
    pub fn open(&self) -> Result<Archive, Failure> {
        self.open_in(&self.copy()?)
    }

    /// The same in another folder.
    pub fn open_in(&self, folder: &Path) -> Result<Archive, Failure> {
        self.fetch(folder, "runs", "")?;
        Archive::open_existing(folder).map_err(failure)
    }

    /// Brings the profiles of some runs into a copy.
    pub fn fetch_profiles<'a>(
        &self,
        archive: &Archive,
        runs: impl IntoIterator<Item = &'a Id>,
    ) -> Result<(), Failure> {
        let mut names = String::new();
        for run in runs {
            // One that cannot be read is told of by those who read it.
            let profiles = archive.read(run).map(|manifest| manifest.profiles).unwrap_or_default();
            profiles
                .iter()
                .for_each(|file| names += &(self.name(archive, &archive.profile_path(file)) + "\n"));
        }
        self.fetch(archive.folder(), "named", &names).map(drop)
    }

    /// The name of the object that is a file of a copy.
    pub fn name(&self, archive: &Archive, path: &Path) -> String {
        path.strip_prefix(archive.folder()).unwrap_or(path).display().to_string()
    }

    /// Brings the tables into a copy.
    pub fn fetch_tables(&self, folder: &Path) -> Result<(), Failure> {
        self.fetch(folder, "tables", "").map(drop)
    }

    fn fetch(&self, folder: &Path, what: &str, input: &str) -> Result<String, Failure> {
        let _working = Working::on(format!("reading {}", self.url));
        let output = companion::run(&["fetch", &self.url, what], Some(folder), input, None)?;
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// Puts the runs of a folder into the bucket. Returns how many are new there.
    pub fn push_runs(&self, folder: &Path) -> Result<usize, Failure> {
        let _working = Working::on(format!("writing {}", self.url));
        let output = companion::run(&["push", &self.url], Some(folder), "", None)?;
        numbers(&output.stdout)
            .first()
            .copied()
            .and_then(|new| usize::try_from(new).ok())
            .ok_or_else(misunderstood)
    }

    /// Changes the tables in the bucket. `change` gets them without their files, and says whether it has changed them; when
    /// somebody else was first, it is asked again. Returns its result and the names of the files that count.
    pub fn change_tables<T>(
        &self,
        mut change: impl FnMut(&mut Tables) -> Result<(bool, T), Failure>,
    ) -> Result<(T, Vec<String>), Failure> {
        for _ in 0..TRIES {
            let folder = Folder::create("archive").context("cannot make a temporary folder")?;
            let version = self.fetch(folder.path(), "current", "")?;
            let mut tables = Tables::open_to_change(folder.path()).map_err(wrong)?;
            let (has_changed, result) = change(&mut tables)?;
            if !has_changed || self.push_tables(folder.path(), &version)? {
                let files = treering_fleet::sql::files(&tables).into_iter().flat_map(|(_, files)| files);
                let name =
                    |path: PathBuf| path.strip_prefix(folder.path()).unwrap_or(&path).display().to_string();
                return Ok((result, files.map(name).collect()));
            }
            tell!("note: another process has changed the tables meanwhile; once more");
        }
        Err(Failure::new(format_args!("other processes change the tables of {} all the time", self.url))
            .hint("let one of them compact it"))
    }

    /// Puts the tables of a folder into the bucket if those there have still this version.
    fn push_tables(&self, folder: &Path, version: &str) -> Result<bool, Failure> {
        let _working = Working::on(format!("writing {}", self.url));
        let arguments = ["push", &self.url, "--tables-after", version];
        let output = companion::run(&arguments, Some(folder), "", Some(OTHERS_WERE_FIRST))?;
        Ok(output.status.success())
    }

    /// Removes objects, as `treering-query sweep` says. Returns how many files, and all bytes.
    pub fn sweep(&self, lines: &str, dry: bool) -> Result<(usize, u64), Failure> {
        let _working = Working::on(format!("reading {}", self.url));
        let arguments = ["sweep", &self.url, "--dry-run"];
        let output = companion::run(if dry { &arguments } else { &arguments[..2] }, None, lines, None)?;
        match numbers(&output.stdout)[..] {
            [files, bytes] => Ok((usize::try_from(files).unwrap_or(usize::MAX), bytes)),
            _ => Err(misunderstood()),
        }
    }
}

fn numbers(output: &[u8]) -> Vec<u64> {
    String::from_utf8_lossy(output).split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

fn misunderstood() -> Failure {
    Failure::new("treering-query is of another version than treering").hint(companion::HINT)
}
