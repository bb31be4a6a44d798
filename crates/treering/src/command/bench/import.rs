//! `treering bench import`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use treering_archive::import::{Tool, criterion, google_benchmark, hyperfine, recognise};
use treering_archive::{
    Archive, Id, Machine, Manifest, Measured, Moment, Named, Unit, Version, Word, metric,
};
use treering_formats::{Format, cbs_xml, detect, trg};
use treering_profile::Profile;
use treering_report::plural;

use super::columns::print;
use super::place::{Place, failure};
use crate::failure::{Context as _, Failure, Outcome};
use crate::open::{open_content, read_file, written_unix_ns};

/// Keep runs that other tools measured
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Reads XML of benchmarks (of CBS and of Treering), JSON of hyperfine (--export-json) and of google-benchmark \
(--benchmark_out), profiles of programs with CBS's macros, and folders of criterion (target/criterion) or a file in one. \
The same file again is the same runs.")]
pub struct Import {
    /// The files and folders
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// The version of the programs that were measured
    #[arg(long, value_name = "NAME", default_value = "")]
    version_name: String,
    /// They were measured on this machine, where the file does not say
    #[arg(long)]
    this_machine: bool,
    #[command(flatten)]
    place: Place,
}

/// The folder of a benchmark of criterion, of which a file is named, as by `target/criterion/**/new/estimates.json`.
fn folder_of_criterion(path: &Path) -> Option<&Path> {
    const FILES: [&str; 4] = ["benchmark.json", "estimates.json", "sample.json", "tukey.json"];
    let is_its = FILES.iter().any(|name| path.ends_with(name));
    path.parent().filter(|folder| is_its && has_results_of_criterion(folder))
}

fn has_results_of_criterion(folder: &Path) -> bool {
    ["benchmark.json", "sample.json"].iter().all(|name| folder.join(name).exists())
}

/// The maker of a profile that the program wrote itself.
pub const OWN: &str = "the program itself";

/// A run with its profile.
type Imported = (Manifest, Option<Vec<u8>>);

impl Import {
    /// Does it.
    pub fn run(self) -> Outcome {
        // All of them are read before one is kept.
        let read = |path: &PathBuf| self.read(path);
        let files = self.files.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        let mut archive = self.place.open()?;
        let mut ids: Vec<Id> = Vec::new();
        for imported in files.into_iter().flatten() {
            ids.push(add(&mut archive, imported)?);
        }
        let first = ids.iter().take(3).map(Id::short).collect::<Vec<_>>().join(", ");
        let more = if ids.len() > 3 { ", …" } else { "" };
        print(&format!("kept {}: {first}{more}\n", plural(ids.len() as u64, "run")))?;
        Ok(ExitCode::SUCCESS)
    }

    fn read(&self, path: &Path) -> Result<Vec<Imported>, Failure> {
        if path.is_dir() {
            return self.folder(path);
        }
        if let Some(folder) = folder_of_criterion(path) {
            return Ok(vec![self.of_criterion(folder)?]);
        }
        let bytes = read_file(path)?;
        let manifests = match recognise(&bytes) {
            Some(Tool::Hyperfine) => hyperfine(&bytes).context(path.display())?,
            Some(Tool::GoogleBenchmark) => google_benchmark(&bytes).context(path.display())?,
            None => {
                let described = self.description(path, &bytes);
                return Ok(vec![described.map_or_else(|| self.profile(path, &bytes), Ok)?]);
            }
        };
        let session = Id::of(&bytes);
        let complete = |manifest| (self.complete(manifest, path, &session), None);
        Ok(manifests.into_iter().map(complete).collect())
    }

    /// The benchmarks below a folder of criterion.
    fn folder(&self, path: &Path) -> Result<Vec<Imported>, Failure> {
        let mut imported = Vec::new();
        let mut folders = vec![path.to_owned()];
        while let Some(folder) = folders.pop() {
            let entries =
                std::fs::read_dir(&folder).context(format_args!("cannot read {}", folder.display()))?;
            let below = entries.flatten().map(|entry| entry.path());
            // The latest run of each benchmark; `base` and others are earlier ones.
            folders.extend(below.filter(|path| path.is_dir() && !path.is_symlink()));
            if folder.ends_with("new") && has_results_of_criterion(&folder) {
                imported.push(self.of_criterion(&folder)?);
            }
        }
        imported.sort_by(|a, b| (&a.0.program, &a.0.parameters).cmp(&(&b.0.program, &b.0.parameters)));
        if imported.is_empty() {
            let message = format!("{} has no results of criterion", path.display());
            return Err(Failure::new(message).hint("name target/criterion, or a file"));
        }
        Ok(imported)
    }

    /// The results of one benchmark of criterion.
    fn of_criterion(&self, folder: &Path) -> Result<Imported, Failure> {
        let (benchmark, sample) = (folder.join("benchmark.json"), folder.join("sample.json"));
        let samples = read_file(&sample)?;
        let manifest = criterion(&read_file(&benchmark)?, &samples).context(folder.display())?;
        Ok((self.complete(manifest, &sample, &Id::of(&samples)), None))
    }

