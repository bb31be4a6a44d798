//! The contents of frames: a declaration for each kind, from which writing, reading, showing and describing follow.

mod column;
mod end;
mod entry;
mod meta;
mod row;
mod timeline;
mod tree;

use serde::{Serialize, Serializer};
use treering_profile::{
    ActivationStatistics, AddressCost, Arc, BasicBlock, BlockExecutions, BranchCount, CodeBytes, CodeLine,
    CodeSpace, EndedWaits, Function, Life, Line, LineCost, LostSamples, Mark, Module, NodeId, NodeMemory,
    PartialCount, Point, Ports, Process, SizeCost, Source, Thread, TimeCost, TranslatedBlock, Uncounted,
};

pub(crate) use end::{End, Totals};
pub(crate) use entry::{Entry, Frame, InMetric, Rows, Table, encode_in_metric, encode_rows, encode_table};
pub(crate) use meta::Meta;
pub(crate) use row::encode_strings;
pub(crate) use timeline::{Interval, TimelineHead, WaitEnd};
pub(crate) use tree::{Columns, Nodes, Values, encode_columns, encode_nodes};

use crate::trg::varint::Decoder;
use crate::trg::{Damage, Kind};

/// The version of the layout of every kind, so far.
pub(crate) const VERSION: u16 = 1;

/// Declares the content of every kind of frames but META, which is JSON.
macro_rules! contents {
    ($($kind:ident: $content:ty,)*) => {
        /// The decoded payload of a frame.
        #[derive(Debug)]
        pub(crate) enum Content {
            Meta(Box<Meta>),
            $($kind($content),)*
        }

        impl Content {
            fn decode(kind: Kind, payload: &[u8], room: u64) -> Result<Decoded, Damage> {
                let mut from = Decoder::within(payload, room);
                let content = match kind {
                    Kind::Meta => Self::Meta(Box::new(Meta::decode(payload, room)?)),
                    $(Kind::$kind => Self::$kind(<$content as Frame>::decode(&mut from)?),)*
                };
                let allocated = from.allocated();
                if kind != Kind::Meta {
                    from.end()?;
                }
                Ok(Decoded { content, allocated })
            }

            /// The payload as the page of the format describes it; nothing where the page has its own words.
            #[cfg(test)]
            fn described(kind: Kind) -> Option<String> {
                match kind {
                    Kind::Meta => None,
                    $(Kind::$kind => <$content as Frame>::described(),)*
                }
            }
        }

        impl Serialize for Content {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                match self {
                    Self::Meta(meta) => meta.serialize(to),
                    $(Self::$kind(content) => content.show(to),)*
                }
            }
        }
    };
}

contents! {
    Strings: Table<Box<str>>,
    Modules: Table<Module>,
    Functions: Table<Function>,
    Lines: Table<Line>,
    Processes: Table<Process>,
    Threads: Table<Thread>,
    Nodes: Nodes,
    Costs: Columns,
    Calls: Columns,
    LineCosts: Vec<LineCost>,
    Arcs: Vec<Arc>,
    Sources: Vec<Source>,
    Statistics: InMetric<(NodeId, ActivationStatistics)>,
    Ports: Rows<Ports>,
    Sizes: InMetric<SizeCost>,
    Points: Vec<Point>,
    Memory: Rows<NodeMemory>,
    CodeSpaces: Table<CodeSpace>,
    CodeBytes: Vec<CodeBytes>,
    Translated: Vec<TranslatedBlock>,
    Partials: Vec<PartialCount>,
    Blocks: Table<BasicBlock>,
    Executions: Vec<BlockExecutions>,
    Branches: Vec<BranchCount>,
    CodeLines: Vec<CodeLine>,
    Uncounted: Vec<Uncounted>,
    AddressCosts: Vec<AddressCost>,
    Timeline: Vec<TimelineHead>,
    TimeCosts: Vec<TimeCost>,
    Waits: Vec<Interval>,
    Lives: Vec<Life>,
    Marks: Vec<Mark>,
    LostSamples: Vec<LostSamples>,
    EndedWaits: Vec<EndedWaits>,
    Wakings: Vec<WaitEnd>,
    End: End,
}

/// A content, and how many bytes of memory its entries take. Those of the tree are not among them,
/// since they are counted when they become columns.
#[derive(Debug)]
pub(crate) struct Decoded {
    pub(crate) content: Content,
    pub(crate) allocated: u64,
}

impl Decoded {
    /// Decodes the payload of a frame of a known kind and version, within so many bytes of memory.
    pub(crate) fn from_payload(kind: Kind, payload: &[u8], room: u64) -> Result<Self, Damage> {
        Content::decode(kind, payload, room)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_describes_the_declared_fields() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/formats/trg.md");
        let page = std::fs::read_to_string(path).unwrap();
        for kind in Kind::ALL {
            let Some(described) = Content::described(kind) else { continue };
            let row = format!("| {} | {kind} | {described}", kind as u16);
            let found = page.lines().find_map(|line| line.strip_prefix(&row));
            assert!(
                found.is_some_and(|rest| rest.starts_with(" |") || rest.starts_with(". ")),
                "the page lacks: {row}"
            );
        }
    }
}
