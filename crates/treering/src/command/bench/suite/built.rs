//! The versions of a suite, built in work trees of their own.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use treering_archive::Version;
use treering_measure::{Launch, LaunchError, run};
use treering_temporary::Folder;

use super::super::job::ended;
use super::super::measuring::Stop;
use super::super::version::{git, version_of};
use super::file::VersionTable;
use crate::failure::{Context as _, Failure};
use crate::git::{WorkTree, environment_of_other_tree};

/// Versions and where they are. Their work trees are removed with the value.
#[derive(Debug)]
pub struct Built {
    versions: Vec<(Version, PathBuf)>,
    trees: Vec<WorkTree>,
    _folder: Option<Folder>,
}

impl Built {
    /// Builds the versions; without any, there is the work tree as it is.
    pub fn make(
        folder: &Path,
        tables: &BTreeMap<String, VersionTable>,
        stop: &Stop,
    ) -> Result<Self, Failure> {
        let here = folder.canonicalize().context(format_args!("cannot read {}", folder.display()))?;
        let needs_trees = tables.values().any(|table| table.git.is_some());
        let temporary =
            needs_trees.then(|| Folder::create("bench")).transpose().context("cannot make a folder")?;
        let mut built = Self { versions: Vec::new(), trees: Vec::new(), _folder: None };
        if tables.is_empty() {
            built.versions.push((version_of(&here, None), here));
            return Ok(built);
        }
        for (name, table) in tables {
            let at = match (&table.git, &temporary) {
                (Some(revision), Some(temporary)) => built.add_tree(&here, temporary, name, revision)?,
                _ => here.clone(),
            };
            if let Some(command) = &table.build {
                build(name, command, &at, stop)?;
            }
            built.versions.push((version_of(&at, Some(name)), at));
        }
        built._folder = temporary;
        Ok(built)
    }

    /// The versions and their folders, by name.
    pub fn versions(&self) -> impl Iterator<Item = (&Version, &Path)> {
        self.versions.iter().map(|(version, folder)| (version, folder.as_path()))
    }

    /// The last version.
    pub fn last(&self) -> &Version {
        // There is one at least.
        &self.versions[self.versions.len() - 1].0
    }

    /// Where setups run: in the work tree as it is, or else in that of the last version.
    pub fn folder(&self) -> &Path {
        &self.versions[self.versions.len() - 1].1
    }

    fn add_tree(
        &mut self,
        here: &Path,
        temporary: &Folder,
        name: &str,
        revision: &str,
    ) -> Result<PathBuf, Failure> {
        let cannot = |why: &str| Failure::new(format_args!("[version.{name}] git = {revision:?}: {why}"));
        let words: Vec<&str> = revision.split_whitespace().collect();
        let commit = match words[..] {
            // Where this branch began.
            ["merge-base", other] => git(here, &["merge-base", other, "HEAD"]),
            [revision] if !revision.starts_with('-') => {
                git(here, &["rev-parse", "--verify", "--end-of-options", &format!("{revision}^{{commit}}")])
            }
            _ => return Err(cannot("write a revision, or merge-base and a branch")),
        };
        let commit = commit.ok_or_else(|| cannot("git knows no such revision here"))?;
        let tree =
            WorkTree::add(Some(here), temporary, name, &commit).map_err(|why| cannot(&why.to_string()))?;
        let path = tree.path().to_owned();
        self.trees.push(tree);
        Ok(path)
    }
}

/// Builds a version by a shell's command.
fn build(name: &str, command: &str, folder: &Path, stop: &Stop) -> Result<(), Failure> {
    let what = || format!("[version.{name}] build = {command:?}");
    shell(command, folder, stop).map_err(|why| Failure::new(format_args!("{} {why}", what())))
}

/// Runs a shell's command in a folder. Says why if it fails.
pub fn shell(command: &str, folder: &Path, stop: &Stop) -> Result<(), String> {
    let launch = Launch {
        words: ["sh", "-c", command].map(Into::into).to_vec(),
        directory: Some(folder.to_owned()),
        environment: Some(environment_of_other_tree()),
        stop: Some(std::sync::Arc::clone(stop.flag())),
        ..Launch::default()
    };
    match run(&launch) {
        Ok(sample) if sample.ended.is_success() => Ok(()),
        Ok(sample) => {
            let last = sample.last_error.map_or(String::new(), |line| format!(": {line}"));
            Err(format!("failed with {}{last}", ended(sample.ended)))
        }
        Err(LaunchError::Stopped) => Err("was interrupted".to_owned()),
        Err(error) => Err(format!("cannot be run: {error}")),
    }
}
