//! The few lines that are printed after recording.

use treering_analysis::{CallGraph, Presentation, RunSpread, SortKey, correct, default_metric, flat};
use treering_profile::Profile;

use crate::facts::Facts;
use crate::flat::spread_text;
use crate::function::Labels;
use crate::header::header_lines;
use crate::number::percent;
use crate::printable::printable_profile;
use crate::style::Style;

/// About ten lines of what a profile says: how long the program ran, how many samples there are
/// and what was lost, and the `top` functions by self cost with their 95 % intervals.
///
/// Uses the profile's first metric, without what measuring cost, as reports do. Ends with a line end; says so when there is nothing to show.
pub fn summary(profile: &Profile, style: &Style, top: usize) -> String {
    let profile = &*printable_profile(profile);
    let Some(metric) = default_metric(profile) else {
        return "nothing was measured\n".to_owned();
    };
    let corrected = correct(profile);
    let (profile, basis) = (&*corrected.profile, corrected.basis(metric));
    let mut text = header_lines(profile, &basis, style);
    if basis.run.cost == 0 || Facts::of(profile, &basis).samples == Some(0) {
        return text;
    }
    let graph = CallGraph::of(profile, &basis, Presentation::Contexts);
    let labels = Labels::of(profile);
    let sampled = basis.samples.is_some();
    let interval = if sampled { "  [95 % interval]" } else { "" };
    text += &style.bold(&format!("\n% self{interval}  % total  function"));
    text.push('\n');
    let rows = flat(profile, &graph, SortKey::SelfCost);
    for row in rows.iter().take(top).filter(|row| row.cost.self_cost.cost > 0) {
        let share = basis.share(row.cost.self_cost.cost);
        let total = percent(basis.share(row.cost.total_cost.cost));
        let bounds = row.cost.self_interval.map_or(String::new(), |interval| {
            let bounds = format!("[{}, {}]", percent(interval.low), percent(interval.high));
            format!("  {bounds:>15}")
        });
        let numbers = format!("{:>6}{bounds}  {total:>7}", percent(share));
        let name = style.fit_name(numbers.chars().count() + 2, &labels.with_module(row.cost.function));
        text += &format!("{}  {name}\n", style.heat(share, &numbers));
    }
    text + &RunSpread::of(&graph).map_or(String::new(), |spread| spread_text(&spread, style))
}
