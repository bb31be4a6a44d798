//! The lines of a function that changed.

use serde::Serialize;
use treering_analysis::Measure;
use treering_compare::{Difference, LineChange, LineChanges, MatchedBy, Sides};

use crate::number::plural;
use crate::printable::printable;
use crate::style::Style;
use crate::table::Table;

use super::Rows;
use super::amounts::Amounts;

/// The lines of a function whose self cost changed, in the order of the head. `rows` keeps those that changed most.
pub fn difference_lines_text(
    difference: &Difference,
    changes: &LineChanges,
    style: &Style,
    rows: Rows,
) -> String {
    const MOST: usize = 24;
    let amounts = amounts(difference, changes);
    let mut changed: Vec<&LineChange> =
        changes.lines.iter().filter(|line| line.self_cost.change() != 0).collect();
    let limit = rows.limit.unwrap_or(MOST);
    let mut sizes: Vec<u128> = changed.iter().map(|line| line.self_cost.change().unsigned_abs()).collect();
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    let least = sizes.get(limit.wrapping_sub(1)).copied().unwrap_or(if limit == 0 { u128::MAX } else { 0 });
    changed.retain(|line| line.self_cost.change().unsigned_abs() >= least);
    changed.truncate(limit);
    let files: Vec<&str> = changed.iter().map(|line| line.file.as_str()).collect();
    let one_file = files.windows(2).all(|pair| pair[0] == pair[1]);
    let costs = |self_cost: Sides<Measure>| amounts.both(self_cost.map(|cost| cost.cost));

    let mut table = Table::new(["change", "base → head", "line"].map(str::to_owned).into(), "source");
    let mut shown = 0;
    for line in &changed {
        shown += line.self_cost.change();
        let place = place(line.line);
        let place = if one_file { place } else { format!("{}:{place}", printable(&line.file)) };
        let text = line.text.as_deref().unwrap_or_default();
        let cells = vec![amounts.signed(line.self_cost.change()), costs(line.self_cost), place];
        table.row(cells, printable(text).replace('\t', "    "), 0.0);
    }
    let all = changes.lines.iter().map(|line| line.self_cost.change()).sum::<i128>();
    let others = changes.lines.iter().filter(|line| line.self_cost.change() != 0).count() - changed.len();
    if others > 0 {
        let name = format!("{} more", plural(others as u64, "line"));
        table.row(vec![amounts.signed(all - shown), String::new(), String::new()], name, 0.0);
    }
    if !changes.elsewhere.is_zero() {
        let cells = vec![amounts.signed(changes.elsewhere.change()), costs(changes.elsewhere), String::new()];
        table.row(cells, "on no known line".to_owned(), 0.0);
    }
    let sum = all + changes.elsewhere.change();
    table.row(vec![amounts.signed(sum), costs(whole(changes)), String::new()], "self cost".to_owned(), 0.0);

    let name = printable(&difference.pairing.groups[changes.group].name).into_owned();
    let file =
        files.first().filter(|_| one_file).map_or(String::new(), |file| format!("  {}", printable(file)));
    let mut text = format!("{}{file}\n\n", style.bold(&name));
    text += &table.render(style);
    if changes.matched == MatchedBy::Place {
        let note = "lines are paired by their distance from the head of the function, for one profile has no source text";
        text += &style.dim(&style.wrap(note, 0));
        text.push('\n');
    }
    text
}

fn whole(changes: &LineChanges) -> Sides<Measure> {
    let mut whole = changes.elsewhere;
    for line in &changes.lines {
        whole.base += line.self_cost.base;
        whole.head += line.self_cost.head;
    }
    whole
}

fn amounts(difference: &Difference, changes: &LineChanges) -> Amounts {
    let whole = whole(changes);
    Amounts::of(difference.unit, u128::from(whole.base.cost.max(whole.head.cost)))
}

/// `12`, `12 → 14`, or a line of one version alone: `12 →` and `→ 14`.
fn place(line: Sides<Option<u32>>) -> String {
    match (line.base, line.head) {
        (Some(base), Some(head)) if base == head => head.to_string(),
        (Some(base), Some(head)) => format!("{base} → {head}"),
        (Some(base), None) => format!("{base} →"),
        (None, head) => format!("→ {}", head.map_or(String::new(), |line| line.to_string())),
    }
}

#[derive(Serialize)]
struct Document<'a> {
    view: &'static str,
    metric: &'a str,
    function: &'a str,
    matched_by: &'static str,
    lines: Vec<LineObject<'a>>,
    elsewhere: Both<u64>,
}

#[derive(Serialize)]
struct LineObject<'a> {
    file: &'a str,
    line: Both<Option<u32>>,
    text: Option<&'a str>,
    self_cost: Both<u64>,
}

#[derive(Serialize)]
struct Both<T> {
    base: T,
    head: T,
}

fn both(cost: Sides<Measure>) -> Both<u64> {
    Both { base: cost.base.cost, head: cost.head.cost }
}

/// All lines of a function that cost something, as JSON. The keys are described in `docs/json.md`.
pub fn difference_lines_json(difference: &Difference, changes: &LineChanges) -> String {
    let document = Document {
        view: "diff-lines",
        metric: &difference.metric,
        function: &difference.pairing.groups[changes.group].name,
        matched_by: match changes.matched {
            MatchedBy::Text => "text",
            MatchedBy::Place => "place",
        },
        lines: changes
            .lines
            .iter()
            .map(|line| LineObject {
                file: &line.file,
                line: Both { base: line.line.base, head: line.line.head },
                text: line.text.as_deref(),
                self_cost: both(line.self_cost),
            })
            .collect(),
        elsewhere: both(changes.elsewhere),
    };
    let mut text = serde_json::to_string_pretty(&document).unwrap_or_default();
    text.push('\n');
    text
}
