//! The tracer's view of the nodes in a thread's area.

use std::io;

use treering_x86::context::{FRAME_NODE, FRAME_STACK, NODE, NODE_KEY, table_place};

use crate::areas::thread_areas::ThreadAreas;
use crate::areas::tree_layout::{FIRST_ENTRIES, FOLDED, MOST_ENTRIES, NODES, OWN, SLOTS, TABLE, Vector};
use crate::error::Exhausted;
use crate::program::region::NO_REGION;
use crate::sys::remote_syscall::StoppedThread;

/// The depths of nodes: the number of nodes between each and the root.
#[derive(Debug, Default)]
pub(crate) struct Depths {
    of_nodes: Vec<u32>,
    deepest: u32,
}

impl ThreadAreas {
    /// An empty pool, with the root's node.
    pub(crate) fn begin_nodes(&mut self, area: usize) {
        self.set_slot(area, SLOTS.next, NODES + u64::from(NODE));
        self.set_slot(area, SLOTS.mask, FIRST_ENTRIES - 1);
        let left = self.nodes_left(area).min(FIRST_ENTRIES);
        self.set_slot(area, SLOTS.end, pool_end(FIRST_ENTRIES).min(NODES + (left + 1) * u64::from(NODE)));
        self.set_slot(area, SLOTS.fold, 0);
        self.forget_depths(area);
    }

    /// The child of a node for a callee. It is made if there is none and there is room; otherwise this is the
    /// child of the node for folded contexts.
    pub(crate) fn child(
        &mut self,
        area: usize,
        parent: u32,
        callee: u32,
        thread: &mut StoppedThread<'_>,
    ) -> io::Result<u32> {
        if self.slot(area, SLOTS.next) >= self.slot(area, SLOTS.end) {
            self.make_room(area, thread)?;
        }
        let key = u64::from(parent) << 32 | u64::from(callee);
        let found = self.probe(area, key).ok();
        match (found, self.slot(area, SLOTS.fold)) {
            (Some(found), _) => Ok(found),
            (None, 0) => Ok(self.add_node(area, key)),
            (None, fold) => self.folded_child(area, fold as u32, callee, thread),
        }
    }

    /// Adds a new node.
    fn add_node(&self, area: usize, key: u64) -> u32 {
        let next = self.slot(area, SLOTS.next);
        self.probe(area, key).unwrap_or_else(|free| {
            self.set_entry(area, free, next as u32);
            self.set_slot(area, next as u32 + NODE_KEY, key);
            self.set_slot(area, SLOTS.next, next + u64::from(NODE));
            next as u32
        })
    }

    /// The node for a callee in all folded contexts. There is always room for one such node of each function.
    fn folded_child(
        &mut self,
        area: usize,
        fold: u32,
        callee: u32,
        thread: &mut StoppedThread<'_>,
    ) -> io::Result<u32> {
        let key = u64::from(fold) << 32 | u64::from(callee);
        if let Ok(found) = self.probe(area, key) {
            return Ok(found);
        }
        let entries = self.slot(area, SLOTS.mask) + 1;
        if self.slot(area, SLOTS.next) >= pool_end(entries) {
            self.double_table(area, entries * 2, thread)?;
        }
        let added = self.add_node(area, key);
        // The program itself adds no more nodes.
        self.set_slot(area, SLOTS.end, self.slot(area, SLOTS.next));
        Ok(added)
    }

    /// Makes the node for folded contexts.
    fn begin_to_fold(&mut self, area: usize, thread: &mut StoppedThread<'_>) -> io::Result<()> {
        let number = self.trees.as_mut().map_or(0, |trees| trees.functions.number(FOLDED, NO_REGION));
        let entries = self.slot(area, SLOTS.mask) + 1;
        if self.slot(area, SLOTS.next) >= pool_end(entries) {
            self.double_table(area, entries * 2, thread)?;
        }
        let fold = self.add_node(area, NODES << 32 | u64::from(number));
        self.set_slot(area, SLOTS.end, self.slot(area, SLOTS.next));
        self.set_slot(area, SLOTS.fold, fold.into());
        self.open_deeper_frames(area, thread).map(drop)
    }

    /// The number of nodes that a tree may still add.
    fn nodes_left(&self, area: usize) -> u64 {
        let Some(trees) = &self.trees else { return 0 };
        let nodes = |area: &usize| (self.slot(*area, SLOTS.next).saturating_sub(NODES)) / u64::from(NODE);
        let all: u64 = trees.threads.keys().filter(|&other| *other != area).map(nodes).sum();
        trees.most_nodes.saturating_sub(all + nodes(&area))
    }

    /// Lets a thread continue that asks for room for a node: there is more room now, or the node exists.
    pub(crate) fn dispatch_want_of_room(
        &mut self,
        area: usize,
        thread: &mut StoppedThread<'_>,
    ) -> io::Result<()> {
        self.make_room(area, thread)?;
        match self.slot(area, SLOTS.fold) {
            0 => Ok(()),
            fold => {
                let callee = self.slot(area, SLOTS.callee) as u32;
                self.folded_child(area, fold as u32, callee, thread).map(drop)
            }
        }
    }

