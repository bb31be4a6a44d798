//! Regions: the program's code as it lies in memory, with its pages.

use std::cell::{Cell, LazyCell};
use std::collections::BTreeSet;
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::rc::Rc;

use hashbrown::{HashMap, HashSet};
use treering_x86::{Decoded, LONGEST_INSTRUCTION, decode_while};

use crate::program::container_file::HiddenFile;
use crate::program::file_version::Version;
use crate::program::kernel_writes::WatchedCalls;
use crate::program::watch::{Watch, Watcher};
use crate::sys;
use crate::sys::remote_syscall::StoppedThread;

/// Size of a page.
pub(crate) const PAGE: u64 = 4096;
/// Stands for a region at an address that has none.
pub(crate) const NO_REGION: u32 = u32::MAX;

/// A range of memory that the program may execute in its own view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Region {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// Whether the program may also write to it.
    pub(crate) writable: bool,
    /// Whether it is a stack, on which pages cannot be protected.
    pub(crate) stack: bool,
    /// The file that it maps, and the offset of `start` there.
    pub(crate) file: Option<(PathBuf, u64)>,
    /// The file, if this process does not find it by its path.
    pub(crate) hidden: Option<HiddenFile>,
    /// The file's version when it was mapped, if this process finds it by its path.
    pub(crate) version: Option<Version>,
    /// Whether it is the vDSO.
    pub(crate) vdso: bool,
    /// Whether it may change unnoticed: it is shared memory, or other processes may write to its file.
    pub(crate) changes: bool,
    /// Its number in the order of mapping, which its parts keep.
    pub(crate) number: u32,
}

impl Region {
    fn length(&self) -> u64 {
        self.end - self.start
    }

    /// A path at which this process can open its file.
    pub(crate) fn path(&self) -> Option<PathBuf> {
        let (path, _) = self.file.as_ref()?;
        Some(self.hidden.as_ref().map_or_else(|| path.clone(), HiddenFile::path))
    }
}

/// All code of one address space.
#[derive(Debug, Default)]
pub(crate) struct Regions {
    /// Sorted, not overlapping.
    list: Vec<Region>,
    /// The index of the region that was found last.
    found: Cell<usize>,
    /// All regions that ever were, by number.
    log: Vec<Region>,
    pages: HashMap<u64, u32>,
    /// Pieces of code that were read, a page or a few each, with their addresses.
    contents: Vec<(u64, Rc<Vec<u8>>)>,
    /// The pieces that come from files and were not forgotten, and their bytes in all.
    of_files: (Vec<u32>, usize),
    /// The last examined page, and the piece that holds it.
    recent: Option<(u64, u32)>,
    /// Writable pages that are protected, because code was translated from them.
    protected: HashSet<u64>,
    /// Pages that are written so often that they are no longer protected.
    restless: HashSet<u64>,
    /// How often code in such pages was found changed, by the address of the block.
    changes: HashMap<u64, u32>,
    /// Pages whose code writes into its own page; they are translated by single instructions.
    own_writers: HashSet<u64>,
    /// The pages that may be protected.
    pub(crate) calls: WatchedCalls,
    /// Whether any stack is executable.
    has_stack: bool,
    /// Whether any region may change unnoticed.
    has_changing: bool,
    /// Whether all regions may: a process writes into the memory in spite of its protection.
    distrusted: bool,
    /// How often a protected page was written.
    writes: HashMap<u64, u32>,
    /// Chooses the watched addresses, if only a part of the run is counted.
    watcher: Option<Rc<Watcher>>,
    /// Instructions at which threads ask the tracer.
    watched: HashMap<u64, Watch>,
}

/// Code from some address on.
#[derive(Debug)]
pub(crate) struct Window {
    bytes: Rc<Vec<u8>>,
    part: Range<usize>,
}

impl std::ops::Deref for Window {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[self.part.clone()]
    }
}

