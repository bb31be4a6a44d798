//! Source lines and what they cost.

use crate::{LineId, MetricId, NodeId, StringId};

/// A line of a source file. Lines are interned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Line {
    /// The path of the file, as the compiler recorded it.
    pub file: StringId,
    /// The number of the line, from 1; 0 when only the file is known.
    pub line: u32,
}

/// The part of a node's self cost that was spent on one source line.
///
/// The line costs of a node add up to at most its self cost; the rest has no known line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LineCost {
    /// The node whose self cost this is part of.
    pub node: NodeId,
    /// The line.
    pub line: LineId,
    /// The metric.
    pub metric: MetricId,
    /// The cost in the metric's unit.
    pub cost: u64,
}

/// The text of a source file as it was when the profile was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The path, equal to [`Line::file`] of its lines.
    pub file: StringId,
    /// The whole text.
    pub text: Box<str>,
}
