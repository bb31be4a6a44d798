//! The memory of trees: frames, tables and nodes of each thread, in files if the counters are.
//!
//! File-backed memory needs room on the disk before it is touched. Each larger table reserves room for its
//! nodes. The room for frames is doubled when the deepest node comes near its end: a thread never needs more
//! frames than there are nodes between one and the root. Frames without room are inaccessible. When the disk
//! is full, the tree moves to memory.

use std::io;
use std::path::{Path, PathBuf};

use treering_x86::context::{FRAME, NODE};

use crate::areas::counter_file::{SPARE, file_of};
use crate::areas::thread_areas::ThreadAreas;
use crate::areas::tree_layout::{
    CONTEXT_AREA, FIRST_ENTRIES, FRAMES, FRAMES_SIZE, LASTS, LASTS_SIZE, NODES, SLOTS, TABLE,
};
use crate::error::Exhausted;
use crate::program::region::PAGE;
use crate::sys::layout::THREAD_AREA;
use crate::sys::remote_syscall::{RemoteSyscalls, StoppedThread};
use crate::sys::shared_memory::SharedMemory;

use super::tree_node::Depths;

/// The size of a tree's memory; only used pages take room.
const SIZE: u64 = CONTEXT_AREA - THREAD_AREA;
/// The room on a disk that is first reserved for frames, in bytes: 32,768 frames.
const FIRST_FRAMES: u64 = 1 << 20;

/// The frames, table and nodes of an area.
#[derive(Debug)]
pub(crate) struct TreeMemory {
    pub(crate) shared: SharedMemory,
    /// The bytes of frames that have room. The program may access all but the last page of them, as the
    /// tracer can be a frame ahead. None once a large tree was cleared.
    frames: u64,
    /// The most bytes of frames.
    most_frames: u64,
    /// The depth of each node that existed when the depths were last read.
    depths: Depths,
}

impl TreeMemory {
    /// A file at the path, or memory if there is none or the disk is full.
    fn new(path: Option<&Path>, most_frames: u64) -> io::Result<Self> {
        let Some(path) = path else { return Self::in_memory(most_frames) };
        Self::in_file(path, most_frames).or_else(|_| {
            let _ = std::fs::remove_file(path);
            Self::in_memory(most_frames)
        })
    }

    fn in_file(path: &Path, most_frames: u64) -> io::Result<Self> {
        let memory = Self {
            shared: SharedMemory::in_file(path, SIZE)?,
            frames: FIRST_FRAMES.min(most_frames),
            most_frames,
            depths: Depths::default(),
        };
        memory.reserve_first()?;
        memory.shared.expect_no_order();
        Ok(memory)
    }

    fn in_memory(most_frames: u64) -> io::Result<Self> {
        let shared = SharedMemory::new("treering contexts", SIZE)?;
        Ok(Self { shared, frames: most_frames, most_frames, depths: Depths::default() })
    }

    fn reserve_first(&self) -> io::Result<()> {
        self.reserve(FRAMES, FIRST_FRAMES)?;
        self.reserve_nodes(0, FIRST_ENTRIES)
    }

    /// Reserves room for a table of `entries` entries and its nodes; `before` of the entries have room already.
    fn reserve_nodes(&self, before: u64, entries: u64) -> io::Result<()> {
        let (more, node) = (entries - before, u64::from(NODE));
        self.reserve(TABLE + before * 4, more * 4)?;
        self.reserve(NODES + before / 2 * node, more / 2 * node)
    }

    fn reserve(&self, slot: u64, length: u64) -> io::Result<()> {
        self.shared.reserve_beside(SPARE, slot - THREAD_AREA, length)
    }

    /// Maps it into a program, behind its area's counters.
    fn map(&self, calls: &mut RemoteSyscalls<'_, '_>, base: u64, replace: bool) -> io::Result<()> {
        calls.map(&self.shared, base + THREAD_AREA, SIZE, libc::PROT_READ | libc::PROT_WRITE, replace)?;
        self.close(calls, base)
    }

    /// Makes the memory behind the frames that have room inaccessible.
    fn close(&self, calls: &mut RemoteSyscalls<'_, '_>, base: u64) -> io::Result<()> {
        protect(calls, base + self.open_end(), base + TABLE, libc::PROT_NONE)
    }

    /// The greatest depth of a node whose frame is accessible.
    fn deepest_open(&self) -> u64 {
        (self.frames.saturating_sub(PAGE) / u64::from(FRAME)).saturating_sub(1)
    }

    /// The end of the frames that the program may access.
    fn open_end(&self) -> u64 {
        FRAMES + self.frames - PAGE
    }
}

fn protect(calls: &mut RemoteSyscalls<'_, '_>, from: u64, to: u64, protection: i32) -> io::Result<()> {
    calls.call(libc::SYS_mprotect, [from, to - from, protection as u64, 0, 0, 0]).map(drop)
}

