//! Counters in files, so that nothing is lost when the tracer is killed.
//!
//! A directory holds, for each address space, its counters, the trees of its threads if they are kept, and a
//! *journal*: its code, blocks, arcs and threads in the order in which they came. All are mapped, so keeping them
//! needs no system call, and [`salvage`](crate::salvage) makes counts of them at any moment. Short journals of ended
//! address spaces are moved into one file. The directory is removed when the result has been written.

pub(crate) mod chunk;
pub(crate) mod ended;
pub(crate) mod record;
pub(crate) mod salvage;

use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use crate::address_space::AddressSpace;
use crate::areas::counter_file::{SPARE, Spare, file_of};
use crate::context::ContextTree;
use crate::counting::result::{EndedThread, NotCounted};
use crate::counting::slow_path::{News, PartialExecution, SlowPathCounts, Transfer};
use crate::journal::chunk::Chunks;
use crate::journal::ended::EndedJournals;
use crate::journal::record::{Bytes, Kind};
use crate::program::file_version::Version;
use crate::program::region::Region;
use crate::sys;
use crate::sys::shared_memory::SharedMemory;

/// With less free room than this on the disk, counters are kept in memory only.
const LEAST_ROOM: u64 = 256 << 20;

/// The directory that holds the counters while a program runs.
#[derive(Debug)]
pub(crate) struct Store {
    directory: PathBuf,
    /// Locked while the count runs.
    run: File,
    notes: usize,
    next: u32,
    /// Counters of ended processes, for reuse.
    spare: Vec<Spare>,
    /// First files of ended processes' journals, for reuse.
    spare_journals: Vec<Spare>,
    spared: u32,
    /// The journals of ended address spaces.
    ended: Option<EndedJournals>,
}

/// How many files of each kind are kept for reuse.
const MOST_SPARE: usize = 16;

/// The file that is locked, and lists what was not counted.
pub(crate) const RUN: &str = "run";

impl Store {
    /// Makes the directory. Files that a killed count has left there are moved to `.old`. Nothing if another count
    /// still runs there, the disk is nearly full, or its file system lacks a feature: then counters stay in memory.
    pub(crate) fn new(directory: &Path) -> Option<Self> {
        if let Ok(run) = File::open(directory.join(RUN)) {
            sys::lock(&run).ok()?;
            let mut old = directory.as_os_str().to_owned();
            old.push(".old");
            let _ = std::fs::remove_dir_all(&old);
            std::fs::rename(directory, &old).ok()?;
        }
        // Nobody else may see which code ran, nor hold the lock.
        DirBuilder::new().mode(0o700).create(directory).ok()?;
        let store = Self::begin(directory);
        if store.is_none() {
            let _ = std::fs::remove_dir_all(directory);
        }
        store
    }

    fn begin(directory: &Path) -> Option<Self> {
        let mut options = File::options();
        options.read(true).append(true).create_new(true).mode(0o600);
        let run = options.open(directory.join(RUN)).ok()?;
        sys::lock(&run).ok()?;
        (sys::free_room(&run).ok()? >= LEAST_ROOM).then_some(())?;
        let ended = EndedJournals::create(directory).ok();
        let (spare, spare_journals) = (Vec::new(), Vec::new());
        let directory = directory.to_owned();
        Some(Self { directory, run, notes: 0, next: 0, spare, spare_journals, spared: 0, ended })
    }

    /// The path for the files of another address space.
    pub(crate) fn next_space(&mut self) -> PathBuf {
        self.next += 1;
        self.directory.join(self.next.to_string())
    }

    /// Takes the first file of counters from an ended address space; its journal holds their values now.
    /// Returns the file's new path.
    pub(crate) fn set_aside(&mut self, space: &Path) -> Option<PathBuf> {
        if self.spare.len() >= MOST_SPARE {
            return None;
        }
        self.spared += 1;
        let path = self.directory.join(format!("spare{}", self.spared));
        std::fs::rename(file_of(space, "counters", 0), &path).ok().map(|()| path)
    }

    /// Keeps counters that were set aside, for another address space.
    pub(crate) fn keep_spare(&mut self, path: PathBuf, memory: Option<SharedMemory>) {
        match memory.filter(SharedMemory::zero_all) {
            Some(memory) => self.spare.push(Spare { path, memory }),
            None => _ = std::fs::remove_file(path),
        }
    }

    /// Counters for reuse.
    pub(crate) fn take_spare(&mut self) -> Option<Spare> {
        self.spare.pop()
    }

    /// Moves the journal of an ended address space into the common file if it is short; otherwise it stays
    /// where it is.
    pub(crate) fn put_away(&mut self, files: &Path, journal: Journal) {
        let number = files.file_name().and_then(|name| name.to_str()?.parse().ok());
        let (Some(number), Some(ended)) = (number, &mut self.ended) else { return };
        let Some((memory, used)) = journal.chunks.into_only() else { return };
        let mut records = vec![0; used as usize];
        memory.read(0, &mut records);
        if ended.add(number, &records).is_err() {
            return;
        }
        self.spared += 1;
        let path = self.directory.join(format!("spare{}", self.spared));
        let from = file_of(files, "journal", 0);
        // A concurrent reader looks into the common file last.
        let is_kept = self.spare_journals.len() < MOST_SPARE && std::fs::rename(&from, &path).is_ok();
        match is_kept && memory.zero_all() {
            true => self.spare_journals.push(Spare { path, memory }),
            false => _ = std::fs::remove_file(if is_kept { path } else { from }),
        }
    }

