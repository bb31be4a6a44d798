//! The trees of an address space's threads, and the function numbers and limits that they share.

use hashbrown::HashMap;
use treering_x86::context::FRAME;

use crate::areas::frame_spill::Spilled;
use crate::areas::tree_layout::{FRAMES_SIZE, LARGEST_TREE, MOST_NODES};
use crate::areas::tree_memory::TreeMemory;
use crate::program::region::{NO_REGION, PAGE};

/// The trees of all threads.
#[derive(Debug, Default)]
pub(crate) struct Trees {
    pub(crate) functions: Functions,
    /// By thread area.
    pub(crate) threads: HashMap<usize, ThreadTree>,
    /// The most nodes that they may have together; beyond that, contexts are folded.
    pub(crate) most_nodes: u64,
    /// The most bytes of frames of a thread.
    pub(crate) most_frames: u64,
    /// Frames, tables and nodes, by thread area.
    pub(crate) memory: Vec<TreeMemory>,
}

impl Trees {
    /// No trees yet.
    pub(crate) fn new(limits: TreeLimits) -> Self {
        Self {
            most_nodes: limits.nodes.unwrap_or(MOST_NODES).min(LARGEST_TREE),
            most_frames: limits.frames.map_or(FRAMES_SIZE, |frames| {
                (frames * u64::from(FRAME)).next_multiple_of(PAGE).clamp(2 * PAGE, FRAMES_SIZE)
            }),
            ..Self::default()
        }
    }
}

/// Size limits of calling context trees. No count depends on them.
#[derive(Debug, Clone, Copy, Default)]
pub struct TreeLimits {
    /// The most nodes that the trees of a process have together; the default is two million. Later contexts
    /// are folded: each function has one node for all of them, and their callers are lost.
    pub nodes: Option<u64>,
    /// The most nested calls of a thread whose frames lie in its area; the default is eight million. Beyond
    /// that, the tracer keeps the outer frames in its own memory.
    pub frames: Option<u64>,
}

/// The numbers of the entered functions.
#[derive(Debug, Default)]
pub(crate) struct Functions {
    /// By entry address.
    numbers: HashMap<u64, u32>,
    /// The entry addresses by number; number 0 is unused.
    pub(crate) addresses: Vec<u64>,
    /// The regions of these addresses, by number.
    pub(crate) regions: Vec<u32>,
}

impl Functions {
    /// The number of the function at an entry address, which lies in a region.
    pub(crate) fn number(&mut self, address: u64, region: u32) -> u32 {
        if self.addresses.is_empty() {
            self.addresses.push(0);
            self.regions.push(NO_REGION);
        }
        *self.numbers.entry(address).or_insert_with(|| {
            self.addresses.push(address);
            self.regions.push(region);
            self.addresses.len() as u32 - 1
        })
    }

    /// Forgets the functions between two addresses, which hold other code from now on.
    pub(crate) fn forget(&mut self, start: u64, end: u64) {
        self.numbers.retain(|address, _| !(start..end).contains(address));
    }
}

/// The tracer's own part of a thread's tree.
#[derive(Debug, Default)]
pub(crate) struct ThreadTree {
    /// The running signal handlers, outermost first.
    pub(crate) signals: Vec<SignalFrame>,
    /// The stack pointer at which a signal interrupted the thread, while its handler is being entered. The
    /// count is in its slot then.
    pub(crate) interrupted: Option<u64>,
    /// Spilled frames, for which the area has no room.
    pub(crate) spilled: Spilled,
}

/// A frame that stands for the delivery of a signal.
#[derive(Debug, Clone)]
pub(crate) struct SignalFrame {
    /// Its offset.
    pub(crate) frame: u64,
    /// The stack that the handler runs on, if it has one of its own.
    pub(crate) stack: Option<(u64, u64)>,
}
