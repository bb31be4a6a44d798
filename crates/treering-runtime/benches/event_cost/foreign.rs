//! Events of programs that are compiled apart: in C, without the feature, and with the libraries of
//! others.
//!
//! They are built here and not as dependencies, since neither tests nor users should have to.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::events::add_lines;
use crate::measure::{Effort, FULL};
use crate::table::Table;

/// Programs of the package `peers`, each with the feature that it needs and what it is called where
/// it is left out.
const PEERS: [(&str, &str, bool); 5] = [
    ("compiled_out", "Rust scope, compiled out", true),
    ("puffin", "puffin", false),
    ("hotpath", "hotpath", false),
    ("tracy", "Tracy, recording into memory", false),
    ("tracy_idle", "Tracy, on demand and not asked", false),
];

pub(crate) fn measure(effort: Effort, directory: &Path, table: &mut Table) {
    let mut add = |name: &str, is_ours: bool, program: Result<PathBuf, String>| match program
        .and_then(|program| run(&program, effort, directory))
    {
        Ok(text) => add_lines(table, is_ours, &text.replace("C, call graph", name)),
        Err(reason) => table.leave_out(name, &reason),
    };
    add("C, call graph, static library", true, c_program("staticlib", "scope.c", directory));
    add("C, call graph, shared library", true, c_program("cdylib", "scope.c", directory));
    add("CBS", true, c_program("staticlib", "cbs.cc", directory));
    for (program, name, is_ours) in PEERS {
        add(name, is_ours, peer(program));
    }
    add("like CBS", false, compile("c++", &["-std=c++17"], "cbs_like.cc", directory, &[]));
}

fn run(program: &Path, effort: Effort, directory: &Path) -> Result<String, String> {
    let mut command = Command::new(program);
    if effort.batches < FULL.batches {
        command.arg("--quick");
    }
    command.current_dir(directory).env("TREERING_OUTPUT", directory.join("foreign.trg"));
    let output = command.output().map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let says = || String::from_utf8_lossy(&output.stderr).lines().last().unwrap_or_default().to_owned();
    if output.status.success() { Ok(text) } else { Err(format!("{}: {}", output.status, says())) }
}

/// Compiles one of the sources here.
fn compile(
    compiler: &str,
    options: &[&str],
    source: &str,
    directory: &Path,
    behind: &[String],
) -> Result<PathBuf, String> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/event_cost/foreign");
    let program = directory.join(format!("{source}-{}", behind.len()));
    let mut command = Command::new(compiler);
    command.args(["-O2", "-o"]).arg(&program).args(options).arg(here.join(source)).args(behind);
    built(&mut command)?;
    Ok(program)
}

/// A program in C or C++ with the runtime as a library of that kind.
fn c_program(kind: &str, source: &str, directory: &Path) -> Result<PathBuf, String> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("library");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args([
        "rustc",
        "--quiet",
        "--release",
        "--package",
        "treering-runtime",
        "--lib",
        "--crate-type",
        kind,
    ]);
    cargo.arg("--target-dir").arg(&target).current_dir(env!("CARGO_MANIFEST_DIR"));
    built(&mut cargo)?;
    let release = target.join("release").to_string_lossy().into_owned();
    let behind = match kind {
        "cdylib" => {
            vec![format!("-L{release}"), "-ltreering_runtime".into(), format!("-Wl,-rpath,{release}")]
        }
        _ => {
            let system = ["-lgcc_s", "-lutil", "-lrt", "-lpthread", "-lm", "-ldl", "-lc"].map(str::to_owned);
            [vec![format!("{release}/libtreering_runtime.a")], system.to_vec()].concat()
        }
    };
    let include = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/../../hooks/c/include");
    let compiler = if source.ends_with(".c") { "cc" } else { "c++" };
    compile(compiler, &[include], source, directory, &behind)
}

fn peer(program: &str) -> Result<PathBuf, String> {
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/peers");
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("peers");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--release", "--features", program, "--bin", program, "--target-dir"]);
    built(cargo.arg(&target).current_dir(package))?;
    Ok(target.join("release").join(program))
}

/// Runs a compiler; its last line when it fails.
fn built(command: &mut Command) -> Result<(), String> {
    let output =
        command.output().map_err(|error| format!("{}: {error}", command.get_program().to_string_lossy()))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let first = said.lines().find(|line| line.contains("error")).unwrap_or_default();
    Err(format!("it cannot be built: {first}"))
}
