//! The tables that nodes refer to: strings, modules, functions, lines, processes, threads, and
//! the texts of source files.

use treering_profile::{
    Function, FunctionKind, Line, Module, ModuleId, ModuleKind, NodeId, Process, ProcessId, RunId, Source,
    StatedAddress, StringId, Thread,
};

use crate::trg::Damage;
use crate::trg::varint::{Decoder, Encoder, narrow, text};

/// A piece of a table: entries `first`, `first + 1` and so on.
#[derive(Debug)]
pub(crate) struct Table<T> {
    pub(crate) first: u64,
    pub(crate) entries: Vec<T>,
}

fn begin(to: &mut Encoder, first: usize, count: usize) {
    to.number(first as u64);
    to.number(count as u64);
}

fn begun(from: &mut Decoder<'_>) -> Result<(u64, usize), Damage> {
    Ok((from.number()?, from.count()?))
}

pub(crate) fn encode_strings(to: &mut Encoder, first: usize, strings: &[&str]) {
    begin(to, first, strings.len());
    to.column(strings.iter().map(|text| text.len() as u64));
    for text in strings {
        to.raw(text.as_bytes());
    }
}

pub(crate) fn decode_strings(from: &mut Decoder<'_>) -> Result<Table<Box<str>>, Damage> {
    let (first, count) = begun(from)?;
    let lengths = from.column(count, narrow)?;
    from.rows::<Box<str>>(count)?;
    let texts = lengths.iter().map(|&length| {
        from.boxed(length as usize)?;
        Ok(text(from.raw(length as usize)?)?.into())
    });
    Ok(Table { first, entries: texts.collect::<Result<_, Damage>>()? })
}

pub(crate) fn encode_modules(to: &mut Encoder, first: usize, modules: &[Module]) {
    begin(to, first, modules.len());
    for module in modules {
        to.number(module.path.raw().into());
        to.byte(module.kind as u8);
        to.block(&module.build_id);
    }
}

pub(crate) fn decode_modules(from: &mut Decoder<'_>) -> Result<Table<Module>, Damage> {
    let (first, count) = begun(from)?;
    from.rows::<Module>(count)?;
    let module = |_| {
        let path = StringId::new(from.number32()?);
        let kind = ModuleKind::from_number(from.byte()?);
        let kind = kind.ok_or(Damage::Content("a module is of an unknown kind"))?;
        Ok(Module { path, build_id: from.block()?.into(), kind })
    };
    Ok(Table { first, entries: (0..count).map(module).collect::<Result<_, Damage>>()? })
}

/// Marks, beside the kind, a function whose address is known.
const HAS_ADDRESS: u64 = 0x80;

pub(crate) fn encode_functions(to: &mut Encoder, first: usize, functions: &[Function]) {
    begin(to, first, functions.len());
    to.column(functions.iter().map(|function| {
        let known = if function.address.is_some() { HAS_ADDRESS } else { 0 };
        function.kind as u64 | known
    }));
    to.delta_column(functions.iter().map(|function| function.name.raw().into()));
    to.delta_column(functions.iter().map(|function| function.linkage_name.raw().into()));
    to.column(
        functions.iter().map(|function| function.module.map_or(0, |module| u64::from(module.raw()) + 1)),
    );
    to.delta_column(functions.iter().map(|function| function.file.raw().into()));
    to.column(functions.iter().map(|function| function.line.into()));
    to.delta_column(functions.iter().map(|function| function.address.map_or(0, |address| address.0)));
}

