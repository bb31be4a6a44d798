//! The bytes of code that was executed.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use object::{Object as _, ObjectSegment as _, SegmentFlags, elf};
use treering_profile::{CodeAddress, CodeBytes, Module, ModuleId, ModuleKind, Profile};

use crate::elf_module::ElfModule;
use crate::object_file::{Object, Storage};
use crate::regular_file::open_regular;
use crate::{Options, Problem};

/// Reads the code of a profile: what the profile kept itself, else the files of its modules, if they
/// are still what was executed.
///
/// A file is opened at the first question for its code, and stays open.
#[derive(Debug)]
pub struct CodeReader<'o> {
    options: &'o Options<'o>,
    /// By space, its module.
    spaces: Vec<Option<ModuleId>>,
    modules: Vec<(String, Module)>,
    /// Sorted by address.
    kept: Vec<CodeBytes>,
    code: HashMap<ModuleId, Result<Code, Problem>>,
}

/// The code mapped from a module, and where its bytes are.
#[derive(Debug)]
struct Code {
    segments: Vec<Segment>,
    bytes: Bytes,
}

/// A stretch of a file that is mapped as code.
#[derive(Debug)]
struct Segment {
    /// The stated address of its first byte.
    start: u64,
    /// Where it is in the file.
    offset: u64,
    size: u64,
}

#[derive(Debug)]
enum Bytes {
    Memory(Vec<u8>),
    /// Of a large library little is executed: it is read by pieces, of which the latest is kept, with
    /// where in the file it begins.
    File {
        file: File,
        piece: Vec<u8>,
        offset: u64,
    },
}

/// How much of a file is read at once.
const PIECE: u64 = 16 << 10;

impl<'o> CodeReader<'o> {
    /// For the code of `profile`; of `options`, only where files are counts.
    pub fn new(profile: &Profile, options: &'o Options<'o>) -> Self {
        let modules = profile.modules.entries().iter();
        let mut kept = profile.code.bytes.clone();
        kept.sort_by_key(|row| row.start);
        Self {
            options,
            spaces: profile.code.spaces.entries().iter().map(|space| space.module).collect(),
            modules: modules.map(|m| (profile.strings[m.path].to_owned(), m.clone())).collect(),
            kept,
            code: HashMap::new(),
        }
    }

    /// The bytes from an address on: at least one, at most `length`. Nothing where they are not
    /// known; [`problems`](Self::problems) says why.
    pub fn read(&mut self, at: CodeAddress, length: usize) -> Option<Vec<u8>> {
        if let Some(kept) = self.kept(at) {
            return Some(kept[..kept.len().min(length)].to_vec());
        }
        let module = (*self.spaces.get(at.space.index())?)?;
        if !self.code.contains_key(&module) {
            let read = self.open(module);
            self.code.insert(module, read);
        }
        self.code.get_mut(&module)?.as_mut().ok()?.read(at.address.0, length)
    }

    /// Why files could not be read, each once.
    pub fn problems(&self) -> Vec<Problem> {
        let mut problems: Vec<_> =
            self.code.values().filter_map(|read| read.as_ref().err().cloned()).collect();
        problems.sort();
        problems.dedup();
        problems
    }

    fn kept(&self, at: CodeAddress) -> Option<&[u8]> {
        let after = self.kept.partition_point(|row| row.start <= at);
        let row = self.kept.get(after.checked_sub(1)?)?;
        let skipped = usize::try_from(at.address.0.checked_sub(row.start.address.0)?).ok()?;
        let rest = row.bytes.get(skipped..).filter(|rest| !rest.is_empty())?;
        (row.start.space == at.space).then_some(rest)
    }

    fn open(&self, module: ModuleId) -> Result<Code, Problem> {
        let (path, module) = &self.modules[module.index()];
        let storage = Storage::default();
        if module.kind == ModuleKind::Vdso {
            let missing = || Problem::NotAnObject { path: path.into() };
            let image = treering_proc::vdso_image().ok_or_else(missing)?;
            let object = storage.take(image.clone()).map_err(|_| missing())?;
            return Ok(Code { segments: code_segments(&object), bytes: Bytes::Memory(image) });
        }
        let elf = ElfModule { path, build_id: &module.build_id };
        let (object, path) = elf.open(&storage, self.options)?;
        let file = open_regular(&path).map_err(|error| Problem::unreadable(&path, &error))?;
        let bytes = Bytes::File { file, piece: Vec::new(), offset: 0 };
        Ok(Code { segments: code_segments(&object), bytes })
    }
}

impl Code {
    /// At least one byte at an address, at most `length`.
    fn read(&mut self, address: u64, length: usize) -> Option<Vec<u8>> {
        let (offset, rest) = self.segments.iter().find_map(|segment| {
            let skipped = address.checked_sub(segment.start).filter(|&skipped| skipped < segment.size)?;
            Some((segment.offset + skipped, segment.size - skipped))
        })?;
        let found = self.bytes.at(offset)?;
        let length = length.min(found.len()).min(usize::try_from(rest).unwrap_or(usize::MAX));
        Some(found[..length].to_vec())
    }
}

impl Bytes {
    /// At least one byte of the file from an offset on.
    fn at(&mut self, wanted: u64) -> Option<&[u8]> {
        let (bytes, start) = match self {
            Self::Memory(bytes) => (bytes, 0),
            Self::File { file, piece, offset } => {
                if !(*offset..*offset + piece.len() as u64).contains(&wanted) {
                    *offset = wanted - wanted % PIECE;
                    piece.resize(PIECE as usize, 0);
                    let read = read_at(file, piece, *offset).unwrap_or(0);
                    piece.truncate(read);
                }
                (piece, *offset)
            }
        };
        bytes.get(usize::try_from(wanted - start).ok()?..).filter(|rest| !rest.is_empty())
    }
}

/// Reads until the buffer is full or the file ends; how many bytes those are.
fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut done = 0;
    while done < buffer.len() {
        match file.read_at(&mut buffer[done..], offset + done as u64) {
            Ok(0) => break,
            Ok(read) => done += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

fn code_segments(object: &Object<'_>) -> Vec<Segment> {
    let executable =
        |flags| matches!(flags, SegmentFlags::Elf { p_flags, .. } if p_flags.contains(elf::PF_X));
    let segments = object.segments().filter(|segment| executable(segment.flags()));
    let segments = segments.map(|segment| {
        let (offset, size) = segment.file_range();
        Segment { start: segment.address(), offset, size }
    });
    segments.collect()
}
