//! The lines of a function as text.

use treering_analysis::{LineCall, LineRow, LineTable, Measure, TotalSource};
use treering_profile::{Profile, StringId};

use crate::function::Labels;
use crate::header::header_lines;
use crate::number::{grouped, percent, plural};
use crate::options::{Amount, Options};
use crate::printable::printable_profile;
use crate::scale::Scale;
use crate::style::Style;

/// Lines without cost that are shown before and after one with cost.
const CONTEXT: u32 = 3;

/// The source lines of a function with what they cost, and below each what it called.
///
/// Shows the source text where the profile holds it. `profile` is the one that `table` was made
/// of.
pub fn lines_text(profile: &Profile, table: &LineTable, style: &Style, options: &Options) -> String {
    let profile = &*printable_profile(profile);
    let mut text = header_lines(profile, &table.basis, style);
    if table.basis.run.cost == 0 {
        return text;
    }
    let metric = &profile.metrics[table.basis.metric.index()];
    let unit = metric.unit;
    // Counts are exact to the last one, which percents would hide.
    let is_of_hits = metric.name == "line hits";
    let is_counted = !profile.code.is_empty() || is_of_hits;
    let usual = if is_counted { Amount::Natural } else { Amount::Percent };
    let scale = Scale::of(&table.basis, unit, options.amount.unwrap_or(usual));
    let width =
        [scale.text(table.basis.run).len(), scale.heading("total").len()].into_iter().max().unwrap_or(8);
    let hits = table.lines.iter().filter_map(|row| row.hits).max().filter(|_| !is_of_hits);
    let never = if table.lines.iter().any(|row| row.hits == Some(0)) { NEVER.len() } else { 0 };
    let hits_width = hits.map_or(0, |most| grouped(most).len().max(never.max("hits".len())));
    let listing = Listing { profile, table, style, labels: Labels::of(profile), scale, width, hits_width };
    text.push('\n');
    text += &listing.function();
    for file in listing.files() {
        text += &listing.file(file);
    }
    text += &listing.elsewhere();
    text
}

/// How gcov marks a line that has code and was never executed.
const NEVER: &str = "#####";

fn hits_cell(hits: u64) -> String {
    if hits == 0 { NEVER.to_owned() } else { grouped(hits) }
}

struct Listing<'a> {
    profile: &'a Profile,
    table: &'a LineTable,
    style: &'a Style,
    labels: Labels<'a>,
    scale: Scale,
    width: usize,
    /// How wide the column of hits is; 0 where there is none.
    hits_width: usize,
}

impl<'a> Listing<'a> {
    fn function(&self) -> String {
        let name = self.labels.with_place(self.table.function);
        let share = |measure: Measure| percent(self.table.basis.share(measure.cost));
        let (own, total) = (share(self.table.self_cost), share(self.table.total_cost));
        let total = match self.table.totals {
            totals if totals.is_known() => format!(", {total} % total"),
            TotalSource::Bounded => format!(", at least {total} % total: contexts were folded"),
            _ => "; what its callees cost was not counted: treering count --tree".to_owned(),
        };
        format!("{}: {own} % self{total}\n", self.style.bold(&name))
    }

    fn has_totals(&self) -> bool {
        self.table.totals.is_known()
    }

    /// A cell of the column of total costs, and the gap behind it; nothing where they are not known.
    fn total_cell(&self, text: &str) -> String {
        let width = self.width;
        if self.has_totals() { format!("{text:>width$}  ") } else { String::new() }
    }

    /// The files that have lines, each once, in the order of the lines.
    fn files(&self) -> Vec<StringId> {
        let mut files: Vec<StringId> = self.table.lines.iter().map(|row| row.file).collect();
        files.dedup();
        files
    }

    fn file(&self, file: StringId) -> String {
        let rows: Vec<&LineRow> = self.table.lines.iter().filter(|row| row.file == file).collect();
        let width = self.width;
        let (total, own) = (self.total_cell(&self.scale.heading("total")), self.scale.heading("self"));
        let hits = self.hits("hits");
        let heading = format!("\n{total}{own:>width$}{hits}  {:>6}  {}", "line", &self.profile.strings[file]);
        let mut text = format!("{}\n", self.style.bold(&heading));
        match self.source(file) {
            Some(source) => text += &self.with_source(&rows, &source),
            None => rows.iter().for_each(|row| text += &self.row(row, "")),
        }
        text
    }

