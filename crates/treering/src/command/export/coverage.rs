//! The executed code of a counted program, for tools that show coverage.

use std::path::Path;

use treering_profile::Profile;
use treering_report::{Picture, drcov, gcov_json, grouped, lcov_text, plural};

use super::{Export, To, place};
use crate::coverage::covered;
use crate::failure::Failure;
use crate::output::write_whole;

impl Export {
    pub(super) fn write_coverage(&self, profile: Profile, path: &Path) -> Result<(), Failure> {
        let file = self.file.display();
        self.part.check_no_stacks(&format!("--to {}", self.name()))?;
        if profile.code.blocks.is_empty() {
            let message = format!("{file}: executions of code were not counted, so what ran is not known");
            return Err(Failure::new(message).hint("treering count counts every one"));
        }
        let profile = self.part.of_threads(profile)?;
        match self.to {
            To::Drcov => self.write_blocks(&profile, path),
            _ => self.write_lines(&profile, path),
        }
    }

    fn name(&self) -> &'static str {
        match self.to {
            To::Lcov => "lcov",
            To::GcovJson => "gcov-json",
            _ => "drcov",
        }
    }

    fn write_blocks(&self, profile: &Profile, path: &Path) -> Result<(), Failure> {
        let file = drcov(profile);
        write_whole(path, |output| output.write_all(&file.bytes))?;
        tell!("wrote drcov to {}: {}", place(path), plural(file.blocks as u64, "block"));
        file.left_out.iter().for_each(|what| tell!("{what}"));
        Ok(())
    }

    fn write_lines(&self, profile: &Profile, path: &Path) -> Result<(), Failure> {
        let covered = covered(profile, None);
        let coverage = &covered.coverage;
        if coverage.files.is_empty() {
            let message = format!("{}: no executed code has source lines", self.file.display());
            let failure = Failure::new(message);
            let failure = covered.without_lines.iter().fold(failure, |failure, why| failure.hint(why));
            return Err(failure.hint("compile the program with -g"));
        }
        let Picture { text, left_out } = match self.to {
            To::Lcov => lcov_text(coverage),
            _ => {
                let directory = std::env::current_dir().unwrap_or_default();
                gcov_json(coverage, &directory.to_string_lossy(), &self.file.to_string_lossy())
            }
        };
        write_whole(path, |output| output.write_all(text.as_bytes()))?;
        let ((lines, hit), (functions, called)) = (coverage.lines(), coverage.functions());
        tell!(
            "wrote {} to {}: {} of {} and {} of {} were executed",
            self.name(),
            place(path),
            grouped(hit),
            plural(lines, "line"),
            grouped(called),
            plural(functions, "function")
        );
        left_out.iter().for_each(|what| tell!("{what}"));
        covered.without_lines.iter().for_each(|what| tell!("left out: {what}"));
        for module in &covered.changed {
            tell!("warning: {module} changed while it ran; counts of its lines add up all its versions");
        }
        Ok(())
    }
}
