//! STATISTICS, PORTS, SIZES, POINTS and MEMORY: what is known beside the tree.

use treering_profile::{
    ActivationStatistics, MetricId, NodeId, NodeMemory, Point, Ports, SizeCost, StringId, ThreadId,
};

use crate::trg::Damage;
use crate::trg::varint::{Decoder, Encoder, narrow};

/// Nodes, each with what is stated of it.
pub(crate) type Rows<T> = Vec<(NodeId, T)>;

/// What is measured in one metric.
#[derive(Debug)]
pub(crate) struct InMetric<T> {
    pub(crate) metric: MetricId,
    pub(crate) rows: T,
}

/// A number of a row, to be written as a column.
type Number<T> = fn(&T) -> u64;

const STATISTICS: [Number<ActivationStatistics>; 6] = [
    |row| row.timed,
    |row| row.total,
    |row| row.least,
    |row| row.greatest,
    |row| row.calm,
    |row| row.calm_total,
];

fn encode_nodes<T>(to: &mut Encoder, rows: &[(NodeId, T)]) {
    to.number(rows.len() as u64);
    to.delta_column(rows.iter().map(|(node, _)| node.raw().into()));
}

fn decode_nodes(from: &mut Decoder<'_>) -> Result<Vec<NodeId>, Damage> {
    let count = from.count()?;
    from.delta_column(count)?.into_iter().map(|node| narrow(node).map(NodeId::new)).collect()
}

/// `N` columns of a number for each row.
fn decode_columns<const N: usize>(from: &mut Decoder<'_>, rows: usize) -> Result<[Vec<u64>; N], Damage> {
    let mut columns = [const { Vec::new() }; N];
    for column in &mut columns {
        *column = from.column(rows, Ok)?;
    }
    Ok(columns)
}

pub(crate) fn encode_statistics(to: &mut Encoder, metric: MetricId, rows: &[(NodeId, ActivationStatistics)]) {
    to.number(metric.raw().into());
    encode_nodes(to, rows);
    for number in STATISTICS {
        to.column(rows.iter().map(|(_, row)| number(row)));
    }
    rows.iter().for_each(|(_, row)| to.float(row.mean));
    rows.iter().for_each(|(_, row)| to.float(row.squares));
}

pub(crate) fn decode_statistics(
    from: &mut Decoder<'_>,
) -> Result<InMetric<Rows<ActivationStatistics>>, Damage> {
    let metric = MetricId::new(from.number32()?);
    let nodes = decode_nodes(from)?;
    from.scratch::<(NodeId, ActivationStatistics)>(nodes.len())?;
    let [timed, total, least, greatest, calm, calm_total] = decode_columns(from, nodes.len())?;
    let means = from.floats(nodes.len())?;
    let squares = from.floats(nodes.len())?;
    let row = |(at, node): (usize, NodeId)| {
        let statistics = ActivationStatistics {
            timed: timed[at],
            total: total[at],
            least: least[at],
            greatest: greatest[at],
            mean: means[at],
            squares: squares[at],
            calm: calm[at],
            calm_total: calm_total[at],
        };
        (node, statistics)
    };
    Ok(InMetric { metric, rows: nodes.into_iter().enumerate().map(row).collect() })
}

pub(crate) fn encode_ports(to: &mut Encoder, rows: &[(NodeId, Ports)]) {
    encode_nodes(to, rows);
    for port in 0..Ports::NAMES.len() {
        to.column(rows.iter().map(|(_, ports)| ports.counts()[port]));
    }
}

pub(crate) fn decode_ports(from: &mut Decoder<'_>) -> Result<Rows<Ports>, Damage> {
    let nodes = decode_nodes(from)?;
    from.scratch::<(NodeId, Ports)>(nodes.len())?;
    let columns: [Vec<u64>; Ports::NAMES.len()] = decode_columns(from, nodes.len())?;
    let ports = |at: usize| Ports::from_counts(std::array::from_fn(|port| columns[port][at]));
    Ok(nodes.into_iter().enumerate().map(|(at, node)| (node, ports(at))).collect())
}

