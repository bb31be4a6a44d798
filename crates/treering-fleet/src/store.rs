//! The files of the tables, and which of them count.
//!
//! `tables/current.json` names the files. They are named by what is in them and never changed; that file is replaced in
//! one step. So a reader that has read it sees whole tables, whatever writers do or wherever one is killed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tempfile::NamedTempFile;

use crate::sql::TABLES;

/// The format of the tables that this version writes; those above it are refused by name.
pub const FORMAT: u32 = 1;

/// A day with more parts than these is written anew, as one.
const MOST_PARTS: usize = 8;

/// The last bytes of a Parquet file.
const MAGIC: &[u8; 4] = b"PAR1";

/// A file that has not been named for so long has no reader any more.
const ABANDONED: Duration = Duration::from_secs(24 * 3600);

/// Some runs of a day: a file for each table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// The day, in UTC.
    pub day: String,
    /// The whole names of its runs, sorted.
    pub runs: Vec<String>,
    /// The name of the file of each table: the SHA-256 of its content.
    pub files: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Current {
    treering_tables: u32,
    parts: Vec<Part>,
}

/// Why the tables cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system's own error.
    #[error("cannot {doing} {path}: {source}", path = path.display())]
    System {
        /// `read`, `write` and the like.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// A newer version wrote the tables.
    #[error("{path}: a newer treering wrote the tables: their format is {found}, and this one reads up to {FORMAT}", path = path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u32,
    },
    /// A file is not what its name says.
    #[error("{path} is damaged: {why}", path = path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// How that shows.
        why: String,
    },
    /// A file of a table could not be made.
    #[cfg(feature = "write")]
    #[error("cannot write the table {table}: {source}")]
    Parquet {
        /// The table.
        table: &'static str,
        /// The error.
        source: parquet::errors::ParquetError,
    },
    /// Another process is at work.
    #[error("another process compacts {path}", path = .0.display())]
    Busy(PathBuf),
}

/// The tables of an archive.
#[derive(Debug)]
pub struct Tables {
    pub(crate) folder: PathBuf,
    current: Current,
    /// Held by the one that changes them; it ends with the value.
    _lock: Option<Flock<File>>,
}

impl Tables {
    /// Opens those of an archive's folder for reading; there may be none yet.
    ///
    /// # Errors
    /// They cannot be read, or a newer version wrote them.
    pub fn open(archive: &Path) -> Result<Self, Error> {
        let folder = archive.join("tables");
        let path = folder.join(CURRENT);
        let current = match std::fs::read(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Current::default(),
            Err(source) => return Err(Error::System { doing: "read", path, source }),
            Ok(text) => read(&path, &text)?,
        };
        Ok(Self { folder, current, _lock: None })
    }

    /// Opens them for writing: no other process can until the value is dropped.
    ///
    /// # Errors
    /// As those of [`open`](Self::open); or another process is at work.
    pub fn open_to_change(archive: &Path) -> Result<Self, Error> {
        let lock = lock(archive)?;
        Ok(Self { _lock: Some(lock), ..Self::open(archive)? })
    }

    /// Opens them for writing as if there were none: the file that names them is damaged.
    ///
    /// # Errors
    /// As those of [`open_to_change`](Self::open_to_change).
    pub fn begin_anew(archive: &Path) -> Result<Self, Error> {
        let lock = lock(archive)?;
        Ok(Self { folder: archive.join("tables"), current: Current::default(), _lock: Some(lock) })
    }

    /// The parts.
    pub fn parts(&self) -> &[Part] {
        &self.current.parts
    }

    /// The whole names of all runs that are in the tables.
    pub fn runs(&self) -> BTreeSet<&str> {
        self.current.parts.iter().flat_map(|part| part.runs.iter().map(String::as_str)).collect()
    }

    /// The days that have so many parts that they should be written anew.
    pub fn crowded_days(&self) -> Vec<String> {
        let mut parts: BTreeMap<&str, usize> = BTreeMap::new();
        self.current.parts.iter().for_each(|part| *parts.entry(&part.day).or_default() += 1);
        parts.into_iter().filter(|&(_, parts)| parts > MOST_PARTS).map(|(day, _)| day.to_owned()).collect()
    }

