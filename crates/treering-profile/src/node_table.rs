//! Values of some nodes only.

use crate::NodeId;

/// A row for each node that has something to say, beside the columns of [`Tree`](crate::Tree).
///
/// It may end before the tree does; nodes without a row have the default one. So a profile for
/// which nothing of the kind was measured carries no table, and the tree may grow without it.
#[derive(Clone, Debug)]
pub struct NodeTable<T> {
    rows: Vec<T>,
}

impl<T> Default for NodeTable<T> {
    fn default() -> Self {
        Self { rows: Vec::new() }
    }
}

impl<T: Copy + Default + PartialEq> NodeTable<T> {
    /// The row of a node; the default where nothing is known of it.
    pub fn get(&self, node: NodeId) -> T {
        self.rows.get(node.index()).copied().unwrap_or_default()
    }

    /// The row of a node, to be changed. Grows the table up to the node.
    pub fn row(&mut self, node: NodeId) -> &mut T {
        if self.rows.len() <= node.index() {
            self.rows.resize(node.index() + 1, T::default());
        }
        &mut self.rows[node.index()]
    }

    /// Whether no node has anything to say.
    pub fn is_empty(&self) -> bool {
        self.filled().next().is_none()
    }

    /// The nodes with something to say, in order, and their rows.
    pub fn filled(&self) -> impl Iterator<Item = (NodeId, &T)> + '_ {
        let rows = self.rows.iter().enumerate().filter(|(_, row)| **row != T::default());
        rows.map(|(at, row)| (NodeId::from_usize(at), row))
    }

    /// One more than the last node that may have a row; at most the length of the tree.
    pub fn len(&self) -> usize {
        self.rows.len()
    }
}

/// Equal when the same nodes have the same to say, however far the tables reach.
impl<T: Copy + Default + PartialEq> PartialEq for NodeTable<T> {
    fn eq(&self, other: &Self) -> bool {
        self.filled().eq(other.filled())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_without_a_row_have_the_default() {
        let mut table = NodeTable::default();
        *table.row(NodeId::new(3)) = 7_u64;
        assert_eq!([0, 3, 9].map(|node| table.get(NodeId::new(node))), [0, 7, 0]);
        assert_eq!(table.filled().collect::<Vec<_>>(), [(NodeId::new(3), &7)]);
        let mut longer = table.clone();
        *longer.row(NodeId::new(20)) = 0;
        assert_eq!(longer, table);
    }
}
