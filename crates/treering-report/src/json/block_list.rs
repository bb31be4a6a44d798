//! The basic blocks of a whole program as JSON.

use serde::Serialize;
use treering_analysis::{BlockList, ListedBlock};
use treering_profile::Profile;

use super::blocks::address;
use super::{function_name, non_empty, text};
use crate::options::Options;

#[derive(Serialize)]
struct BlockObject<'a> {
    function: Option<std::borrow::Cow<'a, str>>,
    module: Option<&'a str>,
    address: String,
    end: String,
    file: Option<&'a str>,
    line: Option<u32>,
    executions: u64,
    instructions: u64,
    instructions_executed: u64,
    running_sum: u64,
}

/// The basic blocks that cost most as JSON: `run_instructions`, `executed_blocks` and `blocks`.
pub fn block_list_json(profile: &Profile, list: &BlockList, options: &Options) -> String {
    #[derive(Serialize)]
    struct Document<'a> {
        view: &'static str,
        run_instructions: u64,
        executed_blocks: usize,
        blocks: Vec<BlockObject<'a>>,
    }
    let shown = list.rows.iter().filter(|row| list.share(row.instructions_executed) >= options.min_share);
    let shown = shown.take(options.limit.unwrap_or(usize::MAX));
    text(&Document {
        view: "hot blocks",
        run_instructions: list.run_instructions,
        executed_blocks: list.rows.len(),
        blocks: shown.map(|row| block(profile, row)).collect(),
    })
}

fn block<'a>(profile: &'a Profile, row: &ListedBlock) -> BlockObject<'a> {
    let line = row.line.map(|line| profile.lines[line]);
    let module = profile.code.spaces[row.start.space].module;
    BlockObject {
        function: row.function.map(|function| function_name(profile, function)),
        module: module.map(|module| &profile.strings[profile.modules[module].path]),
        address: address(row.start),
        end: address(row.end),
        file: line.and_then(|line| non_empty(profile, line.file)),
        line: line.map(|line| line.line).filter(|&line| line > 0),
        executions: row.executions,
        instructions: row.instructions,
        instructions_executed: row.instructions_executed,
        running_sum: row.running_sum,
    }
}
