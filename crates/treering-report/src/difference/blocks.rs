//! The basic blocks of a function that changed.

use serde::Serialize;
use treering_compare::{BlockChange, BlockChanges, Difference, ExecutedBlock, Sides};
use treering_profile::Unit;

use crate::number::plural;
use crate::printable::printable;
use crate::style::Style;
use crate::table::Table;

use super::Rows;
use super::amounts::{Amounts, calls};

/// The basic blocks of a function whose executed instructions changed, in the order of the head. `rows` keeps those that
/// changed most.
pub fn difference_blocks_text(
    difference: &Difference,
    changes: &BlockChanges,
    style: &Style,
    rows: Rows,
) -> String {
    const MOST: usize = 24;
    let sums = sums(&changes.blocks);
    let amounts = Amounts::of(Unit::Count, u128::from(sums.base.max(sums.head)));
    let change = |block: &BlockChange| block.instructions_executed().change();
    let changed = changes.blocks.iter().filter(|block| change(block) != 0).count();
    let shown = largest(&changes.blocks, rows.limit.unwrap_or(MOST));

    let headings = ["change", "executions", "instructions each"].map(str::to_owned);
    let mut table = Table::new(headings.into(), "block");
    for block in &shown {
        let cells = vec![amounts.signed(change(block)), calls(block.executions()), sizes(block)];
        table.row(cells, place(block), 0.0);
    }
    let row = |change: i128| vec![amounts.signed(change), String::new(), String::new()];
    let rest = changed - shown.len();
    if rest > 0 {
        let of_shown: i128 = shown.iter().map(|block| change(block)).sum();
        let name = format!("{} more", plural(rest as u64, "changed block"));
        table.row(row(sums.change() - of_shown), name, 0.0);
    }
    let whole = format!("in all: {}", amounts.both(sums));
    table.row(row(sums.change()), whole, 0.0);

    let name = printable(&difference.pairing.groups[changes.group].name).into_owned();
    let executed = plural(changes.blocks.len() as u64, "executed block");
    let mut text =
        format!("{}, {changed} of {executed} changed\n\n{}", style.bold(&name), table.render(style));
    if !changes.blocks.iter().all(BlockChange::is_of_one_size) {
        let note = "blocks are paired in the order of their addresses, by the lengths of their instructions";
        text += &style.dim(&style.wrap(note, 0));
        text.push('\n');
    }
    text
}

/// The blocks that changed most, in the order of the head.
fn largest(blocks: &[BlockChange], limit: usize) -> Vec<&BlockChange> {
    let change = |at: &usize| blocks[*at].instructions_executed().change();
    let mut places: Vec<usize> = (0..blocks.len()).filter(|at| change(at) != 0).collect();
    places.sort_by_key(|at| std::cmp::Reverse(change(at).unsigned_abs()));
    places.truncate(limit);
    places.sort_unstable();
    places.into_iter().map(|at| &blocks[at]).collect()
}

fn sums(blocks: &[BlockChange]) -> Sides<u64> {
    let mut sums = Sides { base: 0_u64, head: 0_u64 };
    for executed in blocks.iter().map(BlockChange::instructions_executed) {
        sums.base = sums.base.saturating_add(executed.base);
        sums.head = sums.head.saturating_add(executed.head);
    }
    sums
}

/// How many instructions it has: one number where that is the same in both.
fn sizes(block: &BlockChange) -> String {
    let size = |block: &Option<ExecutedBlock>| block.as_ref().map(|block| block.instructions as u64);
    match (size(&block.of.base), size(&block.of.head)) {
        (Some(base), Some(head)) => calls(Sides { base, head }),
        (one, other) => one.or(other).unwrap_or(0).to_string(),
    }
}

/// `0x1139 → 0x1148  a.c:12 → a.c:14`; a block of one profile alone: `0x1139 (only base)  a.c:12`.
fn place(block: &BlockChange) -> String {
    let address = |block: &ExecutedBlock| block.start.to_string();
    let line =
        |block: &ExecutedBlock| block.line.as_ref().map(|(file, line)| format!("{}:{line}", printable(file)));
    let lines = block.of.as_ref().map(|block| block.as_ref().and_then(line));
    let lines = match (lines.base, lines.head) {
        (Some(base), Some(head)) if base != head => format!("  {base} → {head}"),
        (Some(line), _) | (None, Some(line)) => format!("  {line}"),
        (None, None) => String::new(),
    };
    match (&block.of.base, &block.of.head) {
        (Some(base), Some(head)) if base.start == head.start => format!("{}{lines}", address(base)),
        (Some(base), Some(head)) => format!("{} → {}{lines}", address(base), address(head)),
        (Some(base), None) => format!("{} (only base){lines}", address(base)),
        (None, Some(head)) => format!("{} (only head){lines}", address(head)),
        (None, None) => String::new(),
    }
}

#[derive(Serialize)]
struct Document<'a> {
    view: &'static str,
    function: &'a str,
    blocks: Vec<Sided<Option<BlockObject<'a>>>>,
}

#[derive(Serialize)]
struct Sided<T> {
    base: T,
    head: T,
}

#[derive(Serialize)]
struct BlockObject<'a> {
    address: String,
    file: Option<&'a str>,
    line: Option<u32>,
    instructions: usize,
    executions: u64,
    instructions_executed: u64,
}

/// All blocks of a function that were executed, as JSON. The keys are described in `docs/json.md`.
pub fn difference_blocks_json(difference: &Difference, changes: &BlockChanges) -> String {
    let document = Document {
        view: "diff-blocks",
        function: &difference.pairing.groups[changes.group].name,
        blocks: changes
            .blocks
            .iter()
            .map(|block| Sided { base: block_object(&block.of.base), head: block_object(&block.of.head) })
            .collect(),
    };
    let mut text = serde_json::to_string_pretty(&document).unwrap_or_default();
    text.push('\n');
    text
}

fn block_object(block: &Option<ExecutedBlock>) -> Option<BlockObject<'_>> {
    let block = block.as_ref()?;
    Some(BlockObject {
        address: block.start.to_string(),
        file: block.line.as_ref().map(|(file, _)| file.as_str()),
        line: block.line.as_ref().map(|(_, line)| *line),
        instructions: block.instructions,
        executions: block.executions,
        instructions_executed: block.instructions_executed,
    })
}
