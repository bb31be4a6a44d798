//! What the recorder needs of a binary while the program runs: where its segments lie, how its
//! stacks are unwound, and a way to open it later.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::ops::Range;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use framehop::ExplicitModuleSectionInfo;
use object::read::elf::{FileHeader as _, ProgramHeader as _};
use object::{Object as _, ObjectSection as _, ObjectSegment as _, ReadCache, ReadRef};
use treering_profile::{FileOffset, Segment, SegmentMap, StatedAddress};

/// Bytes of a section, shared by all processes that map the binary.
pub(crate) type Bytes = Arc<[u8]>;

/// A binary as the recorder sees it.
#[derive(Debug, Default)]
pub(crate) struct Binary {
    /// Where its segments lie.
    pub(crate) segments: SegmentMap,
    /// Its build-id note, or empty.
    pub(crate) build_id: Vec<u8>,
    /// Where the kernel or the dynamic linker starts it, in code without callers; 0 for none.
    pub(crate) entry: u64,
    /// The file, where its path does not lead to it from here: in another mount namespace, or
    /// deleted.
    pub(crate) hidden: Option<File>,
    text: Option<Range<u64>>,
    eh_frame: Option<(Range<u64>, Bytes)>,
    eh_frame_hdr: Option<(Range<u64>, Bytes)>,
    debug_frame: Option<Bytes>,
}

impl Binary {
    /// Reads the parts of an ELF file that are needed; nothing when it is not one.
    fn parse<'data>(data: impl ReadRef<'data>) -> Option<Self> {
        let file = object::File::parse(data).ok()?;
        let section = |name: &str| {
            let section = file.section_by_name(name)?;
            let range = section.address()..section.address() + section.size();
            Some((range, Bytes::from(section.uncompressed_data().ok()?.as_ref())))
        };
        let text = file.section_by_name(".text").map(|text| text.address()..text.address() + text.size());
        let eh_frame = section(".eh_frame");
        let debug_frame = match eh_frame {
            None => section(".debug_frame").map(|(_, bytes)| bytes),
            Some(_) => None,
        };
        Some(Self {
            segments: SegmentMap::new(segments(&file, data)),
            build_id: file.build_id().ok().flatten().unwrap_or_default().to_vec(),
            entry: file.entry(),
            hidden: None,
            text,
            eh_frame,
            eh_frame_hdr: section(".eh_frame_hdr"),
            debug_frame,
        })
    }

    /// The sections for unwinding, as framehop takes them.
    pub(crate) fn unwind_sections(&self) -> ExplicitModuleSectionInfo<Bytes> {
        let range = |section: &Option<(Range<u64>, Bytes)>| section.as_ref().map(|(range, _)| range.clone());
        let bytes = |section: &Option<(Range<u64>, Bytes)>| section.as_ref().map(|(_, bytes)| bytes.clone());
        ExplicitModuleSectionInfo {
            text_svma: self.text.clone(),
            eh_frame_svma: range(&self.eh_frame),
            eh_frame: bytes(&self.eh_frame),
            eh_frame_hdr_svma: range(&self.eh_frame_hdr),
            eh_frame_hdr: bytes(&self.eh_frame_hdr),
            debug_frame: self.debug_frame.clone(),
            ..Default::default()
        }
    }
}

/// The loadable segments with their flags.
fn segments<'data, R: ReadRef<'data>>(file: &object::File<'data, R>, data: R) -> Vec<Segment> {
    let executable = executable_addresses(data).unwrap_or_default();
    let segments = file.segments().map(|segment| {
        let (file_offset, file_size) = segment.file_range();
        Segment {
            executable: executable.contains(&segment.address()),
            file_offset: FileOffset(file_offset),
            stated_address: StatedAddress(segment.address()),
            file_size,
            memory_size: segment.size(),
        }
    });
    segments.collect()
}

