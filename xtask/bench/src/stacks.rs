//! How many stacks reach the program's first function.

use std::path::Path;
use std::process::Command;

use serde_json::json;
use treering_testing::programs::{Size, Workload, WorkloadKind};

use super::measure::succeed;
use super::sampler::Sampler;
use super::table::Table;
use super::{Options, Part, recorded};

/// The workloads that are compiled without frame pointers, and the function that all of their own
/// code is called from.
const WORKLOADS: [(WorkloadKind, &str); 3] =
    [(WorkloadKind::Stl, "main"), (WorkloadKind::Rust, "main"), (WorkloadKind::Python, "Py_BytesMain")];

/// Records each workload with each sampler whose stacks can be read, and counts.
pub(super) fn measure(options: &Options) -> Result<Part, String> {
    let (samplers, _) = Sampler::find(options);
    let size = if options.quick { Size::Short } else { Size::Long };
    let header = ["workload", "sampler", "samples", "reach the main function, %", "cut short, %"];
    let mut table = Table::new("Stacks of -O2 programs without frame pointers", &header);
    let mut data = Vec::new();
    for (kind, main) in WORKLOADS {
        let Some(workload) = kind.prepare(size).map_err(|error| error.to_string())? else { continue };
        for sampler in &samplers {
            let file = options.directory.join(sampler.file());
            let Some(quality) = quality(options, sampler, &workload, main, &file)? else { continue };
            let Quality { samples, reached, cut } = quality;
            let cut_text = cut.map_or("not told".to_owned(), |cut| format!("{:.2}", 100.0 * cut));
            table.row(vec![
                workload.name.to_owned(),
                sampler.name().to_owned(),
                samples.to_string(),
                format!("{:.2}", 100.0 * reached),
                cut_text,
            ]);
            data.push(json!({
                "workload": workload.name, "sampler": sampler.name(), "samples": samples,
                "reach_main": reached, "cut_short": cut,
            }));
        }
    }
    table.note(
        "The rest of what does not reach the main function is the dynamic loader's work before it and the \
         kernel's work for exec.",
    );
    Ok(Part { table, data: json!(data) })
}

/// The stacks of one recording.
struct Quality {
    samples: u64,
    /// The share whose stack holds the main function.
    reached: f64,
    /// The share that the sampler itself calls cut short, where it tells.
    cut: Option<f64>,
}

/// Nothing for a sampler whose files cannot be read here.
fn quality(
    options: &Options,
    sampler: &Sampler,
    workload: &Workload,
    main: &str,
    file: &Path,
) -> Result<Option<Quality>, String> {
    let mut words = vec![workload.program.clone().into_os_string()];
    words.extend(workload.arguments.iter().cloned());
    match sampler {
        Sampler::Treering(_) => {
            succeed(&mut sampler.command(file, &words))?;
            let flat = recorded::flat(options, file)?;
            let cut = flat.loss("truncated_stacks") as f64 / flat.samples() as f64;
            let reached = flat.total_share(main);
            Ok(Some(Quality { samples: flat.samples(), reached, cut: Some(cut) }))
        }
        Sampler::Perf(perf) => {
            succeed(&mut sampler.command(file, &words))?;
            let script =
                succeed(Command::new(perf).args(["script", "--no-inline", "-F", "ip,sym", "-i"]).arg(file))?;
            Ok(Some(perf_quality(&String::from_utf8_lossy(&script), main)))
        }
        Sampler::Samply(_) | Sampler::SamplyWithNames(_) => Ok(None),
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
