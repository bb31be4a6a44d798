//! The few lines that are printed after recording.

use treering_analysis::{
    Basis, CallGraph, FunctionSet, Presentation, RunSpread, Selection, SortKey, correct, default_metric, flat,
};
use treering_profile::{FunctionId, ModuleKind, Profile};

use crate::facts::Facts;
use crate::flat::spread_text;
use crate::function::Labels;
use crate::header::header_lines;
use crate::number::{duration, percent, plural};
use crate::printable::printable_profile;
use crate::style::Style;

/// About ten lines of what a profile says: how long the program ran, how many samples there are
/// and what was lost, and the `top` functions by self cost with their 95 % intervals.
///
/// Uses the profile's first metric, without what measuring cost, as reports do; where waits were
/// recorded, those follow. Ends with a line end; says so when there is nothing to show.
pub fn summary(profile: &Profile, style: &Style, top: usize) -> String {
    let profile = &*printable_profile(profile);
    let Some(metric) = default_metric(profile) else {
        return "nothing was measured\n".to_owned();
    };
    let corrected = correct(profile);
    let (profile, basis) = (&*corrected.profile, corrected.basis(metric));
    let mut text = header_lines(profile, &basis, style);
    text += &run_times(profile, style);
    if basis.run.cost > 0 && Facts::of(profile, &basis).samples != Some(0) {
        let graph = CallGraph::of(profile, &basis, Presentation::Contexts);
        let interval = if basis.samples.is_some() { "  [95 % interval]" } else { "" };
        let total = if graph.totals.is_known() { "  % total" } else { "" };
        text += &style.bold(&format!("\n% self{interval}{total}  function"));
        text.push('\n');
        text += &rows(profile, &graph, style, top);
        text += &RunSpread::of(&graph).map_or(String::new(), |spread| spread_text(&spread, style));
    }
    text + &waits(profile, style, top)
}

/// How long several runs took: the mean and the standard deviation.
fn run_times(profile: &Profile, style: &Style) -> String {
    let wall: Vec<f64> = profile.runs.iter().map(|run| run.duration_ns as f64).collect();
    let cpu: Option<Vec<f64>> = profile.runs.iter().map(|run| run.cpu_ns.map(|ns| ns as f64)).collect();
    let Some(wall) = mean_and_deviation(&wall) else { return String::new() };
    let mut line = format!("each took {wall}");
    if let Some(cpu) = cpu.and_then(|cpu| mean_and_deviation(&cpu)) {
        line += &format!(", {cpu} of processor time");
    }
    line += " (mean ± standard deviation)";
    format!("{}  {}\n", style.dim("runs    "), style.wrap(&line, 10))
}

/// Both in the unit that suits the mean: `1.250 ± 0.012 s`; nothing for fewer than two, or of which some are unknown.
fn mean_and_deviation(values: &[f64]) -> Option<String> {
    if values.len() < 2 || values.contains(&0.0) {
        return None;
    }
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let deviation = (squares / (count - 1.0)).sqrt();
    let (per, unit) = match mean {
        1e9.. => (1e9, "s"),
        1e6.. => (1e6, "ms"),
        _ => (1e3, "µs"),
    };
    Some(format!("{:.3} ± {:.3} {unit}", mean / per, deviation / per))
}

/// The largest functions, a line each.
fn rows(profile: &Profile, graph: &CallGraph, style: &Style, top: usize) -> String {
    let labels = Labels::of(profile);
    let mut text = String::new();
    let known = graph.totals.is_known();
    let rows = flat(profile, graph, SortKey::SelfCost);
    for row in rows.iter().take(top).filter(|row| row.cost.self_cost.cost > 0) {
        let share = graph.basis.share(row.cost.self_cost.cost);
        let total = percent(graph.basis.share(row.cost.total_cost.cost));
        let bounds = row.cost.self_interval.map_or(String::new(), |interval| {
            let bounds = format!("[{}, {}]", percent(interval.low), percent(interval.high));
            format!("  {bounds:>15}")
        });
        let total = if known { format!("  {total:>7}") } else { String::new() };
        let numbers = format!("{:>6}{bounds}{total}", percent(share));
        let name = style.fit_name(numbers.chars().count() + 2, &labels.with_module(row.cost.function));
        text += &format!("{}  {name}\n", style.heat(share, &numbers));
    }
    text
}

