//! The files of the history: one for each program, in the user's cache.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Read as _, Write as _};
use std::path::Path;

use serde::{Deserialize, Serialize};
use treering_cache::Cache;

use super::{Module, ProgramHints};

/// The beginning of every file; the number changes with the format.
const FORMAT: (u64, u32) = (0x7374_6e69_6867_7274, 4);
/// How many bytes all files may have together; the most recently used ones stay.
const MOST: u64 = 256 << 20;
/// Larger files are not ours.
const LARGEST: u64 = 64 << 20;
/// The ending of their names.
const ENDING: &str = "hints";

#[derive(Serialize, Deserialize)]
struct FileContent<'a> {
    format: (u64, u32),
    /// The program's file. Hint files are named by a hash of it, so names may collide.
    program: &'a str,
}

fn name_of(program: &str) -> String {
    let mut hasher = DefaultHasher::new();
    program.hash(&mut hasher);
    format!("{:016x}.{ENDING}", hasher.finish())
}

/// The stored hints for a program, if there are any.
pub(super) fn read(directory: &Path, program: &Path) -> Option<ProgramHints> {
    let program = program.to_str()?;
    // A file of another user might be made to waste our time.
    let mut file = Cache::open(directory).ok()?.file(&name_of(program), LARGEST).ok()?;
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
    Some(hints)
}

/// Stores the hints for a program.
pub(super) fn write(directory: &Path, program: &Path, hints: &ProgramHints) -> io::Result<()> {
    let program = program.to_str().ok_or(io::ErrorKind::InvalidInput)?;
    let bytes = postcard::to_stdvec(&FileContent { format: FORMAT, program }).map_err(io::Error::other)?;
    let bytes = postcard::to_extend(hints, bytes).map_err(io::Error::other)?;
    let cache = Cache::open(directory)?;
    cache.keep(&name_of(program), 0o600, |file| file.write_all(&bytes))?;
    cache.shrink(MOST)
}
