//! The library is built and installed with CMake, and found by CMake and pkg-config.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::program::{project, written};
use treering_testing::programs::preload;

fn hooks() -> PathBuf {
    project().join("hooks/c")
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
    written(cmake(&[&prefix, &cargo, libdir, profile, "-S"]).arg(hooks()).arg("-B").arg(&build))?;
    written(cmake(&["--build"]).arg(&build))?;
    written(cmake(&["--install"]).arg(&build))?;
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
    written(cmake(&[&prefix, "-S"]).arg(hooks().join("tests/package")).arg("-B").arg(&build));
    written(cmake(&["--build"]).arg(&build));
    for program in ["shared", "static"] {
        counts_seven(&written(Command::new(build.join(program)).current_dir(folder)).unwrap());
    }
}

fn found_by_pkg_config(folder: &Path, installed: &Path) {
    if written(Command::new("pkg-config").arg("--version")).is_none() {
        return;
    }
    // Flags are quoted for a shell.
    let script = r#"flags=$(pkg-config --define-variable="prefix=$1" --cflags --libs treering) &&
        eval "c++ -std=c++17 \"\$2\" $flags -o \"\$3\"""#;
    let program = folder.join("by_pkg_config");
    let mut compiler = Command::new("sh");
    compiler.args(["-c", script, "sh"]).arg(installed);
    compiler.arg(hooks().join("tests/package/program.cc")).arg(&program);
    if written(compiler.env("PKG_CONFIG_LIBDIR", installed.join("lib/pkgconfig"))).is_some() {
        let library_path = installed.join("lib");
        let mut program = Command::new(program);
        program.env("LD_LIBRARY_PATH", library_path).current_dir(folder);
        counts_seven(&written(&mut program).unwrap());
    }
}

/// Programs compiled with `-pg`: one linked with the archive, one that gets the library by preload.
fn counts_calls(folder: &Path, installed: &Path) {
    let source = folder.join("calls.c");
    std::fs::write(
        &source,
        "__attribute__((noinline)) int leaf(int x) { __asm__ volatile(\"\"); return x + 1; }\n\
         int main(void) { int sum = 0; for (int i = 0; i < 1234; i++) sum += leaf(sum); return sum == 1; }\n",
    )
    .unwrap();
    let lib = installed.join("lib");
    let library = lib.join("libtreering_pg.so");
    for (name, flags) in [("linked", &["-static", "-ltreering_pg"][..]), ("preloaded", &[])] {
        let program = folder.join(name);
        let mut compiler = Command::new("cc");
        compiler.args(["-pg", "-O1", "-o"]).arg(&program).arg(&source).arg("-L").arg(&lib).args(flags);
        if written(&mut compiler).is_none() {
            return;
        }
        let mut command = Command::new(&program);
        if flags.is_empty() {
            preload(&mut command, &library);
        }
        written(command.env("TREERING_OUTPUT", folder.join(name).with_extension("trg")).current_dir(folder));
        let files = std::fs::read_dir(folder.join(name).with_extension("trg.arcs")).unwrap();
        let files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
        assert_eq!(files.len(), 1, "{files:?}");
        let mut start = vec![0; 64];
        std::fs::File::open(&files[0]).unwrap().read_exact(&mut start).unwrap();
        let used = treering_formats::arc_file::used_bytes(&start);
        let mut bytes = Vec::new();
        std::fs::File::open(&files[0]).unwrap().take(used).read_to_end(&mut bytes).unwrap();
        let arcs = treering_formats::arc_file::read(&bytes).unwrap();
        let calls: Vec<u64> = arcs.tables.iter().flat_map(|table| &table.arcs).map(|arc| arc.calls).collect();
        assert!(calls.contains(&1234), "{name}: {calls:?}");
    }
}

/// Empties the folder of the test, except for what cargo has built in it, so that it builds only what has changed since.
fn empty(folder: &Path) {
    let (cargo, kept) = (folder.join("build/cargo"), folder.with_extension("kept"));
    drop(std::fs::rename(&cargo, &kept));
    drop(std::fs::remove_dir_all(folder));
    std::fs::create_dir_all(folder.join("build")).unwrap();
    drop(std::fs::rename(&kept, &cargo));
}

#[test]
fn an_installed_library_is_found_and_used() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("packaging");
    empty(&folder);
    let Some(installed) = install(&folder) else { return };
    found_by_cmake(&folder, &installed);
    found_by_pkg_config(&folder, &installed);
    counts_calls(&folder, &installed);
    assert!(folder.join("treering.trg").exists(), "the programs write their profile where they run");
}
