//! Where the workspace is, and commands run in it.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// The root of the workspace.
pub(crate) fn root() -> &'static Path {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest)
}

/// Where cargo builds.
pub(crate) fn target_directory() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Cargo, to be run in the root of the workspace. The program that it builds has the libraries inside, as an installed one
/// has, so that tests try this too.
pub(crate) fn cargo() -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(root()).env("TREERING_EMBED", "1");
    command
}

/// The output of `cargo metadata` about the workspace and all that it depends on.
pub(crate) fn metadata(options: &[&str]) -> Result<Value, String> {
    let output = cargo()
        .args(["metadata", "--format-version=1"])
        .args(options)
        .output()
        .map_err(|error| format!("cannot run cargo metadata: {error}"))?;
    if !output.status.success() {
        return Err(format!("cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr)));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| format!("cargo metadata: {error}"))
}

/// The folders of the crates that are below `crates/`, sorted.
pub(crate) fn crates() -> Result<Vec<PathBuf>, String> {
    let entries = std::fs::read_dir(root().join("crates"));
    let entries = entries.map_err(|error| format!("cannot list the crates: {error}"))?;
    let paths = entries.flatten().map(|entry| entry.path());
    let mut crates: Vec<PathBuf> = paths.filter(|path| path.join("Cargo.toml").is_file()).collect();
    crates.sort();
    Ok(crates)
}

/// Folders of which nothing is in the repository.
const MADE: [&str; 3] = ["target", "node_modules", ".git"];

/// The files below a directory whose names end with `.` and `extension`, sorted; nothing when it does not exist.
pub(crate) fn files(directory: &Path, extension: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut left = vec![directory.to_owned()];
    while let Some(directory) = left.pop() {
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            let path = entry.path();
            // Files behind a link are those of another folder.
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_folder && !MADE.iter().any(|made| path.ends_with(made)) {
                left.push(path);
            } else if path.extension().is_some_and(|its| its == extension) {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}
