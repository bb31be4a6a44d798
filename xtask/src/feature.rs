//! The features that give one format alone must build, and must not bring the dependencies of the other formats.

use crate::test::{LINTED, Passed, succeeds};
use crate::workspace;

/// The features that give a format alone.
const ALONE: [&str; 2] = ["folded", "pprof"];

/// Dependencies that only other formats need.
const OF_OTHERS: [&str; 5] = ["crc32c", "quick-xml", "regex", "serde_json", "zstd"];

/// Lints the crate of formats with each of these features alone, and lists what it then depends on.
pub(crate) fn formats_alone() -> Passed {
    let all = ALONE.iter().all(|feature| {
        let found = matches!(succeeds(cargo("clippy", feature).arg("--quiet").args(LINTED)), Passed::Yes);
        found && brings_nothing(feature)
    });
    all.into()
}

fn cargo(command: &str, feature: &str) -> std::process::Command {
    let mut cargo = workspace::cargo();
    cargo.args([command, "--package", "treering-formats", "--no-default-features", "--features", feature]);
    cargo
}

/// Whether a format alone has none of the dependencies of others; prints those that it has.
fn brings_nothing(feature: &str) -> bool {
    let mut tree = cargo("tree", feature);
    let output = match tree.args(["--edges", "normal", "--prefix", "none", "--format", "{p}"]).output() {
        Ok(output) if output.status.success() => output,
        other => {
            eprintln!("cannot run {tree:?}: {other:?}");
            return false;
        }
    };
    let brought = of_others(&String::from_utf8_lossy(&output.stdout));
    brought.iter().for_each(|name| println!("the feature {feature} of treering-formats brings {name}"));
    brought.is_empty()
}

/// The dependencies of other formats among lines of `NAME VERSION`.
fn of_others(tree: &str) -> Vec<&'static str> {
    let names: Vec<_> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
    OF_OTHERS.into_iter().filter(|name| names.contains(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_of_other_formats_are_found_by_their_whole_names() {
        let tree = "treering-formats v0.1.0 (/a/zstd)\nflate2 v1.1.0\nregex-syntax v0.8.0\nserde v1.0.0\n";
        assert_eq!(of_others(tree), [""; 0]);
        assert_eq!(of_others(&format!("{tree}zstd v0.13.0\nregex v1.12.0 (*)\n")), ["regex", "zstd"]);
    }
}
