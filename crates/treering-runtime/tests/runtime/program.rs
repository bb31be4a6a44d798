//! Programs that are linked with the library, run, and leave a profile.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stderr, reason = "a test says that it was skipped")]

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use treering_profile::{Function, NodeId, Ports, Profile};

/// The root of the project.
pub(crate) fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A library of the runtime, static or shared, which lies beside the test.
pub(crate) fn library(ending: &str) -> PathBuf {
    std::env::current_exe().unwrap().with_file_name(format!("libtreering_runtime.{ending}"))
}

/// Whether a program is installed; says so if it is not.
pub(crate) fn is_installed(name: &str) -> bool {
    let found = Command::new(name).arg("--version").output().is_ok();
    if !found {
        eprintln!("skipped: {name} is not installed");
    }
    found
}

/// A program that was built, and the folder where it runs.
pub(crate) struct Program {
    pub(crate) folder: PathBuf,
}

impl Program {
    /// Builds a C program in a folder of its own, empty at first.
    pub(crate) fn build(folder: &str, compiler: &str, flags: &[&str], source: &Path) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder);
        drop(std::fs::remove_dir_all(&folder));
        std::fs::create_dir_all(&folder).unwrap();
        let mut command = Command::new(compiler);
        command.args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-pthread"]).args(flags);
        command.arg("-I").arg(project().join("hooks/c/include")).arg(source).arg(library("a"));
        succeeded(command.args(["-ldl", "-lm", "-lrt", "-o"]).arg(folder.join("program")));
        Self { folder }
    }

    /// The program, to be run in its folder, with nothing of our environment that steers profiles.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(self.folder.join("program"));
        command.current_dir(&self.folder);
        let ours = std::env::vars_os().map(|(name, _)| name);
        for name in ours.filter(|name| name.to_string_lossy().starts_with("TREERING")) {
            command.env_remove(name);
        }
        command
    }

    /// A file that it wrote.
    pub(crate) fn bytes(&self, file: &str) -> Vec<u8> {
        std::fs::read(self.folder.join(file)).unwrap()
    }

    /// A profile that it wrote, which is valid.
    pub(crate) fn profile(&self, file: &str) -> Profile {
        let (_, profile, report) = treering_formats::read_any(&self.bytes(file)).unwrap();
        assert!(report.is_complete(), "{report:?}");
        profile.validate().unwrap();
        profile
    }

    /// The names of its functions by their address in the file.
    pub(crate) fn symbols(&self) -> HashMap<u64, String> {
        let listing = succeeded(Command::new("nm").arg("--defined-only").arg(self.folder.join("program")));
        let listing = String::from_utf8(listing.stdout).unwrap();
        let symbol = |line: &str| {
            let (address, name) = line.split_once(' ')?;
            let name = name.split_once(' ')?.1.to_owned();
            Some((u64::from_str_radix(address, 16).ok()?, name))
        };
        listing.lines().filter_map(symbol).collect()
    }
}

/// The output of a command that has to end well.
pub(crate) fn succeeded(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    check_success(command, &output);
    output
}

fn check_success(command: &Command, output: &Output) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{said}", output.status);
}

/// The text that a command wrote, after it ended well; nothing, and a word about it, if it is not installed.
pub(crate) fn written(command: &mut Command) -> Option<String> {
    let Ok(output) = command.output() else {
        eprintln!("skipped: {} is not installed", command.get_program().display());
        return None;
    };
    check_success(command, &output);
    Some(String::from_utf8(output.stdout).unwrap())
}

/// The tree of a profile as text: a line for each node, children by name below their parent, with
/// calls, those folded into the node, and ports other than exits. Roots have no line.
pub(crate) fn tree(profile: &Profile, name: impl Fn(&Function) -> String) -> String {
    let mut children: HashMap<Option<NodeId>, Vec<(String, NodeId)>> = HashMap::new();
    for node in profile.tree.nodes() {
        let function = &profile.functions[profile.tree.function(node)];
        children.entry(profile.tree.parent(node)).or_default().push((name(function), node));
    }
    children.values_mut().for_each(|nodes| nodes.sort());
    let mut text = String::new();
    for (_, root) in children.get(&None).into_iter().flatten() {
        write_children(profile, &children, *root, 0, &mut text);
    }
    text
}

fn write_children(
    profile: &Profile,
    children: &HashMap<Option<NodeId>, Vec<(String, NodeId)>>,
    parent: NodeId,
    depth: usize,
    text: &mut String,
) {
    for (name, node) in children.get(&Some(parent)).into_iter().flatten() {
        let (calls, recursive) = (profile.tree.calls(*node), profile.tree.recursive_calls(*node));
        *text += &format!("{}{name} {calls}", "  ".repeat(depth));
        if recursive > 0 {
            *text += &format!(", {recursive} recursive");
        }
        *text += &format!("{}\n", ports(profile.ports.get(*node)));
        write_children(profile, children, *node, depth + 1, text);
    }
}

fn ports(ports: Ports) -> String {
    let named = Ports::NAMES.into_iter().zip(ports.counts());
    named.filter(|(_, count)| *count > 0).map(|(name, count)| format!(", {count} {name}")).collect()
}
