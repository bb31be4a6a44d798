//! Executions of source lines, functions and branches, and those never executed.

mod flow;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use treering_profile::{
    CodeAddress, CodeCounts, IdleBlock, ModuleId, Piece, Profile, StatedCode, StatedFunction,
};

use crate::block_table::Ways;
use flow::{FunctionFlow, ModuleFlow};

/// The code that a module states, and its idle parts.
#[derive(Clone, Debug)]
pub struct CoveredModule {
    /// Its lines and functions.
    pub stated: StatedCode,
    /// Code of its functions that was not executed, sorted; see [`idle_code`].
    pub idle: Vec<IdleBlock>,
    /// The executed conditional branches whose counts are not known.
    pub unknown_branches: BTreeSet<u64>,
}

/// The executed and the unexecuted code of a program, by source file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// The files, by path.
    pub files: Vec<FileCoverage>,
    /// The number of executed conditional branches without counts.
    pub unknown_branches: usize,
}

/// The executed and the unexecuted code of a source file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileCoverage {
    /// Its path.
    pub path: String,
    /// The functions that it declares and that have code, by line.
    pub functions: Vec<FunctionCoverage>,
    /// The lines that have code, by number.
    pub lines: BTreeMap<u32, LineCoverage>,
}

/// The executed and the unexecuted code of a function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FunctionCoverage {
    /// Its name as people write it.
    pub name: String,
    /// Its name for linkers.
    pub linkage_name: String,
    /// The module that its code is in.
    pub module: Option<ModuleId>,
    /// Where its code begins.
    pub start: u64,
    /// The line that declares it, or 0.
    pub line: u32,
    /// The column there, or 0.
    pub column: u32,
    /// The last line of its file that has code of it.
    pub last_line: u32,
    /// How often it was entered.
    pub calls: u64,
    /// How many blocks its machine code has.
    pub blocks: u64,
    /// How many of them were executed.
    pub executed_blocks: u64,
    /// The lines that have code in it, but for those that were inlined: file, line, and how often it was executed.
    pub own_lines: BTreeMap<(String, u32), u64>,
}

/// The executed and the unexecuted code of a line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineCoverage {
    /// How often control came to it, from other lines or by a loop within it.
    pub executions: u64,
    /// Whether some of its code was not executed.
    pub has_idle_code: bool,
    /// The name for linkers of the function with its code, or of the first of several.
    pub function: String,
    /// Its conditional branches, by function and address.
    pub branches: Vec<BranchCoverage>,
}

/// The executions of a conditional branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BranchCoverage {
    /// Where it is.
    pub site: u64,
    /// How often it went which way; nothing if it was never executed.
    pub ways: Option<Ways>,
}

impl Coverage {
    /// The executed code of these modules in a profile, all threads added up.
    ///
    /// The count of a line is gcov's: how often control came to its code from other lines of the same function, and how
    /// often it went back within the line. Where a compiler moved code, control comes to a line more often than its
    /// statements are executed.
    pub fn of(profile: &Profile, modules: &[CoveredModule]) -> Self {
        let mut files: BTreeMap<String, FileCoverage> = BTreeMap::new();
        for module in modules {
            let flow = ModuleFlow::of(&profile.code, &module.stated);
            // Pieces of functions come behind what they are pieces of.
            let (pieces, wholes): (Vec<_>, Vec<_>) =
                module.stated.functions.iter().partition(|function| function.piece != Piece::default());
            for function in wholes.into_iter().chain(pieces) {
                add_function(&mut files, module, function, &flow);
            }
        }
        let files = files.into_iter().map(|(path, file)| FileCoverage { path, ..file });
        let mut files: Vec<_> = files.collect();
        for file in &mut files {
            file.functions.sort_by_key(|function| (function.line, function.start));
        }
        let unknown_branches = modules.iter().map(|module| module.unknown_branches.len()).sum();
        Self { files, unknown_branches }
    }

    /// How many lines have code, and how many of them were executed.
    pub fn lines(&self) -> (u64, u64) {
        let lines = self.files.iter().flat_map(|file| file.lines.values());
        lines.fold((0, 0), |(all, hit), line| (all + 1, hit + u64::from(line.executions > 0)))
    }