/// The number of pages of a file's code that are read at once.
const PAGES_AT_ONCE: u64 = 4;
/// The most bytes of files that are kept at a time. A large program has many times as much code, each part of
/// which is needed a few times within a short time.
const MOST_OF_FILES: u64 = 4 << 20;
const PART_OF_FILES: u64 = 16;

/// After this many writes into its code, a page is no longer protected.
const MOST_WRITES: u32 = 64;

/// Code that was found changed more often than this asks the tracer each time. It would have to be translated
/// again anyway, and jumps to it would go through all its former translations.
const MOST_CHANGES: u32 = 64;

impl Regions {
    /// No regions yet.
    pub(crate) fn watched_by(watcher: Option<Rc<Watcher>>) -> Self {
        Self { watcher, ..Self::default() }
    }

    /// The regions of a process that was just copied.
    pub(crate) fn copied(&self) -> Self {
        let mut copy =
            Self { protected: self.protected.clone(), distrusted: self.distrusted, ..Self::default() };
        copy.watcher.clone_from(&self.watcher);
        copy.calls.clone_from(&self.calls);
        copy.restless.clone_from(&self.restless);
        copy.own_writers.clone_from(&self.own_writers);
        self.list.iter().for_each(|region| copy.add(region.clone()));
        copy
    }

    /// All regions that ever were, by number.
    pub(crate) fn log(&self) -> &[Region] {
        &self.log
    }

    /// Gives up files that were replaced, written to or deleted since they were mapped, so that no other file is
    /// taken for them: their paths become ones that lead nowhere. Returns those that are not merely deleted, as code
    /// that was made at run time may be in a file without a name. The program itself is read all the same while its last thread
    /// exists.
    pub(crate) fn part_with_replaced(&mut self, tid: i32) -> BTreeSet<PathBuf> {
        let mut now: HashMap<PathBuf, Option<Version>> = HashMap::new();
        let mut replaced = BTreeSet::new();
        let program = LazyCell::new(|| HiddenFile::of_program(tid));
        for region in &mut self.log {
            let (Some((path, _)), Some(version)) = (&mut region.file, &region.version) else { continue };
            let found = now.entry_ref(path.as_path()).or_insert_with(|| Version::of(path));
            if found.as_ref() != Some(version) {
                region.hidden =
                    program.as_ref().filter(|program| program.0 == *version).map(|program| program.1.clone());
                replaced.extend((found.is_some() && region.hidden.is_none()).then(|| path.clone()));
                path.as_mut_os_string().push(if found.is_some() { " (replaced)" } else { " (deleted)" });
            }
        }
        replaced
    }

    /// The region that the address lies in.
    pub(crate) fn find(&self, address: u64) -> Option<&Region> {
        let holds = |region: &&Region| (region.start..region.end).contains(&address);
        // The next address is most often in the same region.
        if let Some(found) = self.list.get(self.found.get()).filter(holds) {
            return Some(found);
        }
        let after = self.list.partition_point(|region| region.start <= address);
        let at = after.checked_sub(1)?;
        self.found.set(at);
        self.list.get(at).filter(holds)
    }

    /// Whether the address is code.
    pub(crate) fn contains(&self, address: u64) -> bool {
        self.find(address).is_some()
    }

    /// Whether code at the address may change.
    pub(crate) fn may_change(&self, address: u64) -> bool {
        self.distrusted || self.find(address).is_none_or(|region| region.writable || region.changes)
    }

    /// Whether each execution of the code at the address asks the tracer, which compares the code.
    pub(crate) fn asks(&self, address: u64) -> bool {
        let is_watched = !self.watched.is_empty() && self.watched.contains_key(&address);
        let is_changing = || {
            !self.changes.is_empty() && self.changes.get(&address).is_some_and(|&times| times > MOST_CHANGES)
        };
        is_watched || is_changing() || self.is_on_stack(address)
    }

    fn is_on_stack(&self, address: u64) -> bool {
        self.has_stack && self.find(address).is_some_and(|region| region.writable && region.stack)
    }

