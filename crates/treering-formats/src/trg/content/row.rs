//! The entries of all frames that hold a list.

use std::marker::PhantomData;

use serde_json::{Value, json};
use treering_profile::{
    ActivationStatistics, AddressCost, Arc, BasicBlock, BlockExecutions, BranchCount, CodeBytes, CodeLine,
    CodeSpace, EndedWaits, Function, FunctionKind, Life, Line, LineCost, LostSamples, Mark, Module,
    NodeMemory, PartialCount, Point, Ports, Process, SizeCost, Source, StatedAddress, Thread, TimeCost,
    TranslatedBlock, Uncounted,
};

use super::column::{
    Block, Bucket, Bytes, Column, Delta, Float, Number as _, Numbers, Place, Plain, Text, Values,
};
use super::entry::{self, Entry, entry};
use crate::trg::Damage;
use crate::trg::varint::{CUT_SHORT, Decoder, Encoder, narrow, text};

entry!(Module: object, each { path: Plain, kind: Bytes, build_id: Block });
entry!(Line: list, columns { file: Delta, line: Delta });
entry!(Process: object, each { run: Plain, pid: Plain, name: Text });
entry!(Thread: object, each { process: Plain, tid: Plain, root: Plain, name: Text });
entry!(Source: object, each { file: Plain, text: Text });
entry!(LineCost: object, columns { node: Delta, line: Delta, metric: Plain, cost: Plain });
entry!(AddressCost: object, columns {
    thread: Delta, function: Delta, holder: Delta, address: Delta, line: Delta, metric: Plain, cost: Plain,
});
entry!(Arc: object, columns { caller: Delta, callee: Delta, call_site: Plain, calls: Plain, total_costs: Values });
entry!(ActivationStatistics: object, columns {
    timed: Plain, total: Plain, least: Plain, greatest: Plain, calm: Plain, calm_total: Plain, mean: Float, squares: Float,
});
entry!(Ports: list, columns { exits: Plain, redos: Plain, fails: Plain, exceptions: Plain, cuts: Plain });
entry!(SizeCost: object, columns { node: Delta, bucket: Bucket, calls: Plain, total_cost: Plain });
entry!(Point: object, columns { time_ns: Delta, thread: Delta, node: Delta, description: Delta, values: Values });
entry!(NodeMemory: object, columns { live_bytes: Plain as "live", peak_bytes: Plain as "peak" });
entry!(CodeSpace: object, columns { module: Plain, generation: Plain });
entry!(CodeBytes: object, columns { start: Place, bytes: Block });
entry!(TranslatedBlock: object, columns {
    thread: Delta, start: Place, length: Plain, instructions: Plain, executions: Plain,
});
entry!(PartialCount: object, columns {
    thread: Delta, start: Place, length: Plain, instructions: Plain, executions: Delta,
});
entry!(BasicBlock: object, columns { start: Place, function: Delta, lengths: Numbers });
entry!(BlockExecutions: list, columns { thread: Delta, block: Delta, executions: Plain });
entry!(BranchCount: object, columns { thread: Delta, kind: Bytes, site: Place, target: Place, count: Plain });
entry!(CodeLine: object, columns { start: Place, line: Delta });
entry!(Uncounted: object, columns { reason: Bytes, process: Plain, thread: Plain, at: Place, detail: Plain });
entry!(TimeCost: list, columns { slot: Delta, metric: Plain, node: Delta, line: Delta, amount: Plain });
entry!(Life: object, columns { thread: Delta, start_ns: Plain, end_ns: Plain });
entry!(Mark: object, columns {
    time_ns: Delta, end_ns: Plain, thread: Delta, kind: Bytes, name: Plain,
});
entry!(LostSamples: object, columns { time_ns: Delta, samples: Plain });
entry!(EndedWaits: object, columns {
    waiting: Delta, kind: Bytes, waker: Delta, waits: Plain, time_ns: Plain,
});

/// Marks, beside the kind, a function whose address is known.
const HAS_ADDRESS: u64 = 0x80;

impl Entry for Function {
    fn encode<'a>(to: &mut Encoder, functions: impl Iterator<Item = &'a Self> + Clone) {
        to.column(functions.clone().map(|function| {
            let known = if function.address.is_some() { HAS_ADDRESS } else { 0 };
            function.kind as u64 | known
        }));
        Delta::encode(to, functions.clone().map(|function| &function.name));
        Delta::encode(to, functions.clone().map(|function| &function.linkage_name));
        Plain::encode(to, functions.clone().map(|function| &function.module));
        Delta::encode(to, functions.clone().map(|function| &function.file));
        Plain::encode(to, functions.clone().map(|function| &function.line));
        to.delta_column(functions.map(|function| function.address.map_or(0, |address| address.0)));
    }

    fn decode(from: &mut Decoder<'_>, count: usize) -> Result<Vec<Self>, Damage> {
        let kinds = from.column(count, Ok)?;
        let (names, linkage_names) = (Delta::decode(from, count)?, Delta::decode(from, count)?);
        let (modules, files) = (Plain::decode(from, count)?, Delta::decode(from, count)?);
        let lines = Plain::decode(from, count)?;
        let addresses = from.delta_column(count, StatedAddress::of_stored)?;
        let function = |at: usize| {
            let number = u8::try_from(kinds[at] & !HAS_ADDRESS).ok();
            let kind = number.and_then(FunctionKind::from_number);
            Ok(Self {
                name: names[at],
                linkage_name: linkage_names[at],
                module: modules[at],
                file: files[at],
                line: lines[at],
                address: (kinds[at] & HAS_ADDRESS != 0).then_some(addresses[at]),
                kind: kind.ok_or(Damage::Content("a function is of an unknown kind"))?,
            })
        };
        (0..count).map(function).collect()
    }

    fn show(&self) -> Value {
        json!({
            "kind": self.kind.as_str(), "name": self.name.raw(), "linkage_name": self.linkage_name.raw(),
            "module": self.module.map(|module| module.raw()), "file": self.file.raw(), "line": self.line,
            "address": self.address,
        })
    }

    fn described() -> String {
        "columns: kind, plus 128 where the address is known, name (differences), linkage name (differences), module plus 1 \
         or 0, file (differences), line, address (differences)"
            .to_owned()
    }
}

/// Writes strings: [`Entry::encode`] for those that are borrowed.
pub(crate) fn encode_strings(to: &mut Encoder, first: usize, strings: &[&str]) {
    to.number(first as u64);
    to.number(strings.len() as u64);
    to.column(strings.iter().map(|text| text.len() as u64));
    strings.iter().for_each(|text| to.raw(text.as_bytes()));
}

impl Entry for Box<str> {
    fn encode<'a>(to: &mut Encoder, strings: impl Iterator<Item = &'a Self> + Clone) {
        to.column(strings.clone().map(|text| text.len() as u64));
        strings.for_each(|text| to.raw(text.as_bytes()));
    }

    fn decode(from: &mut Decoder<'_>, count: usize) -> Result<Vec<Self>, Damage> {
        let lengths = from.column(count, narrow)?;
        let string = |&length: &u32| {
            from.boxed(length as usize)?;
            Ok(text(from.raw(length as usize)?)?.into())
        };
        lengths.iter().map(string).collect()
    }

    fn show(&self) -> Value {
        json!(self)
    }

    fn described() -> String {
        "the lengths of all, then the bytes of all".to_owned()
    }
}
