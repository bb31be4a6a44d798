//! Finding the debug information that belongs to a binary.

use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use flate2::CrcReader;
use object::Object as _;
use treering_proc::build_id;

use crate::object_file::{Object, Storage, has_section};
use crate::problem::hexadecimal;
use crate::regular_file::{open_regular, own_user};
use crate::{Options, Problem};

/// A file with debug information.
pub(crate) struct DebugFile<'a> {
    pub(crate) object: Object<'a>,
    pub(crate) path: PathBuf,
}

/// Looks for the files that go with binaries, as gdb does: "Debugging with GDB", "Debugging
/// Information in Separate Files".
pub(crate) struct Finder<'s, 'o> {
    pub(crate) storage: &'s Storage,
    pub(crate) options: &'s Options<'o>,
}

impl<'s> Finder<'s, '_> {
    /// The separate debug file of a binary, by build-id, else by the link in the binary, whose
    /// checksum must fit.
    pub(crate) fn separate(
        &self,
        binary: &Object<'s>,
        path: &Path,
        problems: &mut Vec<Problem>,
    ) -> Option<DebugFile<'s>> {
        let owner = owner_of(path);
        let by_id = build_id(binary).and_then(|id| self.by_build_id(id, owner, problems));
        by_id.or_else(|| self.by_link(binary, path, problems))
    }

    /// The file that several debug files share the common parts of their information in, as dwz
    /// makes it; `holder` is the file that refers to it.
    pub(crate) fn supplementary(
        &self,
        debug: &Object<'s>,
        holder: &Path,
        problems: &mut Vec<Problem>,
    ) -> Option<DebugFile<'s>> {
        let owner = owner_of(holder);
        let (name, id) = debug.gnu_debugaltlink().ok()??;
        let name = PathBuf::from(String::from_utf8_lossy(name).into_owned());
        let beside = holder.parent().map(|directory| directory.join(&name));
        let file_name = name.file_name().map(PathBuf::from).unwrap_or_default();
        let pooled =
            self.options.debug_directories.iter().map(|directory| directory.join(".dwz").join(&file_name));
        let found = beside
            .into_iter()
            .chain(pooled)
            .find_map(|path| self.open_if(&path, owner, problems, |o| build_id(o) == Some(id)));
        let found = found.or_else(|| self.by_build_id(id, owner, problems));
        if found.is_none() {
            problems.push(Problem::MissingPart { path: name });
        }
        found
    }

    /// A file of split debug information, at the first place where `accept` finds the right one; `owner` is the owner
    /// of the file that refers to it.
    pub(crate) fn part(
        &self,
        candidates: &[PathBuf],
        owner: Option<u32>,
        problems: &mut Vec<Problem>,
        accept: impl Fn(&Object<'s>) -> bool,
    ) -> Option<DebugFile<'s>> {
        candidates.iter().find_map(|path| self.open_if(path, owner, problems, &accept))
    }

    fn by_build_id(
        &self,
        id: &[u8],
        owner: Option<u32>,
        problems: &mut Vec<Problem>,
    ) -> Option<DebugFile<'s>> {
        let (first, rest) = id.split_first()?;
        let name = format!("{first:02x}/{}.debug", hexadecimal(rest));
        let paths =
            self.options.debug_directories.iter().map(|directory| directory.join(".build-id").join(&name));
        let fetched = self.options.debuginfod_caches.iter();
        let paths = paths.chain(fetched.map(|cache| cache.join(hexadecimal(id)).join("debuginfo")));
        let right =
            |object: &Object<'s>| build_id(object).is_none_or(|found| found == id) && has_information(object);
        { paths }.find_map(|path| self.open_if(&path, owner, problems, right))
    }

    fn by_link(
        &self,
        binary: &Object<'s>,
        path: &Path,
        problems: &mut Vec<Problem>,
    ) -> Option<DebugFile<'s>> {
        let (name, checksum) = binary.gnu_debuglink().ok()??;
        let name = PathBuf::from(String::from_utf8_lossy(name).into_owned());
        let directory = path.parent()?;
        let mut candidates = vec![directory.join(&name), directory.join(".debug").join(&name)];
        let inside = directory.strip_prefix("/").unwrap_or(directory);
        candidates.extend(self.options.debug_directories.iter().map(|debug| debug.join(inside).join(&name)));
        for candidate in candidates.iter().filter(|candidate| *candidate != path) {
            let found = self.open_if(candidate, owner_of(path), problems, has_information);
            let Some(found) = found else { continue };
            if file_checksum(&found.path) == Some(checksum) {
                return Some(found);
            }
            problems.push(Problem::OtherChecksum { path: found.path });
        }
        None
    }

    /// Opens a file that goes with another, which belongs to `owner`.
    fn open_if(
        &self,
        path: &Path,
        owner: Option<u32>,
        problems: &mut Vec<Problem>,
        accept: impl Fn(&Object<'s>) -> bool,
    ) -> Option<DebugFile<'s>> {
        let here = (self.options.open)(path);
        let trusted = |found: u32| found == 0 || Some(found) == owner || Some(found) == own_user();
        let places = here.into_iter().chain([path.to_path_buf()]);
        places.into_iter().find_map(|path| match self.storage.open_of(&path, trusted) {
            Ok(object) => accept(&object).then_some(DebugFile { object, path }),
            Err(foreign @ Problem::ForeignOwner { .. }) => {
                if !problems.contains(&foreign) {
                    problems.push(foreign);
                }
                None
            }
            Err(_) => None,
        })
    }
}

/// The owner of a file.
pub(crate) fn owner_of(path: &Path) -> Option<u32> {
    Some(std::fs::metadata(path).ok()?.uid())
}

fn has_information(object: &Object<'_>) -> bool {
    has_section(object, ".debug_info") || has_section(object, ".symtab")
}

/// Larger files are not read as a whole for their checksum.
const LARGEST_CHECKED: u64 = 16 << 30;

/// The checksum that a debug link holds: CRC-32 as in zlib, of the whole file.
fn file_checksum(path: &Path) -> Option<u32> {
    let file = open_regular(path).ok()?;
    if file.metadata().ok()?.len() > LARGEST_CHECKED {
        return None;
    }
    let mut reader = CrcReader::new(file);
    let mut buffer = vec![0; 1 << 16];
    while reader.read(&mut buffer).ok()? > 0 {}
    Some(reader.crc().sum())
}

/// The largest symbol table that is unpacked from within a binary.
const LARGEST_MINIATURE: u64 = 1 << 28;

/// The symbol table that some distributions put into their binaries in xz-compressed form, as an
/// object file of its own in `.gnu_debugdata`: "Debugging with GDB", "MiniDebugInfo".
pub(crate) fn miniature<'a>(binary: &Object<'a>, storage: &'a Storage) -> Option<Object<'a>> {
    let packed = storage.section(binary, ".gnu_debugdata").ok().filter(|packed| !packed.is_empty())?;
    let mut bytes = Vec::new();
    lzma_rust2::XzReader::new(packed, true).take(LARGEST_MINIATURE).read_to_end(&mut bytes).ok()?;
    storage.take(bytes).ok()
}