    /// The files of a table, in the order of days.
    pub fn files(&self, table: &str) -> Vec<PathBuf> {
        let mut parts: Vec<&Part> = self.current.parts.iter().collect();
        parts.sort_by(|one, other| (&one.day, &one.runs).cmp(&(&other.day, &other.runs)));
        parts.iter().filter_map(|part| Some(self.path(table, &part.day, part.files.get(table)?))).collect()
    }

    /// Makes the tables be what they were, without all parts of `replaced` days, and with new parts.
    ///
    /// # Errors
    /// The file that names the parts cannot be written; the tables are what they were then.
    pub fn publish(&mut self, replaced: &[String], new: Vec<Part>) -> Result<(), Error> {
        let mut parts = self.current.parts.clone();
        parts.retain(|part| !replaced.contains(&part.day));
        parts.extend(new);
        parts.sort_by(|one, other| (&one.day, &one.runs).cmp(&(&other.day, &other.runs)));
        let current = Current { treering_tables: FORMAT, parts };
        let path = self.folder.join(CURRENT);
        let text = serde_json::to_vec_pretty(&current).unwrap_or_default();
        let written = self.new_file().and_then(|mut file| {
            file.write_all(&text)?;
            file.as_file().sync_all()?;
            file.persist(&path)?;
            File::open(&self.folder)?.sync_all()
        });
        written.map_err(system("write", &path))?;
        let before = std::mem::replace(&mut self.current, current);
        self.leave_to_readers(&before);
        Ok(())
    }

    /// Makes files that count no more look new: their age tells how long readers have had to end. Those of other users stay
    /// as old as they are.
    fn leave_to_readers(&self, before: &Current) {
        let count = |part: &Part| self.current.parts.contains(part);
        for part in before.parts.iter().filter(|part| !count(part)) {
            for (table, name) in &part.files {
                let file = File::open(self.path(table, &part.day, name));
                let _ = file.and_then(|file| file.set_modified(SystemTime::now()));
            }
        }
    }

    /// The different texts in a column of a table.
    ///
    /// # Errors
    /// A file cannot be read, is damaged, or has no such column of texts.
    #[cfg(feature = "write")]
    pub fn texts(&self, table: &str, column: &str) -> Result<BTreeSet<String>, Error> {
        let mut texts = BTreeSet::new();
        for path in self.files(table) {
            let file = File::open(&path).map_err(system("read", &path))?;
            let found = crate::column::texts(file, column);
            texts.extend(found.map_err(|error| Error::Damaged { path, why: error.to_string() })?);
        }
        Ok(texts)
    }

    /// Looks whether every file is there and has an end, without reading it. Engines tell of others only that they are no
    /// Parquet files.
    ///
    /// # Errors
    /// One is missing or cut short.
    pub fn check_ends(&self) -> Result<(), Error> {
        for path in TABLES.into_iter().flat_map(|table| self.files(table)) {
            let mut end = [0; MAGIC.len()];
            let read = File::open(&path).and_then(|mut file| {
                file.seek(SeekFrom::End(-(MAGIC.len() as i64)))?;
                file.read_exact(&mut end)
            });
            let why = match read {
                Ok(()) if end == *MAGIC => continue,
                Err(error) if error.kind() == ErrorKind::NotFound => "it is missing",
                Err(source) if source.kind() != ErrorKind::InvalidInput => {
                    return Err(Error::System { doing: "read", path, source });
                }
                _ => "it is cut short, or no Parquet file",
            };
            return Err(Error::Damaged { path, why: why.to_owned() });
        }
        Ok(())
    }

    /// Compares the content of every file with its name. Returns the files that are wrong.
    pub fn verify(&self) -> Vec<Error> {
        let mut wrong = Vec::new();
        for part in &self.current.parts {
            for (table, name) in &part.files {
                let path = self.path(table, &part.day, name);
                match std::fs::read(&path) {
                    Err(source) => wrong.push(Error::System { doing: "read", path, source }),
                    Ok(content) if hash(&content) != *name => {
                        wrong.push(Error::Damaged {
                            path,
                            why: "its content is not what its name says".to_owned(),
                        });
                    }
                    Ok(_) => {}
                }
            }
        }
        wrong
    }

