//! The lines above a view.

use treering_analysis::Basis;
use treering_profile::Profile;

use crate::facts;
use crate::style::Style;

/// The facts to know before the numbers, a line each: command, run time, samples, losses,
/// notes.
pub(crate) fn header_lines(profile: &Profile, basis: &Basis, style: &Style) -> String {
    let mut lines = facts::lines(profile, basis);
    if style.width.is_some() {
        fold_small_notes(&mut lines);
    }
    const LABEL: usize = 10;
    let line = |(label, text): &(&str, String)| {
        format!("{}  {}\n", style.dim(&format!("{label:<8}")), style.wrap(text, LABEL))
    };
    lines.iter().map(line).collect()
}

/// Parts of notes that only say how something was measured or chosen: no number is wrong or missing for it.
const SMALL: [&str; 6] = [
    "this machine has no hardware counters: ",
    " stands for every function of ",
    " not recorded, as asked",
    "jumps are not kept",
    "costs of instructions are added up by line",
    "perf script found the callers",
];

/// Joins several small notes to one, which is the last. Losses and estimates keep lines of their own.
fn fold_small_notes(lines: &mut Vec<(&'static str, String)>) {
    let is_small =
        |(label, text): &(&str, String)| *label == "note" && SMALL.iter().any(|part| text.contains(part));
    let (small, mut others): (Vec<_>, Vec<_>) = lines.drain(..).partition(is_small);
    let small: Vec<String> = small.into_iter().map(|(_, text)| text).collect();
    if !small.is_empty() {
        others.push(("note", small.join("; ")));
    }
    *lines = others;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_notes_share_the_last_line_and_losses_keep_theirs() {
        let note = |text: &str| ("note", text.to_owned());
        let timer =
            "this machine has no hardware counters: time is sampled by the kernel's timer (cpu-clock)";
        let asked = "1 function was not recorded, as asked";
        let loss = note("3 stacks continue where the kernel's copy stopped");
        let mut lines = vec![("run", "1.000 s".to_owned()), note(timer), note(asked), loss.clone()];
        fold_small_notes(&mut lines);
        assert_eq!(lines[1..], [loss, note(&format!("{timer}; {asked}"))]);
    }
}
