//! The version of a program, as its repository tells it.

use std::path::Path;

use treering_archive::{Moment, Version};

use crate::git::{output, within};

/// As many digits of a commit as are shown.
const DIGITS: usize = 8;

/// The version of what is in a folder: the commit of its repository, and whether the work tree was changed. Without a
/// repository, or without git, nothing is known of it.
pub fn version_of(folder: &Path, name: Option<&str>) -> Version {
    let commit = git(folder, &["rev-parse", "--verify", "HEAD"]);
    let status = git(folder, &["status", "--porcelain", "--untracked-files=no"]);
    let seconds =
        git(folder, &["show", "-s", "--format=%ct", "HEAD"]).and_then(|text| text.parse::<u64>().ok());
    let short = commit.as_deref().and_then(|commit| commit.get(..DIGITS)).unwrap_or_default();
    Version {
        name: name.unwrap_or(short).to_owned(),
        dirty: commit.as_ref().and(status.map(|text| !text.is_empty())),
        committed: seconds.and_then(|seconds| seconds.checked_mul(1_000_000_000)).map(Moment),
        commit,
    }
}

/// The output of git in a folder; nothing if it fails.
pub fn git(folder: &Path, arguments: &[&str]) -> Option<String> {
    let mut git = within(folder);
    // The index of a repository is not written by asking for its state.
    git.arg("--no-optional-locks");
    output(git, arguments).ok()
}
