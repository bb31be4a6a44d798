//! The sources of a library of ours for another system, with all that it is built from, so that building
//! it needs cargo but no network.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::workspace;

/// The crates that such a library consists of, besides its own.
const CRATES: [&str; 5] =
    ["treering-events", "treering-macros", "treering-memory", "treering-runtime", "treering-temporary"];

/// The crates of others that these use.
const FOREIGN: [&str; 2] = ["libc", "pin-project-lite"];

/// Sections of manifests that only the workspace's own tests need.
const FOR_TESTS: [&str; 4] = ["[dev-dependencies]", "[[example]]", "[[bench]]", "[[test]]"];

/// Puts the sources of the crate `library` into the folder `rust`, as a workspace of their own.
pub(crate) fn stage(rust: &Path, library: &str) -> Result<(), String> {
    let root = workspace::root();
    for one in CRATES.into_iter().chain([library]) {
        let from = root.join("crates").join(one);
        copy_tree(&from.join("src"), &rust.join("crates").join(one).join("src"))?;
        let manifest = without_tests(&read(&from.join("Cargo.toml"))?);
        write(&rust.join("crates").join(one).join("Cargo.toml"), &manifest)?;
        if from.join("build.rs").is_file() {
            copy(&from.join("build.rs"), &rust.join("crates").join(one).join("build.rs"))?;
        }
    }
    write(&rust.join("Cargo.toml"), &workspace_manifest(&read(&root.join("Cargo.toml"))?, library))?;
    // The same versions as here: cargo takes out of the list what is not used.
    copy(&root.join("Cargo.lock"), &rust.join("Cargo.lock"))?;
    vendor(rust)
}

/// Puts the sources of other people's crates beside ours, and has cargo use them.
fn vendor(rust: &Path) -> Result<(), String> {
    let mut command = workspace::cargo();
    command.current_dir(rust).args(["vendor", "--quiet", "vendor"]);
    succeed(command.stdout(Stdio::null()))?;
    let config = "[source.crates-io]\nreplace-with = \"vendored-sources\"\n\n[source.vendored-sources]\ndirectory = \"vendor\"\n";
    write(&rust.join(".cargo/config.toml"), config)
}

/// A manifest without what only tests need.
fn without_tests(manifest: &str) -> String {
    let mut kept = String::new();
    let mut is_kept = true;
    for line in manifest.lines() {
        if line.starts_with('[') {
            is_kept = !FOR_TESTS.contains(&line.trim());
        }
        if is_kept {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

/// The workspace's manifest with no more than the package's crates in it.
fn workspace_manifest(whole: &str, library: &str) -> String {
    let is_ours = |line: &str| {
        let name = line.split(['=', '.']).next().unwrap_or_default().trim();
        FOREIGN.contains(&name) || name == library || CRATES.contains(&name)
    };
    let mut manifest = "[workspace]\nresolver = \"3\"\nmembers = [\"crates/*\"]\n".to_owned();
    let mut section = "";
    for line in whole.lines() {
        if line.starts_with('[') {
            section = line.trim();
        }
        let is_kept = match section {
            "[workspace.dependencies]" => line.starts_with('[') || is_ours(line),
            _ => section.starts_with("[workspace.package]") || section.starts_with("[workspace.lints"),
        };
        if is_kept {
            manifest.push_str(line);
            manifest.push('\n');
        }
    }
    manifest.push_str("\n[profile.release]\nstrip = true\nlto = true\n");
    manifest
}

/// The version that the workspace's manifest states.
pub(crate) fn version(manifest: &str) -> Result<String, String> {
    let line = manifest.lines().find_map(|line| line.strip_prefix("version = \""));
    let version = line.and_then(|rest| rest.split('"').next());
    version.map(str::to_owned).ok_or_else(|| "Cargo.toml has no version".to_owned())
}

pub(crate) fn copy_tree(from: &Path, to: &Path) -> Result<(), String> {
    let about = |error: std::io::Error| format!("{}: {error}", from.display());
    std::fs::create_dir_all(to).map_err(about)?;
    for entry in std::fs::read_dir(from).map_err(about)? {
        let path = entry.map_err(about)?.path();
        let target = to.join(path.file_name().unwrap_or_default());
        if path.is_dir() { copy_tree(&path, &target)? } else { copy(&path, &target)? }
    }
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    std::fs::copy(from, to).map(|_| ()).map_err(|error| format!("{}: {error}", from.display()))
}

pub(crate) fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

pub(crate) fn write(path: &Path, text: &str) -> Result<(), String> {
    let folder = path.parent().unwrap_or(path);
    let written = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(path, text));
    written.map_err(|error| format!("{}: {error}", path.display()))
}

pub(crate) fn succeed(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{name} ended with {status}")),
        Err(error) => Err(format!("cannot run {name}: {error}")),
    }
}

/// Cargo's own directory, with its downloads and credentials, which is not under test.
#[cfg(test)]
pub(crate) fn cargo_home() -> std::path::PathBuf {
    of_home("CARGO_HOME", ".cargo")
}

#[cfg(test)]
pub(crate) fn rustup_home() -> std::path::PathBuf {
    of_home("RUSTUP_HOME", ".rustup")
}

#[cfg(test)]
fn of_home(variable: &str, folder: &str) -> std::path::PathBuf {
    let home = || std::path::PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(folder);
    std::env::var_os(variable).map_or_else(home, std::path::PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manifests_lose_what_tests_need() {
        let manifest = "[package]\nname = \"a\"\n[dev-dependencies]\nb = 1\n[lints]\nworkspace = true\n";
        assert_eq!(without_tests(manifest), "[package]\nname = \"a\"\n[lints]\nworkspace = true\n");
    }

    #[test]
    fn the_workspace_of_the_package_has_only_its_crates() {
        let whole = "[workspace]\nmembers = []\n[workspace.package]\nversion = \"1.2.3\"\n[workspace.dependencies]\nlibc = \"0.2\"\nserde = \"1\"\ntreering-events = { path = \"crates/treering-events\" }\n";
        let manifest = workspace_manifest(whole, "treering-octave");
        assert!(manifest.contains("libc") && manifest.contains("treering-events"), "{manifest}");
        assert!(!manifest.contains("serde"), "{manifest}");
        assert_eq!(version(whole), Ok("1.2.3".to_owned()));
    }
}
