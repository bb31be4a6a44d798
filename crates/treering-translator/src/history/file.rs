//! The files of the history: one for each program, in the user's cache.

use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use treering_temporary::private;

use super::{Module, ProgramHints};

/// The beginning of every file; the number changes with the format.
const FORMAT: (u64, u32) = (0x7374_6e69_6867_7274, 4);
/// The number of files that are kept: the most recently used ones.
const MOST_FILES: usize = 256;
/// Larger files are not ours.
const LARGEST: u64 = 64 << 20;
/// The ending of their names.
const ENDING: &str = "hints";
/// How long a note that a file is used remains valid.
const NOTED_AGAIN: Duration = Duration::from_secs(3600);

#[derive(Serialize, Deserialize)]
struct FileContent<'a> {
    format: (u64, u32),
    /// The program's file. Hint files are named by a hash of it, so names may collide.
    program: &'a str,
}

fn path_of(directory: &Path, program: &str) -> PathBuf {
    let mut hasher = DefaultHasher::new();
    program.hash(&mut hasher);
    directory.join(format!("{:016x}.{ENDING}", hasher.finish()))
}

/// The stored hints for a program, if there are any.
pub(super) fn read(directory: &Path, program: &Path) -> Option<ProgramHints> {
    let program = program.to_str()?;
    let path = path_of(directory, program);
    // A file of another user might be made to waste our time.
    let mut file = private::open(&path, LARGEST)?;
    let last = file.metadata().and_then(|found| found.modified());
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).ok()?;
    let (content, rest) = postcard::take_from_bytes::<FileContent<'_>>(&bytes).ok()?;
    if content.format != FORMAT || content.program != program {
        return None;
    }
    let mut hints: ProgramHints = postcard::from_bytes(rest).ok()?;
    let modules = hints.modules.len();
    let mut transfers = hints.modules.iter().flat_map(|module| &module.transfers);
    if transfers.any(|transfer| usize::from(transfer.to.module) >= modules)
        || hints.modules.iter().any(|module| !module.transfers.is_sorted_by_key(|transfer| transfer.from))
    {
        return None;
    }
    hints.modules.iter_mut().for_each(Module::prepare);
    // A file without a recent note counts as unused. Setting the note takes longer than reading most files.
    if last.ok().and_then(|last| last.elapsed().ok()).is_none_or(|ago| ago > NOTED_AGAIN) {
        let _ = file.set_modified(SystemTime::now());
    }
    Some(hints)
}

/// Stores the hints for a program.
pub(super) fn write(directory: &Path, program: &Path, hints: &ProgramHints) -> io::Result<()> {
    let program = program.to_str().ok_or(io::ErrorKind::InvalidInput)?;
    let bytes = postcard::to_stdvec(&FileContent { format: FORMAT, program }).map_err(io::Error::other)?;
    let bytes = postcard::to_extend(hints, bytes).map_err(io::Error::other)?;
    private::create_folder(directory)?;
    private::write(&path_of(directory, program), &bytes, 0o600)?;
    remove_old(directory)
}

/// Removes the least recently used files if there are too many.
fn remove_old(directory: &Path) -> io::Result<()> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)?.flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|ending| ending == ENDING || ending == private::UNFINISHED) {
            files.push((entry.metadata()?.modified()?, path));
        }
    }
    files.sort_unstable();
    let too_many = files.len().saturating_sub(MOST_FILES);
    files.drain(..too_many).for_each(|(_, path)| drop(fs::remove_file(path)));
    Ok(())
}
