//! `treering bench show`.

use std::process::ExitCode;

use treering_archive::{Archive, Id, Manifest, Measured, metric};

use super::amount::{amount, scale, significant, title};
use super::columns::{Side, print, table};
use super::place::{Place, failure};
use crate::failure::Outcome;
use crate::terminal;
use crate::word::word;

/// Show all that is known of a run
#[derive(Debug, clap::Args)]
pub struct Show {
    /// The run, by the beginning of its identifier
    run: String,
    /// Print the run's manifest, which is JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: Place,
}

impl Show {
    /// Does it.
    pub fn run(self) -> Outcome {
        let archive = self.place.open_existing()?;
        let id = archive.find(&self.run).map_err(failure)?;
        let manifest = archive.read(&id).map_err(failure)?;
        if self.json {
            let text = serde_json::to_string_pretty(&manifest).unwrap_or_default();
            terminal::print(&format!("{text}\n"))?;
        } else {
            print(&text(&archive, &id, &manifest))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn text(archive: &Archive, id: &Id, of: &Manifest) -> String {
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut fact = |name: &str, value: String| {
        if !value.is_empty() {
            rows.push(vec![name.to_owned(), value]);
        }
    };
    let pair = |(name, value): (&String, &String)| format!("{name}={value}");
    let command: Vec<String> = of.command.iter().map(|part| word(part.0.as_ref())).collect();
    fact("run", id.to_string());
    fact("program", of.program.clone());
    fact("command", command.join(" "));
    fact(
        "folder",
        of.directory.as_ref().map_or(String::new(), |folder| folder.0.to_string_lossy().into_owned()),
    );
    fact("parameters", of.parameters.iter().map(pair).collect::<Vec<_>>().join(" "));
    fact("results", of.results.iter().map(|one| pair((&one.name, &one.value))).collect::<Vec<_>>().join(" "));
    fact("version", version(of));
    fact("machine", of.machine.text());
    fact("host", [of.machine.host.as_str(), of.machine.kernel.as_str()].join(" ").trim().to_owned());
    fact("started", if of.started.0 == 0 { String::new() } else { format!("{} UTC", of.started.second()) });
    fact("clock", of.clock.clone());
    fact("from", of.imported_from.clone().unwrap_or_default());
    let path = |profile| word(&archive.profile_path(profile));
    for profile in &of.profiles {
        fact("profile", format!("by {}: treering report {}", profile.made_by, path(profile)));
    }
    of.notes.iter().for_each(|note| fact("note", note.clone()));
    format!("{}\n{}", table(&[Side::Left, Side::Left], &rows), samples(of))
}

fn version(of: &Manifest) -> String {
    let commit = of.version.commit.as_ref().map(|commit| format!("commit {commit}"));
    let dirty = (of.version.dirty == Some(true)).then(|| "work tree changed".to_owned());
    let name = Some(of.version.name.clone()).filter(|name| !name.is_empty());
    [name, commit, dirty].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn samples(of: &Manifest) -> String {
    let heads = ["", "median", "mean ± SD", "least – greatest", "rounds"].map(str::to_owned);
    let mut rows = vec![heads.to_vec()];
    let known = [metric::INSTRUCTIONS, metric::CPU, metric::WALL, metric::MEMORY];
    let others = of.samples.keys().map(String::as_str).filter(|name| !known.contains(name));
    for name in known.into_iter().chain(others) {
        rows.extend(of.samples.get(name).and_then(|measured| sample_row(name, measured)));
    }
    let mut sides = vec![Side::Right; heads.len()];
    sides[0] = Side::Left;
    table(&sides, &rows)
}

fn sample_row(name: &str, measured: &Measured) -> Option<Vec<String>> {
    let values = &measured.values;
    let median = treering_archive::median(values)?;
    let number = values.len() as f64;
    let mean = values.iter().sum::<f64>() / number;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let (factor, unit) = scale(mean, measured.unit);
    // All with as many digits behind the point as the mean has in three.
    let behind = significant(mean / factor, 3).split_once('.').map_or(0, |(_, digits)| digits.len());
    let of = |value: f64| format!("{:.*}", behind, value / factor);
    let deviation = if values.len() > 1 {
        format!(" ± {}", of((squares / (number - 1.0)).sqrt()))
    } else {
        String::new()
    };
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let greatest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    Some(vec![
        title(name).to_owned(),
        amount(median, measured.unit),
        format!("{}{deviation} {unit}", of(mean)).trim_end().to_owned(),
        format!("{} – {} {unit}", of(least), of(greatest)).trim_end().to_owned(),
        values.len().to_string(),
    ])
}
