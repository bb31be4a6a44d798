//! Files that are written once and named by their content.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Read, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use tempfile::NamedTempFile;

use crate::error::Error;
use crate::id::Id;

/// The kinds of files, a folder for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Manifests: a run is listed if its manifest is there.
    Run,
    /// Profiles, which manifests name.
    Profile,
    /// Inputs that were made for programs.
    Input,
    /// The commands that made inputs, each named by the command and not by its content.
    Setup,
}

impl Kind {
    fn folder(self) -> &'static str {
        match self {
            Self::Run => "runs",
            Self::Profile => "profiles",
            Self::Input => "inputs",
            Self::Setup => "setups",
        }
    }

    fn ending(self) -> &'static str {
        match self {
            Self::Run | Self::Setup => ".json",
            Self::Profile => ".trg",
            Self::Input => "",
        }
    }
}

/// The folder of files that are being written.
const INCOMING: &str = "incoming";

/// Files that are written once.
#[derive(Debug)]
pub(crate) struct Store {
    folder: PathBuf,
    /// The rights of files: they are not to be changed, and read by others only if the folder may be.
    mode: u32,
}

impl Store {
    pub(crate) fn new(folder: PathBuf) -> Self {
        const ALL_READ: u32 = 0o444;
        let mode = std::fs::metadata(&folder).map_or(0, |found| found.permissions().mode());
        Self { folder, mode: 0o400 | (mode & ALL_READ) }
    }

    pub(crate) fn path(&self, kind: Kind, id: &Id) -> PathBuf {
        let name = id.as_str();
        self.folder.join(kind.folder()).join(&name[..2]).join(format!("{name}{}", kind.ending()))
    }

    /// A new file in a place from which it can be linked.
    pub(crate) fn incoming(&self) -> Result<NamedTempFile, Error> {
        let folder = self.folder.join(INCOMING);
        make_folder(&folder)?;
        let file = tempfile::Builder::new().permissions(Permissions::from_mode(0o600)).tempfile_in(&folder);
        file.map_err(Error::system("write into", folder))
    }

    /// Keeps some content. It tells as well whether that is new.
    pub(crate) fn put(&self, kind: Kind, content: &[u8]) -> Result<(Id, bool), Error> {
        let id = Id::of(content);
        let is_new = self.put_as(kind, &id, content)?;
        Ok((id, is_new))
    }

    /// Keeps some content under a name that is not its own. Whether that name is new.
    pub(crate) fn put_as(&self, kind: Kind, id: &Id, content: &[u8]) -> Result<bool, Error> {
        let mut file = self.incoming()?;
        file.as_file_mut().write_all(content).map_err(Error::system("write", self.path(kind, id)))?;
        self.link(kind, id, &file)
    }

    /// Keeps what a file in [`incoming`](Self::incoming) holds.
    pub(crate) fn put_file(&self, kind: Kind, file: &NamedTempFile) -> Result<Id, Error> {
        let mut hash = Sha256::new();
        let read = file.reopen().and_then(|mut file| io::copy(&mut file, &mut hash));
        read.map_err(Error::system("read", file.path()))?;
        let id = Id::finish(hash);
        _ = self.link(kind, &id, file)?;
        Ok(id)
    }