    /// How many functions have code, and how many of them were executed.
    pub fn functions(&self) -> (u64, u64) {
        let functions = self.files.iter().flat_map(|file| &file.functions);
        functions.fold((0, 0), |(all, hit), function| (all + 1, hit + u64::from(function.calls > 0)))
    }
}

/// The code of a module's functions that no block covers, by function, sorted.
pub fn idle_code(profile: &Profile, stated: &StatedCode) -> Vec<Range<u64>> {
    let executed = executed_code(&profile.code, stated.module);
    let mut idle = Vec::new();
    for range in stated.functions.iter().flat_map(|function| &function.code) {
        let mut at = range.start;
        let first = executed.partition_point(|block| block.end <= range.start);
        for block in executed[first..].iter().take_while(|block| block.start < range.end) {
            if at < block.start {
                idle.push(at..block.start);
            }
            at = at.max(block.end);
        }
        if at < range.end {
            idle.push(at..range.end);
        }
    }
    idle.sort_by_key(|range| range.start);
    idle.dedup();
    idle
}

/// The stated addresses of a module's executed blocks, sorted by their ends as far as they do not overlap.
fn executed_code(code: &CodeCounts, module: ModuleId) -> Vec<Range<u64>> {
    let executed = crate::block_table::executions(code);
    let blocks = code.blocks.iter().zip(executed).filter(|(block, executions)| {
        *executions > 0 && code.spaces[block.start.space].module == Some(module)
    });
    let ranges = blocks.map(|(block, _)| block.start.address.0..block.end().address.0);
    let mut ranges: Vec<Range<u64>> = ranges.collect();
    ranges.sort_by_key(|range| (range.start, range.end));
    let mut joined: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    joined
}

/// The places at which blocks of a module end, whose last instruction a reader may look at.
pub fn block_ends(profile: &Profile, module: ModuleId) -> Vec<(CodeAddress, u8)> {
    let code = &profile.code;
    let blocks = code.blocks.iter().filter(|block| code.spaces[block.start.space].module == Some(module));
    blocks.filter_map(|block| Some((block.last(), *block.lengths.last()?))).collect()
}

/// How often a piece of a function was entered from other pieces of it: each time, the function had been called before.
fn entered_within(stated: &StatedCode, piece: &StatedFunction, flow: &ModuleFlow) -> u64 {
    if piece.piece == Piece::default() {
        return 0;
    }
    let source = |of: &StatedFunction| (of.linkage_name.clone(), of.file.clone(), of.line);
    let wanted = source(piece);
    let others = stated.functions.iter().filter(|of| of.code != piece.code && source(of) == wanted);
    let others: Vec<_> = others.filter(|of| piece.piece.goes_on_from(of.piece)).collect();
    flow.entered_from(piece, |site| others.iter().flat_map(|of| &of.code).any(|code| code.contains(&site)))
}

impl FunctionCoverage {
    /// Takes in a piece of the same function.
    fn add(&mut self, piece: Self) {
        self.last_line = self.last_line.max(piece.last_line);
        self.calls = self.calls.saturating_add(piece.calls);
        self.blocks += piece.blocks;
        self.executed_blocks += piece.executed_blocks;
        for (line, executions) in piece.own_lines {
            let known = self.own_lines.entry(line).or_default();
            *known = known.saturating_add(executions);
        }
    }
}

