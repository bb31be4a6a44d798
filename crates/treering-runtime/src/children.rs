//! The children of a node, by the numbers of their functions.
//!
//! Between two events a program may have touched so much that every line of memory has to come from
//! far away. So a node with more than two children has a table of its own, of which one look takes
//! one line: words of a function's number and how far away its node is. The first word holds the
//! mask that makes an index of a hash. Tables that were outgrown stay in the file, unused: all
//! together they are no larger than those in use.

use treering_events::Ref;
use treering_events::cells::Node;

use crate::record::{self, Table, address};

/// A node with more children than this has a table.
const FEW: u32 = 2;

/// Slots of the first table, which fill a line.
const FIRST_SLOTS: u32 = 8;

/// Stands in the first slot, where others have the number of a function. No function has it.
const NO_FUNCTION: u32 = u32::MAX - 1;

/// The child for a function, if there is one.
#[inline]
pub(crate) fn find(parent: &Node, function: u32) -> Option<&'static Node> {
    if parent.private_table.get() == 0 {
        return all(parent).find(|child| child.function.get() == function);
    }
    let table = Table::at(parent, parent.private_table.get());
    let mut at = spread(function);
    loop {
        let slot = table.word(at).get();
        if slot >> 32 == u64::from(function) {
            return Some(record::node_at_distance(parent, slot as u32));
        }
        if slot == 0 {
            return None;
        }
        at += 1;
    }
}

/// Makes a node findable that is about to become a child; nothing where there is no room.
/// `allocate` gives room in the thread's file, with zeros.
pub(crate) fn add(parent: &Node, child: &Node, allocate: impl FnOnce(u64) -> Option<Ref>) -> Option<()> {
    let count = treering_events::count(parent.child_list.get()) + 1;
    if count <= FEW {
        return Some(());
    }
    let old = parent.private_table.get();
    let old_slots = if old == 0 { 0 } else { Table::at(parent, old).size() };
    // A quarter is left free, the first slot counted as taken.
    if (u64::from(count) + 1) * 4 > u64::from(old_slots) * 3 {
        let table = Table::new((old_slots * 2).max(FIRST_SLOTS), NO_FUNCTION, allocate)?;
        all(parent).for_each(|child| put(table, parent, child));
        parent.private_table.set(table.distance(parent));
    }
    put(Table::at(parent, parent.private_table.get()), parent, child);
    Some(())
}

/// The children, newest first.
fn all(parent: &Node) -> impl Iterator<Item = &'static Node> {
    let at = |place: Ref| (place != 0).then(|| record::at::<Node>(place));
    core::iter::successors(at(treering_events::first(parent.child_list.get())), move |child| at(child.next_sibling.get()))
}

/// Enters a child in the first free slot for it; there is one.
fn put(table: Table, parent: &Node, child: &Node) {
    let mut at = spread(child.function.get());
    while table.word(at).get() != 0 {
        at += 1;
    }
    let distance = record::distance(parent, address(child));
    table.word(at).set(u64::from(child.function.get()) << 32 | u64::from(distance));
}

/// Spreads the numbers of functions, which are given in order.
fn spread(function: u32) -> u32 {
    function.wrapping_mul(0x9E37_79B9) >> 7
}
