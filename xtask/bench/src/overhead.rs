//! What recording costs: processor time of the workload, and of everything together.

use serde_json::json;
use treering_testing::programs::{Size, Workload, WorkloadKind};

use super::measure::{self, Cost};
use super::sampler::Sampler;
use super::statistics::Spread;
use super::table::Table;
use super::{Options, Part, attached};

/// One round: the native run and a run under each sampler, all close in time.
struct Round {
    native: Cost,
    sampled: Vec<Cost>,
    /// What each sampler used itself up to a profile with names.
    with_names: Vec<f64>,
}

/// How often what is measured.
struct Effort {
    /// Rounds of windows with and without samplers, for what sampling costs the workload itself.
    windows: usize,
    /// Rounds of whole runs, for what the sampler uses, its start and end included.
    whole: (Size, usize),
}

impl Effort {
    fn of(options: &Options) -> Self {
        match options.quick {
            true => Self { windows: 1, whole: (Size::Short, 2) },
            false => Self { windows: 16, whole: (Size::Long, 3) },
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
        let (Some(brief), Some(long)) = (prepare(kind, Size::Brief)?, prepare(kind, effort.whole.0)?) else {
            table.note(format!("{} was left out: its program is not installed.", kind.name()));
            continue;
        };
        eprintln!("  {}", brief.name);
        let ratios = attached::measure(&samplers, &brief, effort.windows, &options.directory)?;
        let whole = run_rounds(options, &samplers, &long, effort.whole.1)?;
        let native: Vec<f64> = whole.iter().map(|round| round.native.target).collect();
        let native = Spread::of(&native).ok_or("no rounds")?;
        let mut cells = vec![brief.name.to_owned(), native.to_string()];
        for (at, sampler) in samplers.iter().enumerate() {
            let spread = Spread::of(&ratios[at]).ok_or("no rounds")?;
            let target = spread.median;
            let recorded = target + share(&whole, |round| round.sampled[at].own());
            let named = target + share(&whole, |round| round.with_names[at]);
            let range = format!("{:.3}-{:.3}", spread.low, spread.high);
            cells.push(format!("{target:.3} ({range}) / {recorded:.3} / {named:.3}"));
            for (column, ratio) in columns[at].iter_mut().zip([target, recorded, named]) {
                column.push(ratio);
            }
            data.push(json!({
                "workload": brief.name, "sampler": sampler.name(), "native_cpu_s": native.median,
                "target_ratio": target, "recorded_ratio": recorded, "named_ratio": named,
                "target_quartiles": [spread.low, spread.high],
            }));
        }
        table.row(cells);
    }
    table.row(summary_row(&columns));
    table.note(format!(
        "Target: runs of some 0.05 s one after the other, the lower quartile of those in a window of 0.9 s with \
         the sampler attached, in relation to a window without one within the same few seconds; the median of {} \
         such ratios, and in parentheses the middle half of them. Recorded: that and the sampler's own processor \
         time in whole runs of the length in the second column, in relation to the native run, the least of {}. \
         Named: up to a profile with names. The last row is the median.",
        effort.windows, effort.whole.1,
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
) -> Result<Vec<Round>, String> {
    // The first run fills the caches of files and is not counted.
    measure::run(None, workload, &options.directory)?;
    (0..rounds).map(|_| run_round(options, samplers, workload)).collect()
}

fn run_round(options: &Options, samplers: &[Sampler], workload: &Workload) -> Result<Round, String> {
    let mut order: Vec<Option<usize>> = (0..samplers.len()).map(Some).chain([None]).collect();
    fastrand::shuffle(&mut order);
    let (mut native, mut sampled) = (None, vec![None; samplers.len()]);
    let mut with_names = vec![f64::NAN; samplers.len()];
    for at in order {
        let cost = measure::run(at.map(|at| &samplers[at]), workload, &options.directory)?;
        match at {
            Some(at) => {
                let directory = &options.directory;
                with_names[at] = measure::own_with_names(&samplers[at], cost, workload, directory)?;
                sampled[at] = Some(cost);
            }
            None => native = Some(cost),
        }
    }
    let sampled: Option<Vec<Cost>> = sampled.into_iter().collect();
    let (native, sampled) = (native.ok_or("no native run")?, sampled.ok_or("a sampler did not run")?);
    Ok(Round { native, sampled, with_names })
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
