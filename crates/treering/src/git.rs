//! Runs git, and checks commits out into temporary folders.
//!
//! Git tells its hooks, its aliases and `rebase --exec` by variables which repository, work tree and index they are
//! about; `git rev-parse --local-env-vars` lists them. In another folder git would follow them instead of the folder.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use treering_temporary::Folder;

use crate::failure::{Context as _, Failure};

/// The variables that name a work tree or its index.
const OF_WORK_TREE: [&str; 3] = ["GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"];
/// The variables that name a repository.
const OF_REPOSITORY: [&str; 2] = ["GIT_DIR", "GIT_COMMON_DIR"];

/// A git in the current folder, for the work tree that the caller means.
pub fn here() -> Command {
    let mut git = Command::new("git");
    git.stdin(Stdio::null());
    git
}

/// A git in that folder, for the work tree that the folder belongs to.
pub fn within(folder: &Path) -> Command {
    let mut git = here();
    OF_WORK_TREE.iter().chain(&OF_REPOSITORY).for_each(|name| _ = git.env_remove(name));
    git.current_dir(folder);
    git
}

/// The environment of this process for a program in another work tree.
pub fn environment_of_other_tree() -> Vec<(OsString, OsString)> {
    let is_of_git = |name: &OsString| OF_WORK_TREE.iter().chain(&OF_REPOSITORY).any(|of_git| name == of_git);
    std::env::vars_os().filter(|(name, _)| !is_of_git(name)).collect()
}

/// The output of git, without the end of the line.
///
/// # Errors
/// It cannot be run, or failed; the first line that it says.
pub fn output(mut git: Command, words: &[&str]) -> Result<String, Failure> {
    let output = git.args(words).output().context("cannot run git")?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.lines().find(|line| !line.is_empty()).unwrap_or("it failed");
    Err(Failure::new(format_args!("git {}: {said}", words.first().unwrap_or(&""))))
}

/// A commit that is checked out in a folder of its own. The folder and git's entry for it are removed with the value.
#[derive(Debug)]
pub struct WorkTree {
    repository: Option<PathBuf>,
    path: PathBuf,
}

impl WorkTree {
    /// Checks a commit out below a temporary folder. The repository is that of the folder `repository`, or else the one that
    /// the caller means.
    ///
    /// # Errors
    /// Git refuses it, and says why.
    pub fn add(
        repository: Option<&Path>,
        folder: &Folder,
        name: &str,
        commit: &str,
    ) -> Result<Self, Failure> {
        let tree = Self { repository: repository.map(Path::to_owned), path: folder.path().join(name) };
        tree.remove_stale_entries()?;
        let path = tree.path.to_string_lossy();
        output(tree.git(), &["worktree", "add", "--quiet", "--detach", "--force", &path, commit])?;
        Ok(tree)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A git for the repository, whichever of its work trees the caller means.
    fn git(&self) -> Command {
        match &self.repository {
            Some(folder) => within(folder),
            None => {
                let mut git = here();
                OF_WORK_TREE.iter().for_each(|name| _ = git.env_remove(name));
                git
            }
        }
    }

    /// Removes the entries of our work trees whose folders are gone, as a process that was killed leaves them. Those of
    /// others stay: their folders may be on a disk that is not mounted.
    fn remove_stale_entries(&self) -> Result<(), Failure> {
        let list = output(self.git(), &["worktree", "list", "--porcelain"])?;
        for path in list.lines().filter_map(|line| line.strip_prefix("worktree ")).map(Path::new) {
            if !path.exists() && path.parent().is_some_and(Folder::is_name_of_ours) {
                output(self.git(), &["worktree", "remove", "--force", "--force", &path.to_string_lossy()])?;
            }
        }
        Ok(())
    }
}

impl Drop for WorkTree {
    fn drop(&mut self) {
        let _ =
            output(self.git(), &["worktree", "remove", "--force", "--force", &self.path.to_string_lossy()]);
    }
}
