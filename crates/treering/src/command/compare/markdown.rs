//! A comparison as a review comment.

use std::fmt::Write as _;

use treering_report::{Outcome, Rows, difference_markdown, markdown_code, markdown_text};

use super::Comparison;
use super::compilers;
use super::text::{Scale, advice, exact_facts, time_facts};
use super::timed::Timed;
use super::verdict::{Verdict, exact_text, interval, percent, time_text};

/// The heading is the verdict. The mark lets whoever posts the comment find and replace it.
pub(super) fn markdown(comparison: &Comparison, verdict: &Verdict) -> String {
    let mut text = "<!-- treering:compare -->\n".to_owned();
    let heading = |outcome: Outcome, title: &str| format!("### {}{}\n", mark(outcome), markdown_text(title));
    match (&comparison.exact, &comparison.timed) {
        (Some(exact), timed) => {
            let has_rows = !exact.difference.apart.is_all() && exact.compilers.is_none();
            if verdict.disagrees || !has_rows {
                text += &heading(verdict.outcome, &verdict.text);
            }
            if has_rows {
                let difference = difference_markdown(&exact.difference, Rows { limit: None });
                let difference = difference.split_once('\n').map_or("", |(_, rest)| rest);
                text += &if verdict.disagrees {
                    difference.replacen("### ", "\n#### ", 1)
                } else {
                    difference.to_owned()
                };
            } else if verdict.text != exact_text(exact) {
                let _ = writeln!(text, "\n{}", markdown_text(&exact_text(exact)));
            }
            if exact.compilers.is_some() && !exact.difference.apart.is_all() {
                let _ = writeln!(text, "\n{}", markdown_text(&compilers::explanation(&exact.difference)));
            }
            if let Some(timed) = timed {
                text += &table(timed);
            }
            let facts =
                exact_facts(exact).into_iter().map(|(word, line)| markdown_text(&format!("{word}: {line}")));
            text += &foot(comparison, facts.collect());
        }
        (None, Some(timed)) => {
            text += &heading(verdict.outcome, &time_text(timed));
            text += &table(timed);
            text += &foot(comparison, Vec::new());
        }
        (None, None) => {}
    }
    text
}

fn mark(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::More => "▲ ",
        Outcome::Less => "▼ ",
        Outcome::Undecided => "? ",
        Outcome::Same => "",
    }
}

fn table(timed: &Timed) -> String {
    let scale = Scale::of(&timed.cpu);
    let both = scale.both(timed.cpu.map(|cpu| cpu.median));
    let control = timed.control.as_ref();
    let control =
        control.map_or(String::new(), |control| format!("{} {}", percent(control.change), interval(control)));
    let mut text = format!(
        "\n| CPU time | change, 99 % | base again |\n|--:|:--|:--|\n| {both} | {} {} | {control} |\n",
        percent(timed.change.change),
        interval(&timed.change)
    );
    if timed.judgement.outcome == treering_measure::Outcome::Undecided {
        let _ = writeln!(text, "\n{}", markdown_text(&advice(timed)));
    }
    let _ = writeln!(text, "\n<sub>{}</sub>", markdown_text(&time_facts(timed).join(" · ")));
    text
}

fn foot(comparison: &Comparison, facts: Vec<String>) -> String {
    let base = markdown_code(&comparison.commands.base);
    let head = markdown_code(&comparison.commands.head);
    let all =
        [vec![format!("base {base}"), format!("head {head}")], facts, vec!["`treering compare`".to_owned()]];
    format!("\n<sub>{}</sub>\n", all.concat().join(" · "))
}
