//! How the costs of a program grow: the culprit, its parts, and the rest.

mod json;
#[cfg(test)]
mod tests;

use treering_compare::{Curve, FORETOLD, Form, FunctionPart, Scaling};

use crate::name::fit_chain;
use crate::number::percent;
use crate::printable::printable;
use crate::style::Style;
use crate::table::Table;

pub use json::growth_json;

/// How growth is shown.
#[derive(Clone, Copy, Debug)]
pub struct GrowthView<'a> {
    /// The name of the size, which is a parameter of the program.
    pub parameter: &'a str,
    /// The most rows; nothing for those that make a thousandth of the run now or of the one that is foretold, and at
    /// most 24.
    pub limit: Option<usize>,
    /// Sentences on how far the costs can be trusted.
    pub notes: &'a [String],
}

/// The verdict, the culprit with what it calls, and other functions.
pub fn growth_text(scaling: &Scaling, view: GrowthView<'_>, style: &Style) -> String {
    let mut text = headline(scaling, view.parameter, style);
    text.push('\n');
    text += &table(scaling, view).render(style);
    text + &footer(scaling, view, style)
}

/// The verdict in lines that fit: how the run grows and because of which function, and how much of the run that is.
fn headline(scaling: &Scaling, parameter: &str, style: &Style) -> String {
    let (cause, share) = growth_verdict(scaling, parameter);
    let lines = style.wrap_lines(&format!("{cause}\n{share}"));
    lines.split('\n').map(|line| style.bold(line) + "\n").collect()
}

/// The verdict in two sentences: how the run grows and because of which function, and how much of the run that is.
pub fn growth_verdict(scaling: &Scaling, parameter: &str) -> (String, String) {
    let is_settled = scaling.culprit.as_ref().is_none_or(|culprit| culprit.total_cost.is_settled);
    let form = growth_of(
        &Curve { is_settled: is_settled && scaling.run.is_settled, ..scaling.run.clone() },
        parameter,
    );
    let (now, then) = (size(scaling.largest()), size(scaling.foretold()));
    let faster = |curve: &Curve| if curve.outgrows() { "faster than" } else { "with" };
    let Some(culprit) = &scaling.culprit else {
        let cause = match scaling.run.form {
            faster if faster > Form::LINEAR => format!("{form}: no single function explains it"),
            _ => format!("{form}: the run grows no faster than {parameter}"),
        };
        let slope = scaling.run.slope.map_or_else(|| "·".to_owned(), |slope| format!("{slope:.2}"));
        let before = scaling.sizes.iter().rev().nth(1).copied().unwrap_or(1.0);
        return (cause, format!("slope {slope} from {parameter} = {} to {now}", size(before)));
    };
    let name = printable(&scaling.functions[culprit.function].name);
    let calls = culprit.calls.as_ref().map(|(calls, per_call)| {
        let often = match calls.form {
            Form::CONSTANT if calls.costs.iter().all(|&calls| calls == 1) => "once".to_owned(),
            Form::CONSTANT => "equally often".to_owned(),
            _ => format!("{} times", calls.growth(parameter)),
        };
        // How much faster is not known of calls that outgrow all forms as well.
        let dearer = if calls.outgrows() { "with" } else { faster(&culprit.total_cost) };
        format!(", called {often}, cost per call grows {dearer} {}", per_call.text(parameter))
    });
    let share = |share: f64| format!("{:.0} %", share * 100.0);
    let (share_now, share_then) =
        (share(scaling.share(&culprit.total_cost)), share(scaling.foretold_share(&culprit.total_cost)));
    (
        format!("{form}: {name}{}", calls.unwrap_or_default()),
        format!("{share_now} of the run at {parameter} = {now}, {share_then} at {then}"),
    )
}

/// The form, and a question mark where it is not settled.
fn growth_of(curve: &Curve, parameter: &str) -> String {
    let mark = if curve.is_settled { "" } else { " ?" };
    format!("{}{mark}", curve.growth(parameter))
}

/// A size as people write it.
fn size(size: f64) -> String {
    if size.fract() == 0.0 { crate::number::grouped(size as u64) } else { size.to_string() }
}

/// A row of the table: where it is in the tree of the culprit, and its numbers.
struct Row<'a> {
    prefix: &'static str,
    part: &'a FunctionPart,
}

