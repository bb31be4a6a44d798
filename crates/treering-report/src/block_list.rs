//! The basic blocks of a whole program as text.

use treering_analysis::{BlockList, ListedBlock};
use treering_profile::Profile;

use crate::function::Labels;
use crate::number::{grouped, percent, plural};
use crate::options::Options;
use crate::printable::{printable, printable_profile};
use crate::style::Style;
use crate::table::Table;

/// The basic blocks that cost most, as pixie listed them: executions, instructions of one, instructions in all, share,
/// cumulative share, and where the block is.
///
/// `profile` is the one that `list` was made of. What `options` leave out is added up in a last line.
pub fn block_list_text(profile: &Profile, list: &BlockList, style: &Style, options: &Options) -> String {
    let profile = &*printable_profile(profile);
    let labels = Labels::of(profile);
    let headings = ["executions", "instructions each", "instructions in all", "%", "cumulative %"];
    let mut table = Table::new(headings.map(str::to_owned).to_vec(), "block");
    let is_shown = |row: &&ListedBlock| list.share(row.instructions_executed) >= options.min_share;
    let shown: Vec<_> = list.rows.iter().filter(is_shown).take(options.limit.unwrap_or(usize::MAX)).collect();
    for row in &shown {
        let share = list.share(row.instructions_executed);
        let cells = vec![
            grouped(row.executions),
            grouped(row.instructions),
            grouped(row.instructions_executed),
            percent(share),
            percent(list.share(row.running_sum)),
        ];
        table.row(cells, place(profile, &labels, row), share);
    }
    let mut text = format!(
        "{} executed in {}\n\n{}",
        plural(list.run_instructions, "instruction"),
        plural(list.rows.len() as u64, "basic block"),
        table.render(style)
    );
    let left_out = list.rows.len() - shown.len();
    if left_out > 0 {
        let of_shown = shown.iter().map(|row| row.instructions_executed).fold(0, u64::saturating_add);
        let rest = list.run_instructions.saturating_sub(of_shown);
        let blocks = plural(left_out as u64, "block");
        let instructions = plural(rest, "instruction");
        text += &format!("… {blocks} more, together {instructions}, {} %\n", percent(list.share(rest)));
    }
    text
}

/// `function  0x1139–0x1148  file:line`, as far as they are known.
fn place(profile: &Profile, labels: &Labels<'_>, row: &ListedBlock) -> String {
    let name = row.function.map_or_else(|| "[unknown]".to_owned(), |function| labels.with_module(function));
    let range = format!("{}–{}", row.start.address, row.end.address);
    let line = row.line.map(|line| profile.lines[line]);
    let line = line.map(|line| {
        let path = printable(&profile.strings[line.file]);
        format!("  {}:{}", path.rsplit('/').next().unwrap_or(&path), line.line)
    });
    format!("{name}  {range}{}", line.unwrap_or_default())
}
