//! Salvage: reads counts from the files of a run, even after its tracer was killed.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use hashbrown::HashMap;
use treering_profile::{BranchKind, UncountedReason};

use crate::address_map::AddressMap;
use crate::areas::counter_file::file_of;
use crate::areas::counters::{ACTIVE, WHOLE};
use crate::cache::block::BlockFacts;
use crate::cache::indirect::IndirectArc;
use crate::cache::indirect_lookup::{Logged, log_entries};
use crate::context::{ContextNode, ContextTree, TreeSnapshot};
use crate::counting::active_blocks::BlockSet;
use crate::counting::result::{
    Done, EndedThread, NotCounted, ProgramCounts, Translated, end_space, end_thread,
};
use crate::counting::slow_path::{JournaledCount, PartialExecution, Transfer};
use crate::journal::RUN;
use crate::journal::ended::EndedReader;
use crate::journal::record::{Content, Kind, records};
use crate::program::file_version::Version;
use crate::program::region::{NO_REGION, Region};
use crate::sys;
use crate::sys::layout::{AREAS_PER_SEGMENT, FIRST_COUNTER, SAVED_COUNTS, SELECTED, THREAD_AREA};

/// Counts read from the directory of a run.
#[derive(Debug)]
pub struct Salvaged {
    /// The programs that ran, or still run.
    pub programs: Vec<ProgramCounts>,
    /// The parts of the run that were not counted, and those that may be missing because the count has not ended.
    pub not_counted: Vec<NotCounted>,
    /// Whether the count is still running.
    pub running: bool,
}

/// Whether a path is the directory of a run.
pub fn is_kept(path: &Path) -> bool {
    path.join(RUN).is_file()
}

/// Reads the directory that [`Command::keep`](crate::Command::keep) names, also while it is written.
///
/// # Errors
/// The directory cannot be read.
pub fn salvage(directory: &Path) -> io::Result<Salvaged> {
    let run = std::fs::read(directory.join(RUN))?;
    let running = sys::lock(&File::open(directory.join(RUN))?).is_err();
    let mut not_counted: Vec<_> = records(&run).filter_map(|(_, content)| note(content)).collect();
    let mut programs = Vec::new();
    let mut ended = EndedReader::new(directory);
    let in_files = highest(directory)?;
    ended.update()?;
    for number in 1..=in_files.max(ended.highest()) {
        let files = directory.join(number.to_string());
        // Trees are read first: later events are in the journal, and the counters are at least as new as the trees.
        let trees = kept_trees(directory, number)?;
        let chunks = KeptJournal::chunks(&files)?;
        // A journal that was moved while it was read may be incomplete; the common file has all of it.
        ended.update()?;
        let chunks = ended.take(number).map_or(chunks, |records| Vec::from([records]));
        let Some(mut journal) = KeptJournal::read(&chunks)? else {
            not_counted.push(lost(0, &io::ErrorKind::NotFound.into()));
            continue;
        };
        journal.trees = trees;
        let (pid, open) = (journal.pid, journal.threads.iter().any(|thread| !thread.has_ended));
        let has_trees = !journal.functions.is_empty();
        match journal.counts(&files, &mut not_counted) {
            Ok(counts) => {
                // If the address space has ended, its note is among the others already.
                let unmatched_returns = counts.unmatched_returns().filter(|note| !not_counted.contains(note));
                not_counted.extend(unmatched_returns);
                programs.push(counts);
            }
            Err(error) => not_counted.push(lost(pid, &error)),
        }
        if open {
            not_counted.push(unfinished(pid, has_trees));
        }
    }
    Ok(Salvaged { programs, not_counted, running })
}

/// The highest number of an address space; the first one is 1.
fn highest(directory: &Path) -> io::Result<u32> {
    let mut highest = 0;
    for entry in std::fs::read_dir(directory)? {
        let name = PathBuf::from(entry?.file_name());
        let number = name.file_stem().and_then(|stem| stem.to_str()?.parse().ok());
        highest = highest.max(number.unwrap_or(0));
    }
    Ok(highest)
}

