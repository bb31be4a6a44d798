//! Puts together what is known beside the tree.

use treering_profile::{
    ActivationStatistics, Activations, MetricId, NodeId, NodeMemory, NodeTable, Point, Ports, Profile,
    SizeCost, Thread, ThreadId,
};

use super::{append, ensure};
use crate::budget::Budget;
use crate::trg::Damage;
use crate::trg::content::{InMetric, Rows};

/// The contents of frames 14 to 18 so far.
#[derive(Default)]
pub(crate) struct Details {
    activations: Option<Activations>,
    ports: NodeTable<Ports>,
    memory: NodeTable<NodeMemory>,
    points: Vec<Point>,
}

/// How long the tables are that details refer to.
#[derive(Clone, Copy)]
pub(crate) struct Lengths {
    pub(crate) nodes: usize,
    pub(crate) metrics: usize,
    pub(crate) threads: usize,
    pub(crate) strings: usize,
}

impl Details {
    pub(crate) fn statistics(
        &mut self,
        stated: InMetric<(NodeId, ActivationStatistics)>,
        known: Lengths,
        budget: &mut Budget,
    ) -> Result<(), Damage> {
        let sound = stated.rows.iter().all(|(_, statistics)| statistics.is_consistent());
        ensure(sound, "the statistics of a node contradict each other")?;
        self.check_metric(stated.metric, known)?;
        let numbers = size_of::<ActivationStatistics>() / 8;
        let nodes = &mut self.activations.get_or_insert_with(|| Activations::new(stated.metric)).nodes;
        state(nodes, stated.rows, numbers, known, budget)
    }

    pub(crate) fn sizes(&mut self, stated: InMetric<SizeCost>, known: Lengths) -> Result<(), Damage> {
        ensure(stated.rows.iter().all(|row| row.node.index() < known.nodes), MISSING_NODE)?;
        self.check_metric(stated.metric, known)?;
        let activations = self.activations.get_or_insert_with(|| Activations::new(stated.metric));
        append(&mut activations.sizes, stated.rows);
        Ok(())
    }

    fn check_metric(&self, metric: MetricId, known: Lengths) -> Result<(), Damage> {
        ensure(metric.index() < known.metrics, "the metric of activations is missing")?;
        let same = self.activations.as_ref().is_none_or(|activations| activations.metric == metric);
        ensure(same, "it is of another metric than the activations before")
    }

    pub(crate) fn ports(
        &mut self,
        rows: Rows<Ports>,
        known: Lengths,
        budget: &mut Budget,
    ) -> Result<(), Damage> {
        state(&mut self.ports, rows, Ports::NAMES.len(), known, budget)
    }

    pub(crate) fn memory(
        &mut self,
        rows: Rows<NodeMemory>,
        known: Lengths,
        budget: &mut Budget,
    ) -> Result<(), Damage> {
        state(&mut self.memory, rows, 2, known, budget)
    }

    pub(crate) fn points(&mut self, points: Vec<Point>, known: Lengths) -> Result<(), Damage> {
        let fits = |point: &Point| {
            point.node.index() < known.nodes
                && point.thread.index() < known.threads
                && point.description.index() < known.strings
                && point.values.iter().all(|(metric, _)| metric.index() < known.metrics)
        };
        ensure(points.iter().all(fits), "a point refers to something missing")?;
        append(&mut self.points, points);
        Ok(())
    }

    /// Hands everything over. `threads` are all that the file has; those whose root was not read
    /// are not in the profile, nor are their points.
    pub(crate) fn finish(mut self, profile: &mut Profile, threads: &[Thread]) {
        let places = thread_places(profile.tree.len(), threads);
        self.points.retain_mut(|point| {
            let place = places[point.thread.index()];
            point.thread = place.map_or(point.thread, ThreadId::from_usize);
            place.is_some()
        });
        profile.activations = self.activations;
        profile.ports = self.ports;
        profile.memory = self.memory;
        profile.points = self.points;
    }
}

/// The place of each thread of a file in a profile of `nodes` nodes; nothing for those whose root was not read.
pub(super) fn thread_places(nodes: usize, threads: &[Thread]) -> Vec<Option<usize>> {
    let mut places = 0..;
    let place = |thread: &Thread| (thread.root.index() < nodes).then(|| places.next()).flatten();
    threads.iter().map(place).collect()
}

const MISSING_NODE: &str = "it names a node that is missing";

/// States rows anew. A row takes the room of `numbers` numbers.
fn state<T: Copy + Default + PartialEq>(
    table: &mut NodeTable<T>,
    rows: Rows<T>,
    numbers: usize,
    known: Lengths,
    budget: &mut Budget,
) -> Result<(), Damage> {
    let length = rows.iter().map(|(node, _)| node.index() + 1).max().unwrap_or(0);
    ensure(length <= known.nodes, MISSING_NODE)?;
    budget.numbers(length.saturating_sub(table.len()), numbers)?;
    let mut put = |(node, row): (NodeId, T)| *table.row(node) = row;
    rows.into_iter().for_each(&mut put);
    Ok(())
}
