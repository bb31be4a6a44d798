//! The archive.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;

use crate::error::Error;
use crate::id::Id;
use crate::index::{Index, Unusable};
use crate::manifest::{FORMAT, Manifest, ProfileFile};
use crate::store::{Kind, Store};
use crate::summary::Summary;

/// An archive of runs.
#[derive(Debug)]
pub struct Archive {
    pub(crate) folder: PathBuf,
    pub(crate) store: Store,
    index: Index,
    /// A change could not be written into the index, which differs from the files since then.
    index_is_behind: bool,
    /// Manifests that cannot be read.
    problems: Vec<Error>,
    new_runs: usize,
}

/// The file that makes a folder an archive.
const MARK: &str = "treering-archive.json";

/// The format of archives, of which the mark tells.
const ARCHIVE_FORMAT: u32 = 1;

const INDEX: &str = "index.sqlite";

/// Files that are not to be committed with an archive, as they can be made again.
const NOT_COMMITTED: &str = "/index.sqlite*\n/incoming/\n/lock\n";

/// The largest manifest that is read.
const LARGEST_MANIFEST: u64 = 64 << 20;

/// The largest profile that is read into memory.
const LARGEST_PROFILE: u64 = 16 << 30;

#[derive(Serialize, Deserialize)]
struct Mark {
    treering_archive: u32,
}

/// How an input was made.
#[derive(Serialize, Deserialize)]
pub(crate) struct Setup {
    pub(crate) command: String,
    pub(crate) input: Id,
}

