//! A comparison as text.

use std::fmt::Write as _;

use treering_compare::Sides;
use treering_measure::{Outcome, Sample, Summary, clock_step_ms};
use treering_report::{Rows, Style, difference_text, grouped, plural, printable};

use super::Comparison;
use super::compilers;
use super::exact::Exact;
use super::progress::seconds;
use super::timed::Timed;
use super::verdict::{Verdict, exact_text, floor, interval, percent, time_text};

/// The verdict first, then what it follows from.
pub(super) fn text(comparison: &Comparison, verdict: &Verdict, style: &Style) -> String {
    match (&comparison.exact, &comparison.timed) {
        (Some(exact), Some(timed)) if verdict.disagrees => disagreement(verdict, exact, timed, style),
        (exact, timed) => {
            let exact = exact.iter().map(|exact| counts(exact, style));
            let timed = timed.iter().map(|timed| times(timed, style));
            exact.chain(timed).collect::<Vec<_>>().join("\n")
        }
    }
}

fn title(text: &str, style: &Style) -> String {
    let lines = style.wrap(text, 0);
    lines.split('\n').map(|line| style.bold(line) + "\n").collect()
}

fn counts(exact: &Exact, style: &Style) -> String {
    let mut text = if exact.difference.apart.is_all() {
        title(&exact_text(exact), style)
    } else if exact.compilers.is_some() {
        let why = compilers::explanation(&exact.difference);
        let why: String = why.lines().map(|line| style.wrap(line, 0) + "\n").collect();
        title(&exact_text(exact), style) + &why
    } else {
        difference_text(&exact.difference, style, Rows { limit: None })
    };
    for (word, line) in exact_facts(exact) {
        let line = style.wrap(&line, word.len().max(8) + 1);
        text += &style.dim(&format!("{word:<8} {line}"));
        text.push('\n');
    }
    text
}

/// How equal two runs of the base are.
pub(super) fn exact_facts(exact: &Exact) -> Vec<(&'static str, String)> {
    let apart = &exact.difference.apart;
    let mut facts = Vec::new();
    if apart.differing == 0 {
        facts.push(("exact", "base counted twice: 0 difference".to_owned()));
    } else {
        let run = exact.difference.run.base.cost;
        let moved = apart.moved.min(u128::from(u64::MAX)) as u64;
        let share = moved as f64 / run.max(1) as f64 * 100.0;
        let mut text = format!(
            "{} runs of base differ in {}, by up to {} of {} instructions ({share:.3} %)",
            exact.runs,
            plural(apart.differing as u64, "function"),
            grouped(moved),
            grouped(run)
        );
        if !apart.functions.is_empty() {
            text += &format!("; head too: {}", some_functions(exact));
        }
        facts.push(("set apart", text));
    }
    if exact.paths_differ && !exact.difference.apart.is_all() {
        let text =
            "the programs' names are not equally long; the C library looks at them, for some instructions";
        facts.push(("names", text.to_owned()));
    }
    facts.extend(exact.held.iter().map(|note| ("held", note.clone())));
    facts.extend(exact.not_counted.iter().map(|note| ("missing", note.clone())));
    if exact.output_varies {
        facts.push(("output", "differs between two runs of base, so it was not compared".to_owned()));
    }
    facts
}

fn some_functions(exact: &Exact) -> String {
    const SHOWN: usize = 3;
    let names = exact.difference.apart.functions.iter().take(SHOWN).map(|&(group, change)| {
        let name = printable(&exact.difference.pairing.groups[group].name).into_owned();
        let sign = if change < 0 { '−' } else { '+' };
        format!("{name} {sign}{}", grouped(change.unsigned_abs().min(u128::from(u64::MAX)) as u64))
    });
    let names: Vec<String> = names.collect();
    let more = exact.difference.apart.functions.len().saturating_sub(SHOWN);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    names.join(", ") + &more
}

fn times(timed: &Timed, style: &Style) -> String {
    let mut text = title(&time_text(timed), style);
    if timed.judgement.outcome == Outcome::Undecided {
        text += &style.wrap(&advice(timed), 0);
        text.push('\n');
    }
    text.push('\n');
    text += &table(timed);
    text.push('\n');
    for line in time_facts(timed) {
        text += &style.dim(&style.wrap(&line, 0));
        text.push('\n');
    }
    text
}

/// How an undecided comparison could be decided.
pub(super) fn advice(timed: &Timed) -> String {
    match timed.judgement.rounds_to_settle {
        Some(rounds) => {
            let time = timed.round * u32::try_from(rounds).unwrap_or(u32::MAX);
            format!("about {rounds} rounds should settle it ({}): -n {rounds}", seconds(time))
        }
        None => "no reasonable number of rounds would settle it; count instructions: --exact".to_owned(),
    }
}

/// Times in the unit that suits them.
pub(super) struct Scale {
    factor: f64,
    unit: &'static str,
    decimals: usize,
}

