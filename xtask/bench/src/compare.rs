//! `cargo xtask bench compare`: how often `treering compare` finds a difference where there is none, how often it finds
//! one that there is, and whether it names the call that made it.

mod seeds;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::frame::{Bench, Report};
use crate::measure::succeed;
use crate::table::Table;

/// A program that does as much as it is told to, in steps of its own code and of memory.
const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
static unsigned table[1 << 14];
__attribute__((noinline)) static unsigned step(unsigned x) {
    for (int i = 0; i < 50; i++) x = x * 1664525 + table[x >> 18];
    return x;
}
int main(int count, char **words) {
    unsigned x = 1;
    long steps = count > 1 ? atol(words[1]) : 1;
    for (long i = 0; i < steps; i++) { x = step(x); table[i & 16383] += x; }
    printf("%d\n", x == 7);
    return 0;
}
"#;

/// How often it steps by default: about 30 ms.
const STEPS: u64 = 400_000;

/// `sources`: a folder with the sources of real programs, in `lua`, `zlib`, `expat`, `bzip2` and `sqlite`. A round is a timed comparison of each size of change.
pub(super) fn run(bench: &Bench, sources: Option<&Path>) -> Result<Report, String> {
    let program = bench.compile_program()?;
    let mut tables = vec![bench.counted(&program)?, bench.timed(&program, bench.rounds(200, 5))?];
    match sources {
        Some(sources) => tables.push(seeds::measure(bench, sources)?),
        None => {
            let missing =
                "No real programs: --sources FOLDER, with lua, zlib, expat, bzip2 and sqlite in it.";
            tables.iter_mut().last().into_iter().for_each(|table| table.note(missing));
        }
    }
    Ok(Report { tables, ..Report::default() })
}

impl Bench {
    fn compile_program(&self) -> Result<PathBuf, String> {
        let (source, program) = (self.directory.join("steps.c"), self.directory.join("steps"));
        std::fs::write(&source, PROGRAM).map_err(|error| error.to_string())?;
        succeed(Command::new("cc").args(["-O2", "-g", "-o"]).arg(&program).arg(&source))?;
        Ok(program)
    }

    /// Compares two commands; the document of `--json`.
    fn compare(&self, options: &[&str], base: &[&str], head: &[&str]) -> Result<Value, String> {
        let mut command = self.command("treering compare --json --undecided=ok");
        let output = succeed(command.args(options).args(base).arg("--").args(head))?;
        serde_json::from_slice(&output).map_err(|error| format!("{command:?}: {error}"))
    }

    /// Exact comparisons of the program with itself and with a little more work.
    fn counted(&self, program: &Path) -> Result<Table, String> {
        const TIMES: u32 = 5;
        let mut table =
            Table::new("Exact", &["change of the work", "comparisons", "called more", "change found"]);
        for (title, more) in [("none", 0), ("+0.1 %", STEPS / 1000), ("+2 %", STEPS / 50)] {
            let (mut found, mut changes) = (0, Vec::new());
            for _ in 0..TIMES {
                let document = self.steps(program, &["--exact"], more)?;
                found += u32::from(document["exact"]["outcome"] == "more");
                changes.push(document["exact"]["change"].as_f64().unwrap_or(f64::NAN) * 100.0);
            }
            let all = changes.iter().map(|change| format!("{change:+.4}")).collect::<Vec<_>>();
            table.row(vec![title.to_owned(), TIMES.to_string(), found.to_string(), all.join(", ")]);
        }
        Ok(table)
    }

    /// Timed comparisons, whose outcomes are counted.
    fn timed(&self, program: &Path, comparisons: usize) -> Result<Table, String> {
        let header =
            ["change of the work", "comparisons", "more", "less", "same", "undecided", "interval without 0"];
        let mut table = Table::new("Timed", &header);
        for (title, more) in
            [("none", 0), ("+2 %", STEPS / 50), ("+3 %", STEPS * 3 / 100), ("+5 %", STEPS / 20)]
        {
            let mut counts = [0; 5];
            for _ in 0..comparisons {
                let time = &self.steps(program, &["--time"], more)?["time"];
                let outcome =
                    ["more", "less", "same", "undecided"].iter().position(|word| time["outcome"] == *word);
                counts[outcome.ok_or("an unknown outcome")?] += 1;
                let bound = |key: &str| time[key].as_f64().unwrap_or(0.0);
                counts[4] += i32::from(bound("change_low") > 0.0 || bound("change_high") < 0.0);
            }
            let cells = counts.map(|count| count.to_string());
            table.row([vec![title.to_owned(), comparisons.to_string()], cells.to_vec()].concat());
        }
        table.note("Default rounds and floor. Without a change, more and less are false.");
        Ok(table)
    }

    fn steps(&self, program: &Path, options: &[&str], more: u64) -> Result<Value, String> {
        let program = program.to_string_lossy();
        let (base, head) = (STEPS.to_string(), (STEPS + more).to_string());
        self.compare(options, &[&program, &base], &[&program, &head])
    }
}
