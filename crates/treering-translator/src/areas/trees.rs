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
    /// How many nodes they may have together; beyond that, contexts are folded.
    pub(crate) most_nodes: u64,
    /// How many bytes of frames a thread may have.
    pub(crate) most_frames: u64,
    /// Frames, tables and nodes, by thread area.
    pub(crate) memory: Vec<TreeMemory>,
}

impl Trees {
    /// None yet.
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

/// How large calling context trees may be. No count depends on it.
#[derive(Debug, Clone, Copy, Default)]
pub struct TreeLimits {
    /// How many nodes the trees of a process may have together, two million if nothing is said. Contexts that come
    /// later are folded: each function has one node for all of them, and who had called it there is not kept.
    pub nodes: Option<u64>,
    /// How many calls may nest in a thread, eight million if nothing is said, before the tracer keeps the outer ones in
    /// its own memory.
    pub frames: Option<u64>,
}

/// The numbers of functions that are entered.
#[derive(Debug, Default)]
pub(crate) struct Functions {
    /// By the address at which they are entered.
    numbers: HashMap<u64, u32>,
    /// The addresses by number; 0 is nobody's.
    pub(crate) addresses: Vec<u64>,
    /// The regions that those lay in, by number.
    pub(crate) regions: Vec<u32>,
}

impl Functions {
    /// The number of the function that is entered at an address, which lies in a region.
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

    /// Other functions are entered between two addresses from now on.
    pub(crate) fn forget(&mut self, start: u64, end: u64) {
        self.numbers.retain(|address, _| !(start..end).contains(address));
    }
}

/// What only the tracer knows of a thread's tree.
#[derive(Debug, Default)]
pub(crate) struct ThreadTree {
    /// Handlers that run, outermost first.
    pub(crate) signals: Vec<SignalFrame>,
    /// The stack pointer where a signal interrupts, while its handler is being entered; the count is
    /// in its slot.
    pub(crate) interrupted: Option<u64>,
    /// Frames that lie with the tracer, as there is no room for all.
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
