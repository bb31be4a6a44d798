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
    /// What each sampler used itself up to a profile with names; NaN where that was not measured.
    with_names: Vec<f64>,
}

/// How often what is measured.
struct Effort {
    /// Rounds of half a second, for what sampling costs the workload itself.
    rate: (Size, usize),
    /// Rounds of some seconds, for what the sampler uses, its start and end included.
    whole: (Size, usize),
}

impl Effort {
    fn of(options: &Options) -> Self {
        match options.quick {
            true => Self { rate: (Size::Short, 2), whole: (Size::Short, 2) },
            false => Self { rate: (Size::Medium, 20), whole: (Size::Long, 3) },
        }
    }
}

/// Measures every workload that can run here under every sampler that runs here.
pub(super) fn measure(options: &Options) -> Result<Part, String> {
    let (samplers, absent) = Sampler::find(options);
    let effort = Effort::of(options);
    let mut header = vec!["workload", "native CPU, s"];
    header.extend(samplers.iter().map(Sampler::name));
    let title =
        "Overhead at 1 kHz with DWARF stacks: processor time of target / recorded / named, native = 1.00";
    let mut table = Table::new(title, &header);
    let (mut data, mut columns) = (Vec::new(), vec![[Vec::new(), Vec::new(), Vec::new()]; samplers.len()]);
    for kind in WorkloadKind::ALL {
        let (Some(short), Some(long)) = (prepare(kind, effort.rate.0)?, prepare(kind, effort.whole.0)?)
        else {
            table.note(format!("{} was left out: its program is not installed.", kind.name()));
            continue;
        };
        eprintln!("  {}", short.name);
        let rate = run_rounds(options, &samplers, &short, effort.rate.1, false)?;
        let whole = run_rounds(options, &samplers, &long, effort.whole.1, true)?;
        let native: Vec<f64> = whole.iter().map(|round| round.native.target).collect();
        let native = Spread::of(&native).ok_or("no rounds")?;
        let mut cells = vec![short.name.to_owned(), native.to_string()];
        for (at, sampler) in samplers.iter().enumerate() {
            let paired = paired_ratios(&rate, at).ok_or("no rounds")?;
            let target = least_ratio(&rate, at);
            let recorded = target + share(&whole, |round| round.sampled[at].own());
            let named = target + share(&whole, |round| round.with_names[at]);
            cells.push(format!("{target:.3} / {recorded:.3} / {named:.3}; {paired}"));
            for (column, ratio) in columns[at].iter_mut().zip([target, recorded, named]) {
                column.push(ratio);
            }
            data.push(json!({
                "workload": short.name, "sampler": sampler.name(), "native_cpu_s": native.median,
                "target_ratio": target, "recorded_ratio": recorded, "named_ratio": named,
                "paired_target_ratio": paired.median,
                "paired_target_quartiles": [paired.low, paired.high],
            }));
        }
        table.row(cells);
    }
    table.row(summary_row(&columns));
    table.note(format!(
        "Target: the least of {} runs of half a second in relation to the least of as many native runs, since what \
         else happens on a machine only ever adds; behind it the median of the rounds (and the middle half of \
         them), each in relation to the native run of the same round. Recorded: that and the sampler's own \
         processor time, in relation to the native run, the least of {} runs of the length in the second \
         column. Named: up to a profile with names. A round runs native and every sampler once, in random \
         order. The last row is the median.",
        effort.rate.1, effort.whole.1,
    ));
    table.note(
        "treering: record -F 1000, which gives names at once; perf: record -F 999 --call-graph dwarf,8192, then \
         report; samply: record --rate 1000, and with --unstable-presymbolicate for names.",
    );
    absent.into_iter().for_each(|why| table.note(why));
    Ok(Part { table, data: json!(data) })
}

fn prepare(kind: WorkloadKind, size: Size) -> Result<Option<Workload>, String> {
    kind.prepare(size).map_err(|error| error.to_string())
}

fn run_rounds(
    options: &Options,
    samplers: &[Sampler],
    workload: &Workload,
    rounds: usize,
    to_names: bool,
) -> Result<Vec<Round>, String> {
    // The first run fills the caches of files and is not counted.
    measure::run(None, workload, &options.directory)?;
    (0..rounds).map(|_| run_round(options, samplers, workload, to_names)).collect()
}

fn run_round(
    options: &Options,
    samplers: &[Sampler],
    workload: &Workload,
    to_names: bool,
) -> Result<Round, String> {
    let mut order: Vec<Option<usize>> = (0..samplers.len()).map(Some).chain([None]).collect();
    fastrand::shuffle(&mut order);
    let (mut native, mut sampled) = (None, vec![None; samplers.len()]);
    let mut with_names = vec![f64::NAN; samplers.len()];
    for at in order {
        let cost = measure::run(at.map(|at| &samplers[at]), workload, &options.directory)?;
        match at {
            Some(at) if to_names => {
                let directory = &options.directory;
                with_names[at] = measure::own_with_names(&samplers[at], cost, workload, directory)?;
                sampled[at] = Some(cost);
            }
            Some(at) => sampled[at] = Some(cost),
            None => native = Some(cost),
        }
    }
    let sampled: Option<Vec<Cost>> = sampled.into_iter().collect();
    let (native, sampled) = (native.ok_or("no native run")?, sampled.ok_or("a sampler did not run")?);
    Ok(Round { native, sampled, with_names })
}

/// The ratios of the workload's cost under a sampler to the native runs of the same rounds.
fn paired_ratios(rounds: &[Round], sampler: usize) -> Option<Spread> {
    let ratio = |round: &Round| round.sampled[sampler].target / round.native.target;
    Spread::of(&rounds.iter().map(ratio).collect::<Vec<_>>())
}

/// The least cost of the workload under a sampler in relation to its least native cost.
fn least_ratio(rounds: &[Round], sampler: usize) -> f64 {
    least(rounds.iter().map(|round| round.sampled[sampler].target)) / least_native(rounds)
}

/// The least of what a sampler itself used, in relation to the native cost of the workload.
fn share(rounds: &[Round], own: impl Fn(&Round) -> f64) -> f64 {
    least(rounds.iter().map(own)) / least_native(rounds)
}

fn least_native(rounds: &[Round]) -> f64 {
    least(rounds.iter().map(|round| round.native.target))
}

fn least(costs: impl Iterator<Item = f64>) -> f64 {
    costs.fold(f64::INFINITY, f64::min)
}

fn summary_row(columns: &[[Vec<f64>; 3]]) -> Vec<String> {
    let mut cells = vec!["**median**".to_owned(), String::new()];
    cells.extend(columns.iter().map(|ratios| {
        let median = |values: &Vec<f64>| Spread::of(values).map_or(f64::NAN, |spread| spread.median);
        let [target, recorded, named] = [0, 1, 2].map(|at| median(&ratios[at]));
        format!("**{target:.3} / {recorded:.3} / {named:.3}**")
    }));
    cells
}
