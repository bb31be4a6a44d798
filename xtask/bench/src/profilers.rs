//! One program under each kind of profiler: `examples/profilers/demo.cc`, for several n.
//!
//! The report of CBS compared gprof, callgrind and its own library in this way (its figure 1.3).
//! The tables compare the processor time of the program and of the profiler together.

use std::path::{Path, PathBuf};
use std::process::Command;

use treering_plot::{Panel, ParameterPlot, Point, Series, Unit, parameter_svg};
use treering_testing::programs::installed;

use crate::frame::{Bench, Report, interleaved, make_folder};
use crate::grid::Grid;
use crate::measure::{cpu_seconds, succeed};
use crate::statistics::Spread;
use crate::table::Table;
use crate::workspace;

/// The amount of work of each function, so that callgrind ends within seconds.
const SCALE: &str = "10";

/// A way to run the demo.
#[derive(Clone, Debug)]
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

/// A profiler with the demo built for it, in a folder of its own.
struct Built {
    profiler: Profiler,
    folder: PathBuf,
}

impl Built {
    fn new(profiler: Profiler, directory: &Path) -> Result<Self, String> {
        let folder = directory.join(profiler.name.replace([' ', ','], "-"));
        make_folder(&folder)?;
        let mut command = Command::new("c++");
        command.args(["-std=c++17", "-O1", "-g", "-fno-optimize-sibling-calls"]).args(profiler.flags);
        command.arg("-I").arg(workspace::root().join("hooks/c/include"));
        command.arg(workspace::root().join("examples/profilers/demo.cc"));
        if profiler.is_linked {
            command.arg(workspace::target_directory().join("release/libtreering_runtime.a"));
            command.args(["-lpthread", "-ldl", "-lm", "-lrt"]);
        }
        succeed(command.arg("-o").arg(folder.join("demo")))?;
        Ok(Self { profiler, folder })
    }

    /// The processor time of one run, in seconds.
    fn run(&self, n: u32, scale: &str) -> Result<f64, String> {
        let demo = self.folder.join("demo");
        let mut command = match self.profiler.wrapper {
            [] => Command::new(demo),
            [program, arguments @ ..] => {
                let mut command = Command::new(program);
                command.args(arguments).arg(demo);
                command
            }
        };
        command.args([&n.to_string(), scale]).current_dir(&self.folder).env("TREERING_OUTPUT", "demo.trg");
        cpu_seconds(&mut command)
    }

    /// The calls in the profile of the last run, under the library.
    fn measures(&self) -> Result<u64, String> {
        let bytes = std::fs::read(self.folder.join("demo.trg")).map_err(|error| error.to_string())?;
        let (_, profile, report) = treering_formats::read_any(&bytes).map_err(|error| error.to_string())?;
        if !report.is_complete() {
            return Err(format!("the profile of {} is not complete: {report:?}", self.profiler.name));
        }
        Ok(profile.tree.nodes().map(|node| profile.tree.calls(node)).sum())
    }
}

/// The profilers that run here, and for each of the others a sentence why it does not.
fn find(directory: &Path) -> Result<(Vec<Built>, Vec<String>), String> {
    let (mut found, mut absent) = (Vec::new(), Vec::new());
    for profiler in PROFILERS {
        let name = profiler.name;
        if let Some(program) = profiler.wrapper.first().filter(|program| installed(program).is_none()) {
            absent.push(format!("{program} is not installed, so {name} is not in the table."));
            continue;
        }
        let is_optional = !profiler.wrapper.is_empty();
        let built = Built::new(profiler, directory)?;
        match built.run(1, SCALE) {
            Ok(_) => found.push(built),
            Err(error) if is_optional => absent.push(format!("{name} does not run here: {error}")),
            Err(error) => return Err(error),
        }
    }
    Ok((found, absent))
}

