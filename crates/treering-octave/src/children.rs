//! Recordings that other processes make for this one: forked ones, and workers of the package parallel.
//!
//! Each has a live file beside this process's own, with its number in the name.

use std::path::{Path, PathBuf};

use treering_runtime::Snapshot;

use crate::temporary;

/// Their recordings so far.
pub(crate) fn snapshots() -> Vec<Snapshot> {
    let Some(own) = treering_runtime::output() else { return Vec::new() };
    let Some(begun) =
        treering_runtime::snapshot().and_then(|own| own.view().map(|view| view.header().start_unix_ns))
    else {
        return Vec::new();
    };
    let read = |file: PathBuf| treering_runtime::snapshot_of(std::fs::read(file).ok()?);
    // An older one is of an earlier profile.
    let is_of_this = |snapshot: &Snapshot| {
        snapshot.view().is_some_and(|view| {
            view.header().start_unix_ns >= begun && view.header().pid != std::process::id()
        })
    };
    files(&own).into_iter().filter_map(read).filter(is_of_this).collect()
}

/// Removes their files, if the user asked for no files.
pub(crate) fn discard() {
    let Some(own) = treering_runtime::output().filter(|own| temporary::holds(own)) else { return };
    for file in files(&own) {
        // One that is gone already is no problem.
        let _ = std::fs::remove_file(file);
    }
}

/// The files beside one that have its name with a number in front of the last dot.
fn files(own: &Path) -> Vec<PathBuf> {
    let stem = format!("{}.", own.file_stem().unwrap_or_default().to_string_lossy());
    let is_child = |path: &PathBuf| {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        path.extension() == own.extension()
            && name.strip_prefix(&stem).is_some_and(|number| {
                number.starts_with(|first: char| first.is_ascii_digit())
                    && number.chars().all(|part| part.is_ascii_digit() || part == '-')
            })
    };
    let beside = own.parent().map(std::fs::read_dir);
    let found = beside.into_iter().flatten().flatten().flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> = found.filter(is_child).collect();
    files.sort();
    files
}
