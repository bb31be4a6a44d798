//! CODE_SPACES, CODE_BYTES, TRANSLATED, PARTIALS, BLOCKS, EXECUTIONS, BRANCHES, CODE_LINES and
//! UNCOUNTED: what code did, by address.

use treering_profile::{
    BasicBlock, BlockExecutions, BlockId, BranchCount, BranchKind, CodeAddress, CodeBytes, CodeLine,
    CodeSpace, CodeSpaceId, FunctionId, LineId, ModuleId, PartialCount, ProcessId, StatedAddress, StringId,
    ThreadId, TranslatedBlock, Uncounted, UncountedReason,
};

use super::Table;
use crate::trg::varint::{Decoder, Encoder, narrow};
use crate::trg::{Damage, Kind};

/// What a frame says of code.
#[derive(Debug)]
pub(crate) enum CodePart {
    Spaces(Table<CodeSpace>),
    Bytes(Vec<CodeBytes>),
    Translated(Vec<TranslatedBlock>),
    Partials(Vec<PartialCount>),
    Blocks(Table<BasicBlock>),
    Executions(Vec<BlockExecutions>),
    Branches(Vec<BranchCount>),
    Lines(Vec<CodeLine>),
    Uncounted(Vec<Uncounted>),
}

impl CodePart {
    /// Decodes a frame of one of these kinds; nothing for another kind.
    pub(crate) fn decode(kind: Kind, from: &mut Decoder<'_>) -> Result<Option<Self>, Damage> {
        Ok(Some(match kind {
            Kind::CodeSpaces => Self::Spaces(decode_spaces(from)?),
            Kind::CodeBytes => Self::Bytes(decode_bytes(from)?),
            Kind::Translated => Self::Translated(decode_translated(from)?),
            Kind::Partials => Self::Partials(decode_partials(from)?),
            Kind::Blocks => Self::Blocks(decode_blocks(from)?),
            Kind::Executions => Self::Executions(decode_executions(from)?),
            Kind::Branches => Self::Branches(decode_branches(from)?),
            Kind::CodeLines => Self::Lines(decode_lines(from)?),
            Kind::Uncounted => Self::Uncounted(decode_uncounted(from)?),
            _ => return Ok(None),
        }))
    }
}

/// An index and one, or 0 for none.
fn one_more(index: Option<u32>) -> u64 {
    index.map_or(0, |index| u64::from(index) + 1)
}

fn one_less(stored: u64) -> Result<Option<u32>, Damage> {
    stored.checked_sub(1).map(narrow).transpose()
}

fn encode_places<'a, T: 'a>(
    to: &mut Encoder,
    rows: impl Iterator<Item = &'a T> + Clone,
    place: fn(&T) -> CodeAddress,
) {
    to.delta_column(rows.clone().map(|row| place(row).space.raw().into()));
    to.delta_column(rows.map(|row| place(row).address.0));
}

fn decode_places(from: &mut Decoder<'_>, count: usize) -> Result<Vec<CodeAddress>, Damage> {
    let spaces = from.delta_column(count)?;
    let addresses = from.delta_column(count)?;
    from.scratch::<CodeAddress>(count)?;
    let place = |(space, address)| {
        Ok(CodeAddress { space: CodeSpaceId::new(narrow(space)?), address: StatedAddress(address) })
    };
    spaces.into_iter().zip(addresses).map(place).collect()
}

fn encode_optional_places(to: &mut Encoder, places: impl Iterator<Item = Option<CodeAddress>> + Clone) {
    to.delta_column(places.clone().map(|place| one_more(place.map(|place| place.space.raw()))));
    to.delta_column(places.map(|place| place.map_or(0, |place| place.address.0)));
}

fn decode_optional_places(from: &mut Decoder<'_>, count: usize) -> Result<Vec<Option<CodeAddress>>, Damage> {
    let spaces = from.delta_column(count)?;
    let addresses = from.delta_column(count)?;
    from.scratch::<Option<CodeAddress>>(count)?;
    let place = |(space, address)| {
        let space = one_less(space)?.map(CodeSpaceId::new);
        Ok(space.map(|space| CodeAddress { space, address: StatedAddress(address) }))
    };
    spaces.into_iter().zip(addresses).map(place).collect()
}

fn decode_threads(from: &mut Decoder<'_>, count: usize) -> Result<Vec<ThreadId>, Damage> {
    from.delta_column(count)?.into_iter().map(|thread| narrow(thread).map(ThreadId::new)).collect()
}

