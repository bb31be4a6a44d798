//! The Debian packages that the tests use, and how they are installed.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A package that tests use.
pub(crate) struct Package {
    /// Debian's name of it.
    pub(crate) name: &'static str,
    /// A file that is there when it is installed: a program on the search path, or a full path, in which `*` stands for
    /// the rest of a folder's name.
    found_as: &'static str,
    /// Its use in the tests.
    used_for: &'static str,
}

/// The programs that tests use besides Rust.
const PACKAGES: &[Package] = &[
    Package { name: "gcc", found_as: "cc", used_for: "compiles the C programs that tests profile" },
    Package { name: "g++", found_as: "c++", used_for: "compiles the C++ programs that tests profile" },
    Package {
        name: "clang",
        found_as: "clang",
        used_for: "compiles programs with sanitizers that gcc lacks",
    },
    Package {
        name: "libc6-dev",
        found_as: "/usr/include/stdlib.h",
        used_for: "headers and static libraries of C",
    },
    Package {
        name: "gcc-multilib",
        found_as: "/usr/lib32/crt1.o",
        used_for: "compiles the 32-bit programs that tests profile",
    },
    Package {
        name: "binutils",
        found_as: "addr2line",
        used_for: "the answers that symbols and gprof listings are compared with",
    },
    Package {
        name: "linux-perf",
        found_as: "perf",
        used_for: "the answers that recordings are compared with",
    },
    Package {
        name: "valgrind",
        found_as: "callgrind_annotate",
        used_for: "counts what our counts are compared with, and reads the callgrind files we write",
    },
    Package { name: "cmake", found_as: "cmake", used_for: "installs the library for C and C++" },
    Package { name: "pkg-config", found_as: "pkg-config", used_for: "finds the installed library" },
    Package {
        name: "libxml2-utils",
        found_as: "xmllint",
        used_for: "checks the reports of benchmarks and flame graphs",
    },
    Package { name: "graphviz", found_as: "dot", used_for: "draws the call graphs that we write" },
    Package { name: "gnuplot-nox", found_as: "gnuplot", used_for: "draws the data of plots that we write" },
    Package { name: "dwz", found_as: "dwz", used_for: "makes shared debug information" },
    Package { name: "bzip2", found_as: "bzip2", used_for: "a workload that is counted" },
    Package { name: "lua5.4", found_as: "lua5.4", used_for: "a workload that is counted" },
    Package { name: "perl", found_as: "perl", used_for: "a workload that is counted" },
    Package { name: "xz-utils", found_as: "xz", used_for: "a workload" },
    Package { name: "sqlite3", found_as: "sqlite3", used_for: "a workload" },
    Package { name: "python3", found_as: "python3", used_for: "a workload" },
    Package {
        name: "octave",
        found_as: "octave-cli",
        used_for: "the interpreter whose programs are profiled",
    },
    Package {
        name: "octave-parallel",
        found_as: "/usr/share/octave/packages/parallel-*/parcellfun.m",
        used_for: "workers that are profiled with the Octave that starts them",
    },
    Package {
        name: "octave-dev",
        found_as: "mkoctfile",
        used_for: "what Octave wants to see before it builds a package",
    },
    Package {
        name: "swi-prolog-nox",
        found_as: "swipl",
        used_for: "the Prolog system whose programs are profiled",
    },
    Package { name: "nodejs", found_as: "node", used_for: "a program with code made at run time" },
    Package { name: "npm", found_as: "npm", used_for: "installs what bundles and tests the page" },
    Package {
        name: "chromium",
        found_as: "chromium",
        used_for: "shows the pages that tests compare with reports",
    },
];

/// The packages that are not installed.
pub(crate) fn missing() -> Vec<&'static Package> {
    PACKAGES.iter().filter(|package| !is_installed(package.found_as)).collect()
}

fn is_installed(found_as: &str) -> bool {
    if found_as.starts_with('/') {
        return exists(found_as);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain([PathBuf::from("/usr/bin")])
        .any(|directory| directory.join(found_as).is_file())
}

/// Whether a file exists in the folder of its path, or in one of those that `*` stands for.
fn exists(path: &str) -> bool {
    let Some((before, after)) = path.split_once('*') else { return Path::new(path).exists() };
    let (folder, start) = before.rsplit_once('/').unwrap_or(("", before));
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut named = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(start));
    named.any(|entry| Path::new(&format!("{}{after}", entry.path().display())).exists())
}

