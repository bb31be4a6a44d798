//! Coverage as gcov's JSON.

use serde::Serialize;
use treering_analysis::{BranchCoverage, Coverage, FileCoverage, FunctionCoverage, LineCoverage};

use crate::number::grouped;
use crate::picture::Picture;

/// How our files begin.
pub(crate) const GCOV_JSON_START: &str = "{\"gcc_version\":\"treering ";

/// The file as gcov(1) describes it under `--json-format`.
#[derive(Serialize)]
struct Document<'a> {
    gcc_version: String,
    format_version: &'static str,
    current_working_directory: &'a str,
    data_file: &'a str,
    files: Vec<FileObject<'a>>,
}

#[derive(Serialize)]
struct FileObject<'a> {
    file: &'a str,
    functions: Vec<FunctionObject<'a>>,
    lines: Vec<LineObject<'a>>,
}

#[derive(Serialize)]
struct FunctionObject<'a> {
    name: &'a str,
    demangled_name: &'a str,
    start_line: u32,
    start_column: u32,
    end_line: u32,
    end_column: u32,
    blocks: u64,
    blocks_executed: u64,
    execution_count: u64,
}

#[derive(Serialize)]
struct LineObject<'a> {
    line_number: u32,
    function_name: &'a str,
    count: u64,
    unexecuted_block: bool,
    branches: Vec<BranchObject>,
}

#[derive(Serialize)]
struct BranchObject {
    count: u64,
    fallthrough: bool,
    throw: bool,
}

/// The coverage of a counted program as JSON, as `gcov --json-format --branch-probabilities` prints it. `directory` is
/// where the program was run, `data_file` the profile.
pub fn gcov_json(coverage: &Coverage, directory: &str, data_file: &str) -> Picture {
    let document = Document {
        gcc_version: format!("treering {}", env!("CARGO_PKG_VERSION")),
        format_version: "1",
        current_working_directory: directory,
        data_file,
        files: coverage.files.iter().map(file).collect(),
    };
    let mut text = serde_json::to_string(&document).expect("documents hold nothing JSON cannot say");
    text.push('\n');
    Picture { text, left_out: left_out(coverage) }
}

/// A path that no file of coverage has.
pub(crate) fn left_out(coverage: &Coverage) -> Vec<String> {
    let unknown = coverage.unknown_branches as u64;
    let branches = match unknown {
        1 => "1 conditional branch".to_owned(),
        _ => format!("{} conditional branches", grouped(unknown)),
    };
    let branches = format!("left out: {branches} that ran and have no known count");
    (unknown > 0).then_some(branches).into_iter().collect()
}

fn file(file: &FileCoverage) -> FileObject<'_> {
    FileObject {
        file: &file.path,
        functions: file.functions.iter().map(function).collect(),
        lines: file.lines.iter().map(|(number, row)| line(*number, row)).collect(),
    }
}

fn function(function: &FunctionCoverage) -> FunctionObject<'_> {
    FunctionObject {
        name: &function.linkage_name,
        demangled_name: &function.name,
        start_line: function.line,
        start_column: function.column,
        end_line: function.last_line,
        end_column: 0,
        blocks: function.blocks,
        blocks_executed: function.executed_blocks,
        execution_count: function.calls,
    }
}

fn line(line_number: u32, line: &LineCoverage) -> LineObject<'_> {
    LineObject {
        line_number,
        function_name: &line.function,
        count: line.executions,
        unexecuted_block: line.has_idle_code,
        branches: line.branches.iter().flat_map(ways).collect(),
    }
}

/// A branch is its two ways.
fn ways(branch: &BranchCoverage) -> [BranchObject; 2] {
    let (taken, not_taken) = branch.ways.map_or((0, 0), |ways| (ways.taken, ways.not_taken));
    let way = |count, fallthrough| BranchObject { count, fallthrough, throw: false };
    [way(not_taken, true), way(taken, false)]
}
