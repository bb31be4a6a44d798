//! One program under each kind of profiler: `examples/profilers/demo.cc`, for several n.
//!
//! The report of CBS compared gprof, callgrind and its own library in this way (its figure 1.3).
//! What is compared is the processor time of the program and of the profiler together.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use treering_testing::programs::installed;

use super::measure::{children_seconds, succeed};
use super::plot::{self, Line};
use super::statistics::Spread;
use super::table::Table;
use super::{build, heading, machine, write};
use crate::workspace;

/// How large the runs are.
struct Scope {
    quick: bool,
    /// Arguments of the demo.
    sizes: &'static [u32],
    rounds: usize,
}

/// The amount of work of each function, so that callgrind ends within seconds.
const SCALE: &str = "10";

impl Scope {
    fn parse(words: &[&str]) -> Result<Self, String> {
        match words {
            [] => Ok(Self { quick: false, sizes: &[4, 8, 12, 16, 20], rounds: 7 }),
            ["--quick"] => Ok(Self { quick: true, sizes: &[2, 4], rounds: 2 }),
            [other, ..] => Err(format!("unknown option {other}; there is --quick")),
        }
    }
}

/// A way to run the demo.
#[derive(Clone, Debug)]
struct Profiler {
    name: &'static str,
    /// What the demo is compiled with.
    flags: &'static [&'static str],
    /// Whether it is linked with the library.
    is_linked: bool,
    /// What comes before the demo on the command line.
    wrapper: &'static [&'static str],
}

const NONE: &[&str] = &["-DBENCH_DISABLED"];
/// Functions of the program itself, not of the headers of the library.
const INSTRUMENTED: &[&str] = &[
    "-DBENCH_DISABLED",
    "-finstrument-functions",
    "-finstrument-functions-exclude-file-list=/usr/include,/usr/lib",
];

const PROFILERS: &[Profiler] = &[
    Profiler { name: "none", flags: NONE, is_linked: false, wrapper: &[] },
    Profiler { name: "gprof", flags: &["-DBENCH_DISABLED", "-pg"], is_linked: false, wrapper: &[] },
    Profiler {
        name: "callgrind",
        flags: NONE,
        is_linked: false,
        wrapper: &["valgrind", "--quiet", "--tool=callgrind", "--callgrind-out-file=callgrind.out"],
    },
    Profiler {
        name: "perf record",
        flags: NONE,
        is_linked: false,
        wrapper: &["perf", "record", "--quiet", "--call-graph", "dwarf", "-o", "perf.data", "--"],
    },
    Profiler { name: "treering, tasks", flags: &[], is_linked: true, wrapper: &[] },
    Profiler { name: "treering, functions", flags: INSTRUMENTED, is_linked: true, wrapper: &[] },
];

/// A profiler with the demo built for it, in a folder of its own.
struct Built {
    profiler: Profiler,
    folder: PathBuf,
}

impl Built {
    fn new(profiler: &Profiler, directory: &Path) -> Result<Self, String> {
        let folder = directory.join(profiler.name.replace([' ', ','], "-"));
        std::fs::create_dir_all(&folder)
            .map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
        let mut command = Command::new("c++");
        command.args(["-std=c++17", "-O1", "-g", "-fno-optimize-sibling-calls"]).args(profiler.flags);
        command.arg("-I").arg(workspace::root().join("hooks/c/include"));
        command.arg(workspace::root().join("examples/profilers/demo.cc"));
        if profiler.is_linked {
            command.arg(workspace::target_directory().join("release/libtreering_runtime.a"));
            command.args(["-lpthread", "-ldl", "-lm", "-lrt"]);
        }
        succeed(command.arg("-o").arg(folder.join("demo")))?;
        Ok(Self { profiler: profiler.clone(), folder })
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
        let before = children_seconds();
        succeed(&mut command)?;
        Ok(children_seconds() - before)
    }

    /// How many calls the profile of the last run holds; nothing for other profilers.
    fn measures(&self) -> Result<Option<u64>, String> {
        if !self.profiler.is_linked {
            return Ok(None);
        }
        let bytes = std::fs::read(self.folder.join("demo.trg")).map_err(|error| error.to_string())?;
        let (_, profile, report) = treering_formats::read_any(&bytes).map_err(|error| error.to_string())?;
        if !report.is_complete() {
            return Err(format!("the profile of {} is not complete: {report:?}", self.profiler.name));
        }
        Ok(Some(profile.tree.nodes().map(|node| profile.tree.calls(node)).sum()))
    }
}