pub(crate) fn encode_spaces(to: &mut Encoder, first: usize, spaces: &[CodeSpace]) {
    to.number(first as u64);
    to.number(spaces.len() as u64);
    to.column(spaces.iter().map(|space| one_more(space.module.map(ModuleId::raw))));
    to.column(spaces.iter().map(|space| space.generation.into()));
}

fn decode_spaces(from: &mut Decoder<'_>) -> Result<Table<CodeSpace>, Damage> {
    let first = from.number()?;
    let count = from.count()?;
    from.rows::<CodeSpace>(count)?;
    let modules = from.column(count, one_less)?;
    let generations = from.column(count, narrow)?;
    let space = |(module, generation): (Option<u32>, u32)| CodeSpace {
        module: module.map(ModuleId::new),
        generation,
    };
    Ok(Table { first, entries: modules.into_iter().zip(generations).map(space).collect() })
}

pub(crate) fn encode_bytes(to: &mut Encoder, rows: &[CodeBytes]) {
    to.number(rows.len() as u64);
    encode_places(to, rows.iter(), |row| row.start);
    rows.iter().for_each(|row| to.block(&row.bytes));
}

fn decode_bytes(from: &mut Decoder<'_>) -> Result<Vec<CodeBytes>, Damage> {
    let count = from.count()?;
    from.rows::<CodeBytes>(count)?;
    let starts = decode_places(from, count)?;
    let row = |start| Ok(CodeBytes { start, bytes: from.block()?.into() });
    starts.into_iter().map(row).collect()
}

pub(crate) fn encode_translated(to: &mut Encoder, rows: &[TranslatedBlock]) {
    to.number(rows.len() as u64);
    to.delta_column(rows.iter().map(|row| row.thread.raw().into()));
    encode_places(to, rows.iter(), |row| row.start);
    to.column(rows.iter().map(|row| row.length.into()));
    to.column(rows.iter().map(|row| row.instructions.into()));
    to.column(rows.iter().map(|row| row.executions));
}

fn decode_translated(from: &mut Decoder<'_>) -> Result<Vec<TranslatedBlock>, Damage> {
    let count = from.count()?;
    from.rows::<TranslatedBlock>(count)?;
    let threads = decode_threads(from, count)?;
    let starts = decode_places(from, count)?;
    let lengths = from.column(count, narrow)?;
    let instructions = from.column(count, narrow)?;
    let executions = from.column(count, Ok)?;
    let row = |at: usize| TranslatedBlock {
        thread: threads[at],
        start: starts[at],
        length: lengths[at],
        instructions: instructions[at],
        executions: executions[at],
    };
    Ok((0..count).map(row).collect())
}

pub(crate) fn encode_partials(to: &mut Encoder, rows: &[PartialCount]) {
    to.number(rows.len() as u64);
    to.delta_column(rows.iter().map(|row| row.thread.raw().into()));
    encode_places(to, rows.iter(), |row| row.start);
    to.column(rows.iter().map(|row| row.length.into()));
    to.column(rows.iter().map(|row| row.instructions.into()));
    to.delta_column(rows.iter().map(|row| row.executions.cast_unsigned()));
}

fn decode_partials(from: &mut Decoder<'_>) -> Result<Vec<PartialCount>, Damage> {
    let count = from.count()?;
    from.rows::<PartialCount>(count)?;
    let threads = decode_threads(from, count)?;
    let starts = decode_places(from, count)?;
    let lengths = from.column(count, narrow)?;
    let instructions = from.column(count, narrow)?;
    let executions = from.delta_column(count)?;
    let row = |at: usize| PartialCount {
        thread: threads[at],
        start: starts[at],
        length: lengths[at],
        instructions: instructions[at],
        executions: executions[at].cast_signed(),
    };
    Ok((0..count).map(row).collect())
}

pub(crate) fn encode_blocks(to: &mut Encoder, first: usize, blocks: &[BasicBlock]) {
    to.number(first as u64);
    to.number(blocks.len() as u64);
    encode_places(to, blocks.iter(), |block| block.start);
    to.delta_column(blocks.iter().map(|block| one_more(block.function.map(FunctionId::raw))));
    blocks.iter().for_each(|block| to.block(&block.lengths));
}

fn decode_blocks(from: &mut Decoder<'_>) -> Result<Table<BasicBlock>, Damage> {
    let first = from.number()?;
    let count = from.count()?;
    from.rows::<BasicBlock>(count)?;
    let starts = decode_places(from, count)?;
    let functions = from.delta_column(count)?;
    let block = |(start, function)| -> Result<_, Damage> {
        let function = one_less(function)?.map(FunctionId::new);
        Ok(BasicBlock { start, lengths: from.block()?.into(), function })
    };
    Ok(Table { first, entries: starts.into_iter().zip(functions).map(block).collect::<Result<_, _>>()? })
}