impl Archive {
    /// Opens an archive; a folder that is missing or empty becomes one.
    ///
    /// # Errors
    /// The folder cannot be read or made, has files and is no archive, or a newer version made it.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        if !folder.exists() {
            let made = DirBuilder::new().recursive(true).mode(0o777).create(folder);
            made.map_err(Error::system("make", folder))?;
        }
        if !folder.join(MARK).exists() {
            make(folder)?;
        }
        Self::open_existing(folder)
    }

    /// Opens an archive that must be there; it may be one that this user cannot change.
    ///
    /// # Errors
    /// As those of [`open`](Self::open), or there is none.
    pub fn open_existing(folder: &Path) -> Result<Self, Error> {
        check_mark(folder)?;
        let store = Store::new(folder.to_owned());
        let mut problems = Vec::new();
        let ids = store.ids(Kind::Run)?;
        let path = folder.join(INDEX);
        let mut opened = Index::open(&path).and_then(|index| refresh(index, &store, &ids, &mut problems));
        if matches!(opened, Err(Unusable::Damaged)) && Unusable::remove(&path).is_ok() {
            opened = Index::open(&path).and_then(|index| refresh(index, &store, &ids, &mut problems));
        }
        // Without a place for an index, or one that another process keeps for itself.
        let in_memory = |_| Index::in_memory().and_then(|index| refresh(index, &store, &ids, &mut problems));
        let index = opened.or_else(in_memory);
        let index = index.map_err(|_| Error::System {
            doing: "make an index of",
            path: folder.to_owned(),
            source: io::ErrorKind::OutOfMemory.into(),
        })?;
        Ok(Self { folder: folder.to_owned(), store, index, index_is_behind: false, problems, new_runs: 0 })
    }

    /// Whether there is an archive, of whatever version.
    pub fn is_at(folder: &Path) -> bool {
        folder.join(MARK).is_file()
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Manifests that are there and cannot be read: damaged ones, and those of newer versions. They are not listed.
    pub fn problems(&self) -> &[Error] {
        &self.problems
    }

    /// How many runs that nobody had added before were added by this value.
    pub fn new_runs(&self) -> usize {
        self.new_runs
    }

    /// Adds a run. The same run again is the same file.
    ///
    /// # Errors
    /// It cannot be written. Nothing is listed then.
    pub fn add(&mut self, manifest: &Manifest) -> Result<Id, Error> {
        let _lock = self.lock(FlockArg::LockShared)?;
        let manifest = Manifest { format: FORMAT, ..manifest.clone() };
        let (id, is_new) = self.store.put(Kind::Run, &manifest.to_bytes())?;
        self.new_runs += usize::from(is_new);
        self.change_index(&[Summary::of(id.clone(), &manifest)], &[]);
        Ok(id)
    }

    /// Adds a run with its profiles, each with the command that made it.
    ///
    /// # Errors
    /// One of them cannot be written. Nothing is listed then.
    pub fn add_with_profiles(
        &mut self,
        manifest: &Manifest,
        profiles: &[(&[u8], &str)],
    ) -> Result<Id, Error> {
        // Held until the manifest names the profiles, which are removed otherwise if nothing else needs them.
        let _lock = self.lock(FlockArg::LockShared)?;
        let keep = |&(profile, made_by): &(&[u8], &str)| {
            let (sha256, _) = self.store.put(Kind::Profile, profile)?;
            Ok(ProfileFile { sha256, bytes: profile.len() as u64, made_by: made_by.to_owned() })
        };
        let profiles = profiles.iter().map(keep).collect::<Result<_, Error>>()?;
        self.add(&Manifest { profiles, ..manifest.clone() })
    }

    /// The manifest of a run.
    ///
    /// # Errors
    /// It is missing, damaged, or of a newer version.
    pub fn read(&self, run: &Id) -> Result<Manifest, Error> {
        read(&self.store, run)
    }

    /// The profile of a run, in the format `.trg`.
    ///
    /// # Errors
    /// It is missing or damaged.
    pub fn profile(&self, profile: &ProfileFile) -> Result<Vec<u8>, Error> {
        self.store.get(Kind::Profile, &profile.sha256, LARGEST_PROFILE)
    }

    /// Where the manifest of a run is.
    pub fn run_path(&self, run: &Id) -> PathBuf {
        self.store.path(Kind::Run, run)
    }

    /// Where the profile of a run is.
    pub fn profile_path(&self, profile: &ProfileFile) -> PathBuf {
        self.store.path(Kind::Profile, &profile.sha256)
    }

    /// The last runs, or all, the latest first.
    ///
    /// # Errors
    /// The archive cannot be read.
    pub fn summaries(&mut self, last: Option<usize>) -> Result<Vec<Summary>, Error> {
        self.catch_up()?;
        if let Ok(summaries) = self.index.summaries(last) {
            return Ok(summaries);
        }
        // Some row is damaged.
        let _ = Unusable::remove(&self.folder.join(INDEX));
        *self = Self { new_runs: self.new_runs, ..Self::open_existing(&self.folder)? };
        self.index.summaries(last).map_err(|_| Error::Damaged {
            path: self.folder.join(INDEX),
            why: "it cannot be read, and was not made again".to_owned(),
        })
    }

    /// How many runs are listed.
    ///
    /// # Errors
    /// The archive cannot be read.
    pub fn count(&mut self) -> Result<usize, Error> {
        self.catch_up()?;
        let damaged =
            |_| Error::Damaged { path: self.folder.join(INDEX), why: "it cannot be read".to_owned() };
        self.index.runs().map(|runs| runs.len()).map_err(damaged)
    }

    /// The run whose identifier begins so.
    ///
    /// # Errors
    /// There is none, or there are several.
    pub fn find(&self, beginning: &str) -> Result<Id, Error> {
        let all = self.store.ids(Kind::Run)?;
        let mut found: Vec<Id> = all.into_iter().filter(|id| id.as_str().starts_with(beginning)).collect();
        found.sort();
        match found.len() {
            _ if beginning.is_empty() => Err(Error::NoRun(beginning.to_owned())),
            0 => Err(Error::NoRun(beginning.to_owned())),
            1 => Ok(found.remove(0)),
            _ => Err(Error::Ambiguous(beginning.to_owned(), found)),
        }
    }

    /// The input that a command made earlier, if it is kept: its identifier and where it is.
    ///
    /// # Errors
    /// It is kept, and damaged.
    pub fn input_of(&self, command: &str) -> Result<Option<(Id, PathBuf)>, Error> {
        let setup = match self.store.get(Kind::Setup, &Id::of(command.as_bytes()), LARGEST_MANIFEST) {
            Ok(setup) => setup,
            Err(error) if error.is_missing() => return Ok(None),
            Err(error) => return Err(error),
        };
        let Ok(setup) = serde_json::from_slice::<Setup>(&setup) else { return Ok(None) };
        let path = self.store.path(Kind::Input, &setup.input);
        // Made by this command, and not by another one whose name was put in the place of this one.
        let is_there = setup.command == command && path.is_file();
        Ok(is_there.then_some((setup.input, path)))
    }

    /// A file for an input that is to be made; it is removed with the value.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn new_input(&self) -> Result<NamedTempFile, Error> {
        self.store.incoming()
    }

    /// Keeps an input that a command has made in such a file.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn keep_input(&mut self, command: &str, input: &NamedTempFile) -> Result<(Id, PathBuf), Error> {
        let _lock = self.lock(FlockArg::LockShared)?;
        let id = self.store.put_file(Kind::Input, input)?;
        let setup = Setup { command: command.to_owned(), input: id.clone() };
        let text = serde_json::to_vec_pretty(&setup).unwrap_or_default();
        self.store.put_as(Kind::Setup, &Id::of(command.as_bytes()), &text)?;
        let path = self.store.path(Kind::Input, &id);
        Ok((id, path))
    }

    /// Keeps others from removing files, or from adding any. It ends with the value.
    pub(crate) fn lock(&self, how: FlockArg) -> Result<Option<Flock<File>>, Error> {
        let path = self.folder.join("lock");
        // In a shared archive the file may belong to another user and be read-only. Users outside the group cannot
        // hold writers up.
        let file = File::open(&path)
            .or_else(|_| OpenOptions::new().write(true).create(true).truncate(false).mode(0o660).open(&path));
        let file = file.map_err(Error::system("write", &path))?;
        match Flock::lock(file, how) {
            Ok(lock) => Ok(Some(lock)),
            // A file system without locks, on which nothing is removed.
            Err((_, nix::errno::Errno::ENOTSUP | nix::errno::Errno::ENOLCK | nix::errno::Errno::ENOSYS))
                if how == FlockArg::LockShared =>
            {
                Ok(None)
            }
            Err((_, error)) => Err(Error::System { doing: "lock", path, source: error.into() }),
        }
    }

    /// Takes runs out of the index whose files were removed.
    pub(crate) fn forget(&mut self, runs: &[&Id]) {
        self.change_index(&[], runs);
    }

    /// Changes the index as the files were changed. A disk that is full for the index has room for a run at times.
    fn change_index(&mut self, add: &[Summary], remove: &[&Id]) {
        self.index_is_behind |= self.index.change(add, remove).is_err();
    }

    /// Compares the index with the files again if it is behind them.
    fn catch_up(&mut self) -> Result<(), Error> {
        if self.index_is_behind {
            *self = Self { new_runs: self.new_runs, ..Self::open_existing(&self.folder)? };
        }
        Ok(())
    }
}

