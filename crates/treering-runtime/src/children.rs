//! The children of a node, by the numbers of their functions.
//!
//! Between two events a program may have touched so much that every line of memory has to come from
//! far away. So a node with more than two children has a table of its own, of which one look takes
//! one line: words of a function's number and how far away its node is. The first word holds the
//! mask that makes an index of a hash. Tables that were outgrown stay in the file, unused: all
//! together they are no larger than those in use.

use treering_events::{Node, Ref, UNIT};

use crate::store;

/// A node with more children than this has a table.
const FEW: u32 = 2;

/// Slots of the first table, which fill a line.
const FIRST_SLOTS: usize = 8;

/// Stands in the first slot, where others have the number of a function. No function has it.
const NO_FUNCTION: u64 = (u32::MAX - 1) as u64;

/// The child for a function, if there is one.
///
/// # Safety
/// The node is one of the running thread's tree.
#[inline]
pub(crate) unsafe fn find(parent: *mut Node, function: u32) -> Option<*mut Node> {
    // SAFETY: by this function's own requirement; the table is one that `add` has made.
    unsafe {
        if (*parent).private_table == 0 {
            return among_few(parent, function);
        }
        let slots = from(parent, (*parent).private_table).cast::<u64>();
        let mask = *slots as u32 as usize;
        let mut at = spread(function) & mask;
        loop {
            let slot = *slots.add(at);
            if slot >> 32 == u64::from(function) {
                return Some(from(parent, slot as u32).cast());
            }
            if slot == 0 {
                return None;
            }
            at = (at + 1) & mask;
        }
    }
}

/// Makes a node findable that is about to become a child; nothing where there is no room.
///
/// # Safety
/// Both are nodes of the running thread, and `allocate` gives room in its file, with zeros.
pub(crate) unsafe fn add(
    parent: *mut Node,
    child: *mut Node,
    allocate: impl FnOnce(u64) -> Option<Ref>,
) -> Option<()> {
    // SAFETY: by this function's own requirement; lists of children lead through whole nodes.
    unsafe {
        let count = treering_events::count((*parent).child_list) as usize + 1;
        if count <= FEW as usize {
            return Some(());
        }
        let old = (*parent).private_table;
        let old_slots = if old == 0 { 0 } else { *from(parent, old).cast::<u64>() as u32 as usize + 1 };
        // A quarter is left free, the first slot counted as taken.
        if (count + 1) * 4 > old_slots * 3 {
            let size = (old_slots * 2).max(FIRST_SLOTS);
            let place = allocate(size as u64 * 8)?;
            let table = store::at::<u64>(place);
            *table = NO_FUNCTION << 32 | (size as u64 - 1);
            let mut at = treering_events::first((*parent).child_list);
            while at != 0 {
                let node = store::at::<Node>(at);
                put(table, parent, node);
                at = (*node).next_sibling;
            }
            (*parent).private_table = distance(parent, table.cast());
        }
        put(from(parent, (*parent).private_table).cast(), parent, child);
    }
    Some(())
}

/// Enters a child in the first free slot for it; there is one.
unsafe fn put(slots: *mut u64, parent: *mut Node, child: *mut Node) {
    // SAFETY: the table is as long as its first word says.
    unsafe {
        let mask = *slots as u32 as usize;
        let mut at = spread((*child).function) & mask;
        while *slots.add(at) != 0 {
            at = (at + 1) & mask;
        }
        *slots.add(at) = u64::from((*child).function) << 32 | u64::from(distance(parent, child.cast()));
    }
}

unsafe fn among_few(parent: *mut Node, function: u32) -> Option<*mut Node> {
    // SAFETY: as in `find`; lists of children lead through whole nodes.
    unsafe {
        let mut at = treering_events::first((*parent).child_list);
        while at != 0 {
            let node = store::at::<Node>(at);
            if (*node).function == function {
                return Some(node);
            }
            at = (*node).next_sibling;
        }
    }
    None
}

/// How far it is from a node to another record, in units, modulo 2^32.
fn distance(parent: *mut Node, record: *mut u8) -> u32 {
    ((record as i64 - parent as i64) / UNIT as i64) as u32
}

/// The record that is so far away from a node.
unsafe fn from(parent: *mut Node, distance: u32) -> *mut u8 {
    parent.cast::<u8>().wrapping_offset(distance as i32 as isize * UNIT as isize)
}

/// Spreads the numbers of functions, which are given in order.
fn spread(function: u32) -> usize {
    (function.wrapping_mul(0x9E37_79B9) >> 7) as usize
}
