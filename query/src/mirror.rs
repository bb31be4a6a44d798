//! Archives in buckets: copies of them in folders, and what goes back.
//!
//! An object is named by its content and never changed, but for `tables/current.json`. So a copy is brought up to date by
//! the objects that it lacks, and what comes is compared with its name.

use std::collections::HashSet;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use object_store::ObjectMeta;
use sha2::{Digest as _, Sha256};
use treering_fleet::sql::TABLES;
use treering_fleet::{FORMAT, Tables};

use crate::Failure;
use crate::bucket::{Bucket, Put};

/// The object that makes a prefix an archive.
const MARK: &str = "treering-archive.json";

/// The object that names the files of the tables.
const CURRENT: &str = "tables/current.json";

/// The version of tables that are not there.
const NO_TABLES: &str = "none";

/// So many requests are under way at once.
const AT_ONCE: usize = 16;

/// An object of that age that nothing names is no part of a run that is being added.
const ABANDONED: Duration = Duration::from_secs(24 * 3600);

/// An object of that age is written anew when it is added again, so that no one takes it for abandoned.
const WRITTEN_ANEW: Duration = Duration::from_secs(3600);

/// The mark and the manifests of all runs. Those that are no longer in the bucket leave the copy.
pub(crate) async fn fetch_runs(bucket: &Bucket, folder: &Path) -> Result<(), Failure> {
    let Some((mark, _)) = bucket.get(MARK).await? else {
        return Err(Failure::new(format_args!("there is no archive {}", bucket.url))
            .hint(format_args!("make one: treering archive add {} FILES", bucket.url)));
    };
    check_mark(bucket, &mark)?;
    keep(folder, MARK, &mark)?;
    let listed = bucket.list("runs").await?.into_iter().map(|object| object.name);
    let listed: HashSet<String> = listed.filter(|name| is_run(name)).collect();
    for gone in files(&folder.join("runs"))?.iter().filter_map(|path| name_in(folder, path)) {
        if !listed.contains(&gone) {
            std::fs::remove_file(folder.join(&gone)).map_err(cannot("remove", &folder.join(&gone)))?;
        }
    }
    fetch(bucket, folder, listed).await
}

/// Refuses an object in the mark's place that is no mark: something else than a store may have answered.
fn check_mark(bucket: &Bucket, mark: &[u8]) -> Result<(), Failure> {
    if format(mark).is_some() {
        return Ok(());
    }
    let place = format!("{}/{MARK}", bucket.url.trim_end_matches('/'));
    Err(Failure::new(format_args!("{place} is damaged, or what answers is no store"))
        .hint("the object has one line: {\"treering_archive\":1}; AWS_ENDPOINT_URL names the store"))
}

/// The tables: what counts, and its files. Returns the version in the bucket.
pub(crate) async fn fetch_tables(bucket: &Bucket, folder: &Path) -> Result<String, Failure> {
    // The file that names the others comes when these are there.
    let beside = temporary()?;
    let (version, named) = fetch_current(bucket, beside.path()).await?;
    let missing: Vec<String> = named.into_iter().filter(|name| !folder.join(name).exists()).collect();
    let damaged = bring(bucket, folder, missing, false).await?;
    if let Some(name) = damaged.first() {
        let place = format!("{}/{name}", bucket.url.trim_end_matches('/'));
        return Err(Failure::new(format_args!("{place} is damaged or missing"))
            .hint("write the tables anew: treering archive compact --anew"));
    }
    if version == NO_TABLES {
        return fetch_current(bucket, folder).await.map(|(version, _)| version);
    }
    keep(folder, CURRENT, &read(&beside.path().join(CURRENT))?)?;
    // Those that count no more, once no reader can have them.
    Tables::open(folder).and_then(|tables| tables.collect(false)).map_err(Failure::new)?;
    Ok(version)
}

