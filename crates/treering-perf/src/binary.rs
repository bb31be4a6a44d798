//! Binaries as the recorder needs them while the program runs: where their segments lie, how their
//! stacks are unwound, and a way to open them later.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use object::{Object as _, ObjectSection as _, ReadCache, ReadRef};
use treering_proc::{read_memory, vdso_image};
use treering_profile::{SegmentMap, pluralize};

use crate::call_frame::{CallFrames, FrameRule};
use crate::function_range::FunctionRanges;
use crate::registers::Width;
use crate::rule::{Left, Place, Rule, call_target, is_behind_call};

/// Bytes of a section, shared by all that refer to them.
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
    /// The file, where its path does not lead to it from here, as in another mount namespace, or may
    /// lead to another one later on.
    pub(crate) kept: Option<File>,
    /// Its number among the files that were mapped from its path, from 1.
    pub(crate) version: u32,
    /// Whether its code has 64 bits.
    pub(crate) width: Width,
    /// Whether Go's compiler made it, whose functions keep frame pointers.
    is_go: bool,
    image: Image,
    frames: CallFrames,
    /// Where its functions lie, read when code without tables is met.
    functions: OnceCell<FunctionRanges>,
    /// The same few thousand places come again and again, in all processes.
    rules: RefCell<hashbrown::HashMap<Place, Rule>>,
    /// Whether addresses are behind calls.
    behind_calls: RefCell<hashbrown::HashMap<u64, bool>>,
}

/// Where the bytes of a binary are.
#[derive(Debug)]
enum Image {
    /// In a file, opened again when its code is to be read: most binaries have tables for all.
    File { path: PathBuf, identity: Identity, file: OnceCell<Option<File>> },
    /// In memory, as for the vDSO.
    Memory(Bytes),
}

impl Default for Image {
    fn default() -> Self {
        Self::Memory(Bytes::from([]))
    }
}

