//! The basic blocks of a function as JSON.

use serde::Serialize;
use treering_analysis::{BlockRow, BlockTable, Exit, InstructionRow};
use treering_profile::{CodeAddress, Profile};

use super::{Place, function_name, non_empty, place, text};
use crate::blocks::Disassemble;

#[derive(Serialize)]
struct BlockObject<'a> {
    address: String,
    executions: u64,
    instructions_executed: u64,
    taken: Option<u64>,
    not_taken: Option<u64>,
    signals: u64,
    instructions: Vec<InstructionObject<'a>>,
    exits: Vec<ExitObject<'a>>,
}

#[derive(Serialize)]
struct InstructionObject<'a> {
    address: String,
    length: u8,
    text: Option<String>,
    file: Option<&'a str>,
    line: Option<u32>,
}

#[derive(Serialize)]
struct ExitObject<'a> {
    kind: &'static str,
    target: Option<String>,
    function: Option<std::borrow::Cow<'a, str>>,
    count: u64,
}

/// The basic blocks of a function as JSON: `blocks` with their `instructions` and `exits`.
pub fn blocks_json(profile: &Profile, table: &BlockTable, disassemble: &mut Disassemble<'_>) -> String {
    #[derive(Serialize)]
    struct Document<'a> {
        view: &'static str,
        #[serde(flatten)]
        function: Place<'a>,
        instructions_executed: u64,
        run_instructions: u64,
        blocks: Vec<BlockObject<'a>>,
    }
    text(&Document {
        view: "blocks",
        function: place(profile, table.function),
        instructions_executed: table.instructions,
        run_instructions: table.run_instructions,
        blocks: table.blocks.iter().map(|row| block(profile, row, disassemble)).collect(),
    })
}

fn block<'a>(profile: &'a Profile, row: &BlockRow, disassemble: &mut Disassemble<'_>) -> BlockObject<'a> {
    let instructions = row.instructions.iter().map(|row| instruction(profile, row, disassemble));
    BlockObject {
        address: row.instructions.first().map_or_else(String::new, |first| address(first.at)),
        executions: row.executions,
        instructions_executed: row.instructions_executed(),
        taken: row.ways.map(|ways| ways.taken),
        not_taken: row.ways.map(|ways| ways.not_taken),
        signals: row.signals,
        instructions: instructions.collect(),
        exits: row.exits.iter().map(|row| exit(profile, row)).collect(),
    }
}

fn instruction<'a>(
    profile: &'a Profile,
    row: &InstructionRow,
    disassemble: &mut Disassemble<'_>,
) -> InstructionObject<'a> {
    let line = row.line.map(|line| profile.lines[line]);
    InstructionObject {
        address: address(row.at),
        length: row.length,
        text: disassemble(row.at, row.length),
        file: line.and_then(|line| non_empty(profile, line.file)),
        line: line.map(|line| line.line).filter(|&line| line > 0),
    }
}

fn exit<'a>(profile: &'a Profile, row: &Exit) -> ExitObject<'a> {
    ExitObject {
        kind: row.kind.as_str(),
        target: row.target.map(address),
        function: row.function.map(|function| function_name(profile, function)),
        count: row.count,
    }
}

/// Numbers in JSON are exact up to 2^53 only.
pub(super) fn address(at: CodeAddress) -> String {
    at.address.to_string()
}
