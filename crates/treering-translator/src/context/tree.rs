//! The tree of a thread, at its end or at any moment before.

use std::io;

use treering_x86::context::{FRAME, FRAME_NODE, NODE, NODE_KEY};

use crate::areas::frame_spill::Words;
use crate::areas::thread_areas::ThreadAreas;
use crate::areas::tree_layout::{
    COUNT, FIRST_FRAME, FOLDED, INHERITED, INHERITED_TO, NEW, NODES, SLOTS, UNMATCHED_RETURNS,
};
use crate::program::region::NO_REGION;
use crate::sys;

/// The calling context tree of a thread.
#[derive(Debug, Clone, Default)]
pub struct ContextTree {
    /// Its nodes, parents first. The first one is the root, where nothing is executed.
    pub nodes: Vec<ContextNode>,
    /// Unmatched returns: returns to addresses behind no call of an open frame. Control went to another
    /// stack, and its code runs below the function that switched to it.
    pub unmatched_returns: u64,
    /// Whether the count of the last activation was lost with its thread, and was inferred from the blocks.
    pub is_completed: bool,
}

/// A function, reached by a chain of callers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContextNode {
    /// The caller's node; the root's own.
    pub parent: u32,
    /// The entry address of the function; 0 for the root.
    pub address: u64,
    /// The region that the address lay in, if that is known.
    pub region: Option<u32>,
    /// The number of calls from its parent.
    pub calls: u64,
    /// Instructions executed in it, without those of its callees.
    pub instructions: u64,
}

impl ContextNode {
    fn add(&mut self, [instructions, calls]: [u64; 2]) {
        self.instructions = self.instructions.wrapping_add(instructions);
        self.calls = self.calls.wrapping_add(calls);
    }
}

impl ContextTree {
    /// The instructions of folded contexts, and of all contexts: see [`FOLDED`].
    pub fn folded(&self) -> Option<u64> {
        let fold = self.nodes.iter().position(|node| node.address == FOLDED)?;
        let below = self.nodes.iter().filter(|node| node.parent as usize == fold);
        Some(below.fold(0, |sum, node| sum.wrapping_add(node.instructions)))
    }

    /// The instructions of all nodes.
    pub fn instructions(&self) -> u64 {
        self.nodes.iter().fold(0, |sum, node| sum.wrapping_add(node.instructions))
    }

    /// The tree of a thread whose blocks count `instructions` in all. `addresses` are the functions' entry addresses,
    /// by number. Without a `last` count, the instructions that the tree lacks were executed in the current node.
    pub(crate) fn of(
        slots: &impl Slots,
        addresses: &[u64],
        last: Option<[u64; 2]>,
        instructions: u64,
    ) -> Self {
        let top = slots.slot(SLOTS.top);
        let moved = slots.spilled().len() as u64 * u64::from(FRAME);
        let is_own = top + moved > slots.slot(INHERITED_TO);
        let mut nodes = nodes(slots, addresses);
        let mut count = last.unwrap_or(if is_own { NEW } else { INHERITED });
        for frame in (FIRST_FRAME..=top).rev().step_by(FRAME as usize) {
            nodes[slots.node_of(frame)].add(count);
            count = slots.pair(frame);
        }
        for &[instructions, calls, node, _] in slots.spilled().iter().rev() {
            nodes[index(node as u32) as usize].add(count);
            count = [instructions, calls];
        }
        let mut tree =
            Self { nodes, unmatched_returns: slots.slot(UNMATCHED_RETURNS), is_completed: last.is_none() };
        if last.is_none() {
            tree.complete(slots.node_of(top), instructions);
        }
        tree
    }

    /// The tree of a thread of which only the first address is known.
    pub(crate) fn of_one(address: u64, instructions: u64) -> Self {
        let root = ContextNode { parent: 0, address: 0, region: None, calls: 0, instructions: 0 };
        let nodes = vec![root, ContextNode { address, instructions, ..root }];
        Self { nodes, unmatched_returns: 0, is_completed: true }
    }

    fn complete(&mut self, current: usize, instructions: u64) {
        // The part of a block that did not run may have been subtracted already, while the whole block was
        // still in the register.
        for node in self.nodes.iter_mut().filter(|node| node.instructions.cast_signed() < 0) {
            node.instructions = 0;
        }
        let lacking = instructions.wrapping_sub(self.instructions());
        let node = &mut self.nodes[current];
        let sum = node.instructions.wrapping_add(lacking);
        if sum.cast_signed() >= 0 {
            node.instructions = sum;
        }
    }
}

/// The memory of a thread's tree: an area, in memory or in files.
pub(crate) trait Slots {
    /// Eight bytes.
    fn slot(&self, slot: impl Into<u64>) -> u64;

    /// The spilled frames, outermost first.
    fn spilled(&self) -> &[Words] {
        &[]
    }

    /// Sixteen bytes.
    fn pair(&self, slot: u64) -> [u64; 2] {
        [self.slot(slot), self.slot(slot + 8)]
    }

    /// The number of a frame's node.
    fn node_of(&self, frame: u64) -> usize {
        index(self.slot(frame + u64::from(FRAME_NODE)) as u32) as usize
    }
}

fn nodes(slots: &impl Slots, addresses: &[u64]) -> Vec<ContextNode> {
    let nodes = (NODES..slots.slot(SLOTS.next)).step_by(NODE as usize).map(|node| {
        let [instructions, calls] = slots.pair(node);
        let key = slots.slot(node + u64::from(NODE_KEY));
        let address = addresses.get(key as u32 as usize).copied();
        let parent = if key == 0 { 0 } else { index((key >> 32) as u32) };
        ContextNode { parent, address: address.unwrap_or(0), region: None, calls, instructions }
    });
    nodes.collect()
}

/// A thread's area.
struct AreaSlots<'a>(&'a ThreadAreas, usize);

impl Slots for AreaSlots<'_> {
    fn slot(&self, slot: impl Into<u64>) -> u64 {
        self.0.slot(self.1, slot.into() as u32)
    }

    fn spilled(&self) -> &[Words] {
        self.0.spilled(self.1)
    }
}

impl ThreadAreas {
    /// The count of a stopped thread's current activation. `lent`: the program's own value is in the register.
    pub(crate) fn running_count(
        &mut self,
        area: usize,
        lent: bool,
        tid: i32,
    ) -> io::Result<Option<[u64; 2]>> {
        let Some(thread) = self.thread_tree(area) else { return Ok(None) };
        if lent || thread.interrupted.is_some() {
            return Ok(Some(self.pair(area, COUNT)));
        }
        sys::vector(tid).map(Some)
    }

    /// The tree of a thread whose blocks count `instructions` in all; see [`ContextTree::of`].
    pub(crate) fn tree(&self, area: usize, last: Option<[u64; 2]>, instructions: u64) -> Option<ContextTree> {
        self.trees.as_ref()?.threads.get(&area)?;
        let mut tree = ContextTree::of(&AreaSlots(self, area), self.functions(), last, instructions);
        let regions = &self.trees.as_ref()?.functions.regions;
        for (node, at) in tree.nodes.iter_mut().zip((NODES..).step_by(NODE as usize)) {
            let function = self.slot(area, at as u32 + NODE_KEY) as u32;
            node.region = regions.get(function as usize).copied().filter(|&region| region != NO_REGION);
        }
        Some(tree)
    }
}

/// The number of a node.
pub(super) fn index(node: u32) -> u32 {
    (node - NODES as u32) / NODE
}
