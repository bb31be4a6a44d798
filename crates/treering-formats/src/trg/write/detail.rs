//! Writes what is known beside the tree.

use std::io::Write;

use treering_profile::{Activations, NodeId, NodeMemory, NodeTable, Ports, Profile, SizeCost};

use super::{BLOCK, File};
use crate::trg::content::encode_in_metric;
use crate::trg::{Kind, WriteError};

/// The details that a file holds already.
#[derive(Default)]
pub(super) struct WrittenDetails {
    /// With its sizes joined and sorted.
    activations: Option<Activations>,
    ports: NodeTable<Ports>,
    memory: NodeTable<NodeMemory>,
    points: usize,
}

impl WrittenDetails {
    /// Whether nothing was taken back since.
    pub(super) fn check_extension(&self, profile: &Profile) -> Result<(), WriteError> {
        if self.points > profile.points.len() {
            return Err(WriteError::NotAnExtension("a table has fewer entries"));
        }
        let activations = self.activations.as_ref().map(|before| {
            let now = profile.activations.as_ref().filter(|now| now.metric == before.metric);
            now.is_some_and(|now| keeps(&before.nodes, &now.nodes))
        });
        if !keeps(&self.ports, &profile.ports)
            || !keeps(&self.memory, &profile.memory)
            || activations == Some(false)
        {
            return Err(WriteError::NotAnExtension("a node has lost its details"));
        }
        Ok(())
    }

    pub(super) fn update(&mut self, profile: &Profile) {
        self.activations.clone_from(&profile.activations);
        self.activations.iter_mut().for_each(Activations::compact_sizes);
        self.ports.clone_from(&profile.ports);
        self.memory.clone_from(&profile.memory);
        self.points = profile.points.len();
    }

    /// The rows of argument sizes that were added.
    fn sizes_since(&self, now: &Activations) -> Vec<SizeCost> {
        let mut now = now.clone();
        now.compact_sizes();
        let before = self.activations.as_ref().map_or(&[][..], |before| &before.sizes);
        let mut before = before.iter().peekable();
        now.sizes.retain_mut(|row| {
            let place = (row.node, row.bucket);
            while before.next_if(|known| (known.node, known.bucket) < place).is_some() {}
            if let Some(known) = before.next_if(|known| (known.node, known.bucket) == place) {
                row.calls = row.calls.saturating_sub(known.calls);
                row.total_cost = row.total_cost.saturating_sub(known.total_cost);
            }
            row.calls > 0 || row.total_cost > 0
        });
        now.sizes
    }
}

/// Whether every node that had something to say has still.
fn keeps<T: Copy + Default + PartialEq>(before: &NodeTable<T>, now: &NodeTable<T>) -> bool {
    before.filled().all(|(node, _)| now.get(node) != T::default())
}

/// The rows that differ from what was stated before.
fn changed<T: Copy + Default + PartialEq>(
    now: &NodeTable<T>,
    before: Option<&NodeTable<T>>,
) -> Vec<(NodeId, T)> {
    let known = |node| before.map(|before| before.get(node)).unwrap_or_default();
    let changed = now.filled().filter(|(node, row)| known(*node) != **row);
    changed.map(|(node, row)| (node, *row)).collect()
}

impl<W: Write> File<W> {
    pub(super) fn details(&mut self, profile: &Profile, written: &WrittenDetails) -> Result<(), WriteError> {
        if let Some(activations) = &profile.activations {
            let metric = activations.metric;
            let before = written.activations.as_ref().map(|before| &before.nodes);
            for piece in changed(&activations.nodes, before).chunks(BLOCK) {
                self.frame(Kind::Statistics, |to| encode_in_metric(to, metric, piece))?;
            }
            for piece in written.sizes_since(activations).chunks(BLOCK) {
                self.frame(Kind::Sizes, |to| encode_in_metric(to, metric, piece))?;
            }
        }
        self.rows(Kind::Ports, &changed(&profile.ports, Some(&written.ports)))?;
        self.rows(Kind::Memory, &changed(&profile.memory, Some(&written.memory)))?;
        self.rows(Kind::Points, &profile.points[written.points..])
    }
}