    /// Whether any of `length` bytes, fewer than a page has, may change unnoticed, so that they must be
    /// compared before each execution.
    pub(crate) fn is_any_restless(&self, address: u64, length: usize) -> bool {
        let last = address.saturating_add(length as u64 - 1);
        self.has_restless() && [address, last].into_iter().any(|at| self.is_restless(at))
    }

    fn has_restless(&self) -> bool {
        self.distrusted || self.has_changing || !self.restless.is_empty()
    }

    fn is_restless(&self, address: u64) -> bool {
        self.distrusted
            || self.restless.contains(&(address & !(PAGE - 1)))
            || self.has_changing && self.find(address).is_some_and(|region| region.changes)
    }

    /// Has all code compared before each execution from now on.
    pub(crate) fn distrust(&mut self) {
        self.distrusted = true;
        self.recent = None;
    }

    /// Has the code of some files compared from now on. Returns where it lies.
    pub(crate) fn set_changing(&mut self, paths: &[PathBuf]) -> Vec<(u64, u64)> {
        let holds = |region: &&mut Region| region.file.as_ref().is_some_and(|(path, _)| paths.contains(path));
        let mut changing = Vec::new();
        for region in self.list.iter_mut().filter(holds).filter(|region| !region.changes) {
            region.changes = true;
            changing.push((region.start, region.end));
        }
        self.has_changing |= !changing.is_empty();
        changing
    }

    /// Has the code between two addresses compared from now on.
    pub(crate) fn set_restless(&mut self, start: u64, end: u64) {
        let pages: Vec<_> = self.within(start, end).collect();
        for (start, end) in pages {
            self.restless.extend((start & !(PAGE - 1)..end).step_by(PAGE as usize));
        }
        self.recent = None;
    }

    /// The contents between two addresses may have changed.
    pub(crate) fn read_again(&mut self, start: u64, end: u64) {
        self.pages.retain(|&page, _| page >= end || page + PAGE <= start);
        self.recent = None;
    }

    /// Notes that code in a restless page was found changed.
    pub(crate) fn note_change(&mut self, address: u64) {
        *self.changes.entry(address).or_insert(0) += 1;
    }

    /// The number of a block's instructions before a watched one, if there is a watched one.
    pub(crate) fn cut(&mut self, decoded: &[Decoded], code: &[u8]) -> Option<usize> {
        let watcher = Rc::clone(self.watcher.as_ref()?);
        let first = decoded.first()?.address();
        for (at, one) in decoded.iter().enumerate() {
            let bytes = code.get((one.address() - first) as usize..).unwrap_or_default();
            self.watched.extend(watcher.watch(one, bytes).map(|watch| (one.address(), watch)));
            if at > 0 && self.watched.contains_key(&one.address()) {
                return Some(at);
            }
        }
        None
    }

    /// Finds out whether code begins with an instruction that is watched wherever it stands, before a jump is linked to it.
    pub(crate) fn look_for_mark(&mut self, address: u64, thread: &mut StoppedThread<'_>) {
        let Some(watcher) = self.watcher.as_ref().map(Rc::clone) else { return };
        let mut bytes = [0; LONGEST_INSTRUCTION];
        let got = self.fetch(address, &mut bytes, thread);
        decode_while(&bytes[..got], address, |one| {
            self.watched.extend(watcher.watch(one, &bytes[..got]).map(|watch| (address, watch)));
            false
        });
    }

    /// Whether any address is watched, or may be later.
    pub(crate) fn are_watched(&self) -> bool {
        self.watcher.is_some()
    }

    /// The watch on an address.
    pub(crate) fn watched(&self, address: u64) -> Option<Watch> {
        self.watched.get(&address).copied()
    }

    /// Adds a region, which replaces the regions there.
    pub(crate) fn insert(&mut self, region: Region) {
        self.remove(region.start, region.end);
        self.add(region);
    }

    fn add(&mut self, mut region: Region) {
        region.number = self.log.len() as u32;
        self.has_stack |= region.stack && region.writable;
        self.has_changing |= region.changes;
        self.recent = None;
        self.log.push(region.clone());
        if let Some(watcher) = &self.watcher {
            let functions = watcher.functions(&region);
            self.watched.extend(functions.into_iter().map(|address| (address, Watch::Function)));
        }
        let at = self.list.partition_point(|other| other.start < region.start);
        self.list.insert(at, region);
    }

