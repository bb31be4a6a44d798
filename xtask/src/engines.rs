//! Programs that tests use: the engines DuckDB and Ballista, and a stand-in for S3.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::workspace;

/// Packages of PyPI, and the program that each brings.
pub(crate) const FOR_TESTS: [(&str, &str); 2] = [("duckdb-cli", "duckdb"), ("moto[server]", "moto_server")];

/// Where they are installed; tests look there.
pub(crate) fn folder() -> PathBuf {
    workspace::target_directory().join("engines")
}

/// Installs the packages whose programs are missing. Returns the packages that are missing still.
pub(crate) fn install(packages: &[(&'static str, &str)]) -> Vec<&'static str> {
    let folder = folder();
    let is_there = |program: &str| folder.join("bin").join(program).is_file();
    let wanted = || packages.iter().filter(|(_, program)| !is_there(program)).map(|(name, _)| *name);
    let names: Vec<&str> = wanted().collect();
    if names.is_empty() {
        return names;
    }
    println!("installing into {}: {}", folder.display(), names.join(", "));
    let installed = make(&folder).and_then(|()| {
        let pip = [&["install", "--quiet", "--disable-pip-version-check"], &names[..]].concat();
        run(&folder.join("bin/pip"), &pip)
    });
    if let Err(reason) = installed {
        eprintln!("cannot install all of them: {reason}");
        eprintln!("hint: tests that need them will say that they were skipped");
    }
    wanted().collect()
}

/// The crates of Ballista, each of which is a program, and their version.
const BALLISTA: [&str; 3] = ["ballista-scheduler", "ballista-executor", "ballista-cli"];
const BALLISTA_VERSION: &str = "55.0.0";

/// Builds the programs of Ballista that are missing, without optimisation: it is the rows that are tested. Returns whether
/// all are there.
pub(crate) fn build_ballista() -> bool {
    let folder = folder();
    let is_there = |program: &&str| folder.join("bin").join(program).is_file();
    for program in BALLISTA.iter().filter(|program| !is_there(program)) {
        println!("building {program} {BALLISTA_VERSION} into {}", folder.display());
        let mut install = workspace::cargo();
        install.args(["install", "--debug", "--locked", "--quiet", program, "--version", BALLISTA_VERSION]);
        install.arg("--root").arg(&folder).env("CARGO_TARGET_DIR", folder.join("ballista"));
        install.env("CARGO_PROFILE_DEV_DEBUG", "0");
        let status = install.stdin(Stdio::null()).status();
        if !status.is_ok_and(|status| status.success()) {
            eprintln!("cannot build {program}");
            return false;
        }
    }
    true
}

fn make(folder: &Path) -> Result<(), String> {
    if folder.join("bin/pip").is_file() {
        return Ok(());
    }
    let folder = folder.to_str().ok_or("the folder's name is not UTF-8")?;
    run(Path::new("python3"), &["-m", "venv", folder])
}

fn run(program: &Path, arguments: &[&str]) -> Result<(), String> {
    let status = Command::new(program).args(arguments).stdin(Stdio::null()).status();
    match status.map_err(|error| format!("cannot run {}: {error}", program.display()))? {
        status if status.success() => Ok(()),
        status => Err(format!("{} {} ended with {status}", program.display(), arguments.join(" "))),
    }
}
