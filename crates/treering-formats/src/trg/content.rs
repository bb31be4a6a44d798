//! What the frames hold: for each kind, how it is written and how it is read.

mod code;
mod cost;
mod detail;
mod end;
mod meta;
mod table;
mod tree;

use treering_profile::{
    ActivationStatistics, AddressCost, Arc, Function, Line, LineCost, Module, NodeMemory, Point, Ports,
    Process, SizeCost, Source, Thread,
};

pub(crate) use code::{
    CodePart, encode_blocks, encode_branches, encode_bytes, encode_code_lines, encode_executions,
    encode_partials, encode_spaces, encode_translated, encode_uncounted,
};
pub(crate) use cost::{encode_address_costs, encode_arcs, encode_line_costs};
pub(crate) use detail::{
    InMetric, Rows, encode_memory, encode_points, encode_ports, encode_sizes, encode_statistics,
};
pub(crate) use end::{End, Totals};
pub(crate) use meta::Meta;
pub(crate) use table::{
    Table, encode_functions, encode_lines, encode_modules, encode_processes, encode_sources, encode_strings,
    encode_threads,
};
pub(crate) use tree::{Columns, Nodes, Values, encode_columns, encode_nodes};

use crate::trg::varint::Decoder;
use crate::trg::{Damage, Kind};

/// The version of the layout of every kind, so far.
pub(crate) const VERSION: u16 = 1;

/// The decoded payload of a frame.
#[derive(Debug)]
pub(crate) enum Content {
    Meta(Box<Meta>),
    Strings(Table<Box<str>>),
    Modules(Table<Module>),
    Functions(Table<Function>),
    Lines(Table<Line>),
    Processes(Table<Process>),
    Threads(Table<Thread>),
    Nodes(Nodes),
    Costs(Columns),
    Calls(Columns),
    LineCosts(Vec<LineCost>),
    AddressCosts(Vec<AddressCost>),
    Arcs(Vec<Arc>),
    Sources(Vec<Source>),
    Statistics(InMetric<Rows<ActivationStatistics>>),
    Ports(Rows<Ports>),
    Sizes(InMetric<Vec<SizeCost>>),
    Points(Vec<Point>),
    Memory(Rows<NodeMemory>),
    Code(CodePart),
    End(End),
}

/// A content, and how many bytes of memory its entries take. Those of the tree are not among them,
/// since they are counted when they become columns.
#[derive(Debug)]
pub(crate) struct Decoded {
    pub(crate) content: Content,
    pub(crate) kept: u64,
}

impl Decoded {
    /// Decodes the payload of a frame of a known kind and version, within so many bytes of memory.
    pub(crate) fn from_payload(kind: Kind, payload: &[u8], room: u64) -> Result<Self, Damage> {
        if kind == Kind::Meta {
            let content = Content::Meta(Box::new(Meta::decode(payload, room)?));
            return Ok(Self { content, kept: 0 });
        }
        let mut decoder = Decoder::within(payload, room);
        let content = Content::decode(kind, &mut decoder)?;
        let kept = decoder.kept();
        decoder.end()?;
        Ok(Self { content, kept })
    }
}

impl Content {
    fn decode(kind: Kind, from: &mut Decoder<'_>) -> Result<Self, Damage> {
        Ok(match kind {
            Kind::Strings => Self::Strings(table::decode_strings(from)?),
            Kind::Modules => Self::Modules(table::decode_modules(from)?),
            Kind::Functions => Self::Functions(table::decode_functions(from)?),
            Kind::Lines => Self::Lines(table::decode_lines(from)?),
            Kind::Processes => Self::Processes(table::decode_processes(from)?),
            Kind::Threads => Self::Threads(table::decode_threads(from)?),
            Kind::Nodes => Self::Nodes(tree::decode_nodes(from)?),
            Kind::Costs => Self::Costs(tree::decode_columns(from)?),
            Kind::Calls => Self::Calls(tree::decode_columns(from)?),
            Kind::LineCosts => Self::LineCosts(cost::decode_line_costs(from)?),
            Kind::AddressCosts => Self::AddressCosts(cost::decode_address_costs(from)?),
            Kind::Arcs => Self::Arcs(cost::decode_arcs(from)?),
            Kind::Sources => Self::Sources(table::decode_sources(from)?),
            Kind::Statistics => Self::Statistics(detail::decode_statistics(from)?),
            Kind::Ports => Self::Ports(detail::decode_ports(from)?),
            Kind::Sizes => Self::Sizes(detail::decode_sizes(from)?),
            Kind::Points => Self::Points(detail::decode_points(from)?),
            Kind::Memory => Self::Memory(detail::decode_memory(from)?),
            Kind::End => Self::End(End::decode(from)?),
            of_code => match CodePart::decode(of_code, from)? {
                Some(part) => Self::Code(part),
                None => return Err(Damage::Content("it is of a kind without a layout")),
            },
        })
    }
}
