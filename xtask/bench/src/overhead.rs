//! The cost of recording: processor time of the workload, and of everything together.

use serde_json::json;
use treering_testing::programs::{Size, WorkloadKind};

use crate::attached;
use crate::frame::{Bench, interleaved};
use crate::record::Part;
use crate::sampler::{self, Cost, Sampler};
use crate::statistics::{Spread, median};
use crate::table::Table;

/// Measures every workload that can run here under every sampler that runs here.
pub(super) fn measure(bench: &Bench) -> Result<Part, String> {
    let (samplers, absent) = Sampler::find(bench);
    // Windows show the cost for the workload itself; whole runs that of the sampler, its start and end included.
    let (windows, runs) = (bench.rounds(16, 1), bench.rounds(3, 2));
    let size = if bench.quick { Size::Short } else { Size::Long };
    let names = samplers.iter().map(|sampler| sampler.kind.name);
    let mut table = Table::new(
        "Overhead at 1 kHz with DWARF stacks: processor time of target / recorded / named, native = 1.00",
        &["workload", "native CPU, s"].into_iter().chain(names).collect::<Vec<_>>(),
    );
    let (mut data, mut columns) = (Vec::new(), vec![[const { Vec::new() }; 3]; samplers.len()]);
    for kind in WorkloadKind::ALL {
        let prepare = |size| kind.prepare(size).map_err(|error| error.to_string());
        let (Some(brief), Some(long)) = (prepare(Size::Brief)?, prepare(size)?) else {
            table.note(format!("{} was left out: its program is not installed.", kind.name()));
            continue;
        };
        eprintln!("  {}", brief.name);
        let ratios = attached::measure(&samplers, &brief, windows, &bench.directory)?;
        // The first run fills the caches of files and is not counted.
        sampler::run_alone(&long, &bench.directory)?;
        let mut costs = interleaved(samplers.len() + 1, runs, |way| match samplers.get(way) {
            Some(sampler) => sampler.run(&long, &bench.directory),
            None => {
                let target = sampler::run_alone(&long, &bench.directory)?;
                Ok(Cost { target, own: 0.0, own_with_names: 0.0 })
            }
        })?;
        let spread = |costs: &[Cost], of: fn(&Cost) -> f64| {
            Spread::of(&costs.iter().map(of).collect::<Vec<_>>()).ok_or("no rounds")
        };
        let native = spread(&costs.pop().unwrap_or_default(), |cost| cost.target)?;
        let mut cells = vec![brief.name.to_owned(), native.to_string()];
        for (at, (sampler, costs)) in samplers.iter().zip(&costs).enumerate() {
            let of_windows = Spread::of(&ratios[at]).ok_or("no rounds")?;
            let target = of_windows.median;
            let recorded = target + spread(costs, |cost| cost.own)?.least / native.least;
            let named = target + spread(costs, |cost| cost.own_with_names)?.least / native.least;
            let range = format!("{:.3}-{:.3}", of_windows.low, of_windows.high);
            cells.push(format!("{target:.3} ({range}) / {recorded:.3} / {named:.3}"));
            for (column, ratio) in columns[at].iter_mut().zip([target, recorded, named]) {
                column.push(ratio);
            }
            data.push(json!({
                "workload": brief.name, "sampler": sampler.kind.name, "native_cpu_s": native.median,
                "target_ratio": target, "recorded_ratio": recorded, "named_ratio": named,
                "target_quartiles": [of_windows.low, of_windows.high],
            }));
        }
        table.row(cells);
    }
    let medians = columns.iter().map(|ratios| {
        let [target, recorded, named] = ratios.each_ref().map(|ratios| median(ratios));
        format!("**{target:.3} / {recorded:.3} / {named:.3}**")
    });
    table.row(["**median**".to_owned(), String::new()].into_iter().chain(medians).collect());
    table.note(format!(
        "Target: runs of some 0.05 s one after the other, the lower quartile of those in a window of 0.9 s with \
         the sampler attached, in relation to a window without one within the same few seconds; the median of {windows} \
         such ratios, and in parentheses the middle half of them. Recorded: that and the sampler's own processor \
         time in whole runs of the length in the second column, in relation to the native run, the least of {runs}. \
         Named: up to a profile with names. The last row is the median.",
    ));
    table.note(
        "treering: record -F 1000, which gives names at once; perf: record -F 999 --call-graph dwarf,8192, then \
         report; samply: record --rate 1000, and with --unstable-presymbolicate for names.",
    );
    absent.into_iter().for_each(|why| table.note(why));
    Ok(Part { table, data: json!(data) })
}