    /// The parts of the memory between two addresses that are code.
    pub(crate) fn within(&self, start: u64, end: u64) -> impl Iterator<Item = (u64, u64)> {
        let parts = self.list.iter().map(move |region| (region.start.max(start), region.end.min(end)));
        parts.filter(|(start, end)| start < end)
    }

    /// The regions between two addresses, cut to that range.
    pub(crate) fn parts(&self, start: u64, end: u64) -> Vec<Region> {
        let part = |region: &Region| {
            let cut = region.start.max(start);
            let file = region.file.clone().map(|(path, offset)| (path, offset + (cut - region.start)));
            Region { start: cut, end: region.end.min(end), file, ..region.clone() }
        };
        self.list.iter().map(part).filter(|part| part.start < part.end).collect()
    }

    /// Writable pages that are protected.
    pub(crate) fn protected_pages(&self) -> impl Iterator<Item = Range<u64>> {
        self.protected.iter().map(|&page| page..page + PAGE)
    }

    /// Whether there is any code between two addresses.
    pub(crate) fn overlaps(&self, start: u64, end: u64) -> bool {
        let before_end = self.list.partition_point(|region| region.start < end);
        self.list[..before_end].last().is_some_and(|region| region.end > start)
    }

    /// Removes the code between two addresses.
    pub(crate) fn remove(&mut self, start: u64, end: u64) {
        let mut kept = Vec::with_capacity(self.list.len() + 1);
        for region in self.list.drain(..) {
            if region.end <= start || region.start >= end {
                kept.push(region);
                continue;
            }
            if region.start < start {
                kept.push(Region { end: start, ..region.clone() });
            }
            if region.end > end {
                let moved = end - region.start;
                let file = region.file.map(|(path, offset)| (path, offset + moved));
                kept.push(Region { start: end, file, ..region });
            }
        }
        self.list = kept;
        self.recent = None;
        let gone = |page: u64| page < end && page + PAGE > start;
        self.watched.retain(|address, _| !(start..end).contains(address));
        self.pages.retain(|&page, _| !gone(page));
        self.protected.retain(|&page| !gone(page));
        self.restless.retain(|&page| !gone(page));
        self.changes.retain(|address, _| !(start..end).contains(address));
        self.own_writers.retain(|&page| !gone(page));
    }

    /// Code from an address on, at least `least` bytes if its region has that many.
    pub(crate) fn window(&mut self, address: u64, least: usize, thread: &mut StoppedThread<'_>) -> Window {
        if let Some(window) = self.recent_window(address, least) {
            return window;
        }
        // Makes its page the recent one, if the page may be kept.
        self.fetch_from_page(address, &mut [0], thread);
        if let Some(window) = self.recent_window(address, least) {
            return window;
        }
        let mut bytes = vec![0; least];
        let got = self.fetch(address, &mut bytes, thread);
        bytes.truncate(got);
        Window { bytes: Rc::new(bytes), part: 0..got }
    }

    /// The same, if it lies in the recent page.
    fn recent_window(&self, address: u64, least: usize) -> Option<Window> {
        let page = address & !(PAGE - 1);
        let (_, content) = self.recent.filter(|&(recent, _)| recent == page)?;
        let (start, bytes) = &self.contents[content as usize];
        let (from, to) = ((address - start) as usize, ((page + PAGE - start) as usize).min(bytes.len()));
        (from + least <= to).then(|| Window { bytes: Rc::clone(bytes), part: from..to })
    }

    /// Copies code from an address on into `bytes`, as far as there is any. An instruction may lie in two
    /// regions, as where a program adds memory behind its code. Returns the number of bytes.
    pub(crate) fn fetch(&mut self, address: u64, bytes: &mut [u8], thread: &mut StoppedThread<'_>) -> usize {
        let mut got = 0;
        while got < bytes.len() {
            match self.fetch_from_page(address + got as u64, &mut bytes[got..], thread) {
                0 => break,
                more => got += more,
            }
        }
        got
    }

