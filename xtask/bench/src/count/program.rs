//! The programs that are counted, with inputs that are the same everywhere.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use treering_testing::programs::{
    BENCH_FIB, BENCH_LOOPS, BENCH_OBJECTS, BENCH_SORT, Program, compressible_text, fixture, installed,
};

use crate::measure::text_of;

/// A program with its arguments.
#[derive(Clone, Debug)]
pub(super) struct Counted {
    /// Its name in tables.
    pub(super) name: &'static str,
    /// The command.
    pub(super) words: Vec<OsString>,
    /// The same with an input so small that the program reaches little of its code.
    pub(super) smaller: Vec<OsString>,
    /// Whether it is one of the twelve that geometric means are of; the others show what starting costs.
    pub(super) in_mean: bool,
}

/// The size of a smaller input, as a part of the usual one.
const SMALLER: f64 = 0.01;

/// Makes the command of a program, from the folder of its data and the size of its input.
type Make = fn(&Path, f64) -> Result<Vec<OsString>, String>;

/// The programs that geometric means are of, in the order of the table.
const WORKING: [(&str, Make); 12] = [
    ("tight loops", |_, size| built(&BENCH_LOOPS, 40_000.0 * size)),
    ("fib", |_, size| built(&BENCH_FIB, 38.0 + size.log2() * 1.44)),
    ("qsort+sieve", |_, size| built(&BENCH_SORT, 1_300_000.0 * size)),
    ("C++ virtual+map", |_, size| built(&BENCH_OBJECTS, 60_000.0 * size)),
    ("gzip", |at, size| packer(&["gzip", "-6"], at, 12e6 * size)),
    ("bzip2", |at, size| packer(&["bzip2", "-9"], at, 5e6 * size)),
    ("xz -1", |at, size| packer(&["xz", "-1", "--threads=1"], at, 8e6 * size)),
    ("python3", |_, size| script("python3", "workloads/loops.py", 2.0 * size)),
    ("lua", lua),
    ("perl", |_, size| script("perl", "count/bench_interpret.pl", 220.0 * size)),
    ("sqlite3", |_, size| sqlite(130_000.0 * size)),
    ("cc1 -O2", cc1),
];

/// The programs that show the cost of a start.
const STARTING: [(&str, Make); 2] = [
    ("python3 -c pass", |_, _| Ok(words(&["python3", "-c", "pass"]))),
    ("/bin/true", |_, _| Ok(words(&["true"]))),
];

/// Makes the wanted programs ready. `size` is 1 for inputs that take about half a second.
pub(super) fn all(
    directory: &Path,
    size: f64,
    is_wanted: impl Fn(&str) -> bool,
) -> Result<Vec<Counted>, String> {
    let mut programs = Vec::new();
    let entries = WORKING.map(|entry| (entry, true)).into_iter().chain(STARTING.map(|entry| (entry, false)));
    for ((name, make), in_mean) in entries.filter(|((name, _), _)| is_wanted(name)) {
        let (words, smaller) = (make(directory, size)?, make(directory, size * SMALLER)?);
        programs.push(Counted { name, words, smaller, in_mean });
    }
    Ok(programs)
}

fn words(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

fn built(program: &Program, argument: f64) -> Result<Vec<OsString>, String> {
    let path = program.build().map_err(|error| error.to_string())?;
    Ok(vec![path.into(), whole(argument).into()])
}

fn whole(number: f64) -> String {
    format!("{}", number.round().max(1.0) as u64)
}

fn script(interpreter: &str, file: &str, rounds: f64) -> Result<Vec<OsString>, String> {
    Ok(words(&[interpreter, &fixture(file).to_string_lossy(), &whole(rounds)]))
}

fn lua(_: &Path, size: f64) -> Result<Vec<OsString>, String> {
    let names = ["lua5.4", "lua5.3"];
    let found = names.into_iter().find(|name| installed(name).is_some()).unwrap_or("lua");
    script(found, "count/bench_interpret.lua", 250.0 * size)
}

fn packer(options: &[&str], directory: &Path, bytes: f64) -> Result<Vec<OsString>, String> {
    let path = directory.join(format!("text-{}.txt", whole(bytes)));
    keep(&path, || compressible_text(bytes as usize))?;
    Ok([words(options), vec!["--stdout".into(), path.into()]].concat())
}

fn sqlite(rows: f64) -> Result<Vec<OsString>, String> {
    let rows = format!(".parameter set :rows {}", whole(rows));
    let read = format!(".read {}", fixture("workloads/joins.sql").display());
    Ok(words(&["sqlite3", "-batch", "-init", "/dev/null", ":memory:", ".parameter init", &rows, &read]))
}

/// The compiler proper, on a generated file.
fn cc1(directory: &Path, size: f64) -> Result<Vec<OsString>, String> {
    let functions = (220.0 * size).round().max(4.0) as u32;
    let path = directory.join(format!("generated-{functions}.c"));
    keep(&path, || source_code(functions).into_bytes())?;
    let program = text_of(Command::new("gcc").arg("-print-prog-name=cc1")).unwrap_or_default();
    Ok(words(&[program.trim(), &path.to_string_lossy(), "-O2", "-quiet", "-o", "/dev/null"]))
}

/// C functions of loops, switches and calls of those before them, no two alike.
fn source_code(functions: u32) -> String {
    let mut text = String::from("struct node { struct node *next; int key, value; };\n");
    for number in 0..functions {
        let (a, b, c) = (number * 7 + 3, number * 13 % 31 + 2, number % 5);
        let callee =
            number.checked_sub(1 + c).map_or_else(|| "0".to_owned(), |at| format!("f{at}(list, x - 1)"));
        let _ = write!(
            text,
            "int f{number}(struct node *list, int x) {{
    int sum = {a};
    for (struct node *at = list; at; at = at->next) {{
        switch ((at->key + x) % {b}) {{
        case 0: sum += at->value * {a}; break;
        case 1: sum ^= at->key << {c}; break;
        case 2: at->value = sum / (x | 1); break;
        default: if (at->value > sum) sum -= x; else sum += at->key;
        }}
    }}
    int table[{b}];
    for (int i = 0; i < {b}; i++) table[i] = sum * i + x;
    for (int i = 1; i < {b}; i++) sum += table[i - 1] > table[i] ? table[i] : i;
    return x > 0 ? sum + {callee} : sum;
}}
"
        );
    }
    text
}

/// Writes a file unless it is there.
fn keep(path: &Path, make: impl FnOnce() -> Vec<u8>) -> Result<(), String> {
    if path.exists() {
        return Ok(());
    }
    std::fs::write(path, make()).map_err(|error| format!("cannot write {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_code_is_the_same_in_every_run_and_compiles() {
        assert_eq!(source_code(12), source_code(12));
        let Some(gcc) = installed("gcc") else { return };
        let path = std::env::temp_dir().join(format!("treering-generated-{}.c", std::process::id()));
        std::fs::write(&path, source_code(12)).expect("there is room for a file");
        let output = Command::new(gcc).args(["-fsyntax-only", "-Werror"]).arg(&path).output();
        std::fs::remove_file(&path).expect("it was written");
        let output = output.expect("gcc runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}
