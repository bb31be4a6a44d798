//! Facts about a comparison: pairs, functions of one profile alone, how many runs there are.

use std::fmt::Write as _;

use treering_compare::{Difference, FunctionChange, PairedBy, Sides, Spelling};

use crate::name::fit;
use crate::number::{grouped, plural};
use crate::printable::printable;
use crate::style::Style;

/// Lines that begin with a word each: `paired`, `renamed`, `alone`, `inlined`, `changed`, `compiler`, `callers`, `metric`, `rate`,
/// `runs`.
pub(super) fn fact_lines(difference: &Difference) -> Vec<(&'static str, String)> {
    let mut lines = vec![("paired", paired(difference))];
    lines.extend(renamed(difference).map(|text| ("renamed", text)));
    lines.extend(alone(difference).map(|text| ("alone", text)));
    lines.extend(inlined(difference).map(|text| ("inlined", text)));
    lines.extend(changed(difference).map(|text| ("changed", text)));
    lines.extend(compilers(difference).map(|text| ("compiler", text)));
    if difference.contexts.is_none() {
        let per_call = match difference.functions.iter().any(|change| change.split.is_some()) {
            true => ", so costs per call are averages over all callers",
            false => "",
        };
        lines.push(("callers", format!("callers were not compared: not both have stacks{per_call}")));
    }
    if let Some(base) = &difference.base_metric {
        let (base, head) = (printable(base), printable(&difference.metric));
        lines.push(("metric", format!("{base} of base and {head} of head, both processor time")));
    }
    if difference.may_be_of_another_rate {
        let text =
            "how often samples were taken is not known of both: another rate alone changes their number";
        lines.push(("rate", text.to_owned()));
    }
    if !difference.is_exact {
        let runs = difference.runs;
        let text = match difference.run_interval {
            Some(_) => format!(
                "{} each; the interval of the run is that of their means",
                plural(runs.head as u64, "run")
            ),
            None if runs.base.max(runs.head) > 1 => {
                "how much runs differ is not known: it takes three of each, not added up; record --runs 5 tells".to_owned()
            }
            None => "one run each: how much runs differ is not known; record --runs 5 tells".to_owned(),
        };
        lines.push(("runs", text));
    }
    lines
}

pub(super) fn facts_text(difference: &Difference, style: &Style) -> String {
    let mut text = String::new();
    for (word, line) in fact_lines(difference) {
        let line = style.wrap(&line, 9);
        let _ = writeln!(text, "{}", style.dim(&format!("{word:<8} {line}")));
    }
    text
}

fn paired(difference: &Difference) -> String {
    const SHOWN: usize = 4;
    let pairing = &difference.pairing;
    let named = pairing.modules.iter().map(|pair| {
        let by = match pair.by {
            PairedBy::BuildId => "by build id",
            PairedBy::Name => "by name",
            PairedBy::Main => "as the program",
        };
        match pair.names.base == pair.names.head {
            true => format!("{} {by}", printable(&pair.names.head)),
            false => format!("{} and {} {by}", printable(&pair.names.base), printable(&pair.names.head)),
        }
    });
    let mut modules: Vec<String> = named.take(SHOWN).collect();
    if let Some(more) = pairing.modules.len().checked_sub(SHOWN).filter(|&more| more > 0) {
        modules.push(format!("{} more", grouped(more as u64)));
    }
    let functions = match pairing.paired() as u64 {
        0 => "no function: are these of one program?".to_owned(),
        paired => plural(paired, "function"),
    };
    let mut text = modules.join(", ");
    if !text.is_empty() {
        text += "; ";
    }
    text + &functions
}

/// The room for a name.
const ROOM: usize = 40;

/// At most three names, and how many more there are.
fn some_names<'a>(names: impl Iterator<Item = &'a str>) -> Option<String> {
    const SHOWN: usize = 3;
    let names: Vec<&str> = names.collect();
    let shown: Vec<String> = names.iter().take(SHOWN).map(|name| fit(&printable(name), ROOM)).collect();
    let more = names.len().saturating_sub(SHOWN);
    match (shown.is_empty(), more) {
        (true, _) => None,
        (false, 0) => Some(shown.join(", ")),
        (false, more) => Some(format!("{} and {} more", shown.join(", "), grouped(more as u64))),
    }
}

fn renamed(difference: &Difference) -> Option<String> {
    let groups = &difference.pairing.groups;
    let renamed = groups
        .iter()
        .filter(|group| group.is_paired() && (group.by_code || group.spelling > Spelling::Exact));
    let pairs: Vec<String> = renamed
        .filter_map(|group| group.other_name.as_ref().map(|base| format!("{base} is {}", group.name)))
        .collect();
    some_names(pairs.iter().map(String::as_str))
}

/// Functions that cost something and that one profile alone has.
fn alone(difference: &Difference) -> Option<String> {
    let of = |in_base: bool| {
        let rows = difference.functions.iter().filter(move |row| {
            let functions = &difference.pairing.groups[row.group].functions;
            !difference.pairing.groups[row.group].is_paired() && functions.base.is_empty() != in_base
        });
        some_names(rows.map(|row| row.name.as_str()))
    };
    let base = of(true).map(|names| format!("only base ran {names}"));
    let head = of(false).map(|names| format!("only head ran {names}"));
    let both: Vec<String> = base.into_iter().chain(head).collect();
    (!both.is_empty()).then(|| both.join("; "))
}

fn inlined(difference: &Difference) -> Option<String> {
    let contexts = difference.contexts.as_ref()?;
    let groups = &difference.pairing.groups;
    let names = some_names(contexts.inlined.iter().map(|&group| groups[group].name.as_str()))?;
    Some(format!(
        "{names}: inlined in one of both only, or only in one binary; in the tree its cost is its callers'"
    ))
}

/// How many functions have other code, with the one first that changed most.
fn changed(difference: &Difference) -> Option<String> {
    let code = difference.code.as_ref()?;
    let mut parts = Vec::new();
    if code.functions > 0 {
        let all = grouped(code.functions as u64);
        let size = |row: &&FunctionChange| row.self_cost.change().unsigned_abs();
        let rows = difference.functions.iter().filter(|row| row.code_changed == Some(true));
        let first = rows.max_by_key(size).filter(|row| row.self_cost.change() != 0);
        parts.push(match (code.changed.len() as u64, first, code.constants.is_empty()) {
            (0, _, true) => format!("nothing: the code of {all} functions and the constants are equal"),
            (0, _, false) => {
                let modules = some_names(code.constants.iter().map(String::as_str)).unwrap_or_default();
                format!("the constants of {modules}, and the code of none of {all} functions")
            }
            (changed, Some(first), _) => format!(
                "the code of {} of {all}, {} first",
                plural(changed, "function"),
                fit(&printable(&first.name), ROOM)
            ),
            (changed, None, _) => {
                format!(
                    "the code of {} of {all}, none of which costs more or less",
                    plural(changed, "function")
                )
            }
        });
    }
    parts.extend(
        code.not_compared.iter().map(|(module, why)| format!("not known of {}: {why}", printable(module))),
    );
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn compilers(difference: &Difference) -> Option<String> {
    let (module, Sides { base, head }) = difference.code.as_ref()?.compilers.first()?;
    let other = format!("{}: {} → {}", printable(module), printable(base), printable(head));
    Some(format!("{other}: other code may be this alone; build both with one compiler"))
}
