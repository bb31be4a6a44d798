//! END: an index of all frames and totals to check them by.

use serde::{Serialize as _, Serializer};
use serde_json::{Value, json};
use treering_profile::Profile;

use super::entry::Frame;
use crate::trg::Damage;
use crate::trg::frame::HEADER;
use crate::trg::varint::{Decoder, Encoder, narrow};

/// The last four bytes of a finished file. Before them stands the length of the END frame in
/// four bytes, so that it can be found from the end. END is never compressed.
const TRAILER: [u8; 4] = *b"trg.";

/// The content of an END frame.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct End {
    /// The number of the kind of every frame before this one, and where it starts.
    pub(crate) frames: Vec<(u16, u64)>,
    pub(crate) totals: Totals,
}

/// The totals of all frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) strings: u64,
    pub(crate) modules: u64,
    pub(crate) functions: u64,
    pub(crate) lines: u64,
    pub(crate) threads: u64,
    pub(crate) nodes: u64,
    pub(crate) line_costs: u64,
    pub(crate) arcs: u64,
    /// The cost of the run in each metric.
    pub(crate) run_costs: Vec<u64>,
}

impl Totals {
    /// The totals of a profile. `line_costs` is how many entries were written, since those that
    /// agree may be joined on the way.
    pub(crate) fn of(profile: &Profile, line_costs: u64) -> Self {
        Self {
            strings: profile.strings.len() as u64,
            modules: profile.modules.len() as u64,
            functions: profile.functions.len() as u64,
            lines: profile.lines.len() as u64,
            threads: profile.threads.len() as u64,
            nodes: profile.tree.len() as u64,
            line_costs,
            arcs: profile.arcs.len() as u64,
            run_costs: profile
                .metrics()
                .map(|(metric, _)| run_cost(profile.tree.self_costs(metric)))
                .collect(),
        }
    }

    fn counts(&self) -> [u64; 8] {
        [
            self.strings,
            self.modules,
            self.functions,
            self.lines,
            self.threads,
            self.nodes,
            self.line_costs,
            self.arcs,
        ]
    }
}

/// Wraps rather than overflows: a sum over 2^64 is refused elsewhere, with words.
fn run_cost(costs: &[u64]) -> u64 {
    costs.iter().fold(0, |sum: u64, &cost| sum.wrapping_add(cost))
}

impl End {
    pub(crate) fn encode(&self, to: &mut Encoder) {
        to.column(self.totals.counts().into_iter());
        to.number(self.totals.run_costs.len() as u64);
        to.column(self.totals.run_costs.iter().copied());
        to.number(self.frames.len() as u64);
        to.column(self.frames.iter().map(|frame| frame.0.into()));
        to.delta_column(self.frames.iter().map(|frame| frame.1));
        let length = HEADER + to.bytes().len() + 8;
        to.raw(&(length as u32).to_le_bytes());
        to.raw(&TRAILER);
    }

    /// The END frame of a file that was finished, found from its end. It is read in its place
    /// again; this one only tells how much room to make.
    pub(crate) fn find(file: &[u8]) -> Option<Self> {
        let (rest, magic) = file.split_last_chunk()?;
        let (_, length) = rest.split_last_chunk()?;
        let start = file.len().checked_sub(u32::from_le_bytes(*length) as usize)?;
        let payload = file.get(start.checked_add(HEADER)?..)?;
        (*magic == TRAILER).then(|| <Self as Frame>::decode(&mut Decoder::new(payload)).ok()).flatten()
    }
}

impl Frame for End {
    fn decode(from: &mut Decoder<'_>) -> Result<Self, Damage> {
        let totals = Totals {
            strings: from.number()?,
            modules: from.number()?,
            functions: from.number()?,
            lines: from.number()?,
            threads: from.number()?,
            nodes: from.number()?,
            line_costs: from.number()?,
            arcs: from.number()?,
            run_costs: {
                let metrics = from.count()?;
                from.column(metrics, Ok)?
            },
        };
        let count = from.count()?;
        let kinds = from.column(count, |kind| Ok(narrow(kind)? as u16))?;
        let offsets = from.delta_column(count, Ok)?;
        from.raw(4)?;
        if from.raw(4)? != TRAILER {
            return Err(Damage::Content("it does not end with `trg.`"));
        }
        Ok(Self { frames: kinds.into_iter().zip(offsets).collect(), totals })
    }

    fn show<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let totals = &self.totals;
        json!({
            "strings": totals.strings, "modules": totals.modules, "functions": totals.functions,
            "lines": totals.lines, "threads": totals.threads, "nodes": totals.nodes,
            "line_costs": totals.line_costs, "arcs": totals.arcs, "run_costs": totals.run_costs,
            "frames": self.frames.iter().map(|(kind, offset)| json!([kind, offset])).collect::<Value>(),
        })
        .serialize(to)
    }
}