/// Makes an archive of a folder that has no files.
fn make(folder: &Path) -> Result<(), Error> {
    let cannot = |doing| Error::system(doing, folder);
    if folder.is_file() {
        return Err(Error::NotArchive(folder.to_owned()));
    }
    let mut entries = std::fs::read_dir(folder).map_err(cannot("read"))?;
    // Another process that makes it may be at work.
    let is_ours = |name: &std::ffi::OsStr| {
        name == MARK || name == ".gitignore" || name.as_encoded_bytes().starts_with(b".tmp")
    };
    if entries.any(|entry| entry.is_ok_and(|entry| !is_ours(&entry.file_name()))) {
        // Another process may have made the archive meanwhile, and have begun to fill it.
        let is_archive = folder.join(MARK).exists();
        return if is_archive { Ok(()) } else { Err(Error::NotArchive(folder.to_owned())) };
    }
    // The mark comes last: with it, the archive is whole.
    for (name, text) in [(".gitignore", NOT_COMMITTED), (MARK, &(mark() + "\n"))] {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o666);
        let made = tempfile::Builder::new().permissions(mode).tempfile_in(folder);
        let written = made.and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            match file.persist_noclobber(folder.join(name)) {
                Err(error) if error.error.kind() != io::ErrorKind::AlreadyExists => Err(error.error),
                _ => Ok(()),
            }
        });
        written.map_err(cannot("write into"))?;
    }
    Ok(())
}

/// The line of the file that makes a folder an archive.
fn mark() -> String {
    serde_json::to_string(&Mark { treering_archive: ARCHIVE_FORMAT }).unwrap_or_default()
}

fn check_mark(folder: &Path) -> Result<(), Error> {
    let path = folder.join(MARK);
    let text = match std::fs::read(&path) {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            let has_files =
                folder.is_file() || std::fs::read_dir(folder).is_ok_and(|mut all| all.next().is_some());
            let folder = folder.to_owned();
            return Err(if has_files { Error::NotArchive(folder) } else { Error::NoArchive(folder) });
        }
        read => read.map_err(Error::system("read", &path))?,
    };
    let mark: Mark = serde_json::from_slice(&text).map_err(|error| Error::Mark {
        path: path.clone(),
        why: error.to_string(),
        line: mark(),
    })?;
    match mark.treering_archive {
        found if found > ARCHIVE_FORMAT => Err(Error::Newer { path, found, known: ARCHIVE_FORMAT }),
        _ => Ok(()),
    }
}

/// Compares an index with the files, and makes up for what is missing.
fn refresh(
    mut index: Index,
    store: &Store,
    ids: &[Id],
    problems: &mut Vec<Error>,
) -> Result<Index, Unusable> {
    problems.clear();
    let known = index.runs()?;
    let mut new = Vec::new();
    for id in ids.iter().filter(|id| !known.contains(id)) {
        match read(store, id) {
            Ok(manifest) => new.push(Summary::of(id.clone(), &manifest)),
            // Removed in the meantime.
            Err(error) if error.is_missing() => {}
            Err(error) => problems.push(error),
        }
    }
    let there: std::collections::HashSet<&Id> = ids.iter().collect();
    let gone: Vec<&Id> = known.iter().filter(|id| !there.contains(id)).collect();
    if !new.is_empty() || !gone.is_empty() {
        index.change(&new, &gone)?;
    }
    Ok(index)
}

fn read(store: &Store, run: &Id) -> Result<Manifest, Error> {
    #[derive(Deserialize)]
    struct Head {
        treering_run: u32,
    }
    let (path, content) = (store.path(Kind::Run, run), store.get(Kind::Run, run, LARGEST_MANIFEST)?);
    let damaged = |error: serde_json::Error| Error::Damaged { path: path.clone(), why: error.to_string() };
    let found = serde_json::from_slice::<Head>(&content).map_err(damaged)?.treering_run;
    if found > FORMAT {
        return Err(Error::Newer { path, found, known: FORMAT });
    }
    serde_json::from_slice(&content).map_err(damaged)
}
