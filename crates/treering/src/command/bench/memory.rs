//! `treering bench memory`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use treering_analysis::{PointSeries, Series, value_at};
use treering_plot::{MemoryPlot, MemorySeries, Unit, memory_svg};

use super::drawing::write_plot;
use crate::failure::{Failure, Outcome};
use crate::open::open_profile;
use crate::output::check_plot_target;
use crate::terminal;

/// Draw the memory of runs over time as an SVG picture
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The profiles are those of programs that note their memory, as BENCH_MEMPLOT of CBS's macros does.
Each step of a line is a point; the peak has a ring.

Examples:
  treering bench memory run.trg -o memory.svg
  treering bench memory before.trg after.trg -o memory.svg")]
pub struct Memory {
    /// The profiles, the older one first
    #[arg(value_name = "PROFILE", required = true)]
    profiles: Vec<PathBuf>,
    /// The metric of the points [default: resident memory, or else the first one]
    #[arg(long, value_name = "NAME")]
    metric: Option<String>,
    /// The file to write, as PNG where it is called .png [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace FILE even if it is not a plot
    #[arg(long, requires = "output")]
    force: bool,
}

/// The usual metric of points.
const RESIDENT: &str = "resident memory";

impl Memory {
    /// Does it.
    pub fn run(self) -> Outcome {
        let inputs: Vec<&Path> = self.profiles.iter().map(PathBuf::as_path).collect();
        if let Some(output) = &self.output {
            check_plot_target(output, &inputs, self.force)?;
        }
        let series = inputs.iter().map(|path| self.series(path)).collect::<Result<Vec<_>, _>>()?;
        let svg = memory_svg(&plot(series));
        match &self.output {
            Some(output) => write_plot(output, &svg)?,
            None => terminal::print(&svg)?,
        }
        Ok(ExitCode::SUCCESS)
    }

    /// The points of the first run of a profile.
    fn series(&self, path: &Path) -> Result<MemorySeries, Failure> {
        let opened = open_profile(path)?;
        opened.print_warnings();
        let profile = &opened.profile;
        let points = PointSeries::of(profile);
        let name = |series: &Series<'_>| profile.metrics[series.metric.index()].name.as_str();
        let called = |wanted: &str| points.series.iter().find(|series| name(series) == wanted);
        let found = match &self.metric {
            Some(wanted) => called(wanted),
            None => called(RESIDENT).or(points.series.first()),
        };
        let Some(series) = found else {
            let message =
                format!("{} has no points of {}", path.display(), self.metric.as_deref().unwrap_or("memory"));
            return Err(Failure::new(message).hint("treering report --points lists those of a profile"));
        };
        let in_run = points.points.iter().filter(|point| points.run(profile, point) == series.run);
        let steps = in_run.filter_map(|point| {
            let value = value_at(point, series.metric)?;
            Some((point.time_ns as f64, value as f64))
        });
        let file = path.file_stem().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        Ok(MemorySeries { name: file, steps: steps.collect() })
    }
}

/// The plot, whose title tells the peaks.
fn plot(series: Vec<MemorySeries>) -> MemoryPlot {
    let peak = |of: &MemorySeries| {
        let most = of.steps.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.total_cmp(&a.0)));
        most.unwrap_or((0.0, 0.0))
    };
    let part = |of: &MemorySeries| {
        let end = of.steps.last().map_or(0.0, |(time, _)| *time);
        if end > 0.0 { peak(of).0 / end * 100.0 } else { 0.0 }
    };
    let bytes = |of: &MemorySeries| Unit::Bytes.text(peak(of).1);
    let title = match &series[..] {
        [base, head] => {
            let change = Unit::Change.text(peak(head).1 / peak(base).1 - 1.0);
            format!(
                "peak memory {} → {} ({change}), at {:.0} % of the run instead of at {:.0} %",
                bytes(base),
                bytes(head),
                part(head),
                part(base)
            )
        }
        all => {
            let peaks =
                all.iter().map(|of| format!("{} of {} at {:.0} % of the run", bytes(of), of.name, part(of)));
            format!("peak memory {}", peaks.collect::<Vec<_>>().join(", "))
        }
    };
    let points = series.iter().map(|of| of.steps.len().to_string()).collect::<Vec<_>>().join(" and ");
    MemoryPlot { title, subtitle: format!("{points} points · time is not compared here"), series }
}