/// The readable trees of an address space, by area.
fn kept_trees(directory: &Path, number: u32) -> io::Result<HashMap<usize, TreeSnapshot>> {
    let mut trees = HashMap::new();
    let files = directory.join(number.to_string());
    let prefix = format!("{number}.contexts");
    for entry in std::fs::read_dir(directory)? {
        let name = entry?.file_name();
        let area = name.to_str().and_then(|name| name.strip_prefix(&prefix)?.parse().ok());
        let tree = area.and_then(|area| Some((area, TreeSnapshot::read(&files, area).ok()?)));
        trees.extend(tree);
    }
    Ok(trees)
}

fn note(mut content: Content<'_>) -> Option<NotCounted> {
    let reason = UncountedReason::from_number(content.u32()? as u8)?;
    let pid = content.u32()?.cast_signed();
    Some(NotCounted { reason, pid, detail: String::from_utf8_lossy(content.rest()).into_owned() })
}

fn lost(pid: i32, error: &io::Error) -> NotCounted {
    let detail = format!("its counters were not kept in files: {error}");
    NotCounted { reason: UncountedReason::CutShort, pid, detail }
}

/// The note on what a running count may lack: a loop of a single block counts in a register, and so does the
/// function that runs. No thread is stopped to read its registers.
fn unfinished(pid: i32, has_trees: bool) -> NotCounted {
    let detail = "it had not ended: a block that was being executed, a running loop of a single block, and blocks \
                  whose counts follow from these may count one execution or loop too many or too few";
    let of_trees = if has_trees {
        "; in the trees, each thread's last function gets the instructions that its blocks count beyond the tree, \
         and may have one call too many"
    } else {
        ""
    };
    NotCounted { reason: UncountedReason::CutShort, pid, detail: format!("{detail}{of_trees}") }
}

/// A journal as it was read: an address space and its threads.
#[derive(Debug, Default)]
struct KeptJournal {
    pid: i32,
    path: PathBuf,
    regions: Vec<Region>,
    blocks: Vec<BlockFacts>,
    /// Blocks of levels above the first, by level.
    upper_levels: Vec<Vec<u32>>,
    /// The first block at an address that has a level above 0.
    propagated: AddressMap<u32>,
    /// For each block the newest of its arcs, plus one.
    newest: HashMap<u32, u32>,
    arcs: Vec<IndirectArc>,
    /// The number of counters, without those of arcs that are only in logs.
    counters: usize,
    kept: Vec<(u32, Box<[u8]>)>,
    threads: Vec<KeptThread>,
    /// The entry addresses of functions, by number, if trees are kept.
    functions: Vec<u64>,
    /// The trees of threads that have not ended, by area.
    trees: HashMap<usize, TreeSnapshot>,
}

#[derive(Debug, Default)]
struct KeptThread {
    tid: i32,
    pid: i32,
    name: String,
    area: usize,
    has_ended: bool,
    /// The counters of a thread that has ended; for a running thread, the amounts to add to those in its area.
    counters: HashMap<u32, u64>,
    partials: HashMap<PartialExecution, JournaledCount>,
    transfers: HashMap<Transfer, JournaledCount>,
    /// The nodes of a thread that has ended.
    nodes: Vec<ContextNode>,
    /// The tree of a thread that has ended.
    tree: Option<ContextTree>,
}

impl KeptThread {
    /// The address of its first instruction.
    fn start(&self) -> u64 {
        let start = self.transfers.keys().find(|(kind, ..)| *kind == BranchKind::Start);
        start.and_then(|&(.., target)| target).unwrap_or(0)
    }
}

impl KeptJournal {
    /// The contents of an address space's files.
    fn chunks(files: &Path) -> io::Result<Vec<Vec<u8>>> {
        let mut chunks = Vec::new();
        loop {
            match std::fs::read(file_of(files, "journal", chunks.len())) {
                Ok(bytes) => chunks.push(bytes),
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(chunks),
                Err(error) => return Err(error),
            }
        }
    }

