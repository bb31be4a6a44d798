//! Frames of code as JSON.

use serde::Serializer;
use serde_json::{Value, json};
use treering_profile::{BasicBlock, CodeAddress, CodeSpace};

use super::table_json;
use crate::trg::content::CodePart;

pub(super) fn code_json<S: Serializer>(to: S, part: &CodePart) -> Result<S::Ok, S::Error> {
    match part {
        CodePart::Spaces(table) => table_json(
            to,
            table,
            |space: &CodeSpace| json!({ "module": space.module.map(|module| module.raw()), "generation": space.generation }),
        ),
        CodePart::Bytes(rows) => {
            let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
            to.collect_seq(
                rows.iter().map(|row| json!({ "start": place(row.start), "bytes": hex(&row.bytes) })),
            )
        }
        CodePart::Translated(rows) => {
            let row = |row: &treering_profile::TranslatedBlock| {
                json!({
                    "thread": row.thread.raw(), "start": place(row.start), "length": row.length,
                    "instructions": row.instructions, "executions": row.executions,
                })
            };
            to.collect_seq(rows.iter().map(row))
        }
        CodePart::Partials(rows) => {
            let row = |row: &treering_profile::PartialCount| {
                json!({
                    "thread": row.thread.raw(), "start": place(row.start), "length": row.length,
                    "instructions": row.instructions, "executions": row.executions,
                })
            };
            to.collect_seq(rows.iter().map(row))
        }
        CodePart::Blocks(table) => table_json(to, table, |block: &BasicBlock| {
            let function = block.function.map(|function| function.raw());
            json!({ "start": place(block.start), "lengths": block.lengths[..], "function": function })
        }),
        CodePart::Executions(rows) => {
            to.collect_seq(rows.iter().map(|row| json!([row.thread.raw(), row.block.raw(), row.executions])))
        }
        CodePart::Branches(rows) => {
            let row = |row: &treering_profile::BranchCount| {
                json!({
                    "thread": row.thread.raw(), "kind": row.kind.as_str(), "site": row.site.map(place),
                    "target": row.target.map(place), "count": row.count,
                })
            };
            to.collect_seq(rows.iter().map(row))
        }
        CodePart::Lines(rows) => {
            let row = |row: &treering_profile::CodeLine| json!({ "start": place(row.start), "line": row.line.map(|line| line.raw()) });
            to.collect_seq(rows.iter().map(row))
        }
        CodePart::Uncounted(rows) => to.collect_seq(rows.iter().map(uncounted)),
    }
}

fn uncounted(row: &treering_profile::Uncounted) -> Value {
    json!({
        "reason": row.reason.as_str(),
        "process": row.process.map(|process| process.raw()),
        "thread": row.thread.map(|thread| thread.raw()),
        "at": row.at.map(place),
        "detail": row.detail.raw(),
    })
}

/// The space and the address of a place.
fn place(at: CodeAddress) -> Value {
    json!([at.space.raw(), at.address])
}