impl Binary {
    /// Reads the parts of an ELF file that are needed; nothing when it is not one.
    fn parse<'data>(data: impl ReadRef<'data>, image: Image) -> Option<Self> {
        let file = object::File::parse(data).ok()?;
        let section = |name: &str| {
            let section = file.section_by_name(name)?;
            let range = section.address()..section.address() + section.size();
            Some((range, Bytes::from(section.uncompressed_data().ok()?.as_ref())))
        };
        let width = if file.is_64() { Width::Bits64 } else { Width::Bits32 };
        let text = file.section_by_name(".text").map(|text| text.address()..text.address() + text.size());
        let debug_frame = section(".debug_frame").map(|(_, bytes)| bytes);
        let frames =
            CallFrames::new(width, section(".eh_frame"), section(".eh_frame_hdr"), debug_frame, text);
        Some(Self {
            segments: treering_proc::segments(&file),
            build_id: treering_proc::build_id(&file).unwrap_or_default().to_vec(),
            entry: file.entry(),
            is_go: file.section_by_name(".go.buildinfo").is_some(),
            image,
            width,
            frames,
            ..Self::default()
        })
    }

    /// How to leave a frame at a stated place.
    pub(crate) fn rule(&self, place: Place) -> Rule {
        if let Some(rule) = self.rules.borrow().get(&place) {
            return rule.clone();
        }
        let rule = self.read_rule(place);
        self.rules.borrow_mut().insert(place, rule.clone());
        rule
    }

    /// Whether the instruction before a stated address is a call.
    pub(crate) fn is_behind_call(&self, address: u64) -> bool {
        let read = |address: u64, bytes: &mut [u8]| self.read_code(address, bytes);
        *self
            .behind_calls
            .borrow_mut()
            .entry(address)
            .or_insert_with(|| is_behind_call(&read, address).unwrap_or(false))
    }

    /// The function that the call before a stated address calls by its address.
    pub(crate) fn call_target(&self, address: u64) -> Option<u64> {
        let target = call_target(&|address, bytes| self.read_code(address, bytes), address)?;
        // Where tables cover it, they must agree.
        self.function_start(target).is_none_or(|start| start == target).then_some(target)
    }

    /// Where the function begins that holds a stated address, as far as the unwind tables tell.
    pub(crate) fn function_start(&self, address: u64) -> Option<u64> {
        self.frames.start(address)
    }

    fn read_rule(&self, place: Place) -> Rule {
        let read = |address: u64, bytes: &mut [u8]| self.read_code(address, bytes);
        if self.is_go
            && place.left == Left::Call
            && let Some(switch) = Rule::of_switch(&read, place)
        {
            return switch;
        }
        let table = Rule::from_tables(self.frames.rule(place.lookup()));
        // No call leads to the start of a function: there the tables speak of its neighbour.
        let written_by_hand = place.left == Left::Call && self.frames.begins_near(place.instruction);
        if (table.is_none() || written_by_hand)
            && let Some(rule) = Rule::from_landmark(&read, self.width, place)
        {
            return rule;
        }
        if written_by_hand && matches!(self.frames.rule(place.instruction), FrameRule::First) {
            return Rule::Landing;
        }
        if let Some(rule) = table {
            return rule;
        }
        let functions = self.functions.get_or_init(|| self.read_functions().unwrap_or_default());
        if place.left == Left::Call && functions.starts_thread(place.lookup()) {
            return Rule::First;
        }
        let mut rule = Rule::from_code(&read, self.width, place, functions.around(place.lookup()));
        // From where `runtime.main` calls `main.main`, no way leads back out.
        if self.is_go && place.left == Left::Call {
            rule.keep_frame();
        }
        rule
    }

    /// Copies the code at a stated address; returns how much there is.
    fn read_code(&self, address: u64, bytes: &mut [u8]) -> usize {
        let holder = self.segments.segments().iter().find(|segment| {
            let start = segment.stated_address.0;
            segment.executable && (start..start + segment.file_size).contains(&address)
        });
        let Some(segment) = holder else { return self.read_up_to_code(address, bytes) };
        let offset = address - segment.stated_address.0;
        let length = bytes.len().min((segment.file_size - offset) as usize);
        self.read_image(segment.file_offset.0 + offset, &mut bytes[..length])
    }

    /// The same for an address on the page before a segment, which starts within it.
    fn read_up_to_code(&self, address: u64, bytes: &mut [u8]) -> usize {
        let starts = self.segments.segments().iter().filter(|segment| segment.executable);
        let ahead = starts.filter_map(|segment| segment.stated_address.0.checked_sub(address)).min();
        match ahead.and_then(|ahead| usize::try_from(ahead).ok()) {
            Some(ahead) if ahead < bytes.len() => {
                bytes[..ahead].fill(0xcc);
                ahead + self.read_code(address + ahead as u64, &mut bytes[ahead..])
            }
            _ => 0,
        }
    }

    fn read_image(&self, offset: u64, bytes: &mut [u8]) -> usize {
        match &self.image {
            Image::File { .. } => self.file().and_then(|file| file.read_at(bytes, offset).ok()).unwrap_or(0),
            Image::Memory(image) => {
                let rest = usize::try_from(offset).ok().and_then(|offset| image.get(offset..));
                let length = rest.map_or(0, <[u8]>::len).min(bytes.len());
                bytes[..length].copy_from_slice(&rest.unwrap_or_default()[..length]);
                length
            }
        }
    }

    fn read_functions(&self) -> Option<FunctionRanges> {
        match &self.image {
            Image::File { .. } => FunctionRanges::read(&ReadCache::new(self.file()?.try_clone().ok()?)),
            Image::Memory(bytes) => FunctionRanges::read(&bytes[..]),
        }
    }

    /// Whether a path leads to its file.
    pub(crate) fn is_at(&self, path: &Path) -> bool {
        matches!(&self.image, Image::File { identity, .. } if identity_of(path) == Some(*identity))
    }

    /// The file that was kept, if nobody has written to it.
    pub(crate) fn kept_file(&self) -> Option<File> {
        let Image::File { identity, .. } = &self.image else { return None };
        let file = self.kept.as_ref()?;
        let is_same = file.metadata().is_ok_and(|metadata| self::identity(&metadata) == *identity);
        is_same.then(|| file.try_clone().ok()).flatten()
    }

    /// The file, if it still is the one that was mapped.
    fn file(&self) -> Option<&File> {
        let Image::File { path, identity, file } = &self.image else { return None };
        let reopen = || open_regular(path).filter(|(_, found)| found == identity).map(|(file, _)| file);
        self.kept.as_ref().or_else(|| file.get_or_init(reopen).as_ref())
    }
}

