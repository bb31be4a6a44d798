//! From records to measured costs.

use alloc::vec;
use alloc::vec::Vec;

use crate::{ActivationStatistics, Header, Node, Ref, Thread, View, flag, mode};

/// The trees of all threads with their costs, callers before callees.
#[derive(Clone, Debug, Default)]
pub struct Forest {
    /// The threads, oldest first.
    pub threads: Vec<ThreadTree>,
    /// The nodes of all, each thread's together, its root first.
    pub nodes: Vec<Measured>,
    /// Lines with the index of their node, by that.
    lines: Vec<(usize, crate::LineCost)>,
}

/// A thread and where its tree begins.
#[derive(Clone, Copy, Debug)]
pub struct ThreadTree {
    /// Where its record stands.
    pub place: Ref,
    /// The record.
    pub record: Thread,
    /// The index of its root in [`Forest::nodes`].
    pub root: usize,
    /// How many activations are open.
    pub open: u32,
}

/// A node with costs in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// Where its record stands.
    pub place: Ref,
    /// The index of its parent; nothing for a root.
    pub parent: Option<usize>,
    /// The record.
    pub record: Node,
    /// How many activations are open.
    pub open: u32,
    /// Time spent in it itself; an estimate where not all activations were timed.
    pub self_ns: u64,
    /// Time of its outermost activations; likewise.
    pub total_ns: u64,
    /// The shortest timed activation.
    pub least_ns: u64,
    /// The longest timed activation.
    pub greatest_ns: u64,
    /// The mean of the timed activations.
    pub mean_ns: f64,
    /// The sum of their squared differences from the mean.
    pub squares: f64,
    /// How many took less than twice the shortest until then, and came before no much shorter one.
    pub calm: u64,
    /// The time of those together.
    pub calm_total_ns: u64,
    /// Bytes that it allocated and that were not freed.
    pub live_bytes: u64,
    /// The most bytes that were there at any time.
    pub peak_bytes: u64,
    /// How often it exited, failed and so on: exits, redos, fails, exceptions, cuts. All 0 in
    /// programs that have no such ports.
    pub ports: [u64; 5],
    /// How often statements of its lines were run; 0 where lines were not recorded.
    pub line_hits: u64,
}

/// The measured cost of a line of a node's function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeasuredLine {
    /// The number of the line, from 1.
    pub line: u32,
    /// How often a statement of it was run.
    pub hits: u64,
    /// Time in its statements themselves. All of a node together are at most its self cost.
    pub self_ns: u64,
}

impl Forest {
    /// Works out the costs of everything in a file.
    ///
    /// `now` is the clock in ticks where it is known; activations that are open count up to then,
    /// otherwise up to the last event of all.
    pub fn of(view: &View<'_>, now: Option<u64>) -> Self {
        let mut forest = Self::default();
        let mut threads: Vec<_> = view.threads().collect();
        threads.reverse();
        let end = end_of(view, &threads, now);
        let mut seen = vec![false; view.units()];
        for (place, record) in threads {
            let root = forest.nodes.len();
            forest.add_tree(view, record.root, &mut seen);
            if forest.nodes.len() == root {
                continue;
            }
            let open = forest.add_open(view, &record, root, end);
            forest.threads.push(ThreadTree { place, record, root, open });
        }
        forest.finish(view.header());
        forest
    }

    /// The clock at the last event of a file, or when recording was switched off.
    pub fn end_of(view: &View<'_>) -> u64 {
        end_of(view, &view.threads().collect::<Vec<_>>(), None)
    }

    /// Adds the nodes of a thread; their totals are in ticks until [`finish`](Self::finish).
    fn add_tree(&mut self, view: &View<'_>, root: Ref, seen: &mut [bool]) {
        let mut left = vec![(root, None)];
        while let Some((place, parent)) = left.pop() {
            let fresh = seen.get_mut(place as usize).is_some_and(|seen| !core::mem::replace(seen, true));
            let Some(record) = view.node(place).filter(|_| fresh) else { continue };
            let index = self.nodes.len();
            let line_hits = self.add_lines(view, index, &record, seen);
            self.nodes.push(Measured { line_hits, ..Measured::new(place, parent, record) });
            // Newest first, so that the oldest is taken next.
            left.extend(view.children(&record).map(|(child, _)| (child, Some(index))));
        }
    }

    /// Adds the lines of a node; how often they were run together. A record counts once, whatever a
    /// damaged file says.
    fn add_lines(&mut self, view: &View<'_>, node: usize, record: &Node, seen: &mut [bool]) -> u64 {
        let mut hits = 0_u64;
        for (place, line) in view.lines(record) {
            let fresh = seen.get_mut(place as usize).is_some_and(|seen| !core::mem::replace(seen, true));
            if !fresh {
                break;
            }
            hits = hits.saturating_add(line.hits);
            self.lines.push((node, line));
        }
        hits
    }