    /// Removes files that count no more and are a day old, so that nothing reads them. How many, and their bytes.
    ///
    /// # Errors
    /// A folder cannot be read, or a file not removed.
    pub fn collect(&self, dry: bool) -> Result<(usize, u64), Error> {
        let (mut files, mut bytes) = (0, 0);
        let mut remove = |path: PathBuf| -> Result<(), Error> {
            let Ok(found) = path.symlink_metadata() else { return Ok(()) };
            let age = found.modified().ok().and_then(|at| SystemTime::now().duration_since(at).ok());
            if !found.is_file() || age.is_none_or(|age| age < ABANDONED) {
                return Ok(());
            }
            files += 1;
            bytes += found.len();
            if dry { Ok(()) } else { std::fs::remove_file(&path).map_err(system("remove", &path)) }
        };
        for table in TABLES {
            let named: BTreeSet<PathBuf> = self.files(table).into_iter().collect();
            for path in entries(&self.folder.join(table))?.into_iter().filter(|path| !named.contains(path)) {
                remove(path)?;
            }
        }
        entries(&self.folder.join(INCOMING))?.into_iter().try_for_each(remove)?;
        Ok((files, bytes))
    }

    pub(crate) fn path(&self, table: &str, day: &str, name: &str) -> PathBuf {
        self.folder.join(table).join(format!("{day}-{name}.parquet"))
    }

    /// A file that is readable for those for whom the folder is.
    pub(crate) fn new_file(&self) -> io::Result<NamedTempFile> {
        let folder = self.folder.join(INCOMING);
        make_folder(&folder)?;
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o644);
        tempfile::Builder::new().permissions(mode).tempfile_in(folder)
    }
}

/// Keeps others from changing the tables of an archive.
fn lock(archive: &Path) -> Result<Flock<File>, Error> {
    let folder = archive.join("tables");
    make_folder(&folder).map_err(system("make", &folder))?;
    let path = folder.join("lock");
    // That of another user of a shared archive may be read-only. Users outside the group cannot hold writers up.
    let opened = File::open(&path)
        .or_else(|_| OpenOptions::new().write(true).create(true).truncate(false).mode(0o660).open(&path));
    let file = opened.map_err(system("write", &path))?;
    match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
        Ok(lock) => Ok(lock),
        Err((_, nix::errno::Errno::EWOULDBLOCK)) => Err(Error::Busy(archive.to_owned())),
        Err((_, error)) => Err(system("lock", &path)(error.into())),
    }
}

const CURRENT: &str = "current.json";

/// The folder of files that are being written.
const INCOMING: &str = "incoming";

fn read(path: &Path, text: &[u8]) -> Result<Current, Error> {
    #[derive(Deserialize)]
    struct Head {
        treering_tables: u32,
    }
    let damaged = |error: serde_json::Error| Error::Damaged { path: path.to_owned(), why: error.to_string() };
    let found = serde_json::from_slice::<Head>(text).map_err(damaged)?.treering_tables;
    if found > FORMAT {
        return Err(Error::Newer { path: path.to_owned(), found });
    }
    let current: Current = serde_json::from_slice(text).map_err(damaged)?;
    // Names become paths.
    let is_day = |day: &str| day.len() == 10 && day.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    let is_name = |name: &String| name.len() == 64 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_sound = |part: &Part| is_day(&part.day) && part.files.values().all(is_name);
    if !current.parts.iter().all(is_sound) {
        return Err(Error::Damaged { path: path.to_owned(), why: "it names no files of tables".to_owned() });
    }
    Ok(current)
}