/// The metric of time that threads waited off their processors.
const OFF_CPU: &str = "off-cpu";

/// How long threads waited and where, if that was recorded: in the functions that entered the kernel,
/// since all of them wait in the same few functions of it.
fn waits(profile: &Profile, style: &Style, top: usize) -> String {
    let Some(metric) = profile.find_metric(OFF_CPU) else { return String::new() };
    let basis = Basis::of(profile, metric);
    let count = profile.find_metric("waits").map_or(0, |waits| profile.run_cost(waits));
    let time = duration(basis.run.cost as f64);
    let mut text = format!("\n{}  {time} of waiting, {}\n", style.dim(OFF_CPU), plural(count, "wait"));
    if basis.run.cost == 0 {
        return text;
    }
    let is_kernel = |function: FunctionId| {
        let module = profile.functions[function].module;
        module.is_some_and(|module| profile.modules[module].kind == ModuleKind::Kernel)
    };
    // The other mark, of waits whose stack is not known, is all that there is to show of them.
    let is_mark = |function| {
        treering_analysis::function_name(profile, function).starts_with("[blocked: stack of the nearest")
    };
    let ids = profile.functions.iter().map(|(id, _)| id).filter(|&id| id != Profile::ROOT);
    let hidden: Vec<_> = ids.filter(|&id| is_kernel(id) || is_mark(id)).collect();
    let selection = Selection { hide: Some(FunctionSet::of(profile, &hidden)), ..Selection::default() };
    let Ok(part) = selection.apply(profile) else { return text };
    let graph = CallGraph::of(&part, &basis, Presentation::Contexts);
    text += &style.bold("% self  % total  where threads waited (without the kernel's functions)");
    text.push('\n');
    text + &rows(&part, &graph, style, top)
}

#[cfg(test)]
mod tests {
    use treering_profile::{Function, Metric, MetricId, Unit};

    use super::*;

    /// They were said to be outside of any function.
    #[test]
    fn waits_of_which_the_stack_is_not_known_say_so() {
        let mut profile = treering_testing::stacks("main;work;[blocked: stack of the nearest sample] 10");
        let time = profile.add_metric(Metric::exact(OFF_CPU, Unit::Nanoseconds));
        let unknown = profile.strings.intern("[blocked: stack unknown]");
        let unknown = profile.functions.intern(Function::named(unknown));
        let nearest = profile.tree.nodes().rfind(|&node| profile.tree.self_cost(MetricId::new(0), node) > 0);
        let unseen = profile.tree.child(profile.threads[0].root, unknown, None);
        profile.tree.add_self_cost(time, unseen, 3_000_000);
        profile.tree.add_self_cost(time, nearest.expect("it has a sample"), 1_000_000);
        let text = summary(&profile, &Style::default(), 5);
        let rows = text.split_once("where threads waited").expect("there are waits").1;
        let rows: Vec<_> = rows.lines().skip(1).map(str::trim).collect();
        assert_eq!(rows, ["75.0     75.0  [blocked: stack unknown]", "25.0     25.0  work"]);
    }

    #[test]
    fn several_runs_have_a_mean_and_a_deviation() {
        // Python: statistics.mean([1.2, 1.3, 1.4, 1.3]), statistics.stdev of the same.
        let runs = [1.2e9, 1.3e9, 1.4e9, 1.3e9];
        assert_eq!(mean_and_deviation(&runs).as_deref(), Some("1.300 ± 0.082 s"));
        assert_eq!(mean_and_deviation(&[2e6, 4e6]).as_deref(), Some("3.000 ± 1.414 ms"));
        assert_eq!(mean_and_deviation(&[1e9]), None);
        assert_eq!(mean_and_deviation(&[1e9, 0.0]), None);
    }
}
