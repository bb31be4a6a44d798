//! Two revisions of a repository, each checked out into a folder of its own.

use std::path::{Path, PathBuf};

use treering_compare::Sides;
use treering_measure::Launch;
use treering_temporary::Folder;

use crate::failure::{Context as _, Failure};
use crate::git::{WorkTree, environment_of_other_tree, here, output};

use super::interrupt::Interrupt;
use super::progress::Progress;
use super::timed::succeed;

/// The work trees. They are removed at the end.
pub(super) struct Trees {
    trees: Sides<WorkTree>,
    _folder: Folder,
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
        let progress = Progress::begin();
        let check_out = |name: &str, commit: &str| {
            progress.doing(&format!("checking out {name}"));
            let tree = WorkTree::add(None, &folder, name, commit)?;
            if interrupt.is_asked() { Err(interrupt.failure()) } else { Ok(tree) }
        };
        let base = check_out(NAMES.base, &commits.base)?;
        let head = check_out(NAMES.head, &commits.head)?;
        let trees = Self { trees: Sides { base, head }, _folder: folder, below };
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

    /// Launches a command in each tree, in the folder of it that treering was started in.
    pub(super) fn launches(&self, launch: &Launch) -> Sides<Launch> {
        let environment = environment_of_other_tree();
        self.folders().map(|folder| Launch {
            directory: Some(folder),
            environment: Some(environment.clone()),
            ..launch.clone()
        })
    }

    fn folders(&self) -> Sides<PathBuf> {
        self.trees.as_ref().map(|tree| tree.path().join(&self.below))
    }

    /// The head's tree.
    pub(super) fn head(&self) -> &Path {
        self.trees.head.path()
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
        let environment = Some(environment_of_other_tree());
        let launch = Launch { directory, environment, stop: Some(interrupt.flag()), ..Launch::new(words) };
        succeed(&launch, &format!("{name}'s build"), "--build", interrupt).map(drop)
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

/// The output of git, for the work tree that treering was started in.
fn git(words: &[&str]) -> Result<String, Failure> {
    output(here(), words)
}