    /// The first file of a journal, for reuse.
    pub(crate) fn take_spare_journal(&mut self) -> Option<Spare> {
        self.spare_journals.pop()
    }

    /// Writes the new ones of the notes on what was not counted.
    pub(crate) fn note(&mut self, notes: &[NotCounted]) {
        for note in notes.get(self.notes..).unwrap_or_default() {
            let mut bytes = Bytes::default();
            bytes.u32(note.reason as u32).u32(note.pid.cast_unsigned()).text(note.detail.as_bytes());
            // A note that cannot be written is still in memory.
            let _ = io::Write::write_all(&mut self.run, &bytes.framed(Kind::Note));
        }
        self.notes = notes.len();
    }

    /// Removes the directory, whose contents are part of a result now.
    pub(crate) fn remove(self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// Removes the counters of an address space, from file `first` on; its journal holds their values now.
pub(crate) fn remove_counters(space: &Path, first: usize) {
    (first..)
        .take_while(|&number| std::fs::remove_file(file_of(space, "counters", number)).is_ok())
        .for_each(drop);
}

/// The parts of a thread that its journal records.
#[derive(Debug)]
pub(crate) struct JournaledThread<'a> {
    pub(crate) tid: i32,
    pub(crate) pid: i32,
    pub(crate) area: usize,
    /// Its number in the journal.
    pub(crate) number: &'a mut Option<u32>,
    pub(crate) slow_path: &'a mut SlowPathCounts,
}

/// The journal of one address space.
#[derive(Debug)]
pub(crate) struct Journal {
    chunks: Chunks,
    /// How much of each of the space's tables has been written.
    blocks: usize,
    arcs: usize,
    regions: usize,
    kept: usize,
    functions: usize,
    threads: u32,
}

impl Journal {
    /// The journal of a program's new address space.
    pub(crate) fn new(files: &Path, spare: Option<Spare>, pid: i32, program: &Path) -> io::Result<Self> {
        let mut chunks = Chunks::new(files, spare)?;
        let mut bytes = Bytes::default();
        bytes.u32(pid.cast_unsigned()).path(program);
        chunks.add(&bytes.framed(Kind::Program))?;
        Ok(Self { chunks, blocks: 0, arcs: 0, regions: 0, kept: 0, functions: 0, threads: 0 })
    }

    /// Writes new parts of the address space and of a thread.
    pub(crate) fn follow(
        &mut self,
        space: &AddressSpace,
        thread: &mut JournaledThread<'_>,
    ) -> io::Result<()> {
        self.add_regions(space.program.regions.log())?;
        self.add_blocks(space)?;
        self.add_arcs(space)?;
        for (block, code) in space.cache.kept.get(self.kept..).unwrap_or_default() {
            let mut bytes = Bytes::default();
            bytes.u32(*block).text(code);
            self.chunks.add(&bytes.framed(Kind::Code))?;
        }
        self.kept = space.cache.kept.len();
        self.add_functions(space.areas.functions())?;
        let number = self.number(thread)?;
        for news in std::mem::take(&mut thread.slow_path.news) {
            self.add_news(number, news, thread)?;
        }
        Ok(())
    }

    fn number(&mut self, thread: &mut JournaledThread<'_>) -> io::Result<u32> {
        if let Some(number) = *thread.number {
            return Ok(number);
        }
        let number = self.threads;
        let mut bytes = Bytes::default();
        bytes.u32(thread.tid.cast_unsigned()).u32(thread.pid.cast_unsigned()).u32(thread.area as u32);
        self.chunks.add(&bytes.framed(Kind::Thread))?;
        self.threads += 1;
        *thread.number = Some(number);
        Ok(number)
    }

    fn add_regions(&mut self, regions: &[Region]) -> io::Result<()> {
        for region in regions.get(self.regions..).unwrap_or_default() {
            let mut bytes = Bytes::default();
            // A later reader cannot open a hidden file, and must not mistake another one for it.
            let file = region.file.as_ref().filter(|_| region.hidden.is_none());
            let offset = file.map_or(0, |(_, offset)| *offset);
            bytes.u64(region.start).u64(region.end).u64(offset).u32(region.vdso.into());
            let version = region.version.map_or([0; Version::WORDS], Version::to_words);
            version.into_iter().for_each(|word| _ = bytes.u64(word));
            bytes.path(file.map_or(Path::new(""), |(path, _)| path));
            self.chunks.add(&bytes.framed(Kind::Region))?;
        }
        self.regions = regions.len();
        Ok(())
    }

