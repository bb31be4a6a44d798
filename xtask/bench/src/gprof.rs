//! `cargo xtask bench gprof`: the cost of a call in programs compiled with `-pg`, and how many of the calls are
//! counted, under the C library's `mcount` and under ours.

use std::path::Path;
use std::process::Command;

use crate::frame::{Bench, Report, interleaved, make_folder};
use crate::measure::{succeed, text_of};
use crate::statistics::{Spread, median};
use crate::table::Table;
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

/// A way to count calls.
struct Way {
    name: &'static str,
    /// The program, by the options that it is compiled with.
    program: &'static str,
    preloaded: bool,
}

const WAYS: [Way; 5] = [
    Way { name: "nothing", program: "plain", preloaded: false },
    Way { name: "glibc, mcount", program: "mcount", preloaded: false },
    Way { name: "ours, mcount", program: "mcount", preloaded: true },
    Way { name: "glibc, __fentry__", program: "fentry", preloaded: false },
    Way { name: "ours, __fentry__", program: "fentry", preloaded: true },
];

pub(super) fn run(bench: &Bench) -> Result<Report, String> {
    for (name, options) in [("plain", &[][..]), ("mcount", &["-pg"]), ("fentry", &["-pg", "-mfentry"])] {
        let source = bench.directory.join("calls.c");
        std::fs::write(&source, PROGRAM).map_err(|error| error.to_string())?;
        let mut compile = Command::new("cc");
        compile.args(["-O1", "-pthread"]).args(options).arg("-o").arg(bench.directory.join(name)).arg(source);
        succeed(&mut compile)?;
    }
    let rounds = bench.rounds(15, 3);
    let mut table = Table::new(
        "Counting calls of programs compiled with -pg",
        &["counted by", "threads", "ns a call", "least to greatest", "calls counted"],
    );
    for threads in [1, 2, 8] {
        let runs = interleaved(WAYS.len(), rounds, |way| WAYS[way].run(&bench.directory, threads))?;
        let costs = |way: usize| runs[way].iter().map(|(cost, _)| *cost).collect::<Vec<f64>>();
        let base = median(&costs(0));
        for (at, way) in WAYS.iter().enumerate() {
            let above: Vec<f64> = costs(at).iter().map(|cost| cost - base).collect();
            let above = Spread::of(&above).ok_or("no rounds")?;
            let (shown, range) = match at {
                0 => (base, String::new()),
                _ => (above.median, format!("{:.2} to {:.2}", above.least, above.greatest)),
            };
            let calls = runs[at].last().and_then(|(_, calls)| *calls);
            let calls = calls.map_or_else(String::new, |calls| format!("{calls} of {CALLS}"));
            table.row(vec![way.name.to_owned(), threads.to_string(), format!("{shown:.2}"), range, calls]);
        }
    }
    table.note(format!(
        "Processor time of a call of a function that adds 1, above that in the program compiled without -pg (first \
         row: that itself); median of {rounds} interleaved runs of {CALLS} calls. Calls counted: of the last run, by \
         gprof or by treering.",
    ));
    Ok(Report { tables: vec![table], ..Report::default() })
}

impl Way {
    /// The cost of a call in nanoseconds, and the calls that were counted, if that is known.
    fn run(&self, folder: &Path, threads: u64) -> Result<(f64, Option<u64>), String> {
        let place = folder.join("run");
        let _ = std::fs::remove_dir_all(&place);
        make_folder(&place)?;
        let mut program = Command::new(folder.join(self.program));
        program.args([threads.to_string(), (CALLS / threads).to_string()]).current_dir(&place);
        if self.preloaded {
            let library = workspace::target_directory().join("release/libtreering_pg.so");
            program.env("LD_PRELOAD", library).env("TREERING_PG", &place);
        }
        let cost = text_of(&mut program)?.trim().parse().map_err(|_| "the program printed no number")?;
        let calls = match self.program {
            "plain" => None,
            _ if self.preloaded => Some(counted(&place)?),
            program => gprof(&folder.join(program), &place),
        };
        Ok((cost, calls))
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
