//! How many stacks reach the program's first function.

use treering_testing::programs::{Size, Workload, WorkloadKind};

use crate::frame::Bench;
use crate::measure::text_of;
use crate::recorded;
use crate::sampler::Sampler;
use crate::table::Table;

/// The workloads that are compiled without frame pointers, and the function that all of their own
/// code is called from.
const WORKLOADS: [(WorkloadKind, &str); 3] =
    [(WorkloadKind::Stl, "main"), (WorkloadKind::Rust, "main"), (WorkloadKind::Python, "Py_BytesMain")];

/// Records each workload with each sampler whose stacks can be read, and counts.
pub(super) fn measure(bench: &Bench) -> Result<Table, String> {
    let (samplers, _) = Sampler::find(bench);
    let size = if bench.quick { Size::Short } else { Size::Long };
    let header = ["workload", "sampler", "samples", "reach the main function, %", "cut short, %"];
    let mut table = Table::new("Stacks of -O2 programs without frame pointers", &header);
    for (kind, main) in WORKLOADS {
        let Some(workload) = kind.prepare(size).map_err(|error| error.to_string())? else { continue };
        for sampler in &samplers {
            let Some(quality) = quality(bench, sampler, &workload, main)? else { continue };
            let Quality { samples, reached, cut } = quality;
            table.row(vec![
                workload.name.to_owned(),
                sampler.name.to_owned(),
                samples.to_string(),
                format!("{:.2}", 100.0 * reached),
                cut.map_or("not stated".to_owned(), |cut| format!("{:.2}", 100.0 * cut)),
            ]);
        }
    }
    table.note(
        "The other stacks are of the dynamic loader's work before the main function and of the kernel's work for exec.",
    );
    Ok(table)
}

/// The stacks of one recording.
struct Quality {
    samples: u64,
    /// The share whose stack holds the main function.
    reached: f64,
    /// The share that the sampler itself calls cut short, where it states that.
    cut: Option<f64>,
}

/// The stacks that a sampler records; `None` for a sampler whose files cannot be read here.
fn quality(
    bench: &Bench,
    sampler: &Sampler,
    workload: &Workload,
    main: &str,
) -> Result<Option<Quality>, String> {
    let words = [&[workload.program.clone().into()], &workload.arguments[..]].concat();
    match sampler.name {
        "treering" => {
            let flat = recorded::flat(bench, &sampler.record(bench, &words)?)?;
            let (samples, reached) = (flat.samples(), flat.total_share(main));
            let cut = flat.loss("truncated_stacks") as f64 / samples as f64;
            Ok(Some(Quality { samples, reached, cut: Some(cut) }))
        }
        "perf" => {
            let file = sampler.record(bench, &words)?;
            let script = text_of(bench.command("perf script --no-inline -F ip,sym -i").arg(file))?;
            Ok(Some(perf_quality(&script, main)))
        }
        _ => Ok(None),
    }
}

fn perf_quality(script: &str, main: &str) -> Quality {
    let stacks: Vec<&str> = script.split("\n\n").filter(|stack| !stack.trim().is_empty()).collect();
    let names_main = |line: &str| line.trim().split_once(' ').is_some_and(|(_, name)| name.trim() == main);
    let reached = stacks.iter().filter(|stack| stack.lines().any(names_main)).count();
    Quality { samples: stacks.len() as u64, reached: reached as f64 / stacks.len() as f64, cut: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_of_perf_script_are_counted() {
        let script = "  1f00 work\n  1f10 main\n  2a00 __libc_start\n\n  1f00 work\n  0 [unknown]\n\n";
        let quality = perf_quality(script, "main");
        assert_eq!((quality.samples, quality.reached), (2, 0.5));
    }
}