/// Says what is missing, installs it when that is possible, and returns what is still missing.
pub(crate) fn install_missing() -> Vec<&'static Package> {
    let wanted = missing();
    if wanted.is_empty() {
        return wanted;
    }
    println!("these Debian packages are missing and will be installed with apt-get:");
    wanted.iter().for_each(|package| println!("  {:<12} {}", package.name, package.used_for));
    if let Err(reason) = install(&wanted) {
        eprintln!("cannot install all of them: {reason}");
    }
    let missing = missing();
    if !missing.is_empty() {
        let names: Vec<_> = missing.iter().map(|package| package.name).collect();
        eprintln!("hint: sudo apt-get update && sudo apt-get install {}", names.join(" "));
        eprintln!("hint: tests that need them will say that they were skipped");
    }
    missing
}

fn install(packages: &[&Package]) -> Result<(), String> {
    let as_root = as_root()?;
    run(as_root, &["apt-get", "update", "--quiet", "-o", WAIT_FOR_LOCK])?;
    let install =
        ["apt-get", "install", "--yes", "--quiet", "--no-install-recommends", "-o", "Dpkg::Use-Pty=0"];
    let install = [&install[..], &["-o", WAIT_FOR_LOCK]].concat();
    install_what_can_be(
        packages,
        |package| is_installed(package.found_as),
        |names| run(as_root, &[&install[..], names].concat()),
    )
}

/// Another apt-get may be at work, for as long as five minutes.
const WAIT_FOR_LOCK: &str = "DPkg::Lock::Timeout=300";

/// Installs packages with one command, and when that fails each by itself: apt-get installs none of several if one of
/// them does not exist or conflicts with another. A package that came with another is not asked for: the `nodejs` of
/// NodeSource brings `npm`, and conflicts with Debian's.
fn install_what_can_be(
    packages: &[&Package],
    is_installed: impl Fn(&Package) -> bool,
    mut install: impl FnMut(&[&str]) -> Result<(), String>,
) -> Result<(), String> {
    let names: Vec<_> = packages.iter().map(|package| package.name).collect();
    if install(&names).is_ok() {
        return Ok(());
    }
    let mut failed = Vec::new();
    for package in packages {
        if !is_installed(package)
            && let Err(reason) = install(&[package.name])
        {
            failed.push(format!("{} ({reason})", package.name));
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(failed.join(", ")) }
}

/// The words before a command that needs root: none for root, else `sudo` where it asks nothing.
fn as_root() -> Result<&'static [&'static str], String> {
    if !is_installed("apt-get") {
        return Err("there is no apt-get on this system".to_owned());
    }
    let number = Command::new("id").arg("-u").output().map_err(|error| format!("cannot run id: {error}"))?;
    if number.stdout.trim_ascii() == b"0" {
        return Ok(&[]);
    }
    let sudo = Command::new("sudo").args(["-n", "true"]).stdin(Stdio::null()).output();
    match sudo {
        Ok(output) if output.status.success() => Ok(&["sudo", "-n"]),
        _ => Err("this user is not root, and sudo is missing or asks for a password".to_owned()),
    }
}

fn run(prefix: &[&str], command: &[&str]) -> Result<(), String> {
    let words: Vec<_> = prefix.iter().chain(command).collect();
    let status = Command::new(words[0])
        .args(&words[1..])
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null())
        .status()
        .map_err(|error| format!("cannot run {}: {error}", words[0]))?;
    if status.success() { Ok(()) } else { Err(format!("{} ended with {status}", command[..2].join(" "))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A package system with the `nodejs` of NodeSource, and without graphviz.
    #[test]
    fn a_package_that_cannot_be_installed_does_not_keep_the_others_out() {
        let wanted = ["gcc", "nodejs", "npm", "graphviz", "perl"];
        let wanted: Vec<&Package> = wanted
            .iter()
            .map(|name| PACKAGES.iter().find(|package| package.name == *name).expect("it is in the table"))
            .collect();
        let there = std::cell::RefCell::new(Vec::new());
        let install = |names: &[&str]| {
            if names.contains(&"graphviz") || names.contains(&"npm") {
                return Err("apt-get install ended with exit status: 100".to_owned());
            }
            there.borrow_mut().extend(names.iter().map(|name| (*name).to_owned()));
            if names.contains(&"nodejs") {
                there.borrow_mut().push("npm".to_owned());
            }
            Ok(())
        };
        let is_installed = |package: &Package| there.borrow().iter().any(|name| name == package.name);
        let failed = install_what_can_be(&wanted, is_installed, install).expect_err("a package is missing");
        assert!(failed.starts_with("graphviz (apt-get install") && !failed.contains("npm"), "{failed}");
        assert_eq!(*there.borrow(), ["gcc", "nodejs", "npm", "perl"]);
    }

    #[test]
    fn installed_programs_are_found() {
        assert!(is_installed("sh"));
        assert!(is_installed("/"));
        assert!(!is_installed("no-such-program-anywhere"));
        assert!(is_installed("/usr/bi*/env"));
        assert!(!is_installed("/usr/bi*/no-such-program-anywhere"));
    }
}
