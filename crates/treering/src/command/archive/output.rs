//! An archive as the output of a collector: `-o DIR` or `-o s3://BUCKET/PREFIX`.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use treering_archive::Archive;
use treering_report::plural;
use treering_temporary::Folder;

use super::add::Add;
use super::bucket::is_bucket;
use crate::command::bench::place::failure;
use crate::companion;
use crate::failure::{Context as _, Failure, Outcome};
use crate::output::create_new;
use crate::word::word;

/// The profile of a collector on its way into an archive.
#[derive(Debug)]
pub struct Kept {
    archive: PathBuf,
    folder: Folder,
}

static IN_ARCHIVE: AtomicBool = AtomicBool::new(false);

/// Whether the output of this process goes into an archive: then no file is named that the user could open.
pub fn in_archive() -> bool {
    IN_ARCHIVE.load(Ordering::Relaxed)
}

impl Kept {
    /// If the output is an archive, makes it a file in a folder of its own, from which [`keep`](Self::keep) takes it.
    pub fn instead_of(output: &mut PathBuf, view: bool) -> Result<Option<Self>, Failure> {
        if !is_bucket(output) && !Archive::is_at(output) {
            if output.is_dir() {
                return Err(Failure::new(format_args!("{} is a directory", output.display())).hint(
                    "name a file after -o, or an archive; an empty folder becomes one by: treering archive add DIR PROFILE",
                ));
            }
            return Ok(None);
        }
        let archive = output.clone();
        if view {
            let message = format!("--view shows a file, and {} is an archive", archive.display());
            let hint = "leave --view out; treering archive view shows what is kept";
            return Err(Failure::new(message).hint(hint).status(2));
        }
        match is_bucket(&archive) {
            true if companion::find().is_none() => return Err(companion::missing()),
            true => {}
            // Before the program runs: later, what was recorded could be lost.
            false => {
                let opened = Archive::open_existing(&archive);
                drop(opened.and_then(|opened| opened.new_input()).map_err(failure)?);
            }
        }
        let folder = Folder::create("archive").context("cannot make a temporary folder")?;
        *output = folder.path().join("treering.trg");
        IN_ARCHIVE.store(true, Ordering::Relaxed);
        Ok(Some(Self { archive, folder }))
    }

    /// Keeps what was written: the profile, and those of processes that the program started. The outcome is the
    /// collector's, unless it is good and the profiles cannot be kept.
    pub fn finish(kept: Option<Self>, quiet: bool, outcome: Outcome) -> Outcome {
        let Some(kept) = kept else { return outcome };
        match kept.keep(quiet) {
            Ok(()) => outcome,
            Err(failure) if outcome.as_ref().is_ok_and(|code| *code == ExitCode::SUCCESS) => Err(failure),
            // The program's own status tells more than that its profile could not be kept.
            Err(failure) => {
                failure.print();
                outcome
            }
        }
    }

    fn keep(&self, quiet: bool) -> Result<(), Failure> {
        let files = self.files();
        if files.is_empty() {
            return Ok(());
        }
        let place = word(&self.archive);
        match Add::of(self.archive.clone(), files.clone()).keep() {
            Ok((kept, _)) if kept == files.len() => {
                if !quiet {
                    let kept = plural(kept as u64, "profile");
                    tell!("\nkept {kept} in {place}; next: treering archive list --archive {place}");
                }
                Ok(())
            }
            added => {
                let failure = added
                    .err()
                    .unwrap_or_else(|| Failure::new(format_args!("not all profiles are in {place}")));
                Err(match rescued(&files) {
                    Ok(here) => failure.hint(format_args!(
                        "what was recorded is here: treering archive add {place} {}",
                        here.join(" ")
                    )),
                    Err(error) => failure.hint(format_args!("what was recorded is lost: {error}")),
                })
            }
        }
    }

    fn files(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.folder.path()).into_iter().flatten().flatten();
        let is_profile = |path: &PathBuf| path.extension() == Some("trg".as_ref()) && path.is_file();
        let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_profile).collect();
        files.sort();
        files
    }
}

/// Copies profiles into the folder in which we run, under names that are free. Returns these as words of a command.
fn rescued(files: &[PathBuf]) -> io::Result<Vec<String>> {
    let mut here = Vec::new();
    let mut names = (0..).map(|at| PathBuf::from(format!("treering.{}-{at}.trg", std::process::id())));
    for file in files {
        for name in &mut names {
            match create_new(&name) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                created => io::copy(&mut File::open(file)?, &mut created?)?,
            };
            here.push(word(&name));
            break;
        }
    }
    Ok(here)
}
