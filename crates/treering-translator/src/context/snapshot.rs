//! A snapshot of a thread's tree, read from its file while the thread may be running.
//!
//! Instructions move from the running count to a frame, and from there to a node. So nodes are read first and
//! frames second: instructions that move meanwhile are missed, but never read twice. Blocks are read last;
//! the difference between their counts and the tree is the number of missed instructions.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use treering_x86::context::{FRAME, NODE, NODE_KEY};

use crate::areas::counter_file::file_of;
use crate::areas::tree_layout::{FIRST_FRAME, FRAMES, GUARD, MOST_ENTRIES, NODES, OWNER, SLOTS};
use crate::sys::layout::{AREAS_PER_SEGMENT, FIRST_COUNTER, THREAD_AREA};

use super::tree::{Slots, index};

/// A tree that was read.
#[derive(Debug)]
pub(crate) struct TreeSnapshot {
    /// The area's words in front of the counters.
    saved: Vec<u64>,
    frames: Vec<u64>,
    nodes: Vec<u64>,
}

/// Words of a frame and of a node.
const FRAME_WORDS: usize = FRAME as usize / 8;
const NODE_WORDS: usize = NODE as usize / 8;

impl TreeSnapshot {
    /// Reads the tree in an area, whose thread may be running.
    ///
    /// # Errors
    /// There is no tree, or it is inconsistent.
    pub(crate) fn read(files: &Path, area: usize) -> io::Result<Self> {
        let counters = File::open(file_of(files, "counters", area / AREAS_PER_SEGMENT))?;
        let contexts = File::open(file_of(files, "contexts", area))?;
        let from = (area % AREAS_PER_SEGMENT) as u64 * THREAD_AREA;
        let saved = || words(&counters, from, from + u64::from(FIRST_COUNTER));
        let mut tree = Self { saved: saved()?, frames: Vec::new(), nodes: Vec::new() };
        tree.nodes = words(&contexts, NODES - THREAD_AREA, tree.slot(SLOTS.next).wrapping_sub(THREAD_AREA))?;
        let frames = || {
            let saved = Self { saved: saved()?, frames: Vec::new(), nodes: Vec::new() };
            let top = saved.slot(SLOTS.top);
            words(
                &contexts,
                FRAMES - THREAD_AREA,
                top.saturating_add(u64::from(FRAME)).wrapping_sub(THREAD_AREA),
            )
        };
        let (before, now) = (frames()?, frames()?);
        tree.take_frames(&before, now)?;
        tree.check()?;
        Ok(tree)
    }

    /// The thread whose tree it is.
    pub(crate) fn tid(&self) -> i32 {
        (self.slot(OWNER) as u32).cast_signed()
    }

    /// Adds the frames that did not change between two readings, and whose nodes were read.
    fn take_frames(&mut self, before: &[u64], mut now: Vec<u64>) -> io::Result<()> {
        let frames = before.chunks(FRAME_WORDS).zip(now.chunks(FRAME_WORDS));
        let known = |frame: &[u64]| (NODES..self.slot(SLOTS.next)).contains(&(frame[2] & 0xffff_ffff));
        let same = frames.take_while(|&(before, now)| before == now && known(now)).count();
        now.truncate(same * FRAME_WORDS);
        self.frames = now;
        let top = (same as u64 * u64::from(FRAME) + FRAMES).checked_sub(FRAME.into());
        let top = top.filter(|&top| top >= FIRST_FRAME).ok_or(io::ErrorKind::InvalidData)?;
        self.saved[(SLOTS.top / 8) as usize] = top;
        Ok(())
    }

    /// Checks that callers come before their callees.
    fn check(&self) -> io::Result<()> {
        let starts = |node: u64| node.is_multiple_of(NODE.into()) && node >= NODES;
        let frames = self.frames.chunks(FRAME_WORDS).all(|frame| starts(frame[2] & 0xffff_ffff));
        let key = |node: &[u64]| node[NODE_KEY as usize / 8] >> 32;
        let mut nodes = self.nodes.chunks(NODE_WORDS).enumerate().skip(1);
        let first = nodes.all(|(at, node)| starts(key(node)) && (index(key(node) as u32) as usize) < at);
        (frames && first).then_some(()).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }
}

impl Slots for TreeSnapshot {
    fn slot(&self, slot: impl Into<u64>) -> u64 {
        let slot = slot.into();
        let (words, from) = match slot {
            NODES.. => (&self.nodes, NODES),
            FRAMES.. => (&self.frames, FRAMES),
            _ => (&self.saved, 0),
        };
        words[((slot - from) / 8) as usize]
    }
}

/// Reads words of a file, no more than a tree may have.
fn words(file: &File, from: u64, to: u64) -> io::Result<Vec<u64>> {
    let most = GUARD.max(MOST_ENTRIES / 2 * u64::from(NODE));
    let length = to.checked_sub(from).filter(|&length| length <= most && length.is_multiple_of(8));
    let mut bytes = vec![0; length.ok_or(io::ErrorKind::InvalidData)? as usize];
    file.read_exact_at(&mut bytes, from)?;
    Ok(bytes.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect())
}