    /// Reads a journal; nothing if its first record is missing.
    fn read(chunks: &[Vec<u8>]) -> io::Result<Option<Self>> {
        let mut journal = Self::default();
        let mut is_begun = false;
        for bytes in chunks {
            for (kind, content) in records(bytes) {
                is_begun = true;
                // This program writes no record that cannot be decoded.
                journal.take(kind, content).ok_or(io::ErrorKind::InvalidData)?;
            }
        }
        Ok(is_begun.then_some(journal))
    }

    fn take(&mut self, kind: Kind, mut content: Content<'_>) -> Option<()> {
        match kind {
            Kind::Program => {
                self.pid = content.u32()?.cast_signed();
                self.path = content.path();
            }
            Kind::Region => self.regions.push(region(content, self.regions.len() as u32)?),
            Kind::Blocks => {
                while let Some(facts) = BlockFacts::read(&mut content) {
                    self.take_level(&facts);
                    self.blocks.push(facts);
                }
            }
            Kind::Arc => self.take_arc(content)?,
            Kind::Code => {
                let block = content.u32()?;
                self.kept.push((block, content.rest().into()));
            }
            Kind::Thread => {
                let (tid, pid) = (content.u32()?.cast_signed(), content.u32()?.cast_signed());
                let area = content.u32()? as usize;
                self.threads.push(KeptThread { tid, pid, area, ..KeptThread::default() });
            }
            Kind::Transfer => self.take_way(content)?,
            Kind::PartialExecution => self.take_partial(content)?,
            Kind::Counts => {
                let thread = self.threads.get_mut(content.u32()? as usize)?;
                while let (Some(counter), Some(count)) = (content.u32(), content.u64()) {
                    thread.counters.insert(counter, count);
                }
            }
            Kind::Ended => {
                let thread = self.threads.get_mut(content.u32()? as usize)?;
                thread.has_ended = true;
                thread.name = String::from_utf8_lossy(content.rest()).into_owned();
            }
            Kind::Note => {}
            Kind::Functions => {
                while let Some(address) = content.u64() {
                    self.functions.push(address);
                }
            }
            Kind::Nodes => self.take_nodes(content)?,
            Kind::Tree => {
                let thread = self.threads.get_mut(content.u32()? as usize)?;
                let (is_completed, unmatched_returns) = (content.u32()? != 0, content.u64()?);
                thread.tree = Some(ContextTree {
                    nodes: std::mem::take(&mut thread.nodes),
                    unmatched_returns,
                    is_completed,
                });
            }
        }
        Some(())
    }

    /// Adds the level of the next block.
    fn take_level(&mut self, facts: &BlockFacts) {
        let id = self.blocks.len() as u32;
        if facts.level != 0 {
            self.propagated.entry(facts.address).or_insert(id);
        }
        if let Some(above) = usize::from(facts.level).checked_sub(2) {
            if self.upper_levels.len() <= above {
                self.upper_levels.resize_with(above + 1, Vec::new);
            }
            self.upper_levels[above].push(id);
        }
    }

    fn take_nodes(&mut self, mut content: Content<'_>) -> Option<()> {
        let thread = self.threads.get_mut(content.u32()? as usize)?;
        while let Some(node) = ContextNode::read(&mut content) {
            let at = thread.nodes.len();
            let comes_later = at == 0 || (node.parent as usize) < at;
            thread.nodes.push(comes_later.then_some(node)?);
        }
        Some(())
    }

    fn take_arc(&mut self, mut content: Content<'_>) -> Option<()> {
        let (target, block) = (content.u64()?, content.u32()?);
        let counter = Some(content.u32()?).filter(|&counter| counter != u32::MAX);
        let region = content.u32()?;
        let next = self.newest.get(&block).copied().unwrap_or(0);
        self.arcs.push(IndirectArc {
            block,
            target,
            counter,
            next,
            region,
            is_over: false,
            is_checked: false,
        });
        self.newest.insert(block, self.arcs.len() as u32);
        Some(())
    }

