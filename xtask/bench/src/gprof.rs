//! `cargo xtask bench gprof`: what a call costs in programs compiled with `-pg`, and how many of the calls are
//! counted, under the C library's `mcount` and under ours.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::measure::succeed;
use super::statistics::Spread;
use super::table::Table;
use super::{build, heading, is_quick};
use crate::workspace;

/// Threads that call a function which does next to nothing; prints the processor time of a call.
const PROGRAM: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
__attribute__((noinline, noclone)) int leaf(int x) { return x + 1; }
static void *work(void *calls) {
    int sum = 0;
    for (long i = 0; i < (long)calls; i++) sum += leaf(sum);
    return (void *)(long)(sum == 7);
}
int main(int count, char **words) {
    int threads = atoi(words[1]);
    long calls = atol(words[2]);
    pthread_t all[64];
    struct timespec before, after;
    (void)count;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
    for (int i = 0; i < threads; i++) pthread_create(&all[i], 0, work, (void *)calls);
    for (int i = 0; i < threads; i++) pthread_join(all[i], 0);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
    double ns = (after.tv_sec - before.tv_sec) * 1e9 + (after.tv_nsec - before.tv_nsec);
    printf("%.4f\n", ns / ((double)calls * threads));
    return 0;
}
"#;

/// How many calls are made in all.
const CALLS: u64 = 10_000_000;

/// Runs it with its arguments.
pub(crate) fn run(words: &[&str]) -> Result<(), String> {
    let rounds = if is_quick(words)? { 3 } else { 15 };
    print!("{}", measure(rounds)?);
    Ok(())
}

struct Programs {
    folder: PathBuf,
    library: PathBuf,
}

/// A way to count, and what it cost in each round.
struct Way {
    name: &'static str,
    program: &'static str,
    preloaded: bool,
    costs: Vec<f64>,
    calls: Option<u64>,
}

fn measure(rounds: usize) -> Result<String, String> {
    build("treering-pg")?;
    let target = workspace::target_directory();
    let programs =
        Programs { folder: target.join("bench-gprof"), library: target.join("release/libtreering_pg.so") };
    std::fs::create_dir_all(&programs.folder).map_err(|error| error.to_string())?;
    programs.compile("plain", &[])?;
    programs.compile("mcount", &["-pg"])?;
    programs.compile("fentry", &["-pg", "-mfentry"])?;
    let mut table = Table::new(
        "Counting calls of programs compiled with -pg",
        &["counted by", "threads", "ns a call", "least to greatest", "calls counted"],
    );
    for threads in [1, 2, 8] {
        let way = |name, program, preloaded| Way { name, program, preloaded, costs: Vec::new(), calls: None };
        let mut ways = [
            way("nothing", "plain", false),
            way("glibc, mcount", "mcount", false),
            way("ours, mcount", "mcount", true),
            way("glibc, __fentry__", "fentry", false),
            way("ours, __fentry__", "fentry", true),
        ];
        for _ in 0..rounds {
            for way in &mut ways {
                programs.run(way, threads)?;
            }
        }
        let median = |costs: &[f64]| Spread::of(costs).map_or(0.0, |spread| spread.median);
        let base = median(&ways[0].costs);
        for way in &ways {
            let above: Vec<f64> = way.costs.iter().map(|cost| cost - base).collect();
            let (least, most) =
                above.iter().fold((f64::MAX, f64::MIN), |(low, high), &cost| (low.min(cost), high.max(cost)));
            let calls = way.calls.map_or_else(String::new, |calls| format!("{calls} of {CALLS}"));
            let shown = if way.program == "plain" { base } else { median(&above) };
            let spread =
                if way.program == "plain" { String::new() } else { format!("{least:.2} to {most:.2}") };
            table.row(vec![way.name.to_owned(), threads.to_string(), format!("{shown:.2}"), spread, calls]);
        }
    }
    table.note(format!(
        "Processor time of a call of a function that adds 1, above that in the program compiled without -pg (first \
         row: that itself); median of {rounds} interleaved runs of {CALLS} calls. Calls counted: of the last run, by \
         gprof or by treering.",
    ));
    Ok(format!("{}\n{table}", heading("gprof", rounds < 15)))
}

impl Programs {
    fn compile(&self, name: &str, options: &[&str]) -> Result<(), String> {
        let source = self.folder.join("calls.c");
        std::fs::write(&source, PROGRAM).map_err(|error| error.to_string())?;
        let mut compile = Command::new("cc");
        compile.args(["-O1", "-pthread"]).args(options).arg("-o").arg(self.folder.join(name)).arg(source);
        succeed(&mut compile).map(|_| ())
    }

    fn run(&self, way: &mut Way, threads: u64) -> Result<(), String> {
        let place = self.folder.join("run");
        let _ = std::fs::remove_dir_all(&place);
        std::fs::create_dir_all(&place).map_err(|error| error.to_string())?;
        let mut program = Command::new(self.folder.join(way.program));
        program.args([threads.to_string(), (CALLS / threads).to_string()]).current_dir(&place);
        if way.preloaded {
            program.env("LD_PRELOAD", &self.library).env("TREERING_PG", &place);
        }
        let told = succeed(&mut program)?;
        let cost =
            String::from_utf8_lossy(&told).trim().parse().map_err(|_| "the program printed no number")?;
        way.costs.push(cost);
        way.calls = match way.program {
            "plain" => None,
            _ if way.preloaded => Some(counted(&place)?),
            _ => gprof(&self.folder.join(way.program), &place),
        };
        Ok(())
    }
}

/// The calls of `leaf` in the file of the preloaded library: those of its most frequent callee.
fn counted(place: &Path) -> Result<u64, String> {
    let entries = std::fs::read_dir(place).map_err(|error| error.to_string())?;
    let mut most = 0;
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.extension().is_none_or(|extension| extension != "arcs") {
            continue;
        }
        let bytes = read_used(&path).map_err(|error| error.to_string())?;
        let file = treering_formats::arc_file::read(&bytes).map_err(|error| error.to_string())?;
        let mut sums = std::collections::HashMap::<u64, u64>::new();
        for arc in file.tables.iter().flat_map(|table| &table.arcs) {
            *sums.entry(arc.callee).or_default() += arc.calls;
        }
        most = sums.into_values().max().unwrap_or(0).max(most);
    }
    Ok(most)
}

fn read_used(path: &Path) -> std::io::Result<Vec<u8>> {
    use std::io::Read as _;
    let mut file = std::fs::File::open(path)?;
    let mut bytes = vec![0; 64];
    file.read_exact(&mut bytes)?;
    let used = treering_formats::arc_file::used_bytes(&bytes);
    file.take(used.saturating_sub(64)).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The calls of `leaf` by gprof, if that is installed.
fn gprof(program: &Path, place: &Path) -> Option<u64> {
    let output = Command::new("gprof").args(["-b", "-p"]).arg(program).current_dir(place).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find(|line| line.trim_end().ends_with(" leaf"))?;
    line.split_whitespace().nth(3)?.parse().ok()
}
