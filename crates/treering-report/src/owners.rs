//! Threads, processes and metrics as tables.

use treering_analysis::{Basis, OwnerCost, process_costs, samples_metric, thread_costs};
use treering_profile::{MetricId, Profile, pluralize};

use crate::flat::bounds;
use crate::header::header_lines;
use crate::number::{grouped, percent, whole_cost};
use crate::options::{Amount, Options};
use crate::printable::printable;
use crate::scale::Scale;
use crate::style::Style;
use crate::table::Table;

/// The cost of every thread, largest first.
pub fn threads_text(profile: &Profile, basis: &Basis, style: &Style, options: &Options) -> String {
    owners_text(profile, basis, style, options, &thread_costs(profile, basis), "thread")
}

/// The cost of every process with all its threads, largest first.
pub fn processes_text(profile: &Profile, basis: &Basis, style: &Style, options: &Options) -> String {
    owners_text(profile, basis, style, options, &process_costs(profile, basis), "process")
}

fn owners_text(
    profile: &Profile,
    basis: &Basis,
    style: &Style,
    options: &Options,
    owners: &[OwnerCost],
    noun: &'static str,
) -> String {
    let mut text = header_lines(profile, basis, style);
    if basis.run.cost == 0 {
        return text;
    }
    let unit = profile.metrics[basis.metric.index()].unit;
    let scale = Scale::of(basis, unit, options.amount.unwrap_or(Amount::Natural));
    let several_runs = profile.runs.len() > 1;
    let of_threads = noun == "thread";
    let mut headings = vec!["% total".to_owned()];
    headings.extend(basis.samples.map(|_| "[95 % interval]".to_owned()));
    headings.push(scale.heading("total"));
    headings.extend(basis.samples.map(|_| "samples".to_owned()));
    headings.extend(several_runs.then(|| "run".to_owned()));
    headings.push("pid".to_owned());
    headings.push(if of_threads { "tid" } else { "threads" }.to_owned());
    let mut table = Table::new(headings, noun);
    let is_shown = |of: &&OwnerCost| basis.share(of.cost.cost) >= options.min_share;
    let shown: Vec<_> = owners.iter().filter(is_shown).take(options.limit.unwrap_or(usize::MAX)).collect();
    for of in &shown {
        let (share, process) = (basis.share(of.cost.cost), &profile.processes[of.process.index()]);
        let mut cells = vec![percent(share)];
        cells.extend(basis.samples.map(|_| of.interval(basis).map_or(String::new(), bounds)));
        cells.push(scale.text(of.cost));
        cells.extend(basis.samples.map(|_| grouped(of.cost.samples)));
        cells.extend(several_runs.then(|| (process.run.index() + 1).to_string()));
        cells.push(process.pid.to_string());
        let thread = of.thread.map(|thread| &profile.threads[thread.index()]);
        cells.push(thread.map_or_else(|| of.threads.to_string(), |thread| thread.tid.to_string()));
        let process_name = printable(&process.name);
        let name = match thread {
            Some(thread) if process.name.is_empty() => printable(&thread.name).into_owned(),
            Some(thread) if thread.name != process.name => {
                format!("{} [{process_name}]", printable(&thread.name))
            }
            _ => process_name.into_owned(),
        };
        table.row(cells, name, share);
    }
    text.push('\n');
    text += &table.render(style);
    let left_out = owners.len() - shown.len();
    if left_out > 0 {
        let rest: u64 = owners.iter().map(|of| of.cost.cost).sum::<u64>()
            - shown.iter().map(|of| of.cost.cost).sum::<u64>();
        let (one, several) = if of_threads { ("thread", "threads") } else { ("process", "processes") };
        let (counted, share) = (pluralize(left_out as u64, one, several), percent(basis.share(rest)));
        text += &format!("… {counted} more, together {share} %\n");
    }
    if profile.metadata.losses.unsampled_threads > 0 && shown.iter().any(|of| of.shared > 0) {
        text += "\nthreads of less than 20 samples also stand for similar threads without a sample: of these, only the sum \
                 is known\neach thread exactly: treering stat --per-thread\n";
    }
    text
}

/// The metrics of a profile, with what each adds up to and how it came about.
pub fn metrics_text(profile: &Profile, style: &Style) -> String {
    let mut table = Table::new(vec!["in all".to_owned(), "samples".to_owned()], "metric");
    for (id, metric) in profile.cost_metrics() {
        let samples = metric.counted_by().map(|by| grouped(profile.run_cost(by))).unwrap_or_default();
        let counts = counts_samples_of(profile, id);
        let how = match (counts, &metric.sampling) {
            (Some(of), _) => format!("how many samples there are of {}", printable(&of)),
            (None, Some(_)) => "estimated from samples".to_owned(),
            (None, None) => "counted or measured".to_owned(),
        };
        let total = whole_cost(metric.unit, profile.run_cost(id));
        table.row(vec![total, samples], format!("{}  ({how})", printable(&profile.metric_label(id))), 0.0);
    }
    let mut text = table.render(style);
    let levels = profile.metrics.iter().filter(|metric| metric.is_level);
    let levels: Vec<_> = levels.map(|metric| printable(&metric.name)).collect();
    if !levels.is_empty() {
        text += &format!("and over time, with --points: {}\n", levels.join(", "));
    }
    text + "\nchoose one by --metric NAME\n"
}

/// The metric whose samples `metric` counts.
pub(crate) fn counts_samples_of(profile: &Profile, metric: MetricId) -> Option<String> {
    let counted = profile.metrics.iter().find(|other| other.counted_by() == Some(metric));
    counted.map(|other| other.name.clone())
}

/// The other metrics that a profile has, for a line above a view; not the count of the samples of
/// the one that is shown.
pub(crate) fn other_metrics(profile: &Profile, shown: MetricId) -> Option<String> {
    const SHOWN: usize = 6;
    let samples = samples_metric(profile, shown);
    let counted = |id: MetricId| profile.metrics[id.index()].counted_by() == samples && samples.is_some();
    let is_other =
        |id: MetricId| id != shown && Some(id) != samples && !(Some(shown) == samples && counted(id));
    let others: Vec<_> = profile
        .cost_metrics()
        .filter(|&(id, _)| is_other(id))
        .map(|(id, _)| printable(&profile.metric_label(id)).into_owned())
        .collect();
    let more = others.len().saturating_sub(SHOWN);
    let mut text = others.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    if more > 0 {
        text += &format!(" and {more} more (--metrics)");
    }
    (!others.is_empty()).then(|| format!("{text}: --metric NAME"))
}