    /// Adds the log of a running thread. Arcs that have no record yet have no counter in its area either, and
    /// get one here.
    fn take_log(&mut self, thread: &mut KeptThread, entries: impl Iterator<Item = Logged>) {
        for Logged { block, target } in entries.filter(|entry| (entry.block as usize) < self.blocks.len()) {
            let newest = self.newest.get(&block).copied().unwrap_or(0);
            let of_block = std::iter::successors(self.arcs.get((newest as usize).wrapping_sub(1)), |arc| {
                self.arcs.get((arc.next as usize).wrapping_sub(1))
            });
            let counter = match of_block.into_iter().find(|arc| arc.target == target) {
                Some(arc) => arc.counter,
                None => {
                    let counter = (newest != 0).then(|| u32::MAX - 1 - self.arcs.len() as u32);
                    let (region, is_over) = (NO_REGION, false);
                    self.arcs.push(IndirectArc {
                        block,
                        target,
                        counter,
                        next: newest,
                        region,
                        is_over,
                        is_checked: false,
                    });
                    self.newest.insert(block, self.arcs.len() as u32);
                    counter
                }
            };
            counter.into_iter().for_each(|counter| *thread.counters.entry(counter).or_default() += 1);
        }
    }

    fn take_way(&mut self, mut content: Content<'_>) -> Option<()> {
        let (count, thread) = (content.u64()?, content.u32()? as usize);
        let kind = BranchKind::from_number(content.u32()? as u8)?;
        let (site, target) = (content.u64()?, content.u64()?);
        let known = |address| Some(address).filter(|&address| address != u64::MAX);
        let transfer = (kind, known(site), known(target));
        self.threads.get_mut(thread)?.transfers.insert(transfer, JournaledCount { count, place: None });
        Some(())
    }

    fn take_partial(&mut self, mut content: Content<'_>) -> Option<()> {
        let (count, thread) = (content.u64()?, content.u32()? as usize);
        let (block, offset) = (content.u32()?, content.u32()? as u16);
        let (done, counted) = (content.u32()? as u8, content.u32()? != 0);
        let execution = PartialExecution { block, offset, done, counted };
        self.threads.get_mut(thread)?.partials.insert(execution, JournaledCount { count, place: None });
        Some(())
    }

    /// The counts of the threads, up to now for running ones; errors become notes.
    fn counts(mut self, files: &Path, notes: &mut Vec<NotCounted>) -> io::Result<ProgramCounts> {
        let mut threads = std::mem::take(&mut self.threads);
        let numbers = self.blocks.iter().map(|block| block.counter);
        let most = numbers.chain(self.arcs.iter().filter_map(|arc| arc.counter)).max();
        self.counters = most.map_or(0, |most| most as usize + 1);
        for thread in threads.iter_mut().filter(|thread| !thread.has_ended) {
            let (file, from) = area_of(files, thread.area)?;
            let entries = log_entries(|slot| Ok(slots(&file, from, slot, 1)?[0]))?;
            self.take_log(thread, entries.into_iter());
        }
        let ended = threads.into_iter().map(|thread| self.thread_counts(thread, files, notes));
        let ended = ended.collect::<Result<_, _>>()?;
        let (pid, path) = (self.pid, std::mem::take(&mut self.path));
        Ok(end_space(&self, pid, path, ended, &[]))
    }

    fn thread_counts(
        &self,
        mut thread: KeptThread,
        files: &Path,
        notes: &mut Vec<NotCounted>,
    ) -> io::Result<EndedThread> {
        thread.partials.retain(|execution, _| (execution.block as usize) < self.blocks.len());
        let (tid, pid, name) = (thread.tid, thread.pid, std::mem::take(&mut thread.name));
        let (partials, transfers) = (&thread.partials, &thread.transfers);
        let active = BlockSet::all(self.block_count());
        let mut ended = if thread.has_ended {
            let counter = |counter: u32| thread.counters.get(&counter).copied().unwrap_or(0);
            end_thread(self, Done { tid, pid, name, counter, active, partials, transfers })
        } else {
            let counters = self.running_counters(thread.area, files)?;
            let counter = |counter: u32| {
                let logged = thread.counters.get(&counter).copied().unwrap_or(0);
                counters.get(counter as usize).copied().unwrap_or(0) + logged
            };
            end_thread(self, Done { tid, pid, name, counter, active, partials, transfers })
        };
        if !self.functions.is_empty() {
            let detail = self.add_tree(&mut ended, thread);
            notes.extend(detail.map(|detail| NotCounted { reason: UncountedReason::Other, pid, detail }));
        }
        Ok(ended)
    }