impl Scale {
    pub(super) fn of(summaries: &Sides<Summary>) -> Self {
        match summaries.base.median.max(summaries.head.median) {
            10.0.. => Self { factor: 1.0, unit: "s", decimals: 2 },
            1.0.. => Self { factor: 1.0, unit: "s", decimals: 3 },
            0.001.. => Self { factor: 1e3, unit: "ms", decimals: 1 },
            _ => Self { factor: 1e6, unit: "µs", decimals: 0 },
        }
    }

    fn digits(&self, seconds: f64) -> String {
        format!("{:.*}", self.decimals, seconds * self.factor)
    }

    /// Both times and their unit.
    pub(super) fn both(&self, times: Sides<f64>) -> String {
        format!("{} → {} {}", self.digits(times.base), self.digits(times.head), self.unit)
    }
}

fn table(timed: &Timed) -> String {
    let scale = Scale::of(&timed.cpu);
    let unit = scale.unit;
    let row = |name: &str, summary: &Summary| {
        let deviation = summary.deviation.map_or_else(|| "?".to_owned(), |deviation| scale.digits(deviation));
        let digits = |time: f64| scale.digits(time);
        [
            name.to_owned(),
            format!("{} {unit}", digits(summary.median)),
            format!("{} ± {deviation} {unit}", digits(summary.mean)),
            format!("{} – {} {unit}", digits(summary.least), digits(summary.greatest)),
        ]
    };
    let headings = ["", "median", "mean ± SD", "least – greatest"].map(str::to_owned);
    let rows = [headings, row("base", &timed.cpu.base), row("head", &timed.cpu.head)];
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths = [0, 1, 2, 3].map(width);
    let mut text = String::new();
    for [name, median, mean, range] in &rows {
        let [_, first, second, third] = widths;
        let _ = writeln!(text, "  {name:<10}  {median:>first$}  {mean:>second$}  {range:>third$}");
    }
    if let Some(control) = &timed.control {
        let _ = writeln!(text, "  base again  {} {}", percent(control.change), interval(control));
    }
    text
}

/// How it was measured, and what else was.
pub(super) fn time_facts(timed: &Timed) -> Vec<String> {
    let rounds = plural(timed.samples.base.len() as u64, "shuffled round");
    let mut facts = vec![format!(
        "{rounds}, CPU time of the process and its children; floor {}; change of means without the slowest third, 99 %",
        floor(timed)
    )];
    let cpu_ns = |sample: &Sample| sample.cpu().as_nanos() as f64;
    let all: Vec<f64> = timed.samples.base.iter().chain(&timed.samples.head).map(cpu_ns).collect();
    if let Some(step) = clock_step_ms(&all) {
        facts.push(format!(
            "CPU times come in steps of {step} ms, so intervals are too narrow for changes of few steps"
        ));
    }
    if let Some(change) = &timed.wall_change {
        let medians = timed.wall.map(|wall| wall.median);
        let wall = Scale::of(&timed.wall).both(medians);
        facts.push(format!(
            "wall {wall}, {} {}: no verdict, since it depends on what else runs",
            percent(change.change),
            interval(change)
        ));
    }
    let megabytes = timed.memory.map(|memory| format!("{:.1}", memory.median / 1e6));
    facts.push(format!("memory {} → {} MB, the most at once", megabytes.base, megabytes.head));
    if timed.output_varies {
        facts.push("output differs between runs of base, so it was not compared".to_owned());
    }
    facts
}

fn disagreement(verdict: &Verdict, exact: &Exact, timed: &Timed, style: &Style) -> String {
    let mut text = title(&verdict.text, style);
    let run = exact.difference.run.map(|run| grouped(run.cost));
    let cause = exact_text(exact);
    let cause = cause.split_once(": ").map_or(String::new(), |(_, cause)| format!(": {cause}"));
    let instructions = format!("{} → {}{cause}", run.base, run.head);
    let _ = writeln!(text, "\n  instructions  {}", style.wrap(&instructions, 16));
    let times = Scale::of(&timed.cpu).both(timed.cpu.map(|cpu| cpu.median));
    let control = timed.control.as_ref().map_or(String::new(), |control| {
        format!(", base again {} {}", percent(control.change), interval(control))
    });
    let _ = writeln!(text, "  CPU time      {}", style.wrap(&format!("{times}{control}"), 16));
    if !exact.moved.is_empty() {
        const SHOWN: usize = 3;
        let names: Vec<_> = exact.moved.iter().take(SHOWN).map(|name| printable(name)).collect();
        let place = format!("place: {}: equal code, elsewhere within 64 bytes", names.join(", "));
        let _ = writeln!(text, "  suspect       {}", style.wrap(&place, 16));
    }
    let reason = "No verdict on time: other instructions may take longer or shorter, and so may the same at other \
                  addresses. Rounds do not tell which.";
    text += &style.wrap(reason, 0);
    text.push('\n');
    text
}
