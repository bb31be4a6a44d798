//! `cargo xtask octave-package`: the package for Octave, as a file for `pkg install`.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use crate::sources::{self, copy_tree, read, succeed, version};
use crate::workspace;

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
    sources::stage(&staged.join("src/rust"), "treering-octave")?;
    let file = folder.join(format!("{name}.tar.gz"));
    let mut tar = Command::new("tar");
    tar.arg("-czf").arg(&file).arg("-C").arg(&folder).arg(&name);
    succeed(&mut tar)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::{cargo_home, rustup_home, write};

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
        assert_eq!(passed, Some("21"), "{text}\n{errors}");
        assert!(text.contains("expm"), "{text}");
        assert!(home.join("octave/html/index.html").is_file());
        assert!(text.trim_end().ends_with("m/profiler/profile.m"), "{text}");
    }
}