    /// Gives a whole file its name. One that has it already stays, unless it is damaged. Whether no file had it: of writers
    /// at once, one is told so.
    fn link(&self, kind: Kind, id: &Id, file: &NamedTempFile) -> Result<bool, Error> {
        let path = self.path(kind, id);
        let cannot = |error: io::Error| Error::system("write", path.clone())(error);
        let folder = path.parent().unwrap_or(&self.folder);
        make_folder(folder)?;
        let whole = file.as_file();
        whole
            .set_permissions(Permissions::from_mode(self.mode))
            .and_then(|()| whole.sync_all())
            .map_err(cannot)?;
        let linked = match std::fs::hard_link(file.path(), &path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                if kind == Kind::Setup || self.is_sound(kind, id) {
                    return Ok(false);
                }
                std::fs::rename(file.path(), &path).map(|()| false)
            }
            // A file system without links. Only a file with the same content can be replaced.
            Err(error) if is_unsupported(&error) => {
                let is_new = !path.exists();
                std::fs::rename(file.path(), &path).map(|()| is_new)
            }
            linked => linked.map(|()| true),
        };
        let is_new = linked.map_err(cannot)?;
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(cannot)?;
        Ok(is_new)
    }

    fn is_sound(&self, kind: Kind, id: &Id) -> bool {
        let Ok(mut file) = self.open(kind, id) else { return false };
        let mut hash = Sha256::new();
        io::copy(&mut file, &mut hash).is_ok() && Id::finish(hash) == *id
    }

    /// Opens a file that was kept; its content is not looked at.
    pub(crate) fn open(&self, kind: Kind, id: &Id) -> Result<File, Error> {
        let path = self.path(kind, id);
        // Opening a pipe would wait for its writer.
        let opened = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(&path);
        let file = opened.map_err(Error::system("read", &path))?;
        let is_file = file.metadata().map_err(Error::system("read", &path))?.is_file();
        if is_file { Ok(file) } else { Err(Error::Damaged { path, why: "it is no file".to_owned() }) }
    }

    /// The content of a file of at most `largest` bytes, which is what the name says; that of a setup is not.
    pub(crate) fn get(&self, kind: Kind, id: &Id, largest: u64) -> Result<Vec<u8>, Error> {
        let (file, path) = (self.open(kind, id)?, self.path(kind, id));
        let mut content = Vec::new();
        file.take(largest + 1).read_to_end(&mut content).map_err(Error::system("read", &path))?;
        let damaged = |why: String| Error::Damaged { path, why };
        if content.len() as u64 > largest {
            return Err(damaged(format!("it has more than {largest} bytes")));
        }
        if kind != Kind::Setup && Id::of(&content) != *id {
            return Err(damaged("its content is not what its name says".to_owned()));
        }
        Ok(content)
    }

    /// All files of a kind.
    pub(crate) fn ids(&self, kind: Kind) -> Result<Vec<Id>, Error> {
        let folder = self.folder.join(kind.folder());
        let mut ids = Vec::new();
        for below in entries(&folder)? {
            for path in entries(&below)? {
                let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
                // Others put other files there: backups of editors, conflicts of a synchronisation.
                let id = name.strip_suffix(kind.ending()).and_then(|name| name.parse::<Id>().ok());
                ids.extend(id.filter(|id| self.path(kind, id) == path));
            }
        }
        Ok(ids)
    }

    /// Files that are being written, or that killed writers have left.
    pub(crate) fn unfinished(&self) -> Result<Vec<PathBuf>, Error> {
        entries(&self.folder.join(INCOMING))
    }
}

fn is_unsupported(error: &io::Error) -> bool {
    let codes = [libc::EPERM, libc::ENOTSUP, libc::ENOSYS, libc::EMLINK];
    error.raw_os_error().is_some_and(|code| codes.contains(&code))
}

/// Makes a folder, and those above it, with the rights of the folder that they are in, whatever the umask is: all who may
/// write into the archive may go on there.
pub(crate) fn make_folder(folder: &Path) -> Result<(), Error> {
    let make = || {
        std::fs::create_dir(folder)?;
        let above = folder.parent().unwrap_or(Path::new("/"));
        std::fs::set_permissions(folder, std::fs::metadata(above)?.permissions())
    };
    let made = match make() {
        Err(error) if error.kind() == ErrorKind::NotFound => match folder.parent() {
            Some(above) => make_folder(above).and_then(|()| make().map_err(Error::system("make", folder))),
            None => Err(Error::system("make", folder)(error)),
        },
        made => made.map_err(Error::system("make", folder)),
    };
    match made {
        Err(Error::System { source, .. }) if source.kind() == ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

/// The paths in a folder; none if it is not there or is none.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let paths =
        std::fs::read_dir(folder).and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect());
    match paths {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(Vec::new())
        }
        paths => paths.map_err(Error::system("read", folder)),
    }
}