impl ThreadAreas {
    /// Maps a new area, if trees are kept: its counters, and the memory of its tree behind them.
    pub(crate) fn map_tree(&mut self, area: usize, thread: &mut StoppedThread<'_>) -> io::Result<()> {
        if !self.has_trees() {
            return Ok(());
        }
        let most_frames = self.trees.as_ref().map_or(FRAMES_SIZE, |trees| trees.most_frames);
        let memory = TreeMemory::new(self.tree_file(area).as_deref(), most_frames)?;
        let tid = thread.tid;
        let base = thread.remotely(|calls| {
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            let map = |base| calls.map_part(self.area_memory(area), base, THREAD_AREA, protection, false);
            let base = self.place_segment(tid, map, |_| false)?;
            memory.map(calls, base, false)?;
            Ok(base)
        })?;
        self.segment_bases.push(base);
        if let Some(trees) = &mut self.trees {
            trees.memory.push(memory);
        }
        Ok(())
    }

    fn tree_file(&self, area: usize) -> Option<PathBuf> {
        self.files.as_deref().map(|files| file_of(files, "contexts", area))
    }

    /// Makes an area that was freed like a new one.
    pub(crate) fn renew_tree(&mut self, area: usize, thread: &mut StoppedThread<'_>) -> io::Result<()> {
        let base = self.gs_base(area);
        let Some(trees) = &mut self.trees else { return Ok(()) };
        let memory = &mut trees.memory[area];
        if memory.frames != 0 {
            return Ok(());
        }
        if memory.reserve_first().is_err() {
            let memory = TreeMemory::in_memory(memory.most_frames)?;
            return self.replace_tree(area, memory, thread);
        }
        memory.frames = FIRST_FRAMES.min(memory.most_frames);
        thread.remotely(|calls| memory.close(calls, base))
    }

    /// The memory of an area's tree, which begins where its counters end.
    ///
    /// # Panics
    /// If no trees are kept: there are no offsets into it then.
    pub(crate) fn tree_memory(&self, area: usize) -> &SharedMemory {
        let trees = self.trees.as_ref();
        trees.map(|trees| &trees.memory[area].shared).expect("trees are kept")
    }

    /// Reserves room for the last callee entries, which lie among the counters.
    pub(crate) fn reserve_lasts(&self, area: usize) -> io::Result<()> {
        if !self.has_trees() {
            return Ok(());
        }
        let (memory, offset) = self.area_memory(area);
        memory.reserve(offset + u64::from(LASTS), LASTS_SIZE)
    }

    /// Clears the tree of a thread that has ended.
    pub(crate) fn clear_tree(&mut self, area: usize) {
        if self.has_trees() {
            let (memory, offset) = self.area_memory(area);
            memory.zero(offset + u64::from(LASTS), LASTS_SIZE);
        }
        let (entries, next) = (self.entries(area), self.slot(area, SLOTS.next));
        let used: Vec<_> = self.used_of_tree(area).collect();
        let Some(trees) = &mut self.trees else { return };
        trees.threads.remove(&area);
        let memory = &mut trees.memory[area];
        if memory.frames == FIRST_FRAMES && entries <= FIRST_ENTRIES {
            // A small tree keeps its room: reserving room costs more than clearing the contents.
            memory.shared.write(TABLE - THREAD_AREA, &vec![0; entries as usize * 4]);
            memory.shared.write(NODES - THREAD_AREA, &vec![0; next.saturating_sub(NODES) as usize]);
            return;
        }
        used.into_iter().for_each(|(slot, length)| memory.shared.clear(slot - THREAD_AREA, length));
        if memory.shared.is_on_disk() {
            memory.frames = 0;
        }
    }

    fn entries(&self, area: usize) -> u64 {
        self.slot(area, SLOTS.mask) + 1
    }

    /// The parts of an area's tree that may be nonzero, all of which have room.
    fn used_of_tree(&self, area: usize) -> impl Iterator<Item = (u64, u64)> {
        let parts = self.trees.as_ref().map(|trees| {
            let end = self.slot(area, SLOTS.end);
            let table = self.entries(area) * 4;
            [(FRAMES, trees.memory[area].frames), (TABLE, table), (NODES, end.saturating_sub(NODES))]
        });
        parts.into_iter().flatten().map(|(slot, length)| (slot, length.next_multiple_of(PAGE)))
    }

    /// Removes the files of trees.
    pub(crate) fn remove_trees(&self) {
        let areas = self.trees.iter().flat_map(|trees| 0..trees.memory.len());
        for file in areas.filter_map(|area| self.tree_file(area)) {
            let _ = std::fs::remove_file(file);
        }
    }

    /// Whether an address lies behind the frames that a thread may access.
    pub(crate) fn is_behind_frames(&self, area: usize, address: u64) -> bool {
        let end = self.trees.as_ref().map(|trees| trees.memory[area].open_end());
        let base = self.gs_base(area);
        end.is_some_and(|end| (base + end..base + TABLE).contains(&address))
    }