    /// Where code ends within the instruction at an address, if it does.
    pub(crate) fn end_within(&mut self, address: u64, thread: &mut StoppedThread<'_>) -> Option<u64> {
        let mut bytes = [0; LONGEST_INSTRUCTION];
        let got = self.fetch(address, &mut bytes, thread);
        let is_cut_short =
            (1..LONGEST_INSTRUCTION).contains(&got) && treering_x86::is_cut_short(&bytes[..got]);
        is_cut_short.then_some(address + got as u64)
    }

    /// Copies code up to the end of the page, as [`fetch`](Self::fetch) does.
    fn fetch_from_page(&mut self, address: u64, bytes: &mut [u8], thread: &mut StoppedThread<'_>) -> usize {
        let Some(region) = self.find(address) else { return 0 };
        let page = address & !(PAGE - 1);
        let (end, protect) = (region.end.min(page + PAGE), region.writable);
        let wanted = ((end - address) as usize).min(bytes.len());
        let bytes = &mut bytes[..wanted];
        if self.has_restless() && self.is_restless(page) || self.is_on_stack(address) {
            return sys::read_memory(thread.tid, address, bytes);
        }
        let Some(content) = self.page(page, protect, thread) else {
            let is_restless = self.restless.contains(&page);
            return if is_restless { sys::read_memory(thread.tid, address, bytes) } else { 0 };
        };
        let part = content.get((address - page) as usize..).unwrap_or_default();
        let part = &part[..part.len().min(wanted)];
        bytes[..part.len()].copy_from_slice(part);
        part.len()
    }

    /// The readable contents of a page.
    fn page(&mut self, page: u64, protect: bool, thread: &mut StoppedThread<'_>) -> Option<&[u8]> {
        if protect && !self.pages.contains_key(&page) {
            if !self.watch_calls(page, thread) {
                self.restless.insert(page);
                return None;
            }
            if let Err(error) = self.protect(page, thread) {
                // Single pages of huge ones cannot be protected, and none that the program has sealed.
                if let Some(libc::EINVAL | libc::EPERM) = error.raw_os_error() {
                    self.restless.insert(page);
                }
                return None;
            }
        }
        let at = match self.pages.get(&page) {
            Some(&known) => known,
            None => self.read_pages(page, thread),
        };
        self.recent = Some((page, at));
        let (start, bytes) = &self.contents[at as usize];
        let from = (page - start) as usize;
        bytes.get(from..bytes.len().min(from + PAGE as usize))
    }

    /// Reads a page, and the pages behind it that are likely to be needed next. Returns the piece's number.
    fn read_pages(&mut self, page: u64, thread: &StoppedThread<'_>) -> u32 {
        // Code of a file stays as it is; other code may be written unnoticed.
        let of_file = |region: &Region| !region.writable && region.file.is_some();
        let file = self.find(page).filter(|region| of_file(region));
        let (has_file, end) = (file.is_some(), file.map_or(page + PAGE, |region| region.end));
        let more = (1..PAGES_AT_ONCE).map(|number| page + number * PAGE);
        let more = more.take_while(|next| *next < end && !self.pages.contains_key(next)).count() as u64;
        let content = sys::copy_memory(thread.tid, page, ((1 + more) * PAGE) as usize);
        let got = content.len();
        let number = self.contents.len() as u32;
        if has_file {
            self.note_of_file(number, got);
        }
        self.contents.push((page, Rc::new(content)));
        let read = (got as u64).div_ceil(PAGE).max(1);
        self.pages.extend((0..read).map(|at| (page + at * PAGE, number)));
        number
    }

