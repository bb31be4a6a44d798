//! Object files, of which only what is asked for is read.

use std::borrow::Cow;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::thread::ScopedJoinHandle;

use gimli::{EndianSlice, RunTimeEndian};
use object::{CompressedData, CompressionFormat, Object as _, ObjectSection as _};
use treering_proc::{build_id, segments};
use treering_profile::SegmentMap;
use typed_arena::Arena;

use crate::Problem;
use crate::contents::Contents;
use crate::kept_sections::KeptSections;
use crate::regular_file::open_regular;
use crate::section::Section;

/// An object file that is read piece by piece: headers and symbols, but not the bulk of it.
pub(crate) type Object<'a> = object::File<'a, &'a Contents>;
/// Bytes of a section, in the byte order of the file.
pub(crate) type Slice<'a> = EndianSlice<'a, RunTimeEndian>;

/// Keeps what was read, so that object files and sections can borrow from it.
#[derive(Default)]
pub(crate) struct Storage {
    contents: Arena<Contents>,
    sections: Arena<Vec<u8>>,
    kept: Arena<KeptSections>,
}

impl Storage {
    /// Opens an object file; directories, devices and pipes are refused unread.
    pub(crate) fn open(&self, path: &Path) -> Result<Object<'_>, Problem> {
        self.open_of(path, |_| true)
    }

    /// The same, if `trusted` accepts the file's owner.
    pub(crate) fn open_of(&self, path: &Path, trusted: impl Fn(u32) -> bool) -> Result<Object<'_>, Problem> {
        let no_object = || Problem::NotAnObject { path: path.into() };
        let unreadable = |error: io::Error| match error.kind() {
            io::ErrorKind::InvalidInput => no_object(),
            _ => Problem::unreadable(path, &error),
        };
        let file = open_regular(path).map_err(unreadable)?;
        let owner = file.metadata().map_err(unreadable)?.uid();
        if !trusted(owner) {
            return Err(Problem::ForeignOwner { path: path.into(), owner });
        }
        let contents = Contents::of_file(file).map_err(unreadable)?;
        self.parse(contents).map_err(|_| no_object())
    }

    /// Takes an object file that lies in memory.
    pub(crate) fn take(&self, bytes: Vec<u8>) -> object::Result<Object<'_>> {
        self.parse(Contents::of_memory(bytes))
    }

    fn parse(&self, contents: Contents) -> object::Result<Object<'_>> {
        object::File::parse(&*self.contents.alloc(contents))
    }

    /// The contents of a section, decompressed; empty when there is no such section.
    pub(crate) fn section<'a>(&'a self, object: &Object<'a>, name: &str) -> object::Result<&'a [u8]> {
        Ok(self.keep(packed(object, name)?.decompress()?))
    }

    /// Several sections, those that are large and compressed decompressed side by side. Others stay unread.
    pub(crate) fn sections<'a>(
        &'a self,
        object: &Object<'a>,
        names: &[&str],
    ) -> object::Result<Vec<Section<'a>>> {
        let stored: Vec<_> = names.iter().map(|name| stored(object, name)).collect::<Result<_, _>>()?;
        let unpacked: Vec<Option<object::Result<Cow<'a, [u8]>>>> = std::thread::scope(|scope| {
            let start = |stored: &Stored<'a>| match *stored {
                Stored::Packed(packed) if packed.uncompressed_size > WORTH_A_THREAD => {
                    Some(scope.spawn(move || packed.decompress()))
                }
                _ => None,
            };
            let running: Vec<_> = stored.iter().map(start).collect();
            let finish = |(stored, thread): (&Stored<'a>, Option<ScopedJoinHandle<'_, _>>)| match thread {
                Some(thread) => Some(thread.join().expect("decompression does not panic")),
                None => stored.unpack(),
            };
            stored.iter().zip(running).map(finish).collect()
        });
        let section = |(stored, unpacked): (Stored<'a>, Option<object::Result<Cow<'a, [u8]>>>)| {
            Ok(match (stored, unpacked) {
                (Stored::Plain(section), _) => section,
                (Stored::Packed(_), unpacked) => {
                    Section::in_memory(self.keep(unpacked.transpose()?.unwrap_or_default()))
                }
            })
        };
        stored.into_iter().zip(unpacked).map(section).collect()
    }

    /// Takes sections that an earlier run decompressed.
    pub(crate) fn take_kept(&self, kept: KeptSections) -> &KeptSections {
        self.kept.alloc(kept)
    }

    fn keep<'a>(&'a self, contents: Cow<'a, [u8]>) -> &'a [u8] {
        match contents {
            Cow::Borrowed(contents) => contents,
            Cow::Owned(contents) => self.sections.alloc(contents),
        }
    }
}