    /// The costs of a node's lines, by number; `node` is its index. All together cost at most the node's
    /// self cost.
    pub fn lines(&self, node: usize, header: &Header) -> Vec<MeasuredLine> {
        let start = self.lines.partition_point(|(of, _)| *of < node);
        let rows = self.lines[start..].iter().take_while(|(of, _)| *of == node);
        let mut lines: Vec<MeasuredLine> =
            rows.map(|(_, record)| MeasuredLine::new(record, header.ns_per_tick)).collect();
        lines.sort_by_key(|line| line.line);
        let mut left = self.nodes.get(node).map_or(0, |node| node.self_ns);
        for line in &mut lines {
            line.self_ns = line.self_ns.min(left);
            left -= line.self_ns;
        }
        lines
    }

    /// Adds the time that the open activations of a thread have taken so far; returns their number.
    fn add_open(&mut self, view: &View<'_>, thread: &Thread, root: usize, end: u64) -> u32 {
        let depth = view.depth(thread);
        let by_place: alloc::collections::BTreeMap<Ref, usize> =
            self.nodes[root..].iter().enumerate().map(|(at, node)| (node.place, root + at)).collect();
        let mut inner_start = end;
        for index in (1..=depth).rev() {
            let Some(activation) = view.activation(thread, index) else { continue };
            let Some(&node) = by_place.get(&view.node_of(&activation)) else { continue };
            let node = &mut self.nodes[node];
            node.open += 1;
            // One that was just being entered has no time yet.
            if activation.flags & flag::UNTIMED != 0 || activation.start == 0 {
                continue;
            }
            let taken = end.saturating_sub(activation.start);
            if activation.flags & flag::INNER == 0 {
                node.total_ns = node.total_ns.saturating_add(taken);
            }
            let made = activation.children.saturating_add(end.saturating_sub(inner_start));
            node.self_ns = node.self_ns.saturating_add(taken.saturating_sub(made));
            inner_start = activation.start;
        }
        depth
    }

    /// Turns ticks into nanoseconds, and totals into self costs.
    fn finish(&mut self, header: &Header) {
        let is_flat = header.mode == mode::FLAT;
        self.nodes.iter_mut().for_each(Measured::scale_up);
        let mut children = vec![0_u64; self.nodes.len()];
        for at in 0..self.nodes.len() {
            if let Some(parent) = self.nodes[at].parent {
                children[parent] = children[parent].saturating_add(self.nodes[at].total_ns);
            }
        }
        let has_ports = self.nodes.iter().any(|node| node.record.has_ports());
        for (node, children) in self.nodes.iter_mut().zip(children) {
            node.self_ns = match (node.parent, is_flat) {
                (None, _) => 0,
                (_, true) => node.record.self_total.saturating_add(node.self_ns),
                _ => node.total_ns.saturating_sub(children),
            };
            node.turn_into_nanoseconds(header.ns_per_tick);
            if has_ports && node.parent.is_some() {
                node.ports = node.record.ports(node.open, header.flags & flag::EXITS != 0);
            }
        }
    }
}

impl MeasuredLine {
    fn new(record: &crate::LineCost, ns_per_tick: f64) -> Self {
        let self_ns = round(record.self_ticks as f64 * ns_per_tick);
        Self { line: record.line, hits: record.hits, self_ns }
    }
}

impl Measured {
    fn new(place: Ref, parent: Option<usize>, record: Node) -> Self {
        let live = record.live.max(0) as u64;
        Self {
            place,
            parent,
            record,
            open: 0,
            self_ns: 0,
            total_ns: record.total,
            least_ns: if record.timed == 0 { 0 } else { record.least },
            greatest_ns: record.greatest,
            mean_ns: 0.0,
            squares: 0.0,
            calm: record.timed.saturating_sub(record.restless),
            calm_total_ns: record.timed_ticks().saturating_sub(record.restless_total),
            live_bytes: live.saturating_sub(record.freed_elsewhere),
            peak_bytes: record.peak.max(0) as u64,
            ports: [0; 5],
            line_hits: 0,
        }
    }

    /// Statistics of its activations, in nanoseconds.
    pub fn statistics(&self) -> ActivationStatistics {
        ActivationStatistics {
            timed: self.record.timed,
            total: self.total_ns,
            least: self.least_ns,
            greatest: self.greatest_ns,
            mean: self.mean_ns,
            squares: self.squares,
            calm: self.calm,
            calm_total: self.calm_total_ns,
        }
    }

    /// Whether only some of the activations were timed, so that the times are estimates.
    pub fn is_estimate(&self) -> bool {
        self.record.threshold != u32::MAX
            && self.record.threshold != 0
            && self.record.timed < self.record.calls
    }