    /// Notes a piece of a file. If there are too many, all others are forgotten: they can be read again.
    fn note_of_file(&mut self, number: u32, length: usize) {
        let all: u64 = self.list.iter().filter(|region| region.file.is_some()).map(Region::length).sum();
        let most = (all / PART_OF_FILES).max(MOST_OF_FILES) as usize;
        let (pieces, bytes) = &mut self.of_files;
        if *bytes + length > most {
            for piece in pieces.drain(..) {
                self.contents[piece as usize].1 = Rc::default();
            }
            let contents = &self.contents;
            self.pages.retain(|_, piece| !contents[*piece as usize].1.is_empty());
            (self.recent, *bytes) = (None, 0);
        }
        pieces.push(number);
        *bytes += length;
    }

    /// Protects a page, so that the program cannot write to it unnoticed.
    fn protect(&mut self, page: u64, thread: &mut StoppedThread<'_>) -> io::Result<()> {
        if !set_protection(page, libc::PROT_READ, thread)? {
            return Err(io::Error::from_raw_os_error(libc::ENOMEM));
        }
        self.protected.insert(page);
        Ok(())
    }

    /// Whether a write to the address failed because the page is protected.
    pub(crate) fn is_protected(&self, address: u64) -> bool {
        self.protected.contains(&(address & !(PAGE - 1)))
    }

    /// Notes that code writes into its own page.
    pub(crate) fn set_own_writer(&mut self, address: u64) {
        let page = address & !(PAGE - 1);
        self.own_writers.insert(page);
        self.restless.insert(page);
    }

    /// Whether each instruction may change the code at the address.
    pub(crate) fn is_own_writer(&self, address: u64) -> bool {
        self.own_writers.contains(&(address & !(PAGE - 1)))
    }

    /// Whether the page of an address is written so often that writes to it are no longer noticed.
    pub(crate) fn is_written_often(&self, address: u64) -> bool {
        self.restless.contains(&(address & !(PAGE - 1)))
    }

    /// Lets the program write to a page again.
    pub(crate) fn release(&mut self, address: u64, thread: &mut StoppedThread<'_>) -> io::Result<()> {
        let page = address & !(PAGE - 1);
        set_protection(page, libc::PROT_READ | libc::PROT_WRITE, thread)?;
        self.protected.remove(&page);
        self.pages.remove(&page);
        self.recent = None;
        let writes = self.writes.entry(page).or_insert(0);
        *writes += 1;
        if *writes > MOST_WRITES {
            self.restless.insert(page);
        }
        Ok(())
    }
}

/// Changes what the program may do with a page. Returns whether the page is still there: another thread may just have
/// unmapped or replaced it, in a call that has not returned yet.
fn set_protection(page: u64, protection: i32, thread: &mut StoppedThread<'_>) -> io::Result<bool> {
    let arguments = [page, PAGE, protection as u64, 0, 0, 0];
    match thread.remotely(|calls| calls.call(libc::SYS_mprotect, arguments)) {
        Ok(_) => Ok(true),
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOMEM | libc::EACCES)) => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(start: u64, end: u64) -> Region {
        Region {
            start,
            end,
            writable: false,
            stack: false,
            file: Some(("a".into(), 0x100)),
            hidden: None,
            version: None,
            vdso: false,
            changes: false,
            number: 0,
        }
    }

    #[test]
    fn a_region_in_the_middle_splits_another() {
        let mut regions = Regions::default();
        regions.insert(region(0x1000, 0x9000));
        regions.insert(Region { file: None, ..region(0x3000, 0x4000) });
        let parts: Vec<_> = regions.list.iter().map(|r| (r.start, r.end, r.file.clone())).collect();
        assert_eq!(
            parts,
            [
                (0x1000, 0x3000, Some(("a".into(), 0x100))),
                (0x3000, 0x4000, None),
                (0x4000, 0x9000, Some(("a".into(), 0x3100))),
            ]
        );
        assert!(regions.contains(0x3fff) && regions.contains(0x4000) && !regions.contains(0x9000));
        regions.remove(0, 0x8000);
        assert_eq!(regions.list.len(), 1);
        assert!(!regions.contains(0x7fff) && regions.contains(0x8000));
    }
}
