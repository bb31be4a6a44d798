//! A thread's tree, when the thread has ended.

use std::io;

use treering_x86::context::{NODE, NODE_KEY};

use crate::space::Space;
use crate::sys;

use super::{COUNT, FIRST_FRAME, INHERITED, NEW, NODES, SLOTS, STRAYS};

/// The calling context tree of a thread.
#[derive(Debug, Clone, Default)]
pub struct ContextTree {
    /// Its nodes, parents first. The first one is the root, where nothing is executed.
    pub nodes: Vec<ContextNode>,
    /// Returns to places from which nothing was called, as far as is known: control went to another
    /// stack, and what runs there stands below the function that switched to it.
    pub strays: u64,
    /// Whether the count of the last activation was lost with its thread, and was worked out from the
    /// blocks.
    pub is_completed: bool,
}

/// A function, reached by a chain of callers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContextNode {
    /// The caller's node; the root's own.
    pub parent: u32,
    /// Where the function is entered; 0 for the root.
    pub address: u64,
    /// How often it was entered from there.
    pub calls: u64,
    /// Instructions executed in it, without those of its callees.
    pub instructions: u64,
}

impl ContextTree {
    /// The instructions of all nodes.
    pub fn instructions(&self) -> u64 {
        self.nodes.iter().fold(0, |sum, node| sum.wrapping_add(node.instructions))
    }
}

impl Space {
    /// The count of a stopped thread's current activation; `lent`: the program's own value is in the
    /// register.
    pub(crate) fn running_count(
        &mut self,
        slice: usize,
        lent: bool,
        tid: i32,
    ) -> io::Result<Option<[u64; 2]>> {
        let Some(thread) = self.thread_context(slice) else { return Ok(None) };
        if lent || thread.interrupted.is_some() {
            return Ok(Some(self.pair(slice, COUNT)));
        }
        sys::vector(tid).map(Some)
    }

    /// Ends a thread's tree, of which the blocks count `instructions` in all. Without a `last` count,
    /// what the tree lacks was executed in the current node.
    pub(crate) fn end_context(
        &mut self,
        slice: usize,
        last: Option<[u64; 2]>,
        instructions: u64,
    ) -> Option<ContextTree> {
        let thread = self.context.as_mut()?.threads.remove(&slice)?;
        let top = self.slot(slice, SLOTS.top);
        let is_own = top > thread.inherited;
        let mut count = last.unwrap_or(if is_own { NEW } else { INHERITED });
        let current = self.frame_node(slice, top);
        while self.slot(slice, SLOTS.top) >= FIRST_FRAME {
            count = self.pop(slice, count);
        }
        let mut tree = ContextTree {
            nodes: self.nodes(slice),
            strays: self.slot(slice, STRAYS as u32),
            is_completed: last.is_none(),
        };
        if last.is_none() {
            let lacking = instructions.wrapping_sub(tree.instructions());
            let node = &mut tree.nodes[index(current) as usize];
            node.instructions = node.instructions.wrapping_add(lacking);
        }
        Some(tree)
    }

    fn nodes(&self, slice: usize) -> Vec<ContextNode> {
        let addresses = self.context.as_ref().map(|context| &context.addresses);
        let end = self.slot(slice, SLOTS.next);
        let nodes = (NODES..end).step_by(NODE as usize).map(|node| {
            let [instructions, calls] = self.pair(slice, node as u32);
            let key = self.slot(slice, node as u32 + NODE_KEY);
            let address = addresses.and_then(|addresses| addresses.get(key as u32 as usize)).copied();
            let parent = if key == 0 { 0 } else { index((key >> 32) as u32) };
            ContextNode { parent, address: address.unwrap_or(0), calls, instructions }
        });
        nodes.collect()
    }
}

fn index(node: u32) -> u32 {
    (node - NODES as u32) / NODE
}