/// The profilers that run here, and why the others do not.
fn find(directory: &Path) -> Result<(Vec<Built>, Vec<String>), String> {
    let (mut found, mut absent) = (Vec::new(), Vec::new());
    for profiler in PROFILERS {
        let missing = profiler.wrapper.first().filter(|program| installed(program).is_none());
        if let Some(program) = missing {
            absent.push(format!("{program} is not installed, so {} is not in the table.", profiler.name));
            continue;
        }
        let built = Built::new(profiler, directory)?;
        match built.run(1, SCALE) {
            Ok(_) => found.push(built),
            Err(error) if profiler.is_linked || profiler.wrapper.is_empty() => return Err(error),
            Err(error) => absent.push(format!("{} does not run here: {error}", profiler.name)),
        }
    }
    Ok((found, absent))
}

/// The times of every profiler, by argument and round. In each round, everything runs once, in
/// random order.
fn measure(scope: &Scope, profilers: &[Built]) -> Result<Vec<Vec<Vec<f64>>>, String> {
    let mut times = vec![vec![Vec::new(); scope.sizes.len()]; profilers.len()];
    let all = |profiler: usize| (0..scope.sizes.len()).map(move |size| (profiler, size));
    let mut order: Vec<_> = (0..profilers.len()).flat_map(all).collect();
    for round in 1..=scope.rounds {
        eprintln!("  round {round} of {}", scope.rounds);
        fastrand::shuffle(&mut order);
        for &(profiler, size) in &order {
            times[profiler][size].push(profilers[profiler].run(scope.sizes[size], SCALE)?);
        }
    }
    Ok(times)
}

/// The least time, and the median.
fn summary(times: &[f64]) -> (f64, f64) {
    let least = times.iter().copied().fold(f64::INFINITY, f64::min);
    (least, Spread::of(times).map_or(f64::NAN, |spread| spread.median))
}

/// Runs `bench profilers` with its arguments.
pub(crate) fn run(words: &[&str]) -> Result<(), String> {
    bench(&Scope::parse(words)?)
}

fn bench(scope: &Scope) -> Result<(), String> {
    build("treering-runtime")?;
    let directory = workspace::target_directory().join("bench-profilers");
    let (profilers, absent) = find(&directory)?;
    eprintln!("measuring run times");
    let times = measure(scope, &profilers)?;
    let (mut table, data) = table_of_times(scope, &profilers, &times);
    absent.into_iter().for_each(|why| table.note(why));
    eprintln!("measuring the cost of a measure");
    let (measures, measures_data) = table_of_measures(scope, &profilers)?;
    let page = format!("{}\n{table}\n{measures}", heading("profilers", scope.quick));
    print!("{page}");
    let data = json!({"machine": machine(), "quick": scope.quick, "times": data, "measures": measures_data});
    write(&directory, "profilers.md", &page)?;
    write(&directory, "profilers.json", &format!("{data:#}\n"))?;
    write(&directory, "profilers.svg", &plot(scope, &profilers, &times)?)
}

fn table_of_times(scope: &Scope, profilers: &[Built], times: &[Vec<Vec<f64>>]) -> (Table, Value) {
    let names = profilers.iter().map(|built| built.profiler.name);
    let header: Vec<&str> = ["n", "none, s"].into_iter().chain(names.skip(1)).collect();
    let mut table =
        Table::new("Processor time with a profiler, in relation to that without: least / median", &header);
    let mut data = Vec::new();
    for (size, n) in scope.sizes.iter().enumerate() {
        let (least_without, median_without) = summary(&times[0][size]);
        let mut cells = vec![n.to_string(), format!("{least_without:.3} / {median_without:.3}")];
        for (built, times) in profilers.iter().zip(times) {
            let (least, median) = summary(&times[size]);
            let (least_ratio, median_ratio) = (least / least_without, median / median_without);
            data.push(json!({
                "profiler": built.profiler.name, "n": n, "cpu_s": times[size], "least_s": least, "median_s": median,
                "least_ratio": least_ratio, "median_ratio": median_ratio,
            }));
            if built.profiler.name != "none" {
                cells.push(format!("{least_ratio:.2} / {median_ratio:.2}"));
            }
        }
        table.row(cells);
    }
    table.note(format!(
        "demo n {SCALE}, compiled with -O1; {} runs of each, in random order. The time is that of the program and \
         of the profiler together, in user's and system's mode.",
        scope.rounds
    ));
    table.note(
        "gprof: -pg. callgrind: valgrind --tool=callgrind. perf: record --call-graph dwarf. treering, tasks: the macros \
         of CBS, with processor times, memory points and reports. treering, functions: -finstrument-functions for \
         the functions of the program.",
    );
    (table, json!(data))
}