    /// A cell of the column of hits, if there is one.
    fn hits(&self, text: &str) -> String {
        match self.hits_width {
            0 => String::new(),
            width => format!("  {text:>width$}"),
        }
    }

    fn source(&self, file: StringId) -> Option<Vec<&'a str>> {
        let source = self.profile.sources.iter().find(|source| source.file == file)?;
        Some(source.text.lines().collect())
    }

    /// Rows with their source text, and the lines between them that are near.
    fn with_source(&self, rows: &[&LineRow], source: &[&str]) -> String {
        let (mut text, mut next) = (String::new(), 0);
        let of = |line: u32| (line as usize).checked_sub(1).and_then(|at| source.get(at)).copied();
        for (at, row) in rows.iter().enumerate() {
            let first = row.line.saturating_sub(CONTEXT).max(1);
            if next > 0 && first > next {
                text += &self.style.dim(&format!(
                    "{:>gap$}\n",
                    "…",
                    gap = self.total_cell("").len() + self.width + 8 + self.hits("").len()
                ));
            }
            (first.max(next)..row.line).filter_map(|line| Some((line, of(line)?))).for_each(
                |(line, source)| {
                    text += &self.plain(line, source);
                },
            );
            text += &self.row(row, of(row.line).unwrap_or(""));
            let following = rows.get(at + 1).map_or(u32::MAX, |next| next.line);
            next = row.line.saturating_add(1 + CONTEXT).min(following);
            (row.line.saturating_add(1)..next)
                .filter_map(|line| Some((line, of(line)?)))
                .for_each(|(line, source)| text += &self.plain(line, source));
        }
        text
    }

    /// A line without cost.
    fn plain(&self, line: u32, source: &str) -> String {
        let width = self.width;
        let cells = format!("{}{:width$}{}  {line:>6}  ", self.total_cell(""), "", self.hits(""));
        format!("{}{}\n", self.style.dim(&cells), self.style.dim(&self.style.fit(cells.len(), source)))
    }

    fn row(&self, row: &LineRow, source: &str) -> String {
        let (total, width) = (row.total_cost(), self.width);
        let line = if row.line == 0 { "?".to_owned() } else { row.line.to_string() };
        let own = if row.self_cost.is_zero() { String::new() } else { self.scale.text(row.self_cost) };
        let hits = self.hits(&row.hits.map_or_else(String::new, hits_cell));
        let total_cell = self.total_cell(&self.scale.text(total));
        let cells = format!("{total_cell}{own:>width$}{hits}  {line:>6}  ");
        let source = self.style.fit(cells.len(), source);
        let text = format!("{}{source}", self.style.heat(self.table.basis.share(total.cost), &cells));
        let calls = row.calls.iter().map(|call| self.call(call));
        format!("{}\n{}", text.trim_end(), calls.collect::<String>())
    }

    /// A call made from the line above.
    fn call(&self, call: &LineCall) -> String {
        let width = self.width;
        let (total, hits) = (self.total_cell(&self.scale.text(call.total_cost)), self.hits(""));
        let cells = format!("{total}{:width$}{hits}  {:6}    → ", "", "");
        let name = self.labels.with_module(call.callee);
        let itself = if call.callee == self.table.function { " (recursive)" } else { "" };
        let calls = match call.calls {
            0 => String::new(),
            calls => format!(", {}", plural(calls, "call")),
        };
        self.style
            .dim(&format!("{cells}{}{calls}{itself}", self.style.fit_name(cells.chars().count(), &name)))
            + "\n"
    }

    /// The costs without a line.
    fn elsewhere(&self) -> String {
        let width = self.width;
        let mut text = String::new();
        if !self.table.self_elsewhere.is_zero() || !self.table.calls_elsewhere.is_empty() {
            text += &format!("\n{}\n", self.style.bold("without a known line"));
        }
        if !self.table.self_elsewhere.is_zero() {
            let own = self.scale.text(self.table.self_elsewhere);
            text += &format!("{}{own:>width$}\n", self.total_cell(&own));
        }
        let calls: u64 = self.table.calls_elsewhere.len() as u64;
        text += &self.table.calls_elsewhere.iter().map(|call| self.call(call)).collect::<String>();
        if self.table.lines.is_empty() && (calls > 0 || !text.is_empty()) {
            text += &format!("the profile knows no lines of this function; {} listed\n", grouped(calls));
        }
        text
    }
}