/// The file that names the tables' files. Returns its version in the bucket, and these names.
pub(crate) async fn fetch_current(
    bucket: &Bucket,
    folder: &Path,
) -> Result<(String, HashSet<String>), Failure> {
    let Some((current, version)) = bucket.get(CURRENT).await? else {
        return match std::fs::remove_file(folder.join(CURRENT)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(cannot("remove", &folder.join(CURRENT))(error))
            }
            _ => Ok((NO_TABLES.to_owned(), HashSet::new())),
        };
    };
    let version =
        version.ok_or_else(|| Failure::new(format_args!("{} gives no versions of objects", bucket.url)))?;
    keep(folder, CURRENT, &current)?;
    let tables = Tables::open(folder).map_err(|error| unreadable(bucket, &error))?;
    let files = TABLES.into_iter().flat_map(|table| tables.files(table));
    Ok((version, files.filter_map(|path| name_in(folder, &path)).collect()))
}

/// The error of the object that names the tables' files, and what helps.
fn unreadable(bucket: &Bucket, error: &treering_fleet::Error) -> Failure {
    let place = format!("{}/{CURRENT}", bucket.url.trim_end_matches('/'));
    match error {
        treering_fleet::Error::Damaged { why, .. } => Failure::new(format_args!("{place} is damaged: {why}"))
            .hint("remove that object, and write the tables anew: treering archive compact"),
        treering_fleet::Error::Newer { found, .. } => Failure::new(format_args!(
            "{place}: a newer treering wrote the tables: their format is {found}, and this one reads up to {FORMAT}"
        ))
        .hint("use that version of treering"),
        other => Failure::new(other),
    }
}

fn temporary() -> Result<tempfile::TempDir, Failure> {
    tempfile::tempdir().map_err(|error| Failure::new(format_args!("cannot make a temporary folder: {error}")))
}

/// The named files, as far as they are missing or not what their names say. Contents are kept unchecked: their
/// readers compare them with the name, and know the run.
pub(crate) async fn fetch(
    bucket: &Bucket,
    folder: &Path,
    names: impl IntoIterator<Item = String>,
) -> Result<(), Failure> {
    let is_whole = |name: &String| {
        std::fs::read(folder.join(name))
            .is_ok_and(|content| Some(hash(&content).as_str()) == stated_hash(name))
    };
    let missing: Vec<String> = names.into_iter().filter(|name| !is_whole(name)).collect();
    bring(bucket, folder, missing, true).await.map(drop)
}

/// Brings files. Returns those that are not there, and those that are not what their names say, which are only kept if
/// that is wished.
async fn bring(
    bucket: &Bucket,
    folder: &Path,
    names: Vec<String>,
    keep_damaged: bool,
) -> Result<Vec<String>, Failure> {
    let one = |name: String| async move {
        let Some(stated) = stated_hash(&name) else {
            return Err(Failure::new(format_args!("{name:?} is no name of an object")));
        };
        let Some((content, _)) = bucket.get(&name).await? else { return Ok(Some(name)) };
        let is_whole = hash(&content) == stated;
        if is_whole || keep_damaged {
            keep(folder, &name, &content)?;
        }
        Ok((!is_whole).then_some(name))
    };
    let all: Vec<_> =
        stream::iter(names.into_iter().map(one)).buffer_unordered(AT_ONCE).try_collect().await?;
    Ok(all.into_iter().flatten().collect())
}

/// Puts the profiles of a folder, then its runs, into the bucket. Returns how many runs are new.
pub(crate) async fn push_runs(bucket: &Bucket, folder: &Path) -> Result<usize, Failure> {
    let own = read(&folder.join(MARK))?;
    match bucket.get(MARK).await? {
        Some((mark, _)) if format(&mark) > format(&own) => {
            return Err(Failure::new(format_args!("a newer treering made {}", bucket.url))
                .hint("use that version of treering"));
        }
        Some((mark, _)) => check_mark(bucket, &mark)?,
        None => {
            // Another writer may be at work: the mark is before whatever it has put.
            if !bucket.is_empty().await? && bucket.get(MARK).await?.is_none() {
                return Err(Failure::new(format_args!(
                    "{} has objects and is no archive of runs",
                    bucket.url
                ))
                .hint("name a prefix without objects: s3://BUCKET/PREFIX"));
            }
            bucket.create(MARK, own).await?;
        }
    }
    push(bucket, folder, files(&folder.join("profiles"))?).await?;
    // The runs last: a run never lacks its profile.
    push(bucket, folder, files(&folder.join("runs"))?).await
}