/// Device, inode, and when its contents changed last.
type Identity = (u64, u64, i64, i64);

/// The most files with a build-id that are kept open. Files without one are all kept, as nothing tells
/// others from them.
const MOST_KEPT: usize = 64;

/// The binaries seen so far, each read once.
#[derive(Debug, Default)]
pub(crate) struct Binaries {
    known: HashMap<Identity, Option<Rc<Binary>>>,
    /// How many files were mapped from a path.
    versions: HashMap<PathBuf, u32>,
    /// The kernel's code for 64-bit and for 32-bit processes.
    vdso: [Option<Rc<Binary>>; 2],
    /// The files that could not be opened, as this process had too many open.
    unopened: BTreeSet<PathBuf>,
}

/// The result of opening the path of a mapped file.
#[derive(Debug)]
pub(crate) enum Found {
    Binary(Rc<Binary>),
    /// Another file, which has taken the path since.
    Other,
    /// No file that can be opened, or none in ELF.
    Nothing,
}

impl Binaries {
    /// The binary that process `pid` mapped from `path` at `range`. `inode` is its number in its file
    /// system, 0 where that is unknown.
    pub(crate) fn open(&mut self, pid: u32, path: &Path, range: Range<u64>, inode: u64) -> Found {
        if path.as_os_str() == "[vdso]" {
            return self.vdso(pid, range.start, range.end).map_or(Found::Nothing, Found::Binary);
        }
        let (file, identity) = match open_mapped(pid, path, range, inode) {
            Ok(Some(found)) => found,
            Ok(None) => {
                self.note_unopened(path);
                return Found::Nothing;
            }
            Err(Replaced) => return Found::Other,
        };
        let may_keep = self.known.len() < MOST_KEPT;
        let known = self.known.entry(identity).or_insert_with(|| {
            let image = Image::File { path: path.to_owned(), identity, file: OnceCell::new() };
            let copy = file.try_clone();
            if copy.as_ref().is_err_and(is_full) {
                self.unopened.insert(path.to_owned());
            }
            let mut binary = Binary::parse(&ReadCache::new(copy.ok()?), image)?;
            let version = self.versions.entry(path.to_owned()).or_default();
            *version += 1;
            binary.version = *version;
            let is_hidden = identity_of(path) != Some(identity);
            binary.kept = (is_hidden || may_keep || binary.build_id.is_empty()).then_some(file);
            Some(Rc::new(binary))
        });
        known.clone().map_or(Found::Nothing, Found::Binary)
    }

    /// Notes a file that could not be opened, if no file at all can be.
    fn note_unopened(&mut self, path: &Path) {
        if path.is_absolute() && File::open("/").is_err_and(|error| is_full(&error)) {
            self.unopened.insert(path.to_owned());
        }
    }

    /// The note on files that could not be opened.
    pub(crate) fn note_of_unopened(&self) -> Option<String> {
        let first = self.unopened.first()?;
        Some(format!(
            "{} could not be opened, as the recorder may have no more files open (ulimit -Hn): {}{}; stacks end there",
            pluralize(self.unopened.len() as u64, "file of code", "files of code"),
            first.display(),
            if self.unopened.len() > 1 { " and others" } else { "" },
        ))
    }

    /// The code that the kernel maps into every process: the same one into all of 64 bits, ours
    /// too, and another into those of 32 bits, which have it below 4 GiB.
    fn vdso(&mut self, pid: u32, start: u64, end: u64) -> Option<Rc<Binary>> {
        let is_narrow = end > 0 && end <= 1 << 32;
        let slot = &mut self.vdso[usize::from(is_narrow)];
        if slot.is_none() {
            let image = if is_narrow { read_memory(pid, start, end) } else { vdso_image() };
            let image = Bytes::from(image?);
            *slot = Some(Rc::new(Binary::parse(&image[..], Image::Memory(image.clone()))?));
        }
        slot.clone()
    }
}

/// Whether an error says that too many files are open.
fn is_full(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}

/// A path leads to another file than before.
#[derive(Debug)]
struct Replaced;