    /// Gives a thread its tree. Returns a note on an inconsistency, unless the tracer has noted it already.
    fn add_tree(&self, ended: &mut EndedThread, mut thread: KeptThread) -> Option<String> {
        let kept = self.trees.get(&thread.area).filter(|kept| kept.tid() == thread.tid);
        match (thread.tree.take(), kept) {
            (Some(tree), _) if thread.has_ended => {
                ended.take_tree(self, |_| Some(tree));
                None
            }
            (_, Some(kept)) if !thread.has_ended => ended.take_tree(self, |instructions| {
                Some(ContextTree::of(kept, &self.functions, None, instructions))
            }),
            _ => {
                let (tid, start) = (thread.tid, thread.start());
                ended.take_tree(self, |instructions| Some(ContextTree::of_one(start, instructions)));
                Some(format!(
                    "the calling context tree of thread {tid} is not in files, as it has just begun or the disk \
                     has too little room: all that it executed stands in its first function"
                ))
            }
        }
    }

    /// The present counters of a running thread.
    fn running_counters(&self, area: usize, files: &Path) -> io::Result<Vec<u64>> {
        let (file, from) = area_of(files, area)?;
        let read = |slot: u32| slots(&file, from, slot, self.counters);
        let now = || read(FIRST_COUNTER);
        let selected = slots(&file, from, SELECTED, 1)?[0];
        if selected == WHOLE {
            return now();
        }
        let mut counters = read(SAVED_COUNTS)?;
        if selected == ACTIVE {
            counters.iter_mut().zip(now()?).for_each(|(propagated, now)| *propagated += now);
        }
        Ok(counters)
    }
}

/// The file that holds an area, and the area's offset there.
fn area_of(files: &Path, area: usize) -> io::Result<(File, u64)> {
    let file = File::open(file_of(files, "counters", area / AREAS_PER_SEGMENT))?;
    Ok((file, (area % AREAS_PER_SEGMENT) as u64 * THREAD_AREA))
}

/// Reads `count` words of an area.
fn slots(file: &File, from: u64, slot: u32, count: usize) -> io::Result<Vec<u64>> {
    let mut bytes = vec![0; count * 8];
    file.read_exact_at(&mut bytes, from + u64::from(slot))?;
    Ok(bytes.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect())
}

fn region(mut content: Content<'_>, number: u32) -> Option<Region> {
    let (start, end, offset) = (content.u64()?, content.u64()?, content.u64()?);
    let vdso = content.u32()? != 0;
    let mut version = [0; Version::WORDS];
    for word in &mut version {
        *word = content.u64()?;
    }
    let path = content.path();
    let file = (!path.as_os_str().is_empty()).then_some((path, offset));
    Some(Region {
        start,
        end,
        writable: false,
        stack: false,
        file,
        hidden: None,
        version: (version != [0; Version::WORDS]).then(|| Version::of_words(version)),
        vdso,
        changes: false,
        number,
    })
}

impl Translated for KeptJournal {
    fn block_count(&self) -> u32 {
        self.blocks.len() as u32
    }

    fn block(&self, block: u32) -> (BlockFacts, u32) {
        (self.blocks[block as usize], self.newest.get(&block).copied().unwrap_or(0))
    }

    fn arc(&self, arc: u32) -> IndirectArc {
        self.arcs[arc as usize]
    }

    fn regions(&self) -> &[Region] {
        &self.regions
    }

    fn kept(&self) -> &[(u32, Box<[u8]>)] {
        &self.kept
    }

    fn upper_levels(&self) -> &[Vec<u32>] {
        &self.upper_levels
    }

    fn propagated(&self, address: u64) -> Option<u32> {
        self.propagated.get(&address).copied()
    }
}
