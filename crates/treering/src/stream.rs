//! Outputs that are no files: pipes, devices, and standard output by one of its paths.
//!
//! They are opened before a program runs, and kept open until its profile is written. So the reader of a named pipe
//! sees no end before that, and no waiting for a reader is left when the program has ended.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use nix::fcntl::{FcntlArg, OFlag, fcntl};

use crate::failure::{Context as _, Failure};
use crate::output::fill;

/// An output that takes bytes as they come.
#[derive(Debug)]
pub struct Stream {
    path: PathBuf,
    file: File,
}

impl Stream {
    /// Opens an output if it is no file, and waits for a reader if it is a named pipe. Nothing if it is a
    /// file, or does not exist.
    pub fn open(path: &Path) -> Result<Option<Self>, Failure> {
        if path == Path::new("-") || !is_stream(path) {
            return Ok(None);
        }
        let file = open(path).context(format_args!("cannot write {}", path.display()));
        let file = file.map_err(|failure| failure.hint("name a file where you may write after -o"))?;
        Ok(Some(Self { path: path.to_owned(), file }))
    }

    /// Writes all of it.
    pub fn write<E: std::fmt::Display>(
        &self,
        write: impl FnOnce(&mut dyn io::Write) -> Result<(), E>,
    ) -> Result<(), Failure> {
        fill(&self.file, write).context(format_args!("cannot write {}", self.path.display()))
    }
}

/// Whether an output is no file that could be replaced by another one of its name.
pub fn is_stream(path: &Path) -> bool {
    let is_special = |kind: std::fs::FileType| {
        kind.is_fifo() || kind.is_char_device() || kind.is_block_device() || kind.is_socket()
    };
    std::fs::metadata(path).is_ok_and(|known| is_special(known.file_type()) || is_descriptor(path))
}

/// Whether a path is one of those that stand for open files. Such a path may lead to a file, but a new file
/// could not take its name.
fn is_descriptor(path: &Path) -> bool {
    let directory = path.parent().and_then(|directory| directory.canonicalize().ok());
    let is_link = std::fs::symlink_metadata(path).is_ok_and(|known| known.is_symlink());
    is_link
        && directory.is_some_and(|directory| directory == Path::new("/dev") || directory.starts_with("/proc"))
}

fn open(path: &Path) -> io::Result<File> {
    const OWN_OUTPUT: [&str; 3] = ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"];
    if OWN_OUTPUT.iter().any(|own| path == Path::new(own)) {
        // Opened by its path, a socket would be refused, and a file written from its beginning.
        return Ok(io::stdout().as_fd().try_clone_to_owned()?.into());
    }
    let mut options = OpenOptions::new();
    options.append(true);
    if !std::fs::metadata(path)?.file_type().is_fifo() {
        return options.open(path);
    }
    match options.clone().custom_flags(libc::O_NONBLOCK).open(path) {
        Ok(pipe) => {
            // Writing waits for a slow reader. Opened again for that, it would wait for another reader if this
            // one is gone.
            fcntl(&pipe, FcntlArg::F_SETFL(OFlag::O_APPEND))?;
            Ok(pipe)
        }
        Err(error) if error.raw_os_error() != Some(libc::ENXIO) => Err(error),
        // It has no name by which a reader could come.
        Err(_) if path.canonicalize().is_err() => Err(io::Error::from_raw_os_error(libc::EPIPE)),
        Err(_) => {
            tell!("treering: waiting for a reader of {}", path.display());
            options.open(path)
        }
    }
}