/// Puts files of the tables into the bucket and makes them count, if the tables there have still that version.
pub(crate) async fn push_tables(bucket: &Bucket, folder: &Path, version: &str) -> Result<bool, Failure> {
    let (found, there) = fetch_current(bucket, temporary()?.path()).await?;
    if found != version {
        return Ok(false);
    }
    let tables = Tables::open(folder).map_err(Failure::new)?;
    let named = TABLES.into_iter().flat_map(|table| tables.files(table));
    let new = named.filter(|path| name_in(folder, path).is_some_and(|name| !there.contains(&name)));
    push(bucket, folder, new.collect()).await?;
    let current = read(&folder.join(CURRENT))?;
    let put = match version {
        NO_TABLES => bucket.create(CURRENT, current).await?,
        version => bucket.replace(CURRENT, current, version).await?,
    };
    Ok(put == Put::Done)
}

/// Puts files into the bucket under their names. Returns how many are new.
async fn push(bucket: &Bucket, folder: &Path, files: Vec<PathBuf>) -> Result<usize, Failure> {
    let one = |path: PathBuf| async move {
        let name = name_in(folder, &path).filter(|name| stated_hash(name).is_some());
        // Others put other files there.
        let Some(name) = name else { return Ok(0) };
        if bucket.create(&name, read(&path)?).await? == Put::Done {
            return Ok(1);
        }
        if bucket.find(&name).await?.is_none_or(|found| !is_young(&found)) {
            bucket.overwrite(&name, read(&path)?).await?;
        }
        Ok(0)
    };
    let counts: Vec<usize> =
        stream::iter(files.into_iter().map(one)).buffer_unordered(AT_ONCE).try_collect().await?;
    Ok(counts.iter().sum())
}

/// Removes objects. A line is `remove NAME`, a run that goes, or `keep NAME`, a file that stays; profiles and files of
/// tables that are not named go when they are a day old. Returns how many files, without the runs, and all their bytes.
pub(crate) async fn sweep(bucket: &Bucket, lines: &[String], dry: bool) -> Result<(usize, u64), Failure> {
    let removed: Vec<&str> = lines.iter().filter_map(|line| line.strip_prefix("remove ")).collect();
    let kept: HashSet<&str> = lines.iter().filter_map(|line| line.strip_prefix("keep ")).collect();
    let (mut files, mut bytes) = (0, 0);
    // The runs first: a run never lacks its profile.
    for name in removed.into_iter().filter(|name| is_run(name)) {
        bytes += bucket.find(name).await?.map_or(0, |found| found.size);
        if !dry {
            bucket.remove(name).await?;
        }
    }
    for folder in ["profiles", "tables"] {
        for object in bucket.list(folder).await? {
            let is_ours = object.name != CURRENT && stated_hash(&object.name).is_some();
            if !is_ours || kept.contains(object.name.as_str()) || !is_abandoned(&object.meta) {
                continue;
            }
            // It may have been written anew since it was listed.
            let Some(found) = bucket.find(&object.name).await?.filter(is_abandoned) else { continue };
            files += 1;
            bytes += found.size;
            if !dry {
                bucket.remove(&object.name).await?;
            }
        }
    }
    Ok((files, bytes))
}

fn age(meta: &ObjectMeta) -> Option<Duration> {
    SystemTime::now().duration_since(SystemTime::from(meta.last_modified)).ok()
}

fn is_abandoned(meta: &ObjectMeta) -> bool {
    age(meta).is_some_and(|age| age > ABANDONED)
}

fn is_young(meta: &ObjectMeta) -> bool {
    age(meta).is_none_or(|age| age < WRITTEN_ANEW)
}