    /// Where one of N was timed, takes those that were for all.
    fn scale_up(&mut self) {
        let Node { calls, recursive, redos, timed, timed_inner, .. } = self.record;
        let entered = calls.saturating_add(redos);
        let (outermost, timed) = (entered.saturating_sub(recursive), timed.saturating_sub(timed_inner));
        if self.is_estimate() && timed > 0 {
            let scaled = u128::from(self.total_ns) * u128::from(outermost) / u128::from(timed);
            self.total_ns = u64::try_from(scaled).unwrap_or(u64::MAX);
        }
    }

    fn turn_into_nanoseconds(&mut self, ns_per_tick: f64) {
        let ns = |ticks: u64| round(ticks as f64 * ns_per_tick);
        let count = self.record.timed;
        if count > 0 {
            let deviations = self.record.deviations();
            let shift = deviations / count as f64;
            let mean = (self.record.first as f64 + shift).max(0.0);
            let squares = (self.record.squares - shift * deviations).max(0.0);
            self.mean_ns = finite(mean * ns_per_tick);
            self.squares = finite(squares * ns_per_tick * ns_per_tick);
        }
        self.self_ns = ns(self.self_ns);
        self.total_ns = ns(self.total_ns);
        self.least_ns = ns(self.least_ns);
        self.greatest_ns = ns(self.greatest_ns).max(self.least_ns);
        self.calm_total_ns = ns(self.calm_total_ns);
    }
}

/// Rounds to the nearest whole number; 0 for a negative number, and for one that is no number.
fn round(number: f64) -> u64 {
    (number + 0.5) as u64
}

fn finite(number: f64) -> f64 {
    if number.is_finite() { number } else { 0.0 }
}

impl Node {
    /// Ticks of all activations that were timed, inner ones as well.
    fn timed_ticks(&self) -> u64 {
        self.total.wrapping_add(self.besides)
    }

    /// The sum of the differences of all timed activations from the first one.
    fn deviations(&self) -> f64 {
        // A damaged file may hold any numbers.
        let as_long_as_first = i128::from(self.first).saturating_mul(i128::from(self.timed));
        i128::from(self.timed_ticks()).saturating_sub(as_long_as_first) as f64
    }

    fn has_ports(&self) -> bool {
        self.exits | self.redos | self.fails | self.exceptions | self.cuts != 0
    }

    /// Exits, redos, fails, exceptions, cuts. Where exits are not counted, every call that neither failed
    /// nor threw nor is open counts as an exit.
    fn ports(&self, open: u32, counts_exits: bool) -> [u64; 5] {
        let entered = self.calls.saturating_add(self.redos);
        let otherwise = self.fails.saturating_add(self.exceptions).saturating_add(u64::from(open));
        let exits = if counts_exits { self.exits } else { entered.saturating_sub(otherwise) };
        [exits, self.redos, self.fails, self.exceptions, self.cuts]
    }
}

/// The moment up to which open activations count.
fn end_of(view: &View<'_>, threads: &[(Ref, Thread)], now: Option<u64>) -> u64 {
    let header = view.header();
    if header.off_ticks != 0 {
        return header.off_ticks;
    }
    let last_event = |thread: &Thread| {
        let starts = (1..=view.depth(thread)).filter_map(|index| view.activation(thread, index));
        let last_start = starts.map(|activation| activation.start).max().unwrap_or(0);
        thread.last_ticks.max(thread.end_ticks).max(last_start)
    };
    let known = threads.iter().map(|(_, thread)| last_event(thread)).max().unwrap_or(0);
    now.unwrap_or_else(|| known.max(header.last_ticks))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The record of a node after 100, 150, 90, 185, 1000 and 95 ticks, of which the second, fourth and
    /// last were inner, and of 7 ticks of an activation that was counted elsewhere.
    fn record() -> Node {
        Node {
            timed: 6,
            timed_inner: 3,
            total: 1197,
            besides: 423,
            first: 100,
            squares: 819_850.0,
            restless: 2,
            restless_total: 1185,
            ..Node::default()
        }
    }

    #[test]
    fn mean_deviation_and_calm_activations_follow_from_the_fields_of_a_node() {
        let mut node = Measured::new(1, None, record());
        node.turn_into_nanoseconds(1.0);
        let ticks = [100.0, 150.0, 90.0, 185.0, 1000.0, 95.0];
        assert_eq!(node.mean_ns, 270.0);
        assert_eq!(node.squares, ticks.iter().map(|ticks| (ticks - 270.0) * (ticks - 270.0)).sum::<f64>());
        assert_eq!((node.calm, node.calm_total_ns), (4, 435));
    }

    #[test]
    fn numbers_that_no_writer_leaves_give_some_result() {
        let most = Node { first: u64::MAX, timed: u64::MAX, besides: 1, total: u64::MAX, ..record() };
        let mut node = Measured::new(1, None, most);
        node.turn_into_nanoseconds(1.0);
        assert!(node.mean_ns.is_finite() && node.squares.is_finite());
    }
}
