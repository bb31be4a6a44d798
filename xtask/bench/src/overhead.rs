//! The cost of recording: processor time of the workload, and of everything together.

use treering_testing::programs::{Size, WorkloadKind};

use crate::frame::{Bench, interleaved};
use crate::sampler::{self, Cost, Sampler};
use crate::statistics::{Spread, median};
use crate::table::Table;

/// Measures every workload that can run here alone, and under every sampler that runs here.
pub(super) fn measure(bench: &Bench) -> Result<Table, String> {
    let (samplers, absent) = Sampler::find(bench);
    let rounds = bench.rounds(9, 2);
    let size = if bench.quick { Size::Short } else { Size::Long };
    let names = samplers.iter().map(|sampler| sampler.name);
    let mut table = Table::new(
        "Overhead at 1 kHz with DWARF stacks: processor time of target / recorded / named, native = 1.00",
        &["workload", "native CPU, s"].into_iter().chain(names).collect::<Vec<_>>(),
    );
    let mut columns = vec![[const { Vec::new() }; 3]; samplers.len()];
    for kind in WorkloadKind::ALL {
        let Some(workload) = kind.prepare(size).map_err(|error| error.to_string())? else {
            table.note(format!("{} was left out: its program is not installed.", kind.name()));
            continue;
        };
        eprintln!("  {}", workload.name);
        // The first run fills the caches of files and is not counted.
        sampler::run_alone(&workload, &bench.directory)?;
        let mut costs = interleaved(samplers.len() + 1, rounds, |way| match samplers.get(way) {
            Some(sampler) => sampler.run(bench, &workload),
            None => sampler::run_alone(&workload, &bench.directory),
        })?;
        let alone: Vec<f64> = costs.pop().unwrap_or_default().iter().map(|cost| cost.target).collect();
        let native = Spread::of(&alone).ok_or("no rounds")?;
        let mut cells = vec![workload.name.to_owned(), native.to_string()];
        for (costs, columns) in costs.iter().zip(&mut columns) {
            let ratios = |of: fn(&Cost) -> f64| {
                let ratios = costs.iter().zip(&alone).map(|(cost, alone)| of(cost) / alone);
                Spread::of(&ratios.collect::<Vec<_>>()).ok_or("no rounds")
            };
            let target = ratios(|cost| cost.target)?;
            let recorded = ratios(|cost| cost.target + cost.own)?.median;
            let named = ratios(|cost| cost.target + cost.own_with_names)?.median;
            let range = format!("{:.3}-{:.3}", target.low, target.high);
            cells.push(format!("{:.3} ({range}) / {recorded:.3} / {named:.3}", target.median));
            for (column, ratio) in columns.iter_mut().zip([target.median, recorded, named]) {
                column.push(ratio);
            }
        }
        table.row(cells);
    }
    let medians = columns.iter().map(|ratios| {
        let [target, recorded, named] = ratios.each_ref().map(|ratios| median(ratios));
        format!("**{target:.3} / {recorded:.3} / {named:.3}**")
    });
    table.row(["**median**".to_owned(), String::new()].into_iter().chain(medians).collect());
    table.note(format!(
        "Target: the processor time of the workload by itself; in parentheses the middle half. Recorded: with that of \
         the sampler, its start and end included. Named: up to a profile with names. All in relation to the native run \
         of the same round, the median of {rounds} rounds; the last row is the median of these.",
    ));
    table.note(
        "treering: record -F 1000, which gives names at once; perf: record -F 999 --call-graph dwarf,8192, then \
         report; samply: record --rate 1000, and with --unstable-presymbolicate for names.",
    );
    absent.into_iter().for_each(|why| table.note(why));
    Ok(table)
}
