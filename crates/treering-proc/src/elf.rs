//! The parts of an ELF file by which a profiler identifies addresses in it.

use std::fs;
use std::path::Path;

use object::elf::PF_X;
use object::read::ReadCache;
use object::read::elf::{FileHeader as _, NoteIterator, ProgramHeader as _, SectionHeader as _};
use object::{Endianness, File, Object as _, ObjectSegment as _, ReadRef, SegmentFlags, elf};
use treering_profile::{FileOffset, Segment, SegmentMap, StatedAddress};

/// The segments that the loader maps from a file.
pub fn segments<'data>(file: &File<'data, impl ReadRef<'data>>) -> SegmentMap {
    let segments = file.segments().map(|segment| {
        let (file_offset, file_size) = segment.file_range();
        let is_executable = match segment.flags() {
            SegmentFlags::Elf { p_flags, .. } => p_flags.contains(PF_X),
            _ => false,
        };
        Segment {
            executable: is_executable,
            file_offset: FileOffset(file_offset),
            stated_address: StatedAddress(segment.address()),
            file_size,
            memory_size: segment.size(),
        }
    });
    SegmentMap::new(segments.collect())
}

/// The build-id of a file, by which it is known again; nothing if it has none.
pub fn build_id<'data>(file: &File<'data, impl ReadRef<'data>>) -> Option<&'data [u8]> {
    file.build_id().ok().flatten()
}

/// Where the loader maps the segments of a binary, and its build-id.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    /// The segments.
    pub segments: SegmentMap,
    /// The build-id; empty if there is none.
    pub build_id: Box<[u8]>,
}

impl Layout {
    /// Reads a 64-bit ELF file; nothing if it is no such file. Of a large one only the headers are read, not its
    /// symbols.
    pub fn read(path: &Path) -> Option<Self> {
        let bytes = ReadCache::new(fs::File::open(path).ok()?);
        let header = elf::FileHeader64::<Endianness>::parse(&bytes).ok()?;
        let endian = header.endian().ok()?;
        let loaded = header.program_headers(endian, &bytes).ok()?.iter();
        let segments =
            loaded.filter(|segment| segment.p_type(endian) == elf::PT_LOAD).map(|segment| Segment {
                executable: segment.p_flags(endian).contains(elf::PF_X),
                file_offset: FileOffset(segment.p_offset(endian)),
                stated_address: StatedAddress(segment.p_vaddr(endian)),
                file_size: segment.p_filesz(endian),
                memory_size: segment.p_memsz(endian),
            });
        let segments = SegmentMap::new(segments.collect());
        let build_id = build_id_note(header, endian, &bytes).unwrap_or_default().into();
        Some(Self { segments, build_id })
    }
}

/// The build-id note, which is in a section, or in a segment where there are no sections.
fn build_id_note<'a>(
    header: &elf::FileHeader64<Endianness>,
    endian: Endianness,
    bytes: &'a ReadCache<fs::File>,
) -> Option<&'a [u8]> {
    let of_notes = |notes: object::Result<Option<NoteIterator<'a, _>>>| {
        let mut notes = notes.ok()??;
        while let Some(note) = notes.next().ok()? {
            if note.name() == elf::ELF_NOTE_GNU && note.n_type(endian) == elf::NT_GNU_BUILD_ID {
                return Some(note.desc());
            }
        }
        None
    };
    let sections = header.sections(endian, bytes).ok()?;
    if !sections.is_empty() {
        return sections.iter().find_map(|section| of_notes(section.notes(endian, bytes)));
    }
    let segments = header.program_headers(endian, bytes).ok()?;
    segments.iter().find_map(|segment| of_notes(segment.notes(endian, bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_program_has_code_where_its_symbols_say() {
        let bytes = std::fs::read(std::env::current_exe().expect("our path")).expect("our program");
        let file = File::parse(&bytes[..]).expect("an ELF file");
        let map = segments(&file);
        let entry = file.entry();
        let holds_entry = |segment: &Segment| {
            let start = segment.stated_address.0;
            segment.executable && (start..start + segment.memory_size).contains(&entry)
        };
        assert!(map.segments().iter().any(holds_entry));
        assert_eq!(build_id(&file), file.build_id().ok().flatten());
        let layout = Layout::read(&std::env::current_exe().expect("our path")).expect("an ELF file");
        assert_eq!(&*layout.build_id, build_id(&file).unwrap_or_default());
        assert_eq!(layout.segments.segments(), map.segments());
        assert!(
            Layout::read(Path::new("/etc/passwd")).is_none() && Layout::read(Path::new("/no/file")).is_none()
        );
    }
}
