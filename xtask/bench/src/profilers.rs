//! One program under each kind of profiler: `examples/profilers/demo.cc`, for several n.
//!
//! The report of CBS compared gprof, callgrind and its own library in this way (its figure 1.3).
//! The tables compare the processor time of the program and of the profiler together.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use treering_plot::{Panel, ParameterPlot, Point, Series, Unit, parameter_svg};

use crate::frame::{Bench, Report, make_folder};
use crate::grid::Grid;
use crate::measure::{cpu_seconds, succeed};
use crate::workspace;

/// The amount of work of each function, so that callgrind ends within seconds.
const SCALE: &str = "10";

/// A way to run the demo.
struct Profiler {
    name: &'static str,
    /// The compiler's options.
    flags: &'static [&'static str],
    /// Whether the demo is linked with the library.
    is_linked: bool,
    /// The words before the demo on the command line.
    wrapper: &'static [&'static str],
}

const NONE: &[&str] = &["-DBENCH_DISABLED"];
/// Functions of the program itself, not of the headers of the library.
const INSTRUMENTED: &[&str] = &[
    "-DBENCH_DISABLED",
    "-finstrument-functions",
    "-finstrument-functions-exclude-file-list=/usr/include,/usr/lib",
];
const CALLGRIND: &[&str] = &["valgrind", "--quiet", "--tool=callgrind", "--callgrind-out-file=callgrind.out"];
const PERF: &[&str] = &["perf", "record", "--quiet", "--call-graph", "dwarf", "-o", "perf.data", "--"];

const PROFILERS: [Profiler; 6] = [
    Profiler { name: "none", flags: NONE, is_linked: false, wrapper: &[] },
    Profiler { name: "gprof", flags: &["-DBENCH_DISABLED", "-pg"], is_linked: false, wrapper: &[] },
    Profiler { name: "callgrind", flags: NONE, is_linked: false, wrapper: CALLGRIND },
    Profiler { name: "perf record", flags: NONE, is_linked: false, wrapper: PERF },
    Profiler { name: "treering, tasks", flags: &[], is_linked: true, wrapper: &[] },
    Profiler { name: "treering, functions", flags: INSTRUMENTED, is_linked: true, wrapper: &[] },
];

impl Profiler {
    /// Builds the demo for it in a folder of its own.
    fn build(&self, directory: &Path) -> Result<PathBuf, String> {
        let folder = directory.join(self.name.replace([' ', ','], "-"));
        make_folder(&folder)?;
        let mut command = Command::new("c++");
        command.args(["-std=c++17", "-O1", "-g", "-fno-optimize-sibling-calls"]).args(self.flags);
        command.arg("-I").arg(workspace::root().join("hooks/c/include"));
        command.arg(workspace::root().join("examples/profilers/demo.cc"));
        if self.is_linked {
            command.arg(workspace::target_directory().join("release/libtreering_runtime.a"));
            command.args(["-lpthread", "-ldl", "-lm", "-lrt"]);
        }
        succeed(command.arg("-o").arg(folder.join("demo")))?;
        Ok(folder)
    }

    /// The processor time of one run in its folder, in seconds.
    fn run(&self, folder: &Path, n: u32) -> Result<f64, String> {
        let demo = folder.join("demo");
        let words: Vec<&OsStr> = self.wrapper.iter().map(OsStr::new).chain([demo.as_os_str()]).collect();
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).args([&n.to_string(), SCALE]);
        cpu_seconds(command.current_dir(folder).env("TREERING_OUTPUT", "demo.trg"))
    }
}

pub(super) fn run(bench: &Bench) -> Result<Report, String> {
    let folders: Vec<PathBuf> =
        PROFILERS.iter().map(|profiler| profiler.build(&bench.directory)).collect::<Result<_, _>>()?;
    let sizes: &[u32] = if bench.quick { &[2, 4] } else { &[4, 8, 12, 16, 20] };
    let rounds = bench.rounds(7, 2);
    let grid = Grid::measure(
        sizes.iter().map(u32::to_string).collect(),
        PROFILERS.iter().map(|profiler| profiler.name.to_owned()).collect(),
        |_| rounds,
        |size, way| PROFILERS[way].run(&folders[way], sizes[size]),
    )?;
    let mut times = grid.table("Processor time with a profiler, in relation to that without", "n", |_| false);
    times.note(format!("demo n {SCALE}, compiled with -O1; {rounds} runs of each, in random order."));
    times.note(
        "gprof: -pg. callgrind: valgrind --tool=callgrind. perf: record --call-graph dwarf. treering, tasks: the macros \
         of CBS, with processor times, memory points and reports. treering, functions: -finstrument-functions for \
         the functions of the program. The cost of a single call: cargo bench -p treering-runtime.",
    );
    Ok(Report {
        tables: vec![times],
        samples: grid.samples(),
        files: vec![("profilers.svg", plot(&grid, sizes))],
        ..Report::default()
    })
}

fn plot(grid: &Grid, sizes: &[u32]) -> String {
    let series = |(way, name): (usize, &String)| {
        let point = |(size, &n): (usize, &u32)| {
            Some(Point { x: f64::from(n), y: grid.spread(size, way)?.median * 1e9, bounds: None })
        };
        Series { name: name.clone(), points: sizes.iter().enumerate().filter_map(point).collect() }
    };
    parameter_svg(&ParameterPlot {
        title: "One program under each profiler".to_owned(),
        subtitle: format!("demo n {SCALE}"),
        parameter: "n".to_owned(),
        panels: vec![Panel {
            name: "processor time (median)".to_owned(),
            unit: Unit::Nanoseconds,
            series: grid.ways.iter().enumerate().map(series).collect(),
            changes: Vec::new(),
            floor: 0.0,
        }],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_profiler_comes_first() {
        assert_eq!(PROFILERS[0].name, "none");
        assert!(!PROFILERS[0].is_linked && PROFILERS[0].wrapper.is_empty());
    }
}