fn add_function(
    files: &mut BTreeMap<String, FileCoverage>,
    module: &CoveredModule,
    function: &StatedFunction,
    flow: &ModuleFlow,
) {
    let stated = &module.stated;
    let own = FunctionFlow::of(flow, stated, function);
    let is_inlined = |at: u64| function.inlined.iter().any(|range| range.contains(&at));
    let mut lines: BTreeMap<(usize, u32), LineCoverage> = BTreeMap::new();
    let mut own_lines: BTreeMap<(String, u32), u64> = BTreeMap::new();
    for row in function.code.iter().flat_map(|range| stated.lines_in(range)) {
        let executions = own.lines.get(&(row.file, row.line)).copied().unwrap_or(0);
        let line = lines.entry((row.file, row.line)).or_default();
        line.executions = executions;
        if !is_inlined(row.code.start) {
            own_lines.insert((stated.files[row.file].clone(), row.line), executions);
        }
    }
    let idle_blocks = add_idle(module, function, &mut lines);
    for (&site, &ways) in &own.branches {
        let Some(line) = stated.line(site) else { continue };
        lines.entry(line).or_default().branches.push(BranchCoverage { site, ways: Some(ways) });
    }
    // A line has code if some of it is executed or idle: what fills up space is neither.
    lines.retain(|_, line| line.executions > 0 || line.has_idle_code || !line.branches.is_empty());
    let known: BTreeSet<(&str, u32)> =
        lines.keys().map(|&(file, line)| (stated.files[file].as_str(), line)).collect();
    own_lines.retain(|(file, line), _| known.contains(&(file.as_str(), *line)));
    let last_line = lines.keys().filter(|(file, _)| stated.files[*file] == function.file);
    let last_line = last_line.map(|(_, line)| *line).max().unwrap_or(function.line);
    for ((file, number), mut line) in lines {
        line.branches.sort_by_key(|branch| branch.site);
        add_line(files, &stated.files[file], number, line, function);
    }
    if function.file.is_empty() {
        return;
    }
    let of_file = &mut files.entry(function.file.clone()).or_default().functions;
    let known = FunctionCoverage {
        name: function.name.clone(),
        linkage_name: function.linkage_name.clone(),
        module: Some(stated.module),
        start: function.code[0].start,
        line: function.line,
        column: function.column,
        last_line,
        calls: own.calls.saturating_sub(entered_within(stated, function, flow)),
        blocks: own.blocks + idle_blocks,
        executed_blocks: own.blocks,
        own_lines,
    };
    let is_it = |other: &&mut FunctionCoverage| {
        (other.module, &other.linkage_name, other.line) == (known.module, &known.linkage_name, known.line)
    };
    match of_file.iter_mut().find(is_it).filter(|_| function.piece != Piece::default()) {
        Some(whole) => whole.add(known),
        None => of_file.push(known),
    }
}

/// Adds the lines and branches of a function's blocks that were not executed. Returns the number of these blocks.
fn add_idle(
    module: &CoveredModule,
    function: &StatedFunction,
    lines: &mut BTreeMap<(usize, u32), LineCoverage>,
) -> u64 {
    let stated = &module.stated;
    let mut idle_blocks = 0;
    for block in function.code.iter().flat_map(|range| blocks_in(&module.idle, range)) {
        idle_blocks += 1;
        for row in stated.lines_in(&block.code) {
            lines.entry((row.file, row.line)).or_default().has_idle_code = true;
        }
        if let Some(line) = block.branch.and_then(|site| Some((site, stated.line(site)?))) {
            let branch = BranchCoverage { site: line.0, ways: None };
            lines.entry(line.1).or_default().branches.push(branch);
        }
    }
    idle_blocks
}

/// The blocks that begin in a range of addresses.
fn blocks_in<'a>(idle: &'a [IdleBlock], code: &Range<u64>) -> &'a [IdleBlock] {
    let first = idle.partition_point(|block| block.code.start < code.start);
    let end = idle.partition_point(|block| block.code.start < code.end);
    &idle[first.min(end)..end]
}

/// Adds what a function executed of a line; several functions may have code of one line.
fn add_line(
    files: &mut BTreeMap<String, FileCoverage>,
    path: &str,
    number: u32,
    line: LineCoverage,
    function: &StatedFunction,
) {
    let file = match files.get_mut(path) {
        Some(file) => file,
        None => files.entry(path.to_owned()).or_default(),
    };
    let known = file.lines.entry(number).or_default();
    known.executions = known.executions.saturating_add(line.executions);
    known.has_idle_code |= line.has_idle_code;
    known.branches.extend(line.branches);
    if known.function.is_empty() {
        known.function.clone_from(&function.linkage_name);
    }
}

#[cfg(test)]
mod tests;
