//! Two revisions of a repository, each checked out into a folder of its own.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use treering_compare::Sides;
use treering_measure::Launch;
use treering_temporary::Folder;

use crate::failure::{Context as _, Failure};

use super::interrupt::Interrupt;
use super::progress::Progress;
use super::timed::succeed;

/// The work trees. They are removed at the end.
pub(super) struct Trees {
    folder: Folder,
    /// From the top of the repository to the folder that treering was started in.
    below: PathBuf,
}

/// The names of both work trees. As they are equally long, so are the paths of all programs in them.
const NAMES: Sides<&str> = Sides { base: "base", head: "head" };

impl Trees {
    /// Checks out both revisions, and builds them if there is a command for it.
    pub(super) fn create(
        revisions: &str,
        build: Option<&str>,
        interrupt: &Interrupt,
    ) -> Result<Self, Failure> {
        let below = PathBuf::from(git(&["rev-parse", "--show-prefix"])?);
        let commits = commits(revisions)?;
        let folder = Folder::create("compare-git").context("cannot make a folder for work trees")?;
        // Entries of earlier trees whose folders are gone.
        git(&["worktree", "prune"])?;
        let trees = Self { folder, below };
        let progress = Progress::begin();
        for (name, commit) in [(NAMES.base, &commits.base), (NAMES.head, &commits.head)] {
            progress.doing(&format!("checking out {name}"));
            let path = trees.folder.path().join(name);
            git(&["worktree", "add", "--quiet", "--detach", "--force", &path.to_string_lossy(), commit])?;
            if interrupt.is_asked() {
                return Err(interrupt.failure());
            }
        }
        let folders = trees.folders();
        for (name, folder) in [("base", &folders.base), ("head", &folders.head)] {
            if !folder.is_dir() {
                return Err(Failure::new(format_args!("{name} has no folder {}", trees.below.display())));
            }
            if let Some(build) = build {
                progress.doing(&format!("building {name}"));
                trees.build(name, folder, build, interrupt)?;
            }
        }
        Ok(trees)
    }

    /// Where the programs run: the folder of each tree that treering was started in.
    pub(super) fn folders(&self) -> Sides<PathBuf> {
        NAMES.map(|name| self.folder.path().join(name).join(&self.below))
    }

    /// The head's tree.
    pub(super) fn head(&self) -> PathBuf {
        self.folder.path().join(NAMES.head)
    }

    /// Builds what is checked out in the head's tree now.
    pub(super) fn build_head(&self, build: Option<&str>, interrupt: &Interrupt) -> Result<(), Failure> {
        let Some(build) = build else { return Ok(()) };
        let folder = self.folders().head;
        if !folder.is_dir() {
            return Err(Failure::new(format_args!("there is no folder {}", self.below.display())));
        }
        self.build("head", &folder, build, interrupt)
    }

    fn build(&self, name: &str, folder: &Path, command: &str, interrupt: &Interrupt) -> Result<(), Failure> {
        let words = ["/bin/sh", "-c", command].map(std::ffi::OsString::from).to_vec();
        let directory = Some(folder.to_owned());
        let launch = Launch { directory, stop: Some(interrupt.flag()), ..Launch::new(words) };
        succeed(&launch, &format!("{name}'s build"), "--build", interrupt).map(drop)
    }
}

impl Drop for Trees {
    fn drop(&mut self) {
        for name in [NAMES.base, NAMES.head] {
            let path = self.folder.path().join(name);
            let _ = git(&["worktree", "remove", "--force", "--force", &path.to_string_lossy()]);
        }
    }
}

/// Both commits: `A..B`, or a revision and the work tree as it is now.
fn commits(revisions: &str) -> Result<Sides<String>, Failure> {
    let (base, head) = match revisions.split_once("..") {
        Some((base, head)) => (commit(base)?, commit(if head.is_empty() { "HEAD" } else { head })?),
        None => (commit(revisions)?, work_tree()?),
    };
    Ok(Sides { base, head })
}

/// The commit of that name.
pub(super) fn commit(revision: &str) -> Result<String, Failure> {
    git(&["rev-parse", "--verify", "--quiet", "--end-of-options", &format!("{revision}^{{commit}}")]).map_err(
        |_| {
            Failure::new(format_args!("git knows no revision {revision}"))
                .hint("git fetch it first; in CI, check out with fetch-depth: 0")
        },
    )
}

/// The work tree as a commit that no branch has: what is changed in files that git knows belongs to it.
fn work_tree() -> Result<String, Failure> {
    let stash = git(&["stash", "create"])?;
    if stash.is_empty() { commit("HEAD") } else { Ok(stash) }
}

/// The output of git, without the end of the line.
fn git(words: &[&str]) -> Result<String, Failure> {
    git_in(Path::new("."), words)
}

/// The same, where git runs in that folder.
pub(super) fn git_in(directory: &Path, words: &[&str]) -> Result<String, Failure> {
    let mut command = Command::new("git");
    command.args(words).current_dir(directory).stdin(Stdio::null()).stderr(Stdio::piped());
    let output = command.output().context("cannot run git")?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.lines().find(|line| !line.is_empty()).unwrap_or("it failed");
    Err(Failure::new(format_args!("git {}: {said}", words.first().unwrap_or(&""))))
}
