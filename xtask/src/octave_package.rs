//! `cargo xtask octave-package`: the package for Octave, as a file for `pkg install`.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use crate::workspace;

/// The crates that the library consists of.
const CRATES: [&str; 5] =
    ["treering-events", "treering-macros", "treering-memory", "treering-runtime", "treering-octave"];

/// Sections of manifests that only the workspace's own tests need.
const FOR_TESTS: [&str; 4] = ["[dev-dependencies]", "[[example]]", "[[bench]]", "[[test]]"];

/// Makes the package and prints where it is.
pub(crate) fn run() -> ExitCode {
    match make() {
        Ok(path) => {
            println!("{}", path.display());
            println!("install it in Octave with: pkg install {}", path.display());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Makes the package, with the sources of everything that it is built from, so that installing it
/// needs cargo but no network.
pub(crate) fn make() -> Result<PathBuf, String> {
    let root = workspace::root();
    let version = version(&read(&root.join("Cargo.toml"))?)?;
    let name = format!("treering-{version}");
    let folder = workspace::target_directory().join("octave-package");
    let staged = folder.join(&name);
    if staged.exists() {
        std::fs::remove_dir_all(&staged).map_err(|error| format!("{}: {error}", staged.display()))?;
    }
    copy_tree(&root.join("hooks/octave"), &staged)?;
    let description = read(&staged.join("DESCRIPTION"))?;
    if !description.contains(&format!("Version: {version}\n")) {
        return Err(format!("hooks/octave/DESCRIPTION has another version than {version}"));
    }
    let rust = staged.join("src/rust");
    for one in CRATES {
        let from = root.join("crates").join(one);
        copy_tree(&from.join("src"), &rust.join("crates").join(one).join("src"))?;
        let manifest = without_tests(&read(&from.join("Cargo.toml"))?);
        write(&rust.join("crates").join(one).join("Cargo.toml"), &manifest)?;
        if from.join("build.rs").is_file() {
            copy(&from.join("build.rs"), &rust.join("crates").join(one).join("build.rs"))?;
        }
    }
    write(&rust.join("Cargo.toml"), &workspace_manifest(&read(&root.join("Cargo.toml"))?))?;
    // The same versions as here: cargo takes out of the list what is not used.
    copy(&root.join("Cargo.lock"), &rust.join("Cargo.lock"))?;
    vendor(&rust)?;
    let file = folder.join(format!("{name}.tar.gz"));
    let mut tar = Command::new("tar");
    tar.arg("-czf").arg(&file).arg("-C").arg(&folder).arg(&name);
    succeed(&mut tar)?;
    Ok(file)
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
fn workspace_manifest(whole: &str) -> String {
    let is_ours = |line: &str| {
        let name = line.split(['=', '.']).next().unwrap_or_default().trim();
        name == "libc" || CRATES.contains(&name)
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
fn version(manifest: &str) -> Result<String, String> {
    let line = manifest.lines().find_map(|line| line.strip_prefix("version = \""));
    let version = line.and_then(|rest| rest.split('"').next());
    version.map(str::to_owned).ok_or_else(|| "Cargo.toml has no version".to_owned())
}

fn copy_tree(from: &Path, to: &Path) -> Result<(), String> {
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

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    let folder = path.parent().unwrap_or(path);
    let written = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(path, text));
    written.map_err(|error| format!("{}: {error}", path.display()))
}

fn succeed(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{name} ended with {status}")),
        Err(error) => Err(format!("cannot run {name}: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Installs the package as a user would, in a folder that has nothing of the project.
    #[test]
    fn the_package_installs_without_network_and_passes_its_own_tests() {
        if Command::new("octave-cli").arg("--version").output().is_err() {
            eprintln!("skipped: there is no octave-cli");
            return;
        }
        if Command::new("mkoctfile").arg("--version").output().is_err() {
            eprintln!("skipped: there is no mkoctfile, without which Octave builds no package");
            return;
        }
        let file = make().expect("the package is made");
        let home = file.with_file_name("home");
        let _ = std::fs::remove_dir_all(&home);
        std::fs::create_dir_all(&home).expect("a folder");
        let prefix = home.join("octave").display().to_string();
        let script = format!(
            "pkg prefix {prefix} {prefix}\npkg install -local {}\npkg load treering\npkg test treering\n\
             profile on graph\nA = expm (rand (20));\nprofile off\nS = profile ('info');\n\
             profshow (S, 3)\nprofexport ('{prefix}/html', 'it', S);\nprofile on\nsin (1);\n\
             pkg unload treering\ncos (1);\nprintf ('%s\\n', which ('profile'));\n",
            file.display()
        );
        write(&home.join("install.m"), &script).expect("written");
        let output = Command::new("octave-cli")
            .args(["--norc", "install.m"])
            .current_dir(&home)
            .env("HOME", &home)
            .env("CARGO_HOME", cargo_home())
            .env("RUSTUP_HOME", rustup_home())
            .env("CARGO_NET_OFFLINE", "true")
            .env_remove("CARGO_TARGET_DIR")
            .output()
            .expect("octave runs");
        let (text, errors) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{text}\n{errors}");
        let passed = text.lines().find_map(|line| line.trim().strip_prefix("PASS")).map(str::trim);
        assert_eq!(passed, Some("20"), "{text}\n{errors}");
        assert!(text.contains("expm"), "{text}");
        assert!(home.join("octave/html/index.html").is_file());
        assert!(text.trim_end().ends_with("m/profiler/profile.m"), "{text}");
    }

    /// Where cargo keeps what it has downloaded and who it is, which is not under test.
    fn cargo_home() -> PathBuf {
        of_home("CARGO_HOME", ".cargo")
    }

    fn rustup_home() -> PathBuf {
        of_home("RUSTUP_HOME", ".rustup")
    }

    fn of_home(variable: &str, folder: &str) -> PathBuf {
        let home = || PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(folder);
        std::env::var_os(variable).map_or_else(home, PathBuf::from)
    }

    #[test]
    fn manifests_lose_what_tests_need() {
        let manifest = "[package]\nname = \"a\"\n[dev-dependencies]\nb = 1\n[lints]\nworkspace = true\n";
        assert_eq!(without_tests(manifest), "[package]\nname = \"a\"\n[lints]\nworkspace = true\n");
    }

    #[test]
    fn the_workspace_of_the_package_has_only_its_crates() {
        let whole = "[workspace]\nmembers = []\n[workspace.package]\nversion = \"1.2.3\"\n[workspace.dependencies]\nlibc = \"0.2\"\nserde = \"1\"\ntreering-events = { path = \"crates/treering-events\" }\n";
        let manifest = workspace_manifest(whole);
        assert!(manifest.contains("libc") && manifest.contains("treering-events"), "{manifest}");
        assert!(!manifest.contains("serde"), "{manifest}");
        assert_eq!(version(whole), Ok("1.2.3".to_owned()));
    }
}
