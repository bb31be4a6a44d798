//! Two profiles in a page that shows their difference.

use serde_json::{Value, json};
use treering_profile::{FunctionId, LineId, Profile, StringId};

use crate::columns::Columns;
use crate::functions::{Functions, Texts};
use crate::lines::Lines;

/// Both profiles of a difference, and what is the same in them.
#[derive(Clone, Debug)]
pub struct Compared {
    /// The head and the base.
    pub sides: [Side; 2],
    /// Whether one of both has no stacks: functions and calls of both are shown.
    pub without_stacks: bool,
    /// Whether the page shows all that ran.
    pub is_whole: bool,
    /// The lines of functions; those of a function that are not here are the same in both.
    pub lines: Vec<FunctionLines>,
    /// The basic blocks of functions, those that changed most first, or why there are none.
    pub blocks: Result<Vec<FunctionBlocks>, String>,
}

/// One of two profiles that are compared.
#[derive(Clone, Debug)]
pub struct Side {
    /// The profile, with corrected times.
    pub profile: Profile,
    /// By function of it, the same in the profile of the page.
    pub functions: Vec<FunctionId>,
    /// By line of it, the same in the profile of the page.
    pub lines: Vec<LineId>,
}

/// The lines of a function that are the same in both profiles. All names are those of the page's profile.
#[derive(Clone, Debug)]
pub struct FunctionLines {
    /// The function.
    pub function: FunctionId,
    /// Whether one profile lacks the text of a file, so that lines were paired by their place in the function.
    pub by_place: bool,
    /// The lines, file by file in the order of the head.
    pub lines: Vec<PairedLine>,
}

/// A line of both profiles, or of one.
#[derive(Clone, Debug)]
pub struct PairedLine {
    /// Its file: that of the head where both have it.
    pub file: StringId,
    /// In the base; nothing where the base has no such line.
    pub base: Option<LineId>,
    /// In the head.
    pub head: Option<LineId>,
    /// Its text, where the base alone has it.
    pub text: Option<String>,
}

/// The executed basic blocks of a function of the page's profile.
#[derive(Clone, Debug)]
pub struct FunctionBlocks {
    /// The function.
    pub function: FunctionId,
    /// The block of the base and that of the head, nothing where none is its pair; in the order of the head.
    pub blocks: Vec<[Option<ComparedBlock>; 2]>,
}

/// A basic block of one profile.
#[derive(Clone, Debug)]
pub struct ComparedBlock {
    /// The stated address of its first byte.
    pub address: u64,
    /// How many instructions it has.
    pub instructions: usize,
    /// How often it was executed.
    pub executions: u64,
    /// How many instructions its executions are.
    pub instructions_executed: u64,
    /// The file, without folders, and the line of its first instruction, where known.
    pub line: Option<(String, u32)>,
}

/// The most blocks that a page lists.
const MOST_BLOCKS: usize = 100_000;

/// The lines that are not the same by file and number in both, by function: in the order of the head.
pub(crate) fn line_pairs(
    compared: &Compared,
    profile: &Profile,
    functions: &Functions,
    lines: &mut Lines,
    texts: &mut Texts,
    columns: &mut Columns,
) -> Value {
    let mut table = [const { Vec::new() }; 6];
    let mut by_place = Vec::new();
    for of in &compared.lines {
        let Some(number) = functions.known(of.function) else { continue };
        if of.by_place {
            by_place.push(number);
        }
        let (mut file, mut after) = (None, 0);
        for line in &of.lines {
            if file.replace(line.file) != Some(line.file) {
                after = 0;
            }
            if let Some(head) = line.head {
                after = profile.lines[head].line;
            }
            if line.base == line.head {
                continue;
            }
            let mut line_number =
                |line: Option<LineId>| line.map_or(0, |line| u64::from(lines.number(line)) + 1);
            let row = [
                number.into(),
                line_number(line.base),
                line_number(line.head),
                texts.of(profile, line.file),
                after.into(),
                line.text.as_deref().map_or(0, |text| texts.clone_text(text)),
            ];
            table.iter_mut().zip(row).for_each(|(column, value): (&mut Vec<u64>, u64)| column.push(value));
        }
    }
    let [function, base, head, file, after, text] = table.map(|column| columns.add(&column));
    json!({
        "fn": function, "base": base, "now": head, "file": file, "after": after, "text": text,
        "byPlace": columns.add_indexes(by_place),
    })
}

/// The blocks of both, by function, and how many functions were left out. Those of a function stand by themselves among
/// `columns`, so that a page reads what it shows.
pub(crate) fn blocks(compared: &Compared, functions: &Functions, columns: &mut Columns) -> (Value, usize) {
    let Ok(of_functions) = &compared.blocks else { return (json!([]), 0) };
    let (mut room, mut left_out) = (MOST_BLOCKS, 0);
    let mut rows = Vec::new();
    for of in of_functions {
        let Some(number) = functions.known(of.function) else { continue };
        if of.blocks.len() > room {
            left_out += 1;
            continue;
        }
        room -= of.blocks.len();
        let pairs = of.blocks.iter().map(|[base, head]| json!({ "base": block(base), "now": block(head) }));
        let slab = columns.add_json_apart(&Value::Array(pairs.collect()));
        rows.push(json!({ "fn": number, "slab": slab }));
    }
    (Value::Array(rows), left_out)
}

fn block(block: &Option<ComparedBlock>) -> Value {
    let Some(block) = block else { return Value::Null };
    json!({
        "address": format!("{:#x}", block.address),
        "size": block.instructions,
        "executions": block.executions,
        "instructions": block.instructions_executed,
        "line": block.line.as_ref().map(|(file, line)| format!("{file}:{line}")),
    })
}
