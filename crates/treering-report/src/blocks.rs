//! The basic blocks of a function as text.

use treering_analysis::{BlockRow, BlockTable, Exit, InstructionRow};
use treering_profile::{BranchKind, CodeAddress, LineId, Profile};

use crate::function::Labels;
use crate::number::{grouped, percent, plural};
use crate::printable::printable_profile;
use crate::style::Style;

/// Gives the text of an instruction of the given length, if its bytes are known.
pub type Disassemble<'a> = dyn FnMut(CodeAddress, u8) -> Option<String> + 'a;

/// The basic blocks of a function: how often each was executed, its instructions with the source lines
/// between them, and where it led.
///
/// `profile` is the one that `table` was made of. The most expensive block is marked with `>`.
pub fn blocks_text(
    profile: &Profile,
    table: &BlockTable,
    style: &Style,
    disassemble: &mut Disassemble<'_>,
) -> String {
    let profile = &*printable_profile(profile);
    let most = table.blocks.iter().map(BlockRow::instructions_executed).max().unwrap_or(0);
    let width = table.blocks.iter().map(|row| grouped(row.executions).len()).max().unwrap_or(0);
    let listing = Listing { profile, table, style, labels: Labels::of(profile), most, width: width.max(10) };
    let mut text = listing.heading();
    let mut line = None;
    for row in &table.blocks {
        text += &listing.block(row, &mut line, disassemble);
    }
    text
}

struct Listing<'a> {
    profile: &'a Profile,
    table: &'a BlockTable,
    style: &'a Style,
    labels: Labels<'a>,
    /// The cost of the most expensive block.
    most: u64,
    /// Of the column of executions.
    width: usize,
}

impl Listing<'_> {
    fn heading(&self) -> String {
        let name = self.style.bold(&self.labels.with_place(self.table.function));
        let cost = plural(self.table.instructions, "instruction");
        let share = percent(self.table.share(self.table.instructions));
        let blocks = plural(self.table.blocks.len() as u64, "basic block");
        let columns = format!("{:>width$}     share  block", "executions", width = self.width + 2);
        format!(
            "{name}: {cost} executed, {share} % of the run, in {blocks}\n\n{}\n",
            self.style.bold(&columns)
        )
    }

    fn block(&self, row: &BlockRow, line: &mut Option<LineId>, disassemble: &mut Disassemble<'_>) -> String {
        let share = self.table.share(row.instructions_executed());
        let hot = row.instructions_executed() == self.most && self.most > 0;
        let mark = if hot { ">" } else { " " };
        let start = row.instructions.first().map_or_else(String::new, |first| first.at.address.to_string());
        let cells = format!(
            "{mark} {:>width$}  {:>6} %  {start}, {}",
            grouped(row.executions),
            percent(share),
            plural(row.instructions.len() as u64, "instruction"),
            width = self.width,
        );
        let mut text = format!("{}\n", self.style.heat(share, &cells));
        for instruction in &row.instructions {
            text += &self.source(instruction.line, line);
            text += &self.instruction(instruction, disassemble);
        }
        text += &self.exits(row);
        text
    }

    /// The source line, where it is another than before.
    fn source(&self, line: Option<LineId>, last: &mut Option<LineId>) -> String {
        if line == *last {
            return String::new();
        }
        *last = line;
        let Some(line) = line.map(|line| self.profile.lines[line]) else { return String::new() };
        let path = &self.profile.strings[line.file];
        let file = path.rsplit('/').next().unwrap_or(path);
        let source = self.profile.sources.iter().find(|source| source.file == line.file);
        let code = source.and_then(|source| source.text.lines().nth((line.line as usize).checked_sub(1)?));
        let shown = format!(
            "{:indent$}{file}:{}  {}",
            "",
            line.line,
            code.unwrap_or("").trim(),
            indent = self.indent()
        );
        let shown = self.style.fit(0, shown.trim_end());
        format!("{}\n", self.style.dim(&shown))
    }

    fn indent(&self) -> usize {
        self.width + 16
    }

    fn instruction(&self, row: &InstructionRow, disassemble: &mut Disassemble<'_>) -> String {
        let bytes = || format!("({})", plural(row.length.into(), "byte"));
        let text = disassemble(row.at, row.length).unwrap_or_else(bytes);
        let address = row.at.address.to_string();
        format!("{:indent$}  {address}  {text}\n", "", indent = self.indent())
    }

    fn exits(&self, row: &BlockRow) -> String {
        let mut said = Vec::new();
        if let Some(ways) = row.ways {
            said.push(format!("taken {}, not taken {}", grouped(ways.taken), grouped(ways.not_taken)));
        }
        let others = row.exits.iter().filter(|exit| exit.kind != BranchKind::Conditional);
        const SHOWN: usize = 8;
        let (shown, hidden) = (others.clone().take(SHOWN), others.skip(SHOWN));
        said.extend(shown.map(|exit| self.exit(exit)));
        let rest: Vec<u64> = hidden.map(|exit| exit.count).collect();
        if !rest.is_empty() {
            let (times, places) =
                (plural(rest.iter().sum(), "time"), plural(rest.len() as u64, "more place"));
            said.push(format!("{times} to {places}"));
        }
        if row.signals > 0 {
            said.push(plural(row.signals, "signal"));
        }
        let shown = said.into_iter().map(|said| {
            let line = format!("{:indent$}→ {said}", "", indent = self.indent());
            format!("{}\n", self.style.dim(&line))
        });
        shown.collect()
    }

    fn exit(&self, exit: &Exit) -> String {
        let place = match (exit.function, exit.target) {
            (Some(function), target) if function != self.table.function => {
                let start = self.profile.functions[function].address;
                let inside = target.filter(|target| start.is_some_and(|start| start != target.address));
                let inside = inside.map_or_else(String::new, |at| format!(" at {}", at.address));
                format!("{}{inside}", self.labels.with_module(function))
            }
            (_, Some(target)) => target.address.to_string(),
            _ => "an unknown place".to_owned(),
        };
        match exit.kind {
            BranchKind::End => format!("end of the thread, {}", plural(exit.count, "time")),
            kind => format!("{} {place}, {}", kind.as_str(), plural(exit.count, "time")),
        }
    }
}