pub(crate) fn encode_executions(to: &mut Encoder, rows: &[BlockExecutions]) {
    to.number(rows.len() as u64);
    to.delta_column(rows.iter().map(|row| row.thread.raw().into()));
    to.delta_column(rows.iter().map(|row| row.block.raw().into()));
    to.column(rows.iter().map(|row| row.executions));
}

fn decode_executions(from: &mut Decoder<'_>) -> Result<Vec<BlockExecutions>, Damage> {
    let count = from.count()?;
    from.rows::<BlockExecutions>(count)?;
    let threads = decode_threads(from, count)?;
    let blocks = from.delta_column(count)?;
    let executions = from.column(count, Ok)?;
    let row = |at: usize| {
        let block = BlockId::new(narrow(blocks[at])?);
        Ok(BlockExecutions { thread: threads[at], block, executions: executions[at] })
    };
    (0..count).map(row).collect()
}

pub(crate) fn encode_branches(to: &mut Encoder, rows: &[BranchCount]) {
    to.number(rows.len() as u64);
    to.delta_column(rows.iter().map(|row| row.thread.raw().into()));
    rows.iter().for_each(|row| to.byte(row.kind as u8));
    encode_optional_places(to, rows.iter().map(|row| row.site));
    encode_optional_places(to, rows.iter().map(|row| row.target));
    to.column(rows.iter().map(|row| row.count));
}

fn decode_branches(from: &mut Decoder<'_>) -> Result<Vec<BranchCount>, Damage> {
    let count = from.count()?;
    from.rows::<BranchCount>(count)?;
    let threads = decode_threads(from, count)?;
    let kinds = from.raw(count)?;
    let sites = decode_optional_places(from, count)?;
    let targets = decode_optional_places(from, count)?;
    let counts = from.column(count, Ok)?;
    let row = |at: usize| {
        let kind =
            BranchKind::from_number(kinds[at]).ok_or(Damage::Content("a kind of branch is unknown"))?;
        Ok(BranchCount { thread: threads[at], kind, site: sites[at], target: targets[at], count: counts[at] })
    };
    (0..count).map(row).collect()
}

pub(crate) fn encode_code_lines(to: &mut Encoder, rows: &[CodeLine]) {
    to.number(rows.len() as u64);
    encode_places(to, rows.iter(), |row| row.start);
    to.delta_column(rows.iter().map(|row| one_more(row.line.map(LineId::raw))));
}

fn decode_lines(from: &mut Decoder<'_>) -> Result<Vec<CodeLine>, Damage> {
    let count = from.count()?;
    from.rows::<CodeLine>(count)?;
    let starts = decode_places(from, count)?;
    let lines = from.delta_column(count)?;
    let row = |(start, line)| Ok(CodeLine { start, line: one_less(line)?.map(LineId::new) });
    starts.into_iter().zip(lines).map(row).collect()
}

pub(crate) fn encode_uncounted(to: &mut Encoder, rows: &[Uncounted]) {
    to.number(rows.len() as u64);
    rows.iter().for_each(|row| to.byte(row.reason as u8));
    to.column(rows.iter().map(|row| one_more(row.process.map(ProcessId::raw))));
    to.column(rows.iter().map(|row| one_more(row.thread.map(ThreadId::raw))));
    encode_optional_places(to, rows.iter().map(|row| row.at));
    to.column(rows.iter().map(|row| row.detail.raw().into()));
}

fn decode_uncounted(from: &mut Decoder<'_>) -> Result<Vec<Uncounted>, Damage> {
    let count = from.count()?;
    from.rows::<Uncounted>(count)?;
    let reasons = from.raw(count)?;
    let processes = from.column(count, one_less)?;
    let threads = from.column(count, one_less)?;
    let places = decode_optional_places(from, count)?;
    let details = from.column(count, narrow)?;
    let row = |at: usize| {
        let reason = UncountedReason::from_number(reasons[at]);
        Ok(Uncounted {
            reason: reason.unwrap_or(UncountedReason::Other),
            process: processes[at].map(ProcessId::new),
            thread: threads[at].map(ThreadId::new),
            at: places[at],
            detail: StringId::new(details[at]),
        })
    };
    (0..count).map(row).collect()
}