    fn add_blocks(&mut self, space: &AddressSpace) -> io::Result<()> {
        while self.blocks < space.cache.blocks.len() {
            let end = space.cache.blocks.len().min(self.blocks + record::MOST_BLOCKS);
            let mut bytes = Bytes::with_room((end - self.blocks) * record::BLOCK);
            for id in self.blocks..end {
                space.cache.blocks.get(id as u32).facts.write(&mut bytes);
            }
            self.chunks.add(&bytes.framed(Kind::Blocks))?;
            self.blocks = end;
        }
        Ok(())
    }

    fn add_functions(&mut self, addresses: &[u64]) -> io::Result<()> {
        for part in addresses.get(self.functions..).unwrap_or_default().chunks(record::MOST_FUNCTIONS) {
            let mut bytes = Bytes::default();
            part.iter().for_each(|&address| {
                bytes.u64(address);
            });
            self.chunks.add(&bytes.framed(Kind::Functions))?;
        }
        self.functions = addresses.len();
        Ok(())
    }

    fn add_arcs(&mut self, space: &AddressSpace) -> io::Result<()> {
        for arc in space.cache.arcs.from(self.arcs) {
            let mut bytes = Bytes::default();
            bytes.u64(arc.target).u32(arc.block).u32(arc.counter.unwrap_or(u32::MAX)).u32(arc.region);
            self.chunks.add(&bytes.framed(Kind::Arc))?;
        }
        self.arcs = space.cache.arcs.len();
        Ok(())
    }

    /// Writes a grown count: over its old value, if the journal has it.
    fn add_news(&mut self, number: u32, news: News, thread: &mut JournaledThread<'_>) -> io::Result<()> {
        let (tally, bytes) = match news {
            News::Transfer(transfer) => {
                (thread.slow_path.transfers.get_mut(&transfer), way_record(number, transfer))
            }
            News::PartialExecution(execution) => {
                (thread.slow_path.partials.get_mut(&execution), left_record(number, execution))
            }
        };
        let Some(tally) = tally else { return Ok(()) };
        let place = match tally.place {
            Some(place) => place,
            None => *tally.place.insert(self.chunks.add(&bytes)?),
        };
        self.chunks.set_first(place, tally.count);
        Ok(())
    }

    /// Removes the journal, which is too incomplete to make counts of.
    pub(crate) fn remove(&self) {
        self.chunks.remove();
    }

    /// Writes the counts of a thread that has ended, before its area is reused; `counters` are the nonzero ones.
    pub(crate) fn end_thread(
        &mut self,
        space: &AddressSpace,
        thread: &mut JournaledThread<'_>,
        ended: &EndedThread,
        counters: impl Iterator<Item = (u32, u64)>,
    ) -> io::Result<()> {
        self.follow(space, thread)?;
        let number = self.number(thread)?;
        let counters: Vec<_> = counters.collect();
        for part in counters.chunks(record::MOST_COUNTS) {
            let mut bytes = Bytes::default();
            bytes.u32(number);
            part.iter().for_each(|&(counter, count)| {
                bytes.u32(counter).u64(count);
            });
            self.chunks.add(&bytes.framed(Kind::Counts))?;
        }
        if let Some(tree) = ended.tree() {
            self.add_tree(number, tree)?;
        }
        let mut bytes = Bytes::default();
        bytes.u32(number).text(ended.name().as_bytes());
        self.chunks.add(&bytes.framed(Kind::Ended)).map(drop)
    }

    /// Writes a thread's tree, unless the disk is nearly full.
    fn add_tree(&mut self, number: u32, tree: &ContextTree) -> io::Result<()> {
        if !self.chunks.have_room((tree.nodes.len() * record::NODE) as u64, SPARE) {
            return Ok(());
        }
        for part in tree.nodes.chunks(record::MOST_NODES) {
            let mut bytes = Bytes::default();
            bytes.u32(number);
            part.iter().for_each(|node| node.write(&mut bytes));
            self.chunks.add(&bytes.framed(Kind::Nodes))?;
        }
        let mut bytes = Bytes::default();
        bytes.u32(number).u32(tree.is_completed.into()).u64(tree.unmatched_returns);
        self.chunks.add(&bytes.framed(Kind::Tree)).map(drop)
    }
}

/// The record of a transfer. Its count comes first, and is filled in later.
fn way_record(number: u32, (kind, site, target): Transfer) -> Vec<u8> {
    let mut bytes = Bytes::default();
    bytes.u64(0).u32(number).u32(kind as u32);
    bytes.u64(site.unwrap_or(u64::MAX)).u64(target.unwrap_or(u64::MAX));
    bytes.framed(Kind::Transfer)
}

fn left_record(number: u32, execution: PartialExecution) -> Vec<u8> {
    let mut bytes = Bytes::default();
    let PartialExecution { block, offset, done, counted } = execution;
    bytes.u64(0).u32(number).u32(block).u32(offset.into()).u32(done.into()).u32(counted.into());
    bytes.framed(Kind::PartialExecution)
}
