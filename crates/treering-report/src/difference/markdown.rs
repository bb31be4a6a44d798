//! A difference as a review comment.

use std::fmt::Write as _;

use treering_compare::Difference;

use crate::number::plural;

use super::Rows;
use super::amounts::{Amounts, calls};
use super::facts::fact_lines;
use super::flat::{row_name, shown};
use super::verdict::{Outcome, Verdict, reason};

/// A difference as GitHub's Markdown, for a review comment: the verdict as its heading, the cause, and a table of at most
/// ten functions. Names are code, so that nothing in them is markup.
pub fn difference_markdown(difference: &Difference, rows: Rows) -> String {
    const MOST: usize = 10;
    let verdict = Verdict::of(difference);
    let mark = match verdict.outcome {
        Outcome::More => "▲ ",
        Outcome::Less => "▼ ",
        Outcome::Undecided => "? ",
        Outcome::Same => "",
    };
    let headline = verdict.text.split(": ").next().unwrap_or_default();
    let mut text = match (verdict.outcome, verdict.text.split_once(": ")) {
        (Outcome::Undecided | Outcome::Same, Some((_, rest))) => {
            let rest = rest.split(": ").next().unwrap_or(rest);
            format!("<!-- treering:diff -->\n### {mark}{headline}: {}\n", escaped(rest))
        }
        _ => format!("<!-- treering:diff -->\n### {mark}{}\n", escaped(headline)),
    };
    if let Some(cause) = &difference.cause {
        let _ = writeln!(text, "\n{}", code(&reason(difference, cause)));
    }
    let limit = rows.limit.unwrap_or(MOST).min(MOST);
    let (shown, mut rest) = shown(difference, rows);
    let (shown, more) = shown.split_at(limit.min(shown.len()));
    rest.extend(more);
    if !shown.is_empty() {
        let title = plural(shown.len() as u64, "function");
        let _ = writeln!(text, "\n<details><summary>Where: {title}</summary>\n");
        text += &table(difference, shown);
        if !rest.is_empty() {
            let sum: i128 = rest.iter().map(|row| row.self_cost.change()).sum();
            let sum = Amounts::of_changes(difference).signed(sum);
            let _ = writeln!(text, "\n{sum} in {} more", plural(rest.len() as u64, "function"));
        }
        text += "</details>\n";
    }
    let facts: Vec<String> = fact_lines(difference)
        .into_iter()
        .map(|(word, line)| format!("{word}: {}", escaped(&line)))
        .collect();
    let _ = writeln!(text, "\n<sub>{} · `treering diff`</sub>", facts.join(" · "));
    text
}

fn table(difference: &Difference, shown: &[&treering_compare::FunctionChange]) -> String {
    let amounts = Amounts::of_changes(difference);
    let in_two = difference.functions.iter().any(|row| row.split.is_some());
    let mut text = match in_two {
        true => {
            "| change | more calls | cost per call | calls | function |\n|--:|--:|--:|--:|:--|\n".to_owned()
        }
        false => "| change | base → head | function |\n|--:|--:|:--|\n".to_owned(),
    };
    for row in shown {
        let mark = if row.certainty.is_certain { "" } else { " ?" };
        let change = amounts.signed(row.self_cost.change());
        let name = code(&row_name(difference, row));
        let _ = match row.split.filter(|_| in_two) {
            Some(split) => writeln!(
                text,
                "| {change}{mark} | {} | {} | {} | {name} |",
                amounts.signed(split.more_calls),
                amounts.signed(split.cost_per_call),
                row.calls.map_or(String::new(), calls)
            ),
            None => {
                let both = amounts.both(row.self_cost.map(|cost| cost.cost));
                writeln!(text, "| {change}{mark} | {both} | {name} |")
            }
        };
    }
    text
}

/// A name as code; a fence longer than any run of backticks in it. Bars would end a cell.
pub fn code(name: &str) -> String {
    let longest = name.split(|letter| letter != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let space = if name.starts_with('`') || name.ends_with('`') { " " } else { "" };
    format!("{fence}{space}{}{space}{fence}", name.replace('|', "\\|"))
}

/// A text in which nothing is markup.
pub fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '#' | '|' | '@' | '~' => {
                escaped.push('\\');
                escaped.push(letter);
            }
            _ => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_never_markup() {
        assert_eq!(code("a|b"), "`a\\|b`");
        assert_eq!(code("`x``y`"), "``` `x``y` ```");
        assert_eq!(escaped("<b>*x* @me</b>"), "&lt;b&gt;\\*x\\* \\@me&lt;/b&gt;");
    }
}
