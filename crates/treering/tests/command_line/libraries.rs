//! The libraries that `treering` loads into other programs, which `cargo test` alone does not build.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Once;

use crate::session::treering;

const PACKAGES: [&str; 5] =
    ["treering-octave", "treering-pg", "treering-pg-static", "treering-prolog", "treering-runtime"];
const FILES: [&str; 4] =
    ["libtreering_octave.so", "libtreering_pg.a", "libtreering_pg.so", "libtreering_prolog.so"];

/// The path of a library beside the program `treering`.
///
/// Cargo builds all of them in a target directory of their own: for these packages alone it chooses other features of
/// the dependencies, and would replace the runtime that the other tests are compiled with.
pub(crate) fn beside(file: &str) -> PathBuf {
    build();
    treering().with_file_name(file)
}

/// The library for programs that profile themselves, which Treering does not load.
pub(crate) fn runtime() -> PathBuf {
    build();
    target().join("debug/libtreering_runtime.a")
}

/// A folder of no other test: those of all crates share what is above it, and run at once.
fn target() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("command_line_libraries")
}

fn build() {
    static BUILT: Once = Once::new();
    BUILT.call_once(build_once);
}

fn build_once() {
    let target = target();
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build.args(["build", "--quiet"]).args(PACKAGES.iter().flat_map(|package| ["--package", package]));
    build.arg("--target-dir").arg(&target).env_remove("CARGO_BUILD_TARGET");
    assert!(build.status().expect("cargo runs").success(), "the libraries are built");
    for file in FILES {
        // In one step: a program of another test may be loading the file that was there.
        let new = treering().with_file_name(format!("{file}.{}", std::process::id()));
        std::fs::copy(target.join("debug").join(file), &new).expect("the library was built");
        std::fs::rename(&new, treering().with_file_name(file)).expect("the folder can be written");
    }
}
