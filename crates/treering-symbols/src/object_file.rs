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
use crate::regular_file::open_regular;

/// An object file that is read piece by piece: headers and symbols, but not the bulk of it.
pub(crate) type Object<'a> = object::File<'a, &'a Contents>;
/// Bytes of a section, in the byte order of the file.
pub(crate) type Slice<'a> = EndianSlice<'a, RunTimeEndian>;

/// Keeps what was read, so that object files and sections can borrow from it.
#[derive(Default)]
pub(crate) struct Storage {
    contents: Arena<Contents>,
    sections: Arena<Vec<u8>>,
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

    /// The contents of several sections, the large ones decompressed side by side.
    pub(crate) fn sections<'a>(
        &'a self,
        object: &Object<'a>,
        names: &[&str],
    ) -> object::Result<Vec<&'a [u8]>> {
        let packed: Vec<_> = names.iter().map(|name| packed(object, name)).collect::<Result<_, _>>()?;
        let unpacked: Vec<object::Result<Cow<'a, [u8]>>> = std::thread::scope(|scope| {
            let worth = |packed: &CompressedData<'_>| {
                packed.format != CompressionFormat::None && packed.uncompressed_size > WORTH_A_THREAD
            };
            let start = |packed| worth(packed).then(|| scope.spawn(|| packed.decompress()));
            let running: Vec<_> = packed.iter().map(start).collect();
            let finish =
                |(packed, thread): (&CompressedData<'a>, Option<ScopedJoinHandle<'_, _>>)| match thread {
                    Some(thread) => thread.join().expect("decompression does not panic"),
                    None => packed.decompress(),
                };
            packed.iter().zip(running).map(finish).collect()
        });
        unpacked.into_iter().map(|unpacked| unpacked.map(|unpacked| self.keep(unpacked))).collect()
    }

    fn keep<'a>(&'a self, contents: Cow<'a, [u8]>) -> &'a [u8] {
        match contents {
            Cow::Borrowed(contents) => contents,
            Cow::Owned(contents) => self.sections.alloc(contents),
        }
    }
}

/// How many bytes are worth a thread to decompress them on.
const WORTH_A_THREAD: u64 = 1 << 20;

/// The contents of a section as stored; empty when there is no such section.
fn packed<'a>(object: &Object<'a>, name: &str) -> object::Result<CompressedData<'a>> {
    object.section_by_name(name).map_or(Ok(CompressedData::none(&[])), |section| section.compressed_data())
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