pub(crate) fn decode_functions(from: &mut Decoder<'_>) -> Result<Table<Function>, Damage> {
    let (first, count) = begun(from)?;
    from.rows::<Function>(count)?;
    let kinds = from.column(count, Ok)?;
    let names = from.delta_column(count)?;
    let linkage_names = from.delta_column(count)?;
    let modules = from.column(count, Ok)?;
    let files = from.delta_column(count)?;
    let lines = from.column(count, narrow)?;
    let addresses = from.delta_column(count)?;
    let function = |at: usize| {
        let number = u8::try_from(kinds[at] & !HAS_ADDRESS).ok();
        let kind = number.and_then(FunctionKind::from_number);
        Ok(Function {
            name: StringId::new(narrow(names[at])?),
            linkage_name: StringId::new(narrow(linkage_names[at])?),
            module: modules[at].checked_sub(1).map(narrow).transpose()?.map(ModuleId::new),
            file: StringId::new(narrow(files[at])?),
            line: lines[at],
            address: (kinds[at] & HAS_ADDRESS != 0).then_some(StatedAddress(addresses[at])),
            kind: kind.ok_or(Damage::Content("a function is of an unknown kind"))?,
        })
    };
    Ok(Table { first, entries: (0..count).map(function).collect::<Result<_, Damage>>()? })
}

pub(crate) fn encode_lines(to: &mut Encoder, first: usize, lines: &[Line]) {
    begin(to, first, lines.len());
    to.delta_column(lines.iter().map(|line| line.file.raw().into()));
    to.delta_column(lines.iter().map(|line| line.line.into()));
}

pub(crate) fn decode_lines(from: &mut Decoder<'_>) -> Result<Table<Line>, Damage> {
    let (first, count) = begun(from)?;
    from.rows::<Line>(count)?;
    let files = from.delta_column(count)?;
    let numbers = from.delta_column(count)?;
    let line =
        |(&file, &line): (&u64, &u64)| Ok(Line { file: StringId::new(narrow(file)?), line: narrow(line)? });
    Ok(Table { first, entries: files.iter().zip(&numbers).map(line).collect::<Result<_, Damage>>()? })
}

pub(crate) fn encode_processes(to: &mut Encoder, first: usize, processes: &[Process]) {
    begin(to, first, processes.len());
    for process in processes {
        to.number(process.run.raw().into());
        to.number(process.pid.into());
        to.block(process.name.as_bytes());
    }
}

pub(crate) fn decode_processes(from: &mut Decoder<'_>) -> Result<Table<Process>, Damage> {
    let (first, count) = begun(from)?;
    from.rows::<Process>(count)?;
    let process = |_| {
        let run = RunId::new(from.number32()?);
        Ok(Process { run, pid: from.number32()?, name: from.text()?.to_owned() })
    };
    Ok(Table { first, entries: (0..count).map(process).collect::<Result<_, Damage>>()? })
}

pub(crate) fn encode_threads(to: &mut Encoder, first: usize, threads: &[Thread]) {
    begin(to, first, threads.len());
    for thread in threads {
        to.number(thread.process.raw().into());
        to.number(thread.tid.into());
        to.number(thread.root.raw().into());
        to.block(thread.name.as_bytes());
    }
}

pub(crate) fn decode_threads(from: &mut Decoder<'_>) -> Result<Table<Thread>, Damage> {
    let (first, count) = begun(from)?;
    from.rows::<Thread>(count)?;
    let thread = |_| {
        let process = ProcessId::new(from.number32()?);
        let tid = from.number32()?;
        let root = NodeId::new(from.number32()?);
        Ok(Thread { process, tid, name: from.text()?.to_owned(), root })
    };
    Ok(Table { first, entries: (0..count).map(thread).collect::<Result<_, Damage>>()? })
}

pub(crate) fn encode_sources(to: &mut Encoder, sources: &[Source]) {
    to.number(sources.len() as u64);
    for source in sources {
        to.number(source.file.raw().into());
        to.block(source.text.as_bytes());
    }
}

pub(crate) fn decode_sources(from: &mut Decoder<'_>) -> Result<Vec<Source>, Damage> {
    let count = from.count()?;
    from.rows::<Source>(count)?;
    let source = |_| {
        let file = StringId::new(from.number32()?);
        Ok(Source { file, text: from.text()?.into() })
    };
    (0..count).map(source).collect()
}
