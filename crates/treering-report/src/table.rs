//! Columns that line up.

use std::borrow::Cow;

use crate::name::{ARROW, fit_all, fit_chain};
use crate::number::grouped;
use crate::style::Style;

/// A table of right-aligned columns and a name at the end of each row.
pub(crate) struct Table {
    headings: Vec<String>,
    /// Of each column, which one it is to give way to the names, counted from 1; 0 for one that never does.
    ways: Vec<u8>,
    name_heading: Cow<'static, str>,
    rows: Vec<Row>,
}

struct Row {
    cells: Vec<String>,
    /// How deep it is in a tree.
    depth: usize,
    /// A function, or functions that only call the next one.
    names: Vec<String>,
    share: f64,
}

impl Table {
    pub(crate) fn new(headings: Vec<String>, name_heading: impl Into<Cow<'static, str>>) -> Self {
        let ways = vec![0; headings.len()];
        Self { headings, ways, name_heading: name_heading.into(), rows: Vec::new() }
    }

    /// Has columns give way where there is little room for the names, in the order of these numbers; those with 0
    /// never do.
    pub(crate) fn giving_way(mut self, ways: Vec<u8>) -> Self {
        self.ways = ways;
        self
    }

    /// Adds a row; `share` of the run decides its colour.
    pub(crate) fn row(&mut self, cells: Vec<String>, name: String, share: f64) {
        self.tree_row(cells, 0, vec![name], share);
    }

    /// Adds a row of a tree: functions of which each only calls the next one.
    pub(crate) fn tree_row(&mut self, cells: Vec<String>, depth: usize, names: Vec<String>, share: f64) {
        debug_assert_eq!(cells.len(), self.headings.len(), "a row has a cell for each column");
        self.rows.push(Row { cells, depth, names, share });
    }

    /// The headings of columns that there is no room for.
    pub(crate) fn left_out(&self, style: &Style) -> Vec<&str> {
        let kept = self.kept(style);
        let left_out = self.headings.iter().enumerate().filter(|(at, _)| !kept.contains(at));
        left_out.map(|(_, heading)| heading.as_str()).collect()
    }

    /// The columns that there is room for, once names have theirs.
    fn kept(&self, style: &Style) -> Vec<usize> {
        const ROOM_FOR_NAMES: usize = 32;
        let names = self.rows.iter().flat_map(|row| row.names.iter().map(|name| name.chars().count()));
        let wanted = names.max().unwrap_or(0).min(ROOM_FOR_NAMES);
        let mut kept: Vec<usize> = (0..self.headings.len()).collect();
        let room = |kept: &[usize]| style.room(kept.iter().map(|&at| self.width(at) + 2).sum());
        while room(&kept).is_some_and(|room| room < wanted) {
            let giving_way = kept.iter().filter(|&&at| self.ways[at] > 0);
            let Some(&next) = giving_way.min_by_key(|&&at| self.ways[at]) else { break };
            kept.retain(|&at| at != next);
        }
        kept
    }

    pub(crate) fn render(&self, style: &Style) -> String {
        let kept = self.kept(style);
        let widths: Vec<usize> = kept.iter().map(|&at| self.width(at)).collect();
        let used = widths.iter().map(|width| width + 2).sum();
        let align = |cells: &[String]| align(kept.iter().map(|&at| &cells[at]), &widths);
        let mut text = String::new();
        let heading = format!("{}{}", align(&self.headings), self.name_heading);
        text.push_str(&style.bold(&heading));
        text.push('\n');
        for (row, name) in self.rows.iter().zip(self.names(style, used)) {
            text.push_str(&style.heat(row.share, &align(&row.cells)));
            text.push_str(&name);
            text.push('\n');
        }
        text
    }

    /// The text behind the columns of every row: the indentation is kept, the names are shortened.
    fn names(&self, style: &Style, used: usize) -> Vec<String> {
        let room = style.room(used);
        let indents: Vec<_> = self.rows.iter().map(|row| indent(row.depth, room)).collect();
        let Some(room) = room else {
            let rows = self.rows.iter().zip(indents);
            return rows.map(|(row, indent)| indent + &row.names.join(ARROW)).collect();
        };
        let rooms: Vec<_> = indents.iter().map(|indent| room - indent.chars().count().min(room)).collect();
        let texts = self.rows.iter().map(|row| match row.names.as_slice() {
            [name] => Cow::Borrowed(name.as_str()),
            _ => Cow::Borrowed(""),
        });
        let single = fit_all(&texts.collect::<Vec<_>>(), &rooms);
        let rows = self.rows.iter().zip(indents).zip(single.into_iter().zip(rooms));
        rows.map(|((row, indent), (single, room))| match row.names.len() {
            1 => indent + &single,
            _ => indent + &fit_chain(&row.names, room),
        })
        .collect()
    }

    fn width(&self, at: usize) -> usize {
        let cells = self.rows.iter().map(|row| row.cells[at].chars().count());
        cells.max().unwrap_or(0).max(self.headings[at].chars().count())
    }
}

/// Rows are indented no further than this, so that the text of a deep recursion does not grow with the square of
/// its depth; those below say how deep they are.
pub(crate) const DEEPEST_INDENT: usize = 100;

/// White space before a row. Where there is little room, a level takes one character, and no more than
/// a third of the room is taken.
fn indent(depth: usize, room: Option<usize>) -> String {
    const NARROW: usize = 80;
    let (step, deepest) = match room {
        None => (2, DEEPEST_INDENT),
        Some(room) if room < NARROW => (1, room / 3),
        Some(room) => (2, (room / 6).min(DEEPEST_INDENT)),
    };
    let indent = " ".repeat(step * depth.min(deepest));
    if depth > deepest { format!("{indent}[{}] ", grouped(depth as u64)) } else { indent }
}

/// Cells right-aligned to their widths, two spaces after each.
fn align<'a>(cells: impl Iterator<Item = &'a String>, widths: &[usize]) -> String {
    cells.zip(widths).map(|(cell, width)| format!("{cell:>width$}  ")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(name: &str) -> Table {
        let headings = ["% self", "running sum", "self s"].map(str::to_owned).to_vec();
        let mut table = Table::new(headings, "function").giving_way(vec![0, 1, 2]);
        table.row(["12.3", "1.234", "1.234"].map(str::to_owned).to_vec(), name.to_owned(), 0.0);
        table
    }

    /// Names had what the columns left, which was 10 characters.
    #[test]
    fn columns_give_way_to_names_one_after_the_other() {
        let long = "a_name_that_is_longer_than_forty_characters_are";
        for (width, name, left_out) in [
            (None, long, &[][..]),
            (Some(80), long, &[]),
            (Some(50), long, &["running sum"]),
            (Some(44), long, &["running sum", "self s"]),
            (Some(20), long, &["running sum", "self s"]),
            (Some(44), "a_short_name", &[]),
        ] {
            let (table, style) = (table(name), Style { colour: false, width });
            assert_eq!(table.left_out(&style), left_out, "{width:?} {name}");
            let text = table.render(&style);
            assert!(left_out.iter().all(|heading| !text.contains(heading)), "{text}");
            let room = width.map_or(100, |width| width.saturating_sub(8));
            let shown = text.lines().nth(1).and_then(|line| line.split_whitespace().last()).expect("a name");
            assert!(shown.chars().count() >= room.min(12).min(name.len()), "{text}");
        }
    }
}