    /// A report of CBS without a call graph: parameters and results, and among these the times.
    fn description(&self, path: &Path, bytes: &[u8]) -> Option<Imported> {
        if detect(bytes) != Some(Format::CbsXml) || cbs_xml::read(bytes).is_ok() {
            return None;
        }
        let mut manifest = of_benchmark(&cbs_xml::read_description(bytes).ok()?)?;
        for (result, metric) in [("time", metric::CPU), ("time (wall)", metric::WALL)] {
            let stated = manifest.results.iter().find(|one| one.name == result);
            let milliseconds = stated.and_then(|one| one.value.trim().parse::<f64>().ok());
            let measured = |ms: f64| Measured { unit: Unit::Ns, values: vec![ms * 1e6] };
            manifest.samples.extend(milliseconds.map(|ms| (metric.to_owned(), measured(ms))));
        }
        Some((self.complete(manifest, path, &Id::of(bytes)), None))
    }

    /// A program's own report of its benchmark.
    fn profile(&self, path: &Path, bytes: &[u8]) -> Result<Imported, Failure> {
        let opened = open_content(path, bytes).map_err(|failure| match detect(bytes) {
            Some(_) => failure,
            None => {
                failure.hint("results of benchmarks that are kept are named by: treering bench import --help")
            }
        })?;
        opened.print_warnings();
        let profile = opened.profile;
        let Some(manifest) = of_benchmark(&profile) else {
            let message = format!("{} describes no benchmark", path.display());
            return Err(
                Failure::new(message).hint("XML of CBS does, and profiles of programs with its macros; treering archive add keeps any profile")
            );
        };
        let mut bytes = Vec::new();
        trg::write(&profile, &mut bytes).context(path.display())?;
        let session = Id::of(&bytes);
        Ok((self.complete(manifest, path, &session), Some(bytes)))
    }

    /// Adds what the file does not say.
    fn complete(&self, mut of: Manifest, path: &Path, session: &Id) -> Manifest {
        of.version = Version { name: self.version_name.clone(), ..Version::default() };
        of.written_by = format!("treering {}", env!("CARGO_PKG_VERSION"));
        of.session = format!("import {}", session.short());
        if of.started.0 == 0 {
            of.started = Moment(written_unix_ns(path));
        }
        if self.this_machine {
            of.machine = Machine::here();
        }
        of
    }
}

fn add(archive: &mut Archive, (manifest, profile): Imported) -> Result<Id, Failure> {
    let added = match profile {
        Some(profile) => archive.add_with_profiles(&manifest, &[(&profile, OWN)]),
        None => archive.add(&manifest),
    };
    added.map_err(failure)
}

/// The run that a program describes itself, if it is a benchmark.
fn of_benchmark(profile: &Profile) -> Option<Manifest> {
    let benchmark = profile.metadata.benchmark.as_ref()?;
    let run = profile.runs.first()?;
    let measured = |value: u64| Measured { unit: Unit::Ns, values: vec![value as f64] };
    let mut samples = std::collections::BTreeMap::new();
    samples.extend((run.duration_ns > 0).then(|| (metric::WALL.to_owned(), measured(run.duration_ns))));
    samples.extend(run.cpu_ns.map(|cpu| (metric::CPU.to_owned(), measured(cpu))));
    for Named { name, value } in results(profile).into_iter().filter(|one| !is_reserved(&one.name)) {
        let number = value.trim().parse::<f64>().ok().filter(|number| number.is_finite());
        samples.extend(number.map(|number| (name, Measured { unit: Unit::Count, values: vec![number] })));
    }
    let machine = |key: &str| profile.metadata.machine.get(key).cloned().unwrap_or_default();
    Some(Manifest {
        program: benchmark.name.clone(),
        command: run.command.iter().map(Word::from).collect(),
        parameters: benchmark.parameters.iter().cloned().collect(),
        results: results(profile),
        machine: Machine {
            model: machine("cpu"),
            cores: machine("cpus").parse().unwrap_or(0),
            host: machine("host"),
            kernel: machine("kernel"),
            ..Machine::default()
        },
        started: Moment(run.start_unix_ns),
        samples,
        clock: "the program's own timer".to_owned(),
        imported_from: Some(profile.metadata.collector.clone()),
        ..Manifest::default()
    })
}

/// Whether a result has a name that means something else where a metric is named.
pub fn is_reserved(name: &str) -> bool {
    ["time", metric::CPU, metric::WALL, metric::MEMORY, metric::INSTRUCTIONS].contains(&name)
}

/// The results that a program stated.
pub fn results(profile: &Profile) -> Vec<Named> {
    let stated = profile.metadata.benchmark.iter().flat_map(|benchmark| &benchmark.results);
    stated.map(|(name, value)| Named { name: name.clone(), value: value.clone() }).collect()
}
