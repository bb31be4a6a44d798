//! The library is built and installed with CMake, and found by CMake and pkg-config.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stderr, reason = "a test says that it was skipped")]

use std::path::{Path, PathBuf};
use std::process::Command;

fn hooks() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../hooks/c")
}

/// Runs a command and returns what it wrote; nothing, and a word about it, if it is not installed.
fn run(command: &mut Command) -> Option<String> {
    let Ok(output) = command.output() else {
        eprintln!("skipped: {} is not installed", command.get_program().display());
        return None;
    };
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{said}", output.status);
    Some(String::from_utf8(output.stdout).unwrap())
}

fn cmake(arguments: &[&str]) -> Command {
    let mut command = Command::new("cmake");
    // The cargo that runs this test must not decide where and how the library is built.
    command.args(arguments).env_remove("CARGO_TARGET_DIR").env_remove("RUSTFLAGS");
    command
}

/// Installs into `folder/installed`, moved there from elsewhere: nothing may depend on the place.
fn install(folder: &Path) -> Option<PathBuf> {
    let (build, first) = (folder.join("build"), folder.join("first"));
    let prefix = format!("-DCMAKE_INSTALL_PREFIX={}", first.display());
    let cargo = format!("-DTREERING_CARGO={}", env!("CARGO"));
    let libdir = "-DCMAKE_INSTALL_LIBDIR=lib";
    let profile = "-DTREERING_PROFILE=dev";
    run(cmake(&[&prefix, &cargo, libdir, profile, "-S"]).arg(hooks()).arg("-B").arg(&build))?;
    run(cmake(&["--build"]).arg(&build))?;
    run(cmake(&["--install"]).arg(&build))?;
    let installed = folder.join("installed");
    std::fs::rename(first, &installed).unwrap();
    Some(installed)
}

fn counts_seven(report: &str) {
    let line = report.lines().find(|line| line.ends_with(" assemble")).unwrap_or_else(|| panic!("{report}"));
    assert!(line.split_whitespace().any(|word| word == "7"), "{report}");
}

fn found_by_cmake(folder: &Path, installed: &Path) {
    let build = folder.join("package");
    let prefix = format!("-DCMAKE_PREFIX_PATH={}", installed.display());
    run(cmake(&[&prefix, "-S"]).arg(hooks().join("tests/package")).arg("-B").arg(&build));
    run(cmake(&["--build"]).arg(&build));
    for program in ["shared", "static"] {
        counts_seven(&run(&mut Command::new(build.join(program))).unwrap());
    }
}

fn found_by_pkg_config(folder: &Path, installed: &Path) {
    let mut pkg_config = Command::new("pkg-config");
    pkg_config.args(["--define-variable", &format!("prefix={}", installed.display())]);
    pkg_config.args(["--cflags", "--libs", "treering"]);
    let path = installed.join("lib/pkgconfig");
    let Some(flags) = run(pkg_config.env("PKG_CONFIG_LIBDIR", path)) else { return };
    let program = folder.join("by_pkg_config");
    let mut compiler = Command::new("c++");
    compiler.arg("-std=c++17").arg(hooks().join("tests/package/program.cc")).args(flags.split_whitespace());
    if run(compiler.arg("-o").arg(&program)).is_some() {
        let library_path = installed.join("lib");
        counts_seven(&run(Command::new(program).env("LD_LIBRARY_PATH", library_path)).unwrap());
    }
}

#[test]
fn an_installed_library_is_found_and_used() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("packaging");
    drop(std::fs::remove_dir_all(&folder));
    std::fs::create_dir_all(&folder).unwrap();
    let Some(installed) = install(&folder) else { return };
    found_by_cmake(&folder, &installed);
    found_by_pkg_config(&folder, &installed);
}
