//! Programs that do one thing after another that is hard on a profiler, and the profiles they leave.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use treering_formats::{Format, read_any};
use treering_profile::Profile;

/// A folder of its own for one test, and the program in it.
pub(crate) struct Probe {
    pub(crate) folder: PathBuf,
}

impl Probe {
    pub(crate) fn new(group: &str, test: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(group).join(test);
        drop(std::fs::remove_dir_all(&folder));
        std::fs::create_dir_all(&folder).unwrap();
        Self { folder }
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        // Beside the tests, in the folder of examples.
        let test = std::env::current_exe().unwrap();
        let program = test.ancestors().nth(2).unwrap().join("examples/treering-probe");
        let mut command = Command::new(program);
        command.args(arguments).current_dir(&self.folder);
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        let output = self.command(arguments).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{arguments:?}: {}\n{said}", output.status);
        assert!(said.is_empty(), "{said}");
        output
    }

    pub(crate) fn profile(&self) -> Profile {
        self.profile_of("treering.trg").1
    }

    pub(crate) fn profile_of(&self, file: &str) -> (Format, Profile) {
        let bytes = std::fs::read(self.folder.join(file)).unwrap();
        let (format, profile, _) = read_any(&bytes).unwrap();
        profile.validate().unwrap();
        (format, profile)
    }

    pub(crate) fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.folder).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

/// Calls by path, such as `outer > leaf`, of all threads together.
pub(crate) fn calls(profile: &Profile) -> BTreeMap<String, u64> {
    let name = |node| profile.strings[profile.functions[profile.tree.function(node)].name].to_owned();
    let mut calls = BTreeMap::new();
    for node in profile.tree.nodes().filter(|&node| profile.tree.parent(node).is_some()) {
        let mut path: Vec<String> = profile.tree.path(node).map(name).collect();
        path.pop();
        path.reverse();
        *calls.entry(path.join(" > ")).or_default() += profile.tree.calls(node);
    }
    calls
}

/// The same as they should be.
pub(crate) fn expected(rows: &[(&str, u64)]) -> BTreeMap<String, u64> {
    rows.iter().map(|&(path, calls)| (path.to_owned(), calls)).collect()
}