pub(crate) fn hash(content: &[u8]) -> String {
    Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Makes a folder with the rights of the one that it is in: all who may write into the archive may go on there.
pub(crate) fn make_folder(folder: &Path) -> io::Result<()> {
    let made = std::fs::create_dir(folder).and_then(|()| {
        let above = folder.parent().unwrap_or(Path::new("/"));
        std::fs::set_permissions(folder, std::fs::metadata(above)?.permissions())
    });
    match made {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

pub(crate) fn system(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::System { doing, path, source }
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    match std::fs::read_dir(folder).and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect()) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        paths => paths.map_err(system("read", folder)),
    }
}

#[cfg(all(test, feature = "write"))]
mod tests {
    use super::*;
    use crate::rows::{Rows, Run};
    use crate::tables::Batch;

    const WORK: &str = "0 enter main\n1   enter work\n4   leave work\n5 leave main";

    fn batch(names: &[&str]) -> Batch {
        let mut batch = Batch::default();
        for name in names {
            let run = Run { name: (*name).to_owned(), day: "2026-11-27".to_owned(), ..Run::default() };
            batch.add(run, Rows::of(&treering_testing::trace(WORK)).unwrap()).unwrap();
        }
        batch
    }

    #[test]
    fn parts_count_once_they_are_published() {
        let archive = tempfile::tempdir().unwrap();
        let mut tables = Tables::open_to_change(archive.path()).unwrap();
        let part = tables.write("2026-11-27", batch(&["a", "b"])).unwrap();
        assert!(Tables::open(archive.path()).unwrap().parts().is_empty());
        tables.publish(&[], vec![part.clone()]).unwrap();
        let read = Tables::open(archive.path()).unwrap();
        assert_eq!((read.runs(), read.files("cost").len()), (BTreeSet::from(["a", "b"]), 1));
        assert!(read.verify().is_empty());
        // The same runs are the same files.
        assert_eq!(tables.write("2026-11-27", batch(&["b", "a"])).unwrap(), part);
        tables.publish(&["2026-11-27".to_owned()], vec![part]).unwrap();
        assert_eq!(Tables::open(archive.path()).unwrap().parts().len(), 1);
    }

    #[test]
    fn one_process_at_a_time_changes_the_tables() {
        let archive = tempfile::tempdir().unwrap();
        let first = Tables::open_to_change(archive.path()).unwrap();
        assert!(matches!(Tables::open_to_change(archive.path()), Err(Error::Busy(_))));
        drop(first);
        assert!(Tables::open_to_change(archive.path()).is_ok());
    }

    #[test]
    fn a_file_that_counts_no_more_stays_for_a_day_for_those_who_read_it() {
        let archive = tempfile::tempdir().unwrap();
        let mut tables = Tables::open_to_change(archive.path()).unwrap();
        let part = tables.write("2026-11-27", batch(&["a"])).unwrap();
        tables.publish(&[], vec![part]).unwrap();
        let read = tables.files("cost")[0].clone();
        let age = |seconds| {
            let at = SystemTime::now() - Duration::from_secs(seconds);
            TABLES
                .iter()
                .flat_map(|table| entries(&archive.path().join("tables").join(table)).unwrap())
                .for_each(|path| {
                    File::open(path).unwrap().set_modified(at).unwrap();
                });
        };
        age(100_000);
        let other = tables.write("2026-11-27", batch(&["a", "b"])).unwrap();
        tables.publish(&["2026-11-27".to_owned()], vec![other]).unwrap();
        assert_eq!((tables.collect(false).unwrap().0, read.exists()), (0, true));
        age(100_000);
        assert!(tables.collect(false).unwrap().0 > 0 && !read.exists());
        tables.check_ends().unwrap();
    }

    #[test]
    fn missing_files_and_those_without_an_end_are_named() {
        let archive = tempfile::tempdir().unwrap();
        let mut tables = Tables::open_to_change(archive.path()).unwrap();
        let part = tables.write("2026-11-27", batch(&["a"])).unwrap();
        tables.publish(&[], vec![part]).unwrap();
        tables.check_ends().unwrap();
        let path = tables.files("cost")[0].clone();
        let content = std::fs::read(&path).unwrap();
        for (length, why) in [(content.len() - 1, "cut short"), (2, "cut short"), (0, "cut short")] {
            std::fs::write(&path, &content[..length]).unwrap();
            assert!(tables.check_ends().unwrap_err().to_string().contains(why), "{length}");
        }
        std::fs::remove_file(&path).unwrap();
        assert!(tables.check_ends().unwrap_err().to_string().ends_with("it is missing"));
    }

    #[test]
    fn damaged_and_newer_tables_are_named() {
        let archive = tempfile::tempdir().unwrap();
        let mut tables = Tables::open_to_change(archive.path()).unwrap();
        let part = tables.write("2026-11-27", batch(&["a"])).unwrap();
        tables.publish(&[], vec![part]).unwrap();
        std::fs::write(&tables.files("fn")[0], "other").unwrap();
        assert!(tables.verify()[0].to_string().contains("is damaged"));
        let current = archive.path().join("tables/current.json");
        std::fs::write(&current, "{\"treering_tables\": 99}").unwrap();
        assert!(matches!(Tables::open(archive.path()), Err(Error::Newer { found: 99, .. })));
        let names = "{\"treering_tables\": 1, \"parts\": [{\"day\": \"2026-11-27\", \"runs\": [], \
                     \"files\": {\"fn\": \"../../x\"}}]}";
        std::fs::write(&current, names).unwrap();
        assert!(matches!(Tables::open(archive.path()), Err(Error::Damaged { .. })));
    }
}
