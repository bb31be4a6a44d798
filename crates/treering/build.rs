//! Puts the libraries that Treering loads into other programs inside the program `treering`, so that the binary alone
//! does everything.
//!
//! Release builds do this. Development builds find the libraries in the same folder, where `cargo build` puts them;
//! `TREERING_EMBED=1` makes them do as release builds do, as `cargo xtask test` says. `TREERING_EMBED=0` leaves the
//! libraries out of any build.

use std::collections::hash_map::DefaultHasher;
use std::env;
use std::fs;
use std::hash::{Hash as _, Hasher as _};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use flate2::Compression;
use flate2::write::GzEncoder;

/// The packages of the libraries.
const PACKAGES: [&str; 3] = ["treering-octave", "treering-pg", "treering-prolog"];
/// Folders of the workspace whose files are compiled into them.
const SOURCES: [&str; 6] = [
    "treering-octave",
    "treering-pg",
    "treering-prolog",
    "treering-runtime",
    "treering-events",
    "treering-memory",
];

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-env-changed=TREERING_EMBED");
    println!("cargo::rerun-if-changed=build.rs");
    let out = PathBuf::from(variable("OUT_DIR"));
    let workspace = Path::new(&variable("CARGO_MANIFEST_DIR")).join("../..");
    let files = if is_wanted(&workspace) { build(&workspace, &out)? } else { Vec::new() };
    let mut code = String::from("&[");
    for file in files {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let (packed, version) = pack(&file, &out)?;
        code += &format!("({name:?}, {version:?}, include_bytes!({packed:?})),");
    }
    code += "]";
    fs::write(out.join("libraries.rs"), code)
}

/// Whether this build holds the libraries. Builds for another C library and packages apart from the workspace do not.
fn is_wanted(workspace: &Path) -> bool {
    let said = env::var("TREERING_EMBED").ok();
    let is_release = variable("PROFILE") == "release" && said.as_deref() != Some("0");
    let can_be_built = PACKAGES.iter().all(|package| workspace.join("crates").join(package).is_dir());
    let is_asked_for = is_release || said.as_deref() == Some("1");
    if is_asked_for && !can_be_built {
        println!(
            "cargo::warning=built apart from its workspace: treering gprof, octave and prolog need their libraries \
             beside the program"
        );
    }
    is_asked_for && can_be_built && variable("CARGO_CFG_TARGET_ENV") == "gnu"
}

/// Builds the libraries in a build directory of their own, since cargo holds the lock of the outer one.
fn build(workspace: &Path, out: &Path) -> io::Result<Vec<PathBuf>> {
    SOURCES.iter().for_each(|package| {
        println!("cargo::rerun-if-changed={}", workspace.join("crates").join(package).join("src").display());
    });
    println!("cargo::rerun-if-changed={}", workspace.join("Cargo.lock").display());
    let target = out.join("libraries");
    let triple = variable("TARGET");
    let mut cargo = Command::new(variable("CARGO"));
    let profile = if variable("PROFILE") == "release" { "release" } else { "dev" };
    cargo.current_dir(workspace).arg("build").args(["--quiet", "--locked", "--profile", profile]);
    // Names of functions stay; their lines would make the program larger by half.
    cargo.args(["--config", &format!("profile.{profile}.debug=false")]);
    cargo.args(["--config", &format!("profile.{profile}.strip='debuginfo'")]);
    cargo.args(["--target", &triple]).arg("--target-dir").arg(&target);
    cargo.args(PACKAGES.iter().flat_map(|package| ["--package", package]));
    // A lint of the outer build is not for the inner one.
    cargo.env_remove("RUSTC_WORKSPACE_WRAPPER").env_remove("CARGO_TARGET_DIR").env("TREERING_EMBED", "0");
    if !cargo.status()?.success() {
        return Err(io::Error::other(
            "cannot build the libraries for gprof, Octave and SWI-Prolog; TREERING_EMBED=0 builds without them",
        ));
    }
    let built = target.join(triple).join(if profile == "release" { "release" } else { "debug" });
    Ok(PACKAGES.iter().map(|package| built.join(format!("lib{}.so", package.replace('-', "_")))).collect())
}

/// Compresses a file; the result and a name for its version, by its bytes.
fn pack(file: &Path, out: &Path) -> io::Result<(PathBuf, String)> {
    let bytes = fs::read(file)?;
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    let packed = out.join(file.file_name().unwrap_or_default()).with_extension("so.gz");
    let mut encoder = GzEncoder::new(fs::File::create(&packed)?, Compression::best());
    encoder.write_all(&bytes)?;
    encoder.finish()?;
    Ok((packed, format!("{:016x}", hasher.finish())))
}

/// A variable that cargo sets for build scripts.
fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"))
}
