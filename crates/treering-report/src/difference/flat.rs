//! The functions that changed.

use treering_compare::{Difference, FunctionChange, Reason};

use crate::number::plural;
use crate::printable::printable;
use crate::style::Style;
use crate::table::Table;

use super::Rows;
use super::amounts::{Amounts, calls, signed_count};
use super::facts::facts_text;
use super::verdict::Verdict;

/// The verdict, the functions that changed, and what paired.
pub fn difference_text(difference: &Difference, style: &Style, rows: Rows) -> String {
    let mut text = headline(difference, style);
    let (shown, rest) = shown(difference, rows);
    if !shown.is_empty() {
        text.push('\n');
        text += &table(difference, &shown, &rest).render(style);
        if shown.iter().chain(&rest).any(|row| !row.certainty.is_certain) {
            text += &style.dim(&style.wrap("?: chance alone may make this change", 0));
            text.push('\n');
        }
    }
    text.push('\n');
    text + &facts_text(difference, style)
}

/// The verdict in lines that fit.
pub(super) fn headline(difference: &Difference, style: &Style) -> String {
    let verdict = style.wrap(&Verdict::of(difference).text, 0);
    let lines: Vec<String> = verdict.split('\n').map(|line| style.bold(line)).collect();
    lines.join("\n") + "\n"
}

/// The rows to show, and the rest of those that changed.
pub(super) fn shown(difference: &Difference, rows: Rows) -> (Vec<&FunctionChange>, Vec<&FunctionChange>) {
    const MOST: usize = 12;
    let mut changed: Vec<&FunctionChange> =
        difference.functions.iter().filter(|row| row.self_cost.change() != 0).collect();
    let size = |row: &FunctionChange| row.self_cost.change().unsigned_abs();
    let limit = rows.limit.unwrap_or_else(|| {
        let all: u128 = changed.iter().map(|row| size(row)).sum();
        let mut explained = 0;
        let needed = changed.iter().take_while(|row| {
            let more = explained * 10 < all * 9;
            explained += size(row);
            more
        });
        needed.count().min(MOST)
    });
    let rest = changed.split_off(limit.min(changed.len()));
    (changed, rest)
}

/// The name of a row, with its module where another function has the same name.
pub(super) fn row_name(difference: &Difference, row: &FunctionChange) -> String {
    let group = &difference.pairing.groups[row.group];
    let mut name = printable(&row.name).into_owned();
    let same = difference.functions.iter().filter(|other| other.name == row.name).count();
    if let Some(module) = group.module.as_ref().filter(|_| same > 1) {
        name += &format!(" [{}]", printable(module));
    }
    if !group.is_paired() {
        name += if group.functions.base.is_empty() { " (only head)" } else { " (only base)" };
    }
    name
}

/// The columns of a table of functions.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Columns {
    /// The change in two parts, and the calls; with the interval of the change where costs are of samples.
    Split { intervals: bool },
    /// The change with its interval, and both costs.
    Intervals,
    /// The change and both costs.
    Costs,
}

impl Columns {
    fn of(difference: &Difference) -> Self {
        let any = |has: fn(&FunctionChange) -> bool| difference.functions.iter().any(has);
        match (any(|row| row.split.is_some()), any(|row| row.certainty.interval.is_some())) {
            (true, intervals) => Self::Split { intervals },
            (false, true) => Self::Intervals,
            (false, false) => Self::Costs,
        }
    }

    fn headings(self) -> Vec<String> {
        let headings: &[&str] = match self {
            Self::Split { intervals: true } => &["change", "95 %", "more calls", "cost/call", "calls"],
            Self::Split { intervals: false } => &["change", "more calls", "cost/call", "calls"],
            Self::Intervals => &["change", "95 %", "base → head"],
            Self::Costs => &["change", "base → head"],
        };
        headings.iter().map(|&heading| heading.to_owned()).collect()
    }
}

fn table(difference: &Difference, shown: &[&FunctionChange], rest: &[&FunctionChange]) -> Table {
    let amounts = Amounts::of_changes(difference);
    let columns = Columns::of(difference);
    let mut table = Table::new(columns.headings(), "function");
    for row in shown {
        table.row(cells(&amounts, row, columns), row_name(difference, row), 0.0);
        if let (Columns::Split { intervals }, Some((mut cells, name))) = (columns, caller(difference, row)) {
            cells.resize_with(cells.len() + usize::from(intervals), String::new);
            cells.rotate_right(usize::from(intervals));
            table.row(cells, name, 0.0);
        }
    }
    if !rest.is_empty() {
        let name = format!("{} more", plural(rest.len() as u64, "function"));
        table.row(sum_cells(&amounts, rest, columns), name, 0.0);
    }
    let all: Vec<&FunctionChange> = difference.functions.iter().collect();
    let runs = Amounts::of_runs(difference).both(difference.run.map(|run| run.cost));
    table.row(sum_cells(&amounts, &all, columns), runs, 0.0);
    table
}

fn cells(amounts: &Amounts, row: &FunctionChange, columns: Columns) -> Vec<String> {
    let mark = if row.certainty.is_certain { "" } else { " ?" };
    let change = format!("{}{mark}", amounts.signed(row.self_cost.change()));
    let both = || amounts.both(row.self_cost.map(|cost| cost.cost));
    let interval = || row.certainty.interval.map_or(String::new(), |interval| amounts.interval(interval));
    match columns {
        Columns::Split { intervals } => {
            let split = row.split.unwrap_or_default();
            let calls = row.calls.map_or(String::new(), calls);
            let parts = [amounts.signed(split.more_calls), amounts.signed(split.cost_per_call), calls];
            [change].into_iter().chain(intervals.then(interval)).chain(parts).collect()
        }
        Columns::Intervals => vec![change, interval(), both()],
        Columns::Costs => vec![change, both()],
    }
}

/// The caller that is the cause, below the function that it calls more often.
fn caller(difference: &Difference, row: &FunctionChange) -> Option<(Vec<String>, String)> {
    let cause = difference.cause.filter(|cause| cause.function == row.group)?;
    let Reason::Calls { caller, calls, .. } = cause.reason else { return None };
    let name = printable(&difference.pairing.groups[caller].name).into_owned();
    let blank = String::new;
    Some((vec![blank(), blank(), blank(), signed_count(calls.change())], format!("← {name}")))
}

fn sum_cells(amounts: &Amounts, rows: &[&FunctionChange], columns: Columns) -> Vec<String> {
    let sum = |part: fn(&FunctionChange) -> i128| amounts.signed(rows.iter().map(|row| part(row)).sum());
    let change = sum(|row| row.self_cost.change());
    let blank = String::new;
    match columns {
        Columns::Split { intervals } => {
            let more_calls = sum(|row| row.split.map_or(0, |split| split.more_calls));
            let cost_per_call = sum(|row| row.split.map_or(0, |split| split.cost_per_call));
            let parts = [more_calls, cost_per_call, blank()];
            [change].into_iter().chain(intervals.then(blank)).chain(parts).collect()
        }
        Columns::Intervals => vec![change, blank(), blank()],
        Columns::Costs => vec![change, blank()],
    }
}