    /// Makes frames accessible to a thread, up to an address.
    ///
    /// # Errors
    /// The limit on frames is reached.
    pub(crate) fn open_frames(
        &mut self,
        area: usize,
        address: u64,
        thread: &mut StoppedThread<'_>,
    ) -> io::Result<()> {
        let base = self.gs_base(area);
        self.reserve_frames(area, address - base, thread)?;
        let Some(trees) = &self.trees else { return Ok(()) };
        let end = trees.memory[area].open_end();
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        thread.remotely(|calls| protect(calls, base + FRAMES, base + end, protection))
    }

    /// Makes frames accessible for twice the present depth, as each new node may be deeper than the one before.
    /// The program must not run out of frames first: it may have blocked the signal of that fault, and would be
    /// ended. Returns for how many more nodes there are frames; at least one, because a thread that needs more
    /// frames than the limit gets its error then.
    pub(crate) fn open_deeper_frames(
        &mut self,
        area: usize,
        thread: &mut StoppedThread<'_>,
    ) -> io::Result<u64> {
        let Some(trees) = self.trees.as_mut().filter(|_| !thread.gone) else { return Ok(1) };
        let mut depths = std::mem::take(&mut trees.memory[area].depths);
        let (open, most_frames) = (trees.memory[area].deepest_open(), trees.memory[area].most_frames);
        let deepest = self.deepest(area, &mut depths);
        let opened = if deepest > open / 2 {
            // One page must remain behind the last frame.
            let most = (most_frames - PAGE) / u64::from(FRAME) - 1;
            let wanted = FRAMES + (deepest * 2).min(most) * u64::from(FRAME);
            self.open_frames(area, self.gs_base(area) + wanted, thread)
        } else {
            Ok(())
        };
        let Some(trees) = &mut self.trees else { return Ok(1) };
        let memory = &mut trees.memory[area];
        memory.depths = depths;
        opened.map(|()| memory.deepest_open().saturating_sub(deepest).max(1))
    }

    /// Forgets the depths of nodes that no longer exist.
    pub(crate) fn forget_depths(&mut self, area: usize) {
        if let Some(trees) = &mut self.trees {
            trees.memory[area].depths = Depths::default();
        }
    }

    /// The end of the frames at the limit.
    pub(crate) fn frames_end(&self, area: usize) -> u64 {
        let most = self.trees.as_ref().map_or(FRAMES_SIZE, |trees| trees.memory[area].most_frames);
        FRAMES + most - PAGE
    }

    /// Reserves room for a frame, and for a page behind it.
    pub(crate) fn reserve_frames(
        &mut self,
        area: usize,
        frame: u64,
        thread: &mut StoppedThread<'_>,
    ) -> io::Result<()> {
        let Some(trees) = &mut self.trees else { return Ok(()) };
        let memory = &mut trees.memory[area];
        let wanted = frame - FRAMES + u64::from(FRAME) + PAGE;
        if wanted <= memory.frames {
            return Ok(());
        }
        if wanted > memory.most_frames {
            return Err(Exhausted::Nesting.into());
        }
        let frames = wanted.next_power_of_two().min(memory.most_frames);
        if memory.reserve(FRAMES + memory.frames, frames - memory.frames).is_err() {
            return self.move_tree(area, thread);
        }
        memory.frames = frames;
        Ok(())
    }

    /// Reserves room for the nodes of a table with twice as many entries as before.
    pub(crate) fn reserve_nodes(
        &mut self,
        area: usize,
        entries: u64,
        thread: &mut StoppedThread<'_>,
    ) -> io::Result<()> {
        let memory = self.trees.as_ref().map(|trees| &trees.memory[area]);
        match memory.map(|memory| memory.reserve_nodes(entries / 2, entries)) {
            Some(Err(_)) => self.move_tree(area, thread),
            _ => Ok(()),
        }
    }

    /// Moves an area's tree into memory, because the disk is full.
    fn move_tree(&mut self, area: usize, thread: &mut StoppedThread<'_>) -> io::Result<()> {
        let most_frames = self.trees.as_ref().map_or(FRAMES_SIZE, |trees| trees.memory[area].most_frames);
        let (old, new) = (self.tree_memory(area), TreeMemory::in_memory(most_frames)?);
        let mut page = [0; PAGE as usize];
        for (slot, length) in self.used_of_tree(area) {
            for at in (slot - THREAD_AREA..slot - THREAD_AREA + length).step_by(page.len()) {
                old.read(at, &mut page);
                if page.iter().any(|&byte| byte != 0) {
                    new.shared.write(at, &page);
                }
            }
        }
        self.replace_tree(area, new, thread)
    }

    fn replace_tree(
        &mut self,
        area: usize,
        memory: TreeMemory,
        thread: &mut StoppedThread<'_>,
    ) -> io::Result<()> {
        let base = self.gs_base(area);
        if !thread.gone {
            thread.remotely(|calls| memory.map(calls, base, true))?;
        }
        if let Some(trees) = &mut self.trees {
            trees.memory[area] = memory;
        }
        self.tree_file(area).map_or(Ok(()), std::fs::remove_file)
    }
}
