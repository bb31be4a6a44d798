//! Removes what nothing needs any more.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use nix::fcntl::FlockArg;

use crate::archive::{Archive, Setup};
use crate::error::Error;
use crate::id::Id;
use crate::moment::Moment;
use crate::store::Kind;
use crate::summary::Summary;

/// The runs that are kept.
#[derive(Clone, Copy, Debug, Default)]
pub struct Retention {
    /// Runs that began earlier are removed.
    pub since: Option<Moment>,
    /// So many of the last runs of each program, its parameters, version and machine are kept in any case; without
    /// `since`, only these.
    pub last: Option<usize>,
}

/// The files that were removed, or are to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// Runs.
    pub runs: Vec<Id>,
    /// Profiles and inputs that no run names, and files of writers that were killed.
    pub files: usize,
    /// Their size, with that of the runs.
    pub bytes: u64,
}

/// A file of that age that nothing names has no writer any more, even on a file system without locks.
const ABANDONED: Duration = Duration::from_secs(24 * 3600);

impl Archive {
    /// Removes runs that are not to be kept, and files that no run names. Damaged files stay.
    ///
    /// # Errors
    /// The archive cannot be read or changed.
    pub fn collect(&mut self, keep: Retention, dry: bool) -> Result<Collected, Error> {
        let _lock = self.lock(FlockArg::LockExclusive)?;
        let mut collected = Collected::default();
        let summaries = self.summaries(None)?;
        let outdated = outdated(&summaries, keep);
        let mut named = HashSet::new();
        for summary in summaries.iter().filter(|summary| !outdated.contains(&summary.run)) {
            let manifest = self.read(&summary.run)?;
            named.extend(manifest.profiles.into_iter().map(|profile| profile.sha256));
            named.extend(manifest.input);
        }
        let mut remove: Vec<PathBuf> = Vec::new();
        for kind in [Kind::Profile, Kind::Input] {
            let ids = self.store.ids(kind)?;
            remove.extend(ids.iter().filter(|id| !named.contains(id)).map(|id| self.store.path(kind, id)));
        }
        for id in self.store.ids(Kind::Setup)? {
            let setup = self.store.get(Kind::Setup, &id, u64::from(u32::MAX));
            let setup = setup.ok().and_then(|setup| serde_json::from_slice::<Setup>(&setup).ok());
            if setup.is_none_or(|setup| !named.contains(&setup.input)) {
                remove.push(self.store.path(Kind::Setup, &id));
            }
        }
        // Of a manifest that cannot be read, it is not known what it names.
        if !self.problems().is_empty() {
            remove.clear();
        }
        // The files of a run that goes now go with it; a file that no run names may be of one that is being added.
        let released = self.released(&summaries, &outdated);
        remove.retain(|path| released.contains(path) || is_abandoned(path));
        remove.extend(self.store.unfinished()?.into_iter().filter(|path| is_abandoned(path)));
        collected.files = remove.len();
        let runs = outdated.iter().map(|id| self.store.path(Kind::Run, id));
        // The runs first: a run never lacks its profile.
        for path in runs.chain(remove) {
            collected.bytes += std::fs::symlink_metadata(&path).map_or(0, |found| found.len());
            if !dry {
                remove_file(&path)?;
            }
        }
        if !dry {
            self.forget(&outdated.iter().collect::<Vec<_>>());
        }
        collected.runs = outdated.into_iter().collect();
        collected.runs.sort();
        Ok(collected)
    }

    /// The profiles and inputs of some runs.
    fn released(&self, summaries: &[Summary], outdated: &HashSet<Id>) -> HashSet<PathBuf> {
        let runs = summaries.iter().filter(|summary| outdated.contains(&summary.run));
        let manifests = runs.filter_map(|summary| self.read(&summary.run).ok());
        let files = manifests.flat_map(|manifest| {
            let profiles = manifest.profiles.into_iter().map(|profile| self.profile_path(&profile));
            profiles
                .chain(manifest.input.map(|input| self.store.path(Kind::Input, &input)))
                .collect::<Vec<_>>()
        });
        files.collect()
    }
}

fn outdated(summaries: &[Summary], keep: Retention) -> HashSet<Id> {
    if keep.since.is_none() && keep.last.is_none() {
        return HashSet::new();
    }
    let mut later: BTreeMap<_, usize> = BTreeMap::new();
    let mut outdated = HashSet::new();
    for of in summaries {
        let series = (&of.program, &of.parameters, &of.version, &of.machine);
        let later = later.entry(series).or_default();
        let is_last = keep.last.is_some_and(|last| *later < last);
        let is_old = keep.since.is_none_or(|since| of.started < since);
        if is_old && !is_last {
            outdated.insert(of.run.clone());
        }
        *later += 1;
    }
    outdated
}

fn is_abandoned(path: &Path) -> bool {
    let written = std::fs::symlink_metadata(path).and_then(|found| found.modified());
    written.is_ok_and(|written| SystemTime::now().duration_since(written).is_ok_and(|age| age > ABANDONED))
}

fn remove_file(path: &Path) -> Result<(), Error> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::system("remove", path)(error))
        }
        _ => Ok(()),
    }
}
