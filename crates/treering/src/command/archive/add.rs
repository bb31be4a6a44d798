//! `treering archive add`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use treering_archive::{Archive, Machine, Manifest, Measured, Moment, Unit, Version, Word, metric};
use treering_formats::{Format, trg};
use treering_profile::Profile;
use treering_report::plural;
use treering_temporary::Folder;

use super::bucket::Bucket;
use crate::command::bench::place;
use crate::failure::{Context as _, Failure, Outcome};
use crate::open::{open_with_content, written_unix_ns};

/// Keep profiles of any format; the same profile again is the same run
#[derive(Debug, clap::Args)]
pub struct Add {
    /// The archive, which is made if it is not there; s3://BUCKET/PREFIX for one in S3
    archive: PathBuf,
    /// The profiles; - for one at standard input
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// The name of the project [default: that of the program]
    #[arg(long, value_name = "NAME")]
    project: Option<String>,
    /// The version of the program
    #[arg(long, value_name = "NAME", default_value = "")]
    version_name: String,
    /// The machine that the profiles are of [default: the one that they name, or this one]
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// The rank in a parallel program [default: the one that they name]
    #[arg(long)]
    rank: Option<u32>,
}

impl Add {
    /// The files to be added, with what the profiles themselves tell.
    pub fn of(archive: PathBuf, files: Vec<PathBuf>) -> Self {
        Self { archive, files, project: None, version_name: String::new(), host: None, rank: None }
    }

    /// Does it.
    pub fn run(self) -> Outcome {
        let (kept, new) = self.keep()?;
        tell!("kept {}, {new} of them new", plural(kept as u64, "profile"));
        let refused = self.files.len() - kept;
        if refused > 0 {
            return Err(Failure::new(format_args!(
                "{} not kept; all others are",
                plural(refused as u64, "file")
            )));
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Keeps the profiles that can be read; says why others cannot. Returns how many are kept, and how many are new.
    pub fn keep(&self) -> Result<(usize, usize), Failure> {
        let bucket = Bucket::named(&self.archive);
        // One in a bucket gets what is gathered in a folder, all of it at once.
        let gathered = bucket.as_ref().map(|_| Folder::create("archive"));
        let gathered = gathered.transpose().context("cannot make a temporary folder")?;
        let folder = gathered.as_ref().map_or(self.archive.clone(), |folder| folder.path().join("archive"));
        let mut archive = Archive::open(&folder).map_err(place::failure)?;
        let mut kept = 0;
        for file in &self.files {
            match self.add(&mut archive, file) {
                Ok(()) => kept += 1,
                Err(Refused { failure, is_last }) => {
                    _ = failure.print();
                    if is_last {
                        break;
                    }
                }
            }
        }
        let new = match bucket {
            Some(bucket) => bucket.push_runs(&folder)?,
            None => archive.new_runs(),
        };
        Ok((kept, new))
    }

    fn add(&self, archive: &mut Archive, file: &Path) -> Result<(), Refused> {
        let (opened, content) = open_with_content(file)?;
        opened.print_warnings();
        // A `.trg` file is kept as it is: its name is the hash of these bytes on every machine.
        let content = match content {
            Some(content) if opened.format == Format::Trg => content,
            _ => {
                let mut content = Vec::new();
                trg::write(&opened.profile, &mut content)
                    .context(format_args!("cannot keep {}", file.display()))?;
                content
            }
        };
        let manifest = self.manifest(&opened.profile, file);
        let collector = opened.profile.metadata.collector.clone();
        match archive.add_with_profiles(&manifest, &[(&content, &collector)]) {
            Err(error) => {
                let is_last = place::is_of_archive(&error);
                Err(Refused { is_last, failure: place::failure(error) })
            }
            Ok(_) => Ok(()),
        }
    }

    /// The description of a run, from what its profile tells. Equal profiles have equal ones.
    fn manifest(&self, profile: &Profile, file: &Path) -> Manifest {
        let run = profile.runs.first().cloned().unwrap_or_default();
        let fact = |name: &str| profile.metadata.machine.get(name).cloned();
        let host = self.host.clone().or_else(|| fact("host")).unwrap_or_else(|| Machine::here().host);
        let started = if run.start_unix_ns > 0 { run.start_unix_ns } else { written_unix_ns(file) };
        let measured = |value: u64| Measured { unit: Unit::Ns, values: vec![value as f64] };
        let mut samples = std::collections::BTreeMap::new();
        samples.extend(run.cpu_ns.map(|cpu| (metric::CPU.to_owned(), measured(cpu))));
        samples.extend((run.duration_ns > 0).then(|| (metric::WALL.to_owned(), measured(run.duration_ns))));
        Manifest {
            program: self.project.clone().unwrap_or_else(|| project(profile)),
            command: run.command.iter().map(Word::from).collect(),
            version: Version { name: self.version_name.clone(), ..Version::default() },
            machine: Machine {
                model: fact("cpu").unwrap_or_default(),
                cores: fact("cpus").and_then(|cpus| cpus.parse().ok()).unwrap_or(0),
                kernel: fact("kernel").unwrap_or_default(),
                host,
                ..Machine::default()
            },
            rank: self.rank.or_else(|| fact("rank")?.parse().ok()),
            started: Moment(started),
            samples,
            written_by: format!("treering {}", env!("CARGO_PKG_VERSION")),
            ..Manifest::default()
        }
    }
}

/// Why a file is not kept.
struct Refused {
    failure: Failure,
    /// The files after it would fare no better.
    is_last: bool,
}

impl From<Failure> for Refused {
    fn from(failure: Failure) -> Self {
        Self { failure, is_last: false }
    }
}

/// The file name of the command, or the name of the first process.
fn project(profile: &Profile) -> String {
    let command = profile.runs.first().and_then(|run| run.command.first());
    let name = command.map(|program| program.rsplit('/').next().unwrap_or_default().to_owned());
    let process = || profile.processes.first().map(|process| process.name.clone());
    name.filter(|name| !name.is_empty()).or_else(process).unwrap_or_default()
}
