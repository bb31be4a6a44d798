//! `cargo xtask prolog-pack`: the pack for SWI-Prolog, as a file for `pack_install/1`.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use crate::sources::{self, copy_tree, read, succeed, version};
use crate::workspace;

/// Makes the pack and prints where it is.
pub(crate) fn run() -> ExitCode {
    match make() {
        Ok(path) => {
            println!("{}", path.display());
            println!("install it in SWI-Prolog with: pack_install('{}').", path.display());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Makes the pack, with the sources of everything that its library is built from.
pub(crate) fn make() -> Result<PathBuf, String> {
    let root = workspace::root();
    let version = version(&read(&root.join("Cargo.toml"))?)?;
    let name = format!("treering-{version}");
    let folder = workspace::target_directory().join("prolog-pack");
    let staged = folder.join(&name);
    if staged.exists() {
        std::fs::remove_dir_all(&staged).map_err(|error| format!("{}: {error}", staged.display()))?;
    }
    copy_tree(&root.join("hooks/prolog"), &staged)?;
    if !read(&staged.join("pack.pl"))?.contains(&format!("version('{version}').")) {
        return Err(format!("hooks/prolog/pack.pl has another version than {version}"));
    }
    sources::stage(&staged.join("rust"), "treering-prolog")?;
    let file = folder.join(format!("{name}.tgz"));
    let mut tar = Command::new("tar");
    tar.arg("-czf").arg(&file).arg("-C").arg(&folder).arg(&name);
    succeed(&mut tar)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::{cargo_home, rustup_home};

    /// Installs the pack as a user would, in a folder that has nothing of the project.
    #[test]
    fn the_pack_installs_without_network_and_counts_ports() {
        if Command::new("swipl").arg("--version").output().is_err() {
            eprintln!("skipped: there is no swipl");
            return;
        }
        let file = make().expect("the pack is made");
        let home = file.with_file_name("home");
        let _ = std::fs::remove_dir_all(&home);
        std::fs::create_dir_all(&home).expect("a folder");
        let packs = home.join("packs").display().to_string();
        let install = format!(
            "pack_install(treering, [url('file://{}'), interactive(false), package_directory('{packs}')]), \
             attach_packs('{packs}'), use_module(library(treering)), \
             treering(append(_, [_], [1,2,3]), [ports(true), predicates([lists:append/3])])",
            file.display()
        );
        std::fs::create_dir_all(home.join("packs")).expect("a folder");
        let output = Command::new("swipl")
            .args(["-f", "none", "--no-packs", "-g", &install, "-t", "halt"])
            .current_dir(&home)
            .env("HOME", &home)
            .env("CARGO_HOME", cargo_home())
            .env("RUSTUP_HOME", rustup_home())
            .env("CARGO_NET_OFFLINE", "true")
            .env_remove("CARGO_TARGET_DIR")
            .env_remove("TREERING_PROLOG_LIBRARY")
            .output()
            .expect("swipl runs");
        let (text, errors) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{text}\n{errors}");
        let row = text.lines().find(|line| line.starts_with("lists:append/3")).unwrap_or_default();
        let numbers: Vec<_> = row.split_whitespace().skip(1).take(4).collect();
        assert_eq!(numbers, ["3", "3", "0", "0"], "{text}\n{errors}");
        assert!(home.join("treering.trg").is_file());
    }
}