/// The hash that a name states. Names become paths, so those of other shapes are none.
fn stated_hash(name: &str) -> Option<&str> {
    let (folder, file) = name.rsplit_once('/')?;
    let (stem, ending) = file.rsplit_once('.')?;
    let is_hash =
        |text: &str| text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    match folder.split_once('/')? {
        ("runs", below) if ending == "json" && is_hash(stem) && stem.get(..2) == Some(below) => Some(stem),
        ("profiles", below) if ending == "trg" && is_hash(stem) && stem.get(..2) == Some(below) => Some(stem),
        ("tables", table) if ending == "parquet" && TABLES.contains(&table) => {
            let (day, stem) = stem.split_at_checked(11)?;
            let is_day = day.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
            (is_day && is_hash(stem)).then_some(stem)
        }
        _ => None,
    }
}

/// The format of an archive, of which its mark tells.
fn format(mark: &[u8]) -> Option<u64> {
    serde_json::from_slice::<serde_json::Value>(mark).ok()?.get("treering_archive")?.as_u64()
}

fn is_run(name: &str) -> bool {
    name.starts_with("runs/") && stated_hash(name).is_some()
}

fn hash(content: &[u8]) -> String {
    Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Writes a file of the copy, whole or not at all.
fn keep(folder: &Path, name: &str, content: &[u8]) -> Result<(), Failure> {
    let path = folder.join(name);
    let incoming = folder.join("incoming");
    let written = std::fs::create_dir_all(&incoming)
        .and_then(|()| path.parent().map_or(Ok(()), std::fs::create_dir_all))
        .and_then(|()| tempfile::NamedTempFile::new_in(&incoming))
        .and_then(|mut file| {
            file.write_all(content)?;
            file.persist(&path).map(drop).map_err(|error| error.error)
        });
    written.map_err(cannot("write", &path))
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path).map_err(cannot("read", path))
}

fn cannot(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Failure {
    let path = path.display().to_string();
    move |error| Failure::new(format_args!("cannot {doing} {path}: {error}"))
}

/// The files in a folder and in the folders in it; none if it is not there.
fn files(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = match std::fs::read_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            entries => entries.map_err(cannot("read", &folder))?,
        };
        for entry in entries {
            let entry = entry.map_err(cannot("read", &folder))?;
            let kind = entry.file_type().map_err(cannot("read", &entry.path()))?;
            match kind.is_dir() {
                true => folders.push(entry.path()),
                false => found.push(entry.path()),
            }
        }
    }
    found.sort();
    Ok(found)
}

/// The name of a file of a folder.
fn name_in(folder: &Path, path: &Path) -> Option<String> {
    Some(path.strip_prefix(folder).ok()?.to_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_the_archives_own_objects_become_paths() {
        let hash = "ab".repeat(32);
        for name in [
            format!("runs/ab/{hash}.json"),
            format!("profiles/ab/{hash}.trg"),
            format!("tables/fn/2026-11-27-{hash}.parquet"),
        ] {
            assert_eq!(stated_hash(&name), Some(hash.as_str()), "{name}");
        }
        for name in [
            format!("runs/../{hash}.json"),
            format!("runs/ab/../../{hash}.json"),
            format!("runs/cd/{hash}.json"),
            format!("profiles/ab/{hash}.json"),
            format!("tables/x/2026-11-27-{hash}.parquet"),
            format!("tables/fn/../../../-{hash}.parquet"),
            format!("runs/ab/{}.json", hash.to_uppercase()),
            "tables/current.json".to_owned(),
        ] {
            assert_eq!(stated_hash(&name), None, "{name}");
        }
    }

    #[test]
    fn a_file_of_the_copy_is_written_whole() {
        let folder = tempfile::tempdir().unwrap();
        keep(folder.path(), "runs/ab/x", b"text").unwrap();
        assert_eq!(std::fs::read(folder.path().join("runs/ab/x")).unwrap(), b"text");
        assert_eq!(files(&folder.path().join("incoming")).unwrap().len(), 0);
        assert_eq!(files(&folder.path().join("nothing")).unwrap().len(), 0);
    }
}