/// More bytes are worth a file that holds them decompressed.
const WORTH_KEEPING: u64 = 1 << 18;

/// How many bytes are worth a thread to decompress them on.
const WORTH_A_THREAD: u64 = 1 << 20;

/// The contents of a section as stored; empty when there is no such section.
fn packed<'a>(object: &Object<'a>, name: &str) -> object::Result<CompressedData<'a>> {
    object.section_by_name(name).map_or(Ok(CompressedData::none(&[])), |section| section.compressed_data())
}

/// A section as it lies in a file.
enum Stored<'a> {
    Plain(Section<'a>),
    Packed(CompressedData<'a>),
}

impl<'a> Stored<'a> {
    fn unpack(&self) -> Option<object::Result<Cow<'a, [u8]>>> {
        match self {
            Self::Plain(_) => None,
            Self::Packed(packed) => Some(packed.decompress()),
        }
    }
}

fn stored<'a>(object: &Object<'a>, name: &str) -> object::Result<Stored<'a>> {
    let Some(section) = object.section_by_name(name) else { return Ok(Stored::Plain(Section::default())) };
    let range = section.compressed_file_range()?;
    let contents = contents(object).filter(|_| range.format == CompressionFormat::None);
    Ok(match contents.and_then(|contents| contents.section(range.offset, range.uncompressed_size)) {
        Some(section) => Stored::Plain(section),
        None => Stored::Packed(section.compressed_data()?),
    })
}

/// Whether some of the sections, which are large together, are compressed.
pub(crate) fn are_compressed(object: &Object<'_>, names: &[&str]) -> bool {
    let range = |name: &&str| object.section_by_name(name)?.compressed_file_range().ok();
    let packed = names.iter().filter_map(range).filter(|range| range.format != CompressionFormat::None);
    packed.map(|range| range.uncompressed_size).fold(0, u64::saturating_add) > WORTH_KEEPING
}

/// The file that an object is read from.
pub(crate) fn contents<'a>(object: &Object<'a>) -> Option<&'a Contents> {
    match object {
        object::File::Elf32(file) => Some(file.data()),
        object::File::Elf64(file) => Some(file.data()),
        _ => None,
    }
}

pub(crate) fn endian(object: &Object<'_>) -> RunTimeEndian {
    if object.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big }
}

/// Whether there is a section of that name that is not empty. In a file of debug information
/// only, the program's own sections are there by name alone.
pub(crate) fn has_section(object: &Object<'_>, name: &str) -> bool {
    object.section_by_name(name).is_some_and(|section| section.file_range().is_some_and(|(_, size)| size > 0))
}

/// Reads the program headers of an ELF file.
pub fn segment_map(path: &Path) -> Result<SegmentMap, Problem> {
    segment_map_of(path, &[])
}

/// The segments of the binary at a path that has this build-id, if one is given.
///
/// # Errors
/// When it cannot be read, or has another build-id.
pub fn segment_map_of(path: &Path, wanted: &[u8]) -> Result<SegmentMap, Problem> {
    let storage = Storage::default();
    let object = storage.open(path)?;
    let found = build_id(&object);
    match wanted.is_empty() || found == Some(wanted) {
        true => Ok(segments(&object)),
        false => Err(Problem::other_build(path, wanted, found)),
    }
}