/// With no work to do, what the demo takes longer for many calls than for few, less the same
/// without a profiler, is what measuring them costs.
fn table_of_measures(scope: &Scope, profilers: &[Built]) -> Result<(Table, Value), String> {
    let runs = if scope.quick { 2 } else { 41 };
    let header = ["profiler", "measures", "cost of a measure, ns: least", "median"];
    let mut table = Table::new("What a measure costs", &header);
    let mut data = Vec::new();
    let times = |built: &Built| -> Result<[Vec<f64>; 2], String> {
        let mut times = [Vec::new(), Vec::new()];
        for _ in 0..runs {
            times[0].push(built.run(FEW, "0")?);
            times[1].push(built.run(MANY, "0")?);
        }
        Ok(times)
    };
    let without = times(&profilers[0])?;
    for built in profilers.iter().filter(|built| built.profiler.is_linked) {
        let with = times(built)?;
        let many = built.measures()?.unwrap_or(0);
        built.run(FEW, "0")?;
        let more = many.saturating_sub(built.measures()?.unwrap_or(0));
        let [least, median] = cost_of_measure(&with, &without, more);
        let name = built.profiler.name;
        table.row(vec![name.to_owned(), more.to_string(), format!("{least:.0}"), format!("{median:.0}")]);
        data.push(json!({"profiler": name, "measures": more, "least_ns": least, "median_ns": median}));
    }
    table.note(format!(
        "demo {MANY} 0 less demo {FEW} 0, less the same without a profiler: from the least of {runs} runs, and from \
         their medians. A measure is an enter and its leave. Tasks include the points of the memory plot, one for \
         each {} measures, and the processor time, which is read every 100 µs; this is too coarse for anything \
         below some 10 ns, for which there is cargo bench -p treering-runtime.",
        3 * (MANY + 1)
    ));
    Ok((table, json!(data)))
}

const FEW: u32 = 10;
const MANY: u32 = 100;

/// Nanoseconds for each of so many measures, by the least and by the median of the runs.
fn cost_of_measure(with: &[Vec<f64>; 2], without: &[Vec<f64>; 2], measures: u64) -> [f64; 2] {
    let more = |times: &[Vec<f64>; 2]| {
        let ((least_few, median_few), (least_many, median_many)) = (summary(&times[0]), summary(&times[1]));
        [least_many - least_few, median_many - median_few]
    };
    let (with, without) = (more(with), more(without));
    [0, 1].map(|at| (with[at] - without[at]) * 1e9 / measures.max(1) as f64)
}

fn plot(scope: &Scope, profilers: &[Built], times: &[Vec<Vec<f64>>]) -> Result<String, String> {
    let line = |(built, times): (&Built, &Vec<Vec<f64>>)| {
        let points = scope.sizes.iter().zip(times).map(|(n, times)| (f64::from(*n), summary(times).1));
        Line { name: built.profiler.name.to_owned(), points: points.collect() }
    };
    let lines: Vec<Line> = profilers.iter().zip(times).map(line).collect();
    plot::draw("One program under each profiler", ("n", "processor time, s (median)"), &lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cost_of_a_measure_is_what_both_differences_leave() {
        let with = [vec![0.003, 0.002, 0.009], vec![0.009, 0.012, 0.008]];
        let without = [vec![0.001; 3], vec![0.002; 3]];
        let [least, median] = cost_of_measure(&with, &without, 1000);
        assert!((least - 5000.0).abs() < 1e-6 && (median - 5000.0).abs() < 1e-6, "{least} {median}");
    }

    #[test]
    fn no_profiler_comes_first() {
        assert_eq!(PROFILERS[0].name, "none");
        assert!(!PROFILERS[0].is_linked && PROFILERS[0].wrapper.is_empty());
    }

    #[test]
    fn options_that_are_unknown_are_refused() {
        assert!(Scope::parse(&["--quick"]).is_ok_and(|scope| scope.quick));
        assert!(Scope::parse(&["--slow"]).is_err_and(|error| error.contains("--quick")));
    }
}
