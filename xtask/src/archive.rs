//! `cargo xtask octave-package` and `cargo xtask prolog-pack`: what other systems install, as one file each.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use crate::sources::{self, copy_tree, read, succeed, version};
use crate::workspace;

/// A file that another system installs: its hooks, with the sources of the library that they load, so that
/// installing it needs cargo but no network.
pub(crate) struct Archive {
    /// The name of the folder below the target directory.
    folder: &'static str,
    /// The folder of this repository that the archive holds.
    hooks: &'static str,
    /// The library's crate.
    library: &'static str,
    /// Where its sources go in the archive.
    rust: &'static str,
    /// The file that names the version.
    manifest: &'static str,
    /// The text around the version in that file.
    around: [&'static str; 2],
    /// The ending of the archive's name.
    ending: &'static str,
    /// The system, and what a user types there before and after the archive's path.
    install: [&'static str; 3],
}

/// The package for Octave's `pkg install`.
pub(crate) const OCTAVE: Archive = Archive {
    folder: "octave-package",
    hooks: "hooks/octave",
    library: "treering-octave",
    rust: "src/rust",
    manifest: "DESCRIPTION",
    around: ["Version: ", "\n"],
    ending: "tar.gz",
    install: ["Octave", "pkg install ", ""],
};

/// The pack for SWI-Prolog's `pack_install/1`.
pub(crate) const PROLOG: Archive = Archive {
    folder: "prolog-pack",
    hooks: "hooks/prolog",
    library: "treering-prolog",
    rust: "rust",
    manifest: "pack.pl",
    around: ["version('", "')."],
    ending: "tgz",
    install: ["SWI-Prolog", "pack_install('", "')."],
};

impl Archive {
    /// Makes the archive and prints where it is.
    pub(crate) fn run(&self) -> ExitCode {
        match self.make() {
            Ok(path) => {
                let [system, before, after] = self.install;
                println!("{}", path.display());
                println!("install it in {system} with: {before}{}{after}", path.display());
                ExitCode::SUCCESS
            }
            Err(error) => {
                eprintln!("error: {error}");
                ExitCode::FAILURE
            }
        }
    }

    /// Makes the archive.
    fn make(&self) -> Result<PathBuf, String> {
        let root = workspace::root();
        let version = version(&read(&root.join("Cargo.toml"))?)?;
        let name = format!("treering-{version}");
        let folder = workspace::target_directory().join(self.folder);
        let staged = folder.join(&name);
        if staged.exists() {
            std::fs::remove_dir_all(&staged).map_err(|error| format!("{}: {error}", staged.display()))?;
        }
        copy_tree(&root.join(self.hooks), &staged)?;
        let [before, after] = self.around;
        if !read(&staged.join(self.manifest))?.contains(&format!("{before}{version}{after}")) {
            return Err(format!("{}/{} has another version than {version}", self.hooks, self.manifest));
        }
        sources::stage(&staged.join(self.rust), self.library)?;
        let file = folder.join(format!("{name}.{}", self.ending));
        let mut tar = Command::new("tar");
        tar.arg("-czf").arg(&file).arg("-C").arg(&folder).arg(&name);
        succeed(&mut tar)?;
        Ok(file)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::sources::{cargo_home, rustup_home, write};

    /// A new folder beside an archive, to install it in as a user would, with nothing of the project.
    fn new_home(archive: &Path) -> PathBuf {
        let home = archive.with_file_name("home");
        let _ = std::fs::remove_dir_all(&home);
        std::fs::create_dir_all(&home).expect("a folder");
        home
    }

    /// Runs a command in a user's `home`, where cargo has no network, and returns what it prints and its errors.
    fn installed(command: &mut Command, home: &Path) -> (String, String) {
        let output = command
            .current_dir(home)
            .env("HOME", home)
            .env("CARGO_HOME", cargo_home())
            .env("RUSTUP_HOME", rustup_home())
            .env("CARGO_NET_OFFLINE", "true")
            .env_remove("CARGO_TARGET_DIR")
            .env_remove("TREERING_PROLOG_LIBRARY")
            .output()
            .expect("the command runs");
        let (text, errors) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{text}\n{errors}");
        (text.into_owned(), errors.into_owned())
    }

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
        let file = OCTAVE.make().expect("the package is made");
        let home = new_home(&file);
        let text = |path: &Path| path.display().to_string().replace('\'', "''");
        let prefix = text(&home.join("octave"));
        let script = format!(
            "pkg ('prefix', '{prefix}', '{prefix}')\npkg ('install', '-local', '{}')\npkg load treering\npkg test treering\n\
             profile on graph\nA = expm (rand (20));\nprofile off\nS = profile ('info');\n\
             profshow (S, 3)\nprofexport ('{prefix}/html', 'it', S);\nprofile on\nsin (1);\n\
             pkg unload treering\ncos (1);\nprintf ('%s\\n', which ('profile'));\n",
            text(&file)
        );
        write(&home.join("install.m"), &script).expect("written");
        let (text, errors) = installed(Command::new("octave-cli").args(["--norc", "install.m"]), &home);
        let passed = text.lines().find_map(|line| line.trim().strip_prefix("PASS")).map(str::trim);
        assert_eq!(passed, Some("24"), "{text}\n{errors}");
        assert!(text.contains("expm"), "{text}");
        assert!(home.join("octave/html/index.html").is_file());
        assert!(text.trim_end().ends_with("m/profiler/profile.m"), "{text}");
    }

    #[test]
    fn the_pack_installs_without_network_and_counts_ports() {
        if Command::new("swipl").arg("--version").output().is_err() {
            eprintln!("skipped: there is no swipl");
            return;
        }
        let file = PROLOG.make().expect("the pack is made");
        let home = new_home(&file);
        let packs = home.join("packs").display().to_string();
        let install = format!(
            "pack_install(treering, [url('file://{}'), interactive(false), package_directory('{packs}')]), \
             attach_packs('{packs}'), use_module(library(treering)), \
             treering(append(_, [_], [1,2,3]), [ports(true), predicates([lists:append/3])])",
            file.display()
        );
        std::fs::create_dir_all(home.join("packs")).expect("a folder");
        let (text, errors) = installed(
            Command::new("swipl").args(["-f", "none", "--no-packs", "-g", &install, "-t", "halt"]),
            &home,
        );
        let row = text.lines().find(|line| line.starts_with("lists:append/3")).unwrap_or_default();
        let numbers: Vec<_> = row.split_whitespace().skip(1).take(4).collect();
        assert_eq!(numbers, ["3", "3", "0", "0"], "{text}\n{errors}");
        assert!(home.join("treering.trg").is_file());
    }
}
