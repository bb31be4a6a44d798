//! NODES, COSTS and CALLS: the calling context tree as columns.

use serde::ser::{Serialize, SerializeMap as _, Serializer};
use treering_profile::{FunctionId, Tree};

use super::column::{Column as _, Plain};
use super::entry::{Each, Frame, pair};
use crate::trg::Damage;
use crate::trg::varint::{Decoder, Encoder, narrow};

/// Marks a missing parent or call site, as in [`Tree`].
const NONE: u32 = u32::MAX;

/// Nodes `first`, `first + 1` and so on.
#[derive(Debug)]
pub(crate) struct Nodes {
    pub(crate) first: u64,
    pub(crate) parents: Vec<u32>,
    pub(crate) functions: Vec<FunctionId>,
    pub(crate) call_sites: Vec<u32>,
}

/// Writes the nodes of a range. A parent is stored as the distance back to it, 0 for none; a
/// call site as the line's index plus 1, 0 for none.
pub(crate) fn encode_nodes(to: &mut Encoder, range: std::ops::Range<usize>, tree: &Tree) {
    to.number(range.start as u64);
    to.number(range.len() as u64);
    let parents = tree.parent_column()[range.clone()].iter();
    to.column(
        parents.zip(range.clone()).map(
            |(&parent, node)| {
                if parent == NONE { 0 } else { node as u64 - u64::from(parent) }
            },
        ),
    );
    to.column(tree.function_column()[range.clone()].iter().map(|function| function.raw().into()));
    to.column(tree.call_site_column()[range].iter().map(|&line| line.wrapping_add(1).into()));
}

impl Frame for Nodes {
    fn decode(from: &mut Decoder<'_>) -> Result<Self, Damage> {
        let first = from.number()?;
        let count = from.count()?;
        if first.checked_add(count as u64).is_none_or(|end| end >= u64::from(NONE)) {
            return Err(Damage::Content("a node's index is over 32 bits"));
        }
        let mut node = first;
        let parents = from.column(count, |back| {
            let parent = node.checked_sub(back).ok_or(Damage::Content("a node's parent is missing"))?;
            node += 1;
            Ok(if back == 0 { NONE } else { parent as u32 })
        })?;
        let functions = Plain::decode(from, count)?;
        let call_sites = from.column(count, |line| narrow(line).map(|line| line.wrapping_sub(1)))?;
        Ok(Self { first, parents, functions, call_sites })
    }

    fn show<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let optional = |&stored: &u32| (stored != NONE).then_some(stored);
        let mut map = to.serialize_map(Some(4))?;
        map.serialize_entry("call_sites", &Each(&self.call_sites, optional))?;
        map.serialize_entry("first", &self.first)?;
        map.serialize_entry("functions", &Each(&self.functions, |function: &FunctionId| function.raw()))?;
        map.serialize_entry("parents", &Each(&self.parents, optional))?;
        map.end()
    }
}

/// Numbers to be added to those of nodes `first` to `first + count - 1`.
#[derive(Debug)]
pub(crate) struct Columns {
    pub(crate) first: u64,
    pub(crate) count: u64,
    /// For COSTS, each with the index of its metric; for CALLS, 0 are calls and 1 recursive ones.
    pub(crate) columns: Vec<(u32, Values)>,
}

/// The numbers of one column.
#[derive(Debug)]
pub(crate) enum Values {
    /// One for each node.
    Dense(Vec<u64>),
    /// The position after `first` of each node that has one, and the number.
    Sparse(Vec<(u32, u64)>),
}

const DENSE: u8 = 0;
const SPARSE: u8 = 1;