pub(crate) fn encode_sizes(to: &mut Encoder, metric: MetricId, rows: &[SizeCost]) {
    to.number(metric.raw().into());
    to.number(rows.len() as u64);
    to.delta_column(rows.iter().map(|row| row.node.raw().into()));
    to.column(rows.iter().map(|row| row.bucket.into()));
    to.column(rows.iter().map(|row| row.calls));
    to.column(rows.iter().map(|row| row.total_cost));
}

pub(crate) fn decode_sizes(from: &mut Decoder<'_>) -> Result<InMetric<Vec<SizeCost>>, Damage> {
    let metric = MetricId::new(from.number32()?);
    let nodes = decode_nodes(from)?;
    from.rows::<SizeCost>(nodes.len())?;
    let buckets = from.column(nodes.len(), |bucket| {
        let bucket = u8::try_from(bucket).ok().filter(|&bucket| bucket < 64);
        bucket.ok_or(Damage::Content("an argument is larger than any can be"))
    })?;
    let [calls, total_costs] = decode_columns(from, nodes.len())?;
    let row = |(at, node): (usize, NodeId)| SizeCost {
        node,
        bucket: buckets[at],
        calls: calls[at],
        total_cost: total_costs[at],
    };
    Ok(InMetric { metric, rows: nodes.into_iter().enumerate().map(row).collect() })
}

pub(crate) fn encode_points(to: &mut Encoder, points: &[Point]) {
    to.number(points.len() as u64);
    to.delta_column(points.iter().map(|point| point.time_ns));
    to.delta_column(points.iter().map(|point| point.thread.raw().into()));
    to.delta_column(points.iter().map(|point| point.node.raw().into()));
    to.delta_column(points.iter().map(|point| point.description.raw().into()));
    to.column(points.iter().map(|point| point.values.len() as u64));
    let values = || points.iter().flat_map(|point| &point.values);
    to.column(values().map(|(metric, _)| metric.raw().into()));
    to.column(values().map(|(_, value)| *value));
}

pub(crate) fn decode_points(from: &mut Decoder<'_>) -> Result<Vec<Point>, Damage> {
    let count = from.count()?;
    from.rows::<Point>(count)?;
    let times = from.delta_column(count)?;
    let threads = from.delta_column(count)?;
    let nodes = from.delta_column(count)?;
    let descriptions = from.delta_column(count)?;
    let widths = from.column(count, narrow)?;
    let mut values = decode_values(from, &widths)?.into_iter();
    let point = |at: usize| {
        Ok(Point {
            time_ns: times[at],
            thread: ThreadId::new(narrow(threads[at])?),
            node: NodeId::new(narrow(nodes[at])?),
            description: StringId::new(narrow(descriptions[at])?),
            values: values.by_ref().take(widths[at] as usize).collect(),
        })
    };
    (0..count).map(point).collect()
}

/// The metrics of all values, then the values.
fn decode_values(from: &mut Decoder<'_>, widths: &[u32]) -> Result<Vec<(MetricId, u64)>, Damage> {
    let count: u64 = widths.iter().map(|&width| u64::from(width)).sum();
    let count = usize::try_from(count).map_err(|_| Damage::Content("points have too many values"))?;
    widths.iter().try_for_each(|&width| from.boxed(width as usize * size_of::<(MetricId, u64)>()))?;
    from.scratch::<(MetricId, u64)>(count)?;
    let metrics = from.column(count, |metric| narrow(metric).map(MetricId::new))?;
    Ok(metrics.into_iter().zip(from.column(count, Ok)?).collect())
}

pub(crate) fn encode_memory(to: &mut Encoder, rows: &[(NodeId, NodeMemory)]) {
    encode_nodes(to, rows);
    to.column(rows.iter().map(|(_, memory)| memory.live_bytes));
    to.column(rows.iter().map(|(_, memory)| memory.peak_bytes));
}

pub(crate) fn decode_memory(from: &mut Decoder<'_>) -> Result<Rows<NodeMemory>, Damage> {
    let nodes = decode_nodes(from)?;
    from.scratch::<(NodeId, NodeMemory)>(nodes.len())?;
    let [live, peak] = decode_columns(from, nodes.len())?;
    let memory = |at: usize| NodeMemory { live_bytes: live[at], peak_bytes: peak[at] };
    Ok(nodes.into_iter().enumerate().map(|(at, node)| (node, memory(at))).collect())
}