    /// The node with a key, or the table entry where it would be.
    fn probe(&self, area: usize, key: u64) -> Result<u32, u64> {
        let (mask, next) = (self.slot(area, SLOTS.mask), self.slot(area, SLOTS.next));
        let mut at = table_place(key) & mask;
        loop {
            let word = self.slot(area, (TABLE + at / 2 * 8) as u32);
            let node = (word >> (at % 2 * 32)) as u32;
            match node {
                // A thread that was stopped while it made the node has not increased the number of nodes yet.
                _ if node == 0 || u64::from(node) >= next => return Err(at),
                _ if self.slot(area, node + NODE_KEY) == key => return Ok(node),
                _ => at = (at + 1) & mask,
            }
        }
    }

    fn set_entry(&self, area: usize, at: u64, node: u32) {
        let place = (TABLE + at / 2 * 8) as u32;
        let shift = at % 2 * 32;
        let kept = self.slot(area, place) & !(0xffff_ffff << shift);
        self.set_slot(area, place, kept | u64::from(node) << shift);
    }

    /// Lets a thread make more nodes if it has reached its limit: as many as the table allows, and as many as
    /// there are frames for, in case each is deeper than the one before.
    pub(crate) fn make_room(&mut self, area: usize, thread: &mut StoppedThread<'_>) -> io::Result<()> {
        let next = self.slot(area, SLOTS.next);
        if next < self.slot(area, SLOTS.end) || self.slot(area, SLOTS.fold) != 0 {
            return Ok(());
        }
        let left = self.nodes_left(area);
        if left == 0 {
            return self.begin_to_fold(area, thread);
        }
        let entries = self.slot(area, SLOTS.mask) + 1;
        if next >= pool_end(entries) {
            self.double_table(area, entries * 2, thread)?;
        }
        let deeper = self.open_deeper_frames(area, thread)?;
        let end = pool_end(self.slot(area, SLOTS.mask) + 1);
        self.set_slot(area, SLOTS.end, end.min(next + deeper.min(left) * u64::from(NODE)));
        Ok(())
    }

    /// Makes a table of `entries` entries, twice as many as before.
    fn double_table(&mut self, area: usize, entries: u64, thread: &mut StoppedThread<'_>) -> io::Result<()> {
        if entries > MOST_ENTRIES {
            return Err(Exhausted::Contexts.into());
        }
        self.reserve_nodes(area, entries, thread)?;
        (0..entries / 4).for_each(|word| self.set_slot(area, (TABLE + word * 8) as u32, 0));
        self.set_slot(area, SLOTS.mask, entries - 1);
        let mut node = NODES + u64::from(NODE);
        while node < self.slot(area, SLOTS.next) {
            if let Err(free) = self.probe(area, self.slot(area, node as u32 + NODE_KEY)) {
                self.set_entry(area, free, node as u32);
            }
            node += u64::from(NODE);
        }
        Ok(())
    }

    /// Reads the depths of an area's new nodes, and returns the greatest depth.
    pub(crate) fn deepest(&self, area: usize, depths: &mut Depths) -> u64 {
        let number = |slot: u64| (slot - NODES) / u64::from(NODE);
        for at in depths.of_nodes.len() as u64..number(self.slot(area, SLOTS.next)) {
            // Parents come before their children; the root comes first, and has no parent.
            let key = self.slot(area, (NODES + at * u64::from(NODE)) as u32 + NODE_KEY);
            let parent = depths.of_nodes.get(number((key >> 32).max(NODES)) as usize);
            let depth = parent.map_or(0, |depth| depth + 1);
            depths.of_nodes.push(depth);
            depths.deepest = depths.deepest.max(depth);
        }
        depths.deepest.into()
    }

    /// Adds a count to a node.
    pub(crate) fn add_to_node(&self, area: usize, node: u32, count: [u64; 2]) {
        for (at, more) in [(node, count[0]), (node + 8, count[1])] {
            self.set_slot(area, at, self.slot(area, at).wrapping_add(more));
        }
    }

    /// The node of a frame.
    pub(crate) fn frame_node(&self, area: usize, frame: u64) -> u32 {
        self.slot(area, frame as u32 + FRAME_NODE) as u32
    }

    /// The stack pointer at which the function of a frame was entered.
    pub(crate) fn frame_stack(&self, area: usize, frame: u64) -> u64 {
        self.slot(area, frame as u32 + FRAME_STACK)
    }

    /// Sixteen bytes of an area.
    pub(crate) fn pair(&self, area: usize, slot: u32) -> [u64; 2] {
        [self.slot(area, slot), self.slot(area, slot + 8)]
    }

    /// The program's own value of the register.
    pub(crate) fn own(&self, area: usize) -> Vector {
        std::array::from_fn(|word| self.slot(area, OWN + word as u32 * 8))
    }

    /// Stores the program's own value of the register in the area.
    pub(crate) fn set_own(&self, area: usize, own: &Vector) {
        for (word, &value) in own.iter().enumerate() {
            self.set_slot(area, OWN + word as u32 * 8, value);
        }
    }

    /// Stores sixteen bytes in an area.
    pub(crate) fn set_pair(&self, area: usize, slot: u32, pair: [u64; 2]) {
        self.set_slot(area, slot, pair[0]);
        self.set_slot(area, slot + 8, pair[1]);
    }
}

/// The end of the nodes that a table of `entries` entries allows.
fn pool_end(entries: u64) -> u64 {
    NODES + entries / 2 * u64::from(NODE)
}
