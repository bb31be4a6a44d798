//! Basic blocks with their disassembly.

use serde_json::{Value, json};
use treering_analysis::{BlockRow, BlockTable};
use treering_profile::{CodeAddress, Profile};

use crate::columns::Columns;
use crate::functions::Functions;
use crate::lines::Lines;
use crate::page::Disassemble;

/// The most instructions that a page lists; the functions that executed most come first.
const MOST: usize = 200_000;

/// The blocks of the functions that executed most, and how many functions were left out. The blocks of each
/// function stand by themselves among `columns`, so that a page reads what it shows.
pub(crate) fn blocks(
    profile: &Profile,
    functions: &Functions,
    lines: &mut Lines,
    columns: &mut Columns,
    disassemble: &mut Disassemble<'_>,
) -> (Value, usize) {
    let mut tables = BlockTable::all(profile);
    tables.sort_by_key(|table| std::cmp::Reverse(table.instructions));
    let mut room = MOST;
    let mut left_out = 0;
    let mut rows = Vec::new();
    for table in &tables {
        let length: usize = table.blocks.iter().map(|block| block.instructions.len()).sum();
        let Some(number) = functions.known(table.function) else { continue };
        if length > room {
            left_out += 1;
            continue;
        }
        room -= length;
        let blocks: Vec<Value> =
            table.blocks.iter().map(|row| block(functions, lines, row, disassemble)).collect();
        let slab = columns.add_json_apart(&Value::Array(blocks));
        rows.push(json!({ "fn": number, "instructions": table.instructions, "slab": slab }));
    }
    (Value::Array(rows), left_out)
}

fn block(
    functions: &Functions,
    lines: &mut Lines,
    row: &BlockRow,
    disassemble: &mut Disassemble<'_>,
) -> Value {
    let instructions: Vec<Value> = row
        .instructions
        .iter()
        .map(|row| {
            json!({
                "address": address(row.at),
                "text": disassemble(row.at, row.length),
                "line": row.line.map_or(0, |line| lines.number(line) + 1),
            })
        })
        .collect();
    let exits: Vec<Value> = row
        .exits
        .iter()
        .map(|exit| {
            json!({
                "kind": exit.kind.as_str(),
                "target": exit.target.map(address),
                "fn": exit.function.and_then(|function| functions.known(function)),
                "count": exit.count,
            })
        })
        .collect();
    json!({
        "address": row.instructions.first().map_or_else(String::new, |first| address(first.at)),
        "executions": row.executions,
        "ways": row.ways.map(|ways| [ways.taken, ways.not_taken]),
        "signals": row.signals,
        "instructions": instructions,
        "exits": exits,
    })
}

fn address(at: CodeAddress) -> String {
    format!("{:x}", at.address.0)
}
