//! Some tests again, with programs that lie in a folder as people name them.
//!
//! A name with a space, with letters that are not ASCII, or that is ours: whoever takes one of these for something else
//! notices only there.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::workspace;

/// The folder, below that of cargo.
const NAME: &str = "jahr ringe ü 'n' $x/treering";

/// The tests that are run there: those that read the mappings of processes, preload libraries, or name programs in files.
const TESTS: [&str; 6] =
    ["attach::", "count_attached::", "gprof::", "record::", "short_lives::", "view_after::"];

/// Puts what cargo has built into the folder; the command that runs the tests there.
pub(crate) fn tests() -> Result<Command, String> {
    let (program, tests) = (built("bin", "treering")?, built("test", "command_line")?);
    let folder = workspace::target_directory().join(NAME);
    let copy =
        copy(&program, &folder).map_err(|error| format!("cannot write {}: {error}", folder.display()))?;
    let mut command = Command::new(tests);
    command.args(TESTS).arg("--show-output").current_dir(workspace::root().join("crates/treering"));
    command.env("CARGO_BIN_EXE_treering", copy).env("CARGO_TARGET_DIR", &folder);
    command.env("CARGO_TARGET_TMPDIR", folder.join("tmp"));
    Ok(command)
}

/// The file of a target that the tests are built with.
fn built(kind: &str, name: &str) -> Result<PathBuf, String> {
    let mut cargo = workspace::cargo();
    cargo.args([
        "test",
        "--workspace",
        "--test",
        "command_line",
        "--no-run",
        "--quiet",
        "--message-format=json",
    ]);
    let output = cargo.output().map_err(|error| format!("cannot run cargo: {error}"))?;
    let messages = output.stdout.split(|byte| *byte == b'\n');
    let is_wanted = |message: &Value| {
        message["target"]["name"] == name
            && message["target"]["kind"][0] == kind
            && message["executable"].is_string()
            && message["profile"]["test"] == (kind == "test")
    };
    let found = messages.filter_map(|line| serde_json::from_slice(line).ok()).find(is_wanted);
    let file = found.and_then(|message: Value| message["executable"].as_str().map(PathBuf::from));
    file.ok_or_else(|| format!("cargo does not build {name}"))
}

/// Gives a program and the libraries beside it another name; where the program is then.
fn copy(program: &Path, folder: &Path) -> std::io::Result<PathBuf> {
    let (from, to) = (program.parent().unwrap_or(program), folder.join("debug"));
    std::fs::create_dir_all(&to)?;
    std::fs::create_dir_all(folder.join("tmp"))?;
    for entry in std::fs::read_dir(from)? {
        let path = entry?.path();
        let is_library = path.extension().is_some_and(|its| its == "so" || its == "a");
        let Some(name) = path.file_name().filter(|_| is_library || path == program) else { continue };
        let copy = to.join(name);
        if copy.exists() {
            std::fs::remove_file(&copy)?;
        }
        std::fs::copy(&path, &copy)?;
    }
    let name = program.file_name().unwrap_or_default();
    Ok(to.join(name))
}