/// Writes by how much `columns` exceed `before` in a range of nodes; nothing, and false, if
/// nowhere. A column that is missing in `before`, or too short, counts as 0 there.
///
/// The columns must be nowhere below `before`.
pub(crate) fn encode_columns(
    to: &mut Encoder,
    range: std::ops::Range<usize>,
    columns: &[&[u64]],
    before: &[Vec<u64>],
) -> bool {
    to.number(range.start as u64);
    to.number(range.len() as u64);
    let count = |before: Option<&[u64]>, now: &[u64]| grown(now, before).filter(|&by| by > 0).count();
    let now = columns.iter().map(|column| &column[range.clone()]);
    let before = |at: usize| {
        let column = before.get(at)?;
        Some(&column[range.start.min(column.len())..range.end.min(column.len())])
    };
    let filled: Vec<_> = now.enumerate().map(|(at, now)| (at, now, count(before(at), now))).collect();
    let changed = filled.iter().filter(|(_, _, filled)| *filled > 0);
    to.number(changed.clone().count() as u64);
    for &(at, now, filled) in changed {
        to.number(at as u64);
        if filled * 2 > range.len() {
            to.byte(DENSE);
            to.column(grown(now, before(at)));
        } else {
            to.byte(SPARSE);
            encode_sparse(to, filled, grown(now, before(at)));
        }
    }
    filled.iter().any(|(_, _, filled)| *filled > 0)
}

fn grown<'a>(now: &'a [u64], before: Option<&'a [u64]>) -> impl Iterator<Item = u64> + 'a {
    let before = before.unwrap_or_default();
    now.iter().enumerate().map(|(at, &now)| now - before.get(at).copied().unwrap_or(0))
}

/// Writes the distances between filled places, then what is there.
fn encode_sparse(to: &mut Encoder, filled: usize, values: impl Iterator<Item = u64>) {
    let filled_values: Vec<_> = values.enumerate().filter(|(_, value)| *value > 0).collect();
    to.number(filled as u64);
    let mut next = 0;
    for &(at, _) in &filled_values {
        to.number((at - next) as u64);
        next = at + 1;
    }
    to.column(filled_values.iter().map(|(_, value)| *value));
}

impl Frame for Columns {
    fn decode(from: &mut Decoder<'_>) -> Result<Self, Damage> {
        let (first, count) = (from.number()?, from.number()?);
        let columns = from.count()?;
        let column = |_| {
            let index = from.number32()?;
            let values = match from.byte()? {
                DENSE => Values::Dense(decode_dense(from, count)?),
                SPARSE => Values::Sparse(decode_sparse(from, count)?),
                _ => return Err(Damage::Content("a column is stored in an unknown way")),
            };
            Ok((index, values))
        };
        Ok(Self { first, count, columns: (0..columns).map(column).collect::<Result<_, Damage>>()? })
    }

    fn show<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(Some(3))?;
        let all: Vec<_> = self.columns.iter().map(ShownColumn).collect();
        map.serialize_entry("columns", &all)?;
        map.serialize_entry("count", &self.count)?;
        map.serialize_entry("first", &self.first)?;
        map.end()
    }
}

struct ShownColumn<'a>(&'a (u32, Values));

impl Serialize for ShownColumn<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            (index, Values::Dense(values)) => pair(to, ("column", index), ("dense", values)),
            (index, Values::Sparse(values)) => pair(to, ("column", index), ("sparse", values)),
        }
    }
}

fn decode_dense(from: &mut Decoder<'_>, count: u64) -> Result<Vec<u64>, Damage> {
    let count = usize::try_from(count).map_err(|_| Damage::Content("a column is too long"))?;
    from.column(count, Ok)
}

fn decode_sparse(from: &mut Decoder<'_>, count: u64) -> Result<Vec<(u32, u64)>, Damage> {
    let filled = from.count()?;
    let mut next = 0_u64;
    from.scratch::<(u32, u64)>(filled)?;
    let places = from.column(filled, |gap| {
        let at = next.checked_add(gap).filter(|&at| at < count);
        let at = at.ok_or(Damage::Content("a cost belongs to no node"))?;
        next = at + 1;
        narrow(at)
    })?;
    let values = from.column(filled, Ok)?;
    Ok(places.into_iter().zip(values).collect())
}
