//! The instructions of one call, counted by `treering count`.

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output};

use serde_json::{Value, json};

use crate::options::{Format, Options};
use crate::timed::grouped;

/// Counts the benchmarks, writes a row of each, and keeps or compares the counts.
pub(crate) fn count(names: &[&str], options: &Options, to: &mut impl Write) -> Result<ExitCode, String> {
    let treering = Treering::find();
    let folder = Folder::beside_this_program()?;
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let mut worst = 0;
    for name in names {
        let profile = folder.profile(None, name)?;
        treering.count(name, &profile)?;
        let instructions = treering.instructions(&profile)?;
        let compared = match &options.baseline {
            None => None,
            Some(baseline) => Some(treering.compare(&folder.kept(baseline, name)?, &profile, options)?),
        };
        worst = worst.max(compared.as_ref().map_or(0, |compared| compared.status));
        let written = match options.format {
            Format::Json => {
                let verdict = compared.map(|compared| compared.verdict);
                writeln!(
                    to,
                    "{}",
                    json!({ "benchmark": name, "instructions": instructions, "verdict": verdict })
                )
            }
            Format::Pretty | Format::Terse => {
                let verdict = compared.as_ref().and_then(|compared| compared.verdict["text"].as_str());
                let verdict = verdict.map_or(String::new(), |verdict| format!("  {verdict}"));
                writeln!(to, "{name:<width$}  {:>15} instructions{verdict}", grouped(instructions))
            }
        };
        written.map_err(|error| format!("cannot write: {error}"))?;
        // Kept only once it was compared: a name may be both.
        if let Some(baseline) = &options.save_baseline {
            let kept = folder.profile(Some(baseline), name)?;
            std::fs::copy(&profile, &kept)
                .map_err(|error| format!("cannot write {}: {error}", kept.display()))?;
        }
    }
    Ok(ExitCode::from(worst))
}

/// The program that counts.
struct Treering {
    program: OsString,
}

/// A benchmark beside its baseline.
struct Compared {
    /// The verdict of `treering diff --json`.
    verdict: Value,
    /// Its exit status.
    status: u8,
}

impl Treering {
    fn find() -> Self {
        Self { program: std::env::var_os("TREERING").unwrap_or_else(|| "treering".into()) }
    }

    /// Counts one call of a benchmark of this program.
    fn count(&self, name: &str, profile: &Path) -> Result<(), String> {
        let this = std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
        let mut command = Command::new(&self.program);
        command.args(["count", "--quiet", "--marked", "--fixed", "--force", "-o"]).arg(profile);
        command.arg("--").arg(this).args(["--run-once", name]);
        self.run(&mut command, &[0]).map(drop)
    }

    /// The run's cost of a profile.
    fn instructions(&self, profile: &Path) -> Result<u64, String> {
        let report = self.run(Command::new(&self.program).args(["report", "--json"]).arg(profile), &[0])?;
        json_of(&report)?["run"]["run_cost"]
            .as_u64()
            .ok_or_else(|| "treering report has no run_cost".to_owned())
    }

    fn compare(&self, base: &Path, head: &Path, options: &Options) -> Result<Compared, String> {
        let mut command = Command::new(&self.program);
        command.args(["diff", "--json"]).args(options.limit.as_ref().map(|limit| format!("--limit={limit}")));
        let told = self.run(command.arg(base).arg(head), &[0, 1, 3])?;
        let verdict = json_of(&told)?["verdict"].take();
        Ok(Compared {
            verdict,
            status: told.status.code().and_then(|code| code.try_into().ok()).unwrap_or(2),
        })
    }

    fn run(&self, command: &mut Command, expected: &[i32]) -> Result<Output, String> {
        let output = command.output().map_err(|error| {
            format!(
                "cannot start {}: {error}; install treering, or name it in the variable TREERING",
                self.program.display()
            )
        })?;
        match output.status.code().is_some_and(|code| expected.contains(&code)) {
            true => Ok(output),
            false => Err(format!("treering failed: {}", String::from_utf8_lossy(&output.stderr).trim())),
        }
    }
}

fn json_of(output: &Output) -> Result<Value, String> {
    serde_json::from_slice(&output.stdout).map_err(|error| format!("treering printed no JSON: {error}"))
}

/// The folder of counts, beside the folder that cargo built this program in.
struct Folder(PathBuf);

impl Folder {
    fn beside_this_program() -> Result<Self, String> {
        let this = std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
        // target/release/deps/words-0123456789abcdef
        let mut above = this.ancestors().skip(1);
        let built = above.find(|folder| folder.file_name().is_none_or(|name| name != "deps"));
        let stem = this.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        // Cargo's hash changes with the compiler; a baseline outlives that.
        let plain = stem
            .rsplit_once('-')
            .filter(|(_, hash)| hash.len() == 16)
            .map_or(stem.as_str(), |(name, _)| name);
        Ok(Self(built.unwrap_or(Path::new("/")).join("treering-bench").join(plain)))
    }

    /// The file of a benchmark's counts, in a folder that exists.
    fn profile(&self, baseline: Option<&str>, name: &str) -> Result<PathBuf, String> {
        let path = self.path(baseline, name);
        let folder = path.parent().unwrap_or(&self.0);
        std::fs::create_dir_all(folder)
            .map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
        Ok(path)
    }

    /// The counts that a baseline has of a benchmark.
    fn kept(&self, baseline: &str, name: &str) -> Result<PathBuf, String> {
        let path = self.path(Some(baseline), name);
        match path.exists() {
            true => Ok(path),
            false => Err(format!(
                "baseline {baseline} has no counts of {name}; --save-baseline {baseline} makes them"
            )),
        }
    }

    fn path(&self, baseline: Option<&str>, name: &str) -> PathBuf {
        let folder = baseline.map_or_else(|| self.0.join(".last"), |baseline| self.0.join(baseline));
        folder.join(format!("{}.trg", file_name(name)))
    }
}

/// The name of a benchmark as a file's: each name has a file of its own.
fn file_name(name: &str) -> String {
    let mut text = String::new();
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'=' => text.push(byte.into()),
            _ => text += &format!("%{byte:02x}"),
        }
    }
    text
}