/// The stated addresses of executable segments of a 64-bit file.
fn executable_addresses<'data, R: ReadRef<'data>>(data: R) -> Option<Vec<u64>> {
    let header = object::elf::FileHeader64::<object::Endianness>::parse(data).ok()?;
    let endian = header.endian().ok()?;
    let headers = header.program_headers(endian, data).ok()?;
    let executable = headers.iter().filter(|header| {
        let flags = header.p_flags(endian);
        header.p_type(endian) == object::elf::PT_LOAD && flags.contains(object::elf::PF_X)
    });
    Some(executable.map(|header| header.p_vaddr(endian)).collect())
}

/// The binaries seen so far, each read once.
#[derive(Debug, Default)]
pub(crate) struct Binaries {
    known: HashMap<(u64, u64), Option<Rc<Binary>>>,
    vdso: Option<Rc<Binary>>,
}

impl Binaries {
    /// The binary that process `pid` mapped from `path` at `start..end`; nothing when it cannot
    /// be opened any more or is not ELF.
    pub(crate) fn open(&mut self, pid: u32, path: &Path, start: u64, end: u64) -> Option<Rc<Binary>> {
        if path.as_os_str() == "[vdso]" {
            return self.vdso();
        }
        let (file, identity) = open_mapped(pid, path, start, end)?;
        let known = self.known.entry(identity).or_insert_with(|| {
            let mut binary = Binary::parse(&ReadCache::new(file.try_clone().ok()?))?;
            binary.hidden = (identity_of(path) != Some(identity)).then_some(file);
            Some(Rc::new(binary))
        });
        known.clone()
    }

    /// The code that the kernel maps into every process, which is the same in ours.
    fn vdso(&mut self) -> Option<Rc<Binary>> {
        if self.vdso.is_none() {
            let binary = Binary::parse(vdso_image()?.as_slice())?;
            self.vdso = Some(Rc::new(binary));
        }
        self.vdso.clone()
    }
}

/// The ELF image of the vDSO, read from our own memory; the kernel maps the same one into every
/// 64-bit process.
pub fn vdso_image() -> Option<Vec<u8>> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let line = maps.lines().find(|line| line.ends_with("[vdso]"))?;
    let (start, end) = line.split_whitespace().next()?.split_once('-')?;
    let (start, end) = (u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?);
    let mut memory = File::open("/proc/self/mem").ok()?;
    memory.seek(SeekFrom::Start(start)).ok()?;
    let mut image = vec![0; (end - start) as usize];
    memory.read_exact(&mut image).ok()?;
    Some(image)
}

/// Opens a mapped file as the process sees it, else as we do, else through its mapping, which
/// finds deleted files too but takes root.
fn open_mapped(pid: u32, path: &Path, start: u64, end: u64) -> Option<(File, (u64, u64))> {
    let inside = PathBuf::from(format!("/proc/{pid}/root{}", path.display()));
    let mapping = PathBuf::from(format!("/proc/{pid}/map_files/{start:x}-{end:x}"));
    let file = [inside.as_path(), path, &mapping].into_iter().find_map(|path| {
        let regular = std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file());
        regular.then(|| File::open(path).ok()).flatten()
    })?;
    let metadata = file.metadata().ok()?;
    Some((file, (metadata.dev(), metadata.ino())))
}

fn identity_of(path: &Path) -> Option<(u64, u64)> {
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.dev(), metadata.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_binary_has_code_and_unwind_tables() {
        let mut binaries = Binaries::default();
        let path = std::env::current_exe().expect("our path");
        let binary = binaries.open(std::process::id(), &path, 0, 0).expect("an ELF file");
        assert!(binary.segments.segments().iter().any(|segment| segment.executable));
        assert!(binary.unwind_sections().eh_frame.is_some());
        assert!(binary.hidden.is_none());
    }

    #[test]
    fn the_vdso_is_read_from_our_own_memory() {
        let binary = Binaries::default().open(1, Path::new("[vdso]"), 0, 0).expect("a vDSO");
        assert!(binary.unwind_sections().eh_frame.is_some());
    }

    #[test]
    fn what_is_no_binary_is_none() {
        let mut binaries = Binaries::default();
        assert!(binaries.open(std::process::id(), Path::new("/proc/self/maps"), 0, 0).is_none());
        assert!(binaries.open(std::process::id(), Path::new("/no/such/file"), 0, 0).is_none());
    }
}