pub(super) fn run(bench: &Bench) -> Result<Report, String> {
    let (profilers, absent) = find(&bench.directory)?;
    let sizes: &[u32] = if bench.quick { &[2, 4] } else { &[4, 8, 12, 16, 20] };
    let rounds = bench.rounds(7, 2);
    let grid = Grid::measure(
        sizes.iter().map(u32::to_string).collect(),
        profilers.iter().map(|built| built.profiler.name.to_owned()).collect(),
        |_| rounds,
        |size, way| profilers[way].run(sizes[size], SCALE),
    )?;
    let mut times = grid.table("Processor time with a profiler, in relation to that without", "n", |_| false);
    times.note(format!("demo n {SCALE}, compiled with -O1; {rounds} runs of each, in random order."));
    times.note(
        "gprof: -pg. callgrind: valgrind --tool=callgrind. perf: record --call-graph dwarf. treering, tasks: the macros \
         of CBS, with processor times, memory points and reports. treering, functions: -finstrument-functions for \
         the functions of the program.",
    );
    absent.into_iter().for_each(|why| times.note(why));
    eprintln!("measuring the cost of a measure");
    let measures = table_of_measures(&profilers, bench.rounds(41, 2))?;
    Ok(Report {
        tables: vec![times, measures],
        samples: grid.samples(),
        files: vec![("profilers.svg", plot(&grid, sizes))],
        ..Report::default()
    })
}

/// With no work to do, the time that the demo takes longer for many calls than for few, less the same
/// without a profiler, is the cost of measuring them.
fn table_of_measures(profilers: &[Built], runs: usize) -> Result<Table, String> {
    let header = ["profiler", "measures", "cost of a measure, ns: least", "median"];
    let mut table = Table::new("The cost of a measure", &header);
    let times = |built: &Built| interleaved(2, runs, |way| built.run([FEW, MANY][way], "0"));
    let without = times(&profilers[0])?;
    for built in profilers.iter().filter(|built| built.profiler.is_linked) {
        let with = times(built)?;
        let measures = |n| built.run(n, "0").and_then(|_| built.measures());
        let more = measures(MANY)?.saturating_sub(measures(FEW)?);
        let [least, median] = cost_of_measure(&with, &without, more).ok_or("no runs")?;
        let name = built.profiler.name;
        table.row(vec![name.to_owned(), more.to_string(), format!("{least:.0}"), format!("{median:.0}")]);
    }
    table.note(format!(
        "demo {MANY} 0 less demo {FEW} 0, less the same without a profiler: from the least of {runs} runs, and from \
         their medians. A measure is an enter and its leave. Tasks include the points of the memory plot, one for \
         each {} measures, and the processor time, which is read every 100 µs; this is too coarse for anything \
         below some 10 ns, for which there is cargo bench -p treering-runtime.",
        3 * (MANY + 1)
    ));
    Ok(table)
}

const FEW: u32 = 10;
const MANY: u32 = 100;

/// Nanoseconds for each of so many measures, by the least and by the median of the runs with few and many.
fn cost_of_measure(with: &[Vec<f64>], without: &[Vec<f64>], measures: u64) -> Option<[f64; 2]> {
    let more = |times: &[Vec<f64>]| {
        let (few, many) = (Spread::of(&times[0])?, Spread::of(&times[1])?);
        Some([many.least - few.least, many.median - few.median])
    };
    let (with, without) = (more(with)?, more(without)?);
    Some([0, 1].map(|at| (with[at] - without[at]) * 1e9 / measures.max(1) as f64))
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
    fn the_cost_of_a_measure_is_left_by_both_differences() {
        let with = [vec![0.003, 0.002, 0.009], vec![0.009, 0.012, 0.008]];
        let without = [vec![0.001; 3], vec![0.002; 3]];
        let [least, median] = cost_of_measure(&with, &without, 1000).expect("there are runs");
        assert!((least - 5000.0).abs() < 1e-6 && (median - 5000.0).abs() < 1e-6, "{least} {median}");
    }

    #[test]
    fn no_profiler_comes_first() {
        assert_eq!(PROFILERS[0].name, "none");
        assert!(!PROFILERS[0].is_linked && PROFILERS[0].wrapper.is_empty());
    }
}