fn table(scaling: &Scaling, view: GrowthView<'_>) -> Table {
    let has_intervals = scaling.run.slope_interval.is_some();
    let mut headings =
        vec![format!("self {}", size(scaling.largest())), format!("at {}", size(scaling.foretold()))];
    headings.extend(["growth", "slope"].map(str::to_owned));
    headings.extend(has_intervals.then(|| "95 %".to_owned()));
    headings.push("calls".to_owned());
    let mut table = Table::new(headings, "function");
    let all = whole(scaling);
    for Row { prefix, part } in rows(scaling, &all, view) {
        let curve = &part.self_cost;
        let (now, then) = (scaling.share(curve), scaling.foretold_share(curve));
        let slope = curve.slope.map_or_else(|| "·".to_owned(), |slope| format!("{slope:.2}"));
        let mut cells = vec![
            format!("{} %", percent(now)),
            format!("{} %", percent(then)),
            growth_of(curve, view.parameter),
            slope,
        ];
        if has_intervals {
            let bounds = curve.slope_interval.map(|(low, high)| format!("[{low:.2}, {high:.2}]"));
            cells.push(bounds.unwrap_or_default().replace('-', "−"));
        }
        cells.push(part.calls.as_ref().map_or_else(|| "·".to_owned(), |calls| calls.growth(view.parameter)));
        table.row(cells, format!("{prefix}{}", row_name(scaling, part.function)), now.max(then));
    }
    table
}

/// Every function of a run without a culprit, from the one that is foretold to cost most.
fn whole(scaling: &Scaling) -> Vec<FunctionPart> {
    if scaling.culprit.is_some() {
        return Vec::new();
    }
    let functions = scaling.functions.iter().enumerate();
    let mut parts: Vec<FunctionPart> = functions
        .map(|(function, growth)| FunctionPart {
            function,
            self_cost: growth.self_cost.clone(),
            calls: growth.calls.clone(),
        })
        .collect();
    let cost = |part: &FunctionPart| part.self_cost.model.at(scaling.foretold());
    parts.sort_by(|a, b| cost(b).total_cmp(&cost(a)).then_with(|| a.function.cmp(&b.function)));
    parts
}

fn rows<'a>(scaling: &'a Scaling, whole: &'a [FunctionPart], view: GrowthView<'_>) -> Vec<Row<'a>> {
    const MOST: usize = 24;
    const LEAST_SHARE: f64 = 0.001;
    let counts = |part: &&FunctionPart| {
        scaling.share(&part.self_cost).max(scaling.foretold_share(&part.self_cost)) >= LEAST_SHARE
    };
    let limit = view.limit.unwrap_or(MOST);
    let Some(culprit) = &scaling.culprit else {
        let shown = whole.iter().filter(counts).take(limit);
        return shown.map(|part| Row { prefix: "", part }).collect();
    };
    // The culprit itself is there, however little it costs by itself.
    let within =
        culprit.parts.iter().enumerate().filter(|(at, part)| *at == 0 || counts(part)).map(|(_, part)| part);
    let within: Vec<&FunctionPart> = within.take(limit).collect();
    let elsewhere = culprit.elsewhere.iter().filter(counts).take(limit - within.len());
    let prefix = |at: usize| match at {
        0 => "",
        _ if at + 1 == within.len() => "└ ",
        _ => "├ ",
    };
    let within = within.iter().enumerate().map(|(at, part)| Row { prefix: prefix(at), part });
    within.chain(elsewhere.map(|part| Row { prefix: "", part })).collect()
}

/// The name of a function, with its module where another one has the same name.
fn row_name(scaling: &Scaling, function: usize) -> String {
    let growth = &scaling.functions[function];
    let mut name = printable(&growth.name).into_owned();
    let same = scaling.functions.iter().filter(|other| other.name == growth.name).count();
    if let Some(module) = growth.module.as_ref().filter(|_| same > 1) {
        name += &format!(" [{}]", printable(module));
    }
    name
}

fn footer(scaling: &Scaling, view: GrowthView<'_>, style: &Style) -> String {
    let mut text = String::new();
    let chain = scaling.culprit.as_ref().map(|culprit| &culprit.chain);
    if let Some(chain) = chain.filter(|chain| chain.len() > 1) {
        let names: Vec<String> =
            chain.iter().map(|&function| printable(&scaling.functions[function].name).into_owned()).collect();
        let begin = "called by ";
        let callers = &names[..names.len() - 1];
        let room = style.room(begin.len()).unwrap_or(usize::MAX);
        text += &format!("\n{begin}{}\n", fit_chain(callers, room));
    }
    let how = match (scaling.is_exact, scaling.run.slope_interval.is_some()) {
        (true, _) => "exact",
        (false, true) => "sampled",
        (false, false) => "measured, errors not known",
    };
    let metric = printable(&scaling.metric);
    let all = whole(scaling);
    let is_settled = rows(scaling, &all, view).iter().all(|row| row.part.self_cost.is_settled);
    let unsettled = match scaling.run.slope_interval {
        _ if is_settled && scaling.run.is_settled => "",
        None => " · ?: changes without the largest size",
        Some(_) => " · ?: chance may make it",
    };
    let note = format!(
        "{} sizes of {}, {metric}, {how} · slope: last step · at {}: extrapolated {FORETOLD} times{unsettled}",
        scaling.sizes.len(),
        view.parameter,
        size(scaling.foretold()),
    );
    text += &style.dim(&style.wrap(&note, 0));
    text.push('\n');
    for note in view.notes {
        text += &style.dim(&style.wrap(&printable(note), 0));
        text.push('\n');
    }
    text
}
