//! `treering stat --exact`: the mix of the instructions that a program executed.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus};

use treering_profile::{ModelledEvent, Profile};
use treering_stat::{Exact, Mixes};
use treering_symbols::{CodeReader, Options};

use super::Stat;
use super::sink::Sink;
use crate::ending::{ended_by, signal_name};
use crate::failure::{Context as _, Failure, Outcome};
use crate::open::open_profile;
use crate::relay::Relay;

/// The values of `--by`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum By {
    /// Each function
    Function,
}

impl Stat {
    /// Counts the program by `treering count`, and tells the mix of its instructions.
    pub(super) fn count_exactly(&self, sink: &mut Sink) -> Outcome {
        let folder = treering_temporary::Folder::create("stat").context("cannot make a folder for counts")?;
        let file = folder.path().join("counts.trg");
        let status = self.run_counting(&file)?;
        let (end, code) = match (status.code(), status.signal()) {
            (Some(code), _) => (format!("exit {code}"), code as u8),
            (None, Some(signal)) => (signal_name(signal), ended_by(signal)),
            (None, None) => ("unknown".to_owned(), 1),
        };
        // It has said why there is none.
        if !file.exists() {
            return Ok(ExitCode::from(code));
        }
        let profile = open_profile(&file)?.profile;
        let written = self
            .told(&profile, end)
            .and_then(|exact| sink.write_exact(&exact, self.by.map(|By::Function| self.top)));
        written.map_err(|failure| failure.status(if code == 0 { 1 } else { code }))?;
        Ok(ExitCode::from(code))
    }

    /// Runs `treering count` to its end, and passes signals on to it.
    fn run_counting(&self, file: &Path) -> Result<ExitStatus, Failure> {
        let own = std::env::current_exe().context("cannot find the program treering")?;
        let mut words: Vec<OsString> = ["count", "--quiet", "--no-sources"].map(OsString::from).into();
        if !self.model.is_empty() {
            words.extend(["--model".into(), self.model.join(",").into()]);
        }
        words.extend(["-o".into(), file.as_os_str().to_owned(), "--".into()]);
        words.extend(self.command.iter().cloned());
        let (mut child, _relay) =
            Relay::spawn(Command::new(own).args(words)).context("cannot run treering count")?;
        child.wait().context("cannot wait for treering count")
    }

    fn told<'a>(&self, profile: &'a Profile, end: String) -> Result<Exact<'a>, Failure> {
        let options = Options::default();
        let mut reader = CodeReader::new(profile, &options);
        let mixes = Mixes::of(profile, &mut |at, length| reader.read(at, length))
            .ok_or_else(|| Failure::new("no instruction of the program was counted"))?;
        let command: Vec<String> =
            self.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let mut notes: Vec<String> = Vec::new();
        if end != "exit 0" {
            notes.push(format!("the program ended with {end}"));
        }
        let uncounted = profile.code.uncounted.iter();
        notes.extend(uncounted.map(|of| {
            format!("not counted exactly: {}: {}", of.reason.as_str(), &profile.strings[of.detail])
        }));
        notes.extend(profile.metadata.notes.iter().map(|note| note.0.clone()));
        if mixes.run.repeated > 0 {
            notes.push(format!(
                "{} instructions that repeat themselves (rep) load and store more: one round of each is counted",
                treering_report::grouped(mixes.run.repeated)
            ));
        }
        if mixes.run.unread > 0 {
            notes.push("kinds are not known of instructions whose code could not be read again".to_owned());
            notes.extend(reader.problems().iter().map(ToString::to_string));
        }
        notes.dedup();
        Ok(Exact {
            title: command.join(" "),
            command,
            end,
            profile,
            mixes,
            modelled: modelled(profile),
            notes,
        })
    }
}

/// The counts of the model, if there is one.
fn modelled(profile: &Profile) -> Vec<(String, u64)> {
    let metrics = profile
        .metrics()
        .filter(|(_, metric)| ModelledEvent::ALL.iter().any(|event| event.as_str() == metric.name));
    metrics.map(|(id, metric)| (metric.name.to_string(), profile.run_cost(id))).collect()
}
