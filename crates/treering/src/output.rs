//! Writes result files so that no half of one is left under its name.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::failure::{Context as _, Failure};
use crate::stream::is_stream;
use crate::terminal;

/// Writes a file whole or not at all: `write` fills a file beside it that is then given its name.
///
/// `-` stands for standard output. Pipes and devices are written directly.
pub fn write_whole<E: std::fmt::Display>(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> Result<(), Failure> {
    let cannot = format!("cannot write {}", path.display());
    if path == Path::new("-") {
        let mut text = Vec::new();
        write(&mut text).map_err(Failure::new)?;
        return terminal::print_bytes(&text);
    }
    if is_stream(path) {
        return fill(File::create(path).context(&cannot)?, write).context(cannot);
    }
    let beside = beside(path);
    let filled = File::create(&beside).map_err(|error| error.to_string()).and_then(|file| fill(file, write));
    let named = filled.and_then(|()| std::fs::rename(&beside, path).map_err(|error| error.to_string()));
    if named.is_err() {
        let _ = std::fs::remove_file(&beside);
    }
    named.context(cannot)
}

/// Writes all of something to a place.
pub fn fill<E: std::fmt::Display>(
    to: impl Write,
    write: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> Result<(), String> {
    let mut to = BufWriter::new(to);
    write(&mut to).map_err(|error| error.to_string())?;
    to.flush().map_err(|error| error.to_string())
}

/// A name in the same folder, so that giving the file its final name is one step.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".part{}", std::process::id()));
    PathBuf::from(name)
}
