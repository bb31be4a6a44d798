//! The libraries that Treering loads into other programs: beside this program, in the folders of a package, or unpacked
//! from inside this program.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use nix::unistd::geteuid;
use treering_cache::Cache;

use crate::cache;
use crate::failure::{Context as _, Failure};

/// A library to load, by its file name and the package that cargo builds it from.
#[derive(Debug, Clone, Copy)]
pub struct Library {
    file: &'static str,
    package: &'static str,
}

/// Hooks for Octave.
pub const OCTAVE: Library = Library { file: "libtreering_octave.so", package: "treering-octave" };
/// Counts the calls of programs that were compiled with `-pg`.
pub const PG: Library = Library { file: "libtreering_pg.so", package: "treering-pg" };
/// Counts the ports of SWI-Prolog.
pub const PROLOG: Library = Library { file: "libtreering_prolog.so", package: "treering-prolog" };

/// Where libraries lie, from the folder of this program: cargo puts them beside it; packages and CMake have folders for
/// libraries.
const PLACES: [&str; 5] = ["", "../lib/treering", "../lib", "../lib64", "../lib/x86_64-linux-gnu"];

/// A library inside this program (`build.rs`): its file name, a name that differs between libraries of different bytes,
/// and its bytes, compressed with gzip.
type Inside = (&'static str, &'static str, &'static [u8]);

const INSIDE: &[Inside] = include!(concat!(env!("OUT_DIR"), "/libraries.rs"));

impl Library {
    /// The path of the library. One beside this program or in the folders of its package goes before the one inside it.
    pub fn path(self) -> Result<PathBuf, Failure> {
        self.allowed_path(|_| true)
    }

    /// The same for `LD_PRELOAD`, where paths end at a space or a colon and `$LIB` is filled in.
    pub fn path_to_preload(self) -> Result<PathBuf, Failure> {
        let is_special = |byte: &u8| byte.is_ascii_whitespace() || b":$".contains(byte);
        self.allowed_path(move |path| !path.as_os_str().as_bytes().iter().any(is_special))
    }

    fn allowed_path(self, is_allowed: impl Fn(&Path) -> bool) -> Result<PathBuf, Failure> {
        let program = std::env::current_exe().context("cannot tell where this program is")?;
        let program = program.canonicalize().unwrap_or(program);
        let folder = program.parent().unwrap_or(Path::new("."));
        let found =
            PLACES.map(|place| folder.join(place).join(self.file)).into_iter().find(|path| path.is_file());
        let inside = INSIDE.iter().find(|(file, ..)| *file == self.file);
        let (version, bytes) = match (found, inside) {
            (Some(found), _) if is_allowed(&found) => return Ok(found),
            (Some(found), _) => {
                let bytes = fs::read(&found).context(found.display())?;
                (format!("copy-{}", bytes.len()), bytes)
            }
            (None, Some((_, version, packed))) => {
                ((*version).to_owned(), inflate(packed).context("cannot unpack a library")?)
            }
            (None, None) => {
                return Err(Failure::new(format_args!("{} is not beside {}", self.file, program.display()))
                    .hint(format_args!("build both: cargo build -p treering -p {}", self.package)));
            }
        };
        self.unpacked(
            &version,
            &bytes,
            &folders().into_iter().filter(|path| is_allowed(path)).collect::<Vec<_>>(),
        )
    }

    /// The library in the first of some folders that can keep it safely.
    fn unpacked(self, version: &str, bytes: &[u8], folders: &[PathBuf]) -> Result<PathBuf, Failure> {
        let mut failure = Failure::new(format_args!("there is no folder to unpack {} into", self.file));
        for folder in folders {
            let folder = folder.join("libraries").join(version);
            match keep(&folder, self.file, bytes) {
                Ok(path) => return Ok(path),
                Err(error) => {
                    failure = Failure::new(format_args!(
                        "cannot unpack {} into {}: {error}",
                        self.file,
                        folder.display()
                    ));
                }
            }
        }
        Err(failure.hint("name a folder of yours in XDG_CACHE_HOME"))
    }
}

fn inflate(packed: &[u8]) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(packed).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Folders that keep libraries: the user's directory of such files, or one of the user's own among temporary files.
fn folders() -> Vec<PathBuf> {
    let temporary = [treering_temporary::directory(), PathBuf::from("/tmp")];
    let own = temporary.map(|folder| folder.join(format!("treering-{}", geteuid())));
    cache::directory().into_iter().chain(own).collect()
}

/// A file with these bytes in a private folder. A file that differs in owner, mode or bytes is replaced.
fn keep(folder: &Path, name: &str, bytes: &[u8]) -> io::Result<PathBuf> {
    let cache = Cache::open(folder)?;
    if !is_kept(&cache, name, bytes).unwrap_or(false) {
        cache.keep(name, 0o500, |file| file.write_all(bytes))?;
    }
    Ok(folder.join(name))
}

/// Whether a file of this user, that nobody else can write, has these bytes.
fn is_kept(cache: &Cache, name: &str, bytes: &[u8]) -> io::Result<bool> {
    let mut kept = Vec::with_capacity(bytes.len());
    cache.file(name, bytes.len() as u64)?.read_to_end(&mut kept)?;
    Ok(kept == bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: &str = "libtest.so";

    #[test]
    fn a_library_that_was_changed_is_unpacked_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = keep(&folder.path().join("a/b"), NAME, b"library").expect("unpacked");
        for changed in [b"another" as &[u8], b"lib", b"library, longer"] {
            fs::remove_file(&path).expect("removed");
            fs::write(&path, changed).expect("changed");
            assert_eq!(keep(&folder.path().join("a/b"), NAME, b"library").expect("unpacked"), path);
            assert_eq!(fs::read(&path).expect("it is there"), b"library");
        }
    }

    #[test]
    fn a_folder_that_others_may_change_keeps_no_library() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().expect("a folder");
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).expect("allowed");
        let refused = keep(&folder.path().join("libraries"), NAME, b"library").expect_err("refused");
        assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
    }
}