/// Opens a mapped file as the process sees it, else as we do, else through its mapping, which
/// finds deleted files too but takes root.
fn open_mapped(
    pid: u32,
    path: &Path,
    range: Range<u64>,
    inode: u64,
) -> Result<Option<(File, Identity)>, Replaced> {
    let inside = PathBuf::from(format!("/proc/{pid}/root{}", path.display()));
    let mapping = PathBuf::from(format!("/proc/{pid}/map_files/{:x}-{:x}", range.start, range.end));
    let mut is_other = false;
    for path in [inside.as_path(), path, &mapping] {
        match open_regular(path) {
            Some((file, identity)) if is_file(&file, inode, pid) => return Ok(Some((file, identity))),
            found => is_other |= found.is_some(),
        }
    }
    if is_other { Err(Replaced) } else { Ok(None) }
}

/// Whether a file is the one with an inode that a process has mapped.
///
/// File systems in layers may show another number: in its upper half, or of a file that they copied. So a
/// file that has not changed since the process began is taken for it as well.
fn is_file(file: &File, inode: u64, pid: u32) -> bool {
    const SLACK_NS: u64 = 1_000_000_000;
    let Ok(metadata) = file.metadata() else { return false };
    let changed = metadata.ctime().cast_unsigned().saturating_mul(1_000_000_000);
    let is_old =
        || treering_proc::started_unix_ns(pid).is_some_and(|began| changed.saturating_add(SLACK_NS) < began);
    inode == 0 || metadata.ino() as u32 == inode as u32 || is_old()
}

/// Opens a file that is neither a device nor a pipe; with its identity.
fn open_regular(path: &Path) -> Option<(File, Identity)> {
    std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
    let file = File::open(path).ok()?;
    let identity = identity(&file.metadata().ok()?);
    Some((file, identity))
}

fn identity(metadata: &std::fs::Metadata) -> Identity {
    (metadata.dev(), metadata.ino(), metadata.mtime(), metadata.mtime_nsec())
}

fn identity_of(path: &Path) -> Option<Identity> {
    Some(identity(&std::fs::metadata(path).ok()?))
}

#[cfg(test)]
mod tests {
    use treering_profile::Segment;

    use super::*;

    #[test]
    fn our_own_binary_has_code_and_unwind_tables() {
        let mut binaries = Binaries::default();
        let path = std::env::current_exe().expect("our path");
        let Found::Binary(binary) = binaries.open(std::process::id(), &path, 0..0, 0) else {
            panic!("no ELF file")
        };
        assert!(binary.segments.segments().iter().any(|segment| segment.executable));
        assert!(binary.is_at(&path) && binary.kept_file().is_some());
        let covered = |segment: &Segment| {
            let start = segment.stated_address.0;
            let places = (start..start + segment.file_size).step_by(64);
            let mut rules = places.map(|instruction| binary.rule(Place::interrupted(instruction)));
            segment.executable && rules.any(|rule| matches!(rule, Rule::Plain(_)))
        };
        assert!(binary.segments.segments().iter().any(covered));
    }

    #[test]
    fn the_vdso_is_read_from_our_own_memory() {
        let Found::Binary(binary) = Binaries::default().open(1, Path::new("[vdso]"), 0..0, 0) else {
            panic!("no vDSO")
        };
        let mut buffer = [0; 4];
        assert_eq!(binary.read_image(0, &mut buffer), 4);
        assert_eq!(buffer, *b"\x7fELF");
    }

    /// A program may have replaced its own file before the recorder opens it.
    #[test]
    fn a_new_file_is_not_taken_for_the_mapped_one_at_its_path() {
        let own = std::env::current_exe().expect("our path");
        let path = std::env::temp_dir().join(format!("treering-binary-{}", std::process::id()));
        std::fs::copy(&own, &path).expect("there is room");
        let inode = std::fs::metadata(&path).expect("it is there").ino();
        let open = |inode| Binaries::default().open(std::process::id(), &path, 0..0, inode);
        let found = [open(inode), open(inode + 1)];
        std::fs::remove_file(&path).expect("it is ours");
        assert!(matches!(found, [Found::Binary(_), Found::Other]), "{found:?}");
    }

    #[test]
    fn other_files_are_not_binaries() {
        let mut binaries = Binaries::default();
        let mut open = |path: &str, inode| binaries.open(std::process::id(), Path::new(path), 0..0, inode);
        assert!(matches!(open("/proc/self/maps", 0), Found::Nothing));
        assert!(matches!(open("/no/such/file", 0), Found::Nothing));
    }
}
