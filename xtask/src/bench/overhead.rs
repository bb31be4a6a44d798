//! What recording costs: processor time of the workload, and of everything together.

use serde_json::json;
use treering_testing::programs::{Size, Workload, WorkloadKind};

use super::measure::{self, Cost};
use super::sampler::Sampler;
use super::statistics::Spread;
use super::table::Table;
use super::{Options, Part};

/// One round: the native run and a run under each sampler, all close in time.
struct Round {
    native: Cost,
    sampled: Vec<Cost>,
}

/// Measures every workload that can run here under every sampler that runs here.
pub(super) fn measure(options: &Options) -> Result<Part, String> {
    let (samplers, absent) = Sampler::find(options);
    let (size, rounds) = if options.quick { (Size::Short, 2) } else { (Size::Long, 5) };
    let mut header = vec!["workload", "native CPU, s"];
    header.extend(samplers.iter().map(Sampler::name));
    let title = "Overhead at 1 kHz with DWARF stacks: target / total processor time, native = 1.00";
    let mut table = Table::new(title, &header);
    let (mut data, mut medians) = (Vec::new(), vec![(Vec::new(), Vec::new()); samplers.len()]);
    for kind in WorkloadKind::ALL {
        let workload = kind.prepare(size).map_err(|error| error.to_string())?;
        let Some(workload) = workload else {
            table.note(format!("{} was left out: its program is not installed.", kind.name()));
            continue;
        };
        eprintln!("  {}", workload.name);
        let rounds = run_rounds(options, &samplers, &workload, rounds)?;
        let native: Vec<f64> = rounds.iter().map(|round| round.native.target).collect();
        let native = Spread::of(&native).ok_or("no rounds")?;
        let mut cells = vec![workload.name.to_owned(), native.to_string()];
        for (at, sampler) in samplers.iter().enumerate() {
            let (target, total) = ratios(&rounds, at).ok_or("no rounds")?;
            cells.push(format!("{target} / {total}"));
            medians[at].0.push(target.median);
            medians[at].1.push(total.median);
            data.push(json!({
                "workload": workload.name, "sampler": sampler.name(), "native_cpu_s": native.median,
                "target_ratio": target.median, "target_quartiles": [target.low, target.high],
                "total_ratio": total.median, "total_quartiles": [total.low, total.high],
            }));
        }
        table.row(cells);
    }
    table.row(summary_row(&medians));
    table.note(format!(
        "Median of {rounds} rounds (and the middle half of them). A round runs native and every sampler once, \
         in random order; its ratios are to the native run of the same round."
    ));
    table.note(
        "treering: record -F 1000; perf: record -F 999 --call-graph dwarf,8192; samply: record --rate 1000.",
    );
    absent.into_iter().for_each(|why| table.note(why));
    Ok(Part { table, data: json!(data) })
}

fn run_rounds(
    options: &Options,
    samplers: &[Sampler],
    workload: &Workload,
    rounds: usize,
) -> Result<Vec<Round>, String> {
    // The first run fills the caches of files and is not counted.
    measure::run(None, workload, &options.directory)?;
    (0..rounds).map(|_| run_round(options, samplers, workload)).collect()
}

fn run_round(options: &Options, samplers: &[Sampler], workload: &Workload) -> Result<Round, String> {
    let mut order: Vec<Option<usize>> = (0..samplers.len()).map(Some).chain([None]).collect();
    fastrand::shuffle(&mut order);
    let (mut native, mut sampled) = (None, vec![None; samplers.len()]);
    for at in order {
        let cost = measure::run(at.map(|at| &samplers[at]), workload, &options.directory)?;
        match at {
            Some(at) => sampled[at] = Some(cost),
            None => native = Some(cost),
        }
    }
    let sampled: Option<Vec<Cost>> = sampled.into_iter().collect();
    Ok(Round { native: native.ok_or("no native run")?, sampled: sampled.ok_or("a sampler did not run")? })
}

/// The ratios of a sampler's runs to the native runs of the same rounds: target and total.
fn ratios(rounds: &[Round], sampler: usize) -> Option<(Spread, Spread)> {
    let of = |cost: fn(&Cost) -> f64| {
        let ratio = |round: &Round| cost(&round.sampled[sampler]) / round.native.target;
        Spread::of(&rounds.iter().map(ratio).collect::<Vec<_>>())
    };
    Some((of(|cost| cost.target)?, of(|cost| cost.total)?))
}

fn summary_row(medians: &[(Vec<f64>, Vec<f64>)]) -> Vec<String> {
    let mut cells = vec!["**median**".to_owned(), String::new()];
    cells.extend(medians.iter().map(|(target, total)| {
        let median = |values: &[f64]| Spread::of(values).map_or(f64::NAN, |spread| spread.median);
        format!("**{:.2} / {:.2}**", median(target), median(total))
    }));
    cells
}
